/* folder.h - paths of files that the program reads and writes: names, parents, creation of folders. */
#ifndef LS_FOLDER_H
#define LS_FOLDER_H

#include "manifest/base.h"

/* Creates a folder and its parents; existing ones are fine. LS_ERROR_IO, LS_ERROR_MEMORY. */
ls_result ls_folder_make(const char *path, ls_error *error);

/* "a/b.json" gives "a", "b.json" gives ".", "/b" gives "/". The caller frees it; NULL when out of memory. */
char *ls_folder_of(const char *path);

/* "a/b.json" gives "b". The caller frees it; NULL when out of memory. */
char *ls_file_stem(const char *path);

/* Writes a whole file, replacing it. LS_ERROR_IO. */
ls_result ls_file_write(const char *path, const char *bytes, size_t length, ls_error *error);

/* Reads a whole file of at most `most` bytes into *text, NUL-terminated; the caller frees it. length may be NULL.
 * LS_ERROR_INVALID when it cannot be read (it is the user's input), LS_ERROR_LIMIT, LS_ERROR_MEMORY. */
ls_result ls_file_read(const char *path, size_t most, char **text, size_t *length, ls_error *error);

#endif
