/* measure.h - the measurement behind a calibration: clients that send one kind of request one after the other, and the
 * time that each takes.
 *
 * The clients know only an ls_driver, so the same measurement runs on a real store (ls_measure_store, on the real-time
 * loop that production runs use) and on a modelled one (ls_measure_model, in virtual time). A calibration fits the model
 * by comparing the two; whatever the method distorts, it distorts on both sides alike. A latency runs from before the
 * request is handed to the driver until its reply is handed over: encoding, signing, the loop's own queue and decoding
 * are in it, as they are in what a producer meets.
 */
#ifndef LS_MEASURE_H
#define LS_MEASURE_H

#include "backend/store.h"
#include "sim/store_config.h"

typedef enum ls_request_kind {
    LS_REQUEST_GET = 0, /* a manifest, whole, decoded */
    LS_REQUEST_RANGE,   /* a span of 4 KiB in the middle of a data object */
    LS_REQUEST_PUT,     /* a data object under a fresh name */
    LS_REQUEST_WON,     /* put-if-absent of a manifest under a fresh name */
    LS_REQUEST_LOST,    /* put-if-absent of a manifest under a taken name */
    LS_REQUEST_HEAD,    /* of a data object */
    LS_REQUEST_LIST,    /* manifests after a known one; a page of ten names */
    LS_REQUEST_RACE,    /* put-if-absent of the next manifest version, all clients against each other: who loses tries
                           the version after at once, reading nothing */
    LS_REQUEST_COMMIT,  /* producers without pause: put of data, then list, get, put-if-absent until the latter wins */
    LS_REQUEST_KINDS
} ls_request_kind;

const char *ls_request_kind_name(ls_request_kind kind);

typedef struct ls_measure_task {
    ls_request_kind kind;
    uint64_t bytes;    /* size of the object; at least 1024 */
    uint32_t clients;  /* each has one request in flight */
    double seconds;    /* measured for so long at most, */
    uint32_t requests; /* at most so many requests, */
    uint64_t volume;   /* and at most so many bytes written; a client sends one request at least */
    double pause_s;    /* between a reply (commit: a win) and the client's next request, on average (0.5 to 1.5 of it); 0: none. A store that
                          is asked now and then answers later than one that is kept awake: processors sleep, caches cool */
} ls_measure_task;

/* A list of values that grows. */
typedef struct ls_sample {
    double *values;
    uint32_t count;
    uint32_t capacity;
} ls_sample;

ls_result ls_sample_add(ls_sample *sample, double value); /* LS_ERROR_MEMORY */
void ls_sample_sort(ls_sample *sample);
void ls_sample_free(ls_sample *sample);
double ls_sample_mean(const ls_sample *sample); /* NaN when it is empty */

/* Of a sorted sample, linear between the order statistics; NaN when it is empty. */
double ls_sample_quantile(const ls_sample *sample, double probability);

typedef struct ls_measurement {
    ls_measure_task task;
    ls_sample latency_s; /* sorted; of a race: of the wins */
    ls_sample lost_s;    /* race only: of the losses; sorted */
    ls_sample remove_s;  /* deletes of the objects written, as many clients at once; sorted */
    double elapsed_s;    /* how long requests were counted */
    uint64_t completed;  /* requests that ended in this time, wins and losses together */
    uint64_t wins;       /* race, commit: puts of a next version that won, */
    uint64_t losses;     /* and those that lost */
    uint64_t undecided;  /* race, commit: of these losses, answered "conflict, try again" */
    uint64_t refused;    /* throttled, unavailable, unknown outcome: counted, and tried again */
} ls_measurement;

void ls_measurement_free(ls_measurement *measurement);

static inline double ls_measurement_rate_per_s(const ls_measurement *m)
{
    return m->elapsed_s > 0 ? (double)m->completed / m->elapsed_s : 0;
}

/* Measures on a store. prefix (a folder for this task alone) is left empty again. A store that denies or garbles
 * requests, or refuses hundreds of them, ends it with LS_ERROR_IO and its message. measurement is filled on success only
 * (free it with ls_measurement_free). */
ls_result ls_measure_store(ls_store *store, const char *prefix, const ls_measure_task *task, ls_measurement *measurement,
                           ls_error *error);

/* The same on a modelled store. Deletes are not measured. */
ls_result ls_measure_model(const ls_store_config *config, const ls_measure_task *task, uint64_t seed,
                           ls_measurement *measurement, ls_error *error);

#endif
