/* results.h - the results database: one SQLite file that says what was asked, what was run and what came out.
 *
 * Schema (user_version LS_RESULTS_SCHEMA, application_id "LSTR"):
 *
 *   experiments(id, name, title, shows, path, spec, quick, seed, replications, compare, swept, added)
 *       one row a (name, spec text, quick, seed); path and added (a date) are for people and part of no hash;
 *       replications, compare and swept are JSON texts: {"minimum","maximum","metric","half_width","confidence"},
 *       {"key","baseline","metrics"} and the array of swept keys
 *   points(id, hash, resolved)
 *       one row a distinct scenario: canonical JSON and its SHA-256
 *   experiment_points(experiment, position, point, labels)
 *       which points an experiment consists of, in its order; labels is the JSON array of the swept keys' values
 *   runs(id, point, seed, replication, version, backend, status, message, events, wall_s)
 *       one row a (point, seed, replication, version, backend); status is "ok", "failed" or "crashed", and message
 *       says why
 *   metrics(run, name, value)
 *       the measured values of an ok run; a metric that does not apply has no row
 *
 * A rollback journal, not a write-ahead log: a results file stays one file that can be copied while nobody writes,
 * and one transaction a second is all the traffic there is. One process writes at a time; others wait up to five
 * seconds.
 *
 * Errors: LS_ERROR_IO (cannot open, read, write; locked), LS_ERROR_CORRUPT (not a results file, or damaged),
 * LS_ERROR_VERSION (written by another schema), LS_ERROR_MEMORY, LS_ERROR_INVALID (no such experiment).
 */
#ifndef LS_RESULTS_H
#define LS_RESULTS_H

#include "experiments/spec.h"

#define LS_RESULTS_SCHEMA 1

typedef struct ls_results ls_results;

typedef enum ls_results_mode { LS_RESULTS_READ = 1, LS_RESULTS_WRITE /* creates the file if absent */ } ls_results_mode;

ls_result ls_results_open(const char *path, ls_results_mode mode, ls_results **results, ls_error *error);
void ls_results_close(ls_results *results); /* NULL is allowed */

typedef enum ls_run_status { LS_RUN_OK = 0, LS_RUN_FAILED, LS_RUN_CRASHED } ls_run_status;

const char *ls_run_status_name(ls_run_status status);

/* One run, ready to be stored. The point is named by its row id; strings are borrowed. */
typedef struct ls_run_record {
    int64_t point;
    uint64_t seed;
    uint64_t replication;
    ls_run_status status;
    const char *message;         /* NULL when ok */
    const ls_run_result *result; /* used when ok */
} ls_run_record;

/* Who runs: part of each run's identity. Borrowed. */
typedef struct ls_run_origin {
    const char *version; /* LS_VERSION */
    const char *backend; /* "sim" or a store address */
} ls_run_origin;

/* Registers the experiment and its points; adding the same twice changes nothing. point_ids gets the row id of each of
 * spec->point_count points. */
ls_result ls_results_add_experiment(ls_results *results, const ls_spec *spec, int64_t *point_ids, ls_error *error);

/* The row ids of a spec's points, -1 for each that the file does not have, or not in this experiment (same name, text, quick
 * and seed). Changes nothing. */
ls_result ls_results_find_points(ls_results *results, const ls_spec *spec, int64_t *point_ids, ls_error *error);

/* Stores runs in one transaction. A run that is there already is replaced. */
ls_result ls_results_add_runs(ls_results *results, const ls_run_origin *origin, const ls_metric *metrics,
                              uint32_t metric_count, const ls_run_record *records, uint32_t count, ls_error *error);

/* Calls visit for each ok run of a point with that seed and origin, by ascending replication: its values in the order
 * of the metric table (NaN: absent). A visit that returns other than LS_OK ends the walk with that result. */
typedef ls_result (*ls_results_visit_run)(void *context, uint64_t replication, const double *values);
ls_result ls_results_each_run(ls_results *results, int64_t point, uint64_t seed, const ls_run_origin *origin,
                              const ls_metric *metrics, uint32_t metric_count, ls_results_visit_run visit,
                              void *context, ls_error *error);

/* What a reader needs of one experiment: its points in order, and every ok run with all its metrics. */
typedef struct ls_stored_run {
    uint64_t seed;
    uint64_t replication;
    double *values; /* metric_count values in the order of metric_names; NaN: absent */
} ls_stored_run;

typedef struct ls_stored_point {
    char **labels; /* swept_key_count values */
    char hash[LS_DIGEST_HEX_BYTES];
    ls_stored_run *runs; /* by ascending seed, then replication */
    uint32_t run_count;
    uint32_t failed_count; /* runs that failed or crashed */
} ls_stored_point;

typedef struct ls_stored_experiment {
    int64_t id;
    char *name;
    char *title;
    char *shows;
    char *path;
    char *spec;    /* the spec's text */
    char *added;   /* date, UTC: when a run of this spec last began */
    char *version; /* of the runs that were loaded */
    char *backend;
    uint64_t seed;
    bool quick;
    char *replication_metric; /* NULL if none */
    char *compare_key;
    char *compare_baseline; /* NULL if none */
    char **compare_metrics;
    uint32_t compare_metric_count;
    char **swept_keys;
    uint32_t swept_key_count;
    char **metric_names; /* ascending */
    uint32_t metric_count;
    ls_stored_point *points;
    uint32_t point_count;
} ls_stored_experiment;

