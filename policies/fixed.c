/* fixed.c - one attempt every interval, jittered; losers wait for their next turn of the clock.
 *
 * What brokers do with a batching window (WarpStream 250 ms, turbopuffer 1 s). The jitter is a share of the interval,
 * drawn uniformly around it: without it producers started together stay in step, the convoy that Endive's review
 * describes. The first attempt comes at a random phase of the first interval. Mean publish delay by theory: residual of
 * the interval, E[T^2] / 2E[T], plus the attempt (with jitter 0.5 that is 0.5417 T). Defaults: turbopuffer's 1 s, and
 * the jitter of `dac`.
 */
#include "policies/common.h"

enum { INTERVAL, JITTER, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("interval_s", "s", 1, 0, 86400, "time between the end of one attempt and the next"),
    LS_PARAMETER("jitter", "1", 0.5, 0, 1, "the interval is drawn from 1 - jitter to 1 + jitter times interval_s"),
    LS_BATCH_LIMIT_PARAMETER,
};

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    (void)state;
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    double low = view->attempts == 0 ? 0.0 : 1.0 - value[JITTER], high = view->attempts == 0 ? 1.0 : 1.0 + value[JITTER];
    decision->try_at_ns = ls_after(view, value[INTERVAL] * ls_draw_between(random, low, high));
}

const ls_policy ls_policy_fixed = {.name = "fixed",
                                   .rule = "one attempt every interval, jittered; a loser waits for its next turn",
                                   .source = "WarpStream (250 ms), turbopuffer (1 s)",
                                   .parameters = parameters,
                                   .parameter_count = LS_COUNT_OF(parameters),
                                   .decide = decide};
