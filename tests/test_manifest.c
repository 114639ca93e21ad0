/* test_manifest.c - manifest versions against a plain array model: sharing, lookup, rows, trimming, sizes, memory. */
#include "manifest/manifest.h"
#include "manifest/random.h"
#include "tests/suite.h"

#include <string.h>

#define MODEL_MAX 4000

static ls_entry entry_of(uint64_t step)
{
    return (ls_entry){.producer = step % 7, .sequence = step, .source_begin = step * 3, .source_end = step * 3 + 3,
                      .size_bytes = 1000 + step, .epoch = 1, .footer_bytes = 64};
}

static ls_manifest *append(const ls_manifest *parent, uint64_t producer, uint32_t slot, uint32_t count, bool closed)
{
    ls_entry entries[16];
    for (uint32_t i = 0; i < count; i++) entries[i] = entry_of(ls_manifest_end_step(parent) + i);
    ls_commit commit = {.id = {producer + 100, 1}, .slot = slot, .entries = entries, .entry_count = count,
                        .row = {.producer = producer, .next_source_offset = 5, .epoch = 2, .closed = closed}};
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(parent, &commit, &child), LS_OK);
    return child;
}

static void test_append_keeps_parent(void)
{
    ls_manifest *empty = ls_manifest_new_empty();
    ls_manifest *one = append(empty, 9, LS_NO_SLOT, 2, false);
    ls_manifest *two = append(one, 9, 0, 1, true);
    CU_ASSERT_EQUAL(ls_manifest_version(empty), 0);
    CU_ASSERT_EQUAL(ls_manifest_row_count(empty), 0);
    CU_ASSERT_EQUAL(ls_manifest_encoded_bytes(empty), 128);
    CU_ASSERT_EQUAL(ls_manifest_end_step(one), 2);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(one), 1);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(two), 0);
    CU_ASSERT_EQUAL(ls_manifest_row(one, 0)->last_version, 1);
    CU_ASSERT_EQUAL(ls_manifest_row(two, 0)->last_version, 2);
    CU_ASSERT_EQUAL(ls_manifest_row(two, 0)->last_commit.incarnation, 109);
    CU_ASSERT_EQUAL(ls_manifest_encoded_bytes(two), 32 + 3 * 48 + 48 + 96);
    ls_manifest_release(empty);
    ls_manifest_release(one);
    ls_entry entry;
    CU_ASSERT_TRUE(ls_manifest_entry(two, 0, &entry));
    CU_ASSERT_EQUAL(entry.size_bytes, 1000);
    CU_ASSERT_FALSE(ls_manifest_entry(two, 3, &entry));
    ls_manifest_release(two);
}

