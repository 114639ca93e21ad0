/* strange.c - a plug-in for the tests: the structs that it knows have other sizes. */
#include "policies/plugin.h"

extern const ls_policy_plugin ls_policy_plugin_offer;
const ls_policy_plugin ls_policy_plugin_offer = {.interface = LS_POLICY_INTERFACE, .policy_bytes = sizeof(ls_policy), .view_bytes = 8};
