/* s3_config.c - resolving address, options, environment and credentials file (see s3_config.h for the order). */
#include "backend/s3_config.h"

#include "backend/s3_text.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CREDENTIALS_FILE_BYTES_MAX (1u << 20)
#define DEFAULT_CONNECTIONS        64u
#define CONNECTIONS_MAX            4096u
#define DEFAULT_CONNECT_TIMEOUT_NS (5 * LS_NANOSECONDS_PER_SECOND)
#define DEFAULT_REQUEST_TIMEOUT_NS (60 * LS_NANOSECONDS_PER_SECOND)
#define DEFAULT_OBJECT_BYTES_MAX   (UINT64_C(5) << 30)

static ls_result out_of_memory(ls_error *error)
{
    return ls_fail(error, LS_ERROR_MEMORY, "out of memory while setting up the S3 store");
}

/* An option, or the first of the environment's names that is set and not empty. */
static const char *first_set(const char *option, const char *name, const char *second_name)
{
    if (option != NULL && option[0] != '\0') return option;
    const char *value = getenv(name);
    if ((value == NULL || value[0] == '\0') && second_name != NULL) value = getenv(second_name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void wipe(char *text)
{
    if (text != NULL) OPENSSL_cleanse(text, strlen(text));
    ls_free(text);
}

/* The credentials file. */

typedef struct profile {
    char *access_key, *secret_key, *session_token, *region, *endpoint;
    bool found;
} profile;

static void profile_free(profile *values)
{
    ls_free(values->access_key);
    wipe(values->secret_key);
    wipe(values->session_token);
    ls_free(values->region);
    ls_free(values->endpoint);
}

/* Path of the credentials file; *is_explicit when the user named it. Without a name and a home it stays empty. */
static void append_credentials_path(ls_s3_text *path, bool *is_explicit)
{
    const char *named = first_set(NULL, "AWS_SHARED_CREDENTIALS_FILE", NULL);
    const char *home = first_set(NULL, "HOME", NULL);
    *is_explicit = named != NULL;
    if (named != NULL) {
        ls_s3_text_append(path, named);
    } else if (home != NULL) {
        ls_s3_text_append(path, home);
        ls_s3_text_append(path, "/.aws/credentials");
    }
}

/* The whole file, NUL-terminated; NULL with *result and error when there is none to be had. */
static char *read_credentials(const char *path, ls_result *result, ls_error *error)
{
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        *result = ls_fail(error, LS_ERROR_IO, "cannot open the credentials file '%s': %s", path, strerror(errno));
        return NULL;
    }
    text = ls_allocate(CREDENTIALS_FILE_BYTES_MAX + 1);
    if (text == NULL) {
        *result = out_of_memory(error);
        goto fail;
    }
    size_t length = fread(text, 1, CREDENTIALS_FILE_BYTES_MAX + 1, file);
    if (ferror(file) || length > CREDENTIALS_FILE_BYTES_MAX || memchr(text, '\0', length) != NULL) {
        const char *reason = ferror(file)                          ? strerror(errno)
                             : length > CREDENTIALS_FILE_BYTES_MAX ? "longer than 1 MiB"
                                                                   : "not a text file";
        *result = ls_fail(error, LS_ERROR_IO, "cannot read the credentials file '%s': %s", path, reason);
        OPENSSL_cleanse(text, length);
        goto fail;
    }
    text[length] = '\0';
    fclose(file);
    *result = LS_OK;
    return text;
fail:
    ls_free(text);
    fclose(file);
    return NULL;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) length--;
    text[length] = '\0';
    return text;
}

/* "[name]" as name; NULL when the line is no section. */
static char *section_name(char *line)
{
    size_t length = strlen(line);
    if (length < 2 || line[0] != '[' || line[length - 1] != ']') return NULL;
    line[length - 1] = '\0';
    return trim(line + 1);
}

