/* report.h - one HTML page with every figure of a results database: its question, the answer computed from the data,
 * the picture, the numbers, what is published beside what was simulated, what was assumed, and the spec.
 *
 * The page is self-contained (pictures, style and script inside; it loads nothing) and depends on the database and the
 * scripts alone: no clock, no path, no host. It is HTML that is also well-formed XML, so that any XML parser can check
 * it. A fragment #selftest makes it test itself in the reader's browser and say so in the element "selftest".
 */
#ifndef LS_REPORT_H
#define LS_REPORT_H

#include "experiments/figure.h"
#include "experiments/published.h"
#include "experiments/sensitivity.h"

/* A picture as it stands on the page. */
typedef struct ls_report_picture {
    char *svg;     /* inline SVG; NULL: see problem */
    double width;  /* in its own units */
    char *problem; /* why there is none; NULL also when none was asked for */
} ls_report_picture;

/* One figure's part of the page, gathered before any of it is written. Owned by the report. */
typedef struct ls_report_part {
    ls_stored_experiment *experiment;
    ls_presentation presentation;
    ls_published_rows rows;
    char *anchor; /* unique on the page; letters, digits, hyphens */
    char *answer; /* NULL when the spec gives none or it cannot be computed */
    char *answer_problem;
    ls_report_picture picture;
    ls_stored_experiment *second; /* the study of its assumptions; NULL if there is none */
    ls_sensitivity sensitivity;   /* of second */
    ls_report_picture second_picture;
} ls_report_part;

typedef struct ls_report {
    ls_report_part *parts;
    uint32_t count;
    uint32_t capacity;
} ls_report;

/* Loads an experiment, and the study of its assumptions if the file holds one (<name>-sensitivity), computes its answer
 * and draws its pictures in job->folder (which gets <name>.tsv and <name>.svg). job NULL: no picture, and
 * published_folder says where published numbers are. An answer that cannot be computed and a picture that cannot be
 * drawn are kept as problems, which the page names. Free the report with ls_report_free. */
ls_result ls_report_add(ls_report *report, ls_results *results, const char *name, const char *backend,
                        const ls_figure_job *job, const char *published_folder, ls_error *error);

/* Appends the page. LS_ERROR_MEMORY. */
ls_result ls_report_page(const ls_report *report, ls_text *page);
void ls_report_free(ls_report *report);

/* The table of an experiment's numbers, and the one of published beside simulated ones, as HTML (report_table.c). */
void ls_report_numbers(const ls_report_part *part, ls_text *page);
void ls_report_published(const ls_report_part *part, ls_text *page);
void ls_report_sensitivity(const ls_report_part *part, ls_text *page);

/* Style and script of the page (report_assets.c): NUL-terminated. */
extern const char ls_report_css[];
extern const char ls_report_js[];

#endif
