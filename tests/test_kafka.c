/* test_kafka.c - the Kafka baseline: delays and capacities by hand, limits, disciplines, slow and failing brokers. */
#include "sim/kafka.h"
#include "sim/metrics.h"
#include "tests/suite.h"

#include <math.h>

#define MB 1000000.0

/* One producer, one partition, no queue: 1 MB/s ... 1 GB/s are round numbers, so delays can be written down. */
static ls_scenario plain(void)
{
    ls_scenario s;
    uint32_t count;
    const ls_option *options = ls_scenario_options(&count);
    ls_options_default(options, count, &s);
    s.world = LS_WORLD_KAFKA;
    s.producers.count = 1;
    s.batches.law = LS_ARRIVAL_REGULAR;
    s.batches.rate_per_s = 1;
    s.batches.bytes = 1000000 - LS_KAFKA_RECORD_OVERHEAD;
    s.batches.data_parallel = 4;
    s.batches.context_parallel = 1;
    s.warm_up_s = 0;
    s.duration_s = 20;
    s.upload.backlog_batches = 1000;
    s.kafka.partitions = 4;
    s.kafka.network_bytes_per_s = s.kafka.producer_bytes_per_s = 100 * MB;
    s.kafka.disk_bytes_per_s = 200 * MB;
    s.kafka.page_cache_bytes = 0;
    s.kafka.rtt_s = 0.002;
    return s;
}

static ls_run_result simulated(const ls_scenario *s)
{
    ls_run_result result = {.events = 0};
    ls_error error = {""};
    CU_ASSERT_EQUAL(ls_simulate_kafka(s, 3, 0, &result, &error), LS_OK);
    CU_ASSERT_STRING_EQUAL(error.text, "");
    return result;
}

#define VALUE(s, id) (simulated(s).values[LS_METRIC_##id])

/* 10 ms in, 5 ms disk, two copies out 20 ms, 5 ms disk, two round trips 4 ms; RF 2 is F.1's linger + 2 B/n + disks. */
static void test_no_load(void)
{
    ls_scenario s = plain();
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), 0.044, 1e-6);
    s.kafka.replication_factor = 2;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), 0.034, 1e-6);
    s.kafka.acks = 1;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), 0.017, 1e-6);
    s.kafka.page_cache_bytes = 1000000;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), 0.012, 1e-6);
}

/* A record below batch.size waits for linger.ms, one above is sent at once; records of one partition that meet share the wait. */
static void test_linger(void)
{
    ls_scenario s = plain();
    s.batches.bytes = 1000;
    s.kafka.linger_s = 0;
    double without = VALUE(&s, DELAY_MEAN);
    s.kafka.linger_s = 0.25;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), without + 0.25, 1e-6);
    s.kafka.batch_size_bytes = 1070;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), without, 1e-6);
    /* one partition, a record every 0.1 s, linger 0.25: batches of 3 (at 0, 0.1, 0.2) that wait 0.25, 0.15 and 0.05 */
    s.kafka.batch_size_bytes = 16384;
    s.kafka.partitions = 1;
    s.batches.rate_per_s = 10;
    s.duration_s = 30;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), without + 0.15, 2e-3);
}

/* Brokers n / (RF-1) on links out (150 MB/s at RF 3), brokers d / RF on disks; acks=leader with one replica: brokers n on links in. */
static void test_saturation(void)
{
    ls_scenario s = plain();
    s.producers.count = 24;
    s.kafka.partitions = 12;
    s.batches.law = LS_ARRIVAL_POISSON;
    s.batches.rate_per_s = 20; /* 480 MB/s offered */
    s.warm_up_s = 10;
    s.duration_s = 60;
    s.kafka.disk_bytes_per_s = 1e12;
    s.kafka.replica_lag_s = 1e6;
    s.kafka.rtt_s = 0;
    s.kafka.replica_response_bytes = 10485760;
    double links = VALUE(&s, INGEST_BYTES);
    CU_ASSERT(links > 0.85 * 100 * MB && links <= 1.001 * 100 * MB); /* in: 3 brokers * 100 / RF 3 binds before out */
    s.kafka.replication_factor = 1;
    s.kafka.min_insync_replicas = 1;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, INGEST_BYTES) / (300 * MB), 1, 0.02);
    s.kafka.disk_bytes_per_s = 40 * MB;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, INGEST_BYTES) / (120 * MB), 1, 0.02);
}

