/* cmd_trace.c - `lakestream trace SPEC`: one simulated run of one point, written as a time line for Perfetto, and drawn.
 *
 * Like a time series, a trace is made anew from the spec and the seed and stored in no results file. A run that fails a check leaves
 * its trace behind all the same: that is when one wants to look at it.
 */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/gnuplot.h"
#include "experiments/spec.h"
#include "experiments/trace.h"
#include "experiments/version.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct job {
    const ls_arguments *arguments;
    ls_spec *spec;
    const ls_spec_point *point;
    uint32_t position;
    uint64_t seed, replication;
    double from_s, to_s; /* to: infinite when not given */
    ls_trace *trace;
} job;

static ls_result select_point(job *j, ls_error *error)
{
    uint64_t wanted = ls_argument_whole(j->arguments, "point");
    if (wanted >= j->spec->point_count) {
        return ls_fail(error, LS_ERROR_INVALID, "--point %" PRIu64 ": the spec has points 0 to %" PRIu32, wanted, j->spec->point_count - 1);
    }
    j->position = (uint32_t)wanted;
    j->point = &j->spec->points[wanted];
    if (j->point->scenario.world == LS_WORLD_COMMIT) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID, "point %" PRIu64 " is of another world than \"commit\": no producers commit there whose doings "
                   "could be traced", wanted);
}

static ls_result select_time(job *j, ls_error *error)
{
    bool ends = ls_argument_given(j->arguments, "to");
    j->from_s = ls_argument_given(j->arguments, "from") ? ls_argument_real(j->arguments, "from") : 0;
    j->to_s = ends ? ls_argument_real(j->arguments, "to") : INFINITY;
    if (j->from_s < j->to_s) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID, "--from %g --to %g: the time must begin before it ends", j->from_s, j->to_s);
}

static ls_result prepare(job *j, ls_error *error)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_result result = ls_spec_read(j->arguments->operands[0], &vocabulary, ls_argument_flag(j->arguments, "quick"), &j->spec, error);
    if (result == LS_OK) result = select_point(j, error);
    if (result == LS_OK) result = select_time(j, error);
    if (result != LS_OK) return result;
    j->seed = ls_argument_given(j->arguments, "seed") ? ls_argument_whole(j->arguments, "seed") : j->spec->seed;
    j->replication = ls_argument_whole(j->arguments, "replication");
    int64_t to_ns = isinf(j->to_s) ? LS_NEVER_NS : ls_nanoseconds(j->to_s);
    j->trace = ls_trace_new(ls_nanoseconds(j->from_s), to_ns, LS_TRACE_EVENTS_MAX);
    return j->trace == NULL ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : LS_OK;
}

/* What the run was, for who finds the file. */
static cJSON *describe(const job *j)
{
    cJSON *about = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(about, "swept");
    char seed[24], replication[24];
    snprintf(seed, sizeof seed, "%" PRIu64, j->seed);
    snprintf(replication, sizeof replication, "%" PRIu64, j->replication);
    cJSON_AddStringToObject(about, "program", "lakestream " LS_VERSION);
    cJSON_AddStringToObject(about, "experiment", j->spec->name);
    cJSON_AddNumberToObject(about, "point", j->position);
    cJSON_AddStringToObject(about, "scenario_sha256", j->point->hash);
    for (uint32_t k = 0; k < j->spec->swept_key_count; k++) {
        cJSON_AddStringToObject(labels, j->spec->swept_keys[k], j->point->labels[k]);
    }
    cJSON_AddRawToObject(about, "seed", seed);
    cJSON_AddRawToObject(about, "replication", replication);
    return about;
}

