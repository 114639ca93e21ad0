/* key.c - object names as text and back (see key.h). Checkpoints are zero-padded like versions: text order is numeric
 * order.
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
    {LS_OBJECT_MANIFEST, "manifest/"}, {LS_OBJECT_CHECKPOINT, "checkpoint/"}, {LS_OBJECT_FLOOR, "floor/"}};
#define NUMBERED_KINDS (sizeof numbered / sizeof numbered[0])

ls_key ls_key_manifest(uint64_t version)
{
    return (ls_key){.kind = LS_OBJECT_MANIFEST, .number = version};
}

ls_key ls_key_floor(uint64_t version)
{
    return (ls_key){.kind = LS_OBJECT_FLOOR, .number = version};
}

ls_key ls_key_data(uint64_t producer, uint32_t epoch, uint64_t sequence)
{
    return (ls_key){.kind = LS_OBJECT_DATA, .epoch = epoch, .number = producer, .sequence = sequence};
}

size_t ls_key_format(const ls_key *key, char text[LS_KEY_TEXT_BYTES])
{
    int length = 0;
    text[0] = '\0';
    if (key->kind == LS_OBJECT_DATA) {
        length = snprintf(text, LS_KEY_TEXT_BYTES, "data/%" PRIu64 "/%" PRIu32 "-%" PRIu64 ".tgb", key->number,
                          key->epoch, key->sequence);
    }
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

static bool read_key(const char *text, ls_key *key)
{
    uint64_t epoch = 0;
    for (size_t i = 0; i < NUMBERED_KINDS; i++) {
        if (!skip(&text, numbered[i].folder)) continue;
        key->kind = numbered[i].kind;
        return read_number(&text, UINT64_MAX, &key->number);
    }
    key->kind = LS_OBJECT_DATA;
    if (!skip(&text, "data/") || !read_number(&text, UINT64_MAX, &key->number) || !skip(&text, "/") ||
        !read_number(&text, UINT32_MAX, &epoch) || !skip(&text, "-") ||
        !read_number(&text, UINT64_MAX, &key->sequence)) {
        return false;
    }
    key->epoch = (uint32_t)epoch;
    return true;
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
