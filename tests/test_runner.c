/* test_runner.c - the schedule alone, then whole runs with made-up simulations: same content for any number of
 * workers, resume, shards, crashes, failures, interruption. */
#include "experiments/runner.h"
#include "experiments/schedule.h"
#include "experiments/statistics.h"
#include "manifest/random.h"
#include "tests/fixture_spec.h"
#include "tests/suite.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the schedule ---- */

static const ls_replications rule = {2, 6, (char *)(uintptr_t) "speed", 0.1, 0.95};

static void test_fixed_number(void)
{
    const ls_replications fixed = {2, 2, NULL, 0, 0.95};
    ls_schedule *schedule = ls_schedule_new(&fixed, 2);
    uint32_t point = 9;
    uint64_t replication = 9, required, done;
    static const struct {
        uint32_t point;
        uint64_t replication;
    } order[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_TRUE(ls_schedule_next(schedule, &point, &replication));
        CU_ASSERT_EQUAL(point, order[i].point);
        CU_ASSERT_EQUAL(replication, order[i].replication);
    }
    CU_ASSERT_FALSE(ls_schedule_next(schedule, &point, &replication));
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 1, true, 5), LS_OK);
    CU_ASSERT_FALSE(ls_schedule_settled(schedule, 1));
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 0, false, NAN), LS_OK);
    CU_ASSERT_TRUE(ls_schedule_settled(schedule, 1));
    ls_schedule_progress(schedule, &required, &done);
    CU_ASSERT_EQUAL(required, 4);
    CU_ASSERT_EQUAL(done, 2);
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 2, true, 5), LS_ERROR_INVALID);
    ls_schedule_free(schedule);
}

/* Equal values satisfy the rule at the minimum; the guess that was started meanwhile is not asked for. */
static void test_guess_is_void(void)
{
    ls_schedule *schedule = ls_schedule_new(&rule, 1);
    uint32_t point;
    uint64_t replication;
    for (uint64_t r = 0; r < 3; r++) {
        CU_ASSERT_TRUE(ls_schedule_next(schedule, &point, &replication));
        CU_ASSERT_EQUAL(replication, r);
    }
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 0, 2, true, 1e9), LS_OK);
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 0, 1, true, 4), LS_OK);
    CU_ASSERT_FALSE(ls_schedule_settled(schedule, 0));
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 0, 0, true, 4), LS_OK);
    CU_ASSERT_TRUE(ls_schedule_settled(schedule, 0));
    CU_ASSERT_EQUAL(ls_schedule_required(schedule, 0), 2);
    CU_ASSERT_FALSE(ls_schedule_next(schedule, &point, &replication));
    ls_schedule_free(schedule);
}

/* 4 and 8 are far apart, then equal values narrow the interval; it must stop at the first sufficient prefix, in any
 * order. */
static void test_stops_at_first_prefix(void)
{
    static const double values[] = {100, 104, 102, 102, 102, 102};
    static const uint64_t orders[][6] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 4, 3}};
    const ls_replications narrow = {2, 6, (char *)(uintptr_t) "speed", 0.03, 0.95};
    uint64_t expected = 2;
    while (!ls_precise_enough(values, expected, 0.03, 0.95)) expected++;
    CU_ASSERT_EQUAL(expected, 4); /* half-widths: 25.4, 4.97, 2.60 against 3.06 */
    for (int i = 0; i < 3; i++) {
        ls_schedule *schedule = ls_schedule_new(&narrow, 1);
        for (int k = 0; k < 6; k++) {
            CU_ASSERT_EQUAL(ls_schedule_take(schedule, 0, orders[i][k], true, values[orders[i][k]]), LS_OK);
        }
        CU_ASSERT_EQUAL(ls_schedule_required(schedule, 0), expected);
        ls_schedule_free(schedule);
    }
}

