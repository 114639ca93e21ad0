/* run_real.c - one replication on a store that really holds bytes: the simulator's world on the real-time loop.
 *
 * The world, its machines and its policies are the very same as in virtual time; only the driver differs. Each run works
 * under a prefix of its own, which it empties when it is done, so that runs never meet and nothing is left behind. A store is
 * probed for put-if-absent before it is trusted.
 *
 * "delayed:ADDRESS" wraps the store so that every request takes as long as the scenario's own laws say: with a memory store
 * that is the simulated store in real time, for comparing the two drivers.
 */
#include "experiments/run_real.h"

#include "backend/loop.h"
#include "manifest/codec.h"
#include "manifest/tgb.h"
#include "sim/read_world.h"
#include "sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DELAYED "delayed:"

enum { LAW_LIST, LAW_HEAD, LAW_GET, LAW_PUT, LAW_CONDITIONAL, LAW_REMOVE, LAWS };

typedef struct real_run {
    const ls_scenario *scenario;
    ls_store *store;
    ls_loop *loop;
    ls_world *world;
    ls_readers *readers; /* world "read"; then there is no ls_world */
    char *prefix; /* this run's own */
    ls_law_sampler samplers[LAWS];
    ls_random delays;
} real_run;

/* --- the delaying wrapper ---------------------------------------------------------------------------------------------- */

static int64_t delay_of(void *context, const ls_object_request *request)
{
    real_run *run = context;
    int law = request->operation == LS_LIST   ? LAW_LIST
              : request->operation == LS_HEAD ? LAW_HEAD
              : request->operation == LS_GET  ? LAW_GET
              : request->operation == LS_DELETE ? LAW_REMOVE
              : request->if_absent && strstr(request->key, "/manifest/") != NULL ? LAW_CONDITIONAL
                                                                                : LAW_PUT;
    return ls_law_draw_ns(&run->samplers[law], &run->delays);
}

static ls_result wrap_in_delays(real_run *run, uint64_t seed, uint64_t replication, ls_error *error)
{
    const ls_store_config *config = &run->scenario->store;
    const ls_law *laws[LAWS] = {&config->list, &config->head, &config->get, &config->put, &config->conditional_won, &config->remove};
    for (int i = 0; i < LAWS; i++) {
        ls_result result = ls_law_prepare(laws[i], &run->samplers[i], error);
        if (result != LS_OK) return result;
    }
    run->delays = ls_random_open(seed, replication, LS_RANDOM_SERVICE, 0);
    ls_store *delayed = ls_store_new_delay(run->store, delay_of, run, config->conditional_effect_share);
    if (delayed == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for the delaying store");
    run->store = delayed;
    return LS_OK;
}

/* --- the loop's questions ----------------------------------------------------------------------------------------------- */

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    real_run *run = context;
    if (run->readers != NULL) return ls_readers_timer(run->readers, now_ns, kind, entity);
    return ls_world_timer(run->world, now_ns, kind, entity, argument);
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)kind;
    real_run *run = context;
    if (run->readers != NULL) return ls_readers_reply(run->readers, now_ns, entity, reply);
    return ls_world_reply(run->world, now_ns, entity, reply);
}

/* Content that is cheap to make and the same for the same slice: a 64-bit counter through a multiplier. */
static void fill_slice(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    const ls_key *key = context;
    uint64_t word = (key->number << 40) ^ (key->sequence << 20) ^ ((uint64_t)data_rank << 10) ^ context_rank;
    for (uint64_t at = 0; at < length; at += sizeof word) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(bytes + at, &word, length - at < sizeof word ? length - at : sizeof word);
    }
}

