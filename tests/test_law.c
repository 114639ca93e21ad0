/* test_law.c - latency laws against closed forms (means, quantiles, tails), law files good and bad, option tables. */
#include "sim/law.h"
#include "tests/suite.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 100000

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static ls_law_sampler prepared(const ls_law *law)
{
    ls_law_sampler sampler = {0};
    ls_error error = {""};
    ls_result result = ls_law_prepare(law, &sampler, &error);
    if (result != LS_OK) CU_FAIL(error.text);
    return sampler;
}

static double *drawn(const ls_law *law, double *closed_mean)
{
    static double values[SAMPLES];
    ls_law_sampler sampler = prepared(law);
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, law->law);
    for (int i = 0; i < SAMPLES; i++) values[i] = ls_law_draw_s(&sampler, &random);
    CU_ASSERT_EQUAL(random.index, SAMPLES * (law->draws == 0 ? 1 : law->draws));
    *closed_mean = ls_law_mean_s(&sampler);
    ls_law_release(&sampler);
    return values;
}

/* The sample mean against the given exact mean and against ls_law_mean_s, within five standard errors. */
static void expect_mean(const ls_law *law, double mean, double deviation)
{
    double closed;
    const double *values = drawn(law, &closed);
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) sum += values[i];
    CU_ASSERT_DOUBLE_EQUAL(closed, mean, 1e-9 * mean + 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(sum / SAMPLES, mean, 5.0 * deviation / sqrt(SAMPLES) + 1e-9 * mean);
}

/* The share of values below the exact quantile, within five standard errors of its probability. */
static void expect_quantile(const ls_law *law, double probability, double quantile)
{
    double closed;
    const double *values = drawn(law, &closed);
    int below = 0;
    for (int i = 0; i < SAMPLES; i++) below += values[i] <= quantile;
    CU_ASSERT_DOUBLE_EQUAL((double)below / SAMPLES, probability,
                           5.0 * sqrt(probability * (1.0 - probability) / SAMPLES));
}

static void test_constant(void)
{
    ls_law law = {.law = LS_LAW_CONSTANT, .floor_s = 0.5, .scale_s = 0.25, .draws = 1};
    expect_mean(&law, 0.75, 0.0);
    ls_law_sampler sampler = prepared(&law);
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    CU_ASSERT_EQUAL(ls_law_draw_ns(&sampler, &random), INT64_C(750000000));
    ls_law_release(&sampler);
    ls_law nothing = {0};
    sampler = prepared(&nothing);
    CU_ASSERT_EQUAL(ls_law_draw_ns(&sampler, &random), 0);
    CU_ASSERT_EQUAL(random.index, 2);
}

static void test_exponential(void)
{
    ls_law law = {.law = LS_LAW_EXPONENTIAL, .floor_s = 1.0, .scale_s = 2.0, .draws = 1};
    expect_mean(&law, 3.0, 2.0);
    expect_quantile(&law, 0.5, 1.0 + 2.0 * log(2.0));
    expect_quantile(&law, 0.99, 1.0 + 2.0 * log(100.0));
}

static void test_lognormal(void)
{
    double sigma = 0.62;
    ls_law law = {.law = LS_LAW_LOGNORMAL, .floor_s = 0.01, .scale_s = 0.017, .shape = sigma, .draws = 1};
    double mean = 0.017 * exp(sigma * sigma / 2);
    expect_mean(&law, 0.01 + mean, mean * sqrt(exp(sigma * sigma) - 1));
    expect_quantile(&law, 0.5, 0.027);
    expect_quantile(&law, 0.05, 0.01 + 0.017 * exp(-1.6448536269514722 * sigma));
    expect_quantile(&law, 0.99, 0.01 + 0.017 * exp(2.3263478740408408 * sigma));
}

static void test_gamma(void)
{
    ls_law law = {.law = LS_LAW_GAMMA, .floor_s = 0.0, .scale_s = 0.068, .shape = 32.18, .draws = 1};
    expect_mean(&law, 0.068, 0.068 / sqrt(32.18));
    expect_quantile(&law, 0.95, gsl_cdf_gamma_Pinv(0.95, 32.18, 0.068 / 32.18));
    law.shape = 0.4653; /* Azure Blob, 16 threads: a shape below 1 */
    expect_mean(&law, 0.068, 0.068 / sqrt(0.4653));
    expect_quantile(&law, 0.1, gsl_cdf_gamma_Pinv(0.1, 0.4653, 0.068 / 0.4653));
    law.shape = 1.0;
    expect_quantile(&law, 0.9, 0.068 * log(10.0));
}

