/* text.h - a growing byte string, and the few ways in which this program writes numbers and JSON.
 *
 * All text that the program produces (canonical JSON, TSV, tables, --json output) is built here, so that a number looks
 * the same everywhere: the shortest decimal that reads back as the same double. A failed allocation sticks: further
 * additions do nothing, and ls_text_take returns NULL; so callers check once, at the end.
 */
#ifndef LS_TEXT_H
#define LS_TEXT_H

#include "manifest/base.h"

typedef struct ls_text {
    char *bytes; /* NUL-terminated once anything was added; NULL before */
    size_t length;
    size_t capacity;
    bool failed; /* an allocation failed; the content is incomplete */
} ls_text;

/* Starts from a zeroed struct. Appends bytes, a string, or formatted text. */
void ls_text_bytes(ls_text *text, const char *bytes, size_t length);
void ls_text_add(ls_text *text, const char *string);
void ls_text_format(ls_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the shortest decimal that strtod reads back as value; "null" when value is not finite. */
void ls_text_number(ls_text *text, double value);

/* Appends string as a JSON string with quotes. Invalid UTF-8 passes through unchanged. */
void ls_text_json(ls_text *text, const char *string);

/* Appends string with tab, newline and other control characters replaced by spaces: one TSV field. */
void ls_text_field(ls_text *text, const char *string);

/* Takes the string (caller frees with ls_free; "" if nothing was added) and leaves text empty. NULL when out of memory.
 */
char *ls_text_take(ls_text *text);

/* Frees what text holds. */
void ls_text_free(ls_text *text);

/* The shortest round-trip decimal of a finite value, as ls_text_number writes it; whole numbers below 2^53 without
 * exponent, and both zeros as 0. buffer holds at least 32 bytes. */
const char *ls_number_text(double value, char buffer[32]);

#endif
