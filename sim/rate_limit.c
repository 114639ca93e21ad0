/* rate_limit.c - token buckets and the table of the names that have one (see rate_limit.h). */
#include "sim/rate_limit.h"

ls_rate_limit ls_rate_limit_make(double rate_per_s, double burst_s)
{
    if (!(rate_per_s > 0.0)) return (ls_rate_limit){0};
    int64_t interval_ns = ls_nanoseconds(1.0 / rate_per_s);
    if (interval_ns == 0) return (ls_rate_limit){0};
    int64_t tolerance_ns = ls_nanoseconds(burst_s) - interval_ns;
    return (ls_rate_limit){.interval_ns = interval_ns, .tolerance_ns = tolerance_ns > 0 ? tolerance_ns : 0};
}

int64_t ls_rate_limit_wait_ns(const ls_rate_limit *limit, int64_t full_ns, int64_t now_ns)
{
    if (limit->interval_ns == 0 || full_ns <= now_ns) return 0;
    int64_t wait_ns = full_ns - now_ns - limit->tolerance_ns;
    return wait_ns > 0 ? wait_ns : 0;
}

int64_t ls_rate_limit_take(const ls_rate_limit *limit, int64_t full_ns, int64_t now_ns)
{
    return (full_ns > now_ns ? full_ns : now_ns) + limit->interval_ns;
}

static uint64_t hash_key(const ls_key *key)
{
    uint64_t x = ((uint64_t)key->kind << 32 | key->epoch) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ key->number ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ key->sequence ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static bool is_same(const ls_key *left, const ls_key *right)
{
    return left->kind == right->kind && left->number == right->number && left->epoch == right->epoch &&
           left->sequence == right->sequence;
}

/* The slot of the key or the free one where it belongs; there is always a free one. */
static ls_name_bucket *find(const ls_name_buckets *buckets, const ls_key *key)
{
    uint64_t place = hash_key(key) & (buckets->capacity - 1);
    while (buckets->slots[place].key.kind != 0 && !is_same(&buckets->slots[place].key, key)) {
        place = (place + 1) & (buckets->capacity - 1);
    }
    return &buckets->slots[place];
}

static bool is_live(const ls_name_bucket *bucket, int64_t now_ns)
{
    return bucket->key.kind != 0 && bucket->full_ns > now_ns;
}

/* Drops the full buckets and sizes the table for four times what remains. */
static bool rebuild(ls_name_buckets *buckets, int64_t now_ns)
{
    uint64_t live = 0, capacity = 64;
    for (uint64_t i = 0; i < buckets->capacity; i++) live += is_live(&buckets->slots[i], now_ns);
    while (capacity < 4 * (live + 1)) capacity *= 2;
    ls_name_buckets fresh = {
        .slots = ls_allocate_array(capacity, sizeof *fresh.slots), .capacity = capacity, .used = live};
    if (fresh.slots == NULL) return false;
    for (uint64_t i = 0; i < buckets->capacity; i++) {
        const ls_name_bucket *bucket = &buckets->slots[i];
        if (is_live(bucket, now_ns)) *find(&fresh, &bucket->key) = *bucket;
    }
    ls_free(buckets->slots);
    *buckets = fresh;
    return true;
}

ls_name_bucket *ls_name_buckets_get(ls_name_buckets *buckets, const ls_key *key, int64_t now_ns)
{
    if (2 * (buckets->used + 1) > buckets->capacity && !rebuild(buckets, now_ns)) return NULL;
    ls_name_bucket *bucket = find(buckets, key);
    if (bucket->key.kind == 0) {
        *bucket = (ls_name_bucket){.key = *key, .full_ns = now_ns};
        buckets->used++;
    }
    return bucket;
}

void ls_name_buckets_release(ls_name_buckets *buckets)
{
    ls_free(buckets->slots);
    *buckets = (ls_name_buckets){0};
}
