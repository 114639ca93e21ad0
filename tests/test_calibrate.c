/* test_calibrate.c - measuring, calibrating, model files, and the two commands.
 *
 * What the fits must find is known: a modelled store with given numbers is measured in virtual time, so the test is exact
 * and repeatable, and a memory store behind given delays is measured in real time, with room for the machine's own delays.
 */
#include "experiments/model_file.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static ls_law constant_ms(double value) { return (ls_law){.law = LS_LAW_CONSTANT, .scale_s = value / 1e3, .tail_shape = 2, .draws = 1}; }

static ls_law lognormal_ms(double floor, double scale, double shape)
{
    return (ls_law){.law = LS_LAW_LOGNORMAL, .floor_s = floor / 1e3, .scale_s = scale / 1e3, .shape = shape, .tail_shape = 2, .draws = 1};
}

static ls_store_config store_of(ls_law reads, ls_law puts)
{
    return (ls_store_config){.list = reads, .head = reads, .get = reads, .put = puts, .conditional_won = puts,
                             .conditional_lost = puts, .remove = puts, .read_effect_share = 0.5, .put_effect_share = 1,
                             .conditional_effect_share = 1, .parallelism_exponent = 1, .limit_burst_s = 1, .throttle_reply_s = 0.01};
}

static ls_measurement measured(const ls_store_config *config, ls_request_kind kind, uint64_t bytes, uint32_t clients)
{
    ls_measure_task task = {.kind = kind, .bytes = bytes, .clients = clients, .seconds = 10, .requests = 3000, .volume = UINT64_MAX};
    ls_measurement m = {0};
    ls_error error = {""};
    if (ls_measure_model(config, &task, 1, &m, &error) != LS_OK) CU_FAIL_FATAL("the measurement failed");
    return m;
}

static double rate(const ls_store_config *config, ls_request_kind kind, uint32_t clients)
{
    ls_measurement m = measured(config, kind, 1024, clients);
    double rate_per_s = ls_measurement_rate_per_s(&m);
    ls_measurement_free(&m);
    return rate_per_s;
}

/* --- rest ------------------------------------------------------------------------------------------------------------------ */

static double median_with_pause(const ls_store_config *config, double pause_s)
{
    ls_measure_task task = {.kind = LS_REQUEST_GET, .bytes = 1024, .clients = 1, .seconds = 10, .requests = 300, .volume = UINT64_MAX,
                            .pause_s = pause_s};
    ls_measurement m;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_measure_model(config, &task, 1, &m, &error), LS_OK);
    double median_s = ls_sample_quantile(&m.latency_s, 0.5);
    ls_measurement_free(&m);
    return median_s;
}

/* Pauses of 0.1 s last from 0.05 to 0.15 s. */
static void test_rest(void)
{
    ls_store_config config = store_of(constant_ms(10), constant_ms(20));
    CU_ASSERT_DOUBLE_EQUAL(median_with_pause(&config, 0.1), 0.010, 1e-9);
    config.rest_after_s = 0.04;
    config.rest_s = 0.015;
    CU_ASSERT_DOUBLE_EQUAL(median_with_pause(&config, 0.1), 0.025, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(median_with_pause(&config, 0.02), 0.010, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(median_with_pause(&config, 0), 0.010, 1e-9);
}

/* Two clients race; both put at once, the effect lies in the middle of 20 ms: who loses is answered after 11 ms, or with the winner. */
static void test_losers_wait(void)
{
    ls_store_config config = store_of(constant_ms(10), constant_ms(20));
    config.conditional_lost = constant_ms(11);
    config.conditional_effect_share = 0.5;
    ls_measurement m = measured(&config, LS_REQUEST_RACE, 1024, 2);
    CU_ASSERT_DOUBLE_EQUAL(m.lost_s.values[0], 0.011, 1e-6);
    ls_measurement_free(&m);
    config.losers_wait = true;
    m = measured(&config, LS_REQUEST_RACE, 1024, 2);
    CU_ASSERT_DOUBLE_EQUAL(m.lost_s.values[0], 0.020, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(m.lost_s.values[m.lost_s.count - 1], 0.020, 1e-6);
    ls_measurement_free(&m);
}

/* --- latency under load --------------------------------------------------------------------------------------------------- */

static void test_load(void)
{
    ls_store_config config = store_of(constant_ms(10), constant_ms(20));
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 8), 800, 1);
    config.parallelism = 2;
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 1), 100, 0.2);
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 2), 200, 1);
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 8), 200, 4);
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_PUT, 8), 100, 2);
    config.parallelism = 10;
    config.parallelism_exponent = 0.5; /* four requests do the work of two */
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 4), 200, 4);
    config.parallelism_exponent = 0; /* one at a time */
    CU_ASSERT_DOUBLE_EQUAL(rate(&config, LS_REQUEST_GET, 16), 100, 4);
    config.parallelism = -1;
    ls_measurement m;
    ls_error error = {""};
    ls_measure_task task = {.kind = LS_REQUEST_GET, .bytes = 1024, .clients = 1, .seconds = 1, .requests = 1, .volume = 1};
    CU_ASSERT_EQUAL(ls_measure_model(&config, &task, 1, &m, &error), LS_ERROR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "parallelism"));
}

