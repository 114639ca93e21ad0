/* test_report.c - the report page: well-formed to an XML parser, every figure and id there once, hostile names
 * harmless, the same bytes from the same database; SVG made fit to stand in it. In a browser: test_report_browser.c. */
#include "experiments/folder.h"
#include "experiments/markup.h"
#include "experiments/report.h"
#include "tests/planted.h"
#include "tests/suite.h"

#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a page holds, as Expat sees it. */
typedef struct seen {
    char ids[512][64];
    int id_count;
    int twice; /* ids that came again */
    int svgs;
    int tables;
    int rows;
    int scripts;
    int events;  /* attributes on... */
    int outside; /* references that leave the page */
    int images;
    ls_text text; /* all character data */
} seen;

static void see_attribute(seen *s, const char *name, const char *value)
{
    if (strncmp(name, "on", 2) == 0) s->events++;
    bool reference = strcmp(name, "href") == 0 || strcmp(name, "src") == 0 || strcmp(name, "xlink:href") == 0;
    if (reference && value[0] != '#' && strncmp(value, "data:", 5) != 0) s->outside++;
    if (strcmp(name, "id") != 0) return;
    for (int i = 0; i < s->id_count; i++) s->twice += strcmp(s->ids[i], value) == 0;
    if (s->id_count < 512) snprintf(s->ids[s->id_count++], 64, "%s", value);
}

static void see_start(void *context, const char *name, const char **attributes)
{
    seen *s = context;
    s->svgs += strcmp(name, "svg") == 0;
    s->tables += strcmp(name, "table") == 0;
    s->rows += strcmp(name, "tr") == 0;
    s->scripts += strcmp(name, "script") == 0;
    s->images += strcmp(name, "image") == 0;
    for (size_t i = 0; attributes[i] != NULL; i += 2) see_attribute(s, attributes[i], attributes[i + 1]);
}

static void see_text(void *context, const char *bytes, int length)
{
    ls_text_bytes(&((seen *)context)->text, bytes, (size_t)length);
}

/* Parses page; false, with the place, when it is not well-formed. Free s->text. */
static bool look(const char *page, size_t length, seen *s)
{
    *s = (seen){0};
    XML_Parser parser = XML_ParserCreate("UTF-8");
    XML_SetUserData(parser, s);
    XML_SetElementHandler(parser, see_start, NULL);
    XML_SetCharacterDataHandler(parser, see_text);
    bool good = XML_Parse(parser, page, (int)length, 1) == XML_STATUS_OK;
    if (!good) {
        printf("\n      line %lu: %s", (unsigned long)XML_GetCurrentLineNumber(parser),
               XML_ErrorString(XML_GetErrorCode(parser)));
    }
    XML_ParserFree(parser);
    return good;
}

static bool has_id(const seen *s, const char *id)
{
    for (int i = 0; i < s->id_count; i++) {
        if (strcmp(s->ids[i], id) == 0) return true;
    }
    return false;
}

#define SVG(inside)                                                                                                    \
    "<?xml version='1.0' encoding='utf-8'?>\n<svg viewBox='0 0 300 200' width='300' "                                  \
    "xmlns='http://www.w3.org/2000/svg' "                                                                              \
    "xmlns:xlink='http://www.w3.org/1999/xlink'>" inside "</svg>"

static char *inlined(const char *svg)
{
    ls_text text = {0};
    double width = 0;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_svg_inline(svg, strlen(svg), "pre", "a \"label\"", &text, &width, &error), LS_OK);
    CU_ASSERT_EQUAL(width, 300);
    return ls_text_take(&text);
}

