/* test_prices.c - bills by hand from planted counts, which requests each provider bills, and the bill of whole runs. */
#include "sim/prices.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const ls_price_table *table_of(const char *name)
{
    const ls_price_table *table = ls_price_table_for(0, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    return table;
}

/* Each table tells when and where it was read; the words of the choice are "by-store", "none" and the tables' names. */
static void test_tables(void)
{
    uint32_t count;
    const ls_price_table *tables = ls_price_tables(&count);
    char words[200] = "by-store none";
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(strlen(tables[i].read), 7);
        CU_ASSERT_EQUAL(strncmp(tables[i].source, "https://", 8), 0);
        CU_ASSERT_TRUE(tables[i].get_dollars > 0 && tables[i].get_dollars < tables[i].put_dollars);
        CU_ASSERT_TRUE(tables[i].held_dollars_per_gib_month > 0);
        strcat(strcat(words, " "), tables[i].name);
        CU_ASSERT_PTR_EQUAL(ls_price_table_for(i + 2, "elsewhere"), &tables[i]);
        CU_ASSERT_PTR_EQUAL(ls_price_table_for(0, tables[i].name), &tables[i]);
    }
    CU_ASSERT_STRING_EQUAL(words, LS_PRICE_CHOICES);
    CU_ASSERT_PTR_NULL(ls_price_table_for(0, "local"));
    CU_ASSERT_PTR_NULL(ls_price_table_for(1, "gcs"));
    CU_ASSERT_PTR_NULL(ls_price_table_for(count + 2, "gcs"));
}

/* The worked example of the AWS FAQ: 1,000,000 writes and 9,000,000 reads of 10 KB: 1.13 + 0.27 + 0.03 + 0.05 dollars.
 */
static void test_published_example(void)
{
    const ls_price_table *express = table_of("s3-express");
    ls_store_counters before = {0}, after = {0};
    after.by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_OK] = (ls_store_count){1000000, UINT64_C(10240000000), 0};
    CU_ASSERT_DOUBLE_EQUAL(ls_price_of_kind(express, &before, &after, LS_OBJECT_DATA), 1.13 + 0.0305, 1e-4);
    after.by[LS_GET][LS_OBJECT_DATA][LS_REPLY_OK] = (ls_store_count){9000000, 0, UINT64_C(92160000000)};
    after.by[LS_DELETE][LS_OBJECT_DATA][LS_REPLY_OK] = (ls_store_count){1000000, 0, 0};
    CU_ASSERT_DOUBLE_EQUAL(ls_price_of_kind(express, &before, &after, LS_OBJECT_DATA), 1.13 + 0.27 + 0.03 + 0.05,
                           0.005);
    CU_ASSERT_EQUAL(ls_price_of_others(express, &before, &after, LS_OBJECT_DATA), 0);
    /* What was there before is not billed again. */
    before = after;
    after.by[LS_PUT][LS_OBJECT_DATA][LS_REPLY_OK].requests += 1000;
    CU_ASSERT_DOUBLE_EQUAL(ls_price_of_kind(express, &before, &after, LS_OBJECT_DATA), 0.00113, 1e-12);
}

static void test_refused(void)
{
    ls_store_counters before = {0}, after = {0};
    after.by[LS_PUT][LS_OBJECT_MANIFEST][LS_REPLY_OK].requests = 1000;
    after.by[LS_PUT][LS_OBJECT_MANIFEST][LS_REPLY_EXISTS].requests = 9000;
    after.by[LS_HEAD][LS_OBJECT_MANIFEST][LS_REPLY_NOT_FOUND].requests = 10000;
    after.by[LS_LIST][LS_OBJECT_MANIFEST][LS_REPLY_OK].requests = 2000;
    after.by[LS_PUT][LS_OBJECT_FLOOR][LS_REPLY_THROTTLED].requests = 1000000;
    static const struct {
        const char *name;
        double dollars;
    } expected[] = {
        {"s3-standard", 0.05 + 0.004 + 0.01}, {"gcs", 0.005 + 0.01}, {"azure-blob", 0.055 + 0.0044 + 0.011}};
    for (int i = 0; i < 3; i++) {
        double dollars = ls_price_of_others(table_of(expected[i].name), &before, &after, LS_OBJECT_DATA);
        CU_ASSERT_DOUBLE_EQUAL(dollars, expected[i].dollars, 1e-12);
    }
}

