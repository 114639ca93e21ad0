/* test_export.c - results that people use: the tidy export (exact text, quoting, doubles that come back), what a deletion takes
 * and leaves, what a diff calls a change (by hand, planted, and not from noise), and every query of docs/results.md. */
#include "experiments/export.h"
#include "experiments/results_diff.h"
#include "tests/fixture_spec.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SWEEP                                                                                                          \
    "{\"title\": \"T\", \"seed\": 9, \"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cartesian\": {\"policy\": " \
    "[\"immediate\", \"dac\"], \"producers.count\": [1, 2]}}]}"
#define RUNS_MAX 16u

static const ls_run_origin origin = {"1.2.3", "sim"};

static ls_results *open_file(const char *name, bool fresh)
{
    ls_results *results = NULL;
    ls_error error = {""};
    if (fresh) remove(ls_test_path(name));
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path(name), LS_RESULTS_WRITE, &results, &error), LS_OK);
    return results;
}

static void execute(const char *name, const char *sql)
{
    sqlite3 *database = NULL;
    CU_ASSERT_EQUAL_FATAL(sqlite3_open(ls_test_path(name), &database), SQLITE_OK);
    CU_ASSERT_EQUAL(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* Registers the sweep under a name; ids of its four points. */
static void add_experiment(ls_results *results, const char *text, const char *name, int64_t *points)
{
    ls_spec *spec = ls_test_spec(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
    ls_free(spec->name);
    spec->name = ls_duplicate(name);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    ls_spec_free(spec);
}

/* count runs of a point; delay NULL: the metric does not apply. */
static void add_runs(ls_results *results, const ls_run_origin *by, int64_t point, const double *speed, const double *delay,
                     uint32_t count)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_run_result values[RUNS_MAX];
    ls_run_record records[RUNS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = (ls_run_result){.values = {speed[i], delay != NULL ? delay[i] : NAN, NAN}, .events = 7, .wall_s = 0.5};
        records[i] = (ls_run_record){point, 9, i, LS_RUN_OK, NULL, &values[i]};
    }
    CU_ASSERT_EQUAL(ls_results_add_runs(results, by, vocabulary.metrics, 3, records, count, NULL), LS_OK);
}

static void add_failure(ls_results *results, int64_t point, uint64_t replication)
{
    ls_run_record record = {point, 9, replication, LS_RUN_CRASHED, "signal 11", NULL};
    CU_ASSERT_EQUAL(ls_results_add_runs(results, &origin, NULL, 0, &record, 1, NULL), LS_OK);
}

/* ---- export ---- */

/* The whole export as text; the caller frees it. */
static char *exported(const char *name, const ls_observation_filter *filter, ls_export_format format, uint64_t rows)
{
    char *text = NULL;
    size_t size = 0;
    uint64_t written = 0;
    ls_error error = {""};
    FILE *file = open_memstream(&text, &size);
    ls_results *results = open_file(name, false);
    CU_ASSERT_EQUAL(ls_export_check(results, filter, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_export(results, filter, format, file, &written, &error), LS_OK);
    if (error.text[0] != '\0') printf("\n      %s", error.text);
    CU_ASSERT_EQUAL(written, rows);
    ls_results_close(results);
    fclose(file);
    return text;
}

/* One experiment with two keys, one run each at points 0 and 3; and one without a sweep. */
static void fill_export(const char *name)
{
    int64_t points[4], lone[1];
    const double speed[] = {0.1, 1.0 / 3}, delay[] = {5e-324, -1e300}, seven[] = {7};
    ls_results *results = open_file(name, true);
    add_experiment(results, SWEEP, "demo", points);
    add_experiment(results, "{\"title\": \"L\", \"seed\": 9, \"base\": {\"policy\": \"dac\", \"duration_s\": 3}}", "lone", lone);
    add_runs(results, &origin, points[0], speed, delay, 2);
    add_runs(results, &(ls_run_origin){"1.2.3", "dir:/a"}, points[3], seven, NULL, 1);
    add_runs(results, &origin, lone[0], seven, NULL, 1);
    add_failure(results, points[1], 0);
    ls_results_close(results);
}

static void test_csv(void)
{
    fill_export("csv.db");
    execute("csv.db", "UPDATE points SET hash = id");
    char *text = exported("csv.db", &(ls_observation_filter){0}, LS_EXPORT_CSV, 6);
    CU_ASSERT_STRING_EQUAL(text,
                           "experiment,seed,quick,point,position,version,backend,replication,metric,value,unit,policy,producers.count\n"
                           "demo,9,0,1,0,1.2.3,sim,0,delay_s,5e-324,,immediate,1\n"
                           "demo,9,0,1,0,1.2.3,sim,0,speed,0.1,,immediate,1\n"
                           "demo,9,0,1,0,1.2.3,sim,1,delay_s,-1e+300,,immediate,1\n"
                           "demo,9,0,1,0,1.2.3,sim,1,speed,0.3333333333333333,,immediate,1\n"
                           "demo,9,0,4,3,1.2.3,dir:/a,0,speed,7,,dac,2\n"
                           "lone,9,0,5,0,1.2.3,sim,0,speed,7,,,\n");
    free(text);
    text = exported("csv.db", &(ls_observation_filter){.experiment = "lone"}, LS_EXPORT_CSV, 1);
    CU_ASSERT_STRING_EQUAL(text, "experiment,seed,quick,point,position,version,backend,replication,metric,value,unit\n"
                                 "lone,9,0,5,0,1.2.3,sim,0,speed,7,\n");
    free(text);
    /* A name is matched whole: "delay_s" is no part of a longer list's text. */
    free(exported("csv.db", &(ls_observation_filter){.experiment = "demo", .metrics = "speed,delay_s"}, LS_EXPORT_CSV, 5));
    free(exported("csv.db", &(ls_observation_filter){.metrics = "delay_s"}, LS_EXPORT_CSV, 2));
    free(exported("csv.db", &(ls_observation_filter){.backend = "dir:/a"}, LS_EXPORT_CSV, 1));
    free(exported("csv.db", &(ls_observation_filter){.backend = "dir:/"}, LS_EXPORT_CSV, 0));
}

/* Reads one CSV field after RFC 4180 into field; returns what follows its separator, and whether it ended the line. */
static const char *read_field(const char *at, char *field, bool *last)
{
    if (*at == '"') {
        for (at++; *at != '\0' && (*at != '"' || at[1] == '"'); at++) {
            if (*at == '"') at++;
            *field++ = *at;
        }
        at++;
    } else {
        while (*at != '\0' && *at != ',' && *at != '\n') *field++ = *at++;
    }
    *field = '\0';
    *last = *at == '\n';
    CU_ASSERT(*at == ',' || *at == '\n');
    return *at != '\0' ? at + 1 : at;
}

static void test_quoting(void)
{
    static const char *const nasty[] = {"plain",   "a,b",     "\"",   "say \"hi\", twice", "two\nlines", "cr\rhere",
                                        "\"\"\",\n", " spaced ", "'quote'", "\xc3\xa9t\xc3\xa9"};
    for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
        char field[256], sql[512];
        bool last = false;
        fill_export("quote.db");
        char *quoted = sqlite3_mprintf("UPDATE experiments SET name = %Q WHERE name = 'lone';"
                                       "UPDATE experiment_points SET labels = json_array(%Q, '2') WHERE position = 3;"
                                       "UPDATE runs SET backend = %Q WHERE backend <> 'sim'",
                                       nasty[i], nasty[i], nasty[i]);
        snprintf(sql, sizeof sql, "%s", quoted);
        sqlite3_free(quoted);
        execute("quote.db", sql);
        char *text = exported("quote.db", &(ls_observation_filter){.backend = nasty[i]}, LS_EXPORT_CSV, 1);
        const char *at = strchr(text, '\n') + 1;
        for (int column = 0; column < 13; column++) {
            CU_ASSERT_FALSE(last);
            at = read_field(at, field, &last);
            if (column == 6 || column == 11) CU_ASSERT_STRING_EQUAL(field, nasty[i]);
            if (column == 12) CU_ASSERT_STRING_EQUAL(field, "2");
        }
        CU_ASSERT_TRUE(last);
        CU_ASSERT_EQUAL(*at, '\0');
        free(text);
        text = exported("quote.db", &(ls_observation_filter){.experiment = nasty[i]}, LS_EXPORT_JSONL, 1);
        CU_ASSERT_PTR_EQUAL(strchr(text, '\n'), text + strlen(text) - 1); /* one line, whatever it holds */
        cJSON *row = cJSON_Parse(text);
        CU_ASSERT_STRING_EQUAL(cJSON_GetStringValue(cJSON_GetObjectItem(row, "experiment")), nasty[i]);
        cJSON_Delete(row);
        free(text);
    }
}

static void test_json_lines(void)
{
    fill_export("lines.db");
    execute("lines.db", "UPDATE experiment_points SET labels = '[\"007\",\"2\"]' WHERE position = 3;"
                        "UPDATE experiments SET seed = -1 WHERE name = 'lone';"
                        "UPDATE runs SET seed = -1 WHERE point = 5; UPDATE points SET hash = id");
    char *text = exported("lines.db", &(ls_observation_filter){.metrics = "speed"}, LS_EXPORT_JSONL, 4);
    static const char start[] = "{\"experiment\":\"demo\",\"seed\":9,\"quick\":false,\"point\":\"1\",\"position\":0,\"version\":\"1.2.3\","
                                "\"backend\":\"sim\",\"replication\":0,\"metric\":\"speed\",\"value\":0.1,\"unit\":\"\","
                                "\"parameters\":{\"policy\":\"immediate\",\"producers.count\":1}}\n";
    CU_ASSERT_EQUAL(strncmp(text, start, strlen(start)), 0);
    /* No number is written 007, and a seed may need all 64 bits. */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"parameters\":{\"policy\":\"007\",\"producers.count\":2}}\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"seed\":18446744073709551615,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"parameters\":{}}\n"));
    const char *third = strstr(text, "\"replication\":1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(third);
    CU_ASSERT_EQUAL(strtod(strstr(third, "\"value\":") + 8, NULL), 1.0 / 3);
    free(text);
}

static void test_export_refusals(void)
{
    ls_error error = {""};
    uint64_t rows;
    fill_export("refuse.db");
    ls_results *results = open_file("refuse.db", false);
    CU_ASSERT_EQUAL(ls_export_check(results, &(ls_observation_filter){.experiment = "dmo"}, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "it holds demo, lone"));
    CU_ASSERT_EQUAL(ls_export_check(results, &(ls_observation_filter){.metrics = "speed,dely_s"}, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "no metric \"dely_s\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "did you mean"));
    ls_results_close(results);
    execute("refuse.db", "UPDATE experiment_points SET labels = '[\"x\"]' WHERE position = 3");
    results = open_file("refuse.db", false);
    FILE *file = tmpfile();
    CU_ASSERT_EQUAL(ls_export(results, &(ls_observation_filter){0}, LS_EXPORT_CSV, file, &rows, &error), LS_ERROR_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "experiment demo: damaged"));
    fclose(file);
    file = fopen("/dev/full", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(ls_export(results, &(ls_observation_filter){.experiment = "lone"}, LS_EXPORT_CSV, file, &rows, &error), LS_ERROR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "incomplete"));
    fclose(file);
    ls_results_close(results);
}

/* ---- delete ---- */

static void hash_of(const char *name, char hex[LS_DIGEST_HEX_BYTES])
{
    ls_results *results = open_file(name, false);
    CU_ASSERT_EQUAL(ls_results_hash(results, hex, NULL), LS_OK);
    ls_results_close(results);
}

/* "kept" and "gone" share point (immediate, 1); gone has a second point and a backend of its own. */
static void fill_delete(const char *name, bool with_gone)
{
    static const char kept[] = "{\"title\": \"K\", \"seed\": 9, \"base\": {\"policy\": \"immediate\"},"
                               " \"sweep\": [{\"cartesian\": {\"producers.count\": [1, 4]}}]}";
    int64_t points[4], gone[4];
    const double speed[] = {1, 2, 3};
    ls_results *results = open_file(name, true);
    add_experiment(results, kept, "kept", points);
    add_runs(results, &origin, points[0], speed, speed, 3);
    add_runs(results, &origin, points[1], speed, NULL, 2);
    if (with_gone) {
        add_experiment(results, SWEEP, "gone", gone);
        CU_ASSERT_EQUAL(gone[0], points[0]);
        add_runs(results, &origin, gone[1], speed, speed, 2);
        add_runs(results, &(ls_run_origin){"1.2.3", "memory"}, gone[2], speed, NULL, 3);
        add_failure(results, gone[3], 0);
    }
    ls_results_close(results);
}

static void test_delete(void)
{
    char before[LS_DIGEST_HEX_BYTES], after[LS_DIGEST_HEX_BYTES], only_kept[LS_DIGEST_HEX_BYTES];
    ls_results_removal removal;
    ls_error error = {""};
    fill_delete("kept.db", false);
    fill_delete("both.db", true);
    hash_of("kept.db", only_kept);
    hash_of("both.db", before);
    ls_results *results = open_file("both.db", false);
    CU_ASSERT_EQUAL(ls_results_delete(results, "gone", NULL, true, &removal, &error), LS_OK);
    CU_ASSERT_EQUAL(removal.experiments, 1);
    CU_ASSERT_EQUAL(removal.points, 3);
    CU_ASSERT_EQUAL(removal.runs, 2 + 3 + 1);
    CU_ASSERT_EQUAL(removal.metrics, 4 + 3);
    hash_of("both.db", after);
    CU_ASSERT_STRING_EQUAL(after, before); /* dry */
    CU_ASSERT_EQUAL(ls_results_delete(results, "gone", "dir:/x", false, &removal, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "no runs of backend \"dir:/x\""));
    CU_ASSERT_EQUAL(ls_results_delete(results, "gon", NULL, false, &removal, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "it holds gone, kept"));
    CU_ASSERT_EQUAL(ls_results_delete(results, "gone", "memory", false, &removal, &error), LS_OK);
    CU_ASSERT_EQUAL(removal.experiments, 0);
    CU_ASSERT_EQUAL(removal.runs, 3);
    CU_ASSERT_EQUAL(ls_results_delete(results, "gone", NULL, false, &removal, &error), LS_OK);
    CU_ASSERT_EQUAL(removal.runs, 3);
    ls_results_close(results);
    /* What is left is what there would be had the deleted one never been. */
    hash_of("both.db", after);
    CU_ASSERT_STRING_EQUAL(after, only_kept);
}

/* ---- diff ---- */

static void test_welch(void)
{
    const double one[] = {1, 2, 3}, four[] = {4, 5, 6}, spread[] = {0, 2}, ten[] = {10, 10, 10}, eleven[] = {11, 11, 11};
    ls_estimate a = ls_estimate_of(one, 3, 0.95), b = ls_estimate_of(four, 3, 0.95);
    ls_difference d = ls_welch_difference(&b, &a, 0.95);
    /* Equal variances and sizes: 4 degrees of freedom, t = 3 / sqrt(2/3). The t distribution with 4 degrees in closed form:
     * F = 1/2 + 3/8 u (1 - u^2 / 12) with u = t / sqrt(1 + t^2/4). */
    double t = 3.0 / sqrt(2.0 / 3.0), u = t / sqrt(1 + t * t / 4);
    CU_ASSERT_DOUBLE_EQUAL(d.estimate.mean, 3.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(d.p_value, 1 - 0.75 * u * (1 - u * u / 12), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(d.estimate.half_width, 2.776445105 * sqrt(2.0 / 3.0), 1e-8);
    CU_ASSERT_EQUAL(d.estimate.count, 3);
    /* One side has no spread: 1 degree of freedom, which is Cauchy's distribution; t = 9. */
    a = ls_estimate_of(spread, 2, 0.95);
    b = ls_estimate_of(ten, 3, 0.95);
    d = ls_welch_difference(&b, &a, 0.95);
    CU_ASSERT_DOUBLE_EQUAL(d.p_value, 1 - 2 / acos(-1.0) * atan(9.0), 1e-12);
    /* Neither has: 2 of C(6, 3) = 20 orders. */
    a = ls_estimate_of(eleven, 3, 0.95);
    d = ls_welch_difference(&b, &a, 0.95);
    CU_ASSERT_DOUBLE_EQUAL(d.estimate.mean, -1.0, 0);
    CU_ASSERT_DOUBLE_EQUAL(d.p_value, 0.1, 1e-12);
    d = ls_welch_difference(&a, &a, 0.95);
    CU_ASSERT_EQUAL(d.p_value, 1.0);
    a = ls_estimate_of(one, 1, 0.95);
    d = ls_welch_difference(&b, &a, 0.95);
    CU_ASSERT(isnan(d.p_value) && isnan(d.estimate.half_width));
    CU_ASSERT_EQUAL(d.estimate.mean, 9.0);
}

static const ls_diff_options plain = {.level = 0.05};

static ls_diff diff_of(const char *before, const char *after, const ls_diff_options *options)
{
    ls_diff diff;
    ls_error error = {""};
    ls_results *a = open_file(before, false), *b = open_file(after, false);
    CU_ASSERT_EQUAL(ls_results_diff(a, b, options, &diff, &error), LS_OK);
    if (error.text[0] != '\0') printf("\n      %s", error.text);
    ls_results_close(a);
    ls_results_close(b);
    return diff;
}

static const ls_diff_row *row_of(const ls_diff *diff, const char *point, const char *metric)
{
    for (uint32_t i = 0; i < diff->row_count; i++) {
        if (strcmp(diff->rows[i].point, point) == 0 && strcmp(diff->rows[i].metric, metric) == 0) return &diff->rows[i];
    }
    printf("\n      no row of point \"%s\", metric \"%s\"", point, metric);
    CU_FAIL_FATAL("a row is missing");
    return NULL;
}

/* Point 0 has speed and delay, point 1 speed. */
static void fill_diff(const char *name, const char *spec, const double *first, const double *second, const double *delay)
{
    int64_t points[4];
    ls_results *results = open_file(name, true);
    add_experiment(results, spec, "demo", points);
    add_runs(results, &origin, points[0], first, delay, 3);
    add_runs(results, &origin, points[1], second, NULL, 3);
    ls_results_close(results);
}

static void test_diff_by_hand(void)
{
    const double one[] = {1, 2, 3}, four[] = {4, 5, 6}, eleven[] = {11, 12, 13}, two[] = {2, 2, 2}, three[] = {3, 3, 3};
    fill_diff("a.db", SWEEP, one, one, two);
    fill_diff("b.db", SWEEP, four, eleven, three);
    ls_diff same = diff_of("a.db", "a.db", &plain);
    CU_ASSERT_EQUAL(same.changes, 0);
    CU_ASSERT_EQUAL(same.tests, 3);
    CU_ASSERT_EQUAL(same.points, 2);
    CU_ASSERT_EQUAL(same.rows[0].adjusted_p, 1.0);
    ls_diff_free(&same);
    /* Three tests: p = 0.0213 for 1 2 3 -> 4 5 6 (test_welch), 0.1 for the constants, 0.000255 for 1 2 3 -> 11 12 13. Holm:
     * times 2, 1 and 3. So the first is found at a level of 0.05, and would not be by Bonferroni's times 3. */
    double t = 3.0 / sqrt(2.0 / 3.0), u = t / sqrt(1 + t * t / 4), p = 1 - 0.75 * u * (1 - u * u / 12);
    ls_diff diff = diff_of("a.db", "b.db", &plain);
    const ls_diff_row *row = row_of(&diff, "policy = immediate, producers.count = 1", "speed");
    CU_ASSERT_DOUBLE_EQUAL(row->adjusted_p, 2 * p, 1e-12);
    CU_ASSERT_EQUAL(row->verdict, LS_DIFF_CHANGED);
    row = row_of(&diff, "policy = immediate, producers.count = 2", "speed");
    CU_ASSERT_EQUAL(row->verdict, LS_DIFF_CHANGED);
    CU_ASSERT_DOUBLE_EQUAL(row->difference.estimate.mean, 10.0, 1e-12);
    row = row_of(&diff, "policy = immediate, producers.count = 1", "delay_s");
    CU_ASSERT_DOUBLE_EQUAL(row->adjusted_p, 0.1, 1e-12);
    CU_ASSERT_EQUAL(row->verdict, LS_DIFF_UNDECIDED);
    CU_ASSERT_EQUAL(diff.changes, 2);
    ls_text text = {0};
    ls_diff_table(&diff, &plain, false, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "changed   demo: policy = immediate, producers.count = 1: speed: 2 -> 5 (+150.00 %)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "2 changed, 0 missing, 0 failing; 0 same, 1 undecided, 0 added; 2 points, 3 tests"));
    ls_text_free(&text);
    ls_diff_json(&diff, &plain, true, &text);
    cJSON *json = cJSON_Parse(text.bytes);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")), 3);
    CU_ASSERT_EQUAL(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "changes")), 2.0);
    cJSON_Delete(json);
    ls_text_free(&text);
    ls_diff_free(&diff);
    /* Within the tolerance of 200 % the change by 150 % counts as none, the one by 500 % does. */
    diff = diff_of("a.db", "b.db", &(ls_diff_options){.level = 0.05, .tolerance = 2});
    CU_ASSERT_EQUAL(diff.changes, 1);
    ls_diff_free(&diff);
    /* One metric alone: one test for each of two points. */
    diff = diff_of("a.db", "b.db", &(ls_diff_options){.level = 0.05, .metrics = "delay_s"});
    CU_ASSERT_EQUAL(diff.tests, 1);
    CU_ASSERT_EQUAL(diff.changes, 0);
    ls_diff_free(&diff);
}

static void test_diff_structure(void)
{
    static const char moved[] = "{\"title\": \"T\", \"seed\": 9, \"base\": {\"policy\": \"immediate\", \"duration_s\": 30}, \"sweep\": "
                                "[{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"], \"producers.count\": [1, 2]}}]}";
    const double one[] = {1, 2, 3};
    int64_t points[4], lone[1];
    fill_diff("a.db", SWEEP, one, one, one);
    /* Other settings beside the swept ones: every hash differs, the labels match. */
    fill_diff("moved.db", moved, one, one, one);
    ls_diff diff = diff_of("a.db", "moved.db", &plain);
    CU_ASSERT_EQUAL(diff.relabelled, 4);
    CU_ASSERT_EQUAL(diff.points, 2);
    CU_ASSERT_EQUAL(diff.changes, 0);
    ls_diff_free(&diff);
    /* B lacks the metric delay_s and point 1, has point 2, fails in point 0, and has an experiment more. */
    ls_results *results = open_file("b.db", true);
    add_experiment(results, SWEEP, "demo", points);
    add_runs(results, &origin, points[0], one, NULL, 3);
    add_runs(results, &origin, points[2], one, NULL, 3);
    add_failure(results, points[0], 3);
    add_experiment(results, "{\"title\": \"L\", \"seed\": 9, \"base\": {\"policy\": \"dac\"}}", "lone", lone);
    ls_results_close(results);
    diff = diff_of("a.db", "b.db", &plain);
    CU_ASSERT_EQUAL(row_of(&diff, "policy = immediate, producers.count = 1", "delay_s")->verdict, LS_DIFF_MISSING);
    CU_ASSERT_EQUAL(row_of(&diff, "policy = immediate, producers.count = 1", "speed")->verdict, LS_DIFF_SAME);
    CU_ASSERT_EQUAL(row_of(&diff, "policy = immediate, producers.count = 1", "")->verdict, LS_DIFF_FAILING);
    CU_ASSERT_EQUAL(row_of(&diff, "policy = immediate, producers.count = 2", "")->verdict, LS_DIFF_MISSING);
    CU_ASSERT_EQUAL(row_of(&diff, "policy = dac, producers.count = 1", "")->verdict, LS_DIFF_ADDED);
    CU_ASSERT_EQUAL(row_of(&diff, "", "")->verdict, LS_DIFF_ADDED);
    CU_ASSERT_EQUAL(diff.changes, 3);
    ls_diff_free(&diff);
    /* The other way round what was missing is added, and fewer failures are no change. */
    diff = diff_of("b.db", "a.db", &plain);
    CU_ASSERT_EQUAL(row_of(&diff, "", "")->verdict, LS_DIFF_MISSING);
    CU_ASSERT_EQUAL(diff.changes, 2);
    ls_diff_free(&diff);
}

/* A normal variate, nearly: the sum of twelve uniform ones. */
static double noise(unsigned short state[3])
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) sum += erand48(state);
    return sum;
}

