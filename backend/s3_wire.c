/* s3_wire.c - composing, signing and receiving (see s3_wire.h).
 *
 * The body's hash. Over http nothing else protects the bytes on their way, so x-amz-content-sha256 is always the real
 * hash and the server refuses what was damaged before it acknowledges. Over https TLS already authenticates every byte:
 * bodies above 64 KiB go as UNSIGNED-PAYLOAD, which saves both sides a pass over the data; smaller ones (every manifest
 * delta) are hashed all the same, since it costs microseconds and also covers what lies behind a TLS-terminating proxy.
 */
#include "backend/s3_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HASHED_OVER_TLS_BYTES_MAX 65536u
#define ERROR_BODY_BYTES_MAX      65536u
#define FIRST_RESERVE_BYTES_MAX   (16u << 20) /* believed of Content-Length before any byte came */
#define HEADERS_MAX               8
#define EMPTY_HASH                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* What libcurl calls. */

static bool changes_the_store(const ls_s3_wire *wire)
{
    return strcmp(wire->out.method, "PUT") == 0 || strcmp(wire->out.method, "DELETE") == 0;
}

static void forget_answer(ls_s3_incoming *in)
{
    uint8_t *body = in->body;
    size_t capacity = in->body_capacity;
    *in = (ls_s3_incoming){.body = body, .body_capacity = capacity, .date_s = -1};
}

static int before_sending(void *user, char *remote, char *local, int remote_port, int local_port)
{
    ls_s3_wire *wire = user;
    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (wire->sends > 0 && changes_the_store(wire)) {
        wire->is_resend_prevented = true;
        return CURL_PREREQFUNC_ABORT;
    }
    wire->sends++;
    return CURL_PREREQFUNC_OK;
}

static int refuse_seek(void *user, curl_off_t offset, int origin)
{
    ls_s3_wire *wire = user;
    (void)offset;
    (void)origin;
    wire->is_resend_prevented = true;
    return CURL_SEEKFUNC_FAIL;
}

static size_t give_body(char *buffer, size_t size, size_t count, void *user)
{
    ls_s3_wire *wire = user;
    uint64_t left = wire->out.body_bytes - wire->body_sent;
    size_t room = size * count, given = left < room ? (size_t)left : room;
    if (given > 0) memcpy(buffer, wire->out.body + wire->body_sent, given);
    wire->body_sent += given;
    return given;
}

static bool reserve_body(ls_s3_incoming *in, size_t needed, size_t limit)
{
    if (needed <= in->body_capacity) return true;
    size_t capacity = in->body_capacity > 0 ? in->body_capacity : 1024;
    if (in->body_capacity == 0 && in->has_length && in->length <= limit && in->length <= FIRST_RESERVE_BYTES_MAX) {
        capacity = (size_t)in->length + 1;
    }
    while (capacity < needed) capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    uint8_t *body = ls_reallocate(in->body, capacity);
    if (body == NULL) return false;
    in->body = body;
    in->body_capacity = capacity;
    return true;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *user)
{
    ls_s3_wire *wire = user;
    ls_s3_incoming *in = &wire->in;
    size_t arrived = size * count, kept = arrived;
    bool is_success = in->http_status >= 200 && in->http_status < 300;
    uint64_t limit = is_success ? wire->out.answer_bytes_max : ERROR_BODY_BYTES_MAX;
    if (arrived > limit || in->body_bytes > limit - arrived) {
        in->is_too_long = is_success;
        in->is_body_cut = !is_success;
        if (is_success) return CURL_WRITEFUNC_ERROR;
        kept = (size_t)limit - in->body_bytes;
    }
    if (!reserve_body(in, in->body_bytes + kept, (size_t)limit)) {
        in->is_memory_out = true;
        return CURL_WRITEFUNC_ERROR;
    }
    if (kept > 0) memcpy(in->body + in->body_bytes, bytes, kept);
    in->body_bytes += kept;
    return arrived;
}

/* Headers of the answer. */

/* The value of the header line if its name is `name`, else NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') return NULL;
    line += length + 1;
    return line + strspn(line, " \t");
}

/* A decimal number at *text, which moves behind it. */
static bool take_number(const char **text, uint64_t *number)
{
    char *end;
    if (**text < '0' || **text > '9') return false;
    *number = strtoull(*text, &end, 10);
    bool fits = end - *text <= 19;
    *text = end;
    return fits;
}

