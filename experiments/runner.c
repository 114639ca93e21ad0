/* runner.c - see runner.h. Results wait in a list until the schedule says whether they are wanted; wanted ones go to
 * the database in one transaction a second. SIGINT and SIGTERM are blocked and read from a signalfd, so there is no
 * handler and no global flag. */
#include "experiments/runner.h"

#include "experiments/schedule.h"
#include "experiments/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define STORE_INTERVAL_S 1.0
#define STORE_AT_MOST    256u /* results held back before they are stored early */
#define POLL_MS          200

typedef struct runner {
    const ls_runner_config *config;
    ls_runner_report *report;
    ls_error *error;
    ls_schedule *schedule;
    int64_t *point_ids;
    uint32_t rule_metric; /* index of the stopping rule's metric; UINT32_MAX if none */
    ls_job_result *held;
    uint32_t held_count;
    uint32_t held_capacity;
    double started_s;
    double stored_s;
    double shown_s;
    uint32_t loading_point; /* while stored runs are read */
} runner;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static ls_result out_of_memory(const runner *r)
{
    return ls_fail(r->error, LS_ERROR_MEMORY, "out of memory; what was finished is stored");
}

static double rule_value(const runner *r, const double *values)
{
    return r->rule_metric != UINT32_MAX ? values[r->rule_metric] : NAN;
}

/* ---- storing ---- */

static bool is_wanted(const runner *r, const ls_job *job)
{
    return job->replication < ls_schedule_required(r->schedule, job->point);
}

static bool is_void(const runner *r, const ls_job *job)
{
    return !is_wanted(r, job) && ls_schedule_settled(r->schedule, job->point);
}

/* Counted when stored, not when it comes: a dropped guess is no run, and its failure is no failure. */
static void count_and_note(runner *r, const ls_job_result *done)
{
    if (done->status == LS_RUN_OK) {
        r->report->ran++;
        return;
    }
    r->report->failed++;
    if (r->config->note == NULL) return;
    const ls_spec *spec = r->config->spec;
    ls_text line = {0};
    ls_text_format(&line, "point %u", done->job.point);
    for (uint32_t k = 0; k < spec->swept_key_count; k++) {
        ls_text_format(&line, "%s%s=%s", k == 0 ? " (" : ", ", spec->swept_keys[k],
                       spec->points[done->job.point].labels[k]);
    }
    ls_text_format(&line, "%s, replication %" PRIu64 ": %s: %s", spec->swept_key_count > 0 ? ")" : "",
                   done->job.replication, ls_run_status_name(done->status), done->error.text);
    if (!line.failed) r->config->note(r->config->note_context, line.bytes);
    ls_text_free(&line);
}

/* Moves wanted results to the front, drops void ones, keeps the undecided; returns how many are wanted. */
static uint32_t sort_held(runner *r)
{
    uint32_t wanted = 0, kept = 0;
    for (uint32_t i = 0; i < r->held_count; i++) {
        if (is_void(r, &r->held[i].job)) continue;
        ls_job_result moved = r->held[i];
        if (kept < i) r->held[kept] = moved;
        if (is_wanted(r, &moved.job)) {
            r->held[kept] = r->held[wanted];
            r->held[wanted++] = moved;
        }
        kept++;
    }
    r->held_count = kept;
    return wanted;
}

static ls_result store(runner *r)
{
    r->stored_s = now_s();
    uint32_t wanted = sort_held(r);
    if (wanted == 0) return LS_OK;
    ls_run_record *records = ls_allocate_array(wanted, sizeof *records);
    if (records == NULL) return out_of_memory(r);
    for (uint32_t i = 0; i < wanted; i++) {
        const ls_job_result *done = &r->held[i];
        records[i] = (ls_run_record){.point = r->point_ids[done->job.point],
                                     .seed = r->config->spec->seed,
                                     .replication = done->job.replication,
                                     .status = done->status,
                                     .message = done->error.text,
                                     .result = &done->result};
    }
    ls_result result = ls_results_add_runs(r->config->results, &r->config->origin, r->config->metrics,
                                           r->config->metric_count, records, wanted, r->error);
    ls_free(records);
    if (result != LS_OK) return result;
    for (uint32_t i = 0; i < wanted; i++) count_and_note(r, &r->held[i]);
    memmove(r->held, r->held + wanted, (r->held_count - wanted) * sizeof *r->held);
    r->held_count -= wanted;
    return LS_OK;
}

