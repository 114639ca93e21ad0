/* test_fit.c - laws fitted to samples whose law is known: parameters come back, distances are those of hand-computed cases. */
#include "experiments/fit.h"
#include "manifest/random.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

static ls_sample draw(const ls_law *law, uint32_t count)
{
    ls_sample sample = {0};
    ls_law_sampler sampler;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_law_prepare(law, &sampler, &error), LS_OK);
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    for (uint32_t i = 0; i < count; i++) CU_ASSERT_EQUAL_FATAL(ls_sample_add(&sample, ls_law_draw_s(&sampler, &random)), LS_OK);
    ls_law_release(&sampler);
    ls_sample_sort(&sample);
    return sample;
}

static ls_sample of(const double *values, uint32_t count)
{
    ls_sample sample = {0};
    for (uint32_t i = 0; i < count; i++) CU_ASSERT_EQUAL_FATAL(ls_sample_add(&sample, values[i]), LS_OK);
    return sample;
}

static ls_law lognormal(double floor_s, double scale_s, double shape)
{
    return (ls_law){.law = LS_LAW_LOGNORMAL, .floor_s = floor_s, .scale_s = scale_s, .shape = shape, .tail_shape = 2, .draws = 1};
}

static void test_sample(void)
{
    static const double values[] = {4, 1, 2, 3};
    ls_sample sample = of(values, 4), empty = {0};
    ls_sample_sort(&sample);
    CU_ASSERT_EQUAL(ls_sample_mean(&sample), 2.5);
    CU_ASSERT_EQUAL(ls_sample_quantile(&sample, 0), 1);
    CU_ASSERT_EQUAL(ls_sample_quantile(&sample, 0.5), 2.5);
    CU_ASSERT_EQUAL(ls_sample_quantile(&sample, 1), 4);
    CU_ASSERT_DOUBLE_EQUAL(ls_sample_quantile(&sample, 0.9), 3.7, 1e-12);
    CU_ASSERT_TRUE(isnan(ls_sample_quantile(&empty, 0.5)));
    CU_ASSERT_TRUE(isnan(ls_sample_mean(&empty)));
    ls_sample_free(&sample);
}

/* Three of four values at 1, one at 3, against a law that has all its weight at 2: the distance is 0.75 just below 2. */
static void test_distance(void)
{
    static const double values[] = {1, 1, 1, 3};
    ls_sample sample = of(values, 4);
    ls_law two = {.law = LS_LAW_CONSTANT, .scale_s = 2, .draws = 1}, uniform = {.law = LS_LAW_UNIFORM, .scale_s = 2, .draws = 1};
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_distance(&sample, &two, NULL, 0), 0.75, 1e-12);
    /* U(0, 4) has 0.25 at 1, where the sample steps from 0 to 0.75, and 0.75 at 3. */
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_distance(&sample, &uniform, NULL, 0), 0.5, 1e-12);
    ls_law one = {.law = LS_LAW_CONSTANT, .scale_s = 1, .draws = 1};
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_distance(&sample, &one, NULL, 0), 0.25, 1e-12);
    ls_sample_free(&sample);
}

static void test_probabilities(void)
{
    static const double table[] = {1, 2, 4};
    ls_law law = lognormal(1, 2, 0.5), empirical = {.law = LS_LAW_EMPIRICAL, .draws = 1};
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_probability(&law, NULL, 0, 3), 0.5, 1e-12);                    /* floor + median */
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_probability(&law, NULL, 0, 1 + 2 * exp(0.5)), 0.841345, 1e-6); /* one sigma up */
    CU_ASSERT_EQUAL(ls_fit_probability(&law, NULL, 0, 0.9), 0);
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_quantile(&law, NULL, 0, 0.5), 3, 1e-9);
    law.tail_share = 0.1;
    law.tail_scale_s = 10;
    law.tail_shape = 2;
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_probability(&law, NULL, 0, 20), 0.9 * ls_fit_probability(&(ls_law){.law = LS_LAW_LOGNORMAL, .floor_s = 1,
                           .scale_s = 2, .shape = 0.5}, NULL, 0, 20) + 0.1 * 0.75, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_probability(&empirical, table, 3, 3), 0.75, 1e-12);
    CU_ASSERT_EQUAL(ls_fit_probability(&empirical, table, 3, 0.5), 0);
    CU_ASSERT_EQUAL(ls_fit_probability(&empirical, table, 3, 4), 1);
    CU_ASSERT_DOUBLE_EQUAL(ls_fit_quantile(&empirical, table, 3, 0.25), 1.5, 1e-9);
}

static void test_lognormal_comes_back(void)
{
    ls_law made = lognormal(0.002, 0.003, 0.4);
    ls_sample sample = draw(&made, 4000);
    ls_fit fit;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_fit_all(&sample, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.law, LS_LAW_LOGNORMAL);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.floor_s, 0.002, 0.0003);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.floor_s + fit.law.scale_s, 0.005, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.shape, 0.4, 0.06);
    CU_ASSERT_TRUE(fit.distance < 1.36 / sqrt(4000)); /* the 5 % bound of Kolmogorov */
    CU_ASSERT_TRUE(fit.gamma_distance > fit.lognormal_distance);
    CU_ASSERT_EQUAL(fit.law.tail_share, 0);
    ls_sample_free(&sample);
}

