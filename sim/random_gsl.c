/* random_gsl.c - see random_gsl.h. */
#include "sim/random_gsl.h"

static void set(void *state, unsigned long seed)
{
    *(ls_random *)state = ls_random_open(seed, 0, LS_RANDOM_TEST, 0);
}

static unsigned long get(void *state)
{
    return (unsigned long)(ls_random_next(state) >> 32);
}

static double get_double(void *state)
{
    return ls_random_uniform(state);
}

static const gsl_rng_type philox = {.name = "philox2x64-10", .max = 0xffffffffUL, .min = 0, .size = sizeof(ls_random),
                                    .set = set, .get = get, .get_double = get_double};

const gsl_rng_type *const ls_random_gsl_type = &philox;

void ls_random_gsl_wrap(gsl_rng *generator, ls_random *stream)
{
    generator->type = ls_random_gsl_type;
    generator->state = stream;
}
