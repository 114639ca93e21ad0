/* test_consumer.c - the consumer machine, one scripted world a test. Requests wait in the test's hand until it answers
 * them, in whatever order it likes; so order, window and patience of the machine show.
 */
#include "manifest/consumer.h"

#include "tests/lake.h"
#include "tests/suite.h"

#include <string.h>

#define POLL_NS      INT64_C(500)
#define PENDING_MAX  32
#define STEPS_MAX    64
#define FOOTER_BYTES 104u

typedef struct reader {
    lake lake;
    ls_protocol protocol;
    ls_consumer machine;
    ls_store_request pending[PENDING_MAX];
    uint32_t pending_count;
    ls_step_report steps[STEPS_MAX];
    uint32_t step_count;
    uint32_t finished, failed, behind;
    int64_t wake_ns;
} reader;

/* --- the lake's content
 * --------------------------------------------------------------------------------------------------- */

static const ls_manifest *newest(const reader *r)
{
    return r->lake.newest == 0 ? NULL : r->lake.version[r->lake.newest];
}

/* A version with `count` further batches of producer 1. */
static ls_manifest *child_of(const ls_manifest *parent, uint32_t count, uint64_t first_sequence)
{
    ls_entry entries[40];
    uint64_t begin = ls_manifest_row_count(parent) == 0 ? 0 : ls_manifest_row(parent, 0)->next_source_offset;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (ls_entry){.producer = 1,
                                .epoch = 1,
                                .sequence = first_sequence + i,
                                .source_begin = begin + i,
                                .source_end = begin + i + 1,
                                .size_bytes = 5000,
                                .footer_bytes = FOOTER_BYTES};
    }
    ls_commit commit = {.id = {9, ls_manifest_version(parent) + 1},
                        .slot = ls_manifest_row_count(parent) == 0 ? LS_NO_SLOT : 0,
                        .entries = entries,
                        .entry_count = count,
                        .row = {.producer = 1, .epoch = 1, .next_source_offset = begin + count}};
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(parent, &commit, &child), LS_OK);
    return child;
}

static void append(reader *r, uint32_t count)
{
    const ls_manifest *parent = newest(r) != NULL ? ls_manifest_retain(newest(r)) : ls_manifest_new_empty();
    CU_ASSERT_PTR_NOT_NULL_FATAL(parent);
    r->lake.version[r->lake.newest + 1] = child_of(parent, count, ls_manifest_end_step(parent));
    r->lake.newest++;
    ls_manifest_release(parent);
}

static void trim(reader *r, uint64_t step)
{
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(newest(r), (ls_commit_id){8, 1}, step, step, &child), LS_OK);
    r->lake.version[++r->lake.newest] = child;
}

/* --- the machine in hand
 * --------------------------------------------------------------------------------------------------- */

static void note(reader *r, const ls_action *action)
{
    switch (action->kind) {
    case LS_ACTION_REQUEST:
        CU_ASSERT_FATAL(r->pending_count < PENDING_MAX);
        r->pending[r->pending_count++] = action->request;
        break;
    case LS_ACTION_STEP:
        CU_ASSERT_FATAL(r->step_count < STEPS_MAX);
        r->steps[r->step_count++] = action->step;
        break;
    case LS_ACTION_WAKE: r->wake_ns = action->wake_ns; break;
    case LS_ACTION_FINISHED: r->finished++; break;
    case LS_ACTION_FAILED: r->failed++; break;
    case LS_ACTION_BEHIND: r->behind++; break;
    case LS_ACTION_CHECKPOINTED:
    case LS_ACTION_GAVE_UP:
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_PUBLISHED:
    case LS_ACTION_ATTEMPT:
    case LS_ACTION_JOINED:
    case LS_ACTION_FENCED: CU_FAIL("a consumer does no such thing"); break;
    }
}

static void feed(reader *r, const ls_event *event)
{
    ls_actions actions;
    CU_ASSERT_EQUAL_FATAL(ls_consumer_step(&r->machine, event, &actions), LS_OK);
    CU_ASSERT(actions.count <= LS_ACTIONS_MAX);
    for (uint32_t i = 0; i < actions.count; i++) note(r, &actions.item[i]);
}

static void event(reader *r, ls_event_kind kind) { feed(r, &(ls_event){.kind = kind, .now_ns = r->lake.now_ns}); }

