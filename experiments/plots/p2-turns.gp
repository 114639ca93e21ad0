# p2: four panels, producers by manifest size: requests against publish delay, p50 and p99, dac over its whole range.
width = 1400; height = 1000
load "style.gp"
is(name, producers, entries) = word(strcol("policy"), 1) eq name && column("producers.count") == producers && \
  column("manifest.initial_entries") == entries
pick(name, producers, entries, metric) = is(name, producers, entries) ? column(metric) : NaN
requests = "commit_requests_per_s"
array name[8] = ["dac, conflict share 0.1 to 0.97: p50", "turns: p50", "one queue that commits for all: p50", "oracle: p50", "dac: p99", "turns: p99", "one queue: p99", "oracle: p99"]
n = 8
array rule[4] = ["dac", "turns", "immediate", "oracle"]
set linetype 4 linecolor rgb "#000000" linewidth 2 pointtype 13 pointsize 1.4 dashtype 1
set linetype 5 linecolor rgb "#0072b2" linewidth 2 pointtype 6 pointsize 0.9 dashtype 2
set linetype 6 linecolor rgb "#d55e00" linewidth 2 pointtype 4 pointsize 0.9 dashtype 2
set linetype 7 linecolor rgb "#009e73" linewidth 2 pointtype 8 pointsize 1.1 dashtype 2
set linetype 8 linecolor rgb "#000000" linewidth 2 pointtype 12 pointsize 1.4 dashtype 2

set multiplot layout 2,2 margins 0.06,0.985,0.17,0.92 spacing 0.06,0.11 \
  title "turns against dac at every wanted conflict share: 64 batches/s in all, S3 Standard (simulated)" font ",17"
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
  of(i) = rule[i] eq "immediate" ? 1 : m
  set title sprintf("%s producers, manifest of %s entries", m == 64 ? "64" : "1,024", e == 1000 ? "1,000" : "300,000")
  plot for [i=1:4] data using (pick(rule[i], of(i), e, requests)):(pick(rule[i], of(i), e, "publish_delay_p50_s")) with linespoints linetype i, \
    for [i=1:4] data using (pick(rule[i], of(i), e, requests)):(pick(rule[i], of(i), e, "publish_delay_p99_s")) with linespoints linetype i+4
}
}
legend_band = 0.09; legend_rows = 2
load "legend.gp"
unset multiplot
