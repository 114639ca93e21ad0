/* trainer.h - the training job beside the producers: D x C ranks that read each step's slices, compute, and meet at a barrier.
 *
 * Each rank has a consumer machine of its own (manifest/consumer.h, on demand) and reads over its node's link. A step begins for
 * all ranks at once. A rank that has its slice computes, for a time drawn from trainer.compute; the step ends when the last rank
 * has computed, and trainer.sync_s later the next one begins. So
 *
 *   step s:  begins B(s);  rank r has its data at A(r, s) >= B(s);  ends E(s) = max over r of (A(r, s) + compute(r, s)) + sync
 *   data stall of the step: max over r of A(r, s) - B(s)
 *
 * Every trainer.checkpoint_steps steps the job pauses for checkpoint_s and a checkpointer machine (manifest/checkpoint.h) makes
 * the lake's checkpoint object beside it. A crash of the job ends all ranks and the checkpointer; after restart_s it goes back to
 * a checkpoint it knows to be durable, pins it, and reads the same steps again. That they are the same is checked: what any rank
 * was handed for a step is compared with what the first one ever was. A rank's reader may crash alone (faults.consumer_crash_...):
 * the job waits for it at the barrier.
 */
#ifndef LS_TRAINER_H
#define LS_TRAINER_H

#include "sim/crew.h"

typedef struct ls_trainer ls_trainer;

/* How many stations it takes: a rank each, and one for its checkpointer. */
uint32_t ls_trainer_stations(const ls_scenario *scenario);

/* LS_ERROR_INVALID with the reason for settings that make no sense together (LS_ERROR_IO, LS_ERROR_CORRUPT for a law's file). */
ls_result ls_trainer_check(const ls_scenario *scenario, ls_error *error);

/* A job that begins at first_step, with stations 0 .. ls_trainer_stations - 1; crew is copied, what it points to borrowed. NULL when
 * out of memory or (with error) for a law that makes no sense. */
ls_trainer *ls_trainer_new(const ls_crew *crew, uint64_t first_step, ls_error *error);
void ls_trainer_free(ls_trainer *trainer); /* NULL is allowed */

/* Starts the ranks, and draws the crashes. */
ls_result ls_trainer_begin(ls_trainer *trainer, int64_t now_ns);

/* A timer of a kind below LS_RECLAIMERS_FIRST; a reply for a client that enlisted at one of its stations. */
ls_result ls_trainer_timer(ls_trainer *trainer, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument);
ls_result ls_trainer_reply(ls_trainer *trainer, int64_t now_ns, uint32_t station, uint32_t client, const ls_store_reply *reply);

/* From here on it counts; and no fault strikes any more. */
void ls_trainer_measure_from(ls_trainer *trainer, int64_t now_ns);
void ls_trainer_calm(ls_trainer *trainer);

/* Fills the trainer's metrics (sim/metrics.h) over the time since ls_trainer_measure_from. */
void ls_trainer_measure(const ls_trainer *trainer, int64_t now_ns, double *values);

uint64_t ls_trainer_steps(const ls_trainer *trainer); /* ended since the beginning, replayed ones counted again */
uint64_t ls_trainer_step(const ls_trainer *trainer);  /* the global step under way, or to be begun next */

/* What a rank computes on a step, in seconds: a function of these alone, so that baselines meet the same trainer. step counts from
 * the job's first. */
double ls_trainer_compute_s(const ls_law_sampler *compute, uint64_t seed, uint64_t replication, uint32_t rank, uint64_t step);

/* The node that a station's reads go through; its checkpointer sits on node 0. */
uint32_t ls_trainer_node(const ls_trainer *trainer, uint32_t station);

#endif
