/* world.c - producers at work (see world.h): arrivals in, machines stepped, actions out, everything counted.
 *
 * Production. A batch that becomes ready while its producer's backlog is full, or (synchronous production) while a commit
 * is under way, is held by its producer; production pauses until there is room and resumes from that moment. So no batch is
 * ever dropped, and a policy that cannot keep up shows as a published share below one, not as an endless queue.
 *
 * Common random numbers. Each producer has its own counter-based streams for start, arrivals, sizes and its policy, so the
 * k-th batch of a producer is the same under every policy that is compared.
 */
#include "sim/world.h"

#include "manifest/producer.h"
#include "manifest/tgb.h"
#include "policies/oracle.h"
#include "sim/histogram.h"
#include "sim/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TIMER_WAKE = 1, TIMER_START, TIMER_ARRIVAL, TIMER_MEASURE, TIMER_SERIES, TIMER_END };

#define SERIES_POINTS_MAX 2000u

typedef struct member {
    ls_producer machine;
    uint64_t published; /* batches since measurement began */
    uint32_t arrivals;  /* drawn so far */
    uint32_t sizes;
    uint32_t next_free; /* open arrivals: list of machines not in use */
    bool holding;       /* a ready batch waits for room */
    bool in_use;        /* open arrivals */
} member;

typedef struct totals {
    uint64_t published, published_bytes, commits, committed_batches;
    uint64_t won, lost, throttled, aborted, proved, ambiguous;
    uint64_t requests[LS_LIST + 1][LS_OBJECT_FLOOR + 1];
    uint64_t manifest_bytes_up, manifest_bytes_down, lost_put_bytes;
    double won_put_s, lost_put_s, attempt_s;
    uint64_t gave_up;
} totals;

struct ls_world {
    const ls_scenario *scenario;
    ls_driver driver;
    uint64_t seed, replication;
    ls_protocol protocol;
    ls_oracle oracle;
    ls_invariants invariants;
    bool checks;
    bool sees_effects; /* the driver tells when a version takes effect */
    const ls_manifest *initial;
    const ls_manifest *head; /* newest version that took effect, where the driver tells; else the initial one */
    member *members;
    uint32_t count;
    uint32_t first_free;
    uint32_t *turn; /* oracle: ring of producers in order of asking */
    uint32_t turn_head, turn_count, turn_holder;
    bool turn_taken;
    bool measuring;
    int64_t measure_from_ns, end_ns;
    totals sum;
    uint64_t gave_up_before;
    ls_histogram publish_delay, won_put, lost_put;
    double series[SERIES_POINTS_MAX];
    uint32_t series_count;
    uint64_t series_published, published_ever;
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

static bool is_open(const ls_world *w)
{
    return w->scenario->batches.law == LS_ARRIVAL_OPEN;
}

/* Entry i of the history belongs to producer i modulo their number, as if they had taken turns. */
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
        rows[i] = (ls_row){.producer = base + i, .last_version = 1, .epoch = 1, .closed = !s->producers.established,
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
    ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_POLICY, index);
    ls_producer_init(&m->machine, &w->protocol, index, incarnation_of(w, index), stream);
    if (!w->scenario->producers.established) return LS_OK;
    return ls_producer_adopt(&m->machine, w->head, index, now_ns);
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
    w->measure_from_ns = ls_nanoseconds(s->warm_up_s > 0 ? s->warm_up_s : 0);
    w->end_ns = w->measure_from_ns + ls_nanoseconds(s->duration_s);
    double step_s = s->series_step_s > 0 ? s->series_step_s : s->duration_s / 200;
    double least_s = ls_seconds(w->end_ns) / (SERIES_POINTS_MAX - 1);
    w->series_step_ns = ls_nanoseconds(step_s > least_s ? step_s : least_s);
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
    ls_invariants_init(&w->invariants, LS_CHECK_NEW, exists, exists_context);
    w->checks = exists != NULL;
    ls_histogram_init(&w->publish_delay);
    ls_histogram_init(&w->won_put);
    ls_histogram_init(&w->lost_put);
    w->open_stream = ls_random_open(seed, replication, LS_RANDOM_ARRIVAL, UINT32_MAX);
    w->members = ls_allocate_array(w->count, sizeof *w->members);
    w->turn = ls_allocate_array(w->count, sizeof *w->turn);
    if (w->members == NULL || w->turn == NULL || build_initial(w) != LS_OK) goto fail;
    for (uint32_t i = 0; i < w->count; i++) {
        if (init_member(w, i, 0) != LS_OK) goto fail;
        w->members[i].next_free = i + 1;
    }
    if (w->checks && w->initial != NULL && ls_invariants_created(&w->invariants, w->initial, error) != LS_OK) goto fail;
    return w;
fail:
    ls_fail(error, LS_ERROR_MEMORY, "out of memory for a world of %" PRIu64 " producers and %" PRIu64 " entries",
            scenario->producers.count, scenario->manifest.initial_entries);
    ls_world_free(w);
    return NULL;
}

