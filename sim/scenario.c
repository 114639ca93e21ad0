/* scenario.c - the option table of a scenario: every key a spec may set, with type, default, range and meaning.
 *
 * Defaults describe the paper's question at moderate size: 64 producers, one 8 MiB batch a second each, a young manifest,
 * S3 Standard. A store preset replaces the store.* defaults before a spec's own store keys are laid on top.
 */
#include "sim/scenario.h"
#include "sim/prices.h"


#define REAL(path_, field, default_, min_, max_, meaning_) \
    {.path = path_, .type = LS_OPTION_REAL, .offset = offsetof(ls_scenario, field), .default_number = default_, \
     .minimum = min_, .maximum = max_, .meaning = meaning_}
#define INTEGER(path_, field, default_, min_, max_, meaning_) \
    {.path = path_, .type = LS_OPTION_INTEGER, .offset = offsetof(ls_scenario, field), .default_number = default_, \
     .minimum = min_, .maximum = max_, .meaning = meaning_}
#define FLAG(path_, field, default_, meaning_) \
    {.path = path_, .type = LS_OPTION_FLAG, .offset = offsetof(ls_scenario, field), .default_number = default_, \
     .minimum = 0, .maximum = 1, .meaning = meaning_}
#define CHOICE(path_, field, default_, choices_, meaning_) \
    {.path = path_, .type = LS_OPTION_CHOICE, .offset = offsetof(ls_scenario, field), .default_number = default_, \
     .choices = choices_, .meaning = meaning_}
#define TEXT(path_, field, default_, meaning_) \
    {.path = path_, .type = LS_OPTION_TEXT, .offset = offsetof(ls_scenario, field), .default_text = default_, .meaning = meaning_}

/* The rows of one latency law. */
#define LAW(path_, field, what_) LAW_OF(path_, field, 0, what_)
#define LAW_OF(path_, field, scale_, what_) \
    CHOICE(path_ ".law", field.law, 0, LS_LAW_CHOICES, "distribution of " what_), \
    REAL(path_ ".floor_s", field.floor_s, 0, 0, 1e6, "added to every draw of " what_), \
    REAL(path_ ".scale_s", field.scale_s, scale_, 0, 1e6, "constant value, mean or median of " what_ " above the floor (sim/law.h)"), \
    REAL(path_ ".shape", field.shape, 0, 0, 1e3, "sigma, gamma shape or standard deviation in seconds of " what_ " (sim/law.h)"), \
    REAL(path_ ".tail_share", field.tail_share, 0, 0, 1, "share of draws that come from a Pareto tail instead"), \
    REAL(path_ ".tail_scale_s", field.tail_scale_s, 0, 0, 1e6, "least value of that tail"), \
    REAL(path_ ".tail_shape", field.tail_shape, 2, 0.1, 100, "exponent of that tail"), \
    INTEGER(path_ ".draws", field.draws, 1, 1, 64, "the latency is the sum of so many independent draws"), \
    TEXT(path_ ".file", field.file, "", "empirical law: file with one quantile in seconds a line, ascending")

