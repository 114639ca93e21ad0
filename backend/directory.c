/* directory.c - a store in a directory of a POSIX file system: durable, and atomic between processes.
 *
 * Names.  A key's parts between slashes become folders and, the last one, a file. In each part '%', control bytes and
 * DEL are written %XX (two upper-case hexadecimal digits); everything else stands as it is. A file that holds an object
 * has a '%' after its name: no folder and no escape ends so. Thus the object "a" (file "a%") and the object "a/b" (file
 * "b%" in folder "a") live side by side, files that others put here are never taken for objects, and the folder for
 * temporary files, ".lakestream%tmp", is the name of no key ("%tm" is no escape).
 *
 * Put.    1. Write the bytes to a new file in ".lakestream%tmp" and fsync it.
 *         2. If absent: link(2) it to its name, which fails with EEXIST if the name is taken; otherwise rename(2) it
 *            there. Either is atomic: a reader, and another process, sees the whole object or none.
 *         3. Remove the temporary name, fsync the folder. Only then is it answered.
 *         A folder is made on demand and its parent fsynced before anything in it is acknowledged, also when another
 *         process made it a moment ago; which folders are known durable is remembered by hash. Folders are never
 *         removed, so that nobody can lose one between making it and linking into it.
 *         A failure before step 2 took effect leaves nothing: UNAVAILABLE or DENIED. One in step 3: UNKNOWN_OUTCOME.
 *         Between steps 2 and 3 others see an object that a power failure could still take back. Whoever builds on it
 *         fsyncs the same folder in his own put, which makes both last. (After an fsync that failed, only the disk
 *         knows.)
 *
 * List.   Folders are read and sorted so that depth-first order is bytewise order of whole keys: a folder sorts as its
 *         name with a slash after it. Folders that can hold nothing wanted are not read. A page costs one pass over
 *         each folder it touches, whatever the folder's size; of the objects in it only as many names as the page needs
 *         are kept.
 *
 * Every path is walked part by part with openat and O_NOFOLLOW from the root's descriptor, so neither a key nor a
 * symbolic link leads out, and no path is ever too long. Temporary files carry host name and process: opening a store
 * removes those of dead processes of this host and those older than a day. (Should that ever hit a living one, its link
 * fails and the put is answered UNAVAILABLE.)
 */
#include "backend/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_FOLDER ".lakestream%tmp"
#define TEMPORARY_AGE_MAX_S (24 * 3600)
#define FILE_NAME_BYTES (NAME_MAX + 1)
#define HOST_BYTES 65
#define SYNCED_SLOTS 4096u

typedef struct queued {
    struct queued *next;
    ls_object_request request;
    ls_store_callback callback;
    void *context;
} queued;

typedef struct directory_store {
    ls_store base;
    int root;
    int temporary; /* -1 until the first put */
    uint64_t temporary_number;
    char host[HOST_BYTES];
    queued *first, **last;
    uint32_t in_flight;
    uint64_t synced[SYNCED_SLOTS]; /* hashes of folders whose entry in their parent is durable; direct-mapped */
    char message[512];
} directory_store;

/* Names. */

static bool is_escaped(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f || byte == '%';
}

/* Writes the file name of a key's part; false if it is longer than the file system allows. */
static bool encode_part(const char *part, size_t length, bool is_object, char name[FILE_NAME_BYTES])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)part[i];
        if (at + (is_escaped(byte) ? 3 : 1) > NAME_MAX) return false;
        if (!is_escaped(byte)) {
            name[at++] = part[i];
            continue;
        }
        name[at++] = '%';
        name[at++] = digits[byte >> 4];
        name[at++] = digits[byte & 15];
    }
    if (is_object && at + 1 > NAME_MAX) return false;
    if (is_object) name[at++] = '%';
    name[at] = '\0';
    return true;
}

