/* test_trainer.c - the training job in the simulated world: step times computed by hand, the barrier, prefetch, rollback, node links,
 * checkpoints and reclaim beside it. */
#include "manifest/tgb.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0

/* One producer far ahead of a trainer of four ranks on two nodes; no latency but what a test sets. */
static ls_scenario calm_scenario(void)
{
    ls_scenario s = ls_test_scenario("ideal", "immediate");
    s.store.conditional_won = s.store.conditional_lost = ls_test_constant(0.001);
    s.producers.count = 1;
    s.producers.start_spread_s = 0;
    s.batches.law = LS_ARRIVAL_REGULAR;
    s.batches.rate_per_s = 50;
    s.batches.bytes = 4 * 1048576 + 4 * LS_TGB_RECORD_BYTES + LS_TGB_TRAILER_BYTES;
    s.batches.data_parallel = 2;
    s.batches.context_parallel = 2;
    s.trainer.present = true;
    s.trainer.ranks_per_node = 2;
    s.trainer.node_bandwidth_bytes_per_s = 0;
    s.trainer.compute = ls_test_constant(0.1);
    s.trainer.poll_s = 0.01;
    s.warm_up_s = 5;
    s.duration_s = 20;
    return s;
}

static double value(const ls_run_result *result, ls_metric_id id)
{
    return result->values[id];
}

/* Data always there: a step is compute and synchronisation, nothing else. */
static void test_step_without_stall(void)
{
    ls_scenario s = calm_scenario();
    s.trainer.sync_s = 0.025;
    s.store.get = ls_test_constant(0.03); /* footer and slice: 60 ms, less than a step */
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_MEAN), 0.125, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STALL_MEAN), 0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STALL_SHARE), 0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_RATE), 8, 0.06);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_FETCH_MEAN), 0.06, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_READ_REQUESTS), 2, 0.02);
}

/* A fetch (two requests, 0.4 s) begins when the step `prefetch` before its own is asked for, so prefetch + 1 periods cover fetch and
 * compute: a period is the longer of compute and (fetch + compute) / (prefetch + 1). */
static void test_prefetch(void)
{
    static const struct { uint64_t prefetch; double step_s, stall_s; } rows[] = {
        {0, 0.5, 0.4}, {1, 0.25, 0.15}, {2, 0.5 / 3, 0.2 / 3}, {3, 0.125, 0.025}, {4, 0.1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ls_scenario s = calm_scenario();
        s.store.get = ls_test_constant(0.2);
        s.trainer.prefetch_steps = rows[i].prefetch;
        ls_run_result r = ls_test_simulate(&s, 1, 0);
        CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_MEAN), rows[i].step_s, 0.002);
        CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STALL_MEAN), rows[i].stall_s, 0.002);
        CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_FETCH_P50), 0.4, 0.4 * 0.02);
    }
}

/* The slowest of n exponential ranks takes H_n means (field notes, C.11). */
static void test_barrier_law(void)
{
    ls_scenario s = calm_scenario();
    s.batches.data_parallel = 8;
    s.batches.context_parallel = 8;
    s.trainer.compute = ls_test_exponential(0.1);
    s.warm_up_s = 2;
    s.duration_s = 400;
    ls_run_result r = ls_test_simulate(&s, 7, 0);
    double h = 0, variance = 0;
    for (int k = 1; k <= 64; k++) {
        h += 1.0 / k;
        variance += 1.0 / k / k;
    }
    CU_ASSERT_DOUBLE_EQUAL(h, 4.744, 0.001);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_MEAN), 0.1 * h, 4 * 0.1 * sqrt(variance / 800));
}

/* Producers that are slower than the trainer set its pace. */
static void test_producer_bound(void)
{
    ls_scenario s = calm_scenario();
    s.batches.rate_per_s = 4;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_RATE), 4, 0.11);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STALL_MEAN), 0.15, 0.01);
}

