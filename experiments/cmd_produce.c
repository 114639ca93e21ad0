/* cmd_produce.c - `lakestream produce`: one producer machine on the real-time loop, fed by a source of batches.
 *
 * The machine decides everything that concerns the protocol. This file makes batches while the machine has room, turns
 * them into TGBs when they are uploaded, and turns signals into its STOP. Nothing of a run needs to be remembered here
 * for the next one: the row in the manifest says where to go on.
 */
#include "backend/loop.h"
#include "experiments/batch_source.h"
#include "experiments/commands.h"
#include "experiments/dataplane.h"
#include "experiments/text.h"
#include "manifest/producer.h"
#include "manifest/tgb.h"
#include "policies/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEARTBEAT_NS    INT64_C(100000000) /* between two looks at signals */
#define INPUT_WAIT_NS   INT64_C(5000000)   /* between two looks at standard input that has nothing yet, at first */
#define INPUT_WAIT_MOST INT64_C(80000000)
#define COMPLAIN_NS     (5 * LS_NANOSECONDS_PER_SECOND)

enum { TIMER_MACHINE, TIMER_HEARTBEAT, TIMER_BATCH };

typedef enum ending { ENDING_NONE, ENDING_FINISHED, ENDING_FENCED, ENDING_FAILED, ENDING_INTERRUPTED } ending;

typedef struct producing {
    const ls_arguments *arguments;
    ls_lake lake;
    ls_loop *loop;
    ls_batch_source *source;
    ls_policy_instance policy;
    ls_protocol protocol;
    ls_producer machine;
    ls_signals signals;
    uint32_t data_ranks, context_ranks;
    uint64_t footer_bytes;
    int64_t interval_ns; /* between batches; 0: as fast as there is room */
    int64_t next_batch_ns;
    int64_t asked_ns; /* the batch timer that is under way; LS_NEVER_NS: none */
    int64_t input_wait_ns;
    bool joined, stopping, shows_progress;
    ending end;
    ls_result failure; /* ENDING_FAILED: what was the matter */
    ls_error error;
    int64_t complained_ns;
    char complaint[1024];
    uint64_t first_offset, next_offset;
    uint64_t batches, bytes, won, lost, failed;
} producing;

/* --- the machine's wishes
 * ---------------------------------------------------------------------------------------------- */

static void stop_loop(producing *p, ending end)
{
    p->end = end;
    ls_loop_stop(p->loop);
}

static void count_attempt(producing *p, const ls_attempt_report *attempt)
{
    p->won += attempt->outcome == LS_ATTEMPT_WON || attempt->outcome == LS_ATTEMPT_PROVED;
    p->lost += attempt->outcome == LS_ATTEMPT_LOST;
    p->failed += attempt->outcome == LS_ATTEMPT_THROTTLED || attempt->outcome == LS_ATTEMPT_ABORTED;
}

static ls_result join(producing *p, uint64_t offset)
{
    p->joined = true;
    p->first_offset = p->next_offset = offset;
    return ls_source_seek(p->source, offset, &p->error);
}

static void published(producing *p, const ls_published_report *report)
{
    p->batches += report->count;
    p->bytes += report->bytes;
    p->next_offset = report->source_end;
    ls_source_release(p->source, report->source_end);
}

static ls_result carry_out(producing *p, const ls_action *action)
{
    switch (action->kind) {
    case LS_ACTION_REQUEST: return ls_loop_submit(p->loop, &action->request, 0, 0);
    case LS_ACTION_WAKE: return ls_loop_timer(p->loop, action->wake_ns, TIMER_MACHINE, 0, 0);
    case LS_ACTION_PUBLISHED: published(p, &action->published); break;
    case LS_ACTION_ATTEMPT: count_attempt(p, &action->attempt); break;
    case LS_ACTION_JOINED: return join(p, action->source_offset);
    case LS_ACTION_FENCED: stop_loop(p, ENDING_FENCED); break;
    case LS_ACTION_FAILED: stop_loop(p, ENDING_FAILED); break;
    case LS_ACTION_FINISHED: stop_loop(p, ENDING_FINISHED); break;
    case LS_ACTION_CHECKPOINTED:
    case LS_ACTION_GAVE_UP:
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_STEP:
    case LS_ACTION_BEHIND: break;
    }
    return LS_OK;
}