static void fill_noise(const char *name, unsigned short state[3], double planted)
{
    int64_t points[4];
    double speed[5], delay[5];
    ls_results *results = open_file(name, true);
    add_experiment(results, SWEEP, "demo", points);
    for (int p = 0; p < 4; p++) {
        for (int r = 0; r < 5; r++) {
            speed[r] = 100 * (p + 1) + noise(state) + (p == 2 ? planted : 0.0);
            delay[r] = 0.01 * noise(state);
        }
        add_runs(results, &origin, points[p], speed, delay, 5);
    }
    ls_results_close(results);
}

/* Fifty pairs without a change, eight tests each: at a level of 0.05 a false finding comes in at most 2.5 of fifty pairs on average; more
 * than eight has a chance below 1 in 1,000. Without the adjustment it would be about 17. A change by ten deviations is always found, alone. */
static void test_noise(void)
{
    unsigned short state[3] = {20261, 207, 1};
    uint32_t alarms = 0;
    for (int i = 0; i < 50; i++) {
        fill_noise("n1.db", state, 0);
        fill_noise("n2.db", state, 0);
        ls_diff diff = diff_of("n1.db", "n2.db", &plain);
        CU_ASSERT_EQUAL(diff.tests, 8);
        alarms += diff.changes > 0;
        ls_diff_free(&diff);
    }
    if (alarms > 8) printf("\n      %u of 50 comparisons raised a false alarm", alarms);
    CU_ASSERT(alarms <= 8);
    for (int i = 0; i < 10; i++) {
        fill_noise("n1.db", state, 0);
        fill_noise("n2.db", state, 10);
        ls_diff diff = diff_of("n1.db", "n2.db", &(ls_diff_options){.level = 0.001});
        CU_ASSERT_EQUAL(diff.changes, 1);
        CU_ASSERT_EQUAL(row_of(&diff, "policy = dac, producers.count = 1", "speed")->verdict, LS_DIFF_CHANGED);
        ls_diff_free(&diff);
    }
}

