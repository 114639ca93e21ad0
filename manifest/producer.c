/* producer.c - upload, commit, doubt, fencing: the protocol of one producer, step by step.
 *
 * One attempt to commit:
 *   find    the newest version (list, probe or gallop; protocol.h), starting from the newest version seen before
 *   read    it, whole or only the tail that is missing; a version that is already known is not read again
 *   absorb  our own row, see below; then rebase: append our pending batches and our new row to what was read
 *   put     the next version, only if no object of that name exists
 *
 * The row is the truth. Every commit writes the producer's own row: epoch, next source offset, commit id (incarnation and
 * attempt number). Whatever a manifest we read shows in our row is settled, whatever status code an earlier request had:
 *   - epoch above ours, or ours with another incarnation: someone restarted us; we are fenced and stop;
 *   - next source offset past our oldest batches: those are committed, and are acknowledged now, exactly once.
 * So an attempt whose reply was lost needs no memory of its own: the read that opens the next attempt settles it.
 *
 * Status codes are hints:
 *   OK            the version is ours; in a lake that reclaims, only if then no floor lies above it (discovery.h): a name that had
 *                 been deleted meanwhile can be won again, and means nothing. The same check precedes every consequence that is
 *                 drawn from a version we read.
 *   EXISTS        presumed lost. It may be our own object when a transport re-sent the request: the next attempt begins
 *                 with a read and would find our row advanced. If an earlier put of this very name is in doubt, we read at once.
 *   CONFLICT, UNKNOWN, 5xx, time-out   in doubt: read now. Our commit in the row: won. The version taken by another: lost. The
 *                 version still missing: undecided, the put may yet land; we try again, and the name stays marked as doubtful.
 *   THROTTLED, UNAVAILABLE   certainly without effect; no conflict.
 *
 * Why a lingering put is harmless: it can only create the version it names, once. If we meanwhile created that version, it
 * fails; if it lands first, our own try of that name fails, and the read shows our row with the older attempt's offset; the
 * batches it carried are acknowledged, the rest is rebased on top. Nothing is twice because the row and the entries are one
 * object, and we only ever append entries that begin at the row's next source offset.
 */
#include "manifest/producer.h"

#include "manifest/mutant.h"

#include <string.h>

enum { BATCH_WAITING = 0, BATCH_UPLOADING, BATCH_UPLOADED, BATCH_REPEAT };

#define TAG_UPLOAD UINT32_C(0x80000000)
#define TAG_MASK UINT32_C(0x7fffffff)
#define RING_START 4u

ls_protocol ls_protocol_default(void)
{
    return (ls_protocol){.layout = LS_LAYOUT_FULL, .discovery = LS_DISCOVERY_LIST, .list_limit = 1000,
                         .backlog_limit = 64, .upload_concurrency = 4, .upload_retry_base_ns = 100000000,
                         .upload_retry_cap_ns = 20 * LS_NANOSECONDS_PER_SECOND};
}

/* --- actions ----------------------------------------------------------------------------------------------------- */

static ls_action *emit(ls_actions *actions, ls_action_kind kind)
{
    ls_action *action = &actions->item[actions->count < LS_ACTIONS_MAX ? actions->count++ : LS_ACTIONS_MAX - 1];
    action->kind = kind;
    return action;
}

static ls_store_request *emit_request(ls_actions *actions, ls_operation operation, uint32_t tag)
{
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    memset(request, 0, sizeof *request);
    request->operation = operation;
    request->tag = tag;
    return request;
}

static uint32_t next_tag(ls_producer *p)
{
    p->tag = (p->tag + 1) & TAG_MASK;
    return p->tag;
}

static void stop(ls_producer *p, ls_producer_end end, ls_actions *actions)
{
    static const ls_action_kind kinds[] = {[LS_PRODUCER_FINISHED] = LS_ACTION_FINISHED,
                                           [LS_PRODUCER_FENCED] = LS_ACTION_FENCED,
                                           [LS_PRODUCER_FAILED] = LS_ACTION_FAILED};
    p->phase = LS_PRODUCER_STOPPED;
    p->end = (uint8_t)end;
    emit(actions, kinds[end]);
}

/* --- the ring of batches ----------------------------------------------------------------------------------------- */

static ls_batch *batch_at(const ls_producer *p, uint32_t index)
{
    return &p->batches[(p->first_sequence + index) & (p->ring_capacity - 1)];
}

static ls_result ring_grow(ls_producer *p)
{
    uint32_t capacity = p->ring_capacity == 0 ? RING_START : 2 * p->ring_capacity;
    ls_batch *grown = ls_allocate_array(capacity, sizeof *grown);
    if (grown == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < p->ring_count; i++) grown[(p->first_sequence + i) & (capacity - 1)] = *batch_at(p, i);
    ls_free(p->batches);
    p->batches = grown;
    p->ring_capacity = capacity;
    return LS_OK;
}

static uint64_t source_begin_at(const ls_producer *p, uint32_t index)
{
    return index == 0 ? p->source_begin : batch_at(p, index - 1)->source_end;
}

static void advance_ready(ls_producer *p)
{
    while (p->ready_count < p->ring_count && batch_at(p, p->ready_count)->state == BATCH_UPLOADED) {
        p->pending_bytes += batch_at(p, p->ready_count)->size_bytes;
        p->ready_count++;
    }
}

/* --- uploads ------------------------------------------------------------------------------------------------------ */

