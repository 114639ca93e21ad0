/* tidy.h - an experiment as a table for plotting: one row a point, tab-separated, one header line.
 *
 * Columns, in this order:
 *   one for each swept key, named by its path ("producers.count", "policy"): the label, as text
 *   "replications": how many ok runs stand behind the row
 *   for each metric, by ascending name: "<name>" the mean over replications, and "<name>.half_width" half the width
 *   of the 95 % Student t interval
 * A mean without runs, and a half-width with fewer than two, is nan, which gnuplot skips. Labels may hold spaces, never
 * tabs. In gnuplot, with the separator set to tab:
 *   plot data using "producers.count":"published_per_s":"published_per_s.half_width" with yerrorbars
 */
#ifndef LS_TIDY_H
#define LS_TIDY_H

#include "experiments/results.h"
#include "experiments/statistics.h"
#include "experiments/text.h"

/* Adds the table to text; LS_ERROR_MEMORY. */
ls_result ls_tidy(const ls_stored_experiment *experiment, ls_text *text);

/* Mean and interval of one metric (index into metric_names) of a point, over the runs that have it. */
ls_result ls_point_estimate(const ls_stored_point *point, uint32_t metric, double confidence, ls_estimate *estimate);

#endif
