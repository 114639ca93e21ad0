/* test_producer.c - the producer machine, one scripted world a test: joining, losing, doubt in all its forms, fencing. */
#include "tests/lake.h"
#include "tests/suite.h"

static ls_random stream(uint64_t entity)
{
    return ls_random_open(1, 0, LS_RANDOM_TEST, entity);
}

static ls_protocol protocol_with(ls_layout layout, ls_discovery discovery)
{
    ls_protocol protocol = ls_protocol_default();
    protocol.layout = layout;
    protocol.discovery = discovery;
    protocol.decider = lake_immediate(NULL);
    return protocol;
}

static void start(lake *l, ls_producer *p, const ls_protocol *protocol, uint64_t id, uint64_t incarnation)
{
    ls_producer_init(p, protocol, id, incarnation, stream(incarnation));
    lake_event(l, p, LS_EVENT_START);
}

/* Fires the timer at the time the machine asked for. */
static void wake(lake *l, ls_producer *p)
{
    CU_ASSERT_NOT_EQUAL_FATAL(p->wake_ns, LS_NEVER_NS);
    l->now_ns = p->wake_ns;
    lake_event(l, p, LS_EVENT_TIMER);
}

static void test_join_publish_close(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 7, 70);
    CU_ASSERT_EQUAL(l.joined, 1);
    CU_ASSERT_EQUAL(l.joined_offset, 0);
    CU_ASSERT_EQUAL(l.newest, 1);
    CU_ASSERT_EQUAL(p.epoch, 1);
    lake_batch(&l, &p, 1000, 3);
    lake_batch(&l, &p, 2000, 4);
    CU_ASSERT_EQUAL(l.published_batches, 2);
    CU_ASSERT_EQUAL(l.published_source_end, 7);
    CU_ASSERT_EQUAL(l.newest, 3);
    const ls_manifest *head = l.version[3];
    ls_entry entry;
    CU_ASSERT_TRUE(ls_manifest_entry(head, 1, &entry));
    CU_ASSERT_EQUAL(entry.source_begin, 3);
    CU_ASSERT_EQUAL(entry.source_end, 7);
    CU_ASSERT_EQUAL(entry.sequence, 1);
    CU_ASSERT_EQUAL(entry.size_bytes, 2000);
    lake_event(&l, &p, LS_EVENT_STOP);
    CU_ASSERT_EQUAL(l.finished, 1);
    CU_ASSERT_TRUE(ls_manifest_row(l.version[4], 0)->closed);
    CU_ASSERT_EQUAL(ls_manifest_open_row_count(l.version[4]), 0);
    CU_ASSERT_FALSE(ls_producer_has_room(&p));
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* B's commits pass A by; A's next attempt reads and rebases, and never blocks B's rows or steps. */
static void test_race_rebases(void)
{
    lake l = {0};
    ls_producer a, b;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_PROBE);
    start(&l, &a, &protocol, 1, 10);
    start(&l, &b, &protocol, 2, 20);
    /* A reads, and before its put arrives B commits. */
    ls_actions actions;
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 10, .batch_source_count = 1, .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &batch, &actions), LS_OK);
    ls_store_reply reply = {.status = LS_REPLY_OK, .tag = actions.item[0].request.tag};
    ls_event event = {.kind = LS_EVENT_REPLY, .reply = &reply};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &event, &actions), LS_OK); /* uploaded: asks for version 3 */
    CU_ASSERT_EQUAL(actions.item[0].request.operation, LS_HEAD);
    CU_ASSERT_EQUAL(actions.item[0].request.key.number, 2);
    lake_batch(&l, &b, 20, 1); /* B is ahead: it takes version 3 */
    CU_ASSERT_EQUAL(l.newest, 3);
    l.published_source_end = 0;
    lake_settle(&l, &a, &actions);
    CU_ASSERT_EQUAL(l.newest, 4);
    CU_ASSERT_EQUAL(l.losses, 0);
    ls_entry entry;
    CU_ASSERT_TRUE(ls_manifest_entry(l.version[4], 1, &entry));
    CU_ASSERT_EQUAL(entry.producer, 1);
    CU_ASSERT_TRUE(ls_manifest_entry(l.version[4], 0, &entry));
    CU_ASSERT_EQUAL(entry.producer, 2);
    ls_producer_clear(&a);
    ls_producer_clear(&b);
    lake_clear(&l);
}

