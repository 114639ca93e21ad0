/* tgb.c - the TGB object: layout, writer, reader, and why a reader may trust what it accepts.
 *
 * LAYOUT. All numbers are unsigned and little-endian; nothing is padded. S = data ranks x context ranks.
 *
 *   slices, from offset 0: the slice of (d, c) is number d * (context ranks) + c; each begins where the one before ends
 *
 *   record, 24 bytes, S of them, in the order of the slices
 *      0  8  offset in the object
 *      8  8  length (0 is possible)
 *     16  4  CRC32C of the slice's bytes
 *     20  4  reserved, 0
 *
 *   trailer, 80 bytes, the object's end
 *      0  8  producer
 *      8  8  sequence: upload number within the epoch
 *     16  8  source begin
 *     24  8  source end, greater than source begin
 *     32  8  object bytes: length of the whole object
 *     40  4  epoch
 *     44  4  data ranks
 *     48  4  context ranks
 *     52  4  CRC32C of all records as they stand
 *     56  4  footer bytes: records and trailer (24 S + 80)
 *     60  2  record bytes (24)
 *     62  2  trailer bytes (80)
 *     64  2  format version (1)
 *     66  2  minimum reader version (1): a program that knows only lower ones must refuse the object
 *     68  4  CRC32C of bytes 0 .. 67 of the trailer
 *     72  8  magic "LSTGBEND"
 *
 * WRITER. Slices first, each checksummed in passing, footer last; so an object can be streamed without knowing the
 * lengths of its slices, and the data are never gone over a second time.
 *
 * READER.
 *   1. The last 24 bytes: magic, then the trailer's length, its CRC, the minimum reader version.
 *   2. Footer bytes = records + trailer, object bytes = the length that the store reports, the grid within its limit.
 *   3. The records against their CRC; then each must begin where the one before ends, the first at 0 and the last
 *      ending where the footer begins. So slices neither overlap nor leave the object, without any sum that could
 *      overflow.
 *   4. Later, each slice read by range against its own CRC32C.
 *
 * WHY IT IS SAFE. Every byte is covered by a CRC or compared with the one value it may have: a footer with one flipped
 * bit is always refused, and so is a slice. A truncated object has no trailer at its end; one that ends in a foreign
 * trailer (a concatenation, say) has another length than that trailer says. Counts are bounded by the bytes at hand
 * before anything is allocated. The identity is compared with the manifest's entry (ls_tgb_check_entry), so an intact
 * object under a wrong name is found too. As long as the magic stays, the last 24 bytes and the CRC rule stay; records
 * may grow at their end and the trailer before its last 24 bytes, which older readers skip.
 */
#include "manifest/tgb.h"

#include "manifest/bytes.h"
#include "manifest/crc32c.h"

#include <inttypes.h>
#include <string.h>

#define TRAILER_END_BYTES   24u /* the part of the trailer that never moves, counted from its end */
#define TRAILER_CRC_AT_BACK 12u

static const uint8_t trailer_magic[8] = {'L', 'S', 'T', 'G', 'B', 'E', 'N', 'D'};

/* Slices of a grid, 0 when it is impossible. */
static uint32_t grid_slices(uint32_t data_ranks, uint32_t context_ranks)
{
    uint64_t slices = (uint64_t)data_ranks * context_ranks;
    return slices <= LS_TGB_SLICES_MAX ? (uint32_t)slices : 0;
}

uint64_t ls_tgb_footer_bytes(uint32_t data_ranks, uint32_t context_ranks)
{
    uint32_t slices = grid_slices(data_ranks, context_ranks);
    return slices == 0 ? 0 : (uint64_t)LS_TGB_RECORD_BYTES * slices + LS_TGB_TRAILER_BYTES;
}

ls_result ls_tgb_total_bytes(uint32_t data_ranks, uint32_t context_ranks, const uint64_t *slice_bytes,
                             uint64_t *total_bytes)
{
    uint32_t slices = grid_slices(data_ranks, context_ranks);
    if (slices == 0) return LS_ERROR_LIMIT;
    uint64_t total = ls_tgb_footer_bytes(data_ranks, context_ranks);
    for (uint32_t i = 0; i < slices; i++) {
        if (slice_bytes[i] > INT64_MAX - total) return LS_ERROR_LIMIT;
        total += slice_bytes[i];
    }
    *total_bytes = total;
    return LS_OK;
}

/* --- writer ------------------------------------------------------------------------------------------------------ */

