/* scenario.h - everything that one run depends on, as one flat struct, and the option table that fills it.
 *
 * A spec (experiments/) resolves to scenarios, one a point of the sweep. The simulator and the real-time driver take the
 * same struct. Same scenario, seed and replication: same bytes out of the simulator.
 */
#ifndef LS_SCENARIO_H
#define LS_SCENARIO_H

#include "manifest/protocol.h"
#include "policies/policy.h"
#include "sim/faults.h"
#include "sim/option.h"
#include "sim/store_config.h"

typedef enum ls_world_kind { LS_WORLD_COMMIT = 0, LS_WORLD_QUEUE, LS_WORLD_READ, LS_WORLD_COLOCATED, LS_WORLD_KAFKA } ls_world_kind;

typedef enum ls_arrival_law {
    LS_ARRIVAL_POISSON = 0, /* each producer makes batches at exponential intervals */
    LS_ARRIVAL_REGULAR,     /* at fixed intervals with a random phase */
    LS_ARRIVAL_CLOSED,      /* the next batch is ready when the previous one is published: tight retriers */
    LS_ARRIVAL_ONCE,        /* one batch each, all at time 0; the run ends when all are published */
    LS_ARRIVAL_OPEN,        /* attempts arrive as one Poisson stream of rate_per_s, each tries once and is gone */
    LS_ARRIVAL_PREPROCESSED /* the next batch is ready when its samples are prepared (sim/preprocessing.h); its size follows from them */
} ls_arrival_law;

typedef struct ls_scenario {
    uint32_t world; /* ls_world_kind */
    double duration_s;  /* measured time, after the warm-up */
    double warm_up_s;   /* simulated, not measured; negative: found by MSER-5 from the time series */
    double series_step_s; /* spacing of the time series kept for warm-up detection; 0: duration / 200 */
    struct {
        uint64_t count;
        bool established; /* producers start with rows in the table; otherwise each joins by a commit of its own */
        double start_spread_s; /* producers start at uniform times in [0, this] */
    } producers;
    struct {
        uint32_t law;        /* ls_arrival_law */
        double rate_per_s;   /* a producer (open: of all together) */
        double rate_spread;  /* poisson: rate of the fastest producer over the slowest's, spread geometrically; the mean is kept */
        uint64_t burst_batches; /* poisson: batches come so many at once, as many a second as without */
        uint64_t bytes;      /* of a batch: its mean */
        double bytes_sigma;  /* lognormal sigma of a batch's size; 0: all equal */
        uint64_t data_parallel;
        uint64_t context_parallel;
    } batches;
    struct {
        uint64_t concurrency;     /* uploads in flight a producer */
        uint64_t backlog_batches; /* made but not published; production pauses at this number */
        bool synchronous;         /* production pauses while a commit attempt is under way */
        bool instantaneous;       /* uploads take no time and no request (theory) */
    } upload;
    struct {
        uint64_t initial_entries;
        uint32_t layout;    /* ls_layout */
        uint32_t discovery; /* ls_discovery */
    } manifest;
    struct {
        bool help;           /* producers publish what others have uploaded (PROTOCOL.md, section 11) */
        uint64_t help_limit; /* lists for it in each attempt */
    } protocol;
    struct { /* world "queue": one station, Poisson arrivals */
        double arrival_rate_per_s;
        uint64_t servers;
        ls_law service;
        uint64_t customers; /* measured */
    } queue;
    struct { /* world "read": ranks that read a finished lake */
        uint64_t steps;
        uint64_t window;
        bool whole_objects;
    } read;
    struct { /* the training job (sim/trainer.h): data_parallel x context_parallel ranks */
        bool present;
        uint64_t ranks_per_node;
        double node_bandwidth_bytes_per_s; /* link that the ranks of a node share; 0: unlimited */
        uint64_t prefetch_steps;           /* read ahead beyond the step asked for */
        double poll_s;                     /* between two looks for a newer manifest once all listed steps are fetched */
        ls_law compute;                    /* of one rank and step */
        double sync_s;                     /* from the last rank's compute to the next step */
        uint64_t lead_batches;             /* producers pause when so many batches are made and not consumed; 0: never */
        uint64_t checkpoint_steps;         /* a checkpoint every so many steps; 0: none */
        double checkpoint_s;               /* how long training pauses for one */
        uint64_t named_every;              /* every so many-th checkpoint is named and stays; 0: none */
        double restart_s;                  /* from a crash of the job to its return to a checkpoint */
        uint64_t rollback_checkpoints;     /* it goes back to the newest checkpoint (0) or so many further */
    } trainer;
    struct { /* what samples cost (sim/preprocessing.h) */
        uint32_t workload; /* 0: the numbers below; else a named one, whose numbers replace them */
        uint64_t samples_per_rank;
        uint64_t sample_bytes;
        double expansion;
        ls_law decode;
        double decode_factor; /* times the workload's decode cost */
        double transform_s;
        uint64_t cores_per_producer;
    } preprocessing;
    struct { /* loader workers beside the trainer (sim/colocated.h) */
        double cores_per_rank, trainer_cores_per_rank;
        uint64_t workers_per_rank;
        uint64_t prefetch_batches;
        double memory_bytes_per_node;
        double read_s;
    } colocated;
    struct { /* reclaimers (sim/reclaimers.h) */
        uint64_t count;
        double every_s;
        uint64_t keep_last, keep_every; /* retention rule (manifest/checkpoint.h) */
        double grace_s;
        uint64_t keep_versions;
        uint64_t delete_concurrency;
        double clock_skew_s;
    } reclaim;
    ls_fault_config faults;
    struct { /* world "kafka" (sim/kafka.h) */
        uint64_t brokers;
        uint64_t partitions;
        uint64_t replication_factor;
        uint64_t min_insync_replicas;
        uint32_t acks;       /* 0: all, 1: leader */
        uint32_t discipline; /* 0: whole, 1: transaction, 2: index */
        double network_bytes_per_s;
        double disk_bytes_per_s;
        uint64_t page_cache_bytes;
        double producer_bytes_per_s;
        double rtt_s;
        double linger_s;
        uint64_t batch_size_bytes;
        uint64_t max_in_flight;
        uint64_t max_request_bytes;
        uint64_t message_max_bytes;
        uint64_t buffer_memory_bytes;
        double max_block_s;
        double delivery_timeout_s;
        double retry_backoff_s;
        uint64_t replica_fetch_bytes;
        uint64_t replica_response_bytes;
        double replica_lag_s;
        double session_s;
        bool consumers;
        uint64_t fetch_min_bytes;
        double fetch_max_wait_s;
        double slow_factor;
        double fail_at_s;
        double fail_length_s;
    } kafka;
    double drain_s;        /* after the measured time production and faults stop, and everything must be published within this;
                              0: the run ends with the measured time */
    bool check_everything; /* invariants on every entry and row of every version, not on what is new alone */
    uint32_t prices; /* LS_PRICE_CHOICES (sim/prices.h): whose prices the requests are billed at */
    ls_store_config store;
    char store_preset[LS_OPTION_TEXT_BYTES];
    ls_policy_instance policy; /* filled from the spec's "policy" object, not from the option table */
    char policy_name[LS_OPTION_TEXT_BYTES]; /* as the spec named it (policy or preset) */
} ls_scenario;

