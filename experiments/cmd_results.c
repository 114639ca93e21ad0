/* cmd_results.c - `lakestream results list|show|hash|delete DB`, `lakestream results diff A B` and `lakestream merge OUT DB...`:
 * what one does with results files beside running and drawing them. Each action is a row of a table. */
#include "experiments/commands.h"
#include "experiments/plugin.h"
#include "experiments/results.h"
#include "experiments/results_diff.h"
#include "experiments/runner.h"
#include "experiments/text.h"
#include "experiments/tidy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static ls_result print_summary(void *context, const ls_results_summary *s)
{
    (void)context;
    printf("%-24s %6" PRIu64 " points %8" PRIu64 " runs %4" PRIu64 " failed  seed %" PRIu64 "%s  %s  %s\n", s->name,
           s->points, s->runs_ok, s->runs_failed, s->seed, s->quick ? " quick" : "", s->added, s->title);
    return LS_OK;
}

static ls_result add_summary(void *context, const ls_results_summary *s)
{
    ls_text *text = context;
    ls_text_add(text, text->length > 1 ? ",{\"name\":" : "{\"name\":");
    ls_text_json(text, s->name);
    ls_text_add(text, ",\"title\":");
    ls_text_json(text, s->title);
    ls_text_add(text, ",\"added\":");
    ls_text_json(text, s->added);
    ls_text_format(
        text, ",\"seed\":%" PRIu64 ",\"quick\":%s,\"points\":%" PRIu64 ",\"runs\":%" PRIu64 ",\"failed\":%" PRIu64 "}",
        s->seed, s->quick ? "true" : "false", s->points, s->runs_ok, s->runs_failed);
    return LS_OK;
}

static ls_result list(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error)
{
    (void)code;
    if (!ls_argument_flag(arguments, "json")) return ls_results_each_experiment(results, print_summary, NULL, error);
    ls_text text = {0};
    ls_text_add(&text, "[");
    ls_result result = ls_results_each_experiment(results, add_summary, &text, error);
    ls_text_add(&text, "]\n");
    if (result == LS_OK && text.failed) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (result == LS_OK) fputs(text.bytes, stdout);
    ls_text_free(&text);
    return result;
}

static ls_result hash(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error)
{
    (void)arguments;
    (void)code;
    char hex[LS_DIGEST_HEX_BYTES];
    ls_result result = ls_results_hash(results, hex, error);
    if (result == LS_OK) printf("%s\n", hex);
    return result;
}

/* ---- show ---- */

static ls_result find_metric(const ls_stored_experiment *e, const char *name, uint32_t *index, ls_error *error)
{
    for (uint32_t i = 0; i < e->metric_count; i++) {
        if (strcmp(e->metric_names[i], name) == 0) {
            *index = i;
            return LS_OK;
        }
    }
    return ls_fail(error, LS_ERROR_INVALID, "no metric \"%.100s\" in the runs of %s; `lakestream results show` without --metric "
                   "lists them", name, e->name);
}

static void show_head(const ls_stored_experiment *e, ls_text *text)
{
    ls_text_format(text, "%s: %s\n", e->name, e->title);
    if (e->shows[0] != '\0') ls_text_format(text, "shows:    %s\n", e->shows);
    ls_text_format(text, "spec:     %s\nadded:    %s\nseed:     %" PRIu64 "%s\n", e->path, e->added, e->seed,
                   e->quick ? ", quick" : "");
    if (e->version[0] != '\0') ls_text_format(text, "program:  %s, backend %s\n", e->version, e->backend);
    ls_text_add(text, "swept:    ");
    for (uint32_t k = 0; k < e->swept_key_count; k++) ls_text_format(text, "%s%s", k > 0 ? ", " : "", e->swept_keys[k]);
    ls_text_add(text, e->swept_key_count > 0 ? "\nmetrics:  " : "nothing\nmetrics:  ");
    for (uint32_t m = 0; m < e->metric_count; m++) ls_text_format(text, "%s%s", m > 0 ? ", " : "", e->metric_names[m]);
    ls_text_add(text, e->metric_count > 0 ? "\n\n" : "none: no run went well\n\n");
}

static void show_point(const ls_stored_experiment *e, const ls_stored_point *point, const ls_estimate *estimate, ls_text *text)
{
    ls_text_format(text, "%.12s  %3u runs", point->hash, point->run_count);
    if (point->failed_count > 0) ls_text_format(text, ", %u failed", point->failed_count);
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        ls_text_format(text, "%s%s = %s", k > 0 ? ", " : "  ", e->swept_keys[k], point->labels[k]);
    }
    if (estimate != NULL && !isnan(estimate->mean)) ls_text_format(text, "  %.6g", estimate->mean);
    if (estimate != NULL && !isnan(estimate->half_width)) ls_text_format(text, " +- %.2g", estimate->half_width);
    ls_text_add(text, "\n");
}

