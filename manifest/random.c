/* random.c - Philox2x64-10 and the few variates that machines and policies need (see random.h). */
#include "manifest/random.h"

#include <math.h>

#define PHILOX_MULTIPLIER UINT64_C(0xD2B74407B1CE6E93)
#define PHILOX_WEYL UINT64_C(0x9E3779B97F4A7C15)

__extension__ typedef unsigned __int128 wide;

void ls_philox2x64(uint64_t counter0, uint64_t counter1, uint64_t key, uint64_t out[2])
{
    for (int round = 0; round < 10; round++) {
        wide product = (wide)counter0 * PHILOX_MULTIPLIER;
        counter0 = (uint64_t)(product >> 64) ^ key ^ counter1;
        counter1 = (uint64_t)product;
        key += PHILOX_WEYL;
    }
    out[0] = counter0;
    out[1] = counter1;
}

ls_random ls_random_open(uint64_t seed, uint64_t replication, ls_random_purpose purpose, uint64_t entity)
{
    uint64_t mixed[2];
    ls_philox2x64(seed, replication, UINT64_C(0x6c616b6573747265), mixed); /* "lakestre" */
    return (ls_random){.key = mixed[0],
                       .stream = ((uint64_t)purpose << 56) | (entity & UINT64_C(0x00ffffffffffffff)),
                       .index = 0};
}

uint64_t ls_random_next(ls_random *random)
{
    uint64_t out[2];
    ls_philox2x64(random->index++, random->stream, random->key, out);
    return out[0];
}

double ls_random_uniform(ls_random *random)
{
    return (double)(ls_random_next(random) >> 11) * 0x1p-53;
}

double ls_random_uniform_positive(ls_random *random)
{
    return (double)((ls_random_next(random) >> 11) + 1) * 0x1p-53;
}

uint64_t ls_random_below(ls_random *random, uint64_t count)
{
    return (uint64_t)(((wide)ls_random_next(random) * count) >> 64);
}

double ls_random_exponential(ls_random *random)
{
    return -log(ls_random_uniform_positive(random));
}

/* Inverse of the normal distribution function: P. J. Acklam's approximation (relative error 1.15e-9), then one step
 * of Halley's method against erfc, which brings it to double precision. */
static double normal_quantile(double p)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02,
                               1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                               6.680131188771972e+01, -1.328068155288572e+01};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                               -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    double x;
    double tail = p < 0.5 ? p : 1.0 - p;
    if (tail < 0.02425) {
        double q = sqrt(-2.0 * log(tail));
        x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
            ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1.0);
        if (p > 0.5) x = -x;
    } else {
        double q = p - 0.5, r = q * q;
        x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
            (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1.0);
    }
    double error = 0.5 * erfc(-x * 0.70710678118654752440) - p;
    double step = error * 2.50662827463100050242 * exp(0.5 * x * x);
    return x - step / (1.0 + 0.5 * x * step);
}

double ls_random_normal(ls_random *random)
{
    return normal_quantile(((double)(ls_random_next(random) >> 11) + 0.5) * 0x1p-53);
}
