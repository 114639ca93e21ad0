/* test_plugin.c - policies from outside: what is refused before it runs, what policy-test finds, and who is named when one crashes. The
 * folder of the built plug-ins is in LAKESTREAM_PLUGINS, the program in LAKESTREAM. */
#include "experiments/policy_test.h"
#include "policies/plugin.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Runs the program; in its arguments @ stands for the folder of plug-ins and ~ for a file of this test. */
static int run(const char *arguments, char *text, size_t room)
{
    char command[4096];
    const char *program = getenv("LAKESTREAM"), *folder = getenv("LAKESTREAM_PLUGINS");
    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    size_t length = (size_t)snprintf(command, sizeof command, "%s ", program);
    for (const char *c = arguments; *c != '\0' && length + 600 < sizeof command; c++) {
        const char *part = *c == '@' ? folder : *c == '~' ? ls_test_path("plugin") : NULL;
        length += (size_t)snprintf(command + length, sizeof command - length, "%.*s", part != NULL ? 500 : 1, part != NULL ? part : c);
    }
    snprintf(command + length, sizeof command - length, " 2>&1");
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    text[fread(text, 1, room - 1, pipe)] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect(const char *arguments, int code, const char *part)
{
    static char text[65536];
    int got = run(arguments, text, sizeof text);
    if (got != code || strstr(text, part) == NULL) {
        printf("\n      lakestream %s\n      gave %d (wanted %d): %s\n      wanted \"%s\"", arguments, got, code, text, part);
    }
    CU_ASSERT_EQUAL(got, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

static void test_refused(void)
{
    expect("--plugin @/none.so policies", 3, "none.so");
    expect("--plugin @/nothing.so policies", 2, "is no policy plug-in");
    expect("--plugin @/old.so policies", 3, "was built for interface 2 of policies, this program has 1");
    expect("--plugin @/strange.so policies", 3, "was built against other headers");
    expect("--plugin @/dac.so policies", 2, "there is a policy or preset 'dac' already");
    expect("policies --plugin", 2, "--plugin needs a file");
}

static void test_listed(void)
{
    expect("--plugin @/courteous.so policies", 0, "patience             1        default 4");
    expect("policies --plugin=@/courteous.so", 0, "courteous");
    expect("policies", 0, "dac");
}

static void test_examined(void)
{
    expect("policy-test @/courteous.so", 0, "ok     courteous: faults      200 random worlds");
    expect("policy-test @/forgets.so", 1, "gave another answer or state");
    expect("policy-test @/spills.so", 1, "bytes beside the state were written");
    expect("policy-test @/starves.so", 1, "the answer is 'never' with a full backlog");
    expect("policy-test @/hurries.so", 1, "the store asked to wait and the answer comes sooner");
    expect("policy-test dca", 2, "did you mean 'dac'?");
}

/* Under a sanitizer, which answers fatal signals itself, only that it ends badly. */
static void test_crash_is_named(void)
{
    static char text[65536];
    int code = run("policy-test @/crashes.so", text, sizeof text);
    CU_ASSERT_NOT_EQUAL(code, 0);
    if (!LS_TEST_SANITIZED) CU_ASSERT_PTR_NOT_NULL(strstr(text, "crashes.so crashed or hung in policy 'crashes'"));
    code = run("policy-test @/hangs.so --limit 1", text, sizeof text);
    CU_ASSERT_NOT_EQUAL(code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "hangs.so crashed or hung in policy 'hangs'"));
}

/* A run with a plug-in carries the digest of its file, so that another build of it is run anew. */
static void test_identity(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s.json", ls_test_path("plugin"));
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("{\"replications\": 2, \"base\": {\"policy\": {\"name\": \"courteous\", \"patience\": 2}, \"producers\": {\"count\": 4}, "
          "\"duration_s\": 10, \"store\": \"local\"}}", file);
    fclose(file);
    expect("run ~.json -o ~.db", 2, "there is no policy 'courteous'");
    expect("--plugin @/courteous.so run ~.json -o ~.db", 0, "2 new, 0 stored before");
    expect("--plugin @/courteous.so run ~.json -o ~.db", 0, "0 new, 2 stored before");
    expect("--plugin @/hurries.so --plugin @/courteous.so run ~.json -o ~.db", 0, "2 new, 0 stored before");
}

static void nothing(const void *parameters, void *state, ls_random *random, const ls_commit_view *view, ls_commit_decision *decision)
{
    (void)parameters, (void)state, (void)random, (void)view, (void)decision;
}

static void expect_declaration(ls_policy policy, const char *part)
{
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_policy_check(&policy, &error), LS_ERROR_INVALID);
    if (strstr(error.text, part) == NULL) printf("\n      \"%s\", wanted \"%s\"", error.text, part);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
}

static void test_declarations(void)
{
    ls_error error = {""};
    ls_policy_parameter row[2] = {LS_PARAMETER("base_s", "s", 1, 0, 2, "time"), LS_PARAMETER("base_s", "s", 1, 0, 2, "time")};
    const ls_policy good = {.name = "good", .rule = "r", .source = "s", .parameters = row, .parameter_count = 1, .decide = nothing};
    CU_ASSERT_EQUAL(ls_policy_check(&good, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_policy_check(NULL, &error), LS_ERROR_INVALID);
    ls_policy bad = good;
    bad.name = "Good";
    expect_declaration(bad, "a policy needs a name");
    bad = good, bad.rule = "";
    expect_declaration(bad, "needs a rule");
    bad = good, bad.decide = NULL;
    expect_declaration(bad, "no decide");
    bad = good, bad.parameter_count = LS_POLICY_PARAMETERS_MAX + 1;
    expect_declaration(bad, "has 13 parameters, at most 12");
    bad = good, bad.parameter_count = 2;
    expect_declaration(bad, "declares parameter 'base_s' twice");
    row[0].default_value = 3;
    expect_declaration(good, "outside its range 0 to 2");
    row[0].default_value = NAN;
    expect_declaration(good, "outside its range");
    row[0].default_value = 1, row[0].name = "name";
    expect_declaration(good, "cannot be called 'name'");
    row[0].name = "base_s", row[0].unit = "";
    expect_declaration(good, "needs a unit");
}

static void test_own_policies(void)
{
    uint32_t count;
    const ls_policy *const *policies = ls_policies(&count);
    for (uint32_t i = 0; i < count; i++) {
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_policy_check(policies[i], &error), LS_OK);
        CU_ASSERT_EQUAL(ls_policy_test_decisions(policies[i], 7, 3000, &error), LS_OK);
        CU_ASSERT_EQUAL(ls_policy_test_worlds(policies[i]->name, 7, &error), LS_OK);
        if (error.text[0] != '\0') printf("\n      %s: %s", policies[i]->name, error.text);
    }
}

LS_SUITE(plugin, {"refused before it runs", test_refused}, {"listed and named in specs", test_listed}, {"declarations", test_declarations},
         {"policy-test finds what is wrong", test_examined}, {"a crash and a hang are named", test_crash_is_named},
         {"part of a run's identity", test_identity}, {"the program's own policies", test_own_policies})