static void add_member(ls_text *text, const char *prefix, const char *value)
{
    ls_text_add(text, prefix);
    ls_text_json(text, value);
}

static void show_head_json(const ls_stored_experiment *e, ls_text *text)
{
    add_member(text, "{\"name\":", e->name);
    add_member(text, ",\"title\":", e->title);
    add_member(text, ",\"shows\":", e->shows);
    add_member(text, ",\"path\":", e->path);
    add_member(text, ",\"added\":", e->added);
    add_member(text, ",\"version\":", e->version);
    add_member(text, ",\"backend\":", e->backend);
    ls_text_format(text, ",\"seed\":%" PRIu64 ",\"quick\":%s,\"metrics\":[", e->seed, e->quick ? "true" : "false");
    for (uint32_t m = 0; m < e->metric_count; m++) add_member(text, m > 0 ? "," : "", e->metric_names[m]);
    ls_text_add(text, "],\"points\":[");
}

static void show_point_json(const ls_stored_experiment *e, const ls_stored_point *point, const ls_estimate *estimate,
                            ls_text *text)
{
    add_member(text, "{\"hash\":", point->hash);
    ls_text_format(text, ",\"runs\":%u,\"failed\":%u,\"labels\":{", point->run_count, point->failed_count);
    for (uint32_t k = 0; k < e->swept_key_count; k++) {
        add_member(text, k > 0 ? "," : "", e->swept_keys[k]);
        add_member(text, ":", point->labels[k]);
    }
    ls_text_add(text, "}");
    if (estimate != NULL) {
        ls_text_add(text, ",\"mean\":");
        ls_text_number(text, estimate->mean);
        ls_text_add(text, ",\"half_width\":");
        ls_text_number(text, estimate->half_width);
    }
    ls_text_add(text, "}");
}

static ls_result show_experiment(const ls_arguments *arguments, const ls_stored_experiment *e, ls_text *text, ls_error *error)
{
    bool json = ls_argument_flag(arguments, "json");
    const char *metric = ls_argument_text(arguments, "metric");
    uint32_t index = 0;
    ls_result result = metric != NULL ? find_metric(e, metric, &index, error) : LS_OK;
    if (result != LS_OK) return result;
    (json ? show_head_json : show_head)(e, text);
    for (uint32_t i = 0; i < e->point_count && result == LS_OK; i++) {
        ls_estimate estimate;
        if (metric != NULL) result = ls_point_estimate(&e->points[i], index, 0.95, &estimate);
        if (json && i > 0) ls_text_add(text, ",");
        (json ? show_point_json : show_point)(e, &e->points[i], metric != NULL ? &estimate : NULL, text);
    }
    if (json) ls_text_add(text, "]}\n");
    return result != LS_OK || text->failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : LS_OK;
}

static ls_result show(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error)
{
    (void)code;
    ls_stored_experiment *e = NULL;
    ls_text text = {0};
    ls_result result = ls_results_load(results, ls_argument_text(arguments, "experiment"),
                                       ls_argument_text(arguments, "backend"), &e, error);
    if (result == LS_OK) result = show_experiment(arguments, e, &text, error);
    if (result == LS_OK) fputs(text.bytes, stdout);
    ls_text_free(&text);
    ls_stored_experiment_free(e);
    return result;
}

/* ---- delete ---- */

static ls_result delete(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error)
{
    const char *experiment = ls_argument_text(arguments, "experiment"), *backend = ls_argument_text(arguments, "backend");
    bool confirmed = ls_argument_flag(arguments, "yes");
    ls_results_removal removal;
    if (experiment == NULL) {
        return ls_fail(error, LS_ERROR_INVALID, "name what to delete: --experiment NAME (`lakestream results list %s` lists them)",
                       arguments->operands[1]);
    }
    ls_result result = ls_results_delete(results, experiment, backend, !confirmed, &removal, error);
    if (result != LS_OK) return result;
    printf("%s: %s %s%s%s: %" PRIu64 " experiments, %" PRIu64 " points, %" PRIu64 " runs, %" PRIu64 " values\n",
           arguments->operands[1], confirmed ? "deleted" : "would delete", experiment, backend != NULL ? " on " : "",
           backend != NULL ? backend : "", removal.experiments, removal.points, removal.runs, removal.metrics);
    if (!confirmed) {
        printf("nothing was deleted; say --yes to do it\n");
        *code = LS_EXIT_USAGE;
    }
    return LS_OK;
}

/* ---- diff ---- */

