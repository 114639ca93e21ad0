/* cmd_fsck.c - `lakestream fsck`: does a lake keep every promise? Reads all of it, changes nothing, may run beside
 * everybody else.
 *
 * Order makes it safe on a live lake. The versions are listed first and the data objects afterwards: whatever a listed
 * version names was uploaded before that version was put, so it must be in the later list. What others add meanwhile is
 * newer and not looked at. The newest version alone is asked for missing objects: by I3 it repeats every entry of the
 * older ones, but for those that were trimmed, whose objects may be gone.
 *
 * Versions below the greatest floor are void (section 6 of PROTOCOL.md) and skipped. A reclaimer that is at work
 * meanwhile raises the floor before it deletes a version, and the watermark before it deletes a batch; so what is found
 * missing is no fault when floor or watermark, read again then, lie above it.
 */
#include "experiments/batch_source.h"
#include "experiments/checkpoints.h"
#include "experiments/commands.h"
#include "experiments/dataplane.h"
#include "experiments/text.h"
#include "manifest/codec.h"
#include "manifest/invariants.h"
#include "manifest/tgb.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN_SHOWN 20u
#define LISTS_MAX     5u

typedef struct found_object {
    ls_key key;
    uint64_t bytes;
    bool named; /* by the newest version */
} found_object;

typedef struct object_list {
    found_object *items;
    size_t count, capacity;
} object_list;

typedef struct checking {
    const ls_arguments *arguments;
    ls_lake lake;
    object_list versions, data;
    ls_invariants invariants;
    const ls_manifest *newest; /* one reference; the newest version that could be read */
    ls_text problems;          /* JSON strings, separated by commas, or lines */
    ls_text foreign;           /* likewise; the first FOREIGN_SHOWN */
    ls_error error;
    bool json, deep, synthetic;
    uint64_t floor;
    uint64_t problem_count, foreign_count, checkpoints, pinned, void_checkpoints, probes, void_versions, manifest_bytes;
    uint64_t watermark; /* the greatest read so far */
    uint64_t untrimmed; /* steps that are listed although their objects are reclaimed */
    uint64_t entries, named_bytes, orphans, orphan_bytes, orphans_pending, verified_slices, verified_bytes;
} checking;

/* --- what was found
 * ------------------------------------------------------------------------------------------------------ */

static void add_line(const checking *c, ls_text *text, uint64_t count, const char *line)
{
    if (!c->json) {
        ls_text_format(text, "%s\n", line);
        return;
    }
    if (count > 0) ls_text_add(text, ",");
    ls_text_json(text, line);
}

__attribute__((format(printf, 2, 3))) static void problem(checking *c, const char *format, ...)
{
    ls_error line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line.text, sizeof line.text, format, arguments);
    va_end(arguments);
    add_line(c, &c->problems, c->problem_count++, line.text);
}

static ls_result add_object(object_list *list, const ls_key *key, uint64_t bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        found_object *items = ls_reallocate(list->items, capacity * sizeof *items);
        if (items == NULL) return LS_ERROR_MEMORY;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (found_object){.key = *key, .bytes = bytes};
    return LS_OK;
}

static int compare_objects(const void *left, const void *right)
{
    return ls_key_compare(&((const found_object *)left)->key, &((const found_object *)right)->key);
}

static found_object *find_object(const object_list *list, const ls_key *key)
{
    found_object wanted = {.key = *key};
    if (list->count == 0) return NULL;
    return bsearch(&wanted, list->items, list->count, sizeof wanted, compare_objects);
}

static void note_foreign(checking *c, const char *name)
{
    if (strncmp(name, "probe/", 6) == 0) { /* of a producer that was killed while it tried the store, or does so now */
        c->probes++;
        return;
    }
    if (c->foreign_count < FOREIGN_SHOWN) add_line(c, &c->foreign, c->foreign_count, name);
    c->foreign_count++;
}

static ls_result note_version(void *context, const char *name, uint64_t bytes)
{
    checking *c = context;
    ls_key key;
    if (ls_key_parse(name, &key) != LS_OK || key.kind != LS_OBJECT_MANIFEST) return LS_OK; /* told in the second list */
    c->manifest_bytes += bytes;
    return add_object(&c->versions, &key, bytes);
}

