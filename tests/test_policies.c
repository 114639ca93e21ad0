/* test_policies.c - hand-computed decisions of every policy, properties that all of them keep, and the tables' own errors. */
#include "policies/common.h"
#include "policies/oracle.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

#define SECOND LS_NANOSECONDS_PER_SECOND

/* A policy in a test's hand: its instance, state and stream, and a view that the test shapes. */
typedef struct bench {
    ls_policy_instance instance;
    _Alignas(8) unsigned char state[LS_POLICY_STATE_BYTES + 16];
    ls_random random;
    ls_commit_view view;
    ls_commit_decision decision;
    ls_manifest *manifest;
} bench;

/* rows open producers, the last `stale` of which committed in version 1 of `version`. */
static ls_manifest *table(uint32_t rows, uint32_t stale, uint64_t version)
{
    static ls_row row[1024];
    for (uint32_t i = 0; i < rows; i++) {
        row[i] = (ls_row){.producer = i, .epoch = 1, .last_version = i + stale >= rows ? 1 : version};
    }
    ls_manifest_parts parts = {.version = version, .rows = row, .row_count = rows};
    ls_manifest *manifest = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &manifest), LS_OK);
    return manifest;
}

static void open_bench(bench *b, const char *name, uint32_t rows)
{
    ls_error error = {""};
    memset(b, 0, sizeof *b);
    CU_ASSERT_EQUAL_FATAL(ls_policy_instantiate(name, &b->instance, &error), LS_OK);
    memset(b->state + LS_POLICY_STATE_BYTES, 0xa5, 16);
    b->random = ls_random_open(9, 0, LS_RANDOM_TEST, 0);
    b->manifest = table(rows, 0, 100);
    b->view = (ls_commit_view){.moment = LS_MOMENT_READY, .now_ns = 100 * SECOND, .planned_ns = LS_NEVER_NS, .pending_batches = 1,
                               .backlog_limit = 64, .pending_bytes = 1000, .oldest_ready_ns = 100 * SECOND,
                               .manifest = b->manifest};
}

static void close_bench(bench *b)
{
    for (uint32_t i = 0; i < 16; i++) CU_ASSERT_EQUAL(b->state[LS_POLICY_STATE_BYTES + i], 0xa5);
    ls_manifest_release(b->manifest);
}

static void set(bench *b, const char *parameter, double value)
{
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_policy_set(&b->instance, parameter, value, &error), LS_OK);
}

/* Asks and returns the wait in seconds; -1 for never. */
static double ask(bench *b, ls_moment moment)
{
    b->view.moment = moment;
    if (moment != LS_MOMENT_READY) {
        b->view.planned_ns = LS_NEVER_NS;
        b->view.attempts++;
        b->view.losses_in_row = moment == LS_MOMENT_LOST ? b->view.losses_in_row + 1 : 0;
    }
    b->decision = (ls_commit_decision){.try_at_ns = LS_NEVER_NS};
    ls_decider decider = ls_policy_decider(&b->instance);
    decider.decide(decider.parameters, b->state, &b->random, &b->view, &b->decision);
    return b->decision.try_at_ns == LS_NEVER_NS ? -1 : ls_seconds(b->decision.try_at_ns - b->view.now_ns);
}

static void test_immediate(void)
{
    bench b;
    open_bench(&b, "naive", 4);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    CU_ASSERT_EQUAL(b.decision.batch_limit, 1);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 0);
    b.view.pending_batches = 0;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), -1);
    close_bench(&b);
    open_bench(&b, "delta-rs", 4);
    for (int i = 0; i < 15; i++) {
        CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 0);
        CU_ASSERT_FALSE(b.decision.gave_up);
    }
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 1);
    CU_ASSERT_TRUE(b.decision.gave_up);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 0);
    CU_ASSERT_FALSE(b.decision.gave_up);
    close_bench(&b);
}

/* Mean and bounds of n draws of the wait at one moment, the state kept as it is. */
static void draws(bench *b, ls_moment moment, double low, double high, double mean, double tolerance)
{
    unsigned char state[sizeof b->state];
    ls_commit_view view = b->view;
    memcpy(state, b->state, sizeof state);
    double sum = 0;
    int outside = 0;
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        memcpy(b->state, state, sizeof state);
        b->view = view;
        double wait = ask(b, moment);
        outside += wait < low - 1e-9 || wait > high + 1e-9;
        sum += wait;
    }
    memcpy(b->state, state, sizeof state);
    b->view = view;
    CU_ASSERT_EQUAL(outside, 0);
    CU_ASSERT_DOUBLE_EQUAL(sum / N, mean, tolerance);
}

