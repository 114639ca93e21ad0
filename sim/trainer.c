/* trainer.c - ranks, barrier, checkpoints and rollback (see trainer.h).
 *
 * One timer ends a step: when the last rank has its slice, the end of all computing is known. Compute times are a function of
 * (rank, step), so a step that is replayed takes as long as the first time, and two policies meet the same trainer.
 *
 * A trainer's life is counted; timers that end a step carry the life they belong to, so none outlives a crash.
 */
#include "sim/trainer.h"

#include "manifest/checkpoint.h"
#include "manifest/consumer.h"
#include "sim/histogram.h"
#include "sim/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NOBODY LS_CREW_NOBODY

/* The kinds of draws within LS_RANDOM_TRAINER: their entity is the station in the low half, this in the high one. */
enum { DRAW_COMPUTE = 0, DRAW_RANK_CRASH, DRAW_CRASH, DRAW_CHECKPOINT };

typedef struct rank {
    ls_consumer machine;
    uint32_t client; /* NOBODY: its reader is down */
    uint32_t crashes_drawn;
    bool has_data;   /* of the step under way */
    bool has_asked;
} rank;

typedef struct known_checkpoint {
    ls_key key;
    uint64_t step;
} known_checkpoint;

typedef enum trainer_state { STATE_DOWN = 0, STATE_PINNING, STATE_STEPPING, STATE_BETWEEN } trainer_state;

struct ls_trainer {
    ls_crew crew;
    ls_law_sampler compute;
    rank *ranks;
    uint32_t rank_count;
    uint32_t arrived;       /* ranks that have the step's data */
    uint64_t first_step, step, furthest_end; /* furthest_end: one past the last step that ever ended */
    uint64_t life, steps;
    int64_t began_ns, last_data_ns, computed_ns;
    trainer_state state;
    uint64_t *seen; /* what a step was, hashed, from first_step on; 0: not seen yet */
    uint64_t seen_capacity;

    ls_checkpointer checkpointer;
    uint32_t checkpointer_client; /* NOBODY: none at work */
    uint64_t checkpoint_wanted;   /* step of one that waits for the checkpointer; 0: none */
    uint64_t checkpoints_begun, checkpoint_number;
    int64_t checkpoint_began_ns;
    known_checkpoint *known;      /* those known to be durable, oldest first */
    uint32_t known_count, known_capacity;
    uint32_t candidate;           /* of known: the one to go back to */
    ls_key pin;                   /* kind 0: none held */
    uint32_t crashes_drawn;

    bool measuring, calm;
    int64_t measure_from_ns;
    struct {
        uint64_t steps, new_steps, replayed, rollbacks, reader_crashes, checkpoints, fetches;
        uint64_t read_bytes, needed_bytes, data_requests, manifest_requests;
        double stall_s, step_s;
    } sum;
    ls_histogram step_time, stall, fetch;
};

uint32_t ls_trainer_stations(const ls_scenario *scenario)
{
    return (uint32_t)(scenario->batches.data_parallel * scenario->batches.context_parallel) + 1;
}

static ls_random draw_stream(const ls_trainer *t, uint32_t what, uint32_t station)
{
    return ls_random_open(t->crew.seed, t->crew.replication, LS_RANDOM_TRAINER, (uint64_t)what << 32 | station);
}

ls_result ls_trainer_check(const ls_scenario *scenario, ls_error *error)
{
    if (!scenario->trainer.present) return LS_OK;
    if (scenario->upload.instantaneous) {
        return ls_fail(error, LS_ERROR_INVALID, "trainer.present does not go with upload.instantaneous: there would be no object to read");
    }
    if (scenario->batches.law == LS_ARRIVAL_OPEN) {
        return ls_fail(error, LS_ERROR_INVALID, "trainer.present does not go with batches.law 'open': its attempts are alone");
    }
    ls_law_sampler sampler;
    ls_error reason = {""};
    ls_result result = ls_law_prepare(&scenario->trainer.compute, &sampler, &reason);
    if (result != LS_OK) return ls_fail(error, result, "trainer.compute: %s", reason.text);
    ls_law_release(&sampler);
    return LS_OK;
}

