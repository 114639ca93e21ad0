/* rate_limit.h - request-rate limits as token buckets, one for a prefix and one for each name that was written lately.
 *
 * A bucket is kept as one number, the time at which it would be full again (the generic cell rate algorithm, ITU-T
 * I.371, which decides exactly as a token bucket does). A name whose bucket is full is forgotten, so the table of names
 * stays as small as the number of names written within the last bucket depth.
 */
#ifndef LS_RATE_LIMIT_H
#define LS_RATE_LIMIT_H

#include "manifest/key.h"

typedef struct ls_rate_limit {
    int64_t interval_ns;  /* one token; 0: no limit */
    int64_t tolerance_ns; /* depth of the bucket beyond its first token */
} ls_rate_limit;

/* rate_per_s 0 or less: no limit. The bucket holds rate * burst_s tokens, at least one. */
ls_rate_limit ls_rate_limit_make(double rate_per_s, double burst_s);

/* How long after now_ns a bucket that is full again at full_ns will have a token; 0: it has one. */
int64_t ls_rate_limit_wait_ns(const ls_rate_limit *limit, int64_t full_ns, int64_t now_ns);

/* Takes a token: the new time at which the bucket is full. */
int64_t ls_rate_limit_take(const ls_rate_limit *limit, int64_t full_ns, int64_t now_ns);

typedef struct ls_name_bucket {
    ls_key key; /* kind 0: free */
    int64_t full_ns;
} ls_name_bucket;

typedef struct ls_name_buckets {
    ls_name_bucket *slots; /* open addressing; capacity a power of two */
    uint64_t capacity;
    uint64_t used;
} ls_name_buckets;

/* The bucket of a name, made full if it was not known; NULL when out of memory. Valid until the next call. */
ls_name_bucket *ls_name_buckets_get(ls_name_buckets *buckets, const ls_key *key, int64_t now_ns);
void ls_name_buckets_release(ls_name_buckets *buckets); /* a zeroed table is empty */

#endif
