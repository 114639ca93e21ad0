/* command.h - the commands of the program and their options, as rows of tables.
 *
 * Parsing, --help and the messages for unknown names all come from these rows. A command's code gets its values by
 * option name; asking for a name that is not in its table is a programming error and gives "" or 0.
 */
#ifndef LS_COMMAND_H
#define LS_COMMAND_H

#include "manifest/base.h"

typedef enum ls_argument_kind {
    LS_ARGUMENT_FLAG = 1,
    LS_ARGUMENT_TEXT,
    LS_ARGUMENT_WHOLE,
    LS_ARGUMENT_REAL,
    LS_ARGUMENT_TEXTS /* text that may be given any number of times; no default */
} ls_argument_kind;

typedef struct ls_command_option {
    const char *name; /* --name */
    char letter;      /* -x, or 0 */
    ls_argument_kind kind;
    const char *value_name;   /* "FILE"; NULL for flags */
    const char *default_text; /* shown and used when not given; NULL: none */
    double minimum;           /* inclusive; whole and real */
    double maximum;
    const char *meaning; /* no full stop */
} ls_command_option;

typedef struct ls_arguments ls_arguments;

typedef struct ls_command {
    const char *name;
    const char *operands; /* "SPEC", "hash|list DB"; "" if none */
    uint32_t minimum_operands;
    uint32_t maximum_operands;
    const char *summary; /* one line, no full stop */
    const char *details; /* further help, or NULL */
    const ls_command_option *options;
    uint32_t option_count;
    int (*run)(const ls_arguments *arguments); /* returns the exit code */
} ls_command;

#define LS_COMMAND_OPTIONS_MAX 24u

typedef struct ls_argument_text_given {
    uint32_t option;
    const char *value;
} ls_argument_text_given;

struct ls_arguments {
    const ls_command *command;
    const char *values[LS_COMMAND_OPTIONS_MAX]; /* as given or default; NULL: not given; flags: "1" */
    bool given[LS_COMMAND_OPTIONS_MAX];
    const char **operands; /* owned by the parser; freed by ls_arguments_free */
    uint32_t operand_count;
    ls_argument_text_given *texts; /* options of kind LS_ARGUMENT_TEXTS in the order given; owned likewise */
    uint32_t text_count;
    bool help; /* --help was given */
};

enum {
    LS_EXIT_DONE = 0,
    LS_EXIT_CHECK_FAILED = 1,
    LS_EXIT_USAGE = 2,
    LS_EXIT_ENVIRONMENT = 3,
    LS_EXIT_CHANGED = 4, /* `results diff`: something changed beyond noise, or is missing */
    LS_EXIT_INTERRUPTED = 130
};

/* The exit code that a result stands for. */
int ls_exit_code(ls_result result);

/* Prints "lakestream COMMAND: text" on stderr and returns the exit code of result. */
int ls_report_error(const ls_arguments *arguments, ls_result result, const ls_error *error);

/* All commands, in the order in which help lists them. */
const ls_command *const *ls_commands(uint32_t *count);
const ls_command *ls_command_find(const char *name); /* NULL if there is none */

/* Parses what follows the command's name: "--name value", "--name=value", "-x value", "-xvalue", "--" ends options.
 * "--help" is known to every command. LS_ERROR_INVALID with the nearest name; LS_ERROR_MEMORY. Free with
 * ls_arguments_free. */
ls_result ls_arguments_parse(const ls_command *command, int count, char *const *words, ls_arguments *arguments,
                             ls_error *error);
void ls_arguments_free(ls_arguments *arguments);

bool ls_argument_given(const ls_arguments *arguments, const char *name);
bool ls_argument_flag(const ls_arguments *arguments, const char *name);
const char *ls_argument_text(const ls_arguments *arguments,
                             const char *name); /* NULL when neither given nor defaulted */
uint64_t ls_argument_whole(const ls_arguments *arguments, const char *name);
double ls_argument_real(const ls_arguments *arguments, const char *name);

/* The index-th value of an option of kind LS_ARGUMENT_TEXTS, in the order given; NULL when there is none. */
const char *ls_argument_text_at(const ls_arguments *arguments, const char *name, uint32_t index);

/* Prints a command's help to stdout. */
void ls_command_help(const ls_command *command);

/* The program: loads what --plugin names (taking those words out of the array), dispatches, returns the exit code. */
int ls_program(int count, char **words);

#endif
