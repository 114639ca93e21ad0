/* engine.h - the discrete-event engine: a virtual clock, the pending events, and the loop that hands them out.
 *
 * Time is int64 nanoseconds from 0, and never goes back. Events come out by time, and those of one time in the order in
 * which they were scheduled, so a run is a pure function of what its handlers do. An event is 24 bytes of plain data;
 * what kind, entity and argument mean is the user's business. There is no cancellation: a user who no longer wants an
 * event recognises it when it comes (a generation counter in argument, say) and ignores it.
 *
 * One engine belongs to one thread. Nothing here reads a real clock.
 */
#ifndef LS_ENGINE_H
#define LS_ENGINE_H

#include "manifest/base.h"

typedef struct ls_engine ls_engine;

typedef struct ls_engine_event {
    int64_t at_ns;
    uint32_t kind;
    uint32_t entity;
    uint64_t argument;
} ls_engine_event;

/* What a handler wants next. */
typedef enum ls_engine_verdict { LS_ENGINE_CONTINUE = 0, LS_ENGINE_STOP } ls_engine_verdict;

/* Why ls_engine_run returned. */
typedef enum ls_engine_end {
    LS_ENGINE_EMPTY = 0,   /* nothing is pending */
    LS_ENGINE_TIME_LIMIT,  /* whatever is pending lies after the time limit */
    LS_ENGINE_EVENT_LIMIT, /* as many events as allowed were handled */
    LS_ENGINE_STOPPED      /* the handler said LS_ENGINE_STOP */
} ls_engine_end;

/* Called once an event, at its time. It may schedule on the engine; it must not call ls_engine_next, _run or _free. */
typedef ls_engine_verdict (*ls_engine_handler)(void *context, ls_engine *engine, const ls_engine_event *event);

/* A new engine at time 0 with nothing pending, or NULL when out of memory. The caller frees it with ls_engine_free. */
ls_engine *ls_engine_new(void);

/* Frees an engine and all that is pending; NULL is allowed. */
void ls_engine_free(ls_engine *engine);

/* Adds an event at at_ns, which may be now (it then comes after all others of this time). LS_ERROR_INVALID when at_ns
 * lies in the past. At LS_NEVER_NS nothing is added and the result is LS_OK: a moment that does not come.
 * LS_ERROR_MEMORY when the queue cannot grow; the engine is then as before. In steady state nothing is allocated. */
ls_result ls_engine_schedule(ls_engine *engine, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument);

/* Virtual time: that of the event being handled, or the limit that the last run reached. */
int64_t ls_engine_now(const ls_engine *engine);

/* Takes the next event out and moves the clock to it; false when nothing is pending. Never allocates, cannot fail. */
bool ls_engine_next(ls_engine *engine, ls_engine_event *event);

/* Hands events to handler until none is left, the next lies after until_ns (then the clock stands at until_ns; events
 * at exactly until_ns are handled), event_limit of them were handled (0: no limit), or the handler stops it. May be
 * called again to go on. With LS_NEVER_NS for until_ns there is no time limit. When it ends for want of events the
 * clock stays at the last one. An until_ns in the past handles nothing and leaves the clock. */
ls_engine_end ls_engine_run(ls_engine *engine, int64_t until_ns, uint64_t event_limit, ls_engine_handler handler,
                            void *context);

/* Events taken out so far, now waiting, and the most that ever waited at once. */
uint64_t ls_engine_processed(const ls_engine *engine);
uint64_t ls_engine_pending(const ls_engine *engine);
uint64_t ls_engine_greatest_pending(const ls_engine *engine);

#endif
