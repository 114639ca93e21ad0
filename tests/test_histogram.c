/* test_histogram.c - exact small values, quantiles against sorted samples, merging, extremes. */
#include "manifest/random.h"
#include "sim/histogram.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void test_small_values_are_exact(void)
{
    ls_histogram h;
    ls_histogram_init(&h);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.5), 0);
    for (int64_t v = 0; v < 100; v++) CU_ASSERT_EQUAL(ls_histogram_record(&h, v), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.0), 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.01), 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.011), 1); /* nearest rank: ceil(1.1) = 2nd value */
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.5), 49);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.99), 98);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 1.0), 99);
    CU_ASSERT_DOUBLE_EQUAL(ls_histogram_mean(&h), 49.5, 1e-12);
    ls_histogram_clear(&h);
}

static void test_quantiles_within_stated_error(void)
{
    enum { N = 20000 };
    static int64_t values[N];
    ls_random random = ls_random_open(5, 0, LS_RANDOM_TEST, 0);
    ls_histogram h;
    ls_histogram_init(&h);
    for (int i = 0; i < N; i++) {
        values[i] = (int64_t)exp(25.0 * ls_random_uniform(&random)); /* 1 to 7e10 */
        ls_histogram_record(&h, values[i]);
    }
    qsort(values, N, sizeof values[0], compare);
    for (int percent = 1; percent < 100; percent++) {
        int64_t truth = values[(int)ceil(percent / 100.0 * N) - 1];
        int64_t got = ls_histogram_quantile(&h, percent / 100.0);
        CU_ASSERT(fabs((double)(got - truth)) <= LS_HISTOGRAM_RELATIVE_ERROR * (double)truth);
    }
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 1.0), values[N - 1]);
    ls_histogram_clear(&h);
}

static void test_extremes(void)
{
    ls_histogram h;
    ls_histogram_init(&h);
    ls_histogram_record(&h, INT64_MAX);
    ls_histogram_record(&h, -5);
    ls_histogram_record(&h, 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 0.5), 0);
    CU_ASSERT_EQUAL(ls_histogram_quantile(&h, 1.0), INT64_MAX);
    CU_ASSERT(h.bucket_count * sizeof *h.buckets <= 32768);
    ls_histogram_clear(&h);
}

static void test_merge_is_recording_all(void)
{
    ls_histogram all, one, two;
    ls_histogram_init(&all);
    ls_histogram_init(&one);
    ls_histogram_init(&two);
    for (int64_t i = 0; i < 3000; i++) {
        ls_histogram_record(&all, i * i * 37);
        ls_histogram_record(i % 3 == 0 ? &one : &two, i * i * 37);
    }
    CU_ASSERT_EQUAL(ls_histogram_merge(&one, &two), LS_OK);
    CU_ASSERT_EQUAL(ls_histogram_count(&one), 3000);
    for (int k = 0; k <= 20; k++) {
        CU_ASSERT_EQUAL(ls_histogram_quantile(&one, k / 20.0), ls_histogram_quantile(&all, k / 20.0));
    }
    ls_histogram empty;
    ls_histogram_init(&empty);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_histogram_merge(&empty, &all), LS_ERROR_MEMORY);
    CU_ASSERT_EQUAL(ls_histogram_record(&empty, 7), LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(ls_histogram_count(&empty), 0);
    ls_histogram_clear(&all);
    ls_histogram_clear(&one);
    ls_histogram_clear(&two);
}

LS_SUITE(histogram, {"small values are exact", test_small_values_are_exact},
         {"quantiles within the stated error", test_quantiles_within_stated_error}, {"extremes", test_extremes},
         {"merge", test_merge_is_recording_all})
