# r1: a table in colours: rows policies, columns worlds, mean and 99th percentile of the publish delay over the least in that world.
width = 1500; height = 620
load "style.gp"
# regret(metric): lines "column row quotient label", columns in order of worlds; the worlds are told apart by all keys but the policy.
regret(metric) = sprintf("< awk -F '\\t' 'BEGIN {nc=0; nk=0} NR==1 {for (i=1;i<=NF;i++) {if ($i==\"policy\") p=i; if ($i==\"replications\") r=i; if ($i==\"%s\") m=i} next} \
 {w=\"\"; for (i=1;i<r;i++) if (i!=p) w=w \"|\" $i; if (!(w in c)) c[w]=nc++; if (!($p in k)) {k[$p]=nk; n[nk++]=$p} v[c[w],k[$p]]=$m; if (!(c[w] in b) || $m+0<b[c[w]]) b[c[w]]=$m+0} \
 END {for (x=0;x<nc;x++) for (y=0;y<nk;y++) printf \"%%d\\t%%d\\t%%s\\t%%s\\n\", x, y, (x,y) in v ? v[x,y]/b[x] : \"nan\", n[y]}' '%s'", metric, data)
set palette defined (0 "#f7fbff", 0.5 "#9ecae1", 1 "#2171b5")
set cbrange [0:2]
unset colorbox
unset grid
unset key
set border 0
set xrange [-0.5:6.5]
set yrange [10.5:-0.5]
set xtics ("equal\nrates" 0, "rates\n1:100" 1, "bursts\nof 20" 2, "half\nleave" 3, "all join\nanew" 4, "slow\nstore" 5, "light\nload" 6) scale 0
set multiplot layout 1,2 margins 0.24,0.99,0.12,0.85 spacing 0.03,0.1 \
  title "Regret: publish delay over the least of the same world, oracle's where it can run (64 producers, S3 Standard, simulated)" font ",16"
set ytics scale 0 noenhanced
set title "mean"
plot regret("publish_delay_mean_s") using 1:2:(0.5):(0.5):(log10($3)):ytic(4) with boxxyerror fillstyle solid noborder linecolor palette, "" using 1:2:($3 == $3 ? sprintf("%.3g", $3) : "") with labels
set format y ""
unset ytics
set title "99th percentile"
plot regret("publish_delay_p99_s") using 1:2:(0.5):(0.5):(log10($3)) with boxxyerror fillstyle solid noborder linecolor palette, "" using 1:2:($3 == $3 ? sprintf("%.3g", $3) : "") with labels
unset multiplot
