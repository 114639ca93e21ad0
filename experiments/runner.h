/* runner.h - runs an experiment: all points and replications on worker processes, into a results database.
 *
 * What ends up in the database depends on the spec, the seed and the program alone, not on the number of workers, on
 * who finishes first, or on how often the run was interrupted and taken up again: a run that is stored with the same
 * resolved scenario, seed, replication, program version and backend is not run again, and replications beyond what
 * the stopping rule asks are dropped.
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

#endif
