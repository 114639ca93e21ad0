/* store_model.h - the modelled object store: speaks the requests and replies of manifest/exchange.h in virtual time.
 *
 * Every request has an arrival, one instant of effect and a reply. Conditions are checked and objects change at the
 * instant of effect alone, so put-if-absent is exact: among all puts of a name the first effect wins. Times:
 *
 *   arrival   ls_store_model_submit. Token buckets (per object kind, and per name for puts) may refuse the request:
 *             LS_REPLY_THROTTLED after throttle_reply_s, no effect. With server_slots it waits in line for a slot; it
 *             holds the slot for slot_fixed_s + slot_s_per_mib * MiB from the moment it gets it (of a get: the bytes it
 *             would move if it looked on arrival), whatever the rest of the request does.
 *   upload    the bytes of a put cross the client's link and the store's link (sim/link.h) at the same time; the upload
 *             has ended when both have served it. Then put_s_per_mib * MiB pass.
 *   effect    comes share * base after that, base being drawn from the law of the request's kind:
 *             list, head, get, delete: their laws; every put of a data object and every unconditional put: `put`;
 *             put-if-absent of any other object: conditional_won.
 *   download  the bytes of a get cross both links from the effect on.
 *   reply     comes get_s_per_mib * MiB + (1 - share) * base after the end of the download or, without bytes, after the
 *             effect.
 *
 * Put-if-absent under a conditional law: whether it wins is known only at the effect, so one request draws one set of
 * uniforms; the won law at these uniforms gives W, the lost law at the same uniforms gives L. With t0 the end of the
 * upload and of put_s_per_mib's share, the effect comes at t0 + share * W; the reply of a winner at t0 + W, of a loser
 * at max(effect, t0 + L); to both is added contention_s_per_doubling * log2(n), n = conditional puts of that object
 * kind between arrival and reply at the moment of the effect, itself included.
 *
 * Random streams: (LS_RANDOM_READ_LATENCY, client) for get, head and list, (LS_RANDOM_PUT_LATENCY, client) for put and
 * delete, (LS_RANDOM_DATA_LATENCY, client) for whatever touches a data object; the n-th request that a client has let
 * in for a purpose draws from place 64 n on, so it meets the same latency whatever the policy (common random numbers).
 *
 * The model owns no clock. Its driver calls ls_store_model_event for every wake-up that the model asked of its
 * scheduler; even a request without latency is answered through the scheduler, never from inside submit.
 */
#ifndef LS_STORE_MODEL_H
#define LS_STORE_MODEL_H

#include "manifest/exchange.h"
#include "sim/station.h"
#include "sim/store_config.h"

typedef struct ls_store_model ls_store_model;

/* A reply that is due. */
typedef struct ls_store_completion {
    bool ready; /* false: this event brought no reply, the rest is meaningless */
    uint32_t client;
    uint64_t context; /* as given to submit */
    int64_t submitted_ns;
    ls_operation operation;
    ls_object_kind kind;
    ls_store_reply reply; /* its manifest, if any, is a reference that passes to the caller; a list's names are the model's, valid
                             until its next event */
} ls_store_completion;

/* An effect that just happened, for observers (oracle, invariant checks). Throttled requests have none. */
typedef struct ls_store_effect {
    bool happened; /* false: this event was no effect, the rest is meaningless */
    uint32_t client;
    uint64_t context;
    ls_reply_status status;   /* what the reply will say */
    ls_store_request request; /* as submitted, but `known` is NULL; manifest is borrowed until the next call of event */
} ls_store_effect;

#define LS_STORE_OPERATIONS 6u /* ls_operation indexes 1 .. 5 */
#define LS_STORE_KINDS      5u /* ls_object_kind indexes 1 .. 4 */
#define LS_STORE_STATUSES   9u /* ls_reply_status indexes 0 .. 8 */

typedef struct ls_store_count {
    uint64_t requests;
    uint64_t up_bytes;
    uint64_t down_bytes;
} ls_store_count;