/* Takes a waiting request out of the hand. */
static ls_store_request take(reader *r, uint32_t index)
{
    CU_ASSERT_FATAL(index < r->pending_count);
    ls_store_request request = r->pending[index];
    r->pending_count--;
    memmove(&r->pending[index], &r->pending[index + 1], (r->pending_count - index) * sizeof request);
    return request;
}

static void reply(reader *r, ls_store_reply *answer)
{
    feed(r, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = r->lake.now_ns, .reply = answer});
}

static void answer(reader *r, uint32_t index)
{
    ls_store_request request = take(r, index);
    ls_store_reply answered;
    lake_answer(&r->lake, &request, &answered);
    reply(r, &answered);
}

static void answer_with(reader *r, uint32_t index, ls_reply_status status, int64_t retry_after_ns)
{
    ls_store_request request = take(r, index);
    reply(r, &(ls_store_reply){.status = status, .tag = request.tag, .retry_after_ns = retry_after_ns});
}

/* The time of the machine's wish comes; a wish is good for one timer. */
static void wake(reader *r)
{
    CU_ASSERT_NOT_EQUAL_FATAL(r->wake_ns, LS_NEVER_NS);
    if (r->wake_ns > r->lake.now_ns) r->lake.now_ns = r->wake_ns;
    r->wake_ns = LS_NEVER_NS;
    event(r, LS_EVENT_TIMER);
}

/* Answers oldest first, and wakes for what is due now, until nothing happens any more without time passing. */
static void settle(reader *r)
{
    for (uint32_t rounds = 0; rounds < 1000; rounds++) {
        if (r->pending_count > 0)
            answer(r, 0);
        else if (r->wake_ns <= r->lake.now_ns)
            wake(r);
        else
            return;
    }
    CU_FAIL("the machine never comes to rest");
}

static void init(reader *r, ls_layout layout, ls_discovery discovery)
{
    memset(r, 0, sizeof *r);
    r->protocol = ls_protocol_default();
    r->protocol.layout = layout;
    r->protocol.discovery = discovery;
    r->lake.slice_bytes = 700;
    r->lake.now_ns = 1000;
    r->wake_ns = LS_NEVER_NS;
}

static void start(reader *r, uint32_t window, bool follow, uint64_t first_step)
{
    ls_consumer_config config = {
        .data_rank = 3, .context_rank = 1, .window = window, .follow = follow, .poll_ns = POLL_NS};
    CU_ASSERT_EQUAL_FATAL(ls_consumer_init(&r->machine, &r->protocol, &config, first_step), LS_OK);
    event(r, LS_EVENT_START);
}

static void end(reader *r)
{
    ls_consumer_clear(&r->machine);
    lake_clear(&r->lake);
}

/* From the start to the moment at which the newest manifest has been read; no data request is answered yet. */
static void read_manifest(reader *r)
{
    while (r->pending_count > 0 && r->pending[0].key.kind != LS_OBJECT_DATA) answer(r, 0);
}

static uint64_t asked_sequence(const reader *r, uint32_t index)
{
    CU_ASSERT_FATAL(index < r->pending_count);
    CU_ASSERT_EQUAL(r->pending[index].key.kind, LS_OBJECT_DATA);
    return r->pending[index].key.sequence;
}

/* --- reading ahead
 * --------------------------------------------------------------------------------------------------------- */

