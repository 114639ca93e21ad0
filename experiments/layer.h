/* layer.h - the settings part of a spec: option objects flattened to assignments, and assignments carried out on a
 * scenario.
 *
 * A layer is one place that sets options (base, quick's base, one value of a sweep). Flattening turns its nested or
 * dotted keys into full paths and refuses keys that do not exist; resolving applies layers in order of rank by the
 * rules of precedence that spec.h states. Values stay where cJSON has them, so that a message can name line and
 * column.
 */
#ifndef LS_LAYER_H
#define LS_LAYER_H

#include "experiments/json.h"
#include "experiments/spec.h"

typedef struct ls_reading {
    const ls_json *json;
    const ls_vocabulary *vocabulary;
    ls_error *error;
} ls_reading;

typedef struct ls_assignment {
    char *path;         /* full option path; "policy" (a name), "policy.<parameter>", "store.preset", "store.model" */
    char *place;        /* where it stands in the spec, for messages */
    const cJSON *value; /* borrowed */
    bool names;         /* "policy", "store.preset", "store.model": comes before the others of its rank */
} ls_assignment;

typedef struct ls_layer {
    ls_assignment *items;
    uint32_t count;
    uint32_t capacity;
} ls_layer;

/* Flattens the setting `path` = value into layer (zeroed by the caller), or every member of an object when path is "".
 */
ls_result ls_layer_add(const ls_reading *reading, ls_layer *layer, const char *path, const char *place,
                       const cJSON *value);
void ls_layer_free(ls_layer *layer);

/* Whether path is something a spec may set: an option, a group of options, "policy" or one of its parameters. If not,
 * the error names place, what was expected and the nearest name. */
ls_result ls_layer_check_path(const ls_reading *reading, const char *path, const char *place, const cJSON *node);

/* Whether path stands for several options ("store.get"). "policy" and "store" do not count: a name stands for them. */
bool ls_layer_is_group(const ls_vocabulary *vocabulary, const char *path);

/* Fills a scenario from defaults and layers, lowest rank first. */
ls_result ls_layers_resolve(const ls_reading *reading, const ls_layer *const *layers, uint32_t layer_count,
                            ls_scenario *scenario);

/* The value of `key` as text, for tables and labels, from what a layer says about it: "16", "dac target_share=0.2".
 * NULL when out of memory or when the layer does not set it (*found tells). The caller frees it. */
char *ls_layer_label(const ls_layer *layer, const char *key, bool *found);

/* The same from a resolved scenario. */
char *ls_scenario_label(const ls_vocabulary *vocabulary, const ls_scenario *scenario, const char *key);

/* " (did you mean 'x'?)" into text, or nothing, for a word that is not among count words. */
const char *ls_did_you_mean(const char *word, const char *const *words, uint32_t count, char text[128]);

/* LS_OK when every key of object is one of names; otherwise an error with the nearest name. */
ls_result ls_check_members(const ls_reading *reading, const cJSON *object, const char *place, const char *const *names,
                           uint32_t count);

#endif
