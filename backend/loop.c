/* loop.c - the real-time loop of loop.h.
 *
 * One pass of ls_loop_run takes all timers that are due out of a 4-ary heap, calls them in order, and then polls the
 * store, at most until the next timer. What a timer's or a reply's handler adds waits for the next pass; so neither
 * timers that always set another for now, nor a store that answers at once, can keep the other side from its turn.
 *
 * A request in flight is one allocation that holds its key (and, for a list, the key it starts after) behind the
 * struct; its body is another. Both live until the store's callback has returned.
 */
#include "backend/loop.h"

#include "manifest/codec.h"
#include "manifest/tgb.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct loop_timer {
    int64_t at_ns;
    uint64_t sequence;
    uint64_t argument;
    uint32_t kind;
    uint32_t entity;
} loop_timer;

typedef struct loop_request {
    struct loop_request *previous, *next;
    ls_loop *loop; /* NULL: given up by ls_loop_free; the callback frees it */
    ls_store_request request;
    uint32_t kind;
    uint32_t entity;
    uint8_t *body;
    char *after; /* list: points into key */
    char key[];  /* list: the prefix, and then the text of after */
} loop_request;

struct ls_loop {
    ls_store *store;
    const ls_loop_handler *handler;
    void *context;
    char *prefix;
    size_t prefix_length;
    int64_t origin_ns;
    bool stopped;
    bool draining;
    ls_result result; /* of the first failure */
    uint64_t timers_set;
    loop_timer *heap; /* 4-ary, least first */
    loop_timer *due;  /* taken from the heap in this pass; as much room as the heap */
    size_t heap_count, capacity;
    size_t due_count, due_next;
    loop_request *requests;
    uint32_t in_flight;
    ls_error error;
    ls_loop_counters counters;
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * LS_NANOSECONDS_PER_SECOND + now.tv_nsec;
}

int64_t ls_loop_now(ls_loop *loop)
{
    return monotonic_ns() - loop->origin_ns;
}

/* Keeps the first failure of a run. */
static void fail_run(ls_loop *loop, ls_result result)
{
    if (result == LS_OK || loop->result != LS_OK) return;
    ls_error last = loop->error;
    const char *between = last.text[0] != '\0' ? "; last message: " : "";
    loop->result =
        ls_fail(&loop->error, result, "the run ended: %s%s%.900s", ls_result_name(result), between, last.text);
}

/* Timers. */

#define HEAP_FAN 4u

static bool comes_before(const loop_timer *left, const loop_timer *right)
{
    if (left->at_ns != right->at_ns) return left->at_ns < right->at_ns;
    return left->sequence < right->sequence;
}

static void heap_push(ls_loop *loop, loop_timer timer)
{
    size_t at = loop->heap_count++;
    while (at > 0 && comes_before(&timer, &loop->heap[(at - 1) / HEAP_FAN])) {
        loop->heap[at] = loop->heap[(at - 1) / HEAP_FAN];
        at = (at - 1) / HEAP_FAN;
    }
    loop->heap[at] = timer;
}

static loop_timer heap_pop(ls_loop *loop)
{
    loop_timer top = loop->heap[0], moved = loop->heap[--loop->heap_count];
    size_t at = 0;
    for (;;) {
        size_t first = HEAP_FAN * at + 1, least = first;
        if (first >= loop->heap_count) break;
        for (size_t child = first + 1; child < first + HEAP_FAN && child < loop->heap_count; child++) {
            if (comes_before(&loop->heap[child], &loop->heap[least])) least = child;
        }
        if (!comes_before(&loop->heap[least], &moved)) break;
        loop->heap[at] = loop->heap[least];
        at = least;
    }
    loop->heap[at] = moved;
    return top;
}

/* Room for one more timer, and for all of them to be due at once. */
static ls_result reserve_timer(ls_loop *loop)
{
    if (loop->heap_count < loop->capacity) return LS_OK;
    size_t capacity = loop->capacity == 0 ? 64 : 2 * loop->capacity;
    loop_timer *heap = ls_reallocate(loop->heap, capacity * sizeof heap[0]);
    if (heap == NULL) return LS_ERROR_MEMORY;
    loop->heap = heap;
    loop_timer *due = ls_reallocate(loop->due, capacity * sizeof due[0]);
    if (due == NULL) return LS_ERROR_MEMORY;
    loop->due = due;
    loop->capacity = capacity;
    return LS_OK;
}

