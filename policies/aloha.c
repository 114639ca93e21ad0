/* aloha.c - p-persistent attempts with a Bayesian estimate of the contenders, after Rivest, re-derived for conditional puts.
 *
 * Rivest's pseudo-Bayesian broadcast (1987) keeps an estimate v of stations with something to send, each slot sends with p = 1/v,
 * and corrects v by what was heard: idle or success v - 1 + arrivals, collision v + 1/(e - 2) + arrivals.
 *
 * A conditional put is not a collision channel: a contended round still has a winner, so "two or more tried" is no lost round,
 * and p = 1 would even maximise throughput; p < 1 is for less waste. And what is heard differs. With a Poisson number K of tries
 * in a slot of one attempt's duration, mean G = v p:
 *   own loss      K >= 2 (somebody else tried): E[K | K >= 2] - E[K] = G (1 - q1) / (1 - q0 - q1) - G, with q0 = e^-G, q1 = G e^-G,
 *                 for G = 1 equal to 1/(e - 2) as in Rivest, since the event is the same;
 *   own win       says nothing about how many lost, but one contender fewer: - 1;
 *   the slots between own attempts are not heard one by one; versions passed in that time tell how many had a winner.
 *                 A slot with a winner has K >= 1: E[K | K >= 1] - G = G q0 / (1 - q0); a slot without one K = 0: - G.
 * So after each attempt over m slots (time since the last sight / attempt duration) of which f had a winner (versions passed):
 *   v += f * G q0/(1 - q0) / p  -  (m - f) * G / p, damped by `gain`, then the correction of the own outcome.
 * At the wanted G the expected sum is zero, so v settles at the number of contenders. v stays within 1 and the open rows.
 * p = wanted_load / v; a producer with something pending draws the number of slots to wait from the geometric law of p.
 */
#include "policies/common.h"

#include <math.h>

enum { WANTED_LOAD, GAIN, INITIAL_SLOT, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("wanted_load", "1", 0.5, 0.01, 10, "wanted tries in a slot of one attempt's duration, of all producers together (G)"),
    LS_PARAMETER("gain", "1", 0.1, 0.001, 1, "damping of the correction by versions passed"),
    LS_PARAMETER("initial_slot_s", "s", 0.1, 1e-6, 3600, "slot length before the first attempt was timed"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct aloha_state {
    double contenders; /* v; 0: not set */
    double slot_s;     /* smoothed attempt duration */
} aloha_state;
LS_STATE_FITS(aloha_state);

static void correct(aloha_state *state, const double *value, const ls_commit_view *view)
{
    double load = value[WANTED_LOAD], persistence = fmin(1.0, load / state->contenders);
    double none = exp(-load), one = load * none;
    double slots = ls_seconds(view->sight_gap_ns) / state->slot_s, won = fmin(slots, (double)view->versions_passed);
    double heard = won * load * none / (1.0 - none) - (slots - won) * load;
    state->contenders += value[GAIN] * heard / fmax(persistence, 1e-6) / fmax(slots, 1.0);
    if (view->moment == LS_MOMENT_LOST) state->contenders += load * (1.0 - none) / (1.0 - none - one) - load;
    else if (view->moment == LS_MOMENT_WON) state->contenders -= 1.0;
    double most = fmax(1.0, (double)ls_manifest_open_row_count(view->manifest));
    state->contenders = fmin(most, fmax(1.0, state->contenders));
}

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    aloha_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (state->slot_s == 0) {
        state->slot_s = value[INITIAL_SLOT];
        state->contenders = fmax(1.0, (double)ls_manifest_open_row_count(view->manifest));
    }
    if (view->moment != LS_MOMENT_READY) {
        double attempt_s = ls_seconds(view->attempt_ns);
        if (attempt_s > 0) state->slot_s = view->attempts <= 1 ? attempt_s : 0.8 * state->slot_s + 0.2 * attempt_s;
        correct(state, value, view);
    }
    double persistence = fmin(1.0, value[WANTED_LOAD] / state->contenders);
    double slots = persistence >= 1.0 ? 0.0 : floor(log(ls_random_uniform_positive(random)) / log1p(-persistence));
    decision->try_at_ns = ls_after(view, (slots + ls_random_uniform(random)) * state->slot_s);
}

const ls_policy ls_policy_aloha = {.name = "aloha",
                                   .rule = "try in a slot with probability load / contenders, contenders estimated from versions passed",
                                   .source = "Rivest, IEEE Trans. Information Theory 33(3), 1987; constants re-derived here",
                                   .parameters = parameters,
                                   .parameter_count = LS_COUNT_OF(parameters),
                                   .decide = decide};
