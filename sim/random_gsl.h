/* random_gsl.h - our counter-based streams as a GSL generator, so that GSL's distributions can be drawn from them. */
#ifndef LS_RANDOM_GSL_H
#define LS_RANDOM_GSL_H

#include "manifest/random.h"

#include <gsl/gsl_rng.h>

/* The generator type: its state is one ls_random, its integers are the upper 32 bits of ls_random_next, its doubles equal
 * ls_random_uniform. gsl_rng_set(seed) opens the stream (seed, 0, LS_RANDOM_TEST, 0). */
extern const gsl_rng_type *const ls_random_gsl_type;

/* Fills *generator so that it draws from *stream (borrowed, advanced by each draw). Nothing is allocated; do not gsl_rng_free. */
void ls_random_gsl_wrap(gsl_rng *generator, ls_random *stream);

#endif
