/* test_engine.c - the event queue against a trivially correct one: a binary heap ordered by (time, order of
 * scheduling).
 *
 * The engine's structure (far, rungs, near, late) has its own edges for each shape of traffic: equal times, zero delays
 * while an event is handled, time scales from nanoseconds to centuries in one queue, bursts, few events, times at
 * bucket borders. Each pattern below is one such shape; every event that the engine hands out must be the reference's,
 * ties included.
 */
#include "manifest/random.h"
#include "sim/engine.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the reference ------------------------------------------------------------------------------------------------ */

typedef struct reference_event {
    int64_t at_ns;
    uint64_t sequence;
} reference_event;

typedef struct reference {
    reference_event *heap;
    uint64_t count, capacity;
    uint64_t sequence, most;
} reference;

static bool comes_before(reference_event left, reference_event right)
{
    return left.at_ns < right.at_ns || (left.at_ns == right.at_ns && left.sequence < right.sequence);
}

static uint64_t reference_push(reference *r, int64_t at_ns)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->heap = realloc(r->heap, r->capacity * sizeof *r->heap);
        if (r->heap == NULL) exit(1);
    }
    uint64_t at = r->count++;
    if (r->count > r->most) r->most = r->count;
    reference_event added = {at_ns, r->sequence++};
    for (; at > 0 && comes_before(added, r->heap[(at - 1) / 2]); at = (at - 1) / 2) r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = added;
    return added.sequence;
}

static reference_event reference_pop(reference *r)
{
    reference_event top = r->heap[0], last = r->heap[--r->count];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= r->count) break;
        if (child + 1 < r->count && comes_before(r->heap[child + 1], r->heap[child])) child++;
        if (!comes_before(r->heap[child], last)) break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return top;
}

/* --- both side by side -------------------------------------------------------------------------------------------- */

typedef struct trial {
    ls_engine *engine;
    reference expected;
    ls_random random;
    int64_t (*delay_ns)(struct trial *trial);
    uint32_t children_percent; /* an event that is handled schedules another with this chance */
    uint64_t taken;
    uint64_t wrong;
} trial;

/* Kind and entity follow from the sequence number, so that a mixed-up event shows. */
static uint32_t kind_of(uint64_t sequence) { return (uint32_t)(sequence * 2654435761u); }

static uint32_t entity_of(uint64_t sequence) { return UINT32_MAX - (uint32_t)sequence; }

static ls_result schedule_at(trial *t, int64_t at_ns)
{
    uint64_t sequence = t->expected.sequence;
    ls_result result = ls_engine_schedule(t->engine, at_ns, kind_of(sequence), entity_of(sequence), sequence);
    if (result == LS_OK) reference_push(&t->expected, at_ns);
    return result;
}

static void schedule_one(trial *t)
{
    int64_t now_ns = ls_engine_now(t->engine), delay_ns = t->delay_ns(t);
    int64_t at_ns = delay_ns > LS_NEVER_NS - 1 - now_ns ? LS_NEVER_NS - 1 : now_ns + delay_ns;
    t->wrong += schedule_at(t, at_ns) != LS_OK;
}

static bool is_expected(trial *t, const ls_engine_event *event)
{
    if (t->expected.count == 0) return false;
    reference_event wanted = reference_pop(&t->expected);
    t->taken++;
    return event->at_ns == wanted.at_ns && event->argument == wanted.sequence &&
           event->kind == kind_of(wanted.sequence) && event->entity == entity_of(wanted.sequence) &&
           ls_engine_now(t->engine) == wanted.at_ns;
}

static ls_result handle(void *context, const ls_engine_event *event)
{
    trial *t = context;
    t->wrong += !is_expected(t, event);
    if (t->children_percent > 0 && ls_random_below(&t->random, 100) < t->children_percent) schedule_one(t);
    return LS_OK;
}

static void check_counts(trial *t)
{
    t->wrong += ls_engine_pending(t->engine) != t->expected.count;
    t->wrong += ls_engine_processed(t->engine) != t->taken;
    t->wrong += ls_engine_most_pending(t->engine) != t->expected.most;
    t->wrong += ls_engine_out_of_memory(t->engine);
}

