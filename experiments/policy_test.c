/* policy_test.c - see policy_test.h.
 *
 * A run of views tells a story that could happen: time goes forward, losses add up until a win, a plan that was made is offered back.
 * Every few views the story starts anew with other parameters, a fresh state and another table of producers.
 */
#include "experiments/policy_test.h"

#include "experiments/spec.h"
#include "policies/plugin.h"
#include "sim/fuzz_world.h"

#include <math.h>
#include <string.h>

#define GUARD_BYTES   64u
#define GUARD         0xa5
#define STORY_VIEWS   50u
#define ROWS_MAX      64u
#define BACKLOG_LIMIT 16u

typedef struct guarded_state {
    unsigned char before[GUARD_BYTES];
    _Alignas(16) unsigned char bytes[LS_POLICY_STATE_BYTES];
    unsigned char after[GUARD_BYTES];
} guarded_state;

typedef struct story {
    const ls_policy *policy;
    ls_policy_instance instance;
    guarded_state state;
    ls_random random; /* the policy's own stream */
    ls_random draw;   /* what the story is made from */
    ls_commit_view view;
    ls_manifest *manifest;
} story;

static uint64_t below(story *s, uint64_t count) { return ls_random_below(&s->draw, count); }

static void draw_parameters(story *s)
{
    s->instance = (ls_policy_instance){.policy = s->policy};
    for (uint32_t i = 0; i < s->policy->parameter_count; i++) {
        const ls_policy_parameter *parameter = &s->policy->parameters[i];
        double choice[] = {parameter->minimum, parameter->maximum, parameter->default_value, parameter->default_value};
        s->instance.values[i] = choice[below(s, LS_COUNT_OF(choice))];
    }
}

static ls_result draw_table(story *s)
{
    ls_row row[ROWS_MAX];
    uint64_t version = 1 + below(s, 1000);
    uint32_t rows = (uint32_t)below(s, ROWS_MAX + 1);
    for (uint32_t i = 0; i < rows; i++) {
        row[i] = (ls_row){.producer = i, .epoch = 1 + (uint32_t)below(s, 3), .last_version = 1 + below(s, version), .closed = below(s, 8) == 0};
    }
    ls_manifest_parts parts = {.version = version, .rows = row, .row_count = rows};
    ls_manifest_release(s->manifest);
    s->manifest = NULL;
    ls_result result = ls_manifest_build(&parts, &s->manifest);
    s->view.manifest = s->manifest;
    s->view.own_slot = rows > 0 && below(s, 8) != 0 ? (uint32_t)below(s, rows) : LS_NO_SLOT;
    return result;
}

static ls_result begin_story(story *s)
{
    int64_t now_ns = (int64_t)below(s, (uint64_t)LS_NANOSECONDS_PER_SECOND * 1000000u);
    draw_parameters(s);
    memset(&s->state, GUARD, sizeof s->state);
    memset(s->state.bytes, 0, sizeof s->state.bytes);
    s->view = (ls_commit_view){.now_ns = now_ns, .planned_ns = LS_NEVER_NS, .backlog_limit = BACKLOG_LIMIT};
    return draw_table(s);
}

/* The next thing that happens to the producer. */
static void next_view(story *s)
{
    static const ls_moment moments[] = {LS_MOMENT_READY, LS_MOMENT_READY, LS_MOMENT_WON, LS_MOMENT_LOST, LS_MOMENT_LOST,
                                        LS_MOMENT_THROTTLED, LS_MOMENT_ABORTED};
    ls_commit_view *v = &s->view;
    v->moment = moments[below(s, LS_COUNT_OF(moments))];
    v->now_ns += (int64_t)below(s, (uint64_t)LS_NANOSECONDS_PER_SECOND * 10u);
    v->pending_batches = (uint32_t)below(s, BACKLOG_LIMIT + 1u);
    if (v->moment != LS_MOMENT_WON && v->pending_batches == 0) v->pending_batches = 1;
    v->pending_bytes = v->pending_batches * (1 + below(s, 1u << 24));
    int64_t age_ns = (int64_t)below(s, 60u * (uint64_t)LS_NANOSECONDS_PER_SECOND);
    v->oldest_ready_ns = v->pending_batches == 0 ? LS_NEVER_NS : v->now_ns > age_ns ? v->now_ns - age_ns : 0;
    if (v->moment == LS_MOMENT_READY) return;
    v->planned_ns = LS_NEVER_NS;
    v->attempts++;
    v->read_ns = (int64_t)below(s, LS_NANOSECONDS_PER_SECOND);
    v->put_ns = v->moment == LS_MOMENT_ABORTED ? 0 : (int64_t)below(s, LS_NANOSECONDS_PER_SECOND);
    v->attempt_ns = v->read_ns + v->put_ns;
    v->losses_in_row = v->moment == LS_MOMENT_LOST ? v->losses_in_row + 1 : v->moment == LS_MOMENT_WON ? 0 : v->losses_in_row;
    bool refused = v->moment == LS_MOMENT_THROTTLED || v->moment == LS_MOMENT_ABORTED;
    v->throttles_in_row = refused ? v->throttles_in_row + 1 : 0;
    v->retry_after_ns = v->moment == LS_MOMENT_THROTTLED ? (int64_t)below(s, 5u * (uint64_t)LS_NANOSECONDS_PER_SECOND) : 0;
    v->versions_passed = below(s, 20);
    v->sight_gap_ns = (int64_t)below(s, 10u * (uint64_t)LS_NANOSECONDS_PER_SECOND);
}

