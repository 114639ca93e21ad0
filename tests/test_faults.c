/* test_faults.c - each fault alone, in a world so small that what must happen can be worked out by hand.
 *
 * The world: one producer with a row, one batch at time 0 that needs no upload, constant latencies: list, get and head 0.01 s, a
 * conditional put 0.1 s with its effect at the end, a data put 0.05 s. Without faults: list, put, acknowledged at 0.11 s. Every
 * run drains and is audited: what was taken is in the last manifest once, in order.
 */
#include "experiments/run_real.h"
#include "sim/faults.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

/* A fault drawn with certainty, but for requests sent while the first put is. */
static ls_scenario strike_first_put(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.window_start_s = 0.005;
    s.faults.window_length_s = 0.02;
    return s;
}

static double of(const ls_run_result *result, ls_metric_id metric)
{
    return result->values[metric];
}

static void expect(const ls_scenario *s, double delay_s, double ambiguous, double puts)
{
    ls_run_result r = ls_test_simulate(s, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(of(&r, LS_METRIC_DELAY_MEAN), delay_s, 1e-8);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_AMBIGUOUS), ambiguous);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_COMMIT_PUTS), puts);
    CU_ASSERT_DOUBLE_EQUAL(of(&r, LS_METRIC_PUBLISHED_RATE), 0.1, 1e-12);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_MANIFEST_ENTRIES_END), 1);
}

static void test_nothing_wrong(void)
{
    ls_scenario s = ls_test_small_world();
    expect(&s, 0.11, 0, 1);
}

static void test_lost_reply(void)
{
    ls_scenario s = strike_first_put();
    s.faults.lost_reply_share = 1;
    expect(&s, 0.53, 1, 1); /* 0.01 + time-out, then list and get find it */
}

static void test_error_before(void)
{
    ls_scenario s = strike_first_put();
    s.faults.error_before_share = 1;
    expect(&s, 0.63, 1, 2); /* time-out at 0.51, list finds nothing, another attempt */
}

/* Given up at 0.51 and looked for at 0.52; arrives at 0.525 and wins at 0.625, before the second try of the same name. */
static void test_lingering_put_wins(void)
{
    ls_scenario s = strike_first_put();
    s.faults.linger_share = 1;
    s.faults.linger_s = 0.015;
    expect(&s, 0.65, 2, 2);
}

static void test_lingering_put_loses(void)
{
    ls_scenario s = strike_first_put();
    s.faults.linger_share = 1;
    s.faults.linger_s = 5;
    expect(&s, 0.63, 1, 2);
}

static void test_conflict(void)
{
    ls_scenario s = strike_first_put();
    s.faults.conflict_share = 1;
    expect(&s, 0.15, 1, 2); /* refused at 0.03, list, list, put */
}

static void test_brown_out(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.slow_length_s = 5;
    s.faults.slow_factor = 3;
    expect(&s, 0.33, 0, 1);
    s.faults.slow_start_s = 0.005; /* the second half of the list, and the put */
    expect(&s, 0.32, 0, 1);
}

static void test_storm(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.throttle_storm_length_s = 0.5;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT(of(&r, LS_METRIC_THROTTLED_SHARE) > 0);
    CU_ASSERT(of(&r, LS_METRIC_DELAY_MEAN) >= 0.61);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_AMBIGUOUS), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_MANIFEST_ENTRIES_END), 1);
}

/* Producer 1 is cut off for a second; producer 0 commits alone, as if nobody else were there. */
static void test_cut(void)
{
    ls_scenario s = ls_test_small_world();
    s.producers.count = 2;
    s.faults.cut_client = 1;
    s.faults.cut_length_s = 1;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT(of(&r, LS_METRIC_DELAY_MAX) >= 1.11 * 0.98); /* histogram bins */
    CU_ASSERT(of(&r, LS_METRIC_COMPLETION_MEAN) * 2 - of(&r, LS_METRIC_DELAY_MAX) < 0.11 * 1.3);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_CONFLICT_SHARE), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_MANIFEST_ENTRIES_END), 2);
}

/* The measured time ends before the restart, so the second life is spared. */
static void expect_crash(ls_scenario s, ls_crash_point point, double recovery_s, double recovered, double drain_s)
{
    s.duration_s = 0.5;
    s.faults.crash_point = point;
    s.faults.crash_share = 1;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_CRASHES), 1);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_FENCED), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_RECOVERED_BATCHES), recovered);
    CU_ASSERT_DOUBLE_EQUAL(of(&r, LS_METRIC_RECOVERY_MEAN), recovery_s, 1e-8);
    CU_ASSERT_DOUBLE_EQUAL(of(&r, LS_METRIC_DRAIN), drain_s, 1e-8);
}

/* Recovery is restart, search, get, join: a cold search lists one name and gallops from there, so it takes one list and one head
 * (0.02 s) when version 1 is the newest, one list and three heads when version 2 is. */
