/* store_conformance.c - the checks of store_conformance.h. */
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_BYTES (LS_STORE_KEY_BYTES_MAX + 1)

typedef struct test_place {
    ls_store *store;
    char prefix[128]; /* ends in a slash */
} test_place;

/* Building blocks. */

static void *copy_bytes(const void *bytes, uint64_t count)
{
    void *copy = malloc(count + 1);
    if (count > 0) memcpy(copy, bytes, count);
    return copy;
}

void store_answer_take(void *context, const ls_object_reply *reply)
{
    store_answer *answer = context;
    answer->calls++;
    answer->done = true;
    answer->status = reply->status;
    answer->body = copy_bytes(reply->body, reply->body_bytes);
    answer->body_bytes = reply->body_bytes;
    answer->object_bytes = reply->object_bytes;
    answer->key_count = reply->key_count;
    answer->list_truncated = reply->list_truncated;
    answer->keys = calloc(reply->key_count + 1u, sizeof answer->keys[0]);
    for (uint32_t i = 0; i < reply->key_count; i++) answer->keys[i] = strdup(reply->keys[i]);
    answer->key_bytes = copy_bytes(reply->key_bytes, reply->key_count * sizeof(uint64_t));
    answer->key_modified_s = copy_bytes(reply->key_modified_s, reply->key_count * sizeof(int64_t));
    if (reply->message != NULL) snprintf(answer->message, sizeof answer->message, "%s", reply->message);
}

void store_answer_clear(store_answer *answer)
{
    for (uint32_t i = 0; i < answer->key_count; i++) free(answer->keys[i]);
    free(answer->keys);
    free(answer->key_bytes);
    free(answer->key_modified_s);
    free(answer->body);
    *answer = (store_answer){0};
}

bool store_drain(ls_store *store)
{
    for (int polls = 0; polls < 60000 && ls_store_in_flight(store) > 0;) {
        uint32_t finished = 0;
        ls_result result = ls_store_poll(store, LS_NANOSECONDS_PER_SECOND / 1000, &finished);
        CU_ASSERT_EQUAL(result, LS_OK);
        if (result != LS_OK) return false;
        if (finished == 0) polls++;
    }
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 0);
    return ls_store_in_flight(store) == 0;
}

store_answer store_ask(ls_store *store, const ls_object_request *request)
{
    store_answer answer = {0};
    ls_result result = ls_store_submit(store, request, store_answer_take, &answer);
    CU_ASSERT_EQUAL(result, LS_OK);
    CU_ASSERT_EQUAL(answer.calls, 0);
    if (result == LS_OK) store_drain(store);
    CU_ASSERT_EQUAL(answer.calls, 1);
    return answer;
}

ls_reply_status store_put(ls_store *store, const char *key, const void *body, uint64_t body_bytes, bool if_absent)
{
    ls_object_request request = {
        .operation = LS_PUT, .key = key, .body = body, .body_bytes = body_bytes, .if_absent = if_absent};
    store_answer answer = store_ask(store, &request);
    ls_reply_status status = answer.status;
    store_answer_clear(&answer);
    return status;
}

ls_reply_status store_delete(ls_store *store, const char *key)
{
    ls_object_request request = {.operation = LS_DELETE, .key = key};
    store_answer answer = store_ask(store, &request);
    ls_reply_status status = answer.status;
    store_answer_clear(&answer);
    return status;
}

bool store_holds(ls_store *store, const char *key, const void *body, uint64_t body_bytes)
{
    ls_object_request request = {.operation = LS_GET, .key = key};
    store_answer answer = store_ask(store, &request);
    bool same = answer.status == LS_REPLY_OK && answer.body_bytes == body_bytes && answer.object_bytes == body_bytes &&
                (body_bytes == 0 || memcmp(answer.body, body, body_bytes) == 0);
    store_answer_clear(&answer);
    return same;
}

static store_answer list_page(ls_store *store, const char *prefix, const char *after, uint32_t limit)
{
    ls_object_request request = {.operation = LS_LIST, .key = prefix, .list_after = after, .list_limit = limit};
    return store_ask(store, &request);
}