ls_result ls_tgb_begin(ls_tgb_writer *writer, const ls_tgb_identity *identity, uint32_t data_ranks,
                       uint32_t context_ranks, uint8_t *footer, size_t capacity)
{
    uint64_t footer_bytes = ls_tgb_footer_bytes(data_ranks, context_ranks);
    if (footer_bytes == 0) return LS_ERROR_LIMIT;
    if (capacity < footer_bytes || identity->source_end <= identity->source_begin) return LS_ERROR_INVALID;
    *writer = (ls_tgb_writer){.identity = *identity, .data_ranks = data_ranks, .context_ranks = context_ranks,
                              .footer = footer};
    return LS_OK;
}

void ls_tgb_add(ls_tgb_writer *writer, const void *bytes, size_t count)
{
    writer->crc = ls_crc32c(writer->crc, bytes, count);
    writer->offset += count;
}

ls_result ls_tgb_end_slice(ls_tgb_writer *writer)
{
    if (writer->slices_ended == grid_slices(writer->data_ranks, writer->context_ranks)) return LS_ERROR_INVALID;
    uint8_t *record = writer->footer + (size_t)LS_TGB_RECORD_BYTES * writer->slices_ended;
    ls_store_u64(record, writer->slice_begin);
    ls_store_u64(record + 8, writer->offset - writer->slice_begin);
    ls_store_u32(record + 16, writer->crc);
    ls_store_u32(record + 20, 0);
    writer->slices_ended++;
    writer->slice_begin = writer->offset;
    writer->crc = 0;
    return LS_OK;
}

ls_result ls_tgb_finish(ls_tgb_writer *writer, uint64_t *object_bytes)
{
    uint32_t slices = grid_slices(writer->data_ranks, writer->context_ranks);
    if (writer->slices_ended != slices || writer->offset != writer->slice_begin) return LS_ERROR_INVALID;
    uint64_t footer_bytes = ls_tgb_footer_bytes(writer->data_ranks, writer->context_ranks);
    size_t records_bytes = (size_t)LS_TGB_RECORD_BYTES * slices;
    const ls_tgb_identity *identity = &writer->identity;
    uint8_t *trailer = writer->footer + records_bytes;
    ls_store_u64(trailer, identity->producer);
    ls_store_u64(trailer + 8, identity->sequence);
    ls_store_u64(trailer + 16, identity->source_begin);
    ls_store_u64(trailer + 24, identity->source_end);
    ls_store_u64(trailer + 32, writer->offset + footer_bytes);
    ls_store_u32(trailer + 40, identity->epoch);
    ls_store_u32(trailer + 44, writer->data_ranks);
    ls_store_u32(trailer + 48, writer->context_ranks);
    ls_store_u32(trailer + 52, ls_crc32c(0, writer->footer, records_bytes));
    ls_store_u32(trailer + 56, (uint32_t)footer_bytes);
    ls_store_u16(trailer + 60, LS_TGB_RECORD_BYTES);
    ls_store_u16(trailer + 62, LS_TGB_TRAILER_BYTES);
    ls_store_u16(trailer + 64, LS_TGB_FORMAT_VERSION);
    ls_store_u16(trailer + 66, LS_TGB_FORMAT_VERSION);
    ls_store_u32(trailer + 68, ls_crc32c(0, trailer, LS_TGB_TRAILER_BYTES - TRAILER_CRC_AT_BACK));
    memcpy(trailer + 72, trailer_magic, sizeof trailer_magic);
    if (object_bytes != NULL) *object_bytes = writer->offset + footer_bytes;
    return LS_OK;
}

ls_result ls_tgb_encode(const ls_tgb_identity *identity, uint32_t data_ranks, uint32_t context_ranks,
                        const uint64_t *slice_bytes, ls_tgb_fill fill, void *context, uint8_t *bytes, size_t capacity)
{
    uint64_t total = 0;
    ls_result result = ls_tgb_total_bytes(data_ranks, context_ranks, slice_bytes, &total);
    if (result != LS_OK) return result;
    if (capacity < total) return LS_ERROR_INVALID;
    uint64_t footer_bytes = ls_tgb_footer_bytes(data_ranks, context_ranks);
    ls_tgb_writer writer;
    result = ls_tgb_begin(&writer, identity, data_ranks, context_ranks, bytes + (total - footer_bytes),
                          (size_t)footer_bytes);
    for (uint32_t i = 0; result == LS_OK && i < data_ranks * context_ranks; i++) {
        uint8_t *slice = bytes + writer.offset;
        fill(context, i / context_ranks, i % context_ranks, slice, slice_bytes[i]);
        ls_tgb_add(&writer, slice, (size_t)slice_bytes[i]);
        result = ls_tgb_end_slice(&writer);
    }
    return result == LS_OK ? ls_tgb_finish(&writer, NULL) : result;
}

