/* consumer.c - following, prefetching, handing on in order (see consumer.h).
 *
 * Atomic visibility needs no code here: the only steps that are ever fetched are those that a manifest lists, and a manifest
 * lists a batch whole or not at all. Order needs little: fetches finish as they like, steps are handed on from the cursor.
 */
#include "manifest/consumer.h"

#include "manifest/mutant.h"

#include <string.h>

#define TAG_DATA UINT32_C(0x80000000)
#define TAG_MASK UINT32_C(0x7fffffff)
#define ACTIONS_RESERVE 2u /* room kept for a manifest request and a wake */

ls_result ls_consumer_init(ls_consumer *c, const ls_protocol *protocol, const ls_consumer_config *config, uint64_t first_step)
{
    memset(c, 0, sizeof *c);
    uint32_t least = config->on_demand ? 0 : 1, most = config->on_demand ? LS_CONSUMER_WINDOW_MAX - 1 : LS_CONSUMER_WINDOW_MAX;
    if (config->window < least || config->window > most) return LS_ERROR_INVALID;
    c->protocol = protocol;
    c->config = *config;
    c->cursor = c->fetch_end = c->asked_end = first_step;
    c->wake_ns = c->poll_at_ns = c->retry_at_ns = LS_NEVER_NS;
    c->known = ls_manifest_new_empty();
    return c->known == NULL ? LS_ERROR_MEMORY : LS_OK;
}

void ls_consumer_clear(ls_consumer *c)
{
    ls_manifest_release(c->known);
    ls_manifest_release(c->unconfirmed);
    memset(c, 0, sizeof *c);
    c->stopped = true;
}

static ls_action *emit(ls_actions *actions, ls_action_kind kind)
{
    ls_action *action = &actions->item[actions->count < LS_ACTIONS_MAX ? actions->count++ : LS_ACTIONS_MAX - 1];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    return action;
}

static void stop(ls_consumer *c, ls_action_kind why, ls_actions *actions)
{
    c->stopped = true;
    emit(actions, why);
}

static ls_fetch *fetch_of(ls_consumer *c, uint64_t step)
{
    return &c->fetch[step % LS_CONSUMER_WINDOW_MAX];
}

/* --- the manifest ---------------------------------------------------------------------------------------------------- */

static ls_store_request *manifest_request(ls_consumer *c, ls_actions *actions)
{
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    request->tag = c->tag = (c->tag + 1) & TAG_MASK;
    return request;
}

static void search_from(ls_consumer *c, uint64_t version, ls_actions *actions)
{
    c->finding = true;
    c->poll_at_ns = LS_NEVER_NS;
    ls_search_start(&c->search, c->protocol, version);
    ls_search_ask(&c->search, c->protocol, manifest_request(c, actions));
}

static void look(ls_consumer *c, ls_actions *actions)
{
    search_from(c, ls_manifest_version(c->known), actions);
}

static bool is_looking(const ls_consumer *c)
{
    return c->finding || c->reading || c->confirming;
}

/* The look is over; what it found (NULL: nothing new) is what we know from now on. */
static void look_is_over(ls_consumer *c, const ls_manifest *found, int64_t now_ns)
{
    c->finding = c->reading = c->confirming = false;
    c->poll_at_ns = now_ns + c->config.poll_ns;
    if (found == NULL) return;
    ls_manifest_release(c->known);
    c->known = found;
}

static void look_failed(ls_consumer *c, int64_t now_ns)
{
    ls_manifest_release(c->unconfirmed);
    c->unconfirmed = NULL;
    look_is_over(c, NULL, now_ns);
}

/* The newest version there seems to be is known or has been read into c->unconfirmed. */
static void newest_is_here(ls_consumer *c, int64_t now_ns, ls_actions *actions)
{
    c->finding = c->reading = false;
    if (c->protocol->floor_check && c->search.candidate != 0) {
        c->confirming = true;
        ls_confirm_version(c->search.candidate, manifest_request(c, actions));
        return;
    }
    look_is_over(c, c->unconfirmed, now_ns);
    c->unconfirmed = NULL;
    c->started = true;
}

static void search_replied(ls_consumer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    ls_search_state state = ls_search_answer(&c->search, reply);
    if (state == LS_SEARCH_FAILED) {
        look_failed(c, now_ns);
    } else if (state == LS_SEARCH_ON) {
        ls_search_ask(&c->search, c->protocol, manifest_request(c, actions));
    } else if (c->search.candidate == ls_manifest_version(c->known)) {
        newest_is_here(c, now_ns, actions);
    } else {
        c->finding = false;
        c->reading = true;
        ls_read_version(c->protocol, c->known, c->search.candidate, manifest_request(c, actions));
    }
}

