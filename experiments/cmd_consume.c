/* cmd_consume.c - `lakestream consume`: one consumer machine on the real-time loop; its slices go out in step order.
 *
 * The machine prefetches, so slices arrive in any order. Each is kept in the place of its step until the machine hands
 * the step on; at most `window` are kept, whatever the lake holds.
 *
 * With --checkpoint it makes checkpoints on the same loop, each after the slices below its step are written. The kind
 * `named` makes a moving one: when the next is done, those before it are deleted. With --from-checkpoint it first pins
 * the checkpoint it begins at, and lets the pin go when a checkpoint of its own has taken its place, or at the end.
 */
#include "backend/loop.h"
#include "experiments/batch_source.h"
#include "experiments/checkpoints.h"
#include "experiments/commands.h"
#include "experiments/dataplane.h"
#include "manifest/consumer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEARTBEAT_NS INT64_C(100000000)
#define COMPLAIN_NS  (5 * LS_NANOSECONDS_PER_SECOND)
#define RELEASE_KIND (LS_CHECKPOINT_LOOP_KIND + 1) /* requests that delete checkpoints that have been replaced */

enum { TIMER_MACHINE, TIMER_HEARTBEAT };

/* How a step is told: as a line, as JSON, or by its bytes alone. */
typedef enum telling { TELL_LINE, TELL_JSON, TELL_BYTES } telling;

typedef enum ending {
    ENDING_NONE,
    ENDING_FINISHED,
    ENDING_ENOUGH,
    ENDING_BEHIND,
    ENDING_FAILED,
    ENDING_STOPPED,
    ENDING_REFUSED, /* the checkpoint to begin at may be reclaimed already */
    ENDING_CHECKPOINT_FAILED
} ending;

/* The slice of a step that has arrived and not been handed on. */
typedef struct kept_slice {
    uint8_t *bytes;
    uint64_t length, capacity;
    bool expected; /* a read by range is under way: what arrives is the slice, not a footer */
} kept_slice;

/* A checkpoint of ours in the lake. */
typedef struct held_checkpoint {
    ls_key key;
    bool replaced; /* to be deleted */
    bool deleted;
} held_checkpoint;

typedef struct consuming {
    const ls_arguments *arguments;
    ls_lake lake;
    ls_loop *loop;
    ls_protocol protocol;
    ls_consumer_config config;
    ls_consumer machine;
    ls_signals signals;
    kept_slice kept[LS_CONSUMER_WINDOW_MAX]; /* of step s: kept[s % LS_CONSUMER_WINDOW_MAX] */
    bool from_oldest, verifies, shows_progress;
    telling tells;
    FILE *output; /* of the bytes; NULL unless TELL_BYTES */
    const char *output_name;
    uint64_t steps_wanted, until;
    const char *checkpoint_name; /* of those it makes; NULL: none */
    const char *begin_name;      /* of the one it begins at; NULL: none */
    ls_checkpoint_kind checkpoint_kind;
    uint64_t checkpoint_every;
    uint64_t due_step; /* of a checkpoint that waits for the one under way; 0: none */
    ls_checkpoint_run run;
    held_checkpoint *held;
    uint32_t held_count, held_capacity;
    bool begun; /* the machine has been started */
    uint64_t steps, slice_bytes, moved_bytes, manifest_moved_bytes;
    ending end;
    ls_result failure;
    ls_error error;
    int64_t complained_ns;
    char complaint[1024];
} consuming;

/* --- steps
 * --------------------------------------------------------------------------------------------------------------- */

/* A checkpoint that is being made is waited for. */
static void stop_loop(consuming *c, ending end)
{
    c->end = end;
    if (c->run.outcome != LS_CHECKPOINT_UNDER_WAY) ls_loop_stop(c->loop);
}

static kept_slice *kept_of(consuming *c, uint64_t step) { return &c->kept[step % LS_CONSUMER_WINDOW_MAX]; }

static ls_result verify(consuming *c, const ls_step_report *step, const kept_slice *kept)
{
    const ls_entry *entry = &step->entry;
    uint64_t difference = ls_synthetic_difference(entry->producer, entry->source_begin, c->config.data_rank,
                                                  c->config.context_rank, kept->bytes, kept->length);
    if (difference == UINT64_MAX) return LS_OK;
    return ls_fail(&c->error, LS_ERROR_CORRUPT,
                   "step %" PRIu64 ": the slice of producer %" PRIu64 ", source offset %" PRIu64
                   " differs from the synthetic source at its byte %" PRIu64,
                   step->step, entry->producer, entry->source_begin, difference);
}

