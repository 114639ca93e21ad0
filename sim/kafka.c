/* kafka.c - brokers, producers and readers of kafka.h on the engine.
 *
 * Batches (Kafka's record batches), records and global batches live in pools and are named by index. A partition's log keeps the size
 * of each record batch: that is all that replication needs. Offsets count record batches.
 */
#include "sim/kafka.h"

#include "sim/engine.h"
#include "sim/histogram.h"
#include "sim/metrics.h"

#include <math.h>
#include <string.h>

#define NONE     UINT32_MAX
#define LAG_LOOKS 2.0 /* the broker looks for laggards twice in replica.lag.time.max.ms */

enum { ARRIVAL = 1, LINGER, ARRIVED, APPENDED, FETCHED, ACKED, REFUSED, RETRY, LAGGARDS, FAIL, ELECT, RETURN, UNBLOCK };
enum { WHOLE = 0, TRANSACTION, INDEX };
enum { DATA = 0, PREPARE, MARKER, INDEX_RECORD };
enum { PUBLISHED = 0, BY_CLIENT, BY_BROKER, TIMED_OUT, BLOCKED, OUTCOMES };

typedef struct server {
    double bytes_per_s;
    int64_t free_ns;
    int64_t busy_ns; /* within the measured time */
} server;

typedef struct global_batch {
    int64_t created_ns;
    uint64_t bytes;
    uint32_t producer, next;
    uint32_t remaining; /* records, or markers, not yet acknowledged */
    uint32_t failure;   /* PUBLISHED while none */
    uint32_t first_partition, generation;
} global_batch;

typedef struct record {
    uint32_t global, next;
} record;

typedef struct record_batch {
    int64_t created_ns, appended_ns;
    uint64_t bytes, offset;
    uint32_t records, last_record; /* list */
    uint32_t producer, partition, sent_to, next, generation, kind;
    bool open; /* still collects records */
} record_batch;

typedef struct producer {
    server out;
    ls_random gaps, sizes;
    uint64_t memory_used, made;
    uint32_t waiting, last_waiting; /* global batches */
    uint32_t outstanding;
    bool in_transaction, paused;
} producer;

typedef struct connection {
    uint32_t head, tail, in_flight;
} connection;

typedef struct broker {
    server in, out, disk;
    bool alive;
} broker;

typedef struct partition {
    uint32_t leader, in_sync, replicas; /* masks of brokers, but for leader */
    uint32_t head, tail;                /* appended, not acknowledged: by offset */
    uint64_t high, acknowledged;        /* high watermark; one past the last acknowledged offset */
    uint32_t *log;
    uint64_t log_count, log_capacity;
} partition;

typedef struct pair { /* a follower's fetching from a leader */
    bool busy;
    uint32_t turn, life; /* where the next response begins; lives of brokers in which it was sent */
    int64_t sent_ns, last_sent_ns, busy_ns;
} pair;

typedef struct pool {
    void *items;
    size_t size;
    uint32_t count, capacity, *free, free_count;
} pool;

typedef struct kafka {
    const ls_scenario *s;
    ls_engine *engine;
    pool globals, batches, records;
    producer *producers;
    connection *connections; /* producer * brokers + broker */
    uint32_t *collecting;    /* producer * logs + partition */
    broker *brokers;
    partition *partitions; /* the topic's, and one more: transaction log or index topic */
    pair *pairs;           /* leader * brokers + follower */
    uint64_t *ends;        /* broker * logs + partition: what the leader knows of the replica's end */
    int64_t *caught_up_ns; /* the same order */
    uint64_t *fetching;    /* pair * logs + partition: the ends that the response under way will bring */
    server *nodes;
    uint64_t ranks;
    uint32_t broker_count, logs, life, slices;
    int64_t half_trip_ns, from_ns, end_ns;
    ls_histogram delay, fetch;
    uint64_t made, outcomes[OUTCOMES], published_bytes, published_in_time, replicated, shrinks, lost;
    double replication_s, read_bytes, needed_bytes;
} kafka;

/* --- pools -------------------------------------------------------------------------------------------------------------------- */

static ls_result pool_take(pool *p, uint32_t *index)
{
    if (p->free_count > 0) {
        *index = p->free[--p->free_count];
        return LS_OK;
    }
    if (p->count == p->capacity) {
        if (p->capacity >= NONE / 4) return LS_ERROR_MEMORY;
        uint32_t capacity = p->capacity == 0 ? 64 : p->capacity * 2;
        void *items = ls_reallocate(p->items, capacity * p->size);
        if (items == NULL) return LS_ERROR_MEMORY;
        p->items = items;
        memset((char *)items + p->capacity * p->size, 0, (capacity - p->capacity) * p->size);
        uint32_t *spare = ls_reallocate(p->free, capacity * sizeof *spare);
        if (spare == NULL) return LS_ERROR_MEMORY;
        p->free = spare;
        p->capacity = capacity;
    }
    *index = p->count++;
    return LS_OK;
}

static void pool_give(pool *p, uint32_t index)
{
    p->free[p->free_count++] = index; /* capacity of free equals that of items */
}

static void pool_close(pool *p)
{
    ls_free(p->items);
    ls_free(p->free);
}

static global_batch *global_at(kafka *k, uint32_t i)
{
    return (global_batch *)k->globals.items + i;
}

static record_batch *batch_at(kafka *k, uint32_t i)
{
    return (record_batch *)k->batches.items + i;
}

/* --- servers ------------------------------------------------------------------------------------------------------------------ */