static void expect_part(const char *svg, const char *part)
{
    char *text = inlined(svg);
    if (strstr(text, part) == NULL) printf("\n      no %s in %s", part, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
    ls_free(text);
}

static void expect_no(const char *svg, const char *part)
{
    char *text = inlined(svg);
    if (strstr(text, part) != NULL) printf("\n      %s in %s", part, text);
    CU_ASSERT_PTR_NULL(strstr(text, part));
    ls_free(text);
}

static void test_svg_kept(void)
{
    expect_part(SVG("<g/>"), "aria-label=\"a &quot;label&quot;\" viewBox=\"0 0 300 200\"><g></g>");
    expect_part(SVG("<g id='a'/><use xlink:href='#a'/>"), "<g id=\"pre-a\"></g>\n<use href=\"#pre-a\">");
    expect_part(SVG("<path fill='url(#a)'/>"), "fill=\"url(#pre-a)\"");
    expect_part(SVG("<path fill=\"url('#a')\"/>"), "fill=\"url(#pre-a)\"");
    expect_part(SVG("<g id='a'/><g id='a' x='1'/>"), "<g x=\"1\">");
    expect_part(SVG("<text>1 &lt; <tspan>2</tspan> &amp;</text>"), "1 &lt; <tspan>2</tspan> &amp;</text>");
    expect_part(SVG("<rect width='300' height='200' fill='#ffffff'/>"), "fill=\"none\"");
    expect_part(SVG("<rect width='30' height='200' fill='#ffffff'/>"), "fill=\"var(--grey-f)\"");
    expect_part(SVG("<path stroke='rgb( 68,  68,  68)'/>"), "stroke=\"var(--grey-4)\"");
    expect_part(SVG("<path stroke='black' fill='rgb(0,114,178)'/>"),
                "stroke=\"var(--grey-0)\" fill=\"rgb(0,114,178)\"");
    expect_part(SVG("<path fill='#dddddd' stroke='rgb(1,2,3)x'/>"), "fill=\"var(--grey-d)\" stroke=\"rgb(1,2,3)x\"");
    expect_part(SVG("<text>a]]>\x01z\xff</text>"), ">a]]&gt; z\xef\xbf\xbd</text>");
    expect_part(SVG("<image xlink:href='data:image/png;base64,AA=='/>"), "href=\"data:image/png;base64,AA==\"");
}

static void test_svg_dropped(void)
{
    expect_no(SVG("<script>alert(1)</script>"), "alert");
    expect_no(SVG("<g onclick='alert(1)'/>"), "alert");
    expect_no(SVG("<a href='javascript:alert(1)'><text>x</text></a>"), "alert");
    expect_no(SVG("<foreignObject><b>html</b></foreignObject>"), "html");
    expect_no(SVG("<style>@import 'x'</style>"), "import");
    expect_no(SVG("<g style='background:url(http://x)'/>"), "http://x");
    expect_no(SVG("<path fill='url(http://x#y)'/>"), "http://x");
    expect_no(SVG("<image href='http://x/y.png'/>"), "http://x");
    expect_no(SVG("<image href='data:image/svg+xml,&lt;svg/&gt;'/>"), "data:");
    expect_no(SVG("<title>Gnuplot</title><desc>Produced by</desc>"), "nuplot");
    expect_no(SVG("<g font-family='DejaVu Sans'/>"), "DejaVu");
    expect_no(SVG("<g> stray </g>"), "stray");
}

static void test_svg_refused(void)
{
    static const char *const bad[] = {"", "<svg>", "plain", "<html/>", "<svg viewBox='0 0 1 1'><g></svg>"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_text text = {0};
        double width;
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_svg_inline(bad[i], strlen(bad[i]), "p", "l", &text, &width, &error), LS_ERROR_CORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "SVG"));
        CU_ASSERT_EQUAL(text.length, 0);
        ls_text_free(&text);
    }
}

static void test_markup(void)
{
    ls_text text = {0};
    ls_text_markup(&text, "<a href=\"x\">&'\t\n");
    CU_ASSERT_STRING_EQUAL(text.bytes, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\t\n");
    ls_text_free(&text);
    /* Control characters, lone and overlong bytes, a surrogate, U+FFFF; and what is right stays. */
    ls_text_markup(&text, "\x01\x7f|\x80|\xc0\xaf|\xed\xa0\x80|\xef\xbf\xbf|\xe2\x82|\xf0\x9f\x98\x80|\xc3\xa9");
#define BAD "\xef\xbf\xbd"
    CU_ASSERT_STRING_EQUAL(text.bytes, "  |" BAD "|" BAD BAD "|" BAD BAD BAD "|" BAD BAD BAD "|" BAD BAD
                                       "|\xf0\x9f\x98\x80|\xc3\xa9");
    ls_text_free(&text);
}

/* speed, delay of: immediate, dac */
static const double means[] = {2, 8, 30, NAN};
#define HOSTILE "</script><script>alert(1)</script> ]]> <b onclick='x'>&\\\" \\u0001 \\uffff"
#define SPEC                                                                                                           \
    "{\"title\": \"" HOSTILE "\", \"shows\": \"" HOSTILE "\", \"question\": \"" HOSTILE "?\", \"answer\": \"" HOSTILE  \
    " {speed[policy=dac]}\", \"assumptions\": [\"" HOSTILE "\"], \"seed\": 7, \"base\": {}, "                          \
    "\"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"]}}]}"

static void write_script(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s.gp", name);
    static const char script[] = "set terminal svg dynamic\nset output output\nplot x title title_text noenhanced\n";
    CU_ASSERT_EQUAL(ls_file_write(ls_test_path(path), script, strlen(script), NULL), LS_OK);
}

static void job_in(ls_figure_job *job, char folder[300])
{
    snprintf(folder, 300, "%s", ls_test_path("."));
    *job = (ls_figure_job){.folder = folder, .series_folder = folder, .script_folder = folder, .published = folder};
}

