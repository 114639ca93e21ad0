/* planted.c - see planted.h. */
#include "tests/planted.h"

#include "tests/fixture_spec.h"
#include "tests/suite.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void fix_date(const char *path)
{
    sqlite3 *database = NULL;
    CU_ASSERT_EQUAL(sqlite3_open(path, &database), SQLITE_OK);
    CU_ASSERT_EQUAL(
        sqlite3_exec(database, "UPDATE experiments SET added = '2026-05-04T03:02:01.000Z'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
}

ls_results *ls_planted_results(const char *file, const char *name, const char *spec_text, const double *means,
                               uint32_t points)
{
    static const ls_run_origin origin = {"1.2.3", "sim"};
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_results *results = NULL;
    ls_error error = {""};
    int64_t ids[64];
    char path[300];
    snprintf(path, sizeof path, "experiments/%s.json", name);
    ls_result parsed = ls_spec_parse(path, spec_text, strlen(spec_text), &vocabulary, false, &spec, &error);
    if (parsed != LS_OK) printf("\n      %s", error.text);
    CU_ASSERT_EQUAL_FATAL(parsed, LS_OK);
    CU_ASSERT_EQUAL_FATAL(spec->point_count, points);
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path(file), LS_RESULTS_WRITE, &results, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, ids, &error), LS_OK);
    for (uint32_t i = 0; i < 2 * points; i++) {
        double off = i % 2 == 0 ? -0.5 : 0.5;
        ls_run_result result = {.values = {means[i / 2 * 2] + off, means[i / 2 * 2 + 1] + off, NAN}};
        ls_run_record record = {ids[i / 2], spec->seed, i % 2, LS_RUN_OK, NULL, &result};
        CU_ASSERT_EQUAL(ls_results_add_runs(results, &origin, vocabulary.metrics, 3, &record, 1, &error), LS_OK);
    }
    ls_spec_free(spec);
    fix_date(ls_test_path(file));
    return results;
}

ls_stored_experiment *ls_planted_experiment(const char *spec_text, const double *means, uint32_t points)
{
    ls_stored_experiment *e = NULL;
    remove(ls_test_path("planted.db"));
    ls_results *results = ls_planted_results("planted.db", "demo", spec_text, means, points);
    CU_ASSERT_EQUAL_FATAL(ls_results_load(results, "demo", NULL, &e, NULL), LS_OK);
    ls_results_close(results);
    return e;
}