/* "bytes 0-4/17"; the total may be an asterisk, and under status 416 so is the range. */
static void take_content_range(ls_s3_incoming *in, const char *value)
{
    if (strncasecmp(value, "bytes", 5) != 0) return;
    value += 5;
    value += strspn(value, " \t=");
    if (*value == '*') {
        value++;
    } else {
        if (!take_number(&value, &in->range_first) || *value++ != '-' || !take_number(&value, &in->range_last)) return;
        in->has_range = in->range_first <= in->range_last;
    }
    if (*value++ == '/') in->has_range_total = take_number(&value, &in->range_total);
}

static void take_header(ls_s3_incoming *in, const char *line)
{
    const char *value;
    if ((value = value_of(line, "etag")) != NULL) in->has_etag = value[0] != '\0';
    if ((value = value_of(line, "content-length")) != NULL) in->has_length = take_number(&value, &in->length);
    if ((value = value_of(line, "content-range")) != NULL) take_content_range(in, value);
    if ((value = value_of(line, "transfer-encoding")) != NULL) in->is_chunked = strncasecmp(value, "chunked", 7) == 0;
    if ((value = value_of(line, "date")) != NULL) in->date_s = (int64_t)curl_getdate(value, NULL);
    if ((value = value_of(line, "x-amz-request-id")) != NULL) {
        snprintf(in->request_id, sizeof in->request_id, "%s", value);
    }
    if ((value = value_of(line, "x-amz-bucket-region")) != NULL) snprintf(in->region, sizeof in->region, "%s", value);
}

static size_t take_header_line(char *bytes, size_t size, size_t count, void *user)
{
    ls_s3_wire *wire = user;
    size_t length = size * count;
    char line[512];
    size_t kept = length < sizeof line ? length : sizeof line - 1;
    memcpy(line, bytes, kept);
    line[kept] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (strncasecmp(line, "HTTP/", 5) == 0) { /* a new answer: what came before was interim (1xx) */
        const char *status = strchr(line, ' ');
        forget_answer(&wire->in);
        wire->in.http_status = status != NULL ? strtol(status, NULL, 10) : 0;
        return length;
    }
    take_header(&wire->in, line);
    return length;
}

/* The request. */

static void append_path(ls_s3_text *path, const ls_s3_config *config, const char *key)
{
    ls_s3_text_append(path, config->base_path);
    if (key != NULL) ls_s3_text_append_encoded(path, key, true);
    /* A bucket by its path style name is "/bucket", without the slash that a key would follow. */
    if (key == NULL && path->length > 1) path->bytes[--path->length] = '\0';
}

static void hash_payload(const ls_s3_outgoing *out, const ls_s3_config *config, char text[LS_S3_HASH_TEXT_BYTES])
{
    if (out->body_bytes == 0) {
        memcpy(text, EMPTY_HASH, sizeof EMPTY_HASH);
    } else if (config->is_https && out->body_bytes > HASHED_OVER_TLS_BYTES_MAX) {
        memcpy(text, LS_S3_UNSIGNED_PAYLOAD, sizeof LS_S3_UNSIGNED_PAYLOAD);
    } else {
        ls_s3_hash(out->body, (size_t)out->body_bytes, text);
    }
}

static bool add_header(ls_s3_wire *wire, const char *name, const char *value, ls_s3_text *line)
{
    ls_s3_text_clear(line);
    ls_s3_text_append(line, name);
    ls_s3_text_append(line, ":");
    if (value[0] != '\0') ls_s3_text_append(line, " ");
    ls_s3_text_append(line, value);
    struct curl_slist *longer = line->failed ? NULL : curl_slist_append(wire->headers, line->bytes);
    if (longer == NULL) return false;
    wire->headers = longer;
    return true;
}

/* Everything that is sent and could matter is signed; the list is sorted by name. */
static size_t list_signed_headers(const ls_s3_outgoing *out, const ls_s3_config *config, const char *hash,
                                  const char *date, ls_s3_pair headers[HEADERS_MAX])
{
    size_t count = 0;
    headers[count++] = (ls_s3_pair){"host", config->host};
    if (out->if_absent) headers[count++] = (ls_s3_pair){"if-none-match", "*"};
    if (out->range[0] != '\0') headers[count++] = (ls_s3_pair){"range", out->range};
    headers[count++] = (ls_s3_pair){"x-amz-content-sha256", hash};
    headers[count++] = (ls_s3_pair){"x-amz-date", date};
    if (config->session_token != NULL) headers[count++] = (ls_s3_pair){"x-amz-security-token", config->session_token};
    return count;
}

