/* layer.c - flattening and resolving of settings (layer.h). */
#include "experiments/layer.h"

#include "experiments/folder.h"
#include "experiments/model_file.h"
#include "experiments/setting.h"
#include "experiments/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSIGNMENTS_MAX 4096u /* of one layer; more than all options, and a bound for hostile input */

static ls_result out_of_memory(const ls_reading *reading)
{
    return ls_fail(reading->error, LS_ERROR_MEMORY, "%s: out of memory", reading->json->name);
}

static const char *word_at(const void *words, uint32_t index) { return ((const char *const *)words)[index]; }

const char *ls_did_you_mean(const char *word, const char *const *words, uint32_t count, char text[128])
{
    const char *nearest = ls_nearest(word, words, count, word_at);
    text[0] = '\0';
    if (nearest != NULL) snprintf(text, 128, "; did you mean \"%s\"?", nearest);
    return text;
}

static void add_words(ls_text *text, const char *const *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) ls_text_format(text, "%s%s", i > 0 ? ", " : "", words[i]);
    ls_text_add(text, "");
}

ls_result ls_check_members(const ls_reading *reading, const cJSON *object, const char *place, const char *const *names,
                           uint32_t count)
{
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        uint32_t i = 0;
        while (i < count && strcmp(names[i], member->string) != 0) i++;
        if (i < count) continue;
        char nearest[128];
        ls_text words = {0};
        add_words(&words, names, count);
        ls_result result = ls_json_fail(reading->json, member, reading->error, LS_ERROR_INVALID,
                                        "%s%s%.200s: no such key; expected one of %.300s%s", place, place[0] ? "." : "",
                                        member->string, words.failed ? "others" : words.bytes,
                                        ls_did_you_mean(member->string, names, count, nearest));
        ls_text_free(&words);
        return result;
    }
    return LS_OK;
}

static char *join(const char *left, const char *right)
{
    ls_text text = {0};
    ls_text_add(&text, left);
    if (left[0] != '\0') ls_text_add(&text, ".");
    ls_text_add(&text, right);
    return ls_text_take(&text);
}

static const ls_option *find_option(const ls_vocabulary *vocabulary, const char *path)
{
    for (uint32_t i = 0; i < vocabulary->option_count; i++) {
        if (strcmp(vocabulary->options[i].path, path) == 0) return &vocabulary->options[i];
    }
    return NULL;
}

/* All paths: the table's, and the two that a spec adds. ("store.model" is a third, short-lived: it becomes numbers.) */
static const char *path_at(const ls_vocabulary *vocabulary, uint32_t index)
{
    if (index < vocabulary->option_count) return vocabulary->options[index].path;
    return index == vocabulary->option_count ? "policy" : "store.preset";
}

/* Whether a path names the store that comes first, a preset or a model file. */
static bool names_store(const char *path) { return strcmp(path, "store.preset") == 0 || strcmp(path, "store.model") == 0; }

static uint32_t path_count(const ls_vocabulary *vocabulary) { return vocabulary->option_count + 2; }

/* What of `path` lies below group ("" is the root): NULL if it is not below. */
static const char *below(const char *path, const char *group)
{
    size_t length = strlen(group);
    if (length == 0) return path;
    return strncmp(path, group, length) == 0 && path[length] == '.' ? path + length + 1 : NULL;
}

static bool is_group(const ls_vocabulary *vocabulary, const char *path)
{
    for (uint32_t i = 0; i < path_count(vocabulary); i++) {
        if (below(path_at(vocabulary, i), path) != NULL) return true;
    }
    return false;
}

bool ls_layer_is_group(const ls_vocabulary *vocabulary, const char *path)
{
    return strcmp(path, "store") != 0 && is_group(vocabulary, path);
}

/* The distinct next components below group: an array of strings and their storage. */
typedef struct component_list {
    char **words;
    uint32_t count;
} component_list;

static void free_components(component_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) ls_free(list->words[i]);
    ls_free(list->words);
}

