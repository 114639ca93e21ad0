/* test_answer.c - sentences computed from planted rows, by hand: every form of term, every refusal, published numbers.
 */
#include "experiments/answer.h"
#include "experiments/folder.h"
#include "experiments/pretty.h"
#include "tests/fixture_spec.h"
#include "tests/planted.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* speed, delay of: immediate 1, immediate 10, dac 1, dac 10, fixed 1, fixed 10 */
static const double means[] = {2, 8, 3, 16, 4, 1, 30, NAN, 5, 2, 1500, 4};
#define SPEC                                                                                                           \
    "{\"seed\": 9, \"base\": {}, \"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\", {\"name\": "        \
    "\"fixed\", \"interval_s\": 10}], \"producers.count\": [1, 10]}}]}"

static ls_stored_experiment *planted(void) { return ls_planted_experiment(SPEC, means, 6); }

static void expect(const ls_stored_experiment *e, const char *sentence, const char *expected)
{
    ls_text text = {0};
    ls_error error = {""};
    ls_result result = ls_answer(sentence, e, NULL, &text, &error);
    bool good = result == LS_OK && text.bytes != NULL && strcmp(text.bytes, expected) == 0;
    if (!good) printf("\n      \"%s\" gave \"%s\" %s", sentence, text.length > 0 ? text.bytes : "", error.text);
    CU_ASSERT_TRUE(good);
    ls_text_free(&text);
}

static void expect_failure(const ls_stored_experiment *e, const char *sentence, const char *part)
{
    ls_text text = {0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_answer(sentence, e, NULL, &text, &error), LS_ERROR_INVALID);
    if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    CU_ASSERT_EQUAL(text.length, 0);
    ls_text_free(&text);
}

static void test_numbers(void)
{
    ls_stored_experiment *e = planted();
    expect(e, "no term", "no term");
    expect(e, "{{x}} {speed[policy=dac, producers.count=10]}", "{x}} 30.0");
    expect(e, "{speed[policy=dac, producers.count=10] : 1}", "30");
    expect(e, "{speed[policy=dac,producers.count=10] / speed[policy=immediate,producers.count=10]:2} times",
           "10 times");
    expect(e, "{2 + 3 * (4 - 1) / 2 : 3}", "6.50");
    expect(e, "{ 10 - 2 - 3 : count }", "5"); /* from the left */
    expect(e, "{speed[policy=fixed, producers.count=largest] : count}", "1,500");
    expect(e, "{speed[policy=fixed interval_s=10, producers.count=1] : count}", "5");
    expect(e, "{delay_s[policy=dac, producers.count=smallest] / 4 : percent}", "25\xc2\xa0%");
    expect(e, "95 %, {1024 * 1536 : bytes}, {speed[policy=immediate, producers.count=1] : dollars}",
           "95\xc2\xa0%, 1.50\xc2\xa0MiB, $2.00");
    ls_stored_experiment_free(e);
}

static void test_aggregates(void)
{
    ls_stored_experiment *e = planted();
    expect(e, "{min(speed)} {max(speed) : count} {mean(speed) : 6}", "2.00 1,500 257.333");
    /* The selector replaces the policy and keeps the point's number of producers: 4/2 and 30/3. */
    expect(e, "{min(speed[policy=dac] / speed[policy=immediate])} {max(speed[policy=dac] / speed[policy=immediate])}",
           "2.00 10.0");
    /* The missing delay of dac with 10 is passed over: max is immediate's 16; the mean is that of five. */
    expect(e, "{max(delay_s) : count} {mean(delay_s) : 3}", "16 6.20");
    expect(e, "{max(speed / producers.count) : count}", "150");
    expect(e, "{max(speed[policy=dac]) : count} of {max(speed) - min(speed) : count}", "30 of 1,498");
    ls_stored_experiment_free(e);
}