static ls_result take(void *context, const ls_job_result *done)
{
    runner *r = context;
    if (r->held_count == r->held_capacity) {
        uint32_t capacity = r->held_capacity > 0 ? 2 * r->held_capacity : 16;
        ls_job_result *held = ls_reallocate(r->held, capacity * sizeof *held);
        if (held == NULL) return out_of_memory(r);
        r->held = held;
        r->held_capacity = capacity;
    }
    r->held[r->held_count++] = *done;
    bool ok = done->status == LS_RUN_OK;
    ls_result result = ls_schedule_take(r->schedule, done->job.point, done->job.replication, ok,
                                        ok ? rule_value(r, done->result.values) : NAN);
    return result == LS_OK ? LS_OK : out_of_memory(r);
}

/* ---- taking up what is stored ---- */

static ls_result take_stored(void *context, uint64_t replication, const double *values)
{
    runner *r = context;
    if (replication >= r->config->spec->replications.maximum) return LS_OK;
    return ls_schedule_take(r->schedule, r->loading_point, replication, true, rule_value(r, values));
}

static ls_result take_up(runner *r)
{
    const ls_runner_config *config = r->config;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < config->spec->point_count && result == LS_OK; i++) {
        if (i % config->shard_count != config->shard_index) {
            ls_schedule_skip(r->schedule, i);
            continue;
        }
        r->loading_point = i;
        result = ls_results_each_run(config->results, r->point_ids[i], config->spec->seed, &config->origin,
                                     config->metrics, config->metric_count, take_stored, r, r->error);
    }
    ls_schedule_progress(r->schedule, &r->report->required, &r->report->reused);
    return result;
}

/* ---- progress ---- */

static void show_progress(runner *r, bool last)
{
    double now = now_s();
    if (!r->config->progress || (!last && now - r->shown_s < 0.2)) return;
    r->shown_s = now;
    if (last) {
        fputs("\r\033[K", stderr);
        return;
    }
    uint64_t required, done;
    ls_schedule_progress(r->schedule, &required, &done);
    double rate = (double)(done - r->report->reused) / fmax(now - r->started_s, 1e-9);
    fprintf(stderr, "\r\033[K%" PRIu64 "/%" PRIu64 " runs", done, required);
    if (rate > 0.0) {
        uint64_t left_s = (uint64_t)((double)(required - done) / rate);
        fprintf(stderr, ", %.*f/s, %" PRIu64 ":%02" PRIu64 " left", rate < 10.0 ? 1 : 0, rate, left_s / 60, left_s % 60);
    }
    fflush(stderr);
}

/* ---- the loop ---- */

