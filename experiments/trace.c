/* trace.c - keeps a run's doings and writes them as trace events (trace.h).
 *
 * Each span is one record, made when it begins and completed when it ends, so the records lie in order of their beginnings, and an
 * attempt before its requests. Only the ends of uploads need sorting in.
 *
 * What a put came to is what its attempt was reported to have come to (ls_attempt_report): an attempt has one put at most. Without a
 * report it is how its life ended (fenced, crashed), or "in flight". LS_ATTEMPT_PROVED is the report of a later attempt that had no put
 * of its own; it revises the last put of that life that had taken effect unheard of.
 */
#include "experiments/trace.h"

#include "manifest/producer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef enum event_kind {
    EVENT_ATTEMPT = 1, EVENT_REQUEST, EVENT_PUT, EVENT_UPLOAD, EVENT_WAIT, /* spans */
    EVENT_JOINED, EVENT_PUBLISHED, EVENT_FENCED, EVENT_CHANGE              /* instants */
} event_kind;

/* The first are those of ls_attempt_outcome. */
enum { OUTCOME_NONE = 0, OUTCOME_FENCED = LS_ATTEMPT_HELPED + 1, OUTCOME_CRASHED, OUTCOME_IN_FLIGHT, OUTCOME_CALLED_OFF };

static const char *const outcome_names[] = {
    [OUTCOME_NONE] = "", [LS_ATTEMPT_WON] = "won", [LS_ATTEMPT_LOST] = "lost", [LS_ATTEMPT_THROTTLED] = "throttled",
    [LS_ATTEMPT_ABORTED] = "aborted", [LS_ATTEMPT_PROVED] = "proved", [LS_ATTEMPT_HELPED] = "called off", [OUTCOME_FENCED] = "fenced", [OUTCOME_CRASHED] = "crashed",
    [OUTCOME_IN_FLIGHT] = "in flight", [OUTCOME_CALLED_OFF] = "called off"}; /* by the policy after its look */

static const char *const change_names[] = {
    [LS_SIGHT_STARTED] = "started", [LS_SIGHT_PAUSED] = "paused", [LS_SIGHT_RESUMED] = "resumed", [LS_SIGHT_CRASHED] = "crashed",
    [LS_SIGHT_MEASURING] = "measured time begins", [LS_SIGHT_MEASURED] = "measured time ends"};

#define STATUS_NONE 255u /* no reply was heard */

typedef struct event {
    int64_t begin_ns, end_ns; /* end: LS_NEVER_NS while under way; instants: the same */
    int64_t effect_ns;        /* put: when it took effect in the store; LS_NEVER_NS: never */
    uint64_t version;         /* of the manifest that it is about; list: those after it */
    uint64_t bytes;
    uint64_t number;          /* upload: the batch's sequence number; put: the attempt's number in its commit id; joined: source offset */
    uint32_t client;
    uint32_t count;           /* batches */
    uint32_t before;          /* put: the life's put before it */
    uint8_t kind;             /* event_kind */
    uint8_t what;             /* request: ls_operation; change: ls_sight_kind */
    uint8_t outcome, status;
    bool measured, ambiguous;
} event;

typedef struct open_upload {
    uint32_t tag;
    uint32_t event;
} open_upload;

/* A life, by client. Indices of events; NONE: nothing under way, or left out. */
typedef struct life {
    open_upload *uploads; /* owned */
    uint32_t upload_count, upload_capacity;
    uint32_t producer;
    uint32_t number; /* of the producer's lives, from 1 */
    uint32_t later;  /* first lives: how many followed */
    uint32_t attempt, request, put, wait, last_put;
    uint32_t tag; /* of the request under way */
    int64_t attempt_begin_ns, wait_until_ns;
    int64_t heard_ns; /* the last reply to a request of an attempt */
    bool known, shown, attempting, asking, fenced, crashed; /* shown: something of it was kept */
} life;

struct ls_trace {
    event *events;
    life *lives;
    uint32_t event_count, event_capacity, most_events;
    uint32_t life_count, life_capacity; /* clients below */
    int64_t from_ns, to_ns, last_ns;
    bool full, failed;
};

