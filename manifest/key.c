/* key.c - object names as text and back (see key.h). Versions, floors and checkpoint numbers are zero-padded: text order
 * is numeric order.
 *
 * Parsing reads loosely and then compares with what ls_key_format would have written; so there is one definition of a
 * name, and "007", "+7" or a trailing character can never name an object twice.
 */
#include "manifest/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    ls_object_kind kind;
    const char *folder;
} numbered[] = {
    {LS_OBJECT_MANIFEST, "manifest/"}, {LS_OBJECT_FLOOR, "floor/"}};
#define NUMBERED_KINDS (sizeof numbered / sizeof numbered[0])

ls_key ls_key_manifest(uint64_t version)
{
    return (ls_key){.kind = LS_OBJECT_MANIFEST, .number = version};
}

ls_key ls_key_floor(uint64_t version)
{
    return (ls_key){.kind = LS_OBJECT_FLOOR, .number = version};
}

ls_key ls_key_checkpoint(uint64_t number, uint64_t step, ls_checkpoint_kind kind)
{
    return (ls_key){.kind = LS_OBJECT_CHECKPOINT, .number = number, .sequence = step, .epoch = (uint32_t)kind};
}

const char *ls_checkpoint_kind_name(ls_checkpoint_kind kind)
{
    switch (kind) {
    case LS_CHECKPOINT_AUTO: return "auto";
    case LS_CHECKPOINT_NAMED: return "named";
    case LS_CHECKPOINT_PIN: return "pin";
    }
    return NULL;
}

static int format_checkpoint(const ls_key *key, char text[LS_KEY_TEXT_BYTES])
{
    const char *kind = ls_checkpoint_kind_name((ls_checkpoint_kind)key->epoch);
    if (key->epoch == 0) return snprintf(text, LS_KEY_TEXT_BYTES, "checkpoint/%020" PRIu64, key->number);
    if (kind == NULL) return 0;
    return snprintf(text, LS_KEY_TEXT_BYTES, "checkpoint/%020" PRIu64 "-%" PRIu64 ".%s", key->number, key->sequence, kind);
}

ls_key ls_key_data(uint64_t producer, uint32_t epoch, uint64_t sequence)
{
    return (ls_key){.kind = LS_OBJECT_DATA, .epoch = epoch, .number = producer, .sequence = sequence};
}

ls_key ls_key_data_told(uint64_t producer, uint32_t epoch, uint64_t sequence, uint64_t source_begin, uint64_t source_end,
                        uint32_t footer_bytes)
{
    ls_key key = ls_key_data(producer, epoch, sequence);
    key.source_begin = source_begin;
    key.source_end = source_end;
    key.footer_bytes = footer_bytes;
    return key;
}

static int format_data(const ls_key *key, char text[LS_KEY_TEXT_BYTES])
{
    if (key->footer_bytes == 0) {
        return snprintf(text, LS_KEY_TEXT_BYTES, "data/%" PRIu64 "/%" PRIu32 "-%" PRIu64 ".tgb", key->number, key->epoch,
                        key->sequence);
    }
    return snprintf(text, LS_KEY_TEXT_BYTES,
                    "data/%" PRIu64 "/%010" PRIu32 "-%020" PRIu64 "-%" PRIu64 "-%" PRIu64 "-%" PRIu32 ".tgb", key->number,
                    key->epoch, key->sequence, key->source_begin, key->source_end, key->footer_bytes);
}

size_t ls_key_format(const ls_key *key, char text[LS_KEY_TEXT_BYTES])
{
    int length = 0;
    text[0] = '\0';
    if (key->kind == LS_OBJECT_DATA) length = format_data(key, text);
    if (key->kind == LS_OBJECT_CHECKPOINT) length = format_checkpoint(key, text);
    for (size_t i = 0; i < NUMBERED_KINDS; i++) {
        if (key->kind != numbered[i].kind) continue;
        length = snprintf(text, LS_KEY_TEXT_BYTES, "%s%020" PRIu64, numbered[i].folder, key->number);
    }
    return length > 0 ? (size_t)length : 0;
}

/* Moves *text past a literal; false when it is not there. */
static bool skip(const char **text, const char *literal)
{
    size_t length = strlen(literal);
    if (strncmp(*text, literal, length) != 0) return false;
    *text += length;
    return true;
}

/* Moves *text past decimal digits; false when there are none or their value passes limit. */
static bool read_number(const char **text, uint64_t limit, uint64_t *value)
{
    const char *start = *text;
    *value = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        uint64_t digit = (uint64_t)(**text - '0');
        if (*value > (limit - digit) / 10) return false;
        *value = *value * 10 + digit;
    }
    return *text != start;
}

static bool read_checkpoint(const char *text, ls_key *key)
{
    key->kind = LS_OBJECT_CHECKPOINT;
    if (!read_number(&text, UINT64_MAX, &key->number) || !skip(&text, "-") ||
        !read_number(&text, UINT64_MAX, &key->sequence) || !skip(&text, ".")) {
        return false;
    }
    for (uint32_t kind = LS_CHECKPOINT_AUTO; kind <= LS_CHECKPOINT_PIN; kind++) {
        if (strcmp(text, ls_checkpoint_kind_name((ls_checkpoint_kind)kind)) == 0) key->epoch = kind;
    }
    return key->epoch != 0;
}

static bool read_key(const char *text, ls_key *key)
{
    uint64_t epoch = 0;
    for (size_t i = 0; i < NUMBERED_KINDS; i++) {
        if (!skip(&text, numbered[i].folder)) continue;
        key->kind = numbered[i].kind;
        return read_number(&text, UINT64_MAX, &key->number);
    }
    if (skip(&text, "checkpoint/")) return read_checkpoint(text, key);
    key->kind = LS_OBJECT_DATA;
    if (!skip(&text, "data/") || !read_number(&text, UINT64_MAX, &key->number) || !skip(&text, "/") ||
        !read_number(&text, UINT32_MAX, &epoch) || !skip(&text, "-") ||
        !read_number(&text, UINT64_MAX, &key->sequence)) {
        return false;
    }
    key->epoch = (uint32_t)epoch;
    if (!skip(&text, "-")) return true;
    uint64_t footer_bytes = 0;
    if (!read_number(&text, UINT64_MAX, &key->source_begin) || !skip(&text, "-") ||
        !read_number(&text, UINT64_MAX, &key->source_end) || !skip(&text, "-") ||
        !read_number(&text, UINT32_MAX, &footer_bytes)) {
        return false;
    }
    key->footer_bytes = (uint32_t)footer_bytes;
    return footer_bytes > 0;
}

ls_result ls_key_parse(const char *text, ls_key *key)
{
    ls_key read = {0};
    char formatted[LS_KEY_TEXT_BYTES];
    if (!read_key(text, &read)) return LS_ERROR_INVALID;
    ls_key_format(&read, formatted);
    if (strcmp(text, formatted) != 0) return LS_ERROR_INVALID;
    *key = read;
    return LS_OK;
}

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

int ls_key_compare(const ls_key *left, const ls_key *right)
{
    int order = compare_numbers(left->kind, right->kind);
    if (order == 0) order = compare_numbers(left->number, right->number);
    if (order == 0) order = compare_numbers(left->epoch, right->epoch);
    if (order == 0) order = compare_numbers(left->sequence, right->sequence);
    return order;
}
