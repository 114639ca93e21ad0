/* histogram.h - a log-linear histogram of non-negative integers (nanoseconds, bytes) with a stated relative error.
 *
 * Values below 128 have a bucket each. From there on every octave [2^e, 2^(e+1)) is cut into 64 buckets of one width,
 * so a bucket is at most 1/64 of its lower end wide, and its midpoint, which stands for it in quantiles, is within
 * 1/128 of every value in it. Count, sum, least and greatest value are exact. (The layout is that of G. Tene's
 * HdrHistogram.)
 *
 * Memory is one counter a bucket for the octaves between the least and the greatest value seen: 8 octaves take 4 KiB,
 * the whole int64 range 29 KiB, an empty histogram nothing. An all-zero ls_histogram is a valid empty one.
 */
#ifndef LS_HISTOGRAM_H
#define LS_HISTOGRAM_H

#include "manifest/base.h"

enum {
    LS_HISTOGRAM_SUB_BITS = 6,
    LS_HISTOGRAM_SUB_BUCKETS = 1 << LS_HISTOGRAM_SUB_BITS /* buckets an octave: the relative width is 1 in so many */
};

#define LS_HISTOGRAM_RELATIVE_ERROR                                                                                    \
    (0.5 / LS_HISTOGRAM_SUB_BUCKETS) /* of a quantile against the true value of its rank */

/* The fields are the functions' own; copy one only with ls_histogram_merge into an empty one. */
typedef struct ls_histogram {
    uint64_t *counts; /* of the buckets of octaves first_octave .. first_octave + octaves - 1 */
    uint32_t first_octave;
    uint32_t octaves;
    uint64_t count;
    uint64_t sum_low; /* 128-bit sum */
    uint64_t sum_high;
    int64_t minimum;
    int64_t maximum;
} ls_histogram;

/* Makes an empty histogram of any memory; allocates nothing. */
void ls_histogram_init(ls_histogram *histogram);

/* Frees what it holds; it is then empty and may be used again. */
void ls_histogram_clear(ls_histogram *histogram);

/* Counts a value, once or n times. LS_ERROR_INVALID when the value is negative, LS_ERROR_LIMIT when the count would
 * pass 2^64 - 1, LS_ERROR_MEMORY; the histogram is then unchanged. */
ls_result ls_histogram_record(ls_histogram *histogram, int64_t value);
ls_result ls_histogram_record_n(ls_histogram *histogram, int64_t value, uint64_t n);

/* Adds all that `from` has counted: the same as recording its values here. Errors as above. from may be histogram. */
ls_result ls_histogram_merge(ls_histogram *histogram, const ls_histogram *from);

/* How many values; their exact sum and mean, rounded once to double (mean of nothing: NaN); least and greatest, exact
 * (of nothing: 0). */
uint64_t ls_histogram_count(const ls_histogram *histogram);
double ls_histogram_sum(const ls_histogram *histogram);
double ls_histogram_mean(const ls_histogram *histogram);
int64_t ls_histogram_minimum(const ls_histogram *histogram);
int64_t ls_histogram_maximum(const ls_histogram *histogram);

/* The value of rank ceil(q * count), at least 1, in ascending order (nearest rank), as the midpoint of its bucket,
 * rounded down, and not outside the least and the greatest value; the first and the last rank are exact. q is clamped
 * to [0, 1], NaN counts as 0; of nothing: 0. A product q * count within 2 units in the last place above an integer
 * counts as that integer, so that 0.07 of 100 is rank 7. */
int64_t ls_histogram_quantile(const ls_histogram *histogram, double q);

/* A bucket that holds something: values low .. high inclusive, count of them. */
typedef struct ls_histogram_bucket {
    int64_t low;
    int64_t high;
    uint64_t count;
} ls_histogram_bucket;

/* The buckets that hold something, in ascending order: start with *cursor 0; false when there are no more. */
bool ls_histogram_next(const ls_histogram *histogram, uint32_t *cursor, ls_histogram_bucket *bucket);

#endif
