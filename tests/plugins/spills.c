/* spills.c - a plug-in for the tests: its state is larger than a machine has room for. */
#include "policies/plugin.h"

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)instance, (void)random;
    ((unsigned char *)state)[LS_POLICY_STATE_BYTES] = 1;
    decision->try_at_ns = view->now_ns + view->retry_after_ns;
}

static const ls_policy policy = {.name = "spills", .rule = "for tests", .source = "tests", .decide = decide};

LS_POLICY_PLUGIN(&policy)
