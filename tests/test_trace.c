/* test_trace.c - a trace must tell what the metrics count, of every put exactly one end, and change nothing by being kept.
 *
 * The file is read back with cJSON, as Perfetto would read it. The small world is that of test_faults.c, where every time is known: list
 * 0.01 s, conditional put 0.1 s with its effect at the end.
 */
#include "experiments/trace.h"
#include "experiments/folder.h"
#include "sim/fuzz_world.h"
#include "tests/scenarios.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define BYTES_MAX (64u << 20)

/* Twelve producers that contend, on a store with spread latencies. */
static ls_scenario crowd(const char *policy)
{
    ls_scenario s = ls_test_scenario("s3-standard", policy);
    s.producers.count = 12;
    s.batches.rate_per_s = 1;
    s.batches.bytes = 100000;
    s.warm_up_s = 5;
    s.duration_s = 20;
    return s;
}

/* The same with everything that can go wrong: crashes, zombies, lost replies, lingering puts, refusals. */
static ls_scenario mishaps(void)
{
    ls_scenario s = crowd("immediate");
    s.drain_s = 2000;
    s.faults.crash_at_s = 8.03;
    s.faults.crash_at_count = 4;
    s.faults.restart_s = 2;
    s.faults.pause_at_s = 12;
    s.faults.pause_at_count = 6;
    s.faults.pause_s = 5;
    s.faults.takeover_s = 2;
    s.faults.lost_reply_share = 0.03;
    s.faults.linger_share = 0.03;
    s.faults.linger_s = 1;
    s.faults.error_before_share = 0.03;
    s.faults.conflict_share = 0.03;
    s.faults.timeout_s = 0.5;
    return s;
}

typedef struct traced {
    ls_run_result result;
    ls_result ran, finished;
    ls_error error;
    char *text;
    cJSON *root;
    const cJSON *events;
    ls_trace_counts counts;
} traced;

static traced trace_part(const ls_scenario *s, double from_s, double to_s, uint32_t most)
{
    traced t = {.ran = LS_OK};
    ls_trace *trace = ls_trace_new(ls_nanoseconds(from_s), to_s > 0 ? ls_nanoseconds(to_s) : LS_NEVER_NS, most);
    CU_ASSERT_PTR_NOT_NULL_FATAL(trace);
    ls_simulation_watcher watcher;
    ls_trace_watch(trace, &watcher);
    ls_error ignored;
    t.ran = ls_simulate_watched(s, 7, 0, &watcher, &t.result, &ignored);
    t.finished = ls_trace_finish(trace, &t.error);
    t.counts = ls_trace_count(trace);
    const char *path = ls_test_path("trace.json");
    FILE *file = fopen(path, "w");
    cJSON *about = cJSON_CreateObject();
    cJSON_AddStringToObject(about, "name", "a \"quoted\" name");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(ls_trace_write(trace, about, file, &ignored), LS_OK);
    fclose(file);
    cJSON_Delete(about);
    ls_trace_free(trace);
    CU_ASSERT_EQUAL_FATAL(ls_file_read(path, BYTES_MAX, &t.text, NULL, &ignored), LS_OK);
    t.root = cJSON_Parse(t.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t.root);
    t.events = cJSON_GetObjectItem(t.root, "traceEvents");
    CU_ASSERT_FATAL(cJSON_IsArray(t.events));
    return t;
}

static traced trace_all(const ls_scenario *s)
{
    traced t = trace_part(s, 0, 0, LS_TRACE_EVENTS_MAX);
    CU_ASSERT_EQUAL(t.ran, LS_OK);
    CU_ASSERT_EQUAL(t.finished, LS_OK);
    return t;
}

static void drop(traced *t)
{
    cJSON_Delete(t->root);
    ls_free(t->text);
}

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
    return text == NULL ? "" : text;
}

static int64_t time_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsNumber(item) ? llround(item->valuedouble * 1000) : -1;
}

static const cJSON *arguments_of(const cJSON *event)
{
    return cJSON_GetObjectItem(event, "args");
}

