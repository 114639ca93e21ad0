/* plugin.h - how a policy built outside this tree offers itself: all that a plug-in's source has to include.
 *
 * A plug-in is a shared object with one exported object, made by LS_POLICY_PLUGIN at the end of its source:
 *
 *     static const ls_policy mine = {.name = "mine", .rule = "...", .source = "...", .parameters = parameters,
 *                                    .parameter_count = LS_COUNT_OF(parameters), .decide = decide};
 *     LS_POLICY_PLUGIN(&mine)
 *
 * It is built with `cc -shared -fPIC $(pkg-config --cflags lakestream) mine.c -o mine.so` and loaded with
 * `lakestream --plugin ./mine.so ...`; the functions that it calls (ls_after, ls_draw_between, ls_random_uniform, ...)
 * are those of the program that loads it. The descriptor carries the interface's number and the sizes of the structs that cross
 * it, as the plug-in was compiled; a program that disagrees in any of them refuses to load it and says which.
 *
 * The rules for a policy stand in policy.h; `lakestream policy-test mine.so` checks them.
 */
#ifndef LS_POLICY_PLUGIN_H
#define LS_POLICY_PLUGIN_H

#include "policies/common.h"

/* Raised whenever the meaning of a field or a rule changes; added fields change the sizes. */
#define LS_POLICY_INTERFACE 1u

#define LS_POLICY_PLUGIN_SYMBOL "ls_policy_plugin_offer"

typedef struct ls_policy_plugin {
    uint32_t interface;
    uint32_t policy_bytes;
    uint32_t view_bytes;
    uint32_t decision_bytes;
    uint32_t state_bytes;
    uint32_t policy_count;
    const ls_policy *const *policies;
} ls_policy_plugin;

/* Offers the policies given as a list of pointers. */
#define LS_POLICY_PLUGIN(...)                                                                                          \
    static const ls_policy *const ls_policy_plugin_list[] = {__VA_ARGS__};                                             \
    extern const ls_policy_plugin ls_policy_plugin_offer;                                                              \
    __attribute__((visibility("default"))) const ls_policy_plugin ls_policy_plugin_offer = {                           \
        .interface = LS_POLICY_INTERFACE,                                                                              \
        .policy_bytes = sizeof(ls_policy),                                                                             \
        .view_bytes = sizeof(ls_commit_view),                                                                          \
        .decision_bytes = sizeof(ls_commit_decision),                                                                  \
        .state_bytes = LS_POLICY_STATE_BYTES,                                                                          \
        .policy_count = LS_COUNT_OF(ls_policy_plugin_list),                                                            \
        .policies = ls_policy_plugin_list};

/* What is wrong with a policy's declaration (a name that no spec could say, a default outside its range, a parameter twice, no
 * decide, more parameters than fit), if anything: LS_ERROR_INVALID. */
ls_result ls_policy_check(const ls_policy *policy, ls_error *error);

#endif
