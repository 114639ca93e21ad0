/* registry.c - the table of policies and presets, and finding them by name.
 *
 * A preset is a policy under a product's name with that product's documented defaults; each names where they are documented. Values
 * move between releases, so the meaning says what was read. Retry budgets that end in an error for the caller are modelled as
 * a new submission after a pause (see `retries` and `resubmit_pause_s`), counted in gave_up_per_s.
 */
#include "policies/common.h"

#include <stdio.h>
#include <string.h>

/* The program's own, then room for those that plug-ins add; the first NULL ends the list. Filled before any world is made and never
 * after: the one table of the process that is not constant. */
static const ls_policy *policies[LS_POLICIES_MAX] = {
    &ls_policy_immediate, &ls_policy_fixed, &ls_policy_backoff_none, &ls_policy_backoff_full, &ls_policy_backoff_equal,
    &ls_policy_backoff_decorrelated, &ls_policy_aimd, &ls_policy_delay, &ls_policy_aloha, &ls_policy_slotted,
    &ls_policy_linger, &ls_policy_bbr, &ls_policy_headroom, &ls_policy_retry_budget, &ls_policy_turns, &ls_policy_dac, &ls_policy_dac_r1, &ls_policy_dac_r2, &ls_policy_dac_r3, &ls_policy_oracle,
};

static const ls_policy_preset presets[] = {
    {"naive", "immediate", "one batch a commit, retry at once: what everybody writes first", "ours", {{"batch_limit", 1}}, 1},
    {"opendata", "immediate", "OpenData stateless buffer: one CAS an append, no back-off",
     "https://github.com/opendata-oss/opendata (buffer/)", {{"batch_limit", 1}}, 1},
    {"delta", "immediate", "Delta Lake on Spark: 10,000,000 attempts, no sleep", "https://github.com/delta-io/delta (maxCommitAttempts)",
     {{"retries", 10000000}}, 1},
    {"delta-kernel", "immediate", "Delta Kernel: 200 retries at once", "https://github.com/delta-io/delta", {{"retries", 200}}, 1},
    {"delta-rs", "immediate", "delta-rs before its repair: 15 retries, no sleep", "https://github.com/delta-io/delta-rs/issues/3066",
     {{"retries", 15}}, 1},
    {"iceberg", "backoff-none", "Apache Iceberg: 4 retries, 100 ms doubling to 60 s, noise 10 %",
     "https://iceberg.apache.org/docs/latest/configuration/",
     {{"base_s", 0.05}, {"cap_s", 60}, {"noise", 0.1}, {"retries", 4}}, 4},
    {"paimon", "backoff-none", "Apache Paimon: 10 retries, 10 ms doubling to 10 s",
     "https://paimon.apache.org/docs/master/maintenance/configurations/", {{"base_s", 0.005}, {"cap_s", 10}, {"retries", 10}}, 3},
    {"nessie", "backoff-full",
     "Project Nessie: first sleep 5 to 25 ms, doubling up to 250 ms; its 5 s for a commit are not modelled",
     "https://projectnessie.org/nessie-latest/configuration/",
     {{"base_s", 0.0125}, {"cap_s", 0.25}, {"least_share", 0.2}}, 3},
    {"ducklake", "backoff-equal", "DuckLake: 10 retries, 100 ms, factor 1.5, drawn from half to all of it",
     "https://github.com/duckdb/ducklake/issues/233",
     {{"base_s", 0.0666667}, {"cap_s", 60}, {"multiplier", 1.5}, {"retries", 10}}, 4},
    {"s3-queue", "backoff-none", "leaderless log's s3-queue: 10 retries, 50 ms doubling to 5 s",
     "https://github.com/openlakestream/leaderless-log-protocol", {{"base_s", 0.025}, {"cap_s", 5}, {"retries", 10}}, 3},
    {"lance", "slotted", "Lance and LanceDB: slots of the first attempt's duration, 20 retries",
     "https://docs.rs/crate/lance-core/latest", {{"retries", 20}}, 1},
    {"dac-r4", "slotted", "reading R4 of the paper: slotted back-off as a Lance-derived code base ships it",
     "our reconstruction after arXiv 2605.09994", {{"retries", 0}}, 1},
    {"warpstream", "fixed", "WarpStream agents: a batch every 250 ms",
     "https://docs.warpstream.com/warpstream/configuration/low-latency-clusters", {{"interval_s", 0.25}}, 1},
    {"turbopuffer", "fixed", "turbopuffer: one write-ahead-log entry a second", "https://turbopuffer.com/docs/architecture",
     {{"interval_s", 1}}, 1},
    {"kafka-linger", "linger", "Kafka 4 producer: linger 5 ms", "https://kafka.apache.org/documentation/#producerconfigs",
     {{"age_s", 0.005}, {"batches", 1000000}, {"retry_s", 0.1}}, 3},
};

#define PRESETS LS_COUNT_OF(presets)

static uint32_t policy_count(void)
{
    uint32_t count = 0;
    while (count < LS_POLICIES_MAX && policies[count] != NULL) count++;
    return count;
}

