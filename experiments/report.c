/* report.c - see report.h. Parts are gathered first, because the page opens with all questions and answers. */
#include "experiments/report.h"

#include "experiments/answer.h"
#include "experiments/folder.h"
#include "experiments/markup.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define PICTURE_BYTES_MAX (UINT64_C(64) << 20)

static ls_result out_of_memory(ls_error *error) { return ls_fail(error, LS_ERROR_MEMORY, "out of memory"); }

static bool anchor_taken(const ls_report *report, const char *anchor)
{
    for (uint32_t i = 0; i < report->count; i++) {
        if (report->parts[i].anchor != NULL && strcmp(report->parts[i].anchor, anchor) == 0) return true;
    }
    return false;
}

/* A name as an id: other characters become hyphens, a number makes it unique, a letter comes first. */
static char *make_anchor(const ls_report *report, const char *name)
{
    ls_text plain = {0};
    if (!isalpha((unsigned char)name[0])) ls_text_add(&plain, "figure-");
    for (const char *c = name; *c != '\0'; c++) ls_text_bytes(&plain, isalnum((unsigned char)*c) ? c : "-", 1);
    char *anchor = plain.failed ? NULL : ls_duplicate(plain.bytes);
    for (uint32_t i = 2; anchor != NULL && anchor_taken(report, anchor); i++) {
        ls_text numbered = {0};
        ls_text_format(&numbered, "%s-%u", plain.bytes, i);
        ls_free(anchor);
        anchor = ls_text_take(&numbered);
    }
    ls_text_free(&plain);
    return anchor;
}

/* Keeps what a reader should know as a problem; only memory ends the report. */
static ls_result keep_problem(ls_result result, ls_error *error, char **problem)
{
    if (result == LS_OK || result == LS_ERROR_MEMORY) return result;
    *problem = ls_duplicate(error->text);
    return *problem != NULL ? LS_OK : out_of_memory(error);
}

static ls_result compute_answer(ls_report_part *part, ls_error *error)
{
    if (part->presentation.answer == NULL) return LS_OK;
    ls_text sentence = {0};
    ls_result result = ls_answer(part->presentation.answer, part->experiment, &part->rows, &sentence, error);
    if (result == LS_OK) {
        part->answer = ls_text_take(&sentence);
        if (part->answer == NULL) result = out_of_memory(error);
    }
    ls_text_free(&sentence);
    return keep_problem(result, error, &part->answer_problem);
}

static ls_result take_picture(const char *path, const char *anchor, const char *label, ls_report_picture *picture,
                              ls_error *error)
{
    char *svg = NULL;
    size_t length = 0;
    ls_text inner = {0};
    ls_result result = ls_file_read(path, PICTURE_BYTES_MAX, &svg, &length, error);
    if (result == LS_OK) result = ls_svg_inline(svg, length, anchor, label, &inner, &picture->width, error);
    if (result == LS_OK) {
        picture->svg = ls_text_take(&inner);
        if (picture->svg == NULL) result = out_of_memory(error);
    }
    ls_text_free(&inner);
    ls_free(svg);
    return result;
}

static ls_result draw_picture(const ls_stored_experiment *e, const char *anchor, const ls_figure_job *job,
                              ls_report_picture *picture, ls_error *error)
{
    char *script = NULL, *path = ls_figure_path(job->folder, e->name, ".svg");
    ls_result result = path != NULL ? ls_figure_table(job, e, error) : out_of_memory(error);
    if (result == LS_OK) result = ls_figure_script(job, e, &script, error);
    if (result == LS_OK) result = ls_figure_draw(job, e, script, ".svg", error);
    if (result == LS_OK) result = take_picture(path, anchor, e->title, picture, error);
    ls_free(script);
    ls_free(path);
    return keep_problem(result, error, &picture->problem);
}

