/* test_s3_config.c - which source wins, what an address and an endpoint become, and that secrets stay inside. */
#include "backend/s3_config.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_CA_BUNDLE",
                                        "HOME"};
#define VARIABLES (sizeof variables / sizeof variables[0])

/* The environment as a test wants it, and back again. */
static char *saved[VARIABLES];

static void enter(const char *const settings[][2])
{
    for (size_t i = 0; i < VARIABLES; i++) {
        saved[i] = ls_duplicate(getenv(variables[i]));
        unsetenv(variables[i]);
    }
    for (size_t i = 0; settings != NULL && settings[i][0] != NULL; i++) setenv(settings[i][0], settings[i][1], 1);
}

static void leave(void)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        if (saved[i] != NULL) setenv(variables[i], saved[i], 1);
        if (saved[i] == NULL) unsetenv(variables[i]);
        ls_free(saved[i]);
    }
}

static const char *write_file(const char *name, const char *text)
{
    const char *path = ls_test_path(name);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static const char *const keys_only[][2] = {
    {"AWS_ACCESS_KEY_ID", "AKID"}, {"AWS_SECRET_ACCESS_KEY", "secret-of-the-environment"}, {NULL, NULL}};

static void test_aws_defaults(void)
{
    ls_s3_config config;
    enter(keys_only);
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://my-bucket/lake/one/", NULL, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.bucket, "my-bucket");
    CU_ASSERT_STRING_EQUAL(config.prefix, "lake/one");
    CU_ASSERT_STRING_EQUAL(config.region, "us-east-1");
    CU_ASSERT_STRING_EQUAL(config.host, "my-bucket.s3.us-east-1.amazonaws.com");
    CU_ASSERT_STRING_EQUAL(config.origin, "https://my-bucket.s3.us-east-1.amazonaws.com");
    CU_ASSERT_STRING_EQUAL(config.base_path, "/");
    CU_ASSERT(config.is_https && config.verify && !config.is_loopback);
    CU_ASSERT_PTR_NULL(config.session_token);
    CU_ASSERT_PTR_NULL(config.ca_file);
    ls_s3_config_free(&config);
    /* A dot in the bucket would fall out of the certificate *.s3.region.amazonaws.com. */
    const ls_s3_options china = {.region = "cn-north-1"};
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://my.bucket", &china, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.host, "s3.cn-north-1.amazonaws.com.cn");
    CU_ASSERT_STRING_EQUAL(config.base_path, "/my.bucket/");
    CU_ASSERT_STRING_EQUAL(config.prefix, "");
    ls_s3_config_free(&config);
    leave();
}

typedef struct endpoint_case {
    const char *endpoint;
    ls_s3_addressing addressing;
    const char *origin, *host, *base_path;
    bool is_https, is_loopback;
} endpoint_case;

static void test_endpoints(void)
{
    static const endpoint_case cases[] = {
        {"http://127.0.0.1:9000", LS_S3_ADDRESSING_AUTO, "http://127.0.0.1:9000", "127.0.0.1:9000", "/buck/", false,
         true},
        {"http://localhost:80/", LS_S3_ADDRESSING_AUTO, "http://localhost", "localhost", "/buck/", false, true},
        {"https://S3.example.org:443", LS_S3_ADDRESSING_AUTO, "https://S3.example.org", "S3.example.org", "/buck/",
         true, false},
        {"https://s3.example.org:8443/gate/way", LS_S3_ADDRESSING_PATH, "https://s3.example.org:8443",
         "s3.example.org:8443", "/gate/way/buck/", true, false},
        {"http://s3.example.org", LS_S3_ADDRESSING_VIRTUAL, "http://buck.s3.example.org", "buck.s3.example.org", "/",
         false, false},
        {"http://[::1]:9000", LS_S3_ADDRESSING_AUTO, "http://[::1]:9000", "[::1]:9000", "/buck/", false, true},
        {"https://s3.eu-west-1.amazonaws.com", LS_S3_ADDRESSING_AUTO, "https://buck.s3.eu-west-1.amazonaws.com",
         "buck.s3.eu-west-1.amazonaws.com", "/", true, false},
    };
    enter(keys_only);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ls_s3_options options = {.endpoint = cases[i].endpoint, .addressing = cases[i].addressing};
        ls_s3_config config;
        CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://buck/p", &options, &config, NULL), LS_OK);
        CU_ASSERT_STRING_EQUAL(config.origin, cases[i].origin);
        CU_ASSERT_STRING_EQUAL(config.host, cases[i].host);
        CU_ASSERT_STRING_EQUAL(config.base_path, cases[i].base_path);
        CU_ASSERT_EQUAL(config.is_https, cases[i].is_https);
        CU_ASSERT_EQUAL(config.is_loopback, cases[i].is_loopback);
        ls_s3_config_free(&config);
    }
    leave();
}

