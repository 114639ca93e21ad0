/* store_model.c - the life of a request in the modelled store (see store_model.h for the times and their order).
 *
 * A request is one record from a free list; it is in exactly one place at a time: waiting for a slot, on the links, or
 * in the scheduler. Its token names the record, so an event costs no search. Request and reply share memory, because
 * after the effect nothing of the request is needed any more. Each link asks for one wake-up at a time; a wake-up that
 * was overtaken by an earlier one is recognised by its time and ignored.
 */
#include "sim/store_model.h"

#include "sim/link.h"
#include "sim/object_table.h"
#include "sim/rate_limit.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define BYTES_PER_MIB  1048576.0
#define BLOCK_RECORDS  256u
#define NO_RECORD      UINT32_MAX
#define LIST_LIMIT_MAX 1000u /* what S3's ListObjectsV2 answers at most */

typedef enum token_kind { TOKEN_REQUEST = 0, TOKEN_SERVER_LINK, TOKEN_CLIENT_LINK, TOKEN_SLOT } token_kind;

typedef enum request_phase {
    PHASE_FREE = 0,
    PHASE_SLOT,     /* waits in line for a slot */
    PHASE_UPLOAD,   /* its body is on the links */
    PHASE_EFFECT,   /* the scheduler holds its effect */
    PHASE_DOWNLOAD, /* the bytes it asked for are on the links */
    PHASE_REPLY     /* the scheduler holds its reply */
} request_phase;

typedef struct request_record {
    union {
        ls_store_request request; /* until the effect */
        ls_store_reply reply;     /* from then on */
    };
    uint64_t context;
    uint64_t known_end_step;
    int64_t submitted_ns;
    int64_t before_ns;     /* from the end of the upload to the effect */
    int64_t after_ns;      /* from the effect, or the end of the download, to the reply */
    int64_t after_lost_ns; /* the same for a conditional put that lost */
    double stretch;        /* factor on all latencies for the load met on arrival */
    uint32_t client;
    uint32_t index;
    uint32_t next_free;
    uint8_t phase;
    uint8_t operation;
    uint8_t kind;
    uint8_t links_left; /* links that still carry its transfer */
    bool is_conditional;
    void *names; /* of a list that asked for them: what its reply points into, one allocation; else NULL */
} request_record;

/* The laws, in the order of `laws`. */
typedef enum law_index { LAW_LIST = 0, LAW_HEAD, LAW_GET, LAW_PUT, LAW_WON, LAW_LOST, LAW_REMOVE, LAW_COUNT } law_index;

static const struct {
    const char *name;
    size_t offset;
} laws[LAW_COUNT] = {
    {"list", offsetof(ls_store_config, list)},
    {"head", offsetof(ls_store_config, head)},
    {"get", offsetof(ls_store_config, get)},
    {"put", offsetof(ls_store_config, put)},
    {"conditional_won", offsetof(ls_store_config, conditional_won)},
    {"conditional_lost", offsetof(ls_store_config, conditional_lost)},
    {"remove", offsetof(ls_store_config, remove)},
};

/* Draws made so far by one client. */
typedef struct client_draws {
    uint32_t read;
    uint32_t put;
    uint32_t data;
} client_draws;

typedef struct shared_link {
    ls_link link;
    int64_t armed_ns; /* the wake-up that counts; LS_NEVER_NS: none */
    uint32_t next_free;
} shared_link;

/* The link that a client was told to use. */
typedef struct link_choice {
    double bytes_per_s;
    uint32_t link;
    bool is_made;
} link_choice;

struct ls_store_model {
    ls_store_config config;
    uint64_t seed;
    uint64_t replication;
    ls_store_scheduler scheduler;
    ls_law_sampler samplers[LAW_COUNT];
    ls_object_table table;

    request_record **blocks;
    uint32_t block_count;
    uint32_t block_capacity;
    uint32_t free_record;
    uint64_t in_flight;
    ls_key winner;              /* losers_wait: the newest name that a put-if-absent won */
    int64_t winner_answered_ns; /* and when that is answered */
    int64_t active_ns; /* the last event: with no request in flight, when the last one left */
    uint64_t conditional_in_flight[LS_STORE_KINDS];

    client_draws *draws;
    uint32_t draws_capacity;

    shared_link server_link;
    shared_link **links; /* clients' links, busy or free; they do not move */
    uint32_t link_count;
    uint32_t link_capacity;
    uint32_t free_link;
    uint32_t *link_of_client; /* index of links plus 1; 0: idle */
    uint32_t link_of_client_capacity;
    link_choice *choices; /* by client */
    uint32_t choice_capacity;

    ls_station *slots;

    ls_rate_limit write_limit;
    ls_rate_limit read_limit;
    ls_rate_limit key_write_limit;
    int64_t write_full_ns[LS_STORE_KINDS];
    int64_t read_full_ns[LS_STORE_KINDS];
    ls_name_buckets names;
    int64_t throttle_reply_ns;

    void *told_names;            /* what the last reply told of a list points into, until the next event */
    const ls_manifest *rejected; /* content of the last put that lost: borrowed to the observer until the next event */
    ls_store_counters counters;
};

/* ---- configuration ---- */

