/* comparison.h - treatments against a baseline, under common random numbers.
 *
 * One swept key (usually "policy") tells the treatments apart; points that agree in all other swept keys form a
 * group. Within a group each treatment is compared with the baseline by the paired differences of equal replications:
 * they met the same arrivals and latencies, so what luck they share cancels. The p values of a group are adjusted
 * after Holm.
 */
#ifndef LS_COMPARISON_H
#define LS_COMPARISON_H

#include "experiments/results.h"
#include "experiments/statistics.h"
#include "experiments/text.h"

typedef struct ls_comparison_row {
    uint32_t group; /* from 0, in order of appearance */
    uint32_t point; /* index into the experiment's points */
    bool baseline;
    ls_estimate estimate;
    ls_difference difference; /* NaN for the baseline and where the group has none */
    double adjusted_p;        /* Holm, within the group */
} ls_comparison_row;

typedef struct ls_comparison {
    const ls_stored_experiment *experiment; /* borrowed */
    uint32_t key;                           /* index into swept_keys */
    uint32_t metric;                        /* index into metric_names */
    const char *baseline;                   /* label; borrowed */
    ls_comparison_row *rows;                /* by group, within it in the experiment's order */
    uint32_t row_count;
    uint32_t group_count;
} ls_comparison;

/* Compares by one metric. key NULL: the experiment's compare key; baseline NULL: the experiment's, else the first
 * label. A baseline is named by its whole label or by its first word ("dac"). Free comparison->rows with ls_free.
 * LS_ERROR_INVALID with the names there are. */
ls_result ls_compare(const ls_stored_experiment *experiment, const char *key, const char *baseline, const char *metric,
                     ls_comparison *comparison, ls_error *error);

/* Adds the comparison as a table for people, or as one JSON object. */
void ls_comparison_table(const ls_comparison *comparison, ls_text *text);
void ls_comparison_json(const ls_comparison *comparison, ls_text *text);

#endif
