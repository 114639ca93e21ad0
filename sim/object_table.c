/* object_table.c - sorted runs of objects, the hash that finds a data run, and lists (see object_table.h). */
#include "sim/object_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- one run ---- */

/* Place (from the run's first) of the least number >= wanted. New names come at the end: looked at first. */
static uint64_t run_lower_bound(const ls_object_run *run, uint64_t wanted)
{
    if (run->count == 0) return 0;
    const ls_object *items = run->items + run->first;
    if (items[run->count - 1].number < wanted) return run->count;
    uint64_t low = 0, high = run->count - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (items[middle].number < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ls_object *run_find(const ls_object_run *run, uint64_t number)
{
    uint64_t place = run_lower_bound(run, number);
    if (place == run->count || run->items[run->first + place].number != number) return NULL;
    return run->items + run->first + place;
}

/* Makes room for one item at the end: slides down when half the array is free at its low end, else doubles. */
static bool run_make_room(ls_object_run *run)
{
    if (run->first + run->count < run->capacity) return true;
    if (run->first > 0 && run->first >= run->capacity / 2) {
        memmove(run->items, run->items + run->first, run->count * sizeof *run->items);
        run->first = 0;
        return true;
    }
    if (run->capacity > SIZE_MAX / sizeof *run->items / 2) return false;
    uint64_t capacity = run->capacity == 0 ? 4 : 2 * run->capacity;
    ls_object *items = ls_reallocate(run->items, capacity * sizeof *items);
    if (items == NULL) return false;
    run->items = items;
    run->capacity = capacity;
    return true;
}

static bool run_insert(ls_object_run *run, ls_object object)
{
    if (!run_make_room(run)) return false;
    uint64_t place = run_lower_bound(run, object.number);
    ls_object *item = run->items + run->first + place;
    memmove(item + 1, item, (run->count - place) * sizeof *item);
    *item = object;
    run->count++;
    return true;
}

static void release_content(const ls_object *object)
{
    if (object->checkpoint_kind == 0) ls_manifest_release(object->manifest);
}

static void run_remove(ls_object_run *run, ls_object *item)
{
    uint64_t place = (uint64_t)(item - run->items) - run->first;
    release_content(item);
    run->count--;
    if (place == 0) {
        run->first = run->count == 0 ? 0 : run->first + 1;
        return;
    }
    memmove(item, item + 1, (run->count - place) * sizeof *item);
}

static void run_release(ls_object_run *run)
{
    for (uint64_t i = 0; i < run->count; i++) release_content(&run->items[run->first + i]);
    ls_free(run->items);
}

/* ---- finding the run of a name ---- */

static uint64_t hash_owner(uint64_t producer, uint32_t epoch)
{
    /* Finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
    uint64_t x = producer * UINT64_C(0x9e3779b97f4a7c15) + epoch;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The slot of (producer, epoch), or the free slot where it belongs. There is always a free one. */
static uint32_t find_slot(const ls_object_table *table, uint64_t producer, uint32_t epoch)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t slot = (uint32_t)hash_owner(producer, epoch) & mask;
    while (table->slots[slot] != 0) {
        const ls_data_run *owner = &table->data[table->slots[slot] - 1];
        if (owner->producer == producer && owner->epoch == epoch) break;
        slot = (slot + 1) & mask;
    }
    return slot;
}

static ls_object_run *find_run(const ls_object_table *table, const ls_key *key)
{
    if (key->kind != LS_OBJECT_DATA) return (ls_object_run *)&table->named[key->kind];
    if (table->slot_count == 0) return NULL;
    uint32_t index = table->slots[find_slot(table, key->number, key->epoch)];
    return index == 0 ? NULL : &table->data[index - 1].run;
}

static bool grow_slots(ls_object_table *table)
{
    if (table->slot_count > UINT32_MAX / 2) return false;
    uint32_t slot_count = table->slot_count == 0 ? 64 : 2 * table->slot_count;
    uint32_t *slots = ls_allocate_array(slot_count, sizeof *slots);
    if (slots == NULL) return false;
    ls_free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (uint32_t i = 0; i < table->data_count; i++) {
        table->slots[find_slot(table, table->data[i].producer, table->data[i].epoch)] = i + 1;
    }
    return true;
}

static bool grow_data(ls_object_table *table)
{
    if (table->data_capacity > UINT32_MAX / 2) return false;
    uint32_t capacity = table->data_capacity == 0 ? 16 : 2 * table->data_capacity;
    ls_data_run *data = ls_reallocate(table->data, capacity * sizeof *data);
    if (data == NULL) return false;
    table->data = data;
    table->data_capacity = capacity;
    return true;
}

static ls_object_run *make_data_run(ls_object_table *table, const ls_key *key)
{
    if (table->data_count == table->data_capacity && !grow_data(table)) return NULL;
    if (2 * (uint64_t)(table->data_count + 1) > table->slot_count && !grow_slots(table)) return NULL;
    table->data[table->data_count] = (ls_data_run){.producer = key->number, .epoch = key->epoch};
    table->slots[find_slot(table, key->number, key->epoch)] = table->data_count + 1;
    table->order_valid = false;
    return &table->data[table->data_count++].run;
}

static uint64_t number_of(const ls_key *key) { return key->kind == LS_OBJECT_DATA ? key->sequence : key->number; }

/* ---- the table ---- */

void ls_object_table_release(ls_object_table *table)
{
    for (size_t kind = 0; kind < sizeof table->named / sizeof table->named[0]; kind++) run_release(&table->named[kind]);
    for (uint32_t i = 0; i < table->data_count; i++) run_release(&table->data[i].run);
    ls_free(table->data);
    ls_free(table->order);
    ls_free(table->slots);
    *table = (ls_object_table){0};
}

const ls_object *ls_object_table_find(const ls_object_table *table, const ls_key *key)
{
    const ls_object_run *run = find_run(table, key);
    const ls_object *object = run == NULL ? NULL : run_find(run, number_of(key));
    bool is_other = object != NULL && key->kind == LS_OBJECT_CHECKPOINT &&
                    (object->step != key->sequence || object->checkpoint_kind != key->epoch);
    return is_other ? NULL : object;
}

ls_result ls_object_table_put(ls_object_table *table, const ls_key *key, uint64_t bytes, const ls_manifest *manifest,
                              int64_t now_ns)
{
    ls_object object = {.number = number_of(key), .bytes = bytes, .made_ns = now_ns, .manifest = manifest};
    if (key->kind == LS_OBJECT_CHECKPOINT) {
        object.step = key->sequence;
        object.checkpoint_kind = key->epoch;
    }
    if (key->kind == LS_OBJECT_DATA) {
        object.source_begin = key->source_begin;
        object.source_end = key->source_end;
        object.footer_bytes = key->footer_bytes;
    }
    ls_object_run *run = find_run(table, key);
    if (run == NULL) run = make_data_run(table, key);
    if (run == NULL) return LS_ERROR_MEMORY;
    ls_object *existing = run_find(run, number_of(key));
    if (existing != NULL) {
        release_content(existing);
        table->bytes -= existing->bytes;
        *existing = object;
    } else {
        if (!run_insert(run, object)) return LS_ERROR_MEMORY;
        table->objects++;
    }
    table->bytes += bytes;
    return LS_OK;
}

bool ls_object_table_remove(ls_object_table *table, const ls_key *key)
{
    ls_object_run *run = find_run(table, key);
    ls_object *object = run == NULL ? NULL : run_find(run, number_of(key));
    if (object == NULL) return false;
    table->objects--;
    table->bytes -= object->bytes;
    run_remove(run, object);
    return true;
}

const ls_object *ls_object_table_greatest(const ls_object_table *table, ls_object_kind kind)
{
    const ls_object_run *run = &table->named[kind];
    return run->count == 0 ? NULL : &run->items[run->first + run->count - 1];
}

/* ---- lists ---- */

/* The key of an object in the run that key names. */
static ls_key key_of(const ls_object *object, ls_key key)
{
    if (key.kind == LS_OBJECT_DATA) {
        key.sequence = object->number;
        key.source_begin = object->source_begin;
        key.source_end = object->source_end;
        key.footer_bytes = object->footer_bytes;
    } else {
        key.number = object->number;
    }
    if (key.kind == LS_OBJECT_CHECKPOINT) {
        key.sequence = object->step;
        key.epoch = object->checkpoint_kind;
    }
    return key;
}

/* Takes the run's numbers from place on into the listing, up to the limit; key names the run. */
static void list_run(const ls_object_run *run, uint64_t place, uint64_t limit, ls_key key, ls_listing *listing)
{
    uint64_t present = run->count - place, wanted = limit - listing->count;
    uint64_t taken = present < wanted ? present : wanted;
    if (present > taken) listing->truncated = true;
    if (taken == 0) return;
    const ls_object *items = run->items + run->first + place;
    for (uint64_t i = 0; i < taken && listing->keys != NULL; i++) {
        listing->keys[listing->count + i] = key_of(&items[i], key);
        listing->bytes[listing->count + i] = items[i].bytes;
        listing->made_ns[listing->count + i] = items[i].made_ns;
    }
    listing->count += taken;
    listing->last = key_of(&items[taken - 1], key);
}

static uint64_t place_after(const ls_object_run *run, uint64_t number)
{
    return number == UINT64_MAX ? run->count : run_lower_bound(run, number + 1);
}

static int compare_owners(uint64_t left_producer, uint32_t left_epoch, uint64_t right_producer, uint32_t right_epoch)
{
    if (left_producer != right_producer) return left_producer < right_producer ? -1 : 1;
    return (left_epoch > right_epoch) - (left_epoch < right_epoch);
}

static int compare_data(const void *left, const void *right, void *context)
{
    const ls_data_run *data = context;
    const ls_data_run *a = &data[*(const uint32_t *)left], *b = &data[*(const uint32_t *)right];
    return compare_owners(a->producer, a->epoch, b->producer, b->epoch);
}

static ls_result sort_data(ls_object_table *table)
{
    if (table->order_valid || table->data_count == 0) return LS_OK;
    uint32_t *order = ls_reallocate(table->order, table->data_count * sizeof *order);
    if (order == NULL) return LS_ERROR_MEMORY;
    table->order = order;
    for (uint32_t i = 0; i < table->data_count; i++) order[i] = i;
    qsort_r(order, table->data_count, sizeof *order, compare_data, table->data);
    table->order_valid = true;
    return LS_OK;
}

/* Position in `order` of the first run whose owner is not below that of key. */
static uint32_t order_lower_bound(const ls_object_table *table, const ls_key *key)
{
    uint32_t low = 0, high = table->data_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const ls_data_run *owner = &table->data[table->order[middle]];
        if (compare_owners(owner->producer, owner->epoch, key->number, key->epoch) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ls_result ls_object_table_list(ls_object_table *table, const ls_key *after, uint64_t limit, ls_listing *listing)
{
    listing->count = 0;
    listing->last = *after;
    listing->truncated = false;
    if (after->kind != LS_OBJECT_DATA) {
        const ls_object_run *run = &table->named[after->kind];
        list_run(run, place_after(run, after->number), limit, (ls_key){.kind = after->kind}, listing);
        return LS_OK;
    }
    ls_result result = sort_data(table);
    if (result != LS_OK) return result;
    for (uint32_t i = order_lower_bound(table, after); i < table->data_count && !listing->truncated; i++) {
        const ls_data_run *owner = &table->data[table->order[i]];
        bool is_first = compare_owners(owner->producer, owner->epoch, after->number, after->epoch) == 0;
        uint64_t place = is_first ? place_after(&owner->run, after->sequence) : 0;
        ls_key key = {.kind = LS_OBJECT_DATA, .epoch = owner->epoch, .number = owner->producer};
        list_run(&owner->run, place, limit, key, listing);
    }
    return LS_OK;
}
