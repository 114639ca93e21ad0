/* test_tgb.c - TGB objects: the format itself (golden bytes), round trips, and everything refused. */
#include "manifest/random.h"
#include "manifest/tgb.h"
#include "tests/seal.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Put together field by field by a script that shares no code with tgb.c: 2 x 2 slices "abc", "", "de", "fghij". */
static const char golden_hex[] = "6162636465666768696a00000000000000000300000000000000b73f4b360000"
                                 "0000030000000000000000000000000000000000000000000000030000000000"
                                 "0000020000000000000076b4406b000000000500000000000000050000000000"
                                 "000019bb118600000000070000000000000001000000000000006e0000000000"
                                 "00008200000000000000ba00000000000000030000000200000002000000a718"
                                 "fd69b0000000180050000100010065837c914c53544742454e44";
#define GOLDEN_BYTES        186u
#define GOLDEN_FOOTER_BYTES 176u
static const char *const golden_slices[] = {"abc", "", "de", "fghij"};
static const uint64_t golden_lengths[] = {3, 0, 2, 5};
static const ls_tgb_identity golden_identity = {7, 1, 110, 130, 3};
static const ls_entry golden_entry = {7, 1, 110, 130, GOLDEN_BYTES, 3, GOLDEN_FOOTER_BYTES};

