/* fit.c - minimum-distance fits of latency laws (see fit.h). */
#include "experiments/fit.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_multimin.h>
#include <math.h>

#define SEARCH_STEPS_MAX 400
#define SEARCH_SIZE      1e-4
#define POINTS_MAX       500u /* a larger sample is thinned to so many quantiles for the search */
#define TAIL_SHARE       0.01
#define TAIL_SHAPE_MIN   1.1 /* a mean must exist */
#define TAIL_SHAPE_MAX   50.0

/* --- distribution functions --------------------------------------------------------------------------------------------- */

static double table_probability(const double *table, uint32_t count, double value)
{
    if (count == 0 || value < table[0]) return 0;
    if (value >= table[count - 1]) return 1;
    uint32_t low = 0, high = count - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (table[middle] <= value) low = middle;
        else high = middle;
    }
    double width = table[high] - table[low];
    return (low + (width > 0 ? (value - table[low]) / width : 0)) / (count - 1);
}

static double body_probability(const ls_law *law, const double *table, uint32_t table_count, double value)
{
    double above = value - law->floor_s;
    if (law->law == LS_LAW_EMPIRICAL) return table_probability(table, table_count, above);
    if (above < 0) return 0;
    switch ((ls_law_kind)law->law) {
    case LS_LAW_EXPONENTIAL: return law->scale_s > 0 ? -expm1(-above / law->scale_s) : 1;
    case LS_LAW_LOGNORMAL:
        if (above <= 0) return 0;
        if (law->shape <= 0) return above >= law->scale_s;
        return gsl_cdf_ugaussian_P(log(above / law->scale_s) / law->shape);
    case LS_LAW_GAMMA: return gsl_cdf_gamma_P(above, law->shape, law->scale_s / law->shape);
    case LS_LAW_UNIFORM: return law->scale_s > 0 ? fmin(1, above / (2 * law->scale_s)) : 1;
    case LS_LAW_FOLDED_NORMAL:
        if (law->shape <= 0) return above >= law->scale_s;
        return gsl_cdf_ugaussian_P((above - law->scale_s) / law->shape) - gsl_cdf_ugaussian_P((-above - law->scale_s) / law->shape);
    case LS_LAW_CONSTANT:
    case LS_LAW_EMPIRICAL: break;
    }
    return above >= law->scale_s;
}

double ls_fit_probability(const ls_law *law, const double *table, uint32_t table_count, double value_s)
{
    double body = body_probability(law, table, table_count, value_s);
    if (law->tail_share <= 0) return body;
    double tail = value_s <= law->tail_scale_s ? 0 : 1 - pow(law->tail_scale_s / value_s, law->tail_shape);
    return (1 - law->tail_share) * body + law->tail_share * tail;
}

double ls_fit_quantile(const ls_law *law, const double *table, uint32_t table_count, double probability)
{
    double low = 0, high = 1e-6;
    while (ls_fit_probability(law, table, table_count, high) < probability && high < 1e6) high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (ls_fit_probability(law, table, table_count, middle) < probability) low = middle;
        else high = middle;
    }
    return high;
}

double ls_fit_distance(const ls_sample *sample, const ls_law *law, const double *table, uint32_t table_count)
{
    double greatest = 0, count = sample->count;
    for (uint32_t i = 0; i < sample->count; i++) {
        /* Equal values are one step of the sample's function: it is compared before and after the whole step. */
        uint32_t first = i;
        while (i + 1 < sample->count && sample->values[i + 1] == sample->values[first]) i++;
        double value = sample->values[first];
        double at = ls_fit_probability(law, table, table_count, value);
        double before = ls_fit_probability(law, table, table_count, nextafter(value, 0));
        greatest = fmax(greatest, fmax(fabs(before - first / count), fabs((i + 1) / count - at)));
    }
    return greatest;
}

/* --- search --------------------------------------------------------------------------------------------------------------- */

typedef struct search {
    double points[POINTS_MAX]; /* quantiles of the sample at (i + 0.5) / count */
    uint32_t count;
    double least;
    ls_law_kind kind;
} search;

/* Coordinates without bounds: the floor as a share of the least value, scale and shape as logarithms. */
static ls_law law_at(const search *s, const gsl_vector *at)
{
    double share = 1 / (1 + exp(-gsl_vector_get(at, 0)));
    return (ls_law){.law = s->kind, .floor_s = s->least * share, .scale_s = exp(gsl_vector_get(at, 1)),
                    .shape = exp(gsl_vector_get(at, 2)), .tail_shape = 2, .draws = 1};
}