/* The reply is lost, the effect is there: one read settles it, nothing is committed twice. */
static void test_unknown_outcome_that_landed(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_GALLOP);
    start(&l, &p, &protocol, 1, 10);
    l.bend = true;
    l.bend_effect = true;
    l.bend_status = LS_REPLY_UNKNOWN_OUTCOME;
    lake_batch(&l, &p, 10, 5);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    CU_ASSERT_EQUAL(l.newest, 2);
    CU_ASSERT_EQUAL(l.wins, 2);
    CU_ASSERT_EQUAL(l.ambiguous, 1);
    CU_ASSERT_EQUAL(p.doubtful_version, 0);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* 409 under race, and another has the version: lost, settled by reading. */
static void test_conflict_settled_as_lost(void)
{
    lake l = {0};
    ls_producer a, b;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &a, &protocol, 1, 10);
    start(&l, &b, &protocol, 2, 20);
    l.bend = true;
    l.bend_effect = false;
    l.bend_status = LS_REPLY_CONFLICT_RETRY;
    ls_actions actions;
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 10, .batch_source_count = 1, .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &batch, &actions), LS_OK);
    ls_event event = {.kind = LS_EVENT_REPLY};
    ls_store_reply reply = {.status = LS_REPLY_OK};
    ls_store_request put = {0};
    while (put.operation != LS_PUT || put.key.kind != LS_OBJECT_MANIFEST) { /* up to the put, by hand */
        reply.tag = actions.item[0].request.tag;
        event.reply = &reply;
        reply.list_count = 0;
        if (actions.item[0].request.operation == LS_LIST && a.known != l.version[2]) {
            reply.list_count = 1;
            reply.list_last = ls_key_manifest(2);
        }
        if (actions.item[0].request.operation == LS_GET) reply.manifest = ls_manifest_retain(l.version[2]);
        CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &event, &actions), LS_OK);
        reply.manifest = NULL;
        put = actions.item[0].request;
    }
    l.bend = false;
    lake_batch(&l, &b, 10, 1); /* B takes version 3 */
    l.published_source_end = 0;
    reply = (ls_store_reply){.status = LS_REPLY_CONFLICT_RETRY, .tag = put.tag};
    ls_manifest_release(put.manifest);
    event.reply = &reply;
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &event, &actions), LS_OK);
    CU_ASSERT_TRUE(a.settling);
    lake_settle(&l, &a, &actions);
    CU_ASSERT_EQUAL(l.losses, 1);
    CU_ASSERT_EQUAL(l.ambiguous, 1);
    wake(&l, &a);
    CU_ASSERT_EQUAL(l.published_batches, 2);
    CU_ASSERT_EQUAL(l.newest, 4);
    ls_producer_clear(&a);
    ls_producer_clear(&b);
    lake_clear(&l);
}

