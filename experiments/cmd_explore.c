/* cmd_explore.c - `lakestream explore`: every order of events of a small world (sim/explorer.h), from the command line. */
#include "experiments/commands.h"
#include "sim/explorer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The place of a word in a list of words separated by spaces, or -1. */
static int choice(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0; *choices != '\0'; i++) {
        size_t here = strcspn(choices, " ");
        if (here == length && memcmp(choices, word, length) == 0) return i;
        choices += here + strspn(choices + here, " ");
    }
    return -1;
}

static void show_progress(void *context, const ls_explorer_result *so_far)
{
    double elapsed_s = seconds_now() - *(const double *)context;
    fprintf(stderr, "\r%" PRIu64 " states, %" PRIu64 " transitions, %.0f states/s ", so_far->states,
            so_far->transitions, (double)so_far->states / elapsed_s);
}

static int replay(const ls_arguments *arguments, const char *name)
{
    ls_error error = {""};
    ls_explorer_config config;
    uint32_t *path, length;
    FILE *file = fopen(name, "r");
    if (file == NULL) {
        return ls_report_error(arguments, LS_ERROR_IO, (ls_fail(&error, LS_ERROR_IO, "cannot open %s", name), &error));
    }
    ls_result result = ls_explorer_read(file, &config, &path, &length, &error);
    fclose(file);
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    result = ls_explorer_replay(&config, path, length, stdout, &error);
    ls_free(path);
    if (result == LS_ERROR_VIOLATED) {
        printf("violated: %s\n", error.text);
        return LS_EXIT_CHECK_FAILED;
    }
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    puts("no violation on this path");
    return LS_EXIT_DONE;
}

static void tell(const ls_explorer_result *result, double elapsed_s, bool json)
{
    const char *verdict = result->violated ? "violated" : result->exhausted ? "exhausted" : "not-exhausted";
    double rate = elapsed_s > 0 ? (double)result->states / elapsed_s : 0;
    printf(json ? "{\"verdict\":\"%s\",\"states\":%" PRIu64 ",\"transitions\":%" PRIu64 ",\"ends\":%" PRIu64
                  ",\"depth\":%u,\"elapsed_s\":%.3f,\"states_per_s\":%.0f}\n"
                : "%s: %" PRIu64 " states, %" PRIu64 " transitions, %" PRIu64 " ends, depth %u, %.3f s, %.0f states/s\n",
           verdict, result->states, result->transitions, result->ends, result->depth, elapsed_s, rate);
}

static int report_violation(const ls_arguments *arguments, const ls_explorer_config *config,
                            const ls_explorer_result *result)
{
    ls_error error = {""};
    const char *name = ls_argument_text(arguments, "output");
    if (!ls_argument_flag(arguments, "json")) {
        ls_explorer_replay(config, result->path, result->path_length, stdout, &error);
        printf("violated: %s\n", result->violation.text);
    }
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        return ls_report_error(arguments, LS_ERROR_IO, (ls_fail(&error, LS_ERROR_IO, "cannot write %s", name), &error));
    }
    ls_result written = ls_explorer_write(config, result, file, &error);
    fclose(file);
    if (written != LS_OK) return ls_report_error(arguments, written, &error);
    fprintf(stderr, "repeat it with: lakestream explore --replay %s\n", name);
    return LS_EXIT_CHECK_FAILED;
}