static ls_result feed(producing *p, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_producer_step(&p->machine, event, &actions);
    for (uint32_t i = 0; i < actions.count; i++) {
        if (result == LS_OK)
            result = carry_out(p, &actions.item[i]);
        else if (actions.item[i].kind == LS_ACTION_REQUEST)
            ls_manifest_release(actions.item[i].request.manifest);
    }
    return result;
}

static ls_result stop_producing(producing *p, int64_t now_ns)
{
    if (p->stopping) return LS_OK;
    p->stopping = true;
    return feed(p, &(ls_event){.kind = LS_EVENT_STOP, .now_ns = now_ns});
}

/* --- batches
 * ------------------------------------------------------------------------------------------------------------ */

static ls_result ask_again_at(producing *p, int64_t at_ns)
{
    if (p->asked_ns != LS_NEVER_NS) return LS_OK;
    p->asked_ns = at_ns;
    return ls_loop_timer(p->loop, at_ns, TIMER_BATCH, 0, 0);
}

static ls_result wait_for_input(producing *p, int64_t now_ns)
{
    int64_t wait = p->input_wait_ns;
    p->input_wait_ns = 2 * wait < INPUT_WAIT_MOST ? 2 * wait : INPUT_WAIT_MOST;
    return ask_again_at(p, now_ns + wait);
}

/* A rate is kept on average, but what could not be made because the backlog was full is not made up for. */
static void plan_next_batch(producing *p, int64_t now_ns)
{
    p->input_wait_ns = INPUT_WAIT_NS;
    if (now_ns - p->next_batch_ns > p->interval_ns) p->next_batch_ns = now_ns;
    p->next_batch_ns += p->interval_ns;
}

