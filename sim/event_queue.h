/* event_queue.h - the pending events of one engine; for engine.c, the tests and the benchmarks alone.
 *
 * event_queue.c tells what it is (a stable radix queue) and why. The two hot paths, push into a far bucket and pop from
 * the sorted front, are inline here so that the engine's loop has no call in it.
 */
#ifndef LS_EVENT_QUEUE_H
#define LS_EVENT_QUEUE_H

#include "sim/engine.h"

#include <assert.h>

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
    uint32_t front_level; /* the front's range ends where a digit of this level does; lower levels are empty */
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

/* The slow paths, for the inline functions below alone. */
bool ls__event_queue_grow(ls_event_queue *queue);
bool ls__event_queue_refill(ls_event_queue *queue, uint64_t until);
void ls__event_queue_push_front(ls_event_queue *queue, ls_engine_event event, uint64_t now);

static inline ls_event_chunk *ls__event_queue_take_chunk(ls_event_queue *queue)
{
    ls_event_chunk *chunk = queue->free_chunks;
    if (chunk != NULL) {
        queue->free_chunks = chunk->next;
        return chunk;
    }
    assert(queue->fresh != queue->fresh_end);
    return queue->fresh++;
}

static inline void ls__event_queue_append(ls_event_queue *queue, ls_event_bucket *bucket, ls_engine_event event)
{
    if (bucket->last_used == LS_QUEUE_CHUNK_EVENTS) {
        ls_event_chunk *chunk = ls__event_queue_take_chunk(queue);
        chunk->next = NULL;
        if (bucket->chunks++ == 0) bucket->first = chunk;
        else bucket->last->next = chunk;
        bucket->last = chunk;
        bucket->last_used = 0;
    }
    bucket->last->events[bucket->last_used++] = event;
}

static inline void ls__event_queue_push_bucket(ls_event_queue *queue, ls_engine_event event, uint32_t level)
{
    uint32_t digit = (uint32_t)((uint64_t)event.at_ns >> (level * LS_QUEUE_DIGIT_BITS)) & (LS_QUEUE_DIGITS - 1);
    ls__event_queue_append(queue, &queue->buckets[level][digit], event);
    queue->occupied[level][digit / 64] |= UINT64_C(1) << (digit % 64);
    queue->occupied_levels |= 1u << level;
}

/* To the bucket of the highest digit in which the event's time, at or after the frontier, differs from the reference. */
static inline void ls__event_queue_push_far(ls_event_queue *queue, ls_engine_event event)
{
    uint64_t difference = ((uint64_t)event.at_ns ^ queue->reference) | 1;
    ls__event_queue_push_bucket(queue, event, (63u - (uint32_t)__builtin_clzll(difference)) / LS_QUEUE_DIGIT_BITS);
}

/* Adds an event whose time is at least now_ns. now_ns must never fall, and be at least the time of the last event popped
 * and the until_ns of every pop that found nothing in time. False when out of memory, and nothing changed. */
static inline bool ls_event_queue_push(ls_event_queue *queue, ls_engine_event event, int64_t now_ns)
{
    if (queue->count == queue->count_limit && !ls__event_queue_grow(queue)) return false;
    queue->count++;
    if ((uint64_t)event.at_ns < queue->frontier) ls__event_queue_push_front(queue, event, (uint64_t)now_ns);
    else ls__event_queue_push_far(queue, event);
    return true;
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
