/* cmd_checkpoint.c - `lakestream checkpoint`: write, list, pin, rewind to and release checkpoints (section 9 of
 * PROTOCOL.md).
 *
 * Writing, pinning and rewinding run the checkpointer machine, which says "done" only when the object is durable and no
 * batch from its step on can be deleted any more. Listing and releasing ask one question after the other.
 */
#include "experiments/checkpoints.h"
#include "experiments/commands.h"
#include "experiments/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_DIGITS_MAX 18u
#define LIMIT_NS        (60 * LS_NANOSECONDS_PER_SECOND)

enum { TIMER_LIMIT = 1 };

typedef struct working {
    const ls_arguments *arguments;
    ls_lake lake;
    ls_loop *loop;
    ls_protocol protocol;
    ls_checkpoint_run run;
    ls_text text;
    bool json, too_long;
    uint64_t count;
    ls_result failure;
    ls_error error;
} working;

/* --- making one
 * ----------------------------------------------------------------------------------------------------------- */

static ls_result on_timer(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)entity;
    (void)argument;
    working *w = context;
    if (kind == LS_CHECKPOINT_LOOP_KIND) return ls_checkpoint_run_timer(&w->run, now_ns);
    w->too_long = true;
    ls_loop_stop(w->loop);
    return LS_OK;
}

static ls_result on_reply(void *context, int64_t now_ns, uint32_t kind, uint32_t entity, const ls_store_reply *reply)
{
    (void)kind;
    (void)entity;
    working *w = context;
    ls_result result = ls_checkpoint_run_reply(&w->run, now_ns, reply);
    if (w->run.outcome == LS_CHECKPOINT_FAILED) w->failure = ls_refusal(reply);
    if (w->run.outcome != LS_CHECKPOINT_UNDER_WAY) ls_loop_stop(w->loop);
    return result;
}

static ls_result on_body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    working *w = context;
    return ls_checkpoint_run_body(&w->run, key, bytes, size);
}

static void tell_made(working *w)
{
    char name[LS_KEY_TEXT_BYTES];
    const ls_checkpoint_report *report = &w->run.report;
    ls_key_format(&report->key, name);
    if (w->json) {
        ls_text_format(&w->text,
                       "{\"step\":%" PRIu64 ",\"key\":\"%s\",\"kind\":\"%s\",\"low_watermark\":%" PRIu64
                       ",\"end_step\":%" PRIu64 "}\n",
                       report->key.sequence, name, ls_checkpoint_kind_name(w->run.content.kind), report->low_watermark,
                       report->end_step);
    } else {
        ls_text_format(&w->text, "step %" PRIu64 " %s %s\n", report->key.sequence,
                       ls_checkpoint_kind_name(w->run.content.kind), name);
    }
}

/* What became of it, in words. */
static ls_result outcome(working *w)
{
    const ls_checkpoint_report *report = &w->run.report;
    uint64_t step = report->key.sequence;
    switch (w->run.outcome) {
    case LS_CHECKPOINT_DONE: tell_made(w); return LS_OK;
    case LS_CHECKPOINT_GAVE_UP:
        if (step > report->end_step) {
            return ls_fail(&w->error, LS_ERROR_VIOLATED,
                           "step %" PRIu64 " has not been reached: the lake ends at step %" PRIu64
                           "; no checkpoint was made",
                           step, report->end_step);
        }
        return ls_fail(&w->error, LS_ERROR_VIOLATED,
                       "step %" PRIu64 " may be reclaimed already: the watermark stands at %" PRIu64
                       "; no checkpoint was made",
                       step, report->low_watermark);
    case LS_CHECKPOINT_FAILED: return ls_fail(&w->error, w->failure, "%s", ls_loop_error(w->loop));
    case LS_CHECKPOINT_IDLE:
    case LS_CHECKPOINT_UNDER_WAY: break;
    }
    return ls_fail(&w->error, LS_ERROR_IO, "the store does not answer: %.800s; the checkpoint may or may not be there",
                   ls_loop_error(w->loop));
}

