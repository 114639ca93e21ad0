# t5: tight retriers with exponential and constant windows on N/Q(N) and 1.
width = 1150; height = 560
load "style.gp"
law = "store.conditional_won.law"
pick(l, metric) = strcol(law) eq l ? column(metric) : NaN
theory = published."/tight-retry-theory.tsv"
set multiplot layout 1,2 margins 0.08,0.98,0.13,0.86 spacing 0.1,0.1 \
  title "N tight retriers: simulation (marks) on the closed forms (lines)" font ",16"
set logscale x 2
set xrange [0.8:320]
set xlabel "clients that retry at once"
set key top left
set title "Wins per mean window"
plot theory using 1:2 with lines linetype 1 title "exponential windows: N / Q(N)", theory using 1:(1) with lines linetype 2 title "constant windows: 1", \
  data using (column("producers.count")):(pick("exponential", "wins_per_s")) with points linetype 1 notitle, \
  data using (column("producers.count")):(pick("constant", "wins_per_s")) with points linetype 2 notitle
set key bottom right
set yrange [0:1]
set title "Failed share of attempts"
plot theory using 1:3 with lines linetype 1 title "1 - 1 / Q(N)", theory using 1:(1-1/$1) with lines linetype 2 title "1 - 1 / N", \
  data using (column("producers.count")):(pick("exponential", "conflict_share")) with points linetype 1 notitle, \
  data using (column("producers.count")):(pick("constant", "conflict_share")) with points linetype 2 notitle
unset multiplot
