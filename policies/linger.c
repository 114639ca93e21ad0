/* linger.c - group commit: wait until enough is pending or the oldest batch is old enough, then commit all of it.
 *
 * Kafka's linger.ms and batch.size rule with one commit in flight a producer: what arrives during a commit rides with
 * the next. After a loss the batch has lingered long enough already; it waits retry_s, jittered, so that losers do not
 * march in step. That wait, and the one after a refusal by the store, is kept until the next attempt whatever comes in
 * meanwhile: only lingering is cut short by having enough. Defaults: 16 batches or 5 s suit batches of a training step
 * each, about one a second; bytes do not bind unless set. Source: Kafka producer configuration
 * (https://kafka.apache.org/documentation/#producerconfigs).
 */
#include "policies/common.h"

#include <math.h>

enum { BATCHES, BYTES, AGE, RETRY, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("batches", "batches", 16, 1, 1e6, "commit when so many are pending"),
    LS_PARAMETER("bytes", "bytes", 1e12, 1, 1e15, "or when they hold so many bytes"),
    LS_PARAMETER("age_s", "s", 5, 0, 86400, "or when the oldest has waited so long"),
    LS_PARAMETER("retry_s", "s", 1, 0, 3600, "after a loss wait this, times U(0.5, 1.5)"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct linger_state {
    bool waits; /* the last attempt did not win: the standing plan is a back-off */
} linger_state;
LS_STATE_FITS(linger_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    linger_state *state = memory;
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    bool ready = view->moment == LS_MOMENT_READY;
    if (!ready) state->waits = view->moment != LS_MOMENT_WON;
    if ((!ready || state->waits) && ls_common_answer(view, random, decision)) return;
    if (view->moment == LS_MOMENT_LOST) {
        decision->try_at_ns = ls_after(view, value[RETRY] * ls_draw_between(random, 0.5, 1.5));
        return;
    }
    if (view->pending_batches == 0) {
        decision->try_at_ns = LS_NEVER_NS;
        return;
    }
    /* The backlog's limit counts as enough: waiting for more would wait for ever. */
    double enough = fmin(value[BATCHES], view->backlog_limit);
    bool full = view->pending_batches >= enough || (double)view->pending_bytes >= value[BYTES];
    int64_t age_ns = ls_nanoseconds(value[AGE]);
    int64_t ripe_ns = full || age_ns > LS_NEVER_NS - 1 - view->oldest_ready_ns ? view->now_ns : view->oldest_ready_ns + age_ns;
    if (ripe_ns < view->now_ns) ripe_ns = view->now_ns;
    decision->try_at_ns = ripe_ns;
}

const ls_policy ls_policy_linger = {.name = "linger",
                                    .rule = "commit at so many batches, so many bytes or so much age, whichever comes first",
                                    .source = "Kafka producer (linger.ms, batch.size)",
                                    .parameters = parameters,
                                    .parameter_count = LS_COUNT_OF(parameters),
                                    .decide = decide};