ls_trace *ls_trace_new(int64_t from_ns, int64_t to_ns, uint32_t most_events)
{
    ls_trace *t = ls_allocate_array(1, sizeof *t);
    if (t == NULL) return NULL;
    t->from_ns = from_ns;
    t->to_ns = to_ns;
    t->most_events = most_events;
    return t;
}

void ls_trace_free(ls_trace *t)
{
    if (t == NULL) return;
    for (uint32_t i = 0; i < t->life_count; i++) ls_free(t->lives[i].uploads);
    ls_free(t->lives);
    ls_free(t->events);
    ls_free(t);
}

/* --- keeping ------------------------------------------------------------------------------------------------------------ */

/* Room for one more of `count`; false when there is none, and then the trace has failed. */
static bool grow(ls_trace *t, void **array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    uint32_t wanted = count < 32 ? 64 : 2 * count;
    void *grown = ls_reallocate(*array, wanted * size);
    if (grown == NULL) {
        t->failed = true;
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

/* A new record that begins now, whatever the time; NONE when there is no room. */
static uint32_t keep(ls_trace *t, event_kind kind, uint32_t client, int64_t now_ns)
{
    if (t->failed || t->full) return NONE;
    if (t->event_count >= t->most_events) {
        t->full = true;
        return NONE;
    }
    void *events = t->events;
    if (!grow(t, &events, t->event_count, &t->event_capacity, sizeof *t->events)) return NONE;
    t->events = events;
    bool instant = kind >= EVENT_JOINED;
    if (client != UINT32_MAX) t->lives[client].shown = true;
    t->events[t->event_count] = (event){.kind = (uint8_t)kind, .client = client, .begin_ns = now_ns, .effect_ns = LS_NEVER_NS,
                                        .end_ns = instant ? now_ns : LS_NEVER_NS, .status = STATUS_NONE, .before = NONE};
    return t->event_count++;
}

/* The same; NONE also when now is not in the time asked for. */
static uint32_t add(ls_trace *t, event_kind kind, uint32_t client, int64_t now_ns)
{
    return now_ns >= t->from_ns && now_ns < t->to_ns ? keep(t, kind, client, now_ns) : NONE;
}

static life *find_life(const ls_trace *t, uint32_t client)
{
    return client < t->life_count && t->lives[client].known ? &t->lives[client] : NULL;
}

static life *meet(ls_trace *t, const ls_sight *s)
{
    life *known = find_life(t, s->client);
    if (known != NULL || s->producer == UINT32_MAX) return known;
    while (t->life_count <= s->client) {
        void *lives = t->lives;
        if (!grow(t, &lives, t->life_count, &t->life_capacity, sizeof *t->lives)) return NULL;
        t->lives = lives;
        t->lives[t->life_count++] = (life){.attempt = NONE, .request = NONE, .put = NONE, .wait = NONE, .last_put = NONE};
    }
    life *l = &t->lives[s->client];
    l->known = true;
    l->producer = s->producer;
    l->number = s->client == s->producer ? 1 : 2 + t->lives[s->producer].later++; /* the first lives are the first clients */
    return l;
}

static void close_span(ls_trace *t, uint32_t *index, int64_t end_ns)
{
    if (*index != NONE) t->events[*index].end_ns = end_ns;
    *index = NONE;
}

static void end_wait(ls_trace *t, life *l, int64_t now_ns)
{
    if (l->wait == NONE) return;
    int64_t begin_ns = t->events[l->wait].begin_ns, end_ns = now_ns < l->wait_until_ns ? now_ns : l->wait_until_ns;
    close_span(t, &l->wait, end_ns < begin_ns ? begin_ns : end_ns);
}

/* The attempt under way ends, and with it what its put came to. */
static void end_attempt(ls_trace *t, life *l, uint8_t outcome, bool measured, int64_t now_ns)
{
    close_span(t, &l->request, now_ns);
    uint32_t both[] = {l->attempt, l->put};
    for (int i = 0; i < 2; i++) {
        if (both[i] == NONE) continue;
        t->events[both[i]].outcome = outcome;
        t->events[both[i]].measured = measured;
    }
    close_span(t, &l->attempt, now_ns);
    l->put = NONE;
    l->attempting = l->asking = false;
}

static void begin_upload(ls_trace *t, life *l, const ls_sight *s)
{
    uint32_t index = add(t, EVENT_UPLOAD, s->client, s->now_ns);
    void *uploads = l->uploads;
    if (index == NONE || !grow(t, &uploads, l->upload_count, &l->upload_capacity, sizeof *l->uploads)) return;
    l->uploads = uploads;
    l->uploads[l->upload_count++] = (open_upload){.tag = s->request->tag, .event = index};
    t->events[index].number = s->request->key.sequence;
    t->events[index].bytes = s->request->body_bytes;
}

static void end_upload(ls_trace *t, life *l, const ls_sight *s)
{
    for (uint32_t i = 0; i < l->upload_count; i++) {
        if (l->uploads[i].tag != s->reply->tag) continue;
        t->events[l->uploads[i].event].end_ns = s->now_ns;
        t->events[l->uploads[i].event].status = (uint8_t)s->reply->status;
        l->uploads[i] = l->uploads[--l->upload_count];
        return;
    }
}

static void see_request(ls_trace *t, life *l, const ls_sight *s)
{
    const ls_store_request *request = s->request;
    if (ls_producer_tag_is_upload(request->tag)) {
        begin_upload(t, l, s);
        return;
    }
    int64_t begin_ns = s->machine->start_ns;
    if (l->attempting && l->attempt_begin_ns != begin_ns) { /* the policy called the one before off after its look */
        end_attempt(t, l, OUTCOME_CALLED_OFF, false, l->heard_ns);
    }
    if (!l->attempting) {
        end_wait(t, l, s->now_ns);
        l->attempt = add(t, EVENT_ATTEMPT, s->client, s->now_ns);
        l->attempt_begin_ns = begin_ns;
        l->attempting = true;
    }
    l->asking = true;
    l->tag = request->tag;
    bool puts = request->operation == LS_PUT;
    l->request = l->attempt == NONE ? NONE : keep(t, puts ? EVENT_PUT : EVENT_REQUEST, s->client, s->now_ns);
    if (l->request == NONE) return;
    event *e = &t->events[l->request];
    e->what = (uint8_t)request->operation;
    e->version = request->key.number;
    if (!puts) return;
    e->bytes = request->body_bytes;
    e->count = s->machine->attempt_batches;
    if (request->manifest != NULL) e->number = ls_manifest_commit_id(request->manifest).attempt;
    e->before = l->last_put;
    l->put = l->last_put = l->request;
}

static void see_reply(ls_trace *t, life *l, const ls_sight *s)
{
    if (ls_producer_tag_is_upload(s->reply->tag)) {
        end_upload(t, l, s);
        return;
    }
    if (!l->asking || l->tag != s->reply->tag) return;
    l->asking = false;
    l->heard_ns = s->now_ns;
    if (l->request == NONE) return;
    event *e = &t->events[l->request];
    e->status = (uint8_t)s->reply->status;
    if (e->what == LS_GET) e->bytes = s->reply->moved_bytes;
    close_span(t, &l->request, s->now_ns);
}

/* A put of this life, lost or aborted for all it knew, was there after all. */
static void revise(ls_trace *t, const life *l)
{
    for (uint32_t i = l->last_put; i != NONE; i = t->events[i].before) {
        event *e = &t->events[i];
        if (e->effect_ns == LS_NEVER_NS || e->outcome == LS_ATTEMPT_WON || e->outcome == LS_ATTEMPT_PROVED) continue;
        e->outcome = LS_ATTEMPT_PROVED;
        return;
    }
}

static void see_attempt(ls_trace *t, life *l, const ls_sight *s)
{
    const ls_attempt_report *report = &s->action->attempt;
    if (l->put != NONE) t->events[l->put].ambiguous = report->was_ambiguous;
    if (l->attempt != NONE) {
        event *e = &t->events[l->attempt];
        e->ambiguous = report->was_ambiguous;
        e->version = report->version;
        if (l->put != NONE || report->outcome == LS_ATTEMPT_PROVED) e->count = report->batches;
    }
    if (report->outcome == LS_ATTEMPT_PROVED) revise(t, l);
    end_attempt(t, l, (uint8_t)report->outcome, s->measured, s->now_ns);
}

static void see_wish(ls_trace *t, life *l, const ls_sight *s)
{
    int64_t until_ns = s->action->wake_ns;
    if (l->attempting && s->machine->phase == LS_PRODUCER_IDLE) end_attempt(t, l, OUTCOME_CALLED_OFF, false, s->now_ns);
    end_wait(t, l, s->now_ns);
    if (l->attempting || until_ns == LS_NEVER_NS || until_ns <= s->now_ns) return;
    l->wait = add(t, EVENT_WAIT, s->client, s->now_ns);
    l->wait_until_ns = until_ns;
}

static void see_action(ls_trace *t, life *l, const ls_sight *s)
{
    const ls_action *action = s->action;
    uint32_t index;
    switch (action->kind) {
    case LS_ACTION_WAKE: see_wish(t, l, s); return;
    case LS_ACTION_ATTEMPT: see_attempt(t, l, s); return;
    case LS_ACTION_JOINED:
        index = add(t, EVENT_JOINED, s->client, s->now_ns);
        if (index != NONE) t->events[index].number = action->source_offset;
        return;
    case LS_ACTION_PUBLISHED:
        index = add(t, EVENT_PUBLISHED, s->client, s->now_ns);
        if (index == NONE) return;
        t->events[index].version = action->published.version;
        t->events[index].count = action->published.count;
        t->events[index].bytes = action->published.bytes;
        return;
    case LS_ACTION_FENCED:
        l->fenced = true;
        add(t, EVENT_FENCED, s->client, s->now_ns);
        return;
    default: return;
    }
}

/* The version's commit id names the put, whoever has given it up meanwhile. */
static void see_effect(ls_trace *t, const life *l, const ls_sight *s)
{
    uint64_t version = ls_manifest_version(s->created), attempt = ls_manifest_commit_id(s->created).attempt;
    for (uint32_t i = l->last_put; i != NONE; i = t->events[i].before) {
        event *e = &t->events[i];
        if (e->version != version || e->number != attempt) continue;
        e->effect_ns = s->now_ns;
        return;
    }
}

static void end_all(ls_trace *t, life *l, uint8_t outcome, int64_t now_ns)
{
    end_wait(t, l, now_ns);
    if (l->attempting) end_attempt(t, l, outcome, false, now_ns);
    for (uint32_t i = 0; i < l->upload_count; i++) {
        t->events[l->uploads[i].event].end_ns = now_ns;
        t->events[l->uploads[i].event].outcome = outcome;
    }
    l->upload_count = 0;
}

static void see_change(ls_trace *t, const ls_sight *s)
{
    uint32_t index = add(t, EVENT_CHANGE, s->client, s->now_ns);
    if (index != NONE) t->events[index].what = (uint8_t)s->kind;
}

static void see(void *context, const ls_sight *s)
{
    ls_trace *t = context;
    t->last_ns = s->now_ns;
    if (s->kind == LS_SIGHT_MEASURING || s->kind == LS_SIGHT_MEASURED) {
        see_change(t, s);
        return;
    }
    life *l = meet(t, s);
    if (l == NULL) return;
    switch (s->kind) {
    case LS_SIGHT_REQUEST: see_request(t, l, s); return;
    case LS_SIGHT_REPLY: see_reply(t, l, s); return;
    case LS_SIGHT_ACTION: see_action(t, l, s); return;
    case LS_SIGHT_CREATED: see_effect(t, l, s); return;
    case LS_SIGHT_ENDED:
        end_all(t, l, l->fenced ? OUTCOME_FENCED : l->crashed ? OUTCOME_CRASHED : OUTCOME_CALLED_OFF, s->now_ns);
        return;
    case LS_SIGHT_STARTED:
    case LS_SIGHT_PAUSED:
    case LS_SIGHT_RESUMED:
    case LS_SIGHT_CRASHED:
        l->crashed = l->crashed || s->kind == LS_SIGHT_CRASHED;
        see_change(t, s);
        return;
    case LS_SIGHT_MEASURING:
    case LS_SIGHT_MEASURED: return;
    }
}

/* A run whose trace cannot be kept goes no further. */
static ls_result stop_when_full(void *context, uint32_t producer, ls_store_request *request)
{
    const ls_trace *t = context;
    (void)producer;
    (void)request;
    return t->failed ? LS_ERROR_MEMORY : t->full ? LS_ERROR_LIMIT : LS_OK;
}

void ls_trace_watch(ls_trace *t, ls_simulation_watcher *watcher)
{
    *watcher = (ls_simulation_watcher){.context = t, .sight = see, .request = stop_when_full};
}

ls_result ls_trace_finish(ls_trace *t, ls_error *error)
{
    for (uint32_t i = 0; i < t->life_count; i++) {
        if (t->lives[i].known) end_all(t, &t->lives[i], OUTCOME_IN_FLIGHT, t->last_ns);
    }
    if (t->failed) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for a trace of %" PRIu32 " events", t->event_count);
    if (!t->full) return LS_OK;
    return ls_fail(error, LS_ERROR_LIMIT, "more than %" PRIu32 " events from %g s on, the last kept at %g s: give a shorter time with "
                   "--from and --to (in simulated seconds)", t->most_events, ls_seconds(t->from_ns), ls_seconds(t->last_ns));
}

/* --- writing ------------------------------------------------------------------------------------------------------------ */

/* One line of the file: a record, or the end of an upload. */
typedef struct line {
    int64_t at_ns;
    uint32_t event;
    bool ends;
} line;

static int by_time(const void *left, const void *right)
{
    const line *a = left, *b = right;
    if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    return (int)a->ends - (int)b->ends;
}

/* Microseconds, to the nanosecond: three decimals, no rounding by the way of a double. */
static void add_time(cJSON *object, const char *name, int64_t at_ns)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRId64 ".%03d", at_ns / 1000, (int)(at_ns % 1000));
    cJSON_AddRawToObject(object, name, text);
}

