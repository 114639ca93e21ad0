/* world.c - producers at work (see world.h): arrivals in, machines stepped, actions out, everything counted.
 *
 * Production. A batch that becomes ready while its producer's backlog is full, or (synchronous production) while a commit
 * is under way, is held by its producer; production pauses until there is room and resumes from that moment. So no batch is
 * ever dropped, and a policy that cannot keep up shows as a published share below one, not as an endless queue.
 *
 * Common random numbers. Each producer has its own counter-based streams for start, arrivals, sizes and its policy, so the
 * k-th batch of a producer is the same under every policy that is compared.
 *
 * Lives. A client is one incarnation of a producer: one machine. The first incarnations are clients 0 to count - 1; whoever is
 * started in place of a crashed or paused one gets the next free client number, so no reply, timer or request of an old machine
 * can be taken for one of the new. A life that has been replaced but still runs is a zombie: it goes on until it is fenced. What
 * belongs to the producer and outlives its machines (its source, what is acknowledged) is its `origin`. A restarted producer takes
 * its batches again from its row's offset; those that an earlier life had taken already are ready at once.
 *
 * Drain. With drain_s, production and faults end with the measured time, and the run goes on until every batch that was ever
 * taken is acknowledged; then it waits for whatever still lingers in the network, and counts the manifest. What does not come to
 * that end in time has lost a batch or lost its way, and the run fails.
 */
#include "sim/world.h"

#include "manifest/producer.h"
#include "manifest/tgb.h"
#include "policies/oracle.h"
#include "sim/histogram.h"
#include "sim/metrics.h"
#include "sim/preprocessing.h"
#include "sim/reclaimers.h"
#include "sim/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    TIMER_WAKE = 1, TIMER_START, TIMER_ARRIVAL, TIMER_MEASURE, TIMER_SERIES, TIMER_END,
    TIMER_CRASH, TIMER_CRASH_ONCE, TIMER_RESTART, TIMER_PAUSE, TIMER_PAUSE_ONCE, TIMER_RESUME, TIMER_TAKEOVER, TIMER_LIMIT,
    TIMER_SETTLED
};

#define SERIES_POINTS_MAX 2000u

/* What reached a paused machine: it is handled when the pause is over, in this order. */
typedef struct deferred {
    uint32_t kind; /* of timer; 0: a reply */
    ls_store_reply reply;
    ls_key *listing; /* owned: the keys of a list that was answered, their sizes and ages behind them; NULL: none */
} deferred;

typedef struct member {
    ls_producer machine;
    deferred *waiting; /* owned; NULL unless paused once */
    uint32_t waiting_count, waiting_capacity;
    uint64_t next_offset; /* source offset of the next batch to take */
    uint32_t producer;
    uint32_t next_free; /* open arrivals: list of machines not in use */
    bool holding;       /* a ready batch waits for room */
    bool in_use;        /* open arrivals */
    bool alive;
    bool paused;
    bool crashing; /* at a point of the protocol inside the step under way */
} member;

/* A producer, whatever machine runs it. */
typedef struct origin {
    uint64_t published; /* batches since measurement began */
    uint64_t base_offset, taken, acknowledged; /* source offsets: before the run, taken by any life, known to be committed */
    int64_t crashed_ns; /* LS_NEVER_NS: not down */
    int64_t cores_free_ns; /* batches.law preprocessed: when the cores begin the next batch */
    uint32_t arrivals;  /* drawn so far */
    uint32_t client;    /* the newest life; NO_CLIENT while there is none */
    uint32_t lives;     /* started so far */
    uint32_t crashes_drawn, pauses_drawn, points_drawn;
} origin;

#define NO_CLIENT UINT32_MAX

typedef struct totals {
    uint64_t published, published_bytes, commits, committed_batches;
    uint64_t won, lost, throttled, aborted, proved, ambiguous;
    uint64_t requests[LS_LIST + 1][LS_OBJECT_FLOOR + 1];
    uint64_t manifest_bytes_up, manifest_bytes_down, lost_put_bytes;
    double won_put_s, lost_put_s, attempt_s;
    uint64_t gave_up;
    uint64_t crashes, fenced, recovered, recoveries, duplicates_refused; /* of the whole run */
    double recovery_s;
} totals;

/* When a version took effect and whose put it was; kept where producers help. */
typedef struct creation {
    int64_t at_ns;
    uint32_t client;
} creation;

struct ls_world {
    const ls_scenario *scenario;
    ls_driver driver;
    uint64_t seed, replication;
    ls_protocol protocol;
    ls_oracle oracle;
    ls_invariants invariants;
    bool checks;
    bool sees_effects; /* the driver tells when a version takes effect */
    creation *created; /* owned, by version */
    uint64_t created_capacity;
    const ls_manifest *initial;
    const ls_manifest *head; /* newest version that took effect, where the driver tells; else the initial one */
    member *members; /* the first lives */
    member **later;  /* the lives after them, by client - count; NULL when over, or when it is none of a producer */
    uint32_t *stations; /* by client - count: of the crew (sim/crew.h); NO_CLIENT for a producer's */
    uint32_t later_count, later_capacity;
    origin *origins;
    uint32_t count;
    bool draining, drained;
    int64_t drained_ns;
    ls_preprocessing preprocessing; /* batches.law preprocessed */
    ls_trainer *trainer; /* NULL: none */
    ls_reclaimers *reclaimers;
    uint32_t crew_stations;
    uint32_t *node_links; /* of the trainer's nodes: a client number that stands for the link; NO_CLIENT: none yet */
    uint32_t node_count;
    ls_world_probe probe;
    void *probe_context;
    void (*sight)(void *context, const ls_sight *sight);
    void *sight_context;
    uint32_t first_free;
    uint32_t *turn; /* oracle: ring of producers in order of asking */
    uint32_t turn_head, turn_count, turn_holder;
    uint32_t asking; /* the client whose machine is being stepped */
    bool turn_taken;
    bool measuring;
    int64_t measure_from_ns, end_ns;
    totals sum;
    uint64_t gave_up_before;
    ls_histogram publish_delay, won_put, lost_put;
    double series[SERIES_POINTS_MAX], step_series[SERIES_POINTS_MAX], stored_series[SERIES_POINTS_MAX];
    uint64_t series_steps;
    double stored_sum, stored_max, stored_end;
    uint64_t stored_count;
    uint32_t series_count;
    uint64_t series_published, published_ever, taken_ever;
    int64_t series_step_ns;
    uint32_t unfinished;   /* arrivals "once": producers whose batch is not yet published */
    double completion_sum_s;
    ls_random open_stream;
    ls_error error;
};

/* --- construction --------------------------------------------------------------------------------------------------- */

static uint64_t incarnation_of(const ls_world *w, uint32_t index)
{
    ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_IDENTITY, index);
    return ls_random_next(&stream) | 1;
}

static member *life_of(const ls_world *w, uint32_t client)
{
    return client < w->count ? &w->members[client] : w->later[client - w->count];
}

static bool is_open(const ls_world *w)
{
    return w->scenario->batches.law == LS_ARRIVAL_OPEN;
}

/* Entry i of the history belongs to producer i modulo their number, as if they had taken turns. Who is at work now has joined since: its
   epoch is the next one, and so are the names of its data. */
static ls_result build_initial(ls_world *w)
{
    const ls_scenario *s = w->scenario;
    uint64_t entries_wanted = s->manifest.initial_entries;
    uint32_t authors = s->producers.established ? w->count : 1;
    if (!s->producers.established && entries_wanted == 0) return LS_OK;
    ls_entry *entries = entries_wanted == 0 ? NULL : ls_allocate_array(entries_wanted, sizeof *entries);
    ls_row *rows = ls_allocate_array(authors, sizeof *rows);
    ls_result result = LS_ERROR_MEMORY;
    if (rows == NULL || (entries == NULL && entries_wanted > 0)) goto done;
    uint64_t base = s->producers.established ? 0 : w->count; /* of a lake that is joined, the history is a stranger's */
    for (uint64_t i = 0; i < entries_wanted; i++) {
        uint64_t turn = i / authors;
        entries[i] = (ls_entry){.producer = base + i % authors, .sequence = turn, .source_begin = turn,
                                .source_end = turn + 1, .size_bytes = s->batches.bytes, .epoch = 1,
                                .footer_bytes = (uint32_t)ls_tgb_footer_bytes((uint32_t)s->batches.data_parallel,
                                                                              (uint32_t)s->batches.context_parallel)};
    }
    for (uint32_t i = 0; i < authors; i++) {
        rows[i] = (ls_row){.producer = base + i, .last_version = 1, .epoch = s->producers.established ? 2 : 1,
                           .closed = !s->producers.established,
                           .next_source_offset = entries_wanted / authors + (i < entries_wanted % authors),
                           .last_commit = {.incarnation = incarnation_of(w, i), .attempt = 1}};
    }
    ls_manifest *manifest = NULL;
    ls_manifest_parts parts = {.version = 1, .id = {incarnation_of(w, 0), 1}, .entries = entries,
                               .entry_count = entries_wanted, .rows = rows, .row_count = authors};
    result = ls_manifest_build(&parts, &manifest);
    w->initial = manifest;
    w->head = ls_manifest_retain(manifest);
done:
    ls_free(entries);
    ls_free(rows);
    return result;
}

