/* test_s3_faults.c - the S3 store behind a proxy that breaks things, in front of a real server.
 *
 * What each test looks at: the reply, how often the request was really sent, and what the server holds afterwards.
 */
#include "backend/s3.h"
#include "tests/faults/fault_proxy.h"
#include "tests/s3_server.h"
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECRET "lakestreamsecret"
#define TOKEN  "session-token/that+nobody=may-see"

/* A store behind a proxy with a script, and one on the server itself to look at the truth. */
typedef struct bench {
    fault_proxy *proxy;
    ls_store *store;
    ls_store *direct;
    ls_s3_options options;
    char endpoint[64];
} bench;

static bool bench_open(bench *b, const fault *script, size_t count, int64_t timeout_ns)
{
    const s3_server *server = s3_server_get();
    if (server == NULL) return false;
    *b = (bench){.options = server->options};
    b->proxy = fault_proxy_start(server->port, script, count);
    CU_ASSERT_PTR_NOT_NULL(b->proxy);
    if (b->proxy == NULL) return false;
    snprintf(b->endpoint, sizeof b->endpoint, "http://127.0.0.1:%d", fault_proxy_port(b->proxy));
    b->direct = s3_server_open(&server->options);
    b->options.endpoint = b->endpoint;
    if (timeout_ns > 0) b->options.request_timeout_ns = timeout_ns;
    b->store = s3_server_open(&b->options);
    return b->direct != NULL && b->store != NULL;
}

/* Ends with every fault of the script used: a fault that nobody met would prove nothing. */
static void bench_close(bench *b)
{
    CU_ASSERT_EQUAL(fault_proxy_unused(b->proxy), 0);
    ls_store_destroy(b->store);
    ls_store_destroy(b->direct);
    fault_proxy_stop(b->proxy);
}

static const ls_object_request put_request = {
    .operation = LS_PUT, .key = "fault", .if_absent = true, .body = "content", .body_bytes = 7};
static const ls_object_request get_request = {.operation = LS_GET, .key = "fault"};
static const ls_object_request list_request = {.operation = LS_LIST, .key = "fault", .list_limit = 10};

/* The reply to a request, its message searched for a text (NULL: do not care). */
static ls_reply_status ask(ls_store *store, const ls_object_request *request, const char *in_message)
{
    store_answer answer = store_ask(store, request);
    bool is_said = in_message == NULL || strstr(answer.message, in_message) != NULL;
    CU_ASSERT(is_said);
    if (!is_said) fprintf(stderr, "message: %s\n", answer.message);
    CU_ASSERT(answer.status == LS_REPLY_OK || answer.message[0] != '\0');
    CU_ASSERT_PTR_NULL(strstr(answer.message, SECRET));
    ls_reply_status status = answer.status;
    store_answer_clear(&answer);
    return status;
}

static bool is_there(bench *b) { return store_holds(b->direct, "fault", "content", 7); }

static bool is_absent(bench *b) { return ask(b->direct, &get_request, NULL) == LS_REPLY_NOT_FOUND; }

/* A put whose connection ends without an answer, on a new connection and on a reused one, where libcurl would send it
 * again: always unknown, sent exactly once, and the truth is found by reading. (curl issue 2801,
 * PR 18417.) */
static void check_lost_put(fault_kind kind, bool is_reused, bool takes_effect, ls_object_request put)
{
    const fault script[] = {{.kind = kind, .method = "PUT", .target = "/fault"}};
    bench b;
    if (!bench_open(&b, script, 1, 0)) return;
    if (is_reused) CU_ASSERT_EQUAL(store_put(b.store, "other", "x", 1, false), LS_REPLY_OK);
    CU_ASSERT_EQUAL(ask(b.store, &put, NULL), LS_REPLY_UNKNOWN_OUTCOME);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", "/fault"), 1);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).requests, is_reused ? 2 : 1);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).resends_prevented, is_reused ? 1 : 0);
    if (takes_effect) CU_ASSERT(store_holds(b.direct, "fault", put.body, put.body_bytes));
    if (!takes_effect) CU_ASSERT(is_absent(&b));
    /* A second try by the caller meets its own object, if there is one. */
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), takes_effect ? LS_REPLY_EXISTS : LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
    store_delete(b.direct, "other");
    bench_close(&b);
}