static ls_result make_batches(producing *p, int64_t now_ns)
{
    while (!p->stopping && p->end == ENDING_NONE && ls_producer_has_room(&p->machine)) {
        if (p->interval_ns > 0 && now_ns < p->next_batch_ns) return ask_again_at(p, p->next_batch_ns);
        if (p->asked_ns != LS_NEVER_NS) return LS_OK;
        ls_source_state state;
        uint64_t content_bytes, offsets;
        ls_result result = ls_source_next(p->source, &state, &content_bytes, &offsets, &p->error);
        if (result != LS_OK) return result;
        if (state == LS_SOURCE_WAIT) return wait_for_input(p, now_ns);
        if (state == LS_SOURCE_END) return stop_producing(p, now_ns);
        plan_next_batch(p, now_ns);
        result = feed(p, &(ls_event){.kind = LS_EVENT_BATCH,
                                     .now_ns = now_ns,
                                     .batch_source_count = offsets,
                                     .batch_bytes = content_bytes + p->footer_bytes,
                                     .batch_footer_bytes = (uint32_t)p->footer_bytes});
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

/* The content stands where the object wants it; the writer goes over it once for the checksums. */
static ls_result seal(const producing *p, const ls_tgb_identity *identity, uint8_t *bytes, uint64_t content_bytes)
{
    ls_tgb_writer writer;
    uint32_t slices = p->data_ranks * p->context_ranks;
    ls_result result = ls_tgb_begin(&writer, identity, p->data_ranks, p->context_ranks, bytes + content_bytes,
                                    (size_t)p->footer_bytes);
    for (uint32_t i = 0; i < slices && result == LS_OK; i++) {
        uint64_t length = ls_slice_length(content_bytes, slices, i);
        ls_tgb_add(&writer, bytes, (size_t)length);
        bytes += length;
        result = ls_tgb_end_slice(&writer);
    }
    return result == LS_OK ? ls_tgb_finish(&writer, NULL) : result;
}

static ls_result on_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    producing *p = context;
    ls_tgb_identity identity = {.producer = key->number, .sequence = key->sequence, .epoch = key->epoch};
    if (!ls_producer_source_range(&p->machine, key->sequence, &identity.source_begin, &identity.source_end)) {
        return ls_fail(&p->error, LS_ERROR_INVALID, "batch %" PRIu64 " is uploaded, but the producer does not hold it",
                       key->sequence);
    }
    uint64_t content_bytes = size - p->footer_bytes;
    ls_result result = ls_source_fill(p->source, identity.source_begin, identity.source_end, p->data_ranks,
                                      p->context_ranks, bytes, content_bytes, &p->error);
    return result == LS_OK ? seal(p, &identity, bytes, content_bytes) : result;
}

/* --- the loop's calls
 * ---------------------------------------------------------------------------------------------------- */

static void show_progress(const producing *p)
{
    if (!p->shows_progress) return;
    fprintf(stderr,
            "\r\033[Kproducer %" PRIu64 "%s: %" PRIu64 " batches, next offset %" PRIu64 ", %" PRIu64
            " commits, %" PRIu64 " lost",
            p->machine.producer, p->joined ? "" : " joins", p->batches, p->next_offset, p->won, p->lost);
}

/* A store that does not answer is tried for ever; whoever waits is told why, now and then. */
static void complain(producing *p, int64_t now_ns)
{
    const char *message = ls_loop_error(p->loop);
    if (message[0] == '\0' || now_ns - p->complained_ns < COMPLAIN_NS || strcmp(message, p->complaint) == 0) return;
    snprintf(p->complaint, sizeof p->complaint, "%s", message);
    p->complained_ns = now_ns;
    fprintf(stderr, "%slakestream produce: going on after: %s\n", p->shows_progress ? "\r\033[K" : "", message);
}

static ls_result heartbeat(producing *p, int64_t now_ns)
{
    uint32_t signals = ls_signals_count(&p->signals);
    if (signals > 1) {
        stop_loop(p, ENDING_INTERRUPTED);
        return LS_OK;
    }
    show_progress(p);
    complain(p, now_ns);
    ls_result result = ls_loop_timer(p->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
    return result == LS_OK && signals == 1 ? stop_producing(p, now_ns) : result;
}

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)entity;
    (void)argument;
    producing *p = context;
    ls_result result = LS_OK;
    if (p->end != ENDING_NONE) return LS_OK;
    if (kind == TIMER_HEARTBEAT) result = heartbeat(p, now_ns);
    if (kind == TIMER_MACHINE) result = feed(p, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
    if (kind == TIMER_BATCH) p->asked_ns = LS_NEVER_NS;
    return result == LS_OK ? make_batches(p, now_ns) : result;
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)kind;
    (void)entity;
    producing *p = context;
    if (p->end != ENDING_NONE) { /* answers to what was still under way when the machine stopped */
        ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    ls_result result = feed(p, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
    if (p->end == ENDING_FAILED) {
        p->failure = ls_refusal(reply);
        ls_fail(&p->error, p->failure, "%s", ls_loop_error(p->loop));
    }
    return result == LS_OK ? make_batches(p, now_ns) : result;
}

/* --- from the command line
 * ------------------------------------------------------------------------------------------------ */

static ls_result set_parameter(ls_policy_instance *policy, const char *text, ls_error *error)
{
    const char *equals = strchr(text, '=');
    char name[64], *end;
    if (equals == NULL || equals == text || equals - text >= (ptrdiff_t)sizeof name || equals[1] == '\0') {
        return ls_fail(error, LS_ERROR_INVALID, "--set %.100s: expected parameter=value, as in base_s=0.05", text);
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    double value = strtod(equals + 1, &end);
    if (*end != '\0') {
        return ls_fail(error, LS_ERROR_INVALID, "--set %.100s: '%.50s' is no number", text, equals + 1);
    }
    return ls_policy_set(policy, name, value, error);
}

static ls_result choose_policy(producing *p)
{
    ls_result result = ls_policy_instantiate(ls_argument_text(p->arguments, "policy"), &p->policy, &p->error);
    if (result != LS_OK) return result;
    if (p->policy.policy->simulator_only) {
        return ls_fail(&p->error, LS_ERROR_INVALID, "policy '%s' exists in the simulator only", p->policy.policy->name);
    }
    const char *setting;
    for (uint32_t i = 0; (setting = ls_argument_text_at(p->arguments, "set", i)) != NULL && result == LS_OK; i++) {
        result = set_parameter(&p->policy, setting, &p->error);
    }
    return result;
}

static ls_result choose_grid(producing *p, uint64_t batch_bytes)
{
    p->data_ranks = (uint32_t)ls_argument_whole(p->arguments, "data-ranks");
    p->context_ranks = (uint32_t)ls_argument_whole(p->arguments, "context-ranks");
    p->footer_bytes = ls_tgb_footer_bytes(p->data_ranks, p->context_ranks);
    if (p->footer_bytes != 0 && batch_bytes <= SIZE_MAX - p->footer_bytes) return LS_OK;
    return ls_fail(&p->error, LS_ERROR_LIMIT,
                   "%" PRIu32 " x %" PRIu32 " ranks are more than the %u slices a batch can have", p->data_ranks,
                   p->context_ranks, LS_TGB_SLICES_MAX);
}

static bool is_word(const char *text, const char *word) { return text != NULL && strcmp(text, word) == 0; }

static ls_result open_source(producing *p, uint64_t producer, uint64_t batch_bytes)
{
    const ls_arguments *arguments = p->arguments;
    uint64_t batches = ls_argument_given(arguments, "batches") ? ls_argument_whole(arguments, "batches") : UINT64_MAX;
    const char *kind = ls_argument_text(arguments, "source");
    bool given = ls_argument_given(arguments, "source");
    if (arguments->operand_count > 0) {
        if (given) {
            return ls_fail(&p->error, LS_ERROR_INVALID, "--source %.50s and files exclude each other", kind);
        }
        p->source = ls_source_files(arguments->operands, arguments->operand_count, batch_bytes, batches, &p->error);
        return p->source != NULL ? LS_OK : LS_ERROR_INVALID;
    }
    if (is_word(kind, "-")) {
        p->source = ls_source_stream(STDIN_FILENO, batch_bytes, batches, &p->error);
    } else if (is_word(kind, "synthetic")) {
        p->source = ls_source_synthetic(producer, batch_bytes, batches);
    } else {
        return ls_fail(&p->error, LS_ERROR_INVALID,
                       "--source %.100s: expected synthetic, - for standard input, or files after "
                       "the options",
                       kind);
    }
    return p->source != NULL ? LS_OK : ls_fail(&p->error, LS_ERROR_MEMORY, "out of memory");
}

static ls_result prepare(producing *p)
{
    const ls_arguments *arguments = p->arguments;
    uint64_t producer = ls_argument_whole(arguments, "producer"), incarnation = 0;
    uint64_t batch_bytes = ls_argument_whole(arguments, "bytes");
    if (!ls_argument_given(arguments, "producer")) {
        return ls_fail(&p->error, LS_ERROR_INVALID,
                       "--producer is missing: the number that this producer has for ever");
    }
    ls_result result = choose_policy(p);
    if (result == LS_OK) result = choose_grid(p, batch_bytes);
    if (result == LS_OK) result = ls_lake_protocol(arguments, &p->protocol, &p->error);
    if (result == LS_OK) result = open_source(p, producer, batch_bytes);
    if (result == LS_OK) result = ls_unique_number(&incarnation, &p->error);
    if (result == LS_OK) result = ls_lake_open(arguments, LS_LAKE_WRITE, &p->lake, &p->error);
    if (result != LS_OK) return result;
    double rate = ls_argument_real(arguments, "rate");
    p->interval_ns = rate > 0 ? ls_nanoseconds(1 / rate) : 0;
    p->protocol.backlog_limit = (uint32_t)ls_argument_whole(arguments, "backlog");
    p->protocol.upload_concurrency = (uint32_t)ls_argument_whole(arguments, "uploads");
    p->protocol.decider = ls_policy_decider(&p->policy);
    ls_producer_init(&p->machine, &p->protocol, producer, incarnation,
                     ls_random_open(incarnation, 0, LS_RANDOM_POLICY, producer));
    return LS_OK;
}

static ls_result run_machine(producing *p)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply, .body = on_body};
    p->loop = ls_loop_new(p->lake.store, p->lake.prefix, &handler, p);
    if (p->loop == NULL) {
        return ls_fail(&p->error, LS_ERROR_INVALID, "the backend's prefix is too long, or memory is short");
    }
    ls_result result = ls_signals_open(&p->signals, &p->error);
    int64_t now_ns = ls_loop_now(p->loop);
    p->complained_ns = now_ns;
    if (result == LS_OK) result = feed(p, &(ls_event){.kind = LS_EVENT_START, .now_ns = now_ns});
    if (result == LS_OK) result = ls_loop_timer(p->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
    if (result == LS_OK) result = ls_loop_run(p->loop);
    if (result != LS_OK && p->error.text[0] == '\0') ls_fail(&p->error, result, "%s", ls_loop_error(p->loop));
    return result;
}

/* What is still under way when the end has come is not waited for: its outcome is in the manifest. */
static void take_down(producing *p)
{
    ls_store_destroy(p->lake.store);
    p->lake.store = NULL;
    ls_loop_free_after_store(p->loop);
    ls_lake_close(&p->lake);
    ls_source_free(p->source);
    ls_signals_close(&p->signals);
}

static const char *ending_name(ending end)
{
    switch (end) {
    case ENDING_FINISHED: return "finished";
    case ENDING_FENCED: return "fenced";
    case ENDING_INTERRUPTED: return "interrupted";
    case ENDING_FAILED:
    case ENDING_NONE: break;
    }
    return "failed";
}

static void report(const producing *p)
{
    const ls_producer *machine = &p->machine;
    if (p->shows_progress) fputs("\r\033[K", stderr);
    if (ls_argument_flag(p->arguments, "json")) {
        printf("{\"producer\":%" PRIu64 ",\"epoch\":%" PRIu32 ",\"first_offset\":%" PRIu64 ",\"next_offset\":%" PRIu64
               ",\"batches\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"commits\":%" PRIu64 ",\"lost\":%" PRIu64
               ",\"failed\":%" PRIu64 ",\"end\":\"%s\"}\n",
               machine->producer, p->joined ? machine->epoch : 0, p->first_offset, p->next_offset, p->batches, p->bytes,
               p->won, p->lost, p->failed, ending_name(p->end));
        return;
    }
    if (!p->joined) return;
    printf("producer %" PRIu64 ", epoch %" PRIu32 ": %" PRIu64 " batches (%" PRIu64
           " bytes) published, source offsets %" PRIu64 " to %" PRIu64 "; %" PRIu64 " commits, %" PRIu64
           " attempts lost, %" PRIu64 " failed; %s\n",
           machine->producer, machine->epoch, p->batches, p->bytes, p->first_offset, p->next_offset, p->won, p->lost,
           p->failed, ending_name(p->end));
}

static int finish(producing *p, ls_result result)
{
    if (p->loop == NULL) return ls_report_error(p->arguments, result, &p->error);
    if (result != LS_OK) p->end = ENDING_FAILED;
    report(p);
    if (result != LS_OK) return ls_report_damage(p->arguments, result, &p->error);
    switch (p->end) {
    case ENDING_FINISHED: return LS_EXIT_DONE;
    case ENDING_INTERRUPTED: return LS_EXIT_INTERRUPTED;
    case ENDING_FENCED:
        fprintf(stderr,
                "lakestream produce: fenced: another process took over producer %" PRIu64 "; what was published before "
                "stands, it goes on from there\n",
                p->machine.producer);
        return LS_EXIT_CHECK_FAILED;
    case ENDING_FAILED: return ls_report_damage(p->arguments, p->failure, &p->error);
    case ENDING_NONE: break;
    }
    ls_fail(&p->error, LS_ERROR_IO, "the run ended before its time");
    return ls_report_error(p->arguments, LS_ERROR_IO, &p->error);
}

static int run(const ls_arguments *arguments)
{
    producing p = {.arguments = arguments,
                   .asked_ns = LS_NEVER_NS,
                   .input_wait_ns = INPUT_WAIT_NS,
                   .signals = {.file = -1},
                   .shows_progress = isatty(STDERR_FILENO) == 1};
    ls_result result = prepare(&p);
    if (result == LS_OK) result = run_machine(&p);
    int code = finish(&p, result);
    take_down(&p);
    ls_producer_clear(&p.machine);
    return code;
}

#define NUMBER_MAX 9007199254740992.0 /* 2^53: what the parser's doubles hold exactly */

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"producer", 'p', LS_ARGUMENT_WHOLE, "ID", NULL, 0, NUMBER_MAX,
     "this producer's own number, the same at every start"},
    {"batches", 'n', LS_ARGUMENT_WHOLE, "N", NULL, 0, NUMBER_MAX,
     "stop after so many in all, earlier starts included; default: when the source ends"},
    {"bytes", 0, LS_ARGUMENT_WHOLE, "B", "65536", 1, 1099511627776.0, "content of a batch, all ranks together"},
    {"rate", 'r', LS_ARGUMENT_REAL, "R", NULL, 1e-6, 1e9, "batches per second; default: as fast as they are published"},
    {"source", 0, LS_ARGUMENT_TEXT, "SOURCE", "synthetic", 0, 0, "synthetic, or - for standard input"},
    {"data-ranks", 0, LS_ARGUMENT_WHOLE, "D", "1", 1, LS_TGB_SLICES_MAX, "data-parallel ranks"},
    {"context-ranks", 0, LS_ARGUMENT_WHOLE, "C", "1", 1, LS_TGB_SLICES_MAX, "context-parallel ranks"},
    {"policy", 0, LS_ARGUMENT_TEXT, "NAME", "dac", 0, 0, "when to commit; `lakestream policies` lists them"},
    {"set", 's', LS_ARGUMENT_TEXTS, "PARAMETER=VALUE", NULL, 0, 0, "a parameter of the policy; may be given again"},
    LS_OPTIONS_PROTOCOL,
    {"backlog", 0, LS_ARGUMENT_WHOLE, "N", "64", 1, 1048576, "batches made and not yet published, at most"},
    {"uploads", 0, LS_ARGUMENT_WHOLE, "N", "4", 1, 1024, "uploads at once"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_produce = {
    .name = "produce",
    .operands = "[FILE...]",
    .maximum_operands = UINT32_MAX,
    .summary = "Publish batches to a lake, exactly once each, beside any number of other producers",
    .details = "A start takes over the producer's row in the manifest (any earlier process of the same number is "
               "fenced and ends\n"
               "with exit code 1) and goes on at the source offset that the row names. Offsets are batches of a "
               "synthetic source,\n"
               "bytes of files or of standard input; give the same files again after a stop, and standard input from "
               "its beginning.\n"
               "SIGTERM or SIGINT: publish what is made, close the row, exit 0; a second one: quit at once, exit 130.\n"
               "Exit codes: 0 done; 1 fenced, or a manifest is damaged; 2 bad usage or input; 3 the store refuses.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
