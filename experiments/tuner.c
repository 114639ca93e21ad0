/* tuner.c - see tuner.h. */
#include "experiments/tuner.h"

#include "sim/metrics.h"

#include <gsl/gsl_qrng.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PUBLISHED 0.95
#define HALVINGS 2u
#define REFINED_AT_ONCE 4u
#define LAST_REPLICATIONS (1u << HALVINGS)

typedef struct axis {
    uint32_t parameter;
    double low, high;
    bool logarithmic;
} axis;

typedef struct tuner {
    const ls_tuner_config *config;
    const ls_policy *policy;
    axis axes[LS_POLICY_PARAMETERS_MAX];
    uint32_t axis_count;
    ls_candidate *candidates;
    ls_run_result *results; /* LAST_REPLICATIONS a candidate */
    bool *failed;           /* likewise */
    uint32_t count, capacity;
    uint64_t runs;
    ls_error *error;
} tuner;

/* --- the box ------------------------------------------------------------------------------------------------------------ */

bool ls_tuner_searches(const ls_policy_parameter *parameter)
{
    static const char *const left_alone[] = {"initial_", "resubmit", "retries", "attempts", "most_"};
    for (size_t i = 0; i < sizeof left_alone / sizeof left_alone[0]; i++) {
        if (strncmp(parameter->name, left_alone[i], strlen(left_alone[i])) == 0) return false;
    }
    return parameter->default_value != 0;
}

static void add_axis(tuner *t, uint32_t index, double low, double high)
{
    const ls_policy_parameter *parameter = &t->policy->parameters[index];
    low = fmax(low, parameter->minimum);
    high = fmin(high, parameter->maximum);
    bool logarithmic = low > 0 && high > 10 * low;
    t->axes[t->axis_count++] = (axis){.parameter = index, .low = low, .high = high, .logarithmic = logarithmic};
}

static ls_result add_given_axis(tuner *t, const ls_tuned_range *range)
{
    ls_policy_instance instance = {.policy = t->policy};
    ls_result result = ls_policy_set(&instance, range->parameter, range->low, t->error);
    if (result == LS_OK) result = ls_policy_set(&instance, range->parameter, range->high, t->error);
    if (result != LS_OK) return result;
    if (range->low >= range->high) {
        return ls_fail(t->error, LS_ERROR_INVALID, "%s: the range %g to %g is empty", range->parameter, range->low, range->high);
    }
    for (uint32_t i = 0; i < t->policy->parameter_count; i++) {
        if (strcmp(t->policy->parameters[i].name, range->parameter) == 0) add_axis(t, i, range->low, range->high);
    }
    return LS_OK;
}

static ls_result find_axes(tuner *t)
{
    for (uint32_t i = 0; i < t->config->range_count; i++) {
        if (t->axis_count == LS_POLICY_PARAMETERS_MAX) {
            return ls_fail(t->error, LS_ERROR_LIMIT, "more than %u ranges", LS_POLICY_PARAMETERS_MAX);
        }
        ls_result result = add_given_axis(t, &t->config->ranges[i]);
        if (result != LS_OK) return result;
    }
    for (uint32_t i = 0; t->config->range_count == 0 && i < t->policy->parameter_count; i++) {
        const ls_policy_parameter *p = &t->policy->parameters[i];
        if (!ls_tuner_searches(p)) continue;
        bool is_share = p->minimum >= 0 && p->maximum <= 1;
        if (is_share) add_axis(t, i, p->minimum, p->maximum);
        else add_axis(t, i, p->default_value / 100, p->default_value * 100);
    }
    if (t->axis_count > 0) return LS_OK;
    return ls_fail(t->error, LS_ERROR_INVALID, "policy '%s' has no parameter to tune", t->policy->name);
}

/* Three digits are all that a search by simulation can tell apart, and all that a reader wants to see. */
static double rounded(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.3g", value);
    return strtod(text, NULL);
}

static double from_unit(const axis *a, double unit)
{
    unit = fmin(1.0, fmax(0.0, unit));
    double value = a->logarithmic ? a->low * pow(a->high / a->low, unit) : a->low + unit * (a->high - a->low);
    return fmin(a->high, fmax(a->low, rounded(value)));
}

static double to_unit(const axis *a, double value)
{
    double unit = a->logarithmic ? log(fmax(value, a->low) / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
    return fmin(1.0, fmax(0.0, unit));
}

/* --- candidates ---------------------------------------------------------------------------------------------------------- */

/* A candidate that is there already is not added again: its replications are known. */
static void add_candidate(tuner *t, const double *values)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (memcmp(t->candidates[i].values, values, sizeof t->candidates[i].values) == 0) return;
    }
    memcpy(t->candidates[t->count++].values, values, sizeof t->candidates->values);
}

