/* dataplane.h - what the data plane commands (produce, consume, checkpoint, reclaim, inspect,
 * fsck) share: the lake they work on, requests that wait for their answer, signals, and the option rows that mean the
 * same in all of them.
 *
 * Producing and consuming run machines on the real-time loop; inspecting and checking ask one question after the other,
 * and use ls_lake_get and ls_lake_list, which try again when a store is busy.
 */
#ifndef LS_DATAPLANE_H
#define LS_DATAPLANE_H

#include "backend/store.h"
#include "experiments/command.h"
#include "manifest/protocol.h"

/* --- the lake --------------------------------------------------------------------------------------------------------
 */

typedef enum ls_lake_use {
    LS_LAKE_READ = 1, /* a folder that does not exist is refused, not made */
    LS_LAKE_WRITE,    /* the store is probed for put-if-absent (section 2 of PROTOCOL.md) */
    LS_LAKE_CHANGE    /* both: the lake must be there, and the store is probed */
} ls_lake_use;

typedef struct ls_lake {
    ls_store *store;
    char *prefix;        /* "", or ending in a slash */
    const char *address; /* borrowed */
} ls_lake;

/* Opens the lake at --backend. LS_ERROR_INVALID for an address that names nothing; LS_ERROR_IO for a store that does
 * not answer or ignores put-if-absent. On failure there is nothing to close. */
ls_result ls_lake_open(const ls_arguments *arguments, ls_lake_use use, ls_lake *lake, ls_error *error);
void ls_lake_close(ls_lake *lake);

/* The protocol that --layout, --discovery and --no-floor-check ask for; without a decider. */
ls_result ls_lake_protocol(const ls_arguments *arguments, ls_protocol *protocol, ls_error *error);

#define LS_OPTION_BACKEND                                                                                              \
    {                                                                                                                  \
        "backend", 'b', LS_ARGUMENT_TEXT, "ADDRESS", NULL, 0, 0, "the lake: dir:PATH, s3://bucket/prefix, or memory"   \
    }
#define LS_OPTIONS_PROTOCOL                                                                                            \
    {"layout", 0, LS_ARGUMENT_TEXT, "NAME", "full-tail", 0, 0, "how versions are read: " LS_LAYOUT_CHOICES},           \
        {"discovery", 0, LS_ARGUMENT_TEXT, "NAME", "list", 0, 0, "how they are found: " LS_DISCOVERY_CHOICES},         \
    {                                                                                                                  \
        "no-floor-check", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0,                                                       \
            "for a lake in which nothing is ever deleted: saves one list a commit and look"                            \
    }

/* --- one question, one answer ----------------------------------------------------------------------------------------
 */

typedef struct ls_lake_object {
    bool exists;
    uint8_t *bytes; /* freed by ls_free; NULL when none */
    uint64_t length;
    uint64_t object_bytes; /* size of the whole object */
} ls_lake_object;

/* Gets an object by its name below the prefix: whole, or its last suffix_bytes bytes if that is not 0. LS_OK also when
 * there is none. LS_ERROR_IO when the store refuses, or stays busy through several tries. */
ls_result ls_lake_get(const ls_lake *lake, const char *name, uint64_t suffix_bytes, ls_lake_object *object,
                      ls_error *error);

/* Deletes an object by its name below the prefix; LS_OK also when there is none. */
ls_result ls_lake_delete(const ls_lake *lake, const char *name, ls_error *error);

/* Called with each name below the prefix (without it), in the store's order. A result other than LS_OK ends the
 * listing. */
typedef ls_result (*ls_lake_visitor)(void *context, const char *name, uint64_t bytes);

/* Lists all objects whose names begin with `folder` ("" for all). */
ls_result ls_lake_list(const ls_lake *lake, const char *folder, ls_lake_visitor visit, void *context, ls_error *error);

/* The greatest manifest version and the greatest floor there are, 0 if none. */
ls_result ls_lake_newest(const ls_lake *lake, uint64_t *version, uint64_t *floor, ls_error *error);

/* --- signals ---------------------------------------------------------------------------------------------------------
 */

/* SIGINT and SIGTERM, blocked and counted while this is open; so nothing is global and nothing is interrupted. */
typedef struct ls_signals {
    int file; /* -1: not open */
    uint32_t count;
} ls_signals;

ls_result ls_signals_open(ls_signals *signals, ls_error *error);
uint32_t ls_signals_count(ls_signals *signals); /* that have come so far */
void ls_signals_close(ls_signals *signals);

/* --- odds and ends ---------------------------------------------------------------------------------------------------
 */

/* 64 bits that no other process has, never 0. */
ls_result ls_unique_number(uint64_t *number, ls_error *error);

/* What is the matter when a machine stopped because of this reply: LS_ERROR_CORRUPT when an object came but is damaged
 * or another than it should be (exit code 1), else LS_ERROR_IO. */
ls_result ls_refusal(const ls_store_reply *reply);

/* ls_report_error, but for damaged objects with exit code 1: there the store is sound and what was checked is not. */
int ls_report_damage(const ls_arguments *arguments, ls_result result, const ls_error *error);

#endif