static void test_lost_puts(void)
{
    static const struct {
        fault_kind kind;
        bool takes_effect;
    } kinds[] = {
        {FAULT_DROP_BEFORE, false}, {FAULT_RESET_BEFORE, false}, {FAULT_DROP_AFTER, true}, {FAULT_RESET_AFTER, true}};
    ls_object_request empty = put_request, large = put_request;
    uint8_t *body = ls_allocate_array(3000000, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    empty.body_bytes = 0;
    large.body = body;
    large.body_bytes = 3000000;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (int is_reused = 0; is_reused < 2; is_reused++) {
            check_lost_put(kinds[i].kind, is_reused, kinds[i].takes_effect, put_request);
            check_lost_put(kinds[i].kind, is_reused, kinds[i].takes_effect,
                           empty); /* nothing to rewind: no seek to refuse */
        }
        if (kinds[i].kind != FAULT_RESET_BEFORE) check_lost_put(kinds[i].kind, true, kinds[i].takes_effect, large);
    }
    ls_free(body);
}

/* An unconditional put and a delete are changes too. */
static void test_lost_changes(void)
{
    const fault script[] = {{.kind = FAULT_DROP_AFTER, .method = "PUT", .target = "/fault"},
                            {.kind = FAULT_DROP_AFTER, .method = "DELETE"}};
    bench b;
    if (!bench_open(&b, script, 2, 0)) return;
    CU_ASSERT_EQUAL(store_put(b.store, "other", "x", 1, false), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_put(b.store, "fault", "content", 7, false), LS_REPLY_UNKNOWN_OUTCOME);
    CU_ASSERT(is_there(&b));
    CU_ASSERT(store_holds(b.store, "other", "x", 1)); /* the connection is good again */
    CU_ASSERT_EQUAL(store_delete(b.store, "fault"), LS_REPLY_UNKNOWN_OUTCOME);
    CU_ASSERT(is_absent(&b));
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", "/fault"), 1);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "DELETE", NULL), 1);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).resends_prevented, 2);
    store_delete(b.direct, "other");
    bench_close(&b);
}

/* The server closed an idle connection before we reuse it: noticed, no harm, one more connection. Keep-alive is kept.
 */
static void test_idle_close(void)
{
    const fault script[] = {{.kind = FAULT_CLOSE_IDLE, .method = "PUT"}};
    bench b;
    if (!bench_open(&b, script, 1, 0)) return;
    CU_ASSERT_EQUAL(store_put(b.store, "other", "x", 1, false), LS_REPLY_OK);
    const struct timespec pause = {.tv_nsec = 50000000}; /* until the FIN has surely come over loopback */
    nanosleep(&pause, NULL);
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_OK);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 2);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).connections, 2);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).resends_prevented, 0);
    CU_ASSERT_EQUAL(store_delete(b.store, "other"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(b.store, "fault"), LS_REPLY_OK);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).connections, 2);
    bench_close(&b);
}

/* A read on a dead reused connection may be repeated unseen, and on a new one fails as unavailable. */
static void test_lost_reads(void)
{
    const fault script[] = {{.kind = FAULT_DROP_BEFORE, .method = "GET"},
                            {.kind = FAULT_PASS, .method = "GET"},
                            {.kind = FAULT_RESET_BEFORE, .method = "GET"}};
    bench b;
    if (!bench_open(&b, script, 3, 0)) return;
    CU_ASSERT_EQUAL(store_put(b.direct, "fault", "content", 7, false), LS_REPLY_OK);
    CU_ASSERT_EQUAL(ask(b.store, &get_request, "after it was sent"), LS_REPLY_UNAVAILABLE);
    CU_ASSERT(store_holds(b.store, "fault", "content", 7));
    CU_ASSERT(store_holds(b.store, "fault", "content", 7));
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "GET", NULL), 4);
    CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
    bench_close(&b);
}

