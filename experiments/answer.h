/* answer.h - an experiment's answer: a sentence whose numbers and names are computed from its results.
 *
 * A spec gives the sentence as a template. What stands in braces is a term; the rest is kept as it is ("{{" is a
 * brace). A term is one of
 *
 *   EXPRESSION                        a number, 3 significant digits
 *   EXPRESSION : FORM                 a number as FORM: a count of significant digits (1 to 15), percent, count, bytes,
 *                                     seconds, dollars
 *   largest KEY, smallest KEY         the label of the swept key that is greatest, least as a number (: FORM possible)
 *   highest KEY by EXPRESSION         the label of the key where the expression is greatest (lowest: least)
 *   highest KEY by EXPRESSION where CONDITION     the same among the points where the condition holds
 *   list KEY where CONDITION          the labels of the key where it holds, "a, b and c" or "none"
 *                                     a condition is EXPRESSION OP EXPRESSION with one of < <= > >=; "KEY except LABEL"
 *                                     leaves one label out, in list, highest and lowest
 *
 * and an expression is made of + - * / (with spaces around), parentheses, numbers and
 *
 *   METRIC                            the mean of the metric over a point's replications
 *   METRIC[KEY=LABEL, KEY=largest]    the same at the point with these labels; a label is matched whole or, if none is
 *                                     so, by its first word ("dac"); largest and smallest name the extremes
 *   KEY                               a swept key's label as a number (inside min, max, mean, highest, list)
 *   min(EXPRESSION), max(...), mean(...)   over all points
 *   deviation(METRIC)                 the largest |simulated / published - 1| over the published rows (published.h)
 *
 * Inside min, max, mean, highest, lowest and list the expression is evaluated at each point of the experiment in turn:
 * a selector replaces the labels it names and keeps the point's own for the other keys. So
 * max(published_per_s[policy=dac] / published_per_s[policy=immediate]) compares like with like. Points where a value
 * is missing are passed over. Outside, a selector must name exactly one point.
 */
#ifndef LS_ANSWER_H
#define LS_ANSWER_H

#include "experiments/published.h"
#include "experiments/results.h"
#include "experiments/text.h"

/* Who knows a name: for checking a template before there are results. Each returns LS_OK or fills error. */
typedef struct ls_answer_names {
    void *context;
    ls_result (*metric)(void *context, const char *name, ls_error *error);
    ls_result (*key)(void *context, const char *name, ls_error *error);
    bool (*is_key)(void *context, const char *name); /* tells KEY from METRIC in an expression */
} ls_answer_names;

/* Checks a template's grammar and names. LS_ERROR_INVALID with the term and what was expected. */
ls_result ls_answer_check(const char *template_text, const ls_answer_names *names, ls_error *error);

/* Appends the sentence to text. Rows: what published.h matched (may be none). LS_ERROR_INVALID, with the term and the
 * reason, when the results cannot answer (no such point, no value): text then holds nothing new. LS_ERROR_MEMORY. */
ls_result ls_answer(const char *template_text, const ls_stored_experiment *experiment, const ls_published_rows *rows,
                    ls_text *text, ls_error *error);

#endif
