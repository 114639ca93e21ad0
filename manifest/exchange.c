/* exchange.c - names of operations and replies, as logs, traces and messages print them (see exchange.h). */
#include "manifest/exchange.h"

const char *ls_operation_name(ls_operation operation)
{
    switch (operation) {
    case LS_GET: return "get";
    case LS_PUT: return "put";
    case LS_HEAD: return "head";
    case LS_DELETE: return "delete";
    case LS_LIST: return "list";
    }
    return "unknown operation";
}

const char *ls_reply_status_name(ls_reply_status status)
{
    switch (status) {
    case LS_REPLY_OK: return "ok";
    case LS_REPLY_EXISTS: return "exists";
    case LS_REPLY_NOT_FOUND: return "not found";
    case LS_REPLY_CONFLICT_RETRY: return "conflict, retry";
    case LS_REPLY_THROTTLED: return "throttled";
    case LS_REPLY_UNAVAILABLE: return "unavailable";
    case LS_REPLY_UNKNOWN_OUTCOME: return "unknown outcome";
    case LS_REPLY_DENIED: return "denied";
    case LS_REPLY_INVALID: return "invalid";
    }
    return "unknown reply";
}
