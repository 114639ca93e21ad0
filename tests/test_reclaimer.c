/* test_reclaimer.c - what goes and what stays, by hand; two reclaimers, dying ones, rewinds at every moment, late
 * winners. */
#include "tests/pond.h"
#include "tests/suite.h"

#include <string.h>

#define NUMBER(order) ((uint64_t)(order) << 32 | 7)
#define SECOND_NS     LS_NANOSECONDS_PER_SECOND

static ls_reclaimer_config usual(void)
{
    return (ls_reclaimer_config){
        .retention = {.keep_last = 1}, .retry_ns = 1000, .delete_concurrency = 3, .keep_versions = 1};
}

/* Steps 0 .. 11 of one producer in versions 1 .. 3. */
static void open_twelve(pond *p)
{
    pond_open(p, 4);
    for (uint32_t i = 0; i < 3; i++) pond_commit(p, 1, 1, 4 * i, 4, false);
}

static void add_checkpoint(pond *p, uint64_t order, uint64_t step, ls_checkpoint_kind kind)
{
    pond_add(p, ls_key_checkpoint(NUMBER(order), step, kind), 72);
}

static bool has_step(const pond *p, uint64_t step)
{
    return pond_has(p, ls_key_data(1, 1, step)); /* in these lakes sequence and step agree */
}

/* Batches of steps below `first` are gone, the others there. */
static void check_batches(const pond *p, uint64_t first, uint64_t end)
{
    for (uint64_t step = 0; step < end; step++) CU_ASSERT_EQUAL(has_step(p, step), step >= first);
}

static guest reclaim(pond *p, const ls_reclaimer_config *config, uint64_t incarnation)
{
    guest g;
    ls_reclaimer machine;
    guest_start_reclaimer(&g, p, &machine, config, incarnation);
    guest_run(&g);
    guest_die(&g, false);
    return g;
}

static void test_one_round(void)
{
    pond p;
    open_twelve(&p);
    add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
    ls_reclaimer_config config = usual();
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.finished, 1);
    check_batches(&p, 8, 12);
    CU_ASSERT_EQUAL(ls_manifest_version(pond_newest(&p)), 5); /* one to announce, one to trim */
    CU_ASSERT_EQUAL(ls_manifest_low_watermark(pond_newest(&p)), 8);
    CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), 8);
    CU_ASSERT_EQUAL(ls_manifest_end_step(pond_newest(&p)), 12);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_MANIFEST), 1);
    CU_ASSERT_TRUE(pond_has(&p, ls_key_manifest(5)));
    CU_ASSERT_TRUE(pond_has(&p, ls_key_floor(5)));
    CU_ASSERT_FALSE(pond_has(&p, ls_key_checkpoint(NUMBER(1), 4, LS_CHECKPOINT_AUTO)));
    CU_ASSERT_TRUE(pond_has(&p, ls_key_checkpoint(NUMBER(2), 8, LS_CHECKPOINT_AUTO)));
    CU_ASSERT_EQUAL(g.reclaimed.low_watermark, 8);
    CU_ASSERT_EQUAL(g.reclaimed.bound, 8);
    CU_ASSERT_EQUAL(g.reclaimed.floor, 5);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_BATCH], 8);
    CU_ASSERT_EQUAL(g.reclaimed.bytes[LS_DELETE_BATCH], 800);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_CHECKPOINT], 1);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_VERSION], 4);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_FLOOR], 0);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_ORPHAN], 0);

    uint64_t puts = p.puts, deletes = p.deletes; /* nothing is left to do: no commit, only the floor is written again */
    g = reclaim(&p, &config, 8);
    CU_ASSERT_EQUAL(g.finished, 1);
    CU_ASSERT_EQUAL(p.puts - puts, 1);
    CU_ASSERT_EQUAL(p.deletes, deletes);

    add_checkpoint(&p, 3, 11, LS_CHECKPOINT_AUTO);
    g = reclaim(&p, &config, 9);
    check_batches(&p, 11, 12);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_FLOOR], 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_FLOOR), 1);
    pond_commit(&p, 1, 1, 12, 2, false); /* life goes on: numbers are not used again */
    CU_ASSERT_EQUAL(ls_manifest_end_step(pond_newest(&p)), 14);
    pond_clear(&p);
}

