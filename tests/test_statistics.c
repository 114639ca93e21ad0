/* test_statistics.c - output analysis (statistics.h, and the warm-up rule of sim/mser.h) against tables, textbook
 * examples and closed forms. */
#include "experiments/statistics.h"
#include "manifest/random.h"
#include "sim/mser.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

/* Table of Student's t, for example Law (2015), table T.1. */
static void test_quantiles(void)
{
    CU_ASSERT_DOUBLE_EQUAL(ls_student_quantile(0.95, 1), 12.7062, 5e-5);
    CU_ASSERT_DOUBLE_EQUAL(ls_student_quantile(0.95, 9), 2.26216, 5e-6);
    CU_ASSERT_DOUBLE_EQUAL(ls_student_quantile(0.90, 9), 1.83311, 5e-6);
    CU_ASSERT_DOUBLE_EQUAL(ls_student_quantile(0.99, 30), 2.75000, 5e-6);
    CU_ASSERT_DOUBLE_EQUAL(ls_student_quantile(0.95, 1e9), 1.95996, 5e-6);
}

/* Law, "Simulation Modeling and Analysis", example 4.27: ten observations, mean 1.34, S^2/10 = 0.017, 90 % half-width
 * 0.24. */
static void test_estimate(void)
{
    const double values[] = {1.20, 1.50, 1.68, 1.89, 0.95, 1.49, 1.58, 1.55, 0.50, 1.09};
    ls_estimate estimate = ls_estimate_of(values, 10, 0.90);
    CU_ASSERT_EQUAL(estimate.count, 10);
    CU_ASSERT_DOUBLE_EQUAL(estimate.mean, 1.343, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(estimate.deviation * estimate.deviation / 10, 0.017, 5e-4);
    CU_ASSERT_DOUBLE_EQUAL(estimate.half_width, 0.24, 5e-3);
}

static void test_estimate_edges(void)
{
    const double one[] = {5.0};
    CU_ASSERT(isnan(ls_estimate_of(one, 0, 0.95).mean));
    CU_ASSERT_EQUAL(ls_estimate_of(one, 1, 0.95).mean, 5.0);
    CU_ASSERT(isnan(ls_estimate_of(one, 1, 0.95).half_width));
    /* A naive sum of squares loses all digits here: the variance of 1e9 + {4, 7, 13, 16} is 30. */
    const double far[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    CU_ASSERT_DOUBLE_EQUAL(ls_estimate_of(far, 4, 0.95).deviation, sqrt(30.0), 1e-9);
    const double hole[] = {1.0, NAN, 2.0};
    CU_ASSERT(isnan(ls_estimate_of(hole, 3, 0.95).half_width));
}

/* Student's own sleep data ("The probable error of a mean", 1908): paired differences have mean 1.58, t = 4.0621 with
 * nine degrees of freedom, p = 0.002833, 95 % interval 0.70 .. 2.46. */
static void test_paired(void)
{
    const double first[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
    const double second[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
    ls_difference difference = ls_paired_difference(second, first, 10, 0.95);
    CU_ASSERT_DOUBLE_EQUAL(difference.estimate.mean, 1.58, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(difference.p_value, 0.00283289, 1e-8);
    CU_ASSERT_DOUBLE_EQUAL(difference.estimate.mean - difference.estimate.half_width, 0.7001142, 1e-7);
    CU_ASSERT_DOUBLE_EQUAL(difference.estimate.mean + difference.estimate.half_width, 2.4598858, 1e-7);
}

static void test_paired_without_spread(void)
{
    const double a[] = {1, 2, 3}, b[] = {1, 2, 3}, c[] = {0, 1, 2};
    CU_ASSERT_EQUAL(ls_paired_difference(a, b, 3, 0.95).p_value, 1.0);
    CU_ASSERT_EQUAL(ls_paired_difference(a, c, 3, 0.95).p_value, 0.0);
    CU_ASSERT_EQUAL(ls_paired_difference(a, c, 3, 0.95).estimate.mean, 1.0);
    CU_ASSERT(isnan(ls_paired_difference(a, c, 1, 0.95).p_value));
    CU_ASSERT(isnan(ls_paired_difference(a, c, 0, 0.95).estimate.mean));
}

/* By hand: sorted 0.005 0.01 0.03 0.04 times 4 3 2 1 = 0.02 0.03 0.06 0.04, made monotone. */
static void test_holm(void)
{
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005};
    CU_ASSERT_EQUAL(ls_holm_adjust(p, 5), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(p[0], 0.03, 1e-15);
    CU_ASSERT(isnan(p[1]));
    CU_ASSERT_DOUBLE_EQUAL(p[2], 0.06, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(p[3], 0.06, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(p[4], 0.02, 1e-15);
    double large[] = {0.9, 0.8};
    CU_ASSERT_EQUAL(ls_holm_adjust(large, 2), LS_OK);
    CU_ASSERT_EQUAL(large[0], 1.0);
    CU_ASSERT_EQUAL(large[1], 1.0);
}

/* A start-up ramp of 15 observations before a steady alternation: MSER-5 cuts exactly the three ramp means. */
static void test_mser(void)
{
    double series[200];
    for (int i = 0; i < 200; i++) series[i] = i < 15 ? 10.0 * (15 - i) : (i % 2 == 0 ? 1.0 : -1.0);
    CU_ASSERT_EQUAL(ls_mser5(series, 200), 15);
    /* Nothing to cut in a constant series. */
    for (int i = 0; i < 200; i++) series[i] = 3.0;
    CU_ASSERT_EQUAL(ls_mser5(series, 200), 0);
    /* A series that falls to its very end has no steady part: the cut stops at half of it. */
    for (int i = 0; i < 200; i++) series[i] = exp(-0.01 * i) * 100;
    CU_ASSERT_EQUAL(ls_mser5(series, 200), 100);
    CU_ASSERT_EQUAL(ls_mser5(series, 4), 0);
}

/* Against the definition, computed without recurrences. */
static void test_mser_definition(void)
{
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    double series[103], means[20];
    for (int i = 0; i < 103; i++) series[i] = 4.0 * exp(-i / 9.0) + ls_random_normal(&random);
    for (int m = 0; m < 20; m++) {
        means[m] = 0;
        for (int i = 0; i < 5; i++) means[m] += series[5 * m + i] / 5;
    }
    double smallest = INFINITY;
    int best = -1;
    for (int d = 0; d <= 10; d++) {
        double mean = 0, sum = 0;
        for (int m = d; m < 20; m++) mean += means[m] / (20 - d);
        for (int m = d; m < 20; m++) sum += (means[m] - mean) * (means[m] - mean);
        sum /= (double)((20 - d) * (20 - d));
        if (sum < smallest) {
            smallest = sum;
            best = d;
        }
    }
    CU_ASSERT_EQUAL(ls_mser5(series, 103), 5u * (unsigned)best);
}

static void test_batch_means(void)
{
    /* 11 observations in 5 batches of 2: the first is dropped, the means are 2.5 4.5 6.5 8.5 10.5. */
    const double series[] = {100, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    ls_estimate estimate = ls_batch_means(series, 11, 5, 0.95);
    CU_ASSERT_EQUAL(estimate.count, 5);
    CU_ASSERT_DOUBLE_EQUAL(estimate.mean, 6.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(estimate.deviation, sqrt(10.0), 1e-12);
    CU_ASSERT(isnan(ls_batch_means(series, 11, 1, 0.95).half_width));
    CU_ASSERT(isnan(ls_batch_means(series, 4, 5, 0.95).mean));
}

static void test_precise_enough(void)
{
    /* Mean 10, deviation 1, n = 3: half-width 4.30265 / sqrt(3) = 2.48414. */
    const double values[] = {9, 10, 11}, negative[] = {-9, -10, -11}, equal[] = {0, 0}, hole[] = {1, 1, NAN};
    CU_ASSERT_TRUE(ls_precise_enough(values, 3, 0.2485, 0.95));
    CU_ASSERT_FALSE(ls_precise_enough(values, 3, 0.2484, 0.95));
    CU_ASSERT_TRUE(ls_precise_enough(negative, 3, 0.2485, 0.95));
    CU_ASSERT_FALSE(ls_precise_enough(values, 1, 0.9, 0.95));
    CU_ASSERT_TRUE(ls_precise_enough(equal, 2, 0.01, 0.95));
    CU_ASSERT_FALSE(ls_precise_enough(hole, 3, 0.9, 0.95));
}

/* Of 2000 intervals of ten normal values 95 % hold the true mean; the bound is four standard errors. */
static void test_coverage(void)
{
    ls_random random = ls_random_open(5, 0, LS_RANDOM_TEST, 0);
    int covered = 0;
    for (int i = 0; i < 2000; i++) {
        double values[10];
        for (int k = 0; k < 10; k++) values[k] = 3.0 + ls_random_normal(&random);
        ls_estimate estimate = ls_estimate_of(values, 10, 0.95);
        covered += fabs(estimate.mean - 3.0) <= estimate.half_width;
    }
    CU_ASSERT(abs(covered - 1900) < 4 * 10);
}

LS_SUITE(statistics, {"Student's t quantiles", test_quantiles}, {"mean and interval", test_estimate},
         {"mean and interval, edges", test_estimate_edges}, {"paired t test", test_paired},
         {"paired t test without spread", test_paired_without_spread}, {"Holm's adjustment", test_holm},
         {"MSER-5", test_mser}, {"MSER-5 against its definition", test_mser_definition},
         {"batch means", test_batch_means}, {"stopping rule", test_precise_enough},
         {"coverage of the interval", test_coverage})
