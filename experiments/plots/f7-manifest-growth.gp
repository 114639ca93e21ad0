# f7: six panels over the number of entries in the manifest, a line a policy.
width = 1500; height = 1050
load "style.gp"
policies = column_values("policy")
n = items(policies)
array name[n]
do for [i=1:n] { name[i] = item(policies, i) }
# an empty manifest has no place on a logarithmic axis: it is drawn at 100
entries(x) = x < 100 ? 100 : x
pick(i, metric) = strcol("policy") eq name[i] ? column(metric) : NaN

set multiplot layout 2,3 margins 0.06,0.985,0.21,0.92 spacing 0.06,0.11 \
  title "Commit policies as the manifest grows: 64 producers, 1 batch/s each, S3 Standard (simulated)" font ",17"
set logscale x
set xrange [80:1.3e6]
set xtics ("0" 100, "1k" 1e3, "10k" 1e4, "100k" 1e5, "1M" 1e6)
set xlabel "entries in the manifest"
unset key

set title "Published batches (share of offered)"
set yrange [0:1.05]
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "published_share")) with linespoints linetype i

set title "Conflicts per attempt"
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "conflict_share")) with linespoints linetype i

set logscale y
set autoscale y
set format y "%g"
set title "Commit attempts a second, all producers"
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "attempts_per_s")) with linespoints linetype i

set title "Publish delay, median (s)"
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "publish_delay_p50_s")) with linespoints linetype i

set title "Publish delay, 99th percentile (s)"
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "publish_delay_p99_s")) with linespoints linetype i

set title "Manifest bytes moved per published batch (MiB)"
plot for [i=1:n] data using (entries(column("manifest.initial_entries"))):(pick(i, "manifest_bytes_per_batch") / 1048576) \
  with linespoints linetype i
legend_band = 0.13; legend_rows = 6
load "legend.gp"
unset multiplot
