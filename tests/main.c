/* main.c - the test runner: all suites, or the one named on the command line; exit code 1 when an assertion failed. */
#include "tests/suite.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUITES_MAX 128

static struct {
    const char *name;
    const ls_test *tests;
} suites[SUITES_MAX];
static int suite_count;
static char folder[64];

void ls_suite_register(const char *name, const ls_test *tests)
{
    if (suite_count == SUITES_MAX) {
        fprintf(stderr, "tests: more than %d suites\n", SUITES_MAX);
        exit(1);
    }
    suites[suite_count].name = name;
    suites[suite_count].tests = tests;
    suite_count++;
}

const char *ls_test_path(const char *name)
{
    static char paths[8][256];
    static int next;
    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "tests: cannot remove %s\n", folder);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    snprintf(folder, sizeof folder, "/tmp/lakestream-test-XXXXXX");
    if (mkdtemp(folder) == NULL || CU_initialize_registry() != CUE_SUCCESS) {
        fprintf(stderr, "tests: cannot start\n");
        return 1;
    }
    qsort(suites, (size_t)suite_count, sizeof suites[0], compare_names);
    int added = 0;
    for (int i = 0; i < suite_count; i++) {
        if (wanted != NULL && strcmp(wanted, suites[i].name) != 0) continue;
        CU_pSuite suite = CU_add_suite(suites[i].name, NULL, NULL);
        for (const ls_test *test = suites[i].tests; suite != NULL && test->function != NULL; test++) {
            if (CU_add_test(suite, test->name, test->function) != NULL) added++;
        }
    }
    if (added == 0) {
        fprintf(stderr, "tests: no suite named '%s'\n", wanted != NULL ? wanted : "");
        return 1;
    }
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    remove_folder();
    return failures == 0 ? 0 : 1;
}
