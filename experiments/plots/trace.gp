# trace: a row a life of a producer, over time: its requests as bars, puts by outcome, uploads as thin lines above the row's middle.
# Needs data (row, label, series, begin_s, end_s), output and title_text; `lakestream trace --plot` sets them.
rows = int(system(sprintf("awk -F '\\t' 'NR>1 && $1+1>n {n=$1+1} END {print n+0}' '%s'", data)))
if (rows < 1) { printerr sprintf("%s: nothing to draw: nothing began in that time", data); exit status 1 }
width = 1500
height = 230 + (rows < 4 ? 4 : rows > 60 ? 60 : rows) * 24
load "style.gp"
array word[11] = ["list", "get", "put won", "put lost", "put refused", "put proved", "put unheard", "upload", "paused", "crashed", "fenced"]
array name[11] = ["list", "get", "put: won", "put: lost", "put: refused or aborted", "put: proved won later", \
  "put: fenced, crashed or in flight", "upload", "paused", "crashed", "fenced"]
array colour[7] = [0x56b4e9, 0x0072b2, 0x009e73, 0xd55e00, 0xe69f00, 0xcc79a7, 0x000000]
is(i) = strcol("series") eq word[i]
# The rows that have a label: all, or so many that they can be read.
every_row = rows > 60 ? int(ceil(rows / 60.0)) : 1
labels = sprintf("< awk -F '\\t' -v OFS='\\t' -v k=%d 'NR>1 && !seen[$1]++ && $1 %% k == 0 {print $1, $2}' '%s'", every_row, data)

set title title_text noenhanced font ",16"
set xlabel "simulated time (s)"
set ylabel "producer"
set format x "%g"
set xtics nomirror
set grid xtics noytics
set yrange [rows-0.4:-0.6] noextend
set autoscale xfixmin
set autoscale xfixmax
set style fill solid 1.0 noborder
set bmargin at screen 150.0/height
set key center center at screen 0.5,48.0/height horizontal maxrows 4 samplen 1.5 width 1
plot for [i=1:7] data using (is(i) ? column("begin_s") : NaN):(column("row")):(column("begin_s")):(column("end_s")): \
    (column("row")-0.32):(column("row")+0.32) with boxxyerror fillcolor rgb colour[i] linecolor rgb colour[i] title name[i], \
  data using (is(8) ? column("begin_s") : NaN):(column("row")-0.42):(column("end_s")-column("begin_s")):(0) \
    with vectors nohead linecolor rgb "#888888" linewidth 2 title name[8], \
  data using (is(9) ? column("begin_s") : NaN):(column("row")) with points pointtype 4 pointsize 1.3 linewidth 2 linecolor rgb "#000000" title name[9], \
  data using (is(10) ? column("begin_s") : NaN):(column("row")) with points pointtype 2 pointsize 1.5 linewidth 3 linecolor rgb "#000000" title name[10], \
  data using (is(11) ? column("begin_s") : NaN):(column("row")) with points pointtype 8 pointsize 1.5 linewidth 2 linecolor rgb "#000000" title name[11], \
  labels using (NaN):1:ytic(2) notitle