static ls_result note_object(void *context, const char *name, uint64_t bytes)
{
    checking *c = context;
    ls_key key;
    if (ls_key_parse(name, &key) != LS_OK) {
        note_foreign(c, name);
        return LS_OK;
    }
    switch (key.kind) {
    case LS_OBJECT_DATA: return add_object(&c->data, &key, bytes);
    case LS_OBJECT_CHECKPOINT: break; /* read by check_checkpoints */
    case LS_OBJECT_FLOOR: c->floor = key.number > c->floor ? key.number : c->floor; break;
    case LS_OBJECT_MANIFEST: break;
    }
    return LS_OK;
}

static void sort_objects(object_list *list)
{
    if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, compare_objects);
}

static ls_result list_once(checking *c)
{
    c->versions.count = c->data.count = 0;
    c->manifest_bytes = c->foreign_count = c->probes = 0;
    ls_text_free(&c->foreign);
    ls_result result = ls_lake_list(&c->lake, "manifest/", note_version, c, &c->error);
    if (result == LS_OK) result = ls_lake_list(&c->lake, "", note_object, c, &c->error);
    sort_objects(&c->versions);
    sort_objects(&c->data);
    return result;
}

/* Between the two lists a reclaimer may have raised the floor above all versions of the first: then both are made
 * again. */
static ls_result list_everything(checking *c)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < LISTS_MAX && result == LS_OK; i++) {
        result = list_once(c);
        size_t count = c->versions.count;
        if (count == 0 || c->versions.items[count - 1].key.number >= c->floor) break;
    }
    return result;
}

/* --- beside a reclaimer
 * ------------------------------------------------------------------------------------------------- */

/* Is a version that was listed and is gone below the floor by now? */
static ls_result is_void_by_now(checking *c, uint64_t version, bool *is_void)
{
    uint64_t newest, floor;
    ls_result result = ls_lake_newest(&c->lake, &newest, &floor, &c->error);
    *is_void = result == LS_OK && version < floor;
    return result;
}

/* Is a step whose object is gone below the watermark by now? Reads the newest version again if it must. */
static ls_result is_reclaimed_by_now(checking *c, uint64_t step, bool *is_reclaimed)
{
    uint64_t newest = 0, floor;
    char name[LS_KEY_TEXT_BYTES];
    ls_lake_object got = {0};
    ls_manifest *manifest = NULL;
    *is_reclaimed = step < c->watermark;
    if (*is_reclaimed) return LS_OK;
    ls_result result = ls_lake_newest(&c->lake, &newest, &floor, &c->error);
    if (result != LS_OK || newest == 0 || newest <= ls_manifest_version(c->newest)) return result;
    ls_key key = ls_key_manifest(newest);
    ls_key_format(&key, name);
    result = ls_lake_get(&c->lake, name, 0, &got, &c->error);
    if (result != LS_OK || !got.exists) return result;
    result = ls_manifest_decode(got.bytes, (size_t)got.length, newest, &manifest, NULL);
    ls_free(got.bytes);
    if (result == LS_ERROR_MEMORY) return ls_fail(&c->error, result, "out of memory for %s", name);
    if (result != LS_OK) return LS_OK;
    if (ls_manifest_low_watermark(manifest) > c->watermark) c->watermark = ls_manifest_low_watermark(manifest);
    ls_manifest_release(manifest);
    *is_reclaimed = step < c->watermark;
    return LS_OK;
}

/* --- versions
 * ------------------------------------------------------------------------------------------------------------ */

/* After a broken promise the next version is compared with this one, so that each fault is told once. NULL: nothing to
 * compare with. */
static void go_on_from(checking *c, const ls_manifest *manifest)
{
    ls_manifest_release(c->invariants.head);
    c->invariants.head = manifest == NULL ? NULL : ls_manifest_retain(manifest);
}

static void check_version(checking *c, const char *name, const ls_manifest *manifest)
{
    ls_error error = {""};
    if (ls_invariants_created(&c->invariants, manifest, &error) != LS_OK) {
        problem(c, "%s: %s", name, error.text);
        go_on_from(c, manifest);
    }
    ls_manifest_release(c->newest);
    c->newest = ls_manifest_retain(manifest);
    if (ls_manifest_low_watermark(manifest) > c->watermark) c->watermark = ls_manifest_low_watermark(manifest);
}

