/* fault_proxy.c - one thread accepts, one thread a connection serves (see fault_proxy.h).
 *
 * Test code that runs beside the code under test: it takes its memory from malloc, so that tests that make allocations
 * fail do not hit it.
 */
#include "tests/faults/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256

typedef struct buffer {
    char *bytes; /* NUL-terminated */
    size_t length, capacity;
} buffer;

typedef struct connection {
    fault_proxy *proxy;
    pthread_t thread;
    int socket;
} connection;

struct fault_proxy {
    int listener, port, upstream_port;
    pthread_t acceptor;
    pthread_mutex_t lock; /* of everything below */
    const fault *script;
    size_t script_count;
    bool *is_taken;
    char **heads;
    size_t head_count;
    bool is_stopping;
    connection connections[CONNECTIONS_MAX];
    size_t connection_count;
};

/* Bytes. */

static bool append(buffer *to, const char *bytes, size_t count)
{
    if (to->length + count + 1 > to->capacity) {
        size_t capacity = (to->length + count + 1) * 2;
        char *grown = realloc(to->bytes, capacity);
        if (grown == NULL) return false;
        to->bytes = grown;
        to->capacity = capacity;
    }
    memcpy(to->bytes + to->length, bytes, count);
    to->length += count;
    to->bytes[to->length] = '\0';
    return true;
}

static bool receive_more(int from, buffer *to)
{
    char bytes[16384];
    ssize_t count = recv(from, bytes, sizeof bytes, 0);
    return count > 0 && append(to, bytes, (size_t)count);
}

static bool send_all(int to, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(to, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* Length of the head with its empty line; 0 while that has not come. */
static size_t head_length(const buffer *text)
{
    const char *end = text->length > 0 ? strstr(text->bytes, "\r\n\r\n") : NULL;
    return end != NULL ? (size_t)(end - text->bytes) + 4 : 0;
}

/* The header line of that name within the head, at its first byte; NULL if none. */
static char *find_header(const buffer *text, const char *name)
{
    char *line = strstr(text->bytes, "\r\n");
    char *end = text->bytes + head_length(text) - 2;
    for (; line != NULL && line < end; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, strlen(name)) == 0 && line[2 + strlen(name)] == ':') return line + 2;
    }
    return NULL;
}

static size_t content_length(const buffer *text)
{
    const char *line = find_header(text, "Content-Length");
    return line != NULL ? strtoul(line + strlen("Content-Length:"), NULL, 10) : 0;
}

static void remove_header(buffer *text, const char *name)
{
    char *line = find_header(text, name);
    char *end = line != NULL ? strstr(line, "\r\n") : NULL;
    if (end == NULL) return;
    size_t removed = (size_t)(end + 2 - line);
    memmove(line, end + 2, text->length - (size_t)(end + 2 - text->bytes) + 1);
    text->length -= removed;
}

/* Upstream. */

static int connect_upstream(const fault_proxy *proxy)
{
    int on = 1, to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)proxy->upstream_port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(to, (struct sockaddr *)&address, sizeof address) == 0) return to;
    close(to);
    return -1;
}

/* The server's whole answer, without its wish to close. False when it cannot be had. */
static bool ask_server(const fault_proxy *proxy, const buffer *request, buffer *answer)
{
    static const char close_line[] = "Connection: close\r\n";
    size_t head = head_length(request);
    int to = connect_upstream(proxy);
    answer->length = 0;
    if (to < 0) return false;
    bool sent = send_all(to, request->bytes, head - 2) && send_all(to, close_line, strlen(close_line)) &&
                send_all(to, request->bytes + head - 2, request->length - head + 2);
    while (sent && receive_more(to, answer)) continue;
    close(to);
    if (!sent || head_length(answer) == 0) return false;
    remove_header(answer, "Connection");
    return true;
}

/* What a request meets. */

