/* kafka.h - the baseline that carries batches through Kafka: the world "kafka".
 *
 * Brokers are three FIFO servers each (link in, link out, disk); producers have a link out, nodes of ranks a link in. A transfer is
 * served by both of its links and has ended when both have served it. Since each server's work is known on arrival, a customer leaves
 * at max(now, free) + work (Lindley), which is exact, and the event queue holds only what changes state. A disk takes appends into the
 * page cache and delays them only when more than page_cache_bytes are not yet written; 0 makes every append wait for the disk.
 *
 * Replication: each follower has one fetch in flight to each leader (num.replica.fetchers = 1), of at most
 * replica.fetch.response.max.bytes; a first record batch beyond the limits is returned all the same (KIP-74). The high watermark moves
 * when the follower's next fetch tells of the last one. With acks=all a record batch is acknowledged when it lies below it.
 * Producers collect records for a partition until batch.size or linger.ms, have max.in.flight requests to a broker (one record batch a
 * request), wait for buffer.memory at most max.block.ms, and send again until delivery.timeout.ms; idempotence makes that harmless.
 * A broker that fails is replaced from the in-sync replicas after session_s.
 *
 * A global batch is published (visible whole) by one of three disciplines: `whole`: one record carries it; `transaction`: a record a
 * rank, a transaction over their partitions (KIP-98: prepare in the transaction log, then a marker in each partition; a producer has
 * one open transaction); `index`: a record a rank, then one record in an index topic once all are acknowledged.
 * Ranks read what is published from the leaders: their own record, or the whole one. Reads come from the page cache.
 *
 * No-load delay of one record of B bytes, acks=all, RF replicas, links n, disk d (page_cache_bytes 0):
 *   linger + B/n + B/d + (RF-1) B/n + B/d + 2 trips of rtt    (the leader's link out carries each follower's copy in turn)
 * field notes F.1 count one copy. Capacity: brokers n / RF in, brokers n / (RF-1 + readers' copies) out, brokers d / RF on disk.
 */
#ifndef LS_KAFKA_H
#define LS_KAFKA_H

#include "sim/scenario.h"

#define LS_KAFKA_RECORD_OVERHEAD 70u /* record batch header 61 bytes, a record's own fields (Kafka protocol guide, message format v2) */
#define LS_KAFKA_MARKER_BYTES    78u /* a control batch */
#define LS_KAFKA_INDEX_BYTES     200u /* assumption: step, and partition and offset ranges in a compact form */

/* Simulates scenario->kafka; metrics that do not apply are NaN. LS_ERROR_INVALID with reason, LS_ERROR_MEMORY. */
ls_result ls_simulate_kafka(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                            ls_error *error);

#endif
