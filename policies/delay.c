/* delay.c - the gap follows the rise of the attempt's duration over its observed minimum, as TCP Vegas does with round
 * trips.
 *
 * Vegas keeps the number of its own packets queued in the network between alpha and beta (Brakmo, O'Malley, Peterson
 * 1994). The mapping here (ours): d = attempt duration / least attempt duration - 1 is the queueing that an attempt
 * met. d < alpha: the gap shrinks by `step`; d > beta: it grows by `step`; a loss counts as d > beta. Where the store
 * does not queue under contention (S3 Standard: losers only lose) the duration says nothing and the losses alone steer;
 * on a store that serialises (S3 Express) the delay is a signal of its own. The minimum is forgotten slowly (1 % an
 * attempt), because a growing manifest raises it for good. Defaults: alpha and beta stand 1 to 3 as FreeBSD's Vegas has
 * them, here as shares of the least duration; a step down undoes a step up.
 */
#include "policies/common.h"

#include <math.h>

enum { INITIAL_GAP, ALPHA, BETA, STEP, LEAST_GAP, MOST_GAP, BATCH_LIMIT };

#define FORGETTING 1.01

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("initial_gap_s", "s", 1, 1e-6, 86400, "gap between attempts at the start"),
    LS_PARAMETER("alpha", "1", 0.1, 0, 100, "rise of the duration below which the gap shrinks"),
    LS_PARAMETER("beta", "1", 0.3, 0, 100, "rise of the duration above which the gap grows"),
    LS_PARAMETER("step", "1", 0.25, 0.01, 10, "share by which the gap grows or shrinks"),
    LS_PARAMETER("least_gap_s", "s", 0.01, 1e-6, 3600, "shortest gap"),
    LS_PARAMETER("most_gap_s", "s", 600, 1e-3, 86400, "longest gap"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct delay_state {
    double gap_s;
    double least_attempt_s;
} delay_state;
LS_STATE_FITS(delay_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    delay_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (state->gap_s == 0) state->gap_s = value[INITIAL_GAP];
    double attempt_s = ls_seconds(view->attempt_ns);
    if (view->moment != LS_MOMENT_READY && attempt_s > 0) {
        bool first = state->least_attempt_s == 0;
        state->least_attempt_s = first ? attempt_s : fmin(attempt_s, state->least_attempt_s * FORGETTING);
        double rise = attempt_s / state->least_attempt_s - 1.0;
        if (view->moment == LS_MOMENT_LOST || rise > value[BETA]) state->gap_s *= 1.0 + value[STEP];
        else if (rise < value[ALPHA]) state->gap_s /= 1.0 + value[STEP];
    }
    state->gap_s = fmin(value[MOST_GAP], fmax(value[LEAST_GAP], state->gap_s));
    decision->try_at_ns = ls_after(view, state->gap_s * ls_draw_between(random, 0.5, 1.5));
}

const ls_policy ls_policy_delay = {.name = "delay",
                                   .rule = "the gap follows the rise of the attempt's duration over its minimum; losses widen it",
                                   .source = "TCP Vegas (Brakmo, O'Malley, Peterson, SIGCOMM 1994); the mapping is ours",
                                   .parameters = parameters,
                                   .parameter_count = LS_COUNT_OF(parameters),
                                   .decide = decide};
