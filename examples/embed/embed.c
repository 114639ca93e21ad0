/* embed.c - the protocol inside somebody else's event loop: two producers and a consumer on a bare poll(2) loop and a store of its own.
 *
 * What it shows is that the machines need nothing but events: no thread, clock or socket of the library is used, only manifest/ and
 * policies/. The store below is a table in memory whose answers come a few milliseconds later, in another order than asked. Replace
 * serve() by your own client, and add_timer() by your own loop's timers. Ends with 0 when the consumer got every batch of both.
 */
#include "manifest/consumer.h"
#include "manifest/producer.h"
#include "policies/policy.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES   20u
#define PRODUCERS 2u
#define CONSUMER  PRODUCERS /* the machines' numbers: producers first */
#define WAITING   256u
#define OBJECTS   4096u

/* What will happen: a machine's wake-up (request.operation 0) or the effect and answer of its request. */
typedef struct later {
    int64_t at_ns;
    uint32_t machine;
    ls_store_request request;
} later;

typedef struct object {
    ls_key key;
    uint64_t bytes;
    const ls_manifest *manifest;
} object;

static ls_protocol protocol;
static ls_producer producers[PRODUCERS];
static ls_consumer consumer;
static uint32_t given[PRODUCERS];
static uint64_t steps;
static later waiting[WAITING];
static uint32_t waiting_count;
static object objects[OBJECTS];
static uint32_t object_count;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * LS_NANOSECONDS_PER_SECOND + now.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "embed: %s\n", what);
    exit(1);
}

static void add_timer(int64_t at_ns, uint32_t machine, const ls_store_request *request)
{
    if (waiting_count == WAITING) fail("too much is waited for");
    waiting[waiting_count++] = (later){.at_ns = at_ns, .machine = machine, .request = request != NULL ? *request : (ls_store_request){0}};
}

/* --- a store of one's own ------------------------------------------------------------------------------------------------ */

static object *find(const ls_key *key)
{
    for (uint32_t i = 0; i < object_count; i++) {
        if (ls_key_compare(&objects[i].key, key) == 0) return &objects[i];
    }
    return NULL;
}

static void put(const ls_store_request *request, ls_store_reply *reply)
{
    if (find(&request->key) != NULL) {
        reply->status = LS_REPLY_EXISTS; /* every put of the protocol is put-if-absent or of a fresh name */
        ls_manifest_release(request->manifest);
        return;
    }
    if (object_count == OBJECTS) fail("the store is full");
    objects[object_count++] = (object){request->key, request->body_bytes, request->manifest};
}

static void list(const ls_store_request *request, ls_store_reply *reply)
{
    for (uint32_t i = 0; i < object_count; i++) {
        const ls_key *key = &objects[i].key;
        if (key->kind != request->key.kind || ls_key_compare(key, &request->key) <= 0) continue;
        if (reply->list_count++ == 0 || ls_key_compare(key, &reply->list_last) > 0) reply->list_last = *key;
    }
}

static void get(const ls_store_request *request, ls_store_reply *reply)
{
    const object *found = find(&request->key);
    if (found == NULL) {
        reply->status = LS_REPLY_NOT_FOUND;
        return;
    }
    reply->object_bytes = found->bytes;
    if (found->manifest != NULL && request->operation == LS_GET) reply->manifest = ls_manifest_retain(found->manifest);
    reply->slice = request->slice;
    if (request->range == LS_RANGE_SUFFIX) reply->slice.bytes = 1; /* a real driver reads the footer: manifest/tgb.h */
}

static void serve(const ls_store_request *request, ls_store_reply *reply)
{
    *reply = (ls_store_reply){.status = LS_REPLY_OK, .tag = request->tag};
    if (request->operation == LS_PUT) put(request, reply);
    else if (request->operation == LS_LIST) list(request, reply);
    else get(request, reply);
}

/* --- the machines ---------------------------------------------------------------------------------------------------------- */

