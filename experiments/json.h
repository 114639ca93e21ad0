/* json.h - strict JSON input with positions, on top of cJSON.
 *
 * cJSON parses; what it lets pass is refused here: duplicate keys, trailing bytes, nesting deeper than
 * LS_JSON_DEPTH_MAX, numbers that JSON's grammar does not know or that overflow a double, invalid UTF-8, NUL bytes
 * and \u0000, files above LS_JSON_BYTES_MAX. cJSON keeps no positions, so line and column of a node are found by
 * counting values: the n-th value in document order is the n-th node of the tree in preorder.
 */
#ifndef LS_JSON_H
#define LS_JSON_H

#include "manifest/base.h"

#include <cjson/cJSON.h>

#define LS_JSON_DEPTH_MAX 32u
#define LS_JSON_BYTES_MAX (UINT64_C(1) << 20)

typedef struct ls_json {
    char *name; /* of the input, for messages */
    char *text; /* NUL-terminated */
    size_t length;
    cJSON *root; /* NULL before a successful parse */
} ls_json;

/* Parses length bytes into *json (zeroed by the caller; free with ls_json_free whatever the result). name stands in
 * messages. LS_ERROR_INVALID with line and column, LS_ERROR_LIMIT (size, depth), LS_ERROR_MEMORY. */
ls_result ls_json_parse(const char *name, const char *text, size_t length, ls_json *json, ls_error *error);

/* Same from a file. A file that cannot be read gives LS_ERROR_INVALID: it is the user's input. */
ls_result ls_json_read(const char *path, ls_json *json, ls_error *error);

/* Line and column (bytes, from 1) of a node of json->root: of its key if it has one. 0 and 0 if it is not in the tree.
 */
void ls_json_position(const ls_json *json, const cJSON *node, uint32_t *line, uint32_t *column);

/* Fills error with "name:line:column: message" for a node and returns result. */
ls_result ls_json_fail(const ls_json *json, const cJSON *node, ls_error *error, ls_result result, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

void ls_json_free(ls_json *json);

#endif
