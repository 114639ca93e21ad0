/* law.c - latency laws by inversion: one uniform a draw, closed-form means, empirical quantiles from a file (see
 * law.h).
 *
 * Inversion costs a little more than rejection but takes a fixed count of uniforms, which common random numbers need,
 * and is monotone. The gamma law has no closed inverse; GSL's iterative one costs microseconds and may call GSL's
 * aborting error handler, so the quantiles are tabulated once: y(z) = log of the quantile at the normal score z is
 * smooth, so cubic Hermite interpolation at 1/16 spacing is good to about 1e-6 relative (tests/test_law.c compares with
 * GSL).
 */
#include "sim/law.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAMMA_SCORE_MIN      (-8.5) /* beyond the smallest and greatest score that 52 bits can give (8.21) */
#define GAMMA_NODES_PER_UNIT 16
#define GAMMA_NODES          (17 * GAMMA_NODES_PER_UNIT + 1)
#define HALF_LOG_TWO_PI      0.91893853320467274178

/* In (0, 1), both ends excluded and 1 - u exact: 52 bits and the middle of their cell. */
static double open_uniform(ls_random *random)
{
    return ((double)(ls_random_next(random) >> 12) + 0.5) * 0x1p-52;
}

/* ---- gamma ---- */

/* Log of the distribution function (lower) or of the survival function of the unit-scale gamma at exp(y). */
static double gamma_log_probability(double shape, double y, bool lower)
{
    /* Far left only the first two terms of the series P(k, x) = x^k / Gamma(k + 1) (1 - k x / (k + 1) + ...) count
     * (DLMF 8.7.1); asking GSL there could underflow. */
    if (y < -30.0) {
        double log_lower = shape * y - lgamma(shape + 1.0);
        return lower ? log_lower : log1p(-exp(log_lower));
    }
    double x = exp(y);
    return log(lower ? gsl_cdf_gamma_P(x, shape, 1.0) : gsl_cdf_gamma_Q(x, shape, 1.0));
}

/* Log of the density of y = log x: x^k e^-x / Gamma(k). */
static double gamma_log_density(double shape, double y)
{
    return shape * y - exp(y) - lgamma(shape);
}

/* Solves P(exp(y)) = Phi(z) by Newton's method on log P (or log Q right of the median): both are concave in y, because
 * the density of y is log-concave, so the iteration converges from any near start. */
static double gamma_log_quantile(double shape, double z, double start)
{
    bool lower = z < 0.0;
    double target = log(lower ? gsl_cdf_ugaussian_P(z) : gsl_cdf_ugaussian_Q(z));
    double y = start;
    for (int round = 0; round < 40; round++) {
        double log_probability = gamma_log_probability(shape, y, lower);
        double slope = exp(gamma_log_density(shape, y) - log_probability) * (lower ? 1.0 : -1.0);
        double step = (target - log_probability) / slope;
        if (!(fabs(step) < 1e9)) return y;
        y += step > 2.0 ? 2.0 : step < -200.0 ? -200.0 : step;
        if (fabs(step) < 1e-13 * (1.0 + fabs(y))) return y;
    }
    return y;
}

/* dy/dz = phi(z) / density(y). */
static double gamma_log_quantile_slope(double shape, double z, double y)
{
    return exp(-0.5 * z * z - HALF_LOG_TWO_PI - gamma_log_density(shape, y));
}

static double gamma_score(int node)
{
    return GAMMA_SCORE_MIN + (double)node / GAMMA_NODES_PER_UNIT;
}

/* Fills nodes from the median outwards, each starting from its neighbour. */
static void gamma_fill(double shape, double *table)
{
    int middle = GAMMA_NODES / 2;
    for (int direction = -1; direction <= 1; direction += 2) {
        double y = log(shape) - 1.0 / (3.0 * shape + 0.1); /* near the log of the median */
        double slope = 0.0;
        for (int node = middle; node >= 0 && node < GAMMA_NODES; node += direction) {
            double z = gamma_score(node);
            y = gamma_log_quantile(shape, z, y + slope * direction / GAMMA_NODES_PER_UNIT);
            slope = gamma_log_quantile_slope(shape, z, y);
            table[2 * node] = y;
            table[2 * node + 1] = slope / GAMMA_NODES_PER_UNIT;
        }
    }
}