static ls_result take_setting(profile *values, char *line)
{
    char *equals = strchr(line, '=');
    if (equals == NULL) return LS_OK;
    *equals = '\0';
    const char *name = trim(line), *value = trim(equals + 1);
    const struct {
        const char *name;
        char **place;
    } settings[] = {{"aws_access_key_id", &values->access_key},
                    {"aws_secret_access_key", &values->secret_key},
                    {"aws_session_token", &values->session_token},
                    {"region", &values->region},
                    {"endpoint_url", &values->endpoint}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcasecmp(name, settings[i].name) != 0 || value[0] == '\0') continue;
        wipe(*settings[i].place);
        *settings[i].place = ls_duplicate(value);
        return *settings[i].place != NULL ? LS_OK : LS_ERROR_MEMORY;
    }
    return LS_OK;
}

/* Cuts `text` into lines and takes those of the wanted section. Indented lines belong to settings that we do not read.
 */
static ls_result parse_profile(char *text, const char *wanted, profile *values)
{
    bool inside = false;
    for (char *next, *line = text; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        if (line[0] == ' ' || line[0] == '\t' || line[0] == '#' || line[0] == ';') continue;
        line = trim(line);
        const char *name = section_name(line);
        if (name != NULL) {
            inside = strcmp(name, wanted) == 0;
            values->found = values->found || inside;
        } else if (inside) {
            ls_result result = take_setting(values, line);
            if (result != LS_OK) return result;
        }
    }
    return LS_OK;
}

/* Reads the section `wanted` of the file at path. */
static ls_result load_profile_from(const char *path, const char *wanted, profile *values, ls_error *error)
{
    ls_result result;
    char *text = read_credentials(path, &result, error);
    if (text == NULL) return result;
    size_t length = strlen(text);
    result = parse_profile(text, wanted, values);
    OPENSSL_cleanse(text, length);
    ls_free(text);
    return result == LS_OK ? LS_OK : out_of_memory(error);
}

/* A file or a profile that nobody asked for by name may be absent. */
static ls_result load_profile(const ls_s3_options *options, profile *values, ls_error *error)
{
    const char *wanted = first_set(options->profile, "AWS_PROFILE", NULL);
    bool is_named_file, is_named_profile = wanted != NULL;
    ls_s3_text path = LS_S3_TEXT_EMPTY;
    append_credentials_path(&path, &is_named_file);
    ls_result result = path.failed ? out_of_memory(error) : LS_OK;
    if (result == LS_OK && path.length > 0) {
        result = load_profile_from(path.bytes, is_named_profile ? wanted : "default", values, error);
    }
    if (result == LS_ERROR_IO && !is_named_file && !is_named_profile) result = LS_OK;
    if (result == LS_OK && is_named_profile && !values->found) {
        result = ls_fail(error, LS_ERROR_INVALID, "there is no profile [%s] in the credentials file '%s'", wanted,
                         ls_s3_text_string(&path));
    }
    ls_s3_text_free(&path);
    return result;
}

/* Credentials. */

static ls_result set_credentials(ls_s3_config *config, const char *access_key, const char *secret_key,
                                 const char *session_token, const char *source, ls_error *error)
{
    if (access_key == NULL || secret_key == NULL) {
        return ls_fail(error, LS_ERROR_INVALID, "only half of the S3 credentials in %s: the %s is missing", source,
                       access_key == NULL ? "access key id" : "secret access key");
    }
    if (strpbrk(access_key, " \r\n\t/,") != NULL) {
        return ls_fail(error, LS_ERROR_INVALID, "the access key id in %s is not one: it holds blanks, '/' or ','",
                       source);
    }
    config->access_key = ls_duplicate(access_key);
    config->secret_key = ls_duplicate(secret_key);
    config->session_token = ls_duplicate(session_token);
    bool complete = config->access_key != NULL && config->secret_key != NULL &&
                    (session_token == NULL || config->session_token != NULL);
    return complete ? LS_OK : out_of_memory(error);
}