static void upload(ls_producer *p, uint32_t index, ls_actions *actions)
{
    ls_batch *batch = batch_at(p, index);
    uint64_t sequence = p->first_sequence + index;
    batch->state = BATCH_UPLOADING;
    p->uploads_in_flight++;
    ls_store_request *request = emit_request(actions, LS_PUT, TAG_UPLOAD | ((uint32_t)sequence & TAG_MASK));
    request->if_absent = true;
    request->key = ls_key_data(p->producer, p->epoch, sequence);
    if (p->protocol->help_limit > 0) {
        request->key = ls_key_data_told(p->producer, p->epoch, sequence, source_begin_at(p, index), batch->source_end,
                                        batch->footer_bytes > 0 ? batch->footer_bytes : 1);
    }
    request->body_bytes = batch->size_bytes;
}

static void start_upload(ls_producer *p, ls_actions *actions)
{
    if (p->uploads_in_flight >= p->protocol->upload_concurrency || p->uploads_started >= p->ring_count) return;
    upload(p, p->uploads_started++, actions);
}

/* One failed upload a step; the rest follows by a timer that is due at once. */
static void repeat_upload(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    if (p->uploads_to_repeat == 0 || now_ns < p->upload_retry_ns) return;
    for (uint32_t i = p->ready_count; i < p->uploads_started; i++) {
        if (batch_at(p, i)->state != BATCH_REPEAT) continue;
        p->uploads_to_repeat--;
        upload(p, i, actions);
        return;
    }
}

static int64_t upload_delay(ls_producer *p, int64_t retry_after_ns)
{
    uint32_t doublings = p->upload_failures < 20 ? p->upload_failures : 20;
    int64_t delay = p->protocol->upload_retry_base_ns;
    for (uint32_t i = 1; i < doublings && delay < p->protocol->upload_retry_cap_ns; i++) delay *= 2;
    if (delay > p->protocol->upload_retry_cap_ns) delay = p->protocol->upload_retry_cap_ns;
    delay = (int64_t)((double)delay * (0.5 + ls_random_uniform(&p->random)));
    return delay > retry_after_ns ? delay : retry_after_ns;
}

static void upload_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    uint32_t index = (reply->tag - (uint32_t)p->first_sequence) & TAG_MASK;
    bool is_gone = p->protocol->help_limit > 0 && index > TAG_MASK / 2;
    if (is_gone) { /* another producer published it before this reply came */
        p->uploads_in_flight--;
        start_upload(p, actions);
        return;
    }
    if (index >= p->uploads_started || batch_at(p, index)->state != BATCH_UPLOADING) return;
    p->uploads_in_flight--;
    switch (reply->status) {
    case LS_REPLY_OK:
    case LS_REPLY_EXISTS: /* the epoch in the name is ours alone, so the object is our own, from a try whose reply was lost */
        batch_at(p, index)->state = BATCH_UPLOADED;
        p->upload_failures = 0;
        advance_ready(p);
        start_upload(p, actions);
        if (p->protocol->help_limit > 0) start_upload(p, actions); /* see publish: there may be room for two */
        return;
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: stop(p, LS_PRODUCER_FAILED, actions); return;
    default:
        batch_at(p, index)->state = BATCH_REPEAT;
        p->upload_failures++;
        p->uploads_to_repeat++;
        p->upload_retry_ns = now_ns + upload_delay(p, reply->retry_after_ns);
    }
}

/* --- asking the policy --------------------------------------------------------------------------------------------- */

static bool has_work(const ls_producer *p)
{
    return !p->joined || p->ready_count > 0 || (p->stopping && p->ring_count == 0);
}

static void begin_attempt(ls_producer *p, int64_t now_ns, ls_actions *actions);

/* Joining and closing carry no batch; towards the policy they count as one pending batch, so that it must answer a time. */
static void consult_policy(ls_producer *p, ls_moment moment, uint64_t newest_version, int64_t now_ns)
{
    uint32_t pending = p->ready_count;
    if (pending == 0 && has_work(p)) pending = 1;
    ls_commit_view view = {.moment = moment, .now_ns = now_ns, .planned_ns = p->planned_ns, .pending_batches = pending,
                           .backlog_limit = p->protocol->backlog_limit, .pending_bytes = p->pending_bytes,
                           .oldest_ready_ns = p->ready_count > 0 ? batch_at(p, 0)->ready_ns
                                              : pending > 0      ? now_ns
                                                                 : LS_NEVER_NS,
                           .attempt_ns = p->attempt_ns, .read_ns = p->read_ns, .put_ns = p->put_ns,
                           .retry_after_ns = p->retry_after_ns, .losses_in_row = p->losses_in_row,
                           .throttles_in_row = p->throttles_in_row, .attempts = p->attempts,
                           .versions_passed = p->versions_passed, .sight_gap_ns = p->sight_gap_ns,
                           .newest_version = newest_version, .own_slot = p->slot, .manifest = p->known,
                           .oracle = p->protocol->oracle};
    ls_commit_decision decision = {.try_at_ns = LS_NEVER_NS};
    p->protocol->decider.decide(p->protocol->decider.parameters, p->policy_state, &p->random, &view, &decision);
    p->planned_ns = decision.try_at_ns;
    p->batch_limit = decision.batch_limit;
    p->gave_up += decision.gave_up;
}

static void ask_policy(ls_producer *p, ls_moment moment, int64_t now_ns, ls_actions *actions)
{
    consult_policy(p, moment, 0, now_ns);
    if (has_work(p) && p->planned_ns <= now_ns) begin_attempt(p, now_ns, actions);
}

/* Shows a decider that looks how far the manifest has come; true when it calls the attempt off. Settling a doubt and joining are
 * no matter of policy. A put in doubt stays so: the next attempt settles it. */
static bool is_called_off(ls_producer *p, int64_t now_ns)
{
    if (!p->protocol->decider.looks || p->settling || !p->joined || !has_work(p)) return false;
    consult_policy(p, LS_MOMENT_LOOK, p->search.candidate, now_ns);
    if (p->planned_ns <= now_ns || p->planned_ns == LS_NEVER_NS) return false;
    p->phase = LS_PRODUCER_IDLE;
    return true;
}