/* The batch of that name, of `size` bytes with its footer. */
static ls_result make_body(const ls_scenario *scenario, const ls_key *key, const ls_tgb_identity *identity, uint8_t *bytes,
                           uint64_t size)
{
    uint32_t data_ranks = (uint32_t)scenario->batches.data_parallel;
    uint32_t context_ranks = (uint32_t)scenario->batches.context_parallel, slices = data_ranks * context_ranks;
    uint64_t *lengths = ls_allocate_array(slices, sizeof *lengths);
    if (lengths == NULL) return LS_ERROR_MEMORY;
    uint64_t content = size - ls_tgb_footer_bytes(data_ranks, context_ranks);
    for (uint32_t i = 0; i < slices; i++) lengths[i] = content / slices + (i < content % slices);
    ls_key named = *key;
    ls_result result = ls_tgb_encode(identity, data_ranks, context_ranks, lengths, fill_slice, &named, bytes, size);
    ls_free(lengths);
    return result;
}

static ls_result on_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    real_run *run = context;
    ls_tgb_identity identity = {.producer = key->number, .sequence = key->sequence, .epoch = key->epoch};
    if (run->world == NULL) return LS_ERROR_INVALID; /* readers put nothing */
    if (!ls_world_source_range(run->world, key, &identity.source_begin, &identity.source_end)) return LS_ERROR_INVALID;
    return make_body(run->scenario, key, &identity, bytes, size);
}

/* --- before and after ----------------------------------------------------------------------------------------------------- */

static char *own_prefix(const char *base, uint64_t seed, uint64_t replication)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t size = strlen(base) + 128;
    char *prefix = ls_allocate(size);
    if (prefix == NULL) return NULL;
    snprintf(prefix, size, "%s%srun-%" PRIu64 "-%" PRIu64 "-%lld-%ld", base, base[0] == 0 || base[strlen(base) - 1] == '/' ? "" : "/",
             seed, replication, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, (long)getpid());
    return prefix;
}

static ls_result put_object(real_run *run, const ls_key *key, const uint8_t *bytes, uint64_t size, ls_error *error)
{
    char name[LS_KEY_TEXT_BYTES], full[LS_STORE_KEY_BYTES_MAX + 1];
    ls_key_format(key, name);
    if (snprintf(full, sizeof full, "%s/%s", run->prefix, name) >= (int)sizeof full) {
        return ls_fail(error, LS_ERROR_INVALID, "the backend's prefix is too long for keys of %u bytes", LS_STORE_KEY_BYTES_MAX);
    }
    ls_reply_status status = LS_REPLY_INVALID;
    ls_object_request request = {.operation = LS_PUT, .key = full, .if_absent = true, .body = bytes, .body_bytes = size};
    ls_result result = ls_store_call(run->store, &request, &status, NULL, NULL, error);
    if (result == LS_OK && status != LS_REPLY_OK) {
        return ls_fail(error, LS_ERROR_IO, "the store answered '%s' to the put of %s", ls_reply_status_name(status), full);
    }
    return result;
}

