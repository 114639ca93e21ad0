/* test_spec.c - reading specs: JSON strictness and positions, names, types, precedence, sweeps, the resolved form. */
#include "experiments/json.h"
#include "experiments/setting.h"
#include "experiments/spec.h"
#include "experiments/text.h"
#include "tests/fixture_spec.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses and expects a refusal whose message holds every part of `parts` (separated by '|'). */
static void expect_refusal_of(const char *text, size_t length, ls_result expected, const char *parts)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error = {""};
    ls_result result = ls_spec_parse("demo.json", text, length, &vocabulary, false, &spec, &error);
    CU_ASSERT_EQUAL(result, expected);
    CU_ASSERT_PTR_NULL(spec);
    ls_spec_free(spec);
    char copy[512], *state = NULL;
    snprintf(copy, sizeof copy, "%s", parts);
    for (char *part = strtok_r(copy, "|", &state); part != NULL; part = strtok_r(NULL, "|", &state)) {
        if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    }
}

static void expect_refusal(const char *text, const char *parts)
{
    expect_refusal_of(text, strlen(text), LS_ERROR_INVALID, parts);
}

static void test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},      {1.0 / 3, "0.3333333333333333"},
                 {1000, "1000"},    {-0.0, "0"},
                 {1e300, "1e+300"}, {123456789012.0, "123456789012"},
                 {1e-7, "1e-07"},   {0.02, "0.02"},
                 {-2.5, "-2.5"},    {5e-324, "5e-324"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buffer[32];
        CU_ASSERT_STRING_EQUAL(ls_number_text(cases[i].value, buffer), cases[i].text);
        CU_ASSERT_EQUAL(strtod(buffer, NULL), cases[i].value);
    }
    ls_text text = {0};
    ls_text_number(&text, NAN);
    ls_text_json(&text, "a\"\\\n\x01\xc3\xa9");
    ls_text_field(&text, "x\ty\nz");
    char *whole = ls_text_take(&text);
    CU_ASSERT_STRING_EQUAL(whole, "null\"a\\\"\\\\\\n\\u0001\xc3\xa9\"x y z");
    ls_free(whole);
}

static void test_json_positions(void)
{
    expect_refusal("{\n  \"title\": \"a\",\n  \"seed\" 1\n}", "demo.json:3:10|syntax");
    expect_refusal("{\"title\": \"a\"", "demo.json:1:14|ends here");
    expect_refusal("{\"seed\": 01}", "demo.json:1:10|not a JSON number");
    expect_refusal("{\"seed\": 1.}", "1:10|number");
    expect_refusal("{\"seed\": NaN}", "demo.json:1:10|syntax");
    expect_refusal("{\"seed\": 1e999}", "1:2|range of a double");
    expect_refusal("{\"seed\": 1} x", "demo.json:1:13|syntax");
    expect_refusal("{\"title\": \"a\x01\"}", "1:13|control character");
    expect_refusal("{\"title\": \"\xff\"}", "UTF-8");
    expect_refusal("{\"title\": \"\xed\xa0\x80\"}", "UTF-8");
    expect_refusal("{\"title\": \"\\u0000\"}", "u0000");
    expect_refusal("{\"title\": \"open", "1:11|does not end");
    expect_refusal("{\"seed\": 1,\n \"title\": \"b\", \"seed\": 2}", "demo.json:2:16|\"seed\" stands twice");
    expect_refusal("{\"base\": {\"producers\": {\"count\": 1, \"count\": 2}}}", "1:37|\"count\" stands twice");
    expect_refusal("", "demo.json:1:1");
    expect_refusal("[1]", "a spec is a JSON object");
    expect_refusal_of("{}\0x", 4, LS_ERROR_INVALID, "NUL");
}