/* --- finding and reading the newest version (discovery.h) ---------------------------------------------------------- */

static void ask_next(ls_producer *p, ls_actions *actions)
{
    uint32_t tag = next_tag(p);
    ls_search_ask(&p->search, p->protocol, emit_request(actions, LS_LIST, tag));
}

static void start_search(ls_producer *p, ls_actions *actions)
{
    p->phase = LS_PRODUCER_FINDING;
    ls_search_start(&p->search, p->protocol, ls_manifest_version(p->known));
    ask_next(p, actions);
}

static void begin_attempt(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    p->start_ns = now_ns;
    p->read_ns = 0;
    p->put_ns = 0;
    p->settling = false;
    start_search(p, actions);
}

static void settle(ls_producer *p, ls_actions *actions)
{
    p->settling = true;
    start_search(p, actions);
}

static void read_newest(ls_producer *p, ls_actions *actions)
{
    p->phase = LS_PRODUCER_READING;
    uint32_t tag = next_tag(p);
    ls_read_version(p->protocol, p->known, p->search.candidate, emit_request(actions, LS_GET, tag));
}

/* Records that `manifest` (its reference is taken) is the newest version now known. */
static void see(ls_producer *p, const ls_manifest *manifest, int64_t now_ns)
{
    p->versions_passed = ls_manifest_version(manifest) - ls_manifest_version(p->known);
    p->sight_gap_ns = p->last_sight_ns == LS_NEVER_NS ? 0 : now_ns - p->last_sight_ns;
    p->last_sight_ns = now_ns;
    if (manifest == p->known) return;
    ls_manifest_release(p->known);
    p->known = manifest;
}

/* --- the end of an attempt ------------------------------------------------------------------------------------------ */

static void drop_attempt(ls_producer *p)
{
    ls_manifest_release(p->attempt);
    p->attempt = NULL;
}

static void report_attempt(ls_producer *p, ls_attempt_outcome outcome, bool ambiguous, ls_actions *actions)
{
    ls_attempt_report *report = &emit(actions, LS_ACTION_ATTEMPT)->attempt;
    *report = (ls_attempt_report){.outcome = outcome, .was_ambiguous = ambiguous,
                                  .version = p->attempt == NULL ? 0 : ls_manifest_version(p->attempt),
                                  .batches = p->attempt_batches, .start_ns = p->start_ns, .read_ns = p->read_ns,
                                  .put_ns = p->put_ns};
}

static void end_attempt(ls_producer *p, ls_attempt_outcome outcome, bool ambiguous, int64_t now_ns, ls_actions *actions)
{
    static const ls_moment moments[] = {[LS_ATTEMPT_WON] = LS_MOMENT_WON, [LS_ATTEMPT_PROVED] = LS_MOMENT_WON,
                                        [LS_ATTEMPT_HELPED] = LS_MOMENT_WON,
                                        [LS_ATTEMPT_LOST] = LS_MOMENT_LOST,
                                        [LS_ATTEMPT_THROTTLED] = LS_MOMENT_THROTTLED,
                                        [LS_ATTEMPT_ABORTED] = LS_MOMENT_ABORTED};
    report_attempt(p, outcome, ambiguous, actions);
    if (outcome == LS_ATTEMPT_WON || outcome == LS_ATTEMPT_PROVED) p->settled_attempt = p->attempt_number;
    drop_attempt(p);
    p->phase = LS_PRODUCER_IDLE;
    p->settling = false;
    p->attempts++;
    p->attempt_ns = now_ns - p->start_ns;
    p->planned_ns = LS_NEVER_NS;
    p->losses_in_row = outcome == LS_ATTEMPT_LOST ? p->losses_in_row + 1
                       : moments[outcome] == LS_MOMENT_WON ? 0
                                                           : p->losses_in_row;
    p->throttles_in_row = outcome == LS_ATTEMPT_THROTTLED ? p->throttles_in_row + 1 : 0;
    ask_policy(p, moments[outcome], now_ns, actions);
}

/* --- absorbing the row ----------------------------------------------------------------------------------------------- */

/* A batch that another published may be one whose upload's reply is still awaited, or was lost. */
static void publish(ls_producer *p, const ls_row *row, ls_actions *actions)
{
    uint32_t count = 0, most = p->protocol->help_limit > 0 ? p->uploads_started : p->ready_count;
    uint64_t bytes = 0, ready_bytes = 0;
    uint32_t repeats = 0;
    while (count < most && batch_at(p, count)->source_end <= row->next_source_offset) {
        bytes += batch_at(p, count)->size_bytes;
        if (count < p->ready_count) ready_bytes = bytes;
        repeats += batch_at(p, count)->state == BATCH_REPEAT;
        count++;
    }
    if (count == 0) return;
    emit(actions, LS_ACTION_PUBLISHED)->published =
        (ls_published_report){.version = row->last_version, .first_sequence = p->first_sequence, .count = count,
                              .bytes = bytes, .source_end = batch_at(p, count - 1)->source_end};
    p->source_begin = batch_at(p, count - 1)->source_end;
    p->first_sequence += count;
    p->ring_count -= count;
    p->ready_count -= count < p->ready_count ? count : p->ready_count;
    p->uploads_started -= count;
    p->pending_bytes -= ready_bytes;
    advance_ready(p);
    p->uploads_to_repeat -= repeats;
    if (repeats > 0) start_upload(p, actions); /* a repetition that is not needed any more would have been followed by one */
}

