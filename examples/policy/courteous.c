/* courteous.c - a policy of one's own in a file of one's own: who loses steps back by as many attempts as it has lost in a row.
 *
 * After a loss the next try comes after a uniform share of (losses in a row) x (how long the last attempt took) x patience; after a
 * win, and when a batch becomes ready with no plan standing, at once. Linear where the usual back-off is exponential.
 */
#include "policies/plugin.h"

enum { PATIENCE, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("patience", "1", 4, 0, 1000, "attempts' durations to step back for each loss in a row, at most"),
    LS_BATCH_LIMIT_PARAMETER,
};

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)state; /* losses in a row and the attempt's duration are in the view: nothing to remember */
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment == LS_MOMENT_WON && view->pending_batches == 0) return;
    double most_s = value[PATIENCE] * ls_seconds(view->attempt_ns) * (view->moment == LS_MOMENT_LOST ? view->losses_in_row : 0);
    decision->try_at_ns = ls_after(view, ls_draw_between(random, 0, most_s));
}

static const ls_policy courteous = {.name = "courteous",
                                    .rule = "after each loss step back by one more attempt's duration",
                                    .source = "ours",
                                    .parameters = parameters,
                                    .parameter_count = LS_COUNT_OF(parameters),
                                    .decide = decide};

LS_POLICY_PLUGIN(&courteous)
