/* checkpoints.c - see checkpoints.h. */
#include "experiments/checkpoints.h"

#include <inttypes.h>
#include <string.h>

#define RETRY_NS INT64_C(100000000)

/* --- reading
 * ----------------------------------------------------------------------------------------------------------- */

typedef struct key_list {
    ls_key *items;
    size_t count, capacity;
} key_list;

static ls_result note_key(void *context, const char *name, uint64_t bytes)
{
    (void)bytes;
    key_list *list = context;
    ls_key key;
    if (ls_key_parse(name, &key) != LS_OK || key.kind != LS_OBJECT_CHECKPOINT) return LS_OK;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        ls_key *items = ls_reallocate(list->items, capacity * sizeof *items);
        if (items == NULL) return LS_ERROR_MEMORY;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = key;
    return LS_OK;
}

static ls_result read_one(const ls_lake *lake, const ls_key *key, ls_checkpoint_visitor visit, void *context,
                          ls_error *error)
{
    char name[LS_KEY_TEXT_BYTES];
    ls_lake_object object;
    ls_checkpoint checkpoint;
    ls_error why = {""};
    ls_key_format(key, name);
    ls_result result = ls_lake_get(lake, name, 0, &object, error);
    if (result != LS_OK || !object.exists) return result;
    result = ls_checkpoint_decode(object.bytes, (size_t)object.length, key, &checkpoint, &why);
    ls_free(object.bytes);
    if (result != LS_OK) return ls_fail(error, result, "%s: %s", name, why.text);
    result = visit(context, key, &checkpoint);
    ls_checkpoint_clear(&checkpoint);
    return result;
}

ls_result ls_lake_checkpoints(const ls_lake *lake, ls_checkpoint_visitor visit, void *context, ls_error *error)
{
    key_list keys = {0};
    ls_result result = ls_lake_list(lake, "checkpoint/", note_key, &keys, error);
    for (size_t i = 0; i < keys.count && result == LS_OK; i++)
        result = read_one(lake, &keys.items[i], visit, context, error);
    ls_free(keys.items);
    return result;
}

typedef struct named {
    const ls_lake *lake;
    const char *name;
    uint64_t older_than;
    uint64_t count;
    ls_key newest;
    ls_error *error;
} named;

bool ls_checkpoint_is_meant(const ls_key *key, const ls_checkpoint *checkpoint, const char *name_or_key)
{
    char text[LS_KEY_TEXT_BYTES];
    ls_key_format(key, text);
    return strcmp(checkpoint->name, name_or_key) == 0 || strcmp(text, name_or_key) == 0;
}

static ls_result note_newest(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    named *n = context;
    if (!ls_checkpoint_is_meant(key, checkpoint, n->name)) return LS_OK;
    if (n->count == 0 || key->number > n->newest.number) n->newest = *key;
    n->count++;
    return LS_OK;
}

ls_result ls_lake_find_checkpoint(const ls_lake *lake, const char *name, bool *found, ls_key *key, ls_error *error)
{
    named n = {.name = name};
    ls_result result = ls_lake_checkpoints(lake, note_newest, &n, error);
    *found = n.count > 0;
    *key = n.newest;
    return result;
}

static ls_result release_one(void *context, const ls_key *key, const ls_checkpoint *checkpoint)
{
    named *n = context;
    char text[LS_KEY_TEXT_BYTES];
    if (strcmp(checkpoint->name, n->name) != 0 || !checkpoint->pinned || key->number >= n->older_than) return LS_OK;
    ls_key_format(key, text);
    n->count++;
    return ls_lake_delete(n->lake, text, n->error);
}

ls_result ls_lake_release_checkpoints(const ls_lake *lake, const char *name, uint64_t older_than, uint64_t *released,
                                      ls_error *error)
{
    named n = {.lake = lake, .name = name, .older_than = older_than, .error = error};
    ls_result result = ls_lake_checkpoints(lake, release_one, &n, error);
    if (released != NULL) *released = n.count;
    return result;
}

/* --- making
 * ------------------------------------------------------------------------------------------------------------ */

static ls_result feed(ls_checkpoint_run *run, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_checkpointer_step(&run->machine, event, &actions);
    for (uint32_t i = 0; i < actions.count && result == LS_OK; i++) {
        const ls_action *action = &actions.item[i];
        switch (action->kind) {
        case LS_ACTION_REQUEST: result = ls_loop_submit(run->loop, &action->request, LS_CHECKPOINT_LOOP_KIND, 0); break;
        case LS_ACTION_WAKE: result = ls_loop_timer(run->loop, action->wake_ns, LS_CHECKPOINT_LOOP_KIND, 0, 0); break;
        case LS_ACTION_CHECKPOINTED: run->outcome = LS_CHECKPOINT_DONE; break;
        case LS_ACTION_GAVE_UP: run->outcome = LS_CHECKPOINT_GAVE_UP; break;
        case LS_ACTION_FAILED: run->outcome = LS_CHECKPOINT_FAILED; break;
        default: break;
        }
        if (run->outcome == LS_CHECKPOINT_DONE || run->outcome == LS_CHECKPOINT_GAVE_UP)
            run->report = action->checkpoint;
    }
    return result;
}

ls_result ls_checkpoint_run_start(ls_checkpoint_run *run, ls_loop *loop, const ls_protocol *protocol,
                                  ls_checkpoint *content, const ls_manifest *known, ls_error *error)
{
    uint64_t seed;
    ls_checkpoint_run_clear(run);
    run->loop = loop;
    run->content = *content;
    memset(content, 0, sizeof *content);
    ls_result result = ls_unique_number(&seed, error);
    if (result != LS_OK) return result;
    ls_checkpointer_config config = {.step = run->content.step,
                                     .kind = run->content.kind,
                                     .retry_ns = RETRY_NS,
                                     .body_bytes = ls_checkpoint_encoded_bytes(&run->content)};
    result =
        ls_checkpointer_init(&run->machine, protocol, &config, known, ls_random_open(seed, 0, LS_RANDOM_IDENTITY, 0));
    if (result != LS_OK) return ls_fail(error, result, "the checkpoint cannot be made: %s", ls_result_name(result));
    run->outcome = LS_CHECKPOINT_UNDER_WAY;
    return feed(run, &(ls_event){.kind = LS_EVENT_START, .now_ns = ls_loop_now(loop)});
}

ls_result ls_checkpoint_run_timer(ls_checkpoint_run *run, int64_t now_ns)
{
    if (run->outcome != LS_CHECKPOINT_UNDER_WAY) return LS_OK;
    return feed(run, &(ls_event){.kind = LS_EVENT_TIMER, .now_ns = now_ns});
}

ls_result ls_checkpoint_run_reply(ls_checkpoint_run *run, int64_t now_ns, const ls_store_reply *reply)
{
    if (run->outcome == LS_CHECKPOINT_UNDER_WAY) {
        return feed(run, &(ls_event){.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply});
    }
    ls_manifest_release(reply->manifest);
    return LS_OK;
}

ls_result ls_checkpoint_run_body(ls_checkpoint_run *run, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    run->content.number = key->number;
    return ls_checkpoint_encode(&run->content, bytes, (size_t)size);
}

void ls_checkpoint_run_clear(ls_checkpoint_run *run)
{
    if (run->outcome != LS_CHECKPOINT_IDLE) ls_checkpointer_clear(&run->machine);
    ls_checkpoint_clear(&run->content);
    memset(run, 0, sizeof *run);
}
