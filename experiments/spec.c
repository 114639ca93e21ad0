/* spec.c - reading a spec (format and precedence: spec.h).
 *
 * A sweep becomes axes, each a list of alternatives, each a small layer of settings. Point i takes from every axis
 * the alternative that the mixed-radix digits of i name, the last axis fastest; its layers (base, quick's base,
 * alternatives) resolve to one scenario. Two points that resolve to the same scenario are refused: they would be run
 * once and counted twice.
 */
#include "experiments/spec.h"

#include "experiments/answer.h"
#include "experiments/folder.h"
#include "experiments/layer.h"
#include "experiments/sensitivity.h"
#include "experiments/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct alternative {
    ls_layer layer;
    char **labels; /* one a key of the axis; NULL where this alternative does not set the key */
} alternative;

typedef struct axis {
    char **keys;
    uint32_t key_count;
    alternative *alternatives;
    uint32_t count;
} axis;

typedef struct builder {
    ls_reading reading;
    ls_spec *spec;
    ls_layer base;
    ls_layer quick_base;
    axis *axes;
    uint32_t axis_count;
    const cJSON *sweep; /* the sweep in force, for messages */
} builder;

ls_vocabulary ls_vocabulary_default(void)
{
    ls_vocabulary vocabulary = {0};
    vocabulary.options = ls_scenario_options(&vocabulary.option_count);
    vocabulary.presets = ls_store_presets(&vocabulary.preset_count);
    vocabulary.metrics = ls_metrics(&vocabulary.metric_count);
    return vocabulary;
}

static ls_result out_of_memory(const builder *b)
{
    return ls_fail(b->reading.error, LS_ERROR_MEMORY, "%s: out of memory", b->reading.json->name);
}

#define REFUSE(b, node, ...) ls_json_fail((b)->reading.json, node, (b)->reading.error, LS_ERROR_INVALID, __VA_ARGS__)

static void free_axis(axis *freed)
{
    for (uint32_t i = 0; i < freed->count; i++) {
        ls_layer_free(&freed->alternatives[i].layer);
        for (uint32_t k = 0; freed->alternatives[i].labels != NULL && k < freed->key_count; k++) {
            ls_free(freed->alternatives[i].labels[k]);
        }
        ls_free(freed->alternatives[i].labels);
    }
    for (uint32_t k = 0; k < freed->key_count; k++) ls_free(freed->keys[k]);
    ls_free(freed->alternatives);
    ls_free(freed->keys);
}

static axis *new_axis(builder *b)
{
    axis *axes = ls_reallocate(b->axes, (b->axis_count + 1) * sizeof *axes);
    if (axes == NULL) return NULL;
    b->axes = axes;
    axes[b->axis_count] = (axis){0};
    return &axes[b->axis_count++];
}

static ls_result push_key(builder *b, char ***keys, uint32_t *count, const char *key)
{
    char **grown = ls_reallocate(*keys, (*count + 1) * sizeof *grown);
    if (grown == NULL) return out_of_memory(b);
    *keys = grown;
    grown[*count] = ls_duplicate(key);
    return grown[(*count)++] != NULL ? LS_OK : out_of_memory(b);
}

static bool in_list(char *const *keys, uint32_t count, const char *key)
{
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(keys[k], key) == 0) return true;
    }
    return false;
}

static bool has_key(const axis *searched, const char *key) { return in_list(searched->keys, searched->key_count, key); }

static ls_result add_key(builder *b, axis *extended, const char *key, const char *place, const cJSON *node)
{
    for (uint32_t a = 0; a < b->axis_count; a++) {
        if (has_key(&b->axes[a], key)) return REFUSE(b, node, "%.200s: this key is swept twice; keep one", place);
    }
    ls_result result = ls_layer_check_path(&b->reading, key, place, node);
    if (result != LS_OK) return result;
    return push_key(b, &extended->keys, &extended->key_count, key);
}

static ls_result reserve_alternatives(builder *b, axis *extended, uint32_t count)
{
    extended->alternatives = ls_allocate_array(count, sizeof(alternative));
    if (extended->alternatives == NULL) return out_of_memory(b);
    extended->count = count;
    return LS_OK;
}

/* Labels of one alternative, once its layer is complete. */
static ls_result label_alternative(builder *b, const axis *labelled, alternative *one)
{
    one->labels = ls_allocate_array(labelled->key_count, sizeof(char *));
    if (one->labels == NULL) return out_of_memory(b);
    for (uint32_t k = 0; k < labelled->key_count; k++) {
        bool found;
        one->labels[k] = ls_layer_label(&one->layer, labelled->keys[k], &found);
        if (found && one->labels[k] == NULL) return out_of_memory(b);
    }
    return LS_OK;
}

static ls_result check_list(builder *b, const cJSON *list, const char *place)
{
    if (!cJSON_IsArray(list)) return REFUSE(b, list, "%.200s: expected a list of values, [ ... ]", place);
    if (list->child == NULL) return REFUSE(b, list, "%.200s: the list is empty; give at least one value", place);
    return LS_OK;
}

/* Adds to each alternative of the axis the value of `key` in list. */
static ls_result add_values(builder *b, axis *extended, const char *key, const char *place, const cJSON *list)
{
    uint32_t i = 0;
    ls_result result = LS_OK;
    for (const cJSON *value = list->child; value != NULL && result == LS_OK; value = value->next, i++) {
        ls_text value_place = {0};
        ls_text_format(&value_place, "%s[%u]", place, i);
        result = value_place.failed
                     ? out_of_memory(b)
                     : ls_layer_add(&b->reading, &extended->alternatives[i].layer, key, value_place.bytes, value);
        ls_text_free(&value_place);
    }
    return result;
}