/* What a rank reads: its slice, and the footer of 24 bytes a slice and 80. */
static void test_read_amplification(void)
{
    ls_scenario s = calm_scenario();
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_READ_AMPLIFICATION), 1 + (4 * 24 + 80) / MIB, 1e-6);
    s.batches.bytes = 4 * 1000 + 4 * LS_TGB_RECORD_BYTES + LS_TGB_TRAILER_BYTES;
    r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_READ_AMPLIFICATION), 1 + 176.0 / 1000, 1e-4);
}

/* Two ranks share their node's link: 2 MiB a step over it; footers take their 176 bytes' time twice. */
static void test_node_link(void)
{
    ls_scenario s = calm_scenario();
    s.trainer.node_bandwidth_bytes_per_s = 4 * MIB;
    s.trainer.prefetch_steps = 0;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    double fetch_s = (2 * MIB + 2 * 176) / (4 * MIB);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_FETCH_MEAN), fetch_s, 0.002);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_MEAN), 0.1 + fetch_s, 0.002);
    s.trainer.ranks_per_node = 1; /* a link each: half the time */
    r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_FETCH_MEAN), fetch_s / 2, 0.002);
    s.trainer.ranks_per_node = 4;
    r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_FETCH_MEAN), fetch_s * 2, 0.002);
}

/* Producers that make a batch as soon as they may are held at the wanted distance from the trainer. */
static void test_lead(void)
{
    ls_scenario s = calm_scenario();
    s.trainer.lead_batches = 12;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_RATE), 10, 0.06);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_PUBLISHED_RATE), 10, 0.15);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_MANIFEST_ENTRIES_END), 250 + 12, 3);
}

/* A checkpoint every ten steps, half a second long; the job crashes once in the middle of a stretch and replays the steps since. */
static void test_rollback(void)
{
    ls_scenario s = calm_scenario();
    s.check_everything = true;
    s.trainer.lead_batches = 20;
    s.trainer.checkpoint_steps = 10;
    s.trainer.checkpoint_s = 0.5;
    s.trainer.restart_s = 2;
    s.faults.trainer_crash_at_s = 15.7;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(value(&r, LS_METRIC_ROLLBACKS), 1);
    CU_ASSERT(value(&r, LS_METRIC_REPLAYED_STEPS) >= 1 && value(&r, LS_METRIC_REPLAYED_STEPS) <= 10);
    /* ten steps take 1.5 s; of the 20 s, 2 s are lost to the restart */
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_RATE), 18.0 / 1.5 * 10 / 20, 0.4);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_TRAINER_STEP_RATE) - value(&r, LS_METRIC_TRAINER_NEW_STEP_RATE),
                           value(&r, LS_METRIC_REPLAYED_STEPS) / 20, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(value(&r, LS_METRIC_CHECKPOINTS), 12, 1);
    s.trainer.rollback_checkpoints = 2;
    ls_run_result further = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(value(&further, LS_METRIC_REPLAYED_STEPS), value(&r, LS_METRIC_REPLAYED_STEPS) + 20);
    s.trainer.checkpoint_steps = 0; /* without any it begins anew */
    ls_run_result anew = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&anew, LS_METRIC_REPLAYED_STEPS), 73, 1); /* 25 s - 17.7 s, 10 a second */
}

/* A crash of one reader stops all ranks at the barrier until it is back; nobody loses or repeats a step. */
static void test_reader_crash(void)
{
    ls_scenario s = calm_scenario();
    s.faults.consumer_crash_rate_per_s = 0.02;
    s.faults.consumer_restart_s = 1;
    s.duration_s = 200;
    ls_run_result r = ls_test_simulate(&s, 3, 0);
    double crashes = value(&r, LS_METRIC_READER_CRASHES);
    CU_ASSERT(crashes > 5 && crashes < 32); /* mean 16 */
    CU_ASSERT_EQUAL(value(&r, LS_METRIC_REPLAYED_STEPS), 0);
    double lost_s = 200 - value(&r, LS_METRIC_TRAINER_STEP_RATE) * 200 * 0.1;
    CU_ASSERT(lost_s > 0.6 * crashes && lost_s <= 1.05 * crashes);
    CU_ASSERT(value(&r, LS_METRIC_TRAINER_STALL_P99) > 0.5);
}

