/* export.c - the tidy table of export.h. Rows stream from the database to the file: what is held is one line, and the
 * parsed labels of the point it belongs to. */
#include "experiments/export.h"

#include "experiments/name_list.h"
#include "experiments/text.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct export {
    FILE *file;
    ls_export_format format;
    ls_error *error;
    ls_name_list keys; /* columns of swept keys */
    char *swept;       /* the texts that were parsed last: NULL at first */
    char *labels;
    cJSON *swept_list;
    cJSON *label_list;
    ls_text line;
    uint64_t rows;
} export;

static void add_csv(ls_text *line, const char *field)
{
    if (strpbrk(field, ",\"\r\n") == NULL) {
        ls_text_add(line, field);
        return;
    }
    ls_text_add(line, "\"");
    for (const char *c = field; *c != '\0'; c++) ls_text_bytes(line, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    ls_text_add(line, "\"");
}

static const char *unit_of(const char *metric)
{
    uint32_t count;
    const ls_metric *metrics = ls_metrics(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(metrics[i].name, metric) == 0) return metrics[i].unit;
    }
    return "";
}

/* Takes the lists of an observation apart, if they are not those of the row before. */
static ls_result take_lists(export *x, const ls_observation *o)
{
    if (x->swept != NULL && strcmp(x->swept, o->swept) == 0 && strcmp(x->labels, o->labels) == 0) return LS_OK;
    ls_free(x->swept);
    ls_free(x->labels);
    cJSON_Delete(x->swept_list);
    cJSON_Delete(x->label_list);
    x->swept = ls_duplicate(o->swept);
    x->labels = ls_duplicate(o->labels);
    x->swept_list = cJSON_Parse(o->swept);
    x->label_list = cJSON_Parse(o->labels);
    if (x->swept == NULL || x->labels == NULL) return ls_fail(x->error, LS_ERROR_MEMORY, "out of memory");
    if (cJSON_IsArray(x->swept_list) && cJSON_IsArray(x->label_list) &&
        cJSON_GetArraySize(x->swept_list) == cJSON_GetArraySize(x->label_list)) {
        return LS_OK;
    }
    return ls_fail(x->error, LS_ERROR_CORRUPT,
                   "experiment %.100s: damaged: the labels of a point cannot be read; run the experiment again into another "
                   "file",
                   o->experiment);
}

/* The label of a key at the current point; NULL when its experiment does not sweep it. */
static const char *label_of(const export *x, const char *key)
{
    const cJSON *name = x->swept_list->child, *label = x->label_list->child;
    for (; name != NULL && label != NULL; name = name->next, label = label->next) {
        if (cJSON_IsString(name) && strcmp(name->valuestring, key) == 0) return cJSON_GetStringValue(label);
    }
    return NULL;
}

static void add_header(export *x)
{
    ls_text_add(&x->line, "experiment,seed,quick,point,position,version,backend,replication,metric,value,unit");
    for (uint32_t i = 0; i < x->keys.count; i++) {
        ls_text_add(&x->line, ",");
        add_csv(&x->line, x->keys.names[i]);
    }
    ls_text_add(&x->line, "\n");
}

/* pandas and R both read Inf. */
static void add_value(ls_text *line, double value)
{
    if (isinf(value)) {
        ls_text_add(line, value > 0 ? "Inf" : "-Inf");
    } else {
        ls_text_number(line, value);
    }
}

static void add_csv_row(export *x, const ls_observation *o)
{
    ls_text *line = &x->line;
    add_csv(line, o->experiment);
    ls_text_format(line, ",%" PRIu64 ",%d,%s,%" PRIu64 ",", o->seed, o->quick, o->point, o->position);
    add_csv(line, o->version);
    ls_text_add(line, ",");
    add_csv(line, o->backend);
    ls_text_format(line, ",%" PRIu64 ",", o->replication);
    add_csv(line, o->metric);
    ls_text_add(line, ",");
    add_value(line, o->value);
    ls_text_add(line, ",");
    add_csv(line, unit_of(o->metric));
    for (uint32_t i = 0; i < x->keys.count; i++) {
        const char *label = label_of(x, x->keys.names[i]);
        ls_text_add(line, ",");
        add_csv(line, label != NULL ? label : "");
    }
    ls_text_add(line, "\n");
}

/* A whole number beyond 2^53 is no double: it goes in as its digits. */
static bool add_whole(cJSON *object, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return cJSON_AddRawToObject(object, name, digits) != NULL;
}

static bool add_label(cJSON *parameters, const char *key, const char *label)
{
    char shortest[32];
    cJSON *number = cJSON_Parse(label);
    bool is_number = cJSON_IsNumber(number) && strcmp(ls_number_text(number->valuedouble, shortest), label) == 0;
    cJSON_Delete(number);
    if (is_number) return cJSON_AddRawToObject(parameters, key, label) != NULL;
    return cJSON_AddStringToObject(parameters, key, label) != NULL;
}

