/* random.h - counter-based random streams: one independent stream per (seed, replication, purpose, entity).
 *
 * The generator is Philox2x64-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11):
 * the n-th value of a stream is a pure function of (key, stream, n), so two policies compared under one seed meet the
 * same arrivals and latencies (common random numbers), one replication alone can be repeated, and the number of
 * processes changes nothing. A stream is 24 bytes of plain data; copying it copies the future.
 */
#ifndef LS_RANDOM_H
#define LS_RANDOM_H

#include <stdint.h>

typedef struct ls_random {
    uint64_t key;    /* from seed and replication */
    uint64_t stream; /* from purpose and entity */
    uint64_t index;  /* values drawn so far */
} ls_random;

/* What a stream is for. Values are part of the reproducibility contract: never renumber, only append. */
typedef enum ls_random_purpose {
    LS_RANDOM_POLICY = 1,
    LS_RANDOM_ARRIVAL = 2,
    LS_RANDOM_BATCH_BYTES = 3,
    LS_RANDOM_READ_LATENCY = 4,
    LS_RANDOM_PUT_LATENCY = 5,
    LS_RANDOM_DATA_LATENCY = 6,
    LS_RANDOM_FAULT = 7,
    LS_RANDOM_START = 8,
    LS_RANDOM_IDENTITY = 9,
    LS_RANDOM_SERVICE = 10,
    LS_RANDOM_TEST = 11,
    LS_RANDOM_CONTENT = 12,
    LS_RANDOM_TRAINER = 13,
    LS_RANDOM_RECLAIMER = 14,
    LS_RANDOM_SAMPLES = 15,
    LS_RANDOM_COLOCATED = 16,
    LS_RANDOM_SEARCH = 17
} ls_random_purpose;

/* The raw block function: counter (c0, c1) and key k to two 64-bit words. Known answers: tests/test_random.c. */
void ls_philox2x64(uint64_t counter0, uint64_t counter1, uint64_t key, uint64_t out[2]);

/* Opens a stream. entity uses its low 56 bits. */
ls_random ls_random_open(uint64_t seed, uint64_t replication, ls_random_purpose purpose, uint64_t entity);

/* Next 64 random bits. */
uint64_t ls_random_next(ls_random *random);

/* Uniform in [0, 1), 53 bits; and uniform in (0, 1], for logarithms. */
double ls_random_uniform(ls_random *random);
double ls_random_uniform_positive(ls_random *random);

/* Uniform integer in 0 .. count-1 (count 0 gives 0); unbiased to 2^-64 by multiplication (Lemire). */
uint64_t ls_random_below(ls_random *random, uint64_t count);

/* Exponential with mean 1, by inversion of one uniform: one draw a value, which common random numbers need. */
double ls_random_exponential(ls_random *random);

/* Standard normal by inversion of one uniform (Acklam's rational approximation refined by one Halley step). */
double ls_random_normal(ls_random *random);

#endif
