/* engine.c - a ladder of buckets: what is far stays unsorted, what is near is sorted in handfuls.
 *
 *   far      an unsorted array of all events at or after the end of the outermost rung
 *   rung     2^k buckets of 2^shift ns each; a bucket is a chain of small blocks, unsorted. When one bucket holds too many
 *            events it is spread over a finer rung, so skewed and mixed time scales cost a level, not a long sort
 *   near     the bucket whose time has come: at most a few dozen events, sorted once, taken from the end
 *   late     a 4-ary heap for events that are scheduled into the near span itself (zero delays), and for a bucket that
 *            cannot be split because all its events have one time
 *
 * Why. An event is written three times (far, bucket, near), each time at the end of something, and sorted among about
 * four; a heap of a million events touches ten scattered cache lines for each. The idea is the ladder queue of Tang, Goh and
 * Thng (ACM TOMACS 15(3), 2005), with bucket widths that are powers of two and sub-rungs by need. Measured on two shared cores
 * by `make bench` (hold model, Exp(1), million events/s, this engine with its handler call against a bare 4-ary heap loop):
 * the numbers stand in the bench's output and in docs, not here, since they belong to a machine.
 *
 * Ties: each event carries a 64-bit sequence number; (time, sequence) is a total order, so the order of buckets, blocks and
 * heap is of no consequence.
 */
#include "sim/engine.h"

#include <string.h>

#define BLOCK_ITEMS 4u
#define NO_BLOCK UINT32_MAX
#define RUNGS_MAX 12u
#define BUCKETS_MIN 32u
#define BUCKETS_MAX (1u << 20)
#define NEAR_MAX 48u       /* events that are sorted at once; more are spread over a finer rung */
#define EVENTS_PER_BUCKET 4u
#define HEAP_ARITY 4u

typedef struct item {
    int64_t at_ns;
    uint64_t sequence;
    uint64_t argument;
    uint32_t kind;
    uint32_t entity;
} item;

typedef struct block {
    item items[BLOCK_ITEMS];
    uint32_t next;
} block;

typedef struct bucket {
    uint32_t head; /* newest block; all others of the chain are full */
    uint32_t count;
} bucket;

typedef struct rung {
    bucket *buckets;
    uint32_t capacity; /* of buckets */
    uint32_t count;
    uint32_t current;  /* the first bucket that has not been taken */
    uint32_t shift;    /* a bucket is 2^shift ns wide */
    int64_t start_ns;
    int64_t end_ns;
    uint64_t events;
} rung;

typedef struct item_array {
    item *items;
    uint64_t count;
    uint64_t capacity;
} item_array;

struct ls_engine {
    int64_t now_ns;
    int64_t near_end_ns; /* events before this go to `late` */
    uint32_t near_count;
    uint32_t rung_count;
    uint64_t sequence;
    uint64_t processed;
    uint64_t pending;
    uint64_t most_pending;
    item near[NEAR_MAX]; /* latest first */
    item_array late;     /* 4-ary heap */
    item_array far;
    rung rungs[RUNGS_MAX]; /* outermost first */
    block *blocks;
    uint32_t block_capacity;
    uint32_t block_count;
    uint32_t free_block;
    bool out_of_memory;
};

ls_engine *ls_engine_new(void)
{
    ls_engine *engine = ls_allocate_array(1, sizeof *engine);
    if (engine != NULL) engine->free_block = NO_BLOCK;
    return engine;
}

void ls_engine_free(ls_engine *engine)
{
    if (engine == NULL) return;
    for (uint32_t i = 0; i < RUNGS_MAX; i++) ls_free(engine->rungs[i].buckets);
    ls_free(engine->late.items);
    ls_free(engine->far.items);
    ls_free(engine->blocks);
    ls_free(engine);
}

static inline bool before(const item *left, const item *right)
{
    return left->at_ns != right->at_ns ? left->at_ns < right->at_ns : left->sequence < right->sequence;
}

static bool reserve(item_array *array, uint64_t count)
{
    if (count <= array->capacity) return true;
    uint64_t capacity = array->capacity == 0 ? 64 : 2 * array->capacity;
    while (capacity < count) capacity *= 2;
    item *grown = ls_reallocate(array->items, capacity * sizeof *grown);
    if (grown == NULL) return false;
    array->items = grown;
    array->capacity = capacity;
    return true;
}

/* --- late: a 4-ary heap ---------------------------------------------------------------------------------------------- */

