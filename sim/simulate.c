/* simulate.c - one replication in virtual time: engine, modelled store and world put together.
 *
 * The engine's events are of two sorts: timers of the world (its own kinds), and wake-ups of the store model (KIND_STORE). The
 * world never calls back into the engine except to schedule, so the loop below is all the control flow there is.
 *
 * Faults of requests (sim/faults.h) lie between the two, and the store model knows nothing of them: a request is refused or
 * swallowed before it reaches the store, or its reply is; an answer of ours in its stead is one event that carries the tag and
 * the status. A put that lingers is kept until it is sent after all. A brown-out stretches each latency that
 * the store asks its scheduler for, so a request takes longer before its effect as well as after it; links keep their bandwidth.
 */
#include "manifest/tgb.h"
#include "sim/colocated.h"
#include "sim/engine.h"
#include "sim/kafka.h"
#include "sim/metrics.h"
#include "sim/mser.h"
#include "sim/preprocessing.h"
#include "sim/prices.h"
#include "sim/queue_world.h"
#include "sim/read_world.h"
#include "sim/store_model.h"
#include "sim/trainer.h"
#include "sim/world.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#define KIND_STORE  UINT32_C(0xffffffff) /* the world's kinds are small */
#define KIND_ANSWER UINT32_C(0xfffffffe) /* in the store's stead: entity is the client, argument status << 32 | tag */
#define KIND_LINGER UINT32_C(0xfffffffd) /* argument: place of the put in the list of lingering ones */

#define CONTEXT_HEARD 0u
#define CONTEXT_LOST  1u /* the reply of this request reaches nobody */

typedef struct lingering {
    ls_store_request request;
    uint32_t client;
    bool waits;
} lingering;

typedef struct simulation {
    ls_engine *engine;
    ls_store_model *store;
    ls_world *world;
    const ls_scenario *scenario;
    const ls_simulation_watcher *watcher;
    uint64_t seed, replication;
    uint64_t *sent; /* requests so far, by producer and after them by station of the crew */
    lingering *puts;
    uint32_t put_count, put_capacity;
    ls_store_counters before; /* at the start of the measured time */
    ls_store_counters after;  /* at its end, or the run's */
    int64_t snapshot_ns;      /* when the next of the two is due */
    bool counting;
    bool stopping;
} simulation;

static int64_t driver_now(void *context)
{
    simulation *s = context;
    return ls_engine_now(s->engine);
}

static ls_result driver_timer(void *context, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    simulation *s = context;
    int64_t now_ns = ls_engine_now(s->engine);
    return ls_engine_schedule(s->engine, at_ns < now_ns ? now_ns : at_ns, kind, entity, argument);
}

static ls_result answer(simulation *s, double delay_s, uint32_t client, uint32_t tag, ls_reply_status status)
{
    return ls_engine_schedule(s->engine, ls_engine_now(s->engine) + ls_nanoseconds(delay_s), KIND_ANSWER, client,
                              (uint64_t)status << 32 | tag);
}

static void release_body(const ls_store_request *request)
{
    if (request->operation == LS_PUT) ls_manifest_release(request->manifest);
}

/* Keeps a put for later; the reference to its manifest stays with it. */
static ls_result keep(simulation *s, uint32_t client, const ls_store_request *request, uint32_t *place)
{
    for (*place = 0; *place < s->put_count && s->puts[*place].waits; (*place)++) {}
    if (*place == s->put_capacity) {
        uint32_t capacity = s->put_capacity == 0 ? 8 : 2 * s->put_capacity;
        lingering *grown = ls_reallocate(s->puts, capacity * sizeof *grown);
        if (grown == NULL) return LS_ERROR_MEMORY;
        s->puts = grown;
        s->put_capacity = capacity;
    }
    if (*place == s->put_count) s->put_count++;
    s->puts[*place] = (lingering){.request = *request, .client = client, .waits = true};
    return LS_OK;
}

static ls_result linger(simulation *s, uint32_t client, const ls_store_request *request)
{
    const ls_fault_config *faults = &s->scenario->faults;
    uint32_t place;
    if (keep(s, client, request, &place) != LS_OK) {
        release_body(request);
        return LS_ERROR_MEMORY;
    }
    int64_t at_ns = ls_engine_now(s->engine) + ls_nanoseconds(faults->timeout_s + faults->linger_s);
    ls_result result = ls_engine_schedule(s->engine, at_ns, KIND_LINGER, client, place);
    return result != LS_OK ? result : answer(s, faults->timeout_s, client, request->tag, LS_REPLY_UNKNOWN_OUTCOME);
}