static void test_fixed(void)
{
    bench b;
    open_bench(&b, "fixed", 4);
    set(&b, "interval_s", 10);
    draws(&b, LS_MOMENT_READY, 0, 10, 5, 0.1); /* the first: a random phase */
    ask(&b, LS_MOMENT_WON);
    draws(&b, LS_MOMENT_LOST, 5, 15, 10, 0.1);
    set(&b, "jitter", 0);
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_WON), 10, 1e-9);
    close_bench(&b);
}

/* base 5 ms, cap 2 s: after the n-th loss e = 5 ms * 2^n, capped. */
static void test_backoff_jitters(void)
{
    static const char *const names[] = {"backoff-none", "backoff-full", "backoff-equal"};
    for (int k = 0; k < 3; k++) {
        bench b;
        open_bench(&b, names[k], 4);
        set(&b, "base_s", 0.005);
        set(&b, "cap_s", 2);
        CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
        for (int n = 1; n <= 12; n++) {
            double e = fmin(2.0, 0.005 * pow(2, n)), least = k == 0 ? e : k == 1 ? 0 : e / 2;
            draws(&b, LS_MOMENT_LOST, least, e, (least + e) / 2, 0.02 * e);
            ask(&b, LS_MOMENT_LOST);
        }
        CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), 0);
        draws(&b, LS_MOMENT_LOST, k == 0 ? 0.01 : 0, 0.01, k == 0 ? 0.01 : k == 1 ? 0.005 : 0.0075, 0.0002);
        close_bench(&b);
    }
}

static void test_backoff_decorrelated(void)
{
    bench b;
    open_bench(&b, "backoff-decorrelated", 4);
    set(&b, "base_s", 0.005);
    set(&b, "cap_s", 0.1);
    draws(&b, LS_MOMENT_LOST, 0.005, 0.015, 0.010, 0.0001); /* U(base, 3 base) */
    double last = ask(&b, LS_MOMENT_LOST);
    for (int i = 0; i < 200; i++) {
        double most = fmin(0.1, 3 * last);
        last = ask(&b, LS_MOMENT_LOST);
        CU_ASSERT(last >= 0.005 - 1e-9 && last <= most + 1e-9);
    }
    close_bench(&b);
}

/* Iceberg: 100, 200, 400, 800 ms with 10 % noise, then the commit fails. */
static void test_iceberg_preset(void)
{
    bench b;
    open_bench(&b, "iceberg", 4);
    for (int n = 0; n < 4; n++) {
        double wait = 0.1 * pow(2, n);
        draws(&b, LS_MOMENT_LOST, 0.9 * wait, 1.1 * wait, wait, 0.002 * wait);
        ask(&b, LS_MOMENT_LOST);
        CU_ASSERT_FALSE(b.decision.gave_up);
    }
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 1);
    CU_ASSERT_TRUE(b.decision.gave_up);
    close_bench(&b);
}

/* First wait of a product, growth, longest wait, and after how many retries its commit fails (0: never). */
static void test_products_presets(void)
{
    static const struct {
        const char *name;
        double first_low_s, first_high_s, growth, cap_s;
        int retries;
    } product[] = {
        {"paimon", 0.010, 0.010, 2, 10, 10},
        {"nessie", 0.005, 0.025, 2, 0.25, 0},
        {"ducklake", 0.05, 0.1, 1.5, 60, 10},
        {"s3-queue", 0.050, 0.050, 2, 5, 10},
    };
    for (uint32_t i = 0; i < LS_COUNT_OF(product); i++) {
        bench b;
        open_bench(&b, product[i].name, 4);
        int most = product[i].retries > 0 ? product[i].retries : 12;
        for (int k = 0; k < most; k++) {
            double high = fmin(product[i].cap_s, product[i].first_high_s * pow(product[i].growth, k));
            double low = high * product[i].first_low_s / product[i].first_high_s;
            draws(&b, LS_MOMENT_LOST, low - 1e-6 * high, high + 1e-6 * high, (low + high) / 2, 0.01 * high);
            ask(&b, LS_MOMENT_LOST);
            CU_ASSERT_FALSE(b.decision.gave_up);
        }
        ask(&b, LS_MOMENT_LOST);
        CU_ASSERT_EQUAL(b.decision.gave_up, product[i].retries > 0);
        close_bench(&b);
    }
}

/* Lance's 20 retries, then a pause, then rounds from the first again, with a slot measured afresh. */
static void test_lance_gives_up(void)
{
    bench b;
    open_bench(&b, "lance", 4);
    b.view.attempt_ns = 80000000;
    for (int k = 0; k < 20; k++) {
        ask(&b, LS_MOMENT_LOST);
        CU_ASSERT_FALSE(b.decision.gave_up);
    }
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 1);
    CU_ASSERT_TRUE(b.decision.gave_up);
    b.view.attempt_ns = 10000000;
    draws(&b, LS_MOMENT_LOST, 0, 0.03, 0.015, 0.0005);
    close_bench(&b);
}

