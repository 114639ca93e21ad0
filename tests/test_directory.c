/* test_directory.c - the directory store: conformance, names on disk, no way out of the root, races between processes,
 * full and read-only disks, leftovers of crashes, and files that are not ours.
 */
#include "tests/store_conformance.h"
#include "tests/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 512

static ls_store *open_in(void *context)
{
    ls_error error = {""};
    ls_store *store = ls_store_open_directory(context, &error);
    if (store == NULL) fprintf(stderr, "  %s\n", error.text);
    return store;
}

/* What the tests see through the file system, not through the store. */

static const char *below(const char *root, const char *name, char path[PATH_BYTES])
{
    CU_ASSERT_FATAL(snprintf(path, PATH_BYTES, "%s/%s", root, name) < PATH_BYTES);
    return path;
}

static bool is_file(const char *root, const char *name)
{
    char path[PATH_BYTES];
    struct stat status;
    return lstat(below(root, name, path), &status) == 0 && S_ISREG(status.st_mode);
}

static void write_file(const char *root, const char *name, const char *text)
{
    char path[PATH_BYTES];
    FILE *file = fopen(below(root, name, path), "w");
    CU_ASSERT_PTR_NOT_NULL(file);
    if (file == NULL) return;
    fputs(text, file);
    fclose(file);
}