/* Which watermark, bound and batches a set of checkpoints gives. */
static void check_bound(ls_retention retention, uint64_t pin, uint64_t bound)
{
    pond p;
    open_twelve(&p);
    add_checkpoint(&p, 1, 2, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 2, 5, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 3, 9, LS_CHECKPOINT_AUTO);
    if (pin != UINT64_MAX) add_checkpoint(&p, 4, pin, LS_CHECKPOINT_PIN);
    ls_reclaimer_config config = usual();
    config.retention = retention;
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.reclaimed.bound, bound);
    CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), bound);
    check_batches(&p, bound, 12);
    pond_clear(&p);
}

static void test_bounds_by_hand(void)
{
    check_bound((ls_retention){1, 0}, UINT64_MAX, 9);
    check_bound((ls_retention){2, 0}, UINT64_MAX, 5);
    check_bound((ls_retention){3, 0}, UINT64_MAX, 2);
    check_bound((ls_retention){1, 2}, UINT64_MAX, 5); /* the second is kept for ever */
    check_bound((ls_retention){1, 0}, 0, 0);
    check_bound((ls_retention){1, 0}, 3, 3);
    check_bound((ls_retention){1, 0}, 12, 9);
    check_bound((ls_retention){1, 0}, 13, 9); /* of a step nobody has reached */
}

static void test_without_checkpoints(void)
{
    pond p;
    open_twelve(&p);
    ls_reclaimer_config config = usual();
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.finished, 1);
    check_batches(&p, 0, 12);
    CU_ASSERT_EQUAL(ls_manifest_version(pond_newest(&p)), 3);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_MANIFEST), 1); /* old versions go all the same */
    pond_clear(&p);
}

/* Everything at once: a checkpoint at the end leaves no entry, and the lake goes on. */
static void test_all_reclaimed(void)
{
    pond p;
    open_twelve(&p);
    add_checkpoint(&p, 1, 12, LS_CHECKPOINT_AUTO);
    ls_reclaimer_config config = usual();
    config.delete_concurrency = LS_RECLAIMER_DELETES_MAX;
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.finished, 1);
    check_batches(&p, 12, 12);
    CU_ASSERT_EQUAL(ls_manifest_entry_count(pond_newest(&p)), 0);
    pond_commit(&p, 1, 1, 12, 1, false);
    CU_ASSERT_EQUAL(ls_manifest_end_step(pond_newest(&p)), 13);
    pond_clear(&p);
}

static void test_refused(void)
{
    pond p;
    ls_reclaimer_config config = usual();
    pond_open(&p, 4);
    pond_add(&p, ls_key_data(1, 1, 0),
             100); /* objects, but no version: the prefix is wrong, or the versions are lost */
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.refused, 1);
    CU_ASSERT_EQUAL(p.deletes + p.puts, 0);
    ls_manifest *empty = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(pond_newest(&p), (ls_commit_id){1, 1}, 0, 0, &empty), LS_OK);
    ls_store_request put = {.operation = LS_PUT, .if_absent = true, .key = ls_key_manifest(1), .manifest = empty};
    ls_store_reply reply;
    pond_answer(&p, &put, &reply);
    g = reclaim(&p, &config, 7); /* a version without a single producer */
    CU_ASSERT_EQUAL(g.refused, 1);
    CU_ASSERT_EQUAL(p.deletes, 0);
    pond_clear(&p);
}

/* --- orphans
 * ----------------------------------------------------------------------------------------------------------------- */

