/* test_read_world.c - bytes read by D x C ranks: against the closed form, and the simulator against stores that really
 * hold the batches, byte for byte and request for request (also on LAKESTREAM_STORE, if it is set). */
#include "experiments/run_real.h"
#include "sim/read_world.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TRAILER 80u /* manifest/tgb.c: the format's footer is 24 bytes a slice and these */

static ls_scenario layout(uint64_t data_ranks, uint64_t context_ranks, uint64_t bytes, bool whole)
{
    ls_scenario s = ls_test_scenario("minio", "immediate");
    s.world = LS_WORLD_READ;
    s.batches.data_parallel = data_ranks;
    s.batches.context_parallel = context_ranks;
    s.batches.bytes = bytes;
    s.read.steps = 5;
    s.read.window = 3;
    s.read.whole_objects = whole;
    return s;
}

/* Layouts with equal slices, a remainder, empty slices, no content at all, a single rank. */
static const uint64_t layouts[][3] = {
    {4, 2, 10000}, {1, 1, 5000}, {3, 5, 9973}, {16, 1, 24 * 16 + TRAILER + 7}, {2, 3, 24 * 6 + TRAILER}, {8, 8, 70000}};

static double expected_bytes(const uint64_t *l, bool whole)
{
    uint64_t ranks = l[0] * l[1], footer = 24 * ranks + TRAILER;
    return 5.0 * (whole ? (double)(ranks * l[2]) : (double)(ranks * footer + (l[2] - footer)));
}

static void test_closed_form(void)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const uint64_t *l = layouts[i];
        uint64_t ranks = l[0] * l[1], content = l[2] - 24 * ranks - TRAILER, filled = content < ranks ? content : ranks;
        for (int whole = 0; whole < 2; whole++) {
            ls_scenario s = layout(l[0], l[1], l[2], whole == 1);
            ls_run_result result = ls_test_simulate(&s, 1, 0);
            const double *v = result.values;
            CU_ASSERT_EQUAL(v[LS_METRIC_DATA_BYTES_READ], expected_bytes(l, whole == 1));
            CU_ASSERT_EQUAL(v[LS_METRIC_SLICE_BYTES_READ], 5.0 * (double)content);
            /* A rank whose slice is empty asks for the footer alone. */
            double requests = whole == 1 ? 1 : 1 + (double)filled / (double)ranks;
            CU_ASSERT_DOUBLE_EQUAL(v[LS_METRIC_READ_REQUESTS], requests, 1e-12);
            if (content == 0) CU_ASSERT_TRUE(isnan(v[LS_METRIC_READ_AMPLIFICATION]));
            if (content > 0) {
                CU_ASSERT_DOUBLE_EQUAL(v[LS_METRIC_READ_AMPLIFICATION],
                                       expected_bytes(l, whole == 1) / (5.0 * (double)content), 1e-12);
            }
            CU_ASSERT_TRUE(v[LS_METRIC_FETCH_MEAN] > 0.0005 && v[LS_METRIC_FETCH_MEAN] < 1);
        }
    }
}

/* The slices tile the batch: each begins where the one before ends, the last at the footer. */
static void test_slices_tile(void)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const uint64_t *l = layouts[i];
        ls_scenario s = layout(l[0], l[1], l[2], false);
        ls_driver driver = {0};
        ls_readers *readers = NULL;
        CU_ASSERT_EQUAL_FATAL(ls_readers_new(&s, &driver, &readers, NULL), LS_OK);
        uint64_t at = 0;
        for (uint32_t d = 0; d < l[0]; d++) {
            for (uint32_t c = 0; c < l[1]; c++) {
                ls_slice slice = ls_readers_slice(readers, d, c);
                CU_ASSERT_EQUAL(slice.offset, at);
                at += slice.bytes;
            }
        }
        CU_ASSERT_EQUAL(at, l[2] - 24 * l[0] * l[1] - TRAILER);
        ls_readers_free(readers);
    }
}

static void expect_same(const char *address)
{
    static const ls_metric_id same[] = {LS_METRIC_DATA_BYTES_READ, LS_METRIC_SLICE_BYTES_READ,
                                        LS_METRIC_READ_REQUESTS};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        for (int whole = 0; whole < 2; whole++) {
            ls_scenario s = layout(layouts[i][0], layouts[i][1], layouts[i][2], whole == 1);
            ls_run_result simulated = ls_test_simulate(&s, 1, 0), real;
            ls_error error = {""};
            ls_result result = ls_run_real(&s, address, 1, 0, &real, &error);
            if (result != LS_OK) printf("\n      %s: %s", address, error.text);
            CU_ASSERT_EQUAL_FATAL(result, LS_OK);
            for (size_t k = 0; k < 3; k++) CU_ASSERT_EQUAL(simulated.values[same[k]], real.values[same[k]]);
        }
    }
}

static void test_real_stores(void)
{
    char address[300];
    expect_same("memory");
    snprintf(address, sizeof address, "dir:%s", ls_test_path("read-world"));
    expect_same(address);
    const char *given = getenv("LAKESTREAM_STORE");
    if (given != NULL && given[0] != '\0') expect_same(given);
}

static void test_refusals(void)
{
    ls_run_result result;
    ls_error error = {""};
    ls_scenario s = layout(4, 2, 24 * 8 + TRAILER - 1, false);
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_run_real(&s, "memory", 1, 0, &result, &error), LS_ERROR_INVALID);
    s = layout(60000, 60000, 1000000, false);
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    /* Every allocation fails in turn. */
    s = layout(2, 1, 1000, false);
    bool done = false;
    for (int64_t n = 0; n < 2000 && !done; n++) {
        ls_fail_allocations_after(n);
        ls_result outcome = ls_simulate(&s, 1, 0, &result, &error);
        ls_fail_allocations_after(-1);
        done = outcome == LS_OK;
        CU_ASSERT_TRUE(done || outcome == LS_ERROR_MEMORY);
    }
    CU_ASSERT_TRUE(done);
}

LS_SUITE(read_world, {"closed form", test_closed_form}, {"slices tile the batch", test_slices_tile},
         {"the simulator and real stores move the same bytes", test_real_stores}, {"refusals", test_refusals})