static int run_explore(const ls_arguments *arguments)
{
    if (ls_argument_given(arguments, "replay")) return replay(arguments, ls_argument_text(arguments, "replay"));
    ls_error error = {""};
    int layout = choice(LS_LAYOUT_CHOICES, ls_argument_text(arguments, "layout"));
    int discovery = choice(LS_DISCOVERY_CHOICES, ls_argument_text(arguments, "discovery"));
    if (layout < 0 || discovery < 0) {
        ls_fail(&error, LS_ERROR_INVALID, "--layout is one of: %s; --discovery is one of: %s", LS_LAYOUT_CHOICES,
                LS_DISCOVERY_CHOICES);
        return ls_report_error(arguments, LS_ERROR_INVALID, &error);
    }
    ls_explorer_config config = {.producers = (uint32_t)ls_argument_whole(arguments, "producers"),
                                 .batches = (uint32_t)ls_argument_whole(arguments, "batches"),
                                 .consumers = (uint32_t)ls_argument_whole(arguments, "consumers"),
                                 .reclaimers = (uint32_t)ls_argument_whole(arguments, "reclaimers"),
                                 .checkpoints = (uint32_t)ls_argument_whole(arguments, "checkpoints"),
                                 .rewinds = (uint32_t)ls_argument_whole(arguments, "rewinds"),
                                 .orphans = ls_argument_flag(arguments, "orphans"),
                                 .help_others = ls_argument_flag(arguments, "help-others"),
                                 .reduced = ls_argument_flag(arguments, "reduced"),
                                 .crashes = (uint32_t)ls_argument_whole(arguments, "crashes"),
                                 .zombies = (uint32_t)ls_argument_whole(arguments, "zombies"),
                                 .ambiguous = (uint32_t)ls_argument_whole(arguments, "ambiguous"),
                                 .lingering = (uint32_t)ls_argument_whole(arguments, "lingering"),
                                 .layout = (ls_layout)layout,
                                 .discovery = (ls_discovery)discovery,
                                 .states_max = ls_argument_whole(arguments, "states-max")};
    ls_explorer_result result;
    double begin_s = seconds_now();
    bool terminal = isatty(STDERR_FILENO) == 1;
    ls_result explored = ls_explore(&config, terminal ? show_progress : NULL, &begin_s, &result, &error);
    if (terminal) fputc('\n', stderr);
    if (explored == LS_ERROR_INVALID) return ls_report_error(arguments, explored, &error);
    tell(&result, seconds_now() - begin_s, ls_argument_flag(arguments, "json"));
    int code = LS_EXIT_DONE;
    if (explored != LS_OK) {
        fprintf(stderr, "lakestream explore: not exhausted: %s\n", error.text);
        code = LS_EXIT_ENVIRONMENT;
    } else if (result.violated) {
        code = report_violation(arguments, &config, &result);
    }
    ls_explorer_result_clear(&result);
    return code;
}

#define FAULT(name, default_text, meaning) {name, 0, LS_ARGUMENT_WHOLE, "N", default_text, 0, LS_EXPLORER_FAULTS_MAX, meaning}

static const ls_command_option options[] = {
    {"producers", 0, LS_ARGUMENT_WHOLE, "N", "2", 1, LS_EXPLORER_PRODUCERS_MAX, "How many producers"},
    {"batches", 0, LS_ARGUMENT_WHOLE, "N", "2", 0, LS_EXPLORER_BATCHES_MAX, "Batches of each"},
    {"consumers", 0, LS_ARGUMENT_WHOLE, "N", "0", 0, LS_EXPLORER_CONSUMERS_MAX, "How many consumers follow"},
    {"reclaimers", 0, LS_ARGUMENT_WHOLE, "N", "0", 0, LS_EXPLORER_RECLAIMERS_MAX, "How many reclaimers make a round"},
    {"checkpoints", 0, LS_ARGUMENT_WHOLE, "N", "0", 0, LS_EXPLORER_CHECKPOINTS_MAX, "So often a consumer may save where it stands"},
    {"rewinds", 0, LS_ARGUMENT_WHOLE, "N", "0", 0, LS_EXPLORER_REWINDS_MAX, "So often one may go back to its first checkpoint"},
    {"help-others", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "Producers publish what others have uploaded"},
    {"orphans", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "Reclaimers delete orphans too"},
    {"reduced", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "Leave out orders that make no difference (sim/explorer.c says which)"},
    FAULT("crashes", "0", "Crashes with restart; a put in flight may land later"),
    FAULT("zombies", "0", "Restarts of a producer that lives on"),
    FAULT("ambiguous", "0", "Replies that are unknown, 409, or 412 against the put's own object"),
    FAULT("lingering", "0", "Puts told as unknown that may land at any later point"),
    {"discovery", 0, LS_ARGUMENT_TEXT, "NAME", "list", 0, 0, "How the newest version is found: " LS_DISCOVERY_CHOICES},
    {"layout", 0, LS_ARGUMENT_TEXT, "NAME", "full", 0, 0, "How versions are read: " LS_LAYOUT_CHOICES},
    {"states-max", 0, LS_ARGUMENT_WHOLE, "N", "50000000", 0, 1e15, "Give up after so many states; 0: memory is the limit"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", "counterexample.txt", 0, 0, "Where a counterexample is written"},
    {"replay", 0, LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "Repeat a counterexample"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "Print one JSON object"},
};

const ls_command ls_command_explore = {
    .name = "explore",
    .operands = "",
    .summary = "Try every order of events of a small world and check every promise",
    .details = "Exit codes: 0 exhausted without a violation, 1 violated (the sequence is printed and written), 3 given up "
               "before the end for want of memory or states.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_explore};
