/* test_s3.c - the S3 store on a real server: conformance, races, names, connections, TLS, refusals. */
#include "backend/s3.h"
#include "tests/s3_server.h"
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ls_store *open_server(void *context) { return s3_server_open(context); }

static void test_conforms(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    ls_store_conformance(open_server, &options);
}

/* By the environment alone, as the commands do. */
static void test_opened_by_address(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    setenv("AWS_ENDPOINT_URL", server->endpoint, 1);
    setenv("AWS_ACCESS_KEY_ID", server->options.access_key, 1);
    setenv("AWS_SECRET_ACCESS_KEY", server->options.secret_key, 1);
    char *prefix = NULL;
    ls_error error = {""};
    ls_store *store = ls_store_open("s3://lakestream/some/prefix", &prefix, &error);
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    CU_ASSERT_STRING_EQUAL(prefix, "some/prefix");
    CU_ASSERT_EQUAL(store_put(store, "some/prefix/x", "1", 1, false), LS_REPLY_OK);
    CU_ASSERT(store_holds(store, "some/prefix/x", "1", 1));
    CU_ASSERT_EQUAL(store_delete(store, "some/prefix/x"), LS_REPLY_OK);
    ls_free(prefix);
    ls_store_destroy(store);
    CU_ASSERT_PTR_NULL(ls_store_open("s3://x", &prefix, &error));
    CU_ASSERT_PTR_NULL(prefix);
}

/* Sixteen clients, each with a store of its own, race to create 200 objects: exactly one winner each, whose bytes stay.
 */

#define RACERS    16
#define RACE_KEYS 200

typedef struct race_entry {
    struct race_state *race;
    uint32_t key;
    uint32_t racer;
} race_entry;

typedef struct race_state {
    ls_store *stores[RACERS];
    char keys[RACE_KEYS][48];
    char bodies[RACERS][16];
    race_entry entries[RACE_KEYS][RACERS];
    uint32_t winners[RACE_KEYS], winner[RACE_KEYS];
    uint32_t open, strange;
} race_state;

static void race_replied(void *context, const ls_object_reply *reply);

static void race_submit(race_entry *entry)
{
    race_state *race = entry->race;
    ls_object_request put = {.operation = LS_PUT,
                             .key = race->keys[entry->key],
                             .if_absent = true,
                             .body = race->bodies[entry->racer],
                             .body_bytes = strlen(race->bodies[entry->racer])};
    race->open++;
    if (ls_store_submit(race->stores[entry->racer], &put, race_replied, entry) != LS_OK) race->strange++;
}

static void race_replied(void *context, const ls_object_reply *reply)
{
    race_entry *entry = context;
    race_state *race = entry->race;
    race->open--;
    if (reply->status == LS_REPLY_OK) {
        race->winners[entry->key]++;
        race->winner[entry->key] = entry->racer;
    } else if (reply->status == LS_REPLY_CONFLICT_RETRY) {
        race_submit(entry);
    } else if (reply->status != LS_REPLY_EXISTS) {
        race->strange++;
        fprintf(stderr, "race: %s\n", reply->message);
    }
}

static void race_run(race_state *race)
{
    for (uint32_t key = 0; key < RACE_KEYS; key++) {
        for (uint32_t racer = 0; racer < RACERS; racer++) {
            race->entries[key][racer] = (race_entry){race, key, racer};
            race_submit(&race->entries[key][racer]);
        }
    }
    while (race->open > 0) {
        for (uint32_t racer = 0; racer < RACERS; racer++) {
            if (ls_store_poll(race->stores[racer], 0, NULL) != LS_OK) race->strange++;
        }
        if (race->strange > RACE_KEYS * RACERS) break;
    }
}

