/* test_loop.c - the real-time loop: timers, fairness, translation of requests, damage, and whole lakes of real machines
 * on memory, on a directory, behind delays and behind faults, checked version by version against the protocol's
 * invariants.
 */
#include "backend/loop.h"
#include "manifest/codec.h"
#include "manifest/consumer.h"
#include "manifest/invariants.h"
#include "manifest/producer.h"
#include "manifest/tgb.h"
#include "policies/policy.h"
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handler that keeps a diary. */

#define DIARY_MAX 64

typedef struct diary {
    ls_loop *loop;
    uint64_t timers[DIARY_MAX]; /* arguments, in order */
    uint32_t timer_count;
    uint32_t reply_count;
    uint32_t kind, entity;
    ls_store_reply reply; /* the last one; its manifest is ours */
    ls_key names[8];      /* the first of a list that asked for them */
    uint64_t name_bytes[8];
    int64_t name_ages_ns[8];
    uint8_t data[64];
    uint64_t data_offset, data_bytes;
    ls_key data_key;
    uint32_t data_entity, data_calls;
    uint64_t bodies;
    bool last_now_fell_back;
    int64_t last_now_ns;
} diary;

static void note_time(diary *d, int64_t now_ns)
{
    d->last_now_fell_back |= now_ns < d->last_now_ns;
    d->last_now_ns = now_ns;
}

static ls_result diary_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    diary *d = context;
    note_time(d, now_ns);
    d->kind = kind;
    d->entity = entity;
    if (d->timer_count < DIARY_MAX) d->timers[d->timer_count++] = argument;
    return LS_OK;
}

static ls_result diary_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    diary *d = context;
    note_time(d, now_ns);
    d->kind = kind;
    d->entity = entity;
    ls_manifest_release(d->reply.manifest);
    d->reply = *reply;
    for (uint64_t i = 0; reply->list_keys != NULL && i < reply->list_count && i < 8; i++) {
        d->names[i] = reply->list_keys[i];
        d->name_bytes[i] = reply->list_bytes[i];
        d->name_ages_ns[i] = reply->list_ages_ns[i];
    }
    d->reply_count++;
    return LS_OK;
}

static ls_result diary_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    diary *d = context;
    d->bodies++;
    for (uint64_t i = 0; i < size; i++) bytes[i] = (uint8_t)(key->sequence + i);
    return LS_OK;
}

static ls_result diary_data(void *context, uint32_t entity, const ls_key *key, uint64_t offset, const uint8_t *bytes,
                            uint64_t length)
{
    diary *d = context;
    d->data_calls++;
    d->data_entity = entity;
    d->data_key = *key;
    d->data_offset = offset;
    d->data_bytes = length;
    if (length > 0) memcpy(d->data, bytes, length < sizeof d->data ? length : sizeof d->data);
    return LS_OK;
}

static const ls_loop_handler diary_handler = {diary_timer, diary_reply, diary_body, diary_data};

static void open_diary(diary *d, ls_store *store, const char *prefix)
{
    *d = (diary){0};
    d->loop = ls_loop_new(store, prefix, &diary_handler, d);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->loop);
}

static void close_diary(diary *d)
{
    CU_ASSERT_FALSE(d->last_now_fell_back);
    ls_manifest_release(d->reply.manifest);
    ls_loop_free(d->loop);
}

/* Sends one request and runs until its reply is in the diary. */
static const ls_store_reply *ask(diary *d, const ls_store_request *request)
{
    uint32_t before = d->reply_count;
    CU_ASSERT_EQUAL(ls_loop_submit(d->loop, request, 3, 14), LS_OK);
    CU_ASSERT_EQUAL(d->reply_count, before);
    CU_ASSERT_EQUAL(ls_loop_run(d->loop), LS_OK);
    CU_ASSERT_EQUAL(d->reply_count, before + 1);
    CU_ASSERT_EQUAL(d->reply.tag, request->tag);
    CU_ASSERT(d->kind == 3 && d->entity == 14);
    CU_ASSERT_EQUAL(ls_loop_in_flight(d->loop), 0);
    return &d->reply;
}

/* Timers. */

static void test_timers_in_order(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "");
    static const int64_t times_ns[] = {30, 10, 20, 10, 1500000, 1000000, 10, -5, 1500000};
    static const uint64_t expected[] = {7, 1, 3, 6, 2, 0, 5, 4, 8};
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK); /* nothing to do: returns */
    for (uint64_t i = 0; i < 9; i++) CU_ASSERT_EQUAL(ls_loop_timer(d.loop, times_ns[i], 1, 2, i), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_timer(d.loop, LS_NEVER_NS, 1, 2, 99), LS_OK);
    CU_ASSERT_EQUAL(d.timer_count, 0);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_EQUAL(d.timer_count, 9);
    for (int i = 0; i < 9; i++) CU_ASSERT_EQUAL(d.timers[i], expected[i]);
    CU_ASSERT(d.kind == 1 && d.entity == 2);
    CU_ASSERT(ls_loop_now(d.loop) >= 1500000); /* none came early */
    CU_ASSERT_EQUAL(ls_loop_timer(d.loop, ls_loop_now(d.loop) + 2000000, 1, 2, 50), LS_OK);
    int64_t asked_ns = ls_loop_now(d.loop);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_EQUAL(d.timer_count, 10);
    CU_ASSERT(d.last_now_ns >= asked_ns); /* it was waited for */
    close_diary(&d);
    ls_store_destroy(store);
}

/* A thousand timers in scrambled order come out sorted: the heap against the plain truth. */
typedef struct sorted_check {
    int64_t last_at_ns;
    uint64_t count, out_of_order;
} sorted_check;

static ls_result check_sorted(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    sorted_check *check = context;
    (void)kind;
    (void)entity;
    int64_t at_ns = (int64_t)(argument >> 16);
    check->out_of_order += at_ns < check->last_at_ns || now_ns < at_ns;
    check->last_at_ns = at_ns;
    check->count++;
    return LS_OK;
}

static void test_many_timers(void)
{
    ls_store *store = ls_store_new_memory();
    sorted_check check = {0};
    ls_loop_handler handler = {.timer = check_sorted};
    ls_loop *loop = ls_loop_new(store, "", &handler, &check);
    ls_random random = ls_random_open(11, 0, LS_RANDOM_TEST, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t at_ns = ls_random_below(&random, 500);
        CU_ASSERT_EQUAL(ls_loop_timer(loop, (int64_t)at_ns, 0, 0, at_ns << 16 | i), LS_OK);
    }
    CU_ASSERT_EQUAL(ls_loop_run(loop), LS_OK);
    CU_ASSERT_EQUAL(check.count, 1000);
    CU_ASSERT_EQUAL(check.out_of_order, 0);
    ls_loop_free(loop);
    ls_store_destroy(store);
}

/* Fairness: whoever always has something to do leaves the other its turn. */