/* Exponential work needs exponential sizes; with equal sizes one partition is M/D/1: wait = rho / (2 (1 - rho)) services. */
static void test_one_server(void)
{
    ls_scenario s = plain();
    s.kafka.brokers = s.kafka.replication_factor = s.kafka.min_insync_replicas = s.kafka.partitions = 1;
    s.kafka.acks = 1;
    s.kafka.rtt_s = 0;
    s.kafka.network_bytes_per_s = s.kafka.producer_bytes_per_s = 1e13;
    s.kafka.disk_bytes_per_s = 100 * MB; /* 10 ms each */
    s.producers.count = 50;
    s.batches.law = LS_ARRIVAL_POISSON;
    s.batches.rate_per_s = 1.4; /* load 0.7 */
    s.warm_up_s = 20;
    s.duration_s = 2000;
    double wait = 0.7 / (2 * 0.3) * 0.01;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN) / (wait + 0.01), 1, 0.03);
}

static void test_limits(void)
{
    ls_scenario s = plain();
    s.batches.bytes = 1048576 - LS_KAFKA_RECORD_OVERHEAD;
    CU_ASSERT_EQUAL(VALUE(&s, PUBLISHED_SHARE), 1.0);
    s.batches.bytes++;
    CU_ASSERT_EQUAL(VALUE(&s, REJECTED_CLIENT), 1.0);
    s.kafka.max_request_bytes = 100000000;
    s.batches.bytes = 1048588 - LS_KAFKA_RECORD_OVERHEAD;
    CU_ASSERT_EQUAL(VALUE(&s, PUBLISHED_SHARE), 1.0);
    s.batches.bytes++;
    CU_ASSERT_EQUAL(VALUE(&s, REJECTED_BROKER), 1.0);
    CU_ASSERT_EQUAL(VALUE(&s, PUBLISHED_SHARE), 0.0);
    s.kafka.message_max_bytes = 100000000;
    CU_ASSERT_EQUAL(VALUE(&s, PUBLISHED_SHARE), 1.0);
    s.batches.bytes = 33554433; /* above buffer.memory */
    CU_ASSERT_EQUAL(VALUE(&s, REJECTED_CLIENT), 1.0);
    s.batches.bytes = 4000000; /* a record a rank: each below the limits */
    s.kafka.max_request_bytes = 1048576;
    s.kafka.discipline = 2;
    CU_ASSERT_EQUAL(VALUE(&s, PUBLISHED_SHARE), 1.0);
}

/* Offered three times what the disk takes, no retry helps: max.block.ms and buffer.memory cut the excess. */
static void test_overload(void)
{
    ls_scenario s = plain();
    s.batches.rate_per_s = 60;
    s.kafka.disk_bytes_per_s = 20 * MB;
    s.kafka.replication_factor = s.kafka.brokers = s.kafka.min_insync_replicas = 1;
    s.kafka.max_block_s = 2;
    s.warm_up_s = 20;
    s.duration_s = 40;
    ls_run_result r = simulated(&s);
    CU_ASSERT_DOUBLE_EQUAL(r.values[LS_METRIC_INGEST_BYTES] / (20 * MB), 1, 0.02);
    CU_ASSERT(r.values[LS_METRIC_KAFKA_BLOCKED] > 0.5);
    CU_ASSERT(r.values[LS_METRIC_DELAY_MAX] < 2 + 34.0 / 20 + 0.2); /* the wait, then a full buffer ahead */
}

/* Delay with the last broker four times as slow: its copy takes 40 ms in and 20 ms on disk. Partitions that it does not lead. */
static void test_slow_follower(void)
{
    ls_scenario s = plain();
    s.kafka.partitions = 1;
    s.kafka.slow_factor = 4;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, DELAY_MEAN), 0.01 + 0.005 + 0.04 + 0.02 + 0.004, 1e-6);
    s.kafka.slow_factor = 1e4; /* beyond any fetch: it falls out of sync, and the rest goes on without it */
    s.kafka.replica_lag_s = 2;
    s.warm_up_s = 10;
    ls_run_result r = simulated(&s);
    CU_ASSERT_EQUAL(r.values[LS_METRIC_KAFKA_ISR_SHRINKS], 1.0);
    CU_ASSERT(r.values[LS_METRIC_DELAY_MEAN] < 0.05);
    s.kafka.min_insync_replicas = 3; /* now nothing is acknowledged once it is out */
    s.kafka.delivery_timeout_s = 3;
    CU_ASSERT(simulated(&s).values[LS_METRIC_KAFKA_TIMED_OUT] > 0.5);
}

