/* test_sensitivity.c - the design, the shares of functions whose shares are known, the second experiment made from a
 * spec, and its analysis from planted rows by hand. */
#include "experiments/sensitivity.h"
#include "tests/fixture_spec.h"
#include "tests/planted.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first points of Sobol's sequence in two dimensions. */
static void test_design(void)
{
    static const double expected[] = {0.5, 0.5, 0.75, 0.25, 0.25, 0.75, 0.375, 0.375};
    double unit[8];
    CU_ASSERT_EQUAL(ls_sensitivity_design(2, 4, unit), LS_OK);
    for (int i = 0; i < 8; i++) CU_ASSERT_EQUAL(unit[i], expected[i]);
}

#define POINTS 1024u

/* Shares of a function of three uniform variables over the Sobol design. */
static void shares_of(double (*function)(const double unit[3]), uint32_t points, ls_share shares[3])
{
    double *unit = ls_allocate_array(3 * (size_t)points, sizeof *unit);
    double *x = ls_allocate_array(points, sizeof *x), *y = ls_allocate_array(points, sizeof *y);
    CU_ASSERT_PTR_NOT_NULL_FATAL(unit);
    CU_ASSERT_EQUAL(ls_sensitivity_design(3, points, unit), LS_OK);
    for (uint32_t i = 0; i < points; i++) y[i] = function(unit + 3 * (size_t)i);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < points; i++) x[i] = unit[3 * (size_t)i + k];
        CU_ASSERT_EQUAL(ls_first_order_share(x, y, points, &shares[k]), LS_OK);
        if (isnan(shares[k].share)) continue;
        CU_ASSERT_TRUE(shares[k].low <= shares[k].share + 0.01);
        CU_ASSERT_TRUE(shares[k].high >= shares[k].share - 0.01);
    }
    ls_free(unit);
    ls_free(x);
    ls_free(y);
}

/* Ishigami and Homma (1990), a = 7, b = 0.1: first-order indices 0.3139, 0.4424 and 0. */
static double ishigami(const double unit[3])
{
    double x[3];
    for (int i = 0; i < 3; i++) x[i] = M_PI * (2 * unit[i] - 1);
    return sin(x[0]) + 7 * sin(x[1]) * sin(x[1]) + 0.1 * pow(x[2], 4) * sin(x[0]);
}

static double linear(const double unit[3]) { return 5 + unit[0] - 2 * unit[1] + 3 * unit[2]; }

static double product(const double unit[3]) { return (2 * unit[0] - 1) * (2 * unit[1] - 1); }

static double constant(const double unit[3])
{
    (void)unit;
    return 7.25;
}

