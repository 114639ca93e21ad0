/* bench_s3.c - puts and gets a second through the S3 store, beside a bare libcurl multi loop and the curl program, all
 * on one Ceph RGW that this benchmark starts.
 *
 * The bare loop is the limit: it keeps its handles set up, sends requests that were signed before the clock started,
 * and looks at nothing but the status. Ours signs and hashes every request, sets a handle up for it and checks the
 * answer. The curl program (--parallel, --aws-sigv4) stands for another client that a Debian machine has; its start
 * counts, as it does in a script.
 *
 * The server takes most of the machine, so the client's own processor time a request is the steadier number on a busy
 * one. What ours adds to a 1 MiB put is nearly all SHA-256 (0.6 ms at 1.7 GB/s), by which the server refuses a damaged
 * body before it acknowledges.
 *
 * Needs the packages that tests/servers/rgw.sh names; run from the project's root.
 */
#include "backend/s3.h"
#include "backend/s3_sign.h"
#include "tests/bench/bench.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SLOTS      8 /* requests at once */
#define ACCESS_KEY "lakestream"
#define SECRET_KEY "lakestreamsecret"

typedef struct work {
    bool is_put;
    size_t bytes;
    uint32_t count; /* requests a round */
    uint8_t *body;
    ls_store *store;
    char key[SLOTS][32];
    uint32_t submitted, failed;
    double ours_cpu_s, bare_cpu_s; /* of this process, all rounds together */
} work;

static char endpoint[48], *host = endpoint + sizeof "http://" - 1;
static char folder[] = "/tmp/lakestream-bench-XXXXXX";

static void check(bool is_good, const char *what)
{
    if (is_good) return;
    fprintf(stderr, "bench s3: %s\n", what);
    exit(1);
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Ours. */

typedef struct ours_slot {
    work *work;
    uint32_t index;
} ours_slot;

static void ours_next(ours_slot *slot);

static void ours_replied(void *context, const ls_object_reply *reply)
{
    ours_slot *slot = context;
    slot->work->failed += reply->status != LS_REPLY_OK;
    ours_next(slot);
}

static void ours_next(ours_slot *slot)
{
    work *w = slot->work;
    if (w->submitted == w->count) return;
    w->submitted++;
    ls_object_request request = {.operation = w->is_put ? LS_PUT : LS_GET, .key = w->key[slot->index]};
    if (w->is_put) {
        request.body = w->body;
        request.body_bytes = w->bytes;
    }
    check(ls_store_submit(w->store, &request, ours_replied, slot) == LS_OK, "submit failed");
}

static double run_ours(void *state)
{
    work *w = state;
    ours_slot slots[SLOTS];
    double begin_s = cpu_s();
    w->submitted = w->failed = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        slots[i] = (ours_slot){w, i};
        ours_next(&slots[i]);
    }
    while (ls_store_in_flight(w->store) > 0) {
        check(ls_store_poll(w->store, LS_NEVER_NS, NULL) == LS_OK, "poll failed");
    }
    check(w->failed == 0, "the store's requests failed");
    w->ours_cpu_s += cpu_s() - begin_s;
    return w->count;
}

/* The bare loop. */

typedef struct slot {
    CURL *easy;
    struct curl_slist *headers;
    const work *work;
    size_t sent;
    uint8_t *received;
    size_t received_bytes;
} slot;

static size_t bare_give(char *buffer, size_t size, size_t count, void *user)
{
    slot *s = user;
    size_t left = s->work->bytes - s->sent, given = left < size * count ? left : size * count;
    memcpy(buffer, s->work->body + s->sent, given);
    s->sent += given;
    return given;
}

static size_t bare_take(char *bytes, size_t size, size_t count, void *user)
{
    slot *s = user;
    if (size * count > s->work->bytes - s->received_bytes) return 0;
    memcpy(s->received + s->received_bytes, bytes, size * count);
    s->received_bytes += size * count;
    return size * count;
}

static void add(slot *s, const char *name, const char *value)
{
    char line[512];
    snprintf(line, sizeof line, value[0] != '\0' ? "%s: %s" : "%s:%s", name, value);
    s->headers = curl_slist_append(s->headers, line);
    check(s->headers != NULL, "out of memory");
}