static void heap_rise(item_array *heap, uint64_t at, item moving)
{
    while (at > 0) {
        uint64_t parent = (at - 1) / HEAP_ARITY;
        if (!before(&moving, &heap->items[parent])) break;
        heap->items[at] = heap->items[parent];
        at = parent;
    }
    heap->items[at] = moving;
}

static void heap_sink(item_array *heap, uint64_t at, item moving)
{
    for (;;) {
        uint64_t child = at * HEAP_ARITY + 1;
        if (child >= heap->count) break;
        uint64_t least = child, end = child + HEAP_ARITY < heap->count ? child + HEAP_ARITY : heap->count;
        for (uint64_t i = child + 1; i < end; i++) {
            if (before(&heap->items[i], &heap->items[least])) least = i;
        }
        if (!before(&heap->items[least], &moving)) break;
        heap->items[at] = heap->items[least];
        at = least;
    }
    heap->items[at] = moving;
}

static bool heap_push(item_array *heap, const item *added)
{
    if (!reserve(heap, heap->count + 1)) return false;
    heap_rise(heap, heap->count++, *added);
    return true;
}

static item heap_pop(item_array *heap)
{
    item top = heap->items[0], last = heap->items[--heap->count];
    if (heap->count > 0) heap_sink(heap, 0, last);
    return top;
}

/* --- buckets ----------------------------------------------------------------------------------------------------------- */

static uint32_t block_new(ls_engine *engine)
{
    uint32_t index = engine->free_block;
    if (index != NO_BLOCK) {
        engine->free_block = engine->blocks[index].next;
        return index;
    }
    if (engine->block_count == engine->block_capacity) {
        uint64_t capacity = engine->block_capacity == 0 ? 256 : 2 * (uint64_t)engine->block_capacity;
        if (capacity >= NO_BLOCK) return NO_BLOCK;
        block *grown = ls_reallocate(engine->blocks, capacity * sizeof *grown);
        if (grown == NULL) return NO_BLOCK;
        engine->blocks = grown;
        engine->block_capacity = (uint32_t)capacity;
    }
    return engine->block_count++;
}

static bool bucket_add(ls_engine *engine, rung *r, const item *added)
{
    bucket *b = &r->buckets[(uint64_t)(added->at_ns - r->start_ns) >> r->shift];
    uint32_t place = b->count % BLOCK_ITEMS;
    if (place == 0) {
        uint32_t fresh = block_new(engine);
        if (fresh == NO_BLOCK) return false;
        engine->blocks[fresh].next = b->count == 0 ? NO_BLOCK : b->head;
        b->head = fresh;
    }
    engine->blocks[b->head].items[place] = *added;
    b->count++;
    r->events++;
    return true;
}

/* Copies a bucket's events to items (room for b->count) and empties it. */
static void bucket_take(ls_engine *engine, rung *r, bucket *b, item *items)
{
    uint32_t index = b->head, left = b->count;
    while (left > 0) {
        block *part = &engine->blocks[index];
        uint32_t here = left % BLOCK_ITEMS == 0 ? BLOCK_ITEMS : left % BLOCK_ITEMS;
        memcpy(items, part->items, here * sizeof *items);
        items += here;
        left -= here;
        uint32_t next = part->next;
        part->next = engine->free_block;
        engine->free_block = index;
        index = next;
    }
    r->events -= b->count;
    b->count = 0;
}

/* Prepares the next rung for about `events` events in [start, start + span); it becomes the innermost. NULL: no memory. */
static rung *rung_open(ls_engine *engine, int64_t start_ns, uint64_t span_ns, uint64_t events)
{
    rung *r = &engine->rungs[engine->rung_count];
    uint32_t count = BUCKETS_MIN;
    while (count < BUCKETS_MAX && (uint64_t)count * EVENTS_PER_BUCKET < events) count *= 2;
    uint32_t shift = 0;
    while (shift < 62 && (span_ns - 1) >> shift >= count) shift++;
    uint64_t needed = ((span_ns - 1) >> shift) + 1;
    if (needed > r->capacity) {
        bucket *grown = ls_reallocate(r->buckets, count * sizeof *grown);
        if (grown == NULL) return NULL;
        r->buckets = grown;
        r->capacity = count;
    }
    memset(r->buckets, 0, needed * sizeof *r->buckets);
    r->count = (uint32_t)needed;
    r->current = 0;
    r->shift = shift;
    r->start_ns = start_ns;
    r->events = 0;
    uint64_t reach = needed << shift;
    r->end_ns = reach >= (uint64_t)(LS_NEVER_NS - start_ns) ? LS_NEVER_NS : start_ns + (int64_t)reach;
    engine->rung_count++;
    return r;
}