ls_trainer *ls_trainer_new(const ls_crew *crew, uint64_t first_step, ls_error *error)
{
    ls_trainer *t = ls_allocate_array(1, sizeof *t);
    if (t == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "out of memory for the trainer");
        return NULL;
    }
    t->crew = *crew;
    t->rank_count = ls_trainer_stations(crew->scenario) - 1;
    t->first_step = t->step = t->furthest_end = first_step;
    t->checkpointer_client = NOBODY;
    ls_histogram_init(&t->step_time);
    ls_histogram_init(&t->stall);
    ls_histogram_init(&t->fetch);
    t->ranks = ls_allocate_array(t->rank_count, sizeof *t->ranks);
    if (t->ranks == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "out of memory for %" PRIu32 " ranks", t->rank_count);
        goto fail;
    }
    for (uint32_t i = 0; i < t->rank_count; i++) t->ranks[i].client = NOBODY;
    ls_error reason = {""};
    ls_result result = ls_law_prepare(&crew->scenario->trainer.compute, &t->compute, &reason);
    if (result == LS_OK) return t;
    ls_fail(error, result, "trainer.compute: %s", reason.text);
fail:
    ls_trainer_free(t);
    return NULL;
}

static void end_rank(rank *r)
{
    if (r->client != NOBODY) ls_consumer_clear(&r->machine);
    r->client = NOBODY;
    r->has_data = r->has_asked = false;
}

static void end_checkpointer(ls_trainer *t)
{
    if (t->checkpointer_client != NOBODY) ls_checkpointer_clear(&t->checkpointer);
    t->checkpointer_client = NOBODY;
}

void ls_trainer_free(ls_trainer *t)
{
    if (t == NULL) return;
    for (uint32_t i = 0; t->ranks != NULL && i < t->rank_count; i++) end_rank(&t->ranks[i]);
    end_checkpointer(t);
    ls_free(t->ranks);
    ls_free(t->seen);
    ls_free(t->known);
    ls_law_release(&t->compute);
    ls_histogram_clear(&t->step_time);
    ls_histogram_clear(&t->stall);
    ls_histogram_clear(&t->fetch);
    ls_free(t);
}

uint64_t ls_trainer_steps(const ls_trainer *t)
{
    return t->steps;
}

uint64_t ls_trainer_step(const ls_trainer *t)
{
    return t->step;
}

uint32_t ls_trainer_node(const ls_trainer *t, uint32_t station)
{
    return station < t->rank_count ? station / (uint32_t)t->crew.scenario->trainer.ranks_per_node : 0;
}

static ls_result fail_trainer(ls_trainer *t, ls_result result, const char *what)
{
    return ls_fail(t->crew.error, result, "trainer at step %" PRIu64 ": %s", t->step, what);
}

/* --- steps ------------------------------------------------------------------------------------------------------------ */

double ls_trainer_compute_s(const ls_law_sampler *compute, uint64_t seed, uint64_t replication, uint32_t rank_number, uint64_t step)
{
    ls_random stream = ls_random_open(seed, replication, LS_RANDOM_TRAINER, (uint64_t)DRAW_COMPUTE << 32 | rank_number);
    stream.index = step * LS_LAW_DRAWS_MAX;
    return ls_law_draw_s(compute, &stream);
}

