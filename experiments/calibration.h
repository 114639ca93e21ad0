/* calibration.h - from measurements of a store to the numbers of a modelled one.
 *
 * What is measured (measure.h) and what it gives:
 *
 *   one client, smallest size    the law of each kind of request (fit.h), one request straight after the other
 *   the same with pauses         a store that is asked now and then is slower than one kept awake (on a small server by half and
 *                                more): store.rest_s, the mean over kinds of the difference of medians
 *   one client, all sizes        with pauses: seconds per MiB, by regression of medians
 *   all numbers of clients       how latency stretches with the load: store.parallelism and its exponent, by least squares
 *                                of log(mean latency at n / mean latency at 1) over kinds and n. (In a closed loop of n
 *                                clients the rate is n over the mean latency, so this fits the rates and their ceiling.)
 *   a race for the next version  whether losers wait for the winner's answer (the better of the two), then what rivals cost: by how
 *                                much the replies are later than the model's
 *   commits, five a second each  instant of effect of put-if-absent and of reads: the same commits are run on the model for
 *                                shares from 0 to 1, and the one is taken whose wins a second and failures are nearest
 *
 * Measuring goes round several times, so that a change of the machine's mood falls on all alike.
 */
#ifndef LS_CALIBRATION_H
#define LS_CALIBRATION_H

#include "experiments/fit.h"

typedef enum ls_calibrated_law {
    LS_CALIBRATED_LIST = 0,
    LS_CALIBRATED_HEAD,
    LS_CALIBRATED_GET,
    LS_CALIBRATED_PUT,
    LS_CALIBRATED_WON,
    LS_CALIBRATED_LOST,
    LS_CALIBRATED_REMOVE,
    LS_CALIBRATED_LAWS
} ls_calibrated_law;

const char *ls_calibrated_law_name(ls_calibrated_law law); /* as in "store.<name>" */
ls_law *ls_calibrated_law_of(ls_store_config *config, ls_calibrated_law law);

#define LS_CALIBRATION_LIST_MAX 16u

typedef struct ls_calibration_plan {
    double seconds; /* of measuring, in all; setting up and clearing away come on top */
    uint32_t rounds;
    uint64_t sizes[LS_CALIBRATION_LIST_MAX]; /* ascending, at least 1024 */
    uint32_t size_count;
    uint32_t clients[LS_CALIBRATION_LIST_MAX]; /* ascending; 1 is added if it is not there */
    uint32_t client_count;
    uint64_t seed;          /* of the model's runs */
    const char *table_path; /* quantile tables are written to <table_path>-<law>-<digest>.txt; NULL: no tables */
    void (*progress)(void *context, uint32_t done, uint32_t all, const ls_measurement *last); /* may be NULL */
    void *progress_context;
} ls_calibration_plan;

/* Sizes 1 KiB to 16 MiB, clients 1 to 64, two minutes in three rounds; quick: to 1 MiB and 16 clients in half a minute. */
ls_calibration_plan ls_calibration_plan_default(bool quick);

/* A task as measured and as the calibrated model does it. */
typedef struct ls_calibrated_cell {
    ls_measurement measured;
    ls_measurement modelled; /* empty where nothing was measured */
} ls_calibrated_cell;

typedef struct ls_calibration {
    ls_calibrated_cell *cells;
    uint32_t cell_count;
    ls_fit fits[LS_CALIBRATED_LAWS];
    ls_store_config config;
    double load_error;   /* root mean square of log(modelled / measured mean latency) under load; NaN: not fitted */
    double effect_error; /* the same of wins a second, and of twice the failures' difference, in race and commits */
} ls_calibration;

/* Measures and fits. prefix is a folder to work in ("" or ending in a slash), left empty. Errors: those of the store
 * (LS_ERROR_IO), a senseless plan (LS_ERROR_INVALID), LS_ERROR_MEMORY. Free with ls_calibration_free whatever the result. */
ls_result ls_calibrate(ls_store *store, const char *prefix, const ls_calibration_plan *plan, ls_calibration *calibration,
                       ls_error *error);

/* The same with somebody else's measurements: measure is asked for every task of the plan, in every round, and answers as
 * ls_measure_store does. (Measuring a model whose numbers are known shows whether they can be found.) */
typedef ls_result (*ls_measure_function)(void *context, const char *prefix, const ls_measure_task *task, ls_measurement *measurement,
                                         ls_error *error);
ls_result ls_calibrate_by(ls_measure_function measure, void *context, const char *prefix, const ls_calibration_plan *plan,
                          ls_calibration *calibration, ls_error *error);

/* Opens the store at an address, refuses it if it ignores put-if-absent, and calibrates under a prefix of its own. */
ls_result ls_calibrate_address(const char *address, const ls_calibration_plan *plan, ls_calibration *calibration, ls_error *error);

void ls_calibration_free(ls_calibration *calibration);

/* The measurement of that task, NULL if there is none. */
const ls_measurement *ls_calibration_find(const ls_calibration *calibration, ls_request_kind kind, uint64_t bytes, uint32_t clients);

/* The share of puts of a next version that lost. NaN when there were none. */
double ls_measurement_conflict_share(const ls_measurement *measurement);

#endif
