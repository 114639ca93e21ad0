/* statistics.c - the formulas of statistics.h; quantiles and tails of Student's t come from GSL. */
#include "experiments/statistics.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

double ls_student_quantile(double confidence, double freedom)
{
    return gsl_cdf_tdist_Pinv(0.5 + confidence / 2.0, freedom);
}

ls_estimate ls_estimate_of(const double *values, uint64_t count, double confidence)
{
    ls_estimate estimate = {.count = count, .mean = NAN, .deviation = NAN, .half_width = NAN};
    if (count == 0) return estimate;
    /* Welford's recurrence: no cancellation when the spread is small beside the mean. */
    double mean = 0.0, squares = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        double step = values[i] - mean;
        mean += step / (double)(i + 1);
        squares += step * (values[i] - mean);
    }
    estimate.mean = mean;
    if (count < 2) return estimate;
    double freedom = (double)(count - 1);
    estimate.deviation = sqrt(squares / freedom);
    estimate.half_width = ls_student_quantile(confidence, freedom) * estimate.deviation / sqrt((double)count);
    return estimate;
}

ls_difference ls_paired_difference(const double *treatment, const double *baseline, uint64_t count, double confidence)
{
    double mean = 0.0, squares = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        double difference = treatment[i] - baseline[i];
        double step = difference - mean;
        mean += step / (double)(i + 1);
        squares += step * (difference - mean);
    }
    ls_difference result = {{count, count > 0 ? mean : NAN, NAN, NAN}, NAN};
    if (count < 2) return result;
    double freedom = (double)(count - 1);
    double error = sqrt(squares / freedom / (double)count);
    result.estimate.deviation = sqrt(squares / freedom);
    result.estimate.half_width = ls_student_quantile(confidence, freedom) * error;
    if (error > 0.0) {
        result.p_value = 2.0 * gsl_cdf_tdist_Q(fabs(mean) / error, freedom);
    } else if (!isnan(mean)) {
        result.p_value = mean == 0.0 ? 1.0 : 0.0;
    }
    return result;
}

ls_difference ls_welch_difference(const ls_estimate *treatment, const ls_estimate *baseline, double confidence)
{
    uint64_t least = treatment->count < baseline->count ? treatment->count : baseline->count;
    ls_difference result = {{least, treatment->mean - baseline->mean, NAN, NAN}, NAN};
    if (least < 2) return result;
    double n = (double)treatment->count, m = (double)baseline->count, mean = result.estimate.mean;
    double left = treatment->deviation * treatment->deviation / n;
    double right = baseline->deviation * baseline->deviation / m;
    double error = sqrt(left + right);
    if (error > 0.0) {
        /* As shares of their sum: the squares of tiny variances would vanish. */
        double share = left / (left + right);
        double freedom = 1.0 / (share * share / (n - 1.0) + (1.0 - share) * (1.0 - share) / (m - 1.0));
        result.estimate.half_width = ls_student_quantile(confidence, freedom) * error;
        result.p_value = 2.0 * gsl_cdf_tdist_Q(fabs(mean) / error, freedom);
    } else if (!isnan(mean)) {
        double orders = exp(lgamma(n + m + 1.0) - lgamma(n + 1.0) - lgamma(m + 1.0));
        result.estimate.half_width = 0.0;
        result.p_value = mean == 0.0 ? 1.0 : 2.0 / orders;
    }
    return result;
}

static int by_value(const void *left, const void *right)
{
    const double *const *a = left, *const *b = right;
    return (**a > **b) - (**a < **b);
}

ls_result ls_holm_adjust(double *p_values, uint64_t count)
{
    if (count == 0) return LS_OK;
    double **sorted = ls_allocate_array(count, sizeof *sorted);
    if (sorted == NULL) return LS_ERROR_MEMORY;
    uint64_t tests = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!isnan(p_values[i])) sorted[tests++] = &p_values[i];
    }
    qsort(sorted, tests, sizeof *sorted, by_value);
    double largest = 0.0;
    for (uint64_t i = 0; i < tests; i++) {
        largest = fmax(largest, fmin(1.0, *sorted[i] * (double)(tests - i)));
        *sorted[i] = largest;
    }
    ls_free(sorted);
    return LS_OK;
}

static double mean_of(const double *values, uint64_t count)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

ls_estimate ls_batch_means(const double *series, uint64_t count, uint64_t batches, double confidence)
{
    ls_estimate nothing = {batches, NAN, NAN, NAN};
    if (batches < 2 || count < batches) return nothing;
    double *means = ls_allocate_array(batches, sizeof *means);
    if (means == NULL) return nothing;
    uint64_t length = count / batches, skipped = count - length * batches;
    for (uint64_t b = 0; b < batches; b++) means[b] = mean_of(series + skipped + b * length, length);
    ls_estimate estimate = ls_estimate_of(means, batches, confidence);
    ls_free(means);
    return estimate;
}

bool ls_precise_enough(const double *values, uint64_t count, double relative_half_width, double confidence)
{
    ls_estimate estimate = ls_estimate_of(values, count, confidence);
    return estimate.half_width <= relative_half_width * fabs(estimate.mean); /* false when either is NaN */
}