/* --- measuring --------------------------------------------------------------------------------------------------------------- */

static void test_measured_latencies(void)
{
    ls_store_config config = store_of(constant_ms(4), constant_ms(9));
    config.conditional_lost = constant_ms(11);
    config.head = constant_ms(2);
    config.list = constant_ms(3);
    config.get_s_per_mib = 0.008;
    static const struct {
        ls_request_kind kind;
        uint64_t bytes;
        double expected_ms;
    } rows[] = {{LS_REQUEST_GET, 1024, 4}, {LS_REQUEST_GET, 1u << 20, 12}, {LS_REQUEST_PUT, 1024, 9}, {LS_REQUEST_WON, 1024, 9},
                {LS_REQUEST_LOST, 1024, 11}, {LS_REQUEST_HEAD, 1024, 2}, {LS_REQUEST_LIST, 1024, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ls_measurement m = measured(&config, rows[i].kind, rows[i].bytes, 3);
        CU_ASSERT_DOUBLE_EQUAL(1e3 * ls_sample_quantile(&m.latency_s, 0.5), rows[i].expected_ms, 0.02);
        CU_ASSERT_TRUE(m.latency_s.count > 900);
        ls_measurement_free(&m);
    }
}

/* Constant latencies with the effect at the end: all start together, one wins each round, whoever they are. */
static void test_race_of_constant_latencies(void)
{
    ls_store_config config = store_of(constant_ms(4), constant_ms(10));
    ls_measurement m = measured(&config, LS_REQUEST_RACE, 1024, 8);
    CU_ASSERT_DOUBLE_EQUAL((double)m.wins / m.elapsed_s, 100, 2);
    CU_ASSERT_DOUBLE_EQUAL(ls_measurement_conflict_share(&m), 1 - 1.0 / 8, 0.01);
    ls_measurement_free(&m);
    m = measured(&config, LS_REQUEST_RACE, 1024, 1);
    CU_ASSERT_EQUAL(m.losses, 0);
    CU_ASSERT_DOUBLE_EQUAL((double)m.wins / m.elapsed_s, 100, 1);
    ls_measurement_free(&m);
}

static void test_commits_win_once_each(void)
{
    ls_store_config config = store_of(constant_ms(2), constant_ms(4));
    ls_measurement m = measured(&config, LS_REQUEST_COMMIT, 1024, 1);
    CU_ASSERT_EQUAL(m.losses, 0); /* put 4, list 2, get 2, put 4 ms: one win in 12 ms */
    CU_ASSERT_DOUBLE_EQUAL((double)m.wins / m.elapsed_s, 1000.0 / 12, 1);
    ls_measurement_free(&m);
    m = measured(&config, LS_REQUEST_COMMIT, 1024, 4);
    CU_ASSERT_TRUE(m.losses > 0 && m.wins > 0);
    ls_measurement_free(&m);
}

static void count_keys(void *context, const ls_object_reply *reply) { *(uint32_t *)context = reply->key_count; }

static uint32_t objects_left(ls_store *store)
{
    ls_object_request list = {.operation = LS_LIST, .key = "", .list_limit = 1000};
    uint32_t count = UINT32_MAX;
    CU_ASSERT_EQUAL_FATAL(ls_store_submit(store, &list, count_keys, &count), LS_OK);
    while (count == UINT32_MAX) CU_ASSERT_EQUAL_FATAL(ls_store_poll(store, LS_NANOSECONDS_PER_SECOND, NULL), LS_OK);
    return count;
}

static void test_a_real_store_is_left_empty(void)
{
    ls_store *store = ls_store_new_memory();
    ls_error error = {""};
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    for (int kind = 0; kind < LS_REQUEST_KINDS; kind++) {
        ls_measure_task task = {.kind = (ls_request_kind)kind, .bytes = 4096, .clients = 5, .seconds = 5, .requests = 60, .volume = 1u << 20};
        ls_measurement m;
        CU_ASSERT_EQUAL_FATAL(ls_measure_store(store, "here", &task, &m, &error), LS_OK);
        CU_ASSERT_TRUE(m.completed >= 60 && m.completed <= 65);
        CU_ASSERT_TRUE(m.remove_s.count > 0);
        CU_ASSERT_EQUAL(objects_left(store), 0);
        ls_measurement_free(&m);
    }
    ls_store_destroy(store);
}

/* A store that has denied us once will deny us again: that is the end, with its reason. */
static void test_refusals(void)
{
    ls_error error = {""};
    ls_measurement m;
    ls_store *store = ls_store_new_memory();
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    ls_measure_task task = {.kind = LS_REQUEST_GET, .bytes = 100, .clients = 1, .seconds = 1, .requests = 1, .volume = 1};
    CU_ASSERT_EQUAL(ls_measure_store(store, "x", &task, &m, &error), LS_ERROR_INVALID);
    task.bytes = 1024;
    CU_ASSERT_EQUAL(ls_measure_store(store, "/x", &task, &m, &error), LS_ERROR_INVALID);
    ls_store_destroy(store);
    ls_store_config config = store_of(constant_ms(1), constant_ms(1));
    config.write_limit_per_s = 1;
    config.throttle_reply_s = 0.001;
    task = (ls_measure_task){.kind = LS_REQUEST_PUT, .bytes = 1024, .clients = 1, .seconds = 1e6, .requests = 100000, .volume = UINT64_MAX};
    CU_ASSERT_EQUAL(ls_measure_model(&config, &task, 1, &m, &error), LS_ERROR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "throttled"));
}

