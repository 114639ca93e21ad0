/* test_cli.c - the built program from outside: exit codes, messages, files. The program's path is in LAKESTREAM. */
#include "manifest/base.h"
#include "tests/suite.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* A queueing station: the cheapest world there is, and no policy. */
#define SPEC                                                                                                           \
    "{\"title\": \"A 'quoted' title\", \"replications\": 3, \"base\": {\"world\": \"queue\", \"queue\": "              \
    "{\"customers\": 50,"                                                                                              \
    "\"arrival_rate_per_s\": 0.5, \"service\": {\"law\": \"exponential\", \"scale_s\": 1}}}, \"sweep\": "              \
    "[{\"cartesian\":"                                                                                                 \
    "{\"queue.service.law\": [\"exponential\", \"constant\"], \"queue.arrival_rate_per_s\": [0.2, 0.4]}}],"            \
    "\"compare\": {\"key\": \"queue.service.law\", \"baseline\": \"constant\"}, \"quick\": {\"replications\": 1}}"

typedef struct outcome {
    int code;
    char text[65536]; /* standard output and standard error together */
} outcome;

/* Runs "lakestream ARGUMENTS" through the shell; @ stands for the test's folder. */
static outcome run(const char *arguments)
{
    static outcome out;
    char command[2048];
    size_t length = 0;
    const char *program = getenv("LAKESTREAM");
    out = (outcome){.code = -1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    length += (size_t)snprintf(command, sizeof command, "%s ", program);
    for (const char *c = arguments; *c != '\0' && length + 300 < sizeof command; c++) {
        if (*c == '@') {
            length += (size_t)snprintf(command + length, sizeof command - length, "%s", ls_test_path("cli"));
        } else {
            command[length++] = *c;
        }
    }
    snprintf(command + length, sizeof command - length, " 2>&1");
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    size_t got = fread(out.text, 1, sizeof out.text - 1, pipe);
    out.text[got] = '\0';
    int status = pclose(pipe);
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return out;
}

static void write_file(const char *suffix, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", ls_test_path("cli"), suffix);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *arguments, int code, const char *part)
{
    outcome out = run(arguments);
    if (out.code != code || strstr(out.text, part) == NULL) {
        printf("\n      lakestream %s\n      gave %d (wanted %d): %s\n      wanted \"%s\"", arguments, out.code, code,
               out.text, part);
    }
    CU_ASSERT_EQUAL(out.code, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.text, part));
}

static void test_usage(void)
{
    expect("", 0, "lakestream run ");
    expect("--help", 0, "Exit codes: 0 done");
    expect("--version", 0, "lakestream 0.1.0");
    expect("rum", 2, "did you mean \"run\"?");
    expect("help compare", 0, "--baseline");
    expect("help rum", 2, "no command \"rum\"");
    expect("run", 2, "an argument is missing");
    expect("run a b", 2, "\"b\" is one argument too many");
    expect("run --help", 0, "usage: lakestream run SPEC [options]");
    expect("run x.json --quik", 2, "did you mean --quick?");
    expect("run x.json -z", 2, "no option -z");
    expect("run x.json -j", 2, "--jobs needs a value: N");
    expect("run x.json -j 0", 2, "a whole number from 1 to 4096");
    expect("run x.json -j 1.5", 2, "a whole number from 1 to 4096");
    expect("run x.json -j2 --jobs=3", 2, "--jobs is given twice");
    expect("run x.json --quick=yes", 2, "--quick takes no value");
    expect("run x.json --shard 3/2", 2, "1 <= i <= n");
    expect("run x.json --shard 1/2x", 2, "1 <= i <= n");
    expect("run absent.json", 2, "absent.json: cannot be read");
    expect("results hsh x", 2, "expected hash or list");
    expect("compare absent.db", 3, "no such results file");
}

static void test_lists(void)
{
    static const char *const names[] = {"policies", "presets", "keys", "metrics"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "%s --json", names[i]);
        outcome out = run(arguments);
        CU_ASSERT_EQUAL(out.code, 0);
        cJSON *json = cJSON_Parse(out.text);
        CU_ASSERT_PTR_NOT_NULL(json);
        cJSON_Delete(json);
    }
    expect("policies", 0, "target_share");
    expect("presets", 0, "s3-standard");
    expect("keys queue.cust", 0, "queue.customers");
    expect("metrics", 0, "queue_wait_mean_s");
}