static void read_replied(ls_consumer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status != LS_REPLY_OK) {
        look_failed(c, now_ns);
    } else if (reply->manifest == NULL) { /* the tail was too short */
        ls_store_request *request = manifest_request(c, actions);
        request->operation = LS_GET;
        request->key = ls_key_manifest(c->search.candidate);
        request->range = LS_RANGE_SUFFIX;
        request->range_bytes = reply->needed_bytes;
        request->known = c->known;
    } else {
        c->unconfirmed = reply->manifest;
        newest_is_here(c, now_ns, actions);
    }
}

static void confirm_replied(ls_consumer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status != LS_REPLY_OK) {
        look_failed(c, now_ns);
        return;
    }
    c->confirming = false;
    const ls_manifest *found = c->unconfirmed;
    c->unconfirmed = NULL;
    if (reply->list_count == 0) {
        look_is_over(c, found, now_ns);
        c->started = true;
    } else { /* a floor lies above: what we took for the newest is void or old; look again from the floor */
        ls_manifest_release(found);
        search_from(c, 0, actions);
    }
}

static void manifest_replied(ls_consumer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    if (reply->status == LS_REPLY_DENIED || reply->status == LS_REPLY_INVALID) stop(c, LS_ACTION_FAILED, actions);
    else if (c->finding) search_replied(c, reply, now_ns, actions);
    else if (c->reading) read_replied(c, reply, now_ns, actions);
    else confirm_replied(c, reply, now_ns, actions);
}

/* --- the data -------------------------------------------------------------------------------------------------------- */

static void ask_fetch(ls_consumer *c, uint64_t step, ls_actions *actions)
{
    ls_fetch *fetch = fetch_of(c, step);
    ls_store_request *request = &emit(actions, LS_ACTION_REQUEST)->request;
    request->operation = LS_GET;
    request->tag = TAG_DATA | ((uint32_t)step & TAG_MASK);
    request->key = ls_key_data(fetch->entry.producer, fetch->entry.epoch, fetch->entry.sequence);
    request->slice = fetch->slice;
    if (c->config.whole_objects) {
        fetch->state = LS_FETCH_SLICE;
        request->range = LS_RANGE_WHOLE;
        request->for_slice = true;
    } else if (fetch->slice.bytes == 0) {
        fetch->state = LS_FETCH_FOOTER;
        request->range = LS_RANGE_SUFFIX;
        request->range_bytes = fetch->entry.footer_bytes;
    } else {
        fetch->state = LS_FETCH_SLICE;
        request->range = LS_RANGE_SPAN;
        request->range_offset = fetch->slice.offset;
        request->range_bytes = fetch->slice.bytes;
    }
}

static bool room(const ls_actions *actions)
{
    return actions->count + ACTIONS_RESERVE < LS_ACTIONS_MAX;
}

/* One past the last step that may be fetched by now; on demand the window begins after what has been asked for. */
static uint64_t fetch_limit(const ls_consumer *c)
{
    if (!c->config.on_demand) return c->cursor + c->config.window;
    uint64_t wanted = c->asked_end + c->config.window, room_end = c->cursor + LS_CONSUMER_WINDOW_MAX;
    return wanted < room_end ? wanted : room_end;
}

/* Begins as many fetches as window, manifest and the actions of one step allow; the rest follows with the next event. */
static void prefetch(ls_consumer *c, int64_t now_ns, ls_actions *actions)
{
    for (uint64_t step = c->cursor; step < c->fetch_end && now_ns >= c->retry_at_ns && room(actions); step++) {
        if (fetch_of(c, step)->state == LS_FETCH_WAITING) ask_fetch(c, step, actions);
    }
    while (c->fetch_end < fetch_limit(c) && room(actions)) {
        ls_entry entry;
        if (!ls_manifest_entry(c->known, c->fetch_end, &entry)) {
            bool guesses = LS_MUTANT_IS(LS_MUTANT_READ_PAST_END) && c->fetch_end > 0 &&
                           ls_manifest_entry(c->known, c->fetch_end - 1, &entry);
            if (!guesses) return;
            entry.sequence++;
            entry.source_begin++;
        }
        *fetch_of(c, c->fetch_end) = (ls_fetch){
            .entry = entry, .asked_ns = now_ns,
            .slice = {.data_rank = c->config.data_rank, .context_rank = c->config.context_rank}};
        ask_fetch(c, c->fetch_end++, actions);
    }
}

