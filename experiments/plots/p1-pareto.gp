# p1: the Pareto front of each tuned policy, requests against publish delay, mean and 99th percentile; a line a policy.
width = 1400; height = 720
load "style.gp"
names = system(sprintf("awk -F '\\t' 'NR==1 {for (i=1;i<=NF;i++) if ($i==\"policy\") c=i; next} {split($c,w,\" \")} !seen[w[1]]++ {printf \"%%s%%s\", n++ ? \"|\" : \"\", w[1]}' '%s'", data))
n = items(names)
array name[n]
do for [i=1:n] { name[i] = item(names, i) }
pick(i, metric) = word(strcol("policy"), 1) eq name[i] ? column(metric) : NaN

set multiplot layout 1,2 margins 0.06,0.985,0.25,0.88 spacing 0.07,0.1 \
  title "Policies at their best: 64 producers, 1 batch/s each, manifest of 1,000 entries, S3 Standard (simulated)" font ",17"
set logscale xy
set xrange [0.5:1500]
set format y "%g"
set xlabel "requests for manifests a second, all producers"
unset key
set title "Publish delay, mean (s)"
plot for [i=1:n] data using (pick(i, "commit_requests_per_s")):(pick(i, "publish_delay_mean_s")) with linespoints linetype i
set title "Publish delay, 99th percentile (s)"
plot for [i=1:n] data using (pick(i, "commit_requests_per_s")):(pick(i, "publish_delay_p99_s")) with linespoints linetype i
legend_band = 0.14; legend_rows = 3
load "legend.gp"
unset multiplot
