/* cmd_report.c - `lakestream report [SPECS...] -i DB -o FILE`: the page of report.h. Pictures are drawn in a folder of
 * their own that is removed afterwards. */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct report_job {
    const ls_arguments *arguments;
    ls_results *results;
    ls_report report;
    ls_figure_job figure;
    const char *published;
    const char *backend;
    char **names;
    uint32_t name_count;
    ls_error *error;
} report_job;

static ls_result out_of_memory(const report_job *job) { return ls_fail(job->error, LS_ERROR_MEMORY, "out of memory"); }

static ls_result push_name(report_job *job, char *name)
{
    for (uint32_t i = 0; name != NULL && i < job->name_count; i++) {
        if (strcmp(job->names[i], name) != 0) continue;
        ls_free(name);
        return LS_OK;
    }
    char **names = name != NULL ? ls_reallocate(job->names, (job->name_count + 1) * sizeof *names) : NULL;
    if (names == NULL) {
        ls_free(name);
        return out_of_memory(job);
    }
    job->names = names;
    names[job->name_count++] = name;
    return LS_OK;
}

static ls_result collect(void *context, const ls_results_summary *summary)
{
    /* Studies of assumptions stand with the figure that they are about. */
    if (ls_is_sensitivity(summary->name)) return LS_OK;
    return push_name(context, ls_duplicate(summary->name));
}

static int by_text(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* The specs' names in the order given; without specs every experiment of the file by name. */
static ls_result list_names(report_job *job)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < job->arguments->operand_count && result == LS_OK; i++) {
        result = push_name(job, ls_file_stem(job->arguments->operands[i]));
    }
    if (result != LS_OK || job->name_count > 0) return result;
    result = ls_results_each_experiment(job->results, collect, job, job->error);
    if (result == LS_OK && job->name_count == 0) {
        return ls_fail(job->error, LS_ERROR_INVALID, "%s: holds no experiment; run one first",
                       ls_argument_text(job->arguments, "input"));
    }
    if (result == LS_OK) qsort(job->names, job->name_count, sizeof job->names[0], by_text);
    return result;
}

static ls_result gather(report_job *job)
{
    ls_result result = list_names(job);
    for (uint32_t i = 0; i < job->name_count && result == LS_OK; i++) {
        const char *operand = i < job->arguments->operand_count ? job->arguments->operands[i] : NULL;
        const char *given = ls_argument_text(job->arguments, "plots");
        char *beside = operand != NULL ? ls_folder_of(operand) : NULL;
        job->figure.script_folder = given != NULL ? given : beside;
        result = ls_report_add(&job->report, job->results, job->names[i], job->backend, &job->figure, job->published,
                               job->error);
        ls_free(beside);
    }
    return result;
}

/* Names every problem on stderr; true when a picture is missing. */
static bool tell_problems(const report_job *job)
{
    bool missing = false;
    for (uint32_t i = 0; i < job->report.count; i++) {
        const ls_report_part *part = &job->report.parts[i];
        const char *name = part->experiment->name;
        if (part->answer_problem != NULL) fprintf(stderr, "lakestream report: %s: %s\n", name, part->answer_problem);
        const char *problems[] = {part->picture.problem, part->second_picture.problem};
        for (int k = 0; k < 2; k++) {
            if (problems[k] == NULL) continue;
            fprintf(stderr, "lakestream report: %s: %s\n", name, problems[k]);
            missing = true;
        }
    }
    return missing;
}

static void remove_drawings(const report_job *job)
{
    static const char *const suffixes[] = {".tsv", ".svg", LS_SENSITIVITY_SUFFIX ".tsv", LS_SENSITIVITY_SUFFIX ".svg"};
    for (uint32_t i = 0; i < job->name_count; i++) {
        for (int k = 0; k < 4; k++) {
            char *path = ls_figure_path(job->figure.folder, job->names[i], suffixes[k]);
            if (path != NULL) unlink(path);
            ls_free(path);
        }
    }
    rmdir(job->figure.folder);
}

static ls_result write_page(const report_job *job, const char *output)
{
    ls_text page = {0};
    char *folder = ls_folder_of(output);
    ls_result result = folder != NULL ? ls_folder_make(folder, job->error) : out_of_memory(job);
    if (result == LS_OK && ls_report_page(&job->report, &page) != LS_OK) result = out_of_memory(job);
    if (result == LS_OK) result = ls_file_write(output, page.bytes, page.length, job->error);
    if (result == LS_OK) printf("%s\n", output);
    ls_text_free(&page);
    ls_free(folder);
    return result;
}

static ls_result report(report_job *job, bool *missing)
{
    const char *output = ls_argument_text(job->arguments, "output"), *temporary = getenv("TMPDIR");
    char *drawings = ls_figure_path(temporary != NULL ? temporary : "/tmp", "lakestream-report-", "XXXXXX");
    char *beside = ls_folder_of(output);
    const char *figures = ls_argument_text(job->arguments, "figures");
    ls_result result = drawings != NULL && beside != NULL ? LS_OK : out_of_memory(job);
    if (result == LS_OK && mkdtemp(drawings) == NULL) {
        result = ls_fail(job->error, LS_ERROR_IO, "%s: cannot be created: %s; set TMPDIR", drawings, strerror(errno));
    }
    if (result == LS_OK) {
        job->figure.folder = drawings;
        job->figure.series_folder = figures != NULL ? figures : beside;
        result = gather(job);
        remove_drawings(job);
    }
    if (result == LS_OK) result = write_page(job, output);
    if (result == LS_OK) *missing = tell_problems(job);
    ls_free(drawings);
    ls_free(beside);
    return result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    report_job job = {.arguments = arguments,
                      .published = ls_argument_text(arguments, "published"),
                      .backend = ls_argument_text(arguments, "backend"),
                      .error = &error};
    bool missing = false;
    job.figure.published = job.published;
    ls_result result = ls_results_open(ls_argument_text(arguments, "input"), LS_RESULTS_READ, &job.results, &error);
    if (result == LS_OK) result = report(&job, &missing);
    ls_report_free(&job.report);
    ls_results_close(job.results);
    for (uint32_t i = 0; i < job.name_count; i++) ls_free(job.names[i]);
    ls_free(job.names);
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    return missing ? LS_EXIT_ENVIRONMENT : LS_EXIT_DONE;
}

static const ls_command_option options[] = {
    {"input", 'i', LS_ARGUMENT_TEXT, "DB", "results/figures.db", 0, 0, "results file"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", "results/figures/report.html", 0, 0, "the page"},
    {"plots", 'p', LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "folder of the scripts; default: next to the specs, in plots/"},
    {"published", 0, LS_ARGUMENT_TEXT, "DIR", "results/published", 0, 0, "folder of published numbers to set beside"},
    {"figures", 'f', LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "folder of time series; default: that of the page"},
    {"backend", 0, LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "runs of this backend; default: of the latest run"}};

const ls_command ls_command_report = {
    .name = "report",
    .operands = "[SPEC.json ...]",
    .minimum_operands = 0,
    .maximum_operands = 1000,
    .summary = "Make one self-contained HTML page of all figures, questions and answers",
    .details =
        "Specs select experiments of the results file and order them; without any, all are shown by name. What a\n"
        "spec says (question, answer, published, assumptions) is taken as it was when it was run: after a change\n"
        "there, run it again, which keeps the runs that are there. Exit code 3: a figure could not be drawn (the\n"
        "page says so).",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
