/* cmd_policy_test.c - `lakestream policy-test`: the rules of policies/policy.h checked on one policy or plug-in, one line a check. */
#include "experiments/commands.h"
#include "experiments/plugin.h"
#include "experiments/policy_test.h"
#include "policies/plugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct checks {
    const ls_arguments *arguments;
    uint32_t failed;
} checks;

static void conclude(checks *c, const char *name, const char *check, const char *extent, ls_result result, const ls_error *error)
{
    alarm(0);
    printf("%s %s: %-11s %s%s%s\n", result == LS_OK ? "ok    " : "FAILED", name, check, extent, result == LS_OK ? "" : ": ",
           result == LS_OK ? "" : error->text);
    fflush(stdout);
    if (result != LS_OK) c->failed++;
}

/* A policy that never comes back is ended by the alarm, whose handler (plugin.c) names it. */
static void begin(const ls_arguments *arguments) { alarm((unsigned)ls_argument_whole(arguments, "limit")); }

static void check_policy(checks *c, const ls_policy *policy)
{
    ls_error error = {""};
    char extent[64];
    uint64_t seed = ls_argument_whole(c->arguments, "seed"), seeds = ls_argument_whole(c->arguments, "worlds");
    uint64_t views = ls_argument_whole(c->arguments, "views");
    ls_result result = ls_policy_check(policy, &error);
    conclude(c, policy->name, "declaration", "", result, &error);
    if (result != LS_OK) return;
    begin(c->arguments);
    snprintf(extent, sizeof extent, policy->simulator_only ? "in worlds alone" : "%llu views", (unsigned long long)views);
    result = ls_policy_test_decisions(policy, seed, (uint32_t)views, &error);
    conclude(c, policy->name, "decisions", extent, result, &error);
    if (result != LS_OK) return; /* it may have written where worlds keep what is theirs */
    begin(c->arguments);
    conclude(c, policy->name, "worlds", "everything published, twice the same", ls_policy_test_worlds(policy->name, seed, &error), &error);
    begin(c->arguments);
    snprintf(extent, sizeof extent, "%llu random worlds", (unsigned long long)seeds);
    conclude(c, policy->name, "faults", extent, ls_policy_test_faults(policy->name, seed, (uint32_t)seeds, &error), &error);
}

static bool is_file(const char *operand)
{
    size_t length = strlen(operand);
    return strchr(operand, '/') != NULL || (length > 3 && strcmp(operand + length - 3, ".so") == 0);
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    checks c = {.arguments = arguments};
    const char *operand = arguments->operands[0];
    uint32_t before, count;
    ls_policies(&before);
    if (is_file(operand)) {
        ls_result result = ls_plugin_load(operand, &error);
        if (result != LS_OK) return ls_report_error(arguments, result, &error);
        const ls_policy *const *policies = ls_policies(&count);
        for (uint32_t i = before; i < count; i++) check_policy(&c, policies[i]);
    } else {
        ls_policy_instance instance;
        ls_result result = ls_policy_instantiate(operand, &instance, &error);
        if (result != LS_OK) return ls_report_error(arguments, result, &error);
        check_policy(&c, instance.policy);
    }
    return c.failed == 0 ? LS_EXIT_DONE : LS_EXIT_CHECK_FAILED;
}

static const ls_command_option options[] = {
    {"views", 0, LS_ARGUMENT_WHOLE, "N", "20000", 1, 1e8, "random views to decide on"},
    {"worlds", 0, LS_ARGUMENT_WHOLE, "N", "200", 0, 1e6, "random worlds with faults"},
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", "1", 0, 9007199254740992.0, "of everything random"},
    {"limit", 0, LS_ARGUMENT_WHOLE, "SECONDS", "120", 1, 86400, "time for each check; a policy that hangs is ended and named"}};

const ls_command ls_command_policy_test = {
    .name = "policy-test",
    .operands = "FILE.so|NAME",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Check that a policy, also one of a plug-in, keeps the rules of policies",
    .details = "Declaration, decisions on random views (state kept within its bytes, same input same answer, never 'never' with a full\n"
               "backlog, a refusal's wish kept), worlds in which everything must be published, random worlds with faults.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
