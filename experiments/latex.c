/* latex.c - see latex.h: a table of replacements, the first that fits wins. */
#include "experiments/latex.h"

#include <string.h>

static const struct {
    const char *plain, *latex;
} replacements[] = {
    {"\\", "\\textbackslash{}"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"$", "\\$"},
    {"&", "\\&"},
    {"#", "\\#"},
    {"%", "\\%"},
    {"_", "\\_\\allowbreak{}"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "\\textless{}"},
    {">", "\\textgreater{}"},
    {"|", "\\textbar{}"},
    {"\"", "''"},
    {"--", "-{}-"}, /* no dash: an option's name */
    {"\xc2\xa0", "~"},
    {"\xc2\xb1", "\\(\\pm\\)"},
    {"\xc3\x97", "\\(\\times\\)"},
};

/* Appends what stands at `at`; returns how many bytes of it were used. */
static size_t add_one(ls_text *text, const char *at)
{
    for (size_t i = 0; i < sizeof replacements / sizeof replacements[0]; i++) {
        size_t length = strlen(replacements[i].plain);
        if (strncmp(at, replacements[i].plain, length) != 0) continue;
        ls_text_add(text, replacements[i].latex);
        return length;
    }
    ls_text_bytes(text, at, 1);
    return 1;
}

void ls_latex_text(ls_text *text, const char *string)
{
    bool typed = false;
    for (const char *at = string; *at != '\0';) {
        if (*at != '`') {
            at += add_one(text, at);
            continue;
        }
        bool paired = typed || strchr(at + 1, '`') != NULL;
        ls_text_add(text, !paired ? "\\textasciigrave{}" : typed ? "}" : "\\texttt{");
        typed = paired && !typed;
        at++;
    }
}
