/* results_diff.c - the comparison of results_diff.h: matching first, then one test a point and metric, then the
 * adjustment over all tests, and only then verdicts. */
#include "experiments/results_diff.h"

#include "experiments/name_list.h"
#include "experiments/tidy.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NOT_THERE UINT32_MAX

typedef struct diffing {
    const ls_diff_options *options;
    ls_diff *diff;
    ls_name_list wanted; /* metrics; empty: all */
    ls_name_list seen;   /* metrics that either side has */
} diffing;

const char *ls_diff_verdict_name(ls_diff_verdict verdict)
{
    switch (verdict) {
    case LS_DIFF_SAME: return "same";
    case LS_DIFF_CHANGED: return "changed";
    case LS_DIFF_UNDECIDED: return "undecided";
    case LS_DIFF_MISSING: return "missing";
    case LS_DIFF_ADDED: return "added";
    case LS_DIFF_FAILING: return "failing";
    }
    return "unknown";
}

bool ls_diff_is_change(ls_diff_verdict verdict)
{
    return verdict == LS_DIFF_CHANGED || verdict == LS_DIFF_MISSING || verdict == LS_DIFF_FAILING;
}

/* "policy = dac, producers.count = 2" */
static char *point_text(const ls_stored_experiment *e, const ls_stored_point *point)
{
    ls_text text = {0};
    if (point == NULL) return ls_duplicate("");
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        ls_text_format(&text, "%s%s = %s", k > 0 ? ", " : "", e->swept_keys[k], point->labels[k]);
    }
    if (e->swept_key_count == 0) ls_text_add(&text, "the only point");
    return ls_text_take(&text);
}

/* A row with its three names; NULL when out of memory. */
static ls_diff_row *new_row(ls_diff *diff, ls_diff_verdict verdict, const char *experiment, char *point, const char *metric)
{
    if (diff->row_count == diff->row_capacity) {
        uint32_t capacity = diff->row_capacity > 0 ? 2 * diff->row_capacity : 64;
        ls_diff_row *rows = ls_reallocate(diff->rows, capacity * sizeof *rows);
        if (rows == NULL) {
            ls_free(point);
            return NULL;
        }
        diff->rows = rows;
        diff->row_capacity = capacity;
    }
    ls_diff_row *row = &diff->rows[diff->row_count++];
    *row = (ls_diff_row){.verdict = verdict,
                         .experiment = ls_duplicate(experiment),
                         .point = point,
                         .metric = ls_duplicate(metric),
                         .before = {0, NAN, NAN, NAN},
                         .after = {0, NAN, NAN, NAN},
                         .difference = {{0, NAN, NAN, NAN}, NAN},
                         .adjusted_p = NAN};
    return row->experiment != NULL && row->point != NULL && row->metric != NULL ? row : NULL;
}

static bool same_labels(const ls_stored_experiment *a, const ls_stored_point *p, const ls_stored_experiment *b,
                        const ls_stored_point *q)
{
    if (a->swept_key_count != b->swept_key_count) return false;
    for (uint32_t k = 0; k < a->swept_key_count; k++) {
        if (strcmp(a->swept_keys[k], b->swept_keys[k]) != 0 || strcmp(p->labels[k], q->labels[k]) != 0) return false;
    }
    return true;
}

/* partner[i]: the point of b that is point i of a, or NOT_THERE; taken: points of b that are somebody's partner. Hashes
 * first, so that a point never takes by its labels what is another's by its hash. */
static void match_points(const ls_stored_experiment *a, const ls_stored_experiment *b, uint32_t *partner, bool *taken,
                         ls_diff *diff)
{
    for (uint32_t i = 0; i < a->point_count; i++) {
        partner[i] = NOT_THERE;
        for (uint32_t k = 0; k < b->point_count && partner[i] == NOT_THERE; k++) {
            if (!taken[k] && strcmp(a->points[i].hash, b->points[k].hash) == 0) partner[i] = k;
        }
        if (partner[i] != NOT_THERE) taken[partner[i]] = true;
    }
    for (uint32_t i = 0; i < a->point_count; i++) {
        for (uint32_t k = 0; k < b->point_count && partner[i] == NOT_THERE; k++) {
            if (taken[k] || !same_labels(a, &a->points[i], b, &b->points[k])) continue;
            partner[i] = k;
            taken[k] = true;
            diff->relabelled++;
        }
    }
}

static uint32_t metric_index(const ls_stored_experiment *e, const char *name)
{
    for (uint32_t i = 0; i < e->metric_count; i++) {
        if (strcmp(e->metric_names[i], name) == 0) return i;
    }
    return NOT_THERE;
}

