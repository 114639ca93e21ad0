/* tuner.h - finds the best parameters of a commit policy, and not for one wish but for all: the Pareto front of delay and requests.
 *
 * A policy compared at its defaults is compared at somebody's taste. The tuner searches its declared parameters for every weighing
 *     J = (1 - q) ln(mean publish delay) + q ln(requests for manifests a second) + c (conflict share),   q = 0, 1/4, 1/2, 3/4, 1
 * (logarithms, so that a weight trades per cent for per cent), under uncertainty:
 *   start     the defaults and a Sobol sequence over the box of the ranges, one replication each;
 *   halving   the better half for each weighing, by ranks taken in turn, gets twice as many replications, twice over (successive
 *             halving: Karnin, Koren, Somekh 2013; Jamieson, Talwalkar 2016);
 *   refine    around the best of each weighing, normal steps in the box, their width halved every round.
 * All candidates meet the same random numbers: replication r of one is replication r of another. A candidate that publishes less
 * than 95 % of what is offered, or whose run failed, ranks behind all that do: its delays are of the few that got through.
 * What is searched: parameters with a default other than 0 whose names do not begin with "initial_" (what serves before the first
 * attempt) or "resubmit" and that are no retry budget, unless the caller names them; on a logarithmic scale within a factor of
 * 100 of the default, linear where the range is within 0 .. 1, never outside the declared range.
 * The estimates of the winners are flattered by the search that chose them: run them anew on another seed before quoting them
 * (`lakestream tune` writes a spec for just that).
 */
#ifndef LS_TUNER_H
#define LS_TUNER_H

#include "experiments/pool.h"

typedef struct ls_tuned_range {
    const char *parameter;
    double low, high;
} ls_tuned_range;

typedef struct ls_tuner_config {
    const ls_scenario *scenario; /* with the policy to tune; its parameters in force are the first candidate */
    uint64_t seed;
    double conflict_weight;      /* c */
    uint32_t candidates;         /* of the start; at least 4 */
    uint32_t rounds;             /* of refinement */
    const ls_tuned_range *ranges; /* if any are given, these parameters alone are searched */
    uint32_t range_count;
    uint32_t jobs;
    ls_run_function run;
    void *run_context;
} ls_tuner_config;

typedef struct ls_candidate {
    double values[LS_POLICY_PARAMETERS_MAX];
    uint32_t replications; /* behind the means below */
    bool feasible;
    bool front;            /* no other with as many replications has both less delay and fewer requests */
    double delay_s, requests_per_s, conflict_share, published_share; /* means */
} ls_candidate;

#define LS_TUNER_WEIGHINGS 5u

typedef struct ls_tuning {
    ls_candidate *candidates; /* owned; in order of creation */
    uint32_t count;
    uint32_t best[LS_TUNER_WEIGHINGS]; /* index for q = 0, 1/4, 1/2, 3/4, 1 */
    uint64_t runs;
} ls_tuning;

/* Is the parameter searched when no ranges are given? */
bool ls_tuner_searches(const ls_policy_parameter *parameter);

/* The same config gives the same tuning, whatever `jobs`. LS_ERROR_INVALID for a policy without parameters to search, or an
 * unknown one in ranges; LS_ERROR_MEMORY, LS_ERROR_IO. Free tuning->candidates with ls_free. */
ls_result ls_tune(const ls_tuner_config *config, ls_tuning *tuning, ls_error *error);

#endif