static int64_t compute_ns(const ls_trainer *t, uint32_t station, uint64_t step)
{
    double seconds = ls_trainer_compute_s(&t->compute, t->crew.seed, t->crew.replication, station, step - t->first_step);
    int64_t ns = ls_nanoseconds(seconds);
    return ns < LS_LAW_MAX_NS ? ns : LS_LAW_MAX_NS;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

/* Every rank must be handed the same batch for a step, the first time and whenever it is replayed. */
static ls_result check_same(ls_trainer *t, const ls_step_report *report)
{
    uint64_t place = report->step - t->first_step;
    if (place >= t->seen_capacity) {
        uint64_t capacity = t->seen_capacity == 0 ? 1024 : 2 * t->seen_capacity;
        while (capacity <= place) capacity *= 2;
        uint64_t *grown = ls_allocate_array(capacity, sizeof *grown);
        if (grown == NULL) return fail_trainer(t, LS_ERROR_MEMORY, "out of memory for its history");
        if (t->seen_capacity > 0) memcpy(grown, t->seen, t->seen_capacity * sizeof *grown);
        ls_free(t->seen);
        t->seen = grown;
        t->seen_capacity = capacity;
    }
    const ls_entry *e = &report->entry;
    uint64_t is = mix(mix(mix(mix(mix(1, e->producer), e->sequence), e->source_begin), e->size_bytes), e->epoch) | 1;
    if (t->seen[place] == 0) t->seen[place] = is;
    if (t->seen[place] == is) return LS_OK;
    return fail_trainer(t, LS_ERROR_VIOLATED, "a rank was handed another batch than was handed on for this step before");
}

static ls_result note_data(ls_trainer *t, uint32_t station, const ls_step_report *report, int64_t now_ns)
{
    rank *r = &t->ranks[station];
    if (report->step != t->step || r->has_data) return fail_trainer(t, LS_ERROR_VIOLATED, "a rank was handed a step out of order");
    ls_result result = check_same(t, report);
    if (result != LS_OK) return result;
    r->has_data = true;
    if (t->measuring) {
        t->sum.fetches++;
        if (ls_histogram_record(&t->fetch, report->ready_ns - report->asked_ns) != LS_OK) return LS_ERROR_MEMORY;
    }
    int64_t computed_ns = now_ns + compute_ns(t, station, t->step);
    if (computed_ns > t->computed_ns) t->computed_ns = computed_ns;
    t->last_data_ns = now_ns;
    if (++t->arrived < t->rank_count) return LS_OK;
    int64_t end_ns = t->computed_ns + ls_nanoseconds(t->crew.scenario->trainer.sync_s);
    return ls_crew_timer(&t->crew, end_ns, LS_TRAINER_STEP_END, 0, t->life);
}

static void count_reply(ls_trainer *t, const ls_consumer *machine, const ls_store_reply *reply)
{
    if (!t->measuring || !ls_consumer_tag_is_data(reply->tag) || reply->status != LS_REPLY_OK) return;
    t->sum.read_bytes += reply->moved_bytes;
    uint32_t low = reply->tag & UINT32_C(0x7fffffff);
    for (uint64_t step = machine->cursor; step < machine->fetch_end; step++) {
        const ls_fetch *fetch = &machine->fetch[step % LS_CONSUMER_WINDOW_MAX];
        if ((step & UINT32_C(0x7fffffff)) == low && fetch->state == LS_FETCH_SLICE) t->sum.needed_bytes += fetch->slice.bytes;
    }
}

static ls_result carry_out(ls_trainer *t, uint32_t station, const ls_actions *actions, int64_t now_ns)
{
    rank *r = &t->ranks[station];
    const ls_driver *driver = t->crew.driver;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < actions->count && result == LS_OK; i++) {
        const ls_action *action = &actions->item[i];
        switch (action->kind) {
        case LS_ACTION_REQUEST:
            if (t->measuring && ls_consumer_tag_is_data(action->request.tag)) t->sum.data_requests++;
            if (t->measuring && !ls_consumer_tag_is_data(action->request.tag)) t->sum.manifest_requests++;
            result = driver->submit(driver->context, r->client, &action->request);
            break;
        case LS_ACTION_WAKE: result = ls_crew_timer(&t->crew, action->wake_ns, LS_TRAINER_WAKE, r->client, station); break;
        case LS_ACTION_STEP: result = note_data(t, station, &action->step, now_ns); break;
        case LS_ACTION_BEHIND: return fail_trainer(t, LS_ERROR_VIOLATED, "the batch of a step it has not consumed was reclaimed");
        case LS_ACTION_FAILED: return fail_trainer(t, LS_ERROR_IO, "the store denied or garbled a rank's request");
        default: break;
        }
    }
    return result;
}

