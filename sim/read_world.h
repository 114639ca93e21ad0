/* read_world.h - the world "read": a finished lake of read.steps batches, and D x C ranks that read all of it.
 *
 * Each rank is a consumer machine (manifest/consumer.h), by range or, with read.whole_objects, by whole objects. The
 * population does not know who drives it: the simulator, whose store knows sizes and no contents, or the real-time loop
 * over batches that were really written. Both must move the same bytes, request by request.
 */
#ifndef LS_READ_WORLD_H
#define LS_READ_WORLD_H

#include "manifest/driver.h"
#include "sim/scenario.h"

typedef struct ls_readers ls_readers;

/* The ranks of a scenario, none started. *readers is freed by ls_readers_free; driver is copied. LS_ERROR_INVALID for a
 * layout that is too large or batches too small for their footer; LS_ERROR_MEMORY. */
ls_result ls_readers_new(const ls_scenario *scenario, const ls_driver *driver, ls_readers **readers, ls_error *error);
void ls_readers_free(ls_readers *readers); /* NULL is allowed */

/* The manifest that lists the batches; borrowed. It and the batches must be in the store before the ranks begin. */
const ls_manifest *ls_readers_manifest(const ls_readers *readers);

/* Where the slice of a rank lies in every batch: contents are shared out evenly, the first slices take the remainder.
 * crc32c is 0: a model has no contents. */
ls_slice ls_readers_slice(const ls_readers *readers, uint32_t data_rank, uint32_t context_rank);

/* All ranks start now. The run ends (driver's stop) when each has handed on every step. */
ls_result ls_readers_begin(ls_readers *readers);
ls_result ls_readers_timer(ls_readers *readers, int64_t now_ns, uint32_t kind, uint32_t entity);
ls_result ls_readers_reply(ls_readers *readers, int64_t now_ns, uint32_t client, const ls_store_reply *reply);

/* Fills result with what was measured until now; LS_ERROR_VIOLATED (with error) when a rank has not got all its steps.
 */
ls_result ls_readers_measure(const ls_readers *readers, int64_t now_ns, ls_run_result *result, ls_error *error);

/* One replication in virtual time. */
ls_result ls_simulate_read(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                           ls_error *error);

#endif
