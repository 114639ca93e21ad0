/* test_s3_xml.c - what S3's XML is read as, and that nothing else passes for it. */
#include "backend/s3_xml.h"
#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

/* Shape of the sample response of ListObjectsV2 in the Amazon S3 API reference, with other names. */
#define LISTING                                                                                                        \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" \
    "<Name>bucket</Name><Prefix/><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>"            \
    "<NextContinuationToken>1ueGc/+=</NextContinuationToken>"                                                          \
    "<Contents><Key>a &amp; b</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>&quot;x&quot;</ETag>"    \
    "<Size>434234</Size><StorageClass>STANDARD</StorageClass><Owner><ID>1</ID></Owner></Contents>"                     \
    "<Contents><Size>0</Size><Key>caf\xc3\xa9</Key><LastModified>1970-01-01T00:00:01Z</LastModified></Contents>"       \
    "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>"

static void test_listing(void)
{
    ls_s3_listing listing = {0};
    CU_ASSERT_EQUAL_FATAL(ls_s3_parse_listing(LISTING, strlen(LISTING), &listing, NULL), LS_OK);
    CU_ASSERT_EQUAL_FATAL(listing.count, 2);
    CU_ASSERT_STRING_EQUAL(listing.keys[0], "a & b");
    CU_ASSERT_EQUAL(listing.bytes[0], 434234);
    CU_ASSERT_EQUAL(listing.modified_s[0], 1255369830); /* date -u -d '2009-10-12 17:50:30' +%s */
    CU_ASSERT_STRING_EQUAL(listing.keys[1], "caf\xc3\xa9");
    CU_ASSERT_EQUAL(listing.bytes[1], 0);
    CU_ASSERT_EQUAL(listing.modified_s[1], 1);
    CU_ASSERT(listing.is_truncated);
    CU_ASSERT_STRING_EQUAL(listing.token, "1ueGc/+=");
    ls_s3_listing_free(&listing);
}

/* Every proper prefix of a good document is refused: a list that was cut off never passes for a shorter one. */
static void test_every_cut(void)
{
    for (size_t length = 0; length < strlen(LISTING); length++) {
        ls_s3_listing listing = {0};
        CU_ASSERT_EQUAL(ls_s3_parse_listing(LISTING, length, &listing, NULL), LS_ERROR_CORRUPT);
        ls_s3_listing_free(&listing);
    }
}

#define OBJECT(key)                                                                                                    \
    "<Contents><Key>" key "</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
#define LIST(inside) "<ListBucketResult><IsTruncated>false</IsTruncated>" inside "</ListBucketResult>"

