/* explorer.c - depth-first search over every order of events (see explorer.h).
 *
 * Why effect and reply are one transition. Delivering a reply touches only its machine, and what the machine does about it is to
 * send requests, each of which may be served arbitrarily late. A late reply is thus the same as a prompt one whose consequences
 * arrive late. What could come between is an event of the same machine (a batch, another reply), which commutes to before
 * the effect, for it touches the store only in data objects nobody reads before they are committed; or a crash, and a crash
 * after the effect and before the reply is a crash before both whose put lands later, which is explored.
 *
 * Why a due timer fires at once: all it does is send a request, which again may be served late. The decider tries at once for
 * the same reason. No bound on attempts is needed: an attempt is lost only to another's commit or to a fault, both finite.
 *
 * What a dead producer leaves: its manifest put. Its reads have no effect, and its uploads no reader: their names carry its epoch.
 *
 * An end is a state that no transition but a fault leaves. (A consumer that polls in vain comes back to the same state.)
 */
#include "sim/explorer.h"

#include "manifest/consumer.h"
#include "manifest/invariants.h"
#include "manifest/producer.h"

#include <inttypes.h>
#include <string.h>

#define MACHINES_MAX (LS_EXPLORER_PRODUCERS_MAX + 2 * LS_EXPLORER_FAULTS_MAX + LS_EXPLORER_CONSUMERS_MAX)
#define VERSIONS_MAX 96u
#define REQUESTS_MAX 96u
#define OBJECTS_MAX 96u
#define TRANSITIONS_MAX 640u
#define NOBODY UINT32_MAX /* owner of a request whose reply nobody awaits */
#define CODE_INDEX_BITS 8u

typedef enum move {
    MOVE_SERVE = 1, /* carry out a request and deliver its reply */
    MOVE_BATCH,
    MOVE_STOP,
    MOVE_FAULTS, /* from here on: faults */
    MOVE_DONE_UNKNOWN = MOVE_FAULTS,
    MOVE_NOT_DONE_UNKNOWN,
    MOVE_CONFLICT,
    MOVE_DONE_EXISTS,
    MOVE_LINGER,
    MOVE_LAND, /* a put that nobody awaits takes effect */
    MOVE_CRASH,
    MOVE_ZOMBIE
} move;

typedef struct machine {
    ls_producer producer;
    ls_consumer consumer;
    uint32_t next_batch;
    bool is_consumer;
    bool superseded; /* a later incarnation was started */
    bool dead;
    bool stop_given;
} machine;

typedef struct flight {
    ls_store_request request; /* manifest and known: one reference each */
    uint32_t owner;
} flight;

typedef struct object {
    ls_key key;
    uint64_t size_bytes;
} object;

typedef struct world {
    const ls_explorer_config *config;
    const ls_protocol *protocol;
    ls_invariants checker;
    uint32_t machine_count, version_count, flight_count, object_count;
    uint32_t crashes, zombies, ambiguous, lingering; /* left */
    uint32_t incarnations;
    const ls_manifest *version[VERSIONS_MAX]; /* version[v - 1] */
    flight in_flight[REQUESTS_MAX];
    object objects[OBJECTS_MAX];
    machine machines[MACHINES_MAX];
} world;

/* --- the world as data ---------------------------------------------------------------------------------------------- */

static void try_at_once(const void *parameters, void *state, ls_random *random, const ls_commit_view *view,
                        ls_commit_decision *decision)
{
    (void)parameters;
    (void)state;
    (void)random;
    decision->try_at_ns = view->pending_batches == 0 ? LS_NEVER_NS : view->now_ns;
}

static bool object_exists(void *context, const ls_key *key, uint64_t size_bytes)
{
    const world *w = context;
    for (uint32_t i = 0; i < w->object_count; i++) {
        if (ls_key_compare(&w->objects[i].key, key) == 0) return w->objects[i].size_bytes == size_bytes;
    }
    return false;
}

static void world_free(world *w)
{
    if (w == NULL) return;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        if (w->machines[i].is_consumer) ls_consumer_clear(&w->machines[i].consumer);
        else ls_producer_clear(&w->machines[i].producer);
    }
    for (uint32_t i = 0; i < w->version_count; i++) ls_manifest_release(w->version[i]);
    for (uint32_t i = 0; i < w->flight_count; i++) {
        ls_manifest_release(w->in_flight[i].request.manifest);
        ls_manifest_release(w->in_flight[i].request.known);
    }
    ls_invariants_clear(&w->checker);
    ls_free(w);
}

static const ls_manifest *retained(const ls_manifest *manifest)
{
    return manifest == NULL ? NULL : ls_manifest_retain(manifest);
}

static world *world_copy(const world *from)
{
    world *w = ls_allocate(sizeof *w);
    if (w == NULL) return NULL;
    memcpy(w, from, offsetof(world, version));
    memcpy(w->version, from->version, from->version_count * sizeof w->version[0]);
    memcpy(w->in_flight, from->in_flight, from->flight_count * sizeof w->in_flight[0]);
    memcpy(w->objects, from->objects, from->object_count * sizeof w->objects[0]);
    w->checker.context = w;
    retained(w->checker.head);
    for (uint32_t i = 0; i < w->version_count; i++) retained(w->version[i]);
    for (uint32_t i = 0; i < w->flight_count; i++) {
        retained(w->in_flight[i].request.manifest);
        retained(w->in_flight[i].request.known);
    }
    for (uint32_t i = 0; i < from->machine_count; i++) {
        machine *m = &w->machines[i];
        *m = from->machines[i];
        if (m->is_consumer) {
            retained(m->consumer.known);
            retained(m->consumer.unconfirmed);
        } else if (ls_producer_copy(&from->machines[i].producer, &m->producer) != LS_OK) {
            w->machine_count = i;
            world_free(w);
            return NULL;
        }
    }
    return w;
}