/* The study of assumptions belongs to the figure; that there is none is no problem. */
static ls_result add_second(ls_report_part *part, ls_results *results, const char *backend, const ls_figure_job *job,
                            ls_error *error)
{
    ls_text name = {0}, anchor = {0};
    ls_error ignored = {""};
    ls_text_format(&name, "%s" LS_SENSITIVITY_SUFFIX, part->experiment->name);
    ls_text_format(&anchor, "%s" LS_SENSITIVITY_SUFFIX, part->anchor);
    ls_result result = name.failed || anchor.failed ? out_of_memory(error) : LS_OK;
    if (result == LS_OK) result = ls_results_load(results, name.bytes, backend, &part->second, &ignored);
    if (result == LS_OK) result = ls_sensitivity_analyse(part->second, &part->sensitivity, &ignored);
    if (result == LS_ERROR_INVALID) {
        ls_stored_experiment_free(part->second);
        part->second = NULL;
        result = LS_OK;
    } else if (result == LS_OK && job != NULL) {
        result = draw_picture(part->second, anchor.bytes, job, &part->second_picture, error);
    }
    ls_text_free(&name);
    ls_text_free(&anchor);
    return result;
}

static ls_result new_part(ls_report *report, ls_report_part **part, ls_error *error)
{
    if (report->count == report->capacity) {
        uint32_t capacity = report->capacity > 0 ? 2 * report->capacity : 8;
        ls_report_part *parts = ls_reallocate(report->parts, capacity * sizeof *parts);
        if (parts == NULL) return out_of_memory(error);
        report->parts = parts;
        report->capacity = capacity;
    }
    *part = &report->parts[report->count++];
    **part = (ls_report_part){0};
    return LS_OK;
}

ls_result ls_report_add(ls_report *report, ls_results *results, const char *name, const char *backend,
                        const ls_figure_job *job, const char *published_folder, ls_error *error)
{
    ls_report_part *part = NULL;
    ls_result result = new_part(report, &part, error);
    if (result == LS_OK) result = ls_results_load(results, name, backend, &part->experiment, error);
    if (result != LS_OK) return result;
    result = ls_presentation_parse(part->experiment->name, part->experiment->spec, &part->presentation, error);
    if (result != LS_OK) return result;
    char *anchor = make_anchor(report, part->experiment->name);
    if (anchor == NULL) return out_of_memory(error);
    part->anchor = anchor;
    result = ls_published_match(&part->presentation, published_folder, part->experiment, &part->rows, error);
    result = keep_problem(result, error, &part->answer_problem);
    if (result == LS_OK && part->answer_problem == NULL) result = compute_answer(part, error);
    if (result == LS_OK && job != NULL) {
        result = draw_picture(part->experiment, part->anchor, job, &part->picture, error);
    }
    return result == LS_OK ? add_second(part, results, backend, job, error) : result;
}

static void free_picture(ls_report_picture *picture)
{
    ls_free(picture->svg);
    ls_free(picture->problem);
}

static void free_part(ls_report_part *part)
{
    ls_stored_experiment_free(part->experiment);
    ls_presentation_free(&part->presentation);
    ls_published_free(&part->rows);
    ls_free(part->anchor);
    ls_free(part->answer);
    ls_free(part->answer_problem);
    free_picture(&part->picture);
    ls_sensitivity_free(&part->sensitivity);
    ls_stored_experiment_free(part->second);
    free_picture(&part->second_picture);
}

void ls_report_free(ls_report *report)
{
    for (uint32_t i = 0; i < report->count; i++) free_part(&report->parts[i]);
    ls_free(report->parts);
    *report = (ls_report){0};
}

/* <tag class="...">text</tag>; tag may carry attributes. */
static void add_element(ls_text *page, const char *tag, const char *class_name, const char *text)
{
    ls_text_format(page, "<%s%s%s%s>", tag, class_name != NULL ? " class=\"" : "", class_name != NULL ? class_name : "",
                   class_name != NULL ? "\"" : "");
    ls_text_markup(page, text);
    ls_text_format(page, "</%s>\n", tag);
}

static const char *title_of(const ls_report_part *part)
{
    return part->experiment->title[0] != '\0' ? part->experiment->title : part->experiment->name;
}

