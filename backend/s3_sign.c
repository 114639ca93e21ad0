/* s3_sign.c - canonical request, string to sign, signature (see s3_sign.h for the source of the rules). */
#include "backend/s3_sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH_BYTES 32

ls_s3_signer ls_s3_signer_open(const char *access_key, const char *secret_key, const char *region, const char *service)
{
    return (ls_s3_signer){.access_key = access_key, .secret_key = secret_key, .region = region, .service = service};
}

void ls_s3_signer_close(ls_s3_signer *signer)
{
    OPENSSL_cleanse(signer->key, sizeof signer->key);
    signer->key_day[0] = '\0';
}

bool ls_s3_format_date(int64_t unix_s, char text[LS_S3_DATE_BYTES])
{
    time_t seconds = (time_t)unix_s;
    struct tm utc;
    if (unix_s < 0 || unix_s > INT64_C(253402300799) || gmtime_r(&seconds, &utc) == NULL) return false;
    return strftime(text, LS_S3_DATE_BYTES, "%Y%m%dT%H%M%SZ", &utc) == LS_S3_DATE_BYTES - 1;
}

void ls_s3_hash(const void *bytes, size_t count, char text[LS_S3_HASH_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t hash[HASH_BYTES];
    SHA256(bytes != NULL ? bytes : (const void *)"", count, hash);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        text[2 * i] = digits[hash[i] >> 4];
        text[2 * i + 1] = digits[hash[i] & 15];
    }
    text[2 * HASH_BYTES] = '\0';
}

/* The canonical query string is ordered by the encoded text: the end comes first, then encoded bytes ('%' is smaller
 * than every unreserved character, and hexadecimal digits keep the order of bytes), then unreserved ones. */
static int encoded_weight(char byte)
{
    if (byte == '\0') return 0;
    bool unreserved = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                      byte == '-' || byte == '.' || byte == '_' || byte == '~';
    return (unreserved ? 512 : 1) + (uint8_t)byte;
}

static int compare_encoded(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    return encoded_weight(*left) - encoded_weight(*right);
}

static int compare_parameters(const void *left, const void *right)
{
    const ls_s3_pair *a = left, *b = right;
    int order = compare_encoded(a->name, b->name);
    return order != 0 ? order : compare_encoded(a->value, b->value);
}

ls_result ls_s3_canonical_query(ls_s3_pair *parameters, size_t count, ls_s3_text *query)
{
    if (count > 1) qsort(parameters, count, sizeof parameters[0], compare_parameters);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) ls_s3_text_append(query, "&");
        ls_s3_text_append_encoded(query, parameters[i].name, false);
        ls_s3_text_append(query, "=");
        ls_s3_text_append_encoded(query, parameters[i].value, false);
    }
    return query->failed ? LS_ERROR_MEMORY : LS_OK;
}

static bool hmac(const void *key, size_t key_bytes, const char *message, size_t message_bytes, uint8_t out[HASH_BYTES])
{
    unsigned length = 0;
    return HMAC(EVP_sha256(), key, (int)key_bytes, (const unsigned char *)message, message_bytes, out, &length) !=
               NULL &&
           length == HASH_BYTES;
}

/* AWS4 + secret, then the day, the region, the service and a fixed word. */
static ls_result derive_key(ls_s3_signer *signer, const char day[9])
{
    if (memcmp(signer->key_day, day, 9) == 0) return LS_OK;
    signer->key_day[0] = '\0';
    ls_s3_text seed = LS_S3_TEXT_EMPTY;
    ls_s3_text_append(&seed, "AWS4");
    ls_s3_text_append(&seed, signer->secret_key);
    if (seed.failed) {
        if (seed.bytes != NULL) OPENSSL_cleanse(seed.bytes, seed.capacity);
        ls_s3_text_free(&seed);
        return LS_ERROR_MEMORY;
    }
    uint8_t of_day[HASH_BYTES], of_region[HASH_BYTES], of_service[HASH_BYTES];
    bool done = hmac(seed.bytes, seed.length, day, 8, of_day) &&
                hmac(of_day, HASH_BYTES, signer->region, strlen(signer->region), of_region) &&
                hmac(of_region, HASH_BYTES, signer->service, strlen(signer->service), of_service) &&
                hmac(of_service, HASH_BYTES, "aws4_request", 12, signer->key);
    OPENSSL_cleanse(seed.bytes, seed.capacity);
    ls_s3_text_free(&seed);
    if (!done) return LS_ERROR_INVALID;
    memcpy(signer->key_day, day, 9);
    return LS_OK;
}