void ls_world_free(ls_world *w)
{
    if (w == NULL) return;
    for (uint32_t i = 0; w->members != NULL && i < w->count; i++) ls_producer_clear(&w->members[i].machine);
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
    if (key->kind != LS_OBJECT_DATA || key->number >= w->count) return false;
    return ls_producer_source_range(&w->members[key->number].machine, key->sequence, begin, end);
}

/* --- the oracle: producers take turns in the order in which they asked, one attempt in flight ----------------------- */

static int64_t oracle_next_turn(void *context, const ls_commit_view *view)
{
    ls_world *w = context;
    uint32_t index = view->own_slot;
    if (view->pending_batches == 0 || index >= w->count) return LS_NEVER_NS;
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
        if (machine->ready_count == 0 || ls_producer_is_committing(machine)) continue;
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

static ls_result note_published(ls_world *w, uint32_t index, const ls_published_report *published, int64_t now_ns)
{
    member *m = &w->members[index];
    w->published_ever += published->count;
    if (w->checks) {
        ls_result result = ls_invariants_acknowledged(&w->invariants, index, published->source_end, &w->error);
        if (result != LS_OK) return result;
    }
    if (w->scenario->batches.law == LS_ARRIVAL_ONCE) {
        w->unfinished--;
        w->completion_sum_s += ls_seconds(now_ns);
    }
    if (!w->measuring) return LS_OK;
    m->published += published->count;
    w->sum.published += published->count;
    w->sum.published_bytes += published->bytes;
    w->sum.commits++;
    for (uint32_t i = 0; i < published->count; i++) {
        int64_t ready_ns = ls_producer_ready_ns(&m->machine, published->first_sequence + i);
        if (ls_histogram_record(&w->publish_delay, now_ns - ready_ns) != LS_OK) return LS_ERROR_MEMORY;
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
    }
    return LS_OK;
}

static ls_result set_timer(ls_world *w, int64_t at_ns, uint32_t kind, uint32_t entity)
{
    if (at_ns == LS_NEVER_NS) return LS_OK;
    return w->driver.timer(w->driver.context, at_ns, kind, entity, 0);
}

static ls_result carry_out(ls_world *w, uint32_t index, const ls_actions *actions, int64_t now_ns, bool *attempt_ended)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < actions->count && result == LS_OK; i++) {
        const ls_action *action = &actions->item[i];
        switch (action->kind) {
        case LS_ACTION_REQUEST:
            count_request(w, &action->request);
            result = w->driver.submit(w->driver.context, index, &action->request);
            break;
        case LS_ACTION_WAKE: result = set_timer(w, action->wake_ns, TIMER_WAKE, index); break;
        case LS_ACTION_PUBLISHED: result = note_published(w, index, &action->published, now_ns); break;
        case LS_ACTION_ATTEMPT:
            *attempt_ended = true;
            result = note_attempt(w, &action->attempt, now_ns);
            break;
        case LS_ACTION_JOINED: result = set_timer(w, now_ns, TIMER_ARRIVAL, index); break;
        case LS_ACTION_FENCED: return fail_step(w, LS_ERROR_VIOLATED, index, "was fenced although nobody restarted it");
        case LS_ACTION_FAILED:
            return fail_step(w, LS_ERROR_IO, index, "the store denied or garbled a request; see the store's message");
        case LS_ACTION_FINISHED:
        case LS_ACTION_STEP:
        case LS_ACTION_BEHIND: break;
        }
    }
    return result;
}

static uint64_t draw_bytes(ls_world *w, uint32_t index)
{
    const ls_scenario *s = w->scenario;
    double bytes = (double)s->batches.bytes, sigma = s->batches.bytes_sigma;
    if (sigma > 0) {
        ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_BATCH_BYTES, index);
        stream.index = w->members[index].sizes++;
        bytes *= exp(sigma * ls_random_normal(&stream) - 0.5 * sigma * sigma);
    }
    double least = (double)ls_tgb_footer_bytes((uint32_t)s->batches.data_parallel, (uint32_t)s->batches.context_parallel);
    return (uint64_t)(bytes < least ? least : bytes);
}