static bool fits(const char *head, const char *method, const char *target)
{
    size_t method_length = strcspn(head, " ");
    const char *begin = head + method_length + 1;
    if (method != NULL && (strlen(method) != method_length || strncmp(head, method, method_length) != 0)) return false;
    if (target == NULL) return true;
    const char *found = strstr(begin, target);
    return found != NULL && found < begin + strcspn(begin, " \r\n");
}

/* Records the request and takes its fault. */
static fault take_fault(fault_proxy *proxy, const buffer *request)
{
    fault taken = {.kind = FAULT_PASS};
    char *head = strndup(request->bytes, head_length(request));
    pthread_mutex_lock(&proxy->lock);
    char **heads = realloc(proxy->heads, (proxy->head_count + 1) * sizeof *heads);
    if (heads != NULL && head != NULL) {
        proxy->heads = heads;
        proxy->heads[proxy->head_count++] = head;
    }
    for (size_t i = 0; i < proxy->script_count; i++) {
        if (proxy->is_taken[i] || !fits(request->bytes, proxy->script[i].method, proxy->script[i].target)) continue;
        proxy->is_taken[i] = true;
        taken = proxy->script[i];
        break;
    }
    pthread_mutex_unlock(&proxy->lock);
    return taken;
}

static void reset_on_close(int client)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void pause_ms(int delay_ms)
{
    struct timespec pause = {.tv_sec = delay_ms / 1000, .tv_nsec = (delay_ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
}

static bool send_with_length(int client, buffer *answer, size_t length)
{
    char line[64];
    snprintf(line, sizeof line, "Content-Length: %zu\r\n\r\n", length);
    remove_header(answer, "Content-Length");
    size_t head = head_length(answer);
    return send_all(client, answer->bytes, head - 2) && send_all(client, line, strlen(line)) &&
           send_all(client, answer->bytes + head, answer->length - head);
}

/* Carries out the fault. True when the connection goes on. */
static bool serve(fault_proxy *proxy, int client, const buffer *request, const fault *what, buffer *answer)
{
    bool is_local = what->kind == FAULT_DROP_BEFORE || what->kind == FAULT_ANSWER;
    if (!is_local && !ask_server(proxy, request, answer)) return false;
    if (what->kind == FAULT_TWICE && !ask_server(proxy, request, answer)) return false;
    size_t head = is_local ? 0 : head_length(answer);
    switch (what->kind) {
    case FAULT_DROP_BEFORE:
    case FAULT_DROP_AFTER: return false;
    case FAULT_RESET_BEFORE: /* done before the body was read */
    case FAULT_RESET_AFTER: reset_on_close(client); return false;
    case FAULT_ANSWER:
    case FAULT_ANSWER_AFTER: return send_all(client, what->answer, strlen(what->answer));
    case FAULT_HALF_BODY: send_all(client, answer->bytes, head + (answer->length - head) / 2); return false;
    case FAULT_LONG_LENGTH: send_with_length(client, answer, answer->length - head + 7); return false;
    case FAULT_GARBAGE:
        for (size_t i = head; i < answer->length; i++) answer->bytes[i] = (char)(answer->bytes[i] ^ 0x15);
        return send_all(client, answer->bytes, answer->length);
    case FAULT_DELAY: pause_ms(what->delay_ms); break;
    case FAULT_PASS:
    case FAULT_TWICE:
    case FAULT_CLOSE_IDLE: break;
    }
    return send_all(client, answer->bytes, answer->length) && what->kind != FAULT_CLOSE_IDLE;
}

/* One request of a client. False when the connection has come to its end. */
static bool serve_next(fault_proxy *proxy, int client, buffer *request, buffer *answer)
{
    request->length = 0;
    while (head_length(request) == 0) {
        if (!receive_more(client, request)) return false;
    }
    fault what = take_fault(proxy, request);
    if (what.kind == FAULT_RESET_BEFORE) {
        reset_on_close(client);
        return false;
    }
    size_t whole = head_length(request) + content_length(request);
    while (request->length < whole) {
        if (!receive_more(client, request)) return false;
    }
    return serve(proxy, client, request, &what, answer);
}

static void *serve_connection(void *argument)
{
    connection *mine = argument;
    buffer request = {0}, answer = {0};
    while (serve_next(mine->proxy, mine->socket, &request, &answer)) continue;
    free(request.bytes);
    free(answer.bytes);
    pthread_mutex_lock(&mine->proxy->lock);
    close(mine->socket);
    mine->socket = -1;
    pthread_mutex_unlock(&mine->proxy->lock);
    return NULL;
}

static bool adopt(fault_proxy *proxy, int client)
{
    int on = 1;
    bool is_adopted = false;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pthread_mutex_lock(&proxy->lock);
    if (!proxy->is_stopping && proxy->connection_count < CONNECTIONS_MAX) {
        connection *mine = &proxy->connections[proxy->connection_count];
        *mine = (connection){.proxy = proxy, .socket = client};
        is_adopted = pthread_create(&mine->thread, NULL, serve_connection, mine) == 0;
        proxy->connection_count += is_adopted;
    }
    pthread_mutex_unlock(&proxy->lock);
    return is_adopted;
}

static void *accept_all(void *argument)
{
    fault_proxy *proxy = argument;
    for (;;) {
        int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) return NULL;
        if (!adopt(proxy, client)) close(client);
    }
}

/* Start and stop. */

static bool listen_somewhere(fault_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&address, sizeof address) != 0) return false;
    if (listen(proxy->listener, 64) != 0) return false;
    if (getsockname(proxy->listener, (struct sockaddr *)&address, &length) != 0) return false;
    proxy->port = ntohs(address.sin_port);
    return true;
}