static void test_rule_edges(void)
{
    /* A metric that does not apply, or runs that fail, lead to the maximum and no further. */
    for (int failing = 0; failing < 2; failing++) {
        ls_schedule *schedule = ls_schedule_new(&rule, 1);
        uint32_t point;
        uint64_t replication, runs = 0;
        while (ls_schedule_next(schedule, &point, &replication)) {
            runs++;
            CU_ASSERT_EQUAL(ls_schedule_take(schedule, 0, replication, !failing, NAN), LS_OK);
        }
        CU_ASSERT_EQUAL(runs, 6);
        CU_ASSERT_TRUE(ls_schedule_settled(schedule, 0));
        ls_schedule_free(schedule);
    }
    /* A failed run does not count towards the minimum: two good ones are needed. */
    ls_schedule *schedule = ls_schedule_new(&rule, 2);
    ls_schedule_skip(schedule, 0);
    CU_ASSERT_TRUE(ls_schedule_settled(schedule, 0));
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 0, false, NAN), LS_OK);
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 1, true, 4), LS_OK);
    CU_ASSERT_EQUAL(ls_schedule_required(schedule, 1), 3);
    CU_ASSERT_EQUAL(ls_schedule_take(schedule, 1, 2, true, 4), LS_OK);
    CU_ASSERT_EQUAL(ls_schedule_required(schedule, 1), 3);
    ls_schedule_free(schedule);
}

/* ---- whole runs ---- */

#define SPEC                                                                                                           \
    "{\"seed\": 4, \"base\": {\"policy\": \"immediate\"}, \"replications\": {\"minimum\": 3, \"maximum\": 12, "        \
    "\"metric\":"                                                                                                      \
    "\"speed\", \"half_width\": 0.08}, \"sweep\": [{\"cartesian\": {\"producers.count\": [1, 2, 3, 4, 5, 6]}}]}"

typedef struct world {
    int64_t crash_point;     /* -1: none; the producer count at which replication 1 kills its process */
    int64_t fail_point;      /* the same, returning an error */
    int64_t interrupt_point; /* the same, sending SIGTERM to the parent; that run never ends by itself */
} world;

static const world sound = {-1, -1, -1};

static ls_result simulate(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                          ls_run_result *result, ls_error *error)
{
    const world *w = context;
    int64_t count = (int64_t)scenario->producers.count;
    if (replication == 1 && count == w->crash_point) kill(getpid(), SIGKILL);
    if (replication == 1 && count == w->fail_point) return ls_fail(error, LS_ERROR_LIMIT, "too many of %d", (int)count);
    if (replication == 1 && count == w->interrupt_point) {
        kill(getppid(), SIGTERM);
        for (;;) pause();
    }
    ls_random random = ls_random_open(seed, replication, LS_RANDOM_TEST, scenario->producers.count);
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) result->values[i] = NAN;
    result->values[LS_TEST_SPEED] = 10 + 0.25 * (double)count * ls_random_normal(&random);
    result->values[LS_TEST_DELAY] = ls_random_uniform(&random);
    result->events = replication + 1;
    result->wall_s = 1e-3 * (double)getpid(); /* different in every worker: must not reach the hash */
    return LS_OK;
}

typedef struct notes {
    uint32_t count;
    char last[512];
} notes;

static void note(void *context, const char *line)
{
    notes *n = context;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", line);
}

typedef struct outcome {
    ls_runner_report report;
    notes notes;
    char hash[LS_DIGEST_HEX_BYTES];
} outcome;

typedef struct setup {
    const char *database;
    const char *spec;
    const world *world;
    const char *version;
    uint32_t jobs, shard_index, shard_count;
    struct gaps *gaps; /* not NULL: nothing is run, what is missing goes here */
} setup;

typedef struct gaps {
    uint32_t count;
    uint64_t runs;
    ls_runner_gap last;
} gaps;

static ls_result take_gap(void *context, const ls_runner_gap *gap)
{
    gaps *g = context;
    g->count++;
    g->runs += gap->last - gap->first + 1;
    g->last = *gap;
    return LS_OK;
}

static outcome run(setup s)
{
    outcome out = {0};
    ls_error error = {""};
    ls_results *results = NULL;
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = ls_test_spec(s.spec != NULL ? s.spec : SPEC);
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path(s.database), LS_RESULTS_WRITE, &results, &error), LS_OK);
    ls_runner_config config = {.spec = spec,
                               .metrics = vocabulary.metrics,
                               .metric_count = vocabulary.metric_count,
                               .run = simulate,
                               .run_context = (void *)(uintptr_t)(s.world != NULL ? s.world : &sound),
                               .origin = {s.version != NULL ? s.version : "1", "sim"},
                               .results = results,
                               .jobs = s.jobs > 0 ? s.jobs : 1,
                               .shard_index = s.shard_index,
                               .shard_count = s.shard_count > 0 ? s.shard_count : 1,
                               .note = note,
                               .note_context = &out.notes};
    ls_result result = s.gaps == NULL ? ls_runner_run(&config, &out.report, &error)
                                      : ls_runner_missing(&config, take_gap, s.gaps, &out.report, &error);
    CU_ASSERT_EQUAL(result, LS_OK);
    if (result != LS_OK) printf("%s\n", error.text);
    CU_ASSERT_EQUAL(ls_results_hash(results, out.hash, &error), LS_OK);
    ls_results_close(results);
    ls_spec_free(spec);
    return out;
}