ls_result ls_loop_timer(ls_loop *loop, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (at_ns == LS_NEVER_NS) return LS_OK;
    if (reserve_timer(loop) != LS_OK) return LS_ERROR_MEMORY;
    heap_push(loop, (loop_timer){at_ns, loop->timers_set++, argument, kind, entity});
    return LS_OK;
}

static void call_due_timers(ls_loop *loop)
{
    int64_t now_ns = ls_loop_now(loop);
    if (loop->due_next == loop->due_count) { /* else a stop left some of the last pass */
        loop->due_next = loop->due_count = 0;
        while (loop->heap_count > 0 && loop->heap[0].at_ns <= now_ns) loop->due[loop->due_count++] = heap_pop(loop);
    }
    while (loop->due_next < loop->due_count && !loop->stopped && loop->result == LS_OK) {
        loop_timer timer = loop->due[loop->due_next++];
        ls_result result =
            loop->handler->timer(loop->context, ls_loop_now(loop), timer.kind, timer.entity, timer.argument);
        fail_run(loop, result);
    }
}

/* Requests. */

static void request_free(loop_request *request)
{
    if (request == NULL) return;
    ls_manifest_release(request->request.known);
    ls_free(request->body);
    ls_free(request);
}

static void request_link(ls_loop *loop, loop_request *request)
{
    request->loop = loop;
    request->next = loop->requests;
    if (loop->requests != NULL) loop->requests->previous = request;
    loop->requests = request;
    loop->in_flight++;
}

static void request_unlink(ls_loop *loop, loop_request *request)
{
    if (request->previous != NULL) request->previous->next = request->next;
    if (request->next != NULL) request->next->previous = request->previous;
    if (loop->requests == request) loop->requests = request->next;
    loop->in_flight--;
}

/* The request with its key as text; for a list, the folder of the kind and the key after which it starts: `after` if
 * given, else the request's key. NULL when out of memory. */
static loop_request *request_new(const ls_loop *loop, const ls_store_request *wanted, const char *after)
{
    char text[LS_KEY_TEXT_BYTES];
    size_t length = ls_key_format(&wanted->key, text);
    size_t room = loop->prefix_length + length + 1;
    size_t after_room = after != NULL ? strlen(after) + 1 : room;
    loop_request *request = ls_allocate(sizeof *request + room + after_room);
    if (request == NULL) return NULL;
    *request = (loop_request){.request = *wanted};
    request->request.manifest = NULL;
    request->request.known = NULL;
    if (wanted->operation != LS_LIST) {
        snprintf(request->key, room, "%s%s", loop->prefix, text);
        return request;
    }
    request->after = request->key + room;
    snprintf(request->key, room, "%s%.*s", loop->prefix, (int)strcspn(text, "/") + 1, text);
    if (after != NULL) {
        memcpy(request->after, after, after_room);
    } else {
        snprintf(request->after, after_room, "%s%s", loop->prefix, text);
    }
    return request;
}

static ls_result fill_body(ls_loop *loop, loop_request *request, const ls_manifest *manifest)
{
    ls_store_request *wanted = &request->request;
    if (manifest != NULL) wanted->body_bytes = ls_manifest_encoded_bytes(manifest);
    if (wanted->body_bytes == 0) return LS_OK;
    if (wanted->body_bytes > SIZE_MAX) return LS_ERROR_MEMORY;
    request->body = ls_allocate_array(1, (size_t)wanted->body_bytes);
    if (request->body == NULL) return LS_ERROR_MEMORY;
    if (manifest != NULL) return ls_manifest_encode(manifest, request->body, (size_t)wanted->body_bytes);
    if (loop->handler->body == NULL) return LS_OK;
    return loop->handler->body(loop->context, &wanted->key, request->body, wanted->body_bytes);
}

static void answered(void *context, const ls_object_reply *reply);

/* Hands a complete request to the store; frees it on failure. */
static ls_result send(ls_loop *loop, loop_request *request)
{
    const ls_store_request *wanted = &request->request;
    ls_object_request object = {.operation = wanted->operation,
                                .key = request->key,
                                .list_after = request->after,
                                .list_limit = wanted->list_limit,
                                .if_absent = wanted->if_absent,
                                .range = wanted->range,
                                .range_offset = wanted->range_offset,
                                .range_bytes = wanted->range_bytes,
                                .body = request->body,
                                .body_bytes = wanted->operation == LS_PUT ? wanted->body_bytes : 0};
    request_link(loop, request);
    ls_result result = ls_store_submit(loop->store, &object, answered, request);
    if (result == LS_OK) return LS_OK;
    request_unlink(loop, request);
    request_free(request);
    return result;
}

