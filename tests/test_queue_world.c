/* test_queue_world.c - the queueing station on the engine: against Lindley's recursion wait by wait, and against closed
 * forms. */
#include "sim/metrics.h"
#include "sim/queue_world.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

static ls_scenario scenario_of(double rate_per_s, uint64_t servers, ls_law service, uint64_t customers)
{
    ls_scenario scenario;
    memset(&scenario, 0, sizeof scenario);
    scenario.world = LS_WORLD_QUEUE;
    scenario.queue.arrival_rate_per_s = rate_per_s;
    scenario.queue.servers = servers;
    scenario.queue.service = service;
    scenario.queue.customers = customers;
    return scenario;
}

static ls_run_result simulated(const ls_scenario *scenario, uint64_t seed)
{
    ls_run_result result = {.events = 0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate_queue(scenario, seed, 0, &result, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(error.text, "");
    return result;
}

static const ls_law exponential = {.law = LS_LAW_EXPONENTIAL, .scale_s = 1.0};
static const ls_law constant = {.law = LS_LAW_CONSTANT, .scale_s = 1.0};

/* Kiefer and Wolfowitz: a customer waits for the least of the servers' remaining work; with one server this is
 * Lindley's W' = max(0, W + S - A). The same streams must give the same mean, to the rounding of nanoseconds. */
static void test_recursion(void)
{
    for (uint64_t servers = 1; servers <= 3; servers++) {
        ls_scenario scenario = scenario_of(0.8 * (double)servers, servers, exponential, 20000);
        double work[3] = {0, 0, 0}, sum = 0.0;
        ls_random gaps = ls_random_open(5, 0, LS_RANDOM_ARRIVAL, 0),
                  services = ls_random_open(5, 0, LS_RANDOM_SERVICE, 0);
        ls_law_sampler sampler;
        CU_ASSERT_EQUAL_FATAL(ls_law_prepare(&exponential, &sampler, NULL), LS_OK);
        for (uint64_t i = 0; i < 22000; i++) {
            double gap = ls_random_exponential(&gaps) / (0.8 * (double)servers);
            uint64_t least = 0;
            for (uint64_t s = 0; s < servers; s++) {
                work[s] = fmax(0.0, work[s] - gap);
                if (work[s] < work[least]) least = s;
            }
            if (i >= 2000) sum += work[least];
            work[least] += ls_law_draw_s(&sampler, &services);
        }
        CU_ASSERT_DOUBLE_EQUAL(simulated(&scenario, 5).values[LS_METRIC_QUEUE_WAIT_MEAN], sum / 20000, 1e-5);
    }
}

/* Within five standard errors; that of the mean wait of n customers in M/M/1, service mean 1, is about
 * sqrt(r (2 + 5r - 4r^2 + r^3) / (1 - r)^4 / n) (Daley 1968), for r = 0.7 18.3 / sqrt(n); used as a bound for the
 * others, which vary less. */
static void expect_wait(double rate_per_s, uint64_t servers, ls_law service, double wait_s, double utilisation)
{
    const uint64_t customers = 300000;
    ls_scenario scenario = scenario_of(rate_per_s, servers, service, customers);
    ls_run_result result = simulated(&scenario, 11);
    CU_ASSERT_DOUBLE_EQUAL(result.values[LS_METRIC_QUEUE_WAIT_MEAN], wait_s, 5.0 * 18.3 / sqrt((double)customers));
    CU_ASSERT_DOUBLE_EQUAL(result.values[LS_METRIC_QUEUE_UTILISATION], utilisation, 0.01);
    CU_ASSERT(isnan(result.values[LS_METRIC_WIN_RATE]));
    CU_ASSERT(result.events >= 2 * customers);
}

static void test_closed_forms(void)
{
    expect_wait(0.7, 1, exponential, 0.7 / 0.3, 0.7);    /* M/M/1: r / (1 - r) */
    expect_wait(0.7, 1, constant, 0.7 / 2.0 / 0.3, 0.7); /* M/D/1: half of it */
    ls_law lognormal = {
        .law = LS_LAW_LOGNORMAL, .scale_s = exp(-0.125), .shape = 0.5}; /* mean 1, second moment e^.25 */
    expect_wait(0.6, 1, lognormal, 0.6 * exp(0.25) / 2.0 / 0.4, 0.6);   /* Pollaczek-Khinchine */
    /* M/M/3, a = 2.1: Erlang C = (a^3/3! / (1 - r)) / (1 + a + a^2/2 + a^3/3! / (1 - r)); wait = C / (3 - a). */
    double last = 2.1 * 2.1 * 2.1 / 6.0 / 0.3, erlang_c = last / (1.0 + 2.1 + 2.205 + last);
    expect_wait(2.1, 3, exponential, erlang_c / 0.9, 0.7);
}

static void test_repeatable(void)
{
    ls_scenario scenario = scenario_of(0.9, 1, exponential, 5000);
    double first = simulated(&scenario, 3).values[LS_METRIC_QUEUE_WAIT_MEAN];
    CU_ASSERT_EQUAL(simulated(&scenario, 3).values[LS_METRIC_QUEUE_WAIT_MEAN], first);
    CU_ASSERT_NOT_EQUAL(simulated(&scenario, 4).values[LS_METRIC_QUEUE_WAIT_MEAN], first);
    scenario.queue.customers = 1; /* a single customer finds an empty station */
    CU_ASSERT_EQUAL(simulated(&scenario, 3).values[LS_METRIC_QUEUE_WAIT_MEAN], 0.0);
}

static void expect_refusal(const ls_scenario *scenario, ls_result expected, const char *part)
{
    ls_run_result result;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate_queue(scenario, 1, 0, &result, &error), expected);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
}

static void test_bad_settings(void)
{
    ls_scenario scenario = scenario_of(0.5, 1, exponential, 0);
    expect_refusal(&scenario, LS_ERROR_INVALID, "queue: customers");
    scenario = scenario_of(0.5, 0, exponential, 5);
    expect_refusal(&scenario, LS_ERROR_INVALID, "servers");
    scenario = scenario_of(NAN, 1, exponential, 5);
    expect_refusal(&scenario, LS_ERROR_INVALID, "arrival_rate_per_s");
    scenario = scenario_of(0.5, 1, (ls_law){.law = LS_LAW_EXPONENTIAL, .scale_s = -1.0}, 5);
    expect_refusal(&scenario, LS_ERROR_INVALID, "queue.service: scale_s is -1");
}

static void test_memory(void)
{
    /* Twice as much work as one server can do, so that the line grows and its ring with it. */
    ls_scenario scenario = scenario_of(2.0, 1, exponential, 2000);
    ls_result result = LS_ERROR_MEMORY;
    int64_t successes = 0;
    for (; result != LS_OK && successes < 200; successes++) {
        ls_run_result measured;
        ls_error error = {""};
        ls_fail_allocations_after(successes);
        result = ls_simulate_queue(&scenario, 1, 0, &measured, &error);
        ls_fail_allocations_after(-1);
        CU_ASSERT(result == LS_OK || result == LS_ERROR_MEMORY);
    }
    CU_ASSERT(successes > 3 && successes < 200);
}

LS_SUITE(queue_world, {"Lindley's recursion", test_recursion}, {"closed forms", test_closed_forms},
         {"repeatable", test_repeatable}, {"bad settings", test_bad_settings}, {"memory failures", test_memory})
