/* policy.h - the interface of commit policies, and the table of all of them.
 *
 * A policy is a pure function from what a producer sees (ls_commit_view) and a small flat state to a decision: when to
 * try next and how many batches to carry. It is asked whenever a batch becomes pending while no attempt is under way, and
 * after every attempt. Parameters are doubles declared in a table (name, unit, default, range, meaning) from which spec
 * validation, `lakestream policies` and the docs come. Names that several policies share mean the same everywhere.
 *
 * A policy that `looks` is asked once more within an attempt: when the newest version's number is known, before anything is read.
 * It may then call the attempt off until later. What it calls off is no attempt and is counted as requests alone.
 *
 * Rules every policy keeps: with a batch pending it answers, sooner or later, with a time that comes (no starvation);
 * moment LS_MOMENT_READY with a standing plan in the future keeps that plan unless the rule says otherwise; randomness
 * comes only from the stream given; state starts as zero bytes.
 */
#ifndef LS_POLICY_H
#define LS_POLICY_H

#include "manifest/commit_view.h"

#define LS_POLICY_PARAMETERS_MAX 12u
#define LS_POLICIES_MAX 64u

typedef struct ls_policy_parameter {
    const char *name;    /* with its unit: base_s, batch_limit, target_share */
    const char *unit;    /* "s", "batches", "1", "bytes", "1/s" */
    double default_value;
    double minimum;      /* inclusive */
    double maximum;      /* inclusive */
    const char *meaning; /* one sentence, no full stop */
} ls_policy_parameter;

typedef struct ls_policy {
    const char *name;
    const char *rule;   /* one sentence: what it does */
    const char *source; /* paper, product or address; "ours" for our own */
    const ls_policy_parameter *parameters;
    uint32_t parameter_count;
    bool simulator_only; /* the oracle */
    bool looks;          /* wants LS_MOMENT_LOOK (commit_view.h) */
    void (*decide)(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision);
} ls_policy;

/* A preset: a policy under another name with other defaults (iceberg, delta-rs, paimon, ...). */
typedef struct ls_policy_preset {
    const char *name;
    const char *policy;
    const char *meaning; /* which product and which of its documented defaults */
    const char *source;
    struct {
        const char *parameter;
        double value;
    } value[LS_POLICY_PARAMETERS_MAX];
    uint32_t value_count;
} ls_policy_preset;

/* A policy with its parameter values: what a decider points to. values[i] belongs to policy->parameters[i]. */
typedef struct ls_policy_instance {
    const ls_policy *policy;
    double values[LS_POLICY_PARAMETERS_MAX];
} ls_policy_instance;

/* All policies and presets, in the order in which they are listed. */
const ls_policy *const *ls_policies(uint32_t *count);
const ls_policy_preset *ls_policy_presets(uint32_t *count);

/* Adds a policy, which must outlive the process's use of policies; for plug-ins, before anything runs: not safe beside other
 * threads. LS_ERROR_INVALID if the name is taken or the table is full. */
ls_result ls_policies_add(const ls_policy *policy, ls_error *error);

/* Fills an instance with the defaults of a policy or preset of that name. LS_ERROR_INVALID (with the nearest name)
 * if there is none. */
ls_result ls_policy_instantiate(const char *name, ls_policy_instance *instance, ls_error *error);

/* Sets one parameter by name; LS_ERROR_INVALID with the nearest name, or with the range that was expected. */
ls_result ls_policy_set(ls_policy_instance *instance, const char *parameter, double value, ls_error *error);

/* The decider to hand to a machine; it borrows the instance. */
ls_decider ls_policy_decider(const ls_policy_instance *instance);

/* The word of `words` nearest to `word` by edit distance, or NULL if none is near (distance > half the length).
 * get(words, i) gives the i-th word. Shared with the spec reader. */
const char *ls_nearest(const char *word, const void *words, uint32_t count,
                       const char *(*get)(const void *words, uint32_t index));

#endif
