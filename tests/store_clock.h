/* store_clock.h - the smallest driver of a modelled store: a heap of wake-ups and a time; no engine, no world. */
#ifndef LS_TEST_STORE_CLOCK_H
#define LS_TEST_STORE_CLOCK_H

#include "sim/store_model.h"

typedef struct store_clock_event {
    int64_t at_ns;
    uint64_t order;
    uint64_t token;
} store_clock_event;

typedef struct store_clock {
    int64_t now_ns;
    uint64_t order; /* events scheduled so far */
    store_clock_event *heap;
    uint32_t count;
    uint32_t capacity;
} store_clock;

/* A scheduler on a zeroed clock; store_clock_release frees its heap. */
ls_store_scheduler store_clock_scheduler(store_clock *clock);
void store_clock_release(store_clock *clock);

/* Takes the next wake-up and moves the time to it; false when there is none. */
bool store_clock_next(store_clock *clock, uint64_t *token);

/* When the next wake-up is due; LS_NEVER_NS when there is none. */
int64_t store_clock_peek(const store_clock *clock);

#endif
