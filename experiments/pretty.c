/* pretty.c - see pretty.h. Rounding is done once, by printf in scientific notation, so that 999.7 at three digits
 * becomes 1,000 and not 1e+03. */
#include "experiments/pretty.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_BREAK "\xc2\xa0" /* U+00A0: number and unit stay on one line */

static void add_grouped(ls_text *text, const char *number)
{
    size_t whole = strcspn(number, "."), start = number[0] == '-' ? 1 : 0;
    bool grouped = whole - start > 3;
    for (size_t i = 0; i < whole; i++) {
        if (grouped && i > start && (whole - i) % 3 == 0) ls_text_add(text, ",");
        ls_text_bytes(text, number + i, 1);
    }
    ls_text_add(text, number + whole);
}

static void add_digits(ls_text *text, double value, int digits)
{
    char number[400];
    if (value == 0.0) {
        ls_text_add(text, "0");
        return;
    }
    snprintf(number, sizeof number, "%.*e", digits - 1, value);
    double rounded = strtod(number, NULL);
    int exponent = (int)strtol(strchr(number, 'e') + 1, NULL, 10);
    if (exponent < -5 || exponent > 15) {
        snprintf(number, sizeof number, "%.*g", digits, rounded);
        ls_text_add(text, number);
        return;
    }
    int decimals = digits - 1 - exponent;
    snprintf(number, sizeof number, "%.*f", decimals > 0 ? decimals : 0, rounded);
    add_grouped(text, number);
}

/* Two digits, three near 1, where the last ones tell most. A whole number stays whole. */
static void add_percent(ls_text *text, double share)
{
    double percent = 100.0 * share;
    bool near_all = fabs(percent) >= 90.0 && fabs(percent) < 99.95;
    if (percent == round(percent) || fabs(percent) >= 99.95) {
        char number[400];
        snprintf(number, sizeof number, "%.0f", percent);
        add_grouped(text, number);
    } else {
        add_digits(text, percent, near_all ? 3 : 2);
    }
    ls_text_add(text, NO_BREAK "%");
}

static void add_scaled(ls_text *text, double value, const double *sizes, const char *const *names, size_t count)
{
    size_t unit = 0;
    /* 999.5 and above would be written with four digits. */
    while (unit + 1 < count && fabs(value) >= 0.9995 * sizes[unit + 1]) unit++;
    add_digits(text, value / sizes[unit], 3);
    ls_text_format(text, NO_BREAK "%s", names[unit]);
}

static void add_bytes(ls_text *text, double value)
{
    static const double sizes[] = {1, 1024, 1048576, 1073741824, 1099511627776, 1125899906842624};
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    add_scaled(text, value, sizes, names, 6);
}

static void add_seconds(ls_text *text, double value)
{
    static const double sizes[] = {1e-6, 1e-3, 1, 60, 3600, 86400};
    static const char *const names[] = {"us", "ms", "s", "min", "h", "d"};
    if (value == 0.0) {
        ls_text_add(text, "0" NO_BREAK "s");
        return;
    }
    add_scaled(text, value, sizes, names, 6);
}

static void add_dollars(ls_text *text, double value, int digits)
{
    ls_text_add(text, value < 0 ? "-$" : "$");
    add_digits(text, fabs(value), digits);
}

void ls_text_pretty(ls_text *text, double value, ls_pretty form, int digits)
{
    digits = digits < 1 ? 1 : digits > 15 ? 15 : digits;
    if (isnan(value)) {
        ls_text_add(text, "none");
        return;
    }
    if (isinf(value)) {
        ls_text_add(text, value > 0 ? "infinite" : "-infinite");
        return;
    }
    char number[400];
    switch (form) {
    case LS_PRETTY_DIGITS: add_digits(text, value, digits); break;
    case LS_PRETTY_PERCENT: add_percent(text, value); break;
    case LS_PRETTY_COUNT:
        snprintf(number, sizeof number, "%.0f", round(value) == 0.0 ? 0.0 : value);
        add_grouped(text, number);
        break;
    case LS_PRETTY_BYTES: add_bytes(text, value); break;
    case LS_PRETTY_SECONDS: add_seconds(text, value); break;
    case LS_PRETTY_DOLLARS: add_dollars(text, value, digits); break;
    }
}
