/* model_file.c - reading and writing of model files (model_file.h). The option table alone decides which keys there are. */
#include "experiments/model_file.h"

#include "experiments/folder.h"
#include "experiments/layer.h"
#include "experiments/setting.h"
#include "experiments/text.h"
#include "experiments/version.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STORE      "store."
#define STORE_SIZE (sizeof STORE - 1)

bool ls_model_is_file(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static bool is_store_option(const ls_option *option)
{
    return strncmp(option->path, STORE, STORE_SIZE) == 0 && strcmp(option->path, "store.preset") != 0;
}

/* --- reading ---------------------------------------------------------------------------------------------------------------- */

static const ls_option *find_option(const ls_vocabulary *vocabulary, const char *path)
{
    for (uint32_t i = 0; i < vocabulary->option_count; i++) {
        if (strcmp(vocabulary->options[i].path, path) == 0) return &vocabulary->options[i];
    }
    return NULL;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* A table's name becomes a path from the working directory. */
static ls_result place_file(const ls_reading *reading, const char *model_path, const cJSON *value, char *field)
{
    if (field[0] == '\0' || field[0] == '/') return LS_OK;
    char name[LS_OPTION_TEXT_BYTES];
    char *folder = ls_folder_of(model_path);
    if (folder == NULL) return ls_fail(reading->error, LS_ERROR_MEMORY, "out of memory");
    memcpy(name, field, sizeof name);
    memset(field, 0, LS_OPTION_TEXT_BYTES);
    int length = strcmp(folder, ".") == 0 ? snprintf(field, LS_OPTION_TEXT_BYTES, "%s", name)
                                          : snprintf(field, LS_OPTION_TEXT_BYTES, "%s/%s", folder, name);
    ls_free(folder);
    if (length < (int)LS_OPTION_TEXT_BYTES) return LS_OK;
    return ls_json_fail(reading->json, value, reading->error, LS_ERROR_INVALID, "the path to this file is longer than %u bytes",
                        LS_OPTION_TEXT_BYTES - 1);
}

static ls_result assign(const ls_reading *reading, const ls_assignment *item, const char *model_path, ls_scenario *scenario)
{
    const ls_option *option = find_option(reading->vocabulary, item->path);
    if (option == NULL || !is_store_option(option)) {
        return ls_json_fail(reading->json, item->value, reading->error, LS_ERROR_INVALID,
                            "%.200s: a model holds the store's own numbers, no preset and no other model", item->place);
    }
    ls_result result = ls_setting_assign(option, scenario, reading->json, item->value, item->place, reading->error);
    if (result != LS_OK || option->type != LS_OPTION_TEXT || !ends_with(option->path, ".file")) return result;
    return place_file(reading, model_path, item->value, (char *)scenario + option->offset);
}

static ls_result check_format(const ls_reading *reading)
{
    static const char *const keys[] = {"format", "provenance", "store", "fit", "measured"};
    const cJSON *root = reading->json->root, *format = cJSON_GetObjectItemCaseSensitive(root, "format");
    if (!cJSON_IsObject(root) || !cJSON_IsNumber(format)) {
        return ls_json_fail(reading->json, root, reading->error, LS_ERROR_INVALID,
                            "not a model file: expected {\"format\": %d, \"store\": {...}}; `lakestream calibrate` writes one",
                            LS_MODEL_FORMAT);
    }
    if (format->valuedouble != LS_MODEL_FORMAT) {
        return ls_json_fail(reading->json, format, reading->error, LS_ERROR_VERSION,
                            "format %g; this program knows format %d: calibrate again, or use the program that wrote it",
                            format->valuedouble, LS_MODEL_FORMAT);
    }
    ls_result result = ls_check_members(reading, root, "", keys, sizeof keys / sizeof keys[0]);
    if (result != LS_OK || cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, "store"))) return result;
    return ls_json_fail(reading->json, root, reading->error, LS_ERROR_INVALID, "\"store\" is missing: the model's numbers");
}

static ls_result lay_down(const ls_reading *reading, const char *path, ls_scenario *scenario)
{
    ls_layer layer = {0};
    ls_result result = check_format(reading);
    if (result == LS_OK) {
        result = ls_layer_add(reading, &layer, "store", "store", cJSON_GetObjectItemCaseSensitive(reading->json->root, "store"));
    }
    for (uint32_t i = 0; i < reading->vocabulary->option_count && result == LS_OK; i++) {
        if (is_store_option(&reading->vocabulary->options[i])) ls_options_default(&reading->vocabulary->options[i], 1, scenario);
    }
    for (uint32_t i = 0; i < layer.count && result == LS_OK; i++) result = assign(reading, &layer.items[i], path, scenario);
    if (result == LS_OK) memset(scenario->store_preset, 0, sizeof scenario->store_preset);
    ls_layer_free(&layer);
    return result;
}

ls_result ls_model_read(const char *path, const ls_vocabulary *vocabulary, ls_scenario *scenario, ls_error *error)
{
    ls_json json = {0};
    ls_reading reading = {&json, vocabulary, error};
    ls_result result = ls_json_read(path, &json, error);
    if (result == LS_OK) result = lay_down(&reading, path, scenario);
    ls_json_free(&json);
    return result;
}

/* --- writing ---------------------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The rest of an option's path below store, split at its dot: "get" and "law", or "" and "parallelism". */
static void split(const char *path, char group[64], const char **name)
{
    const char *rest = path + STORE_SIZE, *dot = strchr(rest, '.');
    group[0] = '\0';
    *name = rest;
    if (dot == NULL) return;
    snprintf(group, 64, "%.*s", (int)(dot - rest), rest);
    *name = dot + 1;
}

