/* report_table.c - the tables of the report (report.h). Cells carry the full number for sorting and show four digits.
 */
#include "experiments/markup.h"
#include "experiments/pretty.h"
#include "experiments/report.h"
#include "experiments/tidy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_METRICS 6u

static const ls_metric *find_metric(const char *name)
{
    uint32_t count;
    const ls_metric *metrics = ls_metrics(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(metrics[i].name, name) == 0) return &metrics[i];
    }
    return NULL;
}

static void add_header(ls_text *page, const char *class_name, const char *name, const char *unit)
{
    ls_text_format(page, "<th scope=\"col\"%s%s%s><button type=\"button\">", class_name[0] != '\0' ? " class=\"" : "",
                   class_name, class_name[0] != '\0' ? "\"" : "");
    ls_text_markup(page, name);
    ls_text_add(page, "</button>");
    if (unit != NULL && unit[0] != '\0' && strcmp(unit, "1") != 0) {
        ls_text_add(page, "<br/><span class=\"unit\">");
        ls_text_markup(page, unit);
        ls_text_add(page, "</span>");
    }
    ls_text_add(page, "</th>");
}

static bool is_number(const char *label)
{
    char *end;
    strtod(label, &end);
    return end != label && *end == '\0';
}

static bool all_numbers(const ls_stored_experiment *e, uint32_t key)
{
    for (uint32_t i = 0; i < e->point_count; i++) {
        if (!is_number(e->points[i].labels[key])) return false;
    }
    return true;
}

/* A key that never changes, or always as an earlier one does, tells nothing. */
static bool tells(const ls_stored_experiment *e, uint32_t key)
{
    bool changes = e->point_count < 2;
    for (uint32_t i = 1; i < e->point_count && !changes; i++) {
        changes = strcmp(e->points[i].labels[key], e->points[0].labels[key]) != 0;
    }
    for (uint32_t other = 0; other < key && changes; other++) {
        bool same = true;
        for (uint32_t i = 0; i < e->point_count && same; i++) {
            same = strcmp(e->points[i].labels[key], e->points[i].labels[other]) == 0;
        }
        changes = !same;
    }
    return changes;
}

static void add_keys(const ls_stored_experiment *e, ls_text *page)
{
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (!tells(e, k)) continue;
        add_header(page, all_numbers(e, k) ? "" : "label", e->swept_keys[k], "");
    }
}

static void add_label(ls_text *page, const char *label)
{
    ls_text_format(page, "<td%s data-value=\"", is_number(label) ? "" : " class=\"label\"");
    ls_text_markup(page, label);
    ls_text_add(page, "\">");
    ls_text_markup(page, label);
    ls_text_add(page, "</td>");
}

static void add_number(ls_text *page, double value, double half_width)
{
    char number[32];
    ls_text_format(page, "<td data-value=\"%s\">", isfinite(value) ? ls_number_text(value, number) : "");
    ls_text_pretty(page, value, LS_PRETTY_DIGITS, 4);
    if (isfinite(half_width) && half_width > 0) {
        ls_text_add(page, " <span class=\"margin\">\xc2\xb1 ");
        ls_text_pretty(page, half_width, LS_PRETTY_DIGITS, 2);
        ls_text_add(page, "</span>");
    }
    ls_text_add(page, "</td>");
}

