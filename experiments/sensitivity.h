/* sensitivity.h - which assumptions carry a result: one at a time, and together over a space-filling design.
 *
 * A spec names assumptions with ranges, and one metric at one place of its experiment:
 *
 *   "sensitivity": {
 *     "metric": "publish_delay_p50_s",
 *     "at": {"policy": "dac", "manifest.initial_entries": 10000},     settings on top of base (and quick's base)
 *     "assumptions": {"batches.rate_per_s": [0.5, 2], "store.put.scale_s": [0.02, 0.2, "log"]},
 *     "samples": 64, "quick_samples": 16, "replications": 2 }
 *
 * From it a second experiment is made, <name>-sensitivity, whose points are: the nominal one; each assumption at the
 * low and at the high end of its range, the others nominal; and `samples` points of a Sobol sequence over all ranges at
 * once (uniform, or uniform in the logarithm). It is run and stored like any other.
 *
 * What comes out, by assumption: how far the metric moves at either end (the tornado; paired over replications, which
 * share their random numbers), the rank correlation over the design, and the first-order share of the metric's
 * variance: adjusted R^2 of a regression on Legendre polynomials of the assumption's rank, which is the first-order
 * term of a high-dimensional model representation (G. Li, S.-W. Wang, H. Rabitz, J. Phys. Chem. A 106 (2002) 8721-8733)
 * and estimates Sobol's first-order index. What the shares leave to 1 is interaction, noise and what the polynomials
 * miss.
 */
#ifndef LS_SENSITIVITY_H
#define LS_SENSITIVITY_H

#include "experiments/results.h"
#include "experiments/statistics.h"
#include "experiments/text.h"

#define LS_SENSITIVITY_SUFFIX          "-sensitivity"
#define LS_SENSITIVITY_ASSUMPTIONS_MAX 32u /* below the dimensions of GSL's Sobol sequence (40) */
#define LS_SENSITIVITY_SAMPLES_MAX     65536u

/* points * dimensions numbers in (0, 1): the Sobol sequence, point by point. LS_ERROR_MEMORY. */
ls_result ls_sensitivity_design(uint32_t dimensions, uint32_t points, double *unit);

/* First-order share of y's variance by x, with the 95 % interval of a bootstrap over points (fixed seed). NaN when y
 * does not vary or there are fewer than 8 points. LS_ERROR_MEMORY. */
typedef struct ls_share {
    double share;
    double low;
    double high;
} ls_share;
ls_result ls_first_order_share(const double *x, const double *y, uint32_t count, ls_share *share);

/* Spearman's rank correlation, ties by mean ranks, with the 95 % interval by Fisher's z (variance 1.06 / (n - 3):
 * Fieller, Hartley, Pearson, Biometrika 44 (1957) 470-481). NaN when x or y does not vary or there are fewer than 4
 * points. */
ls_result ls_rank_correlation(const double *x, const double *y, uint32_t count, ls_share *correlation);

/* The text of the second experiment. The caller frees it; NULL when out of memory. spec->sensitivity is there. */
char *ls_sensitivity_spec_text(const ls_spec *spec);

typedef struct ls_sensitivity_row {
    uint32_t key; /* index into the experiment's swept keys */
    const char *nominal;
    const char *low; /* labels; NULL where an end equals the nominal value */
    const char *high;
    ls_estimate at_low; /* of the change of the metric from the nominal point; NaN where low is NULL */
    ls_estimate at_high;
    ls_share share;
    ls_share correlation;
} ls_sensitivity_row;

typedef struct ls_sensitivity {
    const ls_stored_experiment *experiment; /* borrowed */
    char *metric;
    ls_estimate nominal;
    uint32_t design_points;   /* with a value */
    double explained;         /* sum of the shares */
    ls_sensitivity_row *rows; /* by the greatest change, falling */
    uint32_t count;
} ls_sensitivity;

/* Whether an experiment is a second one. */
bool ls_is_sensitivity(const char *name);

/* Analyses a stored second experiment. LS_ERROR_INVALID when it is none or has no value at the nominal point;
 * LS_ERROR_MEMORY. Free with ls_sensitivity_free. */
ls_result ls_sensitivity_analyse(const ls_stored_experiment *experiment, ls_sensitivity *sensitivity, ls_error *error);
void ls_sensitivity_free(ls_sensitivity *sensitivity);

/* Adds the analysis as the plotting table, for people, as one JSON object; and what it says in one sentence. */
void ls_sensitivity_tidy(const ls_sensitivity *sensitivity, ls_text *text);
void ls_sensitivity_table(const ls_sensitivity *sensitivity, ls_text *text);
void ls_sensitivity_json(const ls_sensitivity *sensitivity, ls_text *text);
void ls_sensitivity_sentence(const ls_sensitivity *sensitivity, ls_text *text);

#endif