static void add_option(ls_text *text, const ls_option *option, const ls_scenario *scenario, const char *name)
{
    ls_text_format(text, "\"%s\": ", name);
    if (ends_with(option->path, ".file")) ls_text_json(text, last_part((const char *)scenario + option->offset));
    else ls_setting_json(text, option, scenario);
}

/* One line a law, one a plain number. */
static void add_store(ls_text *text, const ls_store_config *config)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario scenario;
    memset(&scenario, 0, sizeof scenario);
    scenario.store = *config;
    char open[64] = "";
    ls_text_add(text, "  \"store\": {");
    bool first = true;
    for (uint32_t i = 0; i < vocabulary.option_count; i++) {
        const ls_option *option = &vocabulary.options[i];
        if (!is_store_option(option)) continue;
        char group[64];
        const char *name;
        split(option->path, group, &name);
        bool same = strcmp(group, open) == 0 && group[0] != '\0';
        if (!same && open[0] != '\0') ls_text_add(text, "}");
        if (same) ls_text_add(text, ", ");
        else ls_text_format(text, "%s\n    ", first ? "" : ",");
        if (!same && group[0] != '\0') ls_text_format(text, "\"%s\": {", group);
        snprintf(open, sizeof open, "%s", group);
        add_option(text, option, &scenario, name);
        first = false;
    }
    ls_text_add(text, open[0] != '\0' ? "}\n  }" : "\n  }");
}

static void add_member(ls_text *text, const char *name, double value)
{
    ls_text_format(text, ", \"%s\": ", name);
    ls_text_number(text, value);
}

static void add_fits(ls_text *text, const ls_calibration *c)
{
    ls_text_add(text, "  \"fit\": {\n");
    for (int i = 0; i < LS_CALIBRATED_LAWS; i++) {
        const ls_fit *fit = &c->fits[i];
        ls_text_format(text, "    \"%s\": {\"values\": %" PRIu32, ls_calibrated_law_name((ls_calibrated_law)i), fit->count);
        add_member(text, "ks", fit->distance);
        add_member(text, "ks_lognormal", fit->lognormal_distance);
        add_member(text, "ks_gamma", fit->gamma_distance);
        add_member(text, "ks_empirical", fit->empirical_distance);
        ls_text_add(text, "},\n");
    }
    ls_text_add(text, "    \"load_rms_log\": ");
    ls_text_number(text, c->load_error);
    add_member(text, "effect_rms", c->effect_error);
    ls_text_add(text, "\n  }");
}

static void add_side(ls_text *text, const char *side, const ls_measurement *m)
{
    ls_text_format(text, ", \"%s\": {\"requests_per_s\": ", side);
    ls_text_number(text, ls_measurement_rate_per_s(m));
    add_member(text, "p50_s", ls_sample_quantile(&m->latency_s, 0.5));
    add_member(text, "p90_s", ls_sample_quantile(&m->latency_s, 0.9));
    add_member(text, "p99_s", ls_sample_quantile(&m->latency_s, 0.99));
    if (m->wins + m->losses > 0 && m->elapsed_s > 0) {
        add_member(text, "wins_per_s", (double)m->wins / m->elapsed_s);
        add_member(text, "conflict_share", ls_measurement_conflict_share(m));
    }
    ls_text_add(text, "}");
}

static void add_cells(ls_text *text, const ls_calibration *c)
{
    ls_text_add(text, "  \"measured\": [");
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const ls_measurement *m = &c->cells[i].measured;
        ls_text_format(text, "%s\n    {\"request\": \"%s\", \"bytes\": %" PRIu64 ", \"clients\": %" PRIu32 ", \"values\": %" PRIu64,
                       i > 0 ? "," : "", ls_request_kind_name(m->task.kind), m->task.bytes, m->task.clients, m->completed);
        add_side(text, "real", m);
        if (c->cells[i].modelled.completed > 0) add_side(text, "model", &c->cells[i].modelled);
        ls_text_add(text, "}");
    }
    ls_text_add(text, "\n  ]");
}

ls_result ls_model_write(const char *path, const ls_calibration *calibration, const ls_provenance *provenance, ls_error *error)
{
    ls_text text = {0}, kind = {0};
    ls_text_bytes(&kind, provenance->backend, strcspn(provenance->backend, ":"));
    ls_text_format(&text, "{\n  \"format\": %d,\n  \"provenance\": {\"backend\": ", LS_MODEL_FORMAT);
    ls_text_json(&text, kind.bytes != NULL ? kind.bytes : "");
    ls_text_add(&text, ", \"date\": ");
    ls_text_json(&text, provenance->date);
    ls_text_format(&text, ", \"host_processors\": %" PRIu32 ", \"version\": \"%s\", \"seconds\": ", provenance->host_processors, LS_VERSION);
    ls_text_number(&text, provenance->seconds);
    ls_text_add(&text, "},\n");
    add_store(&text, &calibration->config);
    ls_text_add(&text, ",\n");
    add_fits(&text, calibration);
    ls_text_add(&text, ",\n");
    add_cells(&text, calibration);
    ls_text_add(&text, "\n}\n");
    ls_result result = text.failed || kind.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory")
                                                  : ls_file_write(path, text.bytes, text.length, error);
    ls_text_free(&text);
    ls_text_free(&kind);
    return result;
}
