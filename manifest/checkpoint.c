/* checkpoint.c - the checkpoint object, the retention rule, and the machine that makes a checkpoint (see checkpoint.h).
 *
 * LAYOUT. All numbers are unsigned and little-endian; n is the length of the name, r = data ranks * context ranks.
 *
 *   header, 64 bytes, at 0
 *      0  8  magic "LSCHECK1"
 *      8  2  format version (1)
 *     10  2  minimum reader version (1): a program that knows only lower ones must refuse the object
 *     12  2  header bytes (64)
 *     14  2  name bytes n, at most 255
 *     16  8  number, as in the object's name
 *     24  8  step, as in the object's name: the least of the ranks' steps
 *     32  4  kind, as in the object's name: 1 auto, 2 named, 3 pin
 *     36  4  flags: bit 0 pinned (set for every kind but auto), others 0
 *     40  4  data ranks
 *     44  4  context ranks
 *     48  8  length of the object: header + n + 8r
 *     56  4  reserved, 0
 *     60  4  CRC32C of bytes 0 .. 59, continued over everything behind the header
 *   name, n bytes, UTF-8 without control characters
 *   steps, 8 bytes each, r of them, data rank major: the step that rank reads next
 *
 * WHY IT IS SAFE. One checksum covers all bytes but itself, and the length is stated; so damage, truncation and
 * extension are found. Name and content must agree in number, step and kind, so an object that was copied to another
 * name is refused. A later format may lengthen the header; its name and steps then begin where "header bytes" says.
 *
 * THE MACHINE never acknowledges what it has not seen to be durable: an answer OK to its put, or, in doubt, the object
 * found under its name with its size. (Half of the number is random; should another maker have drawn the same one, the
 * size or the put-if-absent tells, or both said the same of the same step.) Only then it looks for the newest version,
 * in this order, because the argument of PROTOCOL.md, section 9, rests on it.
 */
#include "manifest/checkpoint.h"

#include "manifest/bytes.h"
#include "manifest/crc32c.h"
#include "manifest/mutant.h"

#include <inttypes.h>
#include <string.h>

#define CRC_AT          60u
#define FLAG_PINNED     1u
#define RETRY_DOUBLINGS 6u

static const uint8_t magic[8] = {'L', 'S', 'C', 'H', 'E', 'C', 'K', '1'};

/* --- the object ------------------------------------------------------------------------------------------------------
 */

static uint64_t rank_count(const ls_checkpoint *checkpoint)
{
    return (uint64_t)checkpoint->data_ranks * checkpoint->context_ranks;
}

static uint64_t least_step(const ls_checkpoint *checkpoint)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i < rank_count(checkpoint); i++) {
        if (checkpoint->rank_steps[i] < least) least = checkpoint->rank_steps[i];
    }
    return least;
}

static bool is_printable(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return false;
    }
    return true;
}

