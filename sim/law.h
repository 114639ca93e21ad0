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

#endif
