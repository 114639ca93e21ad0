/* store.h - the store interface: what every object store that really holds bytes looks like to us.
 *
 * A store is asynchronous and single-threaded: submit starts an operation, poll waits (at most so long) and calls each
 * finished operation's callback from inside poll, never from submit. Keys are NUL-terminated UTF-8 text without a
 * leading slash, at most LS_STORE_KEY_BYTES_MAX bytes, and no part between slashes is empty, '.' or '..'. Operations
 * and replies are the closed sets of manifest/exchange.h; what each reply promises is written there, and
 * tests/test_store.c holds every store to it.
 *
 * Ownership: a request's key and body are borrowed until its callback has returned. A reply's body, keys and message
 * are valid only during the callback. Callbacks may submit further operations. Destroying a store drops unfinished
 * operations without calling back.
 */
#ifndef LS_STORE_H
#define LS_STORE_H

#include "manifest/exchange.h"

#define LS_STORE_KEY_BYTES_MAX 1024u
#define LS_STORE_LIST_LIMIT_MAX 1000u

typedef struct ls_store ls_store;

typedef struct ls_object_request {
    ls_operation operation;
    const char *key;        /* list: the prefix */
    const char *list_after; /* list: only keys greater than this (bytewise); NULL: from the start */
    uint32_t list_limit;    /* list: 1 .. LS_STORE_LIST_LIMIT_MAX */
    bool if_absent;         /* put */
    ls_range_kind range;    /* get */
    uint64_t range_offset;  /* get, span. At or past the end: LS_REPLY_INVALID with object_bytes set */
    uint64_t range_bytes;   /* get, span or suffix; cut at the object's bounds. 0: LS_REPLY_INVALID */
    const void *body;       /* put */
    uint64_t body_bytes;
} ls_object_request;

typedef struct ls_object_reply {
    ls_reply_status status;
    const uint8_t *body;     /* get: the bytes asked for */
    uint64_t body_bytes;
    uint64_t object_bytes;   /* get, head: size of the whole object */
    const char *const *keys; /* list: ascending bytewise where the store sorts (S3 Express does not) */
    const uint64_t *key_bytes; /* list: sizes of those objects */
    const int64_t *key_modified_s; /* list: seconds since 1970 by the store's clock */
    uint32_t key_count;
    bool list_truncated;
    int64_t retry_after_ns;  /* throttled */
    const char *message;     /* not OK: for a person, with the store's request id; never a secret. May be NULL */
} ls_object_reply;

typedef void (*ls_store_callback)(void *context, const ls_object_reply *reply);

/* What a store implements; instances embed ls_store as their first member. */
typedef struct ls_store_methods {
    ls_result (*submit)(ls_store *store, const ls_object_request *request, ls_store_callback callback, void *context);
    ls_result (*poll)(ls_store *store, int64_t timeout_ns, uint32_t *finished);
    uint32_t (*in_flight)(const ls_store *store);
    void (*destroy)(ls_store *store);
} ls_store_methods;

struct ls_store {
    const ls_store_methods *methods;
};

/* Starts an operation. Only LS_ERROR_MEMORY and LS_ERROR_INVALID (bad key, bad limit) come from here; everything else
 * is a reply. */
ls_result ls_store_submit(ls_store *store, const ls_object_request *request, ls_store_callback callback, void *context);

/* Waits until at least one operation finished or timeout_ns passed (0: does not wait), delivers every finished one, and
 * says how many (finished may be NULL). With nothing in flight it sleeps for timeout_ns, or until a signal comes; it
 * returns at once when that is 0 or LS_NEVER_NS. */
ls_result ls_store_poll(ls_store *store, int64_t timeout_ns, uint32_t *finished);

uint32_t ls_store_in_flight(const ls_store *store);
void ls_store_destroy(ls_store *store); /* NULL is allowed */

/* What is wrong with a key, as a phrase that follows "the key ..."; NULL when nothing is. */
const char *ls_store_key_problem(const char *key);

/* For stores: which bytes [*first, *first + *count) of an object of object_bytes bytes a get asks for. False: none,
 * answer LS_REPLY_INVALID. (A suffix of an empty object is the empty object: RFC 9110, section 14.1.2.) */
bool ls_store_range(const ls_object_request *get, uint64_t object_bytes, uint64_t *first, uint64_t *count);

/* A store in this process's memory: each operation takes effect at submit and is delivered at the next poll. */
ls_store *ls_store_new_memory(void);

/* A store in a directory: atomic and durable put (temporary file, fsync, link(2) for if-absent, rename(2) otherwise,
 * fsync of the directory), safe against other processes on the same directory; keys cannot leave the root. root must
 * exist or be creatable. A poll carries out one operation and blocks for as long as that takes. A part of a key longer
 * than 254 bytes (escapes count: see directory.c) is answered with LS_REPLY_INVALID. NULL on failure, with error. */
ls_store *ls_store_open_directory(const char *root, ls_error *error);

/* A store that delays another: each operation of `inner` (owned from now on) is held so that its effect comes
 * effect_share of the way through the latency that `law` draws for it, and its reply at the end. law(context, request)
 * returns nanoseconds. Time is CLOCK_MONOTONIC. NULL when out of memory: inner is then destroyed. */
typedef int64_t (*ls_delay_law)(void *context, const ls_object_request *request);
ls_store *ls_store_new_delay(ls_store *inner, ls_delay_law law, void *context, double effect_share);

/* Opens a store by address: "memory", "dir:PATH", "s3://bucket/prefix". *prefix (caller frees with ls_free) is the key
 * prefix the address names, "" if none. NULL on failure, with error. */
ls_store *ls_store_open(const char *address, char **prefix, ls_error *error);

/* Waits for one operation: submit and poll until it is done. For tools and tests; copies the reply's body into *body
 * (caller frees, may be NULL if not wanted; NULL on an empty body). LS_OK whenever the store replied: then *status says
 * what, and error, if not NULL, holds the store's message (or ""). Other operations that finish meanwhile are
 * delivered. When the store cannot be polled its error comes back, and the store is fit only to be destroyed. */
ls_result ls_store_call(ls_store *store, const ls_object_request *request, ls_reply_status *status, uint8_t **body,
                        uint64_t *body_bytes, ls_error *error);

/* Refuses a store that ignores put-if-absent: creates one probe object twice, then eight at once under another name;
 * exactly one of each may win and its bytes must stay. Deletes its objects (prefix, then "probe/..." in `prefix` as a
 * folder). LS_ERROR_IO with what was seen when the store fails the probe. */
ls_result ls_store_probe(ls_store *store, const char *prefix, uint64_t nonce, ls_error *error);

#endif