/* --- near -------------------------------------------------------------------------------------------------------------- */

/* Sorts the near events latest first; few, so insertion it is. */
static void sort_near(ls_engine *engine)
{
    item *near = engine->near;
    for (uint32_t i = 1; i < engine->near_count; i++) {
        item moving = near[i];
        uint32_t at = i;
        while (at > 0 && before(&near[at - 1], &moving)) {
            near[at] = near[at - 1];
            at--;
        }
        near[at] = moving;
    }
}

/* Makes the whole of an oversized bucket that cannot or need not be split the heap. */
static bool bucket_to_heap(ls_engine *engine, rung *r, bucket *b)
{
    if (!reserve(&engine->late, engine->late.count + b->count)) return false;
    uint64_t first = engine->late.count;
    uint32_t count = b->count;
    bucket_take(engine, r, b, engine->late.items + first);
    engine->late.count += count;
    for (uint64_t i = first; i < engine->late.count; i++) heap_rise(&engine->late, i, engine->late.items[i]);
    return true;
}

/* Spreads a bucket that holds too many events over a rung of its own, block by block: each block is free again before its
 * events are placed, so that in a steady state none is allocated. */
static bool bucket_split(ls_engine *engine, rung *r, uint32_t index)
{
    bucket *b = &r->buckets[index];
    uint32_t left = b->count, at = b->head;
    int64_t start_ns = r->start_ns + (int64_t)((uint64_t)index << r->shift);
    rung *finer = rung_open(engine, start_ns, UINT64_C(1) << r->shift, left);
    if (finer == NULL) return false;
    r->events -= left;
    b->count = 0;
    while (left > 0) {
        uint32_t here = left % BLOCK_ITEMS == 0 ? BLOCK_ITEMS : left % BLOCK_ITEMS;
        block part = engine->blocks[at];
        engine->blocks[at].next = engine->free_block;
        engine->free_block = at;
        for (uint32_t i = 0; i < here; i++) {
            if (!bucket_add(engine, finer, &part.items[i])) return false;
        }
        left -= here;
        at = part.next;
    }
    return true;
}

/* The far events become the outermost rung: those within twice their mean distance; the rest stays far. */
static bool far_to_rung(ls_engine *engine)
{
    item_array *far = &engine->far;
    int64_t first_ns = far->items[0].at_ns;
    for (uint64_t i = 1; i < far->count; i++) {
        if (far->items[i].at_ns < first_ns) first_ns = far->items[i].at_ns;
    }
    double sum = 0;
    for (uint64_t i = 0; i < far->count; i++) sum += (double)(far->items[i].at_ns - first_ns);
    double span = 2.0 * sum / (double)far->count + 1.0;
    uint64_t most = (uint64_t)(LS_NEVER_NS - first_ns);
    rung *r = rung_open(engine, first_ns, span < (double)most ? (uint64_t)span : most, far->count);
    if (r == NULL) return false;
    engine->near_end_ns = first_ns; /* what is scheduled before the rung begins goes to the heap */
    uint64_t kept = 0;
    bool good = true;
    for (uint64_t i = 0; i < far->count; i++) {
        item moving = far->items[i];
        if (!good || moving.at_ns >= r->end_ns || !(good = bucket_add(engine, r, &moving))) far->items[kept++] = moving;
    }
    far->count = kept;
    return good;
}

/* With few events altogether, all of them are near. */
static void far_to_near(ls_engine *engine)
{
    item_array *far = &engine->far;
    int64_t last_ns = engine->now_ns;
    engine->near_count = (uint32_t)far->count;
    for (uint64_t i = 0; i < far->count; i++) {
        engine->near[i] = far->items[i];
        if (far->items[i].at_ns > last_ns) last_ns = far->items[i].at_ns;
    }
    far->count = 0;
    engine->near_end_ns = last_ns + 1;
    sort_near(engine);
}

/* Brings the next non-empty bucket of the innermost rung near; true when something became near. */
static bool advance_rung(ls_engine *engine)
{
    rung *r = &engine->rungs[engine->rung_count - 1];
    if (r->events == 0) {
        engine->near_end_ns = r->end_ns;
        engine->rung_count--;
        return true;
    }
    while (r->buckets[r->current].count == 0) r->current++;
    uint32_t index = r->current;
    bucket *b = &r->buckets[index];
    if (b->count > NEAR_MAX && r->shift > 0 && engine->rung_count < RUNGS_MAX) {
        r->current++;
        return bucket_split(engine, r, index);
    }
    if (b->count > NEAR_MAX) {
        if (!bucket_to_heap(engine, r, b)) return false;
    } else {
        engine->near_count = b->count;
        bucket_take(engine, r, b, engine->near);
        sort_near(engine);
    }
    r->current++;
    uint64_t reach = (uint64_t)r->current << r->shift;
    bool at_end = r->current >= r->count || reach >= (uint64_t)(r->end_ns - r->start_ns);
    engine->near_end_ns = at_end ? r->end_ns : r->start_ns + (int64_t)reach;
    return true;
}