const ls_option *ls_scenario_options(uint32_t *count);

/* One measured value of a run. */
typedef struct ls_metric {
    const char *name;    /* published_per_s, conflict_share, ... */
    const char *unit;
    const char *meaning; /* one sentence, no full stop */
} ls_metric;

#define LS_METRICS_MAX 128u

/* What a run measured: values[i] belongs to ls_metrics(...)[i]; NaN where it does not apply. */
typedef struct ls_run_result {
    double values[LS_METRICS_MAX];
    uint64_t events;         /* engine events, or loop iterations */
    double wall_s;           /* not part of any content hash */
} ls_run_result;

const ls_metric *ls_metrics(uint32_t *count);

/* Runs one replication in virtual time. */
ls_result ls_simulate(const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                      ls_error *error);

/* How a run went over time, in steps of step_s from time 0 on. */
typedef struct ls_timeline {
    const double *published;    /* batches published in each step */
    const double *steps;        /* training steps ended in each step */
    const double *stored_bytes; /* at the end of each step */
    uint32_t count;
    double step_s;
} ls_timeline;

/* What happens to the producers of a run. A client is one life of a producer, one machine. */
typedef enum ls_sight_kind {
    LS_SIGHT_STARTED = 1, /* a life begins; not told with batches.law open, where a client's machines live for one attempt each */
    LS_SIGHT_REQUEST,     /* it sends a request */
    LS_SIGHT_REPLY,       /* it hears a reply; what it makes of that follows */
    LS_SIGHT_ACTION,      /* it joined, published, was fenced, ended an attempt, or wishes to be woken */
    LS_SIGHT_CREATED,     /* a version that it put took effect in the store; it may be over by then, or paused */
    LS_SIGHT_PAUSED,
    LS_SIGHT_RESUMED,
    LS_SIGHT_CRASHED,
    LS_SIGHT_ENDED,       /* it is over: crashed, fenced, or (batches.law open) gone after its one attempt */
    LS_SIGHT_MEASURING,   /* of nobody: the measured time begins */
    LS_SIGHT_MEASURED     /* of nobody: it has ended */
} ls_sight_kind;

/* One such thing. What is pointed to is borrowed during the call, and NULL where the kind has no use for it. */
typedef struct ls_sight {
    ls_sight_kind kind;
    bool measured;    /* within the measured time: so the metrics count it */
    int64_t now_ns;
    uint32_t client;
    uint32_t producer; /* UINT32_MAX where the life is over */
    const struct ls_producer *machine; /* as it stands now; NULL where the life is over */
    const ls_store_request *request;
    const ls_store_reply *reply;
    const ls_action *action;
    const ls_manifest *created;
} ls_sight;

/* Who watches a run from outside; any function may be NULL. */
typedef struct ls_simulation_watcher {
    void *context;
    /* The time series at the end of the run: batches published in each step of step_s, from time 0 on. */
    void (*series)(void *context, const double *published, uint32_t count, double step_s);
    /* The same and more: what the trainer did and the store held. Borrowed during the call. */
    void (*timeline)(void *context, const ls_timeline *timeline);
    /* Each request before it is sent. It may be changed: so a test plants a defect that the checks must find. What the request
     * refers to stays the request's own (a manifest that is replaced must be released, the new one be a reference). */
    ls_result (*request)(void *context, uint32_t producer, ls_store_request *request);
    /* What producers do, in order of time, of the run that counts (not of a pilot run that looks for the end of the transient). */
    void (*sight)(void *context, const ls_sight *sight);
} ls_simulation_watcher;

/* The same, watched. */
ls_result ls_simulate_watched(const ls_scenario *scenario, uint64_t seed, uint64_t replication,
                              const ls_simulation_watcher *watcher, ls_run_result *result, ls_error *error);

#endif
