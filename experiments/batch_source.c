/* batch_source.c - see batch_source.h. */
#include "experiments/batch_source.h"

#include "manifest/bytes.h"
#include "manifest/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SKIP_BYTES (UINT64_C(1) << 16)

typedef enum source_kind { KIND_SYNTHETIC, KIND_FILES, KIND_STREAM } source_kind;

typedef struct source_file {
    const char *path; /* borrowed */
    int file;
    uint64_t begin; /* offset of its first byte in the source */
    uint64_t bytes;
} source_file;

/* A batch of a stream, kept until it is released. */
typedef struct chunk {
    struct chunk *next;
    uint64_t begin;
    uint64_t length;
    uint8_t bytes[];
} chunk;

struct ls_batch_source {
    source_kind kind;
    uint64_t producer;
    uint64_t batch_bytes;
    uint64_t end;    /* no batch begins at or beyond */
    uint64_t offset; /* of the next batch */
    source_file *files;
    uint32_t file_count;
    int stream;
    bool stream_ended;
    uint64_t to_skip;       /* bytes of the stream that were produced by an earlier incarnation */
    chunk *filling;         /* the batch being read; batch_bytes of room */
    chunk *oldest, *newest; /* complete and not released */
};

/* --- synthetic content
 * ------------------------------------------------------------------------------------------------ */

/* Word n of a slice is SplitMix64's n-th output (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014) from a start that Philox draws of the slice's coordinates. */
static uint64_t first_word(uint64_t producer, uint64_t offset, uint32_t data_rank, uint32_t context_rank)
{
    uint64_t words[2];
    ls_philox2x64(offset, (uint64_t)data_rank << 32 | context_rank, producer, words);
    return words[0];
}

static uint64_t next_word(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

void ls_synthetic_fill(uint64_t producer, uint64_t offset, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes,
                       uint64_t length)
{
    uint64_t state = first_word(producer, offset, data_rank, context_rank), at = 0;
    for (; at + 8 <= length; at += 8) ls_store_u64(bytes + at, next_word(&state));
    uint8_t last[8];
    ls_store_u64(last, next_word(&state));
    memcpy(bytes + at, last, (size_t)(length - at));
}

uint64_t ls_synthetic_difference(uint64_t producer, uint64_t offset, uint32_t data_rank, uint32_t context_rank,
                                 const uint8_t *bytes, uint64_t length)
{
    uint64_t state = first_word(producer, offset, data_rank, context_rank);
    for (uint64_t at = 0; at < length; at += 8) {
        uint8_t wanted[8];
        size_t count = length - at < 8 ? (size_t)(length - at) : 8;
        ls_store_u64(wanted, next_word(&state));
        if (memcmp(wanted, bytes + at, count) == 0) continue;
        size_t i = 0;
        while (wanted[i] == bytes[at + i]) i++;
        return at + i;
    }
    return UINT64_MAX;
}

/* --- making and freeing
 * ----------------------------------------------------------------------------------------------- */

static ls_batch_source *new_source(source_kind kind, uint64_t batch_bytes, uint64_t batches)
{
    ls_batch_source *source = ls_allocate_array(1, sizeof *source);
    if (source == NULL) return NULL;
    source->kind = kind;
    source->batch_bytes = batch_bytes;
    source->stream = -1;
    uint64_t span = kind == KIND_SYNTHETIC ? 1 : batch_bytes;
    source->end = batches > UINT64_MAX / span ? UINT64_MAX : batches * span;
    return source;
}

ls_batch_source *ls_source_synthetic(uint64_t producer, uint64_t batch_bytes, uint64_t batches)
{
    ls_batch_source *source = new_source(KIND_SYNTHETIC, batch_bytes, batches);
    if (source != NULL) source->producer = producer;
    return source;
}

static ls_result open_file(ls_batch_source *source, const char *path, uint64_t begin, ls_error *error)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return ls_fail(error, LS_ERROR_INVALID, "%.200s cannot be read: %s", path, strerror(errno));
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        return ls_fail(error, LS_ERROR_INVALID, "%.200s is no plain file; pipe it in and give --source -", path);
    }
    source->files[source->file_count++] = (source_file){path, file, begin, (uint64_t)status.st_size};
    return LS_OK;
}

