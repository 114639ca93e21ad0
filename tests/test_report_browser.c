/* test_report_browser.c - the report in a real browser, at a phone's and a desk's width, light and dark: the page tests
 * itself (#selftest: pictures visible, every column of every table sorts both ways, no sideways scrolling, ids once,
 * nothing loaded) and the console stays empty. Without Chromium there is nothing to see and the suite says so. */
#include "experiments/folder.h"
#include "experiments/report.h"
#include "tests/browser.h"
#include "tests/planted.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* speed, delay of immediate and dac with 1, 10 and 200 producers: ties, a gap, and an order that text would get wrong
 */
static const double means[] = {9, 8, 10, 8, 100, 7, -1, 1e6, 2.5, NAN, 1000, 3};
#define SPEC                                                                                                           \
    "{\"title\": \"demo\", \"question\": \"Does it sort?\", \"answer\": \"{max(speed)}.\", \"table\": [\"speed\", "    \
    "\"delay_s\"], \"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"], \"producers.count\": [1, 10, "   \
    "200]}}]}"

static bool write_page(const char *path)
{
    char folder[300];
    ls_report report = {0};
    ls_text page = {0};
    snprintf(folder, sizeof folder, "%s", ls_test_path("."));
    ls_figure_job job = {.folder = folder, .series_folder = folder, .script_folder = folder, .published = folder};
    static const char script[] = "set terminal svg dynamic size 1400,900\nset output output\nset xlabel 'x'\n"
                                 "plot [0:1] x with linespoints title title_text, x**2 with points\n";
    bool good = ls_file_write(ls_test_path("demo.gp"), script, strlen(script), NULL) == LS_OK;
    ls_results *results = ls_planted_results("browser.db", "demo", SPEC, means, 6);
    ls_error error = {""};
    good = good && ls_report_add(&report, results, "demo", NULL, &job, folder, &error) == LS_OK;
    good =
        good && ls_report_page(&report, &page) == LS_OK && ls_file_write(path, page.bytes, page.length, NULL) == LS_OK;
    ls_text_free(&page);
    ls_report_free(&report);
    ls_results_close(results);
    return good;
}

static void expect_value(ls_browser *browser, const char *expression, const char *expected)
{
    char *value = ls_browser_evaluate(browser, expression);
    bool same = value != NULL && strcmp(value, expected) == 0;
    if (!same) printf("\n      %s: %s, wanted %s", expression, value != NULL ? value : "(none)", expected);
    CU_ASSERT_TRUE(same);
    ls_free(value);
}

static void expect_self_test(ls_browser *browser, const char *url, int width, bool dark)
{
    CU_ASSERT_TRUE(ls_browser_show(browser, url, width, 900, dark));
    expect_value(browser, "document.getElementById('selftest').dataset.result", "ok");
    char expected[100];
    snprintf(expected, sizeof expected, "1 pictures, 1 tables, 5 columns, width %d: ok", width);
    expect_value(browser, "document.getElementById('selftest').textContent", expected);
    if (ls_browser_errors(browser)[0] != '\0') printf("\n      %s", ls_browser_errors(browser));
    CU_ASSERT_STRING_EQUAL(ls_browser_errors(browser), "");
}

#define COLUMN(n)                                                                                                      \
    "Array.from(document.querySelectorAll('tbody tr'), r => r.cells[" #n "].textContent.split(' ')[0]).join()"

static void expect_sorting(ls_browser *browser)
{
    expect_value(browser, COLUMN(2), "9.000,10.00,100.0,-1.000,2.500,1,000");
    expect_value(browser, "document.querySelectorAll('th button')[2].click(), " COLUMN(2),
                 "-1.000,2.500,9.000,10.00,100.0,1,000");
    expect_value(browser, "document.querySelectorAll('th')[2].getAttribute('aria-sort')", "ascending");
    expect_value(browser, "document.querySelectorAll('th button')[2].click(), " COLUMN(2),
                 "1,000,100.0,10.00,9.000,2.500,-1.000");
    /* What is missing stays last both ways. */
    expect_value(browser, "document.querySelectorAll('th button')[3].click(), " COLUMN(3),
                 "3.000,7.000,8.000,8.000,1,000,000,none");
    expect_value(browser, "document.querySelectorAll('th button')[3].click(), " COLUMN(3),
                 "1,000,000,8.000,8.000,7.000,3.000,none");
}

static void expect_colours(ls_browser *browser, const char *url)
{
#define GROUND "getComputedStyle(document.body).backgroundColor"
    CU_ASSERT_TRUE(ls_browser_show(browser, url, 1440, 900, true));
    expect_value(browser, GROUND, "rgb(22, 24, 28)");
    expect_value(browser, "document.getElementById('theme').textContent", "Light colours");
    /* The reader's choice goes before the system's, and is remembered. */
    expect_value(browser, "document.getElementById('theme').click(), " GROUND, "rgb(253, 253, 251)");
    CU_ASSERT_TRUE(ls_browser_show(browser, url, 1440, 900, true));
    expect_value(browser, GROUND, "rgb(253, 253, 251)");
    /* Black text of the picture turns light in the dark. */
    expect_value(browser,
                 "document.getElementById('theme').click(), getComputedStyle(document.querySelector("
                 "'.picture [fill=\"var(--grey-0)\"]')).fill",
                 "rgb(232, 232, 232)");
}

static void test_browser(void)
{
    char path[300], url[400], tested[420], profile[300];
    if (!ls_browser_installed()) {
        CU_FAIL("a browser is needed; './setup.sh check' installs chromium");
        return;
    }
    snprintf(path, sizeof path, "%s", ls_test_path("browser.html"));
    snprintf(profile, sizeof profile, "%s", ls_test_path("browser-profile"));
    snprintf(url, sizeof url, "file://%s", path);
    snprintf(tested, sizeof tested, "%s#selftest", url);
    CU_ASSERT_TRUE_FATAL(write_page(path));
    ls_browser *browser = ls_browser_start(profile);
    CU_ASSERT_PTR_NOT_NULL(browser);
    if (browser == NULL) return;
    expect_self_test(browser, tested, 1440, false);
    expect_self_test(browser, tested, 390, true);
    CU_ASSERT_TRUE(ls_browser_show(browser, url, 1440, 900, false));
    expect_value(browser, "document.getElementById('selftest') === null", "true");
    expect_sorting(browser);
    expect_colours(browser, url);
    CU_ASSERT_STRING_EQUAL(ls_browser_errors(browser), "");
    ls_browser_stop(browser);
}

LS_SUITE(report_browser, {"in a browser", test_browser})
