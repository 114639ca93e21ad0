/* macros.h - results as LaTeX macros: what a paper prints comes from the database and from nowhere else.
 *
 * Each experiment that was checked (freshness.h) gives \lsdefine{EXPERIMENT}{NAME}{TEXT} for the names title, question,
 * answer, assumptions (items of a list), points, runs, seed, version, spec (the first 12 digits of its text's SHA-256);
 * and what a file of templates asks for besides:
 *
 *   { "f7-manifest-growth": {
 *       "numbers": {"delay": "{publish_delay_p50_s[policy=dac, ...] : seconds}"},           templates of answer.h
 *       "tables": {"largest": {"where": {"manifest.initial_entries": "largest"},            labels, or largest, smallest
 *                              "columns": [{"metric": "conflict_share", "head": "conflicts", "form": "percent"}]}}}}
 *
 * A table has a row a treatment of the spec's "compare" in that group: mean and 95 % half-width, and a star where the
 * paired difference to the baseline holds after Holm at 5 % (comparison.h). A paper says \of{EXPERIMENT}{NAME}; a name
 * that is not defined stops LaTeX.
 */
#ifndef LS_MACROS_H
#define LS_MACROS_H

#include "experiments/json.h"
#include "experiments/published.h"
#include "experiments/results.h"
#include "experiments/validation_record.h"

/* Appends the definitions of \lsdefine and \of. */
void ls_macros_begin(ls_text *text);

/* Appends one definition; value is plain text and is escaped. */
void ls_macro(ls_text *text, const char *experiment, const char *name, const char *value);

/* Appends all macros of an experiment. templates is the object of all experiments, or NULL. LS_ERROR_INVALID, with
 * experiment and name, when one cannot be computed: a value that is missing is never printed. */
ls_result ls_macros_of(const ls_stored_experiment *experiment, const ls_presentation *presentation,
                       const ls_published_rows *rows, const cJSON *templates, ls_text *text, ls_error *error);

/* Appends, as LaTeX that goes straight into the text, what a validation found: a sentence and a table of the judged
 * metrics, a row a point, real value / simulated value, misses in bold. LS_ERROR_MEMORY. Needs graphicx, booktabs. */
ls_result ls_macros_validation(const ls_validation_record *record, ls_text *text);

#endif