static void test_run_and_compare(void)
{
    write_file(".json", SPEC);
    expect("run @.json -o @.db -j 2", 0, "cli: 4 points, 12 of 12 runs (12 new, 0 stored before, 0 failed)");
    expect("run @.json -o @.db", 0, "(0 new, 12 stored before, 0 failed)");
    expect("run @.json -o @.db --seed 5 --json", 0,
           "\"required\":12,\"reused\":0,\"ran\":12,\"failed\":0,\"interrupted\":false");
    expect("results list @.db", 0, "4 points");
    expect("results list @.db", 0, "seed 5");
    expect("run @.json -o @other.db -j 3", 0, "12 new");
    expect("run @.json -o @other.db -j 1 --seed 5", 0, "12 new");
    char hash[70];
    outcome out = run("results hash @.db");
    CU_ASSERT_EQUAL(strlen(out.text), 65);
    snprintf(hash, sizeof hash, "%.65s", out.text);
    out = run("results hash @other.db");
    CU_ASSERT_STRING_EQUAL(out.text, hash);
    expect("run @.json -o @shard1.db --shard 1/2", 0, "6 of 6 runs");
    expect("run @.json -o @shard2.db --shard=2/2", 0, "6 of 6 runs");
    expect("merge @half.db @shard2.db --spec @.json --shards 2", 4,
           "missing: point 0 (queue.service.law=exponential, ");
    expect("merge @half.db @shard2.db --spec @.json --shards 2", 4, ", replications 0 to 2, shard 1/2\n");
    expect("merge @half.db @shard2.db --spec @.json", 4, "cli: 4 points, 6 of 12 runs of program ");
    expect("merge @half.db @shard1.db --spec @.json", 0, ": whole");
    expect("merge @half.db @shard1.db @half.db --spec @.json", 0, "12 of 12 runs");
    expect("merge @half.db @shard1.db --spec @.json --seed 5", 4, "0 of 12 runs");
    expect("merge @half.db @shard1.db --spec @absent.json", 2, "cannot be read");
    expect("run @.json -o @whole.db", 0, "12 new");
    out = run("results hash @whole.db");
    snprintf(hash, sizeof hash, "%.65s", out.text);
    out = run("results hash @half.db");
    CU_ASSERT_STRING_EQUAL(out.text, hash);
    expect("merge @joined.db @shard1.db @shard2.db", 0, "");
    expect("run @.json -o @joined.db", 0, "(0 new, 12 stored before, 0 failed)");
    expect("compare @.db -m queue_wait_mean_s", 0, "queue.service.law against constant");
    expect("compare @.db -m queue_wait_mean_s --json", 0, "\"baseline\":\"constant\",\"rows\":[");
    expect("compare @.db -m queue_wait_meen_s", 2, "did you mean \"queue_wait_mean_s\"?");
    expect("compare @.db -e other", 2, "it holds cli");
    expect("compare @.json", 3, "not a results file");
    expect("run @.json -o @folder/absent.db", 3, "folder exist");
    expect("run @.json --backend fast -o @.db", 2, "expected sim, memory, dir:PATH");
    write_file("bad.json", "{\"base\": {\"queue\": {\"custmers\": 3}}}");
    expect("run @bad.json -o @.db", 2, "bad.json:1:21: base.queue.custmers: no such setting");
}

static void test_plot(void)
{
    write_file(".json", SPEC);
    write_file(
        ".gp",
        "set terminal dumb\nset output output\nset title title_text\nplot data using \"queue.arrival_rate_per_s\":"
        "\"queue_wait_mean_s\":\"queue_wait_mean_s.half_width\" with yerrorbars\n");
    expect("run @.json -o @plot.db", 0, "12");
    expect("plot @.json -i @plot.db -o @pictures/deep", 0, "cli.png");
    char path[300];
    snprintf(path, sizeof path, "%s", ls_test_path("clipictures/deep/cli.svg"));
    FILE *picture = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(picture);
    char text[4096] = "";
    size_t got = fread(text, 1, sizeof text - 1, picture);
    text[got] = '\0';
    fclose(picture);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "A 'quoted' title"));
    expect("plot @plot.db --table -o @pictures", 0, "cli.tsv");
    expect("plot @plot.db -o @pictures -p /nonexistent", 2, "no plot script cli.gp in /nonexistent/plots");
    write_file(".gp", "plot nonsense(");
    expect("plot @plot.db -o @pictures", 3, "gnuplot failed on");
    expect("plot @.json -i @absent.db -o @pictures", 3, "no such results file");
    expect("plot @absent.json -o @pictures", 2, "cannot be read");
}

/* Ctrl-C during a run that would take for ever. Whether the signal finds the program still starting or already running,
 * the code is 130. */
static void test_interruption(void)
{
    char command[700];
    write_file(
        "long.json",
        "{\"base\": {\"world\": \"queue\", \"queue\": {\"customers\": 1000000000000, \"arrival_rate_per_s\": 0.5,"
        "\"service\": {\"law\": \"constant\", \"scale_s\": 1}}}}");
    snprintf(command, sizeof command, "timeout --preserve-status -k 20 -s INT 0.3 %s run %slong.json -o %slong.db 2>&1",
             getenv("LAKESTREAM"), ls_test_path("cli"), ls_test_path("cli"));
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    char text[4096];
    while (fread(text, 1, sizeof text, pipe) > 0) continue;
    int status = pclose(pipe);
    CU_ASSERT_TRUE(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 130);
}

LS_SUITE(cli, {"usage", test_usage}, {"lists", test_lists}, {"run, resume, hash, merge, compare", test_run_and_compare},
         {"plot", test_plot}, {"interruption", test_interruption})
