/* codec.h - the manifest as bytes: a published format, little-endian, checked by CRC32C, readable from its tail.
 *
 *   header   32 bytes   magic "LSMANIF1", format version, record sizes, version
 *   entries  48 bytes each, oldest first: producer, sequence, source_begin, source_end, size_bytes, epoch, footer_bytes
 *   rows     48 bytes each, in slot order: producer, next_source_offset, last_version, commit id, epoch, flags
 *   footer   96 bytes   version, commit id, low watermark, trim step, end step, counts, chain (chain.h) at both steps,
 *                       CRC32C of the rows; then record sizes, format version, its own CRC32C, magic "LSMFOOT1"
 *
 * The exact offsets, the reader's and the writer's algorithm and why they are safe: codec.c's opening comment. The
 * footer holds everything that is not an entry or a row, so a suffix of ls_manifest_tail_bytes bytes (footer, rows,
 * newest entries) is all that a reader needs who knows an older version, and it is checked in full.
 *
 * What is refused with which result: damage and contradictions LS_ERROR_CORRUPT, a format that needs a newer program
 * LS_ERROR_VERSION, more than 2^32 - 1 entries LS_ERROR_LIMIT; the message names what was expected at which byte offset
 * of the object.
 */
#ifndef LS_CODEC_H
#define LS_CODEC_H

#include "manifest/manifest.h"

#define LS_MANIFEST_FORMAT_VERSION 1u

/* Writes ls_manifest_encoded_bytes(manifest) bytes into bytes. LS_ERROR_INVALID, with bytes undefined, when capacity is
 * smaller or the manifest is one that every reader would refuse: version 0, a trim point above the low watermark, an
 * entry without source offsets or with a footer longer than its object, a row changed by a version still to come. */
ls_result ls_manifest_encode(const ls_manifest *manifest, uint8_t *bytes, size_t capacity);

/* Reads a whole object. Every length is checked before use; nothing is believed. On success *manifest is a new
 * reference; otherwise it is untouched and error (may be NULL) says what was wrong at which byte offset.
 * expected_version must be the version in the object's name (0: not checked). */
ls_result ls_manifest_decode(const uint8_t *bytes, size_t length, uint64_t expected_version, ls_manifest **manifest,
                             ls_error *error);

/* Reads the last `length` bytes of an object of object_bytes bytes, given a manifest that the reader already has
 * (entries below its end step are shared with it, not read; NULL or the empty manifest: all are read). When the tail is
 * too short: LS_OK, *manifest NULL and *needed_bytes the suffix length to ask for next, greater than length (a suffix
 * shorter than the footer is told the footer's length first). When the object's trim point has passed known's end step,
 * or known is the newer of the two, all entries of the object are needed. LS_ERROR_CORRUPT also when the object does
 * not continue the history that known belongs to. LS_ERROR_INVALID when length is greater than object_bytes. */
ls_result ls_manifest_decode_tail(const uint8_t *bytes, size_t length, uint64_t object_bytes, uint64_t expected_version,
                                  const ls_manifest *known, ls_manifest **manifest, uint64_t *needed_bytes,
                                  ls_error *error);

#endif