/* The single settings below a group of settings that any alternative of the axis makes. */
static ls_result expand_group(builder *b, const axis *expanded, const char *group, char ***keys, uint32_t *count)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < expanded->count; i++) {
        const ls_layer *layer = &expanded->alternatives[i].layer;
        for (uint32_t k = 0; k < layer->count && result == LS_OK; k++) {
            const char *path = layer->items[k].path;
            bool below = strncmp(path, group, strlen(group)) == 0 && path[strlen(group)] == '.';
            if (below && !in_list(*keys, *count, path)) result = push_key(b, keys, count, path);
        }
    }
    return result;
}

/* Columns are single settings: a swept group such as "store.get" becomes one key for each setting that it changes. */
static ls_result expand_keys(builder *b, axis *expanded)
{
    char **keys = NULL;
    uint32_t count = 0;
    ls_result result = LS_OK;
    for (uint32_t k = 0; k < expanded->key_count && result == LS_OK; k++) {
        const char *key = expanded->keys[k];
        result = ls_layer_is_group(b->reading.vocabulary, key) ? expand_group(b, expanded, key, &keys, &count)
                                                               : push_key(b, &keys, &count, key);
    }
    for (uint32_t k = 0; k < expanded->key_count; k++) ls_free(expanded->keys[k]);
    ls_free(expanded->keys);
    expanded->keys = keys;
    expanded->key_count = count;
    return result;
}

static ls_result label_axis(builder *b, axis *labelled)
{
    ls_result result = expand_keys(b, labelled);
    for (uint32_t i = 0; i < labelled->count && result == LS_OK && labelled->key_count > 0; i++) {
        result = label_alternative(b, labelled, &labelled->alternatives[i]);
    }
    return result;
}

/* Reads one swept key and its list into an axis: a new one (cartesian), or the block's (zip). */
static ls_result add_swept(builder *b, bool zip, uint32_t block_axis, const char *key, const char *place,
                           const cJSON *list)
{
    axis *extended = zip ? &b->axes[block_axis] : new_axis(b);
    if (extended == NULL) return out_of_memory(b);
    ls_result result = add_key(b, extended, key, place, list);
    if (result == LS_OK) result = check_list(b, list, place);
    if (result != LS_OK) return result;
    uint32_t count = (uint32_t)cJSON_GetArraySize(list);
    if (count > LS_SPEC_POINTS_MAX) {
        return ls_json_fail(b->reading.json, list, b->reading.error, LS_ERROR_LIMIT, "%.200s: more than %u values",
                            place, LS_SPEC_POINTS_MAX);
    }
    if (extended->alternatives != NULL && count != extended->count) {
        return REFUSE(b, list, "%.200s: %u values, but \"%.100s\" has %u; the lists of a zip have equal length", place,
                      count, extended->keys[0], extended->count);
    }
    if (extended->alternatives == NULL) result = reserve_alternatives(b, extended, count);
    return result == LS_OK ? add_values(b, extended, key, place, list) : result;
}

static char *joined(const char *left, const char *right)
{
    ls_text text = {0};
    ls_text_format(&text, "%s%s%s", left, left[0] != '\0' ? "." : "", right);
    return ls_text_take(&text);
}

/* Walks the (possibly nested) keys of a cartesian or zip block down to their lists. Depth is bounded by the JSON
 * reader. */
static ls_result add_block_members(builder *b, bool zip, uint32_t block_axis, const char *key, const char *place,
                                   const cJSON *object)
{
    ls_result result = LS_OK;
    if (object->child == NULL) return REFUSE(b, object, "%.200s: empty; name at least one key", place);
    for (const cJSON *member = object->child; member != NULL && result == LS_OK; member = member->next) {
        char *member_key = joined(key, member->string);
        char *member_place = joined(place, member->string);
        if (member_key == NULL || member_place == NULL) {
            result = out_of_memory(b);
        } else if (cJSON_IsObject(member)) {
            result = add_block_members(b, zip, block_axis, member_key, member_place, member);
        } else {
            result = add_swept(b, zip, block_axis, member_key, member_place, member);
        }
        ls_free(member_key);
        ls_free(member_place);
    }
    return result;
}

static ls_result add_case(builder *b, axis *extended, uint32_t index, const char *place, const cJSON *one)
{
    if (!cJSON_IsObject(one)) return REFUSE(b, one, "%.200s: expected an object of settings", place);
    ls_result result = LS_OK;
    for (const cJSON *member = one->child; member != NULL && result == LS_OK; member = member->next) {
        if (!has_key(extended, member->string)) result = add_key(b, extended, member->string, place, member);
    }
    return result == LS_OK ? ls_layer_add(&b->reading, &extended->alternatives[index].layer, "", place, one) : result;
}

static ls_result add_cases(builder *b, const char *place, const cJSON *list)
{
    axis *extended = new_axis(b);
    if (extended == NULL) return out_of_memory(b);
    ls_result result = check_list(b, list, place);
    if (result != LS_OK) return result;
    result = reserve_alternatives(b, extended, (uint32_t)cJSON_GetArraySize(list));
    uint32_t i = 0;
    for (const cJSON *one = list->child; one != NULL && result == LS_OK; one = one->next, i++) {
        char case_place[96];
        snprintf(case_place, sizeof case_place, "%.64s[%u]", place, i);
        result = add_case(b, extended, i, case_place, one);
    }
    return result;
}