static void test_labels(void)
{
    ls_stored_experiment *e = planted();
    expect(e, "{smallest producers.count} to {largest producers.count}", "1 to 10");
    expect(e, "{largest producers.count : 3}", "10.0");
    expect(e, "{highest policy by speed} {lowest policy by speed[producers.count=10]}", "fixed immediate");
    expect(e, "{highest policy except fixed by speed}", "dac");
    expect(e, "{highest policy except fixed interval_s=10 by speed}", "dac");
    expect(e, "{lowest policy by delay_s where speed > 4}", "fixed");
    expect(e, "{list policy where speed[producers.count=10] >= 30}", "dac and fixed");
    expect(e, "{list policy where speed[producers.count=10] > 30}", "fixed");
    expect(e, "{list policy where speed < 1e9}", "immediate, dac and fixed");
    expect(e, "{list policy except dac where speed <= 5 * 1}", "immediate and fixed");
    expect(e, "{list policy where delay_s > 1e9}", "none");
    expect(e, "{list producers.count where speed >= 30}", "10");
    ls_stored_experiment_free(e);
}

/* Two labels with the same first word are named whole. */
static void test_shared_first_word(void)
{
    static const double speeds[] = {1, 1, 2, 2, 3, 3};
    ls_stored_experiment *e = ls_planted_experiment("{\"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", "
                                                    "{\"name\": \"immediate\", \"batch_limit\": 1}, \"dac\"]}}]}",
                                                    speeds, 3);
    expect(e, "{highest policy except dac by speed} {list policy where speed < 3}",
           "immediate batch_limit=1 immediate and immediate batch_limit=1");
    /* The whole label goes before the first word. */
    expect(e, "{speed[policy=immediate]} {speed[policy=immediate batch_limit=1]}", "1.00 2.00");
    ls_stored_experiment_free(e);
}

static void test_no_answer(void)
{
    ls_stored_experiment *e = planted();
    expect_failure(e, "{speed[policy=dac]}", "several points");
    expect_failure(e, "{speed[policy=aloha, producers.count=1]}", "no point has the label \"aloha\"");
    expect_failure(e, "{speed[producers.cuont=1]}", "do not sweep \"producers.cuont\"");
    expect_failure(e, "{sped[policy=dac]}", "do not have \"sped\"");
    expect_failure(e, "x {delay_s[policy=dac, producers.count=10]}", "no value");
    expect_failure(e, "{1 / 0}", "no value");
    expect_failure(e, "{largest policy}", "no label is a number");
    expect_failure(e, "{producers.count}", "only inside");
    expect_failure(e, "{deviation(speed)}", "nothing published");
    expect_failure(e, "{rare[policy=dac, producers.count=1]}", "do not have \"rare\"");
    ls_stored_experiment_free(e);
}

static ls_result know_metric(void *context, const char *name, ls_error *error)
{
    (void)context;
    bool known = strcmp(name, "speed") == 0 || strcmp(name, "delay_s") == 0;
    return known ? LS_OK : ls_fail(error, LS_ERROR_INVALID, "no metric %s", name);
}

static ls_result know_key(void *context, const char *name, ls_error *error)
{
    (void)context;
    return strcmp(name, "policy") == 0 ? LS_OK : ls_fail(error, LS_ERROR_INVALID, "no key %s", name);
}

static bool is_key(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "policy") == 0;
}

