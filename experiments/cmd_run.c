/* cmd_run.c - `lakestream run SPEC`: from the command line to a runner configuration, and its report to people or
 * JSON. */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/plugin.h"
#include "experiments/run_real.h"
#include "experiments/runner.h"
#include "experiments/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ls_result simulate(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                          ls_run_result *result, ls_error *error)
{
    (void)context;
    return ls_simulate(scenario, seed, replication, result, error);
}

static ls_result run_on_store(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                              ls_run_result *result, ls_error *error)
{
    return ls_run_real(scenario, context, seed, replication, result, error);
}

static void note(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "lakestream run: %s\n", line);
}

/* "2/8" is the second of eight. */
static ls_result parse_shard(const char *text, ls_runner_config *config, ls_error *error)
{
    config->shard_index = 0;
    config->shard_count = 1;
    if (text == NULL) return LS_OK;
    unsigned index, count;
    char rest;
    if (sscanf(text, "%u/%u%c", &index, &count, &rest) != 2 || index < 1 || index > count || count > 1000000) {
        return ls_fail(error, LS_ERROR_INVALID, "--shard %.50s: expected i/n with 1 <= i <= n, as in 2/8", text);
    }
    config->shard_index = index - 1;
    config->shard_count = count;
    return LS_OK;
}

static ls_result check_backend(const ls_spec *spec, const char *backend, ls_error *error)
{
    static const char *const forms[] = {"dir:", "s3://"};
    if (strcmp(backend, "sim") == 0) return LS_OK;
    bool known = strcmp(backend, "memory") == 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strncmp(backend, forms[i], strlen(forms[i])) == 0 && backend[strlen(forms[i])] != '\0') known = true;
    }
    if (!known) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "--backend %.200s: expected sim, memory, dir:PATH or s3://BUCKET/PREFIX", backend);
    }
    for (uint32_t i = 0; i < spec->point_count; i++) {
        const ls_policy *policy = spec->points[i].scenario.policy.policy;
        if (policy == NULL || !policy->simulator_only) continue;
        return ls_fail(error, LS_ERROR_INVALID,
                       "point %u: the policy %s exists in the simulator only; leave it out, or use --backend sim", i,
                       policy->name);
    }
    return LS_OK;
}

/* All processors for the simulator; one run at a time on a real store, where runs would disturb each other. */
static uint32_t default_jobs(const char *backend)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return strcmp(backend, "sim") == 0 && processors > 1 ? (uint32_t)processors : 1;
}