static double gamma_quantile(const ls_law_sampler *sampler, double z)
{
    double position = (z - GAMMA_SCORE_MIN) * GAMMA_NODES_PER_UNIT;
    int node = (int)position;
    if (node < 0) node = 0;
    if (node > GAMMA_NODES - 2) node = GAMMA_NODES - 2;
    double t = position - node, s = 1.0 - t;
    const double *left = sampler->table + 2 * node;
    double y = s * s * ((1.0 + 2.0 * t) * left[0] + t * left[1]) + t * t * ((1.0 + 2.0 * s) * left[2] - s * left[3]);
    return exp(y) * sampler->law.scale_s / sampler->law.shape;
}

/* ---- empirical ---- */

static bool is_skipped(const char *line)
{
    line += strspn(line, " \t\r\n");
    return *line == '\0' || *line == '#';
}

/* One line of a law file; previous is the value before it (0 at first). */
static ls_result parse_line(const char *path, unsigned long number, const char *line, double previous, double *value,
                            ls_error *error)
{
    char *end;
    *value = strtod(line, &end);
    int shown = (int)strcspn(line, "\r\n");
    if (end == line || end[strspn(end, " \t\r\n")] != '\0' || !isfinite(*value)) {
        return ls_fail(error, LS_ERROR_CORRUPT, "law file %s, line %lu: expected one number of seconds, found '%.*s'",
                       path, number, shown > 60 ? 60 : shown, line);
    }
    if (*value < 0.0) {
        return ls_fail(error, LS_ERROR_CORRUPT, "law file %s, line %lu: a latency cannot be negative (%g s)", path,
                       number, *value);
    }
    if (*value < previous) {
        return ls_fail(error, LS_ERROR_CORRUPT, "law file %s, line %lu: values must ascend, but %g follows %g", path,
                       number, *value, previous);
    }
    return LS_OK;
}

static ls_result append_value(ls_law_sampler *sampler, uint32_t *capacity, double value)
{
    if (sampler->table_count == *capacity) {
        if (*capacity > UINT32_MAX / 2) return LS_ERROR_LIMIT;
        uint32_t wanted = *capacity == 0 ? 256 : *capacity * 2;
        double *table = ls_reallocate(sampler->table, wanted * sizeof *table);
        if (table == NULL) return LS_ERROR_MEMORY;
        sampler->table = table;
        *capacity = wanted;
    }
    sampler->table[sampler->table_count++] = value;
    return LS_OK;
}

static ls_result read_values(FILE *file, const char *path, ls_law_sampler *sampler, ls_error *error)
{
    char line[512];
    uint32_t capacity = 0;
    double previous = 0.0;
    for (unsigned long number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        if (strchr(line, '\n') == NULL && !feof(file)) {
            return ls_fail(error, LS_ERROR_CORRUPT, "law file %s, line %lu: longer than %zu bytes", path, number,
                           sizeof line - 2);
        }
        if (is_skipped(line)) continue;
        double value;
        ls_result result = parse_line(path, number, line, previous, &value, error);
        if (result == LS_OK) result = append_value(sampler, &capacity, value);
        if (result == LS_ERROR_MEMORY || result == LS_ERROR_LIMIT) {
            return ls_fail(error, result, "law file %s, line %lu: %s", path, number, ls_result_name(result));
        }
        if (result != LS_OK) return result;
        previous = value;
    }
    if (ferror(file)) return ls_fail(error, LS_ERROR_IO, "law file %s: cannot be read: %s", path, strerror(errno));
    if (sampler->table_count == 0) {
        return ls_fail(error, LS_ERROR_CORRUPT, "law file %s: holds no value; expected one number of seconds a line",
                       path);
    }
    return LS_OK;
}

static ls_result read_file(ls_law_sampler *sampler, ls_error *error)
{
    const char *path = sampler->law.file;
    if (path[0] == '\0' || memchr(path, '\0', sizeof sampler->law.file) == NULL) {
        return ls_fail(error, LS_ERROR_INVALID, "law 'empirical' needs the name of its file in 'file'");
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) return ls_fail(error, LS_ERROR_IO, "law file %s: cannot be opened: %s", path, strerror(errno));
    ls_result result = read_values(file, path, sampler, error);
    fclose(file);
    if (result != LS_OK) ls_law_release(sampler);
    return result;
}

