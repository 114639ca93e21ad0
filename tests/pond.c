/* pond.c - the small lake of pond.h. */
#include "tests/pond.h"

#include "tests/suite.h"

#include <string.h>

void pond_open(pond *p, uint32_t list_limit)
{
    memset(p, 0, sizeof *p);
    p->protocol = ls_protocol_default();
    p->protocol.floor_check = true;
    p->protocol.list_limit = list_limit;
    ls_invariants_init(&p->checker, LS_CHECK_ALL, NULL, NULL);
    p->checker.head = ls_manifest_new_empty();
}

void pond_land(pond *p, uint32_t index)
{
    const ls_store_request request = p->lingering[index];
    ls_store_reply reply;
    p->lingering[index] = p->lingering[--p->lingering_count];
    pond_answer(p, &request, &reply);
    ls_manifest_release(reply.manifest);
}

void pond_clear(pond *p)
{
    for (uint32_t i = 0; i < p->lingering_count; i++) ls_manifest_release(p->lingering[i].manifest);
    ls_object_table_release(&p->table);
    ls_invariants_clear(&p->checker);
}

void pond_add(pond *p, ls_key key, uint64_t bytes)
{
    CU_ASSERT_EQUAL_FATAL(ls_object_table_put(&p->table, &key, bytes, NULL, p->now_ns), LS_OK);
}

bool pond_has(const pond *p, ls_key key) { return ls_object_table_find(&p->table, &key) != NULL; }

uint64_t pond_count(pond *p, ls_object_kind kind)
{
    ls_listing listing = {0};
    ls_key after = {.kind = kind};
    CU_ASSERT_EQUAL_FATAL(ls_object_table_list(&p->table, &after, UINT64_MAX, &listing), LS_OK);
    return listing.count;
}

const ls_manifest *pond_newest(const pond *p) { return p->checker.head; }

/* A version that is not on top of the newest comes from a late winner: it is stored, and no part of the history. */
static void create(pond *p, const ls_manifest *manifest)
{
    ls_key key = ls_key_manifest(ls_manifest_version(manifest));
    ls_error error = {""};
    if (key.number > ls_manifest_version(p->checker.head)) {
        CU_ASSERT_EQUAL(ls_invariants_created(&p->checker, manifest, &error), LS_OK);
        CU_ASSERT_STRING_EQUAL(error.text, "");
    }
    CU_ASSERT_EQUAL_FATAL(
        ls_object_table_put(&p->table, &key, ls_manifest_encoded_bytes(manifest), manifest, p->now_ns), LS_OK);
}

void pond_commit(pond *p, uint64_t producer, uint32_t epoch, uint64_t first_sequence, uint32_t batches, bool closed)
{
    ls_entry entries[64];
    const ls_manifest *head = p->checker.head;
    uint32_t slot = ls_manifest_find_slot(head, producer);
    const ls_row *row = ls_manifest_row(head, slot);
    uint64_t offset = row == NULL ? 0 : row->next_source_offset;
    CU_ASSERT_FATAL(batches <= 64);
    for (uint32_t i = 0; i < batches; i++) {
        entries[i] = (ls_entry){.producer = producer,
                                .epoch = epoch,
                                .sequence = first_sequence + i,
                                .source_begin = offset + i,
                                .source_end = offset + i + 1,
                                .size_bytes = 100,
                                .footer_bytes = 10};
        pond_add(p, ls_key_data(producer, epoch, first_sequence + i), 100);
    }
    ls_commit commit = {
        .id = {epoch, ls_manifest_version(head)},
        .slot = slot,
        .entries = entries,
        .entry_count = batches,
        .row = {.producer = producer, .epoch = epoch, .closed = closed, .next_source_offset = offset + batches}};
    ls_manifest *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_append(head, &commit, &child), LS_OK);
    create(p, child);
}

/* --- the store
 * ----------------------------------------------------------------------------------------------------------- */

static void put(pond *p, const ls_store_request *request, ls_store_reply *reply)
{
    p->puts++;
    if (request->if_absent && pond_has(p, request->key)) {
        reply->status = LS_REPLY_EXISTS;
        ls_manifest_release(request->manifest);
    } else if (request->manifest != NULL) {
        create(p, request->manifest);
    } else {
        pond_add(p, request->key, request->body_bytes);
    }
}