static ls_result read_version(checking *c, const found_object *object)
{
    char name[LS_KEY_TEXT_BYTES];
    ls_lake_object got;
    ls_manifest *manifest = NULL;
    ls_error why = {""};
    ls_key_format(&object->key, name);
    ls_result result = ls_lake_get(&c->lake, name, 0, &got, &c->error);
    if (result != LS_OK) return result;
    if (!got.exists) {
        bool is_void;
        result = is_void_by_now(c, object->key.number, &is_void);
        if (result == LS_OK && is_void) c->void_versions++;
        if (result == LS_OK && !is_void) problem(c, "%s: listed, but gone when it was read", name);
        go_on_from(c, NULL);
        return result;
    }
    result = ls_manifest_decode(got.bytes, (size_t)got.length, object->key.number, &manifest, &why);
    ls_free(got.bytes);
    if (result == LS_ERROR_MEMORY) return ls_fail(&c->error, result, "out of memory for %s", name);
    if (result != LS_OK) {
        problem(c, "%s: %s", name, why.text);
        go_on_from(c, NULL);
        return LS_OK;
    }
    check_version(c, name, manifest);
    ls_manifest_release(manifest);
    return LS_OK;
}

/* A lake without floors begins at version 1, made on top of nothing. */
static ls_result begin_history(checking *c)
{
    ls_invariants_init(&c->invariants, LS_CHECK_ALL, NULL, NULL);
    if (c->floor > 0) return LS_OK;
    c->invariants.head = ls_manifest_new_empty();
    return c->invariants.head != NULL ? LS_OK : ls_fail(&c->error, LS_ERROR_MEMORY, "out of memory");
}

static ls_result check_versions(checking *c)
{
    ls_result result = begin_history(c);
    uint64_t expected = c->floor > 0 ? c->floor : 1;
    for (size_t i = 0; i < c->versions.count && result == LS_OK; i++) {
        const found_object *object = &c->versions.items[i];
        uint64_t version = object->key.number;
        if (version < c->floor) {
            c->void_versions++;
            continue;
        }
        if (version > expected) {
            problem(c, "I1: versions %" PRIu64 " to %" PRIu64 " are missing below version %" PRIu64, expected,
                    version - 1, version);
            go_on_from(c, NULL);
        }
        expected = version + 1;
        result = read_version(c, object);
    }
    if (result == LS_OK && c->floor > 0 && expected == c->floor) {
        problem(c, "I1: floor %" PRIu64 " stands, but the version of that number is missing", c->floor);
    }
    return result;
}

/* --- checkpoints
 * ---------------------------------------------------------------------------------------------------------- */

static ls_result check_checkpoint(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    checking *c = context;
    (void)key;
    c->checkpoints++;
    c->pinned += checkpoint->pinned;
    c->void_checkpoints += c->newest != NULL && checkpoint->step < ls_manifest_trim_step(c->newest);
    return LS_OK;
}

static ls_result check_checkpoints(checking *c)
{
    ls_error why = {""};
    ls_result result = ls_lake_checkpoints(&c->lake, check_checkpoint, c, &why);
    if (result == LS_ERROR_CORRUPT || result == LS_ERROR_VERSION) {
        problem(c, "%s", why.text);
        return LS_OK;
    }
    if (result != LS_OK) c->error = why;
    return result;
}

/* --- data
 * ---------------------------------------------------------------------------------------------------------------- */

static void check_slice(checking *c, const char *name, const ls_tgb_index *index, uint32_t at, const uint8_t *bytes)
{
    const ls_slice *slice = &index->slices[at];
    ls_error why = {""};
    if (ls_tgb_verify_slice(slice, bytes + slice->offset, (size_t)slice->bytes, &why) != LS_OK) {
        problem(c, "%s: %s", name, why.text);
        return;
    }
    c->verified_slices++;
    c->verified_bytes += slice->bytes;
    if (!c->synthetic) return;
    uint64_t difference =
        ls_synthetic_difference(index->identity.producer, index->identity.source_begin, slice->data_rank,
                                slice->context_rank, bytes + slice->offset, slice->bytes);
    if (difference == UINT64_MAX) return;
    problem(c,
            "%s: slice of data rank %" PRIu32 ", context rank %" PRIu32
            " differs from the synthetic source at its byte %" PRIu64,
            name, slice->data_rank, slice->context_rank, difference);
}

