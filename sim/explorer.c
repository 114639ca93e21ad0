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
 * (Where producers help others, they have, until the epoch is over; there they may land too.)
 *
 * Reduction (config.reduced). Some requests are served as soon as they are in flight, before anything else may happen (their own faults
 * are still tried):
 *   an upload           nobody looks at a data object before a version names it (no list of data objects in the world), and that a batch's
 *                       upload takes long is the same as that the batch came late. What is given up is told plainly: STOP, or a crash, while an
 *                       upload is in flight. Worlds without --reduced have those.
 *   a get of a version, or of a batch, that exists, in worlds where nothing is deleted: its answer is fixed already. The machine
 *                       whose request it is can be given nothing in between but a batch or STOP, which commute with the list or probe
 *                       before it just as well, or a crash, which is the same as one before that list.
 *   a put of a version whose name is taken for ever: it is lost, and the search that follows may be served at any later point.
 * A put that nobody awaits and whose name is taken for ever is forgotten.
 * And of several deletes of one reclaimer in flight the oldest goes first: they have different names, and a reader sees at most one of them
 * at a time. tests/explore/test_explore.c holds the reduced search to the whole one: same verdict, and the planted bugs are found.
 *
 * What is forgotten (config.reduced, whole versions found by list, no late winner under a deleted name). The state table then describes a
 * state by what can still make a difference:
 *   an older version that a machine holds   the next search replaces it by the newest one, which a list after any older version finds alike
 *   all versions but the newest one         nobody reads them but who has asked for one already; that one is described
 *   version numbers                         count from the newest one (not where floors name them)
 *   attempt numbers                         a row's is the last of the incarnation that made it, or is not: nothing else is asked
 *   entries below every live consumer's cursor, where nobody deletes or goes back    what they were was checked when they were committed
 *   a lost attempt, a dead machine, a finished producer                              wholly
 * That a machine's copy belongs to the history is seen by its address: versions are shared objects. What does not belong is described whole.
 *
 * Reclaimers. Each makes one round. A version's name that was deleted may be won again by a put that lingered; what it holds is then no
 * part of the history, and nobody may build on it. A delete is judged when it takes effect: never the newest version, never a batch
 * that the newest version names at or above the watermark, nor one at or above a checkpoint that somebody was told is durable and the
 * rule keeps. That no version names an orphan after it was deleted is I6. A consumer may be told that it is behind only when nothing
 * protected it. The clocks of reclaimers and checkpoint makers jump to their own last wish: what waits does so for no reason here.
 *
 * An end is a state that no transition but a fault leaves. (A consumer's look for a version that is not there yet waits for it: it
 * would only look again.) A world in which no path ends breaks a promise too.
 */
#include "sim/explorer.h"

#include "manifest/consumer.h"
#include "manifest/invariants.h"
#include "manifest/producer.h"
#include "manifest/reclaimer.h"

#include <inttypes.h>
#include <string.h>

#define CHECKPOINTS_MAX (LS_EXPLORER_CHECKPOINTS_MAX + LS_EXPLORER_REWINDS_MAX)
#define MACHINES_MAX                                                                                                 \
    (LS_EXPLORER_PRODUCERS_MAX + 2 * LS_EXPLORER_FAULTS_MAX + LS_EXPLORER_CONSUMERS_MAX + LS_EXPLORER_REWINDS_MAX +       \
     LS_EXPLORER_RECLAIMERS_MAX + CHECKPOINTS_MAX)
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
    MOVE_CHECKPOINT, /* a consumer's trainer begins to save where it stands */
    MOVE_REWIND,     /* it begins to go back to what it saved first */
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

typedef enum machine_kind { PRODUCER = 0, CONSUMER, RECLAIMER, CHECKPOINTER } machine_kind;