typedef struct busy {
    ls_loop *loop;
    uint64_t timers, replies;
    bool timers_rearm, replies_resubmit;
} busy;

static ls_result submit_head(ls_loop *loop)
{
    ls_store_request head = {.operation = LS_HEAD, .key = {.kind = LS_OBJECT_MANIFEST, .number = 1}};
    return ls_loop_submit(loop, &head, 0, 0);
}

static ls_result busy_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    busy *b = context;
    (void)kind;
    (void)entity;
    (void)argument;
    if (++b->timers > 1000000) return LS_ERROR_LIMIT;
    if (b->timers_rearm) return ls_loop_timer(b->loop, now_ns - 1000, 0, 0, 0);
    ls_loop_stop(b->loop);
    return LS_OK;
}

static ls_result busy_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    busy *b = context;
    (void)now_ns;
    (void)kind;
    (void)entity;
    CU_ASSERT_EQUAL(reply->status, LS_REPLY_NOT_FOUND);
    if (++b->replies > 10000000) return LS_ERROR_LIMIT;
    if (b->replies_resubmit) return submit_head(b->loop);
    ls_loop_stop(b->loop);
    return LS_OK;
}

static void test_nobody_starves(void)
{
    static const ls_loop_handler handler = {.timer = busy_timer, .reply = busy_reply};
    for (int timers = 0; timers <= 1; timers++) {
        ls_store *store = ls_store_new_memory();
        busy b = {.timers_rearm = timers, .replies_resubmit = !timers};
        b.loop = ls_loop_new(store, "", &handler, &b);
        CU_ASSERT_EQUAL(submit_head(b.loop), LS_OK);
        CU_ASSERT_EQUAL(ls_loop_timer(b.loop, ls_loop_now(b.loop) + (timers ? 0 : 300000), 0, 0, 0), LS_OK);
        CU_ASSERT_EQUAL(ls_loop_run(b.loop), LS_OK);
        CU_ASSERT(b.timers >= 1 && b.replies >= 1);
        if (timers) CU_ASSERT_EQUAL(b.timers, 1); /* one pass: the timer that was due, then the store's turn */
        ls_loop_free(b.loop);
        ls_store_destroy(store);
    }
}

static ls_result stopping_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    diary *d = context;
    diary_timer(context, now_ns, kind, entity, argument);
    if (argument == 100) ls_loop_stop(d->loop);
    return argument == 200 ? LS_ERROR_VIOLATED : LS_OK;
}

static void test_stop_resume_fail(void)
{
    static const ls_loop_handler handler = {.timer = stopping_timer, .reply = diary_reply};
    ls_store *store = ls_store_new_memory();
    diary d = {0};
    d.loop = ls_loop_new(store, "", &handler, &d);
    static const uint64_t arguments[] = {1, 100, 2, 100, 3, 200, 4};
    for (int i = 0; i < 7; i++) CU_ASSERT_EQUAL(ls_loop_timer(d.loop, i, 0, 0, arguments[i]), LS_OK);
    CU_ASSERT_EQUAL(submit_head(d.loop), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_EQUAL(d.timer_count, 2);
    CU_ASSERT_EQUAL(d.reply_count, 0);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK); /* the rest is still there, in order */
    CU_ASSERT_EQUAL(d.timer_count, 4);
    CU_ASSERT_STRING_EQUAL(ls_loop_error(d.loop), "");
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_ERROR_VIOLATED);
    CU_ASSERT_EQUAL(d.timer_count, 6);
    for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(d.timers[i], arguments[i]);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(d.loop), "invariant violated"));
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_ERROR_VIOLATED); /* and stays failed */
    CU_ASSERT_EQUAL(d.timer_count, 6);
    ls_loop_free(d.loop);
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 0); /* freed after its request was answered */
    CU_ASSERT_EQUAL(d.reply_count, 0);
    ls_store_destroy(store);
}

/* Requests. */

static ls_commit commit_of(uint64_t attempt, uint64_t source_end, uint32_t slot, const ls_entry *entry)
{
    return (ls_commit){.id = {9, attempt},
                       .row = {.producer = 5, .next_source_offset = source_end, .epoch = 1},
                       .slot = slot,
                       .entries = entry,
                       .entry_count = 1};
}

/* Version `version` of a lake whose every version adds one entry; a new reference. */
static ls_manifest *make_version(uint64_t version)
{
    ls_manifest *manifest = ls_manifest_new_empty();
    for (uint64_t v = 1; v <= version; v++) {
        ls_entry entry = {.producer = 5, .sequence = v - 1, .source_begin = (v - 1) * 10, .source_end = v * 10,
                          .size_bytes = 1000 + v, .epoch = 1, .footer_bytes = 100};
        ls_commit commit = commit_of(v, v * 10, v == 1 ? LS_NO_SLOT : 0, &entry);
        ls_manifest *child = NULL;
        CU_ASSERT_EQUAL(ls_manifest_append(manifest, &commit, &child), LS_OK);
        ls_manifest_release(manifest);
        manifest = child;
    }
    return manifest;
}

static ls_store_request put_version(uint64_t version)
{
    ls_store_request put = {.operation = LS_PUT, .if_absent = true, .key = ls_key_manifest(version), .tag = 77};
    put.manifest = make_version(version);
    put.body_bytes = ls_manifest_encoded_bytes(put.manifest);
    return put;
}

static uint64_t counted(const diary *d, ls_operation operation, ls_object_kind kind, ls_reply_status status)
{
    return ls_loop_counters_of(d->loop)->by[operation][kind][status].requests;
}

