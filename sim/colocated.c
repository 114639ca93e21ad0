/* colocated.c - the recurrence of colocated.h, step by step. */
#include "sim/colocated.h"

#include "sim/histogram.h"
#include "sim/metrics.h"
#include "sim/preprocessing.h"
#include "sim/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STEPS_MAX UINT64_C(20000000)

typedef struct job {
    const ls_scenario *scenario;
    ls_preprocessing preprocessing;
    ls_law_sampler compute;
    ls_random crashes;
    ls_histogram step_time, stall, service;
    double *done;  /* of rank r, batch i: done[r * workers + i % workers] */
    double *taken; /* of rank r, batch i: taken[r * limit + i % limit] */
    uint64_t ranks, workers, limit;
    double stretch, now_s, measure_from_s, end_s, crash_s;
    uint64_t step, furthest_end, saved_step, life_first; /* life_first: the first step since the job started (again) */
    uint64_t simulated, steps, new_steps, replayed, rollbacks, checkpoints;
    double stall_s, step_s;
} job;

uint64_t ls_colocated_limit(const ls_scenario *s, uint64_t batch_bytes)
{
    uint64_t wanted = s->colocated.workers_per_rank * s->colocated.prefetch_batches;
    double memory = s->colocated.memory_bytes_per_node / (double)s->trainer.ranks_per_node;
    if (memory > 0 && batch_bytes > 0 && memory / (double)batch_bytes < (double)wanted) wanted = (uint64_t)(memory / (double)batch_bytes);
    return wanted == 0 ? 1 : wanted;
}

static double crash_rate_per_s(const job *j)
{
    const ls_fault_config *faults = &j->scenario->faults;
    return faults->trainer_crash_rate_per_s + faults->worker_crash_rate_per_s * (double)(j->workers * j->ranks);
}

static void draw_crash(job *j)
{
    double rate_per_s = crash_rate_per_s(j);
    j->crash_s = rate_per_s > 0 ? j->now_s + ls_random_exponential(&j->crashes) / rate_per_s : INFINITY;
}

/* A job that starts at its present step has empty queues: every worker begins at once. */
static void start(job *j)
{
    j->life_first = j->step;
    for (uint64_t i = 0; i < j->ranks * (j->workers > 0 ? j->workers : 1); i++) j->done[i] = j->now_s;
    for (uint64_t i = 0; i < j->ranks * j->limit; i++) j->taken[i] = j->now_s;
}

static ls_result prepare(job *j, const ls_scenario *s, uint64_t seed, uint64_t replication, ls_error *error)
{
    j->scenario = s;
    ls_result result = ls_preprocessing_prepare(s, seed, replication, &j->preprocessing, error);
    if (result != LS_OK) return result;
    ls_error reason = {""};
    result = ls_law_prepare(&s->trainer.compute, &j->compute, &reason);
    if (result != LS_OK) return ls_fail(error, result, "trainer.compute: %s", reason.text);
    double cores = s->colocated.cores_per_rank - s->colocated.trainer_cores_per_rank;
    if (cores <= 0) {
        return ls_fail(error, LS_ERROR_INVALID, "colocated.cores_per_rank (%g) must be above trainer_cores_per_rank (%g): no core is left to "
                       "the loader", s->colocated.cores_per_rank, s->colocated.trainer_cores_per_rank);
    }
    j->ranks = s->batches.data_parallel * s->batches.context_parallel;
    j->workers = s->colocated.workers_per_rank;
    double busy = j->workers > 0 ? (double)j->workers : 1;
    j->stretch = busy > cores ? busy / cores : 1;
    j->limit = ls_colocated_limit(s, j->preprocessing.samples_per_rank * j->preprocessing.sample_bytes);
    j->crashes = ls_random_open(seed, replication, LS_RANDOM_COLOCATED, 0);
    j->measure_from_s = s->warm_up_s > 0 ? s->warm_up_s : 0;
    j->end_s = j->measure_from_s + s->duration_s;
    j->done = ls_allocate_array(j->ranks * (j->workers > 0 ? j->workers : 1), sizeof *j->done);
    j->taken = ls_allocate_array(j->ranks * j->limit, sizeof *j->taken);
    return j->done == NULL || j->taken == NULL ? ls_fail(error, LS_ERROR_MEMORY, "out of memory for the loaders' queues") : LS_OK;
}

static double service_s(const job *j, uint64_t rank, uint64_t step)
{
    const ls_scenario *s = j->scenario;
    double cost_s = ls_preprocessing_slice_s(&j->preprocessing, rank / s->batches.context_parallel, step, NULL);
    return j->stretch * cost_s + (double)j->preprocessing.samples_per_rank * s->colocated.read_s;
}

/* When a rank has the batch of the step under way, and how long its worker took over it. */
static double take(job *j, uint64_t rank, double *took_s)
{
    uint64_t i = j->step - j->life_first;
    *took_s = service_s(j, rank, j->step);
    if (j->workers == 0) return j->now_s + *took_s;
    double *done = &j->done[rank * j->workers + i % j->workers], *taken = &j->taken[rank * j->limit + i % j->limit];
    double begin_s = *done > *taken ? *done : *taken;
    *done = begin_s + *took_s;
    *taken = *done > j->now_s ? *done : j->now_s;
    return *taken;
}

static ls_result record(ls_histogram *histogram, double value_s)
{
    return ls_histogram_record(histogram, ls_nanoseconds(value_s));
}