/* How many replications the rule asks of each point, worked out without the runner. */
static uint64_t replications_by_hand(void)
{
    uint64_t total = 0;
    for (uint64_t count = 1; count <= 6; count++) {
        double values[12];
        uint64_t k = 0;
        for (uint64_t r = 0; r < 12; r++) {
            ls_random random = ls_random_open(4, r, LS_RANDOM_TEST, count);
            values[r] = 10 + 0.25 * (double)count * ls_random_normal(&random);
        }
        for (k = 3; k < 12 && !ls_precise_enough(values, k, 0.08, 0.95); k++) continue;
        total += k;
    }
    return total;
}

static void test_same_content(void)
{
    outcome one = run((setup){.database = "j1.db", .jobs = 1});
    CU_ASSERT_EQUAL(one.report.ran, replications_by_hand());
    CU_ASSERT_EQUAL(one.report.required, one.report.ran);
    CU_ASSERT(one.report.ran > 18 && one.report.ran < 72); /* neither all at the minimum nor all at the maximum */
    for (uint32_t jobs = 2; jobs <= 5; jobs += 3) {
        char name[16];
        snprintf(name, sizeof name, "j%u.db", jobs);
        outcome many = run((setup){.database = name, .jobs = jobs});
        CU_ASSERT_EQUAL(many.report.ran, one.report.ran);
        CU_ASSERT_STRING_EQUAL(many.hash, one.hash);
    }
}

static void test_resume(void)
{
    outcome first = run((setup){.database = "resume.db", .jobs = 2});
    outcome second = run((setup){.database = "resume.db", .jobs = 2});
    CU_ASSERT_EQUAL(second.report.ran, 0);
    CU_ASSERT_EQUAL(second.report.reused, first.report.ran);
    CU_ASSERT_STRING_EQUAL(second.hash, first.hash);
    outcome other_version = run((setup){.database = "resume.db", .version = "2"});
    CU_ASSERT_EQUAL(other_version.report.reused, 0);
    CU_ASSERT_EQUAL(other_version.report.ran, first.report.ran);
    /* More replications of the same points: only what is missing. */
    static const char two[] = "{\"base\": {\"policy\": \"immediate\"}, \"replications\": 2}";
    static const char five[] = "{\"base\": {\"policy\": \"immediate\"}, \"replications\": 5}";
    CU_ASSERT_EQUAL(run((setup){.database = "more.db", .spec = two}).report.ran, 2);
    outcome more = run((setup){.database = "more.db", .spec = five});
    CU_ASSERT_EQUAL(more.report.ran, 3);
    CU_ASSERT_EQUAL(more.report.reused, 2);
}