static void test_encoded_keys(void)
{
    static const char text[] = LIST(OBJECT("a+b%2Bc%20d%25%C3%A9%0A") "<EncodingType>url</EncodingType>");
    static const char raw[] = LIST(OBJECT("a+b%2Bc"));
    ls_s3_listing listing = {0};
    CU_ASSERT_EQUAL_FATAL(ls_s3_parse_listing(text, strlen(text), &listing, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(listing.keys[0], "a b+c d%\xc3\xa9\n");
    CU_ASSERT_FALSE(listing.is_truncated);
    CU_ASSERT_PTR_NULL(listing.token);
    ls_s3_listing_free(&listing);
    CU_ASSERT_EQUAL_FATAL(ls_s3_parse_listing(raw, strlen(raw), &listing, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(listing.keys[0], "a+b%2Bc"); /* not said to be encoded: taken as it is */
    ls_s3_listing_free(&listing);
}

static void test_refused_listings(void)
{
    static const struct {
        const char *text;
        ls_result result;
    } cases[] = {
        {"", LS_ERROR_CORRUPT},
        {"garbage", LS_ERROR_CORRUPT},
        {LIST("") "trailing", LS_ERROR_CORRUPT},
        {"<ListBucketResult></ListBucketResult>", LS_ERROR_CORRUPT}, /* nobody said that this is all */
        {"<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>", LS_ERROR_CORRUPT},
        {LIST("<Contents><Key>a</Key><Size>1</Size></Contents>"), LS_ERROR_CORRUPT},
        {LIST("<Contents><Key></Key><LastModified>2020-01-01T00:00:00Z</LastModified><Size>1</Size></Contents>"),
         LS_ERROR_CORRUPT},
        {LIST("<Contents><Key>a</Key><LastModified>2020-01-01T00:00:00Z</LastModified><Size>-1</Size></Contents>"),
         LS_ERROR_CORRUPT},
        {LIST("<Contents><Key>a</Key><LastModified>2020-01-01T00:00:00Z</LastModified><Size>18446744073709551616</"
              "Size></Contents>"),
         LS_ERROR_CORRUPT},
        {LIST("<Contents><Key>a</Key><LastModified>yesterday</LastModified><Size>1</Size></Contents>"),
         LS_ERROR_CORRUPT},
        {LIST(OBJECT("a%4") "<EncodingType>url</EncodingType>"), LS_ERROR_CORRUPT},
        {LIST(OBJECT("a%00b") "<EncodingType>url</EncodingType>"), LS_ERROR_CORRUPT},
        {"<Error><Code>InternalError</Code></Error>", LS_ERROR_INVALID},
        {"<html><body>Please log in</body></html>", LS_ERROR_INVALID},
        {"<!DOCTYPE r [<!ENTITY a \"aaaa\">]><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
         LS_ERROR_INVALID},
        {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", LS_ERROR_INVALID},
        {"<ListBucketResult><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", LS_ERROR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_s3_listing listing = {0};
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_s3_parse_listing(cases[i].text, strlen(cases[i].text), &listing, &error), cases[i].result);
        CU_ASSERT(strlen(error.text) > 0);
        ls_s3_listing_free(&listing);
    }
}

/* A page of `count` objects, or with one key of `key_bytes`. */
static ls_result parse_big(int count, size_t key_bytes)
{
    size_t size = 200 + (size_t)count * (200 + key_bytes), length;
    char *text = ls_allocate(size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    length = (size_t)snprintf(text, size, "<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, size - length,
                                   "<Contents><Key>%0*d</Key><LastModified>2020-01-01T00:00:00Z"
                                   "</LastModified><Size>1</Size></Contents>",
                                   (int)key_bytes, i);
    }
    length += (size_t)snprintf(text + length, size - length, "</ListBucketResult>");
    ls_s3_listing listing = {0};
    ls_result result = ls_s3_parse_listing(text, length, &listing, NULL);
    if (result == LS_OK) CU_ASSERT_EQUAL(listing.count, (uint32_t)count);
    ls_s3_listing_free(&listing);
    ls_free(text);
    return result;
}

static void test_limits(void)
{
    CU_ASSERT_EQUAL(parse_big(1000, 10), LS_OK);
    CU_ASSERT_EQUAL(parse_big(1001, 10), LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(parse_big(1, 3072), LS_OK);
    CU_ASSERT_EQUAL(parse_big(1, 20000), LS_ERROR_CORRUPT);
}

static void test_errors(void)
{
    static const char text[] =
        "<?xml version=\"1.0\"?><Error><Code>InvalidRange</Code><Message>The requested &lt;range&gt; is not "
        "satisfiable</Message>"
        "<ActualObjectSize>17</ActualObjectSize><RequestId>4442587FB7D0A2F9</RequestId><Region>eu-west-1</Region>"
        "<Nested><Code>Wrong</Code></Nested></Error>";
    ls_s3_error_document document;
    CU_ASSERT_EQUAL_FATAL(ls_s3_parse_error(text, strlen(text), &document), LS_OK);
    CU_ASSERT_STRING_EQUAL(document.code, "InvalidRange");
    CU_ASSERT_STRING_EQUAL(document.message, "The requested <range> is not satisfiable");
    CU_ASSERT_STRING_EQUAL(document.request_id, "4442587FB7D0A2F9");
    CU_ASSERT_STRING_EQUAL(document.region, "eu-west-1");
    CU_ASSERT(document.has_object_bytes);
    CU_ASSERT_EQUAL(document.object_bytes, 17);
    static const char wrapped[] = "<ErrorResponse><Error><Code>SlowDown</Code></Error></ErrorResponse>";
    CU_ASSERT_EQUAL(ls_s3_parse_error(wrapped, strlen(wrapped), &document), LS_OK);
    CU_ASSERT_STRING_EQUAL(document.code, "SlowDown");
    CU_ASSERT_FALSE(document.has_object_bytes);
    static const char cut[] = "<Error><Code>SlowDown</Code>", other[] = "<Thing><Code>SlowDown</Code></Thing>";
    CU_ASSERT_EQUAL(ls_s3_parse_error(cut, strlen(cut), &document), LS_ERROR_CORRUPT);
    CU_ASSERT_STRING_EQUAL(document.code, "");
    CU_ASSERT_EQUAL(ls_s3_parse_error(other, strlen(other), &document), LS_ERROR_INVALID);
    CU_ASSERT_STRING_EQUAL(document.code, "");
}

static void test_memory(void)
{
    ls_result result = LS_ERROR_MEMORY;
    int64_t allowed = 0;
    for (; result != LS_OK && allowed < 500; allowed++) {
        ls_s3_listing listing = {0};
        ls_fail_allocations_after(allowed);
        result = ls_s3_parse_listing(LISTING, strlen(LISTING), &listing, NULL);
        ls_fail_allocations_after(-1);
        ls_s3_listing_free(&listing);
        CU_ASSERT(result == LS_OK || result == LS_ERROR_MEMORY);
    }
    CU_ASSERT_EQUAL(result, LS_OK);
    CU_ASSERT(allowed > 10);
}

LS_SUITE(s3_xml, {"a page of a list", test_listing}, {"cut anywhere", test_every_cut},
         {"encoded keys", test_encoded_keys}, {"refused lists", test_refused_listings}, {"limits", test_limits},
         {"errors", test_errors}, {"every allocation fails once", test_memory})
