/* s3_reply.h - what an HTTP status, an error code or a broken transfer means in the closed set of replies.
 *
 * Pure functions of what was seen, so that every row can be tested without a network. The rules err to the safe side: a
 * change whose fate is not certain is LS_REPLY_UNKNOWN_OUTCOME, a read that may be repeated is LS_REPLY_UNAVAILABLE.
 */
#ifndef LS_S3_REPLY_H
#define LS_S3_REPLY_H

#include "manifest/exchange.h"

typedef struct ls_s3_verdict {
    ls_reply_status status;
    const char *hint; /* what to do, or NULL */
} ls_s3_verdict;

/* An answer that is no success: its status, and the code of its error document ("" if there was none). */
ls_s3_verdict ls_s3_judge_answer(ls_operation operation, bool if_absent, long http_status, const char *code,
                                 bool has_retry_after);

/* A transfer that ended without a whole answer; curl_code is a CURLcode. was_sent: at least the attempt to send began.
 */
ls_s3_verdict ls_s3_judge_transfer(ls_operation operation, bool was_sent, int curl_code);

/* What a change may have done and a read has not: unknown outcome or unavailable. */
ls_reply_status ls_s3_doubt(ls_operation operation);

#endif