static void add_whole(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddRawToObject(object, name, text);
}

static const char *name_of(const event *e)
{
    switch ((event_kind)e->kind) {
    case EVENT_ATTEMPT: return "attempt";
    case EVENT_REQUEST: return e->what == LS_LIST ? "list" : e->what == LS_HEAD ? "head" : "get";
    case EVENT_PUT: return "put";
    case EVENT_UPLOAD: return "upload";
    case EVENT_WAIT: return "wait";
    case EVENT_JOINED: return "joined";
    case EVENT_PUBLISHED: return "published";
    case EVENT_FENCED: return "fenced";
    case EVENT_CHANGE: break;
    }
    return change_names[e->what];
}

static void add_outcome(cJSON *arguments, const event *e)
{
    cJSON_AddStringToObject(arguments, "outcome", outcome_names[e->outcome]);
    cJSON_AddBoolToObject(arguments, "measured", e->measured);
    if (e->ambiguous) cJSON_AddTrueToObject(arguments, "ambiguous");
}

static void add_status(cJSON *arguments, const event *e)
{
    if (e->status != STATUS_NONE) cJSON_AddStringToObject(arguments, "status", ls_reply_status_name((ls_reply_status)e->status));
}

static void add_arguments(cJSON *object, const event *e)
{
    cJSON *arguments = cJSON_AddObjectToObject(object, "args");
    switch ((event_kind)e->kind) {
    case EVENT_ATTEMPT:
        if (e->version > 0) add_whole(arguments, "version", e->version);
        add_whole(arguments, "batches", e->count);
        add_outcome(arguments, e);
        return;
    case EVENT_REQUEST:
        add_whole(arguments, e->what == LS_LIST ? "after_version" : "version", e->version);
        if (e->what == LS_GET) add_whole(arguments, "bytes", e->bytes);
        add_status(arguments, e);
        return;
    case EVENT_PUT:
        add_whole(arguments, "version", e->version);
        add_whole(arguments, "batches", e->count);
        add_whole(arguments, "bytes", e->bytes);
        add_outcome(arguments, e);
        add_status(arguments, e);
        if (e->effect_ns != LS_NEVER_NS) add_time(arguments, "effect_us", e->effect_ns);
        return;
    case EVENT_UPLOAD:
        add_whole(arguments, "sequence", e->number);
        add_whole(arguments, "bytes", e->bytes);
        add_status(arguments, e);
        if (e->outcome != OUTCOME_NONE) cJSON_AddStringToObject(arguments, "outcome", outcome_names[e->outcome]);
        return;
    case EVENT_JOINED: add_whole(arguments, "source_offset", e->number); return;
    case EVENT_PUBLISHED:
        add_whole(arguments, "version", e->version);
        add_whole(arguments, "batches", e->count);
        add_whole(arguments, "bytes", e->bytes);
        return;
    case EVENT_WAIT:
    case EVENT_FENCED:
    case EVENT_CHANGE: return;
    }
}

