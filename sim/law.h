/* law.h - latency laws: how long a request takes, as a distribution with at most two parts.
 *
 *   value = floor_s + body            with probability 1 - tail_share
 *   value = Pareto(tail_scale_s, tail_shape) (at least tail_scale_s)   with probability tail_share
 *
 * body by law:  constant       scale_s
 *               exponential    mean scale_s
 *               lognormal      scale_s * exp(shape * Z): median scale_s, sigma shape; with floor: shifted lognormal
 *               gamma          shape k = shape, mean scale_s
 *               folded-normal  |N(scale_s, shape_s)| with standard deviation shape (seconds)
 *               uniform        U(0, 2 * scale_s)
 *               empirical      quantiles read from `file` (one value in seconds a line, ascending), linear between them
 * The whole is the sum of `draws` independent values (AWS's simulator has two messages a trip).
 */
#ifndef LS_LAW_H
#define LS_LAW_H

#include "manifest/random.h"
#include "sim/option.h"

typedef enum ls_law_kind {
    LS_LAW_CONSTANT = 0,
    LS_LAW_EXPONENTIAL,
    LS_LAW_LOGNORMAL,
    LS_LAW_GAMMA,
    LS_LAW_FOLDED_NORMAL,
    LS_LAW_UNIFORM,
    LS_LAW_EMPIRICAL
} ls_law_kind;

#define LS_LAW_CHOICES "constant exponential lognormal gamma folded-normal uniform empirical"

typedef struct ls_law {
    uint32_t law; /* ls_law_kind */
    double floor_s;
    double scale_s;
    double shape;
    double tail_share;
    double tail_scale_s;
    double tail_shape;
    uint64_t draws;
    char file[LS_OPTION_TEXT_BYTES]; /* empirical only */
} ls_law;

/* A law made ready for drawing: validated, its file read, its table computed. Immutable until released. */
typedef struct ls_law_sampler {
    ls_law law;
    double *table; /* empirical: quantiles, ascending; gamma: log quantile and slope at each node (law.c) */
    uint32_t table_count;
} ls_law_sampler;

#define LS_LAW_DRAWS_MAX 64u
#define LS_LAW_MAX_NS    (INT64_C(1) << 53) /* longer draws are cut to this (104 days), so that times cannot overflow */

/* Checks the law and makes its sampler (draws 0 counts as 1; gamma's shape must lie in 0.01 .. 1e6). A file may hold
 * blank lines and lines that begin with #. LS_ERROR_INVALID: a setting out of range; LS_ERROR_IO: the file cannot be
 * read; LS_ERROR_CORRUPT: it is empty, or a line is no number, negative or smaller than its predecessor (error says
 * which). On failure there is nothing to release. */
ls_result ls_law_prepare(const ls_law *law, ls_law_sampler *sampler, ls_error *error);
void ls_law_release(ls_law_sampler *sampler); /* NULL and a zeroed sampler are allowed */

/* One value of the law. Takes exactly `draws` values from the stream, one uniform a draw, by inversion: a greater
 * uniform gives a greater value (folded-normal excepted), the tail lies at the upper end. Two laws drawn from copies of
 * one stream are therefore as alike as they can be. */
int64_t ls_law_draw_ns(const ls_law_sampler *sampler, ls_random *random);
double ls_law_draw_s(const ls_law_sampler *sampler, ls_random *random); /* before rounding and cutting */

/* The same draw, cut at share of its way (0 .. 1): *before_ns is what lies before the cut. With several draws the cut counts
 * draws: share 0.5 of two messages is the end of the first message, not half of the sum. */
int64_t ls_law_draw_split_ns(const ls_law_sampler *sampler, ls_random *random, double share, int64_t *before_ns);

/* The exact mean (INFINITY when a Pareto tail of shape <= 1 has a share). */
double ls_law_mean_s(const ls_law_sampler *sampler);

#endif
