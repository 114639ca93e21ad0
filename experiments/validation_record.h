/* validation_record.h - what one validation on a real store found, as a small dated file that can be committed.
 *
 * A real store is seldom at hand when a paper is built; so `lakestream validate --record FILE` writes what it found
 * together with where, when and of what, and `lakestream macros --validation FILE` reads it again. The form, a
 * tab-separated table after lines "# name: value":
 *
 *   # lakestream validation record 1
 *   # experiment: v1-policies           name of the spec, without folder and suffix
 *   # quick: no                         or yes
 *   # points: 5d41...                   what the spec resolved to, before the model was laid in (ls_validation_points)
 *   # program: 0.1.0
 *   # store: s3://bucket/prefix
 *   # date: 2026-05-04                  UTC
 *   # model: results/x-model.json       "calibrated at once" or "as the spec says"
 *   # replications: 3
 *   # note: Ceph RGW 16.2 on loopback   any number of these, by hand: server, machine
 *   point  metric  real  real.half_width  simulated  simulated.half_width  tolerance  absolute  verdict
 *
 * tolerance: greatest relative error allowed, nan where the metric is shown and not judged; absolute: or this
 * difference, whichever allows more; verdict: pass, miss or shown. A reader judges again: a row whose verdict does not
 * follow from its numbers is refused, so a typed number does not slip through.
 */
#ifndef LS_VALIDATION_RECORD_H
#define LS_VALIDATION_RECORD_H

#include "experiments/spec.h"

typedef enum ls_verdict { LS_VERDICT_SHOWN = 0, LS_VERDICT_PASS, LS_VERDICT_MISS } ls_verdict;

typedef struct ls_validation_row {
    char *point;  /* labels of the swept keys, ", " between */
    char *metric; /* name */
    double real, real_half_width;
    double simulated, simulated_half_width; /* half-widths: NaN with fewer than two replications */
    double tolerance, absolute;
    ls_verdict verdict;
} ls_validation_row;

/* Owned by ls_validation_free, every string. */
typedef struct ls_validation_record {
    char *experiment, *points, *program, *store, *date, *model, *replications;
    char *notes; /* joined by "; "; "" if none */
    bool quick;
    ls_validation_row *rows;
    uint32_t row_count;
} ls_validation_record;

/* The digest of a spec's points: seed and every point's hash. */
ls_result ls_validation_points(const ls_spec *spec, char hex[LS_DIGEST_HEX_BYTES]);

/* The verdict that a row's numbers give. */
ls_verdict ls_validation_judge(const ls_validation_row *row);

/* Adds a row, copying its strings; the verdict is judged. LS_ERROR_MEMORY. */
ls_result ls_validation_add(ls_validation_record *record, const ls_validation_row *row);

/* Writes a record. LS_ERROR_IO, LS_ERROR_MEMORY. */
ls_result ls_validation_write(const ls_validation_record *record, const char *path, ls_error *error);

/* Reads one into *record (zeroed by the caller; free it whatever the result). LS_ERROR_INVALID with file, line and what
 * was expected. */
ls_result ls_validation_read(const char *path, ls_validation_record *record, ls_error *error);
void ls_validation_free(ls_validation_record *record);

/* LS_OK when the record is of this spec (its points) and this version of the program; else LS_ERROR_INVALID. path is
 * for messages. */
ls_result ls_validation_check(const ls_validation_record *record, const ls_spec *spec, const char *version,
                              const char *path, ls_error *error);

#endif
