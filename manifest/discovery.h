/* discovery.h - how a machine finds the newest manifest version and reads it: list, probe or gallop; whole or by its tail.
 *
 * Shared by every machine that follows the manifest, so that the rule stands once. The caller sends the request it is given
 * and hands back the reply; ls_search is plain data.
 */
#ifndef LS_DISCOVERY_H
#define LS_DISCOVERY_H

#include "manifest/protocol.h"

typedef struct ls_search {
    uint64_t known;     /* the version the caller has; 0: none, the search is cold */
    uint64_t candidate; /* the newest version known to exist, or `known` */
    uint64_t missing;   /* a version found missing, 0 if none yet */
    uint64_t probed;    /* the version that the question in flight is about; 0: it is a list */
    uint64_t stride;    /* gallop: the next step */
} ls_search;

typedef enum ls_search_state {
    LS_SEARCH_ON = 1, /* ask the next question */
    LS_SEARCH_OVER,   /* candidate is the newest version (0: there is none) */
    LS_SEARCH_FAILED  /* the store did not answer; the reply's status says why */
} ls_search_state;

void ls_search_start(ls_search *search, uint64_t known_version);

/* Fills the operation, key and limit of the next question. */
void ls_search_ask(ls_search *search, const ls_protocol *protocol, ls_store_request *request);

/* Takes the answer to the last question into account. */
ls_search_state ls_search_answer(ls_search *search, const ls_store_reply *reply);

/* Fills the read of a version by somebody who has `known` (never NULL; version 0: nothing): the whole object, or under layout
 * full-tail the suffix that is expected to suffice. request->known is borrowed from the caller until the reply. */
void ls_read_version(const ls_protocol *protocol, const ls_manifest *known, uint64_t version, ls_store_request *request);

#endif