static bool measured(const ls_stored_experiment *e, const char *name, uint32_t *index)
{
    for (uint32_t i = 0; i < e->metric_count; i++) {
        if (strcmp(e->metric_names[i], name) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}

typedef struct columns {
    uint32_t *metrics; /* indices into metric_names */
    uint32_t count;
} columns;

/* What the spec lists; else what it compares; else the first few. */
static bool choose_columns(const ls_report_part *part, columns *chosen)
{
    const ls_stored_experiment *e = part->experiment;
    char *const *names = part->presentation.table;
    uint32_t count = part->presentation.table_count, index;
    if (count == 0) {
        names = e->compare_metrics;
        count = e->compare_metric_count;
    }
    if (count == 0) {
        names = e->metric_names;
        count = e->metric_count < DEFAULT_METRICS ? e->metric_count : DEFAULT_METRICS;
    }
    *chosen = (columns){ls_allocate_array((size_t)count + 1, sizeof(uint32_t)), 0};
    if (chosen->metrics == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (measured(e, names[i], &index)) chosen->metrics[chosen->count++] = index;
    }
    return true;
}

static void add_meanings(const ls_stored_experiment *e, const columns *chosen, ls_text *page)
{
    ls_text_add(page, "<details><summary>What the columns mean</summary><dl>");
    for (uint32_t i = 0; i < chosen->count; i++) {
        const ls_metric *metric = find_metric(e->metric_names[chosen->metrics[i]]);
        if (metric == NULL) continue;
        ls_text_add(page, "<dt>");
        ls_text_markup(page, metric->name);
        ls_text_add(page, "</dt><dd>");
        ls_text_markup(page, metric->meaning);
        ls_text_add(page, "</dd>");
    }
    ls_text_add(page, "</dl><p>\xc2\xb1: half the width of the 95 % Student t interval over replications.</p>"
                      "</details>\n");
}

static bool add_row(const ls_stored_experiment *e, const ls_stored_point *point, const columns *chosen, ls_text *page)
{
    ls_text_add(page, "<tr>");
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (tells(e, k)) add_label(page, point->labels[k]);
    }
    for (uint32_t i = 0; i < chosen->count; i++) {
        ls_estimate estimate;
        if (ls_point_estimate(point, chosen->metrics[i], 0.95, &estimate) != LS_OK) return false;
        add_number(page, estimate.mean, estimate.half_width);
    }
    ls_text_format(page, "<td data-value=\"%u\">%u", point->run_count, point->run_count);
    if (point->failed_count > 0) ls_text_format(page, " (%u failed)", point->failed_count);
    ls_text_add(page, "</td></tr>\n");
    return true;
}

void ls_report_numbers(const ls_report_part *part, ls_text *page)
{
    const ls_stored_experiment *e = part->experiment;
    columns chosen;
    if (!choose_columns(part, &chosen)) {
        page->failed = true;
        return;
    }
    ls_text_add(page, "<h3>The numbers</h3>\n<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    add_keys(e, page);
    for (uint32_t i = 0; i < chosen.count; i++) {
        const char *name = e->metric_names[chosen.metrics[i]];
        const ls_metric *metric = find_metric(name);
        add_header(page, "", name, metric != NULL ? metric->unit : "");
    }
    add_header(page, "", "runs", "");
    ls_text_add(page, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < e->point_count; i++) {
        if (!add_row(e, &e->points[i], &chosen, page)) page->failed = true;
    }
    ls_text_add(page, "</tbody></table></div>\n");
    add_meanings(e, &chosen, page);
    ls_free(chosen.metrics);
}

static void add_published_row(const ls_report_part *part, const ls_published_row *row, ls_text *page)
{
    const ls_stored_experiment *e = part->experiment;
    const ls_published_table *table = &part->presentation.published[row->source];
    const char *column = e->metric_names[row->metric];
    for (uint32_t i = 0; i < table->metric_count; i++) {
        bool same = strcmp(table->metrics[i].name, column) == 0;
        if (same && table->metrics[i].factor == row->factor) column = table->metrics[i].column;
    }
    ls_text_add(page, "<tr>");
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        if (tells(e, k)) add_label(page, e->points[row->point].labels[k]);
    }
    add_label(page, column);
    add_number(page, row->published, NAN);
    add_number(page, row->simulated, row->half_width);
    double off = row->published != 0.0 ? row->simulated / row->published - 1.0 : NAN;
    char number[32];
    ls_text_format(page, "<td data-value=\"%s\">", isfinite(off) ? ls_number_text(off, number) : "");
    if (isfinite(off)) {
        ls_text_format(page, "%+.1f %%", 100.0 * off);
    } else {
        ls_text_add(page, "none");
    }
    ls_text_add(page, "</td></tr>\n");
}

void ls_report_published(const ls_report_part *part, ls_text *page)
{
    const ls_stored_experiment *e = part->experiment;
    if (part->rows.count == 0) return;
    ls_text_add(page,
                "<h3>Published beside simulated</h3>\n<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    add_keys(e, page);
    add_header(page, "label", "value", "");
    add_header(page, "", "published", "");
    add_header(page, "", "simulated", "");
    add_header(page, "", "difference", "");
    ls_text_add(page, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < part->rows.count; i++) add_published_row(part, &part->rows.rows[i], page);
    ls_text_add(page, "</tbody></table></div>\n");
    for (uint32_t i = 0; i < part->rows.source_count; i++) {
        bool repeated = part->rows.sources[i][0] == '\0';
        for (uint32_t k = 0; k < i && !repeated; k++) {
            repeated = strcmp(part->rows.sources[i], part->rows.sources[k]) == 0;
        }
        if (repeated) continue;
        ls_text_add(page, "<p class=\"origin\">");
        ls_text_markup(page, part->rows.sources[i]);
        ls_text_add(page, "</p>\n");
    }
}

static void add_end(const char *label, const ls_estimate *change, ls_text *page)
{
    add_label(page, label != NULL ? label : "");
    add_number(page, change->mean, change->half_width);
}

static void add_share(const ls_share *share, ls_text *page)
{
    char number[32];
    ls_text_format(page, "<td data-value=\"%s\">", isfinite(share->share) ? ls_number_text(share->share, number) : "");
    if (isfinite(share->share)) {
        ls_text_format(page, "%.2f <span class=\"margin\">(%.2f to %.2f)</span>", share->share, share->low,
                       share->high);
    } else {
        ls_text_add(page, "none");
    }
    ls_text_add(page, "</td>");
}

void ls_report_sensitivity(const ls_report_part *part, ls_text *page)
{
    static const char *const headings[] = {"low end",           "change",          "high end", "change",
                                           "first-order share", "rank correlation"};
    const ls_sensitivity *s = &part->sensitivity;
    const ls_metric *metric = find_metric(s->metric);
    ls_text_add(page, "<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    add_header(page, "label", "assumption", "");
    add_header(page, "", "nominal", "");
    for (size_t i = 0; i < 6; i++) {
        bool change = strcmp(headings[i], "change") == 0;
        add_header(page, "", headings[i], change && metric != NULL ? metric->unit : "");
    }
    ls_text_add(page, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < s->count; i++) {
        const ls_sensitivity_row *row = &s->rows[i];
        ls_text_add(page, "<tr>");
        add_label(page, s->experiment->swept_keys[row->key]);
        add_label(page, row->nominal);
        add_end(row->low, &row->at_low, page);
        add_end(row->high, &row->at_high, page);
        add_share(&row->share, page);
        add_share(&row->correlation, page);
        ls_text_add(page, "</tr>\n");
    }
    ls_text_add(page, "</tbody></table></div>\n<p class=\"origin\">");
    ls_text_markup(page, s->metric);
    ls_text_add(page, " nominally ");
    ls_text_pretty(page, s->nominal.mean, LS_PRETTY_DIGITS, 4);
    ls_text_format(page, "; %u points in the design.</p>\n", s->design_points);
}