static bool list_components(const ls_vocabulary *vocabulary, const char *group, component_list *list)
{
    *list = (component_list){.words = ls_allocate_array(path_count(vocabulary), sizeof(char *))};
    if (list->words == NULL) return false;
    for (uint32_t i = 0; i < path_count(vocabulary); i++) {
        const char *rest = below(path_at(vocabulary, i), group);
        if (rest == NULL) continue;
        size_t length = strcspn(rest, ".");
        bool known = false;
        for (uint32_t k = 0; k < list->count && !known; k++) {
            known = strlen(list->words[k]) == length && memcmp(list->words[k], rest, length) == 0;
        }
        if (known) continue;
        char *word = ls_allocate(length + 1);
        if (word == NULL) return false;
        memcpy(word, rest, length);
        word[length] = '\0';
        list->words[list->count++] = word;
    }
    return true;
}

static const char *vocabulary_path(const void *vocabulary, uint32_t index) { return path_at(vocabulary, index); }

/* Splits an unknown path into the longest group that exists and the rest, which does not. */
static const char *unknown_part(const ls_vocabulary *vocabulary, const char *path, char *group)
{
    strcpy(group, path);
    for (;;) {
        char *dot = strrchr(group, '.');
        if (dot == NULL) {
            group[0] = '\0';
            return path;
        }
        *dot = '\0';
        if (is_group(vocabulary, group)) return path + strlen(group) + 1;
    }
}

static ls_result unknown_key(const ls_reading *reading, const char *path, const char *place, const cJSON *node)
{
    const ls_vocabulary *vocabulary = reading->vocabulary;
    component_list list = {0};
    ls_text words = {0};
    char nearest[160] = "";
    char *group = ls_duplicate(path);
    if (group == NULL) return out_of_memory(reading);
    const char *rest = unknown_part(vocabulary, path, group);
    ls_result result;
    if (!list_components(vocabulary, group, &list)) {
        result = out_of_memory(reading);
        goto done;
    }
    /* First among the neighbours; else the whole path against all paths, for a key in the wrong group. */
    const char *near_component = ls_nearest(rest, list.words, list.count, word_at);
    const char *near_path = ls_nearest(path, vocabulary, path_count(vocabulary), vocabulary_path);
    if (near_component != NULL) {
        snprintf(nearest, sizeof nearest, "; did you mean \"%s%s%s\"?", group, group[0] ? "." : "", near_component);
    } else if (near_path != NULL) {
        snprintf(nearest, sizeof nearest, "; did you mean \"%s\"?", near_path);
    }
    add_words(&words, (const char *const *)list.words, list.count);
    result = ls_json_fail(reading->json, node, reading->error, LS_ERROR_INVALID,
                          "%.200s: no such setting; expected one of %.300s%s", place,
                          words.failed ? "others" : words.bytes, nearest);
done:
    free_components(&list);
    ls_text_free(&words);
    ls_free(group);
    return result;
}

ls_result ls_layer_check_path(const ls_reading *reading, const char *path, const char *place, const cJSON *node)
{
    if (strcmp(path, "policy") == 0 || below(path, "policy") != NULL || names_store(path)) return LS_OK;
    if (find_option(reading->vocabulary, path) != NULL) return LS_OK;
    if (path[0] != '\0' && is_group(reading->vocabulary, path)) return LS_OK;
    return unknown_key(reading, path, place, node);
}

static ls_result push(const ls_reading *reading, ls_layer *layer, const char *path, const char *place,
                      const cJSON *value)
{
    for (uint32_t i = 0; i < layer->count; i++) {
        if (strcmp(layer->items[i].path, path) != 0) continue;
        return ls_json_fail(reading->json, value, reading->error, LS_ERROR_INVALID,
                            "%.200s: \"%s\" is set twice here (also at %.200s); keep one", place, path,
                            layer->items[i].place);
    }
    if (layer->count == ASSIGNMENTS_MAX) {
        return ls_json_fail(reading->json, value, reading->error, LS_ERROR_LIMIT, "%.200s: too many settings", place);
    }
    if (layer->count == layer->capacity) {
        uint32_t capacity = layer->capacity > 0 ? 2 * layer->capacity : 8;
        ls_assignment *items = ls_reallocate(layer->items, capacity * sizeof *items);
        if (items == NULL) return out_of_memory(reading);
        layer->items = items;
        layer->capacity = capacity;
    }
    ls_assignment *item = &layer->items[layer->count++];
    *item = (ls_assignment){.path = ls_duplicate(path), .place = ls_duplicate(place), .value = value};
    item->names = strcmp(path, "policy") == 0 || names_store(path);
    return item->path != NULL && item->place != NULL ? LS_OK : out_of_memory(reading);
}