static void test_window_and_order(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 10);
    start(&r, 3, false, 0);
    read_manifest(&r);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 3);
    for (uint32_t i = 0; i < 3; i++) CU_ASSERT_EQUAL(asked_sequence(&r, i), i);
    /* Step 2 comes first: footer, then slice. Nothing is handed on, nothing further is fetched. */
    answer(&r, 2);
    CU_ASSERT_EQUAL(asked_sequence(&r, 2), 2);
    answer(&r, 2);
    CU_ASSERT_EQUAL(r.step_count, 0);
    CU_ASSERT_EQUAL(r.pending_count, 2);
    /* Step 0: handed on alone, and step 3 is fetched in its place. */
    answer(&r, 0);
    CU_ASSERT_EQUAL(asked_sequence(&r, 1), 0);
    answer(&r, 1);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 1);
    CU_ASSERT_EQUAL(r.steps[0].step, 0);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 2);
    CU_ASSERT_EQUAL(asked_sequence(&r, 1), 3);
    /* Step 1: handed on with step 2, which waited; two more are fetched. */
    answer(&r, 0);
    CU_ASSERT_EQUAL(asked_sequence(&r, 1), 1);
    answer(&r, 1);
    CU_ASSERT_EQUAL(r.step_count, 3);
    CU_ASSERT_EQUAL(r.pending_count, 3);
    uint32_t most = 0;
    while (r.pending_count > 0) {
        if (r.pending_count > most) most = r.pending_count;
        answer(&r, r.pending_count - 1); /* newest first */
    }
    CU_ASSERT_EQUAL(most, 3);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 10);
    for (uint32_t i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(r.steps[i].step, i);
        CU_ASSERT_EQUAL(r.steps[i].entry.sequence, i);
    }
    CU_ASSERT_EQUAL(r.finished, 1);
    CU_ASSERT_EQUAL(r.lake.data_gets, 20);
    end(&r);
}

/* More than one action list holds: both the asking and the handing on are continued by wakes that are due at once. */
static void test_widest_window(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 20);
    start(&r, LS_CONSUMER_WINDOW_MAX, false, 0);
    read_manifest(&r);
    uint32_t wakes = 0;
    for (; r.wake_ns <= r.lake.now_ns && wakes < 10; wakes++) wake(&r);
    CU_ASSERT_EQUAL(r.pending_count, 16);
    CU_ASSERT(wakes < 5);
    while (r.pending_count > 1) answer(&r, 1); /* all but step 0, slices too */
    CU_ASSERT_EQUAL(r.step_count, 0);
    settle(&r);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 20);
    for (uint32_t i = 0; i < 20; i++) CU_ASSERT_EQUAL(r.steps[i].step, i);
    CU_ASSERT_EQUAL(r.finished, 1);
    CU_ASSERT_EQUAL(r.wake_ns, LS_NEVER_NS);
    end(&r);
}

static void test_window_out_of_range(void)
{
    ls_protocol protocol = ls_protocol_default();
    ls_consumer machine;
    ls_consumer_config config = {.window = 0, .poll_ns = 1};
    CU_ASSERT_EQUAL(ls_consumer_init(&machine, &protocol, &config, 0), LS_ERROR_INVALID);
    config.window = LS_CONSUMER_WINDOW_MAX + 1;
    CU_ASSERT_EQUAL(ls_consumer_init(&machine, &protocol, &config, 0), LS_ERROR_INVALID);
    config.window = 1;
    CU_ASSERT_EQUAL_FATAL(ls_consumer_init(&machine, &protocol, &config, 0), LS_OK);
    ls_actions actions;
    CU_ASSERT_EQUAL(ls_consumer_step(&machine, &(ls_event){.kind = LS_EVENT_BATCH}, &actions), LS_ERROR_INVALID);
    CU_ASSERT_EQUAL(ls_consumer_step(&machine, &(ls_event){.kind = LS_EVENT_GO}, &actions), LS_ERROR_INVALID);
    ls_consumer_clear(&machine);
}

static void test_footer_then_slice(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 8);
    start(&r, 1, false, 7);
    read_manifest(&r);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 1);
    ls_store_request *footer = &r.pending[0];
    CU_ASSERT_EQUAL(footer->operation, LS_GET);
    CU_ASSERT_EQUAL(footer->range, LS_RANGE_SUFFIX);
    CU_ASSERT_EQUAL(footer->range_bytes, FOOTER_BYTES);
    CU_ASSERT_EQUAL(footer->slice.data_rank, 3);
    CU_ASSERT_EQUAL(footer->slice.context_rank, 1);
    CU_ASSERT_EQUAL(footer->slice.bytes, 0);
    r.lake.now_ns = 1400;
    answer(&r, 0);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 1);
    ls_store_request *slice = &r.pending[0];
    CU_ASSERT_EQUAL(slice->range, LS_RANGE_SPAN);
    CU_ASSERT_EQUAL(slice->range_offset, 7031);
    CU_ASSERT_EQUAL(slice->range_bytes, 700);
    CU_ASSERT_EQUAL(slice->slice.crc32c, 7);
    answer(&r, 0);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 1);
    CU_ASSERT_EQUAL(r.steps[0].step, 7);
    CU_ASSERT_EQUAL(r.steps[0].slice.offset, 7031);
    CU_ASSERT_EQUAL(r.steps[0].asked_ns, 1000);
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