const ls_policy *const *ls_policies(uint32_t *count)
{
    *count = policy_count();
    return policies;
}

const ls_policy_preset *ls_policy_presets(uint32_t *count)
{
    *count = PRESETS;
    return presets;
}

/* Edit distance (Levenshtein) of two short words; words longer than the table count as far. */
static uint32_t distance(const char *left, const char *right)
{
    enum { MOST = 63 };
    size_t n = strlen(left), m = strlen(right);
    if (n > MOST || m > MOST) return UINT32_MAX;
    uint32_t row[MOST + 1];
    for (uint32_t j = 0; j <= m; j++) row[j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= m; j++) {
            uint32_t substitute = diagonal + (left[i - 1] != right[j - 1]);
            uint32_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = substitute < shift ? substitute : shift;
        }
    }
    return row[m];
}

const char *ls_nearest(const char *word, const void *words, uint32_t count,
                       const char *(*get)(const void *words, uint32_t index))
{
    const char *best = NULL;
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t apart = distance(word, get(words, i));
        if (apart < least) {
            least = apart;
            best = get(words, i);
        }
    }
    return best != NULL && least <= (strlen(word) + 1) / 2 ? best : NULL;
}

static const char *name_at(const void *words, uint32_t index)
{
    uint32_t count = *(const uint32_t *)words;
    return index < count ? policies[index]->name : presets[index - count].name;
}

static const ls_policy *policy_named(const char *name)
{
    for (uint32_t i = 0; i < LS_POLICIES_MAX && policies[i] != NULL; i++) {
        if (strcmp(policies[i]->name, name) == 0) return policies[i];
    }
    return NULL;
}

ls_result ls_policies_add(const ls_policy *policy, ls_error *error)
{
    uint32_t count = policy_count();
    bool taken = policy_named(policy->name) != NULL;
    for (uint32_t i = 0; i < PRESETS && !taken; i++) taken = strcmp(presets[i].name, policy->name) == 0;
    if (taken) {
        return ls_fail(error, LS_ERROR_INVALID, "there is a policy or preset '%s' already: give yours another name", policy->name);
    }
    if (count == LS_POLICIES_MAX) {
        return ls_fail(error, LS_ERROR_INVALID, "no room for policy '%s': at most %u policies", policy->name, LS_POLICIES_MAX);
    }
    policies[count] = policy;
    return LS_OK;
}

static void set_defaults(ls_policy_instance *instance, const ls_policy *policy)
{
    memset(instance, 0, sizeof *instance);
    instance->policy = policy;
    for (uint32_t i = 0; i < policy->parameter_count; i++) instance->values[i] = policy->parameters[i].default_value;
}

ls_result ls_policy_instantiate(const char *name, ls_policy_instance *instance, ls_error *error)
{
    const ls_policy *policy = policy_named(name);
    if (policy != NULL) {
        set_defaults(instance, policy);
        return LS_OK;
    }
    for (uint32_t i = 0; i < PRESETS; i++) {
        const ls_policy_preset *preset = &presets[i];
        if (strcmp(preset->name, name) != 0) continue;
        policy = policy_named(preset->policy);
        if (policy == NULL) return ls_fail(error, LS_ERROR_INVALID, "preset '%s' names no policy", name);
        set_defaults(instance, policy);
        ls_result result = LS_OK;
        for (uint32_t k = 0; k < preset->value_count && result == LS_OK; k++) {
            result = ls_policy_set(instance, preset->value[k].parameter, preset->value[k].value, error);
        }
        return result;
    }
    uint32_t count = policy_count();
    const char *near = ls_nearest(name, &count, count + PRESETS, name_at);
    return ls_fail(error, LS_ERROR_INVALID, "there is no policy '%s'%s%s%s", name,
                   near != NULL ? ": did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

static const char *parameter_at(const void *words, uint32_t index)
{
    return ((const ls_policy *)words)->parameters[index].name;
}

ls_result ls_policy_set(ls_policy_instance *instance, const char *parameter, double value, ls_error *error)
{
    const ls_policy *policy = instance->policy;
    for (uint32_t i = 0; i < policy->parameter_count; i++) {
        const ls_policy_parameter *declared = &policy->parameters[i];
        if (strcmp(declared->name, parameter) != 0) continue;
        if (!(value >= declared->minimum && value <= declared->maximum)) {
            return ls_fail(error, LS_ERROR_INVALID, "policy '%s': %s is %g, expected %g to %g (%s; %s)", policy->name,
                           parameter, value, declared->minimum, declared->maximum, declared->unit, declared->meaning);
        }
        instance->values[i] = value;
        return LS_OK;
    }
    const char *near = ls_nearest(parameter, policy, policy->parameter_count, parameter_at);
    return ls_fail(error, LS_ERROR_INVALID, "policy '%s' has no parameter '%s'%s%s%s",
                   policy->name, parameter, near != NULL ? ": did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

ls_decider ls_policy_decider(const ls_policy_instance *instance)
{
    return (ls_decider){.decide = instance->policy->decide, .parameters = instance,
                        .looks = instance->policy->looks};
}
