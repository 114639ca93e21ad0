/* store.c - what all stores have in common: the checks before submit, the one-operation call, the probe, opening by
 * address.
 *
 * Keys are checked here and nowhere else, so every store refuses the same names: what a directory could not hold safely
 * ("..", empty parts) is refused in memory and on S3 too, and a lake can be copied between stores.
 */
#include "backend/store.h"

#include "backend/s3.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Length of the UTF-8 sequence at text, 0 if there is none (RFC 3629: no overlong forms, surrogates, or beyond
 * U+10FFFF). */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char lead = text[0], low = 0x80, high = 0xbf;
    size_t length;
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    if (text[1] < low || text[1] > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) return 0;
    }
    return length;
}

static bool is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        size_t length = utf8_length(at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

const char *ls_store_key_problem(const char *key)
{
    if (key == NULL || key[0] == '\0') return "is empty";
    if (strnlen(key, LS_STORE_KEY_BYTES_MAX + 1) > LS_STORE_KEY_BYTES_MAX) return "is longer than 1024 bytes";
    if (key[0] == '/') return "begins with a slash";
    if (!is_utf8(key)) return "is not UTF-8 text";
    for (const char *part = key; part != NULL;) {
        size_t length = strcspn(part, "/");
        if (length == 0) return "has an empty part between slashes";
        if (length == 1 && part[0] == '.') return "has the part '.'";
        if (length == 2 && part[0] == '.' && part[1] == '.') return "has the part '..'";
        part = part[length] == '/' ? part + length + 1 : NULL;
    }
    return NULL;
}

bool ls_store_range(const ls_object_request *get, uint64_t object_bytes, uint64_t *first, uint64_t *count)
{
    *first = 0;
    *count = object_bytes;
    if (get->range == LS_RANGE_WHOLE) return true;
    if (get->range_bytes == 0) return false;
    if (get->range == LS_RANGE_SUFFIX) {
        if (get->range_bytes < object_bytes) *count = get->range_bytes;
        *first = object_bytes - *count;
        return true;
    }
    if (get->range_offset >= object_bytes) return false;
    *first = get->range_offset;
    *count = object_bytes - *first;
    if (get->range_bytes < *count) *count = get->range_bytes;
    return true;
}

static bool list_is_valid(const ls_object_request *request)
{
    if (request->key == NULL || request->list_limit == 0 || request->list_limit > LS_STORE_LIST_LIMIT_MAX) return false;
    if (request->key[0] == '/' || !is_utf8(request->key)) return false;
    if (strnlen(request->key, LS_STORE_KEY_BYTES_MAX + 1) > LS_STORE_KEY_BYTES_MAX) return false;
    if (request->list_after == NULL) return true;
    return strnlen(request->list_after, LS_STORE_KEY_BYTES_MAX + 1) <= LS_STORE_KEY_BYTES_MAX;
}

static bool request_is_valid(const ls_object_request *request)
{
    switch (request->operation) {
    case LS_LIST: return list_is_valid(request);
    case LS_PUT:
        return ls_store_key_problem(request->key) == NULL && (request->body != NULL || request->body_bytes == 0);
    case LS_GET: return ls_store_key_problem(request->key) == NULL && request->range <= LS_RANGE_SPAN;
    case LS_HEAD:
    case LS_DELETE: return ls_store_key_problem(request->key) == NULL;
    }
    return false;
}

ls_result ls_store_submit(ls_store *store, const ls_object_request *request, ls_store_callback callback, void *context)
{
    if (callback == NULL || !request_is_valid(request)) return LS_ERROR_INVALID;
    return store->methods->submit(store, request, callback, context);
}

ls_result ls_store_poll(ls_store *store, int64_t timeout_ns, uint32_t *finished)
{
    uint32_t ignored;
    if (finished == NULL) finished = &ignored;
    *finished = 0;
    if (timeout_ns < 0) timeout_ns = 0;
    if (store->methods->in_flight(store) > 0) return store->methods->poll(store, timeout_ns, finished);
    if (timeout_ns == 0 || timeout_ns == LS_NEVER_NS) return LS_OK;
    struct timespec pause = {.tv_sec = (time_t)(timeout_ns / LS_NANOSECONDS_PER_SECOND),
                             .tv_nsec = (long)(timeout_ns % LS_NANOSECONDS_PER_SECOND)};
    nanosleep(&pause, NULL);
    return LS_OK;
}

uint32_t ls_store_in_flight(const ls_store *store)
{
    return store->methods->in_flight(store);
}

void ls_store_destroy(ls_store *store)
{
    if (store != NULL) store->methods->destroy(store);
}

/* Opening by address. */

static const char *after_scheme(const char *address, const char *scheme)
{
    size_t length = strlen(scheme);
    return strncmp(address, scheme, length) == 0 ? address + length : NULL;
}

static ls_store *open_local(const char *address, ls_error *error)
{
    const char *root = after_scheme(address, "dir:");
    if (strcmp(address, "memory") == 0) {
        ls_store *store = ls_store_new_memory();
        if (store == NULL) ls_fail(error, LS_ERROR_MEMORY, "out of memory while making a memory store");
        return store;
    }
    if (root != NULL && root[0] != '\0') return ls_store_open_directory(root, error);
    ls_fail(error, LS_ERROR_INVALID, "'%s' names no store; expected 'memory', 'dir:PATH' or 's3://bucket/prefix'",
            address);
    return NULL;
}

ls_store *ls_store_open(const char *address, char **prefix, ls_error *error)
{
    *prefix = NULL;
    if (after_scheme(address, "s3://") != NULL) return ls_store_open_s3(address, prefix, error);
    ls_store *store = open_local(address, error);
    if (store == NULL) return NULL;
    *prefix = ls_duplicate("");
    if (*prefix != NULL) return store;
    ls_store_destroy(store);
    ls_fail(error, LS_ERROR_MEMORY, "out of memory while opening '%s'", address);
    return NULL;
}

/* One operation at a time. */

typedef struct call {
    bool done;
    bool abandoned; /* its caller has gone: the callback frees it */
    bool wants_body;
    ls_result result;
    ls_reply_status status;
    uint8_t *body;
    uint64_t body_bytes;
    ls_error message;
} call;

static void call_copy_body(call *state, const ls_object_reply *reply)
{
    if (!state->wants_body || reply->status != LS_REPLY_OK || reply->body_bytes == 0) return;
    state->body = ls_allocate(reply->body_bytes);
    if (state->body == NULL) {
        state->result = LS_ERROR_MEMORY;
        return;
    }
    memcpy(state->body, reply->body, reply->body_bytes);
    state->body_bytes = reply->body_bytes;
}

static void call_finished(void *context, const ls_object_reply *reply)
{
    call *state = context;
    if (state->abandoned) {
        ls_free(state);
        return;
    }
    state->done = true;
    state->status = reply->status;
    if (reply->message != NULL) ls_fail(&state->message, LS_OK, "%s", reply->message);
    call_copy_body(state, reply);
}

/* Hands the outcome over; frees state. */
static ls_result call_result(call *state, ls_reply_status *status, uint8_t **body, uint64_t *body_bytes,
                             ls_error *error)
{
    ls_result result = state->result;
    *status = state->status;
    if (body != NULL) *body = state->body;
    if (body_bytes != NULL) *body_bytes = state->body_bytes;
    if (error != NULL) *error = state->message;
    ls_free(state);
    if (result == LS_ERROR_MEMORY) ls_fail(error, result, "out of memory for the body of a reply");
    return result;
}

ls_result ls_store_call(ls_store *store, const ls_object_request *request, ls_reply_status *status, uint8_t **body,
                        uint64_t *body_bytes, ls_error *error)
{
    if (body != NULL) *body = NULL;
    if (body_bytes != NULL) *body_bytes = 0;
    call *state = ls_allocate_array(1, sizeof *state);
    if (state == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory before a store operation");
    state->wants_body = body != NULL;
    ls_result result = ls_store_submit(store, request, call_finished, state);
    if (result != LS_OK) {
        const char *problem = request->operation == LS_LIST ? NULL : ls_store_key_problem(request->key);
        ls_free(state);
        return ls_fail(error, result, "%s not started: %s%s", ls_operation_name(request->operation),
                       problem != NULL ? "the key " : ls_result_name(result), problem != NULL ? problem : "");
    }
    while (!state->done) {
        bool lost = ls_store_in_flight(store) == 0;
        result = lost ? LS_ERROR_IO : ls_store_poll(store, LS_NEVER_NS, NULL);
        if (result == LS_OK) continue;
        if (state->done) break;
        if (lost) ls_free(state);
        else state->abandoned = true;
        return ls_fail(error, result, "the store %s (%s)", lost ? "lost the operation" : "cannot be polled",
                       ls_result_name(result));
    }
    return call_result(state, status, body, body_bytes, error);
}

/* The probe. */

#define PROBE_CREATORS 8
#define PROBE_ROUNDS 5 /* of creators that were told 409: undecided, try again */
#define PROBE_BODY_BYTES 64
#define PROBE_UNDECIDED ((ls_reply_status)-1)

typedef struct probe_creator {
    char body[PROBE_BODY_BYTES];
    ls_reply_status status;
    bool done;
    ls_error message;
} probe_creator;

typedef struct probe_trial {
    ls_store *store;
    char *key; /* of the object under test */
    probe_creator creator[PROBE_CREATORS];
    uint32_t creators;
} probe_trial;

static void probe_replied(void *context, const ls_object_reply *reply)
{
    probe_creator *creator = context;
    creator->status = reply->status;
    creator->done = true;
    ls_fail(&creator->message, LS_OK, "%s", reply->message != NULL ? reply->message : "no message");
}

static ls_result probe_submit(probe_trial *trial, probe_creator *creator)
{
    ls_object_request request = {.operation = LS_PUT,
                                 .key = trial->key,
                                 .if_absent = true,
                                 .body = creator->body,
                                 .body_bytes = PROBE_BODY_BYTES};
    creator->done = false;
    creator->status = PROBE_UNDECIDED;
    return ls_store_submit(trial->store, &request, probe_replied, creator);
}

/* Creators first .. first + count - 1 start together; returns when all are answered. Poll errors come at the end, since
 * until then the store may hold pointers into *trial. */
static ls_result probe_round(probe_trial *trial, uint32_t first, uint32_t count)
{
    ls_result result = LS_OK;
    uint32_t started = first, waiting;
    for (; started < first + count && result == LS_OK; started++) {
        if (trial->creator[started].status != PROBE_UNDECIDED &&
            trial->creator[started].status != LS_REPLY_CONFLICT_RETRY) {
            continue;
        }
        result = probe_submit(trial, &trial->creator[started]);
        if (result != LS_OK) trial->creator[started].done = true;
    }
    do {
        ls_result polled = ls_store_poll(trial->store, LS_NEVER_NS, NULL);
        waiting = 0;
        for (uint32_t i = first; i < started; i++) waiting += !trial->creator[i].done;
        if (polled != LS_OK) return polled;
    } while (waiting > 0);
    return result;
}

static ls_result probe_create(probe_trial *trial, uint32_t first, uint32_t count)
{
    for (uint32_t round = 0; round < PROBE_ROUNDS; round++) {
        uint32_t undecided = 0;
        ls_result result = probe_round(trial, first, count);
        if (result != LS_OK) return result;
        for (uint32_t i = first; i < first + count; i++)
            undecided += trial->creator[i].status == LS_REPLY_CONFLICT_RETRY;
        if (undecided == 0) return LS_OK;
    }
    return LS_OK;
}

/* Exactly one winner and everyone else told so. */
static ls_result probe_judge_replies(const probe_trial *trial, uint32_t *winner, ls_error *error)
{
    uint32_t winners = 0;
    for (uint32_t i = 0; i < trial->creators; i++) {
        const probe_creator *creator = &trial->creator[i];
        if (creator->status == LS_REPLY_OK) {
            winners++;
            *winner = i;
        } else if (creator->status != LS_REPLY_EXISTS && creator->status != LS_REPLY_CONFLICT_RETRY) {
            return ls_fail(error, LS_ERROR_IO,
                           "probe of put-if-absent inconclusive: creating '%s' was answered '%s' (%s)", trial->key,
                           ls_reply_status_name(creator->status), creator->message.text);
        }
    }
    if (winners == 1) return LS_OK;
    if (winners == 0) {
        return ls_fail(error, LS_ERROR_IO,
                       "probe of put-if-absent inconclusive: none of %" PRIu32
                       " creators of '%s' won; if a probe of the "
                       "same nonce left that object behind, delete it or probe again with another nonce",
                       trial->creators, trial->key);
    }
    return ls_fail(error, LS_ERROR_IO,
                   "the store does not honour put-if-absent: %" PRIu32 " of %" PRIu32
                   " creators of '%s' won, exactly one "
                   "must; commits on it would overwrite each other, use another store",
                   winners, trial->creators, trial->key);
}

/* The object holds the winner's bytes. */
static ls_result probe_judge_bytes(const probe_trial *trial, uint32_t winner, ls_error *error)
{
    ls_object_request get = {.operation = LS_GET, .key = trial->key};
    ls_reply_status status;
    uint8_t *body;
    uint64_t body_bytes;
    ls_error message;
    ls_result result = ls_store_call(trial->store, &get, &status, &body, &body_bytes, &message);
    bool same = body_bytes == PROBE_BODY_BYTES && memcmp(body, trial->creator[winner].body, PROBE_BODY_BYTES) == 0;
    ls_free(body);
    if (result != LS_OK) return ls_fail(error, result, "probe: %s", message.text);
    if (status != LS_REPLY_OK) {
        return ls_fail(error, LS_ERROR_IO, "probe: reading back '%s' was answered '%s' (%s)", trial->key,
                       ls_reply_status_name(status), message.text);
    }
    if (same) return LS_OK;
    return ls_fail(error, LS_ERROR_IO,
                   "the store does not honour put-if-absent: '%s' holds other bytes than its only winner wrote; use "
                   "another store",
                   trial->key);
}

/* Best effort: a store without the right to delete is still fit for commits. */
static void probe_delete(const probe_trial *trial)
{
    ls_object_request request = {.operation = LS_DELETE, .key = trial->key};
    ls_reply_status status;
    ls_store_call(trial->store, &request, &status, NULL, NULL, NULL);
}

static char *probe_key(const char *prefix, uint64_t nonce, const char *name)
{
    size_t length = strlen(prefix);
    const char *slash = length > 0 && prefix[length - 1] != '/' ? "/" : "";
    size_t size = length + 64;
    char *key = ls_allocate(size);
    if (key != NULL) snprintf(key, size, "%s%sprobe/%016" PRIx64 "-%s", prefix, slash, nonce, name);
    return key;
}

/* One object: `alone` creators one after the other, then `together` at once. */
static ls_result probe_object(ls_store *store, char *key, uint32_t alone, uint32_t together, ls_error *error)
{
    probe_trial *state = ls_allocate_array(1, sizeof *state);
    ls_result result = LS_OK;
    uint32_t winner = 0;
    if (state == NULL || key == NULL) {
        ls_free(state);
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory while probing the store");
    }
    state->store = store;
    state->key = key;
    state->creators = alone + together;
    for (uint32_t i = 0; i < state->creators; i++) {
        snprintf(state->creator[i].body, PROBE_BODY_BYTES, "Lakestream probe, creator %" PRIu32, i);
        state->creator[i].status = PROBE_UNDECIDED;
    }
    for (uint32_t i = 0; i < alone && result == LS_OK; i++) result = probe_create(state, i, 1);
    if (result == LS_OK && together > 0) result = probe_create(state, alone, together);
    if (result != LS_OK) ls_fail(error, result, "probe: creating '%s' failed (%s)", key, ls_result_name(result));
    if (result == LS_OK) result = probe_judge_replies(state, &winner, error);
    if (result == LS_OK) result = probe_judge_bytes(state, winner, error);
    probe_delete(state);
    ls_free(state);
    return result;
}

ls_result ls_store_probe(ls_store *store, const char *prefix, uint64_t nonce, ls_error *error)
{
    char *twice = probe_key(prefix, nonce, "twice");
    char *together = probe_key(prefix, nonce, "together");
    ls_result result = probe_object(store, twice, 2, 0, error);
    if (result == LS_OK) result = probe_object(store, together, 0, PROBE_CREATORS, error);
    ls_free(twice);
    ls_free(together);
    return result;
}
