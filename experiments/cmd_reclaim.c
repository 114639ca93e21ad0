/* cmd_reclaim.c - `lakestream reclaim`: the reclaimer machine on the real-time loop. */
#include "backend/loop.h"
#include "experiments/commands.h"
#include "experiments/dataplane.h"
#include "manifest/reclaimer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEARTBEAT_NS INT64_C(100000000)
#define RETRY_NS     INT64_C(100000000)
#define COMPLAIN_NS  (5 * LS_NANOSECONDS_PER_SECOND)

enum { TIMER_MACHINE, TIMER_HEARTBEAT };

typedef enum ending { ENDING_NONE, ENDING_FINISHED, ENDING_REFUSED, ENDING_FAILED } ending;

typedef struct reclaiming {
    const ls_arguments *arguments;
    ls_lake lake;
    ls_loop *loop;
    ls_protocol protocol;
    ls_reclaimer_config config;
    ls_reclaimer machine;
    ls_signals signals;
    bool json, stopping;
    ending end;
    ls_result failure;
    ls_error error;
    int64_t complained_ns;
    char complaint[1024];
} reclaiming;

static const char *const reason_names[LS_DELETE_REASONS] = {
    [LS_DELETE_BATCH] = "batches",          [LS_DELETE_ORPHAN] = "orphans",
    [LS_DELETE_CHECKPOINT] = "checkpoints", [LS_DELETE_VOID_CHECKPOINT] = "void_checkpoints",
    [LS_DELETE_VERSION] = "versions",       [LS_DELETE_FLOOR] = "floors"};

/* --- telling
 * ----------------------------------------------------------------------------------------------------------- */

static void tell_deletion(const reclaiming *r, const ls_delete_report *what)
{
    char name[LS_KEY_TEXT_BYTES];
    ls_key_format(&what->key, name);
    if (r->json) {
        printf("{\"would_delete\":\"%s\",\"because\":\"%s\",\"kind\":\"%s\",\"bytes\":%" PRIu64, name,
               ls_delete_reason_text(what->reason), reason_names[what->reason], what->bytes);
        if (what->reason == LS_DELETE_BATCH) printf(",\"step\":%" PRIu64, what->step);
        puts("}");
        return;
    }
    printf("would delete %s", name);
    if (what->reason == LS_DELETE_BATCH) printf(" (step %" PRIu64 ")", what->step);
    printf(": %s\n", ls_delete_reason_text(what->reason));
}

static void tell_round(const reclaiming *r, const ls_reclaim_report *report)
{
    uint64_t bytes = 0;
    const char *verb = r->config.dry_run ? "would delete" : "deleted";
    for (uint32_t i = 1; i < LS_DELETE_REASONS; i++) bytes += report->bytes[i];
    if (r->json) {
        printf("{\"dry_run\":%s,\"low_watermark\":%" PRIu64 ",\"bound\":%" PRIu64 ",\"floor\":%" PRIu64
               ",\"bytes\":%" PRIu64,
               r->config.dry_run ? "true" : "false", report->low_watermark, report->bound, report->floor, bytes);
        for (uint32_t i = 1; i < LS_DELETE_REASONS; i++)
            printf(",\"%s\":%" PRIu64, reason_names[i], report->deleted[i]);
        puts("}");
    } else {
        printf("steps below %" PRIu64 " %s (watermark %" PRIu64 "); %s %" PRIu64 " batches, %" PRIu64
               " orphans, %" PRIu64 " checkpoints, %" PRIu64 " versions, %" PRIu64 " floors: %" PRIu64 " bytes\n",
               report->bound, r->config.dry_run ? "would go" : "are gone", report->low_watermark, verb,
               report->deleted[LS_DELETE_BATCH], report->deleted[LS_DELETE_ORPHAN],
               report->deleted[LS_DELETE_CHECKPOINT] + report->deleted[LS_DELETE_VOID_CHECKPOINT],
               report->deleted[LS_DELETE_VERSION], report->deleted[LS_DELETE_FLOOR], bytes);
    }
    fflush(stdout);
}

/* --- the machine on the loop
 * -------------------------------------------------------------------------------------------- */

static void stop_loop(reclaiming *r, ending end)
{
    r->end = end;
    ls_loop_stop(r->loop);
}

