/* checkpoints.h - checkpoints in the data plane: reading those of a lake, and making one on a real-time loop.
 *
 * `lakestream checkpoint` has a loop for nothing else; `lakestream consume` makes checkpoints beside its reading, on
 * the loop that it has. Both hand this module what comes from the loop for its kind.
 */
#ifndef LS_CHECKPOINTS_H
#define LS_CHECKPOINTS_H

#include "backend/loop.h"
#include "experiments/dataplane.h"
#include "manifest/checkpoint.h"

#define LS_CHECKPOINT_LOOP_KIND 7u /* of this module's timers and requests on the loop */

/* Called with each checkpoint that can be read, in the order of their numbers. */
typedef ls_result (*ls_checkpoint_visitor)(void *context, const ls_key *key, const ls_checkpoint *checkpoint);

/* Reads all checkpoints of a lake; one that is deleted meanwhile is passed over. LS_ERROR_CORRUPT names a damaged one.
 */
ls_result ls_lake_checkpoints(const ls_lake *lake, ls_checkpoint_visitor visit, void *context, ls_error *error);

/* Is this the checkpoint that a person means by this: its name, or its key? */
bool ls_checkpoint_is_meant(const ls_key *key, const ls_checkpoint *checkpoint, const char *name_or_key);

/* The newest checkpoint of that name, the one that was made last; or the one of that key. *found says whether there is
 * any. */
ls_result ls_lake_find_checkpoint(const ls_lake *lake, const char *name, bool *found, ls_key *key, ls_error *error);

/* Deletes checkpoints of that name that are older than the number and of a kind that is pinned; says how many. */
ls_result ls_lake_release_checkpoints(const ls_lake *lake, const char *name, uint64_t older_than, uint64_t *released,
                                      ls_error *error);

typedef enum ls_checkpoint_outcome {
    LS_CHECKPOINT_IDLE = 0,
    LS_CHECKPOINT_UNDER_WAY,
    LS_CHECKPOINT_DONE,
    LS_CHECKPOINT_GAVE_UP,
    LS_CHECKPOINT_FAILED
} ls_checkpoint_outcome;

/* One checkpoint being made. Zeroed: idle. */
typedef struct ls_checkpoint_run {
    ls_loop *loop;
    ls_checkpoint content;
    ls_checkpointer machine;
    ls_checkpoint_outcome outcome;
    ls_checkpoint_report report; /* done, gave up */
} ls_checkpoint_run;

/* Starts making a checkpoint with this content, which is taken over (on an error too). known may be NULL. */
ls_result ls_checkpoint_run_start(ls_checkpoint_run *run, ls_loop *loop, const ls_protocol *protocol,
                                  ls_checkpoint *content, const ls_manifest *known, ls_error *error);

/* The loop's calls of kind LS_CHECKPOINT_LOOP_KIND; and the body of a checkpoint object. */
ls_result ls_checkpoint_run_timer(ls_checkpoint_run *run, int64_t now_ns);
ls_result ls_checkpoint_run_reply(ls_checkpoint_run *run, int64_t now_ns, const ls_store_reply *reply);
ls_result ls_checkpoint_run_body(ls_checkpoint_run *run, const ls_key *key, uint8_t *bytes, uint64_t size);

void ls_checkpoint_run_clear(ls_checkpoint_run *run);

#endif