typedef struct machine {
    union {
        ls_producer producer;
        ls_consumer consumer;
        ls_reclaimer reclaimer;
        ls_checkpointer checkpointer;
    };
    machine_kind kind;
    uint32_t next_batch;
    uint32_t master;      /* checkpointer: the consumer that it works for */
    uint64_t saved;       /* consumer: it saved where it stood when it stood here */
    bool pinned;          /* consumer: it went back, and what it reads is pinned */
    bool ended;           /* consumer: it was told that it is behind */
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

/* A checkpoint that somebody was told is durable. */
typedef struct promise {
    uint64_t number, step;
    uint32_t kind;
} promise;

typedef struct world {
    const ls_explorer_config *config;
    const ls_protocol *protocol;
    ls_invariants checker;
    uint32_t machine_count, version_count, flight_count, object_count;
    uint32_t crashes, zombies, ambiguous, lingering, checkpoints, rewinds; /* left */
    uint32_t incarnations;
    uint32_t promise_count;
    uint64_t newest_auto; /* the greatest number of an auto checkpoint that ever was durable */
    promise promises[CHECKPOINTS_MAX];
    bool gone[VERSIONS_MAX];  /* version v's object was deleted */
    bool after[VERSIONS_MAX]; /* version[v - 1] is what a late winner put under a deleted name: no part of the history */
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

static void machine_clear(machine *m)
{
    switch (m->kind) {
    case PRODUCER: ls_producer_clear(&m->producer); break;
    case CONSUMER: ls_consumer_clear(&m->consumer); break;
    case RECLAIMER: ls_reclaimer_clear(&m->reclaimer); break;
    case CHECKPOINTER: ls_checkpointer_clear(&m->checkpointer); break;
    }
}

static void world_free(world *w)
{
    if (w == NULL) return;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        machine_clear(&w->machines[i]);
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

static ls_result machine_copy(const machine *from, machine *m)
{
    *m = *from;
    switch (from->kind) {
    case PRODUCER: return ls_producer_copy(&from->producer, &m->producer);
    case RECLAIMER: return ls_reclaimer_copy(&from->reclaimer, &m->reclaimer);
    case CHECKPOINTER: ls_checkpointer_copy(&from->checkpointer, &m->checkpointer); return LS_OK;
    case CONSUMER:
        retained(m->consumer.known);
        retained(m->consumer.unconfirmed);
        return LS_OK;
    }
    return LS_OK;
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
        if (machine_copy(&from->machines[i], &w->machines[i]) != LS_OK) {
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

/* What every description of a producer needs: where it stands, and its batches. */
static void add_ring(hash *h, const ls_producer *p)
{
    add(h, p->first_sequence);
    add(h, p->source_begin);
    add(h, p->epoch);
    add(h, p->slot);
    add(h, p->ring_count);
    add(h, p->ready_count);
    add(h, p->uploads_started);
    add(h, p->uploads_to_repeat);
    add(h, (uint64_t)p->joined | (uint64_t)p->stopping << 1 | (uint64_t)p->settling << 2 | (uint64_t)p->confirms_put << 3);
    for (uint32_t i = 0; i < p->ring_count; i++) {
        const ls_batch *batch = &p->batches[(p->first_sequence + i) & (p->ring_capacity - 1)];
        add(h, batch->source_end);
        add(h, batch->size_bytes);
        add(h, batch->state);
    }
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
    add(h, p->attempt_number);
    add(h, p->doubtful_version);
    if (p->phase == LS_PRODUCER_FINDING || p->phase == LS_PRODUCER_READING) add_search(h, &p->search);
    add(h, p->attempt_batches);
    add(h, p->settled_attempt == p->attempt_number);
    add(h, p->help_slot);
    if (p->phase == LS_PRODUCER_HELPING) {
        add(h, p->helped_end);
        add(h, (uint64_t)p->helped_count << 32 | p->helps_left);
        for (uint32_t i = 0; i < p->helped_count; i++) add(h, p->help->entry[i].producer << 32 ^ p->help->entry[i].source_end);
    }
    add_ring(h, p);
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

/* --- the shorter description of a state (config.reduced): see "What is forgotten" above ------------------------------- */

/* Whether `w` is described in the short way: machines then read the newest version whole and nothing else, nobody holds what was listed of
 * another's uploads, and every version that there is belongs to the history. */
static bool forgets(const world *w)
{
    const ls_explorer_config *config = w->config;
    if (!config->reduced || config->help_others) return false;
    if (config->layout != LS_LAYOUT_FULL || config->discovery != LS_DISCOVERY_LIST) return false;
    for (uint32_t i = 0; i < w->version_count; i++) {
        if (w->after[i]) return false;
    }
    return true;
}

static bool deletes_may_come(const world *w)
{
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        if (m->kind == RECLAIMER && !m->dead && m->reclaimer.phase != LS_RECLAIMER_STOPPED) return true;
    }
    for (uint32_t i = 0; i < w->flight_count; i++) {
        if (w->in_flight[i].request.operation == LS_DELETE) return true;
    }
    return false;
}

/* A put of this version will find the name taken, whatever else happens. */
static bool is_taken_for_ever(const world *w, uint64_t version)
{
    return version >= 1 && version <= w->version_count && !w->gone[version - 1] && !deletes_may_come(w);
}

typedef enum standing { STANDS_NOWHERE = 0, STANDS_HEAD, STANDS_OLDER, STANDS_APART } standing;

static standing standing_of(const world *w, const ls_manifest *manifest)
{
    uint64_t version = manifest == NULL ? 0 : ls_manifest_version(manifest);
    if (version == 0) return STANDS_NOWHERE;
    if (version > w->version_count || w->version[version - 1] != manifest) return STANDS_APART;
    return version == w->version_count ? STANDS_HEAD : STANDS_OLDER;
}

/* A version's number as it matters: its distance from the newest; in a lake that reclaims the number, for floors bear it. */
static uint64_t place(const world *w, uint64_t version)
{
    if (version == 0 || w->config->reclaimers > 0) return version;
    return (uint64_t)w->version_count + 2 - version;
}

/* The attempt of a row's commit matters in so far as the incarnation that made it still takes it for its last. */
static bool is_last_attempt(const world *w, const ls_commit_id *commit)
{
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        if (m->kind != PRODUCER || m->dead || m->producer.incarnation != commit->incarnation) continue;
        return m->producer.attempt_number == commit->attempt;
    }
    return false;
}

static void add_row(hash *h, const world *w, const ls_row *row)
{
    add(h, row->producer);
    add(h, row->next_source_offset);
    add(h, row->last_commit.incarnation);
    add(h, 4 * (uint64_t)row->epoch + 2 * (uint64_t)row->closed + is_last_attempt(w, &row->last_commit));
}

static void add_entries(hash *h, const ls_manifest *manifest, uint64_t first, uint64_t end)
{
    for (uint64_t at = first; at < end; at++) {
        ls_entry entry;
        if (!ls_manifest_entry(manifest, at, &entry)) continue;
        add(h, at);
        add(h, entry.producer);
        add(h, (uint64_t)entry.epoch << 32 | entry.sequence);
        add(h, entry.source_begin);
        add(h, entry.source_end);
        add(h, entry.size_bytes);
    }
}

static void add_content(hash *h, const world *w, const ls_manifest *manifest)
{
    add(h, ls_manifest_end_step(manifest));
    add(h, ls_manifest_trim_step(manifest));
    add(h, ls_manifest_low_watermark(manifest));
    for (uint32_t i = 0; i < ls_manifest_row_count(manifest); i++) add_row(h, w, ls_manifest_row(manifest, i));
}

/* A version that a machine holds or a request carries. The newest one is described with the world. */
static void add_version(hash *h, const world *w, const ls_manifest *manifest)
{
    standing stands = standing_of(w, manifest);
    add(h, (uint64_t)stands << 1 | (manifest == NULL));
    if (stands == STANDS_NOWHERE || stands == STANDS_HEAD) return;
    add(h, place(w, ls_manifest_version(manifest)));
    add_content(h, w, manifest);
    uint64_t first = ls_manifest_trim_step(manifest), end = ls_manifest_end_step(manifest);
    if (stands == STANDS_OLDER) {
        if (w->config->reclaimers > 0) add_entries(h, manifest, first, end);
        return;
    }
    const ls_manifest *head = w->checker.head;
    uint64_t head_end = head == NULL ? 0 : ls_manifest_end_step(head);
    bool continues = head != NULL && first <= head_end && end >= head_end &&
                     ls_manifest_chain(manifest, head_end) == ls_manifest_chain(head, head_end);
    if (continues) {
        add_entries(h, manifest, head_end, end);
    } else { /* it contradicts the history: then all of both matters */
        add(h, ls_manifest_chain(manifest, end));
        add(h, head == NULL ? 0 : ls_manifest_chain(head, head_end));
    }
}

static void add_search_placed(hash *h, const world *w, const ls_search *search)
{
    add(h, place(w, search->known));
    add(h, place(w, search->candidate));
    add(h, search->missing);
    add(h, place(w, search->probed));
    add(h, search->floor << 1 | search->asks_floor);
}

/* The version that a machine has asked for. */
static void add_reading(hash *h, const world *w, uint64_t version)
{
    add(h, place(w, version));
    if (version >= 1 && version <= w->version_count && !w->gone[version - 1]) add_version(h, w, w->version[version - 1]);
}

static void add_attempt(hash *h, const world *w, const ls_producer *p)
{
    uint64_t version = ls_manifest_version(p->attempt);
    bool is_stored = standing_of(w, p->attempt) != STANDS_APART;
    add(h, p->doubtful_version == version);
    if (!is_stored && is_taken_for_ever(w, version)) return; /* lost, whatever it holds */
    add(h, place(w, version));
    add(h, p->attempt_batches);
    const ls_row *row = ls_manifest_row(p->attempt, ls_manifest_find_slot(p->attempt, p->producer));
    if (row != NULL) add_row(h, w, row);
    if (is_stored || standing_of(w, p->known) != STANDS_HEAD) add_version(h, w, p->attempt);
}

static void add_doubt(hash *h, const world *w, const ls_producer *p)
{
    bool is_past = w->config->reclaimers == 0 && p->doubtful_version >= 1 && p->doubtful_version <= w->version_count;
    add(h, is_past ? UINT64_MAX : place(w, p->doubtful_version));
}

static void add_producer_short(hash *h, const world *w, const ls_producer *p)
{
    add(h, p->producer);
    add(h, p->incarnation);
    add(h, (uint64_t)p->phase << 8 | p->end);
    if (p->phase == LS_PRODUCER_STOPPED) return;
    bool is_stale = standing_of(w, p->known) == STANDS_OLDER;
    bool confirms_known = p->phase == LS_PRODUCER_CONFIRMING && !p->confirms_put;
    if (is_stale && !confirms_known) add(h, UINT64_MAX); /* the next search replaces it */
    else add_version(h, w, p->known);
    if (p->phase == LS_PRODUCER_PUTTING || (p->phase == LS_PRODUCER_CONFIRMING && p->confirms_put)) add_attempt(h, w, p);
    if (p->phase == LS_PRODUCER_FINDING && !is_stale) add_search_placed(h, w, &p->search);
    if (p->phase == LS_PRODUCER_READING) add_reading(h, w, p->search.candidate);
    add_doubt(h, w, p);
    add_ring(h, p);
}

static void add_consumer_short(hash *h, const world *w, const ls_consumer *c)
{
    add(h, c->cursor);
    add(h, (uint64_t)c->finding | (uint64_t)c->reading << 1 | (uint64_t)c->confirming << 2 | (uint64_t)c->started << 3 |
               (uint64_t)c->stopped << 4 | (uint64_t)c->stopping << 5);
    if (c->stopped) return;
    bool is_stale = standing_of(w, c->known) == STANDS_OLDER;
    if (is_stale) { /* its entries are the newest version's too */
        add(h, ls_manifest_end_step(c->known));
        add(h, ls_manifest_trim_step(c->known));
    } else {
        add_version(h, w, c->known);
    }
    add_version(h, w, c->unconfirmed);
    if (c->finding && !is_stale) add_search_placed(h, w, &c->search);
    if (c->reading) add_reading(h, w, c->search.candidate);
    if (c->confirming) add(h, place(w, c->search.candidate));
    add(h, c->fetch_end);
    for (uint64_t s = c->cursor; s < c->fetch_end; s++) {
        const ls_fetch *fetch = &c->fetch[s % LS_CONSUMER_WINDOW_MAX];
        add(h, (uint64_t)fetch->state << 32 | fetch->entry.epoch);
        add(h, fetch->entry.producer);
        add(h, fetch->entry.sequence);
        add(h, fetch->entry.source_begin);
        add(h, fetch->slice.bytes);
    }
}

/* The first step of the newest version whose entry anybody may still ask for. */
static uint64_t first_step_wanted(const world *w)
{
    const ls_manifest *head = w->checker.head;
    if (w->config->rewinds > 0 || w->config->reclaimers > 0) return ls_manifest_trim_step(head);
    uint64_t first = ls_manifest_end_step(head);
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        if (m->kind == CONSUMER && !m->dead && !m->consumer.stopped && m->consumer.cursor < first) first = m->consumer.cursor;
    }
    return first;
}

static void add_store_short(hash *h, const world *w)
{
    const ls_manifest *head = w->checker.head;
    add(h, w->config->reclaimers > 0 ? w->version_count : w->version_count > 0);
    for (uint64_t v = 1; v <= w->version_count; v++) {
        if (w->gone[v - 1]) add(h, v);
    }
    if (head == NULL) return;
    add_content(h, w, head);
    add_entries(h, head, first_step_wanted(w), ls_manifest_end_step(head));
}

/* In either description. */
static void add_held(hash *h, const world *w, const ls_manifest *manifest)
{
    if (forgets(w)) add_version(h, w, manifest);
    else add_manifest(h, manifest);
}

static void add_reclaimer(hash *h, const world *w, const ls_reclaimer *r)
{
    add(h, (uint64_t)r->phase << 16 | (uint64_t)r->goal << 8 | r->end);
    add(h, r->incarnation);
    if (r->phase == LS_RECLAIMER_STOPPED) return;
    add_held(h, w, r->known);
    add_held(h, w, r->attempt);
    if (r->phase == LS_RECLAIMER_FINDING || r->phase == LS_RECLAIMER_READING) {
        add_search(h, &r->search);
        if (forgets(w) && r->phase == LS_RECLAIMER_READING) add_reading(h, w, r->search.candidate);
    }
    for (uint64_t i = 0; i < r->mark_count; i++) {
        add(h, r->marks[i].number);
        add(h, r->marks[i].step << 8 | (uint64_t)r->marks[i].kind << 1 | r->marks[i].kept);
    }
    for (uint64_t i = 0; i < r->before_count; i++) add(h, r->before[i].number << 1 | r->before[i].kept);
    for (uint64_t i = r->page_next; i < r->page_count; i++) {
        add(h, r->page[i].key.number);
        add(h, (uint64_t)r->page[i].key.epoch << 32 | r->page[i].key.sequence << 2 | (uint64_t)r->page[i].named << 1 | r->page[i].passed);
    }
    add(h, r->attempt_number);
    add(h, r->watermark);
    add(h, r->bound);
    add(h, r->trimmed_below);
    add(h, r->next_step);
    add(h, r->next_mark);
    add(h, r->report.floor);
    add(h, (uint64_t)r->deletes_in_flight << 32 | r->deletes_to_repeat);
    add(h, (uint64_t)r->awaiting << 2 | (uint64_t)r->more << 1 | r->stopping);
}

static void add_checkpointer(hash *h, const world *w, const ls_checkpointer *c)
{
    add(h, (uint64_t)c->phase << 8 | c->config.kind);
    add(h, c->config.step);
    if (c->phase == LS_CHECKPOINTER_STOPPED) return;
    add_held(h, w, c->known);
    if (c->phase == LS_CHECKPOINTER_FINDING || c->phase == LS_CHECKPOINTER_READING) {
        add_search(h, &c->search);
        if (forgets(w) && c->phase == LS_CHECKPOINTER_READING) add_reading(h, w, c->search.candidate);
    }
    add(h, c->key.number);
    add(h, c->greatest);
}

static void add_machine_short(hash *h, const world *w, const machine *m)
{
    add(h, (uint64_t)m->kind << 1 | m->dead);
    if (m->dead) return;
    bool is_over = m->kind == PRODUCER && m->producer.phase == LS_PRODUCER_STOPPED;
    add(h, (uint64_t)m->master << 40 | (uint64_t)m->ended << 5 | (uint64_t)m->pinned << 4);
    if (!is_over) add(h, (uint64_t)m->next_batch << 8 | (uint64_t)m->superseded << 1 | (uint64_t)m->stop_given << 2);
    switch (m->kind) {
    case PRODUCER: add_producer_short(h, w, &m->producer); break;
    case CONSUMER:
        if (w->checkpoints > 0) add(h, m->saved);
        add_consumer_short(h, w, &m->consumer);
        break;
    case RECLAIMER: add_reclaimer(h, w, &m->reclaimer); break;
    case CHECKPOINTER: add_checkpointer(h, w, &m->checkpointer); break;
    }
}

static void add_machine(hash *h, const world *w, const machine *m)
{
    add(h, (uint64_t)m->kind << 56 | (uint64_t)m->master << 40 | (uint64_t)m->next_batch << 8 | (uint64_t)m->ended << 5 |
               (uint64_t)m->pinned << 4 | (uint64_t)m->superseded << 1 | (uint64_t)m->dead | (uint64_t)m->stop_given << 2);
    if (m->dead) return;
    switch (m->kind) {
    case PRODUCER: add_producer(h, &m->producer); break;
    case CONSUMER:
        add(h, m->saved);
        add_consumer(h, &m->consumer);
        break;
    case RECLAIMER: add_reclaimer(h, w, &m->reclaimer); break;
    case CHECKPOINTER: add_checkpointer(h, w, &m->checkpointer); break;
    }
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

/* A list of versions above the one its sender knows, when that is no longer the newest: any of those finds the same. */
static bool is_stale_list(const world *w, const flight *f)
{
    if (f->owner == NOBODY || f->request.operation != LS_LIST || f->request.key.kind != LS_OBJECT_MANIFEST) return false;
    const machine *m = &w->machines[f->owner];
    const ls_manifest *known = m->kind == PRODUCER ? m->producer.known : m->kind == CONSUMER ? m->consumer.known : NULL;
    return known != NULL && standing_of(w, known) == STANDS_OLDER && f->request.key.number == ls_manifest_version(known);
}

static hash flight_hash_short(const world *w, const flight *f)
{
    hash h = {7, 8};
    const ls_store_request *r = &f->request;
    add(&h, f->owner);
    add(&h, (uint64_t)r->operation << 8 | (uint64_t)r->range << 4 | (uint64_t)r->if_absent);
    add(&h, (uint64_t)r->key.kind << 32 | r->key.epoch);
    bool is_described = f->owner != NOBODY && r->manifest != NULL && w->machines[f->owner].kind == PRODUCER &&
                        w->machines[f->owner].producer.attempt == r->manifest;
    if (is_described || is_stale_list(w, f)) return h;
    add(&h, r->key.kind == LS_OBJECT_MANIFEST ? place(w, r->key.number) : r->key.number);
    add(&h, r->key.sequence);
    add(&h, r->range_bytes);
    if (r->key.kind != LS_OBJECT_MANIFEST) add(&h, r->body_bytes);
    add_version(&h, w, r->manifest);
    return h;
}

/* The oldest version whose content a machine may still read: a search only ever goes up from its candidate. */
static uint64_t oldest_read_by(const machine *m)
{
    const ls_search *search = NULL;
    const ls_manifest *known = NULL;
    switch (m->kind) {
    case PRODUCER:
        if (m->producer.phase == LS_PRODUCER_STOPPED) return UINT64_MAX;
        known = m->producer.known;
        if (m->producer.phase == LS_PRODUCER_FINDING || m->producer.phase == LS_PRODUCER_READING) search = &m->producer.search;
        break;
    case CONSUMER:
        if (m->consumer.stopped) return UINT64_MAX;
        known = m->consumer.known;
        if (m->consumer.finding || m->consumer.reading) search = &m->consumer.search;
        break;
    case RECLAIMER:
        if (m->reclaimer.phase == LS_RECLAIMER_STOPPED) return UINT64_MAX;
        known = m->reclaimer.known;
        if (m->reclaimer.phase == LS_RECLAIMER_FINDING || m->reclaimer.phase == LS_RECLAIMER_READING) search = &m->reclaimer.search;
        break;
    case CHECKPOINTER:
        if (m->checkpointer.phase == LS_CHECKPOINTER_STOPPED) return UINT64_MAX;
        known = m->checkpointer.known;
        if (m->checkpointer.phase == LS_CHECKPOINTER_FINDING || m->checkpointer.phase == LS_CHECKPOINTER_READING) {
            search = &m->checkpointer.search;
        }
        break;
    }
    return search != NULL ? search->candidate : known == NULL ? 0 : ls_manifest_version(known);
}

static uint64_t oldest_read(const world *w)
{
    uint64_t oldest = w->version_count;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        uint64_t version = w->machines[i].dead ? UINT64_MAX : oldest_read_by(&w->machines[i]);
        if (version < oldest) oldest = version;
    }
    return oldest == 0 ? 1 : oldest;
}

static void add_versions(hash *h, const world *w)
{
    uint64_t oldest = oldest_read(w);
    add(h, w->version_count);
    for (uint64_t v = 1; v <= w->version_count; v++) {
        if (w->gone[v - 1]) add(h, v);
        else if (v >= oldest || w->after[v - 1]) add_manifest(h, w->version[v - 1]);
    }
}

/* Objects and requests are sets: their hashes are added up, so that their order makes no difference. */
static hash world_hash(const world *w)
{
    hash h = {3, 4}, sum = {0, 0};
    add(&h, (uint64_t)w->checkpoints << 40 | (uint64_t)w->rewinds << 32 | (uint64_t)w->crashes << 24 | (uint64_t)w->zombies << 16 |
                (uint64_t)w->ambiguous << 8 | w->lingering);
    add(&h, w->newest_auto);
    for (uint32_t i = 0; i < w->promise_count; i++) {
        add(&h, w->promises[i].number);
        add(&h, w->promises[i].step << 8 | w->promises[i].kind);
    }
    bool is_short = forgets(w);
    add(&h, is_short);
    if (is_short) add_store_short(&h, w);
    else add_versions(&h, w);
    for (uint32_t i = 0; i < w->machine_count; i++) {
        if (is_short) add_machine_short(&h, w, &w->machines[i]);
        else add_machine(&h, w, &w->machines[i]);
    }
    for (uint32_t i = 0; i < w->flight_count; i++) {
        hash f = is_short ? flight_hash_short(w, &w->in_flight[i]) : flight_hash(&w->in_flight[i]);
        sum.a += f.a;
        sum.b += f.b;
    }
    for (uint32_t i = 0; i < w->object_count; i++) {
        hash o = {5, 6};
        add(&o, w->objects[i].key.kind);
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
        bool twin = i != index && m->kind == PRODUCER && m->producer.producer == w->machines[index].producer.producer;
        if (twin && !m->dead && m->producer.end != LS_PRODUCER_FENCED) return true;
    }
    return false;
}

/* A consumer may be told that its step is gone when nothing protected it: it stands below the watermark and has no pin. */
static ls_result judge_behind(const world *w, machine *m, ls_error *error)
{
    const ls_manifest *head = w->checker.head;
    m->ended = true;
    if (!m->pinned && head != NULL && m->consumer.cursor < ls_manifest_low_watermark(head)) return LS_OK;
    return ls_fail(error, LS_ERROR_VIOLATED, "a consumer at step %" PRIu64 "%s was told that it is gone; the watermark is %" PRIu64,
                   m->consumer.cursor, m->pinned ? ", which a checkpoint pins," : "",
                   head == NULL ? 0 : ls_manifest_low_watermark(head));
}

static ls_result go_back(world *w, uint32_t index, uint64_t to_step, ls_error *error);

static bool has_object(const world *w, const ls_key *key)
{
    for (uint32_t i = 0; i < w->object_count; i++) {
        if (ls_key_compare(&w->objects[i].key, key) == 0) return true;
    }
    return false;
}

/* A checkpoint was called durable: it must be there, and hold from now on. Who goes back starts to read anew. */
static ls_result keep_promise(world *w, machine *m, const ls_checkpoint_report *report, ls_error *error)
{
    if (!has_object(w, &report->key)) {
        return ls_fail(error, LS_ERROR_VIOLATED, "a checkpoint of step %" PRIu64 " was called durable and is not there",
                       report->key.sequence);
    }
    if (w->promise_count == CHECKPOINTS_MAX) return ls_fail(error, LS_ERROR_LIMIT, "too many checkpoints");
    w->promises[w->promise_count++] = (promise){report->key.number, report->key.sequence, report->key.epoch};
    return report->key.epoch == LS_CHECKPOINT_PIN ? go_back(w, m->master, report->key.sequence, error) : LS_OK;
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
    case LS_ACTION_BEHIND: return judge_behind(w, m, error);
    case LS_ACTION_CHECKPOINTED: return keep_promise(w, m, &action->checkpoint, error);
    case LS_ACTION_GAVE_UP:
        if (action->checkpoint.low_watermark > action->checkpoint.key.sequence ||
            action->checkpoint.end_step < action->checkpoint.key.sequence) {
            return LS_OK;
        }
        return ls_fail(error, LS_ERROR_VIOLATED, "a checkpoint of step %" PRIu64 " was given up, and nothing speaks against it",
                       action->checkpoint.key.sequence);
    case LS_ACTION_WOULD_DELETE:
    case LS_ACTION_RECLAIMED:
    case LS_ACTION_REFUSED:
    case LS_ACTION_WAKE:
    case LS_ACTION_ATTEMPT:
    case LS_ACTION_FINISHED: break;
    }
    return LS_OK;
}

static ls_result machine_step(machine *m, const ls_event *event, ls_actions *actions)
{
    switch (m->kind) {
    case PRODUCER: return ls_producer_step(&m->producer, event, actions);
    case CONSUMER: return ls_consumer_step(&m->consumer, event, actions);
    case RECLAIMER: return ls_reclaimer_step(&m->reclaimer, event, actions);
    case CHECKPOINTER: return ls_checkpointer_step(&m->checkpointer, event, actions);
    }
    return LS_ERROR_INVALID;
}

/* What waits does so for no reason that matters here: its time has come. (A reclaimer's and a checkpointer's clock is its own last wish.) */
static int64_t wake_of(const machine *m)
{
    switch (m->kind) {
    case PRODUCER: return m->producer.wake_ns;
    case CONSUMER: return m->consumer.wake_ns;
    case RECLAIMER: return m->reclaimer.phase == LS_RECLAIMER_STOPPED ? LS_NEVER_NS : m->reclaimer.wake_ns;
    case CHECKPOINTER: return m->checkpointer.phase == LS_CHECKPOINTER_STOPPED ? LS_NEVER_NS : m->checkpointer.wake_ns;
    }
    return LS_NEVER_NS;
}

static ls_result step(world *w, uint32_t index, const ls_event *event, ls_error *error)
{
    machine *m = &w->machines[index];
    ls_event next = *event;
    for (;;) {
        ls_actions actions;
        uint64_t next_step = m->kind == CONSUMER ? m->consumer.cursor : 0;
        ls_result result = machine_step(m, &next, &actions);
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
        if (m->kind == CONSUMER && m->consumer.cursor != next_step) {
            return ls_fail(error, LS_ERROR_VIOLATED, "a consumer passed from step %" PRIu64 " to step %" PRIu64 " and handed nothing on",
                           next_step, m->consumer.cursor);
        }
        int64_t wake_ns = wake_of(m);
        bool due = m->kind == RECLAIMER || m->kind == CHECKPOINTER ? wake_ns != LS_NEVER_NS : wake_ns <= 0;
        if (!due) return LS_OK;
        next = (ls_event){.kind = LS_EVENT_TIMER, .now_ns = wake_ns > 0 ? wake_ns : 0};
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

/* Room for one more machine of that kind, zeroed; NULL when there is none. */
static machine *add_machine_of(world *w, machine_kind kind, ls_error *error)
{
    if (w->machine_count == MACHINES_MAX) {
        ls_fail(error, LS_ERROR_LIMIT, "too many machines");
        return NULL;
    }
    machine *m = &w->machines[w->machine_count];
    memset(m, 0, sizeof *m);
    m->kind = kind;
    return m;
}

static ls_result start_consumer(world *w, uint64_t first_step, bool pinned, ls_error *error)
{
    machine *m = add_machine_of(w, CONSUMER, error);
    if (m == NULL) return LS_ERROR_LIMIT;
    ls_consumer_config config = {.window = 2, .follow = true};
    if (ls_consumer_init(&m->consumer, w->protocol, &config, first_step) != LS_OK) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    m->pinned = pinned;
    m->saved = first_step;
    return step(w, w->machine_count++, &(ls_event){.kind = LS_EVENT_START}, error);
}

static ls_result start_reclaimer(world *w, ls_error *error)
{
    machine *m = add_machine_of(w, RECLAIMER, error);
    if (m == NULL) return LS_ERROR_LIMIT;
    ls_reclaimer_config config = {.retention = {.keep_last = 1}, .retry_ns = 1, .delete_concurrency = 2, .keep_versions = 1,
                                  .skip_orphans = !w->config->orphans};
    uint64_t incarnation = UINT64_C(1000) + ++w->incarnations;
    if (ls_reclaimer_init(&m->reclaimer, w->protocol, &config, incarnation, ls_random_open(1, 0, LS_RANDOM_TEST, incarnation)) != LS_OK) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    return step(w, w->machine_count++, &(ls_event){.kind = LS_EVENT_START}, error);
}

static ls_result start_checkpointer(world *w, uint32_t master, uint64_t at_step, ls_checkpoint_kind kind, ls_error *error)
{
    machine *m = add_machine_of(w, CHECKPOINTER, error);
    if (m == NULL) return LS_ERROR_LIMIT;
    ls_checkpointer_config config = {.step = at_step, .kind = kind, .body_bytes = 72, .retry_ns = 1};
    uint64_t entity = 100 + ++w->incarnations;
    if (ls_checkpointer_init(&m->checkpointer, w->protocol, &config, NULL, ls_random_open(1, 0, LS_RANDOM_TEST, entity)) != LS_OK) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    m->master = master;
    return step(w, w->machine_count++, &(ls_event){.kind = LS_EVENT_START}, error);
}

/* The requests of a machine that is no more: what has an effect may have it later, the rest is forgotten. */
static void abandon_flights(world *w, uint32_t index)
{
    for (uint32_t i = w->flight_count; i-- > 0;) {
        flight *f = &w->in_flight[i];
        if (f->owner != index) continue;
        bool is_read = w->config->help_others || f->request.key.kind != LS_OBJECT_DATA;
        bool lands = (f->request.operation == LS_PUT && is_read) || f->request.operation == LS_DELETE;
        f->owner = NOBODY;
        if (!lands) drop_flight(w, i);
    }
}

static ls_result go_back(world *w, uint32_t index, uint64_t to_step, ls_error *error)
{
    w->machines[index].dead = true;
    abandon_flights(w, index);
    return start_consumer(w, to_step, true, error);
}

/* --- the store ----------------------------------------------------------------------------------------------------------- */

/* The name of a version is taken by what was put there first; when that was deleted, by a late winner, whose content is no
 * part of the history. */
static ls_result put_version(world *w, ls_store_request *request, ls_reply_status *status, ls_error *error)
{
    uint64_t number = request->key.number;
    if (number <= w->version_count && !w->gone[number - 1]) {
        *status = LS_REPLY_EXISTS;
        return LS_OK;
    }
    if (number <= w->version_count) {
        ls_manifest_release(w->version[number - 1]);
        w->gone[number - 1] = false;
        w->after[number - 1] = true;
        w->version[number - 1] = request->manifest;
        request->manifest = NULL;
        return LS_OK;
    }
    if (w->version_count == VERSIONS_MAX) return ls_fail(error, LS_ERROR_LIMIT, "more than %u versions", VERSIONS_MAX);
    ls_result result = ls_invariants_created(&w->checker, request->manifest, error);
    if (result != LS_OK) return result;
    w->version[w->version_count++] = request->manifest;
    request->manifest = NULL;
    return LS_OK;
}

static ls_result put_effect(world *w, ls_store_request *request, ls_reply_status *status, ls_error *error)
{
    *status = LS_REPLY_OK;
    const ls_key *key = &request->key;
    if (key->kind == LS_OBJECT_MANIFEST) return put_version(w, request, status, error);
    if (has_object(w, key)) {
        *status = LS_REPLY_EXISTS;
        return LS_OK;
    }
    if (w->object_count == OBJECTS_MAX) return ls_fail(error, LS_ERROR_LIMIT, "more than %u objects", OBJECTS_MAX);
    w->objects[w->object_count++] = (object){*key, request->body_bytes};
    if (key->kind == LS_OBJECT_CHECKPOINT && key->epoch == LS_CHECKPOINT_AUTO && key->number > w->newest_auto) {
        w->newest_auto = key->number;
    }
    return LS_OK;
}

/* The least step that somebody was promised. The rule keeps the newest auto checkpoint and every pinned one. */
static uint64_t protected_step(const world *w)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < w->promise_count; i++) {
        const promise *p = &w->promises[i];
        bool holds = ls_checkpoint_is_pinned(p->kind) || p->number == w->newest_auto;
        if (holds && p->step < least) least = p->step;
    }
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        bool reads = m->kind == CONSUMER && m->pinned && !m->dead && !m->consumer.stopped;
        if (reads && m->consumer.cursor < least) least = m->consumer.cursor;
    }
    return least;
}

static ls_result delete_effect(world *w, const ls_store_request *request, ls_reply_status *status, ls_error *error)
{
    const ls_key *key = &request->key;
    *status = LS_REPLY_OK;
    if (key->kind == LS_OBJECT_MANIFEST) {
        if (key->number >= 1 && key->number < w->version_count) w->gone[key->number - 1] = true;
        return ls_invariants_deleted(&w->checker, key, UINT64_MAX, error);
    }
    for (uint32_t i = 0; i < w->object_count; i++) {
        if (ls_key_compare(&w->objects[i].key, key) != 0) continue;
        w->objects[i] = w->objects[--w->object_count];
        return ls_invariants_deleted(&w->checker, key, protected_step(w), error);
    }
    return LS_OK;
}

#define NAMES_MAX (VERSIONS_MAX + OBJECTS_MAX)

typedef struct name_list {
    ls_key keys[NAMES_MAX];
    uint64_t bytes[NAMES_MAX];
    int64_t ages_ns[NAMES_MAX]; /* nothing here is young: the grace time has passed */
} name_list;

static void add_name(name_list *names, uint64_t *count, const ls_key *key, uint64_t bytes)
{
    uint64_t at = *count;
    while (at > 0 && ls_key_compare(&names->keys[at - 1], key) > 0) {
        names->keys[at] = names->keys[at - 1];
        names->bytes[at] = names->bytes[at - 1];
        at--;
    }
    names->keys[at] = *key;
    names->bytes[at] = bytes;
    names->ages_ns[(*count)++] = LS_NEVER_NS / 2;
}

static void list(const world *w, const ls_store_request *request, ls_store_reply *reply, name_list *names)
{
    uint64_t count = 0;
    if (request->key.kind == LS_OBJECT_MANIFEST) {
        for (uint64_t v = request->key.number + 1; v <= w->version_count; v++) {
            ls_key key = ls_key_manifest(v);
            if (!w->gone[v - 1]) add_name(names, &count, &key, ls_manifest_encoded_bytes(w->version[v - 1]));
        }
    }
    for (uint32_t i = 0; i < w->object_count; i++) {
        const object *o = &w->objects[i];
        if (o->key.kind == request->key.kind && ls_key_compare(&o->key, &request->key) > 0) add_name(names, &count, &o->key, o->size_bytes);
    }
    reply->list_truncated = count > request->list_limit;
    reply->list_count = reply->list_truncated ? request->list_limit : count;
    if (reply->list_count > 0) reply->list_last = names->keys[reply->list_count - 1];
    if (!request->list_names) return;
    reply->list_keys = names->keys;
    reply->list_bytes = names->bytes;
    reply->list_ages_ns = names->ages_ns;
}

static void get_manifest(const world *w, const ls_store_request *request, ls_store_reply *reply)
{
    uint64_t version = request->key.number;
    if (version == 0 || version > w->version_count || w->gone[version - 1]) {
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

static void get_object(const world *w, const ls_store_request *request, ls_store_reply *reply)
{
    reply->status = LS_REPLY_NOT_FOUND;
    for (uint32_t i = 0; i < w->object_count; i++) {
        if (ls_key_compare(&w->objects[i].key, &request->key) != 0) continue;
        reply->status = LS_REPLY_OK;
        reply->object_bytes = w->objects[i].size_bytes;
    }
    if (reply->status == LS_REPLY_OK && request->range == LS_RANGE_SUFFIX) {
        reply->slice = request->slice;
        reply->slice.bytes = 1;
    }
}

static ls_result effect(world *w, ls_store_request *request, ls_store_reply *reply, name_list *names, ls_error *error)
{
    if (request->operation == LS_PUT) return put_effect(w, request, &reply->status, error);
    if (request->operation == LS_DELETE) return delete_effect(w, request, &reply->status, error);
    if (request->operation == LS_LIST) list(w, request, reply, names);
    else if (request->key.kind == LS_OBJECT_MANIFEST) get_manifest(w, request, reply);
    else get_object(w, request, reply);
    return LS_OK;
}

/* --- transitions ------------------------------------------------------------------------------------------------------- */

/* A consumer's look for what is not there yet: it would only look again. */
static bool is_idle_look(const world *w, const flight *f)
{
    if (f->owner == NOBODY || w->machines[f->owner].kind != CONSUMER) return false;
    const ls_consumer *c = &w->machines[f->owner].consumer;
    const ls_store_request *r = &f->request;
    if (!c->finding || c->known == NULL || ls_manifest_version(c->known) != w->version_count) return false;
    uint64_t next = r->operation == LS_LIST ? r->key.number + 1 : r->key.number;
    return r->key.kind == LS_OBJECT_MANIFEST && next == w->version_count + 1;
}

static bool may_be(const world *w, move kind, const flight *f)
{
    bool put = f->request.operation == LS_PUT || f->request.operation == LS_DELETE;
    bool manifest = f->request.operation == LS_PUT && f->request.key.kind == LS_OBJECT_MANIFEST;
    if (f->owner == NOBODY) return kind == MOVE_LAND;
    if (is_idle_look(w, f)) return false;
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

/* A trainer saves where it stands, one checkpoint at a time; it goes back to the first that it was told is durable. */
static bool consumer_may(const world *w, move kind, const machine *m)
{
    bool busy = false;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *c = &w->machines[i];
        busy = busy || (c->kind == CHECKPOINTER && !c->dead && c->checkpointer.phase != LS_CHECKPOINTER_STOPPED);
    }
    if (busy || m->consumer.stopped) return false;
    if (kind == MOVE_CHECKPOINT) return w->checkpoints > 0 && m->consumer.cursor > m->saved;
    return kind == MOVE_REWIND && w->rewinds > 0 && w->promise_count > 0 && w->promises[0].step <= m->consumer.cursor;
}

static bool may_do(const world *w, move kind, const machine *m)
{
    if (m->dead) return false;
    if (m->kind == CONSUMER) return consumer_may(w, kind, m);
    if (m->kind == RECLAIMER) return kind == MOVE_CRASH && w->crashes > 0 && m->reclaimer.phase != LS_RECLAIMER_STOPPED;
    if (m->kind == CHECKPOINTER) return kind == MOVE_CRASH && w->crashes > 0 && m->checkpointer.phase != LS_CHECKPOINTER_STOPPED;
    if (m->producer.phase == LS_PRODUCER_STOPPED) return false;
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

/* A request whose answer nobody else can change, and which changes nobody else's: see "Reduction" above. */
static bool is_prompt(const world *w, const flight *f)
{
    const ls_store_request *r = &f->request;
    if (f->owner == NOBODY) return false;
    if (r->operation == LS_PUT && r->key.kind == LS_OBJECT_MANIFEST) return is_taken_for_ever(w, r->key.number);
    if (r->operation == LS_PUT) return r->key.kind == LS_OBJECT_DATA && !w->config->orphans && !w->config->help_others;
    if (r->operation == LS_GET && r->key.kind == LS_OBJECT_MANIFEST) {
        return w->config->reclaimers == 0 && r->key.number >= 1 && r->key.number <= w->version_count;
    }
    return r->operation == LS_GET && r->key.kind == LS_OBJECT_DATA && w->config->reclaimers == 0 && has_object(w, &r->key);
}

/* The first prompt request, or the first of a reclaimer's deletes beside others of its own; flight_count if there is none. */
static uint32_t prompt_flight(const world *w)
{
    uint32_t i = 0;
    while (i < w->flight_count && !is_prompt(w, &w->in_flight[i])) i++;
    return i;
}

/* A delete that waits behind another of the same machine. */
static bool is_queued(const world *w, uint32_t index)
{
    const flight *f = &w->in_flight[index];
    if (!w->config->reduced || f->owner == NOBODY || f->request.operation != LS_DELETE) return false;
    for (uint32_t i = 0; i < index; i++) {
        if (w->in_flight[i].owner == f->owner && w->in_flight[i].request.operation == LS_DELETE) return true;
    }
    return false;
}

/* All that needs to be tried now, faults last. */
static uint32_t enumerate(const world *w, uint32_t *codes)
{
    uint32_t count = 0;
    uint32_t prompt = w->config->reduced ? prompt_flight(w) : w->flight_count;
    if (prompt < w->flight_count) {
        for (move kind = MOVE_SERVE; kind <= MOVE_LAND; kind++) {
            if (is_of_request(kind) && may_be(w, kind, &w->in_flight[prompt])) codes[count++] = (uint32_t)kind << CODE_INDEX_BITS | prompt;
        }
        return count;
    }
    for (move kind = MOVE_SERVE; kind <= MOVE_ZOMBIE; kind++) {
        uint32_t limit = is_of_request(kind) ? w->flight_count : w->machine_count;
        for (uint32_t i = 0; i < limit && count < TRANSITIONS_MAX; i++) {
            bool may = is_of_request(kind) ? may_be(w, kind, &w->in_flight[i]) && !is_queued(w, i) : may_do(w, kind, &w->machines[i]);
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
    name_list names;
    ls_result result = LS_OK;
    if (kind == MOVE_SERVE || kind == MOVE_DONE_UNKNOWN || kind == MOVE_DONE_EXISTS || kind == MOVE_LAND) {
        result = effect(w, &f.request, &reply, &names, error);
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
    uint64_t id = m->kind == PRODUCER ? m->producer.producer : 0;
    m->superseded = m->dead = true;
    w->crashes--;
    abandon_flights(w, index);
    switch (m->kind) {
    case PRODUCER: return start_producer(w, id, error);
    case RECLAIMER: return start_reclaimer(w, error);
    case CONSUMER:
    case CHECKPOINTER: break;
    }
    return LS_OK;
}

/* Forgets the puts nobody awaits that can have no effect any more. */
static void drop_futile_flights(world *w)
{
    for (uint32_t i = w->flight_count; i-- > 0;) {
        const flight *f = &w->in_flight[i];
        bool is_put = f->owner == NOBODY && f->request.operation == LS_PUT && f->request.key.kind == LS_OBJECT_MANIFEST;
        if (is_put && is_taken_for_ever(w, f->request.key.number)) drop_flight(w, i);
    }
}

static ls_result carry_out_move(world *w, uint32_t code, ls_error *error)
{
    uint32_t index = index_of(code);
    machine *m = &w->machines[index];
    switch (move_of(code)) {
    case MOVE_BATCH: return give_batch(w, index, error);
    case MOVE_STOP: m->stop_given = true; return step(w, index, &(ls_event){.kind = LS_EVENT_STOP}, error);
    case MOVE_CHECKPOINT:
        w->checkpoints--;
        m->saved = m->consumer.cursor;
        return start_checkpointer(w, index, m->saved, LS_CHECKPOINT_AUTO, error);
    case MOVE_REWIND:
        w->rewinds--;
        return start_checkpointer(w, index, w->promises[0].step, LS_CHECKPOINT_PIN, error);
    case MOVE_CRASH: return crash(w, index, error);
    case MOVE_ZOMBIE:
        w->zombies--;
        m->superseded = true;
        return start_producer(w, m->producer.producer, error);
    default: return serve(w, move_of(code), index, error);
    }
}

static ls_result carry_out(world *w, uint32_t code, ls_error *error)
{
    ls_result result = carry_out_move(w, code, error);
    if (result == LS_OK && w->config->reduced) drop_futile_flights(w);
    return result;
}

/* Nothing moves any more: is everything done? */
static ls_result check_end(const world *w, ls_error *error)
{
    const ls_manifest *head = w->checker.head;
    uint64_t total = (uint64_t)w->config->producers * w->config->batches;
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        if (m->dead) continue;
        if (m->kind == CONSUMER && !m->ended && m->consumer.cursor != total) {
            return ls_fail(error, LS_ERROR_VIOLATED, "nothing moves, and a consumer stands at step %" PRIu64 " of %"
                           PRIu64, m->consumer.cursor, total);
        }
        if (m->kind == RECLAIMER && m->reclaimer.phase != LS_RECLAIMER_STOPPED) {
            return ls_fail(error, LS_ERROR_VIOLATED, "nothing moves, and a reclaimer has not finished");
        }
        if (m->kind == CHECKPOINTER && m->checkpointer.phase != LS_CHECKPOINTER_STOPPED) {
            return ls_fail(error, LS_ERROR_VIOLATED, "nothing moves, and a checkpoint is neither made nor given up");
        }
        if (m->kind != PRODUCER) continue;
        bool done = m->producer.end == LS_PRODUCER_FINISHED ||
                    (m->producer.end == LS_PRODUCER_FENCED && has_live_twin(w, i));
        if (done) continue;
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
    table states, outcomes;
    frame *stack;
    uint32_t depth, capacity;
} search;

/* What an end says of everybody, in either description. */
static hash outcome_of(const world *w)
{
    hash h = {9, 10};
    const ls_manifest *head = w->checker.head;
    add(&h, head != NULL);
    if (head != NULL) {
        add(&h, ls_manifest_end_step(head));
        add(&h, ls_manifest_trim_step(head));
        add(&h, ls_manifest_low_watermark(head));
        for (uint32_t i = 0; i < ls_manifest_row_count(head); i++) {
            const ls_row *row = ls_manifest_row(head, i);
            add(&h, row->producer);
            add(&h, row->next_source_offset);
            add(&h, row->last_commit.incarnation);
            add(&h, 2 * (uint64_t)row->epoch + row->closed);
        }
    }
    for (uint32_t i = 0; i < w->machine_count; i++) {
        const machine *m = &w->machines[i];
        add(&h, (uint64_t)m->kind << 2 | (uint64_t)m->ended << 1 | m->dead);
        if (m->kind == PRODUCER && !m->dead) add(&h, m->producer.end);
        if (m->kind == CONSUMER && !m->dead) add(&h, m->consumer.cursor);
    }
    return h;
}

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
    protocol.floor_check = config->reclaimers > 0;
    protocol.layout = config->layout;
    protocol.help_limit = config->help_others ? LS_EXPLORER_PRODUCERS_MAX : 0;
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
                config->ambiguous <= LS_EXPLORER_FAULTS_MAX && config->lingering <= LS_EXPLORER_FAULTS_MAX &&
                config->reclaimers <= LS_EXPLORER_RECLAIMERS_MAX && config->checkpoints <= LS_EXPLORER_CHECKPOINTS_MAX &&
                config->rewinds <= LS_EXPLORER_REWINDS_MAX;
    *made = NULL;
    if (!fits) {
        return ls_fail(error, LS_ERROR_INVALID, "a world has 1 to %u producers, at most %u batches each, %u consumers, "
                       "%u reclaimers, %u checkpoints, %u rewinds and %u faults of a kind", LS_EXPLORER_PRODUCERS_MAX,
                       LS_EXPLORER_BATCHES_MAX, LS_EXPLORER_CONSUMERS_MAX, LS_EXPLORER_RECLAIMERS_MAX,
                       LS_EXPLORER_CHECKPOINTS_MAX, LS_EXPLORER_REWINDS_MAX, LS_EXPLORER_FAULTS_MAX);
    }
    world *w = ls_allocate_array(1, sizeof *w);
    if (w == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    w->config = config;
    w->protocol = protocol;
    w->crashes = config->crashes;
    w->zombies = config->zombies;
    w->ambiguous = config->ambiguous;
    w->lingering = config->lingering;
    w->checkpoints = config->checkpoints;
    w->rewinds = config->rewinds;
    ls_invariants_init(&w->checker, LS_CHECK_ALL, object_exists, w);
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < config->producers && result == LS_OK; i++) result = start_producer(w, i + 1, error);
    for (uint32_t i = 0; i < config->consumers && result == LS_OK; i++) result = start_consumer(w, 0, false, error);
    for (uint32_t i = 0; i < config->reclaimers && result == LS_OK; i++) result = start_reclaimer(w, error);
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
            hash outcome = outcome_of(top->world);
            bool is_new;
            if (table_add(&s->outcomes, outcome, &is_new) != LS_OK) return LS_ERROR_MEMORY;
            if (is_new) result->outcomes_digest += outcome.a ^ outcome.b;
            result->outcomes = s->outcomes.count;
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
    if (done == LS_OK && !result->violated && result->ends == 0) {
        result->violated = true;
        ls_fail(&result->violation, LS_ERROR_VIOLATED, "no path of this world ever ends");
    }
    if (done == LS_ERROR_MEMORY) ls_fail(error, done, "out of memory after %" PRIu64 " states", s.states.count);
    result->states = s.states.count;
    result->exhausted = done == LS_OK && !result->violated;
    while (s.depth > 0) pop(&s);
    ls_free(s.stack);
    ls_free(s.states.slot);
    ls_free(s.outcomes.slot);
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
    [MOVE_CHECKPOINT] = "checkpoint", [MOVE_REWIND] = "rewind",
    [MOVE_DONE_UNKNOWN] = "done-unknown", [MOVE_NOT_DONE_UNKNOWN] = "not-done-unknown", [MOVE_CONFLICT] = "conflict",
    [MOVE_DONE_EXISTS] = "done-exists", [MOVE_LINGER] = "linger", [MOVE_LAND] = "land", [MOVE_CRASH] = "crash",
    [MOVE_ZOMBIE] = "zombie"};

static void narrate(const world *w, uint32_t number, uint32_t code, FILE *out)
{
    uint32_t index = index_of(code);
    fprintf(out, "%4u  %-16s ", number, move_text[move_of(code)]);
    uint32_t who = is_of_request(move_of(code)) ? w->in_flight[index].owner : index;
    if (who == NOBODY) fputs("(nobody waits)", out);
    else if (w->machines[who].kind == CONSUMER) fprintf(out, "consumer %u", who);
    else if (w->machines[who].kind == RECLAIMER) fprintf(out, "reclaimer %u", who);
    else if (w->machines[who].kind == CHECKPOINTER) fprintf(out, "checkpoint %u", who);
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

#define HEADER "lakestream-explore-3"

ls_result ls_explorer_write(const ls_explorer_config *config, const ls_explorer_result *result, FILE *file,
                            ls_error *error)
{
    fprintf(file, HEADER " %u %u %u %u %u %u %u %u %u %u %u %u %u %u %u\n", config->producers, config->batches, config->consumers,
            config->crashes, config->zombies, config->ambiguous, config->lingering, (unsigned)config->layout,
            (unsigned)config->discovery, config->reclaimers, config->checkpoints, config->rewinds, config->orphans, config->reduced,
            config->help_others);
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
    unsigned layout = 0, discovery = 0, orphans = 0, reduced = 0, help_others = 0;
    uint32_t capacity = 0, number = 1;
    *path = NULL;
    *length = 0;
    *config = ls_explorer_default();
    bool good = fgets(line, sizeof line, file) != NULL &&
                sscanf(line, HEADER " %u %u %u %u %u %u %u %u %u %u %u %u %u %u %u", &config->producers, &config->batches,
                       &config->consumers, &config->crashes, &config->zombies, &config->ambiguous, &config->lingering,
                       &layout, &discovery, &config->reclaimers, &config->checkpoints, &config->rewinds, &orphans, &reduced,
                       &help_others) == 15 &&
                layout <= LS_LAYOUT_FULL_TAIL && discovery <= LS_DISCOVERY_GALLOP;
    config->orphans = orphans != 0;
    config->reduced = reduced != 0;
    config->help_others = help_others != 0;
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