static ls_result estimate(const ls_stored_experiment *e, const ls_stored_point *point, const char *metric,
                          ls_estimate *estimate_)
{
    uint32_t index = metric_index(e, metric);
    *estimate_ = (ls_estimate){0, NAN, NAN, NAN};
    return index != NOT_THERE ? ls_point_estimate(point, index, 0.95, estimate_) : LS_OK;
}

static ls_result compare_metric(diffing *d, const ls_stored_experiment *a, const ls_stored_point *p,
                                const ls_stored_experiment *b, const ls_stored_point *q, const char *metric)
{
    ls_estimate before, after;
    ls_result result = estimate(a, p, metric, &before);
    if (result == LS_OK) result = estimate(b, q, metric, &after);
    if (result != LS_OK || (before.count == 0 && after.count == 0)) return result;
    ls_diff_verdict verdict = before.count == 0 ? LS_DIFF_ADDED : after.count == 0 ? LS_DIFF_MISSING : LS_DIFF_SAME;
    ls_diff_row *row = new_row(d->diff, verdict, a->name, point_text(a, p), metric);
    if (row == NULL) return LS_ERROR_MEMORY;
    row->before = before;
    row->after = after;
    if (verdict == LS_DIFF_SAME) row->difference = ls_welch_difference(&after, &before, 1.0 - d->options->level);
    row->adjusted_p = row->difference.p_value;
    return LS_OK;
}

/* The metrics of one side; skip_other: only those that the other side does not know. */
static ls_result compare_metrics_of(diffing *d, const ls_stored_experiment *a, const ls_stored_point *p,
                                    const ls_stored_experiment *b, const ls_stored_point *q, bool second)
{
    const ls_stored_experiment *from = second ? b : a;
    ls_result result = LS_OK;
    for (uint32_t m = 0; m < from->metric_count && result == LS_OK; m++) {
        const char *metric = from->metric_names[m];
        if (d->wanted.count > 0 && !ls_name_list_has(&d->wanted, metric)) continue;
        if (second && metric_index(a, metric) != NOT_THERE) continue;
        result = compare_metric(d, a, p, b, q, metric);
    }
    return result;
}

static ls_result add_row_for(diffing *d, ls_diff_verdict verdict, const ls_stored_experiment *e, const ls_stored_point *point)
{
    return new_row(d->diff, verdict, e->name, point_text(e, point), "") != NULL ? LS_OK : LS_ERROR_MEMORY;
}

/* A point that never ran on a side is not there. */
static bool ran(const ls_stored_point *point)
{
    return point->run_count + point->failed_count > 0;
}

static ls_result compare_point(diffing *d, const ls_stored_experiment *a, const ls_stored_point *p,
                               const ls_stored_experiment *b, const ls_stored_point *q)
{
    if (!ran(p) && !ran(q)) return LS_OK;
    if (!ran(q)) return add_row_for(d, LS_DIFF_MISSING, a, p);
    if (!ran(p)) return add_row_for(d, LS_DIFF_ADDED, b, q);
    d->diff->points++;
    if (q->failed_count > p->failed_count) {
        ls_diff_row *row = new_row(d->diff, LS_DIFF_FAILING, a->name, point_text(a, p), "");
        if (row == NULL) return LS_ERROR_MEMORY;
        row->failed_before = p->failed_count;
        row->failed_after = q->failed_count;
        if (q->run_count == 0) return LS_OK; /* said once, not once a metric */
    }
    ls_result result = compare_metrics_of(d, a, p, b, q, false);
    return result == LS_OK ? compare_metrics_of(d, a, p, b, q, true) : result;
}

static ls_result compare_experiment(diffing *d, const ls_stored_experiment *a, const ls_stored_experiment *b)
{
    uint32_t *partner = ls_allocate_array((size_t)a->point_count + 1, sizeof *partner);
    bool *taken = ls_allocate_array((size_t)b->point_count + 1, sizeof *taken);
    ls_result result = partner != NULL && taken != NULL ? LS_OK : LS_ERROR_MEMORY;
    if (result == LS_OK) match_points(a, b, partner, taken, d->diff);
    for (uint32_t i = 0; i < a->point_count && result == LS_OK; i++) {
        const ls_stored_point *p = &a->points[i];
        if (partner[i] != NOT_THERE) {
            result = compare_point(d, a, p, b, &b->points[partner[i]]);
        } else if (ran(p)) {
            result = add_row_for(d, LS_DIFF_MISSING, a, p);
        }
    }
    for (uint32_t k = 0; k < b->point_count && result == LS_OK; k++) {
        if (!taken[k] && ran(&b->points[k])) result = add_row_for(d, LS_DIFF_ADDED, b, &b->points[k]);
    }
    ls_free(partner);
    ls_free(taken);
    return result;
}

