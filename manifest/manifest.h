/* manifest.h - one version of the manifest in memory: immutable, reference-counted, sharing everything with its parent.
 *
 * A manifest is the whole state of a lake: the entries (one per TGB, in global step order, gap-free), the producer table
 * (one row a producer: epoch, next source offset, last commit), the low watermark and the trim point. Committing makes a
 * child that adds k entries and changes one row. The child costs O(k + log producers), never O(entries), and its encoded
 * size is known without encoding; so the simulator can commit to a million-entry manifest in well under a microsecond.
 *
 *   entries   a chain of chunks, newest first; a chunk holds the entries one commit appended, and a skip pointer
 *             (Myers, "An applicative random-access stack", 1983) so that step s is found in O(log chunks).
 *   rows      a persistent radix tree of fan-out 16 over the slot, the row's position in order of registration; a slot
 *             never changes and is never reused. Changing a row copies one path.
 *
 * Ownership: functions that return an ls_manifest* return one reference; ls_manifest_release gives it back. References
 * are counted without atomics: a manifest belongs to one thread. Nothing here blocks or does I/O.
 */
#ifndef LS_MANIFEST_H
#define LS_MANIFEST_H

#include "manifest/base.h"

/* 128-bit commit id: the incarnation is drawn at random by each start of a producer, the attempt counts its commits. */
typedef struct ls_commit_id {
    uint64_t incarnation;
    uint64_t attempt;
} ls_commit_id;

/* One committed TGB. Its step is its position: trim point + index. Its key follows from producer, epoch, sequence. */
typedef struct ls_entry {
    uint64_t producer;
    uint64_t sequence;     /* upload number within the epoch */
    uint64_t source_begin; /* source offsets [source_begin, source_end) went into this batch */
    uint64_t source_end;
    uint64_t size_bytes;   /* of the whole object */
    uint32_t epoch;
    uint32_t footer_bytes; /* the object's last footer_bytes bytes are its index */
} ls_entry;

/* One producer's row. `closed` says that the producer stopped of its own will. */
typedef struct ls_row {
    uint64_t producer;
    uint64_t next_source_offset;
    uint64_t last_version; /* the version that last changed this row; maybe a helper's, who leaves the rest as it is */
    ls_commit_id last_commit;
    uint32_t epoch;
    bool closed;
} ls_row;

typedef struct ls_manifest ls_manifest;

#define LS_NO_SLOT UINT32_MAX

/* The empty manifest: version 0, no entries, no rows. It is never stored; version 1 is the first object.
 * NULL when out of memory. */
ls_manifest *ls_manifest_new_empty(void);

ls_manifest *ls_manifest_retain(const ls_manifest *manifest);
void ls_manifest_release(const ls_manifest *manifest); /* NULL is allowed */

/* What a version says about itself. */
uint64_t ls_manifest_version(const ls_manifest *manifest);
ls_commit_id ls_manifest_commit_id(const ls_manifest *manifest);
uint64_t ls_manifest_trim_step(const ls_manifest *manifest);      /* step of the first entry still listed */
uint64_t ls_manifest_end_step(const ls_manifest *manifest);       /* one past the last step */
uint64_t ls_manifest_entry_count(const ls_manifest *manifest);    /* end step - trim step */
uint64_t ls_manifest_low_watermark(const ls_manifest *manifest);  /* no checkpoint needs a step below */
uint32_t ls_manifest_row_count(const ls_manifest *manifest);
uint32_t ls_manifest_open_row_count(const ls_manifest *manifest); /* rows that are not closed */
uint64_t ls_manifest_encoded_bytes(const ls_manifest *manifest);  /* exact size of the object */

/* Bytes that a suffix read needs so that a reader who has the entries below known_end_step gets the rest: footer,
 * rows and the missing entries. At most the encoded size. */
uint64_t ls_manifest_tail_bytes(const ls_manifest *manifest, uint64_t known_end_step);

/* The running checksum of all entries below `step`, trimmed ones included (chain.h). step lies between the trim point and
 * the end step, both included, and is moved there if it does not. */
uint32_t ls_manifest_chain(const ls_manifest *manifest, uint64_t step);

