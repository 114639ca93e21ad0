/* cmd_inspect.c - `lakestream inspect`: one object of a lake as text or JSON, with every number it holds.
 *
 * Objects are told by their names. What is damaged is told with the byte offset at which it shows, by the decoders
 * themselves. 64-bit numbers that may pass 2^53 (the random half of a commit id) are strings in JSON.
 */
#include "experiments/commands.h"
#include "experiments/dataplane.h"
#include "experiments/text.h"
#include "manifest/checkpoint.h"
#include "manifest/codec.h"
#include "manifest/tgb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct inspecting {
    const ls_arguments *arguments;
    ls_lake lake;
    char name[LS_KEY_TEXT_BYTES];
    ls_key key;
    uint64_t shown_most; /* entries, rows and slices each */
    bool json;
    ls_text text;
    ls_error error;
} inspecting;

/* --- manifests
 * ------------------------------------------------------------------------------------------------------------ */

static void show_entry(inspecting *i, uint64_t step, const ls_entry *entry)
{
    char name[LS_KEY_TEXT_BYTES];
    ls_key key = ls_key_data(entry->producer, entry->epoch, entry->sequence);
    ls_key_format(&key, name);
    ls_text_format(&i->text,
                   i->json ? "{\"step\":%" PRIu64 ",\"key\":\"%s\",\"source_begin\":%" PRIu64 ",\"source_end\":%" PRIu64
                             ",\"bytes\":%" PRIu64 ",\"footer_bytes\":%" PRIu32 "}"
                           : "  step %" PRIu64 "  %s  source %" PRIu64 "..%" PRIu64 "  %" PRIu64
                             " bytes, footer %" PRIu32 "\n",
                   step, name, entry->source_begin, entry->source_end, entry->size_bytes, entry->footer_bytes);
}

static void show_row(inspecting *i, const ls_row *row)
{
    const char *closed = i->json ? (row->closed ? "true" : "false") : row->closed ? "closed" : "open";
    ls_text_format(&i->text,
                   i->json ? "{\"producer\":%" PRIu64 ",\"epoch\":%" PRIu32 ",\"next_source_offset\":%" PRIu64
                             ",\"last_version\":%" PRIu64 ",\"incarnation\":\"%016" PRIx64 "\",\"attempt\":%" PRIu64
                             ",\"closed\":%s}"
                           : "  producer %" PRIu64 "  epoch %" PRIu32 "  next source offset %" PRIu64
                             "  last version %" PRIu64 "  commit %016" PRIx64 "/%" PRIu64 "  %s\n",
                   row->producer, row->epoch, row->next_source_offset, row->last_version, row->last_commit.incarnation,
                   row->last_commit.attempt, closed);
}

/* How many of `all` are shown, told in text when it is fewer. */
static uint64_t shown(inspecting *i, const char *what, uint64_t all)
{
    uint64_t count = all < i->shown_most ? all : i->shown_most;
    if (i->json) return count;
    ls_text_format(&i->text, "%s: %" PRIu64, what, all);
    if (count < all) ls_text_format(&i->text, ", the last %" PRIu64 " shown (--entries)", count);
    ls_text_add(&i->text, "\n");
    return count;
}

static void show_entries(inspecting *i, const ls_manifest *manifest)
{
    uint64_t end = ls_manifest_end_step(manifest);
    uint64_t first = end - shown(i, "entries", ls_manifest_entry_count(manifest));
    for (uint64_t step = first; step < end; step++) {
        ls_entry entry;
        if (i->json && step > first) ls_text_add(&i->text, ",");
        if (ls_manifest_entry(manifest, step, &entry)) show_entry(i, step, &entry);
    }
}

static void show_rows(inspecting *i, const ls_manifest *manifest)
{
    uint32_t count = ls_manifest_row_count(manifest);
    uint32_t first = count - (uint32_t)shown(i, "rows", count);
    for (uint32_t slot = first; slot < count; slot++) {
        if (i->json && slot > first) ls_text_add(&i->text, ",");
        show_row(i, ls_manifest_row(manifest, slot));
    }
}