static void test_data_objects(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "lake/one");
    ls_key key = ls_key_data(3, 1, 40);
    ls_store_request put = {.operation = LS_PUT, .if_absent = true, .key = key, .tag = 1, .body_bytes = 10};
    ls_store_request get = {.operation = LS_GET, .key = key, .tag = 2};
    ls_store_request span = {
        .operation = LS_GET, .key = key, .range = LS_RANGE_SPAN, .range_offset = 4, .range_bytes = 100};
    ls_store_request beyond = {
        .operation = LS_GET, .key = key, .range = LS_RANGE_SPAN, .range_offset = 10, .range_bytes = 1};
    ls_store_request head = {.operation = LS_HEAD, .key = key, .tag = 3};
    ls_store_request delete_it = {.operation = LS_DELETE, .key = key, .tag = 4};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(ask(&d, &put)->status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(ask(&d, &put)->status, LS_REPLY_EXISTS);
    CU_ASSERT_EQUAL(d.bodies, 2);
    static const uint8_t content[] = {40, 41, 42, 43, 44, 45, 46, 47, 48, 49};
    CU_ASSERT(store_holds(store, "lake/one/data/3/1-40.tgb", content, 10));
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(d.reply.object_bytes, 10);
    CU_ASSERT_EQUAL(d.reply.moved_bytes, 10);
    CU_ASSERT(d.data_bytes == 10 && d.data_offset == 0 && memcmp(d.data, content, 10) == 0);
    CU_ASSERT(d.data_entity == 14 && ls_key_compare(&d.data_key, &key) == 0);
    CU_ASSERT_EQUAL(ask(&d, &span)->status, LS_REPLY_OK);
    CU_ASSERT(d.data_bytes == 6 && d.data_offset == 4 && memcmp(d.data, content + 4, 6) == 0);
    CU_ASSERT_EQUAL(d.reply.moved_bytes, 6);
    CU_ASSERT_EQUAL(ask(&d, &beyond)->status, LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(d.reply.object_bytes, 10);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(d.loop), "get of 'lake/one/data/3/1-40.tgb': the range"));
    CU_ASSERT_EQUAL(d.data_calls, 2);
    CU_ASSERT_EQUAL(ask(&d, &head)->object_bytes, 10);
    CU_ASSERT_EQUAL(ask(&d, &delete_it)->status, LS_REPLY_OK);
    CU_ASSERT_EQUAL(ask(&d, &head)->status, LS_REPLY_NOT_FOUND);
    CU_ASSERT_EQUAL(counted(&d, LS_PUT, LS_OBJECT_DATA, LS_REPLY_OK), 1);
    CU_ASSERT_EQUAL(counted(&d, LS_PUT, LS_OBJECT_DATA, LS_REPLY_EXISTS), 1);
    CU_ASSERT_EQUAL(ls_loop_counters_of(d.loop)->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_EXISTS].up_bytes, 10);
    CU_ASSERT_EQUAL(ls_loop_counters_of(d.loop)->by[LS_GET][LS_OBJECT_DATA][LS_REPLY_OK].down_bytes, 16);
    CU_ASSERT_EQUAL(counted(&d, LS_GET, LS_OBJECT_DATA, LS_REPLY_OK), 2);
    ls_loop_reset_counters(d.loop);
    CU_ASSERT_EQUAL(counted(&d, LS_PUT, LS_OBJECT_DATA, LS_REPLY_OK), 0);
    close_diary(&d);
    ls_store_destroy(store);
}

static void test_manifests(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "lake/");
    for (uint64_t v = 1; v <= 20; v++) {
        ls_store_request put = put_version(v);
        CU_ASSERT_EQUAL(ask(&d, &put)->status, LS_REPLY_OK);
    }
    ls_store_request again = put_version(20);
    CU_ASSERT_EQUAL(ask(&d, &again)->status, LS_REPLY_EXISTS);
    ls_store_request get = {.operation = LS_GET, .key = ls_key_manifest(20), .tag = 5};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d.reply.manifest);
    ls_manifest *twin = make_version(20);
    ls_entry entry;
    CU_ASSERT_EQUAL(ls_manifest_version(d.reply.manifest), 20);
    CU_ASSERT_EQUAL(ls_manifest_end_step(d.reply.manifest), 20);
    CU_ASSERT_TRUE(ls_manifest_entry(d.reply.manifest, 13, &entry));
    CU_ASSERT_EQUAL(entry.size_bytes, 1014);
    CU_ASSERT_EQUAL(d.reply.moved_bytes, ls_manifest_encoded_bytes(twin));
    CU_ASSERT_EQUAL(d.data_calls, 0); /* manifests are no business of the data callback */
    ls_manifest *known = make_version(15);
    ls_store_request tail = {.operation = LS_GET, .key = ls_key_manifest(20), .range = LS_RANGE_SUFFIX, .known = known};
    tail.range_bytes = ls_manifest_tail_bytes(twin, 15) - 1;
    CU_ASSERT_EQUAL(ask(&d, &tail)->status, LS_REPLY_OK); /* one byte short */
    CU_ASSERT_PTR_NULL(d.reply.manifest);
    CU_ASSERT_EQUAL(d.reply.needed_bytes, ls_manifest_tail_bytes(twin, 15)); /* what is known was taken into account */
    tail.range_bytes = d.reply.needed_bytes;
    CU_ASSERT_EQUAL(ls_loop_submit(d.loop, &tail, 3, 14), LS_OK);
    ls_manifest_release(known); /* the loop has its own reference */
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d.reply.manifest);
    CU_ASSERT_EQUAL(d.reply.moved_bytes, tail.range_bytes);
    CU_ASSERT_EQUAL(d.reply.object_bytes, ls_manifest_encoded_bytes(twin));
    CU_ASSERT_EQUAL(ls_manifest_version(d.reply.manifest), 20);
    CU_ASSERT_TRUE(ls_manifest_entry(d.reply.manifest, 0, &entry));
    CU_ASSERT_EQUAL(entry.size_bytes, 1001);
    tail.known = NULL;
    tail.range_bytes = 1 << 20;
    CU_ASSERT_EQUAL(ask(&d, &tail)->status, LS_REPLY_OK);
    CU_ASSERT_PTR_NOT_NULL(d.reply.manifest);
    ls_manifest_release(twin);
    close_diary(&d);
    ls_store_destroy(store);
}

/* Bytes that are not what their name says are INVALID, with the reason, and never stop the loop. */
static void test_damage(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "");
    ls_store_request put = put_version(3);
    uint64_t size = put.body_bytes;
    uint8_t *bytes = ls_allocate(size);
    CU_ASSERT_EQUAL(ls_manifest_encode(put.manifest, bytes, size), LS_OK);
    ls_manifest_release(put.manifest);
    CU_ASSERT_EQUAL(store_put(store, "manifest/00000000000000000004", bytes, size, true), LS_REPLY_OK); /* wrong name */
    bytes[size - 90] ^= 1;
    CU_ASSERT_EQUAL(store_put(store, "manifest/00000000000000000003", bytes, size, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_put(store, "manifest/00000000000000000005", "", 0, true), LS_REPLY_OK);
    ls_free(bytes);
    for (uint64_t version = 3; version <= 5; version++) {
        for (int range = LS_RANGE_WHOLE; range <= LS_RANGE_SUFFIX; range++) {
            if (version == 5 && range == LS_RANGE_SUFFIX) continue; /* nothing to decode: too short */
            ls_store_request get = {.operation = LS_GET,
                                    .key = ls_key_manifest(version),
                                    .range = (ls_range_kind)range,
                                    .range_bytes = 4096};
            CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_INVALID);
            CU_ASSERT_PTR_NULL(d.reply.manifest);
            char wanted[80];
            snprintf(wanted, sizeof wanted, "get of 'manifest/%020d': ", (int)version);
            CU_ASSERT_EQUAL(strncmp(ls_loop_error(d.loop), wanted, strlen(wanted)), 0);
            CU_ASSERT(strlen(ls_loop_error(d.loop)) > strlen(wanted) + 10);
        }
    }
    CU_ASSERT_EQUAL(counted(&d, LS_GET, LS_OBJECT_MANIFEST, LS_REPLY_INVALID), 5);
    CU_ASSERT_EQUAL(counted(&d, LS_GET, LS_OBJECT_MANIFEST, LS_REPLY_OK), 0);
    close_diary(&d);
    ls_store_destroy(store);
}

