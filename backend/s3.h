/* s3.h - the store on S3: AWS, MinIO, Ceph, and what else speaks the protocol, through libcurl's multi interface.
 *
 * What it promises beyond backend/store.h:
 *   One submit, one effect. Nothing that changes the store is ever sent twice: neither by us nor, unseen, by libcurl on
 * a dead reused connection. Whatever went wrong after a put or delete was sent comes back as LS_REPLY_UNKNOWN_OUTCOME.
 * (One exception has no effect to repeat: a request refused because the clock is wrong is signed anew and sent again.)
 *   OK means OK. Reads are checked against what was asked (status, length, Content-Range, ETag, well-formed XML to its
 * end); an error body under status 200, a short body or garbage is an error. Secrets stay inside: no message, no log
 * holds the secret key, the session token or a signature.
 *
 * Replies by HTTP status and error code are tabulated in backend/s3_reply.c, credentials and environment in
 * backend/s3_config.h. S3 Express (directory buckets) needs its own session protocol and is not supported.
 */
#ifndef LS_S3_H
#define LS_S3_H

#include "backend/store.h"

typedef enum ls_s3_addressing {
    LS_S3_ADDRESSING_AUTO = 0,   /* virtual-host on amazonaws.com (bucket name without dots), else path */
    LS_S3_ADDRESSING_PATH = 1,   /* https://endpoint/bucket/key */
    LS_S3_ADDRESSING_VIRTUAL = 2 /* https://bucket.endpoint/key */
} ls_s3_addressing;

/* Everything may be left zero: then the environment decides, and after it the default named here. Texts are borrowed
 * during the call only. */
typedef struct ls_s3_options {
    const char *endpoint;      /* http://host:port or https://host; AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS itself */
    const char *region;        /* AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-east-1 */
    const char *access_key;    /* AWS_ACCESS_KEY_ID, the profile's */
    const char *secret_key;    /* AWS_SECRET_ACCESS_KEY, the profile's */
    const char *session_token; /* AWS_SESSION_TOKEN, the profile's, none */
    const char *profile;       /* if given it goes before the environment's keys; AWS_PROFILE, "default" */
    ls_s3_addressing addressing;
    const char *ca_file;        /* certificates to trust, PEM; AWS_CA_BUNDLE, the system's */
    bool skip_verification;     /* accept any certificate: for experiments on machines of one's own */
    int64_t connect_timeout_ns; /* 5 s */
    int64_t request_timeout_ns; /* one request from connecting to the last byte; 60 s */
    uint32_t connection_limit;  /* requests on the wire at once, the others wait in line; 64 */
    uint64_t object_bytes_max;  /* a get of more is refused; 5 GiB, what S3 takes in one put */
} ls_s3_options;

/* Opens "s3://bucket" or "s3://bucket/prefix". No request is sent. *prefix (caller frees with ls_free) is the prefix
 * without a trailing slash, "" if none. NULL on failure, with error. options may be NULL. Reads the environment: not
 * while another thread changes it. */
ls_store *ls_store_open_s3_with(const char *address, const ls_s3_options *options, char **prefix, ls_error *error);
ls_store *ls_store_open_s3(const char *address, char **prefix, ls_error *error);

/* What went on below the replies, since the store was opened; for reports and tests. */
typedef struct ls_s3_counters {
    uint64_t requests;          /* put on the wire, each page of a list and each re-send among them */
    uint64_t connections;       /* opened */
    uint64_t resends_prevented; /* puts and deletes that libcurl was about to send again on a new connection */
    uint64_t clock_corrections; /* times the server's clock was adopted */
    int64_t clock_offset_s;     /* added to our clock when signing */
} ls_s3_counters;

/* store must come from ls_store_open_s3 or ls_store_open_s3_with. */
ls_s3_counters ls_s3_read_counters(const ls_store *store);

#endif
