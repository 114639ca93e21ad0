/* s3_wire.h - one HTTP request of S3: composed, signed, set up on a curl handle, and what came back.
 *
 * A wire is used again and again by one operation (the pages of a list, a second try after a clock correction); every
 * use is signed anew. It makes sure that what changes the store is sent at most once: libcurl re-sends a request on a
 * new connection when a reused one turns out to be dead, and tells nobody. Its pre-request callback runs just before
 * each sending, so the second call is refused there; its seek callback, which a re-send of a body needs, is refused as
 * well.
 */
#ifndef LS_S3_WIRE_H
#define LS_S3_WIRE_H

#include "backend/s3_config.h"
#include "backend/s3_sign.h"
#include "backend/s3_xml.h"

#include <curl/curl.h>

#define LS_S3_PARAMETERS_MAX 6

/* What to send. Texts and body are borrowed until the transfer has ended. */
typedef struct ls_s3_outgoing {
    const char *method; /* "GET", "HEAD", "PUT", "DELETE" */
    const char *key;    /* NULL: the bucket itself */
    ls_s3_pair parameters[LS_S3_PARAMETERS_MAX];
    size_t parameter_count;
    char range[64]; /* value of the Range header, "" for none */
    bool if_absent;
    const uint8_t *body;
    uint64_t body_bytes;
    uint64_t answer_bytes_max; /* of a successful answer; more ends the transfer */
} ls_s3_outgoing;

/* What came back. */
typedef struct ls_s3_incoming {
    long http_status; /* 0: none */
    uint8_t *body;
    size_t body_bytes, body_capacity;
    bool is_body_cut; /* an error body longer than we care for; the rest was dropped */
    bool is_too_long; /* a success longer than answer_bytes_max: transfer ended */
    bool is_memory_out;
    bool has_etag;
    bool is_chunked;
    bool has_length, has_range, has_range_total;
    uint64_t length;                               /* Content-Length */
    uint64_t range_first, range_last, range_total; /* Content-Range; range_total also of "bytes * /N" under 416 */
    int64_t date_s;                                /* Date; -1 if none */
    char request_id[128];
    char region[64]; /* x-amz-bucket-region */
} ls_s3_incoming;

typedef struct ls_s3_wire {
    ls_s3_outgoing out;
    ls_s3_incoming in;
    struct curl_slist *headers;
    uint64_t body_sent;
    uint32_t sends; /* how often libcurl was about to send and was let */
    bool is_resend_prevented;
    int64_t signed_s; /* the time it was signed with */
    char error_text[CURL_ERROR_SIZE];
} ls_s3_wire;

/* Signs wire->out at time now_s and sets `easy` up to send it; forgets the previous answer. private_pointer comes back
 * from CURLINFO_PRIVATE. The wire must stay where it is until the transfer has ended. */
ls_result ls_s3_wire_prepare(ls_s3_wire *wire, CURL *easy, const ls_s3_config *config, ls_s3_signer *signer,
                             int64_t now_s, void *private_pointer);

/* Frees what the wire holds; not out.body. */
void ls_s3_wire_free(ls_s3_wire *wire);

#endif
