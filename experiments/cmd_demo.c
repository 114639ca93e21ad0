/* cmd_demo.c - `lakestream demo`: ten seconds of contention, for who has just built the program and wants to see something.
 *
 * Four policies meet the same arrivals and latencies on a simulated S3; for each a line grows, one character a third of a second, as
 * high as what was published in it. On a terminal it takes the ten seconds that it shows; elsewhere it is printed at once.
 */
#include "experiments/commands.h"
#include "experiments/spec.h"
#include "sim/metrics.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COLUMNS 30u
#define SPEC                                                                                                                     \
    "{\"base\": {\"policy\": \"immediate\", \"producers\": {\"count\": 24}, \"duration_s\": 10, \"warm_up_s\": 0, "                    \
    "\"batches\": {\"rate_per_s\": 1}, \"series_step_s\": 0.333333333, \"store\": \"s3-standard\"}}"

typedef struct shown {
    const char *name;
    double published[COLUMNS]; /* batches in each step */
    ls_run_result result;
} shown;

static void keep_series(void *context, const double *published, uint32_t count, double step_s)
{
    shown *s = context;
    (void)step_s;
    for (uint32_t i = 0; i < COLUMNS && i < count; i++) s->published[i] = published[i];
}

static ls_result simulate(shown *s, uint64_t seed, ls_error *error)
{
    ls_vocabulary vocabulary = ls_vocabulary_default();
    ls_spec *spec = NULL;
    ls_result result = ls_spec_parse("demo", SPEC, strlen(SPEC), &vocabulary, false, &spec, error);
    if (result != LS_OK) return result;
    ls_simulation_watcher watcher = {.context = s, .series = keep_series};
    ls_scenario *scenario = &spec->points[0].scenario;
    result = ls_policy_instantiate(s->name, &scenario->policy, error);
    if (result == LS_OK) result = ls_simulate_watched(scenario, seed, 0, &watcher, &s->result, error);
    ls_spec_free(spec);
    return result;
}

static double greatest(const shown *all, uint32_t count)
{
    double most = 1;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < COLUMNS; k++) most = all[i].published[k] > most ? all[i].published[k] : most;
    }
    return most;
}

static const char *bar(double value, double most)
{
    static const char *const bars[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    int height = value <= 0 ? 0 : 1 + (int)(7.0 * value / most + 0.5);
    return bars[height > 8 ? 8 : height];
}

static void draw(const shown *all, uint32_t count, uint32_t columns)
{
    double most = greatest(all, count);
    for (uint32_t i = 0; i < count; i++) {
        printf("  %-14s |", all[i].name);
        for (uint32_t k = 0; k < COLUMNS; k++) fputs(k < columns ? bar(all[i].published[k], most) : " ", stdout);
        if (columns < COLUMNS) {
            printf("|\n");
            continue;
        }
        const double *v = all[i].result.values;
        printf("| %5.1f batches/s, %3.0f %% of attempts lost, half visible within %.2f s\n", v[LS_METRIC_PUBLISHED_RATE],
               100 * v[LS_METRIC_CONFLICT_SHARE], v[LS_METRIC_DELAY_P50]);
    }
    fflush(stdout);
}

static int run_demo(const ls_arguments *arguments)
{
    shown all[] = {{.name = "naive"}, {.name = "immediate"}, {.name = "backoff-full"}, {.name = "dac"}};
    uint32_t count = sizeof all / sizeof all[0];
    ls_error error = {""};
    for (uint32_t i = 0; i < count; i++) {
        ls_result result = simulate(&all[i], ls_argument_whole(arguments, "seed"), &error);
        if (result != LS_OK) return ls_report_error(arguments, result, &error);
    }
    printf("24 producers, a batch a second each, one manifest on a simulated S3: batches published over ten seconds\n\n");
    bool terminal = isatty(STDOUT_FILENO) == 1 && !ls_argument_flag(arguments, "fast");
    for (uint32_t columns = 1; terminal && columns < COLUMNS; columns++) {
        draw(all, count, columns);
        nanosleep(&(struct timespec){.tv_nsec = 333333333}, NULL);
        printf("\033[%uA", count); /* back to the first line of the picture */
    }
    draw(all, count, COLUMNS);
    printf("\nEvery policy met the same batches and the same latencies. Next: `lakestream run experiments/f7-manifest-growth.json --quick`,\n"
           "`lakestream policies`, or the README.\n");
    return LS_EXIT_DONE;
}

static const ls_command_option options[] = {
    {"seed", 's', LS_ARGUMENT_WHOLE, "SEED", "1", 0, 9007199254740992.0, "of arrivals and latencies"},
    {"fast", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "do not take the ten seconds"}};

const ls_command ls_command_demo = {.name = "demo",
                                    .operands = "",
                                    .summary = "Ten seconds of contention, drawn in the terminal",
                                    .options = options,
                                    .option_count = sizeof options / sizeof options[0],
                                    .run = run_demo};
