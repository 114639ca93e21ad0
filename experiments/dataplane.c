/* dataplane.c - see dataplane.h. */
#include "experiments/dataplane.h"

#include "policies/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES_MAX      8u
#define FIRST_PAUSE_NS INT64_C(50000000)

/* --- the lake --------------------------------------------------------------------------------------------------------
 */

static const char *folder_of(const char *address) { return strncmp(address, "dir:", 4) == 0 ? address + 4 : NULL; }

static ls_result check_address(const char *address, ls_lake_use use, ls_error *error)
{
    static const char expected[] = "expected dir:PATH, s3://bucket/prefix or memory";
    if (address == NULL) return ls_fail(error, LS_ERROR_INVALID, "--backend is missing; %s", expected);
    const char *folder = folder_of(address);
    bool known = strcmp(address, "memory") == 0 || (folder != NULL && folder[0] != '\0') ||
                 (strncmp(address, "s3://", 5) == 0 && address[5] != '\0');
    if (!known) return ls_fail(error, LS_ERROR_INVALID, "--backend %.200s: %s", address, expected);
    struct stat status;
    if (use != LS_LAKE_WRITE && folder != NULL && (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))) {
        return ls_fail(error, LS_ERROR_INVALID, "--backend %.200s: there is no such folder", address);
    }
    return LS_OK;
}

static ls_result end_in_slash(ls_lake *lake, ls_error *error)
{
    size_t length = strlen(lake->prefix);
    if (length == 0 || lake->prefix[length - 1] == '/') return LS_OK;
    char *longer = ls_reallocate(lake->prefix, length + 2);
    if (longer == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    memcpy(longer + length, "/", 2);
    lake->prefix = longer;
    return LS_OK;
}

ls_result ls_lake_open(const ls_arguments *arguments, ls_lake_use use, ls_lake *lake, ls_error *error)
{
    *lake = (ls_lake){.address = ls_argument_text(arguments, "backend")};
    ls_result result = check_address(lake->address, use, error);
    if (result != LS_OK) return result;
    lake->store = ls_store_open(lake->address, &lake->prefix, error);
    if (lake->store == NULL) return LS_ERROR_IO;
    uint64_t nonce = 0;
    result = end_in_slash(lake, error);
    if (result == LS_OK && use != LS_LAKE_READ) result = ls_unique_number(&nonce, error);
    if (result == LS_OK && use != LS_LAKE_READ) result = ls_store_probe(lake->store, lake->prefix, nonce, error);
    if (result != LS_OK) ls_lake_close(lake);
    return result;
}

void ls_lake_close(ls_lake *lake)
{
    ls_store_destroy(lake->store);
    ls_free(lake->prefix);
    *lake = (ls_lake){.address = lake->address};
}

/* The number of a word among words separated by one space. */
static ls_result choose(const char *option, const char *word, const char *choices, uint32_t *index, ls_error *error)
{
    size_t length = strlen(word);
    *index = 0;
    for (const char *at = choices;; (*index)++) {
        size_t here = strcspn(at, " ");
        if (here == length && memcmp(at, word, length) == 0) return LS_OK;
        if (at[here] == '\0') break;
        at += here + 1;
    }
    return ls_fail(error, LS_ERROR_INVALID, "--%s %.100s: expected one of %s", option, word, choices);
}

ls_result ls_lake_protocol(const ls_arguments *arguments, ls_protocol *protocol, ls_error *error)
{
    uint32_t layout, discovery;
    *protocol = ls_protocol_default();
    ls_result result = choose("layout", ls_argument_text(arguments, "layout"), LS_LAYOUT_CHOICES, &layout, error);
    if (result == LS_OK) {
        result = choose("discovery", ls_argument_text(arguments, "discovery"), LS_DISCOVERY_CHOICES, &discovery, error);
    }
    if (result != LS_OK) return result;
    protocol->layout = (ls_layout)layout;
    protocol->discovery = (ls_discovery)discovery;
    protocol->floor_check = !ls_argument_flag(arguments, "no-floor-check");
    return LS_OK;
}

/* --- one question, one answer ----------------------------------------------------------------------------------------
 */

/* What an answer brings outlives the callback only as far as `take` copies it. */
typedef struct question {
    ls_result (*take)(void *context, const ls_object_reply *reply);
    void *context;
    ls_reply_status status;
    ls_result result; /* of take */
    ls_error message;
    bool answered;
} question;

static void take_answer(void *context, const ls_object_reply *reply)
{
    question *q = context;
    q->answered = true;
    q->status = reply->status;
    ls_fail(&q->message, LS_OK, "%s", reply->message != NULL ? reply->message : ls_reply_status_name(reply->status));
    if (reply->status == LS_REPLY_OK) q->result = q->take(q->context, reply);
}

static void pause_ns(int64_t duration_ns)
{
    struct timespec pause = {.tv_sec = (time_t)(duration_ns / LS_NANOSECONDS_PER_SECOND),
                             .tv_nsec = (long)(duration_ns % LS_NANOSECONDS_PER_SECOND)};
    nanosleep(&pause, NULL);
}

/* Asks until the store decides. *found: it answered OK, and `take` has seen it; false: there is no such object. */
static ls_result ask(const ls_lake *lake, const ls_object_request *request, question *q, bool *found, ls_error *error)
{
    int64_t pause = FIRST_PAUSE_NS;
    for (uint32_t tries = 0; tries < TRIES_MAX; tries++, pause *= 2) {
        if (tries > 0) pause_ns(pause);
        q->answered = false;
        q->result = LS_OK;
        ls_result result = ls_store_submit(lake->store, request, take_answer, q);
        while (result == LS_OK && !q->answered) result = ls_store_poll(lake->store, LS_NEVER_NS, NULL);
        if (result != LS_OK) {
            return ls_fail(error, result, "%s of '%s' in %s: %s", ls_operation_name(request->operation), request->key,
                           lake->address, ls_result_name(result));
        }
        *found = q->status == LS_REPLY_OK;
        if (*found || q->status == LS_REPLY_NOT_FOUND) return q->result;
        if (q->status == LS_REPLY_DENIED || q->status == LS_REPLY_INVALID) break;
    }
    return ls_fail(error, LS_ERROR_IO, "%s of '%s' in %s was answered '%s': %.600s",
                   ls_operation_name(request->operation), request->key, lake->address, ls_reply_status_name(q->status),
                   q->message.text);
}

static ls_result full_name(const ls_lake *lake, const char *name, char full[LS_STORE_KEY_BYTES_MAX + 1],
                           ls_error *error)
{
    int length = snprintf(full, LS_STORE_KEY_BYTES_MAX + 1, "%s%s", lake->prefix, name);
    if (length >= 0 && (unsigned)length <= LS_STORE_KEY_BYTES_MAX) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID, "the name '%.100s...' is longer than %u bytes", name,
                   LS_STORE_KEY_BYTES_MAX);
}

