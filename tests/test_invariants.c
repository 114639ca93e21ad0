/* test_invariants.c - each invariant is broken once by hand, and the checker must name it. */
#include "manifest/invariants.h"
#include "tests/suite.h"

#include <string.h>

static bool nothing_exists(void *context, const ls_key *key, uint64_t size_bytes)
{
    (void)context;
    (void)key;
    return size_bytes == 4242;
}

/* Producer 1 with offsets up to 10 in two entries, version 5. */
typedef struct world {
    ls_entry entries[4];
    ls_row rows[3];
    ls_manifest_parts parts;
} world;

static void world_init(world *w)
{
    *w = (world){
        .entries = {{.producer = 1, .sequence = 0, .source_begin = 0, .source_end = 4, .size_bytes = 9, .epoch = 2},
                    {.producer = 1, .sequence = 1, .source_begin = 4, .source_end = 10, .size_bytes = 9, .epoch = 2}},
        .rows = {{.producer = 1, .next_source_offset = 10, .last_version = 5, .epoch = 2, .last_commit = {7, 1}}}};
    w->parts = (ls_manifest_parts){.version = 5, .entries = w->entries, .entry_count = 2, .rows = w->rows, .row_count = 1};
}

/* The legal successor: one more entry of producer 1. */
static void world_next(world *w)
{
    w->entries[2] = (ls_entry){.producer = 1, .sequence = 2, .source_begin = 10, .source_end = 12, .size_bytes = 9, .epoch = 2};
    w->rows[0].next_source_offset = 12;
    w->rows[0].last_version = 6;
    w->rows[0].last_commit.attempt = 2;
    w->parts.version = 6;
    w->parts.entry_count = 3;
}

static ls_manifest *build(const world *w)
{
    ls_manifest *manifest = NULL;
    ls_manifest_parts parts = w->parts;
    parts.entries = w->entries; /* the struct may have been copied */
    parts.rows = w->rows;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &manifest), LS_OK);
    return manifest;
}

/* Checks the change from world_init to `next` and returns the error's first two letters, "" when it was accepted. */
static const char *verdict(const world *next, ls_object_exists exists)
{
    static char letters[3];
    world first;
    world_init(&first);
    ls_manifest *before = build(&first), *after = build(next);
    ls_invariants invariants;
    ls_error error = {""};
    ls_invariants_init(&invariants, LS_CHECK_ALL, exists, NULL);
    CU_ASSERT_EQUAL(ls_invariants_created(&invariants, before, &error), LS_OK);
    ls_result result = ls_invariants_created(&invariants, after, &error);
    CU_ASSERT(result == LS_OK || result == LS_ERROR_VIOLATED);
    memcpy(letters, error.text, 2);
    ls_invariants_clear(&invariants);
    ls_manifest_release(before);
    ls_manifest_release(after);
    return letters;
}

#define EXPECT(label, change)                             \
    do {                                                  \
        world w;                                          \
        world_init(&w);                                   \
        world_next(&w);                                   \
        change;                                           \
        CU_ASSERT_STRING_EQUAL(verdict(&w, NULL), label); \
    } while (0)

static void test_each_invariant(void)
{
    EXPECT("", (void)0);
    EXPECT("I1", w.parts.version = 7);
    EXPECT("I2", w.parts.entry_count = 1);
    EXPECT("I2", w.parts.trim_step = w.parts.first_step = 1); /* trimmed above the watermark */
    EXPECT("I3", w.entries[0].size_bytes = 8);
    EXPECT("I3", w.entries[1].footer_bytes = 8);
    EXPECT("I4", w.entries[2].source_begin = 9);
    EXPECT("I4", w.entries[2].source_begin = 11);
    EXPECT("I4", w.entries[2].source_end = 10);
    EXPECT("I4", w.rows[0].next_source_offset = 11);
    EXPECT("I4", w.rows[0].next_source_offset = 13);
    EXPECT("I4", w.entries[2].epoch = 1);
    EXPECT("I4", w.entries[2].producer = 9);
    EXPECT("I5", (w.parts.entry_count = 2, w.rows[0].next_source_offset = 10, w.rows[0].epoch = 1));
    EXPECT("I5", w.rows[0].last_version = 5);
    EXPECT("I5", w.rows[0].last_commit.incarnation = 8);
    EXPECT("I5", (w.parts.entry_count = 2, w.rows[0].next_source_offset = 10, w.rows[0].producer = 3));
    EXPECT("I5", (w.parts.entry_count = 2, w.parts.row_count = 0));
}

/* The mistakes of a rebase: one batch twice, a row dropped to its older state. */
static void test_rebase_mistakes(void)
{
    EXPECT("I4", (w.entries[3] = w.entries[2], w.parts.entry_count = 4));
    EXPECT("I4", w.rows[0].next_source_offset = 10);
    EXPECT("", (w.entries[3] = w.entries[2], w.entries[3].source_begin = 12, w.entries[3].source_end = 13,
                w.parts.entry_count = 4, w.rows[0].next_source_offset = 13));
}

static void test_objects_must_exist(void)
{
    world w;
    world_init(&w);
    world_next(&w);
    CU_ASSERT_STRING_EQUAL(verdict(&w, nothing_exists), "I6");
    w.entries[2].size_bytes = 4242;
    CU_ASSERT_STRING_EQUAL(verdict(&w, nothing_exists), "");
}

static void test_acknowledged(void)
{
    world w;
    world_init(&w);
    ls_manifest *head = build(&w);
    ls_invariants invariants;
    ls_error error;
    ls_invariants_init(&invariants, LS_CHECK_NEW, NULL, NULL);
    CU_ASSERT_EQUAL(ls_invariants_acknowledged(&invariants, 1, 1, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(ls_invariants_created(&invariants, head, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_acknowledged(&invariants, 1, 10, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_acknowledged(&invariants, 1, 11, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(ls_invariants_acknowledged(&invariants, 2, 1, &error), LS_ERROR_VIOLATED);
    ls_invariants_clear(&invariants);
    ls_manifest_release(head);
}

/* Version 5 names steps 0 and 1; the watermark is 1: step 0 may go unless somebody needs it, step 1 may not. */
static void test_deleted(void)
{
    world w;
    world_init(&w);
    w.parts.low_watermark = 1;
    ls_manifest *head = build(&w);
    ls_invariants invariants;
    ls_error error;
    ls_key first = ls_key_data(1, 2, 0), second = ls_key_data(1, 2, 1), orphan = ls_key_data(1, 1, 0);
    ls_key newest = ls_key_manifest(5), older = ls_key_manifest(4), floor = ls_key_floor(5);
    ls_invariants_init(&invariants, LS_CHECK_NEW, NULL, NULL);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &first, 0, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_created(&invariants, head, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &first, UINT64_MAX, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &first, 1, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &first, 0, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &second, UINT64_MAX, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &orphan, 0, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &newest, UINT64_MAX, &error), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &older, UINT64_MAX, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_deleted(&invariants, &floor, UINT64_MAX, &error), LS_OK);
    ls_invariants_clear(&invariants);
    ls_manifest_release(head);
}

LS_SUITE(invariants, {"deletes spare what is needed", test_deleted}, {"each invariant is named", test_each_invariant}, {"mistakes of a rebase", test_rebase_mistakes},
         {"objects must exist", test_objects_must_exist}, {"acknowledged is committed", test_acknowledged})
