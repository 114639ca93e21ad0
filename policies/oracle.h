/* oracle.h - what the simulator must offer so that the `oracle` policy can know everything. */
#ifndef LS_POLICY_ORACLE_H
#define LS_POLICY_ORACLE_H

#include "manifest/commit_view.h"

struct ls_oracle {
    void *context;
    /* When this producer should try: now, or LS_NEVER_NS to wait for an LS_EVENT_GO. Called with every moment that
     * a policy is asked at, so that the oracle also learns that an attempt ended. */
    int64_t (*next_turn)(void *context, const ls_commit_view *view);
};

#endif