static ls_result init_member(ls_world *w, uint32_t index, int64_t now_ns)
{
    member *m = &w->members[index];
    origin *o = &w->origins[index];
    ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_POLICY, index);
    ls_producer_init(&m->machine, &w->protocol, index, incarnation_of(w, index), stream);
    m->producer = index;
    m->alive = true;
    *o = (origin){.client = index, .lives = 1, .crashed_ns = LS_NEVER_NS};
    if (!w->scenario->producers.established) return LS_OK;
    ls_result result = ls_producer_adopt(&m->machine, w->head, index, now_ns);
    o->base_offset = o->taken = o->acknowledged = m->next_offset = m->machine.source_begin;
    return result;
}

static int64_t oracle_next_turn(void *context, const ls_commit_view *view);

static void configure(ls_world *w)
{
    const ls_scenario *s = w->scenario;
    w->protocol = ls_protocol_default();
    w->protocol.layout = (ls_layout)s->manifest.layout;
    w->protocol.discovery = (ls_discovery)s->manifest.discovery;
    w->protocol.backlog_limit = (uint32_t)s->upload.backlog_batches;
    w->protocol.upload_concurrency = (uint32_t)s->upload.concurrency;
    w->protocol.instantaneous_uploads = s->upload.instantaneous;
    w->protocol.decider = ls_policy_decider(&s->policy);
    w->oracle = (ls_oracle){.context = w, .next_turn = oracle_next_turn};
    w->protocol.oracle = &w->oracle;
    w->protocol.help_limit = s->protocol.help ? (uint32_t)s->protocol.help_limit : 0;
    w->protocol.floor_check = s->reclaim.count > 0;
    w->measure_from_ns = ls_nanoseconds(s->warm_up_s > 0 ? s->warm_up_s : 0);
    w->end_ns = w->measure_from_ns + ls_nanoseconds(s->duration_s);
    double step_s = s->series_step_s > 0 ? s->series_step_s : s->duration_s / 200;
    double least_s = ls_seconds(w->end_ns) / (SERIES_POINTS_MAX - 1);
    w->series_step_ns = ls_nanoseconds(step_s > least_s ? step_s : least_s);
}

static uint32_t enlist(void *world, uint32_t station);

static ls_result gather_crew(ls_world *w, ls_error *error)
{
    const ls_scenario *s = w->scenario;
    ls_crew crew = {.scenario = s, .protocol = &w->protocol, .driver = &w->driver, .error = &w->error, .seed = w->seed,
                    .replication = w->replication, .world = w, .enlist = enlist};
    if (s->trainer.present) {
        w->trainer = ls_trainer_new(&crew, w->initial == NULL ? 0 : ls_manifest_end_step(w->initial), error);
        if (w->trainer == NULL) return LS_ERROR_INVALID;
        w->crew_stations = ls_trainer_stations(s);
        w->node_count = ls_trainer_node(w->trainer, w->crew_stations - 2) + 1;
        w->node_links = ls_allocate_array(w->node_count, sizeof *w->node_links);
        for (uint32_t i = 0; w->node_links != NULL && i < w->node_count; i++) w->node_links[i] = NO_CLIENT;
    }
    if (s->reclaim.count > 0) {
        w->reclaimers = ls_reclaimers_new(&crew, w->crew_stations);
        w->crew_stations += (uint32_t)s->reclaim.count;
    }
    bool complete = (!s->trainer.present || w->node_links != NULL) && (s->reclaim.count == 0 || w->reclaimers != NULL);
    return complete ? LS_OK : ls_fail(error, LS_ERROR_MEMORY, "out of memory for the trainer and reclaimers");
}

ls_world *ls_world_new(const ls_scenario *scenario, uint64_t seed, uint64_t replication, const ls_driver *driver,
                       ls_object_exists exists, void *exists_context, ls_error *error)
{
    ls_world *w = ls_allocate_array(1, sizeof *w);
    if (w == NULL) goto fail;
    w->scenario = scenario;
    w->driver = *driver;
    w->seed = seed;
    w->replication = replication;
    w->count = (uint32_t)scenario->producers.count;
    configure(w);
    ls_invariants_init(&w->invariants, scenario->check_everything ? LS_CHECK_ALL : LS_CHECK_NEW, exists, exists_context);
    w->checks = exists != NULL || scenario->check_everything;
    ls_histogram_init(&w->publish_delay);
    ls_histogram_init(&w->won_put);
    ls_histogram_init(&w->lost_put);
    w->open_stream = ls_random_open(seed, replication, LS_RANDOM_ARRIVAL, UINT32_MAX);
    w->members = ls_allocate_array(w->count, sizeof *w->members);
    w->turn = ls_allocate_array(w->count, sizeof *w->turn);
    w->origins = ls_allocate_array(w->count, sizeof *w->origins);
    if (w->members == NULL || w->turn == NULL || w->origins == NULL || build_initial(w) != LS_OK) goto fail;
    for (uint32_t i = 0; i < w->count; i++) {
        if (init_member(w, i, 0) != LS_OK) goto fail;
        w->members[i].next_free = i + 1;
    }
    if (w->checks && w->initial != NULL && ls_invariants_created(&w->invariants, w->initial, error) != LS_OK) goto fail;
    bool prepares = scenario->batches.law == LS_ARRIVAL_PREPROCESSED;
    bool complete = !prepares || ls_preprocessing_prepare(scenario, seed, replication, &w->preprocessing, error) == LS_OK;
    if (complete && gather_crew(w, error) == LS_OK) return w;
    ls_world_free(w);
    return NULL;
fail:
    ls_fail(error, LS_ERROR_MEMORY, "out of memory for a world of %" PRIu64 " producers and %" PRIu64 " entries",
            scenario->producers.count, scenario->manifest.initial_entries);
    ls_world_free(w);
    return NULL;
}

static void clear_life(member *m)
{
    for (uint32_t i = 0; i < m->waiting_count; i++) {
        if (m->waiting[i].kind == 0) ls_manifest_release(m->waiting[i].reply.manifest);
        ls_free(m->waiting[i].listing);
    }
    ls_free(m->waiting);
    m->waiting = NULL;
    m->waiting_count = m->waiting_capacity = 0;
    ls_producer_clear(&m->machine);
    m->alive = m->paused = m->holding = m->crashing = false;
}

void ls_world_free(ls_world *w)
{
    if (w == NULL) return;
    for (uint32_t i = 0; w->members != NULL && i < w->count; i++) clear_life(&w->members[i]);
    for (uint32_t i = 0; i < w->later_count; i++) {
        if (w->later[i] != NULL) clear_life(w->later[i]);
        ls_free(w->later[i]);
    }
    ls_preprocessing_release(&w->preprocessing);
    ls_trainer_free(w->trainer);
    ls_reclaimers_free(w->reclaimers);
    ls_free(w->node_links);
    ls_free(w->created);
    ls_free(w->stations);
    ls_free(w->later);
    ls_free(w->origins);
    ls_free(w->members);
    ls_free(w->turn);
    ls_manifest_release(w->initial);
    ls_manifest_release(w->head);
    ls_invariants_clear(&w->invariants);
    ls_histogram_clear(&w->publish_delay);
    ls_histogram_clear(&w->won_put);
    ls_histogram_clear(&w->lost_put);
    ls_free(w);
}

const ls_manifest *ls_world_initial(const ls_world *w)
{
    return w->initial;
}

const char *ls_world_error(const ls_world *w)
{
    return w->error.text;
}

const double *ls_world_series(const ls_world *w, uint32_t *count, int64_t *step_ns)
{
    *count = w->series_count;
    *step_ns = w->series_step_ns;
    return w->series;
}

bool ls_world_source_range(const ls_world *w, const ls_key *key, uint64_t *begin, uint64_t *end)
{
    if (key->kind != LS_OBJECT_DATA || key->number >= w->count || w->origins[key->number].client == NO_CLIENT) return false;
    const ls_producer *machine = &life_of(w, w->origins[key->number].client)->machine;
    return ls_producer_source_range(machine, key->sequence, begin, end);
}

int64_t ls_world_end_ns(const ls_world *w)
{
    return w->end_ns;
}

void ls_world_watch_storage(ls_world *w, ls_world_probe probe, void *context)
{
    w->probe = probe;
    w->probe_context = context;
}

void ls_world_watch(ls_world *w, void (*sight)(void *context, const ls_sight *sight), void *context)
{
    w->sight = sight;
    w->sight_context = context;
}

const double *ls_world_step_series(const ls_world *w)
{
    return w->step_series;
}

const double *ls_world_stored_series(const ls_world *w)
{
    return w->stored_series;
}

/* The crew's station of a client, NO_CLIENT for a producer's. */
static uint32_t station_of(const ls_world *w, uint32_t client)
{
    return client < w->count ? NO_CLIENT : w->stations[client - w->count];
}

uint32_t ls_world_stations(const ls_world *w)
{
    return w->count + w->crew_stations;
}

bool ls_world_link(const ls_world *w, uint32_t client, uint32_t *link, double *bytes_per_s)
{
    uint32_t station = station_of(w, client);
    if (w->trainer == NULL || station >= ls_trainer_stations(w->scenario)) return false;
    uint32_t *number = &w->node_links[ls_trainer_node(w->trainer, station)];
    if (*number == NO_CLIENT) *number = client;
    *link = *number;
    *bytes_per_s = w->scenario->trainer.node_bandwidth_bytes_per_s;
    return true;
}

uint32_t ls_world_producer(const ls_world *w, uint32_t client)
{
    if (client < w->count) return client;
    if (station_of(w, client) != NO_CLIENT) return w->count + station_of(w, client);
    return life_of(w, client) == NULL ? NO_CLIENT : life_of(w, client)->producer;
}

