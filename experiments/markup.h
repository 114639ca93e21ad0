/* markup.h - text in HTML and XML, and gnuplot's SVG made fit to stand inside a page. */
#ifndef LS_MARKUP_H
#define LS_MARKUP_H

#include "experiments/text.h"

/* Appends string so that it is plain text both between tags and in a quoted attribute: the five special characters
 * become entities, control characters that XML forbids become spaces, bytes that are no UTF-8 become U+FFFD. */
void ls_text_markup(ls_text *text, const char *string);

/* Appends the SVG document as an inline element of an HTML page that is also well-formed XML. Ids, and what refers to
 * them, get prefix and a hyphen in front, so that figures do not meet; a repeated id is dropped. Only shapes, text,
 * gradients, patterns, filters and images that are data survive: no script, no event handler, no link, no reference
 * that leaves the page. Greys become the page's variables --grey-0 (black) to --grey-f (white). A rectangle as large as
 * the picture (the background) becomes transparent: the page's own shows. svg is NUL-terminated after length bytes;
 * label is what a screen reader says. *width gets the width of the picture in its own units (0 if it has none).
 * LS_ERROR_CORRUPT when it is no SVG; LS_ERROR_MEMORY. */
ls_result ls_svg_inline(const char *svg, size_t length, const char *prefix, const char *label, ls_text *text,
                        double *width, ls_error *error);

#endif
