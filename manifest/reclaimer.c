/* reclaimer.c - one round of reclamation after the other (see reclaimer.h for its steps, PROTOCOL.md section 9 for the
 * argument).
 *
 * The machine is in one phase at a time. A phase either waits for one request (a list, a read, a put), or works through
 * things to delete, several at once: batches from the manifest, checkpoints from the marks, anything else from a page
 * of a list. The next page, and the next phase, begin when every delete is answered; so a trim never comes before the
 * deletes it hides.
 *
 * The two commits (announce, trim) need no row of their own: what they want to bring about is two numbers that only
 * rise. So a put that was lost, or whose fate is not known, leads back to the search for the newest version, and what
 * that says decides: the number is there, whoever wrote it, or it is put again on top. A version counts only when no
 * floor lies above it (discovery.h).
 *
 * A delete whose outcome is not known is repeated. No name that a reclaimer deletes is ever used again for anything
 * that counts (data names carry an owned epoch, checkpoint numbers are drawn, versions and floors below the floor are
 * void), so a delete that lingers in the network and lands years later removes nothing but what is dead already.
 */
#include "manifest/reclaimer.h"

#include "manifest/mutant.h"

#include <stdlib.h>
#include <string.h>

#define TAG_DELETE      UINT32_C(0x80000000)
#define TAG_MASK        UINT32_C(0x7fffffff)
#define ACTIONS_RESERVE 3u /* room kept for the end of a round, the machine's end, and a wake */
#define RETRY_DOUBLINGS 6u
#define MARKS_START     16u
#define MARKS_MAX       (UINT64_C(1) << 24)

enum { DELETION_NONE = 0, DELETION_IN_FLIGHT, DELETION_REPEAT };

const char *ls_delete_reason_text(ls_delete_reason reason)
{
    switch (reason) {
    case LS_DELETE_BATCH: return "its step is below every checkpoint that is kept";
    case LS_DELETE_ORPHAN: return "no version names it, and it can be committed no more";
    case LS_DELETE_CHECKPOINT: return "the retention rule does not keep it";
    case LS_DELETE_VOID_CHECKPOINT: return "the batches of its step are reclaimed";
    case LS_DELETE_VERSION: return "it is below the floor";
    case LS_DELETE_FLOOR: return "a higher floor stands";
    }
    return "unknown reason";
}

/* --- actions and requests
 * ---------------------------------------------------------------------------------------------- */

static ls_action *emit(ls_actions *actions, ls_action_kind kind)
{
    ls_action *action = &actions->item[actions->count < LS_ACTIONS_MAX ? actions->count++ : LS_ACTIONS_MAX - 1];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    return action;
}

static bool room(const ls_actions *actions) { return actions->count + ACTIONS_RESERVE < LS_ACTIONS_MAX; }

static ls_store_request *emit_request(ls_reclaimer *r, ls_operation operation, ls_actions *actions)
{
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    request->operation = operation;
    request->tag = r->tag = (r->tag + 1) & TAG_MASK;
    r->awaiting = true;
    return request;
}

static void stop(ls_reclaimer *r, ls_reclaimer_end end, ls_actions *actions)
{
    static const ls_action_kind kinds[] = {[LS_RECLAIMER_FINISHED] = LS_ACTION_FINISHED,
                                           [LS_RECLAIMER_REFUSED] = LS_ACTION_REFUSED,
                                           [LS_RECLAIMER_FAILED] = LS_ACTION_FAILED};
    r->phase = LS_RECLAIMER_STOPPED;
    r->end = (uint8_t)end;
    emit(actions, kinds[end]);
}

static void drop_attempt(ls_reclaimer *r)
{
    ls_manifest_release(r->attempt);
    r->attempt = NULL;
}

/* --- trying again
 * ------------------------------------------------------------------------------------------------------ */

static void try_later(ls_reclaimer *r, int64_t retry_after_ns, int64_t now_ns)
{
    uint32_t doublings = r->failures < RETRY_DOUBLINGS ? r->failures : RETRY_DOUBLINGS;
    int64_t delay =
        (int64_t)((double)r->config.retry_ns * (double)(1u << doublings) * (0.5 + ls_random_uniform(&r->random)));
    r->failures++;
    r->retry_at_ns = now_ns + (retry_after_ns > delay ? retry_after_ns : delay);
}

static uint64_t floor_wanted(const ls_reclaimer *r)
{
    uint64_t version = ls_manifest_version(r->known);
    return version > r->config.keep_versions ? version - r->config.keep_versions + 1 : 0;
}

static void ask_list(ls_reclaimer *r, ls_actions *actions)
{
    ls_store_request *request = emit_request(r, LS_LIST, actions);
    request->key = r->list_after;
    request->list_limit = r->protocol->list_limit;
    request->list_names = true;
}

