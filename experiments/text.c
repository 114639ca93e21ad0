/* text.c - the growing string of text.h. Capacity doubles; a failure is remembered, so that no caller checks each
 * piece. */
#include "experiments/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(ls_text *text, size_t extra)
{
    if (text->failed) return false;
    if (extra < text->capacity && text->length < text->capacity - extra) return true;
    size_t capacity = text->capacity > 0 ? text->capacity : 64;
    while (capacity - text->length <= extra) {
        if (capacity > SIZE_MAX / 2) {
            text->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *bytes = ls_reallocate(text->bytes, capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void ls_text_bytes(ls_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length)) return;
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void ls_text_add(ls_text *text, const char *string) { ls_text_bytes(text, string, strlen(string)); }

void ls_text_format(ls_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) text->failed = true;
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

const char *ls_number_text(double value, char buffer[32])
{
    /* Whole numbers as people write them, not as 1e+03; beyond 2^53 not every digit means something. */
    if (value == floor(value) && fabs(value) < 9007199254740992.0) {
        snprintf(buffer, 32, "%.0f", value == 0.0 ? 0.0 : value);
        return buffer;
    }
    /* 17 significant digits always suffice for a double; most numbers people write need far fewer. */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) break;
    }
    return buffer;
}

void ls_text_number(ls_text *text, double value)
{
    char buffer[32];
    ls_text_add(text, isfinite(value) ? ls_number_text(value, buffer) : "null");
}

void ls_text_json(ls_text *text, const char *string)
{
    ls_text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        switch (*c) {
        case '"': ls_text_add(text, "\\\""); break;
        case '\\': ls_text_add(text, "\\\\"); break;
        case '\n': ls_text_add(text, "\\n"); break;
        case '\t': ls_text_add(text, "\\t"); break;
        case '\r': ls_text_add(text, "\\r"); break;
        default:
            if ((unsigned char)*c < 0x20) {
                ls_text_format(text, "\\u%04x", (unsigned)(unsigned char)*c);
            } else {
                ls_text_bytes(text, c, 1);
            }
        }
    }
    ls_text_add(text, "\"");
}

void ls_text_field(ls_text *text, const char *string)
{
    for (const char *c = string; *c != '\0'; c++) {
        ls_text_bytes(text, (unsigned char)*c < 0x20 ? " " : c, 1);
    }
}

char *ls_text_take(ls_text *text)
{
    ls_text_bytes(text, "", 0);
    char *bytes = text->failed ? NULL : text->bytes;
    if (text->failed) ls_free(text->bytes);
    *text = (ls_text){0};
    return bytes;
}

void ls_text_free(ls_text *text)
{
    ls_free(text->bytes);
    *text = (ls_text){0};
}