static void test_shards(void)
{
    ls_results *results = NULL;
    char hash[LS_DIGEST_HEX_BYTES];
    ls_error error = {""};
    outcome whole = run((setup){.database = "whole.db"});
    outcome left = run((setup){.database = "shard1.db", .shard_index = 0, .shard_count = 2});
    outcome right = run((setup){.database = "shard2.db", .shard_index = 1, .shard_count = 2});
    CU_ASSERT_EQUAL(left.report.ran + right.report.ran, whole.report.ran);
    CU_ASSERT(left.report.ran > 0 && right.report.ran > 0);
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path("shard1.db"), LS_RESULTS_WRITE, &results, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_merge(results, ls_test_path("shard2.db"), &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_hash(results, hash, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(hash, whole.hash);
    ls_results_close(results);
}

/* The spec has 6 points with at least 3 replications each. */
static void test_missing(void)
{
    gaps none = {0}, odd = {0}, crashed = {0}, foreign = {0};
    run((setup){.database = "part.db", .shard_index = 0, .shard_count = 2});
    outcome part = run((setup){.database = "part.db", .gaps = &odd});
    CU_ASSERT_EQUAL(odd.count, 3);
    CU_ASSERT_EQUAL(odd.runs, 9);
    CU_ASSERT(odd.last.point == 5 && odd.last.first == 0 && odd.last.last == 2);
    outcome whole = run((setup){.database = "part.db"});
    outcome checked = run((setup){.database = "part.db", .gaps = &none});
    CU_ASSERT_EQUAL(none.count, 0);
    CU_ASSERT_EQUAL(checked.report.required, replications_by_hand());
    CU_ASSERT_EQUAL(checked.report.reused, replications_by_hand());
    CU_ASSERT_EQUAL(part.report.reused + whole.report.ran, replications_by_hand());
    CU_ASSERT_STRING_EQUAL(checked.hash, whole.hash); /* looking changes nothing */
    run((setup){.database = "part.db", .version = "2", .gaps = &foreign});
    CU_ASSERT_EQUAL(foreign.runs, 18); /* another program has run nothing yet */
    /* A crashed run is missing, and it alone. */
    const world crashing = {.crash_point = 2, .fail_point = -1, .interrupt_point = -1};
    run((setup){.database = "hole.db", .world = &crashing});
    run((setup){.database = "hole.db", .gaps = &crashed});
    CU_ASSERT(crashed.count == 1 && crashed.last.point == 1 && crashed.last.first == 1 && crashed.last.last == 1);
}

static void test_crash(void)
{
    const world crashing = {.crash_point = 2, .fail_point = -1, .interrupt_point = -1};
    outcome one = run((setup){.database = "crash1.db", .world = &crashing, .jobs = 1});
    outcome three = run((setup){.database = "crash3.db", .world = &crashing, .jobs = 3});
    CU_ASSERT_EQUAL(one.report.failed, 1);
    CU_ASSERT_EQUAL(one.notes.count, 1);
    CU_ASSERT_STRING_EQUAL(one.notes.last,
                           "point 1 (producers.count=2), replication 1: crashed: the worker was ended by signal 9 "
                           "(Killed)");
    CU_ASSERT_STRING_EQUAL(one.notes.last, three.notes.last);
    CU_ASSERT_STRING_EQUAL(one.hash, three.hash);
    CU_ASSERT_EQUAL(one.report.ran + one.report.failed, one.report.required);
    /* Run again by a sound program: the crashed run is made good, and others stay. */
    outcome again = run((setup){.database = "crash1.db"});
    CU_ASSERT_EQUAL(again.report.failed, 0);
    CU_ASSERT(again.report.ran >= 1);
    CU_ASSERT_EQUAL(again.report.ran + again.report.reused, again.report.required);
}

static void test_failure(void)
{
    const world failing = {.crash_point = -1, .fail_point = 6, .interrupt_point = -1};
    outcome out = run((setup){.database = "fail.db", .world = &failing, .jobs = 2});
    CU_ASSERT_EQUAL(out.report.failed, 1);
    CU_ASSERT_STRING_EQUAL(out.notes.last, "point 5 (producers.count=6), replication 1: failed: too many of 6");
    CU_ASSERT_FALSE(out.report.interrupted);
}

/* SIGTERM in the middle: what was finished stays, the rest is dropped, and taking it up again ends where an undisturbed
 * run does. The signal mask is as before. */
static void test_interruption(void)
{
    const world interrupting = {.crash_point = -1, .fail_point = -1, .interrupt_point = 4};
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    outcome whole = run((setup){.database = "calm.db"});
    outcome cut = run((setup){.database = "cut.db", .world = &interrupting, .jobs = 1});
    sigprocmask(SIG_SETMASK, NULL, &after);
    CU_ASSERT_TRUE(cut.report.interrupted);
    CU_ASSERT_EQUAL(cut.report.failed, 0);
    CU_ASSERT(cut.report.ran >=
              7); /* the minimum of the points before it, and its own replication 0, are more than that */
    CU_ASSERT(cut.report.ran < whole.report.ran);
    CU_ASSERT_STRING_NOT_EQUAL(cut.hash, whole.hash);
    CU_ASSERT_EQUAL(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    outcome rest = run((setup){.database = "cut.db", .jobs = 2});
    CU_ASSERT_EQUAL(rest.report.reused, cut.report.ran);
    CU_ASSERT_EQUAL(rest.report.ran, whole.report.ran - cut.report.ran);
    CU_ASSERT_STRING_EQUAL(rest.hash, whole.hash);
}

LS_SUITE(runner, {"schedule: fixed number", test_fixed_number}, {"schedule: a guess is dropped", test_guess_is_void},
         {"schedule: first sufficient prefix", test_stops_at_first_prefix},
         {"schedule: edges of the rule", test_rule_edges}, {"same content for any -j", test_same_content},
         {"resume", test_resume}, {"shards", test_shards},
         {"missing", test_missing}, {"crash", test_crash}, {"failure", test_failure},
         {"interruption", test_interruption})
