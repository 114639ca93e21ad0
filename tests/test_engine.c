/* test_engine.c - the engine and its queue against a list searched from end to end, on patterns made to hurt.
 *
 * Each pattern is a rule for the delay of the next event. The reference holds every pending event in an array and finds
 * the least (time, number) by looking at all of them; the engine must hand out exactly the same events, ties included.
 * That no pattern goes quadratic is asserted on a counter of moved events, not on time: an event is moved at most once
 * a level and once into the front, and for each push a front that narrows may send two events back to the buckets, from
 * which they return.
 */
#include "manifest/random.h"
#include "sim/engine.h"
#include "sim/event_queue.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR_NS INT64_C(3600000000000)

typedef int64_t (*delay_rule)(ls_random *random, uint64_t number, int64_t now_ns);

static int64_t delay_exponential(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number, (void)now_ns;
    return (int64_t)(1e9 * ls_random_exponential(random));
}

static int64_t delay_zero(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)random, (void)number, (void)now_ns;
    return 0;
}

static int64_t delay_few_values(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number, (void)now_ns;
    return (int64_t)ls_random_below(random, 4);
}

static int64_t delay_constant(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)random, (void)number, (void)now_ns;
    return 61000000;
}

static int64_t delay_bimodal(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number, (void)now_ns;
    if (ls_random_below(random, 10) == 0) return HOUR_NS + (int64_t)ls_random_below(random, (uint64_t)HOUR_NS);
    return 1 + (int64_t)ls_random_below(random, 10);
}

static int64_t delay_all_scales(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number, (void)now_ns;
    uint64_t bits = ls_random_below(random, 45);
    return (int64_t)ls_random_below(random, UINT64_C(1) << bits);
}

/* Everything far away, close together. */
static int64_t delay_far(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number;
    int64_t far_ns = INT64_C(1) << 61;
    return (now_ns < far_ns ? far_ns - now_ns : 0) + (int64_t)ls_random_below(random, 100000);
}

/* Bursts: many events at one time, then a gap. */
static int64_t delay_bursts(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)random;
    int64_t burst = (int64_t)(number / 100 % 7);
    int64_t at_ns = (now_ns / 1000000 + 1 + burst) * 1000000;
    return at_ns - now_ns;
}

/* Each event earlier than the one before, so that the front is always entered at its first place. */
static int64_t delay_falling(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)random, (void)now_ns;
    return (int64_t)(1000000 - number % 1000000);
}

/* Just before, at and just after the boundaries of digits. */
static int64_t delay_boundaries(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number;
    uint64_t bits = 1 + ls_random_below(random, 48);
    int64_t edge_ns = (int64_t)((((uint64_t)now_ns >> bits) + 1) << bits);
    int64_t at_ns = edge_ns - 1 + (int64_t)ls_random_below(random, 3);
    return at_ns - now_ns;
}

/* From nanoseconds to centuries, up to the last moment there is. */
static int64_t delay_whole_range(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number;
    int64_t delay_ns = (int64_t)exp2(62.9 * ls_random_uniform(random)) - 1, most_ns = LS_NEVER_NS - 1 - now_ns;
    return delay_ns < most_ns ? delay_ns : most_ns;
}

/* Everything within the last thousand nanoseconds of time. */
static int64_t delay_end_of_time(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number;
    int64_t wanted_ns = LS_NEVER_NS - 1 - (int64_t)ls_random_below(random, 1000);
    return wanted_ns > now_ns ? wanted_ns - now_ns : 0;
}

/* Thousands at two neighbouring moments, a few scattered over days. */
static int64_t delay_spike(ls_random *random, uint64_t number, int64_t now_ns)
{
    (void)number, (void)now_ns;
    if (ls_random_below(random, 1000) == 0) return (int64_t)ls_random_below(random, 100 * (uint64_t)HOUR_NS);
    return 1000000000 + (int64_t)ls_random_below(random, 2);
}

static const struct {
    const char *name;
    delay_rule rule;
} patterns[] = {{"exponential", delay_exponential}, {"all equal", delay_zero},        {"few values", delay_few_values},
                {"constant", delay_constant},       {"bimodal", delay_bimodal},       {"all scales", delay_all_scales},
                {"far", delay_far},                 {"bursts", delay_bursts},         {"falling", delay_falling},
                {"boundaries", delay_boundaries},   {"whole range", delay_whole_range},
                {"end of time", delay_end_of_time}, {"spike", delay_spike}};

enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

/* ---- the reference ---- */

typedef struct reference {
    struct {
        int64_t at_ns;
        uint64_t number;
    } *events;
    size_t count;
} reference;

static void reference_add(reference *list, int64_t at_ns, uint64_t number)
{
    list->events[list->count].at_ns = at_ns;
    list->events[list->count].number = number;
    list->count++;
}

static size_t reference_least(const reference *list)
{
    size_t least = 0;
    for (size_t i = 1; i < list->count; i++) {
        bool before = list->events[i].at_ns != list->events[least].at_ns
                          ? list->events[i].at_ns < list->events[least].at_ns
                          : list->events[i].number < list->events[least].number;
        if (before) least = i;
    }
    return least;
}

static void reference_remove(reference *list, size_t i)
{
    list->events[i] = list->events[--list->count];
}

/* ---- random operations, both side by side ---- */

typedef struct duel {
    reference list;
    ls_engine *engine;
    ls_random random;
    delay_rule rule;
    uint64_t number;
    uint64_t mistakes;
} duel;

static void duel_push(duel *both)
{
    int64_t now_ns = ls_engine_now(both->engine);
    int64_t at_ns = now_ns + both->rule(&both->random, both->number, now_ns);
    uint32_t entity = (uint32_t)(both->number & 0xffffffffu);
    if (ls_engine_schedule(both->engine, at_ns, 7, entity, both->number) != LS_OK) both->mistakes++;
    reference_add(&both->list, at_ns, both->number++);
}

static void duel_check(duel *both, const ls_engine_event *event)
{
    if (both->list.count == 0) {
        both->mistakes++;
        return;
    }
    size_t least = reference_least(&both->list);
    if (event->at_ns != both->list.events[least].at_ns || event->argument != both->list.events[least].number ||
        event->kind != 7 || event->entity != (uint32_t)event->argument) {
        both->mistakes++;
    }
    reference_remove(&both->list, least);
}

static void duel_pop(duel *both)
{
    ls_engine_event event;
    if (ls_engine_next(both->engine, &event)) duel_check(both, &event);
    else if (both->list.count != 0) both->mistakes++;
}

static ls_engine_verdict duel_handler(void *context, ls_engine *engine, const ls_engine_event *event)
{
    duel *both = context;
    if (ls_engine_now(engine) != event->at_ns) both->mistakes++;
    duel_check(both, event);
    return LS_ENGINE_CONTINUE;
}

/* Runs to a little beyond now, or to a little before the next event: the clock then stands between events. */
static void duel_run_a_little(duel *both)
{
    int64_t now_ns = ls_engine_now(both->engine), most_ns = LS_NEVER_NS - 1 - now_ns;
    int64_t until_ns = now_ns + (int64_t)ls_random_below(&both->random, most_ns < 999 ? (uint64_t)most_ns + 1 : 1000);
    if (both->list.count > 0 && ls_random_below(&both->random, 2) == 0) {
        int64_t next_ns = both->list.events[reference_least(&both->list)].at_ns;
        until_ns = next_ns - (int64_t)ls_random_below(&both->random, (uint64_t)(next_ns - now_ns) / 2 + 1);
    }
    ls_engine_end end = ls_engine_run(both->engine, until_ns, 0, duel_handler, both);
    ls_engine_end expected = both->list.count == 0 ? LS_ENGINE_EMPTY : LS_ENGINE_TIME_LIMIT;
    if (end != expected) both->mistakes++;
    if (end == LS_ENGINE_TIME_LIMIT && ls_engine_now(both->engine) != until_ns) both->mistakes++;
    if (both->list.count > 0 && both->list.events[reference_least(&both->list)].at_ns <= until_ns) both->mistakes++;
}

