/* simulate.c - one replication in virtual time: engine, modelled store and world put together.
 *
 * The engine's events are of two sorts: timers of the world (its own kinds), and wake-ups of the store model (KIND_STORE). The
 * world never calls back into the engine except to schedule, so the loop below is all the control flow there is.
 */
#include "sim/engine.h"
#include "sim/mser.h"
#include "sim/queue_world.h"
#include "sim/store_model.h"
#include "sim/world.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#define KIND_STORE UINT32_C(0xffffffff) /* the world's kinds are small */

typedef struct simulation {
    ls_engine *engine;
    ls_store_model *store;
    ls_world *world;
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

static ls_result driver_submit(void *context, uint32_t client, const ls_store_request *request)
{
    simulation *s = context;
    return ls_store_model_submit(s->store, ls_engine_now(s->engine), client, 0, request);
}

static void driver_stop(void *context)
{
    simulation *s = context;
    s->stopping = true;
}

static ls_result store_schedule(void *context, int64_t at_ns, uint64_t token)
{
    simulation *s = context;
    return ls_engine_schedule(s->engine, at_ns, KIND_STORE, 0, token);
}

static bool object_exists(void *context, const ls_key *key, uint64_t size_bytes)
{
    simulation *s = context;
    uint64_t bytes = 0;
    return ls_store_model_has(s->store, key, &bytes) && bytes == size_bytes;
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
    return done.ready ? ls_world_reply(s->world, now_ns, done.client, &done.reply) : LS_OK;
}

/* So many events at one instant are more than any finite crowd makes: two for every pair of producers, and a few millions. */
static uint64_t instant_limit(uint64_t producers)
{
    return 2000000 + 2 * producers * producers;
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
        result = event.kind == KIND_STORE
                     ? store_event(s, event.at_ns, event.argument)
                     : ls_world_timer(s->world, event.at_ns, event.kind, event.entity, event.argument);
    }
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

static ls_result simulate_commits(const ls_scenario *scenario, uint64_t seed, uint64_t replication, double *warm_up_s,
                                  ls_run_result *result, ls_error *error)
{
    simulation s = {.engine = ls_engine_new()};
    ls_result outcome = LS_ERROR_MEMORY;
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
    if (ls_world_initial(s.world) != NULL) {
        outcome = ls_store_model_install_manifest(s.store, ls_world_initial(s.world));
        if (outcome != LS_OK) {
            ls_fail(error, outcome, "out of memory for the initial manifest");
            goto done;
        }
    }
    outcome = run(&s, instant_limit(scenario->producers.count), error);
    if (outcome == LS_OK) outcome = ls_world_measure(s.world, ls_engine_now(s.engine), result);
    result->events = ls_engine_processed(s.engine);
    if (warm_up_s != NULL) {
        uint32_t count;
        int64_t step_ns;
        const double *series = ls_world_series(s.world, &count, &step_ns);
        *warm_up_s = ls_seconds(step_ns) * (double)ls_mser5(series, count);
    }
done:
    ls_world_free(s.world);
    ls_store_model_destroy(s.store);
    ls_engine_free(s.engine);
    return outcome;
}

ls_result ls_simulate(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result, ls_error *error)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    ls_result outcome;
    if (scenario->world == LS_WORLD_QUEUE) {
        outcome = ls_simulate_queue(scenario, seed, replication, result, error);
    } else if (scenario->warm_up_s >= 0) {
        outcome = simulate_commits(scenario, seed, replication, NULL, result, error);
    } else { /* the same random streams twice: a pilot run tells where the transient ends */
        ls_scenario timed = *scenario;
        timed.warm_up_s = 0;
        double warm_up_s = 0;
        outcome = simulate_commits(&timed, seed, replication, &warm_up_s, result, error);
        timed.warm_up_s = warm_up_s;
        if (outcome == LS_OK) outcome = simulate_commits(&timed, seed, replication, NULL, result, error);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    result->wall_s = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return outcome;
}