static ls_result step_rank(ls_trainer *t, uint32_t station, const ls_event *event)
{
    ls_actions actions;
    ls_result result = ls_consumer_step(&t->ranks[station].machine, event, &actions);
    if (result != LS_OK) return fail_trainer(t, result, ls_result_name(result));
    return carry_out(t, station, &actions, event->now_ns);
}

/* Asks a rank's reader for the step under way. */
static ls_result ask(ls_trainer *t, uint32_t station, int64_t now_ns)
{
    rank *r = &t->ranks[station];
    if (t->state != STATE_STEPPING || r->client == NOBODY || r->has_data || r->has_asked) return LS_OK;
    r->has_asked = true;
    ls_event go = {.kind = LS_EVENT_GO, .now_ns = now_ns};
    return step_rank(t, station, &go);
}

static ls_result begin_step(ls_trainer *t, int64_t now_ns)
{
    t->state = STATE_STEPPING;
    t->began_ns = t->last_data_ns = t->computed_ns = now_ns;
    t->arrived = 0;
    for (uint32_t i = 0; i < t->rank_count; i++) t->ranks[i].has_data = t->ranks[i].has_asked = false;
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < t->rank_count && result == LS_OK; i++) result = ask(t, i, now_ns);
    return result;
}

/* A reader begins at the first step whose data its rank does not have yet. */
static ls_result start_rank(ls_trainer *t, uint32_t station, int64_t now_ns)
{
    const ls_scenario *s = t->crew.scenario;
    rank *r = &t->ranks[station];
    uint32_t context_ranks = (uint32_t)s->batches.context_parallel;
    ls_consumer_config config = {.data_rank = station / context_ranks, .context_rank = station % context_ranks,
                                 .window = (uint32_t)s->trainer.prefetch_steps, .on_demand = true, .follow = true,
                                 .poll_ns = ls_nanoseconds(s->trainer.poll_s)};
    uint64_t first = t->step + (r->has_data ? 1 : 0);
    ls_result result = ls_consumer_init(&r->machine, t->crew.protocol, &config, first);
    if (result != LS_OK) return fail_trainer(t, result, "cannot start a rank's reader");
    r->client = t->crew.enlist(t->crew.world, station);
    r->has_asked = false;
    if (r->client == NOBODY) {
        ls_consumer_clear(&r->machine);
        return fail_trainer(t, LS_ERROR_MEMORY, "out of memory for a rank's reader");
    }
    ls_event start = {.kind = LS_EVENT_START, .now_ns = now_ns};
    result = step_rank(t, station, &start);
    return result == LS_OK ? ask(t, station, now_ns) : result;
}

static ls_result start_ranks(ls_trainer *t, int64_t now_ns)
{
    ls_result result = LS_OK;
    t->state = STATE_BETWEEN;
    for (uint32_t i = 0; i < t->rank_count && result == LS_OK; i++) result = start_rank(t, i, now_ns);
    return result == LS_OK ? begin_step(t, now_ns) : result;
}

/* --- checkpoints ------------------------------------------------------------------------------------------------------- */

static ls_result end_of_checkpointer(ls_trainer *t, const ls_action *action, int64_t now_ns);

static ls_result step_checkpointer(ls_trainer *t, const ls_event *event)
{
    ls_actions actions;
    const ls_driver *driver = t->crew.driver;
    uint32_t client = t->checkpointer_client;
    ls_result result = ls_checkpointer_step(&t->checkpointer, event, &actions);
    if (result != LS_OK) return fail_trainer(t, result, ls_result_name(result));
    for (uint32_t i = 0; i < actions.count && result == LS_OK; i++) {
        const ls_action *action = &actions.item[i];
        if (action->kind == LS_ACTION_REQUEST) result = driver->submit(driver->context, client, &action->request);
        else if (action->kind == LS_ACTION_WAKE) result = ls_crew_timer(&t->crew, action->wake_ns, LS_TRAINER_WAKE, client, t->rank_count);
        else result = end_of_checkpointer(t, action, event->now_ns);
    }
    return result;
}