static void duel_run(delay_rule rule, const char *name, uint64_t seed, size_t most, uint64_t steps)
{
    duel both = {.engine = ls_engine_new(), .random = ls_random_open(seed, 0, LS_RANDOM_TEST, 0), .rule = rule};
    both.list.events = malloc(most * sizeof *both.list.events);
    CU_ASSERT_FATAL(both.engine != NULL && both.list.events != NULL);
    bool growing = true;
    for (uint64_t step = 0; step < steps; step++) {
        if (both.list.count == most) growing = false;
        if (both.list.count == 0) growing = true;
        uint64_t choice = ls_random_below(&both.random, 100);
        if (choice == 0) duel_run_a_little(&both);
        else if (both.list.count < most && choice < (growing ? 65u : 35u)) duel_push(&both);
        else duel_pop(&both);
        if (ls_engine_pending(both.engine) != both.list.count) both.mistakes++;
    }
    while (both.list.count > 0) duel_pop(&both);
    ls_engine_event event;
    if (ls_engine_next(both.engine, &event)) both.mistakes++;
    CU_ASSERT_EQUAL(both.mistakes, 0);
    if (both.mistakes != 0) printf("  pattern '%s', seed %llu\n", name, (unsigned long long)seed);
    CU_ASSERT_EQUAL(ls_engine_processed(both.engine), both.number);
    ls_engine_free(both.engine);
    free(both.list.events);
}

static void test_against_reference(void)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            duel_run(patterns[i].rule, patterns[i].name, seed, seed == 1 ? 5 : 60 * (size_t)seed * (size_t)seed, 8000);
        }
    }
}

/* One pattern after the other on one engine: what one leaves behind must not confuse the next. */
static int64_t delay_mixed(ls_random *random, uint64_t number, int64_t now_ns)
{
    size_t pattern = (size_t)(number / 50 % PATTERNS);
    bool runs_off = patterns[pattern].rule == delay_far || patterns[pattern].rule == delay_whole_range ||
                    patterns[pattern].rule == delay_end_of_time;
    if (runs_off) pattern = 0;
    return patterns[pattern].rule(random, number, now_ns);
}

static void test_mixed_patterns(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++) duel_run(delay_mixed, "mixed", seed, 200 * (size_t)seed, 20000);
}

/* ---- many events: sorted order by qsort, and the work done ---- */

typedef struct stamped {
    int64_t at_ns;
    uint64_t number;
} stamped;

static int compare_stamped(const void *left, const void *right)
{
    const stamped *a = left, *b = right;
    if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

enum { MOVES_MAX = LS_QUEUE_LEVELS + 5 };

/* Fill, drain; nothing is added on the way, so that qsort tells the order. Draining must not allocate. */
static void fill_and_drain(delay_rule rule, uint32_t count)
{
    ls_event_queue *queue = malloc(sizeof *queue);
    stamped *expected = malloc(count * sizeof *expected);
    CU_ASSERT_FATAL(queue != NULL && expected != NULL);
    ls_event_queue_initialise(queue);
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    bool pushed = true;
    for (uint32_t i = 0; i < count; i++) {
        expected[i] = (stamped){.at_ns = rule(&random, i, 0), .number = i};
        ls_engine_event event = {.at_ns = expected[i].at_ns, .argument = i};
        pushed = pushed && ls_event_queue_push(queue, event, 0) == LS_OK;
    }
    CU_ASSERT_FATAL(pushed);
    qsort(expected, count, sizeof *expected, compare_stamped);
    ls_fail_allocations_after(0);
    uint64_t mistakes = 0;
    ls_engine_event event;
    for (uint32_t i = 0; i < count; i++) {
        if (!ls_event_queue_pop(queue, LS_NEVER_NS, &event)) mistakes++;
        else if (event.at_ns != expected[i].at_ns || event.argument != expected[i].number) mistakes++;
    }
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(mistakes, 0);
    CU_ASSERT_FALSE(ls_event_queue_pop(queue, LS_NEVER_NS, &event));
    CU_ASSERT(queue->moved <= (uint64_t)MOVES_MAX * count);
    ls_event_queue_release(queue);
    free(expected);
    free(queue);
}

static void test_fill_and_drain(void)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        fill_and_drain(patterns[i].rule, 30000);
        fill_and_drain(patterns[i].rule, 33);
    }
}

/* Hold with each pattern, growing to 20000 pending and shrinking again (births and deaths), without allocation once the
 * greatest size was reached; time never goes back, ties come in order, and the work stays within its bound. */
