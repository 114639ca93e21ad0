/* bench_codec.c - bytes a second: checksums, manifests encoded and decoded, tails, TGB objects; beside copying as the
 * limit.
 *
 * Manifests are grown as a lake grows them, by commits of four entries from 16 producers, so the encoder meets a long
 * chain of small chunks. A decoder's limit is malloc, memcpy and free of as many bytes: a large one pays for new pages
 * above all.
 */
#include "manifest/codec.h"
#include "manifest/crc32c.h"
#include "manifest/tgb.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK_BYTES (96u << 20) /* what one contender handles in one round, whatever the object's size */
#define PRODUCERS  16u
#define BATCHES    4u

typedef struct work {
    uint8_t *bytes, *copy;
    size_t length;
    ls_manifest *manifest;
} work;

static uint64_t repetitions(const work *w)
{
    return WORK_BYTES / w->length + 1;
}

static void *bytes_new(size_t length)
{
    void *bytes = malloc(length);
    if (bytes == NULL) abort();
    return memset(bytes, 1, length);
}

/* --- the limits -----------------------------------------------------------------------------------------------------
 * */

static double copy_bytes(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) {
        memcpy(w->copy, w->bytes, w->length);
        ls_bench_keep(w->copy[i % w->length]);
    }
    return (double)(w->length * repetitions(w));
}

static double copy_to_new_memory(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) {
        uint8_t *copy = malloc(w->length);
        if (copy == NULL) abort();
        memcpy(copy, w->bytes, w->length);
        ls_bench_keep(copy[i % w->length]);
        free(copy);
    }
    return (double)(w->length * repetitions(w));
}

/* --- checksums ------------------------------------------------------------------------------------------------------
 * */

static double checksum(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) ls_bench_keep(ls_crc32c((uint32_t)i, w->bytes, w->length));
    return (double)(w->length * repetitions(w));
}

static double checksum_portable(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) ls_bench_keep(ls_crc32c_portable((uint32_t)i, w->bytes, w->length));
    return (double)(w->length * repetitions(w));
}

static void compare_checksums(size_t length)
{
    work w = {.bytes = bytes_new(length), .copy = bytes_new(length), .length = length};
    const ls_bench_work works[] = {checksum, checksum_portable, copy_bytes};
    void *const states[] = {&w, &w, &w};
    double rates[3];
    ls_bench_rates(works, states, 3, rates);
    char label[64];
    snprintf(label, sizeof label, "CRC32C of %zu bytes, %s", length, ls_crc32c_method());
    ls_bench_row(label, rates[0] / 1e9, "GB/s", "memcpy", rates[0] / rates[2]);
    ls_bench_row("  by tables", rates[1] / 1e9, "GB/s", "memcpy", rates[1] / rates[2]);
    free(w.bytes);
    free(w.copy);
}

/* --- manifests ------------------------------------------------------------------------------------------------------
 * */

static ls_manifest *grown(uint32_t commits)
{
    ls_manifest *manifest = ls_manifest_new_empty();
    for (uint32_t i = 0; i < commits; i++) {
        ls_entry entries[BATCHES];
        for (uint32_t k = 0; k < BATCHES; k++) {
            entries[k] = (ls_entry){i % PRODUCERS, i + k, i + k, i + k + 1, 1u << 24, 1, 1616};
        }
        ls_commit commit = {.id = {i % PRODUCERS, i}, .slot = i < PRODUCERS ? LS_NO_SLOT : i % PRODUCERS,
                            .entries = entries, .entry_count = BATCHES,
                            .row = {.producer = i % PRODUCERS, .next_source_offset = i + BATCHES, .epoch = 1}};
        ls_manifest *child = NULL;
        if (ls_manifest_append(manifest, &commit, &child) != LS_OK) abort();
        ls_manifest_release(manifest);
        manifest = child;
    }
    return manifest;
}

static double encode(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) {
        if (ls_manifest_encode(w->manifest, w->bytes, w->length) != LS_OK) abort();
    }
    return (double)(w->length * repetitions(w));
}

static double decode(void *state)
{
    work *w = state;
    for (uint64_t i = 0; i < repetitions(w); i++) {
        ls_manifest *decoded = NULL;
        if (ls_manifest_decode(w->bytes, w->length, 0, &decoded, NULL) != LS_OK) abort();
        ls_manifest_release(decoded);
    }
    return (double)(w->length * repetitions(w));
}

#define TAILS 100000u