static ls_result submit_all(runner *r, ls_pool *pool)
{
    ls_job job = {0};
    while (ls_pool_idle(pool) > 0 && ls_schedule_next(r->schedule, &job.point, &job.replication)) {
        ls_result result = ls_pool_submit(pool, &job, r->error);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

/* Whether anything that runs can still be wanted; guesses for settled points need not be waited for. */
static bool all_settled(const runner *r)
{
    uint64_t required, done;
    ls_schedule_progress(r->schedule, &required, &done);
    return required == done;
}

static ls_result loop(runner *r, ls_pool *pool, int signals)
{
    bool woken = false;
    while (!all_settled(r)) {
        ls_result result = submit_all(r, pool);
        if (result == LS_OK && ls_pool_busy(pool) == 0) result = out_of_memory(r);
        if (result == LS_OK) result = ls_pool_wait(pool, POLL_MS, signals, &woken, take, r, r->error);
        if (result != LS_OK) return result;
        r->report->interrupted = woken;
        if (woken) return LS_OK;
        show_progress(r, false);
        bool due = now_s() - r->stored_s >= STORE_INTERVAL_S || r->held_count >= STORE_AT_MOST;
        if (due) result = store(r);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result run_all(runner *r)
{
    sigset_t mask, old_mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_BLOCK, &mask, &old_mask);
    ls_pool *pool = NULL;
    ls_result result = LS_OK;
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) {
        result = ls_fail(r->error, LS_ERROR_IO, "cannot watch for signals: %s", strerror(errno));
        goto done;
    }
    pool = ls_pool_new(r->config->spec, r->config->run, r->config->run_context, r->config->jobs, r->error);
    result = pool != NULL ? loop(r, pool, signals) : LS_ERROR_MEMORY;
    /* The signal that interrupted must not strike once it is unblocked again. */
    struct signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0) r->report->interrupted = true;
done:
    ls_pool_free(pool);
    if (signals >= 0) close(signals);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    show_progress(r, true);
    return result;
}

static uint32_t find_metric(const ls_runner_config *config)
{
    const char *wanted = config->spec->replications.metric;
    for (uint32_t i = 0; wanted != NULL && i < config->metric_count; i++) {
        if (strcmp(config->metrics[i].name, wanted) == 0) return i;
    }
    return UINT32_MAX;
}

ls_result ls_runner_run(const ls_runner_config *config, ls_runner_report *report, ls_error *error)
{
    *report = (ls_runner_report){0};
    runner r = {.config = config, .report = report, .error = error, .rule_metric = find_metric(config)};
    r.started_s = r.stored_s = now_s();
    r.schedule = ls_schedule_new(&config->spec->replications, config->spec->point_count);
    r.point_ids = ls_allocate_array(config->spec->point_count, sizeof *r.point_ids);
    ls_result result = r.schedule != NULL && r.point_ids != NULL ? LS_OK : out_of_memory(&r);
    if (result == LS_OK) result = ls_results_add_experiment(config->results, config->spec, r.point_ids, error);
    if (result == LS_OK) result = take_up(&r);
    if (result == LS_OK && !all_settled(&r)) result = run_all(&r);
    if (r.schedule != NULL) {
        /* Also after an error: what was finished is worth keeping. The first error is the one to tell. */
        ls_error second = {""};
        r.error = result == LS_OK ? error : &second;
        ls_result stored = r.held_count > 0 ? store(&r) : LS_OK;
        if (result == LS_OK) result = stored;
        uint64_t done;
        ls_schedule_progress(r.schedule, &report->required, &done);
        report->reused = ls_schedule_known(r.schedule) - report->ran - report->failed;
    }
    report->wall_s = now_s() - r.started_s;
    ls_schedule_free(r.schedule);
    ls_free(r.point_ids);
    ls_free(r.held);
    return result;
}

/* ---- what is missing ---- */

static ls_result visit_gaps(const runner *r, uint32_t point, ls_runner_visit_gap visit, void *context)
{
    ls_result result = LS_OK;
    uint64_t required = ls_schedule_required(r->schedule, point);
    for (uint64_t from = 0; from < required && result == LS_OK; from++) {
        if (ls_schedule_has(r->schedule, point, from)) continue;
        ls_runner_gap gap = {.point = point, .first = from, .last = from};
        while (gap.last + 1 < required && !ls_schedule_has(r->schedule, point, gap.last + 1)) gap.last++;
        result = visit(context, &gap);
        from = gap.last;
    }
    return result;
}

ls_result ls_runner_missing(const ls_runner_config *config, ls_runner_visit_gap visit, void *context,
                            ls_runner_report *report, ls_error *error)
{
    *report = (ls_runner_report){0};
    runner r = {.config = config, .report = report, .error = error, .rule_metric = find_metric(config)};
    r.started_s = now_s();
    r.schedule = ls_schedule_new(&config->spec->replications, config->spec->point_count);
    r.point_ids = ls_allocate_array(config->spec->point_count, sizeof *r.point_ids);
    ls_result result = r.schedule != NULL && r.point_ids != NULL ? LS_OK : out_of_memory(&r);
    if (result == LS_OK) result = ls_results_find_points(config->results, config->spec, r.point_ids, error);
    if (result == LS_OK) result = take_up(&r);
    for (uint32_t i = 0; i < config->spec->point_count && result == LS_OK; i++) {
        result = visit_gaps(&r, i, visit, context);
    }
    if (result == LS_OK) report->reused = ls_schedule_known(r.schedule);
    report->wall_s = now_s() - r.started_s;
    ls_schedule_free(r.schedule);
    ls_free(r.point_ids);
    return result;
}