/* The put lingers in the network: looked up, it is not there; more batches come; then it lands before our next try. */
static void test_lingering_put_lands_first(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    l.bend = true;
    l.bend_effect = false;
    l.bend_status = LS_REPLY_UNKNOWN_OUTCOME;
    lake_batch(&l, &p, 10, 1);
    CU_ASSERT_EQUAL(l.aborted, 1);
    CU_ASSERT_EQUAL(l.published_batches, 0);
    CU_ASSERT_EQUAL(p.doubtful_version, 2);
    /* the next attempt has read (version 1) and is about to put version 2 with two batches when the old put lands */
    ls_actions actions;
    l.now_ns = p.wake_ns;
    ls_event timer = {.kind = LS_EVENT_TIMER, .now_ns = l.now_ns};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &timer, &actions), LS_OK);
    ls_store_reply nothing_newer = {.status = LS_REPLY_OK, .tag = actions.item[0].request.tag};
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = l.now_ns, .reply = &nothing_newer};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&p, &event, &actions), LS_OK);
    CU_ASSERT_EQUAL(actions.item[0].request.operation, LS_PUT);
    CU_ASSERT_TRUE(lake_land(&l));
    lake_settle(&l, &p, &actions); /* 412 on a doubtful name: read at once, the older attempt is ours */
    CU_ASSERT_EQUAL(l.published_batches, 1);
    CU_ASSERT_EQUAL(l.newest, 2);
    lake_batch(&l, &p, 10, 1);
    if (p.wake_ns != LS_NEVER_NS) wake(&l, &p);
    CU_ASSERT_EQUAL(l.published_batches, 2);
    CU_ASSERT_EQUAL(l.newest, 3);
    CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[3]), 2);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* A put that lingers and lands after we made that version ourselves changes nothing. */
static void test_lingering_put_lands_late(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_PROBE);
    start(&l, &p, &protocol, 1, 10);
    l.bend = true;
    l.bend_status = LS_REPLY_UNKNOWN_OUTCOME;
    lake_batch(&l, &p, 10, 1);
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    CU_ASSERT_FALSE(lake_land(&l));
    CU_ASSERT_EQUAL(l.newest, 2);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* 412 that is our own object, put twice by a transport: reported lost, proved by the next read, acknowledged once. */
static void test_exists_that_is_our_own(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    l.bend = true;
    l.bend_effect = true;
    l.bend_status = LS_REPLY_EXISTS;
    lake_batch(&l, &p, 10, 1);
    CU_ASSERT_EQUAL(l.losses, 1);
    CU_ASSERT_EQUAL(l.published_batches, 0);
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.proved, 1);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    CU_ASSERT_EQUAL(l.newest, 2);
    CU_ASSERT_EQUAL(p.wake_ns, LS_NEVER_NS);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* A restart resumes at the row's offset under the next epoch; the zombie, meanwhile mid-attempt, is fenced. */
static void test_restart_fences_zombie(void)
{
    lake l = {0};
    ls_producer old, restarted;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_GALLOP);
    start(&l, &old, &protocol, 1, 10);
    lake_batch(&l, &old, 10, 5);
    start(&l, &restarted, &protocol, 1, 11);
    CU_ASSERT_EQUAL(l.joined, 2);
    CU_ASSERT_EQUAL(l.joined_offset, 5);
    CU_ASSERT_EQUAL(restarted.epoch, 2);
    CU_ASSERT_EQUAL(ls_manifest_row_count(l.version[l.newest]), 1);
    lake_batch(&l, &old, 10, 5);
    CU_ASSERT_EQUAL(l.fenced, 1);
    CU_ASSERT_EQUAL(old.end, LS_PRODUCER_FENCED);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    lake_batch(&l, &restarted, 10, 5);
    CU_ASSERT_EQUAL(l.published_source_end, 10);
    CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[l.newest]), 2);
    ls_producer_clear(&old);
    ls_producer_clear(&restarted);
    lake_clear(&l);
}

/* Two restarts read the same row and both want epoch 2: the second to commit takes epoch 3, the first is fenced. */
static void test_two_restarts_one_epoch_each(void)
{
    lake l = {0};
    ls_producer first, second;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_PROBE);
    ls_producer old;
    start(&l, &old, &protocol, 1, 10);
    ls_producer_clear(&old);
    ls_actions actions;
    ls_producer_init(&first, &protocol, 1, 11, stream(11));
    ls_event event = {.kind = LS_EVENT_START};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&first, &event, &actions), LS_OK); /* first listed, nothing more */
    start(&l, &second, &protocol, 1, 12);
    CU_ASSERT_EQUAL(second.epoch, 2);
    lake_settle(&l, &first, &actions);
    CU_ASSERT_EQUAL(first.epoch, 3);
    lake_batch(&l, &second, 10, 1);
    CU_ASSERT_EQUAL(l.fenced, 1);
    CU_ASSERT_EQUAL(l.data_puts, 1);
    lake_batch(&l, &first, 10, 1);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    ls_producer_clear(&first);
    ls_producer_clear(&second);
    lake_clear(&l);
}

