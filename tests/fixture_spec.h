/* fixture_spec.h - a small vocabulary for the tests of the experiments floor, so that they do not depend
 * on how the real tables grow: a dozen options, two store presets, three metrics. Policies are the real ones. */
#ifndef LS_FIXTURE_SPEC_H
#define LS_FIXTURE_SPEC_H

#include "experiments/spec.h"

ls_vocabulary ls_test_vocabulary(void);

/* Parses text as "demo.json"; a failed parse fails the test and gives NULL. */
ls_spec *ls_test_spec(const char *text);

/* Index of a metric of the vocabulary. */
enum { LS_TEST_SPEED = 0, LS_TEST_DELAY, LS_TEST_RARE };

#endif
