/* test_store_model.c - the modelled store against hand-computed times, exact put-if-absent, limits, slots, and memory
 * failures. */
#include "tests/store_clock.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS  INT64_C(1000000)
#define MIB UINT64_C(1048576)

typedef struct lab {
    store_clock clock;
    ls_store_model *model;
} lab;

static ls_law constant_ms(double milliseconds)
{
    return (ls_law){.law = LS_LAW_CONSTANT, .scale_s = milliseconds / 1e3};
}

static lab *open_lab(lab *l, const ls_store_config *config)
{
    ls_error error = {""};
    *l = (lab){0};
    if (ls_store_model_create(config, 7, 3, store_clock_scheduler(&l->clock), &l->model, &error) != LS_OK) {
        CU_FAIL_FATAL(error.text);
    }
    return l;
}

static void close_lab(lab *l)
{
    ls_store_model_destroy(l->model);
    store_clock_release(&l->clock);
}

static void send_at(lab *l, int64_t now_ns, uint32_t client, ls_store_request request)
{
    l->clock.now_ns = now_ns;
    request.tag = 100 + client;
    CU_ASSERT_EQUAL(ls_store_model_submit(l->model, now_ns, client, client, &request), LS_OK);
}

/* Runs to the next reply; ready is false when nothing is left to happen. */
static ls_store_completion next_reply(lab *l)
{
    ls_store_completion done = {.ready = false};
    uint64_t token;
    while (!done.ready && store_clock_next(&l->clock, &token)) {
        CU_ASSERT_EQUAL(ls_store_model_event(l->model, l->clock.now_ns, token, &done, NULL), LS_OK);
    }
    return done;
}

/* The next reply is that of `client`, with this status, at this time (to a nanosecond of rounding). */
static ls_store_completion expect_reply(lab *l, uint32_t client, ls_reply_status status, int64_t at_ns)
{
    ls_store_completion done = next_reply(l);
    CU_ASSERT_TRUE(done.ready);
    CU_ASSERT_EQUAL(done.client, client);
    CU_ASSERT_EQUAL(done.context, client);
    CU_ASSERT_EQUAL(done.reply.tag, 100 + client);
    CU_ASSERT_EQUAL(done.reply.status, status);
    CU_ASSERT(l->clock.now_ns - at_ns >= -2 && l->clock.now_ns - at_ns <= 2);
    if (l->clock.now_ns - at_ns < -2 || l->clock.now_ns - at_ns > 2) {
        printf("\n  client %u: reply at %lld ns, expected %lld", client, (long long)l->clock.now_ns, (long long)at_ns);
    }
    return done;
}

static void expect_silence(lab *l)
{
    CU_ASSERT_FALSE(next_reply(l).ready);
    CU_ASSERT_EQUAL(ls_store_model_in_flight(l->model), 0);
}

static ls_manifest *manifest_of(uint64_t version, uint64_t entry_count)
{
    static ls_entry entries[1000];
    ls_manifest *manifest = NULL;
    ls_manifest_parts parts = {.version = version, .entries = entries, .entry_count = entry_count};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &manifest), LS_OK);
    return manifest;
}

static ls_key key_of(ls_object_kind kind, uint64_t number)
{
    return (ls_key){.kind = kind, .number = number};
}

static ls_key data_key(uint64_t producer, uint32_t epoch, uint64_t sequence)
{
    return (ls_key){.kind = LS_OBJECT_DATA, .number = producer, .epoch = epoch, .sequence = sequence};
}

/* A put of version `version` if absent; the content has 10 entries. */
static ls_store_request claim(uint64_t version)
{
    return (ls_store_request){.operation = LS_PUT,
                              .if_absent = true,
                              .key = key_of(LS_OBJECT_MANIFEST, version),
                              .manifest = manifest_of(version, 10)};
}

static ls_store_request put_data(ls_key key, uint64_t bytes)
{
    return (ls_store_request){.operation = LS_PUT, .key = key, .body_bytes = bytes};
}

static ls_store_request get(ls_key key)
{
    return (ls_store_request){.operation = LS_GET, .key = key};
}

/* ---- times ---- */

static void test_nothing_inline(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    send_at(&l, 5, 0, put_data(data_key(1, 1, 0), 10));
    CU_ASSERT_EQUAL(ls_store_model_in_flight(l.model), 1);
    CU_ASSERT_FALSE(ls_store_model_has(l.model, &(ls_key){.kind = LS_OBJECT_DATA, .number = 1, .epoch = 1}, NULL));
    expect_reply(&l, 0, LS_REPLY_OK, 5);
    CU_ASSERT_EQUAL(l.clock.order, 1); /* one wake-up did all */
    expect_silence(&l);
    close_lab(&l);
}

/* Effect 5 ms after each start. A starts at 0 and wins, B starts at 1 ms and loses at 6 ms: its reply comes then if the
 * lost law ends earlier (1 + 3), else when the lost law says (1 + 20). */
static void test_race(void)
{
    for (int slow = 0; slow <= 1; slow++) {
        lab l;
        open_lab(&l, &(ls_store_config){.conditional_won = constant_ms(10),
                                        .conditional_lost = constant_ms(slow ? 20 : 3),
                                        .conditional_effect_share = 0.5});
        send_at(&l, 0, 0, claim(1));
        send_at(&l, 1 * MS, 1, claim(1));
        if (!slow) expect_reply(&l, 1, LS_REPLY_EXISTS, 6 * MS);
        expect_reply(&l, 0, LS_REPLY_OK, 10 * MS);
        if (slow) expect_reply(&l, 1, LS_REPLY_EXISTS, 21 * MS);
        expect_silence(&l);
        CU_ASSERT_EQUAL(ls_manifest_version(ls_store_model_newest(l.model)), 1);
        CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->wasted_up_bytes,
                        LS_MANIFEST_HEADER_BYTES + 10 * LS_MANIFEST_ENTRY_BYTES + LS_MANIFEST_FOOTER_BYTES);
        close_lab(&l);
    }
}

/* The later starter wins when its effect comes first; at equal times, who was submitted first. */
static void test_first_effect_wins(void)
{
    lab l;
    ls_store_config config = {.conditional_won = {.law = LS_LAW_EXPONENTIAL, .scale_s = 1.0},
                              .conditional_lost = {.law = LS_LAW_EXPONENTIAL, .scale_s = 1.0},
                              .conditional_effect_share = 1.0};
    open_lab(&l, &config);
    double drawn[8];
    uint32_t fastest = 0;
    for (uint32_t i = 0; i < 8; i++) {
        ls_random random = ls_random_open(7, 3, LS_RANDOM_PUT_LATENCY, i);
        ls_law_sampler sampler;
        ls_law_prepare(&config.conditional_won, &sampler, NULL);
        drawn[i] = ls_law_draw_s(&sampler, &random);
        if (drawn[i] < drawn[fastest]) fastest = i;
        send_at(&l, 0, i, claim(1));
    }
    for (int i = 0; i < 8; i++) {
        ls_store_completion done = next_reply(&l);
        CU_ASSERT_EQUAL(done.reply.status, done.client == fastest ? LS_REPLY_OK : LS_REPLY_EXISTS);
        /* Won and lost laws are equal, so are their draws from one set of uniforms. */
        CU_ASSERT_EQUAL(l.clock.now_ns, ls_nanoseconds(drawn[done.client]));
    }
    close_lab(&l);
    open_lab(&l, &(ls_store_config){.conditional_won = constant_ms(4), .conditional_effect_share = 1.0});
    for (uint32_t i = 0; i < 3; i++) send_at(&l, 0, 2 - i, claim(1));
    CU_ASSERT_EQUAL(next_reply(&l).client, 2);
    CU_ASSERT_EQUAL(next_reply(&l).reply.status, LS_REPLY_EXISTS);
    close_lab(&l);
}

