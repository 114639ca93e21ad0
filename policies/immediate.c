/* immediate.c - try as soon as anything is pending; after a loss, at once again.
 *
 * The baseline that everybody writes first, and what several products ship: OpenData's stateless buffer, Delta
 * (10,000,000 attempts without a pause), delta-rs before its repair. With one batch a commit (batch_limit 1) it is the
 * naive baseline whose throughput is bound by the store's conditional write; carrying all, it keeps throughput and
 * wastes nearly every request. `retries` is how many losses in a row a product bears before its commit fails; what the
 * caller's job does then is taken to be a new submission after resubmit_pause_s, 1 s by default: what a job that is
 * started again takes at least. Sources: https://github.com/opendata-oss/opendata (buffer/),
 * https://github.com/delta-io/delta (maxCommitAttempts), https://github.com/delta-io/delta-rs/issues/3066.
 */
#include "policies/common.h"

enum { BATCH_LIMIT, RETRIES, RESUBMIT_PAUSE };

static const ls_policy_parameter parameters[] = {
    LS_BATCH_LIMIT_PARAMETER,
    LS_PARAMETER("retries", "1", 0, 0, 1e9, "losses in a row after which the commit is given up and submitted anew; 0: never"),
    LS_PARAMETER("resubmit_pause_s", "s", 1, 0, 3600, "pause before a given-up commit is submitted anew"),
};

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
    uint32_t *losses = state;
    *losses = view->moment == LS_MOMENT_LOST ? *losses + 1 : 0;
    ls_gives_up(view, value[RETRIES], value[RESUBMIT_PAUSE], losses, decision);
}

const ls_policy ls_policy_immediate = {.name = "immediate",
                                       .rule = "try when a batch is ready; after a loss, at once",
                                       .source = "OpenData buffer, Delta, delta-rs before issue 3066",
                                       .parameters = parameters,
                                       .parameter_count = LS_COUNT_OF(parameters),
                                       .decide = decide};