static void test_diff_out_of_memory(void)
{
    const double one[] = {1, 2, 3}, four[] = {4, 5, 6};
    fill_diff("a.db", SWEEP, one, one, one);
    fill_diff("b.db", SWEEP, four, one, one);
    bool succeeded = false;
    int64_t tries = 0;
    for (; tries < 5000 && !succeeded; tries++) {
        ls_error error = {""};
        ls_diff diff = {0};
        uint64_t rows;
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        ls_results *a = open_file("a.db", false), *b = open_file("b.db", false);
        ls_fail_allocations_after(tries);
        ls_result result = ls_results_diff(a, b, &plain, &diff, &error);
        if (result == LS_OK) result = ls_export(a, &(ls_observation_filter){0}, LS_EXPORT_JSONL, file, &rows, &error);
        if (result == LS_OK) result = ls_export(a, &(ls_observation_filter){0}, LS_EXPORT_CSV, file, &rows, &error);
        ls_fail_allocations_after(-1);
        succeeded = result == LS_OK;
        if (!succeeded && error.text[0] == '\0') CU_FAIL("an error without words");
        ls_diff_free(&diff);
        ls_results_close(a);
        ls_results_close(b);
        fclose(file);
        free(text);
    }
    CU_ASSERT_TRUE(succeeded);
    CU_ASSERT(tries > 50);
}

