/* test_dataplane.c - produce, consume, inspect and fsck from outside, as processes on one directory. The program's path
 * is in LAKESTREAM.
 */
#include "experiments/batch_source.h"
#include "manifest/codec.h"
#include "manifest/tgb.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX  40
#define OUTPUT_MAX 65536

typedef struct process {
    pid_t pid;
    int output; /* standard output and standard error together */
} process;

typedef struct outcome {
    int code;
    char text[OUTPUT_MAX];
} outcome;

/* A path in this suite's folder; valid until the next eight calls. */
static const char *path_of(const char *name)
{
    static char paths[8][800];
    static int next;
    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s%s", ls_test_path("dataplane-"), name);
    return paths[next];
}

/* Splits at spaces; @ in a word stands for the path of what follows it. */
static void split(const char *arguments, char *copy, size_t size, char *words[WORDS_MAX])
{
    size_t at = 0;
    uint32_t count = 0;
    words[count++] = getenv("LAKESTREAM");
    for (const char *c = arguments; *c != '\0';) {
        size_t length = strcspn(c, " ");
        const char *mark = memchr(c, '@', length);
        char name[256];
        words[count++] = copy + at;
        if (mark == NULL) {
            at += (size_t)snprintf(copy + at, size - at, "%.*s", (int)length, c) + 1;
        } else {
            snprintf(name, sizeof name, "%.*s", (int)(length - (size_t)(mark + 1 - c)), mark + 1);
            at += (size_t)snprintf(copy + at, size - at, "%.*s%s", (int)(mark - c), c, path_of(name)) + 1;
        }
        CU_ASSERT_FATAL(at < size && count < WORDS_MAX - 1);
        c += length + (c[length] == ' ');
    }
    words[count] = NULL;
}

/* input: a file for standard input, or NULL. */
static process start(const char *arguments, const char *input)
{
    char copy[4096], *words[WORDS_MAX];
    int ends[2];
    CU_ASSERT_PTR_NOT_NULL_FATAL(getenv("LAKESTREAM"));
    split(arguments, copy, sizeof copy, words);
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        int in = open(input != NULL ? input : "/dev/null", O_RDONLY);
        if (in < 0 || dup2(in, 0) < 0 || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0) _exit(126);
        execv(words[0], words);
        _exit(127);
    }
    close(ends[1]);
    return (process){pid, ends[0]};
}

static const outcome *await(process p)
{
    static outcome out;
    size_t length = 0;
    ssize_t got;
    while ((got = read(p.output, out.text + length, sizeof out.text - 1 - length)) > 0 || (got < 0 && errno == EINTR)) {
        length += got > 0 ? (size_t)got : 0;
    }
    out.text[length] = '\0';
    close(p.output);
    int status = -1;
    while (waitpid(p.pid, &status, 0) < 0 && errno == EINTR) continue;
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return &out;
}

static const outcome *judge(const char *arguments, const outcome *out, int code, const char *part)
{
    if (out->code != code || strstr(out->text, part) == NULL) {
        printf("\n      lakestream %s\n      gave %d (wanted %d): %s\n      wanted \"%s\"", arguments, out->code, code,
               out->text, part);
    }
    CU_ASSERT_EQUAL(out->code, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, part));
    return out;
}

static const outcome *expect(const char *arguments, int code, const char *part)
{
    return judge(arguments, await(start(arguments, NULL)), code, part);
}

static const outcome *expect_with_input(const char *arguments, const char *input, int code, const char *part)
{
    return judge(arguments, await(start(arguments, path_of(input))), code, part);
}

/* --- files
 * ------------------------------------------------------------------------------------------------------------------ */

