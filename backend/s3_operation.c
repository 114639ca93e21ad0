/* s3_operation.c - what to send, and whether what came back is what was asked for (see s3_operation.h).
 *
 * Nothing is taken at its word: a success must carry an ETag (every S3 server sends one; a login page does not), its
 * length must be stated and met, a range must be the range asked for, and a list must be well-formed to its end. What
 * is damaged counts as a broken transfer, what contradicts itself as LS_REPLY_INVALID.
 */
#include "backend/s3_operation.h"

#include "backend/s3_reply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PAGE_BYTES_MAX    (16u << 20)
#define SHORT_ANSWER_BYTES_MAX 65536u
#define CLOCK_SKEW_NOTICED_S   240 /* servers refuse from 300 s (some) or 900 s (AWS) on */
#define RETRY_AFTER_MAX_S      INT64_C(3600)

/* What to send. */

static void ask_size(ls_s3_operation *operation)
{
    operation->stage = LS_S3_STAGE_SIZE;
    operation->wire.out = (ls_s3_outgoing){.method = "HEAD", .key = operation->request.key};
}

static void ask_get(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_object_request *request = &operation->request;
    ls_s3_outgoing *out = &operation->wire.out;
    /* Servers read the numbers of a range as signed 64 bits; no object is that long. */
    bool is_beyond = request->range == LS_RANGE_SPAN && request->range_offset >= INT64_MAX;
    if (request->range != LS_RANGE_WHOLE && (request->range_bytes == 0 || is_beyond)) {
        ask_size(operation);
        return;
    }
    *out = (ls_s3_outgoing){.method = "GET", .key = request->key, .answer_bytes_max = config->object_bytes_max};
    if (request->range == LS_RANGE_SUFFIX) {
        uint64_t count = request->range_bytes < INT64_MAX ? request->range_bytes : INT64_MAX;
        snprintf(out->range, sizeof out->range, "bytes=-%" PRIu64, count);
    }
    if (request->range == LS_RANGE_SPAN) {
        uint64_t room = (uint64_t)INT64_MAX - request->range_offset;
        uint64_t last = request->range_offset + (request->range_bytes <= room ? request->range_bytes - 1 : room);
        snprintf(out->range, sizeof out->range, "bytes=%" PRIu64 "-%" PRIu64, request->range_offset, last);
    }
}

static void ask_put(ls_s3_operation *operation)
{
    const ls_object_request *request = &operation->request;
    operation->wire.out = (ls_s3_outgoing){.method = "PUT",
                                           .key = request->key,
                                           .if_absent = request->if_absent,
                                           .body = request->body,
                                           .body_bytes = request->body_bytes,
                                           .answer_bytes_max = SHORT_ANSWER_BYTES_MAX};
}

/* The next page. encoding-type=url: XML 1.0 has no way to write most control characters, and keys may hold them. */
static void ask_page(ls_s3_operation *operation)
{
    const ls_object_request *request = &operation->request;
    ls_s3_outgoing *out = &operation->wire.out;
    *out = (ls_s3_outgoing){.method = "GET", .answer_bytes_max = LIST_PAGE_BYTES_MAX};
    snprintf(operation->page_limit, sizeof operation->page_limit, "%" PRIu32,
             request->list_limit - operation->found.count);
    out->parameters[out->parameter_count++] = (ls_s3_pair){"list-type", "2"};
    out->parameters[out->parameter_count++] = (ls_s3_pair){"encoding-type", "url"};
    out->parameters[out->parameter_count++] = (ls_s3_pair){"max-keys", operation->page_limit};
    if (request->key[0] != '\0') out->parameters[out->parameter_count++] = (ls_s3_pair){"prefix", request->key};
    if (operation->token != NULL) {
        out->parameters[out->parameter_count++] = (ls_s3_pair){"continuation-token", operation->token};
    } else if (operation->list_after != NULL) {
        out->parameters[out->parameter_count++] = (ls_s3_pair){"start-after", operation->list_after};
    }
}

