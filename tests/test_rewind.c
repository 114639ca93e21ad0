/* test_rewind.c - a trainer that goes back, as processes on real stores: train to step 500 with checkpoints at 200 and
 * 400, reclaim, roll back to 200, read the same bytes. In between everything that is not needed is gone, and nothing
 * else: checked name by name.
 *
 * On a directory, on the S3 server that the tests start, and on the store that LAKESTREAM_STORE names, if it is set.
 */
#include "backend/store.h"
#include "manifest/key.h"
#include "tests/s3_server.h"
#include "tests/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCHES     520u
#define BATCH_BYTES 64u
#define TEXT_MAX    65536

typedef struct place {
    const char *environment; /* words before the program: NAME=value ... */
    char address[600];
    ls_store *store;
    char prefix[600]; /* of all keys, "" or ending in a slash */
} place;

static char text[TEXT_MAX];

static int run(const place *p, const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, "%s %s %s --backend %s 2>&1", p->environment, getenv("LAKESTREAM"), arguments,
             p->address);
    FILE *output = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(output);
    size_t length = fread(text, 1, sizeof text - 1, output);
    text[length] = '\0';
    while (fgetc(output) != EOF) continue;
    int status = pclose(output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const place *p, const char *arguments, int code, const char *part)
{
    int got = run(p, arguments);
    if (got != code || strstr(text, part) == NULL) printf("\n      %s gave %d, \"%s\"\n", arguments, got, text);
    CU_ASSERT_EQUAL(got, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

/* --- what the store holds
 * ---------------------------------------------------------------------------------------------------- */

typedef struct holdings {
    uint32_t count[5]; /* by ls_object_kind; 0: foreign names */
    bool batch[BATCHES + 10];
    uint64_t least_version, greatest_version;
    bool more;
    char last[LS_STORE_KEY_BYTES_MAX + 1];
    const place *where;
    bool answered;
} holdings;

static void note_name(holdings *h, const char *name)
{
    ls_key key;
    if (ls_key_parse(name, &key) != LS_OK) {
        h->count[0]++;
        return;
    }
    h->count[key.kind]++;
    if (key.kind == LS_OBJECT_DATA && key.sequence < BATCHES + 10) h->batch[key.sequence] = true;
    if (key.kind != LS_OBJECT_MANIFEST) return;
    if (h->count[LS_OBJECT_MANIFEST] == 1 || key.number < h->least_version) h->least_version = key.number;
    if (key.number > h->greatest_version) h->greatest_version = key.number;
}

static void take_page(void *context, const ls_object_reply *reply)
{
    holdings *h = context;
    h->answered = true;
    CU_ASSERT_EQUAL(reply->status, LS_REPLY_OK);
    h->more = reply->list_truncated;
    for (uint32_t i = 0; i < reply->key_count; i++) {
        note_name(h, reply->keys[i] + strlen(h->where->prefix));
        snprintf(h->last, sizeof h->last, "%s", reply->keys[i]);
    }
}

static holdings look(const place *p)
{
    holdings h = {.where = p, .more = true};
    while (h.more) {
        char after[LS_STORE_KEY_BYTES_MAX + 1];
        memcpy(after, h.last, sizeof after);
        ls_object_request list = {.operation = LS_LIST,
                                  .key = p->prefix,
                                  .list_limit = LS_STORE_LIST_LIMIT_MAX,
                                  .list_after = after[0] == '\0' ? NULL : after};
        h.answered = h.more = false;
        CU_ASSERT_EQUAL_FATAL(ls_store_submit(p->store, &list, take_page, &h), LS_OK);
        while (!h.answered) CU_ASSERT_EQUAL_FATAL(ls_store_poll(p->store, LS_NEVER_NS, NULL), LS_OK);
    }
    return h;
}

/* Exactly the batches from `first` on, and so many checkpoints; versions up to the newest without a gap. */
static holdings check_holdings(const place *p, uint64_t first, uint32_t checkpoints)
{
    holdings h = look(p);
    CU_ASSERT_EQUAL(h.count[LS_OBJECT_DATA], BATCHES - first);
    for (uint64_t step = 0; step < BATCHES; step++) CU_ASSERT_EQUAL(h.batch[step], step >= first);
    CU_ASSERT_EQUAL(h.count[LS_OBJECT_CHECKPOINT], checkpoints);
    CU_ASSERT_EQUAL(h.count[LS_OBJECT_MANIFEST], h.greatest_version - h.least_version + 1);
    CU_ASSERT_EQUAL(h.count[0], 0);
    return h;
}

/* --- the story
 * ----------------------------------------------------------------------------------------------------------------- */

static void compare_tail(const char *whole_path, const char *part_path, size_t skipped, size_t length)
{
    static char whole[BATCHES * BATCH_BYTES], part[BATCHES * BATCH_BYTES];
    FILE *file = fopen(whole_path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fread(whole, 1, sizeof whole, file), skipped + length);
    fclose(file);
    file = fopen(part_path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fread(part, 1, sizeof part, file), length);
    fclose(file);
    CU_ASSERT_EQUAL(memcmp(whole + skipped, part, length), 0);
}

/* The key of the checkpoint of that step in what `checkpoint list` printed. */
static void key_of_step(uint64_t step, char key[LS_KEY_TEXT_BYTES])
{
    char start[40];
    snprintf(start, sizeof start, "step %" PRIu64 " ", step);
    const char *line = strstr(text, start);
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    CU_ASSERT_EQUAL_FATAL(sscanf(strstr(line, "checkpoint/"), "%90s", key), 1);
}

static void put_orphan(const place *p)
{
    char key[700];
    ls_reply_status status;
    snprintf(key, sizeof key, "%sdata/0/1-%u.tgb", p->prefix, BATCHES + 5);
    ls_object_request put = {.operation = LS_PUT, .key = key, .body = "lost", .body_bytes = 4};
    CU_ASSERT_EQUAL(ls_store_call(p->store, &put, &status, NULL, NULL, NULL), LS_OK);
    CU_ASSERT_EQUAL(status, LS_REPLY_OK);
}

static void tell_story(const place *p)
{
    char arguments[900], key[LS_KEY_TEXT_BYTES], first[600], again[600];
    snprintf(first, sizeof first, "%s", ls_test_path("rewind-first"));
    snprintf(again, sizeof again, "%s", ls_test_path("rewind-again"));
    snprintf(arguments, sizeof arguments,
             "produce --producer 0 --batches %u --bytes %u --data-ranks 1 --context-ranks 1", BATCHES, BATCH_BYTES);
    expect(p, arguments, 0, "finished");
    snprintf(arguments, sizeof arguments,
             "consume --rank 0,0 --steps 500 --window 16 --checkpoint train --checkpoint-every 200 --output %s", first);
    expect(p, arguments, 0, "500 steps");
    put_orphan(p);
    holdings before = look(p);
    CU_ASSERT_EQUAL(before.count[LS_OBJECT_DATA], BATCHES + 1);
    expect(p, "reclaim --keep-last 2 --grace-s 0 --keep-versions 2 --dry-run", 0,
           "would delete data/0/1-525.tgb: no version names it");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "would delete data/0/1-199.tgb (step 199): its step is below every checkpoint"));
    CU_ASSERT_PTR_NULL(strstr(text, "(step 200)"));
    holdings after = look(p);
    CU_ASSERT_EQUAL(memcmp(before.count, after.count, sizeof before.count), 0);

    expect(p, "reclaim --keep-last 2 --grace-s 0 --keep-versions 2", 0,
           "deleted 200 batches, 1 orphans, 0 checkpoints");
    after = check_holdings(p, 200, 2);
    CU_ASSERT_EQUAL(after.count[LS_OBJECT_MANIFEST], 2);
    CU_ASSERT_EQUAL(after.count[LS_OBJECT_FLOOR], 1);
    expect(p, "checkpoint list", 0, "step 400 auto");
    key_of_step(200, key);

    snprintf(arguments, sizeof arguments, "checkpoint rewind %s", key);
    expect(p, arguments, 0, "step 200 pin");
    expect(p, "reclaim --keep-last 1 --grace-s 0 --keep-versions 2", 0, "deleted 0 batches, 0 orphans, 1 checkpoints");
    check_holdings(p, 200, 2); /* the pin took the place of the checkpoint */
    snprintf(arguments, sizeof arguments,
             "consume --rank 0,0 --steps 300 --window 16 --from-checkpoint train --output %s", again);
    expect(p, arguments, 0, "300 steps"); /* the newest of that name is the pin */
    compare_tail(first, again, 200 * BATCH_BYTES, 300 * BATCH_BYTES);
    check_holdings(p, 200, 2);

    expect(p, "checkpoint release train", 0, "1 released");
    expect(p, "reclaim --keep-last 1 --grace-s 0 --keep-versions 1", 0,
           "deleted 200 batches, 0 orphans, 0 checkpoints");
    after = check_holdings(p, 400, 1);
    CU_ASSERT_EQUAL(after.count[LS_OBJECT_MANIFEST], 1);
    snprintf(arguments, sizeof arguments, "checkpoint rewind %s", key);
    expect(p, arguments, 2, "there is no checkpoint called");
    expect(p, "checkpoint write back 399", 1, "may be reclaimed already: the watermark stands at 400");
    expect(p, "checkpoint write far 521", 1, "has not been reached: the lake ends at step 520");
    expect(p, "consume --rank 0,0 --from 399", 1, "step 399 has been reclaimed; the oldest one left is 400");
    check_holdings(p, 400, 1);
    expect(p, "fsck --verify", 0, "every promise is kept");
}

