# f5-read-latency: three panels over the size of a batch, a line an arm.
width = 1300; height = 560
load "style.gp"
limits_differ = 0; brokers_differ = 0
n = 3
array name[n] = ["Lakestream, dac", "Kafka, one record a batch", "Kafka, record a rank + index topic"]
load "kafka.gp"
set multiplot layout 1,3 margins 0.06,0.97,0.27,0.85 spacing 0.065,0.1 \
  title "64 ranks read 4 batches a second (simulated)" font ",16"
set logscale xy 10
set format y "%g"
set xrange [0.8:400]
set xlabel "size of a batch (MB)"
unset key
mb(x) = column("batches.bytes") / 1e6
set title "A rank waits for its slice, median (s)"
plot for [i=1:n] data using (mb(0)):(pick(i, "fetch_p50_s")) with linespoints linetype i
set title "The same, 99th percentile (s)"
plot for [i=1:n] data using (mb(0)):(pick(i, "fetch_p99_s")) with linespoints linetype i
set title "Bytes read for each byte needed"
set yrange [0.8:100]
plot for [i=1:n] data using (mb(0)):(pick(i, "read_amplification")) with linespoints linetype i
legend_band = 0.13; legend_rows = 1
load "legend.gp"
unset multiplot