static void ask_first(ls_s3_operation *operation, const ls_s3_config *config)
{
    switch (operation->request.operation) {
    case LS_GET: ask_get(operation, config); return;
    case LS_PUT: ask_put(operation); return;
    case LS_HEAD: operation->wire.out = (ls_s3_outgoing){.method = "HEAD", .key = operation->request.key}; return;
    case LS_DELETE:
        operation->wire.out = (ls_s3_outgoing){
            .method = "DELETE", .key = operation->request.key, .answer_bytes_max = SHORT_ANSWER_BYTES_MAX};
        return;
    case LS_LIST: ask_page(operation); return;
    }
}

ls_s3_operation *ls_s3_operation_new(const ls_s3_config *config, const ls_object_request *request,
                                     ls_store_callback callback, void *context)
{
    ls_s3_operation *operation = ls_allocate_array(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->request = *request;
    operation->callback = callback;
    operation->context = context;
    if (request->operation == LS_LIST && request->list_after != NULL && request->list_after[0] != '\0') {
        operation->list_after = ls_duplicate(request->list_after);
        if (operation->list_after == NULL) {
            ls_free(operation);
            return NULL;
        }
    }
    ask_first(operation, config);
    return operation;
}

void ls_s3_operation_free(ls_s3_operation *operation)
{
    ls_s3_wire_free(&operation->wire);
    ls_s3_listing_free(&operation->found);
    ls_free(operation->list_after);
    ls_free(operation->token);
    ls_free(operation);
}

/* Ending. */

/* Sets the reply of an operation that failed; the message tells what was asked, where, and what happened. */
static ls_s3_step fail(ls_s3_operation *operation, const ls_s3_config *config, ls_s3_verdict verdict,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

static ls_s3_step fail(ls_s3_operation *operation, const ls_s3_config *config, ls_s3_verdict verdict,
                       const char *format, ...)
{
    const ls_object_request *request = &operation->request;
    char detail[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    snprintf(operation->message, sizeof operation->message, "%s%s '%.160s' in bucket %s at %.80s: %s%s%s",
             ls_operation_name(request->operation),
             request->operation == LS_PUT && request->if_absent ? " if absent" : "", request->key, config->bucket,
             config->origin, detail, verdict.hint != NULL ? "; " : "", verdict.hint != NULL ? verdict.hint : "");
    for (char *at = operation->message; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
    }
    operation->reply.status = verdict.status;
    operation->reply.message = operation->message;
    return LS_S3_STEP_DONE;
}

static ls_s3_verdict verdict_of(ls_reply_status status) { return (ls_s3_verdict){status, NULL}; }

static ls_s3_verdict in_doubt(const ls_s3_operation *operation)
{
    return verdict_of(ls_s3_doubt(operation->request.operation));
}

static const char *request_id(ls_s3_operation *operation, const ls_s3_config *config)
{
    ls_s3_config_redact(config, operation->wire.in.request_id);
    return operation->wire.in.request_id[0] != '\0' ? operation->wire.in.request_id : "none";
}

void ls_s3_operation_unsent(ls_s3_operation *operation, const ls_s3_config *config, ls_result reason)
{
    fail(operation, config, verdict_of(LS_REPLY_UNAVAILABLE), "not sent: %s", ls_result_name(reason));
}

static ls_s3_step succeed(ls_s3_operation *operation)
{
    operation->reply.status = LS_REPLY_OK;
    return LS_S3_STEP_DONE;
}

static ls_s3_step succeed_with(ls_s3_operation *operation, uint64_t first, uint64_t count, uint64_t object_bytes)
{
    operation->reply.body = count > 0 ? operation->wire.in.body + first : NULL;
    operation->reply.body_bytes = count;
    operation->reply.object_bytes = object_bytes;
    return succeed(operation);
}

/* Successes, each looked at closely. */

static ls_s3_step received_part(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    uint64_t first, count;
    bool is_sound = in->has_range && in->has_range_total &&
                    ls_store_range(&operation->request, in->range_total, &first, &count) && count > 0 &&
                    in->range_first == first && in->range_last == first + count - 1 && in->body_bytes == count;
    if (operation->request.range == LS_RANGE_WHOLE || !is_sound) {
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "asked for %s, the server sent %zu bytes as another range (request id %s)",
                    operation->wire.out.range[0] != '\0' ? operation->wire.out.range : "the whole object",
                    in->body_bytes, request_id(operation, config));
    }
    return succeed_with(operation, 0, count, in->range_total);
}

/* The whole object, also from a server that takes no notice of a range. */
static ls_s3_step received_whole(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    uint64_t first, count;
    if (!in->has_length && !in->is_chunked) {
        return fail(operation, config, in_doubt(operation),
                    "the server did not say how long its answer is (request id %s)", request_id(operation, config));
    }
    if (!ls_store_range(&operation->request, in->body_bytes, &first, &count)) {
        operation->reply.object_bytes = in->body_bytes;
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "the object has %zu bytes, the range lies past its end", in->body_bytes);
    }
    return succeed_with(operation, first, count, in->body_bytes);
}

static ls_s3_step received_get(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    if (!in->has_etag) {
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "HTTP %ld without an ETag: this answer is not an S3 server's; check the endpoint", in->http_status);
    }
    if (in->http_status == 206) return received_part(operation, config);
    return received_whole(operation, config);
}