bool store_lists(ls_store *store, const char *prefix, const char *strip, const char *const *names, uint32_t count)
{
    store_answer answer = list_page(store, prefix, NULL, 1000);
    size_t strip_length = strlen(strip);
    bool same = answer.status == LS_REPLY_OK && answer.key_count == count && !answer.list_truncated;
    for (uint32_t i = 0; same && i < count; i++) {
        same =
            strncmp(answer.keys[i], strip, strip_length) == 0 && strcmp(answer.keys[i] + strip_length, names[i]) == 0;
        if (!same) fprintf(stderr, "  listed '%s' where '%s%s' was expected\n", answer.keys[i], strip, names[i]);
    }
    store_answer_clear(&answer);
    return same;
}

/* The same below a check's prefix. */

static const char *at(const test_place *place, const char *name, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s%s", place->prefix, name);
    return key;
}

static ls_reply_status put(const test_place *place, const char *name, const char *text, bool if_absent)
{
    char key[KEY_BYTES];
    return store_put(place->store, at(place, name, key), text, strlen(text), if_absent);
}

static bool holds(const test_place *place, const char *name, const char *text)
{
    char key[KEY_BYTES];
    return store_holds(place->store, at(place, name, key), text, strlen(text));
}

static ls_reply_status delete_at(const test_place *place, const char *name)
{
    char key[KEY_BYTES];
    return store_delete(place->store, at(place, name, key));
}

static bool lists(const test_place *place, const char *prefix, const char *const *names, uint32_t count)
{
    char key[KEY_BYTES];
    return store_lists(place->store, at(place, prefix, key), place->prefix, names, count);
}

static store_answer ask_at(const test_place *place, ls_operation operation, const char *name)
{
    char key[KEY_BYTES];
    ls_object_request request = {.operation = operation, .key = at(place, name, key)};
    return store_ask(place->store, &request);
}

static ls_reply_status status_at(const test_place *place, ls_operation operation, const char *name)
{
    store_answer answer = ask_at(place, operation, name);
    ls_reply_status status = answer.status;
    store_answer_clear(&answer);
    return status;
}

static bool head_says(const test_place *place, const char *name, uint64_t bytes)
{
    store_answer answer = ask_at(place, LS_HEAD, name);
    bool same = answer.status == LS_REPLY_OK && answer.object_bytes == bytes && answer.body_bytes == 0;
    store_answer_clear(&answer);
    return same;
}

static void remove_everything(const test_place *place)
{
    bool more = true;
    while (more) {
        store_answer page = list_page(place->store, place->prefix, NULL, 1000);
        store_answer *gone = calloc(page.key_count + 1u, sizeof gone[0]);
        more = page.list_truncated && page.key_count > 0;
        for (uint32_t i = 0; i < page.key_count; i++) {
            ls_object_request request = {.operation = LS_DELETE, .key = page.keys[i]};
            CU_ASSERT_EQUAL(ls_store_submit(place->store, &request, store_answer_take, &gone[i]), LS_OK);
            if (i % 64 == 63) store_drain(place->store);
        }
        store_drain(place->store);
        for (uint32_t i = 0; i < page.key_count; i++) store_answer_clear(&gone[i]);
        free(gone);
        store_answer_clear(&page);
    }
}

/* The checks. */

static void check_put_get_head(const test_place *p)
{
    static const uint8_t bytes[] = {0, 1, 2, 255, 0, '\r', '\n', 0};
    char key[KEY_BYTES];
    CU_ASSERT_EQUAL(store_put(p->store, at(p, "a", key), bytes, sizeof bytes, false), LS_REPLY_OK);
    CU_ASSERT(store_holds(p->store, key, bytes, sizeof bytes));
    CU_ASSERT(head_says(p, "a", sizeof bytes));
    CU_ASSERT_EQUAL(put(p, "b/c/d", "deep", true), LS_REPLY_OK);
    CU_ASSERT(holds(p, "b/c/d", "deep"));
}

