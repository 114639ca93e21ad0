/* pond.h - a small lake with all four kinds of objects, for tests of machines that list, delete and make checkpoints.
 *
 * The store is an ls_object_table: every request has its effect at once, when the test lets it. A `guest` is a machine
 * with the requests it has sent and nobody has carried out yet; so a test decides who moves when, and may let one die
 * at any point.
 */
#ifndef LS_TEST_POND_H
#define LS_TEST_POND_H

#include "manifest/invariants.h"
#include "manifest/reclaimer.h"
#include "sim/object_table.h"

#define POND_PAGE_MAX   64u
#define POND_LINGERING_MAX 64u
#define GUEST_QUEUE_MAX 32u
#define GUEST_TOLD_MAX  256u

typedef struct pond {
    ls_object_table table;
    ls_protocol protocol;
    ls_invariants checker; /* every version that is created is checked in full */
    int64_t now_ns;
    uint64_t puts, deletes, lists;
    /* The next request of this operation and kind is bent, once: with or without effect, and answered so. */
    bool bend, bend_effect;
    ls_operation bend_operation;
    ls_object_kind bend_kind;
    ls_reply_status bend_status;
    /* What a bent request would have done, when it had no effect, may still happen: then it is kept here. */
    bool bend_lingers;
    ls_store_request lingering[POND_LINGERING_MAX];
    uint32_t lingering_count;
    ls_key page_keys[POND_PAGE_MAX];
    uint64_t page_bytes[POND_PAGE_MAX];
    int64_t page_ages[POND_PAGE_MAX];
} pond;

typedef struct guest {
    pond *home;
    ls_reclaimer *reclaimer; /* one of the two */
    ls_checkpointer *checkpointer;
    ls_store_request queue[GUEST_QUEUE_MAX];
    uint32_t head, tail;
    int64_t wake_ns;
    uint32_t finished, failed, refused, checkpointed, gave_up;
    ls_checkpoint_report checkpoint;
    ls_reclaim_report reclaimed;
    ls_delete_report told[GUEST_TOLD_MAX]; /* dry run */
    uint32_t told_count;
} guest;

/* A protocol with floors; lists of list_limit names. */
void pond_open(pond *p, uint32_t list_limit);
void pond_clear(pond *p);

/* An object there is, made at the pond's time. */
void pond_add(pond *p, ls_key key, uint64_t bytes);
bool pond_has(const pond *p, ls_key key);
uint64_t pond_count(pond *p, ls_object_kind kind);

/* A new version: producer's row gets this epoch and closed, and `batches` more entries of 100 bytes each, whose objects
 * are added; the first has this sequence. Sources count on. */
void pond_commit(pond *p, uint64_t producer, uint32_t epoch, uint64_t first_sequence, uint32_t batches, bool closed);
const ls_manifest *pond_newest(const pond *p);

/* The pond's answer; `reply` points into the pond until the next. A put's manifest is taken. */
void pond_answer(pond *p, const ls_store_request *request, ls_store_reply *reply);

/* A request that lingered takes effect now; nobody hears of it. */
void pond_land(pond *p, uint32_t index);

void guest_start_reclaimer(guest *g, pond *home, ls_reclaimer *reclaimer, const ls_reclaimer_config *config,
                           uint64_t incarnation);
void guest_start_checkpointer(guest *g, pond *home, ls_checkpointer *checkpointer, uint64_t step,
                              ls_checkpoint_kind kind, uint64_t seed);
bool guest_is_done(const guest *g);

/* Carries out the guest's oldest request and hands it the answer, or wakes it when it only waits. False: it is done. */
bool guest_move(guest *g);
void guest_run(guest *g);

/* Bends the answer to the guest's oldest request, if there is one. */
void guest_bend(guest *g, bool effect, bool lingers, ls_reply_status status);

/* The same move while no memory is to be had: what the machine says of it. */
ls_result guest_starve(guest *g);

/* It dies: what it has sent and nobody carried out is forgotten (carry_out: has its effect all the same). */
void guest_die(guest *g, bool carry_out);

#endif
