/* suite.h - how test files join the one runner: each defines suites with LS_SUITE and is picked up by the Makefile.
 *
 *   static void test_something(void) { CU_ASSERT_EQUAL(...); }
 *   LS_SUITE(manifest, {"append keeps the parent", test_something}, ...)
 */
#ifndef LS_TEST_SUITE_H
#define LS_TEST_SUITE_H

#include <CUnit/CUnit.h>

typedef struct ls_test {
    const char *name;
    void (*function)(void);
} ls_test;

/* Called before main by LS_SUITE; tests ends with a row whose function is NULL. */
void ls_suite_register(const char *name, const ls_test *tests);

#define LS_SUITE(name, ...)                                                      \
    __attribute__((constructor)) static void ls_register_##name(void)            \
    {                                                                            \
        static const ls_test tests[] = {__VA_ARGS__, {NULL, NULL}};              \
        ls_suite_register(#name, tests);                                         \
    }

/* Whether a sanitizer is built in: memory is counted otherwise, and a client's processor time becomes part of what a clock measures. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LS_TEST_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LS_TEST_SANITIZED true
#endif
#endif
#ifndef LS_TEST_SANITIZED
#define LS_TEST_SANITIZED false
#endif

/* A file in the temporary folder of this test run, removed at its end; valid until the next eight calls. */
const char *ls_test_path(const char *name);

#endif
