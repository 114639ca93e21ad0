/* test_codec.c - the manifest as bytes: the format itself (golden bytes), round trips, tails, everything refused. */
#include "manifest/chain.h"
#include "manifest/codec.h"
#include "manifest/random.h"
#include "tests/seal.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static uint8_t *encoded(const ls_manifest *manifest, size_t *length)
{
    *length = (size_t)ls_manifest_encoded_bytes(manifest);
    uint8_t *bytes = malloc(*length); /* exactly so long: the sanitizer sees a byte too many */
    CU_ASSERT_EQUAL_FATAL(ls_manifest_encode(manifest, bytes, *length), LS_OK);
    return bytes;
}

static bool same_row(const ls_row *a, const ls_row *b)
{
    return a->producer == b->producer && a->next_source_offset == b->next_source_offset &&
           a->last_version == b->last_version && a->last_commit.incarnation == b->last_commit.incarnation &&
           a->last_commit.attempt == b->last_commit.attempt && a->epoch == b->epoch && a->closed == b->closed;
}

static bool same(const ls_manifest *a, const ls_manifest *b)
{
    ls_commit_id a_id = ls_manifest_commit_id(a), b_id = ls_manifest_commit_id(b);
    if (ls_manifest_version(a) != ls_manifest_version(b) || a_id.incarnation != b_id.incarnation ||
        a_id.attempt != b_id.attempt || ls_manifest_trim_step(a) != ls_manifest_trim_step(b) ||
        ls_manifest_end_step(a) != ls_manifest_end_step(b) ||
        ls_manifest_low_watermark(a) != ls_manifest_low_watermark(b) ||
        ls_manifest_row_count(a) != ls_manifest_row_count(b) ||
        ls_manifest_open_row_count(a) != ls_manifest_open_row_count(b)) {
        return false;
    }
    for (uint64_t step = ls_manifest_trim_step(a); step < ls_manifest_end_step(a); step++) {
        ls_entry a_entry, b_entry;
        if (!ls_manifest_entry(a, step, &a_entry) || !ls_manifest_entry(b, step, &b_entry) ||
            memcmp(&a_entry, &b_entry, sizeof a_entry) != 0 ||
            ls_manifest_chain(a, step) != ls_manifest_chain(b, step)) {
            return false;
        }
    }
    for (uint32_t slot = 0; slot < ls_manifest_row_count(a); slot++) {
        if (!same_row(ls_manifest_row(a, slot), ls_manifest_row(b, slot))) return false;
    }
    return ls_manifest_chain(a, ls_manifest_end_step(a)) == ls_manifest_chain(b, ls_manifest_end_step(b));
}

/* The child of parent, which is given back. */
static ls_manifest *committed(ls_manifest *parent, ls_commit commit)
{
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(parent, &commit, &child), LS_OK);
    ls_manifest_release(parent);
    return child;
}

static ls_manifest *trimmed(ls_manifest *parent, ls_commit_id id, uint64_t low_watermark, uint64_t trim_step)
{
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(parent, id, low_watermark, trim_step, &child), LS_OK);
    ls_manifest_release(parent);
    return child;
}

static bool mentions(const ls_error *error, const char *what)
{
    return strstr(error->text, what) != NULL;
}

/* --- the format -------------------------------------------------------------------------------------------------- */

/* Put together field by field by a script that shares no code with the codec; version 4 of golden_history. */
static const char golden_hex[] = "4c534d414e4946310100010020003000040000000000000000000000dcc8c2dc"
                                 "070000000000000001000000000000006e000000000000008200000000000000"
                                 "d0070000000000000100000068000000a8a7a6a5a4a3a2a10500000000000000"
                                 "0000000000000000010000000000000005040302010000002423222134330000"
                                 "0700000000000000820000000000000002000000000000001817161514131211"
                                 "02000000000000000100000000000000a8a7a6a5a4a3a2a10100000000000000"
                                 "0300000000000000585756555453525161000000000000002423222101000000"
                                 "04000000000000009897969594939291b1000000000000000200000000000000"
                                 "010000000000000003000000000000000200000000000000020000002952d41f"
                                 "5b4de5df75ed181720003000300060000100010025083c274c534d464f4f5431";
#define GOLDEN_BYTES 320u
#define GOLDEN_FOOTER_AT 224u