#define RECOVERY_FROM_1_S (1 + 0.02 + 0.01 + 0.1)
#define RECOVERY_FROM_2_S (1 + 0.04 + 0.01 + 0.1)

static void test_crash_points(void)
{
    double first = RECOVERY_FROM_1_S, second = RECOVERY_FROM_2_S;
    expect_crash(ls_test_small_world(), LS_CRASH_BEFORE_PUT, first, 0, 0.01 + first + 0.11 - 0.5);
    expect_crash(ls_test_small_world(), LS_CRASH_AFTER_PUT_SENT, second, 1, 0.01 + second - 0.5); /* it lands without us */
    expect_crash(ls_test_small_world(), LS_CRASH_AFTER_PUT_EFFECT, second, 1, 0.11 + second - 0.5);
    ls_scenario uploads = ls_test_small_world();
    uploads.upload.instantaneous = false;
    expect_crash(uploads, LS_CRASH_AFTER_UPLOAD, first, 0, 0.05 + first + 0.05 + 0.11 - 0.5);
    ls_scenario joins = ls_test_small_world();
    joins.producers.established = false;
    joins.manifest.initial_entries = 1;
    joins.duration_s = 0.5;
    joins.faults.crash_point = LS_CRASH_AFTER_READ;
    joins.faults.crash_share = 1;
    ls_run_result r = ls_test_simulate(&joins, 1, 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_CRASHES), 1);
    CU_ASSERT_DOUBLE_EQUAL(of(&r, LS_METRIC_RECOVERY_MEAN), first, 1e-8);
}

static void test_crash_at_a_time(void)
{
    ls_scenario s = ls_test_small_world();
    s.producers.count = 4;
    s.batches.law = LS_ARRIVAL_CLOSED;
    s.faults.crash_at_s = 3;
    s.faults.crash_at_count = 3;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_CRASHES), 3);
    CU_ASSERT(of(&r, LS_METRIC_RECOVERY_MEAN) >= RECOVERY_FROM_1_S);
}

/* Paused with its list in flight, replaced after a second: the successor makes the batch anew and commits it; the zombie comes
 * back with the batch still in hand, loses its put, reads, and finds itself fenced. */
static void test_zombie(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.pause_at_s = 0.005;
    s.faults.pause_s = 3;
    s.faults.takeover_s = 1;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_CRASHES), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_FENCED), 1);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_DUPLICATES_REFUSED), 1);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_RECOVERED_BATCHES), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_MANIFEST_ENTRIES_END), 1);
}

/* Paused with its put in flight: it lands; the successor finds it in the row. The zombie hears of it late, and counts nothing. */
static void test_zombie_that_had_won(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.pause_at_s = 0.02;
    s.faults.pause_s = 3;
    s.faults.takeover_s = 1;
    ls_run_result r = ls_test_simulate(&s, 1, 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_RECOVERED_BATCHES), 1);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_FENCED), 0); /* it has nothing left to commit, so it never looks */
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_DUPLICATES_REFUSED), 0);
    CU_ASSERT_EQUAL(of(&r, LS_METRIC_MANIFEST_ENTRIES_END), 1);
}

/* Nobody takes over: the answer waits until the pause is over, and no harm is done. */
static void test_pause(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.pause_at_s = 0.02;
    s.faults.pause_s = 3;
    expect(&s, 3.02, 0, 1);
}

static ls_scenario stormy_world(void)
{
    ls_scenario s = ls_test_small_world();
    s.producers.count = 6;
    s.producers.established = false;
    s.batches.law = LS_ARRIVAL_POISSON;
    s.batches.rate_per_s = 2;
    s.upload.instantaneous = false;
    s.duration_s = 40;
    s.faults.crash_rate_per_s = 0.05;
    s.faults.pause_rate_per_s = 0.05;
    s.faults.pause_s = 4;
    s.faults.takeover_s = 2;
    s.faults.lost_reply_share = s.faults.error_before_share = s.faults.linger_share = s.faults.conflict_share = 0.03;
    s.faults.linger_s = 3;
    return s;
}

static void test_same_seed_same_faults(void)
{
    ls_scenario s = stormy_world();
    ls_run_result a = ls_test_simulate(&s, 5, 0), b = ls_test_simulate(&s, 5, 0), c = ls_test_simulate(&s, 5, 1);
    CU_ASSERT_EQUAL(memcmp(a.values, b.values, sizeof a.values), 0);
    CU_ASSERT_EQUAL(a.events, b.events);
    CU_ASSERT_NOT_EQUAL(a.events, c.events);
    CU_ASSERT(of(&a, LS_METRIC_CRASHES) > 0);
    CU_ASSERT(of(&a, LS_METRIC_FENCED) > 0);
    CU_ASSERT(of(&a, LS_METRIC_AMBIGUOUS) > 0);
}