/* The n-th request of a client and purpose meets the same latency, whatever else happens. */
static void test_common_random_numbers(void)
{
    ls_law law = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.05, .shape = 0.5, .draws = 2};
    ls_store_config config = {.get = law, .put = law, .conditional_won = law, .head = law};
    int64_t took[2] = {0, 0};
    for (int crowded = 0; crowded <= 1; crowded++) {
        lab l;
        open_lab(&l, &config);
        ls_key data = data_key(1, 1, 0), version = key_of(LS_OBJECT_MANIFEST, 1);
        if (crowded) {
            send_at(&l, 0, 5, get(version));
            send_at(&l, 0, 3, put_data(data, 5)); /* another purpose of the same client */
            send_at(&l, 0, 3, claim(1));
            while (next_reply(&l).ready) continue;
        }
        int64_t start = l.clock.now_ns;
        send_at(&l, start, 3, get(version));
        ls_store_completion done = next_reply(&l);
        ls_manifest_release(done.reply.manifest);
        start = l.clock.now_ns;
        send_at(&l, start, 3, get(version)); /* the second read of client 3, crowded or not */
        done = next_reply(&l);
        ls_manifest_release(done.reply.manifest);
        took[crowded] = l.clock.now_ns - start;
        close_lab(&l);
    }
    CU_ASSERT_EQUAL(took[0], took[1]);
    ls_law_sampler sampler;
    ls_law_prepare(&law, &sampler, NULL);
    ls_random random = ls_random_open(7, 3, LS_RANDOM_READ_LATENCY, 3);
    random.index = LS_LAW_DRAWS_MAX;
    /* Effect at the start (share 0): the whole latency comes after it. */
    CU_ASSERT_EQUAL(took[0], ls_law_draw_ns(&sampler, &random));
}

/* 1 MiB at 1 MiB/s takes 1 s, the slope 20 ms, then half of 10 ms to the effect and half to the reply. */
static void test_sized_put(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.put = constant_ms(10),
                                    .put_s_per_mib = 0.020,
                                    .put_effect_share = 0.5,
                                    .client_bandwidth_bytes_per_s = (double)MIB});
    ls_key key = data_key(4, 1, 9);
    send_at(&l, 0, 0, put_data(key, MIB));
    uint64_t token, bytes = 0;
    ls_store_effect effect = {.happened = false};
    while (!effect.happened && store_clock_next(&l.clock, &token)) {
        CU_ASSERT_FALSE(ls_store_model_has(l.model, &key, NULL));
        ls_store_model_event(l.model, l.clock.now_ns, token, NULL, &effect);
    }
    CU_ASSERT_EQUAL(l.clock.now_ns, 1025 * MS);
    CU_ASSERT_EQUAL(effect.request.key.sequence, 9);
    CU_ASSERT_EQUAL(effect.request.tag, 100);
    CU_ASSERT_TRUE(ls_store_model_has(l.model, &key, &bytes));
    CU_ASSERT_EQUAL(bytes, MIB);
    expect_reply(&l, 0, LS_REPLY_OK, 1030 * MS);
    CU_ASSERT_EQUAL(l.clock.order, 3); /* transfer, effect, reply */
    close_lab(&l);
}

/* Reads: effect at 3 of 10 ms, 1 MiB in 1 s, then slope 12.5 ms and the remaining 7 ms. */
static void test_sized_get(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.get = constant_ms(10),
                                    .get_s_per_mib = 0.0125,
                                    .read_effect_share = 0.3,
                                    .client_bandwidth_bytes_per_s = (double)MIB});
    ls_key key = data_key(4, 1, 9);
    ls_store_model_install_data(l.model, &key, 2 * MIB);
    ls_store_request request = {.operation = LS_GET,
                                .key = key,
                                .range = LS_RANGE_SPAN,
                                .range_offset = MIB / 2,
                                .range_bytes = MIB,
                                .slice = {.data_rank = 3}};
    send_at(&l, 0, 0, request);
    ls_store_completion done = expect_reply(&l, 0, LS_REPLY_OK, 3 * MS + 1000 * MS + 12 * MS + MS / 2 + 7 * MS);
    CU_ASSERT_EQUAL(done.reply.moved_bytes, MIB);
    CU_ASSERT_EQUAL(done.reply.object_bytes, 2 * MIB);
    CU_ASSERT_EQUAL(done.reply.slice.data_rank, 3);
    CU_ASSERT_PTR_NULL(done.reply.manifest);
    close_lab(&l);
}

/* Client links 4 MiB/s, the store's 1 MiB/s: two clients put 1 MiB each at 0 and share the store's link: both end at 2
 * s; a third of 0.5 MiB at 1 s: at 1 s the two have 0.5 MiB left each, all three go on at 1/3 MiB/s and end at 2.5 s.
 */
static void test_shared_links(void)
{
    lab l;
    ls_store_config config = {.client_bandwidth_bytes_per_s = 4.0 * (double)MIB,
                              .server_bandwidth_bytes_per_s = (double)MIB};
    open_lab(&l, &config);
    send_at(&l, 0, 0, put_data(data_key(0, 1, 0), MIB));
    send_at(&l, 0, 1, put_data(data_key(1, 1, 0), MIB));
    expect_reply(&l, 0, LS_REPLY_OK, 2000 * MS);
    expect_reply(&l, 1, LS_REPLY_OK, 2000 * MS);
    int64_t start = l.clock.now_ns;
    send_at(&l, start, 0, put_data(data_key(0, 1, 1), MIB));
    send_at(&l, start, 1, put_data(data_key(1, 1, 1), MIB));
    send_at(&l, start, 2, get(data_key(9, 9, 9)));
    expect_reply(&l, 2, LS_REPLY_NOT_FOUND, start);
    uint64_t token;
    while (store_clock_peek(&l.clock) <= start + 1000 * MS && store_clock_next(&l.clock, &token)) {
        ls_store_model_event(l.model, l.clock.now_ns, token, NULL, NULL);
    }
    send_at(&l, start + 1000 * MS, 2, put_data(data_key(2, 1, 0), MIB / 2));
    for (uint32_t i = 0; i < 3; i++) expect_reply(&l, i, LS_REPLY_OK, start + 2500 * MS);
    expect_silence(&l);
    close_lab(&l);
    /* One client, two transfers: now its own link is the narrow one. */
    config.server_bandwidth_bytes_per_s = 100.0 * (double)MIB;
    open_lab(&l, &config);
    send_at(&l, 0, 0, put_data(data_key(0, 1, 0), 4 * MIB));
    send_at(&l, 0, 0, put_data(data_key(0, 1, 1), 4 * MIB));
    send_at(&l, 0, 1, put_data(data_key(1, 1, 1), 4 * MIB));
    expect_reply(&l, 1, LS_REPLY_OK, 1000 * MS);
    expect_reply(&l, 0, LS_REPLY_OK, 2000 * MS);
    expect_reply(&l, 0, LS_REPLY_OK, 2000 * MS);
    expect_silence(&l);
    close_lab(&l);
}