static void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* The caller frees. */
static uint8_t *read_file(const char *path, size_t *length)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fstat(fileno(file), &status), 0);
    *length = (size_t)status.st_size;
    uint8_t *bytes = ls_allocate(*length + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_EQUAL(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

/* The file that holds an object of a lake in a directory. */
static const char *object_path(const char *lake, const char *key)
{
    char name[480];
    snprintf(name, sizeof name, "%s/%s%%", lake, key);
    return path_of(name);
}

static const char *version_path(const char *lake, uint64_t version)
{
    char text[LS_KEY_TEXT_BYTES];
    ls_key key = ls_key_manifest(version);
    ls_key_format(&key, text);
    return object_path(lake, text);
}

static void flip(const char *path, size_t at)
{
    size_t length;
    uint8_t *bytes = read_file(path, &length);
    CU_ASSERT_FATAL(at < length);
    bytes[at] ^= 0x10;
    write_file(path, bytes, length);
    ls_free(bytes);
}

static bool same_bytes(const char *left, const char *right)
{
    size_t left_length, right_length;
    uint8_t *a = read_file(left, &left_length), *b = read_file(right, &right_length);
    bool same = left_length == right_length && memcmp(a, b, left_length) == 0;
    ls_free(a);
    ls_free(b);
    return same;
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static bool has_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_size > 0;
}

/* Waits until something stands in a file: a process has come so far. */
static void await_file(const char *path)
{
    for (int i = 0; i < 4000 && !has_bytes(path); i++) usleep(5000);
    CU_ASSERT_FATAL(has_bytes(path));
}

/* --- usage
 * -------------------------------------------------------------------------------------------------------------------
 */

static void test_usage(void)
{
    expect("produce --help", 0, "--data-ranks");
    expect("consume --help", 0, "--follow");
    expect("inspect --help", 0, "KEY|head|VERSION");
    expect("fsck --help", 0, "--deep");
    expect("produce --backend dir:@u", 2, "--producer is missing");
    expect("produce -p 1", 2, "--backend is missing");
    expect("produce -p 1 --backend ftp:x", 2, "--backend ftp:x: expected dir:PATH");
    expect("produce -p 1 --backend dir:", 2, "expected dir:PATH");
    expect("produce -p x --backend dir:@u", 2, "expected a whole number");
    expect("produce -p 1 --backend dir:@u --policy backof-full", 2, "backoff-full");
    expect("produce -p 1 --backend dir:@u --policy oracle", 2, "in the simulator only");
    expect("produce -p 1 --backend dir:@u --set base_s", 2, "expected parameter=value");
    expect("produce -p 1 --backend dir:@u --set =1", 2, "expected parameter=value");
    expect("produce -p 1 --backend dir:@u --policy backoff-full --set base_s=1x", 2, "'1x' is no number");
    expect("produce -p 1 --backend dir:@u --policy backoff-full --set bas_s=1", 2, "base_s");
    expect("produce -p 1 --backend dir:@u --policy backoff-full --set base_s=1 --set cap_s=-1", 2, "cap_s");
    expect("produce -p 1 --backend dir:@u --layout ful", 2, "expected one of full full-tail");
    expect("produce -p 1 --backend dir:@u --discovery prob", 2, "expected one of list probe gallop");
    expect("produce -p 1 --backend dir:@u --source disk", 2, "--source disk: expected synthetic");
    expect("produce -p 1 --backend dir:@u --source - file", 2, "exclude each other");
    expect("produce -p 1 --backend dir:@u @absent-file", 2, "cannot be read");
    expect("produce -p 1 --backend dir:@u /dev/null", 2, "is no plain file");
    expect("produce -p 1 --backend dir:@u --data-ranks 2000 --context-ranks 2000", 2, "more than the 1048576 slices");
    expect("produce -p 1 --backend dir:@u --bytes 0", 2, "from 1 to");
    expect("produce -p 1 --backend dir:@u --batch 3", 2, "did you mean --batches");
    expect("consume --backend dir:@u --rank 0,0", 2, "there is no such folder");
    expect("fsck --backend dir:@u", 2, "there is no such folder");
    expect("inspect --backend dir:@u", 2, "there is no such folder");
    CU_ASSERT_EQUAL(access(path_of("u"), F_OK), -1); /* nothing of this made the folder */
    mkdir(path_of("empty"), 0777);
    expect("consume --backend dir:@empty", 2, "--rank is missing: expected data rank");
    expect("consume --backend dir:@empty --rank 1", 2, "as in 0,0");
    expect("consume --backend dir:@empty --rank 1,2,3", 2, "as in 0,0");
    expect("consume --backend dir:@empty --rank -1,0", 2, "as in 0,0");
    expect("consume --backend dir:@empty --rank 0,0 --from newest", 2, "expected a step, or oldest");
    expect("consume --backend dir:@empty --rank 0,0 --window 17", 2, "from 1 to 16");
    expect("consume --backend dir:@empty --rank 0,0 --output @no/such/folder", 2, "cannot be written");
    expect("consume --backend dir:@empty --rank 0,0", 0, "0 steps");
    expect("fsck --backend dir:@empty", 2, "there is no lake in");
    expect("inspect --backend dir:@empty", 2, "holds no manifest version");
    expect("inspect --backend dir:@empty 7", 2, "there is no manifest/00000000000000000007");
    expect("inspect --backend dir:@empty data/1/1.tgb", 2, "names no object of a lake");
    expect("produce -p 1 --backend memory -n 3 --bytes 10", 0, "3 batches");
}

static void test_checkpoint_usage(void)
{
    expect("checkpoint --help", 0, "rewind NAME|KEY");
    expect("reclaim --help", 0, "--keep-last");
    expect("checkpoint list --backend dir:@u", 2, "there is no such folder");
    expect("checkpoint write a 1 --backend dir:@u", 2, "there is no such folder");
    expect("reclaim --backend dir:@u", 2, "there is no such folder");
    CU_ASSERT_EQUAL(access(path_of("u"), F_OK), -1);
    mkdir(path_of("bare"), 0777);
    expect("checkpoint --backend dir:@bare", 2, "write NAME STEP");
    expect("checkpoint lost --backend dir:@bare", 2, "expected write, list, pin, rewind or release");
    expect("checkpoint write a --backend dir:@bare", 2, "lakestream checkpoint write NAME STEP");
    expect("checkpoint list a --backend dir:@bare", 2, "lakestream checkpoint list");
    expect("checkpoint write a x --backend dir:@bare", 2, "expected a step");
    expect("checkpoint write a -1 --backend dir:@bare", 2, "no option -1");
    expect("checkpoint write a 1,2 --backend dir:@bare", 2, "expected one step, or 1 of them");
    expect("checkpoint write a 1,,2 --data-ranks 3 --backend dir:@bare", 2, "expected a step");
    expect("checkpoint write a 1,2 --data-ranks 3 --backend dir:@bare", 2, "expected one step, or 3 of them");
    expect("checkpoint write a 9999999999999999999 --backend dir:@bare", 2, "expected a step");
    expect("checkpoint write a 1 --data-ranks 1048576 --context-ranks 2 --backend dir:@bare", 2, "at most 1048576");
    expect("checkpoint write a 1 --backend dir:@bare", 1, "the lake ends at step 0; no checkpoint was made");
    expect("checkpoint list --backend dir:@bare", 0, "no checkpoints");
    expect("checkpoint pin a --backend dir:@bare", 2, "there is no checkpoint called \"a\"");
    expect("checkpoint release a --backend dir:@bare", 2, "there is no pinned checkpoint called \"a\"");
    expect("reclaim --backend dir:@bare", 2, "there is no lake in");
    expect("reclaim --backend dir:@bare --keep-last 0", 2, "from 1 to");
    expect("reclaim --backend dir:@bare --no-floor-check", 2, "everybody must check floors");
    expect("reclaim --backend dir:@bare --dry-run --follow", 2, "do not go together");
    expect("consume --backend dir:@bare --rank 0,0 --checkpoint a --checkpoint-kind none", 2, "expected auto or named");
    expect("consume --backend dir:@bare --rank 0,0 --checkpoint a --checkpoint-every 0", 2, "from 1 to");
}

/* Ranks at different steps: the least counts. Kept ones stay through any rule; a damaged one is told. */
static void test_checkpoints(void)
{
    expect("produce -p 1 --backend dir:@cp -n 30 --bytes 40", 0, "30 batches");
    expect("checkpoint write first 12,10,11,14 --data-ranks 2 --context-ranks 2 --keep --backend dir:@cp", 0,
           "step 10 named");
    expect("checkpoint write second 20 --backend dir:@cp", 0, "step 20 auto");
    const outcome *out = expect("checkpoint list --json --backend dir:@cp", 0, "\"rank_steps\":[12,10,11,14]}");
    CU_ASSERT_EQUAL(count_of(out->text, "\n"), 2);
    char key[100], command[300];
    CU_ASSERT_EQUAL_FATAL(sscanf(strstr(out->text, "checkpoint/"), "%99[^\"]", key), 1);
    snprintf(command, sizeof command, "inspect %s --backend dir:@cp", key);
    out = expect(command, 0, "\"first\", step 10, named, pinned, order 1, 2 x 2 ranks");
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "rank 1,0: step 11"));
    expect("reclaim --keep-last 1 --keep-versions 1 --backend dir:@cp", 0,
           "steps below 10 are gone (watermark 10); deleted 10 batches");
    expect("fsck --backend dir:@cp", 0, "2 checkpoints, 1 of them pinned, 0 of steps that are trimmed");
    expect("consume --rank 0,0 --from-checkpoint first --backend dir:@cp", 0, "20 steps");
    flip(object_path("cp", key), 70);
    expect("fsck --backend dir:@cp", 1, "wrong checksum");
    expect("checkpoint list --backend dir:@cp", 1, "wrong checksum");
    snprintf(command, sizeof command, "checkpoint release %s --backend dir:@cp", key);
    expect(command, 0, "1 released");
    expect("reclaim --backend dir:@cp --json", 0, "\"bound\":20,");
    expect("consume --rank 0,0 --from-checkpoint first --backend dir:@cp", 0,
           "10 steps"); /* there is none: from the oldest */
}