static void fill_ranks(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    (void)context;
    memset(bytes, (int)(16 * data_rank + context_rank + 1), (size_t)length);
}

/* A whole TGB read for one slice: that slice is checked and handed on, the others are not looked at. */
static void test_whole_for_a_slice(void)
{
    static const uint64_t lengths[] = {5, 0, 7, 3};
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "");
    ls_tgb_identity identity = {.producer = 3, .sequence = 9, .source_end = 1, .epoch = 1};
    uint64_t size = 0;
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(2, 2, lengths, &size), LS_OK);
    uint8_t *bytes = ls_allocate(size);
    CU_ASSERT_EQUAL(ls_tgb_encode(&identity, 2, 2, lengths, fill_ranks, NULL, bytes, size), LS_OK);
    bytes[0] ^= 1; /* in the slice of rank (0, 0) */
    CU_ASSERT_EQUAL(store_put(store, "data/3/1-9.tgb", bytes, size, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_put(store, "data/3/1-8.tgb", bytes, size, true), LS_REPLY_OK); /* under another's name */
    CU_ASSERT_EQUAL(store_put(store, "data/3/1-7.tgb", bytes, size - 1, true), LS_REPLY_OK);
    ls_store_request get = {.operation = LS_GET, .key = ls_key_data(3, 1, 9), .for_slice = true, .slice = {.data_rank = 1}};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_OK);
    CU_ASSERT(d.reply.slice.offset == 5 && d.reply.slice.bytes == 7);
    CU_ASSERT_EQUAL(d.reply.moved_bytes, size);
    static const uint8_t content[] = {17, 17, 17, 17, 17, 17, 17};
    CU_ASSERT(d.data_bytes == 7 && d.data_offset == 5 && memcmp(d.data, content, 7) == 0);
    get.slice = (ls_slice){.context_rank = 1};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_OK);
    CU_ASSERT(d.reply.slice.bytes == 0 && d.data_bytes == 0);
    uint32_t calls = d.data_calls;
    get.slice = (ls_slice){.data_rank = 0};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(d.loop), "slice"));
    get.slice = (ls_slice){.data_rank = 2};
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_INVALID);
    get.slice = (ls_slice){.data_rank = 1};
    get.key = ls_key_data(3, 1, 8);
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(d.loop), "calls itself 'data/3/1-9.tgb'"));
    get.key = ls_key_data(3, 1, 7);
    CU_ASSERT_EQUAL(ask(&d, &get)->status, LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(d.data_calls, calls);
    ls_free(bytes);
    close_diary(&d);
    ls_store_destroy(store);
}

static void plant(ls_store *store, const char *key)
{
    CU_ASSERT_EQUAL(store_put(store, key, "x", 1, true), LS_REPLY_OK);
}

static void test_lists(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "a/lake");
    char key[80];
    plant(store, "a/lake2/manifest/00000000000000000099");
    plant(store, "a/lake/manifest/! a note of somebody's");
    plant(store, "a/lake/manifest/7");
    plant(store, "a/lake/manifest/00000000000000000003.bak");
    plant(store, "a/lake/manifest/zzz");
    plant(store, "a/lake/floor/00000000000000000002");
    plant(store, "a/lake/data/10/1-0.tgb");
    plant(store, "a/lake/data/2/1-0.tgb");
    ls_store_request list = {.operation = LS_LIST, .key = ls_key_manifest(0), .list_limit = 1000, .tag = 6};
    CU_ASSERT_EQUAL(ask(&d, &list)->status, LS_REPLY_OK);
    CU_ASSERT(d.reply.list_count == 0 && !d.reply.list_truncated);
    for (int v = 1; v <= 5; v++) {
        snprintf(key, sizeof key, "a/lake/manifest/%020d", v);
        plant(store, key);
    }
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 5);
    CU_ASSERT_EQUAL(d.reply.list_last.number, 5);
    CU_ASSERT_EQUAL(d.reply.list_last.kind, LS_OBJECT_MANIFEST);
    CU_ASSERT_FALSE(d.reply.list_truncated);
    list.key = ls_key_manifest(2);
    list.list_limit = 2;
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 1); /* 3, and a foreign name took the other place */
    CU_ASSERT_EQUAL(d.reply.list_last.number, 3);
    CU_ASSERT_TRUE(d.reply.list_truncated);
    list.key = ls_key_manifest(5);
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 0);
    CU_ASSERT_FALSE(d.reply.list_truncated);
    ls_loop_reset_counters(d.loop);
    list.key = ls_key_manifest(3);
    list.list_limit = 1; /* the first page holds only 3.bak: the loop goes on by itself */
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 1);
    CU_ASSERT_EQUAL(d.reply.list_last.number, 4);
    CU_ASSERT_EQUAL(counted(&d, LS_LIST, LS_OBJECT_MANIFEST, LS_REPLY_OK), 2);
    list = (ls_store_request){.operation = LS_LIST, .key = ls_key_data(0, 0, 0), .list_limit = 10};
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 2);
    CU_ASSERT_EQUAL(d.reply.list_last.number, 2); /* the last in the store's order, from which a next list goes on */
    list.key = (ls_key){.kind = LS_OBJECT_FLOOR, .number = 1};
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 1);
    CU_ASSERT_EQUAL(d.reply.list_last.number, 2);
    list.key.kind = LS_OBJECT_CHECKPOINT;
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 0);
    CU_ASSERT_PTR_NULL(d.reply.list_keys); /* nobody asked for names */
    plant(store, "a/lake/checkpoint/00000000004294967303-200.auto");
    plant(store, "a/lake/checkpoint/00000000008589934599-7.pin");
    plant(store, "a/lake/checkpoint/00000000008589934599-7.pinned");
    list = (ls_store_request){.operation = LS_LIST, .key = ls_key_checkpoint(0, 0, (ls_checkpoint_kind)0), .list_limit = 3,
                              .list_names = true};
    ls_key automatic = ls_key_checkpoint(4294967303, 200, LS_CHECKPOINT_AUTO), pin = ls_key_checkpoint(8589934599, 7, LS_CHECKPOINT_PIN);
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 2);
    CU_ASSERT_EQUAL(ls_key_compare(&d.names[0], &automatic), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&d.names[1], &pin), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&d.reply.list_last, &pin), 0);
    CU_ASSERT_EQUAL(d.name_bytes[1], 1);
    CU_ASSERT(d.name_ages_ns[0] >= 0 && d.name_ages_ns[0] < 60 * LS_NANOSECONDS_PER_SECOND);
    list.key = automatic;
    CU_ASSERT_EQUAL(ask(&d, &list)->list_count, 1);
    CU_ASSERT_EQUAL(ls_key_compare(&d.names[0], &pin), 0);
    close_diary(&d);
    ls_store_destroy(store);
}