static void test_check(void)
{
    static const ls_answer_names names = {NULL, know_metric, know_key, is_key};
    static const char *const good[] = {"",
                                       "{speed}",
                                       "{max(speed[policy=x] / policy) : percent}",
                                       "{largest policy}",
                                       "{list policy except a b where speed - 1 >= delay_s[policy=largest]}",
                                       "{lowest policy except c by speed where speed > 0}",
                                       "{deviation(speed) : 2}"};
    static const char *const bad[][2] = {
        {"{", "without its }"},
        {"{}", "expected a metric"},
        {"{speed", "without its }"},
        {"{speed]}", "not understood from here on"},
        {"{speed[policy]}", "expected ="},
        {"{speed[policy=]}", "needs a label"},
        {"{speed[policy=x}", "expected ]"},
        {"{speed : furlongs}", "expected a form"},
        {"{speed : 0}", "expected a form"},
        {"{speed : 16}", "expected a form"},
        {"{max(min(speed))}", "do not nest"},
        {"{median(speed)}", "no function \"median\""},
        {"{(speed}", "expected )"},
        {"{max(speed}", "expected )"},
        {"{speed +}", "expected a metric"},
        {"{list policy}", "\"where\""},
        {"{list policy where speed}", "expected < <= > or >="},
        {"{list policy except x}", "except"},
        {"{highest policy}", "\"by\""},
        {"{highest speed by speed}", "no key speed"},
        {"{largest}", "expected a swept key"},
        {"{sped}", "no metric sped"},
        {"{((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))}", "too many parentheses"}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_answer_check(good[i], &names, &error), LS_OK);
        if (error.text[0] != '\0') printf("\n      %s", error.text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ls_error error = {""};
        CU_ASSERT_EQUAL(ls_answer_check(bad[i][0], &names, &error), LS_ERROR_INVALID);
        if (strstr(error.text, bad[i][1]) == NULL) printf("\n      \"%s\" gave \"%s\"", bad[i][0], error.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.text, bad[i][1]));
    }
}

/* Each allocation fails in turn: an error or the right sentence, nothing lost. */
static void test_memory(void)
{
    ls_stored_experiment *e = planted();
    bool done = false;
    for (int64_t n = 0; n < 500 && !done; n++) {
        ls_text text = {0};
        ls_error error;
        ls_fail_allocations_after(n);
        ls_result result = ls_answer("{list policy except dac where speed > 1} x {max(speed[policy=dac]) : 2}", e, NULL,
                                     &text, &error);
        ls_fail_allocations_after(-1);
        done = result == LS_OK && !text.failed;
        CU_ASSERT_TRUE(result == LS_OK || result == LS_ERROR_MEMORY);
        if (done) CU_ASSERT_STRING_EQUAL(text.bytes, "immediate and fixed x 30");
        ls_text_free(&text);
    }
    CU_ASSERT_TRUE(done);
    ls_stored_experiment_free(e);
}

static void pretty(double value, ls_pretty form, int digits, const char *expected)
{
    ls_text text = {0};
    ls_text_pretty(&text, value, form, digits);
    if (strcmp(text.bytes, expected) != 0) printf("\n      %.17g: \"%s\", wanted \"%s\"", value, text.bytes, expected);
    CU_ASSERT_STRING_EQUAL(text.bytes, expected);
    ls_text_free(&text);
}

#define NB "\xc2\xa0"

static void test_pretty(void)
{
    pretty(0, LS_PRETTY_DIGITS, 3, "0");
    pretty(999.7, LS_PRETTY_DIGITS, 3, "1,000");
    pretty(-1234567, LS_PRETTY_DIGITS, 3, "-1,230,000");
    pretty(0.00012345, LS_PRETTY_DIGITS, 3, "0.000123");
    pretty(1e-9, LS_PRETTY_DIGITS, 3, "1e-09");
    pretty(123, LS_PRETTY_DIGITS, 3, "123");
    pretty(0.5, LS_PRETTY_DIGITS, 1, "0.5");
    pretty(NAN, LS_PRETTY_DIGITS, 3, "none");
    pretty(-INFINITY, LS_PRETTY_BYTES, 3, "-infinite");
    pretty(0.9993, LS_PRETTY_PERCENT, 3, "99.9" NB "%");
    pretty(0.99999, LS_PRETTY_PERCENT, 3, "100" NB "%");
    pretty(0.1234, LS_PRETTY_PERCENT, 3, "12" NB "%");
    pretty(0.5, LS_PRETTY_PERCENT, 3, "50" NB "%");
    pretty(0.001234, LS_PRETTY_PERCENT, 3, "0.12" NB "%");
    pretty(12.5, LS_PRETTY_PERCENT, 3, "1,250" NB "%");
    pretty(1023, LS_PRETTY_BYTES, 3, "1,020" NB "B"); /* rounded to three digits; below a KiB */
    pretty(1048576.0 * 1024, LS_PRETTY_BYTES, 3, "1.00" NB "GiB");
    pretty(0.0123, LS_PRETTY_SECONDS, 3, "12.3" NB "ms");
    pretty(59.99, LS_PRETTY_SECONDS, 3, "1.00" NB "min");
    pretty(7200, LS_PRETTY_SECONDS, 3, "2.00" NB "h");
    pretty(0, LS_PRETTY_SECONDS, 3, "0" NB "s");
    pretty(-0.0123, LS_PRETTY_DOLLARS, 3, "-$0.0123");
    pretty(-0.2, LS_PRETTY_COUNT, 3, "0");
    pretty(1e6, LS_PRETTY_COUNT, 3, "1,000,000");
}