/* The transport sent it twice and shows the second answer: 412 for our own object. EXISTS is a hint; reading tells. */
static void test_own_412(void)
{
    const fault script[] = {{.kind = FAULT_TWICE, .method = "PUT"}};
    bench b;
    if (!bench_open(&b, script, 1, 0)) return;
    CU_ASSERT_EQUAL(ask(b.store, &put_request, "PreconditionFailed"), LS_REPLY_EXISTS);
    CU_ASSERT(is_there(&b));
    CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
    bench_close(&b);
}

static void test_timeout(void)
{
    const fault script[] = {{.kind = FAULT_DELAY, .method = "PUT", .delay_ms = 600},
                            {.kind = FAULT_DELAY, .method = "GET", .delay_ms = 600}};
    bench b;
    if (!bench_open(&b, script, 2, 150000000)) return;
    CU_ASSERT_EQUAL(ask(b.store, &put_request, "imed out"), LS_REPLY_UNKNOWN_OUTCOME);
    CU_ASSERT(is_there(&b));
    CU_ASSERT_EQUAL(ask(b.store, &get_request, "imed out"), LS_REPLY_UNAVAILABLE);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 1);
    CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
    bench_close(&b);
}

/* Damaged answers are never OK. */
static void test_damaged_answers(void)
{
    static const fault_kind kinds[] = {FAULT_HALF_BODY, FAULT_LONG_LENGTH, FAULT_GARBAGE};
    ls_object_request range = {
        .operation = LS_GET, .key = "fault", .range = LS_RANGE_SPAN, .range_offset = 1, .range_bytes = 4};
    for (size_t i = 0; i < 3; i++) {
        const fault script[] = {{.kind = kinds[i], .method = "GET", .target = "list-type"},
                                {.kind = FAULT_HALF_BODY, .method = "GET", .target = "/fault"},
                                {.kind = FAULT_LONG_LENGTH, .method = "GET", .target = "/fault"},
                                {.kind = FAULT_LONG_LENGTH, .method = "PUT"}};
        bench b;
        if (!bench_open(&b, script, 4, 0)) return;
        CU_ASSERT_EQUAL(store_put(b.direct, "fault", "content", 7, false), LS_REPLY_OK);
        if (kinds[i] != FAULT_LONG_LENGTH) CU_ASSERT_EQUAL(ask(b.store, &list_request, NULL), LS_REPLY_UNAVAILABLE);
        /* The list comes chunked, where a Content-Length has nothing to say (RFC 9112, section 6.3). */
        if (kinds[i] == FAULT_LONG_LENGTH) CU_ASSERT_NOT_EQUAL(ask(b.store, &list_request, NULL), LS_REPLY_INVALID);
        CU_ASSERT_EQUAL(ask(b.store, &get_request, NULL), LS_REPLY_UNAVAILABLE);
        CU_ASSERT_EQUAL(ask(b.store, &range, NULL), LS_REPLY_UNAVAILABLE);
        ls_object_request put = put_request;
        put.key = "fault2";
        CU_ASSERT_EQUAL(ask(b.store, &put, NULL), LS_REPLY_UNKNOWN_OUTCOME);
        CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
        CU_ASSERT_EQUAL(store_delete(b.direct, "fault2"), LS_REPLY_OK);
        bench_close(&b);
    }
}

/* Canned answers: what came, what it means. */

#define HEAD_OF(status) "HTTP/1.1 " status "\r\nx-amz-request-id: RID17\r\n"
#define EMPTY(status)   HEAD_OF(status) "Content-Length: 0\r\n\r\n"