/* The join commit itself in doubt: it landed, so the epoch is owned and no second bump happens. */
static void test_join_in_doubt(void)
{
    lake l = {.bend = true, .bend_effect = true, .bend_status = LS_REPLY_UNKNOWN_OUTCOME};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    CU_ASSERT_EQUAL(l.joined, 1);
    CU_ASSERT_EQUAL(l.newest, 1);
    CU_ASSERT_EQUAL(p.epoch, 1);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* From version 3 to version 20. Gallop asks 4 6 10 18 34 | 26 22 20 21; probe asks 4..21; list asks once. */
static void test_discovery_costs(void)
{
    static const struct { ls_discovery discovery; uint64_t heads, lists; } want[] = {
        {LS_DISCOVERY_GALLOP, 9, 0}, {LS_DISCOVERY_PROBE, 18, 0}, {LS_DISCOVERY_LIST, 0, 1}};
    for (int i = 0; i < 3; i++) {
        lake l = {0};
        ls_producer p, other;
        ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, want[i].discovery);
        start(&l, &other, &protocol, 2, 20);
        lake_batch(&l, &other, 1, 1);
        start(&l, &p, &protocol, 1, 10);
        CU_ASSERT_EQUAL(l.newest, 3);
        while (l.newest < 20) lake_batch(&l, &other, 1, 1);
        l.heads = l.lists = l.gets = 0;
        l.published_source_end = 0;
        lake_batch(&l, &p, 1, 1);
        CU_ASSERT_EQUAL(l.newest, 21);
        CU_ASSERT_EQUAL(l.heads, want[i].heads);
        CU_ASSERT_EQUAL(l.lists, want[i].lists);
        CU_ASSERT_EQUAL(l.gets, 1);
        ls_producer_clear(&p);
        ls_producer_clear(&other);
        lake_clear(&l);
    }
}

/* A newcomer to a lake of 20 versions: one list of one name, then a gallop from version 1: 2 4 8 16 32 | 24 20 22 21. */
static void test_cold_search(void)
{
    lake l = {0};
    ls_producer p, other;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_LIST);
    start(&l, &other, &protocol, 2, 20);
    while (l.newest < 20) lake_batch(&l, &other, 1, 1);
    l.heads = l.lists = l.gets = 0;
    start(&l, &p, &protocol, 1, 10);
    CU_ASSERT_EQUAL(l.newest, 21);
    CU_ASSERT_EQUAL(l.lists, 1);
    CU_ASSERT_EQUAL(l.heads, 9);
    CU_ASSERT_EQUAL(l.gets, 1);
    CU_ASSERT_EQUAL(l.last_range_bytes, 0);
    ls_producer_clear(&p);
    ls_producer_clear(&other);
    lake_clear(&l);
}

/* Tail reads: a guess that suffices, and one that does not (one version brought 100 entries). */
static void test_tail_reads(void)
{
    lake l = {0};
    ls_producer p, other;
    uint32_t limit = 0;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_LIST);
    protocol.decider = lake_immediate(&limit);
    protocol.backlog_limit = 1000;
    start(&l, &p, &protocol, 1, 10);
    start(&l, &other, &protocol, 2, 20);
    l.gets = 0;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.gets, 1);
    CU_ASSERT_EQUAL(l.last_range_bytes, 96 + 48 * (1 + 1) + 48 * (4 * 1 + 16));
    ls_actions actions;
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 1, .batch_source_count = 1, .batch_footer_bytes = 64};
    protocol.instantaneous_uploads = true;
    other.phase = LS_PRODUCER_READING; /* hold the policy back while the batches gather */
    for (int i = 0; i < 100; i++) CU_ASSERT_EQUAL_FATAL(ls_producer_step(&other, &batch, &actions), LS_OK);
    other.phase = LS_PRODUCER_IDLE;
    lake_event(&l, &other, LS_EVENT_GO);
    CU_ASSERT_EQUAL(l.published_batches, 101);
    l.gets = 0;
    l.published_source_end = 1;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.gets, 2);
    CU_ASSERT_EQUAL(l.last_range_bytes, 96 + 48 * 2 + 48 * 100);
    CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[l.newest]), 102);
    ls_producer_clear(&p);
    ls_producer_clear(&other);
    lake_clear(&l);
}