static ls_result check_object(checking *c, const char *name, uint64_t step, const ls_entry *entry)
{
    ls_lake_object got;
    ls_tgb_index *index = NULL;
    ls_error why = {""};
    ls_result result = ls_lake_get(&c->lake, name, 0, &got, &c->error);
    if (result != LS_OK) return result;
    if (!got.exists) {
        bool is_reclaimed;
        result = is_reclaimed_by_now(c, step, &is_reclaimed);
        if (result == LS_OK && !is_reclaimed) problem(c, "I6: %s: listed, but gone when it was read", name);
        return result;
    }
    result = ls_tgb_decode_footer(got.bytes, (size_t)got.length, got.object_bytes, &index, NULL, &why);
    if (result == LS_OK && index != NULL) result = ls_tgb_check_entry(index, entry, &why);
    if (result == LS_OK && index == NULL)
        result = ls_fail(&why, LS_ERROR_CORRUPT, "the footer is longer than the object");
    if (result != LS_OK && result != LS_ERROR_MEMORY) problem(c, "%s: %s", name, why.text);
    for (uint32_t i = 0; result == LS_OK && i < index->data_ranks * index->context_ranks; i++) {
        check_slice(c, name, index, i, got.bytes);
    }
    ls_free(index);
    ls_free(got.bytes);
    return result == LS_ERROR_MEMORY ? ls_fail(&c->error, result, "out of memory for %s", name) : LS_OK;
}

static ls_result check_entry(checking *c, uint64_t step, const ls_entry *entry)
{
    char name[LS_KEY_TEXT_BYTES];
    ls_key key = ls_key_data(entry->producer, entry->epoch, entry->sequence);
    found_object *object = find_object(&c->data, &key);
    ls_key_format(&key, name);
    c->entries++;
    if (object == NULL) {
        bool is_reclaimed;
        ls_result result = is_reclaimed_by_now(c, step, &is_reclaimed);
        if (result != LS_OK) return result;
        c->untrimmed += is_reclaimed;
        if (is_reclaimed) return LS_OK;
        problem(c, "I6: step %" PRIu64 " names %s, which the store does not hold", step, name);
        return LS_OK;
    }
    object->named = true;
    c->named_bytes += object->bytes;
    if (object->bytes != entry->size_bytes) {
        problem(c, "I6: step %" PRIu64 " names %s of %" PRIu64 " bytes, the store holds %" PRIu64, step, name,
                entry->size_bytes, object->bytes);
    }
    return c->deep ? check_object(c, name, step, entry) : LS_OK;
}

static ls_result check_entries(checking *c)
{
    if (c->newest == NULL) return LS_OK;
    ls_result result = LS_OK;
    for (uint64_t step = ls_manifest_trim_step(c->newest); step < ls_manifest_end_step(c->newest) && result == LS_OK;
         step++) {
        ls_entry entry;
        if (ls_manifest_entry(c->newest, step, &entry)) result = check_entry(c, step, &entry);
    }
    return result;
}

/* The set of committed batches of an epoch is final once a higher one owns the row, or the row is closed. */
static bool may_still_be_committed(const checking *c, const ls_key *key)
{
    if (c->newest == NULL) return true;
    const ls_row *row = ls_manifest_row(c->newest, ls_manifest_find_slot(c->newest, key->number));
    return row == NULL || key->epoch > row->epoch || (key->epoch == row->epoch && !row->closed);
}

static void count_orphans(checking *c)
{
    for (size_t i = 0; i < c->data.count; i++) {
        const found_object *object = &c->data.items[i];
        if (object->named) continue;
        c->orphans++;
        c->orphan_bytes += object->bytes;
        c->orphans_pending += may_still_be_committed(c, &object->key);
    }
}