static void golden_bytes(uint8_t bytes[GOLDEN_BYTES])
{
    CU_ASSERT_EQUAL_FATAL(sizeof golden_hex - 1, 2 * GOLDEN_BYTES);
    for (size_t i = 0; i < GOLDEN_BYTES; i++) {
        char digits[3] = {golden_hex[2 * i], golden_hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static void fill_golden(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    uint32_t *calls = context;
    CU_ASSERT_EQUAL(2 * data_rank + context_rank, *calls);
    CU_ASSERT_EQUAL(length, golden_lengths[*calls]);
    memcpy(bytes, golden_slices[(*calls)++], (size_t)length);
}

/* --- the format -------------------------------------------------------------------------------------------------- */

static void test_golden_bytes(void)
{
    uint8_t golden[GOLDEN_BYTES], bytes[GOLDEN_BYTES];
    golden_bytes(golden);
    uint32_t calls = 0;
    CU_ASSERT_EQUAL(ls_tgb_encode(&golden_identity, 2, 2, golden_lengths, fill_golden, &calls, bytes, sizeof bytes),
                    LS_OK);
    CU_ASSERT_EQUAL(calls, 4);
    CU_ASSERT_EQUAL(memcmp(bytes, golden, GOLDEN_BYTES), 0);

    ls_tgb_index *index = NULL;
    const uint8_t *footer = golden + GOLDEN_BYTES - GOLDEN_FOOTER_BYTES;
    CU_ASSERT_EQUAL_FATAL(ls_tgb_decode_footer(footer, GOLDEN_FOOTER_BYTES, GOLDEN_BYTES, &index, NULL, NULL), LS_OK);
    CU_ASSERT_EQUAL(index->data_ranks, 2);
    CU_ASSERT_EQUAL(index->context_ranks, 2);
    CU_ASSERT_EQUAL(ls_tgb_check_entry(index, &golden_entry, NULL), LS_OK);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const ls_slice *slice = ls_tgb_slice(index, i / 2, i % 2);
        CU_ASSERT_PTR_NOT_NULL_FATAL(slice);
        CU_ASSERT(slice->data_rank == i / 2 && slice->context_rank == i % 2);
        CU_ASSERT_EQUAL(slice->offset, offset);
        CU_ASSERT_EQUAL(slice->bytes, golden_lengths[i]);
        CU_ASSERT_EQUAL(ls_tgb_verify_slice(slice, golden + slice->offset, (size_t)slice->bytes, NULL), LS_OK);
        offset += golden_lengths[i];
    }
    CU_ASSERT_PTR_NULL(ls_tgb_slice(index, 2, 0));
    CU_ASSERT_PTR_NULL(ls_tgb_slice(index, 0, 2));
    ls_free(index);
}

/* In pieces of every size the footer is the same. */
static void test_streaming(void)
{
    uint8_t golden[GOLDEN_BYTES], footer[GOLDEN_FOOTER_BYTES];
    golden_bytes(golden);
    for (size_t piece = 1; piece <= 5; piece++) {
        ls_tgb_writer writer;
        uint64_t total = 0;
        CU_ASSERT_EQUAL_FATAL(ls_tgb_begin(&writer, &golden_identity, 2, 2, footer, sizeof footer), LS_OK);
        for (size_t i = 0; i < 4; i++) {
            CU_ASSERT_EQUAL(ls_tgb_finish(&writer, &total), LS_ERROR_INVALID); /* slices are missing */
            for (size_t done = 0; done < golden_lengths[i]; done += piece) {
                size_t left = (size_t)golden_lengths[i] - done;
                ls_tgb_add(&writer, golden_slices[i] + done, left < piece ? left : piece);
            }
            CU_ASSERT_EQUAL(ls_tgb_end_slice(&writer), LS_OK);
        }
        CU_ASSERT_EQUAL(ls_tgb_end_slice(&writer), LS_ERROR_INVALID);
        CU_ASSERT_EQUAL(ls_tgb_finish(&writer, &total), LS_OK);
        CU_ASSERT_EQUAL(total, GOLDEN_BYTES);
        CU_ASSERT_EQUAL(memcmp(footer, golden + GOLDEN_BYTES - GOLDEN_FOOTER_BYTES, GOLDEN_FOOTER_BYTES), 0);
        ls_tgb_add(&writer, "x", 1); /* bytes that belong to no slice */
        CU_ASSERT_EQUAL(ls_tgb_finish(&writer, &total), LS_ERROR_INVALID);
    }
}

static void test_sizes(void)
{
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(1, 1), 104);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(2, 2), GOLDEN_FOOTER_BYTES);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(167, 1), 4088);
    CU_ASSERT(ls_tgb_footer_bytes(167, 1) <= LS_TGB_SUFFIX_BYTES && ls_tgb_footer_bytes(168, 1) > LS_TGB_SUFFIX_BYTES);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(1024, 1024), (24u << 20) + 80);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(1024, 1025), 0);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(0, 4), 0);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(4, 0), 0);
    CU_ASSERT_EQUAL(ls_tgb_footer_bytes(65536, 65536), 0); /* the product is 0 modulo 2^32 */
    uint64_t total = 0, lengths[2] = {INT64_MAX - 128, 0};
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(2, 2, golden_lengths, &total), LS_OK);
    CU_ASSERT_EQUAL(total, GOLDEN_BYTES);
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(1, 2, lengths, &total), LS_OK);
    CU_ASSERT_EQUAL(total, INT64_MAX);
    lengths[1] = 1;
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(1, 2, lengths, &total), LS_ERROR_LIMIT);
    lengths[1] = UINT64_MAX;
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(1, 2, lengths, &total), LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(0, 2, lengths, &total), LS_ERROR_LIMIT);
}

