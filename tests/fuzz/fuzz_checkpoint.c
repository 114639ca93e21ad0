/* fuzz_checkpoint.c - libFuzzer target for the checkpoint decoder: any bytes, found under the name that they claim.
 *
 * What must hold beside "no fault": an accepted object has the step that is the least of its ranks, and in format 1,
 * with nothing between its steps and its end, it is written again to the same bytes. The mutator of its own starts from
 * a small object and mostly makes the checksum right again.
 */
#include "manifest/bytes.h"
#include "manifest/checkpoint.h"
#include "manifest/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t capacity);

static void must_write_to(const ls_checkpoint *checkpoint, const uint8_t *bytes, size_t length)
{
    uint8_t *again = malloc(length);
    if (again == NULL || ls_checkpoint_encode(checkpoint, again, length) != LS_OK || memcmp(again, bytes, length) != 0)
        abort();
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    ls_checkpoint checkpoint;
    ls_key key = {.kind = LS_OBJECT_CHECKPOINT};
    if (length >= LS_CHECKPOINT_HEADER_BYTES) {
        key = ls_key_checkpoint(ls_load_u64(bytes + 16), ls_load_u64(bytes + 24),
                                (ls_checkpoint_kind)ls_load_u32(bytes + 32));
    }
    if (ls_checkpoint_decode(bytes, length, &key, &checkpoint, NULL) != LS_OK) return 0;
    uint64_t least = UINT64_MAX, ranks = (uint64_t)checkpoint.data_ranks * checkpoint.context_ranks;
    for (uint64_t i = 0; i < ranks; i++) least = checkpoint.rank_steps[i] < least ? checkpoint.rank_steps[i] : least;
    if (least != checkpoint.step || checkpoint.pinned != ls_checkpoint_is_pinned(checkpoint.kind)) abort();
    bool is_plain = ls_checkpoint_encoded_bytes(&checkpoint) == length && ls_load_u16(bytes + 8) == 1 &&
                    ls_load_u16(bytes + 10) == 1 && ls_load_u16(bytes + 12) == LS_CHECKPOINT_HEADER_BYTES &&
                    ls_load_u32(bytes + 36) <= 1 && ls_load_u32(bytes + 56) == 0 &&
                    memchr(bytes + LS_CHECKPOINT_HEADER_BYTES, 0, ls_load_u16(bytes + 14)) == NULL;
    if (is_plain) must_write_to(&checkpoint, bytes, length);
    ls_checkpoint_clear(&checkpoint);
    return 0;
}

static size_t small_object(uint8_t *bytes, size_t capacity)
{
    static const uint64_t steps[] = {12, 10, 11, 10};
    ls_checkpoint made;
    if (ls_checkpoint_make(&made, LS_CHECKPOINT_NAMED, "fuzz", 2, 2, steps, NULL) != LS_OK) return 0;
    made.number = UINT64_C(5) << 32;
    size_t length = (size_t)ls_checkpoint_encoded_bytes(&made);
    if (length > capacity || ls_checkpoint_encode(&made, bytes, length) != LS_OK) length = 0;
    ls_checkpoint_clear(&made);
    return length;
}

/* Length and checksum, where they lie. */
static void seal(uint8_t *bytes, size_t length)
{
    size_t header_bytes = length < LS_CHECKPOINT_HEADER_BYTES ? 0 : ls_load_u16(bytes + 12);
    if (header_bytes < LS_CHECKPOINT_HEADER_BYTES || header_bytes > length) return;
    ls_store_u64(bytes + 48, length);
    uint32_t crc = ls_crc32c(ls_crc32c(0, bytes, 60), bytes + 64, length - 64);
    ls_store_u32(bytes + 60, crc);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t capacity, unsigned seed)
{
    if (length < LS_CHECKPOINT_HEADER_BYTES || seed % 64 == 0) {
        size_t made = small_object(bytes, capacity);
        if (made > 0) length = made;
    }
    length = LLVMFuzzerMutate(bytes, length, capacity);
    if (seed % 8 != 1) seal(bytes, length);
    return length;
}
