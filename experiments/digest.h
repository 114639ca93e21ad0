/* digest.h - SHA-256 of text, by libcrypto: names a resolved scenario and the content of a results file. */
#ifndef LS_DIGEST_H
#define LS_DIGEST_H

#include "manifest/base.h"

#define LS_DIGEST_HEX_BYTES 65u /* 64 hexadecimal digits and NUL */

typedef struct ls_digest ls_digest;

ls_digest *ls_digest_new(void); /* NULL when out of memory */

/* Adds bytes. ls_digest_field adds a string together with its length, so that ("ab", "c") and ("a", "bc") differ. */
void ls_digest_bytes(ls_digest *digest, const void *bytes, size_t length);
void ls_digest_field(ls_digest *digest, const char *string);

/* Writes the digest of all that was added and frees it; LS_ERROR_MEMORY if libcrypto failed on the way. */
ls_result ls_digest_finish(ls_digest *digest, char hex[LS_DIGEST_HEX_BYTES]);

/* Digest of one string. */
ls_result ls_digest_text(const char *string, char hex[LS_DIGEST_HEX_BYTES]);

#endif
