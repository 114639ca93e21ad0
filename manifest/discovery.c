/* discovery.c - searching for the newest version (see discovery.h).
 *
 *   list    names after the last known version, in pages; the last name of the last page is the newest
 *   probe   known+1, known+2, ... until one is missing
 *   gallop  known+1, +2, +4, ... until one is missing, then bisection between the last hit and the first miss
 *
 * Versions above a known one are dense, because each is created on top of the one before and deletion eats from the oldest
 * side only; so a missing version proves that none above it exists. Who knows nothing asks for one name, the oldest
 * that is left at or above the floor, and gallops from there: pages of a thousand names would cost a request for every thousand versions.
 */
#include "manifest/discovery.h"

/* A tail read asks for somewhat more than it expects to need: a second read costs a round trip. */
#define TAIL_ENTRIES_SLACK 16u
#define TAIL_ENTRIES_PER_VERSION 4u

void ls_search_start(ls_search *search, const ls_protocol *protocol, uint64_t known_version)
{
    *search = (ls_search){.known = known_version, .candidate = known_version, .stride = 1,
                          .asks_floor = protocol->floor_check && known_version == 0};
}

static void ask_list(ls_search *search, uint32_t limit, ls_store_request *request)
{
    search->probed = 0;
    request->operation = LS_LIST;
    request->key = ls_key_manifest(search->candidate == 0 && search->floor > 0 ? search->floor - 1 : search->candidate);
    request->list_limit = limit;
}

static void ask_head(ls_search *search, uint64_t version, ls_store_request *request)
{
    search->probed = version;
    request->operation = LS_HEAD;
    request->key = ls_key_manifest(version);
}

void ls_search_ask(ls_search *search, const ls_protocol *protocol, ls_store_request *request)
{
    bool cold = search->known == 0;
    if (search->asks_floor) {
        search->probed = 0;
        request->operation = LS_LIST;
        request->key = ls_key_floor(search->floor);
        request->list_limit = protocol->list_limit;
    } else if (cold && search->candidate == 0) {
        ask_list(search, 1, request);
    } else if (!cold && protocol->discovery == LS_DISCOVERY_LIST) {
        ask_list(search, protocol->list_limit, request);
    } else if (!cold && protocol->discovery == LS_DISCOVERY_PROBE) {
        ask_head(search, search->candidate + 1, request);
    } else if (search->missing == 0) {
        ask_head(search, search->candidate + search->stride, request);
    } else {
        ask_head(search, search->candidate + (search->missing - search->candidate) / 2, request);
    }
}

ls_search_state ls_search_answer(ls_search *search, const ls_store_reply *reply)
{
    bool was_list = search->probed == 0;
    if (reply->status != LS_REPLY_OK && (was_list || reply->status != LS_REPLY_NOT_FOUND)) return LS_SEARCH_FAILED;
    if (search->asks_floor) {
        if (reply->list_count > 0) search->floor = reply->list_last.number;
        search->asks_floor = reply->list_truncated;
        return LS_SEARCH_ON;
    }
    if (was_list) {
        if (reply->list_count == 0) return LS_SEARCH_OVER;
        search->candidate = reply->list_last.number;
        return search->known == 0 || reply->list_truncated ? LS_SEARCH_ON : LS_SEARCH_OVER;
    }
    if (reply->status == LS_REPLY_OK) {
        search->candidate = search->probed;
        search->stride *= 2;
    } else {
        search->missing = search->probed;
    }
    return search->missing == search->candidate + 1 ? LS_SEARCH_OVER : LS_SEARCH_ON;
}

void ls_confirm_version(uint64_t version, ls_store_request *request)
{
    request->operation = LS_LIST;
    request->key = ls_key_floor(version);
    request->list_limit = 1;
}

void ls_read_version(const ls_protocol *protocol, const ls_manifest *known, uint64_t version, ls_store_request *request)
{
    request->operation = LS_GET;
    request->key = ls_key_manifest(version);
    uint64_t known_version = ls_manifest_version(known);
    if (protocol->layout != LS_LAYOUT_FULL_TAIL || known_version == 0) return;
    uint64_t versions = version - known_version;
    request->range = LS_RANGE_SUFFIX;
    request->known = known;
    request->range_bytes = LS_MANIFEST_FOOTER_BYTES +
                           LS_MANIFEST_ROW_BYTES * ((uint64_t)ls_manifest_row_count(known) + versions) +
                           LS_MANIFEST_ENTRY_BYTES * (TAIL_ENTRIES_PER_VERSION * versions + TAIL_ENTRIES_SLACK);
}