/* Without blanks at the ends, and runs of blanks inside as one. */
static void append_header_value(ls_s3_text *text, const char *value)
{
    bool started = false, blank = false;
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == ' ' || *at == '\t') {
            blank = started;
            continue;
        }
        if (blank) ls_s3_text_append(text, " ");
        blank = false;
        started = true;
        ls_s3_text_append_bytes(text, at, 1);
    }
}

static void append_signed_names(ls_s3_text *text, const ls_s3_to_sign *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (i > 0) ls_s3_text_append(text, ";");
        ls_s3_text_append(text, request->headers[i].name);
    }
}

static void append_canonical_request(ls_s3_text *text, const ls_s3_to_sign *request)
{
    ls_s3_text_append(text, request->method);
    ls_s3_text_append(text, "\n");
    ls_s3_text_append(text, request->path);
    ls_s3_text_append(text, "\n");
    ls_s3_text_append(text, request->query);
    ls_s3_text_append(text, "\n");
    for (size_t i = 0; i < request->header_count; i++) {
        ls_s3_text_append(text, request->headers[i].name);
        ls_s3_text_append(text, ":");
        append_header_value(text, request->headers[i].value);
        ls_s3_text_append(text, "\n");
    }
    ls_s3_text_append(text, "\n");
    append_signed_names(text, request);
    ls_s3_text_append(text, "\n");
    ls_s3_text_append(text, request->payload_hash);
}

static void append_scope(ls_s3_text *text, const ls_s3_signer *signer, const char day[9])
{
    const char *parts[] = {day, "/", signer->region, "/", signer->service, "/aws4_request"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) ls_s3_text_append(text, parts[i]);
}

/* A line break in a value would let whoever chose it write headers of his own. */
static bool headers_are_sound(const ls_s3_to_sign *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (strpbrk(request->headers[i].value, "\r\n") != NULL) return false;
        if (i > 0 && strcmp(request->headers[i - 1].name, request->headers[i].name) >= 0) return false;
    }
    return true;
}

/* The bytes that are signed, from a canonical request that is forgotten again. */
static void append_string_to_sign(ls_s3_text *text, const ls_s3_signer *signer, const ls_s3_to_sign *request,
                                  const char date[LS_S3_DATE_BYTES], const char day[9])
{
    ls_s3_text canonical = LS_S3_TEXT_EMPTY;
    append_canonical_request(&canonical, request);
    text->failed = text->failed || canonical.failed;
    ls_s3_text_append(text, "AWS4-HMAC-SHA256\n");
    ls_s3_text_append(text, date);
    ls_s3_text_append(text, "\n");
    append_scope(text, signer, day);
    ls_s3_text_append(text, "\n");
    char hash[LS_S3_HASH_TEXT_BYTES];
    ls_s3_hash(canonical.bytes, canonical.length, hash);
    ls_s3_text_append(text, hash);
    ls_s3_text_free(&canonical);
}

ls_result ls_s3_sign(ls_s3_signer *signer, const ls_s3_to_sign *request, const char date[LS_S3_DATE_BYTES],
                     ls_s3_text *authorization)
{
    char day[9] = {0};
    memcpy(day, date, 8);
    if (!headers_are_sound(request)) return LS_ERROR_INVALID;
    ls_result result = derive_key(signer, day);
    if (result != LS_OK) return result;
    ls_s3_text to_sign = LS_S3_TEXT_EMPTY;
    append_string_to_sign(&to_sign, signer, request, date, day);
    uint8_t signature[HASH_BYTES];
    bool memory = !to_sign.failed;
    bool signed_it = memory && hmac(signer->key, HASH_BYTES, to_sign.bytes, to_sign.length, signature);
    ls_s3_text_free(&to_sign);
    if (!signed_it) return memory ? LS_ERROR_INVALID : LS_ERROR_MEMORY;
    ls_s3_text_append(authorization, "AWS4-HMAC-SHA256 Credential=");
    ls_s3_text_append(authorization, signer->access_key);
    ls_s3_text_append(authorization, "/");
    append_scope(authorization, signer, day);
    ls_s3_text_append(authorization, ", SignedHeaders=");
    append_signed_names(authorization, request);
    ls_s3_text_append(authorization, ", Signature=");
    ls_s3_text_append_hex(authorization, signature, HASH_BYTES);
    return authorization->failed ? LS_ERROR_MEMORY : LS_OK;
}
