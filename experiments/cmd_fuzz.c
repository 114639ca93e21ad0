/* cmd_fuzz.c - `lakestream fuzz`: random worlds by seed (sim/fuzz_world.h) over several processes, and a failing one shrunk and
 * printed as a spec.
 *
 * Worker k of n takes the seeds first + k, first + k + n, ... and stops at its first failure; so the least failing seed of all
 * workers is the least there is, and what is printed does not depend on -j. Workers report through shared memory, which
 * also tells which seed a worker was at when it crashed.
 */
#include "experiments/commands.h"
#include "experiments/scenario_spec.h"
#include "experiments/text.h"
#include "sim/fuzz_world.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHRINK_RUNS_MAX 2000u

typedef struct share {
    uint64_t seed; /* under way, or the one that failed */
    uint64_t done;
    bool failed;
    ls_result result; /* LS_ERROR_MEMORY: no finding, the machine is too small */
    pid_t pid;
} share;

typedef struct finding {
    uint64_t seed;
    bool crashed; /* a worker died of it: it cannot be shrunk from inside */
    int status;
} finding;

static void work(share *mine, uint64_t first, uint64_t end, uint64_t stride)
{
    for (uint64_t seed = first; seed < end; seed += stride) {
        ls_scenario scenario;
        ls_error error = {""};
        mine->seed = seed;
        mine->result = ls_fuzz_draw(seed, &scenario, &error);
        if (mine->result == LS_OK) mine->result = ls_fuzz_run(&scenario, seed, NULL, &error);
        if (mine->result != LS_OK) {
            mine->failed = true;
            return;
        }
        mine->done++;
    }
}

static ls_result start_workers(share *shares, uint32_t count, uint64_t first, uint64_t seeds, ls_error *error)
{
    fflush(NULL);
    for (uint32_t i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0) return ls_fail(error, LS_ERROR_IO, "cannot start worker %" PRIu32 ": %s", i, strerror(errno));
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(&shares[i], first + i, first + seeds, count);
            _exit(0);
        }
        shares[i].pid = pid;
    }
    return LS_OK;
}