/* Does the newest version we read say anything about us that we did not know? */
static bool row_has_news(const ls_producer *p)
{
    uint32_t slot = p->joined ? p->slot : ls_manifest_find_slot(p->known, p->producer);
    const ls_row *row = ls_manifest_row(p->known, slot);
    if (row == NULL) return false;
    bool own = row->last_commit.incarnation == p->incarnation;
    if (!p->joined) return own;
    return !own || row->epoch != p->epoch || row->closed || row->next_source_offset > p->source_begin ||
           (p->settling && row->last_commit.attempt == p->attempt_number);
}

typedef enum absorbed { ABSORBED_NOTHING, ABSORBED_OWN_COMMIT, ABSORBED_END } absorbed;

static bool is_fenced_by(const ls_producer *p, const ls_row *row)
{
    if (LS_MUTANT_IS(LS_MUTANT_NO_EPOCH_CHECK)) return false;
    if (LS_MUTANT_IS(LS_MUTANT_EPOCH_BACKWARDS)) return row->epoch < p->epoch;
    return row->last_commit.incarnation != p->incarnation || row->epoch != p->epoch;
}

/* Reads our row in the newest manifest known and draws the consequences. ABSORBED_OWN_COMMIT: our last put has landed. */
static absorbed absorb_row(ls_producer *p, ls_actions *actions)
{
    if (!p->joined) p->slot = ls_manifest_find_slot(p->known, p->producer);
    const ls_row *row = ls_manifest_row(p->known, p->slot);
    if (row == NULL) return ABSORBED_NOTHING;
    bool own = row->last_commit.incarnation == p->incarnation;
    bool landed = own && p->attempt_number != 0 && row->last_commit.attempt == p->attempt_number;
    if (!p->joined) {
        if (!own) {
            p->epoch = row->epoch + (LS_MUTANT_IS(LS_MUTANT_EPOCH_REUSED) ? 0 : 1);
            p->source_begin = LS_MUTANT_IS(LS_MUTANT_RESTART_AT_ZERO) ? 0 : row->next_source_offset;
            return ABSORBED_NOTHING;
        }
        p->joined = true;
        p->epoch = row->epoch;
        emit(actions, LS_ACTION_JOINED)->source_offset = p->source_begin;
        landed = true;
    } else if (is_fenced_by(p, row)) {
        if (LS_MUTANT_IS(LS_MUTANT_FENCED_GOES_ON)) {
            p->epoch = row->epoch;
            return ABSORBED_NOTHING;
        }
        stop(p, LS_PRODUCER_FENCED, actions);
        return ABSORBED_END;
    }
    bool has_read = p->phase == LS_PRODUCER_FINDING || p->phase == LS_PRODUCER_READING;
    if (LS_MUTANT_IS(LS_MUTANT_HELPED_AGAIN) && has_read && !row->closed) {
        return landed ? ABSORBED_OWN_COMMIT : ABSORBED_NOTHING;
    }
    if (!LS_MUTANT_IS(LS_MUTANT_AMBIGUOUS_LOST) || p->phase == LS_PRODUCER_PUTTING) publish(p, row, actions);
    if (row->closed) {
        stop(p, LS_PRODUCER_FINISHED, actions);
        return ABSORBED_END;
    }
    return landed ? ABSORBED_OWN_COMMIT : ABSORBED_NOTHING;
}

/* --- putting the next version ---------------------------------------------------------------------------------------- */

static void fill_entries(void *context, ls_entry *entries, uint32_t count)
{
    const ls_producer *p = context;
    count -= p->helped_count;
    if (p->helped_count > 0) memcpy(entries + count, p->help->entry, p->helped_count * sizeof *entries);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = LS_MUTANT_IS(LS_MUTANT_REBASE_TWICE) ? k % p->attempt_batches : k;
        const ls_batch *batch = batch_at(p, i);
        entries[k] = (ls_entry){.producer = p->producer, .sequence = p->first_sequence + i,
                                .source_begin = source_begin_at(p, i), .source_end = batch->source_end,
                                .size_bytes = batch->size_bytes, .epoch = p->epoch, .footer_bytes = batch->footer_bytes};
    }
}

static ls_result put_next_version(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    uint32_t count = p->ready_count;
    if (p->batch_limit != 0 && count > p->batch_limit) count = p->batch_limit;
    p->attempt_batches = count;
    bool closes = p->joined && p->stopping && count == p->ring_count;
    uint32_t times = LS_MUTANT_IS(LS_MUTANT_REBASE_TWICE) && p->losses_in_row > 0 ? 2 : 1;
    ls_commit commit = {.id = {p->incarnation, ++p->attempt_number}, .slot = p->slot, .entry_count = count * times + p->helped_count,
                        .advances = p->help == NULL ? NULL : p->help->advance, .advance_count = p->advance_count,
                        .fill = fill_entries, .fill_context = p,
                        .row = {.producer = p->producer, .epoch = p->epoch, .closed = closes,
                                .next_source_offset = count == 0 ? p->source_begin : batch_at(p, count - 1)->source_end}};
    ls_manifest *child = NULL;
    ls_result result = LS_OK;
#if LS_MUTANT_IS(5) /* LS_MUTANT_REBASE_DROPS_ROW: rebases onto an older table */
    if (commit.slot == LS_NO_SLOT && ls_manifest_row_count(p->known) > 0) {
        ls_row older = *ls_manifest_row(p->known, 0);
        older.next_source_offset = 0;
        ls_manifest_parts parts = {.version = ls_manifest_version(p->known), .id = ls_manifest_commit_id(p->known),
                                   .first_step = ls_manifest_end_step(p->known), .base = p->known, .rows = &older,
                                   .row_count = 1};
        ls_manifest *base = NULL;
        result = ls_manifest_build(&parts, &base);
        if (result != LS_OK) return result;
        ls_manifest_release(p->known);
        p->known = base;
    }
#endif
    result = ls_manifest_append(p->known, &commit, &child);
    if (result != LS_OK) return result;
    drop_attempt(p);
    p->attempt = child;
    p->phase = LS_PRODUCER_PUTTING;
    p->read_ns = now_ns - p->start_ns;
    ls_store_request *request = emit_request(actions, LS_PUT, next_tag(p));
    request->if_absent = true;
    request->key = ls_key_manifest(ls_manifest_version(child));
    request->body_bytes = ls_manifest_encoded_bytes(child);
    request->manifest = ls_manifest_retain(child);
    if (LS_MUTANT_IS(LS_MUTANT_EARLY_ACKNOWLEDGE) && count > 0) publish(p, ls_manifest_row(child, p->slot), actions);
    return LS_OK;
}

