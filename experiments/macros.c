/* macros.c - see macros.h. */
#include "experiments/macros.h"

#include "experiments/answer.h"
#include "experiments/comparison.h"
#include "experiments/digest.h"
#include "experiments/latex.h"
#include "experiments/pretty.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNIFICANT 0.05

typedef struct maker {
    const ls_stored_experiment *experiment;
    const ls_presentation *presentation;
    const ls_published_rows *rows;
    ls_text *text;
    ls_error *error;
} maker;

static ls_result out_of_memory(const maker *m) { return ls_fail(m->error, LS_ERROR_MEMORY, "out of memory"); }

void ls_macros_begin(ls_text *text)
{
    ls_text_add(text, "% Made by `lakestream macros`; not to be edited.\n"
                      "\\long\\def\\lsdefine#1#2#3{\\expandafter\\long\\expandafter\\gdef\\csname ls:#1:#2\\endcsname{#3}}\n"
                      "\\DeclareRobustCommand\\of[2]{\\ifcsname ls:#1:#2\\endcsname\\csname ls:#1:#2\\endcsname\\else"
                      "\\PackageError{lakestream}{the results give no \"#2\" of \"#1\"}{Name it in numbers.json.}\\fi}\n");
}

static void begin(ls_text *text, const char *experiment, const char *name)
{
    ls_text_format(text, "\\lsdefine{%s}{%s}{", experiment, name);
}

void ls_macro(ls_text *text, const char *experiment, const char *name, const char *value)
{
    begin(text, experiment, name);
    ls_latex_text(text, value);
    ls_text_add(text, "}\n");
}

static void add_count(const maker *m, const char *name, uint64_t value)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, value);
    ls_macro(m->text, m->experiment->name, name, number);
}

/* --- sentences and numbers ---------------------------------------------------------------------------------------- */

static ls_result add_answer(const maker *m, const char *name, const char *template_text)
{
    ls_text sentence = {0};
    ls_error inner = {""};
    ls_result result = ls_answer(template_text, m->experiment, m->rows, &sentence, &inner);
    if (result == LS_OK && sentence.length > 0) ls_macro(m->text, m->experiment->name, name, sentence.bytes);
    ls_text_free(&sentence);
    if (result == LS_OK) return LS_OK;
    return ls_fail(m->error, result, "%s: %s: %.700s", m->experiment->name, name, inner.text);
}

static ls_result add_identity(const maker *m)
{
    const ls_stored_experiment *e = m->experiment;
    char hex[LS_DIGEST_HEX_BYTES];
    uint64_t runs = 0;
    if (ls_digest_text(e->spec, hex) != LS_OK) return out_of_memory(m);
    hex[12] = '\0';
    for (uint32_t i = 0; i < e->point_count; i++) runs += e->points[i].run_count;
    ls_macro(m->text, e->name, "title", e->title);
    ls_macro(m->text, e->name, "version", e->version);
    ls_macro(m->text, e->name, "spec", hex);
    add_count(m, "points", e->point_count);
    add_count(m, "runs", runs);
    add_count(m, "seed", e->seed);
    return LS_OK;
}

static ls_result add_presentation(const maker *m)
{
    const ls_presentation *p = m->presentation;
    const char *name = m->experiment->name;
    if (p->question != NULL) ls_macro(m->text, name, "question", p->question);
    begin(m->text, name, "assumptions");
    for (uint32_t i = 0; i < p->assumption_count; i++) {
        ls_text_add(m->text, "\\item ");
        ls_latex_text(m->text, p->assumptions[i]);
        ls_text_add(m->text, "\n");
    }
    ls_text_add(m->text, "}\n");
    return p->answer != NULL ? add_answer(m, "answer", p->answer) : LS_OK;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static ls_pretty form_of(const char *name)
{
    static const char *const names[] = {"percent", "count", "bytes", "seconds", "dollars"};
    static const ls_pretty forms[] = {LS_PRETTY_PERCENT, LS_PRETTY_COUNT, LS_PRETTY_BYTES, LS_PRETTY_SECONDS,
                                      LS_PRETTY_DOLLARS};
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return forms[i];
    }
    return LS_PRETTY_DIGITS;
}

