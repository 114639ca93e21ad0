/* fuzz_tgb.c - libFuzzer target for the TGB footer decoder: any bytes, as an object or as the suffix of a larger one.
 *
 * What must hold beside "no fault": an accepted footer describes slices that tile the object from 0 to the footer, and,
 * in format 1, written again from the same numbers it gives the same bytes; a suffix that is too short asks for more
 * than it had and not for more than there is.
 *
 * The first byte says by how much the object is longer than the bytes at hand. The mutator of its own starts from a
 * small object (no seed files are needed) and mostly makes the checksums right again after a mutation.
 */
#include "manifest/tgb.h"
#include "tests/seal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t capacity);

/* The bytes of slices are not at hand: their checksums are put in by this writer instead of being computed. */
static void must_write_to(const ls_tgb_index *index, const uint8_t *footer)
{
    uint8_t *again = malloc(index->footer_bytes);
    ls_tgb_writer writer;
    uint64_t total = 0;
    if (again == NULL || ls_tgb_begin(&writer, &index->identity, index->data_ranks, index->context_ranks, again,
                                      index->footer_bytes) != LS_OK) {
        abort();
    }
    for (uint32_t i = 0; i < index->data_ranks * index->context_ranks; i++) {
        writer.offset += index->slices[i].bytes;
        writer.crc = index->slices[i].crc32c;
        if (ls_tgb_end_slice(&writer) != LS_OK) abort();
    }
    if (ls_tgb_finish(&writer, &total) != LS_OK || total != index->object_bytes ||
        memcmp(again, footer, index->footer_bytes) != 0) {
        abort();
    }
    free(again);
}

static void must_tile(const ls_tgb_index *index)
{
    uint64_t expected = 0;
    for (uint32_t d = 0; d < index->data_ranks; d++) {
        for (uint32_t c = 0; c < index->context_ranks; c++) {
            const ls_slice *slice = ls_tgb_slice(index, d, c);
            if (slice == NULL || slice->data_rank != d || slice->context_rank != c || slice->offset != expected)
                abort();
            expected += slice->bytes;
        }
    }
    if (expected != index->object_bytes - index->footer_bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0) return 0;
    uint64_t object_bytes = length - 1 + bytes[0];
    bytes++;
    length--;
    ls_tgb_index *index = NULL;
    uint64_t needed = 0;
    ls_error error;
    ls_result result = ls_tgb_decode_footer(bytes, length, object_bytes, &index, &needed, &error);
    if (result == LS_OK && index == NULL && (needed <= length || needed > object_bytes)) abort();
    if ((result != LS_OK) && index != NULL) abort();
    if (index == NULL) return 0;
    must_tile(index);
    if (ls_load_u16(bytes + length - 16) == LS_TGB_FORMAT_VERSION)
        must_write_to(index, bytes + length - index->footer_bytes);
    for (uint32_t i = 0; i < index->data_ranks * index->context_ranks; i++) {
        const ls_slice *slice = &index->slices[i];
        if (object_bytes == length)
            (void)ls_tgb_verify_slice(slice, bytes + slice->offset, (size_t)slice->bytes, &error);
    }
    ls_free(index);
    return 0;
}

static void fill(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    (void)context;
    memset(bytes, (int)(data_rank + context_rank), (size_t)length);
}

static size_t seed_object(uint8_t *bytes, size_t capacity, unsigned seed)
{
    const ls_tgb_identity identity = {1, seed, 10, 20, 1};
    const uint64_t lengths[] = {3, 0, 5, 1, 2, 4};
    uint32_t data_ranks = 1 + seed % 3, context_ranks = 1 + seed / 3 % 2;
    uint64_t total = 0;
    if (ls_tgb_total_bytes(data_ranks, context_ranks, lengths, &total) != LS_OK || total >= capacity) return 0;
    bytes[0] = 0;
    if (ls_tgb_encode(&identity, data_ranks, context_ranks, lengths, fill, NULL, bytes + 1, (size_t)total) != LS_OK)
        abort();
    return (size_t)total + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed)
{
    if (length <= LS_TGB_TRAILER_BYTES || seed % 64 == 0) length = seed_object(bytes, capacity, seed / 64);
    length = LLVMFuzzerMutate(bytes, length, capacity);
    if (seed / 7 % 8 != 0 && length > 1) ls_seal_tgb(bytes + 1, length - 1);
    return length;
}
