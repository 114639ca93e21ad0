/* json.c - strict JSON input (json.h). Two passes: a scan of the bytes that counts depth and refuses what cJSON would
 * let pass or truncate, then cJSON, then a walk of the tree for duplicate keys. Grammar: RFC 8259. */
#include "experiments/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void position_of(const char *text, size_t offset, uint32_t *line, uint32_t *column)
{
    *line = 1;
    *column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            (*line)++;
            *column = 1;
        } else {
            (*column)++;
        }
    }
}

static ls_result fail_at(const ls_json *json, size_t offset, ls_error *error, ls_result result, const char *message)
{
    uint32_t line, column;
    position_of(json->text, offset, &line, &column);
    return ls_fail(error, result, "%s:%u:%u: %s", json->name, line, column, message);
}

/* Length of the well-formed UTF-8 sequence at bytes (RFC 3629), or 0. The text ends in NUL, which no sequence contains.
 */
static size_t utf8_length(const unsigned char *bytes)
{
    static const struct {
        unsigned char low, high, second_low, second_high, length;
    } forms[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                 {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (bytes[0] < forms[i].low || bytes[0] > forms[i].high) continue;
        if (forms[i].length > 1 && (bytes[1] < forms[i].second_low || bytes[1] > forms[i].second_high)) return 0;
        for (size_t k = 2; k < forms[i].length; k++) {
            if (bytes[k] < 0x80 || bytes[k] > 0xbf) return 0;
        }
        return forms[i].length;
    }
    return 0;
}

static size_t digits_at(const char *text) { return strspn(text, "0123456789"); }

/* Length of the JSON number at text, or 0 when it breaks the grammar. */
static size_t number_length(const char *text)
{
    size_t at = text[0] == '-' ? 1 : 0;
    size_t whole = digits_at(text + at);
    if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
    at += whole;
    if (text[at] == '.') {
        size_t fraction = digits_at(text + at + 1);
        if (fraction == 0) return 0;
        at += 1 + fraction;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        at++;
        if (text[at] == '+' || text[at] == '-') at++;
        size_t exponent = digits_at(text + at);
        if (exponent == 0) return 0;
        at += exponent;
    }
    return strspn(text + at, "0123456789+-.eE") == 0 ? at : 0;
}

/* Steps over the string whose opening quote is at *at. */
static ls_result scan_string(const ls_json *json, size_t *at, ls_error *error)
{
    size_t start = (*at)++;
    while (json->text[*at] != '"') {
        const char *c = json->text + *at;
        if (*c == '\0') return fail_at(json, start, error, LS_ERROR_INVALID, "this string does not end");
        if ((unsigned char)*c < 0x20) {
            return fail_at(json, *at, error, LS_ERROR_INVALID, "control character in a string; write it as an escape");
        }
        if (strncmp(c, "\\u0000", 6) == 0) return fail_at(json, *at, error, LS_ERROR_INVALID, "\\u0000 is not allowed");
        size_t length = *c == '\\' && c[1] != '\0' ? 2 : utf8_length((const unsigned char *)c);
        if (length == 0) return fail_at(json, *at, error, LS_ERROR_INVALID, "not valid UTF-8");
        *at += length;
    }
    (*at)++;
    return LS_OK;
}

static ls_result scan(const ls_json *json, ls_error *error)
{
    uint32_t depth = 0;
    size_t at = 0;
    if (strlen(json->text) != json->length) {
        return fail_at(json, strlen(json->text), error, LS_ERROR_INVALID, "NUL byte; a spec is UTF-8 text");
    }
    while (at < json->length) {
        char c = json->text[at];
        if (c == '"') {
            ls_result result = scan_string(json, &at, error);
            if (result != LS_OK) return result;
            continue;
        }
        if (c == '-' || (c >= '0' && c <= '9')) {
            size_t length = number_length(json->text + at);
            if (length == 0) return fail_at(json, at, error, LS_ERROR_INVALID, "not a JSON number");
            at += length;
            continue;
        }
        if ((unsigned char)c >= 0x80) {
            return fail_at(json, at, error, LS_ERROR_INVALID, "only strings may hold characters beyond ASCII");
        }
        if ((c == '{' || c == '[') && ++depth > LS_JSON_DEPTH_MAX) {
            return fail_at(json, at, error, LS_ERROR_LIMIT, "nested deeper than 32 levels");
        }
        if ((c == '}' || c == ']') && depth > 0) depth--;
        at++;
    }
    return LS_OK;
}

static int compare_keys(const void *left, const void *right)
{
    const cJSON *const *a = left, *const *b = right;
    return strcmp((*a)->string, (*b)->string);
}

/* Sorted, not compared pairwise: a hostile file can hold a hundred thousand keys. */
static ls_result check_keys(const ls_json *json, const cJSON *object, ls_error *error)
{
    size_t count = 0;
    for (const cJSON *child = object->child; child != NULL; child = child->next) count++;
    if (count < 2) return LS_OK;
    const cJSON **keys = ls_allocate_array(count, sizeof(cJSON *));
    if (keys == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    size_t i = 0;
    for (const cJSON *child = object->child; child != NULL; child = child->next) keys[i++] = child;
    qsort(keys, count, sizeof(cJSON *), compare_keys);
    ls_result result = LS_OK;
    for (i = 1; i < count && result == LS_OK; i++) {
        if (strcmp(keys[i - 1]->string, keys[i]->string) != 0) continue;
        result = ls_json_fail(json, keys[i], error, LS_ERROR_INVALID,
                              "the key \"%.200s\" stands twice in one object; keep one", keys[i]->string);
    }
    ls_free(keys);
    return result;
}

/* Recursion is bounded by LS_JSON_DEPTH_MAX. */
static ls_result check_tree(const ls_json *json, const cJSON *node, ls_error *error)
{
    if (cJSON_IsNumber(node) && !isfinite(node->valuedouble)) {
        return ls_json_fail(json, node, error, LS_ERROR_INVALID, "this number is beyond the range of a double");
    }
    if (cJSON_IsObject(node)) {
        ls_result result = check_keys(json, node, error);
        if (result != LS_OK) return result;
    }
    for (const cJSON *child = node->child; child != NULL; child = child->next) {
        ls_result result = check_tree(json, child, error);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

static ls_result parse_tree(ls_json *json, ls_error *error)
{
    cJSON_Hooks hooks = {.malloc_fn = ls_allocate, .free_fn = ls_free};
    cJSON_InitHooks(&hooks);
    const char *end = NULL;
    json->root = cJSON_ParseWithLengthOpts(json->text, json->length + 1, &end, 1);
    if (json->root != NULL) return check_tree(json, json->root, error);
    size_t offset = end >= json->text && end <= json->text + json->length ? (size_t)(end - json->text) : 0;
    offset += strspn(json->text + offset, " \t\r\n");
    if (json->text[offset] == '\0') {
        return fail_at(json, offset, error, LS_ERROR_INVALID,
                       "the JSON text ends here, before its end; a bracket, brace "
                       "or value is missing");
    }
    return fail_at(
        json, offset, error, LS_ERROR_INVALID,
        "JSON syntax: unexpected text here; look for a missing comma, colon or quote, or for text after the end");
}

ls_result ls_json_parse(const char *name, const char *text, size_t length, ls_json *json, ls_error *error)
{
    json->name = ls_duplicate(name);
    if (json->name == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (length > LS_JSON_BYTES_MAX) {
        return ls_fail(error, LS_ERROR_LIMIT, "%s: larger than 1 MiB; a spec is a short text", name);
    }
    json->text = ls_allocate(length + 1);
    if (json->text == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    memcpy(json->text, text, length);
    json->text[length] = '\0';
    json->length = length;
    ls_result result = scan(json, error);
    return result == LS_OK ? parse_tree(json, error) : result;
}

ls_result ls_json_read(const char *path, ls_json *json, ls_error *error)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return ls_fail(error, LS_ERROR_INVALID, "%s: cannot be read (%s); give the path of a spec file", path,
                       strerror(errno));
    }
    size_t capacity = LS_JSON_BYTES_MAX + 1;
    char *text = ls_allocate(capacity);
    if (text == NULL) {
        fclose(file);
        return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    }
    size_t length = fread(text, 1, capacity, file);
    int read_errno = errno;
    ls_result result = ferror(file)
                           ? ls_fail(error, LS_ERROR_INVALID, "%s: cannot be read (%s)", path, strerror(read_errno))
                           : ls_json_parse(path, text, length, json, error);
    fclose(file);
    ls_free(text);
    return result;
}

/* Preorder number of target below node, counted on in *count; true when found. */
static bool ordinal(const cJSON *node, const cJSON *target, uint32_t *count)
{
    (*count)++;
    if (node == target) return true;
    for (const cJSON *child = node->child; child != NULL; child = child->next) {
        if (ordinal(child, target, count)) return true;
    }
    return false;
}

/* Offset of the n-th value (from 1) of well-formed JSON, or of its key. Keys are told from strings by the colon that
 * follows. */
static size_t offset_of_value(const char *text, uint32_t wanted)
{
    size_t at = 0, key = SIZE_MAX;
    uint32_t count = 0;
    while (text[at] != '\0') {
        at += strspn(text + at, " \t\r\n,:]}");
        if (text[at] == '\0') break;
        size_t start = at;
        if (text[at] == '"') {
            for (at++; text[at] != '"' && text[at] != '\0'; at++) {
                if (text[at] == '\\' && text[at + 1] != '\0') at++;
            }
            if (text[at] == '"') at++;
            if (text[at + strspn(text + at, " \t\r\n")] == ':') {
                key = start;
                continue;
            }
        } else if (text[at] == '{' || text[at] == '[') {
            at++;
        } else {
            size_t length = strcspn(text + at, " \t\r\n,:]}");
            at += length > 0 ? length : 1;
        }
        if (++count == wanted) return key != SIZE_MAX ? key : start;
        key = SIZE_MAX;
    }
    return 0;
}

void ls_json_position(const ls_json *json, const cJSON *node, uint32_t *line, uint32_t *column)
{
    uint32_t count = 0;
    *line = 0;
    *column = 0;
    if (json->root == NULL || !ordinal(json->root, node, &count)) return;
    position_of(json->text, offset_of_value(json->text, count), line, column);
}

ls_result ls_json_fail(const ls_json *json, const cJSON *node, ls_error *error, ls_result result, const char *format,
                       ...)
{
    ls_error message;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message.text, sizeof message.text, format, arguments);
    va_end(arguments);
    uint32_t line, column;
    ls_json_position(json, node, &line, &column);
    return ls_fail(error, result, "%.200s:%u:%u: %.750s", json->name, line, column, message.text);
}

void ls_json_free(ls_json *json)
{
    cJSON_Delete(json->root);
    ls_free(json->name);
    ls_free(json->text);
    *json = (ls_json){0};
}