static ls_result output_failed(consuming *c)
{
    return ls_fail(&c->error, LS_ERROR_IO, "%s: %s", c->output_name, strerror(errno));
}

static ls_result tell(consuming *c, const ls_step_report *step, const kept_slice *kept)
{
    const ls_entry *entry = &step->entry;
    const char *format = c->tells == TELL_JSON
                             ? "{\"step\":%" PRIu64 ",\"producer\":%" PRIu64 ",\"epoch\":%" PRIu32
                               ",\"sequence\":%" PRIu64 ",\"source_begin\":%" PRIu64 ",\"source_end\":%" PRIu64
                               ",\"bytes\":%" PRIu64 ",\"crc32c\":\"%08" PRIx32 "\"}\n"
                             : "step %" PRIu64 " producer %" PRIu64 " epoch %" PRIu32 " sequence %" PRIu64
                               " source %" PRIu64 "..%" PRIu64 " bytes %" PRIu64 " crc32c %08" PRIx32 "\n";
    if (c->tells == TELL_BYTES) {
        bool written = kept->length == 0 || fwrite(kept->bytes, 1, (size_t)kept->length, c->output) == kept->length;
        return written && (!c->config.follow || fflush(c->output) == 0) ? LS_OK : output_failed(c);
    }
    int printed = printf(format, step->step, entry->producer, entry->epoch, entry->sequence, entry->source_begin,
                         entry->source_end, kept->length, step->slice.crc32c);
    return printed >= 0 && (!c->config.follow || fflush(stdout) == 0) ? LS_OK : output_failed(c);
}

static ls_result make_checkpoint(consuming *c, ls_checkpoint_kind kind, const char *name, uint64_t step)
{
    ls_checkpoint content;
    ls_result result = ls_checkpoint_make(&content, kind, name, 1, 1, &step, &c->error);
    if (result != LS_OK) return result;
    return ls_checkpoint_run_start(&c->run, c->loop, &c->protocol, &content, c->machine.known, &c->error);
}

/* What lies below the step must be safe before a checkpoint says so. (What cannot be synchronised, a pipe, is another's
 * to save.) */