static ls_result stop_lingering(simulation *s, int64_t now_ns, uint64_t place)
{
    lingering *put = &s->puts[place];
    put->waits = false;
    return ls_store_model_submit(s->store, now_ns, put->client, CONTEXT_LOST, &put->request);
}

static ls_result refuse(simulation *s, double delay_s, uint32_t client, const ls_store_request *request,
                        ls_reply_status status)
{
    release_body(request);
    return answer(s, delay_s, client, request->tag, status);
}

static ls_fault strike(simulation *s, int64_t now_ns, uint32_t producer, const ls_store_request *request)
{
    if (now_ns >= ls_world_end_ns(s->world)) return LS_FAULT_NONE;
    return ls_faults_strike(&s->scenario->faults, s->seed, s->replication, now_ns, producer, s->sent[producer]++, request);
}

static ls_result driver_submit(void *context, uint32_t client, const ls_store_request *asked)
{
    simulation *s = context;
    const ls_fault_config *faults = &s->scenario->faults;
    int64_t now_ns = ls_engine_now(s->engine);
    uint32_t producer = ls_world_producer(s->world, client);
    ls_store_request request = *asked;
    if (s->watcher != NULL && s->watcher->request != NULL) {
        ls_result result = s->watcher->request(s->watcher->context, producer, &request);
        if (result != LS_OK) {
            release_body(&request);
            return result;
        }
    }
    uint32_t link;
    double bytes_per_s;
    ls_result result = LS_OK;
    if (ls_world_link(s->world, client, &link, &bytes_per_s)) {
        result = ls_store_model_use_link(s->store, client, link, bytes_per_s);
        if (result != LS_OK) {
            release_body(&request);
            return result;
        }
    }
    switch (strike(s, now_ns, producer, &request)) {
    case LS_FAULT_CUT: return refuse(s, faults->refusal_s, client, &request, LS_REPLY_UNAVAILABLE);
    case LS_FAULT_STORM: return refuse(s, faults->refusal_s, client, &request, LS_REPLY_THROTTLED);
    case LS_FAULT_CONFLICT: return refuse(s, faults->refusal_s, client, &request, LS_REPLY_CONFLICT_RETRY);
    case LS_FAULT_ERROR_BEFORE: return refuse(s, faults->timeout_s, client, &request, LS_REPLY_UNKNOWN_OUTCOME);
    case LS_FAULT_LINGER: return linger(s, client, &request);
    case LS_FAULT_LOST_REPLY:
        result = ls_store_model_submit(s->store, now_ns, client, CONTEXT_LOST, &request);
        return result != LS_OK ? result : answer(s, faults->timeout_s, client, request.tag, LS_REPLY_UNKNOWN_OUTCOME);
    case LS_FAULT_NONE: break;
    }
    return ls_store_model_submit(s->store, now_ns, client, CONTEXT_HEARD, &request);
}

static void driver_stop(void *context)
{
    simulation *s = context;
    s->stopping = true;
}

static ls_result store_schedule(void *context, int64_t at_ns, uint64_t token)
{
    simulation *s = context;
    int64_t now_ns = ls_engine_now(s->engine);
    double slowness = ls_store_model_is_latency(token) ? ls_faults_slowness(&s->scenario->faults, now_ns) : 1;
    if (slowness > 1 && at_ns != LS_NEVER_NS) at_ns = now_ns + (int64_t)(slowness * (double)(at_ns - now_ns));
    return ls_engine_schedule(s->engine, at_ns, KIND_STORE, 0, token);
}

static bool object_exists(void *context, const ls_key *key, uint64_t size_bytes)
{
    simulation *s = context;
    uint64_t bytes = 0;
    return ls_store_model_has(s->store, key, &bytes) && bytes == size_bytes;
}

/* The modelled store keeps no content: where the slice asked for lies follows from the object's size, all slices being equal but
 * for the bytes that do not divide. A reply that carries a slice's place already is one to a span read. */