static ls_result diff(const ls_arguments *arguments, ls_results *before, int *code, ls_error *error)
{
    ls_diff_options options = {.experiment = ls_argument_text(arguments, "experiment"),
                               .metrics = ls_argument_text(arguments, "metric"),
                               .backend = ls_argument_text(arguments, "backend"),
                               .level = ls_argument_real(arguments, "level"),
                               .tolerance = ls_argument_real(arguments, "tolerance")};
    bool all = ls_argument_flag(arguments, "all");
    ls_results *after = NULL;
    ls_diff found = {0};
    ls_text text = {0};
    ls_result result = ls_results_open(arguments->operands[2], LS_RESULTS_READ, &after, error);
    if (result == LS_OK) result = ls_results_diff(before, after, &options, &found, error);
    if (result == LS_OK) {
        (ls_argument_flag(arguments, "json") ? ls_diff_json : ls_diff_table)(&found, &options, all, &text);
        if (text.failed) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    if (result == LS_OK) fputs(text.bytes, stdout);
    if (found.changes > 0) *code = LS_EXIT_CHANGED;
    ls_text_free(&text);
    ls_diff_free(&found);
    ls_results_close(after);
    return result;
}

/* ---- the actions ---- */

typedef struct action {
    const char *name;
    uint32_t operands; /* the action's own word included */
    ls_results_mode mode;
    ls_result (*run)(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error);
    const char *usage;
} action;

static const action actions[] = {{"list", 2, LS_RESULTS_READ, list, "list DB"},
                                 {"show", 2, LS_RESULTS_READ, show, "show DB"},
                                 {"hash", 2, LS_RESULTS_READ, hash, "hash DB"},
                                 {"delete", 2, LS_RESULTS_WRITE, delete, "delete DB --experiment NAME --yes"},
                                 {"diff", 3, LS_RESULTS_READ, diff, "diff A B"}};

static ls_result find_action(const ls_arguments *arguments, const action **found, ls_error *error)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, arguments->operands[0]) != 0) continue;
        *found = &actions[i];
        if (arguments->operand_count == actions[i].operands) return LS_OK;
        return ls_fail(error, LS_ERROR_INVALID, "%s takes %s; usage: lakestream results %s", actions[i].name,
                       actions[i].operands == 2 ? "one results file" : "two results files", actions[i].usage);
    }
    return ls_fail(error, LS_ERROR_INVALID,
                   "\"%.100s\": expected hash or list, show, delete, diff; usage: lakestream results list DB",
                   arguments->operands[0]);
}

static int run_results(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    const action *chosen = NULL;
    int code = LS_EXIT_DONE;
    ls_result result = find_action(arguments, &chosen, &error);
    /* Opened for reading first: opening for writing would make a file that is not there. */
    if (result == LS_OK) result = ls_results_open(arguments->operands[1], LS_RESULTS_READ, &results, &error);
    if (result == LS_OK && chosen->mode == LS_RESULTS_WRITE) {
        ls_results_close(results);
        results = NULL;
        result = ls_results_open(arguments->operands[1], LS_RESULTS_WRITE, &results, &error);
    }
    if (result == LS_OK) result = chosen->run(arguments, results, &code, &error);
    ls_results_close(results);
    return result == LS_OK ? code : ls_report_error(arguments, result, &error);
}

/* ---- merge ---- */

typedef struct gap_list {
    const ls_spec *spec;
    uint32_t shards;
    uint64_t runs;
} gap_list;

static ls_result print_gap(void *context, const ls_runner_gap *gap)
{
    gap_list *list = context;
    const ls_spec *spec = list->spec;
    list->runs += gap->last - gap->first + 1;
    printf("missing: point %u", gap->point);
    for (uint32_t k = 0; k < spec->swept_key_count; k++) {
        printf("%s%s=%s", k == 0 ? " (" : ", ", spec->swept_keys[k], spec->points[gap->point].labels[k]);
    }
    printf("%s, replication%s %" PRIu64, spec->swept_key_count > 0 ? ")" : "", gap->first < gap->last ? "s" : "", gap->first);
    if (gap->first < gap->last) printf(" to %" PRIu64, gap->last);
    if (list->shards > 0) printf(", shard %u/%u", gap->point % list->shards + 1, list->shards);
    printf("\n");
    return LS_OK;
}