static bool guards_stand(const guarded_state *state)
{
    for (uint32_t i = 0; i < GUARD_BYTES; i++) {
        if (state->before[i] != GUARD || state->after[i] != GUARD) return false;
    }
    return true;
}

static const char *moment_name(ls_moment moment)
{
    static const char *const names[] = {"?", "ready", "won", "lost", "throttled", "aborted"};
    return names[moment];
}

static ls_result broken(const story *s, uint32_t index, const char *what, ls_error *error)
{
    return ls_fail(error, LS_ERROR_VIOLATED, "view %u (moment %s, %u of %u batches pending, %u losses in a row): %s", index,
                   moment_name(s->view.moment), s->view.pending_batches, s->view.backlog_limit, s->view.losses_in_row, what);
}

static ls_result judge(const story *s, uint32_t index, const ls_commit_decision *decision, ls_error *error)
{
    const ls_commit_view *v = &s->view;
    if (decision->try_at_ns == INT64_MIN) {
        return broken(s, index, "the answer's time is INT64_MIN, which is what converting NaN or infinity gives", error);
    }
    /* With a full backlog no batch becomes ready, so nobody would ever ask again. */
    if (decision->try_at_ns == LS_NEVER_NS && v->pending_batches == v->backlog_limit) {
        return broken(s, index, "the answer is 'never' with a full backlog: nothing would wake this producer again", error);
    }
    if (v->moment == LS_MOMENT_THROTTLED && decision->try_at_ns < v->now_ns + v->retry_after_ns) {
        return broken(s, index, "the store asked to wait and the answer comes sooner (ls_common_answer does this right)", error);
    }
    return LS_OK;
}

static ls_result ask(story *s, uint32_t index, ls_error *error)
{
    const ls_commit_view view = s->view;
    const ls_policy_instance instance = s->instance;
    guarded_state twin = s->state;
    ls_random twin_random = s->random;
    ls_commit_decision decision = {.try_at_ns = LS_NEVER_NS}, again = {.try_at_ns = LS_NEVER_NS};
    s->policy->decide(&s->instance, s->state.bytes, &s->random, &s->view, &decision);
    s->policy->decide(&s->instance, twin.bytes, &twin_random, &s->view, &again);
    if (!guards_stand(&s->state)) {
        return broken(s, index, "bytes beside the state were written: it has LS_POLICY_STATE_BYTES (LS_STATE_FITS checks yours)", error);
    }
    if (memcmp(&view, &s->view, sizeof view) != 0) return broken(s, index, "the view was changed", error);
    if (memcmp(&instance, &s->instance, sizeof instance) != 0) return broken(s, index, "the parameters were changed", error);
    if (decision.try_at_ns != again.try_at_ns || decision.batch_limit != again.batch_limit || decision.gave_up != again.gave_up ||
        memcmp(twin.bytes, s->state.bytes, sizeof twin.bytes) != 0 || memcmp(&twin_random, &s->random, sizeof twin_random) != 0) {
        return broken(s, index, "the same state, stream and view gave another answer or state: keep everything in the state, draw only "
                                "from the stream", error);
    }
    s->view.planned_ns = decision.try_at_ns;
    return judge(s, index, &decision, error);
}

