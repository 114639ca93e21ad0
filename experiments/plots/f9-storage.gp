# f9: bytes held over time, a line a retention rule; beside it mean and greatest. The series are not in the results file:
# `lakestream series experiments/f9-storage.json -o <data without .tsv>-series.tsv` makes them.
width = 1400; height = 720
load "style.gp"
if (system(sprintf("test -r '%s' && echo yes", series)) ne "yes") {
  printerr sprintf("%s is missing; make it: lakestream series experiments/f9-storage.json -o %s", series, series)
  exit status 1
}
# the rules in words, in the order of the spec
rule(count, every, last, each) = count == 0 ? "no reclaim" : \
  sprintf("keep the last %d%s%s", last, each > 0 ? sprintf(" and every %d", each) : "", every > 60 ? ", a round every 2 min" : "")
label_of = "awk -F '\\t' '/^#/ {next} !h {for (i=1;i<=NF;i++) c[$i]=i; h=1; next} {k=$c[\"reclaim.count\"]\" \"$c[\"reclaim.every_s\"]\" \"$c[\"reclaim.keep_last\"]\" \"$c[\"reclaim.keep_every\"]} !s[k]++ {print k}' '%s'"
rules = system(sprintf(label_of." | tr '\\n' '|'", data))
n = int(system(sprintf(label_of." | wc -l", data)))
array key_of[n]; array text_of[n]
do for [i=1:n] {
  key_of[i] = system(sprintf("echo '%s' | cut -d '|' -f %d", rules, i))
  text_of[i] = rule(int(word(key_of[i],1)), real(word(key_of[i],2)), int(word(key_of[i],3)), int(word(key_of[i],4)))
}
is_rule(i) = sprintf("%g %g %g %g", column("reclaim.count"), column("reclaim.every_s"), column("reclaim.keep_last"), column("reclaim.keep_every")) eq key_of[i]
set datafile missing NaN
set multiplot layout 1,2 title "Storage held by a training job of 64 ranks that crashes once and goes back (simulated)" font ",17"
set lmargin at screen 0.06; set rmargin at screen 0.62; set bmargin at screen 0.1; set tmargin at screen 0.88
set xlabel "time (s)"
set ylabel "bytes held (GiB)"
set yrange [0:*]
set key top left
plot for [i=1:n] series using (column("time_s")):(is_rule(i) ? column("stored_bytes")/1073741824 : NaN) with lines linetype i title text_of[i]
set lmargin at screen 0.69; set rmargin at screen 0.985
set title "training steps a second, over the same time"
set ylabel "steps a second" offset 1,0
unset key
plot for [i=1:n] series using (column("time_s")):(is_rule(i) ? column("trainer_steps_per_s") : NaN) with lines linetype i
unset multiplot