/* --- reader ------------------------------------------------------------------------------------------------------ */

typedef struct trailer {
    ls_tgb_identity identity;
    uint64_t object_bytes;
    uint32_t data_ranks, context_ranks, records_crc, footer_bytes;
    uint16_t record_bytes, trailer_bytes, format_version, minimum_reader;
} trailer;

/* What is being read: the object's last `length` bytes. */
typedef struct suffix {
    const uint8_t *bytes;
    uint64_t length;
    uint64_t object_bytes;
    ls_error *error;
} suffix;

static const uint8_t *bytes_at(const suffix *s, uint64_t offset)
{
    return s->bytes + (offset - (s->object_bytes - s->length));
}

static void load_trailer(const uint8_t *bytes, trailer *t)
{
    const uint8_t *end = bytes + t->trailer_bytes - TRAILER_END_BYTES;
    t->identity = (ls_tgb_identity){.producer = ls_load_u64(bytes), .sequence = ls_load_u64(bytes + 8),
                                    .source_begin = ls_load_u64(bytes + 16), .source_end = ls_load_u64(bytes + 24),
                                    .epoch = ls_load_u32(bytes + 40)};
    t->object_bytes = ls_load_u64(bytes + 32);
    t->data_ranks = ls_load_u32(bytes + 44);
    t->context_ranks = ls_load_u32(bytes + 48);
    t->records_crc = ls_load_u32(bytes + 52);
    t->footer_bytes = ls_load_u32(end);
    t->record_bytes = ls_load_u16(end + 4);
    t->format_version = ls_load_u16(end + 8);
    t->minimum_reader = ls_load_u16(end + 10);
}

static ls_result check_format_version(const suffix *s, const trailer *t)
{
    if (t->format_version == 0 || t->minimum_reader == 0 || t->minimum_reader > t->format_version) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: format version %u with minimum reader version %u at offset %" PRIu64
                       ": expected 1 <= minimum reader version <= format version",
                       t->format_version, t->minimum_reader, s->object_bytes - 16);
    }
    if (t->minimum_reader > LS_TGB_FORMAT_VERSION) {
        return ls_fail(s->error, LS_ERROR_VERSION,
                       "TGB: format version %u, readable from reader version %u on (offset %" PRIu64
                       "), but this program knows version %u: use a newer program",
                       t->format_version, t->minimum_reader, s->object_bytes - 14, LS_TGB_FORMAT_VERSION);
    }
    return LS_OK;
}

static ls_result check_sizes(const suffix *s, const trailer *t)
{
    uint64_t end_at = s->object_bytes - TRAILER_END_BYTES, trailer_at = s->object_bytes - t->trailer_bytes;
    bool first_format = t->format_version == LS_TGB_FORMAT_VERSION;
    if (t->record_bytes < LS_TGB_RECORD_BYTES || (first_format && (t->record_bytes != LS_TGB_RECORD_BYTES ||
                                                                   t->trailer_bytes != LS_TGB_TRAILER_BYTES))) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: format version %u with records of %u bytes and a trailer of %u (offset %" PRIu64
                       "), expected %u and %u (more only in later formats)",
                       t->format_version, t->record_bytes, t->trailer_bytes, end_at + 4, LS_TGB_RECORD_BYTES,
                       LS_TGB_TRAILER_BYTES);
    }
    uint32_t slices = grid_slices(t->data_ranks, t->context_ranks);
    if (slices == 0) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: a grid of %" PRIu32 " x %" PRIu32 " slices at offset %" PRIu64 ", expected 1 to %u in all",
                       t->data_ranks, t->context_ranks, trailer_at + 44, LS_TGB_SLICES_MAX);
    }
    if (t->footer_bytes != (uint64_t)t->record_bytes * slices + t->trailer_bytes || t->footer_bytes > s->object_bytes) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: a footer of %" PRIu32 " bytes at offset %" PRIu64 ", expected %" PRIu32
                       " records of %u bytes and a trailer of %u, within the object",
                       t->footer_bytes, end_at, slices, t->record_bytes, t->trailer_bytes);
    }
    if (t->object_bytes != s->object_bytes) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: made as an object of %" PRIu64 " bytes (offset %" PRIu64 "), but it has %" PRIu64,
                       t->object_bytes, trailer_at + 32, s->object_bytes);
    }
    if (t->identity.source_end <= t->identity.source_begin) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: source offsets %" PRIu64 " to %" PRIu64 " at offset %" PRIu64 ", expected at least one",
                       t->identity.source_begin, t->identity.source_end, trailer_at + 16);
    }
    return LS_OK;
}

