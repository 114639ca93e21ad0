/* station.h - a service station: c equal servers, one queue, first come first served, service times given by the
 * caller.
 *
 * The store model uses it for its request slots; alone it is the M/M/c and M/G/1 of the theory tests. A station owns no
 * clock: it asks its scheduler to be woken and is told of the end of each service by ls_station_event.
 */
#ifndef LS_STATION_H
#define LS_STATION_H

#include "manifest/base.h"

/* How stations and store models have themselves woken: the driver must call the matching ..._event(now = at_ns, token)
 * once, at at_ns (never before now), and in order of at_ns; ties in the order of the calls. */
typedef struct ls_store_scheduler {
    ls_result (*schedule)(void *context, int64_t at_ns, uint64_t token);
    void *context; /* borrowed */
} ls_store_scheduler;

typedef struct ls_station ls_station;

/* What one end of service brought. */
typedef struct ls_station_turn {
    uint64_t departed; /* tag of the customer whose service ended */
    bool has_started;  /* a waiting customer took the server */
    uint64_t started;  /* its tag */
    int64_t waited_ns; /* how long it had waited */
} ls_station_turn;

/* servers >= 1. NULL when out of memory or servers is 0. */
ls_station *ls_station_new(uint64_t servers, ls_store_scheduler scheduler);
void ls_station_free(ls_station *station); /* NULL is allowed */

/* A customer arrives with its service time (negative counts as 0). *started says whether it is served at once. The tag
 * comes back as the token of the scheduler when its service ends. On an error the customer has not arrived. */
ls_result ls_station_arrive(ls_station *station, int64_t now_ns, int64_t service_ns, uint64_t tag, bool *started);

/* The service of the customer `tag` ended; the longest waiting one, if any, begins its own. */
ls_result ls_station_event(ls_station *station, int64_t now_ns, uint64_t tag, ls_station_turn *turn);

uint64_t ls_station_busy(const ls_station *station);    /* customers in service */
uint64_t ls_station_waiting(const ls_station *station); /* customers in the queue */

#endif