/* The page of the named experiments of a results file; the caller frees it. */
static char *page_of(ls_results *results, const char *const *names, int count, size_t *length)
{
    ls_report report = {0};
    ls_figure_job job;
    char folder[300];
    ls_error error = {""};
    ls_text page = {0};
    job_in(&job, folder);
    for (int i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(ls_report_add(&report, results, names[i], NULL, &job, folder, &error), LS_OK);
    }
    CU_ASSERT_EQUAL(ls_report_page(&report, &page), LS_OK);
    *length = page.length;
    ls_report_free(&report);
    return ls_text_take(&page);
}

static void test_page(void)
{
    static const char *const names[] = {"a b", "a.b", "9"};
    ls_results *results = NULL;
    size_t length, again_length;
    remove(ls_test_path("page.db"));
    for (int i = 0; i < 3; i++) {
        ls_results_close(results);
        write_script(names[i]);
        results = ls_planted_results("page.db", names[i], SPEC, means, 2);
    }
    char *page = page_of(results, names, 3, &length), *again = page_of(results, names, 3, &again_length);
    CU_ASSERT_EQUAL(length, again_length);
    CU_ASSERT_STRING_EQUAL(page, again);
    seen s;
    CU_ASSERT_TRUE(look(page, length, &s));
    CU_ASSERT_EQUAL(s.svgs, 3);
    CU_ASSERT_EQUAL(s.tables, 3);
    CU_ASSERT_EQUAL(s.rows, 9); /* a heading and two points each */
    CU_ASSERT_EQUAL(s.scripts, 1);
    CU_ASSERT_EQUAL(s.events, 0);
    CU_ASSERT_EQUAL(s.outside, 0);
    CU_ASSERT_EQUAL(s.twice, 0);
    CU_ASSERT_TRUE(has_id(&s, "a-b"));
    CU_ASSERT_TRUE(has_id(&s, "a-b-2"));
    CU_ASSERT_TRUE(has_id(&s, "figure-9"));
    CU_ASSERT_TRUE(has_id(&s, "a-b-2-gpPt0"));
    /* The answer's number, the seed, the date: from the database, not from now. */
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, " 30.0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "seed 7"));
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "data of 2026-05-04."));
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "version 1.2.3"));
    ls_text_free(&s.text);
    ls_free(page);
    ls_free(again);
    ls_results_close(results);
}

/* A study of assumptions stands with its figure and is no figure of its own. */
static void test_sensitivity_panel(void)
{
    static const char *const names[] = {"study"};
    static const double speeds[] = {100, 1, 90, 1, 130, 1, 100.5, 1, 97, 1};
    size_t length;
    remove(ls_test_path("study.db"));
    ls_results_close(ls_planted_results("study.db", "study", SPEC, means, 2));
    ls_results *results = ls_planted_results(
        "study.db", "study-sensitivity",
        "{\"title\": \"Which\", \"table\": [\"speed\"], \"base\": {\"policy\": \"dac\"}, \"sweep\": [{\"cases\": ["
        "{\"producers.count\": 8, \"duration_s\": 10}, {\"producers.count\": 4, \"duration_s\": 10}, "
        "{\"producers.count\": 16, \"duration_s\": 10}, {\"producers.count\": 8, \"duration_s\": 40}, "
        "{\"producers.count\": 5, \"duration_s\": 20}]}]}",
        speeds, 5);
    write_script("study");
    write_script("sensitivity");
    char *page = page_of(results, names, 1, &length);
    seen s;
    CU_ASSERT_TRUE(look(page, length, &s));
    CU_ASSERT_EQUAL(s.svgs, 2);
    CU_ASSERT_EQUAL(s.tables, 2);
    CU_ASSERT_EQUAL(s.twice, 0);
    CU_ASSERT_TRUE(has_id(&s, "study-sensitivity-gpPt0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "Which assumptions carry it"));
    /* Without a study there is no such heading: test_page's tables are three. */
    const char *row = strstr(page, "data-value=\"producers.count\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_PTR_NOT_NULL(strstr(row, "data-value=\"-10\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(row, "data-value=\"30\""));
    ls_text_free(&s.text);
    ls_free(page);
    ls_results_close(results);
}

/* An answer that the results cannot give, a figure without script: said on the page, which is whole. */
static void test_problems(void)
{
    static const char *const names[] = {"sad"};
    size_t length;
    remove(ls_test_path("sad.db"));
    ls_results *results = ls_planted_results(
        "sad.db", "sad",
        "{\"answer\": \"{delay_s[policy=dac]}\", \"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"]}}]}",
        means, 2);
    char *page = page_of(results, names, 1, &length);
    seen s;
    CU_ASSERT_TRUE(look(page, length, &s));
    CU_ASSERT_EQUAL(s.svgs, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "no answer. answer: {delay_s[policy=dac]}: has no value"));
    CU_ASSERT_PTR_NOT_NULL(strstr(s.text.bytes, "could not be drawn. no plot script sad.gp"));
    ls_text_free(&s.text);
    ls_free(page);
    /* A script that fails. */
    CU_ASSERT_EQUAL(ls_file_write(ls_test_path("sad.gp"), "exit status 1\n", 14, NULL), LS_OK);
    page = page_of(results, names, 1, &length);
    CU_ASSERT_PTR_NOT_NULL(strstr(page, "gnuplot failed on"));
    ls_free(page);
    ls_results_close(results);
}

