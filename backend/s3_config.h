/* s3_config.h - which server, which bucket, whose keys: options, environment and credentials file made into one plain
 * struct.
 *
 * For each value the first source that has it wins: the option, the environment, the profile, the default (backend/s3.h
 * lists them). Access key, secret key and session token are taken from one source together, never mixed. The
 * credentials file is AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials; of a profile aws_access_key_id,
 * aws_secret_access_key, aws_session_token, region and endpoint_url are read. Roles, single sign-on and instance
 * metadata are not: export the temporary keys instead (`aws configure export-credentials --format env`).
 */
#ifndef LS_S3_CONFIG_H
#define LS_S3_CONFIG_H

#include "backend/s3.h"

typedef struct ls_s3_config {
    char *bucket;
    char *prefix;    /* without a trailing slash; "" if none */
    char *origin;    /* "http://127.0.0.1:9000": what a URL begins with */
    char *host;      /* the Host header, as it is signed */
    char *base_path; /* what stands before a key, encoded, with slashes at both ends: "/bucket/" or "/" */
    char *region;
    char *access_key;
    char *secret_key;
    char *session_token; /* NULL: none */
    char *ca_file;       /* NULL: the system's */
    bool is_https;
    bool is_loopback; /* no proxy may stand in between */
    bool verify;
    int64_t connect_timeout_ns;
    int64_t request_timeout_ns;
    uint32_t connection_limit;
    uint64_t object_bytes_max;
} ls_s3_config;

/* Fills *config (ls_s3_config_free it, also after a failure). LS_ERROR_INVALID for anything the user can repair,
 * LS_ERROR_IO for an unreadable file. */
ls_result ls_s3_config_resolve(const char *address, const ls_s3_options *options, ls_s3_config *config,
                               ls_error *error);

/* Wipes the secrets and frees. */
void ls_s3_config_free(ls_s3_config *config);

/* Makes text that a server sent fit for a message, in place: secret key, session token and anything that could be a
 * signature (64 hexadecimal digits in a row) become asterisks, control characters question marks. */
void ls_s3_config_redact(const ls_s3_config *config, char *text);

#endif
