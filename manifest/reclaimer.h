/* reclaimer.h - the machine that deletes what nobody can need any more: batches, orphans, checkpoints, versions,
 * floors.
 *
 * Sans I/O and copyable, like the producer. A round:
 *   find, read and confirm the newest version; an empty lake is refused
 *   list the checkpoints; the retention rule gives the watermark W
 *   announce W by a commit (put-if-absent of the next version, rebased after a loss), unless it is announced already
 *   list the checkpoints again; B is the least of W and of every checkpoint that is there now and not to be retired
 *   delete the batches below B; when all deletes are answered, trim the manifest to B by a commit
 *   retire the checkpoints that the rule does not keep, and those of steps that are trimmed
 *   write the floor, list the floors, delete lower floors and the versions below
 *   list the data and delete orphans that can be committed no more and are older than the grace time
 * Everything is idempotent and only rises, so a reclaimer may die anywhere and others may run beside it. Why this
 * deletes nothing that is needed: PROTOCOL.md, section 9. No clock carries safety: the grace time only spares needless
 * work for a slow uploader.
 *
 * A dry run sends no put and no delete; it tells each object that the round would delete by LS_ACTION_WOULD_DELETE.
 */
#ifndef LS_RECLAIMER_H
#define LS_RECLAIMER_H

#include "manifest/checkpoint.h"

#define LS_RECLAIMER_DELETES_MAX 16u

typedef struct ls_reclaimer_config {
    ls_retention retention;
    int64_t grace_ns; /* orphans younger than this stay */
    int64_t every_ns; /* pause between two rounds; 0: one round only */
    int64_t retry_ns; /* after a failed request or a lost commit, about this, doubling up to 64 times it; at least 1 */
    uint32_t delete_concurrency; /* 1 .. LS_RECLAIMER_DELETES_MAX */
    uint32_t keep_versions;      /* so many newest versions stay; at least 1 */
    bool dry_run;
    bool skip_orphans; /* for small worlds: no list of data objects */
} ls_reclaimer_config;

typedef enum ls_reclaimer_phase {
    LS_RECLAIMER_NEW = 0,
    LS_RECLAIMER_FINDING, /* looks for the newest version */
    LS_RECLAIMER_READING,
    LS_RECLAIMER_CONFIRMING,       /* lists floors above it */
    LS_RECLAIMER_LISTING,          /* first list of checkpoints */
    LS_RECLAIMER_ANNOUNCING,       /* the put of the watermark is out */
    LS_RECLAIMER_LISTING_AGAIN,    /* second list of checkpoints */
    LS_RECLAIMER_DELETING,         /* batches below the bound */
    LS_RECLAIMER_TRIMMING,         /* the put of the trim point is out */
    LS_RECLAIMER_RETIRING,         /* checkpoints */
    LS_RECLAIMER_FLOOR,            /* the put of the floor is out */
    LS_RECLAIMER_LISTING_FLOORS,   /* and deletes the lower ones */
    LS_RECLAIMER_LISTING_VERSIONS, /* and deletes those below the floor */
    LS_RECLAIMER_LISTING_DATA,     /* and deletes orphans */
    LS_RECLAIMER_RESTING,          /* between two rounds */
    LS_RECLAIMER_STOPPED
} ls_reclaimer_phase;

/* What the search for the newest version, done before every commit, is for. */
typedef enum ls_reclaimer_goal { LS_RECLAIMER_BEGIN = 0, LS_RECLAIMER_ANNOUNCE, LS_RECLAIMER_TRIM } ls_reclaimer_goal;

typedef enum ls_reclaimer_end {
    LS_RECLAIMER_RUNNING = 0,
    LS_RECLAIMER_FINISHED,
    LS_RECLAIMER_REFUSED, /* no version, or one without producers and entries: not a lake to delete from */
    LS_RECLAIMER_FAILED   /* the store denied or garbled a request */
} ls_reclaimer_end;

/* One object to be deleted. */
typedef struct ls_deletion {
    ls_delete_report what;
    uint32_t state; /* internal: empty, in flight, to repeat */
} ls_deletion;

/* One listed name. */
typedef struct ls_listed {
    ls_key key;
    uint64_t bytes;
    int64_t age_ns;
    bool named, passed; /* data: by the version known; and by a later sequence of its epoch */
} ls_listed;

typedef struct ls_reclaimer {
    const ls_protocol *protocol; /* borrowed; its floor_check must be set */
    ls_reclaimer_config config;
    const ls_manifest *known;   /* newest version read and confirmed, or on the way to it; one reference */
    const ls_manifest *attempt; /* what the put in flight tries to create; one reference or NULL */
    ls_checkpoint_mark *marks;  /* owned: what the last list showed, ascending by number */
    ls_checkpoint_mark *before; /* owned: what the first list showed and the rule said of it */
    ls_listed *page;            /* owned: one page of versions, floors or data */
    uint64_t mark_count, mark_capacity, before_count;
    uint64_t page_count, page_next, page_capacity;
    ls_deletion deletions[LS_RECLAIMER_DELETES_MAX];
    ls_reclaim_report report; /* of this round */
    ls_search search;
    ls_random random;
    ls_key list_after; /* where the next page begins */
    uint64_t incarnation;
    uint64_t attempt_number;
    uint64_t watermark;     /* W of this round */
    uint64_t bound;         /* B of this round */
    uint64_t trimmed_below; /* the trim point when the bound was chosen */
    uint64_t next_step;     /* batches: the next to delete */
    uint64_t next_mark;     /* checkpoints: the next to look at */
    uint64_t rounds;
    int64_t wake_ns;     /* last wish told to the driver */
    int64_t retry_at_ns; /* when what failed is done again; LS_NEVER_NS: nothing has */
    uint32_t tag;        /* of the request in flight that is no delete */
    uint32_t failures;   /* in a row */
    uint32_t deletes_in_flight, deletes_to_repeat;
    uint8_t phase; /* ls_reclaimer_phase */
    uint8_t goal;  /* ls_reclaimer_goal */
    uint8_t end;   /* ls_reclaimer_end */
    bool awaiting; /* a request that is no delete is in flight */
    bool more;     /* the page was not the last */
    bool stopping;
} ls_reclaimer;

/* incarnation must differ between any two starts of a reclaimer. LS_ERROR_INVALID for values out of range, or a
 * protocol without floor_check: where versions are deleted, everybody must check. */
ls_result ls_reclaimer_init(ls_reclaimer *reclaimer, const ls_protocol *protocol, const ls_reclaimer_config *config,
                            uint64_t incarnation, ls_random random);

/* Events START, TIMER, REPLY, STOP (ends after the requests in flight are answered; FINISHED). Ends by itself with
 * LS_ACTION_FINISHED when every_ns is 0. LS_ERROR_MEMORY: the machine must be given up; nothing is lost. */
ls_result ls_reclaimer_step(ls_reclaimer *reclaimer, const ls_event *event, ls_actions *actions);

/* An independent copy; LS_ERROR_MEMORY leaves *copy zeroed. */
ls_result ls_reclaimer_copy(const ls_reclaimer *reclaimer, ls_reclaimer *copy);
void ls_reclaimer_clear(ls_reclaimer *reclaimer);

/* Why, as a phrase for people: "its step is below every checkpoint that is kept". */
const char *ls_delete_reason_text(ls_delete_reason reason);

/* True for the tag of a delete. */
static inline bool ls_reclaimer_tag_is_delete(uint32_t tag) { return (tag & UINT32_C(0x80000000)) != 0; }

#endif