static ls_result begin_checkpoint(ls_trainer *t, uint64_t step, ls_checkpoint_kind kind, int64_t now_ns)
{
    const ls_scenario *s = t->crew.scenario;
    ls_checkpoint shape = {.data_ranks = (uint32_t)s->batches.data_parallel, .context_ranks = (uint32_t)s->batches.context_parallel};
    ls_checkpointer_config config = {.step = step, .kind = kind, .body_bytes = ls_checkpoint_encoded_bytes(&shape),
                                     .after_number = t->checkpoint_number, .retry_ns = ls_nanoseconds(0.2)};
    ls_random random = draw_stream(t, DRAW_CHECKPOINT, t->rank_count);
    random.index = t->checkpoints_begun++ << 20;
    ls_result result = ls_checkpointer_init(&t->checkpointer, t->crew.protocol, &config, NULL, random);
    if (result != LS_OK) return fail_trainer(t, result, "cannot begin a checkpoint");
    t->checkpointer_client = t->crew.enlist(t->crew.world, t->rank_count);
    if (t->checkpointer_client == NOBODY) {
        ls_checkpointer_clear(&t->checkpointer);
        return fail_trainer(t, LS_ERROR_MEMORY, "out of memory for a checkpoint");
    }
    t->checkpoint_began_ns = now_ns;
    ls_event start = {.kind = LS_EVENT_START, .now_ns = now_ns};
    return step_checkpointer(t, &start);
}

static ls_checkpoint_kind kind_of_next(const ls_trainer *t)
{
    uint64_t every = t->crew.scenario->trainer.named_every;
    return every > 0 && (t->known_count + 1) % every == 0 ? LS_CHECKPOINT_NAMED : LS_CHECKPOINT_AUTO;
}

static ls_result save(ls_trainer *t, int64_t now_ns)
{
    if (t->checkpointer_client == NOBODY) return begin_checkpoint(t, t->step, kind_of_next(t), now_ns);
    t->checkpoint_wanted = t->step;
    return LS_OK;
}

static ls_result remember(ls_trainer *t, const ls_key *key)
{
    if (t->known_count == t->known_capacity) {
        uint32_t capacity = t->known_capacity == 0 ? 16 : 2 * t->known_capacity;
        known_checkpoint *grown = ls_reallocate(t->known, capacity * sizeof *grown);
        if (grown == NULL) return fail_trainer(t, LS_ERROR_MEMORY, "out of memory for its checkpoints");
        t->known = grown;
        t->known_capacity = capacity;
    }
    t->known[t->known_count++] = (known_checkpoint){.key = *key, .step = key->sequence};
    return LS_OK;
}

/* The newer checkpoint holds everything that the pin held: it may go. */
static ls_result release_pin(ls_trainer *t, uint32_t client)
{
    if (t->pin.kind == 0) return LS_OK;
    ls_store_request request;
    ls_checkpoint_release(&t->pin, &request);
    t->pin = (ls_key){0};
    return t->crew.driver->submit(t->crew.driver->context, client, &request);
}

/* The steps after the one gone back to will be made anew; checkpoints of them are of a future that has not come. */
static ls_result go_back(ls_trainer *t, int64_t now_ns)
{
    t->step = t->checkpointer.config.step;
    while (t->known_count > 0 && t->known[t->known_count - 1].step > t->step) t->known_count--;
    end_checkpointer(t);
    return start_ranks(t, now_ns);
}

static ls_result try_candidate(ls_trainer *t, int64_t now_ns)
{
    t->state = STATE_PINNING;
    uint64_t step = t->candidate == NOBODY ? t->first_step : t->known[t->candidate].step;
    return begin_checkpoint(t, step, LS_CHECKPOINT_PIN, now_ns);
}

