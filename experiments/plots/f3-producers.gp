# f3: four panels over the number of producers, a line a policy.
width = 1300; height = 1000
load "style.gp"
policies = column_values("policy")
n = items(policies)
array name[n]
do for [i=1:n] { name[i] = item(policies, i) }
pick(i, metric) = strcol("policy") eq name[i] ? column(metric) : NaN

set multiplot layout 2,2 margins 0.07,0.985,0.19,0.92 spacing 0.08,0.11 \
  title "Ingest as producers are added: 1 batch/s each, manifest of 10,000 entries, S3 Standard (simulated)" font ",17"
set logscale x 2
set xlabel "producers"
unset key

set logscale y
set title "Published batches a second (dotted: offered)"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "published_per_s")) with linespoints linetype i, \
  data using (column("producers.count")):(column("producers.count")) with lines linecolor rgb "#444444" dashtype 3

unset logscale y
set yrange [0:1]
set title "Conflicts per attempt"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "conflict_share")) with linespoints linetype i

set logscale y
set autoscale y
set format y "%g"
set title "Requests for manifests per published batch"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "commit_requests_per_batch")) with linespoints linetype i

set title "Publish delay, median (s)"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "publish_delay_p50_s")) with linespoints linetype i
legend_band = 0.12; legend_rows = 3
load "legend.gp"
unset multiplot