static void test_orphans(void)
{
    pond p;
    open_twelve(&p);                    /* producer 1: epoch 1, sequences 0 .. 11, still at it */
    pond_commit(&p, 2, 1, 0, 2, false); /* producer 2: epoch 1 committed 0 and 1 ... */
    pond_commit(&p, 2, 2, 0, 0, false); /* ... and was fenced by epoch 2, which has committed nothing yet */
    pond_commit(&p, 3, 1, 0, 1, true);  /* producer 3: finished */
    pond_commit(&p, 4, 3, 5, 1, false); /* producer 4: epoch 3 has committed sequence 5 */
    static const struct {
        uint64_t producer;
        uint32_t epoch;
        uint64_t sequence;
        bool goes;
    } cases[] = {{1, 1, 12, false}, /* uploaded, not yet committed */
                 {1, 2, 0, false},  /* of an epoch that our version does not know yet */
                 {2, 1, 2, true},   /* fenced */
                 {2, 2, 0, false},  /* live */
                 {3, 1, 1, true},   /* the row is closed */
                 {3, 2, 0, false},  /* reopened since we read */
                 {4, 3, 4, true},   /* the row has passed it */
                 {4, 3, 0, true},   {4, 3, 6, false},
                 {4, 2, 9, true},   {9, 1, 0, false}}; /* a producer that has no row yet */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pond_add(&p, ls_key_data(cases[i].producer, cases[i].epoch, cases[i].sequence), 55);
    }
    ls_reclaimer_config config = usual();
    config.grace_ns = 10 * SECOND_NS;
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_ORPHAN], 0); /* all too young */
    p.now_ns += 9 * SECOND_NS;
    pond_add(&p, ls_key_data(2, 1, 3), 55);
    p.now_ns += 1 * SECOND_NS;
    g = reclaim(&p, &config, 8);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_ORPHAN], 5);
    CU_ASSERT_EQUAL(g.reclaimed.bytes[LS_DELETE_ORPHAN], 275);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_key key = ls_key_data(cases[i].producer, cases[i].epoch, cases[i].sequence);
        CU_ASSERT_EQUAL(pond_has(&p, key), !cases[i].goes);
    }
    CU_ASSERT_TRUE(pond_has(&p, ls_key_data(2, 1, 3))); /* a second old */
    check_batches(&p, 0, 12);
    CU_ASSERT_TRUE(pond_has(&p, ls_key_data(2, 1, 0)) && pond_has(&p, ls_key_data(2, 1, 1)));
    CU_ASSERT_TRUE(pond_has(&p, ls_key_data(4, 3, 5)) && pond_has(&p, ls_key_data(3, 1, 0)));
    pond_clear(&p);
}

/* --- dry run
 * ------------------------------------------------------------------------------------------------------------------ */

static void test_dry_run(void)
{
    pond p;
    open_twelve(&p);
    pond_commit(&p, 1, 2, 0, 0, false);
    pond_add(&p, ls_key_data(1, 1, 12), 55);
    pond_add(&p, ls_key_floor(2), 0);
    add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
    ls_reclaimer_config config = usual();
    config.dry_run = true;
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.finished, 1);
    CU_ASSERT_EQUAL(p.puts + p.deletes, 0);
    CU_ASSERT_EQUAL(g.told_count, 8 + 1 + 1 + 3 + 1);
    for (uint32_t i = 0; i < 8; i++) {
        ls_key key = ls_key_data(1, 1, i);
        CU_ASSERT_EQUAL(g.told[i].reason, LS_DELETE_BATCH);
        CU_ASSERT_EQUAL(g.told[i].step, i);
        CU_ASSERT_EQUAL(g.told[i].bytes, 100);
        CU_ASSERT_EQUAL(ls_key_compare(&g.told[i].key, &key), 0);
    }
    CU_ASSERT_EQUAL(g.told[8].reason, LS_DELETE_CHECKPOINT);
    CU_ASSERT_EQUAL(g.told[8].key.sequence, 4);
    CU_ASSERT_EQUAL(g.told[9].reason, LS_DELETE_FLOOR);
    for (uint32_t i = 10; i < 13; i++) CU_ASSERT_EQUAL(g.told[i].reason, LS_DELETE_VERSION);
    CU_ASSERT_EQUAL(g.told[13].reason, LS_DELETE_ORPHAN);
    CU_ASSERT_EQUAL(g.told[13].key.sequence, 12);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_BATCH], 8);
    config.dry_run = false;
    guest real =
        reclaim(&p, &config, 8); /* and the real one deletes what the dry one said, and the version it made itself */
    CU_ASSERT_EQUAL(real.reclaimed.deleted[LS_DELETE_BATCH], 8);
    CU_ASSERT_EQUAL(real.reclaimed.deleted[LS_DELETE_ORPHAN], 1);
    CU_ASSERT_EQUAL(real.reclaimed.deleted[LS_DELETE_VERSION], 5);
    pond_clear(&p);
}

/* --- trouble
 * -------------------------------------------------------------------------------------------------------------------
 */

static void check_bent(ls_operation operation, ls_object_kind kind, bool effect, ls_reply_status status)
{
    pond p;
    open_twelve(&p);
    pond_commit(&p, 1, 2, 0, 0, false);
    pond_add(&p, ls_key_data(1, 1, 12), 55);
    pond_add(&p, ls_key_floor(1), 0);
    add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
    p.bend = true;
    p.bend_operation = operation;
    p.bend_kind = kind;
    p.bend_effect = effect;
    p.bend_status = status;
    ls_reclaimer_config config = usual();
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_FALSE(p.bend);
    CU_ASSERT_EQUAL(g.finished, 1);
    check_batches(&p, 8, 12);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_DATA), 4);
    CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), 8);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_MANIFEST), 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_FLOOR), 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 1);
    pond_clear(&p);
}

