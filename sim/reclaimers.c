/* reclaimers.c - reclaimers at work (see reclaimers.h). */
#include "sim/reclaimers.h"

#include "manifest/reclaimer.h"
#include "sim/metrics.h"

#include <inttypes.h>
#include <string.h>

#define NOBODY LS_CREW_NOBODY

typedef struct post {
    ls_reclaimer machine;
    uint32_t client; /* NOBODY: down */
    uint32_t lives, crashes_drawn;
} post;

struct ls_reclaimers {
    ls_crew crew;
    post *posts;
    uint32_t count, first_station;
    bool calm, measuring;
    int64_t *ages; /* of one list, as told with a wrong clock */
    uint64_t age_capacity;
    uint64_t rounds, crashes, deleted[LS_DELETE_REASONS], bytes[LS_DELETE_REASONS], requests;
};

ls_reclaimers *ls_reclaimers_new(const ls_crew *crew, uint32_t first_station)
{
    ls_reclaimers *r = ls_allocate_array(1, sizeof *r);
    if (r == NULL) return NULL;
    r->crew = *crew;
    r->first_station = first_station;
    r->count = (uint32_t)crew->scenario->reclaim.count;
    r->posts = ls_allocate_array(r->count, sizeof *r->posts);
    if (r->posts == NULL) {
        ls_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < r->count; i++) r->posts[i].client = NOBODY;
    return r;
}

static void end_post(post *p)
{
    if (p->client != NOBODY) ls_reclaimer_clear(&p->machine);
    p->client = NOBODY;
}

void ls_reclaimers_free(ls_reclaimers *r)
{
    if (r == NULL) return;
    for (uint32_t i = 0; i < r->count; i++) end_post(&r->posts[i]);
    ls_free(r->posts);
    ls_free(r->ages);
    ls_free(r);
}

static ls_result fail_post(ls_reclaimers *r, ls_result result, uint32_t i, const char *what)
{
    return ls_fail(r->crew.error, result, "reclaimer %" PRIu32 ": %s", i, what);
}

static void note_round(ls_reclaimers *r, const ls_reclaim_report *report)
{
    if (!r->measuring) return;
    r->rounds++;
    for (uint32_t k = 0; k < LS_DELETE_REASONS; k++) {
        r->deleted[k] += report->deleted[k];
        r->bytes[k] += report->bytes[k];
    }
}

static ls_result schedule_start(ls_reclaimers *r, uint32_t i, int64_t at_ns)
{
    return ls_crew_timer(&r->crew, at_ns, LS_RECLAIMERS_START, r->first_station + i, 0);
}

static ls_result step(ls_reclaimers *r, uint32_t i, const ls_event *event)
{
    post *p = &r->posts[i];
    const ls_driver *driver = r->crew.driver;
    ls_actions actions;
    ls_result result = ls_reclaimer_step(&p->machine, event, &actions);
    if (result != LS_OK) return fail_post(r, result, i, ls_result_name(result));
    bool refused = false;
    for (uint32_t k = 0; k < actions.count && result == LS_OK; k++) {
        const ls_action *action = &actions.item[k];
        switch (action->kind) {
        case LS_ACTION_REQUEST:
            if (r->measuring) r->requests++;
            result = driver->submit(driver->context, p->client, &action->request);
            break;
        case LS_ACTION_WAKE:
            result = ls_crew_timer(&r->crew, action->wake_ns, LS_RECLAIMERS_WAKE, p->client, r->first_station + i);
            break;
        case LS_ACTION_RECLAIMED: note_round(r, &action->reclaimed); break;
        case LS_ACTION_REFUSED: refused = true; break; /* nothing is committed yet */
        case LS_ACTION_FAILED: return fail_post(r, LS_ERROR_IO, i, "the store denied or garbled a request");
        default: break;
        }
    }
    if (result != LS_OK || !refused) return result;
    end_post(p);
    return schedule_start(r, i, event->now_ns + ls_nanoseconds(r->crew.scenario->reclaim.every_s));
}

static ls_result schedule_crash(ls_reclaimers *r, uint32_t i, int64_t now_ns)
{
    double rate_per_s = r->crew.scenario->faults.reclaimer_crash_rate_per_s;
    if (rate_per_s <= 0) return LS_OK;
    ls_random stream = ls_random_open(r->crew.seed, r->crew.replication, LS_RANDOM_RECLAIMER, UINT64_C(1) << 32 | i);
    stream.index = r->posts[i].crashes_drawn++;
    int64_t at_ns = now_ns + ls_nanoseconds(ls_random_exponential(&stream) / rate_per_s);
    return ls_crew_timer(&r->crew, at_ns, LS_RECLAIMERS_CRASH, r->first_station + i, 0);
}