static ls_result feed(reclaiming *r, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_reclaimer_step(&r->machine, event, &actions);
    for (uint32_t i = 0; i < actions.count && result == LS_OK; i++) {
        const ls_action *action = &actions.item[i];
        switch (action->kind) {
        case LS_ACTION_REQUEST: result = ls_loop_submit(r->loop, &action->request, 0, 0); break;
        case LS_ACTION_WAKE: result = ls_loop_timer(r->loop, action->wake_ns, TIMER_MACHINE, 0, 0); break;
        case LS_ACTION_WOULD_DELETE: tell_deletion(r, &action->would_delete); break;
        case LS_ACTION_RECLAIMED: tell_round(r, &action->reclaimed); break;
        case LS_ACTION_FINISHED: stop_loop(r, ENDING_FINISHED); break;
        case LS_ACTION_REFUSED: stop_loop(r, ENDING_REFUSED); break;
        case LS_ACTION_FAILED: stop_loop(r, ENDING_FAILED); break;
        default: break;
        }
    }
    return result;
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)kind;
    (void)entity;
    reclaiming *r = context;
    if (r->end != ENDING_NONE) {
        ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    ls_result result = feed(r, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
    if (r->end != ENDING_FAILED) return result;
    r->failure = ls_refusal(reply);
    ls_fail(&r->error, r->failure, "%s", ls_loop_error(r->loop));
    return result;
}

static void complain(reclaiming *r, int64_t now_ns)
{
    const char *message = ls_loop_error(r->loop);
    if (message[0] == '\0' || now_ns - r->complained_ns < COMPLAIN_NS || strcmp(message, r->complaint) == 0) return;
    snprintf(r->complaint, sizeof r->complaint, "%s", message);
    r->complained_ns = now_ns;
    fprintf(stderr, "lakestream reclaim: going on after: %s\n", message);
}

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)entity;
    (void)argument;
    reclaiming *r = context;
    if (r->end != ENDING_NONE) return LS_OK;
    if (kind == TIMER_MACHINE) return feed(r, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
    if (ls_signals_count(&r->signals) > 1) { /* what is in flight is not waited for */
        stop_loop(r, ENDING_FINISHED);
        return LS_OK;
    }
    if (ls_signals_count(&r->signals) > 0 && !r->stopping) {
        r->stopping = true;
        ls_result result = feed(r, &(ls_event){.kind = LS_EVENT_STOP, .now_ns = now_ns});
        if (result != LS_OK || r->end != ENDING_NONE) return result;
    }
    complain(r, now_ns);
    return ls_loop_timer(r->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
}

static ls_result prepare(reclaiming *r)
{
    const ls_arguments *arguments = r->arguments;
    uint64_t incarnation = 0;
    r->json = ls_argument_flag(arguments, "json");
    r->config = (ls_reclaimer_config){
        .retention = {.keep_last = (uint32_t)ls_argument_whole(arguments, "keep-last"),
                      .keep_every = (uint32_t)ls_argument_whole(arguments, "keep-every")},
        .grace_ns = ls_nanoseconds(ls_argument_real(arguments, "grace-s")),
        .every_ns = ls_argument_flag(arguments, "follow") ? ls_nanoseconds(ls_argument_real(arguments, "every-s")) : 0,
        .retry_ns = RETRY_NS,
        .delete_concurrency = (uint32_t)ls_argument_whole(arguments, "concurrency"),
        .keep_versions = (uint32_t)ls_argument_whole(arguments, "keep-versions"),
        .dry_run = ls_argument_flag(arguments, "dry-run")};
    ls_result result = ls_lake_protocol(arguments, &r->protocol, &r->error);
    if (result == LS_OK && !r->protocol.floor_check) {
        result = ls_fail(&r->error, LS_ERROR_INVALID,
                         "--no-floor-check: where versions are deleted, everybody must check floors");
    }
    if (result == LS_OK && r->config.dry_run && r->config.every_ns > 0) {
        result = ls_fail(&r->error, LS_ERROR_INVALID, "--dry-run and --follow do not go together");
    }
    if (result == LS_OK) {
        result = ls_lake_open(arguments, r->config.dry_run ? LS_LAKE_READ : LS_LAKE_CHANGE, &r->lake, &r->error);
    }
    if (result == LS_OK) result = ls_unique_number(&incarnation, &r->error);
    if (result != LS_OK) return result;
    result = ls_reclaimer_init(&r->machine, &r->protocol, &r->config, incarnation,
                               ls_random_open(incarnation, 0, LS_RANDOM_POLICY, 0));
    return result == LS_OK ? LS_OK
                           : ls_fail(&r->error, result, "the reclaimer cannot start: %s", ls_result_name(result));
}

static ls_result run_machine(reclaiming *r)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply};
    r->loop = ls_loop_new(r->lake.store, r->lake.prefix, &handler, r);
    if (r->loop == NULL) {
        return ls_fail(&r->error, LS_ERROR_INVALID, "the backend's prefix is too long, or memory is short");
    }
    ls_result result = ls_signals_open(&r->signals, &r->error);
    int64_t now_ns = ls_loop_now(r->loop);
    r->complained_ns = now_ns;
    if (result == LS_OK) result = feed(r, &(ls_event){.kind = LS_EVENT_START, .now_ns = now_ns});
    if (result == LS_OK) result = ls_loop_timer(r->loop, now_ns + HEARTBEAT_NS, TIMER_HEARTBEAT, 0, 0);
    if (result == LS_OK) result = ls_loop_run(r->loop);
    if (result != LS_OK && r->error.text[0] == '\0') ls_fail(&r->error, result, "%s", ls_loop_error(r->loop));
    return result;
}

