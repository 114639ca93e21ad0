/* cmd_sensitivity.c - `lakestream sensitivity SPEC`: runs the experiment on a spec's assumptions and says which of them
 * carry its result (sensitivity.h). */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/runner.h"
#include "experiments/sensitivity.h"
#include "experiments/version.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct study {
    const ls_arguments *arguments;
    ls_vocabulary vocabulary;
    ls_spec *spec;   /* as given */
    ls_spec *second; /* made from it */
    char *path;      /* of the results */
    ls_results *results;
    ls_error *error;
    bool interrupted, failed;
} study;

static ls_result out_of_memory(const study *s) { return ls_fail(s->error, LS_ERROR_MEMORY, "out of memory"); }

static ls_result simulate(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                          ls_run_result *result, ls_error *error)
{
    (void)context;
    return ls_simulate(scenario, seed, replication, result, error);
}

static void note(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "lakestream sensitivity: %s\n", line);
}

static ls_result read_specs(study *s)
{
    const char *path = s->arguments->operands[0];
    bool quick = ls_argument_flag(s->arguments, "quick");
    ls_result result = ls_spec_read(path, &s->vocabulary, quick, &s->spec, s->error);
    if (result != LS_OK) return result;
    if (s->spec->sensitivity == NULL) {
        return ls_fail(
            s->error, LS_ERROR_INVALID,
            "%s: has no \"sensitivity\": name a metric, and assumptions with ranges (`lakestream sensitivity "
            "--help`)",
            path);
    }
    char *folder = ls_folder_of(path), *text = ls_sensitivity_spec_text(s->spec);
    ls_text second = {0};
    ls_text_format(&second, "%s/%s" LS_SENSITIVITY_SUFFIX ".json", folder != NULL ? folder : "", s->spec->name);
    result = folder != NULL && text != NULL && !second.failed ? LS_OK : out_of_memory(s);
    if (result == LS_OK) {
        result = ls_spec_parse(second.bytes, text, strlen(text), &s->vocabulary, quick, &s->second, s->error);
    }
    ls_text_free(&second);
    ls_free(folder);
    ls_free(text);
    return result;
}

static ls_result open_results(study *s)
{
    const char *given = ls_argument_text(s->arguments, "output");
    ls_text path = {0};
    ls_text_format(&path, "%s%s%s", given != NULL ? given : "results/", given != NULL ? "" : s->spec->name,
                   given != NULL ? "" : ".db");
    s->path = ls_text_take(&path);
    ls_result result = s->path != NULL ? LS_OK : out_of_memory(s);
    if (result == LS_OK && given == NULL) result = ls_folder_make("results", s->error);
    return result == LS_OK ? ls_results_open(s->path, LS_RESULTS_WRITE, &s->results, s->error) : result;
}

static ls_result run_points(study *s)
{
    ls_runner_report report = {0};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    ls_runner_config config = {.spec = s->second,
                               .metrics = s->vocabulary.metrics,
                               .metric_count = s->vocabulary.metric_count,
                               .run = simulate,
                               .origin = {LS_VERSION, "sim"},
                               .results = s->results,
                               .jobs = processors > 1 ? (uint32_t)processors : 1,
                               .shard_count = 1,
                               .progress = isatty(STDERR_FILENO) == 1,
                               .note = note};
    if (ls_argument_given(s->arguments, "jobs")) config.jobs = (uint32_t)ls_argument_whole(s->arguments, "jobs");
    ls_result result = ls_runner_run(&config, &report, s->error);
    s->interrupted = report.interrupted;
    s->failed = report.failed > 0;
    return result;
}

static ls_result print_analysis(const study *s)
{
    ls_stored_experiment *experiment = NULL;
    ls_sensitivity analysis = {0};
    ls_text text = {0};
    ls_result result = ls_results_load(s->results, s->second->name, "sim", &experiment, s->error);
    if (result == LS_OK) result = ls_sensitivity_analyse(experiment, &analysis, s->error);
    if (result == LS_OK) {
        if (ls_argument_flag(s->arguments, "json")) {
            ls_sensitivity_json(&analysis, &text);
        } else {
            ls_sensitivity_table(&analysis, &text);
        }
        if (text.failed) result = out_of_memory(s);
        if (result == LS_OK) fputs(text.bytes, stdout);
    }
    ls_text_free(&text);
    ls_sensitivity_free(&analysis);
    ls_stored_experiment_free(experiment);
    return result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    study s = {.arguments = arguments, .vocabulary = ls_vocabulary_default(), .error = &error};
    ls_result result = read_specs(&s);
    if (result == LS_OK) result = open_results(&s);
    if (result == LS_OK) result = run_points(&s);
    if (result == LS_OK && !s.interrupted) result = print_analysis(&s);
    ls_results_close(s.results);
    ls_spec_free(s.second);
    ls_spec_free(s.spec);
    ls_free(s.path);
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    if (s.interrupted) return LS_EXIT_INTERRUPTED;
    return s.failed ? LS_EXIT_CHECK_FAILED : LS_EXIT_DONE;
}

static const ls_command_option options[] = {
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "results file; default results/<name of the spec>.db"},
    {"jobs", 'j', LS_ARGUMENT_WHOLE, "N", NULL, 1, 4096, "worker processes; default all processors"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with the spec's quick base and quick_samples"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "as JSON"}};

const ls_command ls_command_sensitivity = {
    .name = "sensitivity",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Say which assumptions carry a result: one at a time, and over a Sobol design",
    .details =
        "The spec's \"sensitivity\" names a metric, settings to look at (\"at\"), and \"assumptions\" with ranges:\n"
        "  \"sensitivity\": {\"metric\": \"publish_delay_p50_s\", \"at\": {\"policy\": \"dac\"}, \"samples\": 64,\n"
        "                  \"assumptions\": {\"batches.rate_per_s\": [0.5, 2], \"store.put.scale_s\": [0.02, 0.2, "
        "\"log\"]}}\n"
        "Runs go into the results file as experiment <name>-sensitivity, where `report` finds them; what is there is "
        "not\n"
        "run again.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