/* Contention: four conditional puts of one name in flight at the effects (5 ms): 2 ms more for each; a floor put
 * is alone; data puts and unconditional ones neither count nor pay. */
static void test_contention(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.conditional_won = constant_ms(10),
                                    .conditional_lost = constant_ms(10),
                                    .put = constant_ms(1),
                                    .conditional_effect_share = 0.5,
                                    .contention_s_per_doubling = 0.001});
    for (uint32_t i = 0; i < 4; i++) send_at(&l, 0, i, claim(1));
    send_at(&l, 0, 4, (ls_store_request){.operation = LS_PUT, .if_absent = true, .key = key_of(LS_OBJECT_FLOOR, 1)});
    send_at(&l, 0, 5,
            (ls_store_request){.operation = LS_PUT, .if_absent = true, .key = data_key(1, 1, 0), .body_bytes = 1});
    CU_ASSERT_EQUAL(ls_store_model_conditional_in_flight(l.model, LS_OBJECT_MANIFEST), 4);
    CU_ASSERT_EQUAL(ls_store_model_conditional_in_flight(l.model, LS_OBJECT_FLOOR), 1);
    CU_ASSERT_EQUAL(ls_store_model_conditional_in_flight(l.model, LS_OBJECT_DATA), 0);
    expect_reply(&l, 5, LS_REPLY_OK, 1 * MS);
    expect_reply(&l, 4, LS_REPLY_OK, 10 * MS);
    for (uint32_t i = 0; i < 4; i++) expect_reply(&l, i, i == 0 ? LS_REPLY_OK : LS_REPLY_EXISTS, 12 * MS);
    CU_ASSERT_EQUAL(ls_store_model_conditional_in_flight(l.model, LS_OBJECT_MANIFEST), 0);
    close_lab(&l);
}

/* ---- what the operations do ---- */

static void test_manifest_reads(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    ls_manifest *old = manifest_of(6, 100), *newest = manifest_of(7, 103), *foreign = manifest_of(3, 3);
    uint64_t encoded = ls_manifest_encoded_bytes(newest), needed = ls_manifest_tail_bytes(newest, 100);
    CU_ASSERT_EQUAL(needed, LS_MANIFEST_FOOTER_BYTES + 3 * LS_MANIFEST_ENTRY_BYTES);
    ls_store_model_install_manifest(l.model, newest);
    struct {
        ls_range_kind range;
        const ls_manifest *known;
        uint64_t offset, bytes, moved, needed;
        bool arrives;
        ls_reply_status status;
    } rows[] = {
        {LS_RANGE_WHOLE, NULL, 0, 0, encoded, 0, true, LS_REPLY_OK},
        {LS_RANGE_SUFFIX, old, 0, needed, needed, 0, true, LS_REPLY_OK},
        {LS_RANGE_SUFFIX, old, 0, needed - 1, needed - 1, needed, false, LS_REPLY_OK},
        {LS_RANGE_SUFFIX, NULL, 0, needed, needed, LS_MANIFEST_FOOTER_BYTES + 103 * LS_MANIFEST_ENTRY_BYTES, false, LS_REPLY_OK},
        {LS_RANGE_SUFFIX, foreign, 0, 1 << 20, encoded, 0, true, LS_REPLY_OK},
        {LS_RANGE_SPAN, old, 0, encoded, encoded, 0, true, LS_REPLY_OK},
        {LS_RANGE_SPAN, old, 64, encoded, encoded - 64, 0, false, LS_REPLY_OK},
        {LS_RANGE_SPAN, old, encoded, 1, 0, 0, false, LS_REPLY_INVALID},
        {LS_RANGE_SUFFIX, old, 0, 0, 0, 0, false, LS_REPLY_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ls_store_request request = {.operation = LS_GET,
                                    .key = key_of(LS_OBJECT_MANIFEST, 7),
                                    .range = rows[i].range,
                                    .known = rows[i].known,
                                    .range_offset = rows[i].offset,
                                    .range_bytes = rows[i].bytes};
        send_at(&l, 0, 0, request);
        ls_store_completion done = expect_reply(&l, 0, rows[i].status, 0);
        CU_ASSERT_EQUAL(done.reply.moved_bytes, rows[i].moved);
        CU_ASSERT_EQUAL(done.reply.needed_bytes, rows[i].needed);
        CU_ASSERT_PTR_EQUAL(done.reply.manifest, rows[i].arrives ? newest : NULL);
        ls_manifest_release(done.reply.manifest);
    }
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->by[LS_GET][LS_OBJECT_MANIFEST][LS_REPLY_OK].requests, 7);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->by[LS_GET][LS_OBJECT_MANIFEST][LS_REPLY_INVALID].requests, 2);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->by[LS_GET][LS_OBJECT_MANIFEST][LS_REPLY_OK].down_bytes,
                    4 * encoded - 64 + 3 * needed - 1);
    ls_manifest_release(old);
    ls_manifest_release(newest);
    ls_manifest_release(foreign);
    close_lab(&l);
}

