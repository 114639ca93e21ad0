/* manifest.c - immutable manifest versions that share entries and rows with their parent (see manifest.h).
 *
 * Why this shape. A simulated race of sixteen producers on a million-entry manifest builds a child for every attempt, won
 * or lost. So a child must cost what it adds: one chunk with its k entries, one path of the row tree, one version struct.
 *
 *   version ──entries──▶ chunk(k entries) ──parent──▶ chunk ──parent──▶ …      newest first
 *      │                    └──skip──────────────────────────▶ chunk          Myers' skew-binary jump pointers
 *      └─────rows──────▶ inner(16) ──▶ … ──▶ leaf(4 rows)                     copied along one path
 *
 * A skip pointer is borrowed: every ancestor is kept alive through the parent chain. Trimming copies what remains into
 * one chunk, because a shared chain cannot be cut; trims are rare and remaining entries are few, that is their purpose.
 */
#include "manifest/manifest.h"

#include "manifest/chain.h"
#include "manifest/mutant.h"

#include <string.h>

#define LEAF_ROWS 4u
#define FANOUT 16u
#define LEVELS_MAX 8u

typedef struct chunk {
    struct chunk *parent;
    struct chunk *skip;
    uint64_t first_step;
    uint32_t references;
    uint32_t count;
    uint32_t depth;
    uint32_t chain; /* at first_step, unless unknown yet: computed when first asked for */
    bool chain_unknown;
    ls_entry entries[];
} chunk;

typedef struct row_leaf {
    uint32_t references;
    ls_row rows[LEAF_ROWS];
} row_leaf;

typedef struct row_inner {
    uint32_t references;
    void *child[FANOUT]; /* row_inner or, at level 1, row_leaf */
} row_inner;

struct ls_manifest {
    uint64_t version;
    ls_commit_id id;
    uint64_t low_watermark;
    uint64_t trim_step;
    uint64_t end_step;
    chunk *entries;
    void *rows; /* row_leaf at level 0, row_inner above; NULL when row_count is 0 */
    uint32_t row_count;
    uint32_t open_rows;
    uint32_t level; /* of the root of rows */
    uint32_t chain; /* at end_step, unless unknown yet */
    bool chain_unknown;
    uint32_t references;
};

/* --- chunks ----------------------------------------------------------------------------------------------------- */

/* Takes over one reference to parent only on success. chain is used when there is no parent to compute it from. */
static chunk *chunk_new(chunk *parent, uint64_t first_step, uint32_t chain, const ls_entry *entries, uint32_t count)
{
    chunk *made = ls_allocate(sizeof *made + (size_t)count * sizeof(ls_entry));
    if (made == NULL) return NULL;
    made->parent = parent;
    made->first_step = first_step;
    made->chain = chain;
    made->chain_unknown = parent != NULL;
    made->references = 1;
    made->count = count;
    made->depth = parent == NULL ? 0 : parent->depth + 1;
    if (entries != NULL) memcpy(made->entries, entries, (size_t)count * sizeof(ls_entry));
    if (parent == NULL) {
        made->skip = NULL;
    } else if (parent->skip != NULL && parent->skip->skip != NULL &&
               parent->depth - parent->skip->depth == parent->skip->depth - parent->skip->skip->depth) {
        made->skip = parent->skip->skip;
    } else {
        made->skip = parent;
    }
    return made;
}

static chunk *chunk_retain(chunk *held)
{
    if (held != NULL) held->references++;
    return held;
}

static void chunk_release(chunk *held)
{
    while (held != NULL && --held->references == 0) {
        chunk *parent = held->parent;
        ls_free(held);
        held = parent;
    }
}

