/* statistics.h - output analysis of simulations, as the textbooks have it.
 *
 * Replications of one point are independent and identically distributed, so their mean has a Student t interval. Two
 * points under common random numbers are compared by the differences of equal replication numbers (paired t). Within
 * one long run observations are correlated: the simulator cuts the start-up transient by MSER-5 (sim/mser.h), and batch
 * means judge the rest. Source: A. M. Law, "Simulation Modeling and Analysis", 5th ed., chapters 9 to 11.
 *
 * Pure computation; no ownership. NaN among the inputs gives NaN results: callers leave out what does not apply.
 */
#ifndef LS_STATISTICS_H
#define LS_STATISTICS_H

#include "manifest/base.h"

typedef struct ls_estimate {
    uint64_t count;
    double mean;       /* NaN when count is 0 */
    double deviation;  /* sample standard deviation (n - 1); NaN when count < 2 */
    double half_width; /* of the Student t interval for the mean; NaN when count < 2 */
} ls_estimate;

/* The quantile of Student's t with `freedom` degrees that a two-sided interval of that confidence (0.95) needs. */
double ls_student_quantile(double confidence, double freedom);

/* Mean, deviation and interval of independent values. */
ls_estimate ls_estimate_of(const double *values, uint64_t count, double confidence);

typedef struct ls_difference {
    ls_estimate estimate; /* of the differences treatment - baseline */
    double p_value;       /* two-sided, of "the mean difference is 0"; NaN when count < 2 */
} ls_difference;

/* Paired t test: treatment[i] and baseline[i] come from the same replication. When all differences are equal the p
 * value is 1 if they are 0, else 0. */
ls_difference ls_paired_difference(const double *treatment, const double *baseline, uint64_t count, double confidence);

/* Welch's test of two independent samples, from their estimates: the difference of the means, its interval and p value, with
 * the degrees of freedom after Satterthwaite. estimate.count is the smaller count; estimate.deviation stays NaN. Samples
 * without any spread have no t: when the means agree the p value is 1, else it is that of the exact permutation test, 2 of
 * C(n + m, n) orders, for two samples that do not overlap (so two equal values against two others prove little).
 * NaN when either count is below 2. */
ls_difference ls_welch_difference(const ls_estimate *treatment, const ls_estimate *baseline, double confidence);

/* Multiplies p values for `count` tests after Holm (1979), in place: step-down, so that the chance of any false finding
 * keeps the level. NaN values are left out and stay. LS_ERROR_MEMORY leaves them as they were. */
ls_result ls_holm_adjust(double *p_values, uint64_t count);

/* Interval for the mean of a correlated series from `batches` means of equal length (what is left over at the start is
 * dropped). The estimate's count is `batches`; NaN fields when there are fewer observations than batches or fewer than
 * 2 batches. */
ls_estimate ls_batch_means(const double *series, uint64_t count, uint64_t batches, double confidence);

/* Sequential stopping: whether values, the results of replications 0 .. count-1, are enough: the interval's half-width
 * is at most relative_half_width * |mean|. NaN among them: never. */
bool ls_precise_enough(const double *values, uint64_t count, double relative_half_width, double confidence);

#endif