static void bare_sign(slot *s, const work *w, const char *path)
{
    char hash[LS_S3_HASH_TEXT_BYTES], date[LS_S3_DATE_BYTES];
    ls_s3_text authorization = LS_S3_TEXT_EMPTY;
    ls_s3_signer signer = ls_s3_signer_open(ACCESS_KEY, SECRET_KEY, "us-east-1", "s3");
    ls_s3_hash(w->body, w->is_put ? w->bytes : 0, hash);
    check(ls_s3_format_date((int64_t)time(NULL), date), "no date");
    const ls_s3_pair headers[] = {{"host", host}, {"x-amz-content-sha256", hash}, {"x-amz-date", date}};
    const ls_s3_to_sign request = {w->is_put ? "PUT" : "GET", path, "", headers, 3, hash};
    check(ls_s3_sign(&signer, &request, date, &authorization) == LS_OK, "signing failed");
    for (int i = 0; i < 3; i++) add(s, headers[i].name, headers[i].value);
    add(s, "authorization", ls_s3_text_string(&authorization));
    add(s, "expect", "");
    ls_s3_text_free(&authorization);
}

static void bare_set_up(slot *s, work *w, uint32_t index)
{
    char path[64], url[128];
    snprintf(path, sizeof path, "/lakestream/%s", w->key[index]);
    snprintf(url, sizeof url, "%s%s", endpoint, path);
    *s = (slot){.easy = curl_easy_init(), .work = w, .received = malloc(w->bytes)};
    check(s->easy != NULL && s->received != NULL, "out of memory");
    bare_sign(s, w, path);
    curl_easy_setopt(s->easy, CURLOPT_URL, url);
    curl_easy_setopt(s->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, bare_take);
    curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_BUFFERSIZE, 131072L);
    if (!w->is_put) return;
    curl_easy_setopt(s->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(s->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)w->bytes);
    curl_easy_setopt(s->easy, CURLOPT_READFUNCTION, bare_give);
    curl_easy_setopt(s->easy, CURLOPT_READDATA, s);
    curl_easy_setopt(s->easy, CURLOPT_UPLOAD_BUFFERSIZE, 524288L);
}

static void bare_start(CURLM *multi, slot *s)
{
    s->sent = s->received_bytes = 0;
    check(curl_multi_add_handle(multi, s->easy) == CURLM_OK, "curl_multi_add_handle failed");
}

static double run_bare(void *state)
{
    work *w = state;
    slot slots[SLOTS];
    CURLM *multi = curl_multi_init();
    double begin_s = 0;
    uint32_t started = SLOTS, ended = 0;
    int left;
    for (uint32_t i = 0; i < SLOTS; i++) {
        bare_set_up(&slots[i], w, i);
        bare_start(multi, &slots[i]);
    }
    begin_s = cpu_s();
    while (ended < w->count) {
        check(curl_multi_perform(multi, &left) == CURLM_OK, "curl_multi_perform failed");
        for (CURLMsg *message; (message = curl_multi_info_read(multi, &left)) != NULL; ended++) {
            char *pointer = NULL;
            long status = 0;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &pointer);
            curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
            check(message->data.result == CURLE_OK && status == 200, "a bare request failed");
            curl_multi_remove_handle(multi, message->easy_handle);
            if (started < w->count) {
                started++;
                bare_start(multi, (slot *)(void *)pointer);
            }
        }
        if (ended < w->count) curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    w->bare_cpu_s += cpu_s() - begin_s;
    for (uint32_t i = 0; i < SLOTS; i++) {
        curl_easy_cleanup(slots[i].easy);
        curl_slist_free_all(slots[i].headers);
        free(slots[i].received);
    }
    curl_multi_cleanup(multi);
    return w->count;
}

/* The curl program. */

