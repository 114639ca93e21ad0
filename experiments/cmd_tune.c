/* cmd_tune.c - `lakestream tune SPEC`: for each point of a spec, tune its policy (tuner.h); the result is another spec.
 *
 * The spec that is written holds, for each point, the Pareto front that was found (thinned evenly to `most` candidates) as cases,
 * under another seed: `lakestream run` of it measures the front anew, with intervals and without the flattery of the search,
 * and `lakestream plot` draws it. Points whose policy has nothing to tune (the oracle, say) are passed on as they are.
 */
#include "experiments/commands.h"
#include "experiments/json.h"
#include "experiments/text.h"
#include "experiments/tuner.h"
#include "sim/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
    const ls_arguments *arguments;
    const ls_spec *spec;
    ls_tuned_range ranges[LS_POLICY_PARAMETERS_MAX];
    char names[LS_POLICY_PARAMETERS_MAX][64];
    uint32_t range_count;
    cJSON *cases; /* borrowed from the document */
    ls_error *error;
} job;

static ls_result run_simulation(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                                ls_run_result *result, ls_error *error)
{
    (void)context;
    return ls_simulate(scenario, seed, replication, result, error);
}

/* NAME=LOW:HIGH */
static ls_result read_range(job *j, const char *text)
{
    double low, high;
    char more;
    ls_tuned_range *range = &j->ranges[j->range_count];
    char *name = j->names[j->range_count];
    if (j->range_count == LS_POLICY_PARAMETERS_MAX) {
        return ls_fail(j->error, LS_ERROR_LIMIT, "--range: at most %u ranges", LS_POLICY_PARAMETERS_MAX);
    }
    if (sscanf(text, "%63[a-z0-9_]=%lf:%lf%c", name, &low, &high, &more) != 3) {
        return ls_fail(j->error, LS_ERROR_INVALID, "--range %s: expected NAME=LOW:HIGH, such as target_share=0.05:0.95", text);
    }
    *range = (ls_tuned_range){.parameter = name, .low = low, .high = high};
    j->range_count++;
    return LS_OK;
}

/* --- the spec that is written ------------------------------------------------------------------------------------------- */

static void add_value(cJSON *object, const char *key, const char *label)
{
    char *end;
    double number = strtod(label, &end);
    if (end != label && *end == '\0' && isfinite(number)) cJSON_AddNumberToObject(object, key, number);
    else if (strcmp(label, "true") == 0 || strcmp(label, "false") == 0) cJSON_AddBoolToObject(object, key, label[0] == 't');
    else cJSON_AddStringToObject(object, key, label);
}

/* A case of the new spec: the point's swept keys, and the policy with the parameters that are not at their defaults. */
static void add_case(job *j, const ls_spec_point *point, const double *values)
{
    cJSON *object = cJSON_CreateObject(), *named = cJSON_CreateObject();
    const ls_policy *policy = point->scenario.policy.policy;
    cJSON_AddStringToObject(named, "name", policy->name);
    for (uint32_t i = 0; i < policy->parameter_count; i++) {
        const ls_policy_parameter *parameter = &policy->parameters[i];
        if (values[i] != parameter->default_value) cJSON_AddNumberToObject(named, parameter->name, values[i]);
    }
    cJSON_AddItemToObject(object, "policy", named);
    for (uint32_t k = 0; k < j->spec->swept_key_count; k++) {
        if (strncmp(j->spec->swept_keys[k], "policy", 6) != 0) add_value(object, j->spec->swept_keys[k], point->labels[k]);
    }
    cJSON_AddItemToArray(j->cases, object);
}

static int by_delay(const void *left, const void *right)
{
    double a = ((const ls_candidate *)left)->delay_s, b = ((const ls_candidate *)right)->delay_s;
    return (a > b) - (a < b);
}

