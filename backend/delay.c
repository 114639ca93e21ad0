/* delay.c - a store that delays another by a law, so that a memory store keeps the time of a remote one.
 *
 * An operation submitted at t with drawn latency L goes to the inner store at t + effect_share * L, where it takes
 * effect, and its reply is handed out at t + L, or when the inner store has answered if that is later. Both moments
 * stand in one heap ordered by time, then by submission: so even a poll that comes late carries out everything in the
 * order in which it was due. Inner replies are copied, for they die with the inner callback.
 */
#include "backend/store.h"

#include <string.h>
#include <time.h>

#define LATENCY_MAX_NS (LS_NEVER_NS / 4) /* 73 years: far from overflow */

typedef struct delayed {
    struct delay_store *store;
    struct delayed *previous, *next;
    ls_object_request request;
    ls_store_callback callback;
    void *context;
    int64_t due_ns; /* of its effect, then of its reply */
    int64_t reply_ns;
    uint64_t sequence;
    bool effective; /* handed to the inner store */
    ls_object_reply reply;
    void *copied; /* what reply points into */
} delayed;

typedef struct delay_store {
    ls_store base;
    ls_store *inner;
    ls_delay_law law;
    void *context;
    double effect_share;
    uint64_t submitted;
    uint32_t in_flight;
    delayed *all;   /* every operation in flight, for destroy */
    delayed **heap; /* binary, least first; those not inside the inner store */
    uint32_t heap_count, heap_capacity;
} delay_store;

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * LS_NANOSECONDS_PER_SECOND + now.tv_nsec;
}

static bool comes_before(const delayed *left, const delayed *right)
{
    if (left->due_ns != right->due_ns) return left->due_ns < right->due_ns;
    return left->sequence < right->sequence;
}

static void heap_push(delay_store *store, delayed *operation)
{
    uint32_t at = store->heap_count++;
    while (at > 0 && comes_before(operation, store->heap[(at - 1) / 2])) {
        store->heap[at] = store->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    store->heap[at] = operation;
}

static delayed *heap_pop(delay_store *store)
{
    delayed *top = store->heap[0], *moved = store->heap[--store->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= store->heap_count) break;
        if (child + 1 < store->heap_count && comes_before(store->heap[child + 1], store->heap[child])) child++;
        if (!comes_before(store->heap[child], moved)) break;
        store->heap[at] = store->heap[child];
        at = child;
    }
    store->heap[at] = moved;
    return top;
}

/* Room for every operation in flight, so that a push can never fail. */
static ls_result heap_reserve(delay_store *store)
{
    if (store->in_flight < store->heap_capacity) return LS_OK;
    uint32_t capacity = store->heap_capacity == 0 ? 64 : 2 * store->heap_capacity;
    delayed **heap = ls_reallocate(store->heap, capacity * sizeof(delayed *));
    if (heap == NULL) return LS_ERROR_MEMORY;
    store->heap = heap;
    store->heap_capacity = capacity;
    return LS_OK;
}

static void link_in(delay_store *store, delayed *operation)
{
    operation->next = store->all;
    if (store->all != NULL) store->all->previous = operation;
    store->all = operation;
    store->in_flight++;
}

static void unlink_and_free(delay_store *store, delayed *operation)
{
    if (operation->previous != NULL) operation->previous->next = operation->next;
    if (operation->next != NULL) operation->next->previous = operation->previous;
    if (store->all == operation) store->all = operation->next;
    store->in_flight--;
    ls_free(operation->copied);
    ls_free(operation);
}

