/* cmd_compare.c - `lakestream compare DB`: tables of treatments with intervals and paired tests. */
#include "experiments/commands.h"
#include "experiments/comparison.h"

#include <stdio.h>
#include <string.h>

typedef struct name_list {
    char **names;
    uint32_t count;
} name_list;

static ls_result add_name(name_list *list, const char *name, size_t length)
{
    char **names = ls_reallocate(list->names, (list->count + 1) * sizeof *names);
    if (names == NULL) return LS_ERROR_MEMORY;
    list->names = names;
    ls_text text = {0};
    ls_text_bytes(&text, name, length);
    names[list->count] = ls_text_take(&text);
    return names[list->count++] != NULL ? LS_OK : LS_ERROR_MEMORY;
}

static bool is_measured(const ls_stored_experiment *e, const char *name)
{
    for (uint32_t i = 0; i < e->metric_count; i++) {
        if (strcmp(e->metric_names[i], name) == 0) return true;
    }
    return false;
}

/* "a,b" split; else those of the spec's compare metrics that any run has; else the metric of its stopping rule; else
 * the first that was measured. */
static ls_result choose_metrics(const char *given, const ls_stored_experiment *e, name_list *list)
{
    ls_result result = LS_OK;
    while (given != NULL && *given != '\0' && result == LS_OK) {
        size_t length = strcspn(given, ",");
        if (length > 0) result = add_name(list, given, length);
        given += length + (given[length] == ',');
    }
    for (uint32_t i = 0; i < e->compare_metric_count && result == LS_OK && given == NULL; i++) {
        const char *name = e->compare_metrics[i];
        if (is_measured(e, name)) result = add_name(list, name, strlen(name));
    }
    if (list->count > 0 || result != LS_OK) return result;
    const char *fallback = e->replication_metric != NULL ? e->replication_metric
                           : e->metric_count > 0         ? e->metric_names[0]
                                                         : "(none)";
    return add_name(list, fallback, strlen(fallback));
}

static ls_result compare_all(const ls_arguments *arguments, const ls_stored_experiment *e, const name_list *metrics,
                             ls_text *text, ls_error *error)
{
    bool json = ls_argument_flag(arguments, "json");
    ls_result result = LS_OK;
    if (json) ls_text_add(text, "[");
    for (uint32_t i = 0; i < metrics->count && result == LS_OK; i++) {
        ls_comparison comparison;
        result = ls_compare(e, ls_argument_text(arguments, "key"), ls_argument_text(arguments, "baseline"),
                            metrics->names[i], &comparison, error);
        if (result != LS_OK) break;
        if (i > 0) ls_text_add(text, json ? "," : "\n");
        if (json) {
            ls_comparison_json(&comparison, text);
        } else {
            ls_comparison_table(&comparison, text);
        }
        ls_free(comparison.rows);
    }
    if (json) ls_text_add(text, "]\n");
    return result == LS_OK && text->failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    ls_stored_experiment *experiment = NULL;
    name_list metrics = {0};
    ls_text text = {0};
    ls_result result = ls_results_open(arguments->operands[0], LS_RESULTS_READ, &results, &error);
    if (result == LS_OK) {
        result = ls_results_load(results, ls_argument_text(arguments, "experiment"),
                                 ls_argument_text(arguments, "backend"), &experiment, &error);
    }
    if (result == LS_OK) result = choose_metrics(ls_argument_text(arguments, "metric"), experiment, &metrics);
    if (result == LS_OK) result = compare_all(arguments, experiment, &metrics, &text, &error);
    if (result == LS_OK) fputs(text.bytes, stdout);
    int code = result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
    for (uint32_t i = 0; i < metrics.count; i++) ls_free(metrics.names[i]);
    ls_free(metrics.names);
    ls_text_free(&text);
    ls_stored_experiment_free(experiment);
    ls_results_close(results);
    return code;
}

static const ls_command_option options[] = {
    {"metric", 'm', LS_ARGUMENT_TEXT, "NAME,...", NULL, 0, 0, "which metrics; default: what the spec compares"},
    {"baseline", 'b', LS_ARGUMENT_TEXT, "LABEL", NULL, 0, 0,
     "compare against this; default: the spec's, else the first"},
    {"key", 'k', LS_ARGUMENT_TEXT, "KEY", NULL, 0, 0, "the swept key to compare by; default: the spec's, else policy"},
    {"experiment", 'e', LS_ARGUMENT_TEXT, "NAME", NULL, 0, 0, "which experiment, if the file holds several"},
    {"backend", 0, LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "runs of this backend; default: of the latest run"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "as JSON"}};

const ls_command ls_command_compare = {
    .name = "compare",
    .operands = "DB",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Table of policies: mean and interval, paired difference to a baseline, p value",
    .details = "Points that agree in every other swept key form a group. Differences pair equal replications, which "
               "met the same\n"
               "random numbers; p is of the paired t test, and adjusted after Holm for the tests of a group.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
