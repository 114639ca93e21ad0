/* s3.c - the store's methods: a line of waiting operations, a pool of curl handles, and the loop that drives them.
 *
 * At most connection_limit operations are on the wire, the others wait here and not inside libcurl, where the request's
 * time-out would run already. Handles go back to the pool after a success; after a failed transfer a handle is thrown
 * away, because libcurl before 8.16 keeps a failed rewind in it for ever (curl issues 17139 and 18206). Connections
 * live in the multi handle and survive both. poll sleeps in curl_multi_poll, whose time-out has only milliseconds, with
 * a timerfd beside it for the nanoseconds.
 */
#include "backend/s3.h"

#include "backend/s3_operation.h"

#include <inttypes.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SPARE_BUFFERS   16u
#define SPARE_BYTES_MAX (UINT64_C(64) << 20)

TAILQ_HEAD(operation_list, ls_s3_operation);

/* Memory of an answer that was delivered, kept for the next one: fresh pages from the kernel cost as much as moving the
 * bytes. */
typedef struct spare_buffer {
    uint8_t *bytes;
    size_t capacity;
} spare_buffer;

typedef struct s3_store {
    ls_store base;
    ls_s3_config config;
    ls_s3_signer signer;
    CURLM *multi;
    bool is_curl_ready;
    int timer; /* timerfd */
    struct operation_list waiting, active, finished;
    uint32_t in_flight; /* in all three lists */
    uint32_t active_count;
    CURL **pool; /* idle handles, room for connection_limit */
    uint32_t pool_count;
    spare_buffer spare[SPARE_BUFFERS]; /* the last in is the first out */
    uint32_t spare_count;
    uint64_t spare_bytes;
    int64_t clock_offset_s;
    ls_s3_counters counters;
} s3_store;

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * LS_NANOSECONDS_PER_SECOND + now.tv_nsec;
}

static int64_t wall_clock_s(void) { return now_ns(CLOCK_REALTIME) / LS_NANOSECONDS_PER_SECOND; }

/* Operations on their way through the three lists. */

static void finish(s3_store *store, ls_s3_operation *operation)
{
    TAILQ_INSERT_TAIL(&store->finished, operation, link);
}

static void take_spare(s3_store *store, ls_s3_incoming *in)
{
    if (in->body != NULL || store->spare_count == 0) return;
    spare_buffer spare = store->spare[--store->spare_count];
    store->spare_bytes -= spare.capacity;
    in->body = spare.bytes;
    in->body_capacity = spare.capacity;
}

static void give_spare(s3_store *store, ls_s3_incoming *in)
{
    bool has_room = store->spare_count < SPARE_BUFFERS && in->body_capacity <= SPARE_BYTES_MAX - store->spare_bytes;
    if (in->body == NULL || !has_room) return;
    store->spare[store->spare_count++] = (spare_buffer){in->body, in->body_capacity};
    store->spare_bytes += in->body_capacity;
    in->body = NULL;
}

/* Puts operation->wire.out on the wire. */
static ls_result send_next(s3_store *store, ls_s3_operation *operation)
{
    CURL *easy = store->pool_count > 0 ? store->pool[--store->pool_count] : curl_easy_init();
    if (easy == NULL) return LS_ERROR_MEMORY;
    if (operation->request.operation == LS_GET) take_spare(store, &operation->wire.in);
    ls_result result = ls_s3_wire_prepare(&operation->wire, easy, &store->config, &store->signer,
                                          wall_clock_s() + store->clock_offset_s, operation);
    if (result == LS_OK && curl_multi_add_handle(store->multi, easy) != CURLM_OK) result = LS_ERROR_MEMORY;
    if (result != LS_OK) {
        curl_easy_cleanup(easy);
        return result;
    }
    operation->easy = easy;
    return LS_OK;
}

/* On the wire or, when that is impossible, finished. The operation is in no list. */
static void start(s3_store *store, ls_s3_operation *operation)
{
    ls_result result = send_next(store, operation);
    if (result != LS_OK) {
        ls_s3_operation_unsent(operation, &store->config, result);
        finish(store, operation);
        return;
    }
    TAILQ_INSERT_TAIL(&store->active, operation, link);
    store->active_count++;
}