/* Tells who watches; in most runs nobody does. */
static void tell(const ls_world *w, ls_sight sight)
{
    if (w->sight == NULL) return;
    const member *m = sight.client == NO_CLIENT ? NULL : life_of(w, sight.client);
    sight.producer = m == NULL ? NO_CLIENT : m->producer;
    sight.machine = m == NULL ? NULL : &m->machine;
    sight.measured = w->measuring;
    w->sight(w->sight_context, &sight);
}

static void tell_change(const ls_world *w, ls_sight_kind kind, uint32_t client, int64_t now_ns)
{
    tell(w, (ls_sight){.kind = kind, .now_ns = now_ns, .client = client});
}

/* --- the oracle: producers take turns in the order in which they asked, one attempt in flight ----------------------- */

static int64_t oracle_next_turn(void *context, const ls_commit_view *view)
{
    ls_world *w = context;
    uint32_t index = w->asking;
    if (view->pending_batches == 0) return LS_NEVER_NS;
    if (w->turn_taken && w->turn_holder == index) w->turn_taken = false; /* its attempt ended; it asks anew */
    if (!w->turn_taken && w->turn_count == 0) {
        w->turn_taken = true;
        w->turn_holder = index;
        return view->now_ns;
    }
    for (uint32_t i = 0; i < w->turn_count; i++) {
        if (w->turn[(w->turn_head + i) % w->count] == index) return LS_NEVER_NS;
    }
    w->turn[(w->turn_head + w->turn_count++) % w->count] = index;
    return LS_NEVER_NS;
}

static ls_result step(ls_world *w, uint32_t index, const ls_event *event);