/* The table itself, value by value: drawn from the same uniform, the inverse by GSL is met to 1e-6. */
static void test_gamma_table(void)
{
    static const double shapes[] = {0.05, 0.4653, 1.0, 1.738, 17.12, 274.5, 1e5};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        ls_law gamma = {.law = LS_LAW_GAMMA, .scale_s = shapes[s], .shape = shapes[s]};
        ls_law uniform = {.law = LS_LAW_UNIFORM, .scale_s = 0.5};
        ls_law_sampler gamma_sampler = prepared(&gamma), uniform_sampler = prepared(&uniform);
        ls_random random = ls_random_open(5, 0, LS_RANDOM_TEST, s);
        double worst = 0;
        for (int i = 0; i < 500; i++) {
            ls_random copy = random;
            double probability = ls_law_draw_s(&uniform_sampler, &copy);
            double value = ls_law_draw_s(&gamma_sampler, &random);
            double back = gsl_cdf_gamma_P(value, shapes[s], 1.0);
            worst = fmax(worst, fabs(back - probability) / fmin(probability, 1.0 - probability));
        }
        CU_ASSERT(worst < 2e-6 * fmax(1.0, sqrt(shapes[s])));
        ls_law_release(&gamma_sampler);
    }
}

static void test_folded_normal(void)
{
    /* AWS's messages, |N(10, 2)| ms: the fold, five deviations away, adds 2 s (phi(5) - 5 Q(5)) to the mean. At 0 it is
     * all: |N(0, 1)| has mean sqrt(2/pi). */
    ls_law far = {.law = LS_LAW_FOLDED_NORMAL, .scale_s = 0.010, .shape = 0.002, .draws = 1};
    expect_mean(&far, 0.010 + 0.004 * (1.4867195147e-6 - 5.0 * 2.8665157188e-7), 0.002);
    expect_quantile(&far, 0.8413447460685429, 0.012);
    ls_law folded = {.law = LS_LAW_FOLDED_NORMAL, .scale_s = 0.0, .shape = 1.0, .draws = 1};
    expect_mean(&folded, sqrt(2.0 / M_PI), sqrt(1.0 - 2.0 / M_PI));
    expect_quantile(&folded, 0.6826894921370859, 1.0);
    ls_law flat = {.law = LS_LAW_FOLDED_NORMAL, .scale_s = 0.5, .shape = 0.0, .draws = 1};
    expect_mean(&flat, 0.5, 0.0);
}

static void test_uniform(void)
{
    ls_law law = {.law = LS_LAW_UNIFORM, .floor_s = 1.0, .scale_s = 2.0, .draws = 1};
    expect_mean(&law, 3.0, 4.0 / sqrt(12.0));
    expect_quantile(&law, 0.25, 2.0);
}

/* Two draws a value: the sum, with twice the mean and twice the variance; P(sum of two exponentials <= x) is Erlang's.
 */
static void test_two_draws(void)
{
    ls_law law = {.law = LS_LAW_EXPONENTIAL, .floor_s = 0.5, .scale_s = 1.0, .draws = 2};
    expect_mean(&law, 3.0, sqrt(2.0));
    expect_quantile(&law, 1.0 - 3.0 * exp(-2.0), 1.0 + 2.0);
}

static void test_tail(void)
{
    ls_law law = {.law = LS_LAW_CONSTANT,
                  .floor_s = 1.0,
                  .scale_s = 1.0,
                  .draws = 1,
                  .tail_share = 0.1,
                  .tail_scale_s = 10.0,
                  .tail_shape = 4.0};
    double second_moment = 0.9 * 4.0 + 0.1 * 4.0 * 100.0 / 2.0, mean = 0.9 * 2.0 + 0.1 * 40.0 / 3.0;
    expect_mean(&law, mean, sqrt(second_moment - mean * mean));
    expect_quantile(&law, 0.9, 2.0);
    expect_quantile(&law, 1.0 - 0.1 * pow(2.0, -4.0), 20.0);
    law.tail_shape = 1.0;
    ls_law_sampler sampler = prepared(&law);
    CU_ASSERT(isinf(ls_law_mean_s(&sampler)));
    law.tail_share = 1.0;
    law.tail_shape = 3.0;
    expect_mean(&law, 15.0, 10.0 * sqrt(3.0 - 2.25));
}

/* A value too long for the clock is cut, not overflowed. */
static void test_cut(void)
{
    ls_law law = {.law = LS_LAW_CONSTANT, .tail_share = 1.0, .tail_scale_s = 1e6, .tail_shape = 0.01, .draws = 64};
    ls_law_sampler sampler = prepared(&law);
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    CU_ASSERT_EQUAL(ls_law_draw_ns(&sampler, &random), LS_LAW_MAX_NS);
}