static void start_waiting(s3_store *store)
{
    while (store->active_count < store->config.connection_limit && !TAILQ_EMPTY(&store->waiting)) {
        ls_s3_operation *operation = TAILQ_FIRST(&store->waiting);
        TAILQ_REMOVE(&store->waiting, operation, link);
        start(store, operation);
    }
}

static void count(s3_store *store, const ls_s3_operation *operation)
{
    long connections = 0;
    curl_easy_getinfo(operation->easy, CURLINFO_NUM_CONNECTS, &connections);
    store->counters.connections += (uint64_t)connections;
    store->counters.requests += operation->wire.sends;
    store->counters.resends_prevented += operation->wire.is_resend_prevented;
}

static void release_handle(s3_store *store, ls_s3_operation *operation, CURLcode code)
{
    curl_multi_remove_handle(store->multi, operation->easy);
    if (code == CURLE_OK && store->pool_count < store->config.connection_limit) {
        store->pool[store->pool_count++] = operation->easy;
    } else {
        curl_easy_cleanup(operation->easy);
    }
    operation->easy = NULL;
}

/* A transfer has ended: the operation is finished, or goes on with its next request in the same place. */
static void transfer_ended(s3_store *store, ls_s3_operation *operation, CURLcode code)
{
    curl_off_t retry_after_s = 0;
    int64_t offset_s = store->clock_offset_s;
    curl_easy_getinfo(operation->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    count(store, operation);
    release_handle(store, operation, code);
    TAILQ_REMOVE(&store->active, operation, link);
    store->active_count--;
    ls_s3_step step =
        ls_s3_operation_received(operation, &store->config, code, (int64_t)retry_after_s, wall_clock_s(), &offset_s);
    store->counters.clock_corrections += offset_s != store->clock_offset_s;
    store->clock_offset_s = offset_s;
    if (step == LS_S3_STEP_SEND) {
        start(store, operation);
    } else {
        finish(store, operation);
    }
}

static void collect(s3_store *store)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(store->multi, &left)) != NULL;) {
        char *pointer = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result; /* message dies with the handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &pointer);
        transfer_ended(store, (ls_s3_operation *)(void *)pointer, code);
    }
}

/* Only those that are finished now: a callback that submits could otherwise keep us here for ever. */
static uint32_t deliver(s3_store *store)
{
    uint32_t delivered = 0;
    struct operation_list ready = TAILQ_HEAD_INITIALIZER(ready);
    TAILQ_CONCAT(&ready, &store->finished, link);
    for (ls_s3_operation *operation; (operation = TAILQ_FIRST(&ready)) != NULL; delivered++) {
        TAILQ_REMOVE(&ready, operation, link);
        store->in_flight--;
        operation->callback(operation->context, &operation->reply);
        give_spare(store, &operation->wire.in);
        ls_s3_operation_free(operation);
    }
    return delivered;
}

/* Sleeps until the network wants us or remaining_ns have passed. */
static bool sleep_for(s3_store *store, int64_t remaining_ns)
{
    const int limit_ms = 1 << 30;
    struct curl_waitfd timer = {.fd = store->timer, .events = CURL_WAIT_POLLIN};
    if (remaining_ns / 1000000 >= limit_ms) return curl_multi_poll(store->multi, NULL, 0, limit_ms, NULL) == CURLM_OK;
    struct itimerspec once = {.it_value = {.tv_sec = (time_t)(remaining_ns / LS_NANOSECONDS_PER_SECOND),
                                           .tv_nsec = (long)(remaining_ns % LS_NANOSECONDS_PER_SECOND)}};
    timerfd_settime(store->timer, 0, &once, NULL);
    return curl_multi_poll(store->multi, &timer, 1, (int)(remaining_ns / 1000000) + 1, NULL) == CURLM_OK;
}

/* Methods. */

static ls_result s3_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback, void *context)
{
    s3_store *store = (s3_store *)base;
    ls_s3_operation *operation = ls_s3_operation_new(&store->config, request, callback, context);
    if (operation == NULL) return LS_ERROR_MEMORY;
    TAILQ_INSERT_TAIL(&store->waiting, operation, link);
    store->in_flight++;
    return LS_OK;
}