/* --- the hash of a state: what can make a difference, and neither addresses, times nor counters ------------------------ */

typedef struct hash {
    uint64_t a, b;
} hash;

static uint64_t mixed(uint64_t x)
{
    /* the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void add(hash *h, uint64_t value)
{
    h->a = mixed(h->a * UINT64_C(0x9e3779b97f4a7c15) + value + 1);
    h->b = mixed((h->b ^ value) * UINT64_C(0xd6e8feb86659fd93) + UINT64_C(0x632be59bd9b4e019));
}

static void add_manifest(hash *h, const ls_manifest *manifest)
{
    add(h, manifest != NULL);
    if (manifest == NULL) return;
    uint64_t end = ls_manifest_end_step(manifest);
    add(h, ls_manifest_version(manifest));
    add(h, ls_manifest_commit_id(manifest).incarnation);
    add(h, ls_manifest_commit_id(manifest).attempt);
    add(h, end);
    add(h, ls_manifest_trim_step(manifest));
    add(h, ls_manifest_low_watermark(manifest));
    add(h, ls_manifest_chain(manifest, end));
    for (uint32_t i = 0; i < ls_manifest_row_count(manifest); i++) {
        const ls_row *row = ls_manifest_row(manifest, i);
        add(h, row->producer);
        add(h, row->next_source_offset);
        add(h, row->last_version);
        add(h, row->last_commit.incarnation);
        add(h, row->last_commit.attempt);
        add(h, 2 * (uint64_t)row->epoch + row->closed);
    }
}

static void add_search(hash *h, const ls_search *search)
{
    add(h, search->known);
    add(h, search->candidate);
    add(h, search->missing);
    add(h, search->probed);
    add(h, search->stride);
    add(h, search->floor);
    add(h, search->asks_floor);
}

static void add_producer(hash *h, const ls_producer *p)
{
    add(h, p->producer);
    add(h, p->incarnation);
    add(h, p->phase);
    add(h, p->end);
    if (p->phase == LS_PRODUCER_STOPPED) return; /* it says and does nothing any more */
    add_manifest(h, p->known);
    add_manifest(h, p->attempt);
    add(h, p->first_sequence);
    add(h, p->source_begin);
    add(h, p->attempt_number);
    add(h, p->doubtful_version);
    if (p->phase == LS_PRODUCER_FINDING || p->phase == LS_PRODUCER_READING) add_search(h, &p->search);
    add(h, p->epoch);
    add(h, p->slot);
    add(h, p->ring_count);
    add(h, p->ready_count);
    add(h, p->uploads_started);
    add(h, p->uploads_to_repeat);
    add(h, p->attempt_batches);
    add(h, (uint64_t)p->joined | (uint64_t)p->stopping << 1 | (uint64_t)p->settling << 2 |
               (uint64_t)p->confirms_put << 3);
    for (uint32_t i = 0; i < p->ring_count; i++) {
        const ls_batch *batch = &p->batches[(p->first_sequence + i) & (p->ring_capacity - 1)];
        add(h, batch->source_end);
        add(h, batch->size_bytes);
        add(h, batch->state);
    }
}

static void add_consumer(hash *h, const ls_consumer *c)
{
    add_manifest(h, c->known);
    add_manifest(h, c->unconfirmed);
    if (c->finding || c->reading) add_search(h, &c->search);
    add(h, c->cursor);
    add(h, c->fetch_end);
    for (uint64_t s = c->cursor; s < c->fetch_end; s++) {
        const ls_fetch *fetch = &c->fetch[s % LS_CONSUMER_WINDOW_MAX];
        add(h, fetch->state);
        add(h, fetch->entry.producer);
        add(h, fetch->entry.source_begin);
        add(h, fetch->slice.bytes);
    }
    add(h, (uint64_t)c->finding | (uint64_t)c->reading << 1 | (uint64_t)c->confirming << 2 |
               (uint64_t)c->started << 3 | (uint64_t)c->stopped << 4 | (uint64_t)c->stopping << 5);
}

static hash flight_hash(const flight *f)
{
    hash h = {1, 2};
    const ls_store_request *r = &f->request;
    add(&h, f->owner);
    add(&h, (uint64_t)r->operation << 8 | (uint64_t)r->range << 4 | (uint64_t)r->if_absent);
    add(&h, (uint64_t)r->key.kind << 32 | r->key.epoch);
    add(&h, r->key.number);
    add(&h, r->key.sequence);
    add(&h, r->range_bytes);
    add(&h, r->body_bytes);
    add_manifest(&h, r->manifest);
    add_manifest(&h, r->known);
    return h;
}

/* The oldest version whose content anybody may still read: a search only ever goes up from its candidate. */
static uint64_t oldest_read(const world *w)
{
    uint64_t oldest = w->version_count;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        const ls_producer *p = &m->producer;
        const ls_consumer *c = &m->consumer;
        if (m->dead || (m->is_consumer ? c->stopped : p->phase == LS_PRODUCER_STOPPED)) continue;
        bool searches = m->is_consumer ? c->finding || c->reading
                                       : p->phase == LS_PRODUCER_FINDING || p->phase == LS_PRODUCER_READING;
        const ls_search *search = m->is_consumer ? &c->search : &p->search;
        uint64_t version = searches ? search->candidate : ls_manifest_version(m->is_consumer ? c->known : p->known);
        if (version < oldest) oldest = version;
    }
    return oldest == 0 ? 1 : oldest;
}