static bool has_room(const ls_world *w, const member *m)
{
    return ls_producer_has_room(&m->machine) &&
           !(w->scenario->upload.synchronous && ls_producer_is_committing(&m->machine));
}

/* Seconds until a producer's next batch after the one before; regular arrivals begin at a random phase. */
static double draw_gap_s(ls_world *w, uint32_t index, bool first)
{
    const ls_scenario *s = w->scenario;
    ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_ARRIVAL, index);
    stream.index = w->members[index].arrivals++;
    if (s->batches.law == LS_ARRIVAL_POISSON) return ls_random_exponential(&stream) / s->batches.rate_per_s;
    if (s->batches.law == LS_ARRIVAL_REGULAR) return (first ? ls_random_uniform(&stream) : 1.0) / s->batches.rate_per_s;
    return 0.0;
}

static ls_result deliver_batch(ls_world *w, uint32_t index, int64_t now_ns);

/* One event for one machine, and what follows from it, until nothing more follows at this instant. */
static ls_result step(ls_world *w, uint32_t index, const ls_event *event)
{
    member *m = &w->members[index];
    ls_actions actions;
    bool attempt_ended = false;
    uint32_t gave_up = m->machine.gave_up;
    ls_result result = ls_producer_step(&m->machine, event, &actions);
    if (result != LS_OK) return fail_step(w, result, index, ls_result_name(result));
    if (w->measuring) w->sum.gave_up += m->machine.gave_up - gave_up;
    result = carry_out(w, index, &actions, event->now_ns, &attempt_ended);
    if (result != LS_OK) return result;
    if (attempt_ended && uses_oracle(w) && !ls_producer_is_committing(&m->machine)) {
        result = oracle_pass_turn(w, index, event->now_ns);
        if (result != LS_OK) return result;
    }
    if (attempt_ended && is_open(w)) { /* tried once, and is gone */
        ls_producer_clear(&m->machine);
        m->in_use = false;
        m->next_free = w->first_free;
        w->first_free = index;
        return LS_OK;
    }
    if (w->scenario->batches.law == LS_ARRIVAL_ONCE && w->unfinished == 0) w->driver.stop(w->driver.context);
    if (m->holding && has_room(w, m)) return deliver_batch(w, index, event->now_ns);
    return LS_OK;
}

static ls_result schedule_arrival(ls_world *w, uint32_t index, int64_t now_ns, bool first)
{
    switch ((ls_arrival_law)w->scenario->batches.law) {
    case LS_ARRIVAL_POISSON:
    case LS_ARRIVAL_REGULAR:
        return set_timer(w, now_ns + ls_nanoseconds(draw_gap_s(w, index, first)), TIMER_ARRIVAL, index);
    case LS_ARRIVAL_CLOSED: w->members[index].holding = true; return LS_OK; /* ready as soon as there is room */
    case LS_ARRIVAL_ONCE:
    case LS_ARRIVAL_OPEN: break;
    }
    return LS_OK;
}

static ls_result deliver_batch(ls_world *w, uint32_t index, int64_t now_ns)
{
    member *m = &w->members[index];
    m->holding = false;
    ls_result result = schedule_arrival(w, index, now_ns, false);
    if (result != LS_OK) return result;
    ls_event event = {.kind = LS_EVENT_BATCH, .now_ns = now_ns, .batch_bytes = draw_bytes(w, index),
                      .batch_source_count = 1,
                      .batch_footer_bytes = (uint32_t)ls_tgb_footer_bytes((uint32_t)w->scenario->batches.data_parallel,
                                                                          (uint32_t)w->scenario->batches.context_parallel)};
    return step(w, index, &event);
}

static ls_result arrive(ls_world *w, uint32_t index, int64_t now_ns)
{
    member *m = &w->members[index];
    if (has_room(w, m)) return deliver_batch(w, index, now_ns);
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
    return deliver_batch(w, index, now_ns);
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
    for (uint32_t i = 0; i < w->count && result == LS_OK; i++) {
        ls_random stream = ls_random_open(w->seed, w->replication, LS_RANDOM_START, i);
        double start_s = s->producers.start_spread_s * ls_random_uniform(&stream);
        result = set_timer(w, ls_nanoseconds(start_s), TIMER_START, i);
    }
    return result;
}

