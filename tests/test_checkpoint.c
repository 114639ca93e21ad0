/* test_checkpoint.c - the checkpoint object, the retention rule by hand, and the machine against every kind of answer.
 */
#include "tests/pond.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER(order) ((uint64_t)(order) << 32 | 7)

/* --- the object
 * ------------------------------------------------------------------------------------------------------------ */

static const uint64_t four_steps[] = {400, 402, 399, 401};

static ls_checkpoint make_four(void)
{
    ls_checkpoint made;
    CU_ASSERT_EQUAL_FATAL(ls_checkpoint_make(&made, LS_CHECKPOINT_NAMED, "Bach", 2, 2, four_steps, NULL), LS_OK);
    made.number = NUMBER(3);
    return made;
}

static void test_object(void)
{
    ls_checkpoint made = make_four(), read;
    ls_key key = ls_key_checkpoint(NUMBER(3), 399, LS_CHECKPOINT_NAMED);
    uint8_t bytes[100];
    CU_ASSERT_EQUAL(made.step, 399);
    CU_ASSERT_TRUE(made.pinned);
    CU_ASSERT_EQUAL(ls_checkpoint_encoded_bytes(&made), 64 + 4 + 32);
    CU_ASSERT_EQUAL(ls_checkpoint_encode(&made, bytes, 99), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_checkpoint_encode(&made, bytes, 100), LS_OK);
    CU_ASSERT_EQUAL(
        memcmp(bytes,
               "LSCHECK1\1\0\1\0\100\0\4\0\7\0\0\0\3\0\0\0\217\1\0\0\0\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0\2\0\0\0\144", 49),
        0);
    CU_ASSERT_EQUAL(memcmp(bytes + 64, "Bach\220\1\0\0\0\0\0\0\222\1", 14), 0);
    CU_ASSERT_EQUAL_FATAL(ls_checkpoint_decode(bytes, 100, &key, &read, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(read.name, "Bach");
    CU_ASSERT_EQUAL(read.number, NUMBER(3));
    CU_ASSERT_EQUAL(read.step, 399);
    CU_ASSERT_EQUAL(read.kind, LS_CHECKPOINT_NAMED);
    CU_ASSERT_TRUE(read.pinned);
    CU_ASSERT_EQUAL(read.data_ranks, 2);
    CU_ASSERT_EQUAL(memcmp(read.rank_steps, four_steps, sizeof four_steps), 0);
    ls_checkpoint_clear(&read);
    ls_checkpoint_clear(&made);
}

static void test_damaged_objects(void)
{
    ls_checkpoint made = make_four(), read;
    ls_key key = ls_key_checkpoint(NUMBER(3), 399, LS_CHECKPOINT_NAMED);
    uint8_t bytes[101] = {0};
    CU_ASSERT_EQUAL_FATAL(ls_checkpoint_encode(&made, bytes, 100), LS_OK);
    for (uint32_t bit = 0; bit < 800; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_EQUAL(ls_checkpoint_decode(bytes, 100, &key, &read, NULL), LS_ERROR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t size = 0; size <= 101; size++) {
        ls_result expected = size == 100 ? LS_OK : LS_ERROR_CORRUPT;
        CU_ASSERT_EQUAL(ls_checkpoint_decode(bytes, size, &key, &read, NULL), expected);
        if (expected == LS_OK) ls_checkpoint_clear(&read);
    }
    key.sequence = 400; /* found under another name */
    CU_ASSERT_EQUAL(ls_checkpoint_decode(bytes, 100, &key, &read, NULL), LS_ERROR_CORRUPT);
    key = ls_key_checkpoint(NUMBER(3), 399, LS_CHECKPOINT_PIN);
    CU_ASSERT_EQUAL(ls_checkpoint_decode(bytes, 100, &key, &read, NULL), LS_ERROR_CORRUPT);
    ls_checkpoint_clear(&made);
}

static void test_senseless_objects(void)
{
    ls_checkpoint made;
    char name[LS_CHECKPOINT_NAME_BYTES_MAX + 2];
    memset(name, 'x', sizeof name);
    name[LS_CHECKPOINT_NAME_BYTES_MAX + 1] = '\0';
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, name, 1, 1, four_steps, NULL), LS_ERROR_INVALID);
    name[LS_CHECKPOINT_NAME_BYTES_MAX] = '\0';
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, name, 1, 1, four_steps, NULL), LS_OK);
    CU_ASSERT_FALSE(made.pinned);
    ls_checkpoint_clear(&made);
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, "a\nb", 1, 1, four_steps, NULL), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, "", 0, 1, four_steps, NULL), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, "", 65536, 65536, four_steps, NULL),
                    LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, (ls_checkpoint_kind)4, "", 1, 1, four_steps, NULL), LS_ERROR_INVALID);
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_checkpoint_make(&made, LS_CHECKPOINT_AUTO, "", 1, 1, four_steps, NULL), LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
}