/* --- helping: what others have uploaded goes along (PROTOCOL.md, section 11) ------------------------------------------ */

typedef struct last_entry {
    uint64_t producer;
    uint64_t sequence;
    uint32_t epoch;
    bool found;
} last_entry;

static bool look_for_last(void *context, uint64_t step, const ls_entry *entries, uint64_t count)
{
    last_entry *last = context;
    (void)step;
    for (uint64_t i = count; i > 0 && !last->found; i--) {
        if (entries[i - 1].producer != last->producer) continue;
        last->found = true;
        last->sequence = entries[i - 1].sequence;
        last->epoch = entries[i - 1].epoch;
    }
    return !last->found;
}

/* Where the list begins: behind the producer's newest entry, or with its epoch. It only saves pages: what counts is the offset. */
static ls_key list_begin(const ls_producer *p, const ls_row *row)
{
    enum { LOOK_BACK = 65536 };
    uint64_t end = ls_manifest_end_step(p->known), first = ls_manifest_trim_step(p->known);
    if (end - first > LOOK_BACK) first = end - LOOK_BACK;
    last_entry last = {.producer = row->producer};
    ls_manifest_visit_entries(p->known, first, end, look_for_last, &last);
    if (LS_MUTANT_IS(LS_MUTANT_HELP_DEAD_EPOCH)) return ls_key_data_told(row->producer, 0, UINT64_MAX, 0, 0, 1);
    if (last.found && last.epoch == row->epoch) return ls_key_data_told(row->producer, row->epoch, last.sequence, 0, 0, 1);
    return ls_key_data_told(row->producer, row->epoch - 1, UINT64_MAX, 0, 0, 1);
}

/* Asks for the uploads of the next open producer in turn; false when this attempt has asked enough. */
static bool ask_for_uploads(ls_producer *p, ls_actions *actions)
{
    uint32_t rows = ls_manifest_row_count(p->known);
    for (uint32_t passed = 0; p->helps_left > 0 && passed < rows && p->helped_count < LS_HELPED_MAX; passed++) {
        p->help_slot = (p->help_slot + 1) % rows;
        p->helps_left--; /* no more lists than rows, and none of them twice */
        const ls_row *row = ls_manifest_row(p->known, p->help_slot);
        if (p->help_slot == p->slot || row->closed || row->epoch == 0) {
            p->helps_left++;
            continue;
        }
        p->phase = LS_PRODUCER_HELPING;
        p->helped_end = row->next_source_offset;
        ls_store_request *request = emit_request(actions, LS_LIST, next_tag(p));
        request->key = list_begin(p, row);
        request->list_limit = LS_HELPED_MAX;
        request->list_names = true;
        return true;
    }
    return false;
}

static bool may_be_published(const ls_producer *p, const ls_row *row, const ls_key *key)
{
    if (key->number != row->producer || key->footer_bytes == 0 || key->source_end <= key->source_begin) return false;
    if (key->epoch != row->epoch && !LS_MUTANT_IS(LS_MUTANT_HELP_DEAD_EPOCH)) return false;
    return key->source_begin == p->helped_end || (LS_MUTANT_IS(LS_MUTANT_HELP_SKIPS_GAP) && key->source_begin > p->helped_end);
}

/* Takes the batches that go on where the row ends. An object is listed only when it is there as a whole. */
static void take_uploads(ls_producer *p, const ls_store_reply *reply)
{
    const ls_row *row = ls_manifest_row(p->known, p->help_slot);
    uint32_t before = p->helped_count;
    for (uint64_t i = 0; i < reply->list_count && p->helped_count < LS_HELPED_MAX; i++) {
        const ls_key *key = &reply->list_keys[i];
        if (!may_be_published(p, row, key)) continue;
        p->help->entry[p->helped_count++] =
            (ls_entry){.producer = key->number, .sequence = key->sequence, .source_begin = key->source_begin,
                       .source_end = key->source_end, .size_bytes = reply->list_bytes[i], .epoch = key->epoch,
                       .footer_bytes = key->footer_bytes};
        p->helped_end = key->source_end;
    }
    if (p->helped_count == before) return;
    p->help->advance[p->advance_count++] = (ls_advance){.slot = p->help_slot, .next_source_offset = p->helped_end};
}

static ls_result help_and_put(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    uint32_t others = ls_manifest_open_row_count(p->known) - (p->joined ? 1 : 0);
    p->helped_count = p->advance_count = 0;
    p->helps_left = p->protocol->help_limit < others ? p->protocol->help_limit : others;
    if (p->joined && p->helps_left > 0 && p->help == NULL) {
        p->help = ls_allocate(sizeof *p->help);
        if (p->help == NULL) return LS_ERROR_MEMORY;
    }
    if (p->joined && ask_for_uploads(p, actions)) return LS_OK;
    return put_next_version(p, now_ns, actions);
}

