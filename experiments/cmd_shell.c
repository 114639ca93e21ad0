/* cmd_shell.c - what shells and manual readers need, printed from the tables of commands and options: `lakestream completion` and
 * `lakestream man`. There is no second list of options anywhere. */
#include "experiments/commands.h"
#include "experiments/text.h"
#include "experiments/version.h"

#include <stdio.h>
#include <string.h>

/* ---- completion ---- */

/* Words that complete an operand: the commands for help, otherwise files. */
static void bash_case(const ls_command *command)
{
    printf("    %s) words=\"--help", command->name);
    for (uint32_t i = 0; i < command->option_count; i++) printf(" --%s", command->options[i].name);
    printf("\" ;;\n");
}

static void print_bash(const ls_command *const *commands, uint32_t count)
{
    puts("# bash completion of lakestream: source it, or put it into a folder of bash-completion");
    puts("_lakestream()\n{\n  local word=${COMP_WORDS[COMP_CWORD]} words=\"\"");
    printf("  local commands=\"");
    for (uint32_t i = 0; i < count; i++) printf("%s%s", i > 0 ? " " : "", commands[i]->name);
    puts("\"\n  if [ \"$COMP_CWORD\" -eq 1 ] || [ \"${COMP_WORDS[1]}\" = help ]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands --help --version --plugin\" -- \"$word\"))\n    return\n  fi\n"
         "  case ${COMP_WORDS[1]} in");
    for (uint32_t i = 0; i < count; i++) bash_case(commands[i]);
    puts("  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"$words --plugin\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\ncomplete -o filenames -F _lakestream lakestream");
}

/* In zsh's lists a colon separates a word from its meaning, and a bracket ends one. */
static void zsh_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (*c == ':' || *c == '[' || *c == ']' || *c == '\\') putchar('\\');
        putchar(*c);
    }
}

static void zsh_case(const ls_command *command)
{
    printf("    %s) _arguments '--help[explain it]'", command->name);
    for (uint32_t i = 0; i < command->option_count; i++) {
        const ls_command_option *option = &command->options[i];
        printf(" \\\n      '%s--%s%s[", option->kind == LS_ARGUMENT_TEXTS ? "*" : "", option->name, option->value_name != NULL ? "=" : "");
        zsh_text(option->meaning);
        printf("]%s%s%s'", option->value_name != NULL ? ":" : "", option->value_name != NULL ? option->value_name : "",
               option->value_name != NULL ? ":_files" : "");
    }
    puts(" \\\n      '*:file:_files' ;;");
}

static void print_zsh(const ls_command *const *commands, uint32_t count)
{
    puts("#compdef lakestream\n# zsh completion of lakestream: put it as _lakestream into a folder of $fpath");
    puts("_lakestream()\n{\n  local -a commands\n  if (( CURRENT == 2 )); then\n    commands=(");
    for (uint32_t i = 0; i < count; i++) {
        printf("      '%s:", commands[i]->name);
        zsh_text(commands[i]->summary);
        puts("'");
    }
    puts("    )\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
         "  case $command in");
    for (uint32_t i = 0; i < count; i++) zsh_case(commands[i]);
    puts("  esac\n}\n_lakestream \"$@\"");
}

static int run_completion(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_command *const *commands = ls_commands(&count);
    ls_error error = {""};
    if (strcmp(arguments->operands[0], "bash") == 0) {
        print_bash(commands, count);
    } else if (strcmp(arguments->operands[0], "zsh") == 0) {
        print_zsh(commands, count);
    } else {
        ls_result result = ls_fail(&error, LS_ERROR_INVALID, "\"%.50s\": expected bash or zsh", arguments->operands[0]);
        return ls_report_error(arguments, result, &error);
    }
    return LS_EXIT_DONE;
}

/* ---- manual ---- */

