/* memory.c - a store in this process's memory: the yardstick for the others, and the store of tests and dry runs.
 *
 * Objects stand in a skip list ordered bytewise by key (Pugh, "Skip lists: a probabilistic alternative to balanced
 * trees", 1990), because list needs order and start-after; the height of a node comes from a hash of its key, so that a
 * run repeats exactly. Each operation takes effect at submit, which fixes its answer; the answer waits in a queue for
 * the next poll. Bodies are reference-counted, so an answer keeps the bytes it saw while the object is replaced or
 * deleted.
 */
#include "backend/store.h"

#include <string.h>
#include <time.h>

#define HEIGHT_MAX 20 /* of the skip list: good for 4^20 objects at one more level a quarter of the nodes */

typedef struct memory_blob {
    uint64_t references;
    uint64_t bytes;
    uint8_t data[];
} memory_blob;

typedef struct memory_node {
    char *key;
    memory_blob *body;
    int64_t modified_s;
    uint32_t height;
    struct memory_node *next[];
} memory_node;

typedef struct memory_answer {
    struct memory_answer *next;
    ls_store_callback callback;
    void *context;
    ls_object_reply reply;
    memory_blob *body; /* get: what reply.body points into */
    void *keys;        /* list: what reply.keys and its fellows point into */
} memory_answer;

typedef struct memory_store {
    ls_store base;
    memory_answer *first, **last;
    uint32_t in_flight;
    memory_node *head[HEIGHT_MAX];
} memory_store;

static void blob_release(memory_blob *body)
{
    if (body != NULL && --body->references == 0) ls_free(body);
}

static memory_blob *blob_new(const void *bytes, uint64_t count)
{
    if (count > SIZE_MAX - sizeof(memory_blob)) return NULL;
    memory_blob *body = ls_allocate(sizeof *body + (size_t)count);
    if (body == NULL) return NULL;
    body->references = 1;
    body->bytes = count;
    if (count > 0) memcpy(body->data, bytes, (size_t)count);
    return body;
}

/* FNV-1a (Fowler, Noll, Vo), then one level for every two low zero bits after mixing. */
static uint32_t height_of(const char *key)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = key; *at != '\0'; at++) hash = (hash ^ (uint8_t)*at) * UINT64_C(1099511628211);
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    uint32_t height = 1;
    for (; (hash & 3) == 0 && height < HEIGHT_MAX; hash >>= 2) height++;
    return height;
}

/* The first node whose key is at least `key` (or, if `beyond`, greater); links[i] is the pointer that leads past it at
 * level i. */
static memory_node *find(memory_store *store, const char *key, bool beyond, memory_node **links[HEIGHT_MAX])
{
    memory_node **level = store->head;
    for (uint32_t i = HEIGHT_MAX; i-- > 0;) {
        while (level[i] != NULL) {
            int order = strcmp(level[i]->key, key);
            if (order > 0 || (order == 0 && !beyond)) break;
            level = level[i]->next;
        }
        links[i] = &level[i];
    }
    return *links[0];
}

static memory_node *find_exact(memory_store *store, const char *key, memory_node **links[HEIGHT_MAX])
{
    memory_node *found = find(store, key, false, links);
    return found != NULL && strcmp(found->key, key) == 0 ? found : NULL;
}

static void node_free(memory_node *object)
{
    blob_release(object->body);
    ls_free(object->key);
    ls_free(object);
}

static ls_result insert(const char *key, memory_blob *body, memory_node **links[HEIGHT_MAX])
{
    uint32_t height = height_of(key);
    memory_node *object = ls_allocate(sizeof *object + height * sizeof object->next[0]);
    char *copy = ls_duplicate(key);
    if (object == NULL || copy == NULL) {
        ls_free(object);
        ls_free(copy);
        return LS_ERROR_MEMORY;
    }
    *object = (memory_node){.key = copy, .body = body, .modified_s = (int64_t)time(NULL), .height = height};
    for (uint32_t i = 0; i < height; i++) {
        object->next[i] = *links[i];
        *links[i] = object;
    }
    return LS_OK;
}

static ls_result put(memory_store *store, const ls_object_request *request, ls_object_reply *reply)
{
    memory_node **links[HEIGHT_MAX];
    memory_node *object = find_exact(store, request->key, links);
    if (object != NULL && request->if_absent) {
        reply->status = LS_REPLY_EXISTS;
        reply->message = "an object of that name exists";
        return LS_OK;
    }
    memory_blob *body = blob_new(request->body, request->body_bytes);
    if (body == NULL) return LS_ERROR_MEMORY;
    if (object == NULL) {
        ls_result result = insert(request->key, body, links);
        if (result != LS_OK) blob_release(body);
        return result;
    }
    blob_release(object->body);
    object->body = body;
    object->modified_s = (int64_t)time(NULL);
    return LS_OK;
}

static void get(const ls_object_request *request, const memory_node *object, memory_answer *answer)
{
    ls_object_reply *reply = &answer->reply;
    uint64_t first, count;
    reply->object_bytes = object->body->bytes;
    if (!ls_store_range(request, object->body->bytes, &first, &count)) {
        reply->status = LS_REPLY_INVALID;
        reply->message = "the range holds no byte of the object";
        return;
    }
    answer->body = object->body;
    answer->body->references++;
    reply->body = object->body->data + first;
    reply->body_bytes = count;
}