/* Objects and requests are sets: their hashes are added up, so that their order makes no difference. */
static hash world_hash(const world *w)
{
    hash h = {3, 4}, sum = {0, 0};
    add(&h, (uint64_t)w->crashes << 24 | (uint64_t)w->zombies << 16 | (uint64_t)w->ambiguous << 8 | w->lingering);
    add(&h, w->version_count);
    for (uint64_t v = oldest_read(w); v <= w->version_count; v++) add_manifest(&h, w->version[v - 1]);
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        add(&h, (uint64_t)m->next_batch << 4 | (uint64_t)m->superseded << 1 | (uint64_t)m->dead |
                    (uint64_t)m->stop_given << 2);
        if (m->dead) continue;
        if (m->is_consumer) add_consumer(&h, &m->consumer);
        else add_producer(&h, &m->producer);
    }
    for (uint32_t i = 0; i < w->flight_count; i++) {
        hash f = flight_hash(&w->in_flight[i]);
        sum.a += f.a;
        sum.b += f.b;
    }
    for (uint32_t i = 0; i < w->object_count; i++) {
        hash o = {5, 6};
        add(&o, w->objects[i].key.number);
        add(&o, w->objects[i].key.epoch);
        add(&o, w->objects[i].key.sequence);
        add(&o, w->objects[i].size_bytes);
        sum.a += o.a;
        sum.b += o.b;
    }
    add(&h, sum.a);
    add(&h, sum.b);
    return h;
}

/* --- the machines' actions --------------------------------------------------------------------------------------------- */

static ls_result take_flight(world *w, uint32_t owner, const ls_store_request *request, ls_error *error)
{
    if (w->flight_count == REQUESTS_MAX) {
        ls_manifest_release(request->manifest);
        return ls_fail(error, LS_ERROR_LIMIT, "more than %u requests in flight", REQUESTS_MAX);
    }
    w->in_flight[w->flight_count++] = (flight){*request, owner};
    retained(request->known);
    return LS_OK;
}

static void drop_flight(world *w, uint32_t index)
{
    ls_manifest_release(w->in_flight[index].request.manifest);
    ls_manifest_release(w->in_flight[index].request.known);
    memmove(&w->in_flight[index], &w->in_flight[index + 1], (--w->flight_count - index) * sizeof w->in_flight[0]);
}

static ls_result check_step(const world *w, const ls_step_report *step, ls_error *error)
{
    ls_entry committed;
    if (!ls_manifest_entry(w->checker.head, step->step, &committed)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "a consumer was handed step %" PRIu64 ", which is not committed",
                       step->step);
    }
    if (committed.producer == step->entry.producer && committed.source_begin == step->entry.source_begin &&
        committed.epoch == step->entry.epoch && committed.sequence == step->entry.sequence) {
        return LS_OK;
    }
    return ls_fail(error, LS_ERROR_VIOLATED,
                   "a consumer was handed producer %" PRIu64 " offset %" PRIu64 " as step %" PRIu64
                   ", committed is producer %" PRIu64 " offset %" PRIu64,
                   step->entry.producer, step->entry.source_begin, step->step, committed.producer,
                   committed.source_begin);
}

/* Another incarnation of that producer runs. (Whichever joined last owns the row; it need not be the one started last.) */
static bool has_live_twin(const world *w, uint32_t index)
{
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        bool twin = i != index && !m->is_consumer && m->producer.producer == w->machines[index].producer.producer;
        if (twin && !m->dead && m->producer.end != LS_PRODUCER_FENCED) return true;
    }
    return false;
}

static ls_result act(world *w, uint32_t index, const ls_action *action, uint64_t *next_step, ls_error *error)
{
    machine *m = &w->machines[index];
    switch (action->kind) {
    case LS_ACTION_REQUEST: return take_flight(w, index, &action->request, error);
    case LS_ACTION_PUBLISHED:
        return ls_invariants_acknowledged(&w->checker, m->producer.producer, action->published.source_end, error);
    case LS_ACTION_JOINED: m->next_batch = (uint32_t)action->source_offset; return LS_OK;
    case LS_ACTION_FENCED:
        if (has_live_twin(w, index)) return LS_OK;
        return ls_fail(error, LS_ERROR_VIOLATED, "producer %" PRIu64 " was fenced by nobody alive",
                       m->producer.producer);
    case LS_ACTION_FAILED: return ls_fail(error, LS_ERROR_VIOLATED, "machine %u failed without a cause", index);
    case LS_ACTION_STEP:
        if (action->step.step != (*next_step)++) {
            return ls_fail(error, LS_ERROR_VIOLATED, "a consumer was handed step %" PRIu64 " out of order",
                           action->step.step);
        }
        return check_step(w, &action->step, error);
    case LS_ACTION_BEHIND:
        return ls_fail(error, LS_ERROR_VIOLATED, "a consumer was told that data is gone; nothing was ever deleted");
    case LS_ACTION_CHECKPOINTED:
    case LS_ACTION_GAVE_UP:
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_WAKE:
    case LS_ACTION_ATTEMPT:
    case LS_ACTION_FINISHED: break;
    }
    return LS_OK;
}

