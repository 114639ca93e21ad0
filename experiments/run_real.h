/* run_real.h - one replication of a scenario on a store that really holds bytes, in real time. */
#ifndef LS_RUN_REAL_H
#define LS_RUN_REAL_H

#include "sim/scenario.h"

/* Runs the scenario on the store at backend_address ("memory", "dir:PATH", "s3://bucket/prefix"). result and error are
 * filled as by ls_simulate; wall time is the measured time. LS_ERROR_IO when the store cannot be used. */
ls_result ls_run_real(const ls_scenario *scenario, const char *backend_address, uint64_t seed, uint64_t replication,
                      ls_run_result *result, ls_error *error);

#endif