/* A list that fails helps nobody, and holds up nothing. */
static ls_result uploads_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_OK && reply->list_keys != NULL) take_uploads(p, reply);
    if (ask_for_uploads(p, actions)) return LS_OK;
    return put_next_version(p, now_ns, actions);
}

/* --- replies ---------------------------------------------------------------------------------------------------------- */

/* A doubtful put has been looked up: the newest manifest known is at least as new as the put's effect, if it had one. */
static void settled(ls_producer *p, absorbed found, int64_t now_ns, ls_actions *actions)
{
    uint64_t version = p->doubtful_version;
    if (found == ABSORBED_OWN_COMMIT) {
        p->doubtful_version = 0;
        end_attempt(p, LS_ATTEMPT_WON, true, now_ns, actions);
    } else if (ls_manifest_version(p->known) >= version) {
        p->doubtful_version = 0;
        end_attempt(p, LS_ATTEMPT_LOST, true, now_ns, actions);
    } else {
        end_attempt(p, LS_ATTEMPT_ABORTED, true, now_ns, actions);
    }
}

static void confirm(ls_producer *p, bool own_put, ls_actions *actions)
{
    p->phase = LS_PRODUCER_CONFIRMING;
    p->confirms_put = own_put;
    uint32_t tag = next_tag(p);
    ls_confirm_version(ls_manifest_version(own_put ? p->attempt : p->known), emit_request(actions, LS_LIST, tag));
}

static ls_result draw_consequences(ls_producer *p, int64_t now_ns, ls_actions *actions);

static ls_result newest_is_known(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    if (!p->protocol->floor_check || !row_has_news(p)) return draw_consequences(p, now_ns, actions);
    confirm(p, false, actions);
    return LS_OK;
}

static ls_result draw_consequences(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    uint32_t before = p->ring_count;
    absorbed found = absorb_row(p, actions);
    if (found == ABSORBED_END) return LS_OK;
    if (p->settling) {
        settled(p, found, now_ns, actions);
        return LS_OK;
    }
    bool helps = p->protocol->help_limit > 0, is_news = p->settled_attempt != p->attempt_number;
    if (helps && !has_work(p) && !(found == ABSORBED_OWN_COMMIT && is_news)) {
        p->attempt_batches = 0;
        end_attempt(p, LS_ATTEMPT_HELPED, false, now_ns, actions);
        return LS_OK;
    }
    if (!has_work(p) || (found == ABSORBED_OWN_COMMIT && p->ring_count < before && (is_news || !helps))) {
        /* What we wanted to commit is there already: an earlier attempt had landed after all. */
        p->attempt_batches = before - p->ring_count;
        end_attempt(p, LS_ATTEMPT_PROVED, true, now_ns, actions);
        return LS_OK;
    }
    return help_and_put(p, now_ns, actions);
}

static void read_failed(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    switch (reply->status) {
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: stop(p, LS_PRODUCER_FAILED, actions); return;
    case LS_REPLY_THROTTLED:
        p->retry_after_ns = reply->retry_after_ns;
        end_attempt(p, LS_ATTEMPT_THROTTLED, p->settling, now_ns, actions);
        return;
    default: end_attempt(p, LS_ATTEMPT_ABORTED, p->settling, now_ns, actions);
    }
}

static ls_result search_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    switch (ls_search_answer(&p->search, reply)) {
    case LS_SEARCH_FAILED: read_failed(p, reply, now_ns, actions); return LS_OK;
    case LS_SEARCH_ON: ask_next(p, actions); return LS_OK;
    case LS_SEARCH_OVER: break;
    }
    if (is_called_off(p, now_ns)) return LS_OK;
    if (p->search.candidate != ls_manifest_version(p->known)) {
        read_newest(p, actions);
        return LS_OK;
    }
    see(p, p->known, now_ns);
    return newest_is_known(p, now_ns, actions);
}

/* Forgets the newest version known and looks again, from the floor. */
static ls_result search_from_nothing(ls_producer *p, ls_actions *actions)
{
    ls_manifest *nothing = ls_manifest_new_empty();
    if (nothing == NULL) return LS_ERROR_MEMORY;
    ls_manifest_release(p->known);
    p->known = nothing;
    start_search(p, actions);
    return LS_OK;
}

static ls_result newest_was_read(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    /* A version read in the moment between its deletion and a late winner's put of its name is void, and no newer one continues it. */
    bool known_may_be_void = p->protocol->floor_check && ls_manifest_version(p->known) > 0;
    if (reply->status == LS_REPLY_INVALID && known_may_be_void) return search_from_nothing(p, actions);
    if (reply->status != LS_REPLY_OK) {
        read_failed(p, reply, now_ns, actions);
        return LS_OK;
    }
    if (reply->manifest == NULL) { /* the tail was too short: ask for as much as the store said it takes */
        ls_store_request *request = emit_request(actions, LS_GET, next_tag(p));
        request->key = ls_key_manifest(p->search.candidate);
        request->range = LS_RANGE_SUFFIX;
        request->range_bytes = reply->needed_bytes;
        request->known = p->known;
        return LS_OK;
    }
    see(p, reply->manifest, now_ns);
    return newest_is_known(p, now_ns, actions);
}

static void own_version_stands(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    if (p->doubtful_version <= ls_manifest_version(p->attempt)) p->doubtful_version = 0;
    see(p, ls_manifest_retain(p->attempt), now_ns);
    if (absorb_row(p, actions) == ABSORBED_END) report_attempt(p, LS_ATTEMPT_WON, false, actions);
    else end_attempt(p, LS_ATTEMPT_WON, false, now_ns, actions);
}

/* A floor lies above the version: whatever we read or put there is void, or old enough to be so. Forget it and look from the
 * floor; if it was our own put, what became of it is what our row says there. */
