/* model_file.h - the model file: a store preset that `lakestream calibrate` writes and a spec reads.
 *
 *   { "format": 1,
 *     "provenance": {"backend": "s3", "date": "2026-05-04", "host_processors": 2, "version": "0.1.0", "seconds": 60},
 *     "store": { "get": {"law": "lognormal", "floor_s": ..., ...}, "parallelism": ..., ... },
 *     "fit": {...}, "measured": [...] }
 *
 * "store" holds options of the store.* table by their paths, nested or dotted, and nothing else; what it leaves out is at
 * the table's default. An empirical law's "file" is read relative to the model file. Everything else is for people. No
 * secret, no address and no absolute path stands in it.
 *
 * A spec names it as "store": {"model": "FILE"} or "store": "FILE.json", relative to the spec's own folder. Its values are
 * laid down where a preset's would be, before the overrides; the resolved form of a point holds the values, not the file's
 * name (and for quantile tables their name, which holds a digest of the content).
 */
#ifndef LS_MODEL_FILE_H
#define LS_MODEL_FILE_H

#include "experiments/calibration.h"
#include "experiments/spec.h"

#define LS_MODEL_FORMAT 1

/* Whether a store's name stands for a model file rather than for a preset: it ends in ".json". */
bool ls_model_is_file(const char *name);

/* Lays the file's store over scenario->store and empties scenario->store_preset. path is as the program opens it.
 * LS_ERROR_INVALID with place and expectation (also for a file that cannot be read), LS_ERROR_VERSION for another format,
 * LS_ERROR_MEMORY. */
ls_result ls_model_read(const char *path, const ls_vocabulary *vocabulary, ls_scenario *scenario, ls_error *error);

/* Who measured what. Borrowed. */
typedef struct ls_provenance {
    const char *backend; /* its kind: of an address the part up to the first colon is taken */
    const char *date;
    uint32_t host_processors;
    double seconds;
} ls_provenance;

/* Writes a calibration as a model file. Tables of empirical laws lie in the file's own folder. LS_ERROR_IO,
 * LS_ERROR_MEMORY. */
ls_result ls_model_write(const char *path, const ls_calibration *calibration, const ls_provenance *provenance, ls_error *error);

#endif