static void test_senseless_requests(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "");
    ls_store_request without = {.operation = LS_PUT, .key = ls_key_manifest(1)};
    ls_store_request kind = {.operation = LS_GET, .key = {.kind = (ls_object_kind)9}};
    ls_store_request limit = {.operation = LS_LIST, .key = ls_key_manifest(1), .list_limit = 1001};
    ls_store_request none = {.key = ls_key_manifest(1)};
    ls_store_request data = put_version(1);
    data.key = ls_key_data(1, 1, 1);
    ls_store_request empty = {.operation = LS_PUT, .key = ls_key_manifest(1), .manifest = ls_manifest_new_empty()};
    const ls_store_request *const all[] = {&without, &kind, &limit, &none, &data, &empty};
    for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(ls_loop_submit(d.loop, all[i], 0, 0), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_loop_in_flight(d.loop), 0);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_EQUAL(d.reply_count, 0);
    close_diary(&d);
    char prefix[LS_STORE_KEY_BYTES_MAX + 1];
    memset(prefix, 'p', sizeof prefix);
    prefix[LS_STORE_KEY_BYTES_MAX] = '\0';
    CU_ASSERT_PTR_NULL(ls_loop_new(store, prefix, &diary_handler, &d));
    prefix[LS_STORE_KEY_BYTES_MAX - LS_KEY_TEXT_BYTES - 1] = '\0';
    d.loop = ls_loop_new(store, prefix, &diary_handler, &d);
    CU_ASSERT_PTR_NOT_NULL(d.loop);
    ls_loop_free(d.loop);
    ls_store_destroy(store);
    ls_loop_free(NULL);
    ls_loop_free_after_store(NULL);
}

static int64_t law_of(void *context, const ls_object_request *request)
{
    (void)request;
    return *(const int64_t *)context;
}

static void test_taking_down(void)
{
    int64_t latency_ns = 1000000, hours_ns = 5 * 3600 * LS_NANOSECONDS_PER_SECOND;
    ls_store_request put = {.operation = LS_PUT, .key = ls_key_data(1, 1, 1), .body_bytes = 1000};
    ls_store_request list = {.operation = LS_LIST, .key = ls_key_manifest(1), .list_limit = 10};
    diary d;
    ls_store *store = ls_store_new_delay(ls_store_new_memory(), law_of, &latency_ns, 0.5);
    open_diary(&d, store, "");
    CU_ASSERT_EQUAL(ls_loop_submit(d.loop, &put, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_submit(d.loop, &list, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_in_flight(d.loop), 2);
    close_diary(&d); /* waits */
    CU_ASSERT_EQUAL(d.reply_count, 0);
    CU_ASSERT_EQUAL(ls_store_in_flight(store), 0);
    store_answer answer = store_ask(store, &(ls_object_request){.operation = LS_HEAD, .key = "data/1/1-1.tgb"});
    CU_ASSERT_EQUAL(answer.object_bytes, 1000);
    store_answer_clear(&answer);
    ls_store_destroy(store);
    store = ls_store_new_delay(ls_store_new_memory(), law_of, &hours_ns, 0.5);
    open_diary(&d, store, "");
    ls_store_request version = put_version(1);
    CU_ASSERT_EQUAL(ls_loop_submit(d.loop, &put, 0, 0), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_submit(d.loop, &version, 0, 0), LS_OK);
    ls_store_destroy(store);
    ls_loop_free_after_store(d.loop);
    CU_ASSERT_EQUAL(d.reply_count, 0);
}

/* A store that fails altogether, and one that loses requests: the run ends and says so. */

typedef struct dead_store {
    ls_store base;
    ls_result poll_result;
    uint32_t in_flight;
} dead_store;

static ls_result dead_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                             void *context)
{
    (void)base;
    (void)request;
    (void)callback;
    (void)context;
    return LS_OK;
}

static ls_result dead_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    (void)timeout_ns;
    (void)finished;
    return ((dead_store *)base)->poll_result;
}

static uint32_t dead_in_flight(const ls_store *base)
{
    return ((const dead_store *)base)->in_flight;
}

static void dead_destroy(ls_store *base)
{
    (void)base;
}

static void test_dead_store(void)
{
    static const ls_store_methods methods = {dead_submit, dead_poll, dead_in_flight, dead_destroy};
    for (uint32_t in_flight = 0; in_flight <= 1; in_flight++) {
        dead_store store = {.base = {&methods}, .poll_result = LS_ERROR_IO, .in_flight = in_flight};
        diary d;
        open_diary(&d, &store.base, "");
        CU_ASSERT_EQUAL(submit_head(d.loop), LS_OK);
        CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_ERROR_IO);
        CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(d.loop), in_flight ? "input/output error" : "lost requests"));
        ls_loop_free_after_store(d.loop);
        ls_reply_status status;
        ls_error error;
        ls_object_request head = {.operation = LS_HEAD, .key = "a"};
        if (in_flight == 0) {
            CU_ASSERT_EQUAL(ls_store_call(&store.base, &head, &status, NULL, NULL, &error), LS_ERROR_IO);
            CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "lost the operation"));
        }
    }
}

/* Whole lakes: producers, then consumers, as a program would run them. */

enum { PRODUCER = 1, CONSUMER = 2 };

#define DATA_RANKS 2u
#define CONTEXT_RANKS 1u
#define PRODUCERS_MAX 256

typedef struct member {
    ls_producer machine;
    uint32_t batches_left;
    bool joined, stopping;
} member;

typedef struct lake_run {
    ls_loop *loop;
    ls_protocol protocol;
    ls_policy_instance policy;
    member *members;
    uint32_t member_count;
    uint32_t finished;
    uint64_t acknowledged[PRODUCERS_MAX]; /* source offsets below */
    uint64_t bodies;
    ls_consumer consumers[DATA_RANKS];
    uint64_t steps[DATA_RANKS];
    uint64_t slices_good;
} lake_run;

static uint64_t slice_bytes(uint64_t producer, uint64_t sequence, uint32_t data_rank)
{
    return 20 + (producer * 7 + sequence * 3 + data_rank) % 50;
}

static uint64_t batch_bytes(uint64_t producer, uint64_t sequence)
{
    uint64_t lengths[DATA_RANKS], total = 0;
    for (uint32_t rank = 0; rank < DATA_RANKS; rank++) lengths[rank] = slice_bytes(producer, sequence, rank);
    CU_ASSERT_EQUAL(ls_tgb_total_bytes(DATA_RANKS, CONTEXT_RANKS, lengths, &total), LS_OK);
    return total;
}

static void fill_slice(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    const ls_key *key = context;
    (void)context_rank;
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(key->number * 31 + key->sequence * 17 + data_rank * 5 + i);
}