static void test_callers_mistakes(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    ls_tgb_writer writer;
    uint32_t calls = 0;
    const ls_tgb_identity empty = {7, 1, 110, 110, 3};
    CU_ASSERT_EQUAL(ls_tgb_encode(&golden_identity, 2, 2, golden_lengths, fill_golden, &calls, bytes, GOLDEN_BYTES - 1),
                    LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_tgb_encode(&golden_identity, 0, 2, golden_lengths, fill_golden, &calls, bytes, GOLDEN_BYTES),
                    LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(ls_tgb_encode(&empty, 2, 2, golden_lengths, fill_golden, &calls, bytes, GOLDEN_BYTES),
                    LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(calls, 0);
    CU_ASSERT_EQUAL(ls_tgb_begin(&writer, &golden_identity, 2, 2, bytes, GOLDEN_FOOTER_BYTES - 1), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_tgb_begin(&writer, &golden_identity, 1u << 20, 2, bytes, SIZE_MAX), LS_ERROR_LIMIT);
}

/* --- round trips ------------------------------------------------------------------------------------------------- */

typedef struct content {
    ls_random random;
} content;

static void fill_random(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    (void)data_rank, (void)context_rank;
    content *c = context;
    for (uint64_t i = 0; i < length; i++) bytes[i] = (uint8_t)ls_random_next(&c->random);
}

static void check_grid(ls_random *random, uint32_t data_ranks, uint32_t context_ranks)
{
    uint32_t slices = data_ranks * context_ranks;
    uint64_t *lengths = malloc(slices * sizeof *lengths), total = 0, needed = 0;
    for (uint32_t i = 0; i < slices; i++)
        lengths[i] = ls_random_below(random, 3) == 0 ? 0 : ls_random_below(random, 300);
    CU_ASSERT_EQUAL_FATAL(ls_tgb_total_bytes(data_ranks, context_ranks, lengths, &total), LS_OK);
    uint8_t *bytes = malloc((size_t)total);
    content c = {*random};
    CU_ASSERT_EQUAL_FATAL(
        ls_tgb_encode(&golden_identity, data_ranks, context_ranks, lengths, fill_random, &c, bytes, (size_t)total),
        LS_OK);
    ls_tgb_index *index = NULL;
    size_t suffix = total < LS_TGB_SUFFIX_BYTES ? (size_t)total : LS_TGB_SUFFIX_BYTES;
    CU_ASSERT_EQUAL(ls_tgb_decode_footer(bytes + total - suffix, suffix, total, &index, &needed, NULL), LS_OK);
    if (index == NULL) {
        CU_ASSERT_EQUAL(needed, ls_tgb_footer_bytes(data_ranks, context_ranks));
        CU_ASSERT_EQUAL_FATAL(
            ls_tgb_decode_footer(bytes + total - needed, (size_t)needed, total, &index, &needed, NULL), LS_OK);
    }
    uint64_t offset = 0;
    for (uint32_t i = 0; i < slices; i++) {
        const ls_slice *slice = ls_tgb_slice(index, i / context_ranks, i % context_ranks);
        CU_ASSERT(slice->offset == offset && slice->bytes == lengths[i]);
        CU_ASSERT_EQUAL(ls_tgb_verify_slice(slice, bytes + slice->offset, (size_t)slice->bytes, NULL), LS_OK);
        offset += lengths[i];
    }
    ls_free(index);
    free(bytes);
    free(lengths);
}

static void test_round_trips(void)
{
    ls_random random = ls_random_open(5, 0, LS_RANDOM_TEST, 0);
    for (int i = 0; i < 40; i++) {
        uint32_t data_ranks = 1 + (uint32_t)ls_random_below(&random, 9);
        check_grid(&random, data_ranks, 1 + (uint32_t)ls_random_below(&random, 5));
    }
    check_grid(&random, 64, 8);
    check_grid(&random, 1, 400);
}

/* --- what is refused --------------------------------------------------------------------------------------------- */

/* Decodes a suffix that lies in memory of its own, so that the sanitizer sees reads outside it. */
static ls_result decode_suffix(const uint8_t *suffix, size_t length, uint64_t object_bytes, ls_tgb_index **index,
                               uint64_t *needed, ls_error *error)
{
    uint8_t *exact = malloc(length + 1);
    memcpy(exact, suffix, length);
    ls_result result = ls_tgb_decode_footer(exact, length, object_bytes, index, needed, error);
    free(exact);
    return result;
}

static void test_short_suffixes(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    for (size_t length = 0; length <= GOLDEN_BYTES; length++) {
        ls_tgb_index *index = NULL;
        uint64_t needed = 99;
        CU_ASSERT_EQUAL(decode_suffix(bytes + GOLDEN_BYTES - length, length, GOLDEN_BYTES, &index, &needed, NULL),
                        LS_OK);
        CU_ASSERT_EQUAL(index != NULL, length >= GOLDEN_FOOTER_BYTES);
        CU_ASSERT_EQUAL(needed, length < 24                    ? 104
                                : length < 80                  ? 80
                                : length < GOLDEN_FOOTER_BYTES ? GOLDEN_FOOTER_BYTES
                                                               : 0);
        ls_free(index);
    }
    ls_tgb_index *index = NULL;
    CU_ASSERT_EQUAL(ls_tgb_decode_footer(bytes, GOLDEN_BYTES, GOLDEN_BYTES - 1, &index, NULL, NULL), LS_ERROR_INVALID);
}

static void test_every_flipped_bit(void)
{
    uint8_t golden[GOLDEN_BYTES], bytes[GOLDEN_BYTES];
    golden_bytes(golden);
    ls_tgb_index *intact = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_tgb_decode_footer(golden, GOLDEN_BYTES, GOLDEN_BYTES, &intact, NULL, NULL), LS_OK);
    for (size_t bit = 0; bit < 8 * GOLDEN_BYTES; bit++) {
        memcpy(bytes, golden, GOLDEN_BYTES);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool in_footer = bit / 8 >= GOLDEN_BYTES - GOLDEN_FOOTER_BYTES;
        ls_tgb_index *index = NULL;
        CU_ASSERT_EQUAL(decode_suffix(bytes, GOLDEN_BYTES, GOLDEN_BYTES, &index, NULL, NULL),
                        in_footer ? LS_ERROR_CORRUPT : LS_OK);
        CU_ASSERT_EQUAL(index == NULL, in_footer);
        ls_free(index);
        int damaged = 0;
        for (uint32_t i = 0; i < 4; i++) {
            const ls_slice *slice = &intact->slices[i];
            damaged +=
                ls_tgb_verify_slice(slice, bytes + slice->offset, (size_t)slice->bytes, NULL) == LS_ERROR_CORRUPT;
        }
        CU_ASSERT_EQUAL(damaged, in_footer ? 0 : 1);
    }
    ls_error error;
    CU_ASSERT_EQUAL(ls_tgb_verify_slice(&intact->slices[0], golden, 2, &error), LS_ERROR_CORRUPT);
    CU_ASSERT_EQUAL(ls_tgb_verify_slice(&intact->slices[0], golden, 4, &error), LS_ERROR_CORRUPT);
    ls_free(intact);
}

static void test_cut_and_extended(void)
{
    uint8_t bytes[GOLDEN_BYTES + 1] = {0};
    golden_bytes(bytes);
    ls_tgb_index *index = NULL;
    for (size_t length = 0; length < GOLDEN_BYTES; length++) {
        CU_ASSERT_EQUAL(decode_suffix(bytes, length, length, &index, NULL, NULL), LS_ERROR_CORRUPT);
        CU_ASSERT_EQUAL(decode_suffix(bytes + GOLDEN_BYTES - length, length, length, &index, NULL, NULL),
                        LS_ERROR_CORRUPT);
    }
    CU_ASSERT_EQUAL(decode_suffix(bytes, GOLDEN_BYTES + 1, GOLDEN_BYTES + 1, &index, NULL, NULL), LS_ERROR_CORRUPT);
    memmove(bytes + 1, bytes, GOLDEN_BYTES);
    CU_ASSERT_EQUAL(decode_suffix(bytes, GOLDEN_BYTES + 1, GOLDEN_BYTES + 1, &index, NULL, NULL), LS_ERROR_CORRUPT);
    CU_ASSERT_PTR_NULL(index);
}

/* One number is overwritten and the checksums are made right again: only the checks behind them can refuse. */
static void test_contradictions(void)
{
    enum { R = 10, T = 106 };
    static const struct {
        size_t at;
        size_t bytes;
        uint64_t value;
        ls_result result;
        const char *named;
    } cases[] = {
        {R, 8, 1, LS_ERROR_CORRUPT, "slice 0 at offset 10"},
        {R + 8, 8, 4, LS_ERROR_CORRUPT, "slice 1 at offset 34"}, /* slice 0 overlaps slice 1 */
        {R + 8, 8, UINT64_MAX, LS_ERROR_CORRUPT, "slice 0 at offset 10"},
        {R + 24, 8, 4, LS_ERROR_CORRUPT, "slice 1 at offset 34"},     /* a gap */
        {R + 72 + 8, 8, 6, LS_ERROR_CORRUPT, "slice 3 at offset 82"}, /* into the footer */
        {R + 72 + 8, 8, UINT64_MAX - 4, LS_ERROR_CORRUPT,
         "slice 3 at offset 82"}, /* offset + length wraps around to 0 */
        {R + 72 + 8, 8, 4, LS_ERROR_CORRUPT, "end at 9, expected 10"},
        {R + 20, 4, 1, LS_ERROR_CORRUPT, "reserved bytes at offset 30"},
        {T + 24, 8, 110, LS_ERROR_CORRUPT, "source offsets 110 to 110 at offset 122"},
        {T + 32, 8, 187, LS_ERROR_CORRUPT, "object of 187 bytes (offset 138)"},
        {T + 44, 4, 0, LS_ERROR_CORRUPT, "grid of 0 x 2"},
        {T + 44, 4, 1, LS_ERROR_CORRUPT, "footer of 176 bytes"},
        {T + 44, 8, UINT64_C(0x8000000200000002), LS_ERROR_CORRUPT, "grid of 2 x 2147483650"}, /* 4 modulo 2^32 */
        {T + 56, 4, 177, LS_ERROR_CORRUPT, "footer of 177 bytes at offset 162"},
        {T + 56, 4, 0, LS_ERROR_CORRUPT, "footer of 0 bytes"},
        {T + 60, 2, 23, LS_ERROR_CORRUPT, "records of 23 bytes"},
        {T + 60, 2, 25, LS_ERROR_CORRUPT, "records of 25 bytes"},
        {T + 62, 2, 79, LS_ERROR_CORRUPT, "trailer of 79 bytes at offset 168"},
        {T + 62, 2, 0xffff, LS_ERROR_CORRUPT, "trailer of 65535 bytes"},
        {T + 64, 2, 0, LS_ERROR_CORRUPT, "format version 0"},
        {T + 66, 2, 0, LS_ERROR_CORRUPT, "minimum reader version 0"},
        {T + 66, 2, 2, LS_ERROR_CORRUPT, "minimum reader version 2"},
        {T + 64, 4, 0x00020002, LS_ERROR_VERSION, "from reader version 2 on (offset 172)"},
        {T + 79, 1, 'd', LS_ERROR_CORRUPT, "no \"LSTGBEND\" at offset 178"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[GOLDEN_BYTES];
        golden_bytes(bytes);
        for (size_t b = 0; b < cases[i].bytes; b++) bytes[cases[i].at + b] = (uint8_t)(cases[i].value >> (8 * b));
        ls_seal_tgb(bytes, GOLDEN_BYTES);
        ls_error error = {""};
        ls_tgb_index *index = NULL;
        CU_ASSERT_EQUAL(decode_suffix(bytes, GOLDEN_BYTES, GOLDEN_BYTES, &index, NULL, &error), cases[i].result);
        CU_ASSERT_PTR_NULL(index);
        if (strstr(error.text, cases[i].named) != NULL) continue;
        CU_FAIL("the message does not say what was wrong");
        fprintf(stderr, "\n  case %zu: \"%s\" is not in: %s\n", i, cases[i].named, error.text);
    }
}

/* An intact object under a wrong name. */
static void test_entry_differs(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_tgb_index *index = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_tgb_decode_footer(bytes, GOLDEN_BYTES, GOLDEN_BYTES, &index, NULL, NULL), LS_OK);
    static const char *const named[] = {"producer 7",       "sequence 1", "source begin",    "source end",
                                        "object bytes 186", "epoch 3",    "footer bytes 176"};
    for (size_t field = 0; field < 7; field++) {
        ls_entry entry = golden_entry;
        entry.producer += field == 0;
        entry.sequence += field == 1;
        entry.source_begin += field == 2;
        entry.source_end += field == 3;
        entry.size_bytes += field == 4;
        entry.epoch += field == 5;
        entry.footer_bytes += field == 6;
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_tgb_check_entry(index, &entry, &error), LS_ERROR_CORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, named[field]));
    }
    ls_free(index);
}

