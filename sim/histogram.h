/* histogram.h - a log-linear histogram of non-negative integers (nanoseconds, bytes) with a stated relative error.
 *
 * Values below 2^LS_HISTOGRAM_BITS are counted exactly; above, each power of two is cut into 2^(LS_HISTOGRAM_BITS - 1) equal
 * buckets, so a reported value is within 1 part in 2^LS_HISTOGRAM_BITS of the true one (HdrHistogram's layout, by Gil Tene).
 * Memory grows with the largest value seen, to 30 kB at most; an empty histogram owns none.
 */
#ifndef LS_HISTOGRAM_H
#define LS_HISTOGRAM_H

#include "manifest/base.h"

#define LS_HISTOGRAM_BITS 7u
#define LS_HISTOGRAM_RELATIVE_ERROR (1.0 / (1u << LS_HISTOGRAM_BITS))

typedef struct ls_histogram {
    uint64_t *buckets; /* owned */
    uint32_t bucket_count;
    uint64_t count;
    int64_t minimum;
    int64_t maximum;
    double sum;
} ls_histogram;

void ls_histogram_init(ls_histogram *histogram);
void ls_histogram_clear(ls_histogram *histogram);

/* Counts a value; negative ones count as 0. LS_ERROR_MEMORY leaves the histogram as it was. */
ls_result ls_histogram_record(ls_histogram *histogram, int64_t value);

/* Adds all of other's values. LS_ERROR_MEMORY leaves the histogram as it was. */
ls_result ls_histogram_merge(ls_histogram *histogram, const ls_histogram *other);

uint64_t ls_histogram_count(const ls_histogram *histogram);
double ls_histogram_mean(const ls_histogram *histogram); /* exact up to rounding; 0 when empty */

/* The value at rank max(1, ceil(q * count)), q in 0 .. 1: its bucket's middle, clamped to the least and greatest value seen,
 * which q = 0 and q = 1 give exactly. 0 when empty. */
int64_t ls_histogram_quantile(const ls_histogram *histogram, double q);

#endif