/* Processes are producers from 1 on; a producer's first life is its main thread, for the first lives are the first clients. */
static void add_track(const ls_trace *t, cJSON *object, uint32_t client)
{
    add_whole(object, "pid", client == UINT32_MAX ? 0 : (uint64_t)t->lives[client].producer + 1);
    add_whole(object, "tid", client == UINT32_MAX ? 0 : (uint64_t)client + 1);
}

static cJSON *new_event(const char *name, const char *phase)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", name);
    cJSON_AddStringToObject(object, "ph", phase);
    return object;
}

static cJSON *describe(const ls_trace *t, const line *where)
{
    const event *e = &t->events[where->event];
    bool upload = e->kind == EVENT_UPLOAD, instant = e->kind >= EVENT_JOINED;
    cJSON *object = new_event(name_of(e), upload ? (where->ends ? "e" : "b") : instant ? "i" : "X");
    cJSON_AddStringToObject(object, "cat", upload ? "upload" : instant ? "event" : e->kind == EVENT_WAIT ? "wait" : "commit");
    add_time(object, "ts", where->at_ns);
    if (!upload && !instant) add_time(object, "dur", e->end_ns - e->begin_ns);
    add_track(t, object, e->client);
    if (upload) add_whole(object, "id", where->event);
    if (instant) cJSON_AddStringToObject(object, "s", e->client == UINT32_MAX ? "g" : "t");
    if (!where->ends) add_arguments(object, e);
    return object;
}

