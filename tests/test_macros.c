/* test_macros.c - what a paper prints follows the database: a changed row changes the macros; a stale spec, another
 * version, a missing or failed run refuses; and a validation record cannot be altered by hand unseen. */
#include "experiments/folder.h"
#include "experiments/freshness.h"
#include "experiments/latex.h"
#include "experiments/macros.h"
#include "tests/fixture_spec.h"
#include "tests/planted.h"
#include "tests/suite.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define SPEC                                                                                                           \
    "{\"title\": \"100% of a_b\", \"seed\": 9, \"replications\": 2, \"answer\": \"dac {speed[policy=dac] : 3}\", "      \
    "\"assumptions\": [\"`x_y` & z\"], \"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"]}}]}"
#define TEMPLATES                                                                                                      \
    "{\"demo\": {\"numbers\": {\"ratio\": \"{speed[policy=dac] / speed[policy=immediate] : 2}\"}, "                    \
    "\"tables\": {\"all\": {\"columns\": [{\"metric\": \"speed\", \"head\": \"batches_s\"}]}}}}"

static const double means[] = {2, 8, 30, 16};

static void execute(const char *statement)
{
    sqlite3 *database = NULL;
    CU_ASSERT_EQUAL_FATAL(sqlite3_open(ls_test_path("macros.db"), &database), SQLITE_OK);
    CU_ASSERT_EQUAL(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void plant(void)
{
    remove(ls_test_path("macros.db"));
    ls_results_close(ls_planted_results("macros.db", "demo", SPEC, means, 2));
}

static ls_stored_experiment *load(void)
{
    ls_results *results = NULL;
    ls_stored_experiment *e = NULL;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path("macros.db"), LS_RESULTS_READ, &results, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_results_load(results, "demo", "sim", &e, &error), LS_OK);
    ls_results_close(results);
    return e;
}

/* The macros of what the file holds now; the caller frees text. */
static ls_result make(ls_text *text, ls_error *error)
{
    ls_stored_experiment *e = load();
    ls_presentation presentation = {0};
    ls_published_rows rows = {0};
    ls_json templates = {0};
    CU_ASSERT_EQUAL_FATAL(ls_presentation_parse("demo", e->spec, &presentation, error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_json_parse("t", TEMPLATES, strlen(TEMPLATES), &templates, error), LS_OK);
    ls_result result = ls_macros_of(e, &presentation, &rows, templates.root, text, error);
    ls_json_free(&templates);
    ls_presentation_free(&presentation);
    ls_stored_experiment_free(e);
    return result;
}

static void expect_macros(const char *const *parts)
{
    ls_text text = {0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(make(&text, &error), LS_OK);
    for (; *parts != NULL; parts++) {
        bool found = text.bytes != NULL && strstr(text.bytes, *parts) != NULL;
        if (!found) printf("\n      wanted \"%s\" in \"%s\" %s", *parts, text.bytes != NULL ? text.bytes : "", error.text);
        CU_ASSERT_TRUE(found);
    }
    ls_text_free(&text);
}

static void test_values(void)
{
    plant();
    /* Runs 29.5 and 30.5: deviation sqrt(1/2), half-width 12.706 * 0.7071 / sqrt(2) = 6.353. */
    static const char *const before[] = {"\\lsdefine{demo}{title}{100\\% of a\\_\\allowbreak{}b}",
                                         "\\lsdefine{demo}{answer}{dac 30.0}",
                                         "\\lsdefine{demo}{ratio}{15}",
                                         "\\item \\texttt{x\\_\\allowbreak{}y} \\& z\n",
                                         "\\lsdefine{demo}{runs}{4}",
                                         "immediate (baseline) & 2.00~\\(\\pm\\)~6.4 \\\\\ndac & 30.0~\\(\\pm\\)~6.4",
                                         NULL};
    expect_macros(before);
    /* One row of the database: dac's first run from 29.5 to 39.5 makes the mean 35. */
    execute("UPDATE metrics SET value = 39.5 WHERE name = 'speed' AND value = 29.5");
    static const char *const after[] = {"\\lsdefine{demo}{answer}{dac 35.0}", "\\lsdefine{demo}{ratio}{18}", "dac & 35.0", NULL};
    expect_macros(after);
    execute("DELETE FROM metrics WHERE name = 'speed' AND value = 39.5");
    ls_text text = {0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(make(&text, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "speed of dac is missing in a run"));
    ls_text_free(&text);
}

static void expect_fresh(const char *spec_text, const char *version, const char *part)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error = {""};
    ls_stored_experiment *e = load();
    CU_ASSERT_EQUAL_FATAL(ls_spec_parse("experiments/demo.json", spec_text, strlen(spec_text), &vocabulary, false, &spec, &error), LS_OK);
    ls_result result = ls_check_fresh(spec, e, version, "x.db", &error);
    CU_ASSERT_EQUAL(result, part == NULL ? LS_OK : LS_ERROR_INVALID);
    if (part != NULL && strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    if (part != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    ls_stored_experiment_free(e);
    ls_spec_free(spec);
}

static void test_stale(void)
{
    plant();
    expect_fresh(SPEC, "1.2.3", NULL);
    expect_fresh(SPEC, "1.2.4", "another version of the program, 1.2.3");
    expect_fresh(SPEC " ", "1.2.3", "another text of experiments/demo.json");
    execute("UPDATE points SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE id = 1");
    expect_fresh(SPEC, "1.2.3", "options or presets");
    plant();
    execute("DELETE FROM experiment_points WHERE position = 1");
    expect_fresh(SPEC, "1.2.3", "1 points of 2");
    plant();
    execute("DELETE FROM runs WHERE id = 4");
    expect_fresh(SPEC, "1.2.3", "point 1 has 1 good runs of 2");
    plant();
    execute("DELETE FROM metrics WHERE run = 1; UPDATE runs SET status = 'failed', message = 'x' WHERE id = 1");
    expect_fresh(SPEC, "1.2.3", "1 failed");
}

static void expect_latex(const char *plain, const char *latex)
{
    ls_text text = {0};
    ls_latex_text(&text, plain);
    CU_ASSERT_STRING_EQUAL(text.bytes, latex);
    ls_text_free(&text);
}

static void test_latex(void)
{
    expect_latex("\\input{x} $1", "\\textbackslash{}input\\{x\\} \\$1");
    expect_latex("`a --b` c", "\\texttt{a -{}-b} c");
    expect_latex("one ` alone", "one \\textasciigrave{} alone");
    expect_latex("5\xc2\xa0% < ~", "5~\\% \\textless{} \\textasciitilde{}");
}

static void write_record(const char *from, const char *to)
{
    static const double nan = NAN;
    ls_validation_record record = {.experiment = ls_duplicate("v1"), .points = ls_duplicate("ab"), .program = ls_duplicate("1"),
                                   .store = ls_duplicate("s3://b/p"), .date = ls_duplicate("2026-05-04"), .model = ls_duplicate("m"),
                                   .replications = ls_duplicate("3")};
    char point[] = "dac, 8", metric[] = "published_per_s", share[] = "conflict_share", shown[] = "requests";
    ls_validation_row rows[] = {{point, metric, 10, 0.25, 11.5, nan, 0.1, 0, LS_VERDICT_SHOWN},
                                {point, share, 0.10, nan, 0.14, nan, 0.1, 0.05, LS_VERDICT_SHOWN},
                                {point, shown, 1, nan, 9, nan, nan, 0, LS_VERDICT_SHOWN}};
    ls_error error = {""};
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(ls_validation_add(&record, &rows[i]), LS_OK);
    CU_ASSERT_EQUAL(ls_validation_write(&record, ls_test_path("record.tsv"), &error), LS_OK);
    ls_validation_free(&record);
    char *text = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_file_read(ls_test_path("record.tsv"), 100000, &text, NULL, &error), LS_OK);
    char *at = from != NULL ? strstr(text, from) : NULL;
    CU_ASSERT_EQUAL(at != NULL, from != NULL);
    if (at != NULL) memcpy(at, to, strlen(to));
    CU_ASSERT_EQUAL(ls_file_write(ls_test_path("record.tsv"), text, strlen(text), &error), LS_OK);
    ls_free(text);
}

static ls_result read_record(ls_validation_record *record, const char *part)
{
    ls_error error = {""};
    ls_result result = ls_validation_read(ls_test_path("record.tsv"), record, &error);
    if (part != NULL && strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    if (part != NULL) CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    return result;
}

static void test_record(void)
{
    ls_validation_record record = {0};
    ls_text text = {0};
    write_record(NULL, NULL);
    CU_ASSERT_EQUAL_FATAL(read_record(&record, NULL), LS_OK);
    CU_ASSERT_EQUAL(record.row_count, 3);
    CU_ASSERT_EQUAL(record.rows[0].verdict, LS_VERDICT_MISS); /* 15 % off, 10 allowed */
    CU_ASSERT_EQUAL(record.rows[1].verdict, LS_VERDICT_PASS); /* 0.04 off, 0.05 allowed */
    CU_ASSERT_EQUAL(record.rows[2].verdict, LS_VERDICT_SHOWN);
    CU_ASSERT_EQUAL(record.rows[0].real_half_width, 0.25);
    CU_ASSERT_TRUE(isnan(record.rows[1].real_half_width));
    CU_ASSERT_EQUAL(ls_macros_validation(&record, &text), LS_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "1 of 2 tolerances held"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "dac, 8 & \\textbf{10 / 11.5} & 0.1 / 0.14\\\\"));
    ls_text_free(&text);
    ls_validation_free(&record);
    write_record("11.5", "10.5");
    CU_ASSERT_EQUAL(read_record(&record, "does not follow"), LS_ERROR_INVALID);
    ls_validation_free(&record);
    write_record("# store", "# stare");
    CU_ASSERT_EQUAL(read_record(&record, "no such name"), LS_ERROR_INVALID);
    ls_validation_free(&record);
}

LS_SUITE(macros, {"macros say what the rows say", test_values}, {"stale and incomplete results are refused", test_stale},
         {"text as LaTeX", test_latex}, {"a validation record, and an altered one", test_record})