static ls_result make(working *w, ls_checkpoint *content)
{
    static const ls_loop_handler handler = {.timer = on_timer, .reply = on_reply, .body = on_body};
    w->loop = ls_loop_new(w->lake.store, w->lake.prefix, &handler, w);
    if (w->loop == NULL) {
        ls_checkpoint_clear(content);
        return ls_fail(&w->error, LS_ERROR_INVALID, "the backend's prefix is too long, or memory is short");
    }
    ls_result result = ls_checkpoint_run_start(&w->run, w->loop, &w->protocol, content, NULL, &w->error);
    if (result == LS_OK) result = ls_loop_timer(w->loop, LIMIT_NS, TIMER_LIMIT, 0, 0);
    if (result == LS_OK) result = ls_loop_run(w->loop);
    if (result == LS_OK) return outcome(w);
    if (w->error.text[0] == '\0') ls_fail(&w->error, result, "%s", ls_loop_error(w->loop));
    return result;
}

/* --- write
 * ------------------------------------------------------------------------------------------------------------------ */

static ls_result parse_step(working *w, const char *text, size_t length, uint64_t *step)
{
    if (length > 0 && length <= STEP_DIGITS_MAX && strspn(text, "0123456789") >= length) {
        *step = strtoull(text, NULL, 10);
        return LS_OK;
    }
    return ls_fail(&w->error, LS_ERROR_INVALID,
                   "\"%.50s\": expected a step, or the step of each rank, separated by commas", text);
}

/* One step for all ranks, or one for each. */
static ls_result parse_steps(working *w, const char *text, uint64_t ranks, uint64_t *steps)
{
    uint64_t count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (count == ranks)
            count = UINT64_MAX - 1;
        else if (parse_step(w, at, length, &steps[count]) != LS_OK)
            return LS_ERROR_INVALID;
        count++;
        at += length;
        if (*at == '\0' || count > ranks) break;
    }
    for (uint64_t i = 1; count == 1 && i < ranks; i++) steps[i] = steps[0];
    if (count == 1 || count == ranks) return LS_OK;
    return ls_fail(&w->error, LS_ERROR_INVALID,
                   "\"%.50s\": expected one step, or %" PRIu64 " of them, one for each rank", text, ranks);
}

static ls_result make_content(working *w, ls_checkpoint_kind kind, const char *name, const char *steps_text,
                              ls_checkpoint *content)
{
    uint32_t data_ranks = (uint32_t)ls_argument_whole(w->arguments, "data-ranks");
    uint32_t context_ranks = (uint32_t)ls_argument_whole(w->arguments, "context-ranks");
    uint64_t ranks = (uint64_t)data_ranks * context_ranks;
    if (ranks > LS_CHECKPOINT_RANKS_MAX) {
        return ls_fail(&w->error, LS_ERROR_INVALID, "%" PRIu64 " ranks: at most %u", ranks, LS_CHECKPOINT_RANKS_MAX);
    }
    uint64_t *steps = ls_allocate_array((size_t)ranks, sizeof *steps);
    if (steps == NULL) return ls_fail(&w->error, LS_ERROR_MEMORY, "out of memory for %" PRIu64 " ranks", ranks);
    ls_result result = parse_steps(w, steps_text, ranks, steps);
    if (result == LS_OK) {
        result = ls_checkpoint_make(content, kind, name, data_ranks, context_ranks, steps, &w->error);
    }
    ls_free(steps);
    return result;
}

static ls_result do_write(working *w, const char *name, const char *steps)
{
    ls_checkpoint content;
    ls_checkpoint_kind kind = ls_argument_flag(w->arguments, "keep") ? LS_CHECKPOINT_NAMED : LS_CHECKPOINT_AUTO;
    ls_result result = make_content(w, kind, name, steps, &content);
    return result == LS_OK ? make(w, &content) : result;
}

/* --- pin, rewind
 * --------------------------------------------------------------------------------------------------------------- */

/* A pin of the same step, name and ranks as the newest checkpoint of that name. */
static ls_result copy_as_pin(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    working *w = context;
    if (!ls_checkpoint_is_meant(key, checkpoint, w->arguments->operands[1])) return LS_OK;
    ls_checkpoint_clear(&w->run.content);
    w->count++;
    return ls_checkpoint_make(&w->run.content, LS_CHECKPOINT_PIN, checkpoint->name, checkpoint->data_ranks,
                              checkpoint->context_ranks, checkpoint->rank_steps, &w->error);
}