static void test_doubt(void)
{
    static const ls_reply_status statuses[] = {LS_REPLY_UNKNOWN_OUTCOME, LS_REPLY_THROTTLED, LS_REPLY_UNAVAILABLE};
    for (size_t i = 0; i < 3; i++) {
        for (ls_object_kind kind = LS_OBJECT_DATA; kind <= LS_OBJECT_FLOOR; kind++) {
            check_bent(LS_LIST, kind, false, statuses[i]);
            check_bent(LS_DELETE, kind, i == 0, statuses[i]);
            check_bent(LS_DELETE, kind, false, statuses[i]);
        }
        check_bent(LS_PUT, LS_OBJECT_MANIFEST, false, statuses[i]);
        check_bent(LS_PUT, LS_OBJECT_FLOOR, false, statuses[i]);
        check_bent(LS_GET, LS_OBJECT_MANIFEST, false, statuses[i]);
        check_bent(LS_HEAD, LS_OBJECT_MANIFEST, false, statuses[i]);
    }
    check_bent(LS_PUT, LS_OBJECT_MANIFEST, true, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_PUT, LS_OBJECT_MANIFEST, true, LS_REPLY_EXISTS);
    check_bent(LS_PUT, LS_OBJECT_MANIFEST, false, LS_REPLY_CONFLICT_RETRY);
    check_bent(LS_PUT, LS_OBJECT_FLOOR, true, LS_REPLY_EXISTS);
    check_bent(LS_GET, LS_OBJECT_MANIFEST, false, LS_REPLY_NOT_FOUND);
    check_bent(LS_DELETE, LS_OBJECT_DATA, true, LS_REPLY_NOT_FOUND);
}

static void test_denied(void)
{
    pond p;
    open_twelve(&p);
    add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
    p.bend = true;
    p.bend_operation = LS_DELETE;
    p.bend_kind = LS_OBJECT_DATA;
    p.bend_status = LS_REPLY_DENIED;
    ls_reclaimer_config config = usual();
    guest g = reclaim(&p, &config, 7);
    CU_ASSERT_EQUAL(g.failed, 1);
    CU_ASSERT_EQUAL(g.finished, 0);
    CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), 0); /* no trim hides what was not deleted */
    pond_clear(&p);
}

/* A producer commits while the reclaimer is at it, at every moment: both win in the end, whoever comes first. */
static void test_commits_in_between(void)
{
    for (uint32_t moves = 0; moves < 60; moves++) {
        pond p;
        guest g;
        ls_reclaimer machine;
        open_twelve(&p);
        add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        for (uint32_t i = 0; i < moves && guest_move(&g); i++) continue;
        pond_commit(&p, 1, 1, 12, 4, false);
        guest_run(&g);
        CU_ASSERT_EQUAL(g.finished, 1);
        check_batches(&p, 8, 16);
        CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), 8);
        CU_ASSERT_EQUAL(ls_manifest_end_step(pond_newest(&p)), 16);
        guest_die(&g, false);
        pond_clear(&p);
    }
}

/* It dies after each of its moves, with what it has just sent carried out or not; a fresh one finishes. */
static void test_death_anywhere(void)
{
    for (uint32_t variant = 0; variant < 200; variant++) {
        pond p;
        guest g;
        ls_reclaimer machine;
        open_twelve(&p);
        pond_commit(&p, 1, 2, 0, 0, false);
        pond_add(&p, ls_key_data(1, 1, 12), 55);
        add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
        add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        for (uint32_t i = 0; i < variant / 2 && guest_move(&g); i++) continue;
        guest_die(&g, variant % 2 == 1);
        for (uint64_t step = 8; step < 12; step++) CU_ASSERT_TRUE(has_step(&p, step));
        guest second = reclaim(&p, &config, 8);
        CU_ASSERT_EQUAL(second.finished, 1);
        check_batches(&p, 8, 12);
        CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_DATA), 4);
        CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_MANIFEST), 1);
        CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_FLOOR), 1);
        CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 1);
        CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), 8);
        pond_clear(&p);
    }
}