static bool fill_object(const export *x, const ls_observation *o, cJSON *object)
{
    char number[32];
    bool good = cJSON_AddStringToObject(object, "experiment", o->experiment) != NULL && add_whole(object, "seed", o->seed) &&
                cJSON_AddBoolToObject(object, "quick", o->quick) != NULL &&
                cJSON_AddStringToObject(object, "point", o->point) != NULL && add_whole(object, "position", o->position) &&
                cJSON_AddStringToObject(object, "version", o->version) != NULL &&
                cJSON_AddStringToObject(object, "backend", o->backend) != NULL &&
                add_whole(object, "replication", o->replication) &&
                cJSON_AddStringToObject(object, "metric", o->metric) != NULL &&
                cJSON_AddRawToObject(object, "value", isfinite(o->value) ? ls_number_text(o->value, number) : "null") != NULL &&
                cJSON_AddStringToObject(object, "unit", unit_of(o->metric)) != NULL;
    cJSON *parameters = cJSON_AddObjectToObject(object, "parameters");
    good = good && parameters != NULL;
    const cJSON *name = x->swept_list->child, *label = x->label_list->child;
    for (; good && name != NULL && label != NULL; name = name->next, label = label->next) {
        if (!cJSON_IsString(name) || !cJSON_IsString(label)) continue;
        good = add_label(parameters, name->valuestring, label->valuestring);
    }
    return good;
}

static ls_result add_json_row(export *x, const ls_observation *o)
{
    cJSON *object = cJSON_CreateObject();
    char *printed = object != NULL && fill_object(x, o, object) ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (printed == NULL) return ls_fail(x->error, LS_ERROR_MEMORY, "out of memory");
    ls_text_add(&x->line, printed);
    ls_text_add(&x->line, "\n");
    cJSON_free(printed);
    return LS_OK;
}

/* Writes the line and empties it, keeping its memory. */
static ls_result put_line(export *x)
{
    if (x->line.failed) return ls_fail(x->error, LS_ERROR_MEMORY, "out of memory");
    if (fwrite(x->line.bytes, 1, x->line.length, x->file) != x->line.length) {
        return ls_fail(x->error, LS_ERROR_IO, "writing the table: %s; it is incomplete", strerror(errno));
    }
    x->line.length = 0;
    return LS_OK;
}

static ls_result put_observation(void *context, const ls_observation *observation)
{
    export *x = context;
    ls_result result = take_lists(x, observation);
    if (result == LS_OK && x->format == LS_EXPORT_CSV) add_csv_row(x, observation);
    if (result == LS_OK && x->format == LS_EXPORT_JSONL) result = add_json_row(x, observation);
    if (result == LS_OK) result = put_line(x);
    if (result == LS_OK) x->rows++;
    return result;
}

ls_result ls_export_check(ls_results *results, const ls_observation_filter *filter, ls_error *error)
{
    ls_name_list wanted = {0}, known = {0};
    ls_result result = ls_results_each_metric_name(results, filter->experiment, ls_name_list_visit, &known, error);
    if (result == LS_OK) result = ls_name_list_split(&wanted, filter->metrics);
    if (result == LS_OK) result = ls_name_list_check(&wanted, &known, "metric", error);
    ls_name_list_free(&wanted);
    ls_name_list_free(&known);
    return result == LS_ERROR_MEMORY ? ls_fail(error, result, "out of memory") : result;
}

ls_result ls_export(ls_results *results, const ls_observation_filter *filter, ls_export_format format, FILE *file,
                    uint64_t *rows, ls_error *error)
{
    export x = {.file = file, .format = format, .error = error};
    ls_result result = LS_OK;
    if (format == LS_EXPORT_CSV) {
        result = ls_results_each_swept_key(results, filter->experiment, ls_name_list_visit, &x.keys, error);
        if (result == LS_ERROR_MEMORY) ls_fail(error, result, "out of memory");
        if (result == LS_OK) {
            add_header(&x);
            result = put_line(&x);
        }
    }
    if (result == LS_OK) result = ls_results_each_observation(results, filter, put_observation, &x, error);
    if (result == LS_OK && fflush(file) != 0) {
        result = ls_fail(error, LS_ERROR_IO, "writing the table: %s; it is incomplete", strerror(errno));
    }
    *rows = x.rows;
    ls_name_list_free(&x.keys);
    ls_free(x.swept);
    ls_free(x.labels);
    cJSON_Delete(x.swept_list);
    cJSON_Delete(x.label_list);
    ls_text_free(&x.line);
    return result;
}