/* A moving checkpoint: the newest stays, those before it go; the next run begins there and replaces it. */
static void test_moving_checkpoint(void)
{
    expect("produce -p 1 --backend dir:@mc -n 30 --bytes 40", 0, "30 batches");
    static const char consume[] = "consume --rank 0,0 --checkpoint me --checkpoint-kind named --checkpoint-every 10 "
                                  "--from-checkpoint me --backend dir:@mc --until ";
    char command[300];
    snprintf(command, sizeof command, "%s25", consume);
    expect(command, 0, "25 steps");
    const outcome *out = expect("checkpoint list --backend dir:@mc", 0, "step 20 named");
    CU_ASSERT_EQUAL(count_of(out->text, "\n"), 1);
    snprintf(command, sizeof command, "%s30", consume);
    out = expect(command, 0, "10 steps");
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "step 20 producer 1"));
    out = expect("checkpoint list --backend dir:@mc", 0, "step 30 named");
    CU_ASSERT_EQUAL(count_of(out->text, "\n"), 1);
    expect(command, 0, "0 steps"); /* nothing to do, and nothing left behind but the checkpoint */
    out = expect("checkpoint list --backend dir:@mc", 0, "step 30 named");
    CU_ASSERT_EQUAL(count_of(out->text, "\n"), 1);
    expect("checkpoint release me --backend dir:@mc", 0, "1 released");
}

/* --- the normal case
 * --------------------------------------------------------------------------------------------------------- */

static void test_no_batches(void)
{
    expect("produce --backend dir:@none -p 4 -n 0", 0, "producer 4, epoch 1: 0 batches");
    expect("consume --backend dir:@none --rank 0,0", 0, "0 steps");
    expect("fsck --backend dir:@none --deep", 0, "every promise is kept");
    expect("inspect --backend dir:@none --json", 0, "\"entry_count\":0,\"row_count\":1,\"open_row_count\":0");
}

