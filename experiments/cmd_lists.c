/* cmd_lists.c - `lakestream policies`, `presets`, `prices`, `keys`, `metrics`: the tables that specs are written from,
 * printed from the same rows that specs are checked against. */
#include "experiments/commands.h"
#include "experiments/setting.h"
#include "experiments/spec.h"
#include "experiments/text.h"
#include "sim/prices.h"

#include <stdio.h>
#include <string.h>

static int print_text(const ls_arguments *arguments, ls_text *text)
{
    ls_error error = {""};
    int code = LS_EXIT_DONE;
    ls_text_add(text, "");
    if (text->failed) {
        code = ls_report_error(arguments, LS_ERROR_MEMORY, &error);
    } else {
        fputs(text->bytes, stdout);
    }
    ls_text_free(text);
    return code;
}

static void json_member(ls_text *text, const char *opening, const char *value)
{
    ls_text_add(text, opening);
    ls_text_json(text, value);
}

/* ---- policies ---- */

static void policy_table(const ls_policy *policy, ls_text *text)
{
    ls_text_format(text, "%s%s\n    %s. Source: %s\n", policy->name, policy->simulator_only ? " (simulator only)" : "",
                   policy->rule, policy->source);
    for (uint32_t i = 0; i < policy->parameter_count; i++) {
        const ls_policy_parameter *parameter = &policy->parameters[i];
        char value[32], low[32], high[32];
        ls_text_format(text, "    %-20s %-8s default %-8s %s .. %s  %s\n", parameter->name, parameter->unit,
                       ls_number_text(parameter->default_value, value), ls_number_text(parameter->minimum, low),
                       ls_number_text(parameter->maximum, high), parameter->meaning);
    }
}

static void policy_json(const ls_policy *policy, ls_text *text)
{
    json_member(text, "{\"name\":", policy->name);
    json_member(text, ",\"rule\":", policy->rule);
    json_member(text, ",\"source\":", policy->source);
    ls_text_format(text, ",\"simulator_only\":%s,\"parameters\":[", policy->simulator_only ? "true" : "false");
    for (uint32_t i = 0; i < policy->parameter_count; i++) {
        const ls_policy_parameter *parameter = &policy->parameters[i];
        json_member(text, i > 0 ? ",{\"name\":" : "{\"name\":", parameter->name);
        json_member(text, ",\"unit\":", parameter->unit);
        ls_text_add(text, ",\"default\":");
        ls_text_number(text, parameter->default_value);
        ls_text_add(text, ",\"minimum\":");
        ls_text_number(text, parameter->minimum);
        ls_text_add(text, ",\"maximum\":");
        ls_text_number(text, parameter->maximum);
        json_member(text, ",\"meaning\":", parameter->meaning);
        ls_text_add(text, "}");
    }
    ls_text_add(text, "]}");
}

static void policy_preset_table(const ls_policy_preset *preset, ls_text *text)
{
    ls_text_format(text, "%s = %s ", preset->name, preset->policy);
    for (uint32_t i = 0; i < preset->value_count; i++) {
        char value[32];
        ls_text_format(text, "%s=%s ", preset->value[i].parameter, ls_number_text(preset->value[i].value, value));
    }
    ls_text_format(text, "\n    %s. Source: %s\n", preset->meaning, preset->source);
}

static void policy_preset_json(const ls_policy_preset *preset, ls_text *text)
{
    json_member(text, "{\"name\":", preset->name);
    json_member(text, ",\"policy\":", preset->policy);
    json_member(text, ",\"meaning\":", preset->meaning);
    json_member(text, ",\"source\":", preset->source);
    ls_text_add(text, ",\"values\":{");
    for (uint32_t i = 0; i < preset->value_count; i++) {
        json_member(text, i > 0 ? "," : "", preset->value[i].parameter);
        ls_text_add(text, ":");
        ls_text_number(text, preset->value[i].value);
    }
    ls_text_add(text, "}}");
}

