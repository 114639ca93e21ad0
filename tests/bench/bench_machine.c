/* bench_machine.c - what the machine can do at all, to read the other numbers by: memory copied a second, and random numbers
 * a second from a stream. */
#include "manifest/random.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct copy {
    char *from;
    char *to;
    size_t bytes;
} copy;

static double copy_gb_per_s(void *context)
{
    copy *work = context;
    size_t rounds = (UINT64_C(1) << 31) / work->bytes;
    double began_s = ls_bench_now_s();
    for (size_t i = 0; i < rounds; i++) {
        work->from[i % work->bytes] = (char)i;
        memcpy(work->to, work->from, work->bytes);
        ls_bench_keep((uint64_t)(unsigned char)work->to[i % work->bytes]);
    }
    return (double)rounds * (double)work->bytes / (ls_bench_now_s() - began_s) * 1e-9;
}

static void bench_memcpy(void)
{
    enum { SIZES = 2 };
    static const size_t sizes[SIZES] = {UINT64_C(1) << 18, UINT64_C(1) << 28};
    static const char *const names[SIZES] = {"256 KiB, in cache", "256 MiB, in memory"};
    static const char *const columns[] = {"GB/s"};
    ls_bench_heading("size", 1, columns);
    for (int i = 0; i < SIZES; i++) {
        copy work = {malloc(sizes[i]), malloc(sizes[i]), sizes[i]};
        if (work.from == NULL || work.to == NULL) {
            fprintf(stderr, "run-bench: out of memory\n");
            exit(1);
        }
        memset(work.from, 1, sizes[i]);
        memset(work.to, 2, sizes[i]);
        double rate;
        ls_bench_contestant contestant = {names[i], copy_gb_per_s, &work};
        ls_bench_interleaved(&contestant, 1, &rate);
        ls_bench_row(names[i], 1, &rate);
        free(work.from);
        free(work.to);
    }
}
LS_BENCH(memcpy, "memory copied, GB/s (bytes copied, not bytes read plus written)", bench_memcpy)

enum { DRAWS = 20000000 };

static double draw_bits(void *context)
{
    ls_random *random = context;
    uint64_t sum = 0;
    double began_s = ls_bench_now_s();
    for (int i = 0; i < DRAWS; i++) sum += ls_random_next(random);
    double elapsed_s = ls_bench_now_s() - began_s;
    ls_bench_keep(sum);
    return DRAWS / elapsed_s * 1e-6;
}

static double draw(ls_random *random, double (*variate)(ls_random *))
{
    double sum = 0;
    double began_s = ls_bench_now_s();
    for (int i = 0; i < DRAWS / 4; i++) sum += variate(random);
    double elapsed_s = ls_bench_now_s() - began_s;
    ls_bench_keep((uint64_t)(sum > 0));
    return DRAWS / 4 / elapsed_s * 1e-6;
}

static double draw_exponential(void *context)
{
    return draw(context, ls_random_exponential);
}

static double draw_normal(void *context)
{
    return draw(context, ls_random_normal);
}

static void bench_random(void)
{
    enum { KINDS = 3 };
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    ls_bench_contestant contestants[KINDS] = {
        {"64 bits", draw_bits, &random}, {"exponential", draw_exponential, &random}, {"normal", draw_normal, &random}};
    static const char *const columns[] = {"M/s"};
    double rates[KINDS];
    ls_bench_interleaved(contestants, KINDS, rates);
    ls_bench_heading("variate", 1, columns);
    for (int i = 0; i < KINDS; i++) ls_bench_row(contestants[i].name, 1, &rates[i]);
}
LS_BENCH(random, "values a second from one stream (manifest/random.h), million/s", bench_random)