static ls_result read_block(builder *b, const char *place, const cJSON *block)
{
    static const char *const kinds[] = {"cartesian", "zip", "cases"};
    if (!cJSON_IsObject(block) || cJSON_GetArraySize(block) != 1) {
        return REFUSE(b, block, "%s: expected an object with exactly one of cartesian, zip, cases", place);
    }
    ls_result result = ls_check_members(&b->reading, block, place, kinds, 3);
    if (result != LS_OK) return result;
    const cJSON *content = block->child;
    char content_place[96];
    snprintf(content_place, sizeof content_place, "%.64s.%s", place, content->string);
    uint32_t first_axis = b->axis_count;
    if (strcmp(content->string, "cases") == 0) {
        result = add_cases(b, content_place, content);
    } else {
        bool zip = strcmp(content->string, "zip") == 0;
        if (!cJSON_IsObject(content))
            return REFUSE(b, content, "%s: expected an object of keys and lists", content_place);
        if (zip && new_axis(b) == NULL) return out_of_memory(b);
        result = add_block_members(b, zip, first_axis, "", content_place, content);
    }
    for (uint32_t a = first_axis; a < b->axis_count && result == LS_OK; a++) {
        if (b->axes[a].key_count > 0) result = label_axis(b, &b->axes[a]);
    }
    return result;
}

static ls_result read_sweep(builder *b, const char *place, const cJSON *sweep)
{
    if (sweep == NULL) return LS_OK;
    b->sweep = sweep;
    if (!cJSON_IsArray(sweep))
        return REFUSE(b, sweep, "%s: expected a list of blocks, [{\"cartesian\": {...}}, ...]", place);
    uint32_t i = 0;
    ls_result result = LS_OK;
    for (const cJSON *block = sweep->child; block != NULL && result == LS_OK; block = block->next, i++) {
        char block_place[64];
        snprintf(block_place, sizeof block_place, "%s[%u]", place, i);
        result = read_block(b, block_place, block);
    }
    return result;
}

/* Copies the string member `key` of object, or fallback when absent (NULL stays NULL). */
static ls_result read_string(builder *b, const cJSON *object, const char *key, const char *fallback, char **copy)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, key);
    if (member != NULL && !cJSON_IsString(member)) return REFUSE(b, member, "%s: expected a string", key);
    const char *text = member != NULL ? member->valuestring : fallback;
    if (text == NULL) return LS_OK;
    ls_free(*copy);
    *copy = ls_duplicate(text);
    return *copy != NULL ? LS_OK : out_of_memory(b);
}

static ls_result read_whole(builder *b, const cJSON *node, const char *place, double minimum, double maximum,
                            uint64_t *value)
{
    double number = cJSON_IsNumber(node) ? node->valuedouble : -1.0;
    if (!(number >= minimum && number <= maximum) || number != floor(number)) {
        return REFUSE(b, node, "%s: expected a whole number from %.17g to %.17g", place, minimum, maximum);
    }
    *value = (uint64_t)number;
    return LS_OK;
}

static ls_result read_real(builder *b, const cJSON *node, const char *place, double above, double below, double *value)
{
    if (!cJSON_IsNumber(node) || !(node->valuedouble > above && node->valuedouble < below)) {
        return REFUSE(b, node, "%s: expected a number above %g and below %g", place, above, below);
    }
    *value = node->valuedouble;
    return LS_OK;
}

static const char *metric_name(const void *metrics, uint32_t index) { return ((const ls_metric *)metrics)[index].name; }

static ls_result check_metric_name(builder *b, const cJSON *node, const char *place, const char *name)
{
    const ls_vocabulary *vocabulary = b->reading.vocabulary;
    for (uint32_t i = 0; i < vocabulary->metric_count; i++) {
        if (strcmp(vocabulary->metrics[i].name, name) == 0) return LS_OK;
    }
    const char *nearest = ls_nearest(name, vocabulary->metrics, vocabulary->metric_count, metric_name);
    return REFUSE(b, node, "%s: no metric \"%.100s\"; `lakestream metrics` lists them%s%s%s", place, name,
                  nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "\"?" : "");
}

static ls_result check_metric(builder *b, const cJSON *node, const char *place)
{
    if (!cJSON_IsString(node)) return REFUSE(b, node, "%s: expected the name of a metric", place);
    return check_metric_name(b, node, place, node->valuestring);
}

static ls_result read_stopping_rule(builder *b, const cJSON *object)
{
    static const char *const keys[] = {"minimum", "maximum", "metric", "half_width", "confidence"};
    ls_replications *rule = &b->spec->replications;
    ls_result result = ls_check_members(&b->reading, object, "replications", keys, 5);
    const cJSON *minimum = cJSON_GetObjectItemCaseSensitive(object, "minimum");
    const cJSON *maximum = cJSON_GetObjectItemCaseSensitive(object, "maximum");
    const cJSON *metric = cJSON_GetObjectItemCaseSensitive(object, "metric");
    const cJSON *half_width = cJSON_GetObjectItemCaseSensitive(object, "half_width");
    const cJSON *confidence = cJSON_GetObjectItemCaseSensitive(object, "confidence");
    if (result == LS_OK && (maximum == NULL || metric == NULL || half_width == NULL)) {
        return REFUSE(b, object,
                      "replications: a stopping rule needs maximum, metric and half_width; for a fixed number write "
                      "the number alone");
    }
    if (result == LS_OK)
        result = read_whole(b, maximum, "replications.maximum", 2, LS_SPEC_REPLICATIONS_MAX, &rule->maximum);
    rule->minimum = rule->maximum < 3 ? rule->maximum : 3;
    if (result == LS_OK && minimum != NULL) {
        result = read_whole(b, minimum, "replications.minimum", 2, (double)rule->maximum, &rule->minimum);
    }
    if (result == LS_OK) result = check_metric(b, metric, "replications.metric");
    if (result == LS_OK) result = read_real(b, half_width, "replications.half_width", 0, 1, &rule->half_width);
    if (result == LS_OK && confidence != NULL) {
        result = read_real(b, confidence, "replications.confidence", 0, 1, &rule->confidence);
    }
    return result == LS_OK ? read_string(b, object, "metric", NULL, &rule->metric) : result;
}

