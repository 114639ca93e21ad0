/* test_preprocessing.c - sample costs: sums, batch times by hand, the workloads, and producers that are paced by them. */
#include "sim/preprocessing.h"
#include "manifest/tgb.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

static ls_preprocessing prepared(const ls_scenario *s)
{
    ls_preprocessing p;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_preprocessing_prepare(s, 3, 0, &p, &error), LS_OK);
    return p;
}

static ls_scenario constant_scenario(void)
{
    ls_scenario s = ls_test_scenario("ideal", "immediate");
    s.batches.data_parallel = 4;
    s.preprocessing.samples_per_rank = 8;
    s.preprocessing.sample_bytes = 1000;
    s.preprocessing.expansion = 50;
    s.preprocessing.decode = ls_test_constant(0.09);
    s.preprocessing.transform_s = 0.01;
    s.preprocessing.cores_per_producer = 16;
    return s;
}

static void test_by_hand(void)
{
    ls_scenario s = constant_scenario();
    ls_preprocessing p = prepared(&s);
    double longest_s;
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_slice_s(&p, 0, 0, &longest_s), 0.8, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(longest_s, 0.1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_batch_s(&p, 0, 0), 32 * 0.1 / 16, 1e-12);
    CU_ASSERT_EQUAL(ls_preprocessing_batch_bytes(&p), 32000);
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_stored_bytes(&p), 160, 1e-9);
    s.preprocessing.decode_factor = 3;
    s.preprocessing.cores_per_producer = 1000; /* more cores than samples: the longest sample */
    p = prepared(&s);
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_batch_s(&p, 0, 0), 0.28, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_mean_s(&p), 0.28, 1e-12);
}

/* The same place gives the same cost; other places, ranks and producers other ones; the mean is the law's. */
static void test_streams(void)
{
    ls_scenario s = constant_scenario();
    s.preprocessing.decode = ls_test_lognormal(0.1, 0.8);
    ls_preprocessing p = prepared(&s);
    CU_ASSERT_EQUAL(ls_preprocessing_slice_s(&p, 1, 7, NULL), ls_preprocessing_slice_s(&p, 1, 7, NULL));
    CU_ASSERT_NOT_EQUAL(ls_preprocessing_slice_s(&p, 1, 7, NULL), ls_preprocessing_slice_s(&p, 1, 8, NULL));
    CU_ASSERT_NOT_EQUAL(ls_preprocessing_slice_s(&p, 1, 7, NULL), ls_preprocessing_slice_s(&p, 2, 7, NULL));
    CU_ASSERT_NOT_EQUAL(ls_preprocessing_batch_s(&p, 0, 3), ls_preprocessing_batch_s(&p, 1, 3));
    double sum_s = 0;
    for (uint64_t step = 0; step < 4000; step++) sum_s += ls_preprocessing_slice_s(&p, 0, step, NULL);
    double mean_s = 0.1 * exp(0.32) + 0.01, deviation_s = 0.1 * exp(0.32) * sqrt(exp(0.64) - 1);
    CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_mean_s(&p), mean_s, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(sum_s / 32000, mean_s, 4 * deviation_s / sqrt(32000));
}

/* Every named workload can be drawn from, has a finite mean, and says of each number where it comes from. */
static void test_workloads(void)
{
    uint32_t count;
    const ls_workload *workloads = ls_workloads(&count);
    CU_ASSERT_EQUAL_FATAL(count, 3);
    const char *names[] = {"gr00t", "holoassist", "behavior-1k"};
    for (uint32_t i = 0; i < count; i++) {
        const ls_workload *w = &workloads[i];
        CU_ASSERT_STRING_EQUAL(w->name, names[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "assumed"));
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "samples:"));
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "size:"));
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "expansion"));
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "decode:"));
        CU_ASSERT_PTR_NOT_NULL(strstr(w->source, "transform:"));
        ls_scenario s = constant_scenario();
        s.preprocessing.workload = i + 1;
        ls_preprocessing p = prepared(&s);
        CU_ASSERT(isfinite(ls_preprocessing_mean_s(&p)));
        CU_ASSERT_EQUAL(p.samples_per_rank, w->samples_per_rank);
        double tail_s = w->decode.tail_scale_s * 2; /* Pareto of shape 2: mean 2 x least */
        double body_s = w->decode.scale_s * exp(w->decode.shape * w->decode.shape / 2);
        double mean_s = (1 - w->decode.tail_share) * body_s + w->decode.tail_share * tail_s + w->transform_s;
        CU_ASSERT_DOUBLE_EQUAL(ls_preprocessing_mean_s(&p), mean_s, 1e-9);
        ls_preprocessing_release(&p);
    }
    /* the table of choices and the table of workloads agree */
    uint32_t options_count;
    const ls_option *options = ls_scenario_options(&options_count);
    for (uint32_t i = 0; i < options_count; i++) {
        if (strcmp(options[i].path, "preprocessing.workload") == 0) {
            CU_ASSERT_STRING_EQUAL(options[i].choices, "custom gr00t holoassist behavior-1k");
        }
    }
}

/* A producer of 16 cores makes a batch of 32 samples x 0.1 s every 0.2 s; three make 15 a second; the trainer takes all it wants. */
static void test_pace(void)
{
    ls_scenario s = constant_scenario();
    s.batches.law = LS_ARRIVAL_PREPROCESSED;
    s.store.conditional_won = s.store.conditional_lost = ls_test_constant(0.001);
    s.producers.count = 3;
    s.warm_up_s = 10;
    s.duration_s = 60;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_PUBLISHED_RATE], 15, 0.1);
    CU_ASSERT(isnan(r.values[LS_METRIC_PUBLISHED_SHARE]));
    s.trainer.present = true;
    s.trainer.lead_batches = 30;
    s.trainer.poll_s = 0.01;
    s.trainer.compute = ls_test_constant(0.05); /* would take 20 */
    r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_TRAINER_STEP_RATE], 15, 0.1);
    s.trainer.compute = ls_test_constant(0.1);
    r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_TRAINER_STEP_RATE], 10, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_PUBLISHED_RATE], 10, 0.1);
    double slice = 8000, footer = (double)ls_tgb_footer_bytes(4, 1);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_READ_AMPLIFICATION], 1 + footer / slice, 1e-4);
}

static void test_bad_law(void)
{
    ls_scenario s = constant_scenario();
    s.batches.law = LS_ARRIVAL_PREPROCESSED;
    s.preprocessing.decode = (ls_law){.law = LS_LAW_GAMMA, .shape = 0, .scale_s = 1, .draws = 1};
    ls_run_result result;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "preprocessing.decode"));
}

LS_SUITE(preprocessing, {"costs by hand", test_by_hand}, {"streams", test_streams}, {"workloads", test_workloads},
         {"producers at the pace of their cores", test_pace}, {"a law that makes no sense", test_bad_law})
