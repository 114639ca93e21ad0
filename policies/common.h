/* common.h - what several policies share: parameter declarations, keeping a plan, and what to do when a store refuses for load. */
#ifndef LS_POLICY_COMMON_H
#define LS_POLICY_COMMON_H

#include "policies/policy.h"

/* One row of a parameter table. */
#define LS_PARAMETER(name_, unit_, default_, min_, max_, meaning_) \
    {.name = name_, .unit = unit_, .default_value = default_, .minimum = min_, .maximum = max_, .meaning = meaning_}

#define LS_BATCH_LIMIT_PARAMETER \
    LS_PARAMETER("batch_limit", "batches", 0, 0, 1e6, "most batches one commit carries, oldest first; 0: all that are pending")

#define LS_COUNT_OF(table) (uint32_t)(sizeof(table) / sizeof((table)[0]))

/* The values of the instance that a decider's parameters point to. */
static inline const double *ls_values(const void *parameters)
{
    return ((const ls_policy_instance *)parameters)->values;
}

/* now + seconds, never before now, never past the end of time. */
int64_t ls_after(const ls_commit_view *view, double seconds);

/* Uniform in [low, high). */
double ls_draw_between(ls_random *random, double low, double high);

/* The answer when the moment needs no new plan, else false. Covers two cases that most rules treat alike:
 *   READY with a standing plan: the plan stays (it may have passed, then the attempt comes at once);
 *   THROTTLED or ABORTED: no conflict, so the rule's own state is not asked; wait 0.1 s doubled for each refusal in a
 *   row up to 20 s, half of it jittered, and after a refusal at least what the store wished. An attempt that was
 *   aborted met no refusal: the view may still hold the wish of an earlier one, which has been kept already. */
bool ls_common_answer(const ls_commit_view *view, ls_random *random, ls_commit_decision *decision);

/* Retry budgets. After a loss: true when `retries` (0: no limit) losses of this submission are exceeded; then the decision says that
 * the commit was given up and is submitted anew after pause_s, and *losses starts from 0. */
bool ls_gives_up(const ls_commit_view *view, double retries, double pause_s, uint32_t *losses, ls_commit_decision *decision);

/* Live producers, at least 1: rows of the table that are open; with window_versions > 0 only those whose last commit lies within
 * that many versions. The count is kept in cache (two words of the policy's state) and renewed when as many versions passed
 * as there are rows, so that a scan costs O(1) a version. */
typedef struct ls_live_cache {
    uint64_t version;
    uint32_t count;
    uint32_t used;
} ls_live_cache;
uint32_t ls_live_producers(const ls_commit_view *view, uint64_t window_versions, ls_live_cache *cache);

#define LS_STATE_FITS(type) _Static_assert(sizeof(type) <= LS_POLICY_STATE_BYTES, #type " does not fit in a machine")

extern const ls_policy ls_policy_immediate, ls_policy_fixed, ls_policy_backoff_none, ls_policy_backoff_full,
    ls_policy_backoff_equal, ls_policy_backoff_decorrelated, ls_policy_aimd, ls_policy_delay, ls_policy_aloha,
    ls_policy_slotted, ls_policy_linger, ls_policy_turns, ls_policy_bbr, ls_policy_headroom,
    ls_policy_retry_budget, ls_policy_oracle, ls_policy_dac, ls_policy_dac_r1, ls_policy_dac_r2,
    ls_policy_dac_r3;

#endif