static ls_result run_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    lake_run *run = context;
    ls_tgb_identity identity = {.producer = key->number, .sequence = key->sequence, .epoch = key->epoch};
    uint64_t lengths[DATA_RANKS];
    ls_key copy = *key;
    run->bodies++;
    CU_ASSERT(ls_producer_source_range(&run->members[key->number - 1].machine, key->sequence, &identity.source_begin,
                                       &identity.source_end));
    for (uint32_t rank = 0; rank < DATA_RANKS; rank++) lengths[rank] = slice_bytes(key->number, key->sequence, rank);
    return ls_tgb_encode(&identity, DATA_RANKS, CONTEXT_RANKS, lengths, fill_slice, &copy, bytes, size);
}

/* Slices are what consumers read by span; footers come by suffix. */
static ls_result run_data(void *context, uint32_t entity, const ls_key *key, uint64_t offset, const uint8_t *bytes,
                          uint64_t length)
{
    lake_run *run = context;
    uint8_t expected[80];
    ls_key copy = *key;
    uint64_t slice = slice_bytes(key->number, key->sequence, entity);
    if (offset + length == batch_bytes(key->number, key->sequence)) return LS_OK; /* a footer */
    fill_slice(&copy, entity, 0, expected, slice);
    run->slices_good += length == slice && memcmp(bytes, expected, slice) == 0;
    return LS_OK;
}

static ls_result produce(lake_run *run, uint32_t entity, ls_event event);

static ls_result act(lake_run *run, uint32_t kind, uint32_t entity, const ls_actions *actions)
{
    ls_result result = LS_OK;
    uint32_t i = 0;
    for (; i < actions->count && result == LS_OK; i++) {
        const ls_action *action = &actions->item[i];
        switch (action->kind) {
        case LS_ACTION_REQUEST: result = ls_loop_submit(run->loop, &action->request, kind, entity); break;
        case LS_ACTION_WAKE: result = ls_loop_timer(run->loop, action->wake_ns, kind, entity, 0); break;
        case LS_ACTION_JOINED: run->members[entity].joined = true; break;
        case LS_ACTION_PUBLISHED: run->acknowledged[entity] = action->published.source_end; break;
        case LS_ACTION_FINISHED: run->finished++; break;
        case LS_ACTION_STEP: result = action->step.step == run->steps[entity]++ ? LS_OK : LS_ERROR_VIOLATED; break;
        case LS_ACTION_CHECKPOINTED:
        case LS_ACTION_GAVE_UP:
        case LS_ACTION_WOULD_DELETE:
        case LS_ACTION_RECLAIMED:
        case LS_ACTION_REFUSED:
        case LS_ACTION_FENCED:
        case LS_ACTION_BEHIND:
        case LS_ACTION_FAILED: result = LS_ERROR_VIOLATED; break;
        case LS_ACTION_ATTEMPT: break;
        }
    }
    for (; i < actions->count; i++) { /* after a failure: what was not sent on is still ours */
        const ls_store_request *request = &actions->item[i].request;
        if (actions->item[i].kind == LS_ACTION_REQUEST && request->operation == LS_PUT)
            ls_manifest_release(request->manifest);
    }
    return result;
}

static ls_result feed(lake_run *run, uint32_t entity)
{
    member *m = &run->members[entity];
    ls_result result = LS_OK;
    while (m->joined && m->batches_left > 0 && ls_producer_has_room(&m->machine) && result == LS_OK) {
        uint64_t sequence = m->machine.first_sequence + m->machine.ring_count;
        m->batches_left--;
        result = produce(run, entity, (ls_event){.kind = LS_EVENT_BATCH,
                                                 .batch_bytes = batch_bytes(entity + 1, sequence),
                                                 .batch_source_count = 1 + sequence % 3,
                                                 .batch_footer_bytes =
                                                     (uint32_t)ls_tgb_footer_bytes(DATA_RANKS, CONTEXT_RANKS)});
    }
    if (!m->joined || m->batches_left > 0 || m->stopping || result != LS_OK) return result;
    m->stopping = true;
    return produce(run, entity, (ls_event){.kind = LS_EVENT_STOP});
}

static ls_result produce(lake_run *run, uint32_t entity, ls_event event)
{
    ls_actions actions;
    event.now_ns = ls_loop_now(run->loop);
    ls_result result = ls_producer_step(&run->members[entity].machine, &event, &actions);
    return result == LS_OK ? act(run, PRODUCER, entity, &actions) : result;
}

static ls_result consume(lake_run *run, uint32_t entity, ls_event event)
{
    ls_actions actions;
    event.now_ns = ls_loop_now(run->loop);
    ls_result result = ls_consumer_step(&run->consumers[entity], &event, &actions);
    return result == LS_OK ? act(run, CONSUMER, entity, &actions) : result;
}

static ls_result step(lake_run *run, uint32_t kind, uint32_t entity, ls_event event)
{
    if (kind == CONSUMER) return consume(run, entity, event);
    ls_result result = produce(run, entity, event);
    return result == LS_OK ? feed(run, entity) : result;
}

static ls_result run_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)now_ns;
    (void)argument;
    return step(context, kind, entity, (ls_event){.kind = LS_EVENT_TIMER});
}

static ls_result run_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)now_ns;
    return step(context, kind, entity, (ls_event){.kind = LS_EVENT_REPLY, .reply = reply});
}

static const ls_loop_handler run_handler = {run_timer, run_reply, run_body, run_data};

static ls_result start_producers(lake_run *run, ls_store *store, uint32_t producers, uint32_t batches)
{
    run->loop = ls_loop_new(store, "lake", &run_handler, run);
    run->members = ls_allocate_array(producers, sizeof run->members[0]);
    if (run->loop == NULL || run->members == NULL) return LS_ERROR_MEMORY;
    run->member_count = producers;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < producers && result == LS_OK; i++) {
        run->members[i].batches_left = batches;
        ls_producer_init(&run->members[i].machine, &run->protocol, i + 1, 1000 + i,
                         ls_random_open(5, 0, LS_RANDOM_POLICY, i));
        result = produce(run, i, (ls_event){.kind = LS_EVENT_START});
    }
    return result;
}

static ls_result start_consumers(lake_run *run)
{
    ls_result result = LS_OK;
    for (uint32_t rank = 0; rank < DATA_RANKS && result == LS_OK; rank++) {
        ls_consumer_config config = {.data_rank = rank, .window = 4, .poll_ns = 100000};
        result = ls_consumer_init(&run->consumers[rank], &run->protocol, &config, 0);
        if (result == LS_OK) result = consume(run, rank, (ls_event){.kind = LS_EVENT_START});
    }
    return result;
}