static ls_result s3_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    s3_store *store = (s3_store *)base;
    int64_t start_ns = now_ns(CLOCK_MONOTONIC);
    for (;;) {
        int running;
        start_waiting(store);
        if (curl_multi_perform(store->multi, &running) != CURLM_OK) return LS_ERROR_IO;
        collect(store);
        *finished += deliver(store);
        if (*finished > 0) return LS_OK;
        int64_t passed_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
        if (passed_ns >= timeout_ns) return LS_OK;
        if (!sleep_for(store, timeout_ns - passed_ns)) return LS_ERROR_IO;
    }
}

static uint32_t s3_in_flight(const ls_store *base) { return ((const s3_store *)base)->in_flight; }

static void drop_all(struct operation_list *list)
{
    for (ls_s3_operation *operation; (operation = TAILQ_FIRST(list)) != NULL;) {
        TAILQ_REMOVE(list, operation, link);
        ls_s3_operation_free(operation);
    }
}

static void s3_destroy(ls_store *base)
{
    s3_store *store = (s3_store *)base;
    ls_s3_operation *operation;
    TAILQ_FOREACH(operation, &store->active, link)
    {
        curl_multi_remove_handle(store->multi, operation->easy);
        curl_easy_cleanup(operation->easy);
    }
    drop_all(&store->waiting);
    drop_all(&store->active);
    drop_all(&store->finished);
    for (uint32_t i = 0; i < store->pool_count; i++) curl_easy_cleanup(store->pool[i]);
    for (uint32_t i = 0; i < store->spare_count; i++) ls_free(store->spare[i].bytes);
    ls_free(store->pool);
    if (store->multi != NULL) curl_multi_cleanup(store->multi);
    if (store->is_curl_ready) curl_global_cleanup();
    if (store->timer >= 0) close(store->timer);
    ls_s3_signer_close(&store->signer);
    ls_s3_config_free(&store->config);
    ls_free(store);
}

static const ls_store_methods s3_methods = {s3_submit, s3_poll, s3_in_flight, s3_destroy};

/* Opening. */

static ls_result set_up(s3_store *store, const char *address, const ls_s3_options *options, char **prefix,
                        ls_error *error)
{
    store->is_curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!store->is_curl_ready) return ls_fail(error, LS_ERROR_IO, "libcurl cannot be initialised");
    ls_result result = ls_s3_config_resolve(address, options, &store->config, error);
    if (result != LS_OK) return result;
    const ls_s3_config *config = &store->config;
    store->signer = ls_s3_signer_open(config->access_key, config->secret_key, config->region, "s3");
    store->pool = ls_allocate_array(config->connection_limit, sizeof store->pool[0]);
    store->multi = curl_multi_init();
    store->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    *prefix = ls_duplicate(config->prefix);
    if (store->pool == NULL || store->multi == NULL || *prefix == NULL) {
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory while opening '%s'", address);
    }
    if (store->timer < 0)
        return ls_fail(error, LS_ERROR_IO, "no timer to be had from the kernel while opening '%s'", address);
    long kept = config->connection_limit < 1000000 ? (long)config->connection_limit : 1000000;
    curl_multi_setopt(store->multi, CURLMOPT_MAXCONNECTS, kept);
    curl_multi_setopt(store->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return LS_OK;
}

ls_store *ls_store_open_s3_with(const char *address, const ls_s3_options *options, char **prefix, ls_error *error)
{
    *prefix = NULL;
    s3_store *store = ls_allocate_array(1, sizeof *store);
    if (store == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "out of memory while opening '%s'", address);
        return NULL;
    }
    store->base.methods = &s3_methods;
    store->timer = -1;
    TAILQ_INIT(&store->waiting);
    TAILQ_INIT(&store->active);
    TAILQ_INIT(&store->finished);
    if (set_up(store, address, options, prefix, error) == LS_OK) return &store->base;
    ls_free(*prefix);
    *prefix = NULL;
    s3_destroy(&store->base);
    return NULL;
}

ls_store *ls_store_open_s3(const char *address, char **prefix, ls_error *error)
{
    return ls_store_open_s3_with(address, NULL, prefix, error);
}

ls_s3_counters ls_s3_read_counters(const ls_store *base)
{
    const s3_store *store = (const s3_store *)base;
    ls_s3_counters counters = store->counters;
    counters.clock_offset_s = store->clock_offset_s;
    return counters;
}
