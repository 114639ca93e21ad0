# t2: modelled stores (lines) beside measured ones (marks): wins a second and failure share of 1 to 16 tight retriers.
width = 1150; height = 560
load "style.gp"
stores = column_values("store")
n = items(stores)
array name[n]
do for [i=1:n] { name[i] = item(stores, i) }
pick(i, metric) = strcol("store") eq name[i] ? column(metric) : NaN
measured = published."/tight-retry-measured.tsv"
set multiplot layout 1,2 margins 0.07,0.98,0.23,0.86 spacing 0.1,0.1 \
  title "Tight retriers of one conditional put: model (lines) and measurement (marks, June 2025)" font ",16"
set logscale x 2
set xrange [0.8:20]
set xlabel "clients that retry at once"
unset key
set yrange [0:100]
set title "Wins a second"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "wins_per_s")) with lines linetype i, \
  for [i=1:n] measured using ($2):(strcol(1) eq name[i] && $3 > 1 ? $3 : NaN) with points linetype i
set yrange [0:1]
set title "Failed share of attempts"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "conflict_share")) with lines linetype i, \
  for [i=1:n] measured using ($2):(strcol(1) eq name[i] ? $4 : NaN) with points linetype i
legend_band = 0.12; legend_rows = 1
load "legend.gp"
unset multiplot
