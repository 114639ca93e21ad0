/* dac.c - Decentralized Adaptive Commit: our reconstruction, and other readings of what little is known of it.
 *
 * What is known (abstract and second-hand readings of arXiv 2605.09994): each producer adapts its commit interval at run time from
 * what it sees of the manifest (how busy, how large, how slow), without coordinator or messages, so that ingest stays stable
 * while the manifest grows. The update rule itself is not known to us; everything below is our reconstruction.
 *
 *   dac     g = (n - 1) w (1 - p) / p.  n live producers in the table, w smoothed duration of own attempts, p the wanted share of
 *           conflicts. Why: attempts of n producers at gap g come at rate G = n / (g + w), and the exact win probability of open
 *           attempts with window w is 1 / (1 + G w), so p = G w / (1 + G w). The next try is uniform in 0.5 .. 1.5 g, for
 *           losers too: quick retries are load that the gap did not count.
 *   dac-r1  tau = k w: own latency alone ("updates slow, so wait longer"). Conflicts follow n / k.
 *   dac-r2  tau = n w / rho: a duty cycle shared by the producers in the table.
 *   dac-r3  tau grows by a factor with a loss, shrinks by one with a win, never below w: conflict feedback.
 *   dac-r4  slotted back-off as in Lance: see the preset, it is the policy `slotted`.
 * All draw the next try in 0.5 .. 1.5 of the gap; the first of all at a random phase, in 0 .. 1 of it.
 * Defaults: p = 0.1, up to where this form of the gap and that with -ln(1 - p) hardly differ and retries hardly add
 * load; a smoothing of 0.2 remembers some nine attempts (2 / 0.2 - 1); 0.1 s before one was timed is a put on S3. For
 * r3, P ln(grow) = -(1 - P) ln(shrink) in balance: 1.5 and 0.9 hold a conflict share P of 0.21. k = 10 and rho = 0.5
 * are round numbers of ours.
 */
#include "policies/common.h"

#include <math.h>

#define SMOOTHING LS_PARAMETER("smoothing", "1", 0.2, 0.01, 1, "weight of the newest attempt in the smoothed duration")
#define INITIAL LS_PARAMETER("initial_attempt_s", "s", 0.1, 1e-6, 3600, "attempt duration assumed before the first attempt")
#define WINDOW LS_PARAMETER("live_window_versions", "versions", 0, 0, 1e9, "a producer counts as live if it committed within so many versions; 0: all open rows")
#define MOST_GAP LS_PARAMETER("most_gap_s", "s", 3600, 1e-3, 86400, "longest gap")

enum { FIRST, SMOOTH, INITIAL_ATTEMPT, MOST, BATCHES, LIVE }; /* FIRST is each reading's own parameter */

static const ls_policy_parameter dac_parameters[] = {
    LS_PARAMETER("target_share", "1", 0.1, 0.001, 0.999, "wanted share of attempts that conflict (p)"),
    SMOOTHING, INITIAL, MOST_GAP, LS_BATCH_LIMIT_PARAMETER, WINDOW,
};
static const ls_policy_parameter r1_parameters[] = {
    LS_PARAMETER("multiple", "1", 10, 0, 1e6, "gap as a multiple of the smoothed attempt duration (k)"),
    SMOOTHING, INITIAL, MOST_GAP, LS_BATCH_LIMIT_PARAMETER,
};
static const ls_policy_parameter r2_parameters[] = {
    LS_PARAMETER("duty", "1", 0.5, 0.001, 100, "share of time in which somebody's attempt is under way (rho)"),
    SMOOTHING, INITIAL, MOST_GAP, LS_BATCH_LIMIT_PARAMETER, WINDOW,
};
enum { R3_SHRINK = LIVE };
static const ls_policy_parameter r3_parameters[] = {
    LS_PARAMETER("grow", "1", 1.5, 1.001, 10, "factor on the gap with a loss"),
    SMOOTHING, INITIAL, MOST_GAP, LS_BATCH_LIMIT_PARAMETER,
    LS_PARAMETER("shrink", "1", 0.9, 0.01, 0.999, "factor on the gap with a win"),
};

