/* test_colocated.c - loaders beside the trainer against hand-computed steps and closed forms (field notes, F.2 and C.11). */
#include "sim/colocated.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

static ls_scenario base_scenario(void)
{
    ls_scenario s = ls_test_scenario("ideal", "immediate");
    s.world = LS_WORLD_COLOCATED;
    s.batches.data_parallel = 4;
    s.trainer.compute = ls_test_constant(0.1);
    s.preprocessing.samples_per_rank = 4;
    s.preprocessing.decode = ls_test_constant(0.04);
    s.preprocessing.transform_s = 0.01;
    s.colocated.cores_per_rank = 9;
    s.colocated.trainer_cores_per_rank = 1;
    s.colocated.workers_per_rank = 0;
    s.warm_up_s = 10;
    s.duration_s = 100;
    return s;
}

static double of(const ls_scenario *s, ls_metric_id id)
{
    return ls_test_simulate(s, 5, 0).values[id];
}

/* Four samples of 50 ms: 200 ms a batch. Alone: 200 + 100. One worker: the longer of the two. Two: half of 200. More: compute. */
static void test_steps_by_hand(void)
{
    static const struct { uint64_t workers; double step_s, stall_s; } rows[] = {{0, 0.3, 0.2}, {1, 0.2, 0.1}, {2, 0.1, 0}, {8, 0.1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ls_scenario s = base_scenario();
        s.colocated.workers_per_rank = rows[i].workers;
        CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), rows[i].step_s, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STALL_MEAN), rows[i].stall_s, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_RATE), 1 / rows[i].step_s, 0.02);
    }
    ls_scenario s = base_scenario();
    s.trainer.sync_s = 0.05;
    s.colocated.read_s = 0.02; /* 80 ms more a batch */
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.28 + 0.1 + 0.05, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_FETCH_MEAN), 0.28, 1e-6);
}

/* Eight workers on two free cores: four times as long, so never more than two cores' worth: 200 ms / 2. */
static void test_stretch(void)
{
    ls_scenario s = base_scenario();
    s.trainer.compute = ls_test_constant(0.01);
    s.colocated.workers_per_rank = 8;
    s.colocated.cores_per_rank = 3;
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.1, 0.002);
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_FETCH_MEAN), 0.8, 1e-6);
    s.colocated.cores_per_rank = 9; /* a core each */
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.025, 0.001);
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_FETCH_MEAN), 0.2, 1e-6);
}

/* E[max of n exponentials] = H_n means; ranks of one context group prepare the same samples, so only data ranks count. */
static void expect_slowest(uint64_t data_ranks, uint64_t context_ranks, double harmonic)
{
    ls_scenario s = base_scenario();
    s.batches.data_parallel = data_ranks;
    s.batches.context_parallel = context_ranks;
    s.preprocessing.samples_per_rank = 1;
    s.preprocessing.decode = ls_test_exponential(0.1);
    s.preprocessing.transform_s = 0;
    s.trainer.compute = ls_test_constant(0);
    s.duration_s = 1500 * harmonic;
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.1 * harmonic, 4 * 0.1 * 1.28 / sqrt(15000));
}

static void test_slowest_rank(void)
{
    expect_slowest(1, 1, 1);
    expect_slowest(8, 1, 2.7179);
    expect_slowest(64, 1, 4.7439);
    expect_slowest(1, 64, 1);
    expect_slowest(8, 8, 2.7179);
}

/* Lognormal, sigma 0.3: the slowest of 64 takes 2.039 medians (field notes, C.11). */
static void test_slowest_lognormal(void)
{
    ls_scenario s = base_scenario();
    s.batches.data_parallel = 64;
    s.preprocessing.samples_per_rank = 1;
    s.preprocessing.decode = ls_test_lognormal(0.1, 0.3);
    s.preprocessing.transform_s = 0;
    s.trainer.compute = ls_test_constant(0);
    s.duration_s = 1000;
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.2039, 0.002);
}

/* With deep queues only means count: a rank's loader needs E[service] / W a step, far from the slowest of many draws. */
static void test_deep_queues(void)
{
    ls_scenario s = base_scenario();
    s.batches.data_parallel = 1;
    s.preprocessing.samples_per_rank = 1;
    s.preprocessing.decode = ls_test_exponential(0.4);
    s.preprocessing.transform_s = 0;
    s.trainer.compute = ls_test_constant(0.08);
    s.colocated.workers_per_rank = 4;
    s.colocated.prefetch_batches = 500;
    s.duration_s = 2000;
    double rate = of(&s, LS_METRIC_TRAINER_STEP_RATE);
    CU_ASSERT_DOUBLE_EQUAL(rate, 10, 0.3); /* 0.4 / 4 > 0.08 */
    s.colocated.prefetch_batches = 1;      /* a slow batch blocks the ready ones behind it */
    CU_ASSERT(of(&s, LS_METRIC_TRAINER_STEP_RATE) < 0.75 * rate);
}

