/* test_theory.c - whole simulations held to closed forms, exact laws and published figures.
 *
 * Two kinds of comparison. Where the model is deterministic the value must come out to the last digit. Where it is
 * random the exact value must lie in a 99.9 % Student interval over independent replications, and the interval must be
 * narrow, so that a wrong formula or a wrong simulator falls outside. Seeds are fixed: a verdict never changes from run
 * to run.
 *
 * Window below means the time from an attempt's read to its put's effect; in world M0 (tests/scenarios.h) it is the
 * whole latency of the conditional put.
 */
#include "experiments/statistics.h"
#include "manifest/manifest.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONFIDENCE       0.999
#define REPLICATIONS_MAX 200u

static double of(const ls_run_result *result, ls_metric_id metric) { return result->values[metric]; }

/* exact must lie in the interval of the values, and the interval must be no wider than so large a share of exact. */
static void expect_mean(const char *what, const double *values, uint64_t count, double exact, double widest_share)
{
    ls_estimate estimate = ls_estimate_of(values, count, CONFIDENCE);
    bool inside = fabs(estimate.mean - exact) <= estimate.half_width + 1e-9 * fabs(exact);
    bool narrow = estimate.half_width <= widest_share * fabs(exact);
    if (!inside || !narrow) {
        fprintf(stderr, "\n    %s: exact %.6g, simulated %.6g +- %.3g (%.2f %%, allowed %.2f %%)\n", what, exact,
                estimate.mean, estimate.half_width, 100 * estimate.half_width / fabs(exact), 100 * widest_share);
    }
    CU_ASSERT(inside);
    CU_ASSERT(narrow);
}

static void expect_near(const char *what, double value, double wanted, double apart)
{
    bool near = fabs(value - wanted) <= apart;
    if (!near) fprintf(stderr, "\n    %s: %.9g, expected %.9g within %.3g\n", what, value, wanted, apart);
    CU_ASSERT(near);
}

/* --- open Poisson attempts ------------------------------------------------------------------------------------------
 *
 * Attempts start at rate G, try once and are gone. After a win at 0 only attempts that started later can win; those
 * that take effect at t are a thinned Poisson stream of rate G F(t), F the window's distribution. So wins are a renewal
 * process with S = 1 / integral of exp(-G A(t)), A(t) = integral of F to t = E[(t - W)+]. */

static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

/* A(t) for a window of mean 1 (constant, exponential) or median 1 (lognormal of that sigma). */
static double exposure(const ls_law *window, double t)
{
    if (t <= 0) return 0;
    if (window->law == LS_LAW_CONSTANT) return t > 1 ? t - 1 : 0;
    if (window->law == LS_LAW_EXPONENTIAL) return t - 1 + exp(-t);
    double sigma = window->shape, z = log(t) / sigma;
    return t * normal_cdf(z) - exp(0.5 * sigma * sigma) * normal_cdf(z - sigma);
}

static double exact_win_rate(const ls_law *window, double attempts_per_s)
{
    const double step = 1.0 / 1024; /* a node falls on the constant window's kink */
    double sum = 0.5;
    for (uint64_t i = 1;; i++) {
        double value = exp(-attempts_per_s * exposure(window, (double)i * step));
        sum += value;
        if (value < 1e-12) return 1.0 / (step * sum);
    }
}

static const double open_rates[] = {0.5, 1, 2, 5, 10, 50};
enum { OPEN_RATES = 6, OPEN_LAWS = 4, OPEN_REPLICATIONS = 20 };

static ls_law open_law(int index)
{
    switch (index) {
    case 0: return ls_test_constant(1);
    case 1: return ls_test_exponential(1);
    case 2: return ls_test_lognormal(1, 0.14);
    default: return ls_test_lognormal(1, 0.62);
    }
}

/* Computed independently beforehand; the constant row is G / (1 + G). */
static const double open_table[OPEN_LAWS][OPEN_RATES] = {{0.3333, 0.5000, 0.6667, 0.8333, 0.9091, 0.9804},
                                                         {0.3544, 0.5820, 0.9114, 1.5680, 2.3080, 5.4280},
                                                         {0.3328, 0.4999, 0.6703, 0.8537, 0.9550, 1.1210},
                                                         {0.3241, 0.4981, 0.7094, 1.0340, 1.3101, 2.0550}};

