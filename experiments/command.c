/* command.c - parsing and help from the tables of command.h. */
#include "experiments/command.h"

#include "experiments/layer.h"
#include "experiments/plugin.h"
#include "experiments/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ls_exit_code(ls_result result)
{
    switch (result) {
    case LS_OK: return LS_EXIT_DONE;
    case LS_ERROR_VIOLATED: return LS_EXIT_CHECK_FAILED;
    case LS_ERROR_INVALID:
    case LS_ERROR_LIMIT: return LS_EXIT_USAGE;
    case LS_ERROR_MEMORY:
    case LS_ERROR_CORRUPT:
    case LS_ERROR_VERSION:
    case LS_ERROR_IO: return LS_EXIT_ENVIRONMENT;
    }
    return LS_EXIT_ENVIRONMENT;
}

int ls_report_error(const ls_arguments *arguments, ls_result result, const ls_error *error)
{
    fprintf(stderr, "lakestream %s: %s\n", arguments->command->name,
            error->text[0] != '\0' ? error->text : ls_result_name(result));
    return ls_exit_code(result);
}

const ls_command *ls_command_find(const char *name)
{
    uint32_t count;
    const ls_command *const *commands = ls_commands(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

static const char *option_name(const void *options, uint32_t index)
{
    return ((const ls_command_option *)options)[index].name;
}

static ls_result unknown_option(const ls_command *command, const char *name, ls_error *error)
{
    const char *nearest = ls_nearest(name, command->options, command->option_count, option_name);
    return ls_fail(error, LS_ERROR_INVALID, "no option --%.100s%s%s%s; `lakestream %s --help` lists them", name,
                   nearest != NULL ? "; did you mean --" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "?" : "", command->name);
}

static bool parse_number(const char *text, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && isfinite(*number);
}

static ls_result check_value(const ls_command_option *option, const char *value, ls_error *error)
{
    double number;
    if (option->kind != LS_ARGUMENT_WHOLE && option->kind != LS_ARGUMENT_REAL) return LS_OK;
    bool good = parse_number(value, &number) && number >= option->minimum && number <= option->maximum;
    if (good && option->kind == LS_ARGUMENT_WHOLE) good = strspn(value, "0123456789") == strlen(value);
    if (good) return LS_OK;
    char low[32], high[32];
    return ls_fail(error, LS_ERROR_INVALID, "--%s %.100s: expected a %s from %s to %s", option->name, value,
                   option->kind == LS_ARGUMENT_WHOLE ? "whole number" : "number", ls_number_text(option->minimum, low),
                   ls_number_text(option->maximum, high));
}

static ls_result set_option(ls_arguments *arguments, uint32_t index, const char *value, ls_error *error)
{
    const ls_command_option *option = &arguments->command->options[index];
    if (option->kind == LS_ARGUMENT_TEXTS) {
        arguments->texts[arguments->text_count++] = (ls_argument_text_given){index, value};
    } else if (arguments->given[index]) {
        return ls_fail(error, LS_ERROR_INVALID, "--%s is given twice", option->name);
    }
    ls_result result = check_value(option, value, error);
    arguments->values[index] = value;
    arguments->given[index] = true;
    return result;
}

/* Takes the option at words[*at] and moves *at past its value. */
static ls_result take_option(ls_arguments *arguments, int count, char *const *words, int *at, ls_error *error)
{
    const ls_command *command = arguments->command;
    const char *word = words[*at];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    char name[128];
    size_t length = equals != NULL ? (size_t)(equals - word - 2) : strlen(word + (is_long ? 2 : 1));
    if (!is_long) length = 1;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
             word + (is_long ? 2 : 1));
    uint32_t i = 0;
    while (i < command->option_count &&
           !(is_long ? strcmp(command->options[i].name, name) == 0 : command->options[i].letter == name[0])) {
        i++;
    }
    if (i == command->option_count) {
        if (is_long) return unknown_option(command, name, error);
        return ls_fail(error, LS_ERROR_INVALID, "no option -%c; `lakestream %s --help` lists them", name[0],
                       command->name);
    }
    const char *attached = equals != NULL ? equals + 1 : !is_long && word[2] != '\0' ? word + 2 : NULL;
    if (command->options[i].kind == LS_ARGUMENT_FLAG) {
        if (attached != NULL) return ls_fail(error, LS_ERROR_INVALID, "--%s takes no value", command->options[i].name);
        return set_option(arguments, i, "1", error);
    }
    if (attached == NULL && *at + 1 >= count) {
        return ls_fail(error, LS_ERROR_INVALID, "--%s needs a value: %s", command->options[i].name,
                       command->options[i].value_name);
    }
    return set_option(arguments, i, attached != NULL ? attached : words[++*at], error);
}

static ls_result check_operands(const ls_arguments *arguments, ls_error *error)
{
    const ls_command *command = arguments->command;
    if (arguments->help) return LS_OK;
    if (arguments->operand_count > command->maximum_operands) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "\"%.200s\" is one argument too many; usage: lakestream %s %s [options]",
                       arguments->operands[command->maximum_operands], command->name, command->operands);
    }
    if (arguments->operand_count < command->minimum_operands) {
        return ls_fail(error, LS_ERROR_INVALID, "an argument is missing; usage: lakestream %s %s [options]",
                       command->name, command->operands);
    }
    return LS_OK;
}