static ls_result resolve_credentials(const ls_s3_options *options, const profile *values, ls_s3_config *config,
                                     ls_error *error)
{
    if (options->access_key != NULL || options->secret_key != NULL) {
        return set_credentials(config, options->access_key, options->secret_key, options->session_token, "the options",
                               error);
    }
    const char *access_key = first_set(NULL, "AWS_ACCESS_KEY_ID", NULL);
    const char *secret_key = first_set(NULL, "AWS_SECRET_ACCESS_KEY", NULL);
    if (options->profile == NULL && (access_key != NULL || secret_key != NULL)) {
        return set_credentials(config, access_key, secret_key, first_set(NULL, "AWS_SESSION_TOKEN", NULL),
                               "the environment", error);
    }
    if (values->access_key != NULL || values->secret_key != NULL) {
        return set_credentials(config, values->access_key, values->secret_key, values->session_token,
                               "the credentials file", error);
    }
    if (values->found) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "the profile in the credentials file has no aws_access_key_id; roles and single "
                       "sign-on are not read: export temporary keys to the environment instead");
    }
    return ls_fail(error, LS_ERROR_INVALID,
                   "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                   "write them to ~/.aws/credentials");
}

/* Address and endpoint. */

static bool is_bucket_name(const char *name, size_t length)
{
    if (length < 3 || length > 63) return false;
    for (size_t i = 0; i < length; i++) {
        char byte = name[i];
        bool alphanumeric =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
        bool inner = byte == '-' || byte == '.' || byte == '_';
        if (!alphanumeric && !(inner && i > 0 && i + 1 < length)) return false;
    }
    return true;
}

/* Both are names that DNS and TLS certificates (which cover one level) can carry. */
static bool fits_virtual_host(const char *bucket)
{
    for (const char *at = bucket; *at != '\0'; at++) {
        if (*at == '.' || *at == '_' || (*at >= 'A' && *at <= 'Z')) return false;
    }
    return true;
}

static ls_result check_prefix(const char *address, const char *prefix, ls_error *error)
{
    for (const char *part = prefix; *part != '\0';) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) {
            return ls_fail(error, LS_ERROR_INVALID,
                           "'%s': the prefix has an empty part, '.' or '..' between its slashes", address);
        }
        part += length;
        if (*part == '/') part++;
    }
    return LS_OK;
}

static ls_result resolve_address(const char *address, ls_s3_config *config, ls_error *error)
{
    const char *bucket = strncmp(address, "s3://", 5) == 0 ? address + 5 : NULL;
    size_t length = bucket != NULL ? strcspn(bucket, "/") : 0;
    if (bucket == NULL || !is_bucket_name(bucket, length)) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "'%s' names no bucket; expected s3://bucket or s3://bucket/prefix, the bucket of "
                       "3 to 63 letters, digits, '-', '.' or '_'",
                       address);
    }
    const char *prefix = bucket[length] == '/' ? bucket + length + 1 : bucket + length;
    ls_result result = check_prefix(address, prefix, error);
    if (result != LS_OK) return result;
    config->bucket = ls_duplicate(bucket);
    config->prefix = ls_duplicate(prefix);
    if (config->bucket == NULL || config->prefix == NULL) return out_of_memory(error);
    config->bucket[length] = '\0';
    size_t prefix_length = strlen(config->prefix);
    if (prefix_length > 0 && config->prefix[prefix_length - 1] == '/') config->prefix[prefix_length - 1] = '\0';
    return LS_OK;
}

/* The endpoint of AWS itself. */
static void append_aws_endpoint(ls_s3_text *text, const char *region)
{
    ls_s3_text_append(text, "https://s3.");
    ls_s3_text_append(text, region);
    ls_s3_text_append(text, strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com");
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcasecmp(text + length - end_length, end) == 0;
}

static bool is_aws_host(const char *host)
{
    return ends_with(host, ".amazonaws.com") || ends_with(host, ".amazonaws.com.cn");
}

static bool is_loopback_host(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || ends_with(host, ".localhost") || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* The parts of an endpoint as libcurl understands it: what we sign must be what it sends. */
typedef struct endpoint_parts {
    char *scheme, *host, *port, *path;
} endpoint_parts;

static void endpoint_free(endpoint_parts *parts)
{
    curl_free(parts->scheme);
    curl_free(parts->host);
    curl_free(parts->port);
    curl_free(parts->path);
}

static ls_result split_endpoint(const char *endpoint, endpoint_parts *parts, ls_error *error)
{
    CURLU *url = curl_url();
    if (url == NULL) return out_of_memory(error);
    CURLUcode code = curl_url_set(url, CURLUPART_URL, endpoint, 0);
    if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_SCHEME, &parts->scheme, 0);
    if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_HOST, &parts->host, 0);
    if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_PATH, &parts->path, 0);
    if (code == CURLUE_OK) curl_url_get(url, CURLUPART_PORT, &parts->port, CURLU_NO_DEFAULT_PORT);
    const CURLUPart refused[4] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT};
    bool plain = true;
    for (int i = 0; i < 4; i++) {
        char *unwanted = NULL;
        if (curl_url_get(url, refused[i], &unwanted, 0) == CURLUE_OK) plain = false;
        curl_free(unwanted);
    }
    curl_url_cleanup(url);
    bool is_split = code == CURLUE_OK && parts->scheme != NULL && parts->host != NULL && parts->path != NULL;
    bool http = is_split && (strcmp(parts->scheme, "http") == 0 || strcmp(parts->scheme, "https") == 0);
    if (code == CURLUE_OUT_OF_MEMORY) return out_of_memory(error);
    /* The text itself is not repeated: it may hold a password. */
    if (!http || !plain) {
        return ls_fail(error, LS_ERROR_INVALID,
                       "the S3 endpoint is not of the form http://host:port or https://host (no user, "
                       "password, query or fragment)%s%s",
                       code != CURLUE_OK ? ": " : "", code != CURLUE_OK ? curl_url_strerror(code) : "");
    }
    return LS_OK;
}

