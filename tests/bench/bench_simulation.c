/* bench_simulation.c - whole simulations: events a second at f7's largest point, and memory and speed with many producers. */
#include "manifest/producer.h"
#include "manifest/random.h"
#include "sim/scenario.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void scenario(ls_scenario *s, const char *policy, uint64_t producers, uint64_t entries, double seconds)
{
    uint32_t count;
    ls_error error;
    memset(s, 0, sizeof *s);
    const ls_option *options = ls_scenario_options(&count);
    ls_options_default(options, count, s);
    const ls_store_preset *presets = ls_store_presets(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(presets[i].name, "s3-standard") == 0) s->store = presets[i].config;
    }
    if (ls_policy_instantiate(policy, &s->policy, &error) != LS_OK) printf("  %s\n", error.text);
    s->producers.count = producers;
    s->manifest.initial_entries = entries;
    s->upload.backlog_batches = 2000;
    s->warm_up_s = seconds / 4;
    s->duration_s = seconds;
}

static void measure(const char *label, const ls_scenario *s)
{
    static ls_run_result result;
    ls_error error = {""};
    double best = 0, events = 0;
    for (int round = 0; round < 3; round++) {
        double begin = ls_bench_now_s();
        if (ls_simulate(s, 1, 0, &result, &error) != LS_OK) {
            printf("  %s: %s\n", label, error.text);
            return;
        }
        double rate = (double)result.events / (ls_bench_now_s() - begin);
        if (rate > best) best = rate;
        events = (double)result.events;
    }
    char full[96];
    snprintf(full, sizeof full, "%s (%.3g M events)", label, events / 1e6);
    ls_bench_row(full, best / 1e6, "M events/s", "", 0);
}

/* A child of its own, so that its peak memory is its own. */
static void million(uint64_t producers)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static ls_scenario s;
        static ls_run_result result;
        ls_error error = {""};
        scenario(&s, "dac", producers, 0, 1);
        s.upload.instantaneous = true;
        s.upload.backlog_batches = 4;
        s.batches.rate_per_s = 1;
        s.producers.start_spread_s = 1;
        double begin = ls_bench_now_s();
        if (ls_simulate(&s, 1, 0, &result, &error) != LS_OK) {
            printf("  %llu producers: %s\n", (unsigned long long)producers, error.text);
            _exit(1);
        }
        double took = ls_bench_now_s() - begin;
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        char label[64];
        snprintf(label, sizeof label, "%llu producers", (unsigned long long)producers);
        ls_bench_row(label, (double)result.events / took / 1e6, "M events/s", "", 0);
        ls_bench_row("  peak memory", (double)usage.ru_maxrss / 1024, "MiB", "", 0);
        ls_bench_row("  bytes a producer", (double)usage.ru_maxrss * 1024 / (double)producers, "bytes", "sizeof(ls_producer)",
                     (double)usage.ru_maxrss * 1024 / (double)producers / sizeof(ls_producer));
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (child > 0) waitpid(child, &status, 0);
}

static double draw_words(void *state)
{
    ls_random *random = state;
    uint64_t sum = 0;
    for (int i = 0; i < 20000000; i++) sum += ls_random_next(random);
    ls_bench_keep(sum);
    return 2e7;
}

static double draw_exponentials(void *state)
{
    ls_random *random = state;
    double sum = 0;
    for (int i = 0; i < 5000000; i++) sum += ls_random_exponential(random);
    ls_bench_keep((uint64_t)sum);
    return 5e6;
}

static void run(void)
{
    static ls_scenario s;
    scenario(&s, "immediate", 64, 1000000, 4000);
    measure("f7, immediate, 1e6 entries, 64 producers", &s);
    scenario(&s, "immediate", 64, 0, 600);
    measure("f7, immediate, empty manifest", &s);
    scenario(&s, "dac", 64, 1000000, 4000);
    measure("f7, dac, 1e6 entries", &s);
    million(1000);
    million(1000000);
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    const ls_bench_work works[] = {draw_words, draw_exponentials};
    void *const states[] = {&random, &random};
    double rates[2];
    ls_bench_rates(works, states, 2, rates);
    ls_bench_row("random words (Philox2x64-10)", rates[0] / 1e6, "M/s", "", 0);
    ls_bench_row("exponential variates", rates[1] / 1e6, "M/s", "", 0);
}

LS_BENCH(simulation, "whole simulations, one core", run)