static double run_curl(void *state)
{
    const work *w = state;
    char command[768], upload[112] = "", path[64];
    snprintf(path, sizeof path, "%s/body", folder);
    FILE *file = w->is_put ? fopen(path, "wb") : NULL;
    if (w->is_put) {
        check(file != NULL && fwrite(w->body, 1, w->bytes, file) == w->bytes && fclose(file) == 0,
              "cannot write the body");
        snprintf(upload, sizeof upload, "-T %s", path);
    }
    snprintf(
        command, sizeof command,
        "curl -q -s --fail --noproxy '*' --parallel --parallel-max %d --user %s:%s --aws-sigv4 aws:amz:us-east-1:s3 "
        "-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' %s '%s/lakestream/%s%u]' > /dev/null 2>&1",
        SLOTS, ACCESS_KEY, SECRET_KEY, upload, endpoint, w->is_put ? "curl-[1-" : "bench-0#[1-", w->count);
    check(system(command) == 0, "the curl program failed");
    return w->count;
}

/* One row each. */

static void compare(const char *label, ls_store *store, bool is_put, size_t bytes, uint32_t count)
{
    static const ls_bench_work works[] = {run_ours, run_bare, run_curl};
    work w = {.is_put = is_put, .bytes = bytes, .count = count, .store = store, .body = malloc(bytes)};
    void *const states[] = {&w, &w, &w};
    double rates[3];
    check(w.body != NULL, "out of memory");
    for (size_t i = 0; i < bytes; i++) w.body[i] = (uint8_t)(i * 131);
    for (uint32_t i = 0; i < SLOTS; i++) snprintf(w.key[i], sizeof w.key[i], "bench-%u", i);
    work fill = w; /* the objects that are read, and a warm connection for ours */
    fill.is_put = true;
    fill.count = SLOTS;
    run_ours(&fill);
    ls_bench_rates(works, states, 3, rates);
    ls_bench_row(label, rates[0], "requests/s", "bare libcurl loop (limit)", rates[0] / rates[1]);
    ls_bench_row("", rates[0], "requests/s", "curl program", rates[0] / rates[2]);
    double all = 3.0 * count; /* requests of each contender in the three rounds */
    ls_bench_row("  processor time of the client", 1e6 * w.ours_cpu_s / all, "us/request", "bare libcurl loop (limit)",
                 w.ours_cpu_s / w.bare_cpu_s);
    free(w.body);
}

/* The server; ended however the benchmark ends. */

static void stop_server(void)
{
    char command[192];
    snprintf(command, sizeof command, "tests/servers/rgw.sh stop %s/s; rm -f %s/body; rmdir %s", folder, folder,
             folder);
    if (system(command) != 0) fprintf(stderr, "bench s3: the server in %s could not be stopped\n", folder);
}

static bool start_server(void)
{
    char command[128];
    int port = 20000 + (int)((unsigned)getpid() * 7919u % 12000u); /* so that two runs do not meet */
    check(mkdtemp(folder) != NULL, "no temporary folder");
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", port);
    snprintf(command, sizeof command, "tests/servers/rgw.sh start %s/s %d > /dev/null", folder, port);
    bool is_up = system(command) == 0;
    if (!is_up) rmdir(folder);
    if (is_up) atexit(stop_server);
    return is_up;
}

static void bench_s3(void)
{
    const ls_s3_options options = {.endpoint = endpoint,
                                   .region = "us-east-1",
                                   .access_key = ACCESS_KEY,
                                   .secret_key = SECRET_KEY,
                                   .connection_limit = SLOTS};
    char *prefix;
    ls_error error = {""};
    if (!start_server()) {
        fprintf(stderr, "bench s3: no S3 server (see above), nothing measured\n");
        return;
    }
    ls_store *store = ls_store_open_s3_with("s3://lakestream", &options, &prefix, &error);
    check(store != NULL, error.text);
    compare("put 1 KiB, 8 at once", store, true, 1024, 2000);
    compare("get 1 KiB, 8 at once", store, false, 1024, 4000);
    compare("put 1 MiB, 8 at once", store, true, 1 << 20, 200);
    compare("get 1 MiB, 8 at once", store, false, 1 << 20, 400);
    ls_free(prefix);
    ls_store_destroy(store);
}

LS_BENCH(s3, "requests a second through the S3 store", bench_s3)