static void test_json_limits(void)
{
    char deep[200];
    size_t length = 0;
    for (int i = 0; i < 33; i++) deep[length++] = '[';
    for (int i = 0; i < 33; i++) deep[length++] = ']';
    expect_refusal_of(deep, length, LS_ERROR_LIMIT, "1:33|deeper than 32");
    size_t size = (size_t)LS_JSON_BYTES_MAX + 1;
    char *large = ls_allocate(size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    memset(large, ' ', size);
    expect_refusal_of(large, size, LS_ERROR_LIMIT, "1 MiB");
    ls_free(large);
    ls_json json = {0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_json_read("/nonexistent/spec.json", &json, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "No such file"));
    ls_json_free(&json);
}

static void test_unknown_names(void)
{
    expect_refusal("{\"tilte\": \"x\"}", "1:2|tilte|did you mean \"title\"");
    expect_refusal("{\"base\": {\"producers\": {\"cuont\": 4}}}",
                   "demo.json:1:25|base.producers.cuont|count, established|did you mean \"producers.count\"");
    expect_refusal("{\"base\": {\"producers.cuont\": 4}}", "1:11|did you mean \"producers.count\"");
    expect_refusal("{\"base\": {\"produces\": {\"count\": 4}}}", "base.produces|did you mean \"producers\"");
    expect_refusal("{\"base\": {\"store\": {\"put\": {\"low\": \"constant\"}}}}",
                   "did you mean \"store.put.law\"|shape");
    expect_refusal("{\"base\": {\"store\": \"fest\"}}", "base.store|no store preset \"fest\"|did you mean \"fast\"");
    expect_refusal("{\"base\": {\"policy\": \"imediate\"}}", "base.policy|imediate|immediate");
    expect_refusal("{\"base\": {\"policy\": {\"name\": \"immediate\", \"batch_limitt\": 1}}}",
                   "base.policy.batch_limitt|batch_limit");
    expect_refusal("{\"quick\": {\"bass\": {}}}", "quick.bass|did you mean \"base\"");
    expect_refusal("{\"base\": {}, \"compare\": {\"metrics\": [\"sped\"]}}", "did you mean \"speed\"");
    expect_refusal("{\"replications\": {\"maximum\": 5, \"metric\": \"delay\", \"half_width\": 0.1}}", "delay_s");
}

static void test_wrong_values(void)
{
    expect_refusal("{\"base\": {\"producers\": {\"count\": 0}}}",
                   "1:25|base.producers.count: 0|whole number from 1 to 1000");
    expect_refusal("{\"base\": {\"producers\": {\"count\": 2.5}}}", "2.5|whole number");
    expect_refusal("{\"base\": {\"producers\": {\"count\": \"2\"}}}", "\"2\"|whole number");
    expect_refusal("{\"base\": {\"duration_s\": 1001}}", "1001|a number from 0.5 to 1000 (s)");
    expect_refusal("{\"base\": {\"producers\": {\"established\": 1}}}", "true or false");
    expect_refusal("{\"base\": {\"manifest\": {\"discovery\": \"lis\"}}}", "one of list, probe, gallop");
    expect_refusal("{\"base\": {\"manifest\": {\"discovery\": \"list probe\"}}}", "one of list, probe, gallop");
    expect_refusal("{\"base\": {\"producers\": 4}}", "base.producers|object with keys among count");
    expect_refusal("{\"base\": {\"producers.count\": {\"x\": 1}}}", "whole number");
    expect_refusal("{\"base\": 4}", "base: expected an object");
    expect_refusal("{\"base\": {\"policy\": 4}}", "a policy's name");
    expect_refusal("{\"base\": {\"policy\": {\"name\": 4}}}", "a policy's name");
    expect_refusal("{\"base\": {\"policy.batch_limit\": 4}}", "no policy is named");
    expect_refusal("{\"base\": {\"policy\": {\"name\": \"immediate\", \"batch_limit\": \"4\"}}}", "expected a number");
    expect_refusal("{\"base\": {\"policy\": {\"name\": \"immediate\", \"batch_limit\": -4}}}",
                   "base.policy.batch_limit");
    expect_refusal("{\"base\": {}}", "policy: none is named");
    expect_refusal("{\"seed\": -1}", "seed: expected a whole number");
    expect_refusal("{\"title\": 1}", "title: expected a string");
    expect_refusal("{\"replications\": 0}", "replications: expected a whole number from 1");
    expect_refusal("{\"replications\": \"3\"}", "replications: expected a number");
    expect_refusal("{\"replications\": {\"maximum\": 5}}", "needs maximum, metric and half_width");
    expect_refusal("{\"replications\": {\"minimum\": 6, \"maximum\": 5, \"metric\": \"speed\", \"half_width\": 0.1}}",
                   "replications.minimum|from 2 to 5");
    expect_refusal("{\"replications\": {\"maximum\": 5, \"metric\": \"speed\", \"half_width\": 0}}",
                   "half_width|above 0");
    expect_refusal("{\"base\": {\"producers\": {\"count\": 4}, \"producers.count\": 5}}",
                   "base.producers.count|set twice");
    expect_refusal("{\"base\": {\"policy\": \"immediate\", \"policy.name\": \"dac\"}}", "set twice");
}

static void test_sweep_refusals(void)
{
#define SWEEP(text) "{\"base\": {\"policy\": \"immediate\"}, \"sweep\": " text "}"
    expect_refusal(SWEEP("{}"), "sweep: expected a list");
    expect_refusal(SWEEP("[{}]"), "sweep[0]: expected an object with exactly one of");
    expect_refusal(SWEEP("[{\"cartesan\": {\"duration_s\": [1]}}]"), "did you mean \"cartesian\"");
    expect_refusal(SWEEP("[{\"cartesian\": {}}]"), "empty");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration_s\": []}}]"), "sweep[0].cartesian.duration_s|list is empty");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration_s\": 5}}]"), "expected a list");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration\": [5]}}]"),
                   "sweep[0].cartesian.duration|did you mean \"duration_s\"");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration_s\": [5, 0.1]}}]"), "sweep[0].cartesian.duration_s[1]: 0.1");
    expect_refusal(SWEEP("[{\"zip\": {\"duration_s\": [5, 6], \"producers.count\": [1]}}]"),
                   "sweep[0].zip.producers.count|1 values|\"duration_s\" has 2|equal length");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration_s\": [5]}}, {\"zip\": {\"duration_s\": [6]}}]"), "swept twice");
    expect_refusal(SWEEP("[{\"cartesian\": {\"duration_s\": [5, 5]}}]"), "points 0 and 1 are the same scenario");
    expect_refusal(SWEEP("[{\"cases\": [{\"duration_s\": 5}, 6]}]"), "sweep[0].cases[1]: expected an object");
    expect_refusal(SWEEP("[{\"cartesian\": {\"store.put\": [{\"shape\": 1}], \"store.put.shape\": [2]}}]"), "keep one");
    expect_refusal(SWEEP("[{\"cartesian\": {\"policy\": [\"immediate\", \"dac\"], \"policy.target_share\": [0.2]}}]"),
                   "policy.target_share[0]|target_share");
