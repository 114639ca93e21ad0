/* test_store.c - memory and delayed stores under the conformance suite, the probe against planted broken stores,
 * opening by address, the order that the delay store keeps, and every allocation failing in turn.
 */
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static ls_store *open_memory(void *context)
{
    (void)context;
    return ls_store_new_memory();
}

static void test_memory_conforms(void)
{
    ls_store_conformance(open_memory, NULL);
}

static int64_t law_constant(void *context, const ls_object_request *request)
{
    (void)request;
    return *(const int64_t *)context;
}

static ls_store *open_delayed(void *context)
{
    return ls_store_new_delay(ls_store_new_memory(), law_constant, context, 0.5);
}

static void test_delayed_memory_conforms(void)
{
    int64_t none_ns = 0, some_ns = 1000;
    ls_store_conformance(open_delayed, &none_ns);
    ls_store_conformance(open_delayed, &some_ns);
}

/* An answer belongs to the instant of effect, which for the memory store is submit. */
static void test_memory_takes_effect_at_submit(void)
{
    ls_store *store = ls_store_new_memory();
    ls_object_request first = {.operation = LS_PUT, .key = "a", .body = "one", .body_bytes = 3};
    ls_object_request second = {.operation = LS_PUT, .key = "a", .body = "second", .body_bytes = 6};
    ls_object_request get = {.operation = LS_GET, .key = "a"};
    ls_object_request delete_it = {.operation = LS_DELETE, .key = "a"};
    ls_object_request list = {.operation = LS_LIST, .key = "", .list_limit = 5};
    const ls_object_request *const order[] = {&get, &first, &get, &list, &second, &get, &delete_it, &list, &get};
    store_answer answers[9] = {0};
    for (int i = 0; i < 9; i++)
        CU_ASSERT_EQUAL(ls_store_submit(store, order[i], store_answer_take, &answers[i]), LS_OK);
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 9);
    uint32_t finished = 0;
    CU_ASSERT_EQUAL(ls_store_poll(store, 0, &finished), LS_OK);
    CU_ASSERT_EQUAL(finished, 9);
    CU_ASSERT_EQUAL(answers[0].status, LS_REPLY_NOT_FOUND);
    CU_ASSERT(answers[2].body_bytes == 3 && memcmp(answers[2].body, "one", 3) == 0);
    CU_ASSERT_EQUAL(answers[3].key_count, 1);
    CU_ASSERT(answers[5].body_bytes == 6 && memcmp(answers[5].body, "second", 6) == 0);
    CU_ASSERT_EQUAL(answers[7].key_count, 0);
    CU_ASSERT_EQUAL(answers[8].status, LS_REPLY_NOT_FOUND);
    for (int i = 0; i < 9; i++) store_answer_clear(&answers[i]);
    ls_store_destroy(store);
}

/* The delay store. */

typedef struct reply_order {
    char order[64]; /* one letter for each answer */
    size_t count;
} reply_order;

typedef struct timed_request {
    reply_order *timeline;
    char letter;
    store_answer answer;
} timed_request;

static void timed_take(void *context, const ls_object_reply *reply)
{
    timed_request *timed = context;
    store_answer_take(&timed->answer, reply);
    if (timed->timeline->count < sizeof timed->timeline->order - 1) {
        timed->timeline->order[timed->timeline->count++] = timed->letter;
    }
}

/* Puts take long_ns, everything else its key's length in milliseconds: "a" 1, "aa" 2, ... */
static int64_t law_by_request(void *context, const ls_object_request *request)
{
    if (request->operation == LS_PUT) return *(const int64_t *)context;
    return (int64_t)strlen(request->key) * LS_NANOSECONDS_PER_SECOND / 1000;
}

static void submit_timed(ls_store *store, const ls_object_request *request, timed_request *timed)
{
    CU_ASSERT_EQUAL(ls_store_submit(store, request, timed_take, timed), LS_OK);
}

