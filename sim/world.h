/* world.h - the population of one run: producers, what they produce, and what is measured; the same on every driver.
 *
 * A world creates the machines that a scenario asks for, feeds them batches by the arrival law, carries their actions to
 * the driver (manifest/driver.h) and the driver's answers back, and counts. It knows neither virtual nor real time.
 * Measurement begins after the warm-up; what was produced before but published after is not counted as offered.
 */
#ifndef LS_WORLD_H
#define LS_WORLD_H

#include "manifest/driver.h"
#include "manifest/invariants.h"
#include "sim/scenario.h"

typedef struct ls_world ls_world;


/* Builds the machines and the initial manifest. scenario is borrowed until ls_world_free. With exists, every version that
 * ls_world_created is told of is checked against the invariants. NULL with error on failure. */
ls_world *ls_world_new(const ls_scenario *scenario, uint64_t seed, uint64_t replication, const ls_driver *driver,
                       ls_object_exists exists, void *exists_context, ls_error *error);
void ls_world_free(ls_world *world);

/* The initial manifest (borrowed), NULL if the lake starts empty. */
const ls_manifest *ls_world_initial(const ls_world *world);

/* Sets the first timers. */
ls_result ls_world_begin(ls_world *world);

/* The driver's answers. A result other than LS_OK ends the run; ls_world_error says why. */
ls_result ls_world_timer(ls_world *world, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument);
ls_result ls_world_reply(ls_world *world, int64_t now_ns, uint32_t client, const ls_store_reply *reply);

/* A manifest version took effect in the store (drivers that can see that instant: the simulator). */
ls_result ls_world_created(ls_world *world, int64_t now_ns, uint32_t client, const ls_manifest *manifest);

/* Closes the books at now_ns and fills every metric. */
ls_result ls_world_measure(ls_world *world, int64_t now_ns, ls_run_result *result);

/* The number of batches published in each step of *step_ns, oldest first (for warm-up detection). The step is the
 * scenario's, or longer where that would give more points than are kept. */
const double *ls_world_series(const ls_world *world, uint32_t *count, int64_t *step_ns);

const char *ls_world_error(const ls_world *world);

/* When the measured time ends; faults end with it. */
int64_t ls_world_end_ns(const ls_world *world);

/* The producer of a client: a client is one incarnation of a producer, and a restart brings a new one. UINT32_MAX for one that has
 * ended. */
uint32_t ls_world_producer(const ls_world *world, uint32_t client);

/* Clients of the trainer and the reclaimers (sim/crew.h) are numbered after the producers by ls_world_producer, one number a station;
 * so many numbers there are in all. */
uint32_t ls_world_stations(const ls_world *world);

/* The link that a client's bytes cross, and its bandwidth (0: unlimited), when it is not one of the client's own: the ranks of a
 * node share one. False: its own. For drivers that model links. */
bool ls_world_link(const ls_world *world, uint32_t client, uint32_t *link, double *bytes_per_s);

/* Has the bytes held in the store sampled with the time series; without a probe they are not known. */
typedef double (*ls_world_probe)(void *context);
void ls_world_watch_storage(ls_world *world, ls_world_probe probe, void *context);

/* Has everything that happens to producers told to a function, in order of time. */
void ls_world_watch(ls_world *world, void (*sight)(void *context, const ls_sight *sight), void *context);

/* Beside ls_world_series, of the same length: training steps that ended in each step of time; bytes stored at its end. */
const double *ls_world_step_series(const ls_world *world);
const double *ls_world_stored_series(const ls_world *world);

/* The source offsets of a batch that a producer is uploading: real drivers fill the object from them. */
bool ls_world_source_range(const ls_world *world, const ls_key *key, uint64_t *begin, uint64_t *end);

#endif