static ls_result start(ls_reclaimers *r, uint32_t i, int64_t now_ns)
{
    post *p = &r->posts[i];
    if (p->client != NOBODY) return LS_OK;
    const ls_scenario *s = r->crew.scenario;
    ls_reclaimer_config config = {
        .retention = {.keep_last = (uint32_t)s->reclaim.keep_last, .keep_every = (uint32_t)s->reclaim.keep_every},
        .grace_ns = ls_nanoseconds(s->reclaim.grace_s), .every_ns = ls_nanoseconds(s->reclaim.every_s),
        .retry_ns = ls_nanoseconds(0.2), .delete_concurrency = (uint32_t)s->reclaim.delete_concurrency,
        .keep_versions = (uint32_t)s->reclaim.keep_versions};
    ls_random random = ls_random_open(r->crew.seed, r->crew.replication, LS_RANDOM_RECLAIMER, i);
    random.index = (uint64_t)p->lives++ << 32;
    uint64_t incarnation = ls_random_next(&random) | 1;
    ls_result result = ls_reclaimer_init(&p->machine, r->crew.protocol, &config, incarnation, random);
    if (result != LS_OK) return fail_post(r, result, i, "cannot start: its settings make no sense");
    p->client = r->crew.enlist(r->crew.world, r->first_station + i);
    if (p->client == NOBODY) {
        ls_reclaimer_clear(&p->machine);
        return fail_post(r, LS_ERROR_MEMORY, i, "out of memory");
    }
    ls_event event = {.kind = LS_EVENT_START, .now_ns = now_ns};
    return step(r, i, &event);
}

static ls_result crash(ls_reclaimers *r, uint32_t i, int64_t now_ns)
{
    if (r->calm) return LS_OK;
    ls_result result = schedule_crash(r, i, now_ns);
    if (result != LS_OK || r->posts[i].client == NOBODY) return result;
    end_post(&r->posts[i]);
    if (r->measuring) r->crashes++;
    return schedule_start(r, i, now_ns + ls_nanoseconds(r->crew.scenario->faults.restart_s));
}

ls_result ls_reclaimers_begin(ls_reclaimers *r, int64_t now_ns)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < r->count && result == LS_OK; i++) {
        double wait_s = r->crew.scenario->reclaim.every_s * (i + 1) / (double)r->count;
        result = schedule_start(r, i, now_ns + ls_nanoseconds(wait_s));
        if (result == LS_OK) result = schedule_crash(r, i, now_ns);
    }
    return result;
}

ls_result ls_reclaimers_timer(ls_reclaimers *r, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (kind == LS_RECLAIMERS_START) return start(r, entity - r->first_station, now_ns);
    if (kind == LS_RECLAIMERS_CRASH) return crash(r, entity - r->first_station, now_ns);
    uint32_t i = (uint32_t)argument - r->first_station;
    if (r->posts[i].client != entity || r->posts[i].machine.wake_ns > now_ns) return LS_OK;
    ls_event event = {.kind = LS_EVENT_TIMER, .now_ns = now_ns};
    return step(r, i, &event);
}

/* What the store tells of its objects' ages, as a clock that is wrong would have it. */
static ls_result skew(ls_reclaimers *r, ls_store_reply *reply)
{
    int64_t skew_ns = (int64_t)(r->crew.scenario->reclaim.clock_skew_s * 1e9);
    if (skew_ns == 0 || reply->list_ages_ns == NULL || reply->list_count == 0) return LS_OK;
    if (reply->list_count > r->age_capacity) {
        int64_t *grown = ls_reallocate(r->ages, reply->list_count * sizeof *grown);
        if (grown == NULL) return LS_ERROR_MEMORY;
        r->ages = grown;
        r->age_capacity = reply->list_count;
    }
    for (uint64_t i = 0; i < reply->list_count; i++) r->ages[i] = reply->list_ages_ns[i] + skew_ns;
    reply->list_ages_ns = r->ages;
    return LS_OK;
}

ls_result ls_reclaimers_reply(ls_reclaimers *r, int64_t now_ns, uint32_t station, uint32_t client, const ls_store_reply *reply)
{
    uint32_t i = station - r->first_station;
    ls_store_reply told = *reply;
    if (r->posts[i].client != client) {
        ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    if (skew(r, &told) != LS_OK) {
        ls_manifest_release(reply->manifest);
        return fail_post(r, LS_ERROR_MEMORY, i, "out of memory");
    }
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = &told};
    return step(r, i, &event);
}

void ls_reclaimers_calm(ls_reclaimers *r)
{
    r->calm = true;
    r->measuring = false;
}

void ls_reclaimers_measure_from(ls_reclaimers *r)
{
    r->measuring = true;
}

void ls_reclaimers_measure(const ls_reclaimers *r, double *v)
{
    uint64_t deleted = 0, bytes = 0;
    for (uint32_t k = 0; k < LS_DELETE_REASONS; k++) {
        deleted += r->deleted[k];
        bytes += r->bytes[k];
    }
    v[LS_METRIC_RECLAIM_ROUNDS] = (double)r->rounds;
    v[LS_METRIC_RECLAIMED_BATCHES] = (double)r->deleted[LS_DELETE_BATCH];
    v[LS_METRIC_RECLAIMED_ORPHANS] = (double)r->deleted[LS_DELETE_ORPHAN];
    v[LS_METRIC_RECLAIMED_BYTES] = (double)bytes;
    v[LS_METRIC_RECLAIM_REQUESTS] = deleted == 0 ? 0 : (double)r->requests / (double)deleted;
}
