/* codec.c - the manifest's byte format: layout, writer, reader, and why a reader may trust what it accepts.
 *
 * LAYOUT. All numbers are unsigned and little-endian; nothing is aligned or padded. Offsets are from the start of the
 * record; n and r are the counts of entries and rows.
 *
 *   header, 32 bytes, at 0
 *      0  8  magic "LSMANIF1"
 *      8  2  format version (1)
 *     10  2  minimum reader version (1): a program that knows only lower ones must refuse the object
 *     12  2  header bytes (32)
 *     14  2  entry bytes (48)
 *     16  8  version, as in the object's name
 *     24  4  reserved, 0
 *     28  4  CRC32C of bytes 0 .. 27
 *
 *   entry, 48 bytes, n of them from 32 on, oldest first; the entry at index i is step (trim step + i)
 *      0  8  producer
 *      8  8  sequence: upload number within the epoch
 *     16  8  source begin
 *     24  8  source end, greater than source begin
 *     32  8  size of the TGB object
 *     40  4  epoch
 *     44  4  footer bytes of the TGB object, at most its size
 *
 *   row, 48 bytes, r of them from 32 + 48n on, in slot order; no producer twice
 *      0  8  producer
 *      8  8  next source offset
 *     16  8  last version: the one that last changed this row, at most this object's
 *     24  8  last commit: incarnation
 *     32  8  last commit: attempt
 *     40  4  epoch
 *     44  4  flags: bit 0 closed, others 0
 *
 *   footer, 96 bytes, at 32 + 48n + 48r, the object's end
 *      0  8  version
 *      8  8  commit id: incarnation
 *     16  8  commit id: attempt
 *     24  8  low watermark
 *     32  8  trim step, at most the low watermark
 *     40  8  end step
 *     48  8  entry count n = end step - trim step
 *     56  4  row count r
 *     60  4  chain at the trim step
 *     64  4  chain at the end step
 *     68  4  CRC32C of all rows as they stand
 *     72  2  header bytes (32)
 *     74  2  entry bytes (48)
 *     76  2  row bytes (48)
 *     78  2  footer bytes (96)
 *     80  2  format version (1)
 *     82  2  minimum reader version (1)
 *     84  4  CRC32C of bytes 0 .. 83 of the footer
 *     88  8  magic "LSMFOOT1"
 *
 * THE CHAIN. Every other checksum covers what stands beside it. For the entries that will not do: a tail reader has
 * only the newest, a writer should not have to go over a million old ones for each commit, and 48 bytes leave no room
 * for a CRC in each. So the entries' CRC32C runs through the history of the lake (chain.h) and the footer says what it
 * is before the first listed entry and after the last. A version in memory knows its chain, so an encoder only copies.
 * Checking any stretch of entries whose beginning's chain is known costs one CRC of that stretch.
 *
 * WRITER. Header, entries, rows, footer, in this order; each CRC after what it covers. The length is known beforehand
 * (ls_manifest_encoded_bytes). What every reader would refuse is refused here, for it would block the lake: versions
 * are claimed once and for all. Only the uniqueness of producers is left to those who register them.
 *
 * READER, whole object.
 *   1. The last 24 bytes: magic, then the footer's length, then its CRC, then the minimum reader version.
 *   2. The sizes: header + entries + rows + footer must give the object's length exactly, counted without overflow.
 *   3. The header against its magic and CRC and against the footer.
 *   4. The entries against the chain, from its value at the trim step to that at the end step; then each by itself.
 *   5. The rows against their CRC; then each by itself; then no producer twice.
 * READER, tail, with a known version. 1 and 2 as above (the object's length comes with the reply). If the known version
 * is an earlier one, the object must continue it: no number that only grows may have shrunk, slots keep their
 * producers, and the known history's own chain at the object's trim step must be the object's. Entries are then needed
 * only from the known end step on, and the chain runs from its known value there. 4 for these entries; 5 as above, and
 * no known row has gone back.
 *
 * WHY IT IS SAFE.
 *   Damage. Every byte of the object is covered by a CRC or compared with the one value it may have, and CRC32C finds
 *   every burst of up to 32 bits; a whole reader hence refuses any object with one flipped bit, and accepts other
 *   damage with probability 2^-32. Truncated or extended objects miss the footer at the end or the exact length.
 *   Hostile bytes. A checksum is no signature: counts that pass it are still bounded by the bytes at hand before
 *   anything is allocated, and fields are checked to be possible.
 *   The unread part. A tail reader does not see whether old entries lie damaged in this object. It needs not: it has
 *   them. What it does check, by the chain, is that the object was made on top of the very entries it has, in that
 *   order; an object of another history is accepted with probability 2^-32, against 1 without the chain.
 *   A wrong name. The version stands in header and footer and must be the one asked for.
 *   Old readers. As long as the magics stay, the first 32 bytes of the header, the last 24 of the footer and the
 *   footer's CRC rule stay. Records may grow at their end (the footer: before its last 24 bytes): sizes are read, not
 *   assumed, and what is unknown is skipped. The chain covers the first 48 bytes of an entry, in every format, so that
 *   it survives the change in the middle of a history; what a later format adds to entries must bring its own checksum.
 *   An old program that commits drops what it does not know; where that would do harm, the minimum reader version must
 *   rise.
 */
