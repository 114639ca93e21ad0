/* mser.c - MSER-5 in one backward pass over the batch means (see mser.h). */
#include "sim/mser.h"

#define BATCH 5u

static double batch_mean(const double *values, uint32_t batch)
{
    double sum = 0;
    for (uint32_t i = 0; i < BATCH; i++) sum += values[batch * BATCH + i];
    return sum / BATCH;
}

uint32_t ls_mser5(const double *values, uint32_t count)
{
    uint32_t batches = count / BATCH, best = 0;
    if (batches < 2) return 0;
    double mean = 0, squares = 0, least = -1; /* Welford's update, from the last batch backwards */
    for (uint32_t left = 1; left <= batches; left++) {
        uint32_t first = batches - left;
        double value = batch_mean(values, first), delta = value - mean;
        mean += delta / left;
        squares += delta * (value - mean);
        if (first > batches / 2) continue;
        double error = squares / ((double)left * left);
        if (least < 0 || error <= least) {
            least = error;
            best = first;
        }
    }
    return best * BATCH;
}
