/* bench.h - how benchmark files join run-bench: each registers with LS_BENCH and is picked up by the Makefile.
 *
 *   static void bench_thing(void) { ... ls_bench_row("append", 3, values); }
 *   LS_BENCH(manifest, "appends a second, by size", bench_thing)
 *
 * The machine is shared and noisy: measure every contestant in turn, three times round, and report medians of each
 * (ls_bench_interleaved does so). Numbers go to stdout as a table for people; no number fails anything.
 */
#ifndef LS_BENCH_H
#define LS_BENCH_H

#include <stddef.h>
#include <stdint.h>

/* Called before main by LS_BENCH. The texts are kept by reference. */
void ls_bench_register(const char *name, const char *meaning, void (*function)(void));

#define LS_BENCH(name, meaning, function)                               \
    __attribute__((constructor)) static void ls_bench_add_##name(void) \
    {                                                                   \
        ls_bench_register(#name, meaning, function);                    \
    }

/* CLOCK_MONOTONIC in seconds. */
double ls_bench_now_s(void);

/* One contestant: does its work once and returns the rate or time that it measured. */
typedef struct ls_bench_contestant {
    const char *name;
    double (*measure)(void *context);
    void *context;
} ls_bench_contestant;

enum { LS_BENCH_ROUNDS = 3 };

/* Measures all contestants in turn, LS_BENCH_ROUNDS times round; medians[i] is the median of contestant i. */
void ls_bench_interleaved(const ls_bench_contestant *contestants, size_t count, double *medians);

/* The table printer: a heading, then rows of one label and `count` numbers under the columns' names. */
void ls_bench_heading(const char *label, size_t count, const char *const *columns);
void ls_bench_row(const char *label, size_t count, const double *values);

/* Keeps a result alive, so that the compiler cannot drop the work behind it. */
void ls_bench_keep(uint64_t value);

#endif
