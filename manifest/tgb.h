/* tgb.h - the Transactional Global Batch: one training step's whole global batch in one object, readable by the slice.
 *
 *   slices   D x C of them back to back from offset 0: data rank 0 with context ranks 0 .. C-1, data rank 1, ...
 *   footer   24 bytes a slice (offset, length, CRC32C), then 80 bytes that identify the object, found from its end
 *
 * A rank reads the footer by one suffix read and its slice by one range read, and nothing else. The exact offsets and
 * why a reader may trust what it accepts: tgb.c's opening comment. Nothing here does I/O: a writer is handed the bytes
 * in passing and makes the footer; a reader is handed the suffix.
 *
 * How many bytes to ask for first: the manifest entry's footer_bytes, which is exact. Without an entry (inspection of
 * an orphan), LS_TGB_SUFFIX_BYTES finds a grid of up to 167 slices at once, and otherwise tells how many are needed.
 *
 * What is refused with which result: damage and contradictions LS_ERROR_CORRUPT, a format that needs a newer program
 * LS_ERROR_VERSION, a grid or size beyond the limits LS_ERROR_LIMIT, a caller's mistake LS_ERROR_INVALID.
 */
#ifndef LS_TGB_H
#define LS_TGB_H

#include "manifest/exchange.h"

#define LS_TGB_FORMAT_VERSION 1u
#define LS_TGB_RECORD_BYTES   24u
#define LS_TGB_TRAILER_BYTES  80u
#define LS_TGB_SLICES_MAX     (1u << 20) /* a footer of 24 MiB */
#define LS_TGB_SUFFIX_BYTES   4096u

/* Who made the object out of what. It repeats the manifest entry, so that an object can be identified alone. It knows
 * no global step: that is decided by the commit. */
typedef struct ls_tgb_identity {
    uint64_t producer;
    uint64_t sequence;
    uint64_t source_begin;
    uint64_t source_end; /* greater than source_begin */
    uint32_t epoch;
} ls_tgb_identity;

/* Length of the footer of a grid; 0 when the grid is empty or has more than LS_TGB_SLICES_MAX slices. */
uint64_t ls_tgb_footer_bytes(uint32_t data_ranks, uint32_t context_ranks);

/* Length of the object with slices of these lengths (data_ranks * context_ranks of them, in order) into *total_bytes.
 * LS_ERROR_LIMIT when the grid is impossible or the sum passes 2^63 - 1. */
ls_result ls_tgb_total_bytes(uint32_t data_ranks, uint32_t context_ranks, const uint64_t *slice_bytes,
                             uint64_t *total_bytes);

/* --- writing in pieces: the caller sends the slices' bytes itself, in order, and the footer last ------------------ */

/* Plain data without ownership: the footer's buffer is the caller's. */
typedef struct ls_tgb_writer {
    ls_tgb_identity identity;
    uint32_t data_ranks, context_ranks;
    uint32_t slices_ended;
    uint32_t crc;         /* of the current slice */
    uint64_t slice_begin; /* of the current slice */
    uint64_t offset;      /* bytes of slices so far */
    uint8_t *footer;
} ls_tgb_writer;

/* Starts an object. footer has room for ls_tgb_footer_bytes bytes and is written until ls_tgb_finish. LS_ERROR_LIMIT:
 * the grid; LS_ERROR_INVALID: capacity too small, or an identity without source offsets. */
ls_result ls_tgb_begin(ls_tgb_writer *writer, const ls_tgb_identity *identity, uint32_t data_ranks,
                       uint32_t context_ranks, uint8_t *footer, size_t capacity);

/* The next bytes of the current slice, in pieces of any size. */
void ls_tgb_add(ls_tgb_writer *writer, const void *bytes, size_t count);

/* The current slice (which may be empty) is complete. LS_ERROR_INVALID when the grid has no more slices. */
ls_result ls_tgb_end_slice(ls_tgb_writer *writer);

/* Completes the footer; *object_bytes (may be NULL) is the length of slices and footer. LS_ERROR_INVALID when slices
 * are missing. */
ls_result ls_tgb_finish(ls_tgb_writer *writer, uint64_t *object_bytes);

/* --- writing at once ---------------------------------------------------------------------------------------------- */

/* Writes exactly length bytes, the slice of that rank, into bytes. length may be 0. */
typedef void (*ls_tgb_fill)(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length);

/* Lays out a whole object of ls_tgb_total_bytes bytes in bytes: fill is called once a slice, in order. Results as those
 * of ls_tgb_total_bytes and ls_tgb_begin. */
ls_result ls_tgb_encode(const ls_tgb_identity *identity, uint32_t data_ranks, uint32_t context_ranks,
                        const uint64_t *slice_bytes, ls_tgb_fill fill, void *context, uint8_t *bytes, size_t capacity);

/* --- reading ------------------------------------------------------------------------------------------------------ */

typedef struct ls_tgb_index {
    ls_tgb_identity identity;
    uint32_t data_ranks, context_ranks;
    uint64_t object_bytes;
    uint32_t footer_bytes;
    ls_slice slices[]; /* data_ranks * context_ranks, in the order of the object */
} ls_tgb_index;

/* Reads a footer from the last `length` bytes of an object of object_bytes bytes. On success *index is the caller's, to
 * be freed by ls_free. When the suffix is too short: LS_OK, *index NULL and *needed_bytes (may be NULL) the suffix to
 * ask for next. Otherwise *index is NULL and error (may be NULL) says what was wrong at which byte offset. */
ls_result ls_tgb_decode_footer(const uint8_t *bytes, size_t length, uint64_t object_bytes, ls_tgb_index **index,
                               uint64_t *needed_bytes, ls_error *error);

/* Where a rank's slice lies; valid as long as the index; NULL when the grid has no such rank. */
const ls_slice *ls_tgb_slice(const ls_tgb_index *index, uint32_t data_rank, uint32_t context_rank);

/* Is the object the one that the manifest's entry names? LS_ERROR_CORRUPT with the first difference if not. */
ls_result ls_tgb_check_entry(const ls_tgb_index *index, const ls_entry *entry, ls_error *error);

/* Are these the bytes of that slice? LS_ERROR_CORRUPT if length or checksum differ. */
ls_result ls_tgb_verify_slice(const ls_slice *slice, const uint8_t *bytes, size_t length, ls_error *error);

#endif
