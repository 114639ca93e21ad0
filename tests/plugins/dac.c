/* dac.c - a plug-in for the tests: its name is taken. */
#include "policies/plugin.h"

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)instance, (void)state, (void)random;
    decision->try_at_ns = view->now_ns;
}

static const ls_policy policy = {.name = "dac", .rule = "for tests", .source = "tests", .decide = decide};

LS_POLICY_PLUGIN(&policy)
