/* test_fuzz_worlds.c - the fuzzer of worlds: clean on the protocol as it is, and sharp enough for one that is broken on purpose.
 *
 * A defect is planted where a request leaves its machine. Each must be found within a few hundred seeds, and what the shrinker
 * leaves must fail still, say the same, and be small.
 */
#include "experiments/scenario_spec.h"
#include "experiments/spec.h"
#include "sim/fuzz_world.h"
#include "sim/metrics.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SEEDS 300u

static void test_clean(void)
{
    double sums[LS_METRIC_COUNT] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        ls_scenario scenario;
        ls_run_result result;
        ls_error error = {""};
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(seed, &scenario, &error), LS_OK);
        ls_result outcome = ls_simulate(&scenario, seed, 0, &result, &error);
        if (outcome != LS_OK) fprintf(stderr, "\n    seed %llu: %s\n", (unsigned long long)seed, error.text);
        CU_ASSERT_EQUAL_FATAL(outcome, LS_OK);
        for (uint32_t i = 0; i < LS_METRIC_COUNT; i++) sums[i] += result.values[i] == result.values[i] ? result.values[i] : 0;
    }
    /* Clean means something only if much went wrong on the way. */
    CU_ASSERT(sums[LS_METRIC_CRASHES] > SEEDS);
    CU_ASSERT(sums[LS_METRIC_FENCED] > 50);
    CU_ASSERT(sums[LS_METRIC_RECOVERED_BATCHES] > 50);
    CU_ASSERT(sums[LS_METRIC_DUPLICATES_REFUSED] > 50);
    CU_ASSERT(sums[LS_METRIC_AMBIGUOUS] > SEEDS);
}

static void test_draws(void)
{
    ls_scenario a, b;
    ls_error error;
    uint32_t policies = 0;
    uint64_t seen = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(seed, &a, &error), LS_OK);
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(seed, &b, &error), LS_OK);
        CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
        CU_ASSERT(a.producers.count >= 1 && a.producers.count <= 8);
        uint32_t count;
        const ls_policy *const *policy = ls_policies(&count);
        for (uint32_t i = 0; i < count; i++) {
            if (a.policy.policy == policy[i]) seen |= UINT64_C(1) << i;
        }
        policies = count;
    }
    CU_ASSERT_EQUAL(seen, (UINT64_C(1) << policies) - 1); /* every policy comes up */
}

/* --- planted defects --------------------------------------------------------------------------------------------------- */

static bool is_commit(const ls_store_request *request)
{
    return request->operation == LS_PUT && request->key.kind == LS_OBJECT_MANIFEST;
}

/* A store that ignores the condition of a put: the second writer of a version wins too. */
static ls_result ignore_condition(void *context, uint32_t producer, ls_store_request *request)
{
    (void)context;
    (void)producer;
    if (is_commit(request)) request->if_absent = false;
    return LS_OK;
}

/* A rebase that appends twice: the last new entry stands in the version a second time. */
static ls_result append_twice(void *context, uint32_t producer, ls_store_request *request)
{
    (void)context;
    if (!is_commit(request) || ls_manifest_entry_count(request->manifest) == 0) return LS_OK;
    const ls_manifest *version = request->manifest;
    uint64_t end = ls_manifest_end_step(version);
    ls_entry last;
    if (!ls_manifest_entry(version, end - 1, &last) || last.producer != producer) return LS_OK;
    uint32_t rows = ls_manifest_row_count(version);
    ls_row *row = ls_allocate_array(rows, sizeof *row);
    if (row == NULL) return LS_ERROR_MEMORY;
    for (uint32_t i = 0; i < rows; i++) row[i] = *ls_manifest_row(version, i);
    ls_manifest_parts parts = {.version = ls_manifest_version(version), .id = ls_manifest_commit_id(version), .base = version,
                               .first_step = end, .entries = &last, .entry_count = 1, .rows = row, .row_count = rows};
    ls_manifest *twice = NULL;
    ls_result result = ls_manifest_build(&parts, &twice);
    ls_free(row);
    if (result != LS_OK) return result;
    ls_manifest_release(version);
    request->manifest = twice;
    request->body_bytes = ls_manifest_encoded_bytes(twice);
    return LS_OK;
}