static ls_result read_replications(builder *b, const cJSON *node)
{
    ls_replications *rule = &b->spec->replications;
    rule->minimum = rule->maximum = 1;
    rule->confidence = 0.95;
    if (node == NULL) return LS_OK;
    if (cJSON_IsObject(node)) return read_stopping_rule(b, node);
    if (!cJSON_IsNumber(node))
        return REFUSE(b, node, "replications: expected a number or an object with a stopping rule");
    ls_result result = read_whole(b, node, "replications", 1, LS_SPEC_REPLICATIONS_MAX, &rule->maximum);
    rule->minimum = rule->maximum;
    return result;
}

static ls_result read_compare_metrics(builder *b, const cJSON *list)
{
    if (list == NULL) return LS_OK;
    ls_result result = check_list(b, list, "compare.metrics");
    if (result != LS_OK) return result;
    ls_spec *spec = b->spec;
    spec->compare_metrics = ls_allocate_array((size_t)cJSON_GetArraySize(list), sizeof(char *));
    if (spec->compare_metrics == NULL) return out_of_memory(b);
    for (const cJSON *metric = list->child; metric != NULL; metric = metric->next) {
        result = check_metric(b, metric, "compare.metrics");
        if (result != LS_OK) return result;
        char *copy = ls_duplicate(metric->valuestring);
        if (copy == NULL) return out_of_memory(b);
        spec->compare_metrics[spec->compare_metric_count++] = copy;
    }
    return LS_OK;
}

static ls_result read_compare(builder *b, const cJSON *node)
{
    static const char *const keys[] = {"key", "baseline", "metrics"};
    b->spec->compare_key = ls_duplicate("policy");
    if (b->spec->compare_key == NULL) return out_of_memory(b);
    if (node == NULL) return LS_OK;
    if (!cJSON_IsObject(node)) return REFUSE(b, node, "compare: expected an object with key, baseline, metrics");
    ls_result result = ls_check_members(&b->reading, node, "compare", keys, 3);
    if (result == LS_OK) result = read_string(b, node, "key", NULL, &b->spec->compare_key);
    if (result == LS_OK) result = read_string(b, node, "baseline", NULL, &b->spec->compare_baseline);
    if (result == LS_OK) result = read_compare_metrics(b, cJSON_GetObjectItemCaseSensitive(node, "metrics"));
    return result;
}

static ls_result read_layer(builder *b, ls_layer *layer, const char *place, const cJSON *node)
{
    if (node == NULL) return LS_OK;
    if (!cJSON_IsObject(node)) return REFUSE(b, node, "%s: expected an object of settings", place);
    return ls_layer_add(&b->reading, layer, "", place, node);
}

static ls_result read_seed(builder *b, const cJSON *node)
{
    b->spec->seed = 1;
    return node != NULL ? read_whole(b, node, "seed", 0, 9007199254740992.0, &b->spec->seed) : LS_OK;
}

/* What an answer's template may name: metrics, and keys that a spec may set. */
typedef struct answer_place {
    builder *builder;
    const cJSON *node;
} answer_place;

static ls_result answer_metric(void *context, const char *name, ls_error *error)
{
    const answer_place *place = context;
    (void)error; /* the reading's own */
    return check_metric_name(place->builder, place->node, "answer", name);
}

static ls_result answer_key(void *context, const char *name, ls_error *error)
{
    const answer_place *place = context;
    (void)error;
    return ls_layer_check_path(&place->builder->reading, name, "answer", place->node);
}

static bool answer_is_key(void *context, const char *name)
{
    const answer_place *place = context;
    const ls_vocabulary *vocabulary = place->builder->reading.vocabulary;
    for (uint32_t i = 0; i < vocabulary->metric_count; i++) {
        if (strcmp(vocabulary->metrics[i].name, name) == 0) return false;
    }
    for (uint32_t i = 0; i < vocabulary->option_count; i++) {
        if (strcmp(vocabulary->options[i].path, name) == 0) return true;
    }
    return false;
}

static ls_result check_answer(builder *b)
{
    const ls_presentation *p = &b->spec->presentation;
    if (p->answer == NULL) return LS_OK;
    answer_place place = {b, cJSON_GetObjectItemCaseSensitive(b->reading.json->root, "answer")};
    const ls_answer_names names = {&place, answer_metric, answer_key, answer_is_key};
    return ls_answer_check(p->answer, &names, b->reading.error);
}

static ls_result check_published(builder *b, const ls_published_table *table, const cJSON *node)
{
    ls_result result = LS_OK;
    for (uint32_t k = 0; k < table->metric_count && result == LS_OK; k++) {
        result = check_metric_name(b, node, "published.metrics", table->metrics[k].name);
    }
    for (uint32_t k = 0; k < table->key_count && result == LS_OK; k++) {
        result = ls_layer_check_path(&b->reading, table->keys[k].name, "published.keys", node);
    }
    for (uint32_t k = 0; k < table->where_count && result == LS_OK; k++) {
        result = ls_layer_check_path(&b->reading, table->where[k].column, "published.where", node);
    }
    return result;
}

