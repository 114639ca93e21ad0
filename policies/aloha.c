/* aloha.c - p-persistent attempts with an estimate of the contenders, after Rivest, re-derived for conditional puts.
 *
 * Rivest's pseudo-Bayesian broadcast (1987) keeps an estimate v of the stations with something to send; each sends in a
 * slot with probability p = 1/v, and v is corrected by what was heard: idle or success v - 1 + arrivals, collision
 * v + 1/(e - 2) + arrivals. Those constants do not carry over, because a conditional put is no collision channel:
 *   - a contended round still has a winner, so "two or more tried" is no lost round. p = 1 would even maximise
 *     throughput; p < 1 is for less waste. The load G = v p (tries of all producers in one attempt's duration w) is
 *     therefore a parameter;
 *   - every winner leaves a version, for all to read, and nothing else is heard: how many lost is not;
 *   - attempts start at any time: one wins if no other took effect since its own read. After a winner all that come to
 *     their effect within w lose, and the first thereafter wins.
 * So between two reads that lie m attempts' durations apart and f versions: each winner was one try and blocked one w,
 * in which G tries are expected that left no trace; in the other m - f the winners were the only tries. Hence
 *     E[tries | f] = f (1 + G), against m G expected beforehand, and v += gain (f (1 + G) - m G).
 * (Of the contenders only those that tried were heard, so the correction counts tries and is not divided by p; Rivest's
 * is the same.) At the wanted load winners come at G / (1 + G) in w, the law of open Poisson attempts with a constant
 * window, and the sum is zero. An idle w lowers v by G, as Rivest's idle slot does; a winner with the w that it blocks
 * raises v by 1. Winners leave the contenders and others arrive; in a steady state as many, so neither appears. Own
 * losses and wins say nothing beyond f: the version that beat us is counted at the next read, our own is one of the f.
 *
 * The estimate starts at the producers in the table (all open rows), stays within 1 and that, and forgets towards it
 * by a small share each time: the sum above is blind to how v is shared out among producers, so without forgetting two
 * that measure slightly different w would drift apart for good. Forgetting errs on the side of less load. A producer
 * with something pending draws the slots to wait from the geometric law of p = G / v, and a phase within the slot.
 *
 * Parameters: wanted_load 0.5 makes a third of the attempts conflict, G / (1 + G), at a third of the greatest rate of
 * commits; gain 0.1 follows a change of the load in some fifteen attempts; initial_slot_s serves until one was timed.
 */
#include "policies/common.h"

#include <math.h>

enum { WANTED_LOAD, GAIN, INITIAL_SLOT, BATCH_LIMIT, FORGETTING };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("wanted_load", "1", 0.5, 0.01, 10, "wanted tries of all producers in one attempt's duration (G)"),
    LS_PARAMETER("gain", "1", 0.1, 0.001, 1, "damping of the correction by versions passed"),
    LS_PARAMETER("initial_slot_s", "s", 0.1, 1e-6, 3600, "slot length before the first attempt was timed"),
    LS_BATCH_LIMIT_PARAMETER,
    LS_PARAMETER("forgetting", "1", 0.01, 0, 1, "share by which the estimate returns to the open rows with an attempt"),
};

typedef struct aloha_state {
    double contenders;     /* v; 0: not set */
    double slot_s;         /* smoothed attempt duration; 0: none timed yet */
    uint64_t read_version; /* what the last decided attempt read, and when */
    int64_t read_at_ns;
    bool has_read;
} aloha_state;
LS_STATE_FITS(aloha_state);

static void correct(aloha_state *state, const double *value, const ls_commit_view *view, double rows)
{
    uint64_t own = view->moment == LS_MOMENT_WON, newest = ls_manifest_version(view->manifest);
    uint64_t version = newest > own ? newest - own : 0;
    int64_t read_at_ns = view->now_ns - view->attempt_ns + view->read_ns;
    if (state->has_read) {
        double slots = ls_seconds(read_at_ns - state->read_at_ns) / state->slot_s;
        double winners = version > state->read_version ? (double)(version - state->read_version) : 0.0;
        double tries = winners * (1.0 + value[WANTED_LOAD]), expected = fmax(slots, 0.0) * value[WANTED_LOAD];
        state->contenders += value[GAIN] * (tries - expected);
        state->contenders = fmin(rows, fmax(1.0, state->contenders));
        state->contenders += value[FORGETTING] * (rows - state->contenders);
    }
    state->read_version = version;
    state->read_at_ns = read_at_ns;
    state->has_read = true;
}

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    aloha_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    double rows = fmax(1.0, (double)ls_manifest_open_row_count(view->manifest));
    if (state->contenders == 0) state->contenders = rows;
    if (view->moment != LS_MOMENT_READY) {
        double attempt_s = view->attempt_ns > 0 ? ls_seconds(view->attempt_ns) : value[INITIAL_SLOT];
        state->slot_s = state->slot_s == 0 ? attempt_s : 0.8 * state->slot_s + 0.2 * attempt_s;
        correct(state, value, view, rows);
    }
    double slot_s = state->slot_s == 0 ? value[INITIAL_SLOT] : state->slot_s;
    double persistence = fmin(1.0, value[WANTED_LOAD] / state->contenders);
    double slots = persistence >= 1.0 ? 0.0 : floor(log(ls_random_uniform_positive(random)) / log1p(-persistence));
    decision->try_at_ns = ls_after(view, (slots + ls_random_uniform(random)) * slot_s);
}

const ls_policy ls_policy_aloha = {.name = "aloha",
                                   .rule = "try in a slot with probability load / contenders, contenders estimated from versions passed",
                                   .source = "Rivest, IEEE Trans. Information Theory 33(3), 1987; constants re-derived here",
                                   .parameters = parameters,
                                   .parameter_count = LS_COUNT_OF(parameters),
                                   .decide = decide};