#include "manifest/codec.h"

#include "manifest/bytes.h"
#include "manifest/chain.h"
#include "manifest/crc32c.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_CRC_AT      28u /* and the length that the header's CRC covers */
#define FOOTER_END_BYTES   24u /* the part of the footer that never moves, counted from its end */
#define FOOTER_CRC_AT_BACK 12u
#define FLAG_CLOSED        1u
#define BLOCK_ENTRIES      256u /* looked at together: 12 KiB, well within a first-level cache */

static const uint8_t header_magic[8] = {'L', 'S', 'M', 'A', 'N', 'I', 'F', '1'};
static const uint8_t footer_magic[8] = {'L', 'S', 'M', 'F', 'O', 'O', 'T', '1'};

/* --- what is possible ------------------------------------------------------------------------------------------- */

/* What is wrong with an entry by itself, or NULL. */
static const char *entry_fault(const ls_entry *entry)
{
    if (entry->source_end <= entry->source_begin) return "source end must be greater than source begin";
    if (entry->footer_bytes > entry->size_bytes) return "the footer must not be longer than its object";
    return NULL;
}

/* The first of count entries with a fault, or count. */
static uint64_t first_fault(const ls_entry *entries, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (entry_fault(&entries[i]) != NULL) return i;
    }
    return count;
}

/* --- writer ------------------------------------------------------------------------------------------------------ */

static void write_header(const ls_manifest *manifest, uint8_t *bytes)
{
    memcpy(bytes, header_magic, sizeof header_magic);
    ls_store_u16(bytes + 8, LS_MANIFEST_FORMAT_VERSION);
    ls_store_u16(bytes + 10, LS_MANIFEST_FORMAT_VERSION);
    ls_store_u16(bytes + 12, LS_MANIFEST_HEADER_BYTES);
    ls_store_u16(bytes + 14, LS_MANIFEST_ENTRY_BYTES);
    ls_store_u64(bytes + 16, ls_manifest_version(manifest));
    ls_store_u32(bytes + 24, 0);
    ls_store_u32(bytes + HEADER_CRC_AT, ls_crc32c(0, bytes, HEADER_CRC_AT));
}

typedef struct entries_place {
    uint64_t trim_step;
    uint8_t *bytes;
} entries_place;

static bool write_stretch(void *context, uint64_t step, const ls_entry *entries, uint64_t count)
{
    const entries_place *place = context;
    if (first_fault(entries, count) < count) return false;
    ls_entries_store(place->bytes + (step - place->trim_step) * LS_MANIFEST_ENTRY_BYTES, entries, count);
    return true;
}

static bool write_entries(const ls_manifest *manifest, uint8_t *bytes)
{
    entries_place place = {ls_manifest_trim_step(manifest), bytes};
    return ls_manifest_visit_entries(manifest, place.trim_step, ls_manifest_end_step(manifest), write_stretch, &place);
}

static bool write_rows(const ls_manifest *manifest, uint8_t *bytes)
{
    uint32_t count = ls_manifest_row_count(manifest);
    for (uint32_t slot = 0; slot < count; slot++, bytes += LS_MANIFEST_ROW_BYTES) {
        const ls_row *row = ls_manifest_row(manifest, slot);
        if (row->last_version > ls_manifest_version(manifest)) return false;
        ls_store_u64(bytes, row->producer);
        ls_store_u64(bytes + 8, row->next_source_offset);
        ls_store_u64(bytes + 16, row->last_version);
        ls_store_u64(bytes + 24, row->last_commit.incarnation);
        ls_store_u64(bytes + 32, row->last_commit.attempt);
        ls_store_u32(bytes + 40, row->epoch);
        ls_store_u32(bytes + 44, row->closed ? FLAG_CLOSED : 0);
    }
    return true;
}

