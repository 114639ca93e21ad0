/* test_results.c - the results database: what goes in comes out, what is damaged or foreign is refused, the hash sees
 * content and nothing else; then the tables made from it, plotting rows and comparisons. */
#include "experiments/comparison.h"
#include "experiments/results.h"
#include "experiments/tidy.h"
#include "tests/fixture_spec.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define SPEC                                                                                                           \
    "{\"title\": \"T\", \"seed\": 9, \"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cartesian\": {\"policy\": " \
    "[\"immediate\","                                                                                                  \
    "\"dac\"], \"producers.count\": [1, 2]}}], \"compare\": {\"baseline\": \"immediate\", \"metrics\": [\"speed\"]}}"

static const ls_run_origin origin = {"1.2.3", "sim"};

static ls_results *open_new(const char *name)
{
    ls_results *results = NULL;
    ls_error error = {""};
    remove(ls_test_path(name));
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path(name), LS_RESULTS_WRITE, &results, &error), LS_OK);
    return results;
}

static ls_run_result values(double speed, double delay)
{
    ls_run_result result = {.values = {speed, delay, NAN}, .events = 7, .wall_s = 0.5};
    return result;
}

static void add_of(ls_results *results, const ls_run_origin *by, int64_t point, uint64_t replication,
                   ls_run_status status, const ls_run_result *result)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_error error = {""};
    ls_run_record record = {point, 9, replication, status, "why", result};
    CU_ASSERT_EQUAL(ls_results_add_runs(results, by, vocabulary.metrics, 3, &record, 1, &error), LS_OK);
    if (error.text[0] != '\0') printf("%s\n", error.text);
}

static void add(ls_results *results, int64_t point, uint64_t replication, double speed, double delay)
{
    ls_run_result result = values(speed, delay);
    add_of(results, &origin, point, replication, LS_RUN_OK, &result);
}

typedef struct visit_log {
    uint32_t count;
    uint64_t replications[8];
    double values[8][3];
} visit_log;

static ls_result log_run(void *context, uint64_t replication, const double *run_values)
{
    visit_log *log = context;
    log->replications[log->count] = replication;
    memcpy(log->values[log->count++], run_values, 3 * sizeof *run_values);
    return log->count < 8 ? LS_OK : LS_ERROR_LIMIT;
}

static void test_round_trip(void)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("trip.db");
    ls_error error = {""};
    int64_t points[4], again[4];
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_add_experiment(results, spec, again, &error), LS_OK);
    CU_ASSERT_EQUAL(memcmp(points, again, sizeof points), 0);
    add(results, points[1], 3, 0.1, 5e-324);
    add(results, points[1], 0, 1.0 / 3, -1e300);
    add(results, points[0], 1, 8, 9);
    ls_run_origin other = {"1.2.4", "sim"}, real = {"1.2.3", "dir:/x"};
    ls_run_result result = values(77, 77);
    add_of(results, &other, points[1], 1, LS_RUN_OK, &result);
    add_of(results, &real, points[1], 1, LS_RUN_OK, &result);
    add_of(results, &origin, points[1], 2, LS_RUN_FAILED, NULL);
    visit_log log = {0};
    CU_ASSERT_EQUAL(ls_results_each_run(results, points[1], 9, &origin, vocabulary.metrics, 3, log_run, &log, &error),
                    LS_OK);
    CU_ASSERT_EQUAL_FATAL(log.count, 2);
    CU_ASSERT_EQUAL(log.replications[0], 0);
    CU_ASSERT_EQUAL(log.replications[1], 3);
    CU_ASSERT_EQUAL(log.values[0][0], 1.0 / 3);
    CU_ASSERT_EQUAL(log.values[0][1], -1e300);
    CU_ASSERT_EQUAL(log.values[1][1], 5e-324);
    CU_ASSERT(isnan(log.values[0][2]));
    /* Another seed has no runs; a run stored again replaces the old one. */
    log = (visit_log){0};
    CU_ASSERT_EQUAL(ls_results_each_run(results, points[1], 8, &origin, vocabulary.metrics, 3, log_run, &log, &error),
                    LS_OK);
    CU_ASSERT_EQUAL(log.count, 0);
    add(results, points[0], 1, 80, 90);
    CU_ASSERT_EQUAL(ls_results_each_run(results, points[0], 9, &origin, vocabulary.metrics, 3, log_run, &log, &error),
                    LS_OK);
    CU_ASSERT_EQUAL_FATAL(log.count, 1);
    CU_ASSERT_EQUAL(log.values[0][0], 80.0);
    ls_results_close(results);
    ls_spec_free(spec);
}