#undef SWEEP
    /* 200 * 200 points are more than the limit of 20000. */
    ls_text text = {0};
    ls_text_add(&text, "{\"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cartesian\": {\"producers.count\": [1");
    for (int i = 2; i <= 200; i++) ls_text_format(&text, ",%d", i);
    ls_text_add(&text, "], \"duration_s\": [1");
    for (int i = 2; i <= 200; i++) ls_text_format(&text, ",%d", i);
    ls_text_add(&text, "]}}]}");
    expect_refusal_of(text.bytes, text.length, LS_ERROR_LIMIT, "more than 20000 points");
    ls_text_free(&text);
}

static void test_defaults_and_top(void)
{
    ls_spec *spec = ls_test_spec("{\"base\": {\"policy\": \"immediate\"}}");
    CU_ASSERT_STRING_EQUAL(spec->name, "demo");
    CU_ASSERT_STRING_EQUAL(spec->title, "");
    CU_ASSERT_EQUAL(spec->seed, 1);
    CU_ASSERT_EQUAL(spec->replications.minimum, 1);
    CU_ASSERT_EQUAL(spec->replications.maximum, 1);
    CU_ASSERT_STRING_EQUAL(spec->compare_key, "policy");
    CU_ASSERT_EQUAL(spec->point_count, 1);
    CU_ASSERT_EQUAL(spec->swept_key_count, 0);
    const ls_scenario *scenario = &spec->points[0].scenario;
    CU_ASSERT_EQUAL(scenario->duration_s, 60.0);
    CU_ASSERT_EQUAL(scenario->producers.count, 8);
    CU_ASSERT_TRUE(scenario->producers.established);
    CU_ASSERT_EQUAL(scenario->manifest.discovery, 1);
    /* The default preset's numbers, not the options' defaults. */
    CU_ASSERT_EQUAL(scenario->store.put.scale_s, 0.25);
    CU_ASSERT_STRING_EQUAL(scenario->policy_name, "immediate");
    ls_spec_free(spec);

    spec = ls_test_spec(
        "{\"title\": \"T\", \"shows\": \"S\", \"seed\": 42, \"base\": {\"world\": \"queue\"},"
        "\"replications\": {\"minimum\": 2, \"maximum\": 9, \"metric\": \"speed\", \"half_width\": 0.05,"
        "\"confidence\": 0.9}, \"compare\": {\"key\": \"store\", \"baseline\": \"slow\", \"metrics\": [\"rare\"]}}");
    CU_ASSERT_STRING_EQUAL(spec->title, "T");
    CU_ASSERT_STRING_EQUAL(spec->shows, "S");
    CU_ASSERT_EQUAL(spec->seed, 42);
    CU_ASSERT_EQUAL(spec->replications.minimum, 2);
    CU_ASSERT_EQUAL(spec->replications.maximum, 9);
    CU_ASSERT_STRING_EQUAL(spec->replications.metric, "speed");
    CU_ASSERT_EQUAL(spec->replications.half_width, 0.05);
    CU_ASSERT_EQUAL(spec->replications.confidence, 0.9);
    CU_ASSERT_STRING_EQUAL(spec->compare_key, "store");
    CU_ASSERT_STRING_EQUAL(spec->compare_baseline, "slow");
    CU_ASSERT_EQUAL_FATAL(spec->compare_metric_count, 1);
    CU_ASSERT_STRING_EQUAL(spec->compare_metrics[0], "rare");
    CU_ASSERT_PTR_NULL(spec->points[0].scenario.policy.policy);
    ls_spec_free(spec);
}