static void test_empty_slice(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    r.lake.slice_bytes = 0;
    append(&r, 5);
    start(&r, 2, false, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 5);
    CU_ASSERT_EQUAL(r.steps[4].slice.bytes, 0);
    CU_ASSERT_EQUAL(r.lake.data_gets, 5); /* footers alone */
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

/* --- following
 * -------------------------------------------------------------------------------------------------------------- */

static void test_follow_polls_at_its_time(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 2);
    start(&r, 4, true, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 2);
    CU_ASSERT_EQUAL(r.finished, 0);
    CU_ASSERT_EQUAL(r.wake_ns, 1000 + POLL_NS);
    uint64_t lists = r.lake.lists;
    r.lake.now_ns = 1000 + POLL_NS - 1;
    event(&r, LS_EVENT_TIMER); /* too early, say by another timer: no question, no other wish */
    CU_ASSERT_EQUAL(r.pending_count, 0);
    CU_ASSERT_EQUAL(r.wake_ns, 1000 + POLL_NS);
    for (int i = 1; i <= 5; i++) { /* nothing new: one list a poll */
        wake(&r);
        CU_ASSERT_EQUAL_FATAL(r.pending_count, 1);
        CU_ASSERT_EQUAL(r.wake_ns, LS_NEVER_NS); /* while it looks it needs no timer */
        answer(&r, 0);
        CU_ASSERT_EQUAL(r.pending_count, 0);
        CU_ASSERT_EQUAL(r.wake_ns, 1000 + (i + 1) * POLL_NS);
    }
    CU_ASSERT_EQUAL(r.lake.lists, lists + 5);
    append(&r, 1);
    append(&r, 1);
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 4);
    CU_ASSERT_EQUAL(r.steps[3].step, 3);
    event(&r, LS_EVENT_STOP);
    CU_ASSERT_EQUAL(r.finished, 1);
    CU_ASSERT_EQUAL(r.wake_ns, LS_NEVER_NS);
    end(&r);
}

/* A lake that does not exist yet. */
static void test_follow_from_nothing(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_PROBE);
    start(&r, 4, true, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 0);
    CU_ASSERT_EQUAL(r.wake_ns, 1000 + POLL_NS);
    append(&r, 3);
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 3);
    CU_ASSERT_EQUAL(r.finished, 0);
    end(&r);
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    start(&r, 4, false, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.finished, 1);
    CU_ASSERT_EQUAL(r.lake.lists, 1);
    end(&r);
}

/* A look that is under way when the last known step is handed on may bring more: the end is what it finds. */
static void test_end_waits_for_the_look(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 1);
    start(&r, 1, false, 0);
    read_manifest(&r);
    r.lake.now_ns += 2 * POLL_NS;
    answer(&r, 0); /* the footer; with everything known being fetched, the next look begins beside the slice */
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 2);
    CU_ASSERT_EQUAL(r.pending[1].operation, LS_LIST);
    append(&r, 1);
    answer(&r, 0);
    CU_ASSERT_EQUAL(r.step_count, 1);
    CU_ASSERT_EQUAL(r.finished, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 2);
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

static void test_start_beyond_the_end(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_GALLOP);
    append(&r, 3);
    start(&r, 4, true, 5);
    settle(&r);
    CU_ASSERT_EQUAL(r.lake.data_gets, 0);
    append(&r, 4); /* steps 3 to 6 */
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL_FATAL(r.step_count, 2);
    CU_ASSERT_EQUAL(r.steps[0].step, 5);
    end(&r);
}

static void test_tail_reads(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_LIST);
    append(&r, 3);
    start(&r, 4, true, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.lake.last_range_bytes, 0); /* who knows nothing reads all */
    append(&r, 1);
    wake(&r);
    answer(&r, 0);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 1);
    CU_ASSERT_EQUAL(r.pending[0].range, LS_RANGE_SUFFIX);
    CU_ASSERT_PTR_EQUAL(r.pending[0].known, r.machine.known);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 4);
    /* One version with more entries than a tail is expected to need: a second read, of the length that suffices. */
    append(&r, 30);
    uint64_t gets = r.lake.gets;
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 34);
    CU_ASSERT_EQUAL(r.lake.gets, gets + 2);
    CU_ASSERT_EQUAL(r.lake.last_range_bytes,
                    LS_MANIFEST_FOOTER_BYTES + LS_MANIFEST_ROW_BYTES + 30 * LS_MANIFEST_ENTRY_BYTES);
    end(&r);
}

