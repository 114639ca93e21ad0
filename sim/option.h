/* option.h - settings as rows of a table: one row gives path, type, unit, default, range and meaning of one setting.
 *
 * Spec reading, validation, resolved output, help and documentation all come from such tables. A row's offset says where
 * the value lives in the settings struct (ls_scenario). Pure data, no ownership.
 */
#ifndef LS_OPTION_H
#define LS_OPTION_H

#include "manifest/base.h"

typedef enum ls_option_type {
    LS_OPTION_REAL = 1, /* double */
    LS_OPTION_INTEGER,  /* uint64_t, below 2^53 */
    LS_OPTION_CHOICE,   /* uint32_t: index of the word in `choices` */
    LS_OPTION_FLAG,     /* bool */
    LS_OPTION_TEXT      /* char[LS_OPTION_TEXT_BYTES], NUL-terminated */
} ls_option_type;

#define LS_OPTION_TEXT_BYTES 256u

typedef struct ls_option {
    const char *path; /* dotted: "producers.count"; the unit stands in the name (_s, _bytes, _per_s) */
    ls_option_type type;
    size_t offset;
    double default_number;    /* real, integer, choice (index), flag (0 or 1) */
    const char *default_text; /* text, else NULL */
    double minimum;           /* inclusive; real and integer */
    double maximum;           /* inclusive */
    const char *choices;      /* choice: words separated by one space, in enum order */
    const char *meaning;      /* one sentence, no full stop */
} ls_option;

/* Sets every value of a table to its default. */
void ls_options_default(const ls_option *options, uint32_t count, void *settings);

/* The word of a choice row by index; NULL when out of range. Writes it into word. */
const char *ls_option_choice(const ls_option *option, uint32_t index, char word[64]);

#endif