/* Events of a name; of an outcome too unless NULL; of those, only measured ones if so asked. */
static uint32_t count_of(const traced *t, const char *name, const char *outcome, bool measured)
{
    uint32_t count = 0;
    const cJSON *e;
    cJSON_ArrayForEach(e, t->events)
    {
        const cJSON *a = arguments_of(e);
        if (strcmp(text_of(e, "name"), name) != 0 || (outcome != NULL && strcmp(text_of(a, "outcome"), outcome) != 0)) continue;
        count += !measured || cJSON_IsTrue(cJSON_GetObjectItem(a, "measured"));
    }
    return count;
}

static const cJSON *nth(const traced *t, const char *name, uint32_t n)
{
    const cJSON *e;
    cJSON_ArrayForEach(e, t->events)
    {
        if (strcmp(text_of(e, "name"), name) == 0 && n-- == 0) return e;
    }
    return NULL;
}

/* --- what every trace must be ------------------------------------------------------------------------------------------- */

static bool is_request(const char *name)
{
    return strcmp(name, "list") == 0 || strcmp(name, "get") == 0 || strcmp(name, "head") == 0 || strcmp(name, "put") == 0;
}

typedef struct track {
    int64_t attempt_end_ns, request_end_ns, span_end_ns;
    uint32_t puts; /* in the attempt under way */
} track;

/* In order of time; on each track attempts and waits one after the other, requests one after the other inside an attempt, one put at
 * most in each; every end of an upload after its beginning. */
static void check_shape(const traced *t)
{
    track *tracks = ls_allocate_array(10000, sizeof *tracks);
    int64_t before_ns = 0, open_uploads = 0;
    const cJSON *e;
    uint32_t faults = 0;
    for (int i = 0; i < 10000; i++) tracks[i] = (track){.attempt_end_ns = -1};
    cJSON_ArrayForEach(e, t->events)
    {
        const char *phase = text_of(e, "ph"), *name = text_of(e, "name");
        if (*phase == 'M') continue;
        int64_t at_ns = time_of(e, "ts"), end_ns = at_ns + time_of(e, "dur");
        faults += at_ns < before_ns;
        before_ns = at_ns;
        open_uploads += (*phase == 'b') - (*phase == 'e');
        faults += open_uploads < 0;
        if (*phase != 'X') continue;
        faults += time_of(e, "dur") < 0;
        int tid = cJSON_GetObjectItem(e, "tid")->valueint;
        CU_ASSERT_FATAL(tid > 0 && tid < 10000);
        track *k = &tracks[tid];
        if (is_request(name)) {
            faults += at_ns < k->request_end_ns || end_ns > k->attempt_end_ns;
            k->request_end_ns = end_ns;
            k->puts += strcmp(name, "put") == 0;
            faults += k->puts > 1;
        } else {
            faults += at_ns < k->span_end_ns;
            k->span_end_ns = end_ns;
            k->attempt_end_ns = strcmp(name, "attempt") == 0 ? end_ns : -1;
            k->request_end_ns = at_ns;
            k->puts = 0;
        }
    }
    CU_ASSERT_EQUAL(faults, 0);
    CU_ASSERT_EQUAL(open_uploads, 0);
    ls_free(tracks);
}

/* Every put came to exactly one thing; what won had taken effect, what lost had not; no version was created twice. */
static void check_puts(const traced *t)
{
    static const char *const outcomes[] = {"won", "lost", "throttled", "aborted", "proved", "fenced", "crashed", "in flight"};
    uint32_t sum = 0, wrong = 0;
    for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) sum += count_of(t, "put", outcomes[i], false);
    CU_ASSERT_EQUAL(sum, count_of(t, "put", NULL, false));
    CU_ASSERT_EQUAL(sum, t->counts.puts);
    bool *created = ls_allocate_array(100000, sizeof *created);
    const cJSON *e;
    cJSON_ArrayForEach(e, t->events)
    {
        if (strcmp(text_of(e, "name"), "put") != 0) continue;
        const cJSON *a = arguments_of(e);
        const char *outcome = text_of(a, "outcome");
        bool took_effect = cJSON_GetObjectItem(a, "effect_us") != NULL;
        int version = cJSON_GetObjectItem(a, "version")->valueint;
        wrong += (strcmp(outcome, "won") == 0 || strcmp(outcome, "proved") == 0) && !took_effect;
        /* A join in doubt that another life's join has replaced in the row cannot be told from one that never landed. */
        bool replaced = cJSON_GetObjectItem(a, "batches")->valueint == 0 && cJSON_IsTrue(cJSON_GetObjectItem(a, "ambiguous"));
        wrong += strcmp(outcome, "lost") == 0 && took_effect && !replaced;
        wrong += took_effect && created[version];
        created[version] = created[version] || took_effect;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    ls_free(created);
}