ls_result ls_policy_test_decisions(const ls_policy *policy, uint64_t seed, uint32_t views, ls_error *error)
{
    if (policy->simulator_only) return LS_OK;
    story s = {.policy = policy, .random = ls_random_open(seed, 0, LS_RANDOM_POLICY, 0), .draw = ls_random_open(seed, 0, LS_RANDOM_TEST, 0)};
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < views && result == LS_OK; i++) {
        if (i % STORY_VIEWS == 0 && begin_story(&s) != LS_OK) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
        if (result != LS_OK) break;
        next_view(&s);
        result = ask(&s, i, error);
    }
    ls_manifest_release(s.manifest);
    return result;
}

/* ---- worlds ---- */

static const char *const worlds[][2] = {
    {"one producer alone", "{\"base\":{\"policy\":\"immediate\",\"producers\":{\"count\":1},\"duration_s\":60,\"warm_up_s\":0,\"drain_s\":100000,"
                           "\"check_everything\":true,\"store\":\"s3-standard\"}}"},
    {"64 producers, more batches than commits", "{\"base\":{\"policy\":\"immediate\",\"producers\":{\"count\":64},\"duration_s\":30,\"warm_up_s\":0,"
                                                "\"drain_s\":100000,\"store\":\"s3-standard\"}}"},
    {"16 producers with a backlog of one", "{\"base\":{\"policy\":\"immediate\",\"producers\":{\"count\":16},\"upload\":{\"backlog_batches\":1},"
                                           "\"duration_s\":30,\"warm_up_s\":0,\"drain_s\":100000,\"store\":\"s3-standard\"}}"},
    {"a throttle storm", "{\"base\":{\"policy\":\"immediate\",\"producers\":{\"count\":8},\"duration_s\":30,\"warm_up_s\":0,\"drain_s\":100000,"
                         "\"faults\":{\"throttle_storm_start_s\":5,\"throttle_storm_length_s\":10},\"store\":\"s3-standard\"}}"}};

static ls_result same_results(const ls_run_result *first, const ls_run_result *second, ls_error *error)
{
    uint32_t count;
    const ls_metric *metrics = ls_metrics(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(first->values[i]) && isnan(second->values[i])) continue;
        if (first->values[i] == second->values[i]) continue;
        return ls_fail(error, LS_ERROR_VIOLATED, "two runs under one seed differ: %s is %.17g and %.17g; keep everything in the state, draw "
                                                 "only from the stream", metrics[i].name, first->values[i], second->values[i]);
    }
    return LS_OK;
}

static ls_result run_world(const char *name, const char *text, uint64_t seed, ls_error *error)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_spec *spec = NULL;
    ls_run_result first, second;
    ls_result result = ls_spec_parse("policy-test", text, strlen(text), &vocabulary, false, &spec, error);
    if (result != LS_OK) return result;
    ls_scenario *scenario = &spec->points[0].scenario;
    result = ls_policy_instantiate(name, &scenario->policy, error);
    if (result == LS_OK) result = ls_simulate(scenario, seed, 0, &first, error);
    if (result == LS_OK) result = ls_simulate(scenario, seed, 0, &second, error);
    if (result == LS_OK) result = same_results(&first, &second, error);
    ls_spec_free(spec);
    return result;
}

ls_result ls_policy_test_worlds(const char *name, uint64_t seed, ls_error *error)
{
    for (uint32_t i = 0; i < LS_COUNT_OF(worlds); i++) {
        ls_error inner = {""};
        ls_result result = run_world(name, worlds[i][1], seed, &inner);
        if (result != LS_OK) return ls_fail(error, result, "%s: %s", worlds[i][0], inner.text);
    }
    return LS_OK;
}

/* The oracle plans for producers that stay; so does the spec reader tell those who write one. */
static void without_producer_faults(ls_scenario *scenario)
{
    scenario->faults.crash_rate_per_s = scenario->faults.crash_share = scenario->faults.pause_rate_per_s = 0;
    scenario->faults.crash_point = LS_CRASH_NONE;
}

ls_result ls_policy_test_faults(const char *name, uint64_t first_seed, uint32_t seeds, ls_error *error)
{
    for (uint32_t i = 0; i < seeds; i++) {
        ls_scenario scenario;
        ls_error inner = {""};
        uint64_t seed = first_seed + i;
        ls_result result = ls_fuzz_draw(seed, &scenario, &inner);
        if (result == LS_OK) result = ls_policy_instantiate(name, &scenario.policy, &inner);
        if (scenario.policy.policy->simulator_only) without_producer_faults(&scenario);
        if (result == LS_OK) result = ls_fuzz_run(&scenario, seed, NULL, &inner);
        if (result != LS_OK) return ls_fail(error, result, "random world %llu: %s", (unsigned long long)seed, inner.text);
    }
    return LS_OK;
}
