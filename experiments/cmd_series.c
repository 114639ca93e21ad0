/* cmd_series.c - `lakestream series SPEC`: one replication of one or all points, simulated anew, and its time series written as a
 * table: batches published and training steps ended a second in each step of time, and bytes held at its end.
 *
 * A results file holds one number a metric and run; a time line is of another shape, and cheap to make again from the same seed.
 * So it is written beside the picture and stored nowhere. Columns: the swept keys of the point, time_s (the step's end),
 * published_per_s, trainer_steps_per_s, stored_bytes.
 */
#include "experiments/commands.h"
#include "experiments/spec.h"
#include "experiments/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct table {
    ls_text text;
    const ls_spec *spec;
    const ls_spec_point *point;
} table;

static void add_series(void *context, const ls_timeline *timeline)
{
    table *t = context;
    for (uint32_t i = 0; i < timeline->count; i++) {
        for (uint32_t k = 0; k < t->spec->swept_key_count; k++) {
            ls_text_field(&t->text, t->point->labels[k]);
            ls_text_add(&t->text, "\t");
        }
        ls_text_number(&t->text, (i + 1) * timeline->step_s);
        ls_text_add(&t->text, "\t");
        ls_text_number(&t->text, timeline->published[i] / timeline->step_s);
        ls_text_add(&t->text, "\t");
        ls_text_number(&t->text, timeline->steps[i] / timeline->step_s);
        ls_text_add(&t->text, "\t");
        ls_text_number(&t->text, timeline->stored_bytes[i]);
        ls_text_add(&t->text, "\n");
    }
}

static ls_result simulate_point(table *t, uint32_t point, uint64_t replication, ls_error *error)
{
    t->point = &t->spec->points[point];
    ls_simulation_watcher watcher = {.context = t, .timeline = add_series};
    ls_run_result ignored;
    return ls_simulate_watched(&t->point->scenario, t->spec->seed, replication, &watcher, &ignored, error);
}

static ls_result write_table(const char *path, const ls_text *text, ls_error *error)
{
    if (path == NULL) {
        fputs(text->bytes, stdout);
        return LS_OK;
    }
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fwrite(text->bytes, 1, text->length, file) == text->length;
    if (file != NULL && fclose(file) != 0) written = false;
    return written ? LS_OK : ls_fail(error, LS_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_spec *spec = NULL;
    table t = {0};
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_result result = ls_spec_read(arguments->operands[0], &vocabulary, ls_argument_flag(arguments, "quick"), &spec, &error);
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    bool one = ls_argument_given(arguments, "point");
    uint64_t first = one ? ls_argument_whole(arguments, "point") : 0;
    if (first >= spec->point_count) {
        result = ls_fail(&error, LS_ERROR_INVALID, "--point %" PRIu64 ": the spec has points 0 to %" PRIu32, first, spec->point_count - 1);
    }
    t.spec = spec;
    for (uint32_t k = 0; k < spec->swept_key_count; k++) ls_text_format(&t.text, "%s\t", spec->swept_keys[k]);
    ls_text_add(&t.text, "time_s\tpublished_per_s\ttrainer_steps_per_s\tstored_bytes\n");
    uint64_t end = one ? first + 1 : spec->point_count;
    for (uint64_t i = first; i < end && result == LS_OK; i++) {
        result = simulate_point(&t, (uint32_t)i, ls_argument_whole(arguments, "replication"), &error);
    }
    if (result == LS_OK && t.text.failed) result = ls_fail(&error, LS_ERROR_MEMORY, "out of memory");
    if (result == LS_OK) result = write_table(ls_argument_text(arguments, "output"), &t.text, &error);
    ls_text_free(&t.text);
    ls_spec_free(spec);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "where the table goes; default standard output"},
    {"point", 'p', LS_ARGUMENT_WHOLE, "N", NULL, 0, 1e6, "this point alone, counted from 0; default all"},
    {"replication", 'r', LS_ARGUMENT_WHOLE, "N", "0", 0, 9007199254740992.0, "which replication"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with the spec's \"quick\" overrides"}};

const ls_command ls_command_series = {
    .name = "series",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Write how many batches were published a second over the time of a run, as a table",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
