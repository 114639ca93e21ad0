/* test_helping.c - whoever commits publishes for all: rows advanced by others, what a helper may take, and what the helped one does. */
#include "manifest/invariants.h"
#include "manifest/producer.h"
#include "tests/lake.h"
#include "tests/suite.h"

#include <string.h>

static void test_told_name(void)
{
    ls_key key = ls_key_data_told(3, 2, 10, 40, 44, 64), read = {0};
    char text[LS_KEY_TEXT_BYTES];
    CU_ASSERT_EQUAL(ls_key_format(&key, text), strlen("data/3/0000000002-00000000000000000010-40-44-64.tgb"));
    CU_ASSERT_STRING_EQUAL(text, "data/3/0000000002-00000000000000000010-40-44-64.tgb");
    CU_ASSERT_EQUAL(ls_key_parse(text, &read), LS_OK);
    CU_ASSERT_EQUAL(read.sequence, 10);
    CU_ASSERT_EQUAL(read.source_begin, 40);
    CU_ASSERT_EQUAL(read.source_end, 44);
    CU_ASSERT_EQUAL(read.footer_bytes, 64);
    ls_key plain = ls_key_data(3, 2, 10);
    CU_ASSERT_EQUAL(ls_key_compare(&key, &plain), 0); /* one object, whatever its name tells */
    CU_ASSERT_EQUAL(ls_key_parse("data/3/2-10-40-44-64.tgb", &read), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_key_parse("data/3/0000000002-00000000000000000010-40-44-0.tgb", &read), LS_ERROR_INVALID);
    key = ls_key_data_told(UINT64_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX);
    CU_ASSERT_EQUAL(ls_key_format(&key, text), 114); /* 5+20+1 +10+1 +20+1 +20+1 +20+1 +10 +4 */
    CU_ASSERT_EQUAL(ls_key_parse(text, &read), LS_OK);
}

/* Producers 7 and 8 with rows of epoch 4; 7 goes on at offset 10, 8 at 20, which is its sequence 5. */
static const ls_manifest *two_rows(bool closed)
{
    ls_row rows[2] = {{.producer = 7, .next_source_offset = 10, .last_version = 1, .last_commit = {70, 3}, .epoch = 4},
                      {.producer = 8, .next_source_offset = 20, .last_version = 1, .last_commit = {80, 6}, .epoch = 4,
                       .closed = closed}};
    ls_manifest *manifest = NULL;
    ls_manifest_parts parts = {.version = 1, .id = {70, 3}, .rows = rows, .row_count = 2};
    CU_ASSERT_EQUAL_FATAL(ls_manifest_build(&parts, &manifest), LS_OK);
    return manifest;
}

static void test_advance_leaves_epoch_and_commit(void)
{
    const ls_manifest *parent = two_rows(false);
    ls_entry entry = {.producer = 8, .sequence = 5, .source_begin = 20, .source_end = 23, .size_bytes = 9, .epoch = 4};
    ls_advance advance = {.slot = 1, .next_source_offset = 23};
    ls_commit commit = {.id = {70, 4}, .slot = 0, .row = {.producer = 7, .next_source_offset = 10, .epoch = 4},
                        .entries = &entry, .entry_count = 1, .advances = &advance, .advance_count = 1};
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(parent, &commit, &child), LS_OK);
    const ls_row *row = ls_manifest_row(child, 1);
    CU_ASSERT_EQUAL(row->next_source_offset, 23);
    CU_ASSERT_EQUAL(row->last_version, 2);
    CU_ASSERT_EQUAL(row->last_commit.incarnation, 80);
    CU_ASSERT_EQUAL(row->last_commit.attempt, 6);
    CU_ASSERT_EQUAL(row->epoch, 4);
    CU_ASSERT_EQUAL(ls_manifest_row(parent, 1)->next_source_offset, 20);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(child), 2);
    ls_invariants invariants;
    ls_error error;
    ls_invariants_init(&invariants, LS_CHECK_ALL, NULL, NULL);
    CU_ASSERT_EQUAL(ls_invariants_created(&invariants, parent, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_invariants_created(&invariants, child, &error), LS_OK);
    ls_invariants_clear(&invariants);
    ls_manifest_release(child);
    ls_manifest_release(parent);
    parent = two_rows(true);
    CU_ASSERT_EQUAL(ls_manifest_append(parent, &commit, &child), LS_ERROR_INVALID);
    ls_manifest_release(parent);
}