static void golden_bytes(uint8_t bytes[GOLDEN_BYTES])
{
    CU_ASSERT_EQUAL_FATAL(sizeof golden_hex - 1, 2 * GOLDEN_BYTES);
    for (size_t i = 0; i < GOLDEN_BYTES; i++) {
        char digits[3] = {golden_hex[2 * i], golden_hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Versions 1 .. 4 of a little history into version[1 .. 4]; the caller releases them. */
static void golden_history(ls_manifest *version[5])
{
    const ls_entry first[2] = {{7, 0, 100, 110, 1000, 1, 104}, {7, 1, 110, 130, 2000, 1, 104}};
    const ls_entry second = {0xa1a2a3a4a5a6a7a8, 5, 0, 1, 0x0102030405, 0x21222324, 0x3334};
    ls_commit joins = {.id = {0x1112131415161718, 1}, .slot = LS_NO_SLOT,
                       .row = {.producer = 7, .next_source_offset = 100, .epoch = 1}};
    ls_commit commits = {.id = {0x1112131415161718, 2}, .slot = 0, .entries = first, .entry_count = 2,
                         .row = {.producer = 7, .next_source_offset = 130, .epoch = 1}};
    ls_commit other = {
        .id = {0x5152535455565758, 0x61},
        .slot = LS_NO_SLOT,
        .entries = &second,
        .entry_count = 1,
        .row = {.producer = 0xa1a2a3a4a5a6a7a8, .next_source_offset = 1, .epoch = 0x21222324, .closed = true}};
    version[0] = NULL;
    version[1] = committed(ls_manifest_new_empty(), joins);
    version[2] = committed(ls_manifest_retain(version[1]), commits);
    version[3] = committed(ls_manifest_retain(version[2]), other);
    version[4] = trimmed(ls_manifest_retain(version[3]), (ls_commit_id){0x9192939495969798, 0xb1}, 2, 1);
}

static void release_history(ls_manifest *const *version, size_t count)
{
    for (size_t i = 0; i < count; i++) ls_manifest_release(version[i]);
}

static void test_golden_bytes(void)
{
    uint8_t golden[GOLDEN_BYTES];
    golden_bytes(golden);
    ls_manifest *version[5];
    golden_history(version);
    size_t length;
    uint8_t *bytes = encoded(version[4], &length);
    CU_ASSERT_EQUAL_FATAL(length, GOLDEN_BYTES);
    CU_ASSERT_EQUAL(memcmp(bytes, golden, GOLDEN_BYTES), 0);
    free(bytes);

    ls_manifest *decoded = NULL;
    ls_error error;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(golden, GOLDEN_BYTES, 4, &decoded, &error), LS_OK);
    CU_ASSERT(same(decoded, version[4]));
    ls_manifest_release(decoded);
    release_history(version, 5);
}

/* The chain as codec.c defines it, from the encodings of all entries ever committed; trimming does not change it. */
static void test_chain(void)
{
    ls_manifest *version[5];
    golden_history(version);
    uint32_t expected[4] = {0};
    for (uint64_t step = 0; step < 3; step++) {
        ls_entry entry;
        uint8_t bytes[LS_MANIFEST_ENTRY_BYTES];
        CU_ASSERT_FATAL(ls_manifest_entry(version[3], step, &entry));
        ls_entries_store(bytes, &entry, 1);
        expected[step + 1] = ls_crc32c_portable(expected[step], bytes, sizeof bytes);
        ls_entry loaded;
        ls_entries_load(&loaded, bytes, sizeof bytes, 1);
        CU_ASSERT_EQUAL(memcmp(&loaded, &entry, sizeof entry), 0);
    }
    CU_ASSERT_EQUAL(ls_manifest_chain(version[1], 0), 0);
    for (uint64_t step = 0; step <= 3; step++) {
        CU_ASSERT_EQUAL(ls_manifest_chain(version[3], step), expected[step]);
        CU_ASSERT_EQUAL(ls_manifest_chain(version[4], step), expected[step == 0 ? 1 : step]);
    }
    CU_ASSERT_EQUAL(ls_manifest_chain(version[4], 99), expected[3]);
    release_history(version, 5);
}

/* --- round trips ------------------------------------------------------------------------------------------------- */

/* One draw a statement: the order of evaluation within an initialiser is the compiler's choice. */
static ls_entry random_entry(ls_random *random, uint64_t producer)
{
    ls_entry entry = {.producer = producer};
    entry.sequence = ls_random_next(random);
    entry.source_begin = ls_random_next(random) >> 1;
    entry.source_end = entry.source_begin + 1 + ls_random_below(random, 1000);
    entry.size_bytes = ls_random_next(random) | 1u << 20;
    entry.epoch = (uint32_t)ls_random_next(random);
    entry.footer_bytes = (uint32_t)ls_random_below(random, 1u << 20);
    return entry;
}

/* A child by a random commit: an append by a known or new producer, or, one time in eight, a trim. */
static ls_manifest *random_child(ls_random *random, const ls_manifest *parent)
{
    ls_commit commit = {.slot = LS_NO_SLOT};
    commit.id.incarnation = ls_random_next(random);
    commit.id.attempt = ls_random_next(random);
    if (ls_random_below(random, 8) == 0) {
        uint64_t trim = ls_manifest_trim_step(parent) + ls_random_below(random, ls_manifest_entry_count(parent) + 1);
        uint64_t low = ls_manifest_low_watermark(parent) > trim ? ls_manifest_low_watermark(parent) : trim;
        return trimmed(ls_manifest_retain(parent), commit.id, low, trim);
    }
    const ls_row *row = ls_manifest_row(parent, (uint32_t)ls_random_below(random, ls_manifest_row_count(parent) + 1u));
    commit.row.producer = row != NULL ? row->producer : ls_random_next(random);
    commit.row.epoch = (row != NULL ? row->epoch : 0) + (uint32_t)ls_random_below(random, 2);
    commit.row.next_source_offset = ls_random_next(random);
    commit.row.closed = ls_random_below(random, 3) == 0;
    if (row != NULL) commit.slot = ls_manifest_find_slot(parent, row->producer);
    ls_entry entries[5];
    commit.entries = entries;
    commit.entry_count = (uint32_t)ls_random_below(random, 6);
    for (uint32_t i = 0; i < commit.entry_count; i++) entries[i] = random_entry(random, commit.row.producer);
    return committed(ls_manifest_retain(parent), commit);
}

static void check_round_trip(const ls_manifest *manifest)
{
    size_t length;
    uint8_t *bytes = encoded(manifest, &length);
    ls_manifest *decoded = NULL;
    ls_error error;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(bytes, length, ls_manifest_version(manifest), &decoded, &error), LS_OK);
    CU_ASSERT(same(decoded, manifest));
    size_t again_length;
    uint8_t *again = encoded(decoded, &again_length);
    CU_ASSERT_EQUAL(again_length, length);
    CU_ASSERT_EQUAL(memcmp(again, bytes, length), 0);
    ls_manifest_release(decoded);
    free(again);
    free(bytes);
}

static void test_round_trips(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        ls_random random = ls_random_open(seed, 0, LS_RANDOM_TEST, 0);
        ls_manifest *manifest = ls_manifest_new_empty();
        for (int i = 0; i < 30; i++) {
            ls_manifest *child = random_child(&random, manifest);
            ls_manifest_release(manifest);
            manifest = child;
            check_round_trip(manifest);
        }
        ls_manifest_release(manifest);
    }
}

