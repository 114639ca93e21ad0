/* codec.h - the manifest as bytes: a published format, little-endian, checked by CRC32C, readable from its tail.
 *
 *   header   64 bytes   magic "LSMANIF1", format version, header bytes, entry bytes, row bytes, version, commit id,
 *                       trim step, CRC32C of the header
 *   entries  48 bytes each, oldest first: producer, sequence, source_begin, source_end, size_bytes, epoch, footer_bytes
 *   rows     48 bytes each, in slot order: producer, next_source_offset, last_version, incarnation, attempt, epoch, flags
 *   footer   64 bytes   entry count, row count, version, low watermark, end step, trim step, CRC32C of the entries,
 *                       CRC32C of rows and footer, format version, magic "LSMF"
 *
 * The exact offsets are in codec.c's opening comment. Record sizes stand in the header and the footer repeats what a tail
 * reader needs, so a later format version may lengthen records: a reader takes the fields it knows and skips the rest; it
 * refuses a higher `minimum reader version`, with LS_ERROR_VERSION. A suffix read of ls_manifest_tail_bytes bytes yields
 * footer, rows and the newest entries; their integrity is then checked by the rows' CRC and by each entry's continuity
 * (see ls_manifest_decode_tail).
 */
#ifndef LS_CODEC_H
#define LS_CODEC_H

#include "manifest/manifest.h"

#define LS_MANIFEST_FORMAT_VERSION 1u

/* Writes ls_manifest_encoded_bytes(manifest) bytes into bytes; LS_ERROR_INVALID if capacity is smaller. */
ls_result ls_manifest_encode(const ls_manifest *manifest, uint8_t *bytes, size_t capacity);

/* Reads a whole object. Every length is checked before use; nothing is believed. On success *manifest is a new
 * reference; otherwise it is untouched and error says what was wrong at which byte offset. expected_version must be the
 * version in the object's name (0: not checked). */
ls_result ls_manifest_decode(const uint8_t *bytes, size_t length, uint64_t expected_version, ls_manifest **manifest,
                             ls_error *error);

/* Reads the last `length` bytes of an object of object_bytes bytes, given a manifest that the reader already has (entries
 * below its end step are shared with it, not read). When the tail is too short: LS_OK, *manifest NULL and *needed_bytes
 * the suffix length that suffices. When the object's trim point has passed known's end, all its entries are needed. */
ls_result ls_manifest_decode_tail(const uint8_t *bytes, size_t length, uint64_t object_bytes, uint64_t expected_version,
                                  const ls_manifest *known, ls_manifest **manifest, uint64_t *needed_bytes,
                                  ls_error *error);

#endif
