/* comparison.c - see comparison.h. */
#include "experiments/comparison.h"

#include "experiments/layer.h"
#include "experiments/tidy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONFIDENCE 0.95

static ls_result find_name(const char *what, const char *wanted, char *const *names, uint32_t count, uint32_t *index,
                           ls_error *error)
{
    char nearest[128];
    ls_text list = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], wanted) == 0) {
            *index = i;
            ls_text_free(&list);
            return LS_OK;
        }
        ls_text_format(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    ls_text_add(&list, count == 0 ? "none" : "");
    ls_did_you_mean(wanted, (const char *const *)names, count, nearest);
    ls_result result = ls_fail(error, LS_ERROR_INVALID, "no %s \"%.100s\" in these results; there are: %.600s%s", what,
                               wanted, list.failed ? "?" : list.bytes, nearest);
    ls_text_free(&list);
    return result;
}

/* 2: the whole label, 1: its first word, 0: neither. */
static int label_match(const char *label, const char *wanted)
{
    if (strcmp(label, wanted) == 0) return 2;
    size_t length = strlen(wanted);
    return strncmp(label, wanted, length) == 0 && label[length] == ' ' ? 1 : 0;
}

static ls_result find_baseline(const ls_stored_experiment *e, uint32_t key, const char *wanted, const char **label,
                               ls_error *error)
{
    int best = 0;
    if (e->point_count == 0)
        return ls_fail(error, LS_ERROR_INVALID, "%s: no points; run the experiment first", e->name);
    if (wanted == NULL) {
        *label = e->points[0].labels[key];
        return LS_OK;
    }
    ls_text list = {0};
    for (uint32_t i = 0; i < e->point_count; i++) {
        const char *candidate = e->points[i].labels[key];
        int match = label_match(candidate, wanted);
        if (match > best) {
            best = match;
            *label = candidate;
        }
        bool listed = false;
        for (uint32_t k = 0; k < i && !listed; k++) listed = strcmp(e->points[k].labels[key], candidate) == 0;
        if (!listed) ls_text_format(&list, "%s%s", i > 0 ? ", " : "", candidate);
    }
    ls_result result = LS_OK;
    if (best == 0) {
        result = ls_fail(error, LS_ERROR_INVALID, "no baseline \"%.100s\" among the values of %s: %.600s", wanted,
                         e->swept_keys[key], list.failed ? "?" : list.bytes);
    }
    ls_text_free(&list);
    return result;
}

static bool same_group(const ls_stored_experiment *e, uint32_t key, uint32_t one, uint32_t other)
{
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (k != key && strcmp(e->points[one].labels[k], e->points[other].labels[k]) != 0) return false;
    }
    return true;
}

/* Pairs the runs of equal replication that both have the metric. Runs are sorted by replication. */
static ls_result pair_up(const ls_stored_point *treatment, const ls_stored_point *baseline, uint32_t metric,
                         ls_difference *difference)
{
    size_t most = (size_t)treatment->run_count + 1;
    double *left = ls_allocate_array(most, sizeof *left), *right = ls_allocate_array(most, sizeof *right);
    ls_result result = left != NULL && right != NULL ? LS_OK : LS_ERROR_MEMORY;
    uint64_t count = 0;
    for (uint32_t i = 0, k = 0; result == LS_OK && i < treatment->run_count && k < baseline->run_count;) {
        const ls_stored_run *a = &treatment->runs[i], *b = &baseline->runs[k];
        if (a->replication < b->replication) {
            i++;
            continue;
        }
        if (b->replication < a->replication) {
            k++;
            continue;
        }
        if (!isnan(a->values[metric]) && !isnan(b->values[metric])) {
            left[count] = a->values[metric];
            right[count++] = b->values[metric];
        }
        i++;
        k++;
    }
    if (result == LS_OK) *difference = ls_paired_difference(left, right, count, CONFIDENCE);
    ls_free(left);
    ls_free(right);
    return result;
}