/* A decider that looks, and lets an attempt go on only when the newest version is at least *parameters. */
static void wait_for_version(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                             ls_commit_decision *decision)
{
    (void)state;
    (void)random;
    bool waits = view->moment == LS_MOMENT_LOOK && view->newest_version < *(const uint64_t *)parameters;
    decision->try_at_ns = view->now_ns + (waits ? 1000 : 0);
}

/* An attempt called off at the look costs one list: nothing is read, put or counted; and it comes again when it said. */
static void test_attempt_called_off(void)
{
    lake l = {0};
    ls_producer p, other;
    uint64_t wanted = 3;
    ls_protocol patient = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    ls_protocol hasty = patient;
    patient.decider = (ls_decider){.decide = wait_for_version, .parameters = &wanted, .looks = true};
    start(&l, &p, &patient, 1, 10); /* joining asks nobody */
    start(&l, &other, &hasty, 2, 20);
    CU_ASSERT_EQUAL(l.newest, 2);
    l.lists = l.gets = l.puts = 0;
    uint64_t attempts = p.attempts;
    lake_batch(&l, &p, 1, 2);
    CU_ASSERT_EQUAL(l.lists, 1);
    CU_ASSERT_EQUAL(l.gets + l.puts, 0);
    CU_ASSERT_EQUAL(p.attempts, attempts);
    CU_ASSERT_EQUAL(p.phase, LS_PRODUCER_IDLE);
    CU_ASSERT_EQUAL(p.wake_ns, l.now_ns + 1000);
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.lists, 2);
    CU_ASSERT_EQUAL(l.newest, 2);
    lake_batch(&l, &other, 1, 1);
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.newest, 4);
    CU_ASSERT_EQUAL(l.published_batches, 2);
    ls_producer_clear(&p);
    ls_producer_clear(&other);
    lake_clear(&l);
}

static void test_batch_limit(void)
{
    lake l = {0};
    ls_producer p;
    uint32_t limit = 2;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    protocol.decider = lake_immediate(&limit);
    start(&l, &p, &protocol, 1, 10);
    l.data_status = LS_REPLY_UNAVAILABLE;
    for (int i = 0; i < 5; i++) lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.newest, 1);
    l.data_status = LS_REPLY_OK;
    for (int i = 0; i < 20 && p.wake_ns != LS_NEVER_NS; i++) wake(&l, &p);
    CU_ASSERT_EQUAL(l.published_batches, 5);
    CU_ASSERT(l.newest >= 4); /* ceil(5 / 2) commits at the least, plus the join */
    for (uint64_t v = 2; v <= l.newest; v++) {
        CU_ASSERT(ls_manifest_end_step(l.version[v]) - ls_manifest_end_step(l.version[v - 1]) <= 2);
    }
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* An upload that fails is repeated; one whose reply was lost is recognised by its name; order is kept throughout. */
static void test_upload_failures(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    l.data_status = LS_REPLY_UNKNOWN_OUTCOME;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.published_batches, 0);
    CU_ASSERT(p.wake_ns >= l.now_ns + 50000000 && p.wake_ns <= l.now_ns + 150000000);
    l.data_status = LS_REPLY_EXISTS;
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.data_puts, 2);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    l.data_status = LS_REPLY_DENIED;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.failed, 1);
    CU_ASSERT_FALSE(ls_producer_has_room(&p));
    ls_producer_clear(&p);
    lake_clear(&l);
}