static bool is_manifest_key(const ls_store_request *request)
{
    return request->key.kind == LS_OBJECT_MANIFEST;
}

static bool makes_sense(const ls_store_request *request)
{
    char text[LS_KEY_TEXT_BYTES];
    if (ls_key_format(&request->key, text) == 0) return false;
    return request->operation != LS_PUT || is_manifest_key(request) == (request->manifest != NULL);
}

static ls_result submit(ls_loop *loop, const ls_store_request *wanted, uint32_t kind, uint32_t entity)
{
    if (!makes_sense(wanted)) return LS_ERROR_INVALID;
    loop_request *request = request_new(loop, wanted, NULL);
    if (request == NULL) return LS_ERROR_MEMORY;
    request->kind = kind;
    request->entity = entity;
    if (wanted->operation == LS_GET && wanted->known != NULL)
        request->request.known = ls_manifest_retain(wanted->known);
    if (wanted->operation == LS_PUT) {
        ls_result result = fill_body(loop, request, wanted->manifest);
        if (result != LS_OK) {
            request_free(request);
            return result;
        }
    }
    return send(loop, request);
}

ls_result ls_loop_submit(ls_loop *loop, const ls_store_request *request, uint32_t kind, uint32_t entity)
{
    ls_result result = submit(loop, request, kind, entity);
    if (request->operation == LS_PUT) ls_manifest_release(request->manifest);
    return result;
}

/* Replies. */

static void keep_message(ls_loop *loop, const loop_request *request, const char *message)
{
    ls_fail(&loop->error, LS_OK, "%s of '%s': %s", ls_operation_name(request->request.operation), request->key,
            message);
}

static void count(ls_loop *loop, const loop_request *request, const ls_object_reply *reply, ls_reply_status status)
{
    const ls_store_request *wanted = &request->request;
    if ((unsigned)status >= LS_LOOP_STATUSES) return;
    ls_loop_count *slot = &loop->counters.by[wanted->operation][wanted->key.kind][status];
    slot->requests++;
    if (wanted->operation == LS_PUT) slot->up_bytes += wanted->body_bytes;
    slot->down_bytes += reply->body_bytes;
}

/* What cannot be read becomes LS_REPLY_INVALID with its reason kept; only want of memory ends the run. */
static ls_result judge(ls_loop *loop, const loop_request *request, ls_result result, const ls_error *error,
                       ls_store_reply *reply)
{
    if (result == LS_OK || result == LS_ERROR_MEMORY) return result;
    reply->status = LS_REPLY_INVALID;
    keep_message(loop, request, error->text);
    return LS_OK;
}

static ls_result decode_manifest(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                                 ls_store_reply *reply)
{
    const ls_store_request *wanted = &request->request;
    ls_manifest *manifest = NULL;
    ls_error error = {""};
    ls_result result;
    if (wanted->range == LS_RANGE_SUFFIX) {
        result = ls_manifest_decode_tail(object->body, (size_t)object->body_bytes, object->object_bytes,
                                         wanted->key.number, wanted->known, &manifest, &reply->needed_bytes, &error);
    } else {
        result = ls_manifest_decode(object->body, (size_t)object->body_bytes, wanted->key.number, &manifest, &error);
    }
    reply->manifest = manifest;
    return judge(loop, request, result, &error, reply);
}

/* Where the slice asked for lies, by the object's own footer; the footer must be that of the object's name. */
static ls_result find_slice(const ls_store_request *wanted, const ls_tgb_index *index, ls_slice *slice, ls_error *error)
{
    const ls_tgb_identity *identity = &index->identity;
    ls_key named = ls_key_data(identity->producer, identity->epoch, identity->sequence);
    if (ls_key_compare(&named, &wanted->key) != 0) {
        char text[LS_KEY_TEXT_BYTES];
        ls_key_format(&named, text);
        return ls_fail(error, LS_ERROR_CORRUPT, "the object calls itself '%s'", text);
    }
    const ls_slice *found = ls_tgb_slice(index, wanted->slice.data_rank, wanted->slice.context_rank);
    if (found == NULL) {
        return ls_fail(error, LS_ERROR_CORRUPT,
                       "no slice for data rank %" PRIu32 ", context rank %" PRIu32 ": the object has %" PRIu32
                       " x %" PRIu32,
                       wanted->slice.data_rank, wanted->slice.context_rank, index->data_ranks, index->context_ranks);
    }
    *slice = *found;
    return LS_OK;
}