static ls_result add_members(const ls_reading *reading, ls_layer *layer, const char *path, const char *place,
                             const cJSON *object)
{
    ls_result result = LS_OK;
    for (const cJSON *member = object->child; member != NULL && result == LS_OK; member = member->next) {
        char *member_path = join(path, member->string);
        char *member_place = join(place, member->string);
        result = member_path != NULL && member_place != NULL
                     ? ls_layer_add(reading, layer, member_path, member_place, member)
                     : out_of_memory(reading);
        ls_free(member_path);
        ls_free(member_place);
    }
    return result;
}

static ls_result expected_object(const ls_reading *reading, const char *path, const char *place, const cJSON *value)
{
    component_list list = {0};
    ls_text words = {0};
    if (list_components(reading->vocabulary, path, &list)) {
        add_words(&words, (const char *const *)list.words, list.count);
    }
    ls_result result = ls_json_fail(
        reading->json, value, reading->error, LS_ERROR_INVALID, "%.200s: expected an object with keys among %.400s",
        place[0] != '\0' ? place : "settings", words.bytes != NULL ? words.bytes : "those of the options");
    free_components(&list);
    ls_text_free(&words);
    return result;
}

static ls_result add_policy(const ls_reading *reading, ls_layer *layer, const char *place, const cJSON *value)
{
    if (cJSON_IsString(value)) return push(reading, layer, "policy", place, value);
    if (cJSON_IsObject(value)) return add_members(reading, layer, "policy", place, value);
    return ls_json_fail(
        reading->json, value, reading->error, LS_ERROR_INVALID,
        "%.200s: expected a policy's name or {\"name\": \"...\", parameters}; `lakestream policies` lists them", place);
}

ls_result ls_layer_add(const ls_reading *reading, ls_layer *layer, const char *path, const char *place,
                       const cJSON *value)
{
    if (strcmp(path, "policy") == 0) return add_policy(reading, layer, place, value);
    if (strcmp(path, "policy.name") == 0) {
        if (!cJSON_IsString(value)) {
            return ls_json_fail(reading->json, value, reading->error, LS_ERROR_INVALID,
                                "%.200s: expected a policy's name", place);
        }
        return push(reading, layer, "policy", place, value);
    }
    if (below(path, "policy") != NULL) return push(reading, layer, path, place, value);
    if (strcmp(path, "store") == 0 && cJSON_IsString(value)) {
        return push(reading, layer, ls_model_is_file(value->valuestring) ? "store.model" : "store.preset", place, value);
    }
    if (names_store(path) || find_option(reading->vocabulary, path) != NULL) {
        return push(reading, layer, path, place, value);
    }
    if (!is_group(reading->vocabulary, path)) return unknown_key(reading, path, place, value);
    if (!cJSON_IsObject(value)) return expected_object(reading, path, place, value);
    return add_members(reading, layer, path, place, value);
}

void ls_layer_free(ls_layer *layer)
{
    for (uint32_t i = 0; i < layer->count; i++) {
        ls_free(layer->items[i].path);
        ls_free(layer->items[i].place);
    }
    ls_free(layer->items);
    *layer = (ls_layer){0};
}

static const char *preset_name(const void *presets, uint32_t index)
{
    return ((const ls_store_preset *)presets)[index].name;
}