static ls_s3_step received_head(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    if (!in->has_etag || !in->has_length) {
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "HTTP %ld without ETag or Content-Length: this answer is not an S3 server's; check the endpoint",
                    in->http_status);
    }
    operation->reply.object_bytes = in->length;
    return succeed(operation);
}

/* After 416: the object may have changed in between, so the range is judged again. */
static ls_s3_step received_size(ls_s3_operation *operation, const ls_s3_config *config)
{
    uint64_t first, count, size = operation->wire.in.length;
    if (received_head(operation, config) == LS_S3_STEP_DONE && operation->reply.status != LS_REPLY_OK)
        return LS_S3_STEP_DONE;
    if (!ls_store_range(&operation->request, size, &first, &count)) {
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "the object has %" PRIu64 " bytes, the range lies past its end "
                    "or is empty",
                    size);
    }
    if (count == 0) return succeed_with(operation, 0, 0, 0);
    return fail(operation, config, verdict_of(LS_REPLY_UNAVAILABLE), "the object changed while it was read");
}

static bool is_blank(const ls_s3_incoming *in)
{
    for (size_t i = 0; i < in->body_bytes; i++) {
        if (strchr(" \t\r\n", in->body[i]) == NULL || in->body[i] == '\0') return false;
    }
    return true;
}

/* A put or delete that says it is done. S3's own answers have no body: an <Error> in one (seen on copies and multipart
 * completions) or anything else means that the fate is not known. */
static ls_s3_step received_change(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    ls_s3_error_document document = {0};
    if (!is_blank(in)) {
        ls_s3_parse_error(in->body, in->body_bytes, &document);
        ls_s3_config_redact(config, document.code);
        return fail(operation, config, in_doubt(operation), "HTTP %ld, but with a body%s%s (request id %s)",
                    in->http_status, document.code[0] != '\0' ? " that says " : "", document.code,
                    request_id(operation, config));
    }
    if (operation->request.operation == LS_PUT && !in->has_etag) {
        return fail(operation, config, in_doubt(operation),
                    "HTTP %ld without an ETag: not an S3 server's answer to a put "
                    "(request id %s)",
                    in->http_status, request_id(operation, config));
    }
    return succeed(operation);
}

/* Lists. */

/* Takes over the keys of the page that were asked for, in order. S3 Express and old gateways ignore start-after. */
static bool gather(ls_s3_operation *operation, ls_s3_listing *page)
{
    ls_s3_listing *found = &operation->found;
    const char *prefix = operation->request.key;
    size_t prefix_length = strlen(prefix);
    uint32_t limit = operation->request.list_limit;
    for (uint32_t i = 0; i < page->count; i++) {
        char *key = page->keys[i];
        if (strncmp(key, prefix, prefix_length) != 0) continue;
        if (operation->list_after != NULL && strcmp(key, operation->list_after) <= 0) continue;
        if (found->count == limit) {
            page->is_truncated = true;
            return true;
        }
        if (!ls_s3_listing_add(found, key, page->bytes[i], page->modified_s[i])) return false;
        page->keys[i] = NULL;
    }
    return true;
}

static ls_s3_step list_done(ls_s3_operation *operation, bool is_truncated)
{
    operation->reply.keys = (const char *const *)operation->found.keys;
    operation->reply.key_bytes = operation->found.bytes;
    operation->reply.key_modified_s = operation->found.modified_s;
    operation->reply.key_count = operation->found.count;
    operation->reply.list_truncated = is_truncated;
    return succeed(operation);
}

