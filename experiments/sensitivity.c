/* sensitivity.c - see sensitivity.h. The analysis reads the roles of the points off their labels: the first is nominal,
 * one that differs from it in a single key is that key's low or high end, all others are the design. So the stored
 * experiment says all there is to know. */
#include "experiments/sensitivity.h"

#include "experiments/pretty.h"
#include "experiments/tidy.h"

#include <gsl/gsl_multifit.h>
#include <gsl/gsl_qrng.h>
#include <gsl/gsl_rng.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOOTSTRAPS 400
#define DEGREE_MAX 8u

ls_result ls_sensitivity_design(uint32_t dimensions, uint32_t points, double *unit)
{
    gsl_qrng *sequence = gsl_qrng_alloc(gsl_qrng_sobol, dimensions);
    if (sequence == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < points; i++) gsl_qrng_get(sequence, unit + (size_t)i * dimensions);
    gsl_qrng_free(sequence);
    return LS_OK;
}

/* ---- statistics ---- */

typedef struct ranked {
    double value;
    uint32_t place;
} ranked;

static int by_value(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Ranks from 0, ties share their mean. */
static ls_result rank(const double *values, uint32_t count, double *ranks)
{
    ranked *sorted = ls_allocate_array((size_t)count + 1, sizeof *sorted);
    if (sorted == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < count; i++) sorted[i] = (ranked){values[i], i};
    qsort(sorted, count, sizeof *sorted, by_value);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].value == sorted[i].value;) end++;
        for (uint32_t k = i; k < end; k++) ranks[sorted[k].place] = 0.5 * (double)(i + end - 1);
    }
    ls_free(sorted);
    return LS_OK;
}

static double mean_of(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += values[i];
    return sum / count;
}

static double correlation_of(const double *x, const double *y, uint32_t count)
{
    double mean_x = mean_of(x, count), mean_y = mean_of(y, count), xx = 0, yy = 0, xy = 0;
    for (uint32_t i = 0; i < count; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

ls_result ls_rank_correlation(const double *x, const double *y, uint32_t count, ls_share *correlation)
{
    *correlation = (ls_share){NAN, NAN, NAN};
    if (count < 4) return LS_OK;
    double *ranks = ls_allocate_array(2 * (size_t)count, sizeof *ranks);
    if (ranks == NULL) return LS_ERROR_MEMORY;
    ls_result result = rank(x, count, ranks);
    if (result == LS_OK) result = rank(y, count, ranks + count);
    if (result == LS_OK) {
        double rho = correlation_of(ranks, ranks + count, count), spread = 1.959964 * sqrt(1.06 / (count - 3));
        double z = atanh(fmax(-1, fmin(1, rho)));
        *correlation = (ls_share){rho, isnan(rho) ? NAN : tanh(z - spread), isnan(rho) ? NAN : tanh(z + spread)};
    }
    ls_free(ranks);
    return result;
}

/* Everything a regression needs, allocated once for all bootstraps. */
typedef struct regression {
    gsl_matrix *basis;
    gsl_vector *values;
    gsl_vector *coefficients;
    gsl_matrix *covariance;
    gsl_multifit_linear_workspace *workspace;
    double *unit; /* in [-1, 1] */
    uint32_t degree;
} regression;

static void free_regression(regression *r)
{
    if (r->basis != NULL) gsl_matrix_free(r->basis);
    if (r->values != NULL) gsl_vector_free(r->values);
    if (r->coefficients != NULL) gsl_vector_free(r->coefficients);
    if (r->covariance != NULL) gsl_matrix_free(r->covariance);
    if (r->workspace != NULL) gsl_multifit_linear_free(r->workspace);
    ls_free(r->unit);
}

static bool new_regression(regression *r, uint32_t count)
{
    /* A dozen points a coefficient keep the fit from chasing noise. */
    r->degree = count / 12 < 1 ? 1 : count / 12 > DEGREE_MAX ? DEGREE_MAX : count / 12;
    r->basis = gsl_matrix_alloc(count, r->degree + 1);
    r->values = gsl_vector_alloc(count);
    r->coefficients = gsl_vector_alloc(r->degree + 1);
    r->covariance = gsl_matrix_alloc(r->degree + 1, r->degree + 1);
    r->workspace = gsl_multifit_linear_alloc(count, r->degree + 1);
    r->unit = ls_allocate_array(count, sizeof(double));
    return r->basis != NULL && r->values != NULL && r->coefficients != NULL && r->covariance != NULL &&
           r->workspace != NULL && r->unit != NULL;
}

/* Legendre polynomials of x by their three-term recurrence into a row of the basis. */
static void fill_row(regression *r, uint32_t row, double x)
{
    double before = 1, now = x;
    gsl_matrix_set(r->basis, row, 0, 1);
    for (uint32_t k = 1; k <= r->degree; k++) {
        gsl_matrix_set(r->basis, row, k, now);
        double next = ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0);
        before = now;
        now = next;
    }
}

/* Adjusted R^2 of the points that picks names (NULL: all), not below 0; NaN when their values do not vary. */
static double fit(regression *r, const double *y, const uint32_t *picks, uint32_t count)
{
    double squares = 0, mean = 0, left;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t point = picks != NULL ? picks[i] : i;
        fill_row(r, i, r->unit[point]);
        gsl_vector_set(r->values, i, y[point]);
        mean += y[point] / count;
    }
    for (uint32_t i = 0; i < count; i++) {
        double off = gsl_vector_get(r->values, i) - mean;
        squares += off * off;
    }
    if (!(squares > 1e-24 * mean * mean * count)) return NAN;
    if (gsl_multifit_linear(r->basis, r->values, r->coefficients, r->covariance, &left, r->workspace) != 0) return NAN;
    double adjusted = 1.0 - left / squares * (count - 1.0) / (count - r->degree - 1.0);
    return adjusted > 0 ? adjusted : 0;
}

