/* test_histogram.c - the histogram against sorted samples, at the ends of its range, and merged, and out of
 * memory. */
#include "manifest/random.h"
#include "sim/histogram.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

static int compare_values(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Every value below 128 is its own bucket: all quantiles are exact. */
static void test_small_values_exact(void)
{
    ls_histogram histogram = {.counts = NULL};
    for (int64_t value = 1; value <= 100; value++) CU_ASSERT_EQUAL(ls_histogram_record(&histogram, value), LS_OK);
    for (int64_t percent = 1; percent <= 100; percent++) {
        CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, (double)percent / 100.0), percent);
    }
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.0), 1);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, -3.0), 1);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, (double)NAN), 1);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.001), 1);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.0701), 8);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 7.0), 100);
    CU_ASSERT_EQUAL(ls_histogram_count(&histogram), 100);
    CU_ASSERT_EQUAL(ls_histogram_sum(&histogram), 5050.0);
    CU_ASSERT_EQUAL(ls_histogram_mean(&histogram), 50.5);
    ls_histogram_clear(&histogram);
}

/* Buckets of the octave 128 .. 255 are 2 wide, those of 256 .. 511 4 wide: midpoints by hand. */
static void test_midpoints(void)
{
    ls_histogram histogram = {.counts = NULL};
    static const int64_t values[] = {0, 127, 129, 258, 1000003, INT64_C(1) << 40, INT64_C(1) << 50};
    for (int i = 0; i < 7; i++) ls_histogram_record(&histogram, values[i]);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 1.0 / 7), 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 2.0 / 7), 127);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 3.0 / 7), 128);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 4.0 / 7), 257);
    /* 1000003 = 122 * 8192 + 579, so its bucket is 999424 .. 1007615 */
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 5.0 / 7), 999424 + 4095);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 6.0 / 7), (INT64_C(1) << 40) + (INT64_C(1) << 33) - 1);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 7.0 / 7), INT64_C(1) << 50);
    ls_histogram_clear(&histogram);
}

/* One value many times: the midpoint may lie outside what was seen, the answer may not. */
static void test_clamped(void)
{
    ls_histogram histogram = {.counts = NULL};
    ls_histogram_record_n(&histogram, 1000000, 5);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.5), 1000000);
    ls_histogram_record_n(&histogram, 1000001, 5);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.5), 1000001);
    CU_ASSERT_EQUAL(ls_histogram_sum(&histogram), 10000005.0);
    ls_histogram_clear(&histogram);
}

static void test_ends_of_range(void)
{
    ls_histogram histogram = {.counts = NULL};
    CU_ASSERT_EQUAL(ls_histogram_record(&histogram, -1), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_histogram_record(&histogram, INT64_MIN), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_histogram_count(&histogram), 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.5), 0);
    CU_ASSERT_TRUE(isnan(ls_histogram_mean(&histogram)));
    CU_ASSERT_EQUAL(ls_histogram_record_n(&histogram, 5, 0), LS_OK);
    CU_ASSERT_PTR_NULL(histogram.counts);
    CU_ASSERT_EQUAL(ls_histogram_record_n(&histogram, INT64_MAX, 3), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.5), INT64_MAX);
    CU_ASSERT_EQUAL(ls_histogram_record_n(&histogram, 0, 3), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_minimum(&histogram), 0);
    CU_ASSERT_EQUAL(ls_histogram_maximum(&histogram), INT64_MAX);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.5), 0);
    CU_ASSERT_EQUAL(ls_histogram_sum(&histogram), 3 * 0x1p63);
    CU_ASSERT_EQUAL(ls_histogram_mean(&histogram), 0x1p62);
    /* the last bucket is 127/64 * 2^62 .. 2^63 - 1, 2^56 wide */
    CU_ASSERT_EQUAL(ls_histogram_quantile(&histogram, 0.7), INT64_MAX - (INT64_C(1) << 55));
    CU_ASSERT_EQUAL(ls_histogram_record_n(&histogram, 7, UINT64_MAX - 5), LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(ls_histogram_record_n(&histogram, INT64_MAX, UINT64_MAX - 6), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_count(&histogram), UINT64_MAX);
    CU_ASSERT_DOUBLE_EQUAL(ls_histogram_sum(&histogram) / 0x1p127, 1.0, 1e-15);
    CU_ASSERT_EQUAL(ls_histogram_record(&histogram, 0), LS_ERROR_LIMIT);
    ls_histogram more = {.counts = NULL};
    ls_histogram_record(&more, 1);
    CU_ASSERT_EQUAL(ls_histogram_merge(&histogram, &more), LS_ERROR_LIMIT);
    ls_histogram_clear(&more);
    ls_histogram_clear(&histogram);
}

/* Random samples of several shapes: each quantile within 1/128 of the sorted sample's value of that rank. */
static void test_against_sorted(void)
{
    enum { SAMPLES = 5000 };
    static int64_t values[SAMPLES];
    for (uint64_t shape = 0; shape < 4; shape++) {
        ls_random random = ls_random_open(23, 0, LS_RANDOM_TEST, shape);
        ls_histogram histogram = {.counts = NULL};
        double sum = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double x = shape == 0   ? 1e9 * ls_random_exponential(&random)
                       : shape == 1 ? 5e7 * exp(0.5 * ls_random_normal(&random))
                       : shape == 2 ? exp2(62.0 * ls_random_uniform(&random))
                                    : 300.0 * ls_random_uniform(&random);
            values[i] = (int64_t)x;
            sum += (double)values[i];
            ls_histogram_record(&histogram, values[i]);
        }
        qsort(values, SAMPLES, sizeof values[0], compare_values);
        uint64_t wrong = 0;
        for (uint64_t rank = 1; rank <= SAMPLES; rank++) {
            int64_t reported = ls_histogram_quantile(&histogram, (double)rank / SAMPLES);
            int64_t actual = values[rank - 1];
            if (fabs((double)reported - (double)actual) > (double)actual / 128.0) wrong++;
        }
        CU_ASSERT_EQUAL(wrong, 0);
        CU_ASSERT_DOUBLE_EQUAL(ls_histogram_sum(&histogram) / sum, 1.0, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(ls_histogram_mean(&histogram) / sum * SAMPLES, 1.0, 1e-12);
        CU_ASSERT_EQUAL(ls_histogram_minimum(&histogram), values[0]);
        CU_ASSERT_EQUAL(ls_histogram_maximum(&histogram), values[SAMPLES - 1]);
        ls_histogram_clear(&histogram);
    }
}