/* origin, host and base_path, for the style of addressing. */
static ls_result compose_urls(const endpoint_parts *parts, bool is_virtual, ls_s3_config *config, ls_error *error)
{
    ls_s3_text host = LS_S3_TEXT_EMPTY, origin = LS_S3_TEXT_EMPTY, path = LS_S3_TEXT_EMPTY;
    if (is_virtual) {
        ls_s3_text_append(&host, config->bucket);
        ls_s3_text_append(&host, ".");
    }
    ls_s3_text_append(&host, parts->host);
    if (parts->port != NULL) {
        ls_s3_text_append(&host, ":");
        ls_s3_text_append(&host, parts->port);
    }
    ls_s3_text_append(&origin, parts->scheme);
    ls_s3_text_append(&origin, "://");
    ls_s3_text_append(&origin, ls_s3_text_string(&host));
    ls_s3_text_append(&path, parts->path);
    if (!ends_with(ls_s3_text_string(&path), "/")) ls_s3_text_append(&path, "/");
    if (!is_virtual) {
        ls_s3_text_append_encoded(&path, config->bucket, false);
        ls_s3_text_append(&path, "/");
    }
    config->host = host.bytes;
    config->origin = origin.bytes;
    config->base_path = path.bytes;
    return host.failed || origin.failed || path.failed ? out_of_memory(error) : LS_OK;
}