static ls_result fill_row(const ls_comparison *c, ls_comparison_row *row, uint32_t baseline_point)
{
    const ls_stored_experiment *e = c->experiment;
    row->difference = (ls_difference){{0, NAN, NAN, NAN}, NAN};
    ls_result result = ls_point_estimate(&e->points[row->point], c->metric, CONFIDENCE, &row->estimate);
    if (result == LS_OK && !row->baseline && baseline_point != UINT32_MAX) {
        result = pair_up(&e->points[row->point], &e->points[baseline_point], c->metric, &row->difference);
    }
    row->adjusted_p = row->difference.p_value;
    return result;
}

static ls_result adjust_group(ls_comparison_row *rows, uint32_t count)
{
    double *p_values = ls_allocate_array(count, sizeof *p_values);
    if (p_values == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < count; i++) p_values[i] = rows[i].adjusted_p;
    ls_result result = ls_holm_adjust(p_values, count);
    for (uint32_t i = 0; i < count; i++) rows[i].adjusted_p = p_values[i];
    ls_free(p_values);
    return result;
}

/* Gathers the group of the point `first` at the end of rows. */
static ls_result add_group(ls_comparison *c, uint32_t first, bool *taken)
{
    const ls_stored_experiment *e = c->experiment;
    uint32_t start = c->row_count, baseline_point = UINT32_MAX;
    for (uint32_t i = first; i < e->point_count; i++) {
        if (taken[i] || !same_group(e, c->key, first, i)) continue;
        taken[i] = true;
        bool baseline = strcmp(e->points[i].labels[c->key], c->baseline) == 0;
        if (baseline) baseline_point = i;
        c->rows[c->row_count++] = (ls_comparison_row){.group = c->group_count, .point = i, .baseline = baseline};
    }
    c->group_count++;
    ls_result result = LS_OK;
    for (uint32_t r = start; r < c->row_count && result == LS_OK; r++)
        result = fill_row(c, &c->rows[r], baseline_point);
    return result == LS_OK ? adjust_group(c->rows + start, c->row_count - start) : result;
}

ls_result ls_compare(const ls_stored_experiment *e, const char *key, const char *baseline, const char *metric,
                     ls_comparison *c, ls_error *error)
{
    *c = (ls_comparison){.experiment = e};
    ls_result result =
        find_name("swept key", key != NULL ? key : e->compare_key, e->swept_keys, e->swept_key_count, &c->key, error);
    if (result == LS_OK) result = find_name("metric", metric, e->metric_names, e->metric_count, &c->metric, error);
    if (result == LS_OK) {
        result = find_baseline(e, c->key, baseline != NULL ? baseline : e->compare_baseline, &c->baseline, error);
    }
    if (result != LS_OK) return result;
    bool *taken = ls_allocate_array(e->point_count, sizeof *taken);
    c->rows = ls_allocate_array(e->point_count, sizeof *c->rows);
    if (taken == NULL || c->rows == NULL) result = LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < e->point_count && result == LS_OK; i++) {
        if (!taken[i]) result = add_group(c, i, taken);
    }
    ls_free(taken);
    if (result != LS_OK) {
        ls_free(c->rows);
        c->rows = NULL;
        return ls_fail(error, result, "out of memory");
    }
    return LS_OK;
}

static const char *label_of(const ls_comparison *c, const ls_comparison_row *row)
{
    return c->experiment->points[row->point].labels[c->key];
}

/* "12.3 ± 0.4", or "12.3" when there is no interval, "-" when there is nothing. */
static void estimate_text(const ls_estimate *estimate, char *text, size_t size)
{
    if (isnan(estimate->mean)) {
        snprintf(text, size, "-");
    } else if (isnan(estimate->half_width)) {
        snprintf(text, size, "%.4g", estimate->mean);
    } else {
        snprintf(text, size, "%.4g +- %.2g", estimate->mean, estimate->half_width);
    }
}

static void add_group_header(const ls_comparison *c, const ls_comparison_row *row, int width, ls_text *text)
{
    const ls_stored_experiment *e = c->experiment;
    ls_text_add(text, "\n");
    bool any = false;
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (k == c->key) continue;
        ls_text_format(text, "%s%s = %s", any ? ", " : "", e->swept_keys[k], e->points[row->point].labels[k]);
        any = true;
    }
    if (any) ls_text_add(text, "\n");
    ls_text_format(text, "  %-*s %5s  %-20s %5s  %-20s %9s %9s %9s\n", width, e->swept_keys[c->key], "runs", "mean",
                   "pairs", "difference", "relative", "p", "p (Holm)");
}

