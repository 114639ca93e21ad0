/* checkpoint.h - checkpoints: the object, which of them are kept, and the machine that makes one and does not call it
 * done too early.
 *
 * A checkpoint of step s says: everything below s has been consumed and saved, and whoever goes back to it reads again
 * from s on. While it exists no batch of step s or above is deleted. A trainer that wants to go back first makes a
 * checkpoint of kind pin, so that no retention rule takes the data away under its feet.
 *
 * The name of the object (key.h) carries number, step and kind; the content adds what people and ranks want to know.
 * The number is an order (one more than the greatest seen) in its upper half and random in its lower half: checkpoints
 * sort as they were made, and no two makers write one name. So an object of our name is our own, and a name is never
 * used for two contents.
 *
 * The machine: START → list the numbers → put if absent → (doubt: ask whether it is there) → durable → find and read
 * the newest manifest → CHECKPOINTED if its low watermark is at most s, else the object is taken back and GAVE_UP. The
 * argument stands in PROTOCOL.md, section 9.
 */
#ifndef LS_CHECKPOINT_H
#define LS_CHECKPOINT_H

#include "manifest/discovery.h"

/* --- the object (PROTOCOL.md, section 10, tells it byte by byte)
 * ------------------------------------------------------- */

#define LS_CHECKPOINT_HEADER_BYTES   64u
#define LS_CHECKPOINT_NAME_BYTES_MAX 255u
#define LS_CHECKPOINT_RANKS_MAX      1048576u

typedef struct ls_checkpoint {
    uint64_t number;
    uint64_t step; /* distributed minimum: the least of rank_steps */
    ls_checkpoint_kind kind;
    bool pinned; /* no retention rule removes it; true for every kind but auto */
    uint32_t data_ranks;
    uint32_t context_ranks;
    char name[LS_CHECKPOINT_NAME_BYTES_MAX + 1]; /* UTF-8, for people; may be "" */
    uint64_t *rank_steps; /* data_ranks * context_ranks of them, data rank major: the next step of each rank */
} ls_checkpoint;

/* Sets kind, pinned, name and ranks, and step to the least of rank_steps, which are copied. LS_ERROR_INVALID for a name
 * that is too long or holds control characters, no ranks or too many, an unknown kind. ls_checkpoint_clear frees. */
ls_result ls_checkpoint_make(ls_checkpoint *checkpoint, ls_checkpoint_kind kind, const char *name, uint32_t data_ranks,
                             uint32_t context_ranks, const uint64_t *rank_steps, ls_error *error);
void ls_checkpoint_clear(ls_checkpoint *checkpoint);

/* Size of the object that ls_checkpoint_encode writes; it does not depend on the number. */
uint64_t ls_checkpoint_encoded_bytes(const ls_checkpoint *checkpoint);

/* LS_ERROR_INVALID when size is not ls_checkpoint_encoded_bytes. */
ls_result ls_checkpoint_encode(const ls_checkpoint *checkpoint, uint8_t *bytes, size_t size);

/* Decodes an object that was found under the name `key`, which it must agree with. LS_ERROR_CORRUPT, LS_ERROR_VERSION,
 * LS_ERROR_MEMORY; then there is nothing to clear. */
ls_result ls_checkpoint_decode(const uint8_t *bytes, size_t size, const ls_key *key, ls_checkpoint *checkpoint,
                               ls_error *error);

static inline bool ls_checkpoint_is_pinned(uint32_t kind) { return kind != LS_CHECKPOINT_AUTO; }

/* The order of a checkpoint among all that were made, from 1 on. */
static inline uint64_t ls_checkpoint_order(uint64_t number) { return number >> 32; }

/* The number after the greatest one seen (0: none). */
static inline uint64_t ls_checkpoint_next_number(uint64_t greatest, uint32_t random_bits)
{
    return ((greatest >> 32) + 1) << 32 | random_bits;
}