static void test_race(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    options.connection_limit = 2;
    race_state *race = ls_allocate_array(1, sizeof *race);
    CU_ASSERT_PTR_NOT_NULL_FATAL(race);
    for (uint32_t racer = 0; racer < RACERS; racer++) {
        race->stores[racer] = s3_server_open(&options);
        snprintf(race->bodies[racer], sizeof race->bodies[racer], "racer %u", racer);
    }
    for (uint32_t key = 0; key < RACE_KEYS; key++) snprintf(race->keys[key], sizeof race->keys[key], "race/%03u", key);
    race_run(race);
    CU_ASSERT_EQUAL(race->strange, 0);
    uint32_t wrong = 0;
    for (uint32_t key = 0; key < RACE_KEYS; key++) {
        const char *body = race->bodies[race->winner[key]];
        wrong += race->winners[key] != 1 || !store_holds(race->stores[0], race->keys[key], body, strlen(body));
        store_delete(race->stores[0], race->keys[key]);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (uint32_t racer = 0; racer < RACERS; racer++) ls_store_destroy(race->stores[racer]);
    ls_free(race);
}

/* Names that each break somebody's signature, path or list. In bytewise order. */
static void test_awkward_names(void)
{
    static const char *const names[] = {
        " lead", "!'()*",   "%",    "%2F",         "%41",          "&a=b?c#d", "+",    "a b",
        "a+b",   "a=b/c=d", "a\tb", "caf\xc3\xa9", "q\"<>\\^`{|}", "x\x01y",   "~-._", "\xf0\x9f\x8c\x8a"};
    static const uint32_t count = sizeof names / sizeof names[0];
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    const char *sorted[sizeof names / sizeof names[0]];
    ls_store *store = s3_server_open(&server->options);
    char key[64];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "names/%s", names[i]);
        CU_ASSERT_EQUAL(store_put(store, key, names[i], strlen(names[i]), true), LS_REPLY_OK);
        CU_ASSERT_EQUAL(store_put(store, key, "", 0, true), LS_REPLY_EXISTS);
        uint32_t at = i;
        for (; at > 0 && strcmp(sorted[at - 1], names[i]) > 0; at--) sorted[at] = sorted[at - 1];
        sorted[at] = names[i];
    }
    CU_ASSERT(store_lists(store, "names/", "names/", sorted, count));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "names/%s", names[i]);
        CU_ASSERT(store_holds(store, key, names[i], strlen(names[i])));
        CU_ASSERT_EQUAL(store_delete(store, key), LS_REPLY_OK);
    }
    CU_ASSERT(store_lists(store, "names/", "names/", NULL, 0));
    ls_store_destroy(store);
}

static void test_keep_alive_and_limit(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_store *store = s3_server_open(&server->options);
    for (int i = 0; i < 20; i++) CU_ASSERT_EQUAL(store_put(store, "alive", "x", 1, false), LS_REPLY_OK);
    ls_s3_counters counters = ls_s3_read_counters(store);
    CU_ASSERT_EQUAL(counters.requests, 20);
    CU_ASSERT_EQUAL(counters.connections, 1);
    ls_store_destroy(store);
    ls_s3_options options = server->options;
    options.connection_limit = 3;
    store = s3_server_open(&options);
    store_answer answers[60] = {0};
    ls_object_request get = {.operation = LS_GET, .key = "alive"};
    for (int i = 0; i < 60; i++) CU_ASSERT_EQUAL(ls_store_submit(store, &get, store_answer_take, &answers[i]), LS_OK);
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 60);
    CU_ASSERT(store_drain(store));
    for (int i = 0; i < 60; i++) {
        CU_ASSERT_EQUAL(answers[i].status, LS_REPLY_OK);
        store_answer_clear(&answers[i]);
    }
    counters = ls_s3_read_counters(store);
    CU_ASSERT_EQUAL(counters.requests, 60);
    CU_ASSERT_EQUAL(counters.connections, 3);
    store_delete(store, "alive");
    ls_store_destroy(store);
}