static void decode_footer(const simulation *s, ls_store_reply *reply)
{
    if (reply->status != LS_REPLY_OK || reply->slice.bytes > 0) return;
    uint64_t context_ranks = s->scenario->batches.context_parallel, slices = s->scenario->batches.data_parallel * context_ranks;
    uint64_t footer_bytes = ls_tgb_footer_bytes((uint32_t)s->scenario->batches.data_parallel, (uint32_t)context_ranks);
    uint64_t content = reply->object_bytes > footer_bytes ? reply->object_bytes - footer_bytes : 0;
    uint64_t place = reply->slice.data_rank * context_ranks + reply->slice.context_rank;
    uint64_t each = content / slices, rest = content % slices;
    reply->slice.offset = place * each + (place < rest ? place : rest);
    reply->slice.bytes = each + (place < rest ? 1 : 0);
}

static double stored_bytes(void *context)
{
    const simulation *s = context;
    return (double)ls_store_model_counters(s->store)->stored_bytes;
}

static ls_result store_event(simulation *s, int64_t now_ns, uint64_t token)
{
    ls_store_completion done;
    ls_store_effect effect;
    ls_result result = ls_store_model_event(s->store, now_ns, token, &done, &effect);
    if (result != LS_OK) return result;
    bool created = effect.happened && effect.status == LS_REPLY_OK && effect.request.operation == LS_PUT &&
                   effect.request.key.kind == LS_OBJECT_MANIFEST;
    if (created) {
        result = ls_world_created(s->world, now_ns, effect.client, effect.request.manifest);
        if (result != LS_OK) {
            if (done.ready) ls_manifest_release(done.reply.manifest);
            return result;
        }
    }
    if (!done.ready) return LS_OK;
    if (done.operation == LS_GET && done.kind == LS_OBJECT_DATA) decode_footer(s, &done.reply);
    if (done.context == CONTEXT_HEARD) return ls_world_reply(s->world, now_ns, done.client, &done.reply);
    ls_manifest_release(done.reply.manifest);
    return LS_OK;
}

static ls_result handle(simulation *s, const ls_engine_event *event)
{
    switch (event->kind) {
    case KIND_STORE: return store_event(s, event->at_ns, event->argument);
    case KIND_LINGER: return stop_lingering(s, event->at_ns, event->argument);
    case KIND_ANSWER: {
        ls_store_reply reply = {.status = (ls_reply_status)(event->argument >> 32), .tag = (uint32_t)event->argument};
        return ls_world_reply(s->world, event->at_ns, event->entity, &reply);
    }
    default: return ls_world_timer(s->world, event->at_ns, event->kind, event->entity, event->argument);
    }
}

/* So many events at one instant are more than any finite crowd makes: two for every pair of producers, and a few millions. */
static uint64_t instant_limit(uint64_t producers)
{
    return 2000000 + 2 * producers * producers;
}

/* Bills are for the measured time alone, as the world's own counts are. */
static void take_snapshot(simulation *s)
{
    const ls_store_counters *now = ls_store_model_counters(s->store);
    if (!s->counting) {
        s->before = *now;
        s->counting = true;
        s->snapshot_ns = ls_nanoseconds(s->scenario->warm_up_s + s->scenario->duration_s);
        return;
    }
    s->after = *now;
    s->snapshot_ns = LS_NEVER_NS;
}

static ls_result run(simulation *s, uint64_t most_at_once, ls_error *error)
{
    ls_engine_event event;
    int64_t now_ns = 0;
    uint64_t at_once = 0;
    ls_result result = ls_world_begin(s->world);
    while (result == LS_OK && !s->stopping && ls_engine_next(s->engine, &event)) {
        at_once = event.at_ns == now_ns ? at_once + 1 : 0;
        now_ns = event.at_ns;
        if (at_once > most_at_once) {
            return ls_fail(error, LS_ERROR_LIMIT,
                           "time stands still at %.9g s after %" PRIu64 " events: requests that take no time make a closed loop "
                           "endless; give the store's put-if-absent or reads a latency, or the policy a pause",
                           ls_seconds(now_ns), at_once);
        }
        while (now_ns >= s->snapshot_ns) take_snapshot(s);
        result = handle(s, &event);
    }
    while (s->snapshot_ns != LS_NEVER_NS) take_snapshot(s);
    if (result == LS_OK) return LS_OK;
    const char *reason = ls_world_error(s->world);
    return ls_fail(error, result, "%s", reason[0] != 0 ? reason : ls_result_name(result));
}