#define PUBLISHED_SPEC                                                                                                 \
    "{\"seed\": 9, \"base\": {}, \"sweep\": [{\"cartesian\": {\"policy\": [\"immediate\", \"dac\", {\"name\": "        \
    "\"fixed\", \"interval_s\": 10}], \"producers.count\": [1, 10]}}], \"answer\": \"off by {deviation(speed) : "      \
    "percent}\", \"published\": [{\"file\": \"a.tsv\", \"keys\": {\"who\": \"policy\", \"n\": \"producers.count\"}, "  \
    "\"metrics\": {\"v\": \"speed\", \"ms\": {\"metric\": \"delay_s\", \"factor\": 1000}, \"w\": \"rare\"}}, "         \
    "{\"file\": \"b.tsv\", \"keys\": {\"n\": \"producers.count\"}, \"where\": {\"policy\": \"dac\"}, \"metrics\": "    \
    "{\"v\": \"speed\"}}]}"

static ls_published_rows match(const ls_stored_experiment *e, ls_presentation *p, ls_result expected, const char *part)
{
    ls_published_rows rows;
    ls_error error = {""};
    char folder[300];
    snprintf(folder, sizeof folder, "%s", ls_test_path("."));
    CU_ASSERT_EQUAL_FATAL(ls_presentation_parse("demo", e->spec, p, &error), LS_OK);
    CU_ASSERT_EQUAL(ls_published_match(p, folder, e, &rows, &error), expected);
    if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    return rows;
}

static void put(const char *name, const char *text)
{
    CU_ASSERT_EQUAL(ls_file_write(ls_test_path(name), text, strlen(text), NULL), LS_OK);
}