static ls_result step(world *w, uint32_t index, const ls_event *event, ls_error *error)
{
    machine *m = &w->machines[index];
    ls_event next = *event;
    for (;;) {
        ls_actions actions;
        uint64_t next_step = m->consumer.cursor;
        ls_result result = m->is_consumer ? ls_consumer_step(&m->consumer, &next, &actions)
                                          : ls_producer_step(&m->producer, &next, &actions);
        if (result == LS_ERROR_INVALID) {
            return ls_fail(error, LS_ERROR_VIOLATED, "machine %u made a commit, or was given an event, that makes no "
                           "sense in its state", index);
        }
        if (result != LS_OK) return ls_fail(error, result, "out of memory");
        for (uint32_t i = 0; i < actions.count; i++) {
            ls_result acted = result == LS_OK ? act(w, index, &actions.item[i], &next_step, error) : LS_OK;
            if (result != LS_OK && actions.item[i].kind == LS_ACTION_REQUEST) {
                ls_manifest_release(actions.item[i].request.manifest);
            }
            if (acted != LS_OK) result = acted;
        }
        if (result != LS_OK) return result;
        int64_t wake_ns = m->is_consumer ? m->consumer.wake_ns : m->producer.wake_ns;
        if (wake_ns > 0) return LS_OK;
        next = (ls_event){.kind = LS_EVENT_TIMER};
    }
}

static ls_result start_producer(world *w, uint64_t id, ls_error *error)
{
    if (w->machine_count == MACHINES_MAX) return ls_fail(error, LS_ERROR_LIMIT, "too many machines");
    uint32_t index = w->machine_count++;
    machine *m = &w->machines[index];
    memset(m, 0, sizeof *m);
    ls_producer_init(&m->producer, w->protocol, id, ++w->incarnations, ls_random_open(1, 0, LS_RANDOM_POLICY, id));
    return step(w, index, &(ls_event){.kind = LS_EVENT_START}, error);
}

static ls_result start_consumer(world *w, ls_error *error)
{
    uint32_t index = w->machine_count;
    machine *m = &w->machines[index];
    memset(m, 0, sizeof *m);
    m->is_consumer = true;
    ls_consumer_config config = {.window = 2, .follow = true};
    if (ls_consumer_init(&m->consumer, w->protocol, &config, 0) != LS_OK) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    w->machine_count++;
    return step(w, index, &(ls_event){.kind = LS_EVENT_START}, error);
}

/* --- the store ----------------------------------------------------------------------------------------------------------- */

static ls_result put_effect(world *w, ls_store_request *request, ls_reply_status *status, ls_error *error)
{
    *status = LS_REPLY_OK;
    if (request->key.kind == LS_OBJECT_DATA) {
        for (uint32_t i = 0; i < w->object_count; i++) {
            if (ls_key_compare(&w->objects[i].key, &request->key) == 0) *status = LS_REPLY_EXISTS;
        }
        if (*status == LS_REPLY_EXISTS) return LS_OK;
        if (w->object_count == OBJECTS_MAX) return ls_fail(error, LS_ERROR_LIMIT, "more than %u objects", OBJECTS_MAX);
        w->objects[w->object_count++] = (object){request->key, request->body_bytes};
        return LS_OK;
    }
    if (request->key.number <= w->version_count) {
        *status = LS_REPLY_EXISTS;
        return LS_OK;
    }
    if (w->version_count == VERSIONS_MAX) return ls_fail(error, LS_ERROR_LIMIT, "more than %u versions", VERSIONS_MAX);
    ls_result result = ls_invariants_created(&w->checker, request->manifest, error);
    if (result != LS_OK) return result;
    w->version[w->version_count++] = request->manifest;
    request->manifest = NULL;
    return LS_OK;
}

static void list(const world *w, const ls_store_request *request, ls_store_reply *reply)
{
    uint64_t after = request->key.number;
    if (request->key.kind != LS_OBJECT_MANIFEST || after >= w->version_count) return;
    reply->list_count = w->version_count - after;
    if (reply->list_count > request->list_limit) {
        reply->list_count = request->list_limit;
        reply->list_truncated = true;
    }
    reply->list_last = ls_key_manifest(after + reply->list_count);
}

static void get_manifest(const world *w, const ls_store_request *request, ls_store_reply *reply)
{
    uint64_t version = request->key.number;
    if (version == 0 || version > w->version_count) {
        reply->status = LS_REPLY_NOT_FOUND;
        return;
    }
    if (request->operation == LS_HEAD) return;
    const ls_manifest *manifest = w->version[version - 1];
    uint64_t needed = request->range == LS_RANGE_WHOLE
                          ? 0
                          : ls_manifest_tail_bytes(manifest, ls_manifest_end_step(request->known));
    reply->needed_bytes = needed;
    if (request->range == LS_RANGE_WHOLE || request->range_bytes >= needed) reply->manifest = retained(manifest);
}

static void get_data(const world *w, const ls_store_request *request, ls_store_reply *reply)
{
    reply->status = LS_REPLY_NOT_FOUND;
    for (uint32_t i = 0; i < w->object_count; i++) {
        if (ls_key_compare(&w->objects[i].key, &request->key) == 0) reply->status = LS_REPLY_OK;
    }
    if (reply->status == LS_REPLY_OK && request->range == LS_RANGE_SUFFIX) {
        reply->slice = request->slice;
        reply->slice.bytes = 1;
    }
}