static int by_number(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Percentile interval over resampled points; the seed is fixed, so that the same data give the same interval. */
static ls_result bootstrap(regression *r, const double *y, uint32_t count, ls_share *share)
{
    double shares[BOOTSTRAPS];
    uint32_t kept = 0;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    uint32_t *picks = ls_allocate_array(count, sizeof *picks);
    ls_result result = random != NULL && picks != NULL ? LS_OK : LS_ERROR_MEMORY;
    for (int b = 0; b < BOOTSTRAPS && result == LS_OK; b++) {
        for (uint32_t i = 0; i < count; i++) picks[i] = (uint32_t)gsl_rng_uniform_int(random, count);
        double one = fit(r, y, picks, count);
        if (!isnan(one)) shares[kept++] = one;
    }
    if (result == LS_OK && kept > BOOTSTRAPS / 2) {
        qsort(shares, kept, sizeof shares[0], by_number);
        share->low = shares[(uint32_t)(0.025 * kept)];
        share->high = shares[(uint32_t)(0.975 * kept)];
    }
    if (random != NULL) gsl_rng_free(random);
    ls_free(picks);
    return result;
}

ls_result ls_first_order_share(const double *x, const double *y, uint32_t count, ls_share *share)
{
    *share = (ls_share){NAN, NAN, NAN};
    if (count < 8) return LS_OK;
    regression r = {0};
    double *ranks = ls_allocate_array(count, sizeof *ranks);
    ls_result result = ranks != NULL && new_regression(&r, count) ? rank(x, count, ranks) : LS_ERROR_MEMORY;
    if (result == LS_OK) {
        for (uint32_t i = 0; i < count; i++) r.unit[i] = 2.0 * (ranks[i] + 0.5) / count - 1.0;
        share->share = fit(&r, y, NULL, count);
        if (!isnan(share->share)) result = bootstrap(&r, y, count, share);
    }
    free_regression(&r);
    ls_free(ranks);
    return result;
}

/* ---- the second experiment ---- */

static double value_at(const ls_assumption *a, double unit)
{
    double value = a->logarithmic ? a->low * pow(a->high / a->low, unit) : a->low + (a->high - a->low) * unit;
    return a->whole ? round(value) : value;
}

/* One case: the nominal value of every assumption but those that `values` gives (NaN: nominal). */
static void add_case(ls_text *text, const ls_sensitivity_plan *plan, const double *values, bool *first)
{
    ls_text_add(text, *first ? "\n      {" : ",\n      {");
    *first = false;
    for (uint32_t i = 0; i < plan->count; i++) {
        ls_text_add(text, i > 0 ? ", " : "");
        ls_text_json(text, plan->assumptions[i].key);
        ls_text_add(text, ": ");
        ls_text_number(text, isnan(values[i]) ? plan->assumptions[i].nominal : values[i]);
    }
    ls_text_add(text, "}");
}

static bool all_nominal(const ls_sensitivity_plan *plan, const double *values)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (!isnan(values[i]) && values[i] != plan->assumptions[i].nominal) return false;
    }
    return true;
}