/* Every run of the visited point must have all its values, even when it has no metric at all. */
static void test_run_without_metrics(void)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("bare.db");
    int64_t points[4];
    visit_log log = {0};
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    add(results, points[0], 0, NAN, NAN);
    add(results, points[0], 1, 4, NAN);
    CU_ASSERT_EQUAL(ls_results_each_run(results, points[0], 9, &origin, vocabulary.metrics, 3, log_run, &log, NULL),
                    LS_OK);
    CU_ASSERT_EQUAL_FATAL(log.count, 2);
    CU_ASSERT(isnan(log.values[0][0]));
    CU_ASSERT_EQUAL(log.values[1][0], 4.0);
    ls_results_close(results);
    ls_spec_free(spec);
}

static void write_file(const char *path, const char *bytes, size_t length, long offset)
{
    FILE *file = fopen(path, offset == 0 ? "wb" : "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fseek(file, offset, SEEK_SET), 0);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void expect_open_failure(const char *path, ls_results_mode mode, ls_result expected, const char *part)
{
    ls_results *results = NULL;
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_results_open(path, mode, &results, &error), expected);
    CU_ASSERT_PTR_NULL(results);
    if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    ls_results_close(results);
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *database = NULL;
    CU_ASSERT_EQUAL(sqlite3_open(path, &database), SQLITE_OK);
    CU_ASSERT_EQUAL(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void test_refusals(void)
{
    expect_open_failure(ls_test_path("absent.db"), LS_RESULTS_READ, LS_ERROR_IO, "no such results file");
    expect_open_failure("/nonexistent/folder/x.db", LS_RESULTS_WRITE, LS_ERROR_IO, "folder exist");
    expect_open_failure(ls_test_path("."), LS_RESULTS_WRITE, LS_ERROR_IO, "open");
    write_file(ls_test_path("text.db"), "This is a shopping list and no database, and long enough to show it.\n", 69,
               0);
    expect_open_failure(ls_test_path("text.db"), LS_RESULTS_READ, LS_ERROR_CORRUPT, "not a results file");
    expect_open_failure(ls_test_path("text.db"), LS_RESULTS_WRITE, LS_ERROR_CORRUPT, "not a results file");
    write_file(ls_test_path("empty.db"), "", 0, 0);
    expect_open_failure(ls_test_path("empty.db"), LS_RESULTS_READ, LS_ERROR_CORRUPT, "not one of Lakestream's");
    execute(ls_test_path("foreign.db"), "CREATE TABLE birds(name TEXT);");
    expect_open_failure(ls_test_path("foreign.db"), LS_RESULTS_WRITE, LS_ERROR_CORRUPT, "not one of Lakestream's");
    ls_results_close(open_new("future.db"));
    execute(ls_test_path("future.db"), "PRAGMA user_version = 99;");
    expect_open_failure(ls_test_path("future.db"), LS_RESULTS_WRITE, LS_ERROR_VERSION,
                        "schema 99, this program knows schema 1");
}

/* Damage inside the file: every page behind the first is overwritten. */
static void test_damaged(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("damaged.db");
    int64_t points[4];
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    add(results, points[0], 0, 1, 2);
    ls_results_close(results);
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    for (long page = 1; page < 8; page++) write_file(ls_test_path("damaged.db"), garbage, sizeof garbage, page * 4096);
    ls_error error = {""};
    ls_stored_experiment *experiment = NULL;
    char hex[LS_DIGEST_HEX_BYTES];
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path("damaged.db"), LS_RESULTS_READ, &results, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_load(results, NULL, NULL, &experiment, &error), LS_ERROR_CORRUPT);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "damaged"));
    CU_ASSERT_EQUAL(ls_results_hash(results, hex, &error), LS_ERROR_CORRUPT);
    ls_results_close(results);
    ls_spec_free(spec);
}