/* An answer with an error document of this code. The texts are never freed: a test's worth of them. */
static const char *with_error(const char *status, const char *headers, const char *code)
{
    char body[256];
    static char texts[128][640];
    static size_t next;
    char *text = texts[next++ % 128];
    snprintf(body, sizeof body, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>why</Message></Error>", code);
    snprintf(text, 640, HEAD_OF("%s") "%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body), body);
    return text;
}

typedef struct canned {
    ls_operation operation;
    const char *status, *headers, *code; /* code NULL: no body */
    ls_reply_status expected;
    int retry_after_s;
    const char *said;
} canned;

static void check_canned(const canned *test)
{
    char headers[160];
    static char answer[640];
    snprintf(headers, sizeof headers, "%s", test->headers != NULL ? test->headers : "");
    if (test->code != NULL) {
        snprintf(answer, sizeof answer, "%s", with_error(test->status, headers, test->code));
    } else {
        snprintf(answer, sizeof answer, HEAD_OF("%s") "%sContent-Length: 0\r\n\r\n", test->status, headers);
    }
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = answer}};
    ls_object_request request = {
        .operation = test->operation, .key = "fault", .if_absent = true, .body = "b", .body_bytes = 1, .list_limit = 3};
    bench b;
    if (!bench_open(&b, script, 1, 0)) return;
    store_answer reply = store_ask(b.store, &request);
    CU_ASSERT_EQUAL(reply.status, test->expected);
    if (reply.status != test->expected) fprintf(stderr, "%s: %s\n", test->status, reply.message);
    if (test->said != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(reply.message, test->said));
    if (test->expected != LS_REPLY_OK) CU_ASSERT_PTR_NOT_NULL(strstr(reply.message, "RID17"));
    store_answer_clear(&reply);
    bench_close(&b);
}

static void test_canned_answers(void)
{
    static const canned cases[] = {
        {LS_PUT, "409 Conflict", NULL, "ConditionalRequestConflict", LS_REPLY_CONFLICT_RETRY, 0,
         "ConditionalRequestConflict"},
        {LS_PUT, "409 Conflict", NULL, "OperationAborted", LS_REPLY_CONFLICT_RETRY, 0, NULL},
        {LS_PUT, "409 Conflict", NULL, NULL, LS_REPLY_CONFLICT_RETRY, 0, NULL},
        {LS_PUT, "409 Conflict", NULL, "BlobAlreadyExists", LS_REPLY_EXISTS, 0, NULL},
        {LS_PUT, "412 Precondition Failed", NULL, "PreconditionFailed", LS_REPLY_EXISTS, 0, NULL},
        {LS_PUT, "304 Not Modified", NULL, NULL, LS_REPLY_EXISTS, 0, NULL},
        {LS_PUT, "500 Internal Server Error", NULL, "InternalError", LS_REPLY_UNKNOWN_OUTCOME, 0, "InternalError, why"},
        {LS_GET, "500 Internal Server Error", NULL, "InternalError", LS_REPLY_UNAVAILABLE, 0, NULL},
        {LS_PUT, "502 Bad Gateway", NULL, NULL, LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_PUT, "503 Slow Down", NULL, "SlowDown", LS_REPLY_THROTTLED, 0, NULL},
        {LS_PUT, "503 Service Unavailable", NULL, NULL, LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_GET, "503 Service Unavailable", NULL, NULL, LS_REPLY_THROTTLED, 0, NULL},
        {LS_HEAD, "503 Service Unavailable", NULL, NULL, LS_REPLY_THROTTLED, 0, NULL},
        {LS_PUT, "504 Gateway Timeout", NULL, NULL, LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_PUT, "429 Too Many Requests", NULL, NULL, LS_REPLY_THROTTLED, 0, NULL},
        {LS_PUT, "501 Not Implemented", NULL, "NotImplemented", LS_REPLY_INVALID, 0, "conditional put"},
        {LS_PUT, "507 Insufficient Storage", NULL, NULL, LS_REPLY_INVALID, 0, "full"},
        {LS_PUT, "400 Bad Request", NULL, "BadDigest", LS_REPLY_UNAVAILABLE, 0, NULL},
        {LS_PUT, "400 Bad Request", NULL, "RequestTimeout", LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_GET, "400 Bad Request", NULL, "ExpiredToken", LS_REPLY_DENIED, 0, "session has expired"},
        {LS_GET, "400 Bad Request", NULL, "KeyTooLongError", LS_REPLY_INVALID, 0, NULL},
        {LS_GET, "403 Forbidden", NULL, "AccessDenied", LS_REPLY_DENIED, 0, "rights"},
        {LS_GET, "401 Unauthorized", NULL, NULL, LS_REPLY_DENIED, 0, NULL},
        {LS_GET, "404 Not Found", NULL, "NoSuchKey", LS_REPLY_NOT_FOUND, 0, "NoSuchKey"},
        {LS_DELETE, "404 Not Found", NULL, "NoSuchKey", LS_REPLY_OK, 0, NULL},
        {LS_PUT, "404 Not Found", NULL, "NoSuchBucket", LS_REPLY_INVALID, 0, "create the bucket"},
        {LS_LIST, "404 Not Found", NULL, NULL, LS_REPLY_INVALID, 0, NULL},
        {LS_GET, "301 Moved Permanently", "x-amz-bucket-region: eu-west-3\r\n", "PermanentRedirect", LS_REPLY_INVALID,
         0, "eu-west-3"},
        {LS_LIST, "503 Slow Down", "Retry-After: 2\r\n", "SlowDown", LS_REPLY_THROTTLED, 0, NULL},
        {LS_PUT, "200 OK", "ETag: \"e\"\r\n", "InternalError", LS_REPLY_UNKNOWN_OUTCOME, 0, "InternalError"},
        {LS_PUT, "200 OK", NULL, NULL, LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_DELETE, "200 OK", NULL, "InternalError", LS_REPLY_UNKNOWN_OUTCOME, 0, NULL},
        {LS_LIST, "200 OK", NULL, "InternalError", LS_REPLY_UNAVAILABLE, 0, "InternalError"},
        {LS_LIST, "200 OK", NULL, "SlowDown", LS_REPLY_THROTTLED, 0, NULL},
        {LS_LIST, "200 OK", NULL, NULL, LS_REPLY_UNAVAILABLE, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_canned(&cases[i]);
}

/* A burst of 503 with Retry-After: reported each time, never retried below, gone when the server says so. */
static void test_throttling_burst(void)
{
    static char answer[640];
    snprintf(answer, sizeof answer, "%s", with_error("503 Slow Down", "Retry-After: 2\r\n", "SlowDown"));
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = answer},
                            {.kind = FAULT_ANSWER, .answer = answer},
                            {.kind = FAULT_ANSWER, .answer = answer}};
    bench b;
    if (!bench_open(&b, script, 3, 0)) return;
    for (size_t i = 1; i <= 3; i++) {
        store_answer reply = store_ask(b.store, &put_request);
        CU_ASSERT_EQUAL(reply.status, LS_REPLY_THROTTLED);
        store_answer_clear(&reply);
        CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), i);
    }
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_OK);
    CU_ASSERT_EQUAL(store_delete(b.direct, "fault"), LS_REPLY_OK);
    bench_close(&b);
}