typedef struct dac_state {
    double attempt_s; /* smoothed; 0: none timed yet */
    double gap_s;     /* r3 */
    ls_live_cache live;
} dac_state;
LS_STATE_FITS(dac_state);

typedef double (*gap_rule)(const double *value, dac_state *state, const ls_commit_view *view, double attempt_s);

static double gap_dac(const double *value, dac_state *state, const ls_commit_view *view, double attempt_s)
{
    double others = ls_live_producers(view, (uint64_t)value[LIVE], &state->live) - 1.0;
    return others * attempt_s * (1.0 - value[FIRST]) / value[FIRST];
}

static double gap_r1(const double *value, dac_state *state, const ls_commit_view *view, double attempt_s)
{
    (void)state;
    (void)view;
    return value[FIRST] * attempt_s;
}

static double gap_r2(const double *value, dac_state *state, const ls_commit_view *view, double attempt_s)
{
    return ls_live_producers(view, (uint64_t)value[LIVE], &state->live) * attempt_s / value[FIRST];
}

static double gap_r3(const double *value, dac_state *state, const ls_commit_view *view, double attempt_s)
{
    if (view->moment == LS_MOMENT_LOST) state->gap_s *= value[FIRST];
    if (view->moment == LS_MOMENT_WON) state->gap_s *= value[R3_SHRINK];
    state->gap_s = fmin(value[MOST], fmax(attempt_s, state->gap_s));
    return state->gap_s;
}

static void decide(const void *instance, dac_state *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision, gap_rule gap)
{
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCHES];
    if (ls_common_answer(view, random, decision)) return;
    bool ended = view->moment != LS_MOMENT_READY && view->attempt_ns > 0;
    if (ended) {
        double newest = ls_seconds(view->attempt_ns);
        state->attempt_s = state->attempt_s == 0 ? newest : state->attempt_s + value[SMOOTH] * (newest - state->attempt_s);
    }
    double attempt_s = state->attempt_s == 0 ? value[INITIAL_ATTEMPT] : state->attempt_s;
    double gap_s = fmin(value[MOST], gap(value, state, view, attempt_s));
    bool first = view->attempts == 0;
    double share = first ? ls_random_uniform(random) : ls_draw_between(random, 0.5, 1.5);
    decision->try_at_ns = ls_after(view, share * gap_s);
}

#define READING(identifier, name_, rule_, table, gap)                                                                 \
    static void decide_##gap(const void *instance, void *state, ls_random *random, const ls_commit_view *view,        \
                             ls_commit_decision *decision)                                                            \
    {                                                                                                                 \
        decide(instance, state, random, view, decision, gap);                                                         \
    }                                                                                                                 \
    const ls_policy identifier = {.name = name_,                                                                      \
                                  .rule = rule_,                                                                      \
                                  .source = "our reconstruction after arXiv 2605.09994",                              \
                                  .parameters = table,                                                                \
                                  .parameter_count = LS_COUNT_OF(table),                                              \
                                  .decide = decide_##gap}

READING(ls_policy_dac, "dac", "gap (n-1) w (1-p)/p from live producers n, smoothed attempt w, wanted conflict share p", dac_parameters,
        gap_dac);
READING(ls_policy_dac_r1, "dac-r1", "reading R1: gap k w, own latency alone", r1_parameters, gap_r1);
READING(ls_policy_dac_r2, "dac-r2", "reading R2: gap n w / rho, a shared duty cycle", r2_parameters, gap_r2);
READING(ls_policy_dac_r3, "dac-r3", "reading R3: the gap grows with a loss and shrinks with a win, never below w", r3_parameters,
        gap_r3);
