/* store_conformance.h - one suite that every store has to pass: what backend/store.h and manifest/exchange.h promise.
 *
 * Written as named checks over a store that `open` makes anew for each of them; a store may already hold other objects:
 * every check works below a prefix of its own and removes what it made. Failures are CUnit assertions, and the name of
 * the check that failed goes to standard error.
 */
#ifndef LS_TEST_STORE_CONFORMANCE_H
#define LS_TEST_STORE_CONFORMANCE_H

#include "backend/store.h"

/* open returns a store that the suite destroys; NULL fails the check. */
void ls_store_conformance(ls_store *(*open)(void *context), void *context);

/* What the checks are made of, for further tests of single stores. An answer owns copies of everything in the reply. */
typedef struct store_answer {
    bool done;
    uint32_t calls; /* of the callback: must end as 1 */
    ls_reply_status status;
    uint8_t *body;
    uint64_t body_bytes;
    uint64_t object_bytes;
    char **keys;
    uint64_t *key_bytes;
    int64_t *key_modified_s;
    uint32_t key_count;
    bool list_truncated;
    char message[512];
} store_answer;

/* A callback whose context is a store_answer. */
void store_answer_take(void *context, const ls_object_reply *reply);
void store_answer_clear(store_answer *answer);

/* Polls until nothing is in flight; false (and a failed assertion) if that takes more than a minute. */
bool store_drain(ls_store *store);

/* One operation from submit to answer; the caller clears the answer. */
store_answer store_ask(ls_store *store, const ls_object_request *request);

ls_reply_status store_put(ls_store *store, const char *key, const void *body, uint64_t body_bytes, bool if_absent);
ls_reply_status store_delete(ls_store *store, const char *key);
/* True when the whole object is these bytes. */
bool store_holds(ls_store *store, const char *key, const void *body, uint64_t body_bytes);
/* True when the keys that begin with prefix are exactly these, in this order (given without `strip`, the text before
 * them). */
bool store_lists(ls_store *store, const char *prefix, const char *strip, const char *const *names, uint32_t count);

#endif
