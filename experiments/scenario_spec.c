/* scenario_spec.c - see scenario_spec.h. */
#include "experiments/scenario_spec.h"

#include "experiments/setting.h"
#include "experiments/spec.h"

#include <inttypes.h>
#include <string.h>

static void add_setting(ls_text *text, const ls_option *option, const ls_scenario *scenario, const ls_scenario *usual)
{
    ls_text value = {0}, before = {0};
    ls_setting_json(&value, option, scenario);
    ls_setting_json(&before, option, usual);
    ls_text_add(&value, "");
    ls_text_add(&before, "");
    if (value.failed || before.failed) text->failed = true;
    bool needed = !text->failed && (strcmp(value.bytes, before.bytes) != 0 || strcmp(option->path, "store.preset") == 0);
    if (needed) ls_text_format(text, "    \"%s\": %s,\n", option->path, value.bytes);
    ls_text_free(&value);
    ls_text_free(&before);
}

static void add_policy(ls_text *text, const ls_scenario *scenario)
{
    ls_policy_instance usual;
    ls_error ignored;
    if (ls_policy_instantiate(scenario->policy_name, &usual, &ignored) != LS_OK) return;
    ls_text_format(text, "    \"policy\": {\"name\": \"%s\"", scenario->policy_name);
    for (uint32_t i = 0; i < usual.policy->parameter_count; i++) {
        if (scenario->policy.values[i] == usual.values[i]) continue;
        ls_text_format(text, ", \"%s\": ", usual.policy->parameters[i].name);
        ls_text_number(text, scenario->policy.values[i]);
    }
    ls_text_add(text, "}\n");
}

char *ls_scenario_spec(const ls_scenario *scenario, uint64_t seed, const char *title)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario usual;
    memset(&usual, 0, sizeof usual);
    ls_options_default(vocabulary.options, vocabulary.option_count, &usual);
    for (uint32_t i = 0; i < vocabulary.preset_count; i++) {
        if (strcmp(vocabulary.presets[i].name, scenario->store_preset) == 0) usual.store = vocabulary.presets[i].config;
    }
    ls_text text = {0};
    ls_text_add(&text, "{\n  \"title\": ");
    ls_text_json(&text, title);
    ls_text_format(&text, ",\n  \"seed\": %" PRIu64 ",\n  \"replications\": 1,\n  \"base\": {\n", seed);
    for (uint32_t i = 0; i < vocabulary.option_count; i++) add_setting(&text, &vocabulary.options[i], scenario, &usual);
    add_policy(&text, scenario);
    ls_text_add(&text, "  }\n}\n");
    return ls_text_take(&text);
}