/* No rows and no entries; rows and nothing else; many rows; more entries than the encoder gathers at once. */
static void test_extremes(void)
{
    ls_manifest *bare = trimmed(ls_manifest_new_empty(), (ls_commit_id){1, 1}, 0, 0);
    CU_ASSERT_EQUAL(ls_manifest_encoded_bytes(bare), 128);
    check_round_trip(bare);
    ls_manifest_release(bare);

    ls_random random = ls_random_open(3, 0, LS_RANDOM_TEST, 0);
    ls_manifest *many = ls_manifest_new_empty();
    for (uint32_t i = 0; i < 1500; i++) {
        many = committed(many,
                         (ls_commit){.id = {1, i}, .slot = LS_NO_SLOT, .row = {.producer = ls_random_next(&random)}});
    }
    check_round_trip(many);
    for (uint32_t i = 0; i < 200; i++) {
        ls_entry entries[5];
        for (int k = 0; k < 5; k++) entries[k] = random_entry(&random, 9);
        many = committed(many, (ls_commit){.id = {2, i}, .slot = i, .entries = entries, .entry_count = 5,
                                           .row = {.producer = ls_manifest_row(many, i)->producer}});
        if (i % 50 == 49) check_round_trip(many);
    }
    many = trimmed(many, (ls_commit_id){3, 3}, 1000, 999);
    check_round_trip(many);
    many = trimmed(many, (ls_commit_id){3, 4}, 5000, 1000);
    check_round_trip(many);
    ls_manifest_release(many);
}

