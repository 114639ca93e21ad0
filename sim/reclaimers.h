/* reclaimers.h - the reclaimers of a world: as many machines (manifest/reclaimer.h) as reclaim.count says, each a round every
 * reclaim.every_s, crashing and restarting as faults.reclaimer_crash_rate_per_s says.
 *
 * Several may be at work at once, and any may die anywhere: the protocol allows it, and so the simulator does it. Ages of listed
 * objects come from the store's clock; reclaim.clock_skew_s is added to what a reclaimer is told, so that a wrong clock can be
 * seen to cost space or work and never data.
 */
#ifndef LS_RECLAIMERS_H
#define LS_RECLAIMERS_H

#include "sim/crew.h"

typedef struct ls_reclaimers ls_reclaimers;

/* At stations first_station on, one each. crew is copied. NULL when out of memory. */
ls_reclaimers *ls_reclaimers_new(const ls_crew *crew, uint32_t first_station);
void ls_reclaimers_free(ls_reclaimers *reclaimers); /* NULL is allowed */

/* Starts them, spread over one period. */
ls_result ls_reclaimers_begin(ls_reclaimers *reclaimers, int64_t now_ns);

ls_result ls_reclaimers_timer(ls_reclaimers *reclaimers, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument);
ls_result ls_reclaimers_reply(ls_reclaimers *reclaimers, int64_t now_ns, uint32_t station, uint32_t client,
                              const ls_store_reply *reply);

/* No fault strikes any more; counting begins. */
void ls_reclaimers_calm(ls_reclaimers *reclaimers);
void ls_reclaimers_measure_from(ls_reclaimers *reclaimers);
void ls_reclaimers_measure(const ls_reclaimers *reclaimers, double *values);

#endif