/* Loads the experiment of that name (NULL: the only one; LS_ERROR_INVALID names them if there are several). Of a name
 * that was run with several specs the last added counts. Runs are those of one origin: that of the most recently added
 * ok run of the experiment whose backend is `backend` (NULL: any). Free with ls_stored_experiment_free. */
ls_result ls_results_load(ls_results *results, const char *name, const char *backend, ls_stored_experiment **experiment,
                          ls_error *error);
void ls_stored_experiment_free(ls_stored_experiment *experiment); /* NULL is allowed */

/* One line of `results list`. Strings are valid during the call. */
typedef struct ls_results_summary {
    const char *name;
    const char *title;
    const char *added; /* date, UTC */
    uint64_t seed;
    bool quick;
    uint64_t points;
    uint64_t runs_ok;
    uint64_t runs_failed;
} ls_results_summary;
typedef ls_result (*ls_results_visit_summary)(void *context, const ls_results_summary *summary);
ls_result ls_results_each_experiment(ls_results *results, ls_results_visit_summary visit, void *context,
                                     ls_error *error);

/* SHA-256 of the content: experiments, points, runs, metrics; independent of insertion order, row ids, wall time, paths
 * and dates. Of a backend only the part before ':' counts. Equal hashes: the same experiment gave the same bytes. */
ls_result ls_results_hash(ls_results *results, char hex[LS_DIGEST_HEX_BYTES], ls_error *error);

/* Adds everything that the file at path holds and results does not: joins the shards of one experiment. All of the file or
 * nothing of it; merging it again changes nothing. Where a run failed or crashed in one and went well in the other, the
 * good one stays. LS_ERROR_VIOLATED, with the first of them named, when both hold what must be the same and is not: a good run
 * (point, seed, replication, version, backend) with other values, the same experiment with other points or another rule,
 * or a point's hash with another scenario. Runs are told apart by version: a run of another program contradicts nothing. */
ls_result ls_results_merge(ls_results *results, const char *path, ls_error *error);

/* Called with one name; valid during the call. */
typedef ls_result (*ls_results_visit_name)(void *context, const char *name);

/* The names of the experiments, each once, ascending. */
ls_result ls_results_each_name(ls_results *results, ls_results_visit_name visit, void *context, ls_error *error);

/* The swept keys of the experiment of that name (NULL: of all experiments, each key once), in the order in which specs
 * have them. Of a name that was run with several specs the last added counts, here and in the two functions below. */
ls_result ls_results_each_swept_key(ls_results *results, const char *experiment, ls_results_visit_name visit,
                                    void *context, ls_error *error);

/* The metrics that any ok run of the experiment (NULL: of any) has, each once, ascending. */
ls_result ls_results_each_metric_name(ls_results *results, const char *experiment, ls_results_visit_name visit,
                                      void *context, ls_error *error);

/* One value of one run. Strings are valid during the call. */
typedef struct ls_observation {
    const char *experiment;
    const char *swept;  /* JSON array of the swept keys */
    const char *labels; /* JSON array of the point's labels, in the same order */
    const char *point;  /* SHA-256 of the resolved scenario */
    const char *version;
    const char *backend;
    const char *metric;
    uint64_t position; /* of the point in the experiment, from 0 */
    uint64_t seed;
    uint64_t replication;
    double value;
    bool quick;
} ls_observation;
typedef ls_result (*ls_results_visit_observation)(void *context, const ls_observation *observation);

/* Which observations: NULL stands for all. metrics is "a" or "a,b". */
typedef struct ls_observation_filter {
    const char *experiment;
    const char *metrics;
    const char *backend;
} ls_observation_filter;

/* Calls visit for every value of every ok run, of every program version and backend, by experiment, position, version,
 * backend, replication and metric. Rows are read as they are visited. A visit that returns other than LS_OK ends the walk
 * with that result. */
ls_result ls_results_each_observation(ls_results *results, const ls_observation_filter *filter,
                                      ls_results_visit_observation visit, void *context, ls_error *error);

/* What a deletion takes, or would take. */
typedef struct ls_results_removal {
    uint64_t experiments;
    uint64_t points; /* that no other experiment has */
    uint64_t runs;   /* that no other experiment counts as its own (same point, same seed) */
    uint64_t metrics;
} ls_results_removal;

/* Deletes, in one transaction, the experiment of that name, whatever its specs and seeds, with the runs and points that are
 * its alone. With a backend (not NULL) only the runs of that backend go; the experiment stays. With dry set nothing is
 * deleted, and removal says what would be. LS_ERROR_INVALID when there is no such experiment, or no run of it has the
 * backend. results must be open for writing, also for a dry deletion. */
ls_result ls_results_delete(ls_results *results, const char *experiment, const char *backend, bool dry,
                            ls_results_removal *removal, ls_error *error);

#endif
