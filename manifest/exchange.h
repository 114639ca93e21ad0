/* exchange.h - what machines and their drivers say to each other: store requests and replies, events in, actions out.
 *
 * A machine (producer, consumer, reclaimer) is a plain struct and a step function: one ls_event goes in, a few
 * ls_actions come out. The driver (simulator, real-time loop, explorer) carries the actions out and answers with further
 * events. Time is whatever the driver says: int64 nanoseconds since a start of its own choosing.
 *
 * A request names its object by ls_key. A manifest travels as a reference to the immutable struct: the simulator passes
 * the pointer and charges the encoded size, the real-time loop encodes and decodes. Data bodies belong to the driver: the
 * machine knows only their sizes.
 */
#ifndef LS_EXCHANGE_H
#define LS_EXCHANGE_H

#include "manifest/key.h"
#include "manifest/manifest.h"

typedef enum ls_operation { LS_GET = 1, LS_PUT, LS_HEAD, LS_DELETE, LS_LIST } ls_operation;

/* The closed set of answers of any store. */
typedef enum ls_reply_status {
    LS_REPLY_OK = 0,
    LS_REPLY_EXISTS,          /* put-if-absent: an object of that name exists (412). A hint: it may be our own */
    LS_REPLY_NOT_FOUND,       /* get, head: no such object */
    LS_REPLY_CONFLICT_RETRY,  /* put-if-absent: undecided under race (409); nothing is known */
    LS_REPLY_THROTTLED,       /* refused before effect for load (429, 503); retry_after_ns may say when */
    LS_REPLY_UNAVAILABLE,     /* certainly not carried out (connection refused, say) */
    LS_REPLY_UNKNOWN_OUTCOME, /* time-out, 5xx, connection lost after sending: done or not, now or later */
    LS_REPLY_DENIED,          /* credentials or permission; trying again cannot help */
    LS_REPLY_INVALID          /* the request or the answer makes no sense; trying again cannot help */
} ls_reply_status;

const char *ls_operation_name(ls_operation operation);
const char *ls_reply_status_name(ls_reply_status status);

typedef enum ls_range_kind { LS_RANGE_WHOLE = 0, LS_RANGE_SUFFIX, LS_RANGE_SPAN } ls_range_kind;

/* Where one rank's part of a TGB lies, and what it must hash to. */
typedef struct ls_slice {
    uint32_t data_rank;
    uint32_t context_rank;
    uint64_t offset;
    uint64_t bytes;
    uint32_t crc32c;
} ls_slice;

typedef struct ls_store_request {
    ls_operation operation;
    bool if_absent;              /* put only when no object of that name exists */
    bool for_slice;              /* get of data, whole: for the sake of `slice`, which the driver finds, checks and hands on */
    ls_range_kind range;         /* get */
    uint32_t tag;                /* the machine's own; echoed in the reply */
    uint32_t list_limit;         /* list: at most so many keys */
    bool list_names;             /* list: the answer names every key, not only how many there are and the greatest */
    ls_key key;                  /* list: keys of this kind after this one */
    uint64_t range_offset;       /* get, span: first byte */
    uint64_t range_bytes;        /* get, span or suffix: how many */
    uint64_t body_bytes;         /* put: size of the object */
    const ls_manifest *manifest; /* put of a manifest: its content; one reference that passes to the driver */
    const ls_manifest *known;    /* suffix get of a manifest: what the reader has; borrowed until the reply */
    ls_slice slice;              /* get of data: which rank's slice is meant (d, c); span reads: also its checksum */
} ls_store_request;

typedef struct ls_store_reply {
    ls_reply_status status;
    uint32_t tag;
    const ls_manifest *manifest; /* get of a manifest: one reference that passes to the machine; NULL when the suffix was short */
    uint64_t object_bytes;       /* get, head: size of the whole object */
    uint64_t moved_bytes;        /* get: bytes of the object that this answer carried */
    uint64_t needed_bytes;       /* get of a suffix that was too short: the length that suffices */
    ls_slice slice;              /* get of a TGB's footer by suffix, or of a whole TGB for a slice: where the slice asked for lies (the driver decodes) */
    uint64_t list_count;         /* list: keys in this answer */
    ls_key list_last;            /* list: the greatest key of this answer (list_count > 0) */
    bool list_truncated;         /* list: there may be more after list_last */
    const ls_key *list_keys;     /* list that asked for names: list_count of them, in the store's order; borrowed */
    const uint64_t *list_bytes;  /* their objects' sizes; borrowed */
    const int64_t *list_ages_ns; /* how long ago the objects were made, as far as the store's clock tells; borrowed */
    int64_t retry_after_ns;      /* throttled: the store's wish, 0 if none */
} ls_store_reply;

typedef enum ls_event_kind {
    LS_EVENT_START = 1, /* first event of a machine */
    LS_EVENT_BATCH,     /* a batch is ready to be uploaded */
    LS_EVENT_TIMER,     /* the time of the last LS_ACTION_WAKE has come (late or spurious timers are harmless) */
    LS_EVENT_REPLY,     /* the store answered */
    LS_EVENT_GO,        /* producer: try to commit now if anything is pending, whatever was planned (the oracle's word);
                           consumer on demand: one more step is wanted */
    LS_EVENT_STOP       /* produce no more: commit what is pending, close the row, finish */
} ls_event_kind;