static ls_result effect(world *w, ls_store_request *request, ls_store_reply *reply, ls_error *error)
{
    if (request->operation == LS_PUT) return put_effect(w, request, &reply->status, error);
    if (request->operation == LS_LIST) list(w, request, reply);
    else if (request->key.kind == LS_OBJECT_DATA) get_data(w, request, reply);
    else get_manifest(w, request, reply);
    return LS_OK;
}

/* --- transitions ------------------------------------------------------------------------------------------------------- */

static bool may_be(const world *w, move kind, const flight *f)
{
    bool put = f->request.operation == LS_PUT, manifest = f->request.key.kind == LS_OBJECT_MANIFEST;
    if (f->owner == NOBODY) return kind == MOVE_LAND;
    switch (kind) {
    case MOVE_SERVE: return true;
    case MOVE_DONE_UNKNOWN: return put && w->ambiguous > 0;
    case MOVE_NOT_DONE_UNKNOWN: return w->ambiguous > 0;
    case MOVE_CONFLICT: return put && manifest && w->ambiguous > 0;
    case MOVE_DONE_EXISTS: return put && manifest && w->ambiguous > 0 && f->request.key.number > w->version_count;
    case MOVE_LINGER: return put && manifest && w->lingering > 0;
    default: return false;
    }
}

static bool may_do(const world *w, move kind, const machine *m)
{
    if (m->is_consumer || m->dead || m->producer.phase == LS_PRODUCER_STOPPED) return false;
    bool all = m->next_batch == w->config->batches;
    switch (kind) {
    case MOVE_BATCH: return !all && ls_producer_has_room(&m->producer);
    case MOVE_STOP: return all && m->producer.joined && !m->stop_given;
    case MOVE_CRASH: return w->crashes > 0 && !m->superseded;
    case MOVE_ZOMBIE: return w->zombies > 0 && !m->superseded;
    default: return false;
    }
}

static bool is_of_request(move kind)
{
    return kind == MOVE_SERVE || (kind >= MOVE_DONE_UNKNOWN && kind <= MOVE_LAND);
}

/* All that can happen now, faults last. */
static uint32_t enumerate(const world *w, uint32_t *codes)
{
    uint32_t count = 0;
    for (move kind = MOVE_SERVE; kind <= MOVE_ZOMBIE; kind++) {
        uint32_t limit = is_of_request(kind) ? w->flight_count : w->machine_count;
        for (uint32_t i = 0; i < limit && count < TRANSITIONS_MAX; i++) {
            bool may = is_of_request(kind) ? may_be(w, kind, &w->in_flight[i]) : may_do(w, kind, &w->machines[i]);
            if (may) codes[count++] = (uint32_t)kind << CODE_INDEX_BITS | i;
        }
    }
    return count;
}

static move move_of(uint32_t code)
{
    return (move)(code >> CODE_INDEX_BITS);
}

static uint32_t index_of(uint32_t code)
{
    return code & ((1u << CODE_INDEX_BITS) - 1);
}

static bool possible(const world *w, uint32_t code)
{
    uint32_t index = index_of(code);
    if (is_of_request(move_of(code))) {
        return index < w->flight_count && may_be(w, move_of(code), &w->in_flight[index]);
    }
    return index < w->machine_count && may_do(w, move_of(code), &w->machines[index]);
}

static ls_result serve(world *w, move kind, uint32_t index, ls_error *error)
{
    flight f = w->in_flight[index];
    retained(f.request.manifest);
    retained(f.request.known);
    drop_flight(w, index);
    ls_store_reply reply = {.status = LS_REPLY_OK, .tag = f.request.tag};
    ls_result result = LS_OK;
    if (kind == MOVE_SERVE || kind == MOVE_DONE_UNKNOWN || kind == MOVE_DONE_EXISTS || kind == MOVE_LAND) {
        result = effect(w, &f.request, &reply, error);
    }
    w->ambiguous -= kind >= MOVE_DONE_UNKNOWN && kind <= MOVE_DONE_EXISTS;
    if (kind == MOVE_DONE_UNKNOWN || kind == MOVE_NOT_DONE_UNKNOWN || kind == MOVE_LINGER) {
        reply.status = LS_REPLY_UNKNOWN_OUTCOME;
    }
    if (kind == MOVE_CONFLICT) reply.status = LS_REPLY_CONFLICT_RETRY;
    if (kind == MOVE_DONE_EXISTS) reply.status = LS_REPLY_EXISTS;
    uint32_t owner = f.owner;
    if (kind == MOVE_LINGER && result == LS_OK) {
        w->lingering--;
        result = take_flight(w, NOBODY, &f.request, error);
        f.request.manifest = NULL;
    }
    if (result == LS_OK && owner != NOBODY) {
        result = step(w, owner, &(ls_event){.kind = LS_EVENT_REPLY, .reply = &reply}, error);
    } else {
        ls_manifest_release(reply.manifest);
    }
    ls_manifest_release(f.request.manifest);
    ls_manifest_release(f.request.known);
    return result;
}

static ls_result give_batch(world *w, uint32_t index, ls_error *error)
{
    machine *m = &w->machines[index];
    uint64_t size = 1000 + 100 * m->producer.producer + m->next_batch; /* tells one batch from any other */
    m->next_batch++;
    return step(w, index, &(ls_event){.kind = LS_EVENT_BATCH, .batch_bytes = size, .batch_source_count = 1,
                                      .batch_footer_bytes = 64}, error);
}