static void test_published(void)
{
    ls_stored_experiment *e = ls_planted_experiment(PUBLISHED_SPEC, means, 6);
    ls_presentation p = {0};
    put("a.tsv",
        "# Source: here,\n# and there.\nwho\tn\tv\tms\tw\r\nimmediate\t1.0\t1.6\t8000\t5\nfixed\t10\tnan\t\t7\n"
        "nobody\t1\t5\t5\t5\ndac\t10\t40\t1\n");
    put("b.tsv", "n\tv\n1\t0\n10\t25\n");
    ls_published_rows rows = match(e, &p, LS_OK, "");
    /* a: 1.6 for 2 and 8000 for 8; 40 for 30 (its delay has no value); b: 0 for 4, 25 for 30. */
    CU_ASSERT_EQUAL_FATAL(rows.count, 5);
    static const double expected[][3] = {{0, 1.6, 2}, {0, 8000, 8000}, {3, 40, 30}, {2, 0, 4}, {3, 25, 30}};
    for (int i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(rows.rows[i].point, (uint32_t)expected[i][0]);
        CU_ASSERT_EQUAL(rows.rows[i].published, expected[i][1]);
        CU_ASSERT_EQUAL(rows.rows[i].simulated, expected[i][2]);
    }
    CU_ASSERT_STRING_EQUAL(rows.sources[0], "Source: here, and there.");
    CU_ASSERT_STRING_EQUAL(rows.sources[1], "");
    /* Two runs half a unit off: half-width 12.706 * 0.7071 / 1.4142 = 6.353, a thousandfold. */
    CU_ASSERT_DOUBLE_EQUAL(rows.rows[1].half_width, 6353.1, 0.1);
    ls_text text = {0};
    /* |2 / 1.6 - 1|, |30 / 40 - 1| = 25 %, |30 / 25 - 1| = 20 %; a published 0 counts for nothing. */
    CU_ASSERT_EQUAL(ls_answer(p.answer, e, &rows, &text, NULL), LS_OK);
    CU_ASSERT_STRING_EQUAL(text.bytes, "off by 25\xc2\xa0%");
    ls_text_free(&text);
    ls_published_free(&rows);
    ls_presentation_free(&p);
    put("b.tsv", "n\tx\n1\t0\n");
    match(e, &p, LS_ERROR_INVALID, "no column \"v\"");
    ls_presentation_free(&p);
    put("b.tsv", "# nothing\n");
    match(e, &p, LS_ERROR_INVALID, "no line with column names");
    ls_presentation_free(&p);
    remove(ls_test_path("b.tsv"));
    match(e, &p, LS_ERROR_INVALID, "cannot be read");
    ls_presentation_free(&p);
    ls_stored_experiment_free(e);
}

static void refuse(const char *members, const char *part)
{
    ls_vocabulary vocabulary = ls_test_vocabulary();
    ls_spec *spec = NULL;
    ls_error error = {""};
    ls_text text = {0};
    ls_text_format(&text, "{%s, \"base\": {\"policy\": \"dac\"}}", members);
    CU_ASSERT_EQUAL(ls_spec_parse("x.json", text.bytes, text.length, &vocabulary, false, &spec, &error),
                    LS_ERROR_INVALID);
    if (strstr(error.text, part) == NULL) printf("\n      wanted \"%s\" in \"%s\"", part, error.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    ls_text_free(&text);
}

/* What a spec says is checked when it is read, not when its report is made. */
static void test_spec_refusals(void)
{
    refuse("\"question\": 3", "expected a sentence");
    refuse("\"question\": \"\"", "expected a sentence");
    refuse("\"answer\": \"{sped}\"", "did you mean \"speed\"");
    refuse("\"answer\": \"{max(speed[producers.cont=1])}\"", "producers.count");
    refuse("\"answer\": \"{speed\"", "without its }");
    refuse("\"assumptions\": \"none\"", "expected a list of strings");
    refuse("\"table\": [\"speeed\"]", "did you mean \"speed\"");
    refuse("\"published\": {}", "expected a list of tables");
    refuse("\"published\": [{\"file\": \"x\"}]", "needs file and metrics");
    refuse("\"published\": [{\"file\": \"../x\", \"metrics\": {}}]", "without folders");
    refuse("\"published\": [{\"file\": \"x\", \"metrics\": {\"a\": \"b\"}}]", "no metric \"b\"");
    refuse("\"published\": [{\"file\": \"x\", \"metrics\": {\"a\": {\"metric\": \"speed\", \"factor\": 0}}}]",
           "other than 0");
    refuse("\"published\": [{\"file\": \"x\", \"keys\": {\"a\": \"polic\"}, \"metrics\": {\"a\": \"speed\"}}]",
           "policy");
    refuse("\"published\": [{\"file\": \"x\", \"colour\": {}, \"metrics\": {}}]", "no key \"colour\"");
}

LS_SUITE(answer, {"numbers", test_numbers}, {"aggregates", test_aggregates}, {"labels", test_labels},
         {"labels that share their first word", test_shared_first_word}, {"no answer", test_no_answer},
         {"templates are checked", test_check}, {"out of memory", test_memory}, {"numbers for people", test_pretty},
         {"published beside simulated", test_published}, {"specs are checked", test_spec_refusals})