static void test_wrong_slot_is_refused(void)
{
    ls_manifest *empty = ls_manifest_new_empty();
    ls_manifest *one = append(empty, 9, LS_NO_SLOT, 1, false), *child = NULL;
    ls_commit commit = {.slot = 0, .row = {.producer = 8}};
    CU_ASSERT_EQUAL(ls_manifest_append(one, &commit, &child), LS_ERROR_INVALID);
    commit.slot = 1;
    CU_ASSERT_EQUAL(ls_manifest_append(one, &commit, &child), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NULL(child);
    ls_manifest_release(one);
    ls_manifest_release(empty);
}

/* Every step is found, whatever the mixture of chunk sizes, and ranges are copied whole. */
static void test_lookup_against_array(void)
{
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    ls_manifest *head = ls_manifest_new_empty();
    for (uint32_t producer = 0; ls_manifest_end_step(head) < MODEL_MAX; producer++) {
        uint32_t slot = producer < 70 ? LS_NO_SLOT : producer % 70;
        ls_manifest *child = append(head, producer % 70, slot, (uint32_t)ls_random_below(&random, 6), false);
        ls_manifest_release(head);
        head = child;
    }
    CU_ASSERT_EQUAL(ls_manifest_row_count(head), 70);
    for (uint32_t slot = 0; slot < 70; slot++) {
        CU_ASSERT_EQUAL(ls_manifest_row(head, slot)->producer, slot);
        CU_ASSERT_EQUAL(ls_manifest_find_slot(head, slot), slot);
    }
    CU_ASSERT_EQUAL(ls_manifest_find_slot(head, 70), LS_NO_SLOT);
    uint64_t wrong = 0;
    for (uint64_t step = 0; step < ls_manifest_end_step(head); step++) {
        ls_entry got, want = entry_of(step);
        wrong += !ls_manifest_entry(head, step, &got) || memcmp(&got, &want, sizeof got) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    static ls_entry range[MODEL_MAX + 16];
    for (int i = 0; i < 200; i++) {
        uint64_t first = ls_random_below(&random, ls_manifest_end_step(head));
        uint64_t count = ls_manifest_entries(head, first, 1 + ls_random_below(&random, 300), range);
        for (uint64_t k = 0; k < count; k++) wrong += range[k].sequence != first + k;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(ls_manifest_entries(head, 0, UINT64_MAX, range), ls_manifest_end_step(head));
    ls_manifest_release(head);
}

static void test_trim(void)
{
    ls_manifest *empty = ls_manifest_new_empty(), *trimmed = NULL;
    ls_manifest *full = append(empty, 1, LS_NO_SLOT, 10, false);
    ls_commit_id id = {1, 2};
    CU_ASSERT_EQUAL(ls_manifest_trim(full, id, 5, 6, &trimmed), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_manifest_trim(full, id, 11, 11, &trimmed), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(full, id, 6, 4, &trimmed), LS_OK);
    CU_ASSERT_EQUAL(ls_manifest_trim_step(trimmed), 4);
    CU_ASSERT_EQUAL(ls_manifest_end_step(trimmed), 10);
    CU_ASSERT_EQUAL(ls_manifest_entry_count(trimmed), 6);
    CU_ASSERT_EQUAL(ls_manifest_low_watermark(trimmed), 6);
    ls_entry entry;
    CU_ASSERT_FALSE(ls_manifest_entry(trimmed, 3, &entry));
    CU_ASSERT_TRUE(ls_manifest_entry(trimmed, 4, &entry));
    CU_ASSERT_EQUAL(entry.sequence, 4);
    CU_ASSERT_EQUAL(ls_manifest_trim(trimmed, id, 5, 4, &trimmed), LS_ERROR_INVALID);
    ls_manifest *gone = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(trimmed, id, 10, 10, &gone), LS_OK);
    ls_manifest *after = append(gone, 1, 0, 2, false);
    CU_ASSERT_TRUE(ls_manifest_entry(after, 11, &entry));
    CU_ASSERT_EQUAL(entry.sequence, 11);
    CU_ASSERT_EQUAL(ls_manifest_entry_count(after), 2);
    ls_manifest_release(after);
    ls_manifest_release(gone);
    ls_manifest_release(trimmed);
    ls_manifest_release(full);
    ls_manifest_release(empty);
}

static void test_tail_bytes(void)
{
    ls_manifest *empty = ls_manifest_new_empty();
    ls_manifest *full = append(empty, 1, LS_NO_SLOT, 10, false);
    CU_ASSERT_EQUAL(ls_manifest_tail_bytes(full, 10), 96 + 48);
    CU_ASSERT_EQUAL(ls_manifest_tail_bytes(full, 7), 96 + 48 + 3 * 48);
    CU_ASSERT_EQUAL(ls_manifest_tail_bytes(full, 0), 96 + 48 + 10 * 48);
    CU_ASSERT_EQUAL(ls_manifest_tail_bytes(full, 99), 96 + 48);
    ls_manifest_release(full);
    ls_manifest_release(empty);
}

static void test_build_on_base(void)
{
    ls_manifest *empty = ls_manifest_new_empty(), *built = NULL;
    ls_manifest *base = append(empty, 1, LS_NO_SLOT, 4, false);
    ls_entry more[2] = {entry_of(4), entry_of(5)};
    ls_row rows[3] = {{.producer = 1}, {.producer = 2, .closed = true}, {.producer = 3}};
    ls_manifest_parts parts = {.version = 9, .trim_step = 1, .first_step = 4, .base = base, .entries = more,
                               .entry_count = 2, .rows = rows, .row_count = 3};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &built), LS_OK);
    CU_ASSERT_EQUAL(ls_manifest_entry_count(built), 5);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(built), 2);
    ls_entry entry;
    CU_ASSERT_TRUE(ls_manifest_entry(built, 1, &entry));
    CU_ASSERT_EQUAL(entry.sequence, 1);
    CU_ASSERT_TRUE(ls_manifest_entry(built, 5, &entry));
    CU_ASSERT_EQUAL(entry.sequence, 5);
    parts.first_step = 5;
    CU_ASSERT_EQUAL(ls_manifest_build(&parts, &built), LS_ERROR_INVALID);
    ls_manifest_release(built);
    ls_manifest_release(base);
    ls_manifest_release(empty);
}