static void show_manifest(inspecting *i, const ls_manifest *manifest)
{
    ls_commit_id id = ls_manifest_commit_id(manifest);
    const char *head = i->json ? "{\"key\":\"%s\",\"kind\":\"manifest\",\"bytes\":%" PRIu64 ",\"version\":%" PRIu64
                                 ",\"incarnation\":\"%016" PRIx64 "\",\"attempt\":%" PRIu64
                                 ",\"low_watermark\":%" PRIu64 ",\"trim_step\":%" PRIu64 ",\"end_step\":%" PRIu64
                                 ",\"chain\":\"%08" PRIx32 "\",\"entry_count\":%" PRIu64 ",\"row_count\":%" PRIu32
                                 ",\"open_row_count\":%" PRIu32
                               : "%s: manifest, %" PRIu64 " bytes, intact\nversion %" PRIu64 ", commit %016" PRIx64
                                 "/%" PRIu64 "\nlow watermark %" PRIu64 ", steps %" PRIu64 " to %" PRIu64
                                 ", chain %08" PRIx32 ", %" PRIu64 " entries, %" PRIu32 " rows (%" PRIu32 " open)\n";
    uint64_t end = ls_manifest_end_step(manifest);
    ls_text_format(&i->text, head, i->name, ls_manifest_encoded_bytes(manifest), ls_manifest_version(manifest),
                   id.incarnation, id.attempt, ls_manifest_low_watermark(manifest), ls_manifest_trim_step(manifest),
                   end, ls_manifest_chain(manifest, end), ls_manifest_entry_count(manifest),
                   ls_manifest_row_count(manifest), ls_manifest_open_row_count(manifest));
    if (i->json) ls_text_add(&i->text, ",\"rows\":[");
    show_rows(i, manifest);
    if (i->json) ls_text_add(&i->text, "],\"entries\":[");
    show_entries(i, manifest);
    if (i->json) ls_text_add(&i->text, "]}\n");
}

static ls_result inspect_manifest(inspecting *i, const ls_lake_object *object)
{
    ls_manifest *manifest = NULL;
    ls_error why = {""};
    ls_result result = ls_manifest_decode(object->bytes, (size_t)object->length, i->key.number, &manifest, &why);
    if (result != LS_OK) return ls_fail(&i->error, result, "%s: %s", i->name, why.text);
    show_manifest(i, manifest);
    ls_manifest_release(manifest);
    return LS_OK;
}

/* --- batches
 * -------------------------------------------------------------------------------------------------------------- */

static void show_slice(inspecting *i, const ls_slice *slice)
{
    ls_text_format(&i->text,
                   i->json ? "{\"data_rank\":%" PRIu32 ",\"context_rank\":%" PRIu32 ",\"offset\":%" PRIu64
                             ",\"bytes\":%" PRIu64 ",\"crc32c\":\"%08" PRIx32 "\"}"
                           : "  rank %" PRIu32 ",%" PRIu32 "  offset %" PRIu64 "  %" PRIu64 " bytes  crc32c %08" PRIx32
                             "\n",
                   slice->data_rank, slice->context_rank, slice->offset, slice->bytes, slice->crc32c);
}

static void show_batch(inspecting *i, const ls_tgb_index *index)
{
    const ls_tgb_identity *identity = &index->identity;
    ls_text_format(
        &i->text,
        i->json ? "{\"key\":\"%s\",\"kind\":\"tgb\",\"bytes\":%" PRIu64 ",\"footer_bytes\":%" PRIu32
                  ",\"producer\":%" PRIu64 ",\"epoch\":%" PRIu32 ",\"sequence\":%" PRIu64 ",\"source_begin\":%" PRIu64
                  ",\"source_end\":%" PRIu64 ",\"data_ranks\":%" PRIu32 ",\"context_ranks\":%" PRIu32 ",\"slices\":["
                : "%s: TGB, %" PRIu64 " bytes, footer %" PRIu32 ", intact\nproducer %" PRIu64 ", epoch %" PRIu32
                  ", sequence %" PRIu64 ", source offsets %" PRIu64 " to %" PRIu64 ", %" PRIu32 " x %" PRIu32
                  " ranks\n",
        i->name, index->object_bytes, index->footer_bytes, identity->producer, identity->epoch, identity->sequence,
        identity->source_begin, identity->source_end, index->data_ranks, index->context_ranks);
    uint32_t slices = index->data_ranks * index->context_ranks;
    uint32_t first = slices - (uint32_t)shown(i, "slices", slices);
    for (uint32_t s = first; s < slices; s++) {
        if (i->json && s > first) ls_text_add(&i->text, ",");
        show_slice(i, &index->slices[s]);
    }
    if (i->json) ls_text_add(&i->text, "]}\n");
}