/* Equal streams give ordered values for ordered laws: what the store's won and lost draws rest on. */
static void test_common_uniform(void)
{
    ls_law low = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.061, .shape = 0.14};
    ls_law high = {.law = LS_LAW_LOGNORMAL, .floor_s = 0.01, .scale_s = 0.061, .shape = 0.14};
    ls_law_sampler low_sampler = prepared(&low), high_sampler = prepared(&high);
    ls_random left = ls_random_open(2, 0, LS_RANDOM_TEST, 0), right = left;
    for (int i = 0; i < 100; i++) {
        double difference = ls_law_draw_s(&high_sampler, &right) - ls_law_draw_s(&low_sampler, &left);
        CU_ASSERT_DOUBLE_EQUAL(difference, 0.01, 1e-12);
    }
}

static ls_law file_law(const char *name, const char *content)
{
    ls_law law = {.law = LS_LAW_EMPIRICAL, .draws = 1};
    snprintf(law.file, sizeof law.file, "%s", ls_test_path(name));
    FILE *file = fopen(law.file, "w");
    if (file == NULL || fputs(content, file) < 0) CU_FAIL("cannot write a law file");
    if (file != NULL) fclose(file);
    return law;
}

/* Quantiles 1, 2, 4 at 0, 1/2, 1: mean (1.5 + 3) / 2; a quarter lies below 1.5, three quarters below 3. */
static void test_empirical(void)
{
    ls_law law = file_law("law-good", "# seconds\n1\n\n 2.0\r\n4e0");
    expect_mean(&law, 2.25, 1.0);
    expect_quantile(&law, 0.25, 1.5);
    expect_quantile(&law, 0.75, 3.0);
    ls_law one = file_law("law-one", "0.125\n");
    expect_mean(&one, 0.125, 0.0);
    law.floor_s = 1.0;
    expect_mean(&law, 3.25, 1.0);
}

static void expect_refusal(const ls_law *law, ls_result expected, const char *part)
{
    ls_law_sampler sampler;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_law_prepare(law, &sampler, &error), expected);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    if (strstr(error.text, part) == NULL) printf("\n  expected '%s' in '%s'", part, error.text);
}

static void test_bad_files(void)
{
    ls_law law = file_law("law-descends", "1\n# a comment counts as a line\n3\n2.5\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 4: values must ascend, but 2.5 follows 3");
    law = file_law("law-garbage", "1\n2 seconds\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 2: expected one number of seconds, found '2 seconds'");
    law = file_law("law-nan", "nan\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 1");
    law = file_law("law-inf", "1\ninf\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 2");
    law = file_law("law-negative", "-1\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 1: a latency cannot be negative");
    law = file_law("law-empty", "");
    expect_refusal(&law, LS_ERROR_CORRUPT, "holds no value");
    law = file_law("law-comments", "# nothing\n\n");
    expect_refusal(&law, LS_ERROR_CORRUPT, "holds no value");
    char text[700];
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    law = file_law("law-long", text);
    expect_refusal(&law, LS_ERROR_CORRUPT, "line 1: longer than");
    snprintf(law.file, sizeof law.file, "%s", ls_test_path("law-that-is-not-there"));
    expect_refusal(&law, LS_ERROR_IO, "cannot be opened");
    law.file[0] = '\0';
    expect_refusal(&law, LS_ERROR_INVALID, "'file'");
}

static void test_bad_settings(void)
{
    ls_law good = {.law = LS_LAW_GAMMA, .scale_s = 1.0, .shape = 2.0};
    ls_law law = good;
    law.shape = 0.0;
    expect_refusal(&law, LS_ERROR_INVALID, "shape");
    law = good;
    law.floor_s = -1.0;
    expect_refusal(&law, LS_ERROR_INVALID, "floor_s is -1");
    law = good;
    law.scale_s = NAN;
    expect_refusal(&law, LS_ERROR_INVALID, "scale_s");
    law = good;
    law.tail_share = 1.5;
    expect_refusal(&law, LS_ERROR_INVALID, "tail_share");
    law = good;
    law.tail_share = 0.5;
    expect_refusal(&law, LS_ERROR_INVALID, "tail_shape");
    law = good;
    law.draws = 65;
    expect_refusal(&law, LS_ERROR_INVALID, "draws");
    law = good;
    law.law = 7;
    expect_refusal(&law, LS_ERROR_INVALID, "empirical");
}

