/* published.h - published numbers beside simulated ones.
 *
 * results/published holds small tab-separated tables: comment lines that begin with '#' and tell the source, one line
 * of column names, rows. A spec's "published" list says which column is which:
 *
 *   {"file": "tight-retry-measured.tsv",
 *    "keys": {"store": "store", "clients": "producers.count"},       column: swept key whose label it holds
 *    "where": {"policy": "immediate"},                               labels that its points have besides
 *    "metrics": {"wins_per_s": "wins_per_s",                         column: metric
 *                "win_ms_p50": {"metric": "won_put_p50_s", "factor": 1000}}}   column = factor * metric
 *
 * A row belongs to the point whose labels agree: as numbers if both are, else as text, whole or by the first word. A
 * row without a point, or a field that is no number ("nan"), gives nothing.
 */
#ifndef LS_PUBLISHED_H
#define LS_PUBLISHED_H

#include "experiments/presentation.h"
#include "experiments/results.h"
#include "experiments/text.h"

typedef struct ls_published_row {
    uint32_t source; /* index into the presentation's published tables */
    uint32_t point;  /* index into the experiment's points */
    uint32_t metric; /* index into its metric_names */
    double factor;
    double published;  /* as the table has it: in units of factor * metric */
    double simulated;  /* factor * mean */
    double half_width; /* factor * half-width; NaN with fewer than two runs */
} ls_published_row;

typedef struct ls_published_rows {
    ls_published_row *rows; /* by source, then in the order of the table, then of the metrics */
    uint32_t count;
    char **sources; /* one a published table: its comment lines, joined; "" if none */
    uint32_t source_count;
} ls_published_rows;

/* Matches all tables of a presentation in folder. LS_ERROR_INVALID when a file cannot be read or lacks a column. On
 * success free *rows with ls_published_free. */
ls_result ls_published_match(const ls_presentation *presentation, const char *folder,
                             const ls_stored_experiment *experiment, ls_published_rows *rows, ls_error *error);
void ls_published_free(ls_published_rows *rows);

/* Whether a label is what a published field, or a selector, asks for: 2 equal as text or number, 1 the first word of
 * the label, 0 neither. */
int ls_label_matches(const char *label, const char *wanted);

#endif