/* Quantiles at 0, 1/(n-1), ..., 1, linear between them. */
static double empirical_quantile(const ls_law_sampler *sampler, double probability)
{
    uint32_t last = sampler->table_count - 1;
    double position = probability * last;
    uint32_t index = (uint32_t)position;
    if (index >= last) return sampler->table[last];
    double share = position - index;
    return sampler->table[index] + share * (sampler->table[index + 1] - sampler->table[index]);
}

static double empirical_mean(const ls_law_sampler *sampler)
{
    uint32_t last = sampler->table_count - 1;
    if (last == 0) return sampler->table[0];
    double sum = 0.5 * (sampler->table[0] + sampler->table[last]);
    for (uint32_t i = 1; i < last; i++) sum += sampler->table[i];
    return sum / last;
}

/* ---- the law as a whole ---- */

static ls_result check_number(const char *name, double value, double minimum, double maximum, ls_error *error)
{
    if (value >= minimum && value <= maximum) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID, "%s is %g, expected a number from %g to %g", name, value, minimum, maximum);
}

static ls_result check_law(const ls_law *law, ls_error *error)
{
    static const double seconds_max = 1e6;
    bool has_tail = law->tail_share != 0.0;
    double shape_min = law->law == LS_LAW_GAMMA ? 0.01 : 0.0;
    double shape_max = law->law == LS_LAW_GAMMA ? 1e6 : law->law == LS_LAW_LOGNORMAL ? 20.0 : seconds_max;
    if (law->law > LS_LAW_EMPIRICAL) {
        return ls_fail(error, LS_ERROR_INVALID, "law number %u is unknown, expected one of: " LS_LAW_CHOICES, law->law);
    }
    if (law->draws > LS_LAW_DRAWS_MAX) {
        return ls_fail(error, LS_ERROR_INVALID, "draws is %llu, expected 1 to %u", (unsigned long long)law->draws,
                       LS_LAW_DRAWS_MAX);
    }
    ls_result result = check_number("floor_s", law->floor_s, 0.0, seconds_max, error);
    if (result == LS_OK) result = check_number("scale_s", law->scale_s, 0.0, seconds_max, error);
    if (result == LS_OK) result = check_number("shape", law->shape, shape_min, shape_max, error);
    if (result == LS_OK) result = check_number("tail_share", law->tail_share, 0.0, 1.0, error);
    if (result == LS_OK && has_tail) result = check_number("tail_scale_s", law->tail_scale_s, 0.0, seconds_max, error);
    if (result == LS_OK && has_tail) result = check_number("tail_shape", law->tail_shape, 0.01, 1e6, error);
    return result;
}

