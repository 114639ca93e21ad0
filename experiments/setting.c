/* setting.c - values of options: checked on the way in, shortest form on the way out. The option table alone decides
 * what is allowed; nothing here knows any option by name. */
#include "experiments/setting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_MAXIMUM 9007199254740992.0 /* 2^53: beyond it a JSON number may not be what was written (RFC 8259, 6)  \
                                            */

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

const char *ls_setting_unit(const char *path)
{
    static const struct {
        const char *ending, *unit;
    } units[] = {{"bytes_per_s", "bytes/s"}, {"_per_s", "1/s"}, {"s_per_mib", "s/MiB"},
                 {"s_per_doubling", "s"},    {"_s", "s"},       {"bytes", "bytes"},
                 {"share", "share"},         {"_dollars", "$"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ends_with(path, units[i].ending)) return units[i].unit;
    }
    return "";
}

static void add_choices(ls_text *text, const char *choices)
{
    for (const char *c = choices; *c != '\0'; c++) {
        if (*c == ' ') {
            ls_text_add(text, ", ");
        } else {
            ls_text_bytes(text, c, 1);
        }
    }
}

void ls_setting_expectation(ls_text *text, const ls_option *option)
{
    const char *unit = ls_setting_unit(option->path);
    switch (option->type) {
    case LS_OPTION_REAL:
    case LS_OPTION_INTEGER:
        ls_text_add(text, option->type == LS_OPTION_REAL ? "a number from " : "a whole number from ");
        ls_text_number(text, option->minimum);
        ls_text_add(text, " to ");
        ls_text_number(text, option->maximum);
        if (unit[0] != '\0') ls_text_format(text, " (%s)", unit);
        break;
    case LS_OPTION_CHOICE:
        ls_text_add(text, "one of ");
        add_choices(text, option->choices);
        break;
    case LS_OPTION_FLAG: ls_text_add(text, "true or false"); break;
    case LS_OPTION_TEXT: ls_text_format(text, "a string shorter than %u bytes", LS_OPTION_TEXT_BYTES); break;
    }
}

static ls_result refuse(const ls_option *option, const ls_json *json, const cJSON *value, const char *place,
                        ls_error *error)
{
    ls_text expected = {0};
    ls_setting_expectation(&expected, option);
    ls_text_add(&expected, "");
    char *shown = cJSON_PrintUnformatted(value);
    ls_result result = ls_json_fail(
        json, value, error, LS_ERROR_INVALID, "%.200s: %.100s is not allowed; expected %.300s: %.120s", place,
        shown != NULL ? shown : "this", expected.failed ? "another value" : expected.bytes, option->meaning);
    cJSON_free(shown);
    ls_text_free(&expected);
    return result;
}

static bool assign_number(const ls_option *option, void *field, const cJSON *value)
{
    double number = value->valuedouble;
    if (!cJSON_IsNumber(value) || !(number >= option->minimum && number <= option->maximum)) return false;
    if (option->type == LS_OPTION_REAL) {
        memcpy(field, &number, sizeof number);
        return true;
    }
    if (number < 0.0 || number > INTEGER_MAXIMUM || number != floor(number)) return false;
    uint64_t integer = (uint64_t)number;
    memcpy(field, &integer, sizeof integer);
    return true;
}

static bool assign_choice(const ls_option *option, void *field, const cJSON *value)
{
    if (!cJSON_IsString(value)) return false;
    size_t length = strlen(value->valuestring);
    uint32_t index = 0;
    for (const char *word = option->choices; *word != '\0'; index++) {
        size_t word_length = strcspn(word, " ");
        if (word_length == length && memcmp(word, value->valuestring, length) == 0) {
            memcpy(field, &index, sizeof index);
            return true;
        }
        word += word_length + (word[word_length] == ' ');
    }
    return false;
}

static bool assign_flag(void *field, const cJSON *value)
{
    if (!cJSON_IsBool(value)) return false;
    bool flag = cJSON_IsTrue(value) != 0;
    memcpy(field, &flag, sizeof flag);
    return true;
}

static bool assign_text(void *field, const cJSON *value)
{
    if (!cJSON_IsString(value) || strlen(value->valuestring) >= LS_OPTION_TEXT_BYTES) return false;
    /* Cleared whole, so that equal settings are equal bytes. */
    memset(field, 0, LS_OPTION_TEXT_BYTES);
    memcpy(field, value->valuestring, strlen(value->valuestring));
    return true;
}

ls_result ls_setting_assign(const ls_option *option, void *settings, const ls_json *json, const cJSON *value,
                            const char *place, ls_error *error)
{
    void *field = (char *)settings + option->offset;
    bool taken = false;
    switch (option->type) {
    case LS_OPTION_REAL:
    case LS_OPTION_INTEGER: taken = assign_number(option, field, value); break;
    case LS_OPTION_CHOICE: taken = assign_choice(option, field, value); break;
    case LS_OPTION_FLAG: taken = assign_flag(field, value); break;
    case LS_OPTION_TEXT: taken = assign_text(field, value); break;
    }
    return taken ? LS_OK : refuse(option, json, value, place, error);
}

static void add_choice(ls_text *text, const ls_option *option, uint32_t index)
{
    char word[64];
    const char *found = ls_option_choice(option, index, word);
    ls_text_add(text, found != NULL ? found : "?");
}

void ls_setting_bare(ls_text *text, const ls_option *option, const void *settings)
{
    const void *field = (const char *)settings + option->offset;
    double real;
    uint64_t integer;
    uint32_t index;
    bool flag;
    switch (option->type) {
    case LS_OPTION_REAL:
        memcpy(&real, field, sizeof real);
        ls_text_number(text, real);
        break;
    case LS_OPTION_INTEGER:
        memcpy(&integer, field, sizeof integer);
        ls_text_format(text, "%" PRIu64, integer);
        break;
    case LS_OPTION_CHOICE:
        memcpy(&index, field, sizeof index);
        add_choice(text, option, index);
        break;
    case LS_OPTION_FLAG:
        memcpy(&flag, field, sizeof flag);
        ls_text_add(text, flag ? "true" : "false");
        break;
    case LS_OPTION_TEXT: ls_text_add(text, field); break;
    }
}

void ls_setting_json(ls_text *text, const ls_option *option, const void *settings)
{
    if (option->type != LS_OPTION_TEXT && option->type != LS_OPTION_CHOICE) {
        ls_setting_bare(text, option, settings);
        return;
    }
    ls_text bare = {0};
    ls_setting_bare(&bare, option, settings);
    ls_text_add(&bare, "");
    if (bare.failed) {
        text->failed = true;
    } else {
        ls_text_json(text, bare.bytes);
    }
    ls_text_free(&bare);
}

void ls_setting_default(ls_text *text, const ls_option *option)
{
    switch (option->type) {
    case LS_OPTION_REAL:
    case LS_OPTION_INTEGER: ls_text_number(text, option->default_number); break;
    case LS_OPTION_CHOICE: add_choice(text, option, (uint32_t)option->default_number); break;
    case LS_OPTION_FLAG: ls_text_add(text, option->default_number != 0.0 ? "true" : "false"); break;
    case LS_OPTION_TEXT: ls_text_add(text, option->default_text != NULL ? option->default_text : ""); break;
    }
}
