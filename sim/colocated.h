/* colocated.h - the baseline that Lakestream replaces: loader workers beside each rank, on the trainer's own cores and memory.
 *
 * The world "colocated". Each rank has `workers` loader processes (as PyTorch's DataLoader has them): worker w prepares the rank's
 * batches w, w + W, w + 2W, ... whole, one sample after the other, and the rank takes them in order, so a slow batch blocks those
 * that are ready behind it. At most limit = workers * prefetch_batches batches of a rank are begun and not yet taken, less where
 * the node's memory does not hold them. All ranks meet at a barrier each step, so the slowest rank's loader gates the step:
 *
 *   done(r, i)  = max(done(r, i - W), taken(r, i - limit)) + service(r, i)
 *   taken(r, s) = max(B(s), done(r, s))                        no workers: B(s) + service(r, s)
 *   B(s + 1)    = max over r of (taken(r, s) + compute(r, s)) + sync
 *   service     = stretch * cost of the samples (sim/preprocessing.h) + samples * read_s
 *   stretch     = max(1, workers / (cores_per_rank - trainer_cores_per_rank))
 *
 * Every rank of a context-parallel group prepares the same samples again (field notes, F.2). A crash of one worker stops the whole
 * job; after trainer.restart_s it goes on from its last checkpoint with empty queues. The recurrence is exact, so no event queue is
 * needed; compute times come from the same draws as in the world "commit".
 */
#ifndef LS_COLOCATED_H
#define LS_COLOCATED_H

#include "sim/scenario.h"

/* Simulates scenario->colocated until warm_up_s + duration_s and fills the trainer's metrics, every other one NaN. LS_ERROR_INVALID,
 * LS_ERROR_IO, LS_ERROR_CORRUPT for a bad setting or law, LS_ERROR_LIMIT when steps take no time, LS_ERROR_MEMORY. */
ls_result ls_simulate_colocated(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                                ls_error *error);

/* Batches of one rank that its node's memory and the prefetch setting allow to be begun and not taken; at least 1. */
uint64_t ls_colocated_limit(const ls_scenario *scenario, uint64_t batch_bytes);

#endif
