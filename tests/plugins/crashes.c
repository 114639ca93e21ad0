/* crashes.c - a plug-in for the tests: it writes where nothing is. */
#include "policies/plugin.h"

#include <string.h>

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)instance, (void)state, (void)random;
    memset((void *)(view->attempts - view->attempts), 1, 8);
    decision->try_at_ns = view->now_ns;
}

static const ls_policy policy = {.name = "crashes", .rule = "for tests", .source = "tests", .decide = decide};

LS_POLICY_PLUGIN(&policy)