/* Reads and checks the trailer. When the suffix is shorter than the footer: LS_OK and *needed_bytes > length. */
static ls_result read_trailer(const suffix *s, trailer *t, uint64_t *needed_bytes)
{
    if (s->object_bytes < LS_TGB_RECORD_BYTES + LS_TGB_TRAILER_BYTES) {
        return ls_fail(s->error, LS_ERROR_CORRUPT, "TGB: object of %" PRIu64 " bytes, expected at least %u",
                       s->object_bytes, LS_TGB_RECORD_BYTES + LS_TGB_TRAILER_BYTES);
    }
    *needed_bytes = LS_TGB_RECORD_BYTES + LS_TGB_TRAILER_BYTES;
    if (s->length < TRAILER_END_BYTES) return LS_OK;
    const uint8_t *end = bytes_at(s, s->object_bytes - TRAILER_END_BYTES);
    if (memcmp(end + 16, trailer_magic, sizeof trailer_magic) != 0) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: no \"LSTGBEND\" at offset %" PRIu64 ": not a TGB, or cut short",
                       s->object_bytes - sizeof trailer_magic);
    }
    *t = (trailer){.trailer_bytes = ls_load_u16(end + 6)};
    if (t->trailer_bytes < LS_TGB_TRAILER_BYTES || t->trailer_bytes > s->object_bytes) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: trailer of %u bytes at offset %" PRIu64 ", expected %u or more, within the object",
                       t->trailer_bytes, s->object_bytes - TRAILER_END_BYTES + 6, LS_TGB_TRAILER_BYTES);
    }
    *needed_bytes = t->trailer_bytes;
    if (s->length < t->trailer_bytes) return LS_OK;
    uint64_t at = s->object_bytes - t->trailer_bytes;
    uint32_t computed = ls_crc32c(0, bytes_at(s, at), t->trailer_bytes - TRAILER_CRC_AT_BACK),
             stored = ls_load_u32(end + 12);
    if (computed != stored) {
        return ls_fail(s->error, LS_ERROR_CORRUPT,
                       "TGB: trailer at offset %" PRIu64 " is damaged: CRC32C %08" PRIx32 ", expected %08" PRIx32, at,
                       computed, stored);
    }
    load_trailer(bytes_at(s, at), t);
    *needed_bytes = t->footer_bytes;
    ls_result result = check_format_version(s, t);
    return result == LS_OK ? check_sizes(s, t) : result;
}

/* The records, one beginning where the other ends, into index. */
static ls_result read_records(const suffix *s, const trailer *t, ls_tgb_index *index)
{
    uint32_t slices = t->data_ranks * t->context_ranks;
    uint64_t data_bytes = s->object_bytes - t->footer_bytes, expected = 0;
    for (uint32_t i = 0; i < slices; i++) {
        uint64_t at = data_bytes + (uint64_t)t->record_bytes * i;
        const uint8_t *record = bytes_at(s, at);
        ls_slice *slice = &index->slices[i];
        *slice = (ls_slice){.data_rank = i / t->context_ranks, .context_rank = i % t->context_ranks,
                            .offset = ls_load_u64(record), .bytes = ls_load_u64(record + 8),
                            .crc32c = ls_load_u32(record + 16)};
        if (slice->offset != expected || slice->bytes > data_bytes - expected) {
            return ls_fail(s->error, LS_ERROR_CORRUPT,
                           "TGB: slice %" PRIu32 " at offset %" PRIu64 " lies at %" PRIu64 " with %" PRIu64
                           " bytes, expected at %" PRIu64 " and within the %" PRIu64 " bytes of slices",
                           i, at, slice->offset, slice->bytes, expected, data_bytes);
        }
        if (t->format_version == LS_TGB_FORMAT_VERSION && ls_load_u32(record + 20) != 0) {
            return ls_fail(s->error, LS_ERROR_CORRUPT, "TGB: reserved bytes at offset %" PRIu64 ", expected 0",
                           at + 20);
        }
        expected += slice->bytes;
    }
    if (expected == data_bytes) return LS_OK;
    return ls_fail(s->error, LS_ERROR_CORRUPT,
                   "TGB: the slices end at %" PRIu64 ", expected %" PRIu64 ", where the footer begins", expected,
                   data_bytes);
}