/* Nothing at or above an acknowledged checkpoint is ever missing. */
static void check_kept(const pond *p, const guest *g)
{
    if (g->checkpointed == 0) return;
    CU_ASSERT_TRUE(ls_manifest_trim_step(pond_newest(p)) <= g->checkpoint.key.sequence);
    for (uint64_t step = g->checkpoint.key.sequence; step < 12; step++) CU_ASSERT_TRUE(has_step(p, step));
}

/* Two reclaimers of different rules, and a rewind to step 4, in 3000 random orders. */
static void test_two_reclaimers_and_a_rewind(void)
{
    uint32_t pinned = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        pond p;
        guest guests[3];
        ls_reclaimer machines[2];
        ls_checkpointer pin;
        ls_random random = ls_random_open(seed, 0, LS_RANDOM_TEST, 2);
        ls_reclaimer_config config = usual(), other = usual();
        other.retention.keep_last = 2;
        open_twelve(&p);
        add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
        add_checkpoint(&p, 2, 6, LS_CHECKPOINT_AUTO);
        add_checkpoint(&p, 3, 8, LS_CHECKPOINT_AUTO);
        guest_start_reclaimer(&guests[0], &p, &machines[0], &config, 2 * seed);
        guest_start_reclaimer(&guests[1], &p, &machines[1], &other, 2 * seed + 1);
        guest_start_checkpointer(&guests[2], &p, &pin, 4, LS_CHECKPOINT_PIN, seed);
        uint64_t patience = ls_random_below(&random, 40); /* of the rewind, before it begins */
        for (uint32_t moves = 0; !(guest_is_done(&guests[0]) && guest_is_done(&guests[1]) && guest_is_done(&guests[2]));
             moves++) {
            CU_ASSERT_FATAL(moves < 10000);
            uint64_t who = ls_random_below(&random, moves < patience ? 2 : 3);
            guest_move(&guests[who]);
            check_kept(&p, &guests[2]);
        }
        CU_ASSERT_EQUAL(guests[0].finished + guests[1].finished, 2);
        CU_ASSERT_EQUAL(guests[2].checkpointed + guests[2].gave_up, 1);
        pinned += guests[2].checkpointed;
        refused += guests[2].gave_up;
        for (uint32_t i = 0; i < 3; i++) guest_die(&guests[i], false);
        ls_reclaimer_config last = usual();
        guest final = reclaim(&p, &last, 999); /* whatever is left over, one more round clears it */
        CU_ASSERT_EQUAL(final.reclaimed.bound, guests[2].checkpointed == 1 ? 4 : 8);
        check_kept(&p, &guests[2]);
        pond_clear(&p);
    }
    CU_ASSERT_TRUE(pinned > 300 && refused > 300); /* both orders were seen */
}

/* Everything at once, 3000 times: the same three, a producer that commits, answers that are lost with or without effect, and requests
 * that have no effect now but at any later time, deletes and puts of all kinds. Nothing acknowledged is ever missing; and when the storm is
 * over, a last round leaves what is needed and nothing else. */
