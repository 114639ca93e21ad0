/* cmd_plot.c - `lakestream plot DB|SPEC`: the plotting table of an experiment and its pictures, SVG and PNG (figure.h).
 */
#include "experiments/commands.h"
#include "experiments/figure.h"
#include "experiments/folder.h"
#include "experiments/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct plot_job {
    const ls_arguments *arguments;
    const char *folder;      /* where output goes */
    const char *spec_folder; /* where the spec lies; NULL: as the database says */
    ls_error *error;
} plot_job;

static ls_result out_of_memory(const plot_job *job) { return ls_fail(job->error, LS_ERROR_MEMORY, "out of memory"); }

/* Prints the path of a file that was made. */
static void say(const plot_job *job, const ls_stored_experiment *e, const char *suffix)
{
    printf("%s/%s%s\n", job->folder, e->name, suffix);
}

static ls_result plot_experiment(const plot_job *job, const ls_stored_experiment *e)
{
    const char *scripts = ls_argument_text(job->arguments, "plots");
    const ls_figure_job figure = {.folder = job->folder,
                                  .series_folder = job->folder,
                                  .script_folder = scripts != NULL ? scripts : job->spec_folder,
                                  .published = ls_argument_text(job->arguments, "published")};
    static const char *const suffixes[] = {".svg", ".png", ".pdf"};
    bool pdf = ls_argument_flag(job->arguments, "pdf");
    char *script = NULL;
    ls_result result = ls_figure_table(&figure, e, job->error);
    if (result == LS_OK) say(job, e, ".tsv");
    if (result != LS_OK || ls_argument_flag(job->arguments, "table")) return result;
    result = ls_figure_script(&figure, e, &script, job->error);
    for (int i = pdf ? 2 : 0; i < (pdf ? 3 : 2) && result == LS_OK; i++) {
        result = ls_figure_draw(&figure, e, script, suffixes[i], job->error);
        if (result == LS_OK) say(job, e, suffixes[i]);
    }
    ls_free(script);
    return result;
}

typedef struct name_list {
    char **names;
    uint32_t count;
} name_list;

static ls_result collect_name(void *context, const ls_results_summary *summary)
{
    name_list *list = context;
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], summary->name) == 0) return LS_OK;
    }
    char **names = ls_reallocate(list->names, (list->count + 1) * sizeof *names);
    if (names == NULL) return LS_ERROR_MEMORY;
    list->names = names;
    names[list->count] = ls_duplicate(summary->name);
    return names[list->count++] != NULL ? LS_OK : LS_ERROR_MEMORY;
}

static ls_result plot_named(const plot_job *job, ls_results *results, const char *name)
{
    ls_stored_experiment *experiment = NULL;
    ls_result result =
        ls_results_load(results, name, ls_argument_text(job->arguments, "backend"), &experiment, job->error);
    if (result == LS_OK) result = plot_experiment(job, experiment);
    ls_stored_experiment_free(experiment);
    return result;
}

/* The experiment that was asked for, or all that the file holds. */
static ls_result plot_database(const plot_job *job, const char *path, const char *name)
{
    ls_results *results = NULL;
    name_list list = {0};
    ls_result result = ls_results_open(path, LS_RESULTS_READ, &results, job->error);
    if (result == LS_OK && name != NULL) result = plot_named(job, results, name);
    if (result == LS_OK && name == NULL) {
        result = ls_results_each_experiment(results, collect_name, &list, job->error);
        if (result == LS_OK && list.count == 0) {
            result = ls_fail(job->error, LS_ERROR_INVALID, "%s: holds no experiment; run one first", path);
        }
        for (uint32_t i = 0; i < list.count && result == LS_OK; i++) result = plot_named(job, results, list.names[i]);
    }
    for (uint32_t i = 0; i < list.count; i++) ls_free(list.names[i]);
    ls_free(list.names);
    ls_results_close(results);
    return result;
}

/* A spec stands for its default results file, or for its part of the one named with --input. */
static ls_result plot_spec(plot_job *job, const char *path)
{
    char *name = ls_file_stem(path), *folder = ls_folder_of(path);
    ls_text database = {0};
    const char *input = ls_argument_text(job->arguments, "input");
    if (name != NULL && input == NULL) ls_text_format(&database, "results/%s.db", name);
    if (input != NULL) ls_text_add(&database, input);
    ls_result result = name != NULL && folder != NULL && !database.failed ? LS_OK : out_of_memory(job);
    if (result == LS_OK && access(path, R_OK) != 0) {
        result = ls_fail(job->error, LS_ERROR_INVALID, "%s: cannot be read (%s)", path, strerror(errno));
    }
    job->spec_folder = folder;
    if (result == LS_OK) result = plot_database(job, database.bytes, name);
    job->spec_folder = NULL;
    ls_text_free(&database);
    ls_free(name);
    ls_free(folder);
    return result;
}

static bool is_spec(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    plot_job job = {.arguments = arguments, .folder = ls_argument_text(arguments, "output"), .error = &error};
    const char *path = arguments->operands[0];
    ls_result result = ls_folder_make(job.folder, &error);
    if (result == LS_OK) {
        result = is_spec(path) ? plot_spec(&job, path)
                               : plot_database(&job, path, ls_argument_text(arguments, "experiment"));
    }
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"output", 'o', LS_ARGUMENT_TEXT, "DIR", "results/plots", 0, 0, "folder for the table and the pictures"},
    {"input", 'i', LS_ARGUMENT_TEXT, "DB", NULL, 0, 0,
     "results file that holds the spec's runs; default results/<name>.db"},
    {"plots", 'p', LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "folder of the scripts; default: next to the spec, in plots/"},
    {"published", 0, LS_ARGUMENT_TEXT, "DIR", "results/published", 0, 0, "folder of published numbers to draw beside"},
    {"experiment", 'e', LS_ARGUMENT_TEXT, "NAME", NULL, 0, 0, "which experiment; default: all in the file"},
    {"backend", 0, LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "runs of this backend; default: of the latest run"},
    {"pdf", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "PDF, instead of SVG and PNG"},
    {"table", 't', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "only the table, no pictures"}};

const ls_command ls_command_plot = {
    .name = "plot",
    .operands = "DB|SPEC.json",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Draw an experiment's figure: a table (TSV), and SVG and PNG by gnuplot",
    .details =
        "SPEC.json stands for results/<name>.db. The script <name>.gp finds the variables data, output (its suffix "
        "tells SVG\n"
        "from PNG and PDF), series (the path of <name>-series.tsv), published, title_text and shows. The table has one row a "
        "point: the swept keys, replications,\n"
        "then for each metric its mean and <metric>.half_width (95 %), all to be named in `using`.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
