/* s3_xml.c - Expat handlers that gather the texts of a few elements (see s3_xml.h). */
#include "backend/s3_xml.h"

#include "backend/s3_text.h"

#include <expat.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH_MAX              16
#define ELEMENT_TEXT_BYTES_MAX 16384u /* a key of 1024 bytes, each percent-encoded, fits five times */

typedef struct reader reader;

typedef struct document_kind {
    void (*opened)(reader *state, const char *name);
    void (*closed)(reader *state, const char *name, char *text);
} document_kind;

struct reader {
    XML_Parser parser;
    const document_kind *kind;
    void *target;
    int depth;        /* of the element that is open; the root is 1 */
    ls_s3_text text;  /* of the innermost element */
    ls_result result; /* why the parser was stopped */
    const char *reason;
    /* Of the object whose element is open. */
    char *key;
    uint64_t bytes;
    int64_t modified_s;
    bool has_key, has_bytes, has_modified;
    bool is_url_encoded;
    bool has_truncated;
    bool is_error_root;
    int error_depth; /* of <Error>; 0: not inside */
};

static void stop(reader *state, ls_result result, const char *reason)
{
    if (state->result != LS_OK) return;
    state->result = result;
    state->reason = reason;
    XML_StopParser(state->parser, XML_FALSE);
}

/* Servers put elements into a namespace, some with a prefix: only the local name counts. */
static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon != NULL ? colon + 1 : name;
}

static void on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    reader *state = user;
    (void)attributes;
    if (++state->depth > DEPTH_MAX) {
        stop(state, LS_ERROR_CORRUPT, "nested too deeply");
        return;
    }
    ls_s3_text_clear(&state->text);
    state->kind->opened(state, local_name(name));
}

static void on_end(void *user, const XML_Char *name)
{
    reader *state = user;
    if (state->text.failed) {
        stop(state, LS_ERROR_MEMORY, "out of memory");
        return;
    }
    char empty[1] = "";
    state->kind->closed(state, local_name(name), state->text.bytes != NULL ? state->text.bytes : empty);
    ls_s3_text_clear(&state->text);
    state->depth--;
}

static void on_text(void *user, const XML_Char *text, int length)
{
    reader *state = user;
    if (state->text.length + (size_t)length > ELEMENT_TEXT_BYTES_MAX) {
        stop(state, LS_ERROR_CORRUPT, "an element is too long");
        return;
    }
    ls_s3_text_append_bytes(&state->text, text, (size_t)length);
}

static void on_doctype(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public_id,
                       int internal)
{
    (void)name;
    (void)system;
    (void)public_id;
    (void)internal;
    stop(user, LS_ERROR_INVALID, "it has a document type declaration");
}

static ls_result parse(reader *state, const void *text, size_t length)
{
    static const XML_Memory_Handling_Suite memory = {ls_allocate, ls_reallocate, ls_free};
    if (length > INT_MAX) return LS_ERROR_LIMIT;
    state->parser = XML_ParserCreate_MM(NULL, &memory, NULL);
    if (state->parser == NULL) return LS_ERROR_MEMORY;
    XML_SetUserData(state->parser, state);
    XML_SetElementHandler(state->parser, on_start, on_end);
    XML_SetCharacterDataHandler(state->parser, on_text);
    XML_SetStartDoctypeDeclHandler(state->parser, on_doctype);
    if (XML_Parse(state->parser, text, (int)length, 1) != XML_STATUS_OK && state->result == LS_OK) {
        enum XML_Error code = XML_GetErrorCode(state->parser);
        state->result = code == XML_ERROR_NO_MEMORY ? LS_ERROR_MEMORY : LS_ERROR_CORRUPT;
        state->reason = XML_ErrorString(code);
    }
    XML_ParserFree(state->parser);
    ls_s3_text_free(&state->text);
    return state->result;
}

/* Error. */