static void add_question_and_answer(const ls_report_part *part, ls_text *page)
{
    if (part->presentation.question != NULL) add_element(page, "p", "question", part->presentation.question);
    if (part->answer != NULL) add_element(page, "p", "answer", part->answer);
    if (part->answer_problem == NULL) return;
    ls_text_add(page, "<p class=\"problem\">These results give no answer. ");
    ls_text_markup(page, part->answer_problem);
    ls_text_add(page, "</p>\n");
}

static void add_contents(const ls_report *report, ls_text *page)
{
    ls_text_add(page, "<nav aria-label=\"Questions and answers\"><h2>In short</h2>\n<ol>\n");
    for (uint32_t i = 0; i < report->count; i++) {
        ls_text_format(page, "<li><a href=\"#%s\">", report->parts[i].anchor);
        ls_text_markup(page, title_of(&report->parts[i]));
        ls_text_add(page, "</a>\n");
        add_question_and_answer(&report->parts[i], page);
        ls_text_add(page, "</li>\n");
    }
    ls_text_add(page, "</ol></nav>\n");
}

static void add_picture(const ls_report_picture *picture, const char *caption, ls_text *page)
{
    if (picture->problem != NULL) {
        ls_text_add(page, "<p class=\"problem\">The figure could not be drawn. ");
        ls_text_markup(page, picture->problem);
        ls_text_add(page, "</p>\n");
    }
    if (picture->svg == NULL) return;
    ls_text_format(page, "<figure><div class=\"picture\" tabindex=\"0\" style=\"--width: %.0f\">\n", picture->width);
    ls_text_add(page, picture->svg);
    ls_text_add(page, "</div>\n<p class=\"swipe\">Wider than this window: move it sideways.</p>\n");
    add_element(page, "figcaption", NULL, caption);
    ls_text_add(page, "</figure>\n");
}

static void add_sensitivity(const ls_report_part *part, ls_text *page)
{
    if (part->second == NULL) return;
    ls_text sentence = {0};
    ls_sensitivity_sentence(&part->sensitivity, &sentence);
    ls_text_add(page, "<h3>Which assumptions carry it</h3>\n");
    add_element(page, "p", "answer", sentence.failed ? "" : sentence.bytes);
    if (sentence.failed) page->failed = true;
    ls_text_free(&sentence);
    add_picture(
        &part->second_picture,
        "Left: what the metric changes by when one assumption goes to the low or high end of its range and all "
        "others stay, paired over replications. Right: its share of the metric's variance when all vary at once "
        "over a Sobol design, with the 95 % interval of a bootstrap.",
        page);
    ls_report_sensitivity(part, page);
}

static void add_assumptions(const ls_report_part *part, ls_text *page)
{
    if (part->presentation.assumption_count == 0) return;
    ls_text_add(page, "<h3>What is assumed</h3>\n<ul class=\"assumptions\">\n");
    for (uint32_t i = 0; i < part->presentation.assumption_count; i++) {
        add_element(page, "li", NULL, part->presentation.assumptions[i]);
    }
    ls_text_add(page, "</ul>\n");
}

static void add_origin(const ls_report_part *part, ls_text *page)
{
    const ls_stored_experiment *e = part->experiment;
    uint64_t runs = 0, failed = 0;
    for (uint32_t i = 0; i < e->point_count; i++) {
        runs += e->points[i].run_count;
        failed += e->points[i].failed_count;
    }
    bool simulated = strcmp(e->backend, "sim") == 0;
    ls_text_format(page, "<p class=\"origin\">%u points, %" PRIu64 " runs (%" PRIu64 " failed), seed %" PRIu64 ", %s; ",
                   e->point_count, runs, failed, e->seed, e->quick ? "quick set" : "whole set");
    ls_text_add(page, runs == 0 ? "nothing has run yet" : simulated ? "simulated" : "run on ");
    if (runs > 0 && !simulated) ls_text_markup(page, e->backend);
    ls_text_add(page, runs > 0 ? " by version " : "");
    ls_text_markup(page, e->version);
    ls_text_add(page, "; data of ");
    ls_text_bytes(page, e->added, strcspn(e->added, "T"));
    ls_text_add(page, ".</p>\n");
}