static void test_objects(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    ls_key key = data_key(2, 1, 5);
    const ls_store_counters *counters = ls_store_model_counters(l.model);
    ls_store_request head = {.operation = LS_HEAD, .key = key}, remove = {.operation = LS_DELETE, .key = key};
    send_at(&l, 0, 0, head);
    expect_reply(&l, 0, LS_REPLY_NOT_FOUND, 0);
    send_at(&l, 0, 0, put_data(key, 100));
    expect_reply(&l, 0, LS_REPLY_OK, 0);
    send_at(&l, 0, 0, put_data(key, 70)); /* overwrites */
    expect_reply(&l, 0, LS_REPLY_OK, 0);
    CU_ASSERT_EQUAL(counters->stored_objects, 1);
    CU_ASSERT_EQUAL(counters->stored_bytes, 70);
    send_at(&l, 0, 0, head);
    CU_ASSERT_EQUAL(expect_reply(&l, 0, LS_REPLY_OK, 0).reply.object_bytes, 70);
    send_at(&l, 0, 0, get(key));
    CU_ASSERT_EQUAL(expect_reply(&l, 0, LS_REPLY_OK, 0).reply.moved_bytes, 70);
    ls_store_request absent = put_data(key, 30);
    absent.if_absent = true;
    send_at(&l, 0, 0, absent);
    expect_reply(&l, 0, LS_REPLY_EXISTS, 0);
    CU_ASSERT_EQUAL(counters->wasted_up_bytes, 30);
    for (int i = 0; i < 2; i++) { /* a delete of nothing is OK too */
        send_at(&l, 0, 0, remove);
        expect_reply(&l, 0, LS_REPLY_OK, 0);
    }
    CU_ASSERT_EQUAL(counters->stored_objects, 0);
    CU_ASSERT_EQUAL(counters->stored_bytes, 0);
    send_at(&l, 0, 0, get(key));
    expect_reply(&l, 0, LS_REPLY_NOT_FOUND, 0);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_OK].requests, 2);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_OK].up_bytes, 170);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_EXISTS].up_bytes, 30);
    CU_ASSERT_EQUAL(counters->by[LS_DELETE][LS_OBJECT_DATA][LS_REPLY_OK].requests, 2);
    CU_ASSERT_EQUAL(counters->by[LS_GET][LS_OBJECT_DATA][LS_REPLY_NOT_FOUND].requests, 1);
    /* Overwriting, deleting and re-creating a version hands its manifests back (the sanitizer run would see a leak). */
    for (int i = 0; i < 2; i++) {
        ls_store_request overwrite = claim(3);
        overwrite.if_absent = false;
        send_at(&l, 0, 0, overwrite);
        expect_reply(&l, 0, LS_REPLY_OK, 0);
    }
    send_at(&l, 0, 0, (ls_store_request){.operation = LS_DELETE, .key = key_of(LS_OBJECT_MANIFEST, 3)});
    expect_reply(&l, 0, LS_REPLY_OK, 0);
    CU_ASSERT_PTR_NULL(ls_store_model_newest(l.model));
    send_at(&l, 0, 0, claim(3));
    expect_reply(&l, 0, LS_REPLY_OK, 0);
    CU_ASSERT_PTR_NOT_NULL(ls_store_model_manifest(l.model, 3));
    CU_ASSERT_PTR_NULL(ls_store_model_manifest(l.model, 2));
    ls_store_model_reset_counters(l.model);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_OK].requests, 0);
    CU_ASSERT_EQUAL(counters->stored_objects, 1);
    close_lab(&l);
}

static void expect_list(lab *l, ls_key after, uint32_t limit, uint64_t count, ls_key last, bool truncated)
{
    send_at(l, l->clock.now_ns, 0, (ls_store_request){.operation = LS_LIST, .key = after, .list_limit = limit});
    ls_store_reply reply = expect_reply(l, 0, LS_REPLY_OK, l->clock.now_ns).reply;
    CU_ASSERT_EQUAL(reply.list_count, count);
    CU_ASSERT_EQUAL(reply.list_truncated, truncated);
    if (count == 0) return;
    CU_ASSERT_EQUAL(reply.list_last.kind, last.kind);
    CU_ASSERT_EQUAL(reply.list_last.number, last.number);
    CU_ASSERT_EQUAL(reply.list_last.epoch, last.epoch);
    CU_ASSERT_EQUAL(reply.list_last.sequence, last.sequence);
    CU_ASSERT_PTR_NULL(reply.list_keys);
    send_at(l, l->clock.now_ns, 0, (ls_store_request){.operation = LS_LIST, .key = after, .list_limit = limit, .list_names = true});
    reply = expect_reply(l, 0, LS_REPLY_OK, l->clock.now_ns).reply; /* the same, name by name, ascending */
    CU_ASSERT_EQUAL(reply.list_count, count);
    CU_ASSERT_EQUAL(ls_key_compare(&reply.list_keys[count - 1], &last), 0);
    for (uint64_t i = 0; i < count; i++) {
        CU_ASSERT_TRUE(ls_key_compare(i == 0 ? &after : &reply.list_keys[i - 1], &reply.list_keys[i]) < 0);
        CU_ASSERT_TRUE(ls_store_model_has(l->model, &reply.list_keys[i], &(uint64_t){0}));
    }
}

/* Sizes and ages, and checkpoints, whose step and kind are part of the name. */
static void test_list_names(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    ls_key first = ls_key_checkpoint(7, 200, LS_CHECKPOINT_AUTO), second = ls_key_checkpoint(9, 150, LS_CHECKPOINT_PIN);
    ls_key other = ls_key_checkpoint(9, 151, LS_CHECKPOINT_PIN);
    send_at(&l, 1000, 0, put_data(first, 70));
    expect_reply(&l, 0, LS_REPLY_OK, 1000);
    send_at(&l, 4000, 0, put_data(second, 80));
    expect_reply(&l, 0, LS_REPLY_OK, 4000);
    send_at(&l, 9000, 0, (ls_store_request){.operation = LS_LIST, .key = ls_key_checkpoint(0, 0, (ls_checkpoint_kind)0),
                                            .list_limit = 10, .list_names = true});
    ls_store_reply reply = expect_reply(&l, 0, LS_REPLY_OK, 9000).reply;
    CU_ASSERT_EQUAL_FATAL(reply.list_count, 2);
    CU_ASSERT_EQUAL(ls_key_compare(&reply.list_keys[0], &first), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&reply.list_keys[1], &second), 0);
    CU_ASSERT_EQUAL(ls_key_compare(&reply.list_last, &second), 0);
    CU_ASSERT_EQUAL(reply.list_bytes[0], 70);
    CU_ASSERT_EQUAL(reply.list_bytes[1], 80);
    CU_ASSERT_EQUAL(reply.list_ages_ns[0], 8000);
    CU_ASSERT_EQUAL(reply.list_ages_ns[1], 5000);
    CU_ASSERT_TRUE(ls_store_model_has(l.model, &second, NULL));
    CU_ASSERT_FALSE(ls_store_model_has(l.model, &other, NULL));
    send_at(&l, 9000, 0, (ls_store_request){.operation = LS_DELETE, .key = second});
    expect_reply(&l, 0, LS_REPLY_OK, 9000);
    CU_ASSERT_FALSE(ls_store_model_has(l.model, &second, NULL));
    send_at(&l, 9000, 0, (ls_store_request){.operation = LS_LIST, .key = first, .list_limit = 10, .list_names = true});
    CU_ASSERT_EQUAL(expect_reply(&l, 0, LS_REPLY_OK, 9000).reply.list_count, 0);
    send_at(&l, 9000, 0, (ls_store_request){.operation = LS_LIST, .key = ls_key_checkpoint(0, 0, (ls_checkpoint_kind)0),
                                            .list_limit = 10, .list_names = true});
    close_lab(&l); /* one is never answered */
}

