# t2: modelled stores (lines) beside measured ones (marks): wins a second, failure share, latency of won and lost puts.
width = 1150; height = 950
load "style.gp"
stores = column_values("store")
n = items(stores)
array name[n]
do for [i=1:n] { name[i] = item(stores, i) }
pick(i, metric) = strcol("store") eq name[i] ? column(metric) : NaN
measured = published."/tight-retry-measured.tsv"
seen(i, value) = strcol(1) eq name[i] && value > 0 ? value : NaN
set multiplot layout 2,2 margins 0.07,0.98,0.17,0.91 spacing 0.1,0.12 \
  title "Tight retriers of one conditional put: model (lines) and measurement (marks, June 2025)" font ",16"
set logscale x 2
set xrange [0.8:20]
set xlabel "clients that retry at once"
unset key
set yrange [0:100]
set title "Wins a second"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "wins_per_s")) with lines linetype i, \
  for [i=1:n] measured using 2:(seen(i, $3)) with points linetype i
set yrange [0:1]
set title "Failed share of attempts"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "conflict_share")) with lines linetype i, \
  for [i=1:n] measured using 2:(strcol(1) eq name[i] ? $4 : NaN) with points linetype i
set yrange [0:120]
set title "Latency of a put that won, median (ms)"
plot for [i=1:n] data using (column("producers.count")):(1000 * pick(i, "won_put_p50_s")) with lines linetype i, \
  for [i=1:n] measured using 2:(seen(i, $5)) with points linetype i
set title "Latency of a put that lost, median (ms)"
plot for [i=1:n] data using (column("producers.count")):(1000 * pick(i, "lost_put_p50_s")) with lines linetype i, \
  for [i=1:n] measured using 2:(seen(i, $6)) with points linetype i
legend_band = 0.08; legend_rows = 1
load "legend.gp"
unset multiplot