static void test_directory(void)
{
    place p = {.environment = "", .prefix = "lake/"};
    ls_error error = {""};
    char root[560];
    snprintf(root, sizeof root, "%s", ls_test_path("rewind-store"));
    snprintf(p.address, sizeof p.address, "dir:%s/lake", root);
    p.store = ls_store_open_directory(root, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p.store);
    tell_story(&p);
    ls_store_destroy(p.store);
}

static void test_server(void)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return;
    char environment[400];
    snprintf(
        environment, sizeof environment,
        "AWS_ENDPOINT_URL=%s AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=lakestream AWS_SECRET_ACCESS_KEY=lakestreamsecret",
        server->endpoint);
    place p = {.environment = environment, .prefix = "rewind/lake/"};
    snprintf(p.address, sizeof p.address, "%s/rewind/lake", server->address);
    p.store = s3_server_open(&server->options);
    if (p.store == NULL) return;
    tell_story(&p);
    ls_store_destroy(p.store);
}

/* The lake gets a name of its own there and stays. */
static void test_given_store(void)
{
    ls_error error = {""};
    char *prefix = NULL;
    place p = {.environment = ""};
    snprintf(p.address, sizeof p.address, "%s/rewind-%d", getenv("LAKESTREAM_STORE"), (int)getpid());
    p.store = ls_store_open(p.address, &prefix, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p.store);
    size_t length = strlen(prefix);
    snprintf(p.prefix, sizeof p.prefix, "%s%s", prefix, length == 0 || prefix[length - 1] == '/' ? "" : "/");
    ls_free(prefix);
    tell_story(&p);
    ls_store_destroy(p.store);
}

__attribute__((constructor)) static void register_suites(void)
{
    static const ls_test tests[] = {{"on a directory", test_directory}, {"on an S3 server", test_server}, {NULL, NULL}};
    static const ls_test given[] = {{"on the given store", test_given_store}, {NULL, NULL}};
    const char *address = getenv("LAKESTREAM_STORE");
    ls_suite_register("rewind", tests);
    if (address != NULL && address[0] != '\0') ls_suite_register("rewind_given_store", given);
}
