# legend.gp - the last part of a multiplot: one legend for all panels, in a band of its own below them.
# Needs n and name[]; legend_band is the band's height as a share of the picture, legend_rows its rows.
if (!exists("legend_band")) legend_band = 0.12
if (!exists("legend_rows")) legend_rows = 3
unset logscale
unset xtics
unset ytics
unset border
unset title
unset xlabel
unset ylabel
unset grid
set lmargin at screen 0.02
set rmargin at screen 0.98
set bmargin at screen 0
set tmargin at screen legend_band
set key center center horizontal maxrows legend_rows samplen 3 spacing 1.2 width 1
plot [0:1][0:1] for [i=1:n] NaN with linespoints linetype i title name[i]
