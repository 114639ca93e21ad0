# f3-ingest-kafka: four panels over the number of producers, a line an arm.
width = 1300; height = 1000
load "style.gp"
limits_differ = 0; brokers_differ = 1
n = 5
array name[n] = ["Lakestream, dac", "Kafka, record a rank + index topic, 3 brokers", "Kafka, record a rank + transaction, 3 brokers", "Kafka, one record a batch, 3 brokers", "Kafka, record a rank + index topic, 12 brokers"]
load "kafka.gp"
set multiplot layout 2,2 margins 0.07,0.97,0.21,0.92 spacing 0.08,0.11 \
  title "Ingest as producers are added: 1 batch/s of 8 MiB each (simulated)" font ",17"
set logscale x 2
set xlabel "producers"
unset key
mb = 8.388608
set logscale y
set yrange [5:8000]
set title "Published (MB/s; dotted: offered)"
plot for [i=1:n] data using (column("producers.count")):(mb * pick(i, "published_per_s")) with linespoints linetype i, \
  data using (column("producers.count")):(mb * column("producers.count")) with lines linecolor rgb "#444444" dashtype 3
set autoscale y
set format y "%g"
set title "Publish delay, median (s)"
plot for [i=1:n] data using (column("producers.count")):(pick(i, "publish_delay_p50_s")) with linespoints linetype i
unset logscale y
set yrange [0:1.02]
set title "Busiest broker: links in, busy share"
plot for [i=2:n] data using (column("producers.count")):(pick(i, "link_in_utilisation")) with linespoints linetype i
set title "Busiest broker: disk, busy share"
plot for [i=2:n] data using (column("producers.count")):(pick(i, "disk_utilisation")) with linespoints linetype i
legend_band = 0.13; legend_rows = 3
load "legend.gp"
unset multiplot
