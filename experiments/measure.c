/* measure.c - the measuring clients, and the two drivers they run on (see measure.h).
 *
 * Phases: objects that the task needs are put in place (SET_UP), requests are sent and timed (TIMED), whatever is in
 * flight comes home, and what was written is removed (CLEAR). A client's first request is not timed: it may open a
 * connection. A reply that says nothing about the store's speed (throttled, unknown) is counted and the request sent
 * again.
 */
#include "experiments/measure.h"

#include "backend/loop.h"
#include "manifest/tgb.h"
#include "sim/engine.h"
#include "sim/store_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_BYTES    4096u
#define LIST_PAGE      10u
#define REFUSALS_MAX   1000u
#define SET_UP_CLIENTS 8u /* at once while objects are put in place */

enum { STORE_EVENT = 0, TIMER_PAUSE = 1 };

const char *ls_request_kind_name(ls_request_kind kind)
{
    static const char *const names[LS_REQUEST_KINDS] = {
        "get", "range get", "put", "put-if-absent won", "put-if-absent lost", "head", "list", "race", "commit"};
    return kind < LS_REQUEST_KINDS ? names[kind] : "?";
}

/* --- samples ---------------------------------------------------------------------------------------------------------- */

ls_result ls_sample_add(ls_sample *sample, double value)
{
    if (sample->count == sample->capacity) {
        if (sample->capacity > UINT32_MAX / 2) return LS_ERROR_MEMORY;
        uint32_t capacity = sample->capacity == 0 ? 256 : 2 * sample->capacity;
        double *values = ls_reallocate(sample->values, capacity * sizeof *values);
        if (values == NULL) return LS_ERROR_MEMORY;
        sample->values = values;
        sample->capacity = capacity;
    }
    sample->values[sample->count++] = value;
    return LS_OK;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void ls_sample_sort(ls_sample *sample)
{
    if (sample->count > 0) qsort(sample->values, sample->count, sizeof sample->values[0], by_value);
}

void ls_sample_free(ls_sample *sample)
{
    ls_free(sample->values);
    *sample = (ls_sample){0};
}

double ls_sample_mean(const ls_sample *sample)
{
    double sum = 0;
    for (uint32_t i = 0; i < sample->count; i++) sum += sample->values[i];
    return sample->count > 0 ? sum / sample->count : NAN;
}

double ls_sample_quantile(const ls_sample *sample, double probability)
{
    if (sample->count == 0) return NAN;
    double place = fmin(1, fmax(0, probability)) * (sample->count - 1);
    uint32_t below = (uint32_t)place;
    if (below + 1 >= sample->count) return sample->values[sample->count - 1];
    return sample->values[below] + (place - below) * (sample->values[below + 1] - sample->values[below]);
}

void ls_measurement_free(ls_measurement *measurement)
{
    ls_sample_free(&measurement->latency_s);
    ls_sample_free(&measurement->lost_s);
    ls_sample_free(&measurement->remove_s);
}

/* --- the population ------------------------------------------------------------------------------------------------------ */

typedef enum phase { PHASE_SET_UP, PHASE_TIMED, PHASE_CLEAR, PHASE_OVER } phase;

typedef struct client {
    int64_t sent_ns;
    uint32_t done; /* requests answered in the timed phase */
    uint32_t step; /* commit: which of its requests comes next */
    ls_store_request request;
    const ls_manifest *manifest; /* of the put in flight: our own reference */
    const ls_manifest *base;     /* commit: what it has read */
    uint64_t version;            /* commit: the newest version that it has heard of */
    bool paused;                 /* a timer will wake it */
} client;

typedef struct measurer {
    const ls_measure_task *task;
    ls_driver driver;
    ls_measurement *out;
    ls_error *error;
    client *clients;
    const ls_manifest *head; /* the newest manifest that somebody knows of */
    phase phase;
    bool clears; /* whether what was written is removed */
    uint32_t busy;
    uint64_t set_up_next, set_up_count;
    uint64_t first_version; /* the least version that is written */
    uint64_t data_count;    /* data objects written */
    uint64_t version_end;   /* one past the greatest version written */
    uint64_t clear_next;
    uint64_t written_bytes;
    int64_t from_ns, until_ns;
    bool stopping; /* no further request is sent in the timed phase */
    ls_random pauses;
} measurer;

static uint64_t entries_for(uint64_t bytes)
{
    uint64_t fixed = LS_MANIFEST_HEADER_BYTES + LS_MANIFEST_FOOTER_BYTES + LS_MANIFEST_ROW_BYTES;
    return bytes > fixed ? (bytes - fixed) / LS_MANIFEST_ENTRY_BYTES : 0;
}

static bool needs_manifest(ls_request_kind kind)
{
    return kind != LS_REQUEST_RANGE && kind != LS_REQUEST_PUT && kind != LS_REQUEST_HEAD;
}

static ls_entry entry_of(uint64_t step)
{
    return (ls_entry){.producer = 1, .sequence = step, .source_begin = step, .source_end = step + 1,
                      .size_bytes = 1024, .epoch = 1, .footer_bytes = LS_TGB_TRAILER_BYTES + LS_TGB_RECORD_BYTES};
}

/* A manifest of about the task's size, from which all that the clients put descend. */
static ls_result build_head(measurer *m)
{
    uint64_t count = entries_for(m->task->bytes);
    ls_entry *entries = ls_allocate_array(count, sizeof *entries);
    if (entries == NULL && count > 0) return ls_fail(m->error, LS_ERROR_MEMORY, "out of memory");
    for (uint64_t i = 0; i < count; i++) entries[i] = entry_of(i);
    ls_row row = {.producer = 1, .epoch = 1, .last_version = 1, .next_source_offset = count, .last_commit = {1, 1}};
    ls_manifest *manifest = NULL;
    ls_manifest_parts parts = {.version = 1, .id = {1, 1}, .entries = entries, .entry_count = count, .rows = &row, .row_count = 1};
    ls_result result = ls_manifest_build(&parts, &manifest);
    ls_free(entries);
    m->head = manifest;
    return result == LS_OK ? LS_OK : ls_fail(m->error, result, "the manifest to measure with cannot be built");
}

/* The successor of a manifest, with a new row and no new entry: so that all that is measured has the task's size. */
static ls_result make_child(const ls_manifest *parent, uint32_t who, const ls_manifest **child)
{
    ls_commit commit = {.id = {who + 2, ls_manifest_version(parent) + 1},
                        .row = {.producer = 1, .epoch = 1, .next_source_offset = ls_manifest_end_step(parent)}};
    ls_manifest *made = NULL;
    ls_result result = ls_manifest_append(parent, &commit, &made);
    *child = made;
    return result;
}

static ls_result send(measurer *m, uint32_t who)
{
    client *c = &m->clients[who];
    m->busy++;
    c->sent_ns = m->driver.now(m->driver.context);
    ls_store_request request = c->request;
    if (c->manifest != NULL) request.manifest = ls_manifest_retain(c->manifest);
    return m->driver.submit(m->driver.context, who, &request);
}

static ls_result send_data_put(measurer *m, uint32_t who, uint64_t number)
{
    uint64_t bytes = m->task->bytes;
    m->written_bytes += bytes;
    m->clients[who].request = (ls_store_request){.operation = LS_PUT, .if_absent = true, .key = ls_key_data(1, 1, number),
                                                 .body_bytes = bytes};
    return send(m, who);
}

/* Puts `manifest` (the client's from now on) under its version. */
static ls_result send_manifest_put(measurer *m, uint32_t who, const ls_manifest *manifest)
{
    client *c = &m->clients[who];
    uint64_t bytes = ls_manifest_encoded_bytes(manifest), version = ls_manifest_version(manifest);
    m->written_bytes += bytes;
    if (version >= m->version_end) m->version_end = version + 1;
    c->manifest = manifest;
    c->request = (ls_store_request){.operation = LS_PUT, .if_absent = true, .key = ls_key_manifest(version),
                                    .body_bytes = bytes, .manifest = manifest};
    return send(m, who);
}

static void advance_head(measurer *m, const ls_manifest *manifest)
{
    if (ls_manifest_version(manifest) <= ls_manifest_version(m->head)) return;
    ls_manifest_release(m->head);
    m->head = ls_manifest_retain(manifest);
}

/* The next version is this client's alone: taken at once. */
static ls_result send_fresh_manifest(measurer *m, uint32_t who)
{
    const ls_manifest *child;
    ls_result result = make_child(m->head, who, &child);
    if (result != LS_OK) return result;
    advance_head(m, child);
    return send_manifest_put(m, who, child);
}

static ls_result send_next_version(measurer *m, uint32_t who, const ls_manifest *parent)
{
    const ls_manifest *child;
    ls_result result = make_child(parent, who, &child);
    return result == LS_OK ? send_manifest_put(m, who, child) : result;
}

/* --- set-up ------------------------------------------------------------------------------------------------------------- */

static uint64_t objects_needed(const ls_measure_task *task)
{
    switch (task->kind) {
    case LS_REQUEST_GET:
    case LS_REQUEST_LOST:
    case LS_REQUEST_RANGE:
    case LS_REQUEST_HEAD: return task->bytes >= 1u << 20 ? 4 : 16;
    case LS_REQUEST_LIST: return 2 * LIST_PAGE;
    case LS_REQUEST_COMMIT:
    case LS_REQUEST_RACE: return 1;
    case LS_REQUEST_PUT:
    case LS_REQUEST_WON:
    case LS_REQUEST_KINDS: break;
    }
    return 0;
}

static ls_result send_set_up(measurer *m, uint32_t who)
{
    uint64_t number = m->set_up_next++;
    if (!needs_manifest(m->task->kind)) {
        m->data_count = number + 1;
        return send_data_put(m, who, number);
    }
    if (number == 0) return send_manifest_put(m, who, ls_manifest_retain(m->head));
    return send_fresh_manifest(m, who);
}

/* --- timed requests ----------------------------------------------------------------------------------------------------- */

static ls_result send_reading(measurer *m, uint32_t who)
{
    client *c = &m->clients[who];
    uint64_t turn = (c->done * 7 + who) % m->set_up_count, middle = m->task->bytes / 2;
    switch (m->task->kind) {
    case LS_REQUEST_GET:
        c->request = (ls_store_request){.operation = LS_GET, .key = ls_key_manifest(m->first_version + turn)};
        break;
    case LS_REQUEST_LIST:
        c->request = (ls_store_request){.operation = LS_LIST, .key = ls_key_manifest(m->first_version + c->done % LIST_PAGE),
                                        .list_limit = LIST_PAGE};
        break;
    case LS_REQUEST_HEAD: c->request = (ls_store_request){.operation = LS_HEAD, .key = ls_key_data(1, 1, turn)}; break;
    default:
        c->request = (ls_store_request){.operation = LS_GET, .key = ls_key_data(1, 1, turn), .range = LS_RANGE_SPAN,
                                        .range_offset = middle, .range_bytes = middle < RANGE_BYTES ? middle : RANGE_BYTES};
        break;
    }
    return send(m, who);
}

/* A put that must lose: under a name that set-up has taken. */
static ls_result send_losing(measurer *m, uint32_t who)
{
    return send_manifest_put(m, who, ls_manifest_retain(m->head));
}

static ls_result send_commit_step(measurer *m, uint32_t who)
{
    client *c = &m->clients[who];
    switch (c->step) {
    case 0: return send_data_put(m, who, m->data_count++);
    case 1:
        c->request = (ls_store_request){.operation = LS_LIST, .key = ls_key_manifest(c->version), .list_limit = 1000};
        return send(m, who);
    case 2: c->request = (ls_store_request){.operation = LS_GET, .key = ls_key_manifest(c->version)}; return send(m, who);
    default: return send_next_version(m, who, c->base);
    }
}

/* What a step of a commit has brought: the newest version by the list, its content by the get. A client that has lost
 * begins anew with the list, as a producer does. */
static void learn(client *c, const ls_store_reply *answer, bool lost)
{
    if (c->step == 1 && answer->list_count > 0 && answer->list_last.number > c->version) c->version = answer->list_last.number;
    if (c->step == 2) {
        ls_manifest_release(c->base);
        c->base = answer->manifest != NULL ? ls_manifest_retain(answer->manifest) : NULL;
    }
    c->step = lost ? 1 : (c->step + 1) % 4;
}

static ls_result send_timed(measurer *m, uint32_t who)
{
    switch (m->task->kind) {
    case LS_REQUEST_PUT: return send_data_put(m, who, m->data_count++);
    case LS_REQUEST_WON: return send_fresh_manifest(m, who);
    case LS_REQUEST_LOST: return send_losing(m, who);
    case LS_REQUEST_RACE: return send_next_version(m, who, m->head);
    case LS_REQUEST_COMMIT: return send_commit_step(m, who);
    case LS_REQUEST_GET:
    case LS_REQUEST_RANGE:
    case LS_REQUEST_HEAD:
    case LS_REQUEST_LIST:
    case LS_REQUEST_KINDS: break;
    }
    return send_reading(m, who);
}

static bool is_enough(const measurer *m, int64_t now_ns)
{
    return now_ns >= m->until_ns || m->out->completed >= m->task->requests || m->written_bytes >= m->task->volume;
}

/* --- from phase to phase --------------------------------------------------------------------------------------------------- */

static ls_result send_clear(measurer *m, uint32_t who)
{
    uint64_t number = m->clear_next++;
    ls_key key = number < m->data_count ? ls_key_data(1, 1, number)
                                        : ls_key_manifest(m->first_version + (number - m->data_count));
    m->clients[who].request = (ls_store_request){.operation = LS_DELETE, .key = key};
    return send(m, who);
}

static bool has_more_to_clear(const measurer *m)
{
    uint64_t versions = m->version_end > m->first_version ? m->version_end - m->first_version : 0;
    return m->clears && m->clear_next < m->data_count + versions;
}

/* Wakes the client after least to least + 1 of the task's pause. */
static ls_result pause_client(measurer *m, uint32_t who, int64_t now_ns, double least)
{
    m->clients[who].paused = true;
    int64_t pause_ns = ls_nanoseconds(m->task->pause_s * (least + ls_random_uniform(&m->pauses)));
    return m->driver.timer(m->driver.context, now_ns + pause_ns, TIMER_PAUSE, who, 0);
}

static ls_result start_all(measurer *m);

static ls_result next_phase(measurer *m)
{
    if (m->phase == PHASE_SET_UP) {
        m->phase = PHASE_TIMED;
        m->written_bytes = 0;
        for (uint32_t i = 0; i < m->task->clients; i++) m->clients[i].version = 1;
        m->from_ns = m->driver.now(m->driver.context);
        m->until_ns = m->from_ns + ls_nanoseconds(m->task->seconds);
        return start_all(m);
    }
    if (m->phase == PHASE_TIMED) {
        m->phase = PHASE_CLEAR;
        if (has_more_to_clear(m)) return start_all(m);
    }
    m->phase = PHASE_OVER;
    m->driver.stop(m->driver.context);
    return LS_OK;
}

/* The next request of a client, if there is one in this phase; the last idle client opens the next phase. */
static ls_result go_on(measurer *m, uint32_t who)
{
    switch (m->phase) {
    case PHASE_SET_UP:
        if (who < SET_UP_CLIENTS && m->set_up_next < m->set_up_count) return send_set_up(m, who);
        break;
    case PHASE_TIMED:
        if (!m->stopping) return send_timed(m, who);
        break;
    case PHASE_CLEAR:
        if (has_more_to_clear(m)) return send_clear(m, who);
        break;
    case PHASE_OVER: return LS_OK;
    }
    return m->busy == 0 ? next_phase(m) : LS_OK;
}

static ls_result start_all(measurer *m)
{
    ls_result result = LS_OK;
    phase started = m->phase;
    bool spread = started == PHASE_TIMED && m->task->pause_s > 0; /* clients that pause do not all begin at once */
    for (uint32_t i = 0; i < m->task->clients; i++) m->clients[i].paused = false;
    for (uint32_t i = 0; i < m->task->clients && result == LS_OK && m->phase == started; i++) {
        result = spread ? pause_client(m, i, m->from_ns, 0) : go_on(m, i);
    }
    return result;
}

static ls_result wake(void *context, int64_t now_ns, uint32_t kind, uint32_t who, uint64_t argument)
{
    (void)kind;
    (void)argument;
    measurer *m = context;
    if (!m->clients[who].paused) return LS_OK; /* another phase has begun meanwhile */
    m->clients[who].paused = false;
    m->stopping = m->stopping || now_ns >= m->until_ns;
    return go_on(m, who);
}

static ls_result take_timed(measurer *m, uint32_t who, int64_t now_ns, bool lost)
{
    client *c = &m->clients[who];
    bool is_put = c->request.operation == LS_PUT && c->request.key.kind == LS_OBJECT_MANIFEST;
    bool apart = m->task->kind == LS_REQUEST_RACE && lost;
    if (m->stopping) return LS_OK;
    m->out->completed++;
    m->out->wins += is_put && !lost;
    m->out->losses += is_put && lost;
    m->out->elapsed_s = ls_seconds(now_ns - m->from_ns);
    m->stopping = is_enough(m, now_ns);
    if (c->done++ == 0) return LS_OK;
    return ls_sample_add(apart ? &m->out->lost_s : &m->out->latency_s, ls_seconds(now_ns - c->sent_ns));
}

static ls_result answered(measurer *m, uint32_t who, int64_t now_ns, const ls_store_reply *answer, bool lost)
{
    client *c = &m->clients[who];
    if (m->phase == PHASE_CLEAR) return ls_sample_add(&m->out->remove_s, ls_seconds(now_ns - c->sent_ns));
    if (m->phase != PHASE_TIMED) return LS_OK;
    ls_result result = take_timed(m, who, now_ns, lost);
    if (m->task->kind == LS_REQUEST_COMMIT) learn(c, answer, lost);
    return result;
}

/* Not the answer that the task was set up to get. */
static ls_result unexpected(measurer *m, const ls_store_request *request, ls_reply_status status)
{
    return ls_fail(m->error, LS_ERROR_IO, "measuring %s: the store answered %s with '%s'", ls_request_kind_name(m->task->kind),
                   ls_operation_name(request->operation), ls_reply_status_name(status));
}

static ls_result judge_reply(measurer *m, uint32_t who, int64_t now_ns, const ls_store_reply *answer, const ls_manifest *tried)
{
    ls_request_kind task = m->task->kind;
    bool races = task == LS_REQUEST_RACE || task == LS_REQUEST_COMMIT;
    switch (answer->status) {
    case LS_REPLY_THROTTLED:
    case LS_REPLY_UNAVAILABLE:
    case LS_REPLY_UNKNOWN_OUTCOME:
        if (++m->out->refused > REFUSALS_MAX) break;
        m->stopping = m->stopping || (m->phase == PHASE_TIMED && now_ns >= m->until_ns);
        return LS_OK;
    case LS_REPLY_CONFLICT_RETRY: m->out->undecided++; return answered(m, who, now_ns, answer, true);
    case LS_REPLY_EXISTS:
        if (!races && task != LS_REQUEST_LOST) break;
        if (races && tried != NULL) advance_head(m, tried);
        return answered(m, who, now_ns, answer, true);
    case LS_REPLY_OK:
        if (races && tried != NULL) advance_head(m, tried);
        return answered(m, who, now_ns, answer, false);
    case LS_REPLY_NOT_FOUND:
    case LS_REPLY_DENIED:
    case LS_REPLY_INVALID: break;
    }
    return unexpected(m, &m->clients[who].request, answer->status);
}

static ls_result reply(void *context, int64_t now_ns, uint32_t kind, uint32_t who, const ls_store_reply *answer)
{
    (void)kind;
    measurer *m = context;
    client *c = &m->clients[who];
    const ls_manifest *tried = c->manifest;
    c->manifest = NULL;
    m->busy--;
    ls_result result = judge_reply(m, who, now_ns, answer, tried);
    ls_manifest_release(tried);
    ls_manifest_release(answer->manifest);
    if (result != LS_OK) return result;
    bool pauses = m->phase == PHASE_TIMED && !m->stopping && m->task->pause_s > 0;
    if (m->task->kind == LS_REQUEST_COMMIT && c->step != 0) pauses = false;
    return pauses ? pause_client(m, who, now_ns, 0.5) : go_on(m, who);
}

static ls_result begin(measurer *m)
{
    m->phase = PHASE_SET_UP;
    return m->set_up_count == 0 ? next_phase(m) : start_all(m);
}

static ls_result open_measurer(measurer *m, const ls_measure_task *task, ls_measurement *out, ls_error *error)
{
    *out = (ls_measurement){.task = *task};
    *m = (measurer){.task = task, .out = out, .error = error, .first_version = 1, .set_up_count = objects_needed(task)};
    if (task->kind >= LS_REQUEST_KINDS || task->bytes < 1024 || task->clients == 0 || task->requests == 0 || !(task->seconds > 0)) {
        return ls_fail(error, LS_ERROR_INVALID, "a measurement needs at least 1024 bytes, one client, one request and some time");
    }
    m->pauses = ls_random_open(task->clients, task->bytes, LS_RANDOM_TEST, task->kind);
    m->clients = ls_allocate_array(task->clients, sizeof *m->clients);
    if (m->clients == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (task->kind == LS_REQUEST_WON) m->first_version = 2; /* the head itself is never written */
    return needs_manifest(task->kind) ? build_head(m) : LS_OK;
}

static void close_measurer(measurer *m, ls_result result)
{
    for (uint32_t i = 0; m->clients != NULL && i < m->task->clients; i++) {
        ls_manifest_release(m->clients[i].manifest);
        ls_manifest_release(m->clients[i].base);
    }
    ls_free(m->clients);
    ls_manifest_release(m->head);
    if (result != LS_OK) {
        ls_measurement_free(m->out);
        return;
    }
    ls_sample_sort(&m->out->latency_s);
    ls_sample_sort(&m->out->lost_s);
    ls_sample_sort(&m->out->remove_s);
}

/* --- on a real store -------------------------------------------------------------------------------------------------------- */

static void fill_slice(void *context, uint32_t data_rank, uint32_t context_rank, uint8_t *bytes, uint64_t length)
{
    (void)data_rank;
    (void)context_rank;
    uint64_t word = *(const uint64_t *)context;
    for (uint64_t at = 0; at < length; at += sizeof word) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(bytes + at, &word, length - at < sizeof word ? length - at : sizeof word);
    }
}

static ls_result body(void *context, const ls_key *key, uint8_t *bytes, uint64_t size)
{
    (void)context;
    ls_tgb_identity identity = {.producer = key->number, .sequence = key->sequence, .epoch = key->epoch,
                                .source_begin = key->sequence, .source_end = key->sequence + 1};
    uint64_t length = size - ls_tgb_footer_bytes(1, 1), seed = key->sequence;
    return ls_tgb_encode(&identity, 1, 1, &length, fill_slice, &seed, bytes, size);
}

ls_result ls_measure_store(ls_store *store, const char *prefix, const ls_measure_task *task, ls_measurement *measurement,
                           ls_error *error)
{
    static const ls_loop_handler handler = {.timer = wake, .reply = reply, .body = body};
    measurer m;
    ls_loop *loop = NULL;
    error->text[0] = '\0';
    ls_result result = open_measurer(&m, task, measurement, error);
    if (result != LS_OK) goto done;
    loop = ls_loop_new(store, prefix, &handler, &m);
    if (loop == NULL) {
        result = ls_fail(error, LS_ERROR_INVALID, "the prefix '%.200s' is too long, or memory is out", prefix);
        goto done;
    }
    m.driver = ls_loop_driver(loop);
    m.clears = true;
    result = begin(&m);
    if (result == LS_OK) result = ls_loop_run(loop);
    if (result != LS_OK) {
        ls_error seen = *error;
        ls_fail(error, result, "%.600s%s%.300s", seen.text[0] != '\0' ? seen.text : ls_result_name(result),
                ls_loop_error(loop)[0] != '\0' ? ": " : "", ls_loop_error(loop));
    }
done:
    ls_loop_free(loop);
    close_measurer(&m, result);
    return result;
}

/* --- on a modelled store ----------------------------------------------------------------------------------------------------- */

typedef struct model_run {
    ls_engine *engine;
    ls_store_model *store;
    bool stopped;
} model_run;

static int64_t model_now(void *context) { return ls_engine_now(((model_run *)context)->engine); }

static ls_result model_timer(void *context, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument)
{
    return ls_engine_schedule(((model_run *)context)->engine, at_ns, kind, entity, argument);
}

static ls_result model_schedule(void *context, int64_t at_ns, uint64_t token)
{
    return ls_engine_schedule(((model_run *)context)->engine, at_ns, STORE_EVENT, 0, token);
}

static ls_result model_submit(void *context, uint32_t who, const ls_store_request *request)
{
    model_run *run = context;
    return ls_store_model_submit(run->store, ls_engine_now(run->engine), who, 0, request);
}

static void model_stop(void *context) { ((model_run *)context)->stopped = true; }

static ls_result run_model(model_run *run, measurer *m)
{
    ls_engine_event event;
    ls_result result = begin(m);
    while (result == LS_OK && !run->stopped && ls_engine_next(run->engine, &event)) {
        ls_store_completion done;
        if (event.kind == TIMER_PAUSE) {
            result = wake(m, event.at_ns, event.kind, event.entity, event.argument);
            continue;
        }
        result = ls_store_model_event(run->store, event.at_ns, event.argument, &done, NULL);
        if (result == LS_OK && done.ready) result = reply(m, event.at_ns, 0, done.client, &done.reply);
    }
    return result;
}

ls_result ls_measure_model(const ls_store_config *config, const ls_measure_task *task, uint64_t seed,
                           ls_measurement *measurement, ls_error *error)
{
    measurer m;
    model_run run = {.engine = ls_engine_new()};
    error->text[0] = '\0';
    ls_result result = open_measurer(&m, task, measurement, error);
    if (result == LS_OK && run.engine == NULL) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (result == LS_OK) {
        result = ls_store_model_create(config, seed, 0, (ls_store_scheduler){model_schedule, &run}, &run.store, error);
    }
    if (result == LS_OK) {
        m.driver = (ls_driver){&run, model_now, model_timer, model_submit, model_stop};
        result = run_model(&run, &m);
        if (result != LS_OK && error->text[0] == '\0') ls_fail(error, result, "measuring the model: %s", ls_result_name(result));
    }
    ls_store_model_destroy(run.store);
    ls_engine_free(run.engine);
    close_measurer(&m, result);
    return result;
}
