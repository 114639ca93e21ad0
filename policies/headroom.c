/* headroom.c - back off by spare throughput, as wal3 does: the wait follows how long the trouble has lasted, not how often one failed.
 *
 * wal3's argument (https://github.com/chroma-core/chroma, rust/wal3: the "perfect backoff"): while the system was down for t_D, work
 * arrived at its usual throughput T_N and was not done; it can be caught up with only at the headroom T_H that the system has above
 * T_N. So recovery takes t_R = t_D T_N / T_H, and whoever comes back comes at a time drawn from all of t_R, so that those who wait
 * fill the headroom evenly. Here the trouble begins with the start of the first attempt of a row that was lost, t_D is the time since,
 * and a lost attempt is followed by a wait uniform in [0, t_D T_N / T_H]. As t_D grows by the waits themselves, waits grow by about
 * 1 + T_N / (2 T_H) with each loss. A win ends the row; the next attempt comes at once.
 *
 * Only the quotient counts. wal3 takes both as settings of its operator; the defaults here, equal ones, double the span with
 * each second loss.
 */
#include "policies/common.h"

enum { THROUGHPUT, RESERVE, MOST_WAIT, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("throughput_per_s", "1/s", 10, 1e-6, 1e9, "commits that all producers want together (T_N)"),
    LS_PARAMETER("reserve_per_s", "1/s", 10, 1e-6, 1e9, "commits that the store could carry beyond those (T_H)"),
    LS_PARAMETER("most_wait_s", "s", 60, 1e-3, 86400, "longest wait"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct headroom_state {
    int64_t down_since_ns;
    bool is_down;
} headroom_state;
LS_STATE_FITS(headroom_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    headroom_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment != LS_MOMENT_LOST) {
        state->is_down = false;
        decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
        return;
    }
    if (!state->is_down) state->down_since_ns = view->now_ns - view->attempt_ns;
    state->is_down = true;
    double recovery_s = ls_seconds(view->now_ns - state->down_since_ns) * value[THROUGHPUT] / value[RESERVE];
    double most_s = recovery_s < value[MOST_WAIT] ? recovery_s : value[MOST_WAIT];
    decision->try_at_ns = ls_after(view, ls_random_uniform(random) * most_s);
}

const ls_policy ls_policy_headroom = {.name = "headroom",
                                      .rule = "after a loss wait U(0, time since the first loss x throughput / reserve)",
                                      .source = "Chroma wal3 (https://github.com/chroma-core/chroma, rust/wal3)",
                                      .parameters = parameters,
                                      .parameter_count = LS_COUNT_OF(parameters),
                                      .decide = decide};