static void add_part(const ls_report_part *part, ls_text *page)
{
    const ls_stored_experiment *e = part->experiment;
    ls_text_format(page, "<section id=\"%s\">\n", part->anchor);
    add_element(page, "h2", NULL, title_of(part));
    add_question_and_answer(part, page);
    add_picture(&part->picture, e->shows, page);
    ls_report_numbers(part, page);
    ls_report_published(part, page);
    add_assumptions(part, page);
    add_sensitivity(part, page);
    ls_text_add(page, "<details><summary>The spec: ");
    ls_text_markup(page, e->name);
    ls_text_add(page, ".json</summary>\n");
    add_element(page, "pre", NULL, e->spec);
    ls_text_add(page, "</details>\n");
    add_origin(part, page);
    ls_text_add(page, "</section>\n");
}

/* Distinct versions in order of appearance. */
static void add_versions(const ls_report *report, ls_text *page)
{
    uint32_t said = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        const char *version = report->parts[i].experiment->version;
        bool repeated = version[0] == '\0';
        for (uint32_t k = 0; k < i && !repeated; k++) {
            repeated = strcmp(report->parts[k].experiment->version, version) == 0;
        }
        if (repeated) continue;
        ls_text_add(page, said++ > 0 ? ", " : "");
        ls_text_markup(page, version);
    }
    ls_text_add(page, said == 0 ? "none yet" : "");
}

static void add_head(const ls_report *report, ls_text *page)
{
    const char *first = "", *last = "";
    uint32_t quick = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        const char *added = report->parts[i].experiment->added;
        if (first[0] == '\0' || strcmp(added, first) < 0) first = added;
        if (strcmp(added, last) > 0) last = added;
        quick += report->parts[i].experiment->quick;
    }
    ls_text_add(page,
                "<header>\n<button type=\"button\" id=\"theme\" hidden=\"hidden\">Colours</button>\n"
                "<h1>Lakestream: figures and what they say</h1>\n<p>Many writers, one manifest on an object store, "
                "conditional writes as the only coordination: when should each commit? ");
    ls_text_format(page, "%u figures; the numbers in the answers are computed from the runs. Version ", report->count);
    add_versions(report, page);
    ls_text_format(page, "; %s; data of ",
                   quick == 0               ? "whole sets"
                   : quick == report->count ? "quick sets (fewer points and replications)"
                                            : "quick and whole sets");
    ls_text_bytes(page, first, strcspn(first, "T"));
    if (strncmp(first, last, strcspn(first, "T")) != 0) {
        ls_text_add(page, " to ");
        ls_text_bytes(page, last, strcspn(last, "T"));
    }
    ls_text_add(page, ".</p>\n</header>\n");
}

ls_result ls_report_page(const ls_report *report, ls_text *page)
{
    ls_text_add(page,
                "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\" xml:lang=\"en\">\n<head>\n"
                "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
                "initial-scale=1\"/>\n<title>Lakestream: figures and what they say</title>\n"
                "<link rel=\"icon\" href=\"data:,\"/>\n<style>\n/*<![CDATA[*/\n");
    ls_text_add(page, ls_report_css);
    ls_text_add(page, "/*]]>*/\n</style>\n</head>\n<body>\n");
    add_head(report, page);
    add_contents(report, page);
    ls_text_add(page, "<main>\n");
    for (uint32_t i = 0; i < report->count; i++) add_part(&report->parts[i], page);
    ls_text_add(page, "</main>\n<script>\n//<![CDATA[\n");
    ls_text_add(page, ls_report_js);
    ls_text_add(page, "//]]>\n</script>\n</body>\n</html>\n");
    return page->failed ? LS_ERROR_MEMORY : LS_OK;
}
