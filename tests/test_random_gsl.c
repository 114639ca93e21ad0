/* test_random_gsl.c - the same stream through GSL gives the same numbers, and GSL's distributions come out right. */
#include "sim/random_gsl.h"
#include "tests/suite.h"

#include <gsl/gsl_randist.h>
#include <math.h>

static void test_same_values(void)
{
    ls_random direct = ls_random_open(4, 2, LS_RANDOM_TEST, 7), wrapped = direct;
    gsl_rng generator;
    ls_random_gsl_wrap(&generator, &wrapped);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT_EQUAL(gsl_rng_uniform(&generator), ls_random_uniform(&direct));
        CU_ASSERT_EQUAL(gsl_rng_get(&generator), ls_random_next(&direct) >> 32);
    }
    CU_ASSERT_EQUAL(direct.index, wrapped.index);
}

static void test_allocated_generator(void)
{
    gsl_rng *generator = gsl_rng_alloc(ls_random_gsl_type);
    CU_ASSERT_PTR_NOT_NULL_FATAL(generator);
    gsl_rng_set(generator, 11);
    ls_random direct = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    CU_ASSERT_EQUAL(gsl_rng_uniform(generator), ls_random_uniform(&direct));
    gsl_rng_free(generator);
}

/* Gamma(shape 3, scale 2): mean 6, variance 12; within five standard errors. */
static void test_gamma_moments(void)
{
    enum { N = 200000 };
    ls_random stream = ls_random_open(5, 0, LS_RANDOM_TEST, 0);
    gsl_rng generator;
    ls_random_gsl_wrap(&generator, &stream);
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double x = gsl_ran_gamma(&generator, 3, 2);
        sum += x;
        squares += x * x;
    }
    double mean = sum / N;
    CU_ASSERT_DOUBLE_EQUAL(mean, 6.0, 5 * sqrt(12.0 / N));
    CU_ASSERT_DOUBLE_EQUAL(squares / N - mean * mean, 12.0, 5 * 12.0 * sqrt(4.0 / N));
}

LS_SUITE(random_gsl, {"same values", test_same_values}, {"allocated generator", test_allocated_generator},
         {"gamma moments", test_gamma_moments})