static void clear_run(lake_run *run)
{
    ls_loop_free(run->loop);
    for (uint32_t i = 0; i < run->member_count; i++) ls_producer_clear(&run->members[i].machine);
    for (uint32_t rank = 0; rank < DATA_RANKS; rank++) {
        if (run->consumers[rank].protocol != NULL) ls_consumer_clear(&run->consumers[rank]);
    }
    ls_free(run->members);
}

static void init_run(lake_run *run, const char *policy, ls_layout layout, ls_discovery discovery)
{
    *run = (lake_run){.protocol = ls_protocol_default()};
    CU_ASSERT_EQUAL(ls_policy_instantiate(policy, &run->policy, NULL), LS_OK);
    run->protocol.decider = ls_policy_decider(&run->policy);
    run->protocol.layout = layout;
    run->protocol.discovery = discovery;
    run->protocol.upload_retry_base_ns = 100000;
    run->protocol.upload_retry_cap_ns = 1000000;
}

static bool object_exists(void *context, const ls_key *key, uint64_t size_bytes)
{
    char text[LS_KEY_TEXT_BYTES], name[128];
    ls_key_format(key, text);
    snprintf(name, sizeof name, "lake/%s", text);
    store_answer answer = store_ask(context, &(ls_object_request){.operation = LS_HEAD, .key = name});
    bool good = answer.status == LS_REPLY_OK && answer.object_bytes == size_bytes;
    store_answer_clear(&answer);
    return good;
}

/* Every version in the store, one after the other, against the invariants; the newest must hold everything
 * acknowledged. */
static void check_history(const lake_run *run, ls_store *store, uint64_t entries)
{
    ls_invariants invariants;
    ls_error error = {""};
    ls_result result = LS_OK;
    ls_invariants_init(&invariants, LS_CHECK_ALL, object_exists, store);
    for (uint64_t version = 1; result == LS_OK; version++) {
        char name[64];
        ls_manifest *manifest = NULL;
        snprintf(name, sizeof name, "lake/manifest/%020llu", (unsigned long long)version);
        store_answer answer = store_ask(store, &(ls_object_request){.operation = LS_GET, .key = name});
        bool found = answer.status == LS_REPLY_OK;
        if (found) result = ls_manifest_decode(answer.body, answer.body_bytes, version, &manifest, &error);
        store_answer_clear(&answer);
        if (!found) break;
        if (result == LS_OK) result = ls_invariants_created(&invariants, manifest, &error);
        ls_manifest_release(manifest);
    }
    for (uint32_t i = 0; i < run->member_count && result == LS_OK; i++) {
        result = ls_invariants_acknowledged(&invariants, i + 1, run->acknowledged[i], &error);
    }
    CU_ASSERT_EQUAL(result, LS_OK);
    if (result != LS_OK) fprintf(stderr, "  %s\n", error.text);
    CU_ASSERT_PTR_NOT_NULL(invariants.head);
    if (invariants.head != NULL) {
        CU_ASSERT_EQUAL(ls_manifest_end_step(invariants.head), entries);
        CU_ASSERT_EQUAL(ls_manifest_row_count(invariants.head), run->member_count);
        CU_ASSERT_EQUAL(ls_manifest_open_row_count(invariants.head), 0);
    }
    ls_invariants_clear(&invariants);
}

/* Runs a lake to its end and checks everything that can be known about it. */
static void run_lake(lake_run *run, ls_store *store, uint32_t producers, uint32_t batches)
{
    uint64_t entries = (uint64_t)producers * batches;
    CU_ASSERT_EQUAL(start_producers(run, store, producers, batches), LS_OK);
    ls_result result = ls_loop_run(run->loop);
    CU_ASSERT_EQUAL(result, LS_OK);
    if (result != LS_OK) fprintf(stderr, "  %s\n", ls_loop_error(run->loop));
    CU_ASSERT_EQUAL(run->finished, producers);
    CU_ASSERT(run->bodies >= entries);
    CU_ASSERT_EQUAL(ls_loop_in_flight(run->loop), 0);
    check_history(run, store, entries);
    CU_ASSERT_EQUAL(start_consumers(run), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(run->loop), LS_OK);
    for (uint32_t rank = 0; rank < DATA_RANKS; rank++) CU_ASSERT_EQUAL(run->steps[rank], entries);
    CU_ASSERT(run->slices_good >= DATA_RANKS * entries);
    clear_run(run);
}

static void test_lake_in_memory(void)
{
    for (int layout = LS_LAYOUT_FULL; layout <= LS_LAYOUT_FULL_TAIL; layout++) {
        for (int discovery = LS_DISCOVERY_LIST; discovery <= LS_DISCOVERY_GALLOP; discovery++) {
            ls_store *store = ls_store_new_memory();
            lake_run run;
            init_run(&run, "backoff-full", (ls_layout)layout, (ls_discovery)discovery);
            CU_ASSERT_EQUAL(ls_policy_set(&run.policy, "base_s", 0.0001, NULL), LS_OK);
            run_lake(&run, store, 8, 6);
            ls_store_destroy(store);
        }
    }
}

static void test_lake_in_a_directory(void)
{
    ls_error error = {""};
    ls_store *store = ls_store_open_directory(ls_test_path("lake"), &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    lake_run run;
    init_run(&run, "dac", LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_LIST);
    run_lake(&run, store, 6, 4);
    ls_store_destroy(store);
}

static void test_lake_behind_delays(void)
{
    int64_t latency_ns = 200000;
    ls_store *store = ls_store_new_delay(ls_store_new_memory(), law_of, &latency_ns, 0.9);
    lake_run run;
    init_run(&run, "dac", LS_LAYOUT_FULL, LS_DISCOVERY_PROBE);
    run_lake(&run, store, 10, 4);
    ls_store_destroy(store);
}

static void test_hundreds_of_machines(void)
{
    ls_store *store = ls_store_new_memory();
    lake_run run;
    init_run(&run, "dac", LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_GALLOP);
    run_lake(&run, store, 200, 2);
    ls_store_destroy(store);
}

/* Faults, by turns: a reply lost after the effect, an error before it, a 409, a throttling, a cut connection before
 * sending. */

typedef struct faulty_store {
    ls_store base;
    ls_store *inner;
    uint64_t submitted;
} faulty_store;

typedef struct bent_answer {
    ls_store_callback callback;
    void *context;
    ls_reply_status status;
} bent_answer;

static void bent_reply(void *context, const ls_object_reply *reply)
{
    bent_answer *bent = context;
    ls_object_reply other = {.status = bent->status, .message = "planted"};
    if (bent->status == LS_REPLY_THROTTLED) other.retry_after_ns = 300000;
    (void)reply;
    bent->callback(bent->context, &other);
    ls_free(bent);
}

static ls_result faulty_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                               void *context)
{
    faulty_store *store = (faulty_store *)base;
    static const struct {
        ls_reply_status status;
        bool effect;
    } faults[] = {{LS_REPLY_UNKNOWN_OUTCOME, true}, {LS_REPLY_UNAVAILABLE, false}, {LS_REPLY_UNKNOWN_OUTCOME, false},
                  {LS_REPLY_THROTTLED, false}, {LS_REPLY_CONFLICT_RETRY, false}};
    uint64_t number = store->submitted++, turn = number / 7 % 5;
    bool may = number % 7 == 6 && (faults[turn].status != LS_REPLY_CONFLICT_RETRY || request->if_absent);
    if (!may) return ls_store_submit(store->inner, request, callback, context);
    bent_answer *bent = ls_allocate(sizeof *bent);
    *bent = (bent_answer){callback, context, faults[turn].status};
    ls_object_request head = {.operation = LS_HEAD, .key = "fault"};
    return ls_store_submit(store->inner, faults[turn].effect ? request : &head, bent_reply, bent);
}