static void write_footer(const ls_manifest *manifest, uint32_t rows_crc, uint8_t *bytes)
{
    ls_commit_id id = ls_manifest_commit_id(manifest);
    uint64_t trim_step = ls_manifest_trim_step(manifest), end_step = ls_manifest_end_step(manifest);
    ls_store_u64(bytes, ls_manifest_version(manifest));
    ls_store_u64(bytes + 8, id.incarnation);
    ls_store_u64(bytes + 16, id.attempt);
    ls_store_u64(bytes + 24, ls_manifest_low_watermark(manifest));
    ls_store_u64(bytes + 32, trim_step);
    ls_store_u64(bytes + 40, end_step);
    ls_store_u64(bytes + 48, end_step - trim_step);
    ls_store_u32(bytes + 56, ls_manifest_row_count(manifest));
    ls_store_u32(bytes + 60, ls_manifest_chain(manifest, trim_step));
    ls_store_u32(bytes + 64, ls_manifest_chain(manifest, end_step));
    ls_store_u32(bytes + 68, rows_crc);
    ls_store_u16(bytes + 72, LS_MANIFEST_HEADER_BYTES);
    ls_store_u16(bytes + 74, LS_MANIFEST_ENTRY_BYTES);
    ls_store_u16(bytes + 76, LS_MANIFEST_ROW_BYTES);
    ls_store_u16(bytes + 78, LS_MANIFEST_FOOTER_BYTES);
    ls_store_u16(bytes + 80, LS_MANIFEST_FORMAT_VERSION);
    ls_store_u16(bytes + 82, LS_MANIFEST_FORMAT_VERSION);
    ls_store_u32(bytes + 84, ls_crc32c(0, bytes, LS_MANIFEST_FOOTER_BYTES - FOOTER_CRC_AT_BACK));
    memcpy(bytes + 88, footer_magic, sizeof footer_magic);
}

ls_result ls_manifest_encode(const ls_manifest *manifest, uint8_t *bytes, size_t capacity)
{
    if (capacity < ls_manifest_encoded_bytes(manifest) || ls_manifest_version(manifest) == 0 ||
        ls_manifest_trim_step(manifest) > ls_manifest_low_watermark(manifest)) {
        return LS_ERROR_INVALID;
    }
    uint8_t *entries = bytes + LS_MANIFEST_HEADER_BYTES;
    uint8_t *rows = entries + LS_MANIFEST_ENTRY_BYTES * ls_manifest_entry_count(manifest);
    size_t rows_bytes = (size_t)LS_MANIFEST_ROW_BYTES * ls_manifest_row_count(manifest);
    write_header(manifest, bytes);
    if (!write_entries(manifest, entries) || !write_rows(manifest, rows)) return LS_ERROR_INVALID;
    write_footer(manifest, ls_crc32c(0, rows, rows_bytes), rows + rows_bytes);
    return LS_OK;
}

/* --- reader: footer, sizes, header ------------------------------------------------------------------------------- */

typedef struct footer {
    uint64_t at; /* offset in the object */
    uint64_t version;
    ls_commit_id id;
    uint64_t low_watermark, trim_step, end_step, entry_count;
    uint32_t row_count, chain_at_trim, chain_at_end, rows_crc;
    uint16_t header_bytes, entry_bytes, row_bytes, footer_bytes, format_version, minimum_reader;
} footer;

/* What is being read: the object's last `length` bytes. */
typedef struct tail {
    const uint8_t *bytes;
    uint64_t length;
    uint64_t object_bytes;
    uint64_t expected_version;
    ls_error *error;
} tail;

/* The bytes at an offset of the object, which must lie in the tail. */
static const uint8_t *bytes_at(const tail *t, uint64_t offset)
{
    return t->bytes + (offset - (t->object_bytes - t->length));
}

