/* test_presets.c - presets against what was measured: rivals that retry without pause, and quantiles of single
 * requests.
 *
 * The measurement (June 2025, Endive's analysis/distributions.json, rows "CAS"): N threads write one object with a
 * condition, each again at once, win or lose. Here N clients put the next version if absent, knowing the newest one
 * without a read. The presets were fitted on 1 and 16 threads (S3 Express: see sim/presets.c); 2, 4 and 8 are
 * predictions.
 */
#include "tests/store_clock.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ls_store_preset *preset_named(const char *name)
{
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    }
    return NULL;
}

typedef struct retry_result {
    double wins_per_s;
    double failure_share;
    double attempt_s;    /* mean over wins and losses */
    double little_share; /* failure share by the identity 1 - S R / N */
} retry_result;

static ls_result put_next(ls_store_model *model, int64_t now_ns, uint32_t client, uint64_t newest,
                          const ls_manifest *body)
{
    ls_store_request request = {.operation = LS_PUT,
                                .if_absent = true,
                                .manifest = ls_manifest_retain(body),
                                .key = {.kind = LS_OBJECT_MANIFEST, .number = newest + 1}};
    return ls_store_model_submit(model, now_ns, client, 0, &request);
}

static retry_result retry_tightly(const ls_store_config *config, uint32_t clients, double duration_s)
{
    store_clock clock = {0};
    ls_store_model *model = NULL;
    ls_error error = {""};
    retry_result result = {0};
    ls_manifest *body = ls_manifest_new_empty();
    if (body == NULL || ls_store_model_create(config, 1, 0, store_clock_scheduler(&clock), &model, &error) != LS_OK) {
        CU_FAIL(error.text);
        ls_manifest_release(body);
        return result;
    }
    uint64_t newest = 0, wins = 0, losses = 0, token;
    double attempts_s = 0.0;
    ls_result step = LS_OK;
    for (uint32_t i = 0; i < clients; i++) put_next(model, 0, i, newest, body);
    while (step == LS_OK && clock.now_ns < ls_nanoseconds(duration_s) && store_clock_next(&clock, &token)) {
        ls_store_completion done;
        ls_store_effect effect;
        step = ls_store_model_event(model, clock.now_ns, token, &done, &effect);
        if (effect.happened && effect.status == LS_REPLY_OK) newest++;
        if (!done.ready) continue;
        if (done.reply.status == LS_REPLY_OK)
            wins++;
        else
            losses++;
        attempts_s += ls_seconds(clock.now_ns - done.submitted_ns);
        put_next(model, clock.now_ns, done.client, newest, body);
    }
    CU_ASSERT_EQUAL(step, LS_OK);
    result.wins_per_s = (double)wins / duration_s;
    result.failure_share = (double)losses / (double)(wins + losses);
    result.attempt_s = attempts_s / (double)(wins + losses);
    result.little_share = 1.0 - result.wins_per_s * result.attempt_s / clients;
    ls_store_model_destroy(model);
    ls_manifest_release(body);
    store_clock_release(&clock);
    return result;
}

typedef struct measured_row {
    uint32_t threads;
    double wins_per_s;
    double failure_share;
} measured_row;

static void expect_measured(const char *preset, const measured_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        retry_result got = retry_tightly(&preset_named(preset)->config, rows[i].threads, 400.0);
        bool is_near = fabs(got.wins_per_s / rows[i].wins_per_s - 1.0) < 0.10 &&
                       fabs(got.failure_share - rows[i].failure_share) < 0.03;
        if (!is_near) {
            printf("\n  %s, %u threads: %.2f wins/s (measured %.2f), %.4f failures (measured %.4f)", preset,
                   rows[i].threads, got.wins_per_s, rows[i].wins_per_s, got.failure_share, rows[i].failure_share);
        }
        CU_ASSERT(is_near);
        CU_ASSERT_DOUBLE_EQUAL(got.failure_share, got.little_share, 0.002);
    }
}

static void test_s3_standard(void)
{
    static const measured_row rows[] = {
        {1, 14.71, 0.0}, {2, 14.92, 0.461}, {4, 15.48, 0.7147}, {8, 16.48, 0.8508}, {16, 15.33, 0.9267}};
    expect_measured("s3-standard", rows, 5);
}

static void test_s3_express(void)
{
    static const measured_row rows[] = {
        {1, 68.61, 0.0}, {2, 71.06, 0.4013}, {4, 76.2, 0.6498}, {8, 78.23, 0.8021}, {16, 75.27, 0.8884}};
    expect_measured("s3-express", rows, 5);
}

/* A lone writer of the coarser presets: the authors' post gives 9.2 to 10.2 wins/s for Azure Blob and 15.3 to 16.6 for
 * Premium. */
static void test_azure_alone(void)
{
    retry_result blob = retry_tightly(&preset_named("azure-blob")->config, 1, 2000.0);
    retry_result premium = retry_tightly(&preset_named("azure-premium")->config, 1, 2000.0);
    CU_ASSERT(blob.wins_per_s > 9.2 && blob.wins_per_s < 10.2);
    CU_ASSERT(premium.wins_per_s > 13.8 && premium.wins_per_s < 16.6);
}