static void put_floor(ls_reclaimer *r, ls_actions *actions)
{
    ls_store_request *request = emit_request(r, LS_PUT, actions);
    request->if_absent = true;
    request->key = ls_key_floor(r->report.floor);
}

/* Sends the request that the phase waits for. */
static void send(ls_reclaimer *r, ls_actions *actions)
{
    r->retry_at_ns = LS_NEVER_NS;
    switch ((ls_reclaimer_phase)r->phase) {
    case LS_RECLAIMER_FINDING: ls_search_ask(&r->search, r->protocol, emit_request(r, LS_LIST, actions)); break;
    case LS_RECLAIMER_READING:
        ls_read_version(r->protocol, r->known, r->search.candidate, emit_request(r, LS_GET, actions));
        break;
    case LS_RECLAIMER_CONFIRMING:
        ls_confirm_version(ls_manifest_version(r->known), emit_request(r, LS_LIST, actions));
        break;
    case LS_RECLAIMER_FLOOR: put_floor(r, actions); break;
    case LS_RECLAIMER_LISTING:
    case LS_RECLAIMER_LISTING_AGAIN:
    case LS_RECLAIMER_LISTING_FLOORS:
    case LS_RECLAIMER_LISTING_VERSIONS:
    case LS_RECLAIMER_LISTING_DATA: ask_list(r, actions); break;
    case LS_RECLAIMER_NEW:
    case LS_RECLAIMER_ANNOUNCING:
    case LS_RECLAIMER_DELETING:
    case LS_RECLAIMER_TRIMMING:
    case LS_RECLAIMER_RETIRING:
    case LS_RECLAIMER_RESTING:
    case LS_RECLAIMER_STOPPED: break;
    }
}

static void enter(ls_reclaimer *r, ls_reclaimer_phase phase, ls_actions *actions)
{
    r->phase = (uint8_t)phase;
    r->failures = 0;
    send(r, actions);
}

static void enter_list(ls_reclaimer *r, ls_reclaimer_phase phase, ls_key after, ls_actions *actions)
{
    r->list_after = after;
    r->page_count = r->page_next = 0;
    r->more = true;
    enter(r, phase, actions);
}

/* --- the newest version
 * ------------------------------------------------------------------------------------------------- */

static void start_search(ls_reclaimer *r, ls_reclaimer_goal goal, ls_actions *actions)
{
    r->goal = (uint8_t)goal;
    ls_search_start(&r->search, r->protocol, ls_manifest_version(r->known));
    enter(r, LS_RECLAIMER_FINDING, actions);
}

/* A commit was lost, or nobody knows: look again after a while. */
static void search_later(ls_reclaimer *r, int64_t retry_after_ns, int64_t now_ns)
{
    r->phase = LS_RECLAIMER_FINDING;
    ls_search_start(&r->search, r->protocol, ls_manifest_version(r->known));
    try_later(r, retry_after_ns, now_ns);
}

static ls_result forget_known(ls_reclaimer *r)
{
    ls_manifest *nothing = ls_manifest_new_empty();
    if (nothing == NULL) return LS_ERROR_MEMORY;
    ls_manifest_release(r->known);
    r->known = nothing;
    return LS_OK;
}

static void newest_is_known(ls_reclaimer *r, ls_actions *actions)
{
    if (ls_manifest_version(r->known) == 0)
        stop(r, LS_RECLAIMER_REFUSED, actions);
    else
        enter(r, LS_RECLAIMER_CONFIRMING, actions);
}

static void search_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    switch (ls_search_answer(&r->search, reply)) {
    case LS_SEARCH_FAILED: try_later(r, reply->retry_after_ns, now_ns); return;
    case LS_SEARCH_ON: send(r, actions); return;
    case LS_SEARCH_OVER: break;
    }
    if (r->search.candidate == ls_manifest_version(r->known))
        newest_is_known(r, actions);
    else
        enter(r, LS_RECLAIMER_READING, actions);
}

static void read_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_NOT_FOUND) { /* deleted since it was seen: there are newer ones */
        start_search(r, (ls_reclaimer_goal)r->goal, actions);
    } else if (reply->status != LS_REPLY_OK) {
        try_later(r, reply->retry_after_ns, now_ns);
    } else if (reply->manifest == NULL) { /* the tail was too short */
        ls_store_request *request = emit_request(r, LS_GET, actions);
        request->key = ls_key_manifest(r->search.candidate);
        request->range = LS_RANGE_SUFFIX;
        request->range_bytes = reply->needed_bytes;
        request->known = r->known;
    } else {
        ls_manifest_release(r->known);
        r->known = reply->manifest;
        newest_is_known(r, actions);
    }
}

/* --- the two commits
 * ---------------------------------------------------------------------------------------------------- */