/* The holder's put took effect, or its attempt ended: the next in line may read now. */
static ls_result oracle_pass_turn(ls_world *w, uint32_t index, int64_t now_ns)
{
    if (w->turn_taken && w->turn_holder != index) return LS_OK;
    w->turn_taken = false;
    while (w->turn_count > 0 && !w->turn_taken) {
        uint32_t next = w->turn[w->turn_head];
        w->turn_head = (w->turn_head + 1) % w->count;
        w->turn_count--;
        const ls_producer *machine = &w->members[next].machine;
        bool has_nothing = machine->joined && machine->ready_count == 0;
        if (has_nothing || ls_producer_is_committing(machine)) continue;
        w->turn_taken = true;
        w->turn_holder = next;
        ls_event event = {.kind = LS_EVENT_GO, .now_ns = now_ns};
        ls_result result = step(w, next, &event);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static bool uses_oracle(const ls_world *w)
{
    return w->scenario->policy.policy->simulator_only;
}

/* --- carrying out actions --------------------------------------------------------------------------------------------- */

static void count_request(ls_world *w, const ls_store_request *request)
{
    if (!w->measuring) return;
    w->sum.requests[request->operation][request->key.kind]++;
    if (request->operation == LS_PUT && request->key.kind == LS_OBJECT_MANIFEST) {
        w->sum.manifest_bytes_up += request->body_bytes;
    }
}

static ls_result fail_step(ls_world *w, ls_result result, uint32_t index, const char *what)
{
    return ls_fail(&w->error, result, "producer %" PRIu32 ": %s", index, what);
}

static ls_result set_timer(ls_world *w, int64_t at_ns, uint32_t kind, uint32_t entity)
{
    if (at_ns == LS_NEVER_NS) return LS_OK;
    return w->driver.timer(w->driver.context, at_ns, kind, entity, 0);
}

/* Offsets below source_end of a producer are now known to be committed; returns how many of them are news. */
static uint32_t acknowledge(ls_world *w, uint32_t producer, uint64_t source_end, int64_t now_ns)
{
    origin *o = &w->origins[producer];
    if (source_end <= o->acknowledged) return 0; /* a zombie hears late of what its successor found in the row */
    uint32_t news = (uint32_t)(source_end - o->acknowledged);
    o->acknowledged = source_end;
    w->published_ever += news;
    if (w->scenario->batches.law == LS_ARRIVAL_ONCE) {
        w->unfinished--;
        w->completion_sum_s += ls_seconds(now_ns);
    }
    if (!w->measuring) return news;
    o->published += news;
    w->sum.published += news;
    return news;
}

/* What others have published is there from the moment their put took effect, whenever its producer hears of it. (When several puts
 * moved the row on between two looks, the last of them counts for all.) */
static int64_t published_ns(const ls_world *w, uint32_t client, uint64_t version, int64_t now_ns)
{
    if (version >= w->created_capacity || w->created[version].at_ns == 0) return now_ns;
    return w->created[version].client == client ? now_ns : w->created[version].at_ns;
}

static ls_result note_creation(ls_world *w, int64_t now_ns, uint32_t client, uint64_t version)
{
    if (w->protocol.help_limit == 0) return LS_OK;
    if (version >= w->created_capacity) {
        uint64_t capacity = 2 * version + 64;
        creation *grown = ls_allocate_array(capacity, sizeof *grown);
        if (grown == NULL) return LS_ERROR_MEMORY;
        if (w->created != NULL) memcpy(grown, w->created, w->created_capacity * sizeof *grown);
        ls_free(w->created);
        w->created = grown;
        w->created_capacity = capacity;
    }
    w->created[version] = (creation){.at_ns = now_ns, .client = client};
    return LS_OK;
}

static ls_result note_published(ls_world *w, uint32_t client, const ls_published_report *published, int64_t now_ns)
{
    member *m = life_of(w, client);
    if (w->checks) {
        ls_result result = ls_invariants_acknowledged(&w->invariants, m->producer, published->source_end, &w->error);
        if (result != LS_OK) return result;
    }
    uint32_t news = acknowledge(w, m->producer, published->source_end, now_ns);
    if (!w->measuring || news == 0) return LS_OK;
    w->sum.published_bytes += published->bytes;
    w->sum.commits++;
    int64_t visible_ns = published_ns(w, client, published->version, now_ns);
    uint32_t first = published->count > news ? published->count - news : 0;
    for (uint32_t i = first; i < published->count; i++) {
        int64_t ready_ns = ls_producer_ready_ns(&m->machine, published->first_sequence + i);
        if (ls_histogram_record(&w->publish_delay, visible_ns > ready_ns ? visible_ns - ready_ns : 0) != LS_OK) return LS_ERROR_MEMORY;
    }
    return LS_OK;
}

static ls_result note_attempt(ls_world *w, const ls_attempt_report *attempt, int64_t now_ns)
{
    if (!w->measuring) return LS_OK;
    totals *sum = &w->sum;
    sum->ambiguous += attempt->was_ambiguous;
    sum->attempt_s += ls_seconds(now_ns - attempt->start_ns);
    switch (attempt->outcome) {
    case LS_ATTEMPT_WON:
        sum->won++;
        sum->won_put_s += ls_seconds(attempt->put_ns);
        return ls_histogram_record(&w->won_put, attempt->put_ns);
    case LS_ATTEMPT_LOST:
        sum->lost++;
        sum->lost_put_s += ls_seconds(attempt->put_ns);
        return ls_histogram_record(&w->lost_put, attempt->put_ns);
    case LS_ATTEMPT_THROTTLED: sum->throttled++; break;
    case LS_ATTEMPT_ABORTED: sum->aborted++; break;
    case LS_ATTEMPT_PROVED: sum->proved++; break;
    case LS_ATTEMPT_HELPED: break; /* its requests are counted; it is neither won nor lost */
    }
    return LS_OK;
}

/* --- the lives of a producer ------------------------------------------------------------------------------------------- */

static bool can_be_replaced(const ls_world *w)
{
    return ls_faults_replace(&w->scenario->faults);
}

static bool faults_are_over(const ls_world *w, int64_t now_ns)
{
    return now_ns >= w->end_ns;
}

static ls_result schedule_arrival(ls_world *w, uint32_t client, int64_t now_ns, bool first);

/* While draining: what another life had taken and did not publish falls to the newest one. */
static ls_result pass_on(ls_world *w, uint32_t producer, int64_t now_ns)
{
    uint32_t client = w->origins[producer].client;
    return !w->draining || client == NO_CLIENT ? LS_OK : schedule_arrival(w, client, now_ns, false);
}

/* Gives a life up. If its producer has no other, the next one starts after restart_s. */
static ls_result end_life(ls_world *w, uint32_t client, int64_t now_ns)
{
    member *m = life_of(w, client);
    origin *o = &w->origins[m->producer];
    uint32_t producer = m->producer;
    tell_change(w, LS_SIGHT_ENDED, client, now_ns);
    clear_life(m);
    if (client >= w->count) {
        ls_free(m);
        w->later[client - w->count] = NULL;
    }
    if (o->client != client) return pass_on(w, producer, now_ns);
    o->client = NO_CLIENT;
    for (uint32_t i = 0; i < w->later_count + 1; i++) { /* a zombie that came back in time may own the row: it goes on */
        uint32_t other = i == 0 ? producer : w->count + w->later_count - i;
        const member *left = life_of(w, other);
        if (left == NULL || !left->alive || left->producer != producer) continue;
        o->client = other;
        o->crashed_ns = LS_NEVER_NS;
        return pass_on(w, producer, now_ns);
    }
    return set_timer(w, now_ns + ls_nanoseconds(w->scenario->faults.restart_s), TIMER_RESTART, producer);
}

static ls_result crash(ls_world *w, uint32_t client, int64_t now_ns)
{
    origin *o = &w->origins[life_of(w, client)->producer];
    w->sum.crashes++;
    tell_change(w, LS_SIGHT_CRASHED, client, now_ns);
    if (o->client == client && o->crashed_ns == LS_NEVER_NS) o->crashed_ns = now_ns;
    return end_life(w, client, now_ns);
}

/* Does the passage of a point of the protocol end in a crash? */
static bool crashes_at(ls_world *w, uint32_t client, ls_crash_point point, int64_t now_ns)
{
    const ls_fault_config *faults = &w->scenario->faults;
    if (faults->crash_point != point || faults->crash_share <= 0 || faults_are_over(w, now_ns)) return false;
    uint32_t producer = life_of(w, client)->producer;
    ls_random stream = ls_faults_stream(w->seed, w->replication, LS_FAULT_CRASH_POINTS, producer,
                                        w->origins[producer].points_drawn++);
    return ls_random_uniform(&stream) < faults->crash_share;
}

static ls_result step(ls_world *w, uint32_t client, const ls_event *event);

static ls_result grow_later(ls_world *w)
{
    if (w->later_count < w->later_capacity) return LS_OK;
    uint32_t capacity = w->later_capacity == 0 ? 16 : 2 * w->later_capacity;
    member **grown = ls_reallocate(w->later, capacity * sizeof(member *));
    if (grown == NULL) return LS_ERROR_MEMORY;
    w->later = grown;
    uint32_t *stations = ls_reallocate(w->stations, capacity * sizeof *stations);
    if (stations == NULL) return LS_ERROR_MEMORY;
    w->stations = stations;
    w->later_capacity = capacity;
    return LS_OK;
}

/* A client number that nobody had, for a producer's life or (life NULL) for a machine of the crew. */
static uint32_t take_client(ls_world *w, member *life, uint32_t station)
{
    if (grow_later(w) != LS_OK) return NO_CLIENT;
    w->stations[w->later_count] = station;
    w->later[w->later_count] = life;
    return w->count + w->later_count++;
}

static uint32_t enlist(void *world, uint32_t station)
{
    return take_client(world, NULL, station);
}

/* Another incarnation of a producer starts, and joins by a commit of its own. */
static ls_result start_life(ls_world *w, uint32_t producer, int64_t now_ns)
{
    origin *o = &w->origins[producer];
    member *m = ls_allocate_array(1, sizeof *m);
    uint32_t client = m == NULL ? NO_CLIENT : take_client(w, m, NO_CLIENT);
    if (client == NO_CLIENT) {
        ls_free(m);
        return fail_step(w, LS_ERROR_MEMORY, producer, "out of memory for its next incarnation");
    }
    ls_random identity = ls_random_open(w->seed, w->replication, LS_RANDOM_IDENTITY, producer);
    identity.index = o->lives;
    ls_random policy = ls_random_open(w->seed, w->replication, LS_RANDOM_POLICY, producer);
    policy.index = (uint64_t)o->lives << 32;
    ls_producer_init(&m->machine, &w->protocol, producer, ls_random_next(&identity) | 1, policy);
    m->producer = producer;
    m->alive = true;
    o->client = client;
    o->lives++;
    tell_change(w, LS_SIGHT_STARTED, client, now_ns);
    ls_event event = {.kind = LS_EVENT_START, .now_ns = now_ns};
    return step(w, client, &event);
}

static ls_result note_joined(ls_world *w, uint32_t client, uint64_t source_offset, int64_t now_ns)
{
    member *m = life_of(w, client);
    origin *o = &w->origins[m->producer];
    m->next_offset = source_offset;
    if (o->lives == 1) return set_timer(w, now_ns, TIMER_ARRIVAL, client);
    if (w->checks) {
        ls_result result = ls_invariants_acknowledged(&w->invariants, m->producer, source_offset, &w->error);
        if (result != LS_OK) return result;
    }
    w->sum.recovered += acknowledge(w, m->producer, source_offset, now_ns);
    if (o->crashed_ns != LS_NEVER_NS) {
        w->sum.recoveries++;
        w->sum.recovery_s += ls_seconds(now_ns - o->crashed_ns);
        o->crashed_ns = LS_NEVER_NS;
    }
    o->cores_free_ns = now_ns;
    return schedule_arrival(w, client, now_ns, false);
}

static ls_result note_fenced(ls_world *w, uint32_t client)
{
    member *m = life_of(w, client);
    if (!can_be_replaced(w)) return fail_step(w, LS_ERROR_VIOLATED, m->producer, "was fenced although nobody restarted it");
    w->sum.fenced++;
    w->sum.duplicates_refused += m->machine.ready_count;
    return LS_OK;
}

static void drop_request(const ls_store_request *request)
{
    if (request->operation == LS_PUT) ls_manifest_release(request->manifest);
}

static ls_result send(ls_world *w, uint32_t client, const ls_store_request *request, int64_t now_ns)
{
    member *m = life_of(w, client);
    bool commits = request->operation == LS_PUT && request->key.kind == LS_OBJECT_MANIFEST;
    if (commits && crashes_at(w, client, LS_CRASH_BEFORE_PUT, now_ns)) {
        m->crashing = true;
        drop_request(request);
        return LS_OK;
    }
    count_request(w, request);
    tell(w, (ls_sight){.kind = LS_SIGHT_REQUEST, .now_ns = now_ns, .client = client, .request = request});
    ls_result result = w->driver.submit(w->driver.context, client, request);
    if (result == LS_OK && commits && crashes_at(w, client, LS_CRASH_AFTER_PUT_SENT, now_ns)) m->crashing = true;
    return result;
}

static ls_result carry_out(ls_world *w, uint32_t client, const ls_actions *actions, int64_t now_ns, bool *attempt_ended)
{
    ls_result result = LS_OK;
    const member *m = life_of(w, client);
    for (uint32_t i = 0; i < actions->count && result == LS_OK; i++) {
        const ls_action *action = &actions->item[i];
        if (action->kind != LS_ACTION_REQUEST) {
            tell(w, (ls_sight){.kind = LS_SIGHT_ACTION, .now_ns = now_ns, .client = client, .action = action});
        }
        switch (action->kind) {
        case LS_ACTION_REQUEST:
            if (m->crashing) drop_request(&action->request);
            else result = send(w, client, &action->request, now_ns);
            break;
        case LS_ACTION_WAKE: result = set_timer(w, action->wake_ns, TIMER_WAKE, client); break;
        case LS_ACTION_PUBLISHED: result = note_published(w, client, &action->published, now_ns); break;
        case LS_ACTION_ATTEMPT:
            *attempt_ended = true;
            result = note_attempt(w, &action->attempt, now_ns);
            break;
        case LS_ACTION_JOINED: result = note_joined(w, client, action->source_offset, now_ns); break;
        case LS_ACTION_FENCED: result = note_fenced(w, client); break;
        case LS_ACTION_FAILED:
            return fail_step(w, LS_ERROR_IO, m->producer, "the store denied or garbled a request; see the store's message");
        case LS_ACTION_CHECKPOINTED:
        case LS_ACTION_GAVE_UP:
        case LS_ACTION_WOULD_DELETE:
        case LS_ACTION_RECLAIMED:
        case LS_ACTION_REFUSED:
        case LS_ACTION_FINISHED:
        case LS_ACTION_STEP:
        case LS_ACTION_BEHIND: break;
        }
    }
    return result;
}

/* --- batches ---------------------------------------------------------------------------------------------------------- */

/* The size of the batch that begins at a source offset: the same whenever, and however often, it is made. */
static uint64_t draw_bytes(ls_world *w, uint32_t producer, uint64_t offset)
{
    const ls_scenario *s = w->scenario;
    double bytes = (double)s->batches.bytes, sigma = s->batches.bytes_sigma;
    if (sigma > 0) {
        ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_BATCH_BYTES, producer);
        stream.index = offset - w->origins[producer].base_offset;
        bytes *= exp(sigma * ls_random_normal(&stream) - 0.5 * sigma * sigma);
    }
    if (s->batches.law == LS_ARRIVAL_PREPROCESSED) {
        return ls_preprocessing_batch_bytes(&w->preprocessing) +
               ls_tgb_footer_bytes((uint32_t)s->batches.data_parallel, (uint32_t)s->batches.context_parallel);
    }
    double least = (double)ls_tgb_footer_bytes((uint32_t)s->batches.data_parallel, (uint32_t)s->batches.context_parallel);
    return (uint64_t)(bytes < least ? least : bytes);
}

/* Batches that an earlier life of the producer had taken are ready: their source is still there. */
static bool takes_again(const ls_world *w, const member *m)
{
    return m->next_offset < w->origins[m->producer].taken;
}

/* Producers pause when they are so far ahead of the trainer; what an earlier life had taken is made again in any case. */
static bool leads_too_far(const ls_world *w, const member *m)
{
    uint64_t lead = w->scenario->trainer.lead_batches;
    if (w->trainer == NULL || lead == 0 || w->draining || takes_again(w, m)) return false;
    uint64_t begun = w->initial == NULL ? 0 : ls_manifest_end_step(w->initial);
    return w->taken_ever >= lead + ls_trainer_step(w->trainer) - begun;
}

static bool has_room(const ls_world *w, const member *m)
{
    return ls_producer_has_room(&m->machine) && !leads_too_far(w, m) &&
           !(w->scenario->upload.synchronous && ls_producer_is_committing(&m->machine));
}

/* Producer i of n makes batches at the mean rate times spread^(i / (n - 1)), over the mean of that. */
static double rate_of(const ls_world *w, uint32_t producer)
{
    double rate_per_s = w->scenario->batches.rate_per_s, spread = w->scenario->batches.rate_spread;
    if (!(spread > 1) || w->count < 2) return rate_per_s;
    double step = pow(spread, 1.0 / (w->count - 1.0));
    double mean = (spread * step - 1) / ((step - 1) * w->count); /* of a geometric series */
    return rate_per_s * pow(step, producer) / mean;
}

/* Seconds until a producer's next batch after the one before; regular arrivals begin at a random phase. */
static double draw_gap_s(ls_world *w, uint32_t producer, bool first)
{
    const ls_scenario *s = w->scenario;
    ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_ARRIVAL, producer);
    stream.index = w->origins[producer].arrivals++;
    if (s->batches.law == LS_ARRIVAL_POISSON) {
        if (s->batches.burst_batches > 1 && stream.index % s->batches.burst_batches != 0) return 0.0; /* with the one before */
        double burst = s->batches.burst_batches > 1 ? (double)s->batches.burst_batches : 1.0;
        return burst * ls_random_exponential(&stream) / rate_of(w, producer);
    }
    if (s->batches.law == LS_ARRIVAL_REGULAR) return (first ? ls_random_uniform(&stream) : 1.0) / s->batches.rate_per_s;
    return 0.0;
}