/* Answers the one request among the actions, with names if given, and steps. */
static void answer(ls_producer *p, ls_actions *actions, ls_operation operation, const ls_key *keys, uint64_t count)
{
    ls_store_reply reply = {.status = LS_REPLY_OK, .list_count = count, .list_keys = keys};
    static const uint64_t bytes[8] = {100, 101, 102, 103, 104, 105, 106, 107};
    bool found = false;
    for (uint32_t i = 0; i < actions->count; i++) {
        if (actions->item[i].kind != LS_ACTION_REQUEST) continue;
        CU_ASSERT_EQUAL(actions->item[i].request.operation, operation);
        reply.tag = actions->item[i].request.tag;
        ls_manifest_release(actions->item[i].request.manifest);
        found = true;
    }
    CU_ASSERT_TRUE_FATAL(found);
    reply.list_bytes = bytes;
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = 1, .reply = &reply};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &event, actions), LS_OK);
}

/* 7 commits one batch. Of 8's uploads, epoch 4 from offset 20 on: 5 and 6 go along; 7 is missing, so 8 stays; epoch 3 is over. */
static void test_takes_what_goes_on(void)
{
    ls_protocol protocol = ls_protocol_default();
    protocol.decider = lake_immediate(NULL);
    protocol.help_limit = 4;
    const ls_manifest *manifest = two_rows(false);
    ls_producer p;
    ls_actions actions = {0};
    ls_producer_init(&p, &protocol, 7, 70, ls_random_open(1, 0, LS_RANDOM_TEST, 1));
    CU_ASSERT_EQUAL_FATAL(ls_producer_adopt(&p, manifest, 0, 0), LS_OK);
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 500, .batch_source_count = 2, .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &batch, &actions), LS_OK);
    CU_ASSERT_EQUAL(actions.item[0].request.key.source_begin, 10);
    CU_ASSERT_EQUAL(actions.item[0].request.key.source_end, 12);
    answer(&p, &actions, LS_PUT, NULL, 0);  /* uploaded */
    answer(&p, &actions, LS_LIST, NULL, 0); /* no newer version */
    CU_ASSERT_EQUAL_FATAL(p.phase, LS_PRODUCER_HELPING);
    CU_ASSERT_TRUE(actions.item[0].request.list_names);
    CU_ASSERT_EQUAL(actions.item[0].request.key.number, 8);
    CU_ASSERT_EQUAL(actions.item[0].request.key.epoch, 3);
    const ls_key uploads[] = {ls_key_data_told(8, 3, 9, 20, 22, 64),  ls_key_data_told(8, 4, 4, 18, 20, 64),
                              ls_key_data_told(8, 4, 5, 20, 23, 64),  ls_key_data_told(8, 4, 6, 23, 24, 64),
                              ls_key_data_told(8, 4, 8, 26, 27, 64),  ls_key_data_told(9, 4, 0, 24, 25, 64)};
    answer(&p, &actions, LS_LIST, uploads, 6);
    CU_ASSERT_EQUAL_FATAL(p.phase, LS_PRODUCER_PUTTING); /* one other producer: one list */
    const ls_manifest *put = p.attempt;
    CU_ASSERT_EQUAL(ls_manifest_end_step(put), 3);
    CU_ASSERT_EQUAL(ls_manifest_row(put, 0)->next_source_offset, 12);
    CU_ASSERT_EQUAL(ls_manifest_row(put, 1)->next_source_offset, 24);
    CU_ASSERT_EQUAL(ls_manifest_row(put, 1)->last_commit.attempt, 6);
    ls_entry entry;
    CU_ASSERT_TRUE(ls_manifest_entry(put, 2, &entry));
    CU_ASSERT_EQUAL(entry.sequence, 6);
    CU_ASSERT_EQUAL(entry.size_bytes, 103);
    CU_ASSERT_EQUAL(entry.footer_bytes, 64);
    for (uint32_t i = 0; i < actions.count; i++) {
        if (actions.item[i].kind == LS_ACTION_REQUEST) ls_manifest_release(actions.item[i].request.manifest);
    }
    ls_producer_clear(&p);
    ls_manifest_release(manifest);
}