static int run_policies(const ls_arguments *arguments)
{
    uint32_t policy_count, preset_count;
    const ls_policy *const *policies = ls_policies(&policy_count);
    const ls_policy_preset *presets = ls_policy_presets(&preset_count);
    bool json = ls_argument_flag(arguments, "json");
    ls_text text = {0};
    if (json) ls_text_add(&text, "{\"policies\":[");
    for (uint32_t i = 0; i < policy_count; i++) {
        if (i > 0) ls_text_add(&text, json ? "," : "\n");
        if (json) {
            policy_json(policies[i], &text);
        } else {
            policy_table(policies[i], &text);
        }
    }
    ls_text_add(&text, json ? "],\"presets\":[" : "\nPresets, policies under other names and defaults:\n\n");
    for (uint32_t i = 0; i < preset_count; i++) {
        if (i > 0 && json) ls_text_add(&text, ",");
        if (json) {
            policy_preset_json(&presets[i], &text);
        } else {
            policy_preset_table(&presets[i], &text);
        }
    }
    if (json) ls_text_add(&text, "]}\n");
    return print_text(arguments, &text);
}

/* ---- prices ---- */

static void price_json(const ls_price_table *table, bool first, ls_text *text)
{
    const struct {
        const char *name;
        double value;
    } prices[] = {{"put_dollars_per_thousand", 1e3 * table->put_dollars},
                  {"list_dollars_per_thousand", 1e3 * table->list_dollars},
                  {"get_dollars_per_thousand", 1e3 * table->get_dollars},
                  {"delete_dollars_per_thousand", 1e3 * table->remove_dollars},
                  {"up_dollars_per_gib", table->up_dollars_per_gib},
                  {"down_dollars_per_gib", table->down_dollars_per_gib},
                  {"held_dollars_per_gib_month", table->held_dollars_per_gib_month}};
    json_member(text, first ? "{\"name\":" : ",{\"name\":", table->name);
    json_member(text, ",\"meaning\":", table->meaning);
    json_member(text, ",\"read\":", table->read);
    json_member(text, ",\"source\":", table->source);
    for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
        ls_text_format(text, ",\"%s\":", prices[i].name);
        ls_text_number(text, prices[i].value);
    }
    ls_text_format(text, ",\"bills_refused\":%s}", table->bills_refused ? "true" : "false");
}

static void price_lines(const ls_price_table *table, ls_text *text)
{
    ls_text_format(text, "%-12s %s\n", table->name, table->meaning);
    ls_text_format(text, "%-12s a thousand: put $%g, list $%g, get or head $%g, delete $%g\n", "",
                   1e3 * table->put_dollars, 1e3 * table->list_dollars, 1e3 * table->get_dollars,
                   1e3 * table->remove_dollars);
    ls_text_format(text, "%-12s a GiB: up $%g, down $%g, held a month $%g; %s\n", "", table->up_dollars_per_gib,
                   table->down_dollars_per_gib, table->held_dollars_per_gib_month,
                   table->bills_refused ? "refused requests (412, 404, 409) are billed" : "refused requests are free");
    ls_text_format(text, "%-12s source, read %s: %s\n", "", table->read, table->source);
}

static int run_prices(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_price_table *tables = ls_price_tables(&count);
    bool json = ls_argument_flag(arguments, "json");
    ls_text text = {0};
    if (json) ls_text_add(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (json) {
            price_json(&tables[i], i == 0, &text);
        } else {
            price_lines(&tables[i], &text);
        }
    }
    if (json) ls_text_add(&text, "]\n");
    return print_text(arguments, &text);
}

/* ---- store presets ---- */

static int run_presets(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    bool json = ls_argument_flag(arguments, "json");
    ls_text text = {0};
    if (json) ls_text_add(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (json) {
            json_member(&text, i > 0 ? ",{\"name\":" : "{\"name\":", presets[i].name);
            json_member(&text, ",\"meaning\":", presets[i].meaning);
            json_member(&text, ",\"source\":", presets[i].source);
            ls_text_add(&text, "}");
        } else {
            ls_text_format(&text, "%-16s %s\n%-16s source: %s\n", presets[i].name, presets[i].meaning, "",
                           presets[i].source);
        }
    }
    if (json) ls_text_add(&text, "]\n");
    return print_text(arguments, &text);
}

