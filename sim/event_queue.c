/* event_queue.c - the pending events: a stable radix queue with a sorted front.
 *
 * The idea. Virtual time never goes back, so a queue may put events by where they differ from the present. Read a time
 * as a row of 8-bit digits. A bucket (level, digit) holds the events whose time agrees with `reference` above that
 * level and has that digit, a greater one, in it: the buckets of level 0 are single nanoseconds, those of level 7 about
 * two years. The next events therefore lie in the first occupied bucket of the lowest occupied level. If they are few,
 * they are sorted into the front, an array from which pop takes one after the other, together with the buckets that
 * follow as long as they are few; if they are many, they are spread over the level below. This is the radix heap
 * (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", JACM 37(2), 1990) and the
 * hierarchical timing wheel (Varghese, Lauck, "Hashed and hierarchical timing wheels", SOSP 1987), with the "bottom" of
 * the ladder queue (Tang, Goh, Thng, "Ladder queue", ACM TOMACS 15(3), 2005) in place of their lowest levels.
 *
 * Where an event goes: before `frontier`, into the front, behind whatever has its time; otherwise to the bucket that
 * its highest digit other than the reference's names. The reference is the last moment of the front's range (or, after
 * a spread and among ties, its start), so the bucket of a time is the same for all events of that time whenever they
 * come, until the bucket itself is taken or spread, in order. Hence ties need no sequence number: an event is 24 bytes.
 *
 * Why nothing goes quadratic. A spread moves an event down a level, and no event ever goes up: 7 spreads at most. An
 * event is sorted among at most 32. The front never holds more than 96: when one more comes, its range shrinks around
 * the present, digit by digit, and what lies beyond goes to buckets at or below the front's level, which are empty
 * there, so the order stands; that takes at least 48 insertions to happen again. Any number of events at one moment
 * wait in their bucket of level 0, from which the front takes a chunk at a time. There is no width to estimate and so
 * no pattern (bursts, mixed scales, all far away, growth and decline) that an estimate could be wrong about.
 *
 * Memory. Buckets are lists of 512-byte chunks of 21 events, taken from slabs that double. Push makes sure that
 * the slabs suffice for the worst way in which the pending events could lie in buckets, one part-filled chunk for
 * every bucket that could be occupied (1 MB more at most, touched only if used); so pop, which spreads, never allocates
 * and cannot fail.
 *
 * Why this one: measured by `make bench NAME=engine`, hold model, million events a second, one of two shared cores, the
 * engine through its handler and its rivals as bare loops, all with the same generator:
 *
 *   pending      this    4-ary heap   calendar queue of fixed, fitting width
 *   1,000          34         18         36
 *   100,000        27          8         28
 *   1,000,000      16          2.6        6
 *
 * A heap compiled to compare without branches, and that holds by replacing its root, which a queue behind a handler
 * cannot, is level with this one or up to a quarter faster at 1,000 and loses from there on. `NAME=queue_scales`: mean delays
 * from 15 ms to 1 s, whose ratio to a power of 256 decides how many events share a bucket, differ by up to a sixth.
 * `NAME=queue_patterns`, 100,000 pending, by processor time: delays that are constant, 0 to 3 ns, or nanoseconds with
 * some hours among them make 72, 99 and 57, and the heap 20, 7 and 11.
 *
 * The gain at large sizes is from the memory's side: a heap's pop walks levels that miss the cache, a calendar's push
 * chases a random node; here every write goes to the open end of one of some 256 chunks and every read runs along
 * chunks that can be fetched ahead. Digits of 6, 7, 9 or 10 bits, chunks of 13 or 29 events and sorting from 12 to 48
 * events differ by less than a tenth.
 */
#include "sim/event_queue.h"

#include <assert.h>
#include <string.h>

static_assert(LS_QUEUE_SORT_EVENTS >= LS_QUEUE_CHUNK_EVENTS, "a bucket too full to sort has a full first chunk");
static_assert(LS_QUEUE_FRONT_EVENTS >= LS_QUEUE_SORT_EVENTS, "what was sorted fits in the front");

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

