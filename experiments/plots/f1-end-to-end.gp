# f1: maps of the speed-up over cost of a sample and cores of a node, a column a pool of producers; below, step times of both sides.
# A dot marks what is consistent with all three published ranges at once; the workloads stand where our assumptions put them.
width = 1500; height = 1180
load "style.gp"
ranges = published."/step-time-ranges.tsv"
places = published."/workloads-assumed.tsv"
bound(what, column) = real(system(sprintf("awk -F '\\t' '$1==\"%s\" {print $%d}' '%s'", what, column, ranges)))
speed_least = bound("speed_up", 2); speed_most = bound("speed_up", 3)
lake_least = bound("lakestream_step", 2); lake_most = bound("lakestream_step", 3)
coloc_least = bound("colocated_step", 2); coloc_most = bound("colocated_step", 3)
samples = 16.0
# mean cost of a sample: decode_factor * (0.99 * 0.1 * exp(0.6^2 / 2) + 0.01 * 1.5 * 0.5) + 0.01, as the spec has it
awk_program = "BEGIN {FS=\"\\t\"} /^#/ {next} !head {for (i=1;i<=NF;i++) c[$i]=i; head=1; next} \
 {k=$c[\"preprocessing.decode_factor\"]\" \"$c[\"colocated.cores_per_rank\"]; t=$c[\"trainer_step_mean_s\"]; r=$c[\"trainer_steps_per_s\"]; \
  if ($c[\"world\"]==\"colocated\") {T[k]=t; R[k]=r} else {p=$c[\"producers.count\"]/8; if (!(p in P)) {P[p]=1; order[++np]=p} \
  if (!(k in K)) {K[k]=1; keys[++nk]=k} L[p\" \"k]=t; LR[p\" \"k]=r}} \
 END {for (j=1;j<=np;j++) {p=order[j]; last=\"\"; for (i=1;i<=nk;i++) {split(keys[i],f,\" \"); if (last!=\"\" && f[2]!=last) print \"\"; last=f[2]; \
  print p, f[1]*(0.99*0.1*exp(0.18)+0.0075)+0.01, f[2], T[keys[i]], L[p\" \"keys[i]], LR[p\" \"keys[i]]/R[keys[i]]} print \"\\n\"}}"
set print $places
print system(sprintf("grep -v '^#' '%s' | tail -n +2", places))
unset print
set print $joined
print system(sprintf("awk '%s' '%s'", awk_program, data))
unset print
pool_list = system(sprintf("awk -F '\\t' '/^#/ {next} !h {for (i=1;i<=NF;i++) c[$i]=i; h=1; next} $c[\"world\"]!=\"colocated\" && !s[$c[\"producers.count\"]]++ {printf \"%%d \", $c[\"producers.count\"]/8}' '%s'", data))
pools = words(pool_list)
pool(i) = word(pool_list, i+1)

set datafile separator whitespace # what `set table` writes
set logscale x
set logscale y 2
array place_of[3] = [0.86, 1.17, 0.86]
set xrange [0.034:1.31]
set yrange [2:32]
set xtics (0.05, 0.1, 0.2, 0.5, 1)
set ytics (2, 4, 8, 16, 32)
set palette defined (0 "#f7f7f7", 0.35 "#c6dbef", 0.6 "#6baed6", 0.85 "#2171b5", 1 "#08306b")
set pm3d map
set label 1 sprintf("orange lines: the published ends; top: speed-up %g and %g; bottom: Lakestream step %g and %g s", \
  speed_least, speed_most, lake_least, lake_most) at screen 0.055,0.075 front
set label 2 sprintf("black dashes: colocated step %g and %g s, the published ends", coloc_least, coloc_most) at screen 0.055,0.048 front
set label 3 "orange dots: consistent with all three published ranges at once; triangles: the named workloads by our assumptions (simulated here with 0.2 s of computing)" \
  at screen 0.055,0.021 front
set multiplot layout 2,pools margins 0.055,0.93,0.15,0.885 spacing 0.05,0.105 \
  title "64 GPUs, Lakestream against loaders beside the trainer (simulated): where the published ranges can hold" font ",17"
unset key
set border 31
consistent(t, l, s) = s >= speed_least && s <= speed_most && l >= lake_least && l <= lake_most && t >= coloc_least && t <= coloc_most
do for [row=0:1] {
  do for [i=0:pools-1] {
    if (row == 0) {
      set title sprintf("Speed-up; producers have %s x the trainer's cores", pool(i))
      set cbrange [1:16]; set logscale cb; set cbtics (1, 2, 4, 8, 16)
      z = 6
    } else {
      set title sprintf("Colocated step (colour, s), Lakestream step (lines); %s x", pool(i))
      set cbrange [0.2:32]; set logscale cb; set cbtics (0.2, 0.5, 1, 2, 5, 10, 30)
      z = 4
    }
    if (i == pools-1) { set colorbox user origin 0.945,(row == 0 ? 0.57 : 0.15) size 0.014,0.315 } else { unset colorbox }
    if (row == 1) { set xlabel "cost of a sample (seconds of a core), 16 samples a rank and step" } else { unset xlabel }
    if (i == 0) { set ylabel "cores for each rank" } else { unset ylabel }
    set contour base
    unset surface
    set cntrparam levels discrete (row == 0 ? speed_least : lake_least), (row == 0 ? speed_most : lake_most)
    set table $lines
    splot $joined index i using 2:3:(row == 0 ? $6 : $5) with lines
    unset table
    set cntrparam levels discrete coloc_least, coloc_most
    set table $frame
    splot $joined index i using 2:3:4 with lines
    unset table
    unset contour
    set surface
    splot $joined index i using 2:3:z with pm3d, \
      $lines using 1:2:(1) with lines linecolor rgb "#d55e00" linewidth 3, \
      $frame using 1:2:(1) with lines linecolor rgb "#000000" linewidth 2 dashtype 2, \
      $joined index i using 2:3:(consistent($4,$5,$6) ? 1 : NaN) with points pointtype 7 pointsize 1.1 linecolor rgb "#e69f00", \
      $places using ($2/samples):3:(1) with points pointtype 9 pointsize 2.2 linecolor rgb "#000000", \
      $places using ($2/samples):($3*place_of[int($0)+1]):(1):1 with labels font ",11" textcolor rgb "#000000"
    unset label
  }
}
unset multiplot
