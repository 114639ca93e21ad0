/* cmd_consume.c - `lakestream consume`: one consumer machine on the real-time loop; its slices go out in step order.
 *
 * The machine prefetches, so slices arrive in any order. Each is kept in the place of its step until the machine hands
 * the step on; at most `window` are kept, whatever the lake holds.
 */
#include "backend/loop.h"
#include "experiments/batch_source.h"
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

enum { TIMER_MACHINE, TIMER_HEARTBEAT };

/* How a step is told: as a line, as JSON, or by its bytes alone. */
typedef enum telling { TELL_LINE, TELL_JSON, TELL_BYTES } telling;

typedef enum ending {
    ENDING_NONE,
    ENDING_FINISHED,
    ENDING_ENOUGH,
    ENDING_BEHIND,
    ENDING_FAILED,
    ENDING_STOPPED
} ending;

/* The slice of a step that has arrived and not been handed on. */
typedef struct kept_slice {
    uint8_t *bytes;
    uint64_t length, capacity;
    bool expected; /* a read by range is under way: what arrives is the slice, not a footer */
} kept_slice;

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
    uint64_t steps_wanted;
    uint64_t steps, slice_bytes, moved_bytes, manifest_moved_bytes;
    ending end;
    ls_result failure;
    ls_error error;
    int64_t complained_ns;
    char complaint[1024];
} consuming;

/* --- steps
 * --------------------------------------------------------------------------------------------------------------- */

static void stop_loop(consuming *c, ending end)
{
    c->end = end;
    ls_loop_stop(c->loop);
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
    if (c->steps == c->steps_wanted) stop_loop(c, ENDING_ENOUGH);
    return LS_OK;
}

/* --- the machine's wishes
 * -------------------------------------------------------------------------------------------------- */

static ls_result ask(consuming *c, const ls_store_request *request)
{
    if (ls_consumer_tag_is_data(request->tag)) {
        kept_slice *kept = kept_of(c, request->tag);
        kept->expected = request->range == LS_RANGE_SPAN;
        kept->length = 0;
    }
    return ls_loop_submit(c->loop, request, 0, request->tag);
}

static ls_result feed(consuming *c, const ls_event *event);

/* Asked for the oldest step there is, the machine learns from the manifest which one that is. */
static ls_result fall_behind(consuming *c, int64_t now_ns)
{
    uint64_t oldest = ls_manifest_trim_step(c->machine.known);
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
    (void)kind;
    consuming *c = context;
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

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)entity;
    (void)argument;
    consuming *c = context;
    if (c->end != ENDING_NONE) return LS_OK;
    if (kind == TIMER_MACHINE) return feed(c, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
    if (ls_signals_count(&c->signals) > 0) {
        stop_loop(c, ENDING_STOPPED);
        return LS_OK;
    }
    show_progress(c);
    complain(c, now_ns);
    return ls_loop_timer(c->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
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

static ls_result prepare(consuming *c)
{
    const ls_arguments *arguments = c->arguments;
    uint64_t first = 0;
    ls_result result = parse_rank(c);
    if (result == LS_OK) result = parse_from(c, &first);
    if (result == LS_OK) result = ls_lake_protocol(arguments, &c->protocol, &c->error);
    if (result == LS_OK) result = ls_lake_open(arguments, LS_LAKE_READ, &c->lake, &c->error);
    if (result == LS_OK) result = open_output(c);
    if (result != LS_OK) return result;
    c->config.window = (uint32_t)ls_argument_whole(arguments, "window");
    c->config.follow = ls_argument_flag(arguments, "follow");
    c->config.poll_ns = ls_nanoseconds(ls_argument_real(arguments, "poll"));
    c->steps_wanted = ls_argument_given(arguments, "steps") ? ls_argument_whole(arguments, "steps") : UINT64_MAX;
    c->verifies = ls_argument_flag(arguments, "verify");
    c->shows_progress = isatty(STDERR_FILENO) == 1 && (c->tells == TELL_BYTES || isatty(STDOUT_FILENO) != 1);
    result = ls_consumer_init(&c->machine, &c->protocol, &c->config, first);
    return result == LS_OK ? LS_OK
                           : ls_fail(&c->error, result, "the consumer cannot start: %s", ls_result_name(result));
}

static ls_result run_machine(consuming *c)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply, .data = on_data};
    c->loop = ls_loop_new(c->lake.store, c->lake.prefix, &handler, c);
    if (c->loop == NULL) {
        return ls_fail(&c->error, LS_ERROR_INVALID, "the backend's prefix is too long, or memory is short");
    }
    ls_result result = ls_signals_open(&c->signals, &c->error);
    int64_t now_ns = ls_loop_now(c->loop);
    c->complained_ns = now_ns;
    if (result == LS_OK) result = feed(c, &(ls_event){.kind = LS_EVENT_START, .now_ns = now_ns});
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
    summary(c);
    if (result != LS_OK) return ls_report_damage(c->arguments, result, &c->error);
    switch (c->end) {
    case ENDING_FINISHED:
    case ENDING_ENOUGH: return LS_EXIT_DONE;
    case ENDING_STOPPED: return c->config.follow ? LS_EXIT_DONE : LS_EXIT_INTERRUPTED;
    case ENDING_BEHIND: return behind(c);
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
    ls_signals_close(&c.signals);
    for (uint32_t i = 0; i < LS_CONSUMER_WINDOW_MAX; i++) ls_free(c.kept[i].bytes);
    return code;
}

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"rank", 'r', LS_ARGUMENT_TEXT, "D,C", NULL, 0, 0, "data-parallel and context-parallel rank, as in 0,0"},
    {"from", 0, LS_ARGUMENT_TEXT, "STEP", "oldest", 0, 0, "first step, or oldest: the first one that is still there"},
    {"steps", 'n', LS_ARGUMENT_WHOLE, "N", NULL, 1, 9007199254740992.0,
     "stop after so many; default: at the end of the lake"},
    {"follow", 'f', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "wait at the end for more"},
    {"poll", 0, LS_ARGUMENT_REAL, "S", "0.5", 0.001, 3600,
     "seconds between two looks for more, and before a failed read is tried again"},
    {"window", 'w', LS_ARGUMENT_WHOLE, "W", "4", 1, LS_CONSUMER_WINDOW_MAX, "steps read ahead"},
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
