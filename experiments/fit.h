/* fit.h - laws fitted to measured times, and how well they fit.
 *
 * Three candidates: shifted lognormal, gamma, and the table of the sample's own quantiles (law 'empirical'). The first two
 * are fitted by least Cramer-von Mises distance between the law's and the sample's distribution functions (a minimum
 * distance estimate: Parr and Schucany, "Minimum distance and robust estimation", JASA 1980), which a handful of outliers
 * cannot bend as they bend moments or a likelihood; and the likelihood of a shifted lognormal has no maximum at all (it
 * grows without bound as the floor nears the least value: Hill, JASA 1963). What lies far out is left to a Pareto tail
 * (Hill's estimator, Annals of Statistics 1975) when the body alone misses the sample's 99.9 % quantile.
 *
 * Pure computation; GSL's simplex does the search.
 */
#ifndef LS_FIT_H
#define LS_FIT_H

#include "experiments/measure.h"
#include "sim/law.h"

#define LS_FIT_SAMPLE_MIN   20u   /* fewer values fit no law with a shape */
#define LS_FIT_TABLE_MAX    201u  /* rows of a quantile table: every half percent */
#define LS_FIT_TAIL_MIN     1000u /* fewer values say nothing of a tail */
#define LS_FIT_DISTANCE_MAX 0.05  /* Kolmogorov-Smirnov distance up to which a law with a formula is preferred to the table */

/* Each takes a sorted sample of positive values. LS_ERROR_INVALID: fewer than LS_FIT_SAMPLE_MIN values, or mostly equal
 * ones; LS_ERROR_MEMORY. */
ls_result ls_fit_lognormal(const ls_sample *sample, ls_law *law, ls_error *error);
ls_result ls_fit_gamma(const ls_sample *sample, ls_law *law, ls_error *error);

/* Gives the law a Pareto tail if its body reaches less than three quarters of the sample's 99.9 % quantile. */
void ls_fit_tail(const ls_sample *sample, ls_law *law);

/* The sample's quantiles at equal steps of probability, as law 'empirical' reads them, extremes included; at most
 * LS_FIT_TABLE_MAX and at most one a value. Returns how many. */
uint32_t ls_fit_table(const ls_sample *sample, double table[LS_FIT_TABLE_MAX]);

/* P(X <= value_s) of a law with one draw; of an empirical one, by its table. */
double ls_fit_probability(const ls_law *law, const double *table, uint32_t table_count, double value_s);

/* The value that a law stays below with that probability, by bisection; for tails and pictures. */
double ls_fit_quantile(const ls_law *law, const double *table, uint32_t table_count, double probability);

/* Greatest distance between the sample's distribution function and the law's (Kolmogorov-Smirnov). 0 for no sample. */
double ls_fit_distance(const ls_sample *sample, const ls_law *law, const double *table, uint32_t table_count);

/* All candidates, and which was taken. */
typedef struct ls_fit {
    uint32_t count; /* values fitted */
    ls_law lognormal, gamma;
    double lognormal_distance, gamma_distance, empirical_distance; /* NaN: could not be fitted */
    double table[LS_FIT_TABLE_MAX];
    uint32_t table_count;
    ls_law law; /* the one taken: its `file` is empty even if it is empirical */
    double distance;
} ls_fit;

/* Fits all and takes the law with a formula that lies nearer if its distance is at most LS_FIT_DISTANCE_MAX, else the
 * table. A sample that no law with a shape fits becomes a table, or a constant when it has fewer than two values. */
ls_result ls_fit_all(const ls_sample *sample, ls_fit *fit, ls_error *error);

/* The law with a formula that lies nearer, however far that is: for those who cannot keep a table. */
ls_law ls_fit_formula(const ls_fit *fit);

/* Slope of y over x by least squares of relative errors, as times over sizes ask for: y = *intercept + *slope * x. The
 * slope is not negative. LS_ERROR_INVALID: fewer than two distinct x, or a y that is not positive. */
ls_result ls_fit_slope(const double *x, const double *y, uint32_t count, double *intercept, double *slope, ls_error *error);

#endif
