/* test_link.c - processor sharing against hand-computed cases, conservation of bytes, and a slow exact reference. */
#include "manifest/random.h"
#include "sim/link.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

#define SECOND LS_NANOSECONDS_PER_SECOND

static void test_alone(void)
{
    ls_link link;
    uint64_t tag = 0;
    ls_link_open(&link, 1000.0);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), LS_NEVER_NS);
    CU_ASSERT_FALSE(ls_link_finish(&link, 5 * SECOND, &tag));
    CU_ASSERT_EQUAL(ls_link_start(&link, 5 * SECOND, 500, 42), LS_OK);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), 5 * SECOND + SECOND / 2);
    CU_ASSERT_FALSE(ls_link_finish(&link, 5 * SECOND + SECOND / 2 - 1, &tag));
    CU_ASSERT_TRUE(ls_link_finish(&link, 5 * SECOND + SECOND / 2, &tag));
    CU_ASSERT_EQUAL(tag, 42);
    CU_ASSERT_EQUAL(ls_link_active(&link), 0);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), LS_NEVER_NS);
    ls_link_close(&link);
}

/* 1000 B/s; A of 1000 B from 0 s, B of 200 B from 0.5 s. A has 500 B left at 0.5 s; both get 500 B/s; B ends at 0.9 s,
 * A has 300 B left and the link alone: 1.2 s. */
static void test_two_overlap(void)
{
    ls_link link;
    uint64_t tag = 0;
    ls_link_open(&link, 1000.0);
    ls_link_start(&link, 0, 1000, 1);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), SECOND);
    ls_link_start(&link, SECOND / 2, 200, 2);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), 900000000);
    CU_ASSERT_TRUE(ls_link_finish(&link, 900000000, &tag));
    CU_ASSERT_EQUAL(tag, 2);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), 1200000000);
    CU_ASSERT_TRUE(ls_link_finish(&link, 1200000000, &tag));
    CU_ASSERT_EQUAL(tag, 1);
    ls_link_close(&link);
}

/* 300 B/s; 100, 200 and 300 B from 0 s: at 100 B/s each the first ends at 1 s; the second needs 100 B more at 150 B/s:
 * 1 2/3 s; the third 100 B more at 300 B/s: 2 s, when all 600 B have passed. */
static void test_three(void)
{
    ls_link link;
    uint64_t tag = 0;
    ls_link_open(&link, 300.0);
    for (uint64_t i = 3; i >= 1; i--) ls_link_start(&link, 0, 100 * i, i);
    static const int64_t ends[] = {SECOND, 1666666667, 2 * SECOND};
    for (uint64_t i = 0; i < 3; i++) {
        CU_ASSERT(llabs(ls_link_next_ns(&link) - ends[i]) <= 1);
        CU_ASSERT_TRUE(ls_link_finish(&link, ls_link_next_ns(&link), &tag));
        CU_ASSERT_EQUAL(tag, i + 1);
    }
    ls_link_close(&link);
}

/* Equal ends come in order of the starts, all at one time; an empty transfer ends where it starts. */
static void test_ties(void)
{
    ls_link link;
    uint64_t tag = 0;
    ls_link_open(&link, 1000.0);
    for (uint64_t i = 0; i < 20; i++) ls_link_start(&link, 7, 50, i);
    for (uint64_t i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(ls_link_next_ns(&link), 7 + SECOND);
        CU_ASSERT_TRUE(ls_link_finish(&link, 7 + SECOND, &tag));
        CU_ASSERT_EQUAL(tag, i);
    }
    ls_link_start(&link, 8 * SECOND, 0, 99);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), 8 * SECOND);
    CU_ASSERT_TRUE(ls_link_finish(&link, 8 * SECOND, &tag));
    ls_link_close(&link);
}

/* 400 transfers of random sizes at random times against a reference that walks from change to change and serves every
 * transfer step by step: each end agrees to 2 ns a change, and while the link is busy it moves bandwidth bytes a
 * second. */
static void test_random_against_reference(void)
{
    enum { COUNT = 400 };
    static double left[COUNT];
    static int64_t starts[COUNT], ends[COUNT];
    static uint64_t sizes[COUNT];
    ls_random random = ls_random_open(4, 0, LS_RANDOM_TEST, 0);
    const double bandwidth = 1e6;
    double reference_s = 0.0, busy_s = 0.0, total = 0.0;
    ls_link link;
    ls_link_open(&link, bandwidth);
    int64_t now = 0;
    for (int i = 0; i < COUNT; i++) {
        now += (int64_t)ls_random_below(&random, 40 * 1000000);
        starts[i] = now;
        sizes[i] = 1 + ls_random_below(&random, 40000);
        total += (double)sizes[i];
    }
    for (int started = 0, finished = 0; finished < COUNT;) {
        int64_t next = ls_link_next_ns(&link);
        if (started < COUNT && starts[started] < next) {
            ls_link_start(&link, starts[started], sizes[started], (uint64_t)started);
            started++;
        } else {
            uint64_t tag = 0;
            CU_ASSERT_TRUE_FATAL(ls_link_finish(&link, next, &tag));
            ends[tag] = next;
            finished++;
        }
    }
    ls_link_close(&link);
    double worst = 0.0;
    for (int started = 0, finished = 0; finished < COUNT;) {
        int active = 0, first = -1;
        for (int i = 0; i < started; i++) {
            if (left[i] <= 0.0) continue;
            active++;
            if (first < 0 || left[i] < left[first]) first = i;
        }
        double end_s = first < 0 ? INFINITY : reference_s + left[first] * active / bandwidth;
        double start_s = started < COUNT ? ls_seconds(starts[started]) : INFINITY;
        double next_s = fmin(end_s, start_s);
        for (int i = 0; i < started; i++) {
            if (left[i] > 0.0) left[i] -= (next_s - reference_s) * bandwidth / active;
        }
        if (active > 0) busy_s += next_s - reference_s;
        reference_s = next_s;
        if (end_s < start_s) {
            left[first] = 0.0;
            worst = fmax(worst, fabs(ls_seconds(ends[first]) - end_s));
            finished++;
        } else {
            left[started] = (double)sizes[started];
            started++;
        }
    }
    CU_ASSERT(worst < 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(busy_s * bandwidth, total, 1.0);
}

static void test_memory(void)
{
    ls_link link;
    uint64_t tag = 0;
    ls_link_open(&link, 1000.0);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_link_start(&link, 0, 10, 1), LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(ls_link_active(&link), 0);
    for (uint64_t i = 0; i < 4; i++) CU_ASSERT_EQUAL(ls_link_start(&link, 0, 10, i), LS_OK);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_link_start(&link, 0, 10, 9), LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(ls_link_active(&link), 4);
    CU_ASSERT_EQUAL(ls_link_next_ns(&link), 40000000);
    CU_ASSERT_TRUE(ls_link_finish(&link, 40000000, &tag));
    ls_link_close(&link);
    CU_ASSERT_EQUAL(ls_link_active(&link), 0);
}

LS_SUITE(link, {"one transfer alone", test_alone}, {"two overlap", test_two_overlap}, {"three sizes", test_three},
         {"ties", test_ties}, {"random transfers against a reference", test_random_against_reference},
         {"memory failures", test_memory})