static ls_result start_from_floor(ls_producer *p, ls_actions *actions)
{
    if (p->confirms_put) {
        p->settling = true;
        p->doubtful_version = ls_manifest_version(p->attempt);
    }
    return search_from_nothing(p, actions);
}

static ls_result confirm_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status != LS_REPLY_OK) {
        if (p->confirms_put) p->doubtful_version = ls_manifest_version(p->attempt);
        p->settling = p->settling || p->confirms_put;
        read_failed(p, reply, now_ns, actions);
        return LS_OK;
    }
    if (reply->list_count > 0) return start_from_floor(p, actions);
    if (!p->confirms_put) return draw_consequences(p, now_ns, actions);
    own_version_stands(p, now_ns, actions);
    return LS_OK;
}

static void put_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    uint64_t version = ls_manifest_version(p->attempt);
    p->put_ns = now_ns - p->start_ns - p->read_ns;
    switch (reply->status) {
    case LS_REPLY_OK:
        if (p->protocol->floor_check) confirm(p, true, actions);
        else own_version_stands(p, now_ns, actions);
        return;
    case LS_REPLY_EXISTS:
        if (LS_MUTANT_IS(LS_MUTANT_DOUBTFUL_412_DROPS) && p->doubtful_version == version && p->attempt_batches > 0) {
            publish(p, ls_manifest_row(p->attempt, p->slot), actions);
        }
        if (p->doubtful_version == version) settle(p, actions);
        else end_attempt(p, LS_ATTEMPT_LOST, false, now_ns, actions);
        return;
    case LS_REPLY_THROTTLED:
        p->retry_after_ns = reply->retry_after_ns;
        end_attempt(p, LS_ATTEMPT_THROTTLED, false, now_ns, actions);
        return;
    case LS_REPLY_UNAVAILABLE: end_attempt(p, LS_ATTEMPT_ABORTED, false, now_ns, actions); return;
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: stop(p, LS_PRODUCER_FAILED, actions); return;
    case LS_REPLY_NOT_FOUND:
    case LS_REPLY_CONFLICT_RETRY:
    case LS_REPLY_UNKNOWN_OUTCOME: break;
    }
    if (LS_MUTANT_IS(LS_MUTANT_AMBIGUOUS_LOST)) {
        end_attempt(p, LS_ATTEMPT_LOST, false, now_ns, actions);
        return;
    }
    if (LS_MUTANT_IS(LS_MUTANT_AMBIGUOUS_WON)) {
        own_version_stands(p, now_ns, actions);
        return;
    }
    p->doubtful_version = version;
    settle(p, actions);
}

static ls_result commit_replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    switch ((ls_producer_phase)p->phase) {
    case LS_PRODUCER_FINDING: return search_replied(p, reply, now_ns, actions);
    case LS_PRODUCER_READING: return newest_was_read(p, reply, now_ns, actions);
    case LS_PRODUCER_HELPING: return uploads_replied(p, reply, now_ns, actions);
    case LS_PRODUCER_PUTTING: put_replied(p, reply, now_ns, actions); return LS_OK;
    case LS_PRODUCER_CONFIRMING: return confirm_replied(p, reply, now_ns, actions);
    case LS_PRODUCER_NEW:
    case LS_PRODUCER_IDLE:
    case LS_PRODUCER_STOPPED: break;
    }
    return LS_OK;
}

