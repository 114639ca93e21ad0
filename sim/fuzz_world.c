/* fuzz_world.c - see fuzz_world.h. Draws come from one stream of the seed, in a fixed order. Fault rates are far above any real
 * store's: a few seconds of a small world should meet several of them, one inside the other. */
#include "sim/fuzz_world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DRAIN_S 1e5 /* patience beyond every policy's longest pause after every loss in a row */

static bool chance(ls_random *random, double share)
{
    return ls_random_uniform(random) < share;
}

/* Between least and most, evenly on a logarithmic scale. */
static double between(ls_random *random, double least, double most)
{
    return least * exp(ls_random_uniform(random) * log(most / least));
}

static ls_law constant(double value_s)
{
    return (ls_law){.law = LS_LAW_CONSTANT, .scale_s = value_s, .tail_shape = 2, .draws = 1};
}

static ls_law exponential(double mean_s)
{
    return (ls_law){.law = LS_LAW_EXPONENTIAL, .scale_s = mean_s, .tail_shape = 2, .draws = 1};
}

static void draw_store(ls_random *random, ls_scenario *s)
{
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    const ls_store_preset *preset = &presets[ls_random_below(random, count)];
    s->store = preset->config;
    snprintf(s->store_preset, sizeof s->store_preset, "%s", preset->name);
    bool timeless = preset->config.conditional_won.scale_s <= 0 && preset->config.conditional_won.floor_s <= 0;
    if (timeless || chance(random, 0.3)) { /* requests that take no time at all would make a closed loop endless */
        s->store.conditional_won = exponential(between(random, 0.005, 1));
        s->store.conditional_lost = constant(between(random, 0.005, 1));
        s->store.get = constant(between(random, 0.001, 0.2));
        s->store.list = s->store.head = exponential(between(random, 0.001, 0.2));
    }
    static const double shares[] = {0, 0.3, 0.7, 1};
    s->store.read_effect_share = shares[ls_random_below(random, 4)];
    s->store.put_effect_share = shares[ls_random_below(random, 4)];
    s->store.conditional_effect_share = shares[ls_random_below(random, 4)];
    if (chance(random, 0.15)) s->store.write_limit_per_s = between(random, 2, 50);
    if (chance(random, 0.1)) s->store.key_write_limit_per_s = between(random, 1, 20);
    if (chance(random, 0.15)) s->store.client_bandwidth_bytes_per_s = between(random, 1e5, 1e8);
    if (chance(random, 0.15)) s->store.server_bandwidth_bytes_per_s = between(random, 1e6, 1e9);
    if (chance(random, 0.15)) {
        s->store.server_slots = 1 + ls_random_below(random, 4);
        s->store.slot_fixed_s = between(random, 1e-3, 0.05);
    }
}

static ls_result draw_policy(ls_random *random, ls_scenario *s, ls_error *error)
{
    uint32_t policies, presets;
    const ls_policy *const *policy = ls_policies(&policies);
    const ls_policy_preset *preset = ls_policy_presets(&presets);
    uint64_t pick = ls_random_below(random, policies + presets);
    const char *name = pick < policies ? policy[pick]->name : preset[pick - policies].name;
    ls_result result = ls_policy_instantiate(name, &s->policy, error);
    if (result != LS_OK) return result;
    snprintf(s->policy_name, sizeof s->policy_name, "%s", name);
    bool limited = chance(random, 0.3);
    double limit = (double)(1 + ls_random_below(random, 4));
    for (uint32_t i = 0; limited && i < s->policy.policy->parameter_count; i++) {
        if (strcmp(s->policy.policy->parameters[i].name, "batch_limit") == 0) s->policy.values[i] = limit;
    }
    return LS_OK;
}

