/* s3_text.h - text that grows: how URLs, headers and canonical requests are put together.
 *
 * A failed allocation is remembered, not reported at every step: callers append as they please and look at `failed`
 * once at the end. Start from LS_S3_TEXT_EMPTY, end with ls_s3_text_free.
 */
#ifndef LS_S3_TEXT_H
#define LS_S3_TEXT_H

#include "manifest/base.h"

typedef struct ls_s3_text {
    char *bytes; /* NUL-terminated as soon as anything was appended; NULL before */
    size_t length;
    size_t capacity;
    bool failed; /* an allocation failed: the text is not what it should be */
} ls_s3_text;

#define LS_S3_TEXT_EMPTY ((ls_s3_text){0})

void ls_s3_text_append(ls_s3_text *text, const char *part);
void ls_s3_text_append_bytes(ls_s3_text *text, const void *bytes, size_t count);
void ls_s3_text_append_number(ls_s3_text *text, uint64_t number);
/* Lower-case hexadecimal digits, two a byte. */
void ls_s3_text_append_hex(ls_s3_text *text, const uint8_t *bytes, size_t count);
/* Percent-encoded as SigV4 wants it: every byte but A-Z a-z 0-9 - . _ ~ as %XX in upper case, a slash too unless
 * keep_slash. */
void ls_s3_text_append_encoded(ls_s3_text *text, const char *part, bool keep_slash);

/* Empties the text and keeps its memory. */
void ls_s3_text_clear(ls_s3_text *text);
void ls_s3_text_free(ls_s3_text *text);

/* The text as a C string: "" when nothing was appended. */
const char *ls_s3_text_string(const ls_s3_text *text);

#endif
