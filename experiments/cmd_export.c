/* cmd_export.c - `lakestream export DB`: the observations of a results file as CSV or JSON lines, for pandas, R and
 * whatever else reads tables. */
#include "experiments/commands.h"
#include "experiments/export.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static ls_result choose_format(const char *name, ls_export_format *format, ls_error *error)
{
    if (strcmp(name, "csv") == 0) {
        *format = LS_EXPORT_CSV;
    } else if (strcmp(name, "jsonl") == 0) {
        *format = LS_EXPORT_JSONL;
    } else {
        return ls_fail(error, LS_ERROR_INVALID, "--format \"%.50s\": expected csv or jsonl", name);
    }
    return LS_OK;
}

static ls_result write_file(ls_results *results, const ls_observation_filter *filter, ls_export_format format,
                            const char *path, ls_error *error)
{
    uint64_t rows = 0;
    if (path == NULL) return ls_export(results, filter, format, stdout, &rows, error);
    FILE *file = fopen(path, "w");
    if (file == NULL) return ls_fail(error, LS_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    ls_result result = ls_export(results, filter, format, file, &rows, error);
    if (fclose(file) != 0 && result == LS_OK) {
        result = ls_fail(error, LS_ERROR_IO, "cannot write %s: %s; it is incomplete", path, strerror(errno));
    }
    if (result == LS_OK) printf("%s: %" PRIu64 " observations\n", path, rows);
    return result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    ls_export_format format = LS_EXPORT_CSV;
    ls_observation_filter filter = {.experiment = ls_argument_text(arguments, "experiment"),
                                    .metrics = ls_argument_text(arguments, "metric"),
                                    .backend = ls_argument_text(arguments, "backend")};
    ls_result result = choose_format(ls_argument_text(arguments, "format"), &format, &error);
    if (result == LS_OK) result = ls_results_open(arguments->operands[0], LS_RESULTS_READ, &results, &error);
    if (result == LS_OK) result = ls_export_check(results, &filter, &error);
    if (result == LS_OK) result = write_file(results, &filter, format, ls_argument_text(arguments, "output"), &error);
    ls_results_close(results);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"experiment", 'e', LS_ARGUMENT_TEXT, "NAME", NULL, 0, 0, "only this experiment; default: all"},
    {"metric", 'm', LS_ARGUMENT_TEXT, "NAME,...", NULL, 0, 0, "only these metrics; default: all"},
    {"backend", 0, LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "only runs of this backend; default: all"},
    {"format", 'f', LS_ARGUMENT_TEXT, "csv|jsonl", "csv", 0, 0, "CSV, or one JSON object a line"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "write here; default: standard output"}};

const ls_command ls_command_export = {
    .name = "export",
    .operands = "DB",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Write a results file as a tidy table, CSV or JSON lines: one observation a row",
    .details = "Columns: experiment, seed, quick, point, position, version, backend, replication, metric, value, unit, then one\n"
               "for each swept key. docs/results.md explains them, with snippets for SQL, pandas and R.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