static void test_open_exact(void)
{
    for (int law = 0; law < OPEN_LAWS; law++) {
        for (int i = 0; i < OPEN_RATES; i++) {
            ls_law window = open_law(law);
            expect_near("exact law", exact_win_rate(&window, open_rates[i]), open_table[law][i], 6e-4);
        }
    }
    ls_law constant = ls_test_constant(1);
    expect_near("G / (1 + G)", exact_win_rate(&constant, 5), 5.0 / 6, 1e-6);
    ls_law exponential = ls_test_exponential(1); /* no ceiling: about sqrt(2 G / pi) for large G */
    expect_near("sqrt law", exact_win_rate(&exponential, 5000) / sqrt(10000 / acos(-1.0)), 1.0, 0.01);
}

static void open_runs(const ls_law *window, double attempts_per_s, double *wins_per_s, double *lost)
{
    ls_scenario scenario = ls_test_theory_scenario("immediate", *window);
    scenario.batches.law = LS_ARRIVAL_OPEN;
    scenario.batches.rate_per_s = attempts_per_s;
    scenario.producers.count = 2048;
    scenario.warm_up_s = 10;
    scenario.duration_s = 2500 / attempts_per_s;
    for (uint32_t i = 0; i < OPEN_REPLICATIONS; i++) {
        ls_run_result result = ls_test_simulate(&scenario, 1001, i);
        wins_per_s[i] = of(&result, LS_METRIC_WIN_RATE);
        lost[i] = of(&result, LS_METRIC_CONFLICT_SHARE);
    }
}

static void test_open_simulated(void)
{
    for (int law = 0; law < OPEN_LAWS; law++) {
        double before = 0;
        for (int i = 0; i < OPEN_RATES; i++) {
            ls_law window = open_law(law);
            double rate = open_rates[i], exact = exact_win_rate(&window, rate);
            double wins_per_s[OPEN_REPLICATIONS], lost[OPEN_REPLICATIONS];
            char what[64];
            snprintf(what, sizeof what, "open attempts, law %d, G %g", law, rate);
            open_runs(&window, rate, wins_per_s, lost);
            expect_mean(what, wins_per_s, OPEN_REPLICATIONS, exact, 0.03);
            expect_mean(what, lost, OPEN_REPLICATIONS, 1 - exact / rate, 0.03);
            /* More load never wins less. A maximum at G = 1 would be the ALOHA law: a store that lets both rivals lose.
             */
            double mean = ls_estimate_of(wins_per_s, OPEN_REPLICATIONS, CONFIDENCE).mean;
            CU_ASSERT(mean > before);
            before = mean;
        }
    }
}

/* --- tight retriers ----------------------------------------------------------------------------------------------- */

/* Ramanujan's Q(N) = sum over j of the product over i < j of (1 - i / N), the birthday sum. */
static double ramanujan(uint32_t n)
{
    double sum = 0, product = 1;
    for (uint32_t j = 1; j <= n; j++) {
        sum += product;
        product *= 1.0 - (double)j / n;
    }
    return sum;
}

static void test_ramanujan(void)
{
    const double table[] = {1, 1.5, 2.2188, 3.2450, 4.7043, 6.7740, 9.7058, 13.8553, 19.7261};
    for (uint32_t i = 0; i < 9; i++) expect_near("Q", ramanujan(UINT32_C(1) << i), table[i], 5e-5);
}

/* N clients that retry at once, exponential windows: whoever takes effect is anyone, so wins are N / Q(N) a mean window
 * and 1 - 1 / Q(N) of the attempts fail. More rivals never win less. */