/* Reclaim aligned with checkpoints: what is held stays near lead + what the kept checkpoints need; without, it only grows. */
static void test_reclaim_bounds_storage(void)
{
    ls_scenario s = calm_scenario();
    s.check_everything = true;
    s.duration_s = 60;
    s.trainer.lead_batches = 20;
    s.trainer.checkpoint_steps = 20;
    ls_run_result grows = ls_test_simulate(&s, 1, 0);
    double batch = (double)s.batches.bytes;
    CU_ASSERT_DOUBLE_EQUAL(value(&grows, LS_METRIC_STORED_END) / batch, 650 + 20, 15);
    s.reclaim.count = 2;
    s.reclaim.every_s = 2;
    s.reclaim.keep_last = 2;
    s.faults.reclaimer_crash_rate_per_s = 0.1;
    s.faults.restart_s = 1;
    ls_run_result held = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(value(&held, LS_METRIC_TRAINER_STEP_RATE), value(&grows, LS_METRIC_TRAINER_STEP_RATE), 0.1);
    /* at least lead + one checkpoint's distance; at most two distances, the lead, and a round's delay of 20 steps and some */
    CU_ASSERT(value(&held, LS_METRIC_STORED_MAX) / batch < 20 + 2 * 20 + 50);
    CU_ASSERT(value(&held, LS_METRIC_STORED_MEAN) / batch > 20 + 20);
    CU_ASSERT(value(&held, LS_METRIC_RECLAIMED_BATCHES) > 500);
    CU_ASSERT(value(&held, LS_METRIC_RECLAIM_ROUNDS) > 20);
    s.faults.trainer_crash_at_s = 40; /* and what it goes back to is there */
    s.trainer.rollback_checkpoints = 1;
    s.trainer.restart_s = 5;
    s.reclaim.grace_s = 0;
    s.reclaim.clock_skew_s = 1000;
    ls_run_result back = ls_test_simulate(&s, 1, 0);
    CU_ASSERT(value(&back, LS_METRIC_REPLAYED_STEPS) >= 20 && value(&back, LS_METRIC_REPLAYED_STEPS) <= 41);
}

/* Everything at once, on a store with latency and faults: nothing is lost, repeated or different. */
static void test_storm(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        ls_scenario s = ls_test_scenario("minio", "dac");
        s.check_everything = true;
        s.producers.count = 4;
        s.batches.bytes = 65536;
        s.batches.rate_per_s = 4;
        s.batches.data_parallel = 4;
        s.trainer.present = true;
        s.trainer.ranks_per_node = 2;
        s.trainer.compute = ls_test_lognormal(0.05, 0.5);
        s.trainer.lead_batches = 40;
        s.trainer.checkpoint_steps = 15;
        s.trainer.named_every = 4;
        s.trainer.restart_s = 1;
        s.trainer.rollback_checkpoints = seed % 3;
        s.reclaim.count = 2;
        s.reclaim.every_s = 1;
        s.reclaim.keep_last = 1 + seed % 2;
        s.reclaim.grace_s = 2;
        s.faults.trainer_crash_rate_per_s = 0.05;
        s.faults.consumer_crash_rate_per_s = 0.02;
        s.faults.reclaimer_crash_rate_per_s = 0.1;
        s.faults.crash_rate_per_s = 0.02;
        s.faults.lost_reply_share = 0.02;
        s.faults.error_before_share = 0.02;
        s.faults.linger_share = 0.01;
        s.faults.timeout_s = 0.5;
        s.faults.linger_s = 3;
        s.faults.restart_s = 1;
        s.faults.consumer_restart_s = 1;
        s.warm_up_s = 2;
        s.duration_s = 60;
        ls_run_result r = ls_test_simulate(&s, seed, 0);
        CU_ASSERT(value(&r, LS_METRIC_TRAINER_NEW_STEP_RATE) > 1);
        CU_ASSERT(value(&r, LS_METRIC_ROLLBACKS) > 0);
    }
}