/* --- report
 * -------------------------------------------------------------------------------------------------------------- */

static void report_json(const checking *c, ls_text *text)
{
    uint64_t version = c->newest == NULL ? 0 : ls_manifest_version(c->newest);
    ls_text_format(text,
                   "{\"sound\":%s,\"newest_version\":%" PRIu64 ",\"versions_checked\":%" PRIu64
                   ",\"void_versions\":%" PRIu64 ",\"floor\":%" PRIu64 ",\"steps\":%" PRIu64 ",\"entries\":%" PRIu64
                   ",\"producers\":%" PRIu32 ",\"open_producers\":%" PRIu32,
                   c->problem_count == 0 ? "true" : "false", version, c->invariants.versions_checked, c->void_versions,
                   c->floor, c->newest == NULL ? 0 : ls_manifest_end_step(c->newest), c->entries,
                   c->newest == NULL ? 0 : ls_manifest_row_count(c->newest),
                   c->newest == NULL ? 0 : ls_manifest_open_row_count(c->newest));
    ls_text_format(text,
                   ",\"data_bytes\":%" PRIu64 ",\"manifest_bytes\":%" PRIu64 ",\"deep\":%s,\"verified_slices\":%" PRIu64
                   ",\"verified_bytes\":%" PRIu64 ",\"orphans\":%" PRIu64 ",\"orphan_bytes\":%" PRIu64
                   ",\"orphans_pending\":%" PRIu64 ",\"checkpoints\":%" PRIu64 ",\"pinned\":%" PRIu64
                   ",\"void_checkpoints\":%" PRIu64 ",\"low_watermark\":%" PRIu64 ",\"trim_step\":%" PRIu64
                   ",\"untrimmed\":%" PRIu64 ",\"probes\":%" PRIu64 ",\"foreign_count\":%" PRIu64 ",\"foreign\":[",
                   c->named_bytes, c->manifest_bytes, c->deep ? "true" : "false", c->verified_slices, c->verified_bytes,
                   c->orphans, c->orphan_bytes, c->orphans_pending, c->checkpoints, c->pinned, c->void_checkpoints,
                   c->watermark, c->newest == NULL ? 0 : ls_manifest_trim_step(c->newest), c->untrimmed, c->probes,
                   c->foreign_count);
    if (c->foreign.bytes != NULL) ls_text_add(text, c->foreign.bytes);
    ls_text_add(text, "],\"problems\":[");
    if (c->problems.bytes != NULL) ls_text_add(text, c->problems.bytes);
    ls_text_add(text, "]}\n");
}

static void report_lines(const checking *c, ls_text *text)
{
    if (c->problems.bytes != NULL) ls_text_add(text, c->problems.bytes);
    ls_text_format(text,
                   "%" PRIu64 " versions, %" PRIu64 " steps, %" PRIu32 " producers (%" PRIu32 " open), %" PRIu64
                   " bytes of data, %" PRIu64 " of manifests\n",
                   c->invariants.versions_checked, c->newest == NULL ? 0 : ls_manifest_end_step(c->newest),
                   c->newest == NULL ? 0 : ls_manifest_row_count(c->newest),
                   c->newest == NULL ? 0 : ls_manifest_open_row_count(c->newest), c->named_bytes, c->manifest_bytes);
    if (c->deep) {
        ls_text_format(text, "%" PRIu64 " slices (%" PRIu64 " bytes) agree with their checksums%s\n",
                       c->verified_slices, c->verified_bytes,
                       c->synthetic ? " and were compared with the synthetic source" : "");
    }
    if (c->orphans > 0) {
        ls_text_format(text,
                       "%" PRIu64 " orphans (%" PRIu64 " bytes): uploaded, named by no version; %" PRIu64
                       " of them may still be committed\n",
                       c->orphans, c->orphan_bytes, c->orphans_pending);
    }
    if (c->void_versions > 0)
        ls_text_format(text, "%" PRIu64 " void versions below floor %" PRIu64 "\n", c->void_versions, c->floor);
    if (c->checkpoints > 0) {
        ls_text_format(text,
                       "%" PRIu64 " checkpoints, %" PRIu64 " of them pinned, %" PRIu64 " of steps that are trimmed\n",
                       c->checkpoints, c->pinned, c->void_checkpoints);
    }
    if (c->watermark > 0) {
        ls_text_format(text,
                       "watermark %" PRIu64 ", trimmed below step %" PRIu64 "; %" PRIu64
                       " steps are reclaimed and still listed\n",
                       c->watermark, c->newest == NULL ? 0 : ls_manifest_trim_step(c->newest), c->untrimmed);
    }
    if (c->probes > 0)
        ls_text_format(text, "%" PRIu64 " objects of store probes that are under way or were killed\n", c->probes);
    if (c->foreign_count > 0) {
        ls_text_format(text, "%" PRIu64 " foreign objects, ignored by everyone:\n%s%s", c->foreign_count,
                       c->foreign.bytes == NULL ? "" : c->foreign.bytes,
                       c->foreign_count > FOREIGN_SHOWN ? "...\n" : "");
    }
    if (c->problem_count > 0)
        ls_text_format(text, "%" PRIu64 " problems\n", c->problem_count);
    else
        ls_text_add(text, "every promise is kept\n");
}

