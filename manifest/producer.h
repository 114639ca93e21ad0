/* producer.h - the producer machine: uploads batches, commits them to the manifest, survives doubt, and stops when fenced.
 *
 * Sans I/O: events in, actions out (manifest/exchange.h). The machine is plain data plus one owned array (its batches) and
 * one reference (the newest manifest it has seen); ls_producer_copy makes an independent twin, so an explorer can branch.
 *
 * Life:   START → find and read the newest manifest → JOIN: commit a row with the next epoch and no batches → take batches
 *         BATCH → upload (put-if-absent) → pending once it and all before it are uploaded → policy says when → attempt
 *         STOP  → commit the rest with the row closed → FINISHED
 * Names under data/ carry the epoch, and an epoch is owned by whoever's commit put it into the row; nothing is uploaded
 * before that, so no two incarnations ever write one name. An established producer (ls_producer_adopt) starts after JOIN.
 *
 * Rules of the commit, stated where they are coded in producer.c: the row is the truth; status codes are hints.
 */
#ifndef LS_PRODUCER_H
#define LS_PRODUCER_H

#include "manifest/discovery.h"

typedef enum ls_producer_phase {
    LS_PRODUCER_NEW = 0,
    LS_PRODUCER_IDLE,     /* no attempt under way; maybe waiting for a planned time */
    LS_PRODUCER_FINDING,  /* looking for the newest version */
    LS_PRODUCER_READING,  /* reading it */
    LS_PRODUCER_HELPING,  /* lists what another producer has uploaded */
    LS_PRODUCER_PUTTING,  /* the conditional put is out */
    LS_PRODUCER_CONFIRMING, /* lists floors above the version just put or read */
    LS_PRODUCER_STOPPED   /* finished, fenced or failed */
} ls_producer_phase;

typedef enum ls_producer_end {
    LS_PRODUCER_RUNNING = 0,
    LS_PRODUCER_FINISHED,
    LS_PRODUCER_FENCED,
    LS_PRODUCER_FAILED
} ls_producer_end;

typedef struct ls_batch {
    int64_t ready_ns;
    uint64_t source_end;
    uint64_t size_bytes;
    uint32_t footer_bytes;
    uint32_t state; /* internal: waiting, uploading, uploaded */
} ls_batch;

/* At most so many batches of others in one commit. */
#define LS_HELPED_MAX 16u

typedef struct ls_help {
    ls_entry entry[LS_HELPED_MAX];
    ls_advance advance[LS_HELPED_MAX]; /* of their rows */
} ls_help;

typedef struct ls_producer {
    const ls_protocol *protocol; /* borrowed; outlives the machine */
    const ls_manifest *known;    /* newest version seen; one reference */
    const ls_manifest *attempt;  /* what the put in flight, or in doubt, tries to create; one reference or NULL */
    ls_batch *batches;           /* ring of capacity 2^n, owned */
    uint64_t producer;
    uint64_t incarnation;
    uint64_t first_sequence;     /* of the oldest batch in the ring */
    uint64_t source_begin;       /* source offset of the oldest batch in the ring */
    uint64_t pending_bytes;
    uint64_t attempts;
    uint64_t settled_attempt;    /* the last attempt that is known to have landed: no news any more */
    uint64_t helped_end;         /* source offset up to which the producer being helped is published, by `known` and `helped` */
    ls_help *help;               /* what the put that comes does for others; NULL until it helps for the first time */
    uint64_t attempt_number;     /* of the last put: the low half of its commit id */
    uint64_t doubtful_version;   /* a put of this version may still land; 0: none */
    uint64_t versions_passed;
    ls_search search;
    int64_t sight_gap_ns;
    int64_t last_sight_ns;
    int64_t planned_ns;
    int64_t upload_retry_ns;
    int64_t wake_ns;             /* last wish told to the driver */
    int64_t start_ns, read_end_ns, attempt_ns, read_ns, put_ns;
    int64_t retry_after_ns;
    uint32_t epoch;
    uint32_t slot;
    uint32_t ring_capacity;
    uint32_t ring_count;         /* batches in the ring */
    uint32_t ready_count;        /* of those, the leading ones that are uploaded */
    uint32_t uploads_started;    /* leading ones whose upload has been started at least once */
    uint32_t uploads_in_flight;
    uint32_t uploads_to_repeat;  /* failed uploads that wait for their time */
    uint32_t upload_failures;
    uint32_t batch_limit;
    uint32_t helped_count, advance_count;
    uint32_t help_slot;          /* of the producer being helped; they take turns */
    uint32_t helps_left;         /* lists that this attempt may still ask for */
    uint32_t attempt_batches;
    uint32_t losses_in_row, throttles_in_row;
    uint32_t tag;                /* of the commit-side request in flight */
    uint32_t gave_up;
    uint8_t phase;               /* ls_producer_phase */
    uint8_t end;                 /* ls_producer_end */
    bool joined, stopping, settling;
    bool confirms_put;           /* confirming: our own put (else a version that was read) */
    ls_random random;            /* the policy's stream */
    _Alignas(8) unsigned char policy_state[LS_POLICY_STATE_BYTES];
} ls_producer;

/* A new machine that has not started. incarnation must differ between any two starts of one producer id (128 random bits
 * are not needed: 64 suffice against accident); random is the policy's stream. */
void ls_producer_init(ls_producer *producer, const ls_protocol *protocol, uint64_t id, uint64_t incarnation, ls_random random);

/* Starts it as the owner of a row that `manifest` (retained) already shows, as if it had joined. LS_ERROR_INVALID when the slot's
 * row is another producer's or closed. */
ls_result ls_producer_adopt(ls_producer *producer, const ls_manifest *manifest, uint32_t slot, int64_t now_ns);

/* Feeds one event and collects the actions. LS_ERROR_MEMORY: the machine must be given up (nothing is lost: its row tells
 * the next incarnation where to go on). LS_ERROR_INVALID: an event that makes no sense now (a batch without room or before JOINED). */
ls_result ls_producer_step(ls_producer *producer, const ls_event *event, ls_actions *actions);

/* True when an LS_EVENT_BATCH is welcome. */
bool ls_producer_has_room(const ls_producer *producer);

/* True while an attempt (or the settling of one) is under way. */
bool ls_producer_is_committing(const ls_producer *producer);

/* When a batch named by an LS_ACTION_PUBLISHED (by its sequence) became ready. Valid only until the next step. */
int64_t ls_producer_ready_ns(const ls_producer *producer, uint64_t sequence);

/* The source offsets [*begin, *end) of a batch that is still in the machine; false when it is not. */
bool ls_producer_source_range(const ls_producer *producer, uint64_t sequence, uint64_t *begin, uint64_t *end);

/* An independent copy; LS_ERROR_MEMORY leaves *copy zeroed. */
ls_result ls_producer_copy(const ls_producer *producer, ls_producer *copy);

/* Releases what the machine owns. Requests it sent may still be answered: the driver drops those replies. */
void ls_producer_clear(ls_producer *producer);

/* True for the tag of an upload request (its reply belongs to sequence tag & 0x7fffffff, modulo 2^31). */
static inline bool ls_producer_tag_is_upload(uint32_t tag)
{
    return (tag & UINT32_C(0x80000000)) != 0;
}

#endif