static ls_result start_candidates(tuner *t)
{
    const double *own = t->config->scenario->policy.values;
    add_candidate(t, own);
    gsl_qrng *sobol = gsl_qrng_alloc(gsl_qrng_sobol, t->axis_count);
    if (sobol == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 1; i < t->config->candidates; i++) {
        double unit[LS_POLICY_PARAMETERS_MAX], values[LS_POLICY_PARAMETERS_MAX];
        gsl_qrng_get(sobol, unit);
        memcpy(values, own, sizeof values);
        for (uint32_t k = 0; k < t->axis_count; k++) values[t->axes[k].parameter] = from_unit(&t->axes[k], unit[k]);
        add_candidate(t, values);
    }
    gsl_qrng_free(sobol);
    return LS_OK;
}

static void summarise(tuner *t, uint32_t index)
{
    ls_candidate *c = &t->candidates[index];
    double delay = 0, requests = 0, conflicts = 0, share = 0, least_share = INFINITY;
    bool failed = false;
    for (uint32_t r = 0; r < c->replications; r++) {
        const double *value = t->results[(size_t)index * LAST_REPLICATIONS + r].values;
        failed = failed || t->failed[(size_t)index * LAST_REPLICATIONS + r];
        delay += value[LS_METRIC_DELAY_MEAN];
        requests += value[LS_METRIC_COMMIT_REQUEST_RATE];
        conflicts += value[LS_METRIC_CONFLICT_SHARE];
        share += value[LS_METRIC_PUBLISHED_SHARE];
        least_share = fmin(least_share, value[LS_METRIC_PUBLISHED_SHARE]);
    }
    c->delay_s = delay / c->replications;
    c->requests_per_s = requests / c->replications;
    c->conflict_share = conflicts / c->replications;
    c->published_share = share / c->replications;
    c->feasible = !failed && c->published_share >= LEAST_PUBLISHED && c->delay_s > 0 && c->requests_per_s > 0;
}

static double objective(const tuner *t, const ls_candidate *c, uint32_t weighing)
{
    if (!c->feasible) return INFINITY;
    double q = weighing / (LS_TUNER_WEIGHINGS - 1.0);
    return (1 - q) * log(c->delay_s) + q * log(c->requests_per_s) + t->config->conflict_weight * c->conflict_share;
}

/* --- running ------------------------------------------------------------------------------------------------------------- */

static ls_result take(void *context, const ls_job_result *done)
{
    tuner *t = context;
    size_t at = (size_t)done->job.point * LAST_REPLICATIONS + done->job.replication;
    t->results[at] = done->result;
    t->failed[at] = done->status != LS_RUN_OK;
    return LS_OK;
}

static ls_result submit_all(tuner *t, ls_pool *pool, const bool *wanted, uint32_t replications)
{
    bool woken;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < t->count && result == LS_OK; i++) {
        for (uint32_t r = t->candidates[i].replications; wanted[i] && r < replications && result == LS_OK; r++) {
            while (result == LS_OK && ls_pool_idle(pool) == 0) result = ls_pool_wait(pool, -1, -1, &woken, take, t, t->error);
            if (result == LS_OK) result = ls_pool_submit(pool, &(ls_job){.point = i, .replication = r}, t->error);
            t->runs++;
        }
    }
    while (result == LS_OK && ls_pool_busy(pool) > 0) result = ls_pool_wait(pool, -1, -1, &woken, take, t, t->error);
    return result;
}

/* Brings the wanted candidates to so many replications. */
static ls_result evaluate(tuner *t, const bool *wanted, uint32_t replications)
{
    ls_spec_point *points = ls_allocate_array(t->count, sizeof *points);
    if (points == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < t->count; i++) {
        points[i].scenario = *t->config->scenario;
        memcpy(points[i].scenario.policy.values, t->candidates[i].values, sizeof t->candidates[i].values);
    }
    ls_spec spec = {.seed = t->config->seed, .points = points, .point_count = t->count};
    ls_pool *pool = ls_pool_new(&spec, t->config->run, t->config->run_context, t->config->jobs, t->error);
    ls_result result = pool == NULL ? LS_ERROR_MEMORY : submit_all(t, pool, wanted, replications);
    ls_pool_free(pool);
    ls_free(points);
    for (uint32_t i = 0; i < t->count && result == LS_OK; i++) {
        if (!wanted[i] || t->candidates[i].replications >= replications) continue;
        t->candidates[i].replications = replications;
        summarise(t, i);
    }
    return result;
}

/* The best with at least so many replications that is not yet taken; t->count: none. */
static uint32_t best_of(const tuner *t, uint32_t weighing, uint32_t replications, const bool *taken)
{
    uint32_t best = t->count;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->candidates[i].replications < replications || (taken != NULL && taken[i])) continue;
        if (best == t->count || objective(t, &t->candidates[i], weighing) < objective(t, &t->candidates[best], weighing)) best = i;
    }
    return best;
}

