/* setting.h - one option of a scenario as text and from JSON: what option.h's rows mean to people. */
#ifndef LS_SETTING_H
#define LS_SETTING_H

#include "experiments/json.h"
#include "experiments/text.h"
#include "sim/option.h"

/* The unit that a path's ending states ("s", "bytes", "1/s", "share"), or "" if none. */
const char *ls_setting_unit(const char *path);

/* Adds what a value of this option must be: "a number from 0 to 1 (share)", "one of list, probe, gallop". */
void ls_setting_expectation(ls_text *text, const ls_option *option);

/* Puts a JSON value into settings. place is the value's path in the spec, for the message. LS_ERROR_INVALID when the
 * type or the range is not the option's. */
ls_result ls_setting_assign(const ls_option *option, void *settings, const ls_json *json, const cJSON *value,
                            const char *place, ls_error *error);

/* Adds the option's present value: as JSON (text quoted), or bare for a table. */
void ls_setting_json(ls_text *text, const ls_option *option, const void *settings);
void ls_setting_bare(ls_text *text, const ls_option *option, const void *settings);

/* Adds the option's default, bare. */
void ls_setting_default(ls_text *text, const ls_option *option);

#endif