/* The chunk that holds a step, which must lie below the head's end and not before the chain's start. */
static const chunk *chunk_find(const chunk *head, uint64_t step)
{
    while (head != NULL && step < head->first_step) {
        head = head->skip != NULL && step < head->skip->first_step + head->skip->count ? head->skip : head->parent;
    }
    return head;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void *node_retain(void *node)
{
    if (node != NULL) ++*(uint32_t *)node; /* both node types begin with their count */
    return node;
}

static void node_release(void *node, uint32_t level)
{
    if (node == NULL || --*(uint32_t *)node != 0) return;
    if (level > 0) {
        row_inner *inner = node;
        for (uint32_t i = 0; i < FANOUT; i++) node_release(inner->child[i], level - 1);
    }
    ls_free(node);
}

static uint32_t slots_below(uint32_t level)
{
    return LEAF_ROWS << (4 * level);
}

/* A copy of the path to slot with *row in it; node may be NULL (an empty subtree). NULL when out of memory. */
static void *node_with_row(const void *node, uint32_t level, uint32_t slot, const ls_row *row)
{
    if (level == 0) {
        row_leaf *leaf = ls_allocate(sizeof *leaf);
        if (leaf == NULL) return NULL;
        if (node != NULL) {
            *leaf = *(const row_leaf *)node;
        } else {
            memset(leaf, 0, sizeof *leaf);
        }
        leaf->references = 1;
        leaf->rows[slot] = *row;
        return leaf;
    }
    uint32_t width = slots_below(level - 1), index = slot / width;
    const row_inner *old = node;
    void *child = node_with_row(old == NULL ? NULL : old->child[index], level - 1, slot % width, row);
    if (child == NULL) return NULL;
    row_inner *inner = ls_allocate(sizeof *inner);
    if (inner == NULL) {
        node_release(child, level - 1);
        return NULL;
    }
    for (uint32_t i = 0; i < FANOUT; i++) {
        inner->child[i] = i == index ? child : node_retain(old == NULL ? NULL : old->child[i]);
    }
    inner->references = 1;
    return inner;
}

/* Builds a tree bottom-up from an array of count rows (at least 1). NULL when out of memory. */
static void *node_build(const ls_row *rows, uint32_t count, uint32_t level)
{
    if (level == 0) {
        row_leaf *leaf = ls_allocate_array(1, sizeof *leaf);
        if (leaf == NULL) return NULL;
        leaf->references = 1;
        memcpy(leaf->rows, rows, count * sizeof *rows);
        return leaf;
    }
    row_inner *inner = ls_allocate_array(1, sizeof *inner);
    if (inner == NULL) return NULL;
    inner->references = 1;
    uint32_t width = slots_below(level - 1);
    for (uint32_t i = 0, done = 0; done < count; i++) {
        uint32_t part = count - done < width ? count - done : width;
        inner->child[i] = node_build(rows + done, part, level - 1);
        if (inner->child[i] == NULL) {
            node_release(inner, level);
            return NULL;
        }
        done += part;
    }
    return inner;
}

static uint32_t level_for(uint32_t row_count)
{
    uint32_t level = 0;
    while (level < LEVELS_MAX - 1 && (uint64_t)LEAF_ROWS << (4 * level) < row_count) level++;
    return level;
}

/* Copies parent's row tree into child, with one row replaced, or added at slot == parent's row count. */
static ls_result rows_with(const ls_manifest *parent, ls_manifest *child, uint32_t slot, const ls_row *row)
{
    uint32_t row_count = slot == parent->row_count ? parent->row_count + 1 : parent->row_count;
    uint32_t level = level_for(row_count);
    void *root = parent->rows;
    row_inner *grown = NULL;
    if (root != NULL && level > parent->level) { /* one level more: the old root becomes child 0 */
        grown = ls_allocate_array(1, sizeof *grown);
        if (grown == NULL) return LS_ERROR_MEMORY;
        grown->references = 1;
        grown->child[0] = node_retain(root);
        root = grown;
    }
    void *rows = node_with_row(root, level, slot, row);
    node_release(grown, level);
    if (rows == NULL) return LS_ERROR_MEMORY;
    child->rows = rows;
    child->row_count = row_count;
    child->level = level;
    return LS_OK;
}

/* --- versions ---------------------------------------------------------------------------------------------------- */

ls_manifest *ls_manifest_new_empty(void)
{
    ls_manifest *manifest = ls_allocate_array(1, sizeof *manifest);
    if (manifest != NULL) manifest->references = 1;
    return manifest;
}

/* References are bookkeeping, not content: a const manifest may be retained, so the count is reached through a cast. */
ls_manifest *ls_manifest_retain(const ls_manifest *manifest)
{
    ls_manifest *held = (ls_manifest *)(uintptr_t)manifest;
    if (held != NULL) held->references++;
    return held;
}

void ls_manifest_release(const ls_manifest *manifest)
{
    ls_manifest *held = (ls_manifest *)(uintptr_t)manifest;
    if (held == NULL || --held->references != 0) return;
    chunk_release(held->entries);
    node_release(held->rows, held->level);
    ls_free(held);
}

uint64_t ls_manifest_version(const ls_manifest *manifest)
{
    return manifest->version;
}

ls_commit_id ls_manifest_commit_id(const ls_manifest *manifest)
{
    return manifest->id;
}

uint64_t ls_manifest_trim_step(const ls_manifest *manifest)
{
    return manifest->trim_step;
}

uint64_t ls_manifest_end_step(const ls_manifest *manifest)
{
    return manifest->end_step;
}

uint64_t ls_manifest_entry_count(const ls_manifest *manifest)
{
    return manifest->end_step - manifest->trim_step;
}

uint64_t ls_manifest_low_watermark(const ls_manifest *manifest)
{
    return manifest->low_watermark;
}

uint32_t ls_manifest_row_count(const ls_manifest *manifest)
{
    return manifest->row_count;
}

uint32_t ls_manifest_open_row_count(const ls_manifest *manifest)
{
    return manifest->open_rows;
}

uint64_t ls_manifest_encoded_bytes(const ls_manifest *manifest)
{
    return LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_ENTRY_BYTES * ls_manifest_entry_count(manifest) +
           LS_MANIFEST_ROW_BYTES * (uint64_t)manifest->row_count + LS_MANIFEST_FOOTER_BYTES;
}

uint64_t ls_manifest_tail_bytes(const ls_manifest *manifest, uint64_t known_end_step)
{
    uint64_t whole = ls_manifest_encoded_bytes(manifest);
    uint64_t from = known_end_step > manifest->trim_step ? known_end_step : manifest->trim_step;
    uint64_t missing = manifest->end_step > from ? manifest->end_step - from : 0;
    uint64_t tail = LS_MANIFEST_FOOTER_BYTES + LS_MANIFEST_ROW_BYTES * (uint64_t)manifest->row_count +
                    LS_MANIFEST_ENTRY_BYTES * missing;
    return tail < whole ? tail : whole;
}

/* The chain at a chunk's first step. A simulation never encodes, so chains are computed when somebody asks: from the oldest
 * chunk whose chain is unknown forwards, a stretch of the (backward) list at a time. The cache is no change of content. */
static uint32_t chunk_chain(chunk *head)
{
    enum { STRETCH = 512 };
    while (head->chain_unknown) {
        chunk *unknown[STRETCH];
        uint32_t count = 0;
        for (chunk *at = head; at->chain_unknown; at = at->parent) unknown[count++ % STRETCH] = at;
        for (uint32_t done = 0; done < count && done < STRETCH; done++) {
            chunk *next = unknown[(count - 1 - done) % STRETCH];
            next->chain = ls_chain_extend(next->parent->chain, next->parent->entries, next->parent->count);
            next->chain_unknown = false;
        }
    }
    return head->chain;
}

uint32_t ls_manifest_chain(const ls_manifest *manifest, uint64_t step)
{
    if (step < manifest->trim_step) step = manifest->trim_step;
    ls_manifest *cache = (ls_manifest *)(uintptr_t)manifest;
    chunk *head = manifest->entries;
    if (step >= manifest->end_step) {
        if (manifest->chain_unknown) cache->chain = ls_chain_extend(chunk_chain(head), head->entries, head->count);
        cache->chain_unknown = false;
        return manifest->chain;
    }
    chunk *part = (chunk *)(uintptr_t)chunk_find(head, step);
    return ls_chain_extend(chunk_chain(part), part->entries, step - part->first_step);
}

bool ls_manifest_entry(const ls_manifest *manifest, uint64_t step, ls_entry *entry)
{
    return ls_manifest_entries(manifest, step, 1, entry) == 1;
}

bool ls_manifest_visit_entries(const ls_manifest *manifest, uint64_t first_step, uint64_t end_step,
                               ls_entries_visitor visit, void *context)
{
    if (first_step >= end_step) return true;
    if (first_step < manifest->trim_step || end_step > manifest->end_step) return false;
    const chunk *part = chunk_find(manifest->entries, end_step - 1);
    for (uint64_t end = end_step; end > first_step; part = part->parent) {
        if (part == NULL) return false;
        uint64_t from = part->first_step > first_step ? part->first_step : first_step;
        if (from == end) continue; /* a chunk without entries */
        if (!visit(context, from, part->entries + (from - part->first_step), end - from)) return false;
        end = from;
    }
    return true;
}

typedef struct copy {
    uint64_t first_step;
    ls_entry *entries;
} copy;

static bool copy_stretch(void *context, uint64_t step, const ls_entry *entries, uint64_t count)
{
    const copy *c = context;
    memcpy(c->entries + (step - c->first_step), entries, (size_t)count * sizeof *entries);
    return true;
}

uint64_t ls_manifest_entries(const ls_manifest *manifest, uint64_t first_step, uint64_t capacity, ls_entry *entries)
{
    if (first_step < manifest->trim_step || first_step >= manifest->end_step) return 0;
    uint64_t left = manifest->end_step - first_step, wanted = capacity < left ? capacity : left;
    copy c = {first_step, entries};
    return ls_manifest_visit_entries(manifest, first_step, first_step + wanted, copy_stretch, &c) ? wanted : 0;
}

const ls_row *ls_manifest_row(const ls_manifest *manifest, uint32_t slot)
{
    if (slot >= manifest->row_count) return NULL;
    const void *node = manifest->rows;
    for (uint32_t level = manifest->level; level > 0; level--) {
        uint32_t width = slots_below(level - 1);
        node = ((const row_inner *)node)->child[slot / width];
        slot %= width;
    }
    return &((const row_leaf *)node)->rows[slot];
}

uint32_t ls_manifest_find_slot(const ls_manifest *manifest, uint64_t producer)
{
    for (uint32_t slot = 0; slot < manifest->row_count; slot++) {
        if (ls_manifest_row(manifest, slot)->producer == producer) return slot;
    }
    return LS_NO_SLOT;
}

/* A version struct that shares everything with parent and stands one version later. */
static ls_manifest *successor(const ls_manifest *parent, ls_commit_id id)
{
    ls_manifest *child = ls_allocate(sizeof *child);
    if (child == NULL) return NULL;
    *child = *parent;
    child->version = parent->version + 1;
    child->id = id;
    child->references = 1;
    return child;
}

static ls_result advance_row(ls_manifest *made, const ls_advance *advance)
{
    const ls_row *old = ls_manifest_row(made, advance->slot);
    if (old == NULL || old->closed) return LS_ERROR_INVALID;
    ls_row row = *old;
    row.next_source_offset = advance->next_source_offset;
    row.last_version = made->version;
    ls_manifest before = *made;
    ls_result result = rows_with(&before, made, advance->slot, &row);
    if (result == LS_OK) node_release(before.rows, before.level);
    else *made = before;
    return result;
}

ls_result ls_manifest_append(const ls_manifest *parent, const ls_commit *commit, ls_manifest **child)
{
    bool registers = commit->slot == LS_NO_SLOT;
    uint32_t slot = registers ? parent->row_count : commit->slot;
    const ls_row *old = registers ? NULL : ls_manifest_row(parent, slot);
    if (!registers && (old == NULL || old->producer != commit->row.producer)) return LS_ERROR_INVALID;
    if (registers && parent->row_count == LS_NO_SLOT - 1) return LS_ERROR_LIMIT;

    ls_manifest *made = successor(parent, commit->id);
    if (made == NULL) return LS_ERROR_MEMORY;
    ls_row row = commit->row;
    row.last_version = made->version;
    row.last_commit = commit->id;
    if (rows_with(parent, made, slot, &row) != LS_OK) {
        ls_free(made);
        return LS_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < commit->advance_count; i++) {
        ls_result result = advance_row(made, &commit->advances[i]);
        if (result == LS_OK) continue;
        node_release(made->rows, made->level);
        ls_free(made);
        return result;
    }
    made->open_rows += (uint32_t)!row.closed - (uint32_t)(old != NULL && !old->closed);
    if (commit->entry_count > 0) {
        made->entries = chunk_new(parent->entries, parent->end_step, parent->chain, commit->entries,
                                  commit->entry_count);
        if (made->entries == NULL) {
            node_release(made->rows, made->level);
            ls_free(made);
            return LS_ERROR_MEMORY;
        }
        made->end_step += commit->entry_count;
        if (commit->fill != NULL) commit->fill(commit->fill_context, made->entries->entries, commit->entry_count);
        made->chain_unknown = true;
        chunk_retain(parent->entries);
    } else {
        chunk_retain(made->entries);
    }
    *child = made;
    return LS_OK;
}

ls_result ls_manifest_trim(const ls_manifest *parent, ls_commit_id id, uint64_t low_watermark, uint64_t trim_step,
                           ls_manifest **child)
{
    if (low_watermark < parent->low_watermark || trim_step < parent->trim_step || trim_step > low_watermark ||
        trim_step > parent->end_step) {
        return LS_ERROR_INVALID;
    }
    uint64_t remaining = parent->end_step - trim_step, first_step = trim_step;
    if (LS_MUTANT_IS(LS_MUTANT_STEPS_REUSED)) trim_step = parent->trim_step;
    if (remaining > UINT32_MAX) return LS_ERROR_LIMIT;
    ls_manifest *made = successor(parent, id);
    if (made == NULL) return LS_ERROR_MEMORY;
    made->low_watermark = low_watermark;
    made->trim_step = trim_step;
    made->end_step = trim_step + remaining;
    made->chain = ls_manifest_chain(parent, parent->end_step);
    made->chain_unknown = false;
    if (first_step == parent->trim_step) {
        chunk_retain(made->entries);
    } else if (remaining == 0) {
        made->entries = NULL;
    } else {
        made->entries = chunk_new(NULL, trim_step, ls_manifest_chain(parent, first_step), NULL, (uint32_t)remaining);
        if (made->entries == NULL) {
            ls_free(made);
            return LS_ERROR_MEMORY;
        }
        ls_manifest_entries(parent, first_step, remaining, made->entries->entries);
    }
    node_retain(made->rows);
    *child = made;
    return LS_OK;
}

ls_result ls_manifest_build(const ls_manifest_parts *parts, ls_manifest **manifest)
{
    const ls_manifest *base = parts->base;
    uint64_t start = base == NULL ? parts->trim_step : base->end_step;
    if (parts->first_step != start || parts->trim_step > parts->first_step + parts->entry_count ||
        (base != NULL && parts->trim_step < base->trim_step)) {
        return LS_ERROR_INVALID;
    }
    if (parts->entry_count > UINT32_MAX || parts->row_count == LS_NO_SLOT) return LS_ERROR_LIMIT;
    ls_manifest *made = ls_manifest_new_empty();
    if (made == NULL) return LS_ERROR_MEMORY;
    made->version = parts->version;
    made->id = parts->id;
    made->low_watermark = parts->low_watermark;
    made->trim_step = parts->trim_step;
    made->end_step = parts->first_step + parts->entry_count;
    made->chain = base == NULL ? parts->chain : ls_manifest_chain(base, base->end_step);
    chunk *parent = base == NULL ? NULL : base->entries;
    if (parts->entry_count > 0) {
        made->entries = chunk_new(parent, parts->first_step, made->chain, parts->entries, (uint32_t)parts->entry_count);
        if (made->entries == NULL) goto fail;
        if (parts->entries == NULL) {
            ls_entries_load(made->entries->entries, parts->encoded, parts->encoded_stride, parts->entry_count);
        }
        made->chain_unknown = true;
        chunk_retain(parent);
    } else {
        made->entries = chunk_retain(parent);
    }
    if (parts->row_count > 0) {
        made->level = level_for(parts->row_count);
        made->rows = node_build(parts->rows, parts->row_count, made->level);
        if (made->rows == NULL) goto fail;
        made->row_count = parts->row_count;
    }
    for (uint32_t i = 0; i < parts->row_count; i++) made->open_rows += !parts->rows[i].closed;
    *manifest = made;
    return LS_OK;
fail:
    ls_manifest_release(made);
    return LS_ERROR_MEMORY;
}