static ls_result halve(tuner *t, uint32_t survivors, uint32_t replications, bool *wanted)
{
    memset(wanted, 0, t->capacity * sizeof *wanted);
    for (uint32_t i = 0; i < survivors; i++) {
        uint32_t best = best_of(t, i % LS_TUNER_WEIGHINGS, replications / 2, wanted);
        if (best < t->count) wanted[best] = true;
    }
    return evaluate(t, wanted, replications);
}

static ls_result refine(tuner *t, uint32_t round, bool *wanted)
{
    uint32_t before = t->count;
    ls_random steps = ls_random_open(t->config->seed, round, LS_RANDOM_SEARCH, 0);
    double width = 0.1 * exp2(-(double)round);
    for (uint32_t q = 0; q < LS_TUNER_WEIGHINGS; q++) {
        const ls_candidate centre = t->candidates[best_of(t, q, LAST_REPLICATIONS, NULL)];
        for (uint32_t k = 0; k < REFINED_AT_ONCE; k++) {
            double values[LS_POLICY_PARAMETERS_MAX];
            memcpy(values, centre.values, sizeof values);
            for (uint32_t a = 0; a < t->axis_count; a++) {
                double *value = &values[t->axes[a].parameter];
                *value = from_unit(&t->axes[a], to_unit(&t->axes[a], *value) + width * ls_random_normal(&steps));
            }
            add_candidate(t, values);
        }
    }
    memset(wanted, 0, t->capacity * sizeof *wanted);
    for (uint32_t i = before; i < t->count; i++) wanted[i] = true;
    return evaluate(t, wanted, LAST_REPLICATIONS);
}

static void mark_front(tuner *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        ls_candidate *c = &t->candidates[i];
        c->front = c->feasible && c->replications == LAST_REPLICATIONS;
        for (uint32_t k = 0; k < t->count && c->front; k++) {
            const ls_candidate *other = &t->candidates[k];
            if (!other->feasible || other->replications < LAST_REPLICATIONS) continue;
            bool no_worse = other->delay_s <= c->delay_s && other->requests_per_s <= c->requests_per_s;
            bool better = other->delay_s < c->delay_s || other->requests_per_s < c->requests_per_s;
            if (no_worse && (better || k < i)) c->front = false;
        }
    }
}

static ls_result search(tuner *t, bool *wanted)
{
    ls_result result = start_candidates(t);
    if (result != LS_OK) return result;
    for (uint32_t i = 0; i < t->count; i++) wanted[i] = true;
    result = evaluate(t, wanted, 1);
    uint32_t survivors = t->count;
    for (uint32_t h = 1; h <= HALVINGS && result == LS_OK; h++) {
        survivors = (survivors + 1) / 2;
        result = halve(t, survivors, 1u << h, wanted);
    }
    for (uint32_t r = 0; r < t->config->rounds && result == LS_OK; r++) result = refine(t, r, wanted);
    return result;
}

ls_result ls_tune(const ls_tuner_config *config, ls_tuning *tuning, ls_error *error)
{
    *tuning = (ls_tuning){0};
    tuner t = {.config = config, .policy = config->scenario->policy.policy, .error = error};
    if (config->candidates < 4 || config->jobs < 1) {
        return ls_fail(error, LS_ERROR_INVALID, "a tuning needs at least 4 candidates and a worker");
    }
    ls_result result = find_axes(&t);
    if (result != LS_OK) return result;
    t.capacity = config->candidates + config->rounds * LS_TUNER_WEIGHINGS * REFINED_AT_ONCE;
    t.candidates = ls_allocate_array(t.capacity, sizeof *t.candidates);
    t.results = ls_allocate_array((size_t)t.capacity * LAST_REPLICATIONS, sizeof *t.results);
    t.failed = ls_allocate_array((size_t)t.capacity * LAST_REPLICATIONS, sizeof *t.failed);
    bool *wanted = ls_allocate_array(t.capacity, sizeof *wanted);
    bool allocated = t.candidates != NULL && t.results != NULL && t.failed != NULL && wanted != NULL;
    result = allocated ? search(&t, wanted) : LS_ERROR_MEMORY;
    if (result == LS_ERROR_MEMORY) ls_fail(error, result, "out of memory for %u candidates", t.capacity);
    if (result == LS_OK) {
        mark_front(&t);
        for (uint32_t q = 0; q < LS_TUNER_WEIGHINGS; q++) tuning->best[q] = best_of(&t, q, LAST_REPLICATIONS, NULL);
        tuning->candidates = t.candidates;
        tuning->count = t.count;
        tuning->runs = t.runs;
    } else {
        ls_free(t.candidates);
    }
    ls_free(t.results);
    ls_free(t.failed);
    ls_free(wanted);
    return result;
}