/* Lists that someone edited by hand: refused, not believed. */
static void test_edited(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("edited.db");
    int64_t points[4];
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    ls_results_close(results);
    static const char *const edits[] = {"UPDATE experiment_points SET labels = '[\"one\"]' WHERE position = 2;",
                                        "UPDATE experiment_points SET labels = '[1, 2]' WHERE position = 2;",
                                        "UPDATE experiments SET swept = 'nonsense';",
                                        "UPDATE experiments SET compare = '{}';"};
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        ls_error error = {""};
        ls_stored_experiment *experiment = NULL;
        execute(ls_test_path("edited.db"), edits[i]);
        CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path("edited.db"), LS_RESULTS_READ, &results, &error), LS_OK);
        CU_ASSERT_EQUAL(ls_results_load(results, NULL, NULL, &experiment, &error), LS_ERROR_CORRUPT);
        ls_stored_experiment_free(experiment);
        ls_results_close(results);
    }
    ls_spec_free(spec);
}

static void hash_of(ls_results *results, char hex[LS_DIGEST_HEX_BYTES])
{
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_results_hash(results, hex, &error), LS_OK);
}

static void test_hash(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    int64_t points[4];
    char one[LS_DIGEST_HEX_BYTES], other[LS_DIGEST_HEX_BYTES];
    ls_run_result slow = values(2, 3), fast = values(2, 3);
    slow.wall_s = 100;
    ls_results *left = open_new("left.db"), *right = open_new("right.db");
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(left, spec, points, NULL), LS_OK);
    add(left, points[0], 0, 1, 2);
    add(left, points[3], 1, 4, 5);
    add_of(left, &origin, points[2], 0, LS_RUN_OK, &slow);
    hash_of(left, one);
    /* Other order, other row ids, other wall time, other path of the spec. */
    ls_free(spec->path);
    spec->path = ls_duplicate("/elsewhere/demo.json");
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(right, spec, points, NULL), LS_OK);
    add_of(right, &origin, points[2], 0, LS_RUN_OK, &fast);
    add(right, points[3], 1, 999, 999);
    add(right, points[3], 1, 4, 5);
    hash_of(right, other);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
    add(right, points[0], 0, 1, 2);
    hash_of(right, other);
    CU_ASSERT_STRING_EQUAL(one, other);
    /* The last bit of one value counts; so does the status of a run without values. */
    add(right, points[0], 0, nextafter(1, 2), 2);
    hash_of(right, other);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
    add(right, points[0], 0, 1, 2);
    add_of(right, &origin, points[0], 5, LS_RUN_CRASHED, NULL);
    hash_of(right, other);
    CU_ASSERT_STRING_NOT_EQUAL(one, other);
    ls_results_close(left);
    ls_results_close(right);
    ls_spec_free(spec);
}

static void test_hash_backend(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    char hex[3][LS_DIGEST_HEX_BYTES];
    static const char *const backends[] = {"dir:/a", "dir:/b", "memory"};
    for (int i = 0; i < 3; i++) {
        ls_results *results = open_new("backend.db");
        ls_run_origin by = {"1", backends[i]};
        ls_run_result result = values(1, 2);
        int64_t points[4];
        CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
        add_of(results, &by, points[0], 0, LS_RUN_OK, &result);
        hash_of(results, hex[i]);
        ls_results_close(results);
    }
    CU_ASSERT_STRING_EQUAL(hex[0], hex[1]);
    CU_ASSERT_STRING_NOT_EQUAL(hex[0], hex[2]);
    ls_spec_free(spec);
}