/* --- retention
 * ------------------------------------------------------------------------------------------------------------- */

/* Orders 1 .. 8; a trainer went back from 400 to 200 after order 4 and went on; order 5 is its pin, 6 was named. */
static const ls_checkpoint_mark history[] = {
    {NUMBER(1), 100, LS_CHECKPOINT_AUTO, false}, {NUMBER(2), 200, LS_CHECKPOINT_AUTO, false},
    {NUMBER(3), 300, LS_CHECKPOINT_AUTO, false}, {NUMBER(4), 400, LS_CHECKPOINT_AUTO, false},
    {NUMBER(5), 200, LS_CHECKPOINT_PIN, false},  {NUMBER(6), 250, LS_CHECKPOINT_NAMED, false},
    {NUMBER(7), 300, LS_CHECKPOINT_AUTO, false}, {NUMBER(8), 350, LS_CHECKPOINT_AUTO, false}};
#define HISTORY 8u

static void check_retention(ls_retention rule, uint32_t count, uint64_t trim_step, uint64_t end_step, const char *kept,
                            uint64_t watermark)
{
    ls_checkpoint_mark marks[HISTORY];
    memcpy(marks, history, sizeof marks);
    CU_ASSERT_EQUAL(ls_retention_apply(&rule, marks, count, trim_step, end_step), watermark);
    for (uint32_t i = 0; i < count; i++) CU_ASSERT_EQUAL(marks[i].kept, kept[i] == 'k');
}

static void test_retention(void)
{
    check_retention((ls_retention){1, 0}, 4, 0, 500, "...k", 400);
    check_retention((ls_retention){2, 0}, 4, 0, 500, "..kk", 300);
    check_retention((ls_retention){99, 0}, 4, 0, 500, "kkkk", 100);
    check_retention((ls_retention){1, 2}, 4, 0, 500, ".k.k", 200);
    check_retention((ls_retention){1, 3}, 4, 0, 500, "..kk", 300);
    /* pinned ones stay beside the last, and do not count among them; the last are the last made, not the highest steps
     */
    check_retention((ls_retention){1, 0}, 8, 0, 500, "....kk.k", 200);
    check_retention((ls_retention){2, 0}, 8, 0, 500, "....kkkk", 200);
    check_retention((ls_retention){3, 0}, 8, 0, 500, "...kkkkk", 200);
    /* trimmed steps are void, pinned or not; the step at the trim point is there */
    check_retention((ls_retention){9, 1}, 8, 250, 500, "..kk.kkk", 250);
    check_retention((ls_retention){9, 1}, 8, 251, 500, "..kk..kk", 300);
    /* nobody can have reached a step beyond the end: it is left alone, protects nothing, and is none of the last */
    check_retention((ls_retention){1, 0}, 4, 0, 399, "..kk", 300);
    check_retention((ls_retention){1, 0}, 4, 0, 400, "...k", 400);
    check_retention((ls_retention){1, 0}, 4, 50, 99, "kkkk", 50);
    check_retention((ls_retention){1, 0}, 0, 50, 99, "", 50);
    check_retention((ls_retention){1, 0}, 4, 401, 500, "....", 401);
}

static void test_numbers(void)
{
    CU_ASSERT_EQUAL(ls_checkpoint_next_number(0, 5), (UINT64_C(1) << 32) + 5);
    CU_ASSERT_EQUAL(ls_checkpoint_next_number((UINT64_C(9) << 32) + 4000000000, 0), UINT64_C(10) << 32);
    CU_ASSERT_EQUAL(ls_checkpoint_order(ls_checkpoint_next_number(NUMBER(41), UINT32_MAX)), 42);
}

/* --- the machine
 * ------------------------------------------------------------------------------------------------------------ */

/* Steps 0 .. 9 in one version, and the watermark at 4. */
static void open_ten(pond *p)
{
    pond_open(p, 2);
    pond_commit(p, 1, 1, 0, 10, false);
    ls_manifest *announced = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(pond_newest(p), (ls_commit_id){9, 1}, 4, 0, &announced), LS_OK);
    ls_store_request put = {.operation = LS_PUT, .if_absent = true, .key = ls_key_manifest(2), .manifest = announced};
    ls_store_reply reply;
    pond_answer(p, &put, &reply);
}