/* Whether a point is in the group that "where" names; "largest" and "smallest" go by the label as a number. */
static bool in_group(const ls_stored_experiment *e, uint32_t point, const cJSON *where)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, where) {
        const char *wanted = cJSON_GetStringValue(one);
        for (uint32_t k = 0; k < e->swept_key_count; k++) {
            if (strcmp(e->swept_keys[k], one->string) != 0 || wanted == NULL) continue;
            const char *label = e->points[point].labels[k];
            bool largest = strcmp(wanted, "largest") == 0;
            if (!largest && strcmp(wanted, "smallest") != 0) {
                if (ls_label_matches(label, wanted) == 0) return false;
                continue;
            }
            for (uint32_t i = 0; i < e->point_count; i++) {
                double other = strtod(e->points[i].labels[k], NULL), own = strtod(label, NULL);
                if (largest ? other > own : other < own) return false;
            }
        }
    }
    return true;
}

static ls_result add_cell(const maker *m, const ls_comparison *c, const ls_comparison_row *row, const char *form)
{
    const ls_estimate *estimate = &row->estimate;
    if (estimate->count != m->experiment->points[row->point].run_count || isnan(estimate->mean)) {
        return ls_fail(m->error, LS_ERROR_INVALID, "%s: %s of %s is missing in a run; run the experiment again", m->experiment->name,
                       m->experiment->metric_names[c->metric], m->experiment->points[row->point].labels[c->key]);
    }
    ls_text cell = {0};
    ls_text_pretty(&cell, estimate->mean, form_of(form), 3);
    if (!isnan(estimate->half_width)) {
        ls_text_add(&cell, "\xc2\xa0\xc2\xb1\xc2\xa0");
        ls_text_pretty(&cell, estimate->half_width, form_of(form), 2);
    }
    ls_text_add(m->text, " & ");
    if (!cell.failed) ls_latex_text(m->text, cell.bytes);
    if (row->adjusted_p < SIGNIFICANT) ls_text_add(m->text, "\\rlap{*}");
    ls_result result = cell.failed ? out_of_memory(m) : LS_OK;
    ls_text_free(&cell);
    return result;
}

static ls_result add_row(const maker *m, const ls_comparison *comparisons, const cJSON *columns, uint32_t index)
{
    const ls_comparison_row *first = &comparisons[0].rows[index];
    const cJSON *column;
    uint32_t i = 0;
    ls_result result = LS_OK;
    ls_latex_text(m->text, m->experiment->points[first->point].labels[comparisons[0].key]);
    if (first->baseline) ls_text_add(m->text, " (baseline)");
    cJSON_ArrayForEach(column, columns) {
        const char *form = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "form"));
        if (result == LS_OK) result = add_cell(m, &comparisons[i], &comparisons[i].rows[index], form);
        i++;
    }
    ls_text_add(m->text, " \\\\\n");
    return result;
}

/* Every comparison lists the same rows in the same order: they differ in the metric alone. */
static ls_result add_rows(const maker *m, const ls_comparison *comparisons, const cJSON *columns, const cJSON *where)
{
    uint32_t added = 0;
    ls_result result = LS_OK;
    for (uint32_t r = 0; r < comparisons[0].row_count && result == LS_OK; r++) {
        if (!in_group(m->experiment, comparisons[0].rows[r].point, where)) continue;
        result = add_row(m, comparisons, columns, r);
        added++;
    }
    if (result != LS_OK || added > 0) return result;
    return ls_fail(m->error, LS_ERROR_INVALID, "%s: no point has the labels that a table asks for", m->experiment->name);
}

static ls_result add_table(const maker *m, const cJSON *table)
{
    const cJSON *columns = cJSON_GetObjectItemCaseSensitive(table, "columns"), *column;
    int count = cJSON_GetArraySize(columns), i = 0;
    if (count < 1) {
        return ls_fail(m->error, LS_ERROR_INVALID, "%s: table %s: \"columns\" must list at least one", m->experiment->name,
                       table->string);
    }
    ls_comparison *comparisons = ls_allocate_array((size_t)count, sizeof *comparisons);
    ls_result result = comparisons != NULL ? LS_OK : out_of_memory(m);
    begin(m->text, m->experiment->name, table->string);
    ls_text_add(m->text, "\\begin{tabular}{@{}l");
    for (int k = 0; k < count; k++) ls_text_add(m->text, "r");
    ls_text_add(m->text, "@{}}\n\\toprule\n");
    cJSON_ArrayForEach(column, columns) {
        const char *metric = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "metric"));
        const char *head = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "head"));
        if (result == LS_OK) {
            result = ls_compare(m->experiment, NULL, NULL, metric != NULL ? metric : "", &comparisons[i++], m->error);
        }
        ls_text_add(m->text, " & ");
        ls_latex_text(m->text, head != NULL ? head : metric != NULL ? metric : "");
    }
    ls_text_add(m->text, " \\\\\n\\midrule\n");
    if (result == LS_OK) result = add_rows(m, comparisons, columns, cJSON_GetObjectItemCaseSensitive(table, "where"));
    ls_text_add(m->text, "\\bottomrule\n\\end{tabular}}\n");
    for (int k = 0; k < count && comparisons != NULL; k++) ls_free(comparisons[k].rows);
    ls_free(comparisons);
    return result;
}