static ls_result end_of_checkpointer(ls_trainer *t, const ls_action *action, int64_t now_ns)
{
    uint32_t client = t->checkpointer_client;
    ls_key key = action->checkpoint.key;
    if (action->kind == LS_ACTION_FAILED) return fail_trainer(t, LS_ERROR_IO, "the store denied or garbled a checkpoint's request");
    if (action->kind != LS_ACTION_CHECKPOINTED && action->kind != LS_ACTION_GAVE_UP) return LS_OK;
    bool done = action->kind == LS_ACTION_CHECKPOINTED;
    if (done) t->checkpoint_number = key.number;
    if (t->state == STATE_PINNING) {
        if (done) {
            t->pin = key;
            return go_back(t, now_ns);
        }
        end_checkpointer(t); /* a retention rule has taken it: the next newer one */
        t->candidate = t->candidate == NOBODY ? 0 : t->candidate + 1;
        if (t->candidate < t->known_count) return try_candidate(t, now_ns);
        return fail_trainer(t, LS_ERROR_VIOLATED, "no checkpoint is left to go back to");
    }
    if (!done) return fail_trainer(t, LS_ERROR_VIOLATED, "a checkpoint of the step just reached came too late");
    if (t->measuring) t->sum.checkpoints++;
    ls_result result = remember(t, &key);
    if (result == LS_OK) result = release_pin(t, client);
    end_checkpointer(t);
    if (result != LS_OK || t->checkpoint_wanted == 0) return result;
    uint64_t step = t->checkpoint_wanted;
    t->checkpoint_wanted = 0;
    return begin_checkpoint(t, step, kind_of_next(t), now_ns);
}

/* --- the end of a step -------------------------------------------------------------------------------------------------- */

static ls_result count_step(ls_trainer *t, int64_t now_ns)
{
    t->steps++;
    bool is_new = t->step >= t->furthest_end;
    if (is_new) t->furthest_end = t->step + 1;
    if (!t->measuring || t->began_ns < t->measure_from_ns) return LS_OK;
    int64_t stall_ns = t->last_data_ns - t->began_ns;
    t->sum.steps++;
    if (is_new) t->sum.new_steps++;
    else t->sum.replayed++;
    t->sum.stall_s += ls_seconds(stall_ns);
    t->sum.step_s += ls_seconds(now_ns - t->began_ns);
    ls_result result = ls_histogram_record(&t->step_time, now_ns - t->began_ns);
    return result == LS_OK ? ls_histogram_record(&t->stall, stall_ns) : result;
}

static ls_result end_step(ls_trainer *t, int64_t now_ns)
{
    const ls_scenario *s = t->crew.scenario;
    ls_result result = count_step(t, now_ns);
    if (result != LS_OK) return result;
    t->step++;
    t->state = STATE_BETWEEN;
    for (uint32_t i = 0; i < t->rank_count; i++) t->ranks[i].has_data = false;
    bool saves = s->trainer.checkpoint_steps > 0 && (t->step - t->first_step) % s->trainer.checkpoint_steps == 0;
    if (!saves) return begin_step(t, now_ns);
    result = save(t, now_ns);
    int64_t next_ns = now_ns + ls_nanoseconds(s->trainer.checkpoint_s);
    return result == LS_OK ? ls_crew_timer(&t->crew, next_ns, LS_TRAINER_NEXT_STEP, 0, t->life) : result;
}

/* --- faults ------------------------------------------------------------------------------------------------------------- */

static ls_result schedule_crash(ls_trainer *t, int64_t now_ns)
{
    double rate_per_s = t->crew.scenario->faults.trainer_crash_rate_per_s;
    if (rate_per_s <= 0) return LS_OK;
    ls_random stream = draw_stream(t, DRAW_CRASH, 0);
    stream.index = t->crashes_drawn++;
    return ls_crew_timer(&t->crew, now_ns + ls_nanoseconds(ls_random_exponential(&stream) / rate_per_s), LS_TRAINER_CRASH, 0, 1);
}

static ls_result schedule_rank_crash(ls_trainer *t, uint32_t station, int64_t now_ns)
{
    double rate_per_s = t->crew.scenario->faults.consumer_crash_rate_per_s;
    if (rate_per_s <= 0) return LS_OK;
    ls_random stream = draw_stream(t, DRAW_RANK_CRASH, station);
    stream.index = t->ranks[station].crashes_drawn++;
    int64_t at_ns = now_ns + ls_nanoseconds(ls_random_exponential(&stream) / rate_per_s);
    return ls_crew_timer(&t->crew, at_ns, LS_TRAINER_RANK_CRASH, station, 0);
}