static ls_result put_version(ls_reclaimer *r, ls_reclaimer_goal goal, uint64_t low_watermark, uint64_t trim_step,
                             ls_actions *actions)
{
    ls_manifest *child = NULL;
    ls_commit_id id = {r->incarnation, ++r->attempt_number};
    ls_result result = ls_manifest_trim(r->known, id, low_watermark, trim_step, &child);
    if (result != LS_OK) return result;
    drop_attempt(r);
    r->attempt = child;
    r->goal = (uint8_t)goal;
    r->phase = goal == LS_RECLAIMER_TRIM ? LS_RECLAIMER_TRIMMING : LS_RECLAIMER_ANNOUNCING;
    ls_store_request *request = emit_request(r, LS_PUT, actions);
    request->if_absent = true;
    request->key = ls_key_manifest(ls_manifest_version(child));
    request->body_bytes = ls_manifest_encoded_bytes(child);
    request->manifest = ls_manifest_retain(child);
    return LS_OK;
}

static void put_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_OK) {
        ls_manifest_release(r->known);
        r->known = r->attempt;
        r->attempt = NULL;
        enter(r, LS_RECLAIMER_CONFIRMING, actions);
    } else {
        drop_attempt(r);
        search_later(r, reply->retry_after_ns, now_ns);
    }
}

static void list_checkpoints(ls_reclaimer *r, ls_reclaimer_phase phase, ls_actions *actions)
{
    r->mark_count = 0;
    enter_list(r, phase, ls_key_checkpoint(0, 0, (ls_checkpoint_kind)0), actions);
}

static void choose_bound(ls_reclaimer *r);

static ls_result announce(ls_reclaimer *r, ls_actions *actions)
{
    bool is_announced = ls_manifest_low_watermark(r->known) >= r->watermark || LS_MUTANT_IS(LS_MUTANT_ANNOUNCE_NOTHING);
    if (!is_announced) {
        return put_version(r, LS_RECLAIMER_ANNOUNCE, r->watermark, ls_manifest_trim_step(r->known), actions);
    }
    if (LS_MUTANT_IS(LS_MUTANT_LIST_ONCE)) {
        choose_bound(r);
        r->phase = LS_RECLAIMER_DELETING;
        return LS_OK;
    }
    list_checkpoints(r, LS_RECLAIMER_LISTING_AGAIN, actions);
    return LS_OK;
}

static ls_result trim(ls_reclaimer *r, ls_actions *actions)
{
    uint64_t watermark = ls_manifest_low_watermark(r->known);
    if (ls_manifest_trim_step(r->known) < r->bound) {
        if (LS_MUTANT_IS(LS_MUTANT_ANNOUNCE_NOTHING) && watermark < r->bound) watermark = r->bound;
        return put_version(r, LS_RECLAIMER_TRIM, watermark, r->bound, actions);
    }
    r->next_mark = 0;
    r->phase = LS_RECLAIMER_RETIRING;
    return LS_OK;
}

static ls_result confirmed(ls_reclaimer *r, ls_actions *actions)
{
    switch ((ls_reclaimer_goal)r->goal) {
    case LS_RECLAIMER_ANNOUNCE: return announce(r, actions);
    case LS_RECLAIMER_TRIM: return trim(r, actions);
    case LS_RECLAIMER_BEGIN: break;
    }
    if (ls_manifest_row_count(r->known) == 0)
        stop(r, LS_RECLAIMER_REFUSED, actions);
    else
        list_checkpoints(r, LS_RECLAIMER_LISTING, actions);
    return LS_OK;
}

static ls_result confirm_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status != LS_REPLY_OK) {
        try_later(r, reply->retry_after_ns, now_ns);
        return LS_OK;
    }
    if (reply->list_count == 0) return confirmed(r, actions);
    ls_result result = forget_known(r);
    if (result == LS_OK) start_search(r, (ls_reclaimer_goal)r->goal, actions);
    return result;
}

/* --- checkpoints
 * -------------------------------------------------------------------------------------------------------- */

static int compare_marks(const void *left, const void *right)
{
    uint64_t a = ((const ls_checkpoint_mark *)left)->number, b = ((const ls_checkpoint_mark *)right)->number;
    return (a > b) - (a < b);
}

static ls_result reserve_marks(ls_reclaimer *r, uint64_t count)
{
    if (count <= r->mark_capacity) return LS_OK;
    if (count > MARKS_MAX) return LS_ERROR_LIMIT;
    uint64_t capacity = r->mark_capacity == 0 ? MARKS_START : r->mark_capacity;
    while (capacity < count) capacity *= 2;
    ls_checkpoint_mark *marks = ls_reallocate(r->marks, (size_t)capacity * sizeof *marks);
    if (marks == NULL) return LS_ERROR_MEMORY;
    r->marks = marks;
    ls_checkpoint_mark *before = ls_reallocate(r->before, (size_t)capacity * sizeof *before);
    if (before == NULL) return LS_ERROR_MEMORY;
    r->before = before;
    r->mark_capacity = capacity;
    return LS_OK;
}