static void test_nesting(void)
{
    ls_spec *nested = ls_test_spec("{\"base\": {\"policy\": \"immediate\", \"store\": {\"put\": {\"scale_s\": 3}}}}");
    ls_spec *dotted = ls_test_spec("{\"base\": {\"store.put.scale_s\": 3, \"policy.name\": \"immediate\"}}");
    ls_spec *mixed =
        ls_test_spec("{\"base\": {\"policy\": {\"name\": \"immediate\"}, \"store\": {\"put.scale_s\": 3}}}");
    CU_ASSERT_EQUAL(nested->points[0].scenario.store.put.scale_s, 3.0);
    CU_ASSERT_STRING_EQUAL(nested->points[0].hash, dotted->points[0].hash);
    CU_ASSERT_STRING_EQUAL(nested->points[0].hash, mixed->points[0].hash);
    ls_spec_free(nested);
    ls_spec_free(dotted);
    ls_spec_free(mixed);
}

static void test_preset_precedence(void)
{
    /* The preset comes first wherever it stands in the object. */
    ls_spec *spec = ls_test_spec(
        "{\"base\": {\"policy\": \"immediate\", \"store\": {\"put\": {\"shape\": 7}, \"preset\": \"slow\"}}}");
    const ls_scenario *scenario = &spec->points[0].scenario;
    CU_ASSERT_STRING_EQUAL(scenario->store_preset, "slow");
    CU_ASSERT_EQUAL(scenario->store.put.law, 2);
    CU_ASSERT_EQUAL(scenario->store.put.scale_s, 2.0);
    CU_ASSERT_EQUAL(scenario->store.put.shape, 7.0);
    ls_spec_free(spec);
    /* A swept preset keeps base's overrides. */
    spec = ls_test_spec("{\"base\": {\"policy\": \"immediate\", \"store.put_s_per_mib\": 1.5},"
                        "\"sweep\": [{\"cartesian\": {\"store\": [\"fast\", \"slow\", {\"preset\": \"slow\", \"put\": "
                        "{\"shape\": 9}}]}}]}");
    CU_ASSERT_EQUAL_FATAL(spec->point_count, 3);
    CU_ASSERT_EQUAL(spec->points[0].scenario.store.put.scale_s, 0.25);
    CU_ASSERT_EQUAL(spec->points[1].scenario.store.put.scale_s, 2.0);
    CU_ASSERT_EQUAL(spec->points[1].scenario.store.put_s_per_mib, 1.5);
    CU_ASSERT_EQUAL(spec->points[2].scenario.store.put.shape, 9.0);
    CU_ASSERT_EQUAL_FATAL(spec->swept_key_count, 1);
    CU_ASSERT_STRING_EQUAL(spec->swept_keys[0], "store");
    CU_ASSERT_STRING_EQUAL(spec->points[1].labels[0], "slow");
    CU_ASSERT_STRING_EQUAL(spec->points[2].labels[0], "slow put.shape=9");
    ls_spec_free(spec);
}

