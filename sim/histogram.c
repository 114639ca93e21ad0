/* histogram.c - see histogram.h; the bucket of a value is its leading bits, found without a search. */
#include "sim/histogram.h"

#include <math.h>
#include <string.h>

#define EXACT (1u << LS_HISTOGRAM_BITS)        /* values below are their own bucket */
#define HALF (1u << (LS_HISTOGRAM_BITS - 1))   /* buckets of each further power of two */
#define GROWTH 256u

static uint32_t bucket_of(uint64_t value)
{
    if (value < EXACT) return (uint32_t)value;
    uint32_t shift = 64 - LS_HISTOGRAM_BITS - (uint32_t)__builtin_clzll(value);
    return shift * HALF + (uint32_t)(value >> shift);
}

static int64_t middle_of(uint32_t bucket)
{
    if (bucket < EXACT) return bucket;
    uint32_t shift = bucket / HALF - 1;
    uint64_t low = (uint64_t)(bucket - shift * HALF) << shift;
    return (int64_t)(low + ((UINT64_C(1) << shift) - 1) / 2);
}

void ls_histogram_init(ls_histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
}

void ls_histogram_clear(ls_histogram *histogram)
{
    ls_free(histogram->buckets);
    memset(histogram, 0, sizeof *histogram);
}

static ls_result reserve(ls_histogram *histogram, uint32_t bucket_count)
{
    if (bucket_count <= histogram->bucket_count) return LS_OK;
    uint32_t rounded = (bucket_count + GROWTH - 1) / GROWTH * GROWTH;
    uint64_t *grown = ls_reallocate(histogram->buckets, rounded * sizeof *grown);
    if (grown == NULL) return LS_ERROR_MEMORY;
    memset(grown + histogram->bucket_count, 0, (rounded - histogram->bucket_count) * sizeof *grown);
    histogram->buckets = grown;
    histogram->bucket_count = rounded;
    return LS_OK;
}

static void widen(ls_histogram *histogram, int64_t minimum, int64_t maximum)
{
    if (histogram->count == 0 || minimum < histogram->minimum) histogram->minimum = minimum;
    if (histogram->count == 0 || maximum > histogram->maximum) histogram->maximum = maximum;
}

ls_result ls_histogram_record(ls_histogram *histogram, int64_t value)
{
    if (value < 0) value = 0;
    uint32_t bucket = bucket_of((uint64_t)value);
    ls_result result = reserve(histogram, bucket + 1);
    if (result != LS_OK) return result;
    widen(histogram, value, value);
    histogram->buckets[bucket]++;
    histogram->count++;
    histogram->sum += (double)value;
    return LS_OK;
}

ls_result ls_histogram_merge(ls_histogram *histogram, const ls_histogram *other)
{
    if (other->count == 0) return LS_OK;
    ls_result result = reserve(histogram, other->bucket_count);
    if (result != LS_OK) return result;
    widen(histogram, other->minimum, other->maximum);
    for (uint32_t i = 0; i < other->bucket_count; i++) histogram->buckets[i] += other->buckets[i];
    histogram->count += other->count;
    histogram->sum += other->sum;
    return LS_OK;
}

uint64_t ls_histogram_count(const ls_histogram *histogram)
{
    return histogram->count;
}

double ls_histogram_mean(const ls_histogram *histogram)
{
    return histogram->count == 0 ? 0.0 : histogram->sum / (double)histogram->count;
}

int64_t ls_histogram_quantile(const ls_histogram *histogram, double q)
{
    if (histogram->count == 0) return 0;
    double wanted = ceil(q * (double)histogram->count);
    uint64_t rank = wanted < 1.0 ? 1 : wanted >= (double)histogram->count ? histogram->count : (uint64_t)wanted;
    if (rank == histogram->count) return histogram->maximum;
    if (q <= 0.0) return histogram->minimum;
    uint64_t seen = 0;
    uint32_t bucket = 0;
    while ((seen += histogram->buckets[bucket]) < rank) bucket++;
    int64_t value = middle_of(bucket);
    if (value < histogram->minimum) return histogram->minimum;
    return value > histogram->maximum ? histogram->maximum : value;
}