static void note_retry_after(void *context, const ls_object_reply *reply)
{
    *(int64_t *)context = reply->retry_after_ns;
}

static void test_retry_after(void)
{
    static char answer[640], far[640];
    snprintf(answer, sizeof answer, "%s", with_error("503 Slow Down", "Retry-After: 2\r\n", "SlowDown"));
    snprintf(far, sizeof far, "%s", with_error("429 Slow Down", "Retry-After: 99999999\r\n", "SlowDown"));
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = answer}, {.kind = FAULT_ANSWER, .answer = far}};
    const int64_t expected_s[] = {2, 3600}; /* nobody waits three years */
    bench b;
    if (!bench_open(&b, script, 2, 0)) return;
    for (int i = 0; i < 2; i++) {
        int64_t wish_ns = -1;
        CU_ASSERT_EQUAL(ls_store_submit(b.store, &put_request, note_retry_after, &wish_ns), LS_OK);
        CU_ASSERT(store_drain(b.store));
        CU_ASSERT_EQUAL(wish_ns, expected_s[i] * LS_NANOSECONDS_PER_SECOND);
    }
    bench_close(&b);
}

/* Answers that are well-formed HTTP and not S3: a login page, a wrong range, no length, too many keys. */
static void test_contradictions(void)
{
    static const char page[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>";
    static const char range[] =
        "HTTP/1.1 206 P\r\nETag: \"e\"\r\nContent-Range: bytes 0-3/7\r\nContent-Length: 4\r\n\r\ncont";
    static const char part[] =
        "HTTP/1.1 206 P\r\nETag: \"e\"\r\nContent-Range: bytes 1-3/7\r\nContent-Length: 3\r\n\r\nont";
    static const char endless[] = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nConnection: close\r\n\r\ncontent";
    static const char ignored[] = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 7\r\n\r\ncontent";
    static const char stuck[] = "HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n"
                                "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>  ";
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = page},   {.kind = FAULT_ANSWER, .answer = page},
                            {.kind = FAULT_ANSWER, .answer = page},   {.kind = FAULT_ANSWER, .answer = range},
                            {.kind = FAULT_ANSWER, .answer = part},   {.kind = FAULT_ANSWER, .answer = ignored},
                            {.kind = FAULT_ANSWER, .answer = part},   {.kind = FAULT_ANSWER, .answer = stuck},
                            {.kind = FAULT_ANSWER, .answer = endless}};
    ls_object_request span = {
        .operation = LS_GET, .key = "fault", .range = LS_RANGE_SPAN, .range_offset = 1, .range_bytes = 4};
    bench b;
    if (!bench_open(&b, script, 9, 500000000)) return;
    CU_ASSERT_EQUAL(ask(b.store, &get_request, "check the endpoint"), LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_UNKNOWN_OUTCOME);
    CU_ASSERT_EQUAL(ask(b.store, &list_request, "ListBucketResult"), LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(ask(b.store, &span, "bytes=1-4"), LS_REPLY_INVALID);
    CU_ASSERT_EQUAL(ask(b.store, &span, NULL), LS_REPLY_INVALID);
    store_answer reply = store_ask(b.store, &span); /* a server that ignores ranges sends it all: we cut */
    CU_ASSERT_EQUAL(reply.status, LS_REPLY_OK);
    CU_ASSERT(reply.body_bytes == 4 && memcmp(reply.body, "onte", 4) == 0 && reply.object_bytes == 7);
    store_answer_clear(&reply);
    CU_ASSERT_EQUAL(ask(b.store, &get_request, "the whole object"), LS_REPLY_INVALID); /* a part nobody asked for */
    CU_ASSERT_EQUAL(ask(b.store, &list_request, "where it goes on"), LS_REPLY_INVALID);
    CU_ASSERT_NOT_EQUAL(ask(b.store, &get_request, NULL), LS_REPLY_OK);
    bench_close(&b);
}