/* Holds the joined file against the spec that the shards were run with. */
static ls_result check_whole(const ls_arguments *arguments, ls_results *results, int *code, ls_error *error)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_spec *spec = NULL;
    ls_runner_report report = {0};
    ls_result result =
        ls_spec_read(ls_argument_text(arguments, "spec"), &vocabulary, ls_argument_flag(arguments, "quick"), &spec, error);
    if (result != LS_OK) return result;
    if (ls_argument_given(arguments, "seed")) spec->seed = ls_argument_whole(arguments, "seed");
    gap_list list = {.spec = spec};
    if (ls_argument_given(arguments, "shards")) list.shards = (uint32_t)ls_argument_whole(arguments, "shards");
    ls_runner_config config = {.spec = spec,
                               .metrics = vocabulary.metrics,
                               .metric_count = vocabulary.metric_count,
                               .origin = {ls_plugin_origin(), ls_argument_text(arguments, "backend")},
                               .results = results,
                               .shard_count = 1};
    result = ls_runner_missing(&config, print_gap, &list, &report, error);
    if (result == LS_OK) {
        printf("%s: %u points, %" PRIu64 " of %" PRIu64 " runs of program %s: %s\n", spec->name, spec->point_count,
               report.reused, report.required, config.origin.version, list.runs == 0 ? "whole" : "not whole");
    }
    if (result == LS_OK && list.runs > 0) *code = LS_EXIT_CHANGED;
    ls_spec_free(spec);
    return result;
}

static int run_merge(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    int code = LS_EXIT_DONE;
    ls_result result = ls_results_open(arguments->operands[0], LS_RESULTS_WRITE, &results, &error);
    for (uint32_t i = 1; i < arguments->operand_count && result == LS_OK; i++) {
        result = ls_results_merge(results, arguments->operands[i], &error);
    }
    if (result == LS_OK && ls_argument_given(arguments, "spec")) result = check_whole(arguments, results, &code, &error);
    ls_results_close(results);
    return result == LS_OK ? code : ls_report_error(arguments, result, &error);
}

static const ls_command_option merge_options[] = {
    {"spec", 0, LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "name what OUT lacks of this experiment; exit code 4 if anything"},
    {"shards", 0, LS_ARGUMENT_WHOLE, "N", NULL, 1, 1000000, "with --spec: say which of N shards has to run again"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with --spec: the shards were run with --quick"},
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", NULL, 0, 9007199254740992.0, "with --spec: the shards were run with --seed"},
    {"backend", 'b', LS_ARGUMENT_TEXT, "STORE", "sim", 0, 0, "with --spec: the shards were run with --backend"}};

static const ls_command_option options[] = {
    {"experiment", 'e', LS_ARGUMENT_TEXT, "NAME", NULL, 0, 0, "show, delete, diff: this experiment"},
    {"metric", 'm', LS_ARGUMENT_TEXT, "NAME,...", NULL, 0, 0, "diff: only these metrics; show: mean and interval of this one"},
    {"backend", 0, LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0,
     "show, diff: runs of this backend (default: of the latest run); delete: only its runs"},
    {"level", 0, LS_ARGUMENT_REAL, "P", "0.05", 1e-12, 0.5, "diff: chance of any false finding, over all tests together"},
    {"tolerance", 0, LS_ARGUMENT_REAL, "SHARE", "0", 0, 1e6, "diff: changes of a mean up to this share of it count as none"},
    {"all", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "diff: what stayed the same too"},
    {"yes", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "delete: do it; without, say what would go (exit code 2)"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "list, show, diff: as JSON"}};

const ls_command ls_command_results = {
    .name = "results",
    .operands = "list|show|hash|delete|diff DB [DB]",
    .minimum_operands = 2,
    .maximum_operands = 3,
    .summary = "List, show, hash, delete and compare what results files hold",
    .details =
        "The hash covers experiments, points, runs and metrics, and neither order of insertion, wall time, paths nor "
        "dates:\n"
        "two files of the same experiment, seed and program have the same hash, whatever -j or shards made them.\n"
        "delete takes an experiment with the runs and points that no other experiment of the file has.\n"
        "diff A B says what changed from A to B beyond noise: Welch's test for each point and metric, p values adjusted "
        "after Holm over\n"
        "all of them. Exit code 4 when something changed, is missing in B or fails there more often; 0 when not. "
        "docs/results.md.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_results};

const ls_command ls_command_merge = {
    .name = "merge",
    .operands = "OUT DB [DB ...]",
    .minimum_operands = 2,
    .maximum_operands = 100000,
    .summary = "Join results files, such as the shards of one experiment, into OUT",
    .details =
        "OUT has the hash (`lakestream results hash`) of a run in one piece. Merging a file again changes nothing, so more shards "
        "may come later.\n"
        "Exit code 1 when a file contradicts OUT: the same run with other values, the same spec with other points. The first "
        "contradiction\n"
        "is named, nothing of that file is added; what came from the files before it stays. With --spec, exit code 4 when OUT lacks "
        "runs that\n"
        "the experiment asks for, failed ones included; each is named.",
    .options = merge_options,
    .option_count = sizeof merge_options / sizeof merge_options[0],
    .run = run_merge};