static void test_unencodable(void)
{
    uint8_t bytes[512];
    ls_manifest *version[5];
    golden_history(version);
    CU_ASSERT_EQUAL(ls_manifest_encode(version[4], bytes, GOLDEN_BYTES - 1), LS_ERROR_INVALID);
    release_history(version, 5);

    ls_manifest *empty = ls_manifest_new_empty(), *made = NULL;
    CU_ASSERT_EQUAL(ls_manifest_encode(empty, bytes, sizeof bytes), LS_ERROR_INVALID);
    ls_manifest_release(empty);

    ls_entry entry = {1, 1, 5, 6, 100, 1, 100};
    ls_row row = {.producer = 1, .last_version = 3};
    ls_manifest_parts parts = {.version = 3, .low_watermark = 4, .trim_step = 4, .first_step = 4, .entries = &entry,
                               .entry_count = 1, .rows = &row, .row_count = 1};
    for (int fault = 0; fault < 5; fault++) {
        entry.source_end = fault == 1 ? 5 : 6;
        entry.footer_bytes = fault == 2 ? 101 : 100;
        row.last_version = fault == 3 ? 4 : 3;
        parts.low_watermark = fault == 4 ? 3 : 4;
        CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &made), LS_OK);
        CU_ASSERT_EQUAL(ls_manifest_encode(made, bytes, sizeof bytes), fault == 0 ? LS_OK : LS_ERROR_INVALID);
        ls_manifest_release(made);
    }
}

/* --- tails ------------------------------------------------------------------------------------------------------- */

/* Reads version `object` as a reader who has `known`, beginning with a suffix of `length` bytes and asking for what is
 * said to be needed; the last suffix is returned, and the result is compared with the original. */
static size_t read_tail(const ls_manifest *object, const ls_manifest *known, size_t length)
{
    size_t object_bytes;
    uint8_t *bytes = encoded(object, &object_bytes);
    ls_manifest *decoded = NULL;
    for (int requests = 0; requests < 4 && decoded == NULL; requests++) {
        uint8_t *suffix = malloc(length + 1); /* apart from the rest: nothing before the suffix may be read */
        memcpy(suffix, bytes + (object_bytes - length), length);
        uint64_t needed = 0;
        ls_error error;
        ls_result result = ls_manifest_decode_tail(suffix, length, object_bytes, ls_manifest_version(object), known,
                                                   &decoded, &needed, &error);
        free(suffix);
        CU_ASSERT_EQUAL_FATAL(result, LS_OK);
        if (decoded != NULL) break;
        CU_ASSERT_FATAL(needed > length && needed <= object_bytes);
        length = (size_t)needed;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(decoded);
    CU_ASSERT(same(decoded, object));
    ls_manifest_release(decoded);
    free(bytes);
    return length;
}

#define HISTORY 26u

static void test_tail_of_every_version(void)
{
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    ls_manifest *version[HISTORY];
    version[0] = ls_manifest_new_empty();
    for (size_t i = 1; i < HISTORY; i++) version[i] = random_child(&random, version[i - 1]);
    for (size_t known = 0; known < HISTORY; known++) {
        for (size_t object = 1; object < HISTORY; object++) {
            uint64_t end = known <= object ? ls_manifest_end_step(version[known]) : 0;
            uint64_t enough = ls_manifest_tail_bytes(version[object], end);
            CU_ASSERT_EQUAL(read_tail(version[object], version[known], 0), enough);
            CU_ASSERT_EQUAL(read_tail(version[object], version[known], (size_t)enough - 1), enough);
            CU_ASSERT_EQUAL(read_tail(version[object], version[known], (size_t)enough), enough);
            size_t whole = (size_t)ls_manifest_encoded_bytes(version[object]);
            CU_ASSERT_EQUAL(read_tail(version[object], version[known], whole), whole);
        }
    }
    CU_ASSERT_EQUAL(read_tail(version[20], NULL, 0), ls_manifest_tail_bytes(version[20], 0));
    release_history(version, HISTORY);
}

static void test_tail_of_every_length(void)
{
    ls_manifest *version[5];
    golden_history(version);
    for (size_t length = 0; length <= GOLDEN_BYTES; length++) {
        size_t used = read_tail(version[4], version[2], length); /* version 2 knows steps 0 and 1; step 2 is missing */
        CU_ASSERT_EQUAL(used, length < 96 + 2 * 48 + 48 ? 96 + 2 * 48 + 48 : length);
    }
    release_history(version, 5);
}

/* A follower must not keep trimmed entries alive: a version read across a moved trim point stands alone. What is known
 * is destroyed and its memory reused before the result is looked at. */
static void test_tail_outlives_known(void)
{
    ls_manifest *version[5];
    golden_history(version);
    size_t length;
    uint8_t *bytes = encoded(version[4], &length);
    ls_manifest *known = NULL, *decoded = NULL;
    size_t known_length;
    uint8_t *known_bytes = encoded(version[2], &known_length);
    uint64_t needed;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(known_bytes, known_length, 2, &known, NULL), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode_tail(bytes, length, length, 4, known, &decoded, &needed, NULL), LS_OK);
    ls_manifest_release(known);
    CU_ASSERT(same(decoded, version[4]));
    ls_manifest_release(decoded);
    free(known_bytes);
    free(bytes);
    release_history(version, 5);
}