/* Thousands of rows: slots stay put through every growth of the tree. */
static void test_many_rows(void)
{
    ls_manifest *head = ls_manifest_new_empty();
    for (uint32_t i = 0; i < 5000; i++) {
        ls_manifest *child = append(head, i * 10, LS_NO_SLOT, 0, i % 2 == 1);
        ls_manifest_release(head);
        head = child;
    }
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < 5000; i++) wrong += ls_manifest_row(head, i)->producer != i * 10;
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(head), 2500);
    CU_ASSERT_PTR_NULL(ls_manifest_row(head, 5000));
    ls_manifest_release(head);
}

/* Each allocation of an append and of a build fails in turn: the parent lives on, nothing leaks (checked under ASan). */
static void test_out_of_memory(void)
{
    ls_manifest *empty = ls_manifest_new_empty(), *child = NULL;
    ls_manifest *parent = append(empty, 1, LS_NO_SLOT, 3, false);
    for (uint64_t i = 2; i < 6; i++) {
        ls_manifest *next = append(parent, i, LS_NO_SLOT, 0, false);
        ls_manifest_release(parent);
        parent = next;
    }
    ls_entry entry = entry_of(3);
    ls_commit commit = {.slot = 4, .row = {.producer = 5}, .entries = &entry, .entry_count = 1};
    int failures = 0;
    for (int64_t n = 0;; n++) {
        ls_fail_allocations_after(n);
        ls_result result = ls_manifest_append(parent, &commit, &child);
        ls_fail_allocations_after(-1);
        if (result == LS_OK) break;
        CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
        failures++;
    }
    CU_ASSERT_EQUAL(failures, 4); /* version, leaf, inner node, chunk */
    CU_ASSERT_EQUAL(ls_manifest_end_step(parent), 3);
    ls_manifest_release(child);
    static ls_row rows[100];
    ls_manifest_parts parts = {.version = 1, .entries = &entry, .entry_count = 1, .rows = rows, .row_count = 100};
    for (int64_t n = 0;; n++) {
        ls_fail_allocations_after(n);
        ls_result result = ls_manifest_build(&parts, &child);
        ls_fail_allocations_after(-1);
        if (result == LS_OK) break;
        CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
        failures++;
    }
    CU_ASSERT_EQUAL(failures, 4 + 30); /* version, chunk, root, two inner nodes, 25 leaves */
    ls_manifest_release(child);
    ls_manifest_release(parent);
    ls_manifest_release(empty);
}

LS_SUITE(manifest, {"append keeps the parent", test_append_keeps_parent},
         {"wrong slot is refused", test_wrong_slot_is_refused}, {"lookup against an array", test_lookup_against_array},
         {"trim", test_trim}, {"tail bytes", test_tail_bytes}, {"build on a base", test_build_on_base},
         {"many rows", test_many_rows}, {"out of memory", test_out_of_memory})
