/* trace.h - one simulated run as a time line that can be looked at: who listed, read, put and waited when, and how it ended.
 *
 * Metrics say that a policy loses attempts; a trace shows how. It is kept as the producers' doings are told (sim/scenario.h,
 * ls_sight) and written in the trace event format that Perfetto (ui.perfetto.dev) and chrome://tracing open: a process a producer,
 * a thread a life of it; spans of attempts with their requests inside, uploads as asynchronous spans, what happens at one moment as
 * instants. The simulator knows what no producer can: when a put took effect in the store. That stands beside its outcome.
 */
#ifndef LS_TRACE_H
#define LS_TRACE_H

#include "experiments/text.h"
#include "sim/scenario.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#define LS_TRACE_EVENTS_MAX 1000000u

typedef struct ls_trace ls_trace;

/* An empty trace of what begins in [from_ns, to_ns) (an attempt that begins earlier is left out with all its requests; what begins
 * in time is kept to its end), at most most_events of it. NULL when out of memory. */
ls_trace *ls_trace_new(int64_t from_ns, int64_t to_ns, uint32_t most_events);
void ls_trace_free(ls_trace *trace);

/* Fills a watcher so that a run is kept in the trace (borrowed). A run that grows too long for it is ended. */
void ls_trace_watch(ls_trace *trace, ls_simulation_watcher *watcher);

/* After the run, once: what is still under way ends now, as "in flight". LS_ERROR_LIMIT when there was too much to keep (the
 * message tells what to do), LS_ERROR_MEMORY. */
ls_result ls_trace_finish(ls_trace *trace, ls_error *error);

/* Writes a finished trace: one JSON object, one event a line, in order of time. about (borrowed) becomes "otherData". The same trace
 * gives the same bytes. LS_ERROR_IO, LS_ERROR_MEMORY. */
ls_result ls_trace_write(const ls_trace *trace, const cJSON *about, FILE *file, ls_error *error);

/* Adds a table for plots/trace.gp: row, label, series, begin_s, end_s; a row a life. */
void ls_trace_table(const ls_trace *trace, ls_text *table);

typedef struct ls_trace_counts {
    uint32_t events, lives, attempts, puts, won, lost; /* won and lost: puts */
} ls_trace_counts;

ls_trace_counts ls_trace_count(const ls_trace *trace);

#endif