/* Fills near or late; false when there is nothing, or no memory. */
static bool bring_near(ls_engine *engine)
{
    if (engine->out_of_memory) return false;
    while (engine->near_count == 0 && engine->late.count == 0) {
        bool good = true;
        if (engine->rung_count > 0) {
            good = advance_rung(engine);
        } else if (engine->far.count == 0) {
            return false;
        } else if (engine->far.count <= NEAR_MAX) {
            far_to_near(engine);
        } else {
            good = far_to_rung(engine);
        }
        if (!good) {
            engine->out_of_memory = true;
            return false;
        }
    }
    return true;
}

/* --- interface ------------------------------------------------------------------------------------------------------------ */

ls_result ls_engine_schedule(ls_engine *engine, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (at_ns < engine->now_ns || at_ns == LS_NEVER_NS) return LS_ERROR_INVALID;
    if (engine->out_of_memory) return LS_ERROR_MEMORY;
    item added = {.at_ns = at_ns, .sequence = engine->sequence, .argument = argument, .kind = kind, .entity = entity};
    bool good = false, placed = false;
    if (at_ns < engine->near_end_ns) {
        good = heap_push(&engine->late, &added);
        placed = true;
    }
    for (uint32_t i = engine->rung_count; i > 0 && !placed; i--) {
        if (at_ns >= engine->rungs[i - 1].end_ns) continue;
        good = bucket_add(engine, &engine->rungs[i - 1], &added);
        placed = true;
    }
    if (!placed && (good = reserve(&engine->far, engine->far.count + 1))) engine->far.items[engine->far.count++] = added;
    if (!good) return LS_ERROR_MEMORY;
    engine->sequence++;
    engine->pending++;
    if (engine->pending > engine->most_pending) engine->most_pending = engine->pending;
    return LS_OK;
}

/* Which of the two near sources holds the next event. Something is near. */
static bool late_is_next(const ls_engine *engine)
{
    if (engine->late.count == 0) return false;
    return engine->near_count == 0 || before(&engine->late.items[0], &engine->near[engine->near_count - 1]);
}

bool ls_engine_next(ls_engine *engine, ls_engine_event *event)
{
    if (engine->near_count == 0 && engine->late.count == 0 && !bring_near(engine)) return false;
    item next = late_is_next(engine) ? heap_pop(&engine->late) : engine->near[--engine->near_count];
    engine->now_ns = next.at_ns;
    engine->processed++;
    engine->pending--;
    *event = (ls_engine_event){.at_ns = next.at_ns, .argument = next.argument, .kind = next.kind, .entity = next.entity};
    return true;
}

bool ls_engine_out_of_memory(const ls_engine *engine)
{
    return engine->out_of_memory;
}

static bool is_due(ls_engine *engine, int64_t until_ns)
{
    if (engine->near_count == 0 && engine->late.count == 0 && !bring_near(engine)) return false;
    const item *next = late_is_next(engine) ? &engine->late.items[0] : &engine->near[engine->near_count - 1];
    return next->at_ns <= until_ns;
}

ls_result ls_engine_run(ls_engine *engine, int64_t until_ns, uint64_t event_limit, ls_engine_handler handler, void *context)
{
    ls_engine_event event;
    for (uint64_t handled = 0; event_limit == 0 || handled < event_limit; handled++) {
        if (!is_due(engine, until_ns)) break;
        ls_engine_next(engine, &event);
        ls_result result = handler(context, &event);
        if (result != LS_OK) return result;
    }
    return engine->out_of_memory ? LS_ERROR_MEMORY : LS_OK;
}

int64_t ls_engine_now(const ls_engine *engine)
{
    return engine->now_ns;
}

uint64_t ls_engine_processed(const ls_engine *engine)
{
    return engine->processed;
}

uint64_t ls_engine_pending(const ls_engine *engine)
{
    return engine->pending;
}

uint64_t ls_engine_most_pending(const ls_engine *engine)
{
    return engine->most_pending;
}