static void stop_workers(share *shares, uint32_t count)
{
    for (uint32_t i = 0; i < count && shares[i].pid > 0; i++) {
        kill(shares[i].pid, SIGKILL);
        while (waitpid(shares[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
}

static void show_progress(const share *shares, uint32_t count, uint64_t seeds)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < count; i++) done += shares[i].done;
    fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds\033[K", done, seeds);
}

static bool await(share *shares, uint32_t count, uint64_t seeds, finding *found)
{
    bool any = false, shown = isatty(STDERR_FILENO) == 1;
    for (uint32_t i = 0; i < count; i++) {
        int status = 0;
        pid_t ended;
        while ((ended = waitpid(shares[i].pid, &status, shown ? WNOHANG : 0)) <= 0) {
            if (ended < 0 && errno != EINTR) break;
            if (!shown) continue;
            show_progress(shares, count, seeds);
            usleep(200000);
        }
        bool crashed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if ((crashed || shares[i].failed) && (!any || shares[i].seed < found->seed)) {
            *found = (finding){.seed = shares[i].seed, .crashed = crashed, .status = status};
            any = true;
        }
    }
    if (shown) fputs("\r\033[K", stderr);
    return any;
}

/* ---- reporting ---- */

static int report_clean(const ls_arguments *arguments, uint64_t first, uint64_t seeds)
{
    if (ls_argument_flag(arguments, "json")) {
        printf("{\"first\":%" PRIu64 ",\"seeds\":%" PRIu64 ",\"failed\":null}\n", first, seeds);
    } else {
        printf("%" PRIu64 " seeds from %" PRIu64 " on: every world kept its promises\n", seeds, first);
    }
    return LS_EXIT_DONE;
}

static int report_crash(const ls_arguments *arguments, const finding *found)
{
    ls_error error;
    int signal_number = WIFSIGNALED(found->status) ? WTERMSIG(found->status) : 0;
    ls_report_error(arguments, ls_fail(&error, LS_ERROR_VIOLATED, "the simulator died of seed %" PRIu64 " (signal %d); "
                                       "`lakestream fuzz --replay %" PRIu64 "` repeats it in this process", found->seed,
                                       signal_number, found->seed), &error);
    return LS_EXIT_CHECK_FAILED;
}

static int out_of_memory(const ls_arguments *arguments, uint64_t seed)
{
    ls_error error;
    return ls_report_error(arguments, ls_fail(&error, LS_ERROR_MEMORY, "out of memory at seed %" PRIu64, seed), &error);
}

/* Runs a seed in this process; if it fails, shrinks and prints it. */
static int examine(const ls_arguments *arguments, uint64_t seed)
{
    ls_scenario scenario;
    ls_error error = {""}, original = {""};
    ls_result result = ls_fuzz_draw(seed, &scenario, &error);
    if (result == LS_OK) result = ls_fuzz_run(&scenario, seed, NULL, &original);
    if (result == LS_OK) return report_clean(arguments, seed, 1);
    if (result == LS_ERROR_MEMORY) return out_of_memory(arguments, seed);
    uint32_t runs = 0;
    result = ls_fuzz_shrink(&scenario, seed, NULL, SHRINK_RUNS_MAX, &runs, &error);
    char title[64];
    snprintf(title, sizeof title, "fuzz seed %" PRIu64 ", shrunk", seed);
    char *spec = ls_scenario_spec(&scenario, seed, title);
    if (spec == NULL) return out_of_memory(arguments, seed);
    ls_text text = {0};
    if (ls_argument_flag(arguments, "json")) {
        ls_text_format(&text, "{\"failed\":{\"seed\":%" PRIu64 ",\"result\":\"%s\",\"message\":", seed, ls_result_name(result));
        ls_text_json(&text, original.text);
        ls_text_format(&text, ",\"shrunk_message\":");
        ls_text_json(&text, error.text);
        ls_text_format(&text, ",\"runs\":%" PRIu32 ",\"spec\":%s}}\n", runs, spec);
    } else {
        fprintf(stderr, "seed %" PRIu64 " fails: %s\nshrunk in %" PRIu32 " runs to the scenario below (`lakestream run` repeats it): %s\n",
                seed, original.text, runs, error.text);
        ls_text_add(&text, spec);
    }
    ls_free(spec);
    if (!text.failed) fputs(text.bytes, stdout);
    ls_text_free(&text);
    return LS_EXIT_CHECK_FAILED;
}

static int run(const ls_arguments *arguments)
{
    if (ls_argument_given(arguments, "replay")) return examine(arguments, ls_argument_whole(arguments, "replay"));
    uint64_t first = ls_argument_whole(arguments, "first"), seeds = ls_argument_whole(arguments, "seeds");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = ls_argument_given(arguments, "jobs") ? ls_argument_whole(arguments, "jobs")
                    : processors > 0                     ? (uint64_t)processors
                                                         : 1;
    uint32_t count = (uint32_t)(jobs < seeds ? jobs : seeds);
    ls_error error = {""};
    size_t bytes = count * sizeof(share);
    share *shares = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shares == MAP_FAILED) return out_of_memory(arguments, first);
    ls_result result = start_workers(shares, count, first, seeds, &error);
    finding found = {0};
    bool any = false;
    if (result == LS_OK) any = await(shares, count, seeds, &found);
    else stop_workers(shares, count);
    munmap(shares, bytes);
    if (result != LS_OK) return ls_report_error(arguments, result, &error);
    if (!any) return report_clean(arguments, first, seeds);
    return found.crashed ? report_crash(arguments, &found) : examine(arguments, found.seed);
}

static const ls_command_option options[] = {
    {"seeds", 'n', LS_ARGUMENT_WHOLE, "N", "20000", 1, 1e12, "how many seeds"},
    {"first", 'f', LS_ARGUMENT_WHOLE, "SEED", "1", 0, 9007199254740992.0, "the first of them"},
    {"jobs", 'j', LS_ARGUMENT_WHOLE, "N", NULL, 1, 4096, "worker processes; default all processors"},
    {"replay", 'r', LS_ARGUMENT_WHOLE, "SEED", NULL, 0, 9007199254740992.0, "this seed alone, in this process; shrunk if it fails"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_fuzz = {
    .name = "fuzz",
    .operands = "",
    .summary = "Run random small worlds with faults, by seed, and check every promise of the protocol",
    .details =
        "Each seed is a world of 1 to 8 producers with any policy, layout, discovery, store and mix of faults. Invariants are\n"
        "checked at every version; then production and faults stop and everything must come to be published, once. The least\n"
        "failing seed is shrunk to a small scenario, printed as a spec, and the exit code is 1.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
