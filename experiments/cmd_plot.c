/* cmd_plot.c - `lakestream plot DB|SPEC`: the plotting table of an experiment (tidy.h), and gnuplot run on its
 * script.
 *
 * A script <name>.gp finds these variables: data (the table's path), output (the picture's path; the suffix, .svg or
 * .png, tells the terminal to set), published (folder of published numbers), title_text and shows (of the spec). The
 * scripts' folder is in the load path. The script runs once for each of SVG and PNG.
 */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/tidy.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct plot_job {
    const ls_arguments *arguments;
    const char *folder;      /* where output goes */
    const char *spec_folder; /* where the spec lies; NULL: as the database says */
    ls_error *error;
} plot_job;

static ls_result out_of_memory(const plot_job *job) { return ls_fail(job->error, LS_ERROR_MEMORY, "out of memory"); }

/* A gnuplot string in single quotes: nothing but the quote is special in it. */
static void add_quoted(ls_text *text, const char *string)
{
    ls_text_add(text, "'");
    for (const char *c = string; *c != '\0'; c++) ls_text_bytes(text, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    ls_text_add(text, "'");
}

static char *join_path(const char *folder, const char *name, const char *suffix)
{
    ls_text text = {0};
    ls_text_format(&text, "%s/%s%s", folder, name, suffix);
    return ls_text_take(&text);
}

/* The first of folder/plots/name.gp and folder/name.gp that exists; NULL if none does (or out of memory). */
static char *find_script_near(const char *folder, const char *name)
{
    ls_text plots = {0};
    ls_text_format(&plots, "%s/plots", folder);
    char *inner = plots.failed ? NULL : join_path(plots.bytes, name, ".gp");
    char *outer = join_path(folder, name, ".gp");
    ls_text_free(&plots);
    char *found = inner != NULL && access(inner, R_OK) == 0   ? inner
                  : outer != NULL && access(outer, R_OK) == 0 ? outer
                                                              : NULL;
    if (found != inner) ls_free(inner);
    if (found != outer) ls_free(outer);
    return found;
}

static ls_result find_script(const plot_job *job, const ls_stored_experiment *e, char **script)
{
    const char *given = ls_argument_text(job->arguments, "plots");
    char *stored = ls_folder_of(e->path);
    if (stored == NULL) return out_of_memory(job);
    const char *folder = given != NULL ? given : job->spec_folder != NULL ? job->spec_folder : stored;
    *script = find_script_near(folder, e->name);
    ls_result result = LS_OK;
    if (*script == NULL) {
        result =
            ls_fail(job->error, LS_ERROR_INVALID,
                    "no plot script %s.gp in %s/plots or %s; name its folder with --plots (the table is %s/%s.tsv)",
                    e->name, folder, folder, job->folder, e->name);
    }
    ls_free(stored);
    return result;
}

static ls_result spawn_gnuplot(const plot_job *job, const char *settings, const char *script)
{
    char *words[] = {(char *)"gnuplot", (char *)"-e", (char *)(uintptr_t)settings, (char *)(uintptr_t)script, NULL};
    pid_t pid;
    fflush(NULL);
    int failure = posix_spawnp(&pid, "gnuplot", NULL, NULL, words, environ);
    if (failure == ENOENT) {
        return ls_fail(job->error, LS_ERROR_IO,
                       "gnuplot is not installed; install it (Debian: apt-get install gnuplot-nox), or "
                       "plot the table with another program");
    }
    if (failure != 0) return ls_fail(job->error, LS_ERROR_IO, "gnuplot cannot be started: %s", strerror(failure));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return LS_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return ls_fail(job->error, LS_ERROR_IO, "gnuplot cannot be started");
    return ls_fail(job->error, LS_ERROR_IO, "gnuplot failed on %s; its own message stands above", script);
}

static void add_setting(ls_text *text, const char *before, const char *value)
{
    ls_text_add(text, before);
    add_quoted(text, value);
}

static ls_result draw(const plot_job *job, const ls_stored_experiment *e, const char *script, const char *data,
                      const char *suffix)
{
    char *output = join_path(job->folder, e->name, suffix), *script_folder = ls_folder_of(script);
    ls_text settings = {0};
    ls_result result = output != NULL && script_folder != NULL ? LS_OK : out_of_memory(job);
    if (result != LS_OK) goto done;
    add_setting(&settings, "set datafile separator tab; set loadpath ", script_folder);
    add_setting(&settings, "; data=", data);
    add_setting(&settings, "; output=", output);
    add_setting(&settings, "; published=", ls_argument_text(job->arguments, "published"));
    add_setting(&settings, "; title_text=", e->title);
    add_setting(&settings, "; shows=", e->shows);
    result = settings.failed ? out_of_memory(job) : spawn_gnuplot(job, settings.bytes, script);
    if (result == LS_OK && access(output, R_OK) != 0) {
        result = ls_fail(job->error, LS_ERROR_IO,
                         "%s: gnuplot ended without writing it; the script must `set output output`", output);
    }
    if (result == LS_OK) printf("%s\n", output);
done:
    ls_text_free(&settings);
    ls_free(script_folder);
    ls_free(output);
    return result;
}

static ls_result plot_experiment(const plot_job *job, const ls_stored_experiment *e)
{
    char *data = join_path(job->folder, e->name, ".tsv"), *script = NULL;
    ls_text table = {0};
    ls_result result = data != NULL && ls_tidy(e, &table) == LS_OK ? LS_OK : out_of_memory(job);
    if (result == LS_OK) result = ls_file_write(data, table.bytes, table.length, job->error);
    if (result == LS_OK) printf("%s\n", data);
    if (result == LS_OK && !ls_argument_flag(job->arguments, "table")) {
        result = find_script(job, e, &script);
        if (result == LS_OK) result = draw(job, e, script, data, ".svg");
        if (result == LS_OK) result = draw(job, e, script, data, ".png");
    }
    ls_free(script);
    ls_free(data);
    ls_text_free(&table);
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
        "from PNG), published, title_text and shows. The table has one row a point: the swept keys, replications,\n"
        "then for each metric its mean and <metric>.half_width (95 %), all to be named in `using`.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