static void test_exponential_retriers(void)
{
    enum { RUNS = 10 };
    double before = 0;
    for (uint32_t n = 1; n <= 64; n *= 2) {
        ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_exponential(1));
        scenario.producers.count = n;
        scenario.warm_up_s = 20;
        scenario.duration_s = 7000 / sqrt(n);
        double wins_per_s[RUNS], lost[RUNS];
        for (uint32_t i = 0; i < RUNS; i++) {
            ls_run_result result = ls_test_simulate(&scenario, 1002, i);
            wins_per_s[i] = of(&result, LS_METRIC_WIN_RATE);
            lost[i] = of(&result, LS_METRIC_CONFLICT_SHARE);
        }
        char what[64];
        snprintf(what, sizeof what, "%u exponential retriers", n);
        expect_mean(what, wins_per_s, RUNS, n / ramanujan(n), 0.03);
        if (n == 1)
            expect_near(what, lost[0], 0, 0);
        else
            expect_mean(what, lost, RUNS, 1 - 1 / ramanujan(n), 0.03);
        double mean = ls_estimate_of(wins_per_s, RUNS, CONFIDENCE).mean;
        CU_ASSERT(mean > before);
        before = mean;
    }
}

/* Constant windows: one win a window whatever N, all others lose each time, and the client that wins keeps winning. */
static void test_constant_retriers(void)
{
    const uint32_t counts[] = {1, 2, 7, 64, 256};
    for (uint32_t i = 0; i < 5; i++) {
        double n = counts[i];
        ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_constant(0.25));
        scenario.producers.count = counts[i];
        scenario.producers.start_spread_s = 0.25;
        scenario.warm_up_s = 5.1;
        scenario.duration_s = 100;
        ls_run_result result = ls_test_simulate(&scenario, 1003, 0);
        CU_ASSERT_EQUAL(of(&result, LS_METRIC_WIN_RATE), 4.0);
        CU_ASSERT_EQUAL(of(&result, LS_METRIC_CONFLICT_SHARE), (n - 1) / n);
        expect_near("capture: Jain 1/N", of(&result, LS_METRIC_FAIRNESS), 1 / n, 1e-12);
        CU_ASSERT_EQUAL(of(&result, LS_METRIC_WON_PUT_P50), of(&result, LS_METRIC_WON_PUT_MEAN));
    }
}

/* A little noise in the window restores fairness in the long run: capture is no property of a policy. */
static void test_noise_restores_fairness(void)
{
    ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_lognormal(1, 0.05));
    scenario.producers.count = 16;
    scenario.producers.start_spread_s = 1;
    scenario.warm_up_s = 20;
    scenario.duration_s = 4000;
    ls_run_result result = ls_test_simulate(&scenario, 1004, 0);
    CU_ASSERT(of(&result, LS_METRIC_FAIRNESS) > 0.92); /* with none: 1/16 */
    expect_near("wins", of(&result, LS_METRIC_WIN_RATE), 1.015, 0.01);
}

/* Lognormal windows have no closed form; these values come from an independent discrete-event run of 1 to 3 % error. */
static void test_lognormal_retriers(void)
{
    const struct {
        double sigma, wins_16, lost_16, wins_64;
    } rows[] = {
        {0.14, 1.08, 0.932, 1.16}, {0.29, 1.23, 0.920, 1.43}, {0.62, 1.60, 0.879, 2.16}, {0.90, 1.83, 0.829, 2.77}};
    for (uint32_t i = 0; i < 4; i++) {
        ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_lognormal(1, rows[i].sigma));
        scenario.warm_up_s = 20;
        scenario.duration_s = 3000;
        scenario.producers.count = 16;
        ls_run_result result = ls_test_simulate(&scenario, 1005, i);
        expect_near("wins of 16", of(&result, LS_METRIC_WIN_RATE), rows[i].wins_16, 0.03 * rows[i].wins_16);
        expect_near("lost of 16", of(&result, LS_METRIC_CONFLICT_SHARE), rows[i].lost_16, 0.005);
        scenario.producers.count = 64;
        scenario.duration_s = 1500;
        result = ls_test_simulate(&scenario, 1005, i);
        expect_near("wins of 64", of(&result, LS_METRIC_WIN_RATE), rows[i].wins_64, 0.03 * rows[i].wins_64);
    }
}

/* Little's law in any closed loop without idle time: lost share = 1 - S R / N, R the mean attempt, over every law a
 * preset has and over the whole read path. Only the attempts under way at either edge make a gap. Limits are lifted: a
 * throttled client pauses, which is idle time. */