static ls_result take_marks(ls_reclaimer *r, const ls_store_reply *reply)
{
    ls_result result = reserve_marks(r, r->mark_count + reply->list_count);
    for (uint64_t i = 0; i < reply->list_count && result == LS_OK; i++) {
        const ls_key *key = &reply->list_keys[i];
        r->marks[r->mark_count++] =
            (ls_checkpoint_mark){.number = key->number, .step = key->sequence, .kind = key->epoch, .kept = true};
    }
    return result;
}

static const ls_checkpoint_mark *find_before(const ls_reclaimer *r, const ls_checkpoint_mark *mark)
{
    if (r->before_count == 0) return NULL;
    return bsearch(mark, r->before, (size_t)r->before_count, sizeof *mark, compare_marks);
}

/* What the second list shows is kept, unless the rule let it go when it saw it in the first, or its step is trimmed. */
static void choose_bound(ls_reclaimer *r)
{
    uint64_t trim_step = ls_manifest_trim_step(r->known);
    r->bound = r->watermark;
    for (uint64_t i = 0; i < r->mark_count; i++) {
        ls_checkpoint_mark *mark = &r->marks[i];
        const ls_checkpoint_mark *before = find_before(r, mark);
        mark->kept = mark->step >= trim_step && (before == NULL || before->kept);
        if (mark->kept && mark->step < r->bound) r->bound = mark->step;
    }
    if (r->bound < trim_step) r->bound = trim_step;
    r->next_step = r->trimmed_below = trim_step;
    r->report.low_watermark = r->watermark;
    r->report.bound = r->bound;
}

static ls_result first_list_is_complete(ls_reclaimer *r, ls_actions *actions)
{
    uint64_t low_watermark = ls_manifest_low_watermark(r->known);
    r->watermark = ls_retention_apply(&r->config.retention, r->marks, r->mark_count, ls_manifest_trim_step(r->known),
                                      ls_manifest_end_step(r->known));
    if (r->watermark < low_watermark) r->watermark = low_watermark;
    if (r->mark_count > 0) memcpy(r->before, r->marks, (size_t)r->mark_count * sizeof *r->marks);
    r->before_count = r->mark_count;
    if (!r->config.dry_run) return announce(r, actions);
    choose_bound(r);
    r->phase = LS_RECLAIMER_DELETING;
    return LS_OK;
}

static ls_result checkpoints_listed(ls_reclaimer *r, const ls_store_reply *reply, ls_actions *actions)
{
    ls_result result = take_marks(r, reply);
    if (result != LS_OK) return result;
    if (reply->list_truncated && reply->list_count > 0) {
        r->list_after = reply->list_last;
        send(r, actions);
        return LS_OK;
    }
    if (r->mark_count > 1) qsort(r->marks, (size_t)r->mark_count, sizeof *r->marks, compare_marks);
    if (r->phase == LS_RECLAIMER_LISTING) return first_list_is_complete(r, actions);
    choose_bound(r);
    r->phase = LS_RECLAIMER_DELETING;
    return LS_OK;
}

/* --- pages
 * --------------------------------------------------------------------------------------------------------------- */

static int compare_listed(const void *left, const void *right)
{
    return ls_key_compare(&((const ls_listed *)left)->key, &((const ls_listed *)right)->key);
}

