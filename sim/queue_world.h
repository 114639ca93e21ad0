/* queue_world.h - the world "queue": Poisson arrivals at one service station, for checks against queueing theory.
 *
 * It exists to hold the parts that all simulated stores stand on (engine, station, laws, streams) to closed forms:
 * M/M/c by Erlang C, M/G/1 by Pollaczek and Khinchine.
 */
#ifndef LS_QUEUE_WORLD_H
#define LS_QUEUE_WORLD_H

#include "sim/scenario.h"

/* Runs scenario->queue: the mean wait before service of queue.customers customers, after a tenth as many as warm-up,
 * and the share of time that a server is busy between the first and the last measured arrival. Every other metric is
 * NaN (measured_s: that time). LS_ERROR_INVALID, LS_ERROR_IO, LS_ERROR_CORRUPT for a bad setting or law file,
 * LS_ERROR_MEMORY. */
ls_result ls_simulate_queue(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                            ls_error *error);

#endif