/* Cramer-von Mises: the sum of squared differences of the distribution functions. */
static double objective(const gsl_vector *at, void *context)
{
    const search *s = context;
    ls_law law = law_at(s, at);
    bool is_gamma = s->kind == LS_LAW_GAMMA;
    if (!(law.shape > (is_gamma ? 0.02 : 1e-6) && law.shape < (is_gamma ? 900 : 10)) || !(law.scale_s < 1e5)) return 1e6;
    double sum = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        double difference = ls_fit_probability(&law, NULL, 0, s->points[i]) - (i + 0.5) / s->count;
        sum += difference * difference;
    }
    return sum / s->count;
}

/* One descent of the simplex from there; returns the value reached and leaves the place in at. */
static double descend(search *s, gsl_multimin_fminimizer *minimizer, gsl_vector *at, gsl_vector *step)
{
    gsl_multimin_function function = {.f = objective, .n = 3, .params = s};
    gsl_vector_set_all(step, 0.4);
    gsl_multimin_fminimizer_set(minimizer, &function, at, step);
    for (int i = 0; i < SEARCH_STEPS_MAX; i++) {
        if (gsl_multimin_fminimizer_iterate(minimizer) != GSL_SUCCESS) break;
        if (gsl_multimin_test_size(gsl_multimin_fminimizer_size(minimizer), SEARCH_SIZE) == GSL_SUCCESS) break;
    }
    gsl_vector_memcpy(at, minimizer->x);
    return minimizer->fval;
}

static void start_at(const search *s, const ls_sample *sample, double floor_share, gsl_vector *at)
{
    double floor_s = floor_share * s->least;
    double middle = ls_sample_quantile(sample, 0.5) - floor_s;
    double low = ls_sample_quantile(sample, 0.159) - floor_s, high = ls_sample_quantile(sample, 0.841) - floor_s;
    double sigma = fmax(0.01, 0.5 * log(high / fmax(low, 1e-12)));
    bool is_gamma = s->kind == LS_LAW_GAMMA;
    gsl_vector_set(at, 0, log(floor_share / (1 - floor_share)));
    gsl_vector_set(at, 1, log(is_gamma ? middle * exp(0.5 * sigma * sigma) : middle));
    gsl_vector_set(at, 2, is_gamma ? log(fmin(800, fmax(0.05, 1 / (sigma * sigma)))) : log(sigma));
}

static ls_result fit(const ls_sample *sample, ls_law_kind kind, ls_law *law, ls_error *error)
{
    static const double floors[] = {0.1, 0.6, 0.95};
    if (sample->count < LS_FIT_SAMPLE_MIN || !(sample->values[0] > 0) ||
        !(ls_sample_quantile(sample, 0.841) > ls_sample_quantile(sample, 0.159))) {
        return ls_fail(error, LS_ERROR_INVALID, "%u values, or too many equal ones: no law can be fitted to them", sample->count);
    }
    search s = {.count = sample->count < POINTS_MAX ? sample->count : POINTS_MAX, .least = sample->values[0], .kind = kind};
    for (uint32_t i = 0; i < s.count; i++) s.points[i] = ls_sample_quantile(sample, (i + 0.5) / s.count);
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_multimin_fminimizer *minimizer = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 3);
    gsl_vector *at = gsl_vector_alloc(3), *step = gsl_vector_alloc(3);
    ls_result result = minimizer != NULL && at != NULL && step != NULL ? LS_OK : ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    double best = INFINITY;
    for (size_t i = 0; result == LS_OK && i < sizeof floors / sizeof floors[0]; i++) {
        start_at(&s, sample, floors[i], at);
        descend(&s, minimizer, at, step);
        double reached = descend(&s, minimizer, at, step); /* once more: a simplex may collapse early */
        if (reached < best) *law = law_at(&s, at);
        if (reached < best) best = reached;
    }
    if (step != NULL) gsl_vector_free(step);
    if (at != NULL) gsl_vector_free(at);
    if (minimizer != NULL) gsl_multimin_fminimizer_free(minimizer);
    gsl_set_error_handler(before);
    return result;
}