static void weather_storm(uint64_t seed, uint32_t *pinned)
{
    pond p;
    guest guests[3];
    ls_reclaimer machines[2];
    ls_checkpointer pin;
    ls_random random = ls_random_open(seed, 1, LS_RANDOM_TEST, 2);
    ls_reclaimer_config config = usual(), other = usual();
    other.retention.keep_last = 2;
    open_twelve(&p);
    add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 2, 6, LS_CHECKPOINT_AUTO);
    add_checkpoint(&p, 3, 8, LS_CHECKPOINT_AUTO);
    guest_start_reclaimer(&guests[0], &p, &machines[0], &config, 2 * seed);
    guest_start_reclaimer(&guests[1], &p, &machines[1], &other, 2 * seed + 1);
    guest_start_checkpointer(&guests[2], &p, &pin, 4, LS_CHECKPOINT_PIN, seed);
    uint64_t patience = ls_random_below(&random, 40), end = 12;
    for (uint32_t moves = 0; !(guest_is_done(&guests[0]) && guest_is_done(&guests[1]) && guest_is_done(&guests[2])); moves++) {
        CU_ASSERT_FATAL(moves < 10000);
        guest *who = &guests[ls_random_below(&random, moves < patience ? 2 : 3)];
        uint64_t luck = ls_random_below(&random, 40);
        if (luck < 4) guest_bend(who, luck == 0, luck > 1, LS_REPLY_UNKNOWN_OUTCOME);
        guest_move(who);
        if (luck >= 37 && p.lingering_count > 0) pond_land(&p, (uint32_t)ls_random_below(&random, p.lingering_count));
        if (luck == 20 && end < 24) {
            pond_commit(&p, 1, 1, end, 4, false);
            end += 4;
        }
        check_kept(&p, &guests[2]);
    }
    while (p.lingering_count > 0) pond_land(&p, p.lingering_count - 1);
    check_kept(&p, &guests[2]);
    *pinned += guests[2].checkpointed;
    for (uint32_t i = 0; i < 3; i++) guest_die(&guests[i], false);
    guest last = reclaim(&p, &config, 999);
    CU_ASSERT_EQUAL(last.finished, 1);
    CU_ASSERT_TRUE(last.reclaimed.bound == 8 || (last.reclaimed.bound >= 4 && pond_count(&p, LS_OBJECT_CHECKPOINT) > 1));
    check_batches(&p, last.reclaimed.bound, end);
    check_kept(&p, &guests[2]);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_MANIFEST), 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_FLOOR), 1);
    CU_ASSERT_EQUAL(ls_manifest_end_step(pond_newest(&p)), end);
    pond_clear(&p);
}

static void test_storms(void)
{
    uint32_t pinned = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) weather_storm(seed, &pinned);
    CU_ASSERT_TRUE(pinned > 300 && pinned < 2700);
}

/* The rewind wins when its pin comes before the second list, at the last moment; and gives up when the announcement
 * stands. */
static void test_rewind_in_both_orders(void)
{
    for (uint32_t order = 0; order < 2; order++) {
        pond p;
        guest g, rewind;
        ls_reclaimer machine;
        ls_checkpointer pin;
        open_twelve(&p);
        add_checkpoint(&p, 1, 2, LS_CHECKPOINT_AUTO);
        add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        while (machine.phase != LS_RECLAIMER_ANNOUNCING) CU_ASSERT_TRUE_FATAL(guest_move(&g));
        if (order == 1) CU_ASSERT_TRUE(guest_move(&g)); /* the watermark is announced now */
        guest_start_checkpointer(&rewind, &p, &pin, 2, LS_CHECKPOINT_PIN, 1);
        guest_run(&rewind);
        CU_ASSERT_EQUAL(rewind.checkpointed, 1 - order);
        CU_ASSERT_EQUAL(rewind.gave_up, order);
        guest_run(&g);
        check_batches(&p, order == 0 ? 2 : 8, 12);
        CU_ASSERT_EQUAL(ls_manifest_trim_step(pond_newest(&p)), order == 0 ? 2 : 8);
        guest_die(&g, false);
        guest_die(&rewind, false);
        if (order == 0) { /* announced as 8, held at 2 by the pin: further rounds respect it until it is released */
            guest again = reclaim(&p, &config, 8);
            CU_ASSERT_EQUAL(again.reclaimed.bound, 2);
            check_batches(&p, 2, 12);
            CU_ASSERT_TRUE(ls_object_table_remove(&p.table, &rewind.checkpoint.key));
            again = reclaim(&p, &config, 9);
            CU_ASSERT_EQUAL(again.reclaimed.bound, 8);
            check_batches(&p, 8, 12);
        }
        pond_clear(&p);
    }
}

/* A put that slept from before the deletion wins its old name: the floor above tells everybody that it is void. */
static void test_late_winner(void)
{
    pond p;
    open_twelve(&p);
    ls_manifest *nothing = ls_manifest_new_empty(), *late = NULL;
    ls_commit commit = {.id = {5, 5}, .slot = LS_NO_SLOT, .row = {.producer = 5, .epoch = 1}};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(nothing, &commit, &late), LS_OK);
    add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
    ls_reclaimer_config config = usual();
    reclaim(&p, &config, 7);
    ls_store_request put = {.operation = LS_PUT, .if_absent = true, .key = ls_key_manifest(1), .manifest = late};
    ls_store_reply reply;
    pond_answer(&p, &put, &reply);
    CU_ASSERT_EQUAL(reply.status, LS_REPLY_OK); /* it wins ... */
    ls_store_request floors = {.operation = LS_LIST, .key = ls_key_floor(1), .list_limit = 1};
    pond_answer(&p, &floors, &reply);
    CU_ASSERT_EQUAL(reply.list_count, 1); /* ... and the check of section 6 finds a floor above */
    guest g = reclaim(&p, &config, 8);    /* a reclaimer starts from the floor, and sweeps the void version away */
    CU_ASSERT_EQUAL(g.finished, 1);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_VERSION], 1);
    CU_ASSERT_FALSE(pond_has(&p, ls_key_manifest(1)));
    check_batches(&p, 8, 12);
    ls_manifest_release(nothing);
    pond_clear(&p);
}

