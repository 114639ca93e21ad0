/* cmd_results.c - `lakestream results hash|list DB` and `lakestream merge OUT DB...`. */
#include "experiments/commands.h"
#include "experiments/results.h"
#include "experiments/text.h"

#include <inttypes.h>
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

static ls_result list(const ls_arguments *arguments, ls_results *results, ls_error *error)
{
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

static ls_result hash(ls_results *results, ls_error *error)
{
    char hex[LS_DIGEST_HEX_BYTES];
    ls_result result = ls_results_hash(results, hex, error);
    if (result == LS_OK) printf("%s\n", hex);
    return result;
}

static int run_results(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    bool hashing = strcmp(arguments->operands[0], "hash") == 0;
    ls_result result = LS_OK;
    if (!hashing && strcmp(arguments->operands[0], "list") != 0) {
        result = ls_fail(&error, LS_ERROR_INVALID,
                         "\"%.100s\": expected hash or list; usage: lakestream results hash|list DB",
                         arguments->operands[0]);
    }
    if (result == LS_OK) result = ls_results_open(arguments->operands[1], LS_RESULTS_READ, &results, &error);
    if (result == LS_OK) result = hashing ? hash(results, &error) : list(arguments, results, &error);
    ls_results_close(results);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static int run_merge(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_results *results = NULL;
    ls_result result = ls_results_open(arguments->operands[0], LS_RESULTS_WRITE, &results, &error);
    for (uint32_t i = 1; i < arguments->operand_count && result == LS_OK; i++) {
        result = ls_results_merge(results, arguments->operands[i], &error);
    }
    ls_results_close(results);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {{"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "the list as JSON"}};

const ls_command ls_command_results = {
    .name = "results",
    .operands = "hash|list DB",
    .minimum_operands = 2,
    .maximum_operands = 2,
    .summary = "List what a results file holds, or hash its content",
    .details =
        "The hash covers experiments, points, runs and metrics, and neither order of insertion, wall time, paths nor "
        "dates:\n"
        "two files of the same experiment, seed and program have the same hash, whatever -j or shards made them.",
    .options = options,
    .option_count = 1,
    .run = run_results};

const ls_command ls_command_merge = {.name = "merge",
                                     .operands = "OUT DB [DB ...]",
                                     .minimum_operands = 2,
                                     .maximum_operands = 100000,
                                     .summary = "Join results files, such as the shards of one experiment, into OUT",
                                     .run = run_merge};
