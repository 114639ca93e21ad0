/* main.c - the benchmark runner: all benches, or those named on the command line; `run-bench list` names them. */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCHES_MAX 64

static struct {
    const char *name;
    const char *meaning;
    void (*function)(void);
} benches[BENCHES_MAX];
static size_t bench_count;
static volatile uint64_t kept;

void ls_bench_register(const char *name, const char *meaning, void (*function)(void))
{
    if (bench_count == BENCHES_MAX) {
        fprintf(stderr, "run-bench: more than %d benches\n", BENCHES_MAX);
        exit(1);
    }
    benches[bench_count].name = name;
    benches[bench_count].meaning = meaning;
    benches[bench_count].function = function;
    bench_count++;
}

double ls_bench_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void ls_bench_interleaved(const ls_bench_contestant *contestants, size_t count, double *medians)
{
    double(*measured)[LS_BENCH_ROUNDS] = calloc(count, sizeof *measured);
    if (measured == NULL) {
        fprintf(stderr, "run-bench: out of memory\n");
        exit(1);
    }
    for (size_t round = 0; round < LS_BENCH_ROUNDS; round++) {
        for (size_t i = 0; i < count; i++) measured[i][round] = contestants[i].measure(contestants[i].context);
    }
    for (size_t i = 0; i < count; i++) {
        qsort(measured[i], LS_BENCH_ROUNDS, sizeof measured[i][0], compare_doubles);
        medians[i] = measured[i][LS_BENCH_ROUNDS / 2];
    }
    free(measured);
}

void ls_bench_heading(const char *label, size_t count, const char *const *columns)
{
    printf("  %-24s", label);
    for (size_t i = 0; i < count; i++) printf(" %14s", columns[i]);
    printf("\n");
}

void ls_bench_row(const char *label, size_t count, const double *values)
{
    printf("  %-24s", label);
    for (size_t i = 0; i < count; i++) printf(" %14.2f", values[i]);
    printf("\n");
    fflush(stdout);
}

void ls_bench_keep(uint64_t value)
{
    kept = value;
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

static int run(size_t i)
{
    printf("%s: %s\n", benches[i].name, benches[i].meaning);
    benches[i].function();
    printf("\n");
    return 1;
}

int main(int argc, char **argv)
{
    qsort(benches, bench_count, sizeof benches[0], compare_names);
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < bench_count; i++) printf("%-12s %s\n", benches[i].name, benches[i].meaning);
        return 0;
    }
    if (argc == 1) {
        for (size_t i = 0; i < bench_count; i++) run(i);
        return 0;
    }
    for (int argument = 1; argument < argc; argument++) {
        int found = 0;
        for (size_t i = 0; i < bench_count; i++) {
            if (strcmp(argv[argument], benches[i].name) == 0) found = run(i);
        }
        if (!found) {
            fprintf(stderr, "run-bench: no bench named '%s'; `run-bench list` names them\n", argv[argument]);
            return 2;
        }
    }
    return 0;
}
