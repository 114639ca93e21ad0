/* schedule.h - which replication of which point to run next, and when a point has enough.
 *
 * Pure bookkeeping, no process and no clock, so that the rule can be tested alone. The set of replications that a
 * point ends up with is {0 .. k-1} with the smallest k the stopping rule allows; k is decided on complete prefixes
 * only, in order, so it does not depend on how many workers there are or who finishes first. When nothing certain is
 * left to start while others still run, `next` offers replications beyond the present k; such a result is kept only
 * if k grows to include it.
 */
#ifndef LS_SCHEDULE_H
#define LS_SCHEDULE_H

#include "experiments/spec.h"

typedef struct ls_schedule ls_schedule;

/* rule is borrowed. NULL when out of memory. */
ls_schedule *ls_schedule_new(const ls_replications *rule, uint32_t point_count);
void ls_schedule_free(ls_schedule *schedule); /* NULL is allowed */

/* Leaves a point out: it belongs to another shard. Before anything else is said about it. */
void ls_schedule_skip(ls_schedule *schedule, uint32_t point);

/* Next job to start; false when there is none now. The job counts as running until its result is taken. */
bool ls_schedule_next(ls_schedule *schedule, uint32_t *point, uint64_t *replication);

/* A result: just computed, or found in the database. ok false: the run failed and has no value; it still counts as
 * done, but not towards the minimum. value is the rule's metric. LS_ERROR_MEMORY; LS_ERROR_INVALID when beyond the
 * maximum. */
ls_result ls_schedule_take(ls_schedule *schedule, uint32_t point, uint64_t replication, bool ok, double value);

/* How many replications the rule asks of a point as far as is known; final once ls_schedule_settled. */
uint64_t ls_schedule_required(const ls_schedule *schedule, uint32_t point);
bool ls_schedule_settled(const ls_schedule *schedule, uint32_t point);

/* Whether that replication of the point was taken, ok or not. */
bool ls_schedule_has(const ls_schedule *schedule, uint32_t point, uint64_t replication);

/* Sums over all points: required so far, and the complete prefixes of them. When both are equal, everything is settled.
 */
void ls_schedule_progress(const ls_schedule *schedule, uint64_t *required, uint64_t *done);

/* How many of the required replications are known, whatever holes lie before them. Walks over all of them. */
uint64_t ls_schedule_known(const ls_schedule *schedule);

#endif
