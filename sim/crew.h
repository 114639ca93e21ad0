/* crew.h - what a world lends to those of its machines that are no producers: the trainer's ranks and reclaimers.
 *
 * Each machine has a station, a place that outlives it. A machine that is started at a station (again) enlists and gets a client
 * number that nobody had before, so a reply or a timer meant for its predecessor can never reach it.
 */
#ifndef LS_CREW_H
#define LS_CREW_H

#include "manifest/driver.h"
#include "manifest/protocol.h"
#include "sim/scenario.h"

#define LS_CREW_NOBODY UINT32_MAX

typedef struct ls_crew {
    const ls_scenario *scenario; /* all borrowed */
    const ls_protocol *protocol;
    const ls_driver *driver;
    ls_error *error;
    uint64_t seed, replication;
    void *world;
    /* A fresh client number for a machine at this station; LS_CREW_NOBODY when out of memory. */
    uint32_t (*enlist)(void *world, uint32_t station);
} ls_crew;

/* Kinds of timers; the world passes on those from LS_CREW_TIMERS on. */
enum {
    LS_CREW_TIMERS = 64,
    LS_TRAINER_WAKE = LS_CREW_TIMERS, /* entity: a client; argument: its station */
    LS_TRAINER_STEP_END,              /* argument: the trainer's life */
    LS_TRAINER_NEXT_STEP,             /* argument: the trainer's life */
    LS_TRAINER_CRASH,                 /* argument: 1 when it comes by the rate, 0 once */
    LS_TRAINER_RESTART,
    LS_TRAINER_RANK_CRASH,   /* entity: a station */
    LS_TRAINER_RANK_RESTART, /* entity: a station; argument: the trainer's life */
    LS_RECLAIMERS_FIRST,
    LS_RECLAIMERS_WAKE = LS_RECLAIMERS_FIRST, /* entity: a client; argument: its station */
    LS_RECLAIMERS_START,                      /* entity: a station */
    LS_RECLAIMERS_CRASH                       /* entity: a station */
};

static inline ls_result ls_crew_timer(const ls_crew *crew, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (at_ns == LS_NEVER_NS) return LS_OK;
    return crew->driver->timer(crew->driver->context, at_ns, kind, entity, argument);
}

#endif