static void grow_hold_shrink(delay_rule rule)
{
    const uint64_t greatest = 20000, holds = 60000;
    ls_event_queue *queue = malloc(sizeof *queue);
    CU_ASSERT_FATAL(queue != NULL);
    ls_event_queue_initialise(queue);
    ls_random random = ls_random_open(13, 0, LS_RANDOM_TEST, 0);
    ls_engine_event event = {.at_ns = 0}, last = {.at_ns = -1};
    uint64_t number = 0, mistakes = 0, popped = 0;
    ls_event_queue_push(queue, event, 0);
    number++;
    while (queue->count > 0) {
        ls_event_queue_pop(queue, LS_NEVER_NS, &event);
        popped++;
        if (event.at_ns < last.at_ns || (event.at_ns == last.at_ns && event.argument < last.argument)) mistakes++;
        last = event;
        bool growing = number < greatest, holding = number < greatest + holds;
        if (!growing) ls_fail_allocations_after(0);
        for (int births = growing ? 2 : holding ? 1 : 0; births > 0; births--) {
            int64_t delay_ns = rule(&random, number, event.at_ns);
            ls_engine_event born = {.at_ns = event.at_ns + delay_ns, .argument = number++};
            if (ls_event_queue_push(queue, born, event.at_ns) != LS_OK) mistakes++;
        }
    }
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(mistakes, 0);
    CU_ASSERT_EQUAL(popped, number);
    CU_ASSERT(queue->moved <= MOVES_MAX * number);
    ls_event_queue_release(queue);
    free(queue);
}

static void test_grow_hold_shrink(void)
{
    for (size_t i = 0; i < PATTERNS; i++) grow_hold_shrink(patterns[i].rule);
}

/* A run stops at its limit long before the next of many far events; then many are scheduled in between, and only then
 * do the far ones come. What the queue did to look at the far ones must not have moved its present beyond the limit. */
static void test_filled_gap(void)
{
    enum { FAR = 1000, NEAR = 300 };
    duel both = {.engine = ls_engine_new(), .random = ls_random_open(41, 0, LS_RANDOM_TEST, 0), .rule = delay_far};
    both.list.events = malloc((FAR + NEAR) * sizeof *both.list.events);
    CU_ASSERT_FATAL(both.engine != NULL && both.list.events != NULL);
    for (int i = 0; i < FAR; i++) duel_push(&both);
    CU_ASSERT_EQUAL(ls_engine_run(both.engine, 12345, 0, duel_handler, &both), LS_ENGINE_TIME_LIMIT);
    both.rule = delay_all_scales;
    for (int i = 0; i < NEAR; i++) duel_push(&both);
    while (both.list.count > 0) duel_pop(&both);
    CU_ASSERT_EQUAL(both.mistakes, 0);
    CU_ASSERT_EQUAL(ls_engine_processed(both.engine), FAR + NEAR);
    ls_engine_free(both.engine);
    free(both.list.events);
}

/* ---- the engine's contract ---- */

static void test_refusals(void)
{
    ls_engine *engine = ls_engine_new();
    CU_ASSERT_FATAL(engine != NULL);
    ls_engine_event event;
    CU_ASSERT_FALSE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, -1, 0, 0, 0), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS, 0, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_pending(engine), 0);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 100, 1, 2, 3), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS - 1, 4, 5, UINT64_MAX), LS_OK);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT(event.at_ns == 100 && event.kind == 1 && event.entity == 2 && event.argument == 3);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 100);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 99, 0, 0, 0), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 100, 0, 0, 0), LS_OK);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT(event.at_ns == LS_NEVER_NS - 1 && event.kind == 4 && event.entity == 5 && event.argument == UINT64_MAX);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, LS_NEVER_NS - 1, 0, 0, 0), LS_OK);
    CU_ASSERT_TRUE(ls_engine_next(engine, &event));
    CU_ASSERT_FALSE(ls_engine_next(engine, &event));
    CU_ASSERT_EQUAL(ls_engine_processed(engine), 4);
    CU_ASSERT_EQUAL(ls_engine_greatest_pending(engine), 2);
    ls_engine_free(engine);
    ls_engine_free(NULL);
}

typedef struct script {
    uint32_t kinds[32];
    size_t count;
    size_t stop_at;
} script;

/* Kind 1 schedules a kind 2 at the same time, behind whatever is there already. */
static ls_engine_verdict follow_script(void *context, ls_engine *engine, const ls_engine_event *event)
{
    script *seen = context;
    if (seen->count < 32) seen->kinds[seen->count++] = event->kind;
    if (event->kind == 1) ls_engine_schedule(engine, event->at_ns, 2, 0, 0);
    return seen->count == seen->stop_at ? LS_ENGINE_STOP : LS_ENGINE_CONTINUE;
}

