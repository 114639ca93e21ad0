/* protocol.h - the choices that all machines of one lake share: layout, discovery, limits. Immutable while machines run. */
#ifndef LS_PROTOCOL_H
#define LS_PROTOCOL_H

#include "manifest/commit_view.h"

typedef enum ls_layout {
    LS_LAYOUT_FULL = 0,  /* every version is a whole manifest, read whole */
    LS_LAYOUT_FULL_TAIL, /* the same objects; who knows an older version reads only the tail */
} ls_layout;

typedef enum ls_discovery {
    LS_DISCOVERY_LIST = 0, /* list the versions after the last known one */
    LS_DISCOVERY_PROBE,    /* ask for the next version, one after the other */
    LS_DISCOVERY_GALLOP    /* double the step until a version is missing, then bisect */
} ls_discovery;

#define LS_LAYOUT_CHOICES "full full-tail"
#define LS_DISCOVERY_CHOICES "list probe gallop"

typedef struct ls_protocol {
    ls_layout layout;
    ls_discovery discovery;
    uint32_t list_limit;         /* keys asked for in one list, 1 .. 1000 */
    uint32_t backlog_limit;      /* batches made and not yet published, per producer; at least 1 */
    uint32_t upload_concurrency; /* uploads in flight per producer; at least 1 */
    bool floor_check;            /* versions are reclaimed in this lake, so a version counts only if no floor lies above it (see
                                    discovery.h); all machines of a lake must agree */
    bool instantaneous_uploads;  /* theory worlds: a batch is uploaded the moment it is ready, without a request */
    uint32_t help_limit;         /* other producers whose uploads are looked for in each attempt, and published with the own ones;
                                    one list each. 0: none, and data names are of version 1; all machines of a lake must agree
                                    whether it is 0 */
    int64_t upload_retry_base_ns; /* a failed upload is tried again after about this, doubling up to the cap */
    int64_t upload_retry_cap_ns;
    ls_decider decider; /* the commit policy */
    ls_oracle *oracle;  /* simulator only, else NULL */
} ls_protocol;

/* Sensible values: full, list, 1000 keys, backlog 64, 4 uploads, retries from 100 ms to 20 s; no decider. */
ls_protocol ls_protocol_default(void);

#endif