static void test_checkpointed(void)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    for (uint64_t order = 1; order <= 5; order++) { /* five in pages of two */
        guest_start_checkpointer(&g, &p, &machine, 3 + order, LS_CHECKPOINT_AUTO, order);
        guest_run(&g);
        CU_ASSERT_EQUAL(g.checkpointed, 1);
        CU_ASSERT_EQUAL(ls_checkpoint_order(g.checkpoint.key.number), order);
        CU_ASSERT_EQUAL(g.checkpoint.key.sequence, 3 + order);
        CU_ASSERT_EQUAL(g.checkpoint.low_watermark, 4);
        CU_ASSERT_EQUAL(g.checkpoint.end_step, 10);
        CU_ASSERT_TRUE(pond_has(&p, g.checkpoint.key));
        guest_die(&g, false);
    }
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 5);
    pond_clear(&p);
}

static void check_judgement(uint64_t step, uint32_t checkpointed)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    guest_start_checkpointer(&g, &p, &machine, step, LS_CHECKPOINT_PIN, 1);
    guest_run(&g);
    CU_ASSERT_EQUAL(g.checkpointed, checkpointed);
    CU_ASSERT_EQUAL(g.gave_up, 1 - checkpointed);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), checkpointed); /* taken back when too late */
    guest_die(&g, false);
    pond_clear(&p);
}

static void test_too_late_or_too_early(void)
{
    check_judgement(3, 0);
    check_judgement(4, 1);
    check_judgement(10, 1); /* the next step to come */
    check_judgement(11, 0);
}

/* The pond's answer to the next request of that kind is bent; the outcome is the same in the end. */
static void check_bent(ls_operation operation, ls_object_kind kind, bool effect, ls_reply_status status)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    p.bend = true;
    p.bend_operation = operation;
    p.bend_kind = kind;
    p.bend_effect = effect;
    p.bend_status = status;
    guest_start_checkpointer(&g, &p, &machine, 6, LS_CHECKPOINT_AUTO, 1);
    while (guest_move(&g)) {
        CU_ASSERT_TRUE(g.checkpointed == 0 || pond_has(&p, g.checkpoint.key)); /* never before it is durable */
    }
    CU_ASSERT_FALSE(p.bend);
    CU_ASSERT_EQUAL(g.checkpointed, 1);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 1);
    guest_die(&g, false);
    pond_clear(&p);
}

static void test_doubt(void)
{
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, true, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, false, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, true, LS_REPLY_EXISTS); /* a transport that sent it twice */
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, false, LS_REPLY_CONFLICT_RETRY);
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, false, LS_REPLY_THROTTLED);
    check_bent(LS_PUT, LS_OBJECT_CHECKPOINT, false, LS_REPLY_UNAVAILABLE);
    check_bent(LS_LIST, LS_OBJECT_CHECKPOINT, false, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_LIST, LS_OBJECT_FLOOR, false, LS_REPLY_THROTTLED);
    check_bent(LS_LIST, LS_OBJECT_MANIFEST, false, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_LIST, LS_OBJECT_MANIFEST, false, LS_REPLY_NOT_FOUND);
    check_bent(LS_HEAD, LS_OBJECT_MANIFEST, false, LS_REPLY_UNAVAILABLE);
    check_bent(LS_GET, LS_OBJECT_MANIFEST, false, LS_REPLY_UNKNOWN_OUTCOME);
    check_bent(LS_GET, LS_OBJECT_MANIFEST, false, LS_REPLY_NOT_FOUND); /* deleted between search and read */
}

/* Another object under the very name (half of the number is random): it is not ours, and another number is taken. */
static void test_name_taken(void)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    guest_start_checkpointer(&g, &p, &machine, 6, LS_CHECKPOINT_AUTO, 1);
    CU_ASSERT_TRUE(guest_move(&g)); /* numbered; the put is on its way */
    ls_key taken = machine.key;
    pond_add(&p, taken, 71);
    guest_run(&g);
    CU_ASSERT_EQUAL(g.checkpointed, 1);
    CU_ASSERT_EQUAL(ls_checkpoint_order(g.checkpoint.key.number), 2);
    CU_ASSERT_EQUAL(pond_count(&p, LS_OBJECT_CHECKPOINT), 2);
    guest_die(&g, false);
    pond_clear(&p);
}

static void test_denied(void)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    p.bend = true;
    p.bend_operation = LS_PUT;
    p.bend_kind = LS_OBJECT_CHECKPOINT;
    p.bend_status = LS_REPLY_DENIED;
    guest_start_checkpointer(&g, &p, &machine, 6, LS_CHECKPOINT_AUTO, 1);
    guest_run(&g);
    CU_ASSERT_EQUAL(g.failed, 1);
    CU_ASSERT_EQUAL(g.checkpointed, 0);
    guest_die(&g, false);
    pond_clear(&p);
}