static int64_t overlap_ns(const kafka *k, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < k->from_ns) from_ns = k->from_ns;
    if (to_ns > k->end_ns) to_ns = k->end_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static int64_t serve(const kafka *k, server *at, double bytes)
{
    int64_t now_ns = ls_engine_now(k->engine);
    int64_t begin_ns = at->free_ns > now_ns ? at->free_ns : now_ns;
    int64_t work_ns = ls_nanoseconds(bytes / at->bytes_per_s);
    at->free_ns = begin_ns > LS_NEVER_NS - work_ns ? LS_NEVER_NS : begin_ns + work_ns;
    at->busy_ns += overlap_ns(k, begin_ns, at->free_ns);
    return at->free_ns;
}

static int64_t transfer(const kafka *k, server *from, server *to, double bytes)
{
    int64_t sent_ns = serve(k, from, bytes), received_ns = serve(k, to, bytes);
    return sent_ns > received_ns ? sent_ns : received_ns;
}

/* When an append returns: its bytes are in the page cache, which may lag behind the disk by so much and no more. */
static int64_t append_ns(const kafka *k, broker *at, double bytes)
{
    int64_t cached_ns = ls_nanoseconds((double)k->s->kafka.page_cache_bytes / at->disk.bytes_per_s);
    int64_t written_ns = serve(k, &at->disk, bytes), now_ns = ls_engine_now(k->engine);
    return written_ns - cached_ns > now_ns ? written_ns - cached_ns : now_ns;
}

static ls_result later(kafka *k, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    return ls_engine_schedule(k->engine, at_ns, kind, entity, argument);
}

static ls_result in_s(kafka *k, double seconds, uint32_t kind, uint32_t entity, uint64_t argument)
{
    return later(k, ls_engine_now(k->engine) + ls_nanoseconds(seconds), kind, entity, argument);
}

static uint64_t *end_of(kafka *k, uint32_t replica, uint32_t log)
{
    return &k->ends[(size_t)replica * k->logs + log];
}

/* --- making global batches ---------------------------------------------------------------------------------------------------- */

static ls_result schedule_arrival(kafka *k, uint32_t p)
{
    producer *who = &k->producers[p];
    if (who->outstanding >= k->s->upload.backlog_batches) {
        who->paused = true;
        return LS_OK;
    }
    if (k->s->batches.law == LS_ARRIVAL_CLOSED) return who->outstanding == 0 ? in_s(k, 0, ARRIVAL, p, 0) : LS_OK;
    double gap_s = 1.0 / k->s->batches.rate_per_s;
    if (k->s->batches.law == LS_ARRIVAL_POISSON) gap_s *= ls_random_exponential(&who->gaps);
    return in_s(k, gap_s, ARRIVAL, p, 0);
}

/* What a rank reads of a published batch, from the leaders; the link of its node is shared. */
static ls_result read_batch(kafka *k, const global_batch *g)
{
    bool whole = k->s->kafka.discipline == WHOLE;
    double slice = (double)g->bytes / (double)k->ranks;
    double bytes = (whole ? (double)g->bytes : slice) + LS_KAFKA_RECORD_OVERHEAD;
    int64_t now_ns = ls_engine_now(k->engine), trips = k->s->kafka.discipline == INDEX ? 4 : 2;
    int64_t wait_ns = bytes < (double)k->s->kafka.fetch_min_bytes ? ls_nanoseconds(k->s->kafka.fetch_max_wait_s) : 0;
    bool measured = now_ns >= k->from_ns && now_ns <= k->end_ns;
    for (uint64_t rank = 0; rank < k->ranks; rank++) {
        uint32_t log = (uint32_t)((g->first_partition + (whole ? 0 : rank)) % k->s->kafka.partitions);
        broker *leader = &k->brokers[k->partitions[log].leader];
        if (!leader->alive) continue;
        server *node = &k->nodes[rank / k->s->trainer.ranks_per_node];
        int64_t took_ns = transfer(k, &leader->out, node, bytes) - now_ns + trips * k->half_trip_ns + wait_ns;
        if (!measured) continue;
        ls_result result = ls_histogram_record(&k->fetch, took_ns);
        if (result != LS_OK) return result;
        k->read_bytes += bytes;
        k->needed_bytes += slice;
    }
    return LS_OK;
}

static ls_result start_waiting(kafka *k, uint32_t p);

static ls_result finish(kafka *k, uint32_t index, uint32_t outcome)
{
    global_batch *g = global_at(k, index);
    producer *who = &k->producers[g->producer];
    uint32_t p = g->producer;
    int64_t now_ns = ls_engine_now(k->engine);
    ls_result result = LS_OK;
    if (g->created_ns >= k->from_ns && g->created_ns < k->end_ns) {
        k->outcomes[outcome]++;
        if (outcome == PUBLISHED) result = ls_histogram_record(&k->delay, now_ns - g->created_ns);
    }
    if (outcome == PUBLISHED && now_ns >= k->from_ns && now_ns < k->end_ns) {
        k->published_in_time++;
        k->published_bytes += g->bytes;
    }
    if (result == LS_OK && outcome == PUBLISHED && k->s->kafka.consumers) result = read_batch(k, g);
    g->generation++;
    pool_give(&k->globals, index);
    who->outstanding--;
    if (result != LS_OK) return result;
    if (who->paused || k->s->batches.law == LS_ARRIVAL_CLOSED) {
        who->paused = false;
        /* A closed loop whose batches are refused at once would stand still in time. */
        if (k->s->batches.law == LS_ARRIVAL_CLOSED && outcome != PUBLISHED) return in_s(k, 1.0 / k->s->batches.rate_per_s, ARRIVAL, p, 0);
        return schedule_arrival(k, p);
    }
    return LS_OK;
}

/* --- sending ------------------------------------------------------------------------------------------------------------------ */

static ls_result new_batch(kafka *k, uint32_t kind, uint32_t p, uint32_t log, uint32_t *index)
{
    ls_result result = pool_take(&k->batches, index);
    if (result != LS_OK) return result;
    record_batch *b = batch_at(k, *index);
    *b = (record_batch){.created_ns = ls_engine_now(k->engine), .records = NONE, .last_record = NONE, .producer = p, .partition = log,
                        .sent_to = NONE, .next = NONE, .generation = b->generation, .kind = kind};
    return LS_OK;
}

