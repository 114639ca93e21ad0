/* presentation.c - see presentation.h. */
#include "experiments/presentation.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    const ls_json *json;
    ls_error *error;
} reader;

#define REFUSE(r, node, ...) ls_json_fail((r)->json, node, (r)->error, LS_ERROR_INVALID, __VA_ARGS__)

static ls_result out_of_memory(const reader *r)
{
    return ls_fail(r->error, LS_ERROR_MEMORY, "%s: out of memory", r->json->name);
}

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static ls_result read_text(const reader *r, const cJSON *node, const char *place, char **copy)
{
    if (node == NULL) return LS_OK;
    if (!cJSON_IsString(node) || node->valuestring[0] == '\0') {
        return REFUSE(r, node, "%s: expected a sentence in quotes", place);
    }
    *copy = ls_duplicate(node->valuestring);
    return *copy != NULL ? LS_OK : out_of_memory(r);
}

static ls_result read_texts(const reader *r, const cJSON *node, const char *place, char ***list, uint32_t *count)
{
    if (node == NULL) return LS_OK;
    if (!cJSON_IsArray(node)) return REFUSE(r, node, "%s: expected a list of strings", place);
    *list = ls_allocate_array((size_t)cJSON_GetArraySize(node) + 1, sizeof(char *));
    if (*list == NULL) return out_of_memory(r);
    for (const cJSON *item = node->child; item != NULL; item = item->next) {
        char *copy = NULL;
        ls_result result = read_text(r, item, place, &copy);
        if (result != LS_OK) return result;
        (*list)[(*count)++] = copy;
    }
    return LS_OK;
}

static ls_result read_column(const reader *r, const cJSON *node, const char *place, bool scaled,
                             ls_published_column *column)
{
    const cJSON *name = node, *factor = NULL;
    if (scaled && cJSON_IsObject(node)) {
        name = member(node, "metric");
        factor = member(node, "factor");
        if (name == NULL || cJSON_GetArraySize(node) != (factor != NULL ? 2 : 1)) {
            return REFUSE(r, node, "%s: expected a metric, or {\"metric\": ..., \"factor\": ...}", place);
        }
    }
    column->factor = 1.0;
    if (factor != NULL && (!cJSON_IsNumber(factor) || !(fabs(factor->valuedouble) > 0.0))) {
        return REFUSE(r, factor, "%s: factor: expected a number other than 0", place);
    }
    if (factor != NULL) column->factor = factor->valuedouble;
    if (!cJSON_IsString(name)) return REFUSE(r, name, "%s.%.100s: expected a name in quotes", place, node->string);
    column->column = ls_duplicate(node->string);
    column->name = ls_duplicate(name->valuestring);
    return column->column != NULL && column->name != NULL ? LS_OK : out_of_memory(r);
}

static ls_result read_columns(const reader *r, const cJSON *node, const char *place, bool scaled,
                              ls_published_column **columns, uint32_t *count)
{
    if (node == NULL) return LS_OK;
    if (!cJSON_IsObject(node)) return REFUSE(r, node, "%s: expected an object, {column: name}", place);
    *columns = ls_allocate_array((size_t)cJSON_GetArraySize(node) + 1, sizeof **columns);
    if (*columns == NULL) return out_of_memory(r);
    ls_result result = LS_OK;
    for (const cJSON *item = node->child; item != NULL && result == LS_OK; item = item->next) {
        result = read_column(r, item, place, scaled, &(*columns)[(*count)++]);
    }
    return result;
}

static ls_result read_published(const reader *r, const cJSON *node, ls_published_table *table)
{
    static const char *const keys[] = {"file", "keys", "where", "metrics"};
    if (!cJSON_IsObject(node)) return REFUSE(r, node, "published: expected objects with file, keys, metrics");
    for (const cJSON *item = node->child; item != NULL; item = item->next) {
        bool known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) known = known || strcmp(keys[i], item->string) == 0;
        if (!known) {
            return REFUSE(r, item, "published: no key \"%.100s\"; there are file, keys, where, metrics", item->string);
        }
    }
    const cJSON *file = member(node, "file");
    if (file == NULL || member(node, "metrics") == NULL) return REFUSE(r, node, "published: needs file and metrics");
    ls_result result = read_text(r, file, "published.file", &table->file);
    /* The folder is the reader's to choose; a spec may not walk out of it. */
    if (result == LS_OK && (strchr(table->file, '/') != NULL || strcmp(table->file, "..") == 0)) {
        return REFUSE(r, file, "published.file: expected a file name without folders");
    }
    if (result == LS_OK) {
        result = read_columns(r, member(node, "keys"), "published.keys", false, &table->keys, &table->key_count);
    }
    if (result == LS_OK) {
        result = read_columns(r, member(node, "where"), "published.where", false, &table->where, &table->where_count);
    }
    if (result == LS_OK) {
        result =
            read_columns(r, member(node, "metrics"), "published.metrics", true, &table->metrics, &table->metric_count);
    }
    return result;
}

static ls_result read_published_list(const reader *r, const cJSON *node, ls_presentation *p)
{
    if (node == NULL) return LS_OK;
    if (!cJSON_IsArray(node)) return REFUSE(r, node, "published: expected a list of tables, [{\"file\": ...}]");
    p->published = ls_allocate_array((size_t)cJSON_GetArraySize(node) + 1, sizeof *p->published);
    if (p->published == NULL) return out_of_memory(r);
    ls_result result = LS_OK;
    for (const cJSON *item = node->child; item != NULL && result == LS_OK; item = item->next) {
        result = read_published(r, item, &p->published[p->published_count++]);
    }
    return result;
}

ls_result ls_presentation_read(const ls_json *json, ls_presentation *p, ls_error *error)
{
    const reader r = {json, error};
    const cJSON *root = json->root;
    ls_result result = read_text(&r, member(root, "question"), "question", &p->question);
    if (result == LS_OK) result = read_text(&r, member(root, "answer"), "answer", &p->answer);
    if (result == LS_OK) {
        result = read_texts(&r, member(root, "assumptions"), "assumptions", &p->assumptions, &p->assumption_count);
    }
    if (result == LS_OK) result = read_texts(&r, member(root, "table"), "table", &p->table, &p->table_count);
    return result == LS_OK ? read_published_list(&r, member(root, "published"), p) : result;
}

ls_result ls_presentation_parse(const char *name, const char *text, ls_presentation *p, ls_error *error)
{
    ls_json json = {0};
    ls_result result = ls_json_parse(name, text, strlen(text), &json, error);
    if (result == LS_OK) result = ls_presentation_read(&json, p, error);
    ls_json_free(&json);
    return result;
}

static void free_texts(char **list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) ls_free(list[i]);
    ls_free(list);
}

static void free_columns(ls_published_column *columns, uint32_t count)
{
    for (uint32_t i = 0; columns != NULL && i < count; i++) {
        ls_free(columns[i].column);
        ls_free(columns[i].name);
    }
    ls_free(columns);
}

void ls_presentation_free(ls_presentation *p)
{
    ls_free(p->question);
    ls_free(p->answer);
    free_texts(p->assumptions, p->assumption_count);
    free_texts(p->table, p->table_count);
    for (uint32_t i = 0; p->published != NULL && i < p->published_count; i++) {
        ls_free(p->published[i].file);
        free_columns(p->published[i].keys, p->published[i].key_count);
        free_columns(p->published[i].where, p->published[i].where_count);
        free_columns(p->published[i].metrics, p->published[i].metric_count);
    }
    ls_free(p->published);
    *p = (ls_presentation){0};
}