/* --- which are kept
 * --------------------------------------------------------------------------------------------------- */

typedef struct ls_retention {
    uint32_t keep_last;  /* the newest so many unpinned ones; at least 1 */
    uint32_t keep_every; /* also those whose order is a multiple of it; 0: no such rule */
} ls_retention;

/* One listed checkpoint, as far as its name tells. */
typedef struct ls_checkpoint_mark {
    uint64_t number;
    uint64_t step;
    uint32_t kind; /* ls_checkpoint_kind */
    bool kept;
} ls_checkpoint_mark;

/* Sets `kept` of each mark; marks ascend by number. Pinned ones are kept always. Those of a step beyond end_step cannot
 * have been reached by anybody: they are kept too, but do not count as one of the last. Returns the least step of those
 * kept that lie within [trim_step, end_step], or trim_step if there is none: without a checkpoint nothing is deleted.
 */
uint64_t ls_retention_apply(const ls_retention *retention, ls_checkpoint_mark *marks, uint64_t count,
                            uint64_t trim_step, uint64_t end_step);

/* --- the machine that makes one
 * ---------------------------------------------------------------------------------------- */

typedef enum ls_checkpointer_phase {
    LS_CHECKPOINTER_NEW = 0,
    LS_CHECKPOINTER_NUMBERING, /* lists the numbers there are */
    LS_CHECKPOINTER_PUTTING,
    LS_CHECKPOINTER_SETTLING, /* asks whether a doubtful put has landed */
    LS_CHECKPOINTER_FINDING,  /* durable: looks for the newest version */
    LS_CHECKPOINTER_READING,
    LS_CHECKPOINTER_CONFIRMING, /* lists floors above it */
    LS_CHECKPOINTER_RETRACTING, /* too late: takes the object back */
    LS_CHECKPOINTER_STOPPED
} ls_checkpointer_phase;

typedef struct ls_checkpointer_config {
    uint64_t step;
    ls_checkpoint_kind kind;
    uint64_t body_bytes;   /* size of the object; its content is the driver's (the key in the put tells the number) */
    uint64_t after_number; /* a number known to have been used, to shorten the list; 0: none */
    int64_t retry_ns; /* a request that failed is sent again after about this, doubling up to 64 times it; at least 1 */
} ls_checkpointer_config;

typedef struct ls_checkpointer {
    const ls_protocol *protocol; /* borrowed */
    ls_checkpointer_config config;
    const ls_manifest *known; /* one reference */
    ls_search search;
    ls_random random;
    ls_key key;        /* of the object; number 0: none chosen yet */
    uint64_t greatest; /* number listed so far */
    int64_t wake_ns;   /* when the step of the phase is begun again; LS_NEVER_NS: a request is in flight */
    uint32_t tag;      /* of the request in flight */
    uint32_t failures; /* in a row */
    uint8_t phase;     /* ls_checkpointer_phase */
} ls_checkpointer;

/* known: a version to start the search for the newest from (retained), or NULL. LS_ERROR_INVALID for an unknown kind or
 * a retry_ns below 1. */
ls_result ls_checkpointer_init(ls_checkpointer *checkpointer, const ls_protocol *protocol,
                               const ls_checkpointer_config *config, const ls_manifest *known, ls_random random);

/* Events START, TIMER, REPLY. Ends with LS_ACTION_CHECKPOINTED, LS_ACTION_GAVE_UP or LS_ACTION_FAILED. */
ls_result ls_checkpointer_step(ls_checkpointer *checkpointer, const ls_event *event, ls_actions *actions);

/* An independent twin. */
void ls_checkpointer_copy(const ls_checkpointer *checkpointer, ls_checkpointer *copy);
void ls_checkpointer_clear(ls_checkpointer *checkpointer);

/* Fills the request that releases a checkpoint. Its outcome needs no machine: names are used once, so deleting again
 * never hurts. */
void ls_checkpoint_release(const ls_key *key, ls_store_request *request);

#endif