static void test_delay_constant_keeps_order(void)
{
    int64_t latency_ns = 2000000;
    ls_store *store = open_delayed(&latency_ns);
    reply_order timeline = {.count = 0};
    timed_request all[26] = {0};
    ls_object_request head = {.operation = LS_HEAD, .key = "none"};
    for (int i = 0; i < 26; i++) {
        all[i].timeline = &timeline;
        all[i].letter = (char)('a' + i);
        submit_timed(store, &head, &all[i]);
    }
    uint32_t finished = 99;
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 26);
    store_drain(store);
    CU_ASSERT_EQUAL(ls_store_poll(store, 0, &finished), LS_OK);
    CU_ASSERT_EQUAL(finished, 0);
    CU_ASSERT_STRING_EQUAL(timeline.order, "abcdefghijklmnopqrstuvwxyz");
    for (int i = 0; i < 26; i++) store_answer_clear(&all[i].answer);
    ls_store_destroy(store);
}

/* A put whose effect comes first and whose reply comes hours later, and one the other way round: a get in between sees
 * the effect, not the reply. */
static void test_delay_effect_apart_from_reply(void)
{
    int64_t hours_ns = 5 * 3600 * LS_NANOSECONDS_PER_SECOND;
    reply_order timeline = {.count = 0};
    for (int late = 0; late <= 1; late++) {
        ls_store *store = ls_store_new_delay(ls_store_new_memory(), law_by_request, &hours_ns, late);
        timed_request written = {.timeline = &timeline, .letter = 'w'}, read = {.timeline = &timeline, .letter = 'r'};
        ls_object_request put = {.operation = LS_PUT, .key = "a", .if_absent = true, .body = "x", .body_bytes = 1};
        ls_object_request get = {.operation = LS_GET, .key = "a"};
        submit_timed(store, &put, &written);
        submit_timed(store, &get, &read);
        while (!read.answer.done) CU_ASSERT_EQUAL(ls_store_poll(store, LS_NANOSECONDS_PER_SECOND, NULL), LS_OK);
        CU_ASSERT_EQUAL(read.answer.status, late ? LS_REPLY_NOT_FOUND : LS_REPLY_OK);
        CU_ASSERT_FALSE(written.answer.done);
        CU_ASSERT_EQUAL(ls_store_in_flight(store), 1);
        ls_store_destroy(store);
        CU_ASSERT_EQUAL(written.answer.calls, 0);
        store_answer_clear(&read.answer);
    }
}

/* Put: 6 ms, effect at 3. The get submitted before it takes effect at 1 (2 ms long), the one after it at 4 (8 ms long):
 * both hold however late the polls come, since effects are carried out in the order in which they were due. */