ls_result ls_law_prepare(const ls_law *law, ls_law_sampler *sampler, ls_error *error)
{
    ls_result result = check_law(law, error);
    if (result != LS_OK) return result;
    *sampler = (ls_law_sampler){.law = *law};
    if (sampler->law.draws == 0) sampler->law.draws = 1;
    if (law->law == LS_LAW_EMPIRICAL) return read_file(sampler, error);
    if (law->law != LS_LAW_GAMMA) return LS_OK;
    sampler->table_count = 2 * GAMMA_NODES;
    sampler->table = ls_allocate_array(sampler->table_count, sizeof *sampler->table);
    if (sampler->table == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for the table of a gamma law");
    gamma_fill(law->shape, sampler->table);
    return LS_OK;
}

void ls_law_release(ls_law_sampler *sampler)
{
    if (sampler == NULL) return;
    ls_free(sampler->table);
    sampler->table = NULL;
    sampler->table_count = 0;
}

static double body_quantile(const ls_law_sampler *sampler, double probability)
{
    const ls_law *law = &sampler->law;
    switch ((ls_law_kind)law->law) {
    case LS_LAW_CONSTANT: return law->scale_s;
    case LS_LAW_EXPONENTIAL: return -law->scale_s * log1p(-probability);
    case LS_LAW_LOGNORMAL: return law->scale_s * exp(law->shape * gsl_cdf_ugaussian_Pinv(probability));
    case LS_LAW_GAMMA: return gamma_quantile(sampler, gsl_cdf_ugaussian_Pinv(probability));
    case LS_LAW_FOLDED_NORMAL: return fabs(law->scale_s + law->shape * gsl_cdf_ugaussian_Pinv(probability));
    case LS_LAW_UNIFORM: return 2.0 * law->scale_s * probability;
    case LS_LAW_EMPIRICAL: return empirical_quantile(sampler, probability);
    }
    return 0.0;
}

static double draw_part(const ls_law_sampler *sampler, ls_random *random)
{
    const ls_law *law = &sampler->law;
    double uniform = open_uniform(random);
    double body_share = 1.0 - law->tail_share;
    if (uniform >= body_share) {
        double survival = (1.0 - uniform) / law->tail_share;
        return law->tail_scale_s * pow(survival, -1.0 / law->tail_shape);
    }
    if (law->tail_share > 0.0) uniform = fmin(uniform / body_share, 1.0 - 0x1p-53);
    return law->floor_s + body_quantile(sampler, uniform);
}

double ls_law_draw_s(const ls_law_sampler *sampler, ls_random *random)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < sampler->law.draws; i++) sum += draw_part(sampler, random);
    return sum;
}

int64_t ls_law_draw_ns(const ls_law_sampler *sampler, ls_random *random)
{
    int64_t drawn_ns = ls_nanoseconds(ls_law_draw_s(sampler, random));
    return drawn_ns < LS_LAW_MAX_NS ? drawn_ns : LS_LAW_MAX_NS;
}

int64_t ls_law_draw_split_ns(const ls_law_sampler *sampler, ls_random *random, double share, int64_t *before_ns)
{
    double place = share * (double)sampler->law.draws, before = 0.0, whole = 0.0;
    for (uint64_t i = 0; i < sampler->law.draws; i++) {
        double part = draw_part(sampler, random);
        before += part * fmin(1.0, fmax(0.0, place - (double)i));
        whole += part;
    }
    int64_t whole_ns = ls_nanoseconds(whole);
    if (whole_ns > LS_LAW_MAX_NS) whole_ns = LS_LAW_MAX_NS;
    *before_ns = ls_nanoseconds(before);
    if (*before_ns > whole_ns) *before_ns = whole_ns;
    return whole_ns;
}

/* E|N(m, s)| = s sqrt(2/pi) exp(-m^2 / 2s^2) + m erf(m / (s sqrt 2)) (Leone, Nelson, Nottingham, Technometrics 1961).
 */
static double folded_normal_mean(double mean, double deviation)
{
    if (deviation <= 0.0) return mean;
    double ratio = mean / deviation;
    return deviation * sqrt(2.0 / M_PI) * exp(-0.5 * ratio * ratio) + mean * erf(ratio / M_SQRT2);
}

static double body_mean(const ls_law_sampler *sampler)
{
    const ls_law *law = &sampler->law;
    switch ((ls_law_kind)law->law) {
    case LS_LAW_CONSTANT:
    case LS_LAW_EXPONENTIAL:
    case LS_LAW_GAMMA:
    case LS_LAW_UNIFORM: return law->scale_s;
    case LS_LAW_LOGNORMAL: return law->scale_s * exp(0.5 * law->shape * law->shape);
    case LS_LAW_FOLDED_NORMAL: return folded_normal_mean(law->scale_s, law->shape);
    case LS_LAW_EMPIRICAL: return empirical_mean(sampler);
    }
    return 0.0;
}

double ls_law_mean_s(const ls_law_sampler *sampler)
{
    const ls_law *law = &sampler->law;
    double mean = (1.0 - law->tail_share) * (law->floor_s + body_mean(sampler));
    if (law->tail_share > 0.0) {
        if (law->tail_shape <= 1.0) return INFINITY;
        mean += law->tail_share * law->tail_scale_s * law->tail_shape / (law->tail_shape - 1.0);
    }
    return (double)law->draws * mean;
}