static void draw_work(ls_random *random, ls_scenario *s)
{
    static const ls_arrival_law laws[] = {LS_ARRIVAL_POISSON, LS_ARRIVAL_POISSON, LS_ARRIVAL_POISSON,
                                          LS_ARRIVAL_REGULAR, LS_ARRIVAL_CLOSED, LS_ARRIVAL_ONCE};
    s->producers.count = 1 + ls_random_below(random, 8);
    s->producers.established = chance(random, 0.5);
    s->producers.start_spread_s = chance(random, 0.3) ? 0 : between(random, 0.01, 3);
    s->manifest.initial_entries = chance(random, 0.5) ? 0 : ls_random_below(random, 40);
    s->manifest.layout = (uint32_t)ls_random_below(random, 2);
    s->manifest.discovery = (uint32_t)ls_random_below(random, 3);
    s->batches.law = laws[ls_random_below(random, sizeof laws / sizeof laws[0])];
    s->batches.rate_per_s = between(random, 0.1, 4);
    s->batches.bytes = (uint64_t)between(random, 1e3, 1e7);
    s->batches.bytes_sigma = chance(random, 0.3) ? 0.5 : 0;
    s->batches.data_parallel = 1 + ls_random_below(random, 4);
    s->upload.concurrency = 1 + ls_random_below(random, 4);
    s->upload.backlog_batches = 1 + ls_random_below(random, chance(random, 0.5) ? 3 : 30);
    s->upload.synchronous = chance(random, 0.2);
    s->upload.instantaneous = chance(random, 0.15);
    s->warm_up_s = 0;
    s->duration_s = between(random, 1, 25);
    s->drain_s = DRAIN_S;
    s->check_everything = true;
}

static void draw_producer_faults(ls_random *random, ls_scenario *s)
{
    ls_fault_config *f = &s->faults;
    if (chance(random, 0.35)) f->crash_rate_per_s = between(random, 0.02, 0.5);
    if (chance(random, 0.4)) {
        f->crash_point = (uint32_t)(1 + ls_random_below(random, LS_CRASH_AFTER_READ));
        f->crash_share = between(random, 0.05, 1);
    }
    f->restart_s = chance(random, 0.2) ? 0 : between(random, 0.05, 5);
    if (!chance(random, 0.4)) return;
    f->pause_rate_per_s = between(random, 0.02, 0.5);
    f->pause_s = between(random, 0.2, 15);
    if (chance(random, 0.7)) f->takeover_s = f->pause_s * ls_random_uniform_positive(random);
}

static void draw_request_faults(ls_random *random, ls_scenario *s)
{
    ls_fault_config *f = &s->faults;
    f->timeout_s = between(random, 0.1, 5);
    f->refusal_s = between(random, 0.002, 0.2);
    f->linger_s = between(random, 0.01, 10);
    if (chance(random, 0.35)) f->lost_reply_share = between(random, 0.02, 0.6);
    if (chance(random, 0.35)) f->error_before_share = between(random, 0.02, 0.6);
    if (chance(random, 0.35)) f->linger_share = between(random, 0.02, 0.6);
    if (chance(random, 0.35)) f->conflict_share = between(random, 0.02, 0.6);
    double whole_s = s->duration_s;
    if (chance(random, 0.15)) {
        f->throttle_storm_start_s = whole_s * ls_random_uniform(random);
        f->throttle_storm_length_s = between(random, 0.1, 10);
    }
    if (chance(random, 0.2)) {
        f->slow_start_s = whole_s * ls_random_uniform(random);
        f->slow_length_s = between(random, 0.1, 10);
        f->slow_factor = between(random, 2, 100);
    }
    if (chance(random, 0.2)) {
        f->cut_client = ls_random_below(random, s->producers.count);
        f->cut_start_s = whole_s * ls_random_uniform(random);
        f->cut_length_s = between(random, 0.1, 10);
    }
}