/* What follows a good page; takes its token. */
static ls_s3_step after_page(ls_s3_operation *operation, const ls_s3_config *config, ls_s3_listing *page)
{
    if (!gather(operation, page)) {
        return fail(operation, config, verdict_of(LS_REPLY_UNAVAILABLE), "out of memory for the list");
    }
    if (!page->is_truncated || operation->found.count == operation->request.list_limit) {
        return list_done(operation, page->is_truncated);
    }
    bool is_stuck = page->token == NULL || (operation->token != NULL && strcmp(page->token, operation->token) == 0);
    if (is_stuck) {
        return fail(operation, config, verdict_of(LS_REPLY_INVALID),
                    "the list is cut short, but the server does not say where it "
                    "goes on (request id %s)",
                    request_id(operation, config));
    }
    ls_free(operation->token);
    operation->token = page->token;
    page->token = NULL;
    ask_page(operation);
    return LS_S3_STEP_SEND;
}

static ls_s3_step received_page(ls_s3_operation *operation, const ls_s3_config *config)
{
    const ls_s3_incoming *in = &operation->wire.in;
    ls_s3_listing page = {0};
    ls_s3_error_document document;
    ls_error error;
    ls_s3_step step;
    ls_result result = ls_s3_parse_listing(in->body, in->body_bytes, &page, &error);
    if (result == LS_OK) {
        step = after_page(operation, config, &page);
    } else if (ls_s3_parse_error(in->body, in->body_bytes, &document) == LS_OK) {
        ls_s3_config_redact(config, document.code);
        step = fail(operation, config, ls_s3_judge_answer(LS_LIST, false, 500, document.code, false),
                    "HTTP %ld, but with an error as its body: %s (request id %s)", in->http_status, document.code,
                    request_id(operation, config));
    } else {
        bool is_foreign = result == LS_ERROR_INVALID || result == LS_ERROR_LIMIT;
        step = fail(operation, config, verdict_of(is_foreign ? LS_REPLY_INVALID : LS_REPLY_UNAVAILABLE),
                    "%s (request id %s)", error.text, request_id(operation, config));
    }
    ls_s3_listing_free(&page);
    return step;
}

static ls_s3_step received_success(ls_s3_operation *operation, const ls_s3_config *config)
{
    if (operation->stage == LS_S3_STAGE_SIZE) return received_size(operation, config);
    switch (operation->request.operation) {
    case LS_GET: return received_get(operation, config);
    case LS_HEAD: return received_head(operation, config);
    case LS_LIST: return received_page(operation, config);
    case LS_PUT:
    case LS_DELETE: return received_change(operation, config);
    }
    return fail(operation, config, verdict_of(LS_REPLY_INVALID), "unknown operation");
}

/* Everything else. */

/* Adopts the server's clock after a refusal that it explains: by code, or for a HEAD, whose answer has no body, by the
 * gap. */
static bool correct_clock(ls_s3_operation *operation, const char *code, int64_t now_s, int64_t *clock_offset_s)
{
    const ls_s3_wire *wire = &operation->wire;
    if (wire->in.http_status != 403 || wire->in.date_s < 0 || operation->is_clock_corrected) return false;
    int64_t gap = wire->in.date_s - wire->signed_s, offset = wire->in.date_s - now_s;
    bool is_noticed = gap > CLOCK_SKEW_NOTICED_S || gap < -CLOCK_SKEW_NOTICED_S;
    bool is_said = strcmp(code, "RequestTimeTooSkewed") == 0 || code[0] == '\0';
    bool is_bounded = offset <= LS_S3_CLOCK_OFFSET_MAX_S && offset >= -LS_S3_CLOCK_OFFSET_MAX_S;
    if (!is_noticed || !is_said || !is_bounded) return false;
    operation->is_clock_corrected = true;
    *clock_offset_s = offset;
    return true;
}