/* A batch that theory uploads in no time has no object to look for; all other invariants are checked there as well. */
static bool needs_no_object(void *context, const ls_key *key, uint64_t size_bytes)
{
    (void)context;
    (void)key;
    (void)size_bytes;
    return true;
}

static ls_object_exists checker(const ls_scenario *scenario)
{
    return scenario->upload.instantaneous ? needs_no_object : object_exists;
}

/* Machines that take turns by an outside word, or try once and are gone, have nobody who would restart them. */
static ls_result check_faults(const ls_scenario *scenario, ls_error *error)
{
    bool alone = scenario->policy.policy->simulator_only || scenario->batches.law == LS_ARRIVAL_OPEN;
    bool paused = scenario->faults.pause_rate_per_s > 0 || scenario->faults.pause_at_s > 0;
    if (alone && (paused || ls_faults_replace(&scenario->faults))) {
        return ls_fail(error, LS_ERROR_INVALID, "faults of producers (crash, pause) do not go with policy '%s' and arrivals '%s'; faults "
                       "of requests do", scenario->policy.policy->name,
                       scenario->batches.law == LS_ARRIVAL_OPEN ? "open" : "of this scenario");
    }
    if (scenario->batches.law == LS_ARRIVAL_OPEN && scenario->drain_s > 0) {
        return ls_fail(error, LS_ERROR_INVALID, "drain_s does not go with batches.law 'open': its attempts give up by design");
    }
    return ls_faults_check(&scenario->faults, error);
}

static void measure_bill(const simulation *s, ls_run_result *result)
{
    double published = result->values[LS_METRIC_PUBLISHED_RATE] * result->values[LS_METRIC_MEASURED];
    const ls_price_table *table = ls_price_table_for(s->scenario->prices, s->scenario->store_preset);
    if (!(published > 0)) return;
    double stored_bytes = ((double)s->after.stored_bytes - (double)s->before.stored_bytes) / published;
    result->values[LS_METRIC_STORED_BYTES] = stored_bytes;
    const ls_store_count *from = &s->before.by[LS_PUT][LS_OBJECT_MANIFEST][LS_REPLY_OK];
    const ls_store_count *to = &s->after.by[LS_PUT][LS_OBJECT_MANIFEST][LS_REPLY_OK];
    result->values[LS_METRIC_HISTORY_BYTES] = (double)(to->up_bytes - from->up_bytes) / published;
    if (table == NULL) return;
    double per_million = 1e6 / published;
    result->values[LS_METRIC_COMMIT_DOLLARS] =
        per_million * ls_price_of_others(table, &s->before, &s->after, LS_OBJECT_DATA);
    result->values[LS_METRIC_DATA_DOLLARS] = per_million * ls_price_of_kind(table, &s->before, &s->after, LS_OBJECT_DATA);
    result->values[LS_METRIC_STORAGE_DOLLARS] = 1e6 * stored_bytes / 1073741824.0 * table->held_dollars_per_gib_month;
}

static void release(simulation *s)
{
    for (uint32_t i = 0; i < s->put_count; i++) {
        if (s->puts[i].waits) release_body(&s->puts[i].request);
    }
    ls_free(s->puts);
    ls_free(s->sent);
    ls_world_free(s->world);
    ls_store_model_destroy(s->store);
    ls_engine_free(s->engine);
}

static void show_series(const simulation *s, double *warm_up_s)
{
    uint32_t count;
    int64_t step_ns;
    const double *series = ls_world_series(s->world, &count, &step_ns);
    if (warm_up_s != NULL) *warm_up_s = ls_seconds(step_ns) * (double)ls_mser5(series, count);
    else if (s->watcher != NULL) {
        ls_timeline timeline = {.published = series, .steps = ls_world_step_series(s->world),
                                .stored_bytes = ls_world_stored_series(s->world), .count = count, .step_s = ls_seconds(step_ns)};
        if (s->watcher->series != NULL) s->watcher->series(s->watcher->context, series, count, ls_seconds(step_ns));
        if (s->watcher->timeline != NULL) s->watcher->timeline(s->watcher->context, &timeline);
    }
}