static ls_result write_trace(const job *j, ls_error *error)
{
    const char *path = ls_argument_text(j->arguments, "output");
    cJSON *about = describe(j);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cJSON_Delete(about);
        return ls_fail(error, LS_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    }
    ls_result result = ls_trace_write(j->trace, about, file, error);
    cJSON_Delete(about);
    if (fclose(file) != 0 && result == LS_OK) result = ls_fail(error, LS_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    if (result == LS_OK) printf("%s\n", path);
    return result;
}

static void add_title(const job *j, ls_text *title)
{
    ls_text_format(title, "%s, point %" PRIu32 " (simulated)", j->spec->name, j->position);
    for (uint32_t k = 0; k < j->spec->swept_key_count; k++) {
        ls_text_format(title, "%s %s %s", k == 0 ? ":" : ",", j->spec->swept_keys[k], j->point->labels[k]);
    }
}

/* The table lies beside the picture, so that the picture can be drawn again. */
static ls_result draw(const job *j, ls_error *error)
{
    const char *output = ls_argument_text(j->arguments, "plot"), *folder = ls_argument_text(j->arguments, "plots");
    const char *suffix = strrchr(output, '.');
    if (suffix == NULL || strchr(suffix, '/') != NULL || (strcmp(suffix, ".svg") != 0 && strcmp(suffix, ".png") != 0 && strcmp(suffix, ".pdf") != 0)) {
        return ls_fail(error, LS_ERROR_INVALID, "--plot %s: expected a name that ends in .svg, .png or .pdf", output);
    }
    char *beside = folder == NULL ? ls_folder_of(j->spec->path) : NULL;
    ls_text scripts = {0}, script = {0}, data = {0}, table = {0}, title = {0};
    ls_text_add(&scripts, folder != NULL ? folder : beside == NULL ? "" : beside);
    if (folder == NULL) ls_text_add(&scripts, "/plots");
    ls_free(beside);
    if (!scripts.failed) ls_text_format(&script, "%s/trace.gp", scripts.bytes);
    ls_text_bytes(&data, output, (size_t)(suffix - output));
    ls_text_add(&data, ".tsv");
    add_title(j, &title);
    ls_trace_table(j->trace, &table);
    bool failed = scripts.failed || script.failed || data.failed || title.failed || table.failed;
    ls_result result = failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : ls_file_write(data.bytes, table.bytes, table.length, error);
    if (result == LS_OK) printf("%s\n", data.bytes);
    if (result == LS_OK) result = ls_gnuplot_draw(scripts.bytes, script.bytes, data.bytes, output, title.bytes, error);
    ls_text_free(&scripts);
    ls_text_free(&script);
    ls_text_free(&data);
    ls_text_free(&title);
    ls_text_free(&table);
    return result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""}, failure = {""};
    job j = {.arguments = arguments};
    ls_result ran = LS_OK, result = prepare(&j, &error);
    if (result == LS_OK) {
        ls_simulation_watcher watcher;
        ls_run_result ignored;
        ls_trace_watch(j.trace, &watcher);
        ran = ls_simulate_watched(&j.point->scenario, j.seed, j.replication, &watcher, &ignored, &failure);
        result = ls_trace_finish(j.trace, &error);
    }
    if (result == LS_OK) result = write_trace(&j, &error);
    if (result == LS_OK && ls_argument_given(arguments, "plot")) result = draw(&j, &error);
    if (result == LS_OK) {
        ls_trace_counts n = ls_trace_count(j.trace);
        printf("%" PRIu32 " events: %" PRIu32 " lives, %" PRIu32 " attempts, %" PRIu32 " puts (%" PRIu32 " won, %" PRIu32 " lost)\n",
               n.events, n.lives, n.attempts, n.puts, n.won, n.lost);
        result = ran;
        error = failure;
    }
    ls_trace_free(j.trace);
    ls_spec_free(j.spec);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", "trace.json", 0, 0, "where the trace goes (Perfetto and chrome://tracing open it)"},
    {"point", 'p', LS_ARGUMENT_WHOLE, "N", "0", 0, 1e6, "which point of the spec, counted from 0"},
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", NULL, 0, 9007199254740992.0, "instead of the spec's"},
    {"replication", 'r', LS_ARGUMENT_WHOLE, "N", "0", 0, 9007199254740992.0, "which replication"},
    {"from", 0, LS_ARGUMENT_REAL, "S", NULL, 0, 1e9, "keep what begins from this simulated second on; default: all"},
    {"to", 0, LS_ARGUMENT_REAL, "S", NULL, 0, 1e9, "and before this one"},
    {"plot", 0, LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "draw it as well, as .svg, .png or .pdf"},
    {"plots", 0, LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "folder of the scripts; default: next to the spec, in plots/"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with the spec's \"quick\" overrides"}};

const ls_command ls_command_trace = {
    .name = "trace",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Write one simulated run as a time line: attempts, their requests and outcomes, a track a producer",
    .details = "Open the file in https://ui.perfetto.dev or chrome://tracing. A process is a producer, a thread one life of it. Spans: attempts\n"
               "with the lists, gets and puts inside, waits between them, uploads of batches. A put's outcome is what its attempt came to\n"
               "(won, lost, throttled, aborted, proved), or fenced, crashed, in flight when none was reported. Trainers and reclaimers are\n"
               "not traced.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
