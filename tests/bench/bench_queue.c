/* bench_queue.c - the engine where a queue that guesses a bucket width could be wrong: other mean delays, other kinds
 * of delay.
 *
 * The hold model as in bench_engine.c. The mean delay is varied by powers of two, since its ratio to a power of 256
 * decides how many events share one of the queue's buckets. The patterns are delays that are not exponential, with many
 * ties or on two scales hours apart. The peer is a bare 4-ary heap of 32-byte entries ordered by (time, sequence), as
 * equal times must come in order of insertion; both fold every event into a check value, which must agree.
 */
#include "sim/engine.h"
#include "tests/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum pattern { EXPONENTIAL, CONSTANT, FEW_VALUES, BIMODAL } pattern;

enum { HOLDS = 3000000 };

typedef struct hold {
    uint64_t pending;
    double mean_ns;
    pattern pattern;
    uint64_t generator; /* xorshift64 (Marsaglia, 2003) */
    uint64_t check;
} hold;

static inline int64_t draw_ns(hold *model)
{
    model->generator ^= model->generator << 13;
    model->generator ^= model->generator >> 7;
    model->generator ^= model->generator << 17;
    uint64_t bits = model->generator;
    switch (model->pattern) {
    case EXPONENTIAL: break;
    case CONSTANT: return 61000000;
    case FEW_VALUES: return (int64_t)(bits >> 62);
    case BIMODAL: return (int64_t)(bits >> 60 == 0 ? (bits & UINT64_C(0xfffffffffff)) : (bits & 7));
    }
    return (int64_t)(-log((double)((bits >> 11) + 1) * 0x1p-53) * model->mean_ns);
}

static inline void fold(hold *model, int64_t at_ns, uint32_t entity)
{
    model->check = model->check * 31 + (uint64_t)at_ns + entity;
}

static void start(hold *model)
{
    model->generator = UINT64_C(88172645463325252);
    model->check = 0;
}

static void fail(void)
{
    fprintf(stderr, "bench: out of memory\n");
    exit(3);
}

static ls_engine_verdict handle(void *context, ls_engine *engine, const ls_engine_event *event)
{
    hold *model = context;
    fold(model, event->at_ns, event->entity);
    ls_result result =
        ls_engine_schedule(engine, event->at_ns + draw_ns(model), event->kind, event->entity, event->argument);
    return result == LS_OK ? LS_ENGINE_CONTINUE : LS_ENGINE_STOP;
}

static double run_engine(void *state)
{
    hold *model = state;
    start(model);
    ls_engine *engine = ls_engine_new();
    if (engine == NULL) fail();
    for (uint32_t i = 0; i < model->pending; i++) {
        if (ls_engine_schedule(engine, draw_ns(model), 0, i, 0) != LS_OK) fail();
    }
    if (ls_engine_run(engine, LS_NEVER_NS, HOLDS, handle, model) != LS_ENGINE_EVENT_LIMIT) fail();
    ls_engine_free(engine);
    return (double)model->pending + HOLDS;
}

typedef struct entry {
    int64_t at_ns;
    uint64_t sequence;
    uint32_t kind, entity;
    uint64_t argument;
} entry;

static inline bool earlier(const entry *a, const entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static inline void rise(entry *heap, uint64_t at, entry moving)
{
    for (; at > 0 && earlier(&moving, &heap[(at - 1) / 4]); at = (at - 1) / 4) heap[at] = heap[(at - 1) / 4];
    heap[at] = moving;
}

static inline void sink(entry *heap, uint64_t count, entry moving)
{
    uint64_t at = 0;
    for (uint64_t child = 1; child < count; child = 4 * at + 1) {
        uint64_t least = child, end = child + 4 < count ? child + 4 : count;
        for (uint64_t i = child + 1; i < end; i++) {
            if (earlier(&heap[i], &heap[least])) least = i;
        }
        if (!earlier(&heap[least], &moving)) break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = moving;
}

static double run_heap(void *state)
{
    hold *model = state;
    start(model);
    entry *heap = calloc(model->pending, sizeof *heap);
    if (heap == NULL) fail();
    uint64_t sequence = 0;
    for (uint32_t i = 0; i < model->pending; i++) {
        entry added = {.at_ns = draw_ns(model), .sequence = sequence++, .entity = i};
        rise(heap, i, added);
    }
    for (uint64_t i = 0; i < HOLDS; i++) {
        entry next = heap[0];
        fold(model, next.at_ns, next.entity);
        next.at_ns += draw_ns(model);
        next.sequence = sequence++;
        sink(heap, model->pending, next);
    }
    free(heap);
    return (double)model->pending + HOLDS;
}

static void compare(const char *label, hold model)
{
    hold models[2] = {model, model};
    const ls_bench_work works[] = {run_engine, run_heap};
    void *const states[] = {&models[0], &models[1]};
    double rates[2];
    ls_bench_rates(works, states, 2, rates);
    ls_bench_row(label, rates[0] / 1e6, "M events/s", "the bare 4-ary heap", rates[0] / rates[1]);
    if (models[0].check != models[1].check) printf("  engine and heap disagree about the order of events\n");
}

static void run_scales(void)
{
    static const uint64_t sizes[] = {1000, 100000, 1000000};
    for (int i = 0; i < 3; i++) {
        for (int halvings = 0; halvings < 8; halvings += 2) {
            double mean_ns = 1e9 / (double)(1 << halvings);
            char label[64];
            snprintf(label, sizeof label, "%llu pending, mean %.1f ms", (unsigned long long)sizes[i], mean_ns * 1e-6);
            compare(label, (hold){.pending = sizes[i], .mean_ns = mean_ns});
        }
    }
}

static void run_patterns(void)
{
    compare("exponential, mean 1 s", (hold){.pending = 100000, .mean_ns = 1e9});
    compare("constant, 61 ms", (hold){.pending = 100000, .pattern = CONSTANT});
    compare("0 to 3 ns: many ties", (hold){.pending = 100000, .pattern = FEW_VALUES});
    compare("0 to 7 ns, one in 16 up to 4.9 hours", (hold){.pending = 100000, .pattern = BIMODAL});
}

LS_BENCH(queue_scales, "hold model by mean delay, filling included, one core", run_scales)
LS_BENCH(queue_patterns, "hold model by kind of delay, 100000 pending, filling included, one core", run_patterns)
