/* s3_operation.h - one operation of store.h carried out by one or more HTTP requests, one after the other.
 *
 * Usually one. A list asks for page after page until it has what was wanted; a get whose range the object does not
 * cover needs a HEAD, since not every server tells the size under status 416; a request refused for a wrong clock is
 * signed again, once. The operation decides what to send next and judges each answer; driving libcurl is the business
 * of backend/s3.c.
 */
#ifndef LS_S3_OPERATION_H
#define LS_S3_OPERATION_H

#include "backend/s3_wire.h"

#include <sys/queue.h>

/* How far the server's clock may be from ours for us to sign by it. Within a day lie wrong time zones and a clock that
 * was never set since noon; beyond it, someone may be collecting signatures for a far future. */
#define LS_S3_CLOCK_OFFSET_MAX_S INT64_C(86400)

typedef enum ls_s3_stage {
    LS_S3_STAGE_MAIN = 0, /* the request itself, or the next page of the list */
    LS_S3_STAGE_SIZE      /* HEAD, to tell the size of an object that the range does not meet */
} ls_s3_stage;

typedef struct ls_s3_operation {
    TAILQ_ENTRY(ls_s3_operation) link;
    ls_object_request request;
    ls_store_callback callback;
    void *context;
    CURL *easy; /* while a request is on the wire */
    ls_s3_wire wire;
    ls_s3_stage stage;
    bool is_clock_corrected;
    ls_s3_listing found; /* list: what was gathered */
    char *list_after;    /* list: copy of request.list_after, NULL if none */
    char *token;         /* list: where the next page begins */
    char page_limit[12]; /* list: max-keys of the next page */
    ls_object_reply reply;
    char message[1024];
} ls_s3_operation;

typedef enum ls_s3_step {
    LS_S3_STEP_DONE = 0, /* reply is complete */
    LS_S3_STEP_SEND      /* wire.out holds the next request */
} ls_s3_step;

/* NULL when out of memory. wire.out is ready to be sent. */
ls_s3_operation *ls_s3_operation_new(const ls_s3_config *config, const ls_object_request *request,
                                     ls_store_callback callback, void *context);
void ls_s3_operation_free(ls_s3_operation *operation);

/* Looks at what came back; retry_after_s is the server's wish, 0 if none. *clock_offset_s is changed when the server's
 * clock is to be signed by. */
ls_s3_step ls_s3_operation_received(ls_s3_operation *operation, const ls_s3_config *config, CURLcode code,
                                    int64_t retry_after_s, int64_t now_s, int64_t *clock_offset_s);

/* Ends the operation without an answer: it could not be sent at all. */
void ls_s3_operation_unsent(ls_s3_operation *operation, const ls_s3_config *config, ls_result reason);

#endif