ls_batch_source *ls_source_files(const char *const *paths, uint32_t count, uint64_t batch_bytes, uint64_t batches,
                                 ls_error *error)
{
    ls_batch_source *source = new_source(KIND_FILES, batch_bytes, batches);
    if (source != NULL) source->files = ls_allocate_array(count, sizeof *source->files);
    if (source == NULL || source->files == NULL) {
        ls_source_free(source);
        ls_fail(error, LS_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (open_file(source, paths[i], total, error) != LS_OK) {
            ls_source_free(source);
            return NULL;
        }
        total += source->files[i].bytes;
    }
    if (total < source->end) source->end = total;
    return source;
}

ls_batch_source *ls_source_stream(int file, uint64_t batch_bytes, uint64_t batches, ls_error *error)
{
    ls_batch_source *source = new_source(KIND_STREAM, batch_bytes, batches);
    if (source == NULL)
        ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    else
        source->stream = file;
    return source;
}

void ls_source_free(ls_batch_source *source)
{
    if (source == NULL) return;
    for (uint32_t i = 0; i < source->file_count; i++) close(source->files[i].file);
    ls_source_release(source, UINT64_MAX);
    ls_free(source->filling);
    ls_free(source->files);
    ls_free(source);
}

/* --- batches
 * ---------------------------------------------------------------------------------------------------------- */

ls_result ls_source_seek(ls_batch_source *source, uint64_t offset, ls_error *error)
{
    source->offset = offset;
    source->to_skip = offset;
    bool too_short = source->kind == KIND_FILES &&
                     offset > source->files[source->file_count - 1].begin + source->files[source->file_count - 1].bytes;
    if (!too_short) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID,
                   "the files hold fewer bytes than this producer has already published (%" PRIu64
                   "); give the same files again, or another --producer",
                   offset);
}

/* Up to `count` bytes of what the stream has now; 0: nothing yet, or its end. */
static ls_result read_some(ls_batch_source *source, uint8_t *bytes, uint64_t count, uint64_t *got, ls_error *error)
{
    struct pollfd wait = {.fd = source->stream, .events = POLLIN};
    *got = 0;
    if (poll(&wait, 1, 0) <= 0) return LS_OK;
    ssize_t result = read(source->stream, bytes, count < (1u << 30) ? (size_t)count : (size_t)1 << 30);
    if (result < 0 && (errno == EINTR || errno == EAGAIN)) return LS_OK;
    if (result < 0) return ls_fail(error, LS_ERROR_IO, "standard input cannot be read: %s", strerror(errno));
    source->stream_ended = result == 0;
    *got = (uint64_t)result;
    return LS_OK;
}

