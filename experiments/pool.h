/* pool.h - worker processes that each run one replication at a time.
 *
 * Processes, not threads: a run that crashes takes nothing else with it, and no library need be thread-safe. Each
 * worker is a fork that knows all scenarios already, reads a job from its socket, runs it and writes the result back,
 * a fixed-size struct in one message. The parent alone touches the database and the terminal. Workers ignore SIGINT
 * and SIGTERM (the parent decides) and die with the parent.
 */
#ifndef LS_POOL_H
#define LS_POOL_H

#include "experiments/results.h"

/* Runs one replication; the signature of ls_simulate with a context. Called in a worker process. */
typedef ls_result (*ls_run_function)(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                                     ls_run_result *result, ls_error *error);

typedef struct ls_job {
    uint32_t point;
    uint64_t replication;
} ls_job;

typedef struct ls_job_result {
    ls_job job;
    ls_run_status status;
    ls_run_result result; /* ok */
    ls_error error;       /* failed: the reason; crashed: how the worker ended */
} ls_job_result;

typedef struct ls_pool ls_pool;

/* spec and context are borrowed and must not change: workers hold copies from the time of their fork. */
ls_pool *ls_pool_new(const ls_spec *spec, ls_run_function run, void *context, uint32_t workers, ls_error *error);

/* Kills what still runs and frees. NULL is allowed. */
void ls_pool_free(ls_pool *pool);

uint32_t ls_pool_idle(const ls_pool *pool);
uint32_t ls_pool_busy(const ls_pool *pool);

/* Gives a job to an idle worker (there must be one), starting it if need be. LS_ERROR_IO when no worker can be started.
 */
ls_result ls_pool_submit(ls_pool *pool, const ls_job *job, ls_error *error);

/* Waits at most timeout_ms (0: not at all) for results and for wake_fd (-1: none) to become readable; calls take for
 * each result. *woken tells whether wake_fd is readable. A take that returns other than LS_OK ends the call with that
 * result. */
typedef ls_result (*ls_pool_take)(void *context, const ls_job_result *result);
ls_result ls_pool_wait(ls_pool *pool, int timeout_ms, int wake_fd, bool *woken, ls_pool_take take, void *context,
                       ls_error *error);

#endif