/* Prints one object on a line of its own and frees it; false when out of memory. */
static bool print_line(FILE *file, cJSON *object, bool *first)
{
    char *text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    if (text == NULL) return false;
    fprintf(file, "%s\n%s", *first ? "" : ",", text);
    *first = false;
    cJSON_free(text);
    return true;
}

static cJSON *name_track(const ls_trace *t, uint32_t client, const char *what, const char *name)
{
    cJSON *object = new_event(what, "M");
    add_track(t, object, client);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "args"), "name", name);
    return object;
}

static bool print_names(const ls_trace *t, FILE *file, bool *first)
{
    char name[48];
    for (uint32_t i = 0; i < t->life_count; i++) {
        const life *l = &t->lives[i];
        if (!l->shown) continue;
        snprintf(name, sizeof name, "producer %" PRIu32, l->producer);
        if (!print_line(file, name_track(t, i, "process_name", name), first)) return false;
        snprintf(name, sizeof name, "life %" PRIu32, l->number);
        if (!print_line(file, name_track(t, i, "thread_name", name), first)) return false;
    }
    return true;
}

static line *sort_lines(const ls_trace *t, size_t *count)
{
    line *lines = ls_allocate_array(2 * (size_t)t->event_count + 1, sizeof *lines);
    *count = 0;
    if (lines == NULL) return NULL;
    for (uint32_t i = 0; i < t->event_count; i++) {
        const event *e = &t->events[i];
        lines[(*count)++] = (line){.at_ns = e->begin_ns, .event = i};
        if (e->kind == EVENT_UPLOAD) lines[(*count)++] = (line){.at_ns = e->end_ns, .event = i, .ends = true};
    }
    qsort(lines, *count, sizeof *lines, by_time);
    return lines;
}

