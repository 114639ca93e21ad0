/* batch_source.h - where `lakestream produce` takes its batches from: a synthetic stream, files, or standard input.
 *
 * A source is a sequence of bytes or of made-up batches with offsets. What lies at an offset never changes, so a
 * restarted producer goes on at the offset its row names, and a batch may be filled again when its upload is tried
 * again.
 *
 *   synthetic   one offset a batch; the content of a slice is a pure function of (producer, offset, data rank, context
 *               rank), so any reader can compute it anew and compare
 *   files       offsets are bytes, counted through all files as if they were one; read again when asked again
 *   stream      offsets are bytes of standard input; what is not released is kept in memory
 */
#ifndef LS_BATCH_SOURCE_H
#define LS_BATCH_SOURCE_H

#include "manifest/base.h"

typedef struct ls_batch_source ls_batch_source;

typedef enum ls_source_state {
    LS_SOURCE_READY = 1, /* a batch is there */
    LS_SOURCE_WAIT,      /* nothing yet: ask again later */
    LS_SOURCE_END        /* there is no more */
} ls_source_state;

/* producer: whose synthetic stream. batch_bytes: content of a batch, all slices together; the last of a byte source may
 * be shorter. batches: how many there are in all, from offset 0 on (UINT64_MAX: no limit). NULL when out of memory. */
ls_batch_source *ls_source_synthetic(uint64_t producer, uint64_t batch_bytes, uint64_t batches);

/* The same of files, in this order, or of an open stream (borrowed, non-blocking by poll(2)). NULL with error. */
ls_batch_source *ls_source_files(const char *const *paths, uint32_t count, uint64_t batch_bytes, uint64_t batches,
                                 ls_error *error);
ls_batch_source *ls_source_stream(int file, uint64_t batch_bytes, uint64_t batches, ls_error *error);

void ls_source_free(ls_batch_source *source); /* NULL is allowed */

/* Where production begins: called once. LS_ERROR_INVALID when a byte source is known to be shorter. */
ls_result ls_source_seek(ls_batch_source *source, uint64_t offset, ls_error *error);

/* Is there a next batch, and how long is it: content bytes and source offsets. READY moves on to the one behind it.
 * LS_ERROR_INVALID when a stream ends before the offset of ls_source_seek; LS_ERROR_IO; LS_ERROR_MEMORY. */
ls_result ls_source_next(ls_batch_source *source, ls_source_state *state, uint64_t *content_bytes, uint64_t *offsets,
                         ls_error *error);

/* Writes the content of the batch [begin, end) of a grid, as ls_slice_length cuts it, into content_bytes bytes. */
ls_result ls_source_fill(ls_batch_source *source, uint64_t begin, uint64_t end, uint32_t data_ranks,
                         uint32_t context_ranks, uint8_t *bytes, uint64_t content_bytes, ls_error *error);

/* Offsets below this one will not be asked for again. */
void ls_source_release(ls_batch_source *source, uint64_t offset);

/* Content cut in slices: as even as bytes allow, the first ones a byte longer. */
static inline uint64_t ls_slice_length(uint64_t content_bytes, uint32_t slices, uint32_t index)
{
    return content_bytes / slices + (index < content_bytes % slices ? 1 : 0);
}

/* The synthetic content of a slice: its first `length` bytes. A shorter slice is a beginning of a longer one. */
void ls_synthetic_fill(uint64_t producer, uint64_t offset, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes,
                       uint64_t length);

/* Compares; the position of the first byte that differs, or UINT64_MAX. */
uint64_t ls_synthetic_difference(uint64_t producer, uint64_t offset, uint32_t data_rank, uint32_t context_rank,
                                 const uint8_t *bytes, uint64_t length);

#endif