static void test_tls(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    ls_object_request put = {.operation = LS_PUT, .key = "tls", .if_absent = true, .body = "x", .body_bytes = 1};
    options.endpoint = server->tls_endpoint;
    ls_store *store = s3_server_open(&options); /* verified by default, and this authority is unknown */
    store_answer answer = store_ask(store, &put);
    CU_ASSERT_EQUAL(answer.status, LS_REPLY_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, "AWS_CA_BUNDLE"));
    store_answer_clear(&answer);
    ls_store_destroy(store);
    options.ca_file = "/nonexistent/ca.pem";
    store = s3_server_open(&options);
    CU_ASSERT_EQUAL(store_put(store, "tls", "x", 1, true), LS_REPLY_INVALID);
    ls_store_destroy(store);
    options.ca_file = server->ca_file;
    store = s3_server_open(&options);
    CU_ASSERT_EQUAL(store_put(store, "tls", "x", 1, true), LS_REPLY_OK);
    uint8_t *large = ls_allocate_array(200000, 1); /* above the size that is hashed over https */
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    large[199999] = 7;
    CU_ASSERT_EQUAL(store_put(store, "tls-large", large, 200000, true), LS_REPLY_OK);
    CU_ASSERT(store_holds(store, "tls-large", large, 200000));
    ls_free(large);
    ls_store_destroy(store);
    options.ca_file = NULL;
    options.skip_verification = true;
    store = s3_server_open(&options);
    CU_ASSERT(store_holds(store, "tls", "x", 1));
    CU_ASSERT_EQUAL(store_delete(store, "tls"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(store, "tls-large"), LS_REPLY_OK);
    ls_store_destroy(store);
}

/* lakestream.localhost: libcurl resolves names under localhost itself. */
static void test_virtual_host(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://localhost:%d", server->port);
    options.endpoint = endpoint;
    options.addressing = LS_S3_ADDRESSING_VIRTUAL;
    ls_store *store = s3_server_open(&options);
    static const char *const names[] = {"a b", "c"};
    CU_ASSERT_EQUAL(store_put(store, "virtual/a b", "1", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_put(store, "virtual/c", "2", 1, true), LS_REPLY_OK);
    CU_ASSERT(store_lists(store, "virtual/", "virtual/", names, 2));
    ls_store_destroy(store);
    store = s3_server_open(&server->options); /* the same bucket by its path */
    CU_ASSERT(store_holds(store, "virtual/c", "2", 1));
    CU_ASSERT_EQUAL(store_delete(store, "virtual/a b"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(store, "virtual/c"), LS_REPLY_OK);
    ls_store_destroy(store);
}

/* Asks every kind of operation and expects the same status of all. */
static void expect_all(ls_store *store, ls_reply_status status, const char *in_message)
{
    const ls_object_request requests[] = {
        {.operation = LS_GET, .key = "k"},
        {.operation = LS_PUT, .key = "k", .if_absent = true, .body = "b", .body_bytes = 1},
        {.operation = LS_DELETE, .key = "k"},
        {.operation = LS_HEAD, .key = "k"},
        {.operation = LS_LIST, .key = "k", .list_limit = 1}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        store_answer answer = store_ask(store, &requests[i]);
        CU_ASSERT_EQUAL(answer.status, status);
        CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, in_message));
        CU_ASSERT_PTR_NULL(strstr(answer.message, "hidden/secret+of/the+test"));
        store_answer_clear(&answer);
    }
}

static void test_refusals(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    options.secret_key = "hidden/secret+of/the+test";
    ls_store *store = s3_server_open(&options);
    expect_all(store, LS_REPLY_DENIED, "request id tx");
    ls_store_destroy(store);
    options.access_key = "nobody";
    store = s3_server_open(&options);
    expect_all(store, LS_REPLY_DENIED, "check the access key");
    ls_store_destroy(store);
    options = server->options;
    options.endpoint = "http://127.0.0.1:1"; /* nothing listens there */
    store = s3_server_open(&options);
    expect_all(store, LS_REPLY_UNAVAILABLE, "before anything was sent");
    CU_ASSERT_EQUAL(ls_s3_read_counters(store).requests, 0);
    ls_store_destroy(store);
    char *prefix;
    store = ls_store_open_s3_with("s3://no-such-bucket", &server->options, &prefix, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    ls_object_request get = {.operation = LS_GET, .key = "k"},
                      list = {.operation = LS_LIST, .key = "", .list_limit = 1};
    for (int i = 0; i < 2; i++) {
        store_answer answer = store_ask(store, i == 0 ? &get : &list);
        CU_ASSERT_EQUAL(answer.status, LS_REPLY_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, "NoSuchBucket"));
        CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, "create the bucket"));
        store_answer_clear(&answer);
    }
    ls_free(prefix);
    ls_store_destroy(store);
}