static void test_list_versions(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    ls_key none = {0}, start = key_of(LS_OBJECT_MANIFEST, 0);
    expect_list(&l, start, 1000, 0, none, false);
    static const uint64_t order[] = {5, 6, 7, 2, 9, 1}; /* 8, 3, 4 are missing; made out of order */
    for (size_t i = 0; i < 6; i++) {
        ls_manifest *manifest = manifest_of(order[i], 1);
        CU_ASSERT_EQUAL(ls_store_model_install_manifest(l.model, manifest), LS_OK);
        ls_manifest_release(manifest);
    }
    expect_list(&l, start, 1000, 6, key_of(LS_OBJECT_MANIFEST, 9), false);
    expect_list(&l, start, 6, 6, key_of(LS_OBJECT_MANIFEST, 9), false);
    expect_list(&l, start, 5, 5, key_of(LS_OBJECT_MANIFEST, 7), true);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, 2), 1, 1, key_of(LS_OBJECT_MANIFEST, 5), true);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, 3), 2, 2, key_of(LS_OBJECT_MANIFEST, 6), true);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, 7), 9, 1, key_of(LS_OBJECT_MANIFEST, 9), false);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, 9), 9, 0, none, false);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, UINT64_MAX), 9, 0, none, false);
    expect_list(&l, key_of(LS_OBJECT_FLOOR, 0), 9, 0, none, false);
    CU_ASSERT_EQUAL(ls_manifest_version(ls_store_model_newest(l.model)), 9);
    static const uint64_t removed[] = {1, 6, 9};
    for (size_t i = 0; i < 3; i++) {
        send_at(&l, 0, 0, (ls_store_request){.operation = LS_DELETE, .key = key_of(LS_OBJECT_MANIFEST, removed[i])});
        expect_reply(&l, 0, LS_REPLY_OK, 0);
    }
    expect_list(&l, start, 9, 3, key_of(LS_OBJECT_MANIFEST, 7), false);
    expect_list(&l, start, 2, 2, key_of(LS_OBJECT_MANIFEST, 5), true);
    for (uint64_t i = 0; i < 1500; i++) {
        ls_key key = key_of(LS_OBJECT_FLOOR, 2 * i);
        CU_ASSERT_EQUAL(ls_store_model_install_data(l.model, &key, 0), LS_OK);
    }
    expect_list(&l, key_of(LS_OBJECT_FLOOR, 1), 5000, 1000, key_of(LS_OBJECT_FLOOR, 2000), true); /* as S3 answers */
    close_lab(&l);
}

/* A log that is trimmed behind: new versions at one end, deletions at the other, in memory that stays small. */
static void test_sliding_window(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    ls_manifest *content = manifest_of(1, 1);
    uint64_t before = 0;
    for (uint64_t version = 1; version <= 3000; version++) {
        if (version == 500) before = ls_allocations_made();
        ls_store_request request = {.operation = LS_PUT,
                                    .if_absent = true,
                                    .key = key_of(LS_OBJECT_MANIFEST, version),
                                    .manifest = ls_manifest_retain(content)};
        send_at(&l, 0, 0, request);
        CU_ASSERT_EQUAL(next_reply(&l).reply.status, LS_REPLY_OK);
        if (version <= 10) continue;
        send_at(&l, 0, 0, (ls_store_request){.operation = LS_DELETE, .key = key_of(LS_OBJECT_MANIFEST, version - 10)});
        CU_ASSERT_EQUAL(next_reply(&l).reply.status, LS_REPLY_OK);
        CU_ASSERT_PTR_NULL(ls_store_model_manifest(l.model, version - 10));
        CU_ASSERT_PTR_EQUAL(ls_store_model_manifest(l.model, version - 9), content);
        CU_ASSERT_PTR_EQUAL(ls_store_model_manifest(l.model, version), content);
    }
    CU_ASSERT_EQUAL(ls_allocations_made(), before);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->stored_objects, 10);
    expect_list(&l, key_of(LS_OBJECT_MANIFEST, 0), 4, 4, key_of(LS_OBJECT_MANIFEST, 2994), true);
    ls_manifest_release(content);
    close_lab(&l);
}

/* Data keys ascend by producer, epoch, sequence; a page may end inside one producer's run or between two. */
static void test_list_data(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){0});
    for (uint32_t producer = 200; producer > 0; producer--) {
        for (uint32_t epoch = 3; epoch > 1; epoch--) {
            for (uint64_t sequence = 0; sequence < 3; sequence++) {
                ls_key key = data_key(producer, epoch, sequence);
                CU_ASSERT_EQUAL(ls_store_model_install_data(l.model, &key, 1), LS_OK);
            }
        }
    }
    ls_key start = data_key(0, 0, 0), none = {0};
    expect_list(&l, start, 1000, 1000, data_key(167, 3, 0), true);
    expect_list(&l, data_key(167, 3, 0), 1000, 200, data_key(200, 3, 2), false);
    expect_list(&l, start, 4, 4, data_key(1, 3, 0), true);
    expect_list(&l, start, 3, 3, data_key(1, 2, 2), true);
    expect_list(&l, data_key(1, 2, 1), 2, 2, data_key(1, 3, 0), true);
    expect_list(&l, data_key(1, 2, 2), 6, 6, data_key(2, 2, 2), true);
    expect_list(&l, data_key(200, 3, 1), 6, 1, data_key(200, 3, 2), false);
    expect_list(&l, data_key(200, 3, 2), 6, 0, none, false);
    expect_list(&l, data_key(200, 9, 0), 6, 0, none, false);
    for (uint64_t sequence = 0; sequence < 3; sequence++) {
        send_at(&l, 0, 0, (ls_store_request){.operation = LS_DELETE, .key = data_key(1, 2, sequence)});
        expect_reply(&l, 0, LS_REPLY_OK, 0);
    }
    expect_list(&l, start, 1, 1, data_key(1, 3, 0), true);
    ls_key early = data_key(0, 7, 3);
    ls_store_model_install_data(l.model, &early, 1);
    expect_list(&l, start, 2, 2, data_key(1, 3, 0), true);
    close_lab(&l);
}

/* Observers see every effect once, in order, with the content, also of a put that lost. */
static void test_observer(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.conditional_won = constant_ms(10),
                                    .conditional_lost = constant_ms(10),
                                    .conditional_effect_share = 0.5,
                                    .get = constant_ms(10),
                                    .read_effect_share = 1.0});
    send_at(&l, 0, 0, claim(1));
    send_at(&l, 1 * MS, 1, claim(1));
    ls_manifest *known = manifest_of(1, 1);
    ls_store_request read = get(key_of(LS_OBJECT_MANIFEST, 1));
    read.known = known;
    send_at(&l, 2 * MS, 2, read);
    ls_manifest_release(known); /* only its end step was of interest */
    uint32_t effects = 0, replies = 0;
    uint64_t token;
    static const int64_t times[] = {5 * MS, 6 * MS, 12 * MS};
    static const ls_reply_status statuses[] = {LS_REPLY_OK, LS_REPLY_EXISTS, LS_REPLY_OK};
    while (store_clock_next(&l.clock, &token)) {
        ls_store_effect effect;
        ls_store_completion done;
        CU_ASSERT_EQUAL(ls_store_model_event(l.model, l.clock.now_ns, token, &done, &effect), LS_OK);
        if (effect.happened && effects < 3) {
            CU_ASSERT_EQUAL(l.clock.now_ns, times[effects]);
            CU_ASSERT_EQUAL(effect.client, effects);
            CU_ASSERT_EQUAL(effect.context, effects);
            CU_ASSERT_EQUAL(effect.status, statuses[effects]);
            CU_ASSERT_PTR_NULL(effect.request.known);
            if (effects < 2) CU_ASSERT_EQUAL(ls_manifest_entry_count(effect.request.manifest), 10);
            effects++;
        }
        if (done.ready) {
            replies++;
            ls_manifest_release(done.reply.manifest);
        }
    }
    CU_ASSERT_EQUAL(effects, 3);
    CU_ASSERT_EQUAL(replies, 3);
    CU_ASSERT_EQUAL(l.clock.order, 5); /* two puts of two wake-ups, the read's effect and reply coincide */
    close_lab(&l);
}