static ls_result crash(world *w, uint32_t index, ls_error *error)
{
    machine *m = &w->machines[index];
    uint64_t id = m->producer.producer;
    m->superseded = m->dead = true;
    w->crashes--;
    for (uint32_t i = w->flight_count; i-- > 0;) {
        flight *f = &w->in_flight[i];
        if (f->owner != index) continue;
        f->owner = NOBODY;
        if (f->request.operation != LS_PUT || f->request.key.kind != LS_OBJECT_MANIFEST) drop_flight(w, i);
    }
    return start_producer(w, id, error);
}

static ls_result carry_out(world *w, uint32_t code, ls_error *error)
{
    uint32_t index = index_of(code);
    machine *m = &w->machines[index];
    switch (move_of(code)) {
    case MOVE_BATCH: return give_batch(w, index, error);
    case MOVE_STOP: m->stop_given = true; return step(w, index, &(ls_event){.kind = LS_EVENT_STOP}, error);
    case MOVE_CRASH: return crash(w, index, error);
    case MOVE_ZOMBIE:
        w->zombies--;
        m->superseded = true;
        return start_producer(w, m->producer.producer, error);
    default: return serve(w, move_of(code), index, error);
    }
}

/* Nothing moves any more: is everything done? */
static ls_result check_end(const world *w, ls_error *error)
{
    const ls_manifest *head = w->checker.head;
    uint64_t total = (uint64_t)w->config->producers * w->config->batches;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        if (m->is_consumer && m->consumer.cursor != total) {
            return ls_fail(error, LS_ERROR_VIOLATED, "nothing moves, and a consumer stands at step %" PRIu64 " of %"
                           PRIu64, m->consumer.cursor, total);
        }
        bool done = m->producer.end == LS_PRODUCER_FINISHED ||
                    (m->producer.end == LS_PRODUCER_FENCED && has_live_twin(w, i));
        if (m->is_consumer || m->dead || done) continue;
        return ls_fail(error, LS_ERROR_VIOLATED, "nothing moves, and producer %" PRIu64 " has not finished",
                       m->producer.producer);
    }
    if (head == NULL || ls_manifest_end_step(head) == total) return LS_OK;
    return ls_fail(error, LS_ERROR_VIOLATED, "everybody has finished, and %" PRIu64 " of %" PRIu64
                   " batches are published", ls_manifest_end_step(head), total);
}

/* --- the table of states ---------------------------------------------------------------------------------------------- */

typedef struct table {
    hash *slot; /* both words zero: free */
    uint64_t capacity, count;
} table;

static hash *table_find(const table *t, hash h)
{
    uint64_t i = h.a & (t->capacity - 1);
    while ((t->slot[i].a | t->slot[i].b) != 0 && (t->slot[i].a != h.a || t->slot[i].b != h.b)) {
        i = (i + 1) & (t->capacity - 1);
    }
    return &t->slot[i];
}

static ls_result table_add(table *t, hash h, bool *is_new)
{
    if (2 * t->count >= t->capacity) {
        table grown = {.capacity = t->capacity == 0 ? 4096 : 2 * t->capacity, .count = t->count};
        grown.slot = ls_allocate_array(grown.capacity, sizeof *grown.slot);
        if (grown.slot == NULL) return LS_ERROR_MEMORY;
        for (uint64_t i = 0; i < t->capacity; i++) {
            if ((t->slot[i].a | t->slot[i].b) != 0) *table_find(&grown, t->slot[i]) = t->slot[i];
        }
        ls_free(t->slot);
        *t = grown;
    }
    hash *slot = table_find(t, h);
    *is_new = (slot->a | slot->b) == 0;
    if (*is_new) {
        *slot = h;
        t->count++;
    }
    return LS_OK;
}

/* --- the search --------------------------------------------------------------------------------------------------------- */

typedef struct frame {
    world *world;
    hash hash;
    uint32_t *codes;
    uint32_t count, next;
    bool moved; /* something but a fault leads elsewhere */
} frame;

typedef struct search {
    table states;
    frame *stack;
    uint32_t depth, capacity;
} search;

static void pop(search *s)
{
    frame *top = &s->stack[--s->depth];
    world_free(top->world);
    ls_free(top->codes);
}

/* Takes the world. */
static ls_result push(search *s, world *w, hash h)
{
    if (s->depth == s->capacity) {
        uint32_t capacity = s->capacity == 0 ? 64 : 2 * s->capacity;
        frame *grown = ls_reallocate(s->stack, capacity * sizeof *grown);
        if (grown == NULL) goto fail;
        s->stack = grown;
        s->capacity = capacity;
    }
    uint32_t codes[TRANSITIONS_MAX];
    frame f = {.world = w, .hash = h, .count = enumerate(w, codes)};
    if (f.count > 0) {
        f.codes = ls_allocate(f.count * sizeof *codes);
        if (f.codes == NULL) goto fail;
        memcpy(f.codes, codes, f.count * sizeof *codes);
    }
    s->stack[s->depth++] = f;
    return LS_OK;
fail:
    world_free(w);
    return LS_ERROR_MEMORY;
}

static ls_protocol protocol_of(const ls_explorer_config *config)
{
    ls_protocol protocol = ls_protocol_default();
    protocol.layout = config->layout;
    protocol.discovery = config->discovery;
    protocol.decider = (ls_decider){.decide = try_at_once};
    protocol.upload_retry_base_ns = protocol.upload_retry_cap_ns = 0;
    return protocol;
}