static void load_footer(const uint8_t *bytes, footer *f)
{
    const uint8_t *end = bytes + f->footer_bytes - FOOTER_END_BYTES;
    f->version = ls_load_u64(bytes);
    f->id = (ls_commit_id){ls_load_u64(bytes + 8), ls_load_u64(bytes + 16)};
    f->low_watermark = ls_load_u64(bytes + 24);
    f->trim_step = ls_load_u64(bytes + 32);
    f->end_step = ls_load_u64(bytes + 40);
    f->entry_count = ls_load_u64(bytes + 48);
    f->row_count = ls_load_u32(bytes + 56);
    f->chain_at_trim = ls_load_u32(bytes + 60);
    f->chain_at_end = ls_load_u32(bytes + 64);
    f->rows_crc = ls_load_u32(bytes + 68);
    f->header_bytes = ls_load_u16(end);
    f->entry_bytes = ls_load_u16(end + 2);
    f->row_bytes = ls_load_u16(end + 4);
    f->format_version = ls_load_u16(end + 8);
    f->minimum_reader = ls_load_u16(end + 10);
}

static ls_result check_format_version(const tail *t, const footer *f)
{
    if (f->format_version == 0 || f->minimum_reader == 0 || f->minimum_reader > f->format_version) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: format version %u with minimum reader version %u at offset %" PRIu64
                       ": expected 1 <= minimum reader version <= format version",
                       f->format_version, f->minimum_reader, t->object_bytes - 16);
    }
    if (f->minimum_reader > LS_MANIFEST_FORMAT_VERSION) {
        return ls_fail(t->error, LS_ERROR_VERSION,
                       "manifest: format version %u, readable from reader version %u on (offset %" PRIu64
                       "), but this program knows version %u: use a newer program",
                       f->format_version, f->minimum_reader, t->object_bytes - 14, LS_MANIFEST_FORMAT_VERSION);
    }
    return LS_OK;
}

static bool record_sizes_known(const footer *f)
{
    if (f->format_version == LS_MANIFEST_FORMAT_VERSION) {
        return f->header_bytes == LS_MANIFEST_HEADER_BYTES && f->entry_bytes == LS_MANIFEST_ENTRY_BYTES &&
               f->row_bytes == LS_MANIFEST_ROW_BYTES && f->footer_bytes == LS_MANIFEST_FOOTER_BYTES;
    }
    return f->header_bytes >= LS_MANIFEST_HEADER_BYTES && f->entry_bytes >= LS_MANIFEST_ENTRY_BYTES &&
           f->row_bytes >= LS_MANIFEST_ROW_BYTES;
}

/* Header + entries + rows + footer must be the object, to the byte. The sums cannot overflow: a record has at most 2^16
 * bytes, there are less than 2^32 rows, and at most object_bytes / entry_bytes entries. */
static ls_result check_sizes(const tail *t, const footer *f)
{
    if (!record_sizes_known(f)) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: format version %u with records of %u, %u, %u and %u bytes (offset %" PRIu64
                       "), expected %u, %u, %u and %u (more only in later formats)",
                       f->format_version, f->header_bytes, f->entry_bytes, f->row_bytes, f->footer_bytes,
                       t->object_bytes - FOOTER_END_BYTES, LS_MANIFEST_HEADER_BYTES, LS_MANIFEST_ENTRY_BYTES,
                       LS_MANIFEST_ROW_BYTES, LS_MANIFEST_FOOTER_BYTES);
    }
    uint64_t beside = (uint64_t)f->header_bytes + (uint64_t)f->row_bytes * f->row_count + f->footer_bytes;
    if (beside > t->object_bytes || f->entry_count != (t->object_bytes - beside) / f->entry_bytes ||
        (t->object_bytes - beside) % f->entry_bytes != 0) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: %" PRIu64 " entries of %u bytes and %" PRIu32 " rows of %u bytes (offset %" PRIu64
                       ") do not make an object of %" PRIu64 " bytes",
                       f->entry_count, f->entry_bytes, f->row_count, f->row_bytes, f->at + 48, t->object_bytes);
    }
    return LS_OK;
}

static ls_result check_numbers(const tail *t, const footer *f)
{
    if (f->version == 0 || (t->expected_version != 0 && f->version != t->expected_version)) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: version %" PRIu64 " at offset %" PRIu64 ", expected %" PRIu64 "%s", f->version, f->at,
                       t->expected_version, t->expected_version == 0 ? " or any above" : ", as in the object's name");
    }
    if (f->end_step < f->trim_step || f->end_step - f->trim_step != f->entry_count) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: %" PRIu64 " entries at offset %" PRIu64 ", expected end step %" PRIu64
                       " - trim step %" PRIu64,
                       f->entry_count, f->at + 48, f->end_step, f->trim_step);
    }
    if (f->trim_step > f->low_watermark) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: trim step %" PRIu64 " at offset %" PRIu64
                       ", expected at most the low watermark %" PRIu64,
                       f->trim_step, f->at + 32, f->low_watermark);
    }
    return LS_OK;
}