static void add_ends(ls_text *text, const ls_sensitivity_plan *plan, double *values, bool *first)
{
    for (uint32_t i = 0; i < plan->count; i++) values[i] = NAN;
    add_case(text, plan, values, first);
    for (uint32_t i = 0; i < plan->count; i++) {
        for (int end = 0; end < 2; end++) {
            values[i] = end == 0 ? plan->assumptions[i].low : plan->assumptions[i].high;
            if (!all_nominal(plan, values)) add_case(text, plan, values, first);
        }
        values[i] = NAN;
    }
}

/* Whole numbers can make two points of the design fall together, or one on the nominal point: once is enough. */
static bool seen_before(const double *design, uint32_t point, uint32_t dimensions)
{
    for (uint32_t before = 0; before < point; before++) {
        bool same = true;
        for (uint32_t k = 0; k < dimensions && same; k++) {
            same = design[(size_t)before * dimensions + k] == design[(size_t)point * dimensions + k];
        }
        if (same) return true;
    }
    return false;
}

/* A point that differs from the nominal in one key only would pass for an end. */
static bool is_on_an_axis(const ls_sensitivity_plan *plan, const double *values)
{
    uint32_t differing = 0;
    for (uint32_t i = 0; i < plan->count; i++) differing += values[i] != plan->assumptions[i].nominal;
    return differing < 2 && plan->count > 1;
}

static bool add_design(ls_text *text, const ls_sensitivity_plan *plan, bool *first)
{
    double *design = ls_allocate_array((size_t)plan->samples * plan->count + 1, sizeof *design);
    if (design == NULL || ls_sensitivity_design(plan->count, plan->samples, design) != LS_OK) {
        ls_free(design);
        return false;
    }
    for (uint32_t p = 0; p < plan->samples; p++) {
        double *values = design + (size_t)p * plan->count;
        for (uint32_t i = 0; i < plan->count; i++) values[i] = value_at(&plan->assumptions[i], values[i]);
        if (!seen_before(design, p, plan->count) && !is_on_an_axis(plan, values)) add_case(text, plan, values, first);
    }
    ls_free(design);
    return true;
}

char *ls_sensitivity_spec_text(const ls_spec *spec)
{
    const ls_sensitivity_plan *plan = spec->sensitivity;
    ls_text text = {0}, title = {0};
    bool first = true;
    double values[LS_SENSITIVITY_ASSUMPTIONS_MAX];
    ls_text_format(&title, "%s: which assumptions carry %s", spec->title[0] != '\0' ? spec->title : spec->name,
                   plan->metric);
    ls_text_add(&text, "{\n  \"title\": ");
    ls_text_json(&text, title.failed ? "" : title.bytes);
    ls_text_add(&text, ",\n  \"table\": [");
    ls_text_json(&text, plan->metric);
    ls_text_format(&text, "],\n  \"seed\": %" PRIu64 ",\n  \"replications\": %" PRIu64 ",\n  \"base\": %s,\n",
                   spec->seed, plan->replications, plan->nominal);
    ls_text_add(&text, "  \"sweep\": [{\"cases\": [");
    add_ends(&text, plan, values, &first);
    if (title.failed || !add_design(&text, plan, &first)) text.failed = true;
    ls_text_add(&text, "]}]\n}\n");
    ls_text_free(&title);
    return ls_text_take(&text);
}

/* ---- analysis ---- */

bool ls_is_sensitivity(const char *name)
{
    size_t length = strlen(name), suffix = strlen(LS_SENSITIVITY_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, LS_SENSITIVITY_SUFFIX) == 0;
}

static double label_value(const ls_stored_experiment *e, uint32_t point, uint32_t key)
{
    return strtod(e->points[point].labels[key], NULL);
}

/* How many keys differ from the nominal point, and one of them. */
static uint32_t differing_keys(const ls_stored_experiment *e, uint32_t point, uint32_t *key)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (strcmp(e->points[point].labels[k], e->points[0].labels[k]) == 0) continue;
        *key = k;
        count++;
    }
    return count;
}