/* The number of names on the (sorted) page that are less than key. */
static uint64_t lower_bound(const ls_reclaimer *r, const ls_key *key)
{
    uint64_t low = 0, high = r->page_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ls_key_compare(&r->page[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool same_epoch(const ls_listed *listed, const ls_key *key)
{
    return listed->key.number == key->number && listed->key.epoch == key->epoch;
}

static bool note_entries(void *context, uint64_t step, const ls_entry *entries, uint64_t count)
{
    ls_reclaimer *r = context;
    (void)step;
    for (uint64_t i = 0; i < count; i++) {
        ls_key key = ls_key_data(entries[i].producer, entries[i].epoch, entries[i].sequence);
        uint64_t at = lower_bound(r, &key);
        if (at < r->page_count && ls_key_compare(&r->page[at].key, &key) == 0) r->page[at].named = true;
        if (at > 0 && same_epoch(&r->page[at - 1], &key)) r->page[at - 1].passed = true;
    }
    return true;
}

/* Notes which objects of the page the known version names, and which it has passed: those of lower sequence in the same
 * epoch. */
static void compare_with_entries(ls_reclaimer *r)
{
    if (r->page_count > 1) qsort(r->page, (size_t)r->page_count, sizeof *r->page, compare_listed);
    ls_manifest_visit_entries(r->known, ls_manifest_trim_step(r->known), ls_manifest_end_step(r->known), note_entries,
                              r);
    for (uint64_t i = r->page_count; i > 1; i--) {
        if (r->page[i - 1].passed && same_epoch(&r->page[i - 2], &r->page[i - 1].key)) r->page[i - 2].passed = true;
    }
}

static ls_result reserve_page(ls_reclaimer *r, uint64_t count)
{
    if (count <= r->page_capacity) return LS_OK;
    if (count > SIZE_MAX / sizeof *r->page) return LS_ERROR_MEMORY;
    ls_listed *page = ls_reallocate(r->page, (size_t)count * sizeof *page);
    if (page == NULL) return LS_ERROR_MEMORY;
    r->page = page;
    r->page_capacity = count;
    return LS_OK;
}

static ls_result page_listed(ls_reclaimer *r, const ls_store_reply *reply)
{
    ls_result result = reserve_page(r, reply->list_count);
    if (result != LS_OK) return result;
    for (uint64_t i = 0; i < reply->list_count; i++) {
        r->page[i] = (ls_listed){.key = reply->list_keys[i],
                                 .bytes = reply->list_bytes == NULL ? 0 : reply->list_bytes[i],
                                 .age_ns = reply->list_ages_ns == NULL ? 0 : reply->list_ages_ns[i]};
    }
    r->page_count = reply->list_count;
    r->page_next = 0;
    r->more = reply->list_truncated && reply->list_count > 0;
    if (r->more) r->list_after = reply->list_last;
    if (r->phase == LS_RECLAIMER_LISTING_DATA) compare_with_entries(r);
    return LS_OK;
}

/* --- what goes
 * ------------------------------------------------------------------------------------------------------------ */

/* Can the known version's future name this object? Not if its epoch's set of entries is final (a higher epoch owns the
 * row, or the row is closed), or has passed its sequence: sequences of an epoch are committed in order. */
static bool can_be_committed(const ls_reclaimer *r, const ls_listed *listed)
{
    const ls_row *row = ls_manifest_row(r->known, ls_manifest_find_slot(r->known, listed->key.number));
    if (LS_MUTANT_IS(LS_MUTANT_ORPHANS_UNPROVED)) return false;
    if (LS_MUTANT_IS(LS_MUTANT_ORPHANS_OF_LIVE_EPOCH) && row != NULL) return listed->key.epoch > row->epoch;
    if (row == NULL || listed->key.epoch > row->epoch) return true;
    return listed->key.epoch == row->epoch && !row->closed && !listed->passed;
}

static bool is_orphan(const ls_reclaimer *r, const ls_listed *listed)
{
    if (listed->named || can_be_committed(r, listed)) return false;
    return listed->age_ns >= r->config.grace_ns || LS_MUTANT_IS(LS_MUTANT_ORPHANS_UNPROVED);
}

static bool next_listed(ls_reclaimer *r, ls_delete_report *next)
{
    while (r->page_next < r->page_count) {
        const ls_listed *listed = &r->page[r->page_next++];
        bool goes = r->phase == LS_RECLAIMER_LISTING_DATA ? is_orphan(r, listed) : listed->key.number < r->report.floor;
        if (!goes) continue;
        *next = (ls_delete_report){.key = listed->key, .bytes = listed->bytes, .reason = LS_DELETE_ORPHAN};
        if (r->phase == LS_RECLAIMER_LISTING_FLOORS) next->reason = LS_DELETE_FLOOR;
        if (r->phase == LS_RECLAIMER_LISTING_VERSIONS) next->reason = LS_DELETE_VERSION;
        return true;
    }
    return false;
}

static bool next_checkpoint(ls_reclaimer *r, ls_delete_report *next)
{
    while (r->next_mark < r->mark_count) {
        const ls_checkpoint_mark *mark = &r->marks[r->next_mark++];
        if (mark->kept) continue;
        bool is_void = mark->step < r->trimmed_below;
        *next = (ls_delete_report){.key = ls_key_checkpoint(mark->number, mark->step, (ls_checkpoint_kind)mark->kind),
                                   .reason = is_void ? LS_DELETE_VOID_CHECKPOINT : LS_DELETE_CHECKPOINT};
        return true;
    }
    return false;
}

static bool next_batch(ls_reclaimer *r, ls_delete_report *next)
{
    ls_entry entry;
    uint64_t end = r->bound + (LS_MUTANT_IS(LS_MUTANT_DELETE_PAST_BOUND) ? 1 : 0);
    if (r->next_step >= end || !ls_manifest_entry(r->known, r->next_step, &entry)) return false;
    *next = (ls_delete_report){.key = ls_key_data(entry.producer, entry.epoch, entry.sequence),
                               .bytes = entry.size_bytes,
                               .step = r->next_step++,
                               .reason = LS_DELETE_BATCH};
    return true;
}

/* The phase's next object to delete; false when there is none (on this page). */
static bool next_deletion(ls_reclaimer *r, ls_delete_report *next)
{
    switch ((ls_reclaimer_phase)r->phase) {
    case LS_RECLAIMER_DELETING: return next_batch(r, next);
    case LS_RECLAIMER_RETIRING: return next_checkpoint(r, next);
    case LS_RECLAIMER_LISTING_FLOORS:
    case LS_RECLAIMER_LISTING_VERSIONS:
    case LS_RECLAIMER_LISTING_DATA: return next_listed(r, next);
    default: return false;
    }
}

static void count_deleted(ls_reclaimer *r, const ls_delete_report *what)
{
    r->report.deleted[what->reason]++;
    r->report.bytes[what->reason] += what->bytes;
}

static void send_delete(ls_reclaimer *r, uint32_t slot, ls_actions *actions)
{
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    request->operation = LS_DELETE;
    request->tag = TAG_DELETE | slot;
    request->key = r->deletions[slot].what.key;
    r->deletions[slot].state = DELETION_IN_FLIGHT;
    r->deletes_in_flight++;
}

static uint32_t free_slot(const ls_reclaimer *r)
{
    uint32_t slot = 0;
    while (r->deletions[slot].state != DELETION_NONE) slot++;
    return slot;
}

static bool may_delete_more(const ls_reclaimer *r, const ls_actions *actions)
{
    return room(actions) && r->deletes_in_flight + r->deletes_to_repeat < r->config.delete_concurrency;
}

/* Starts what may be started. True when everything of this phase (or page) is deleted. */
static bool delete_on(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    ls_delete_report next;
    for (uint32_t i = 0; i < LS_RECLAIMER_DELETES_MAX && room(actions) && now_ns >= r->retry_at_ns; i++) {
        if (r->deletions[i].state != DELETION_REPEAT) continue;
        r->deletes_to_repeat--;
        send_delete(r, i, actions);
    }
    if (r->deletes_to_repeat == 0) r->retry_at_ns = LS_NEVER_NS;
    while (may_delete_more(r, actions)) {
        if (!next_deletion(r, &next)) return r->deletes_in_flight + r->deletes_to_repeat == 0;
        if (r->config.dry_run) {
            emit(actions, LS_ACTION_WOULD_DELETE)->would_delete = next;
            count_deleted(r, &next);
            continue;
        }
        uint32_t slot = free_slot(r);
        r->deletions[slot].what = next;
        send_delete(r, slot, actions);
    }
    return false;
}

static void delete_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    uint32_t slot = reply->tag & TAG_MASK;
    if (slot >= LS_RECLAIMER_DELETES_MAX || r->deletions[slot].state != DELETION_IN_FLIGHT) return;
    r->deletes_in_flight--;
    switch (reply->status) {
    case LS_REPLY_OK:
    case LS_REPLY_NOT_FOUND:
        r->deletions[slot].state = DELETION_NONE;
        r->failures = 0;
        count_deleted(r, &r->deletions[slot].what);
        return;
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: stop(r, LS_RECLAIMER_FAILED, actions); return;
    default: break;
    }
    r->deletions[slot].state = DELETION_REPEAT;
    r->deletes_to_repeat++;
    try_later(r, reply->retry_after_ns, now_ns);
}

/* --- from phase to phase
 * --------------------------------------------------------------------------------------------------- */

static void begin_round(ls_reclaimer *r, ls_actions *actions)
{
    memset(&r->report, 0, sizeof r->report);
    start_search(r, LS_RECLAIMER_BEGIN, actions);
}

static void end_round(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    emit(actions, LS_ACTION_RECLAIMED)->reclaimed = r->report;
    r->rounds++;
    if (r->config.every_ns == 0) {
        stop(r, LS_RECLAIMER_FINISHED, actions);
        return;
    }
    r->phase = LS_RECLAIMER_RESTING;
    r->retry_at_ns = now_ns + r->config.every_ns;
}

static void look_for_orphans(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    if (r->config.skip_orphans)
        end_round(r, now_ns, actions);
    else
        enter_list(r, LS_RECLAIMER_LISTING_DATA, ls_key_data(0, 0, 0), actions);
}

static void list_versions(ls_reclaimer *r, ls_actions *actions)
{
    enter_list(r, LS_RECLAIMER_LISTING_VERSIONS, ls_key_manifest(0), actions);
}

static void raise_floor(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    r->report.floor = floor_wanted(r);
    if (r->report.floor == 0)
        look_for_orphans(r, now_ns, actions);
    else if (LS_MUTANT_IS(LS_MUTANT_NO_FLOOR))
        list_versions(r, actions);
    else if (r->config.dry_run)
        enter_list(r, LS_RECLAIMER_LISTING_FLOORS, ls_key_floor(0), actions);
    else
        enter(r, LS_RECLAIMER_FLOOR, actions);
}

static void floor_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_OK || reply->status == LS_REPLY_EXISTS) {
        enter_list(r, LS_RECLAIMER_LISTING_FLOORS, ls_key_floor(0), actions);
    } else {
        try_later(r, reply->retry_after_ns, now_ns);
    }
}

