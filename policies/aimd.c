/* aimd.c - the rate of attempts grows by a constant with each win and is multiplied down with each loss.
 *
 * Chiu and Jain (1989): of the linear controls only additive increase with multiplicative decrease is both efficient
 * and fair. Here the controlled quantity is a producer's own rate r of attempts (1/s): a win adds increase_per_s, a
 * loss multiplies by decrease; the next attempt comes after U(0.5, 1.5) / r, losers included. Rates stay within
 * 1/most_gap_s and 1/least_gap_s. In balance (1 - P) increase = P (1 - decrease) r for a conflict share P: the
 * defaults, a half as in TCP and 0.02 a second, give P = 2/7 to a producer that attempts every 10 s, and less to one
 * that attempts more often.
 */
#include "policies/common.h"

#include <math.h>

enum { INITIAL_GAP, INCREASE, DECREASE, LEAST_GAP, MOST_GAP, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("initial_gap_s", "s", 1, 1e-6, 86400, "gap between attempts at the start"),
    LS_PARAMETER("increase_per_s", "1/s", 0.02, 1e-9, 1e3, "added to the rate of attempts with each win"),
    LS_PARAMETER("decrease", "1", 0.5, 0.01, 0.99, "factor on the rate of attempts with each loss"),
    LS_PARAMETER("least_gap_s", "s", 0.01, 1e-6, 3600, "shortest gap"),
    LS_PARAMETER("most_gap_s", "s", 600, 1e-3, 86400, "longest gap"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct aimd_state {
    double rate_per_s; /* 0: not set yet */
} aimd_state;
LS_STATE_FITS(aimd_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    aimd_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (state->rate_per_s == 0) state->rate_per_s = 1.0 / value[INITIAL_GAP];
    if (view->moment == LS_MOMENT_WON) state->rate_per_s += value[INCREASE];
    if (view->moment == LS_MOMENT_LOST) state->rate_per_s *= value[DECREASE];
    state->rate_per_s = fmin(1.0 / value[LEAST_GAP], fmax(1.0 / value[MOST_GAP], state->rate_per_s));
    decision->try_at_ns = ls_after(view, ls_draw_between(random, 0.5, 1.5) / state->rate_per_s);
}

const ls_policy ls_policy_aimd = {.name = "aimd",
                                  .rule = "the rate of attempts grows by a constant with a win and is halved with a loss",
                                  .source = "Chiu and Jain, Computer Networks and ISDN Systems 17 (1989)",
                                  .parameters = parameters,
                                  .parameter_count = LS_COUNT_OF(parameters),
                                  .decide = decide};