static int entries_in(const char *root, const char *name)
{
    char path[PATH_BYTES];
    DIR *directory = opendir(below(root, name, path));
    int count = 0;
    if (directory == NULL) return -1;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* Where thousands of fsyncs cost nothing, if the machine has such a place: the two longest tests run there, the others
 * on disk. */
static void make_fast_folder(const char *name, char root[PATH_BYTES])
{
    snprintf(root, PATH_BYTES, "/dev/shm/lakestream-%s-XXXXXX", name);
    if (mkdtemp(root) == NULL) snprintf(root, PATH_BYTES, "%s", ls_test_path(name));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_folder(const char *root)
{
    CU_ASSERT_EQUAL(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Conformance, and no descriptor left open by any of it. */
static void test_conforms(void)
{
    char root[PATH_BYTES];
    int descriptors = entries_in("/proc/self", "fd");
    make_fast_folder("directory", root);
    ls_store_conformance(open_in, root);
    CU_ASSERT(descriptors > 0);
    CU_ASSERT_EQUAL(entries_in("/proc/self", "fd"), descriptors);
    CU_ASSERT_EQUAL(entries_in(root, ".lakestream%tmp"), 0);
    remove_folder(root);
}

static ls_store *open_new(const char *name, char root[PATH_BYTES])
{
    snprintf(root, PATH_BYTES, "%s", ls_test_path(name));
    ls_store *store = open_in(root);
    CU_ASSERT_PTR_NOT_NULL(store);
    return store;
}

static store_answer ask(ls_store *store, ls_operation operation, const char *key)
{
    ls_object_request request = {.operation = operation, .key = key, .list_limit = 100, .body = "x", .body_bytes = 1};
    return store_ask(store, &request);
}

static void expect(ls_store *store, ls_operation operation, const char *key, ls_reply_status status,
                   const char *message)
{
    store_answer answer = ask(store, operation, key);
    CU_ASSERT_EQUAL(answer.status, status);
    if (answer.status != status) {
        fprintf(stderr, "  '%s' answered '%s' (%s)\n", key, ls_reply_status_name(answer.status), answer.message);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(answer.message, message));
    store_answer_clear(&answer);
}

/* The layout is a published format: other programs may read it. */
static void test_names_on_disk(void)
{
    char root[PATH_BYTES], path[PATH_BYTES];
    ls_store *store = open_new("names", root);
    static const char *const keys[][2] = {
        {"manifest/00000000000000000001", "manifest/00000000000000000001%"},
        {"a", "a%"},
        {"a/b", "a/b%"},
        {"100%/x%", "100%25/x%25%"},
        {"line\nfeed\x01\x7f", "line%0Afeed%01%7F%"},
        {".lakestream%tmp", ".lakestream%25tmp%"},
        {".lakestream%tmp/mine", ".lakestream%25tmp/mine%"},
        {"\xc3\xa9 +", "\xc3\xa9 +%"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        CU_ASSERT_EQUAL(store_put(store, keys[i][0], "x", 1, true), LS_REPLY_OK);
        CU_ASSERT(is_file(root, keys[i][1]));
        CU_ASSERT(store_holds(store, keys[i][0], "x", 1));
    }
    static const char *const listed[] = {
        ".lakestream%tmp", ".lakestream%tmp/mine", "100%/x%", "a", "a/b", "line\nfeed\x01\x7f",
        "manifest/00000000000000000001", "\xc3\xa9 +"};
    CU_ASSERT(store_lists(store, "", "", listed, 8));
    CU_ASSERT_EQUAL(entries_in(root, ".lakestream%tmp"), 0);
    struct stat status;
    CU_ASSERT(stat(below(root, "a%", path), &status) == 0 && status.st_nlink == 1);
    ls_store_destroy(store);
}

/* Each part may have 254 bytes as written, an escape counting three. */
static void test_long_parts(void)
{
    char root[PATH_BYTES], key[LS_STORE_KEY_BYTES_MAX + 1];
    ls_store *store = open_new("long", root);
    memset(key, 'k', sizeof key);
    key[254] = '\0';
    CU_ASSERT_EQUAL(store_put(store, key, "x", 1, true), LS_REPLY_OK);
    CU_ASSERT(store_holds(store, key, "x", 1));
    key[254] = 'k';
    key[255] = '\0';
    for (int operation = LS_GET; operation <= LS_DELETE; operation++) {
        expect(store, (ls_operation)operation, key, LS_REPLY_INVALID, "at most 254 bytes");
    }
    memset(key, '%', 85); /* 3 * 84 + 1 = 253 */
    key[84] = '\0';
    CU_ASSERT_EQUAL(store_put(store, key, "x", 1, true), LS_REPLY_OK);
    key[84] = '%';
    key[85] = '\0';
    expect(store, LS_PUT, key, LS_REPLY_INVALID, "at most 254 bytes");
    memset(key, 'k', sizeof key);
    key[255] = '/';
    key[257] = '\0';
    CU_ASSERT_EQUAL(store_put(store, key, "x", 1, true), LS_REPLY_OK); /* a folder needs no mark: 255 */
    key[255] = 'k';
    key[256] = '/';
    key[257] = 'k';
    key[258] = '\0';
    expect(store, LS_PUT, key, LS_REPLY_INVALID, "too long for a file name");
    expect(store, LS_GET, key, LS_REPLY_INVALID, "too long for a file name");
    ls_store_destroy(store);
}

/* Neither keys, nor list prefixes, nor symbolic links lead out of the root. */
static void test_no_way_out(void)
{
    char outside[PATH_BYTES], root[PATH_BYTES], path[PATH_BYTES];
    snprintf(outside, sizeof outside, "%s", ls_test_path("outside"));
    CU_ASSERT_EQUAL(mkdir(outside, 0777), 0);
    write_file(outside, "secret%", "secret");
    ls_store *store = open_new("outside/root", root);
    CU_ASSERT_EQUAL(store_put(store, "inside", "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(symlink("..", below(root, "up", path)), 0);
    CU_ASSERT_EQUAL(symlink("../secret%", below(root, "link%", path)), 0);
    static const char *const inside[] = {"inside"};
    CU_ASSERT(store_lists(store, "", "", inside, 1));
    static const char *const prefixes[] = {"..", "../", "../s", "up", "up/", "./", "inside/../", "a/../../"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        CU_ASSERT(store_lists(store, prefixes[i], "", NULL, 0));
    expect(store, LS_GET, "up/secret", LS_REPLY_NOT_FOUND, "no object");
    expect(store, LS_HEAD, "link", LS_REPLY_INVALID, "");
    expect(store, LS_PUT, "up/new", LS_REPLY_INVALID, "folder");
    expect(store, LS_DELETE, "up/secret", LS_REPLY_OK, "");
    CU_ASSERT(is_file(outside, "secret%"));
    CU_ASSERT_EQUAL(store_put(store, "link", "x", 1, false),
                    LS_REPLY_OK); /* replaces the link, not what it points to */
    CU_ASSERT(store_holds(store, "link", "x", 1));
    CU_ASSERT_EQUAL(entries_in(outside, "."), 2);
    ls_store_destroy(store);
}

/* Things that other programs leave in the directory are no objects and do no harm. */
static void test_foreign_files(void)
{
    char root[PATH_BYTES], path[PATH_BYTES];
    ls_store *store = open_new("foreign", root);
    CU_ASSERT_EQUAL(store_put(store, "data/1", "x", 1, true), LS_REPLY_OK);
    static const char *const names[] = {"README",    "%%",        "%",       "bad%2", "bad%2%",
                                        "lower%2a%", "plain%41%", "nul%00%", "\xff%", "data/note"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) write_file(root, names[i], "not ours");
    CU_ASSERT_EQUAL(mkdir(below(root, "folder%", path), 0777), 0);
    CU_ASSERT_EQUAL(mkdir(below(root, "empty", path), 0777), 0);
    CU_ASSERT_EQUAL(mkfifo(below(root, "pipe%", path), 0666), 0);
    static const char *const listed[] = {"data/1"};
    CU_ASSERT(store_lists(store, "", "", listed, 1));
    expect(store, LS_GET, "README", LS_REPLY_NOT_FOUND, "no object");
    expect(store, LS_GET, "README/below", LS_REPLY_NOT_FOUND, "no object");
    expect(store, LS_GET, "pipe", LS_REPLY_INVALID, "opening the object");
    expect(store, LS_GET, "folder", LS_REPLY_INVALID, "opening the object");
    expect(store, LS_PUT, "README/below", LS_REPLY_INVALID, "making the folder");
    expect(store, LS_PUT, "README", LS_REPLY_OK, "");
    CU_ASSERT(is_file(root, "README") && is_file(root, "README%"));
    ls_store_destroy(store);
}

/* Runs in a child, whose limits and user are its own: exit code 0 if good. */
static void in_child(int (*function)(const char *root), const char *root)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(function(root));
    int status = -1;
    CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

/* In a child nobody counts CUnit's assertions: the line that fails becomes a message and a bad exit. */
#define REQUIRE(condition)                                                                      \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "  %s:%d: child: %s\n", __FILE__, __LINE__, #condition);            \
            return 1;                                                                           \
        }                                                                                       \
    } while (0)

/* A file-size limit stands in for the full disk: the write fails half way, after some bytes were taken. */
static int full_disk(const char *root)
{
    static char body[8192];
    signal(SIGXFSZ, SIG_IGN);
    ls_store *store = ls_store_open_directory(root, NULL);
    REQUIRE(store != NULL);
    REQUIRE(store_put(store, "small", "old", 3, true) == LS_REPLY_OK);
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int if_absent = 0; if_absent <= 1; if_absent++) {
        ls_object_request request = {
            .operation = LS_PUT, .key = "new/big", .body = body, .body_bytes = sizeof body, .if_absent = if_absent};
        store_answer answer = store_ask(store, &request);
        REQUIRE(answer.status == LS_REPLY_UNAVAILABLE);
        REQUIRE(strstr(answer.message, "'new/big': writing the object: ") != NULL &&
                strstr(answer.message, "ulimit") != NULL);
        store_answer_clear(&answer);
    }
    REQUIRE(store_put(store, "small", body, sizeof body, false) == LS_REPLY_UNAVAILABLE);
    REQUIRE(store_holds(store, "small", "old", 3));
    REQUIRE(store_lists(store, "new", "", NULL, 0));
    REQUIRE(entries_in(root, ".lakestream%tmp") == 0);
    REQUIRE(store_put(store, "new/big", body, 4096, true) == LS_REPLY_OK); /* just fits */
    REQUIRE(store_holds(store, "new/big", body, 4096));
    ls_store_destroy(store);
    return 0;
}

static void test_full_disk(void)
{
    char root[PATH_BYTES];
    snprintf(root, sizeof root, "%s", ls_test_path("full"));
    in_child(full_disk, root);
}

#define EXPECT_REFUSED(store, operation, key)                                   \
    do {                                                                        \
        store_answer answer = ask(store, operation, key);                       \
        REQUIRE(answer.status == LS_REPLY_DENIED);                              \
        REQUIRE(strstr(answer.message, "check the directory's owner") != NULL); \
        store_answer_clear(&answer);                                            \
    } while (0)

/* As an ordinary user, from inside the root, since the folders above are closed to others. */
static int without_permission(const char *root)
{
    REQUIRE(chdir(root) == 0);
    REQUIRE(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    ls_store *store = ls_store_open_directory(".", NULL);
    REQUIRE(store != NULL);
    REQUIRE(store_holds(store, "old", "x", 1));
    EXPECT_REFUSED(store, LS_PUT, "new");
    EXPECT_REFUSED(store, LS_PUT, "folder/new");
    EXPECT_REFUSED(store, LS_DELETE, "old");
    EXPECT_REFUSED(store, LS_GET, "closed");
    EXPECT_REFUSED(store, LS_GET, "locked/object");
    EXPECT_REFUSED(store, LS_LIST, "");
    REQUIRE(store_lists(store, "o", "", (const char *const[]){"old"}, 1)); /* the locked folder is not in the way */
    ls_error error = {""};
    REQUIRE(ls_store_open_directory("locked", &error) == NULL &&
            strstr(error.text, "'locked': Permission denied") != NULL);
    REQUIRE(ls_store_open_directory("made/here", &error) == NULL &&
            strstr(error.text, "check the directory's") != NULL);
    ls_store_destroy(store);
    return 0;
}

static void test_without_permission(void)
{
    char root[PATH_BYTES], path[PATH_BYTES];
    ls_store *store = open_new("readonly", root);
    static const char *const keys[] = {"old", "closed", "locked/object"};
    for (int i = 0; i < 3; i++) CU_ASSERT_EQUAL(store_put(store, keys[i], "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(chmod(below(root, "closed%", path), 0), 0);
    CU_ASSERT_EQUAL(chmod(below(root, "locked", path), 0), 0);
    CU_ASSERT_EQUAL(chmod(below(root, ".lakestream%tmp", path), 0555), 0);
    CU_ASSERT_EQUAL(chmod(root, 0555), 0);
    in_child(without_permission, root);
    CU_ASSERT_EQUAL(chmod(root, 0755), 0);
    CU_ASSERT_EQUAL(chmod(below(root, "locked", path), 0755), 0);
    CU_ASSERT(is_file(root, "old%"));
    ls_store_destroy(store);
}

static void test_open_failures(void)
{
    char root[PATH_BYTES], path[PATH_BYTES];
    ls_error error = {""};
    snprintf(root, sizeof root, "%s", ls_test_path("open"));
    CU_ASSERT_EQUAL(mkdir(root, 0777), 0);
    write_file(root, "file", "");
    CU_ASSERT_PTR_NULL(ls_store_open_directory(below(root, "file", path), &error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "Not a directory"));
    CU_ASSERT_PTR_NULL(ls_store_open_directory(below(root, "file/below", path), &error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, path));
    ls_store *store = ls_store_open_directory(below(root, "made//on/the/way/", path), &error);
    CU_ASSERT_PTR_NOT_NULL(store);
    ls_store_destroy(store);
    CU_ASSERT_EQUAL(access(below(root, "made/on/the/way", path), F_OK), 0);
}

/* Eight processes create the same 200 names, and note their wins in memory that they share. */
#define PROCESSES 8
#define NAMES     200

typedef struct wins {
    uint8_t of[PROCESSES][NAMES];
} wins;

static int race(ls_store *store, int number, wins *shared)
{
    char key[64], mark = (char)('A' + number);
    for (int i = 0; i < NAMES; i++) {
        snprintf(key, sizeof key, "folder-%d/%03d", i / 50, i);
        ls_reply_status status = store_put(store, key, &mark, 1, true);
        REQUIRE(status == LS_REPLY_OK || status == LS_REPLY_EXISTS);
        shared->of[number][i] = status == LS_REPLY_OK;
    }
    return 0;
}

static int race_child(const char *root, int number, int start, wins *shared)
{
    char byte;
    ls_store *store = ls_store_open_directory(root, NULL);
    REQUIRE(store != NULL);
    REQUIRE(read(start, &byte, 1) == 0); /* the parent closes its end: all begin together */
    int code = race(store, number, shared);
    ls_store_destroy(store);
    return code;
}

static void run_race(const char *root, wins *shared)
{
    int start[2];
    pid_t children[PROCESSES];
    CU_ASSERT_EQUAL(pipe(start), 0);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        close(start[1]);
        _exit(race_child(root, i, start[0], shared));
    }
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CU_ASSERT(children[i] > 0 && waitpid(children[i], &status, 0) == children[i]);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_processes_race(void)
{
    char root[PATH_BYTES], key[64];
    wins *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(shared != MAP_FAILED);
    make_fast_folder("race", root);
    run_race(root, shared);
    ls_store *store = open_in(root);
    CU_ASSERT_PTR_NOT_NULL_FATAL(store);
    for (int i = 0; i < NAMES; i++) {
        int winners = 0;
        char mark = '?';
        for (int process = 0; process < PROCESSES; process++) {
            winners += shared->of[process][i];
            if (shared->of[process][i]) mark = (char)('A' + process);
        }
        CU_ASSERT_EQUAL(winners, 1);
        snprintf(key, sizeof key, "folder-%d/%03d", i / 50, i);
        CU_ASSERT(store_holds(store, key, &mark, 1));
    }
    CU_ASSERT_EQUAL(entries_in(root, ".lakestream%tmp"), 0);
    ls_store_destroy(store);
    remove_folder(root);
    munmap(shared, sizeof *shared);
}

/* A pid that has just ended; the kernel hands it out again only after all the others. */
static long dead_process(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CU_ASSERT(child > 0 && waitpid(child, NULL, 0) == child);
    return (long)child;
}

static void plant_leftover(const char *root, const char *host, long process, int64_t age_s)
{
    char name[128], path[PATH_BYTES];
    snprintf(name, sizeof name, ".lakestream%%tmp/%s%%%ld-0", host, process);
    write_file(root, name, "half an obj");
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    CU_ASSERT_EQUAL(utimensat(AT_FDCWD, below(root, name, path), times, 0), 0);
}

static void test_leftovers(void)
{
    char root[PATH_BYTES], host[65];
    ls_store *store = open_new("leftovers", root);
    CU_ASSERT_EQUAL(store_put(store, "a", "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(gethostname(host, sizeof host), 0);
    plant_leftover(root, host, dead_process(), 60);         /* its owner is dead */
    plant_leftover(root, "elsewhere", 1, 25 * 3600);        /* too old */
    plant_leftover(root, "elsewhere", dead_process(), 3600); /* of another host, whose processes we cannot see */
    plant_leftover(root, host, (long)getpid(), 60);         /* ours */
    CU_ASSERT_EQUAL(entries_in(root, ".lakestream%tmp"), 4);
    static const char *const listed[] = {"a"};
    CU_ASSERT(store_lists(store, "", "", listed, 1));
    CU_ASSERT(store_lists(store, ".lakestream", "", NULL, 0));
    ls_store *again = open_in(root);
    CU_ASSERT_PTR_NOT_NULL(again);
    CU_ASSERT_EQUAL(entries_in(root, ".lakestream%tmp"), 2);
    CU_ASSERT_EQUAL(store_put(again, "b", "x", 1, true), LS_REPLY_OK); /* the name of our leftover is stepped over */
    ls_store_destroy(again);
    ls_store_destroy(store);
}

/* Folders and temporary folder removed by hand between two puts come back. */
static void test_folders_removed(void)
{
    char root[PATH_BYTES], path[PATH_BYTES];
    ls_store *store = open_new("removed", root);
    CU_ASSERT_EQUAL(store_put(store, "a/b/c", "x", 1, true), LS_REPLY_OK);
    CU_ASSERT_EQUAL(unlink(below(root, "a/b/c%", path)), 0);
    CU_ASSERT_EQUAL(rmdir(below(root, "a/b", path)), 0);
    CU_ASSERT_EQUAL(rmdir(below(root, "a", path)), 0);
    CU_ASSERT_EQUAL(rmdir(below(root, ".lakestream%tmp", path)), 0);
    CU_ASSERT_EQUAL(store_put(store, "a/b/d", "y", 1, true), LS_REPLY_OK);
    CU_ASSERT(store_holds(store, "a/b/d", "y", 1));
    ls_store_destroy(store);
}

LS_SUITE(directory, {"conforms", test_conforms}, {"names on disk", test_names_on_disk}, {"long parts", test_long_parts},
         {"no way out of the root", test_no_way_out}, {"foreign files", test_foreign_files},
         {"full disk", test_full_disk}, {"without permission", test_without_permission},
         {"open failures", test_open_failures}, {"eight processes, one winner", test_processes_race},
         {"leftovers of crashes", test_leftovers}, {"folders removed by hand", test_folders_removed})