static void test_refusals(void)
{
    ls_scenario s = calm_scenario();
    s.trainer.compute = (ls_law){.law = LS_LAW_GAMMA, .scale_s = 1, .shape = 0, .draws = 1};
    ls_run_result result;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "trainer.compute"));
    s = calm_scenario();
    s.upload.instantaneous = true;
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    s = calm_scenario();
    s.batches.law = LS_ARRIVAL_OPEN;
    CU_ASSERT_EQUAL(ls_simulate(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
}

/* Makes one allocation after the other fail: the run says so. Leaks show under AddressSanitizer. */
static void test_out_of_memory(void)
{
    ls_scenario s = calm_scenario();
    s.warm_up_s = 0;
    s.duration_s = 3;
    s.trainer.checkpoint_steps = 5;
    s.reclaim.count = 1;
    s.reclaim.every_s = 0.5;
    s.reclaim.clock_skew_s = 1;
    s.faults.trainer_crash_at_s = 1.5;
    s.trainer.restart_s = 0.1;
    uint64_t before = ls_allocations_made(), wrong = 0;
    ls_test_simulate(&s, 1, 0);
    int64_t total = (int64_t)(ls_allocations_made() - before);
    for (int64_t n = 0; n < total; n += n < 200 ? 1 : 1 + total / 100) {
        ls_run_result result;
        ls_error error = {""};
        ls_fail_allocations_after(n);
        ls_result outcome = ls_simulate(&s, 1, 0, &result, &error);
        ls_fail_allocations_after(-1);
        wrong += outcome != LS_ERROR_MEMORY || error.text[0] == 0;
    }
    CU_ASSERT(total > 200);
    CU_ASSERT_EQUAL(wrong, 0);
}

static ls_timeline last_timeline;
static double stored_at_end, steps_in_all;

static void keep_timeline(void *context, const ls_timeline *timeline)
{
    (void)context;
    last_timeline = *timeline;
    stored_at_end = timeline->stored_bytes[timeline->count - 1];
    steps_in_all = 0;
    for (uint32_t i = 0; i < timeline->count; i++) steps_in_all += timeline->steps[i];
}

static void test_timeline(void)
{
    ls_scenario s = calm_scenario();
    s.series_step_s = 1;
    s.trainer.lead_batches = 10;
    ls_simulation_watcher watcher = {.timeline = keep_timeline};
    ls_run_result result;
    CU_ASSERT_EQUAL_FATAL(ls_simulate_watched(&s, 1, 0, &watcher, &result, NULL), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(last_timeline.step_s, 1, 1e-12);
    CU_ASSERT(last_timeline.count == 24 || last_timeline.count == 25);
    CU_ASSERT_DOUBLE_EQUAL(steps_in_all, 10.0 * last_timeline.count, 3);
    CU_ASSERT_DOUBLE_EQUAL(stored_at_end / (double)s.batches.bytes, 10.0 * last_timeline.count + 10, 4);
}

LS_SUITE(trainer, {"a step without stall is compute and sync", test_step_without_stall},
         {"prefetch depth by hand", test_prefetch}, {"the slowest of 64 exponential ranks", test_barrier_law},
         {"slow producers set the pace", test_producer_bound}, {"read amplification is 1 and the footer", test_read_amplification},
         {"ranks share their node's link", test_node_link}, {"producers keep their distance", test_lead},
         {"rollback replays the same steps", test_rollback}, {"one reader's crash stops all ranks", test_reader_crash},
         {"reclaim bounds storage", test_reclaim_bounds_storage}, {"everything at once", test_storm},
         {"settings that make no sense", test_refusals}, {"out of memory", test_out_of_memory}, {"time line of steps and storage", test_timeline})