static int hexadecimal(char digit)
{
    if (digit >= '0' && digit <= '9') return digit - '0';
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Reads a file name back into a part; false for every name that encode_part would not have written. */
static bool decode_name(const char *name, char part[FILE_NAME_BYTES], bool *is_object)
{
    size_t length = strlen(name), at = 0;
    if (length > NAME_MAX) return false;
    *is_object = name[length - 1] == '%';
    if (*is_object) length--;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte == '%') {
            int high = i + 2 < length ? hexadecimal(name[i + 1]) : -1;
            int low = i + 2 < length ? hexadecimal(name[i + 2]) : -1;
            if (high < 0 || low < 0 || !is_escaped((unsigned char)(high << 4 | low))) return false;
            byte = (unsigned char)(high << 4 | low);
            if (byte == '\0') return false;
            i += 2;
        } else if (is_escaped(byte)) {
            return false;
        }
        part[at++] = (char)byte;
    }
    part[at] = '\0';
    return at > 0 && strcmp(part, ".") != 0 && strcmp(part, "..") != 0;
}

/* The length of a key's folder without the slash after it; 0 when it has none. */
static size_t folder_length(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash != NULL ? (size_t)(slash - key) : 0;
}

static bool object_name(const char *key, char name[FILE_NAME_BYTES])
{
    size_t folder = folder_length(key);
    const char *part = folder > 0 ? key + folder + 1 : key;
    return encode_part(part, strlen(part), true, name);
}

/* Replies. */

static void say(directory_store *store, ls_object_reply *reply, ls_reply_status status, const char *key,
                const char *text)
{
    reply->status = status;
    snprintf(store->message, sizeof store->message, "'%.200s': %s", key, text);
    reply->message = store->message;
}

static const char *advice(int code)
{
    switch (code) {
    case ENOSPC: return "; the disk is full, make room";
    case EDQUOT: return "; the disk quota is used up, make room";
    case EFBIG: return "; a file-size limit (ulimit -f, or the file system's) was reached";
    case EROFS: return "; mount it writable or use another directory";
    case EACCES:
    case EPERM: return "; check the directory's owner and mode";
    case EMFILE: return "; raise the limit of open files (ulimit -n)";
    case ENAMETOOLONG: return "; a part of the key is too long for a file name";
    default: return "";
    }
}

/* For failures that certainly had no effect. */
static void say_errno(directory_store *store, ls_object_reply *reply, const char *key, const char *doing, int code)
{
    char text[256];
    switch (code) {
    case EROFS:
    case EACCES:
    case EPERM: reply->status = LS_REPLY_DENIED; break;
    case ENAMETOOLONG:
    case ENOTDIR:
    case ELOOP:
    case EISDIR: reply->status = LS_REPLY_INVALID; break;
    default: reply->status = LS_REPLY_UNAVAILABLE; break;
    }
    snprintf(text, sizeof text, "%s: %s%s", doing, strerror(code), advice(code));
    say(store, reply, reply->status, key, text);
}

/* Folders. */

static int open_directory_at(int folder, const char *name)
{
    return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int close_keeping_errno(int file)
{
    int code = errno;
    close(file);
    errno = code;
    return -1;
}

/* Some network file systems know no fsync of a folder and say EINVAL: there its entries are durable or nothing is. */
static bool sync_folder(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL;
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a (Fowler, Noll, Vo) */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)text[i]) * UINT64_C(1099511628211);
    return hash | 1; /* 0 marks an empty slot */
}

/* Opens one folder below parent, making it if need be, and sees to it that its entry there is durable. */
static int make_folder_at(directory_store *store, int parent, const char *name, uint64_t hash)
{
    uint64_t *slot = &store->synced[(hash >> 32) % SYNCED_SLOTS];
    int folder = open_directory_at(parent, name);
    bool is_new = false;
    if (folder < 0 && errno == ENOENT) {
        if (mkdirat(parent, name, 0777) != 0 && errno != EEXIST) return -1;
        is_new = true;
        folder = open_directory_at(parent, name);
    }
    if (folder < 0 || (*slot == hash && !is_new)) return folder;
    if (!sync_folder(parent)) return close_keeping_errno(folder);
    *slot = hash;
    return folder;
}

/* Opens the folder named by the first `length` bytes of key (0: the root); -1 with errno. */
static int open_folder(directory_store *store, const char *key, size_t length, bool make)
{
    int folder = open_directory_at(store->root, ".");
    for (size_t at = 0; folder >= 0 && at < length;) {
        char name[FILE_NAME_BYTES];
        size_t part = strcspn(key + at, "/");
        int parent = folder;
        if (!encode_part(key + at, part, false, name)) {
            errno = ENAMETOOLONG;
            return close_keeping_errno(parent);
        }
        folder =
            make ? make_folder_at(store, parent, name, hash_text(key, at + part)) : open_directory_at(parent, name);
        close_keeping_errno(parent);
        at += part + 1;
    }
    return folder;
}

