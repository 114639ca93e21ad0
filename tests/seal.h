/* seal.h - makes the checksums of a tampered object right again, so that tests reach the checks behind them.
 *
 * A seal function takes any bytes: it puts right whatever lies where the object's own numbers say, and leaves alone
 * what would lie outside. Magics are not touched.
 */
#ifndef LS_TEST_SEAL_H
#define LS_TEST_SEAL_H

#include "manifest/bytes.h"
#include "manifest/codec.h"
#include "manifest/crc32c.h"
#include "manifest/tgb.h"

/* Both formats end alike: ..., own length (2 bytes) at -18, versions, CRC32C at -12, magic at -8. */
static inline void ls_seal_end(uint8_t *bytes, size_t length, size_t record_bytes)
{
    if (record_bytes < 24 || record_bytes > length) return;
    ls_store_u32(bytes + length - 12, ls_crc32c(0, bytes + length - record_bytes, record_bytes - 12));
}

/* Header, rows, chain at the end step (from the one at the trim step), footer. */
static inline void ls_seal_manifest(uint8_t *bytes, size_t length)
{
    if (length < LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_FOOTER_BYTES) return;
    ls_store_u32(bytes + 28, ls_crc32c(0, bytes, 28));
    size_t footer_bytes = ls_load_u16(bytes + length - 18);
    if (footer_bytes >= LS_MANIFEST_FOOTER_BYTES && footer_bytes <= length) {
        uint8_t *footer = bytes + length - footer_bytes;
        size_t rows_bytes = (size_t)ls_load_u16(bytes + length - 20) * ls_load_u32(footer + 56);
        size_t entry_bytes = ls_load_u16(bytes + length - 22), header_bytes = ls_load_u16(bytes + length - 24);
        uint64_t entries = ls_load_u64(footer + 48);
        if (rows_bytes <= length - footer_bytes)
            ls_store_u32(footer + 68, ls_crc32c(0, footer - rows_bytes, rows_bytes));
        if (entry_bytes >= LS_MANIFEST_ENTRY_BYTES && entries <= length / entry_bytes &&
            header_bytes + entries * entry_bytes <= length) {
            uint32_t chain = ls_load_u32(footer + 60);
            for (uint64_t i = 0; i < entries; i++) {
                chain = ls_crc32c(chain, bytes + header_bytes + i * entry_bytes, LS_MANIFEST_ENTRY_BYTES);
            }
            ls_store_u32(footer + 64, chain);
        }
    }
    ls_seal_end(bytes, length, footer_bytes);
}

/* Slice records, trailer. The slices' own checksums stay. */
static inline void ls_seal_tgb(uint8_t *bytes, size_t length)
{
    if (length < LS_TGB_TRAILER_BYTES) return;
    size_t trailer_bytes = ls_load_u16(bytes + length - 18), footer_bytes = ls_load_u32(bytes + length - 24);
    if (trailer_bytes >= LS_TGB_TRAILER_BYTES && trailer_bytes <= footer_bytes && footer_bytes <= length) {
        ls_store_u32(bytes + length - trailer_bytes + 52,
                     ls_crc32c(0, bytes + length - footer_bytes, footer_bytes - trailer_bytes));
    }
    ls_seal_end(bytes, length, trailer_bytes);
}

#endif