static ls_result simulate_commits(const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                                  const ls_simulation_watcher *watcher, double *warm_up_s, ls_run_result *result,
                                  ls_error *error)
{
    ls_result outcome = check_faults(scenario, error);
    if (outcome == LS_OK) outcome = ls_trainer_check(scenario, error);
    if (outcome == LS_OK && scenario->batches.law == LS_ARRIVAL_PREPROCESSED) {
        ls_preprocessing tried; /* so that a bad law is told as such */
        outcome = ls_preprocessing_prepare(scenario, seed, replication, &tried, error);
        if (outcome == LS_OK) ls_preprocessing_release(&tried);
    }
    if (outcome != LS_OK) return outcome;
    simulation s = {.engine = ls_engine_new(), .scenario = scenario, .watcher = watcher, .seed = seed,
                    .replication = replication, .snapshot_ns = ls_nanoseconds(scenario->warm_up_s)};
    outcome = LS_ERROR_MEMORY;
    if (s.engine == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "out of memory for the event queue");
        goto done;
    }
    ls_store_scheduler scheduler = {.schedule = store_schedule, .context = &s};
    outcome = ls_store_model_create(&scenario->store, seed, replication, scheduler, &s.store, error);
    if (outcome != LS_OK) goto done;
    ls_driver driver = {.context = &s, .now = driver_now, .timer = driver_timer, .submit = driver_submit, .stop = driver_stop};
    s.world = ls_world_new(scenario, seed, replication, &driver, checker(scenario), &s, error);
    if (s.world == NULL) {
        outcome = LS_ERROR_MEMORY;
        goto done;
    }
    s.sent = ls_allocate_array(ls_world_stations(s.world), sizeof *s.sent);
    if (s.sent == NULL) {
        outcome = ls_fail(error, LS_ERROR_MEMORY, "out of memory for the count of requests");
        goto done;
    }
    ls_world_watch_storage(s.world, stored_bytes, &s);
    if (watcher != NULL && warm_up_s == NULL) ls_world_watch(s.world, watcher->sight, watcher->context);
    if (ls_world_initial(s.world) != NULL) {
        outcome = ls_store_model_install_manifest(s.store, ls_world_initial(s.world));
        if (outcome != LS_OK) {
            ls_fail(error, outcome, "out of memory for the initial manifest");
            goto done;
        }
    }
    outcome = run(&s, instant_limit(scenario->producers.count), error);
    if (outcome == LS_OK) {
        outcome = ls_world_measure(s.world, ls_engine_now(s.engine), result);
        if (outcome != LS_OK) ls_fail(error, outcome, "%s", ls_world_error(s.world));
    }
    if (outcome == LS_OK) measure_bill(&s, result);
    result->events = ls_engine_processed(s.engine);
    if (outcome == LS_OK) show_series(&s, warm_up_s);
done:
    release(&s);
    return outcome;
}

ls_result ls_simulate(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result, ls_error *error)
{
    return ls_simulate_watched(scenario, seed, replication, NULL, result, error);
}

ls_result ls_simulate_watched(const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                              const ls_simulation_watcher *watcher, ls_run_result *result, ls_error *error)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    ls_result outcome;
    if (scenario->world == LS_WORLD_QUEUE) {
        outcome = ls_simulate_queue(scenario, seed, replication, result, error);
    } else if (scenario->world == LS_WORLD_READ) {
        outcome = ls_simulate_read(scenario, seed, replication, result, error);
    } else if (scenario->world == LS_WORLD_COLOCATED) {
        outcome = ls_simulate_colocated(scenario, seed, replication, result, error);
    } else if (scenario->world == LS_WORLD_KAFKA) {
        outcome = ls_simulate_kafka(scenario, seed, replication, result, error);
    } else if (scenario->warm_up_s >= 0) {
        outcome = simulate_commits(scenario, seed, replication, watcher, NULL, result, error);
    } else { /* the same random streams twice: a pilot run tells where the transient ends */
        ls_scenario timed = *scenario;
        timed.warm_up_s = 0;
        double warm_up_s = 0;
        outcome = simulate_commits(&timed, seed, replication, watcher, &warm_up_s, result, error);
        timed.warm_up_s = warm_up_s;
        if (outcome == LS_OK) outcome = simulate_commits(&timed, seed, replication, watcher, NULL, result, error);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    result->wall_s = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return outcome;
}