/* Put. */

static int open_temporary_folder(directory_store *store)
{
    if (store->temporary >= 0) return store->temporary;
    if (mkdirat(store->root, TEMPORARY_FOLDER, 0777) != 0 && errno != EEXIST) return -1;
    store->temporary = open_directory_at(store->root, TEMPORARY_FOLDER);
    return store->temporary;
}

/* A new temporary file, its name in `name`; -1 with errno. */
static int create_temporary(directory_store *store, char name[FILE_NAME_BYTES])
{
    for (int tries = 0; tries < 1000; tries++) {
        if (open_temporary_folder(store) < 0) return -1;
        snprintf(name, FILE_NAME_BYTES, "%s%%%ld-%" PRIu64, store->host, (long)getpid(), store->temporary_number++);
        int file = openat(store->temporary, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file >= 0) return file;
        if (errno == ENOENT) { /* someone removed the folder */
            close(store->temporary);
            store->temporary = -1;
        } else if (errno != EEXIST) {
            return -1;
        }
    }
    return -1;
}

static bool write_all(int file, const uint8_t *bytes, uint64_t count)
{
    while (count > 0) {
        ssize_t written = write(file, bytes, count < (1u << 30) ? (size_t)count : (size_t)1 << 30);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes += written;
        count -= (uint64_t)written;
    }
    return true;
}

/* Step 1: the bytes, durable, under a temporary name. False with errno and nothing left behind. */
static bool write_temporary(directory_store *store, const ls_object_request *request, char name[FILE_NAME_BYTES])
{
    int file = create_temporary(store, name);
    if (file < 0) return false;
    bool written = write_all(file, request->body, request->body_bytes) && fsync(file) == 0;
    int code = errno;
    if (close(file) != 0 && written) {
        code = errno;
        written = false;
    }
    if (!written) unlinkat(store->temporary, name, 0);
    errno = code;
    return written;
}

/* Steps 2 and 3, into an open folder. */
static void publish(directory_store *store, const ls_object_request *request, int folder, const char *temporary,
                    const char *name, ls_object_reply *reply)
{
    int failed = request->if_absent ? linkat(store->temporary, temporary, folder, name, 0)
                                    : renameat(store->temporary, temporary, folder, name);
    int code = errno;
    if (failed || request->if_absent) unlinkat(store->temporary, temporary, 0);
    if (failed && code == EEXIST && request->if_absent) {
        say(store, reply, LS_REPLY_EXISTS, request->key, "an object of that name exists");
    } else if (failed) {
        say_errno(store, reply, request->key, "giving the object its name (link or rename)", code);
    } else if (!sync_folder(folder)) {
        say_errno(store, reply, request->key, "syncing the folder of the object", errno);
        reply->status = LS_REPLY_UNKNOWN_OUTCOME;
    }
}

static void put_into(directory_store *store, const ls_object_request *request, int folder, const char *name,
                     ls_object_reply *reply)
{
    char temporary[FILE_NAME_BYTES];
    struct stat status;
    if (request->if_absent && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        say(store, reply, LS_REPLY_EXISTS, request->key, "an object of that name exists");
    } else if (!write_temporary(store, request, temporary)) {
        say_errno(store, reply, request->key, "writing the object", errno);
    } else {
        publish(store, request, folder, temporary, name, reply);
    }
}

static void put(directory_store *store, const ls_object_request *request, const char *name, ls_object_reply *reply)
{
    int folder = open_folder(store, request->key, folder_length(request->key), true);
    if (folder < 0) {
        say_errno(store, reply, request->key, "making the folder of the object", errno);
        return;
    }
    put_into(store, request, folder, name, reply);
    close(folder);
}

/* Get, head, delete. */

/* The file of an object for reading; -1 with errno. O_NONBLOCK: opening a pipe someone put there must not hang. */
static int open_object(int folder, const char *name, uint64_t *bytes)
{
    struct stat status;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return -1;
    if (fstat(file, &status) != 0) return close_keeping_errno(file);
    if (!S_ISREG(status.st_mode)) {
        errno = EISDIR;
        return close_keeping_errno(file);
    }
    *bytes = (uint64_t)status.st_size;
    return file;
}

