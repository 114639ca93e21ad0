/* s3_reply.c - the table of answers.
 *
 *   status   code                                             reply
 *   304      (older MinIO, put-if-absent)                     exists
 *   3xx      PermanentRedirect ...                            invalid: wrong region or endpoint
 *   400      ExpiredToken, InvalidToken, Authorization...     denied
 *   400      RequestTimeout; also 408                         doubt
 *   400      BadDigest, XAmzContentSHA256Mismatch ...         unavailable: the body was damaged on its way, refused
 *   401 403                                                   denied
 *   404      NoSuchBucket                                     invalid
 *   404      any other on get, head / delete / put, list      not-found / ok / invalid
 *   409      ...AlreadyExists, on put-if-absent               exists (Azure's and Aliyun's way to say 412)
 *   409      any other on put-if-absent                       conflict-retry: two creators at once, undecided
 *   409      on other changes / reads                         unknown-outcome / unavailable
 *   412      on put-if-absent                                 exists
 *   416                                                       invalid (s3_operation.c finds the object's size)
 *   429, 5xx (5xx: with a throttling code)                    throttled
 *   503      with Retry-After, or on a read                   throttled
 *   501 507                                                   invalid
 *   5xx                                                       doubt
 *   other                                                     invalid
 *
 * doubt: unknown-outcome for put and delete, unavailable for get, head and list. A bare 503 comes from gateways that
 * may have lost their backend in the middle of a put, hence doubt and not "refused". Sources: "Error responses" in the
 * Amazon S3 API reference; "How to prevent overwriting objects with conditional writes" in the Amazon S3 user guide
 * (409); RFC 9110.
 */
#include "backend/s3_reply.h"

#include <curl/curl.h>
#include <string.h>

static bool is_one_of(const char *code, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(code, *names) == 0) return true;
    }
    return false;
}

static bool is_throttling_code(const char *code)
{
    static const char *const names[] = {"SlowDown",
                                        "SlowDownRead",
                                        "SlowDownWrite",
                                        "ServiceUnavailable",
                                        "Throttling",
                                        "ThrottlingException",
                                        "ThrottledException",
                                        "RequestLimitExceeded",
                                        "RequestThrottled",
                                        "RequestThrottledException",
                                        "BandwidthLimitExceeded",
                                        "TooManyRequests",
                                        "RequestRateLimitExceeded",
                                        "ServerBusy",
                                        NULL};
    return is_one_of(code, names);
}

static bool is_credential_code(const char *code)
{
    static const char *const names[] = {"ExpiredToken",
                                        "ExpiredTokenException",
                                        "InvalidToken",
                                        "TokenRefreshRequired",
                                        "AuthorizationHeaderMalformed",
                                        "InvalidAccessKeyId",
                                        "SignatureDoesNotMatch",
                                        "AccessDenied",
                                        "MissingSecurityHeader",
                                        "AuthorizationQueryParametersError",
                                        NULL};
    return is_one_of(code, names);
}

static bool is_damage_code(const char *code)
{
    static const char *const names[] = {
        "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "XAmzContentChecksumMismatch",
        NULL};
    return is_one_of(code, names);
}

ls_reply_status ls_s3_doubt(ls_operation operation)
{
    return operation == LS_PUT || operation == LS_DELETE ? LS_REPLY_UNKNOWN_OUTCOME : LS_REPLY_UNAVAILABLE;
}

static ls_s3_verdict judge_bad_request(ls_operation operation, const char *code)
{
    if (is_credential_code(code)) {
        return (ls_s3_verdict){LS_REPLY_DENIED,
                               "check the credentials, whether the session has expired, and the region"};
    }
    if (is_throttling_code(code)) return (ls_s3_verdict){LS_REPLY_THROTTLED, NULL};
    if (is_damage_code(code)) return (ls_s3_verdict){LS_REPLY_UNAVAILABLE, NULL};
    if (strcmp(code, "RequestTimeout") == 0) return (ls_s3_verdict){ls_s3_doubt(operation), NULL};
    return (ls_s3_verdict){LS_REPLY_INVALID, NULL};
}