ls_result ls_tgb_decode_footer(const uint8_t *bytes, size_t length, uint64_t object_bytes, ls_tgb_index **index,
                               uint64_t *needed_bytes, ls_error *error)
{
    suffix s = {.bytes = bytes, .length = length, .object_bytes = object_bytes, .error = error};
    trailer t = {0};
    uint64_t needed = 0;
    *index = NULL;
    if (needed_bytes != NULL) *needed_bytes = 0;
    if (length > object_bytes) {
        return ls_fail(error, LS_ERROR_INVALID, "TGB: a suffix of %zu bytes of an object of %" PRIu64 " bytes", length,
                       object_bytes);
    }
    ls_result result = read_trailer(&s, &t, &needed);
    if (result != LS_OK) return result;
    if (needed > length) {
        if (needed_bytes != NULL) *needed_bytes = needed;
        return LS_OK;
    }
    size_t records_bytes = t.footer_bytes - t.trailer_bytes;
    uint64_t records_at = object_bytes - t.footer_bytes;
    uint32_t computed = ls_crc32c(0, bytes_at(&s, records_at), records_bytes);
    if (computed != t.records_crc) {
        return ls_fail(error, LS_ERROR_CORRUPT,
                       "TGB: slice records at offset %" PRIu64 " are damaged: CRC32C %08" PRIx32
                       ", expected %08" PRIx32,
                       records_at, computed, t.records_crc);
    }
    ls_tgb_index *made = ls_allocate(sizeof *made + sizeof(ls_slice) * (size_t)t.data_ranks * t.context_ranks);
    if (made == NULL) return ls_fail(error, LS_ERROR_MEMORY, "TGB: out of memory");
    *made = (ls_tgb_index){.identity = t.identity, .data_ranks = t.data_ranks, .context_ranks = t.context_ranks,
                           .object_bytes = object_bytes, .footer_bytes = t.footer_bytes};
    result = read_records(&s, &t, made);
    if (result == LS_OK) {
        *index = made;
    } else {
        ls_free(made);
    }
    return result;
}

const ls_slice *ls_tgb_slice(const ls_tgb_index *index, uint32_t data_rank, uint32_t context_rank)
{
    if (data_rank >= index->data_ranks || context_rank >= index->context_ranks) return NULL;
    return &index->slices[(size_t)data_rank * index->context_ranks + context_rank];
}

ls_result ls_tgb_check_entry(const ls_tgb_index *index, const ls_entry *entry, ls_error *error)
{
    const ls_tgb_identity *identity = &index->identity;
    const struct {
        const char *name;
        uint64_t object, manifest;
    } pairs[] = {{"producer", identity->producer, entry->producer},
                 {"epoch", identity->epoch, entry->epoch},
                 {"sequence", identity->sequence, entry->sequence},
                 {"source begin", identity->source_begin, entry->source_begin},
                 {"source end", identity->source_end, entry->source_end},
                 {"object bytes", index->object_bytes, entry->size_bytes},
                 {"footer bytes", index->footer_bytes, entry->footer_bytes}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].object == pairs[i].manifest) continue;
        return ls_fail(error, LS_ERROR_CORRUPT, "TGB: %s %" PRIu64 ", but the manifest's entry says %" PRIu64,
                       pairs[i].name, pairs[i].object, pairs[i].manifest);
    }
    return LS_OK;
}

ls_result ls_tgb_verify_slice(const ls_slice *slice, const uint8_t *bytes, size_t length, ls_error *error)
{
    if (length != slice->bytes) {
        return ls_fail(error, LS_ERROR_CORRUPT,
                       "TGB: slice (%" PRIu32 ", %" PRIu32 ") at offset %" PRIu64
                       " came with %zu bytes, expected %" PRIu64,
                       slice->data_rank, slice->context_rank, slice->offset, length, slice->bytes);
    }
    uint32_t computed = ls_crc32c(0, bytes, length);
    if (computed == slice->crc32c) return LS_OK;
    return ls_fail(error, LS_ERROR_CORRUPT,
                   "TGB: slice (%" PRIu32 ", %" PRIu32 ") at offset %" PRIu64 " is damaged: CRC32C %08" PRIx32
                   ", expected %08" PRIx32,
                   slice->data_rank, slice->context_rank, slice->offset, computed, slice->crc32c);
}