static void test_identity_of_closed_loops(void)
{
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    CU_ASSERT(count >= 8);
    for (uint32_t i = 0; i < count; i++) {
        ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_constant(0));
        scenario.store = presets[i].config;
        if (strcmp(presets[i].name, "ideal") == 0) scenario.store.conditional_won = ls_test_constant(0.03);
        if (strcmp(presets[i].name, "ideal") == 0) scenario.store.conditional_lost = ls_test_exponential(0.05);
        scenario.store.write_limit_per_s = scenario.store.read_limit_per_s = scenario.store.key_write_limit_per_s = 0;
        scenario.producers.count = 12;
        scenario.producers.start_spread_s = 0.1;
        scenario.warm_up_s = 10;
        scenario.duration_s = 300;
        ls_run_result result = ls_test_simulate(&scenario, 1006, i);
        double lost = of(&result, LS_METRIC_CONFLICT_SHARE), gap = of(&result, LS_METRIC_LITTLE_GAP);
        CU_ASSERT(lost > 0.2 && lost < 11.5 / 12);
        expect_near(presets[i].name, gap, 0, 0.004);
        double again = lost - (1 - of(&result, LS_METRIC_WIN_RATE) * of(&result, LS_METRIC_ATTEMPT_MEAN) / 12);
        expect_near("little_gap", gap, again, 1e-12);
    }
}

/* --- the gap for a wanted share of conflicts ------------------------------------------------------------------------
 *
 * n producers, each waiting a gap g between attempts of constant window w, losers too: attempts come at about n / (g +
 * w), of which p = G w / (1 + G w) lose; so g = (n - 1) w (1 - p) / p. Achieved shares by an independent simulation of
 * that rule. */
static void test_wanted_conflicts(void)
{
    const struct {
        uint32_t producers;
        double wanted, achieved;
    } rows[] = {{64, 0.1, 0.105}, {64, 0.3, 0.301}, {64, 0.5, 0.499}, {256, 0.3, 0.299}, {256, 0.5, 0.498}};
    const double window_s = 0.1;
    for (uint32_t i = 0; i < 5; i++) {
        double gap_s = (rows[i].producers - 1) * window_s * (1 - rows[i].wanted) / rows[i].wanted;
        ls_scenario scenario = ls_test_theory_scenario("dac", ls_test_constant(window_s));
        ls_test_set_parameter(&scenario, "target_share", rows[i].wanted);
        scenario.producers.count = rows[i].producers;
        scenario.upload.backlog_batches = 2;
        scenario.warm_up_s = 5 * gap_s;
        scenario.duration_s = 30000 * gap_s / rows[i].producers; /* 30,000 attempts: a standard error of about 0.003 */
        ls_run_result result = ls_test_simulate(&scenario, 1007, i);
        double lost = of(&result, LS_METRIC_CONFLICT_SHARE);
        expect_near("achieved share", lost, rows[i].achieved, 0.01);
        expect_near("wins are p / w", of(&result, LS_METRIC_WIN_RATE) * window_s, lost, 0.01);
        expect_near("attempts", of(&result, LS_METRIC_ATTEMPT_RATE), rows[i].producers / (gap_s + window_s),
                    0.02 * rows[i].producers / (gap_s + window_s));
    }
}

/* --- N clients start together, one update each -------------------------------------------------------------------- */

static ls_scenario together(const char *policy, uint64_t clients, ls_law trip)
{
    ls_scenario scenario = ls_test_theory_scenario(policy, trip);
    scenario.store.list = trip;
    scenario.store.read_effect_share = 0.5;
    scenario.store.conditional_effect_share = 0.5;
    scenario.batches.law = LS_ARRIVAL_ONCE;
    scenario.producers.count = clients;
    scenario.duration_s = 1000;
    return scenario;
}

