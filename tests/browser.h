/* browser.h - a headless Chromium for tests of pages, driven through its DevTools protocol over a pipe
 * (https://chromedevtools.github.io/devtools-protocol/): no port, no other program. */
#ifndef LS_TEST_BROWSER_H
#define LS_TEST_BROWSER_H

#include "experiments/text.h"

typedef struct ls_browser ls_browser;

/* Whether a Chromium is installed. */
bool ls_browser_installed(void);

/* Starts one with a profile in folder; NULL when it does not answer. */
ls_browser *ls_browser_start(const char *folder);
void ls_browser_stop(ls_browser *browser); /* NULL is allowed */

/* Shows a page in a window of this size, in light or dark colours, and waits until it is loaded. */
bool ls_browser_show(ls_browser *browser, const char *url, int width, int height, bool dark);

/* The value of a script expression as text (a string itself, else JSON); NULL when it threw. The caller frees it. */
char *ls_browser_evaluate(ls_browser *browser, const char *expression);

/* Errors that the page has logged or thrown since the last ls_browser_show, one a line. */
const char *ls_browser_errors(const ls_browser *browser);

/* Saves a picture of a part of the page. */
bool ls_browser_picture(ls_browser *browser, const char *path, double top, double width, double height);

#endif
