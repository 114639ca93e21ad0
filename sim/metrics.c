/* metrics.c - names, units and meanings of everything a run measures; reports, database and docs read this table. */
#include "sim/metrics.h"

#include "sim/scenario.h"

static const ls_metric metrics[LS_METRIC_COUNT] = {
    [LS_METRIC_MEASURED] = {"measured_s", "s", "time over which the run was measured, after the warm-up"},
    [LS_METRIC_PUBLISHED_RATE] = {"published_per_s", "1/s", "batches that became visible and were acknowledged, a second"},
    [LS_METRIC_PUBLISHED_SHARE] = {"published_share", "1", "published batches as a share of what producers offer"},
    [LS_METRIC_ATTEMPT_RATE] = {"attempts_per_s", "1/s", "commit attempts a second, of all producers together"},
    [LS_METRIC_WIN_RATE] = {"wins_per_s", "1/s", "attempts that created their version, a second"},
    [LS_METRIC_CONFLICT_SHARE] = {"conflict_share", "1", "lost attempts as a share of decided ones (won or lost)"},
    [LS_METRIC_BATCHES_PER_COMMIT] = {"batches_per_commit", "1", "batches that one winning commit carries, mean"},
    [LS_METRIC_DELAY_MEAN] = {"publish_delay_mean_s", "s", "from a batch being ready to its acknowledgement, mean"},
    [LS_METRIC_DELAY_P50] = {"publish_delay_p50_s", "s", "the same, median"},
    [LS_METRIC_DELAY_P90] = {"publish_delay_p90_s", "s", "the same, 90th percentile"},
    [LS_METRIC_DELAY_P99] = {"publish_delay_p99_s", "s", "the same, 99th percentile"},
    [LS_METRIC_DELAY_MAX] = {"publish_delay_max_s", "s", "the same, greatest"},
    [LS_METRIC_ATTEMPT_MEAN] = {"attempt_mean_s", "s", "duration of an attempt from its first read to its end, mean"},
    [LS_METRIC_WON_PUT_MEAN] = {"won_put_mean_s", "s", "duration of a conditional put that won, mean"},
    [LS_METRIC_WON_PUT_P50] = {"won_put_p50_s", "s", "the same, median"},
    [LS_METRIC_WON_PUT_P99] = {"won_put_p99_s", "s", "the same, 99th percentile"},
    [LS_METRIC_LOST_PUT_MEAN] = {"lost_put_mean_s", "s", "duration of a conditional put that lost, mean"},
    [LS_METRIC_LOST_PUT_P50] = {"lost_put_p50_s", "s", "the same, median"},
    [LS_METRIC_COMMIT_REQUEST_RATE] = {"commit_requests_per_s", "1/s", "requests for manifests (list, head, get, put), a second"},
    [LS_METRIC_COMMIT_REQUESTS_PER_BATCH] = {"commit_requests_per_batch", "1", "the same, for each published batch"},
    [LS_METRIC_COMMIT_PUTS] = {"commit_puts", "1", "conditional puts of manifests in the measured time"},
    [LS_METRIC_COMMIT_READS_PER_ATTEMPT] = {"commit_reads_per_attempt", "1", "list, head and get requests of an attempt, mean"},
    [LS_METRIC_MANIFEST_BYTES_PER_BATCH] = {"manifest_bytes_per_batch", "bytes",
                                            "manifest bytes read and written for each published batch"},
    [LS_METRIC_WASTED_BYTES_SHARE] = {"wasted_bytes_share", "1", "manifest bytes of puts that lost, of all written"},
    [LS_METRIC_MANIFEST_BYTES_END] = {"manifest_bytes_end", "bytes", "size of the newest manifest at the end"},
    [LS_METRIC_MANIFEST_ENTRIES_END] = {"manifest_entries_end", "1", "its entries"},
    [LS_METRIC_FAIRNESS] = {"fairness", "1", "Jain's index of the producers' published batches: 1 when all are equal"},
    [LS_METRIC_GAVE_UP_RATE] = {"gave_up_per_s", "1/s", "times a policy's retry budget was spent, a second"},
    [LS_METRIC_THROTTLED_SHARE] = {"throttled_share", "1", "attempts refused for load, of all attempts"},
    [LS_METRIC_AMBIGUOUS] = {"ambiguous_attempts", "1", "attempts whose outcome had to be settled by reading"},
    [LS_METRIC_LITTLE_GAP] = {"little_gap", "1", "closed loops: conflict share minus 1 - S R / N (Little's law); 0 but for edges"},
    [LS_METRIC_COMPLETION_MEAN] = {"completion_mean_s", "s", "arrivals 'once': when a producer's batch was acknowledged, mean"},
    [LS_METRIC_COMPLETION_LAST] = {"completion_last_s", "s", "arrivals 'once': when the last one was"},
    [LS_METRIC_QUEUE_WAIT_MEAN] = {"queue_wait_mean_s", "s", "world 'queue': time in line before service, mean"},
    [LS_METRIC_QUEUE_UTILISATION] = {"queue_utilisation", "1", "world 'queue': share of time that a server is busy"},
    [LS_METRIC_CRASHES] = {"crashes", "1", "producers that crashed, in the whole run"},
    [LS_METRIC_FENCED] = {"fenced", "1", "producers that found another incarnation in their row and stopped, in the whole run"},
    [LS_METRIC_RECOVERY_MEAN] = {"recovery_mean_s", "s", "from a crash until the next incarnation owns the row, mean"},
    [LS_METRIC_RECOVERED_BATCHES] = {"recovered_batches", "1",
                                     "batches that a restart found committed although their maker never heard so"},
    [LS_METRIC_DUPLICATES_REFUSED] = {"duplicates_refused", "1",
                                      "batches that a fenced producer had uploaded and could not commit"},
    [LS_METRIC_DRAIN] = {"drain_s", "s", "from the end of production until everything was published"},
    [LS_METRIC_COMMIT_DOLLARS] = {"commit_dollars_per_million", "dollars",
                                  "price of all requests but those for data, for a million published batches (simulator)"},
    [LS_METRIC_DATA_DOLLARS] = {"data_dollars_per_million", "dollars",
                                "price of the requests for data, for a million published batches (simulator)"},
    [LS_METRIC_STORED_BYTES] = {"stored_bytes_per_batch", "bytes",
                                "by how much the store grew for each published batch, manifest versions included (simulator)"},
    [LS_METRIC_HISTORY_BYTES] = {"history_bytes_per_batch", "bytes",
                                 "bytes of the manifest versions made for each published batch (simulator)"},
    [LS_METRIC_STORAGE_DOLLARS] = {"storage_dollars_per_million", "dollars",
                                   "price of holding for a month what a million published batches leave in the store (simulator)"},
    [LS_METRIC_DATA_BYTES_READ] = {"data_bytes_read", "bytes", "world 'read': bytes of data objects moved to all ranks"},
    [LS_METRIC_SLICE_BYTES_READ] = {"slice_bytes_read", "bytes", "world 'read': bytes of the slices that the ranks were handed"},
    [LS_METRIC_READ_AMPLIFICATION] = {"read_amplification", "1", "world 'read': bytes moved for each byte of a slice"},
    [LS_METRIC_REQUESTS_PER_SLICE] = {"requests_per_slice", "1", "world 'read': gets of data objects for each slice handed on"},
    [LS_METRIC_FETCH_MEAN] = {"fetch_mean_s", "s", "world 'read': from the first request for a step to its slice handed on, mean"},
    [LS_METRIC_STEPS_READ_RATE] = {"steps_read_per_s", "1/s", "world 'read': steps a second that all ranks together get through"},
};

_Static_assert(LS_METRIC_COUNT <= LS_METRICS_MAX, "raise LS_METRICS_MAX");

const ls_metric *ls_metrics(uint32_t *count)
{
    *count = LS_METRIC_COUNT;
    return metrics;
}