/* ---- from outside ---- */

/* Runs "lakestream ARGUMENTS"; @NAME stands for a file of the test's folder. */
static void expect(const char *arguments, int code, const char *part)
{
    char command[2048], text[8192];
    const char *program = getenv("LAKESTREAM");
    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    size_t length = (size_t)snprintf(command, sizeof command, "%s ", program);
    for (const char *c = arguments; *c != '\0' && length + 300 < sizeof command; c++) {
        const char *folder = ls_test_path("");
        if (*c == '@') length += (size_t)snprintf(command + length, sizeof command - length, "%s", folder);
        if (*c != '@') command[length++] = *c;
    }
    snprintf(command + length, sizeof command - length, " 2>&1");
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    int status = pclose(pipe), got = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (got != code || strstr(text, part) == NULL) {
        printf("\n      lakestream %s\n      gave %d (wanted %d): %s\n      wanted \"%s\"", arguments, got, code, text, part);
    }
    CU_ASSERT_EQUAL(got, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

static void test_commands(void)
{
    const double one[] = {1, 2, 3}, eleven[] = {11, 12, 13};
    fill_diff("a.db", SWEEP, one, one, one);
    fill_diff("b.db", SWEEP, one, eleven, one);
    expect("results diff @a.db @a.db", 0, "0 changed, 0 missing, 0 failing; 3 same");
    expect("results diff @a.db @b.db", 4, "changed   demo: policy = immediate, producers.count = 2: speed: 2 -> 12");
    expect("results diff @a.db @b.db -m delay_s", 0, "0 changed");
    expect("results diff @a.db @b.db -m dlay_s", 2, "did you mean \"delay_s\"?");
    expect("results diff @a.db @b.db -e other", 2, "no experiment \"other\"");
    expect("results diff @a.db @b.db --json", 4, "\"verdict\":\"changed\"");
    expect("results diff @a.db @b.db --level 2", 2, "--level");
    expect("results diff @a.db", 2, "diff takes two results files; usage: lakestream results diff A B");
    expect("results diff @a.db @absent.db", 3, "no such results file");
    expect("results list @a.db @b.db", 2, "list takes one results file");
    expect("results show @a.db", 0, "metrics:  delay_s, speed");
    expect("results show @a.db -m speed", 0, "policy = immediate, producers.count = 2  2 +- 2.5");
    expect("results show @a.db -m sped", 2, "no metric \"sped\"");
    expect("results show @a.db --json", 0, "\"labels\":{\"policy\":\"immediate\",\"producers.count\":\"1\"}");
    expect("results delete @a.db", 2, "name what to delete");
    expect("results delete @absent.db -e demo --yes", 3, "no such results file");
    expect("results delete @a.db -e demo", 2, "would delete demo: 1 experiments, 4 points, 6 runs, 9 values");
    expect("results show @a.db", 0, "demo: T");
    expect("results delete @a.db -e demo --yes", 0, "deleted demo: 1 experiments");
    expect("results show @a.db", 2, "it holds (none)");
    expect("export @b.db", 0, ",unit,policy,producers.count\ndemo,9,0,");
    expect("export @b.db -f tsv", 2, "expected csv or jsonl");
    expect("export @b.db -m spped -o @bad.csv", 2, "did you mean \"speed\"?");
    CU_ASSERT_PTR_NULL(fopen(ls_test_path("bad.csv"), "r"));
    expect("export @b.db -o @b.csv", 0, "b.csv: 9 observations");
    expect("export @b.db -o @absent/b.csv", 3, "cannot write");
    expect("export @b.csv", 3, "not a results file");
}

/* ---- the cookbook ---- */

/* Runs one query; rows gets how many it gave, first the first row's cells, "|" between. */
static void run_query(sqlite3 *database, const char *sql, int *rows, char *first, size_t size)
{
    sqlite3_stmt *statement = NULL;
    *rows = 0;
    first[0] = '\0';
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
        printf("\n      %s\n      %s", sqlite3_errmsg(database), sql);
        CU_FAIL("a query of docs/results.md is wrong");
        return;
    }
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; *rows == 0 && i < sqlite3_column_count(statement); i++) {
            const char *cell = (const char *)sqlite3_column_text(statement, i);
            size_t used = strlen(first);
            snprintf(first + used, size - used, "%s%s", i > 0 ? "|" : "", cell != NULL ? cell : "");
        }
        (*rows)++;
    }
    CU_ASSERT_EQUAL(sqlite3_finalize(statement), SQLITE_OK);
}