/* N tight retriers, constant latency, effect at the end: 1/w wins/s, failures 1 - 1/N. With the
 * effect in the middle the rivals' starts fall between, and the log moves about twice as fast. */
static void test_constant_retriers(void)
{
    ls_store_config config = preset_named("ideal")->config;
    config.conditional_won.scale_s = config.conditional_lost.scale_s = 0.061;
    for (uint32_t clients = 1; clients <= 16; clients *= 4) {
        retry_result got = retry_tightly(&config, clients, 610.0);
        CU_ASSERT_DOUBLE_EQUAL(got.wins_per_s, 1.0 / 0.061, 0.01 / 0.061);
        CU_ASSERT_DOUBLE_EQUAL(got.failure_share, 1.0 - 1.0 / clients, 0.001);
    }
    config.conditional_effect_share = 0.5;
    config.conditional_won = (ls_law){.law = LS_LAW_LOGNORMAL, .scale_s = 0.061, .shape = 0.14};
    config.conditional_lost = config.conditional_won;
    retry_result middle = retry_tightly(&config, 16, 610.0);
    CU_ASSERT(middle.wins_per_s > 29.0 && middle.wins_per_s < 33.0); /* about 31 */
}

/* Exponential windows: N / Q(N) wins in mean latencies, failures 1 - 1/Q(N), Q Ramanujan's; exact. */
static void test_exponential_retriers(void)
{
    static const struct {
        uint32_t clients;
        double wins, failures;
    } rows[] = {{1, 1.0, 0.0}, {2, 1.3333, 0.3333}, {4, 1.8028, 0.5493}, {16, 3.4012, 0.7874}};
    ls_store_config config = preset_named("ideal")->config;
    config.conditional_won = (ls_law){.law = LS_LAW_EXPONENTIAL, .scale_s = 1.0};
    config.conditional_lost = config.conditional_won;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        retry_result got = retry_tightly(&config, rows[i].clients, 20000.0);
        CU_ASSERT_DOUBLE_EQUAL(got.wins_per_s, rows[i].wins, 0.03);
        CU_ASSERT_DOUBLE_EQUAL(got.failure_share, rows[i].failures, 0.008);
    }
}

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static double quantile(const ls_law *law, double probability)
{
    enum { COUNT = 40000 };
    static double values[COUNT];
    ls_law_sampler sampler;
    if (ls_law_prepare(law, &sampler, NULL) != LS_OK) return NAN;
    ls_random random = ls_random_open(1, 0, LS_RANDOM_TEST, 0);
    for (uint32_t i = 0; i < COUNT; i++) values[i] = ls_law_draw_s(&sampler, &random);
    ls_law_release(&sampler);
    qsort(values, COUNT, sizeof *values, compare_doubles);
    return values[(size_t)(probability * COUNT)];
}