static void check_if_absent(const test_place *p)
{
    CU_ASSERT_EQUAL(put(p, "v", "first", true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(put(p, "v", "second", true), LS_REPLY_EXISTS);
    CU_ASSERT(holds(p, "v", "first"));
    CU_ASSERT_EQUAL(put(p, "w", "plain", false), LS_REPLY_OK);
    CU_ASSERT_EQUAL(put(p, "w", "late", true), LS_REPLY_EXISTS);
    CU_ASSERT(holds(p, "w", "plain"));
}

static void check_overwrite(const test_place *p)
{
    CU_ASSERT_EQUAL(put(p, "o", "a longer text", false), LS_REPLY_OK);
    CU_ASSERT_EQUAL(put(p, "o", "short", false), LS_REPLY_OK);
    CU_ASSERT(holds(p, "o", "short"));
    CU_ASSERT(head_says(p, "o", 5));
    CU_ASSERT_EQUAL(put(p, "o", "", false), LS_REPLY_OK);
    CU_ASSERT(holds(p, "o", ""));
}

/* Deleting what is not there is OK, as on S3. */
static void check_missing_and_deleted(const test_place *p)
{
    CU_ASSERT_EQUAL(status_at(p, LS_GET, "none"), LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(status_at(p, LS_HEAD, "none"), LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(status_at(p, LS_GET, "none/below"), LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(delete_at(p, "none"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(delete_at(p, "none/below"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(put(p, "x", "1", true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(delete_at(p, "x"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(status_at(p, LS_GET, "x"), LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(status_at(p, LS_HEAD, "x"), LS_REPLY_NOT_FOUND);
    CU_ASSERT(lists(p, "", NULL, 0));
    CU_ASSERT_EQUAL(put(p, "x", "2", true), LS_REPLY_OK);
    CU_ASSERT(holds(p, "x", "2"));
}

/* A get of `name` by range: its status, and the bytes and object size when these are expected. */
static void expect_range(const test_place *p, ls_range_kind range, uint64_t offset, uint64_t bytes,
                         const char *expected)
{
    char key[KEY_BYTES];
    ls_object_request request = {.operation = LS_GET,
                                 .key = at(p, "digits", key),
                                 .range = range,
                                 .range_offset = offset,
                                 .range_bytes = bytes};
    store_answer answer = store_ask(p->store, &request);
    CU_ASSERT_EQUAL(answer.status, expected != NULL ? LS_REPLY_OK : LS_REPLY_INVALID);
    if (expected != NULL) {
        CU_ASSERT_EQUAL(answer.object_bytes, 10);
        CU_ASSERT_EQUAL(answer.body_bytes, strlen(expected));
        CU_ASSERT(answer.body_bytes == strlen(expected) && memcmp(answer.body, expected, strlen(expected)) == 0);
    } else if (bytes > 0) {
        CU_ASSERT_EQUAL(answer.object_bytes, 10);
    }
    store_answer_clear(&answer);
}

static void check_ranges(const test_place *p)
{
    CU_ASSERT_EQUAL(put(p, "digits", "0123456789", true), LS_REPLY_OK);
    expect_range(p, LS_RANGE_SPAN, 0, 1, "0");
    expect_range(p, LS_RANGE_SPAN, 3, 4, "3456");
    expect_range(p, LS_RANGE_SPAN, 0, 10, "0123456789");
    expect_range(p, LS_RANGE_SPAN, 9, 1, "9");
    expect_range(p, LS_RANGE_SPAN, 8, 3, "89");
    expect_range(p, LS_RANGE_SPAN, 7, UINT64_MAX, "789");
    expect_range(p, LS_RANGE_SPAN, 10, 1, NULL);
    expect_range(p, LS_RANGE_SPAN, 11, 5, NULL);
    expect_range(p, LS_RANGE_SPAN, UINT64_C(1) << 40, 5, NULL);
    expect_range(p, LS_RANGE_SPAN, 3, 0, NULL);
    expect_range(p, LS_RANGE_SUFFIX, 0, 3, "789");
    expect_range(p, LS_RANGE_SUFFIX, 0, 10, "0123456789");
    expect_range(p, LS_RANGE_SUFFIX, 0, 11, "0123456789");
    expect_range(p, LS_RANGE_SUFFIX, 0, UINT64_C(1) << 40, "0123456789");
    expect_range(p, LS_RANGE_SUFFIX, 0, 0, NULL);
    char key[KEY_BYTES];
    ls_object_request missing = {
        .operation = LS_GET, .key = at(p, "none", key), .range = LS_RANGE_SUFFIX, .range_bytes = 3};
    store_answer answer = store_ask(p->store, &missing);
    CU_ASSERT_EQUAL(answer.status, LS_REPLY_NOT_FOUND);
    store_answer_clear(&answer);
}

/* RFC 9110 calls the suffix of an empty object satisfiable, S3 answers 416; a span is unsatisfiable for both. */
static void check_empty_object(const test_place *p)
{
    char key[KEY_BYTES];
    CU_ASSERT_EQUAL(store_put(p->store, at(p, "empty", key), NULL, 0, true), LS_REPLY_OK);
    CU_ASSERT(holds(p, "empty", ""));
    CU_ASSERT(head_says(p, "empty", 0));
    CU_ASSERT_EQUAL(put(p, "empty", "x", true), LS_REPLY_EXISTS);
    ls_object_request span = {.operation = LS_GET, .key = key, .range = LS_RANGE_SPAN, .range_bytes = 1};
    ls_object_request suffix = {.operation = LS_GET, .key = key, .range = LS_RANGE_SUFFIX, .range_bytes = 1};
    store_answer answer = store_ask(p->store, &span);
    CU_ASSERT_EQUAL(answer.status, LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(answer.object_bytes, 0);
    store_answer_clear(&answer);
    answer = store_ask(p->store, &suffix);
    CU_ASSERT(answer.status == LS_REPLY_OK || answer.status == LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(answer.body_bytes, 0);
    store_answer_clear(&answer);
}

#define MANY 2500

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Names whose bytewise order differs from the order of folders and files: '-' < '.' < '/' < '0'. */
static char *name_of(const test_place *p, unsigned i)
{
    static const char *const shapes[] = {"n/%04u", "n-%04u", "n%04u", "n/%04u/x", "n.%04u"};
    char name[64], key[KEY_BYTES];
    snprintf(name, sizeof name, shapes[i % 5], i / 10 * 10);
    if (i % 10 >= 5) strcat(name, "b");
    return strdup(at(p, name, key));
}

static void put_many(const test_place *p, char *const *keys, uint32_t count)
{
    store_answer *answers = calloc(count, sizeof answers[0]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shuffled = (uint32_t)((i * UINT64_C(7919)) % count); /* 7919 is prime and no divisor of count */
        ls_object_request request = {
            .operation = LS_PUT, .key = keys[shuffled], .body = keys[shuffled], .body_bytes = shuffled % 7};
        CU_ASSERT_EQUAL(ls_store_submit(p->store, &request, store_answer_take, &answers[i]), LS_OK);
        if (i % 64 == 63) store_drain(p->store);
    }
    store_drain(p->store);
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(answers[i].status, LS_REPLY_OK);
        CU_ASSERT_EQUAL(answers[i].calls, 1);
        store_answer_clear(&answers[i]);
    }
    free(answers);
}

/* Pages through everything below prefix and compares with the sorted keys; each page but the last is full. */
static void expect_pages(const test_place *p, char *const *sorted, uint32_t count, uint32_t limit)
{
    uint32_t seen = 0;
    char after[KEY_BYTES] = "";
    bool more = true, same = true;
    while (more && same) {
        store_answer page = list_page(p->store, p->prefix, after[0] != '\0' ? after : NULL, limit);
        uint32_t expected = count - seen < limit ? count - seen : limit;
        CU_ASSERT_EQUAL(page.status, LS_REPLY_OK);
        CU_ASSERT_EQUAL(page.key_count, expected);
        CU_ASSERT_EQUAL(page.list_truncated, seen + expected < count);
        same = page.key_count == expected && expected > 0;
        for (uint32_t i = 0; same && i < expected; i++) {
            same = strcmp(page.keys[i], sorted[seen + i]) == 0;
            CU_ASSERT(page.key_modified_s[i] > INT64_C(1600000000)); /* some time after 2020 */
        }
        CU_ASSERT(same);
        if (same) snprintf(after, sizeof after, "%s", page.keys[expected - 1]);
        seen += expected;
        more = page.list_truncated;
        store_answer_clear(&page);
    }
    CU_ASSERT_EQUAL(seen, count);
}

static void check_list_paging(const test_place *p)
{
    char **keys = calloc(MANY, sizeof keys[0]);
    for (unsigned i = 0; i < MANY; i++) keys[i] = name_of(p, i);
    qsort(keys, MANY, sizeof keys[0], compare_texts);
    put_many(p, keys, MANY);
    expect_pages(p, keys, MANY, 1000);
    expect_pages(p, keys, MANY, 500); /* the last page is full: nothing more after it */
    store_answer page = list_page(p->store, p->prefix, keys[1233], 10);
    CU_ASSERT_EQUAL(page.key_count, 10);
    for (uint32_t i = 0; i < page.key_count; i++) {
        CU_ASSERT_STRING_EQUAL(page.keys[i], keys[1234 + i]);
        CU_ASSERT_EQUAL(page.key_bytes[i], (1234 + i) % 7);
    }
    store_answer_clear(&page);
    for (unsigned i = 0; i < MANY; i++) free(keys[i]);
    free(keys);
}

static void expect_after(const test_place *p, const char *prefix, const char *after, const char *const *names,
                         uint32_t count)
{
    char prefix_key[KEY_BYTES], after_key[KEY_BYTES];
    store_answer page = list_page(p->store, at(p, prefix, prefix_key), at(p, after, after_key), 1000);
    CU_ASSERT_EQUAL(page.status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(page.key_count, count);
    CU_ASSERT_FALSE(page.list_truncated);
    for (uint32_t i = 0; i < page.key_count && i < count; i++) {
        CU_ASSERT_STRING_EQUAL(page.keys[i] + strlen(p->prefix), names[i]);
    }
    store_answer_clear(&page);
}

static void check_list_after(const test_place *p)
{
    static const char *const names[] = {"k/10", "k/20", "k/20/a", "k/30", "l/05"};
    CU_ASSERT_EQUAL(put(p, "b", "x", true),
                    LS_REPLY_OK); /* between "a", from which a list below starts, and its prefix */
    for (int i = 0; i < 5; i++) CU_ASSERT_EQUAL(put(p, names[i], "x", true), LS_REPLY_OK);
    expect_after(p, "k/", "k/10", names + 1, 3);
    expect_after(p, "k/", "k/15", names + 1, 3); /* no such object */
    expect_after(p, "k/", "k/20", names + 2, 2);
    expect_after(p, "k/", "k/20/", names + 2, 2);
    expect_after(p, "k/", "k/20/a", names + 3, 1);
    expect_after(p, "k/", "k/30", NULL, 0);
    expect_after(p, "k/", "a", names, 4);    /* before everything with the prefix */
    expect_after(p, "k/", "l", NULL, 0);     /* after everything with the prefix */
    expect_after(p, "", "k/30", names + 4, 1);
    expect_after(p, "none/", "", NULL, 0);
}

static void check_prefixes(const test_place *p)
{
    static const char *const names[] = {"a", "a b", "a-b", "a/b", "a/b/c", "a0", "ab", "b"};
    static const char *const below[] = {"a/b", "a/b/c"};
    for (int i = 7; i >= 0; i--) CU_ASSERT_EQUAL(put(p, names[i], names[i], true), LS_REPLY_OK);
    for (int i = 0; i < 8; i++) CU_ASSERT(holds(p, names[i], names[i]));
    CU_ASSERT(lists(p, "", names, 8));
    CU_ASSERT(lists(p, "a", names, 7));
    CU_ASSERT(lists(p, "a/", below, 2));
    CU_ASSERT(lists(p, "a/b", below, 2));
    CU_ASSERT(lists(p, "a/b/", below + 1, 1));
    CU_ASSERT(lists(p, "a/b/c", below + 1, 1));
    CU_ASSERT(lists(p, "a/b/c/", NULL, 0));
    CU_ASSERT(lists(p, "ab", names + 6, 1));
    CU_ASSERT(lists(p, "c", NULL, 0));
    CU_ASSERT_EQUAL(delete_at(p, "a"),
                    LS_REPLY_OK); /* an object's name may be a folder's too: neither takes the other along */
    CU_ASSERT(holds(p, "a/b", "a/b"));
    CU_ASSERT_EQUAL(delete_at(p, "a/b"), LS_REPLY_OK);
    CU_ASSERT(holds(p, "a/b/c", "a/b/c"));
    CU_ASSERT_EQUAL(status_at(p, LS_HEAD, "a/b"), LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(status_at(p, LS_HEAD, "a"), LS_REPLY_NOT_FOUND);
}

/* In bytewise order. */
static const char *const odd_names[] = {
    "!bang", "#hash", "$dollar", "%", "%2F", "%41", "%%", "&amp;", "'quote'", "(paren)", "+plus+", ",comma", "..two",
    ".hidden", "100%/x%", ":colon", ";semi", "<tag>", "=equals", "?query=1&b=2", "@at", "A", "\"double\"", "\\back",
    "^caret", "`tick", "a", "trailing ", "trailing.", "two  spaces", "with space", "{brace}", "|pipe", "~tilde",
    "\xc3\xa9t\xc3\xa9/\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x8c\x8a",
};
#define ODD_NAMES (sizeof odd_names / sizeof odd_names[0])

static void check_odd_keys(const test_place *p)
{
    const char *sorted[ODD_NAMES];
    memcpy(sorted, odd_names, sizeof sorted);
    qsort(sorted, ODD_NAMES, sizeof sorted[0], compare_texts);
    for (size_t i = 0; i < ODD_NAMES; i++) CU_ASSERT_EQUAL(put(p, odd_names[i], odd_names[i], true), LS_REPLY_OK);
    CU_ASSERT(lists(p, "", sorted, ODD_NAMES));
    for (size_t i = 0; i < ODD_NAMES; i++) {
        CU_ASSERT(holds(p, odd_names[i], odd_names[i]));
        CU_ASSERT(head_says(p, odd_names[i], strlen(odd_names[i])));
        CU_ASSERT_EQUAL(put(p, odd_names[i], "again", true), LS_REPLY_EXISTS);
    }
    expect_after(p, "", sorted[ODD_NAMES - 2], sorted + ODD_NAMES - 1, 1);
    for (size_t i = 0; i < ODD_NAMES; i++) CU_ASSERT_EQUAL(delete_at(p, odd_names[i]), LS_REPLY_OK);
    CU_ASSERT(lists(p, "", NULL, 0));
}

static void check_long_key(const test_place *p)
{
    char name[KEY_BYTES], key[KEY_BYTES];
    size_t length = LS_STORE_KEY_BYTES_MAX - strlen(p->prefix);
    for (size_t i = 0; i < length; i++) name[i] = i % 200 == 199 ? '/' : 'k';
    if (name[length - 1] == '/') name[length - 2] = '/', name[length - 1] = 'k';
    name[length] = '\0';
    CU_ASSERT_EQUAL(strlen(at(p, name, key)), LS_STORE_KEY_BYTES_MAX);
    CU_ASSERT_EQUAL(put(p, name, "long", true), LS_REPLY_OK);
    CU_ASSERT(holds(p, name, "long"));
    const char *const names[] = {name};
    CU_ASSERT(lists(p, "kkk", names, 1));
    CU_ASSERT_EQUAL(delete_at(p, name), LS_REPLY_OK);
}

static void expect_refused(const test_place *p, const ls_object_request *request, ls_store_callback callback)
{
    store_answer answer = {0};
    CU_ASSERT_EQUAL(ls_store_submit(p->store, request, callback, &answer), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_store_in_flight(p->store), 0);
    CU_ASSERT_EQUAL(ls_store_poll(p->store, 0, NULL), LS_OK);
    CU_ASSERT_EQUAL(answer.calls, 0);
}

static void check_refused_requests(const test_place *p)
{
    static const char *const bad[] = {"",          "/a",
                                      "a/",        "a//b",
                                      "..",        ".",
                                      "../a",      "a/..",
                                      "a/../b",    "./a",
                                      "a/./b",     "\xff",
                                      "a\xc0\xaf", "\xed\xa0\x80",
                                      "\xe2\x82",  "\xf4\x90\x80\x80",
                                      "\x80"};
    static const ls_operation operations[] = {LS_GET, LS_PUT, LS_HEAD, LS_DELETE};
    char too_long[LS_STORE_KEY_BYTES_MAX + 2];
    memset(too_long, 'k', sizeof too_long);
    too_long[LS_STORE_KEY_BYTES_MAX + 1] = '\0';
    for (size_t o = 0; o < 4; o++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            expect_refused(p, &(ls_object_request){.operation = operations[o], .key = bad[i]}, store_answer_take);
        }
        expect_refused(p, &(ls_object_request){.operation = operations[o], .key = too_long}, store_answer_take);
        expect_refused(p, &(ls_object_request){.operation = operations[o]}, store_answer_take);
        expect_refused(p, &(ls_object_request){.operation = operations[o], .key = "a"}, NULL);
    }
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = "", .list_limit = 0}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = "", .list_limit = 1001}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = "/", .list_limit = 1}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = NULL, .list_limit = 1}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = too_long, .list_limit = 1}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_LIST, .key = "", .list_after = too_long, .list_limit = 1},
                   store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_PUT, .key = "a", .body_bytes = 1}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = (ls_operation)0, .key = "a"}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = (ls_operation)6, .key = "a"}, store_answer_take);
    expect_refused(p, &(ls_object_request){.operation = LS_GET, .key = "a", .range = (ls_range_kind)3},
                   store_answer_take);
}

#define CREATORS 16
#define RACES 200

/* Sixteen creators of one name in flight together: exactly one wins, and its bytes are in the object. */
static void race(const test_place *p, uint32_t number)
{
    char name[32], key[KEY_BYTES], bodies[CREATORS][16];
    store_answer answers[CREATORS] = {0};
    uint32_t winners = 0, winner = 0;
    snprintf(name, sizeof name, "race/%03" PRIu32, number);
    at(p, name, key);
    for (uint32_t i = 0; i < CREATORS; i++) {
        snprintf(bodies[i], sizeof bodies[i], "creator %" PRIu32, i);
        ls_object_request request = {
            .operation = LS_PUT, .key = key, .if_absent = true, .body = bodies[i], .body_bytes = strlen(bodies[i])};
        CU_ASSERT_EQUAL(ls_store_submit(p->store, &request, store_answer_take, &answers[i]), LS_OK);
    }
    store_drain(p->store);
    for (uint32_t i = 0; i < CREATORS; i++) {
        ls_reply_status status = answers[i].status;
        CU_ASSERT(status == LS_REPLY_OK || status == LS_REPLY_EXISTS || status == LS_REPLY_CONFLICT_RETRY);
        CU_ASSERT_EQUAL(answers[i].calls, 1);
        winners += status == LS_REPLY_OK;
        if (status == LS_REPLY_OK) winner = i;
        store_answer_clear(&answers[i]);
    }
    CU_ASSERT_EQUAL(winners, 1);
    CU_ASSERT(holds(p, name, bodies[winner]));
}

static void check_one_winner(const test_place *p)
{
    for (uint32_t i = 0; i < RACES; i++) race(p, i);
}

static void check_large_object(const test_place *p)
{
    const size_t size = (size_t)4 << 20;
    uint32_t *words = malloc(size);
    char key[KEY_BYTES];
    for (size_t i = 0; i < size / sizeof words[0]; i++) words[i] = (uint32_t)i * 2654435761u;
    CU_ASSERT_EQUAL(store_put(p->store, at(p, "large", key), words, size, true), LS_REPLY_OK);
    CU_ASSERT(store_holds(p->store, key, words, size));
    CU_ASSERT(head_says(p, "large", size));
    ls_object_request span = {
        .operation = LS_GET, .key = key, .range = LS_RANGE_SPAN, .range_offset = 1234567, .range_bytes = 1000001};
    store_answer answer = store_ask(p->store, &span);
    CU_ASSERT_EQUAL(answer.body_bytes, 1000001);
    CU_ASSERT(answer.body_bytes == 1000001 && memcmp(answer.body, (uint8_t *)words + 1234567, 1000001) == 0);
    CU_ASSERT_EQUAL(answer.object_bytes, size);
    store_answer_clear(&answer);
    free(words);
}

typedef struct put_chain {
    const test_place *place;
    uint32_t left;
    char key[KEY_BYTES];
    bool inside_poll;
    uint32_t outside;
    uint32_t wins;
} put_chain;

static void chain_step(void *context, const ls_object_reply *reply)
{
    put_chain *chain = context;
    chain->wins += reply->status == LS_REPLY_OK;
    chain->outside += !chain->inside_poll;
    if (chain->left == 0) return;
    char name[32];
    snprintf(name, sizeof name, "chain/%" PRIu32, chain->left--);
    at(chain->place, name, chain->key);
    ls_object_request request = {.operation = LS_PUT, .key = chain->key, .if_absent = true};
    CU_ASSERT_EQUAL(ls_store_submit(chain->place->store, &request, chain_step, chain), LS_OK);
}

/* Callbacks come from poll alone, may submit, and each submit is answered once. */
static void check_callbacks(const test_place *p)
{
    put_chain chain = {.place = p, .left = 20};
    chain_step(&chain, &(ls_object_reply){.status = LS_REPLY_NOT_FOUND});
    chain.outside = 0;
    CU_ASSERT_EQUAL(ls_store_in_flight(p->store), 1);
    chain.inside_poll = true;
    store_drain(p->store);
    CU_ASSERT_EQUAL(chain.wins, 20);
    CU_ASSERT_EQUAL(chain.outside, 0);
    uint32_t finished = 7;
    CU_ASSERT_EQUAL(ls_store_poll(p->store, 0, &finished), LS_OK);
    CU_ASSERT_EQUAL(finished, 0);
    CU_ASSERT_EQUAL(ls_store_poll(p->store, LS_NEVER_NS, &finished), LS_OK); /* nothing can come: no waiting */
    CU_ASSERT_EQUAL(ls_store_poll(p->store, 1000, NULL), LS_OK);
}

static void check_probe(const test_place *p)
{
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_store_probe(p->store, p->prefix, 42, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(error.text, "");
    CU_ASSERT(lists(p, "", NULL, 0)); /* it cleans up */
    CU_ASSERT_EQUAL(ls_store_probe(p->store, p->prefix, 42, &error), LS_OK);
}

static void check_call(const test_place *p)
{
    char key[KEY_BYTES];
    uint8_t *body;
    uint64_t body_bytes;
    ls_reply_status status;
    ls_error error;
    ls_object_request put_it = {.operation = LS_PUT, .key = at(p, "call", key), .body = "text", .body_bytes = 4};
    ls_object_request get_it = {.operation = LS_GET, .key = key};
    CU_ASSERT_EQUAL(ls_store_call(p->store, &get_it, &status, &body, &body_bytes, &error), LS_OK);
    CU_ASSERT_EQUAL(status, LS_REPLY_NOT_FOUND);
    CU_ASSERT_PTR_NULL(body);
    CU_ASSERT_EQUAL(ls_store_call(p->store, &put_it, &status, NULL, NULL, NULL), LS_OK);
    CU_ASSERT_EQUAL(status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(ls_store_call(p->store, &get_it, &status, &body, &body_bytes, &error), LS_OK);
    CU_ASSERT_EQUAL(status, LS_REPLY_OK);
    CU_ASSERT(body_bytes == 4 && memcmp(body, "text", 4) == 0);
    ls_free(body);
    get_it.key = "a/../b";
    CU_ASSERT_EQUAL(ls_store_call(p->store, &get_it, &status, &body, &body_bytes, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "'..'"));
}

static const struct {
    const char *name;
    void (*function)(const test_place *place);
} checks[] = {
    {"put, get, head", check_put_get_head},
    {"put if absent", check_if_absent},
    {"overwrite", check_overwrite},
    {"missing and deleted objects", check_missing_and_deleted},
    {"ranges", check_ranges},
    {"empty object", check_empty_object},
    {"list after", check_list_after},
    {"prefixes, and a folder and an object of one name", check_prefixes},
    {"odd keys", check_odd_keys},
    {"longest key", check_long_key},
    {"refused requests", check_refused_requests},
    {"16 creators, one winner", check_one_winner},
    {"4 MiB", check_large_object},
    {"callbacks", check_callbacks},
    {"probe", check_probe},
    {"call", check_call},
    {"order and paging of 2500 keys", check_list_paging},
};

static void run_check(size_t number, ls_store *store)
{
    test_place place = {.store = store};
    unsigned failures = CU_get_number_of_failures();
    snprintf(place.prefix, sizeof place.prefix, "conformance/%ld-%zu/", (long)getpid(), number);
    remove_everything(&place);
    checks[number].function(&place);
    remove_everything(&place);
    if (CU_get_number_of_failures() != failures)
        fprintf(stderr, "  store conformance: '%s' failed\n", checks[number].name);
}

/* Unfinished operations are dropped without a callback. */
static void check_destroy(ls_store *store)
{
    store_answer answers[2] = {0};
    ls_object_request get = {.operation = LS_GET, .key = "conformance/none"};
    ls_object_request list = {.operation = LS_LIST, .key = "conformance/", .list_limit = 10};
    CU_ASSERT_EQUAL(ls_store_submit(store, &get, store_answer_take, &answers[0]), LS_OK);
    CU_ASSERT_EQUAL(ls_store_submit(store, &list, store_answer_take, &answers[1]), LS_OK);
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 2);
    ls_store_destroy(store);
    CU_ASSERT_EQUAL(answers[0].calls + answers[1].calls, 0);
}

void ls_store_conformance(ls_store *(*open)(void *context), void *context)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        ls_store *store = open(context);
        CU_ASSERT_PTR_NOT_NULL(store);
        if (store == NULL) return;
        run_check(i, store);
        ls_store_destroy(store);
    }
    ls_store *store = open(context);
    CU_ASSERT_PTR_NOT_NULL(store);
    if (store != NULL) check_destroy(store);
}