static ls_result do_pin(working *w, const char *name)
{
    ls_result result = ls_lake_checkpoints(&w->lake, copy_as_pin, w, &w->error);
    if (result != LS_OK) return result;
    if (w->count == 0) {
        return ls_fail(&w->error, LS_ERROR_INVALID,
                       "there is no checkpoint called \"%.200s\" in %s; `checkpoint list` shows all", name,
                       w->lake.address);
    }
    ls_checkpoint content = w->run.content;
    memset(&w->run.content, 0, sizeof w->run.content);
    return make(w, &content);
}

/* --- list, release
 * ------------------------------------------------------------------------------------------------------------- */

static ls_result list_one(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    working *w = context;
    char text[LS_KEY_TEXT_BYTES];
    uint64_t ranks = (uint64_t)checkpoint->data_ranks * checkpoint->context_ranks;
    ls_key_format(key, text);
    w->count++;
    if (!w->json) {
        ls_text_format(&w->text, "step %" PRIu64 " %s order %" PRIu64 " ranks %" PRIu32 "x%" PRIu32 " %s %s\n",
                       checkpoint->step, ls_checkpoint_kind_name(checkpoint->kind), ls_checkpoint_order(key->number),
                       checkpoint->data_ranks, checkpoint->context_ranks, text, checkpoint->name);
        return LS_OK;
    }
    ls_text_format(&w->text,
                   "{\"step\":%" PRIu64 ",\"kind\":\"%s\",\"pinned\":%s,\"order\":%" PRIu64 ",\"key\":\"%s\",\"name\":",
                   checkpoint->step, ls_checkpoint_kind_name(checkpoint->kind), checkpoint->pinned ? "true" : "false",
                   ls_checkpoint_order(key->number), text);
    ls_text_json(&w->text, checkpoint->name);
    ls_text_format(&w->text, ",\"data_ranks\":%" PRIu32 ",\"context_ranks\":%" PRIu32 ",\"rank_steps\":[",
                   checkpoint->data_ranks, checkpoint->context_ranks);
    for (uint64_t i = 0; i < ranks; i++)
        ls_text_format(&w->text, i == 0 ? "%" PRIu64 : ",%" PRIu64, checkpoint->rank_steps[i]);
    ls_text_add(&w->text, "]}\n");
    return LS_OK;
}

static ls_result do_list(working *w)
{
    ls_result result = ls_lake_checkpoints(&w->lake, list_one, w, &w->error);
    if (result == LS_OK && w->count == 0 && !w->json) ls_text_add(&w->text, "no checkpoints\n");
    return result;
}

static ls_result do_release(working *w, const char *name)
{
    ls_key key;
    uint64_t released = 1;
    ls_result result;
    if (ls_key_parse(name, &key) == LS_OK && key.kind == LS_OBJECT_CHECKPOINT)
        result = ls_lake_delete(&w->lake, name, &w->error);
    else
        result = ls_lake_release_checkpoints(&w->lake, name, UINT64_MAX, &released, &w->error);
    if (result != LS_OK) return result;
    if (released == 0) {
        return ls_fail(&w->error, LS_ERROR_INVALID,
                       "there is no pinned checkpoint called \"%.200s\" in %s; `checkpoint list` shows all", name,
                       w->lake.address);
    }
    ls_text_format(&w->text, w->json ? "{\"released\":%" PRIu64 "}\n" : "%" PRIu64 " released\n", released);
    return LS_OK;
}

/* --- from the command line
 * -------------------------------------------------------------------------------------------------------- */

typedef enum verb { VERB_WRITE, VERB_LIST, VERB_PIN, VERB_REWIND, VERB_RELEASE, VERB_NONE } verb;

static const struct {
    const char *name;
    uint32_t operands; /* with the verb itself */
    const char *usage;
} verbs[] = {[VERB_WRITE] = {"write", 3, "write NAME STEP[,STEP...]"},
             [VERB_LIST] = {"list", 1, "list"},
             [VERB_PIN] = {"pin", 2, "pin NAME|KEY"},
             [VERB_REWIND] = {"rewind", 2, "rewind NAME|KEY"},
             [VERB_RELEASE] = {"release", 2, "release NAME|KEY"}};