static void test_senseless_requests(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.get = constant_ms(9), .put = constant_ms(9), .list = constant_ms(9)});
    ls_store_request bad[] = {
        {.operation = (ls_operation)0, .key = key_of(LS_OBJECT_MANIFEST, 1)},
        {.operation = (ls_operation)77, .key = key_of(LS_OBJECT_MANIFEST, 1)},
        {.operation = LS_GET, .key = key_of((ls_object_kind)0, 1)},
        {.operation = LS_GET, .key = key_of((ls_object_kind)5, 1)},
        {.operation = LS_GET, .key = key_of(LS_OBJECT_DATA, 1), .range = LS_RANGE_SPAN},
        {.operation = LS_LIST, .key = key_of(LS_OBJECT_MANIFEST, 1)},
        {.operation = LS_PUT, .key = key_of(LS_OBJECT_MANIFEST, 1), .body_bytes = 10},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        send_at(&l, 0, 0, bad[i]);
        expect_reply(&l, 0, LS_REPLY_INVALID, 0);
    }
    ls_key version = key_of(LS_OBJECT_MANIFEST, 1);
    CU_ASSERT_EQUAL(ls_store_model_install_data(l.model, &version, 1), LS_ERROR_INVALID);
    expect_silence(&l);
    close_lab(&l);
}

/* ---- limits and slots ---- */

/* Two puts a second, depth two: the third at once is refused and told to come back in half a second; then it passes. */
static void test_prefix_limit(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.write_limit_per_s = 2.0,
                                    .read_limit_per_s = 1.0,
                                    .limit_burst_s = 1.0,
                                    .throttle_reply_s = 0.003,
                                    .put = constant_ms(1),
                                    .put_effect_share = 1.0});
    for (uint64_t i = 0; i < 2; i++) {
        send_at(&l, 0, 0, put_data(data_key(1, 1, i), 1));
        expect_reply(&l, 0, LS_REPLY_OK, 1 * MS);
        l.clock.now_ns = 0;
    }
    send_at(&l, 0, 0, put_data(data_key(1, 1, 2), 1));
    CU_ASSERT_EQUAL(expect_reply(&l, 0, LS_REPLY_THROTTLED, 3 * MS).reply.retry_after_ns, 500 * MS);
    CU_ASSERT_FALSE(ls_store_model_has(l.model, &(ls_key){.kind = LS_OBJECT_DATA, .epoch = 1, .number = 1, .sequence = 2}, NULL));
    send_at(&l, 3 * MS, 0, claim(1)); /* another prefix; its manifest is not lost when throttled either: below */
    expect_reply(&l, 0, LS_REPLY_OK, 3 * MS);
    send_at(&l, 3 * MS, 1, claim(2));
    expect_reply(&l, 1, LS_REPLY_OK, 3 * MS);
    send_at(&l, 3 * MS, 2, claim(3));
    expect_reply(&l, 2, LS_REPLY_THROTTLED, 6 * MS);
    send_at(&l, 499 * MS, 0, put_data(data_key(1, 1, 2), 1));
    CU_ASSERT_EQUAL(expect_reply(&l, 0, LS_REPLY_THROTTLED, 502 * MS).reply.retry_after_ns, 1 * MS);
    send_at(&l, 502 * MS, 0, (ls_store_request){.operation = LS_DELETE, .key = data_key(1, 1, 0)});
    expect_reply(&l, 0, LS_REPLY_OK, 502 * MS);
    send_at(&l, 502 * MS, 0, (ls_store_request){.operation = LS_HEAD, .key = data_key(1, 1, 1)});
    expect_reply(&l, 0, LS_REPLY_OK, 502 * MS);
    send_at(&l, 502 * MS, 0, get(data_key(1, 1, 1)));
    expect_reply(&l, 0, LS_REPLY_THROTTLED, 505 * MS);
    const ls_store_counters *counters = ls_store_model_counters(l.model);
    CU_ASSERT_EQUAL(counters->throttled, 4);
    CU_ASSERT_EQUAL(counters->key_throttled, 0);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_THROTTLED].requests, 2);
    CU_ASSERT_EQUAL(counters->by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_THROTTLED].up_bytes, 0);
    close_lab(&l);
}

/* One put a second and name (GCS), lost ones counted; other names and reads are free; a refusal costs no prefix token.
 */
static void test_name_limit(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.key_write_limit_per_s = 1.0, .write_limit_per_s = 4.0, .limit_burst_s = 1.0});
    send_at(&l, 0, 0, claim(1));
    expect_reply(&l, 0, LS_REPLY_OK, 0);
    for (uint32_t i = 1; i < 9; i++) {
        send_at(&l, 0, i, claim(1));
        CU_ASSERT_EQUAL(expect_reply(&l, i, LS_REPLY_THROTTLED, 0).reply.retry_after_ns, 1000 * MS);
    }
    for (uint32_t i = 2; i < 5; i++) { /* the prefix bucket held four: all four names got through */
        send_at(&l, 0, i, claim(i));
        expect_reply(&l, i, LS_REPLY_OK, 0);
    }
    send_at(&l, 1000 * MS, 1, claim(1));
    expect_reply(&l, 1, LS_REPLY_EXISTS, 1000 * MS);
    send_at(&l, 1500 * MS, 1, claim(1)); /* the lost try of one second counts */
    CU_ASSERT_EQUAL(expect_reply(&l, 1, LS_REPLY_THROTTLED, 1500 * MS).reply.retry_after_ns, 500 * MS);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->key_throttled, 9);
    /* Many names over a long time: each is forgotten in its turn, none is refused. */
    uint64_t before = ls_allocations_made();
    for (uint64_t i = 0; i < 3000; i++) {
        int64_t now_ns = 2000 * MS + (int64_t)i * 300 * MS;
        send_at(&l, now_ns, 0, put_data(data_key(1, 1, i % 50), 1));
        expect_reply(&l, 0, LS_REPLY_OK, now_ns);
    }
    CU_ASSERT(ls_allocations_made() - before < 3000 / 20 + 100);
    close_lab(&l);
}

/* One slot held for 10 ms, requests of 4 ms: three at once are answered at 4, 14 and 24 ms; a waiting put counts its
 * time from its slot, and a slot of a get is held longer by its bytes. */
static void test_slots(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.server_slots = 1,
                                    .slot_fixed_s = 0.010,
                                    .slot_s_per_mib = 0.5,
                                    .get = constant_ms(4),
                                    .head = constant_ms(4),
                                    .put = constant_ms(4),
                                    .put_effect_share = 1.0});
    for (uint32_t i = 0; i < 3; i++)
        send_at(&l, 0, i, (ls_store_request){.operation = LS_HEAD, .key = data_key(1, 1, 1)});
    for (uint32_t i = 0; i < 3; i++) expect_reply(&l, i, LS_REPLY_NOT_FOUND, (4 + 10 * (int64_t)i) * MS);
    expect_silence(&l);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->slot_waits, 2);
    CU_ASSERT_EQUAL(ls_store_model_counters(l.model)->slot_wait_ns, 30 * MS);
    ls_key key = data_key(1, 1, 1);
    ls_store_model_install_data(l.model, &key, 2 * MIB);
    int64_t start = l.clock.now_ns;
    send_at(&l, start, 0, get(key));
    send_at(&l, start, 1, put_data(key, 1));
    expect_reply(&l, 0, LS_REPLY_OK, start + 4 * MS);
    expect_reply(&l, 1, LS_REPLY_OK, start + 1010 * MS + 4 * MS);
    expect_silence(&l);
    close_lab(&l);
}

