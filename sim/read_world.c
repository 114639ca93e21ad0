/* read_world.c - see read_world.h. All batches are of one producer, offset by offset, and of one size, so a slice lies
 * at the same place in each. */
#include "sim/read_world.h"

#include "manifest/consumer.h"
#include "manifest/tgb.h"
#include "sim/engine.h"
#include "sim/metrics.h"
#include "sim/store_model.h"

#include <inttypes.h>
#include <math.h>

#define PRODUCER   UINT64_C(1)
#define RANKS_MAX  UINT64_C(65536)
#define KIND_RANK  UINT32_C(1)
#define KIND_STORE UINT32_C(2)

typedef struct reader {
    ls_consumer machine;
    uint64_t steps;
    int64_t finished_ns; /* LS_NEVER_NS: not yet */
    bool done;
} reader;

struct ls_readers {
    const ls_scenario *scenario; /* borrowed */
    ls_driver driver;
    ls_protocol protocol;
    ls_manifest *manifest;
    reader *ranks;
    uint32_t rank_count;
    uint32_t done;
    uint32_t footer_bytes;
    uint64_t content_bytes; /* of a batch, without its footer */
    uint64_t slice_bytes;   /* handed on */
    uint64_t moved_bytes;   /* of data objects */
    uint64_t requests;      /* gets of data objects */
    double fetch_s;
    const char *failure; /* why a rank ended early; NULL: none did */
};

static ls_result build_manifest(ls_readers *r)
{
    uint64_t steps = r->scenario->read.steps;
    ls_entry *entries = ls_allocate_array(steps, sizeof *entries);
    if (entries == NULL) return LS_ERROR_MEMORY;
    for (uint64_t i = 0; i < steps; i++) {
        entries[i] = (ls_entry){.producer = PRODUCER,
                                .sequence = i,
                                .source_begin = i,
                                .source_end = i + 1,
                                .size_bytes = r->content_bytes + r->footer_bytes,
                                .epoch = 1,
                                .footer_bytes = r->footer_bytes};
    }
    ls_row row = {.producer = PRODUCER,
                  .last_version = 1,
                  .epoch = 1,
                  .closed = true,
                  .next_source_offset = steps,
                  .last_commit = {.incarnation = 1, .attempt = 1}};
    ls_manifest_parts parts = {
        .version = 1, .id = {1, 1}, .entries = entries, .entry_count = steps, .rows = &row, .row_count = 1};
    ls_result result = ls_manifest_build(&parts, &r->manifest);
    ls_free(entries);
    return result;
}

ls_result ls_readers_new(const ls_scenario *scenario, const ls_driver *driver, ls_readers **readers, ls_error *error)
{
    uint64_t data_ranks = scenario->batches.data_parallel, context_ranks = scenario->batches.context_parallel;
    uint64_t footer =
        data_ranks * context_ranks > RANKS_MAX ? 0 : ls_tgb_footer_bytes((uint32_t)data_ranks, (uint32_t)context_ranks);
    if (footer == 0) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "batches.data_parallel x batches.context_parallel is %" PRIu64 "; at most %" PRIu64,
                       data_ranks * context_ranks, RANKS_MAX);
    }
    if (scenario->batches.bytes < footer) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "batches.bytes is %" PRIu64 ", but the footer of %" PRIu64 " slices alone takes %" PRIu64,
                       scenario->batches.bytes, data_ranks * context_ranks, footer);
    }
    ls_readers *r = ls_allocate_array(1, sizeof *r);
    if (r == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    *r = (ls_readers){.scenario = scenario,
                      .driver = *driver,
                      .protocol = ls_protocol_default(),
                      .rank_count = (uint32_t)(data_ranks * context_ranks),
                      .footer_bytes = (uint32_t)footer,
                      .content_bytes = scenario->batches.bytes - footer};
    r->protocol.layout = (ls_layout)scenario->manifest.layout;
    r->protocol.discovery = (ls_discovery)scenario->manifest.discovery;
    r->ranks = ls_allocate_array(r->rank_count, sizeof *r->ranks);
    ls_result result = r->ranks != NULL ? build_manifest(r) : LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < r->rank_count && result == LS_OK; i++) {
        ls_consumer_config config = {.data_rank = i / (uint32_t)context_ranks,
                                     .context_rank = i % (uint32_t)context_ranks,
                                     .window = (uint32_t)scenario->read.window,
                                     .whole_objects = scenario->read.whole_objects,
                                     .poll_ns = 10 * 1000 * 1000};
        result = ls_consumer_init(&r->ranks[i].machine, &r->protocol, &config, 0);
    }
    if (result != LS_OK) {
        ls_readers_free(r);
        return ls_fail(error, result, "the ranks cannot be made: %s", ls_result_name(result));
    }
    *readers = r;
    return LS_OK;
}