static void read_object(memory_store *store, const ls_object_request *request, memory_answer *answer)
{
    memory_node **links[HEIGHT_MAX];
    const memory_node *object = find_exact(store, request->key, links);
    if (object == NULL) {
        answer->reply.status = LS_REPLY_NOT_FOUND;
        answer->reply.message = "no object of that name";
    } else if (request->operation == LS_GET) {
        get(request, object, answer);
    } else {
        answer->reply.object_bytes = object->body->bytes;
    }
}

static void delete_object(memory_store *store, const ls_object_request *request)
{
    memory_node **links[HEIGHT_MAX];
    memory_node *object = find_exact(store, request->key, links);
    if (object == NULL) return;
    for (uint32_t i = 0; i < object->height; i++) *links[i] = object->next[i];
    node_free(object);
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Copies `count` objects from first on into one block: sizes, times, pointers, then the texts. */
static ls_result list_copy(const memory_node *first, uint32_t count, size_t text_bytes, memory_answer *answer)
{
    if (count == 0) return LS_OK;
    size_t row_bytes = sizeof(char *) + sizeof(uint64_t) + sizeof(int64_t);
    answer->keys = ls_allocate(count * row_bytes + text_bytes);
    if (answer->keys == NULL) return LS_ERROR_MEMORY;
    uint64_t *sizes = answer->keys;
    int64_t *times = (int64_t *)(sizes + count);
    const char **keys = (const char **)(times + count);
    char *text = (char *)(keys + count);
    for (uint32_t i = 0; i < count; i++, first = first->next[0]) {
        size_t size = strlen(first->key) + 1;
        keys[i] = memcpy(text, first->key, size);
        sizes[i] = first->body->bytes;
        times[i] = first->modified_s;
        text += size;
    }
    answer->reply.keys = keys;
    answer->reply.key_bytes = sizes;
    answer->reply.key_modified_s = times;
    answer->reply.key_count = count;
    return LS_OK;
}

static ls_result list(memory_store *store, const ls_object_request *request, memory_answer *answer)
{
    memory_node **links[HEIGHT_MAX];
    bool beyond = request->list_after != NULL && strcmp(request->list_after, request->key) >= 0;
    const memory_node *first = find(store, beyond ? request->list_after : request->key, beyond, links);
    const memory_node *at = first;
    uint32_t count = 0;
    size_t text_bytes = 0;
    for (; at != NULL && has_prefix(at->key, request->key) && count < request->list_limit; at = at->next[0]) {
        count++;
        text_bytes += strlen(at->key) + 1;
    }
    answer->reply.list_truncated = at != NULL && has_prefix(at->key, request->key);
    return list_copy(first, count, text_bytes, answer);
}

static ls_result carry_out(memory_store *store, const ls_object_request *request, memory_answer *answer)
{
    switch (request->operation) {
    case LS_PUT: return put(store, request, &answer->reply);
    case LS_GET:
    case LS_HEAD: read_object(store, request, answer); return LS_OK;
    case LS_DELETE: delete_object(store, request); return LS_OK;
    case LS_LIST: return list(store, request, answer);
    }
    return LS_ERROR_INVALID;
}

static void answer_free(memory_answer *answer)
{
    blob_release(answer->body);
    ls_free(answer->keys);
    ls_free(answer);
}

static ls_result memory_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                               void *context)
{
    memory_store *store = (memory_store *)base;
    memory_answer *answer = ls_allocate_array(1, sizeof *answer);
    if (answer == NULL) return LS_ERROR_MEMORY;
    answer->callback = callback;
    answer->context = context;
    ls_result result = carry_out(store, request, answer);
    if (result != LS_OK) {
        answer_free(answer);
        return result;
    }
    *store->last = answer;
    store->last = &answer->next;
    store->in_flight++;
    return LS_OK;
}

/* Delivers what was there on entry; what the callbacks submit waits for the next poll, so no caller starves. */
static ls_result memory_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    memory_store *store = (memory_store *)base;
    (void)timeout_ns;
    for (uint32_t due = store->in_flight; *finished < due; ++*finished) {
        memory_answer *answer = store->first;
        store->first = answer->next;
        if (store->first == NULL) store->last = &store->first;
        store->in_flight--;
        answer->callback(answer->context, &answer->reply);
        answer_free(answer);
    }
    return LS_OK;
}

static uint32_t memory_in_flight(const ls_store *base)
{
    return ((const memory_store *)base)->in_flight;
}

static void memory_destroy(ls_store *base)
{
    memory_store *store = (memory_store *)base;
    while (store->first != NULL) {
        memory_answer *answer = store->first;
        store->first = answer->next;
        answer_free(answer);
    }
    for (memory_node *object = store->head[0]; object != NULL;) {
        memory_node *next = object->next[0];
        node_free(object);
        object = next;
    }
    ls_free(store);
}

static const ls_store_methods methods = {memory_submit, memory_poll, memory_in_flight, memory_destroy};

ls_store *ls_store_new_memory(void)
{
    memory_store *store = ls_allocate_array(1, sizeof *store);
    if (store == NULL) return NULL;
    store->base.methods = &methods;
    store->last = &store->first;
    return &store->base;
}