static void act(uint32_t machine, const ls_action *action)
{
    if (action->kind == LS_ACTION_REQUEST) {
        add_timer(now_ns() + 1000000 * (1 + rand() % 8), machine, &action->request);
    } else if (action->kind == LS_ACTION_WAKE && action->wake_ns != LS_NEVER_NS) {
        add_timer(action->wake_ns, machine, NULL);
    } else if (action->kind == LS_ACTION_PUBLISHED) {
        printf("producer %u: %u more visible in version %llu\n", machine + 1, action->published.count,
               (unsigned long long)action->published.version);
    } else if (action->kind == LS_ACTION_STEP) {
        printf("consumer: step %llu, from producer %llu\n", (unsigned long long)action->step.step,
               (unsigned long long)action->step.entry.producer);
        steps++;
    } else if (action->kind == LS_ACTION_FAILED || action->kind == LS_ACTION_FENCED) {
        fail("a machine stopped");
    }
}

static void feed(uint32_t machine, ls_event event)
{
    ls_actions actions;
    event.now_ns = now_ns();
    ls_result result = machine == CONSUMER ? ls_consumer_step(&consumer, &event, &actions)
                                           : ls_producer_step(&producers[machine], &event, &actions);
    if (result != LS_OK) fail(ls_result_name(result));
    for (uint32_t i = 0; i < actions.count; i++) act(machine, &actions.item[i]);
}

/* A producer that has joined and has room gets its next batch; after the last, its stop. */
static void offer(uint32_t machine)
{
    ls_producer *p = &producers[machine];
    if (!p->joined || given[machine] > BATCHES) return;
    if (given[machine] == BATCHES) {
        feed(machine, (ls_event){.kind = LS_EVENT_STOP});
    } else if (ls_producer_has_room(p)) {
        feed(machine, (ls_event){.kind = LS_EVENT_BATCH, .batch_bytes = 1 << 20, .batch_source_count = 1, .batch_footer_bytes = 64});
    } else {
        return;
    }
    given[machine]++;
}

static void happen(const later *what)
{
    ls_store_reply reply;
    if (what->request.operation == 0) {
        feed(what->machine, (ls_event){.kind = LS_EVENT_TIMER});
    } else {
        serve(&what->request, &reply);
        feed(what->machine, (ls_event){.kind = LS_EVENT_REPLY, .reply = &reply});
    }
    if (what->machine < PRODUCERS) offer(what->machine);
}

int main(void)
{
    ls_error error;
    ls_policy_instance policy;
    protocol = ls_protocol_default();
    if (ls_policy_instantiate("backoff-full", &policy, &error) != LS_OK) fail(error.text);
    protocol.decider = ls_policy_decider(&policy);
    ls_consumer_config config = {.window = 4, .follow = true, .poll_ns = 20000000};
    if (ls_consumer_init(&consumer, &protocol, &config, 0) != LS_OK) fail("no consumer");
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        ls_producer_init(&producers[i], &protocol, i + 1, (uint64_t)now_ns() + i, ls_random_open(1, 0, LS_RANDOM_POLICY, i));
    }
    for (uint32_t i = 0; i <= CONSUMER; i++) feed(i, (ls_event){.kind = LS_EVENT_START});
    while (steps < PRODUCERS * BATCHES && waiting_count > 0) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < waiting_count; i++) next = waiting[i].at_ns < waiting[next].at_ns ? i : next;
        int64_t wait_ns = waiting[next].at_ns - now_ns();
        if (wait_ns > 0) {
            poll(NULL, 0, (int)(wait_ns / 1000000) + 1);
            continue;
        }
        later what = waiting[next];
        waiting[next] = waiting[--waiting_count];
        happen(&what);
    }
    printf("%llu of %u steps\n", (unsigned long long)steps, PRODUCERS * BATCHES);
    return steps == PRODUCERS * BATCHES ? 0 : 1;
}