static void test_run_limits(void)
{
    ls_engine *engine = ls_engine_new();
    CU_ASSERT_FATAL(engine != NULL);
    script seen = {.count = 0};
    CU_ASSERT_EQUAL(ls_engine_run(engine, 1000, 0, follow_script, &seen), LS_ENGINE_EMPTY);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 0);
    ls_engine_schedule(engine, 1000, 1, 0, 0);
    ls_engine_schedule(engine, 1000, 3, 0, 0);
    ls_engine_schedule(engine, 5000000, 4, 0, 0);
    ls_engine_schedule(engine, 5000001, 5, 0, 0);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 999, 0, follow_script, &seen), LS_ENGINE_TIME_LIMIT);
    CU_ASSERT_EQUAL(seen.count, 0);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 999);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 998, 0, follow_script, &seen), LS_ENGINE_TIME_LIMIT);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 999);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 1000, 0, follow_script, &seen), LS_ENGINE_TIME_LIMIT);
    CU_ASSERT(seen.count == 3 && seen.kinds[0] == 1 && seen.kinds[1] == 3 && seen.kinds[2] == 2);
    CU_ASSERT_EQUAL(ls_engine_run(engine, 4999999, 0, follow_script, &seen), LS_ENGINE_TIME_LIMIT);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 4999999, 6, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_schedule(engine, 5000000, 7, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 2, follow_script, &seen), LS_ENGINE_EVENT_LIMIT);
    CU_ASSERT(seen.count == 5 && seen.kinds[3] == 6 && seen.kinds[4] == 4);
    seen.stop_at = 6;
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 0, follow_script, &seen), LS_ENGINE_STOPPED);
    CU_ASSERT_EQUAL(seen.kinds[5], 7);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 5000000);
    CU_ASSERT_EQUAL(ls_engine_run(engine, LS_NEVER_NS, 0, follow_script, &seen), LS_ENGINE_EMPTY);
    CU_ASSERT_EQUAL(ls_engine_now(engine), 5000001);
    CU_ASSERT_EQUAL(ls_engine_processed(engine), 7);
    ls_engine_free(engine);
}

/* Every allocation in turn fails: the refused event is not there, all others are, and trying again succeeds. */
static void test_out_of_memory(void)
{
    ls_fail_allocations_after(0);
    CU_ASSERT_PTR_NULL(ls_engine_new());
    ls_fail_allocations_after(-1);
    ls_engine *engine = ls_engine_new();
    CU_ASSERT_FATAL(engine != NULL);
    ls_random random = ls_random_open(17, 0, LS_RANDOM_TEST, 0);
    uint64_t refused = 0, scheduled = 0;
    ls_fail_allocations_after(0);
    while (scheduled < 5000) {
        int64_t at_ns = delay_all_scales(&random, 0, 0);
        ls_result result = ls_engine_schedule(engine, at_ns, 0, 0, scheduled);
        if (result == LS_ERROR_MEMORY) {
            refused++;
            CU_ASSERT_EQUAL(ls_engine_pending(engine), scheduled);
            ls_fail_allocations_after(1);
            result = ls_engine_schedule(engine, at_ns, 0, 0, scheduled);
            ls_fail_allocations_after(0);
        }
        if (result != LS_OK) break;
        scheduled++;
    }
    CU_ASSERT_EQUAL(scheduled, 5000);
    CU_ASSERT_EQUAL(refused, 8); /* 0, 64, 128, .. 4096 */
    uint64_t sum = 0, popped = 0;
    int64_t last_ns = 0;
    for (ls_engine_event event; ls_engine_next(engine, &event); popped++) {
        CU_ASSERT_FATAL(event.at_ns >= last_ns);
        last_ns = event.at_ns;
        sum += event.argument;
    }
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(popped, 5000);
    CU_ASSERT_EQUAL(sum, 5000u * 4999u / 2u);
    ls_engine_free(engine);
}

LS_SUITE(engine, {"against a searched list", test_against_reference}, {"mixed patterns", test_mixed_patterns},
         {"fill and drain, sorted", test_fill_and_drain}, {"grow, hold, shrink", test_grow_hold_shrink},
         {"gap before far events filled", test_filled_gap},
         {"past, never, last moment", test_refusals}, {"limits of a run", test_run_limits},
         {"every growth refused once", test_out_of_memory})
