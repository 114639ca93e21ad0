/* oracle.c - the bound: an omniscient schedule in which no attempt ever conflicts.
 *
 * The simulator knows who waits and when each put takes effect; it lets producers read one after the other, each as soon as the
 * effect before it has happened, and each commits all that it has pending. No policy in which a producer commits its own
 * batches can do better on conflicts, and none can start its read earlier. Not available on a real store.
 */
#include "policies/oracle.h"

#include "policies/common.h"

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    (void)instance;
    (void)state;
    (void)random;
    decision->try_at_ns = view->oracle != NULL ? view->oracle->next_turn(view->oracle->context, view) : view->now_ns;
}

const ls_policy ls_policy_oracle = {.name = "oracle",
                                    .rule = "omniscient turns: each reads as soon as the put before it has taken effect",
                                    .source = "ours; the bound for policies that commit their own batches",
                                    .simulator_only = true,
                                    .decide = decide};