static ls_s3_step received_refusal(ls_s3_operation *operation, const ls_s3_config *config, int64_t retry_after_s,
                                   int64_t now_s, int64_t *clock_offset_s)
{
    ls_s3_incoming *in = &operation->wire.in;
    const ls_object_request *request = &operation->request;
    ls_s3_error_document document = {0};
    if (in->body_bytes > 0 && !in->is_body_cut) ls_s3_parse_error(in->body, in->body_bytes, &document);
    if (correct_clock(operation, document.code, now_s, clock_offset_s)) return LS_S3_STEP_SEND;
    if (in->http_status == 416 && request->operation == LS_GET && operation->stage == LS_S3_STAGE_MAIN) {
        ask_size(operation);
        return LS_S3_STEP_SEND;
    }
    ls_operation judged = operation->stage == LS_S3_STAGE_SIZE ? LS_HEAD : request->operation;
    ls_s3_verdict verdict =
        ls_s3_judge_answer(judged, request->if_absent, in->http_status, document.code, retry_after_s > 0);
    if (verdict.status == LS_REPLY_OK) return succeed(operation);
    if (verdict.status == LS_REPLY_THROTTLED) {
        int64_t wait_s = retry_after_s < RETRY_AFTER_MAX_S ? retry_after_s : RETRY_AFTER_MAX_S;
        operation->reply.retry_after_ns = wait_s > 0 ? wait_s * LS_NANOSECONDS_PER_SECOND : 0;
    }
    if (in->request_id[0] == '\0') snprintf(in->request_id, sizeof in->request_id, "%s", document.request_id);
    int64_t gap = in->date_s >= 0 ? in->date_s - operation->wire.signed_s : 0;
    char clock[96] = "";
    if (verdict.status == LS_REPLY_DENIED && (gap > CLOCK_SKEW_NOTICED_S || gap < -CLOCK_SKEW_NOTICED_S)) {
        snprintf(clock, sizeof clock, ", the server's clock is %" PRId64 " s %s ours", gap < 0 ? -gap : gap,
                 gap < 0 ? "behind" : "ahead of");
    }
    char *region = in->region[0] != '\0' ? in->region : document.region;
    ls_s3_config_redact(config, region);
    ls_s3_config_redact(config, document.code);
    ls_s3_config_redact(config, document.message);
    bool shows_region = verdict.status == LS_REPLY_INVALID || verdict.status == LS_REPLY_DENIED;
    return fail(operation, config, verdict, "HTTP %ld%s%s%s%s%s%s%.64s (request id %s)", in->http_status,
                document.code[0] != '\0' ? " " : "", document.code, document.message[0] != '\0' ? ", " : "",
                document.message, clock, shows_region && region[0] != '\0' ? ", the bucket's region is " : "",
                shows_region ? region : "", request_id(operation, config));
}

static ls_s3_step received_nothing(ls_s3_operation *operation, const ls_s3_config *config, CURLcode code)
{
    const ls_s3_wire *wire = &operation->wire;
    const char *what = wire->error_text[0] != '\0' ? wire->error_text : curl_easy_strerror(code);
    ls_s3_verdict verdict = ls_s3_judge_transfer(operation->request.operation, wire->sends > 0, (int)code);
    if (wire->in.is_memory_out) return fail(operation, config, verdict, "out of memory for the answer");
    if (wire->in.is_too_long) {
        if (operation->request.operation != LS_PUT && operation->request.operation != LS_DELETE)
            verdict.status = LS_REPLY_INVALID;
        return fail(operation, config, verdict, "the answer is longer than the %" PRIu64 " bytes allowed",
                    wire->out.answer_bytes_max);
    }
    if (wire->is_resend_prevented) {
        return fail(operation, config, verdict,
                    "the connection was lost after sending and before an answer; not sent again");
    }
    return fail(operation, config, verdict, "%s (%s)", what,
                wire->sends > 0 ? "after it was sent" : "before anything was sent");
}

ls_s3_step ls_s3_operation_received(ls_s3_operation *operation, const ls_s3_config *config, CURLcode code,
                                    int64_t retry_after_s, int64_t now_s, int64_t *clock_offset_s)
{
    if (code != CURLE_OK) return received_nothing(operation, config, code);
    long status = operation->wire.in.http_status;
    if (status >= 200 && status < 300) return received_success(operation, config);
    return received_refusal(operation, config, retry_after_s, now_s, clock_offset_s);
}