/* A checkpoint that lands after its step was trimmed is void: it holds nothing back, and goes. */
static void test_void_checkpoint(void)
{
    pond p;
    open_twelve(&p);
    add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
    ls_reclaimer_config config = usual();
    reclaim(&p, &config, 7);
    add_checkpoint(&p, 2, 3, LS_CHECKPOINT_PIN);
    add_checkpoint(&p, 3, 10, LS_CHECKPOINT_AUTO);
    guest g = reclaim(&p, &config, 8);
    CU_ASSERT_EQUAL(g.reclaimed.bound, 10);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_VOID_CHECKPOINT], 1);
    CU_ASSERT_EQUAL(g.reclaimed.deleted[LS_DELETE_CHECKPOINT], 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 1);
    pond_clear(&p);
}

/* --- life
 * ----------------------------------------------------------------------------------------------------------------------
 */

static void test_follow_and_stop(void)
{
    pond p;
    guest g;
    ls_reclaimer machine;
    ls_actions actions;
    open_twelve(&p);
    ls_reclaimer_config config = usual();
    config.every_ns = 60 * SECOND_NS;
    guest_start_reclaimer(&g, &p, &machine, &config, 7);
    while (machine.rounds == 0) CU_ASSERT_TRUE_FATAL(guest_move(&g));
    CU_ASSERT_EQUAL(machine.phase, LS_RECLAIMER_RESTING);
    CU_ASSERT_EQUAL(g.wake_ns, p.now_ns + 60 * SECOND_NS);
    add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
    while (machine.rounds == 1) CU_ASSERT_TRUE_FATAL(guest_move(&g));
    check_batches(&p, 8, 12);
    CU_ASSERT_EQUAL(ls_reclaimer_step(&machine, &(ls_event){.kind = LS_EVENT_STOP}, &actions), LS_OK);
    CU_ASSERT_EQUAL(actions.item[0].kind, LS_ACTION_FINISHED);
    guest_die(&g, false);
    pond_clear(&p);
}

static void test_stop_in_the_middle(void)
{
    for (uint32_t moves = 0; moves < 40; moves++) {
        pond p;
        guest g;
        ls_reclaimer machine;
        ls_actions actions;
        open_twelve(&p);
        add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        for (uint32_t i = 0; i < moves && guest_move(&g); i++) continue;
        bool was_done = guest_is_done(&g);
        CU_ASSERT_EQUAL(ls_reclaimer_step(&machine, &(ls_event){.kind = LS_EVENT_STOP}, &actions), LS_OK);
        while (guest_move(&g)) continue;
        CU_ASSERT_EQUAL(machine.end, LS_RECLAIMER_FINISHED);
        CU_ASSERT_TRUE(was_done || g.reclaimed.deleted[LS_DELETE_VERSION] == 0);
        for (uint64_t step = 8; step < 12; step++) CU_ASSERT_TRUE(has_step(&p, step));
        guest_die(&g, false);
        pond_clear(&p);
    }
}