/* Reads and checks the footer. When the tail is shorter than it: LS_OK and *needed_bytes > length; otherwise
 * *needed_bytes is untouched. */
static ls_result read_footer(const tail *t, footer *f, uint64_t *needed_bytes)
{
    if (t->object_bytes < LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_FOOTER_BYTES) {
        return ls_fail(t->error, LS_ERROR_CORRUPT, "manifest: object of %" PRIu64 " bytes, expected at least %u",
                       t->object_bytes, LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_FOOTER_BYTES);
    }
    if (t->length < FOOTER_END_BYTES) {
        *needed_bytes = LS_MANIFEST_FOOTER_BYTES;
        return LS_OK;
    }
    const uint8_t *end = bytes_at(t, t->object_bytes - FOOTER_END_BYTES);
    if (memcmp(end + 16, footer_magic, sizeof footer_magic) != 0) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: no \"LSMFOOT1\" at offset %" PRIu64 ": not a manifest, or cut short",
                       t->object_bytes - sizeof footer_magic);
    }
    *f = (footer){.footer_bytes = ls_load_u16(end + 6)};
    if (f->footer_bytes < LS_MANIFEST_FOOTER_BYTES || f->footer_bytes > t->object_bytes) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: footer of %u bytes at offset %" PRIu64 ", expected %u or more, within the object",
                       f->footer_bytes, t->object_bytes - FOOTER_END_BYTES + 6, LS_MANIFEST_FOOTER_BYTES);
    }
    if (t->length < f->footer_bytes) {
        *needed_bytes = f->footer_bytes;
        return LS_OK;
    }
    f->at = t->object_bytes - f->footer_bytes;
    const uint8_t *bytes = bytes_at(t, f->at);
    uint32_t computed = ls_crc32c(0, bytes, f->footer_bytes - FOOTER_CRC_AT_BACK), stored = ls_load_u32(end + 12);
    if (computed != stored) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: footer at offset %" PRIu64 " is damaged: CRC32C %08" PRIx32 ", expected %08" PRIx32,
                       f->at, computed, stored);
    }
    load_footer(bytes, f);
    ls_result result = check_format_version(t, f);
    if (result == LS_OK) result = check_sizes(t, f);
    if (result == LS_OK) result = check_numbers(t, f);
    return result;
}

static ls_result check_header(const tail *t, const footer *f)
{
    const uint8_t *bytes = bytes_at(t, 0);
    if (memcmp(bytes, header_magic, sizeof header_magic) != 0) {
        return ls_fail(t->error, LS_ERROR_CORRUPT, "manifest: no \"LSMANIF1\" at offset 0: not a manifest");
    }
    uint32_t computed = ls_crc32c(0, bytes, HEADER_CRC_AT), stored = ls_load_u32(bytes + HEADER_CRC_AT);
    if (computed != stored) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: header at offset 0 is damaged: CRC32C %08" PRIx32 ", expected %08" PRIx32, computed,
                       stored);
    }
    if (ls_load_u16(bytes + 8) != f->format_version || ls_load_u16(bytes + 10) != f->minimum_reader ||
        ls_load_u16(bytes + 12) != f->header_bytes || ls_load_u16(bytes + 14) != f->entry_bytes ||
        ls_load_u64(bytes + 16) != f->version) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: header (offset 8: format version %u, version %" PRIu64
                       ") contradicts the footer (format version %u, version %" PRIu64 ")",
                       ls_load_u16(bytes + 8), ls_load_u64(bytes + 16), f->format_version, f->version);
    }
    if (f->format_version == LS_MANIFEST_FORMAT_VERSION && ls_load_u32(bytes + 24) != 0) {
        return ls_fail(t->error, LS_ERROR_CORRUPT, "manifest: reserved bytes at offset 24, expected 0");
    }
    return LS_OK;
}

/* --- reader: rows ------------------------------------------------------------------------------------------------ */

static uint64_t rows_at(const footer *f)
{
    return f->at - (uint64_t)f->row_bytes * f->row_count;
}

