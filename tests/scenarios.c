/* scenarios.c - see scenarios.h. */
#include "tests/scenarios.h"

#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

static const ls_store_preset *preset_named(const char *name)
{
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    }
    return NULL;
}

ls_scenario ls_test_scenario(const char *store, const char *policy)
{
    ls_scenario scenario;
    memset(&scenario, 0, sizeof scenario);
    uint32_t count;
    const ls_option *options = ls_scenario_options(&count);
    ls_options_default(options, count, &scenario);
    const ls_store_preset *preset = preset_named(store);
    CU_ASSERT_PTR_NOT_NULL_FATAL(preset);
    scenario.store = preset->config;
    snprintf(scenario.store_preset, sizeof scenario.store_preset, "%s", store);
    ls_test_set_policy(&scenario, policy);
    return scenario;
}

ls_scenario ls_test_theory_scenario(const char *policy, ls_law window)
{
    ls_scenario scenario = ls_test_scenario("ideal", policy);
    scenario.store.conditional_won = window;
    scenario.store.conditional_lost = window;
    scenario.batches.law = LS_ARRIVAL_CLOSED;
    scenario.batches.bytes = 4096;
    scenario.batches.data_parallel = 1;
    scenario.upload.instantaneous = true;
    scenario.upload.backlog_batches = 1;
    scenario.producers.start_spread_s = 0;
    scenario.warm_up_s = 0;
    return scenario;
}

void ls_test_set_policy(ls_scenario *scenario, const char *policy)
{
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_policy_instantiate(policy, &scenario->policy, &error), LS_OK);
    snprintf(scenario->policy_name, sizeof scenario->policy_name, "%s", policy);
}

void ls_test_set_parameter(ls_scenario *scenario, const char *parameter, double value)
{
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_policy_set(&scenario->policy, parameter, value, &error), LS_OK);
}

ls_run_result ls_test_simulate(const ls_scenario *scenario, uint64_t seed, uint64_t replication)
{
    ls_run_result result;
    memset(&result, 0, sizeof result);
    ls_error error = {""};
    ls_result outcome = ls_simulate(scenario, seed, replication, &result, &error);
    if (outcome != LS_OK) {
        fprintf(stderr, "\n    seed %llu, replication %llu: %s: %s\n", (unsigned long long)seed,
                (unsigned long long)replication, ls_result_name(outcome), error.text);
    }
    CU_ASSERT_EQUAL_FATAL(outcome, LS_OK);
    return result;
}

/* Tries at once, whatever happened: no pause of a policy's own in the sums. */
static void decide_at_once(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                           ls_commit_decision *decision)
{
    (void)parameters;
    (void)state;
    (void)random;
    decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
}

static const ls_policy at_once = {.name = "at-once", .rule = "try at once", .source = "tests", .decide = decide_at_once};

ls_scenario ls_test_small_world(void)
{
    ls_scenario s = ls_test_scenario("ideal", "immediate");
    s.policy = (ls_policy_instance){.policy = &at_once};
    s.store.list = s.store.get = s.store.head = ls_test_constant(0.01);
    s.store.conditional_won = s.store.conditional_lost = ls_test_constant(0.1);
    s.store.put = ls_test_constant(0.05);
    s.store.conditional_effect_share = 1;
    s.store.put_effect_share = 1;
    s.producers.count = 1;
    s.producers.start_spread_s = 0;
    s.batches.law = LS_ARRIVAL_ONCE;
    s.batches.bytes = 4096;
    s.upload.instantaneous = true;
    s.warm_up_s = 0;
    s.duration_s = 10;
    s.drain_s = 1000;
    s.check_everything = true;
    s.faults.timeout_s = 0.5;
    s.faults.refusal_s = 0.02;
    s.faults.restart_s = 1;
    return s;
}

ls_law ls_test_constant(double value_s)
{
    return (ls_law){.law = LS_LAW_CONSTANT, .scale_s = value_s, .tail_shape = 2, .draws = 1};
}

ls_law ls_test_exponential(double mean_s)
{
    return (ls_law){.law = LS_LAW_EXPONENTIAL, .scale_s = mean_s, .tail_shape = 2, .draws = 1};
}

ls_law ls_test_lognormal(double median_s, double sigma)
{
    return (ls_law){.law = LS_LAW_LOGNORMAL, .scale_s = median_s, .shape = sigma, .tail_shape = 2, .draws = 1};
}