/* 8's three batches begin at 20; two are uploaded at once. A helper has moved its row to 23, past the first, and it has not looked:
 * the read that opens its attempt acknowledges that one, once, and the second remains. */
static void test_helped_before_the_reply(void)
{
    ls_protocol protocol = ls_protocol_default();
    protocol.decider = lake_immediate(NULL);
    protocol.help_limit = 1;
    protocol.upload_concurrency = 2;
    const ls_manifest *manifest = two_rows(false);
    ls_producer p;
    ls_actions actions = {0};
    ls_producer_init(&p, &protocol, 8, 80, ls_random_open(1, 0, LS_RANDOM_TEST, 1));
    CU_ASSERT_EQUAL_FATAL(ls_producer_adopt(&p, manifest, 1, 0), LS_OK);
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 500, .batch_source_count = 3, .batch_footer_bytes = 64};
    uint32_t tags[2];
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &batch, &actions), LS_OK);
        if (i < 2) tags[i] = actions.item[0].request.tag;
        CU_ASSERT_EQUAL(actions.count, i < 2 ? 1 : 0);
    }
    ls_advance advance = {.slot = 1, .next_source_offset = 23};
    ls_entry entry = {.producer = 8, .sequence = 0, .source_begin = 20, .source_end = 23, .size_bytes = 500, .epoch = 4};
    ls_commit commit = {.id = {70, 4}, .slot = 0, .row = {.producer = 7, .next_source_offset = 10, .epoch = 4},
                        .entries = &entry, .entry_count = 1, .advances = &advance, .advance_count = 1};
    ls_manifest *newer = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(manifest, &commit, &newer), LS_OK);
    ls_store_reply uploaded = {.status = LS_REPLY_OK, .tag = tags[1]};
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = 1, .reply = &uploaded};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &event, &actions), LS_OK); /* the second: the third begins */
    CU_ASSERT_EQUAL(p.ready_count, 0);
    CU_ASSERT_EQUAL(p.uploads_in_flight, 2);
    event = (ls_event){.kind = LS_EVENT_STOP};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &event, &actions), LS_OK);
    CU_ASSERT_EQUAL(p.phase, LS_PRODUCER_IDLE);
    ls_manifest_release(p.known); /* it has seen the newer version */
    p.known = ls_manifest_retain(newer);
    uploaded.tag = tags[0];
    event = (ls_event){.kind = LS_EVENT_REPLY, .now_ns = 2, .reply = &uploaded};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &event, &actions), LS_OK); /* both are ready: it looks for the newest version */
    CU_ASSERT_EQUAL(p.ready_count, 2);
    answer(&p, &actions, LS_LIST, NULL, 0);
    CU_ASSERT_EQUAL(actions.item[0].kind, LS_ACTION_PUBLISHED);
    CU_ASSERT_EQUAL(actions.item[0].published.count, 1);
    CU_ASSERT_EQUAL(actions.item[0].published.version, 2);
    CU_ASSERT_EQUAL(actions.item[0].published.source_end, 23);
    CU_ASSERT_EQUAL(p.ready_count, 1);
    CU_ASSERT_EQUAL(p.pending_bytes, 500);
    CU_ASSERT_EQUAL(p.source_begin, 23);
    ls_producer_clear(&p);
    ls_manifest_release(newer);
    ls_manifest_release(manifest);
}

LS_SUITE(helping, {"the read tells who was helped, once", test_helped_before_the_reply},
          {"the name of version 2 tells what an entry needs", test_told_name},
         {"an advanced row keeps its epoch and its commit", test_advance_leaves_epoch_and_commit},
         {"a helper takes what goes on, of the epoch that is", test_takes_what_goes_on})