/* A footer that does not fit into the suffix asked for contradicts the manifest's entry, which tells its length. */
static ls_result decode_footer(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                               ls_store_reply *reply)
{
    ls_tgb_index *index = NULL;
    ls_error error = {""};
    ls_result result = ls_tgb_decode_footer(object->body, (size_t)object->body_bytes, object->object_bytes, &index,
                                            &reply->needed_bytes, &error);
    if (result == LS_OK && index == NULL) {
        result = ls_fail(&error, LS_ERROR_CORRUPT, "the footer is longer than the %" PRIu64 " bytes asked for",
                         object->body_bytes);
    } else if (result == LS_OK) {
        result = find_slice(&request->request, index, &reply->slice, &error);
    }
    ls_free(index);
    return judge(loop, request, result, &error, reply);
}

static ls_result verify_slice(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                              ls_store_reply *reply)
{
    ls_error error = {""};
    ls_result result =
        ls_tgb_verify_slice(&request->request.slice, object->body, (size_t)object->body_bytes, &error);
    return judge(loop, request, result, &error, reply);
}

/* A whole object read for the sake of one slice. */
static ls_result decode_whole(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                              ls_store_reply *reply)
{
    ls_result result = decode_footer(loop, request, object, reply);
    if (result != LS_OK || reply->status != LS_REPLY_OK) return result;
    const ls_slice *slice = &reply->slice;
    ls_error error = {""};
    bool inside = slice->offset <= object->body_bytes && slice->bytes <= object->body_bytes - slice->offset;
    result = inside ? ls_tgb_verify_slice(slice, (const uint8_t *)object->body + slice->offset, (size_t)slice->bytes, &error)
                    : ls_fail(&error, LS_ERROR_CORRUPT, "the slice lies outside the object");
    return judge(loop, request, result, &error, reply);
}

static ls_result interpret(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                           ls_store_reply *reply)
{
    const ls_store_request *wanted = &request->request;
    bool is_data = wanted->key.kind == LS_OBJECT_DATA;
    if (is_manifest_key(wanted) && wanted->range != LS_RANGE_SPAN) return decode_manifest(loop, request, object, reply);
    if (is_data && wanted->range == LS_RANGE_SUFFIX) return decode_footer(loop, request, object, reply);
    if (is_data && wanted->range == LS_RANGE_WHOLE && wanted->for_slice) return decode_whole(loop, request, object, reply);
    if (is_data && wanted->range == LS_RANGE_SPAN && wanted->slice.bytes > 0) {
        return verify_slice(loop, request, object, reply);
    }
    return LS_OK;
}

static ls_result take_body(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                           ls_store_reply *reply)
{
    const ls_store_request *wanted = &request->request;
    uint64_t offset = 0;
    if (wanted->operation != LS_GET || object->status != LS_REPLY_OK) return LS_OK;
    reply->moved_bytes = object->body_bytes;
    ls_result result = interpret(loop, request, object, reply);
    bool hand_over = loop->handler->data != NULL && !is_manifest_key(wanted) && reply->status == LS_REPLY_OK;
    if (result != LS_OK || !hand_over) return result;
    if (wanted->range == LS_RANGE_SPAN) offset = wanted->range_offset;
    if (wanted->range == LS_RANGE_SUFFIX) offset = object->object_bytes - object->body_bytes;
    if (wanted->range == LS_RANGE_WHOLE && wanted->for_slice) {
        const ls_slice *slice = &reply->slice;
        return loop->handler->data(loop->context, request->entity, &wanted->key, slice->offset,
                                   (const uint8_t *)object->body + slice->offset, slice->bytes);
    }
    return loop->handler->data(loop->context, request->entity, &wanted->key, offset, object->body, object->body_bytes);
}

/* The names of one page as the protocol wants them; arrays of as many places as the page has keys, or NULL. */
typedef struct page_names {
    ls_key *keys;
    uint64_t *bytes;
    int64_t *ages_ns;
    int64_t now_s; /* since 1970 */
} page_names;

static void free_names(page_names *names)
{
    ls_free(names->keys);
    ls_free(names->bytes);
    ls_free(names->ages_ns);
}