static void test_memory_runs_out(void)
{
    ls_store_config config = store_of(constant_ms(1), constant_ms(1));
    ls_measure_task task = {.kind = LS_REQUEST_COMMIT, .bytes = 2048, .clients = 3, .seconds = 10, .requests = 40, .volume = UINT64_MAX};
    ls_error error = {""};
    ls_result result = LS_ERROR_MEMORY;
    for (int64_t n = 0; result != LS_OK && n < 2000; n++) {
        ls_measurement m;
        ls_fail_allocations_after(n);
        result = ls_measure_model(&config, &task, 1, &m, &error);
        ls_fail_allocations_after(-1);
        if (result == LS_OK) ls_measurement_free(&m);
        else CU_ASSERT_EQUAL(result, LS_ERROR_MEMORY);
    }
    CU_ASSERT_EQUAL(result, LS_OK);
}

/* --- calibrating: known numbers come back ------------------------------------------------------------------------------------------ */

static ls_result by_model(void *context, const char *prefix, const ls_measure_task *task, ls_measurement *m, ls_error *error)
{
    (void)prefix;
    return ls_measure_model(context, task, 99, m, error);
}

static ls_calibration_plan small_plan(double seconds)
{
    ls_calibration_plan plan = {.seconds = seconds, .rounds = 1, .sizes = {1024, 1u << 20}, .size_count = 2,
                                .clients = {1, 2, 4, 8, 16}, .client_count = 5, .seed = 1};
    return plan;
}

