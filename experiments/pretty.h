/* pretty.h - numbers as people read them: for sentences and tables of the report, not for files that programs read
 * (those get the shortest round-trip decimal of text.h). Between number and unit stands a no-break space, U+00A0.
 */
#ifndef LS_PRETTY_H
#define LS_PRETTY_H

#include "experiments/text.h"

typedef enum ls_pretty {
    LS_PRETTY_DIGITS = 0, /* significant digits, thousands grouped by commas: 12,300 */
    LS_PRETTY_PERCENT,    /* of a share: 0.123 is 12 %, 0.9993 is 99.9 % */
    LS_PRETTY_COUNT,      /* rounded to a whole number, grouped */
    LS_PRETTY_BYTES,      /* 3 digits with the binary unit: 1.50 MiB */
    LS_PRETTY_SECONDS,    /* 3 digits with us, ms, s, min, h or d */
    LS_PRETTY_DOLLARS     /* $0.0123, $1,230 */
} ls_pretty;

/* Appends value so written; digits (1 to 15) counts for LS_PRETTY_DIGITS and LS_PRETTY_DOLLARS. "none" for NaN,
 * "infinite" for infinity. */
void ls_text_pretty(ls_text *text, double value, ls_pretty form, int digits);

#endif