static ls_result save_output(consuming *c)
{
    FILE *output = c->output != NULL ? c->output : stdout;
    if (fflush(output) != 0) return output_failed(c);
    if (fdatasync(fileno(output)) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return output_failed(c);
    return LS_OK;
}

static ls_result checkpoint_if_due(consuming *c, uint64_t next_step)
{
    if (c->checkpoint_name == NULL || next_step % c->checkpoint_every != 0) return LS_OK;
    c->due_step = c->run.outcome == LS_CHECKPOINT_UNDER_WAY ? next_step : 0;
    if (c->due_step != 0) return LS_OK;
    ls_result result = save_output(c);
    return result == LS_OK ? make_checkpoint(c, c->checkpoint_kind, c->checkpoint_name, next_step) : result;
}

static ls_result hand_on(consuming *c, const ls_step_report *step)
{
    kept_slice *kept = kept_of(c, step->step);
    if (c->end != ENDING_NONE) return LS_OK; /* the last wanted step has been handed on in this breath */
    if (kept->length != step->slice.bytes) {
        return ls_fail(&c->error, LS_ERROR_CORRUPT, "step %" PRIu64 ": %" PRIu64 " bytes arrived, %" PRIu64 " are due",
                       step->step, kept->length, step->slice.bytes);
    }
    ls_result result = c->verifies ? verify(c, step, kept) : LS_OK;
    if (result == LS_OK) result = tell(c, step, kept);
    if (result != LS_OK) return result;
    c->steps++;
    c->slice_bytes += kept->length;
    kept->length = 0;
    result = checkpoint_if_due(c, step->step + 1);
    if (result == LS_OK && (c->steps == c->steps_wanted || step->step + 1 == c->until)) stop_loop(c, ENDING_ENOUGH);
    return result;
}

/* --- the machine's wishes
 * -------------------------------------------------------------------------------------------------- */

static ls_result ask(consuming *c, const ls_store_request *request)
{
    if (ls_consumer_tag_is_data(request->tag)) {
        kept_slice *kept = kept_of(c, request->tag);
        kept->expected = request->range != LS_RANGE_SUFFIX;
        kept->length = 0;
    }
    return ls_loop_submit(c->loop, request, 0, request->tag);
}

static ls_result feed(consuming *c, const ls_event *event);

/* Asked for the oldest step there is, the machine learns from the manifest which one that is: the first that is listed;
 * or, should a reclaimer have deleted that and not yet trimmed, the one at the watermark. */
static ls_result fall_behind(consuming *c, int64_t now_ns)
{
    uint64_t oldest = ls_manifest_trim_step(c->machine.known);
    if (oldest <= c->machine.cursor) oldest = ls_manifest_low_watermark(c->machine.known);
    if (!c->from_oldest || c->steps > 0 || oldest <= c->machine.cursor) {
        stop_loop(c, ENDING_BEHIND);
        return LS_OK;
    }
    ls_consumer_clear(&c->machine);
    ls_result result = ls_consumer_init(&c->machine, &c->protocol, &c->config, oldest);
    return result == LS_OK ? feed(c, &(ls_event){.kind = LS_EVENT_START, .now_ns = now_ns}) : result;
}

static ls_result carry_out(consuming *c, const ls_action *action, int64_t now_ns)
{
    switch (action->kind) {
    case LS_ACTION_REQUEST: return ask(c, &action->request);
    case LS_ACTION_WAKE: return ls_loop_timer(c->loop, action->wake_ns, TIMER_MACHINE, 0, 0);
    case LS_ACTION_STEP: return hand_on(c, &action->step);
    case LS_ACTION_BEHIND: return fall_behind(c, now_ns);
    case LS_ACTION_FINISHED: stop_loop(c, ENDING_FINISHED); break;
    case LS_ACTION_FAILED: stop_loop(c, ENDING_FAILED); break;
    case LS_ACTION_CHECKPOINTED:
    case LS_ACTION_GAVE_UP:
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_PUBLISHED:
    case LS_ACTION_ATTEMPT:
    case LS_ACTION_JOINED:
    case LS_ACTION_FENCED: break;
    }
    return LS_OK;
}

static ls_result feed(consuming *c, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_consumer_step(&c->machine, event, &actions);
    for (uint32_t i = 0; i < actions.count && result == LS_OK; i++)
        result = carry_out(c, &actions.item[i], event->now_ns);
    return result;
}

/* --- checkpoints
 * ------------------------------------------------------------------------------------------------------------ */

static ls_result hold(consuming *c, const ls_key *key)
{
    if (c->held_count == c->held_capacity) {
        uint32_t capacity = c->held_capacity == 0 ? 4 : 2 * c->held_capacity;
        held_checkpoint *held = ls_reallocate(c->held, capacity * sizeof *held);
        if (held == NULL) return ls_fail(&c->error, LS_ERROR_MEMORY, "out of memory");
        c->held = held;
        c->held_capacity = capacity;
    }
    c->held[c->held_count++] = (held_checkpoint){.key = *key};
    return LS_OK;
}

/* All that was held so far has been replaced. What a failed delete leaves is tried again at the end. */
static ls_result release_held(consuming *c)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < c->held_count && result == LS_OK; i++) {
        ls_store_request request;
        if (c->held[i].deleted || c->held[i].replaced) continue;
        c->held[i].replaced = true;
        ls_checkpoint_release(&c->held[i].key, &request);
        result = ls_loop_submit(c->loop, &request, RELEASE_KIND, i);
    }
    return result;
}

static void release_replied(consuming *c, uint32_t index, const ls_store_reply *reply)
{
    c->held[index].deleted = reply->status == LS_REPLY_OK || reply->status == LS_REPLY_NOT_FOUND;
}

static ls_result begin(consuming *c, int64_t now_ns)
{
    c->begun = true;
    if (c->machine.cursor >= c->until) {
        stop_loop(c, ENDING_ENOUGH);
        return LS_OK;
    }
    return feed(c, &(ls_event){.kind = LS_EVENT_START, .now_ns = now_ns});
}

