# validation: measured and simulated means of every point over each other, with 95 % intervals over replications.
width = 1400; height = 1100
load "style.gp"
metrics = "published_per_s attempts_per_s conflict_share publish_delay_p50_s publish_delay_p90_s publish_delay_p99_s"
names = "'published batches a second' 'attempts a second' 'conflicts per attempt' 'publish delay p50 (s)' 'publish delay p90 (s)' 'publish delay p99 (s)'"
of(m, name) = strcol("metric") eq word(metrics, m) ? column(name) : NaN
set multiplot layout 2,3 margins 0.05,0.99,0.17,0.90 spacing 0.05,0.24 title title_text font ",17"
set xtics rotate by -50 noenhanced
set offsets 0.5, 0.5, 0, 0
do for [m=1:words(metrics)] {
  set title word(names, m)
  set yrange [0:*]
  if (m == 1) { set key top right } else { unset key }
  plot data using (column("position") - 0.12):(of(m, "real")):(of(m, "real.half_width")):xtic(stringcolumn("point")) \
         with yerrorbars linetype 1 title "real", \
       data using (column("position") + 0.12):(of(m, "simulated")):(of(m, "simulated.half_width")) with yerrorbars linetype 2 title "simulated"
}
unset multiplot
