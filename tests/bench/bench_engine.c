/* bench_engine.c - the engine under the hold model, against what an event queue costs bare.
 *
 * The hold model (Jones, "An empirical comparison of priority-queue and event-set implementations", CACM 29(4), 1986):
 * n events are pending; one is taken, and put back at its time plus Exp(1), here of mean 1 s. The engine does it through
 * ls_engine_run and a handler that calls ls_engine_schedule; its rivals are loops with queue and generator in one
 * function, nothing around them:
 *
 *   heap       a 4-ary heap of 32-byte entries ordered by (time, sequence), pop then push
 *   calendar   a calendar queue (Brown, "Calendar queues", CACM 31(10), 1988) of linked 32-byte nodes, whose width and
 *              number of buckets are set once to what suits n and never checked again
 *
 * All draw from the same generator: xorshift64 (Marsaglia, 2003) and -log of a uniform. Each run mixes time and number
 * of every event into a check value, and the three must agree on it.
 *
 * `engine` is the comparison; `engine_scales` asks whether the mean delay matters, whose ratio to a power of 256 decides in
 * the engine's queue how many events share a bucket; `engine_patterns` has delays that are not exponential, where a
 * calendar queue of fixed width would be lost, beside the heap, which does not care.
 */
#include "manifest/base.h"
#include "sim/engine.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum shape { EXPONENTIAL, CONSTANT, FEW_VALUES, BIMODAL } shape;

typedef struct hold {
    size_t pending;
    uint64_t holds;
    double mean_ns;
    shape shape;
    uint64_t state;
    uint64_t check; /* mixes the order of events: all contestants must agree */
} hold;

