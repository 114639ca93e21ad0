/* retry_budget.c - a token bucket of retries, as the AWS SDKs have in their "standard" mode.
 *
 * A bucket holds `capacity` tokens and is full at first. A retry takes `retry_cost`; who cannot pay does not retry, and the commit
 * fails to its caller, as it does after `attempts` attempts. A commit that succeeds returns what its last retry took, or
 * `refund` if it needed none. The k-th retry waits min(20 s, U(0, 1) 2^(k-1) s). So while most commits succeed retries are free,
 * and when most fail the load sinks to first attempts, however many callers there are: retries cannot pile up on a store in trouble.
 * Source: AWS SDKs and Tools Reference Guide, "Retry behavior"
 * (https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html): 3 attempts, cap 20 s; the numbers of
 * the bucket, 500, 5 and 1, are the SDKs' own. What a caller does with the failure is not theirs to say: here, as in `backoff-*`, it
 * submits anew after resubmit_pause_s (counted as given up), which is a first attempt and costs no token.
 * In the SDKs this is a transport's rule for refusals and time-outs; here it is asked what it does with conflicts.
 */
#include "policies/common.h"

#include <math.h>

enum { CAPACITY, RETRY_COST, REFUND, ATTEMPTS, BASE, CAP, RESUBMIT_PAUSE, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("capacity", "tokens", 500, 0, 1e9, "tokens in the full bucket"),
    LS_PARAMETER("retry_cost", "tokens", 5, 0, 1e9, "tokens that a retry takes"),
    LS_PARAMETER("refund", "tokens", 1, 0, 1e9, "tokens returned by a commit that needed no retry"),
    LS_PARAMETER("attempts", "1", 3, 1, 1e9, "attempts of one submission"),
    LS_PARAMETER("base_s", "s", 1, 1e-6, 3600, "upper end of the first retry's wait, doubling"),
    LS_PARAMETER("cap_s", "s", 20, 1e-6, 86400, "longest wait"),
    LS_PARAMETER("resubmit_pause_s", "s", 1, 0, 3600, "pause before a given-up commit is submitted anew"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct budget_state {
    double spent;    /* tokens missing from the bucket */
    uint32_t losses; /* of this submission */
} budget_state;
LS_STATE_FITS(budget_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    budget_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment != LS_MOMENT_LOST) {
        if (view->moment == LS_MOMENT_WON) {
            state->spent = fmax(0.0, state->spent - (state->losses > 0 ? value[RETRY_COST] : value[REFUND]));
        }
        state->losses = 0;
        decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
        return;
    }
    state->losses++;
    bool can_pay = state->spent + value[RETRY_COST] <= value[CAPACITY];
    if (!can_pay || state->losses >= value[ATTEMPTS]) {
        state->losses = 0;
        decision->gave_up = true;
        decision->try_at_ns = ls_after(view, value[RESUBMIT_PAUSE]);
        return;
    }
    state->spent += value[RETRY_COST];
    double wait_s = ls_random_uniform(random) * value[BASE] * exp2(fmin(state->losses - 1.0, 100.0));
    decision->try_at_ns = ls_after(view, fmin(value[CAP], wait_s));
}

const ls_policy ls_policy_retry_budget = {.name = "retry-budget",
                                          .rule = "a retry costs tokens that wins give back; without tokens, or after so many attempts, give up and submit anew",
                                          .source = "AWS SDKs and Tools Reference Guide, retry behavior (standard mode)",
                                          .parameters = parameters,
                                          .parameter_count = LS_COUNT_OF(parameters),
                                          .decide = decide};