/* 1,001 bytes in 2 x 2 slices: 251, 250, 250, 250; the footer is 4 x 24 + 80 = 176 bytes. */
static void test_restart_goes_on(void)
{
    expect("produce --backend dir:@restart -p 3 -n 5 --bytes 1001 --data-ranks 2 --context-ranks 2", 0,
           "epoch 1: 5 batches (5885 bytes) published, source offsets 0 to 5");
    expect("produce --backend dir:@restart -p 3 -n 12 --bytes 1001 --data-ranks 2 --context-ranks 2 --json", 0,
           "\"epoch\":2,\"first_offset\":5,\"next_offset\":12,\"batches\":7,");
    expect("produce --backend dir:@restart -p 3 -n 12", 0, "epoch 3: 0 batches");
    const outcome *out = expect("consume --backend dir:@restart --rank 0,0 --verify", 0,
                                "step 11 producer 3 epoch 2 sequence 6 source 11..12 bytes 251 crc32c ");
    CU_ASSERT_EQUAL(count_of(out->text, "step "), 12);
    /* Each step moves its footer and the slice, nothing else: (176 + 251) / 251. */
    expect("consume --backend dir:@restart --rank 0,0", 0,
           "12 steps, 3012 bytes; 5124 bytes of data moved (read amplification 1.701)");
    out = expect("consume --backend dir:@restart --rank 1,0 --from 4 --steps 2 --json --window 1", 0,
                 "{\"steps\":2,\"next_step\":6,\"slice_bytes\":500,\"moved_bytes\":852,");
    CU_ASSERT_EQUAL(count_of(out->text, "{\"step\":"), 2);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(out->text, "{\"step\":5,\"producer\":3,\"epoch\":2,\"sequence\":0,\"source_begin\":5,"));
    expect("consume --backend dir:@restart --rank 0,0 --from 99", 0, "0 steps");
    expect("consume --backend dir:@restart --rank 2,0", 1,
           "no slice for data rank 2, context rank 0: the object has 2 x 2");
    expect("fsck --backend dir:@restart --verify --json", 0,
           "\"verified_slices\":48,\"verified_bytes\":12012,\"orphans\":0,");
    expect("inspect --backend dir:@restart data/3/2-0.tgb", 0, "source offsets 5 to 6, 2 x 2 ranks");
    expect("inspect --backend dir:@restart head --entries 1", 0, "entries: 12, the last 1 shown");
    expect("inspect --backend dir:@restart 1 --json", 0, "\"version\":1,");
}

static void test_layouts_and_discoveries(void)
{
    static const char *const layouts[] = {"full", "full-tail"}, *const discoveries[] = {"list", "probe", "gallop"};
    char arguments[256];
    for (uint32_t i = 0; i < 6; i++) {
        snprintf(arguments, sizeof arguments,
                 "produce --backend dir:@kinds -p %u -n 4 --bytes 64 --layout %s --discovery %s", i, layouts[i / 3],
                 discoveries[i % 3]);
        expect(arguments, 0, "4 batches");
        snprintf(arguments, sizeof arguments,
                 "consume --backend dir:@kinds --rank 0,0 --verify --layout %s --discovery %s%s", layouts[i / 3],
                 discoveries[i % 3], i % 2 ? " --no-floor-check" : "");
        char summary[32];
        snprintf(summary, sizeof summary, "%u steps, %u bytes", 4 * (i + 1), 256 * (i + 1));
        expect(arguments, 0, summary);
    }
    expect("fsck --backend dir:@kinds --deep", 0, "24 steps, 6 producers (0 open)");
}

static void test_synthetic_content(void)
{
    uint8_t longer[100], shorter[37], other[100];
    ls_synthetic_fill(1, 2, 3, 4, longer, sizeof longer);
    ls_synthetic_fill(1, 2, 3, 4, shorter, sizeof shorter);
    CU_ASSERT_EQUAL(memcmp(longer, shorter, sizeof shorter), 0);
    CU_ASSERT_EQUAL(ls_synthetic_difference(1, 2, 3, 4, longer, sizeof longer), UINT64_MAX);
    for (size_t at = 0; at < sizeof longer; at++) {
        longer[at] ^= 1;
        CU_ASSERT_EQUAL(ls_synthetic_difference(1, 2, 3, 4, longer, sizeof longer), at);
        longer[at] ^= 1;
    }
    static const uint64_t coordinates[5][4] = {{2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}, {1, 2, 4, 3}};
    for (int i = 0; i < 5; i++) {
        ls_synthetic_fill(coordinates[i][0], coordinates[i][1], (uint32_t)coordinates[i][2],
                          (uint32_t)coordinates[i][3], other, 100);
        CU_ASSERT_NOT_EQUAL(memcmp(longer, other, 8), 0);
    }
    CU_ASSERT_EQUAL(ls_slice_length(10, 4, 0) + ls_slice_length(10, 4, 1), 6);
    CU_ASSERT_EQUAL(ls_slice_length(10, 4, 2) + ls_slice_length(10, 4, 3), 4);
    CU_ASSERT_EQUAL(ls_slice_length(3, 4, 3), 0);
}