/* The station alone: two servers, four customers. */
static void test_station(void)
{
    store_clock clock = {0};
    ls_station *station = ls_station_new(2, store_clock_scheduler(&clock));
    CU_ASSERT_PTR_NOT_NULL_FATAL(station);
    static const int64_t service[] = {10, 4, 7, 1, 3};
    for (uint64_t i = 0; i < 5; i++) {
        bool started;
        CU_ASSERT_EQUAL(ls_station_arrive(station, 0, service[i], i, &started), LS_OK);
        CU_ASSERT_EQUAL(started, i < 2);
    }
    CU_ASSERT_EQUAL(ls_station_busy(station), 2);
    CU_ASSERT_EQUAL(ls_station_waiting(station), 3);
    /* 1 leaves at 4, 2 starts; 0 leaves at 10, 3 starts; 2 and 3 leave at 11, 4 starts at the first of them; 4 leaves
     * at 14. */
    static const struct {
        int64_t at;
        uint64_t departed;
        bool has_started;
        uint64_t started;
        int64_t waited;
    } rows[] = {
        {4, 1, true, 2, 4}, {10, 0, true, 3, 10}, {11, 2, true, 4, 11}, {11, 3, false, 0, 0}, {14, 4, false, 0, 0}};
    for (size_t i = 0; i < 5; i++) {
        uint64_t token;
        ls_station_turn turn;
        CU_ASSERT_TRUE_FATAL(store_clock_next(&clock, &token));
        CU_ASSERT_EQUAL(ls_station_event(station, clock.now_ns, token, &turn), LS_OK);
        CU_ASSERT_EQUAL(clock.now_ns, rows[i].at);
        CU_ASSERT_EQUAL(turn.departed, rows[i].departed);
        CU_ASSERT_EQUAL(turn.has_started, rows[i].has_started);
        CU_ASSERT_EQUAL(turn.started, rows[i].started);
        CU_ASSERT_EQUAL(turn.waited_ns, rows[i].waited);
    }
    CU_ASSERT_EQUAL(ls_station_busy(station), 0);
    bool started; /* the ring wraps and grows in order: 300 customers of 1 ns on two servers */
    for (uint64_t i = 0; i < 300; i++) ls_station_arrive(station, clock.now_ns, 1, i, &started);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t token = 0;
        ls_station_turn turn;
        store_clock_next(&clock, &token);
        ls_station_event(station, clock.now_ns, token, &turn);
        CU_ASSERT_EQUAL(turn.departed, i);
        CU_ASSERT_EQUAL(turn.waited_ns, turn.has_started ? (int64_t)turn.started / 2 : 0);
    }
    CU_ASSERT_PTR_NULL(ls_station_new(0, store_clock_scheduler(&clock)));
    ls_station_free(station);
    store_clock_release(&clock);
}

/* ---- the whole ---- */

static ls_store_request random_request(ls_random *random, uint64_t newest)
{
    ls_key data =
        data_key(ls_random_below(random, 5), 1 + (uint32_t)ls_random_below(random, 2), ls_random_below(random, 9));
    switch (ls_random_below(random, 8)) {
    case 0: return put_data(data, ls_random_below(random, 3 * MIB));
    case 1: return get(data);
    case 2: return (ls_store_request){.operation = LS_HEAD, .key = data};
    case 3: return (ls_store_request){.operation = LS_DELETE, .key = data};
    case 4: return (ls_store_request){.operation = LS_LIST, .key = data, .list_limit = 3};
    case 5: return get(key_of(LS_OBJECT_MANIFEST, newest));
    default: return claim(newest + 1);
    }
}

/* A busy store with everything switched on: each request gets one reply and at most one effect before it, each version
 * has one winner and the versions are gap-free, and at the end nothing is left in flight. */
static void test_random_world(void)
{
    static uint32_t effects[4000], winners[4000];
    memset(effects, 0, sizeof effects);
    memset(winners, 0, sizeof winners);
    ls_law law = {.law = LS_LAW_GAMMA, .scale_s = 0.020, .shape = 2.0};
    ls_store_config config = {.list = law,
                              .head = law,
                              .get = law,
                              .put = law,
                              .conditional_won = law,
                              .conditional_lost = law,
                              .remove = law,
                              .get_s_per_mib = 0.01,
                              .put_s_per_mib = 0.02,
                              .read_effect_share = 0.5,
                              .put_effect_share = 0.8,
                              .conditional_effect_share = 0.7,
                              .contention_s_per_doubling = 0.002,
                              .client_bandwidth_bytes_per_s = 50e6,
                              .server_bandwidth_bytes_per_s = 300e6,
                              .server_slots = 6,
                              .slot_fixed_s = 0.002,
                              .slot_s_per_mib = 0.001,
                              .write_limit_per_s = 300.0,
                              .read_limit_per_s = 300.0,
                              .key_write_limit_per_s = 40.0,
                              .limit_burst_s = 0.1,
                              .throttle_reply_s = 0.001};
    lab l;
    open_lab(&l, &config);
    ls_random random = ls_random_open(3, 0, LS_RANDOM_TEST, 0);
    uint64_t sent = 0, replies = 0, newest = 0, token, won = 0, counted = 0;
    for (; sent < 30; sent++) {
        ls_store_request request = random_request(&random, newest);
        ls_store_model_submit(l.model, 0, (uint32_t)sent, sent, &request);
    }
    bool is_sound = true;
    while (store_clock_next(&l.clock, &token)) {
        ls_store_completion done;
        ls_store_effect effect;
        is_sound &= ls_store_model_event(l.model, l.clock.now_ns, token, &done, &effect) == LS_OK;
        if (effect.happened) {
            is_sound &= effects[effect.context]++ == 0;
            if (effect.request.key.kind == LS_OBJECT_MANIFEST && effect.request.operation == LS_PUT &&
                effect.status == LS_REPLY_OK) {
                is_sound &= effect.request.key.number == newest + 1 && winners[newest + 1]++ == 0;
                newest++;
                won++;
            }
        }
        if (!done.ready) continue;
        replies++;
        is_sound &= effects[done.context] == (done.reply.status != LS_REPLY_THROTTLED);
        effects[done.context] = 9;
        ls_manifest_release(done.reply.manifest);
        if (sent == 4000) continue;
        ls_store_request request = random_request(&random, newest);
        ls_store_model_submit(l.model, l.clock.now_ns, done.client, sent++, &request);
    }
    CU_ASSERT_TRUE(is_sound);
    CU_ASSERT_EQUAL(replies, 4000);
    CU_ASSERT_EQUAL(ls_store_model_in_flight(l.model), 0);
    CU_ASSERT_EQUAL(ls_store_model_conditional_in_flight(l.model, LS_OBJECT_MANIFEST), 0);
    CU_ASSERT(won > 100);
    const ls_store_counters *counters = ls_store_model_counters(l.model);
    for (int o = 0; o < (int)LS_STORE_OPERATIONS; o++) {
        for (int k = 0; k < (int)LS_STORE_KINDS; k++) {
            for (int s = 0; s < (int)LS_STORE_STATUSES; s++) counted += counters->by[o][k][s].requests;
        }
    }
    CU_ASSERT_EQUAL(counted, 4000);
    CU_ASSERT(counters->throttled > 0 && counters->key_throttled > 0 && counters->slot_waits > 0);
    close_lab(&l);
}