static void test_delay_effect_in_the_middle(void)
{
    int64_t put_ns = 6000000;
    reply_order timeline = {.count = 0};
    ls_store *store = ls_store_new_delay(ls_store_new_memory(), law_by_request, &put_ns, 0.5);
    timed_request early = {.timeline = &timeline, .letter = 'e'}, written = {.timeline = &timeline, .letter = 'w'};
    timed_request later = {.timeline = &timeline, .letter = 'l'}, list = {.timeline = &timeline, .letter = 'p'};
    ls_object_request put = {.operation = LS_PUT, .key = "aaaaaaaa", .body = "x", .body_bytes = 1};
    ls_object_request get_early = {.operation = LS_LIST, .key = "aa", .list_limit = 1};
    ls_object_request get_later = {.operation = LS_GET, .key = "aaaaaaaa"};
    ls_object_request list_later = {.operation = LS_LIST, .key = "aaaaaaa", .list_limit = 1};
    submit_timed(store, &get_early, &early);
    submit_timed(store, &put, &written);
    submit_timed(store, &get_later, &later);
    submit_timed(store, &list_later, &list);
    usleep(20000); /* a late poll */
    store_drain(store);
    CU_ASSERT_EQUAL(early.answer.key_count, 0);
    CU_ASSERT_EQUAL(written.answer.status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(later.answer.status, LS_REPLY_OK);
    CU_ASSERT(later.answer.body_bytes == 1 && later.answer.body[0] == 'x');
    CU_ASSERT_EQUAL(list.answer.key_count, 1);
    CU_ASSERT(list.answer.key_count == 1 && strcmp(list.answer.keys[0], "aaaaaaaa") == 0 &&
              list.answer.key_bytes[0] == 1);
    CU_ASSERT_EQUAL(timeline.order[0], 'e');
    CU_ASSERT_EQUAL(timeline.order[1], 'w');
    store_answer_clear(&early.answer);
    store_answer_clear(&written.answer);
    store_answer_clear(&later.answer);
    store_answer_clear(&list.answer);
    ls_store_destroy(store);
}

/* Laws that make no sense are clamped, and a poll that runs out of time says so. */
static void test_delay_extremes(void)
{
    int64_t negative_ns = -5, forever_ns = LS_NEVER_NS;
    ls_store *store = ls_store_new_delay(ls_store_new_memory(), law_constant, &negative_ns, 7.0);
    CU_ASSERT_EQUAL(store_put(store, "a", "x", 1, true), LS_REPLY_OK);
    ls_store_destroy(store);
    store = ls_store_new_delay(ls_store_new_memory(), law_constant, &forever_ns, 1.0);
    store_answer answer = {0};
    ls_object_request head = {.operation = LS_HEAD, .key = "a"};
    uint32_t finished = 1;
    CU_ASSERT_EQUAL(ls_store_submit(store, &head, store_answer_take, &answer), LS_OK);
    CU_ASSERT_EQUAL(ls_store_poll(store, 1000, &finished), LS_OK);
    CU_ASSERT_EQUAL(finished, 0);
    ls_store_destroy(store);
    CU_ASSERT_EQUAL(answer.calls, 0);
}

/* Broken stores. */

typedef enum store_defect {
    DEFECT_IGNORES_CONDITION, /* every put overwrites and is told OK */
    DEFECT_THREE_WINNERS,     /* checks, then writes: three who check at the same time all win */
    DEFECT_TELLS_BUT_WRITES,  /* says "exists" and overwrites all the same */
    DEFECT_UNAVAILABLE,       /* answers nothing useful */
    DEFECT_CONFLICT_FIRST,    /* sound: tells some creators 409 at first */
    DEFECT_CONFLICT_ALWAYS,   /* never decides */
    DEFECT_LOSES_OBJECT       /* says OK and stores nothing */
} store_defect;

typedef struct broken_store {
    ls_store base;
    ls_store *inner;
    store_defect defect;
    uint32_t puts;
    uint32_t together; /* puts since the last poll */
} broken_store;

typedef struct bent_answer {
    ls_store_callback callback;
    void *context;
    ls_reply_status status;
} bent_answer;

static void bent_reply(void *context, const ls_object_reply *reply)
{
    bent_answer *bent = context;
    ls_object_reply other = {.status = bent->status, .message = reply->message};
    bent->callback(bent->context, &other);
    ls_free(bent);
}

static void ignore_reply(void *context, const ls_object_reply *reply)
{
    (void)context;
    (void)reply;
}

/* Answers with a status without touching the object. */
static ls_result answer_only(broken_store *store, const ls_object_request *request, ls_store_callback callback,
                             void *context, ls_reply_status status)
{
    bent_answer *bent = ls_allocate(sizeof *bent);
    *bent = (bent_answer){callback, context, status};
    ls_object_request head = {.operation = LS_HEAD, .key = request->key};
    return ls_store_submit(store->inner, &head, bent_reply, bent);
}

static ls_result broken_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                               void *context)
{
    broken_store *store = (broken_store *)base;
    ls_object_request plain = *request;
    plain.if_absent = false;
    if (request->operation != LS_PUT) return ls_store_submit(store->inner, request, callback, context);
    uint32_t before = store->together++;
    store->puts++;
    switch (store->defect) {
    case DEFECT_IGNORES_CONDITION: return ls_store_submit(store->inner, &plain, callback, context);
    case DEFECT_THREE_WINNERS:
        return ls_store_submit(store->inner, before == 1 || before == 2 ? &plain : request, callback, context);
    case DEFECT_TELLS_BUT_WRITES: {
        ls_result result = ls_store_submit(store->inner, request, callback, context);
        return result == LS_OK ? ls_store_submit(store->inner, &plain, ignore_reply, NULL) : result;
    }
    case DEFECT_UNAVAILABLE: return answer_only(store, request, callback, context, LS_REPLY_UNAVAILABLE);
    case DEFECT_CONFLICT_FIRST:
        if (before % 2 == 1 && store->puts < 14)
            return answer_only(store, request, callback, context, LS_REPLY_CONFLICT_RETRY);
        return ls_store_submit(store->inner, request, callback, context);
    case DEFECT_CONFLICT_ALWAYS: return answer_only(store, request, callback, context, LS_REPLY_CONFLICT_RETRY);
    case DEFECT_LOSES_OBJECT:
        return answer_only(store, request, callback, context, store->puts == 1 ? LS_REPLY_OK : LS_REPLY_EXISTS);
    }
    return LS_ERROR_INVALID;
}