static ls_result checkpoint_done(consuming *c, int64_t now_ns)
{
    bool is_pin = c->run.content.kind == LS_CHECKPOINT_PIN;
    ls_result result = is_pin ? LS_OK : release_held(c);
    if (result == LS_OK && c->run.content.pinned) result = hold(c, &c->run.report.key);
    return result == LS_OK && !c->begun ? begin(c, now_ns) : result;
}

/* Too late for a checkpoint of that step: one to begin at is refused, one on the way is left out. */
static ls_result checkpoint_given_up(consuming *c, int64_t now_ns)
{
    uint64_t step = c->run.report.key.sequence;
    if (c->run.content.kind == LS_CHECKPOINT_PIN) {
        stop_loop(c, ENDING_REFUSED);
        return LS_OK;
    }
    fprintf(stderr, "lakestream consume: no checkpoint of step %" PRIu64 ": the watermark stands at %" PRIu64 "\n",
            step, c->run.report.low_watermark);
    return c->begun ? LS_OK : begin(c, now_ns);
}

static ls_result checkpoint_moved(consuming *c, int64_t now_ns, const ls_store_reply *reply)
{
    if (c->run.outcome != LS_CHECKPOINT_UNDER_WAY) {
        if (reply != NULL) ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    ls_result result =
        reply == NULL ? ls_checkpoint_run_timer(&c->run, now_ns) : ls_checkpoint_run_reply(&c->run, now_ns, reply);
    if (result != LS_OK) return result;
    switch (c->run.outcome) {
    case LS_CHECKPOINT_UNDER_WAY:
    case LS_CHECKPOINT_IDLE: return LS_OK;
    case LS_CHECKPOINT_DONE: result = checkpoint_done(c, now_ns); break;
    case LS_CHECKPOINT_GAVE_UP: result = checkpoint_given_up(c, now_ns); break;
    case LS_CHECKPOINT_FAILED:
        c->failure = reply == NULL ? LS_ERROR_IO : ls_refusal(reply);
        ls_fail(&c->error, c->failure, "%s", ls_loop_error(c->loop));
        stop_loop(c, ENDING_CHECKPOINT_FAILED);
        break;
    }
    if (result == LS_OK && c->due_step != 0 && c->end != ENDING_CHECKPOINT_FAILED)
        result = checkpoint_if_due(c, c->due_step);
    if (c->end != ENDING_NONE && c->run.outcome != LS_CHECKPOINT_UNDER_WAY) ls_loop_stop(c->loop);
    return result;
}

/* --- the loop's calls
 * ------------------------------------------------------------------------------------------------------- */

static ls_result on_data(void *context, uint32_t entity, const ls_key *key, uint64_t offset, const uint8_t *bytes,
                         uint64_t length)
{
    (void)key;
    (void)offset;
    consuming *c = context;
    kept_slice *kept = kept_of(c, entity);
    if (!ls_consumer_tag_is_data(entity) || !kept->expected) return LS_OK;
    if (length > kept->capacity) {
        uint8_t *larger = ls_reallocate(kept->bytes, (size_t)length);
        if (larger == NULL)
            return ls_fail(&c->error, LS_ERROR_MEMORY, "out of memory for a slice of %" PRIu64 " bytes", length);
        kept->bytes = larger;
        kept->capacity = length;
    }
    memcpy(kept->bytes, bytes, (size_t)length);
    kept->length = length;
    return LS_OK;
}

/* A step that is read ahead may be the one that fails. */
static void refused(consuming *c, uint32_t tag, uint64_t cursor, const ls_store_reply *reply)
{
    c->failure = ls_refusal(reply);
    if (!ls_consumer_tag_is_data(tag)) {
        ls_fail(&c->error, c->failure, "%s", ls_loop_error(c->loop));
        return;
    }
    uint64_t step = cursor + ((tag - (uint32_t)cursor) & UINT32_C(0x7fffffff));
    ls_fail(&c->error, c->failure, "step %" PRIu64 ": %s", step, ls_loop_error(c->loop));
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    consuming *c = context;
    if (kind == LS_CHECKPOINT_LOOP_KIND) return checkpoint_moved(c, now_ns, reply);
    if (kind == RELEASE_KIND) {
        release_replied(c, entity, reply);
        return LS_OK;
    }
    if (c->end != ENDING_NONE) {
        ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    if (ls_consumer_tag_is_data(entity))
        c->moved_bytes += reply->moved_bytes;
    else
        c->manifest_moved_bytes += reply->moved_bytes;
    uint64_t cursor = c->machine.cursor;
    ls_result result = feed(c, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
    if (c->end == ENDING_FAILED) refused(c, entity, cursor, reply);
    return result;
}

static void show_progress(const consuming *c)
{
    if (!c->shows_progress) return;
    fprintf(stderr, "\r\033[K%" PRIu64 " steps, next %" PRIu64 " of %" PRIu64, c->steps, c->machine.cursor,
            ls_manifest_end_step(c->machine.known));
}

static void complain(consuming *c, int64_t now_ns)
{
    const char *message = ls_loop_error(c->loop);
    if (message[0] == '\0' || now_ns - c->complained_ns < COMPLAIN_NS || strcmp(message, c->complaint) == 0) return;
    snprintf(c->complaint, sizeof c->complaint, "%s", message);
    c->complained_ns = now_ns;
    fprintf(stderr, "%slakestream consume: going on after: %s\n", c->shows_progress ? "\r\033[K" : "", message);
}

static ls_result beat(consuming *c, int64_t now_ns)
{
    show_progress(c);
    complain(c, now_ns);
    return ls_loop_timer(c->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
}

static ls_result on_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    consuming *c = context;
    return ls_checkpoint_run_body(&c->run, key, bytes, size);
}

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)entity;
    (void)argument;
    consuming *c = context;
    if (kind == LS_CHECKPOINT_LOOP_KIND) return checkpoint_moved(c, now_ns, NULL);
    if (ls_signals_count(&c->signals) > 1) ls_loop_stop(c->loop); /* not even the checkpoint under way is waited for */
    if (c->end != ENDING_NONE) return c->run.outcome == LS_CHECKPOINT_UNDER_WAY ? beat(c, now_ns) : LS_OK;
    if (kind == TIMER_MACHINE) return feed(c, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
    if (ls_signals_count(&c->signals) > 0) {
        stop_loop(c, ENDING_STOPPED);
        return LS_OK;
    }
    return beat(c, now_ns);
}

/* --- from the command line
 * --------------------------------------------------------------------------------------------------- */

static ls_result parse_rank(consuming *c)
{
    const char *text = ls_argument_text(c->arguments, "rank");
    int end = -1;
    if (text != NULL && strspn(text, "0123456789,") == strlen(text)) {
        sscanf(text, "%9" SCNu32 ",%9" SCNu32 "%n", &c->config.data_rank, &c->config.context_rank, &end);
    }
    if (end >= 0 && text[end] == '\0') return LS_OK;
    return ls_fail(&c->error, LS_ERROR_INVALID, "--rank %.50s: expected data rank and context rank, as in 0,0",
                   text == NULL ? "is missing" : text);
}

static ls_result parse_from(consuming *c, uint64_t *first)
{
    const char *text = ls_argument_text(c->arguments, "from");
    *first = 0;
    c->from_oldest = strcmp(text, "oldest") == 0;
    bool number = text[0] != '\0' && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19;
    if (number) *first = strtoull(text, NULL, 10);
    if (number || c->from_oldest) return LS_OK;
    return ls_fail(&c->error, LS_ERROR_INVALID, "--from %.50s: expected a step, or oldest", text);
}

static ls_result open_output(consuming *c)
{
    c->output_name = ls_argument_text(c->arguments, "output");
    c->tells = c->output_name != NULL ? TELL_BYTES : ls_argument_flag(c->arguments, "json") ? TELL_JSON : TELL_LINE;
    if (c->tells != TELL_BYTES) {
        c->output_name = "standard output";
        return LS_OK;
    }
    bool standard = strcmp(c->output_name, "-") == 0;
    c->output = standard ? stdout : fopen(c->output_name, "wbe");
    if (c->output == NULL) {
        return ls_fail(&c->error, LS_ERROR_INVALID, "--output %.200s cannot be written: %s", c->output_name,
                       strerror(errno));
    }
    if (standard) c->output_name = "standard output";
    return LS_OK;
}

/* Everything pinned of its own name is what earlier runs held; the next checkpoint replaces it. */
static ls_result note_held(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    consuming *c = context;
    bool own = c->checkpoint_name != NULL && strcmp(checkpoint->name, c->checkpoint_name) == 0;
    return own && checkpoint->pinned ? hold(c, key) : LS_OK;
}

static ls_result parse_checkpoints(consuming *c)
{
    const char *kind = ls_argument_text(c->arguments, "checkpoint-kind");
    c->checkpoint_name = ls_argument_text(c->arguments, "checkpoint");
    c->begin_name = ls_argument_text(c->arguments, "from-checkpoint");
    c->checkpoint_every = ls_argument_whole(c->arguments, "checkpoint-every");
    c->checkpoint_kind = strcmp(kind, "auto") == 0 ? LS_CHECKPOINT_AUTO : LS_CHECKPOINT_NAMED;
    if (c->checkpoint_kind == LS_CHECKPOINT_AUTO || strcmp(kind, "named") == 0) return LS_OK;
    return ls_fail(&c->error, LS_ERROR_INVALID, "--checkpoint-kind %.50s: expected auto or named", kind);
}

/* Where to begin, and what earlier runs of this name have left. */
static ls_result find_checkpoints(consuming *c, uint64_t *first)
{
    bool found = false;
    ls_key key;
    ls_result result = LS_OK;
    if (c->begin_name != NULL) result = ls_lake_find_checkpoint(&c->lake, c->begin_name, &found, &key, &c->error);
    if (result == LS_OK && c->checkpoint_name != NULL) result = ls_lake_checkpoints(&c->lake, note_held, c, &c->error);
    if (!found) c->begin_name = NULL;
    if (!found || result != LS_OK) return result;
    *first = key.sequence;
    c->from_oldest = false;
    return LS_OK;
}

static ls_result prepare(consuming *c)
{
    const ls_arguments *arguments = c->arguments;
    uint64_t first = 0;
    ls_result result = parse_rank(c);
    if (result == LS_OK) result = parse_from(c, &first);
    if (result == LS_OK) result = parse_checkpoints(c);
    if (result == LS_OK) result = ls_lake_protocol(arguments, &c->protocol, &c->error);
    bool changes = c->checkpoint_name != NULL || c->begin_name != NULL;
    if (result == LS_OK) result = ls_lake_open(arguments, changes ? LS_LAKE_CHANGE : LS_LAKE_READ, &c->lake, &c->error);
    if (result == LS_OK) result = find_checkpoints(c, &first);
    if (result == LS_OK) result = open_output(c);
    if (result != LS_OK) return result;
    c->config.window = (uint32_t)ls_argument_whole(arguments, "window");
    c->config.whole_objects = ls_argument_flag(arguments, "whole");
    c->config.follow = ls_argument_flag(arguments, "follow");
    c->config.poll_ns = ls_nanoseconds(ls_argument_real(arguments, "poll"));
    c->steps_wanted = ls_argument_given(arguments, "steps") ? ls_argument_whole(arguments, "steps") : UINT64_MAX;
    c->until = ls_argument_given(arguments, "until") ? ls_argument_whole(arguments, "until") : UINT64_MAX;
    c->verifies = ls_argument_flag(arguments, "verify");
    c->shows_progress = isatty(STDERR_FILENO) == 1 && (c->tells == TELL_BYTES || isatty(STDOUT_FILENO) != 1);
    result = ls_consumer_init(&c->machine, &c->protocol, &c->config, first);
    return result == LS_OK ? LS_OK
                           : ls_fail(&c->error, result, "the consumer cannot start: %s", ls_result_name(result));
}

/* A pin bears the name under which a later run finds and replaces it. */
static const char *own_name(const consuming *c)
{
    return c->checkpoint_name != NULL ? c->checkpoint_name : c->begin_name;
}

/* The checkpoint to begin at is pinned first; a moving one stands before the first step is read. */
static ls_result start(consuming *c, int64_t now_ns)
{
    bool moves = c->checkpoint_name != NULL && c->checkpoint_kind == LS_CHECKPOINT_NAMED;
    if (c->begin_name != NULL) return make_checkpoint(c, LS_CHECKPOINT_PIN, own_name(c), c->machine.cursor);
    if (moves) return make_checkpoint(c, c->checkpoint_kind, c->checkpoint_name, c->machine.cursor);
    return begin(c, now_ns);
}

static ls_result run_machine(consuming *c)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply, .body = on_body, .data = on_data};
    c->loop = ls_loop_new(c->lake.store, c->lake.prefix, &handler, c);
    if (c->loop == NULL) {
        return ls_fail(&c->error, LS_ERROR_INVALID, "the backend's prefix is too long, or memory is short");
    }
    ls_result result = ls_signals_open(&c->signals, &c->error);
    int64_t now_ns = ls_loop_now(c->loop);
    c->complained_ns = now_ns;
    if (result == LS_OK) result = start(c, now_ns);
    if (result == LS_OK) result = ls_loop_timer(c->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
    if (result == LS_OK) result = ls_loop_run(c->loop);
    if (result != LS_OK && c->error.text[0] == '\0') ls_fail(&c->error, result, "%s", ls_loop_error(c->loop));
    return result;
}

/* The bytes must be out before anything is called done. */
static ls_result close_output(consuming *c)
{
    if (c->output == NULL) return LS_OK;
    bool written = c->output == stdout ? fflush(stdout) == 0 : fclose(c->output) == 0;
    c->output = NULL;
    return written ? LS_OK : output_failed(c);
}

/* Pins protect only a running consumer; and what was replaced must go. */
static ls_result release_rest(consuming *c)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < c->held_count && result == LS_OK; i++) {
        char name[LS_KEY_TEXT_BYTES];
        const held_checkpoint *held = &c->held[i];
        bool goes = held->replaced || held->key.epoch == LS_CHECKPOINT_PIN;
        ls_key_format(&held->key, name);
        if (goes && !held->deleted) result = ls_lake_delete(&c->lake, name, &c->error);
    }
    return result;
}

