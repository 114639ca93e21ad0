/* export.h - a results file as a tidy table: one observation (one metric of one run) a row.
 *
 * CSV: one header line, then fields in this order
 *   experiment, seed, quick (0, 1), point (SHA-256 of the resolved scenario), position (from 0), version, backend,
 *   replication, metric, value, unit
 *   and one column for each key that any exported experiment sweeps, named by its path; empty in rows of experiments that
 *   do not sweep it.
 * Quoted after RFC 4180 (a field with comma, quote or line end stands in quotes, quotes are doubled); lines end with a
 * newline alone, which every reader of CSV takes and line tools need. Values are the shortest decimals that read back as
 * the same double; an infinite one is Inf in CSV and null in JSON.
 *
 * JSON lines: one object a line with the same members; instead of the columns of swept keys a member "parameters", an
 * object with the keys that this experiment sweeps. A label that is the decimal text of a number is a JSON number there,
 * every other one a string.
 *
 * Failed and crashed runs have no values, so no rows; `lakestream results show` counts them.
 */
#ifndef LS_EXPORT_H
#define LS_EXPORT_H

#include "experiments/results.h"

#include <stdio.h>

typedef enum ls_export_format { LS_EXPORT_CSV = 1, LS_EXPORT_JSONL } ls_export_format;

/* Checks that what the filter names exists: LS_ERROR_INVALID with what there is. So a bad filter leaves no file behind. */
ls_result ls_export_check(ls_results *results, const ls_observation_filter *filter, ls_error *error);

/* Writes the observations that pass the filter, row by row as they are read; rows gets their number. Nothing is closed.
 * LS_ERROR_IO when the file cannot be written, and what ls_results_each_observation gives. */
ls_result ls_export(ls_results *results, const ls_observation_filter *filter, ls_export_format format, FILE *file,
                    uint64_t *rows, ls_error *error);

#endif