/* The results file: as given, or results/<name>.db, whose folder is created. */
static ls_result results_path(const ls_arguments *arguments, const ls_spec *spec, char **path, ls_error *error)
{
    const char *given = ls_argument_text(arguments, "output");
    ls_text text = {0};
    if (given != NULL) {
        ls_text_add(&text, given);
    } else {
        ls_text_format(&text, "results/%s.db", spec->name);
    }
    *path = ls_text_take(&text);
    if (*path == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    return given == NULL ? ls_folder_make("results", error) : LS_OK;
}

static void print_report(const ls_arguments *arguments, const ls_spec *spec, const char *path,
                         const ls_runner_report *report)
{
    uint64_t done = report->reused + report->ran;
    if (ls_argument_flag(arguments, "json")) {
        ls_text text = {0};
        ls_text_add(&text, "{\"experiment\":");
        ls_text_json(&text, spec->name);
        ls_text_add(&text, ",\"results\":");
        ls_text_json(&text, path);
        ls_text_format(&text,
                       ",\"points\":%u,\"required\":%" PRIu64 ",\"reused\":%" PRIu64 ",\"ran\":%" PRIu64
                       ",\"failed\":%" PRIu64 ",\"interrupted\":%s,\"wall_s\":",
                       spec->point_count, report->required, report->reused, report->ran, report->failed,
                       report->interrupted ? "true" : "false");
        ls_text_number(&text, report->wall_s);
        ls_text_add(&text, "}\n");
        if (!text.failed) fputs(text.bytes, stdout);
        ls_text_free(&text);
    } else {
        printf("%s: %u points, %" PRIu64 " of %" PRIu64 " runs (%" PRIu64 " new, %" PRIu64 " stored before, %" PRIu64
               " failed) in %.1f s: %s\n",
               spec->name, spec->point_count, done, report->required, report->ran, report->reused, report->failed,
               report->wall_s, path);
    }
    if (report->interrupted) {
        fprintf(stderr,
                "lakestream run: interrupted; what was finished is stored, the same command goes on from there\n");
    }
}

static int finish(const ls_arguments *arguments, ls_result result, const ls_runner_report *report,
                  const ls_error *error)
{
    if (result != LS_OK) return ls_report_error(arguments, result, error);
    if (report->interrupted) return LS_EXIT_INTERRUPTED;
    return report->failed > 0 ? LS_EXIT_CHECK_FAILED : LS_EXIT_DONE;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_spec *spec = NULL;
    ls_results *results = NULL;
    char *path = NULL;
    ls_runner_report report = {0};
    ls_vocabulary vocabulary = ls_vocabulary_default();
    const char *backend = ls_argument_text(arguments, "backend");
    bool simulated = strcmp(backend, "sim") == 0;
    ls_runner_config config = {.metrics = vocabulary.metrics,
                               .metric_count = vocabulary.metric_count,
                               .run = simulated ? simulate : run_on_store,
                               .run_context = (void *)(uintptr_t)backend,
                               .origin = {ls_plugin_origin(), backend},
                               .progress = isatty(STDERR_FILENO) == 1,
                               .note = note};
    config.jobs =
        ls_argument_given(arguments, "jobs") ? (uint32_t)ls_argument_whole(arguments, "jobs") : default_jobs(backend);
    ls_result result = parse_shard(ls_argument_text(arguments, "shard"), &config, &error);
    if (result == LS_OK) {
        result = ls_spec_read(arguments->operands[0], &vocabulary, ls_argument_flag(arguments, "quick"), &spec, &error);
    }
    if (result == LS_OK && ls_argument_given(arguments, "seed")) spec->seed = ls_argument_whole(arguments, "seed");
    if (result == LS_OK) result = check_backend(spec, backend, &error);
    if (result == LS_OK) result = results_path(arguments, spec, &path, &error);
    if (result == LS_OK) result = ls_results_open(path, LS_RESULTS_WRITE, &results, &error);
    if (result == LS_OK) {
        config.spec = spec;
        config.results = results;
        result = ls_runner_run(&config, &report, &error);
    }
    if (result == LS_OK) print_report(arguments, spec, path, &report);
    int code = finish(arguments, result, &report, &error);
    ls_results_close(results);
    ls_spec_free(spec);
    ls_free(path);
    return code;
}

static const ls_command_option options[] = {
    {"backend", 'b', LS_ARGUMENT_TEXT, "STORE", "sim", 0, 0, "sim, memory, dir:PATH or s3://BUCKET/PREFIX"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "results file; default results/<name of the spec>.db"},
    {"jobs", 'j', LS_ARGUMENT_WHOLE, "N", NULL, 1, 4096, "worker processes; default all processors, 1 on a real store"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0,
     "with the spec's \"quick\" overrides: smaller, for a first look"},
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", NULL, 0, 9007199254740992.0, "instead of the spec's"},
    {"shard", 0, LS_ARGUMENT_TEXT, "I/N", NULL, 0, 0,
     "only every N-th point, from the I-th on; `merge` joins the files"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_run = {
    .name = "run",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Run an experiment: every point and replication of a spec, into a results file",
    .details =
        "A run that the results file holds already (same resolved scenario, seed, replication, program version, "
        "backend)\n"
        "is not run again: repeat the command after an interruption and it goes on. The content of the file does not\n"
        "depend on -j. Exit code 1 when a run failed or crashed; each is named.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