static size_t text_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static char *copy_text(char **at, const char *text)
{
    size_t size = text_bytes(text);
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

/* Everything the reply points to goes into one block: rows of the list, then its texts, the message and the body. */
static ls_result copy_reply(delayed *operation, const ls_object_reply *reply)
{
    size_t count = reply->key_count, row_bytes = sizeof(char *) + sizeof(uint64_t) + sizeof(int64_t);
    size_t size = count * row_bytes + text_bytes(reply->message) + (size_t)reply->body_bytes;
    for (size_t i = 0; i < count; i++) size += text_bytes(reply->keys[i]);
    operation->reply = *reply;
    if (size == 0) return LS_OK;
    operation->copied = ls_allocate(size);
    if (operation->copied == NULL) return LS_ERROR_MEMORY;
    uint64_t *sizes = operation->copied;
    int64_t *times = (int64_t *)(sizes + count);
    const char **keys = (const char **)(times + count);
    char *text = (char *)(keys + count);
    for (size_t i = 0; i < count; i++) {
        keys[i] = copy_text(&text, reply->keys[i]);
        sizes[i] = reply->key_bytes[i];
        times[i] = reply->key_modified_s[i];
    }
    operation->reply.keys = keys;
    operation->reply.key_bytes = sizes;
    operation->reply.key_modified_s = times;
    if (reply->message != NULL) operation->reply.message = copy_text(&text, reply->message);
    if (reply->body_bytes > 0) operation->reply.body = memcpy(text, reply->body, (size_t)reply->body_bytes);
    return LS_OK;
}

/* Without memory a change keeps its verdict and loses its message; a reading is given up, which does no harm. */
static void reply_without_memory(delayed *operation, ls_reply_status status)
{
    bool reads = operation->request.operation == LS_GET || operation->request.operation == LS_LIST;
    operation->reply = (ls_object_reply){.status = reads ? LS_REPLY_UNAVAILABLE : status, .message = "out of memory"};
}

static void schedule_reply(delayed *operation)
{
    operation->due_ns = operation->reply_ns;
    heap_push(operation->store, operation);
}

static void inner_replied(void *context, const ls_object_reply *reply)
{
    delayed *operation = context;
    if (copy_reply(operation, reply) != LS_OK) reply_without_memory(operation, reply->status);
    schedule_reply(operation);
}

/* The instant of effect. The inner store is polled at once, so that a store which works inside poll works now. */
static ls_result take_effect(delay_store *store, delayed *operation)
{
    operation->effective = true;
    if (ls_store_submit(store->inner, &operation->request, inner_replied, operation) != LS_OK) {
        operation->reply = (ls_object_reply){.status = LS_REPLY_UNAVAILABLE, .message = "out of memory"};
        schedule_reply(operation);
    }
    return ls_store_poll(store->inner, 0, NULL);
}

/* Carries out what is due at now_ns, in order. What callbacks submit meanwhile waits for the next poll. */
static ls_result advance(delay_store *store, int64_t now_ns, uint64_t limit, uint32_t *finished)
{
    while (store->heap_count > 0 && store->heap[0]->due_ns <= now_ns && store->heap[0]->sequence < limit) {
        delayed *operation = heap_pop(store);
        if (!operation->effective) {
            ls_result result = take_effect(store, operation);
            if (result != LS_OK) return result;
            continue;
        }
        operation->callback(operation->context, &operation->reply);
        unlink_and_free(store, operation);
        ++*finished;
    }
    return LS_OK;
}

static int64_t add_ns(int64_t left, int64_t right)
{
    return right > LS_NEVER_NS - left ? LS_NEVER_NS : left + right;
}

static ls_result delay_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    delay_store *store = (delay_store *)base;
    uint64_t limit = store->submitted;
    int64_t now_ns = monotonic_ns(), deadline_ns = add_ns(now_ns, timeout_ns);
    for (;;) {
        ls_result result = advance(store, now_ns, limit, finished);
        if (result != LS_OK || *finished > 0 || now_ns >= deadline_ns) return result;
        int64_t until_ns = deadline_ns;
        if (store->heap_count > 0 && store->heap[0]->due_ns < until_ns) until_ns = store->heap[0]->due_ns;
        uint32_t inner_finished;
        result =
            ls_store_poll(store->inner, until_ns == LS_NEVER_NS ? LS_NEVER_NS : until_ns - now_ns, &inner_finished);
        if (result != LS_OK) return result;
        now_ns = monotonic_ns();
        bool interrupted = inner_finished == 0 && now_ns < until_ns;
        if (interrupted) return LS_OK;
    }
}

static ls_result delay_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                              void *context)
{
    delay_store *store = (delay_store *)base;
    if (heap_reserve(store) != LS_OK) return LS_ERROR_MEMORY;
    delayed *operation = ls_allocate_array(1, sizeof *operation);
    if (operation == NULL) return LS_ERROR_MEMORY;
    int64_t now_ns = monotonic_ns(), latency_ns = store->law(store->context, request);
    if (latency_ns < 0) latency_ns = 0;
    if (latency_ns > LATENCY_MAX_NS) latency_ns = LATENCY_MAX_NS;
    operation->store = store;
    operation->request = *request;
    operation->callback = callback;
    operation->context = context;
    operation->sequence = store->submitted++;
    operation->reply_ns = add_ns(now_ns, latency_ns);
    operation->due_ns = add_ns(now_ns, (int64_t)((double)latency_ns * store->effect_share));
    link_in(store, operation);
    heap_push(store, operation);
    return LS_OK;
}

static uint32_t delay_in_flight(const ls_store *base)
{
    return ((const delay_store *)base)->in_flight;
}

static void delay_destroy(ls_store *base)
{
    delay_store *store = (delay_store *)base;
    ls_store_destroy(store->inner);
    while (store->all != NULL) unlink_and_free(store, store->all);
    ls_free(store->heap);
    ls_free(store);
}

static const ls_store_methods methods = {delay_submit, delay_poll, delay_in_flight, delay_destroy};

ls_store *ls_store_new_delay(ls_store *inner, ls_delay_law law, void *context, double effect_share)
{
    delay_store *store = ls_allocate_array(1, sizeof *store);
    if (store == NULL) {
        ls_store_destroy(inner);
        return NULL;
    }
    store->base.methods = &methods;
    store->inner = inner;
    store->law = law;
    store->context = context;
    store->effect_share = effect_share > 0.0 ? (effect_share < 1.0 ? effect_share : 1.0) : 0.0;
    return &store->base;
}