/* A run by itself: a lone producer without rivals. Uploads are one put a batch, commits what the world counts. */
static void test_run(void)
{
    ls_scenario scenario = ls_test_scenario("s3-standard", "immediate");
    scenario.producers.count = 1;
    scenario.batches.rate_per_s = 1;
    scenario.batches.bytes = 1048576;
    scenario.warm_up_s = 100;
    scenario.duration_s = 4000;
    ls_run_result alone = ls_test_simulate(&scenario, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(alone.values[LS_METRIC_DATA_DOLLARS], 5.0, 0.02);
    /* Each batch holds its bytes and a footer; what is under way at the ends blurs the rest. */
    double left = alone.values[LS_METRIC_STORED_BYTES] - alone.values[LS_METRIC_HISTORY_BYTES];
    CU_ASSERT_DOUBLE_EQUAL(left / 1048576, 1.0, 0.005);
    CU_ASSERT_DOUBLE_EQUAL(alone.values[LS_METRIC_STORAGE_DOLLARS],
                           1e6 * alone.values[LS_METRIC_STORED_BYTES] / 1073741824 * 0.023, 1e-9);
    /* Without rivals a commit is a list and a put, both at 5 dollars a million. */
    double requests = alone.values[LS_METRIC_COMMIT_REQUESTS_PER_BATCH];
    CU_ASSERT_DOUBLE_EQUAL(alone.values[LS_METRIC_COMMIT_DOLLARS] / (5.0 * requests), 1.0, 0.005);
    /* Prices change the bill and nothing else. */
    scenario.prices = 1;
    ls_run_result unpriced = ls_test_simulate(&scenario, 1, 0);
    CU_ASSERT_TRUE(isnan(unpriced.values[LS_METRIC_COMMIT_DOLLARS]));
    CU_ASSERT_EQUAL(unpriced.values[LS_METRIC_STORED_BYTES], alone.values[LS_METRIC_STORED_BYTES]);
    CU_ASSERT_EQUAL(unpriced.values[LS_METRIC_DELAY_MEAN], alone.values[LS_METRIC_DELAY_MEAN]);
    scenario.prices = 3;
    ls_run_result express = ls_test_simulate(&scenario, 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(express.values[LS_METRIC_DATA_DOLLARS], 1.13 + 1e6 / 1024 * 0.0032, 0.02);
}

/* Many rivals: Google's bill leaves out what was lost, so it lies below AWS's at the same prices by just that. */
static void test_contention(void)
{
    ls_scenario scenario = ls_test_scenario("s3-standard", "immediate");
    scenario.producers.count = 16;
    scenario.warm_up_s = 60;
    scenario.duration_s = 600;
    ls_run_result aws = ls_test_simulate(&scenario, 1, 0);
    scenario.prices = 4;
    ls_run_result google = ls_test_simulate(&scenario, 1, 0);
    double published = aws.values[LS_METRIC_PUBLISHED_RATE] * 600;
    double lost = aws.values[LS_METRIC_ATTEMPT_RATE] * 600 * aws.values[LS_METRIC_CONFLICT_SHARE];
    CU_ASSERT_TRUE(lost > 1000);
    double difference = aws.values[LS_METRIC_COMMIT_DOLLARS] - google.values[LS_METRIC_COMMIT_DOLLARS];
    CU_ASSERT_DOUBLE_EQUAL(difference / (1e6 * lost * 0.005e-3 / published), 1.0, 0.02);
}

LS_SUITE(prices, {"tables", test_tables}, {"a published example", test_published_example},
         {"who bills what is refused", test_refused}, {"a run's bill", test_run},
         {"the price of contention", test_contention})
