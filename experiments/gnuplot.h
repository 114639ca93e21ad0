/* gnuplot.h - one picture from one table by one script, for commands that draw something other than an experiment. */
#ifndef LS_GNUPLOT_H
#define LS_GNUPLOT_H

#include "experiments/text.h"

/* Writes <stem>-<name>.tsv and runs folder/<name>.gp, which finds the variables data, output and title_text as the scripts
 * of `lakestream plot` do, for <stem>-<name>.svg and .png; prints the three paths. LS_ERROR_IO when a file cannot be written
 * or gnuplot is missing or fails, LS_ERROR_INVALID when there is no script. */
ls_result ls_gnuplot_table(const char *folder, const char *name, const char *stem, const ls_text *table, const char *title,
                           ls_error *error);

/* Runs a script of the same kind on a table that is there already, for one picture; prints its path. Errors likewise. */
ls_result ls_gnuplot_draw(const char *folder, const char *script, const char *data, const char *output, const char *title, ls_error *error);

#endif