typedef struct ls_event {
    ls_event_kind kind;
    int64_t now_ns;
    uint64_t batch_bytes;         /* batch: size of the TGB object */
    uint64_t batch_source_count;  /* batch: source offsets it consumes, at least 1 */
    uint32_t batch_footer_bytes;  /* batch: length of its footer */
    const ls_store_reply *reply;  /* reply: borrowed during the step */
} ls_event;

typedef enum ls_action_kind {
    LS_ACTION_REQUEST = 1, /* send this request */
    LS_ACTION_WAKE,        /* deliver LS_EVENT_TIMER at wake_ns; replaces the previous wish (LS_NEVER_NS: none) */
    LS_ACTION_PUBLISHED,   /* batches became visible and are acknowledged: sequence range, oldest ready time */
    LS_ACTION_ATTEMPT,     /* a commit attempt ended (statistics) */
    LS_ACTION_JOINED,      /* the producer owns its epoch; batches are taken from source offset `source_offset` */
    LS_ACTION_FENCED,      /* another incarnation owns the row: the machine has stopped */
    LS_ACTION_FAILED,      /* the store denied or garbled a request: the machine has stopped */
    LS_ACTION_FINISHED,    /* after LS_EVENT_STOP: everything is committed and the row closed */
    LS_ACTION_STEP,        /* consumer: the slice of the next step is here and verified, in step order */
    LS_ACTION_BEHIND,      /* consumer: the next step has been reclaimed; the machine has stopped */
    LS_ACTION_CHECKPOINTED, /* checkpointer: durable, and no step from there on will be deleted; the machine has stopped */
    LS_ACTION_GAVE_UP,     /* checkpointer: that step is no longer, or not yet, there; the machine has stopped */
    LS_ACTION_WOULD_DELETE, /* reclaimer, dry run: this object, for this reason */
    LS_ACTION_RECLAIMED,   /* reclaimer: a round is over */
    LS_ACTION_REFUSED      /* reclaimer: this is no lake to delete from; the machine has stopped */
} ls_action_kind;

typedef enum ls_attempt_outcome {
    LS_ATTEMPT_WON = 1,
    LS_ATTEMPT_LOST,      /* someone else holds the version */
    LS_ATTEMPT_THROTTLED, /* refused for load; no conflict */
    LS_ATTEMPT_ABORTED,   /* the read failed, or the put had no effect as far as can be read now */
    LS_ATTEMPT_PROVED,    /* a later read proved that an attempt reported as lost or aborted had won */
    LS_ATTEMPT_HELPED     /* called off after the read: others have published all that was pending */
} ls_attempt_outcome;

typedef struct ls_attempt_report {
    ls_attempt_outcome outcome;
    bool was_ambiguous; /* settled only by reading */
    uint64_t version;   /* the version it tried for */
    uint32_t batches;   /* carried */
    int64_t start_ns;
    int64_t read_ns;    /* duration of finding and reading the newest version */
    int64_t put_ns;     /* duration of the put until its reply */
} ls_attempt_report;

typedef struct ls_published_report {
    uint64_t version;
    uint64_t first_sequence;
    uint32_t count;
    uint64_t bytes;
    uint64_t source_end;
} ls_published_report;

typedef struct ls_step_report {
    uint64_t step;
    ls_entry entry;
    ls_slice slice;
    int64_t asked_ns; /* when its first request was sent */
    int64_t ready_ns; /* when the slice was here */
} ls_step_report;

typedef struct ls_checkpoint_report {
    ls_key key;             /* of the checkpoint object */
    uint64_t low_watermark; /* of the version read after it was durable; gave up: above the step */
    uint64_t end_step;      /* of that version; gave up: below the step */
} ls_checkpoint_report;

typedef enum ls_delete_reason {
    LS_DELETE_BATCH = 1,  /* committed, its step below every checkpoint that is kept */
    LS_DELETE_ORPHAN,     /* uploaded, named by no version, and it can be committed no more */
    LS_DELETE_CHECKPOINT, /* not kept by the retention rule */
    LS_DELETE_VOID_CHECKPOINT, /* of a step that is trimmed already */
    LS_DELETE_VERSION,    /* below the floor */
    LS_DELETE_FLOOR       /* below a higher floor */
} ls_delete_reason;

#define LS_DELETE_REASONS 7u /* ls_delete_reason indexes 1 .. 6 */

typedef struct ls_delete_report {
    ls_key key;
    ls_delete_reason reason;
    uint64_t bytes; /* batches and what was listed; 0: not known */
    uint64_t step;  /* batches */
} ls_delete_report;

typedef struct ls_reclaim_report {
    uint64_t low_watermark; /* announced */
    uint64_t bound;         /* batches below this step are deleted */
    uint64_t floor;
    uint64_t deleted[LS_DELETE_REASONS]; /* objects in this round, by ls_delete_reason; dry run: that would be */
    uint64_t bytes[LS_DELETE_REASONS];
} ls_reclaim_report;

typedef struct ls_action {
    ls_action_kind kind;
    union {
        ls_store_request request;
        int64_t wake_ns;
        ls_attempt_report attempt;
        ls_published_report published;
        uint64_t source_offset;
        ls_step_report step;
        ls_checkpoint_report checkpoint;
        ls_delete_report would_delete;
        ls_reclaim_report reclaimed;
    };
} ls_action;

#define LS_ACTIONS_MAX 8
typedef struct ls_actions {
    uint32_t count;
    ls_action item[LS_ACTIONS_MAX];
} ls_actions;

#endif