static void test_merge(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    int64_t points[4];
    char whole[LS_DIGEST_HEX_BYTES], joined[LS_DIGEST_HEX_BYTES];
    ls_error error = {""};
    ls_results *all = open_new("all.db"), *one = open_new("one.db"), *two = open_new("two.db"),
               *target = open_new("target.db");
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(all, spec, points, NULL), LS_OK);
    for (uint32_t i = 0; i < 4; i++) add(all, points[i], i, i, 2.0 * i);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(one, spec, points, NULL), LS_OK);
    add(one, points[0], 0, 0, 0);
    add(one, points[2], 2, 2, 4);
    add_of(one, &origin, points[1], 1, LS_RUN_CRASHED, NULL);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(two, spec, points, NULL), LS_OK);
    add(two, points[3], 3, 3, 6);
    add(two, points[1], 1, 1, 2);
    add(two, points[0], 0, 0, 0); /* both have it */
    CU_ASSERT_EQUAL(ls_results_merge(target, ls_test_path("one.db"), &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_merge(target, ls_test_path("two.db"), &error), LS_OK);
    CU_ASSERT_EQUAL(ls_results_merge(target, ls_test_path("two.db"), &error), LS_OK);
    hash_of(all, whole);
    hash_of(target, joined);
    CU_ASSERT_STRING_EQUAL(whole, joined);
    CU_ASSERT_EQUAL(ls_results_merge(target, ls_test_path("gone.db"), &error), LS_ERROR_IO);
    ls_results_close(all);
    ls_results_close(one);
    ls_results_close(two);
    ls_results_close(target);
    ls_spec_free(spec);
}

static ls_result merge_into(const char *name, const char *other, ls_error *error)
{
    ls_results *results = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_results_open(ls_test_path(name), LS_RESULTS_WRITE, &results, error), LS_OK);
    ls_result result = ls_results_merge(results, ls_test_path(other), error);
    ls_results_close(results);
    return result;
}

/* What `values` differ in must be named, and nothing of the file may have gone in: its good run neither. */
static void expect_contradiction(double first, double second, const char *named)
{
    ls_spec *spec = ls_test_spec(SPEC);
    int64_t points[4];
    char before[LS_DIGEST_HEX_BYTES], after[LS_DIGEST_HEX_BYTES];
    ls_error error = {""};
    ls_results *one = open_new("ours.db"), *two = open_new("theirs.db");
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(one, spec, points, NULL), LS_OK);
    add(one, points[0], 7, 1, 2);
    hash_of(one, before);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(two, spec, points, NULL), LS_OK);
    add(two, points[1], 0, 3, 4);
    add(two, points[0], 7, first, second);
    CU_ASSERT_EQUAL(merge_into("ours.db", "theirs.db", &error), LS_ERROR_VIOLATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "replication 7"));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, named));
    hash_of(one, after);
    CU_ASSERT_STRING_EQUAL(before, after);
    /* The same run of another program contradicts nothing. */
    ls_results_close(two);
    two = open_new("theirs.db");
    ls_run_origin newer = {"another", origin.backend};
    ls_run_result result = values(first, second);
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(two, spec, points, NULL), LS_OK);
    add_of(two, &newer, points[0], 7, LS_RUN_OK, &result);
    CU_ASSERT_EQUAL(merge_into("ours.db", "theirs.db", &error), LS_OK);
    ls_results_close(one);
    ls_results_close(two);
    ls_spec_free(spec);
}

static void test_contradictions(void)
{
    expect_contradiction(nextafter(1, 2), 2, " is 1.0 here and 1.0000000000000002 there");
    expect_contradiction(1, NAN, " is 2.0 here and absent there");
    ls_error error = {""};
    ls_spec *spec = ls_test_spec(SPEC);
    int64_t points[4];
    /* The same spec, read to fewer points. */
    ls_results *one = open_new("ours.db"), *two = open_new("theirs.db");
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(one, spec, points, NULL), LS_OK);
    spec->point_count--;
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(two, spec, points, NULL), LS_OK);
    spec->point_count++;
    CU_ASSERT_EQUAL(merge_into("ours.db", "theirs.db", &error), LS_ERROR_VIOLATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "has the same spec but other points there"));
    CU_ASSERT_EQUAL(merge_into("theirs.db", "ours.db", &error), LS_ERROR_VIOLATED);
    /* A file into itself. */
    CU_ASSERT_EQUAL(merge_into("ours.db", "ours.db", &error), LS_OK);
    /* The same spec, read to another rule. */
    spec->replications.maximum++;
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(two, spec, points, NULL), LS_OK);
    CU_ASSERT_EQUAL(merge_into("ours.db", "theirs.db", &error), LS_ERROR_VIOLATED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "another stopping rule"));
    ls_results_close(one);
    ls_results_close(two);
    ls_spec_free(spec);
}