static void make_input(const char *name, size_t length, uint64_t what)
{
    uint8_t *bytes = ls_allocate(length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    ls_synthetic_fill(1000 + what, 0, 0, 0, bytes, length); /* of no producer here */
    write_file(path_of(name), bytes, length);
    ls_free(bytes);
}

static void join_files(const char *name, const char *first, const char *second)
{
    size_t first_length, second_length;
    uint8_t *a = read_file(path_of(first), &first_length), *b = read_file(path_of(second), &second_length);
    uint8_t *both = ls_allocate(first_length + second_length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(both);
    memcpy(both, a, first_length);
    memcpy(both + first_length, b, second_length);
    write_file(path_of(name), both, first_length + second_length);
    ls_free(a);
    ls_free(b);
    ls_free(both);
}

/* 10,000 and 777 bytes in batches of 3,000: the fourth batch spans both files, and a start in between goes on inside.
 */
static void test_files(void)
{
    make_input("first", 10000, 1);
    make_input("second", 777, 2);
    join_files("both", "first", "second");
    expect("produce --backend dir:@files -p 1 --bytes 3000 -n 2 @first @second", 0,
           "2 batches (6208 bytes) published, source offsets 0 to 6000");
    expect("produce --backend dir:@files -p 1 --bytes 3000 @first @second", 0,
           "2 batches (4985 bytes) published, source offsets 6000 to 10777");
    expect("produce --backend dir:@files -p 1 --bytes 3000 @first @second", 0, "0 batches");
    expect("consume --backend dir:@files --rank 0,0 --output @files.out", 0, "4 steps, 10777 bytes");
    CU_ASSERT_TRUE(same_bytes(path_of("files.out"), path_of("both")));
    expect("produce --backend dir:@files -p 1 @second", 2,
           "hold fewer bytes than this producer has already published (10777)");
    expect("fsck --backend dir:@files --deep", 0, "every promise is kept");
    expect("fsck --backend dir:@files --verify", 1, "differs from the synthetic source at its byte 0");
    expect("consume --backend dir:@files --rank 0,0 --verify", 1,
           "step 0: the slice of producer 1, source offset 0 differs");
}

/* A grid wider than the last batch: its last slices are empty. */
static void test_empty_slices(void)
{
    make_input("tiny", 11, 3);
    expect("produce --backend dir:@tiny-lake -p 1 --bytes 8 --context-ranks 4 @tiny", 0, "2 batches");
    expect("consume --backend dir:@tiny-lake --rank 0,3", 0, "2 steps, 2 bytes");
    expect("consume --backend dir:@tiny-lake --rank 0,2", 0, "2 steps, 3 bytes");
    expect("consume --backend dir:@tiny-lake --rank 0,3 --output @tiny.out", 0, "2 steps, 2 bytes");
    expect("fsck --backend dir:@tiny-lake --deep", 0, "8 slices (11 bytes) agree");
}

static void test_standard_input(void)
{
    make_input("stream-first", 5000, 4);
    make_input("stream-second", 200000, 5);
    join_files("stream", "stream-first", "stream-second");
    expect_with_input("produce --backend dir:@piped -p 1 --bytes 2000 --source -", "stream-first", 0,
                      "3 batches (5312 bytes) published, source offsets 0 to 5000");
    expect_with_input("produce --backend dir:@piped -p 1 --bytes 2000 --source -", "stream", 0,
                      "100 batches (210400 bytes) published, source offsets 5000 to 205000");
    expect("consume --backend dir:@piped --rank 0,0 --output @piped.out", 0, "103 steps, 205000 bytes");
    CU_ASSERT_TRUE(same_bytes(path_of("piped.out"), path_of("stream")));
    expect_with_input("produce --backend dir:@piped -p 1 --source -", "stream-first", 2,
                      "standard input ended 200000 bytes before the 205000");
    /* Slices on standard output, and nothing else there: the summary goes to standard error, here the same pipe. */
    const outcome *out = expect("consume --backend dir:@piped --rank 0,0 --steps 1 --output -", 0, "");
    size_t length;
    uint8_t *bytes = read_file(path_of("stream"), &length);
    CU_ASSERT_EQUAL(memcmp(out->text, bytes, 2000), 0);
    CU_ASSERT_EQUAL(memcmp(out->text + 2000, "1 steps, 2000 bytes", 19), 0);
    ls_free(bytes);
    expect("fsck --backend dir:@piped --deep", 0, "every promise is kept");
}

/* --- several at once, and signals
 * ---------------------------------------------------------------------------------------------- */

static void test_follow_from_an_empty_folder(void)
{
    mkdir(path_of("follow"), 0777);
    process consumer = start("consume --backend dir:@follow --rank 0,0 --follow --steps 6 --poll 0.02 --verify", NULL);
    expect("produce --backend dir:@follow -p 1 -n 6 --bytes 100", 0, "6 batches");
    judge("consume --follow", await(consumer), 0, "6 steps, 600 bytes");
}

static void test_fenced(void)
{
    process first = start("produce --backend dir:@fenced -p 9 --bytes 100 --rate 100", NULL);
    await_file(object_path("fenced", "data/9/1-3.tgb"));
    expect("produce --backend dir:@fenced -p 9 --bytes 100 -n 3", 0, "epoch 2: 0 batches");
    judge("produce, fenced", await(first), 1, "fenced: another process took over producer 9");
    expect("fsck --backend dir:@fenced --verify", 0, "1 producers (0 open)");
}

/* A zombie: stopped, replaced, and awake again. What it still does is in vain. */
static void test_zombie(void)
{
    process first = start("produce --backend dir:@zombie -p 9 --bytes 100 --rate 50", NULL);
    await_file(object_path("zombie", "data/9/1-3.tgb"));
    kill(first.pid, SIGSTOP);
    expect("produce --backend dir:@zombie -p 9 --bytes 100 -n 200", 0, "epoch 2: ");
    kill(first.pid, SIGCONT);
    judge("produce, zombie", await(first), 1, "fenced");
    expect("consume --backend dir:@zombie --rank 0,0 --verify", 0, "200 steps");
    expect("fsck --backend dir:@zombie --verify", 0, "1 producers (0 open)");
}

static void test_stop_by_signal(void)
{
    process producer = start("produce --backend dir:@stop -p 2 --bytes 100 --rate 100", NULL);
    await_file(object_path("stop", "data/2/1-2.tgb"));
    process consumer = start("consume --backend dir:@stop --rank 0,0 --follow --poll 0.02 --output @stop.out", NULL);
    await_file(path_of("stop.out"));
    kill(producer.pid, SIGTERM);
    judge("produce, SIGTERM", await(producer), 0, "finished");
    kill(consumer.pid, SIGINT);
    judge("consume, SIGINT", await(consumer), 0, "read amplification");
    const outcome *out = expect("fsck --backend dir:@stop --verify", 0, "1 producers (0 open)");
    CU_ASSERT_PTR_NULL(strstr(out->text, "orphans")); /* all that was made is published */
}

/* A policy that will not try for an hour after its first win: the first signal waits for it, the second does not. */
static void test_second_signal(void)
{
    process producer =
        start("produce --backend dir:@twice -p 2 --bytes 100 -n 1 --policy fixed --set interval_s=3600", NULL);
    await_file(object_path("twice", "data/2/1-0.tgb"));
    kill(producer.pid, SIGINT);
    usleep(250000);
    CU_ASSERT_EQUAL(waitpid(producer.pid, &(int){0}, WNOHANG), 0);
    kill(producer.pid,
         SIGTERM); /* not SIGINT: should the first not have been seen yet, two of one number would be one */
    judge("produce, SIGINT and SIGTERM", await(producer), 130, "interrupted");
    expect("fsck --backend dir:@twice", 0,
           "1 orphans (204 bytes): uploaded, named by no version; 1 of them may still be committed");
    expect("produce --backend dir:@twice -p 2 --bytes 100 -n 1", 0, "epoch 2: 1 batches");
    expect("fsck --backend dir:@twice --verify", 0, "; 0 of them may still be committed");
}

/* Eight producers, four consumers, ten kills: tests/faults/kill_loop.sh says what is checked. */
static void test_kills(void)
{
    char command[1024];
    mkdir(path_of("kills"), 0777);
    snprintf(command, sizeof command, "tests/faults/kill_loop.sh dir:%s 10 1 >%s 2>&1", path_of("kills"),
             path_of("kills.out"));
    int status = system(command);
    if (status != 0) {
        size_t length;
        uint8_t *text = read_file(path_of("kills.out"), &length);
        text[length] = 0;
        printf("\n      %s\n", (char *)text);
        ls_free(text);
    }
    CU_ASSERT_EQUAL(status, 0);
}

/* --- damage
 * --------------------------------------------------------------------------------------------------------------------
 */

/* Five batches of one producer, 2 x 1 ranks of 50 bytes, each its own commit; versions 1 (join) to 6 or more. */
static void make_lake(const char *name)
{
    char arguments[256];
    for (int n = 1; n <= 5; n++) {
        snprintf(arguments, sizeof arguments, "produce --backend dir:@%s -p 1 -n %d --bytes 100 --data-ranks 2", name,
                 n);
        expect(arguments, 0, "1 batches");
    }
}

static uint64_t newest_version(const char *lake)
{
    uint64_t version = 0;
    while (access(version_path(lake, version + 1), F_OK) == 0) version++;
    CU_ASSERT_FATAL(version > 4);
    return version;
}

static void test_damaged_manifest(void)
{
    make_lake("flipped");
    uint64_t newest = newest_version("flipped");
    char part[128];
    flip(version_path("flipped", newest), 60); /* inside the first entry */
    snprintf(part, sizeof part, "manifest/%020" PRIu64 ": manifest: entries of steps 0 to 5 (offset 32) are damaged",
             newest);
    expect("fsck --backend dir:@flipped", 1, part);
    expect("fsck --backend dir:@flipped --json", 1, "{\"sound\":false,");
    expect("inspect --backend dir:@flipped", 1, part);
    snprintf(part, sizeof part, "consume: get of 'manifest/%020" PRIu64 "': manifest: entries", newest);
    expect("consume --backend dir:@flipped --rank 0,0", 1, part);
    snprintf(part, sizeof part, "produce: get of 'manifest/%020" PRIu64 "': manifest: entries", newest);
    expect("produce --backend dir:@flipped -p 2 -n 1", 1, part);
    CU_ASSERT_EQUAL(truncate(version_path("flipped", newest), 40), 0);
    expect("fsck --backend dir:@flipped", 1, "40 bytes");
    expect("inspect --backend dir:@flipped", 1, "40 bytes");
    CU_ASSERT_EQUAL(truncate(version_path("flipped", newest), 0), 0);
    snprintf(part, sizeof part, "manifest/%020" PRIu64 ": ", newest);
    expect("fsck --backend dir:@flipped", 1, part);
    CU_ASSERT_EQUAL(unlink(version_path("flipped", newest)), 0);
    expect("fsck --backend dir:@flipped --deep", 0, "every promise is kept"); /* the newest one gone: nobody can know */
}

static void test_missing_version(void)
{
    make_lake("gap");
    CU_ASSERT_EQUAL(unlink(version_path("gap", 2)), 0);
    CU_ASSERT_EQUAL(unlink(version_path("gap", 3)), 0);
    const outcome *out = expect("fsck --backend dir:@gap", 1, "I1: versions 2 to 3 are missing below version 4");
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "\n1 problems\n"));
    CU_ASSERT_EQUAL(unlink(version_path("gap", 1)), 0);
    expect("fsck --backend dir:@gap", 1, "I1: versions 1 to 3 are missing below version 4");
    /* With a floor these versions are void, and nothing is wrong. */
    mkdir(path_of("gap/floor"), 0777);
    write_file(object_path("gap", "floor/00000000000000000004"), "", 0);
    expect("fsck --backend dir:@gap --deep", 0, "every promise is kept");
    expect("inspect --backend dir:@gap floor/00000000000000000004", 0, "versions below 4 are void");
    expect("consume --backend dir:@gap --rank 1,0 --verify", 0, "5 steps, 250 bytes");
}