static void test_known_numbers_come_back(void)
{
    ls_store_config known = store_of(lognormal_ms(1, 2, 0.4), lognormal_ms(2, 4, 0.3));
    known.conditional_lost = lognormal_ms(1, 3, 0.4);
    known.get_s_per_mib = 0.004;
    known.put_s_per_mib = 0.010;
    known.parallelism = 3;
    known.parallelism_exponent = 0.6;
    known.conditional_effect_share = 0.6;
    known.rest_after_s = 0.006;
    known.rest_s = 0.002;
    ls_calibration_plan plan = small_plan(1200);
    ls_calibration c;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_calibrate_by(by_model, &known, "", &plan, &c, &error), LS_OK);
    CU_ASSERT_EQUAL(c.config.get.law, LS_LAW_LOGNORMAL);
    CU_ASSERT_DOUBLE_EQUAL(c.config.get.floor_s + c.config.get.scale_s, 0.003, 0.0001);
    CU_ASSERT_DOUBLE_EQUAL(c.config.conditional_won.floor_s + c.config.conditional_won.scale_s, 0.006, 0.0002);
    CU_ASSERT_DOUBLE_EQUAL(c.config.conditional_lost.floor_s + c.config.conditional_lost.scale_s, 0.004, 0.0002);
    CU_ASSERT_DOUBLE_EQUAL(c.config.get_s_per_mib, 0.004, 0.0003);
    CU_ASSERT_DOUBLE_EQUAL(c.config.put_s_per_mib, 0.010, 0.0005);
    CU_ASSERT_DOUBLE_EQUAL(c.config.parallelism, 3, 0.25);
    CU_ASSERT_DOUBLE_EQUAL(c.config.parallelism_exponent, 0.6, 0.06);
    CU_ASSERT_DOUBLE_EQUAL(c.config.conditional_effect_share, 0.6, 0.12);
    CU_ASSERT_DOUBLE_EQUAL(c.config.rest_s, 0.002, 0.0002);
    CU_ASSERT_TRUE(c.config.rest_after_s > 0 && c.config.rest_after_s <= 0.015);
    CU_ASSERT_TRUE(c.load_error < 0.06);
    CU_ASSERT_TRUE(c.effect_error < 0.08);
    for (int i = 0; i < LS_CALIBRATED_REMOVE; i++) CU_ASSERT_TRUE(c.fits[i].distance < 0.05);
    ls_calibration_free(&c);
}

static void test_an_unloaded_store_does_not_stretch(void)
{
    ls_store_config known = store_of(lognormal_ms(1, 2, 0.2), lognormal_ms(2, 4, 0.2));
    ls_calibration_plan plan = small_plan(400);
    ls_calibration c;
    ls_error error = {""};
    CU_ASSERT_EQUAL_FATAL(ls_calibrate_by(by_model, &known, "", &plan, &c, &error), LS_OK);
    CU_ASSERT_EQUAL(c.config.parallelism, 0);
    CU_ASSERT_EQUAL(c.config.rest_after_s, 0);
    CU_ASSERT_TRUE(c.config.conditional_effect_share > 0.85);
    CU_ASSERT_EQUAL(c.config.contention_s_per_doubling, 0);
    ls_calibration_free(&c);
    plan.size_count = 0;
    CU_ASSERT_EQUAL(ls_calibrate_by(by_model, &known, "", &plan, &c, &error), LS_ERROR_INVALID);
    ls_calibration_free(&c);
    plan = small_plan(1);
    plan.clients[1] = 1;
    CU_ASSERT_EQUAL(ls_calibrate_by(by_model, &known, "", &plan, &c, &error), LS_ERROR_INVALID);
    ls_calibration_free(&c);
}

static int64_t delay(void *context, const ls_object_request *request)
{
    ls_random *random = context;
    double base = request->operation == LS_PUT ? 0.004 : 0.002;
    return ls_nanoseconds(base + 0.004 * exp(0.3 * ls_random_normal(random)));
}

/* In real time a delay is never shorter than asked and may be longer: bounds are one-sided tight, one-sided wide. */
static void test_known_delays_are_found(void)
{
    ls_random random = ls_random_open(5, 0, LS_RANDOM_TEST, 0);
    ls_store *memory = ls_store_new_memory(), *store = memory != NULL ? ls_store_new_delay(memory, delay, &random, 0.9) : NULL;
    ls_calibration_plan plan = {.seconds = 5, .rounds = 1, .sizes = {1024}, .size_count = 1, .clients = {1, 4}, .client_count = 2, .seed = 1};
    ls_calibration c;
    ls_error error = {""};
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    CU_ASSERT_EQUAL_FATAL(ls_calibrate(store, "", &plan, &c, &error), LS_OK);
    double get_s = ls_fit_quantile(&c.fits[LS_CALIBRATED_GET].law, NULL, 0, 0.5);
    double put_s = ls_fit_quantile(&c.fits[LS_CALIBRATED_PUT].law, NULL, 0, 0.5);
    CU_ASSERT_TRUE(get_s > 0.0052 && get_s < 0.012);
    CU_ASSERT_TRUE(put_s > 0.0070 && put_s < 0.016);
    CU_ASSERT_TRUE(put_s > get_s);
    CU_ASSERT_TRUE(c.fits[LS_CALIBRATED_REMOVE].count > 10);
    ls_calibration_free(&c);
    ls_store_destroy(store);
}