static inline uint64_t next_bits(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

static inline int64_t delay_ns(hold *run)
{
    uint64_t bits = next_bits(&run->state);
    switch (run->shape) {
    case EXPONENTIAL: break;
    case CONSTANT: return 61000000;
    case FEW_VALUES: return (int64_t)(bits >> 62);
    case BIMODAL: return (int64_t)(bits >> 60 == 0 ? (bits & 0xfffffffffff) : (bits & 7)); /* 1 in 16: up to 4.9 h */
    }
    return (int64_t)(-log((double)((bits >> 11) + 1) * 0x1p-53) * run->mean_ns);
}

static void *need(void *memory)
{
    if (memory != NULL) return memory;
    fprintf(stderr, "run-bench: out of memory\n");
    exit(1);
}

static inline void mix(hold *run, uint32_t entity, int64_t at_ns)
{
    run->check = run->check * 31 + entity + (uint64_t)at_ns;
}

static void start(hold *run)
{
    run->state = UINT64_C(88172645463325252);
    run->check = 0;
}

static double finish(const hold *run, double began_s)
{
    double elapsed_s = ls_bench_now_s() - began_s;
    ls_bench_keep(run->check);
    return (double)run->holds / elapsed_s * 1e-6;
}

/* ---- the engine ---- */

static ls_engine_verdict hold_event(void *context, ls_engine *engine, const ls_engine_event *event)
{
    hold *run = context;
    mix(run, event->entity, event->at_ns);
    ls_result result = ls_engine_schedule(engine, event->at_ns + delay_ns(run), event->kind, event->entity,
                                          event->argument);
    return result == LS_OK ? LS_ENGINE_CONTINUE : LS_ENGINE_STOP;
}

static double hold_engine(void *context)
{
    hold *run = context;
    start(run);
    ls_engine *engine = need(ls_engine_new());
    for (uint32_t i = 0; i < run->pending; i++) {
        if (ls_engine_schedule(engine, delay_ns(run), 1, i, 0) != LS_OK) need(NULL);
    }
    ls_engine_run(engine, LS_NEVER_NS, run->pending, hold_event, run);
    double began_s = ls_bench_now_s();
    ls_engine_run(engine, LS_NEVER_NS, run->holds, hold_event, run);
    double rate = finish(run, began_s);
    ls_engine_free(engine);
    return rate;
}

/* ---- a bare 4-ary heap ---- */

typedef struct heap_entry {
    int64_t at_ns;
    uint64_t sequence;
    uint32_t kind;
    uint32_t entity;
    uint64_t argument;
} heap_entry;

static inline bool earlier(const heap_entry *a, const heap_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static inline void heap_push(heap_entry *heap, size_t *size, heap_entry entry)
{
    size_t slot = (*size)++;
    while (slot > 0) {
        size_t parent = (slot - 1) / 4;
        if (!earlier(&entry, &heap[parent])) break;
        heap[slot] = heap[parent];
        slot = parent;
    }
    heap[slot] = entry;
}

static inline heap_entry heap_pop(heap_entry *heap, size_t *size)
{
    heap_entry top = heap[0], last = heap[--*size];
    size_t slot = 0;
    for (;;) {
        size_t child = 4 * slot + 1;
        if (child >= *size) break;
        size_t end = child + 4 < *size ? child + 4 : *size, least = child;
        for (size_t i = child + 1; i < end; i++) {
            if (earlier(&heap[i], &heap[least])) least = i;
        }
        if (!earlier(&heap[least], &last)) break;
        heap[slot] = heap[least];
        slot = least;
    }
    heap[slot] = last;
    return top;
}

static uint64_t heap_loop(hold *run, heap_entry *heap, size_t *size, uint64_t sequence, uint64_t holds)
{
    for (uint64_t i = 0; i < holds; i++) {
        heap_entry entry = heap_pop(heap, size);
        mix(run, entry.entity, entry.at_ns);
        entry.at_ns += delay_ns(run);
        entry.sequence = sequence++;
        heap_push(heap, size, entry);
    }
    return sequence;
}

static double hold_heap(void *context)
{
    hold *run = context;
    start(run);
    heap_entry *heap = need(calloc(run->pending, sizeof *heap));
    size_t size = 0;
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < run->pending; i++) {
        heap_push(heap, &size,
                  (heap_entry){.at_ns = delay_ns(run), .sequence = sequence++, .kind = 1, .entity = i});
    }
    sequence = heap_loop(run, heap, &size, sequence, run->pending);
    double began_s = ls_bench_now_s();
    heap_loop(run, heap, &size, sequence, run->holds);
    double rate = finish(run, began_s);
    free(heap);
    return rate;
}

/* ---- a bare calendar queue ---- */

typedef struct calendar_node {
    int64_t at_ns;
    uint32_t next; /* index of a node, 0 ends the list */
    uint32_t kind;
    uint32_t entity;
    uint32_t padding;
    uint64_t argument;
} calendar_node;

typedef struct calendar {
    calendar_node *nodes;
    uint32_t *buckets;
    uint64_t mask;
    uint32_t shift;    /* a bucket is 2^shift ns wide */
    int64_t day_ns;    /* end of the current bucket's day */
    uint64_t current;
} calendar;

static inline void calendar_push(calendar *queue, uint32_t index)
{
    int64_t at_ns = queue->nodes[index].at_ns;
    uint32_t *link = &queue->buckets[((uint64_t)at_ns >> queue->shift) & queue->mask];
    while (*link != 0 && queue->nodes[*link].at_ns <= at_ns) link = &queue->nodes[*link].next;
    queue->nodes[index].next = *link;
    *link = index;
}

static inline uint32_t calendar_pop(calendar *queue)
{
    for (;;) {
        uint32_t *bucket = &queue->buckets[queue->current & queue->mask], index = *bucket;
        if (index != 0 && queue->nodes[index].at_ns < queue->day_ns) {
            *bucket = queue->nodes[index].next;
            return index;
        }
        queue->current++;
        queue->day_ns += INT64_C(1) << queue->shift;
    }
}

static void calendar_loop(hold *run, calendar *queue, uint64_t holds)
{
    for (uint64_t i = 0; i < holds; i++) {
        uint32_t index = calendar_pop(queue);
        calendar_node *node = &queue->nodes[index];
        mix(run, node->entity, node->at_ns);
        node->at_ns += delay_ns(run);
        calendar_push(queue, index);
    }
}

static double hold_calendar(void *context)
{
    hold *run = context;
    start(run);
    calendar queue = {.mask = 1};
    while (queue.mask + 1 < 2 * run->pending) queue.mask = 2 * queue.mask + 1;
    while (INT64_C(1) << (queue.shift + 1) <= (int64_t)(run->mean_ns / (double)run->pending)) queue.shift++;
    queue.day_ns = INT64_C(1) << queue.shift;
    queue.nodes = need(calloc(run->pending + 1, sizeof *queue.nodes));
    queue.buckets = need(calloc(queue.mask + 1, sizeof *queue.buckets));
    for (uint32_t i = 0; i < run->pending; i++) {
        queue.nodes[i + 1] = (calendar_node){.at_ns = delay_ns(run), .kind = 1, .entity = i};
        calendar_push(&queue, i + 1);
    }
    calendar_loop(run, &queue, run->pending);
    double began_s = ls_bench_now_s();
    calendar_loop(run, &queue, run->holds);
    double rate = finish(run, began_s);
    free(queue.buckets);
    free(queue.nodes);
    return rate;
}

static const size_t sizes[] = {1000, 100000, 1000000};
enum { SIZES = sizeof sizes / sizeof sizes[0], HOLDS = 4000000 };

static void compare(const char *label, hold model, size_t contestants)
{
    hold runs[3] = {model, model, model};
    ls_bench_contestant all[] = {
        {"engine", hold_engine, &runs[0]}, {"heap", hold_heap, &runs[1]}, {"calendar", hold_calendar, &runs[2]}};
    double medians[3], values[5];
    ls_bench_interleaved(all, contestants, medians);
    size_t columns = 0;
    for (size_t i = 0; i < contestants; i++) values[columns++] = medians[i];
    for (size_t i = 1; i < contestants; i++) values[columns++] = medians[0] / medians[i];
    ls_bench_row(label, columns, values);
    for (size_t i = 1; i < contestants; i++) {
        if (runs[i].check != runs[0].check) printf("  engine and %s disagree about the events\n", all[i].name);
    }
}

static void bench_hold(void)
{
    static const char *const columns[] = {"engine M/s", "heap M/s", "calendar M/s", "engine/heap", "engine/calendar"};
    ls_bench_heading("pending events", 5, columns);
    for (size_t i = 0; i < SIZES; i++) {
        char label[32];
        snprintf(label, sizeof label, "%zu", sizes[i]);
        compare(label, (hold){.pending = sizes[i], .holds = HOLDS, .mean_ns = 1e9}, 3);
    }
}
LS_BENCH(engine, "hold model, Exp(1 s), million events/s: engine through its handler, bare 4-ary heap, bare calendar queue",
         bench_hold)

static void bench_scales(void)
{
    enum { MEANS = 4 };
    char names[MEANS][32];
    const char *columns[MEANS];
    for (int j = 0; j < MEANS; j++) {
        snprintf(names[j], sizeof names[j], "%.1f ms", 1000.0 / (double)(1 << (2 * j)));
        columns[j] = names[j];
    }
    ls_bench_heading("pending events, mean", MEANS, columns);
    for (size_t i = 0; i < SIZES; i++) {
        hold runs[MEANS];
        ls_bench_contestant contestants[MEANS];
        for (int j = 0; j < MEANS; j++) {
            runs[j] = (hold){.pending = sizes[i], .holds = HOLDS, .mean_ns = 1e9 / (double)(1 << (2 * j))};
            contestants[j] = (ls_bench_contestant){columns[j], hold_engine, &runs[j]};
        }
        double rates[MEANS];
        ls_bench_interleaved(contestants, MEANS, rates);
        char label[32];
        snprintf(label, sizeof label, "%zu", sizes[i]);
        ls_bench_row(label, MEANS, rates);
    }
}
LS_BENCH(engine_scales, "hold model, engine alone, million events/s by mean delay", bench_scales)

static void bench_patterns(void)
{
    static const char *const columns[] = {"engine M/s", "heap M/s", "engine/heap"};
    static const char *const names[] = {"exponential, 1 s", "constant, 61 ms", "0 to 3 ns", "0-7 ns, 1/16 hours"};
    ls_bench_heading("delays, 100000 pending", 3, columns);
    for (int i = EXPONENTIAL; i <= BIMODAL; i++) {
        compare(names[i], (hold){.pending = 100000, .holds = HOLDS, .mean_ns = 1e9, .shape = (shape)i}, 2);
    }
}
LS_BENCH(engine_patterns, "hold model with other delays, million events/s", bench_patterns)