static void test_policy_precedence(void)
{
    ls_policy_instance plain;
    CU_ASSERT_EQUAL_FATAL(ls_policy_instantiate("immediate", &plain, NULL), LS_OK);
    /* Naming another policy drops the parameters of the one before: base's target_share is not immediate's. */
    ls_spec *spec =
        ls_test_spec("{\"base\": {\"policy\": {\"name\": \"dac\", \"target_share\": 0.3}}, \"sweep\": [{\"cartesian\":"
                     "{\"policy\": [\"immediate\", \"dac\", {\"target_share\": 0.25, \"name\": \"dac\"}]}}]}");
    CU_ASSERT_EQUAL_FATAL(spec->point_count, 3);
    CU_ASSERT_EQUAL(memcmp(&spec->points[0].scenario.policy, &plain, sizeof plain), 0);
    CU_ASSERT_STRING_EQUAL(spec->points[0].labels[0], "immediate");
    CU_ASSERT_STRING_EQUAL(spec->points[2].labels[0], "dac target_share=0.25");
    CU_ASSERT_PTR_NOT_NULL(strstr(spec->points[2].resolved, "\"target_share\":0.25"));
    CU_ASSERT_PTR_NULL(strstr(spec->points[1].resolved, "\"target_share\":0.3"));
    ls_spec_free(spec);
    /* A parameter alone varies the policy that base names, and its key is a column of its own. */
    spec = ls_test_spec(
        "{\"base\": {\"policy\": \"dac\"}, \"sweep\": [{\"cartesian\": {\"policy.target_share\": [0.2, 0.4]}}]}");
    CU_ASSERT_EQUAL_FATAL(spec->point_count, 2);
    CU_ASSERT_STRING_EQUAL(spec->swept_keys[0], "policy.target_share");
    CU_ASSERT_STRING_EQUAL(spec->points[1].labels[0], "0.4");
    CU_ASSERT_PTR_NOT_NULL(strstr(spec->points[1].resolved, "\"target_share\":0.4"));
    ls_spec_free(spec);
    /* The name comes first among the axes too. */
    spec = ls_test_spec("{\"sweep\": [{\"cartesian\": {\"policy.target_share\": [0.2], \"policy\": [\"dac\"]}}]}");
    CU_ASSERT_PTR_NOT_NULL(strstr(spec->points[0].resolved, "\"target_share\":0.2"));
    ls_spec_free(spec);
}

