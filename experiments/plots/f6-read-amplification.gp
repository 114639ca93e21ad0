# f6: bytes moved for each byte needed, requests and waiting time a slice, over the number of ranks; colour: context ranks, solid: by
# range, dashed: whole objects; grey: what whole objects must cost, one object for each slice.
width = 1300; height = 560
load "style.gp"
cs = column_values("batches.context_parallel")
m = items(cs)
ranks(x) = column("batches.data_parallel") * column("batches.context_parallel")
pick(c, whole, metric) = strcol("batches.context_parallel") eq c && strcol("read.whole_objects") eq whole ? column(metric) : NaN
n = 2 * m
array name[n]
do for [k=1:m] { name[k] = "by range, C = ".item(cs, k); name[m+k] = "whole objects, C = ".item(cs, k) }
do for [k=1:m] {
  set linetype m+k dashtype 2
}
color(k) = k
set multiplot layout 1,3 margins 0.06,0.985,0.27,0.85 spacing 0.065,0.1 \
  title "Reading a 64 MiB batch by D x C ranks, S3 Standard (simulated)" font ",16"
set logscale xy 2
set xlabel "ranks, D x C"
unset key
set yrange [0.9:*]
set title "Bytes moved for each byte needed"
plot for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "false", "read_amplification")) with linespoints linetype k, \
  for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "true", "read_amplification")) with linespoints linetype m+k, \
  x with lines linecolor rgb "#888888" dashtype 3
unset logscale y
set yrange [0:*]
set title "Requests for each slice"
plot for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "false", "read_requests_per_fetch")) with linespoints linetype k, \
  for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "true", "read_requests_per_fetch")) with linespoints linetype m+k
set logscale y
set yrange [0.03:3]
set title "A rank waits for a slice (s)"
plot for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "false", "fetch_mean_s")) with linespoints linetype k, \
  for [k=1:m] data using (ranks(0)):(pick(item(cs, k), "true", "fetch_mean_s")) with linespoints linetype m+k
legend_band = 0.15; legend_rows = 2
load "legend.gp"
unset multiplot