/* A server that pages as it likes: an empty page, keys that were not asked for, more keys than wanted. */

#define OBJECT(key)                                                                                                    \
    "<Contents><Key>" key "</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
#define PAGE(token, objects)                                                                                           \
    "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>" token                                   \
    "</NextContinuationToken>" objects "</ListBucketResult>"

static const char *as_answer(char text[1024], const char *body)
{
    snprintf(text, 1024, HEAD_OF("200 OK") "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    return text;
}

static void test_odd_pages(void)
{
    static const char second[] = PAGE("t+2", OBJECT("fault-a") OBJECT("other") OBJECT("fault-b"));
    static const char third[] = PAGE("t3", OBJECT("fault-c") OBJECT("fault-d") OBJECT("fault-e"));
    char answers[3][1024];
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = as_answer(answers[0], PAGE("t/1", ""))},
                            {.kind = FAULT_ANSWER, .answer = as_answer(answers[1], second)},
                            {.kind = FAULT_ANSWER, .answer = as_answer(answers[2], third)}};
    const ls_object_request list = {.operation = LS_LIST, .key = "fault", .list_after = "fault-a", .list_limit = 3};
    bench b;
    if (!bench_open(&b, script, 3, 0)) return;
    store_answer reply = store_ask(b.store, &list);
    CU_ASSERT_EQUAL(reply.status, LS_REPLY_OK);
    CU_ASSERT_EQUAL_FATAL(reply.key_count, 3);
    CU_ASSERT_STRING_EQUAL(reply.keys[0], "fault-b");
    CU_ASSERT_STRING_EQUAL(reply.keys[1], "fault-c");
    CU_ASSERT_STRING_EQUAL(reply.keys[2], "fault-d");
    CU_ASSERT(reply.list_truncated);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "GET", "max-keys=3&prefix=fault&start-after=fault-a"), 1);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "GET", "continuation-token=t%2F1&encoding-type=url"), 1);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "GET", "token=t%2B2&encoding-type=url&list-type=2&max-keys=2"), 1);
    store_answer_clear(&reply);
    bench_close(&b);
}