static bool same(const ls_histogram *a, const ls_histogram *b)
{
    if (a->count != b->count || a->sum_low != b->sum_low || a->sum_high != b->sum_high || a->minimum != b->minimum ||
        a->maximum != b->maximum) {
        return false;
    }
    uint32_t cursor_a = 0, cursor_b = 0;
    for (;;) {
        ls_histogram_bucket bucket_a, bucket_b;
        bool more_a = ls_histogram_next(a, &cursor_a, &bucket_a), more_b = ls_histogram_next(b, &cursor_b, &bucket_b);
        if (more_a != more_b) return false;
        if (!more_a) return true;
        if (bucket_a.low != bucket_b.low || bucket_a.high != bucket_b.high || bucket_a.count != bucket_b.count)
            return false;
    }
}

static void test_merge_is_record_all(void)
{
    ls_histogram all = {.counts = NULL}, parts[3] = {{.counts = NULL}}, merged = {.counts = NULL};
    ls_random random = ls_random_open(29, 0, LS_RANDOM_TEST, 0);
    static const double scales[3] = {1e3, 1e15, 1e8};
    for (int i = 0; i < 3000; i++) {
        int64_t value = (int64_t)(scales[i % 3] * ls_random_exponential(&random));
        ls_histogram_record(&all, value);
        ls_histogram_record(&parts[i % 3], value);
    }
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(ls_histogram_merge(&merged, &parts[i]), LS_OK);
    CU_ASSERT_TRUE(same(&merged, &all));
    ls_histogram empty = {.counts = NULL};
    CU_ASSERT_EQUAL(ls_histogram_merge(&merged, &empty), LS_OK);
    CU_ASSERT_TRUE(same(&merged, &all));
    CU_ASSERT_EQUAL(ls_histogram_merge(&merged, &merged), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_count(&merged), 6000);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&merged, 0.4), ls_histogram_quantile(&all, 0.4));
    ls_histogram_clear(&merged);
    CU_ASSERT_TRUE(same(&merged, &empty));
    ls_histogram_record(&merged, 9);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&merged, 0.5), 9);
    for (int i = 0; i < 3; i++) ls_histogram_clear(&parts[i]);
    ls_histogram_clear(&merged);
    ls_histogram_clear(&all);
}

/* Buckets tile the range: each begins where the last one ended, and is at most 1/64 of its lower end wide. */
static void test_buckets_tile(void)
{
    ls_histogram histogram = {.counts = NULL};
    int64_t next = 0;
    uint64_t buckets = 0, wrong = 0;
    for (bool more = true; more; buckets++) {
        ls_histogram one = {.counts = NULL};
        ls_histogram_record(&one, next);
        uint32_t cursor = 0;
        ls_histogram_bucket bucket;
        if (!ls_histogram_next(&one, &cursor, &bucket) || bucket.low != next || bucket.count != 1) wrong++;
        if (bucket.high - bucket.low >= (bucket.low < 64 ? 1 : bucket.low / 64)) wrong++;
        if (one.octaves != 1) wrong++;
        ls_histogram_merge(&histogram, &one);
        ls_histogram_clear(&one);
        more = bucket.high != INT64_MAX && buckets < 10000;
        if (more) next = bucket.high + 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(buckets, 128 + 56 * 64);
    CU_ASSERT_EQUAL(ls_histogram_count(&histogram), buckets);
    CU_ASSERT_EQUAL((uint64_t)histogram.octaves * LS_HISTOGRAM_SUB_BUCKETS, buckets);
    ls_histogram_clear(&histogram);
}

static void test_out_of_memory(void)
{
    ls_histogram histogram = {.counts = NULL}, other = {.counts = NULL}, before = {.counts = NULL};
    ls_histogram_record(&histogram, 1000);
    ls_histogram_record(&before, 1000);
    ls_histogram_record(&other, 1000000);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_histogram_record(&histogram, 5), LS_ERROR_MEMORY);
    CU_ASSERT_EQUAL(ls_histogram_merge(&histogram, &other), LS_ERROR_MEMORY);
    CU_ASSERT_TRUE(same(&histogram, &before));
    CU_ASSERT_EQUAL(ls_histogram_record(&histogram, 1023), LS_OK); /* the octave is there already */
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(ls_histogram_merge(&histogram, &other), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_count(&histogram), 3);
    ls_histogram_clear(&histogram);
    ls_histogram_clear(&other);
    ls_histogram_clear(&before);
}

LS_SUITE(histogram, {"small values exact", test_small_values_exact}, {"midpoints by hand", test_midpoints},
         {"clamped to what was seen", test_clamped}, {"ends of the range", test_ends_of_range},
         {"against sorted samples", test_against_sorted}, {"merge is record all", test_merge_is_record_all},
         {"buckets tile the range", test_buckets_tile}, {"out of memory", test_out_of_memory})