/* Every slice is checked, shown or not. */
static ls_result inspect_batch(inspecting *i, const ls_lake_object *object)
{
    ls_tgb_index *index = NULL;
    ls_error why = {""};
    ls_result result =
        ls_tgb_decode_footer(object->bytes, (size_t)object->length, object->object_bytes, &index, NULL, &why);
    if (result == LS_OK && index == NULL)
        result = ls_fail(&why, LS_ERROR_CORRUPT, "the footer is longer than the object");
    if (result != LS_OK) return ls_fail(&i->error, result, "%s: %s", i->name, why.text);
    const ls_tgb_identity *identity = &index->identity;
    ls_key named = ls_key_data(identity->producer, identity->epoch, identity->sequence);
    if (ls_key_compare(&named, &i->key) != 0) {
        char name[LS_KEY_TEXT_BYTES];
        ls_key_format(&named, name);
        result = ls_fail(&i->error, LS_ERROR_CORRUPT, "%s: the object calls itself %s", i->name, name);
    }
    for (uint32_t s = 0; result == LS_OK && s < index->data_ranks * index->context_ranks; s++) {
        const ls_slice *slice = &index->slices[s];
        if (ls_tgb_verify_slice(slice, object->bytes + slice->offset, (size_t)slice->bytes, &why) == LS_OK) continue;
        result = ls_fail(&i->error, LS_ERROR_CORRUPT, "%s: the slice at byte offset %" PRIu64 ": %s", i->name,
                         slice->offset, why.text);
    }
    if (result == LS_OK) show_batch(i, index);
    ls_free(index);
    return result;
}

/* --- which object
 * --------------------------------------------------------------------------------------------------------- */

static ls_result find_head(inspecting *i)
{
    uint64_t version, floor;
    ls_result result = ls_lake_newest(&i->lake, &version, &floor, &i->error);
    if (result != LS_OK) return result;
    if (version < floor || version == 0) {
        return ls_fail(&i->error, LS_ERROR_INVALID, "%s holds no manifest version that counts; is the address right?",
                       i->lake.address);
    }
    i->key = ls_key_manifest(version);
    return LS_OK;
}

static ls_result choose_object(inspecting *i)
{
    const char *text = i->arguments->operand_count > 0 ? i->arguments->operands[0] : "head";
    bool number = text[0] != '\0' && strspn(text, "0123456789") == strlen(text) && strlen(text) <= 19;
    ls_result result = LS_OK;
    if (strcmp(text, "head") == 0)
        result = find_head(i);
    else if (number)
        i->key = ls_key_manifest(strtoull(text, NULL, 10));
    else if (ls_key_parse(text, &i->key) != LS_OK) {
        return ls_fail(&i->error, LS_ERROR_INVALID,
                       "'%.200s' names no object of a lake: expected head, a version, or a key such as "
                       "data/7/1-0.tgb or manifest/00000000000000000001",
                       text);
    }
    if (result == LS_OK) ls_key_format(&i->key, i->name);
    return result;
}