ls_result ls_trace_write(const ls_trace *t, const cJSON *about, FILE *file, ls_error *error)
{
    size_t count;
    line *lines = sort_lines(t, &count);
    char *other = cJSON_PrintUnformatted(about);
    bool first = true, complete = lines != NULL && other != NULL;
    if (complete) fprintf(file, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", other);
    complete = complete && print_names(t, file, &first);
    for (size_t i = 0; i < count && complete; i++) complete = print_line(file, describe(t, &lines[i]), &first);
    if (complete) fprintf(file, "\n]}\n");
    cJSON_free(other);
    ls_free(lines);
    if (!complete) return ls_fail(error, LS_ERROR_MEMORY, "out of memory while writing a trace of %" PRIu32 " events", t->event_count);
    return ferror(file) ? ls_fail(error, LS_ERROR_IO, "cannot write the trace: %s", strerror(errno)) : LS_OK;
}

/* --- the picture's table ------------------------------------------------------------------------------------------------ */

static const char *series_of(const event *e)
{
    switch ((event_kind)e->kind) {
    case EVENT_REQUEST: return e->what == LS_GET ? "get" : "list";
    case EVENT_UPLOAD: return "upload";
    case EVENT_FENCED: return "fenced";
    case EVENT_CHANGE: return e->what == LS_SIGHT_CRASHED || e->what == LS_SIGHT_PAUSED ? change_names[e->what] : NULL;
    case EVENT_PUT: break;
    default: return NULL;
    }
    switch (e->outcome) {
    case LS_ATTEMPT_WON: return "put won";
    case LS_ATTEMPT_LOST: return "put lost";
    case LS_ATTEMPT_PROVED: return "put proved";
    case LS_ATTEMPT_THROTTLED:
    case LS_ATTEMPT_ABORTED: return "put refused";
    default: return "put unheard";
    }
}

typedef struct ranked {
    uint32_t producer, number, client;
} ranked;

static int by_producer(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->producer != b->producer) return a->producer < b->producer ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The row of each client in the picture; lives of one producer lie beside each other. */
static uint32_t *rank_lives(const ls_trace *t)
{
    ranked *order = ls_allocate_array((size_t)t->life_count + 1, sizeof *order);
    uint32_t *row = ls_allocate_array((size_t)t->life_count + 1, sizeof *row), count = 0;
    for (uint32_t i = 0; order != NULL && i < t->life_count; i++) {
        const life *l = &t->lives[i];
        if (l->shown) order[count++] = (ranked){.producer = l->producer, .number = l->number, .client = i};
    }
    if (order != NULL) qsort(order, count, sizeof *order, by_producer);
    for (uint32_t i = 0; row != NULL && i < count; i++) row[order[i].client] = i;
    ls_free(order);
    return row;
}

void ls_trace_table(const ls_trace *t, ls_text *table)
{
    ls_text_add(table, "row\tlabel\tseries\tbegin_s\tend_s\n");
    uint32_t *row = rank_lives(t);
    if (row == NULL) table->failed = true;
    for (uint32_t i = 0; i < t->event_count && row != NULL; i++) {
        const event *e = &t->events[i];
        const char *series = e->client == UINT32_MAX ? NULL : series_of(e);
        if (series == NULL) continue;
        const life *l = &t->lives[e->client];
        ls_text_format(table, "%" PRIu32 "\t%" PRIu32, row[e->client], l->producer);
        if (l->number > 1) ls_text_format(table, ", life %" PRIu32, l->number);
        ls_text_format(table, "\t%s\t%.9f\t%.9f\n", series, ls_seconds(e->begin_ns), ls_seconds(e->end_ns));
    }
    ls_free(row);
}

ls_trace_counts ls_trace_count(const ls_trace *t)
{
    ls_trace_counts counts = {.events = t->event_count};
    for (uint32_t i = 0; i < t->life_count; i++) counts.lives += t->lives[i].shown;
    for (uint32_t i = 0; i < t->event_count; i++) {
        const event *e = &t->events[i];
        counts.attempts += e->kind == EVENT_ATTEMPT;
        counts.puts += e->kind == EVENT_PUT;
        counts.won += e->kind == EVENT_PUT && e->outcome == LS_ATTEMPT_WON;
        counts.lost += e->kind == EVENT_PUT && e->outcome == LS_ATTEMPT_LOST;
    }
    return counts;
}