/* A version that a late winner created below the floor says that the watermark is 0; it must not be believed. */
static void test_void_version(void)
{
    pond p;
    guest g;
    ls_checkpointer machine;
    open_ten(&p);
    pond_commit(&p, 1, 1, 10, 1, false);
    guest_start_checkpointer(&g, &p, &machine, 3, LS_CHECKPOINT_PIN, 1);
    for (uint32_t i = 0; i < 3; i++) CU_ASSERT_TRUE(guest_move(&g)); /* it is durable, and there is no floor yet */
    CU_ASSERT_EQUAL(machine.phase, LS_CHECKPOINTER_FINDING);
    pond_add(&p, ls_key_floor(3), 0);
    ls_key first = ls_key_manifest(1), second = ls_key_manifest(2);
    CU_ASSERT_TRUE(ls_object_table_remove(&p.table, &first));
    CU_ASSERT_TRUE(ls_object_table_remove(&p.table, &second));
    ls_manifest *nothing = ls_manifest_new_empty(), *ghost = NULL;
    ls_commit commit = {.id = {5, 5}, .slot = LS_NO_SLOT, .row = {.producer = 5, .epoch = 1}};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(nothing, &commit, &ghost), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_object_table_put(&p.table, &first, 9, ghost, 0), LS_OK);
    CU_ASSERT_TRUE(guest_move(&g) && guest_move(&g) && guest_move(&g));
    CU_ASSERT_EQUAL(ls_manifest_version(machine.known), 1); /* it has read the ghost, and now asks for floors */
    guest_run(&g);
    CU_ASSERT_EQUAL(g.gave_up, 1);
    CU_ASSERT_EQUAL(g.checkpoint.low_watermark, 4);
    guest_die(&g, false);
    ls_manifest_release(nothing);
    pond_clear(&p);
}

static void test_misuse(void)
{
    pond p;
    ls_checkpointer machine, copy;
    ls_actions actions;
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    open_ten(&p);
    ls_checkpointer_config config = {.step = 6, .kind = LS_CHECKPOINT_AUTO, .body_bytes = 72, .retry_ns = 0};
    CU_ASSERT_EQUAL(ls_checkpointer_init(&machine, &p.protocol, &config, NULL, random), LS_ERROR_INVALID);
    config.retry_ns = 1;
    config.kind = (ls_checkpoint_kind)0;
    CU_ASSERT_EQUAL(ls_checkpointer_init(&machine, &p.protocol, &config, NULL, random), LS_ERROR_INVALID);
    config.kind = LS_CHECKPOINT_AUTO;
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_checkpointer_init(&machine, &p.protocol, &config, NULL, random), LS_ERROR_MEMORY);
    ls_fail_allocations_after(-1);
    CU_ASSERT_EQUAL(ls_checkpointer_init(&machine, &p.protocol, &config, pond_newest(&p), random), LS_OK);
    CU_ASSERT_EQUAL(ls_checkpointer_step(&machine, &(ls_event){.kind = LS_EVENT_BATCH}, &actions), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_checkpointer_step(&machine, &(ls_event){.kind = LS_EVENT_START}, &actions), LS_OK);
    CU_ASSERT_EQUAL(ls_checkpointer_step(&machine, &(ls_event){.kind = LS_EVENT_START}, &actions), LS_ERROR_INVALID);
    ls_checkpointer_copy(&machine, &copy);
    ls_store_reply stale = {.status = LS_REPLY_OK, .tag = 99};
    CU_ASSERT_EQUAL(ls_checkpointer_step(&copy, &(ls_event){.kind = LS_EVENT_REPLY, .reply = &stale}, &actions), LS_OK);
    CU_ASSERT_EQUAL(actions.count, 0);
    ls_checkpointer_clear(&copy);
    ls_checkpointer_clear(&machine);
    ls_store_request request;
    ls_key key = ls_key_checkpoint(NUMBER(2), 6, LS_CHECKPOINT_PIN);
    ls_checkpoint_release(&key, &request);
    CU_ASSERT_EQUAL(request.operation, LS_DELETE);
    CU_ASSERT_EQUAL(ls_key_compare(&request.key, &key), 0);
    pond_clear(&p);
}

LS_SUITE(checkpoint, {"object", test_object}, {"damaged objects", test_damaged_objects},
         {"senseless objects", test_senseless_objects}, {"retention by hand", test_retention},
         {"numbers", test_numbers}, {"checkpointed", test_checkpointed},
         {"too late or too early", test_too_late_or_too_early}, {"doubt", test_doubt}, {"name taken", test_name_taken},
         {"denied", test_denied}, {"void version", test_void_version}, {"misuse", test_misuse})