static void add_row(const ls_comparison *c, const ls_comparison_row *row, double baseline_mean, int width,
                    ls_text *text)
{
    char mean[64], difference[64];
    estimate_text(&row->estimate, mean, sizeof mean);
    ls_text_format(text, "  %-*s %5" PRIu64 "  %-20s ", width, label_of(c, row), row->estimate.count, mean);
    if (row->baseline) {
        ls_text_add(text, "   baseline\n");
        return;
    }
    estimate_text(&row->difference.estimate, difference, sizeof difference);
    ls_text_format(text, "%5" PRIu64 "  %-20s ", row->difference.estimate.count, difference);
    double relative = row->difference.estimate.mean / fabs(baseline_mean);
    if (isfinite(relative)) {
        ls_text_format(text, "%+8.1f%%", 100.0 * relative);
    } else {
        ls_text_format(text, "%9s", "-");
    }
    if (isnan(row->difference.p_value)) {
        ls_text_format(text, " %9s %9s\n", "-", "-");
    } else {
        ls_text_format(text, " %9.2g %9.2g\n", row->difference.p_value, row->adjusted_p);
    }
}

static double baseline_mean(const ls_comparison *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].group == group && c->rows[i].baseline) return c->rows[i].estimate.mean;
    }
    return NAN;
}

void ls_comparison_table(const ls_comparison *c, ls_text *text)
{
    int width = (int)strlen(c->experiment->swept_keys[c->key]);
    for (uint32_t i = 0; i < c->row_count; i++) {
        int length = (int)strlen(label_of(c, &c->rows[i]));
        if (length > width) width = length;
    }
    ls_text_format(text, "%s: %s against %s; 95 %% intervals, differences paired by replication\n",
                   c->experiment->metric_names[c->metric], c->experiment->swept_keys[c->key], c->baseline);
    for (uint32_t i = 0; i < c->row_count; i++) {
        const ls_comparison_row *row = &c->rows[i];
        if (i == 0 || row->group != c->rows[i - 1].group) add_group_header(c, row, width, text);
        add_row(c, row, baseline_mean(c, row->group), width, text);
    }
}

static void add_json_number(ls_text *text, const char *name, double value)
{
    ls_text_format(text, ",\"%s\":", name);
    ls_text_number(text, value);
}

static void add_json_row(const ls_comparison *c, const ls_comparison_row *row, ls_text *text)
{
    const ls_stored_experiment *e = c->experiment;
    ls_text_format(text, "{\"group\":%u,\"labels\":{", row->group);
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (k > 0) ls_text_add(text, ",");
        ls_text_json(text, e->swept_keys[k]);
        ls_text_add(text, ":");
        ls_text_json(text, e->points[row->point].labels[k]);
    }
    ls_text_format(text, "},\"baseline\":%s,\"runs\":%" PRIu64, row->baseline ? "true" : "false", row->estimate.count);
    add_json_number(text, "mean", row->estimate.mean);
    add_json_number(text, "half_width", row->estimate.half_width);
    ls_text_format(text, ",\"pairs\":%" PRIu64, row->difference.estimate.count);
    add_json_number(text, "difference", row->difference.estimate.mean);
    add_json_number(text, "difference_half_width", row->difference.estimate.half_width);
    add_json_number(text, "p", row->difference.p_value);
    add_json_number(text, "p_holm", row->adjusted_p);
    ls_text_add(text, "}");
}

void ls_comparison_json(const ls_comparison *c, ls_text *text)
{
    ls_text_add(text, "{\"metric\":");
    ls_text_json(text, c->experiment->metric_names[c->metric]);
    ls_text_add(text, ",\"key\":");
    ls_text_json(text, c->experiment->swept_keys[c->key]);
    ls_text_add(text, ",\"baseline\":");
    ls_text_json(text, c->baseline);
    ls_text_add(text, ",\"rows\":[");
    for (uint32_t i = 0; i < c->row_count; i++) {
        if (i > 0) ls_text_add(text, ",");
        add_json_row(c, &c->rows[i], text);
    }
    ls_text_add(text, "]}");
}
