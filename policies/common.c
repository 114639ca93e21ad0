/* common.c - see common.h. */
#include "policies/common.h"

#include <math.h>

#define THROTTLE_BASE_S 0.1
#define THROTTLE_CAP_S 20.0

int64_t ls_after(const ls_commit_view *view, double seconds)
{
    int64_t wait_ns = ls_nanoseconds(seconds);
    return wait_ns >= LS_NEVER_NS - 1 - view->now_ns ? LS_NEVER_NS - 1 : view->now_ns + wait_ns;
}

double ls_draw_between(ls_random *random, double low, double high)
{
    return low + (high - low) * ls_random_uniform(random);
}

bool ls_common_answer(const ls_commit_view *view, ls_random *random, ls_commit_decision *decision)
{
    if (view->moment == LS_MOMENT_READY && view->planned_ns != LS_NEVER_NS) {
        decision->try_at_ns = view->planned_ns;
        return true;
    }
    if (view->moment != LS_MOMENT_THROTTLED && view->moment != LS_MOMENT_ABORTED) return false;
    double doublings = view->throttles_in_row > 0 ? view->throttles_in_row - 1.0 : 0.0;
    double wait_s = fmin(THROTTLE_CAP_S, THROTTLE_BASE_S * exp2(fmin(doublings, 30.0)));
    wait_s *= ls_draw_between(random, 0.5, 1.0);
    double wish_s = view->moment == LS_MOMENT_THROTTLED ? ls_seconds(view->retry_after_ns) : 0.0;
    decision->try_at_ns = ls_after(view, fmax(wait_s, wish_s));
    return true;
}

bool ls_gives_up(const ls_commit_view *view, double retries, double pause_s, uint32_t *losses, ls_commit_decision *decision)
{
    if (retries <= 0 || *losses <= (uint32_t)retries) return false;
    *losses = 0;
    decision->gave_up = true;
    decision->try_at_ns = ls_after(view, pause_s);
    return true;
}

static uint32_t count_recent(const ls_manifest *manifest, uint64_t window_versions)
{
    uint64_t newest = ls_manifest_version(manifest);
    uint64_t oldest = newest > window_versions ? newest - window_versions : 0;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < ls_manifest_row_count(manifest); slot++) {
        const ls_row *row = ls_manifest_row(manifest, slot);
        count += !row->closed && row->last_version > oldest;
    }
    return count;
}

uint32_t ls_live_producers(const ls_commit_view *view, uint64_t window_versions, ls_live_cache *cache)
{
    uint32_t count = ls_manifest_open_row_count(view->manifest);
    if (window_versions > 0) {
        uint64_t version = ls_manifest_version(view->manifest);
        if (!cache->used || version >= cache->version + ls_manifest_row_count(view->manifest)) {
            *cache = (ls_live_cache){.version = version, .count = count_recent(view->manifest, window_versions), .used = 1};
        }
        count = cache->count;
    }
    return count > 0 ? count : 1;
}
