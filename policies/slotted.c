/* slotted.c - Lance's commit back-off: slots as long as the first attempt took, twice as many with each round.
 *
 * After the k-th loss in a row (k = 0, 1, ...) the wait is a uniform whole number of slots out of 0 .. 2^(k +
 * first_exponent) - 1. The slot is the duration of the first attempt of this commit, initial_slot_s before one is
 * known. It scales by itself with the manifest, because the first attempt does. Source: lance-core's back-off module
 * (docs.rs/lance-core), defaults as there: 4 slots at first, 50 ms; that the slots end at 2^12 is ours (newer versions
 * of Lance bound them too). `retries` as in `backoff-*` (LanceDB: 20, formerly 5).
 */
#include "policies/common.h"

#include <math.h>

enum { INITIAL_SLOT, FIRST_EXPONENT, MOST_EXPONENT, RETRIES, RESUBMIT_PAUSE, BATCH_LIMIT };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("initial_slot_s", "s", 0.05, 1e-6, 3600, "slot length when no attempt was timed yet"),
    LS_PARAMETER("first_exponent", "1", 2, 0, 20, "two to this many slots after the first loss"),
    LS_PARAMETER("most_exponent", "1", 12, 0, 30, "two to at most this many slots"),
    LS_PARAMETER("retries", "1", 0, 0, 1e9, "losses in a row after which the commit is given up and submitted anew; 0: never"),
    LS_PARAMETER("resubmit_pause_s", "s", 1, 0, 3600, "pause before a given-up commit is submitted anew"),
    LS_BATCH_LIMIT_PARAMETER,
};

typedef struct slotted_state {
    double slot_s;
    uint32_t losses;
} slotted_state;
LS_STATE_FITS(slotted_state);

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    slotted_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment != LS_MOMENT_LOST) {
        state->losses = 0;
        decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
        return;
    }
    if (state->losses++ == 0) state->slot_s = view->attempt_ns > 0 ? ls_seconds(view->attempt_ns) : value[INITIAL_SLOT];
    if (ls_gives_up(view, value[RETRIES], value[RESUBMIT_PAUSE], &state->losses, decision)) return;
    double exponent = fmin(value[MOST_EXPONENT], state->losses - 1.0 + value[FIRST_EXPONENT]);
    uint64_t slot = ls_random_below(random, UINT64_C(1) << (uint32_t)exponent);
    decision->try_at_ns = ls_after(view, (double)slot * state->slot_s);
}

const ls_policy ls_policy_slotted = {.name = "slotted",
                                     .rule = "after the k-th loss wait a random number of slots below 2^(k+1), a slot being the first attempt's duration",
                                     .source = "Lance (lance-core back-off module)",
                                     .parameters = parameters,
                                     .parameter_count = LS_COUNT_OF(parameters),
                                     .decide = decide};
