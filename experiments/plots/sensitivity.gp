# sensitivity: for any experiment's study of assumptions. Left the tornado: how far the metric moves at either end of each range, the
# others nominal; right each assumption's share of the variance over the whole design, with its interval.
rows = int(system(sprintf("awk 'NR > 1' '%s' | wc -l", data)))
width = 1150; height = 170 + 30 * rows
load "style.gp"
nominal = system(sprintf("awk -F '\\t' 'NR == 2 {print $5}' '%s'", data)) + 0
set multiplot layout 1,2 margins 0.25,0.97,95.0/height,1-80.0/height spacing 0.06,0.1 title title_text font ",15" noenhanced
set yrange [rows - 0.5:-0.5]
set ytics nomirror scale 0 noenhanced
set grid noytics
set key inside right bottom vertical samplen 1.5
set xlabel "change of the metric" noenhanced
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linecolor rgb "#444444" linewidth 1
set xtics rotate by 0 autofreq
set title sprintf("One at a time (nominally %.4g)", nominal)
plot data using (column("at_low") / 2):0:(abs(column("at_low")) / 2):(0.32):ytic(1) with boxxyerror fillstyle solid 0.75 noborder linecolor rgb "#0072b2" title "low end", \
  data using (column("at_high") / 2):0:(abs(column("at_high")) / 2):(0.32) with boxxyerror fillstyle solid 0.75 noborder linecolor rgb "#d55e00" title "high end", \
  data using "at_low":0:"at_low.half_width" with xerrorbars pointtype -1 linewidth 1 linecolor rgb "#444444" notitle, \
  data using "at_high":0:"at_high.half_width" with xerrorbars pointtype -1 linewidth 1 linecolor rgb "#444444" notitle
unset arrow 1
unset key
set format y ""
set xrange [0:1]
set xlabel "share of the variance (first order)"
set title "All at once"
plot data using (column("share") / 2):0:(column("share") / 2):(0.32) with boxxyerror fillstyle solid 0.75 noborder linecolor rgb "#009e73" notitle, \
  data using "share":0:"share_low":"share_high" with xerrorbars pointtype -1 linewidth 1 linecolor rgb "#444444" notitle
unset multiplot
