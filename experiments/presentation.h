/* presentation.h - what a spec tells the reader of its figure: the question, the sentence that answers it, what had to
 * be assumed, which numbers the table shows, and what is published on the matter. None of it changes a run.
 *
 *   "question": "How many batches a second ...?",
 *   "answer": "With {largest producers.count} producers ...",       a template, see answer.h
 *   "assumptions": ["The effect of a put lies at its end (assumed; S3 shows it)."],
 *   "table": ["published_per_s", "conflict_share"],                 metrics of the table; default: those of "compare"
 *   "published": [{"file": ..., "keys": ..., "where": ..., "metrics": ...}]     see published.h
 */
#ifndef LS_PRESENTATION_H
#define LS_PRESENTATION_H

#include "experiments/json.h"

typedef struct ls_published_column {
    char *column;
    char *name;    /* swept key, label wanted of it (where), or metric */
    double factor; /* of a metric's column; 1 otherwise */
} ls_published_column;

typedef struct ls_published_table {
    char *file; /* name within the folder of published numbers */
    ls_published_column *keys;
    uint32_t key_count;
    ls_published_column *where; /* column: the key, name: the label */
    uint32_t where_count;
    ls_published_column *metrics;
    uint32_t metric_count;
} ls_published_table;

typedef struct ls_presentation {
    char *question; /* NULL if not given, as are the others */
    char *answer;
    char **assumptions;
    uint32_t assumption_count;
    char **table;
    uint32_t table_count;
    ls_published_table *published;
    uint32_t published_count;
} ls_presentation;

/* Reads the members of a spec's object into *presentation (zeroed by the caller, freed by ls_presentation_free whatever
 * the result). LS_ERROR_INVALID with the place; LS_ERROR_MEMORY. Names of metrics and keys are not checked here. */
ls_result ls_presentation_read(const ls_json *json, ls_presentation *presentation, ls_error *error);

/* The same from a spec's text, as the results database keeps it. */
ls_result ls_presentation_parse(const char *name, const char *text, ls_presentation *presentation, ls_error *error);
void ls_presentation_free(ls_presentation *presentation);

#endif