/* Everything of this phase, or of this page, is deleted. */
static ls_result deleted_all(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    bool is_list = r->phase != LS_RECLAIMER_DELETING && r->phase != LS_RECLAIMER_RETIRING;
    if (is_list && r->more) {
        r->page_count = r->page_next = 0;
        send(r, actions);
        return LS_OK;
    }
    switch ((ls_reclaimer_phase)r->phase) {
    case LS_RECLAIMER_DELETING:
        if (!r->config.dry_run) return trim(r, actions);
        r->next_mark = 0;
        r->phase = LS_RECLAIMER_RETIRING;
        break;
    case LS_RECLAIMER_RETIRING: raise_floor(r, now_ns, actions); break;
    case LS_RECLAIMER_LISTING_FLOORS: list_versions(r, actions); break;
    case LS_RECLAIMER_LISTING_VERSIONS: look_for_orphans(r, now_ns, actions); break;
    case LS_RECLAIMER_LISTING_DATA: end_round(r, now_ns, actions); break;
    default: break;
    }
    return LS_OK;
}

static bool is_deleting(const ls_reclaimer *r)
{
    switch ((ls_reclaimer_phase)r->phase) {
    case LS_RECLAIMER_DELETING:
    case LS_RECLAIMER_RETIRING: return true;
    case LS_RECLAIMER_LISTING_FLOORS:
    case LS_RECLAIMER_LISTING_VERSIONS:
    case LS_RECLAIMER_LISTING_DATA: return !r->awaiting && (r->page_count > 0 || !r->more);
    default: return false;
    }
}