static void test_known_shares(void)
{
    ls_share shares[3];
    shares_of(ishigami, POINTS, shares);
    CU_ASSERT_DOUBLE_EQUAL(shares[0].share, 0.3139, 0.015);
    CU_ASSERT_DOUBLE_EQUAL(shares[1].share, 0.4424, 0.015);
    CU_ASSERT_DOUBLE_EQUAL(shares[2].share, 0.0, 0.015);
    shares_of(linear, POINTS, shares);
    CU_ASSERT_DOUBLE_EQUAL(shares[0].share, 1 / 14.0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(shares[1].share, 4 / 14.0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(shares[2].share, 9 / 14.0, 0.01);
    /* Few points: the same order, and the truth within the intervals. */
    shares_of(linear, 48, shares);
    CU_ASSERT_TRUE(shares[0].share < shares[1].share && shares[1].share < shares[2].share);
    CU_ASSERT_TRUE(shares[2].low < 9 / 14.0 && shares[2].high > 9 / 14.0);
    /* All of it is interaction. */
    shares_of(product, 256, shares);
    for (int k = 0; k < 3; k++) CU_ASSERT_TRUE(shares[k].share < 0.01);
    shares_of(constant, 64, shares);
    CU_ASSERT_TRUE(isnan(shares[0].share));
}

static void test_rank_correlation(void)
{
    static const double x[] = {1, 2, 3, 4, 5}, rising[] = {1, 8, 27, 64, 1e9}, ties[] = {2, 1, 1, 5, 5};
    static const double flat[] = {3, 3, 3, 3, 3};
    ls_share c;
    CU_ASSERT_EQUAL(ls_rank_correlation(x, rising, 5, &c), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(c.share, 1, 1e-12);
    /* Ranks 2, 0.5, 0.5, 3.5, 3.5 around 2: sum of products 6; squares 10 and 9. */
    CU_ASSERT_EQUAL(ls_rank_correlation(x, ties, 5, &c), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(c.share, 6.0 / sqrt(90.0), 1e-12);
    /* z = atanh(0.63246) = 0.74536, spread 1.959964 sqrt(1.06 / 2) = 1.42688. */
    CU_ASSERT_DOUBLE_EQUAL(c.low, tanh(0.74536 - 1.42688), 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(c.high, tanh(0.74536 + 1.42688), 1e-4);
    CU_ASSERT_EQUAL(ls_rank_correlation(x, flat, 5, &c), LS_OK);
    CU_ASSERT_TRUE(isnan(c.share));
    CU_ASSERT_EQUAL(ls_rank_correlation(x, rising, 3, &c), LS_OK);
    CU_ASSERT_TRUE(isnan(c.share));
}

#define STUDY(samples, rest)                                                                                           \
    "{\"title\": \"T\", \"seed\": 5, \"base\": {\"policy\": \"dac\", \"store\": \"slow\"}, \"sensitivity\": "          \
    "{\"metric\": "                                                                                                    \
    "\"speed\", \"at\": {\"duration_s\": 10}, \"samples\": " samples ", \"replications\": 2, \"assumptions\": {"       \
    "\"producers.count\": [2, 32, \"log\"], \"duration_s\": [10, 40], \"store.put.scale_s\": [1, 4]" rest "}}}"

static ls_spec *second_of(const ls_spec *spec)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *second = NULL;
    ls_error error = {""};
    char *text = ls_sensitivity_spec_text(spec);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    ls_result result = ls_spec_parse("demo-sensitivity.json", text, strlen(text), &vocabulary, false, &second, &error);
    if (result != LS_OK) printf("\n      %s", error.text);
    CU_ASSERT_EQUAL_FATAL(result, LS_OK);
    ls_free(text);
    return second;
}

static void expect_labels(const ls_spec *spec, uint32_t point, const char *one, const char *two, const char *three)
{
    CU_ASSERT_STRING_EQUAL(spec->points[point].labels[0], one);
    CU_ASSERT_STRING_EQUAL(spec->points[point].labels[1], two);
    CU_ASSERT_STRING_EQUAL(spec->points[point].labels[2], three);
}

static void test_second_experiment(void)
{
    ls_spec *spec = ls_test_spec(STUDY("3", ""));
    ls_spec *second = second_of(spec);
    CU_ASSERT_EQUAL(second->replications.maximum, 2);
    CU_ASSERT_EQUAL(second->seed, 5);
    /* The nominal point; both ends of producers (8), the high one of duration (10, its low end is nominal), both of the
     * store (2); then three of the design. */
    CU_ASSERT_EQUAL_FATAL(second->point_count, 9);
    expect_labels(second, 0, "8", "10", "2");
    expect_labels(second, 1, "2", "10", "2");
    expect_labels(second, 2, "32", "10", "2");
    expect_labels(second, 3, "8", "40", "2");
    expect_labels(second, 4, "8", "10", "1");
    expect_labels(second, 5, "8", "10", "4");
    /* Sobol's (0.5, 0.5, 0.5), (0.75, 0.25, 0.75), (0.25, 0.75, 0.25); whole producers from 2 * 16^u. */
    expect_labels(second, 6, "8", "25", "2.5");
    expect_labels(second, 7, "16", "17.5", "3.25");
    expect_labels(second, 8, "4", "32.5", "1.75");
    /* Everything else is the experiment's own. */
    CU_ASSERT_EQUAL(second->points[1].scenario.store.put_s_per_mib, 4.0);
    CU_ASSERT_STRING_EQUAL(second->points[1].scenario.policy_name, "dac");
    ls_spec_free(second);
    ls_spec_free(spec);
}

/* Whole numbers over a narrow range: points of the design that fall together are made once. */
static void test_narrow_whole_range(void)
{
    ls_spec *spec = ls_test_spec(
        "{\"base\": {\"policy\": \"dac\"}, \"sensitivity\": {\"metric\": \"speed\", \"samples\": 64, \"assumptions\": "
        "{\"producers.count\": [8, 10], \"manifest.initial_entries\": [0, 1]}}}");
    ls_spec *second = second_of(spec);
    /* Nominal (8, 0), ends (10, 0) and (8, 1), and off the axes (9, 1), (10, 1). */
    CU_ASSERT_EQUAL(second->point_count, 5);
    ls_spec_free(second);
    ls_spec_free(spec);
}

static void refuse(const char *study, const char *part)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error = {""};
    ls_text text = {0};
    ls_text_format(&text, "{\"base\": {\"policy\": \"dac\"}, \"sensitivity\": %s}", study);
    CU_ASSERT_EQUAL(ls_spec_parse("x.json", text.bytes, text.length, &vocabulary, false, &spec, &error),
                    LS_ERROR_INVALID);
    if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    ls_text_free(&text);
}

#define RANGE(range) "{\"metric\": \"speed\", \"assumptions\": {\"producers.count\": " range "}}"

static void test_refusals(void)
{
    refuse("3", "expected an object");
    refuse("{\"metric\": \"speed\"}", "needs metric and assumptions");
    refuse("{\"metric\": \"sped\", \"assumptions\": {\"producers.count\": [1, 9]}}", "did you mean \"speed\"");
    refuse("{\"metric\": \"speed\", \"assumptions\": {}}", "1 to 32 keys");
    refuse("{\"metric\": \"speed\", \"assumptions\": {\"producers.cont\": [1, 9]}}", "producers.count");
    refuse("{\"metric\": \"speed\", \"assumptions\": {\"store.put.law\": [1, 9]}}",
           "sensitivity.assumptions.store.put.law");
    refuse("{\"metric\": \"speed\", \"colour\": 1, \"assumptions\": {\"producers.count\": [1, 9]}}", "colour");
    refuse("{\"metric\": \"speed\", \"samples\": -1, \"assumptions\": {\"producers.count\": [1, 9]}}", "samples");
    refuse(RANGE("[9, 1]"), "low < high");
    refuse(RANGE("[1]"), "[low, high]");
    refuse(RANGE("[1, 9, \"cubic\"]"), "[low, high, \"log\"]");
    refuse(RANGE("[1, 9.5]"), "sensitivity.assumptions.producers.count");
    refuse(RANGE("[1, 1e9]"), "sensitivity.assumptions.producers.count");
    refuse(RANGE("[9, 12]"), "itself uses 8");
    refuse("{\"metric\": \"speed\", \"assumptions\": {\"store.put_s_per_mib\": [0, 9, \"log\"]}}", "above 0");
}

/* Points as the second experiment lays them out, speeds by hand: producers 8 (4, 16), delay irrelevant. */
static void test_analysis(void)
{
    static const double means[] = {100, 1, 90, 1, 130, 1, 100.5, 1, 97, 1, 50, 1, 60, 1};
    ls_stored_experiment *e = ls_planted_experiment(
        "{\"table\": [\"speed\"], \"base\": {\"policy\": \"dac\"}, \"sweep\": [{\"cases\": ["
        "{\"producers.count\": 8, \"duration_s\": 10}, {\"producers.count\": 4, \"duration_s\": 10}, "
        "{\"producers.count\": 16, \"duration_s\": 10}, {\"producers.count\": 8, \"duration_s\": 40}, "
        "{\"producers.count\": 5, \"duration_s\": 20}, {\"producers.count\": 7, \"duration_s\": 30}, "
        "{\"producers.count\": 9, \"duration_s\": 25}]}]}",
        means, 7);
    ls_sensitivity s;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_sensitivity_analyse(e, &s, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(s.metric, "speed");
    CU_ASSERT_EQUAL(s.nominal.mean, 100);
    CU_ASSERT_EQUAL(s.design_points, 3);
    CU_ASSERT_EQUAL_FATAL(s.count, 2);
    /* producers.count moves it by 30, the other by half: that is the order. Replications are paired, so what both share
     * cancels: the interval has no width. */
    CU_ASSERT_STRING_EQUAL(e->swept_keys[s.rows[0].key], "producers.count");
    CU_ASSERT_STRING_EQUAL(s.rows[0].low, "4");
    CU_ASSERT_STRING_EQUAL(s.rows[0].high, "16");
    CU_ASSERT_EQUAL(s.rows[0].at_low.mean, -10);
    CU_ASSERT_EQUAL(s.rows[0].at_high.mean, 30);
    CU_ASSERT_EQUAL(s.rows[0].at_high.half_width, 0);
    CU_ASSERT_PTR_NULL(s.rows[1].low);
    CU_ASSERT_TRUE(isnan(s.rows[1].at_low.mean));
    CU_ASSERT_EQUAL(s.rows[1].at_high.mean, 0.5);
    /* Three points weigh nothing, and the sentence says so. */
    CU_ASSERT_TRUE(isnan(s.rows[0].share.share));
    ls_text text = {0};
    ls_sensitivity_sentence(&s, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "too few points"));
    ls_text_free(&text);
    ls_sensitivity_tidy(&s, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "\nproducers.count\t4\t8\t16\t100\t-10\t0\t30\t0\tnan\t"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "\nduration_s\tnan\t10\t40\t100\tnan\tnan\t0.5\t0\tnan\t"));
    ls_text_free(&text);
    ls_sensitivity_free(&s);
    ls_stored_experiment_free(e);
}

/* A whole study through the program: a queue whose wait is known to grow with the load, hardly with the seed's luck. */
static void test_command(void)
{
    const char *program = getenv("LAKESTREAM");
    if (program == NULL) return;
    char command[1200], folder[300];
    snprintf(folder, sizeof folder, "%s", ls_test_path("."));
    FILE *file = fopen(ls_test_path("study.json"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(
        "{\"base\": {\"world\": \"queue\", \"queue\": {\"arrival_rate_per_s\": 0.5, \"customers\": 2000, \"service\": "
        "{\"law\": \"exponential\", \"scale_s\": 1}}}, \"sensitivity\": {\"metric\": \"queue_wait_mean_s\", "
        "\"samples\": 24, "
        "\"assumptions\": {\"queue.arrival_rate_per_s\": [0.2, 0.8], \"queue.customers\": [1500, 2500]}}}",
        file);
    fclose(file);
    snprintf(command, sizeof command, "%s sensitivity %s/study.json -o %s/study.db --json >%s/study.out", program,
             folder, folder, folder);
    CU_ASSERT_EQUAL_FATAL(system(command), 0);
    char line[4000] = "";
    file = fopen(ls_test_path("study.out"), "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, file));
    fclose(file);
    /* The load comes first and carries most. */
    const char *load = strstr(line, "\"key\":\"queue.arrival_rate_per_s\""),
               *rest = strstr(line, "\"key\":\"queue.customers\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(load);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    CU_ASSERT_TRUE(load < rest);
    const char *share = strstr(load, "\"share\":[");
    CU_ASSERT_PTR_NOT_NULL_FATAL(share);
    CU_ASSERT_TRUE(strtod(share + 9, NULL) > 0.7);
    share = strstr(rest, "\"share\":[");
    CU_ASSERT_PTR_NOT_NULL_FATAL(share);
    CU_ASSERT_TRUE(strtod(share + 9, NULL) < 0.3);
    /* A spec without a study is refused. */
    file = fopen(ls_test_path("plain.json"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("{\"base\": {\"world\": \"queue\"}}", file);
    fclose(file);
    snprintf(command, sizeof command, "%s sensitivity %s/plain.json -o %s/study.db 2>/dev/null", program, folder,
             folder);
    CU_ASSERT_EQUAL(system(command) / 256, 2);
}

LS_SUITE(sensitivity, {"the design", test_design}, {"functions with known shares", test_known_shares},
         {"rank correlation", test_rank_correlation}, {"the second experiment", test_second_experiment},
         {"a narrow range of whole numbers", test_narrow_whole_range}, {"what is refused", test_refusals},
         {"analysis by hand", test_analysis}, {"the command", test_command})
