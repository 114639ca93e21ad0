/* object_table.h - what the modelled store holds: names in order, sizes, and the manifests themselves.
 *
 * Objects live in runs sorted by number: one run for all manifest versions, one each for floors and checkpoints, and
 * one for each (producer, epoch) of data objects, found by a hash. Names are nearly always made in ascending order and
 * deleted from the low end, so a run is an array that grows at one end and shrinks at the other: finding is O(log n),
 * putting and deleting there O(1) amortised, anywhere else O(n) moves. A list walks the order of ls_key: it is O(log n
 * + keys).
 */
#ifndef LS_OBJECT_TABLE_H
#define LS_OBJECT_TABLE_H

#include "manifest/key.h"
#include "manifest/manifest.h"

typedef struct ls_object {
    uint64_t number; /* version, floor, checkpoint number; data: sequence */
    uint64_t bytes;
    int64_t made_ns;
    union {
        const ls_manifest *manifest; /* manifest versions: a reference that the table owns; else NULL */
        uint64_t step;               /* checkpoints */
    };
    uint64_t source_begin, source_end; /* data, as the name tells; with footer_bytes 0 it tells nothing */
    uint32_t footer_bytes;
    uint32_t checkpoint_kind; /* 0: no checkpoint */
} ls_object;

typedef struct ls_object_run {
    ls_object *items; /* items[first .. first + count - 1], ascending */
    uint64_t first;
    uint64_t count;
    uint64_t capacity;
} ls_object_run;

typedef struct ls_data_run {
    uint64_t producer;
    uint32_t epoch;
    ls_object_run run;
} ls_data_run;

typedef struct ls_object_table {
    ls_object_run named[5]; /* by ls_object_kind; data's stays empty */
    ls_data_run *data;      /* in order of creation; never removed */
    uint32_t *order;        /* indices of data, ascending by (producer, epoch) while order_valid */
    uint32_t *slots;        /* hash: index of data plus 1, 0 free; capacity a power of two */
    uint32_t data_count;
    uint32_t data_capacity;
    uint32_t slot_count;
    bool order_valid;
    uint64_t objects;
    uint64_t bytes;
} ls_object_table;

typedef struct ls_listing {
    uint64_t count;
    ls_key last; /* count > 0 */
    bool truncated;
    ls_key *keys; /* set by the caller: room for `limit` names, or NULL; then neither of the others either */
    uint64_t *bytes;
    int64_t *made_ns;
} ls_listing;

/* A zeroed table is empty. */
void ls_object_table_release(ls_object_table *table);

/* The object of that name or NULL; valid until the next change. */
const ls_object *ls_object_table_find(const ls_object_table *table, const ls_key *key);

/* Creates or replaces, at now_ns. Checkpoints must differ in their numbers. The reference `manifest` (NULL for other
 * kinds) passes to the table only on success. */
ls_result ls_object_table_put(ls_object_table *table, const ls_key *key, uint64_t bytes, const ls_manifest *manifest,
                              int64_t now_ns);

/* Removes the object of that name, releasing its manifest; false when there was none. */
bool ls_object_table_remove(ls_object_table *table, const ls_key *key);

/* The keys of after->kind greater than *after, ascending, at most limit of them; named one by one if the listing has
 * room for them. LS_ERROR_MEMORY possible (ordering). */
ls_result ls_object_table_list(ls_object_table *table, const ls_key *after, uint64_t limit, ls_listing *listing);

/* The object with the greatest number of a kind other than data; NULL when there is none. */
const ls_object *ls_object_table_greatest(const ls_object_table *table, ls_object_kind kind);

#endif