static void take(trial *t, uint64_t count)
{
    ls_engine_event event;
    for (uint64_t i = 0; i < count && t->expected.count > 0; i++) {
        t->wrong += !ls_engine_next(t->engine, &event) || !is_expected(t, &event);
    }
}

/* Runs up to a moment that lies anywhere around the next events, and checks that the first one left is later. */
static void run_until(trial *t)
{
    if (t->expected.count == 0) return;
    int64_t first_ns = t->expected.heap[0].at_ns, now_ns = ls_engine_now(t->engine);
    int64_t until_ns = first_ns - 1 + (int64_t)ls_random_below(&t->random, 3);
    if (until_ns < now_ns || ls_random_below(&t->random, 2) == 0) {
        int64_t delay_ns = t->delay_ns(t);
        until_ns = delay_ns > LS_NEVER_NS - 1 - now_ns ? LS_NEVER_NS - 1 : now_ns + delay_ns;
    }
    uint64_t limit = 1 + ls_random_below(&t->random, 200), before = t->taken;
    t->wrong += ls_engine_run(t->engine, until_ns, limit, handle, t) != LS_OK;
    bool stopped_by_limit = t->taken - before == limit;
    t->wrong += t->taken - before > limit;
    t->wrong += ls_engine_now(t->engine) > until_ns && t->taken > before;
    t->wrong += !stopped_by_limit && t->expected.count > 0 && t->expected.heap[0].at_ns <= until_ns;
}

static void begin_trial(trial *t, uint64_t seed, int64_t (*delay_ns)(trial *))
{
    *t = (trial){.engine = ls_engine_new(), .random = ls_random_open(seed, 0, LS_RANDOM_TEST, 0), .delay_ns = delay_ns};
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->engine);
}

