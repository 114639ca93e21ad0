# t3: mean waiting time in line over the load, simulated marks on the Pollaczek-Khinchine curve of each service law.
width = 900; height = 620
load "style.gp"
law = "queue.service.law"
pick(l) = strcol(law) eq l ? column("queue_wait_mean_s") : NaN
half(l) = strcol(law) eq l ? column("queue_wait_mean_s.half_width") : NaN
set title "One server, mean service 1: waiting time in line, simulated and exact" font ",16"
set xlabel "load ρ = arrival rate x mean service" enhanced
set ylabel "mean wait (service times)"
set logscale y
set xrange [0.2:0.95]
set key top left
# second moments of a service of mean 1: exponential 2, constant 1, gamma shape 1/2: 3, lognormal sigma 1/2: exp(1/4)
exact(r, second) = r * second / (2 * (1 - r))
plot exact(x, 2) with lines linetype 1 title "M/M/1", data using (column("queue.arrival_rate_per_s")):(pick("exponential")):(half("exponential")) with yerrorbars linetype 1 notitle, \
  exact(x, 1) with lines linetype 2 title "M/D/1", data using (column("queue.arrival_rate_per_s")):(pick("constant")):(half("constant")) with yerrorbars linetype 2 notitle, \
  exact(x, 3) with lines linetype 3 title "M/G/1, gamma shape 1/2", data using (column("queue.arrival_rate_per_s")):(pick("gamma")):(half("gamma")) with yerrorbars linetype 3 notitle, \
  exact(x, exp(0.25)) with lines linetype 4 title "M/G/1, lognormal σ=1/2" enhanced, data using (column("queue.arrival_rate_per_s")):(pick("lognormal")):(half("lognormal")) with yerrorbars linetype 4 notitle