/* A training job, its checkpoints, and reclaimers, from a stream of their own: the rest of a seed's world stays what it was. */
static void draw_training(uint64_t seed, ls_scenario *s)
{
    ls_random stream = ls_random_open(seed, 0, LS_RANDOM_TEST, 1), *random = &stream;
    if (s->upload.instantaneous || !chance(random, 0.35)) return;
    s->trainer.present = chance(random, 0.8);
    s->batches.context_parallel = 1 + ls_random_below(random, 2);
    s->trainer.ranks_per_node = 1 + ls_random_below(random, 4);
    s->trainer.prefetch_steps = ls_random_below(random, 4);
    s->trainer.compute.scale_s = between(random, 0.001, 0.3);
    s->trainer.checkpoint_steps = chance(random, 0.8) ? 1 + ls_random_below(random, 10) : 0;
    s->trainer.checkpoint_s = chance(random, 0.5) ? between(random, 0.01, 1) : 0;
    s->trainer.named_every = ls_random_below(random, 4);
    s->trainer.restart_s = between(random, 0.05, 3);
    s->trainer.rollback_checkpoints = ls_random_below(random, 3);
    s->reclaim.count = ls_random_below(random, 3);
    s->reclaim.every_s = between(random, 0.2, 5);
    s->reclaim.keep_last = 1 + ls_random_below(random, 3);
    s->reclaim.keep_every = ls_random_below(random, 4);
    s->reclaim.grace_s = chance(random, 0.5) ? 0 : between(random, 0.1, 5);
    s->reclaim.keep_versions = 1 + ls_random_below(random, 4);
    s->reclaim.delete_concurrency = 1 + ls_random_below(random, 8);
    s->reclaim.clock_skew_s = chance(random, 0.3) ? between(random, 0.1, 10) * (chance(random, 0.5) ? 1 : -1) : 0;
    if (chance(random, 0.5)) s->faults.trainer_crash_rate_per_s = between(random, 0.02, 0.3);
    if (chance(random, 0.5)) s->faults.reclaimer_crash_rate_per_s = between(random, 0.02, 0.5);
}

ls_result ls_fuzz_draw(uint64_t seed, ls_scenario *scenario, ls_error *error)
{
    uint32_t count;
    const ls_option *options = ls_scenario_options(&count);
    memset(scenario, 0, sizeof *scenario);
    ls_options_default(options, count, scenario);
    ls_random random = ls_random_open(seed, 0, LS_RANDOM_TEST, 0);
    draw_work(&random, scenario);
    draw_store(&random, scenario);
    ls_result result = draw_policy(&random, scenario, error);
    if (result != LS_OK) return result;
    draw_training(seed, scenario);
    if (chance(&random, 0.1)) return LS_OK; /* a world without faults has stricter rules: nobody may be fenced */
    if (!scenario->policy.policy->simulator_only) draw_producer_faults(&random, scenario);
    draw_request_faults(&random, scenario);
    return LS_OK;
}

ls_result ls_fuzz_run(const ls_scenario *scenario, uint64_t seed, const ls_simulation_watcher *watcher, ls_error *error)
{
    ls_run_result result;
    return ls_simulate_watched(scenario, seed, 0, watcher, &result, error);
}

/* --- shrinking ------------------------------------------------------------------------------------------------------- */

typedef struct shrinking {
    ls_scenario *best;
    uint64_t seed;
    const ls_simulation_watcher *watcher;
    uint32_t runs, most_runs;
    ls_result result;
    ls_error *error;
} shrinking;

/* Keeps the candidate if it fails too. */
static bool keep(shrinking *work, const ls_scenario *candidate)
{
    if (work->runs >= work->most_runs || memcmp(candidate, work->best, sizeof *candidate) == 0) return false;
    work->runs++;
    ls_error error = {""};
    ls_result result = ls_fuzz_run(candidate, work->seed, work->watcher, &error);
    if (result == LS_OK || result == LS_ERROR_MEMORY || result == LS_ERROR_INVALID) return false;
    *work->best = *candidate;
    *work->error = error;
    work->result = result;
    return true;
}