/* Being watched changes nothing: not a bit of any metric. */
static void check_metrics(const ls_scenario *s, const traced *t)
{
    ls_run_result untraced = ls_test_simulate(s, 7, 0);
    CU_ASSERT_EQUAL(memcmp(untraced.values, t->result.values, sizeof untraced.values), 0);
    CU_ASSERT_EQUAL(untraced.events, t->result.events);
    const double *v = t->result.values;
    double won = count_of(t, "put", "won", true), lost = count_of(t, "put", "lost", true);
    CU_ASSERT_DOUBLE_EQUAL(won, v[LS_METRIC_WIN_RATE] * v[LS_METRIC_MEASURED], 1e-6);
    if (won + lost > 0) CU_ASSERT_DOUBLE_EQUAL(lost / (won + lost), v[LS_METRIC_CONFLICT_SHARE], 1e-12);
    CU_ASSERT_EQUAL(count_of(t, "crashed", NULL, false), v[LS_METRIC_CRASHES]);
    CU_ASSERT_EQUAL(count_of(t, "fenced", NULL, false), v[LS_METRIC_FENCED]);
}

static traced check(const ls_scenario *s)
{
    traced t = trace_all(s);
    check_shape(&t);
    check_puts(&t);
    check_metrics(s, &t);
    return t;
}

/* --- tests -------------------------------------------------------------------------------------------------------------- */