/* When a producer's next batch is prepared, the one before being delivered now. */
static int64_t prepared_ns(ls_world *w, uint32_t producer, int64_t now_ns)
{
    origin *o = &w->origins[producer];
    double done_s, share_s = ls_preprocessing_batch_s(&w->preprocessing, producer, o->arrivals++, &done_s);
    int64_t begin_ns = o->cores_free_ns;
    o->cores_free_ns = begin_ns + ls_nanoseconds(share_s);
    int64_t ready_ns = begin_ns + ls_nanoseconds(done_s);
    return ready_ns > now_ns ? ready_ns : now_ns;
}

static ls_result deliver_batch(ls_world *w, uint32_t index, int64_t now_ns);

static ls_result look_for_end(ls_world *w, int64_t now_ns);

/* One event for one machine, and what follows from it, until nothing more follows at this instant. */
static ls_result step(ls_world *w, uint32_t client, const ls_event *event)
{
    member *m = life_of(w, client);
    ls_actions actions;
    bool attempt_ended = false;
    uint32_t gave_up = m->machine.gave_up;
    w->asking = client;
    ls_result result = ls_producer_step(&m->machine, event, &actions);
    if (result != LS_OK) return fail_step(w, result, m->producer, ls_result_name(result));
    if (w->measuring) w->sum.gave_up += m->machine.gave_up - gave_up;
    result = carry_out(w, client, &actions, event->now_ns, &attempt_ended);
    if (result != LS_OK) return result;
    if (m->crashing) return crash(w, client, event->now_ns);
    if (m->machine.end == LS_PRODUCER_FENCED) {
        result = end_life(w, client, event->now_ns);
        return result == LS_OK ? look_for_end(w, event->now_ns) : result;
    }
    if (attempt_ended && uses_oracle(w) && !ls_producer_is_committing(&m->machine)) {
        result = oracle_pass_turn(w, client, event->now_ns);
        if (result != LS_OK) return result;
    }
    if (attempt_ended && is_open(w)) { /* tried once, and is gone */
        tell_change(w, LS_SIGHT_ENDED, client, event->now_ns);
        ls_producer_clear(&m->machine);
        m->in_use = false;
        m->next_free = w->first_free;
        w->first_free = client;
        return LS_OK;
    }
    if (w->scenario->batches.law == LS_ARRIVAL_ONCE && w->unfinished == 0 && w->scenario->drain_s <= 0) {
        w->driver.stop(w->driver.context);
    }
    if (m->holding && has_room(w, m)) return deliver_batch(w, client, event->now_ns);
    return w->draining ? look_for_end(w, event->now_ns) : LS_OK;
}

static ls_result schedule_arrival(ls_world *w, uint32_t client, int64_t now_ns, bool first)
{
    member *m = life_of(w, client);
    if (takes_again(w, m)) return set_timer(w, now_ns, TIMER_ARRIVAL, client);
    if (w->draining) return LS_OK;
    switch ((ls_arrival_law)w->scenario->batches.law) {
    case LS_ARRIVAL_POISSON:
    case LS_ARRIVAL_REGULAR:
        return set_timer(w, now_ns + ls_nanoseconds(draw_gap_s(w, m->producer, first)), TIMER_ARRIVAL, client);
    case LS_ARRIVAL_PREPROCESSED:
        if (first) w->origins[m->producer].cores_free_ns = now_ns;
        return set_timer(w, prepared_ns(w, m->producer, now_ns), TIMER_ARRIVAL, client);
    case LS_ARRIVAL_CLOSED: m->holding = true; return LS_OK; /* ready as soon as there is room */
    case LS_ARRIVAL_ONCE:
        return m->next_offset == w->origins[m->producer].base_offset ? set_timer(w, now_ns, TIMER_ARRIVAL, client) : LS_OK;
    case LS_ARRIVAL_OPEN: break;
    }
    return LS_OK;
}

static ls_result deliver_batch(ls_world *w, uint32_t client, int64_t now_ns)
{
    member *m = life_of(w, client);
    if (m->holding) w->origins[m->producer].cores_free_ns = now_ns; /* production had paused */
    m->holding = false;
    if (w->draining && !takes_again(w, m)) return look_for_end(w, now_ns);
    uint64_t offset = m->next_offset++;
    origin *o = &w->origins[m->producer];
    if (o->taken < m->next_offset) {
        o->taken = m->next_offset;
        w->taken_ever++;
    }
    ls_result result = schedule_arrival(w, client, now_ns, false);
    if (result != LS_OK) return result;
    ls_event event = {.kind = LS_EVENT_BATCH, .now_ns = now_ns, .batch_bytes = draw_bytes(w, m->producer, offset),
                      .batch_source_count = 1,
                      .batch_footer_bytes = (uint32_t)ls_tgb_footer_bytes((uint32_t)w->scenario->batches.data_parallel,
                                                                          (uint32_t)w->scenario->batches.context_parallel)};
    return step(w, client, &event);
}

static ls_result arrive(ls_world *w, uint32_t client, int64_t now_ns)
{
    member *m = life_of(w, client);
    if (has_room(w, m)) return deliver_batch(w, client, now_ns);
    m->holding = true;
    return LS_OK;
}

/* --- open arrivals: a Poisson stream of attempts, each by a machine that tries once ---------------------------------- */

static ls_result open_arrival(ls_world *w, int64_t now_ns)
{
    double gap_s = ls_random_exponential(&w->open_stream) / w->scenario->batches.rate_per_s;
    ls_result result = set_timer(w, now_ns + ls_nanoseconds(gap_s), TIMER_ARRIVAL, UINT32_MAX);
    if (result != LS_OK) return result;
    uint32_t index = w->first_free;
    if (index >= w->count) {
        return ls_fail(&w->error, LS_ERROR_LIMIT, "producers.count: all %" PRIu32 " machines are busy with open attempts; "
                       "give more than rate_per_s times the longest attempt", w->count);
    }
    member *m = &w->members[index];
    w->first_free = m->next_free;
    m->in_use = true;
    ls_random policy = m->machine.random;
    ls_producer_init(&m->machine, &w->protocol, index, 0, policy);
    result = ls_producer_adopt(&m->machine, w->head, index, now_ns);
    if (result != LS_OK) return fail_step(w, result, index, "cannot adopt its row");
    m->next_offset = w->origins[index].taken = w->origins[index].acknowledged = m->machine.source_begin;
    return deliver_batch(w, index, now_ns);
}

/* --- faults of producers, and the end ------------------------------------------------------------------------------- */

static ls_result schedule_fault(ls_world *w, uint32_t producer, int64_t now_ns, bool pause)
{
    const ls_fault_config *faults = &w->scenario->faults;
    double rate_per_s = pause ? faults->pause_rate_per_s : faults->crash_rate_per_s;
    if (rate_per_s <= 0) return LS_OK;
    origin *o = &w->origins[producer];
    ls_random stream = ls_faults_stream(w->seed, w->replication, pause ? LS_FAULT_PAUSES : LS_FAULT_CRASHES, producer,
                                        pause ? o->pauses_drawn++ : o->crashes_drawn++);
    int64_t at_ns = now_ns + ls_nanoseconds(ls_random_exponential(&stream) / rate_per_s);
    return at_ns < w->end_ns ? set_timer(w, at_ns, pause ? TIMER_PAUSE : TIMER_CRASH, producer) : LS_OK;
}

static ls_result schedule_faults(ls_world *w)
{
    const ls_fault_config *faults = &w->scenario->faults;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < w->count && result == LS_OK; i++) {
        result = schedule_fault(w, i, 0, false);
        if (result == LS_OK) result = schedule_fault(w, i, 0, true);
        if (result == LS_OK && faults->crash_at_s > 0 && i < faults->crash_at_count) {
            result = set_timer(w, ls_nanoseconds(faults->crash_at_s), TIMER_CRASH_ONCE, i);
        }
        if (result == LS_OK && faults->pause_at_s > 0 && i < faults->pause_at_count) {
            result = set_timer(w, ls_nanoseconds(faults->pause_at_s), TIMER_PAUSE_ONCE, i);
        }
    }
    return result;
}

static ls_result crash_producer(ls_world *w, uint32_t producer, int64_t now_ns)
{
    uint32_t client = w->origins[producer].client;
    return client == NO_CLIENT || faults_are_over(w, now_ns) ? LS_OK : crash(w, client, now_ns);
}

