/* browser.c - see browser.h. Messages are JSON objects that end with a NUL byte; commands go to the browser's
 * descriptor 3, answers and events come from its descriptor 4. */
#include "tests/browser.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30000

extern char **environ;

struct ls_browser {
    pid_t process;
    int commands;
    int answers;
    int next_id;
    char *session; /* of the page; NULL before it is attached */
    ls_text input; /* bytes received and not yet taken */
    ls_text errors;
    bool loaded;
};

bool ls_browser_installed(void) { return system("command -v chromium >/dev/null 2>&1") == 0; }

/* Above 9, so that the child's 3 and 4 are free to be set. */
static bool open_pipe(int ends[2])
{
    int low[2];
    if (pipe(low) != 0) return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
        close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

static bool spawn(ls_browser *b, const char *folder, int command_end, int answer_end)
{
    char profile[300];
    snprintf(profile, sizeof profile, "--user-data-dir=%s", folder);
    char *words[] = {(char *)"chromium",
                     (char *)"--headless",
                     (char *)"--no-sandbox",
                     (char *)"--disable-gpu",
                     (char *)"--hide-scrollbars",
                     (char *)"--remote-debugging-pipe",
                     (char *)"--no-first-run",
                     (char *)"--disable-extensions",
                     (char *)"--disable-dev-shm-usage",
                     (char *)"--disable-background-networking",
                     profile,
                     NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, command_end, 3);
    posix_spawn_file_actions_adddup2(&actions, answer_end, 4);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    bool started = posix_spawnp(&b->process, "chromium", &actions, &attributes, words, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return started;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The next message, or NULL when none came by the deadline. */
static cJSON *receive(ls_browser *b, int64_t deadline_ms)
{
    for (;;) {
        char *end = b->input.length > 0 ? memchr(b->input.bytes, '\0', b->input.length) : NULL;
        if (end != NULL) {
            cJSON *message = cJSON_Parse(b->input.bytes);
            size_t taken = (size_t)(end - b->input.bytes) + 1;
            memmove(b->input.bytes, b->input.bytes + taken, b->input.length - taken);
            b->input.length -= taken;
            return message;
        }
        struct pollfd ready = {.fd = b->answers, .events = POLLIN};
        int64_t left = deadline_ms - now_ms();
        if (left <= 0 || poll(&ready, 1, (int)left) <= 0) return NULL;
        char block[65536];
        ssize_t got = read(b->answers, block, sizeof block);
        if (got <= 0) return NULL;
        ls_text_bytes(&b->input, block, (size_t)got);
    }
}

static const char *text_at(const cJSON *object, const char *one, const char *two, const char *three)
{
    const cJSON *at = cJSON_GetObjectItem(object, one);
    if (two != NULL) at = cJSON_GetObjectItem(at, two);
    if (three != NULL) at = cJSON_GetObjectItem(at, three);
    return cJSON_IsString(at) ? at->valuestring : NULL;
}

static void note_error(ls_browser *b, const cJSON *event)
{
    char *text = cJSON_PrintUnformatted(event);
    ls_text_format(&b->errors, "%s\n", text != NULL ? text : "?");
    cJSON_free(text);
}

static void take_event(ls_browser *b, const cJSON *message)
{
    const char *method = text_at(message, "method", NULL, NULL);
    if (method == NULL) return;
    const char *level = text_at(message, "params", "entry", "level"), *type = text_at(message, "params", "type", NULL);
    bool logged = strcmp(method, "Log.entryAdded") == 0 && level != NULL && strcmp(level, "error") == 0;
    bool printed = strcmp(method, "Runtime.consoleAPICalled") == 0 && type != NULL &&
                   (strcmp(type, "error") == 0 || strcmp(type, "assert") == 0);
    if (logged || printed || strcmp(method, "Runtime.exceptionThrown") == 0) note_error(b, message);
    if (strcmp(method, "Page.loadEventFired") == 0) b->loaded = true;
}

/* Sends a command with parameters in JSON and waits for its answer; the caller frees it. NULL: none came, or an error.
 */
static cJSON *command(ls_browser *b, const char *method, const char *parameters)
{
    ls_text text = {0};
    int id = ++b->next_id;
    ls_text_format(&text, "{\"id\":%d,\"method\":\"%s\",\"params\":%s", id, method, parameters);
    if (b->session != NULL) ls_text_format(&text, ",\"sessionId\":\"%s\"", b->session);
    ls_text_add(&text, "}");
    bool sent = !text.failed;
    for (size_t done = 0; sent && done < text.length + 1;) {
        ssize_t put = write(b->commands, text.bytes + done, text.length + 1 - done);
        sent = put > 0;
        if (sent) done += (size_t)put;
    }
    ls_text_free(&text);
    int64_t deadline = now_ms() + PATIENCE_MS;
    while (sent) {
        cJSON *message = receive(b, deadline);
        if (message == NULL) return NULL;
        const cJSON *answered = cJSON_GetObjectItem(message, "id");
        if (cJSON_IsNumber(answered) && answered->valueint == id) {
            if (cJSON_GetObjectItem(message, "error") == NULL) return message;
            note_error(b, message);
            cJSON_Delete(message);
            return NULL;
        }
        take_event(b, message);
        cJSON_Delete(message);
    }
    return NULL;
}

static bool order(ls_browser *b, const char *method, const char *parameters)
{
    cJSON *answer = command(b, method, parameters);
    cJSON_Delete(answer);
    return answer != NULL;
}

static bool attach(ls_browser *b)
{
    char parameters[200];
    cJSON *target = command(b, "Target.createTarget", "{\"url\":\"about:blank\"}");
    const char *id = text_at(target, "result", "targetId", NULL);
    snprintf(parameters, sizeof parameters, "{\"targetId\":\"%.100s\",\"flatten\":true}", id != NULL ? id : "");
    cJSON *attached = id != NULL ? command(b, "Target.attachToTarget", parameters) : NULL;
    const char *session = text_at(attached, "result", "sessionId", NULL);
    b->session = session != NULL ? ls_duplicate(session) : NULL;
    cJSON_Delete(target);
    cJSON_Delete(attached);
    return b->session != NULL && order(b, "Page.enable", "{}") && order(b, "Runtime.enable", "{}") &&
           order(b, "Log.enable", "{}");
}

ls_browser *ls_browser_start(const char *folder)
{
    int commands[2] = {-1, -1}, answers[2] = {-1, -1};
    ls_browser *b = ls_allocate_array(1, sizeof *b);
    if (b == NULL || !open_pipe(commands) || !open_pipe(answers)) {
        ls_free(b);
        return NULL;
    }
    /* A browser that dies must not take the tests with it. */
    signal(SIGPIPE, SIG_IGN);
    b->commands = commands[1];
    b->answers = answers[0];
    bool started = spawn(b, folder, commands[0], answers[1]);
    close(commands[0]);
    close(answers[1]);
    if (started && attach(b)) return b;
    ls_browser_stop(b);
    return NULL;
}

void ls_browser_stop(ls_browser *b)
{
    if (b == NULL) return;
    close(b->commands);
    close(b->answers);
    if (b->process > 0) {
        /* The browser's children are in its process group. */
        kill(-b->process, SIGKILL);
        waitpid(b->process, NULL, 0);
    }
    ls_free(b->session);
    ls_text_free(&b->input);
    ls_text_free(&b->errors);
    ls_free(b);
}

bool ls_browser_show(ls_browser *b, const char *url, int width, int height, bool dark)
{
    char size[200], media[200];
    snprintf(size, sizeof size, "{\"width\":%d,\"height\":%d,\"deviceScaleFactor\":1,\"mobile\":%s}", width, height,
             width < 600 ? "true" : "false");
    snprintf(media, sizeof media, "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"%s\"}]}",
             dark ? "dark" : "light");
    ls_text_free(&b->errors);
    ls_text place = {0};
    ls_text_add(&place, "{\"url\":");
    ls_text_json(&place, url);
    ls_text_add(&place, "}");
    /* By way of an empty page: the same page with another fragment would not be loaded anew. */
    b->loaded = false;
    bool good = order(b, "Emulation.setDeviceMetricsOverride", size) && order(b, "Emulation.setEmulatedMedia", media) &&
                order(b, "Page.navigate", "{\"url\":\"about:blank\"}");
    int64_t deadline = now_ms() + PATIENCE_MS;
    for (int turn = 0; turn < 2 && good; turn++) {
        while (good && !b->loaded) {
            cJSON *message = receive(b, deadline);
            good = message != NULL;
            if (good) take_event(b, message);
            cJSON_Delete(message);
        }
        b->loaded = turn == 1;
        if (good && turn == 0) good = order(b, "Page.navigate", place.bytes);
    }
    ls_text_free(&place);
    return good;
}

char *ls_browser_evaluate(ls_browser *b, const char *expression)
{
    ls_text parameters = {0};
    ls_text_add(&parameters, "{\"returnByValue\":true,\"expression\":");
    ls_text_json(&parameters, expression);
    ls_text_add(&parameters, "}");
    cJSON *answer = command(b, "Runtime.evaluate", parameters.bytes);
    const cJSON *result = cJSON_GetObjectItem(answer, "result");
    const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(result, "result"), "value");
    char *text = NULL;
    if (cJSON_GetObjectItem(result, "exceptionDetails") != NULL) {
        note_error(b, answer);
    } else if (cJSON_IsString(value)) {
        text = ls_duplicate(value->valuestring);
    } else if (value != NULL) {
        char *printed = cJSON_PrintUnformatted(value);
        text = ls_duplicate(printed);
        cJSON_free(printed);
    }
    cJSON_Delete(answer);
    ls_text_free(&parameters);
    return text;
}

const char *ls_browser_errors(const ls_browser *b) { return b->errors.length > 0 ? b->errors.bytes : ""; }

/* RFC 4648; the input is the browser's own. */
static bool write_base64(FILE *file, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int count = 0;
    for (const char *c = text; *c != '\0' && *c != '='; c++) {
        const char *digit = strchr(digits, *c);
        if (digit == NULL) return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        if (fputc((int)(bits >> count & 0xff), file) == EOF) return false;
    }
    return true;
}

bool ls_browser_picture(ls_browser *b, const char *path, double top, double width, double height)
{
    char parameters[300];
    snprintf(parameters, sizeof parameters,
             "{\"format\":\"png\",\"captureBeyondViewport\":true,\"clip\":{\"x\":0,\"y\":%.0f,\"width\":%.0f,"
             "\"height\":%.0f,\"scale\":1}}",
             top, width, height);
    cJSON *answer = command(b, "Page.captureScreenshot", parameters);
    const char *data = text_at(answer, "result", "data", NULL);
    FILE *file = data != NULL ? fopen(path, "wb") : NULL;
    bool good = file != NULL && write_base64(file, data);
    if (file != NULL && fclose(file) != 0) good = false;
    cJSON_Delete(answer);
    return good;
}
