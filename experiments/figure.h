/* figure.h - an experiment's figure: its plotting table (tidy.h) and gnuplot run on its script.
 *
 * A script <name>.gp finds these variables: data (the table's path), output (the picture's path; the suffix, .svg,
 * .png or .pdf, tells the terminal to set), series (the path of <name>-series.tsv, which may not exist), published (folder of
 * published numbers), title_text and shows (of the spec). The scripts' folder is in the load path. Whoever has a time
 * series puts it there (`lakestream series`). Studies of assumptions (sensitivity.h) share one script, sensitivity.gp,
 * and their table is the analysis.
 */
#ifndef LS_FIGURE_H
#define LS_FIGURE_H

#include "experiments/results.h"

typedef struct ls_figure_job {
    const char *folder;        /* where table and pictures go; it exists */
    const char *series_folder; /* where the time series lies */
    const char *script_folder; /* NULL: next to the spec, as the database says */
    const char *published;     /* folder of published numbers */
} ls_figure_job;

/* folder/name followed by suffix; the caller frees it. NULL when out of memory. */
char *ls_figure_path(const char *folder, const char *name, const char *suffix);

/* Writes folder/<name>.tsv. LS_ERROR_INVALID for a name that is no file name; LS_ERROR_IO, LS_ERROR_MEMORY. */
ls_result ls_figure_table(const ls_figure_job *job, const ls_stored_experiment *experiment, ls_error *error);

/* The path of the experiment's script; the caller frees it. LS_ERROR_INVALID when there is none. */
ls_result ls_figure_script(const ls_figure_job *job, const ls_stored_experiment *experiment, char **script,
                           ls_error *error);

/* Runs gnuplot on the script, whose table must be there: makes folder/<name><suffix>. LS_ERROR_IO. */
ls_result ls_figure_draw(const ls_figure_job *job, const ls_stored_experiment *experiment, const char *script,
                         const char *suffix, ls_error *error);

#endif