static ls_result pause_producer(ls_world *w, uint32_t producer, int64_t now_ns)
{
    const ls_fault_config *faults = &w->scenario->faults;
    uint32_t client = w->origins[producer].client;
    if (client == NO_CLIENT || faults_are_over(w, now_ns) || life_of(w, client)->paused) return LS_OK;
    life_of(w, client)->paused = true;
    tell_change(w, LS_SIGHT_PAUSED, client, now_ns);
    ls_result result = set_timer(w, now_ns + ls_nanoseconds(faults->pause_s), TIMER_RESUME, client);
    if (result != LS_OK || faults->takeover_s <= 0 || faults->takeover_s >= faults->pause_s) return result;
    return set_timer(w, now_ns + ls_nanoseconds(faults->takeover_s), TIMER_TAKEOVER, client);
}

/* What a reply lists is the store's only until it has been handed on: a machine that sleeps gets a copy. */
static ls_result keep_listing(deferred *d)
{
    ls_store_reply *reply = &d->reply;
    if (reply->list_keys == NULL || reply->list_count == 0) return LS_OK;
    size_t count = (size_t)reply->list_count;
    d->listing = ls_allocate_array(count, sizeof(ls_key) + sizeof(uint64_t) + sizeof(int64_t));
    if (d->listing == NULL) return LS_ERROR_MEMORY;
    uint64_t *bytes = (uint64_t *)(d->listing + count);
    int64_t *ages_ns = (int64_t *)(bytes + count);
    memcpy(d->listing, reply->list_keys, count * sizeof *d->listing);
    reply->list_keys = d->listing;
    if (reply->list_bytes != NULL) reply->list_bytes = memcpy(bytes, reply->list_bytes, count * sizeof *bytes);
    if (reply->list_ages_ns != NULL) reply->list_ages_ns = memcpy(ages_ns, reply->list_ages_ns, count * sizeof *ages_ns);
    return LS_OK;
}

static ls_result defer(member *m, uint32_t kind, const ls_store_reply *reply)
{
    if (m->waiting_count == m->waiting_capacity) {
        uint32_t capacity = m->waiting_capacity == 0 ? 4 : 2 * m->waiting_capacity;
        deferred *grown = ls_reallocate(m->waiting, capacity * sizeof *grown);
        if (grown == NULL) return LS_ERROR_MEMORY;
        m->waiting = grown;
        m->waiting_capacity = capacity;
    }
    m->waiting[m->waiting_count++] = (deferred){.kind = kind};
    if (reply == NULL) return LS_OK;
    m->waiting[m->waiting_count - 1].reply = *reply;
    return keep_listing(&m->waiting[m->waiting_count - 1]);
}

/* The pause is over: everything that came meanwhile is handled in its order. The machine may end on the way. */
static ls_result resume(ls_world *w, uint32_t client, int64_t now_ns)
{
    member *m = life_of(w, client);
    m->paused = false;
    tell_change(w, LS_SIGHT_RESUMED, client, now_ns);
    deferred *waiting = m->waiting;
    uint32_t count = m->waiting_count;
    m->waiting = NULL;
    m->waiting_count = m->waiting_capacity = 0;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < count; i++) {
        m = life_of(w, client);
        if (result == LS_OK && m != NULL && m->alive) {
            result = waiting[i].kind == 0 ? ls_world_reply(w, now_ns, client, &waiting[i].reply)
                                          : ls_world_timer(w, now_ns, waiting[i].kind, client, 0);
        } else if (waiting[i].kind == 0) {
            ls_manifest_release(waiting[i].reply.manifest);
        }
        ls_free(waiting[i].listing);
    }
    ls_free(waiting);
    return result;
}

static uint64_t unpublished(const ls_world *w)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->count; i++) sum += w->origins[i].taken - w->origins[i].acknowledged;
    return sum;
}

/* While draining: is everything published? Then wait for what may still linger in the network, and for the last zombie. */
static ls_result look_for_end(ls_world *w, int64_t now_ns)
{
    if (!w->draining || w->drained || unpublished(w) > 0) return LS_OK;
    const ls_fault_config *faults = &w->scenario->faults;
    w->drained = true;
    w->drained_ns = now_ns;
    double settle_s = faults->timeout_s + faults->linger_s + faults->pause_s + faults->restart_s + 1;
    return set_timer(w, now_ns + ls_nanoseconds(settle_s), TIMER_SETTLED, 0);
}

static ls_result begin_drain(ls_world *w, int64_t now_ns)
{
    w->measuring = false;
    tell_change(w, LS_SIGHT_MEASURED, NO_CLIENT, now_ns);
    if (w->trainer != NULL) ls_trainer_calm(w->trainer);
    if (w->reclaimers != NULL) ls_reclaimers_calm(w->reclaimers);
    w->stored_end = w->probe == NULL ? NAN : w->probe(w->probe_context);
    if (w->scenario->drain_s <= 0) {
        w->driver.stop(w->driver.context);
        return LS_OK;
    }
    w->draining = true;
    ls_result result = set_timer(w, now_ns + ls_nanoseconds(w->scenario->drain_s), TIMER_LIMIT, 0);
    for (uint32_t i = 0; i < w->count && result == LS_OK; i++) result = pass_on(w, i, now_ns);
    return result == LS_OK ? look_for_end(w, now_ns) : result;
}

static ls_result fail_drain(ls_world *w)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < w->count; i++) {
        const origin *o = &w->origins[i], *before = &w->origins[worst];
        if (o->taken - o->acknowledged > before->taken - before->acknowledged) worst = i;
    }
    const origin *o = &w->origins[worst];
    return ls_fail(&w->error, LS_ERROR_VIOLATED, "no progress: %" PRIu64 " batches are not published %g s after production and faults "
                   "ended; producer %" PRIu32 " took offsets below %" PRIu64 " and heard of those below %" PRIu64, unpublished(w),
                   w->scenario->drain_s, worst, o->taken, o->acknowledged);
}

#define UNLISTED UINT64_MAX /* no batch of this producer is listed (any more) */

/* One producer's row must stand at what it took. That covers what is trimmed: the entries' own order was checked version by version. */
static ls_result audit_rows(ls_world *w, const uint64_t *next)
{
    uint32_t rows = w->head == NULL ? 0 : ls_manifest_row_count(w->head);
    for (uint32_t slot = 0; slot < rows; slot++) {
        const ls_row *row = ls_manifest_row(w->head, slot);
        if (row->producer >= w->count || row->next_source_offset == w->origins[row->producer].taken) continue;
        return ls_fail(&w->error, LS_ERROR_VIOLATED, "producer %" PRIu64 " took %" PRIu64 " batches, its row in the last manifest stands "
                       "at %" PRIu64, row->producer, w->origins[row->producer].taken, row->next_source_offset);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t listed = next[i];
        if (listed == w->origins[i].taken || (listed == UNLISTED && (rows == 0 || ls_manifest_trim_step(w->head) > 0))) continue;
        return ls_fail(&w->error, LS_ERROR_VIOLATED, "producer %" PRIu32 " took %" PRIu64 " batches, the last manifest lists %" PRIu64,
                       i, w->origins[i].taken, listed);
    }
    return LS_OK;
}

/* The last manifest against what was taken: each source offset of each producer once, in order, none missing, none invented. Where
   its beginning is trimmed, the first batch listed of a producer says where that producer's count goes on. */
static ls_result audit(ls_world *w)
{
    uint64_t *next = ls_allocate_array(w->count, sizeof *next);
    if (next == NULL) return LS_ERROR_MEMORY;
    ls_result result = LS_OK;
    uint64_t begin = w->head == NULL ? 0 : ls_manifest_trim_step(w->head), end = w->head == NULL ? 0 : ls_manifest_end_step(w->head);
    for (uint32_t i = 0; i < w->count; i++) next[i] = begin > 0 ? UNLISTED : 0;
    for (uint64_t step_number = begin; step_number < end && result == LS_OK; step_number++) {
        ls_entry entry;
        if (!ls_manifest_entry(w->head, step_number, &entry)) {
            result = ls_fail(&w->error, LS_ERROR_VIOLATED, "the last manifest lists steps %" PRIu64 " to %" PRIu64 ", but not step %" PRIu64,
                             begin, end, step_number);
            continue;
        }
        if (entry.producer >= w->count) continue; /* the stranger's history of a lake that was joined */
        uint64_t expected = next[entry.producer] == UNLISTED ? entry.source_begin : next[entry.producer];
        if (entry.source_begin != expected || entry.source_end != entry.source_begin + 1) {
            result = ls_fail(&w->error, LS_ERROR_VIOLATED, "step %" PRIu64 " of the last manifest holds offset %" PRIu64 " of producer %"
                             PRIu64 ", expected offset %" PRIu64, step_number, entry.source_begin, entry.producer, expected);
        }
        next[entry.producer] = entry.source_end;
    }
    if (result == LS_OK) result = audit_rows(w, next);
    ls_free(next);
    return result;
}

static ls_result finish_drain(ls_world *w)
{
    if (unpublished(w) > 0) return fail_drain(w); /* nobody takes new batches while draining, so none can have come back */
    ls_result result = audit(w);
    if (result == LS_OK) w->driver.stop(w->driver.context);
    return result;
}

/* --- the driver's answers ----------------------------------------------------------------------------------------------- */