static void test_small_world(void)
{
    ls_scenario s = ls_test_small_world();
    traced t = check(&s);
    const cJSON *attempt = nth(&t, "attempt", 0), *list = nth(&t, "list", 0), *put = nth(&t, "put", 0), *published = nth(&t, "published", 0);
    CU_ASSERT_EQUAL_FATAL(t.counts.attempts, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(published);
    CU_ASSERT_EQUAL(time_of(attempt, "ts"), 0);
    CU_ASSERT_EQUAL(time_of(attempt, "dur"), 110000000);
    CU_ASSERT_EQUAL(time_of(list, "dur"), 10000000);
    CU_ASSERT_EQUAL(time_of(put, "ts"), 10000000);
    CU_ASSERT_EQUAL(time_of(arguments_of(put), "effect_us"), 110000000);
    CU_ASSERT_STRING_EQUAL(text_of(arguments_of(put), "status"), "ok");
    CU_ASSERT_STRING_EQUAL(text_of(arguments_of(attempt), "outcome"), "won");
    CU_ASSERT_EQUAL(cJSON_GetObjectItem(arguments_of(put), "version")->valueint, cJSON_GetObjectItem(arguments_of(list), "after_version")->valueint + 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(t.text, "\"ts\":10000.000,\"dur\":100000.000,\"pid\":1,\"tid\":1,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(t.text, "a \\\"quoted\\\" name"));
    CU_ASSERT_EQUAL(time_of(published, "ts"), 110000000);
    drop(&t);
}

static void strike_first_put(ls_scenario *s)
{
    s->faults.window_start_s = 0.005;
    s->faults.window_length_s = 0.02;
}

/* The reply is lost at 0.11, given up at 0.51; list and get find the own row. */
static void test_lost_reply(void)
{
    ls_scenario s = ls_test_small_world();
    strike_first_put(&s);
    s.faults.lost_reply_share = 1;
    traced t = check(&s);
    const cJSON *put = nth(&t, "put", 0);
    CU_ASSERT_EQUAL(time_of(put, "dur"), 500000000);
    CU_ASSERT_EQUAL(time_of(arguments_of(put), "effect_us"), 110000000);
    CU_ASSERT_STRING_EQUAL(text_of(arguments_of(put), "status"), "unknown outcome");
    CU_ASSERT_STRING_EQUAL(text_of(arguments_of(put), "outcome"), "won");
    CU_ASSERT(cJSON_IsTrue(cJSON_GetObjectItem(arguments_of(put), "ambiguous")));
    CU_ASSERT_EQUAL(time_of(nth(&t, "get", 0), "ts"), 520000000);
    CU_ASSERT_EQUAL(time_of(nth(&t, "attempt", 0), "dur"), 530000000);
    drop(&t);
}

/* The put lingers: it is looked for from 0.51 on and not found, so the attempt counts as aborted; it arrives at 0.518 and takes effect
 * at 0.523; the next attempt's list sees it, and its report revises the first. */
static void test_proved(void)
{
    ls_scenario s = ls_test_small_world();
    strike_first_put(&s);
    s.store.conditional_won = ls_test_constant(0.005);
    s.faults.linger_share = 1;
    s.faults.linger_s = 0.008;
    traced t = check(&s);
    CU_ASSERT_EQUAL(count_of(&t, "put", NULL, false), 1);
    CU_ASSERT_EQUAL(count_of(&t, "put", "proved", false), 1);
    CU_ASSERT_EQUAL(count_of(&t, "attempt", "aborted", false), 1);
    CU_ASSERT_EQUAL(count_of(&t, "attempt", "proved", false), 1);
    CU_ASSERT_EQUAL(time_of(arguments_of(nth(&t, "put", 0)), "effect_us"), 523000000);
    drop(&t);
}

static void test_crowds(void)
{
    static const char *const policies[] = {"immediate", "backoff-full", "dac", "turns", "oracle"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        ls_scenario s = crowd(policies[i]);
        traced t = check(&s);
        CU_ASSERT(count_of(&t, "put", "won", true) > 10);
        CU_ASSERT_EQUAL(t.counts.lives, 12);
        if (strcmp(policies[i], "backoff-full") == 0) CU_ASSERT(count_of(&t, "wait", NULL, false) > 20);
        if (strcmp(policies[i], "turns") == 0) CU_ASSERT(count_of(&t, "attempt", "called off", false) > 20);
        drop(&t);
    }
}

static void test_mishaps(void)
{
    ls_scenario s = mishaps();
    traced t = check(&s);
    CU_ASSERT_EQUAL(count_of(&t, "crashed", NULL, false), 4);
    CU_ASSERT_EQUAL(count_of(&t, "paused", NULL, false), 6);
    CU_ASSERT(count_of(&t, "fenced", NULL, false) > 0);
    CU_ASSERT(count_of(&t, "put", "crashed", false) > 0);
    CU_ASSERT(count_of(&t, "put", "aborted", false) > 0);
    CU_ASSERT_EQUAL(count_of(&t, "put", "in flight", false), 0); /* drained */
    CU_ASSERT(t.counts.lives > 16 && t.counts.lives <= 22);
    drop(&t);
}

/* Random worlds with all faults, reclaimers and helpers among them. */
static void test_random_worlds(void)
{
    uint32_t with_puts = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        ls_scenario s;
        ls_error error;
        CU_ASSERT_EQUAL_FATAL(ls_fuzz_draw(seed, &s, &error), LS_OK);
        if (s.world != LS_WORLD_COMMIT ) continue;
        traced t = check(&s);
        CU_ASSERT(t.counts.puts > 0 || seed > 40);
        with_puts += t.counts.puts > 0;
        drop(&t);
    }
    CU_ASSERT(with_puts >= 190);
}

/* Arrivals "open" use one machine after another on a track. */
static void test_open_arrivals(void)
{
    ls_scenario s = ls_test_theory_scenario("immediate", ls_test_exponential(0.1));
    s.batches.law = LS_ARRIVAL_OPEN;
    s.batches.rate_per_s = 20;
    s.producers.count = 100;
    s.duration_s = 50;
    traced t = check(&s);
    CU_ASSERT(count_of(&t, "put", "lost", false) > 100);
    drop(&t);
}

/* With warm_up_s below 0 the run happens twice; the pilot leaves no trace. */
static void test_pilot_run(void)
{
    ls_scenario s = crowd("immediate");
    s.warm_up_s = -1;
    traced t = check(&s);
    CU_ASSERT_EQUAL(count_of(&t, "measured time begins", NULL, false), 1);
    drop(&t);
}

static void test_same_bytes(void)
{
    ls_scenario s = mishaps();
    traced a = trace_all(&s), b = trace_all(&s);
    CU_ASSERT_STRING_EQUAL(a.text, b.text);
    drop(&a);
    drop(&b);
}