/* A proxy of the environment is for the outside world; the loopback is reached without it. */
static void test_no_proxy_to_loopback(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("all_proxy", "http://127.0.0.1:1", 1);
    ls_store *store = s3_server_open(&server->options);
    CU_ASSERT_EQUAL(store_put(store, "proxy", "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(store, "proxy"), LS_REPLY_OK);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    ls_store_destroy(store);
}

static void test_size_limit(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_s3_options options = server->options;
    options.object_bytes_max = 1000;
    ls_store *store = s3_server_open(&options);
    static const uint8_t body[1001];
    ls_object_request get = {.operation = LS_GET, .key = "big"};
    CU_ASSERT_EQUAL(store_put(store, "big", body, 1000, false), LS_REPLY_OK);
    CU_ASSERT(store_holds(store, "big", body, 1000));
    CU_ASSERT_EQUAL(store_put(store, "big", body, 1001, false), LS_REPLY_OK);
    store_answer answer = store_ask(store, &get);
    CU_ASSERT_EQUAL(answer.status, LS_REPLY_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, "1000 bytes allowed"));
    store_answer_clear(&answer);
    CU_ASSERT_EQUAL(store_delete(store, "big"), LS_REPLY_OK);
    ls_store_destroy(store);
}

/* Out of memory anywhere in opening, submit or poll: an error or a reply, never a crash, never a wrong OK. */
static void test_memory(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    ls_object_request list = {.operation = LS_LIST, .key = "memory/", .list_limit = 5};
    ls_store *steady = s3_server_open(&server->options);
    CU_ASSERT_EQUAL(store_put(steady, "memory/a", "x", 1, false), LS_REPLY_OK);
    bool is_done = false;
    int64_t allowed = 0;
    for (; !is_done && allowed < 300; allowed++) {
        char *prefix = NULL;
        store_answer answer = {0};
        ls_fail_allocations_after(allowed);
        ls_store *store = ls_store_open_s3_with("s3://lakestream", &server->options, &prefix, NULL);
        ls_result submitted =
            store != NULL ? ls_store_submit(store, &list, store_answer_take, &answer) : LS_ERROR_MEMORY;
        while (submitted == LS_OK && !answer.done && ls_store_poll(store, LS_NEVER_NS, NULL) == LS_OK) continue;
        is_done = answer.done && answer.status == LS_REPLY_OK && answer.key_count == 1 && answer.keys != NULL &&
                  answer.keys[0] != NULL;
        ls_fail_allocations_after(-1);
        if (answer.done && answer.status != LS_REPLY_OK) CU_ASSERT_EQUAL(answer.status, LS_REPLY_UNAVAILABLE);
        store_answer_clear(&answer);
        ls_free(prefix);
        ls_store_destroy(store);
    }
    CU_ASSERT(is_done);
    CU_ASSERT(allowed > 30);
    CU_ASSERT_EQUAL(store_delete(steady, "memory/a"), LS_REPLY_OK);
    ls_store_destroy(steady);
}

LS_SUITE(s3, {"conformance", test_conforms}, {"opened by address and environment", test_opened_by_address},
         {"sixteen clients race for 200 keys", test_race}, {"awkward names", test_awkward_names},
         {"keep-alive, connection limit", test_keep_alive_and_limit}, {"TLS and verification", test_tls},
         {"virtual host", test_virtual_host}, {"refusals", test_refusals},
         {"no proxy to loopback", test_no_proxy_to_loopback}, {"size limit", test_size_limit},
         {"every allocation fails once", test_memory})