ls_result ls_arguments_parse(const ls_command *command, int count, char *const *words, ls_arguments *arguments,
                             ls_error *error)
{
    *arguments = (ls_arguments){.command = command};
    for (uint32_t i = 0; i < command->option_count; i++) arguments->values[i] = command->options[i].default_text;
    arguments->operands = ls_allocate_array((size_t)count + 1, sizeof(char *));
    arguments->texts = ls_allocate_array((size_t)count + 1, sizeof arguments->texts[0]);
    if (arguments->operands == NULL || arguments->texts == NULL) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    bool options_end = false;
    ls_result result = LS_OK;
    for (int at = 0; at < count && result == LS_OK; at++) {
        if (options_end || words[at][0] != '-' || words[at][1] == '\0') {
            arguments->operands[arguments->operand_count++] = words[at];
        } else if (strcmp(words[at], "--") == 0) {
            options_end = true;
        } else if (strcmp(words[at], "--help") == 0 || strcmp(words[at], "-h") == 0) {
            arguments->help = true;
        } else {
            result = take_option(arguments, count, words, &at, error);
        }
    }
    return result == LS_OK ? check_operands(arguments, error) : result;
}

void ls_arguments_free(ls_arguments *arguments)
{
    ls_free(arguments->operands);
    ls_free(arguments->texts);
    arguments->operands = NULL;
    arguments->texts = NULL;
}

static uint32_t option_index(const ls_arguments *arguments, const char *name)
{
    uint32_t i = 0;
    while (i < arguments->command->option_count && strcmp(arguments->command->options[i].name, name) != 0) i++;
    return i;
}

bool ls_argument_given(const ls_arguments *arguments, const char *name)
{
    uint32_t i = option_index(arguments, name);
    return i < arguments->command->option_count && arguments->given[i];
}

bool ls_argument_flag(const ls_arguments *arguments, const char *name) { return ls_argument_given(arguments, name); }

const char *ls_argument_text(const ls_arguments *arguments, const char *name)
{
    uint32_t i = option_index(arguments, name);
    return i < arguments->command->option_count ? arguments->values[i] : NULL;
}

const char *ls_argument_text_at(const ls_arguments *arguments, const char *name, uint32_t index)
{
    uint32_t option = option_index(arguments, name);
    for (uint32_t i = 0; i < arguments->text_count; i++) {
        if (arguments->texts[i].option == option && index-- == 0) return arguments->texts[i].value;
    }
    return NULL;
}