ls_result ls_world_begin(ls_world *w)
{
    const ls_scenario *s = w->scenario;
    if (s->batches.law == LS_ARRIVAL_ONCE) w->unfinished = w->count;
    ls_result result = set_timer(w, w->measure_from_ns, TIMER_MEASURE, 0);
    if (result == LS_OK) result = set_timer(w, w->end_ns, TIMER_END, 0);
    if (result == LS_OK) result = set_timer(w, w->series_step_ns, TIMER_SERIES, 0);
    if (is_open(w)) {
        for (uint32_t i = 0; i < w->count; i++) ls_producer_clear(&w->members[i].machine);
        return result == LS_OK ? set_timer(w, 0, TIMER_ARRIVAL, UINT32_MAX) : result;
    }
    if (result == LS_OK) result = schedule_faults(w);
    for (uint32_t i = 0; i < w->count && result == LS_OK; i++) {
        ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_START, i);
        double start_s = s->producers.start_spread_s * ls_random_uniform(&stream);
        result = set_timer(w, ls_nanoseconds(start_s), TIMER_START, i);
    }
    if (result == LS_OK && w->trainer != NULL) result = ls_trainer_begin(w->trainer, 0);
    if (result == LS_OK && w->reclaimers != NULL) result = ls_reclaimers_begin(w->reclaimers, 0);
    return result;
}

static ls_result start_member(ls_world *w, uint32_t index, int64_t now_ns)
{
    tell_change(w, LS_SIGHT_STARTED, index, now_ns);
    if (!w->scenario->producers.established) {
        ls_event event = {.kind = LS_EVENT_START, .now_ns = now_ns};
        return step(w, index, &event); /* arrivals begin when it has joined */
    }
    bool waits = w->scenario->batches.law == LS_ARRIVAL_POISSON || w->scenario->batches.law == LS_ARRIVAL_REGULAR ||
                 w->scenario->batches.law == LS_ARRIVAL_PREPROCESSED;
    return waits ? schedule_arrival(w, index, now_ns, true) : arrive(w, index, now_ns);
}

static ls_result record_series(ls_world *w, int64_t now_ns)
{
    double stored = w->probe == NULL ? 0 : w->probe(w->probe_context);
    uint64_t steps = w->trainer == NULL ? 0 : ls_trainer_steps(w->trainer);
    if (w->series_count < SERIES_POINTS_MAX) {
        w->step_series[w->series_count] = (double)(steps - w->series_steps);
        w->stored_series[w->series_count] = stored;
        w->series[w->series_count++] = (double)(w->published_ever - w->series_published);
    }
    w->series_published = w->published_ever;
    w->series_steps = steps;
    if (w->measuring) {
        w->stored_sum += stored;
        w->stored_count++;
        if (stored > w->stored_max) w->stored_max = stored;
    }
    return set_timer(w, now_ns + w->series_step_ns, TIMER_SERIES, 0);
}

/* The trainer has moved on: producers that had paused to stay near it may go on. */
static ls_result follow_trainer(ls_world *w, uint64_t step_before, int64_t now_ns)
{
    ls_result result = LS_OK;
    if (w->scenario->trainer.lead_batches == 0 || ls_trainer_step(w->trainer) <= step_before) return LS_OK;
    for (uint32_t i = 0; i < w->count && result == LS_OK; i++) {
        uint32_t client = w->origins[i].client;
        const member *m = client == NO_CLIENT ? NULL : life_of(w, client);
        if (m != NULL && m->alive && !m->paused && m->holding && has_room(w, m)) result = deliver_batch(w, client, now_ns);
    }
    return result;
}

static ls_result crew_timer(ls_world *w, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    if (kind >= LS_RECLAIMERS_FIRST) return ls_reclaimers_timer(w->reclaimers, now_ns, kind, entity, argument);
    uint64_t step_before = ls_trainer_step(w->trainer);
    ls_result result = ls_trainer_timer(w->trainer, now_ns, kind, entity, argument);
    return result == LS_OK ? follow_trainer(w, step_before, now_ns) : result;
}

static ls_result begin_measuring(ls_world *w, int64_t now_ns)
{
    w->measuring = true;
    tell_change(w, LS_SIGHT_MEASURING, NO_CLIENT, now_ns);
    if (w->trainer != NULL) ls_trainer_measure_from(w->trainer, now_ns);
    if (w->reclaimers != NULL) ls_reclaimers_measure_from(w->reclaimers);
    return LS_OK;
}

/* A timer of one life: a dead one's is void, a paused one's waits. */
static ls_result life_timer(ls_world *w, int64_t now_ns, uint32_t kind, uint32_t client)
{
    member *m = life_of(w, client);
    if (m == NULL || !m->alive) return LS_OK;
    if (kind == TIMER_TAKEOVER) {
        bool needed = m->paused && w->origins[m->producer].client == client;
        return needed ? start_life(w, m->producer, now_ns) : LS_OK;
    }
    if (kind == TIMER_RESUME) return resume(w, client, now_ns);
    if (m->paused) return defer(m, kind, NULL);
    if (kind == TIMER_START) return start_member(w, client, now_ns);
    if (kind == TIMER_ARRIVAL) return arrive(w, client, now_ns);
    if (m->machine.wake_ns > now_ns) return LS_OK; /* an older wish, since replaced */
    ls_event event = {.kind = LS_EVENT_TIMER, .now_ns = now_ns};
    return step(w, client, &event);
}

ls_result ls_world_timer(ls_world *w, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    ls_result result = LS_OK;
    if (kind >= LS_CREW_TIMERS) return crew_timer(w, now_ns, kind, entity, argument);
    switch (kind) {
    case TIMER_ARRIVAL:
        if (entity == UINT32_MAX) return w->draining ? LS_OK : open_arrival(w, now_ns);
        return life_timer(w, now_ns, kind, entity);
    case TIMER_WAKE:
    case TIMER_START:
    case TIMER_TAKEOVER:
    case TIMER_RESUME: return life_timer(w, now_ns, kind, entity);
    case TIMER_CRASH:
    case TIMER_CRASH_ONCE:
        result = crash_producer(w, entity, now_ns);
        return result != LS_OK || kind == TIMER_CRASH_ONCE ? result : schedule_fault(w, entity, now_ns, false);
    case TIMER_PAUSE:
    case TIMER_PAUSE_ONCE:
        result = pause_producer(w, entity, now_ns);
        return result != LS_OK || kind == TIMER_PAUSE_ONCE ? result : schedule_fault(w, entity, now_ns, true);
    case TIMER_RESTART: return w->origins[entity].client == NO_CLIENT ? start_life(w, entity, now_ns) : LS_OK;
    case TIMER_MEASURE: return begin_measuring(w, now_ns);
    case TIMER_SERIES: return w->draining ? LS_OK : record_series(w, now_ns);
    case TIMER_END: return begin_drain(w, now_ns);
    case TIMER_LIMIT: return w->drained ? LS_OK : fail_drain(w);
    case TIMER_SETTLED: return finish_drain(w);
    default: return LS_OK;
    }
}

static uint64_t bytes_of(const ls_store_reply *reply, const ls_producer *machine)
{
    if (reply->status != LS_REPLY_OK || machine->phase != LS_PRODUCER_READING) return 0;
    return reply->moved_bytes;
}

static bool crashes_on_reply(ls_world *w, uint32_t client, const ls_store_reply *reply, int64_t now_ns)
{
    if (reply->status != LS_REPLY_OK) return false;
    if (ls_producer_tag_is_upload(reply->tag)) return crashes_at(w, client, LS_CRASH_AFTER_UPLOAD, now_ns);
    return life_of(w, client)->machine.phase == LS_PRODUCER_READING && crashes_at(w, client, LS_CRASH_AFTER_READ, now_ns);
}

ls_result ls_world_reply(ls_world *w, int64_t now_ns, uint32_t client, const ls_store_reply *reply)
{
    uint32_t station = station_of(w, client);
    if (station != NO_CLIENT) {
        bool is_trainers = w->trainer != NULL && station < ls_trainer_stations(w->scenario);
        return is_trainers ? ls_trainer_reply(w->trainer, now_ns, station, client, reply)
                           : ls_reclaimers_reply(w->reclaimers, now_ns, station, client, reply);
    }
    member *m = life_of(w, client);
    bool nobody = m == NULL || (!m->alive && !is_open(w));
    if (nobody || (!m->paused && crashes_on_reply(w, client, reply, now_ns))) {
        ls_manifest_release(reply->manifest);
        return nobody ? LS_OK : crash(w, client, now_ns);
    }
    if (m->paused) return defer(m, 0, reply);
    const ls_producer *machine = &m->machine;
    if (w->measuring) {
        if (!ls_producer_tag_is_upload(reply->tag)) w->sum.manifest_bytes_down += bytes_of(reply, machine);
        bool lost_put = machine->phase == LS_PRODUCER_PUTTING && reply->status != LS_REPLY_OK &&
                        !ls_producer_tag_is_upload(reply->tag);
        if (lost_put) w->sum.lost_put_bytes += ls_manifest_encoded_bytes(machine->attempt);
    }
    tell(w, (ls_sight){.kind = LS_SIGHT_REPLY, .now_ns = now_ns, .client = client, .reply = reply});
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply};
    ls_result result = step(w, client, &event);
    m = life_of(w, client);
    if (result != LS_OK || w->sees_effects || m == NULL) return result;
    /* A driver that cannot see effects is told by the machines themselves how far the manifest has come. */
    machine = &m->machine;
    bool newer = machine->known != NULL && (w->head == NULL || ls_manifest_version(machine->known) > ls_manifest_version(w->head));
    if (!newer) return LS_OK;
    ls_manifest_release(w->head);
    w->head = ls_manifest_retain(machine->known);
    return LS_OK;
}

