/* fuzz_world.h - random small worlds by seed, run under every check there is, and a failing one made small.
 *
 * A seed stands for a scenario: 1 to 8 producers, any policy or preset, layout, discovery, store and mix of faults, some
 * seconds of production, then a drain (sim/world.h). Running it asserts safety at every version created, and liveness and
 * completeness at the end. A scenario that fails is shrunk greedily: every simplification that leaves it failing stays.
 * What remains is an ordinary scenario, which `lakestream run` repeats under the same seed.
 */
#ifndef LS_FUZZ_WORLD_H
#define LS_FUZZ_WORLD_H

#include "sim/scenario.h"

/* The scenario that a seed stands for. A pure function of the seed and of the tables of policies and presets. */
ls_result ls_fuzz_draw(uint64_t seed, ls_scenario *scenario, ls_error *error);

/* Runs a scenario under its seed. LS_OK: nothing wrong. LS_ERROR_MEMORY says nothing about the world. Anything else is a
 * finding, explained by error. watcher may be NULL. */
ls_result ls_fuzz_run(const ls_scenario *scenario, uint64_t seed, const ls_simulation_watcher *watcher, ls_error *error);

/* Makes a failing scenario small. It is changed in place and fails still; error tells how; *runs (may be NULL) how many
 * scenarios were tried, at most most_runs. Returns the result of the last failing run (LS_OK if the scenario does not fail at all). */
ls_result ls_fuzz_shrink(ls_scenario *scenario, uint64_t seed, const ls_simulation_watcher *watcher, uint32_t most_runs,
                         uint32_t *runs, ls_error *error);

#endif