static void test_lost_versions(void)
{
    make_lake("lost");
    char command[600];
    snprintf(command, sizeof command, "rm -r %s", path_of("lost/manifest"));
    CU_ASSERT_EQUAL(system(command), 0);
    expect("fsck --backend dir:@lost", 1, "5 data objects and no manifest version");
}

static void test_damaged_batch(void)
{
    make_lake("batch");
    const char *names[5];
    char keys[5][64];
    for (int i = 0; i < 5; i++) { /* each start made one batch in an epoch of its own */
        snprintf(keys[i], sizeof keys[i], "data/1/%d-0.tgb", i + 1);
        names[i] = keys[i];
        CU_ASSERT_EQUAL_FATAL(access(object_path("batch", names[i]), F_OK), 0);
    }
    flip(object_path("batch", names[1]), 70);                        /* inside the slice of rank 1,0 */
    expect("fsck --backend dir:@batch", 0, "every promise is kept"); /* names and sizes are right */
    expect("fsck --backend dir:@batch --deep", 1, "data/1/2-0.tgb: ");
    expect("consume --backend dir:@batch --rank 0,0 --verify", 0, "5 steps");
    expect("consume --backend dir:@batch --rank 1,0", 1, "step 1: get of 'data/1/2-0.tgb'");
    expect("inspect --backend dir:@batch data/1/2-0.tgb", 1, "the slice at byte offset 50");
    flip(object_path("batch", names[2]), 110); /* inside the footer */
    expect("consume --backend dir:@batch --rank 0,0", 1, "step 2: get of 'data/1/3-0.tgb'");
    expect("inspect --backend dir:@batch data/1/3-0.tgb", 1, "slice records at offset 100 are damaged");
    expect("fsck --backend dir:@batch --deep", 1, "2 problems");
    CU_ASSERT_EQUAL(truncate(object_path("batch", names[3]), 100), 0);
    expect("fsck --backend dir:@batch", 1, "I6: step 3 names data/1/4-0.tgb of 228 bytes, the store holds 100");
    expect("consume --backend dir:@batch --rank 0,0 --from 3", 1, "data/1/4-0.tgb");
    CU_ASSERT_EQUAL(unlink(object_path("batch", names[3])), 0);
    expect("fsck --backend dir:@batch", 1, "I6: step 3 names data/1/4-0.tgb, which the store does not hold");
    expect("consume --backend dir:@batch --rank 0,0 --from 3", 1, "is not there: reclaimed just now, or lost");
    /* Another batch under this name: intact, and not the one that was committed. */
    CU_ASSERT_EQUAL(link(object_path("batch", names[4]), object_path("batch", names[3])), 0);
    expect("consume --backend dir:@batch --rank 0,0 --from 3", 1, "the object calls itself 'data/1/5-0.tgb'");
    expect("inspect --backend dir:@batch data/1/4-0.tgb", 1, "the object calls itself data/1/5-0.tgb");
    expect("fsck --backend dir:@batch --deep", 1, "data/1/4-0.tgb: ");
}

