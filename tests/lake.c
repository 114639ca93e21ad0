/* lake.c - the hand-held lake of lake.h. */
#include "tests/lake.h"
#include "tests/suite.h"

#include <string.h>

static void immediate(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                      ls_commit_decision *decision)
{
    (void)state;
    (void)random;
    const uint32_t *limit = parameters;
    decision->try_at_ns = view->pending_batches == 0 ? LS_NEVER_NS
                          : view->moment == LS_MOMENT_READY || view->moment == LS_MOMENT_WON ? view->now_ns
                                                                                               : view->now_ns + 1000;
    decision->batch_limit = limit == NULL ? 0 : *limit;
}

ls_decider lake_immediate(const uint32_t *batch_limit)
{
    return (ls_decider){.decide = immediate, .parameters = batch_limit};
}

void lake_clear(lake *l)
{
    for (uint64_t v = 1; v <= l->newest; v++) ls_manifest_release(l->version[v]);
    ls_manifest_release(l->ghost);
    if (l->has_lingering) ls_manifest_release(l->lingering.manifest);
    memset(l, 0, sizeof *l);
}

static bool create(lake *l, const ls_store_request *request)
{
    uint64_t version = request->key.number;
    if (version < l->floor && version != l->ghost_version) { /* its name is free again */
        ls_manifest_release(l->ghost);
        l->ghost = request->manifest;
        l->ghost_version = version;
        return true;
    }
    if (version <= l->newest) {
        ls_manifest_release(request->manifest);
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(version, l->newest + 1);
    l->version[version] = request->manifest;
    l->newest = version;
    return true;
}

bool lake_land(lake *l)
{
    l->has_lingering = false;
    return create(l, &l->lingering);
}

void lake_reclaim_below(lake *l, uint64_t floor)
{
    for (uint64_t v = 1; v < floor; v++) {
        ls_manifest_release(l->version[v]);
        l->version[v] = NULL;
    }
    l->floor = floor;
}

/* The object of a name as the store holds it now. */
static const ls_manifest *object_of(const lake *l, uint64_t version)
{
    if (version == 0 || version > l->newest) return NULL;
    return version == l->ghost_version ? l->ghost : l->version[version];
}

static void list(const lake *l, const ls_store_request *request, ls_store_reply *reply)
{
    bool floors = request->key.kind == LS_OBJECT_FLOOR;
    uint64_t last = floors ? l->floor : l->newest;
    for (uint64_t v = request->key.number + 1; v <= last; v++) {
        bool there = floors ? v == l->floor : object_of(l, v) != NULL;
        if (!there) continue;
        if (reply->list_count == request->list_limit) {
            reply->list_truncated = true;
            return;
        }
        reply->list_count++;
        reply->list_last = floors ? ls_key_floor(v) : ls_key_manifest(v);
    }
}

static void put(lake *l, const ls_store_request *request, ls_store_reply *reply)
{
    if (request->key.kind == LS_OBJECT_DATA) {
        l->data_puts++;
        reply->status = l->data_status;
        return;
    }
    l->puts++;
    CU_ASSERT_EQUAL(request->body_bytes, ls_manifest_encoded_bytes(request->manifest));
    if (!l->bend || l->bend_reads) {
        reply->status = create(l, request) ? LS_REPLY_OK : LS_REPLY_EXISTS;
        return;
    }
    l->bend = false;
    reply->status = l->bend_status;
    if (l->bend_effect) {
        create(l, request);
    } else {
        if (l->has_lingering) ls_manifest_release(l->lingering.manifest);
        l->lingering = *request;
        l->has_lingering = true;
    }
}

static void read(lake *l, const ls_store_request *request, ls_store_reply *reply)
{
    uint64_t version = request->key.number;
    l->heads += request->operation == LS_HEAD;
    l->lists += request->operation == LS_LIST;
    l->gets += request->operation == LS_GET;
    if (l->bend && l->bend_reads) {
        l->bend = false;
        reply->status = l->bend_status;
    } else if (request->operation == LS_LIST) {
        list(l, request, reply);
    } else if (object_of(l, version) == NULL) {
        reply->status = LS_REPLY_NOT_FOUND;
    } else if (request->operation == LS_GET) {
        const ls_manifest *object = object_of(l, version);
        l->last_range_bytes = request->range == LS_RANGE_WHOLE ? 0 : request->range_bytes;
        uint64_t needed = request->range == LS_RANGE_WHOLE ? 0
                          : ls_manifest_tail_bytes(object, ls_manifest_end_step(request->known));
        if (request->range == LS_RANGE_WHOLE || request->range_bytes >= needed) reply->manifest = ls_manifest_retain(object);
        reply->needed_bytes = needed;
    }
}

static void read_data(lake *l, const ls_store_request *request, ls_store_reply *reply)
{
    l->data_gets++;
    reply->moved_bytes = request->range_bytes;
    if (request->range != LS_RANGE_SUFFIX) return;
    const ls_slice *rank = &request->slice;
    reply->slice = (ls_slice){.data_rank = rank->data_rank, .context_rank = rank->context_rank, .bytes = l->slice_bytes,
                              .offset = 1000 * request->key.sequence + 10 * rank->data_rank + rank->context_rank,
                              .crc32c = (uint32_t)request->key.sequence};
}

void lake_answer(lake *l, const ls_store_request *request, ls_store_reply *reply)
{
    *reply = (ls_store_reply){.status = LS_REPLY_OK, .tag = request->tag};
    if (request->operation == LS_PUT) put(l, request, reply);
    else if (request->key.kind == LS_OBJECT_DATA) read_data(l, request, reply);
    else read(l, request, reply);
}

static void note(lake *l, const ls_action *action)
{
    switch (action->kind) {
    case LS_ACTION_PUBLISHED:
        l->published_batches += action->published.count;
        CU_ASSERT(action->published.source_end > l->published_source_end);
        l->published_source_end = action->published.source_end;
        break;
    case LS_ACTION_ATTEMPT:
        l->wins += action->attempt.outcome == LS_ATTEMPT_WON;
        l->losses += action->attempt.outcome == LS_ATTEMPT_LOST;
        l->aborted += action->attempt.outcome == LS_ATTEMPT_ABORTED;
        l->proved += action->attempt.outcome == LS_ATTEMPT_PROVED;
        l->ambiguous += action->attempt.was_ambiguous;
        break;
    case LS_ACTION_JOINED:
        l->joined++;
        l->joined_offset = action->source_offset;
        break;
    case LS_ACTION_FENCED: l->fenced++; break;
    case LS_ACTION_FAILED: l->failed++; break;
    case LS_ACTION_FINISHED: l->finished++; break;
    case LS_ACTION_WAKE: l->wake_ns = action->wake_ns; break;
    case LS_ACTION_REQUEST:
    case LS_ACTION_CHECKPOINTED:
    case LS_ACTION_GAVE_UP:
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_STEP:
    case LS_ACTION_BEHIND: break;
    }
}

void lake_settle(lake *l, ls_producer *p, ls_actions *actions)
{
    ls_store_request queue[LAKE_QUEUE_MAX];
    uint32_t head = 0, tail = 0;
    for (;;) {
        for (uint32_t i = 0; i < actions->count; i++) {
            note(l, &actions->item[i]);
            if (actions->item[i].kind != LS_ACTION_REQUEST) continue;
            CU_ASSERT_FATAL(tail - head < LAKE_QUEUE_MAX);
            queue[tail++ % LAKE_QUEUE_MAX] = actions->item[i].request;
        }
        if (head == tail) return;
        const ls_store_request request = queue[head++ % LAKE_QUEUE_MAX];
        ls_store_reply reply;
        lake_answer(l, &request, &reply);
        ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = l->now_ns, .reply = &reply};
        CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &event, actions), LS_OK);
    }
}

void lake_event(lake *l, ls_producer *p, ls_event_kind kind)
{
    ls_actions actions;
    ls_event event = {.kind = kind, .now_ns = l->now_ns};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &event, &actions), LS_OK);
    lake_settle(l, p, &actions);
}

void lake_batch(lake *l, ls_producer *p, uint64_t bytes, uint64_t source_count)
{
    ls_actions actions;
    ls_event event = {.kind = LS_EVENT_BATCH, .now_ns = l->now_ns, .batch_bytes = bytes,
                      .batch_source_count = source_count, .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &event, &actions), LS_OK);
    lake_settle(l, p, &actions);
}