static ls_result parse_verb(working *w, verb *chosen)
{
    const ls_arguments *arguments = w->arguments;
    for (*chosen = VERB_WRITE; *chosen < VERB_NONE; (*chosen)++) {
        if (strcmp(arguments->operands[0], verbs[*chosen].name) != 0) continue;
        if (arguments->operand_count == verbs[*chosen].operands) return LS_OK;
        return ls_fail(&w->error, LS_ERROR_INVALID, "expected: lakestream checkpoint %s", verbs[*chosen].usage);
    }
    return ls_fail(&w->error, LS_ERROR_INVALID, "\"%.50s\": expected write, list, pin, rewind or release",
                   arguments->operands[0]);
}

static ls_result work(working *w)
{
    verb chosen;
    ls_result result = parse_verb(w, &chosen);
    if (result == LS_OK) result = ls_lake_protocol(w->arguments, &w->protocol, &w->error);
    if (result != LS_OK) return result;
    ls_lake_use use = chosen == VERB_LIST || chosen == VERB_RELEASE ? LS_LAKE_READ : LS_LAKE_CHANGE;
    result = ls_lake_open(w->arguments, use, &w->lake, &w->error);
    if (result != LS_OK) return result;
    const char *const *operands = w->arguments->operands;
    switch (chosen) {
    case VERB_WRITE: return do_write(w, operands[1], operands[2]);
    case VERB_LIST: return do_list(w);
    case VERB_PIN:
    case VERB_REWIND: return do_pin(w, operands[1]);
    case VERB_RELEASE: return do_release(w, operands[1]);
    case VERB_NONE: break;
    }
    return LS_ERROR_INVALID;
}

static int run(const ls_arguments *arguments)
{
    working w = {.arguments = arguments, .json = ls_argument_flag(arguments, "json")};
    ls_result result = work(&w);
    if (result == LS_OK && w.text.failed) result = ls_fail(&w.error, LS_ERROR_MEMORY, "out of memory for the text");
    if (result == LS_OK && w.text.bytes != NULL) fputs(w.text.bytes, stdout);
    int code = result == LS_OK ? LS_EXIT_DONE : ls_report_damage(arguments, result, &w.error);
    ls_store_destroy(w.lake.store);
    w.lake.store = NULL;
    ls_loop_free_after_store(w.loop);
    ls_lake_close(&w.lake);
    ls_checkpoint_run_clear(&w.run);
    ls_text_free(&w.text);
    return code;
}

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"keep", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "write: keep it until it is released, whatever the retention rule"},
    {"data-ranks", 0, LS_ARGUMENT_WHOLE, "D", "1", 1, LS_CHECKPOINT_RANKS_MAX, "write: data-parallel ranks"},
    {"context-ranks", 0, LS_ARGUMENT_WHOLE, "C", "1", 1, LS_CHECKPOINT_RANKS_MAX, "write: context-parallel ranks"},
    LS_OPTIONS_PROTOCOL,
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "JSON objects instead of lines"}};

const ls_command ls_command_checkpoint = {
    .name = "checkpoint",
    .operands = "write NAME STEP[,STEP...] | list | pin NAME|KEY | rewind NAME|KEY | release NAME|KEY",
    .minimum_operands = 1,
    .maximum_operands = 3,
    .summary = "Make, list, pin, rewind to and release checkpoints",
    .details = "A checkpoint of step s keeps the batches from s on. `write` makes one: STEP is the next step to read, "
               "one for all ranks or\n"
               "one for each (the least counts); the retention rule of `reclaim` decides how long it stays, or --keep "
               "does. `pin` and\n"
               "`rewind` pin the newest checkpoint of that name (or that key), so that a trainer can go back to it and "
               "read the same bytes again from\n"
               "the step that is printed; they are refused when that step may be reclaimed already. `release` deletes "
               "the pinned and kept\n"
               "ones of that name, or the one with that key.\n"
               "Exit codes: 0 done, and durable; 1 the step is not there; 2 bad usage, or no such checkpoint; 3 the "
               "store refuses.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