ls_result ls_macros_of(const ls_stored_experiment *experiment, const ls_presentation *presentation,
                       const ls_published_rows *rows, const cJSON *templates, ls_text *text, ls_error *error)
{
    const maker m = {experiment, presentation, rows, text, error};
    const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(templates, experiment->name), *one;
    ls_result result = add_identity(&m);
    if (result == LS_OK) result = add_presentation(&m);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(wanted, "numbers")) {
        const char *template_text = cJSON_GetStringValue(one);
        if (result == LS_OK) result = add_answer(&m, one->string, template_text != NULL ? template_text : "");
    }
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(wanted, "tables")) {
        if (result == LS_OK) result = add_table(&m, one);
    }
    return result == LS_OK && text->failed ? out_of_memory(&m) : result;
}

/* --- validation --------------------------------------------------------------------------------------------------- */

static bool same(const char *left, const char *right) { return left != NULL && strcmp(left, right) == 0; }

/* Both values and no quotient: a real share may well be 0. */
static void add_judged(const ls_validation_row *row, ls_text *text)
{
    ls_text_format(text, row->verdict == LS_VERDICT_MISS ? " & \\textbf{%.3g / %.3g}" : " & %.3g / %.3g", row->real,
                   row->simulated);
}

ls_result ls_macros_validation(const ls_validation_record *record, ls_text *text)
{
    uint32_t judged = 0, held = 0, columns = 0;
    for (uint32_t i = 0; i < record->row_count; i++) {
        const ls_validation_row *row = &record->rows[i];
        judged += row->verdict != LS_VERDICT_SHOWN;
        held += row->verdict == LS_VERDICT_PASS;
        columns += row->verdict != LS_VERDICT_SHOWN && same(row->point, record->rows[0].point);
    }
    ls_text where = {0};
    ls_text_format(&where, "%s on %s, %s%s%s, %s replications, model %s: %u of %u tolerances held.", record->experiment,
                   record->store, record->date, record->notes[0] != '\0' ? ", " : "", record->notes,
                   record->replications, record->model, held, judged);
    ls_text_add(text, "\\par\\medskip\\noindent ");
    if (!where.failed) ls_latex_text(text, where.bytes);
    text->failed = text->failed || where.failed;
    ls_text_free(&where);
    ls_text_add(text, "\\par\\smallskip\\noindent{\\footnotesize"
                      "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{\\begin{tabular}{@{}l");
    for (uint32_t i = 0; i < columns; i++) ls_text_add(text, "r");
    ls_text_add(text, "@{}}\\toprule\n");
    for (uint32_t i = 0; i < record->row_count; i++) {
        const ls_validation_row *row = &record->rows[i];
        if (row->verdict == LS_VERDICT_SHOWN || !same(row->point, record->rows[0].point)) continue;
        ls_text_add(text, " & ");
        ls_latex_text(text, row->metric);
    }
    ls_text_add(text, "\\\\\\midrule\n");
    for (uint32_t i = 0; i < record->row_count; i++) {
        const ls_validation_row *row = &record->rows[i];
        bool first = i == 0 || !same(row->point, record->rows[i - 1].point);
        if (first) ls_latex_text(text, row->point);
        if (row->verdict != LS_VERDICT_SHOWN) add_judged(row, text);
        if (i + 1 == record->row_count || !same(row->point, record->rows[i + 1].point)) ls_text_add(text, "\\\\\n");
    }
    ls_text_add(text, "\\bottomrule\\end{tabular}}}\\par\n");
    return text->failed ? LS_ERROR_MEMORY : LS_OK;
}
