/* station.c - c servers and one line of waiting customers in a growing ring (see station.h). */
#include "sim/station.h"

typedef struct waiting_customer {
    int64_t arrived_ns;
    int64_t service_ns;
    uint64_t tag;
} waiting_customer;

struct ls_station {
    ls_store_scheduler scheduler;
    uint64_t servers;
    uint64_t busy;
    waiting_customer *ring; /* capacity is a power of two, or 0 */
    uint64_t capacity;
    uint64_t first;
    uint64_t waiting;
};

ls_station *ls_station_new(uint64_t servers, ls_store_scheduler scheduler)
{
    if (servers == 0) return NULL;
    ls_station *station = ls_allocate(sizeof *station);
    if (station != NULL) *station = (ls_station){.scheduler = scheduler, .servers = servers};
    return station;
}

void ls_station_free(ls_station *station)
{
    if (station == NULL) return;
    ls_free(station->ring);
    ls_free(station);
}

uint64_t ls_station_busy(const ls_station *station)
{
    return station->busy;
}

uint64_t ls_station_waiting(const ls_station *station)
{
    return station->waiting;
}

static bool grow(ls_station *station)
{
    if (station->waiting < station->capacity) return true;
    uint64_t capacity = station->capacity == 0 ? 64 : 2 * station->capacity;
    if (capacity > SIZE_MAX / sizeof(waiting_customer)) return false;
    waiting_customer *ring = ls_allocate(capacity * sizeof *ring);
    if (ring == NULL) return false;
    for (uint64_t i = 0; i < station->waiting; i++) {
        ring[i] = station->ring[(station->first + i) & (station->capacity - 1)];
    }
    ls_free(station->ring);
    station->ring = ring;
    station->capacity = capacity;
    station->first = 0;
    return true;
}

ls_result ls_station_arrive(ls_station *station, int64_t now_ns, int64_t service_ns, uint64_t tag, bool *started)
{
    if (service_ns < 0) service_ns = 0;
    *started = station->busy < station->servers;
    if (*started) {
        ls_result result = station->scheduler.schedule(station->scheduler.context, now_ns + service_ns, tag);
        if (result == LS_OK) station->busy++;
        return result;
    }
    if (!grow(station)) return LS_ERROR_MEMORY;
    uint64_t place = (station->first + station->waiting) & (station->capacity - 1);
    station->ring[place] = (waiting_customer){.arrived_ns = now_ns, .service_ns = service_ns, .tag = tag};
    station->waiting++;
    return LS_OK;
}

ls_result ls_station_event(ls_station *station, int64_t now_ns, uint64_t tag, ls_station_turn *turn)
{
    *turn = (ls_station_turn){.departed = tag};
    if (station->waiting == 0) {
        station->busy--;
        return LS_OK;
    }
    waiting_customer next = station->ring[station->first];
    station->first = (station->first + 1) & (station->capacity - 1);
    station->waiting--;
    turn->has_started = true;
    turn->started = next.tag;
    turn->waited_ns = now_ns - next.arrived_ns;
    return station->scheduler.schedule(station->scheduler.context, now_ns + next.service_ns, next.tag);
}