/* Lance: slots of the first attempt's duration, below 4, 8, 16, ... */
static void test_slotted(void)
{
    bench b;
    open_bench(&b, "slotted", 4);
    b.view.attempt_ns = 80000000;
    for (int losses = 0; losses < 5; losses++) {
        int seen = 0, slots = 4 << losses;
        unsigned char state[sizeof b.state];
        memcpy(state, b.state, sizeof state);
        ls_commit_view view = b.view;
        for (int i = 0; i < 4000; i++) {
            memcpy(b.state, state, sizeof state);
            b.view = view;
            double slot = ask(&b, LS_MOMENT_LOST) / 0.08;
            CU_ASSERT_DOUBLE_EQUAL(slot, round(slot), 1e-6);
            CU_ASSERT(slot < slots);
            seen |= slot > slots / 2 ? 1 : 2;
        }
        b.view = view;
        memcpy(b.state, state, sizeof state);
        ask(&b, LS_MOMENT_LOST);
        CU_ASSERT_EQUAL(seen, 3);
        b.view.attempt_ns = 500000000; /* later attempts do not change the slot */
    }
    close_bench(&b);
}

/* n = 64, w = 61 ms, p = 0.1: g = 63 * 0.061 * 9 = 34.587 s; losers wait it too. */
static void test_dac_gap(void)
{
    bench b;
    open_bench(&b, "dac", 64);
    draws(&b, LS_MOMENT_READY, 0, 63 * 0.1 * 9, 0.5 * 63 * 0.1 * 9, 0.5); /* nothing timed yet: 100 ms, random phase */
    b.view.attempt_ns = 61000000;
    draws(&b, LS_MOMENT_WON, 0.5 * 34.587, 1.5 * 34.587, 34.587, 0.3);
    draws(&b, LS_MOMENT_LOST, 0.5 * 34.587, 1.5 * 34.587, 34.587, 0.3);
    ask(&b, LS_MOMENT_WON);
    b.view.attempt_ns = 161000000; /* smoothing 0.2: 61 + 0.2 * 100 = 81 ms */
    draws(&b, LS_MOMENT_WON, 0.5 * 45.927, 1.5 * 45.927, 45.927, 0.4);
    set(&b, "target_share", 0.5);
    draws(&b, LS_MOMENT_WON, 0.5 * 63 * 0.081, 1.5 * 63 * 0.081, 63 * 0.081, 0.05);
    close_bench(&b);
    open_bench(&b, "dac", 1); /* alone: no conflict possible, no gap */
    b.view.attempt_ns = 61000000;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), 0);
    close_bench(&b);
}

static void test_dac_counts_live_rows(void)
{
    bench b;
    open_bench(&b, "dac", 1);
    ls_manifest_release(b.manifest);
    b.view.manifest = b.manifest = table(64, 32, 1000);
    set(&b, "live_window_versions", 500);
    b.view.attempt_ns = 100000000;
    double gap = 31 * 0.1 * 9;
    draws(&b, LS_MOMENT_WON, 0.5 * gap, 1.5 * gap, gap, 0.3);
    ask(&b, LS_MOMENT_WON); /* the count is kept for as many versions as there are rows ... */
    ls_manifest_release(b.manifest);
    b.view.manifest = b.manifest = table(64, 0, 1063);
    draws(&b, LS_MOMENT_WON, 0.5 * gap, 1.5 * gap, gap, 0.3);
    ls_manifest_release(b.manifest);
    b.view.manifest = b.manifest = table(64, 0, 1064); /* ... and then taken anew */
    gap = 63 * 0.1 * 9;
    draws(&b, LS_MOMENT_WON, 0.5 * gap, 1.5 * gap, gap, 0.6);
    close_bench(&b);
}

static void test_dac_readings(void)
{
    bench b;
    open_bench(&b, "dac-r1", 64);
    b.view.attempt_ns = 100000000;
    draws(&b, LS_MOMENT_LOST, 0.5, 1.5, 1.0, 0.01);
    close_bench(&b);
    open_bench(&b, "dac-r2", 64);
    b.view.attempt_ns = 100000000;
    draws(&b, LS_MOMENT_WON, 6.4, 19.2, 12.8, 0.1); /* 64 * 0.1 / 0.5 */
    close_bench(&b);
    open_bench(&b, "dac-r3", 64);
    set(&b, "grow", 2);
    set(&b, "shrink", 0.5);
    b.view.attempt_ns = 100000000;
    draws(&b, LS_MOMENT_WON, 0.05, 0.15, 0.1, 0.001); /* never below w */
    ask(&b, LS_MOMENT_WON);
    draws(&b, LS_MOMENT_LOST, 0.1, 0.3, 0.2, 0.002);
    ask(&b, LS_MOMENT_LOST);
    draws(&b, LS_MOMENT_LOST, 0.2, 0.6, 0.4, 0.004);
    close_bench(&b);
}