/* Memory for one batch a rank: whatever the workers, one at a time is begun, and only when the one before is taken. */
static void test_memory(void)
{
    ls_scenario s = base_scenario();
    uint64_t batch = s.preprocessing.samples_per_rank * s.preprocessing.sample_bytes;
    s.colocated.workers_per_rank = 8;
    CU_ASSERT_EQUAL(ls_colocated_limit(&s, batch), 16);
    s.colocated.memory_bytes_per_node = 8 * (double)batch * 3.5;
    CU_ASSERT_EQUAL(ls_colocated_limit(&s, batch), 3);
    s.colocated.memory_bytes_per_node = (double)batch;
    CU_ASSERT_EQUAL(ls_colocated_limit(&s, batch), 1);
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), 0.2, 1e-6);
}

/* Crashes of the job at rate r, restart R, a checkpoint after every stretch of length L: a stretch takes (e^(rL) - 1)(1/r + R) on
 * average (Daly, 2006). 10 steps of 0.3 s and a pause of 1 s; 4 ranks x 2 workers that never matter. */
static void test_worker_crash_stops_the_job(void)
{
    ls_scenario s = base_scenario();
    s.trainer.compute = ls_test_constant(0.3);
    s.colocated.workers_per_rank = 2;
    s.preprocessing.decode = ls_test_constant(0);
    s.preprocessing.transform_s = 0;
    s.trainer.checkpoint_steps = 10;
    s.trainer.checkpoint_s = 1;
    s.trainer.restart_s = 5;
    s.faults.worker_crash_rate_per_s = 0.1 / 8;
    s.warm_up_s = 0;
    s.duration_s = 100000;
    ls_run_result r = ls_test_simulate(&s, 9, 0);
    double stretch_s = (exp(0.1 * 4) - 1) * (1 / 0.1 + 5);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_TRAINER_NEW_STEP_RATE], 10 / stretch_s, 0.03 * 10 / stretch_s);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_CHECKPOINTS], 100000 / stretch_s, 0.03 * 100000 / stretch_s);
    CU_ASSERT(r.values[LS_METRIC_REPLAYED_STEPS] > 0);
    double up_s = 100000 - 5 * r.values[LS_METRIC_ROLLBACKS];
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_ROLLBACKS] / up_s, 0.1, 0.005);
}

/* The disaggregated trainer of the same scenario meets the same compute times. */
static void test_same_trainer(void)
{
    ls_scenario s = base_scenario();
    s.trainer.compute = ls_test_lognormal(0.1, 0.5);
    s.preprocessing.decode = ls_test_constant(0);
    s.preprocessing.transform_s = 0;
    s.colocated.workers_per_rank = 4;
    s.warm_up_s = 0;
    double here = of(&s, LS_METRIC_TRAINER_STEP_MEAN);
    s.world = LS_WORLD_COMMIT;
    s.trainer.present = true;
    s.producers.count = 2;
    s.batches.law = LS_ARRIVAL_REGULAR;
    s.batches.rate_per_s = 50;
    s.trainer.poll_s = 0.01;
    s.store.conditional_won = s.store.conditional_lost = ls_test_constant(0.001);
    CU_ASSERT_DOUBLE_EQUAL(of(&s, LS_METRIC_TRAINER_STEP_MEAN), here, 0.001);
}

static void test_refusals(void)
{
    ls_run_result result;
    ls_error error = {""};
    ls_scenario s = base_scenario();
    s.colocated.trainer_cores_per_rank = 9;
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "cores_per_rank (9)"));
    s = base_scenario();
    s.preprocessing.decode = (ls_law){.law = LS_LAW_GAMMA, .shape = 0, .scale_s = 1, .draws = 1};
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "preprocessing.decode"));
    s = base_scenario();
    s.duration_s = 1;
    for (int64_t n = 0; n < 4; n++) {
        ls_fail_allocations_after(n);
        CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_MEMORY);
        ls_fail_allocations_after(-1);
    }
}

LS_SUITE(colocated, {"steps by hand", test_steps_by_hand}, {"more workers than cores", test_stretch},
         {"slowest of n exponential loaders", test_slowest_rank}, {"slowest of 64 lognormal loaders", test_slowest_lognormal},
         {"deep queues leave the means", test_deep_queues}, {"memory bounds the queues", test_memory},
         {"a worker's crash stops the job", test_worker_crash_stops_the_job}, {"the same trainer", test_same_trainer},
         {"refusals", test_refusals})
