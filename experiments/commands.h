/* commands.h - the rows of the command table, one a command; each is defined by the cmd_*.c file that carries it out.
 */
#ifndef LS_COMMANDS_H
#define LS_COMMANDS_H

#include "experiments/command.h"

extern const ls_command ls_command_run;
extern const ls_command ls_command_compare;
extern const ls_command ls_command_plot;
extern const ls_command ls_command_report;
extern const ls_command ls_command_macros;
extern const ls_command ls_command_sensitivity;
extern const ls_command ls_command_results;
extern const ls_command ls_command_export;
extern const ls_command ls_command_merge;
extern const ls_command ls_command_series;
extern const ls_command ls_command_trace;
extern const ls_command ls_command_tune;
extern const ls_command ls_command_calibrate;
extern const ls_command ls_command_validate;
extern const ls_command ls_command_fuzz;
extern const ls_command ls_command_policies;
extern const ls_command ls_command_presets;
extern const ls_command ls_command_prices;
extern const ls_command ls_command_keys;
extern const ls_command ls_command_metrics;
extern const ls_command ls_command_explore;
extern const ls_command ls_command_produce;
extern const ls_command ls_command_consume;
extern const ls_command ls_command_checkpoint;
extern const ls_command ls_command_reclaim;
extern const ls_command ls_command_inspect;
extern const ls_command ls_command_fsck;
extern const ls_command ls_command_policy_test;
extern const ls_command ls_command_completion;
extern const ls_command ls_command_man;
extern const ls_command ls_command_demo;

#endif