static ls_result resolve_endpoint(const ls_s3_options *options, const profile *values, ls_s3_config *config,
                                  ls_error *error)
{
    ls_s3_text aws = LS_S3_TEXT_EMPTY;
    endpoint_parts parts = {0};
    const char *endpoint = first_set(options->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    if (endpoint == NULL) endpoint = values->endpoint;
    if (endpoint == NULL) {
        append_aws_endpoint(&aws, config->region);
        endpoint = ls_s3_text_string(&aws);
    }
    ls_result result = aws.failed ? out_of_memory(error) : split_endpoint(endpoint, &parts, error);
    if (result == LS_OK) {
        bool is_virtual = options->addressing == LS_S3_ADDRESSING_VIRTUAL ||
                          (options->addressing == LS_S3_ADDRESSING_AUTO && is_aws_host(parts.host) &&
                           fits_virtual_host(config->bucket));
        config->is_https = strcmp(parts.scheme, "https") == 0;
        config->is_loopback = is_loopback_host(parts.host);
        result = compose_urls(&parts, is_virtual, config, error);
    }
    endpoint_free(&parts);
    ls_s3_text_free(&aws);
    return result;
}

static ls_result resolve_region(const ls_s3_options *options, const profile *values, ls_s3_config *config,
                                ls_error *error)
{
    const char *region = first_set(options->region, "AWS_REGION", "AWS_DEFAULT_REGION");
    if (region == NULL) region = values->region != NULL ? values->region : "us-east-1";
    for (const char *at = region; *at != '\0'; at++) {
        bool fits = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                    *at == '-' || *at == '_';
        if (!fits)
            return ls_fail(error, LS_ERROR_INVALID, "the S3 region '%.64s' is not one: letters, digits and '-'",
                           region);
    }
    config->region = ls_duplicate(region);
    return config->region != NULL ? LS_OK : out_of_memory(error);
}

static ls_result resolve_rest(const ls_s3_options *options, ls_s3_config *config, ls_error *error)
{
    if (options->connect_timeout_ns < 0 || options->request_timeout_ns < 0) {
        return ls_fail(error, LS_ERROR_INVALID, "an S3 time-out cannot be negative");
    }
    if (options->connection_limit > CONNECTIONS_MAX) {
        return ls_fail(error, LS_ERROR_INVALID, "an S3 store can have at most %u connections, not %u", CONNECTIONS_MAX,
                       options->connection_limit);
    }
    config->verify = !options->skip_verification;
    config->connect_timeout_ns =
        options->connect_timeout_ns > 0 ? options->connect_timeout_ns : DEFAULT_CONNECT_TIMEOUT_NS;
    config->request_timeout_ns =
        options->request_timeout_ns > 0 ? options->request_timeout_ns : DEFAULT_REQUEST_TIMEOUT_NS;
    config->connection_limit = options->connection_limit > 0 ? options->connection_limit : DEFAULT_CONNECTIONS;
    config->object_bytes_max = options->object_bytes_max > 0 ? options->object_bytes_max : DEFAULT_OBJECT_BYTES_MAX;
    const char *ca_file = first_set(options->ca_file, "AWS_CA_BUNDLE", NULL);
    config->ca_file = ls_duplicate(ca_file);
    return ca_file == NULL || config->ca_file != NULL ? LS_OK : out_of_memory(error);
}

ls_result ls_s3_config_resolve(const char *address, const ls_s3_options *options, ls_s3_config *config, ls_error *error)
{
    static const ls_s3_options none = {0};
    if (options == NULL) options = &none;
    *config = (ls_s3_config){0};
    profile values = {0};
    ls_result result = resolve_address(address, config, error);
    if (result == LS_OK) result = load_profile(options, &values, error);
    if (result == LS_OK) result = resolve_credentials(options, &values, config, error);
    if (result == LS_OK) result = resolve_region(options, &values, config, error);
    if (result == LS_OK) result = resolve_endpoint(options, &values, config, error);
    if (result == LS_OK) result = resolve_rest(options, config, error);
    profile_free(&values);
    return result;
}

void ls_s3_config_free(ls_s3_config *config)
{
    ls_free(config->bucket);
    ls_free(config->prefix);
    ls_free(config->origin);
    ls_free(config->host);
    ls_free(config->base_path);
    ls_free(config->region);
    ls_free(config->access_key);
    wipe(config->secret_key);
    wipe(config->session_token);
    ls_free(config->ca_file);
    *config = (ls_s3_config){0};
}

/* Any piece of a secret as long as this is covered, since a server's text may show it cut off. */
#define SECRET_PIECE_BYTES 16u
/* Shorter secrets than this would tear holes into ordinary words; no real one is that short. */
#define SECRET_BYTES_MIN 8u

static void cover(char *text, const char *secret)
{
    size_t length = strlen(text), secret_length = secret != NULL ? strlen(secret) : 0;
    size_t piece = secret_length < SECRET_PIECE_BYTES ? secret_length : SECRET_PIECE_BYTES;
    if (piece < SECRET_BYTES_MIN) return;
    for (size_t at = 0; at + piece <= length;) {
        size_t matched = piece;
        if (memmem(secret, secret_length, text + at, matched) == NULL) {
            at++;
            continue;
        }
        while (at + matched < length && memmem(secret, secret_length, text + at, matched + 1) != NULL) matched++;
        memset(text + at, '*', matched);
        at += matched;
    }
}

void ls_s3_config_redact(const ls_s3_config *config, char *text)
{
    cover(text, config->secret_key);
    cover(text, config->session_token);
    for (char *at = text; *at != '\0'; at++) {
        size_t digits = strspn(at, "0123456789abcdefABCDEF");
        if (digits >= 64) memset(at, '*', digits);
        if (digits > 0) at += digits - 1;
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
    }
}