/* --- model files ------------------------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fputs(text, file) >= 0);
    fclose(file);
}

static ls_scenario fresh(void)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario scenario;
    memset(&scenario, 0, sizeof scenario);
    ls_options_default(vocabulary.options, vocabulary.option_count, &scenario);
    return scenario;
}

static void test_model_round_trip(void)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_calibration c = {0};
    ls_error error = {""};
    char path[300], again[200];
    snprintf(path, sizeof path, "%s", ls_test_path("round.model.json"));
    snprintf(again, sizeof again, "%s", ls_test_path("round-get-0123.txt"));
    c.config = store_of(lognormal_ms(1, 2, 0.4), lognormal_ms(2, 4.25, 0.3));
    c.config.get = (ls_law){.law = LS_LAW_EMPIRICAL, .tail_shape = 2, .draws = 1};
    snprintf(c.config.get.file, sizeof c.config.get.file, "%s", again);
    c.config.parallelism = 2.5;
    ls_provenance who = {.backend = "s3://secret-bucket/secret-prefix", .date = "2026-01-02", .host_processors = 2, .seconds = 3};
    CU_ASSERT_EQUAL_FATAL(ls_model_write(path, &c, &who, &error), LS_OK);
    ls_scenario scenario = fresh();
    CU_ASSERT_EQUAL_FATAL(ls_model_read(path, &vocabulary, &scenario, &error), LS_OK);
    CU_ASSERT_EQUAL(scenario.store.parallelism, 2.5);
    CU_ASSERT_EQUAL(scenario.store.put.scale_s, c.config.put.scale_s);
    CU_ASSERT_EQUAL(scenario.store.put.law, LS_LAW_LOGNORMAL);
    CU_ASSERT_STRING_EQUAL(scenario.store.get.file, again);
    CU_ASSERT_STRING_EQUAL(scenario.store_preset, "");
    FILE *file = fopen(path, "r");
    char text[20000] = "";
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CU_ASSERT_PTR_NULL(strstr(text, "secret"));
    CU_ASSERT_PTR_NULL(strstr(text, "/tmp"));
    cJSON *json = cJSON_Parse(text);
    CU_ASSERT_PTR_NOT_NULL(json);
    cJSON_Delete(json);
}

static void expect_refusal(const char *text, ls_result expected, const char *message)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario scenario = fresh();
    ls_error error = {""};
    const char *path = ls_test_path("bad.model.json");
    write_file(path, text);
    CU_ASSERT_EQUAL(ls_model_read(path, &vocabulary, &scenario, &error), expected);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, message));
}

static void test_bad_models(void)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario scenario = fresh();
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_model_read("/nowhere/x.json", &vocabulary, &scenario, &error), LS_ERROR_INVALID);
    expect_refusal("[]", LS_ERROR_INVALID, "not a model file");
    expect_refusal("{\"store\": {}}", LS_ERROR_INVALID, "not a model file");
    expect_refusal("{\"format\": 2, \"store\": {}}", LS_ERROR_VERSION, "format 2");
    expect_refusal("{\"format\": 1}", LS_ERROR_INVALID, "\"store\" is missing");
    expect_refusal("{\"format\": 1, \"store\": {}, \"stroe\": 1}", LS_ERROR_INVALID, "stroe");
    expect_refusal("{\"format\": 1, \"store\": {\"paralelism\": 2}}", LS_ERROR_INVALID, "did you mean \"store.parallelism\"");
    expect_refusal("{\"format\": 1, \"store\": {\"parallelism\": -2}}", LS_ERROR_INVALID, "parallelism");
    expect_refusal("{\"format\": 1, \"store\": {\"preset\": \"gcs\"}}", LS_ERROR_INVALID, "no preset");
    expect_refusal("{\"format\": 1, \"store\": {\"model\": \"x.json\"}}", LS_ERROR_INVALID, "no other model");
    expect_refusal("{\"format\": 1, \"store\": \"gcs\"}", LS_ERROR_INVALID, "\"store\" is missing");
}

static ls_spec *read_spec(const char *name, const char *text, ls_error *error)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_spec *spec = NULL;
    const char *path = ls_test_path(name);
    write_file(path, text);
    return ls_spec_read(path, &vocabulary, false, &spec, error) == LS_OK ? spec : NULL;
}

#define MODEL "{\"format\": 1, \"store\": {\"get\": {\"law\": \"gamma\", \"scale_s\": 0.5, \"shape\": 3}, \"parallelism\": 7}}"

/* The file lies beside the spec; its numbers are the point's, what base says lies on top, and no path is left over. */
static void test_a_spec_names_a_model(void)
{
    ls_error error = {""};
    write_file(ls_test_path("lab.model.json"), MODEL);
    ls_spec *spec = read_spec("named.json", "{\"base\": {\"policy\": \"immediate\", \"store\": {\"model\": \"lab.model.json\", "
                                            "\"get\": {\"shape\": 4}}}}", &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
    const ls_store_config *store = &spec->points[0].scenario.store;
    CU_ASSERT_EQUAL(store->get.law, LS_LAW_GAMMA);
    CU_ASSERT_EQUAL(store->get.scale_s, 0.5);
    CU_ASSERT_EQUAL(store->get.shape, 4);
    CU_ASSERT_EQUAL(store->parallelism, 7);
    CU_ASSERT_EQUAL(store->put.scale_s, 0); /* the default of the table, not of the default preset */
    CU_ASSERT_PTR_NULL(strstr(spec->points[0].resolved, "lab.model"));
    CU_ASSERT_PTR_NOT_NULL(strstr(spec->points[0].resolved, "\"store.preset\":\"\""));

    /* The resolved form is a base of its own, and gives the same point. */
    char *text = malloc(strlen(spec->points[0].resolved) + 20);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    sprintf(text, "{\"base\": %s}", spec->points[0].resolved);
    ls_spec *again = read_spec("again.json", text, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    CU_ASSERT_STRING_EQUAL(again->points[0].hash, spec->points[0].hash);
    free(text);
    ls_spec_free(again);
    ls_spec_free(spec);
}

static void test_models_are_swept(void)
{
    ls_error error = {""};
    write_file(ls_test_path("lab.model.json"), MODEL);
    ls_spec *spec = read_spec("swept.json", "{\"base\": {\"policy\": \"immediate\", \"store.get.shape\": 5}, \"sweep\": [{\"cartesian\": "
                                            "{\"store\": [\"gcs\", \"lab.model.json\"]}}]}", &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
    CU_ASSERT_EQUAL(spec->point_count, 2);
    CU_ASSERT_STRING_EQUAL(spec->points[0].scenario.store_preset, "gcs");
    CU_ASSERT_STRING_EQUAL(spec->points[1].labels[0], "lab.model.json");
    CU_ASSERT_EQUAL(spec->points[1].scenario.store.parallelism, 7);
    CU_ASSERT_EQUAL(spec->points[1].scenario.store.get.shape, 5);
    ls_spec_free(spec);
    CU_ASSERT_PTR_NULL(read_spec("bad.json", "{\"base\": {\"policy\": \"immediate\", \"store\": \"absent.json\"}}", &error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "base.store"));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "absent.json"));
    CU_ASSERT_PTR_NULL(read_spec("bad.json", "{\"base\": {\"policy\": \"immediate\", \"store\": {\"model\": 3}}}", &error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "path of a model file"));
}

/* --- the commands ------------------------------------------------------------------------------------------------------------------ */

static int program(const char *arguments, char *text, size_t size)
{
    char command[1200];
    const char *name = getenv("LAKESTREAM");
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    snprintf(command, sizeof command, "%s %s 2>&1", name, arguments);
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    size_t got = fread(text, 1, size - 1, pipe);
    text[got] = '\0';
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) continue;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_calibrate_command(void)
{
    static char text[60000];
    char arguments[900];
    const char *model = ls_test_path("models/mem.model.json");
    snprintf(arguments, sizeof arguments, "calibrate -b memory -o %s --seconds 0.5 --sizes 1024,4096 -c 1,2", model);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "put-if-absent won"));
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_scenario scenario = fresh();
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_model_read(model, &vocabulary, &scenario, &error), LS_OK);
    CU_ASSERT_EQUAL(program("calibrate -b memory", text, sizeof text), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "--output must be given"));
    snprintf(arguments, sizeof arguments, "calibrate -b memory -o %s --sizes 1024,x", model);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 2);
    snprintf(arguments, sizeof arguments, "calibrate -b memory -o %s --sizes 4096,1024", model);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "ascending"));
    snprintf(arguments, sizeof arguments, "calibrate -b dir:/proc/nowhere -o %s", model);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 3);
}