/* An upload that is cut short, and goes unnoticed by its maker. */
static ls_result truncate_upload(void *context, uint32_t producer, ls_store_request *request)
{
    (void)context;
    (void)producer;
    if (request->operation == LS_PUT && request->key.kind == LS_OBJECT_DATA) request->body_bytes--;
    return LS_OK;
}

/* A put of a data object of a second incarnation that reaches nobody: the batches of a restart never come to be. */
static ls_result misname_epoch(void *context, uint32_t producer, ls_store_request *request)
{
    (void)context;
    (void)producer;
    if (request->operation == LS_PUT && request->key.kind == LS_OBJECT_DATA && request->key.epoch > 1) request->key.epoch--;
    return LS_OK;
}

typedef struct planted {
    const char *name;
    ls_result (*request)(void *context, uint32_t producer, ls_store_request *request);
    const char *invariant;     /* how the message begins */
    uint64_t most_producers;   /* what the shrinker must come down to; producers keep their numbers, so a fault of the fourth needs four */
} planted;

static void find_and_shrink(const planted *defect)
{
    ls_simulation_watcher watcher = {.request = defect->request};
    ls_scenario scenario, again;
    ls_error error = {""};
    uint64_t seed = 0;
    ls_result result = LS_OK;
    while (result == LS_OK && seed < SEEDS) {
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(++seed, &scenario, &error), LS_OK);
        result = ls_fuzz_run(&scenario, seed, &watcher, &error);
    }
    CU_ASSERT_EQUAL_FATAL(result, LS_ERROR_VIOLATED);
    again = scenario;
    uint32_t runs = 0;
    CU_ASSERT_EQUAL(ls_fuzz_shrink(&scenario, seed, &watcher, 2000, &runs, &error), LS_ERROR_VIOLATED);
    if (strncmp(error.text, defect->invariant, strlen(defect->invariant)) != 0 || scenario.producers.count > defect->most_producers) {
        fprintf(stderr, "\n    %s, seed %llu, %llu producers: %s\n", defect->name, (unsigned long long)seed,
                (unsigned long long)scenario.producers.count, error.text);
    }
    CU_ASSERT_EQUAL(strncmp(error.text, defect->invariant, strlen(defect->invariant)), 0);
    CU_ASSERT(scenario.producers.count <= defect->most_producers);
    CU_ASSERT(scenario.duration_s <= again.duration_s);
    CU_ASSERT(runs < 2000);
    ls_error repeated = {""};
    CU_ASSERT_EQUAL(ls_fuzz_run(&scenario, seed, &watcher, &repeated), LS_ERROR_VIOLATED);
    CU_ASSERT_STRING_EQUAL(repeated.text, error.text);
    CU_ASSERT_EQUAL(ls_fuzz_run(&scenario, seed, NULL, &error), LS_OK); /* without the defect nothing is wrong with it */
}

static void test_planted(void)
{
    static const planted defects[] = {{"condition ignored", ignore_condition, "I1", 2},
                                      {"appended twice", append_twice, "I4", 1},
                                      {"upload cut short", truncate_upload, "I6", 1},
                                      {"epoch of a restart forgotten", misname_epoch, "I6", 4}};
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) find_and_shrink(&defects[i]);
}

static void test_shrinking_a_sound_world(void)
{
    ls_scenario scenario, before;
    ls_error error = {""};
    uint32_t runs = 0;
    CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(1, &scenario, &error), LS_OK);
    before = scenario;
    CU_ASSERT_EQUAL(ls_fuzz_shrink(&scenario, 1, NULL, 100, &runs, &error), LS_OK);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_EQUAL(memcmp(&scenario, &before, sizeof before), 0);
}

/* What is printed for a failing seed reads back as the very same scenario. */
static void test_spec_round_trip(void)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    for (uint64_t seed = 1; seed <= 60; seed++) {
        ls_scenario scenario;
        ls_error error = {""};
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(seed, &scenario, &error), LS_OK);
        char *text = ls_scenario_spec(&scenario, seed, "a \"seed\""), *wanted = ls_scenario_canonical(&vocabulary, &scenario);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(wanted);
        ls_spec *spec = NULL;
        ls_result result = ls_spec_parse("printed", text, strlen(text), &vocabulary, false, &spec, &error);
        if (result != LS_OK) fprintf(stderr, "\n    seed %llu: %s\n", (unsigned long long)seed, error.text);
        CU_ASSERT_EQUAL_FATAL(result, LS_OK);
        CU_ASSERT_EQUAL(spec->seed, seed);
        CU_ASSERT_EQUAL(spec->point_count, 1);
        CU_ASSERT_STRING_EQUAL(spec->points[0].resolved, wanted);
        ls_spec_free(spec);
        ls_free(text);
        ls_free(wanted);
    }
}