/* Every allocation refused in turn: an error, nothing leaked (the sanitizer run sees it), success in the end. */
static void test_memory(void)
{
    char content[4096];
    size_t length = 0;
    for (int i = 0; i < 600; i++) length += (size_t)snprintf(content + length, sizeof content - length, "%d\n", i);
    ls_law laws[] = {{.law = LS_LAW_GAMMA, .scale_s = 1.0, .shape = 2.0}, file_law("law-many", content)};
    int64_t needed[] = {1, 3};
    for (int l = 0; l < 2; l++) {
        for (int64_t successes = 0; successes <= needed[l]; successes++) {
            ls_law_sampler sampler = {0};
            ls_error error = {""};
            ls_fail_allocations_after(successes);
            ls_result result = ls_law_prepare(&laws[l], &sampler, &error);
            ls_fail_allocations_after(-1);
            CU_ASSERT_EQUAL(result, successes < needed[l] ? LS_ERROR_MEMORY : LS_OK);
            ls_law_release(&sampler);
        }
    }
}

typedef struct settings {
    double real;
    uint64_t integer;
    uint32_t choice;
    bool flag;
    char text[LS_OPTION_TEXT_BYTES];
} settings;

static void test_options(void)
{
    static const ls_option options[] = {
        {"a.real_s", LS_OPTION_REAL, offsetof(settings, real), 2.5, NULL, 0, 10, NULL, "a number"},
        {"a.count", LS_OPTION_INTEGER, offsetof(settings, integer), 9007199254740991.0, NULL, 0, 1e16, NULL, "a count"},
        {"a.law", LS_OPTION_CHOICE, offsetof(settings, choice), LS_LAW_GAMMA, NULL, 0, 0, LS_LAW_CHOICES, "a word"},
        {"a.flag", LS_OPTION_FLAG, offsetof(settings, flag), 1, NULL, 0, 0, NULL, "a flag"},
        {"a.text", LS_OPTION_TEXT, offsetof(settings, text), 0, "word", 0, 0, NULL, "a text"},
    };
    settings values;
    memset(&values, 0xff, sizeof values);
    ls_options_default(options, 5, &values);
    CU_ASSERT_EQUAL(values.real, 2.5);
    CU_ASSERT_EQUAL(values.integer, UINT64_C(9007199254740991));
    CU_ASSERT_EQUAL(values.choice, LS_LAW_GAMMA);
    CU_ASSERT_EQUAL(values.flag, true);
    CU_ASSERT_STRING_EQUAL(values.text, "word");
    CU_ASSERT_EQUAL(values.text[LS_OPTION_TEXT_BYTES - 1], 0);
    char word[64];
    static const char *const names[] = {"constant",      "exponential", "lognormal", "gamma",
                                        "folded-normal", "uniform",     "empirical"};
    for (uint32_t i = 0; i <= LS_LAW_EMPIRICAL; i++) {
        CU_ASSERT_STRING_EQUAL(ls_option_choice(&options[2], i, word), names[i]);
    }
    CU_ASSERT_PTR_NULL(ls_option_choice(&options[2], LS_LAW_EMPIRICAL + 1, word));
    CU_ASSERT_PTR_NULL(ls_option_choice(&options[0], 0, word));
}

/* Published fit of the measured quantiles: shifted lognormal of S3 Standard's GET (Endive: p50 27, sigma .62). */
static void test_sorted_draws_match_sort(void)
{
    ls_law law = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.027, .shape = 0.62, .draws = 1};
    double closed;
    double *values = drawn(&law, &closed);
    qsort(values, SAMPLES, sizeof *values, compare_doubles);
    CU_ASSERT_DOUBLE_EQUAL(values[SAMPLES / 2], 0.0270, 0.0003);
    CU_ASSERT_DOUBLE_EQUAL(values[SAMPLES * 99 / 100], 0.1142, 0.004); /* measured: 113 ms */
}

LS_SUITE(law, {"constant", test_constant}, {"exponential", test_exponential}, {"lognormal", test_lognormal},
         {"gamma", test_gamma}, {"gamma table against GSL", test_gamma_table}, {"folded normal", test_folded_normal},
         {"uniform", test_uniform}, {"sum of two draws", test_two_draws}, {"Pareto tail", test_tail},
         {"long values are cut", test_cut}, {"laws share uniforms", test_common_uniform},
         {"empirical quantiles", test_empirical}, {"bad law files", test_bad_files},
         {"bad settings", test_bad_settings}, {"memory failures", test_memory}, {"option tables", test_options},
         {"S3 GET quantiles", test_sorted_draws_match_sort})