static void test_cookbook(void)
{
    static const struct {
        int rows;
        const char *first; /* of it: what stands at its beginning */
    } expected[] = {{1, "f7-manifest-growth|T|9|0|"},
                    {2, "0|[\"immediate\",\"1\"]|3|2.0|1.0|3.0"},
                    {2, "dac|12.0"},
                    {2, ""},
                    {3, "0|1.0|11.0|10.0"},
                    {1, "f7-manifest-growth|[\"immediate\",\"2\"]|0|crashed|signal 11"},
                    {4, "[\"immediate\",\"1\"]|1"},
                    {1, "producers.count|1|2"},
                    {1, "1.2.3|sim|6|3.0|14.0"},
                    {2, "delay_s|3|1.0|3.0"}};
    const double one[] = {1, 2, 3}, eleven[] = {11, 12, 13};
    int64_t points[4];
    size_t queries = 0;
    char line[1024], sql[4096] = "", first[1024];
    bool inside = false;
    sqlite3 *database = NULL;
    ls_results *results = open_file("cook.db", true);
    add_experiment(results, SWEEP, "f7-manifest-growth", points);
    add_runs(results, &origin, points[0], one, one, 3);
    add_runs(results, &origin, points[2], eleven, NULL, 3);
    add_failure(results, points[1], 0);
    ls_results_close(results);
    execute("cook.db", "UPDATE metrics SET name = 'published_per_s' WHERE name = 'speed'");
    FILE *file = fopen("docs/results.md", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(sqlite3_open(ls_test_path("cook.db"), &database), SQLITE_OK);
    while (fgets(line, sizeof line, file) != NULL) {
        bool fence = strncmp(line, "```", 3) == 0;
        if (inside && fence) {
            int rows;
            run_query(database, sql, &rows, first, sizeof first);
            CU_ASSERT_FATAL(queries < sizeof expected / sizeof expected[0]);
            const char *wanted = expected[queries].first;
            bool good = rows == expected[queries].rows && strncmp(first, wanted, strlen(wanted)) == 0;
            if (!good) printf("\n      %s      gave %d rows, first %s", sql, rows, first);
            CU_ASSERT_TRUE(good);
            queries++;
            inside = false;
        } else if (inside) {
            strncat(sql, line, sizeof sql - strlen(sql) - 1);
        } else if (strcmp(line, "```sql\n") == 0) {
            inside = true;
            sql[0] = '\0';
        }
    }
    CU_ASSERT_EQUAL(queries, sizeof expected / sizeof expected[0]);
    sqlite3_close(database);
    fclose(file);
}

LS_SUITE(export, {"CSV", test_csv}, {"quoting comes back", test_quoting}, {"JSON lines", test_json_lines},
         {"refusals", test_export_refusals}, {"delete takes what it says", test_delete}, {"Welch's test", test_welch},
         {"diff by hand", test_diff_by_hand}, {"missing, added, failing", test_diff_structure},
         {"noise is no change, a planted one is", test_noise}, {"out of memory", test_diff_out_of_memory},
         {"commands", test_commands}, {"cookbook", test_cookbook})
