/* scenarios.h - scenarios for tests that run whole simulations: every option at its default, a store, a policy, and
 * theory's world M0 on top.
 *
 * Every function that cannot do what it is asked fails the running test, so that callers need no checks of their own.
 */
#ifndef LS_TEST_SCENARIOS_H
#define LS_TEST_SCENARIOS_H

#include "sim/metrics.h"
#include "sim/scenario.h"

/* All options at their defaults, the named store preset and the named policy (or policy preset). */
ls_scenario ls_test_scenario(const char *store, const char *policy);

/* Model M0 of the theory: attempts that read at their start and take effect after a time drawn from `window`, on a
 * store that is otherwise ideal; uploads take no time. Law closed with one batch at a time, no warm-up, no spread of
 * starts. */
ls_scenario ls_test_theory_scenario(const char *policy, ls_law window);

/* One producer with one batch that tries at once, whatever happened, on a store whose times can be added by hand: list, get 10 ms, put of
 * data 50 ms, put of a version 100 ms with its effect at the end; time-outs after 0.5 s, refusals after 20 ms, restarts after 1 s. Faults are off. */
ls_scenario ls_test_small_world(void);

/* Replaces the policy, or sets one parameter of it. */
void ls_test_set_policy(ls_scenario *scenario, const char *policy);
void ls_test_set_parameter(ls_scenario *scenario, const char *parameter, double value);

/* Runs one replication, which must succeed. */
ls_run_result ls_test_simulate(const ls_scenario *scenario, uint64_t seed, uint64_t replication);

/* Laws in seconds. */
ls_law ls_test_constant(double value_s);
ls_law ls_test_exponential(double mean_s);
ls_law ls_test_lognormal(double median_s, double sigma);

#endif