static ls_result make_names(const loop_request *request, const ls_object_reply *object, page_names *names,
                            ls_store_reply *reply)
{
    bool wanted = request->request.operation == LS_LIST && request->request.list_names && object->status == LS_REPLY_OK;
    if (!wanted || object->key_count == 0) return LS_OK;
    names->keys = ls_allocate_array(object->key_count, sizeof *names->keys);
    names->bytes = ls_allocate_array(object->key_count, sizeof *names->bytes);
    names->ages_ns = ls_allocate_array(object->key_count, sizeof *names->ages_ns);
    names->now_s = (int64_t)time(NULL);
    reply->list_keys = names->keys;
    reply->list_bytes = names->bytes;
    reply->list_ages_ns = names->ages_ns;
    return names->keys != NULL && names->bytes != NULL && names->ages_ns != NULL ? LS_OK : LS_ERROR_MEMORY;
}

/* Ages only delay deletions; so what clocks that differ say of the future counts as now. */
static int64_t age_ns(int64_t now_s, int64_t made_s)
{
    if (made_s >= now_s) return 0;
    return now_s - made_s < LS_NEVER_NS / LS_NANOSECONDS_PER_SECOND ? (now_s - made_s) * LS_NANOSECONDS_PER_SECOND
                                                                    : LS_NEVER_NS;
}

/* Counts our names in a page into the reply; returns the greatest name of all, ours or not (NULL: there is none). */
static const char *read_names(const ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                              const page_names *names, ls_store_reply *reply)
{
    const char *greatest = NULL, *greatest_of_ours = NULL;
    for (uint32_t i = 0; i < object->key_count; i++) {
        const char *name = object->keys[i];
        ls_key key;
        if (greatest == NULL || strcmp(name, greatest) > 0) greatest = name;
        if (strncmp(name, loop->prefix, loop->prefix_length) != 0) continue;
        if (ls_key_parse(name + loop->prefix_length, &key) != LS_OK || key.kind != request->request.key.kind) continue;
        if (names->keys != NULL) {
            names->keys[reply->list_count] = key;
            names->bytes[reply->list_count] = object->key_bytes == NULL ? 0 : object->key_bytes[i];
            names->ages_ns[reply->list_count] =
                object->key_modified_s == NULL ? 0 : age_ns(names->now_s, object->key_modified_s[i]);
        }
        reply->list_count++;
        if (greatest_of_ours != NULL && strcmp(name, greatest_of_ours) <= 0) continue;
        greatest_of_ours = name;
        reply->list_last = key;
    }
    reply->list_truncated = object->list_truncated;
    return greatest;
}

/* Takes a page in. Sets *again when it held nothing of ours and there is more: the next page is then on its way. A page
 * that claims more but names nothing to go on from must not pass for the end: floors might lie beyond. */
static ls_result take_page(ls_loop *loop, const loop_request *request, const ls_object_reply *object,
                           const page_names *names, ls_store_reply *reply, bool *again)
{
    if (request->request.operation != LS_LIST || object->status != LS_REPLY_OK) return LS_OK;
    const char *greatest = read_names(loop, request, object, names, reply);
    if (reply->list_count > 0 || !reply->list_truncated) return LS_OK;
    if (greatest == NULL) {
        reply->status = LS_REPLY_UNAVAILABLE;
        keep_message(loop, request, "the store cut the list short without naming a key");
        return LS_OK;
    }
    loop_request *next = request_new(loop, &request->request, greatest);
    if (next == NULL) return LS_ERROR_MEMORY;
    next->kind = request->kind;
    next->entity = request->entity;
    *again = true;
    return send(loop, next);
}

static bool is_everyday(ls_reply_status status)
{
    return status == LS_REPLY_OK || status == LS_REPLY_EXISTS || status == LS_REPLY_NOT_FOUND ||
           status == LS_REPLY_CONFLICT_RETRY || status == LS_REPLY_THROTTLED;
}

static void deliver(ls_loop *loop, const loop_request *request, const ls_object_reply *object)
{
    ls_store_reply reply = {.status = object->status,
                            .tag = request->request.tag,
                            .object_bytes = object->object_bytes,
                            .retry_after_ns = object->retry_after_ns};
    bool again = false;
    page_names names = {0};
    if (!is_everyday(object->status)) {
        keep_message(loop, request, object->message != NULL ? object->message : ls_reply_status_name(object->status));
    }
    ls_result result = take_body(loop, request, object, &reply);
    if (result == LS_OK) result = make_names(request, object, &names, &reply);
    if (result == LS_OK) result = take_page(loop, request, object, &names, &reply, &again);
    count(loop, request, object, reply.status);
    if (result == LS_OK && !again) {
        result = loop->handler->reply(loop->context, ls_loop_now(loop), request->kind, request->entity, &reply);
    }
    free_names(&names);
    fail_run(loop, result);
}