static void test_sweep_order(void)
{
    ls_spec *spec = ls_test_spec(
        "{\"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cartesian\": {\"producers\": {\"count\": [1, 2]},"
        "\"manifest.discovery\": [\"list\", \"gallop\"]}},"
        "{\"zip\": {\"duration_s\": [10, 20, 30], \"manifest.initial_entries\": [7, 8, 9]}}]}");
    CU_ASSERT_EQUAL_FATAL(spec->point_count, 12);
    CU_ASSERT_EQUAL_FATAL(spec->swept_key_count, 4);
    CU_ASSERT_STRING_EQUAL(spec->swept_keys[0], "producers.count");
    CU_ASSERT_STRING_EQUAL(spec->swept_keys[3], "manifest.initial_entries");
    for (uint32_t i = 0; i < 12; i++) {
        const ls_scenario *scenario = &spec->points[i].scenario;
        CU_ASSERT_EQUAL(scenario->producers.count, 1 + i / 6);
        CU_ASSERT_EQUAL(scenario->manifest.discovery, i / 3 % 2 == 0 ? 0u : 2u);
        CU_ASSERT_EQUAL(scenario->duration_s, 10.0 + 10.0 * (i % 3));
        CU_ASSERT_EQUAL(scenario->manifest.initial_entries, 7 + i % 3);
    }
    CU_ASSERT_STRING_EQUAL(spec->points[5].labels[1], "gallop");
    CU_ASSERT_STRING_EQUAL(spec->points[5].labels[2], "30");
    ls_spec_free(spec);
}

/* Groups become single columns; where a case says nothing, the column shows what holds. */
static void test_cases(void)
{
    ls_spec *spec = ls_test_spec(
        "{\"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cases\": [{\"store.put\": {\"law\": \"constant\"}},"
        "{\"store.put\": {\"law\": \"lognormal\", \"shape\": 0.5}, \"duration_s\": 5}, {}]}]}");
    CU_ASSERT_EQUAL_FATAL(spec->point_count, 3);
    CU_ASSERT_EQUAL_FATAL(spec->swept_key_count, 3);
    static const char *const keys[] = {"store.put.law", "store.put.shape", "duration_s"};
    static const char *const labels[3][3] = {
        {"constant", "0", "60"}, {"lognormal", "0.5", "5"}, {"exponential", "0", "60"}};
    for (int k = 0; k < 3; k++) {
        CU_ASSERT_STRING_EQUAL(spec->swept_keys[k], keys[k]);
        for (int i = 0; i < 3; i++) CU_ASSERT_STRING_EQUAL(spec->points[i].labels[k], labels[i][k]);
    }
    ls_spec_free(spec);
}

