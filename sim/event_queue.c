/* event_queue.c - a stable radix queue. (header to come) */
#include "sim/event_queue.h"

#include <string.h>

struct ls_event_slab {
    ls_event_slab *next;
};

#define CHUNK_ALIGNMENT 64u

static const ls_event_bucket empty_bucket = {.last_used = LS_QUEUE_CHUNK_EVENTS};

void ls_event_queue_initialise(ls_event_queue *queue)
{
    memset(queue, 0, sizeof *queue);
    for (int level = 0; level < LS_QUEUE_LEVELS; level++) {
        for (int digit = 0; digit < LS_QUEUE_DIGITS; digit++) queue->buckets[level][digit] = empty_bucket;
    }
}

void ls_event_queue_release(ls_event_queue *queue)
{
    while (queue->slabs != NULL) {
        ls_event_slab *slab = queue->slabs;
        queue->slabs = slab->next;
        ls_free(slab);
    }
}

/* Chunks that `events` events can ever need: all full but one a bucket, and the one being emptied. */
static uint64_t chunks_for(uint64_t events)
{
    const uint64_t buckets = (uint64_t)LS_QUEUE_LEVELS * LS_QUEUE_DIGITS + 1;
    return events / LS_QUEUE_CHUNK_EVENTS + (events < buckets ? events : buckets) + 1;
}

