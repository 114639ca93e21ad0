/* bbr.c - pace attempts by the greatest rate of commits seen, after BBR's model of a path.
 *
 * BBR (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, ACM Queue 14(5), 2016; constants of Linux net/ipv4/tcp_bbr.c) keeps two
 * estimates, the bottleneck's rate as the windowed maximum of what was delivered and the round trip as the windowed minimum, and
 * sends at gain x rate: 2/ln 2 until the maximum stops growing, then in a cycle of eight rounds 1.25, 0.75 and six of 1.
 * What carries over to a log that all commit to, and what does not:
 *   rate    every winner leaves a version, so versions between two own reads, over the time between, are the delivery rate of all
 *           producers together. A producer's share of it is 1 / n, n the live producers in the table;
 *   gap     so attempts come at n / (gain x rate), drawn from 0.5 .. 1.5 of that, losers too;
 *   round   an own attempt. The window of the maximum is the last 5 to 10 rounds, in two halves (Linux: 10 rounds);
 *   start   has ended when the maximum did not grow by a quarter in three rounds (as in Linux);
 *   floor   the gap is never below the least own attempt seen in the last 5 to 10 rounds: more than one in flight is impossible.
 * A path loses what is beyond its rate; here the rate of commits goes on rising with the load, towards one an attempt's
 * duration, while more and more attempts are lost, as S = G / (1 + G w). So the model finds no knee: at gain 1 attempts at the
 * rate of the greatest deliveries lose a share of it again, deliveries fall below that, and what holds the rate up is the probing
 * and the maximum. `pace` scales the rate aimed at: below 1 for fewer conflicts.
 */
#include "policies/common.h"

#include <math.h>

enum { PACE, STARTUP_GAIN, PROBE_GAIN, INITIAL_ATTEMPT, MOST_GAP, LIVE, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("pace", "1", 1, 0.01, 100, "attempts a second of all producers as a share of the greatest rate of commits seen"),
    LS_PARAMETER("startup_gain", "1", 2.885, 1, 100, "factor on the rate until its maximum stops growing (2 / ln 2)"),
    LS_PARAMETER("probe_gain", "1", 1.25, 1, 2, "factor on the rate in one round of eight; the next has as much less"),
    LS_PARAMETER("initial_attempt_s", "s", 0.1, 1e-6, 3600, "attempt duration assumed before the first attempt"),
    LS_PARAMETER("most_gap_s", "s", 3600, 1e-3, 86400, "longest gap"),
    LS_PARAMETER("live_window_versions", "versions", 0, 0, 1e9, "a producer counts as live if it committed within so many versions; 0: all open rows"),
    LS_BATCH_LIMIT_PARAMETER,
};

#define HALF_WINDOW_ROUNDS 5u

typedef struct bbr_state {
    uint64_t read_version; /* what the last decided attempt read, and when */
    int64_t read_at_ns;
    float rate, rate_before;       /* greatest of this and the last half window, 1/s */
    float attempt_s, attempt_before_s; /* least of both; 0: none */
    float full_rate;               /* when growth was last seen, while starting */
    uint16_t rounds;
    uint8_t cycle;
    uint8_t stalls; /* rounds without growth; 3: started */
    bool has_read;
    ls_live_cache live;
} bbr_state;
LS_STATE_FITS(bbr_state);

static double greatest_rate(const bbr_state *state)
{
    return fmax((double)state->rate, (double)state->rate_before);
}

static double least_attempt_s(const bbr_state *state, const double *value)
{
    double now = (double)state->attempt_s, before = (double)state->attempt_before_s;
    if (now == 0 && before == 0) return value[INITIAL_ATTEMPT];
    return now == 0 ? before : before == 0 ? now : fmin(now, before);
}

static void note_round(bbr_state *state, const ls_commit_view *view)
{
    if (++state->rounds % HALF_WINDOW_ROUNDS == 0) {
        state->rate_before = state->rate;
        state->attempt_before_s = state->attempt_s;
        state->rate = state->attempt_s = 0;
    }
    float attempt_s = (float)ls_seconds(view->attempt_ns);
    if (attempt_s > 0 && (state->attempt_s == 0 || attempt_s < state->attempt_s)) state->attempt_s = attempt_s;
    uint64_t own = view->moment == LS_MOMENT_WON, newest = ls_manifest_version(view->manifest);
    uint64_t version = newest > own ? newest - own : 0;
    int64_t read_at_ns = view->now_ns - view->attempt_ns + view->read_ns;
    if (state->has_read && read_at_ns > state->read_at_ns && version > state->read_version) {
        float rate = (float)((double)(version - state->read_version) / ls_seconds(read_at_ns - state->read_at_ns));
        if (rate > state->rate) state->rate = rate;
    }
    state->read_version = version;
    state->read_at_ns = read_at_ns;
    state->has_read = true;
}

static double next_gain(bbr_state *state, const double *value)
{
    if (state->stalls < 3) {
        bool grew = greatest_rate(state) >= 1.25 * (double)state->full_rate;
        state->stalls = grew ? 0 : (uint8_t)(state->stalls + 1);
        if (grew) state->full_rate = (float)greatest_rate(state);
        if (state->stalls < 3) return value[STARTUP_GAIN];
    }
    uint8_t phase = state->cycle++ % 8;
    return phase == 0 ? value[PROBE_GAIN] : phase == 1 ? 2.0 - value[PROBE_GAIN] : 1.0;
}

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    bbr_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    double live = ls_live_producers(view, (uint64_t)value[LIVE], &state->live), gain = value[STARTUP_GAIN];
    if (view->moment != LS_MOMENT_READY) {
        note_round(state, view);
        gain = next_gain(state, value);
    }
    double attempt_s = least_attempt_s(state, value), rate = greatest_rate(state);
    if (rate <= 0) rate = 1.0 / attempt_s;
    double gap_s = fmin(value[MOST_GAP], fmax(attempt_s, live / (value[PACE] * fmax(gain, 0.1) * rate)));
    double share = view->attempts == 0 ? ls_random_uniform(random) : ls_draw_between(random, 0.5, 1.5);
    decision->try_at_ns = ls_after(view, share * gap_s);
}

const ls_policy ls_policy_bbr = {.name = "bbr",
                                 .rule = "gap n / (gain x greatest rate of versions seen lately), gain cycling as BBR's",
                                 .source = "Cardwell et al., ACM Queue 14(5), 2016; Linux net/ipv4/tcp_bbr.c",
                                 .parameters = parameters,
                                 .parameter_count = LS_COUNT_OF(parameters),
                                 .decide = decide};
