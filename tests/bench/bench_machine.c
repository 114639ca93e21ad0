/* bench_machine.c - what the machine can do at all, to read the other numbers by: bytes that memcpy copies a second. */
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct copy {
    char *from;
    char *to;
    size_t bytes;
} copy;

static double copy_bytes(void *state)
{
    copy *work = state;
    size_t rounds = (UINT64_C(1) << 31) / work->bytes;
    for (size_t i = 0; i < rounds; i++) {
        work->from[i] = (char)i;
        memcpy(work->to, work->from, work->bytes);
        ls_bench_keep((uint64_t)(unsigned char)work->to[i]);
    }
    return (double)rounds * (double)work->bytes;
}

static void measure(const char *label, size_t bytes)
{
    copy work = {malloc(bytes), malloc(bytes), bytes};
    if (work.from != NULL && work.to != NULL) {
        memset(work.from, 1, bytes);
        memset(work.to, 2, bytes);
        ls_bench_work contender = copy_bytes;
        void *state = &work;
        double rate;
        ls_bench_rates(&contender, &state, 1, &rate);
        ls_bench_row(label, rate * 1e-9, "GB/s", "", 0);
    } else {
        printf("  %s: out of memory\n", label);
    }
    free(work.from);
    free(work.to);
}

static void run(void)
{
    measure("memcpy, 256 KiB (in cache)", (size_t)1 << 18);
    measure("memcpy, 256 MiB (in memory)", (size_t)1 << 28);
}

LS_BENCH(machine, "bytes copied a second, one core", run)