/* Tolerances that nothing misses, and tolerances that nothing meets: whatever the machine's mood. */
static void test_validate_command(void)
{
    static char text[60000];
    char arguments[900], spec[300], database[300];
    snprintf(spec, sizeof spec, "%s", ls_test_path("val.json"));
    snprintf(database, sizeof database, "%s", ls_test_path("val.db"));
    write_file(spec, "{\"replications\": 2, \"base\": {\"policy\": \"immediate\", \"producers\": {\"count\": 2, \"start_spread_s\": 0}, "
               "\"batches\": {\"law\": \"regular\", \"rate_per_s\": 20, \"bytes\": 2048}, \"store\": {\"preset\": \"ideal\", "
               "\"list\": {\"scale_s\": 0.004}, \"get\": {\"scale_s\": 0.004}, \"put\": {\"scale_s\": 0.006}, \"conditional_won\": "
               "{\"scale_s\": 0.008}, \"conditional_lost\": {\"scale_s\": 0.008}}, \"warm_up_s\": 0.1, \"duration_s\": 0.4}}");
    snprintf(arguments, sizeof arguments, "validate %s -b delayed:memory -m none -o %s -t throughput=10,conflicts=10,p50=10,p99=10", spec,
             database);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "published/s"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "4 of 4 held"));
    snprintf(arguments, sizeof arguments, "validate %s -b delayed:memory -m none -o %s -t p50=0,p99=0 --json", spec, database);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 1); /* from the runs that are stored already */
    cJSON *json = cJSON_Parse(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")), 7);
    CU_ASSERT_TRUE(cJSON_GetObjectItem(json, "missed")->valuedouble >= 2);
    cJSON_Delete(json);
    snprintf(arguments, sizeof arguments, "validate %s -b memory -m none -o %s -t speed=1", spec, database);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "throughput, attempts"));
    snprintf(arguments, sizeof arguments, "validate %s", spec);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 2);
    write_file(spec, "{\"base\": {\"policy\": \"immediate\"}, \"sweep\": [{\"cartesian\": {\"store\": [\"gcs\", \"minio\"]}}]}");
    write_file(ls_test_path("lab.model.json"), MODEL);
    snprintf(arguments, sizeof arguments, "validate %s -b memory -m %s -o %s", spec, ls_test_path("lab.model.json"), database);
    CU_ASSERT_EQUAL(program(arguments, text, sizeof text), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "one store"));
}

LS_SUITE(calibrate, {"a store at rest", test_rest}, {"losers wait for winners", test_losers_wait}, {"latency under load", test_load}, {"measured latencies", test_measured_latencies},
         {"race of constant latencies", test_race_of_constant_latencies}, {"commits win once each", test_commits_win_once_each},
         {"a real store is left empty", test_a_real_store_is_left_empty}, {"refusals", test_refusals},
         {"memory runs out", test_memory_runs_out}, {"known numbers come back", test_known_numbers_come_back},
         {"an unloaded store does not stretch", test_an_unloaded_store_does_not_stretch},
         {"known delays are found", test_known_delays_are_found}, {"model round trip", test_model_round_trip},
         {"bad models", test_bad_models}, {"a spec names a model", test_a_spec_names_a_model}, {"models are swept", test_models_are_swept},
         {"calibrate command", test_calibrate_command}, {"validate command", test_validate_command})
