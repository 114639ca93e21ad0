/* histogram.c - log-linear buckets (see histogram.h).
 *
 * Buckets are numbered through: value v < 64 is bucket v; otherwise, with e the exponent of v's highest bit, octave
 * o = e - 5 and bucket o * 64 + (v >> (e - 6)) - 64. "Octave" 0 is thus 0 .. 63 and octave 1 is 64 .. 127, both of
 * width 1; the last, of 2^62, is octave 57.
 */
#include "sim/histogram.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { SUB_BITS = LS_HISTOGRAM_SUB_BITS, SUB_BUCKETS = LS_HISTOGRAM_SUB_BUCKETS };

static uint32_t octave_of(int64_t value)
{
    if (value < SUB_BUCKETS) return 0;
    return 63u - (uint32_t)__builtin_clzll((uint64_t)value) - SUB_BITS + 1;
}

static uint32_t bucket_of(int64_t value)
{
    uint32_t octave = octave_of(value);
    if (octave == 0) return (uint32_t)value;
    return octave * SUB_BUCKETS + (uint32_t)((uint64_t)value >> (octave - 1)) - SUB_BUCKETS;
}

static int64_t low_of(uint32_t bucket)
{
    uint32_t octave = bucket / SUB_BUCKETS, sub = bucket % SUB_BUCKETS;
    return octave == 0 ? (int64_t)sub : (int64_t)(sub + SUB_BUCKETS) << (octave - 1);
}

static int64_t width_of(uint32_t bucket)
{
    uint32_t octave = bucket / SUB_BUCKETS;
    return octave == 0 ? 1 : INT64_C(1) << (octave - 1);
}

void ls_histogram_init(ls_histogram *histogram)
{
    *histogram = (ls_histogram){.counts = NULL};
}

void ls_histogram_clear(ls_histogram *histogram)
{
    ls_free(histogram->counts);
    ls_histogram_init(histogram);
}

/* Makes room for octaves first .. last. */
static bool cover(ls_histogram *histogram, uint32_t first, uint32_t last)
{
    if (histogram->octaves > 0) {
        uint32_t held_last = histogram->first_octave + histogram->octaves - 1;
        if (first >= histogram->first_octave && last <= held_last) return true;
        if (first > histogram->first_octave) first = histogram->first_octave;
        if (last < held_last) last = held_last;
    }
    uint32_t octaves = last - first + 1;
    uint64_t *counts = ls_allocate_array((size_t)octaves * SUB_BUCKETS, sizeof *counts);
    if (counts == NULL) return false;
    if (histogram->octaves > 0) {
        memcpy(counts + (size_t)(histogram->first_octave - first) * SUB_BUCKETS, histogram->counts,
               (size_t)histogram->octaves * SUB_BUCKETS * sizeof *counts);
    }
    ls_free(histogram->counts);
    histogram->counts = counts;
    histogram->first_octave = first;
    histogram->octaves = octaves;
    return true;
}

static uint64_t *counter_of(const ls_histogram *histogram, uint32_t bucket)
{
    return &histogram->counts[bucket - histogram->first_octave * SUB_BUCKETS];
}

static wide sum_of(const ls_histogram *histogram)
{
    return (wide)histogram->sum_high << 64 | histogram->sum_low;
}

/* Adds to the exact figures; the buckets are the caller's. */
static void account(ls_histogram *histogram, uint64_t n, wide sum, int64_t minimum, int64_t maximum)
{
    if (histogram->count == 0 || minimum < histogram->minimum) histogram->minimum = minimum;
    if (histogram->count == 0 || maximum > histogram->maximum) histogram->maximum = maximum;
    histogram->count += n;
    sum += sum_of(histogram);
    histogram->sum_low = (uint64_t)sum;
    histogram->sum_high = (uint64_t)(sum >> 64);
}

ls_result ls_histogram_record_n(ls_histogram *histogram, int64_t value, uint64_t n)
{
    if (value < 0) return LS_ERROR_INVALID;
    if (n == 0) return LS_OK;
    if (histogram->count > UINT64_MAX - n) return LS_ERROR_LIMIT;
    uint32_t octave = octave_of(value);
    if (!cover(histogram, octave, octave)) return LS_ERROR_MEMORY;
    *counter_of(histogram, bucket_of(value)) += n;
    account(histogram, n, (wide)(uint64_t)value * n, value, value);
    return LS_OK;
}

ls_result ls_histogram_record(ls_histogram *histogram, int64_t value)
{
    return ls_histogram_record_n(histogram, value, 1);
}

ls_result ls_histogram_merge(ls_histogram *histogram, const ls_histogram *from)
{
    if (from->count == 0) return LS_OK;
    if (histogram->count > UINT64_MAX - from->count) return LS_ERROR_LIMIT;
    if (!cover(histogram, octave_of(from->minimum), octave_of(from->maximum))) return LS_ERROR_MEMORY;
    uint32_t last = bucket_of(from->maximum);
    for (uint32_t bucket = bucket_of(from->minimum); bucket <= last; bucket++) {
        *counter_of(histogram, bucket) += *counter_of(from, bucket);
    }
    account(histogram, from->count, sum_of(from), from->minimum, from->maximum);
    return LS_OK;
}

uint64_t ls_histogram_count(const ls_histogram *histogram)
{
    return histogram->count;
}

double ls_histogram_sum(const ls_histogram *histogram)
{
    return (double)sum_of(histogram);
}

double ls_histogram_mean(const ls_histogram *histogram)
{
    if (histogram->count == 0) return NAN;
    wide whole = sum_of(histogram) / histogram->count, rest = sum_of(histogram) % histogram->count;
    return (double)whole + (double)rest / (double)histogram->count;
}

int64_t ls_histogram_minimum(const ls_histogram *histogram)
{
    return histogram->minimum;
}

int64_t ls_histogram_maximum(const ls_histogram *histogram)
{
    return histogram->maximum;
}

/* ceil(q * count) in 1 .. count, forgiving what rounding of q and of the product may add. */
static uint64_t rank_of(double q, uint64_t count)
{
    if (!(q > 0.0)) return 1;
    if (q >= 1.0) return count;
    double rank = ceil(q * (double)count * (1.0 - 0x1p-51));
    if (rank < 1.0) return 1;
    if (rank >= (double)count) return count;
    return (uint64_t)rank;
}

int64_t ls_histogram_quantile(const ls_histogram *histogram, double q)
{
    if (histogram->count == 0) return 0;
    uint64_t rank = rank_of(q, histogram->count), passed = 0;
    if (rank == 1) return histogram->minimum;
    if (rank == histogram->count) return histogram->maximum;
    uint32_t bucket = bucket_of(histogram->minimum);
    while ((passed += *counter_of(histogram, bucket)) < rank) bucket++;
    int64_t middle = low_of(bucket) + (width_of(bucket) - 1) / 2;
    if (middle < histogram->minimum) return histogram->minimum;
    if (middle > histogram->maximum) return histogram->maximum;
    return middle;
}

bool ls_histogram_next(const ls_histogram *histogram, uint32_t *cursor, ls_histogram_bucket *bucket)
{
    uint32_t base = histogram->first_octave * SUB_BUCKETS;
    for (; *cursor < histogram->octaves * SUB_BUCKETS; (*cursor)++) {
        if (histogram->counts[*cursor] == 0) continue;
        uint32_t number = base + (*cursor)++;
        bucket->low = low_of(number);
        bucket->high = bucket->low + (width_of(number) - 1);
        bucket->count = *counter_of(histogram, number);
        return true;
    }
    return false;
}
