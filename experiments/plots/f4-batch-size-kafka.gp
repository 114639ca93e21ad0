# f4-batch-size-kafka: four panels over the size of a batch, a line an arm.
width = 1300; height = 1000
load "style.gp"
limits_differ = 1; brokers_differ = 0
n = 5
array name[n] = ["Lakestream, dac", "Kafka, one record a batch, default limits", "Kafka, one record a batch, raised limits", "Kafka, record a rank + index topic, default limits", "Kafka, record a rank + index topic, raised limits"]
load "kafka.gp"
set multiplot layout 2,2 margins 0.07,0.97,0.21,0.92 spacing 0.08,0.11 \
  title "16 producers with 20 MB/s each, batches for 64 ranks (simulated)" font ",17"
set logscale x 10
set xrange [0.25:1200]
set xlabel "size of a batch (MB)"
unset key
mb(x) = column("batches.bytes") / 1e6
set yrange [-0.03:1.1]
set title "Published, share of the batches made"
plot for [i=1:n] data using (mb(0)):(pick(i, "published_share")) with linespoints linetype i
set autoscale y
set logscale y
set format y "%g"
set title "Publish delay, median (s)"
plot for [i=1:n] data using (mb(0)):(pick(i, "publish_delay_p50_s")) with linespoints linetype i
set title "Kafka: from append to high watermark, mean (s)"
plot for [i=2:n] data using (mb(0)):(pick(i, "replication_mean_s")) with linespoints linetype i
unset logscale y
set yrange [0:1.02]
set title "Kafka: followers' one fetch under way, busiest pair (share of time)"
plot for [i=2:n] data using (mb(0)):(pick(i, "replica_fetch_utilisation")) with linespoints linetype i
legend_band = 0.13; legend_rows = 3
load "legend.gp"
unset multiplot