static ls_result start_member(ls_world *w, uint32_t index, int64_t now_ns)
{
    if (!w->scenario->producers.established) {
        ls_event event = {.kind = LS_EVENT_START, .now_ns = now_ns};
        return step(w, index, &event); /* arrivals begin when it has joined */
    }
    bool waits = w->scenario->batches.law == LS_ARRIVAL_POISSON || w->scenario->batches.law == LS_ARRIVAL_REGULAR;
    return waits ? schedule_arrival(w, index, now_ns, true) : arrive(w, index, now_ns);
}

static ls_result record_series(ls_world *w, int64_t now_ns)
{
    if (w->series_count < SERIES_POINTS_MAX) {
        w->series[w->series_count++] = (double)(w->published_ever - w->series_published);
    }
    w->series_published = w->published_ever;
    return set_timer(w, now_ns + w->series_step_ns, TIMER_SERIES, 0);
}

ls_result ls_world_timer(ls_world *w, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    (void)argument;
    switch (kind) {
    case TIMER_WAKE: {
        ls_producer *machine = &w->members[entity].machine;
        if (machine->wake_ns > now_ns) return LS_OK; /* an older wish, since replaced */
        ls_event event = {.kind = LS_EVENT_TIMER, .now_ns = now_ns};
        return step(w, entity, &event);
    }
    case TIMER_START: return start_member(w, entity, now_ns);
    case TIMER_ARRIVAL: return entity == UINT32_MAX ? open_arrival(w, now_ns) : arrive(w, entity, now_ns);
    case TIMER_MEASURE: w->measuring = true; return LS_OK;
    case TIMER_SERIES: return record_series(w, now_ns);
    case TIMER_END: w->driver.stop(w->driver.context); return LS_OK;
    default: return LS_OK;
    }
}

static uint64_t bytes_of(const ls_store_reply *reply, const ls_producer *machine)
{
    if (reply->status != LS_REPLY_OK || machine->phase != LS_PRODUCER_READING) return 0;
    return reply->moved_bytes;
}

ls_result ls_world_reply(ls_world *w, int64_t now_ns, uint32_t client, const ls_store_reply *reply)
{
    const ls_producer *machine = &w->members[client].machine;
    if (w->measuring) {
        if (!ls_producer_tag_is_upload(reply->tag)) w->sum.manifest_bytes_down += bytes_of(reply, machine);
        bool lost_put = machine->phase == LS_PRODUCER_PUTTING && reply->status != LS_REPLY_OK &&
                        !ls_producer_tag_is_upload(reply->tag);
        if (lost_put) w->sum.lost_put_bytes += ls_manifest_encoded_bytes(machine->attempt);
    }
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply};
    ls_result result = step(w, client, &event);
    /* A driver that cannot see effects is told by the machines themselves how far the manifest has come. */
    bool newer = machine->known != NULL && (w->head == NULL || ls_manifest_version(machine->known) > ls_manifest_version(w->head));
    if (result != LS_OK || w->sees_effects || !newer) return result;
    ls_manifest_release(w->head);
    w->head = ls_manifest_retain(machine->known);
    return LS_OK;
}

ls_result ls_world_created(ls_world *w, int64_t now_ns, uint32_t client, const ls_manifest *manifest)
{
    const ls_manifest *before = w->head;
    w->sees_effects = true;
    w->head = ls_manifest_retain(manifest);
    ls_manifest_release(before);
    if (w->checks) {
        ls_result result = ls_invariants_created(&w->invariants, manifest, &w->error);
        if (result != LS_OK) return result;
    }
    return uses_oracle(w) ? oracle_pass_turn(w, client, now_ns) : LS_OK;
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
        double x = (double)w->members[i].published;
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
    case LS_ARRIVAL_CLOSED: break;
    }
    return NAN;
}

ls_result ls_world_measure(ls_world *w, int64_t now_ns, ls_run_result *result)
{
    const totals *sum = &w->sum;
    double measured_s = ls_seconds(now_ns - w->measure_from_ns);
    double decided = (double)(sum->won + sum->lost);
    double attempts = decided + (double)(sum->throttled + sum->aborted + sum->proved);
    double published = (double)sum->published;
    double reads = (double)(requests_of(w, LS_GET, false) + requests_of(w, LS_HEAD, false) + requests_of(w, LS_LIST, false));
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
