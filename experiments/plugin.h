/* plugin.h - policies from shared objects that were built outside the tree (policies/plugin.h says how such a one offers them).
 *
 * A plug-in runs inside the program with all its rights: load only what you trust. What can be checked is checked before anything
 * of it is called: the interface's number, the sizes of the structs that cross it, every declaration. While one of its functions
 * runs its name is kept, so that a crash or a hang says whose it is instead of looking like the program's own.
 */
#ifndef LS_PLUGIN_H
#define LS_PLUGIN_H

#include "policies/policy.h"

#define LS_PLUGINS_MAX 16u

/* Loads the shared object at path and adds its policies to the table; they stay until the process ends. Before anything runs. A path
 * without a slash is a file of the working folder, never one of the system's library folders.
 * LS_ERROR_IO: it cannot be loaded; LS_ERROR_VERSION: made for another interface; LS_ERROR_INVALID: not a plug-in, a declaration
 * is wrong, a name is taken. */
ls_result ls_plugin_load(const char *path, ls_error *error);

/* Who runs, for the identity of stored runs: the program's version, and of each plug-in the first eight digits of the SHA-256 of its file,
 * so that a plug-in that was built anew does not pass for the old one. */
const char *ls_plugin_origin(void);

#endif
