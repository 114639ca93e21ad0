/* bench_engine.c - the hold model: an event is taken, dispatched, and scheduled anew Exp(1) later, with 1e3, 1e5, 1e6 pending.
 *
 * Beside the engine (with its handler call): a bare loop around a 4-ary heap of 32-byte items and a bare calendar queue, both without an
 * engine, with the same generator (xorshift64 into a table of 65,536 exponential quantiles). Hold model: Jones, CACM 29(4), 1986.
 */
#include "sim/engine.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE 65536u

static double quantile[TABLE];
static uint64_t generator = UINT64_C(88172645463325252);

static inline int64_t draw_ns(void)
{
    generator ^= generator << 13;
    generator ^= generator >> 7;
    generator ^= generator << 17;
    return (int64_t)(quantile[generator & (TABLE - 1)] * 1e9);
}

typedef struct hold {
    uint64_t pending, events;
    ls_engine *engine;
    struct item *heap;
    struct calendar *calendar;
} hold;

/* --- the engine ---------------------------------------------------------------------------------------------------- */

static ls_engine_verdict handle(void *context, ls_engine *engine, const ls_engine_event *event)
{
    (void)context;
    ls_result result = ls_engine_schedule(engine, event->at_ns + draw_ns(), event->kind, event->entity, event->argument);
    return result == LS_OK ? LS_ENGINE_CONTINUE : LS_ENGINE_STOP;
}

static double run_engine(void *state)
{
    hold *h = state;
    if (ls_engine_run(h->engine, LS_NEVER_NS, h->events, handle, NULL) != LS_ENGINE_EVENT_LIMIT) abort();
    return (double)h->events;
}

/* --- a bare 4-ary heap ----------------------------------------------------------------------------------------------- */

struct item {
    int64_t at_ns;
    uint64_t rest[3];
};

static void sink(struct item *heap, uint64_t count, uint64_t at, struct item moving)
{
    for (;;) {
        uint64_t child = 4 * at + 1;
        if (child >= count) break;
        uint64_t least = child, end = child + 4 < count ? child + 4 : count;
        for (uint64_t i = child + 1; i < end; i++) {
            if (heap[i].at_ns < heap[least].at_ns) least = i;
        }
        if (heap[least].at_ns >= moving.at_ns) break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = moving;
}

static double run_heap(void *state)
{
    hold *h = state;
    for (uint64_t i = 0; i < h->events; i++) {
        struct item next = h->heap[0];
        next.at_ns += draw_ns();
        sink(h->heap, h->pending, 0, next);
    }
    return (double)h->events;
}

/* --- a bare calendar queue (Brown, CACM 31(10), 1988) with a width that suits this very model ---------------------------- */

struct node {
    int64_t at_ns;
    uint64_t rest[2];
    uint32_t next, pad;
};

struct calendar {
    struct node *nodes;
    uint32_t *days;
    uint64_t mask, day;
    uint32_t shift;
};

static void calendar_insert(struct calendar *c, uint32_t node)
{
    uint32_t *link = &c->days[((uint64_t)c->nodes[node].at_ns >> c->shift) & c->mask];
    while (*link != UINT32_MAX && c->nodes[*link].at_ns <= c->nodes[node].at_ns) link = &c->nodes[*link].next;
    c->nodes[node].next = *link;
    *link = node;
}

static double run_calendar(void *state)
{
    hold *h = state;
    struct calendar *c = h->calendar;
    for (uint64_t i = 0; i < h->events; i++) {
        uint32_t first;
        while ((first = c->days[c->day & c->mask]) == UINT32_MAX || (uint64_t)c->nodes[first].at_ns >> c->shift != c->day) c->day++;
        c->days[c->day & c->mask] = c->nodes[first].next;
        c->nodes[first].at_ns += draw_ns();
        calendar_insert(c, first);
    }
    return (double)h->events;
}

static struct calendar *calendar_new(uint64_t pending)
{
    struct calendar *c = calloc(1, sizeof *c);
    uint64_t days = 2;
    while (days < 2 * pending) days *= 2;
    c->mask = days - 1;
    while ((UINT64_C(1) << (c->shift + 1)) * pending <= 1000000000u) c->shift++; /* about one event a day */
    c->nodes = calloc(pending, sizeof *c->nodes);
    c->days = malloc(days * sizeof *c->days);
    memset(c->days, 0xff, days * sizeof *c->days);
    for (uint32_t i = 0; i < pending; i++) {
        c->nodes[i].at_ns = draw_ns();
        calendar_insert(c, i);
    }
    return c;
}

/* --- all together -------------------------------------------------------------------------------------------------------- */

static void compare_at(uint64_t pending)
{
    hold h = {.pending = pending, .events = pending >= 1000000 ? 4000000 : 6000000, .engine = ls_engine_new()};
    h.heap = malloc(pending * sizeof *h.heap);
    h.calendar = calendar_new(pending);
    for (uint64_t i = 0; i < pending; i++) {
        h.heap[i] = (struct item){.at_ns = draw_ns()};
        if (ls_engine_schedule(h.engine, draw_ns(), 0, 0, 0) != LS_OK) abort();
    }
    for (uint64_t i = pending; i-- > 0;) sink(h.heap, pending, i, h.heap[i]);
    run_engine(&h); /* to the steady state */
    run_heap(&h);
    run_calendar(&h);
    const ls_bench_work works[] = {run_engine, run_heap, run_calendar};
    void *const states[] = {&h, &h, &h};
    double rates[3];
    ls_bench_rates(works, states, 3, rates);
    char label[64];
    snprintf(label, sizeof label, "engine, %llu pending", (unsigned long long)pending);
    ls_bench_row(label, rates[0] / 1e6, "M events/s", "the bare 4-ary heap", rates[0] / rates[1]);
    ls_bench_row("  bare 4-ary heap loop", rates[1] / 1e6, "M events/s", "", 0);
    ls_bench_row("  bare calendar queue loop", rates[2] / 1e6, "M events/s", "the engine", rates[2] / rates[0]);
    ls_engine_free(h.engine);
    free(h.heap);
    free(h.calendar->nodes);
    free(h.calendar->days);
    free(h.calendar);
}

static void run(void)
{
    for (uint32_t i = 0; i < TABLE; i++) quantile[i] = -log((i + 0.5) / TABLE);
    compare_at(1000);
    compare_at(100000);
    compare_at(1000000);
}

LS_BENCH(engine, "hold model, one core", run)