static ls_result read_presentation(builder *b)
{
    ls_presentation *p = &b->spec->presentation;
    const cJSON *root = b->reading.json->root;
    ls_result result = ls_presentation_read(b->reading.json, p, b->reading.error);
    for (uint32_t i = 0; i < p->table_count && result == LS_OK; i++) {
        result = check_metric_name(b, cJSON_GetObjectItemCaseSensitive(root, "table"), "table", p->table[i]);
    }
    for (uint32_t i = 0; i < p->published_count && result == LS_OK; i++) {
        result = check_published(b, &p->published[i], cJSON_GetObjectItemCaseSensitive(root, "published"));
    }
    return result == LS_OK ? check_answer(b) : result;
}

static ls_result read_top(builder *b, bool quick)
{
    static const char *const keys[] = {"title", "shows",     "question",    "answer",      "assumptions",
                                       "table", "published", "sensitivity", "seed",        "base",
                                       "sweep", "quick",     "compare",     "replications"};
    static const char *const quick_keys[] = {"base", "sweep", "replications"};
    const cJSON *root = b->reading.json->root;
    if (!cJSON_IsObject(root)) return REFUSE(b, root, "a spec is a JSON object, { \"title\": ..., \"base\": {...} }");
    ls_result result = ls_check_members(&b->reading, root, "", keys, sizeof keys / sizeof keys[0]);
    if (result != LS_OK) return result;
    const cJSON *quickly = cJSON_GetObjectItemCaseSensitive(root, "quick");
    if (quickly != NULL && !cJSON_IsObject(quickly))
        return REFUSE(b, quickly, "quick: expected an object of overrides");
    if (quickly != NULL) result = ls_check_members(&b->reading, quickly, "quick", quick_keys, 3);
    if (!quick) quickly = NULL;
    const cJSON *quick_sweep = cJSON_GetObjectItemCaseSensitive(quickly, "sweep");
    const cJSON *sweep = quick_sweep != NULL ? quick_sweep : cJSON_GetObjectItemCaseSensitive(root, "sweep");
    const cJSON *replications = cJSON_GetObjectItemCaseSensitive(quickly, "replications");
    if (replications == NULL) replications = cJSON_GetObjectItemCaseSensitive(root, "replications");
    if (result == LS_OK) result = read_string(b, root, "title", "", &b->spec->title);
    if (result == LS_OK) result = read_string(b, root, "shows", "", &b->spec->shows);
    if (result == LS_OK) result = read_presentation(b);
    if (result == LS_OK) result = read_seed(b, cJSON_GetObjectItemCaseSensitive(root, "seed"));
    if (result == LS_OK) result = read_replications(b, replications);
    if (result == LS_OK) result = read_compare(b, cJSON_GetObjectItemCaseSensitive(root, "compare"));
    if (result == LS_OK) result = read_layer(b, &b->base, "base", cJSON_GetObjectItemCaseSensitive(root, "base"));
    if (result == LS_OK) {
        result = read_layer(b, &b->quick_base, "quick.base", cJSON_GetObjectItemCaseSensitive(quickly, "base"));
    }
    return result == LS_OK ? read_sweep(b, quick_sweep != NULL ? "quick.sweep" : "sweep", sweep) : result;
}

static ls_result check_scenario(builder *b, const ls_scenario *scenario)
{
    bool needs_policy = scenario->world == LS_WORLD_COMMIT && scenario->batches.law != LS_ARRIVAL_OPEN;
    if (!needs_policy || scenario->policy.policy != NULL) return LS_OK;
    return REFUSE(
        b, b->reading.json->root,
        "policy: none is named; add \"policy\": \"dac\" to \"base\" or sweep it (`lakestream policies` lists them)");
}

/* Resolves base, quick's base, `at` and one more layer (NULL: none). */
static ls_result resolve_with(builder *b, const ls_layer *at, const ls_layer *more, ls_scenario *scenario)
{
    const ls_layer *layers[] = {&b->base, &b->quick_base, at, more};
    return ls_layers_resolve(&b->reading, layers, more != NULL ? 4 : 3, scenario);
}

/* An end of a range must be a value that its option takes. */
static ls_result check_end(builder *b, const ls_layer *at, const char *key, const char *place, const cJSON *value)
{
    ls_layer one = {0};
    ls_scenario ignored;
    ls_result result = ls_layer_add(&b->reading, &one, key, place, value);
    if (result == LS_OK) result = resolve_with(b, at, &one, &ignored);
    ls_layer_free(&one);
    return result;
}

static bool takes_whole_numbers(const builder *b, const char *key)
{
    const ls_vocabulary *vocabulary = b->reading.vocabulary;
    for (uint32_t i = 0; i < vocabulary->option_count; i++) {
        if (strcmp(vocabulary->options[i].path, key) == 0) return vocabulary->options[i].type == LS_OPTION_INTEGER;
    }
    return false;
}

static ls_result read_nominal(builder *b, const cJSON *node, const char *place, const ls_scenario *scenario,
                              ls_assumption *a)
{
    char *end, *label = ls_scenario_label(b->reading.vocabulary, scenario, a->key);
    if (label == NULL) return out_of_memory(b);
    a->nominal = strtod(label, &end);
    bool number = end != label && *end == '\0';
    ls_free(label);
    if (!number) return REFUSE(b, node, "%s: an assumption must be a number", place);
    if (a->nominal < a->low || a->nominal > a->high) {
        return REFUSE(b, node, "%s: the experiment itself uses %g, which is not from %g to %g", place, a->nominal,
                      a->low, a->high);
    }
    return LS_OK;
}