static ls_result add_record(kafka *k, uint32_t batch, uint32_t global, uint64_t bytes)
{
    uint32_t index;
    ls_result result = pool_take(&k->records, &index);
    if (result != LS_OK) return result;
    record *records = k->records.items;
    records[index] = (record){global, NONE};
    record_batch *b = batch_at(k, batch);
    if (b->records == NONE)
        b->records = index;
    else
        records[b->last_record].next = index;
    b->last_record = index;
    b->bytes += bytes;
    return LS_OK;
}

static ls_result send_more(kafka *k, uint32_t p, uint32_t to)
{
    connection *c = &k->connections[(size_t)p * k->broker_count + to];
    while (c->head != NONE && c->in_flight < k->s->kafka.max_in_flight) {
        uint32_t index = c->head;
        record_batch *b = batch_at(k, index);
        c->head = b->next;
        b->sent_to = to;
        c->in_flight++;
        int64_t at_ns = transfer(k, &k->producers[p].out, &k->brokers[to].in, (double)b->bytes) + k->half_trip_ns;
        ls_result result = later(k, at_ns, ARRIVED, 0, index);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

/* A closed record batch goes to its leader: through its producer's connection, or from the coordinator. */
static ls_result dispatch(kafka *k, uint32_t index)
{
    record_batch *b = batch_at(k, index);
    uint32_t to = k->partitions[b->partition].leader;
    if (b->producer == NONE) {
        b->sent_to = to;
        return later(k, ls_engine_now(k->engine) + k->half_trip_ns, ARRIVED, 0, index);
    }
    connection *c = &k->connections[(size_t)b->producer * k->broker_count + to];
    b->next = NONE;
    if (c->head == NONE)
        c->head = index;
    else
        batch_at(k, c->tail)->next = index;
    c->tail = index;
    return send_more(k, b->producer, to);
}

static ls_result close_batch(kafka *k, uint32_t index)
{
    record_batch *b = batch_at(k, index);
    b->open = false;
    k->collecting[(size_t)b->producer * k->logs + b->partition] = NONE;
    return dispatch(k, index);
}

static ls_result collect(kafka *k, uint32_t p, uint32_t log, uint32_t global, uint64_t bytes)
{
    uint32_t *slot = &k->collecting[(size_t)p * k->logs + log];
    ls_result result = LS_OK;
    if (*slot != NONE && batch_at(k, *slot)->bytes + bytes > k->s->kafka.batch_size_bytes) result = close_batch(k, *slot);
    if (result == LS_OK && *slot == NONE) {
        uint32_t fresh;
        result = new_batch(k, DATA, p, log, &fresh);
        if (result != LS_OK) return result;
        *slot = fresh;
        record_batch *b = batch_at(k, fresh);
        b->open = true;
        if (bytes < k->s->kafka.batch_size_bytes && k->s->kafka.linger_s > 0)
            result = in_s(k, k->s->kafka.linger_s, LINGER, b->generation, fresh);
    }
    if (result == LS_OK) result = add_record(k, *slot, global, bytes);
    if (result != LS_OK) return result;
    bool full = batch_at(k, *slot)->bytes >= k->s->kafka.batch_size_bytes || k->s->kafka.linger_s <= 0;
    return full ? close_batch(k, *slot) : LS_OK;
}

static uint64_t record_bytes(const kafka *k, const global_batch *g)
{
    return (g->bytes + k->slices - 1) / k->slices + LS_KAFKA_RECORD_OVERHEAD;
}

static ls_result start(kafka *k, uint32_t index)
{
    global_batch *g = global_at(k, index);
    producer *who = &k->producers[g->producer];
    uint64_t bytes = record_bytes(k, g);
    uint32_t p = g->producer, first = g->first_partition;
    who->memory_used += bytes * k->slices;
    who->in_transaction = k->s->kafka.discipline == TRANSACTION;
    g->remaining = k->slices;
    for (uint32_t i = 0; i < k->slices; i++) {
        ls_result result = collect(k, p, (uint32_t)((first + i) % k->s->kafka.partitions), index, bytes);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

/* A batch of several records that is larger than buffer.memory starts when the memory is empty: its records would enter one by one. */
static ls_result start_waiting(kafka *k, uint32_t p)
{
    producer *who = &k->producers[p];
    while (who->waiting != NONE && !who->in_transaction) {
        uint32_t index = who->waiting;
        global_batch *g = global_at(k, index);
        if (who->memory_used > 0 && who->memory_used + record_bytes(k, g) * k->slices > k->s->kafka.buffer_memory_bytes) return LS_OK;
        who->waiting = g->next;
        g->next = index; /* no longer in line */
        ls_result result = start(k, index);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result make(kafka *k, uint32_t p)
{
    uint32_t index;
    ls_result result = pool_take(&k->globals, &index);
    if (result != LS_OK) return result;
    producer *who = &k->producers[p];
    global_batch *g = global_at(k, index);
    double bytes = (double)k->s->batches.bytes, sigma = k->s->batches.bytes_sigma;
    if (sigma > 0) bytes *= exp(sigma * ls_random_normal(&who->sizes) - sigma * sigma / 2);
    int64_t now_ns = ls_engine_now(k->engine);
    *g = (global_batch){.created_ns = now_ns, .bytes = bytes < 1 ? 1 : (uint64_t)bytes, .producer = p, .next = NONE,
                        .first_partition = (uint32_t)((p + who->made * k->slices) % k->s->kafka.partitions), .generation = g->generation};
    who->made++;
    who->outstanding++;
    if (now_ns >= k->from_ns && now_ns < k->end_ns) k->made++;
    if (k->s->batches.law != LS_ARRIVAL_CLOSED) result = schedule_arrival(k, p);
    if (result != LS_OK) return result;
    uint64_t size = record_bytes(k, g);
    if (size > k->s->kafka.max_request_bytes || size > k->s->kafka.buffer_memory_bytes) return finish(k, index, BY_CLIENT);
    if (who->waiting == NONE)
        who->waiting = index;
    else
        global_at(k, who->last_waiting)->next = index;
    who->last_waiting = index;
    if (k->s->kafka.discipline != TRANSACTION) result = in_s(k, k->s->kafka.max_block_s, UNBLOCK, g->generation, index);
    return result == LS_OK ? start_waiting(k, p) : result;
}

/* max.block.ms of a global batch is over: it is at the head of the line, for those before it came earlier and are gone. */
static ls_result unblock(kafka *k, uint32_t index, uint32_t generation)
{
    global_batch *g = global_at(k, index);
    producer *who = &k->producers[g->producer];
    if (g->generation != generation || who->waiting != index) return LS_OK;
    who->waiting = g->next;
    return finish(k, index, BLOCKED);
}

/* --- what becomes of a record batch ------------------------------------------------------------------------------------------- */

static ls_result records_done(kafka *k, uint32_t index)
{
    global_batch *g = global_at(k, index);
    uint32_t p = g->producer, batch, count = k->slices;
    if (count > k->s->kafka.partitions) count = (uint32_t)k->s->kafka.partitions;
    if (g->failure != PUBLISHED || k->s->kafka.discipline == WHOLE) {
        k->producers[p].in_transaction = false;
        ls_result result = finish(k, index, g->failure);
        return result == LS_OK ? start_waiting(k, p) : result;
    }
    bool index_topic = k->s->kafka.discipline == INDEX;
    g->remaining = count;
    ls_result result = new_batch(k, index_topic ? INDEX_RECORD : PREPARE, index_topic ? p : NONE, k->logs - 1, &batch);
    if (result == LS_OK) result = add_record(k, batch, index, index_topic ? LS_KAFKA_INDEX_BYTES : LS_KAFKA_MARKER_BYTES);
    if (result != LS_OK) return result;
    if (index_topic) k->producers[p].memory_used += LS_KAFKA_INDEX_BYTES;
    return dispatch(k, batch);
}

static ls_result send_markers(kafka *k, uint32_t global)
{
    uint32_t count = global_at(k, global)->remaining, first = global_at(k, global)->first_partition;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t batch;
        ls_result result = new_batch(k, MARKER, NONE, (uint32_t)((first + i) % k->s->kafka.partitions), &batch);
        if (result == LS_OK) result = add_record(k, batch, global, LS_KAFKA_MARKER_BYTES);
        if (result == LS_OK) result = dispatch(k, batch);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result record_done(kafka *k, uint32_t kind, uint32_t global, uint32_t failure)
{
    global_batch *g = global_at(k, global);
    uint32_t p = g->producer;
    if (failure != PUBLISHED) g->failure = failure;
    if (kind == PREPARE && failure == PUBLISHED) return send_markers(k, global);
    if (kind == DATA) return --g->remaining == 0 ? records_done(k, global) : LS_OK;
    if (kind == MARKER && --g->remaining > 0) return LS_OK;
    k->producers[p].in_transaction = false;
    ls_result result = finish(k, global, g->failure);
    return result == LS_OK ? start_waiting(k, p) : result;
}

static void leave_connection(kafka *k, record_batch *b)
{
    if (b->producer != NONE && b->sent_to != NONE) k->connections[(size_t)b->producer * k->broker_count + b->sent_to].in_flight--;
}

/* The producer is through with a record batch. */
static ls_result done(kafka *k, uint32_t index, uint32_t failure)
{
    record_batch b = *batch_at(k, index);
    batch_at(k, index)->generation++;
    pool_give(&k->batches, index);
    leave_connection(k, &b);
    if (b.producer != NONE) k->producers[b.producer].memory_used -= b.bytes;
    ls_result result = LS_OK;
    for (uint32_t r = b.records; r != NONE && result == LS_OK;) {
        record item = ((record *)k->records.items)[r];
        pool_give(&k->records, r);
        result = record_done(k, b.kind, item.global, failure);
        r = item.next;
    }
    if (result == LS_OK && b.producer != NONE && b.sent_to != NONE) result = send_more(k, b.producer, b.sent_to);
    if (result == LS_OK && b.producer != NONE) result = start_waiting(k, b.producer);
    return result;
}

static ls_result retry(kafka *k, uint32_t index)
{
    record_batch *b = batch_at(k, index);
    uint32_t p = b->producer, was = b->sent_to;
    if (ls_engine_now(k->engine) - b->created_ns >= ls_nanoseconds(k->s->kafka.delivery_timeout_s)) return done(k, index, TIMED_OUT);
    leave_connection(k, b);
    b->sent_to = NONE;
    ls_result result = dispatch(k, index);
    if (result == LS_OK && p != NONE && was != NONE) result = send_more(k, p, was);
    return result;
}

static ls_result retry_later(kafka *k, uint32_t index)
{
    return in_s(k, k->s->kafka.retry_backoff_s, RETRY, 0, index);
}

/* --- brokers ------------------------------------------------------------------------------------------------------------------ */

static uint32_t bits(uint32_t mask)
{
    uint32_t count = 0;
    for (; mask != 0; mask &= mask - 1) count++;
    return count;
}

static ls_result arrived(kafka *k, uint32_t index)
{
    record_batch *b = batch_at(k, index);
    partition *log = &k->partitions[b->partition];
    if (!k->brokers[b->sent_to].alive || log->leader != b->sent_to) return retry_later(k, index);
    if (b->bytes > k->s->kafka.message_max_bytes) return later(k, ls_engine_now(k->engine) + k->half_trip_ns, REFUSED, 0, index);
    if (k->s->kafka.acks == 0 && bits(log->in_sync) < k->s->kafka.min_insync_replicas) return retry_later(k, index);
    return later(k, append_ns(k, &k->brokers[b->sent_to], (double)b->bytes), APPENDED, 0, index);
}

static ls_result fetch(kafka *k, uint32_t leader, uint32_t follower)
{
    pair *f = &k->pairs[(size_t)leader * k->broker_count + follower];
    if (f->busy || leader == follower || !k->brokers[leader].alive || !k->brokers[follower].alive) return LS_OK;
    uint64_t *targets = &k->fetching[((size_t)leader * k->broker_count + follower) * k->logs];
    double bytes = 0;
    uint32_t first = f->turn;
    for (uint32_t n = 0; n < k->logs; n++) {
        uint32_t i = (first + n) % k->logs;
        partition *log = &k->partitions[i];
        targets[i] = *end_of(k, follower, i);
        if (log->leader != leader || !(log->replicas >> follower & 1)) continue;
        double of_partition = 0;
        while (targets[i] < log->log_count) {
            double next = (double)log->log[targets[i]];
            bool fits = of_partition + next <= (double)k->s->kafka.replica_fetch_bytes && bytes + next <= (double)k->s->kafka.replica_response_bytes;
            if (!fits && bytes > 0) break;
            targets[i]++;
            of_partition += next;
            bytes += next;
            f->turn = (i + 1) % k->logs;
        }
    }
    if (bytes <= 0) return LS_OK;
    f->busy = true;
    f->life = k->life;
    f->last_sent_ns = f->sent_ns;
    f->sent_ns = ls_engine_now(k->engine);
    int64_t received_ns = transfer(k, &k->brokers[leader].out, &k->brokers[follower].in, bytes) + k->half_trip_ns;
    return later(k, received_ns, FETCHED, leader * k->broker_count + follower, (uint64_t)bytes << 1);
}

static ls_result advance(kafka *k, uint32_t i)
{
    partition *log = &k->partitions[i];
    /* Fewer in sync than min.insync.replicas: nothing more is committed until they are back (KIP-966). */
    if (k->s->kafka.acks == 0 && bits(log->in_sync) < k->s->kafka.min_insync_replicas) return LS_OK;
    uint64_t high = UINT64_MAX;
    for (uint32_t b = 0; b < k->broker_count; b++) {
        if (log->in_sync >> b & 1 && *end_of(k, b, i) < high) high = *end_of(k, b, i);
    }
    if (high != UINT64_MAX && high > log->high) log->high = high;
    int64_t now_ns = ls_engine_now(k->engine);
    while (log->head != NONE && batch_at(k, log->head)->offset < log->high) {
        uint32_t index = log->head;
        record_batch *b = batch_at(k, index);
        log->head = b->next;
        log->acknowledged = b->offset + 1;
        if (now_ns >= k->from_ns && now_ns < k->end_ns) {
            k->replicated++;
            k->replication_s += ls_seconds(now_ns - b->appended_ns);
        }
        ls_result result = later(k, now_ns + k->half_trip_ns, ACKED, 0, index);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result appended(kafka *k, uint32_t index)
{
    record_batch *b = batch_at(k, index);
    uint32_t leader = b->sent_to, i = b->partition;
    partition *log = &k->partitions[i];
    if (!k->brokers[leader].alive || log->leader != leader) return retry_later(k, index);
    if (log->log_count == log->log_capacity) {
        uint64_t capacity = log->log_capacity == 0 ? 64 : log->log_capacity * 2;
        uint32_t *sizes = ls_reallocate(log->log, capacity * sizeof *sizes);
        if (sizes == NULL) return LS_ERROR_MEMORY;
        log->log = sizes;
        log->log_capacity = capacity;
    }
    b->offset = log->log_count;
    b->appended_ns = ls_engine_now(k->engine);
    log->log[log->log_count++] = (uint32_t)b->bytes;
    *end_of(k, leader, i) = log->log_count;
    ls_result result = LS_OK;
    if (k->s->kafka.acks == 0) {
        b->next = NONE;
        if (log->head == NONE)
            log->head = index;
        else
            batch_at(k, log->tail)->next = index;
        log->tail = index;
    } else {
        log->acknowledged = log->log_count;
        result = later(k, ls_engine_now(k->engine) + k->half_trip_ns, ACKED, 0, index);
    }
    for (uint32_t f = 0; f < k->broker_count && result == LS_OK; f++) {
        if (log->replicas >> f & 1) result = fetch(k, leader, f);
    }
    return result == LS_OK ? advance(k, i) : result;
}

/* Argument: bytes, and in the lowest bit whether the follower has appended them and the leader hears of it. */
static ls_result fetched(kafka *k, uint32_t which, uint64_t argument)
{
    uint32_t leader = which / k->broker_count, follower = which % k->broker_count;
    pair *f = &k->pairs[which];
    int64_t now_ns = ls_engine_now(k->engine);
    bool valid = f->life == k->life || (k->brokers[leader].alive && k->brokers[follower].alive);
    if (valid && !(argument & 1)) {
        int64_t heard_ns = append_ns(k, &k->brokers[follower], (double)(argument >> 1)) + k->half_trip_ns;
        return later(k, heard_ns, FETCHED, which, argument | 1);
    }
    f->busy = false;
    f->busy_ns += overlap_ns(k, f->sent_ns, now_ns);
    if (!valid) return fetch(k, leader, follower);
    uint64_t *targets = &k->fetching[(size_t)which * k->logs];
    for (uint32_t i = 0; i < k->logs; i++) {
        partition *log = &k->partitions[i];
        if (log->leader != leader || !(log->replicas >> follower & 1)) continue;
        uint64_t *end = end_of(k, follower, i);
        if (targets[i] > *end && targets[i] <= log->log_count) *end = targets[i];
        if (*end == log->log_count) {
            k->caught_up_ns[(size_t)follower * k->logs + i] = now_ns;
            log->in_sync |= UINT32_C(1) << follower;
        }
        ls_result result = advance(k, i);
        if (result != LS_OK) return result;
    }
    return fetch(k, leader, follower);
}

static ls_result laggards(kafka *k)
{
    int64_t now_ns = ls_engine_now(k->engine), lag_ns = ls_nanoseconds(k->s->kafka.replica_lag_s);
    for (uint32_t i = 0; i < k->logs; i++) {
        partition *log = &k->partitions[i];
        if (!k->brokers[log->leader].alive) continue;
        for (uint32_t b = 0; b < k->broker_count; b++) {
            int64_t *caught_up_ns = &k->caught_up_ns[(size_t)b * k->logs + i];
            if (b == log->leader || !(log->in_sync >> b & 1)) continue;
            if (*end_of(k, b, i) == log->log_count && k->brokers[b].alive) *caught_up_ns = now_ns;
            if (now_ns - *caught_up_ns <= lag_ns) continue;
            log->in_sync &= ~(UINT32_C(1) << b);
            k->shrinks++;
        }
        ls_result result = advance(k, i);
        if (result != LS_OK) return result;
    }
    return in_s(k, k->s->kafka.replica_lag_s / LAG_LOOKS, LAGGARDS, 0, 0);
}

/* The controller notices: the failed broker leaves every in-sync set, and its partitions get leaders from what is left. What a new
 * leader lacks was never acknowledged with acks=all; its producers send it again. */
static ls_result elect(kafka *k)
{
    if (k->brokers[0].alive) return LS_OK;
    for (uint32_t i = 0; i < k->logs; i++) {
        partition *log = &k->partitions[i];
        uint32_t left = log->in_sync & ~UINT32_C(1);
        if (log->in_sync & 1) k->shrinks++;
        if (log->leader != 0) {
            log->in_sync = left;
        } else if (left != 0) { /* else: no clean leader, the partition waits for its broker */
            uint32_t leader = 0;
            while (!(left >> leader & 1)) leader++;
            log->in_sync = left;
            log->leader = leader;
            uint64_t end = *end_of(k, leader, i);
            if (log->acknowledged > end) k->lost += log->acknowledged - end;
            log->acknowledged = log->acknowledged > end ? end : log->acknowledged;
            log->log_count = end;
            for (uint32_t b = 0; b < k->broker_count; b++) {
                if (*end_of(k, b, i) > end) *end_of(k, b, i) = end;
            }
            uint32_t kept = NONE, last = NONE;
            for (uint32_t b = log->head, next; b != NONE; b = next) {
                next = batch_at(k, b)->next;
                if (batch_at(k, b)->offset >= end) {
                    ls_result result = retry_later(k, b);
                    if (result != LS_OK) return result;
                    continue;
                }
                if (last == NONE)
                    kept = b;
                else
                    batch_at(k, last)->next = b;
                last = b;
                batch_at(k, b)->next = NONE;
            }
            log->head = kept;
            log->tail = last;
        }
        ls_result result = advance(k, i);
        for (uint32_t b = 0; b < k->broker_count && result == LS_OK; b++) result = fetch(k, log->leader, b);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result bring_back(kafka *k)
{
    k->brokers[0].alive = true;
    for (uint32_t l = 0; l < k->broker_count; l++) {
        ls_result result = fetch(k, l, 0);
        for (uint32_t f = 1; f < k->broker_count && result == LS_OK; f++) result = l == 0 ? fetch(k, 0, f) : LS_OK;
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------------------ */

static ls_result handle(kafka *k, const ls_engine_event *event)
{
    uint32_t index = (uint32_t)event->argument;
    switch (event->kind) {
    case ARRIVAL: return make(k, event->entity);
    case LINGER: return batch_at(k, index)->open && batch_at(k, index)->generation == event->entity ? close_batch(k, index) : LS_OK;
    case ARRIVED: return arrived(k, index);
    case APPENDED: return appended(k, index);
    case FETCHED: return fetched(k, event->entity, event->argument);
    case ACKED: return done(k, index, PUBLISHED);
    case REFUSED: return done(k, index, BY_BROKER);
    case RETRY: return retry(k, index);
    case LAGGARDS: return laggards(k);
    case FAIL:
        k->brokers[0].alive = false;
        k->life++;
        return LS_OK;
    case ELECT: return elect(k);
    case RETURN: return bring_back(k);
    default: return unblock(k, index, event->entity);
    }
}

static ls_result run(kafka *k)
{
    const ls_scenario *s = k->s;
    ls_result result = in_s(k, s->kafka.replica_lag_s / LAG_LOOKS, LAGGARDS, 0, 0);
    for (uint32_t p = 0; p < s->producers.count && result == LS_OK; p++) {
        if (s->batches.law == LS_ARRIVAL_REGULAR)
            result = in_s(k, ls_random_uniform(&k->producers[p].gaps) / s->batches.rate_per_s, ARRIVAL, p, 0);
        else
            result = schedule_arrival(k, p);
    }
    if (result == LS_OK && s->kafka.fail_at_s > 0) {
        result = in_s(k, s->kafka.fail_at_s, FAIL, 0, 0);
        if (result == LS_OK) result = in_s(k, s->kafka.fail_at_s + s->kafka.session_s, ELECT, 0, 0);
        if (result == LS_OK) result = in_s(k, s->kafka.fail_at_s + s->kafka.fail_length_s, RETURN, 0, 0);
    }
    ls_engine_event event;
    while (result == LS_OK && ls_engine_next(k->engine, &event) && event.at_ns <= k->end_ns) result = handle(k, &event);
    return result;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static void report(const kafka *k, ls_run_result *result)
{
    double *v = result->values, measured_s = k->s->duration_s;
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) v[i] = NAN;
    v[LS_METRIC_MEASURED] = measured_s;
    v[LS_METRIC_PUBLISHED_RATE] = (double)k->published_in_time / measured_s;
    v[LS_METRIC_PUBLISHED_SHARE] = share((double)k->outcomes[PUBLISHED], (double)k->made);
    v[LS_METRIC_INGEST_BYTES] = (double)k->published_bytes / measured_s;
    if (ls_histogram_count(&k->delay) > 0) {
        v[LS_METRIC_DELAY_MEAN] = ls_histogram_mean(&k->delay) * 1e-9;
        v[LS_METRIC_DELAY_P50] = ls_seconds(ls_histogram_quantile(&k->delay, 0.5));
        v[LS_METRIC_DELAY_P90] = ls_seconds(ls_histogram_quantile(&k->delay, 0.9));
        v[LS_METRIC_DELAY_P99] = ls_seconds(ls_histogram_quantile(&k->delay, 0.99));
        v[LS_METRIC_DELAY_MAX] = ls_seconds(ls_histogram_maximum(&k->delay));
    }
    if (ls_histogram_count(&k->fetch) > 0) {
        v[LS_METRIC_FETCH_MEAN] = ls_histogram_mean(&k->fetch) * 1e-9;
        v[LS_METRIC_FETCH_P50] = ls_seconds(ls_histogram_quantile(&k->fetch, 0.5));
        v[LS_METRIC_FETCH_P99] = ls_seconds(ls_histogram_quantile(&k->fetch, 0.99));
        v[LS_METRIC_READ_AMPLIFICATION] = k->read_bytes / k->needed_bytes;
    }
    v[LS_METRIC_REJECTED_CLIENT] = share((double)k->outcomes[BY_CLIENT], (double)k->made);
    v[LS_METRIC_REJECTED_BROKER] = share((double)k->outcomes[BY_BROKER], (double)k->made);
    v[LS_METRIC_KAFKA_TIMED_OUT] = share((double)k->outcomes[TIMED_OUT], (double)k->made);
    v[LS_METRIC_KAFKA_BLOCKED] = share((double)k->outcomes[BLOCKED], (double)k->made);
    v[LS_METRIC_KAFKA_IN_BUSY] = v[LS_METRIC_KAFKA_OUT_BUSY] = v[LS_METRIC_KAFKA_DISK_BUSY] = v[LS_METRIC_KAFKA_FETCH_BUSY] = 0;
    for (uint32_t b = 0; b < k->broker_count; b++) {
        v[LS_METRIC_KAFKA_IN_BUSY] = fmax(v[LS_METRIC_KAFKA_IN_BUSY], ls_seconds(k->brokers[b].in.busy_ns) / measured_s);
        v[LS_METRIC_KAFKA_OUT_BUSY] = fmax(v[LS_METRIC_KAFKA_OUT_BUSY], ls_seconds(k->brokers[b].out.busy_ns) / measured_s);
        v[LS_METRIC_KAFKA_DISK_BUSY] = fmax(v[LS_METRIC_KAFKA_DISK_BUSY], ls_seconds(k->brokers[b].disk.busy_ns) / measured_s);
    }
    for (uint32_t i = 0; i < k->broker_count * k->broker_count; i++) {
        int64_t busy_ns = k->pairs[i].busy_ns + (k->pairs[i].busy ? overlap_ns(k, k->pairs[i].sent_ns, k->end_ns) : 0);
        v[LS_METRIC_KAFKA_FETCH_BUSY] = fmax(v[LS_METRIC_KAFKA_FETCH_BUSY], ls_seconds(busy_ns) / measured_s);
    }
    v[LS_METRIC_KAFKA_REPLICATION] = share(k->replication_s, (double)k->replicated);
    v[LS_METRIC_KAFKA_ISR_SHRINKS] = (double)k->shrinks;
    v[LS_METRIC_KAFKA_LOST] = (double)k->lost;
    result->events = ls_engine_processed(k->engine);
}

static ls_result prepare(kafka *k, uint64_t seed, uint64_t replication)
{
    const ls_scenario *s = k->s;
    size_t brokers = k->broker_count, logs = k->logs, producers = s->producers.count;
    k->engine = ls_engine_new();
    k->producers = ls_allocate_array(producers, sizeof *k->producers);
    k->connections = ls_allocate_array(producers * brokers, sizeof *k->connections);
    k->collecting = ls_allocate_array(producers * logs, sizeof *k->collecting);
    k->brokers = ls_allocate_array(brokers, sizeof *k->brokers);
    k->partitions = ls_allocate_array(logs, sizeof *k->partitions);
    k->pairs = ls_allocate_array(brokers * brokers, sizeof *k->pairs);
    k->ends = ls_allocate_array(brokers * logs, sizeof *k->ends);
    k->caught_up_ns = ls_allocate_array(brokers * logs, sizeof *k->caught_up_ns);
    k->fetching = ls_allocate_array(brokers * brokers * logs, sizeof *k->fetching);
    uint64_t nodes = (k->ranks + s->trainer.ranks_per_node - 1) / s->trainer.ranks_per_node;
    k->nodes = ls_allocate_array(nodes, sizeof *k->nodes);
    if (k->engine == NULL || k->producers == NULL || k->connections == NULL || k->collecting == NULL || k->brokers == NULL ||
        k->partitions == NULL || k->pairs == NULL || k->ends == NULL || k->caught_up_ns == NULL || k->fetching == NULL || k->nodes == NULL) {
        return LS_ERROR_MEMORY;
    }
    double node = s->trainer.node_bandwidth_bytes_per_s;
    for (uint64_t n = 0; n < nodes; n++) k->nodes[n].bytes_per_s = node > 0 ? node : INFINITY;
    for (size_t p = 0; p < producers; p++) {
        k->producers[p] = (producer){.out = {.bytes_per_s = s->kafka.producer_bytes_per_s}, .waiting = NONE, .last_waiting = NONE,
                                     .gaps = ls_random_open(seed, replication, LS_RANDOM_ARRIVAL, p),
                                     .sizes = ls_random_open(seed, replication, LS_RANDOM_BATCH_BYTES, p)};
    }
    for (size_t c = 0; c < producers * brokers; c++) k->connections[c].head = k->connections[c].tail = NONE;
    for (size_t c = 0; c < producers * logs; c++) k->collecting[c] = NONE;
    for (size_t b = 0; b < brokers; b++) {
        double slower = b + 1 == brokers ? s->kafka.slow_factor : 1;
        k->brokers[b] = (broker){.in = {.bytes_per_s = s->kafka.network_bytes_per_s / slower}, .out = {.bytes_per_s = s->kafka.network_bytes_per_s / slower},
                                 .disk = {.bytes_per_s = s->kafka.disk_bytes_per_s / slower}, .alive = true};
    }
    for (size_t i = 0; i < logs; i++) {
        partition *log = &k->partitions[i];
        log->head = log->tail = NONE;
        log->leader = (uint32_t)(i % brokers);
        for (size_t r = 0; r < s->kafka.replication_factor; r++) log->replicas |= UINT32_C(1) << ((i + r) % brokers);
        log->in_sync = log->replicas;
    }
    return LS_OK;
}

static void release(kafka *k)
{
    for (uint32_t i = 0; k->partitions != NULL && i < k->logs; i++) ls_free(k->partitions[i].log);
    ls_free(k->partitions);
    ls_free(k->producers);
    ls_free(k->connections);
    ls_free(k->collecting);
    ls_free(k->brokers);
    ls_free(k->pairs);
    ls_free(k->ends);
    ls_free(k->caught_up_ns);
    ls_free(k->fetching);
    ls_free(k->nodes);
    pool_close(&k->globals);
    pool_close(&k->batches);
    pool_close(&k->records);
    ls_histogram_clear(&k->delay);
    ls_histogram_clear(&k->fetch);
    ls_engine_free(k->engine);
}

static ls_result refuse(const ls_scenario *s, ls_error *error)
{
    if (s->kafka.brokers == 0 || s->kafka.brokers > 32 || s->kafka.replication_factor == 0 || s->kafka.replication_factor > s->kafka.brokers) {
        return ls_fail(error, LS_ERROR_INVALID, "kafka: %llu brokers (1 to 32) cannot hold %llu replicas (1 to the number of brokers)",
                       (unsigned long long)s->kafka.brokers, (unsigned long long)s->kafka.replication_factor);
    }
    if (s->kafka.acks == 0 && s->kafka.min_insync_replicas > s->kafka.replication_factor) {
        return ls_fail(error, LS_ERROR_INVALID, "kafka.min_insync_replicas is %llu, more than the %llu replicas there are: nothing could be acknowledged",
                       (unsigned long long)s->kafka.min_insync_replicas, (unsigned long long)s->kafka.replication_factor);
    }
    if (s->batches.law > LS_ARRIVAL_CLOSED) return ls_fail(error, LS_ERROR_INVALID, "world 'kafka' knows batches.law poisson, regular and closed");
    if (s->warm_up_s < 0) return ls_fail(error, LS_ERROR_INVALID, "world 'kafka' needs warm_up_s of 0 or more, it does not find it by itself");
    if (s->producers.count >= NONE || s->kafka.partitions == 0 || s->kafka.max_in_flight == 0 || s->trainer.ranks_per_node == 0 ||
        s->batches.data_parallel == 0 || s->batches.context_parallel == 0 || s->upload.backlog_batches == 0) {
        return ls_fail(error, LS_ERROR_INVALID, "world 'kafka': partitions, max_in_flight, ranks_per_node, data_parallel, context_parallel and backlog_batches must be above 0");
    }
    uint64_t ranks = s->batches.data_parallel * s->batches.context_parallel;
    if (ranks > 1000000) return ls_fail(error, LS_ERROR_LIMIT, "world 'kafka' takes up to 1000000 ranks, found %llu", (unsigned long long)ranks);
    return LS_OK;
}

ls_result ls_simulate_kafka(const ls_scenario *s, uint64_t seed, uint64_t replication, ls_run_result *result, ls_error *error)
{
    ls_result outcome = refuse(s, error);
    if (outcome != LS_OK) return outcome;
    kafka k = {.s = s, .broker_count = (uint32_t)s->kafka.brokers, .logs = (uint32_t)s->kafka.partitions + 1,
               .ranks = s->batches.data_parallel * s->batches.context_parallel, .half_trip_ns = ls_nanoseconds(s->kafka.rtt_s / 2),
               .from_ns = ls_nanoseconds(s->warm_up_s), .end_ns = ls_nanoseconds(s->warm_up_s + s->duration_s)};
    k.slices = s->kafka.discipline == WHOLE ? 1 : (uint32_t)k.ranks;
    k.globals.size = sizeof(global_batch);
    k.batches.size = sizeof(record_batch);
    k.records.size = sizeof(record);
    ls_histogram_init(&k.delay);
    ls_histogram_init(&k.fetch);
    outcome = prepare(&k, seed, replication);
    if (outcome == LS_OK) outcome = run(&k);
    if (outcome == LS_OK)
        report(&k, result);
    else
        ls_fail(error, outcome, "kafka: %s", ls_result_name(outcome));
    release(&k);
    return outcome;
}
