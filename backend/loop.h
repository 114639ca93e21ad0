/* loop.h - the real-time loop: runs protocol machines against a store that really holds bytes, by the clock on the
 * wall.
 *
 * It is the real counterpart of the simulator: a population of machines sets timers and sends ls_store_requests; the
 * loop turns requests into named objects and bytes, replies into ls_store_replies, and calls the population back. What
 * it adds to the protocol is only translation: a prefix before every key, manifests encoded and decoded, data objects
 * filled and handed over by callbacks. One thread; hundreds of machines; it sleeps in the store's poll until a reply or
 * a timer.
 *
 * Ownership: the store and the handler are borrowed, and while requests are in flight the store holds pointers into the
 * loop; how the two are taken down is told at ls_loop_free.
 */
#ifndef LS_LOOP_H
#define LS_LOOP_H

#include "backend/store.h"
#include "manifest/driver.h"

typedef struct ls_loop ls_loop;

/* What the population answers to. A result other than LS_OK ends the run with it. now_ns counts from the loop's
 * creation. Any of them may set timers, submit and stop. */
typedef struct ls_loop_handler {
    /* A timer's time has come (never NULL if timers are set). */
    ls_result (*timer)(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument);
    /* The store answered a request that was submitted with this kind and entity. reply is borrowed, but the reference
     * reply->manifest, if any, passes to the handler. Never NULL if requests are submitted. */
    ls_result (*reply)(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply);
    /* Fills the content of an object about to be put that is no manifest: size bytes, zero on entry. May be NULL:
     * zeroes. */
    ls_result (*body)(void *context, const ls_key *key, uint8_t *bytes, uint64_t size);
    /* Takes what a get of an object that is no manifest brought: length bytes from that offset of the object on,
     * already verified where the request says how, valid during the call. Comes just before the reply. May be NULL. */
    ls_result (*data)(void *context, uint32_t entity, const ls_key *key, uint64_t offset, const uint8_t *bytes,
                      uint64_t length);
} ls_loop_handler;

/* Makes a loop; its time begins now. prefix goes before every key; if it is neither empty nor ends in a slash, a slash
 * is put between. NULL when out of memory, or if prefix leaves no room for keys (LS_STORE_KEY_BYTES_MAX). */
ls_loop *ls_loop_new(ls_store *store, const char *prefix, const ls_loop_handler *handler, void *context);

/* Frees a loop. Requests in flight are waited for first, without calling the handler: their outcome is dropped, and the
 * store no longer points into the loop. (A store's own time-outs bound that.) */
void ls_loop_free(ls_loop *loop); /* NULL is allowed */

/* Frees a loop whose store has already been destroyed: nothing is waited for. */
void ls_loop_free_after_store(ls_loop *loop);

/* Nanoseconds (CLOCK_MONOTONIC) since the loop was made. */
int64_t ls_loop_now(ls_loop *loop);

/* Calls the handler's timer with these values at at_ns or soon after: earlier times first, equal times in the order of
 * these calls. A time in the past is due at once, but never called from here. LS_NEVER_NS is ignored. Only LS_ERROR_MEMORY
 * can come of it. */
ls_result ls_loop_timer(ls_loop *loop, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument);

/* Sends a request; the reply comes to the handler with the same kind and entity, and with the request's tag. request is
 * copied; `known` is retained until the reply; the reference request->manifest passes to the loop, on an error too.
 * LIST asks for keys of the key's kind after that key; names under the prefix that are not ours are skipped, and
 * further pages fetched until one of ours or the end is found. GET of a manifest, whole or by suffix, is decoded; GET
 * of data by suffix is read as a TGB's footer, one by span with slice.bytes > 0 is checked against slice.crc32c, and one
 * of the whole object with for_slice does both: the handler's data is then the slice asked for.
 * What does not stand up to that is answered with LS_REPLY_INVALID, and ls_loop_error says why. LS_ERROR_MEMORY;
 * LS_ERROR_INVALID for a request that makes no sense (put of a manifest without one, list_limit 0 or beyond
 * LS_STORE_LIST_LIMIT_MAX, unknown kind). */
ls_result ls_loop_submit(ls_loop *loop, const ls_store_request *request, uint32_t kind, uint32_t entity);

/* Runs until ls_loop_stop (LS_OK), until neither a timer nor a request is left (LS_OK), or until the handler or the
 * store fails (that result). After a stop it may be run again: timers and requests are still there. A signal only ends
 * the sleep, so a signal handler that wants the loop to stop may set a flag that a timer looks at. */
ls_result ls_loop_run(ls_loop *loop);

/* Ends ls_loop_run: no further timer is called; what the store delivers in the same breath still is. */
void ls_loop_stop(ls_loop *loop);

/* Requests submitted and not yet answered. */
uint32_t ls_loop_in_flight(const ls_loop *loop);

/* The last message for a person: why an object was not decoded, what the store said about a reply that was neither OK
 * nor one of the protocol's everyday answers (exists, not found, conflict, throttled), why a run failed. "" if none. */
const char *ls_loop_error(const ls_loop *loop);

#define LS_LOOP_OPERATIONS 6u /* ls_operation indexes 1 .. 5 */
#define LS_LOOP_KINDS      5u /* ls_object_kind indexes 1 .. 4 */
#define LS_LOOP_STATUSES   9u /* ls_reply_status indexes 0 .. 8 */

/* Counted at the reply; a list that took several pages counts each. A decoding failure counts as LS_REPLY_INVALID. */
typedef struct ls_loop_count {
    uint64_t requests;
    uint64_t up_bytes;   /* of bodies put, won or lost */
    uint64_t down_bytes; /* of bodies got */
} ls_loop_count;

typedef struct ls_loop_counters {
    ls_loop_count by[LS_LOOP_OPERATIONS][LS_LOOP_KINDS][LS_LOOP_STATUSES];
} ls_loop_counters;

/* Valid as long as the loop; and setting all of it to zero, at the end of a warm-up. */
const ls_loop_counters *ls_loop_counters_of(const ls_loop *loop);
void ls_loop_reset_counters(ls_loop *loop);

/* The loop as the driver of a population (manifest/driver.h): requests of a client go out with kind 0 and the client's
 * number as entity. */
ls_driver ls_loop_driver(ls_loop *loop);

#endif