/* The clock is wrong: signed again by the server's, once, within a day. (ex_aws issue 159.) */

static const char *skewed(int64_t offset_s, const char *code)
{
    char headers[96];
    time_t server_s = (time_t)(time(NULL) + offset_s);
    struct tm utc;
    gmtime_r(&server_s, &utc);
    strftime(headers, sizeof headers, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    return with_error("403 Forbidden", headers, code);
}

/* The time of a recorded request's signature. */
static int64_t signed_at(fault_proxy *proxy, size_t index)
{
    const char *head = fault_proxy_head(proxy, index);
    const char *date = head != NULL ? strcasestr(head, "x-amz-date: ") : NULL;
    struct tm utc = {0};
    if (date == NULL || strptime(date + 12, "%Y%m%dT%H%M%SZ", &utc) == NULL) return -1;
    return (int64_t)timegm(&utc);
}

static void test_clock(void)
{
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = skewed(7200, "RequestTimeTooSkewed")},
                            {.kind = FAULT_ANSWER, .answer = EMPTY("200 OK\r\nETag: \"e\"")},
                            {.kind = FAULT_ANSWER, .answer = EMPTY("200 OK\r\nETag: \"e\"")},
                            {.kind = FAULT_ANSWER, .answer = skewed(-7200, "RequestTimeTooSkewed")},
                            {.kind = FAULT_ANSWER, .answer = skewed(-7200, "RequestTimeTooSkewed")}};
    bench b;
    if (!bench_open(&b, script, 5, 0)) return;
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_OK);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 2);
    int64_t moved_s = signed_at(b.proxy, 1) - signed_at(b.proxy, 0);
    CU_ASSERT(moved_s >= 7195 && moved_s <= 7260);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).clock_corrections, 1);
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_OK); /* remembered */
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 3);
    /* Back, and refused again: once is enough. */
    CU_ASSERT_EQUAL(ask(b.store, &put_request, "clock"), LS_REPLY_DENIED);
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 5);
    bench_close(&b);
    const fault far[] = {{.kind = FAULT_ANSWER, .answer = skewed(200000, "RequestTimeTooSkewed")},
                         {.kind = FAULT_ANSWER, .answer = skewed(7200, "AccessDenied")}};
    if (!bench_open(&b, far, 2, 0)) return;
    CU_ASSERT_EQUAL(ask(b.store, &put_request, "ahead of ours"), LS_REPLY_DENIED); /* too far to be believed */
    CU_ASSERT_EQUAL(ask(b.store, &put_request, "ahead of ours"), LS_REPLY_DENIED); /* refused for another reason */
    CU_ASSERT_EQUAL(fault_proxy_count(b.proxy, "PUT", NULL), 2);
    CU_ASSERT_EQUAL(ls_s3_read_counters(b.store).clock_offset_s, 0);
    bench_close(&b);
}