/* Change from the nominal point, run by run. */
static ls_result change(const ls_stored_experiment *e, uint32_t metric, uint32_t point, ls_estimate *estimate)
{
    const ls_stored_point *here = &e->points[point], *nominal = &e->points[0];
    double *differences = ls_allocate_array((size_t)here->run_count + 1, sizeof *differences);
    if (differences == NULL) return LS_ERROR_MEMORY;
    uint64_t count = 0;
    for (uint32_t i = 0; i < here->run_count; i++) {
        for (uint32_t k = 0; k < nominal->run_count; k++) {
            double difference = here->runs[i].values[metric] - nominal->runs[k].values[metric];
            if (here->runs[i].replication == nominal->runs[k].replication && !isnan(difference)) {
                differences[count++] = difference;
            }
        }
    }
    *estimate = ls_estimate_of(differences, count, 0.95);
    ls_free(differences);
    return LS_OK;
}

static ls_result take_end(ls_sensitivity *s, uint32_t metric, uint32_t point, uint32_t key)
{
    const ls_stored_experiment *e = s->experiment;
    ls_sensitivity_row *row = &s->rows[key];
    bool low = label_value(e, point, key) < label_value(e, 0, key);
    *(low ? &row->low : &row->high) = e->points[point].labels[key];
    return change(e, metric, point, low ? &row->at_low : &row->at_high);
}

/* The design's points that have a value: their numbers into points, their values into y. */
static ls_result collect_design(ls_sensitivity *s, uint32_t metric, uint32_t *points, double *y)
{
    const ls_stored_experiment *e = s->experiment;
    for (uint32_t p = 1; p < e->point_count; p++) {
        uint32_t key = 0, differing = differing_keys(e, p, &key);
        ls_result result = LS_OK;
        ls_estimate estimate = {0};
        /* With one assumption alone the first two others are its ends and the rest is the design. */
        bool is_end = differing == 1 && (e->swept_key_count > 1 || p <= 2);
        if (is_end) result = take_end(s, metric, p, key);
        if (!is_end) result = ls_point_estimate(&e->points[p], metric, 0.95, &estimate);
        if (result != LS_OK) return result;
        if (is_end || isnan(estimate.mean)) continue;
        points[s->design_points] = p;
        y[s->design_points++] = estimate.mean;
    }
    return LS_OK;
}

static ls_result weigh(ls_sensitivity *s, const uint32_t *points, const double *y, double *x)
{
    ls_result result = LS_OK;
    for (uint32_t k = 0; k < s->count && result == LS_OK; k++) {
        for (uint32_t i = 0; i < s->design_points; i++) x[i] = label_value(s->experiment, points[i], k);
        result = ls_first_order_share(x, y, s->design_points, &s->rows[k].share);
        if (result == LS_OK) result = ls_rank_correlation(x, y, s->design_points, &s->rows[k].correlation);
        if (!isnan(s->rows[k].share.share)) s->explained += s->rows[k].share.share;
    }
    return result;
}

static double reach(const ls_sensitivity_row *row)
{
    return fmax(isnan(row->at_low.mean) ? 0 : fabs(row->at_low.mean),
                isnan(row->at_high.mean) ? 0 : fabs(row->at_high.mean));
}

