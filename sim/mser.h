/* mser.h - where does the transient of a time series end? The MSER-5 rule (White, Cobb, Spratt, 2000). */
#ifndef LS_MSER_H
#define LS_MSER_H

#include <stdint.h>

/* Returns how many leading values to drop: the truncation, a multiple of 5, that minimises the standard error of the mean of
 * what is left, over batches of five values; at most half of the series, 0 for fewer than 10 values. */
uint32_t ls_mser5(const double *values, uint32_t count);

#endif
