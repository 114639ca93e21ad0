/* scenario_spec.h - a scenario written back as the spec that its author would have written: only what differs from the defaults,
 * the store preset and the policy's own defaults. (ls_scenario_canonical, by contrast, writes everything.) */
#ifndef LS_SCENARIO_SPEC_H
#define LS_SCENARIO_SPEC_H

#include "sim/scenario.h"

/* A spec of one point and one replication under this seed. NULL when out of memory; the caller frees it with ls_free. */
char *ls_scenario_spec(const ls_scenario *scenario, uint64_t seed, const char *title);

#endif
