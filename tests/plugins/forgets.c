/* forgets.c - a plug-in for the tests: it keeps a count outside its state. */
#include "policies/plugin.h"

static void decide(const void *instance, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    static int64_t asked;
    (void)instance, (void)state, (void)random;
    decision->try_at_ns = view->now_ns + view->retry_after_ns + ++asked;
}

static const ls_policy policy = {.name = "forgets", .rule = "for tests", .source = "tests", .decide = decide};

LS_POLICY_PLUGIN(&policy)