static int by_reach(const void *left, const void *right)
{
    const ls_sensitivity_row *a = left, *b = right;
    double one = reach(a), other = reach(b);
    if (one != other) return one > other ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static ls_result fill(ls_sensitivity *s, uint32_t metric)
{
    const ls_stored_experiment *e = s->experiment;
    static const ls_estimate nothing = {.count = 0, .mean = NAN, .deviation = NAN, .half_width = NAN};
    s->rows = ls_allocate_array((size_t)e->swept_key_count + 1, sizeof *s->rows);
    uint32_t *points = ls_allocate_array((size_t)e->point_count + 1, sizeof *points);
    double *values = ls_allocate_array(2 * ((size_t)e->point_count + 1), sizeof *values);
    ls_result result = s->rows != NULL && points != NULL && values != NULL ? LS_OK : LS_ERROR_MEMORY;
    for (uint32_t k = 0; result == LS_OK && k < e->swept_key_count; k++) {
        s->rows[k] =
            (ls_sensitivity_row){.key = k, .nominal = e->points[0].labels[k], .at_low = nothing, .at_high = nothing};
        s->count++;
    }
    if (result == LS_OK) result = collect_design(s, metric, points, values);
    if (result == LS_OK) result = weigh(s, points, values, values + e->point_count + 1);
    if (result == LS_OK) qsort(s->rows, s->count, sizeof *s->rows, by_reach);
    ls_free(points);
    ls_free(values);
    return result;
}

ls_result ls_sensitivity_analyse(const ls_stored_experiment *e, ls_sensitivity *s, ls_error *error)
{
    ls_presentation presentation = {0};
    uint32_t metric = 0;
    *s = (ls_sensitivity){.experiment = e};
    ls_result result = ls_presentation_parse(e->name, e->spec, &presentation, error);
    if (result == LS_OK && (presentation.table_count == 0 || e->swept_key_count == 0 || e->point_count == 0)) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: no experiment on assumptions", e->name);
    }
    if (result == LS_OK) s->metric = ls_duplicate(presentation.table[0]);
    if (result == LS_OK && s->metric == NULL) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_presentation_free(&presentation);
    while (result == LS_OK && metric < e->metric_count && strcmp(e->metric_names[metric], s->metric) != 0) metric++;
    if (result == LS_OK && metric < e->metric_count) {
        result = ls_point_estimate(&e->points[0], metric, 0.95, &s->nominal);
        if (result == LS_OK && !isnan(s->nominal.mean)) result = fill(s, metric);
        if (result == LS_ERROR_MEMORY) ls_fail(error, result, "out of memory");
    }
    if (result == LS_OK && s->count == 0) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: %s has no value at the nominal point", e->name, s->metric);
    }
    if (result != LS_OK) ls_sensitivity_free(s);
    return result;
}

void ls_sensitivity_free(ls_sensitivity *s)
{
    ls_free(s->rows);
    ls_free(s->metric);
    *s = (ls_sensitivity){0};
}

/* ---- output ---- */

static void add_field(ls_text *text, double value)
{
    ls_text_add(text, "\t");
    if (isnan(value)) {
        ls_text_add(text, "nan");
    } else {
        ls_text_number(text, value);
    }
}

void ls_sensitivity_tidy(const ls_sensitivity *s, ls_text *text)
{
    ls_text_add(text,
                "assumption\tlow\tnominal\thigh\tat_nominal\tat_low\tat_low.half_width\tat_high\tat_high.half_width\t"
                "share\tshare_low\tshare_high\tcorrelation\tcorrelation_low\tcorrelation_high\n");
    for (uint32_t i = 0; i < s->count; i++) {
        const ls_sensitivity_row *row = &s->rows[i];
        ls_text_field(text, s->experiment->swept_keys[row->key]);
        ls_text_format(text, "\t%s\t%s\t%s", row->low != NULL ? row->low : "nan", row->nominal,
                       row->high != NULL ? row->high : "nan");
        const double fields[] = {s->nominal.mean,      row->at_low.mean,        row->at_low.half_width,
                                 row->at_high.mean,    row->at_high.half_width, row->share.share,
                                 row->share.low,       row->share.high,         row->correlation.share,
                                 row->correlation.low, row->correlation.high};
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) add_field(text, fields[k]);
        ls_text_add(text, "\n");
    }
}

static void add_change(ls_text *text, const ls_estimate *estimate)
{
    ls_text cell = {0};
    if (isnan(estimate->mean)) {
        ls_text_add(&cell, "-");
    } else {
        ls_text_add(&cell, estimate->mean > 0 ? "+" : "");
        ls_text_pretty(&cell, estimate->mean, LS_PRETTY_DIGITS, 3);
    }
    ls_text_format(text, " %12s", cell.failed ? "?" : cell.bytes);
    ls_text_free(&cell);
}

static void add_interval(ls_text *text, const ls_share *share)
{
    if (isnan(share->share)) {
        ls_text_format(text, " %22s", "-");
    } else {
        ls_text_format(text, " %7.3f (%5.2f..%5.2f)", share->share, share->low, share->high);
    }
}