static void end_trial(trial *t, const char *what, uint64_t seed)
{
    ls_engine_event event;
    t->children_percent = 0;
    take(t, UINT64_MAX);
    check_counts(t);
    t->wrong += ls_engine_next(t->engine, &event);
    if (t->wrong > 0)
        fprintf(stderr, "\n    %s, seed %llu: %llu faults\n", what, (unsigned long long)seed,
                (unsigned long long)t->wrong);
    CU_ASSERT_EQUAL(t->wrong, 0);
    ls_engine_free(t->engine);
    free(t->expected.heap);
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

static int64_t zero(trial *t)
{
    (void)t;
    return 0;
}

static int64_t one_of_three(trial *t) { return (int64_t)ls_random_below(&t->random, 3); }

static int64_t exponential_second(trial *t) { return (int64_t)(ls_random_exponential(&t->random) * 1e9); }

static int64_t nanoseconds_and_hours(trial *t)
{
    return ls_random_below(&t->random, 2) == 0 ? (int64_t)ls_random_below(&t->random, 5)
                                               : (int64_t)(ls_random_uniform(&t->random) * 3.6e15);
}

static int64_t one_hour_among_microseconds(trial *t)
{
    return ls_random_below(&t->random, 50) == 0 ? INT64_C(3600000000000)
                                                : (int64_t)(ls_random_exponential(&t->random) * 1e3);
}

static int64_t whole_milliseconds(trial *t) { return (int64_t)ls_random_below(&t->random, 1000) * 1000000; }

static int64_t centuries(trial *t) { return (int64_t)(ls_random_uniform(&t->random) * 9.2e18); }

static int64_t every_scale(trial *t) { return (int64_t)exp2(62.9 * ls_random_uniform(&t->random)) - 1; }

static int64_t every_scale_of_an_hour(trial *t) { return (int64_t)exp2(42 * ls_random_uniform(&t->random)); }

/* Powers of two and their neighbours, where buckets and rungs end. */
static int64_t borders(trial *t)
{
    int64_t power = INT64_C(1) << ls_random_below(&t->random, 40);
    return power + (int64_t)ls_random_below(&t->random, 3) - 1;
}

/* The last thousand nanoseconds of time. */
static int64_t end_of_time(trial *t)
{
    int64_t wanted = LS_NEVER_NS - 1 - (int64_t)ls_random_below(&t->random, 1000);
    int64_t now_ns = ls_engine_now(t->engine);
    return wanted > now_ns ? wanted - now_ns : 0;
}

static int64_t spike(trial *t)
{
    return ls_random_below(&t->random, 1000) == 0 ? (int64_t)(ls_random_uniform(&t->random) * 1e15)
                                                  : 1000000000 + (int64_t)ls_random_below(&t->random, 2);
}

static const struct {
    const char *name;
    int64_t (*delay_ns)(trial *);
} patterns[] = {{"zero", zero},
                {"one of three", one_of_three},
                {"exponential", exponential_second},
                {"nanoseconds and hours", nanoseconds_and_hours},
                {"one hour among microseconds", one_hour_among_microseconds},
                {"whole milliseconds", whole_milliseconds},
                {"centuries", centuries},
                {"every scale", every_scale},
                {"borders", borders},
                {"end of time", end_of_time},
                {"spike", spike}};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

/* Singles and bursts in, events out by next and by run, some of which schedule others. */
static void test_mixed(void)
{
    for (uint32_t p = 0; p < PATTERNS; p++) {
        for (uint64_t seed = 0; seed < 6; seed++) {
            trial t;
            begin_trial(&t, seed, patterns[p].delay_ns);
            t.children_percent = 90;
            for (uint32_t i = 0; i < 600; i++) {
                uint64_t what = ls_random_below(&t.random, 10);
                uint64_t burst = what == 0 ? ls_random_below(&t.random, 400) : what < 5 ? 1 : 0;
                for (uint64_t k = 0; k < burst; k++) schedule_one(&t);
                if (what >= 5 && what < 7) take(&t, 1 + ls_random_below(&t.random, 40));
                if (what >= 7) run_until(&t);
                check_counts(&t);
            }
            end_trial(&t, patterns[p].name, seed);
        }
    }
}

/* The queue grows to thousands, is held there, and shrinks to almost nothing, twice. */
static void test_growth_and_shrinking(void)
{
    for (uint32_t p = 0; p < PATTERNS; p++) {
        trial t;
        begin_trial(&t, 7, patterns[p].delay_ns);
        for (int round = 0; round < 2; round++) {
            while (t.expected.count < 8000) schedule_one(&t);
            t.children_percent = 100;
            t.wrong += ls_engine_run(t.engine, LS_NEVER_NS, 8000, handle, &t) != LS_OK;
            t.children_percent = 0;
            CU_ASSERT_EQUAL(ls_engine_pending(t.engine), 8000);
            take(&t, 7990);
            check_counts(&t);
        }
        end_trial(&t, patterns[p].name, 7);
    }
}

/* Never more than a handful, at which the engine sorts without buckets; and one at a time. */
static void test_few(void)
{
    const uint64_t most[] = {1, 2, 47, 48, 49};
    for (uint32_t p = 0; p < PATTERNS; p++) {
        for (uint32_t m = 0; m < 5; m++) {
            trial t;
            begin_trial(&t, m, patterns[p].delay_ns);
            for (uint32_t i = 0; i < 200; i++) {
                while (t.expected.count < most[m]) schedule_one(&t);
                take(&t, 1 + ls_random_below(&t.random, most[m]));
            }
            end_trial(&t, patterns[p].name, m);
        }
    }
}

/* Thousands at one moment, in order of scheduling, also those that are added while it is that moment; before and behind
 * it one each. */
static void test_one_moment(void)
{
    trial t;
    begin_trial(&t, 0, zero);
    int64_t moment_ns = INT64_C(5000000000);
    for (int i = 0; i < 5000; i++) t.wrong += schedule_at(&t, moment_ns) != LS_OK;
    t.wrong += schedule_at(&t, moment_ns + 1) != LS_OK;
    t.wrong += schedule_at(&t, moment_ns - 1) != LS_OK;
    take(&t, 10);
    CU_ASSERT_EQUAL(ls_engine_now(t.engine), moment_ns);
    for (int i = 0; i < 3000; i++) t.wrong += schedule_at(&t, moment_ns) != LS_OK;
    take(&t, 7991);
    CU_ASSERT_EQUAL(ls_engine_now(t.engine), moment_ns);
    CU_ASSERT_EQUAL(ls_engine_pending(t.engine), 1);
    take(&t, 1);
    CU_ASSERT_EQUAL(ls_engine_now(t.engine), moment_ns + 1);
    end_trial(&t, "one moment", 0);
}

/* Ever finer: each event lies half as far as the one before, from both ends. */
static void test_halving(void)
{
    trial t;
    begin_trial(&t, 0, zero);
    for (int round = 0; round < 100; round++) {
        for (int shift = 0; shift < 62; shift++)
            t.wrong += schedule_at(&t, INT64_MAX / 2 - (INT64_C(1) << shift) + 1) != LS_OK;
        for (int shift = 61; shift >= 0; shift--) t.wrong += schedule_at(&t, (INT64_C(1) << shift) - 1) != LS_OK;
    }
    end_trial(&t, "halving", 0);
}

/* --- the contract ------------------------------------------------------------------------------------------------- */

static void test_refusals(void)
{
    ls_engine *engine = ls_engine_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(engine);
    ls_engine_event event;
    CU_ASSERT_FALSE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(ls_engine_now(engine), 0);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, -1, 1, 1, 1), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS, 1, 1, 1), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_engine_pending(engine), 0);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 100, 7, 8, 9), LS_OK);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(event.at_ns, 100);
    CU_ASSERT_EQUAL(event.kind, 7);
    CU_ASSERT_EQUAL(event.entity, 8);
    CU_ASSERT_EQUAL(event.argument, 9);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 99, 1, 1, 1), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 100, 1, 1, 1), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS - 1, 2, 1, 1), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_pending(engine), 2);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(ls_engine_now(engine), LS_NEVER_NS - 1);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS - 1, 3, 1, 1), LS_OK);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(event.kind, 3);
    CU_ASSERT_FALSE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(ls_engine_processed(engine), 4);
    CU_ASSERT_EQUAL(ls_engine_most_pending(engine), 2);
    CU_ASSERT_FALSE(ls_engine_out_of_memory(engine));
    ls_engine_free(engine);
    ls_engine_free(NULL);
}