static bool read_all(int file, uint8_t *bytes, uint64_t count, uint64_t offset)
{
    while (count > 0) {
        ssize_t got = pread(file, bytes, count < (1u << 30) ? (size_t)count : (size_t)1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = EIO; /* the file has become shorter since fstat: no object of ours ever does */
        if (got <= 0) return false;
        bytes += got;
        offset += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return true;
}

static void read_range(directory_store *store, const ls_object_request *request, int file, ls_object_reply *reply)
{
    uint64_t first, count;
    if (!ls_store_range(request, reply->object_bytes, &first, &count)) {
        say(store, reply, LS_REPLY_INVALID, request->key, "the range holds no byte of the object");
        return;
    }
    if (count == 0) return;
    uint8_t *body = count <= SIZE_MAX ? ls_allocate((size_t)count) : NULL;
    if (body == NULL) {
        say_errno(store, reply, request->key, "reading the object", ENOMEM);
    } else if (!read_all(file, body, count, first)) {
        say_errno(store, reply, request->key, "reading the object", errno);
        ls_free(body);
    } else {
        reply->body = body;
        reply->body_bytes = count;
    }
}

/* A file in the place of a folder means that no object can be below. */
static void say_unreadable(directory_store *store, const ls_object_request *request, ls_object_reply *reply)
{
    if (errno == ENOENT || errno == ENOTDIR) {
        say(store, reply, LS_REPLY_NOT_FOUND, request->key, "no object of that name");
    } else {
        say_errno(store, reply, request->key, "opening the object", errno);
    }
}

static void get(directory_store *store, const ls_object_request *request, const char *name, ls_object_reply *reply)
{
    int folder = open_folder(store, request->key, folder_length(request->key), false);
    int file = folder >= 0 ? open_object(folder, name, &reply->object_bytes) : -1;
    if (file < 0) {
        say_unreadable(store, request, reply);
    } else {
        if (request->operation == LS_GET) read_range(store, request, file, reply);
        close(file);
    }
    if (folder >= 0) close(folder);
}

/* Deleting what is not there is no failure, as on S3. */
static void delete_object(directory_store *store, const ls_object_request *request, const char *name,
                          ls_object_reply *reply)
{
    int folder = open_folder(store, request->key, folder_length(request->key), false);
    if (folder < 0) {
        if (errno != ENOENT && errno != ENOTDIR) say_errno(store, reply, request->key, "opening the folder", errno);
        return;
    }
    if (unlinkat(folder, name, 0) != 0) {
        if (errno != ENOENT) say_errno(store, reply, request->key, "deleting the object", errno);
    } else if (!sync_folder(folder)) {
        say_errno(store, reply, request->key, "syncing the folder after deleting", errno);
        reply->status = LS_REPLY_UNKNOWN_OUTCOME;
    }
    close(folder);
}

/* List. */

typedef struct name_list {
    char **names;
    size_t count, capacity;
} name_list;

typedef struct list_search {
    directory_store *store;
    const char *prefix;
    const char *after; /* "" for the start: every key is greater */
    size_t wanted;
    name_list keys;
} list_search;

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void names_cut(name_list *list, size_t count)
{
    while (list->count > count) ls_free(list->names[--list->count]);
}

static void names_free(name_list *list)
{
    names_cut(list, 0);
    ls_free(list->names);
    *list = (name_list){0};
}

/* Takes name; false (with name freed) when out of memory. */
static bool names_add(name_list *list, char *name)
{
    if (name != NULL && list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        char **names = ls_reallocate(list->names, capacity * sizeof names[0]);
        if (names != NULL) {
            list->names = names;
            list->capacity = capacity;
        }
    }
    if (name == NULL || list->count == list->capacity) {
        ls_free(name);
        errno = ENOMEM;
        return false;
    }
    list->names[list->count++] = name;
    return true;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void names_sort(name_list *list)
{
    if (list->count > 1) qsort(list->names, list->count, sizeof list->names[0], compare_names);
}

static char *join(const char *folder, const char *part, const char *end)
{
    size_t size = strlen(folder) + strlen(part) + strlen(end) + 1;
    char *text = ls_allocate(size);
    if (text != NULL) snprintf(text, size, "%s%s%s", folder, part, end);
    return text;
}

/* Whether an object of that key belongs into the answer. */
static bool wants_object(const list_search *listing, const char *key)
{
    return has_prefix(key, listing->prefix) && strcmp(key, listing->after) > 0 && ls_store_key_problem(key) == NULL;
}

/* Whether a key that begins with folder (which ends in a slash) can belong into the answer. */
static bool wants_folder(const list_search *listing, const char *folder)
{
    if (strlen(folder) >= LS_STORE_KEY_BYTES_MAX) return false;
    if (!has_prefix(folder, listing->prefix) && !has_prefix(listing->prefix, folder)) return false;
    return strcmp(folder, listing->after) > 0 || has_prefix(listing->after, folder);
}

/* Sorts one directory entry into objects or folders, or ignores it. */
static bool list_entry(list_search *listing, const char *folder, const char *name, name_list *objects,
                       name_list *folders)
{
    char part[FILE_NAME_BYTES];
    bool is_object;
    if (!decode_name(name, part, &is_object)) return true;
    char *key = join(folder, part, is_object ? "" : "/");
    if (key == NULL) return names_add(objects, NULL);
    bool wanted = is_object ? wants_object(listing, key) : wants_folder(listing, key);
    if (!wanted) {
        ls_free(key);
        return true;
    }
    if (is_object && objects->count >= 2 * listing->wanted) { /* no more than the first `wanted` can matter */
        names_sort(objects);
        names_cut(objects, listing->wanted);
    }
    return names_add(is_object ? objects : folders, key);
}

/* Reads a folder ("" or ending in a slash); false with errno. One that is gone, or is a file, is empty. */
static bool read_folder(list_search *listing, const char *folder, name_list *objects, name_list *folders)
{
    size_t length = strlen(folder);
    int file = open_folder(listing->store, folder, length > 0 ? length - 1 : 0, false);
    if (file < 0) return errno == ENOENT || errno == ENOTDIR;
    DIR *directory = fdopendir(file);
    if (directory == NULL) {
        close_keeping_errno(file);
        return false;
    }
    bool good = true;
    while (good) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            good = errno == 0;
            break;
        }
        good = list_entry(listing, folder, entry->d_name, objects, folders);
    }
    int code = errno;
    closedir(directory);
    errno = code;
    return good;
}

/* Adds the wanted keys below a folder, in order, until there are enough; false with errno. No deeper than a key has
 * parts. */
static bool list_folder(list_search *listing, const char *folder)
{
    name_list objects = {0}, folders = {0};
    bool good = read_folder(listing, folder, &objects, &folders);
    size_t object = 0, sub = 0;
    names_sort(&objects);
    names_sort(&folders);
    while (good && listing->keys.count < listing->wanted && (object < objects.count || sub < folders.count)) {
        bool object_first = sub == folders.count ||
                            (object < objects.count && strcmp(objects.names[object], folders.names[sub]) < 0);
        if (object_first) {
            char *key = objects.names[object];
            objects.names[object++] = NULL;
            good = names_add(&listing->keys, key);
        } else {
            good = list_folder(listing, folders.names[sub++]);
        }
    }
    int code = errno;
    names_free(&objects);
    names_free(&folders);
    errno = code;
    return good;
}

/* Fills sizes and times, dropping keys whose file is no longer there. */
static void stat_keys(directory_store *store, name_list *keys, uint64_t *sizes, int64_t *times)
{
    size_t kept = 0, open_length = SIZE_MAX;
    const char *open_key = NULL; /* a key in the folder that is open */
    int folder = -1;
    for (size_t i = 0; i < keys->count; i++) {
        char *key = keys->names[i], name[FILE_NAME_BYTES];
        size_t length = folder_length(key);
        struct stat status;
        if (open_key == NULL || length != open_length || strncmp(key, open_key, length) != 0) {
            if (folder >= 0) close(folder);
            folder = open_folder(store, key, length, false);
            open_length = length;
        }
        if (folder >= 0 && object_name(key, name) && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            sizes[kept] = (uint64_t)status.st_size;
            times[kept] = (int64_t)status.st_mtim.tv_sec;
            keys->names[i] = keys->names[kept];
            keys->names[kept++] = key;
        }
        open_key = key;
    }
    if (folder >= 0) close(folder);
    names_cut(keys, kept);
}

/* One page of names, not yet looked at; *truncated when there are more. False with errno. */
static bool list_page(list_search *listing, uint32_t limit, bool *truncated)
{
    listing->wanted = (size_t)limit + 1;
    if (!list_folder(listing, "")) return false;
    *truncated = listing->keys.count > limit;
    names_cut(&listing->keys, limit);
    return true;
}

/* A page whose objects were all deleted under our hands is followed by the next, so that a caller who pages by the last
 * key always gets on. */
static bool list_until_found(list_search *listing, uint32_t limit, uint64_t *sizes, int64_t *times,
                             ls_object_reply *reply)
{
    char *after = NULL;
    bool good, again;
    do {
        good = list_page(listing, limit, &reply->list_truncated);
        if (!good) break;
        char *last = reply->list_truncated ? ls_duplicate(listing->keys.names[listing->keys.count - 1]) : NULL;
        if (reply->list_truncated && last == NULL) {
            errno = ENOMEM;
            good = false;
            break;
        }
        stat_keys(listing->store, &listing->keys, sizes, times);
        again = listing->keys.count == 0 && last != NULL;
        ls_free(after);
        after = last;
        if (again) listing->after = after;
    } while (again);
    int code = errno;
    ls_free(after);
    errno = code;
    return good;
}

/* Delivers: the answer's arrays live only here. */
static void list(directory_store *store, const queued *operation)
{
    const ls_object_request *request = &operation->request;
    ls_object_reply reply = {0};
    list_search listing = {.store = store,
                           .prefix = request->key,
                           .after = request->list_after != NULL ? request->list_after : ""};
    uint64_t *sizes = ls_allocate_array(request->list_limit, sizeof sizes[0]);
    int64_t *times = ls_allocate_array(request->list_limit, sizeof times[0]);
    if (sizes == NULL || times == NULL) {
        say_errno(store, &reply, request->key, "listing", ENOMEM);
    } else if (!list_until_found(&listing, request->list_limit, sizes, times, &reply)) {
        reply.list_truncated = false;
        say_errno(store, &reply, request->key, "listing", errno);
    } else {
        reply.keys = (const char *const *)listing.keys.names;
        reply.key_bytes = sizes;
        reply.key_modified_s = times;
        reply.key_count = (uint32_t)listing.keys.count;
    }
    operation->callback(operation->context, &reply);
    names_free(&listing.keys);
    ls_free(sizes);
    ls_free(times);
}

/* The store. */

static void carry_out(directory_store *store, const queued *operation)
{
    const ls_object_request *request = &operation->request;
    ls_object_reply reply = {0};
    char name[FILE_NAME_BYTES];
    if (request->operation == LS_LIST) {
        list(store, operation);
        return;
    }
    if (!object_name(request->key, name)) {
        say(store, &reply, LS_REPLY_INVALID, request->key,
            "its last part is too long for a file name (at most 254 bytes, each '%' or control byte counting three)");
    } else if (request->operation == LS_PUT) {
        put(store, request, name, &reply);
    } else if (request->operation == LS_DELETE) {
        delete_object(store, request, name, &reply);
    } else {
        get(store, request, name, &reply);
    }
    operation->callback(operation->context, &reply);
    ls_free((void *)reply.body);
}

static ls_result directory_submit(ls_store *base, const ls_object_request *request, ls_store_callback callback,
                                  void *context)
{
    directory_store *store = (directory_store *)base;
    queued *operation = ls_allocate_array(1, sizeof *operation);
    if (operation == NULL) return LS_ERROR_MEMORY;
    operation->request = *request;
    operation->callback = callback;
    operation->context = context;
    *store->last = operation;
    store->last = &operation->next;
    store->in_flight++;
    return LS_OK;
}

/* One operation a poll: each may block for an fsync, and between them the caller's timers have their turn. */
static ls_result directory_poll(ls_store *base, int64_t timeout_ns, uint32_t *finished)
{
    directory_store *store = (directory_store *)base;
    (void)timeout_ns;
    queued *operation = store->first;
    store->first = operation->next;
    if (store->first == NULL) store->last = &store->first;
    store->in_flight--;
    carry_out(store, operation);
    ls_free(operation);
    *finished = 1;
    return LS_OK;
}

static uint32_t directory_in_flight(const ls_store *base)
{
    return ((const directory_store *)base)->in_flight;
}

static void directory_destroy(ls_store *base)
{
    directory_store *store = (directory_store *)base;
    while (store->first != NULL) {
        queued *operation = store->first;
        store->first = operation->next;
        ls_free(operation);
    }
    if (store->temporary >= 0) close(store->temporary);
    if (store->root >= 0) close(store->root);
    ls_free(store);
}

static const ls_store_methods methods = {directory_submit, directory_poll, directory_in_flight, directory_destroy};

/* Opening. */

static void read_host(char host[HOST_BYTES])
{
    if (gethostname(host, HOST_BYTES) != 0) host[0] = '\0';
    host[HOST_BYTES - 1] = '\0';
    for (char *at = host; *at != '\0'; at++) {
        if (*at == '/' || *at == '%') *at = '_';
    }
}

/* Whether a temporary file was left by a process of this host that is gone. */
static bool owner_is_dead(const directory_store *store, const char *name)
{
    size_t length = strlen(store->host);
    char *end;
    if (strncmp(name, store->host, length) != 0 || name[length] != '%') return false;
    errno = 0;
    long process = strtol(name + length + 1, &end, 10);
    if (errno != 0 || *end != '-' || process <= 0 || process > INT_MAX) return false;
    return kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

static void remove_leftovers(directory_store *store)
{
    int file = open_directory_at(store->root, TEMPORARY_FOLDER);
    DIR *directory = file >= 0 ? fdopendir(file) : NULL;
    if (directory == NULL) {
        if (file >= 0) close(file);
        return;
    }
    time_t now = time(NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat status;
        if (fstatat(file, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
        bool old = now - status.st_mtim.tv_sec > TEMPORARY_AGE_MAX_S;
        if (old || owner_is_dead(store, entry->d_name)) unlinkat(file, entry->d_name, 0);
    }
    closedir(directory);
}

static bool sync_path(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return false;
    bool good = sync_folder(folder);
    close_keeping_errno(folder);
    return good;
}

/* Makes the folder that path names up to `length`, if it is missing, and makes its entry in `parent` durable. */
static bool make_root_part(char *path, size_t length, const char *parent)
{
    char saved = path[length];
    path[length] = '\0';
    bool made = mkdir(path, 0777) == 0;
    bool good = made || errno == EEXIST;
    path[length] = saved;
    return good && (!made || sync_path(parent));
}

/* Makes root and the folders above it. */
static bool make_root(const char *root)
{
    char *path = ls_duplicate(root), *parent = ls_duplicate(root[0] == '/' ? "/" : ".");
    bool good = path != NULL && parent != NULL;
    if (!good) errno = ENOMEM;
    for (size_t at = strspn(root, "/"); good && root[at] != '\0';) {
        at += strcspn(root + at, "/");
        good = make_root_part(path, at, parent);
        ls_free(parent);
        parent = good ? ls_duplicate(root) : NULL;
        if (parent != NULL) parent[at] = '\0';
        if (good && parent == NULL) {
            errno = ENOMEM;
            good = false;
        }
        at += strspn(root + at, "/");
    }
    int code = errno;
    ls_free(path);
    ls_free(parent);
    errno = code;
    return good;
}

/* The root itself may be a symbolic link: it is the user's own word. */
static int open_root(const char *root)
{
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 || errno != ENOENT) return folder;
    if (!make_root(root)) return -1;
    return open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

ls_store *ls_store_open_directory(const char *root, ls_error *error)
{
    directory_store *store = ls_allocate_array(1, sizeof *store);
    if (store == NULL) {
        ls_fail(error, LS_ERROR_MEMORY, "out of memory while opening the directory '%s'", root);
        return NULL;
    }
    store->base.methods = &methods;
    store->last = &store->first;
    store->temporary = -1;
    store->root = open_root(root);
    if (store->root < 0) {
        ls_fail(error, LS_ERROR_IO, "cannot open or make the directory '%s': %s%s", root, strerror(errno),
                advice(errno));
        directory_destroy(&store->base);
        return NULL;
    }
    read_host(store->host);
    remove_leftovers(store);
    return &store->base;
}