static ls_result read_assumption(builder *b, const cJSON *node, const ls_layer *at, const ls_scenario *scenario,
                                 ls_assumption *a)
{
    char place[160];
    snprintf(place, sizeof place, "sensitivity.assumptions.%.100s", node->string);
    const cJSON *low = cJSON_GetArrayItem(node, 0), *high = cJSON_GetArrayItem(node, 1);
    const cJSON *scale = cJSON_GetArrayItem(node, 2);
    int size = cJSON_IsArray(node) ? cJSON_GetArraySize(node) : 0;
    bool scaled = size == 3 && cJSON_IsString(scale) && strcmp(scale->valuestring, "log") == 0;
    if ((size != 2 && !scaled) || !cJSON_IsNumber(low) || !cJSON_IsNumber(high) ||
        !(low->valuedouble < high->valuedouble)) {
        return REFUSE(b, node, "%s: expected [low, high] or [low, high, \"log\"] with low < high", place);
    }
    if (scaled && !(low->valuedouble > 0)) return REFUSE(b, node, "%s: a range in the logarithm lies above 0", place);
    ls_result result = ls_layer_check_path(&b->reading, node->string, place, node);
    if (result == LS_OK) result = check_end(b, at, node->string, place, low);
    if (result == LS_OK) result = check_end(b, at, node->string, place, high);
    if (result != LS_OK) return result;
    *a = (ls_assumption){.key = ls_duplicate(node->string),
                         .low = low->valuedouble,
                         .high = high->valuedouble,
                         .logarithmic = scaled,
                         .whole = takes_whole_numbers(b, node->string)};
    return a->key != NULL ? read_nominal(b, node, place, scenario, a) : out_of_memory(b);
}

static ls_result read_assumptions(builder *b, const cJSON *node, const ls_layer *at, ls_sensitivity_plan *plan)
{
    int size = cJSON_IsObject(node) ? cJSON_GetArraySize(node) : 0;
    if (size < 1 || size > (int)LS_SENSITIVITY_ASSUMPTIONS_MAX) {
        return REFUSE(b, node, "sensitivity.assumptions: expected an object of 1 to %u keys with ranges",
                      LS_SENSITIVITY_ASSUMPTIONS_MAX);
    }
    ls_scenario scenario;
    ls_result result = resolve_with(b, at, NULL, &scenario);
    if (result == LS_OK) result = check_scenario(b, &scenario);
    if (result != LS_OK) return result;
    plan->nominal = ls_scenario_canonical(b->reading.vocabulary, &scenario);
    plan->assumptions = ls_allocate_array((size_t)size, sizeof *plan->assumptions);
    if (plan->nominal == NULL || plan->assumptions == NULL) return out_of_memory(b);
    for (const cJSON *item = node->child; item != NULL && result == LS_OK; item = item->next) {
        result = read_assumption(b, item, at, &scenario, &plan->assumptions[plan->count++]);
    }
    return result;
}

static ls_result read_samples(builder *b, const cJSON *node, ls_sensitivity_plan *plan)
{
    uint64_t samples = 64;
    const cJSON *whole = cJSON_GetObjectItemCaseSensitive(node, "samples");
    const cJSON *quick = cJSON_GetObjectItemCaseSensitive(node, "quick_samples");
    const cJSON *replications = cJSON_GetObjectItemCaseSensitive(node, "replications");
    ls_result result = LS_OK;
    if (whole != NULL) result = read_whole(b, whole, "sensitivity.samples", 0, LS_SENSITIVITY_SAMPLES_MAX, &samples);
    if (result == LS_OK && quick != NULL && b->spec->quick) {
        result = read_whole(b, quick, "sensitivity.quick_samples", 0, LS_SENSITIVITY_SAMPLES_MAX, &samples);
    }
    plan->samples = (uint32_t)samples;
    plan->replications = 1;
    if (result == LS_OK && replications != NULL) {
        result =
            read_whole(b, replications, "sensitivity.replications", 1, LS_SPEC_REPLICATIONS_MAX, &plan->replications);
    }
    return result;
}

static ls_result read_sensitivity(builder *b, const cJSON *node)
{
    static const char *const keys[] = {"metric", "at", "assumptions", "samples", "quick_samples", "replications"};
    if (node == NULL) return LS_OK;
    if (!cJSON_IsObject(node)) return REFUSE(b, node, "sensitivity: expected an object with metric and assumptions");
    ls_sensitivity_plan *plan = b->spec->sensitivity = ls_allocate_array(1, sizeof *plan);
    if (plan == NULL) return out_of_memory(b);
    ls_result result = ls_check_members(&b->reading, node, "sensitivity", keys, sizeof keys / sizeof keys[0]);
    const cJSON *metric = cJSON_GetObjectItemCaseSensitive(node, "metric");
    const cJSON *assumptions = cJSON_GetObjectItemCaseSensitive(node, "assumptions");
    if (result == LS_OK && (metric == NULL || assumptions == NULL)) {
        return REFUSE(b, node, "sensitivity: needs metric and assumptions");
    }
    if (result == LS_OK) result = check_metric(b, metric, "sensitivity.metric");
    if (result == LS_OK) result = read_string(b, node, "metric", NULL, &plan->metric);
    if (result == LS_OK) result = read_samples(b, node, plan);
    ls_layer at = {0};
    if (result == LS_OK) {
        result = read_layer(b, &at, "sensitivity.at", cJSON_GetObjectItemCaseSensitive(node, "at"));
    }
    if (result == LS_OK) result = read_assumptions(b, assumptions, &at, plan);
    ls_layer_free(&at);
    return result;
}