/* What was saved counts, though nobody has heard of it yet: its object may be durable, and a reclaimer may already have let go of what
   lies before it. A restarted job would find it in a list. */
static ls_result remember_unheard(ls_trainer *t)
{
    if (t->checkpointer_client == NOBODY || t->checkpointer.phase < LS_CHECKPOINTER_PUTTING) return LS_OK;
    return remember(t, &t->checkpointer.key);
}

static ls_result crash(ls_trainer *t, int64_t now_ns)
{
    if (t->calm || t->state == STATE_DOWN || t->state == STATE_PINNING) return LS_OK;
    for (uint32_t i = 0; i < t->rank_count; i++) end_rank(&t->ranks[i]);
    ls_result result = remember_unheard(t);
    if (result != LS_OK) return result;
    end_checkpointer(t);
    t->checkpoint_wanted = 0;
    t->state = STATE_DOWN;
    t->life++;
    if (t->measuring) t->sum.rollbacks++;
    int64_t at_ns = now_ns + ls_nanoseconds(t->crew.scenario->trainer.restart_s);
    return ls_crew_timer(&t->crew, at_ns, LS_TRAINER_RESTART, 0, t->life);
}

static ls_result restart(ls_trainer *t, int64_t now_ns)
{
    uint64_t back = t->crew.scenario->trainer.rollback_checkpoints;
    t->candidate = t->known_count > back ? t->known_count - 1 - (uint32_t)back : t->known_count > 0 ? 0 : NOBODY;
    return try_candidate(t, now_ns);
}

static ls_result crash_rank(ls_trainer *t, uint32_t station, int64_t now_ns)
{
    if (t->calm) return LS_OK;
    ls_result result = schedule_rank_crash(t, station, now_ns);
    rank *r = &t->ranks[station];
    if (result != LS_OK || r->client == NOBODY) return result;
    bool has_data = r->has_data;
    end_rank(r);
    r->has_data = has_data; /* the rank itself lives on with what it was handed */
    if (t->measuring) t->sum.reader_crashes++;
    int64_t at_ns = now_ns + ls_nanoseconds(t->crew.scenario->faults.consumer_restart_s);
    return ls_crew_timer(&t->crew, at_ns, LS_TRAINER_RANK_RESTART, station, t->life);
}

/* --- the world's side ----------------------------------------------------------------------------------------------------- */

ls_result ls_trainer_begin(ls_trainer *t, int64_t now_ns)
{
    const ls_fault_config *faults = &t->crew.scenario->faults;
    ls_result result = schedule_crash(t, now_ns);
    if (result == LS_OK && faults->trainer_crash_at_s > 0) {
        result = ls_crew_timer(&t->crew, ls_nanoseconds(faults->trainer_crash_at_s), LS_TRAINER_CRASH, 0, 0);
    }
    for (uint32_t i = 0; i < t->rank_count && result == LS_OK; i++) result = schedule_rank_crash(t, i, now_ns);
    return result == LS_OK ? start_ranks(t, now_ns) : result;
}

static ls_result wake(ls_trainer *t, int64_t now_ns, uint32_t client, uint32_t station)
{
    ls_event event = {.kind = LS_EVENT_TIMER, .now_ns = now_ns};
    if (station == t->rank_count) return client == t->checkpointer_client ? step_checkpointer(t, &event) : LS_OK;
    bool is_due = client == t->ranks[station].client && t->ranks[station].machine.wake_ns <= now_ns;
    return is_due ? step_rank(t, station, &event) : LS_OK;
}