static const ls_store_preset *find_preset(const ls_vocabulary *vocabulary, const char *name)
{
    for (uint32_t i = 0; i < vocabulary->preset_count; i++) {
        if (strcmp(vocabulary->presets[i].name, name) == 0) return &vocabulary->presets[i];
    }
    return NULL;
}

static void lay_preset(const ls_store_preset *preset, ls_scenario *scenario)
{
    scenario->store = preset->config;
    memset(scenario->store_preset, 0, sizeof scenario->store_preset);
    strncpy(scenario->store_preset, preset->name, sizeof scenario->store_preset - 1);
}

static ls_result apply_preset(const ls_reading *reading, const ls_assignment *item, ls_scenario *scenario)
{
    const ls_vocabulary *vocabulary = reading->vocabulary;
    const char *name = cJSON_IsString(item->value) ? item->value->valuestring : NULL;
    if (name != NULL && name[0] == '\0') { /* the resolved form of a store that no preset names */
        memset(scenario->store_preset, 0, sizeof scenario->store_preset);
        return LS_OK;
    }
    const ls_store_preset *preset = name != NULL ? find_preset(vocabulary, name) : NULL;
    if (preset != NULL) {
        lay_preset(preset, scenario);
        return LS_OK;
    }
    const char *nearest =
        name != NULL ? ls_nearest(name, vocabulary->presets, vocabulary->preset_count, preset_name) : NULL;
    return ls_json_fail(reading->json, item->value, reading->error, LS_ERROR_INVALID,
                        "%.200s: no store preset \"%.100s\"; `lakestream presets` lists them%s%s%s", item->place,
                        name != NULL ? name : "(not a string)", nearest != NULL ? "; did you mean \"" : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static char *join_path(const char *folder, const char *name)
{
    ls_text text = {0};
    ls_text_format(&text, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/", name);
    return ls_text_take(&text);
}

/* A model file lies where the spec says, seen from the spec. */
static ls_result apply_model(const ls_reading *reading, const ls_assignment *item, ls_scenario *scenario)
{
    if (!cJSON_IsString(item->value)) {
        return ls_json_fail(reading->json, item->value, reading->error, LS_ERROR_INVALID,
                            "%.200s: expected the path of a model file, as `lakestream calibrate` writes them", item->place);
    }
    const char *name = item->value->valuestring;
    char *folder = ls_folder_of(reading->json->name);
    bool stays = name[0] == '/' || folder == NULL || strcmp(folder, ".") == 0;
    char *path = stays ? ls_duplicate(name) : join_path(folder, name);
    ls_result result = folder != NULL && path != NULL ? LS_OK : out_of_memory(reading);
    ls_error inner = {""};
    if (result == LS_OK) result = ls_model_read(path, reading->vocabulary, scenario, &inner);
    if (result != LS_OK && inner.text[0] != '\0') {
        ls_json_fail(reading->json, item->value, reading->error, result, "%.200s: %.600s", item->place, inner.text);
    }
    ls_free(folder);
    ls_free(path);
    return result;
}

static ls_result apply_policy_name(const ls_reading *reading, const ls_assignment *item, ls_scenario *scenario)
{
    const char *name = item->value->valuestring;
    ls_error inner = {""};
    ls_result result = ls_policy_instantiate(name, &scenario->policy, &inner);
    if (result == LS_OK && strlen(name) >= sizeof scenario->policy_name) {
        result = ls_fail(&inner, LS_ERROR_INVALID, "the name is too long");
    }
    if (result != LS_OK) {
        return ls_json_fail(reading->json, item->value, reading->error, result,
                            "%.200s: %.500s (`lakestream policies` lists them)", item->place, inner.text);
    }
    memset(scenario->policy_name, 0, sizeof scenario->policy_name);
    strncpy(scenario->policy_name, name, sizeof scenario->policy_name - 1);
    return LS_OK;
}

static ls_result apply_policy_parameter(const ls_reading *reading, const ls_assignment *item, const char *parameter,
                                        ls_scenario *scenario)
{
    if (scenario->policy.policy == NULL) {
        return ls_json_fail(reading->json, item->value, reading->error, LS_ERROR_INVALID,
                            "%.200s: a parameter, but no policy is named; write {\"name\": \"...\", \"%s\": ...}",
                            item->place, parameter);
    }
    if (!cJSON_IsNumber(item->value)) {
        return ls_json_fail(reading->json, item->value, reading->error, LS_ERROR_INVALID,
                            "%.200s: expected a number; policy parameters are numbers", item->place);
    }
    ls_error inner = {""};
    ls_result result = ls_policy_set(&scenario->policy, parameter, item->value->valuedouble, &inner);
    if (result == LS_OK) return LS_OK;
    return ls_json_fail(reading->json, item->value, reading->error, result, "%.200s: %.600s", item->place, inner.text);
}

static ls_result apply(const ls_reading *reading, const ls_assignment *item, ls_scenario *scenario)
{
    if (names_store(item->path)) return LS_OK; /* laid down before everything else */
    if (strcmp(item->path, "policy") == 0) return apply_policy_name(reading, item, scenario);
    const char *parameter = below(item->path, "policy");
    if (parameter != NULL) return apply_policy_parameter(reading, item, parameter, scenario);
    return ls_setting_assign(find_option(reading->vocabulary, item->path), scenario, reading->json, item->value,
                             item->place, reading->error);
}

static ls_result apply_presets(const ls_reading *reading, const ls_layer *const *layers, uint32_t layer_count,
                               ls_scenario *scenario)
{
    const ls_store_preset *preset = find_preset(reading->vocabulary, scenario->store_preset);
    if (preset != NULL) lay_preset(preset, scenario);
    for (uint32_t l = 0; l < layer_count; l++) {
        for (uint32_t i = 0; i < layers[l]->count; i++) {
            const ls_assignment *item = &layers[l]->items[i];
            if (!names_store(item->path)) continue;
            ls_result result = strcmp(item->path, "store.model") == 0 ? apply_model(reading, item, scenario)
                                                                     : apply_preset(reading, item, scenario);
            if (result != LS_OK) return result;
        }
    }
    return LS_OK;
}

ls_result ls_layers_resolve(const ls_reading *reading, const ls_layer *const *layers, uint32_t layer_count,
                            ls_scenario *scenario)
{
    /* Padding is cleared too: equal scenarios are equal bytes. */
    memset(scenario, 0, sizeof *scenario);
    ls_options_default(reading->vocabulary->options, reading->vocabulary->option_count, scenario);
    ls_result result = apply_presets(reading, layers, layer_count, scenario);
    for (uint32_t pass = 0; pass < 2 * layer_count && result == LS_OK; pass++) {
        const ls_layer *layer = layers[pass / 2];
        bool names = pass % 2 == 0;
        for (uint32_t i = 0; i < layer->count && result == LS_OK; i++) {
            if (layer->items[i].names == names) result = apply(reading, &layer->items[i], scenario);
        }
    }
    return result;
}

static void add_value(ls_text *text, const cJSON *value)
{
    if (cJSON_IsString(value)) {
        ls_text_add(text, value->valuestring);
    } else if (cJSON_IsNumber(value)) {
        ls_text_number(text, value->valuedouble);
    } else {
        char *printed = cJSON_PrintUnformatted(value);
        if (printed == NULL) text->failed = true;
        if (printed != NULL) ls_text_add(text, printed);
        cJSON_free(printed);
    }
}

static void add_label_part(ls_text *text, const ls_assignment *item, const char *key)
{
    const char *rest = below(item->path, key);
    if (text->length > 0) ls_text_add(text, " ");
    if (!item->names && rest != NULL) ls_text_format(text, "%s=", rest);
    add_value(text, item->value);
}

char *ls_layer_label(const ls_layer *layer, const char *key, bool *found)
{
    ls_text text = {0};
    *found = false;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < layer->count; i++) {
            const ls_assignment *item = &layer->items[i];
            if (item->names != (pass == 0)) continue;
            if (strcmp(item->path, key) != 0 && below(item->path, key) == NULL) continue;
            *found = true;
            add_label_part(&text, item, key);
        }
    }
    if (*found) return ls_text_take(&text);
    ls_text_free(&text);
    return NULL;
}

static void add_policy_parameter(ls_text *text, const ls_policy_instance *instance, const char *parameter)
{
    if (instance->policy == NULL) return;
    for (uint32_t i = 0; i < instance->policy->parameter_count; i++) {
        if (strcmp(instance->policy->parameters[i].name, parameter) == 0) ls_text_number(text, instance->values[i]);
    }
}

char *ls_scenario_label(const ls_vocabulary *vocabulary, const ls_scenario *scenario, const char *key)
{
    ls_text text = {0};
    const ls_option *option = find_option(vocabulary, key);
    if (strcmp(key, "policy") == 0) {
        ls_text_add(&text, scenario->policy_name);
    } else if (below(key, "policy") != NULL) {
        add_policy_parameter(&text, &scenario->policy, below(key, "policy"));
    } else if (strcmp(key, "store") == 0 || strcmp(key, "store.preset") == 0) {
        ls_text_add(&text, scenario->store_preset);
    } else if (option != NULL) {
        ls_setting_bare(&text, option, scenario);
    } else {
        ls_text_add(&text, "base");
    }
    return ls_text_take(&text);
}

static int by_text(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* The policy as JSON: its name as the spec gave it, and every parameter, sorted. */
static char *policy_json(const ls_scenario *scenario)
{
    const ls_policy_instance *instance = &scenario->policy;
    const char *names[LS_POLICY_PARAMETERS_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < instance->policy->parameter_count; i++)
        names[count++] = instance->policy->parameters[i].name;
    names[count++] = "name";
    qsort(names, count, sizeof names[0], by_text);
    ls_text text = {0};
    for (uint32_t i = 0; i < count; i++) {
        ls_text_format(&text, "%s\"%s\":", i > 0 ? "," : "{", names[i]);
        if (strcmp(names[i], "name") == 0) {
            ls_text_json(&text, scenario->policy_name);
        } else {
            add_policy_parameter(&text, instance, names[i]);
        }
    }
    ls_text_add(&text, "}");
    return ls_text_take(&text);
}

/* One "path":value per line of work; sorted as whole strings, which sorts by path: a quote sorts before any path
 * character. */
static char *member_json(const ls_vocabulary *vocabulary, uint32_t index, const ls_scenario *scenario)
{
    const char *path = path_at(vocabulary, index);
    ls_text text = {0};
    ls_text_format(&text, "\"%s\":", path);
    if (index < vocabulary->option_count) {
        ls_setting_json(&text, &vocabulary->options[index], scenario);
    } else if (strcmp(path, "policy") == 0) {
        char *policy = policy_json(scenario);
        if (policy == NULL) text.failed = true;
        if (policy != NULL) ls_text_add(&text, policy);
        ls_free(policy);
    } else {
        ls_text_json(&text, scenario->store_preset);
    }
    return ls_text_take(&text);
}

char *ls_scenario_canonical(const ls_vocabulary *vocabulary, const ls_scenario *scenario)
{
    uint32_t count = 0, paths = path_count(vocabulary);
    bool preset_in_table = find_option(vocabulary, "store.preset") != NULL;
    char *whole = NULL;
    char **members = ls_allocate_array(paths, sizeof(char *));
    if (members == NULL) return NULL;
    for (uint32_t i = 0; i < paths; i++) {
        if (i == paths - 1 && preset_in_table) continue;
        if (i == paths - 2 && scenario->policy.policy == NULL) continue;
        members[count] = member_json(vocabulary, i, scenario);
        if (members[count++] == NULL) goto done;
    }
    qsort(members, count, sizeof members[0], by_text);
    ls_text text = {0};
    for (uint32_t i = 0; i < count; i++) ls_text_format(&text, "%s%s", i > 0 ? "," : "{", members[i]);
    ls_text_add(&text, "}");
    whole = ls_text_take(&text);
done:
    for (uint32_t i = 0; i < count; i++) ls_free(members[i]);
    ls_free(members);
    return whole;
}
