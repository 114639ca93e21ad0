# p3: four panels, producers by manifest size: requests against publish delay, with helping (filled) and without (open).
width = 1400; height = 1000
load "style.gp"
is(name, producers, entries) = word(strcol("policy"), 1) eq name && column("producers.count") == producers && \
  column("manifest.initial_entries") == entries
pick(name, producers, entries, metric) = is(name, producers, entries) ? column(metric) : NaN
requests = "commit_requests_per_s"
array name[6] = ["dac, helping: p50, p99", "turns, helping: p50, p99", "oracle, helping: p50, p99", "dac: p50, p99", "turns: p50, p99", "oracle: p50, p99"]
n = 6
array rule[3] = ["dac", "turns", "oracle"]
set linetype 1 linecolor rgb "#0072b2" linewidth 2 pointtype 7 pointsize 1.4 dashtype 1
set linetype 4 linecolor rgb "#0072b2" linewidth 2 pointtype 6 pointsize 1.4 dashtype 2
set linetype 2 linecolor rgb "#d55e00" linewidth 2 pointtype 5 pointsize 1.4 dashtype 1
set linetype 5 linecolor rgb "#d55e00" linewidth 2 pointtype 4 pointsize 1.4 dashtype 2
set linetype 3 linecolor rgb "#000000" linewidth 2 pointtype 13 pointsize 1.4 dashtype 1
set linetype 6 linecolor rgb "#000000" linewidth 2 pointtype 12 pointsize 1.4 dashtype 2

set multiplot layout 2,2 margins 0.06,0.985,0.17,0.92 spacing 0.06,0.11 \
  title "publishing for others, upper end p99, lower end p50: 64 batches/s in all, S3 Standard (simulated)" font ",17"
set logscale xy
set format y "%g"
set xrange [0.08:600]
set yrange [0.3:4000]
unset key
set xlabel "requests for manifests a second, all producers"
set ylabel "publish delay (s)"
do for [entries in "1000 300000"] {
do for [producers in "64 1024"] {
  m = int(producers); e = int(entries)
  h(on) = strcol("protocol.help") eq on
  both(i, on, metric) = is(rule[i], m, e) && h(on) ? column(metric) : NaN
  set title sprintf("%s producers, manifest of %s entries", m == 64 ? "64" : "1,024", e == 1000 ? "1,000" : "300,000")
  plot for [i=1:3] data using (both(i, "true", requests)):(both(i, "true", "publish_delay_p50_s")) with points linetype i+0, \
    for [i=1:3] data using (both(i, "true", requests)):(both(i, "true", "publish_delay_p99_s")) with points linetype i+0, \
    for [i=1:3] data using (both(i, "false", requests)):(both(i, "false", "publish_delay_p50_s")) with points linetype i+3, \
    for [i=1:3] data using (both(i, "false", requests)):(both(i, "false", "publish_delay_p99_s")) with points linetype i+3
}
}
legend_band = 0.09; legend_rows = 2
load "legend.gp"
unset multiplot