/* The page of nothing, and each allocation failing in turn. */
static void test_limits(void)
{
    ls_report none = {0};
    ls_text page = {0};
    seen s;
    CU_ASSERT_EQUAL(ls_report_page(&none, &page), LS_OK);
    CU_ASSERT_TRUE(look(page.bytes, page.length, &s));
    ls_text_free(&s.text);
    ls_text_free(&page);
    remove(ls_test_path("full.db"));
    ls_results *results = ls_planted_results("full.db", "full", SPEC, means, 2);
    bool done = false;
    for (int64_t n = 0; n < 3000 && !done; n += n < 200 ? 1 : 7) {
        ls_report report = {0};
        ls_error error = {""};
        ls_fail_allocations_after(n);
        ls_result result = ls_report_add(&report, results, "full", NULL, NULL, ".", &error);
        if (result == LS_OK) result = ls_report_page(&report, &page);
        ls_fail_allocations_after(-1);
        done = result == LS_OK;
        /* Stored JSON whose parser found no memory counts as damaged or wrong. */
        CU_ASSERT_TRUE(done || result == LS_ERROR_MEMORY || result == LS_ERROR_CORRUPT || result == LS_ERROR_INVALID);
        ls_text_free(&page);
        ls_report_free(&report);
    }
    CU_ASSERT_TRUE(done);
    ls_results_close(results);
}

static void test_command(void)
{
    const char *program = getenv("LAKESTREAM");
    char command[2000], folder[300];
    if (program == NULL) return;
    snprintf(folder, sizeof folder, "%s", ls_test_path("."));
    remove(ls_test_path("command.db"));
    write_script("one");
    ls_results_close(ls_planted_results("command.db", "one", SPEC, means, 2));
    snprintf(command, sizeof command, "%s report -i %s/command.db -o %s/new/folder/page.html -p %s >/dev/null", program,
             folder, folder, folder);
    CU_ASSERT_EQUAL(system(command), 0);
    char *page = NULL;
    size_t length = 0;
    CU_ASSERT_EQUAL_FATAL(ls_file_read(ls_test_path("new/folder/page.html"), 1 << 24, &page, &length, NULL), LS_OK);
    seen s;
    CU_ASSERT_TRUE(look(page, length, &s));
    CU_ASSERT_EQUAL(s.svgs, 1);
    ls_text_free(&s.text);
    ls_free(page);
    static const struct {
        const char *words;
        int code;
    } refused[] = {{"-i /nonexistent.db", 3}, {"other.json -i %s/command.db", 2}, {"--wrong", 2}};
    for (int i = 0; i < 3; i++) {
        char words[700];
        snprintf(words, sizeof words, refused[i].words, folder);
        snprintf(command, sizeof command, "%s report %s -o %s/x.html >/dev/null 2>&1", program, words, folder);
        int status = system(command);
        if (status / 256 != refused[i].code) printf("\n      %s: %d", words, status / 256);
        CU_ASSERT_EQUAL(status / 256, refused[i].code);
    }
    /* No script: the page is there, the exit code tells. */
    remove(ls_test_path("one.gp"));
    snprintf(command, sizeof command, "%s report -i %s/command.db -o %s/y.html -p %s >/dev/null 2>&1", program, folder,
             folder, folder);
    CU_ASSERT_EQUAL(system(command) / 256, 3);
    CU_ASSERT_EQUAL(ls_file_read(ls_test_path("y.html"), 1 << 24, &page, &length, NULL), LS_OK);
    ls_free(page);
}

LS_SUITE(report, {"SVG: what stays", test_svg_kept}, {"SVG: what goes", test_svg_dropped},
         {"SVG: what is none", test_svg_refused}, {"markup", test_markup}, {"the page", test_page},
         {"a study of assumptions", test_sensitivity_panel}, {"problems are told", test_problems},
         {"nothing, and no memory", test_limits}, {"the command", test_command})