/* A tail read of version[object] with a known version that it does not continue; `what` must be named. */
static void check_fork(const ls_manifest *object, const ls_manifest *known, const char *what)
{
    size_t length;
    uint8_t *bytes = encoded(object, &length);
    ls_manifest *decoded = NULL;
    uint64_t needed = 0;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_manifest_decode_tail(bytes, length, length, 0, known, &decoded, &needed, &error),
                    LS_ERROR_CORRUPT);
    CU_ASSERT_PTR_NULL(decoded);
    CU_ASSERT(mentions(&error, what));
    free(bytes);
}

/* Version 2 of the golden history as it was not: one entry of it has another size. */
static ls_manifest *forged_version(const ls_manifest *second, uint64_t step)
{
    ls_entry entries[2];
    ls_manifest_entries(second, 0, 2, entries);
    entries[step].size_bytes++;
    ls_manifest_parts parts = {.version = 2, .id = ls_manifest_commit_id(second), .entries = entries, .entry_count = 2,
                               .rows = ls_manifest_row(second, 0), .row_count = 1};
    ls_manifest *made = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &made), LS_OK);
    return made;
}

static void test_other_histories(void)
{
    ls_manifest *version[5];
    golden_history(version);
    const ls_commit_id id = {77, 1};
    const ls_commit by_stranger = {.id = id, .slot = LS_NO_SLOT, .row = {.producer = 55}};
    ls_manifest *stranger = committed(ls_manifest_retain(version[2]), by_stranger);
    check_fork(stranger, version[3], "commit id"); /* two versions 3 */
    check_fork(version[4], stranger, "row 1");
    ls_manifest_release(stranger);

    /* Only the unread past differs. Version 3 shares both entries, version 4 copies step 1 and has trimmed step 0. */
    ls_manifest *forged = forged_version(version[2], 0);
    check_fork(version[3], forged, "another history");
    check_fork(version[4], forged, "chain of entry checksums");
    ls_manifest_release(forged);
    forged = forged_version(version[2], 1);
    check_fork(version[3], forged, "another history");
    check_fork(version[4], forged, "another history");
    ls_manifest *emptied = trimmed(ls_manifest_retain(version[2]), id, 2, 2);
    check_fork(emptied, forged, "chain of entry checksums"); /* no entry is left to compare */
    ls_manifest_release(emptied);
    ls_manifest_release(forged);
    release_history(version, 5);
}

/* Numbers that only grow: an object one version later in which one of them has shrunk. */
static void test_shrunk_numbers(void)
{
    const ls_entry entries[3] = {{7, 0, 1, 2, 100, 3, 50}, {7, 1, 2, 3, 100, 3, 50}, {7, 2, 3, 4, 100, 3, 50}};
    static const char *const named[] = {NULL,        "low watermark", "trim step", "end step",
                                        "row count", "row 0",         "row 0",     "row 0"};
    ls_row row = {.producer = 7, .next_source_offset = 4, .last_version = 8, .epoch = 3};
    ls_manifest_parts parts = {.version = 9, .low_watermark = 5, .trim_step = 2, .first_step = 2, .entries = entries,
                               .entry_count = 2, .rows = &row, .row_count = 1};
    ls_manifest *known = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &known), LS_OK);
    for (size_t fault = 0; fault < sizeof named / sizeof named[0]; fault++) {
        ls_manifest *object = NULL;
        parts.version = 10;
        parts.low_watermark = fault == 1 ? 4 : 5;
        parts.trim_step = parts.first_step = fault == 2 ? 1 : 2;
        parts.entry_count = fault == 2 ? 3 : fault == 3 ? 1 : 2;
        parts.row_count = fault == 4 ? 0 : 1;
        row.last_version = fault == 5 ? 7 : 8;
        row.epoch = fault == 6 ? 2 : 3;
        row.producer = fault == 7 ? 8 : 7;
        CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &object), LS_OK);
        if (fault == 0) {
            read_tail(object, known, 0);
        } else {
            check_fork(object, known, named[fault]);
        }
        ls_manifest_release(object);
    }
    ls_manifest_release(known);
}

/* --- what is refused --------------------------------------------------------------------------------------------- */