/* 6 producers for 40 s at one crash in 20 s: 12 expected; over 50 replications the mean is within four standard errors. */
static void test_crash_rate(void)
{
    ls_scenario s = stormy_world();
    s.faults = (ls_fault_config){.crash_rate_per_s = 0.05, .timeout_s = 1, .refusal_s = 0.02};
    double sum = 0;
    for (uint64_t i = 0; i < 50; i++) {
        ls_run_result r = ls_test_simulate(&s, 9, i);
        sum += of(&r, LS_METRIC_CRASHES);
    }
    CU_ASSERT_DOUBLE_EQUAL(sum / 50, 12, 4 * sqrt(12.0 / 50));
}

/* Switching one kind of fault on moves no draw of another. */
static void test_independent_draws(void)
{
    ls_fault_config one = {.lost_reply_share = 0.3}, both = {.lost_reply_share = 0.3, .error_before_share = 0.2};
    ls_store_request put = {.operation = LS_PUT, .if_absent = true};
    uint32_t lost = 0, masked = 0;
    for (uint64_t place = 0; place < 2000; place++) {
        ls_fault a = ls_faults_strike(&one, 1, 0, 0, 3, place, &put), b = ls_faults_strike(&both, 1, 0, 0, 3, place, &put);
        lost += a == LS_FAULT_LOST_REPLY;
        if (b == LS_FAULT_ERROR_BEFORE) masked++;
        else CU_ASSERT_EQUAL(a, b);
    }
    CU_ASSERT_DOUBLE_EQUAL(lost, 600, 4 * sqrt(2000 * 0.3 * 0.7));
    CU_ASSERT_DOUBLE_EQUAL(masked, 400, 4 * sqrt(2000 * 0.2 * 0.8));
    ls_store_request get = {.operation = LS_GET};
    ls_fault_config puts_only = {.linger_share = 1, .conflict_share = 1};
    CU_ASSERT_EQUAL(ls_faults_strike(&puts_only, 1, 0, 0, 0, 0, &get), LS_FAULT_NONE);
    CU_ASSERT_EQUAL(ls_faults_strike(&puts_only, 1, 0, 0, 0, 0, &put), LS_FAULT_LINGER);
}

static void expect_refused(const ls_scenario *s, const char *part)
{
    ls_run_result result;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate(s, 1, 0, &result, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
}

static void test_contradictions(void)
{
    ls_scenario s = ls_test_small_world();
    s.faults.crash_share = 0.5;
    expect_refused(&s, "crash_point");
    s = ls_test_small_world();
    s.faults.pause_at_s = 1;
    expect_refused(&s, "pause_s");
    s = ls_test_small_world();
    ls_test_set_policy(&s, "oracle");
    s.faults.crash_at_s = 1;
    expect_refused(&s, "oracle");
    ls_error error = {""};
    ls_run_result ignored;
    s = ls_test_small_world();
    s.faults.cut_length_s = 1;
    CU_ASSERT_EQUAL(ls_run_real(&s, "memory", 1, 0, &ignored, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "faults"));
    s = ls_test_small_world();
    CU_ASSERT_FALSE(ls_faults_any(&s.faults));
    s.batches.law = LS_ARRIVAL_OPEN;
    expect_refused(&s, "drain_s");
}

/* Answers that no machine recognises: the drain says who waits for what. */
static ls_result spoil_tags(void *context, uint32_t producer, ls_store_request *request)
{
    (void)context;
    (void)producer;
    request->tag ^= 0x40000000;
    return LS_OK;
}

static void test_no_progress_is_told(void)
{
    ls_scenario s = ls_test_small_world();
    ls_simulation_watcher watcher = {.request = spoil_tags};
    ls_run_result result;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate_watched(&s, 1, 0, &watcher, &result, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "producer 0 took offsets below 1 and heard of those below 0"));
}

LS_SUITE(faults,
         {"nothing wrong", test_nothing_wrong},
         {"a lost reply is settled by reading", test_lost_reply},
         {"an error before the effect", test_error_before},
         {"a lingering put that wins", test_lingering_put_wins},
         {"a lingering put that loses", test_lingering_put_loses},
         {"409", test_conflict},
         {"brown-out", test_brown_out},
         {"storm of throttling", test_storm},
         {"one client cut off", test_cut},
         {"crash at every point of the protocol", test_crash_points},
         {"crash at a time", test_crash_at_a_time},
         {"a zombie is fenced", test_zombie},
         {"a zombie that had won", test_zombie_that_had_won},
         {"a pause that nobody notices", test_pause},
         {"same seed, same faults", test_same_seed_same_faults},
         {"rate of crashes", test_crash_rate},
         {"independent draws", test_independent_draws},
         {"contradictions", test_contradictions},
         {"no progress is told", test_no_progress_is_told})