static void free_plan(ls_sensitivity_plan *plan)
{
    if (plan == NULL) return;
    for (uint32_t i = 0; plan->assumptions != NULL && i < plan->count; i++) ls_free(plan->assumptions[i].key);
    ls_free(plan->assumptions);
    ls_free(plan->metric);
    ls_free(plan->nominal);
    ls_free(plan);
}

static ls_result collect_keys(builder *b)
{
    ls_spec *spec = b->spec;
    uint32_t count = 0;
    for (uint32_t a = 0; a < b->axis_count; a++) count += b->axes[a].key_count;
    if (count == 0) return LS_OK;
    spec->swept_keys = ls_allocate_array(count, sizeof(char *));
    if (spec->swept_keys == NULL) return out_of_memory(b);
    for (uint32_t a = 0; a < b->axis_count; a++) {
        for (uint32_t k = 0; k < b->axes[a].key_count; k++) {
            char *key = ls_duplicate(b->axes[a].keys[k]);
            if (key == NULL) return out_of_memory(b);
            spec->swept_keys[spec->swept_key_count++] = key;
        }
    }
    return LS_OK;
}

static ls_result label_point(builder *b, ls_spec_point *point, const uint32_t *digits)
{
    if (b->spec->swept_key_count == 0) return LS_OK;
    point->labels = ls_allocate_array(b->spec->swept_key_count, sizeof(char *));
    if (point->labels == NULL) return out_of_memory(b);
    uint32_t column = 0;
    for (uint32_t a = 0; a < b->axis_count; a++) {
        const alternative *one = &b->axes[a].alternatives[digits[a]];
        for (uint32_t k = 0; k < b->axes[a].key_count; k++, column++) {
            point->labels[column] =
                one->labels[k] != NULL ? ls_duplicate(one->labels[k])
                                       : ls_scenario_label(b->reading.vocabulary, &point->scenario, b->axes[a].keys[k]);
            if (point->labels[column] == NULL) return out_of_memory(b);
        }
    }
    return LS_OK;
}

/* Two axes of one point must not set the same path: which one wins would be a matter of order. */
static ls_result check_clash(builder *b, const ls_layer *const *layers, uint32_t count)
{
    for (uint32_t l = 0; l < count; l++) {
        for (uint32_t m = 0; m < l; m++) {
            for (uint32_t i = 0; i < layers[l]->count; i++) {
                for (uint32_t k = 0; k < layers[m]->count; k++) {
                    const ls_assignment *one = &layers[l]->items[i], *other = &layers[m]->items[k];
                    if (strcmp(one->path, other->path) != 0) continue;
                    return REFUSE(b, one->value, "%.200s: sets \"%.200s\", as does %.200s; keep one", one->place,
                                  one->path, other->place);
                }
            }
        }
    }
    return LS_OK;
}

/* The presets and policy names of all axes come before the other settings of all axes, whatever the order of the axes.
 */
static ls_result merge_sweep_layers(builder *b, const uint32_t *digits, ls_layer *merged)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < b->axis_count; a++) count += b->axes[a].alternatives[digits[a]].layer.count;
    *merged = (ls_layer){0};
    if (count == 0) return LS_OK;
    merged->items = ls_allocate_array(count, sizeof(ls_assignment));
    if (merged->items == NULL) return out_of_memory(b);
    for (uint32_t a = 0; a < b->axis_count; a++) {
        const ls_layer *layer = &b->axes[a].alternatives[digits[a]].layer;
        if (layer->count > 0) memcpy(merged->items + merged->count, layer->items, layer->count * sizeof *layer->items);
        merged->count += layer->count;
    }
    return LS_OK;
}

static ls_result resolve_point(builder *b, ls_spec_point *point, const uint32_t *digits)
{
    ls_layer merged;
    ls_result result = merge_sweep_layers(b, digits, &merged);
    if (result != LS_OK) return result;
    const ls_layer *layers[] = {&b->base, &b->quick_base, &merged};
    result = ls_layers_resolve(&b->reading, layers, 3, &point->scenario);
    ls_free(merged.items); /* paths and places belong to the alternatives */
    if (result == LS_OK) result = check_scenario(b, &point->scenario);
    if (result != LS_OK) return result;
    point->resolved = ls_scenario_canonical(b->reading.vocabulary, &point->scenario);
    if (point->resolved == NULL || ls_digest_text(point->resolved, point->hash) != LS_OK) return out_of_memory(b);
    return label_point(b, point, digits);
}

static ls_result check_clashes(builder *b, const uint32_t *digits)
{
    if (b->axis_count == 0) return LS_OK;
    const ls_layer **layers = ls_allocate_array(b->axis_count, sizeof(ls_layer *));
    if (layers == NULL) return out_of_memory(b);
    for (uint32_t a = 0; a < b->axis_count; a++) layers[a] = &b->axes[a].alternatives[digits[a]].layer;
    ls_result result = check_clash(b, layers, b->axis_count);
    ls_free(layers);
    return result;
}

static void next_digits(const builder *b, uint32_t *digits)
{
    for (uint32_t a = b->axis_count; a-- > 0;) {
        if (++digits[a] < b->axes[a].count) return;
        digits[a] = 0;
    }
}