static ls_result keep_object(void *context, const ls_object_reply *reply)
{
    ls_lake_object *object = context;
    object->object_bytes = reply->object_bytes;
    object->length = reply->body_bytes;
    if (reply->body_bytes == 0) return LS_OK;
    object->bytes = ls_allocate((size_t)reply->body_bytes);
    if (object->bytes == NULL) return LS_ERROR_MEMORY;
    memcpy(object->bytes, reply->body, (size_t)reply->body_bytes);
    return LS_OK;
}

ls_result ls_lake_get(const ls_lake *lake, const char *name, uint64_t suffix_bytes, ls_lake_object *object,
                      ls_error *error)
{
    char full[LS_STORE_KEY_BYTES_MAX + 1];
    *object = (ls_lake_object){0};
    ls_result result = full_name(lake, name, full, error);
    if (result != LS_OK) return result;
    question q = {.take = keep_object, .context = object};
    ls_object_request request = {.operation = LS_GET,
                                 .key = full,
                                 .range_bytes = suffix_bytes,
                                 .range = suffix_bytes > 0 ? LS_RANGE_SUFFIX : LS_RANGE_WHOLE};
    result = ask(lake, &request, &q, &object->exists, error);
    if (result == LS_ERROR_MEMORY) {
        return ls_fail(error, result, "out of memory for '%s' of %" PRIu64 " bytes", full, object->length);
    }
    return result;
}

static ls_result take_nothing(void *context, const ls_object_reply *reply)
{
    (void)context;
    (void)reply;
    return LS_OK;
}

ls_result ls_lake_delete(const ls_lake *lake, const char *name, ls_error *error)
{
    char full[LS_STORE_KEY_BYTES_MAX + 1];
    bool found;
    ls_result result = full_name(lake, name, full, error);
    if (result != LS_OK) return result;
    question q = {.take = take_nothing};
    ls_object_request request = {.operation = LS_DELETE, .key = full};
    return ask(lake, &request, &q, &found, error);
}