/* Counted when a request's answer is decided: at its effect, or at its arrival if throttled. */
typedef struct ls_store_counters {
    ls_store_count by[LS_STORE_OPERATIONS][LS_STORE_KINDS][LS_STORE_STATUSES];
    uint64_t throttled;       /* all requests refused for load */
    uint64_t key_throttled;   /* those of them refused by the bucket of their own name */
    uint64_t wasted_up_bytes; /* bodies of puts that lost (LS_REPLY_EXISTS) */
    uint64_t slot_waits;      /* requests that had to wait for a slot */
    int64_t slot_wait_ns;     /* their waiting time together */
    uint64_t stored_objects;  /* now */
    uint64_t stored_bytes;    /* now */
} ls_store_counters;

/* Makes an empty store. config is copied; empirical laws are read from their files here. LS_ERROR_INVALID names the
 * setting that is out of range, LS_ERROR_IO and LS_ERROR_CORRUPT a bad law file. The scheduler's context must outlive
 * the model. */
ls_result ls_store_model_create(const ls_store_config *config, uint64_t seed, uint64_t replication,
                                ls_store_scheduler scheduler, ls_store_model **model, ls_error *error);

/* Releases everything, unanswered requests included. NULL is allowed. */
void ls_store_model_destroy(ls_store_model *model);

/* A request of a client arrives. Clients are numbered from 0 without large gaps (a few bytes are kept for each).
 * context comes back with the reply. request is copied; of `known` only its end step is taken, here. A put's reference
 * in request->manifest passes to the model, on an error too. A senseless request (unknown operation, range of no bytes,
 * list of no keys, put of a manifest without one) is answered with LS_REPLY_INVALID. An error (LS_ERROR_MEMORY or the
 * scheduler's) leaves the model fit only to be destroyed. */
ls_result ls_store_model_submit(ls_store_model *model, int64_t now_ns, uint32_t client, uint64_t context,
                                const ls_store_request *request);

/* From now on the bytes of a client's requests cross link number `link` instead of one of its own; who names the same link shares
 * it. Links are numbered like clients, and a client that is never named here has its own number's. bytes_per_s is the link's
 * bandwidth (0: unlimited), the same for all who share it. LS_ERROR_MEMORY. */
ls_result ls_store_model_use_link(ls_store_model *model, uint32_t client, uint32_t link, double bytes_per_s);

/* A wake-up that the model asked for. Fills both outs (which may be NULL only if the caller does not want them; a
 * reply's manifest is then released); one event brings at most one effect and at most one reply, of the same request.
 * An error (LS_ERROR_MEMORY or the scheduler's) leaves the model fit only to be destroyed. */
ls_result ls_store_model_event(ls_store_model *model, int64_t now_ns, uint64_t token, ls_store_completion *done,
                               ls_store_effect *effect);

/* Is a wake-up that the model asks for one of a request's own latency (rather than a link's or the queue's turn)? A driver that
 * makes the store slow lengthens these alone. */
bool ls_store_model_is_latency(uint64_t token);

/* Puts an object in place without a request, for a prefilled world; an existing one is replaced. The manifest is
 * retained; data keys name LS_OBJECT_DATA, LS_OBJECT_FLOOR or LS_OBJECT_CHECKPOINT objects. */
ls_result ls_store_model_install_manifest(ls_store_model *model, const ls_manifest *manifest);
ls_result ls_store_model_install_data(ls_store_model *model, const ls_key *key, uint64_t bytes);

/* What the store holds at this moment, for observers; no request, no latency. Manifests are borrowed, NULL if absent.
 */
const ls_manifest *ls_store_model_newest(const ls_store_model *model);
const ls_manifest *ls_store_model_manifest(const ls_store_model *model, uint64_t version);
bool ls_store_model_has(const ls_store_model *model, const ls_key *key, uint64_t *bytes);

/* Requests between submit and reply; and of them the conditional puts of one object kind. */
uint64_t ls_store_model_in_flight(const ls_store_model *model);
uint64_t ls_store_model_conditional_in_flight(const ls_store_model *model, ls_object_kind kind);

const ls_store_counters *ls_store_model_counters(const ls_store_model *model);

/* Sets the request and byte counts to zero (end of a warm-up); what is stored stays counted. */
void ls_store_model_reset_counters(ls_store_model *model);

#endif