/* Two policies, two group values; three replications with a shared part that pairing must cancel. */
static void fill(ls_results *results, const int64_t *points)
{
    static const double luck[] = {100, 200, 330};
    for (uint32_t r = 0; r < 3; r++) {
        add(results, points[0], r, luck[r], 1);       /* immediate, 1 producer */
        add(results, points[1], r, 2 * luck[r], NAN); /* immediate, 2 */
        add(results, points[2], r, luck[r] + r, 3);   /* dac, 1: differences 0 1 2 */
    }
    add(results, points[2], 3, 5000, 3); /* without partner: in the mean, not in the pairs */
}

static void test_load_and_tidy(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("tidy.db");
    int64_t points[4];
    ls_error error = {""};
    ls_stored_experiment *e = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    fill(results, points);
    add_of(results, &origin, points[3], 0, LS_RUN_FAILED, NULL);
    CU_ASSERT_EQUAL_FATAL(ls_results_load(results, NULL, NULL, &e, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(e->name, "demo");
    CU_ASSERT_STRING_EQUAL(e->title, "T");
    CU_ASSERT_STRING_EQUAL(e->version, "1.2.3");
    CU_ASSERT_STRING_EQUAL(e->compare_baseline, "immediate");
    CU_ASSERT_EQUAL(e->seed, 9);
    CU_ASSERT_EQUAL(e->points[3].failed_count, 1);
    CU_ASSERT_STRING_EQUAL(e->points[3].hash, spec->points[3].hash);
    ls_text text = {0};
    CU_ASSERT_EQUAL(ls_tidy(e, &text), LS_OK);
    /* Mean 210, deviation sqrt(13300): half-width 4.302653 * 115.3256 / sqrt(3) = 286.486. */
    static const char start[] =
        "policy\tproducers.count\treplications\tdelay_s\tdelay_s.half_width\tspeed\tspeed.half_width\n"
        "immediate\t1\t3\t1\t0\t210\t286.4";
    CU_ASSERT_EQUAL(strncmp(text.bytes, start, strlen(start)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "\nimmediate\t2\t3\tnan\tnan\t420\t572."));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "\ndac\t2\t0\tnan\tnan\tnan\tnan\n"));
    ls_text_free(&text);
    ls_stored_experiment_free(e);
    e = NULL;
    CU_ASSERT_EQUAL(ls_results_load(results, "dmo", NULL, &e, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "it holds demo"));
    /* A backend without runs: the points, and nothing in them. */
    CU_ASSERT_EQUAL_FATAL(ls_results_load(results, "demo", "memory", &e, &error), LS_OK);
    CU_ASSERT_EQUAL(e->points[0].run_count, 0);
    CU_ASSERT_EQUAL(e->metric_count, 0);
    ls_stored_experiment_free(e);
    ls_results_close(results);
    ls_spec_free(spec);
}

