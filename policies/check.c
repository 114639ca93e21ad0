/* check.c - what a policy's declaration must be before anybody may name it in a spec: the part of policy.h's rules that can be read off
 * the table. It holds for the program's own policies as for plug-ins. */
#include "policies/plugin.h"

#include <math.h>
#include <string.h>

#define NAME_BYTES_MAX 48u

/* Names are written in specs, on command lines and in file names: lower-case words joined by - or _. */
static bool is_name(const char *name)
{
    if (name == NULL || name[0] < 'a' || name[0] > 'z' || strlen(name) > NAME_BYTES_MAX) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static bool is_text(const char *text) { return text != NULL && text[0] != '\0'; }

static ls_result check_parameter(const ls_policy *policy, uint32_t index, ls_error *error)
{
    const ls_policy_parameter *parameter = &policy->parameters[index];
    if (!is_name(parameter->name)) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s': parameter %u needs a name of a-z, 0-9, _ and -, at most %u long",
                       policy->name, index, NAME_BYTES_MAX);
    }
    if (strcmp(parameter->name, "name") == 0) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s': a parameter cannot be called 'name': in specs that key names the policy",
                       policy->name);
    }
    if (!is_text(parameter->unit) || !is_text(parameter->meaning)) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s': parameter '%s' needs a unit (\"1\" for none) and a meaning", policy->name,
                       parameter->name);
    }
    if (!isfinite(parameter->minimum) || !isfinite(parameter->maximum) || !(parameter->default_value >= parameter->minimum) ||
        !(parameter->default_value <= parameter->maximum)) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s': the default of '%s' is %g, outside its range %g to %g", policy->name,
                       parameter->name, parameter->default_value, parameter->minimum, parameter->maximum);
    }
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(policy->parameters[i].name, parameter->name) != 0) continue;
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s' declares parameter '%s' twice", policy->name, parameter->name);
    }
    return LS_OK;
}

ls_result ls_policy_check(const ls_policy *policy, ls_error *error)
{
    if (policy == NULL) return ls_fail(error, LS_ERROR_INVALID, "the list of policies holds a null pointer");
    if (!is_name(policy->name)) {
        return ls_fail(error, LS_ERROR_INVALID, "a policy needs a name of a-z, 0-9, _ and -, at most %u long", NAME_BYTES_MAX);
    }
    if (!is_text(policy->rule) || !is_text(policy->source)) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s' needs a rule and a source (\"ours\" for your own)", policy->name);
    }
    if (policy->decide == NULL) return ls_fail(error, LS_ERROR_INVALID, "policy '%s' has no decide function", policy->name);
    if (policy->parameter_count > LS_POLICY_PARAMETERS_MAX || (policy->parameter_count > 0 && policy->parameters == NULL)) {
        return ls_fail(error, LS_ERROR_INVALID, "policy '%s' has %u parameters, at most %u fit and the table must be there", policy->name,
                       policy->parameter_count, LS_POLICY_PARAMETERS_MAX);
    }
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < policy->parameter_count && result == LS_OK; i++) result = check_parameter(policy, i, error);
    return result;
}