static void error_opened(reader *state, const char *name)
{
    if (state->error_depth == 0 && state->depth <= 2 && strcmp(name, "Error") == 0) {
        state->error_depth = state->depth;
        state->is_error_root = true;
    }
}

static void copy_text(char *target, size_t size, const char *text) { snprintf(target, size, "%s", text); }

/* A decimal number and nothing else. */
static bool read_number(const char *text, uint64_t *number)
{
    uint64_t value = 0;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

static void error_closed(reader *state, const char *name, char *text)
{
    ls_s3_error_document *document = state->target;
    if (state->error_depth == 0) return;
    if (state->depth == state->error_depth) state->error_depth = 0;
    if (state->depth != state->error_depth + 1) return;
    if (strcmp(name, "Code") == 0) copy_text(document->code, sizeof document->code, text);
    if (strcmp(name, "Message") == 0) copy_text(document->message, sizeof document->message, text);
    if (strcmp(name, "RequestId") == 0) copy_text(document->request_id, sizeof document->request_id, text);
    if (strcmp(name, "Region") == 0) copy_text(document->region, sizeof document->region, text);
    if (strcmp(name, "ActualObjectSize") == 0) document->has_object_bytes = read_number(text, &document->object_bytes);
}

ls_result ls_s3_parse_error(const void *text, size_t length, ls_s3_error_document *document)
{
    static const document_kind kind = {error_opened, error_closed};
    *document = (ls_s3_error_document){0};
    reader state = {.kind = &kind, .target = document};
    ls_result result = parse(&state, text, length);
    if (result == LS_OK && !state.is_error_root) result = LS_ERROR_INVALID;
    if (result != LS_OK) *document = (ls_s3_error_document){0};
    return result;
}

/* ListBucketResult. */

static void listing_opened(reader *state, const char *name)
{
    if (state->depth == 1 && strcmp(name, "ListBucketResult") != 0) {
        stop(state, LS_ERROR_INVALID, "its root is not ListBucketResult");
    }
    if (state->depth == 2) {
        ls_free(state->key);
        state->key = NULL;
        state->has_key = state->has_bytes = state->has_modified = false;
    }
}

/* "2009-10-12T17:50:30.000Z"; the fraction is dropped. */
static bool read_time(const char *text, int64_t *seconds)
{
    struct tm utc = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
    if (rest == NULL) return false;
    if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
    if (strcmp(rest, "Z") != 0 && strcmp(rest, "+00:00") != 0) return false;
    *seconds = (int64_t)timegm(&utc);
    return true;
}

static bool reserve_key(ls_s3_listing *listing)
{
    if (listing->count < listing->capacity) return true;
    uint32_t capacity = listing->capacity == 0 ? 16 : listing->capacity * 2;
    char **keys = ls_reallocate(listing->keys, capacity * sizeof *keys);
    if (keys != NULL) listing->keys = keys;
    uint64_t *bytes = ls_reallocate(listing->bytes, capacity * sizeof *bytes);
    if (bytes != NULL) listing->bytes = bytes;
    int64_t *modified_s = ls_reallocate(listing->modified_s, capacity * sizeof *modified_s);
    if (modified_s != NULL) listing->modified_s = modified_s;
    if (keys == NULL || bytes == NULL || modified_s == NULL) return false;
    listing->capacity = capacity;
    return true;
}

bool ls_s3_listing_add(ls_s3_listing *listing, char *key, uint64_t bytes, int64_t modified_s)
{
    if (!reserve_key(listing)) return false;
    listing->keys[listing->count] = key;
    listing->bytes[listing->count] = bytes;
    listing->modified_s[listing->count] = modified_s;
    listing->count++;
    return true;
}

static void object_closed(reader *state, ls_s3_listing *listing)
{
    if (!state->has_key || !state->has_bytes || !state->has_modified) {
        stop(state, LS_ERROR_CORRUPT, "an object has no sound Key, Size or LastModified");
    } else if (listing->count >= LS_S3_LISTING_KEYS_MAX) {
        stop(state, LS_ERROR_LIMIT, "more than 1000 keys in one page");
    } else if (!ls_s3_listing_add(listing, state->key, state->bytes, state->modified_s)) {
        stop(state, LS_ERROR_MEMORY, "out of memory");
    } else {
        state->key = NULL;
    }
}

static void object_element_closed(reader *state, const char *name, const char *text)
{
    if (strcmp(name, "Key") == 0) {
        ls_free(state->key);
        state->key = ls_duplicate(text);
        state->has_key = text[0] != '\0';
        if (state->key == NULL) stop(state, LS_ERROR_MEMORY, "out of memory");
    }
    if (strcmp(name, "Size") == 0) state->has_bytes = read_number(text, &state->bytes);
    if (strcmp(name, "LastModified") == 0) state->has_modified = read_time(text, &state->modified_s);
}

static void listing_element_closed(reader *state, ls_s3_listing *listing, const char *name, const char *text)
{
    if (strcmp(name, "Contents") == 0) object_closed(state, listing);
    if (strcmp(name, "EncodingType") == 0) state->is_url_encoded = strcmp(text, "url") == 0;
    if (strcmp(name, "IsTruncated") == 0) {
        listing->is_truncated = strcmp(text, "true") == 0;
        state->has_truncated = listing->is_truncated || strcmp(text, "false") == 0;
    }
    if (strcmp(name, "NextContinuationToken") == 0 && text[0] != '\0') {
        ls_free(listing->token);
        listing->token = ls_duplicate(text);
        if (listing->token == NULL) stop(state, LS_ERROR_MEMORY, "out of memory");
    }
}

static void listing_closed(reader *state, const char *name, char *text)
{
    if (state->depth == 2) listing_element_closed(state, state->target, name, text);
    if (state->depth == 3) object_element_closed(state, name, text);
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* Undoes encoding-type=url in place: %XX, and '+' for a space (AWS and MinIO write it so, and a plus as %2B). */
static bool decode_key(char *key)
{
    char *out = key;
    for (const char *at = key; *at != '\0'; at++) {
        if (*at != '%') {
            *out++ = *at == '+' ? ' ' : *at;
            continue;
        }
        int high = hex_value(at[1]), low = high < 0 ? -1 : hex_value(at[2]);
        if (low < 0 || (high == 0 && low == 0)) return false;
        *out++ = (char)(high * 16 + low);
        at += 2;
    }
    *out = '\0';
    return true;
}

static ls_result finish_listing(reader *state, ls_s3_listing *listing)
{
    if (!state->has_truncated) {
        state->reason = "IsTruncated is missing";
        return LS_ERROR_CORRUPT;
    }
    for (uint32_t i = 0; state->is_url_encoded && i < listing->count; i++) {
        if (decode_key(listing->keys[i])) continue;
        state->reason = "a key is not soundly percent-encoded";
        return LS_ERROR_CORRUPT;
    }
    return LS_OK;
}

ls_result ls_s3_parse_listing(const void *text, size_t length, ls_s3_listing *listing, ls_error *error)
{
    static const document_kind kind = {listing_opened, listing_closed};
    reader state = {.kind = &kind, .target = listing};
    ls_result result = parse(&state, text, length);
    ls_free(state.key);
    if (result == LS_OK) result = finish_listing(&state, listing);
    if (result == LS_OK) return LS_OK;
    return ls_fail(error, result, "the list that the server sent is unusable: %s",
                   state.reason != NULL ? state.reason : ls_result_name(result));
}

void ls_s3_listing_free(ls_s3_listing *listing)
{
    for (uint32_t i = 0; i < listing->count; i++) ls_free(listing->keys[i]);
    ls_free(listing->keys);
    ls_free(listing->bytes);
    ls_free(listing->modified_s);
    ls_free(listing->token);
    *listing = (ls_s3_listing){0};
}