static ls_result replied(ls_producer *p, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (ls_producer_tag_is_upload(reply->tag)) {
        uint32_t ready_before = p->ready_count;
        if (p->phase != LS_PRODUCER_STOPPED) upload_replied(p, reply, now_ns, actions);
        if (p->phase == LS_PRODUCER_IDLE && p->ready_count > ready_before) {
            ask_policy(p, LS_MOMENT_READY, now_ns, actions);
        }
        return LS_OK;
    }
    bool stale = reply->tag != p->tag || p->phase == LS_PRODUCER_STOPPED;
    if (!stale) return commit_replied(p, reply, now_ns, actions);
    ls_manifest_release(reply->manifest);
    return LS_OK;
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static ls_result take_batch(ls_producer *p, const ls_event *event, ls_actions *actions)
{
    if (!ls_producer_has_room(p) || event->batch_source_count == 0) return LS_ERROR_INVALID;
    if (p->ring_count == p->ring_capacity) {
        ls_result result = ring_grow(p);
        if (result != LS_OK) return result;
    }
    *batch_at(p, p->ring_count) = (ls_batch){.ready_ns = event->now_ns, .size_bytes = event->batch_bytes,
                                             .source_end = source_begin_at(p, p->ring_count) + event->batch_source_count,
                                             .footer_bytes = event->batch_footer_bytes, .state = BATCH_WAITING};
    p->ring_count++;
    if (!p->protocol->instantaneous_uploads) {
        start_upload(p, actions);
        return LS_OK;
    }
    batch_at(p, p->uploads_started++)->state = BATCH_UPLOADED;
    advance_ready(p);
    if (p->phase == LS_PRODUCER_IDLE) ask_policy(p, LS_MOMENT_READY, event->now_ns, actions);
    return LS_OK;
}

static ls_result start(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    if (p->phase != LS_PRODUCER_NEW) return LS_ERROR_INVALID;
    p->known = ls_manifest_new_empty();
    if (p->known == NULL) return LS_ERROR_MEMORY;
    if (LS_MUTANT_IS(LS_MUTANT_JOIN_UNREAD)) {
        p->joined = true;
        emit(actions, LS_ACTION_JOINED)->source_offset = 0;
        return put_next_version(p, now_ns, actions);
    }
    begin_attempt(p, now_ns, actions);
    return LS_OK;
}

static void timer_fired(ls_producer *p, int64_t now_ns, ls_actions *actions)
{
    if (now_ns >= p->wake_ns) p->wake_ns = LS_NEVER_NS;
    repeat_upload(p, now_ns, actions);
    if (p->phase == LS_PRODUCER_IDLE && has_work(p) && p->planned_ns <= now_ns) begin_attempt(p, now_ns, actions);
}

/* One timer serves the planned attempt and the repeated upload; the driver hears only of changes. */
static void tell_wake(ls_producer *p, ls_actions *actions)
{
    int64_t wanted = p->phase == LS_PRODUCER_IDLE && has_work(p) ? p->planned_ns : LS_NEVER_NS;
    if (p->uploads_to_repeat > 0 && p->upload_retry_ns < wanted) wanted = p->upload_retry_ns;
    if (p->phase == LS_PRODUCER_STOPPED) wanted = LS_NEVER_NS;
    if (wanted == p->wake_ns) return;
    p->wake_ns = wanted;
    emit(actions, LS_ACTION_WAKE)->wake_ns = wanted;
}

ls_result ls_producer_step(ls_producer *p, const ls_event *event, ls_actions *actions)
{
    ls_result result = LS_OK;
    actions->count = 0;
    switch (event->kind) {
    case LS_EVENT_START: result = start(p, event->now_ns, actions); break;
    case LS_EVENT_BATCH: result = take_batch(p, event, actions); break;
    case LS_EVENT_TIMER: timer_fired(p, event->now_ns, actions); break;
    case LS_EVENT_REPLY: result = replied(p, event->reply, event->now_ns, actions); break;
    case LS_EVENT_GO:
        if (p->phase == LS_PRODUCER_IDLE && has_work(p)) begin_attempt(p, event->now_ns, actions);
        break;
    case LS_EVENT_STOP:
        p->stopping = true;
        if (p->phase == LS_PRODUCER_IDLE && has_work(p)) ask_policy(p, LS_MOMENT_READY, event->now_ns, actions);
        break;
    }
    if (result == LS_OK) tell_wake(p, actions);
    return result;
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

void ls_producer_init(ls_producer *p, const ls_protocol *protocol, uint64_t id, uint64_t incarnation, ls_random random)
{
    memset(p, 0, sizeof *p);
    p->protocol = protocol;
    p->producer = id;
    p->incarnation = incarnation;
    p->random = random;
    p->epoch = 1; /* of a row that does not exist yet */
    p->slot = LS_NO_SLOT;
    p->planned_ns = LS_NEVER_NS;
    p->wake_ns = LS_NEVER_NS;
    p->last_sight_ns = LS_NEVER_NS;
}

ls_result ls_producer_adopt(ls_producer *p, const ls_manifest *manifest, uint32_t slot, int64_t now_ns)
{
    const ls_row *row = ls_manifest_row(manifest, slot);
    if (row == NULL || row->producer != p->producer || row->closed || p->phase != LS_PRODUCER_NEW) {
        return LS_ERROR_INVALID;
    }
    p->known = ls_manifest_retain(manifest);
    p->slot = slot;
    p->epoch = row->epoch;
    p->incarnation = row->last_commit.incarnation;
    p->attempt_number = p->settled_attempt = row->last_commit.attempt;
    p->source_begin = row->next_source_offset;
    p->last_sight_ns = now_ns;
    p->joined = true;
    p->phase = LS_PRODUCER_IDLE;
    return LS_OK;
}

bool ls_producer_has_room(const ls_producer *p)
{
    return p->joined && !p->stopping && p->phase != LS_PRODUCER_STOPPED &&
           p->ring_count < p->protocol->backlog_limit;
}

bool ls_producer_is_committing(const ls_producer *p)
{
    return p->phase == LS_PRODUCER_FINDING || p->phase == LS_PRODUCER_READING || p->phase == LS_PRODUCER_HELPING ||
           p->phase == LS_PRODUCER_PUTTING || p->phase == LS_PRODUCER_CONFIRMING;
}

int64_t ls_producer_ready_ns(const ls_producer *p, uint64_t sequence)
{
    return p->batches[sequence & (p->ring_capacity - 1)].ready_ns;
}

bool ls_producer_source_range(const ls_producer *p, uint64_t sequence, uint64_t *begin, uint64_t *end)
{
    uint64_t index = sequence - p->first_sequence;
    if (index >= p->ring_count) return false;
    *begin = source_begin_at(p, (uint32_t)index);
    *end = batch_at(p, (uint32_t)index)->source_end;
    return true;
}

ls_result ls_producer_copy(const ls_producer *p, ls_producer *copy)
{
    *copy = *p;
    copy->batches = p->ring_capacity == 0 ? NULL : ls_allocate(p->ring_capacity * sizeof *p->batches);
    copy->help = p->help == NULL ? NULL : ls_allocate(sizeof *p->help);
    if ((p->ring_capacity > 0 && copy->batches == NULL) || (p->help != NULL && copy->help == NULL)) {
        ls_free(copy->batches);
        ls_free(copy->help);
        memset(copy, 0, sizeof *copy);
        return LS_ERROR_MEMORY;
    }
    if (p->ring_capacity > 0) memcpy(copy->batches, p->batches, p->ring_capacity * sizeof *p->batches);
    if (p->help != NULL) *copy->help = *p->help;
    ls_manifest_retain(copy->known);
    ls_manifest_retain(copy->attempt);
    return LS_OK;
}

void ls_producer_clear(ls_producer *p)
{
    ls_manifest_release(p->known);
    ls_manifest_release(p->attempt);
    ls_free(p->batches);
    ls_free(p->help);
    memset(p, 0, sizeof *p);
    p->phase = LS_PRODUCER_STOPPED;
}
