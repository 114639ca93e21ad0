/* gnuplot.c - runs gnuplot on a table (gnuplot.h). */
#include "experiments/gnuplot.h"

#include "experiments/folder.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A gnuplot string in single quotes: nothing but the quote is special in it. */
static void set_variable(ls_text *text, const char *before, const char *string)
{
    ls_text_add(text, before);
    ls_text_add(text, "'");
    for (const char *c = string; *c != '\0'; c++) ls_text_bytes(text, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    ls_text_add(text, "'");
}

static ls_result run_script(const char *settings, const char *script, ls_error *error)
{
    char *words[] = {(char *)"gnuplot", (char *)"-e", (char *)(uintptr_t)settings, (char *)(uintptr_t)script, NULL};
    pid_t pid;
    fflush(NULL);
    int failure = posix_spawnp(&pid, "gnuplot", NULL, NULL, words, environ);
    if (failure != 0) {
        return ls_fail(error, LS_ERROR_IO, "gnuplot cannot be started (%s); Debian: apt-get install gnuplot-nox", strerror(failure));
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return LS_OK;
    return ls_fail(error, LS_ERROR_IO, "gnuplot failed on %s; its own message stands above", script);
}

ls_result ls_gnuplot_draw(const char *folder, const char *script, const char *data, const char *output, const char *title, ls_error *error)
{
    ls_text settings = {0};
    set_variable(&settings, "set datafile separator tab; set loadpath ", folder);
    set_variable(&settings, "; data=", data);
    set_variable(&settings, "; output=", output);
    set_variable(&settings, "; title_text=", title);
    ls_result result = settings.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : run_script(settings.bytes, script, error);
    ls_text_free(&settings);
    if (result == LS_OK) printf("%s\n", output);
    return result;
}

ls_result ls_gnuplot_table(const char *folder, const char *name, const char *stem, const ls_text *table, const char *title,
                           ls_error *error)
{
    static const char *const suffixes[] = {".svg", ".png"};
    ls_text script = {0}, data = {0};
    ls_text_format(&script, "%s/%s.gp", folder, name);
    ls_text_format(&data, "%s-%s.tsv", stem, name);
    ls_result result = script.failed || data.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : LS_OK;
    if (result == LS_OK && access(script.bytes, R_OK) != 0) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: no such plot script; name its folder with --plots", script.bytes);
    }
    if (result == LS_OK) result = ls_file_write(data.bytes, table->bytes, table->length, error);
    if (result == LS_OK) printf("%s\n", data.bytes);
    for (size_t i = 0; i < 2 && result == LS_OK; i++) {
        ls_text output = {0};
        ls_text_format(&output, "%s-%s%s", stem, name, suffixes[i]);
        result = output.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory")
                               : ls_gnuplot_draw(folder, script.bytes, data.bytes, output.bytes, title, error);
        ls_text_free(&output);
    }
    ls_text_free(&script);
    ls_text_free(&data);
    return result;
}