/* Units are tails: the newest commit's entries are missing, the rest is known. */
static double decode_tails(void *state)
{
    work *w = state;
    ls_manifest *known = grown((uint32_t)(ls_manifest_version(w->manifest) - 1));
    size_t length = (size_t)ls_manifest_tail_bytes(w->manifest, ls_manifest_end_step(known));
    double begin = ls_bench_now_s();
    for (uint32_t i = 0; i < TAILS; i++) {
        ls_manifest *decoded = NULL;
        uint64_t needed = 0;
        const uint8_t *tail = w->bytes + (w->length - length);
        if (ls_manifest_decode_tail(tail, length, w->length, 0, known, &decoded, &needed, NULL) != LS_OK ||
            decoded == NULL) {
            abort();
        }
        ls_manifest_release(decoded);
    }
    double seconds = ls_bench_now_s() - begin;
    ls_manifest_release(known);
    return TAILS / seconds;
}

static void compare_manifests(uint32_t entries)
{
    work w = {.manifest = grown(entries / BATCHES)};
    w.length = (size_t)ls_manifest_encoded_bytes(w.manifest);
    w.bytes = bytes_new(w.length);
    w.copy = bytes_new(w.length);
    const ls_bench_work works[] = {encode, copy_bytes, decode, copy_to_new_memory};
    void *const states[] = {&w, &w, &w, &w};
    double rates[4];
    ls_bench_rates(works, states, 4, rates);
    char label[64];
    snprintf(label, sizeof label, "encode %u entries", entries);
    ls_bench_row(label, rates[0] / 1e9, "GB/s", "memcpy", rates[0] / rates[1]);
    snprintf(label, sizeof label, "decode %u entries", entries);
    ls_bench_row(label, rates[2] / 1e9, "GB/s", "malloc, memcpy, free", rates[2] / rates[3]);
    snprintf(label, sizeof label, "decode a tail of 4 of %u entries", entries);
    double tails = decode_tails(&w);
    ls_bench_row(label, 1e6 / tails, "us", "that takes decoding the whole", (double)w.length / rates[2] * tails);
    ls_manifest_release(w.manifest);
    free(w.bytes);
    free(w.copy);
}

/* --- TGB objects ----------------------------------------------------------------------------------------------------
 * */

#define DATA_RANKS    64u
#define CONTEXT_RANKS 8u

static void fill_slice(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    const work *w = context;
    memcpy(bytes, w->copy + (data_rank * CONTEXT_RANKS + context_rank) * length, (size_t)length);
}

static double encode_tgb(void *state)
{
    work *w = state;
    uint64_t lengths[DATA_RANKS * CONTEXT_RANKS];
    const ls_tgb_identity identity = {1, 1, 0, 1, 1};
    size_t footer_bytes = (size_t)ls_tgb_footer_bytes(DATA_RANKS, CONTEXT_RANKS);
    for (size_t i = 0; i < DATA_RANKS * CONTEXT_RANKS; i++) {
        lengths[i] = (w->length - footer_bytes) / (DATA_RANKS * CONTEXT_RANKS);
    }
    for (uint64_t i = 0; i < repetitions(w); i++) {
        if (ls_tgb_encode(&identity, DATA_RANKS, CONTEXT_RANKS, lengths, fill_slice, w, w->bytes, w->length) != LS_OK)
            abort();
    }
    return (double)(w->length * repetitions(w));
}

static double decode_footer(void *state)
{
    const work *w = state;
    const uint32_t count = 10000;
    size_t footer_bytes = (size_t)ls_tgb_footer_bytes(DATA_RANKS, CONTEXT_RANKS);
    for (uint32_t i = 0; i < count; i++) {
        ls_tgb_index *index = NULL;
        const uint8_t *footer = w->bytes + (w->length - footer_bytes);
        if (ls_tgb_decode_footer(footer, footer_bytes, w->length, &index, NULL, NULL) != LS_OK || index == NULL)
            abort();
        ls_bench_keep(ls_tgb_slice(index, 1, 1)->offset);
        ls_free(index);
    }
    return count;
}

static void compare_tgb(void)
{
    size_t length = ((size_t)DATA_RANKS * CONTEXT_RANKS << 15) + (size_t)ls_tgb_footer_bytes(DATA_RANKS, CONTEXT_RANKS);
    work w = {.bytes = bytes_new(length), .copy = bytes_new(length), .length = length};
    const ls_bench_work works[] = {encode_tgb, copy_bytes, decode_footer};
    void *const states[] = {&w, &w, &w};
    double rates[3];
    /* The copy goes the other way round, from bytes to copy; the object stays what encode_tgb made of it. */
    ls_bench_rates(works, states, 3, rates);
    ls_bench_row("lay out a TGB of 64 x 8 slices of 32 KiB", rates[0] / 1e9, "GB/s", "memcpy", rates[0] / rates[1]);
    ls_bench_row("read its footer (512 slices)", 1e6 / rates[2], "us", "", 0);
    free(w.bytes);
    free(w.copy);
}

static void run(void)
{
    compare_checksums(48);
    compare_checksums(4096);
    compare_checksums(16u << 20);
    compare_manifests(1000);
    compare_manifests(100000);
    compare_manifests(1000000);
    compare_tgb();
}

LS_BENCH(codec, "manifests, TGB objects, checksums; one core", run)