typedef struct counter {
    uint64_t calls, last;
    uint64_t stop_at;
} counter;

static ls_result count_calls(void *context, const ls_engine_event *event)
{
    counter *c = context;
    c->calls++;
    c->last = event->argument;
    return c->stop_at != 0 && event->argument == c->stop_at ? LS_ERROR_LIMIT : LS_OK;
}

static void test_run_limits(void)
{
    ls_engine *engine = ls_engine_new();
    CU_ASSERT_PTR_NOT_NULL_FATAL(engine);
    for (uint64_t i = 1; i <= 100; i++) CU_ASSERT_EQUAL(ls_engine_schedule(engine, (int64_t)i * 10, 0, 0, i), LS_OK);
    counter c = {0};
    CU_ASSERT_EQUAL(ls_engine_run(engine, 9, 0, count_calls, &c), LS_OK); /* nothing is due, the clock stays */
    CU_ASSERT_EQUAL(c.calls, 0);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 0);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 200, 0, count_calls, &c), LS_OK); /* the border is included */
    CU_ASSERT_EQUAL(c.calls, 20);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 200);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 205, 0, count_calls, &c), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 202, 0, 0, 1000), LS_OK); /* before the event that was looked at */
    CU_ASSERT_EQUAL(ls_engine_run(engine, 1000, 3, count_calls, &c), LS_OK);
    CU_ASSERT_EQUAL(c.calls, 23);
    CU_ASSERT_EQUAL(c.last, 22);
    c.stop_at = 50;
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 0, count_calls, &c), LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(c.last, 50);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 500);
    CU_ASSERT_EQUAL(ls_engine_processed(engine), 51);
    CU_ASSERT_EQUAL(ls_engine_pending(engine), 50);
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 0, count_calls, &c), LS_OK); /* and goes on */
    CU_ASSERT_EQUAL(c.calls, 101);
    CU_ASSERT_EQUAL(ls_engine_pending(engine), 0);
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 0, count_calls, &c), LS_OK);
    CU_ASSERT_EQUAL(c.calls, 101);
    ls_engine_free(engine);
}