static void test_backlog_is_bounded(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    protocol.backlog_limit = 3;
    ls_actions actions;
    ls_event batch = {.kind = LS_EVENT_BATCH, .batch_bytes = 1, .batch_source_count = 1};
    ls_producer_init(&p, &protocol, 1, 10, stream(1));
    CU_ASSERT_EQUAL(ls_producer_step(&p, &batch, &actions), LS_ERROR_INVALID); /* not joined */
    lake_event(&l, &p, LS_EVENT_START);
    l.data_status = LS_REPLY_UNAVAILABLE;
    for (int i = 0; i < 3; i++) lake_batch(&l, &p, 1, 1);
    CU_ASSERT_FALSE(ls_producer_has_room(&p));
    CU_ASSERT_EQUAL(ls_producer_step(&p, &batch, &actions), LS_ERROR_INVALID);
    uint64_t begin, end;
    CU_ASSERT_TRUE(ls_producer_source_range(&p, 2, &begin, &end));
    CU_ASSERT_EQUAL(begin, 2);
    CU_ASSERT_EQUAL(end, 3);
    CU_ASSERT_FALSE(ls_producer_source_range(&p, 3, &begin, &end));
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* A copy goes its own way: what the original does next is not seen by it. */
static void test_copy_branches(void)
{
    lake l = {0};
    ls_producer p, twin;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    l.data_status = LS_REPLY_UNAVAILABLE;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL_FATAL(ls_producer_copy(&p, &twin), LS_OK);
    l.data_status = LS_REPLY_OK;
    wake(&l, &p);
    CU_ASSERT_EQUAL(p.ring_count, 0);
    CU_ASSERT_EQUAL(twin.ring_count, 1);
    l.published_source_end = 0;
    wake(&l, &twin); /* the twin reads and finds its batch committed by the original: same incarnation */
    CU_ASSERT_EQUAL(twin.ring_count, 0);
    CU_ASSERT_EQUAL(l.newest, 2);
    ls_producer_clear(&p);
    ls_producer_clear(&twin);
    lake_clear(&l);
}

static void test_denied_and_read_failures(void)
{
    lake l = {0};
    ls_producer p;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&l, &p, &protocol, 1, 10);
    l.bend = l.bend_reads = true;
    l.bend_status = LS_REPLY_UNAVAILABLE;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.aborted, 1);
    wake(&l, &p);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    l.bend = true;
    l.bend_status = LS_REPLY_DENIED;
    lake_batch(&l, &p, 1, 1);
    CU_ASSERT_EQUAL(l.failed, 1);
    ls_producer_clear(&p);
    lake_clear(&l);
}

/* Steps a machine with a batch up to its conditional put, which stays in the test's hand. */
static ls_store_request up_to_the_put(lake *l, ls_producer *p)
{
    ls_actions actions;
    ls_event batch = {.kind = LS_EVENT_BATCH, .now_ns = l->now_ns, .batch_bytes = 10, .batch_source_count = 1,
                      .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &batch, &actions), LS_OK);
    while (actions.item[0].request.operation != LS_PUT || actions.item[0].request.key.kind != LS_OBJECT_MANIFEST) {
        ls_store_reply reply = {.status = LS_REPLY_OK, .tag = actions.item[0].request.tag};
        ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = l->now_ns, .reply = &reply};
        CU_ASSERT_EQUAL_FATAL(ls_producer_step(p, &event, &actions), LS_OK); /* uploaded; nothing newer listed */
    }
    return actions.item[0].request;
}

/* The sleeper: A stalls before its put of version 3; B commits 3 to 6, versions below 6 are reclaimed; A's put then wins a name
 * that was decided long ago. With the floor check it is no commit, and A's batch is published once, in version 7. */
