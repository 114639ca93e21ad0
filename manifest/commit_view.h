/* commit_view.h - what a producer can see when it decides when to commit, and what it may answer.
 *
 * It stands in the lowest floor because the committer asks and the policies, one floor up, answer. A policy sees what a
 * real producer can see and nothing else; the one exception is `oracle`, which only the simulator fills.
 */
#ifndef LS_COMMIT_VIEW_H
#define LS_COMMIT_VIEW_H

#include "manifest/exchange.h"
#include "manifest/random.h"

typedef enum ls_moment {
    LS_MOMENT_READY = 1, /* a batch became pending while no attempt is under way */
    LS_MOMENT_WON,       /* an attempt ended: the commit stands */
    LS_MOMENT_LOST,      /* an attempt ended: someone else took the version */
    LS_MOMENT_THROTTLED, /* an attempt ended: the store refused for load; not a conflict */
    LS_MOMENT_ABORTED,   /* an attempt ended without effect (read failed, store unavailable) */
    LS_MOMENT_LOOK       /* deciders that look, alone: the newest version's number was found and nothing was read or put yet. An answer
                            in the future calls the attempt off, without a trace but the request, until then */
} ls_moment;

typedef struct ls_oracle ls_oracle; /* defined by the simulator alone */

typedef struct ls_commit_view {
    ls_moment moment;
    int64_t now_ns;
    int64_t planned_ns;       /* the standing plan (an earlier answer's try_at_ns; may be past), LS_NEVER_NS if none */
    uint32_t pending_batches; /* uploaded, not committed (0 is possible after a win) */
    uint32_t backlog_limit;   /* at most so many batches can be pending before production stops */
    uint64_t pending_bytes;
    int64_t oldest_ready_ns;  /* when the oldest pending batch became ready (its upload began); LS_NEVER_NS if none */
    int64_t attempt_ns;       /* last attempt: whole duration, 0 before the first */
    int64_t read_ns;          /* its part until the newest version was known and read */
    int64_t put_ns;           /* its put */
    int64_t retry_after_ns;   /* throttled: the store's wish */
    uint32_t losses_in_row;   /* lost attempts since the last win, this one included */
    uint32_t throttles_in_row;
    uint64_t attempts;        /* ended so far, of all outcomes */
    uint64_t versions_passed; /* by which the newest version known grew between the last two sights of it */
    int64_t sight_gap_ns;     /* time between those two sights (0: only one so far) */
    uint64_t newest_version;  /* at a look: the newest version there is; `manifest` may be older. Else 0 */
    uint32_t own_slot;        /* own row in the table, LS_NO_SLOT before registration */
    const ls_manifest *manifest; /* newest version seen; never NULL */
    ls_oracle *oracle;        /* simulator only, else NULL */
} ls_commit_view;

typedef struct ls_commit_decision {
    int64_t try_at_ns;    /* attempt at this time if anything is pending; <= now: at once; LS_NEVER_NS: ask again when a batch becomes ready */
    uint32_t batch_limit; /* carry at most so many batches, oldest first; 0: all */
    bool gave_up;         /* the policy's own retry budget is spent; it starts afresh at try_at_ns (counted, nothing is dropped) */
} ls_commit_decision;

#define LS_POLICY_STATE_BYTES 64u

/* The committer's handle on a policy. parameters point to immutable values that outlive the machine. */
typedef struct ls_decider {
    void (*decide)(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision);
    const void *parameters;
    bool looks; /* asks to be shown the newest version's number before an attempt goes on (LS_MOMENT_LOOK) */
} ls_decider;

#endif
