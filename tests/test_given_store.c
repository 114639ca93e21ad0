/* test_given_store.c - the conformance suite on a store that the caller names: LAKESTREAM_STORE=s3://bucket/prefix, dir:PATH, ...
 *
 * The suite exists only when the variable is set; so an ordinary test run neither skips nor pretends. Credentials and
 * endpoint of an S3 store come from AWS_* as for every command. `make validate-s3` uses it.
 */
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>

static ls_store *open_given(void *context)
{
    ls_error error = {""};
    char *prefix = NULL;
    ls_store *store = ls_store_open(context, &prefix, &error);
    if (store == NULL) fprintf(stderr, "%s\n", error.text);
    ls_free(prefix);
    return store;
}

static void test_conformance(void)
{
    ls_store_conformance(open_given, getenv("LAKESTREAM_STORE"));
}

static void test_probe(void)
{
    ls_error error = {""};
    char *prefix = NULL;
    ls_store *store = ls_store_open(getenv("LAKESTREAM_STORE"), &prefix, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    ls_result result = ls_store_probe(store, prefix, 20260601, &error);
    if (result != LS_OK) fprintf(stderr, "%s\n", error.text);
    CU_ASSERT_EQUAL(result, LS_OK);
    ls_free(prefix);
    ls_store_destroy(store);
}

__attribute__((constructor)) static void register_if_given(void)
{
    static const ls_test tests[] = {{"put-if-absent is honoured", test_probe}, {"conformance", test_conformance}, {NULL, NULL}};
    const char *address = getenv("LAKESTREAM_STORE");
    if (address != NULL && address[0] != 0) ls_suite_register("given_store", tests);
}