static int report(checking *c)
{
    ls_text text = {0};
    if (c->json)
        report_json(c, &text);
    else
        report_lines(c, &text);
    bool complete = !text.failed && !c->problems.failed && !c->foreign.failed;
    if (complete) fputs(text.bytes, stdout);
    ls_text_free(&text);
    if (!complete) {
        return ls_report_error(c->arguments, ls_fail(&c->error, LS_ERROR_MEMORY, "out of memory for the report"),
                               &c->error);
    }
    return c->problem_count == 0 ? LS_EXIT_DONE : LS_EXIT_CHECK_FAILED;
}

static ls_result check(checking *c)
{
    ls_result result = ls_lake_open(c->arguments, LS_LAKE_READ, &c->lake, &c->error);
    if (result != LS_OK) return result;
    result = list_everything(c);
    if (result == LS_OK && c->versions.count == 0 && c->data.count == 0) {
        return ls_fail(&c->error, LS_ERROR_INVALID,
                       "there is no lake in %s: neither versions nor data; is the address right?", c->lake.address);
    }
    if (result == LS_OK && c->versions.count == 0) {
        problem(c, "I1: %zu data objects and no manifest version: the versions are lost, or the prefix is wrong",
                c->data.count);
    }
    if (result == LS_OK) result = check_versions(c);
    if (result == LS_OK) result = check_entries(c);
    if (result == LS_OK) result = check_checkpoints(c);
    if (result == LS_OK) count_orphans(c);
    return result;
}

static int run(const ls_arguments *arguments)
{
    checking c = {.arguments = arguments,
                  .json = ls_argument_flag(arguments, "json"),
                  .synthetic = ls_argument_flag(arguments, "verify")};
    c.deep = c.synthetic || ls_argument_flag(arguments, "deep");
    ls_result result = check(&c);
    int code = result == LS_OK ? report(&c) : ls_report_error(arguments, result, &c.error);
    ls_invariants_clear(&c.invariants);
    ls_manifest_release(c.newest);
    ls_lake_close(&c.lake);
    ls_text_free(&c.problems);
    ls_text_free(&c.foreign);
    ls_free(c.versions.items);
    ls_free(c.data.items);
    return code;
}

static const ls_command_option options[] = {
    LS_OPTION_BACKEND,
    {"deep", 'd', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "read every batch too: footer, identity, all checksums"},
    {"verify", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "compare every batch with the synthetic source; implies --deep"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_fsck = {
    .name = "fsck",
    .operands = "",
    .summary = "Check every promise of the protocol on a lake, alive or not",
    .details =
        "Reads all manifest versions in order and holds them against the invariants I1 to I6 of manifest/PROTOCOL.md: "
        "dense\n"
        "versions, gap-free steps, committed entries unchanged, every source offset once and in order, epochs, every "
        "named\n"
        "object from the watermark on there and of its size. Orphans and foreign objects are told and are no fault.\n"
        "Exit codes: 0 sound; 1 something is wrong, one line each; 2 bad usage, or no lake there; 3 the store refuses.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