static ls_result load_row(const tail *t, const footer *f, uint32_t slot, ls_row *row)
{
    uint64_t at = rows_at(f) + (uint64_t)f->row_bytes * slot;
    const uint8_t *bytes = bytes_at(t, at);
    *row = (ls_row){.producer = ls_load_u64(bytes), .next_source_offset = ls_load_u64(bytes + 8),
                    .last_version = ls_load_u64(bytes + 16),
                    .last_commit = {ls_load_u64(bytes + 24), ls_load_u64(bytes + 32)},
                    .epoch = ls_load_u32(bytes + 40)};
    uint32_t flags = ls_load_u32(bytes + 44);
    row->closed = (flags & FLAG_CLOSED) != 0;
    if (row->last_version > f->version) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: row %" PRIu32 " at offset %" PRIu64 " was changed by version %" PRIu64
                       ", expected at most %" PRIu64,
                       slot, at, row->last_version, f->version);
    }
    if (f->format_version == LS_MANIFEST_FORMAT_VERSION && (flags & ~FLAG_CLOSED) != 0) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: row %" PRIu32 ", flags %08" PRIx32 " at offset %" PRIu64 ", expected 0 or 1", slot,
                       flags, at + 44);
    }
    return LS_OK;
}

static int compare_producers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static ls_result check_unique_producers(const tail *t, const footer *f, const ls_row *rows)
{
    if (f->row_count < 2) return LS_OK;
    uint64_t *producers = ls_allocate_array(f->row_count, sizeof *producers);
    if (producers == NULL) return ls_fail(t->error, LS_ERROR_MEMORY, "manifest: out of memory");
    for (uint32_t i = 0; i < f->row_count; i++) producers[i] = rows[i].producer;
    qsort(producers, f->row_count, sizeof *producers, compare_producers);
    ls_result result = LS_OK;
    for (uint32_t i = 1; i < f->row_count && result == LS_OK; i++) {
        if (producers[i] != producers[i - 1]) continue;
        result = ls_fail(t->error, LS_ERROR_CORRUPT,
                         "manifest: producer %" PRIu64 " has two rows in the table at offset %" PRIu64 ", expected one",
                         producers[i], rows_at(f));
    }
    ls_free(producers);
    return result;
}

/* Slots keep their producers, and no row goes back. */
static ls_result check_rows_continue(const tail *t, const footer *f, const ls_row *rows, const ls_manifest *earlier)
{
    uint32_t count = ls_manifest_row_count(earlier);
    for (uint32_t slot = 0; slot < count; slot++) {
        const ls_row *old = ls_manifest_row(earlier, slot), *row = &rows[slot];
        if (row->producer == old->producer && row->last_version >= old->last_version && row->epoch >= old->epoch)
            continue;
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: row %" PRIu32 " at offset %" PRIu64 " (producer %" PRIu64 ", epoch %" PRIu32
                       ", last version %" PRIu64 ") does not continue the row of version %" PRIu64 " (producer %" PRIu64
                       ", epoch %" PRIu32 ", last version %" PRIu64 ")",
                       slot, rows_at(f) + (uint64_t)f->row_bytes * slot, row->producer, row->epoch, row->last_version,
                       ls_manifest_version(earlier), old->producer, old->epoch, old->last_version);
    }
    return LS_OK;
}

/* The table into *rows, to be freed by the caller on success (NULL when there are no rows). earlier, if not NULL, is a
 * version that the object claims to continue; its rows are known to be unique, so the search is for new rows only. */
static ls_result read_rows(const tail *t, const footer *f, const ls_manifest *earlier, ls_row **rows)
{
    *rows = NULL;
    size_t bytes = (size_t)f->row_bytes * f->row_count;
    uint32_t computed = ls_crc32c(0, bytes_at(t, rows_at(f)), bytes);
    if (computed != f->rows_crc) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: rows at offset %" PRIu64 " are damaged: CRC32C %08" PRIx32 ", expected %08" PRIx32,
                       rows_at(f), computed, f->rows_crc);
    }
    if (f->row_count == 0) return LS_OK;
    ls_row *read = ls_allocate_array(f->row_count, sizeof *read);
    if (read == NULL) return ls_fail(t->error, LS_ERROR_MEMORY, "manifest: out of memory");
    ls_result result = LS_OK;
    for (uint32_t slot = 0; slot < f->row_count && result == LS_OK; slot++) result = load_row(t, f, slot, &read[slot]);
    if (result == LS_OK && earlier != NULL) result = check_rows_continue(t, f, read, earlier);
    if (result == LS_OK && (earlier == NULL || ls_manifest_row_count(earlier) < f->row_count)) {
        result = check_unique_producers(t, f, read);
    }
    if (result == LS_OK) {
        *rows = read;
    } else {
        ls_free(read);
    }
    return result;
}

