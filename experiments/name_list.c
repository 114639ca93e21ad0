/* name_list.c - see name_list.h. */
#include "experiments/name_list.h"

#include "experiments/layer.h"
#include "experiments/text.h"

#include <string.h>

ls_result ls_name_list_add(ls_name_list *list, const char *name, size_t length)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        char **names = ls_reallocate(list->names, capacity * sizeof *names);
        if (names == NULL) return LS_ERROR_MEMORY;
        list->names = names;
        list->capacity = capacity;
    }
    ls_text text = {0};
    ls_text_bytes(&text, name, length);
    char *copy = ls_text_take(&text);
    if (copy == NULL) return LS_ERROR_MEMORY;
    list->names[list->count++] = copy;
    return LS_OK;
}

ls_result ls_name_list_visit(void *list, const char *name)
{
    return ls_name_list_add(list, name, strlen(name));
}

ls_result ls_name_list_split(ls_name_list *list, const char *names)
{
    ls_result result = LS_OK;
    while (names != NULL && *names != '\0' && result == LS_OK) {
        size_t length = strcspn(names, ",");
        if (length > 0) result = ls_name_list_add(list, names, length);
        names += length + (names[length] == ',');
    }
    return result;
}

bool ls_name_list_has(const ls_name_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) return true;
    }
    return false;
}

ls_result ls_name_list_check(const ls_name_list *wanted, const ls_name_list *known, const char *what, ls_error *error)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (ls_name_list_has(known, wanted->names[i])) continue;
        char nearest[128];
        ls_text text = {0};
        for (uint32_t k = 0; k < known->count; k++) ls_text_format(&text, "%s%s", k > 0 ? ", " : "", known->names[k]);
        ls_did_you_mean(wanted->names[i], (const char *const *)known->names, known->count, nearest);
        ls_result result = ls_fail(error, LS_ERROR_INVALID, "no %s \"%.100s\" in these results; there are: %.600s%s", what,
                                   wanted->names[i], text.bytes != NULL ? text.bytes : "none", nearest);
        ls_text_free(&text);
        return result;
    }
    return LS_OK;
}

void ls_name_list_free(ls_name_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) ls_free(list->names[i]);
    ls_free(list->names);
    *list = (ls_name_list){0};
}