/* --- the commands ------------------------------------------------------------------------------------------------------- */

/* Runs the program with its output in a file; the exit code, and the output's beginning in text. */
static int run_program(const char *arguments, char *text, size_t size)
{
    const char *program = getenv("LAKESTREAM"), *path = ls_test_path("output");
    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    char command[1024];
    snprintf(command, sizeof command, "'%s' %s >'%s'", program, arguments, path);
    int status = system(command);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_fuzz_command(void)
{
    char text[256];
    CU_ASSERT_EQUAL(run_program("fuzz --seeds 20 --first 7 -j 3 --json", text, sizeof text), 0);
    CU_ASSERT_STRING_EQUAL(text, "{\"first\":7,\"seeds\":20,\"failed\":null}\n");
    CU_ASSERT_EQUAL(run_program("fuzz --replay 8", text, sizeof text), 0);
    CU_ASSERT_EQUAL(run_program("fuzz --seeds 0 2>/dev/null", text, sizeof text), 2);
}

/* One producer, a batch every second, crash at 3.5 s, down for 3 s: the time line shows the gap and what follows. */
static void test_series_command(void)
{
    static const char spec[] =
        "{\"title\": \"t\", \"seed\": 1, \"base\": {\"producers\": {\"count\": 1, \"start_spread_s\": 0}, \"store\": \"local\","
        " \"batches\": {\"law\": \"regular\", \"bytes\": 1000}, \"policy\": \"immediate\", \"warm_up_s\": 0, \"duration_s\": 10,"
        " \"series_step_s\": 1, \"faults\": {\"crash_at_s\": 3.5, \"restart_s\": 3}},"
        " \"sweep\": [{\"cartesian\": {\"upload.concurrency\": [1, 2]}}]}";
    const char *path = ls_test_path("series.json");
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(spec, file);
    fclose(file);
    char arguments[512], text[1024];
    snprintf(arguments, sizeof arguments, "series '%s' --point 1", path);
    CU_ASSERT_EQUAL(run_program(arguments, text, sizeof text), 0);
    const char *header = "upload.concurrency\ttime_s\tpublished_per_s\ttrainer_steps_per_s\tstored_bytes\n";
    CU_ASSERT_EQUAL(strncmp(text, header, strlen(header)), 0);
    double rate[16];
    int rows = 0;
    for (char *line = strchr(text, '\n'); line != NULL && line[1] != 0 && rows < 16; line = strchr(line + 1, '\n')) {
        int concurrency = 0;
        double time_s = 0;
        CU_ASSERT_EQUAL(sscanf(line + 1, "%d\t%lf\t%lf", &concurrency, &time_s, &rate[rows]), 3);
        CU_ASSERT_EQUAL(concurrency, 2);
        CU_ASSERT_EQUAL(time_s, ++rows);
    }
    CU_ASSERT(rows >= 9);
    CU_ASSERT_EQUAL(rate[1], 1);
    CU_ASSERT_EQUAL(rate[4] + rate[5], 0); /* 4 to 6 s: down */
    CU_ASSERT_EQUAL(rate[8], 1);
    snprintf(arguments, sizeof arguments, "series '%s' --point 2 2>/dev/null", path);
    CU_ASSERT_EQUAL(run_program(arguments, text, sizeof text), 2);
}

LS_SUITE(fuzz_worlds,
         {"300 seeds are clean, and much goes wrong in them", test_clean},
         {"draws", test_draws},
         {"planted defects are found and made small", test_planted},
         {"shrinking a sound world", test_shrinking_a_sound_world},
         {"a printed spec reads back the same", test_spec_round_trip},
         {"command fuzz", test_fuzz_command},
         {"command series", test_series_command})