typedef struct page {
    const ls_lake *lake;
    ls_lake_visitor visit;
    void *context;
    char after[LS_STORE_KEY_BYTES_MAX + 1];
    bool more;
} page;

static ls_result take_page(void *context, const ls_object_reply *reply)
{
    page *p = context;
    size_t prefix = strlen(p->lake->prefix);
    p->more = reply->list_truncated && reply->key_count > 0;
    for (uint32_t i = 0; i < reply->key_count; i++) {
        const char *key = reply->keys[i];
        if (strcmp(key, p->after) > 0) snprintf(p->after, sizeof p->after, "%s", key);
        if (strncmp(key, p->lake->prefix, prefix) != 0) continue;
        ls_result result = p->visit(p->context, key + prefix, reply->key_bytes[i]);
        if (result != LS_OK) return result;
    }
    return LS_OK;
}

ls_result ls_lake_list(const ls_lake *lake, const char *folder, ls_lake_visitor visit, void *context, ls_error *error)
{
    char full[LS_STORE_KEY_BYTES_MAX + 1];
    page p = {.lake = lake, .visit = visit, .context = context, .more = true};
    ls_result result = full_name(lake, folder, full, error);
    while (result == LS_OK && p.more) {
        char after[LS_STORE_KEY_BYTES_MAX + 1];
        memcpy(after, p.after, sizeof after);
        question q = {.take = take_page, .context = &p};
        ls_object_request request = {.operation = LS_LIST,
                                     .key = full,
                                     .list_limit = LS_STORE_LIST_LIMIT_MAX,
                                     .list_after = after[0] != '\0' ? after : NULL};
        bool found;
        p.more = false;
        result = ask(lake, &request, &q, &found, error);
    }
    if (result == LS_ERROR_MEMORY) return ls_fail(error, result, "out of memory for the names in %s", lake->address);
    return result;
}

static ls_result greatest(void *context, const char *name, uint64_t bytes)
{
    (void)bytes;
    uint64_t *number = context;
    ls_key key;
    if (ls_key_parse(name, &key) == LS_OK && key.number > *number) *number = key.number;
    return LS_OK;
}

ls_result ls_lake_newest(const ls_lake *lake, uint64_t *version, uint64_t *floor, ls_error *error)
{
    *version = *floor = 0;
    ls_result result = ls_lake_list(lake, "manifest/", greatest, version, error);
    return result == LS_OK ? ls_lake_list(lake, "floor/", greatest, floor, error) : result;
}

/* --- signals ---------------------------------------------------------------------------------------------------------
 */

static void both_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

ls_result ls_signals_open(ls_signals *signals, ls_error *error)
{
    sigset_t set;
    both_signals(&set);
    *signals = (ls_signals){.file = -1};
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals->file = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->file >= 0) return LS_OK;
    return ls_fail(error, LS_ERROR_IO, "cannot watch for signals: %s", strerror(errno));
}

uint32_t ls_signals_count(ls_signals *signals)
{
    struct signalfd_siginfo ignored;
    while (signals->file >= 0 && read(signals->file, &ignored, sizeof ignored) == (ssize_t)sizeof ignored)
        signals->count++;
    return signals->count;
}

void ls_signals_close(ls_signals *signals)
{
    sigset_t set;
    if (signals->file < 0) return;
    ls_signals_count(signals);
    close(signals->file);
    signals->file = -1;
    both_signals(&set);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* --- odds and ends ---------------------------------------------------------------------------------------------------
 */

ls_result ls_unique_number(uint64_t *number, ls_error *error)
{
    *number = 0;
    while (*number == 0) {
        if (getrandom(number, sizeof *number, 0) == (ssize_t)sizeof *number) continue;
        if (errno != EINTR)
            return ls_fail(error, LS_ERROR_IO, "the system gives no random numbers: %s", strerror(errno));
        *number = 0;
    }
    return LS_OK;
}

ls_result ls_refusal(const ls_store_reply *reply)
{
    bool something_came = reply->moved_bytes > 0 || reply->object_bytes > 0;
    return reply->status == LS_REPLY_INVALID && something_came ? LS_ERROR_CORRUPT : LS_ERROR_IO;
}

int ls_report_damage(const ls_arguments *arguments, ls_result result, const ls_error *error)
{
    int code = ls_report_error(arguments, result, error);
    return result == LS_ERROR_CORRUPT || result == LS_ERROR_VERSION ? LS_EXIT_CHECK_FAILED : code;
}