static ls_result sign(ls_s3_wire *wire, const ls_s3_config *config, ls_s3_signer *signer, const ls_s3_text *path,
                      const ls_s3_text *query)
{
    ls_s3_text authorization = LS_S3_TEXT_EMPTY, line = LS_S3_TEXT_EMPTY;
    ls_s3_pair headers[HEADERS_MAX];
    char hash[LS_S3_HASH_TEXT_BYTES], date[LS_S3_DATE_BYTES];
    if (!ls_s3_format_date(wire->signed_s, date)) return LS_ERROR_INVALID;
    hash_payload(&wire->out, config, hash);
    size_t count = list_signed_headers(&wire->out, config, hash, date, headers);
    ls_s3_to_sign to_sign = {wire->out.method, ls_s3_text_string(path), ls_s3_text_string(query), headers, count, hash};
    ls_result result = ls_s3_sign(signer, &to_sign, date, &authorization);
    bool added = true;
    for (size_t i = 0; result == LS_OK && added && i < count; i++) {
        added = add_header(wire, headers[i].name, headers[i].value, &line);
    }
    added = added && result == LS_OK && add_header(wire, "authorization", authorization.bytes, &line);
    /* With this libcurl would wait up to a second for a "100 Continue" that few servers send. */
    added = added && add_header(wire, "expect", "", &line);
    ls_s3_text_free(&authorization);
    ls_s3_text_free(&line);
    return result == LS_OK && !added ? LS_ERROR_MEMORY : result;
}

static long milliseconds(int64_t nanoseconds)
{
    int64_t value = (nanoseconds + 999999) / 1000000;
    return value > 1 << 30 ? 1 << 30 : (long)value;
}

static void set_method(ls_s3_wire *wire, CURL *easy)
{
    const char *method = wire->out.method;
    if (strcmp(method, "HEAD") == 0) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (strcmp(method, "DELETE") == 0) curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
    if (strcmp(method, "PUT") != 0) return;
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)wire->out.body_bytes);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, wire);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, wire);
    if (wire->out.body_bytes > 65536) curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 524288L);
}

static void set_connection(CURL *easy, const ls_s3_config *config)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(config->connect_timeout_ns));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(config->request_timeout_ns));
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lakestream");
    if (config->is_loopback) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (!config->is_https) return;
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, config->verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, config->verify ? 2L : 0L);
    if (config->ca_file != NULL) curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
}

static void set_receiving(ls_s3_wire *wire, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, wire);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, wire);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, wire);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, wire->error_text);
    if (strcmp(wire->out.method, "GET") == 0) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 131072L);
}

ls_result ls_s3_wire_prepare(ls_s3_wire *wire, CURL *easy, const ls_s3_config *config, ls_s3_signer *signer,
                             int64_t now_s, void *private_pointer)
{
    ls_s3_text path = LS_S3_TEXT_EMPTY, query = LS_S3_TEXT_EMPTY, url = LS_S3_TEXT_EMPTY;
    forget_answer(&wire->in);
    curl_slist_free_all(wire->headers);
    wire->headers = NULL;
    wire->body_sent = 0;
    wire->sends = 0;
    wire->is_resend_prevented = false;
    wire->error_text[0] = '\0';
    wire->signed_s = now_s;
    append_path(&path, config, wire->out.key);
    ls_result result = ls_s3_canonical_query(wire->out.parameters, wire->out.parameter_count, &query);
    if (result == LS_OK && path.failed) result = LS_ERROR_MEMORY;
    if (result == LS_OK) result = sign(wire, config, signer, &path, &query);
    if (result != LS_OK) goto fail;
    ls_s3_text_append(&url, config->origin);
    ls_s3_text_append(&url, ls_s3_text_string(&path));
    if (query.length > 0) ls_s3_text_append(&url, "?");
    ls_s3_text_append(&url, ls_s3_text_string(&query));
    result = url.failed ? LS_ERROR_MEMORY : LS_OK;
    if (result != LS_OK) goto fail;
    curl_easy_reset(easy);
    set_connection(easy, config);
    set_receiving(wire, easy);
    set_method(wire, easy);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, wire->headers);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, private_pointer);
    if (curl_easy_setopt(easy, CURLOPT_URL, url.bytes) != CURLE_OK) result = LS_ERROR_MEMORY;
fail:
    ls_s3_text_free(&path);
    ls_s3_text_free(&query);
    ls_s3_text_free(&url);
    return result;
}

void ls_s3_wire_free(ls_s3_wire *wire)
{
    curl_slist_free_all(wire->headers);
    wire->headers = NULL;
    ls_free(wire->in.body);
    wire->in.body = NULL;
}
