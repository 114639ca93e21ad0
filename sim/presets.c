/* presets.c - named stores with sources for their numbers.
 *
 * Laws are shifted lognormals: floor, then the median above it, then sigma. Medians, sigmas and slopes of plain
 * requests come from the profiles of Endive (https://github.com/cdouglas/endive, endive/providers), which rest on YCSB
 * runs of June 2025 and on Durner, Leis, Neumann, VLDB 2023 (https://doi.org/10.14778/3611479.3611486) for size. Laws
 * of conditional puts come from its measurement of 1 to 16 threads that retry without pause on one object
 * (analysis/distributions.json, rows "CAS"):
 *
 * S3 Standard: won law from the quantiles of one thread (54.5, 64.7, 90.5, 112, 168 ms at 5, 50, 95, 99, 99.9 %), lost
 * law from those of the losers among sixteen, with less spread (95 % at 110 ms, measured 129); that, effect share 1 and
 * 1.0 ms of contention meet the wins a second and the failures of one and sixteen threads. Two, four and eight threads
 * then come out right untouched (tests/test_presets.c): the log moves at one win a latency, whatever the number of
 * rivals.
 *
 * S3 Express: laws the same way, but wins go from 69 up to 78 a second and back to 75, a course that no effect share
 * gives at every number: 0.78 and 0.25 ms were chosen with sight of all five, so that each comes within a tenth.
 * Winners among many are answered later in truth (median 23 ms, here 15), losers as measured.
 *
 * Of the other stores the effect share is an assumption: near the end, as S3 shows it. Lists are taken to cost what a
 * get costs, deletes what a put costs, for want of data. Rate limits are those that the providers publish (sources in
 * each row).
 */
#include "sim/store_config.h"

#define LOGNORMAL_TAIL(floor_ms, median_ms, sigma, share, tail_ms, exponent)                                           \
    {                                                                                                                  \
        .law = LS_LAW_LOGNORMAL, .floor_s = (floor_ms) / 1e3, .scale_s = (median_ms) / 1e3, .shape = (sigma),          \
        .tail_share = (share), .tail_scale_s = (tail_ms) / 1e3, .tail_shape = (exponent), .draws = 1                   \
    }
#define LOGNORMAL(floor_ms, median_ms, sigma) LOGNORMAL_TAIL(floor_ms, median_ms, sigma, 0.0, 0.0, 2.0)
#define NOTHING                                                                                                        \
    {                                                                                                                  \
        .law = LS_LAW_CONSTANT, .tail_shape = 2.0, .draws = 1                                                          \
    }

/* p50 27, p90 47, p99 113 ms and a tail that outliers of seconds belong to. */
#define S3_READ         LOGNORMAL_TAIL(10.0, 17.0, 0.60, 0.02, 80.0, 2.5)
#define S3_PUT          LOGNORMAL(0.0, 60.0, 0.29)
#define EXPRESS_READ    LOGNORMAL_TAIL(1.0, 1.5, 0.45, 0.02, 6.5, 2.5)
#define EXPRESS_PUT     LOGNORMAL(1.0, 5.5, 0.28)
#define GCS_READ        LOGNORMAL(80.0, 120.0, 0.45)
#define GCS_CONDITIONAL LOGNORMAL_TAIL(140.0, 33.0, 0.40, 0.01, 300.0, 2.0)
#define BLOB_READ       LOGNORMAL(20.0, 18.0, 0.66)
#define BLOB_PUT        LOGNORMAL(20.0, 25.0, 0.50)
#define PREMIUM_READ    LOGNORMAL(20.0, 15.0, 0.18)
#define PREMIUM_PUT     LOGNORMAL(20.0, 21.0, 0.20)
#define MINIO_READ      LOGNORMAL(0.5, 1.5, 0.50)
#define MINIO_PUT       LOGNORMAL(1.5, 3.5, 0.50)
#define LOCAL_READ      LOGNORMAL(0.0, 1.4, 0.194)
#define LOCAL_PUT       LOGNORMAL(0.0, 2.5, 0.436)