/* --- reader: entries and the whole ------------------------------------------------------------------------------- */

/* Where a version's entries come from: those below read_from from base, the rest from the bytes. */
typedef struct plan {
    const ls_manifest *earlier; /* a version that the object must continue, borrowed; NULL: none is known */
    ls_manifest *base;          /* owned; NULL: no entries are at hand */
    uint64_t read_from;
    uint32_t chain; /* at read_from: known by the reader, or else as the object says */
} plan;

static uint64_t entry_at(const footer *f, uint64_t step)
{
    return f->header_bytes + (step - f->trim_step) * f->entry_bytes;
}

static ls_result does_not_continue(const tail *t, const footer *f, const ls_manifest *earlier, const char *what,
                                   uint64_t at)
{
    return ls_fail(t->error, LS_ERROR_CORRUPT,
                   "manifest: version %" PRIu64 " does not continue version %" PRIu64
                   ", which is known: the %s at offset %" PRIu64 " cannot follow from it",
                   f->version, ls_manifest_version(earlier), what, at);
}

/* The numbers that only grow, and the history below the trim step. */
static ls_result check_continues(const tail *t, const footer *f, const ls_manifest *earlier)
{
    ls_commit_id id = ls_manifest_commit_id(earlier);
    bool same_version = ls_manifest_version(earlier) == f->version;
    if (same_version && (id.incarnation != f->id.incarnation || id.attempt != f->id.attempt)) {
        return does_not_continue(t, f, earlier, "commit id", f->at + 8);
    }
    if (f->low_watermark < ls_manifest_low_watermark(earlier)) {
        return does_not_continue(t, f, earlier, "low watermark", f->at + 24);
    }
    if (f->trim_step < ls_manifest_trim_step(earlier)) return does_not_continue(t, f, earlier, "trim step", f->at + 32);
    if (f->end_step < ls_manifest_end_step(earlier)) return does_not_continue(t, f, earlier, "end step", f->at + 40);
    if (f->row_count < ls_manifest_row_count(earlier)) return does_not_continue(t, f, earlier, "row count", f->at + 56);
    if (f->trim_step <= ls_manifest_end_step(earlier) && ls_manifest_chain(earlier, f->trim_step) != f->chain_at_trim) {
        return does_not_continue(t, f, earlier, "chain of entry checksums", f->at + 60);
    }
    return LS_OK;
}

/* What can be shared. Behind a moved trim point that is a copy of what remains (ls_manifest_trim), made by
 * share_entries. */
static ls_result make_plan(const tail *t, const footer *f, const ls_manifest *known, plan *p)
{
    *p = (plan){.read_from = f->trim_step, .chain = f->chain_at_trim};
    if (known == NULL || ls_manifest_version(known) > f->version) return LS_OK;
    p->earlier = known;
    ls_result result = check_continues(t, f, known);
    if (result != LS_OK || f->trim_step > ls_manifest_end_step(known)) return result;
    p->read_from = ls_manifest_end_step(known);
    p->chain = ls_manifest_chain(known, p->read_from);
    return LS_OK;
}

/* Fills p->base. Sharing the known chain of entries across a moved trim point would keep the trimmed ones alive for as
 * long as this reader follows the lake. */
static ls_result share_entries(const tail *t, const footer *f, plan *p)
{
    if (p->earlier == NULL || f->trim_step > ls_manifest_end_step(p->earlier)) return LS_OK;
    if (f->trim_step == ls_manifest_trim_step(p->earlier)) {
        p->base = ls_manifest_retain(p->earlier);
        return LS_OK;
    }
    ls_result result = ls_manifest_trim(p->earlier, f->id, f->low_watermark, f->trim_step, &p->base);
    return result == LS_OK
               ? LS_OK
               : ls_fail(t->error, result, "manifest: version %" PRIu64 ": %s", f->version, ls_result_name(result));
}

static uint64_t bytes_needed(const footer *f, const plan *p)
{
    return f->footer_bytes + (uint64_t)f->row_bytes * f->row_count + (f->end_step - p->read_from) * f->entry_bytes;
}