/* --- reclaimed and void
 * ------------------------------------------------------------------------------------------------------ */

static void test_behind(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 6);
    trim(&r, 3);
    start(&r, 4, true, 2);
    settle(&r);
    CU_ASSERT_EQUAL(r.behind, 1);
    CU_ASSERT_EQUAL(r.step_count, 0);
    CU_ASSERT_EQUAL(r.lake.data_gets, 0);
    CU_ASSERT_EQUAL(r.wake_ns, LS_NEVER_NS);
    event(&r, LS_EVENT_TIMER);
    CU_ASSERT_EQUAL(r.behind, 1);
    end(&r);
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST); /* the first step that is left is no reason to stop */
    append(&r, 6);
    trim(&r, 3);
    start(&r, 4, false, 3);
    settle(&r);
    CU_ASSERT_EQUAL(r.behind, 0);
    CU_ASSERT_EQUAL(r.step_count, 3);
    end(&r);
}

/* The manifest still lists the step, its object has gone meanwhile. */
static void test_behind_by_missing_object(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 2);
    start(&r, 2, true, 0);
    read_manifest(&r);
    answer_with(&r, 0, LS_REPLY_NOT_FOUND, 0);
    CU_ASSERT_EQUAL(r.behind, 1);
    answer(&r, 0); /* what was under way is dropped */
    CU_ASSERT_EQUAL(r.behind, 1);
    CU_ASSERT_EQUAL(r.pending_count, 0);
    end(&r);
}

static bool fetched(const reader *r, uint64_t sequence)
{
    for (uint32_t i = 0; i < r->step_count; i++) {
        if (r->steps[i].entry.sequence == sequence) return true;
    }
    return false;
}

/* The reader sleeps at version 2; meanwhile versions below 6 are reclaimed, and a writer that slept longer creates
 * version 3 again, with a batch that is in nobody's history. */
static void test_void_version_is_ignored(ls_discovery discovery)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, discovery);
    r.protocol.floor_check = true;
    append(&r, 1);
    append(&r, 1);
    start(&r, 4, true, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 2);
    r.lake.ghost = child_of(r.lake.version[2], 1, 999);
    r.lake.ghost_version = 3;
    for (int i = 0; i < 5; i++) append(&r, 1);
    lake_reclaim_below(&r.lake, 6);
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 7);
    CU_ASSERT_FALSE(fetched(&r, 999));
    CU_ASSERT_EQUAL(ls_manifest_version(r.machine.known), 7);
    end(&r);
}

static void test_void_versions(void)
{
    test_void_version_is_ignored(LS_DISCOVERY_PROBE);
    test_void_version_is_ignored(LS_DISCOVERY_GALLOP);
    test_void_version_is_ignored(LS_DISCOVERY_LIST);
}

/* A known version below the floor has no next one: without the check the reader would wait for ever. */
static void test_known_version_below_floor(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL_TAIL, LS_DISCOVERY_PROBE);
    r.protocol.floor_check = true;
    append(&r, 1);
    start(&r, 4, true, 0);
    settle(&r);
    for (int i = 0; i < 4; i++) append(&r, 1);
    lake_reclaim_below(&r.lake, 5);
    wake(&r);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 5);
    CU_ASSERT_EQUAL(ls_manifest_version(r.machine.known), 5);
    end(&r);
}

/* A floor that comes between reading the newest version and confirming it. */
static void test_floor_between_read_and_confirm(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    r.protocol.floor_check = true;
    append(&r, 1);
    append(&r, 1);
    start(&r, 4, false, 0);
    while (r.pending_count > 0 && !r.machine.confirming) answer(&r, 0);
    CU_ASSERT_TRUE_FATAL(r.machine.confirming);
    CU_ASSERT_EQUAL(r.pending[0].key.kind, LS_OBJECT_FLOOR);
    CU_ASSERT_EQUAL(r.pending[0].key.number, 2);
    CU_ASSERT_EQUAL(r.lake.data_gets, 0); /* nothing is drawn from it yet */
    append(&r, 1);
    lake_reclaim_below(&r.lake, 3);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 3);
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