/* ---- spec keys ---- */

static void key_json(const ls_option *option, ls_text *text)
{
    ls_text expected = {0}, standard = {0};
    ls_setting_expectation(&expected, option);
    ls_setting_default(&standard, option);
    ls_text_add(&expected, "");
    ls_text_add(&standard, "");
    if (expected.failed || standard.failed) text->failed = true;
    json_member(text, "{\"path\":", option->path);
    if (!text->failed) json_member(text, ",\"expected\":", expected.bytes);
    if (!text->failed) json_member(text, ",\"default\":", standard.bytes);
    json_member(text, ",\"meaning\":", option->meaning);
    ls_text_add(text, "}");
    ls_text_free(&expected);
    ls_text_free(&standard);
}

static void key_table(const ls_option *option, ls_text *text)
{
    ls_text_format(text, "%s\n    %s; ", option->path, option->meaning);
    ls_setting_expectation(text, option);
    ls_text_add(text, "; default ");
    size_t before = text->length;
    ls_setting_default(text, option);
    if (text->length == before) ls_text_add(text, "empty");
    ls_text_add(text, "\n");
}

static int run_keys(const ls_arguments *arguments)
{
    uint32_t count, shown = 0;
    const ls_option *options = ls_scenario_options(&count);
    bool json = ls_argument_flag(arguments, "json");
    const char *start = arguments->operand_count > 0 ? arguments->operands[0] : "";
    ls_text text = {0};
    if (json) ls_text_add(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(options[i].path, start, strlen(start)) != 0) continue;
        if (json && shown > 0) ls_text_add(&text, ",");
        shown++;
        if (json) {
            key_json(&options[i], &text);
        } else {
            key_table(&options[i], &text);
        }
    }
    if (json) ls_text_add(&text, "]\n");
    return print_text(arguments, &text);
}

/* ---- metrics ---- */

static int run_metrics(const ls_arguments *arguments)
{
    uint32_t count;
    const ls_metric *metrics = ls_metrics(&count);
    bool json = ls_argument_flag(arguments, "json");
    ls_text text = {0};
    if (json) ls_text_add(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (json) {
            json_member(&text, i > 0 ? ",{\"name\":" : "{\"name\":", metrics[i].name);
            json_member(&text, ",\"unit\":", metrics[i].unit);
            json_member(&text, ",\"meaning\":", metrics[i].meaning);
            ls_text_add(&text, "}");
        } else {
            ls_text_format(&text, "%-32s %-10s %s\n", metrics[i].name, metrics[i].unit, metrics[i].meaning);
        }
    }
    if (json) ls_text_add(&text, "]\n");
    return print_text(arguments, &text);
}

static const ls_command_option json_option[] = {{"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "as JSON"}};

const ls_command ls_command_policies = {.name = "policies",
                                        .operands = "",
                                        .summary = "List the commit policies, their parameters and presets",
                                        .options = json_option,
                                        .option_count = 1,
                                        .run = run_policies};

const ls_command ls_command_presets = {.name = "presets",
                                       .operands = "",
                                       .summary = "List the store presets and where their numbers come from",
                                       .options = json_option,
                                       .option_count = 1,
                                       .run = run_presets};

const ls_command ls_command_prices = {.name = "prices",
                                      .operands = "",
                                      .summary = "List the providers' price tables, with date and source",
                                      .options = json_option,
                                      .option_count = 1,
                                      .run = run_prices};

const ls_command ls_command_keys = {.name = "keys",
                                    .operands = "[START]",
                                    .maximum_operands = 1,
                                    .summary = "List the keys of a spec: type, range, default, meaning",
                                    .options = json_option,
                                    .option_count = 1,
                                    .run = run_keys};

const ls_command ls_command_metrics = {.name = "metrics",
                                       .operands = "",
                                       .summary = "List what a run measures",
                                       .options = json_option,
                                       .option_count = 1,
                                       .run = run_metrics};