/* The front, fastest first, is moved to the beginning; returns its size. */
static uint32_t sort_front(ls_tuning *tuning)
{
    uint32_t front = 0;
    for (uint32_t i = 0; i < tuning->count; i++) {
        if (tuning->candidates[i].front) tuning->candidates[front++] = tuning->candidates[i];
    }
    qsort(tuning->candidates, front, sizeof *tuning->candidates, by_delay);
    return front;
}

static void print_values(const ls_policy *policy, const double *values)
{
    char number[32];
    for (uint32_t i = 0; i < policy->parameter_count; i++) {
        if (values[i] == policy->parameters[i].default_value) continue;
        printf(" %s=%s", policy->parameters[i].name, ls_number_text(values[i], number));
    }
    printf("\n");
}

static void report(const job *j, const ls_spec_point *point, const ls_tuning *tuning)
{
    const ls_policy *policy = point->scenario.policy.policy;
    printf("%s", policy->name);
    for (uint32_t k = 0; k < j->spec->swept_key_count; k++) {
        if (strncmp(j->spec->swept_keys[k], "policy", 6) != 0) printf(", %s = %s", j->spec->swept_keys[k], point->labels[k]);
    }
    printf(": %" PRIu32 " candidates, %" PRIu64 " runs; best for each weight of requests:\n", tuning->count, tuning->runs);
    printf("  %-6s %10s %12s %10s  %s\n", "weight", "delay_s", "requests_/s", "conflicts", "parameters that are not at their defaults");
    for (uint32_t q = 0; q < LS_TUNER_WEIGHINGS; q++) {
        const ls_candidate *c = &tuning->candidates[tuning->best[q]];
        printf("  %-6g %10.4g %12.4g %10.4f %s", q / (LS_TUNER_WEIGHINGS - 1.0), c->delay_s, c->requests_per_s, c->conflict_share,
               c->feasible ? "" : " (publishes too little)");
        print_values(policy, c->values);
    }
}

static bool has_axes(const job *j, const ls_policy *policy)
{
    for (uint32_t i = 0; i < policy->parameter_count && j->range_count == 0; i++) {
        if (ls_tuner_searches(&policy->parameters[i])) return true;
    }
    return j->range_count > 0 && !policy->simulator_only;
}

static uint64_t seed_of(const job *j)
{
    return ls_argument_given(j->arguments, "seed") ? ls_argument_whole(j->arguments, "seed") : j->spec->seed;
}

static ls_result tune_point(job *j, const ls_spec_point *point)
{
    const ls_policy_instance *policy = &point->scenario.policy;
    if (!has_axes(j, policy->policy)) {
        add_case(j, point, policy->values);
        return LS_OK;
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    ls_tuner_config config = {.scenario = &point->scenario, .seed = seed_of(j), .run = run_simulation, .ranges = j->ranges,
                              .range_count = j->range_count,
                              .conflict_weight = ls_argument_real(j->arguments, "conflicts"),
                              .candidates = (uint32_t)ls_argument_whole(j->arguments, "candidates"),
                              .rounds = (uint32_t)ls_argument_whole(j->arguments, "rounds"),
                              .jobs = ls_argument_given(j->arguments, "jobs") ? (uint32_t)ls_argument_whole(j->arguments, "jobs")
                                                                               : (uint32_t)(processors > 0 ? processors : 1)};
    ls_tuning tuning;
    ls_result result = ls_tune(&config, &tuning, j->error);
    if (result != LS_OK) return result;
    report(j, point, &tuning);
    uint32_t front = sort_front(&tuning), most = (uint32_t)ls_argument_whole(j->arguments, "most");
    uint32_t kept = front < most ? front : most;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t at = kept < 2 ? 0 : (uint32_t)((uint64_t)i * (front - 1) / (kept - 1));
        add_case(j, point, tuning.candidates[at].values);
    }
    if (front == 0) add_case(j, point, policy->values); /* nothing was feasible: shown as it is */
    ls_free(tuning.candidates);
    return LS_OK;
}