static void test_quick(void)
{
    static const char text[] =
        "{\"base\": {\"policy\": \"immediate\", \"duration_s\": 100, \"producers.count\": 5}, \"replications\": 4,"
        "\"sweep\": [{\"cartesian\": {\"manifest.initial_entries\": [1, 2, 3]}}],"
        "\"quick\": {\"base\": {\"duration_s\": 2}, \"replications\": 2,"
        "\"sweep\": [{\"cartesian\": {\"manifest.initial_entries\": [1]}}]}}";
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error;
    CU_ASSERT_EQUAL_FATAL(ls_spec_parse("a/b.c.json", text, strlen(text), &vocabulary, true, &spec, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(spec->name, "b.c");
    CU_ASSERT_TRUE(spec->quick);
    CU_ASSERT_EQUAL(spec->point_count, 1);
    CU_ASSERT_EQUAL(spec->replications.maximum, 2);
    CU_ASSERT_EQUAL(spec->points[0].scenario.duration_s, 2.0);
    CU_ASSERT_EQUAL(spec->points[0].scenario.producers.count, 5);
    ls_spec_free(spec);
    CU_ASSERT_EQUAL_FATAL(ls_spec_parse("b.json", text, strlen(text), &vocabulary, false, &spec, &error), LS_OK);
    CU_ASSERT_EQUAL(spec->point_count, 3);
    CU_ASSERT_EQUAL(spec->replications.maximum, 4);
    CU_ASSERT_EQUAL(spec->points[0].scenario.duration_s, 100.0);
    ls_spec_free(spec);
}

static void test_canonical(void)
{
    ls_spec *spec = ls_test_spec(
        "{\"base\": {\"world\": \"queue\", \"store\": {\"put\": {\"file\": \"a\\\"b\"}}, \"duration_s\": 0.7}}");
    const char *expected = "{\"duration_s\":0.7,\"manifest.discovery\":\"probe\",\"manifest.initial_entries\":0,"
                           "\"producers.count\":8,\"producers.established\":true,\"store.preset\":\"fast\","
                           "\"store.put.file\":\"a\\\"b\",\"store.put.law\":\"exponential\",\"store.put.scale_s\":0.25,"
                           "\"store.put.shape\":0,\"store.put_s_per_mib\":0.5,\"world\":\"queue\"}";
    CU_ASSERT_STRING_EQUAL(spec->points[0].resolved, expected);
    ls_spec_free(spec);
}

/* The resolved form is valid as "base" and resolves to itself. */
static void test_round_trip(void)
{
    ls_spec *spec =
        ls_test_spec("{\"base\": {\"store\": \"slow\", \"store.put.scale_s\": 0.1, \"policy\": {\"name\": \"dac\","
                     "\"target_share\": 0.3}, \"producers\": {\"established\": false}}}");
    ls_text text = {0};
    ls_text_format(&text, "{\"base\": %s}", spec->points[0].resolved);
    ls_spec *again = ls_test_spec(text.bytes);
    CU_ASSERT_STRING_EQUAL(again->points[0].resolved, spec->points[0].resolved);
    CU_ASSERT_STRING_EQUAL(again->points[0].hash, spec->points[0].hash);
    CU_ASSERT_EQUAL(memcmp(&again->points[0].scenario, &spec->points[0].scenario, sizeof(ls_scenario)), 0);
    ls_text_free(&text);
    ls_spec_free(again);
    ls_spec_free(spec);
}

/* SHA-256 of "abc" and of the empty string: FIPS 180-4's examples. */
static void test_digest(void)
{
    char hex[LS_DIGEST_HEX_BYTES];
    CU_ASSERT_EQUAL(ls_digest_text("abc", hex), LS_OK);
    CU_ASSERT_STRING_EQUAL(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CU_ASSERT_EQUAL(ls_digest_text("", hex), LS_OK);
    CU_ASSERT_STRING_EQUAL(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* Every allocation fails in turn: no crash, no leak (under the sanitizer), an error each time, and in the end success.
 */
static void test_out_of_memory(void)
{
    static const char text[] =
        "{\"title\": \"t\", \"base\": {\"policy\": {\"name\": \"dac\", \"target_share\": 0.3}, \"store\": \"slow\"},"
        "\"compare\": {\"baseline\": \"x\", \"metrics\": [\"speed\"]}, \"sweep\": [{\"cartesian\":"
        "{\"producers.count\": [1, 2]}}, {\"cases\": [{\"store.put\": {\"shape\": 1}}]}]}";
    ls_vocabulary vocabulary = ls_test_vocabulary();
    bool succeeded = false;
    int64_t tries = 0;
    for (; tries < 2000 && !succeeded; tries++) {
        ls_spec *spec = NULL;
        ls_error error = {""};
        ls_fail_allocations_after(tries);
        ls_result result = ls_spec_parse("demo.json", text, strlen(text), &vocabulary, false, &spec, &error);
        ls_fail_allocations_after(-1);
        succeeded = result == LS_OK;
        if (!succeeded && error.text[0] == '\0') CU_FAIL("an error without words");
        ls_spec_free(spec);
    }
    CU_ASSERT_TRUE(succeeded);
    CU_ASSERT(tries > 100);
}

LS_SUITE(spec, {"numbers and text", test_numbers}, {"JSON refusals have positions", test_json_positions},
         {"JSON limits", test_json_limits}, {"unknown names", test_unknown_names}, {"wrong values", test_wrong_values},
         {"sweep refusals", test_sweep_refusals}, {"defaults and top level", test_defaults_and_top},
         {"nested and dotted keys", test_nesting}, {"preset precedence", test_preset_precedence},
         {"policy precedence", test_policy_precedence}, {"order of points", test_sweep_order}, {"cases", test_cases},
         {"quick", test_quick}, {"canonical form", test_canonical}, {"canonical form reads back", test_round_trip},
         {"SHA-256", test_digest}, {"out of memory", test_out_of_memory})