static ls_result note_metrics(diffing *d, const ls_stored_experiment *e)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < e->metric_count && result == LS_OK; i++) {
        if (!ls_name_list_has(&d->seen, e->metric_names[i])) result = ls_name_list_visit(&d->seen, e->metric_names[i]);
    }
    return result;
}

static ls_result diff_named(diffing *d, ls_results *before, ls_results *after, const char *name, ls_error *error)
{
    ls_stored_experiment *a = NULL, *b = NULL;
    ls_result result = ls_results_load(before, name, d->options->backend, &a, error);
    if (result == LS_OK) result = ls_results_load(after, name, d->options->backend, &b, error);
    if (result == LS_OK) result = note_metrics(d, a);
    if (result == LS_OK) result = note_metrics(d, b);
    if (result == LS_OK) result = compare_experiment(d, a, b);
    ls_stored_experiment_free(a);
    ls_stored_experiment_free(b);
    return result;
}

/* Experiments that one side alone has, and the comparison of those that both have. */
static ls_result diff_names(diffing *d, ls_results *before, ls_results *after, const ls_name_list *a, const ls_name_list *b,
                            ls_error *error)
{
    const char *only = d->options->experiment;
    ls_result result = LS_OK;
    if (only != NULL && !ls_name_list_has(a, only) && !ls_name_list_has(b, only)) {
        ls_name_list wanted = {.names = (char *[]){(char *)(uintptr_t)only}, .count = 1};
        return ls_name_list_check(&wanted, a, "experiment", error);
    }
    for (uint32_t i = 0; i < a->count && result == LS_OK; i++) {
        const char *name = a->names[i];
        if (only != NULL && strcmp(only, name) != 0) continue;
        if (ls_name_list_has(b, name)) {
            result = diff_named(d, before, after, name, error);
        } else if (new_row(d->diff, LS_DIFF_MISSING, name, ls_duplicate(""), "") == NULL) {
            result = LS_ERROR_MEMORY;
        }
    }
    for (uint32_t i = 0; i < b->count && result == LS_OK; i++) {
        const char *name = b->names[i];
        if ((only != NULL && strcmp(only, name) != 0) || ls_name_list_has(a, name)) continue;
        if (new_row(d->diff, LS_DIFF_ADDED, name, ls_duplicate(""), "") == NULL) result = LS_ERROR_MEMORY;
    }
    return result;
}

static ls_diff_verdict judge(const ls_diff_row *row, const ls_diff_options *options)
{
    double mean = row->difference.estimate.mean;
    if (isnan(mean) || fabs(mean) <= options->tolerance * fabs(row->before.mean)) return LS_DIFF_SAME;
    if (isnan(row->adjusted_p)) return LS_DIFF_UNDECIDED;
    if (row->adjusted_p <= options->level) return LS_DIFF_CHANGED;
    return row->difference.estimate.half_width == 0.0 ? LS_DIFF_UNDECIDED : LS_DIFF_SAME;
}

static ls_result settle(ls_diff *diff, const ls_diff_options *options)
{
    double *p_values = ls_allocate_array((size_t)diff->row_count + 1, sizeof *p_values);
    if (p_values == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < diff->row_count; i++) {
        p_values[i] = diff->rows[i].adjusted_p;
        if (!isnan(p_values[i])) diff->tests++;
    }
    ls_result result = ls_holm_adjust(p_values, diff->row_count);
    for (uint32_t i = 0; i < diff->row_count && result == LS_OK; i++) {
        ls_diff_row *row = &diff->rows[i];
        row->adjusted_p = p_values[i];
        if (row->verdict == LS_DIFF_SAME) row->verdict = judge(row, options);
        if (ls_diff_is_change(row->verdict)) diff->changes++;
    }
    ls_free(p_values);
    return result;
}

ls_result ls_results_diff(ls_results *before, ls_results *after, const ls_diff_options *options, ls_diff *diff,
                          ls_error *error)
{
    *diff = (ls_diff){0};
    diffing d = {.options = options, .diff = diff};
    ls_name_list a = {0}, b = {0};
    ls_result result = ls_name_list_split(&d.wanted, options->metrics);
    if (result == LS_OK) result = ls_results_each_name(before, ls_name_list_visit, &a, error);
    if (result == LS_OK) result = ls_results_each_name(after, ls_name_list_visit, &b, error);
    if (result == LS_OK) result = diff_names(&d, before, after, &a, &b, error);
    if (result == LS_OK) result = ls_name_list_check(&d.wanted, &d.seen, "metric", error);
    if (result == LS_OK) result = settle(diff, options);
    ls_name_list_free(&a);
    ls_name_list_free(&b);
    ls_name_list_free(&d.wanted);
    ls_name_list_free(&d.seen);
    return result == LS_ERROR_MEMORY ? ls_fail(error, result, "out of memory") : result;
}