static ls_result inspect_checkpoint(inspecting *i, const ls_lake_object *object)
{
    ls_checkpoint checkpoint;
    ls_error why = {""};
    ls_result result = ls_checkpoint_decode(object->bytes, (size_t)object->length, &i->key, &checkpoint, &why);
    if (result != LS_OK) return ls_fail(&i->error, result, "%s: %s", i->name, why.text);
    uint64_t ranks = (uint64_t)checkpoint.data_ranks * checkpoint.context_ranks;
    const char *kind = ls_checkpoint_kind_name(checkpoint.kind);
    if (i->json) {
        ls_text_format(&i->text,
                       "{\"key\":\"%s\",\"kind\":\"checkpoint\",\"bytes\":%" PRIu64 ",\"step\":%" PRIu64
                       ",\"checkpoint_kind\":\"%s\",\"pinned\":%s,\"order\":%" PRIu64 ",\"name\":",
                       i->name, object->object_bytes, checkpoint.step, kind, checkpoint.pinned ? "true" : "false",
                       ls_checkpoint_order(checkpoint.number));
        ls_text_json(&i->text, checkpoint.name);
        ls_text_add(&i->text, ",\"rank_steps\":[");
        for (uint64_t r = 0; r < ranks; r++)
            ls_text_format(&i->text, r == 0 ? "%" PRIu64 : ",%" PRIu64, checkpoint.rank_steps[r]);
        ls_text_add(&i->text, "]}\n");
    } else {
        ls_text_format(&i->text,
                       "%s: checkpoint, %" PRIu64 " bytes\n\"%s\", step %" PRIu64 ", %s%s, order %" PRIu64 ", %" PRIu32
                       " x %" PRIu32 " ranks\n",
                       i->name, object->object_bytes, checkpoint.name, checkpoint.step, kind,
                       checkpoint.pinned ? ", pinned" : "", ls_checkpoint_order(checkpoint.number),
                       checkpoint.data_ranks, checkpoint.context_ranks);
        for (uint64_t r = 0; r < ranks && r < i->shown_most; r++) {
            ls_text_format(&i->text, "rank %" PRIu64 ",%" PRIu64 ": step %" PRIu64 "\n", r / checkpoint.context_ranks,
                           r % checkpoint.context_ranks, checkpoint.rank_steps[r]);
        }
    }
    ls_checkpoint_clear(&checkpoint);
    return LS_OK;
}

static ls_result inspect(inspecting *i)
{
    ls_lake_object object = {0};
    ls_result result = ls_lake_open(i->arguments, LS_LAKE_READ, &i->lake, &i->error);
    if (result == LS_OK) result = choose_object(i);
    if (result == LS_OK) result = ls_lake_get(&i->lake, i->name, 0, &object, &i->error);
    if (result != LS_OK) return result;
    if (!object.exists) return ls_fail(&i->error, LS_ERROR_INVALID, "there is no %s in %s", i->name, i->lake.address);
    switch (i->key.kind) {
    case LS_OBJECT_MANIFEST: result = inspect_manifest(i, &object); break;
    case LS_OBJECT_DATA: result = inspect_batch(i, &object); break;
    case LS_OBJECT_FLOOR:
        ls_text_format(&i->text,
                       i->json ? "{\"key\":\"%s\",\"kind\":\"floor\",\"bytes\":%" PRIu64 ",\"version\":%" PRIu64 "}\n"
                               : "%s: floor, %" PRIu64 " bytes\nversions below %" PRIu64 " are void\n",
                       i->name, object.object_bytes, i->key.number);
        break;
    case LS_OBJECT_CHECKPOINT: result = inspect_checkpoint(i, &object); break;
    }
    ls_free(object.bytes);
    return result;
}

static int run(const ls_arguments *arguments)
{
    inspecting i = {.arguments = arguments,
                    .json = ls_argument_flag(arguments, "json"),
                    .shown_most = ls_argument_whole(arguments, "entries")};
    ls_result result = inspect(&i);
    if (result == LS_OK && i.text.failed) result = ls_fail(&i.error, LS_ERROR_MEMORY, "out of memory for the text");
    if (result == LS_OK) fputs(i.text.bytes, stdout);
    ls_text_free(&i.text);
    ls_lake_close(&i.lake);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_damage(arguments, result, &i.error);
}

static const ls_command_option options[] = {LS_OPTION_BACKEND,
                                            {"entries", 'n', LS_ARGUMENT_WHOLE, "N", "20", 0, 9007199254740992.0,
                                             "entries, rows and slices shown, the last ones"},
                                            {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "as JSON"}};

const ls_command ls_command_inspect = {.name = "inspect",
                                       .operands = "[KEY|head|VERSION]",
                                       .maximum_operands = 1,
                                       .summary = "Show an object of a lake, by default the newest manifest",
                                       .details = "Exit codes: 0 shown, intact; 1 the object is damaged, and where; 2 "
                                                  "bad usage, or no such object; 3 the store refuses.",
                                       .options = options,
                                       .option_count = sizeof options / sizeof options[0],
                                       .run = run};
