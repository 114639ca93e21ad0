/* lake.h - a lake in a test's hand: an instant in-memory store that answers machines, with replies that can be bent.
 *
 * lake_settle carries out all requests of a machine until it is quiet. A `bend` set for the next manifest put changes what
 * happens to it (effect or none) and what is told (the reply's status).
 */
#ifndef LS_TEST_LAKE_H
#define LS_TEST_LAKE_H

#include "manifest/producer.h"

#define LAKE_VERSIONS_MAX 256
#define LAKE_QUEUE_MAX 64

typedef struct lake {
    const ls_manifest *version[LAKE_VERSIONS_MAX]; /* [0] unused */
    uint64_t newest;
    uint64_t floor;  /* the greatest floor, 0: none; versions below are deleted */
    const ls_manifest *ghost; /* a version below the floor that somebody created again */
    uint64_t ghost_version;
    int64_t now_ns;
    uint64_t heads, lists, gets, puts, data_puts;
    uint64_t last_range_bytes;
    uint64_t published_batches, published_source_end;
    uint32_t wins, losses, aborted, proved, ambiguous, joined, fenced, finished, failed;
    uint64_t joined_offset;
    int64_t wake_ns;
    bool bend; /* apply to the next put of a manifest, once */
    bool bend_effect;
    ls_reply_status bend_status;
    bool bend_reads; /* apply bend_status to the next head, list or get instead */
    ls_reply_status data_status; /* of data puts */
    ls_store_request lingering;  /* a put whose effect was withheld; its reference is kept here */
    bool has_lingering;
    uint64_t slice_bytes; /* of every slice of every batch that is read; 0: all are empty */
    uint64_t data_gets;
} lake;

void lake_clear(lake *l);

/* Lets the withheld put take effect now; returns whether it created its version. */
bool lake_land(lake *l);

/* What a reclaimer does: the floor first, then every version below it goes. */
void lake_reclaim_below(lake *l, uint64_t floor);

/* One event, then all consequences at the lake's time; other machines do not move. */
void lake_event(lake *l, ls_producer *p, ls_event_kind kind);
void lake_batch(lake *l, ls_producer *p, uint64_t bytes, uint64_t source_count);

/* The lake's answer to one request of any machine (the tag is echoed); a put's manifest passes to the lake. The footer of the
 * batch with sequence q says that every rank's slice lies at 1000 q + 10 d + c. */
void lake_answer(lake *l, const ls_store_request *request, ls_store_reply *reply);

/* Carries out given actions (used when a test steps the machine itself). */
void lake_settle(lake *l, ls_producer *p, ls_actions *actions);

/* The decider "try at once, carry everything"; parameters may point to a uint32_t batch limit. */
ls_decider lake_immediate(const uint32_t *batch_limit);

#endif
