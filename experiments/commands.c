/* commands.c - the list of all commands, with the two that only talk about the program: help and version. */
#include "experiments/commands.h"

#include "experiments/version.h"

#include <stdio.h>

static int run_help(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_command *const *commands = ls_commands(&count);
    if (arguments->operand_count == 0) {
        printf("Lakestream %s: how should many writers of one manifest on an object store decide when to commit?\n\n",
               LS_VERSION);
        for (uint32_t i = 0; i < count; i++) printf("  lakestream %-10s %s\n", commands[i]->name, commands[i]->summary);
        printf("\n`lakestream COMMAND --help` explains one. Exit codes: 0 done, 1 a check failed, 2 bad usage or "
               "input, 3 store or "
               "environment failure, 4 results differ (results diff), 130 interrupted.\n");
        return LS_EXIT_DONE;
    }
    const ls_command *command = ls_command_find(arguments->operands[0]);
    if (command != NULL) {
        ls_command_help(command);
        return LS_EXIT_DONE;
    }
    ls_error error;
    ls_result result = ls_fail(&error, LS_ERROR_INVALID, "no command \"%.100s\"; `lakestream help` lists them",
                               arguments->operands[0]);
    return ls_report_error(arguments, result, &error);
}

static int run_version(const ls_arguments *arguments)
{
    (void)arguments;
    printf("lakestream %s\n", LS_VERSION);
    return LS_EXIT_DONE;
}

static const ls_command command_help = {.name = "help",
                                        .operands = "[COMMAND]",
                                        .maximum_operands = 1,
                                        .summary = "List the commands, or explain one",
                                        .run = run_help};

static const ls_command command_version = {
    .name = "version", .operands = "", .summary = "Print the version", .run = run_version};

const ls_command *const *ls_commands(uint32_t *count)
{
    static const ls_command *const commands[] = {
        &ls_command_demo, &ls_command_run, &ls_command_compare, &ls_command_plot,
        &ls_command_results, &ls_command_export, &ls_command_merge, &ls_command_series, &ls_command_trace, &ls_command_fuzz,
        &ls_command_explore, &ls_command_tune,
        &ls_command_policies, &ls_command_presets, &ls_command_keys, &ls_command_metrics,
        &ls_command_produce, &ls_command_consume, &ls_command_inspect, &ls_command_fsck,
        &ls_command_policy_test, &ls_command_report, &ls_command_macros, &ls_command_sensitivity, &ls_command_prices,
        &ls_command_checkpoint, &ls_command_reclaim, &ls_command_calibrate, &ls_command_validate,
        &ls_command_completion, &ls_command_man,
        &command_help, &command_version};
    *count = sizeof commands / sizeof commands[0];
    return commands;
}