static void summary(const consuming *c)
{
    FILE *to = c->tells == TELL_BYTES && strcmp(c->output_name, "standard output") == 0 ? stderr : stdout;
    double amplification = c->slice_bytes == 0 ? 0 : (double)c->moved_bytes / (double)c->slice_bytes;
    if (c->shows_progress) fputs("\r\033[K", stderr);
    if (ls_argument_flag(c->arguments, "json")) {
        fprintf(to,
                "{\"steps\":%" PRIu64 ",\"next_step\":%" PRIu64 ",\"slice_bytes\":%" PRIu64 ",\"moved_bytes\":%" PRIu64
                ",\"manifest_bytes\":%" PRIu64 ",\"read_amplification\":%.6g}\n",
                c->steps, c->machine.cursor, c->slice_bytes, c->moved_bytes, c->manifest_moved_bytes, amplification);
        return;
    }
    fprintf(to,
            "%" PRIu64 " steps, %" PRIu64 " bytes; %" PRIu64 " bytes of data moved (read amplification %.4g), %" PRIu64
            " of manifests\n",
            c->steps, c->slice_bytes, c->moved_bytes, amplification, c->manifest_moved_bytes);
}

static int behind(consuming *c)
{
    uint64_t oldest = ls_manifest_trim_step(c->machine.known);
    if (c->machine.cursor < oldest) {
        ls_fail(&c->error, LS_ERROR_VIOLATED,
                "step %" PRIu64 " has been reclaimed; the oldest one left is %" PRIu64 " (--from oldest begins there)",
                c->machine.cursor, oldest);
    } else {
        ls_fail(&c->error, LS_ERROR_VIOLATED,
                "the object of a step from %" PRIu64 " on is not there: reclaimed just now, or lost; "
                "`lakestream fsck` tells",
                c->machine.cursor);
    }
    return ls_report_error(c->arguments, LS_ERROR_VIOLATED, &c->error);
}

