/* bench.h - how benchmarks join the one program run-bench: LS_BENCH registers a function that prints its rows.
 *
 * Machines are shared and noisy, so a row is a ratio beside its peer and its limit, all measured in the same run, each three
 * times in turn; the median counts. Nothing here is a test.
 */
#ifndef LS_BENCH_H
#define LS_BENCH_H

#include <stdint.h>

void ls_bench_register(const char *name, const char *about, void (*run)(void));

#define LS_BENCH(name, about, function)                                     \
    __attribute__((constructor)) static void ls_bench_register_##name(void) \
    {                                                                       \
        ls_bench_register(#name, about, function);                          \
    }

/* Seconds by CLOCK_MONOTONIC. */
double ls_bench_now_s(void);

/* One contender: does its work once and returns how many units it did (events, bytes); NULL state is allowed. */
typedef double (*ls_bench_work)(void *state);

/* Runs the contenders in turn, three times each, and writes the median units per second of each into rates. */
void ls_bench_rates(const ls_bench_work *works, void *const *states, uint32_t count, double *rates);

/* Prints one row: label, value with unit, and what it is compared with ("" for nothing). */
void ls_bench_row(const char *label, double value, const char *unit, const char *compared, double ratio);

/* Keeps the optimiser from dropping a result. */
void ls_bench_keep(uint64_t value);

#endif
