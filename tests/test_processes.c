/* test_processes.c - several processes on one directory: their producers share nothing but the manifest, and every promise holds.
 *
 * Each child process runs three producers on the real-time loop, publishes twenty batches of each, closes their rows and ends. The
 * parent then reads every version in order and holds it against all invariants, objects on disk included.
 */
#include "backend/loop.h"
#include "manifest/codec.h"
#include "manifest/invariants.h"
#include "manifest/producer.h"
#include "policies/policy.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 3
#define PRODUCERS 3 /* of each process */
#define BATCHES 20  /* of each producer */
#define LAKE "lake"

typedef struct crew {
    ls_loop *loop;
    ls_producer producers[PRODUCERS];
    uint32_t given[PRODUCERS];
    uint32_t running;
} crew;

static ls_result feed(crew *c, uint32_t index, ls_event event);

static ls_result carry_out(crew *c, uint32_t index, const ls_actions *actions, int64_t now_ns)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < actions->count && result == LS_OK; i++) {
        const ls_action *action = &actions->item[i];
        if (action->kind == LS_ACTION_REQUEST) result = ls_loop_submit(c->loop, &action->request, 0, index);
        if (action->kind == LS_ACTION_WAKE) result = ls_loop_timer(c->loop, action->wake_ns, 0, index, 0);
        if (action->kind == LS_ACTION_FENCED || action->kind == LS_ACTION_FAILED) result = LS_ERROR_VIOLATED;
        if (action->kind == LS_ACTION_FINISHED && --c->running == 0) ls_loop_stop(c->loop);
    }
    if (result != LS_OK || !ls_producer_has_room(&c->producers[index])) return result;
    if (c->given[index] < BATCHES) {
        c->given[index]++;
        return feed(c, index, (ls_event){.kind = LS_EVENT_BATCH, .now_ns = now_ns, .batch_bytes = 500, .batch_source_count = 2,
                                         .batch_footer_bytes = 100});
    }
    return feed(c, index, (ls_event){.kind = LS_EVENT_STOP, .now_ns = now_ns});
}

static ls_result feed(crew *c, uint32_t index, ls_event event)
{
    ls_actions actions;
    ls_result result = ls_producer_step(&c->producers[index], &event, &actions);
    return result == LS_OK ? carry_out(c, index, &actions, event.now_ns) : result;
}

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)kind;
    (void)argument;
    return feed(context, entity, (ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)kind;
    return feed(context, entity, (ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
}

/* What a child does; its exit code is the result. */
static int work(const char *root, uint32_t process, const ls_protocol *protocol)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply};
    static crew c;
    ls_error error = {""};
    ls_store *store = ls_store_open_directory(root, &error);
    if (store == NULL) return 9;
    c.loop = ls_loop_new(store, LAKE, &handler, &c);
    c.running = PRODUCERS;
    ls_result result = c.loop == NULL ? LS_ERROR_MEMORY : LS_OK;
    for (uint32_t i = 0; i < PRODUCERS && result == LS_OK; i++) {
        uint64_t id = process * PRODUCERS + i;
        ls_producer_init(&c.producers[i], protocol, id, 1000 + id, ls_random_open(process, 0, LS_RANDOM_TEST, i));
        result = feed(&c, i, (ls_event){.kind = LS_EVENT_START, .now_ns = ls_loop_now(c.loop)});
    }
    if (result == LS_OK) result = ls_loop_run(c.loop);
    for (uint32_t i = 0; i < PRODUCERS; i++) ls_producer_clear(&c.producers[i]);
    ls_loop_free(c.loop);
    ls_store_destroy(store);
    return (int)result;
}

static bool on_disk(void *context, const ls_key *key, uint64_t size_bytes)
{
    char name[LS_KEY_TEXT_BYTES], full[LS_KEY_TEXT_BYTES + sizeof LAKE];
    ls_key_format(key, name);
    snprintf(full, sizeof full, LAKE "/%s", name);
    ls_reply_status status;
    uint8_t *body = NULL;
    uint64_t bytes = 0;
    ls_object_request get = {.operation = LS_GET, .key = full};
    bool read = ls_store_call(context, &get, &status, &body, &bytes, NULL) == LS_OK && status == LS_REPLY_OK;
    ls_free(body);
    return read && bytes == size_bytes;
}

/* Reads version by version until one is missing; returns the newest (one reference) or NULL. */
static const ls_manifest *read_history(ls_store *store, ls_invariants *invariants)
{
    for (uint64_t version = 1;; version++) {
        char name[LS_KEY_TEXT_BYTES], full[LS_KEY_TEXT_BYTES + sizeof LAKE];
        ls_key key = ls_key_manifest(version);
        ls_key_format(&key, name);
        snprintf(full, sizeof full, LAKE "/%s", name);
        ls_reply_status status;
        ls_error error = {""};
        uint8_t *bytes = NULL;
        uint64_t length = 0;
        ls_object_request get = {.operation = LS_GET, .key = full};
        CU_ASSERT_EQUAL_FATAL(ls_store_call(store, &get, &status, &bytes, &length, &error), LS_OK);
        if (status == LS_REPLY_NOT_FOUND) return ls_manifest_retain(invariants->head);
        ls_manifest *manifest = NULL;
        CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(bytes, length, version, &manifest, &error), LS_OK);
        ls_free(bytes);
        ls_result result = ls_invariants_created(invariants, manifest, &error);
        ls_manifest_release(manifest);
        if (result != LS_OK) fprintf(stderr, "%s\n", error.text);
        CU_ASSERT_EQUAL_FATAL(result, LS_OK);
    }
}

static void test_processes_share_a_directory(void)
{
    ls_policy_instance policy;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_policy_instantiate("backoff-full", &policy, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_policy_set(&policy, "base_s", 0.001, &error), LS_OK);
    ls_protocol protocol = ls_protocol_default();
    protocol.layout = LS_LAYOUT_FULL_TAIL;
    protocol.decider = ls_policy_decider(&policy);
    char root[256];
    snprintf(root, sizeof root, "%s", ls_test_path("processes"));
    pid_t children[PROCESSES];
    fflush(NULL);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) _exit(work(root, i, &protocol));
        CU_ASSERT_FATAL(children[i] > 0);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == LS_OK);
    }
    ls_store *store = ls_store_open_directory(root, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    ls_invariants invariants;
    ls_invariants_init(&invariants, LS_CHECK_ALL, on_disk, store);
    const ls_manifest *newest = read_history(store, &invariants);
    CU_ASSERT_PTR_NOT_NULL_FATAL(newest);
    CU_ASSERT_EQUAL(ls_manifest_end_step(newest), PROCESSES * PRODUCERS * BATCHES);
    CU_ASSERT_EQUAL(ls_manifest_row_count(newest), PROCESSES * PRODUCERS);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(newest), 0);
    for (uint32_t slot = 0; slot < PROCESSES * PRODUCERS; slot++) {
        CU_ASSERT_EQUAL(ls_manifest_row(newest, slot)->next_source_offset, 2 * BATCHES);
    }
    ls_manifest_release(newest);
    ls_invariants_clear(&invariants);
    ls_store_destroy(store);
}

LS_SUITE(processes, {"processes share a directory", test_processes_share_a_directory})
