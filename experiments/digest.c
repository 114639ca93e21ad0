/* digest.c - SHA-256 through libcrypto's EVP interface. A failure of libcrypto is remembered and
 * reported at the end. */
#include "experiments/digest.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

struct ls_digest {
    EVP_MD_CTX *context;
    bool failed;
};

ls_digest *ls_digest_new(void)
{
    ls_digest *digest = ls_allocate(sizeof *digest);
    if (digest == NULL) return NULL;
    *digest = (ls_digest){.context = EVP_MD_CTX_new()};
    if (digest->context != NULL && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1) return digest;
    EVP_MD_CTX_free(digest->context);
    ls_free(digest);
    return NULL;
}

void ls_digest_bytes(ls_digest *digest, const void *bytes, size_t length)
{
    if (EVP_DigestUpdate(digest->context, bytes, length) != 1) digest->failed = true;
}

void ls_digest_field(ls_digest *digest, const char *string)
{
    char prefix[32];
    int length = snprintf(prefix, sizeof prefix, "%zu:", strlen(string));
    ls_digest_bytes(digest, prefix, (size_t)length);
    ls_digest_bytes(digest, string, strlen(string));
}

ls_result ls_digest_finish(ls_digest *digest, char hex[LS_DIGEST_HEX_BYTES])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    bool good = EVP_DigestFinal_ex(digest->context, bytes, &length) == 1 && !digest->failed && length == 32;
    for (unsigned i = 0; good && i < length; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    EVP_MD_CTX_free(digest->context);
    ls_free(digest);
    return good ? LS_OK : LS_ERROR_MEMORY;
}

ls_result ls_digest_text(const char *string, char hex[LS_DIGEST_HEX_BYTES])
{
    ls_digest *digest = ls_digest_new();
    if (digest == NULL) return LS_ERROR_MEMORY;
    ls_digest_bytes(digest, string, strlen(string));
    return ls_digest_finish(digest, hex);
}
