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
    queue->ties = empty_bucket;
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

static ls_event_bucket detach(ls_event_queue *queue, uint32_t level, uint32_t digit)
{
    ls_event_bucket bucket = queue->buckets[level][digit];
    queue->buckets[level][digit] = empty_bucket;
    uint64_t *words = queue->occupied[level];
    words[digit / 64] &= ~(UINT64_C(1) << (digit % 64));
    uint64_t any = 0;
    for (int i = 0; i < LS_QUEUE_WORDS; i++) any |= words[i];
    if (any == 0) queue->occupied_levels &= ~(1u << level);
    return bucket;
}

static uint32_t first_digit(const uint64_t words[LS_QUEUE_WORDS])
{
    uint32_t i = 0;
    while (words[i] == 0) i++;
    return i * 64 + (uint32_t)__builtin_ctzll(words[i]);
}

static void sort_into_front(ls_event_queue *queue, const ls_event_bucket *bucket, uint32_t bits)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t keys[LS_QUEUE_SORT_EVENTS];
    const ls_engine_event *where[LS_QUEUE_SORT_EVENTS];
    uint32_t count = 0;
    for (ls_event_chunk *chunk = bucket->first; chunk != NULL; chunk = chunk->next) {
        uint32_t used = used_of(bucket, chunk);
        for (uint32_t i = 0; i < used; i++) {
            uint64_t key = ((uint64_t)chunk->events[i].at_ns & mask) << 6 | count;
            where[count] = &chunk->events[i];
            uint32_t slot = count++;
            for (; slot > 0 && keys[slot - 1] > key; slot--) keys[slot] = keys[slot - 1];
            keys[slot] = key;
        }
    }
    for (uint32_t i = 0; i < count; i++) queue->front[i] = *where[keys[i] & 63];
    queue->front_first = 0;
    queue->front_last = count;
    queue->moved += count;
    for (ls_event_chunk *chunk = bucket->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        give_chunk_back(queue, chunk);
    }
}

static void spread(ls_event_queue *queue, const ls_event_bucket *bucket, uint32_t level)
{
    for (ls_event_chunk *chunk = bucket->first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (next != NULL) {
            for (size_t offset = 0; offset < sizeof *next; offset += 64) __builtin_prefetch((const char *)next + offset);
        }
        uint32_t used = used_of(bucket, chunk);
        for (uint32_t i = 0; i < used; i++) ls__event_queue_push_far(queue, &chunk->events[i], level);
        queue->moved += used;
        give_chunk_back(queue, chunk);
    }
}

static void take_ties(ls_event_queue *queue)
{
    ls_event_chunk *chunk = queue->ties.first;
    uint32_t used = used_of(&queue->ties, chunk);
    memcpy(queue->front, chunk->events, used * sizeof chunk->events[0]);
    queue->front_first = 0;
    queue->front_last = used;
    queue->moved += used;
    queue->ties.first = chunk->next;
    if (--queue->ties.chunks == 0) queue->ties = empty_bucket;
    give_chunk_back(queue, chunk);
}

bool ls__event_queue_refill(ls_event_queue *queue, uint64_t until)
{
    while (queue->ties.chunks == 0) {
        if (queue->occupied_levels == 0) return false;
        uint32_t level = (uint32_t)__builtin_ctz(queue->occupied_levels);
        uint32_t digit = first_digit(queue->occupied[level]);
        uint32_t bits = level * LS_QUEUE_DIGIT_BITS;
        uint64_t above = bits + LS_QUEUE_DIGIT_BITS >= 64 ? 0 : ~UINT64_C(0) << (bits + LS_QUEUE_DIGIT_BITS);
        uint64_t start = (queue->reference & above) | (uint64_t)digit << bits;
        if (start > until) return false;
        ls_event_bucket bucket = detach(queue, level, digit);
        queue->reference = start;
        queue->front_bits = bits;
        if (level == 0) {
            queue->ties = bucket;
            break;
        }
        uint64_t count = (uint64_t)(bucket.chunks - 1) * LS_QUEUE_CHUNK_EVENTS + bucket.last_used;
        if (count <= LS_QUEUE_SORT_EVENTS) {
            sort_into_front(queue, &bucket, bits);
            return true;
        }
        queue->front_bits = bits - LS_QUEUE_DIGIT_BITS;
        spread(queue, &bucket, level - 1);
    }
    take_ties(queue);
    return true;
}

/* The front is full: narrow its range around now by one digit, as often as it takes, and send what falls out of it to
 * the buckets. */
static void narrow_front(ls_event_queue *queue, uint64_t now)
{
    while (queue->front_bits > 0 && queue->front_last - queue->front_first >= LS_QUEUE_FRONT_EVENTS) {
        queue->front_bits -= LS_QUEUE_DIGIT_BITS;
        queue->reference = now >> queue->front_bits << queue->front_bits;
        uint32_t keep = queue->front_last;
        while (keep > queue->front_first &&
               ((uint64_t)queue->front[keep - 1].at_ns ^ queue->reference) >> queue->front_bits != 0) {
            keep--;
        }
        for (uint32_t i = keep; i < queue->front_last; i++) {
            ls__event_queue_push_far(queue, &queue->front[i], queue->front_bits / LS_QUEUE_DIGIT_BITS);
        }
        queue->moved += queue->front_last - keep;
        queue->front_last = keep;
    }
}

void ls__event_queue_push_front(ls_event_queue *queue, const ls_engine_event *event, uint64_t now)
{
    if (queue->front_bits > 0 && queue->front_last - queue->front_first >= LS_QUEUE_FRONT_EVENTS) {
        narrow_front(queue, now);
        uint64_t difference = (uint64_t)event->at_ns ^ queue->reference;
        if (difference >> queue->front_bits != 0) {
            ls__event_queue_push_far(queue, event, ls__event_queue_level(difference));
            return;
        }
    }
    if (queue->front_bits == 0) {
        ls__event_queue_append(queue, &queue->ties, event);
        return;
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
