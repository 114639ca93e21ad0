/* latex.h - text of the results as LaTeX source. Sentences, labels and numbers come out of the database as plain UTF-8;
 * a paper wants them as LaTeX that means the same in every font of the base distribution: nothing in a spec may act as a
 * command. Text between backticks, as specs write what is typed, becomes typewriter.
 */
#ifndef LS_LATEX_H
#define LS_LATEX_H

#include "experiments/text.h"

/* Appends string escaped. An underscore may end a line; a no-break space stays one. A backtick without its partner
 * stays a backtick. Bytes beyond ASCII other than no-break space, plus-minus and the multiplication sign pass through. */
void ls_latex_text(ls_text *text, const char *string);

#endif