/* In a lake that reclaims, who stalled before its put can win a name that was decided and deleted long ago (manifest/PROTOCOL.md,
   section 6). Such a version is void and no part of history. Should its writer miss that, its acknowledgement breaks a promise. */
static bool late_winner(const ls_world *w, const ls_manifest *created)
{
    return w->protocol.floor_check && w->head != NULL && ls_manifest_version(created) <= ls_manifest_version(w->head);
}

ls_result ls_world_created(ls_world *w, int64_t now_ns, uint32_t client, const ls_manifest *manifest)
{
    const ls_manifest *before = w->head;
    w->sees_effects = true;
    if (late_winner(w, manifest)) return LS_OK;
    tell(w, (ls_sight){.kind = LS_SIGHT_CREATED, .now_ns = now_ns, .client = client, .created = manifest});
    w->head = ls_manifest_retain(manifest);
    ls_manifest_release(before);
    if (note_creation(w, now_ns, client, ls_manifest_version(manifest)) != LS_OK) return LS_ERROR_MEMORY;
    if (w->checks) {
        ls_result result = ls_invariants_created(&w->invariants, manifest, &w->error);
        if (result != LS_OK) return result;
    }
    if (uses_oracle(w)) return oracle_pass_turn(w, client, now_ns);
    member *m = life_of(w, client);
    bool crashes = m != NULL && m->alive && !m->paused && crashes_at(w, client, LS_CRASH_AFTER_PUT_EFFECT, now_ns);
    return crashes ? crash(w, client, now_ns) : LS_OK;
}

/* --- closing the books --------------------------------------------------------------------------------------------------- */

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* Jain's index of the producers' published batches: 1 when all equal, 1/n when one has all (Jain, Chiu, Hawe 1984). */
static double fairness(const ls_world *w)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        double x = (double)w->origins[i].published;
        sum += x;
        squares += x * x;
    }
    return ratio(sum * sum, squares * w->count);
}

static uint64_t requests_of(const ls_world *w, ls_operation operation, bool data)
{
    uint64_t sum = 0;
    for (int kind = 0; kind <= LS_OBJECT_FLOOR; kind++) {
        if ((kind == LS_OBJECT_DATA) == data) sum += w->sum.requests[operation][kind];
    }
    return sum;
}

static double quantile_s(const ls_histogram *histogram, double q)
{
    return ls_histogram_count(histogram) == 0 ? NAN : ls_seconds(ls_histogram_quantile(histogram, q));
}

static double mean_s(const ls_histogram *histogram)
{
    return ls_histogram_count(histogram) == 0 ? NAN : ls_histogram_mean(histogram) * 1e-9;
}

static double offered_batches(const ls_world *w, double measured_s)
{
    const ls_scenario *s = w->scenario;
    switch ((ls_arrival_law)s->batches.law) {
    case LS_ARRIVAL_POISSON:
    case LS_ARRIVAL_REGULAR: return s->batches.rate_per_s * (double)w->count * measured_s;
    case LS_ARRIVAL_OPEN: return s->batches.rate_per_s * measured_s;
    case LS_ARRIVAL_ONCE: return (double)w->count;
    case LS_ARRIVAL_CLOSED:
    case LS_ARRIVAL_PREPROCESSED: break;
    }
    return NAN;
}

ls_result ls_world_measure(ls_world *w, int64_t now_ns, ls_run_result *result)
{
    const totals *sum = &w->sum;
    if (w->scenario->drain_s > 0 && !w->drained) return fail_drain(w);
    double measured_s = ls_seconds((now_ns < w->end_ns ? now_ns : w->end_ns) - w->measure_from_ns);
    double decided = (double)(sum->won + sum->lost);
    double attempts = decided + (double)(sum->throttled + sum->aborted + sum->proved);
    double published = (double)sum->published;
    double reads = (double)(requests_of(w, LS_GET, false) + requests_of(w, LS_HEAD, false) + requests_of(w, LS_LIST, false));
    if (w->protocol.help_limit > 0) reads += (double)w->sum.requests[LS_LIST][LS_OBJECT_DATA]; /* what helping costs */
    double puts = (double)requests_of(w, LS_PUT, false);
    double manifest_bytes = (double)(sum->manifest_bytes_up + sum->manifest_bytes_down);
    double *v = result->values;
    for (uint32_t i = 0; i < LS_METRICS_MAX; i++) v[i] = NAN;
    v[LS_METRIC_MEASURED] = measured_s;
    v[LS_METRIC_PUBLISHED_RATE] = ratio(published, measured_s);
    v[LS_METRIC_PUBLISHED_SHARE] = ratio(published, offered_batches(w, measured_s));
    v[LS_METRIC_ATTEMPT_RATE] = ratio(attempts, measured_s);
    v[LS_METRIC_WIN_RATE] = ratio((double)sum->won, measured_s);
    v[LS_METRIC_CONFLICT_SHARE] = ratio((double)sum->lost, decided);
    v[LS_METRIC_BATCHES_PER_COMMIT] = ratio(published, (double)sum->commits);
    v[LS_METRIC_DELAY_MEAN] = mean_s(&w->publish_delay);
    v[LS_METRIC_DELAY_P50] = quantile_s(&w->publish_delay, 0.5);
    v[LS_METRIC_DELAY_P90] = quantile_s(&w->publish_delay, 0.9);
    v[LS_METRIC_DELAY_P99] = quantile_s(&w->publish_delay, 0.99);
    v[LS_METRIC_DELAY_MAX] = quantile_s(&w->publish_delay, 1.0);
    v[LS_METRIC_ATTEMPT_MEAN] = ratio(sum->attempt_s, attempts);
    v[LS_METRIC_WON_PUT_MEAN] = ratio(sum->won_put_s, (double)sum->won);
    v[LS_METRIC_WON_PUT_P50] = quantile_s(&w->won_put, 0.5);
    v[LS_METRIC_WON_PUT_P99] = quantile_s(&w->won_put, 0.99);
    v[LS_METRIC_LOST_PUT_MEAN] = ratio(sum->lost_put_s, (double)sum->lost);
    v[LS_METRIC_LOST_PUT_P50] = quantile_s(&w->lost_put, 0.5);
    v[LS_METRIC_COMMIT_REQUEST_RATE] = ratio(reads + puts, measured_s);
    v[LS_METRIC_COMMIT_REQUESTS_PER_BATCH] = ratio(reads + puts, published);
    v[LS_METRIC_COMMIT_PUTS] = puts;
    v[LS_METRIC_COMMIT_READS_PER_ATTEMPT] = ratio(reads, attempts);
    v[LS_METRIC_MANIFEST_BYTES_PER_BATCH] = ratio(manifest_bytes, published);
    v[LS_METRIC_WASTED_BYTES_SHARE] = ratio((double)sum->lost_put_bytes, (double)sum->manifest_bytes_up);
    v[LS_METRIC_MANIFEST_BYTES_END] = w->head == NULL ? NAN : (double)ls_manifest_encoded_bytes(w->head);
    v[LS_METRIC_MANIFEST_ENTRIES_END] = w->head == NULL ? NAN : (double)ls_manifest_entry_count(w->head);
    v[LS_METRIC_FAIRNESS] = fairness(w);
    v[LS_METRIC_GAVE_UP_RATE] = ratio((double)sum->gave_up, measured_s);
    v[LS_METRIC_THROTTLED_SHARE] = ratio((double)sum->throttled, attempts);
    v[LS_METRIC_AMBIGUOUS] = (double)sum->ambiguous;
    v[LS_METRIC_CRASHES] = (double)sum->crashes;
    v[LS_METRIC_FENCED] = (double)sum->fenced;
    v[LS_METRIC_RECOVERY_MEAN] = ratio(sum->recovery_s, (double)sum->recoveries);
    v[LS_METRIC_RECOVERED_BATCHES] = (double)sum->recovered;
    v[LS_METRIC_DUPLICATES_REFUSED] = (double)sum->duplicates_refused;
    v[LS_METRIC_DRAIN] = w->drained ? ls_seconds(w->drained_ns - w->end_ns) : NAN;
    if (w->trainer != NULL) ls_trainer_measure(w->trainer, now_ns < w->end_ns ? now_ns : w->end_ns, v);
    if (w->reclaimers != NULL) ls_reclaimers_measure(w->reclaimers, v);
    if (w->probe != NULL) {
        v[LS_METRIC_STORED_MEAN] = ratio(w->stored_sum, (double)w->stored_count);
        v[LS_METRIC_STORED_MAX] = w->stored_max;
        v[LS_METRIC_STORED_END] = w->stored_end;
    }
    if (w->scenario->batches.law == LS_ARRIVAL_CLOSED) {
        double predicted = 1.0 - v[LS_METRIC_WIN_RATE] * v[LS_METRIC_ATTEMPT_MEAN] / (double)w->count;
        v[LS_METRIC_LITTLE_GAP] = v[LS_METRIC_CONFLICT_SHARE] - predicted;
    }
    if (w->scenario->batches.law == LS_ARRIVAL_ONCE) {
        v[LS_METRIC_COMPLETION_MEAN] = ratio(w->completion_sum_s, (double)(w->count - w->unfinished));
        v[LS_METRIC_COMPLETION_LAST] = w->unfinished == 0 ? ls_seconds(now_ns) : NAN;
    }
    return LS_OK;
}
