/* runner.h - runs an experiment: all points and replications on worker processes, into a results database.
 *
 * What ends up in the database depends on the spec, the seed and the program alone, not on the number of workers, on
 * who finishes first, or on how often the run was interrupted and taken up again: a run that is stored with the same
 * resolved scenario, seed, replication, program version and backend is not run again, and replications beyond what
 * the stopping rule asks are dropped.
 *
 * Shards share out whole points, never the replications of one: how many replications a point gets is decided by the stopping
 * rule, replication by replication, on the values of all before, so one process must have them all. A sweep with fewer points
 * than shards leaves shards without work. Each shard writes a file of its own and takes it up again after whatever ended it;
 * ls_results_merge joins them, and ls_runner_missing says whether that is everything.
 */
#ifndef LS_RUNNER_H
#define LS_RUNNER_H

#include "experiments/pool.h"

typedef struct ls_runner_config {
    const ls_spec *spec;
    const ls_metric *metrics;
    uint32_t metric_count;
    ls_run_function run;
    void *run_context;
    ls_run_origin origin;
    ls_results *results;
    uint32_t jobs;                                 /* worker processes, at least 1 */
    uint32_t shard_index;                          /* this process runs points i with i % shard_count == shard_index */
    uint32_t shard_count;                          /* 1: all */
    bool progress;                                 /* a line on stderr that is rewritten: for a terminal only */
    void (*note)(void *context, const char *line); /* told of each failed or crashed run; may be NULL */
    void *note_context;
} ls_runner_config;

typedef struct ls_runner_report {
    uint64_t required; /* runs that the experiment (this shard) asks for; grows while a stopping rule is undecided */
    uint64_t reused;   /* of them, found in the database */
    uint64_t ran;      /* ok, and stored now */
    uint64_t failed;   /* failed or crashed, and stored as such */
    bool interrupted;  /* by SIGINT or SIGTERM: what was finished is stored, the rest was dropped */
    double wall_s;
} ls_runner_report;

/* Runs to the end or until interrupted; LS_OK in both cases, also when runs failed. Errors are those of the database
 * and of starting workers; what was stored before stays. report is filled as far as things went. */
ls_result ls_runner_run(const ls_runner_config *config, ls_runner_report *report, ls_error *error);

/* Some replications of one point that the experiment still asks for. */
typedef struct ls_runner_gap {
    uint32_t point;
    uint64_t first; /* replication */
    uint64_t last;  /* inclusive */
} ls_runner_gap;
typedef ls_result (*ls_runner_visit_gap)(void *context, const ls_runner_gap *gap);

/* What a run of this configuration would still have to do: visits each gap by ascending point and replication, and fills
 * report->required and report->reused. Failed and crashed runs are gaps: they would be run again. While a stopping rule is
 * undecided it asks for what is certain, so more may follow. Runs nothing, and only reads: results may be open for
 * reading. LS_ERROR_MEMORY, errors of the database, and whatever visit returns other than LS_OK. */
ls_result ls_runner_missing(const ls_runner_config *config, ls_runner_visit_gap visit, void *context,
                            ls_runner_report *report, ls_error *error);

#endif
