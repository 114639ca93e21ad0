/* engine.c - clock, counters and loop around the event queue (event_queue.c, where the choice of queue is argued). */
#include "sim/engine.h"

#include "sim/event_queue.h"

struct ls_engine {
    int64_t now_ns;
    uint64_t processed;
    uint64_t greatest_pending;
    ls_event_queue queue;
};

ls_engine *ls_engine_new(void)
{
    ls_engine *engine = ls_allocate(sizeof *engine);
    if (engine == NULL) return NULL;
    engine->now_ns = 0;
    engine->processed = 0;
    engine->greatest_pending = 0;
    ls_event_queue_initialise(&engine->queue);
    return engine;
}

void ls_engine_free(ls_engine *engine)
{
    if (engine == NULL) return;
    ls_event_queue_release(&engine->queue);
    ls_free(engine);
}

ls_result ls_engine_schedule(ls_engine *engine, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (at_ns < engine->now_ns) return LS_ERROR_INVALID;
    if (at_ns == LS_NEVER_NS) return LS_OK;
    ls_engine_event event = {.at_ns = at_ns, .kind = kind, .entity = entity, .argument = argument};
    return ls_event_queue_push(&engine->queue, event, engine->now_ns);
}

/* Pending events are most just before one is taken out, or now. */
static uint64_t greatest_pending(const ls_engine *engine)
{
    return engine->queue.count > engine->greatest_pending ? engine->queue.count : engine->greatest_pending;
}

/* Takes the next event, if it comes by until_ns. */
static inline bool take(ls_engine *engine, int64_t until_ns, ls_engine_event *event)
{
    uint64_t greatest = greatest_pending(engine);
    if (!ls_event_queue_pop(&engine->queue, until_ns, event)) return false;
    engine->greatest_pending = greatest;
    engine->now_ns = event->at_ns;
    engine->processed++;
    return true;
}

int64_t ls_engine_now(const ls_engine *engine)
{
    return engine->now_ns;
}

bool ls_engine_next(ls_engine *engine, ls_engine_event *event)
{
    return take(engine, LS_NEVER_NS, event);
}

ls_engine_end ls_engine_run(ls_engine *engine, int64_t until_ns, uint64_t event_limit, ls_engine_handler handler,
                            void *context)
{
    if (until_ns < engine->now_ns) return engine->queue.count == 0 ? LS_ENGINE_EMPTY : LS_ENGINE_TIME_LIMIT;
    ls_engine_event event;
    for (uint64_t left = event_limit; take(engine, until_ns, &event);) {
        if (handler(context, engine, &event) == LS_ENGINE_STOP) return LS_ENGINE_STOPPED;
        if (--left == 0) return LS_ENGINE_EVENT_LIMIT;
    }
    if (engine->queue.count == 0) return LS_ENGINE_EMPTY;
    engine->now_ns = until_ns;
    return LS_ENGINE_TIME_LIMIT;
}

uint64_t ls_engine_processed(const ls_engine *engine)
{
    return engine->processed;
}

uint64_t ls_engine_pending(const ls_engine *engine)
{
    return engine->queue.count;
}

uint64_t ls_engine_greatest_pending(const ls_engine *engine)
{
    return greatest_pending(engine);
}