/* A format 2 as this format promises to survive: longer records, a longer trailer, reserved bytes in use. */
static void test_longer_records(void)
{
    uint8_t golden[GOLDEN_BYTES], bytes[10 + 4 * 32 + 88];
    golden_bytes(golden);
    memset(bytes, 0xee, sizeof bytes);
    memcpy(bytes, golden, 10);
    for (size_t i = 0; i < 4; i++) {
        memcpy(bytes + 10 + 32 * i, golden + 10 + 24 * i, 24);
        ls_store_u32(bytes + 10 + 32 * i + 20, 1);
    }
    uint8_t *trailer = bytes + 10 + 4 * 32;
    memcpy(trailer, golden + 106, 56);
    memcpy(trailer + 64, golden + 106 + 56, 24);
    ls_store_u64(trailer + 32, sizeof bytes);
    ls_store_u32(trailer + 64, 4 * 32 + 88);
    ls_store_u16(trailer + 68, 32);
    ls_store_u16(trailer + 70, 88);
    ls_store_u16(trailer + 72, 2);
    ls_seal_tgb(bytes, sizeof bytes);
    ls_tgb_index *index = NULL;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(decode_suffix(bytes + 10, 4 * 32 + 88, sizeof bytes, &index, NULL, &error), LS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(index);
    CU_ASSERT_EQUAL(index->identity.source_end, 130);
    CU_ASSERT_EQUAL(ls_tgb_slice(index, 1, 1)->offset, 5);
    CU_ASSERT_EQUAL(ls_tgb_verify_slice(ls_tgb_slice(index, 1, 1), bytes + 5, 5, NULL), LS_OK);
    ls_free(index);
}

static void test_out_of_memory(void)
{
    uint8_t bytes[GOLDEN_BYTES];
    golden_bytes(bytes);
    ls_tgb_index *index = NULL;
    ls_error error = {""};
    ls_fail_allocations_after(0);
    CU_ASSERT_EQUAL(ls_tgb_decode_footer(bytes, GOLDEN_BYTES, GOLDEN_BYTES, &index, NULL, &error), LS_ERROR_MEMORY);
    ls_fail_allocations_after(1);
    CU_ASSERT_PTR_NULL(index);
    CU_ASSERT_EQUAL(ls_tgb_decode_footer(bytes, GOLDEN_BYTES, GOLDEN_BYTES, &index, NULL, &error), LS_OK);
    ls_fail_allocations_after(-1);
    ls_free(index);
}

LS_SUITE(tgb, {"golden bytes", test_golden_bytes}, {"streaming", test_streaming}, {"sizes and limits", test_sizes},
         {"a caller's mistakes", test_callers_mistakes}, {"round trips at random", test_round_trips},
         {"short suffixes", test_short_suffixes}, {"every flipped bit", test_every_flipped_bit},
         {"cut and extended", test_cut_and_extended}, {"contradictions behind right checksums", test_contradictions},
         {"an entry that names another object", test_entry_differs},
         {"longer records of a later format", test_longer_records}, {"out of memory", test_out_of_memory})