/* In steady state nothing is allocated, and a thousand clients that transfer one after the other share one link's
 * memory. */
static void test_steady_state_allocates_nothing(void)
{
    lab l;
    open_lab(&l, &(ls_store_config){.get = constant_ms(5),
                                    .read_effect_share = 0.5,
                                    .server_slots = 2,
                                    .client_bandwidth_bytes_per_s = 1e6,
                                    .server_bandwidth_bytes_per_s = 1e7});
    ls_key key = data_key(1, 1, 1);
    ls_store_model_install_data(l.model, &key, 1000);
    send_at(&l, 0, 9999, get(key)); /* the arrays by client reach their size */
    expect_reply(&l, 9999, LS_REPLY_OK, 6 * MS);
    uint64_t before = ls_allocations_made();
    for (uint32_t client = 0; client < 10000; client++) {
        send_at(&l, l.clock.now_ns, client, get(key));
        CU_ASSERT_EQUAL(next_reply(&l).client, client);
    }
    CU_ASSERT_EQUAL(ls_allocations_made(), before);
    close_lab(&l);
}

static ls_result run_with_failures(int64_t successes, const ls_manifest *content)
{
    ls_store_config config = {.conditional_won = {.law = LS_LAW_GAMMA, .scale_s = 0.01, .shape = 3.0},
                              .server_slots = 1,
                              .key_write_limit_per_s = 1000.0,
                              .client_bandwidth_bytes_per_s = 1e6,
                              .limit_burst_s = 1.0,
                              .server_bandwidth_bytes_per_s = 1e7};
    store_clock clock = {0};
    ls_store_model *model = NULL;
    ls_error error = {""};
    ls_fail_allocations_after(successes);
    ls_result result = ls_store_model_create(&config, 1, 0, store_clock_scheduler(&clock), &model, &error);
    for (uint32_t i = 0; i < 8 && result == LS_OK; i++) {
        ls_store_request request = put_data(data_key(i, 1, 0), 100);
        if (i < 4) {
            request = (ls_store_request){.operation = LS_PUT,
                                         .if_absent = true,
                                         .key = key_of(LS_OBJECT_MANIFEST, i / 2),
                                         .manifest = ls_manifest_retain(content)};
        }
        if (i == 7) request = (ls_store_request){.operation = LS_LIST, .key = data_key(0, 0, 0), .list_limit = 5};
        result = ls_store_model_submit(model, 0, i, i, &request);
    }
    uint64_t token;
    while (result == LS_OK && store_clock_next(&clock, &token)) {
        result = ls_store_model_event(model, clock.now_ns, token, NULL, NULL);
    }
    ls_fail_allocations_after(-1);
    ls_store_model_destroy(model);
    store_clock_release(&clock);
    return result;
}

/* Every allocation refused in turn: an error comes back, nothing leaks (sanitizer run), and enough memory succeeds. */
static void test_memory(void)
{
    ls_manifest *content = manifest_of(1, 4);
    int64_t successes = 0;
    for (ls_result result = LS_ERROR_MEMORY; result != LS_OK && successes < 200; successes++) {
        result = run_with_failures(successes, content);
        CU_ASSERT(result == LS_OK || result == LS_ERROR_MEMORY);
    }
    CU_ASSERT(successes > 10 && successes < 200);
    ls_manifest_release(content);
}

/* Destroying with requests at every stage: no leak, no crash. */
static void test_destroy_in_flight(void)
{
    for (int events = 0; events < 12; events++) {
        lab l;
        open_lab(&l, &(ls_store_config){.server_slots = 2,
                                        .client_bandwidth_bytes_per_s = 1e4,
                                        .slot_fixed_s = 0.01,
                                        .server_bandwidth_bytes_per_s = 1e4,
                                        .get = constant_ms(3),
                                        .conditional_won = constant_ms(5),
                                        .conditional_effect_share = 0.5});
        for (uint32_t i = 0; i < 3; i++) send_at(&l, 0, i, claim(1));
        send_at(&l, 0, 4, get(key_of(LS_OBJECT_MANIFEST, 1)));
        uint64_t token;
        for (int i = 0; i < events && store_clock_next(&l.clock, &token); i++) {
            CU_ASSERT_EQUAL(ls_store_model_event(l.model, l.clock.now_ns, token, NULL, NULL), LS_OK);
        }
        close_lab(&l);
    }
    ls_store_model_destroy(NULL);
}

static void expect_refusal(ls_store_config config, ls_result expected, const char *part)
{
    store_clock clock = {0};
    ls_store_model *model = NULL;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_store_model_create(&config, 1, 0, store_clock_scheduler(&clock), &model, &error), expected);
    CU_ASSERT_PTR_NULL(model);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
}

static void test_bad_config(void)
{
    expect_refusal((ls_store_config){.read_effect_share = 1.5}, LS_ERROR_INVALID, "store.read_effect_share is 1.5");
    expect_refusal((ls_store_config){.get_s_per_mib = NAN}, LS_ERROR_INVALID, "store.get_s_per_mib");
    expect_refusal((ls_store_config){.write_limit_per_s = -1.0}, LS_ERROR_INVALID, "store.write_limit_per_s");
    expect_refusal((ls_store_config){.remove = {.law = 99}}, LS_ERROR_INVALID, "store.remove: law number 99");
    expect_refusal((ls_store_config){.get = {.law = LS_LAW_EMPIRICAL, .file = "/nonexistent/quantiles"}}, LS_ERROR_IO,
                   "store.get: law file /nonexistent/quantiles");
}

LS_SUITE(store_model, {"nothing happens inside submit", test_nothing_inline}, {"two race for a name", test_race},
         {"the first effect wins", test_first_effect_wins}, {"common random numbers", test_common_random_numbers},
         {"put with bytes", test_sized_put}, {"get with bytes", test_sized_get}, {"shared links", test_shared_links},
         {"contention", test_contention}, {"manifest reads", test_manifest_reads}, {"objects", test_objects},
         {"list of versions", test_list_versions}, {"sliding window", test_sliding_window},
         {"names in lists", test_list_names}, {"list of data", test_list_data}, {"observer", test_observer}, {"senseless requests", test_senseless_requests},
         {"prefix limit", test_prefix_limit}, {"name limit", test_name_limit}, {"slots", test_slots},
         {"station", test_station}, {"random world", test_random_world},
         {"steady state", test_steady_state_allocates_nothing}, {"memory failures", test_memory},
         {"destroyed in flight", test_destroy_in_flight}, {"bad configurations", test_bad_config})