/* roff: a dot or quote that begins a line is a request, a backslash an escape, and a bare hyphen may be set as a dash. */
static void roff_text(const char *text)
{
    bool begins = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (begins && (*c == '.' || *c == '\'')) fputs("\\&", stdout);
        if (*c == '\\') fputs("\\e", stdout);
        else if (*c == '-') fputs("\\-", stdout);
        else putchar(*c);
        begins = *c == '\n';
    }
}

static void roff_option(const ls_command_option *option)
{
    printf(".TP\n");
    if (option->letter != 0) printf("\\fB\\-%c\\fR, ", option->letter);
    printf("\\fB\\-\\-");
    roff_text(option->name);
    printf("\\fR");
    if (option->value_name != NULL) printf(" \\fI%s\\fR", option->value_name);
    printf("\n");
    roff_text(option->meaning);
    if (option->default_text != NULL) {
        printf(" (default ");
        roff_text(option->default_text);
        printf(")");
    }
    printf("\n");
}

static void roff_command(const ls_command *command, bool alone)
{
    printf(alone ? ".SH SYNOPSIS\n" : ".SS \"");
    if (alone) printf("\\fBlakestream ");
    else printf("lakestream ");
    roff_text(command->name);
    if (alone) printf("\\fR");
    printf(" ");
    roff_text(command->operands);
    printf(alone ? " [\\fIoptions\\fR]\n.SH DESCRIPTION\n" : "\"\n");
    roff_text(command->summary);
    printf(".\n");
    if (command->details != NULL) {
        printf(".PP\n");
        roff_text(command->details);
        printf("\n");
    }
    if (alone && command->option_count > 0) printf(".SH OPTIONS\n");
    for (uint32_t i = 0; i < command->option_count; i++) roff_option(&command->options[i]);
}

static void roff_exit_codes(void)
{
    puts(".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\na check failed\n.TP\n2\nbad usage or input\n.TP\n3\nstore or environment failure\n"
         ".TP\n4\nresults differ (results diff)\n.TP\n130\ninterrupted");
}

static int run_man(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_command *const *commands = ls_commands(&count);
    ls_error error = {""};
    if (arguments->operand_count > 0) {
        const ls_command *command = ls_command_find(arguments->operands[0]);
        if (command == NULL) {
            ls_result result = ls_fail(&error, LS_ERROR_INVALID, "no command \"%.100s\"; `lakestream help` lists them", arguments->operands[0]);
            return ls_report_error(arguments, result, &error);
        }
        printf(".TH LAKESTREAM\\-%s 1 \"\" \"lakestream %s\" \"User Commands\"\n.SH NAME\nlakestream\\-%s \\- ", command->name, LS_VERSION,
               command->name);
        roff_text(command->summary);
        printf("\n");
        roff_command(command, true);
        roff_exit_codes();
        return LS_EXIT_DONE;
    }
    printf(".TH LAKESTREAM 1 \"\" \"lakestream %s\" \"User Commands\"\n.SH NAME\nlakestream \\- commit protocols on object stores: simulate, "
           "run for real, explore\n.SH SYNOPSIS\n\\fBlakestream\\fR [\\fB\\-\\-plugin\\fR \\fIFILE\\fR] \\fICOMMAND\\fR ...\n.SH COMMANDS\n",
           LS_VERSION);
    for (uint32_t i = 0; i < count; i++) roff_command(commands[i], false);
    roff_exit_codes();
    return LS_EXIT_DONE;
}

const ls_command ls_command_completion = {
    .name = "completion",
    .operands = "bash|zsh",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Print the completion script of a shell",
    .details = "bash: source <(lakestream completion bash)   zsh: lakestream completion zsh > ~/.zfunc/_lakestream",
    .run = run_completion};

const ls_command ls_command_man = {.name = "man",
                                   .operands = "[COMMAND]",
                                   .maximum_operands = 1,
                                   .summary = "Print the manual page of the program, or of one command (pipe it into man -l -)",
                                   .run = run_man};