static ls_result decode_golden(const uint8_t *bytes, size_t length, ls_error *error)
{
    uint8_t *exact = malloc(length + 1);
    memcpy(exact, bytes, length);
    ls_manifest *decoded = NULL;
    ls_result result = ls_manifest_decode(exact, length, 4, &decoded, error);
    CU_ASSERT_EQUAL(decoded != NULL, result == LS_OK);
    ls_manifest_release(decoded);
    free(exact);
    return result;
}

static void test_every_flipped_bit(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_manifest *version[5];
    golden_history(version);
    const size_t tail_bytes = 96 + 2 * 48 + 48;
    for (size_t bit = 0; bit < 8 * GOLDEN_BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_EQUAL(decode_golden(bytes, GOLDEN_BYTES, NULL), LS_ERROR_CORRUPT);
        ls_manifest *decoded = NULL;
        uint64_t needed;
        ls_result result = ls_manifest_decode_tail(bytes + GOLDEN_BYTES - tail_bytes, tail_bytes, GOLDEN_BYTES, 4,
                                                   version[2], &decoded, &needed, NULL);
        CU_ASSERT_EQUAL(result, bit / 8 < GOLDEN_BYTES - tail_bytes ? LS_OK : LS_ERROR_CORRUPT);
        ls_manifest_release(decoded);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    release_history(version, 5);
}

static void test_cut_and_extended(void)
{
    uint8_t bytes[GOLDEN_BYTES + 1] = {0};
    golden_bytes(bytes);
    for (size_t length = 0; length < GOLDEN_BYTES; length++) {
        CU_ASSERT_EQUAL(decode_golden(bytes, length, NULL), LS_ERROR_CORRUPT); /* the end lost */
        CU_ASSERT_EQUAL(decode_golden(bytes + GOLDEN_BYTES - length, length, NULL),
                        LS_ERROR_CORRUPT); /* the beginning */
    }
    CU_ASSERT_EQUAL(decode_golden(bytes, GOLDEN_BYTES + 1, NULL), LS_ERROR_CORRUPT);
    memmove(bytes + 1, bytes, GOLDEN_BYTES);
    CU_ASSERT_EQUAL(decode_golden(bytes, GOLDEN_BYTES + 1, NULL), LS_ERROR_CORRUPT);
}

/* One number is overwritten and the checksums are made right again: only the checks behind them can refuse. */
static void test_contradictions(void)
{
    enum { F = GOLDEN_FOOTER_AT, R = 128, E = 32 };
    static const struct {
        size_t at;
        size_t bytes;
        uint64_t value;
        ls_result result;
        const char *named;
    } cases[] = {
        {8, 2, 2, LS_ERROR_CORRUPT, "header (offset 8"},
        {10, 2, 9, LS_ERROR_CORRUPT, "header (offset 8"},
        {12, 2, 40, LS_ERROR_CORRUPT, "header (offset 8"},
        {14, 2, 56, LS_ERROR_CORRUPT, "header (offset 8"},
        {16, 8, 5, LS_ERROR_CORRUPT, "header (offset 8"},
        {24, 4, 1, LS_ERROR_CORRUPT, "offset 24"},
        {E + 24, 8, 110, LS_ERROR_CORRUPT, "step 1 at offset 32"},  /* source end = source begin */
        {E + 48 + 44, 4, 0xffffffff, LS_OK, NULL},                  /* a footer still shorter than its object */
        {E + 44, 4, 2001, LS_ERROR_CORRUPT, "step 1 at offset 32"}, /* a footer longer than its object */
        {R + 16, 8, 5, LS_ERROR_CORRUPT, "row 0 at offset 128"},    /* changed by a later version */
        {R + 44, 4, 2, LS_ERROR_CORRUPT, "offset 172"},             /* an unknown flag */
        {R + 48, 8, 7, LS_ERROR_CORRUPT, "producer 7 has two rows"},
        {F, 8, 5, LS_ERROR_CORRUPT, "version 5 at offset 224, expected 4"},
        {F, 8, 0, LS_ERROR_CORRUPT, "version 0 at offset 224"},
        {F + 24, 8, 0, LS_ERROR_CORRUPT, "low watermark 0"},
        {F + 32, 8, 0, LS_ERROR_CORRUPT, "2 entries at offset 272"},            /* trim step */
        {F + 32, 8, 4, LS_ERROR_CORRUPT, "2 entries at offset 272"},            /* trim step above the end */
        {F + 40, 8, 4, LS_ERROR_CORRUPT, "2 entries at offset 272"},            /* end step */
        {F + 48, 8, 1, LS_ERROR_CORRUPT, "do not make an object of 320 bytes"}, /* entry count */
        {F + 48, 8, UINT64_MAX, LS_ERROR_CORRUPT, "do not make an object"},
        {F + 48, 8, 2 + (UINT64_C(1) << 60), LS_ERROR_CORRUPT, "do not make an object"}, /* 48 n is right modulo 2^64 */
        {F + 56, 4, 3, LS_ERROR_CORRUPT, "3 rows"},
        {F + 56, 4, 0xffffffff, LS_ERROR_CORRUPT, "4294967295 rows"},
        {F + 72, 2, 80, LS_ERROR_CORRUPT, "records of 80, 48, 48 and 96"},
        {F + 74, 2, 0, LS_ERROR_CORRUPT, "records of 32, 0, 48 and 96"},
        {F + 76, 2, 0, LS_ERROR_CORRUPT, "records of 32, 48, 0 and 96"},
        {F + 78, 2, 95, LS_ERROR_CORRUPT, "footer of 95 bytes at offset 302"},
        {F + 78, 2, 0xffff, LS_ERROR_CORRUPT, "footer of 65535 bytes"},
        {F + 80, 2, 0, LS_ERROR_CORRUPT, "format version 0"},
        {F + 82, 2, 0, LS_ERROR_CORRUPT, "minimum reader version 0"},
        {F + 82, 2, 2, LS_ERROR_CORRUPT, "minimum reader version 2"}, /* above its own format version */
        {F + 80, 4, 0x00020002, LS_ERROR_VERSION, "from reader version 2 on (offset 306)"},
        {F + 80, 4, 0xffffffff, LS_ERROR_VERSION, "use a newer program"},
        {F + 95, 1, '2', LS_ERROR_CORRUPT, "no \"LSMFOOT1\" at offset 312"},
        {0, 1, 'X', LS_ERROR_CORRUPT, "no \"LSMANIF1\" at offset 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[GOLDEN_BYTES];
        golden_bytes(bytes);
        for (size_t b = 0; b < cases[i].bytes; b++) bytes[cases[i].at + b] = (uint8_t)(cases[i].value >> (8 * b));
        ls_seal_manifest(bytes, GOLDEN_BYTES);
        ls_error error = {""};
        CU_ASSERT_EQUAL(decode_golden(bytes, GOLDEN_BYTES, &error), cases[i].result);
        if (cases[i].named == NULL || mentions(&error, cases[i].named)) continue;
        CU_FAIL("the message does not say what was wrong");
        fprintf(stderr, "\n  case %zu: \"%s\" is not in: %s\n", i, cases[i].named, error.text);
    }
}

/* The step overflow that only exact arithmetic finds: trim + count wraps around to a small end. */
static void test_wrapped_steps(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_store_u64(bytes + GOLDEN_FOOTER_AT + 24, UINT64_MAX);
    ls_store_u64(bytes + GOLDEN_FOOTER_AT + 32, UINT64_MAX);
    ls_store_u64(bytes + GOLDEN_FOOTER_AT + 40, 1);
    ls_seal_manifest(bytes, GOLDEN_BYTES);
    ls_error error;
    CU_ASSERT_EQUAL(decode_golden(bytes, GOLDEN_BYTES, &error), LS_ERROR_CORRUPT);
    CU_ASSERT(mentions(&error, "expected end step 1 - trim step 18446744073709551615"));
}

static void test_expected_version(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_manifest *decoded = NULL;
    uint64_t needed;
    CU_ASSERT_EQUAL(ls_manifest_decode(bytes, GOLDEN_BYTES, 3, &decoded, NULL), LS_ERROR_CORRUPT);
    CU_ASSERT_EQUAL(ls_manifest_decode_tail(bytes, GOLDEN_BYTES, GOLDEN_BYTES, 5, NULL, &decoded, &needed, NULL),
                    LS_ERROR_CORRUPT);
    CU_ASSERT_EQUAL(ls_manifest_decode_tail(bytes, GOLDEN_BYTES, GOLDEN_BYTES - 1, 4, NULL, &decoded, &needed, NULL),
                    LS_ERROR_INVALID);
    CU_ASSERT_PTR_NULL(decoded);
    CU_ASSERT_EQUAL(ls_manifest_decode(bytes, GOLDEN_BYTES, 0, &decoded, NULL), LS_OK);
    ls_manifest_release(decoded);
}

/* A format 2 as this format promises to survive: every record longer, flags and reserved bytes in use. */
static void test_longer_records(void)
{
    uint8_t golden[GOLDEN_BYTES], bytes[40 + 2 * 56 + 2 * 72 + 108];
    golden_bytes(golden);
    memset(bytes, 0xee, sizeof bytes);
    memcpy(bytes, golden, 32);
    for (size_t i = 0; i < 2; i++) {
        memcpy(bytes + 40 + 56 * i, golden + 32 + 48 * i, 48);
        memcpy(bytes + 40 + 112 + 72 * i, golden + 128 + 48 * i, 48);
        ls_store_u32(bytes + 40 + 112 + 72 * i + 44, i == 1 ? 0x81 : 0x80);
    }
    uint8_t *footer = bytes + 40 + 112 + 144;
    memcpy(footer, golden + GOLDEN_FOOTER_AT, 72);
    memcpy(footer + 84, golden + GOLDEN_FOOTER_AT + 72, 24);
    const uint16_t sizes[6] = {40, 56, 72, 108, 2, 1};
    for (size_t i = 0; i < 6; i++) ls_store_u16(footer + 84 + 2 * i, sizes[i]);
    ls_store_u16(bytes + 8, 2);
    ls_store_u16(bytes + 12, 40);
    ls_store_u16(bytes + 14, 56);
    ls_store_u32(bytes + 24, 5);
    ls_seal_manifest(bytes, sizeof bytes);

    ls_manifest *version[5], *decoded = NULL;
    golden_history(version);
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(bytes, sizeof bytes, 4, &decoded, &error), LS_OK);
    CU_ASSERT(same(decoded, version[4]));
    ls_manifest_release(decoded);

    const size_t enough = 108 + 144 + 56;
    uint64_t needed = 0;
    CU_ASSERT_EQUAL(
        ls_manifest_decode_tail(bytes + sizeof bytes - 96, 96, sizeof bytes, 4, version[2], &decoded, &needed, NULL),
        LS_OK);
    CU_ASSERT_EQUAL(needed, 108);
    CU_ASSERT_EQUAL(
        ls_manifest_decode_tail(bytes + sizeof bytes - 108, 108, sizeof bytes, 4, version[2], &decoded, &needed, NULL),
        LS_OK);
    CU_ASSERT_EQUAL(needed, enough);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode_tail(bytes + sizeof bytes - enough, enough, sizeof bytes, 4, version[2],
                                                  &decoded, &needed, NULL),
                          LS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(decoded);
    CU_ASSERT(same(decoded, version[4]));
    ls_manifest_release(decoded);
    release_history(version, 5);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static ls_result decode_either(bool tail, const uint8_t *bytes, const ls_manifest *known, ls_manifest **decoded,
                               ls_error *error)
{
    uint64_t needed = 0;
    if (tail) return ls_manifest_decode_tail(bytes, GOLDEN_BYTES, GOLDEN_BYTES, 4, known, decoded, &needed, error);
    return ls_manifest_decode(bytes, GOLDEN_BYTES, 4, decoded, error);
}

static void test_out_of_memory(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_manifest *version[5];
    golden_history(version);
    for (int tail = 0; tail < 2; tail++) {
        int64_t successes = 0;
        for (;; successes++) {
            ls_manifest *decoded = NULL;
            ls_error error = {""};
            ls_fail_allocations_after(successes);
            ls_result result = decode_either(tail, bytes, version[2], &decoded, &error);
            ls_fail_allocations_after(-1);
            if (result == LS_OK) {
                CU_ASSERT(same(decoded, version[4]));
                ls_manifest_release(decoded);
                break;
            }
            CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
            CU_ASSERT_PTR_NULL(decoded);
            CU_ASSERT(mentions(&error, "out of memory"));
            if (successes > 100) break;
        }
        CU_ASSERT(successes >= 5 && successes < 100); /* rows, producers, entries, version, chunk, row tree */
    }
    release_history(version, 5);
}

LS_SUITE(codec, {"golden bytes", test_golden_bytes}, {"chain", test_chain}, {"round trips at random", test_round_trips},
         {"empty, many rows, many entries", test_extremes}, {"unencodable", test_unencodable},
         {"tail: every known version", test_tail_of_every_version}, {"tail: every length", test_tail_of_every_length},
         {"tail: outlives what was known", test_tail_outlives_known}, {"tail: other histories", test_other_histories},
         {"tail: shrunk numbers", test_shrunk_numbers}, {"every flipped bit", test_every_flipped_bit},
         {"cut and extended", test_cut_and_extended}, {"contradictions behind right checksums", test_contradictions},
         {"wrapped steps", test_wrapped_steps}, {"expected version", test_expected_version},
         {"longer records of a later format", test_longer_records}, {"out of memory", test_out_of_memory})