static void test_aimd(void)
{
    bench b;
    open_bench(&b, "aimd", 4);
    set(&b, "increase_per_s", 1);
    draws(&b, LS_MOMENT_READY, 0.5, 1.5, 1.0, 0.01);
    draws(&b, LS_MOMENT_WON, 0.25, 0.75, 0.5, 0.005); /* rate 1 + 1 */
    ask(&b, LS_MOMENT_WON);
    draws(&b, LS_MOMENT_LOST, 0.5, 1.5, 1.0, 0.01); /* 2 / 2 */
    close_bench(&b);
}

static void test_delay(void)
{
    bench b;
    open_bench(&b, "delay", 4);
    b.view.attempt_ns = 100000000;
    draws(&b, LS_MOMENT_WON, 0.4, 1.2, 0.8, 0.01); /* no rise: 1 / 1.25 */
    ask(&b, LS_MOMENT_WON);
    b.view.attempt_ns = 120000000; /* rise 0.2, between alpha and beta: hold */
    draws(&b, LS_MOMENT_WON, 0.4, 1.2, 0.8, 0.01);
    b.view.attempt_ns = 200000000; /* rise 1: grow to 1 */
    draws(&b, LS_MOMENT_WON, 0.5, 1.5, 1.0, 0.01);
    close_bench(&b);
}

static void test_linger(void)
{
    bench b;
    open_bench(&b, "linger", 4);
    set(&b, "batches", 3);
    set(&b, "age_s", 5);
    set(&b, "bytes", 1e6);
    b.view.oldest_ready_ns = 98 * SECOND;
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_READY), 3, 1e-9);
    b.view.planned_ns = b.decision.try_at_ns;
    b.view.pending_batches = 3;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    b.view.pending_batches = 2;
    b.view.pending_bytes = 1000000;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    b.view.pending_bytes = 10;
    b.view.backlog_limit = 2; /* more can never come */
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    draws(&b, LS_MOMENT_LOST, 0.5, 1.5, 1.0, 0.01);
    close_bench(&b);
}

/* What the store asked for is kept although enough for a commit comes in meanwhile; a new commit starts afresh. */
static void test_linger_keeps_refusal(void)
{
    bench b;
    open_bench(&b, "linger", 4);
    set(&b, "batches", 3);
    b.view.retry_after_ns = 30 * SECOND;
    b.view.throttles_in_row = 1;
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_THROTTLED), 30, 1e-9);
    b.view.planned_ns = b.decision.try_at_ns;
    b.view.now_ns += 10 * SECOND;
    b.view.pending_batches = 50;
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_READY), 20, 1e-9);
    b.view.now_ns += 20 * SECOND;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), 0);
    b.view.planned_ns = b.view.now_ns + 9 * SECOND; /* of lingering, not of a refusal: enough has come in */
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    close_bench(&b);
}

/* 0.1 s, doubled for each refusal in a row, at most 20 s, half of it drawn; the store's wish is a lower bound. It
 * belongs to the refusal alone: an attempt that fails for another reason later does not wait for it again. */
static void test_refusals(void)
{
    bench b;
    open_bench(&b, "immediate", 4);
    for (uint32_t row = 1; row <= 12; row++) {
        double most = fmin(20, 0.1 * pow(2, row - 1.0));
        b.view.throttles_in_row = row;
        draws(&b, LS_MOMENT_THROTTLED, most / 2, most, 0.75 * most, 0.01 * most);
    }
    b.view.throttles_in_row = 1;
    b.view.retry_after_ns = 7 * SECOND;
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_THROTTLED), 7, 1e-9);
    b.view.throttles_in_row = 0;
    draws(&b, LS_MOMENT_ABORTED, 0.05, 0.1, 0.075, 0.001);
    close_bench(&b);
}

static void at_version(bench *b, uint32_t rows, uint64_t version)
{
    ls_manifest_release(b->manifest);
    b->view.manifest = b->manifest = table(rows, 0, version);
}

static double contenders(const bench *b)
{
    double value;
    memcpy(&value, b->state, sizeof value);
    return value;
}

/* Load 0.5, slots of 0.1 s, each attempt reading 0.06 s before its end: v += 1.5 f - 0.5 m over the time between two
 * reads. */
