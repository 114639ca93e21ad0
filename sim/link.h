/* link.h - one link shared by its transfers: exact processor sharing, each of n transfers gets 1/n of the bandwidth.
 *
 * The link keeps a virtual count of the bytes that every present transfer has been given since the link was last idle;
 * it grows at bandwidth / n. A transfer of b bytes that starts at virtual count v ends at v + b whatever comes and goes
 * in between, so a heap by that end serves all operations in O(log n) (virtual time as in Parekh and Gallager, "A
 * generalized processor sharing approach to flow control", IEEE/ACM Transactions on Networking 1993).
 *
 * A transfer that crosses two links (a client's and the store's) is started on both and has ended when both have served
 * it. Each link alone is exact; together that is exact sharing when one of the two is the bottleneck for all transfers
 * that meet on it, and an approximation (somewhat too fast for the link that is not) otherwise.
 *
 * A link is plain data and owns its heap. An idle link holds no transfer; who has a million of them keeps a link only
 * while it is busy (sim/store_model.c does).
 */
#ifndef LS_LINK_H
#define LS_LINK_H

#include "manifest/base.h"

typedef struct ls_link_transfer {
    double end_bytes; /* virtual count at which it ends */
    uint64_t order;   /* ties end in order of their start */
    uint64_t tag;
} ls_link_transfer;

typedef struct ls_link {
    double bytes_per_s;
    double served_bytes; /* virtual count at updated_ns */
    int64_t updated_ns;
    int64_t next_ns;
    uint64_t order;
    ls_link_transfer *heap;
    uint32_t count;
    uint32_t capacity;
} ls_link;

/* bytes_per_s > 0. Allocates nothing. */
void ls_link_open(ls_link *link, double bytes_per_s);
void ls_link_close(ls_link *link); /* frees the heap; unfinished transfers are dropped */

/* Starts a transfer. now_ns never decreases over the calls for one link. LS_ERROR_MEMORY leaves the link unchanged. */
ls_result ls_link_start(ls_link *link, int64_t now_ns, uint64_t bytes, uint64_t tag);

/* When the next transfer ends if nothing else starts, rounded up to a nanosecond; LS_NEVER_NS when idle. */
int64_t ls_link_next_ns(const ls_link *link);

/* Takes one transfer that has ended by now_ns off the link: true and its tag, or false when none has. */
bool ls_link_finish(ls_link *link, int64_t now_ns, uint64_t *tag);

/* Transfers on the link. */
uint32_t ls_link_active(const ls_link *link);

#endif