static void test_compare(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("compare.db");
    int64_t points[4];
    ls_error error = {""};
    ls_stored_experiment *e = NULL;
    ls_comparison c;
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    fill(results, points);
    CU_ASSERT_EQUAL_FATAL(ls_results_load(results, NULL, NULL, &e, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(ls_compare(e, NULL, NULL, "speed", &c, &error), LS_OK);
    CU_ASSERT_EQUAL_FATAL(c.row_count, 4);
    CU_ASSERT_EQUAL(c.group_count, 2);
    /* Group 0 is one producer: immediate, then dac. */
    CU_ASSERT_EQUAL(c.rows[0].point, 0);
    CU_ASSERT_TRUE(c.rows[0].baseline);
    CU_ASSERT_EQUAL(c.rows[1].point, 2);
    CU_ASSERT_EQUAL(c.rows[1].estimate.count, 4);
    CU_ASSERT_EQUAL(c.rows[1].difference.estimate.count, 3);
    CU_ASSERT_DOUBLE_EQUAL(c.rows[1].difference.estimate.mean, 1.0, 1e-12);
    /* t = sqrt(3) with two degrees of freedom: p = 1 - t / sqrt(2 + t^2) = 1 - sqrt(3/5). */
    CU_ASSERT_DOUBLE_EQUAL(c.rows[1].difference.p_value, 1 - sqrt(0.6), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(c.rows[1].adjusted_p, 1 - sqrt(0.6), 1e-12);
    CU_ASSERT_EQUAL(c.rows[3].group, 1);
    CU_ASSERT(isnan(c.rows[3].difference.p_value));
    ls_text text = {0};
    ls_comparison_table(&c, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "producers.count = 2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "1 +- 2.5"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.bytes, "+0.5%"));
    ls_text_free(&text);
    ls_comparison_json(&c, &text);
    cJSON *json = cJSON_Parse(text.bytes);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")), 4);
    cJSON_Delete(json);
    ls_text_free(&text);
    ls_free(c.rows);
    /* By another key the groups are the policies. */
    CU_ASSERT_EQUAL_FATAL(ls_compare(e, "producers.count", "2", "speed", &c, &error), LS_OK);
    CU_ASSERT_DOUBLE_EQUAL(c.rows[0].difference.estimate.mean, -210, 1e-9);
    ls_free(c.rows);
    CU_ASSERT_EQUAL(ls_compare(e, "policies", NULL, "speed", &c, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "did you mean \"policy\""));
    CU_ASSERT_EQUAL(ls_compare(e, NULL, "oracle", "speed", &c, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "immediate, dac"));
    CU_ASSERT_EQUAL(ls_compare(e, NULL, NULL, "rare", &c, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "delay_s, speed"));
    ls_stored_experiment_free(e);
    ls_results_close(results);
    ls_spec_free(spec);
}

static void test_out_of_memory(void)
{
    ls_spec *spec = ls_test_spec(SPEC);
    ls_results *results = open_new("memory.db");
    int64_t points[4];
    CU_ASSERT_EQUAL_FATAL(ls_results_add_experiment(results, spec, points, NULL), LS_OK);
    fill(results, points);
    ls_results_close(results);
    bool succeeded = false;
    int64_t tries = 0;
    for (; tries < 2000 && !succeeded; tries++) {
        ls_error error = {""};
        ls_stored_experiment *e = NULL;
        ls_comparison c = {0};
        results = NULL;
        ls_fail_allocations_after(tries);
        ls_result result = ls_results_open(ls_test_path("memory.db"), LS_RESULTS_READ, &results, &error);
        if (result == LS_OK) result = ls_results_load(results, NULL, NULL, &e, &error);
        if (result == LS_OK) result = ls_compare(e, NULL, NULL, "speed", &c, &error);
        ls_fail_allocations_after(-1);
        succeeded = result == LS_OK;
        if (!succeeded && error.text[0] == '\0') CU_FAIL("an error without words");
        ls_free(c.rows);
        ls_stored_experiment_free(e);
        ls_results_close(results);
    }
    CU_ASSERT_TRUE(succeeded);
    CU_ASSERT(tries > 50);
    ls_spec_free(spec);
}

LS_SUITE(results, {"runs come back exactly", test_round_trip}, {"runs without metrics", test_run_without_metrics},
         {"refusals", test_refusals}, {"damaged file", test_damaged}, {"edited lists", test_edited},
         {"hash sees content only", test_hash}, {"hash and backends", test_hash_backend}, {"merge", test_merge},
         {"merge refuses contradictions", test_contradictions},
         {"load, plotting table", test_load_and_tidy}, {"comparison", test_compare},
         {"out of memory", test_out_of_memory})