#define ENDIVE "https://github.com/cdouglas/endive"

static const ls_store_preset presets[] = {
    {
        .name = "ideal",
        .meaning = "every request takes no time and nothing is limited; theory worlds set the one law they need",
        .source = "none: the zero of all laws",
        .config = {.list = NOTHING,
                   .head = NOTHING,
                   .get = NOTHING,
                   .put = NOTHING,
                   .conditional_won = NOTHING,
                   .conditional_lost = NOTHING,
                   .remove = NOTHING,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 1.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.01},
    },
    {
        .name = "s3-standard",
        .meaning =
            "AWS S3 Standard from a machine in the region; plain requests and conditional latencies measured, effect "
            "share and contention fitted to 1 and 16 rivals (2, 4 and 8 are met within 9 % of wins and 1 point of "
            "failures); list and delete assumed",
        .source = ENDIVE " (June 2025); limits: https://aws.amazon.com/premiumsupport/knowledge-center/"
                         "s3-object-key-naming-pattern/",
        .config = {.list = S3_READ,
                   .head = S3_READ,
                   .get = S3_READ,
                   .put = S3_PUT,
                   .conditional_won = LOGNORMAL_TAIL(48.0, 16.7, 0.57, 0.002, 130.0, 3.0),
                   .conditional_lost = LOGNORMAL_TAIL(43.0, 21.0, 0.70, 0.004, 250.0, 2.0),
                   .remove = S3_PUT,
                   .get_s_per_mib = 0.020,
                   .put_s_per_mib = 0.020,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 1.0,
                   .contention_s_per_doubling = 0.0010,
                   .write_limit_per_s = 3500.0,
                   .read_limit_per_s = 5500.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.02},
    },
    {
        .name = "s3-express",
        .meaning =
            "AWS S3 Express One Zone from the same zone; reads and conditional latencies measured, plain puts derived, "
            "effect share and contention fitted to within a tenth of wins at 1 to 16 rivals; winners among many come "
            "out faster than measured; list and delete assumed",
        .source = ENDIVE " (June 2025); limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
                         "s3-express-optimizing-performance.html",
        .config = {.list = EXPRESS_READ,
                   .head = EXPRESS_READ,
                   .get = EXPRESS_READ,
                   .put = EXPRESS_PUT,
                   .conditional_won = LOGNORMAL_TAIL(13.2, 1.2, 0.45, 0.004, 17.0, 3.5),
                   .conditional_lost = LOGNORMAL_TAIL(10.0, 8.5, 0.75, 0.003, 80.0, 2.0),
                   .remove = EXPRESS_PUT,
                   .get_s_per_mib = 0.010,
                   .put_s_per_mib = 0.010,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 0.78,
                   .contention_s_per_doubling = 0.00025,
                   .write_limit_per_s = 100000.0,
                   .read_limit_per_s = 200000.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.005},
    },
    {
        .name = "gcs",
        .meaning = "Google Cloud Storage, coarse: medians measured or estimated; the seconds that rivals wait in the "
                   "measurement are "
                   "left to the limit of one write a second and name, which is modelled as such; effect share assumed",
        .source = ENDIVE " (June 2025); limits: https://docs.cloud.google.com/storage/quotas",
        .config = {.list = GCS_READ,
                   .head = GCS_READ,
                   .get = GCS_READ,
                   .put = GCS_READ,
                   .conditional_won = GCS_CONDITIONAL,
                   .conditional_lost = GCS_CONDITIONAL,
                   .remove = GCS_READ,
                   .get_s_per_mib = 0.017,
                   .put_s_per_mib = 0.017,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 1.0,
                   .write_limit_per_s = 1000.0,
                   .read_limit_per_s = 5000.0,
                   .key_write_limit_per_s = 1.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.05},
    },
    {
        .name = "azure-blob",
        .meaning = "Azure Blob Storage (standard): conditional put of a lone writer measured, losers and plain "
                   "requests estimated, "
                   "effect share assumed; the waits of many seconds among 8 and more rivals are not reproduced",
        .source = ENDIVE " and https://cdouglas.github.io/posts/2026/01/conditional; limits: "
                         "https://learn.microsoft.com/azure/storage/blobs/scalability-targets",
        .config = {.list = BLOB_READ,
                   .head = BLOB_READ,
                   .get = BLOB_READ,
                   .put = BLOB_PUT,
                   .conditional_won = LOGNORMAL(65.0, 29.8, 0.72),
                   .conditional_lost = LOGNORMAL(0.0, 75.0, 0.90),
                   .remove = BLOB_PUT,
                   .get_s_per_mib = 0.025,
                   .put_s_per_mib = 0.025,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 1.0,
                   .write_limit_per_s = 20000.0,
                   .read_limit_per_s = 20000.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.02},
    },
    {
        .name = "azure-premium",
        .meaning = "Azure premium block blobs, coarse: medians measured or estimated, spread of a lone writer and "
                   "effect share assumed",
        .source = ENDIVE " and https://cdouglas.github.io/posts/2026/01/conditional; limits: "
                         "https://learn.microsoft.com/azure/storage/blobs/scalability-targets",
        .config = {.list = PREMIUM_READ,
                   .head = PREMIUM_READ,
                   .get = PREMIUM_READ,
                   .put = PREMIUM_PUT,
                   .conditional_won = LOGNORMAL_TAIL(42.0, 21.0, 0.40, 0.01, 200.0, 1.5),
                   .conditional_lost = LOGNORMAL(0.0, 82.0, 0.85),
                   .remove = PREMIUM_PUT,
                   .get_s_per_mib = 0.015,
                   .put_s_per_mib = 0.015,
                   .read_effect_share = 0.5,
                   .put_effect_share = 1.0,
                   .conditional_effect_share = 1.0,
                   .write_limit_per_s = 20000.0,
                   .read_limit_per_s = 20000.0,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.02},
    },
    {
        .name = "minio",
        .meaning = "a MinIO cluster on NVMe over 10 Gbit/s in one hall: a coarse assumption, to be replaced by "
                   "`lakestream calibrate`",
        .source = "assumed; no published percentiles of small objects were found",
        .config = {.list = MINIO_PUT,
                   .head = MINIO_READ,
                   .get = MINIO_READ,
                   .put = MINIO_PUT,
                   .conditional_won = MINIO_PUT,
                   .conditional_lost = MINIO_READ,
                   .remove = MINIO_PUT,
                   .get_s_per_mib = 0.001,
                   .put_s_per_mib = 0.002,
                   .read_effect_share = 0.5,
                   .put_effect_share = 0.9,
                   .conditional_effect_share = 0.9,
                   .client_bandwidth_bytes_per_s = 1.25e9,
                   .server_bandwidth_bytes_per_s = 5e9,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.005},
    },
    {
        .name = "local",
        .meaning = "an S3 server on loopback, two cores: plain requests and the total rate measured once with one "
                   "client, the rest a "
                   "coarse assumption, to be replaced by `lakestream calibrate`",
        .source = "own measurement of Ceph RGW 16.2 with an in-memory OSD: put 1 KiB 2.5 ms p50 and 6.9 p99, 1 MiB 15; "
                  "get 1.4, 2.2 "
                  "and 3.2; 16 clients 760 requests/s",
        .config = {.list = LOCAL_PUT,
                   .head = LOCAL_READ,
                   .get = LOCAL_READ,
                   .put = LOCAL_PUT,
                   .conditional_won = LOCAL_PUT,
                   .conditional_lost = LOCAL_READ,
                   .remove = LOCAL_PUT,
                   .get_s_per_mib = 0.0018,
                   .put_s_per_mib = 0.0125,
                   .read_effect_share = 0.5,
                   .put_effect_share = 0.9,
                   .conditional_effect_share = 0.9,
                   .server_slots = 2,
                   .slot_fixed_s = 0.0026,
                   .limit_burst_s = 1.0,
                   .throttle_reply_s = 0.001},
    },
};

const ls_store_preset *ls_store_presets(uint32_t *count)
{
    *count = sizeof presets / sizeof presets[0];
    return presets;
}