/* In a steady state nothing is allocated, mixed time scales included. */
static void test_steady_state(void)
{
    int64_t (*const delays[])(trial *) = {exponential_second, one_hour_among_microseconds, every_scale_of_an_hour};
    for (int i = 0; i < 3; i++) {
        trial t;
        begin_trial(&t, 1, delays[i]);
        t.children_percent = 100;
        for (int k = 0; k < 2000; k++) schedule_one(&t);
        t.wrong += ls_engine_run(t.engine, LS_NEVER_NS, 100000, handle, &t) != LS_OK;
        uint64_t before = ls_allocations_made();
        t.wrong += ls_engine_run(t.engine, LS_NEVER_NS, 50000, handle, &t) != LS_OK;
        CU_ASSERT(ls_allocations_made() - before <= 2); /* an array may still find a new maximum */
        end_trial(&t, "steady state", 1);
    }
}

/* What has been scheduled before memory ran out comes in order once there is some again, unless memory was wanting when
 * events were to be brought near: then the engine says so and does nothing more. */
static void out_of_memory_after(int64_t successes, int64_t (*delay_ns)(trial *), uint64_t *refused, uint64_t *stuck)
{
    trial t = {.random = ls_random_open(2, 0, LS_RANDOM_TEST, 0), .delay_ns = delay_ns};
    ls_fail_allocations_after(successes);
    t.engine = ls_engine_new();
    bool failed = t.engine == NULL;
    for (int i = 0; i < 3000 && !failed; i++) {
        int64_t now_ns = ls_engine_now(t.engine), wait_ns = delay_ns(&t);
        failed = schedule_at(&t, wait_ns > LS_NEVER_NS - 1 - now_ns ? LS_NEVER_NS - 1 : now_ns + wait_ns) != LS_OK;
        if (!failed && i % 5 == 4) {
            ls_engine_event event;
            failed = !ls_engine_next(t.engine, &event);
            if (!failed) t.wrong += !is_expected(&t, &event);
        }
    }
    ls_fail_allocations_after(-1);
    if (t.engine == NULL) {
        CU_ASSERT_EQUAL(successes, 0);
        return;
    }
    if (ls_engine_out_of_memory(t.engine)) {
        ls_engine_event event;
        counter c = {0};
        CU_ASSERT_FALSE(ls_engine_next(t.engine, &event));
        CU_ASSERT_EQUAL(ls_engine_schedule(t.engine, ls_engine_now(t.engine), 0, 0, 0), LS_ERROR_MEMORY);
        CU_ASSERT_EQUAL(ls_engine_run(t.engine, LS_NEVER_NS, 0, count_calls, &c), LS_ERROR_MEMORY);
        CU_ASSERT_EQUAL(c.calls, 0);
        ls_engine_free(t.engine);
        free(t.expected.heap);
        (*stuck)++;
        return;
    }
    *refused += failed;
    CU_ASSERT_EQUAL(t.expected.count, ls_engine_pending(t.engine));
    end_trial(&t, "out of memory", 2);
}

static void test_out_of_memory(void)
{
    uint64_t refused = 0, stuck = 0;
    for (uint32_t p = 0; p < PATTERNS; p++) {
        for (int64_t successes = 0; successes < 40; successes++) {
            out_of_memory_after(successes, patterns[p].delay_ns, &refused, &stuck);
        }
    }
    CU_ASSERT(refused > 10); /* by schedule */
    CU_ASSERT(stuck > 10);   /* by next */
}

LS_SUITE(engine, {"mixed traffic", test_mixed}, {"growth and shrinking", test_growth_and_shrinking},
         {"few events", test_few}, {"thousands at one moment", test_one_moment}, {"ever finer", test_halving},
         {"refusals", test_refusals}, {"limits of a run", test_run_limits}, {"steady state", test_steady_state},
         {"out of memory", test_out_of_memory})
