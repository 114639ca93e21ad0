/* spec.h - an experiment as its author writes it (JSON), and what it resolves to: a list of points, each one
 * scenario.
 *
 *   { "title": "...", "shows": "one line on what the figure shows",
 *     "seed": 1,
 *     "replications": 5   or   {"minimum": 3, "maximum": 30, "metric": "published_share", "half_width": 0.02},
 *     "base":  { option objects: "producers": {"count": 64}, "store": {"preset": "gcs", "put": {"law": "gamma"}},
 *                "policy": {"name": "dac", "target_share": 0.1} },
 *     "sweep": [ {"cartesian": {"manifest.initial_entries": [0, 1000], "policy": ["immediate", {"name": "dac"}]}},
 *                {"zip": {"producers.count": [8, 16], "duration_s": [60, 30]}},
 *                {"cases": [{"store": "gcs"}, {"store": "minio", "producers.count": 4}]} ],
 *     "question": "...", "answer": "... {max(published_per_s)} ...", "assumptions": [...], "table": [...],
 *     "published": [...],                     what the report tells of the figure: presentation.h, answer.h,
 * published.h "sensitivity": {...},                   which assumptions carry the result: sensitivity.h "compare":
 * {"key": "policy", "baseline": "immediate", "metrics": ["published_per_s"]}, "quick": { "base": {...}, "sweep": [...],
 * "replications": ... } }
 *
 * Keys are the paths of the option table, nested or dotted or both. Blocks of "sweep" multiply: cartesian gives one
 * axis a key, zip one axis whose keys move together, cases one axis of explicit settings. Later blocks vary fastest.
 * A swept group ("store.get": [{...}, {...}]) counts as one swept key for each option that any of its values sets.
 *
 * Precedence: defaults, then the store preset in force, then base, then quick's base (with --quick), then the sweep.
 * "store": "x" is short for "store": {"preset": "x"}; the preset is always laid down first, so a swept preset keeps
 * the overrides that base wrote down. "store": {"model": "FILE"}, or "store": "FILE.json", lays the numbers of a model file
 * (model_file.h) where a preset's would be; FILE is relative to the spec. A policy is different: parameters belong to a name, so naming a policy drops
 * what was set for the previous one. "policy": "x" is short for {"name": "x"}; "policy.target_share" sets a parameter
 * of the policy in force.
 *
 * The resolved form of a point is canonical JSON: one object, every option by dotted path, keys sorted bytewise,
 * numbers in shortest round-trip form. It is itself valid as "base", and its SHA-256 names the point in the results
 * database.
 */
#ifndef LS_SPEC_H
#define LS_SPEC_H

#include "experiments/digest.h"
#include "experiments/presentation.h"
#include "sim/scenario.h"

#define LS_SPEC_POINTS_MAX       20000u
#define LS_SPEC_REPLICATIONS_MAX 10000u

/* The names a spec may use. Pointers are borrowed. */
typedef struct ls_vocabulary {
    const ls_option *options;
    uint32_t option_count;
    const ls_store_preset *presets;
    uint32_t preset_count;
    const ls_metric *metrics;
    uint32_t metric_count;
} ls_vocabulary;

/* The vocabulary of the simulator. */
ls_vocabulary ls_vocabulary_default(void);

/* How many replications a point gets: at least minimum, then one by one until the Student t interval of the metric is
 * narrow enough, at most maximum. metric NULL: exactly maximum (= minimum). */
typedef struct ls_replications {
    uint64_t minimum;
    uint64_t maximum;
    char *metric;      /* owned by the spec */
    double half_width; /* wanted: half-width divided by |mean| */
    double confidence; /* of the interval, 0.95 by default */
} ls_replications;

/* One assumption of a sensitivity study (sensitivity.h): an option with a range. */
typedef struct ls_assumption {
    char *key;
    double low;
    double high;
    double nominal;   /* what the experiment itself uses, within the range */
    bool logarithmic; /* spread evenly in the logarithm */
    bool whole;       /* a whole number */
} ls_assumption;

typedef struct ls_sensitivity_plan {
    char *metric;
    char *nominal; /* canonical JSON of the nominal scenario */
    ls_assumption *assumptions;
    uint32_t count;
    uint32_t samples; /* of the space-filling design */
    uint64_t replications;
} ls_sensitivity_plan;

typedef struct ls_spec_point {
    ls_scenario scenario;
    char *resolved;                 /* canonical JSON */
    char hash[LS_DIGEST_HEX_BYTES]; /* of resolved */
    char **labels;                  /* the value of each swept key, as text; NULL when nothing is swept */
} ls_spec_point;

typedef struct ls_spec {
    char *name;  /* of the experiment: the file's name without folder and suffix */
    char *path;  /* as given; for finding plot scripts, part of no hash */
    char *text;  /* the source */
    char *title; /* "" if not given */
    char *shows; /* "" if not given */
    ls_presentation presentation;
    ls_sensitivity_plan *sensitivity; /* NULL: none */
    bool quick;
    uint64_t seed;
    ls_replications replications;
    char *compare_key;      /* the swept key whose values are compared: "policy" by default */
    char *compare_baseline; /* label of the baseline; NULL: the first */
    char **compare_metrics;
    uint32_t compare_metric_count;
    char **swept_keys; /* in order of appearance */
    uint32_t swept_key_count;
    ls_spec_point *points;
    uint32_t point_count;
} ls_spec;

/* Reads a spec. On success *spec is owned by the caller (ls_spec_free). LS_ERROR_INVALID for anything its author can
 * mend, with place, expectation and nearest name; LS_ERROR_LIMIT; LS_ERROR_MEMORY. */
ls_result ls_spec_read(const char *path, const ls_vocabulary *vocabulary, bool quick, ls_spec **spec, ls_error *error);
ls_result ls_spec_parse(const char *path, const char *text, size_t length, const ls_vocabulary *vocabulary, bool quick,
                        ls_spec **spec, ls_error *error);
void ls_spec_free(ls_spec *spec); /* NULL is allowed */

/* The canonical JSON of a scenario; the caller frees it with ls_free. NULL when out of memory. */
char *ls_scenario_canonical(const ls_vocabulary *vocabulary, const ls_scenario *scenario);

#endif