static void test_orphans_and_foreigners(void)
{
    make_lake("strange");
    CU_ASSERT_EQUAL(link(object_path("strange", "data/1/1-0.tgb"), object_path("strange", "data/1/1-77.tgb")), 0);
    write_file(object_path("strange", "data/notes"), "hello", 5);
    write_file(object_path("strange", "manifest/1"), "hello", 5);
    const outcome *out = expect("fsck --backend dir:@strange --deep", 0,
                                "1 orphans (228 bytes): uploaded, named by no version; 0 of them");
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "2 foreign objects, ignored by everyone:\ndata/notes\nmanifest/1\n"));
    expect("fsck --backend dir:@strange --json", 0,
           "\"foreign_count\":2,\"foreign\":[\"data/notes\",\"manifest/1\"],\"problems\":[]}");
    expect("produce --backend dir:@strange -p 1 -n 6 --bytes 100 --data-ranks 2", 0, "1 batches");
    expect("consume --backend dir:@strange --rank 0,0 --verify", 0, "6 steps");
}

/* Versions that are intact and break a promise: what a store that ignores the condition would leave behind. */
static void plant(const char *lake, const ls_commit *commit, uint64_t low_watermark)
{
    uint64_t version = newest_version(lake);
    size_t length;
    uint8_t *bytes = read_file(version_path(lake, version), &length);
    ls_manifest *parent = NULL, *child = NULL;
    ls_error error;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(bytes, length, version, &parent, &error), LS_OK);
    ls_free(bytes);
    if (commit != NULL) CU_ASSERT_EQUAL_FATAL(ls_manifest_append(parent, commit, &child), LS_OK);
    if (commit == NULL)
        CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(parent, (ls_commit_id){1, 1}, low_watermark, 0, &child), LS_OK);
    length = ls_manifest_encoded_bytes(child);
    bytes = ls_allocate(length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_encode(child, bytes, length), LS_OK);
    write_file(version_path(lake, version + 1), bytes, length);
    ls_free(bytes);
    ls_manifest_release(parent);
    ls_manifest_release(child);
}

static void test_broken_promises(void)
{
    make_lake("broken");
    ls_entry again = {.producer = 1,
                      .epoch = 6,
                      .sequence = 0,
                      .source_begin = 2,
                      .source_end = 3,
                      .size_bytes = 228,
                      .footer_bytes = 128};
    ls_commit commit = {.id = {5, 5},
                        .slot = 0,
                        .entries = &again,
                        .entry_count = 1,
                        .row = {.producer = 1, .epoch = 6, .next_source_offset = 5}};
    plant("broken", &commit, 0);
    const outcome *out = expect("fsck --backend dir:@broken", 1,
                                "I4: step 5 of producer 1 holds source offsets 2 to 3, expected to begin at 5");
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "I6: step 5 names data/1/6-0.tgb, which the store does not hold"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out->text, "\n2 problems\n"));
    plant("broken", NULL, 3); /* sound by itself: each fault is told once */
    expect("fsck --backend dir:@broken", 1, "\n2 problems\n");
    ls_commit backwards = {.id = {7, 1}, .slot = 0, .row = {.producer = 1, .epoch = 2, .next_source_offset = 5}};
    plant("broken", &backwards, 0);
    expect("fsck --backend dir:@broken", 1, "I5: the row of producer 1 went from epoch 6 (open) to epoch 2");
    expect("fsck --backend dir:@broken", 1, "\n3 problems\n");
}