void ls_sensitivity_table(const ls_sensitivity *s, ls_text *text)
{
    ls_text_format(text, "%s, nominally ", s->metric);
    ls_text_pretty(text, s->nominal.mean, LS_PRETTY_DIGITS, 4);
    ls_text_format(text, "; %u points in the design\n\n%-34s %10s %10s %10s %12s %12s %22s %22s\n", s->design_points,
                   "assumption", "low", "nominal", "high", "change low", "change high", "first-order share",
                   "rank correlation");
    for (uint32_t i = 0; i < s->count; i++) {
        const ls_sensitivity_row *row = &s->rows[i];
        ls_text_format(text, "%-34s %10.10s %10.10s %10.10s", s->experiment->swept_keys[row->key],
                       row->low != NULL ? row->low : "-", row->nominal, row->high != NULL ? row->high : "-");
        add_change(text, &row->at_low);
        add_change(text, &row->at_high);
        add_interval(text, &row->share);
        add_interval(text, &row->correlation);
        ls_text_add(text, "\n");
    }
    ls_text_add(text, "\n");
    ls_sensitivity_sentence(s, text);
    ls_text_add(text, "\n");
}

static void add_member(ls_text *text, const char *name, double value)
{
    ls_text_format(text, ",\"%s\":", name);
    ls_text_number(text, value);
}

static void add_end(ls_text *text, const char *name, const char *label, const ls_estimate *estimate)
{
    ls_text_format(text, ",\"%s\":{\"value\":%s", name, label != NULL ? label : "null");
    add_member(text, "change", estimate->mean);
    add_member(text, "half_width", estimate->half_width);
    ls_text_add(text, "}");
}

static void add_share(ls_text *text, const char *name, const ls_share *share)
{
    ls_text_format(text, ",\"%s\":[", name);
    ls_text_number(text, share->share);
    ls_text_add(text, ",");
    ls_text_number(text, share->low);
    ls_text_add(text, ",");
    ls_text_number(text, share->high);
    ls_text_add(text, "]");
}

void ls_sensitivity_json(const ls_sensitivity *s, ls_text *text)
{
    ls_text_add(text, "{\"experiment\":");
    ls_text_json(text, s->experiment->name);
    ls_text_add(text, ",\"metric\":");
    ls_text_json(text, s->metric);
    add_member(text, "nominal", s->nominal.mean);
    ls_text_format(text, ",\"design_points\":%u", s->design_points);
    add_member(text, "explained", s->explained);
    ls_text_add(text, ",\"assumptions\":[");
    for (uint32_t i = 0; i < s->count; i++) {
        const ls_sensitivity_row *row = &s->rows[i];
        ls_text_add(text, i > 0 ? ",{\"key\":" : "{\"key\":");
        ls_text_json(text, s->experiment->swept_keys[row->key]);
        ls_text_format(text, ",\"nominal\":%s", row->nominal);
        add_end(text, "low", row->low, &row->at_low);
        add_end(text, "high", row->high, &row->at_high);
        add_share(text, "share", &row->share);
        add_share(text, "rank_correlation", &row->correlation);
        ls_text_add(text, "}");
    }
    ls_text_add(text, "]}\n");
}

/* Indices of the rows by falling share, at most `most`; how many have one. */
static uint32_t greatest_shares(const ls_sensitivity *s, uint32_t *order, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (isnan(s->rows[i].share.share)) continue;
        uint32_t at = count < most ? count++ : most;
        while (at > 0 && s->rows[order[at - 1]].share.share < s->rows[i].share.share) {
            if (at < most) order[at] = order[at - 1];
            at--;
        }
        if (at < most) order[at] = i;
    }
    return count;
}

void ls_sensitivity_sentence(const ls_sensitivity *s, ls_text *text)
{
    uint32_t order[3];
    uint32_t count = greatest_shares(s, order, 3);
    if (count == 0) {
        ls_text_format(text, "The design has too few points with a value of %s to weigh the assumptions.", s->metric);
        return;
    }
    ls_text_format(text, "Over the ranges of %u assumptions ", s->count);
    for (uint32_t i = 0; i < count; i++) {
        const ls_sensitivity_row *row = &s->rows[order[i]];
        ls_text_format(text, "%s%s carries ",
                       i == 0           ? ""
                       : i + 1 == count ? " and "
                                        : ", ",
                       s->experiment->swept_keys[row->key]);
        ls_text_pretty(text, row->share.share, LS_PRETTY_PERCENT, 2);
    }
    ls_text_format(text, " of the variance of %s; all of them one by one explain ", s->metric);
    ls_text_pretty(text, s->explained, LS_PRETTY_PERCENT, 2);
    ls_text_add(text, ", the rest is interaction and noise.");
}