/* What follows from the state that the event left behind. */
static ls_result go_on(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    ls_result result = LS_OK;
    if (r->stopping && r->phase != LS_RECLAIMER_STOPPED) {
        if (!r->awaiting && r->deletes_in_flight == 0) stop(r, LS_RECLAIMER_FINISHED, actions);
        return LS_OK;
    }
    if (!is_deleting(r) && !r->awaiting && now_ns >= r->retry_at_ns) {
        r->retry_at_ns = LS_NEVER_NS;
        if (r->phase == LS_RECLAIMER_RESTING)
            begin_round(r, actions);
        else
            send(r, actions);
    }
    while (result == LS_OK && is_deleting(r) && room(actions)) {
        if (!delete_on(r, now_ns, actions)) break;
        result = deleted_all(r, now_ns, actions);
        if (r->awaiting) break;
    }
    return result;
}

static ls_result request_replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    bool is_list = r->phase == LS_RECLAIMER_LISTING || r->phase == LS_RECLAIMER_LISTING_AGAIN ||
                   r->phase >= LS_RECLAIMER_LISTING_FLOORS;
    bool unnamed = is_list && reply->status == LS_REPLY_OK && reply->list_count > 0 && reply->list_keys == NULL;
    if (reply->status == LS_REPLY_DENIED || reply->status == LS_REPLY_INVALID || unnamed) {
        stop(r, LS_RECLAIMER_FAILED, actions);
        return LS_OK;
    }
    if (is_list && reply->status != LS_REPLY_OK) {
        try_later(r, reply->retry_after_ns, now_ns);
        return LS_OK;
    }
    switch ((ls_reclaimer_phase)r->phase) {
    case LS_RECLAIMER_FINDING: search_replied(r, reply, now_ns, actions); break;
    case LS_RECLAIMER_READING: read_replied(r, reply, now_ns, actions); break;
    case LS_RECLAIMER_CONFIRMING: return confirm_replied(r, reply, now_ns, actions);
    case LS_RECLAIMER_LISTING:
    case LS_RECLAIMER_LISTING_AGAIN: return checkpoints_listed(r, reply, actions);
    case LS_RECLAIMER_ANNOUNCING:
    case LS_RECLAIMER_TRIMMING: put_replied(r, reply, now_ns, actions); break;
    case LS_RECLAIMER_FLOOR: floor_replied(r, reply, now_ns, actions); break;
    case LS_RECLAIMER_LISTING_FLOORS:
    case LS_RECLAIMER_LISTING_VERSIONS:
    case LS_RECLAIMER_LISTING_DATA: return page_listed(r, reply);
    case LS_RECLAIMER_NEW:
    case LS_RECLAIMER_DELETING:
    case LS_RECLAIMER_RETIRING:
    case LS_RECLAIMER_RESTING:
    case LS_RECLAIMER_STOPPED: break;
    }
    return LS_OK;
}