static ls_result world_new(const ls_explorer_config *config, const ls_protocol *protocol, world **made, ls_error *error)
{
    bool fits = config->producers >= 1 && config->producers <= LS_EXPLORER_PRODUCERS_MAX &&
                config->batches <= LS_EXPLORER_BATCHES_MAX && config->consumers <= LS_EXPLORER_CONSUMERS_MAX &&
                config->crashes <= LS_EXPLORER_FAULTS_MAX && config->zombies <= LS_EXPLORER_FAULTS_MAX &&
                config->ambiguous <= LS_EXPLORER_FAULTS_MAX && config->lingering <= LS_EXPLORER_FAULTS_MAX;
    *made = NULL;
    if (!fits) {
        return ls_fail(error, LS_ERROR_INVALID, "a world has 1 to %u producers, at most %u batches each, %u consumers and "
                       "%u faults of a kind", LS_EXPLORER_PRODUCERS_MAX, LS_EXPLORER_BATCHES_MAX,
                       LS_EXPLORER_CONSUMERS_MAX, LS_EXPLORER_FAULTS_MAX);
    }
    world *w = ls_allocate_array(1, sizeof *w);
    if (w == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    w->config = config;
    w->protocol = protocol;
    w->crashes = config->crashes;
    w->zombies = config->zombies;
    w->ambiguous = config->ambiguous;
    w->lingering = config->lingering;
    ls_invariants_init(&w->checker, LS_CHECK_ALL, object_exists, w);
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < config->producers && result == LS_OK; i++) result = start_producer(w, i + 1, error);
    for (uint32_t i = 0; i < config->consumers && result == LS_OK; i++) result = start_consumer(w, error);
    if (result == LS_OK) *made = w;
    else world_free(w);
    return result;
}

/* The path to the top frame; each frame's last taken transition. */
static ls_result keep_path(const search *s, ls_explorer_result *result)
{
    result->path = ls_allocate_array(s->depth, sizeof *result->path);
    if (result->path == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < s->depth; i++) {
        const frame *f = &s->stack[i];
        if (f->next > 0 && f->next <= f->count) result->path[result->path_length++] = f->codes[f->next - 1];
    }
    result->violated = true;
    result->depth = result->path_length;
    return LS_OK;
}

/* One transition, or one step back. */
static ls_result advance(search *s, ls_explorer_result *result, ls_error *error)
{
    frame *top = &s->stack[s->depth - 1];
    if (top->next == top->count) {
        if (!top->moved) {
            result->ends++;
            if (check_end(top->world, &result->violation) != LS_OK) {
                top->next = 0; /* the path ends before this state's transitions */
                return keep_path(s, result);
            }
        }
        pop(s);
        return LS_OK;
    }
    uint32_t code = top->codes[top->next++];
    world *w = world_copy(top->world);
    if (w == NULL) return LS_ERROR_MEMORY;
    result->transitions++;
    ls_result carried = carry_out(w, code, &result->violation);
    if (carried != LS_OK) {
        world_free(w);
        if (carried == LS_ERROR_VIOLATED) return keep_path(s, result);
        return ls_fail(error, carried, "%s", result->violation.text);
    }
    hash h = world_hash(w);
    if (move_of(code) < MOVE_FAULTS && (h.a != top->hash.a || h.b != top->hash.b)) top->moved = true;
    bool is_new;
    ls_result added = table_add(&s->states, h, &is_new);
    if (added == LS_OK && is_new) return push(s, w, h);
    world_free(w);
    return added;
}

ls_explorer_config ls_explorer_default(void)
{
    return (ls_explorer_config){.producers = 2, .batches = 2};
}

ls_result ls_explore(const ls_explorer_config *config, ls_explorer_progress progress, void *context,
                     ls_explorer_result *result, ls_error *error)
{
    memset(result, 0, sizeof *result);
    ls_protocol protocol = protocol_of(config);
    search s = {0};
    world *first;
    ls_result done = world_new(config, &protocol, &first, error);
    if (done != LS_OK) return done;
    bool is_new;
    hash h = world_hash(first);
    done = table_add(&s.states, h, &is_new);
    if (done == LS_OK) done = push(&s, first, h);
    else world_free(first);
    while (done == LS_OK && s.depth > 0 && !result->violated) {
        uint64_t before = s.states.count;
        if (s.depth > result->depth) result->depth = s.depth;
        if (config->states_max != 0 && before >= config->states_max) {
            done = ls_fail(error, LS_ERROR_LIMIT, "the limit of %" PRIu64 " states is reached", before);
            break;
        }
        done = advance(&s, result, error);
        result->states = s.states.count;
        if (progress != NULL && before != s.states.count && (s.states.count & 0xffff) == 0) progress(context, result);
    }
    if (done == LS_ERROR_MEMORY) ls_fail(error, done, "out of memory after %" PRIu64 " states", s.states.count);
    result->states = s.states.count;
    result->exhausted = done == LS_OK && !result->violated;
    while (s.depth > 0) pop(&s);
    ls_free(s.stack);
    ls_free(s.states.slot);
    return done;
}

void ls_explorer_result_clear(ls_explorer_result *result)
{
    ls_free(result->path);
    memset(result, 0, sizeof *result);
}

/* --- telling and repeating a path ---------------------------------------------------------------------------------------- */

static const char *const move_text[] = {
    [MOVE_SERVE] = "serve", [MOVE_BATCH] = "batch", [MOVE_STOP] = "stop",
    [MOVE_DONE_UNKNOWN] = "done-unknown", [MOVE_NOT_DONE_UNKNOWN] = "not-done-unknown", [MOVE_CONFLICT] = "conflict",
    [MOVE_DONE_EXISTS] = "done-exists", [MOVE_LINGER] = "linger", [MOVE_LAND] = "land", [MOVE_CRASH] = "crash",
    [MOVE_ZOMBIE] = "zombie"};

