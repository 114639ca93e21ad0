# calibration: quantiles of the fitted laws against the measured ones; on the diagonal they are equal.
width = 900; height = 850
load "style.gp"
laws = "list head get put conditional_won conditional_lost remove"
pick(i) = strcol("law") eq word(laws, i) ? column("fitted_s") * 1000 : NaN
set title title_text font ",17"
set logscale xy
set format "%g"
set xlabel "measured (ms)"
set ylabel "fitted (ms)"
set key left top
plot for [i=1:words(laws)] data using (column("measured_s") * 1000):(pick(i)) with points linetype i title word(laws, i), \
  x with lines linecolor rgb "#444444" dashtype 3 notitle
