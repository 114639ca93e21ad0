/* s3_sign.h - AWS Signature Version 4 in the Authorization header.
 *
 * Why ourselves: libcurl 7.88 (Debian 12) signs query strings wrongly (order, empty values, encoded characters;
 * repaired in 8.3), and hides when it signs. The algorithm is the one of "Signature Version 4 signing process" in the
 * AWS documentation: canonical request, string to sign, key derived by four HMACs. S3's own rule holds here: the path
 * is encoded once and never normalised. tests/test_s3_sign.c holds this file to AWS's published vectors.
 *
 * The caller sends exactly what it had signed: path and query come back from here already encoded.
 */
#ifndef LS_S3_SIGN_H
#define LS_S3_SIGN_H

#include "backend/s3_text.h"

#define LS_S3_HASH_TEXT_BYTES 65 /* a SHA-256 in hexadecimal with its NUL */
#define LS_S3_DATE_BYTES      17 /* 20130524T000000Z with its NUL */

/* x-amz-content-sha256 of a body that the signature does not cover. */
#define LS_S3_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

/* A header or a query parameter; borrowed text. Header names are lower case. */
typedef struct ls_s3_pair {
    const char *name;
    const char *value;
} ls_s3_pair;

/* Keeps the derived key, which changes only with the day. Texts are borrowed and must outlive the signer. */
typedef struct ls_s3_signer {
    const char *access_key;
    const char *secret_key;
    const char *region;
    const char *service; /* "s3" */
    char key_day[9];     /* the day of `key`; "" when there is none yet */
    uint8_t key[32];
} ls_s3_signer;

typedef struct ls_s3_to_sign {
    const char *method;
    const char *path;          /* encoded, with its leading slash */
    const char *query;         /* as ls_s3_canonical_query made it */
    const ls_s3_pair *headers; /* every header to be signed, "host" and "x-amz-date" among them, sorted by name */
    size_t header_count;
    const char *payload_hash; /* hexadecimal SHA-256 of the body, or LS_S3_UNSIGNED_PAYLOAD */
} ls_s3_to_sign;

ls_s3_signer ls_s3_signer_open(const char *access_key, const char *secret_key, const char *region, const char *service);
/* Wipes the derived key. */
void ls_s3_signer_close(ls_s3_signer *signer);

/* Time as the x-amz-date header shows it. False when the year is not 1970 .. 9999. */
bool ls_s3_format_date(int64_t unix_s, char text[LS_S3_DATE_BYTES]);

void ls_s3_hash(const void *bytes, size_t count, char text[LS_S3_HASH_TEXT_BYTES]);

/* Appends the parameters encoded, sorted by name and then value, joined by '&'. Sorts `parameters` in place by their
 * encoded bytes. */
ls_result ls_s3_canonical_query(ls_s3_pair *parameters, size_t count, ls_s3_text *query);

/* Appends the value of the Authorization header. date is the x-amz-date text among the headers. LS_ERROR_MEMORY, or
 * LS_ERROR_INVALID when a header value has a line break or OpenSSL fails. */
ls_result ls_s3_sign(ls_s3_signer *signer, const ls_s3_to_sign *request, const char date[LS_S3_DATE_BYTES],
                     ls_s3_text *authorization);

#endif