ls_result ls_trainer_timer(ls_trainer *t, int64_t now_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    ls_result result = LS_OK;
    switch (kind) {
    case LS_TRAINER_WAKE: return wake(t, now_ns, entity, (uint32_t)argument);
    case LS_TRAINER_STEP_END: return argument == t->life ? end_step(t, now_ns) : LS_OK;
    case LS_TRAINER_NEXT_STEP: return argument == t->life ? begin_step(t, now_ns) : LS_OK;
    case LS_TRAINER_CRASH:
        if (argument == 1) result = schedule_crash(t, now_ns);
        return result == LS_OK ? crash(t, now_ns) : result;
    case LS_TRAINER_RESTART: return argument == t->life ? restart(t, now_ns) : LS_OK;
    case LS_TRAINER_RANK_CRASH: return crash_rank(t, entity, now_ns);
    case LS_TRAINER_RANK_RESTART:
        return argument == t->life && t->ranks[entity].client == NOBODY ? start_rank(t, entity, now_ns) : LS_OK;
    default: return LS_OK;
    }
}

ls_result ls_trainer_reply(ls_trainer *t, int64_t now_ns, uint32_t station, uint32_t client, const ls_store_reply *reply)
{
    bool is_rank = station < t->rank_count;
    if (client != (is_rank ? t->ranks[station].client : t->checkpointer_client)) {
        ls_manifest_release(reply->manifest);
        return LS_OK;
    }
    ls_event event = {.kind = LS_EVENT_REPLY, .now_ns = now_ns, .reply = reply};
    if (!is_rank) return step_checkpointer(t, &event);
    count_reply(t, &t->ranks[station].machine, reply);
    return step_rank(t, station, &event);
}

void ls_trainer_measure_from(ls_trainer *t, int64_t now_ns)
{
    t->measuring = true;
    t->measure_from_ns = now_ns;
}

void ls_trainer_calm(ls_trainer *t)
{
    t->calm = true;
    t->measuring = false;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double quantile_s(const ls_histogram *histogram, double q)
{
    return ls_histogram_count(histogram) == 0 ? NAN : ls_seconds(ls_histogram_quantile(histogram, q));
}

void ls_trainer_measure(const ls_trainer *t, int64_t now_ns, double *v)
{
    double measured_s = ls_seconds(now_ns - t->measure_from_ns), steps = (double)t->sum.steps;
    v[LS_METRIC_TRAINER_STEP_RATE] = ratio(steps, measured_s);
    v[LS_METRIC_TRAINER_NEW_STEP_RATE] = ratio((double)t->sum.new_steps, measured_s);
    v[LS_METRIC_TRAINER_STEP_MEAN] = ratio(t->sum.step_s, steps);
    v[LS_METRIC_TRAINER_STEP_P50] = quantile_s(&t->step_time, 0.5);
    v[LS_METRIC_TRAINER_STEP_P99] = quantile_s(&t->step_time, 0.99);
    v[LS_METRIC_TRAINER_STALL_MEAN] = ratio(t->sum.stall_s, steps);
    v[LS_METRIC_TRAINER_STALL_P99] = quantile_s(&t->stall, 0.99);
    v[LS_METRIC_TRAINER_STALL_SHARE] = ratio(t->sum.stall_s, t->sum.step_s);
    v[LS_METRIC_FETCH_MEAN] = t->sum.fetches == 0 ? NAN : ls_histogram_mean(&t->fetch) * 1e-9;
    v[LS_METRIC_FETCH_P50] = quantile_s(&t->fetch, 0.5);
    v[LS_METRIC_FETCH_P99] = quantile_s(&t->fetch, 0.99);
    v[LS_METRIC_READ_AMPLIFICATION] = ratio((double)t->sum.read_bytes, (double)t->sum.needed_bytes);
    v[LS_METRIC_READ_REQUESTS] = ratio((double)t->sum.data_requests, (double)t->sum.fetches);
    v[LS_METRIC_FOLLOW_REQUESTS] = ratio((double)t->sum.manifest_requests, measured_s);
    v[LS_METRIC_REPLAYED_STEPS] = (double)t->sum.replayed;
    v[LS_METRIC_ROLLBACKS] = (double)t->sum.rollbacks;
    v[LS_METRIC_READER_CRASHES] = (double)t->sum.reader_crashes;
    v[LS_METRIC_CHECKPOINTS] = (double)t->sum.checkpoints;
}
