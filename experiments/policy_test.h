/* policy_test.h - does a policy keep the rules of policies/policy.h? What can be checked without knowing its idea is checked here, for
 * the program's own policies and for plug-ins alike: `lakestream policy-test`.
 *
 *   declaration  names, units, ranges, defaults (policies/check.c)
 *   decisions    random views at every parameter's least, greatest and default value: the view, the parameters and the bytes around
 *                its state stay as they were; the same state, stream and view give the same answer; a producer that can take
 *                no more batches gets a time that comes; a refusal's wish to wait is kept
 *   worlds       four small simulated worlds in which everything must be published, each run twice with equal results
 *   faults       random worlds with faults (sim/fuzz_world.h), all invariants on
 *
 * The oracle's kind (simulator_only) needs a world to ask, so its decisions are checked in worlds alone.
 */
#ifndef LS_POLICY_TEST_H
#define LS_POLICY_TEST_H

#include "policies/policy.h"

/* Each: LS_OK, LS_ERROR_VIOLATED with what was seen and what the rule is, or LS_ERROR_MEMORY. The instance's policy may be
 * one that is in no table, but for the worlds, which specs name. */
ls_result ls_policy_test_decisions(const ls_policy *policy, uint64_t seed, uint32_t views, ls_error *error);
ls_result ls_policy_test_worlds(const char *name, uint64_t seed, ls_error *error);
ls_result ls_policy_test_faults(const char *name, uint64_t first_seed, uint32_t seeds, ls_error *error);

#endif
