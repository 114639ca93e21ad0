/* explorer.h - the driver without time: every order of events of a small world, under a budget of faults, until none is left.
 *
 * The world is real machines (producer.h, consumer.h), a store in memory, and the requests in flight. A transition serves
 * one request, gives a producer its next batch or its stop, or commits a fault. Depth-first search with a table of the
 * states' 128-bit hashes visits each state once. The promises of invariants.h are checked at every version and
 * acknowledgement; where nothing can move any more, everybody must have finished and everything be published.
 *
 * Exactness. Two states are taken for one if their hashes agree; with n states the chance that this ever hides one is below
 * n^2 / 2^129. Two reductions are always made, argued in explorer.c: a request's effect and its reply are one transition, and a
 * timer that is due fires at once. `reduced` adds those that are told there, and holds them to the search without them by the
 * set of outcomes.
 */
#ifndef LS_EXPLORER_H
#define LS_EXPLORER_H

#include "manifest/protocol.h"

#include <stdio.h>

#define LS_EXPLORER_PRODUCERS_MAX 4u
#define LS_EXPLORER_BATCHES_MAX 4u
#define LS_EXPLORER_CONSUMERS_MAX 2u
#define LS_EXPLORER_RECLAIMERS_MAX 2u
#define LS_EXPLORER_CHECKPOINTS_MAX 3u
#define LS_EXPLORER_REWINDS_MAX 2u
#define LS_EXPLORER_FAULTS_MAX 3u

typedef struct ls_explorer_config {
    uint32_t producers; /* 1 .. LS_EXPLORER_PRODUCERS_MAX */
    uint32_t batches;   /* of each producer, 0 .. LS_EXPLORER_BATCHES_MAX */
    uint32_t consumers; /* 0 .. LS_EXPLORER_CONSUMERS_MAX */
    uint32_t reclaimers; /* 0 .. LS_EXPLORER_RECLAIMERS_MAX; each makes one round, keeps the last checkpoint and one version */
    uint32_t checkpoints; /* so many may be made, of where a consumer stands */
    uint32_t rewinds;   /* so often a consumer may pin the first checkpoint and begin again there */
    bool orphans;       /* reclaimers also list the data objects and delete orphans */
    bool reduced;       /* leave out orders that make no difference (explorer.c) */
    uint32_t crashes;   /* a producer dies and is restarted; its puts in flight may land at any later point */
    uint32_t zombies;   /* a producer is restarted although it lives on */
    uint32_t ambiguous; /* a reply that is unknown, 409, or a 412 against the put's own object */
    uint32_t lingering; /* a put told as unknown that may land at any later point, or never */
    ls_layout layout;
    ls_discovery discovery;
    uint64_t states_max; /* stop there, not exhausted; 0: no limit but memory */
} ls_explorer_config;

typedef struct ls_explorer_result {
    bool exhausted;
    bool violated;
    uint64_t states;      /* different ones */
    uint64_t transitions; /* carried out */
    uint64_t ends;        /* states in which nothing moves any more */
    uint64_t outcomes;    /* different ones of those, seen as: how far the lake has come, and how each machine ended */
    uint64_t outcomes_digest; /* the same number for the same set of outcomes */
    uint32_t depth;       /* of the longest path; of the counterexample when violated */
    uint32_t *path;       /* counterexample: transition codes; owned, freed by ls_explorer_result_clear */
    uint32_t path_length;
    ls_error violation;
} ls_explorer_result;

/* Called every 65536 states. */
typedef void (*ls_explorer_progress)(void *context, const ls_explorer_result *so_far);

/* 2 producers, 2 batches, list, full, no faults. */
ls_explorer_config ls_explorer_default(void);

/* LS_OK: result says whether exhausted or violated. LS_ERROR_MEMORY, LS_ERROR_LIMIT: given up before the end; result holds the counts
 * so far. LS_ERROR_INVALID: a configuration out of bounds. */
ls_result ls_explore(const ls_explorer_config *config, ls_explorer_progress progress, void *context,
                     ls_explorer_result *result, ls_error *error);

void ls_explorer_result_clear(ls_explorer_result *result);

/* Writes configuration and path as a text file that ls_explorer_read takes: a heading, then one line a transition. LS_ERROR_IO. */
ls_result ls_explorer_write(const ls_explorer_config *config, const ls_explorer_result *result, FILE *file,
                            ls_error *error);

/* Reads such a file; *path is the caller's to free with ls_free. LS_ERROR_INVALID with the line. */
ls_result ls_explorer_read(FILE *file, ls_explorer_config *config, uint32_t **path, uint32_t *length, ls_error *error);

/* Carries out a path and narrates it to `out` (may be NULL). LS_ERROR_VIOLATED with the violation when it ends in one;
 * LS_OK when it does not; LS_ERROR_INVALID when a transition cannot be carried out. */
ls_result ls_explorer_replay(const ls_explorer_config *config, const uint32_t *path, uint32_t length, FILE *out,
                             ls_error *error);

#endif
