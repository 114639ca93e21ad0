/* main.c - the benchmark program: all benchmarks, or the one named on the command line. */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCHES_MAX 64
#define ROUNDS 3
#define CONTENDERS_MAX 16

static struct {
    const char *name, *about;
    void (*run)(void);
} benches[BENCHES_MAX];
static int bench_count;
static volatile uint64_t kept;

void ls_bench_register(const char *name, const char *about, void (*run)(void))
{
    if (bench_count == BENCHES_MAX) return;
    benches[bench_count].name = name;
    benches[bench_count].about = about;
    benches[bench_count++].run = run;
}

double ls_bench_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void ls_bench_keep(uint64_t value)
{
    kept ^= value;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void ls_bench_rates(const ls_bench_work *works, void *const *states, uint32_t count, double *rates)
{
    double rate[CONTENDERS_MAX][ROUNDS];
    if (count > CONTENDERS_MAX) count = CONTENDERS_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < count; i++) {
            double begin = ls_bench_now_s(), units = works[i](states == NULL ? NULL : states[i]);
            rate[i][round] = units / (ls_bench_now_s() - begin);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        qsort(rate[i], ROUNDS, sizeof rate[i][0], compare);
        rates[i] = rate[i][ROUNDS / 2];
    }
}

void ls_bench_row(const char *label, double value, const char *unit, const char *compared, double ratio)
{
    printf("  %-44s %12.4g %-12s", label, value, unit);
    if (compared[0] != 0) printf(" %6.2f x %s", ratio, compared);
    printf("\n");
}

static int by_name(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

int main(int argc, char **argv)
{
    int ran = 0;
    qsort(benches, (size_t)bench_count, sizeof benches[0], by_name);
    for (int i = 0; i < bench_count; i++) {
        if (argc > 1 && strcmp(argv[1], benches[i].name) != 0) continue;
        printf("%s: %s\n", benches[i].name, benches[i].about);
        fflush(stdout);
        benches[i].run();
        ran++;
    }
    if (ran == 0) {
        fprintf(stderr, "bench: no benchmark '%s'; there are:", argc > 1 ? argv[1] : "");
        for (int i = 0; i < bench_count; i++) fprintf(stderr, " %s", benches[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    return 0;
}