static void release(fault_proxy *proxy)
{
    if (proxy->listener >= 0) close(proxy->listener);
    for (size_t i = 0; i < proxy->head_count; i++) free(proxy->heads[i]);
    free(proxy->heads);
    free(proxy->is_taken);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

fault_proxy *fault_proxy_start(int upstream_port, const fault *script, size_t count)
{
    fault_proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL) return NULL;
    pthread_mutex_init(&proxy->lock, NULL);
    proxy->upstream_port = upstream_port;
    proxy->script = script;
    proxy->script_count = count;
    proxy->is_taken = calloc(count + 1, sizeof *proxy->is_taken);
    if (listen_somewhere(proxy) && proxy->is_taken != NULL &&
        pthread_create(&proxy->acceptor, NULL, accept_all, proxy) == 0) {
        return proxy;
    }
    release(proxy);
    return NULL;
}

void fault_proxy_stop(fault_proxy *proxy)
{
    if (proxy == NULL) return;
    pthread_mutex_lock(&proxy->lock);
    proxy->is_stopping = true;
    for (size_t i = 0; i < proxy->connection_count; i++) {
        if (proxy->connections[i].socket >= 0) shutdown(proxy->connections[i].socket, SHUT_RDWR);
    }
    pthread_mutex_unlock(&proxy->lock);
    shutdown(proxy->listener, SHUT_RDWR);
    pthread_join(proxy->acceptor, NULL);
    for (size_t i = 0; i < proxy->connection_count; i++) pthread_join(proxy->connections[i].thread, NULL);
    release(proxy);
}

int fault_proxy_port(const fault_proxy *proxy) { return proxy->port; }

size_t fault_proxy_count(fault_proxy *proxy, const char *method, const char *target)
{
    size_t count = 0;
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < proxy->head_count; i++) count += fits(proxy->heads[i], method, target);
    pthread_mutex_unlock(&proxy->lock);
    return count;
}

const char *fault_proxy_head(fault_proxy *proxy, size_t index)
{
    pthread_mutex_lock(&proxy->lock);
    const char *head = index < proxy->head_count ? proxy->heads[index] : NULL;
    pthread_mutex_unlock(&proxy->lock);
    return head;
}

size_t fault_proxy_unused(fault_proxy *proxy)
{
    size_t count = 0;
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < proxy->script_count; i++) count += !proxy->is_taken[i];
    pthread_mutex_unlock(&proxy->lock);
    return count;
}
