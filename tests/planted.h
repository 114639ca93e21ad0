/* planted.h - a results database with rows planted by hand, for tests of what is computed from results. */
#ifndef LS_TEST_PLANTED_H
#define LS_TEST_PLANTED_H

#include "experiments/results.h"

/* A new results file of that name (in the tests' folder) with the spec parsed in the small vocabulary and one run of
 * each point a replication: means[2 * point] is its speed, means[2 * point + 1] its delay (NaN: absent); two
 * replications lie half a unit below and above the mean. The caller closes it. The file's date is fixed. */
ls_results *ls_planted_results(const char *file, const char *name, const char *spec_text, const double *means,
                               uint32_t points);

/* The same, loaded; the caller frees it. */
ls_stored_experiment *ls_planted_experiment(const char *spec_text, const double *means, uint32_t points);

#endif
