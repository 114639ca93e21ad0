/* fault_proxy.h - an HTTP proxy on loopback that does to requests and answers what networks and servers do on bad days.
 *
 * It runs in threads of the test. A script lists faults; each request takes the first unused fault that fits it, and
 * goes through untouched when none does. Every request that arrives is recorded, so a test can count how often
 * something was really sent. Clients may keep their connections; each request goes upstream on a new one.
 */
#ifndef LS_FAULT_PROXY_H
#define LS_FAULT_PROXY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum fault_kind {
    FAULT_PASS = 0,     /* no fault: uses up a place in the script */
    FAULT_DROP_BEFORE,  /* take the whole request, then close: it never reaches the server */
    FAULT_RESET_BEFORE, /* reset the connection (RST) as soon as the request's head is there */
    FAULT_DROP_AFTER,   /* let the server act, then close without its answer */
    FAULT_RESET_AFTER,  /* the same, by a reset */
    FAULT_DELAY,        /* let the server act at once, answer after delay_ms */
    FAULT_ANSWER,       /* answer with `answer` instead of asking the server */
    FAULT_ANSWER_AFTER, /* let the server act, then answer with `answer` */
    FAULT_HALF_BODY,    /* the head and half the body of the server's answer, then close */
    FAULT_LONG_LENGTH,  /* the server's answer with a Content-Length that is 7 too long, then close */
    FAULT_GARBAGE,      /* the server's answer, every byte of its body made another */
    FAULT_TWICE,     /* send the request to the server twice, pass on the second answer (a transport that re-sends) */
    FAULT_CLOSE_IDLE /* pass, then close the connection while the client is not looking */
} fault_kind;

typedef struct fault {
    fault_kind kind;
    const char *method; /* only requests by this method; NULL: any */
    const char *target; /* only requests whose target holds this text; NULL: any */
    int delay_ms;
    const char *answer; /* a whole HTTP answer */
} fault;

typedef struct fault_proxy fault_proxy;

/* Listens on a free port and forwards to 127.0.0.1:upstream_port. script is borrowed until the stop. NULL on failure.
 */
fault_proxy *fault_proxy_start(int upstream_port, const fault *script, size_t count);
/* Closes all connections, waits for the threads, frees. NULL is allowed. */
void fault_proxy_stop(fault_proxy *proxy);

int fault_proxy_port(const fault_proxy *proxy);
/* Requests seen by this method (NULL: any) whose target holds this text (NULL: any). */
size_t fault_proxy_count(fault_proxy *proxy, const char *method, const char *target);
/* Head (request line and headers) of the index-th request; valid until the stop. NULL when there were fewer. */
const char *fault_proxy_head(fault_proxy *proxy, size_t index);
/* Faults of the script that no request has taken yet. */
size_t fault_proxy_unused(fault_proxy *proxy);

#endif
