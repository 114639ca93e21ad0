/* faults.c - when faults strike (see faults.h). A request owns four consecutive places of its producer's stream, one for each
 * kind of fault that is drawn, so the shares of one kind leave the draws of the others where they are. */
#include "sim/faults.h"

#define PLACES_A_REQUEST 4u

ls_result ls_faults_check(const ls_fault_config *c, ls_error *error)
{
    if (c->crash_share > 0 && c->crash_point == LS_CRASH_NONE) {
        return ls_fail(error, LS_ERROR_INVALID, "faults.crash_share is set, but faults.crash_point names no point");
    }
    bool pauses = c->pause_rate_per_s > 0 || c->pause_at_s > 0;
    if (pauses && c->pause_s <= 0) {
        return ls_fail(error, LS_ERROR_INVALID, "producers are to be paused (faults.pause_rate_per_s, pause_at_s), but "
                       "faults.pause_s is 0; say for how long");
    }
    return LS_OK;
}

bool ls_faults_replace(const ls_fault_config *c)
{
    bool crashes = c->crash_rate_per_s > 0 || c->crash_at_s > 0 || (c->crash_point != LS_CRASH_NONE && c->crash_share > 0);
    bool pauses = c->pause_rate_per_s > 0 || c->pause_at_s > 0;
    return crashes || (pauses && c->takeover_s > 0);
}

bool ls_faults_any(const ls_fault_config *c)
{
    bool pauses = c->pause_rate_per_s > 0 || c->pause_at_s > 0;
    bool drawn = c->lost_reply_share > 0 || c->error_before_share > 0 || c->linger_share > 0 || c->conflict_share > 0;
    return ls_faults_replace(c) || pauses || drawn || c->throttle_storm_length_s > 0 || c->slow_length_s > 0 || c->cut_length_s > 0;
}

ls_random ls_faults_stream(uint64_t seed, uint64_t replication, ls_fault_stream kind, uint32_t producer, uint64_t place)
{
    ls_random stream = ls_random_open(seed, replication, LS_RANDOM_FAULT, (uint64_t)kind << 40 | producer);
    stream.index = place;
    return stream;
}

static bool within(int64_t now_ns, double start_s, double length_s)
{
    return length_s > 0 && now_ns >= ls_nanoseconds(start_s) && now_ns < ls_nanoseconds(start_s + length_s);
}

ls_fault ls_faults_strike(const ls_fault_config *c, uint64_t seed, uint64_t replication, int64_t now_ns, uint32_t producer,
                          uint64_t place, const ls_store_request *request)
{
    if (producer == c->cut_client && within(now_ns, c->cut_start_s, c->cut_length_s)) return LS_FAULT_CUT;
    if (within(now_ns, c->throttle_storm_start_s, c->throttle_storm_length_s)) return LS_FAULT_STORM;
    bool drawn = c->error_before_share > 0 || c->lost_reply_share > 0 || c->linger_share > 0 || c->conflict_share > 0;
    if (!drawn || (c->window_length_s > 0 && !within(now_ns, c->window_start_s, c->window_length_s))) return LS_FAULT_NONE;
    ls_random stream = ls_faults_stream(seed, replication, LS_FAULT_REQUESTS, producer, PLACES_A_REQUEST * place);
    bool put = request->operation == LS_PUT;
    if (ls_random_uniform(&stream) < c->error_before_share) return LS_FAULT_ERROR_BEFORE;
    if (ls_random_uniform(&stream) < c->lost_reply_share) return LS_FAULT_LOST_REPLY;
    if (ls_random_uniform(&stream) < c->linger_share && put) return LS_FAULT_LINGER;
    if (ls_random_uniform(&stream) < c->conflict_share && put && request->if_absent) return LS_FAULT_CONFLICT;
    return LS_FAULT_NONE;
}

double ls_faults_slowness(const ls_fault_config *c, int64_t now_ns)
{
    return within(now_ns, c->slow_start_s, c->slow_length_s) ? c->slow_factor : 1.0;
}
