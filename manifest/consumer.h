/* consumer.h - the consumer machine: one rank that follows the manifest and reads its slice of every step, in order.
 *
 * Sans I/O, like the producer. A consumer sees only what a committed manifest names: it follows versions by the lake's
 * discovery strategy, keeps a cursor (the next step to hand on), and prefetches up to `window` steps: first the footer of the
 * TGB by a suffix read, then its own slice by a range read (or the whole TGB at once). The driver decodes footers and checks the slice's CRC32C
 * (exchange.h); a slice that does not verify comes back as LS_REPLY_INVALID and stops the machine.
 *
 *   START → find and read the newest version → prefetch → LS_ACTION_STEP for each step in order
 *   caught up → poll again after poll_ns, or (without follow) FINISHED
 *   cursor below the trim point → BEHIND: the data of that step has been reclaimed, nothing is skipped silently
 */
#ifndef LS_CONSUMER_H
#define LS_CONSUMER_H

#include "manifest/discovery.h"

#define LS_CONSUMER_WINDOW_MAX 16u

typedef struct ls_consumer_config {
    uint32_t data_rank;
    uint32_t context_rank;
    uint32_t window;      /* steps read ahead, 1 .. LS_CONSUMER_WINDOW_MAX; on demand: beyond the step asked for, 0 .. less than that */
    bool on_demand;       /* a step is handed on only when LS_EVENT_GO has asked for it, one step an event: back pressure */
    bool follow;          /* wait for further versions at the end */
    bool whole_objects;   /* each step's whole TGB by one request, instead of its footer and the own slice: the naive reader that range
                             reads are compared with */
    int64_t poll_ns;      /* between two looks for further versions, and after a failed request */
} ls_consumer_config;

typedef enum ls_fetch_state { LS_FETCH_EMPTY = 0, LS_FETCH_WAITING, LS_FETCH_FOOTER, LS_FETCH_SLICE, LS_FETCH_READY } ls_fetch_state;

typedef struct ls_fetch {
    ls_entry entry;
    ls_slice slice;
    int64_t asked_ns;
    int64_t ready_ns;
    uint32_t state; /* ls_fetch_state */
} ls_fetch;

typedef struct ls_consumer {
    const ls_protocol *protocol; /* borrowed */
    ls_consumer_config config;
    const ls_manifest *known;    /* one reference */
    const ls_manifest *unconfirmed; /* read, but a floor may lie above it; one reference or NULL */
    ls_search search;
    ls_fetch fetch[LS_CONSUMER_WINDOW_MAX]; /* of step s: fetch[s % LS_CONSUMER_WINDOW_MAX] */
    uint64_t cursor;             /* next step to hand on */
    uint64_t fetch_end;          /* one past the last step whose fetch has begun */
    uint64_t asked_end;          /* on demand: one past the last step asked for */
    int64_t wake_ns;
    int64_t poll_at_ns;          /* LS_NEVER_NS while a search is under way */
    int64_t retry_at_ns;         /* when fetches that failed are tried again */
    uint32_t tag;                /* of the manifest request in flight */
    bool finding, reading, confirming, started, stopped, stopping;
} ls_consumer;

/* A machine that will hand on steps from first_step. LS_ERROR_INVALID for a window out of range. */
ls_result ls_consumer_init(ls_consumer *consumer, const ls_protocol *protocol, const ls_consumer_config *config, uint64_t first_step);

/* Events START, TIMER, REPLY, STOP, and on demand GO. LS_ERROR_MEMORY ends the machine. */
ls_result ls_consumer_step(ls_consumer *consumer, const ls_event *event, ls_actions *actions);

void ls_consumer_clear(ls_consumer *consumer);

/* True for the tag of a data request; its step is the tag's low 31 bits plus a multiple of 2^31 near the cursor. */
static inline bool ls_consumer_tag_is_data(uint32_t tag)
{
    return (tag & UINT32_C(0x80000000)) != 0;
}

#endif