static void test_refused_input(void)
{
    static const char *const addresses[] = {"s3://",     "s3://ab",       "http://bucket", "s3://bad bucket",
                                            "s3://-abc", "s3://abc//x",   "s3://abc/../x", "s3://abc/x/.",
                                            "s3:///abc", "s3://abc%2fdef"};
    static const char *const endpoints[] = {"ftp://host",       "127.0.0.1:9000",   "http://user:passw0rd@host",
                                            "http://host/?x=1", "http://host#part", "http://"};
    ls_s3_config config;
    ls_error error;
    enter(keys_only);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        CU_ASSERT_EQUAL(ls_s3_config_resolve(addresses[i], NULL, &config, &error), LS_ERROR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, addresses[i]));
        ls_s3_config_free(&config);
    }
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        const ls_s3_options options = {.endpoint = endpoints[i]};
        CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", &options, &config, &error), LS_ERROR_INVALID);
        CU_ASSERT_PTR_NULL(strstr(error.text, "passw0rd"));
        ls_s3_config_free(&config);
    }
    const ls_s3_options region = {.region = "us east"}, timeout = {.request_timeout_ns = -1},
                        half = {.access_key = "A"};
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", &region, &config, NULL), LS_ERROR_INVALID);
    ls_s3_config_free(&config);
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", &timeout, &config, NULL), LS_ERROR_INVALID);
    ls_s3_config_free(&config);
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", &half, &config, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "secret access key is missing"));
    ls_s3_config_free(&config);
    leave();
}

#define CREDENTIALS                                                                                                    \
    "# comment\n[default]\naws_access_key_id = DEFAULTKEY\naws_secret_access_key=default/secret+x=\n\n"                \
    "[ other ]\r\n\tignored = indented\r\nAWS_Access_Key_Id = OTHERKEY\r\naws_secret_access_key = other-secret\r\n"    \
    "aws_session_token = other-token==\r\nregion = eu-west-3\r\nendpoint_url = http://127.0.0.1:7480\r\n"              \
    "[half]\naws_access_key_id = HALF\n[role]\nrole_arn = arn:aws:iam::1:role/x"

static void test_credentials_file(void)
{
    const char *path = write_file("credentials", CREDENTIALS);
    const char *const with_file[][2] = {{"AWS_SHARED_CREDENTIALS_FILE", path}, {NULL, NULL}};
    ls_s3_config config;
    ls_error error;
    enter(with_file);
    CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://abc", NULL, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.access_key, "DEFAULTKEY");
    CU_ASSERT_STRING_EQUAL(config.secret_key, "default/secret+x=");
    CU_ASSERT_PTR_NULL(config.session_token);
    ls_s3_config_free(&config);
    setenv("AWS_PROFILE", "other", 1);
    CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://abc", NULL, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.access_key, "OTHERKEY");
    CU_ASSERT_STRING_EQUAL(config.secret_key, "other-secret");
    CU_ASSERT_STRING_EQUAL(config.session_token, "other-token==");
    CU_ASSERT_STRING_EQUAL(config.region, "eu-west-3");
    CU_ASSERT_STRING_EQUAL(config.origin, "http://127.0.0.1:7480");
    ls_s3_config_free(&config);
    static const char *const bad[] = {"half", "role", "absent"};
    static const char *const why[] = {"secret access key is missing", "no aws_access_key_id", "no profile [absent]"};
    for (int i = 0; i < 3; i++) {
        setenv("AWS_PROFILE", bad[i], 1);
        CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", NULL, &config, &error), LS_ERROR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, why[i]));
        ls_s3_config_free(&config);
    }
    leave();
}

