/* s3_xml.h - the two XML documents that S3 sends us: ListBucketResult and Error. Parsed by Expat.
 *
 * Both come from outside: a document type declaration is refused (no entities, no expansion), depth, count of keys and
 * lengths of texts are bounded, and a document counts only when it is well-formed to its last byte and has the root
 * expected. Source of the elements: "ListObjectsV2" and "Error responses" in the Amazon S3 API reference.
 */
#ifndef LS_S3_XML_H
#define LS_S3_XML_H

#include "manifest/base.h"

#define LS_S3_LISTING_KEYS_MAX 1000u

typedef struct ls_s3_listing {
    uint32_t count;
    uint32_t capacity;
    char **keys; /* decoded */
    uint64_t *bytes;
    int64_t *modified_s; /* seconds since 1970 */
    bool is_truncated;
    char *token; /* NextContinuationToken, NULL if none */
} ls_s3_listing;

/* Reads a page into *listing, which must be zeroed; ls_s3_listing_free it, also after a failure. LS_ERROR_CORRUPT: not
 * well-formed, cut off, or an element makes no sense. LS_ERROR_INVALID: well-formed, but another document (an <Error>,
 * a web page). LS_ERROR_LIMIT: more keys than one page may hold. */
ls_result ls_s3_parse_listing(const void *text, size_t length, ls_s3_listing *listing, ls_error *error);
void ls_s3_listing_free(ls_s3_listing *listing);

/* Appends an object and takes over its key. False when out of memory: the key stays the caller's. */
bool ls_s3_listing_add(ls_s3_listing *listing, char *key, uint64_t bytes, int64_t modified_s);

/* What an error body says; "" and 0 where it does not. Longer texts are cut. */
typedef struct ls_s3_error_document {
    char code[64];
    char message[256];
    char request_id[128];
    char region[64];
    uint64_t object_bytes; /* ActualObjectSize, of InvalidRange */
    bool has_object_bytes;
} ls_s3_error_document;

/* LS_OK when the text is an <Error> document, at its root or (as some gateways send it) one level below.
 * LS_ERROR_CORRUPT, LS_ERROR_INVALID, LS_ERROR_MEMORY as above; *document is then all "". */
ls_result ls_s3_parse_error(const void *text, size_t length, ls_s3_error_document *document);

#endif