void ls_readers_free(ls_readers *r)
{
    if (r == NULL) return;
    for (uint32_t i = 0; r->ranks != NULL && i < r->rank_count; i++) {
        if (r->ranks[i].machine.protocol != NULL) ls_consumer_clear(&r->ranks[i].machine);
    }
    ls_free(r->ranks);
    ls_manifest_release(r->manifest);
    ls_free(r);
}

const ls_manifest *ls_readers_manifest(const ls_readers *r) { return r->manifest; }

ls_slice ls_readers_slice(const ls_readers *r, uint32_t data_rank, uint32_t context_rank)
{
    uint64_t place = (uint64_t)data_rank * r->scenario->batches.context_parallel + context_rank;
    uint64_t share = r->content_bytes / r->rank_count, rest = r->content_bytes % r->rank_count;
    return (ls_slice){.data_rank = data_rank,
                      .context_rank = context_rank,
                      .offset = place * share + (place < rest ? place : rest),
                      .bytes = share + (place < rest)};
}

static void end_rank(ls_readers *r, reader *rank, const char *failure)
{
    if (rank->done) return;
    rank->done = true;
    rank->finished_ns = r->driver.now(r->driver.context);
    if (failure != NULL) r->failure = failure;
    if (++r->done == r->rank_count || failure != NULL) r->driver.stop(r->driver.context);
}

static ls_result carry_out(ls_readers *r, uint32_t index, const ls_action *action)
{
    reader *rank = &r->ranks[index];
    switch (action->kind) {
    case LS_ACTION_REQUEST:
        if (ls_consumer_tag_is_data(action->request.tag)) r->requests++;
        return r->driver.submit(r->driver.context, index, &action->request);
    case LS_ACTION_WAKE:
        if (action->wake_ns == LS_NEVER_NS) return LS_OK;
        return r->driver.timer(r->driver.context, action->wake_ns, KIND_RANK, index, 0);
    case LS_ACTION_STEP:
        rank->steps++;
        r->slice_bytes += action->step.slice.bytes;
        r->fetch_s += ls_seconds(action->step.ready_ns - action->step.asked_ns);
        return LS_OK;
    case LS_ACTION_FINISHED: end_rank(r, rank, NULL); return LS_OK;
    case LS_ACTION_BEHIND: end_rank(r, rank, "a batch was not there"); return LS_OK;
    default: end_rank(r, rank, "a request was refused, or a batch is damaged"); return LS_OK;
    }
}

static ls_result step(ls_readers *r, uint32_t index, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_consumer_step(&r->ranks[index].machine, event, &actions);
    for (uint32_t i = 0; i < actions.count && result == LS_OK; i++) {
        result = carry_out(r, index, &actions.item[i]);
    }
    return result;
}

ls_result ls_readers_begin(ls_readers *r)
{
    ls_event event = {.kind = LS_EVENT_START, .now_ns = r->driver.now(r->driver.context)};
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < r->rank_count && result == LS_OK; i++) result = step(r, i, &event);
    return result;
}

ls_result ls_readers_timer(ls_readers *r, int64_t now_ns, uint32_t kind, uint32_t entity)
{
    if (kind != KIND_RANK || entity >= r->rank_count) return LS_OK;
    return step(r, entity, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
}

ls_result ls_readers_reply(ls_readers *r, int64_t now_ns, uint32_t client, const ls_store_reply *reply)
{
    if (ls_consumer_tag_is_data(reply->tag)) r->moved_bytes += reply->moved_bytes;
    return step(r, client, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
}

ls_result ls_readers_measure(const ls_readers *r, int64_t now_ns, ls_run_result *result, ls_error *error)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < r->rank_count; i++) {
        steps += r->ranks[i].steps;
        if (r->failure != NULL || r->ranks[i].steps == r->scenario->read.steps) continue;
        return ls_fail(error, LS_ERROR_VIOLATED, "rank %" PRIu32 " got %" PRIu64 " of %" PRIu64 " steps", i,
                       r->ranks[i].steps, r->scenario->read.steps);
    }
    if (r->failure != NULL) return ls_fail(error, LS_ERROR_IO, "a rank ended early: %s", r->failure);
    double *v = result->values;
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) v[i] = NAN;
    v[LS_METRIC_MEASURED] = ls_seconds(now_ns);
    v[LS_METRIC_DATA_BYTES_READ] = (double)r->moved_bytes;
    v[LS_METRIC_SLICE_BYTES_READ] = (double)r->slice_bytes;
    if (r->slice_bytes > 0) v[LS_METRIC_READ_AMPLIFICATION] = (double)r->moved_bytes / (double)r->slice_bytes;
    v[LS_METRIC_READ_REQUESTS] = (double)r->requests / (double)steps;
    v[LS_METRIC_FETCH_MEAN] = r->fetch_s / (double)steps;
    if (now_ns > 0) v[LS_METRIC_STEPS_READ_RATE] = (double)r->scenario->read.steps / ls_seconds(now_ns);
    return LS_OK;
}