static int finish(consuming *c, ls_result result)
{
    if (c->loop == NULL) return ls_report_error(c->arguments, result, &c->error);
    ls_result closed = close_output(c);
    if (result == LS_OK) result = closed;
    if (result == LS_OK && c->end != ENDING_FAILED && c->end != ENDING_CHECKPOINT_FAILED) result = release_rest(c);
    summary(c);
    if (result != LS_OK) return ls_report_damage(c->arguments, result, &c->error);
    switch (c->end) {
    case ENDING_FINISHED:
    case ENDING_ENOUGH: return LS_EXIT_DONE;
    case ENDING_STOPPED: return c->config.follow ? LS_EXIT_DONE : LS_EXIT_INTERRUPTED;
    case ENDING_BEHIND: return behind(c);
    case ENDING_REFUSED:
        ls_fail(&c->error, LS_ERROR_VIOLATED,
                "the steps from checkpoint \"%.200s\" on may be reclaimed already: it names step %" PRIu64
                ", the watermark stands at %" PRIu64,
                c->begin_name, c->run.report.key.sequence, c->run.report.low_watermark);
        return ls_report_error(c->arguments, LS_ERROR_VIOLATED, &c->error);
    case ENDING_CHECKPOINT_FAILED:
    case ENDING_FAILED: return ls_report_damage(c->arguments, c->failure, &c->error);
    case ENDING_NONE: break;
    }
    ls_fail(&c->error, LS_ERROR_IO, "the run ended before its time");
    return ls_report_error(c->arguments, LS_ERROR_IO, &c->error);
}

