# f8: a time line of published batches and training steps through crashes, zombies and a brown-out, a panel a policy. The series are not in the results
# file (one number a metric and run): `lakestream series f8-failures.json -o <data without .tsv>-series.tsv` makes them.
width = 1300; height = 1150
load "style.gp"
policies = column_values("policy")
n = items(policies)
array name[n]
do for [i=1:n] { name[i] = item(policies, i) }
if (system(sprintf("test -r '%s' && echo yes", series)) ne "yes") {
  printerr sprintf("%s is missing; make it: lakestream series experiments/f8-failures.json -o %s", series, series)
  exit status 1
}

set multiplot layout n,1 margins 0.07,0.985,0.06,0.92 spacing 0.08,0.055 \
  title "32 producers, 1 batch/s each, S3 Standard (simulated): what failures do to ingest and to training" font ",17"
set xrange [120:415]
set yrange [0:100]
set ytics 25
unset key
set object 1 rectangle from 180,graph 0 to 190,graph 1 behind fillcolor rgb "#d55e00" fillstyle solid 0.15 noborder
set object 2 rectangle from 240,graph 0 to 270,graph 1 behind fillcolor rgb "#0072b2" fillstyle solid 0.12 noborder
set object 3 rectangle from 330,graph 0 to 360,graph 1 behind fillcolor rgb "#009e73" fillstyle solid 0.15 noborder
set object 4 rectangle from 385,graph 0 to 395,graph 1 behind fillcolor rgb "#888888" fillstyle solid 0.25 noborder
set arrow 1 from 250,graph 0 to 250,graph 1 nohead linecolor rgb "#0072b2" dashtype 2
do for [i=1:n] {
  if (i == 1) {
    set label 1 "8 crash, 10 s down" at 180,graph 0.93 left offset 0.3,0 font ",11"
    set label 2 "8 pause 30 s, replaced after 10 s" at 240,graph 0.93 left offset 0.3,0 font ",11"
    set label 4 "job crashes" at 385,graph 0.93 left offset 0.3,0 font ",11"
    set label 3 "store 10x slower" at 330,graph 0.93 left offset 0.3,0 font ",11"
  } else {
    unset label
  }
  if (i == 2) { set label 5 "coloured: batches published; black: training steps; dotted: 32 batches offered, 20 steps wanted" at 122,graph 0.93 left font ",11" }
  if (i == n) { set xlabel "time (s)" }
  set ylabel "a second"
  set title name[i] offset 0,-0.6
  plot 32 with lines linecolor rgb "#444444" dashtype 3, 20 with lines linecolor rgb "#444444" dashtype 3, \
    series using (column("time_s")-2.5):(strcol("policy") eq name[i] ? column("published_per_s") : NaN) with histeps linetype i, \
    series using (column("time_s")-2.5):(strcol("policy") eq name[i] ? column("trainer_steps_per_s") : NaN) with histeps linecolor rgb "#000000" linewidth 1.5
}
unset multiplot
