/* test_explore.c - the explorer: small worlds exhausted with known numbers of states, its bounds, and its replay files.
 *
 * The numbers of states are regression values: they change when a machine or the hash of a state changes, and must then be
 * looked at. tests/explore/mutants.sh shows that bugs are found.
 */
#include "sim/explorer.h"
#include "tests/suite.h"

static ls_explorer_result explored(ls_explorer_config config, ls_result expected)
{
    ls_explorer_result result;
    ls_error error = {""};
    ls_result got = ls_explore(&config, NULL, NULL, &result, &error);
    CU_ASSERT_EQUAL(got, expected);
    CU_ASSERT_FALSE(result.violated);
    if (result.violated) fprintf(stderr, "%s\n", result.violation.text);
    return result;
}

static void expect(ls_explorer_config config, uint64_t states)
{
    ls_explorer_result result = explored(config, LS_OK);
    CU_ASSERT_TRUE(result.exhausted);
    CU_ASSERT_EQUAL(result.states, states);
    if (result.states != states) fprintf(stderr, "states: %llu\n", (unsigned long long)result.states);
    ls_explorer_result_clear(&result);
}

static void test_known_worlds(void)
{
    expect((ls_explorer_config){.producers = 1, .batches = 1}, 15);
    expect((ls_explorer_config){.producers = 1, .batches = 1, .crashes = 1, .ambiguous = 1}, 1510);
    expect((ls_explorer_config){.producers = 1, .batches = 1, .zombies = 1, .lingering = 1}, 32974);
    expect((ls_explorer_config){.producers = 1, .batches = 2, .consumers = 1}, 411);
    expect((ls_explorer_config){.producers = 2, .batches = 1, .discovery = LS_DISCOVERY_PROBE,
                                .layout = LS_LAYOUT_FULL_TAIL}, 8090);
}

/* Without a batch and alone, nothing can happen in two ways: the machine's own sequence is the whole space. It lists, puts
 * its row, is told to stop, lists, puts the closed row: six states, one end. */
static void test_one_path(void)
{
    ls_explorer_result result = explored((ls_explorer_config){.producers = 1}, LS_OK);
    CU_ASSERT_EQUAL(result.states, 6);
    CU_ASSERT_EQUAL(result.transitions, 5);
    CU_ASSERT_EQUAL(result.ends, 1);
    ls_explorer_result_clear(&result);
}

static void test_limits(void)
{
    ls_explorer_result result =
        explored((ls_explorer_config){.producers = 2, .batches = 1, .states_max = 100}, LS_ERROR_LIMIT);
    CU_ASSERT_FALSE(result.exhausted);
    CU_ASSERT_EQUAL(result.states, 100);
    ls_explorer_result_clear(&result);
    result = explored((ls_explorer_config){.producers = 0}, LS_ERROR_INVALID);
    ls_explorer_result_clear(&result);
    result = explored((ls_explorer_config){.producers = 1, .crashes = LS_EXPLORER_FAULTS_MAX + 1}, LS_ERROR_INVALID);
    ls_explorer_result_clear(&result);
}

/* A file is read back as it was written, and its path carried out; nonsense is refused with its line. */
static void test_replay_file(void)
{
    uint32_t steps[] = {1u << 8, 1u << 8, 3u << 8};
    ls_explorer_config config = {.producers = 1, .lingering = 2, .discovery = LS_DISCOVERY_GALLOP}, read;
    ls_explorer_result result = {.path = steps, .path_length = 3};
    ls_error error = {""};
    FILE *file = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(ls_explorer_write(&config, &result, file, &error), LS_OK);
    rewind(file);
    uint32_t *path, length;
    CU_ASSERT_EQUAL_FATAL(ls_explorer_read(file, &read, &path, &length, &error), LS_OK);
    CU_ASSERT_EQUAL(length, 3);
    CU_ASSERT_EQUAL(path[2], steps[2]);
    CU_ASSERT_EQUAL(read.lingering, 2);
    CU_ASSERT_EQUAL(read.discovery, LS_DISCOVERY_GALLOP);
    CU_ASSERT_EQUAL(ls_explorer_replay(&read, path, length, NULL, &error), LS_OK);
    path[2] = steps[2] + 1; /* there is no second machine to stop */
    CU_ASSERT_EQUAL(ls_explorer_replay(&read, path, length, NULL, &error), LS_ERROR_INVALID);
    ls_free(path);
    fputs("vanish 3\n", file);
    rewind(file);
    CU_ASSERT_EQUAL(ls_explorer_read(file, &read, &path, &length, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NULL(path);
    CU_ASSERT_STRING_EQUAL(error.text, "line 5 is not of an explorer's replay file");
    fclose(file);
}

/* Whichever allocation fails, the search ends with that error and leaks nothing. */
static void test_memory(void)
{
    ls_explorer_config config = {.producers = 1, .batches = 1};
    ls_result got = LS_ERROR_MEMORY;
    for (int64_t n = 0; n < 300 && got != LS_OK; n++) {
        ls_explorer_result result;
        ls_error error;
        ls_fail_allocations_after(n);
        got = ls_explore(&config, NULL, NULL, &result, &error);
        ls_fail_allocations_after(-1);
        CU_ASSERT_TRUE(got == LS_OK || got == LS_ERROR_MEMORY);
        ls_explorer_result_clear(&result);
    }
    CU_ASSERT_EQUAL(got, LS_OK);
}

/* The reduced search and the whole one come to the same verdict and the same set of outcomes; the reduced one visits fewer states. */
static void test_reduction(void)
{
    static const ls_explorer_config worlds[] = {
        {.producers = 1, .batches = 2, .consumers = 1},
        {.producers = 2, .batches = 1},
        {.producers = 1, .batches = 2, .ambiguous = 1},
        {.producers = 1, .batches = 1, .crashes = 1, .ambiguous = 1},
        {.producers = 1, .batches = 1, .zombies = 1},
        {.producers = 1, .batches = 2, .lingering = 1},
        {.producers = 2, .batches = 1, .consumers = 1},
        {.producers = 1, .batches = 1, .consumers = 1, .reclaimers = 1, .checkpoints = 1},
    };
    for (uint32_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        ls_explorer_config config = worlds[i];
        ls_explorer_result whole = explored(config, LS_OK);
        config.reduced = true;
        ls_explorer_result reduced = explored(config, LS_OK);
        CU_ASSERT_TRUE(whole.exhausted);
        CU_ASSERT_TRUE(reduced.exhausted);
        CU_ASSERT_TRUE(reduced.states < whole.states);
        CU_ASSERT_TRUE(reduced.ends > 0 && reduced.ends <= whole.ends);
        CU_ASSERT_EQUAL(reduced.outcomes, whole.outcomes);
        CU_ASSERT_EQUAL(reduced.outcomes_digest, whole.outcomes_digest);
        ls_explorer_result_clear(&whole);
        ls_explorer_result_clear(&reduced);
    }
}

LS_SUITE(explore, {"the reduced search comes to the same verdict", test_reduction}, {"known worlds are exhausted", test_known_worlds}, {"one path", test_one_path},
         {"limits", test_limits}, {"replay file", test_replay_file}, {"every allocation fails once", test_memory})