static ls_result broken_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    broken_store *store = (broken_store *)base;
    store->together = 0;
    return ls_store_poll(store->inner, timeout_ns, finished);
}

static uint32_t broken_in_flight(const ls_store *base)
{
    return ls_store_in_flight(((const broken_store *)base)->inner);
}

static void broken_destroy(ls_store *base)
{
    ls_store_destroy(((broken_store *)base)->inner);
}

static const ls_store_methods broken_methods = {broken_submit, broken_poll, broken_in_flight, broken_destroy};

static void expect_probe(store_defect defect, ls_result result, const char *text)
{
    broken_store store = {.base = {&broken_methods}, .inner = ls_store_new_memory(), .defect = defect};
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_store_probe(&store.base, "some/prefix", 7, &error), result);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, text));
    if (strstr(error.text, text) == NULL) fprintf(stderr, "  probe said: %s\n", error.text);
    CU_ASSERT(store_lists(store.inner, "", "", NULL, 0)); /* nothing stays behind */
    ls_store_destroy(&store.base);
}

static void test_probe_judges(void)
{
    expect_probe(DEFECT_IGNORES_CONDITION, LS_ERROR_IO,
                 "2 of 2 creators of 'some/prefix/probe/0000000000000007-twice' won");
    expect_probe(DEFECT_THREE_WINNERS, LS_ERROR_IO,
                 "3 of 8 creators of 'some/prefix/probe/0000000000000007-together' won");
    expect_probe(DEFECT_TELLS_BUT_WRITES, LS_ERROR_IO, "holds other bytes than its only winner wrote");
    expect_probe(DEFECT_UNAVAILABLE, LS_ERROR_IO, "inconclusive");
    expect_probe(DEFECT_CONFLICT_FIRST, LS_OK, "");
    expect_probe(DEFECT_CONFLICT_ALWAYS, LS_ERROR_IO, "none of 2 creators");
    expect_probe(DEFECT_LOSES_OBJECT, LS_ERROR_IO, "reading back");
}

static void test_open_by_address(void)
{
    static const char *const bad[] = {
        "", "mem", "memory:", "dir:", "dir", "file:///tmp", "s3:/bucket", "http://host/x"};
    char *prefix = NULL;
    ls_error error;
    ls_store *store = ls_store_open("memory", &prefix, &error);
    CU_ASSERT_PTR_NOT_NULL(store);
    CU_ASSERT_STRING_EQUAL(prefix, "");
    CU_ASSERT_EQUAL(store_put(store, "a", "x", 1, true), LS_REPLY_OK);
    ls_store_destroy(store);
    ls_free(prefix);
    char address[300];
    snprintf(address, sizeof address, "dir:%s", ls_test_path("by-address/below"));
    store = ls_store_open(address, &prefix, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    CU_ASSERT_STRING_EQUAL(prefix, "");
    CU_ASSERT_EQUAL(store_put(store, "a", "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(access(ls_test_path("by-address/below/a%"), F_OK), 0);
    ls_store_destroy(store);
    ls_free(prefix);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_PTR_NULL(ls_store_open(bad[i], &prefix, &error));
        CU_ASSERT_PTR_NULL(prefix);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "expected 'memory', 'dir:PATH' or 's3://bucket/prefix'"));
    }
    ls_store_destroy(NULL);
}

/* Out of memory. */

typedef ls_store *(*opener)(void *context);

/* Every operation with the n-th allocation failing, for n = 0, 1, ... until none fails: each either is not started or
 * answered, and what a failed put did not acknowledge it did not half do. */