static void test_gamma_comes_back(void)
{
    ls_law made = {.law = LS_LAW_GAMMA, .scale_s = 0.010, .shape = 1.5, .tail_shape = 2, .draws = 1};
    ls_sample sample = draw(&made, 4000);
    ls_fit fit;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_fit_all(&sample, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.law, LS_LAW_GAMMA);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.floor_s + fit.law.scale_s, 0.010, 0.0005);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.shape, 1.5, 0.2);
    CU_ASSERT_TRUE(fit.distance < 1.36 / sqrt(4000));
    ls_sample_free(&sample);
}

/* Half of the requests take 1 ms, half 5 ms: no single hump fits, so the quantiles themselves are kept. */
static void test_two_humps_become_a_table(void)
{
    ls_law fast = lognormal(0, 0.001, 0.1), slow = lognormal(0, 0.005, 0.1);
    ls_sample sample = draw(&fast, 500), more = draw(&slow, 500);
    ls_fit fit;
    ls_error error = {""};
    for (uint32_t i = 0; i < more.count; i++) CU_ASSERT_EQUAL_FATAL(ls_sample_add(&sample, more.values[i]), LS_OK);
    ls_sample_sort(&sample);
    CU_ASSERT_EQUAL_FATAL(ls_fit_all(&sample, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.law, LS_LAW_EMPIRICAL);
    CU_ASSERT_EQUAL(fit.table_count, LS_FIT_TABLE_MAX);
    CU_ASSERT_EQUAL(fit.table[0], sample.values[0]);
    CU_ASSERT_EQUAL(fit.table[LS_FIT_TABLE_MAX - 1], sample.values[999]);
    CU_ASSERT_TRUE(fit.lognormal_distance > 0.1 && fit.gamma_distance > 0.1);
    CU_ASSERT_TRUE(fit.distance < 0.01);
    CU_ASSERT_NOT_EQUAL(ls_fit_formula(&fit).law, LS_LAW_EMPIRICAL);
    ls_sample_free(&sample);
    ls_sample_free(&more);
}

/* One per cent of Pareto outliers: the body stays what it is, the tail is found. */
static void test_tail(void)
{
    ls_law made = lognormal(0.001, 0.002, 0.2);
    made.tail_share = 0.01;
    made.tail_scale_s = 0.05;
    made.tail_shape = 1.5;
    ls_sample sample = draw(&made, 10000);
    ls_fit fit;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_fit_all(&sample, &fit, &error), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(fit.law.floor_s + fit.law.scale_s, 0.003, 0.0001);
    CU_ASSERT_EQUAL(fit.law.tail_share, 0.01);
    double real = ls_sample_quantile(&sample, 0.999);
    CU_ASSERT_TRUE(ls_fit_quantile(&fit.law, NULL, 0, 0.999) > 0.5 * real && ls_fit_quantile(&fit.law, NULL, 0, 0.999) < 2 * real);
    ls_sample_free(&sample);
}

static void test_samples_that_fit_nothing(void)
{
    static const double values[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    ls_sample equal = of(values, 22), few = of(values, 5), one = of(values, 1), none = {0};
    ls_fit fit;
    ls_law law;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_fit_lognormal(&few, &law, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "5 values"));
    CU_ASSERT_EQUAL(ls_fit_gamma(&equal, &law, &error), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_fit_all(&equal, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.law, LS_LAW_EMPIRICAL);
    CU_ASSERT_TRUE(isnan(fit.lognormal_distance));
    CU_ASSERT_EQUAL(ls_fit_formula(&fit).law, LS_LAW_CONSTANT);
    CU_ASSERT_EQUAL(ls_fit_formula(&fit).scale_s, 3);
    CU_ASSERT_EQUAL(ls_fit_all(&one, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.law, LS_LAW_CONSTANT);
    CU_ASSERT_EQUAL(fit.law.scale_s, 3);
    CU_ASSERT_EQUAL(ls_fit_all(&none, &fit, &error), LS_OK);
    CU_ASSERT_EQUAL(fit.law.scale_s, 0);
    ls_sample_free(&equal);
    ls_sample_free(&few);
    ls_sample_free(&one);
}

static void test_slope(void)
{
    static const double sizes[] = {0, 1, 4, 16}, same[] = {2, 2}, falling[] = {3, 2, 1, 0.5};
    static const double times[] = {0.002, 0.007, 0.022, 0.082}; /* 2 ms and 5 ms a MiB */
    double intercept, slope;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_fit_slope(sizes, times, 4, &intercept, &slope, &error), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(intercept, 0.002, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(slope, 0.005, 1e-12);
    CU_ASSERT_EQUAL(ls_fit_slope(sizes, falling, 4, &intercept, &slope, &error), LS_OK);
    CU_ASSERT_EQUAL(slope, 0);
    CU_ASSERT_EQUAL(ls_fit_slope(same, times, 2, &intercept, &slope, &error), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_fit_slope(sizes, sizes, 4, &intercept, &slope, &error), LS_ERROR_INVALID); /* a time of 0 */
}

LS_SUITE(fit, {"samples", test_sample}, {"distance by hand", test_distance}, {"probabilities and quantiles", test_probabilities},
         {"lognormal comes back", test_lognormal_comes_back}, {"gamma comes back", test_gamma_comes_back},
         {"two humps become a table", test_two_humps_become_a_table}, {"tail", test_tail},
         {"samples that fit nothing", test_samples_that_fit_nothing}, {"slope", test_slope})