ls_result ls_fit_lognormal(const ls_sample *sample, ls_law *law, ls_error *error)
{
    return fit(sample, LS_LAW_LOGNORMAL, law, error);
}

ls_result ls_fit_gamma(const ls_sample *sample, ls_law *law, ls_error *error)
{
    return fit(sample, LS_LAW_GAMMA, law, error);
}

void ls_fit_tail(const ls_sample *sample, ls_law *law)
{
    if (sample->count < LS_FIT_TAIL_MIN) return;
    if (ls_fit_quantile(law, NULL, 0, 0.999) >= 0.75 * ls_sample_quantile(sample, 0.999)) return;
    double scale = ls_sample_quantile(sample, 1 - TAIL_SHARE), sum = 0;
    uint32_t beyond = 0;
    for (uint32_t i = sample->count; i-- > 0 && sample->values[i] > scale; beyond++) sum += log(sample->values[i] / scale);
    if (beyond < 5 || !(sum > 0)) return;
    law->tail_share = TAIL_SHARE;
    law->tail_scale_s = scale;
    law->tail_shape = fmin(TAIL_SHAPE_MAX, fmax(TAIL_SHAPE_MIN, beyond / sum));
}

uint32_t ls_fit_table(const ls_sample *sample, double table[LS_FIT_TABLE_MAX])
{
    uint32_t count = sample->count < LS_FIT_TABLE_MAX ? sample->count : LS_FIT_TABLE_MAX;
    for (uint32_t i = 0; i < count; i++) {
        table[i] = count == 1 ? sample->values[0] : ls_sample_quantile(sample, (double)i / (count - 1));
    }
    return count;
}

static ls_law constant(double value_s)
{
    return (ls_law){.law = LS_LAW_CONSTANT, .scale_s = value_s, .tail_shape = 2, .draws = 1};
}

ls_law ls_fit_formula(const ls_fit *f)
{
    if (isnan(f->lognormal_distance)) return constant(f->table_count > 0 ? f->table[f->table_count / 2] : 0);
    return f->lognormal_distance <= f->gamma_distance ? f->lognormal : f->gamma;
}

ls_result ls_fit_all(const ls_sample *sample, ls_fit *f, ls_error *error)
{
    *f = (ls_fit){.count = sample->count, .lognormal_distance = NAN, .gamma_distance = NAN};
    f->table_count = ls_fit_table(sample, f->table);
    f->law = f->table_count < 2 ? constant(f->table_count > 0 ? f->table[0] : 0)
                                : (ls_law){.law = LS_LAW_EMPIRICAL, .tail_shape = 2, .draws = 1};
    f->distance = f->empirical_distance = ls_fit_distance(sample, &f->law, f->table, f->table_count);
    ls_result result = ls_fit_lognormal(sample, &f->lognormal, error);
    if (result == LS_ERROR_INVALID) return LS_OK;
    if (result == LS_OK) result = ls_fit_gamma(sample, &f->gamma, error);
    if (result != LS_OK) return result;
    ls_fit_tail(sample, &f->lognormal);
    ls_fit_tail(sample, &f->gamma);
    f->lognormal_distance = ls_fit_distance(sample, &f->lognormal, NULL, 0);
    f->gamma_distance = ls_fit_distance(sample, &f->gamma, NULL, 0);
    double nearer = fmin(f->lognormal_distance, f->gamma_distance);
    if (nearer > LS_FIT_DISTANCE_MAX) return LS_OK;
    f->law = ls_fit_formula(f);
    f->distance = nearer;
    return LS_OK;
}

ls_result ls_fit_slope(const double *x, const double *y, uint32_t count, double *intercept, double *slope, ls_error *error)
{
    double *weights = ls_allocate_array(count, sizeof *weights);
    bool differ = false, positive = true;
    if (weights == NULL && count > 0) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        positive = positive && y[i] > 0;
        differ = differ || x[i] != x[0];
        weights[i] = 1 / (y[i] * y[i]);
    }
    double c00, c01, c11, chisq;
    if (differ && positive) gsl_fit_wlinear(x, 1, weights, 1, y, 1, count, intercept, slope, &c00, &c01, &c11, &chisq);
    ls_free(weights);
    if (!differ || !positive) return ls_fail(error, LS_ERROR_INVALID, "a slope needs two different sizes and times above zero");
    if (*slope < 0) *slope = 0;
    return LS_OK;
}