static bool grow(ls_event_queue *queue)
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

static ls_event_chunk *take_chunk(ls_event_queue *queue)
{
    ls_event_chunk *chunk = queue->free_chunks;
    if (chunk != NULL) {
        queue->free_chunks = chunk->next;
        return chunk;
    }
    assert(queue->fresh != queue->fresh_end); /* grow saw to it */
    return queue->fresh++;
}

static void give_chunk_back(ls_event_queue *queue, ls_event_chunk *chunk)
{
    chunk->next = queue->free_chunks;
    queue->free_chunks = chunk;
}

/* Gives a bucket another chunk at its end. */
static __attribute__((noinline)) void add_chunk(ls_event_queue *queue, uint32_t level, uint32_t digit)
{
    ls_event_bucket *bucket = &queue->buckets[level][digit];
    ls_event_chunk *chunk = take_chunk(queue);
    chunk->next = NULL;
    if (bucket->chunks++ == 0) {
        bucket->first = chunk;
        queue->occupied[level][digit / 64] |= UINT64_C(1) << (digit % 64);
        queue->occupied_levels |= 1u << level;
    } else {
        bucket->last->next = chunk;
    }
    bucket->last = chunk;
    bucket->last_used = 0;
}

static inline void push_bucket(ls_event_queue *queue, const ls_engine_event *event, uint32_t level)
{
    uint32_t digit = ls__event_queue_digit(event->at_ns, level);
    ls_event_bucket *bucket = &queue->buckets[level][digit];
    if (bucket->last_used == LS_QUEUE_CHUNK_EVENTS) add_chunk(queue, level, digit);
    bucket->last->events[bucket->last_used++] = *event;
}

