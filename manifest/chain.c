/* chain.c - entries as bytes and their running checksum (see chain.h).
 *
 * On a little-endian machine an ls_entry in memory already is its encoding: the fields stand in the encoded order and
 * fill the struct without a gap, which is asserted below. There, bytes are copied and checksummed as they lie.
 */
#include "manifest/chain.h"

#include "manifest/bytes.h"
#include "manifest/crc32c.h"

#include <string.h>

_Static_assert(sizeof(ls_entry) == LS_MANIFEST_ENTRY_BYTES && offsetof(ls_entry, producer) == 0 &&
                   offsetof(ls_entry, sequence) == 8 && offsetof(ls_entry, source_begin) == 16 &&
                   offsetof(ls_entry, source_end) == 24 && offsetof(ls_entry, size_bytes) == 32 &&
                   offsetof(ls_entry, epoch) == 40 && offsetof(ls_entry, footer_bytes) == 44,
               "ls_entry must lie in memory as it is encoded");

#define IS_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static void store_entry(uint8_t *bytes, const ls_entry *entry)
{
    ls_store_u64(bytes, entry->producer);
    ls_store_u64(bytes + 8, entry->sequence);
    ls_store_u64(bytes + 16, entry->source_begin);
    ls_store_u64(bytes + 24, entry->source_end);
    ls_store_u64(bytes + 32, entry->size_bytes);
    ls_store_u32(bytes + 40, entry->epoch);
    ls_store_u32(bytes + 44, entry->footer_bytes);
}

static ls_entry load_entry(const uint8_t *bytes)
{
    return (ls_entry){.producer = ls_load_u64(bytes), .sequence = ls_load_u64(bytes + 8),
                      .source_begin = ls_load_u64(bytes + 16), .source_end = ls_load_u64(bytes + 24),
                      .size_bytes = ls_load_u64(bytes + 32), .epoch = ls_load_u32(bytes + 40),
                      .footer_bytes = ls_load_u32(bytes + 44)};
}

void ls_entries_store(uint8_t *bytes, const ls_entry *entries, uint64_t count)
{
    if (IS_LITTLE_ENDIAN) {
        memcpy(bytes, entries, (size_t)count * sizeof *entries);
        return;
    }
    for (uint64_t i = 0; i < count; i++) store_entry(bytes + i * LS_MANIFEST_ENTRY_BYTES, &entries[i]);
}

void ls_entries_load(ls_entry *entries, const uint8_t *bytes, size_t stride, uint64_t count)
{
    if (IS_LITTLE_ENDIAN && stride == sizeof *entries) {
        memcpy(entries, bytes, (size_t)count * sizeof *entries);
        return;
    }
    for (uint64_t i = 0; i < count; i++) entries[i] = load_entry(bytes + i * stride);
}

uint32_t ls_chain_extend(uint32_t chain, const ls_entry *entries, uint64_t count)
{
    if (IS_LITTLE_ENDIAN) return ls_crc32c(chain, entries, (size_t)count * sizeof *entries);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t bytes[LS_MANIFEST_ENTRY_BYTES];
        store_entry(bytes, &entries[i]);
        chain = ls_crc32c(chain, bytes, sizeof bytes);
    }
    return chain;
}
