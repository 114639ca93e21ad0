/* cmd_macros.c - `lakestream macros SPEC... -i DB -o FILE`: what a paper prints, as LaTeX macros (macros.h). Results that
 * are stale or incomplete are refused (freshness.h), so that a paper built from them does not build. */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/freshness.h"
#include "experiments/macros.h"
#include "experiments/version.h"

#include <stdio.h>
#include <string.h>

typedef struct job {
    const ls_arguments *arguments;
    ls_vocabulary vocabulary;
    ls_results *results;
    ls_json templates;
    ls_text text;
    bool quick;
    ls_error *error;
} job;

static ls_result add_experiment(job *j, const char *path)
{
    const char *database = ls_argument_text(j->arguments, "input");
    ls_spec *spec = NULL;
    ls_stored_experiment *experiment = NULL;
    ls_published_rows rows = {0};
    ls_result result = ls_spec_read(path, &j->vocabulary, j->quick, &spec, j->error);
    if (result == LS_OK) result = ls_results_load(j->results, spec->name, "sim", &experiment, j->error);
    if (result == LS_OK) result = ls_check_fresh(spec, experiment, LS_VERSION, database, j->error);
    if (result == LS_OK) {
        result = ls_published_match(&spec->presentation, ls_argument_text(j->arguments, "published"), experiment, &rows,
                                    j->error);
    }
    if (result == LS_OK) {
        result = ls_macros_of(experiment, &spec->presentation, &rows, j->templates.root, &j->text, j->error);
    }
    ls_published_free(&rows);
    ls_stored_experiment_free(experiment);
    ls_spec_free(spec);
    return result;
}

/* The record's spec lies where the first spec lies. */
static ls_result add_record(job *j, const char *path)
{
    ls_validation_record record = {0};
    ls_spec *spec = NULL;
    ls_text spec_path = {0};
    char *folder = ls_folder_of(j->arguments->operands[0]);
    ls_result result = ls_validation_read(path, &record, j->error);
    if (result == LS_OK) {
        ls_text_format(&spec_path, "%s/%s.json", folder != NULL ? folder : ".", record.experiment);
        result = spec_path.failed ? ls_fail(j->error, LS_ERROR_MEMORY, "out of memory")
                                  : ls_spec_read(spec_path.bytes, &j->vocabulary, record.quick, &spec, j->error);
    }
    if (result == LS_OK) result = ls_validation_check(&record, spec, LS_VERSION, path, j->error);
    if (result == LS_OK && ls_macros_validation(&record, &j->text) != LS_OK) {
        result = ls_fail(j->error, LS_ERROR_MEMORY, "out of memory");
    }
    ls_free(folder);
    ls_text_free(&spec_path);
    ls_spec_free(spec);
    ls_validation_free(&record);
    return result;
}

static ls_result add_records(job *j)
{
    uint32_t count = 0;
    ls_result result = LS_OK;
    ls_text_add(&j->text, "\\lsdefine{validation}{tables}{");
    for (const char *path; result == LS_OK && (path = ls_argument_text_at(j->arguments, "validation", count)) != NULL; count++) {
        result = add_record(j, path);
    }
    if (count == 0) ls_text_add(&j->text, "No record of a validation lay in \\texttt{paper/validation} when this text was built.");
    ls_text_add(&j->text, "}\n");
    return result;
}

static ls_result make(job *j)
{
    const char *templates = ls_argument_text(j->arguments, "templates");
    ls_result result = templates != NULL ? ls_json_read(templates, &j->templates, j->error) : LS_OK;
    if (result == LS_OK) {
        result = ls_results_open(ls_argument_text(j->arguments, "input"), LS_RESULTS_READ, &j->results, j->error);
    }
    ls_macros_begin(&j->text);
    ls_macro(&j->text, "build", "length", j->quick ? "quick" : "full");
    ls_macro(&j->text, "build", "version", LS_VERSION);
    for (uint32_t i = 0; i < j->arguments->operand_count && result == LS_OK; i++) {
        result = add_experiment(j, j->arguments->operands[i]);
    }
    if (result == LS_OK) result = add_records(j);
    if (result == LS_OK && j->text.failed) result = ls_fail(j->error, LS_ERROR_MEMORY, "out of memory");
    if (result != LS_OK) return result;
    return ls_file_write(ls_argument_text(j->arguments, "output"), j->text.bytes, j->text.length, j->error);
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    job j = {.arguments = arguments, .vocabulary = ls_vocabulary_default(), .quick = ls_argument_flag(arguments, "quick"), .error = &error};
    ls_result result = make(&j);
    ls_text_free(&j.text);
    ls_results_close(j.results);
    ls_json_free(&j.templates);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"input", 'i', LS_ARGUMENT_TEXT, "DB", "results/figures.db", 0, 0, "results file"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", "numbers.tex", 0, 0, "the macros"},
    {"templates", 't', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "JSON file of further numbers and tables"},
    {"published", 0, LS_ARGUMENT_TEXT, "DIR", "results/published", 0, 0, "folder of published numbers"},
    {"validation", 'v', LS_ARGUMENT_TEXTS, "FILE", NULL, 0, 0, "a record of a validation; may be given several times"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "the runs must be those of the specs' quick overrides"}};

const ls_command ls_command_macros = {
    .name = "macros",
    .operands = "SPEC...",
    .minimum_operands = 1,
    .maximum_operands = 1000,
    .summary = "Write results as LaTeX macros; refuse stale or missing ones",
    .details = "\\of{EXPERIMENT}{NAME} gives title, question, answer, assumptions, points, runs, seed, version, spec; and the\n"
               "numbers and tables that --templates names:\n"
               "  {\"f7\": {\"numbers\": {\"delay\": \"{max(publish_delay_p50_s) : seconds}\"},\n"
               "          \"tables\": {\"largest\": {\"where\": {\"producers.count\": \"largest\"},\n"
               "                     \"columns\": [{\"metric\": \"conflict_share\", \"head\": \"conflicts\", \"form\": \"percent\"}]}}}}",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