static ls_result replied(ls_reclaimer *r, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (ls_reclaimer_tag_is_delete(reply->tag)) {
        if (r->phase != LS_RECLAIMER_STOPPED) delete_replied(r, reply, now_ns, actions);
        return LS_OK;
    }
    bool is_awaited = r->awaiting && reply->tag == r->tag && r->phase != LS_RECLAIMER_STOPPED;
    if (is_awaited) r->awaiting = false;
    if (is_awaited && !r->stopping) return request_replied(r, reply, now_ns, actions);
    ls_manifest_release(reply->manifest);
    return LS_OK;
}

static void tell_wake(ls_reclaimer *r, int64_t now_ns, ls_actions *actions)
{
    int64_t wanted = r->retry_at_ns;
    if (is_deleting(r) && !room(actions)) wanted = now_ns;
    if (r->stopping || r->phase == LS_RECLAIMER_STOPPED) wanted = LS_NEVER_NS;
    if (wanted == r->wake_ns) return;
    r->wake_ns = wanted;
    emit(actions, LS_ACTION_WAKE)->wake_ns = wanted;
}

ls_result ls_reclaimer_step(ls_reclaimer *r, const ls_event *event, ls_actions *actions)
{
    ls_result result = LS_OK;
    actions->count = 0;
    switch (event->kind) {
    case LS_EVENT_START:
        if (r->phase != LS_RECLAIMER_NEW) return LS_ERROR_INVALID;
        begin_round(r, actions);
        break;
    case LS_EVENT_TIMER:
        if (event->now_ns >= r->wake_ns) r->wake_ns = LS_NEVER_NS;
        break;
    case LS_EVENT_REPLY: result = replied(r, event->reply, event->now_ns, actions); break;
    case LS_EVENT_STOP: r->stopping = true; break;
    case LS_EVENT_BATCH:
    case LS_EVENT_GO: return LS_ERROR_INVALID;
    }
    if (result == LS_OK) result = go_on(r, event->now_ns, actions);
    if (result == LS_OK) tell_wake(r, event->now_ns, actions);
    return result;
}

/* --- life
 * -------------------------------------------------------------------------------------------------------------------
 */

ls_result ls_reclaimer_init(ls_reclaimer *r, const ls_protocol *protocol, const ls_reclaimer_config *config,
                            uint64_t incarnation, ls_random random)
{
    memset(r, 0, sizeof *r);
    r->phase = LS_RECLAIMER_STOPPED;
    if (!protocol->floor_check || config->retention.keep_last < 1 || config->keep_versions < 1 ||
        config->retry_ns < 1 || config->grace_ns < 0 || config->every_ns < 0 || config->delete_concurrency < 1 ||
        config->delete_concurrency > LS_RECLAIMER_DELETES_MAX) {
        return LS_ERROR_INVALID;
    }
    r->known = ls_manifest_new_empty();
    if (r->known == NULL) return LS_ERROR_MEMORY;
    r->protocol = protocol;
    r->config = *config;
    r->incarnation = incarnation;
    r->random = random;
    r->wake_ns = r->retry_at_ns = LS_NEVER_NS;
    r->phase = LS_RECLAIMER_NEW;
    return LS_OK;
}

/* A copy of an array of `capacity` things; NULL for an empty one or when out of memory. */
static void *twin(const void *array, uint64_t capacity, size_t size, bool *failed)
{
    if (array == NULL || capacity == 0) return NULL;
    void *copy = ls_allocate((size_t)capacity * size);
    if (copy == NULL)
        *failed = true;
    else
        memcpy(copy, array, (size_t)capacity * size);
    return copy;
}

ls_result ls_reclaimer_copy(const ls_reclaimer *r, ls_reclaimer *copy)
{
    bool failed = false;
    *copy = *r;
    copy->marks = twin(r->marks, r->mark_capacity, sizeof *r->marks, &failed);
    copy->before = twin(r->before, r->mark_capacity, sizeof *r->before, &failed);
    copy->page = twin(r->page, r->page_capacity, sizeof *r->page, &failed);
    if (!failed) {
        ls_manifest_retain(copy->known);
        ls_manifest_retain(copy->attempt);
        return LS_OK;
    }
    ls_free(copy->marks);
    ls_free(copy->before);
    ls_free(copy->page);
    memset(copy, 0, sizeof *copy);
    return LS_ERROR_MEMORY;
}

void ls_reclaimer_clear(ls_reclaimer *r)
{
    ls_manifest_release(r->known);
    ls_manifest_release(r->attempt);
    ls_free(r->marks);
    ls_free(r->before);
    ls_free(r->page);
    memset(r, 0, sizeof *r);
    r->phase = LS_RECLAIMER_STOPPED;
}