ls_result ls_checkpoint_make(ls_checkpoint *checkpoint, ls_checkpoint_kind kind, const char *name, uint32_t data_ranks,
                             uint32_t context_ranks, const uint64_t *rank_steps, ls_error *error)
{
    uint64_t ranks = (uint64_t)data_ranks * context_ranks;
    size_t length = strlen(name);
    memset(checkpoint, 0, sizeof *checkpoint);
    if (ls_checkpoint_kind_name(kind) == NULL) return ls_fail(error, LS_ERROR_INVALID, "unknown kind of checkpoint");
    if (length > LS_CHECKPOINT_NAME_BYTES_MAX || !is_printable(name, length)) {
        return ls_fail(error, LS_ERROR_INVALID, "a checkpoint's name has at most %u bytes and no control characters",
                       LS_CHECKPOINT_NAME_BYTES_MAX);
    }
    if (ranks == 0 || ranks > LS_CHECKPOINT_RANKS_MAX) {
        return ls_fail(error, LS_ERROR_INVALID, "%" PRIu64 " ranks: expected 1 to %u", ranks, LS_CHECKPOINT_RANKS_MAX);
    }
    checkpoint->rank_steps = ls_allocate_array((size_t)ranks, sizeof *rank_steps);
    if (checkpoint->rank_steps == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a checkpoint");
    memcpy(checkpoint->rank_steps, rank_steps, (size_t)ranks * sizeof *rank_steps);
    memcpy(checkpoint->name, name, length + 1);
    checkpoint->kind = kind;
    checkpoint->pinned = ls_checkpoint_is_pinned(kind);
    checkpoint->data_ranks = data_ranks;
    checkpoint->context_ranks = context_ranks;
    checkpoint->step = least_step(checkpoint);
    return LS_OK;
}

void ls_checkpoint_clear(ls_checkpoint *checkpoint)
{
    ls_free(checkpoint->rank_steps);
    memset(checkpoint, 0, sizeof *checkpoint);
}

uint64_t ls_checkpoint_encoded_bytes(const ls_checkpoint *checkpoint)
{
    return LS_CHECKPOINT_HEADER_BYTES + strlen(checkpoint->name) + 8 * rank_count(checkpoint);
}

static uint32_t checksum(const uint8_t *bytes, size_t header_bytes, size_t size)
{
    uint32_t crc = ls_crc32c(0, bytes, CRC_AT);
    if (header_bytes > CRC_AT + 4) crc = ls_crc32c(crc, bytes + CRC_AT + 4, header_bytes - CRC_AT - 4);
    return ls_crc32c(crc, bytes + header_bytes, size - header_bytes);
}

ls_result ls_checkpoint_encode(const ls_checkpoint *checkpoint, uint8_t *bytes, size_t size)
{
    if (size != ls_checkpoint_encoded_bytes(checkpoint)) return LS_ERROR_INVALID;
    size_t name_bytes = strlen(checkpoint->name);
    memset(bytes, 0, LS_CHECKPOINT_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    ls_store_u16(bytes + 8, 1);
    ls_store_u16(bytes + 10, 1);
    ls_store_u16(bytes + 12, LS_CHECKPOINT_HEADER_BYTES);
    ls_store_u16(bytes + 14, (uint16_t)name_bytes);
    ls_store_u64(bytes + 16, checkpoint->number);
    ls_store_u64(bytes + 24, checkpoint->step);
    ls_store_u32(bytes + 32, (uint32_t)checkpoint->kind);
    ls_store_u32(bytes + 36, checkpoint->pinned ? FLAG_PINNED : 0);
    ls_store_u32(bytes + 40, checkpoint->data_ranks);
    ls_store_u32(bytes + 44, checkpoint->context_ranks);
    ls_store_u64(bytes + 48, size);
    uint8_t *at = bytes + LS_CHECKPOINT_HEADER_BYTES;
    memcpy(at, checkpoint->name, name_bytes);
    at += name_bytes;
    for (uint64_t i = 0; i < rank_count(checkpoint); i++) ls_store_u64(at + 8 * i, checkpoint->rank_steps[i]);
    ls_store_u32(bytes + CRC_AT, checksum(bytes, LS_CHECKPOINT_HEADER_BYTES, size));
    return LS_OK;
}

static ls_result corrupt(ls_error *error, const char *what)
{
    return ls_fail(error, LS_ERROR_CORRUPT, "this is no sound checkpoint object: %s", what);
}

/* Everything that can be judged before memory is taken. */
static ls_result check_frame(const uint8_t *bytes, size_t size, ls_error *error)
{
    if (size < LS_CHECKPOINT_HEADER_BYTES) return corrupt(error, "shorter than its header");
    if (memcmp(bytes, magic, sizeof magic) != 0) return corrupt(error, "it does not begin with LSCHECK1");
    size_t header_bytes = ls_load_u16(bytes + 12);
    if (header_bytes < LS_CHECKPOINT_HEADER_BYTES || header_bytes > size)
        return corrupt(error, "impossible header length");
    if (ls_load_u64(bytes + 48) != size) return corrupt(error, "its length is not the one it states");
    if (ls_load_u32(bytes + CRC_AT) != checksum(bytes, header_bytes, size)) return corrupt(error, "wrong checksum");
    if (ls_load_u16(bytes + 10) > 1) {
        return ls_fail(error, LS_ERROR_VERSION,
                       "the checkpoint object needs a reader of format version %u; this program knows 1",
                       ls_load_u16(bytes + 10));
    }
    uint64_t name_bytes = ls_load_u16(bytes + 14);
    uint64_t ranks = (uint64_t)ls_load_u32(bytes + 40) * ls_load_u32(bytes + 44);
    if (name_bytes > LS_CHECKPOINT_NAME_BYTES_MAX || ranks == 0 || ranks > LS_CHECKPOINT_RANKS_MAX ||
        header_bytes + name_bytes + 8 * ranks > size) {
        return corrupt(error, "name and ranks do not fit its length");
    }
    const char *name = (const char *)bytes + header_bytes;
    return is_printable(name, (size_t)name_bytes) ? LS_OK : corrupt(error, "control characters in its name");
}

ls_result ls_checkpoint_decode(const uint8_t *bytes, size_t size, const ls_key *key, ls_checkpoint *checkpoint,
                               ls_error *error)
{
    memset(checkpoint, 0, sizeof *checkpoint);
    ls_result result = check_frame(bytes, size, error);
    if (result != LS_OK) return result;
    size_t header_bytes = ls_load_u16(bytes + 12), name_bytes = ls_load_u16(bytes + 14);
    checkpoint->number = ls_load_u64(bytes + 16);
    checkpoint->step = ls_load_u64(bytes + 24);
    checkpoint->kind = (ls_checkpoint_kind)ls_load_u32(bytes + 32);
    checkpoint->pinned = (ls_load_u32(bytes + 36) & FLAG_PINNED) != 0;
    checkpoint->data_ranks = ls_load_u32(bytes + 40);
    checkpoint->context_ranks = ls_load_u32(bytes + 44);
    memcpy(checkpoint->name, bytes + header_bytes, name_bytes);
    ls_key said = ls_key_checkpoint(checkpoint->number, checkpoint->step, checkpoint->kind);
    if (key->kind != LS_OBJECT_CHECKPOINT || ls_key_compare(&said, key) != 0) {
        return corrupt(error, "number, step or kind are not those of its name");
    }
    if (checkpoint->pinned != ls_checkpoint_is_pinned(checkpoint->kind))
        return corrupt(error, "its flags contradict its kind");
    uint64_t ranks = rank_count(checkpoint);
    checkpoint->rank_steps = ls_allocate_array((size_t)ranks, sizeof *checkpoint->rank_steps);
    if (checkpoint->rank_steps == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a checkpoint");
    const uint8_t *at = bytes + header_bytes + name_bytes;
    for (uint64_t i = 0; i < ranks; i++) checkpoint->rank_steps[i] = ls_load_u64(at + 8 * i);
    if (least_step(checkpoint) == checkpoint->step) return LS_OK;
    ls_checkpoint_clear(checkpoint);
    return corrupt(error, "its step is not the least of its ranks' steps");
}

/* --- retention
 * --------------------------------------------------------------------------------------------------------- */

uint64_t ls_retention_apply(const ls_retention *retention, ls_checkpoint_mark *marks, uint64_t count,
                            uint64_t trim_step, uint64_t end_step)
{
    uint32_t newest = 0;
    uint64_t least = UINT64_MAX;
    for (uint64_t i = count; i > 0; i--) {
        ls_checkpoint_mark *mark = &marks[i - 1];
        bool reached = mark->step <= end_step, there = mark->step >= trim_step;
        bool is_last = there && reached && !ls_checkpoint_is_pinned(mark->kind) && newest < retention->keep_last;
        bool is_nth = retention->keep_every > 0 && ls_checkpoint_order(mark->number) % retention->keep_every == 0;
        newest += is_last;
        mark->kept = there && (is_last || is_nth || !reached || ls_checkpoint_is_pinned(mark->kind));
        if (mark->kept && reached && mark->step < least) least = mark->step;
        if (LS_MUTANT_IS(LS_MUTANT_WATERMARK_MAXIMUM) && mark->kept && reached && is_last) return mark->step;
    }
    return least == UINT64_MAX ? trim_step : least;
}

/* --- the machine
 * ------------------------------------------------------------------------------------------------------- */

static ls_action *emit(ls_actions *actions, ls_action_kind kind)
{
    ls_action *action = &actions->item[actions->count < LS_ACTIONS_MAX ? actions->count++ : LS_ACTIONS_MAX - 1];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    return action;
}

static ls_store_request *emit_request(ls_checkpointer *c, ls_operation operation, ls_actions *actions)
{
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    request->operation = operation;
    request->tag = ++c->tag;
    request->key = c->key;
    return request;
}

static void stop(ls_checkpointer *c, ls_action_kind kind, ls_actions *actions)
{
    c->phase = LS_CHECKPOINTER_STOPPED;
    ls_checkpoint_report *report = &emit(actions, kind)->checkpoint;
    report->key = c->key;
    report->low_watermark = ls_manifest_low_watermark(c->known);
    report->end_step = ls_manifest_end_step(c->known);
}

static void ask_list(ls_checkpointer *c, ls_actions *actions)
{
    ls_store_request *request = emit_request(c, LS_LIST, actions);
    request->key = ls_key_checkpoint(c->greatest, 0, (ls_checkpoint_kind)0);
    request->list_limit = c->protocol->list_limit;
}

static void put(ls_checkpointer *c, ls_actions *actions)
{
    ls_store_request *request = emit_request(c, LS_PUT, actions);
    request->if_absent = true;
    request->body_bytes = c->config.body_bytes;
    if (LS_MUTANT_IS(LS_MUTANT_CHECKPOINT_EARLY)) stop(c, LS_ACTION_CHECKPOINTED, actions);
}

static void read_newest(ls_checkpointer *c, ls_actions *actions)
{
    ls_read_version(c->protocol, c->known, c->search.candidate, emit_request(c, LS_GET, actions));
}

/* Sends the request of the phase, again if it failed. */
static void send(ls_checkpointer *c, ls_actions *actions)
{
    c->wake_ns = LS_NEVER_NS;
    switch ((ls_checkpointer_phase)c->phase) {
    case LS_CHECKPOINTER_NUMBERING: ask_list(c, actions); break;
    case LS_CHECKPOINTER_PUTTING: put(c, actions); break;
    case LS_CHECKPOINTER_SETTLING: emit_request(c, LS_HEAD, actions); break;
    case LS_CHECKPOINTER_FINDING: ls_search_ask(&c->search, c->protocol, emit_request(c, LS_LIST, actions)); break;
    case LS_CHECKPOINTER_READING: read_newest(c, actions); break;
    case LS_CHECKPOINTER_CONFIRMING:
        ls_confirm_version(ls_manifest_version(c->known), emit_request(c, LS_LIST, actions));
        break;
    case LS_CHECKPOINTER_RETRACTING: emit_request(c, LS_DELETE, actions); break;
    case LS_CHECKPOINTER_NEW:
    case LS_CHECKPOINTER_STOPPED: break;
    }
}

static void enter(ls_checkpointer *c, ls_checkpointer_phase phase, ls_actions *actions)
{
    c->phase = (uint8_t)phase;
    c->failures = 0;
    send(c, actions);
}

/* The phase's request is sent again after a while. */
static void try_later(ls_checkpointer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    uint32_t doublings = c->failures < RETRY_DOUBLINGS ? c->failures : RETRY_DOUBLINGS;
    int64_t delay =
        (int64_t)((double)c->config.retry_ns * (double)(1u << doublings) * (0.5 + ls_random_uniform(&c->random)));
    c->failures++;
    c->wake_ns = now_ns + (reply->retry_after_ns > delay ? reply->retry_after_ns : delay);
    emit(actions, LS_ACTION_WAKE)->wake_ns = c->wake_ns;
}

static void search(ls_checkpointer *c, ls_actions *actions)
{
    ls_search_start(&c->search, c->protocol, ls_manifest_version(c->known));
    enter(c, LS_CHECKPOINTER_FINDING, actions);
}

static void numbers_listed(ls_checkpointer *c, const ls_store_reply *reply, ls_actions *actions)
{
    if (reply->list_count > 0 && reply->list_last.number > c->greatest) c->greatest = reply->list_last.number;
    if (reply->list_count > 0 && reply->list_truncated) {
        send(c, actions);
        return;
    }
    uint64_t number = ls_checkpoint_next_number(c->greatest, (uint32_t)ls_random_next(&c->random));
    c->key = ls_key_checkpoint(number, c->config.step, c->config.kind);
    enter(c, LS_CHECKPOINTER_PUTTING, actions);
}

static void put_replied(ls_checkpointer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    switch (reply->status) {
    case LS_REPLY_OK: search(c, actions); return;
    case LS_REPLY_THROTTLED:
    case LS_REPLY_UNAVAILABLE: try_later(c, reply, now_ns, actions); return;
    default: enter(c, LS_CHECKPOINTER_SETTLING, actions); return;
    }
}

/* Of our size under our name: ours. Absent: the put may yet land, which does not matter, for ours is the only one of
 * that name. */
static void settle_replied(ls_checkpointer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_NOT_FOUND) {
        c->phase = LS_CHECKPOINTER_PUTTING;
        try_later(c, reply, now_ns, actions);
    } else if (reply->object_bytes == c->config.body_bytes) {
        search(c, actions);
    } else {
        c->greatest = c->key.number;
        enter(c, LS_CHECKPOINTER_NUMBERING, actions);
    }
}

static void judge(ls_checkpointer *c, ls_actions *actions)
{
    bool there =
        c->config.step >= ls_manifest_low_watermark(c->known) && c->config.step <= ls_manifest_end_step(c->known);
    if (there || LS_MUTANT_IS(LS_MUTANT_PIN_UNCHECKED))
        stop(c, LS_ACTION_CHECKPOINTED, actions);
    else
        enter(c, LS_CHECKPOINTER_RETRACTING, actions);
}

static void newest_is_known(ls_checkpointer *c, ls_actions *actions)
{
    if (c->protocol->floor_check && ls_manifest_version(c->known) > 0)
        enter(c, LS_CHECKPOINTER_CONFIRMING, actions);
    else
        judge(c, actions);
}

static void search_replied(ls_checkpointer *c, const ls_store_reply *reply, ls_actions *actions)
{
    if (ls_search_answer(&c->search, reply) == LS_SEARCH_ON)
        send(c, actions);
    else if (c->search.candidate == ls_manifest_version(c->known))
        newest_is_known(c, actions);
    else
        enter(c, LS_CHECKPOINTER_READING, actions);
}

static void read_replied(ls_checkpointer *c, const ls_store_reply *reply, ls_actions *actions)
{
    if (reply->status == LS_REPLY_NOT_FOUND) { /* deleted meanwhile: newer ones exist */
        search(c, actions);
    } else if (reply->manifest == NULL) { /* the tail was too short */
        ls_store_request *request = emit_request(c, LS_GET, actions);
        request->key = ls_key_manifest(c->search.candidate);
        request->range = LS_RANGE_SUFFIX;
        request->range_bytes = reply->needed_bytes;
        request->known = c->known;
    } else {
        ls_manifest_release(c->known);
        c->known = reply->manifest;
        newest_is_known(c, actions);
    }
}

/* A floor above: what we read is void or old. From the floor, then. */
static ls_result confirm_replied(ls_checkpointer *c, const ls_store_reply *reply, ls_actions *actions)
{
    if (reply->list_count == 0) {
        judge(c, actions);
        return LS_OK;
    }
    ls_manifest *nothing = ls_manifest_new_empty();
    if (nothing == NULL) return LS_ERROR_MEMORY;
    ls_manifest_release(c->known);
    c->known = nothing;
    search(c, actions);
    return LS_OK;
}

static bool is_answer(const ls_checkpointer *c, ls_reply_status status)
{
    switch ((ls_checkpointer_phase)c->phase) {
    case LS_CHECKPOINTER_PUTTING: return true;
    case LS_CHECKPOINTER_SETTLING:
    case LS_CHECKPOINTER_FINDING:
    case LS_CHECKPOINTER_READING:
    case LS_CHECKPOINTER_RETRACTING: return status == LS_REPLY_OK || status == LS_REPLY_NOT_FOUND;
    default: return status == LS_REPLY_OK;
    }
}

static ls_result replied(ls_checkpointer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_DENIED || reply->status == LS_REPLY_INVALID) {
        stop(c, LS_ACTION_FAILED, actions);
        return LS_OK;
    }
    bool list_without =
        c->phase == LS_CHECKPOINTER_FINDING && reply->status == LS_REPLY_NOT_FOUND && c->search.probed == 0;
    if (!is_answer(c, reply->status) || list_without) {
        try_later(c, reply, now_ns, actions);
        return LS_OK;
    }
    switch ((ls_checkpointer_phase)c->phase) {
    case LS_CHECKPOINTER_NUMBERING: numbers_listed(c, reply, actions); break;
    case LS_CHECKPOINTER_PUTTING: put_replied(c, reply, now_ns, actions); break;
    case LS_CHECKPOINTER_SETTLING: settle_replied(c, reply, now_ns, actions); break;
    case LS_CHECKPOINTER_FINDING: search_replied(c, reply, actions); break;
    case LS_CHECKPOINTER_READING: read_replied(c, reply, actions); break;
    case LS_CHECKPOINTER_CONFIRMING: return confirm_replied(c, reply, actions);
    case LS_CHECKPOINTER_RETRACTING: stop(c, LS_ACTION_GAVE_UP, actions); break;
    case LS_CHECKPOINTER_NEW:
    case LS_CHECKPOINTER_STOPPED: break;
    }
    return LS_OK;
}

ls_result ls_checkpointer_step(ls_checkpointer *c, const ls_event *event, ls_actions *actions)
{
    actions->count = 0;
    switch (event->kind) {
    case LS_EVENT_START:
        if (c->phase != LS_CHECKPOINTER_NEW) return LS_ERROR_INVALID;
        enter(c, LS_CHECKPOINTER_NUMBERING, actions);
        return LS_OK;
    case LS_EVENT_TIMER:
        if (c->phase != LS_CHECKPOINTER_STOPPED && event->now_ns >= c->wake_ns) send(c, actions);
        return LS_OK;
    case LS_EVENT_REPLY:
        if (c->phase != LS_CHECKPOINTER_STOPPED && c->wake_ns == LS_NEVER_NS && event->reply->tag == c->tag) {
            return replied(c, event->reply, event->now_ns, actions);
        }
        ls_manifest_release(event->reply->manifest);
        return LS_OK;
    case LS_EVENT_BATCH:
    case LS_EVENT_GO:
    case LS_EVENT_STOP: break;
    }
    return LS_ERROR_INVALID;
}

/* --- life
 * -------------------------------------------------------------------------------------------------------------- */

ls_result ls_checkpointer_init(ls_checkpointer *c, const ls_protocol *protocol, const ls_checkpointer_config *config,
                               const ls_manifest *known, ls_random random)
{
    memset(c, 0, sizeof *c);
    c->phase = LS_CHECKPOINTER_STOPPED;
    if (ls_checkpoint_kind_name(config->kind) == NULL || config->retry_ns < 1) return LS_ERROR_INVALID;
    c->known = known == NULL ? ls_manifest_new_empty() : ls_manifest_retain(known);
    if (c->known == NULL) return LS_ERROR_MEMORY;
    c->protocol = protocol;
    c->config = *config;
    c->random = random;
    c->greatest = config->after_number;
    c->wake_ns = LS_NEVER_NS;
    c->phase = LS_CHECKPOINTER_NEW;
    return LS_OK;
}

void ls_checkpointer_copy(const ls_checkpointer *c, ls_checkpointer *copy)
{
    *copy = *c;
    ls_manifest_retain(copy->known);
}

void ls_checkpointer_clear(ls_checkpointer *c)
{
    ls_manifest_release(c->known);
    memset(c, 0, sizeof *c);
    c->phase = LS_CHECKPOINTER_STOPPED;
}

void ls_checkpoint_release(const ls_key *key, ls_store_request *request)
{
    memset(request, 0, sizeof *request);
    request->operation = LS_DELETE;
    request->key = *key;
}