static ls_result check_config(const ls_store_config *config, ls_error *error)
{
    static const struct {
        const char *name;
        size_t offset;
        double maximum;
    } rows[] = {
        {"get_s_per_mib", offsetof(ls_store_config, get_s_per_mib), 1e6},
        {"put_s_per_mib", offsetof(ls_store_config, put_s_per_mib), 1e6},
        {"read_effect_share", offsetof(ls_store_config, read_effect_share), 1.0},
        {"put_effect_share", offsetof(ls_store_config, put_effect_share), 1.0},
        {"conditional_effect_share", offsetof(ls_store_config, conditional_effect_share), 1.0},
        {"contention_s_per_doubling", offsetof(ls_store_config, contention_s_per_doubling), 1e6},
        {"client_bandwidth_bytes_per_s", offsetof(ls_store_config, client_bandwidth_bytes_per_s), 1e18},
        {"server_bandwidth_bytes_per_s", offsetof(ls_store_config, server_bandwidth_bytes_per_s), 1e18},
        {"slot_fixed_s", offsetof(ls_store_config, slot_fixed_s), 1e6},
        {"slot_s_per_mib", offsetof(ls_store_config, slot_s_per_mib), 1e6},
        {"parallelism", offsetof(ls_store_config, parallelism), 1e6},
        {"parallelism_exponent", offsetof(ls_store_config, parallelism_exponent), 1.0},
        {"rest_after_s", offsetof(ls_store_config, rest_after_s), 1e6},
        {"rest_s", offsetof(ls_store_config, rest_s), 1e6},
        {"write_limit_per_s", offsetof(ls_store_config, write_limit_per_s), 1e12},
        {"read_limit_per_s", offsetof(ls_store_config, read_limit_per_s), 1e12},
        {"key_write_limit_per_s", offsetof(ls_store_config, key_write_limit_per_s), 1e12},
        {"limit_burst_s", offsetof(ls_store_config, limit_burst_s), 1e6},
        {"throttle_reply_s", offsetof(ls_store_config, throttle_reply_s), 1e6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double value = *(const double *)((const char *)config + rows[i].offset);
        if (value >= 0.0 && value <= rows[i].maximum) continue;
        return ls_fail(error, LS_ERROR_INVALID, "store.%s is %g, expected a number from 0 to %g", rows[i].name, value,
                       rows[i].maximum);
    }
    return LS_OK;
}

static ls_result prepare_laws(ls_store_model *model, ls_error *error)
{
    for (int i = 0; i < LAW_COUNT; i++) {
        const ls_law *law = (const ls_law *)((const char *)&model->config + laws[i].offset);
        ls_error reason = {""};
        ls_result result = ls_law_prepare(law, &model->samplers[i], &reason);
        if (result != LS_OK) return ls_fail(error, result, "store.%s: %s", laws[i].name, reason.text);
    }
    return LS_OK;
}

static ls_result schedule_slot(void *context, int64_t at_ns, uint64_t tag)
{
    ls_store_model *model = context;
    return model->scheduler.schedule(model->scheduler.context, at_ns, tag << 2 | TOKEN_SLOT);
}

ls_result ls_store_model_create(const ls_store_config *config, uint64_t seed, uint64_t replication,
                                ls_store_scheduler scheduler, ls_store_model **created, ls_error *error)
{
    ls_result result = check_config(config, error);
    if (result != LS_OK) return result;
    ls_store_model *model = ls_allocate_array(1, sizeof *model);
    if (model == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory for the store model");
    model->config = *config;
    model->seed = seed;
    model->replication = replication;
    model->scheduler = scheduler;
    model->free_record = NO_RECORD;
    model->free_link = NO_RECORD;
    model->server_link.armed_ns = LS_NEVER_NS;
    ls_link_open(&model->server_link.link, config->server_bandwidth_bytes_per_s);
    model->write_limit = ls_rate_limit_make(config->write_limit_per_s, config->limit_burst_s);
    model->read_limit = ls_rate_limit_make(config->read_limit_per_s, config->limit_burst_s);
    model->key_write_limit = ls_rate_limit_make(config->key_write_limit_per_s, config->limit_burst_s);
    model->throttle_reply_ns = ls_nanoseconds(config->throttle_reply_s);
    result = prepare_laws(model, error);
    if (result != LS_OK) goto fail;
    if (config->server_slots > 0) {
        model->slots = ls_station_new(config->server_slots, (ls_store_scheduler){schedule_slot, model});
        if (model->slots == NULL) {
            result = ls_fail(error, LS_ERROR_MEMORY, "out of memory for the store model");
            goto fail;
        }
    }
    *created = model;
    return LS_OK;
fail:
    ls_store_model_destroy(model);
    return result;
}

static void release_record(request_record *record)
{
    switch ((request_phase)record->phase) {
    case PHASE_FREE: return;
    case PHASE_SLOT:
    case PHASE_UPLOAD:
    case PHASE_EFFECT:
        ls_manifest_release(record->request.manifest);
        ls_free(record->names); /* its effect failed */
        return;
    case PHASE_DOWNLOAD:
    case PHASE_REPLY:
        ls_manifest_release(record->reply.manifest);
        ls_free(record->names);
        return;
    }
}

void ls_store_model_destroy(ls_store_model *model)
{
    if (model == NULL) return;
    for (uint32_t b = 0; b < model->block_count; b++) {
        for (uint32_t i = 0; i < BLOCK_RECORDS; i++) release_record(&model->blocks[b][i]);
        ls_free(model->blocks[b]);
    }
    ls_free(model->blocks);
    ls_free(model->draws);
    for (uint32_t i = 0; i < model->link_count; i++) {
        ls_link_close(&model->links[i]->link);
        ls_free(model->links[i]);
    }
    ls_free(model->links);
    ls_free(model->link_of_client);
    ls_free(model->choices);
    ls_link_close(&model->server_link.link);
    ls_station_free(model->slots);
    ls_name_buckets_release(&model->names);
    ls_object_table_release(&model->table);
    ls_manifest_release(model->rejected);
    ls_free(model->told_names);
    for (int i = 0; i < LAW_COUNT; i++) ls_law_release(&model->samplers[i]);
    ls_free(model);
}

/* ---- growing arrays ---- */

/* Grows a zero-filled array so that index fits; false when out of memory. */
static bool reach(void **array, uint32_t *capacity, uint32_t index, size_t size)
{
    if (index < *capacity) return true;
    uint64_t wanted = *capacity < 64 ? 64 : 2 * (uint64_t)*capacity;
    while (wanted <= index) wanted *= 2;
    if (wanted > UINT32_MAX) wanted = UINT32_MAX;
    if (index >= wanted || wanted > SIZE_MAX / size) return false;
    char *grown = ls_reallocate(*array, (size_t)wanted * size);
    if (grown == NULL) return false;
    memset(grown + (size_t)*capacity * size, 0, (size_t)(wanted - *capacity) * size);
    *array = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

static request_record *record_at(const ls_store_model *model, uint64_t index)
{
    return &model->blocks[index / BLOCK_RECORDS][index % BLOCK_RECORDS];
}

static bool add_block(ls_store_model *model)
{
    if (model->block_count >= UINT32_MAX / BLOCK_RECORDS) return false;
    void *blocks = model->blocks;
    bool has_room = reach(&blocks, &model->block_capacity, model->block_count, sizeof *model->blocks);
    model->blocks = blocks;
    if (!has_room) return false;
    request_record *block = ls_allocate_array(BLOCK_RECORDS, sizeof *block);
    if (block == NULL) return false;
    uint32_t first = model->block_count * BLOCK_RECORDS;
    for (uint32_t i = 0; i < BLOCK_RECORDS; i++) {
        block[i].index = first + i;
        block[i].next_free = i + 1 < BLOCK_RECORDS ? first + i + 1 : model->free_record;
    }
    model->free_record = first;
    model->blocks[model->block_count++] = block;
    return true;
}

static request_record *take_record(ls_store_model *model)
{
    if (model->free_record == NO_RECORD && !add_block(model)) return NULL;
    request_record *record = record_at(model, model->free_record);
    model->free_record = record->next_free;
    model->in_flight++;
    return record;
}

static void give_record(ls_store_model *model, request_record *record)
{
    if (record->is_conditional) model->conditional_in_flight[record->kind]--;
    record->is_conditional = false;
    record->phase = PHASE_FREE;
    record->next_free = model->free_record;
    model->free_record = record->index;
    model->in_flight--;
}

static ls_result schedule(ls_store_model *model, request_record *record, request_phase phase, int64_t at_ns)
{
    record->phase = (uint8_t)phase;
    return model->scheduler.schedule(model->scheduler.context, at_ns, (uint64_t)record->index << 2 | TOKEN_REQUEST);
}

/* ---- latency ---- */

static bool is_conditional_law(const ls_store_request *request)
{
    return request->operation == LS_PUT && request->if_absent && request->key.kind != LS_OBJECT_DATA;
}

static law_index law_of(const ls_store_request *request)
{
    switch (request->operation) {
    case LS_LIST: return LAW_LIST;
    case LS_HEAD: return LAW_HEAD;
    case LS_GET: return LAW_GET;
    case LS_DELETE: return LAW_REMOVE;
    case LS_PUT: break;
    }
    return is_conditional_law(request) ? LAW_WON : LAW_PUT;
}

static double effect_share(const ls_store_model *model, const ls_store_request *request)
{
    if (is_conditional_law(request)) return model->config.conditional_effect_share;
    bool changes = request->operation == LS_PUT || request->operation == LS_DELETE;
    return changes ? model->config.put_effect_share : model->config.read_effect_share;
}

/* The stream of this very request: a place of its own in the stream of its client and purpose. */
static ls_random request_stream(ls_store_model *model, uint32_t client, const ls_store_request *request)
{
    client_draws *draws = &model->draws[client];
    bool changes = request->operation == LS_PUT || request->operation == LS_DELETE;
    bool is_data = request->key.kind == LS_OBJECT_DATA;
    ls_random_purpose purpose = is_data   ? LS_RANDOM_DATA_LATENCY
                                : changes ? LS_RANDOM_PUT_LATENCY
                                          : LS_RANDOM_READ_LATENCY;
    uint32_t number = is_data ? draws->data++ : changes ? draws->put++ : draws->read++;
    ls_random random = ls_random_open(model->seed, model->replication, purpose, client);
    random.index = (uint64_t)number * LS_LAW_DRAWS_MAX;
    return random;
}

static int64_t slope_ns(double s_per_mib, uint64_t bytes)
{
    int64_t ns = ls_nanoseconds(s_per_mib * ((double)bytes / BYTES_PER_MIB));
    return ns < LS_LAW_MAX_NS ? ns : LS_LAW_MAX_NS;
}

static uint64_t body_bytes(const ls_store_request *request)
{
    if (request->operation != LS_PUT) return 0;
    return request->manifest != NULL ? ls_manifest_encoded_bytes(request->manifest) : request->body_bytes;
}

/* How much longer than alone a request takes among those present. Taking the number at its arrival gives the mean times of
 * processor sharing in closed networks (arrival theorem: Reiser, Lavenberg, "Mean-value analysis of closed multichain queuing
 * networks", JACM 1980) without following the number while it changes. */
static double stretch(const ls_store_model *model)
{
    double present = (double)model->in_flight, limit = model->config.parallelism;
    if (limit <= 0.0 || present <= 1.0) return 1.0;
    return fmax(1.0, present / fmin(limit, pow(present, model->config.parallelism_exponent)));
}

/* How much longer the request takes that wakes a store which has been empty for a while (it is in flight itself already). */
static int64_t waking_ns(const ls_store_model *model, int64_t now_ns)
{
    double after_s = model->config.rest_after_s;
    bool is_awake = after_s <= 0.0 || model->in_flight > 1 || ls_seconds(now_ns - model->active_ns) < after_s;
    return is_awake ? 0 : ls_nanoseconds(model->config.rest_s);
}

static int64_t stretched_ns(int64_t ns, double factor)
{
    double longer = (double)ns * factor;
    return factor == 1.0 ? ns : longer < (double)LS_LAW_MAX_NS ? (int64_t)longer : LS_LAW_MAX_NS;
}

static void draw_latency(ls_store_model *model, request_record *record)
{
    const ls_store_request *request = &record->request;
    ls_random random = request_stream(model, record->client, request), same = random;
    int64_t share_ns = 0;
    int64_t base_ns = ls_law_draw_split_ns(&model->samplers[law_of(request)], &random, effect_share(model, request), &share_ns);
    record->before_ns = share_ns;
    record->after_ns = base_ns - share_ns;
    if (request->operation == LS_PUT) record->before_ns += slope_ns(model->config.put_s_per_mib, body_bytes(request));
    record->stretch = stretch(model);
    record->before_ns = stretched_ns(record->before_ns, record->stretch) + waking_ns(model, record->submitted_ns);
    record->after_ns = stretched_ns(record->after_ns, record->stretch);
    if (!record->is_conditional) return;
    int64_t lost_ns = ls_law_draw_ns(&model->samplers[LAW_LOST], &same);
    record->after_lost_ns = lost_ns > share_ns ? stretched_ns(lost_ns - share_ns, record->stretch) : 0;
}

/* ---- links ---- */

/* The link that a client's transfers cross besides the store's own. */
static link_choice choice_of(const ls_store_model *model, uint32_t client)
{
    if (client < model->choice_capacity && model->choices[client].is_made) return model->choices[client];
    return (link_choice){.bytes_per_s = model->config.client_bandwidth_bytes_per_s, .link = client};
}

ls_result ls_store_model_use_link(ls_store_model *model, uint32_t client, uint32_t link, double bytes_per_s)
{
    void *choices = model->choices;
    bool has_room = reach(&choices, &model->choice_capacity, client, sizeof *model->choices);
    model->choices = choices;
    if (!has_room) return LS_ERROR_MEMORY;
    model->choices[client] = (link_choice){.bytes_per_s = bytes_per_s, .link = link, .is_made = true};
    return LS_OK;
}

static bool has_links(const ls_store_model *model, uint32_t client)
{
    return model->config.server_bandwidth_bytes_per_s > 0.0 || choice_of(model, client).bytes_per_s > 0.0;
}

static ls_result arm(ls_store_model *model, shared_link *shared, uint64_t token)
{
    int64_t next_ns = ls_link_next_ns(&shared->link);
    if (next_ns >= shared->armed_ns) return LS_OK;
    shared->armed_ns = next_ns;
    return model->scheduler.schedule(model->scheduler.context, next_ns, token);
}

static shared_link *make_link(ls_store_model *model)
{
    void *links = model->links;
    bool has_room = reach(&links, &model->link_capacity, model->link_count, sizeof *model->links);
    model->links = links;
    if (!has_room) return NULL;
    shared_link *shared = ls_allocate_array(1, sizeof *shared);
    if (shared == NULL) return NULL;
    ls_link_open(&shared->link, 1.0);
    model->links[model->link_count++] = shared;
    return shared;
}

/* The busy link of that number, or a free one made so. */
static shared_link *client_link(ls_store_model *model, uint32_t client, double bytes_per_s)
{
    void *map = model->link_of_client;
    bool has_room = reach(&map, &model->link_of_client_capacity, client, sizeof *model->link_of_client);
    model->link_of_client = map;
    if (!has_room) return NULL;
    if (model->link_of_client[client] != 0) return model->links[model->link_of_client[client] - 1];
    uint32_t index = model->free_link;
    shared_link *shared;
    if (index != NO_RECORD) {
        shared = model->links[index];
        model->free_link = shared->next_free;
    } else {
        index = model->link_count;
        shared = make_link(model);
        if (shared == NULL) return NULL;
    }
    shared->armed_ns = LS_NEVER_NS;
    shared->link.bytes_per_s = bytes_per_s;
    model->link_of_client[client] = index + 1;
    return shared;
}

static void give_link(ls_store_model *model, uint32_t client)
{
    uint32_t index = model->link_of_client[client] - 1;
    model->link_of_client[client] = 0;
    model->links[index]->next_free = model->free_link;
    model->free_link = index;
}

static ls_result start_transfer(ls_store_model *model, request_record *record, request_phase phase, uint64_t bytes,
                                int64_t now_ns)
{
    ls_result result = LS_OK;
    record->phase = (uint8_t)phase;
    record->links_left = 0;
    if (model->config.server_bandwidth_bytes_per_s > 0.0) {
        result = ls_link_start(&model->server_link.link, now_ns, bytes, record->index);
        if (result != LS_OK) return result;
        record->links_left++;
        result = arm(model, &model->server_link, TOKEN_SERVER_LINK);
    }
    link_choice choice = choice_of(model, record->client);
    if (result == LS_OK && choice.bytes_per_s > 0.0) {
        shared_link *shared = client_link(model, choice.link, choice.bytes_per_s);
        if (shared == NULL) return LS_ERROR_MEMORY;
        result = ls_link_start(&shared->link, now_ns, bytes, record->index);
        if (result != LS_OK) return result;
        record->links_left++;
        result = arm(model, shared, (uint64_t)choice.link << 2 | TOKEN_CLIENT_LINK);
    }
    return result;
}

/* A link's wake-up: takes at most one ended transfer off it, and asks for the next wake-up. *record is the request
 * whose transfer has now ended on all its links, or NULL. */
static ls_result link_event(ls_store_model *model, shared_link *shared, uint64_t token, int64_t now_ns,
                            request_record **record)
{
    *record = NULL;
    if (now_ns != shared->armed_ns) return LS_OK;
    shared->armed_ns = LS_NEVER_NS;
    uint64_t index;
    if (ls_link_finish(&shared->link, now_ns, &index)) {
        request_record *ended = record_at(model, index);
        if (--ended->links_left == 0) *record = ended;
    }
    return arm(model, shared, token);
}

static ls_result client_link_event(ls_store_model *model, uint64_t token, int64_t now_ns, request_record **record)
{
    uint32_t client = (uint32_t)(token >> 2);
    *record = NULL;
    if (client >= model->link_of_client_capacity || model->link_of_client[client] == 0) return LS_OK;
    shared_link *shared = model->links[model->link_of_client[client] - 1];
    ls_result result = link_event(model, shared, token, now_ns, record);
    if (ls_link_active(&shared->link) == 0) give_link(model, client);
    return result;
}

/* ---- arrival ---- */

static bool is_sensible(const ls_store_request *request)
{
    if (request->operation < LS_GET || request->operation > LS_LIST) return false;
    if (request->key.kind < LS_OBJECT_DATA || request->key.kind > LS_OBJECT_FLOOR) return false;
    if (request->operation == LS_GET && request->range != LS_RANGE_WHOLE && request->range_bytes == 0) return false;
    if (request->operation == LS_LIST && request->list_limit == 0) return false;
    return request->operation != LS_PUT || request->key.kind != LS_OBJECT_MANIFEST || request->manifest != NULL;
}

static void count(ls_store_model *model, uint32_t operation, uint32_t kind, ls_reply_status status, uint64_t up_bytes,
                  uint64_t down_bytes)
{
    ls_store_count *counted = &model->counters.by[operation][kind][status];
    counted->requests++;
    counted->up_bytes += up_bytes;
    counted->down_bytes += down_bytes;
}

/* Answers without an effect: the record turns into its reply. */
static ls_result refuse(ls_store_model *model, request_record *record, ls_reply_status status, int64_t retry_after_ns,
                        int64_t at_ns)
{
    ls_manifest_release(record->request.manifest);
    record->reply = (ls_store_reply){.status = status, .tag = record->request.tag, .retry_after_ns = retry_after_ns};
    count(model, record->operation, record->kind, status, 0, 0);
    return schedule(model, record, PHASE_REPLY, at_ns);
}

/* Asks the buckets; takes a token from each only if all have one. */
static ls_result throttle(ls_store_model *model, const ls_store_request *request, int64_t now_ns, int64_t *wait_ns)
{
    bool changes = request->operation == LS_PUT || request->operation == LS_DELETE;
    const ls_rate_limit *limit = changes ? &model->write_limit : &model->read_limit;
    int64_t *full_ns = &(changes ? model->write_full_ns : model->read_full_ns)[request->key.kind];
    ls_name_bucket *name = NULL;
    *wait_ns = ls_rate_limit_wait_ns(limit, *full_ns, now_ns);
    if (*wait_ns == 0 && request->operation == LS_PUT && model->key_write_limit.interval_ns > 0) {
        name = ls_name_buckets_get(&model->names, &request->key, now_ns);
        if (name == NULL) return LS_ERROR_MEMORY;
        *wait_ns = ls_rate_limit_wait_ns(&model->key_write_limit, name->full_ns, now_ns);
        if (*wait_ns > 0) model->counters.key_throttled++;
    }
    if (*wait_ns > 0) {
        model->counters.throttled++;
        return LS_OK;
    }
    *full_ns = ls_rate_limit_take(limit, *full_ns, now_ns);
    if (name != NULL) name->full_ns = ls_rate_limit_take(&model->key_write_limit, name->full_ns, now_ns);
    return LS_OK;
}

/* The request has its slot (or needs none): its time begins to run. */
static ls_result begin(ls_store_model *model, request_record *record, int64_t now_ns)
{
    uint64_t bytes = body_bytes(&record->request);
    if (bytes > 0 && has_links(model, record->client)) return start_transfer(model, record, PHASE_UPLOAD, bytes, now_ns);
    return schedule(model, record, PHASE_EFFECT, now_ns + record->before_ns);
}

/* Bytes of an object that a get asks for. */
static uint64_t wanted_bytes(const ls_store_request *request, uint64_t object_bytes)
{
    uint64_t available = object_bytes;
    if (request->range == LS_RANGE_SPAN) {
        available = request->range_offset < object_bytes ? object_bytes - request->range_offset : 0;
    }
    if (request->range == LS_RANGE_WHOLE) return object_bytes;
    return request->range_bytes < available ? request->range_bytes : available;
}

static int64_t slot_time_ns(const ls_store_model *model, const ls_store_request *request)
{
    uint64_t bytes = body_bytes(request);
    if (request->operation == LS_GET) {
        const ls_object *object = ls_object_table_find(&model->table, &request->key);
        if (object != NULL) bytes = wanted_bytes(request, object->bytes);
    }
    return ls_nanoseconds(model->config.slot_fixed_s) + slope_ns(model->config.slot_s_per_mib, bytes);
}

static ls_result admit(ls_store_model *model, request_record *record, int64_t now_ns)
{
    record->is_conditional = is_conditional_law(&record->request);
    if (record->is_conditional) model->conditional_in_flight[record->kind]++;
    draw_latency(model, record);
    if (model->slots == NULL) return begin(model, record, now_ns);
    bool started;
    record->phase = PHASE_SLOT;
    ls_result result =
        ls_station_arrive(model->slots, now_ns, slot_time_ns(model, &record->request), record->index, &started);
    if (result != LS_OK) return result;
    if (started) return begin(model, record, now_ns);
    model->counters.slot_waits++;
    return LS_OK;
}

static ls_result arrive(ls_store_model *model, request_record *record, int64_t now_ns)
{
    const ls_store_request *request = &record->request;
    if (!is_sensible(request)) {
        record->operation = request->operation >= LS_GET && request->operation <= LS_LIST ? record->operation : 0;
        record->kind = request->key.kind >= LS_OBJECT_DATA && request->key.kind <= LS_OBJECT_FLOOR ? record->kind : 0;
        return refuse(model, record, LS_REPLY_INVALID, 0, now_ns);
    }
    int64_t wait_ns;
    ls_result result = throttle(model, request, now_ns, &wait_ns);
    if (result != LS_OK) return result;
    if (wait_ns > 0) return refuse(model, record, LS_REPLY_THROTTLED, wait_ns, now_ns + model->throttle_reply_ns);
    return admit(model, record, now_ns);
}

ls_result ls_store_model_submit(ls_store_model *model, int64_t now_ns, uint32_t client, uint64_t context,
                                const ls_store_request *request)
{
    void *draws = model->draws;
    bool has_room = reach(&draws, &model->draws_capacity, client, sizeof *model->draws);
    model->draws = draws;
    request_record *record = has_room ? take_record(model) : NULL;
    if (record == NULL) {
        ls_manifest_release(request->manifest);
        return LS_ERROR_MEMORY;
    }
    record->request = *request;
    record->request.known = NULL;
    if (request->operation != LS_PUT) record->request.manifest = NULL;
    record->known_end_step = request->known == NULL ? 0 : ls_manifest_end_step(request->known);
    record->context = context;
    record->submitted_ns = now_ns;
    record->client = client;
    record->operation = (uint8_t)request->operation;
    record->kind = (uint8_t)request->key.kind;
    record->phase = PHASE_SLOT;
    ls_result result = arrive(model, record, now_ns);
    if (result != LS_OK) {
        release_record(record);
        give_record(model, record);
    }
    return result;
}

/* ---- effect ---- */

static ls_result store_object(ls_store_model *model, const ls_store_request *request, uint64_t bytes, int64_t now_ns)
{
    ls_result result = ls_object_table_put(&model->table, &request->key, bytes, request->manifest, now_ns);
    model->counters.stored_objects = model->table.objects;
    model->counters.stored_bytes = model->table.bytes;
    return result;
}

static ls_result effect_of_put(ls_store_model *model, const ls_store_request *request, int64_t now_ns, ls_store_reply *reply)
{
    uint64_t bytes = body_bytes(request);
    if (request->if_absent && ls_object_table_find(&model->table, &request->key) != NULL) {
        reply->status = LS_REPLY_EXISTS;
        model->counters.wasted_up_bytes += bytes;
        model->rejected = request->manifest;
        return LS_OK;
    }
    return store_object(model, request, bytes, now_ns);
}

static void effect_of_delete(ls_store_model *model, const ls_store_request *request)
{
    const ls_object *object = ls_object_table_find(&model->table, &request->key);
    if (object == NULL) return; /* S3 answers 204 all the same */
    ls_object_table_remove(&model->table, &request->key);
    model->counters.stored_objects = model->table.objects;
    model->counters.stored_bytes = model->table.bytes;
}

/* Whether the bytes moved hold all that the reader lacks (manifest/codec.h); else says how many would. */
static bool suffices(const request_record *record, const ls_object *object, ls_store_reply *reply)
{
    if (reply->moved_bytes == object->bytes) return true;
    if (record->request.range != LS_RANGE_SUFFIX) return false;
    uint64_t needed = ls_manifest_tail_bytes(object->manifest, record->known_end_step);
    if (reply->moved_bytes >= needed) return true;
    reply->needed_bytes = needed;
    return false;
}

static void effect_of_get(ls_store_model *model, const request_record *record, ls_store_reply *reply)
{
    const ls_store_request *request = &record->request;
    const ls_object *object = ls_object_table_find(&model->table, &request->key);
    if (object == NULL) {
        reply->status = LS_REPLY_NOT_FOUND;
        return;
    }
    reply->object_bytes = object->bytes;
    if (request->range == LS_RANGE_SPAN && request->range_offset >= object->bytes) {
        reply->status = LS_REPLY_INVALID;
        return;
    }
    reply->moved_bytes = wanted_bytes(request, object->bytes);
    reply->slice = request->slice;
    if (object->manifest != NULL && suffices(record, object, reply)) {
        reply->manifest = ls_manifest_retain(object->manifest);
    }
}

static void effect_of_head(ls_store_model *model, const ls_store_request *request, ls_store_reply *reply)
{
    const ls_object *object = ls_object_table_find(&model->table, &request->key);
    if (object == NULL)
        reply->status = LS_REPLY_NOT_FOUND;
    else
        reply->object_bytes = object->bytes;
}

/* Room for the names of a listing in one allocation, and the reply pointing into it. */
static ls_result make_names(request_record *record, ls_listing *listing, ls_store_reply *reply)
{
    size_t count = (size_t)listing->count;
    ls_key *keys = ls_allocate(count * (sizeof *keys + sizeof *listing->bytes + sizeof *listing->made_ns));
    if (keys == NULL) return LS_ERROR_MEMORY;
    record->names = keys;
    listing->keys = keys;
    listing->bytes = (uint64_t *)(void *)(keys + count);
    listing->made_ns = (int64_t *)(void *)(listing->bytes + count);
    reply->list_keys = listing->keys;
    reply->list_bytes = listing->bytes;
    reply->list_ages_ns = listing->made_ns;
    return LS_OK;
}

static ls_result effect_of_list(ls_store_model *model, request_record *record, int64_t now_ns, ls_store_reply *reply)
{
    const ls_store_request *request = &record->request;
    uint32_t limit = request->list_limit < LIST_LIMIT_MAX ? request->list_limit : LIST_LIMIT_MAX;
    ls_listing listing = {0};
    ls_result result = ls_object_table_list(&model->table, &request->key, limit, &listing);
    if (result != LS_OK) return result;
    if (request->list_names && listing.count > 0) {
        result = make_names(record, &listing, reply);
        if (result == LS_OK) result = ls_object_table_list(&model->table, &request->key, limit, &listing);
        if (result != LS_OK) return result;
        for (uint64_t i = 0; i < listing.count; i++) listing.made_ns[i] = now_ns - listing.made_ns[i]; /* now ages */
    }
    reply->list_count = listing.count;
    reply->list_last = listing.last;
    reply->list_truncated = listing.truncated;
    return LS_OK;
}

static ls_result carry_out(ls_store_model *model, request_record *record, int64_t now_ns, ls_store_reply *reply)
{
    switch (record->request.operation) {
    case LS_GET: effect_of_get(model, record, reply); return LS_OK;
    case LS_PUT: return effect_of_put(model, &record->request, now_ns, reply);
    case LS_HEAD: effect_of_head(model, &record->request, reply); return LS_OK;
    case LS_DELETE: effect_of_delete(model, &record->request); return LS_OK;
    case LS_LIST: return effect_of_list(model, record, now_ns, reply);
    }
    return LS_OK;
}

static int64_t contention_ns(const ls_store_model *model, const request_record *record)
{
    uint64_t rivals = model->conditional_in_flight[record->kind];
    if (rivals < 2) return 0;
    return ls_nanoseconds(model->config.contention_s_per_doubling * log2((double)rivals));
}

/* With losers_wait: the answer to a loser comes no earlier than that to the winner of the same name. The newest winner is enough to
 * remember: who still tries for an older version finds it answered long ago. */
static void order_answers(ls_store_model *model, request_record *record, ls_reply_status status, int64_t now_ns)
{
    if (!model->config.losers_wait) return;
    if (status == LS_REPLY_OK) {
        model->winner = record->request.key;
        model->winner_answered_ns = now_ns + record->after_ns;
    } else if (ls_key_compare(&model->winner, &record->request.key) == 0 && now_ns + record->after_ns < model->winner_answered_ns) {
        record->after_ns = model->winner_answered_ns - now_ns;
    }
}

static void complete(ls_store_model *model, request_record *record, ls_store_completion *done)
{
    if (done != NULL) {
        *done = (ls_store_completion){.ready = true,
                                      .client = record->client,
                                      .context = record->context,
                                      .submitted_ns = record->submitted_ns,
                                      .operation = (ls_operation)record->operation,
                                      .kind = (ls_object_kind)record->kind,
                                      .reply = record->reply};
        model->told_names = record->names; /* the reply points there until the next event */
    } else {
        ls_manifest_release(record->reply.manifest);
        ls_free(record->names);
    }
    record->names = NULL;
    give_record(model, record);
}

static ls_result finish(ls_store_model *model, request_record *record, int64_t now_ns, ls_store_completion *done)
{
    if (record->after_ns > 0) return schedule(model, record, PHASE_REPLY, now_ns + record->after_ns);
    complete(model, record, done);
    return LS_OK;
}

static ls_result take_effect(ls_store_model *model, request_record *record, int64_t now_ns, ls_store_completion *done,
                             ls_store_effect *effect)
{
    ls_store_reply reply = {.status = LS_REPLY_OK, .tag = record->request.tag};
    ls_result result = carry_out(model, record, now_ns, &reply);
    if (result != LS_OK) return result;
    count(model, record->operation, record->kind, reply.status, body_bytes(&record->request), reply.moved_bytes);
    if (effect != NULL) {
        *effect = (ls_store_effect){.happened = true,
                                    .client = record->client,
                                    .context = record->context,
                                    .status = reply.status,
                                    .request = record->request};
    }
    if (record->is_conditional) {
        if (reply.status == LS_REPLY_EXISTS) record->after_ns = record->after_lost_ns;
        record->after_ns += contention_ns(model, record);
        order_answers(model, record, reply.status, now_ns);
    }
    record->after_ns += stretched_ns(slope_ns(model->config.get_s_per_mib, reply.moved_bytes), record->stretch);
    record->reply = reply;
    record->phase = PHASE_REPLY;
    if (reply.moved_bytes > 0 && has_links(model, record->client)) {
        return start_transfer(model, record, PHASE_DOWNLOAD, reply.moved_bytes, now_ns);
    }
    return finish(model, record, now_ns, done);
}

/* ---- events ---- */

/* The request's next step is due: the end of a transfer, its effect, or its reply. */
static ls_result proceed(ls_store_model *model, request_record *record, int64_t now_ns, ls_store_completion *done,
                         ls_store_effect *effect)
{
    switch ((request_phase)record->phase) {
    case PHASE_UPLOAD:
        if (record->before_ns > 0) return schedule(model, record, PHASE_EFFECT, now_ns + record->before_ns);
        return take_effect(model, record, now_ns, done, effect);
    case PHASE_EFFECT: return take_effect(model, record, now_ns, done, effect);
    case PHASE_DOWNLOAD: return finish(model, record, now_ns, done);
    case PHASE_REPLY: complete(model, record, done); return LS_OK;
    case PHASE_FREE:
    case PHASE_SLOT: break;
    }
    return LS_ERROR_INVALID;
}

static ls_result slot_event(ls_store_model *model, uint64_t tag, int64_t now_ns)
{
    ls_station_turn turn;
    ls_result result = ls_station_event(model->slots, now_ns, tag, &turn);
    if (result != LS_OK || !turn.has_started) return result;
    model->counters.slot_wait_ns += turn.waited_ns;
    return begin(model, record_at(model, turn.started), now_ns);
}

bool ls_store_model_is_latency(uint64_t token)
{
    return (token & 3) == TOKEN_REQUEST;
}

ls_result ls_store_model_event(ls_store_model *model, int64_t now_ns, uint64_t token, ls_store_completion *done,
                               ls_store_effect *effect)
{
    if (done != NULL) done->ready = false;
    if (effect != NULL) effect->happened = false;
    ls_manifest_release(model->rejected);
    model->rejected = NULL;
    ls_free(model->told_names);
    model->told_names = NULL;
    model->active_ns = now_ns;
    request_record *record = NULL;
    ls_result result = LS_OK;
    switch ((token_kind)(token & 3)) {
    case TOKEN_REQUEST: record = record_at(model, token >> 2); break;
    case TOKEN_SERVER_LINK: result = link_event(model, &model->server_link, token, now_ns, &record); break;
    case TOKEN_CLIENT_LINK: result = client_link_event(model, token, now_ns, &record); break;
    case TOKEN_SLOT: return slot_event(model, token >> 2, now_ns);
    }
    if (result != LS_OK || record == NULL) return result;
    return proceed(model, record, now_ns, done, effect);
}

/* ---- installation and views ---- */

static ls_result install(ls_store_model *model, const ls_key *key, uint64_t bytes, const ls_manifest *manifest)
{
    ls_result result = ls_object_table_put(&model->table, key, bytes, manifest, 0);
    model->counters.stored_objects = model->table.objects;
    model->counters.stored_bytes = model->table.bytes;
    return result;
}

ls_result ls_store_model_install_manifest(ls_store_model *model, const ls_manifest *manifest)
{
    ls_key key = {.kind = LS_OBJECT_MANIFEST, .number = ls_manifest_version(manifest)};
    ls_result result = install(model, &key, ls_manifest_encoded_bytes(manifest), manifest);
    if (result == LS_OK) ls_manifest_retain(manifest);
    return result;
}

ls_result ls_store_model_install_data(ls_store_model *model, const ls_key *key, uint64_t bytes)
{
    bool is_allowed = key->kind == LS_OBJECT_DATA || key->kind == LS_OBJECT_FLOOR || key->kind == LS_OBJECT_CHECKPOINT;
    return is_allowed ? install(model, key, bytes, NULL) : LS_ERROR_INVALID;
}

const ls_manifest *ls_store_model_newest(const ls_store_model *model)
{
    const ls_object *object = ls_object_table_greatest(&model->table, LS_OBJECT_MANIFEST);
    return object == NULL ? NULL : object->manifest;
}

const ls_manifest *ls_store_model_manifest(const ls_store_model *model, uint64_t version)
{
    ls_key key = {.kind = LS_OBJECT_MANIFEST, .number = version};
    const ls_object *object = ls_object_table_find(&model->table, &key);
    return object == NULL ? NULL : object->manifest;
}

bool ls_store_model_has(const ls_store_model *model, const ls_key *key, uint64_t *bytes)
{
    const ls_object *object = ls_object_table_find(&model->table, key);
    if (object != NULL && bytes != NULL) *bytes = object->bytes;
    return object != NULL;
}

uint64_t ls_store_model_in_flight(const ls_store_model *model)
{
    return model->in_flight;
}

uint64_t ls_store_model_conditional_in_flight(const ls_store_model *model, ls_object_kind kind)
{
    return kind >= LS_OBJECT_DATA && kind <= LS_OBJECT_FLOOR ? model->conditional_in_flight[kind] : 0;
}

const ls_store_counters *ls_store_model_counters(const ls_store_model *model)
{
    return &model->counters;
}

void ls_store_model_reset_counters(ls_store_model *model)
{
    model->counters = (ls_store_counters){.stored_objects = model->table.objects, .stored_bytes = model->table.bytes};
}