void ls_diff_free(ls_diff *diff)
{
    for (uint32_t i = 0; i < diff->row_count; i++) {
        ls_free(diff->rows[i].experiment);
        ls_free(diff->rows[i].point);
        ls_free(diff->rows[i].metric);
    }
    ls_free(diff->rows);
    *diff = (ls_diff){0};
}

static uint32_t count_of(const ls_diff *diff, ls_diff_verdict verdict)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < diff->row_count; i++) count += diff->rows[i].verdict == verdict;
    return count;
}

static void add_row(const ls_diff_row *row, ls_text *text)
{
    ls_text_format(text, "%-9s %s", ls_diff_verdict_name(row->verdict), row->experiment);
    if (row->point[0] != '\0') ls_text_format(text, ": %s", row->point);
    if (row->metric[0] != '\0') ls_text_format(text, ": %s", row->metric);
    if (row->verdict == LS_DIFF_FAILING) {
        ls_text_format(text, ": %u runs failed, before %u", row->failed_after, row->failed_before);
    }
    if (!isnan(row->difference.estimate.mean)) {
        ls_text_format(text, ": %.6g -> %.6g", row->before.mean, row->after.mean);
        double relative = row->difference.estimate.mean / fabs(row->before.mean);
        if (isfinite(relative)) ls_text_format(text, " (%+.2f %%)", 100.0 * relative);
        ls_text_format(text, ", %" PRIu64 " and %" PRIu64 " runs", row->before.count, row->after.count);
        if (!isnan(row->difference.estimate.half_width)) {
            ls_text_format(text, ", difference %.4g +- %.2g", row->difference.estimate.mean,
                           row->difference.estimate.half_width);
        }
        if (!isnan(row->adjusted_p)) ls_text_format(text, ", p %.2g", row->adjusted_p);
    }
    ls_text_add(text, "\n");
}

void ls_diff_table(const ls_diff *diff, const ls_diff_options *options, bool all, ls_text *text)
{
    for (uint32_t i = 0; i < diff->row_count; i++) {
        if (all || diff->rows[i].verdict != LS_DIFF_SAME) add_row(&diff->rows[i], text);
    }
    ls_text_format(text,
                   "%u changed, %u missing, %u failing; %u same, %u undecided, %u added; %u points, %u tests, p adjusted after "
                   "Holm, level %g\n",
                   count_of(diff, LS_DIFF_CHANGED), count_of(diff, LS_DIFF_MISSING), count_of(diff, LS_DIFF_FAILING),
                   count_of(diff, LS_DIFF_SAME), count_of(diff, LS_DIFF_UNDECIDED), count_of(diff, LS_DIFF_ADDED),
                   diff->points, diff->tests, options->level);
    if (diff->relabelled > 0) {
        ls_text_format(text, "%u points were matched by their labels: their resolved scenarios differ\n", diff->relabelled);
    }
}

static void add_number(ls_text *text, const char *name, double value)
{
    ls_text_format(text, ",\"%s\":", name);
    ls_text_number(text, value);
}

static void add_json_row(const ls_diff_row *row, ls_text *text)
{
    ls_text_format(text, "{\"verdict\":\"%s\",\"experiment\":", ls_diff_verdict_name(row->verdict));
    ls_text_json(text, row->experiment);
    ls_text_add(text, ",\"point\":");
    ls_text_json(text, row->point);
    ls_text_add(text, ",\"metric\":");
    ls_text_json(text, row->metric);
    ls_text_format(text, ",\"runs_before\":%" PRIu64 ",\"runs_after\":%" PRIu64, row->before.count, row->after.count);
    add_number(text, "mean_before", row->before.mean);
    add_number(text, "mean_after", row->after.mean);
    add_number(text, "difference", row->difference.estimate.mean);
    add_number(text, "difference_half_width", row->difference.estimate.half_width);
    add_number(text, "p", row->difference.p_value);
    add_number(text, "p_holm", row->adjusted_p);
    ls_text_format(text, ",\"failed_before\":%u,\"failed_after\":%u}", row->failed_before, row->failed_after);
}

void ls_diff_json(const ls_diff *diff, const ls_diff_options *options, bool all, ls_text *text)
{
    ls_text_format(text, "{\"changes\":%u,\"tests\":%u,\"points\":%u,\"matched_by_labels\":%u", diff->changes, diff->tests,
                   diff->points, diff->relabelled);
    add_number(text, "level", options->level);
    add_number(text, "tolerance", options->tolerance);
    ls_text_add(text, ",\"rows\":[");
    bool any = false;
    for (uint32_t i = 0; i < diff->row_count; i++) {
        if (!all && diff->rows[i].verdict == LS_DIFF_SAME) continue;
        if (any) ls_text_add(text, ",");
        add_json_row(&diff->rows[i], text);
        any = true;
    }
    ls_text_add(text, "]}\n");
}