static ls_result write_document(const char *path, const cJSON *document, ls_error *error)
{
    char *text = cJSON_Print(document);
    if (text == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fprintf(file, "%s\n", text) > 0;
    if (file != NULL && fclose(file) != 0) written = false;
    cJSON_free(text);
    return written ? LS_OK : ls_fail(error, LS_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* The given spec with cases for its sweep, another seed, and what `quick` said left out. */
static cJSON *begin_document(job *j, const ls_json *json)
{
    cJSON *document = cJSON_Duplicate(json->root, true);
    if (document == NULL) return NULL;
    cJSON_DeleteItemFromObjectCaseSensitive(document, "sweep");
    cJSON_DeleteItemFromObjectCaseSensitive(document, "quick");
    cJSON_DeleteItemFromObjectCaseSensitive(document, "seed");
    cJSON_AddNumberToObject(document, "seed", (double)(seed_of(j) + 1));
    cJSON *sweep = cJSON_AddArrayToObject(document, "sweep"), *block = cJSON_CreateObject();
    j->cases = cJSON_CreateArray();
    if (sweep == NULL || block == NULL || j->cases == NULL) {
        cJSON_Delete(document);
        return NULL;
    }
    cJSON_AddItemToArray(sweep, block);
    cJSON_AddItemToObject(block, "cases", j->cases);
    return document;
}

static ls_result tune_all(job *j)
{
    ls_json json = {0};
    ls_result result = ls_json_parse(j->spec->path, j->spec->text, strlen(j->spec->text), &json, j->error);
    cJSON *document = result == LS_OK ? begin_document(j, &json) : NULL;
    if (result == LS_OK && document == NULL) result = ls_fail(j->error, LS_ERROR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < j->spec->point_count && result == LS_OK; i++) result = tune_point(j, &j->spec->points[i]);
    const char *path = ls_argument_text(j->arguments, "output");
    if (result == LS_OK && path != NULL) result = write_document(path, document, j->error);
    cJSON_Delete(document);
    ls_json_free(&json);
    return result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_spec *spec = NULL;
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_result result = ls_spec_read(arguments->operands[0], &vocabulary, ls_argument_flag(arguments, "quick"), &spec, &error);
    job j = {.arguments = arguments, .spec = spec, .error = &error};
    const char *range;
    for (uint32_t i = 0; result == LS_OK && (range = ls_argument_text_at(arguments, "range", i)) != NULL; i++) {
        result = read_range(&j, range);
    }
    if (result == LS_OK) result = tune_all(&j);
    ls_spec_free(spec);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "the spec to write, of the Pareto fronts that were found"},
    {"range", 'r', LS_ARGUMENT_TEXTS, "NAME=LOW:HIGH", NULL, 0, 0, "search this parameter, and no others than those named"},
    {"conflicts", 'c', LS_ARGUMENT_REAL, "W", "0", 0, 1e6, "weight of the conflict share in the objective"},
    {"candidates", 'n', LS_ARGUMENT_WHOLE, "N", "64", 4, 4096, "candidates to start from"},
    {"rounds", 0, LS_ARGUMENT_WHOLE, "N", "3", 0, 20, "rounds of refinement around the best"},
    {"most", 'm', LS_ARGUMENT_WHOLE, "N", "8", 1, 1000, "candidates of each front to write"},
    {"jobs", 'j', LS_ARGUMENT_WHOLE, "N", NULL, 1, 4096, "worker processes; default all processors"},
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", NULL, 0, 9007199254740991.0, "instead of the spec's"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with the spec's \"quick\" overrides"}};

const ls_command ls_command_tune = {
    .name = "tune",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Tune the policy of each point of a spec: the Pareto front of publish delay and requests",
    .details = "Searches the policy's parameters for five weighings of mean publish delay against requests a second, by Sobol\n"
               "points, successive halving and local steps under common random numbers. With -o the fronts become a spec under\n"
               "another seed, to be run and drawn. Parameters that are off by default are searched only when named by --range.\n"
               "The same spec, seed and options give the same result, whatever -j.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