static ls_result faulty_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    return ls_store_poll(((faulty_store *)base)->inner, timeout_ns, finished);
}

static uint32_t faulty_in_flight(const ls_store *base)
{
    return ls_store_in_flight(((const faulty_store *)base)->inner);
}

static void faulty_destroy(ls_store *base)
{
    ls_store_destroy(((faulty_store *)base)->inner);
}

static void test_lake_behind_faults(void)
{
    static const ls_store_methods methods = {faulty_submit, faulty_poll, faulty_in_flight, faulty_destroy};
    faulty_store store = {.base = {&methods}, .inner = ls_store_new_memory()};
    lake_run run;
    init_run(&run, "backoff-full", LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    CU_ASSERT_EQUAL(ls_policy_set(&run.policy, "base_s", 0.0001, NULL), LS_OK);
    CU_ASSERT_EQUAL(start_producers(&run, &store.base, 6, 5), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(run.loop), LS_OK);
    CU_ASSERT_EQUAL(run.finished, 6);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(run.loop), "planted"));
    CU_ASSERT(ls_loop_counters_of(run.loop)->by[LS_PUT][LS_OBJECT_MANIFEST][LS_REPLY_UNKNOWN_OUTCOME].requests > 0);
    check_history(&run, store.inner, 30);
    clear_run(&run);
    ls_store_destroy(&store.base);
}

/* Consumers meet a TGB that is damaged, or is another: they stop, and the loop says why. */
static void expect_consumer_fails(const char *victim, const char *substitute, size_t flipped, const char *reason)
{
    ls_store *store = ls_store_new_memory();
    lake_run run;
    init_run(&run, "immediate", LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    CU_ASSERT_EQUAL(start_producers(&run, store, 1, 3), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(run.loop), LS_OK);
    store_answer answer = store_ask(store, &(ls_object_request){.operation = LS_GET, .key = substitute});
    CU_ASSERT_EQUAL(answer.status, LS_REPLY_OK);
    if (flipped < answer.body_bytes) answer.body[flipped] ^= 0x40;
    CU_ASSERT_EQUAL(store_put(store, victim, answer.body, answer.body_bytes, false), LS_REPLY_OK);
    store_answer_clear(&answer);
    CU_ASSERT_EQUAL(start_consumers(&run), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(run.loop), LS_ERROR_VIOLATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(run.loop), victim));
    CU_ASSERT_PTR_NOT_NULL(strstr(ls_loop_error(run.loop), reason));
    if (strstr(ls_loop_error(run.loop), reason) == NULL) fprintf(stderr, "  %s\n", ls_loop_error(run.loop));
    CU_ASSERT(run.steps[0] <= 1 && run.slices_good <= 2);
    clear_run(&run);
    ls_store_destroy(store);
}

static void test_damaged_data(void)
{
    static const char first[] = "lake/data/1/1-0.tgb", second[] = "lake/data/1/1-1.tgb";
    expect_consumer_fails(second, second, 0, "slice");
    expect_consumer_fails(second, first, SIZE_MAX, "calls itself 'data/1/1-0.tgb'");
}

/* Every allocation of a whole small run fails in turn: the run ends with LS_ERROR_MEMORY, and nothing leaks. */
static void test_without_memory(void)
{
    bool good = false;
    uint64_t failures = 0;
    for (int64_t n = 0; !good && n < 20000; n += 1 + n / 16) {
        ls_store *store = ls_store_new_memory();
        lake_run run;
        init_run(&run, "immediate", LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
        ls_fail_allocations_after(n);
        ls_result result = start_producers(&run, store, 2, 2);
        if (result == LS_OK) result = ls_loop_run(run.loop);
        if (result == LS_OK) result = start_consumers(&run);
        if (result == LS_OK) result = ls_loop_run(run.loop);
        ls_fail_allocations_after(-1);
        good = result == LS_OK;
        failures += !good;
        if (!good) CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
        clear_run(&run);
        ls_store_destroy(store);
    }
    CU_ASSERT(good);
    CU_ASSERT(failures > 30);
}

/* The loop as a driver of manifest/driver.h. */
static void test_driver(void)
{
    ls_store *store = ls_store_new_memory();
    diary d;
    open_diary(&d, store, "");
    ls_driver driver = ls_loop_driver(d.loop);
    ls_store_request put = put_version(1);
    CU_ASSERT_EQUAL(driver.timer(driver.context, driver.now(driver.context), 4, 5, 6), LS_OK);
    CU_ASSERT_EQUAL(driver.submit(driver.context, 8, &put), LS_OK);
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT(d.timer_count == 1 && d.timers[0] == 6);
    CU_ASSERT(d.reply_count == 1 && d.kind == 0 && d.entity == 8 && d.reply.status == LS_REPLY_OK);
    CU_ASSERT_EQUAL(ls_loop_timer(d.loop, 0, 0, 0, 1), LS_OK);
    driver.stop(driver.context); /* before a run it says nothing about the next */
    CU_ASSERT_EQUAL(ls_loop_run(d.loop), LS_OK);
    CU_ASSERT_EQUAL(d.timer_count, 2);
    close_diary(&d);
    ls_store_destroy(store);
}

LS_SUITE(loop, {"timers in order", test_timers_in_order}, {"many timers", test_many_timers},
         {"a whole object for a slice", test_whole_for_a_slice},
         {"nobody starves", test_nobody_starves}, {"stop, resume, fail", test_stop_resume_fail},
         {"data objects", test_data_objects}, {"manifests", test_manifests}, {"damage", test_damage},
         {"lists", test_lists}, {"senseless requests", test_senseless_requests}, {"taking down", test_taking_down},
         {"a dead store", test_dead_store}, {"a lake in memory", test_lake_in_memory},
         {"a lake in a directory", test_lake_in_a_directory}, {"a lake behind delays", test_lake_behind_delays},
         {"two hundred producers", test_hundreds_of_machines}, {"a lake behind faults", test_lake_behind_faults},
         {"damaged data", test_damaged_data}, {"every allocation fails", test_without_memory},
         {"as a driver", test_driver})