static ls_result count_step(job *j, double end_s, double stall_s)
{
    bool is_new = j->step >= j->furthest_end;
    if (is_new) j->furthest_end = j->step + 1;
    if (j->now_s < j->measure_from_s || end_s > j->end_s) return LS_OK;
    j->steps++;
    if (is_new) j->new_steps++;
    else j->replayed++;
    j->stall_s += stall_s;
    j->step_s += end_s - j->now_s;
    ls_result result = record(&j->step_time, end_s - j->now_s);
    return result == LS_OK ? record(&j->stall, stall_s) : result;
}

static void crash(job *j)
{
    if (j->crash_s >= j->measure_from_s && j->crash_s <= j->end_s) j->rollbacks++;
    j->now_s = j->crash_s + j->scenario->trainer.restart_s;
    j->step = j->saved_step;
    start(j);
    draw_crash(j);
}

static ls_result do_step(job *j)
{
    const ls_scenario *s = j->scenario;
    double last_data_s = j->now_s, end_s = j->now_s;
    for (uint64_t r = 0; r < j->ranks; r++) {
        double took_s, data_s = take(j, r, &took_s);
        double computed_s = data_s + ls_trainer_compute_s(&j->compute, j->preprocessing.seed, j->preprocessing.replication, (uint32_t)r, j->step);
        if (data_s > last_data_s) last_data_s = data_s;
        if (computed_s > end_s) end_s = computed_s;
        bool measured = j->now_s >= j->measure_from_s;
        if (measured && record(&j->service, took_s) != LS_OK) return LS_ERROR_MEMORY;
    }
    end_s += s->trainer.sync_s;
    uint64_t every = s->trainer.checkpoint_steps;
    bool saves = every > 0 && (j->step + 1) % every == 0;
    double next_s = end_s + (saves ? s->trainer.checkpoint_s : 0);
    if (next_s > j->crash_s) {
        if (end_s <= j->crash_s && count_step(j, end_s, last_data_s - j->now_s) != LS_OK) return LS_ERROR_MEMORY;
        crash(j);
        return LS_OK;
    }
    ls_result result = count_step(j, end_s, last_data_s - j->now_s);
    j->now_s = next_s;
    j->step++;
    if (saves) {
        j->saved_step = j->step;
        if (next_s >= j->measure_from_s && next_s <= j->end_s) j->checkpoints++;
    }
    return result;
}

static ls_result run(job *j, ls_error *error)
{
    start(j);
    draw_crash(j);
    while (j->now_s < j->end_s) {
        if (++j->simulated > STEPS_MAX) {
            return ls_fail(error, LS_ERROR_LIMIT, "colocated: more than %" PRIu64 " steps; give trainer.compute a duration, or a shorter duration_s",
                           STEPS_MAX);
        }
        ls_result result = do_step(j);
        if (result != LS_OK) return ls_fail(error, result, "colocated: %s", ls_result_name(result));
    }
    return LS_OK;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double quantile_s(const ls_histogram *histogram, double q)
{
    return ls_histogram_count(histogram) == 0 ? NAN : ls_seconds(ls_histogram_quantile(histogram, q));
}

static void report(const job *j, ls_run_result *result)
{
    double *v = result->values;
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) v[i] = NAN;
    double measured_s = j->end_s - j->measure_from_s, steps = (double)j->steps;
    v[LS_METRIC_MEASURED] = measured_s;
    v[LS_METRIC_TRAINER_STEP_RATE] = ratio(steps, measured_s);
    v[LS_METRIC_TRAINER_NEW_STEP_RATE] = ratio((double)j->new_steps, measured_s);
    v[LS_METRIC_TRAINER_STEP_MEAN] = ratio(j->step_s, steps);
    v[LS_METRIC_TRAINER_STEP_P50] = quantile_s(&j->step_time, 0.5);
    v[LS_METRIC_TRAINER_STEP_P99] = quantile_s(&j->step_time, 0.99);
    v[LS_METRIC_TRAINER_STALL_MEAN] = ratio(j->stall_s, steps);
    v[LS_METRIC_TRAINER_STALL_P99] = quantile_s(&j->stall, 0.99);
    v[LS_METRIC_TRAINER_STALL_SHARE] = ratio(j->stall_s, j->step_s);
    v[LS_METRIC_FETCH_MEAN] = ls_histogram_count(&j->service) == 0 ? NAN : ls_histogram_mean(&j->service) * 1e-9;
    v[LS_METRIC_FETCH_P50] = quantile_s(&j->service, 0.5);
    v[LS_METRIC_FETCH_P99] = quantile_s(&j->service, 0.99);
    v[LS_METRIC_REPLAYED_STEPS] = (double)j->replayed;
    v[LS_METRIC_ROLLBACKS] = (double)j->rollbacks;
    v[LS_METRIC_CHECKPOINTS] = (double)j->checkpoints;
    result->events = j->simulated;
}

ls_result ls_simulate_colocated(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                                ls_error *error)
{
    job j = {0};
    ls_histogram_init(&j.step_time);
    ls_histogram_init(&j.stall);
    ls_histogram_init(&j.service);
    ls_result outcome = prepare(&j, scenario, seed, replication, error);
    if (outcome == LS_OK) outcome = run(&j, error);
    if (outcome == LS_OK) report(&j, result);
    ls_free(j.done);
    ls_free(j.taken);
    ls_law_release(&j.compute);
    ls_preprocessing_release(&j.preprocessing);
    ls_histogram_clear(&j.step_time);
    ls_histogram_clear(&j.stall);
    ls_histogram_clear(&j.service);
    return outcome;
}