uint64_t ls_argument_whole(const ls_arguments *arguments, const char *name)
{
    const char *text = ls_argument_text(arguments, name);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

double ls_argument_real(const ls_arguments *arguments, const char *name)
{
    const char *text = ls_argument_text(arguments, name);
    return text != NULL ? strtod(text, NULL) : 0.0;
}

static void print_option(const ls_command_option *option)
{
    char left[96], letter[8] = "    ";
    if (option->letter != 0) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->value_name != NULL ? " " : "",
             option->value_name != NULL ? option->value_name : "");
    printf("  %-26s %s", left, option->meaning);
    if (option->default_text != NULL) printf(" (default %s)", option->default_text);
    printf("\n");
}

void ls_command_help(const ls_command *command)
{
    printf("usage: lakestream %s%s%s%s\n\n%s.\n", command->name, command->operands[0] != '\0' ? " " : "",
           command->operands, command->option_count > 0 ? " [options]" : "", command->summary);
    if (command->option_count > 0) printf("\n");
    for (uint32_t i = 0; i < command->option_count; i++) print_option(&command->options[i]);
    if (command->details != NULL) printf("\n%s\n", command->details);
}

static const char *command_name(const void *commands, uint32_t index)
{
    return ((const ls_command *const *)commands)[index]->name;
}

static int unknown_command(const char *name)
{
    uint32_t count;
    const ls_command *const *commands = ls_commands(&count);
    const char *nearest = ls_nearest(name, commands, count, command_name);
    fprintf(stderr, "lakestream: no command \"%s\"%s%s%s; `lakestream help` lists them\n", name,
            nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    return LS_EXIT_USAGE;
}

static int load_plugin(const char *path)
{
    ls_error error = {""};
    ls_result result = path == NULL ? ls_fail(&error, LS_ERROR_INVALID, "--plugin needs a file: --plugin ./mine.so")
                                    : ls_plugin_load(path, &error);
    if (result == LS_OK) return LS_EXIT_DONE;
    fprintf(stderr, "lakestream: %s\n", error.text);
    return ls_exit_code(result);
}

/* Loads every --plugin FILE, wherever it stands, and takes it out of the words: commands know nothing of plug-ins. */
static int take_plugins(int *count, char **words)
{
    int kept = 1, code = LS_EXIT_DONE;
    bool options_end = false;
    for (int at = 1; at < *count && code == LS_EXIT_DONE; at++) {
        options_end = options_end || strcmp(words[at], "--") == 0;
        if (options_end || strncmp(words[at], "--plugin", 8) != 0 || (words[at][8] != '\0' && words[at][8] != '=')) {
            words[kept++] = words[at];
        } else if (words[at][8] == '=') {
            code = load_plugin(words[at] + 9);
        } else {
            code = load_plugin(at + 1 < *count ? words[++at] : NULL);
        }
    }
    *count = kept;
    return code;
}

static int run_command(const ls_command *command, int count, char *const *words)
{
    ls_arguments arguments;
    ls_error error = {""};
    ls_result result = ls_arguments_parse(command, count, words, &arguments, &error);
    int code;
    if (result != LS_OK) {
        code = ls_report_error(&arguments, result, &error);
    } else if (arguments.help) {
        ls_command_help(command);
        code = LS_EXIT_DONE;
    } else {
        code = command->run(&arguments);
    }
    ls_arguments_free(&arguments);
    return code;
}

int ls_program(int count, char **words)
{
    int code = take_plugins(&count, words);
    if (code != LS_EXIT_DONE) return code;
    const char *name = count > 1 ? words[1] : "help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    const ls_command *command = ls_command_find(name);
    if (command == NULL) return unknown_command(name);
    code = run_command(command, count > 2 ? count - 2 : 0, words + 2);
    /* A full disk or a closed pipe shows only when the buffer goes out. */
    if (fflush(stdout) != 0 && code == LS_EXIT_DONE) {
        fprintf(stderr, "lakestream: standard output: %s\n", strerror(errno));
        code = LS_EXIT_ENVIRONMENT;
    }
    return code;
}
