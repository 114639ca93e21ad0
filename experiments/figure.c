/* figure.c - see figure.h. */
#include "experiments/figure.h"

#include "experiments/folder.h"
#include "experiments/sensitivity.h"
#include "experiments/tidy.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static ls_result out_of_memory(ls_error *error) { return ls_fail(error, LS_ERROR_MEMORY, "out of memory"); }

/* A gnuplot string in single quotes: nothing but the quote is special in it. */
static void add_quoted(ls_text *text, const char *string)
{
    ls_text_add(text, "'");
    for (const char *c = string; *c != '\0'; c++) ls_text_bytes(text, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    ls_text_add(text, "'");
}

char *ls_figure_path(const char *folder, const char *name, const char *suffix)
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
    char *inner = plots.failed ? NULL : ls_figure_path(plots.bytes, name, ".gp");
    char *outer = ls_figure_path(folder, name, ".gp");
    ls_text_free(&plots);
    char *found = inner != NULL && access(inner, R_OK) == 0   ? inner
                  : outer != NULL && access(outer, R_OK) == 0 ? outer
                                                              : NULL;
    if (found != inner) ls_free(inner);
    if (found != outer) ls_free(outer);
    return found;
}

ls_result ls_figure_script(const ls_figure_job *job, const ls_stored_experiment *e, char **script, ls_error *error)
{
    char *stored = ls_folder_of(e->path);
    if (stored == NULL) return out_of_memory(error);
    const char *folder = job->script_folder != NULL ? job->script_folder : stored;
    *script = find_script_near(folder, ls_is_sensitivity(e->name) ? "sensitivity" : e->name);
    ls_result result = LS_OK;
    if (*script == NULL) {
        result =
            ls_fail(error, LS_ERROR_INVALID,
                    "no plot script %s.gp in %s/plots or %s; name its folder with --plots (the table is %s/%s.tsv)",
                    e->name, folder, folder, job->folder, e->name);
    }
    ls_free(stored);
    return result;
}

static ls_result spawn_gnuplot(const char *settings, const char *script, ls_error *error)
{
    char *words[] = {(char *)"gnuplot", (char *)"-e", (char *)(uintptr_t)settings, (char *)(uintptr_t)script, NULL};
    pid_t pid;
    fflush(NULL);
    int failure = posix_spawnp(&pid, "gnuplot", NULL, NULL, words, environ);
    if (failure == ENOENT) {
        return ls_fail(error, LS_ERROR_IO,
                       "gnuplot is not installed; install it (Debian: apt-get install gnuplot-nox), or "
                       "plot the table with another program");
    }
    if (failure != 0) return ls_fail(error, LS_ERROR_IO, "gnuplot cannot be started: %s", strerror(failure));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return LS_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return ls_fail(error, LS_ERROR_IO, "gnuplot cannot be started");
    return ls_fail(error, LS_ERROR_IO, "gnuplot failed on %s; its own message stands above", script);
}

static void add_setting(ls_text *text, const char *before, const char *value)
{
    ls_text_add(text, before);
    add_quoted(text, value);
}

ls_result ls_figure_draw(const ls_figure_job *job, const ls_stored_experiment *e, const char *script,
                         const char *suffix, ls_error *error)
{
    char *output = ls_figure_path(job->folder, e->name, suffix), *data = ls_figure_path(job->folder, e->name, ".tsv");
    char *series = ls_figure_path(job->series_folder, e->name, "-series.tsv"), *script_folder = ls_folder_of(script);
    ls_text settings = {0};
    bool complete = output != NULL && data != NULL && series != NULL && script_folder != NULL;
    ls_result result = complete ? LS_OK : out_of_memory(error);
    if (result != LS_OK) goto done;
    add_setting(&settings, "set datafile separator tab; set loadpath ", script_folder);
    add_setting(&settings, "; data=", data);
    add_setting(&settings, "; output=", output);
    add_setting(&settings, "; series=", series);
    add_setting(&settings, "; published=", job->published);
    add_setting(&settings, "; title_text=", e->title);
    add_setting(&settings, "; shows=", e->shows);
    result = settings.failed ? out_of_memory(error) : spawn_gnuplot(settings.bytes, script, error);
    if (result == LS_OK && access(output, R_OK) != 0) {
        result = ls_fail(error, LS_ERROR_IO,
                         "%s: gnuplot ended without writing it; the script must `set output output`", output);
    }
done:
    ls_text_free(&settings);
    ls_free(script_folder);
    ls_free(series);
    ls_free(data);
    ls_free(output);
    return result;
}

/* Of a study of assumptions the plot shows the analysis. */
static ls_result make_table(const ls_stored_experiment *e, ls_text *table, ls_error *error)
{
    ls_sensitivity analysis = {0};
    if (!ls_is_sensitivity(e->name)) return ls_tidy(e, table) == LS_OK ? LS_OK : out_of_memory(error);
    ls_result result = ls_sensitivity_analyse(e, &analysis, error);
    if (result != LS_OK) return result;
    ls_sensitivity_tidy(&analysis, table);
    ls_sensitivity_free(&analysis);
    return table->failed ? out_of_memory(error) : LS_OK;
}

ls_result ls_figure_table(const ls_figure_job *job, const ls_stored_experiment *e, ls_error *error)
{
    char *path = ls_figure_path(job->folder, e->name, ".tsv");
    ls_text table = {0};
    ls_result result = path != NULL ? make_table(e, &table, error) : out_of_memory(error);
    if (result == LS_OK) result = ls_file_write(path, table.bytes, table.length, error);
    ls_text_free(&table);
    ls_free(path);
    return result;
}
