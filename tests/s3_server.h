/* s3_server.h - one real S3 server (Ceph RGW, tests/servers/rgw.sh) for all suites of a test run.
 *
 * Started by the first test that asks, ended when the run ends, however it ends: a watchman process holds one end of a
 * pipe and stops the server when the other end closes.
 */
#ifndef LS_TEST_S3_SERVER_H
#define LS_TEST_S3_SERVER_H

#include "backend/s3.h"

typedef struct s3_server {
    char endpoint[64];     /* http://127.0.0.1:PORT */
    char tls_endpoint[64]; /* https://127.0.0.1:PORT, certificate in ca_file */
    char ca_file[128];
    int port;
    ls_s3_options options; /* endpoint and keys of it; region us-east-1 */
    const char *address;   /* s3://bucket */
} s3_server;

/* NULL, with a failed assertion and a message that tells what to install, when there is no server to be had. */
const s3_server *s3_server_get(void);

/* The server's bucket, with these options. NULL fails the test. */
ls_store *s3_server_open(const ls_s3_options *options);

#endif
