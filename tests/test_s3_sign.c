/* test_s3_sign.c - SigV4 against signatures that AWS published.
 *
 * Sources: the "Signature Version 4 test suite" (2015-08-30, service "service", AKIDEXAMPLE), and the examples of
 * "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk" in the Amazon S3 API
 * reference (2013-05-24, examplebucket). Cases of the suite that test path normalisation are left out: S3 does not
 * normalise.
 */
#include "backend/s3_sign.h"
#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ALPHABET   "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

typedef struct suite_case {
    const char *name;
    const char *method;
    const char *path; /* not encoded */
    ls_s3_pair parameters[3];
    ls_s3_pair headers[4]; /* besides host and x-amz-date; sorted places are found below */
    const char *body;
    const char *signature;
} suite_case;

static const suite_case suite_cases[] = {
    {"get-vanilla", "GET", "/", {{0}}, {{0}}, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"post-vanilla", "POST", "/", {{0}}, {{0}}, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"get-unreserved",
     "GET",
     "/" ALPHABET,
     {{0}},
     {{0}},
     "",
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-utf8",
     "GET",
     "/\u1234",
     {{0}},
     {{0}},
     "",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-space",
     "GET",
     "/example space/",
     {{0}},
     {{0}},
     "",
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/",
     {{"Param1", "value1"}},
     {{0}},
     "",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     {{"Param2", "value2"}, {"Param1", "value1"}},
     {{0}},
     "",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-order-key",
     "GET",
     "/",
     {{"Param1", "value2"}, {"Param1", "Value1"}},
     {{0}},
     "",
     "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
    {"get-vanilla-query-order-value",
     "GET",
     "/",
     {{"Param1", "value2"}, {"Param1", "value1"}},
     {{0}},
     "",
     "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
    {"get-vanilla-query-unreserved",
     "GET",
     "/",
     {{ALPHABET, ALPHABET}},
     {{0}},
     "",
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-utf8-query",
     "GET",
     "/",
     {{"\u1234", "bar"}},
     {{0}},
     "",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-header-value-trim",
     "GET",
     "/",
     {{0}},
     {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}},
     "",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"post-header-key-sort",
     "POST",
     "/",
     {{0}},
     {{"my-header1", "value1"}},
     "",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case",
     "POST",
     "/",
     {{0}},
     {{"my-header1", "VALUE1"}},
     "",
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     {{0}},
     {{"content-type", "application/x-www-form-urlencoded"}},
     "Param1=value1",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    {"post-sts-header-before",
     "POST",
     "/",
     {{0}},
     {{"x-amz-security-token",
       "AQoDYXdzEPT//////////"
       "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7"
       "mSEI/qkPpKPi/"
       "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d"
       "+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="}},
     "",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
};

static void insert_header(ls_s3_pair *headers, size_t *count, ls_s3_pair header)
{
    size_t at = *count;
    for (; at > 0 && strcmp(headers[at - 1].name, header.name) > 0; at--) headers[at] = headers[at - 1];
    headers[at] = header;
    (*count)++;
}

/* The signature part of the header, "" when signing failed. */
static const char *signature_of(const ls_s3_text *authorization)
{
    const char *mark = strstr(ls_s3_text_string(authorization), "Signature=");
    return mark != NULL ? mark + strlen("Signature=") : "";
}

static void check_suite_case(const suite_case *test, ls_s3_signer *signer)
{
    ls_s3_pair headers[8], parameters[3];
    size_t header_count = 0, parameter_count = 0;
    insert_header(headers, &header_count, (ls_s3_pair){"host", "example.amazonaws.com"});
    insert_header(headers, &header_count, (ls_s3_pair){"x-amz-date", "20150830T123600Z"});
    for (size_t i = 0; i < 4 && test->headers[i].name != NULL; i++)
        insert_header(headers, &header_count, test->headers[i]);
    for (; parameter_count < 3 && test->parameters[parameter_count].name != NULL; parameter_count++) {
        parameters[parameter_count] = test->parameters[parameter_count];
    }
    ls_s3_text path = LS_S3_TEXT_EMPTY, query = LS_S3_TEXT_EMPTY, authorization = LS_S3_TEXT_EMPTY;
    char hash[LS_S3_HASH_TEXT_BYTES];
    ls_s3_text_append_encoded(&path, test->path, true);
    CU_ASSERT_EQUAL(ls_s3_canonical_query(parameters, parameter_count, &query), LS_OK);
    ls_s3_hash(test->body, strlen(test->body), hash);
    ls_s3_to_sign request = {test->method, ls_s3_text_string(&path), ls_s3_text_string(&query), headers, header_count,
                             hash};
    CU_ASSERT_EQUAL(ls_s3_sign(signer, &request, "20150830T123600Z", &authorization), LS_OK);
    CU_ASSERT_STRING_EQUAL(signature_of(&authorization), test->signature);
    if (strcmp(signature_of(&authorization), test->signature) != 0)
        fprintf(stderr, "SigV4 case %s failed\n", test->name);
    ls_s3_text_free(&path);
    ls_s3_text_free(&query);
    ls_s3_text_free(&authorization);
}

static void test_published_suite(void)
{
    ls_s3_signer signer =
        ls_s3_signer_open("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service");
    for (size_t i = 0; i < sizeof suite_cases / sizeof suite_cases[0]; i++) check_suite_case(&suite_cases[i], &signer);
    ls_s3_signer_close(&signer);
}

static void check_s3_example(const char *method, const char *path, ls_s3_pair *parameters, size_t parameter_count,
                             const ls_s3_pair *headers, size_t header_count, const char *hash, const char *expected)
{
    ls_s3_signer signer =
        ls_s3_signer_open("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1", "s3");
    ls_s3_text query = LS_S3_TEXT_EMPTY, authorization = LS_S3_TEXT_EMPTY;
    CU_ASSERT_EQUAL(ls_s3_canonical_query(parameters, parameter_count, &query), LS_OK);
    ls_s3_to_sign request = {method, path, ls_s3_text_string(&query), headers, header_count, hash};
    CU_ASSERT_EQUAL(ls_s3_sign(&signer, &request, "20130524T000000Z", &authorization), LS_OK);
    CU_ASSERT_STRING_EQUAL(ls_s3_text_string(&authorization), expected);
    ls_s3_text_free(&query);
    ls_s3_text_free(&authorization);
    ls_s3_signer_close(&signer);
}

#define S3_HOST                                                                                                        \
    {                                                                                                                  \
        "host", "examplebucket.s3.amazonaws.com"                                                                       \
    }
#define S3_DATE                                                                                                        \
    {                                                                                                                  \
        "x-amz-date", "20130524T000000Z"                                                                               \
    }
#define S3_EMPTY                                                                                                       \
    {                                                                                                                  \
        "x-amz-content-sha256", EMPTY_HASH                                                                             \
    }
#define S3_CREDENTIAL "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "

static void test_s3_examples(void)
{
    const ls_s3_pair plain[] = {S3_HOST, S3_EMPTY, S3_DATE};
    const ls_s3_pair range[] = {S3_HOST, {"range", "bytes=0-9"}, S3_EMPTY, S3_DATE};
    ls_s3_pair lifecycle[] = {{"lifecycle", ""}};
    ls_s3_pair list[] = {{"prefix", "J"}, {"max-keys", "2"}};
    check_s3_example("GET", "/test.txt", NULL, 0, range, 4, EMPTY_HASH,
                     S3_CREDENTIAL "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
                                   "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    check_s3_example("GET", "/", lifecycle, 1, plain, 3, EMPTY_HASH,
                     S3_CREDENTIAL "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
                                   "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_s3_example("GET", "/", list, 2, plain, 3, EMPTY_HASH,
                     S3_CREDENTIAL "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
                                   "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    char hash[LS_S3_HASH_TEXT_BYTES];
    ls_s3_hash("Welcome to Amazon S3.", 21, hash);
    CU_ASSERT_STRING_EQUAL(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    const ls_s3_pair put[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                              S3_HOST,
                              {"x-amz-content-sha256", hash},
                              S3_DATE,
                              {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    ls_s3_text path = LS_S3_TEXT_EMPTY;
    ls_s3_text_append_encoded(&path, "/test$file.text", true);
    check_s3_example("PUT", ls_s3_text_string(&path), NULL, 0, put, 5, hash,
                     S3_CREDENTIAL "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, "
                                   "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    ls_s3_text_free(&path);
}

/* Field E 33: curl 7.88 gets '=', '*', '+', '%', '//' and empty values wrong. Expected texts by hand from the rules. */
static void test_encoding(void)
{
    ls_s3_text text = LS_S3_TEXT_EMPTY;
    ls_s3_text_append_encoded(&text, "/a=b*c+d%2F//e!'()\x01\x7f\xc3\xa9", true);
    CU_ASSERT_STRING_EQUAL(ls_s3_text_string(&text), "/a%3Db%2Ac%2Bd%252F//e%21%27%28%29%01%7F%C3%A9");
    ls_s3_text_clear(&text);
    ls_s3_pair pairs[] = {{"prefix", "a/b~"}, {"a-", "2"}, {"a", "\xc3\xa9"}, {"a", "~"}, {"a", ""}, {"a b", "+"}};
    CU_ASSERT_EQUAL(ls_s3_canonical_query(pairs, 6, &text), LS_OK);
    /* "a" ends before anything longer; "a%20b" is before "a-"; "%C3%A9" is before "~". */
    CU_ASSERT_STRING_EQUAL(ls_s3_text_string(&text), "a=&a=%C3%A9&a=~&a%20b=%2B&a-=2&prefix=a%2Fb~");
    ls_s3_text_free(&text);
}

static void test_dates(void)
{
    char date[LS_S3_DATE_BYTES];
    CU_ASSERT(ls_s3_format_date(1369353600, date));
    CU_ASSERT_STRING_EQUAL(date, "20130524T000000Z");
    CU_ASSERT(ls_s3_format_date(951782399, date)); /* last second of February 28, 2000, a leap year */
    CU_ASSERT_STRING_EQUAL(date, "20000228T235959Z");
    CU_ASSERT_FALSE(ls_s3_format_date(-1, date));
    CU_ASSERT_FALSE(ls_s3_format_date(INT64_MAX, date));
}

/* The derived key is kept for a day: a new day must not be signed with yesterday's. */
static void test_new_day(void)
{
    const ls_s3_pair headers[] = {{"host", "h"}, {"x-amz-date", "d"}};
    const ls_s3_to_sign request = {"GET", "/", "", headers, 2, EMPTY_HASH};
    ls_s3_signer kept = ls_s3_signer_open("a", "s", "r", "s3"), fresh = kept;
    ls_s3_text first = LS_S3_TEXT_EMPTY, second = LS_S3_TEXT_EMPTY, expected = LS_S3_TEXT_EMPTY;
    CU_ASSERT_EQUAL(ls_s3_sign(&kept, &request, "20200101T235959Z", &first), LS_OK);
    CU_ASSERT_EQUAL(ls_s3_sign(&kept, &request, "20200102T000000Z", &second), LS_OK);
    CU_ASSERT_EQUAL(ls_s3_sign(&fresh, &request, "20200102T000000Z", &expected), LS_OK);
    CU_ASSERT_STRING_EQUAL(ls_s3_text_string(&second), ls_s3_text_string(&expected));
    CU_ASSERT_STRING_NOT_EQUAL(signature_of(&first), signature_of(&second));
    ls_s3_text_free(&first);
    ls_s3_text_free(&second);
    ls_s3_text_free(&expected);
}

static void test_refusals(void)
{
    const ls_s3_pair injected[] = {{"host", "h"}, {"x-amz-date", "d\r\nx-evil: 1"}};
    const ls_s3_pair unsorted[] = {{"x-amz-date", "d"}, {"host", "h"}};
    ls_s3_to_sign request = {"GET", "/", "", injected, 2, EMPTY_HASH};
    ls_s3_signer signer = ls_s3_signer_open("a", "s", "r", "s3");
    ls_s3_text out = LS_S3_TEXT_EMPTY;
    CU_ASSERT_EQUAL(ls_s3_sign(&signer, &request, "20200101T000000Z", &out), LS_ERROR_INVALID);
    request.headers = unsorted;
    CU_ASSERT_EQUAL(ls_s3_sign(&signer, &request, "20200101T000000Z", &out), LS_ERROR_INVALID);
    ls_s3_text_free(&out);
}

static void test_memory(void)
{
    const ls_s3_pair headers[] = {{"host", "h"}, {"x-amz-date", "d"}};
    const ls_s3_to_sign request = {"GET", "/", "", headers, 2, EMPTY_HASH};
    ls_result result = LS_ERROR_MEMORY;
    int64_t allowed = 0;
    for (; result == LS_ERROR_MEMORY && allowed < 100; allowed++) {
        ls_s3_signer signer = ls_s3_signer_open("a", "s", "r", "s3");
        ls_s3_text out = LS_S3_TEXT_EMPTY;
        ls_fail_allocations_after(allowed);
        result = ls_s3_sign(&signer, &request, "20200101T000000Z", &out);
        ls_fail_allocations_after(-1);
        ls_s3_text_free(&out);
    }
    CU_ASSERT_EQUAL(result, LS_OK);
    CU_ASSERT(allowed > 3);
}

LS_SUITE(s3_sign, {"published test suite", test_published_suite}, {"examples of the S3 reference", test_s3_examples},
         {"encoding and order", test_encoding}, {"dates", test_dates}, {"new day, new key", test_new_day},
         {"unsound headers", test_refusals}, {"every allocation fails once", test_memory})