static const ls_option options[] = {
    CHOICE("world", world, 0, "commit queue read colocated kafka", "what is simulated: producers that commit, one queueing station (theory), ranks that read a finished lake, a trainer with loaders beside it (sim/colocated.h), or producers that send to Kafka (sim/kafka.h)"),
    REAL("duration_s", duration_s, 300, 1e-3, 1e7, "measured time after the warm-up"),
    REAL("warm_up_s", warm_up_s, 30, -1, 1e7, "time before measuring begins; -1: found by MSER-5 on the published batches of a pilot run"),
    REAL("series_step_s", series_step_s, 0, 0, 1e6, "spacing of the time series of published batches; 0: duration_s / 200"),
    INTEGER("producers.count", producers.count, 64, 1, 10000000, "producers that share the manifest"),
    FLAG("producers.established", producers.established, 1, "they have rows in the manifest already; otherwise each joins by a commit of its own"),
    REAL("producers.start_spread_s", producers.start_spread_s, 1, 0, 1e6, "producers start at uniform times within this"),
    CHOICE("batches.law", batches.law, 0, "poisson regular closed once open preprocessed", "when batches become ready (sim/scenario.h)"),
    REAL("batches.rate_per_s", batches.rate_per_s, 1, 1e-9, 1e9, "batches a second and producer; law open: attempts a second of all together"),
    REAL("batches.rate_spread", batches.rate_spread, 1, 1, 1e6, "law poisson: the fastest producer's rate over the slowest's, spread geometrically; the mean rate stays"),
    INTEGER("batches.burst_batches", batches.burst_batches, 1, 1, 1e6, "law poisson: batches come so many at once; the rate stays"),
    INTEGER("batches.bytes", batches.bytes, 8388608, 1, 1099511627776.0, "size of a batch (the whole TGB object), mean"),
    REAL("batches.bytes_sigma", batches.bytes_sigma, 0, 0, 5, "lognormal sigma of the size; 0: all equal"),
    INTEGER("batches.data_parallel", batches.data_parallel, 8, 1, 65535, "slices of a batch along the data-parallel ranks"),
    INTEGER("batches.context_parallel", batches.context_parallel, 1, 1, 65535, "slices along the context-parallel ranks"),
    INTEGER("upload.concurrency", upload.concurrency, 4, 1, 1000, "uploads in flight, a producer"),
    INTEGER("upload.backlog_batches", upload.backlog_batches, 64, 1, 1000000, "batches made and not yet published at which a producer pauses"),
    FLAG("upload.synchronous", upload.synchronous, 0, "production pauses while a commit is under way"),
    FLAG("upload.instantaneous", upload.instantaneous, 0, "uploads take no time and no request (theory)"),
    INTEGER("manifest.initial_entries", manifest.initial_entries, 0, 0, 4000000000.0, "entries in the manifest before the run"),
    CHOICE("manifest.layout", manifest.layout, 0, LS_LAYOUT_CHOICES, "how manifests are stored and read (manifest/protocol.h)"),
    CHOICE("manifest.discovery", manifest.discovery, 0, LS_DISCOVERY_CHOICES, "how the newest version is found (manifest/protocol.h)"),
    FLAG("protocol.help", protocol.help, 0, "who commits also publishes what others have uploaded (manifest/PROTOCOL.md)"),
    INTEGER("protocol.help_limit", protocol.help_limit, 8, 1, 1000000, "with protocol.help: producers listed in each attempt, in turn"),
    REAL("queue.arrival_rate_per_s", queue.arrival_rate_per_s, 1, 1e-9, 1e9, "world queue: Poisson arrivals"),
    INTEGER("queue.servers", queue.servers, 1, 1, 100000, "world queue: servers of the station"),
    LAW("queue.service", queue.service, "the service time"),
    INTEGER("queue.customers", queue.customers, 100000, 1, 1e12, "world queue: customers measured, after a tenth of them as warm-up"),
    INTEGER("read.steps", read.steps, 16, 1, 1000000, "world read: batches in the lake, each read by every rank"),
    INTEGER("read.window", read.window, 4, 1, 16, "world read: steps that a rank reads ahead"),
    FLAG("read.whole_objects", read.whole_objects, 0, "world read: ranks read whole batches instead of footer and own slice"),
    REAL("faults.crash_rate_per_s", faults.crash_rate_per_s, 0, 0, 1e3, "crashes a second of each producer, at random moments"),
    REAL("faults.crash_at_s", faults.crash_at_s, 0, 0, 1e7, "time of the run at which some producers crash once; 0: never"),
    INTEGER("faults.crash_at_count", faults.crash_at_count, 1, 0, 10000000, "how many: the first of them"),
    CHOICE("faults.crash_point", faults.crash_point, 0, LS_CRASH_POINT_CHOICES, "point of the protocol at which producers crash (sim/faults.h)"),
    REAL("faults.crash_share", faults.crash_share, 0, 0, 1, "share of the passages of that point that end in a crash"),
    REAL("faults.restart_s", faults.restart_s, 5, 0, 1e6, "from a crash to the start of the next incarnation"),
    REAL("faults.pause_rate_per_s", faults.pause_rate_per_s, 0, 0, 1e3, "pauses a second of each producer, at random moments"),
    REAL("faults.pause_at_s", faults.pause_at_s, 0, 0, 1e7, "time of the run at which some producers pause once; 0: never"),
    INTEGER("faults.pause_at_count", faults.pause_at_count, 1, 0, 10000000, "how many: the first of them"),
    REAL("faults.pause_s", faults.pause_s, 0, 0, 1e6, "how long a paused producer handles nothing"),
    REAL("faults.takeover_s", faults.takeover_s, 0, 0, 1e6, "into a pause, when another incarnation is started in its place; 0: never"),
    REAL("faults.timeout_s", faults.timeout_s, 5, 1e-3, 1e6, "when a request that is not answered counts as of unknown outcome"),
    REAL("faults.refusal_s", faults.refusal_s, 0.02, 1e-6, 1e3, "how soon the refusals of this table come back"),
    REAL("faults.window_start_s", faults.window_start_s, 0, 0, 1e7, "time of the run from which the four shares below hold"),
    REAL("faults.window_length_s", faults.window_length_s, 0, 0, 1e6, "for how long; 0: always"),
    REAL("faults.lost_reply_share", faults.lost_reply_share, 0, 0, 1, "requests that are carried out and whose reply is lost"),
    REAL("faults.error_before_share", faults.error_before_share, 0, 0, 1, "requests that are lost on their way: no effect, outcome unknown"),
    REAL("faults.linger_share", faults.linger_share, 0, 0, 1, "puts that reach the store only after their client has given them up"),
    REAL("faults.linger_s", faults.linger_s, 5, 0, 1e6, "how long after that"),
    REAL("faults.conflict_share", faults.conflict_share, 0, 0, 1, "put-if-absent requests that are answered 409 without effect"),
    REAL("faults.throttle_storm_start_s", faults.throttle_storm_start_s, 0, 0, 1e7, "time of the run from which all requests are throttled"),
    REAL("faults.throttle_storm_length_s", faults.throttle_storm_length_s, 0, 0, 1e6, "for how long; 0: never"),
    REAL("faults.slow_start_s", faults.slow_start_s, 0, 0, 1e7, "time of the run from which the store is slow (brown-out)"),
    REAL("faults.slow_length_s", faults.slow_length_s, 0, 0, 1e6, "for how long; 0: never"),
    REAL("faults.slow_factor", faults.slow_factor, 10, 1, 1e4, "how many times as long requests take then"),
    INTEGER("faults.cut_client", faults.cut_client, 0, 0, 10000000, "number of the producer that is cut off the store"),
    REAL("faults.cut_start_s", faults.cut_start_s, 0, 0, 1e7, "time of the run from which it is"),
    REAL("faults.cut_length_s", faults.cut_length_s, 0, 0, 1e6, "for how long; 0: never"),
    REAL("faults.trainer_crash_at_s", faults.trainer_crash_at_s, 0, 0, 1e7, "time of the run at which the training job crashes; 0: never"),
    REAL("faults.trainer_crash_rate_per_s", faults.trainer_crash_rate_per_s, 0, 0, 1e3, "crashes of the training job a second, at random moments"),
    REAL("faults.consumer_crash_rate_per_s", faults.consumer_crash_rate_per_s, 0, 0, 1e3, "crashes a second of each rank's reader"),
    REAL("faults.consumer_restart_s", faults.consumer_restart_s, 5, 0, 1e6, "from such a crash to the reader's return"),
    REAL("faults.reclaimer_crash_rate_per_s", faults.reclaimer_crash_rate_per_s, 0, 0, 1e3, "crashes a second of each reclaimer"),
    FLAG("trainer.present", trainer.present, 0, "a training job reads what is published (sim/trainer.h)"),
    INTEGER("trainer.ranks_per_node", trainer.ranks_per_node, 8, 1, 65535, "ranks (GPUs) of a node, which share its link"),
    REAL("trainer.node_bandwidth_bytes_per_s", trainer.node_bandwidth_bytes_per_s, 12.5e9, 0, 1e13, "a node's link to the store (100 Gbit/s); 0: unlimited"),
    INTEGER("trainer.prefetch_steps", trainer.prefetch_steps, 2, 0, 15, "steps that a rank reads ahead of the one it waits for or computes"),
    REAL("trainer.poll_s", trainer.poll_s, 0.25, 1e-3, 1e4, "pause between two looks for new steps when all known ones are fetched"),
    LAW_OF("trainer.compute", trainer.compute, 0.15, "a rank's computing in a step"),
    REAL("trainer.sync_s", trainer.sync_s, 0, 0, 1e4, "from the end of the last rank's computing to the next step (all-reduce, optimiser)"),
    INTEGER("trainer.lead_batches", trainer.lead_batches, 0, 0, 1e9, "producers pause when so many batches are made and not consumed; 0: never"),
    INTEGER("trainer.checkpoint_steps", trainer.checkpoint_steps, 0, 0, 1e9, "steps between two checkpoints; 0: none"),
    REAL("trainer.checkpoint_s", trainer.checkpoint_s, 0, 0, 1e6, "how long training pauses for a checkpoint"),
    INTEGER("trainer.named_every", trainer.named_every, 0, 0, 1e9, "every so many-th checkpoint is named and never retired; 0: none"),
    REAL("trainer.restart_s", trainer.restart_s, 60, 0, 1e6, "from a crash of the job until it goes back to a checkpoint"),
    INTEGER("trainer.rollback_checkpoints", trainer.rollback_checkpoints, 0, 0, 1e6, "so many checkpoints before the newest it goes back to, as far as they are kept"),
    CHOICE("preprocessing.workload", preprocessing.workload, 0, "custom gr00t holoassist behavior-1k", "whose sample costs: the numbers below, or a named workload's in their place (sim/preprocessing.c)"),
    INTEGER("preprocessing.samples_per_rank", preprocessing.samples_per_rank, 16, 1, 1e6, "samples that a data rank takes in a step"),
    INTEGER("preprocessing.sample_bytes", preprocessing.sample_bytes, 1048576, 1, 1e12, "size of a prepared sample"),
    REAL("preprocessing.expansion", preprocessing.expansion, 50, 1e-3, 1e6, "prepared bytes for each stored byte"),
    LAW_OF("preprocessing.decode", preprocessing.decode, 0.1, "a sample's decoding, in seconds of a core"),
    REAL("preprocessing.decode_factor", preprocessing.decode_factor, 1, 0, 1e6, "times that cost (for sweeps over a named workload)"),
    REAL("preprocessing.transform_s", preprocessing.transform_s, 0.01, 0, 1e6, "a sample's transformation, in seconds of a core"),
    INTEGER("preprocessing.cores_per_producer", preprocessing.cores_per_producer, 32, 1, 1e6, "cores of a producer (batches.law preprocessed)"),
    REAL("colocated.cores_per_rank", colocated.cores_per_rank, 12, 0.01, 1e4, "cores of a node for each of its ranks"),
    REAL("colocated.trainer_cores_per_rank", colocated.trainer_cores_per_rank, 1, 0, 1e4, "of those, what the trainer itself keeps busy"),
    INTEGER("colocated.workers_per_rank", colocated.workers_per_rank, 11, 0, 1e4, "loader workers of a rank; 0: the trainer loads by itself"),
    INTEGER("colocated.prefetch_batches", colocated.prefetch_batches, 2, 1, 1e4, "batches begun and not taken, a worker"),
    REAL("colocated.memory_bytes_per_node", colocated.memory_bytes_per_node, 0, 0, 1e15, "memory of a node for those batches; 0: enough"),
    REAL("colocated.read_s", colocated.read_s, 0, 0, 1e3, "how long a worker waits for each stored sample"),
    REAL("faults.worker_crash_rate_per_s", faults.worker_crash_rate_per_s, 0, 0, 1e3, "crashes a second of each colocated worker, which stop its job"),
    INTEGER("reclaim.count", reclaim.count, 0, 0, 1000, "reclaimers at work (sim/reclaimers.h)"),
    REAL("reclaim.every_s", reclaim.every_s, 60, 1e-3, 1e7, "pause between two rounds of a reclaimer"),
    INTEGER("reclaim.keep_last", reclaim.keep_last, 1, 1, 1e6, "checkpoints kept: the newest so many"),
    INTEGER("reclaim.keep_every", reclaim.keep_every, 0, 0, 1e6, "and every so many-th; 0: no such rule"),
    REAL("reclaim.grace_s", reclaim.grace_s, 600, 0, 1e7, "orphans younger than this stay"),
    INTEGER("reclaim.keep_versions", reclaim.keep_versions, 16, 1, 1e6, "newest manifest versions that stay"),
    INTEGER("reclaim.delete_concurrency", reclaim.delete_concurrency, 8, 1, 16, "deletes in flight of a reclaimer"),
    REAL("reclaim.clock_skew_s", reclaim.clock_skew_s, 0, -1e7, 1e7, "added to the ages of objects that reclaimers are told"),
    INTEGER("kafka.brokers", kafka.brokers, 3, 1, 32, "brokers (assumption: as few as replication allows, as in LinkedIn's and Confluent's published tests)"),
    INTEGER("kafka.partitions", kafka.partitions, 64, 1, 4096, "partitions of the topic (assumption)"),
    INTEGER("kafka.replication_factor", kafka.replication_factor, 3, 1, 32, "replicas of a partition (assumption: usual practice; the broker's default.replication.factor is 1)"),
    INTEGER("kafka.min_insync_replicas", kafka.min_insync_replicas, 2, 1, 32, "min.insync.replicas (the documentation's advice for factor 3 with acks=all; default 1)"),
    CHOICE("kafka.acks", kafka.acks, 0, "all leader", "acks (producer default: all)"),
    CHOICE("kafka.discipline", kafka.discipline, 0, "whole transaction index", "how a global batch becomes visible at once (sim/kafka.h)"),
    REAL("kafka.network_bytes_per_s", kafka.network_bytes_per_s, 1.25e9, 1, 1e13, "a broker's link, each way (assumption: 10 Gbit/s)"),
    REAL("kafka.disk_bytes_per_s", kafka.disk_bytes_per_s, 1e9, 1, 1e13, "a broker's disk (assumption: one NVMe drive's sustained writes)"),
    INTEGER("kafka.page_cache_bytes", kafka.page_cache_bytes, 4294967296.0, 0, 1e15, "bytes not yet on disk beyond which appends wait (assumption; log.flush.interval.messages defaults to never); 0: every append waits"),
    REAL("kafka.producer_bytes_per_s", kafka.producer_bytes_per_s, 1.25e9, 1, 1e13, "a producer's link (assumption: 10 Gbit/s)"),
    REAL("kafka.rtt_s", kafka.rtt_s, 5e-4, 0, 10, "network round trip (assumption: one region)"),
    REAL("kafka.linger_s", kafka.linger_s, 0.005, 0, 1e3, "linger.ms (default 5 from Kafka 4.0, 0 before)"),
    INTEGER("kafka.batch_size_bytes", kafka.batch_size_bytes, 16384, 1, 2147483647.0, "batch.size (default 16384)"),
    INTEGER("kafka.max_in_flight", kafka.max_in_flight, 5, 1, 1000, "max.in.flight.requests.per.connection (default 5)"),
    INTEGER("kafka.max_request_bytes", kafka.max_request_bytes, 1048576, 1, 2147483647.0, "max.request.size of the producer (default 1048576)"),
    INTEGER("kafka.message_max_bytes", kafka.message_max_bytes, 1048588, 1, 2147483647.0, "message.max.bytes of the broker (default 1048588)"),
    INTEGER("kafka.buffer_memory_bytes", kafka.buffer_memory_bytes, 33554432, 1, 1e15, "buffer.memory of a producer (default 33554432)"),
    REAL("kafka.max_block_s", kafka.max_block_s, 60, 0, 1e6, "max.block.ms (default 60000)"),
    REAL("kafka.delivery_timeout_s", kafka.delivery_timeout_s, 120, 1e-3, 1e6, "delivery.timeout.ms (default 120000)"),
    REAL("kafka.retry_backoff_s", kafka.retry_backoff_s, 0.1, 1e-4, 1e3, "retry.backoff.ms (default 100), not growing here"),
    INTEGER("kafka.replica_fetch_bytes", kafka.replica_fetch_bytes, 1048576, 1, 2147483647.0, "replica.fetch.max.bytes (default 1048576)"),
    INTEGER("kafka.replica_response_bytes", kafka.replica_response_bytes, 10485760, 1, 2147483647.0, "replica.fetch.response.max.bytes (default 10485760)"),
    REAL("kafka.replica_lag_s", kafka.replica_lag_s, 30, 1e-3, 1e6, "replica.lag.time.max.ms (default 30000)"),
    REAL("kafka.session_s", kafka.session_s, 9, 1e-3, 1e6, "from a broker's failure to new leaders: broker.session.timeout.ms (default 9000)"),
    FLAG("kafka.consumers", kafka.consumers, 0, "batches.data_parallel times context_parallel ranks read what is published"),
    INTEGER("kafka.fetch_min_bytes", kafka.fetch_min_bytes, 1, 1, 2147483647.0, "fetch.min.bytes of the ranks (default 1)"),
    REAL("kafka.fetch_max_wait_s", kafka.fetch_max_wait_s, 0.5, 0, 1e3, "fetch.max.wait.ms (default 500): what a rank waits for more when less than fetch.min.bytes is there"),
    REAL("kafka.slow_factor", kafka.slow_factor, 1, 1, 1e9, "how many times slower the last broker's links and disk are"),
    REAL("kafka.fail_at_s", kafka.fail_at_s, 0, 0, 1e7, "time of the run at which broker 0 fails; 0: never"),
    REAL("kafka.fail_length_s", kafka.fail_length_s, 60, 1e-3, 1e7, "for how long"),
    REAL("drain_s", drain_s, 0, 0, 1e7, "after the measured time production and faults stop; what is not published within this fails the run; 0: off"),
    FLAG("check_everything", check_everything, 0, "invariants on every entry and row of every version, not only on what is new"),
    CHOICE("prices", prices, 0, LS_PRICE_CHOICES, "whose price table the requests are billed at; by-store: that of the store preset, if it has one"),
    TEXT("store.preset", store_preset, "s3-standard", "named store whose numbers come first (`lakestream presets`)"),
    LAW("store.list", store.list, "a list request"),
    LAW("store.head", store.head, "a head request"),
    LAW("store.get", store.get, "a get request, before its bytes"),
    LAW("store.put", store.put, "a put of data, before its bytes"),
    LAW("store.conditional_won", store.conditional_won, "a put-if-absent that creates its object"),
    LAW("store.conditional_lost", store.conditional_lost, "a put-if-absent that finds the name taken"),
    LAW("store.remove", store.remove, "a delete request"),
    REAL("store.get_s_per_mib", store.get_s_per_mib, 0, 0, 1e3, "a single read stream's time per 2^20 bytes"),
    REAL("store.put_s_per_mib", store.put_s_per_mib, 0, 0, 1e3, "a single write stream's time per 2^20 bytes"),
    REAL("store.read_effect_share", store.read_effect_share, 0.5, 0, 1, "where in its latency a read looks at the store"),
    REAL("store.put_effect_share", store.put_effect_share, 1, 0, 1, "where in its latency a put or delete takes effect"),
    REAL("store.conditional_effect_share", store.conditional_effect_share, 1, 0, 1, "the same for put-if-absent: the one instant of check and write"),
    REAL("store.contention_s_per_doubling", store.contention_s_per_doubling, 0, 0, 100,
         "added to a put-if-absent's reply, times log2 of those in flight on its prefix"),
    REAL("store.client_bandwidth_bytes_per_s", store.client_bandwidth_bytes_per_s, 0, 0, 1e13, "link of each client, shared by its transfers; 0: unlimited"),
    REAL("store.server_bandwidth_bytes_per_s", store.server_bandwidth_bytes_per_s, 0, 0, 1e15, "link of the store, shared by all; 0: unlimited"),
    INTEGER("store.server_slots", store.server_slots, 0, 0, 1000000, "requests served at once, others wait in line; 0: no limit"),
    REAL("store.slot_fixed_s", store.slot_fixed_s, 0, 0, 1e3, "how long a request holds its slot"),
    REAL("store.slot_s_per_mib", store.slot_s_per_mib, 0, 0, 1e3, "and per 2^20 bytes moved"),
    REAL("store.parallelism", store.parallelism, 0, 0, 1e6,
         "requests that are worked on at once at full speed; more take longer in proportion (sim/store_config.h); 0: no limit"),
    REAL("store.rest_after_s", store.rest_after_s, 0, 0, 1e6, "a store that was empty for so long has gone to rest; 0: it never does"),
    REAL("store.rest_s", store.rest_s, 0, 0, 1e6, "how much longer the request takes that wakes a store at rest"),
    FLAG("store.losers_wait", store.losers_wait, false, "who loses against a put-if-absent that is not answered yet is answered after it"),
    REAL("store.parallelism_exponent", store.parallelism_exponent, 1, 0, 1, "how the work done at once grows with n requests: n^this, up to parallelism"),
    REAL("store.write_limit_per_s", store.write_limit_per_s, 0, 0, 1e9, "puts and deletes a second and prefix beyond which requests are throttled; 0: none"),
    REAL("store.read_limit_per_s", store.read_limit_per_s, 0, 0, 1e9, "gets, heads and lists a second and prefix; 0: none"),
    REAL("store.key_write_limit_per_s", store.key_write_limit_per_s, 0, 0, 1e9, "puts of one and the same name a second, lost ones included; 0: none"),
    REAL("store.limit_burst_s", store.limit_burst_s, 1, 0, 1e6, "depth of those limits' buckets in seconds of their rate"),
    REAL("store.throttle_reply_s", store.throttle_reply_s, 0.01, 0, 1e3, "how soon a throttled reply comes back"),
};

const ls_option *ls_scenario_options(uint32_t *count)
{
    *count = sizeof options / sizeof options[0];
    return options;
}