/* Equal delays and no back-off: N rounds in which one of those left wins, so N (N + 1) / 2 puts and N round trips. */
static void test_together_exact(void)
{
    for (uint32_t n = 1; n <= 50; n += 7) {
        ls_law trip = ls_test_constant(0.010);
        trip.draws = 2;
        ls_scenario scenario = together("immediate", n, trip);
        ls_run_result result = ls_test_simulate(&scenario, 1008, 0);
        CU_ASSERT_EQUAL(of(&result, LS_METRIC_COMMIT_PUTS), n * (n + 1) / 2);
        expect_near("last", of(&result, LS_METRIC_COMPLETION_LAST), 0.040 * n, 1e-9);
        expect_near("mean", of(&result, LS_METRIC_COMPLETION_MEAN), 0.040 * (n + 1) / 2, 1e-9);
        expect_near("share lost", of(&result, LS_METRIC_CONFLICT_SHARE), 1 - 2.0 / (n + 1), 1e-12);
        CU_ASSERT_EQUAL(of(&result, LS_METRIC_PUBLISHED_SHARE), 1.0);
    }
}

/* Two means over independent runs, ours and the published one (200 runs, rounded), within three standard errors of
 * both. */
static void expect_published(const char *what, const double *values, uint32_t runs, double published)
{
    ls_estimate estimate = ls_estimate_of(values, runs, CONFIDENCE);
    double error = estimate.deviation * sqrt(1.0 / runs + 1.0 / 200);
    expect_near(what, estimate.mean, published, 3 * error + 0.5);
    CU_ASSERT(3 * error < 0.25 * published);
}

/* The set-up of AWS's back-off simulator, https://github.com/aws-samples/aws-arch-backoff-simulator: a folded
 * normal(10, 2) ms a message, two messages a trip, base 5 ms, cap 2 s; figures: results/published/backoff-together.tsv.
 * Who retries at once finishes first and wastes most. */
static void test_together_published(void)
{
    const char *const policies[] = {"immediate", "backoff-none", "backoff-equal", "backoff-full",
                                    "backoff-decorrelated"};
    const uint32_t clients[] = {10, 20, 50};
    const double last_ms[3][5] = {
        {381, 3479, 731, 451, 438}, {612, 14317, 1703, 1023, 825}, {1137, 36677, 4289, 2814, 2231}};
    const double puts[3][5] = {{51, 51, 43, 39, 38}, {154, 150, 109, 100, 100}, {689, 625, 347, 332, 374}};
    const uint32_t runs[] = {200, 200, 100};
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t p = 0; p < 5; p++) {
            ls_law trip = {.law = LS_LAW_FOLDED_NORMAL, .scale_s = 0.010, .shape = 0.002, .tail_shape = 2, .draws = 2};
            ls_scenario scenario = together(policies[p], clients[c], trip);
            if (p > 0) ls_test_set_parameter(&scenario, "base_s", 0.005);
            if (p > 0) ls_test_set_parameter(&scenario, "cap_s", 2);
            double measured_ms[REPLICATIONS_MAX], measured_puts[REPLICATIONS_MAX];
            for (uint32_t i = 0; i < runs[c]; i++) {
                ls_run_result result = ls_test_simulate(&scenario, 1009, i);
                measured_ms[i] = 1000 * of(&result, LS_METRIC_COMPLETION_LAST);
                measured_puts[i] = of(&result, LS_METRIC_COMMIT_PUTS);
            }
            char what[64];
            snprintf(what, sizeof what, "%s, %u clients", policies[p], clients[c]);
            expect_published(what, measured_ms, runs[c], last_ms[c][p]);
            expect_published(what, measured_puts, runs[c], puts[c][p]);
        }
    }
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

/* Wait of M/G/1, service mean 1 (Pollaczek and Khinchine): rho E[s^2] / (2 (1 - rho)); E[s^2] is 2 for an exponential,
 * 1 for a constant, 1 + 1 / k for a gamma of shape k, exp(sigma^2) for a lognormal. */
