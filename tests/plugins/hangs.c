/* hangs.c - a plug-in for the tests: it never comes back. */
#include "policies/plugin.h"

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)instance, (void)state, (void)random, (void)view, (void)decision;
    for (volatile int forever = 1; forever;) { }
}

static const ls_policy policy = {.name = "hangs", .rule = "for tests", .source = "tests", .decide = decide};

LS_POLICY_PLUGIN(&policy)