/* The entry of a step into *entry; false when the step is below the trim point or not committed yet. */
bool ls_manifest_entry(const ls_manifest *manifest, uint64_t step, ls_entry *entry);

/* Copies up to capacity entries from first_step on into entries, oldest first; returns how many. O(log chunks + count). */
uint64_t ls_manifest_entries(const ls_manifest *manifest, uint64_t first_step, uint64_t capacity, ls_entry *entries);

/* Shows the entries of steps first_step .. end_step - 1, where they lie: visit is called for stretches of them, the newest
 * stretch first (as they are linked), with the step of its first entry. False when visit returned false, which ends it, or
 * when a step is not listed. O(log chunks + chunks passed). */
typedef bool (*ls_entries_visitor)(void *context, uint64_t step, const ls_entry *entries, uint64_t count);
bool ls_manifest_visit_entries(const ls_manifest *manifest, uint64_t first_step, uint64_t end_step,
                               ls_entries_visitor visit, void *context);

/* The row in a slot, valid as long as the manifest is held; NULL when slot >= row count. */
const ls_row *ls_manifest_row(const ls_manifest *manifest, uint32_t slot);

/* The slot of a producer, or LS_NO_SLOT. Linear in the number of rows: machines call it once and keep the slot. */
uint32_t ls_manifest_find_slot(const ls_manifest *manifest, uint64_t producer);

/* A row that a commit moves on for its producer (PROTOCOL.md, section 11): epoch and last commit stay, for it is not its own. */
typedef struct ls_advance {
    uint64_t next_source_offset;
    uint32_t slot;
} ls_advance;

/* What one commit changes. */
typedef struct ls_commit {
    ls_commit_id id;
    ls_row row;              /* the producer's new row; last_version and last_commit are filled in by the append */
    uint32_t slot;           /* of the row, or LS_NO_SLOT to register it at the end of the table */
    const ls_entry *entries; /* appended in this order; may be NULL when entry_count is 0 or with fill */
    uint32_t entry_count;
    void (*fill)(void *context, ls_entry *entries, uint32_t count); /* or NULL: writes the entries where they will live */
    void *fill_context;
    const ls_advance *advances; /* rows of others whose entries are among the new ones; each slot once, none the own */
    uint32_t advance_count;
} ls_commit;

/* The child: version + 1, entries appended, row replaced or registered. On success *child is a new reference.
 * LS_ERROR_INVALID when the slot does not hold that producer, or a row to advance is closed or not there; LS_ERROR_MEMORY leaves the parent as it was. */
ls_result ls_manifest_append(const ls_manifest *parent, const ls_commit *commit, ls_manifest **child);

/* The child of a reclaimer's commit: version + 1, watermark and trim point moved forward, nothing else changed.
 * LS_ERROR_INVALID when either would move back or trim would pass the watermark or the end. */
ls_result ls_manifest_trim(const ls_manifest *parent, ls_commit_id id, uint64_t low_watermark, uint64_t trim_step,
                           ls_manifest **child);

/* Builds a version from outside data (the decoder, a prefilled world): base supplies the entries below first_step
 * (NULL when there are none to share), entries the rest; rows replace the table. */
typedef struct ls_manifest_parts {
    uint64_t version;
    ls_commit_id id;
    uint64_t low_watermark;
    uint64_t trim_step;
    uint64_t first_step; /* step of entries[0]; equals trim_step when base is NULL */
    uint32_t chain;      /* at first_step when base is NULL; otherwise the base's own is continued */
    const ls_manifest *base;
    const ls_entry *entries;
    const uint8_t *encoded; /* instead of entries: their encodings, encoded_stride bytes apart (chain.h) */
    size_t encoded_stride;
    uint64_t entry_count;
    const ls_row *rows;
    uint32_t row_count;
} ls_manifest_parts;
ls_result ls_manifest_build(const ls_manifest_parts *parts, ls_manifest **manifest);

/* Sizes of the encoded parts (see codec.h for the layout). */
#define LS_MANIFEST_HEADER_BYTES 32u
#define LS_MANIFEST_ENTRY_BYTES 48u
#define LS_MANIFEST_ROW_BYTES 48u
#define LS_MANIFEST_FOOTER_BYTES 96u

#endif