static void test_queues(void)
{
    enum { RUNS = 20 };
    const struct {
        ls_law service;
        double second_moment;
    } services[] = {{ls_test_exponential(1), 2},
                    {ls_test_constant(1), 1},
                    {{.law = LS_LAW_GAMMA, .scale_s = 1, .shape = 0.5, .tail_shape = 2, .draws = 1}, 3},
                    {ls_test_lognormal(exp(-0.125), 0.5), exp(0.25)}};
    const struct {
        double utilisation;
        uint64_t customers;
        double widest;
    } loads[] = {{0.3, 20000, 0.05}, {0.6, 30000, 0.05}, {0.9, 60000, 0.12}};
    for (uint32_t s = 0; s < 4; s++) {
        for (uint32_t l = 0; l < 3; l++) {
            double rho = loads[l].utilisation;
            ls_scenario scenario = ls_test_scenario("ideal", "immediate");
            scenario.world = LS_WORLD_QUEUE;
            scenario.queue.arrival_rate_per_s = rho;
            scenario.queue.servers = 1;
            scenario.queue.service = services[s].service;
            scenario.queue.customers = loads[l].customers;
            double wait_s[RUNS], busy[RUNS];
            for (uint32_t i = 0; i < RUNS; i++) {
                ls_run_result result = ls_test_simulate(&scenario, 1010, i);
                wait_s[i] = of(&result, LS_METRIC_QUEUE_WAIT_MEAN);
                busy[i] = of(&result, LS_METRIC_QUEUE_UTILISATION);
            }
            char what[64];
            snprintf(what, sizeof what, "queue, law %u, rho %g", s, rho);
            expect_mean(what, wait_s, RUNS, rho * services[s].second_moment / (2 * (1 - rho)), loads[l].widest);
            expect_mean(what, busy, RUNS, rho, 0.02);
        }
    }
}

/* --- one producer and its publish delay -----------------------------------------------------------------------------
 *
 * Batches wait for the next put, which carries all that are pending when it is sent. With puts C apart a batch that
 * comes at any moment waits E[C^2] / 2 E[C] for its put, then the put's duration. */

static ls_scenario lone_producer(const char *policy, double put_s)
{
    ls_scenario scenario = ls_test_theory_scenario(policy, ls_test_constant(put_s));
    scenario.batches.law = LS_ARRIVAL_POISSON;
    scenario.upload.backlog_batches = 1000000;
    scenario.producers.count = 1;
    return scenario;
}

static void test_fixed_interval(void)
{
    const double interval_s = 10;
    for (int jittered = 0; jittered < 2; jittered++) {
        for (int slow = 0; slow < 2; slow++) {
            double put_s = slow ? 2.0 : 0.001, read_s = slow ? 1.0 : 0.0005;
            ls_scenario scenario = lone_producer("fixed", put_s);
            ls_test_set_parameter(&scenario, "interval_s", interval_s);
            ls_test_set_parameter(&scenario, "jitter", jittered ? 0.5 : 0);
            scenario.store.list = ls_test_constant(read_s);
            scenario.batches.rate_per_s = 10;
            scenario.warm_up_s = 50;
            scenario.duration_s = 20000;
            ls_run_result result = ls_test_simulate(&scenario, 1011, 0);
            double cycle_s = interval_s + read_s + put_s, variance = jittered ? interval_s * interval_s / 12 : 0;
            double residual_s = (cycle_s * cycle_s + variance) / (2 * cycle_s);
            expect_near("fixed interval", of(&result, LS_METRIC_DELAY_MEAN), residual_s + put_s, 0.01 * residual_s);
            if (!slow) { /* T / 2, or .5417 T, and the attempt */
                expect_near("residual", residual_s / interval_s, jittered ? 13.0 / 24 : 0.5, 1e-3);
            }
            expect_near("batches a commit", of(&result, LS_METRIC_BATCHES_PER_COMMIT), 10 * cycle_s,
                        0.02 * 10 * cycle_s);
            expect_near("put", of(&result, LS_METRIC_WON_PUT_MEAN), put_s, 1e-9);
            expect_near("attempt", of(&result, LS_METRIC_ATTEMPT_MEAN), read_s + put_s, 1e-9);
            CU_ASSERT_EQUAL(of(&result, LS_METRIC_CONFLICT_SHARE), 0);
        }
    }
}

/* Group commit, one put in flight: what arrives meanwhile rides with the next, so the delay is half a put and a put,
 * and throughput follows the arrivals, not the put. */