static void list(pond *p, const ls_store_request *request, ls_store_reply *reply)
{
    ls_listing listing = {.keys = p->page_keys, .bytes = p->page_bytes, .made_ns = p->page_ages};
    p->lists++;
    CU_ASSERT_FATAL(request->list_limit <= POND_PAGE_MAX);
    CU_ASSERT_EQUAL_FATAL(ls_object_table_list(&p->table, &request->key, request->list_limit, &listing), LS_OK);
    reply->list_count = listing.count;
    reply->list_last = listing.last;
    reply->list_truncated = listing.truncated;
    if (!request->list_names) return;
    for (uint64_t i = 0; i < listing.count; i++) p->page_ages[i] = p->now_ns - p->page_ages[i];
    reply->list_keys = p->page_keys;
    reply->list_bytes = p->page_bytes;
    reply->list_ages_ns = p->page_ages;
}

static void get(pond *p, const ls_store_request *request, ls_store_reply *reply)
{
    const ls_object *object = ls_object_table_find(&p->table, &request->key);
    if (object == NULL) {
        reply->status = LS_REPLY_NOT_FOUND;
        return;
    }
    reply->object_bytes = object->bytes;
    if (request->operation == LS_GET && request->key.kind == LS_OBJECT_MANIFEST) {
        reply->manifest = ls_manifest_retain(object->manifest);
    }
}

static void carry_out(pond *p, const ls_store_request *request, ls_store_reply *reply)
{
    switch (request->operation) {
    case LS_PUT: put(p, request, reply); break;
    case LS_LIST: list(p, request, reply); break;
    case LS_DELETE:
        p->deletes++;
        ls_object_table_remove(&p->table, &request->key);
        break;
    case LS_GET:
    case LS_HEAD: get(p, request, reply); break;
    }
}

void pond_answer(pond *p, const ls_store_request *request, ls_store_reply *reply)
{
    *reply = (ls_store_reply){.status = LS_REPLY_OK, .tag = request->tag};
    bool bent = p->bend && request->operation == p->bend_operation && request->key.kind == p->bend_kind;
    if (!bent || p->bend_effect) carry_out(p, request, reply);
    if (!bent) return;
    p->bend = false;
    bool lingers = !p->bend_effect && p->bend_lingers && p->lingering_count < POND_LINGERING_MAX &&
                   (request->operation == LS_PUT || request->operation == LS_DELETE);
    if (lingers)
        p->lingering[p->lingering_count++] = *request;
    else if (!p->bend_effect)
        ls_manifest_release(request->manifest);
    ls_manifest_release(reply->manifest);
    *reply = (ls_store_reply){.status = p->bend_status, .tag = request->tag};
}

/* --- guests
 * -------------------------------------------------------------------------------------------------------------- */

static void note(guest *g, const ls_action *action)
{
    switch (action->kind) {
    case LS_ACTION_REQUEST:
        CU_ASSERT_FATAL(g->tail - g->head < GUEST_QUEUE_MAX);
        g->queue[g->tail++ % GUEST_QUEUE_MAX] = action->request;
        break;
    case LS_ACTION_WAKE: g->wake_ns = action->wake_ns; break;
    case LS_ACTION_FINISHED: g->finished++; break;
    case LS_ACTION_FAILED: g->failed++; break;
    case LS_ACTION_REFUSED: g->refused++; break;
    case LS_ACTION_CHECKPOINTED:
        g->checkpointed++;
        g->checkpoint = action->checkpoint;
        break;
    case LS_ACTION_GAVE_UP:
        g->gave_up++;
        g->checkpoint = action->checkpoint;
        break;
    case LS_ACTION_RECLAIMED: g->reclaimed = action->reclaimed; break;
    case LS_ACTION_WOULD_DELETE:
        CU_ASSERT_FATAL(g->told_count < GUEST_TOLD_MAX);
        g->told[g->told_count++] = action->would_delete;
        break;
    case LS_ACTION_PUBLISHED:
    case LS_ACTION_ATTEMPT:
    case LS_ACTION_JOINED:
    case LS_ACTION_FENCED:
    case LS_ACTION_STEP:
    case LS_ACTION_BEHIND: CU_FAIL("no such action of this machine"); break;
    }
}

static ls_result try_to_feed(guest *g, const ls_event *event)
{
    ls_actions actions;
    ls_result result = g->reclaimer != NULL ? ls_reclaimer_step(g->reclaimer, event, &actions)
                                            : ls_checkpointer_step(g->checkpointer, event, &actions);
    for (uint32_t i = 0; i < actions.count; i++) note(g, &actions.item[i]);
    return result;
}

