/* name_list.h - a growing list of names: what "--metric a,b" says, what a results file holds; with the message for a name
 * that is not among them. */
#ifndef LS_NAME_LIST_H
#define LS_NAME_LIST_H

#include "manifest/base.h"

typedef struct ls_name_list {
    char **names; /* owned */
    uint32_t count;
    uint32_t capacity;
} ls_name_list;

/* Starts from a zeroed struct. Adds a copy of the first length bytes of name; LS_ERROR_MEMORY. */
ls_result ls_name_list_add(ls_name_list *list, const char *name, size_t length);

/* The same as a visit of results.h: context is the list. */
ls_result ls_name_list_visit(void *list, const char *name);

/* Adds the names of "a,b"; NULL adds none. LS_ERROR_MEMORY. */
ls_result ls_name_list_split(ls_name_list *list, const char *names);

bool ls_name_list_has(const ls_name_list *list, const char *name);

/* LS_OK when every name of wanted is among known; else LS_ERROR_INVALID with the nearest one. what: "metric". */
ls_result ls_name_list_check(const ls_name_list *wanted, const ls_name_list *known, const char *what, ls_error *error);

void ls_name_list_free(ls_name_list *list);

#endif
