/* store_clock.c - a binary heap by (time, order of scheduling); see store_clock.h. */
#include "tests/store_clock.h"

#include <stdlib.h>

static bool is_before(const store_clock_event *left, const store_clock_event *right)
{
    return left->at_ns != right->at_ns ? left->at_ns < right->at_ns : left->order < right->order;
}

static ls_result clock_schedule(void *context, int64_t at_ns, uint64_t token)
{
    store_clock *clock = context;
    if (at_ns < clock->now_ns) return LS_ERROR_VIOLATED;
    if (clock->count == clock->capacity) {
        uint32_t capacity = clock->capacity == 0 ? 64 : 2 * clock->capacity;
        store_clock_event *heap =
            realloc(clock->heap, capacity * sizeof *heap); /* not the project's: never made to fail */
        if (heap == NULL) return LS_ERROR_MEMORY;
        clock->heap = heap;
        clock->capacity = capacity;
    }
    store_clock_event event = {at_ns, clock->order++, token};
    uint32_t place = clock->count++;
    for (; place > 0 && is_before(&event, &clock->heap[(place - 1) / 2]); place = (place - 1) / 2) {
        clock->heap[place] = clock->heap[(place - 1) / 2];
    }
    clock->heap[place] = event;
    return LS_OK;
}

ls_store_scheduler store_clock_scheduler(store_clock *clock)
{
    return (ls_store_scheduler){clock_schedule, clock};
}

void store_clock_release(store_clock *clock)
{
    free(clock->heap);
    *clock = (store_clock){0};
}

bool store_clock_next(store_clock *clock, uint64_t *token)
{
    if (clock->count == 0) return false;
    clock->now_ns = clock->heap[0].at_ns;
    *token = clock->heap[0].token;
    store_clock_event last = clock->heap[--clock->count];
    uint32_t place = 0;
    for (uint32_t child = 1; child < clock->count; child = 2 * place + 1) {
        if (child + 1 < clock->count && is_before(&clock->heap[child + 1], &clock->heap[child])) child++;
        if (!is_before(&clock->heap[child], &last)) break;
        clock->heap[place] = clock->heap[child];
        place = child;
    }
    if (clock->count > 0) clock->heap[place] = last;
    return true;
}

int64_t store_clock_peek(const store_clock *clock)
{
    return clock->count == 0 ? LS_NEVER_NS : clock->heap[0].at_ns;
}
