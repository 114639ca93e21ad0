# t4: completion time and puts of N clients that start together, by retry rule; marks: the reference simulation's table.
width = 1150; height = 560
load "style.gp"
policies = column_values("policy")
n = items(policies)
array name[n]
do for [i=1:n] { name[i] = item(policies, i) }
pick(i, metric) = strcol("policy") eq name[i] ? column(metric) : NaN
reference = published."/backoff-together.tsv"
set multiplot layout 1,2 margins 0.08,0.98,0.25,0.86 spacing 0.1,0.1 \
  title "N clients start together, one update each (AWS set-up): lines simulated here, marks the reference" font ",16"
set logscale xy
set xrange [8:130]
set xtics (10, 20, 50, 100)
set xlabel "clients"
unset key
set title "All done after (s)"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "completion_last_s")) with lines linetype i, \
  for [i=1:5] reference using 2:(strcol(1) eq word(name[i], 1) ? $3/1000 : NaN) with points linetype i
set title "Conditional puts"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "commit_puts")) with lines linetype i, \
  for [i=1:5] reference using 2:(strcol(1) eq word(name[i], 1) ? $4 : NaN) with points linetype i
legend_band = 0.16; legend_rows = 2
load "legend.gp"
unset multiplot