/* A failure: with acks=all nothing acknowledged is lost, and everything made is published in the end; acks=leader loses. */
static void test_failure(void)
{
    ls_scenario s = plain();
    s.producers.count = 4;
    s.batches.law = LS_ARRIVAL_POISSON;
    s.batches.rate_per_s = 12;
    s.batches.bytes = 500000;
    s.kafka.fail_at_s = 30.0;
    s.kafka.fail_length_s = 20;
    s.duration_s = 60;
    s.kafka.buffer_memory_bytes = 1000000000;
    ls_run_result r = simulated(&s);
    CU_ASSERT_EQUAL(r.values[LS_METRIC_KAFKA_LOST], 0.0);
    CU_ASSERT(r.values[LS_METRIC_DELAY_MAX] > 8.9); /* until new leaders are there */
    CU_ASSERT_EQUAL(r.values[LS_METRIC_KAFKA_TIMED_OUT], 0.0);
    CU_ASSERT(r.values[LS_METRIC_KAFKA_ISR_SHRINKS] >= 4.0);
    s.kafka.acks = 1;
    s.kafka.slow_factor = 1;
    double lost = 0;
    for (int i = 0; i < 10; i++) {
        s.kafka.fail_at_s = 30 + 0.137 * i;
        lost += VALUE(&s, KAFKA_LOST);
    }
    CU_ASSERT(lost > 0);
}

/* index: the records, then one of 200 bytes: another no-load delay. transaction: prepare, markers. Both show whole batches only. */
static void test_disciplines(void)
{
    ls_scenario s = plain();
    s.kafka.consumers = true;
    double whole = VALUE(&s, READ_AMPLIFICATION);
    CU_ASSERT_DOUBLE_EQUAL(whole, 4.0, 0.001); /* four ranks, the whole batch each */
    s.kafka.discipline = 2;
    ls_run_result index = simulated(&s);
    CU_ASSERT_DOUBLE_EQUAL(index.values[LS_METRIC_READ_AMPLIFICATION], 1.0, 0.001);
    CU_ASSERT_EQUAL(index.values[LS_METRIC_PUBLISHED_SHARE], 1.0);
    /* a rank and partition for each broker, so that no marker waits behind another in a follower's fetch */
    s.batches.data_parallel = s.kafka.partitions = 3;
    index = simulated(&s);
    s.kafka.discipline = 1;
    ls_run_result transaction = simulated(&s);
    CU_ASSERT_EQUAL(transaction.values[LS_METRIC_PUBLISHED_SHARE], 1.0);
    /* an index record costs two round trips and a few microseconds; prepare and markers cost twice that */
    double more = transaction.values[LS_METRIC_DELAY_MEAN] - index.values[LS_METRIC_DELAY_MEAN];
    CU_ASSERT_DOUBLE_EQUAL(more, 2 * s.kafka.rtt_s, 2e-4);
}

/* Two round trips' halves each way and the slice over the leader's link: four ranks in turn on one broker, or on their own. */
static void test_reading(void)
{
    ls_scenario s = plain();
    s.kafka.consumers = true;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, FETCH_MEAN), 0.002 + 0.01 * (1 + 2 + 3 + 4) / 4, 1e-6);
    s.kafka.fetch_min_bytes = 2000000;
    CU_ASSERT_DOUBLE_EQUAL(VALUE(&s, FETCH_MEAN), 0.502 + 0.025, 1e-6);
}

static void test_refusals(void)
{
    ls_scenario s = plain();
    ls_run_result result;
    ls_error error = {""};
    s.kafka.replication_factor = 4;
    CU_ASSERT_EQUAL(ls_simulate_kafka(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    s = plain();
    s.kafka.min_insync_replicas = 4;
    CU_ASSERT_EQUAL(ls_simulate_kafka(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    s = plain();
    s.batches.law = LS_ARRIVAL_OPEN;
    CU_ASSERT_EQUAL(ls_simulate_kafka(&s, 1, 0, &result, &error), LS_ERROR_INVALID);
    s = plain();
    for (int64_t after = 0; after < 12; after++) {
        ls_fail_allocations_after(after);
        ls_result outcome = ls_simulate_kafka(&s, 1, 0, &result, &error);
        ls_fail_allocations_after(-1);
        CU_ASSERT_EQUAL(outcome, LS_ERROR_MEMORY);
    }
}

LS_SUITE(kafka, {"delay without load by hand", test_no_load}, {"linger adds what it should", test_linger},
         {"saturation at links and disks", test_saturation}, {"one partition is M/D/1", test_one_server},
         {"size limits to the byte", test_limits}, {"overload ends at buffer.memory", test_overload},
         {"slow follower, in-sync set", test_slow_follower}, {"a broker fails", test_failure},
         {"strict disciplines", test_disciplines}, {"reading", test_reading}, {"refusals, no memory", test_refusals})