/* --- in virtual time
 * ------------------------------------------------------------------------------------------------------ */

typedef struct read_simulation {
    ls_engine *engine;
    ls_store_model *store;
    ls_readers *readers;
    bool stopping;
} read_simulation;

static int64_t driver_now(void *context) { return ls_engine_now(((read_simulation *)context)->engine); }

static ls_result driver_timer(void *context, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    read_simulation *s = context;
    int64_t now_ns = ls_engine_now(s->engine);
    return ls_engine_schedule(s->engine, at_ns < now_ns ? now_ns : at_ns, kind, entity, argument);
}

static ls_result driver_submit(void *context, uint32_t client, const ls_store_request *request)
{
    read_simulation *s = context;
    return ls_store_model_submit(s->store, ls_engine_now(s->engine), client, 0, request);
}

static void driver_stop(void *context) { ((read_simulation *)context)->stopping = true; }

static ls_result store_schedule(void *context, int64_t at_ns, uint64_t token)
{
    return ls_engine_schedule(((read_simulation *)context)->engine, at_ns, KIND_STORE, 0, token);
}

/* The model has no contents: what a real driver reads from the footer is known here from the layout. */
static ls_result store_event(read_simulation *s, int64_t now_ns, uint64_t token)
{
    ls_store_completion done;
    ls_store_effect effect;
    ls_result result = ls_store_model_event(s->store, now_ns, token, &done, &effect);
    if (result != LS_OK || !done.ready) return result;
    if (done.kind == LS_OBJECT_DATA && done.reply.status == LS_REPLY_OK) {
        done.reply.slice = ls_readers_slice(s->readers, done.reply.slice.data_rank, done.reply.slice.context_rank);
    }
    return ls_readers_reply(s->readers, now_ns, done.client, &done.reply);
}

static ls_result install(read_simulation *s)
{
    ls_result result = ls_store_model_install_manifest(s->store, ls_readers_manifest(s->readers));
    uint64_t end = ls_manifest_end_step(ls_readers_manifest(s->readers));
    for (uint64_t step = 0; step < end && result == LS_OK; step++) {
        ls_entry entry;
        if (!ls_manifest_entry(ls_readers_manifest(s->readers), step, &entry)) return LS_ERROR_INVALID;
        ls_key key = ls_key_data(entry.producer, entry.epoch, entry.sequence);
        result = ls_store_model_install_data(s->store, &key, entry.size_bytes);
    }
    return result;
}

static ls_result run(read_simulation *s)
{
    ls_engine_event event;
    ls_result result = ls_readers_begin(s->readers);
    while (result == LS_OK && !s->stopping && ls_engine_next(s->engine, &event)) {
        result = event.kind == KIND_STORE ? store_event(s, event.at_ns, event.argument)
                                          : ls_readers_timer(s->readers, event.at_ns, event.kind, event.entity);
    }
    return result;
}

ls_result ls_simulate_read(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                           ls_error *error)
{
    read_simulation s = {.engine = ls_engine_new()};
    ls_driver driver = {
        .context = &s, .now = driver_now, .timer = driver_timer, .submit = driver_submit, .stop = driver_stop};
    ls_store_scheduler scheduler = {.schedule = store_schedule, .context = &s};
    ls_result outcome = s.engine != NULL ? LS_OK : ls_fail(error, LS_ERROR_MEMORY, "out of memory for the event queue");
    if (outcome == LS_OK) {
        outcome = ls_store_model_create(&scenario->store, seed, replication, scheduler, &s.store, error);
    }
    if (outcome == LS_OK) outcome = ls_readers_new(scenario, &driver, &s.readers, error);
    if (outcome == LS_OK) {
        outcome = install(&s);
        if (outcome == LS_OK) outcome = run(&s);
        if (outcome != LS_OK) ls_fail(error, outcome, "reading: %s", ls_result_name(outcome));
    }
    if (outcome == LS_OK) outcome = ls_readers_measure(s.readers, ls_engine_now(s.engine), result, error);
    if (s.engine != NULL) result->events = ls_engine_processed(s.engine);
    ls_readers_free(s.readers);
    ls_store_model_destroy(s.store);
    ls_engine_free(s.engine);
    return outcome;
}