static ls_result count_points(builder *b, uint32_t *count)
{
    uint64_t points = 1;
    for (uint32_t a = 0; a < b->axis_count; a++) {
        points *= b->axes[a].count;
        if (points <= LS_SPEC_POINTS_MAX) continue;
        return ls_json_fail(b->reading.json, b->sweep, b->reading.error, LS_ERROR_LIMIT,
                            "sweep: more than %u points; split the experiment", LS_SPEC_POINTS_MAX);
    }
    *count = (uint32_t)points;
    return LS_OK;
}

static int by_hash(const void *left, const void *right)
{
    const ls_spec_point *const *a = left, *const *b = right;
    int order = strcmp((*a)->hash, (*b)->hash);
    return order != 0 ? order : (*a < *b ? -1 : *a > *b);
}

static ls_result refuse_twins(builder *b)
{
    ls_spec *spec = b->spec;
    const ls_spec_point **sorted = ls_allocate_array(spec->point_count, sizeof(ls_spec_point *));
    if (sorted == NULL) return out_of_memory(b);
    for (uint32_t i = 0; i < spec->point_count; i++) sorted[i] = &spec->points[i];
    qsort(sorted, spec->point_count, sizeof sorted[0], by_hash);
    ls_result result = LS_OK;
    for (uint32_t i = 1; i < spec->point_count && result == LS_OK; i++) {
        if (strcmp(sorted[i - 1]->hash, sorted[i]->hash) != 0) continue;
        result =
            REFUSE(b, b->sweep, "sweep: points %td and %td are the same scenario; remove one (a value written twice?)",
                   sorted[i - 1] - spec->points, sorted[i] - spec->points);
    }
    ls_free(sorted);
    return result;
}

static ls_result build_points(builder *b)
{
    ls_spec *spec = b->spec;
    uint32_t count = 0;
    ls_result result = collect_keys(b);
    if (result == LS_OK) result = count_points(b, &count);
    if (result != LS_OK) return result;
    uint32_t *digits = ls_allocate_array((size_t)b->axis_count + 1, sizeof *digits);
    spec->points = ls_allocate_array(count, sizeof *spec->points);
    if (digits == NULL || spec->points == NULL) result = out_of_memory(b);
    while (result == LS_OK && spec->point_count < count) {
        ls_spec_point *point = &spec->points[spec->point_count++];
        result = check_clashes(b, digits);
        if (result == LS_OK) result = resolve_point(b, point, digits);
        next_digits(b, digits);
    }
    ls_free(digits);
    return result == LS_OK ? refuse_twins(b) : result;
}

static ls_result build(const ls_json *json, const char *path, const ls_vocabulary *vocabulary, bool quick,
                       ls_spec **spec, ls_error *error)
{
    builder b = {.reading = {json, vocabulary, error}};
    b.spec = ls_allocate_array(1, sizeof *b.spec);
    if (b.spec == NULL) return out_of_memory(&b);
    b.spec->name = ls_file_stem(path);
    b.spec->path = ls_duplicate(path);
    b.spec->text = ls_duplicate(json->text);
    b.spec->quick = quick;
    ls_result result = b.spec->name != NULL && b.spec->path != NULL && b.spec->text != NULL ? LS_OK : out_of_memory(&b);
    if (result == LS_OK) result = read_top(&b, quick);
    if (result == LS_OK) {
        result = read_sensitivity(&b, cJSON_GetObjectItemCaseSensitive(json->root, "sensitivity"));
    }
    if (result == LS_OK) result = build_points(&b);
    for (uint32_t a = 0; a < b.axis_count; a++) free_axis(&b.axes[a]);
    ls_free(b.axes);
    ls_layer_free(&b.base);
    ls_layer_free(&b.quick_base);
    if (result != LS_OK) {
        ls_spec_free(b.spec);
        return result;
    }
    *spec = b.spec;
    return LS_OK;
}

ls_result ls_spec_parse(const char *path, const char *text, size_t length, const ls_vocabulary *vocabulary, bool quick,
                        ls_spec **spec, ls_error *error)
{
    ls_json json = {0};
    ls_result result = ls_json_parse(path, text, length, &json, error);
    if (result == LS_OK) result = build(&json, path, vocabulary, quick, spec, error);
    ls_json_free(&json);
    return result;
}

ls_result ls_spec_read(const char *path, const ls_vocabulary *vocabulary, bool quick, ls_spec **spec, ls_error *error)
{
    ls_json json = {0};
    ls_result result = ls_json_read(path, &json, error);
    if (result == LS_OK) result = build(&json, path, vocabulary, quick, spec, error);
    ls_json_free(&json);
    return result;
}

static void free_strings(char **strings, uint32_t count)
{
    for (uint32_t i = 0; strings != NULL && i < count; i++) ls_free(strings[i]);
    ls_free(strings);
}

void ls_spec_free(ls_spec *spec)
{
    if (spec == NULL) return;
    for (uint32_t i = 0; i < spec->point_count; i++) {
        ls_free(spec->points[i].resolved);
        free_strings(spec->points[i].labels, spec->swept_key_count);
    }
    free_strings(spec->swept_keys, spec->swept_key_count);
    free_strings(spec->compare_metrics, spec->compare_metric_count);
    ls_free(spec->points);
    ls_free(spec->name);
    ls_free(spec->path);
    ls_free(spec->text);
    ls_free(spec->title);
    ls_free(spec->shows);
    ls_presentation_free(&spec->presentation);
    free_plan(spec->sensitivity);
    ls_free(spec->replications.metric);
    ls_free(spec->compare_key);
    ls_free(spec->compare_baseline);
    ls_free(spec);
}
