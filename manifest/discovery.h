/* discovery.h - how a machine finds the newest manifest version and reads it: list, probe or gallop; whole or by its tail.
 *
 * Floors. Where old versions are deleted, a name can be created a second time by a writer that slept from before the deletion
 * (SlateDB issues 352 and 1622). So before anything is deleted an object floor/<F> is written: versions below F are void. Whoever
 * draws a consequence from version v, its own put or another's object, afterwards lists floors above v; if there is none then,
 * the name v had never been deleted when it was put or read, because every deletion follows its floor. Otherwise it starts
 * its search anew, from the greatest floor. The check costs one list for each commit that won, and carries no clock.
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
    uint64_t floor;     /* cold search: versions below are void */
    bool asks_floor;    /* the question in flight, or the next one, is about floors */
} ls_search;

typedef enum ls_search_state {
    LS_SEARCH_ON = 1, /* ask the next question */
    LS_SEARCH_OVER,   /* candidate is the newest version (0: there is none) */
    LS_SEARCH_FAILED  /* the store did not answer; the reply's status says why */
} ls_search_state;

/* known_version 0 begins a cold search. */
void ls_search_start(ls_search *search, const ls_protocol *protocol, uint64_t known_version);

/* Fills the operation, key and limit of the next question. */
void ls_search_ask(ls_search *search, const ls_protocol *protocol, ls_store_request *request);

/* Takes the answer to the last question into account. */
ls_search_state ls_search_answer(ls_search *search, const ls_store_reply *reply);

/* Fills the list that tells whether a floor lies above a version: the version counts if the reply's list_count is 0. */
void ls_confirm_version(uint64_t version, ls_store_request *request);

/* Fills the read of a version by somebody who has `known` (never NULL; version 0: nothing): the whole object, or under layout
 * full-tail the suffix that is expected to suffice. request->known is borrowed from the caller until the reply. */
void ls_read_version(const ls_protocol *protocol, const ls_manifest *known, uint64_t version, ls_store_request *request);

#endif