static void narrate(const world *w, uint32_t number, uint32_t code, FILE *out)
{
    uint32_t index = index_of(code);
    fprintf(out, "%4u  %-16s ", number, move_text[move_of(code)]);
    uint32_t who = is_of_request(move_of(code)) ? w->in_flight[index].owner : index;
    if (who == NOBODY) fputs("(nobody waits)", out);
    else if (w->machines[who].is_consumer) fprintf(out, "consumer %u", who);
    else fprintf(out, "producer %" PRIu64 " incarnation %" PRIu64, w->machines[who].producer.producer,
                 w->machines[who].producer.incarnation);
    if (is_of_request(move_of(code))) {
        char key[LS_KEY_TEXT_BYTES] = "";
        const ls_store_request *request = &w->in_flight[index].request;
        ls_key_format(&request->key, key);
        fprintf(out, ": %s %s%s", ls_operation_name(request->operation),
                request->operation == LS_LIST ? "after " : "", key);
    } else if (move_of(code) == MOVE_BATCH) {
        fprintf(out, ": offset %u", w->machines[index].next_batch);
    }
    fputc('\n', out);
}

ls_result ls_explorer_replay(const ls_explorer_config *config, const uint32_t *path, uint32_t length, FILE *out,
                             ls_error *error)
{
    ls_protocol protocol = protocol_of(config);
    world *w;
    ls_result result = world_new(config, &protocol, &w, error);
    if (result != LS_OK) return result;
    for (uint32_t i = 0; i < length && result == LS_OK; i++) {
        if (!possible(w, path[i])) {
            result = ls_fail(error, LS_ERROR_INVALID, "transition %u cannot happen in that state", i + 1);
            break;
        }
        if (out != NULL) narrate(w, i + 1, path[i], out);
        result = carry_out(w, path[i], error);
    }
    uint32_t codes[TRANSITIONS_MAX];
    uint32_t count = result == LS_OK ? enumerate(w, codes) : 0;
    bool moves = false;
    hash before = result == LS_OK ? world_hash(w) : (hash){0, 0};
    for (uint32_t i = 0; i < count && move_of(codes[i]) < MOVE_FAULTS && !moves; i++) {
        world *next = world_copy(w);
        ls_error ignored;
        moves = next == NULL || carry_out(next, codes[i], &ignored) != LS_OK;
        hash after = moves ? before : world_hash(next);
        moves = moves || after.a != before.a || after.b != before.b;
        world_free(next);
    }
    if (result == LS_OK && !moves) result = check_end(w, error);
    world_free(w);
    return result;
}

#define HEADER "lakestream-explore-1"

ls_result ls_explorer_write(const ls_explorer_config *config, const ls_explorer_result *result, FILE *file,
                            ls_error *error)
{
    fprintf(file, HEADER " %u %u %u %u %u %u %u %u %u\n", config->producers, config->batches, config->consumers,
            config->crashes, config->zombies, config->ambiguous, config->lingering, (unsigned)config->layout,
            (unsigned)config->discovery);
    for (uint32_t i = 0; i < result->path_length; i++) {
        fprintf(file, "%s %u\n", move_text[move_of(result->path[i])], index_of(result->path[i]));
    }
    if (fflush(file) != 0 || ferror(file)) return ls_fail(error, LS_ERROR_IO, "the path cannot be written");
    return LS_OK;
}

static ls_result read_move(const char *line, uint32_t *code)
{
    char word[32];
    unsigned index;
    if (sscanf(line, "%31s %u", word, &index) != 2 || index >= 1u << CODE_INDEX_BITS) return LS_ERROR_INVALID;
    for (uint32_t kind = MOVE_SERVE; kind <= MOVE_ZOMBIE; kind++) {
        if (strcmp(word, move_text[kind]) != 0) continue;
        *code = kind << CODE_INDEX_BITS | index;
        return LS_OK;
    }
    return LS_ERROR_INVALID;
}

ls_result ls_explorer_read(FILE *file, ls_explorer_config *config, uint32_t **path, uint32_t *length, ls_error *error)
{
    char line[256];
    unsigned layout = 0, discovery = 0;
    uint32_t capacity = 0, number = 1;
    *path = NULL;
    *length = 0;
    *config = ls_explorer_default();
    bool good = fgets(line, sizeof line, file) != NULL &&
                sscanf(line, HEADER " %u %u %u %u %u %u %u %u %u", &config->producers, &config->batches,
                       &config->consumers, &config->crashes, &config->zombies, &config->ambiguous, &config->lingering,
                       &layout, &discovery) == 9 &&
                layout <= LS_LAYOUT_FULL_TAIL && discovery <= LS_DISCOVERY_GALLOP;
    config->layout = (ls_layout)layout;
    config->discovery = (ls_discovery)discovery;
    while (good && fgets(line, sizeof line, file) != NULL) {
        number++;
        if (*length == capacity) {
            capacity = capacity == 0 ? 64 : 2 * capacity;
            uint32_t *grown = ls_reallocate(*path, capacity * sizeof *grown);
            if (grown == NULL) {
                ls_free(*path);
                *path = NULL;
                return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
            }
            *path = grown;
        }
        good = read_move(line, &(*path)[*length]) == LS_OK;
        *length += good;
    }
    if (good) return LS_OK;
    ls_free(*path);
    *path = NULL;
    return ls_fail(error, LS_ERROR_INVALID, "line %u is not of an explorer's replay file", number);
}
