/* fuzz_manifest.c - libFuzzer target for the manifest decoder: any bytes, whole and as a tail.
 *
 * What must hold beside "no fault": an accepted object of format 1 encodes to the same bytes; a tail of the whole
 * length gives what the whole gives; a tail that is too short asks for more than it had and not for more than there is.
 *
 * The mutator of its own starts from encoded versions of a small history (no seed files are needed) and mostly makes
 * the checksums right again after a mutation, so that the fuzzer reaches the checks behind them.
 */
#include "manifest/codec.h"
#include "tests/seal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t capacity);

#define VERSIONS 6u

/* Version `number` (1 .. VERSIONS) of the history that seeds and known versions are taken from. */
static ls_manifest *history(unsigned number)
{
    ls_manifest *manifest = ls_manifest_new_empty();
    for (unsigned v = 1; v <= number && manifest != NULL; v++) {
        ls_commit_id id = {v % 2 + 1, v};
        ls_entry entries[3];
        for (unsigned i = 0; i < 3; i++) entries[i] = (ls_entry){v % 2, i, 10 * v + i, 10 * v + i + 1, 5000, 1, 104};
        ls_commit commit = {.id = id,
                            .slot = v <= 2   ? LS_NO_SLOT
                                    : v == 3 ? 0
                                             : 1,
                            .entries = entries,
                            .entry_count = v == 1 ? 0 : 3,
                            .row = {.producer = v % 2, .next_source_offset = 10 * v + 3, .epoch = 1, .closed = v == 6}};
        ls_manifest *child = NULL;
        ls_result result =
            v == 5 ? ls_manifest_trim(manifest, id, 5, 4, &child) : ls_manifest_append(manifest, &commit, &child);
        ls_manifest_release(manifest);
        manifest = result == LS_OK ? child : NULL;
    }
    if (manifest == NULL) abort();
    return manifest;
}

static void must_encode_to(const ls_manifest *manifest, const uint8_t *bytes, size_t length)
{
    if (ls_load_u16(bytes + 8) != LS_MANIFEST_FORMAT_VERSION) return;
    uint8_t *again = malloc(length);
    if (again == NULL || ls_manifest_encoded_bytes(manifest) != length ||
        ls_manifest_encode(manifest, again, length) != LS_OK || memcmp(again, bytes, length) != 0) {
        abort();
    }
    free(again);
}

/* Follows the advice of needed_bytes until there is a result. */
static ls_result read_tail(const uint8_t *bytes, size_t object_bytes, size_t length, const ls_manifest *known,
                           ls_manifest **read)
{
    for (;;) {
        uint64_t needed = 0;
        ls_error error;
        const uint8_t *suffix = bytes + (object_bytes - length);
        ls_result result = ls_manifest_decode_tail(suffix, length, object_bytes, 0, known, read, &needed, &error);
        if (result != LS_OK && *read != NULL) abort();
        if (result != LS_OK || *read != NULL) return result;
        if (needed <= length || needed > object_bytes) abort();
        length = (size_t)needed;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ls_manifest *whole = NULL, *tail = NULL;
    ls_error error;
    ls_result result = ls_manifest_decode(bytes, length, 0, &whole, &error);
    if (result == LS_OK) must_encode_to(whole, bytes, length);
    if (read_tail(bytes, length, length, NULL, &tail) != result) abort();
    if (result == LS_OK) must_encode_to(tail, bytes, length);
    ls_manifest_release(tail);
    ls_manifest_release(whole);
    for (unsigned v = 2; v <= VERSIONS; v += 2) {
        ls_manifest *known = history(v);
        tail = NULL;
        if (read_tail(bytes, length, length / v, known, &tail) == LS_OK && result == LS_OK)
            must_encode_to(tail, bytes, length);
        ls_manifest_release(known);
        ls_manifest_release(tail);
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed)
{
    if (length < LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_FOOTER_BYTES || seed % 64 == 0) {
        ls_manifest *manifest = history(1 + seed / 64 % VERSIONS);
        length = (size_t)ls_manifest_encoded_bytes(manifest);
        if (length > capacity || ls_manifest_encode(manifest, bytes, length) != LS_OK) length = 0;
        ls_manifest_release(manifest);
    }
    length = LLVMFuzzerMutate(bytes, length, capacity);
    if (seed / 7 % 8 != 0) ls_seal_manifest(bytes, length);
    return length;
}