bool ls__event_queue_grow(ls_event_queue *queue)
{
    uint64_t limit = queue->count_limit == 0 ? 64 : queue->count_limit * 2;
    uint64_t wanted = chunks_for(limit) - queue->chunk_count;
    if (wanted > (SIZE_MAX - sizeof(ls_event_slab) - CHUNK_ALIGNMENT) / sizeof(ls_event_chunk)) return false;
    ls_event_slab *slab = ls_allocate(sizeof *slab + CHUNK_ALIGNMENT + (size_t)wanted * sizeof(ls_event_chunk));
    if (slab == NULL) return false;
    slab->next = queue->slabs;
    queue->slabs = slab;
    while (queue->fresh != queue->fresh_end) {
        queue->fresh->next = queue->free_chunks;
        queue->free_chunks = queue->fresh++;
    }
    uintptr_t start = ((uintptr_t)(slab + 1) + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
    queue->fresh = (ls_event_chunk *)start;
    queue->fresh_end = queue->fresh + wanted;
    queue->chunk_count += wanted;
    queue->count_limit = limit;
    return true;
}

static void give_chunk_back(ls_event_queue *queue, ls_event_chunk *chunk)
{
    chunk->next = queue->free_chunks;
    queue->free_chunks = chunk;
}

static uint32_t used_of(const ls_event_bucket *bucket, const ls_event_chunk *chunk)
{
    return chunk == bucket->last ? bucket->last_used : LS_QUEUE_CHUNK_EVENTS;
}

static void mark_empty(ls_event_queue *queue, uint32_t level, uint32_t digit)
{
    uint64_t *words = queue->occupied[level];
    words[digit / 64] &= ~(UINT64_C(1) << (digit % 64));
    if (words[digit / 64] != 0) return;
    uint64_t any = 0;
    for (int i = 0; i < LS_QUEUE_WORDS; i++) any |= words[i];
    if (any == 0) queue->occupied_levels &= ~(1u << level);
}

/* The first occupied digit at or after this one, LS_QUEUE_DIGITS when there is none. */
static uint32_t next_digit(const uint64_t words[LS_QUEUE_WORDS], uint32_t digit)
{
    if (digit == LS_QUEUE_DIGITS) return LS_QUEUE_DIGITS;
    uint32_t i = digit / 64;
    uint64_t word = words[i] >> (digit % 64) << (digit % 64);
    while (word == 0) {
        if (++i == LS_QUEUE_WORDS) return LS_QUEUE_DIGITS;
        word = words[i];
    }
    return i * 64 + (uint32_t)__builtin_ctzll(word);
}

static uint64_t count_of(const ls_event_bucket *bucket)
{
    return (uint64_t)(bucket->chunks - 1) * LS_QUEUE_CHUNK_EVENTS + bucket->last_used;
}

static void sort_into_front(ls_event_queue *queue, ls_event_bucket *bucket)
{
    uint32_t last = queue->front_last;
    for (ls_event_chunk *chunk = bucket->first, *next; chunk != NULL; chunk = next) {
        uint32_t used = used_of(bucket, chunk);
        for (uint32_t i = 0; i < used; i++) {
            uint32_t slot = last++;
            int64_t at_ns = chunk->events[i].at_ns;
            for (; slot > 0 && queue->front[slot - 1].at_ns > at_ns; slot--) queue->front[slot] = queue->front[slot - 1];
            queue->front[slot] = chunk->events[i];
        }
        next = chunk->next;
        give_chunk_back(queue, chunk);
    }
    queue->moved += last - queue->front_last;
    queue->front_last = last;
    *bucket = empty_bucket;
}

static void spread(ls_event_queue *queue, ls_event_bucket *source, uint32_t level)
{
    ls_event_bucket bucket = *source;
    *source = empty_bucket;
    for (ls_event_chunk *chunk = bucket.first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (next != NULL) {
            for (size_t offset = 0; offset < sizeof *next; offset += 64) __builtin_prefetch((const char *)next + offset);
        }
        uint32_t used = used_of(&bucket, chunk);
        for (uint32_t i = 0; i < used; i++) ls__event_queue_push_bucket(queue, &chunk->events[i], level);
        queue->moved += used;
        give_chunk_back(queue, chunk);
    }
}

/* Many events at one and the same moment: the first chunk of them goes to the front, the others stay. */
static void take_ties(ls_event_queue *queue, ls_event_bucket *bucket)
{
    ls_event_chunk *chunk = bucket->first;
    memcpy(queue->front, chunk->events, sizeof chunk->events);
    queue->front_last = LS_QUEUE_CHUNK_EVENTS;
    queue->moved += LS_QUEUE_CHUNK_EVENTS;
    bucket->first = chunk->next;
    bucket->chunks--;
    give_chunk_back(queue, chunk);
}

bool ls__event_queue_refill(ls_event_queue *queue, uint64_t until)
{
    queue->front_first = queue->front_last = 0;
    for (;;) {
        if (queue->occupied_levels == 0) return false;
        uint32_t level = (uint32_t)__builtin_ctz(queue->occupied_levels);
        uint32_t digit = next_digit(queue->occupied[level], 0);
        uint32_t bits = level * LS_QUEUE_DIGIT_BITS;
        uint64_t above = queue->reference >> bits >> LS_QUEUE_DIGIT_BITS << LS_QUEUE_DIGIT_BITS;
        uint64_t start = (above | digit) << bits;
        if (start > until) return false;
        ls_event_bucket *bucket = &queue->buckets[level][digit];
        uint64_t count = count_of(bucket);
        if (count > LS_QUEUE_SORT_EVENTS) {
            queue->frontier = queue->reference = start;
            if (level == 0) {
                take_ties(queue, bucket);
                return true;
            }
            mark_empty(queue, level, digit);
            spread(queue, bucket, level - 1);
            continue;
        }
        for (;;) {
            mark_empty(queue, level, digit);
            sort_into_front(queue, bucket);
            uint32_t next = next_digit(queue->occupied[level], digit + 1);
            if (next == LS_QUEUE_DIGITS) break;
            bucket = &queue->buckets[level][next];
            if (queue->front_last + count_of(bucket) > LS_QUEUE_SORT_EVENTS) break;
            digit = next;
        }
        queue->front_level = level;
        queue->reference = ((above | digit) << bits) + ((UINT64_C(1) << bits) - 1);
        queue->frontier = queue->reference + 1;
        return true;
    }
}

/* Ends the front's range at the end of the digit that now lies in. */
static void set_frontier(ls_event_queue *queue, uint64_t now)
{
    uint32_t bits = queue->front_level * LS_QUEUE_DIGIT_BITS;
    queue->reference = now | ((UINT64_C(1) << bits) - 1);
    queue->frontier = queue->reference + 1;
}

/* The front is full. Its range shrinks around now, to one digit of its level, then of the level below and so on, until
 * half of it at most is left. When all that is left is at now itself, it stays and nothing more is let in. */
static void narrow_front(ls_event_queue *queue, uint64_t now)
{
    set_frontier(queue, now);
    for (;;) {
        uint32_t keep = queue->front_last;
        while (keep > queue->front_first && (uint64_t)queue->front[keep - 1].at_ns >= queue->frontier) keep--;
        for (uint32_t i = keep; i < queue->front_last; i++) ls__event_queue_push_far(queue, &queue->front[i]);
        queue->moved += queue->front_last - keep;
        queue->front_last = keep;
        if (keep - queue->front_first <= LS_QUEUE_FRONT_EVENTS / 2) return;
        if (queue->front_level == 0) break;
        queue->front_level--;
        set_frontier(queue, now);
    }
    queue->frontier = queue->reference = now;
}

void ls__event_queue_push_front(ls_event_queue *queue, const ls_engine_event *event, uint64_t now)
{
    if (queue->front_last - queue->front_first >= LS_QUEUE_FRONT_EVENTS) {
        narrow_front(queue, now);
        if ((uint64_t)event->at_ns >= queue->frontier) {
            ls__event_queue_push_far(queue, event);
            return;
        }
    }
    if (queue->front_last == LS_QUEUE_FRONT_SLOTS) {
        uint32_t held = queue->front_last - queue->front_first;
        memmove(queue->front, queue->front + queue->front_first, held * sizeof queue->front[0]);
        queue->front_first = 0;
        queue->front_last = held;
    }
    uint32_t slot = queue->front_last++;
    for (; slot > queue->front_first && queue->front[slot - 1].at_ns > event->at_ns; slot--) {
        queue->front[slot] = queue->front[slot - 1];
    }
    queue->front[slot] = *event;
}