/* Measured quantiles in milliseconds against the presets' laws, to a tenth (beyond 99 %: a fifth). */
static void test_quantiles(void)
{
    static const struct {
        const char *preset;
        size_t offset;
        double probability, measured_ms, tolerance;
    } rows[] = {
        {"s3-standard", offsetof(ls_store_config, get), 0.50, 26.8, 0.1},
        {"s3-standard", offsetof(ls_store_config, get), 0.90, 46.9, 0.1},
        {"s3-standard", offsetof(ls_store_config, get), 0.99, 113.0, 0.1},
        {"s3-standard", offsetof(ls_store_config, conditional_won), 0.05, 54.53, 0.1},
        {"s3-standard", offsetof(ls_store_config, conditional_won), 0.50, 64.69, 0.1},
        {"s3-standard", offsetof(ls_store_config, conditional_won), 0.95, 90.48, 0.1},
        {"s3-standard", offsetof(ls_store_config, conditional_won), 0.99, 111.9, 0.1},
        {"s3-standard", offsetof(ls_store_config, conditional_won), 0.999, 167.7, 0.2},
        {"s3-express", offsetof(ls_store_config, get), 0.50, 2.48, 0.1},
        {"s3-express", offsetof(ls_store_config, get), 0.90, 3.77, 0.1},
        {"s3-express", offsetof(ls_store_config, get), 0.99, 9.29, 0.1},
        {"s3-express", offsetof(ls_store_config, conditional_won), 0.05, 13.65, 0.1},
        {"s3-express", offsetof(ls_store_config, conditional_won), 0.50, 14.45, 0.1},
        {"s3-express", offsetof(ls_store_config, conditional_won), 0.95, 15.64, 0.1},
        {"s3-express", offsetof(ls_store_config, conditional_won), 0.999, 25.23, 0.2},
        {"s3-express", offsetof(ls_store_config, conditional_lost), 0.50, 21.2, 0.15},
        {"s3-express", offsetof(ls_store_config, conditional_lost), 0.95, 42.66, 0.1},
        {"azure-blob", offsetof(ls_store_config, conditional_won), 0.05, 74.38, 0.1},
        {"azure-blob", offsetof(ls_store_config, conditional_won), 0.50, 94.81, 0.1},
        {"azure-blob", offsetof(ls_store_config, conditional_won), 0.95, 161.7, 0.1},
        {"azure-blob", offsetof(ls_store_config, conditional_won), 0.99, 230.5, 0.1},
        {"gcs", offsetof(ls_store_config, conditional_won), 0.05, 151.8, 0.1},
        {"gcs", offsetof(ls_store_config, conditional_won), 0.50, 173.1, 0.1},
        {"gcs", offsetof(ls_store_config, get), 0.50, 200.0, 0.1},
        {"local", offsetof(ls_store_config, put), 0.99, 6.9, 0.1},
        {"local", offsetof(ls_store_config, get), 0.99, 2.2, 0.1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *config = (const char *)&preset_named(rows[i].preset)->config;
        double got_ms = 1e3 * quantile((const ls_law *)(config + rows[i].offset), rows[i].probability);
        bool is_near = fabs(got_ms / rows[i].measured_ms - 1.0) <= rows[i].tolerance;
        if (!is_near) {
            printf("\n  %s, quantile %g: %.2f ms, measured %.2f", rows[i].preset, rows[i].probability, got_ms,
                   rows[i].measured_ms);
        }
        CU_ASSERT(is_near);
    }
}

/* A put of 500 KiB on S3 Standard: p50 70 ms (field: 70, 101, 137 at 50, 95, 99 %), through the whole model. */
static void test_sized_put(void)
{
    enum { COUNT = 4001 };
    store_clock clock = {0};
    ls_store_model *model = NULL;
    if (ls_store_model_create(&preset_named("s3-standard")->config, 1, 0, store_clock_scheduler(&clock), &model,
                              NULL)) {
        CU_FAIL("no model");
        return;
    }
    uint32_t below[3] = {0};
    static const double bounds_ms[] = {70.0, 101.0, 137.0};
    for (uint32_t i = 0; i < COUNT; i++) {
        ls_store_request request = {
            .operation = LS_PUT, .body_bytes = 500 << 10, .key = {.kind = LS_OBJECT_DATA, .number = 1, .sequence = i}};
        uint64_t token;
        ls_store_completion done = {.ready = false};
        ls_store_model_submit(model, clock.now_ns, 0, 0, &request);
        while (!done.ready && store_clock_next(&clock, &token)) {
            ls_store_model_event(model, clock.now_ns, token, &done, NULL);
        }
        double took_ms = 1e3 * ls_seconds(clock.now_ns - done.submitted_ns);
        for (int b = 0; b < 3; b++) below[b] += took_ms <= bounds_ms[b];
    }
    CU_ASSERT_DOUBLE_EQUAL((double)below[0] / COUNT, 0.50, 0.05);
    CU_ASSERT_DOUBLE_EQUAL((double)below[1] / COUNT, 0.95, 0.04);
    CU_ASSERT_DOUBLE_EQUAL((double)below[2] / COUNT, 0.99, 0.01);
    ls_store_model_destroy(model);
    store_clock_release(&clock);
}

/* Every preset is complete: named once, explained, sourced, and accepted by the model. */
static void test_all_are_valid(void)
{
    static const char *const names[] = {"ideal",      "s3-standard",   "s3-express", "gcs",
                                        "azure-blob", "azure-premium", "minio",      "local"};
    uint32_t count;
    const ls_store_preset *presets = ls_store_presets(&count);
    CU_ASSERT_EQUAL_FATAL(count, sizeof names / sizeof names[0]);
    for (uint32_t i = 0; i < count; i++) {
        store_clock clock = {0};
        ls_store_model *model = NULL;
        ls_error error = {""};
        CU_ASSERT_STRING_EQUAL(presets[i].name, names[i]);
        CU_ASSERT(strlen(presets[i].meaning) > 20 && strlen(presets[i].source) > 10);
        CU_ASSERT_EQUAL(ls_store_model_create(&presets[i].config, 1, 0, store_clock_scheduler(&clock), &model, &error),
                        LS_OK);
        CU_ASSERT_STRING_EQUAL(error.text, "");
        ls_store_model_destroy(model);
        const ls_law *laws[] = {&presets[i].config.list,
                                &presets[i].config.head,
                                &presets[i].config.get,
                                &presets[i].config.put,
                                &presets[i].config.conditional_won,
                                &presets[i].config.conditional_lost,
                                &presets[i].config.remove};
        for (size_t l = 0; l < 7; l++) CU_ASSERT_EQUAL(laws[l]->draws, 1);
    }
}

LS_SUITE(presets, {"all are valid", test_all_are_valid}, {"S3 Standard, 1 to 16 rivals", test_s3_standard},
         {"S3 Express, 1 to 16 rivals", test_s3_express}, {"Azure, a lone writer", test_azure_alone},
         {"constant windows", test_constant_retriers}, {"exponential windows", test_exponential_retriers},
         {"measured quantiles", test_quantiles}, {"a put of 500 KiB", test_sized_put})
