/* queue_world.c - Poisson arrivals into a station on the engine (see queue_world.h).
 *
 * Gaps and service times have a stream each and are drawn in order of arrival, so the n-th customer is the same for any
 * number of servers. One arrival is in the event queue at a time.
 */
#include "sim/queue_world.h"

#include "sim/engine.h"
#include "sim/metrics.h"
#include "sim/station.h"

#include <math.h>

enum { KIND_ARRIVAL = 1, KIND_DEPARTURE };

typedef struct queue_world {
    ls_engine *engine;
    ls_station *station;
    ls_law_sampler service;
    ls_random gaps;
    ls_random services;
    double rate_per_s;
    uint64_t warm_up; /* customers before the measured ones */
    uint64_t last;    /* number of the last measured customer, from 0 */
    uint64_t arrived;
    uint64_t started; /* measured customers whose service has begun */
    int64_t first_ns; /* first and last measured arrival */
    int64_t last_ns;
    int64_t changed_ns; /* busy servers were counted up to here */
    double wait_s;      /* sums over measured customers, and over the measured time */
    double busy_s;
} queue_world;

static ls_result schedule_departure(void *context, int64_t at_ns, uint64_t token)
{
    queue_world *world = context;
    return ls_engine_schedule(world->engine, at_ns, KIND_DEPARTURE, 0, token);
}

static ls_result schedule_arrival(queue_world *world)
{
    if (world->arrived > world->last) return LS_OK;
    int64_t gap_ns = ls_nanoseconds(ls_random_exponential(&world->gaps) / world->rate_per_s);
    if (gap_ns > LS_LAW_MAX_NS) gap_ns = LS_LAW_MAX_NS;
    return ls_engine_schedule(world->engine, ls_engine_now(world->engine) + gap_ns, KIND_ARRIVAL, 0, 0);
}

/* Adds the servers' busy time since the last change; only what lies between the first and the last measured arrival. */
static void count_busy(queue_world *world, int64_t now_ns)
{
    bool is_measured = world->arrived > world->warm_up && world->arrived <= world->last;
    if (is_measured) world->busy_s += ls_seconds(now_ns - world->changed_ns) * (double)ls_station_busy(world->station);
    world->changed_ns = now_ns;
}

static void count_start(queue_world *world, uint64_t customer, int64_t waited_ns)
{
    if (customer < world->warm_up || customer > world->last) return;
    world->wait_s += ls_seconds(waited_ns);
    world->started++;
}

static ls_result arrive(queue_world *world, int64_t now_ns)
{
    uint64_t customer = world->arrived++;
    if (customer == world->warm_up) world->first_ns = now_ns;
    if (customer == world->last) world->last_ns = now_ns;
    bool started;
    int64_t service_ns = ls_law_draw_ns(&world->service, &world->services);
    ls_result result = ls_station_arrive(world->station, now_ns, service_ns, customer, &started);
    if (result != LS_OK) return result;
    if (started) count_start(world, customer, 0);
    return schedule_arrival(world);
}

static ls_result depart(queue_world *world, int64_t now_ns, uint64_t customer)
{
    ls_station_turn turn;
    ls_result result = ls_station_event(world->station, now_ns, customer, &turn);
    if (result == LS_OK && turn.has_started) count_start(world, turn.started, turn.waited_ns);
    return result;
}

static ls_result run(queue_world *world)
{
    ls_engine_event event;
    ls_result result = schedule_arrival(world);
    uint64_t measured = world->last - world->warm_up + 1;
    while (result == LS_OK && world->started < measured && ls_engine_next(world->engine, &event)) {
        count_busy(world, event.at_ns);
        result = event.kind == KIND_ARRIVAL ? arrive(world, event.at_ns) : depart(world, event.at_ns, event.argument);
    }
    return result == LS_OK && world->started < measured ? LS_ERROR_MEMORY : result;
}

static void report(const queue_world *world, const ls_scenario *scenario, ls_run_result *result)
{
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) result->values[i] = NAN;
    double measured_s = ls_seconds(world->last_ns - world->first_ns);
    result->values[LS_METRIC_MEASURED] = measured_s;
    result->values[LS_METRIC_QUEUE_WAIT_MEAN] = world->wait_s / (double)world->started;
    if (measured_s > 0.0) {
        result->values[LS_METRIC_QUEUE_UTILISATION] = world->busy_s / measured_s / (double)scenario->queue.servers;
    }
    result->events = ls_engine_processed(world->engine);
}

ls_result ls_simulate_queue(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                            ls_error *error)
{
    uint64_t customers = scenario->queue.customers;
    if (customers == 0 || scenario->queue.servers == 0 || !(scenario->queue.arrival_rate_per_s > 0.0)) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "queue: customers, servers and arrival_rate_per_s must all be above 0, found %llu, %llu and %g",
                       (unsigned long long)customers, (unsigned long long)scenario->queue.servers,
                       scenario->queue.arrival_rate_per_s);
    }
    queue_world world = {.gaps = ls_random_open(seed, replication, LS_RANDOM_ARRIVAL, 0),
                         .services = ls_random_open(seed, replication, LS_RANDOM_SERVICE, 0),
                         .rate_per_s = scenario->queue.arrival_rate_per_s,
                         .warm_up = customers / 10,
                         .last = customers / 10 + customers - 1};
    ls_error reason = {""};
    ls_result outcome = ls_law_prepare(&scenario->queue.service, &world.service, &reason);
    if (outcome != LS_OK) return ls_fail(error, outcome, "queue.service: %s", reason.text);
    world.engine = ls_engine_new();
    world.station = ls_station_new(scenario->queue.servers, (ls_store_scheduler){schedule_departure, &world});
    outcome = world.engine == NULL || world.station == NULL ? LS_ERROR_MEMORY : run(&world);
    if (outcome == LS_OK)
        report(&world, scenario, result);
    else
        ls_fail(error, outcome, "queue: %s", ls_result_name(outcome));
    ls_station_free(world.station);
    ls_engine_free(world.engine);
    ls_law_release(&world.service);
    return outcome;
}