/* --- failures
 * ---------------------------------------------------------------------------------------------------------------- */

static void test_failed_looks_are_tried_again(void)
{
    static const ls_reply_status passing[] = {LS_REPLY_THROTTLED, LS_REPLY_UNAVAILABLE, LS_REPLY_UNKNOWN_OUTCOME};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        reader r;
        init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
        r.protocol.floor_check = true;
        append(&r, 2);
        start(&r, 2, false, 0);
        /* Each question of a look fails once, in a look of its own: floors, versions, the next one, the read, the
         * confirmation. */
        for (uint32_t failing = 0; failing < 5; failing++) {
            for (uint32_t good = 0; good < failing; good++) answer(&r, 0);
            CU_ASSERT_EQUAL_FATAL(r.pending_count, 1);
            answer_with(&r, 0, passing[i], 0);
            CU_ASSERT_EQUAL(r.pending_count, 0);
            CU_ASSERT_EQUAL(r.finished + r.failed, 0); /* not taken for the end of the lake */
            CU_ASSERT_EQUAL(r.wake_ns, r.lake.now_ns + POLL_NS);
            wake(&r);
        }
        settle(&r);
        CU_ASSERT_EQUAL(r.step_count, 2);
        CU_ASSERT_EQUAL(r.finished, 1);
        end(&r);
    }
}

static void test_failed_fetches_are_tried_again(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 3);
    start(&r, 2, false, 0);
    read_manifest(&r);
    answer_with(&r, 0, LS_REPLY_UNKNOWN_OUTCOME, 0); /* the footer of step 0 */
    CU_ASSERT_EQUAL(r.pending_count, 1);
    CU_ASSERT_EQUAL(r.wake_ns, 1000 + POLL_NS);
    ls_store_reply echo = {.status = LS_REPLY_OK,
                           .tag = UINT32_C(0x80000000)}; /* nobody waits for it: not an empty slice */
    reply(&r, &echo);
    CU_ASSERT_EQUAL(r.step_count, 0);
    r.lake.now_ns = 1000 + POLL_NS - 1;
    event(&r, LS_EVENT_TIMER);
    CU_ASSERT_EQUAL(r.pending_count, 1);
    wake(&r);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 2);
    CU_ASSERT_EQUAL(asked_sequence(&r, 1), 0);
    CU_ASSERT_EQUAL(r.pending[1].range, LS_RANGE_SUFFIX);
    answer(&r, 1);
    CU_ASSERT_EQUAL(r.pending[1].range, LS_RANGE_SPAN);
    /* The slice is throttled, and the store says for how long: longer than the poll time. */
    answer_with(&r, 1, LS_REPLY_THROTTLED, 9 * POLL_NS);
    CU_ASSERT_EQUAL(r.wake_ns, r.lake.now_ns + 9 * POLL_NS);
    wake(&r);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 2);
    CU_ASSERT_EQUAL(asked_sequence(&r, 1), 0);
    CU_ASSERT_EQUAL(r.pending[1].range, LS_RANGE_SPAN); /* the footer is not read again */
    CU_ASSERT_EQUAL(r.pending[1].range_offset, 31);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 3);
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

static void test_refusals_stop(void)
{
    static const ls_reply_status final[] = {LS_REPLY_DENIED, LS_REPLY_INVALID};
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t good = 0; good < 5; good++) { /* list, list, read, footer, slice */
            reader r;
            init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
            append(&r, 1);
            start(&r, 1, true, 0);
            for (uint32_t k = 0; k < good; k++) answer(&r, 0);
            answer_with(&r, 0, final[i], 0);
            if (good == 4) CU_ASSERT_EQUAL(r.machine.fetch[0].state, LS_FETCH_SLICE);
            CU_ASSERT_EQUAL(r.failed, 1);
            CU_ASSERT_EQUAL(r.step_count, 0);
            CU_ASSERT_EQUAL(r.pending_count, 0);
            CU_ASSERT_EQUAL(r.wake_ns, LS_NEVER_NS);
            event(&r, LS_EVENT_TIMER);
            event(&r, LS_EVENT_STOP);
            CU_ASSERT_EQUAL(r.failed + r.finished, 1);
            end(&r);
        }
    }
}

