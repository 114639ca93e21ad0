/* invariants.c - the checker of invariants.h. Each check names its invariant, so that a failure can be looked up. */
#include "manifest/invariants.h"

#include <inttypes.h>

void ls_invariants_init(ls_invariants *invariants, ls_check_depth depth, ls_object_exists exists, void *context)
{
    *invariants = (ls_invariants){.depth = depth, .exists = exists, .context = context};
}

void ls_invariants_clear(ls_invariants *invariants)
{
    ls_manifest_release(invariants->head);
    invariants->head = NULL;
}

/* Simulated producers are numbered by their slot, which makes the usual look-up immediate. */
static const ls_row *row_of(const ls_manifest *manifest, uint64_t producer)
{
    if (producer < ls_manifest_row_count(manifest)) {
        const ls_row *guess = ls_manifest_row(manifest, (uint32_t)producer);
        if (guess->producer == producer) return guess;
    }
    return ls_manifest_row(manifest, ls_manifest_find_slot(manifest, producer));
}

static ls_result check_shape(const ls_manifest *head, const ls_manifest *created, ls_error *error)
{
    uint64_t version = ls_manifest_version(created);
    if (version != ls_manifest_version(head) + 1) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I1: version %" PRIu64 " was created on top of version %" PRIu64, version,
                       ls_manifest_version(head));
    }
    if (ls_manifest_end_step(created) < ls_manifest_end_step(head)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I2: version %" PRIu64 " ends at step %" PRIu64 ", the one before at %" PRIu64,
                       version, ls_manifest_end_step(created), ls_manifest_end_step(head));
    }
    if (ls_manifest_trim_step(created) < ls_manifest_trim_step(head) ||
        ls_manifest_low_watermark(created) < ls_manifest_low_watermark(head) ||
        ls_manifest_trim_step(created) > ls_manifest_low_watermark(created)) {
        return ls_fail(error, LS_ERROR_VIOLATED,
                       "I2: version %" PRIu64 " has trim point %" PRIu64 " and watermark %" PRIu64
                       ", the one before %" PRIu64 " and %" PRIu64,
                       version, ls_manifest_trim_step(created), ls_manifest_low_watermark(created),
                       ls_manifest_trim_step(head), ls_manifest_low_watermark(head));
    }
    return LS_OK;
}

static bool same_entry(const ls_entry *a, const ls_entry *b)
{
    return a->producer == b->producer && a->sequence == b->sequence && a->source_begin == b->source_begin &&
           a->source_end == b->source_end && a->size_bytes == b->size_bytes && a->epoch == b->epoch &&
           a->footer_bytes == b->footer_bytes;
}

static ls_result check_old_entries(const ls_invariants *invariants, const ls_manifest *created, ls_error *error)
{
    const ls_manifest *head = invariants->head;
    uint64_t first = ls_manifest_trim_step(created), end = ls_manifest_end_step(head);
    if (invariants->depth == LS_CHECK_NEW && end > first) first = end - 1;
    for (uint64_t step = first; step < end; step++) {
        ls_entry before, after;
        bool listed = ls_manifest_entry(head, step, &before) && ls_manifest_entry(created, step, &after);
        if (!listed || !same_entry(&before, &after)) {
            return ls_fail(error, LS_ERROR_VIOLATED, "I3: the entry of step %" PRIu64 " differs between versions %" PRIu64
                           " and %" PRIu64, step, ls_manifest_version(head), ls_manifest_version(created));
        }
    }
    return LS_OK;
}

static ls_result check_new_entry(const ls_invariants *invariants, const ls_manifest *created, uint64_t step,
                                 uint64_t first_new, ls_error *error)
{
    ls_entry entry, earlier;
    if (!ls_manifest_entry(created, step, &entry)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I2: version %" PRIu64 " has no entry for step %" PRIu64,
                       ls_manifest_version(created), step);
    }
    const ls_row *old_row = row_of(invariants->head, entry.producer), *row = row_of(created, entry.producer);
    uint64_t expected = old_row == NULL ? 0 : old_row->next_source_offset;
    for (uint64_t back = step; back > first_new; back--) { /* an earlier new entry of the same producer comes before */
        if (ls_manifest_entry(created, back - 1, &earlier) && earlier.producer == entry.producer) {
            expected = earlier.source_end;
            break;
        }
    }
    if (entry.source_begin != expected || entry.source_end <= entry.source_begin) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I4: step %" PRIu64 " of producer %" PRIu64 " holds source offsets %" PRIu64
                       " to %" PRIu64 ", expected to begin at %" PRIu64, step, entry.producer, entry.source_begin,
                       entry.source_end, expected);
    }
    if (row == NULL || row->epoch != entry.epoch || row->next_source_offset < entry.source_end) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I4: step %" PRIu64 " of producer %" PRIu64 " (epoch %" PRIu32
                       ", source end %" PRIu64 ") does not fit the producer's row (epoch %" PRIu32 ", next offset %" PRIu64 ")",
                       step, entry.producer, entry.epoch, entry.source_end, row == NULL ? 0 : row->epoch,
                       row == NULL ? 0 : row->next_source_offset);
    }
    ls_key key = ls_key_data(entry.producer, entry.epoch, entry.sequence);
    if (invariants->exists != NULL && !invariants->exists(invariants->context, &key, entry.size_bytes)) {
        char text[LS_KEY_TEXT_BYTES];
        ls_key_format(&key, text);
        return ls_fail(error, LS_ERROR_VIOLATED, "I6: step %" PRIu64 " names %s of %" PRIu64 " bytes, which the store does not hold",
                       step, text, entry.size_bytes);
    }
    return LS_OK;
}

