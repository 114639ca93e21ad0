/* test_tuner.c - the tuner on worlds whose best parameters are known, made of formulas instead of simulations. */
#include "experiments/tuner.h"
#include "sim/metrics.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

/* Delay (T / 2)^2 + 1/T falls and rises over the interval T of `fixed`, requests 10 / T fall; jitter costs delay only. The least
 * delay is where T/2 = 1/T^2, at 2^(1/3); the fewest requests at the end of the range. Noise is common to all candidates. */
static ls_result formula(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                         ls_run_result *result, ls_error *error)
{
    (void)context;
    (void)error;
    const double *value = scenario->policy.values;
    ls_random noise = ls_random_open(seed, replication, LS_RANDOM_TEST, 0);
    double interval = value[0], jitter = value[1], luck = 1 + 0.2 * ls_random_uniform(&noise);
    memset(result, 0, sizeof *result);
    result->values[LS_METRIC_DELAY_MEAN] = luck * (0.25 * interval * interval + 1 / interval) * (1 + jitter * jitter);
    result->values[LS_METRIC_COMMIT_REQUEST_RATE] = luck * 10 / interval;
    result->values[LS_METRIC_PUBLISHED_SHARE] = interval > 20 ? 0.5 : 1; /* longer ones publish too little */
    return LS_OK;
}

static ls_scenario scenario_of(const char *policy)
{
    ls_scenario scenario;
    ls_error error = {""};
    memset(&scenario, 0, sizeof scenario);
    CU_ASSERT_EQUAL_FATAL(ls_policy_instantiate(policy, &scenario.policy, &error), LS_OK);
    return scenario;
}

static ls_tuner_config config_of(const ls_scenario *scenario)
{
    return (ls_tuner_config){.scenario = scenario, .seed = 5, .candidates = 32, .rounds = 4, .jobs = 2, .run = formula};
}

static void test_finds_the_best(void)
{
    ls_scenario scenario = scenario_of("fixed");
    ls_tuner_config config = config_of(&scenario);
    ls_tuning tuning;
    ls_error error = {""};
    CU_ASSERT_STRING_EQUAL(scenario.policy.policy->parameters[0].name, "interval_s");
    CU_ASSERT_EQUAL_FATAL(ls_tune(&config, &tuning, &error), LS_OK);
    const ls_candidate *fastest = &tuning.candidates[tuning.best[0]], *cheapest = &tuning.candidates[tuning.best[4]];
    CU_ASSERT_DOUBLE_EQUAL(fastest->values[0], cbrt(2), 0.25);
    CU_ASSERT(fastest->values[1] < 0.1);
    CU_ASSERT(cheapest->values[0] > 12 && cheapest->values[0] <= 20); /* beyond 20 nothing is feasible */
    double worst_kept = 0;
    for (uint32_t i = 0; i < tuning.count; i++) {
        const ls_candidate *c = &tuning.candidates[i];
        if (c->values[0] > 20) CU_ASSERT_FALSE(c->front);
        if (!c->front) continue;
        CU_ASSERT_EQUAL(c->replications, 4);
        CU_ASSERT(c->delay_s >= fastest->delay_s);
        worst_kept = fmax(worst_kept, c->requests_per_s);
        for (uint32_t k = 0; k < tuning.count; k++) {
            const ls_candidate *other = &tuning.candidates[k];
            if (other->front) CU_ASSERT_FALSE(other->delay_s < c->delay_s && other->requests_per_s < c->requests_per_s);
        }
    }
    CU_ASSERT_DOUBLE_EQUAL(worst_kept, fastest->requests_per_s, 1e-9); /* the fastest is the dearest of the front */
    ls_free(tuning.candidates);
}

/* Any number of workers finds the same; another seed draws other steps. */
static void test_is_deterministic(void)
{
    ls_scenario scenario = scenario_of("fixed");
    ls_tuner_config config = config_of(&scenario);
    ls_tuning one, three, other;
    ls_error error = {""};
    config.jobs = 1;
    CU_ASSERT_EQUAL_FATAL(ls_tune(&config, &one, &error), LS_OK);
    config.jobs = 3;
    CU_ASSERT_EQUAL_FATAL(ls_tune(&config, &three, &error), LS_OK);
    config.seed = 6;
    CU_ASSERT_EQUAL_FATAL(ls_tune(&config, &other, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(one.count, three.count);
    CU_ASSERT_EQUAL(one.runs, three.runs);
    CU_ASSERT_EQUAL(memcmp(one.candidates, three.candidates, one.count * sizeof *one.candidates), 0);
    CU_ASSERT_NOT_EQUAL(one.candidates[one.best[0]].delay_s, other.candidates[other.best[0]].delay_s);
    ls_free(one.candidates);
    ls_free(three.candidates);
    ls_free(other.candidates);
}

/* A range that is given is searched alone, and kept to. */
static void test_given_ranges(void)
{
    ls_scenario scenario = scenario_of("fixed");
    ls_tuned_range range = {"interval_s", 3, 4};
    ls_tuner_config config = config_of(&scenario);
    ls_tuning tuning;
    ls_error error = {""};
    config.ranges = &range;
    config.range_count = 1;
    CU_ASSERT_EQUAL_FATAL(ls_tune(&config, &tuning, &error), LS_OK);
    for (uint32_t i = 1; i < tuning.count; i++) {
        CU_ASSERT(tuning.candidates[i].values[0] >= 3 && tuning.candidates[i].values[0] <= 4);
        CU_ASSERT_EQUAL(tuning.candidates[i].values[1], scenario.policy.values[1]);
    }
    ls_free(tuning.candidates);
    range.parameter = "intervall_s";
    CU_ASSERT_EQUAL(ls_tune(&config, &tuning, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "interval_s"));
    range = (ls_tuned_range){"interval_s", 4, 3};
    CU_ASSERT_EQUAL(ls_tune(&config, &tuning, &error), LS_ERROR_INVALID);
    scenario = scenario_of("oracle");
    config.range_count = 0;
    CU_ASSERT_EQUAL(ls_tune(&config, &tuning, &error), LS_ERROR_INVALID);
}

LS_SUITE(tuner, {"finds the best", test_finds_the_best}, {"is deterministic", test_is_deterministic},
         {"given ranges", test_given_ranges})