static void test_sleeper_wins_a_void_name(void)
{
    static const ls_discovery discoveries[] = {LS_DISCOVERY_LIST, LS_DISCOVERY_PROBE, LS_DISCOVERY_GALLOP};
    for (int i = 0; i < 3; i++) {
        lake l = {0};
        ls_producer a, b;
        ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
        protocol.floor_check = true;
        start(&l, &a, &protocol, 1, 10);
        ls_manifest_release(a.known);
        start(&l, &b, &protocol, 2, 20);
        a.known = ls_manifest_retain(l.version[2]);
        ls_store_request put = up_to_the_put(&l, &a);
        CU_ASSERT_EQUAL(put.key.number, 3);
        protocol.discovery = discoveries[i];
        for (int k = 0; k < 4; k++) lake_batch(&l, &b, 10, 1);
        CU_ASSERT_EQUAL(l.newest, 6);
        lake_reclaim_below(&l, 6);
        l.published_batches = l.published_source_end = 0;
        ls_actions actions = {.count = 1, .item = {{.kind = LS_ACTION_REQUEST, .request = put}}};
        lake_settle(&l, &a, &actions);
        CU_ASSERT_EQUAL(l.ghost_version, 3);
        CU_ASSERT_EQUAL(l.published_batches, 0);
        CU_ASSERT_EQUAL(l.losses, 1);
        wake(&l, &a);
        CU_ASSERT_EQUAL(l.published_batches, 1);
        CU_ASSERT_EQUAL(l.newest, 7);
        CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[7]), 5);
        ls_producer_clear(&a);
        ls_producer_clear(&b);
        lake_clear(&l);
    }
}

/* The same, and the reply to the void put is lost: the read that settles finds the ghost, with A's own commit in its own row. */
static void test_sleeper_reads_its_own_ghost(void)
{
    lake l = {0};
    ls_producer a, b;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_PROBE);
    protocol.floor_check = true;
    start(&l, &a, &protocol, 1, 10);
    start(&l, &b, &protocol, 2, 20);
    l.bend = true; /* A's first try of version 3 stays in the network */
    l.bend_status = LS_REPLY_UNKNOWN_OUTCOME;
    lake_batch(&l, &a, 10, 1);
    CU_ASSERT_EQUAL(a.doubtful_version, 3);
    for (int k = 0; k < 4; k++) lake_batch(&l, &b, 10, 1);
    lake_reclaim_below(&l, 6);
    CU_ASSERT_TRUE(lake_land(&l)); /* now it lands, on a name that has been deleted */
    l.published_batches = l.published_source_end = 0;
    wake(&l, &a);
    CU_ASSERT_EQUAL(l.published_batches, 1);
    CU_ASSERT_EQUAL(l.newest, 7);
    CU_ASSERT_EQUAL(ls_manifest_row(l.version[7], 0)->next_source_offset, 1);
    CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[7]), 5);
    ls_producer_clear(&a);
    ls_producer_clear(&b);
    lake_clear(&l);
}

