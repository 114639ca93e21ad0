/* option.c - the helpers of option tables: defaults into a settings struct, words of a choice. */
#include "sim/option.h"

#include <stdio.h>
#include <string.h>

static void set_default(const ls_option *option, char *place)
{
    switch (option->type) {
    case LS_OPTION_REAL: memcpy(place, &option->default_number, sizeof(double)); return;
    case LS_OPTION_INTEGER: {
        uint64_t value = (uint64_t)option->default_number;
        memcpy(place, &value, sizeof value);
        return;
    }
    case LS_OPTION_CHOICE: {
        uint32_t value = (uint32_t)option->default_number;
        memcpy(place, &value, sizeof value);
        return;
    }
    case LS_OPTION_FLAG: {
        bool value = option->default_number != 0.0;
        memcpy(place, &value, sizeof value);
        return;
    }
    case LS_OPTION_TEXT:
        memset(place, 0, LS_OPTION_TEXT_BYTES);
        if (option->default_text != NULL) snprintf(place, LS_OPTION_TEXT_BYTES, "%s", option->default_text);
        return;
    }
}

void ls_options_default(const ls_option *options, uint32_t count, void *settings)
{
    for (uint32_t i = 0; i < count; i++) set_default(&options[i], (char *)settings + options[i].offset);
}

const char *ls_option_choice(const ls_option *option, uint32_t index, char word[64])
{
    if (option->choices == NULL) return NULL;
    const char *start = option->choices;
    for (; index > 0; index--) {
        start = strchr(start, ' ');
        if (start == NULL) return NULL;
        start++;
    }
    size_t length = strcspn(start, " ");
    if (length == 0 || length >= 64) return NULL;
    memcpy(word, start, length);
    word[length] = '\0';
    return word;
}
