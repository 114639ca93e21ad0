/* event_queue.h - the pending events of one engine; for engine.c, the tests and the benchmarks alone.
 *
 * event_queue.c tells what it is (a stable radix queue) and why. The two hot paths, push into a far bucket and pop from
 * the sorted front, are inline here so that the engine's loop has no call in it.
 */
#ifndef LS_EVENT_QUEUE_H
#define LS_EVENT_QUEUE_H

#include "sim/engine.h"

enum {
    LS_QUEUE_DIGIT_BITS = 8,
    LS_QUEUE_DIGITS = 1 << LS_QUEUE_DIGIT_BITS,
    LS_QUEUE_LEVELS = (63 + LS_QUEUE_DIGIT_BITS - 1) / LS_QUEUE_DIGIT_BITS,
    LS_QUEUE_WORDS = LS_QUEUE_DIGITS / 64,
    LS_QUEUE_CHUNK_EVENTS = 21,
    LS_QUEUE_SORT_EVENTS = 32,  /* a bucket of up to so many is sorted, a fuller one is spread over the level below */
    LS_QUEUE_FRONT_EVENTS = 96, /* the sorted front never holds more: bounds the cost of inserting into it */
    LS_QUEUE_FRONT_SLOTS = 2 * LS_QUEUE_FRONT_EVENTS
};

/* A piece of a bucket: 512 bytes. */
typedef struct ls_event_chunk {
    struct ls_event_chunk *next;
    ls_engine_event events[LS_QUEUE_CHUNK_EVENTS];
} ls_event_chunk;

/* A list of chunks, all full but the last, in order of insertion. Empty: chunks is 0. */
typedef struct ls_event_bucket {
    ls_event_chunk *first;
    ls_event_chunk *last;
    uint32_t last_used; /* events in the last chunk; LS_QUEUE_CHUNK_EVENTS when empty, so that a push takes a chunk */
    uint32_t chunks;
} ls_event_bucket;

typedef struct ls_event_slab ls_event_slab;

typedef struct ls_event_queue {
    uint64_t frontier;  /* whatever lies before it is in the front */
    uint64_t reference; /* what the buckets' digits are relative to: frontier, or the moment before it */
    uint32_t front_first;
    uint32_t front_last;
    uint32_t front_level;     /* the front's range ends where a digit of this level does; lower levels are empty */
    uint32_t occupied_levels; /* bit l: some bucket of level l holds events */
    uint64_t count;
    uint64_t count_limit; /* so many events find room without a further allocation, wherever they go */
    ls_event_chunk *free_chunks;
    ls_event_chunk *fresh; /* chunks of the newest slab never used yet: fresh .. fresh_end */
    ls_event_chunk *fresh_end;
    ls_event_slab *slabs;
    uint64_t chunk_count; /* of all slabs */
    uint64_t moved;       /* events moved from a bucket or the front to a bucket or the front, so far */
    uint64_t occupied[LS_QUEUE_LEVELS][LS_QUEUE_WORDS];
    ls_engine_event front[LS_QUEUE_FRONT_SLOTS];
    ls_event_bucket buckets[LS_QUEUE_LEVELS][LS_QUEUE_DIGITS];
} ls_event_queue;

/* Makes an empty queue of any memory; allocates nothing. */
void ls_event_queue_initialise(ls_event_queue *queue);

/* Frees what the queue holds, not the queue itself. */
void ls_event_queue_release(ls_event_queue *queue);

/* The slow paths, for the inline functions below alone: a push that needs memory or a chunk or belongs in the front,
 * and the front's next filling. */
ls_result ls__event_queue_push_slow(ls_event_queue *queue, ls_engine_event event, uint64_t now);
bool ls__event_queue_refill(ls_event_queue *queue, uint64_t until);

static inline uint32_t ls__event_queue_digit(int64_t at_ns, uint32_t level)
{
    return (uint32_t)((uint64_t)at_ns >> (level * LS_QUEUE_DIGIT_BITS)) & (LS_QUEUE_DIGITS - 1);
}

/* That of the highest digit in which a time at or after the frontier differs from the reference. */
static inline uint32_t ls__event_queue_level(const ls_event_queue *queue, int64_t at_ns)
{
    uint64_t difference = ((uint64_t)at_ns ^ queue->reference) | 1;
    return (63u - (uint32_t)__builtin_clzll(difference)) / LS_QUEUE_DIGIT_BITS;
}

/* Adds an event whose time is at least now_ns. now_ns must never fall, and be at least the time of the last event
 * popped and the until_ns of every pop that found nothing in time. LS_ERROR_MEMORY when it cannot grow; nothing has
 * changed. */
static inline ls_result ls_event_queue_push(ls_event_queue *queue, ls_engine_event event, int64_t now_ns)
{
    uint32_t level = ls__event_queue_level(queue, event.at_ns), digit = ls__event_queue_digit(event.at_ns, level);
    ls_event_bucket *bucket = &queue->buckets[level][digit];
    if ((uint64_t)event.at_ns < queue->frontier || bucket->last_used == LS_QUEUE_CHUNK_EVENTS) {
        return ls__event_queue_push_slow(queue, event, (uint64_t)now_ns);
    }
    if (queue->count == queue->count_limit) return ls__event_queue_push_slow(queue, event, (uint64_t)now_ns);
    queue->count++;
    bucket->last->events[bucket->last_used++] = event;
    return LS_OK;
}

/* Takes the first event out unless it lies after until_ns (not negative); false then, or when nothing is pending. */
static inline bool ls_event_queue_pop(ls_event_queue *queue, int64_t until_ns, ls_engine_event *event)
{
    if (queue->front_first == queue->front_last && !ls__event_queue_refill(queue, (uint64_t)until_ns)) return false;
    const ls_engine_event *first = &queue->front[queue->front_first];
    if (first->at_ns > until_ns) return false;
    *event = *first;
    queue->front_first++;
    queue->count--;
    return true;
}

#endif