/* Answers that nobody waits for any more change nothing, and their manifests are let go. */
static void test_stale_replies(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 1);
    start(&r, 1, true, 0);
    ls_store_reply stale = {.tag = 77, .manifest = ls_manifest_retain(newest(&r))};
    reply(&r, &stale);
    CU_ASSERT_EQUAL(r.step_count, 0);
    CU_ASSERT_EQUAL(r.pending_count, 1);
    read_manifest(&r);
    ls_store_reply wrong_step = {.tag = UINT32_C(0x80000005)};
    reply(&r, &wrong_step);
    CU_ASSERT_EQUAL(r.step_count, 0);
    settle(&r);
    CU_ASSERT_EQUAL(r.step_count, 1);
    ls_store_reply again = {.tag = UINT32_C(0x80000000)}; /* step 0 once more */
    reply(&r, &again);
    CU_ASSERT_EQUAL(r.step_count, 1);
    ls_store_reply late = {.tag = r.machine.tag, .manifest = ls_manifest_retain(newest(&r))};
    r.machine.stopped = true;
    reply(&r, &late);
    end(&r);
}

/* Whole objects: one request a step, no footer first; what the driver found is what is handed on. */
static void test_whole_objects(void)
{
    reader r;
    init(&r, LS_LAYOUT_FULL, LS_DISCOVERY_LIST);
    append(&r, 3);
    ls_consumer_config config = {
        .data_rank = 3, .context_rank = 1, .window = 2, .whole_objects = true, .poll_ns = POLL_NS};
    CU_ASSERT_EQUAL_FATAL(ls_consumer_init(&r.machine, &r.protocol, &config, 0), LS_OK);
    event(&r, LS_EVENT_START);
    read_manifest(&r);
    CU_ASSERT_EQUAL_FATAL(r.pending_count, 2);
    for (uint64_t step = 0; step < 3; step++) {
        ls_store_request request = take(&r, 0);
        CU_ASSERT_EQUAL(request.key.sequence, step);
        CU_ASSERT_EQUAL(request.range, LS_RANGE_WHOLE);
        CU_ASSERT_TRUE(request.for_slice);
        CU_ASSERT_EQUAL(request.slice.data_rank, 3);
        CU_ASSERT_EQUAL(request.slice.context_rank, 1);
        ls_slice found = {.data_rank = 3, .context_rank = 1, .offset = 40 + step, .bytes = step == 1 ? 0 : 9, .crc32c = 5};
        reply(&r, &(ls_store_reply){.status = LS_REPLY_OK, .tag = request.tag, .moved_bytes = 5000, .slice = found});
        CU_ASSERT_EQUAL_FATAL(r.step_count, step + 1);
        CU_ASSERT_EQUAL(r.steps[step].slice.offset, 40 + step);
        CU_ASSERT_EQUAL(r.steps[step].slice.bytes, found.bytes);
    }
    settle(&r);
    CU_ASSERT_EQUAL(r.finished, 1);
    end(&r);
}

LS_SUITE(consumer, {"whole objects", test_whole_objects}, {"window and order", test_window_and_order}, {"widest window", test_widest_window},
         {"window out of range", test_window_out_of_range}, {"footer, then slice", test_footer_then_slice},
         {"empty slice", test_empty_slice}, {"follow polls at its time", test_follow_polls_at_its_time},
         {"the end waits for the look", test_end_waits_for_the_look}, {"follow from nothing", test_follow_from_nothing},
         {"start beyond the end", test_start_beyond_the_end}, {"tail reads", test_tail_reads}, {"behind", test_behind},
         {"behind by a missing object", test_behind_by_missing_object}, {"void versions", test_void_versions},
         {"known version below the floor", test_known_version_below_floor},
         {"floor between read and confirm", test_floor_between_read_and_confirm},
         {"failed looks are tried again", test_failed_looks_are_tried_again},
         {"failed fetches are tried again", test_failed_fetches_are_tried_again}, {"refusals stop", test_refusals_stop},
         {"stale replies", test_stale_replies})
