/* fuzz_s3_xml.c - arbitrary bytes as what an S3 server sent (libFuzzer): refused, or a list whose every key is a text
 * within the limits and an error document whose texts end.
 */
#include "backend/s3_xml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition)
{
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_s3_listing listing = {0};
    ls_s3_error_document document;
    ls_result result = ls_s3_parse_listing(data, size, &listing, NULL);
    need(listing.count <= LS_S3_LISTING_KEYS_MAX);
    for (uint32_t i = 0; i < listing.count; i++)
        need(listing.keys[i] != NULL && (result != LS_OK || listing.keys[i][0] != '\0'));
    ls_s3_listing_free(&listing);
    result = ls_s3_parse_error(data, size, &document);
    need(memchr(document.code, '\0', sizeof document.code) != NULL);
    need(memchr(document.message, '\0', sizeof document.message) != NULL);
    need(memchr(document.request_id, '\0', sizeof document.request_id) != NULL);
    need(result == LS_OK || document.code[0] == '\0');
    return 0;
}