/* Option before environment before profile; the three parts of the credentials always from one source. */
static void test_precedence(void)
{
    const char *path = write_file("credentials", CREDENTIALS);
    const char *const all[][2] = {{"AWS_SHARED_CREDENTIALS_FILE", path},
                                  {"AWS_PROFILE", "other"},
                                  {"AWS_ACCESS_KEY_ID", "ENVKEY"},
                                  {"AWS_SECRET_ACCESS_KEY", "env-secret"},
                                  {"AWS_REGION", "ap-south-1"},
                                  {"AWS_DEFAULT_REGION", "ap-south-2"},
                                  {"AWS_ENDPOINT_URL", "http://127.0.0.1:1111"},
                                  {"AWS_ENDPOINT_URL_S3", "http://127.0.0.1:2222"},
                                  {"AWS_CA_BUNDLE", "/etc/bundle.pem"},
                                  {NULL, NULL}};
    ls_s3_config config;
    enter(all);
    CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://abc", NULL, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.access_key, "ENVKEY");
    CU_ASSERT_STRING_EQUAL(config.secret_key, "env-secret");
    CU_ASSERT_PTR_NULL(config.session_token); /* the profile's token belongs to the profile's key */
    CU_ASSERT_STRING_EQUAL(config.region, "ap-south-1");
    CU_ASSERT_STRING_EQUAL(config.origin, "http://127.0.0.1:2222");
    CU_ASSERT_STRING_EQUAL(config.ca_file, "/etc/bundle.pem");
    ls_s3_config_free(&config);
    const ls_s3_options profile = {.profile = "other", .endpoint = "http://127.0.0.1:3333"};
    CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://abc", &profile, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.access_key, "OTHERKEY");
    CU_ASSERT_STRING_EQUAL(config.origin, "http://127.0.0.1:3333");
    ls_s3_config_free(&config);
    const ls_s3_options keys = {.access_key = "OPT",
                                .secret_key = "opt-secret",
                                .region = "r-1",
                                .connection_limit = 3,
                                .skip_verification = true,
                                .request_timeout_ns = 7,
                                .object_bytes_max = 9};
    CU_ASSERT_EQUAL_FATAL(ls_s3_config_resolve("s3://abc", &keys, &config, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(config.access_key, "OPT");
    CU_ASSERT_STRING_EQUAL(config.region, "r-1");
    CU_ASSERT_EQUAL(config.connection_limit, 3);
    CU_ASSERT_EQUAL(config.request_timeout_ns, 7);
    CU_ASSERT_EQUAL(config.connect_timeout_ns, 5 * LS_NANOSECONDS_PER_SECOND);
    CU_ASSERT_EQUAL(config.object_bytes_max, 9);
    CU_ASSERT_FALSE(config.verify);
    ls_s3_config_free(&config);
    leave();
}

static void test_no_credentials(void)
{
    const char *const nothing[][2] = {{"HOME", "/nonexistent"}, {NULL, NULL}};
    ls_s3_config config;
    ls_error error;
    enter(nothing);
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", NULL, &config, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "AWS_ACCESS_KEY_ID"));
    ls_s3_config_free(&config);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/file", 1); /* named, so its absence is an error */
    CU_ASSERT_EQUAL(ls_s3_config_resolve("s3://abc", NULL, &config, &error), LS_ERROR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "/nonexistent/file"));
    ls_s3_config_free(&config);
    leave();
}

static void test_redaction(void)
{
    char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", token[] = "short-token";
    ls_s3_config config = {.secret_key = secret, .session_token = token};
    char whole[] = "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY, token short-token!";
    ls_s3_config_redact(&config, whole);
    CU_ASSERT_STRING_EQUAL(whole, "key ****************************************, token ***********!");
    char piece[] = "cut: MDENG/bPxRfiCYEX";
    ls_s3_config_redact(&config, piece);
    CU_ASSERT_STRING_EQUAL(piece, "cut: ****************");
    char signature[] = "sig=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31\x1b[2J\n";
    ls_s3_config_redact(&config, signature);
    CU_ASSERT_STRING_EQUAL(signature, "sig=****************************************************************?[2J?");
    char plain[] = "tx000001-00deadbeef stays";
    ls_s3_config_redact(&config, plain);
    CU_ASSERT_STRING_EQUAL(plain, "tx000001-00deadbeef stays");
}

static void test_memory(void)
{
    const char *path = write_file("credentials", CREDENTIALS);
    const char *const with_file[][2] = {{"AWS_SHARED_CREDENTIALS_FILE", path}, {"AWS_PROFILE", "other"}, {NULL, NULL}};
    const ls_s3_options options = {.ca_file = "/x.pem"};
    ls_s3_config config;
    ls_result result = LS_ERROR_MEMORY;
    int64_t allowed = 0;
    enter(with_file);
    for (; result != LS_OK && allowed < 200; allowed++) {
        ls_fail_allocations_after(allowed);
        result = ls_s3_config_resolve("s3://abc/p", &options, &config, NULL);
        ls_fail_allocations_after(-1);
        ls_s3_config_free(&config);
        CU_ASSERT(result == LS_OK || result == LS_ERROR_MEMORY);
    }
    CU_ASSERT_EQUAL(result, LS_OK);
    CU_ASSERT(allowed > 10);
    leave();
}

LS_SUITE(s3_config, {"AWS by default", test_aws_defaults}, {"endpoints", test_endpoints},
         {"refused input", test_refused_input}, {"credentials file", test_credentials_file},
         {"precedence", test_precedence}, {"no credentials", test_no_credentials}, {"redaction", test_redaction},
         {"every allocation fails once", test_memory})