static void survive(opener open, void *context)
{
    ls_store *store = open(context);
    uint64_t failures = 0;
    CU_ASSERT_EQUAL(store_put(store, "k/1", "one", 3, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_put(store, "k/2", "two", 3, true), LS_REPLY_OK);
    const ls_object_request requests[] = {
        {.operation = LS_GET, .key = "k/1"},
        {.operation = LS_LIST, .key = "k", .list_limit = 10},
        {.operation = LS_PUT, .key = "k/3", .if_absent = true, .body = "three", .body_bytes = 5},
        {.operation = LS_HEAD, .key = "k/3"},
        {.operation = LS_DELETE, .key = "k/3"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        bool good = false;
        for (int64_t n = 0; !good && n < 100; n++) {
            store_answer answer = {0};
            ls_fail_allocations_after(n);
            ls_result result = ls_store_submit(store, &requests[i], store_answer_take, &answer);
            CU_ASSERT(result == LS_OK || result == LS_ERROR_MEMORY);
            if (result == LS_OK) store_drain(store);
            ls_fail_allocations_after(-1);
            CU_ASSERT_EQUAL(answer.calls, result == LS_OK);
            CU_ASSERT(answer.status == LS_REPLY_OK || answer.status == LS_REPLY_UNAVAILABLE);
            good = result == LS_OK && answer.status == LS_REPLY_OK;
            failures += !good;
            if (!good && requests[i].operation == LS_PUT) CU_ASSERT(store_lists(store, "k/3", "", NULL, 0));
            store_answer_clear(&answer);
        }
        CU_ASSERT(good);
    }
    CU_ASSERT(failures >= 5); /* at least one a request */
    CU_ASSERT(store_holds(store, "k/2", "two", 3));
    ls_store_destroy(store);
}

static ls_store *open_test_directory(void *context)
{
    return ls_store_open_directory(context, NULL);
}

static void test_without_memory(void)
{
    char folder[300];
    int64_t none_ns = 0;
    snprintf(folder, sizeof folder, "%s", ls_test_path("without-memory"));
    survive(open_memory, NULL);
    survive(open_delayed, &none_ns);
    survive(open_test_directory, folder);
    static const char *const addresses[] = {"memory", "dir:"};
    for (size_t i = 0; i < 2; i++) {
        char address[400], *prefix = NULL;
        snprintf(address, sizeof address, "%s%s", addresses[i], i == 1 ? ls_test_path("without/memory/deep") : "");
        ls_store *store = NULL;
        int64_t n = 0;
        for (; store == NULL && n < 50; n++) {
            ls_error error = {""};
            ls_fail_allocations_after(n);
            store = ls_store_open(address, &prefix, &error);
            ls_fail_allocations_after(-1);
            if (store == NULL) CU_ASSERT(error.text[0] != '\0');
        }
        CU_ASSERT(store != NULL && n >= 3);
        ls_store_destroy(store);
        ls_free(prefix);
    }
    ls_store *inner = ls_store_new_memory();
    ls_fail_allocations_after(0);
    CU_ASSERT_PTR_NULL(ls_store_new_delay(inner, law_constant, &none_ns, 0.5)); /* frees inner */
    ls_fail_allocations_after(-1);
}

static void test_call_and_probe_without_memory(void)
{
    ls_store *store = ls_store_new_memory();
    CU_ASSERT_EQUAL(store_put(store, "a", "x", 1, true), LS_REPLY_OK);
    ls_object_request get = {.operation = LS_GET, .key = "a"};
    bool good = false;
    int64_t n = 0;
    for (; !good && n < 20; n++) {
        ls_reply_status status;
        uint8_t *body = NULL;
        ls_error error = {""};
        ls_fail_allocations_after(n);
        ls_result result = ls_store_call(store, &get, &status, &body, NULL, &error);
        ls_fail_allocations_after(-1);
        good = result == LS_OK;
        if (!good) CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
        if (!good) CU_ASSERT(error.text[0] != '\0');
        ls_free(body);
    }
    CU_ASSERT(good && n == 4); /* the call, the answer, the copy of the body; then success */
    good = false;
    for (n = 0; !good && n < 200; n++) {
        ls_error error = {""};
        ls_fail_allocations_after(n);
        ls_result result = ls_store_probe(store, "", (uint64_t)n, &error);
        ls_fail_allocations_after(-1);
        good = result == LS_OK;
        if (!good) CU_ASSERT(error.text[0] != '\0');
    }
    CU_ASSERT(good && n > 10);
    ls_store_destroy(store);
}

LS_SUITE(store, {"memory conforms", test_memory_conforms}, {"delayed memory conforms", test_delayed_memory_conforms},
         {"memory takes effect at submit", test_memory_takes_effect_at_submit},
         {"a constant delay keeps the order", test_delay_constant_keeps_order},
         {"effect apart from reply", test_delay_effect_apart_from_reply},
         {"effect in the middle", test_delay_effect_in_the_middle}, {"delay: extremes", test_delay_extremes},
         {"the probe judges", test_probe_judges}, {"opening by address", test_open_by_address},
         {"every allocation fails once", test_without_memory},
         {"call and probe without memory", test_call_and_probe_without_memory})
