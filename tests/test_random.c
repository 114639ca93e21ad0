/* test_random.c - Philox against the published known answers, streams, and the variates' moments. */
#include "manifest/random.h"
#include "tests/suite.h"

#include <math.h>

/* Known answers from Random123's kat_vectors, "philox2x64 10". */
static void test_known_answers(void)
{
    uint64_t out[2];
    ls_philox2x64(0, 0, 0, out);
    CU_ASSERT_EQUAL(out[0], UINT64_C(0xca00a0459843d731));
    CU_ASSERT_EQUAL(out[1], UINT64_C(0x66c24222c9a845b5));
    ls_philox2x64(UINT64_MAX, UINT64_MAX, UINT64_MAX, out);
    CU_ASSERT_EQUAL(out[0], UINT64_C(0x65b021d60cd8310f));
    CU_ASSERT_EQUAL(out[1], UINT64_C(0x4d02f3222f86df20));
    ls_philox2x64(UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344), UINT64_C(0xa4093822299f31d0), out);
    CU_ASSERT_EQUAL(out[0], UINT64_C(0x0a5e742c2997341c));
    CU_ASSERT_EQUAL(out[1], UINT64_C(0xb0f883d38000de5d));
}

static void test_streams_differ(void)
{
    ls_random base = ls_random_open(1, 0, LS_RANDOM_TEST, 5);
    ls_random others[] = {ls_random_open(2, 0, LS_RANDOM_TEST, 5), ls_random_open(1, 1, LS_RANDOM_TEST, 5),
                          ls_random_open(1, 0, LS_RANDOM_FAULT, 5), ls_random_open(1, 0, LS_RANDOM_TEST, 6)};
    uint64_t first = ls_random_next(&base);
    for (int i = 0; i < 4; i++) CU_ASSERT_NOT_EQUAL(ls_random_next(&others[i]), first);
    ls_random again = ls_random_open(1, 0, LS_RANDOM_TEST, 5);
    CU_ASSERT_EQUAL(ls_random_next(&again), first);
}

/* Within five standard errors of the exact moments; the seed is fixed, so this cannot flake. */
static void test_moments(void)
{
    const int n = 400000;
    ls_random random = ls_random_open(7, 0, LS_RANDOM_TEST, 0);
    double normal = 0, normal_square = 0, exponential = 0, uniform = 0, beyond_two = 0;
    for (int i = 0; i < n; i++) {
        double z = ls_random_normal(&random);
        normal += z;
        normal_square += z * z;
        beyond_two += fabs(z) > 2.0;
        exponential += ls_random_exponential(&random);
        uniform += ls_random_uniform(&random);
    }
    double root = sqrt((double)n);
    CU_ASSERT_DOUBLE_EQUAL(normal / n, 0.0, 5.0 / root);
    CU_ASSERT_DOUBLE_EQUAL(normal_square / n, 1.0, 5.0 * sqrt(2.0) / root);
    CU_ASSERT_DOUBLE_EQUAL(beyond_two / n, 0.0455003, 5.0 * 0.2084 / root);
    CU_ASSERT_DOUBLE_EQUAL(exponential / n, 1.0, 5.0 / root);
    CU_ASSERT_DOUBLE_EQUAL(uniform / n, 0.5, 5.0 * 0.2887 / root);
}

static void test_below(void)
{
    ls_random random = ls_random_open(3, 0, LS_RANDOM_TEST, 0);
    uint64_t seen[5] = {0};
    for (int i = 0; i < 5000; i++) seen[ls_random_below(&random, 5)]++;
    for (int i = 0; i < 5; i++) CU_ASSERT(seen[i] > 850 && seen[i] < 1150);
    CU_ASSERT_EQUAL(ls_random_below(&random, 0), 0);
    CU_ASSERT_EQUAL(ls_random_below(&random, 1), 0);
}

LS_SUITE(random, {"Philox known answers", test_known_answers}, {"streams differ", test_streams_differ},
         {"moments", test_moments}, {"integers below a bound", test_below})
