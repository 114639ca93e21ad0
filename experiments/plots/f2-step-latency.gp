# f2: mean step latency over the cores for each rank, a panel a workload, the published ranges as bands; below, speed-up and where time goes.
width = 1500; height = 980
load "style.gp"
set datafile missing NaN # rows of the other world are no gap
ranges = published."/step-time-ranges.tsv"
bound(what, column) = real(system(sprintf("awk -F '\\t' '$1==\"%s\" {print $%d}' '%s'", what, column, ranges)))
workloads = column_values("preprocessing.workload")
n = items(workloads)
array name[n]
do for [i=1:n] { name[i] = item(workloads, i) }
pick(i, world, metric) = strcol("preprocessing.workload") eq name[i] && strcol("world") eq world ? column(metric) : NaN

set multiplot layout 2,n margins 0.06,0.985,0.135,0.9 spacing 0.05,0.1 \
  title "Step latency of three workloads on 64 GPUs (simulated); producers have 4 x the trainer's cores" font ",17"
set logscale x 2
set xrange [3.5:36]
set xtics (4, 8, 16, 32)
unset key
set logscale y
set format y "%g"
do for [i=1:n] {
  set title name[i]
  if (i == 1) { set ylabel "step, mean (s); faint: 99th percentile" } else { unset ylabel }
  set yrange [0.1:40]
  set ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
  set object 1 rectangle from graph 0,first bound("colocated_step",2) to graph 1,first bound("colocated_step",3) behind \
    fillcolor rgb "#d55e00" fillstyle solid 0.13 noborder
  set object 2 rectangle from graph 0,first bound("lakestream_step",2) to graph 1,first bound("lakestream_step",3) behind \
    fillcolor rgb "#0072b2" fillstyle solid 0.16 noborder
  plot data using (column("colocated.cores_per_rank")):(pick(i, "colocated", "trainer_step_p99_s")) with lines linetype 2 linewidth 1 dashtype 3, \
    data using (column("colocated.cores_per_rank")):(pick(i, "commit", "trainer_step_p99_s")) with lines linetype 1 linewidth 1 dashtype 3, \
    data using (column("colocated.cores_per_rank")):(pick(i, "colocated", "trainer_step_mean_s")) with linespoints linetype 2, \
    data using (column("colocated.cores_per_rank")):(pick(i, "commit", "trainer_step_mean_s")) with linespoints linetype 1
}
unset object
set xlabel "cores for each rank"
set yrange [0.8:40]
set ytics (1, 2, 4, 8, 16, 32)
rates = "awk 'BEGIN {FS=\"\\t\"} /^#/ {next} !h {for (i=1;i<=NF;i++) c[$i]=i; h=1; next} $c[\"preprocessing.workload\"]==\"%s\" \
 {k=$c[\"colocated.cores_per_rank\"]; if ($c[\"world\"]==\"colocated\") C[k]=$c[\"trainer_steps_per_s\"]; else {L[k]=$c[\"trainer_steps_per_s\"]; order[++m]=k}} \
 END {for (j=1;j<=m;j++) printf \"%%s\\t%%s\\n\", order[j], L[order[j]]/C[order[j]]}' '%s'"
do for [i=1:n] {
  set title "speed-up in steps a second"
  if (i == 1) { set ylabel "Lakestream / colocated" } else { unset ylabel }
  set object 1 rectangle from graph 0,first bound("speed_up",2) to graph 1,first bound("speed_up",3) behind \
    fillcolor rgb "#009e73" fillstyle solid 0.15 noborder
  if (i == 1) {
    set label 1 "orange: loaders beside the trainer, blue: Lakestream, dotted: their 99th percentiles; bands: the published ranges (0.457 to 4.113 s, 0.172 to 0.367 s; speed-up 2.68 to 7.73)" \
      at screen 0.06,0.03
  } else { unset label }
  plot "< ".sprintf(rates, name[i], data) using 1:2 with linespoints linetype 3
}
unset multiplot
