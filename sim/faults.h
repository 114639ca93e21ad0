/* faults.h - what goes wrong in a run, as a scenario asks for it, and when it strikes.
 *
 * Two sorts. Faults of requests lie between the producers and the store (sim/simulate.c carries them out): a reply that is
 * lost, an error before or after the effect, a put that lingers in the network, a 409 under race, a storm of throttling, a
 * brown-out, a client that is cut off. Faults of producers are the world's (sim/world.c): a crash at a random moment or at a
 * named point of the protocol, and a pause longer than anybody's patience, which makes a zombie of the machine.
 *
 * Every draw comes from a counter-based stream of one producer and one kind of fault (LS_RANDOM_FAULT), so switching one
 * fault on moves no draw of another, and a policy meets the same faults at the same requests (common random numbers).
 * Everything is off by default. No fault strikes at or after the end of the measured time.
 */
#ifndef LS_FAULTS_H
#define LS_FAULTS_H

#include "manifest/exchange.h"
#include "manifest/random.h"

typedef enum ls_crash_point {
    LS_CRASH_NONE = 0,
    LS_CRASH_AFTER_UPLOAD,     /* the store has answered an upload; the answer is not heard any more */
    LS_CRASH_BEFORE_PUT,       /* the next version is made, its put not sent */
    LS_CRASH_AFTER_PUT_SENT,   /* sent; what becomes of it nobody waits for */
    LS_CRASH_AFTER_PUT_EFFECT, /* the version exists, its reply is not heard (drivers that can see effects) */
    LS_CRASH_AFTER_READ        /* the newest version has been read, nothing was done about it */
} ls_crash_point;

#define LS_CRASH_POINT_CHOICES "none after-upload before-put after-put-sent after-put-effect after-read"

typedef struct ls_fault_config {
    double crash_rate_per_s; /* of each producer, at exponential intervals */
    double crash_at_s;       /* once, at this time of the run (0: never), the first crash_at_count producers */
    uint64_t crash_at_count;
    uint32_t crash_point;    /* ls_crash_point */
    double crash_share;      /* of the passages of that point */
    double restart_s;        /* from a crash to the start of the next incarnation */
    double pause_rate_per_s; /* of each producer, at exponential intervals */
    double pause_at_s;       /* once, at this time of the run (0: never), the first pause_at_count producers */
    uint64_t pause_at_count;
    double pause_s;          /* how long the machine handles nothing */
    double takeover_s;       /* after so much of a pause another incarnation starts; 0: nobody notices */
    double timeout_s;        /* when a client gives an answer up: replies of unknown outcome come after this */
    double refusal_s;        /* how soon conflicts, throttling and cut connections of this table are answered */
    double window_start_s, window_length_s; /* when the four kinds below are drawn; length 0: all the time */
    double lost_reply_share;   /* of all requests: carried out, the outcome unknown */
    double error_before_share; /* of all requests: not carried out, the outcome unknown */
    double linger_share;       /* of puts: outcome unknown, carried out linger_s after that */
    double linger_s;
    double conflict_share;     /* of put-if-absent: 409, not carried out */
    double throttle_storm_start_s, throttle_storm_length_s; /* all requests are refused for load */
    double slow_start_s, slow_length_s, slow_factor;        /* latencies are so many times as long (bandwidth stays) */
    uint64_t cut_client;                                    /* requests of this producer are unavailable */
    double cut_start_s, cut_length_s;
    double trainer_crash_at_s;         /* once (0: never): the whole job, which goes back to a checkpoint */
    double trainer_crash_rate_per_s;   /* of the whole job */
    double consumer_crash_rate_per_s;  /* of each rank's reader, at exponential intervals */
    double consumer_restart_s;
    double worker_crash_rate_per_s;    /* of each colocated loader worker: stops its whole job */
    double reclaimer_crash_rate_per_s; /* of each reclaimer; it starts again after restart_s */
} ls_fault_config;

/* The kinds of draws; part of the reproducibility contract: never renumber. */
typedef enum ls_fault_stream {
    LS_FAULT_REQUESTS = 0,
    LS_FAULT_CRASHES = 1,
    LS_FAULT_CRASH_POINTS = 2,
    LS_FAULT_PAUSES = 3
} ls_fault_stream;

typedef enum ls_fault {
    LS_FAULT_NONE = 0,
    LS_FAULT_CUT,          /* unavailable after refusal_s, no effect */
    LS_FAULT_STORM,        /* throttled after refusal_s, no effect */
    LS_FAULT_ERROR_BEFORE, /* unknown outcome after timeout_s, no effect */
    LS_FAULT_LOST_REPLY,   /* unknown outcome after timeout_s, carried out */
    LS_FAULT_LINGER,       /* unknown outcome after timeout_s, reaches the store linger_s later */
    LS_FAULT_CONFLICT      /* 409 after refusal_s, no effect */
} ls_fault;

/* LS_ERROR_INVALID with the reason when the settings contradict one another. */
ls_result ls_faults_check(const ls_fault_config *config, ls_error *error);

/* Can a producer be replaced by another incarnation (so that being fenced is legal)? */
bool ls_faults_replace(const ls_fault_config *config);

/* Is any fault asked for? */
bool ls_faults_any(const ls_fault_config *config);

/* The stream of one producer and kind of fault, at the draw with number `place`. */
ls_random ls_faults_stream(uint64_t seed, uint64_t replication, ls_fault_stream kind, uint32_t producer, uint64_t place);

/* What happens to the producer's request number `place` (from 0) that is sent at now_ns. */
ls_fault ls_faults_strike(const ls_fault_config *config, uint64_t seed, uint64_t replication, int64_t now_ns,
                          uint32_t producer, uint64_t place, const ls_store_request *request);

/* How many times as long as usual a latency of the store that begins at now_ns takes: 1, or slow_factor within a brown-out. */
double ls_faults_slowness(const ls_fault_config *config, int64_t now_ns);

#endif