static ls_s3_verdict judge_denied(const char *code)
{
    if (strcmp(code, "RequestTimeTooSkewed") == 0) {
        return (ls_s3_verdict){LS_REPLY_DENIED, "this machine's clock is wrong: set it (timedatectl, chrony)"};
    }
    if (strcmp(code, "SignatureDoesNotMatch") == 0) {
        return (ls_s3_verdict){LS_REPLY_DENIED,
                               "the secret key is wrong, or something between here and the server changes requests"};
    }
    return (ls_s3_verdict){LS_REPLY_DENIED,
                           "check the access key, its rights on the bucket, the region and this machine's clock"};
}

static ls_s3_verdict judge_not_found(ls_operation operation, const char *code)
{
    if (strcmp(code, "NoSuchBucket") == 0) {
        return (ls_s3_verdict){LS_REPLY_INVALID, "create the bucket first, or check its name and the endpoint"};
    }
    if (operation == LS_DELETE) return (ls_s3_verdict){LS_REPLY_OK, NULL};
    if (operation == LS_GET || operation == LS_HEAD) return (ls_s3_verdict){LS_REPLY_NOT_FOUND, NULL};
    return (ls_s3_verdict){LS_REPLY_INVALID, "is this an S3 endpoint?"};
}

static ls_s3_verdict judge_conflict(ls_operation operation, bool if_absent, const char *code)
{
    static const char *const exists[] = {"BlobAlreadyExists", "ObjectAlreadyExists", "FileAlreadyExists",
                                         "KeyAlreadyExists",  "PathAlreadyExists",   NULL};
    if (!if_absent) return (ls_s3_verdict){ls_s3_doubt(operation), NULL};
    return (ls_s3_verdict){is_one_of(code, exists) ? LS_REPLY_EXISTS : LS_REPLY_CONFLICT_RETRY, NULL};
}

static ls_s3_verdict judge_server_error(ls_operation operation, long http_status, const char *code,
                                        bool has_retry_after)
{
    bool changes = operation == LS_PUT || operation == LS_DELETE;
    if (http_status == 501) {
        return (ls_s3_verdict){LS_REPLY_INVALID,
                               "the store does not know this kind of request (conditional put, perhaps)"};
    }
    if (http_status == 507) return (ls_s3_verdict){LS_REPLY_INVALID, "the store is full"};
    if (is_throttling_code(code) || (http_status == 503 && (!changes || has_retry_after))) {
        return (ls_s3_verdict){LS_REPLY_THROTTLED, NULL};
    }
    return (ls_s3_verdict){ls_s3_doubt(operation), NULL};
}

ls_s3_verdict ls_s3_judge_answer(ls_operation operation, bool if_absent, long http_status, const char *code,
                                 bool has_retry_after)
{
    if_absent = if_absent && operation == LS_PUT;
    if (http_status >= 500) return judge_server_error(operation, http_status, code, has_retry_after);
    switch (http_status) {
    case 304: return (ls_s3_verdict){if_absent ? LS_REPLY_EXISTS : LS_REPLY_INVALID, NULL};
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return (ls_s3_verdict){LS_REPLY_INVALID,
                               "the bucket lives in another region or at another endpoint: set AWS_REGION or "
                               "AWS_ENDPOINT_URL"};
    case 400: return judge_bad_request(operation, code);
    case 401:
    case 403: return judge_denied(code);
    case 404: return judge_not_found(operation, code);
    case 408: return (ls_s3_verdict){ls_s3_doubt(operation), NULL};
    case 409: return judge_conflict(operation, if_absent, code);
    case 412: return (ls_s3_verdict){if_absent ? LS_REPLY_EXISTS : LS_REPLY_INVALID, NULL};
    case 429: return (ls_s3_verdict){LS_REPLY_THROTTLED, NULL};
    default: return (ls_s3_verdict){LS_REPLY_INVALID, NULL};
    }
}

ls_s3_verdict ls_s3_judge_transfer(ls_operation operation, bool was_sent, int curl_code)
{
    if (was_sent) return (ls_s3_verdict){ls_s3_doubt(operation), NULL};
    switch (curl_code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        return (ls_s3_verdict){LS_REPLY_INVALID,
                               "the server's certificate is not trusted: name its authority's file in "
                               "AWS_CA_BUNDLE"};
    case CURLE_SSL_CACERT_BADFILE:
        return (ls_s3_verdict){LS_REPLY_INVALID, "the file of trusted certificates (AWS_CA_BUNDLE) cannot be read"};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: return (ls_s3_verdict){LS_REPLY_INVALID, "check the endpoint"};
    default: return (ls_s3_verdict){LS_REPLY_UNAVAILABLE, NULL};
    }
}
