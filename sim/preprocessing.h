/* preprocessing.h - what it costs to make a training sample out of a stored one, and named workloads.
 *
 * A sample costs decode_factor * decode + transform seconds of one CPU core: decode is drawn from a law, which may have a Pareto
 * tail (a clip that must be scanned from a far key frame, a damaged one that is tried again); transform (crop, resize, tokenise) is a
 * constant. A prepared sample is a tensor of fixed shape, so its size is a constant; a stored one is `expansion` times smaller.
 * A rank takes samples_per_rank samples a step. Ranks of one context-parallel group share their samples and split each of them.
 *
 * Two places may do this work, and both draw from here:
 *   producers (batches.law "preprocessed"): the samples of all data ranks of a step on preprocessing.cores_per_producer cores, which
 *     go on with the next batch while the last samples of one are under way: a batch takes max(sum / cores, longest sample)
 *   colocated workers (sim/colocated.h): the samples of one rank and step in one worker, one after the other
 */
#ifndef LS_PREPROCESSING_H
#define LS_PREPROCESSING_H

#include "sim/scenario.h"

/* A workload as a preset. Numbers that nobody published are marked "assumed" in `source`. */
typedef struct ls_workload {
    const char *name;
    const char *meaning;
    const char *source;   /* of each number, in the order of the fields below */
    uint64_t samples_per_rank;
    uint64_t sample_bytes; /* prepared */
    double expansion;
    ls_law decode;
    double transform_s;
} ls_workload;

const ls_workload *ls_workloads(uint32_t *count);

/* The settings in force, made ready for drawing. */
typedef struct ls_preprocessing {
    ls_law_sampler decode;
    double decode_factor, transform_s, expansion;
    uint64_t samples_per_rank, sample_bytes, data_ranks, slices;
    uint64_t cores_per_producer;
    uint64_t seed, replication;
} ls_preprocessing;

/* Takes the workload's numbers, or with workload "custom" the scenario's own. LS_ERROR_INVALID, LS_ERROR_IO, LS_ERROR_CORRUPT with the
 * reason for a law that makes no sense; then there is nothing to release. */
ls_result ls_preprocessing_prepare(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_preprocessing *preprocessing,
                                   ls_error *error);
void ls_preprocessing_release(ls_preprocessing *preprocessing); /* a zeroed one is allowed */

/* The mean cost of a sample, in seconds of a core (INFINITY when the law's tail has none). */
double ls_preprocessing_mean_s(const ls_preprocessing *preprocessing);

/* Cost of the samples of one data rank in one step, in seconds of a core; the same whenever it is asked. longest_s may be NULL. */
double ls_preprocessing_slice_s(const ls_preprocessing *preprocessing, uint64_t data_rank, uint64_t step, double *longest_s);

/* How long a producer works on the batch with this source offset. */
double ls_preprocessing_batch_s(const ls_preprocessing *preprocessing, uint64_t producer, uint64_t offset);

/* Bytes of a whole batch's slices, without the footer; and of the stored samples that one data rank needs for a step. */
uint64_t ls_preprocessing_batch_bytes(const ls_preprocessing *preprocessing);
double ls_preprocessing_stored_bytes(const ls_preprocessing *preprocessing);

#endif
