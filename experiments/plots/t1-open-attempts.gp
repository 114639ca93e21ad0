# t1: simulated win rate over the attempt rate for four window laws, on the exact curves S = 1/int exp(-G int F).
width = 1150; height = 560
load "style.gp"
law = "store.conditional_won.law"
shape = "store.conditional_won.shape"
pick(l, s) = strcol(law) eq l && (s eq "" || strcol(shape) eq s) ? column("wins_per_s") : NaN
set multiplot layout 1,2 margins 0.08,0.98,0.13,0.86 spacing 0.1,0.1 \
  title "Open Poisson attempts, each tried once: simulation against the exact law" font ",16"
set logscale x
set xrange [0.4:65]
set xlabel "attempts started per mean (lognormal: median) window, G"
set ylabel "wins per window, S"
set key top left
theory = published."/open-attempts-theory.tsv"
plot theory using 1:2 with lines linetype 1 title "constant, G/(1+G)", \
  theory using 1:3 with lines linetype 2 title "exponential", \
  theory using 1:4 with lines linetype 3 title "lognormal σ=0.14", \
  theory using 1:5 with lines linetype 4 title "lognormal σ=0.62", \
  data using (column("batches.rate_per_s")):(pick("constant", "")) with points linetype 1 title "simulated", \
  data using (column("batches.rate_per_s")):(pick("exponential", "")) with points linetype 2 notitle, \
  data using (column("batches.rate_per_s")):(pick("lognormal", "0.14")) with points linetype 3 notitle, \
  data using (column("batches.rate_per_s")):(pick("lognormal", "0.62")) with points linetype 4 notitle
set ylabel "share of attempts that win, S/G"
set key top right
plot [0.4:65][0:1] theory using 1:($2/$1) with lines linetype 1 title "constant", \
  theory using 1:($3/$1) with lines linetype 2 title "exponential", \
  exp(-x) with lines linecolor rgb "#888888" dashtype 3 title "e^{-G}: counts losers as rivals, wrong" enhanced, \
  data using (column("batches.rate_per_s")):(pick("constant", "")/column("batches.rate_per_s")) with points linetype 1 notitle, \
  data using (column("batches.rate_per_s")):(pick("exponential", "")/column("batches.rate_per_s")) with points linetype 2 notitle
unset multiplot