static ls_result skip(ls_batch_source *source, ls_error *error)
{
    uint8_t *thrown_away = ls_allocate(SKIP_BYTES);
    if (thrown_away == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = LS_OK;
    uint64_t got = 1;
    while (result == LS_OK && source->to_skip > 0 && got > 0) {
        uint64_t count = source->to_skip < SKIP_BYTES ? source->to_skip : SKIP_BYTES;
        result = read_some(source, thrown_away, count, &got, error);
        source->to_skip -= got;
    }
    ls_free(thrown_away);
    if (result != LS_OK || source->to_skip == 0 || !source->stream_ended) return result;
    return ls_fail(error, LS_ERROR_INVALID,
                   "standard input ended %" PRIu64 " bytes before the %" PRIu64
                   " that this producer has already published; give the same input again, or another --producer",
                   source->to_skip, source->offset);
}

static void complete(ls_batch_source *source)
{
    chunk *done = source->filling;
    source->filling = NULL;
    if (source->newest != NULL)
        source->newest->next = done;
    else
        source->oldest = done;
    source->newest = done;
}

/* Reads on until a batch is whole, the input pauses, or it ends. */
static ls_result next_of_stream(ls_batch_source *source, ls_source_state *state, uint64_t *content_bytes,
                                ls_error *error)
{
    ls_result result = source->to_skip > 0 ? skip(source, error) : LS_OK;
    *state = LS_SOURCE_WAIT;
    if (result != LS_OK || source->to_skip > 0) return result;
    if (source->filling == NULL) {
        source->filling = ls_allocate(sizeof *source->filling + source->batch_bytes);
        if (source->filling == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a batch");
        *source->filling = (chunk){.begin = source->offset};
    }
    chunk *filling = source->filling;
    uint64_t got = 1;
    while (result == LS_OK && got > 0 && filling->length < source->batch_bytes) {
        result =
            read_some(source, filling->bytes + filling->length, source->batch_bytes - filling->length, &got, error);
        filling->length += got;
    }
    if (result != LS_OK || (filling->length < source->batch_bytes && !source->stream_ended)) return result;
    *state = filling->length > 0 ? LS_SOURCE_READY : LS_SOURCE_END;
    *content_bytes = filling->length;
    if (filling->length > 0) complete(source);
    return LS_OK;
}

ls_result ls_source_next(ls_batch_source *source, ls_source_state *state, uint64_t *content_bytes, uint64_t *offsets,
                         ls_error *error)
{
    *state = LS_SOURCE_END;
    *content_bytes = *offsets = 0;
    if (source->offset >= source->end) return LS_OK;
    if (source->kind == KIND_STREAM) {
        ls_result result = next_of_stream(source, state, content_bytes, error);
        if (result != LS_OK || *state != LS_SOURCE_READY) return result;
    } else {
        uint64_t left = source->end - source->offset;
        bool shorter = source->kind == KIND_FILES && left < source->batch_bytes;
        *content_bytes = shorter ? left : source->batch_bytes;
        *state = LS_SOURCE_READY;
    }
    *offsets = source->kind == KIND_SYNTHETIC ? 1 : *content_bytes;
    source->offset += *offsets;
    return LS_OK;
}

static void fill_synthetic(const ls_batch_source *source, uint64_t offset, uint32_t data_ranks, uint32_t context_ranks,
                           uint8_t *bytes, uint64_t content_bytes)
{
    uint32_t slices = data_ranks * context_ranks;
    for (uint32_t i = 0; i < slices; i++) {
        uint64_t length = ls_slice_length(content_bytes, slices, i);
        ls_synthetic_fill(source->producer, offset, i / context_ranks, i % context_ranks, bytes, length);
        bytes += length;
    }
}

static ls_result read_part(const source_file *from, uint64_t offset, uint8_t *bytes, uint64_t count, ls_error *error)
{
    while (count > 0) {
        ssize_t got = pread(from->file, bytes, count < (1u << 30) ? (size_t)count : (size_t)1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            return ls_fail(error, LS_ERROR_IO, "%.200s at byte %" PRIu64 ": %s", from->path, offset,
                           got == 0 ? "the file has become shorter" : strerror(errno));
        }
        bytes += got;
        offset += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return LS_OK;
}

static ls_result fill_from_files(const ls_batch_source *source, uint64_t begin, uint64_t end, uint8_t *bytes,
                                 ls_error *error)
{
    for (uint32_t i = 0; i < source->file_count && begin < end; i++) {
        const source_file *from = &source->files[i];
        uint64_t file_end = from->begin + from->bytes;
        if (begin >= file_end) continue;
        uint64_t count = (end < file_end ? end : file_end) - begin;
        ls_result result = read_part(from, begin - from->begin, bytes, count, error);
        if (result != LS_OK) return result;
        bytes += count;
        begin += count;
    }
    return LS_OK;
}

static ls_result fill_from_stream(const ls_batch_source *source, uint64_t begin, uint8_t *bytes, uint64_t content_bytes,
                                  ls_error *error)
{
    const chunk *found = source->oldest;
    while (found != NULL && found->begin != begin) found = found->next;
    if (found == NULL || found->length != content_bytes) {
        return ls_fail(error, LS_ERROR_INVALID, "the batch at source offset %" PRIu64 " is no longer in memory", begin);
    }
    memcpy(bytes, found->bytes, (size_t)content_bytes);
    return LS_OK;
}

ls_result ls_source_fill(ls_batch_source *source, uint64_t begin, uint64_t end, uint32_t data_ranks,
                         uint32_t context_ranks, uint8_t *bytes, uint64_t content_bytes, ls_error *error)
{
    switch (source->kind) {
    case KIND_SYNTHETIC: fill_synthetic(source, begin, data_ranks, context_ranks, bytes, content_bytes); return LS_OK;
    case KIND_FILES: return fill_from_files(source, begin, end, bytes, error);
    case KIND_STREAM: return fill_from_stream(source, begin, bytes, content_bytes, error);
    }
    return LS_ERROR_INVALID;
}

void ls_source_release(ls_batch_source *source, uint64_t offset)
{
    while (source->oldest != NULL && source->oldest->begin < offset) {
        chunk *gone = source->oldest;
        source->oldest = gone->next;
        if (source->oldest == NULL) source->newest = NULL;
        ls_free(gone);
    }
}
