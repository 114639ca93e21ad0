/* invariants.h - the promises of the protocol as one checker, called by every driver: simulator, real-time loop, explorer, fsck.
 *
 * The checker watches one history of versions. Each newly created version is compared with the one before it:
 *   I1  versions follow one another without a gap, and only on top of the newest one
 *   I2  steps are gap-free and never renumbered; trim point and low watermark only move forward, trim <= watermark
 *   I3  a committed entry never changes
 *   I4  each (producer, source offset) appears exactly once and in order: a producer's new entries begin at its old row's
 *       next source offset, touch one another, and end at its new row's
 *   I5  epochs never fall; entries carry their row's epoch; a row is changed only by its own commit, keeps its slot, and
 *       stays closed until a higher epoch reopens it
 *   I6  no entry names an object that is absent or of another size (asked of the driver)
 *   I7  what was acknowledged is in the newest version, and by I4 and I5 stays
 *   I8  what is deleted is needed by nobody: never the newest version; never a batch that it names at or above the low watermark, nor one at
 *       or above the least step that a kept checkpoint or a pinned reader protects (the driver knows that step)
 * Consumers and checkpoints add theirs where those machines are.
 */
#ifndef LS_INVARIANTS_H
#define LS_INVARIANTS_H

#include "manifest/key.h"
#include "manifest/manifest.h"

typedef enum ls_check_depth {
    LS_CHECK_NEW = 0, /* what the new version adds: O(new entries), for long simulations */
    LS_CHECK_ALL      /* every entry and row: for explorer, fuzzing, fsck */
} ls_check_depth;

/* Asked for I6: does an object of that key and size exist now? NULL where the driver cannot know. */
typedef bool (*ls_object_exists)(void *context, const ls_key *key, uint64_t size_bytes);

typedef struct ls_invariants {
    const ls_manifest *head; /* one reference; NULL before the first version was seen */
    ls_check_depth depth;
    ls_object_exists exists;
    void *context;
    uint64_t versions_checked;
} ls_invariants;

void ls_invariants_init(ls_invariants *invariants, ls_check_depth depth, ls_object_exists exists, void *context);
void ls_invariants_clear(ls_invariants *invariants);

/* A version was created in the store (or is the first one seen). LS_ERROR_VIOLATED with the invariant's number, the version
 * and both values when a promise is broken; the checker then keeps its head. */
ls_result ls_invariants_created(ls_invariants *invariants, const ls_manifest *created, ls_error *error);

/* The object `key` was deleted, or is about to be. protected_step: the least step that a checkpoint somebody was told is durable, and
 * that is kept, or a reader who pinned what he reads, still needs; UINT64_MAX: none. Names of other kinds are never in question. */
ls_result ls_invariants_deleted(const ls_invariants *invariants, const ls_key *key, uint64_t protected_step, ls_error *error);

/* A producer was told that its source offsets below source_end are committed. */
ls_result ls_invariants_acknowledged(ls_invariants *invariants, uint64_t producer, uint64_t source_end, ls_error *error);

#endif