/* Each option at its default, faults first (there it means off). What a small failing world needs anyway is left alone. */
static bool drop_option(shrinking *work, const ls_option *option)
{
    static const char *const kept[] = {"world", "duration_s", "warm_up_s", "producers.count", "drain_s", "check_everything",
                                       "batches.bytes", "batches.law", "batches.rate_per_s", "upload.backlog_batches", "store.preset"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (strcmp(option->path, kept[i]) == 0) return false;
    }
    if (strncmp(option->path, "store.", 6) == 0) return false; /* their defaults are the preset's: see simplify_store */
    ls_scenario candidate = *work->best;
    ls_options_default(option, 1, &candidate);
    return keep(work, &candidate);
}

static bool drop_options(shrinking *work, bool faults)
{
    uint32_t count;
    const ls_option *options = ls_scenario_options(&count);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if ((strncmp(options[i].path, "faults.", 7) == 0) == faults) any |= drop_option(work, &options[i]);
    }
    return any;
}

static bool fewer_producers(shrinking *work)
{
    bool any = false;
    while (work->best->producers.count > 1) {
        ls_scenario candidate = *work->best;
        candidate.producers.count /= 2;
        if (keep(work, &candidate)) {
            any = true;
            continue;
        }
        candidate.producers.count = work->best->producers.count - 1;
        if (!keep(work, &candidate)) break;
        any = true;
    }
    return any;
}

static bool shorter(shrinking *work)
{
    bool any = false;
    for (double factor = 0.5; factor < 0.95; factor = 1 - (1 - factor) / 2) {
        ls_scenario candidate = *work->best;
        candidate.duration_s = ceil(candidate.duration_s * factor * 100) / 100;
        if (candidate.duration_s >= work->best->duration_s || !keep(work, &candidate)) continue;
        any = true;
        factor = 0.25;
    }
    return any;
}

/* Fewer batches: an empty history, a smaller backlog, slower arrivals. */
static bool fewer_batches(shrinking *work)
{
    bool any = false;
    for (int i = 0; i < 8; i++) {
        ls_scenario candidate = *work->best;
        candidate.batches.rate_per_s /= 2;
        if (candidate.batches.rate_per_s < 0.05 || !keep(work, &candidate)) break;
        any = true;
    }
    ls_scenario candidate = *work->best;
    candidate.upload.backlog_batches = 1;
    any |= keep(work, &candidate);
    candidate = *work->best;
    candidate.batches.bytes = 1000;
    any |= keep(work, &candidate);
    candidate = *work->best;
    candidate.batches.law = LS_ARRIVAL_ONCE;
    return any | keep(work, &candidate);
}

static bool simplify_store(shrinking *work)
{
    ls_scenario candidate = *work->best;
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(presets[i].name, candidate.store_preset) == 0) candidate.store = presets[i].config;
    }
    bool any = keep(work, &candidate);
    candidate = *work->best;
    ls_error ignored;
    if (ls_policy_instantiate("immediate", &candidate.policy, &ignored) == LS_OK) {
        memset(candidate.policy_name, 0, sizeof candidate.policy_name);
        snprintf(candidate.policy_name, sizeof candidate.policy_name, "immediate");
        any |= keep(work, &candidate);
    }
    return any;
}

ls_result ls_fuzz_shrink(ls_scenario *scenario, uint64_t seed, const ls_simulation_watcher *watcher, uint32_t most_runs,
                         uint32_t *runs, ls_error *error)
{
    shrinking work = {.best = scenario, .seed = seed, .watcher = watcher, .most_runs = most_runs, .error = error};
    work.result = ls_fuzz_run(scenario, seed, watcher, error);
    work.runs = 1;
    bool any = work.result != LS_OK;
    while (any && work.runs < most_runs) {
        any = drop_options(&work, true);
        any |= fewer_producers(&work);
        any |= shorter(&work);
        any |= simplify_store(&work);
        any |= drop_options(&work, false);
        any |= fewer_batches(&work);
    }
    if (runs != NULL) *runs = work.runs;
    return work.result;
}