/* The next version of a lake of five steps, with this watermark and trim point. */
static void move_trim_point(const char *lake, uint64_t low_watermark, uint64_t trim_step)
{
    uint64_t version = newest_version(lake);
    size_t length;
    uint8_t *bytes = read_file(version_path(lake, version), &length);
    ls_manifest *parent = NULL, *child = NULL;
    CU_ASSERT_EQUAL_FATAL(ls_manifest_decode(bytes, length, version, &parent, NULL), LS_OK);
    ls_free(bytes);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_trim(parent, (ls_commit_id){1, 1}, low_watermark, trim_step, &child), LS_OK);
    length = ls_manifest_encoded_bytes(child);
    bytes = ls_allocate(length);
    CU_ASSERT_EQUAL_FATAL(ls_manifest_encode(child, bytes, length), LS_OK);
    write_file(version_path(lake, version + 1), bytes, length);
    ls_free(bytes);
    ls_manifest_release(parent);
    ls_manifest_release(child);
}

static void test_trimmed_lake(void)
{
    make_lake("trimmed");
    move_trim_point("trimmed", 2, 2);
    CU_ASSERT_EQUAL(unlink(object_path("trimmed", "data/1/1-0.tgb")), 0);
    expect("fsck --backend dir:@trimmed --deep", 0, "every promise is kept");
    expect("consume --backend dir:@trimmed --rank 0,0 --from 0", 1,
           "step 0 has been reclaimed; the oldest one left is 2");
    const outcome *out = expect("consume --backend dir:@trimmed --rank 0,0 --verify", 0, "3 steps");
    CU_ASSERT_EQUAL(memcmp(out->text, "step 2 ", 7), 0);
}

/* A reclaimer died between its deletes and the trim: steps 0 and 1 are listed and gone. The next one finishes. */
static void test_half_reclaimed_lake(void)
{
    make_lake("half");
    expect("checkpoint write two 2 --backend dir:@half", 0, "step 2 auto");
    move_trim_point("half", 2, 0);
    CU_ASSERT_EQUAL(unlink(object_path("half", "data/1/1-0.tgb")), 0);
    expect("fsck --backend dir:@half --deep", 0, "trimmed below step 0; 1 steps are reclaimed and still listed");
    expect("consume --backend dir:@half --rank 0,0 --from 0", 1, "reclaimed just now, or lost");
    const outcome *out = expect("consume --backend dir:@half --rank 0,0 --verify", 0, "3 steps");
    CU_ASSERT_EQUAL(memcmp(out->text, "step 2 ", 7), 0);
    expect("checkpoint write one 1 --backend dir:@half", 1, "may be reclaimed already: the watermark stands at 2");
    expect("reclaim --backend dir:@half --keep-last 1", 0, "steps below 2 are gone");
    expect("fsck --backend dir:@half --deep", 0, "trimmed below step 2; 0 steps are reclaimed and still listed");
}

/* --- a store that refuses
 * -------------------------------------------------------------------------------------------------------- */

static void test_folder_that_cannot_be_written(void)
{
    bool root = geteuid() == 0; /* to whom modes mean nothing: a file system in which nobody makes files */
    mkdir(path_of("locked"), 0777);
    CU_ASSERT_EQUAL(chmod(path_of("locked"), 0555), 0);
    expect(root ? "produce --backend dir:/sys -p 1 -n 1" : "produce --backend dir:@locked -p 1 -n 1", 3,
           "probe of put-if-absent");
    chmod(path_of("locked"), 0777);
    write_file(path_of("plain"), "x", 1);
    expect("produce --backend dir:@plain -p 1 -n 1", 3, "plain");
    expect("consume --backend dir:@plain --rank 0,0", 2, "there is no such folder");
    expect("consume --backend dir:@locked --rank 0,0 --output /dev/full", 0, "0 steps");
    make_lake("full");
    expect("consume --backend dir:@full --rank 0,0 --output /dev/full", 3, "/dev/full: No space left on device");
}

LS_SUITE(dataplane, {"usage", test_usage}, {"checkpoint usage", test_checkpoint_usage},
         {"checkpoints", test_checkpoints}, {"a moving checkpoint", test_moving_checkpoint},
         {"no batches", test_no_batches}, {"a restart goes on", test_restart_goes_on},
         {"layouts and discoveries", test_layouts_and_discoveries}, {"synthetic content", test_synthetic_content},
         {"files", test_files}, {"empty slices", test_empty_slices}, {"standard input", test_standard_input},
         {"follow from an empty folder", test_follow_from_an_empty_folder}, {"fenced", test_fenced},
         {"zombie", test_zombie}, {"stop by a signal", test_stop_by_signal}, {"second signal", test_second_signal},
         {"kills", test_kills}, {"damaged manifest", test_damaged_manifest}, {"missing version", test_missing_version},
         {"lost versions", test_lost_versions}, {"damaged batch", test_damaged_batch},
         {"orphans and foreigners", test_orphans_and_foreigners}, {"broken promises", test_broken_promises},
         {"trimmed lake", test_trimmed_lake}, {"half reclaimed lake", test_half_reclaimed_lake},
         {"a folder that cannot be written", test_folder_that_cannot_be_written})
