/* old.c - a plug-in for the tests: it was made for another interface. */
#include "policies/plugin.h"

extern const ls_policy_plugin ls_policy_plugin_offer;
const ls_policy_plugin ls_policy_plugin_offer = {.interface = LS_POLICY_INTERFACE + 1};