static void test_aloha_estimate(void)
{
    bench b;
    open_bench(&b, "aloha", 100);
    set(&b, "gain", 1);
    set(&b, "forgetting", 0);
    b.view.attempt_ns = SECOND / 10;
    b.view.read_ns = SECOND / 25;
    ask(&b, LS_MOMENT_WON); /* nothing to compare with yet: the open rows */
    CU_ASSERT_EQUAL(contenders(&b), 100);
    b.view.now_ns += 10 * SECOND;
    at_version(&b, 100, 110); /* our own version is number 110: we read 109, and 99 before; m = 100, f = 10 */
    ask(&b, LS_MOMENT_WON);
    CU_ASSERT_DOUBLE_EQUAL(contenders(&b), 100 + 15 - 50, 1e-6);
    b.view.now_ns += SECOND;
    b.view.retry_after_ns = 0;
    ask(&b, LS_MOMENT_THROTTLED); /* decided nothing, tells nothing */
    b.view.now_ns += SECOND;
    at_version(&b, 100, 120); /* lost: 120 is what we read; m = 20, f = 11 */
    ask(&b, LS_MOMENT_LOST);
    CU_ASSERT_DOUBLE_EQUAL(contenders(&b), 65 + 16.5 - 10, 1e-6);
    draws(&b, LS_MOMENT_READY, 0, 1e4, 0.1 * ((1 - 0.5 / 71.5) / (0.5 / 71.5) + 0.5),
          0.5); /* geometric of p, and a phase */
    b.view.now_ns += 5 * SECOND;
    at_version(&b, 100, 170);
    ask(&b, LS_MOMENT_LOST); /* + 75 - 25: no more than the table holds */
    CU_ASSERT_EQUAL(contenders(&b), 100);
    set(&b, "gain", 0.1);
    b.view.now_ns += 20 * SECOND;
    ask(&b, LS_MOMENT_LOST); /* 0.1 * -100 */
    CU_ASSERT_DOUBLE_EQUAL(contenders(&b), 90, 1e-6);
    b.view.now_ns += 1000 * SECOND;
    ask(&b, LS_MOMENT_LOST);
    CU_ASSERT_EQUAL(contenders(&b), 1);
    set(&b, "forgetting", 0.1);
    b.view.now_ns += 1000 * SECOND;
    ask(&b, LS_MOMENT_LOST);
    CU_ASSERT_DOUBLE_EQUAL(contenders(&b), 1 + 0.1 * 99, 1e-6);
    close_bench(&b);
}

enum { MEMBERS = 8, ROWS = 64 };

typedef struct contest {
    double lost_share;
    double estimate;
} contest;

/* MEMBERS of ROWS producers always have something pending; attempts take w = 0.1 s, read at their start, take effect at
 * their end, and win if no version came between. The first half is for settling. */
static contest hold_contest(double forgetting)
{
    static bench members[MEMBERS];
    int64_t try_at_ns[MEMBERS], end_ns[MEMBERS];
    uint64_t read[MEMBERS], version = 100;
    double lost = 0, ended = 0, estimates = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        open_bench(&members[i], "aloha", ROWS);
        members[i].random = ls_random_open(5, 0, LS_RANDOM_TEST, i);
        members[i].view.attempt_ns = SECOND / 10;
        set(&members[i], "forgetting", forgetting);
        try_at_ns[i] = i * (SECOND / 20);
        end_ns[i] = LS_NEVER_NS;
    }
    for (int k = 0; k < 40000; k++) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < MEMBERS; i++) {
            int64_t mine = end_ns[i] < try_at_ns[i] ? end_ns[i] : try_at_ns[i];
            int64_t best = end_ns[next] < try_at_ns[next] ? end_ns[next] : try_at_ns[next];
            if (mine < best) next = i;
        }
        if (try_at_ns[next] < end_ns[next]) {
            read[next] = version;
            end_ns[next] = try_at_ns[next] + SECOND / 10;
            try_at_ns[next] = LS_NEVER_NS;
            continue;
        }
        bench *b = &members[next];
        bool won = read[next] == version;
        version += won;
        at_version(b, ROWS, read[next] + won);
        b->view.now_ns = end_ns[next];
        ask(b, won ? LS_MOMENT_WON : LS_MOMENT_LOST);
        try_at_ns[next] = b->decision.try_at_ns;
        end_ns[next] = LS_NEVER_NS;
        if (k < 20000) continue;
        ended += 1;
        lost += !won;
        estimates += contenders(b);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) close_bench(&members[i]);
    return (contest){.lost_share = lost / ended, .estimate = estimates / ended};
}

/* Rivals of one among N = 8 at load G = 0.5 try at R = G (N - 1) / N a slot, so R / (1 + R) = 0.304 of its attempts
 * lose, although the table holds eight times the contenders: the log tells. Forgetting errs towards the table, that is
 * to less load; with nothing but the table p = 0.5 / 64, hence R = 7 p and 0.052. */
static void test_aloha_finds_contenders(void)
{
    contest all = hold_contest(0), usual = hold_contest(0.01), table_only = hold_contest(1);
    CU_ASSERT_DOUBLE_EQUAL(all.lost_share, 0.4375 / 1.4375, 0.015);
    CU_ASSERT_DOUBLE_EQUAL(all.estimate, 8, 0.8);
    CU_ASSERT(usual.lost_share < all.lost_share && usual.lost_share > 0.15);
    CU_ASSERT(usual.estimate > all.estimate && usual.estimate < 20);
    CU_ASSERT_DOUBLE_EQUAL(table_only.lost_share, 7 * 0.5 / 64 / (1 + 7 * 0.5 / 64), 0.01);
    CU_ASSERT_DOUBLE_EQUAL(table_only.estimate, ROWS, 1e-9);
}