/* The chain first, because damage is likelier than a writer that wrote nonsense and a right checksum. */
static ls_result check_entries(const tail *t, const footer *f, const plan *p)
{
    ls_entry block[BLOCK_ENTRIES];
    const char *fault = NULL;
    uint64_t fault_step = 0, count = 0;
    uint32_t chain = p->chain;
    for (uint64_t step = p->read_from; step < f->end_step; step += count) {
        count = f->end_step - step < BLOCK_ENTRIES ? f->end_step - step : BLOCK_ENTRIES;
        ls_entries_load(block, bytes_at(t, entry_at(f, step)), f->entry_bytes, count);
        chain = ls_chain_extend(chain, block, count);
        uint64_t index = fault == NULL ? first_fault(block, count) : count;
        if (index == count) continue;
        fault = entry_fault(&block[index]);
        fault_step = step + index;
    }
    if (chain != f->chain_at_end) {
        return ls_fail(t->error, LS_ERROR_CORRUPT,
                       "manifest: entries of steps %" PRIu64 " to %" PRIu64 " (offset %" PRIu64
                       ") are damaged or of another history: chain %08" PRIx32 ", expected %08" PRIx32,
                       p->read_from, f->end_step, entry_at(f, p->read_from), chain, f->chain_at_end);
    }
    if (fault == NULL) return LS_OK;
    return ls_fail(t->error, LS_ERROR_CORRUPT, "manifest: entry of step %" PRIu64 " at offset %" PRIu64 ": %s",
                   fault_step, entry_at(f, fault_step), fault);
}

static ls_result build(const tail *t, const footer *f, const plan *p, const ls_row *rows, ls_manifest **manifest)
{
    ls_manifest_parts parts = {.version = f->version,
                               .id = f->id,
                               .low_watermark = f->low_watermark,
                               .trim_step = f->trim_step,
                               .first_step = p->read_from,
                               .chain = p->chain,
                               .base = p->base,
                               .encoded_stride = f->entry_bytes,
                               .entry_count = f->end_step - p->read_from,
                               .rows = rows,
                               .row_count = f->row_count};
    if (parts.entry_count > 0) parts.encoded = bytes_at(t, entry_at(f, p->read_from));
    ls_result result = ls_manifest_build(&parts, manifest);
    return result == LS_OK
               ? LS_OK
               : ls_fail(t->error, result, "manifest: version %" PRIu64 ": %s", f->version, ls_result_name(result));
}

/* Everything behind the footer, whose bytes are all at hand. */
static ls_result read_body(const tail *t, const footer *f, plan *p, ls_manifest **manifest)
{
    ls_row *rows = NULL;
    ls_result result = check_entries(t, f, p);
    if (result == LS_OK) result = read_rows(t, f, p->earlier, &rows);
    if (result == LS_OK) result = share_entries(t, f, p);
    if (result == LS_OK) result = build(t, f, p, rows, manifest);
    ls_manifest_release(p->base);
    ls_free(rows);
    return result;
}

ls_result ls_manifest_decode(const uint8_t *bytes, size_t length, uint64_t expected_version, ls_manifest **manifest,
                             ls_error *error)
{
    tail t = {
        .bytes = bytes, .length = length, .object_bytes = length, .expected_version = expected_version, .error = error};
    footer f = {0};
    plan p = {0};
    uint64_t needed_bytes = 0;
    ls_result result = read_footer(&t, &f, &needed_bytes);
    if (result == LS_OK) result = check_header(&t, &f);
    if (result == LS_OK) result = make_plan(&t, &f, NULL, &p);
    if (result == LS_OK) result = read_body(&t, &f, &p, manifest);
    return result;
}

ls_result ls_manifest_decode_tail(const uint8_t *bytes, size_t length, uint64_t object_bytes, uint64_t expected_version,
                                  const ls_manifest *known, ls_manifest **manifest, uint64_t *needed_bytes,
                                  ls_error *error)
{
    tail t = {.bytes = bytes, .length = length, .object_bytes = object_bytes, .expected_version = expected_version,
              .error = error};
    footer f = {0};
    plan p = {0};
    *manifest = NULL;
    *needed_bytes = 0;
    if (length > object_bytes) {
        return ls_fail(error, LS_ERROR_INVALID, "manifest: a suffix of %zu bytes of an object of %" PRIu64 " bytes",
                       length, object_bytes);
    }
    ls_result result = read_footer(&t, &f, needed_bytes);
    if (result != LS_OK || *needed_bytes > 0) return result;
    if (length == object_bytes) result = check_header(&t, &f);
    if (result == LS_OK) result = make_plan(&t, &f, known, &p);
    if (result != LS_OK) return result;
    uint64_t needed = bytes_needed(&f, &p);
    if (needed > length) {
        *needed_bytes = needed;
        return LS_OK;
    }
    return read_body(&t, &f, &p, manifest);
}
