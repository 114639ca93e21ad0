# c1: dollars for a million batches over the number of producers, a panel a provider; below, a month of keeping the manifest versions that
# the commits made; dotted, what the batches themselves cost to upload and to keep.
width = 1400; height = 900
load "style.gp"
policies = column_values("policy")
stores = column_values("store")
n = items(policies)
m = items(stores)
array name[n]
do for [i=1:n] { name[i] = item(policies, i) }
pick(s, i, metric) = strcol("store") eq s && strcol("policy") eq name[i] ? column(metric) : NaN
set multiplot layout 2,m margins 0.06,0.985,0.17,0.91 spacing 0.045,0.11 \
  title "A million published batches of 8 MiB: dollars, by provider's price table (simulated)" font ",16"
set logscale xy
set xrange [3:350]
set xtics (4, 16, 64, 256)
set xlabel "producers"
unset key
set yrange [0.1:1000]
set format y "$%g"
do for [k=1:m] {
  s = item(stores, k)
  set title "Commit requests, ".s
  plot for [i=1:n] data using (column("producers.count")):(pick(s, i, "commit_dollars_per_million")) with linespoints linetype i, \
    data using (column("producers.count")):(pick(s, 1, "data_dollars_per_million")) with lines linecolor rgb "#888888" dashtype 3
}
# What the versions take is priced like all that is held: dollars of storage by their share of the bytes.
history(s, i) = pick(s, i, "storage_dollars_per_million") * column("history_bytes_per_batch") / column("stored_bytes_per_batch")
batches(s) = pick(s, 1, "storage_dollars_per_million") * (1 - column("history_bytes_per_batch") / column("stored_bytes_per_batch"))
set yrange [0.01:3000]
do for [k=1:m] {
  s = item(stores, k)
  set title "A month's history, ".s
  plot for [i=1:n] data using (column("producers.count")):(history(s, i)) with linespoints linetype i, \
    data using (column("producers.count")):(batches(s)) with lines linecolor rgb "#888888" dashtype 3
}
legend_band = 0.1; legend_rows = 1
set format y "%g"
load "legend.gp"
unset multiplot