/* A twin taken at any moment, in a lake of its own, does what the original does. */
static void test_copies(void)
{
    for (uint32_t moves = 0; moves < 40; moves += 3) {
        pond p;
        guest g;
        ls_reclaimer machine, copy;
        open_twelve(&p);
        add_checkpoint(&p, 1, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        for (uint32_t i = 0; i < moves && guest_move(&g); i++) continue;
        ls_fail_allocations_after(0);
        ls_result starved = ls_reclaimer_copy(&machine, &copy);
        ls_fail_allocations_after(-1);
        CU_ASSERT_TRUE(starved == LS_OK || starved == LS_ERROR_MEMORY);
        if (starved == LS_OK) ls_reclaimer_clear(&copy);
        CU_ASSERT_EQUAL_FATAL(ls_reclaimer_copy(&machine, &copy), LS_OK);
        ls_reclaimer_clear(&machine);
        g.reclaimer = &copy;
        guest_run(&g);
        CU_ASSERT_EQUAL(g.finished, 1);
        check_batches(&p, 8, 12);
        guest_die(&g, false);
        pond_clear(&p);
    }
}

/* Memory is short at any one moment: the machine says so and is given up, or can do without; a fresh one finishes. */
static void test_memory_is_short(void)
{
    uint32_t failures = 0;
    for (uint32_t moves = 0; moves < 50; moves++) {
        pond p;
        guest g;
        ls_reclaimer machine;
        open_twelve(&p);
        add_checkpoint(&p, 1, 4, LS_CHECKPOINT_AUTO);
        add_checkpoint(&p, 2, 8, LS_CHECKPOINT_AUTO);
        ls_reclaimer_config config = usual();
        guest_start_reclaimer(&g, &p, &machine, &config, 7);
        for (uint32_t i = 0; i < moves && guest_move(&g); i++) continue;
        ls_result result = guest_starve(&g);
        CU_ASSERT_TRUE(result == LS_OK || result == LS_ERROR_MEMORY);
        failures += result == LS_ERROR_MEMORY;
        if (result == LS_OK) guest_run(&g);
        guest_die(&g, false);
        guest second = reclaim(&p, &config, 8);
        CU_ASSERT_EQUAL(second.finished, 1);
        check_batches(&p, 8, 12);
        pond_clear(&p);
    }
    CU_ASSERT_TRUE(failures >= 4); /* at least: marks, both commits, a page */
    pond p;
    ls_reclaimer machine;
    ls_reclaimer_config config = usual();
    open_twelve(&p);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_reclaimer_init(&machine, &p.protocol, &config, 1, ls_random_open(1, 0, LS_RANDOM_TEST, 0)),
                    LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
    pond_clear(&p);
}

static void test_misuse(void)
{
    pond p;
    ls_reclaimer machine;
    ls_actions actions;
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    open_twelve(&p);
    ls_reclaimer_config good = usual(), bad[7];
    for (size_t i = 0; i < 7; i++) bad[i] = good;
    bad[0].retention.keep_last = 0;
    bad[1].keep_versions = 0;
    bad[2].retry_ns = 0;
    bad[3].grace_ns = -1;
    bad[4].every_ns = -1;
    bad[5].delete_concurrency = 0;
    bad[6].delete_concurrency = LS_RECLAIMER_DELETES_MAX + 1;
    for (size_t i = 0; i < 7; i++) {
        CU_ASSERT_EQUAL(ls_reclaimer_init(&machine, &p.protocol, &bad[i], 1, random), LS_ERROR_INVALID);
    }
    p.protocol.floor_check = false; /* where nobody checks floors, nothing may be deleted */
    CU_ASSERT_EQUAL(ls_reclaimer_init(&machine, &p.protocol, &good, 1, random), LS_ERROR_INVALID);
    p.protocol.floor_check = true;
    CU_ASSERT_EQUAL(ls_reclaimer_init(&machine, &p.protocol, &good, 1, random), LS_OK);
    CU_ASSERT_EQUAL(ls_reclaimer_step(&machine, &(ls_event){.kind = LS_EVENT_GO}, &actions), LS_ERROR_INVALID);
    ls_reclaimer_clear(&machine);
    CU_ASSERT_STRING_EQUAL(ls_delete_reason_text(LS_DELETE_VERSION), "it is below the floor");
    pond_clear(&p);
}

LS_SUITE(reclaimer, {"one round", test_one_round}, {"bounds by hand", test_bounds_by_hand},
         {"without checkpoints", test_without_checkpoints}, {"all reclaimed", test_all_reclaimed},
         {"refused", test_refused}, {"orphans", test_orphans}, {"dry run", test_dry_run}, {"doubt", test_doubt},
         {"denied", test_denied}, {"commits in between", test_commits_in_between},
         {"death anywhere", test_death_anywhere}, {"two reclaimers and a rewind", test_two_reclaimers_and_a_rewind},
         {"storms", test_storms}, {"rewind in both orders", test_rewind_in_both_orders}, {"late winner", test_late_winner},
         {"void checkpoint", test_void_checkpoint}, {"follow and stop", test_follow_and_stop},
         {"stop in the middle", test_stop_in_the_middle}, {"copies", test_copies},
         {"memory is short", test_memory_is_short}, {"misuse", test_misuse})