static const ls_store_request *only_request(const ls_actions *actions)
{
    const ls_store_request *found = NULL;
    for (uint32_t i = 0; i < actions->count; i++) {
        if (actions->item[i].kind == LS_ACTION_REQUEST) found = &actions->item[i].request;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return found;
}

/* B commits, and A, who asks for the tail that it lacks, is told that it does not continue what A knows. Where versions are deleted, what A
 * knows may have been a late winner's: A forgets it and reads the whole, once; a whole that cannot be read is the end. */
static void check_tail_that_does_not_continue(bool whole_is_sound)
{
    lake l = {0};
    ls_producer a, b;
    ls_actions actions;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_PROBE);
    protocol.floor_check = true;
    protocol.instantaneous_uploads = true;
    start(&l, &a, &protocol, 1, 10);
    start(&l, &b, &protocol, 2, 20);
    lake_batch(&l, &b, 100, 1);
    ls_event event = {.kind = LS_EVENT_BATCH, .batch_bytes = 100, .batch_source_count = 1, .batch_footer_bytes = 64};
    CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &event, &actions), LS_OK);
    uint32_t refused = 0;
    for (uint32_t moves = 0; l.published_batches < 2 && l.failed == 0 && moves < 50; moves++) {
        ls_store_request request = *only_request(&actions);
        ls_store_reply reply = {.status = LS_REPLY_INVALID, .tag = request.tag};
        bool is_whole = request.operation == LS_GET && request.range == LS_RANGE_WHOLE;
        bool is_tail = request.operation == LS_GET && request.range == LS_RANGE_SUFFIX;
        if (is_tail || (is_whole && !whole_is_sound)) refused++;
        else lake_answer(&l, &request, &reply);
        event = (ls_event){.kind = LS_EVENT_REPLY, .reply = &reply};
        CU_ASSERT_EQUAL_FATAL(ls_producer_step(&a, &event, &actions), LS_OK);
        for (uint32_t i = 0; i < actions.count; i++) {
            l.published_batches += actions.item[i].kind == LS_ACTION_PUBLISHED;
            l.failed += actions.item[i].kind == LS_ACTION_FAILED;
        }
    }
    CU_ASSERT_EQUAL(refused, whole_is_sound ? 1 : 2);
    CU_ASSERT_EQUAL(l.published_batches, whole_is_sound ? 2 : 1);
    CU_ASSERT_EQUAL(l.failed, whole_is_sound ? 0 : 1);
    ls_producer_clear(&a);
    ls_producer_clear(&b);
    lake_clear(&l);
}

static void test_tail_that_does_not_continue(void)
{
    check_tail_that_does_not_continue(true);
    check_tail_that_does_not_continue(false);
}

/* A newcomer to a reclaimed lake starts from the floor, whatever ghosts lie below it. */
static void test_newcomer_starts_from_the_floor(void)
{
    lake l = {0};
    ls_producer p, other;
    ls_protocol protocol = protocol_with(LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    protocol.floor_check = true;
    start(&l, &other, &protocol, 2, 20);
    while (l.newest < 9) lake_batch(&l, &other, 1, 1);
    const ls_manifest *old = ls_manifest_retain(l.version[2]);
    lake_reclaim_below(&l, 8);
    l.ghost = old;
    l.ghost_version = 2;
    start(&l, &p, &protocol, 1, 10);
    CU_ASSERT_EQUAL(l.joined, 2);
    CU_ASSERT_EQUAL(l.newest, 10);
    CU_ASSERT_EQUAL(ls_manifest_end_step(l.version[10]), 8);
    ls_producer_clear(&p);
    ls_producer_clear(&other);
    lake_clear(&l);
}

LS_SUITE(producer, {"join, publish, close", test_join_publish_close}, {"race rebases", test_race_rebases},
         {"unknown outcome that landed", test_unknown_outcome_that_landed},
         {"conflict settled as lost", test_conflict_settled_as_lost},
         {"lingering put lands first", test_lingering_put_lands_first},
         {"lingering put lands late", test_lingering_put_lands_late},
         {"412 that is our own", test_exists_that_is_our_own}, {"restart fences the zombie", test_restart_fences_zombie},
         {"two restarts, one epoch each", test_two_restarts_one_epoch_each}, {"join in doubt", test_join_in_doubt},
         {"discovery costs", test_discovery_costs}, {"cold search", test_cold_search}, {"tail reads", test_tail_reads},
         {"batch limit", test_batch_limit}, {"an attempt called off", test_attempt_called_off}, {"upload failures", test_upload_failures},
         {"backlog is bounded", test_backlog_is_bounded}, {"copy branches", test_copy_branches},
         {"denied and read failures", test_denied_and_read_failures},
         {"a sleeper wins a void name", test_sleeper_wins_a_void_name},
         {"a sleeper reads its own ghost", test_sleeper_reads_its_own_ghost},
         {"a tail that does not continue", test_tail_that_does_not_continue},
         {"a newcomer starts from the floor", test_newcomer_starts_from_the_floor})