/* What goes over the wire: no Expect, the condition, a real hash over http, nothing of the secret. */
static void test_request_headers(void)
{
    bench b;
    if (!bench_open(&b, NULL, 0, 0)) return;
    CU_ASSERT_EQUAL(ask(b.store, &put_request, NULL), LS_REPLY_OK);
    uint8_t *large = ls_allocate_array(2000000, 1); /* where libcurl would send Expect: 100-continue */
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    CU_ASSERT_EQUAL(store_put(b.store, "fault-large", large, 2000000, false), LS_REPLY_OK);
    ls_free(large);
    const char *small_head = fault_proxy_head(b.proxy, 0), *large_head = fault_proxy_head(b.proxy, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(small_head);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large_head);
    CU_ASSERT_PTR_NOT_NULL(strcasestr(small_head, "\r\nif-none-match: *\r\n"));
    CU_ASSERT_PTR_NULL(strcasestr(large_head, "if-none-match"));
    CU_ASSERT_PTR_NOT_NULL(strcasestr(small_head, "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date"));
    CU_ASSERT_PTR_NULL(strcasestr(large_head, "\r\nexpect"));
    CU_ASSERT_PTR_NULL(strcasestr(large_head, "UNSIGNED-PAYLOAD"));
    CU_ASSERT_PTR_NULL(strstr(small_head, SECRET));
    /* printf content | sha256sum */
    CU_ASSERT_PTR_NOT_NULL(strstr(small_head, "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"));
    store_delete(b.direct, "fault");
    store_delete(b.direct, "fault-large");
    bench_close(&b);
}

/* A server (or an attacker) that throws our own headers back at us: nothing of them comes out in a message. */
static void test_secrets(void)
{
    static char answer[1024];
    static const char body[] =
        "<Error><Code>SignatureDoesNotMatch</Code><Message>got " TOKEN " and " SECRET
        " and 5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31</Message><RequestId>" SECRET
        "</RequestId></Error>";
    snprintf(answer, sizeof answer,
             "HTTP/1.1 403 Forbidden\r\nx-amz-bucket-region: " TOKEN "\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    const fault script[] = {{.kind = FAULT_ANSWER, .answer = answer}};
    bench b;
    if (!bench_open(&b, script, 1, 0)) return;
    b.options.session_token = TOKEN;
    ls_store_destroy(b.store);
    b.store = s3_server_open(&b.options);
    store_answer reply = store_ask(b.store, &put_request);
    CU_ASSERT_EQUAL(reply.status, LS_REPLY_DENIED);
    CU_ASSERT_PTR_NOT_NULL(strstr(reply.message, "SignatureDoesNotMatch"));
    CU_ASSERT_PTR_NOT_NULL(strstr(reply.message, "****"));
    CU_ASSERT_PTR_NULL(strstr(reply.message, SECRET));
    CU_ASSERT_PTR_NULL(strstr(reply.message, TOKEN));
    CU_ASSERT_PTR_NULL(strstr(reply.message, "5fa00fa3"));
    const char *head = fault_proxy_head(b.proxy, 0);
    CU_ASSERT(head != NULL && strcasestr(head, "x-amz-security-token: " TOKEN "\r\n") != NULL);
    CU_ASSERT(head != NULL && strstr(head, ";x-amz-security-token, ") != NULL);
    store_answer_clear(&reply);
    bench_close(&b);
}

/* A store that takes the condition for decoration: the probe says so and stops. */
static void test_probe_refuses(void)
{
    static const char yes[] = EMPTY("200 OK\r\nETag: \"e\"");
    fault script[12];
    for (size_t i = 0; i < 12; i++) script[i] = (fault){.kind = FAULT_ANSWER, .method = "PUT", .answer = yes};
    bench b;
    if (!bench_open(&b, script, 12, 0)) return;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_store_probe(b.store, "probed", 7, &error), LS_ERROR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "does not honour put-if-absent"));
    ls_store_destroy(b.store);
    ls_store_destroy(b.direct);
    fault_proxy_stop(b.proxy);
}

LS_SUITE(s3_faults, {"puts without an answer", test_lost_puts}, {"other changes without an answer", test_lost_changes},
         {"idle connection closed", test_idle_close}, {"reads without an answer", test_lost_reads},
         {"412 for one's own object", test_own_412}, {"time-outs", test_timeout},
         {"damaged answers", test_damaged_answers}, {"table of answers", test_canned_answers},
         {"throttling burst", test_throttling_burst}, {"Retry-After", test_retry_after},
         {"contradictory answers", test_contradictions}, {"odd pages", test_odd_pages}, {"clock", test_clock},
         {"request headers", test_request_headers}, {"secrets", test_secrets}, {"probe", test_probe_refuses})
