/* store_config.h - the numbers that describe one modelled store: laws by request kind, instant of effect, links, limits.
 *
 * A request of client i: leaves at t, its transfer (if bytes move) shares the client's and the server's link, the law of its
 * kind gives the base latency, size_ns_per_byte-like slopes add to it; the effect comes effect_share of the way through the
 * base latency; the reply at its end. Zero in a limit or bandwidth means "none".
 *
 * Latency under load: with n requests in the store (itself included) when it arrives, a request takes
 * n / min(parallelism, n^parallelism_exponent) times as long as alone: n requests share what the store can do at once.
 * In a closed loop the rate of requests then levels off at parallelism over the latency of a lone one.
 *
 * Rest: a request that meets the store empty, and that for rest_after_s already, takes rest_s longer (before its effect): processors have
 * gone to sleep, caches have cooled. The requests that follow it closely find a store that is awake.
 */
#ifndef LS_STORE_CONFIG_H
#define LS_STORE_CONFIG_H

#include "sim/law.h"

typedef struct ls_store_config {
    ls_law list; /* each kind of request has its law */
    ls_law head;
    ls_law get;
    ls_law put;             /* unconditional and data puts */
    ls_law conditional_won; /* put-if-absent of a manifest version that succeeds */
    ls_law conditional_lost;
    ls_law remove;
    double get_s_per_mib; /* a single stream's time per 2^20 bytes on top of the law */
    double put_s_per_mib;
    double read_effect_share;        /* where in the base latency the effect lies, 0 .. 1: list, head, get */
    double put_effect_share;         /* put, delete */
    double conditional_effect_share; /* put-if-absent */
    double contention_s_per_doubling; /* added to the reply (after the effect) of a put-if-absent, times log2 of the number of
                                         put-if-absent of the same prefix in flight */
    double client_bandwidth_bytes_per_s; /* link of each client, shared by its transfers (processor sharing) */
    double server_bandwidth_bytes_per_s; /* link of the store, shared by all transfers */
    uint64_t server_slots;               /* requests served at once (0: no limit); others wait in order of arrival */
    double slot_fixed_s;                 /* how long a request holds a slot: this */
    double slot_s_per_mib;               /* plus this per 2^20 bytes moved */
    double parallelism;                  /* how many requests' work is done at once at most; 0: no limit, nothing stretches */
    double parallelism_exponent;         /* how that grows with the requests present: 1 in proportion, 0 not at all */
    double rest_after_s;                 /* the store has gone to rest when it was empty for so long; 0: it never does */
    double rest_s;                       /* how much longer the request takes that wakes it */
    bool losers_wait;                    /* who loses against a put-if-absent that is itself not answered yet is answered after it: servers
                                            that order the writes of one name (Ceph) do so */
    double write_limit_per_s;            /* token bucket per prefix (data, manifest): puts and deletes beyond are throttled */
    double read_limit_per_s;             /* same for get, head, list */
    double key_write_limit_per_s;        /* puts of one and the same name (lost tries count) */
    double limit_burst_s;                /* depth of the buckets in seconds of their rate */
    double throttle_reply_s;             /* how soon a throttled reply comes back */
} ls_store_config;

/* A named store with sources for its numbers. */
typedef struct ls_store_preset {
    const char *name;    /* ideal, s3-standard, s3-express, gcs, azure-blob, azure-premium, minio, local */
    const char *meaning; /* what it stands for and how good the numbers are */
    const char *source;  /* where they come from */
    ls_store_config config;
} ls_store_preset;

const ls_store_preset *ls_store_presets(uint32_t *count);

#endif