static void answered(void *context, const ls_object_reply *reply)
{
    loop_request *request = context;
    ls_loop *loop = request->loop;
    if (loop != NULL) {
        request_unlink(loop, request);
        if (!loop->draining && loop->result == LS_OK) deliver(loop, request, reply);
    }
    request_free(request);
}

/* The loop. */

ls_loop *ls_loop_new(ls_store *store, const char *prefix, const ls_loop_handler *handler, void *context)
{
    size_t length = strlen(prefix);
    bool needs_slash = length > 0 && prefix[length - 1] != '/';
    if (length + needs_slash + LS_KEY_TEXT_BYTES > LS_STORE_KEY_BYTES_MAX) return NULL;
    ls_loop *loop = ls_allocate_array(1, sizeof *loop);
    char *copy = ls_allocate(length + 2);
    if (loop == NULL || copy == NULL) {
        ls_free(loop);
        ls_free(copy);
        return NULL;
    }
    snprintf(copy, length + 2, "%s%s", prefix, needs_slash ? "/" : "");
    loop->store = store;
    loop->handler = handler;
    loop->context = context;
    loop->prefix = copy;
    loop->prefix_length = length + needs_slash;
    loop->origin_ns = monotonic_ns();
    return loop;
}

static void free_memory(ls_loop *loop)
{
    ls_free(loop->prefix);
    ls_free(loop->heap);
    ls_free(loop->due);
    ls_free(loop);
}

void ls_loop_free(ls_loop *loop)
{
    if (loop == NULL) return;
    loop->draining = true;
    while (loop->in_flight > 0 && ls_store_in_flight(loop->store) > 0) {
        if (ls_store_poll(loop->store, LS_NEVER_NS, NULL) != LS_OK) break;
    }
    while (loop->requests != NULL) { /* the store fails: should it ever answer, they free themselves */
        loop_request *request = loop->requests;
        request_unlink(loop, request);
        request->loop = NULL;
    }
    free_memory(loop);
}

void ls_loop_free_after_store(ls_loop *loop)
{
    if (loop == NULL) return;
    while (loop->requests != NULL) {
        loop_request *request = loop->requests;
        request_unlink(loop, request);
        request_free(request);
    }
    free_memory(loop);
}

static int64_t time_to_next_timer(ls_loop *loop)
{
    if (loop->heap_count == 0) return LS_NEVER_NS;
    int64_t at_ns = loop->heap[0].at_ns, now_ns = ls_loop_now(loop);
    return at_ns > now_ns ? at_ns - now_ns : 0;
}

ls_result ls_loop_run(ls_loop *loop)
{
    loop->stopped = false;
    while (loop->result == LS_OK) {
        call_due_timers(loop);
        if (loop->stopped || loop->result != LS_OK) break;
        if (loop->heap_count == 0 && loop->in_flight == 0) break;
        if (loop->in_flight > ls_store_in_flight(loop->store)) { /* waiting would be for ever */
            ls_fail(&loop->error, LS_ERROR_IO, "the store lost requests without answering them");
            fail_run(loop, LS_ERROR_IO);
            break;
        }
        fail_run(loop, ls_store_poll(loop->store, time_to_next_timer(loop), NULL));
        if (loop->stopped) break;
    }
    return loop->result;
}

void ls_loop_stop(ls_loop *loop)
{
    loop->stopped = true;
}

uint32_t ls_loop_in_flight(const ls_loop *loop)
{
    return loop->in_flight;
}

const char *ls_loop_error(const ls_loop *loop)
{
    return loop->error.text;
}

const ls_loop_counters *ls_loop_counters_of(const ls_loop *loop)
{
    return &loop->counters;
}

void ls_loop_reset_counters(ls_loop *loop)
{
    loop->counters = (ls_loop_counters){0};
}

/* The driver's side. */

static int64_t driver_now(void *context)
{
    return ls_loop_now(context);
}

static ls_result driver_timer(void *context, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    return ls_loop_timer(context, at_ns, kind, entity, argument);
}

static ls_result driver_submit(void *context, uint32_t client, const ls_store_request *request)
{
    return ls_loop_submit(context, request, 0, client);
}

static void driver_stop(void *context)
{
    ls_loop_stop(context);
}

ls_driver ls_loop_driver(ls_loop *loop)
{
    return (ls_driver){
        .context = loop, .now = driver_now, .timer = driver_timer, .submit = driver_submit, .stop = driver_stop};
}
