/* engine.h - the discrete-event engine: virtual time and the queue of what is to happen.
 *
 * Time is int64 nanoseconds from 0. An event is a time, a kind, an entity and an argument, all the user's own; events of
 * equal time come in the order in which they were scheduled, always. There is no cancelling: users recognise stale events.
 * Scheduling and taking an event cost O(1) amortised and allocate nothing in a steady state (engine.c tells how and why).
 */
#ifndef LS_ENGINE_H
#define LS_ENGINE_H

#include "manifest/base.h"

typedef struct ls_engine ls_engine;

typedef struct ls_engine_event {
    int64_t at_ns;
    uint64_t argument;
    uint32_t kind;
    uint32_t entity;
} ls_engine_event;

/* A new engine at time 0 with nothing to do; NULL when out of memory. */
ls_engine *ls_engine_new(void);
void ls_engine_free(ls_engine *engine); /* NULL is allowed */

/* Puts an event in the queue. LS_ERROR_INVALID for a time before now or LS_NEVER_NS; LS_ERROR_MEMORY leaves the queue as it was. */
ls_result ls_engine_schedule(ls_engine *engine, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument);

/* Takes the next event and moves the clock to it. False when there is none, or no memory to sort it out:
 * ls_engine_out_of_memory then says so, and the engine does nothing more. */
bool ls_engine_next(ls_engine *engine, ls_engine_event *event);
bool ls_engine_out_of_memory(const ls_engine *engine);

/* Called for each event; a result other than LS_OK ends the run with it. */
typedef ls_result (*ls_engine_handler)(void *context, const ls_engine_event *event);

/* Takes events until none is left, the next one is later than until_ns (it stays), or event_limit events were handled (0: no
 * limit). */
ls_result ls_engine_run(ls_engine *engine, int64_t until_ns, uint64_t event_limit, ls_engine_handler handler, void *context);

int64_t ls_engine_now(const ls_engine *engine);
uint64_t ls_engine_processed(const ls_engine *engine);
uint64_t ls_engine_pending(const ls_engine *engine);
uint64_t ls_engine_most_pending(const ls_engine *engine);

#endif