static int run(const ls_arguments *arguments)
{
    consuming c = {.arguments = arguments, .signals = {.file = -1}};
    ls_result result = prepare(&c);
    if (result == LS_OK) result = run_machine(&c);
    int code = finish(&c, result);
    close_output(&c);
    ls_store_destroy(c.lake.store);
    c.lake.store = NULL;
    ls_loop_free_after_store(c.loop);
    ls_lake_close(&c.lake);
    ls_consumer_clear(&c.machine);
    ls_checkpoint_run_clear(&c.run);
    ls_free(c.held);
    ls_signals_close(&c.signals);
    for (uint32_t i = 0; i < LS_CONSUMER_WINDOW_MAX; i++) ls_free(c.kept[i].bytes);
    return code;
}

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"rank", 'r', LS_ARGUMENT_TEXT, "D,C", NULL, 0, 0, "data-parallel and context-parallel rank, as in 0,0"},
    {"from", 0, LS_ARGUMENT_TEXT, "STEP", "oldest", 0, 0, "first step, or oldest: the first one that is still there"},
    {"from-checkpoint", 0, LS_ARGUMENT_TEXT, "NAME|KEY", NULL, 0, 0,
     "begin at the newest checkpoint of that name, or that key, pinned first; if there is none, as --from says"},
    {"checkpoint", 'c', LS_ARGUMENT_TEXT, "NAME", NULL, 0, 0, "make checkpoints of that name"},
    {"checkpoint-every", 0, LS_ARGUMENT_WHOLE, "N", "100", 1, 9007199254740992.0, "at every step that N divides"},
    {"checkpoint-kind", 0, LS_ARGUMENT_TEXT, "KIND", "auto", 0, 0,
     "auto: the retention rule keeps them; named: the newest stays until it is released, those before it go"},
    {"steps", 'n', LS_ARGUMENT_WHOLE, "N", NULL, 1, 9007199254740992.0,
     "stop after so many; default: at the end of the lake"},
    {"until", 'u', LS_ARGUMENT_WHOLE, "STEP", NULL, 0, 9007199254740992.0, "stop before that step"},
    {"follow", 'f', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "wait at the end for more"},
    {"poll", 0, LS_ARGUMENT_REAL, "S", "0.5", 0.001, 3600,
     "seconds between two looks for more, and before a failed read is tried again"},
    {"window", 'w', LS_ARGUMENT_WHOLE, "W", "4", 1, LS_CONSUMER_WINDOW_MAX, "steps read ahead"},
    {"whole", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0,
     "read each step's whole object instead of the own slice by range: only to compare"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0,
     "write the slices there, one after the other; - is standard output"},
    {"verify", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "compare the slices with the synthetic source"},
    LS_OPTIONS_PROTOCOL,
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "a JSON object a step, and one at the end"}};

const ls_command ls_command_consume = {
    .name = "consume",
    .operands = "",
    .summary = "Read one rank's slice of every step, in order, checked",
    .details =
        "Reads footers and slices by range, so about what the slices hold; each is checked against its CRC32C. Prints "
        "a line\n"
        "a step, or with --output writes the slices; then a summary (to standard error if the slices go to standard "
        "output).\n"
        "With --follow, SIGTERM or SIGINT is the way to end it, and exit code 0; without, 130.\n"
        "Exit codes: 0 done; 1 an object is damaged, or a step has been reclaimed; 2 bad usage; 3 the store refuses.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