static void data_replied(ls_consumer *c, const ls_store_reply *reply, int64_t now_ns, ls_actions *actions)
{
    uint64_t step = c->cursor + (((reply->tag & TAG_MASK) - (uint32_t)c->cursor) & TAG_MASK);
    ls_fetch *fetch = fetch_of(c, step);
    bool awaited = step < c->fetch_end && (fetch->state == LS_FETCH_FOOTER || fetch->state == LS_FETCH_SLICE);
    if (!awaited) return;
    switch (reply->status) {
    case LS_REPLY_OK: break;
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: stop(c, LS_ACTION_FAILED, actions); return;
    case LS_REPLY_NOT_FOUND: /* named by a manifest and absent: reclaimed, as a newer manifest will say */
        stop(c, LS_ACTION_BEHIND, actions);
        return;
    default:
        fetch->state = LS_FETCH_WAITING;
        c->retry_at_ns = now_ns + (reply->retry_after_ns > c->config.poll_ns ? reply->retry_after_ns : c->config.poll_ns);
        return;
    }
    if (fetch->state == LS_FETCH_FOOTER && reply->slice.bytes > 0) {
        fetch->slice = reply->slice;
        ask_fetch(c, step, actions);
    } else {
        if (c->config.whole_objects) fetch->slice = reply->slice;
        fetch->state = LS_FETCH_READY; /* the slice is here, or the rank's slice is empty */
        fetch->ready_ns = now_ns;
    }
}

static void hand_on(ls_consumer *c, ls_actions *actions)
{
    uint64_t end = c->config.on_demand && c->asked_end < c->fetch_end ? c->asked_end : c->fetch_end;
    while (c->cursor < end && fetch_of(c, c->cursor)->state == LS_FETCH_READY && room(actions)) {
        ls_fetch *fetch = fetch_of(c, c->cursor);
        emit(actions, LS_ACTION_STEP)->step =
            (ls_step_report){.step = c->cursor, .entry = fetch->entry, .slice = fetch->slice, .asked_ns = fetch->asked_ns,
                             .ready_ns = fetch->ready_ns};
        fetch->state = LS_FETCH_EMPTY;
        c->cursor++;
    }
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static bool caught_up(const ls_consumer *c)
{
    return c->cursor >= ls_manifest_end_step(c->known);
}

/* Everything that the newest known manifest lists is being fetched: only a newer one can bring more. */
static bool wants_look(const ls_consumer *c)
{
    return !is_looking(c) && c->fetch_end >= ls_manifest_end_step(c->known);
}

/* What follows from the state the event left behind. A full action list is continued by a wake that is due at once. */
static void go_on(ls_consumer *c, int64_t now_ns, ls_actions *actions)
{
    if (c->stopped) return;
    if (c->started && c->cursor < ls_manifest_trim_step(c->known)) {
        if (LS_MUTANT_IS(LS_MUTANT_SKIP_TRIMMED)) {
            c->cursor = c->fetch_end = ls_manifest_trim_step(c->known);
            return;
        }
        stop(c, LS_ACTION_BEHIND, actions);
        return;
    }
    hand_on(c, actions);
    prefetch(c, now_ns, actions);
    if (!is_looking(c) && c->started && caught_up(c) && (!c->config.follow || c->stopping)) {
        stop(c, LS_ACTION_FINISHED, actions);
        return;
    }
    if (wants_look(c) && now_ns >= c->poll_at_ns) look(c, actions);
}

static void tell_wake(ls_consumer *c, int64_t now_ns, ls_actions *actions)
{
    int64_t wanted = wants_look(c) ? c->poll_at_ns : LS_NEVER_NS;
    for (uint64_t step = c->cursor; step < c->fetch_end; step++) {
        if (fetch_of(c, step)->state == LS_FETCH_WAITING && c->retry_at_ns < wanted) wanted = c->retry_at_ns;
    }
    if (!room(actions)) wanted = now_ns;
    if (c->stopped) wanted = LS_NEVER_NS;
    if (wanted == c->wake_ns) return;
    c->wake_ns = wanted;
    emit(actions, LS_ACTION_WAKE)->wake_ns = wanted;
}

ls_result ls_consumer_step(ls_consumer *c, const ls_event *event, ls_actions *actions)
{
    actions->count = 0;
    int64_t now_ns = event->now_ns;
    if (c->stopped) {
        if (event->kind == LS_EVENT_REPLY) ls_manifest_release(event->reply->manifest);
        return LS_OK;
    }
    switch (event->kind) {
    case LS_EVENT_START: look(c, actions); break;
    case LS_EVENT_TIMER:
        if (now_ns >= c->wake_ns) c->wake_ns = LS_NEVER_NS;
        break;
    case LS_EVENT_STOP: c->stopping = true; break;
    case LS_EVENT_REPLY:
        if (ls_consumer_tag_is_data(event->reply->tag)) {
            data_replied(c, event->reply, now_ns, actions);
        } else if (event->reply->tag == c->tag && is_looking(c)) {
            manifest_replied(c, event->reply, now_ns, actions);
        } else {
            ls_manifest_release(event->reply->manifest);
        }
        break;
    case LS_EVENT_GO:
        if (!c->config.on_demand) return LS_ERROR_INVALID;
        c->asked_end++;
        break;
    case LS_EVENT_BATCH: return LS_ERROR_INVALID;
    }
    go_on(c, now_ns, actions);
    tell_wake(c, now_ns, actions);
    return LS_OK;
}