static ls_result put_manifest(real_run *run, const ls_manifest *manifest, ls_error *error)
{
    if (manifest == NULL) return LS_OK;
    ls_key key = ls_key_manifest(ls_manifest_version(manifest));
    uint64_t size = ls_manifest_encoded_bytes(manifest);
    uint8_t *bytes = ls_allocate(size);
    if (bytes == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a manifest of %" PRIu64 " bytes", size);
    ls_result result = ls_manifest_encode(manifest, bytes, size);
    if (result == LS_OK) result = put_object(run, &key, bytes, size, error);
    ls_free(bytes);
    return result;
}

/* Every batch that the readers' manifest lists, then the manifest. */
static ls_result put_lake(real_run *run, ls_error *error)
{
    const ls_manifest *manifest = ls_readers_manifest(run->readers);
    uint64_t size = run->scenario->batches.bytes, end = ls_manifest_end_step(manifest);
    uint8_t *bytes = ls_allocate(size);
    if (bytes == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a batch of %" PRIu64 " bytes", size);
    ls_result result = LS_OK;
    for (uint64_t step = 0; step < end && result == LS_OK; step++) {
        ls_entry entry;
        if (!ls_manifest_entry(manifest, step, &entry)) break;
        ls_key key = ls_key_data(entry.producer, entry.epoch, entry.sequence);
        ls_tgb_identity identity = {.producer = entry.producer,
                                    .sequence = entry.sequence,
                                    .source_begin = entry.source_begin,
                                    .source_end = entry.source_end,
                                    .epoch = entry.epoch};
        result = make_body(run->scenario, &key, &identity, bytes, size);
        if (result != LS_OK) ls_fail(error, result, "a batch cannot be made: %s", ls_result_name(result));
        if (result == LS_OK) result = put_object(run, &key, bytes, size, error);
    }
    ls_free(bytes);
    return result == LS_OK ? put_manifest(run, manifest, error) : result;
}

typedef struct listing {
    char **keys;
    uint32_t count;
    ls_reply_status status;
    bool done, failed;
} listing;

static void take_listing(void *context, const ls_object_reply *reply)
{
    listing *found = context;
    found->done = true;
    found->status = reply->status;
    if (reply->status != LS_REPLY_OK || reply->key_count == 0) return;
    found->keys = ls_allocate_array(reply->key_count, sizeof *found->keys);
    for (uint32_t i = 0; found->keys != NULL && i < reply->key_count; i++) {
        found->keys[i] = ls_duplicate(reply->keys[i]);
        if (found->keys[i] == NULL) break;
        found->count++;
    }
    found->failed = found->count < reply->key_count;
}

/* Removes everything under the run's prefix, page by page. Failure to clean up is told, but does not spoil the run. */
static void clean_up(real_run *run)
{
    for (bool more = true; more;) {
        listing found = {0};
        ls_object_request list = {.operation = LS_LIST, .key = run->prefix, .list_limit = LS_STORE_LIST_LIMIT_MAX};
        if (ls_store_submit(run->store, &list, take_listing, &found) != LS_OK) return;
        while (!found.done && ls_store_poll(run->store, LS_NANOSECONDS_PER_SECOND, NULL) == LS_OK) {}
        more = found.count > 0 && !found.failed;
        for (uint32_t i = 0; i < found.count; i++) {
            ls_reply_status status;
            ls_object_request removal = {.operation = LS_DELETE, .key = found.keys[i]};
            if (ls_store_call(run->store, &removal, &status, NULL, NULL, NULL) != LS_OK || status != LS_REPLY_OK) more = false;
            ls_free(found.keys[i]);
        }
        ls_free(found.keys);
        if (!found.done || found.status != LS_REPLY_OK) return;
    }
}

static ls_result open_backend(real_run *run, const char *address, uint64_t seed, uint64_t replication, ls_error *error)
{
    bool delayed = strncmp(address, DELAYED, strlen(DELAYED)) == 0;
    char *base = NULL;
    run->store = ls_store_open(address + (delayed ? strlen(DELAYED) : 0), &base, error);
    if (run->store == NULL) return LS_ERROR_IO;
    run->prefix = own_prefix(base, seed, replication);
    ls_free(base);
    if (run->prefix == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_random nonce = ls_random_open(seed, replication, LS_RANDOM_IDENTITY, UINT32_MAX);
    ls_result result = ls_store_probe(run->store, run->prefix, ls_random_next(&nonce) ^ (uint64_t)getpid(), error);
    if (result == LS_OK && delayed) result = wrap_in_delays(run, seed, replication, error);
    return result;
}

static ls_result refuse(const ls_scenario *scenario, ls_error *error)
{
    if (scenario->world == LS_WORLD_READ) return LS_OK;
    if (scenario->world != LS_WORLD_COMMIT) {
        return ls_fail(error, LS_ERROR_INVALID, "world 'queue' is theory and has no real store; run it with --backend sim");
    }
    if (scenario->policy.policy->simulator_only) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s' exists in the simulator only", scenario->policy.policy->name);
    }
    if (scenario->batches.law == LS_ARRIVAL_OPEN) {
        return ls_fail(error, LS_ERROR_INVALID, "batches.law 'open' is theory and exists in the simulator only");
    }
    if (ls_faults_any(&scenario->faults)) {
        return ls_fail(error, LS_ERROR_INVALID, "faults.*: faults are simulated only; a real store has its own");
    }
    if (scenario->warm_up_s < 0) {
        return ls_fail(error, LS_ERROR_INVALID, "warm_up_s -1 needs a pilot run; on a real store give the warm-up in seconds");
    }
    return LS_OK;
}

static ls_result tell(const real_run *run, ls_result outcome, const char *world_error, ls_error *error)
{
    return ls_fail(error, outcome, "%s: %s", world_error[0] != 0 ? world_error : ls_result_name(outcome), ls_loop_error(run->loop));
}

static ls_result run_world(real_run *run, uint64_t seed, uint64_t replication, ls_run_result *result, ls_error *error)
{
    ls_driver driver = ls_loop_driver(run->loop);
    run->world = ls_world_new(run->scenario, seed, replication, &driver, NULL, NULL, error);
    if (run->world == NULL) return LS_ERROR_MEMORY;
    ls_result outcome = put_manifest(run, ls_world_initial(run->world), error);
    if (outcome != LS_OK) return outcome;
    outcome = ls_world_begin(run->world);
    if (outcome == LS_OK) outcome = ls_loop_run(run->loop);
    if (outcome == LS_OK) outcome = ls_world_measure(run->world, ls_loop_now(run->loop), result);
    else tell(run, outcome, ls_world_error(run->world), error);
    result->events = 0;
    result->wall_s = ls_seconds(ls_loop_now(run->loop));
    return outcome;
}

static ls_result run_readers(real_run *run, ls_run_result *result, ls_error *error)
{
    ls_driver driver = ls_loop_driver(run->loop);
    ls_result outcome = ls_readers_new(run->scenario, &driver, &run->readers, error);
    if (outcome == LS_OK) outcome = put_lake(run, error);
    if (outcome != LS_OK) return outcome;
    int64_t begin_ns = ls_loop_now(run->loop);
    outcome = ls_readers_begin(run->readers);
    if (outcome == LS_OK) outcome = ls_loop_run(run->loop);
    if (outcome != LS_OK) return tell(run, outcome, "", error);
    outcome = ls_readers_measure(run->readers, ls_loop_now(run->loop) - begin_ns, result, error);
    result->events = 0;
    result->wall_s = ls_seconds(ls_loop_now(run->loop));
    return outcome;
}

ls_result ls_run_real(const ls_scenario *scenario, const char *backend_address, uint64_t seed, uint64_t replication,
                      ls_run_result *result, ls_error *error)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply, .body = on_body};
    real_run run = {.scenario = scenario};
    ls_result outcome = refuse(scenario, error);
    if (outcome == LS_OK) outcome = open_backend(&run, backend_address, seed, replication, error);
    if (outcome != LS_OK) goto done;
    outcome = LS_ERROR_MEMORY;
    run.loop = ls_loop_new(run.store, run.prefix, &handler, &run);
    if (run.loop == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "cannot start the loop: out of memory, or the prefix is too long");
        goto done;
    }
    outcome = scenario->world == LS_WORLD_READ ? run_readers(&run, result, error)
                                               : run_world(&run, seed, replication, result, error);
done:
    ls_loop_free(run.loop);
    ls_world_free(run.world);
    ls_readers_free(run.readers);
    if (run.store != NULL && run.prefix != NULL) clean_up(&run);
    ls_store_destroy(run.store);
    for (int i = 0; i < LAWS; i++) ls_law_release(&run.samplers[i]);
    ls_free(run.prefix);
    return outcome;
}