static int64_t turn(void *context, const ls_commit_view *view)
{
    (void)view;
    return *(int64_t *)context;
}

static void test_oracle(void)
{
    bench b;
    int64_t answer = 123 * SECOND;
    struct ls_oracle oracle = {.context = &answer, .next_turn = turn};
    open_bench(&b, "oracle", 4);
    b.view.oracle = &oracle;
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 23);
    CU_ASSERT_TRUE(b.instance.policy->simulator_only);
    close_bench(&b);
}

/* Trouble since 99 s, throughput 20 against a reserve of 10: at 100 s the wait is up to 2 s, at 103 s up to 8 s. */
static void test_headroom(void)
{
    bench b;
    open_bench(&b, "headroom", 4);
    set(&b, "throughput_per_s", 20);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0);
    b.view.attempt_ns = SECOND;
    draws(&b, LS_MOMENT_LOST, 0, 2, 1, 0.02);
    ask(&b, LS_MOMENT_LOST);
    b.view.now_ns += 3 * SECOND;
    draws(&b, LS_MOMENT_LOST, 0, 8, 4, 0.05);
    set(&b, "most_wait_s", 5);
    draws(&b, LS_MOMENT_LOST, 0, 5, 2.5, 0.05);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), 0); /* the trouble is over: the next begins with its own attempt */
    draws(&b, LS_MOMENT_LOST, 0, 2, 1, 0.02);
    close_bench(&b);
}

/* 12 tokens: two retries, then no more until wins have paid: a win after a retry returns 5, a win without one 1. */
static void test_retry_budget(void)
{
    bench b;
    open_bench(&b, "retry-budget", 4);
    set(&b, "capacity", 12);
    set(&b, "attempts", 10);
    draws(&b, LS_MOMENT_LOST, 0, 1, 0.5, 0.02);
    ask(&b, LS_MOMENT_LOST);
    draws(&b, LS_MOMENT_LOST, 0, 2, 1, 0.02);
    ask(&b, LS_MOMENT_LOST);
    CU_ASSERT_FALSE(b.decision.gave_up);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 1); /* 2 are left */
    CU_ASSERT_TRUE(b.decision.gave_up);
    for (int i = 0; i < 2; i++) CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_WON), 0);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 1); /* 4 */
    CU_ASSERT_TRUE(b.decision.gave_up);
    ask(&b, LS_MOMENT_WON);
    ask(&b, LS_MOMENT_LOST); /* 5, all taken */
    CU_ASSERT_FALSE(b.decision.gave_up);
    ask(&b, LS_MOMENT_WON); /* and returned */
    ask(&b, LS_MOMENT_LOST);
    CU_ASSERT_FALSE(b.decision.gave_up);
    close_bench(&b);
    open_bench(&b, "retry-budget", 4); /* three attempts are two retries */
    for (int i = 0; i < 6; i++) {
        ask(&b, LS_MOMENT_LOST);
        CU_ASSERT_EQUAL(b.decision.gave_up, i % 3 == 2);
    }
    close_bench(&b);
}

static void bbr_reads(bench *b, int64_t at_s, uint64_t version)
{
    ls_manifest_release(b->manifest);
    b->view.manifest = b->manifest = table(4, 0, version);
    b->view.now_ns = (100 + at_s) * SECOND + SECOND / 2; /* an attempt of half a second, read at its start */
    b->view.attempt_ns = SECOND / 2;
}

/* Four producers. 20 versions in 10 s are 2 a second: while starting the gap is 4 / (2.885 2); three rounds without growth end the
 * start, and the cycle begins: 4 / (1.25 2), 4 / (0.75 2), 4 / 2. */
static void test_bbr(void)
{
    bench b;
    open_bench(&b, "bbr", 4);
    double gap = 4 * 0.1 / 2.885; /* one commit an attempt of 0.1 s is assumed */
    draws(&b, LS_MOMENT_READY, 0, gap, gap / 2, 0.01);
    bbr_reads(&b, 0, 100);
    ask(&b, LS_MOMENT_LOST);
    bbr_reads(&b, 10, 120);
    gap = 4 / (2.885 * 2);
    draws(&b, LS_MOMENT_LOST, 0.5 * gap, 1.5 * gap, gap, 0.01);
    ask(&b, LS_MOMENT_LOST);
    for (int64_t at_s = 20; at_s <= 30; at_s += 10) { /* slower: 1 a second, the maximum stays */
        bbr_reads(&b, at_s, (uint64_t)(100 + at_s));
        ask(&b, LS_MOMENT_LOST);
    }
    bbr_reads(&b, 40, 141);
    gap = 4 / (1.25 * 2);
    draws(&b, LS_MOMENT_LOST, 0.5 * gap, 1.5 * gap, gap, 0.02);
    ask(&b, LS_MOMENT_LOST);
    bbr_reads(&b, 50, 142);
    gap = 4 / (0.75 * 2);
    draws(&b, LS_MOMENT_LOST, 0.5 * gap, 1.5 * gap, gap, 0.03);
    ask(&b, LS_MOMENT_LOST);
    bbr_reads(&b, 60, 143);
    draws(&b, LS_MOMENT_LOST, 1, 3, 2, 0.03);
    close_bench(&b);
}