/* A part holds those attempts of the whole that begin in it, each with all its requests. */
static void test_part(void)
{
    ls_scenario s = crowd("immediate");
    traced all = trace_all(&s), part = trace_part(&s, 6.5, 8.25, LS_TRACE_EVENTS_MAX);
    CU_ASSERT_EQUAL(part.finished, LS_OK);
    check_shape(&part);
    check_puts(&part);
    uint32_t wanted = 0;
    const cJSON *e;
    cJSON_ArrayForEach(e, all.events)
    {
        int64_t at_ns = time_of(e, "ts");
        wanted += strcmp(text_of(e, "name"), "attempt") == 0 && at_ns >= 6500000000 && at_ns < 8250000000;
    }
    CU_ASSERT(wanted > 10);
    CU_ASSERT_EQUAL(count_of(&part, "attempt", NULL, false), wanted);
    CU_ASSERT_EQUAL(memcmp(all.result.values, part.result.values, sizeof all.result.values), 0);
    drop(&all);
    drop(&part);
}

static void test_too_much(void)
{
    ls_scenario s = crowd("immediate");
    traced t = trace_part(&s, 2, 0, 500);
    CU_ASSERT_EQUAL(t.ran, LS_ERROR_LIMIT);
    CU_ASSERT_EQUAL(t.finished, LS_ERROR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(t.error.text, "--from and --to"));
    CU_ASSERT_EQUAL(t.counts.events, 500);
    check_shape(&t);
    drop(&t);
}

static int run_program(const char *arguments)
{
    const char *program = getenv("LAKESTREAM");
    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    char command[2048];
    snprintf(command, sizeof command, "'%s' %s", program, arguments);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_command(void)
{
    static const char spec[] = "{\"title\": \"t\", \"seed\": 1, \"base\": {\"producers\": {\"count\": 4}, \"store\": \"s3-standard\", \"policy\": "
                               "\"immediate\", \"warm_up_s\": 0, \"duration_s\": 5}, \"sweep\": [{\"cases\": [{\"world\": \"commit\"}, {\"world\": "
                               "\"queue\"}]}]}";
    const char *path = ls_test_path("traced.json"), *output = ls_test_path("out.json"), *picture = ls_test_path("picture.svg");
    ls_error error;
    CU_ASSERT_EQUAL_FATAL(ls_file_write(path, spec, strlen(spec), &error), LS_OK);
    char arguments[1500];
    snprintf(arguments, sizeof arguments, "trace '%s' --seed 3 -o '%s' --plot '%s' --plots experiments/plots >/dev/null", path, output, picture);
    CU_ASSERT_EQUAL(run_program(arguments), 0);
    char *text = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_file_read(output, BYTES_MAX, &text, NULL, &error), LS_OK);
    cJSON *root = cJSON_Parse(text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    const cJSON *about = cJSON_GetObjectItem(root, "otherData");
    CU_ASSERT_EQUAL(cJSON_GetObjectItem(about, "seed")->valueint, 3);
    CU_ASSERT_STRING_EQUAL(text_of(about, "experiment"), "traced");
    cJSON_Delete(root);
    ls_free(text);
    CU_ASSERT_EQUAL_FATAL(ls_file_read(picture, BYTES_MAX, &text, NULL, &error), LS_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "put: won"));
    ls_free(text);
    static const char *const refused[] = {"--point 1", "--point 2", "--from 3 --to 3", "--plot picture.jpeg"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(arguments, sizeof arguments, "trace '%s' %s -o '%s' >/dev/null 2>&1", path, refused[i], output);
        CU_ASSERT_EQUAL(run_program(arguments), 2);
    }
}

LS_SUITE(trace,
         {"one attempt, every time known", test_small_world},
         {"a lost reply", test_lost_reply},
         {"a put proved by a later attempt", test_proved},
         {"crowds under five policies: shape, ends, metrics", test_crowds},
         {"crashes, zombies, lingering puts: the same", test_mishaps},
         {"random worlds: the same", test_random_worlds},
         {"open arrivals", test_open_arrivals},
         {"the pilot run leaves no trace", test_pilot_run},
         {"same seed, same bytes", test_same_bytes},
         {"a part of the time", test_part},
         {"too much", test_too_much},
         {"command trace", test_command})