static int finish(reclaiming *r, ls_result result)
{
    if (result != LS_OK) return ls_report_damage(r->arguments, result, &r->error);
    switch (r->end) {
    case ENDING_FINISHED: return r->stopping && r->config.every_ns == 0 ? LS_EXIT_INTERRUPTED : LS_EXIT_DONE;
    case ENDING_FAILED: return ls_report_damage(r->arguments, r->failure, &r->error);
    case ENDING_REFUSED:
        result = ls_fail(&r->error, LS_ERROR_INVALID,
                         "there is no lake in %s: no version, or none with a producer; nothing is deleted there; is "
                         "the address right?",
                         r->lake.address);
        return ls_report_error(r->arguments, result, &r->error);
    case ENDING_NONE: break;
    }
    ls_fail(&r->error, LS_ERROR_IO, "the run ended before its time");
    return ls_report_error(r->arguments, LS_ERROR_IO, &r->error);
}

static int run(const ls_arguments *arguments)
{
    reclaiming r = {.arguments = arguments, .signals = {.file = -1}, .machine = {.phase = LS_RECLAIMER_STOPPED}};
    ls_result result = prepare(&r);
    if (result == LS_OK) result = run_machine(&r);
    int code = finish(&r, result);
    ls_store_destroy(r.lake.store);
    r.lake.store = NULL;
    ls_loop_free_after_store(r.loop);
    ls_lake_close(&r.lake);
    ls_reclaimer_clear(&r.machine);
    ls_signals_close(&r.signals);
    return code;
}

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"keep-last", 'k', LS_ARGUMENT_WHOLE, "N", "3", 1, 1000000, "keep the newest N checkpoints that are not pinned"},
    {"keep-every", 0, LS_ARGUMENT_WHOLE, "M", "0", 0, 1000000, "also keep every M-th one for ever; 0: none"},
    {"grace-s", 'g', LS_ARGUMENT_REAL, "S", "3600", 0, 31536000, "orphans younger than this stay"},
    {"keep-versions", 0, LS_ARGUMENT_WHOLE, "N", "8", 1, 1000000, "so many newest manifest versions stay"},
    {"dry-run", 'n', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "delete and write nothing: tell what would go, and why"},
    {"follow", 'f', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "round after round, until SIGTERM or SIGINT"},
    {"every-s", 0, LS_ARGUMENT_REAL, "S", "60", 0.001, 86400, "with --follow: seconds between two rounds"},
    {"concurrency", 0, LS_ARGUMENT_WHOLE, "N", "8", 1, LS_RECLAIMER_DELETES_MAX, "deletes in flight"},
    LS_OPTIONS_PROTOCOL,
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "JSON objects instead of lines"}};

const ls_command ls_command_reclaim = {.name = "reclaim",
                                       .operands = "",
                                       .summary = "Delete what no checkpoint needs: batches, orphans, old versions",
                                       .details = "A batch goes when its step is below every checkpoint that is kept; "
                                                  "without checkpoints none goes. Pinned and named\n"
                                                  "checkpoints are always kept (`lakestream checkpoint release` lets "
                                                  "them go). Orphans go when they can be committed no\n"
                                                  "more and are older than the grace time. Any number of reclaimers "
                                                  "may run, and die, beside everybody else; everybody\n"
                                                  "must check floors, so none may run with --no-floor-check. Rules and "
                                                  "argument: manifest/PROTOCOL.md, section 9.\n"
                                                  "Exit codes: 0 done; 1 an object is damaged; 2 bad usage, or no lake "
                                                  "there; 3 the store refuses; 130 interrupted.",
                                       .options = options,
                                       .option_count = sizeof options / sizeof options[0],
                                       .run = run};