static double look(bench *b, double at_s, uint64_t newest)
{
    b->view.now_ns = ls_nanoseconds(at_s);
    b->view.newest_version = newest;
    return ask(b, LS_MOMENT_LOOK);
}

/* Four producers, the own commit is version 100, an attempt takes 1 s: the own turn comes at version 103. */
static void win_turn(bench *b)
{
    b->view.now_ns = 100 * SECOND;
    b->view.attempt_ns = SECOND;
    CU_ASSERT_DOUBLE_EQUAL(ask(b, LS_MOMENT_WON), 0.9 * 3, 1e-6); /* lead of three turns */
}

static void test_turns(void)
{
    bench b;
    open_bench(&b, "turns", 4);
    CU_ASSERT_TRUE(ls_policy_decider(&b.instance).looks);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_READY), 0); /* a newcomer */
    CU_ASSERT_EQUAL(look(&b, 100, 105), 0);
    win_turn(&b);
    CU_ASSERT_DOUBLE_EQUAL(look(&b, 103, 101), 2 - 0.8, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(look(&b, 104.2, 102), 1 - 0.8, 1e-6);
    CU_ASSERT_EQUAL(look(&b, 104.4, 103), 0);
    win_turn(&b); /* a turn that nobody takes: after two attempts without a version it is taken over */
    CU_ASSERT_DOUBLE_EQUAL(look(&b, 104.2, 102), 1 - 0.8, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(look(&b, 104.4, 102), 0.1, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(look(&b, 106.1, 102), 0.1, 1e-6);
    CU_ASSERT_EQUAL(look(&b, 106.2, 102), 0);
    win_turn(&b); /* versions 3.5 s apart: nobody queues */
    CU_ASSERT_EQUAL(look(&b, 107, 101), 0);
    CU_ASSERT_EQUAL(ask(&b, LS_MOMENT_LOST), 0);
    draws(&b, LS_MOMENT_LOST, 0, 1, 0.5, 0.02); /* the second loss: up to one attempt */
    close_bench(&b);
}

/* A batch that comes after its turn was due loosens the order: half of the four, so the turn is at 101; a loss tightens it. */
static void test_turns_loosen(void)
{
    bench b;
    open_bench(&b, "turns", 4);
    win_turn(&b);
    b.view.planned_ns = b.view.now_ns - 1;
    b.view.moment = LS_MOMENT_READY;
    ls_decider decider = ls_policy_decider(&b.instance);
    decider.decide(decider.parameters, b.state, &b.random, &b.view, &b.decision);
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_WON), 0.9 * 1, 1e-6);
    CU_ASSERT_EQUAL(look(&b, 101, 101), 0);
    for (int i = 0; i < 4; i++) ask(&b, LS_MOMENT_LOST); /* 0.5 * 1.2^4 is above 1 */
    win_turn(&b);
    close_bench(&b);
}

/* Rows that are closed or were not written within 2 M versions do not count: of eight, five are left to wait for four others. */
static void test_turns_count_the_active(void)
{
    bench b;
    open_bench(&b, "turns", 8);
    ls_manifest_release(b.manifest);
    b.view.manifest = b.manifest = table(8, 3, 100);
    b.view.attempt_ns = SECOND;
    CU_ASSERT_DOUBLE_EQUAL(ask(&b, LS_MOMENT_WON), 0.9 * 4, 1e-6);
    close_bench(&b);
}

/* Every policy and preset: a standing plan stays, refusals honour the store's wish, with something pending a time comes, never before
 * now unless it is the standing plan; the same stream gives the same answers. */
