/* folder.c - see folder.h. */
#include "experiments/folder.h"

#include "experiments/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static ls_result make_one(const char *path, ls_error *error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return LS_OK;
    return ls_fail(error, LS_ERROR_IO, "%s: cannot create this folder: %s", path, strerror(errno));
}

ls_result ls_folder_make(const char *path, ls_error *error)
{
    char *copy = ls_duplicate(path);
    if (copy == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = LS_OK;
    for (char *at = copy + 1; result == LS_OK && *copy != '\0' && *at != '\0'; at++) {
        if (*at != '/') continue;
        *at = '\0';
        result = make_one(copy, error);
        *at = '/';
    }
    if (result == LS_OK) result = make_one(copy, error);
    ls_free(copy);
    return result;
}

char *ls_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    ls_text text = {0};
    if (slash == NULL) {
        ls_text_add(&text, ".");
    } else {
        ls_text_bytes(&text, path, slash == path ? 1 : (size_t)(slash - path));
    }
    return ls_text_take(&text);
}

char *ls_file_stem(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *start = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(start, '.');
    ls_text text = {0};
    ls_text_bytes(&text, start, dot != NULL && dot != start ? (size_t)(dot - start) : strlen(start));
    return ls_text_take(&text);
}

ls_result ls_file_write(const char *path, const char *bytes, size_t length, ls_error *error)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL && fwrite(bytes, 1, length, file) == length;
    if (file != NULL && fclose(file) != 0) good = false;
    return good ? LS_OK : ls_fail(error, LS_ERROR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

ls_result ls_file_read(const char *path, size_t most, char **text, size_t *length, ls_error *error)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return ls_fail(error, LS_ERROR_INVALID, "%s: cannot be read: %s", path, strerror(errno));
    ls_text content = {0};
    char block[65536];
    size_t got;
    ls_result result = LS_OK;
    while ((got = fread(block, 1, sizeof block, file)) > 0 && result == LS_OK) {
        ls_text_bytes(&content, block, got);
        if (content.length > most) {
            result = ls_fail(error, LS_ERROR_LIMIT, "%s: longer than %zu bytes", path, most);
        }
    }
    if (result == LS_OK && ferror(file)) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: cannot be read: %s", path, strerror(errno));
    }
    fclose(file);
    size_t total = content.length;
    char *taken = result == LS_OK ? ls_text_take(&content) : NULL;
    ls_text_free(&content);
    if (result != LS_OK) return result;
    if (taken == NULL) return ls_fail(error, LS_ERROR_MEMORY, "%s: out of memory", path);
    *text = taken;
    if (length != NULL) *length = total;
    return LS_OK;
}