/* The end of what the new entries bring for a producer, or its old offset. */
static uint64_t source_end_of(const ls_manifest *created, uint64_t producer, uint64_t first_new, uint64_t old_offset)
{
    for (uint64_t step = ls_manifest_end_step(created); step > first_new; step--) {
        ls_entry entry;
        if (ls_manifest_entry(created, step - 1, &entry) && entry.producer == producer) return entry.source_end;
    }
    return old_offset;
}

static ls_result check_row(const ls_manifest *head, const ls_manifest *created, uint32_t slot, ls_error *error)
{
    const ls_row *before = ls_manifest_row(head, slot), *after = ls_manifest_row(created, slot);
    uint64_t version = ls_manifest_version(created);
    if (after == NULL || (before != NULL && before->producer != after->producer)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I5: version %" PRIu64 " gives slot %" PRIu32 " to another producer", version, slot);
    }
    uint64_t offset = before == NULL ? 0 : before->next_source_offset;
    uint64_t expected = source_end_of(created, after->producer, ls_manifest_end_step(head), offset);
    if (after->next_source_offset != expected) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I4: version %" PRIu64 " says producer %" PRIu64 " goes on at offset %" PRIu64
                       ", its entries say %" PRIu64, version, after->producer, after->next_source_offset, expected);
    }
    if (before == NULL) return LS_OK;
    bool changed = after->last_version != before->last_version;
    bool silent = !changed && (after->epoch != before->epoch || after->closed != before->closed ||
                               after->next_source_offset != before->next_source_offset ||
                               after->last_commit.incarnation != before->last_commit.incarnation ||
                               after->last_commit.attempt != before->last_commit.attempt);
    bool reopened = before->closed && changed && after->epoch == before->epoch;
    bool stolen = changed && after->epoch == before->epoch &&
                  after->last_commit.incarnation != before->last_commit.incarnation;
    if (after->epoch < before->epoch || silent || reopened || stolen || (changed && after->last_version != version)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I5: the row of producer %" PRIu64 " went from epoch %" PRIu32 " (%s) to epoch %" PRIu32
                       " in version %" PRIu64 "%s", after->producer, before->epoch, before->closed ? "closed" : "open",
                       after->epoch, version,
                       silent ? " without its own commit" : stolen ? " by another incarnation" : "");
    }
    return LS_OK;
}

static ls_result check_rows(const ls_invariants *invariants, const ls_manifest *created, ls_error *error)
{
    if (invariants->depth == LS_CHECK_NEW) return LS_OK;
    uint32_t before = ls_manifest_row_count(invariants->head), after = ls_manifest_row_count(created);
    for (uint32_t slot = 0; slot < (before > after ? before : after); slot++) {
        ls_result result = check_row(invariants->head, created, slot, error);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

ls_result ls_invariants_created(ls_invariants *invariants, const ls_manifest *created, ls_error *error)
{
    const ls_manifest *head = invariants->head;
    if (head != NULL) {
        ls_result result = check_shape(head, created, error);
        if (result == LS_OK) result = check_old_entries(invariants, created, error);
        uint64_t first_new = ls_manifest_end_step(head);
        for (uint64_t step = first_new; result == LS_OK && step < ls_manifest_end_step(created); step++) {
            result = check_new_entry(invariants, created, step, first_new, error);
        }
        if (result == LS_OK) result = check_rows(invariants, created, error);
        if (result != LS_OK) return result;
    }
    invariants->head = ls_manifest_retain(created);
    ls_manifest_release(head);
    invariants->versions_checked++;
    return LS_OK;
}

ls_result ls_invariants_acknowledged(ls_invariants *invariants, uint64_t producer, uint64_t source_end, ls_error *error)
{
    const ls_row *row = invariants->head == NULL ? NULL : row_of(invariants->head, producer);
    if (row != NULL && row->next_source_offset >= source_end) return LS_OK;
    return ls_fail(error, LS_ERROR_VIOLATED, "I7: producer %" PRIu64 " was told that offsets below %" PRIu64
                   " are committed; the newest version says %" PRIu64, producer, source_end,
                   row == NULL ? 0 : row->next_source_offset);
}

/* The step under which the newest version names an object; false when it names it nowhere. */
static bool find_step(const ls_manifest *head, const ls_key *key, uint64_t *step)
{
    for (*step = ls_manifest_trim_step(head); *step < ls_manifest_end_step(head); (*step)++) {
        ls_entry entry;
        if (ls_manifest_entry(head, *step, &entry) && entry.producer == key->number && entry.epoch == key->epoch &&
            entry.sequence == key->sequence) {
            return true;
        }
    }
    return false;
}

ls_result ls_invariants_deleted(const ls_invariants *invariants, const ls_key *key, uint64_t protected_step, ls_error *error)
{
    const ls_manifest *head = invariants->head;
    if (head == NULL) return LS_OK;
    if (key->kind == LS_OBJECT_MANIFEST && key->number == ls_manifest_version(head)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I8: version %" PRIu64 " is deleted; it is the newest", key->number);
    }
    uint64_t step;
    if (key->kind != LS_OBJECT_DATA || !find_step(head, key, &step)) return LS_OK;
    if (step >= ls_manifest_low_watermark(head)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "I8: the batch of step %" PRIu64 " is deleted; the watermark is %" PRIu64, step,
                       ls_manifest_low_watermark(head));
    }
    if (step < protected_step) return LS_OK;
    return ls_fail(error, LS_ERROR_VIOLATED, "I8: the batch of step %" PRIu64 " is deleted; a checkpoint or a pinned reader needs all from step %"
                   PRIu64 " on", step, protected_step);
}