static void check_properties(const char *name)
{
    bench b, twin;
    ls_random random = ls_random_open(77, 0, LS_RANDOM_TEST, 1);
    open_bench(&b, name, 20);
    open_bench(&twin, name, 20);
    if (b.instance.policy->simulator_only) goto done;
    for (int i = 0; i < 3000; i++) {
        ls_moment moment = (ls_moment)(1 + ls_random_below(&random, b.instance.policy->looks ? 6 : 5));
        b.view.now_ns += (int64_t)ls_random_below(&random, 2 * SECOND);
        b.view.pending_batches = moment == LS_MOMENT_WON ? (uint32_t)ls_random_below(&random, 4) : 1 + (uint32_t)ls_random_below(&random, 4);
        b.view.oldest_ready_ns = b.view.pending_batches > 0 ? b.view.now_ns - (int64_t)ls_random_below(&random, SECOND) : LS_NEVER_NS;
        b.view.attempt_ns = 1 + (int64_t)ls_random_below(&random, SECOND);
        b.view.versions_passed = ls_random_below(&random, 10);
        b.view.newest_version = moment == LS_MOMENT_LOOK ? 100 + ls_random_below(&random, 10) : 0;
        b.view.sight_gap_ns = (int64_t)ls_random_below(&random, 10 * SECOND);
        b.view.retry_after_ns = moment == LS_MOMENT_THROTTLED ? 3 * SECOND : 0;
        b.view.throttles_in_row = moment == LS_MOMENT_THROTTLED ? 1 + (uint32_t)ls_random_below(&random, 40) : 0;
        bool planned = moment == LS_MOMENT_READY && ls_random_below(&random, 2) == 0;
        b.view.planned_ns = planned ? b.view.now_ns + 5 * SECOND : LS_NEVER_NS;
        twin.view = b.view;
        twin.view.manifest = twin.manifest;
        double wait = ask(&b, moment), same = ask(&twin, moment);
        CU_ASSERT_EQUAL(wait, same);
        if (b.view.pending_batches > 0) CU_ASSERT(wait >= 0 && wait < 1e6);
        if (moment == LS_MOMENT_THROTTLED) CU_ASSERT(wait >= 3.0);
        if (planned && strcmp(b.instance.policy->name, "linger") != 0) CU_ASSERT_EQUAL(wait, 5);
    }
done:
    close_bench(&b);
    close_bench(&twin);
}

static void test_properties_of_all(void)
{
    uint32_t count;
    const ls_policy *const *policies = ls_policies(&count);
    for (uint32_t i = 0; i < count; i++) check_properties(policies[i]->name);
    const ls_policy_preset *presets = ls_policy_presets(&count);
    for (uint32_t i = 0; i < count; i++) check_properties(presets[i].name);
}

static void test_tables(void)
{
    uint32_t count;
    const ls_policy *const *policies = ls_policies(&count);
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT(policies[i]->parameter_count <= LS_POLICY_PARAMETERS_MAX);
        for (uint32_t k = 0; k < policies[i]->parameter_count; k++) {
            const ls_policy_parameter *p = &policies[i]->parameters[k];
            CU_ASSERT(p->default_value >= p->minimum && p->default_value <= p->maximum);
            CU_ASSERT(strlen(p->meaning) > 10 && strlen(p->unit) > 0);
        }
    }
    ls_policy_instance instance;
    ls_error error = {""};
    const ls_policy_preset *presets = ls_policy_presets(&count);
    for (uint32_t i = 0; i < count; i++) CU_ASSERT_EQUAL(ls_policy_instantiate(presets[i].name, &instance, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_policy_instantiate("backof-full", &instance, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "'backoff-full'"));
    CU_ASSERT_EQUAL(ls_policy_instantiate("zzzzzzzzzzzz", &instance, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NULL(strstr(error.text, "did you mean"));
    CU_ASSERT_EQUAL(ls_policy_instantiate("dac", &instance, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_policy_set(&instance, "target_shar", 0.5, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "'target_share'"));
    CU_ASSERT_EQUAL(ls_policy_set(&instance, "target_share", 1.5, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "0.001 to 0.999"));
    CU_ASSERT_EQUAL(ls_policy_set(&instance, "target_share", (double)NAN, &error), LS_ERROR_INVALID);
}

LS_SUITE(policies, {"immediate", test_immediate}, {"fixed", test_fixed}, {"back-off jitters", test_backoff_jitters},
         {"decorrelated back-off", test_backoff_decorrelated}, {"iceberg preset", test_iceberg_preset},
         {"products' presets", test_products_presets}, {"lance gives up", test_lance_gives_up},
         {"slotted", test_slotted}, {"dac's gap", test_dac_gap}, {"dac counts live rows", test_dac_counts_live_rows},
         {"dac's readings", test_dac_readings}, {"aimd", test_aimd}, {"delay", test_delay}, {"linger", test_linger},
         {"linger keeps a refusal", test_linger_keeps_refusal}, {"refusals", test_refusals},
         {"aloha's estimate", test_aloha_estimate}, {"aloha finds the contenders", test_aloha_finds_contenders},
         {"headroom", test_headroom}, {"retry budget", test_retry_budget}, {"bbr", test_bbr},
         {"turns", test_turns}, {"turns loosen", test_turns_loosen}, {"turns count the active", test_turns_count_the_active},
         {"oracle", test_oracle}, {"properties of all policies", test_properties_of_all}, {"tables", test_tables})