static void feed(guest *g, const ls_event *event) { CU_ASSERT_EQUAL_FATAL(try_to_feed(g, event), LS_OK); }

void guest_start_reclaimer(guest *g, pond *home, ls_reclaimer *reclaimer, const ls_reclaimer_config *config,
                           uint64_t incarnation)
{
    ls_random random = ls_random_open(incarnation, 0, LS_RANDOM_TEST, 0);
    memset(g, 0, sizeof *g);
    g->home = home;
    g->reclaimer = reclaimer;
    g->wake_ns = LS_NEVER_NS;
    CU_ASSERT_EQUAL_FATAL(ls_reclaimer_init(reclaimer, &home->protocol, config, incarnation, random), LS_OK);
    feed(g, &(ls_event){.kind = LS_EVENT_START, .now_ns = home->now_ns});
}

void guest_start_checkpointer(guest *g, pond *home, ls_checkpointer *checkpointer, uint64_t step,
                              ls_checkpoint_kind kind, uint64_t seed)
{
    ls_checkpointer_config config = {.step = step, .kind = kind, .body_bytes = 72, .retry_ns = 1000};
    ls_random random = ls_random_open(seed, 0, LS_RANDOM_TEST, 1);
    memset(g, 0, sizeof *g);
    g->home = home;
    g->checkpointer = checkpointer;
    g->wake_ns = LS_NEVER_NS;
    CU_ASSERT_EQUAL_FATAL(ls_checkpointer_init(checkpointer, &home->protocol, &config, NULL, random), LS_OK);
    feed(g, &(ls_event){.kind = LS_EVENT_START, .now_ns = home->now_ns});
}

bool guest_is_done(const guest *g)
{
    bool stopped = g->reclaimer != NULL ? g->reclaimer->phase == LS_RECLAIMER_STOPPED
                                        : g->checkpointer->phase == LS_CHECKPOINTER_STOPPED;
    return stopped && g->head == g->tail;
}

bool guest_move(guest *g)
{
    if (guest_is_done(g)) return false;
    if (g->head == g->tail) {
        CU_ASSERT_NOT_EQUAL_FATAL(g->wake_ns, LS_NEVER_NS);
        if (g->home->now_ns < g->wake_ns) g->home->now_ns = g->wake_ns;
        feed(g, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = g->home->now_ns});
        return true;
    }
    const ls_store_request request = g->queue[g->head++ % GUEST_QUEUE_MAX];
    ls_store_reply reply;
    pond_answer(g->home, &request, &reply);
    feed(g, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = g->home->now_ns, .reply = &reply});
    return true;
}

ls_result guest_starve(guest *g)
{
    if (guest_is_done(g) || g->head == g->tail) return LS_OK;
    const ls_store_request request = g->queue[g->head++ % GUEST_QUEUE_MAX];
    ls_store_reply reply;
    pond_answer(g->home, &request, &reply);
    ls_fail_allocations_after(0);
    ls_result result = try_to_feed(g, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = g->home->now_ns, .reply = &reply});
    ls_fail_allocations_after(-1);
    return result;
}

void guest_bend(guest *g, bool effect, bool lingers, ls_reply_status status)
{
    if (g->head == g->tail) return;
    const ls_store_request *request = &g->queue[g->head % GUEST_QUEUE_MAX];
    g->home->bend = true;
    g->home->bend_operation = request->operation;
    g->home->bend_kind = request->key.kind;
    g->home->bend_effect = effect;
    g->home->bend_lingers = lingers;
    g->home->bend_status = status;
}

void guest_run(guest *g)
{
    for (uint32_t moves = 0; guest_move(g); moves++) CU_ASSERT_FATAL(moves < 100000);
}

void guest_die(guest *g, bool carry_out_rest)
{
    for (; g->head != g->tail; g->head++) {
        const ls_store_request *request = &g->queue[g->head % GUEST_QUEUE_MAX];
        ls_store_reply reply = {.status = LS_REPLY_OK};
        if (carry_out_rest) {
            pond_answer(g->home, request, &reply);
            ls_manifest_release(reply.manifest);
        } else if (request->operation == LS_PUT) {
            ls_manifest_release(request->manifest);
        }
    }
    if (g->reclaimer != NULL)
        ls_reclaimer_clear(g->reclaimer);
    else
        ls_checkpointer_clear(g->checkpointer);
}
