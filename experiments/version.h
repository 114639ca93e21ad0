/* version.h - the one place that says which Lakestream this is. The version is part of every stored run: a run made by
 * another version is never taken for one of this version. */
#ifndef LS_VERSION_H
#define LS_VERSION_H

#define LS_VERSION "0.1.0"

#endif
