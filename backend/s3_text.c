/* s3_text.c - growing text, and the percent encoding that signatures depend on. */
#include "backend/s3_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool reserve(ls_s3_text *text, size_t more)
{
    if (text->failed) return false;
    if (more < text->capacity - text->length) return true;
    size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
    if (more >= SIZE_MAX / 4 || text->length >= SIZE_MAX / 4) {
        text->failed = true;
        return false;
    }
    while (capacity - text->length <= more) capacity *= 2;
    char *bytes = ls_reallocate(text->bytes, capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void ls_s3_text_append_bytes(ls_s3_text *text, const void *bytes, size_t count)
{
    if (!reserve(text, count)) return;
    if (count > 0) memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void ls_s3_text_append(ls_s3_text *text, const char *part) { ls_s3_text_append_bytes(text, part, strlen(part)); }

void ls_s3_text_append_number(ls_s3_text *text, uint64_t number)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, number);
    ls_s3_text_append_bytes(text, digits, (size_t)count);
}

void ls_s3_text_append_hex(ls_s3_text *text, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        char pair[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        ls_s3_text_append_bytes(text, pair, sizeof pair);
    }
}

static bool is_unreserved(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

void ls_s3_text_append_encoded(ls_s3_text *text, const char *part, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const char *at = part; *at != '\0'; at++) {
        if (is_unreserved(*at) || (keep_slash && *at == '/')) {
            ls_s3_text_append_bytes(text, at, 1);
            continue;
        }
        uint8_t byte = (uint8_t)*at;
        char triple[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        ls_s3_text_append_bytes(text, triple, sizeof triple);
    }
}

void ls_s3_text_clear(ls_s3_text *text)
{
    text->length = 0;
    text->failed = false;
    if (text->bytes != NULL) text->bytes[0] = '\0';
}

void ls_s3_text_free(ls_s3_text *text)
{
    ls_free(text->bytes);
    *text = LS_S3_TEXT_EMPTY;
}

const char *ls_s3_text_string(const ls_s3_text *text) { return text->bytes != NULL ? text->bytes : ""; }