static void test_group_commit(void)
{
    const double rates_per_s[] = {50, 500};
    for (int i = 0; i < 2; i++) {
        ls_scenario scenario = lone_producer("immediate", 1);
        scenario.batches.rate_per_s = rates_per_s[i];
        scenario.warm_up_s = 10;
        scenario.duration_s = 60000 / rates_per_s[i];
        ls_run_result result = ls_test_simulate(&scenario, 1012, 0);
        expect_near("delay", of(&result, LS_METRIC_DELAY_MEAN), 1.5, 0.01);
        expect_near("batches a commit", of(&result, LS_METRIC_BATCHES_PER_COMMIT), rates_per_s[i],
                    0.02 * rates_per_s[i]);
        expect_near("published share", of(&result, LS_METRIC_PUBLISHED_SHARE), 1, 0.02);
        expect_near("wins", of(&result, LS_METRIC_WIN_RATE), 1, 1e-12);
        CU_ASSERT(of(&result, LS_METRIC_DELAY_MAX) <= 2.0);
    }
}

/* --- growth of a manifest that is written whole ------------------------------------------------------------------- */

/* V versions of one entry each: sum of header + row + footer + v entries, so b V (V + 1) / 2 bytes and V times the
 * rest. */
static void test_growth_in_bytes(void)
{
    const double versions = 250,
                 fixed_bytes = LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_ROW_BYTES + LS_MANIFEST_FOOTER_BYTES;
    ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_constant(1));
    scenario.producers.count = 1;
    scenario.duration_s = versions - 0.5; /* the last of them is on its way */
    ls_run_result result = ls_test_simulate(&scenario, 1013, 0);
    double published = of(&result, LS_METRIC_PUBLISHED_RATE) * scenario.duration_s;
    double bytes = of(&result, LS_METRIC_MANIFEST_BYTES_PER_BATCH) * published;
    expect_near("published", published, versions - 1, 1e-6);
    CU_ASSERT_EQUAL(of(&result, LS_METRIC_COMMIT_PUTS), versions);
    expect_near("bytes", bytes, versions * fixed_bytes + LS_MANIFEST_ENTRY_BYTES * versions * (versions + 1) / 2, 0.01);
    CU_ASSERT_EQUAL(of(&result, LS_METRIC_MANIFEST_BYTES_END), fixed_bytes + LS_MANIFEST_ENTRY_BYTES * (versions - 1));
    CU_ASSERT_EQUAL(of(&result, LS_METRIC_MANIFEST_ENTRIES_END), versions - 1);
}

/* With a stream of so many seconds a MiB the n-th version is there at n w0 + the time of all bytes before: the commit
 * rate falls as the manifest grows. */
static void test_growth_in_time(void)
{
    const double latency_s = 0.05, s_per_mib = 20, duration_s = 600;
    const double fixed_bytes = LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_ROW_BYTES + LS_MANIFEST_FOOTER_BYTES;
    ls_scenario scenario = ls_test_theory_scenario("immediate", ls_test_constant(latency_s));
    scenario.store.put_s_per_mib = s_per_mib;
    scenario.producers.count = 1;
    scenario.duration_s = duration_s;
    ls_run_result result = ls_test_simulate(&scenario, 1014, 0);
    double at_s = 0;
    uint64_t versions = 0;
    for (;; versions++) {
        at_s += latency_s + s_per_mib * (fixed_bytes + LS_MANIFEST_ENTRY_BYTES * (double)(versions + 1)) / 1048576;
        if (at_s > duration_s) break;
    }
    CU_ASSERT(versions > 700 && versions < 1200); /* 12,000 if it did not grow */
    expect_near("versions", of(&result, LS_METRIC_WIN_RATE) * duration_s, (double)versions, 1e-6);
}

LS_SUITE(theory, {"open attempts: exact law", test_open_exact}, {"open attempts: simulated", test_open_simulated},
         {"Ramanujan's Q", test_ramanujan}, {"exponential retriers", test_exponential_retriers},
         {"constant retriers", test_constant_retriers}, {"noise restores fairness", test_noise_restores_fairness},
         {"lognormal retriers", test_lognormal_retriers}, {"identity of closed loops", test_identity_of_closed_loops},
         {"gap for a wanted share of conflicts", test_wanted_conflicts}, {"together, exact", test_together_exact},
         {"together, published", test_together_published}, {"queues", test_queues},
         {"fixed interval", test_fixed_interval}, {"group commit", test_group_commit},
         {"growth in bytes", test_growth_in_bytes}, {"growth in time", test_growth_in_time})