static void push_far(ls_event_queue *queue, const ls_engine_event *event)
{
    push_bucket(queue, event, ls__event_queue_level(queue, event->at_ns));
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

/* Events in a bucket that is not empty. */
static uint64_t count_of(const ls_event_bucket *bucket)
{
    return (uint64_t)(bucket->chunks - 1) * LS_QUEUE_CHUNK_EVENTS + bucket->last_used;
}

/* Insertion sort behind what the front holds; events of one time keep their order. Empties the bucket. */
static void sort_into_front(ls_event_queue *queue, ls_event_bucket *bucket)
{
    ls_engine_event *start = &queue->front[queue->front_last], *end = start;
    for (ls_event_chunk *chunk = bucket->first, *next; chunk != NULL; chunk = next) {
        const ls_engine_event *event = chunk->events, *last = event + used_of(bucket, chunk);
        for (; event < last; event++) {
            ls_engine_event *slot = end++;
            int64_t at_ns = event->at_ns;
            for (; slot > start && slot[-1].at_ns > at_ns; slot--) *slot = slot[-1];
            *slot = *event;
        }
        next = chunk->next;
        give_chunk_back(queue, chunk);
    }
    uint32_t count = (uint32_t)(end - start);
    queue->moved += count;
    queue->front_last += count;
    *bucket = empty_bucket;
}

/* Empties a bucket of the level above into the buckets of this level. */
static void spread(ls_event_queue *queue, ls_event_bucket *source, uint32_t level)
{
    ls_event_bucket bucket = *source;
    *source = empty_bucket;
    for (ls_event_chunk *chunk = bucket.first, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (next != NULL) {
            for (size_t at = 0; at < sizeof *next; at += 64) __builtin_prefetch((const char *)next + at);
        }
        uint32_t used = used_of(&bucket, chunk);
        for (uint32_t i = 0; i < used; i++) push_bucket(queue, &chunk->events[i], level);
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

/* Ends the front's range at the end of the digit of the front's level in which at lies. */
static void set_frontier(ls_event_queue *queue, uint64_t at)
{
    uint32_t bits = queue->front_level * LS_QUEUE_DIGIT_BITS;
    queue->reference = at | ((UINT64_C(1) << bits) - 1);
    queue->frontier = queue->reference + 1;
}

/* Sorts the bucket of this digit and those that follow it into the front, as many as it may hold; returns the digit of
 * the last one. */
static uint32_t gather(ls_event_queue *queue, uint32_t level, uint32_t digit)
{
    for (;;) {
        mark_empty(queue, level, digit);
        sort_into_front(queue, &queue->buckets[level][digit]);
        uint32_t next = next_digit(queue->occupied[level], digit + 1);
        if (next == LS_QUEUE_DIGITS) return digit;
        if (queue->front_last + count_of(&queue->buckets[level][next]) > LS_QUEUE_SORT_EVENTS) return digit;
        digit = next;
    }
}

/* Fills the empty front with the next events, unless their bucket begins after until: what may still be pushed in
 * between would then have no place before them. */
bool ls__event_queue_refill(ls_event_queue *queue, uint64_t until)
{
    queue->front_first = queue->front_last = 0;
    while (queue->occupied_levels != 0) {
        uint32_t level = (uint32_t)__builtin_ctz(queue->occupied_levels);
        uint32_t digit = next_digit(queue->occupied[level], 0);
        uint32_t bits = level * LS_QUEUE_DIGIT_BITS;
        uint64_t above = queue->reference >> bits >> LS_QUEUE_DIGIT_BITS << LS_QUEUE_DIGIT_BITS;
        uint64_t start = (above | digit) << bits;
        if (start > until) return false;
        ls_event_bucket *bucket = &queue->buckets[level][digit];
        if (count_of(bucket) <= LS_QUEUE_SORT_EVENTS) {
            queue->front_level = level;
            set_frontier(queue, (above | gather(queue, level, digit)) << bits);
            return true;
        }
        queue->frontier = queue->reference = start;
        if (level == 0) {
            take_ties(queue, bucket);
            return true;
        }
        mark_empty(queue, level, digit);
        spread(queue, bucket, level - 1);
    }
    return false;
}

/* The front is full. Its range shrinks around now, to one digit of its level, then of the level below and so on, until
 * half of it at most is left. When all that is left is at now itself, it stays and nothing more is let in. */
static void narrow_front(ls_event_queue *queue, uint64_t now)
{
    set_frontier(queue, now);
    for (;;) {
        uint32_t keep = queue->front_last;
        while (keep > queue->front_first && (uint64_t)queue->front[keep - 1].at_ns >= queue->frontier) keep--;
        for (uint32_t i = keep; i < queue->front_last; i++) push_far(queue, &queue->front[i]);
        queue->moved += queue->front_last - keep;
        queue->front_last = keep;
        if (keep - queue->front_first <= LS_QUEUE_FRONT_EVENTS / 2) return;
        if (queue->front_level == 0) break;
        queue->front_level--;
        set_frontier(queue, now);
    }
    queue->frontier = queue->reference = now;
}

static void push_front(ls_event_queue *queue, ls_engine_event event, uint64_t now)
{
    if (queue->front_last - queue->front_first >= LS_QUEUE_FRONT_EVENTS) {
        narrow_front(queue, now);
        if ((uint64_t)event.at_ns >= queue->frontier) {
            push_far(queue, &event);
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
    for (; slot > queue->front_first && queue->front[slot - 1].at_ns > event.at_ns; slot--) {
        queue->front[slot] = queue->front[slot - 1];
    }
    queue->front[slot] = event;
}

ls_result ls__event_queue_push_slow(ls_event_queue *queue, ls_engine_event event, uint64_t now)
{
    if (queue->count == queue->count_limit && !grow(queue)) return LS_ERROR_MEMORY;
    queue->count++;
    if ((uint64_t)event.at_ns < queue->frontier) push_front(queue, event, now);
    else push_far(queue, &event);
    return LS_OK;
}
