/* freshness.c - see freshness.h. */
#include "experiments/freshness.h"

#include "experiments/sensitivity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct check {
    const ls_spec *spec;
    const ls_stored_experiment *experiment;
    const char *database;
    ls_error *error;
} check;

/* "DATABASE: NAME WHAT", and the command that repairs it. */
static ls_result refuse(const check *c, const char *what, const char *detail)
{
    ls_text command = {0};
    const ls_spec *spec = c->spec;
    /* A study of assumptions has no file of its own to run. */
    if (!ls_is_sensitivity(spec->name)) {
        ls_text_format(&command, "`lakestream run %s -o %s%s` or ", spec->path, c->database, spec->quick ? " --quick" : "");
    }
    ls_result result = ls_fail(c->error, LS_ERROR_INVALID, "%s: %s: %s%s; run it again: %s`make figures%s`", c->database,
                               c->experiment->name, what, detail, command.length > 0 ? command.bytes : "",
                               spec->quick ? "" : " FULL=1");
    ls_text_free(&command);
    return result;
}

static ls_result check_origin(const check *c, const char *version)
{
    const ls_stored_experiment *e = c->experiment;
    if (e->quick != c->spec->quick) {
        return refuse(c, e->quick ? "holds the quick runs, wanted are the full ones"
                                  : "holds the full runs, wanted are the quick ones", "");
    }
    if (strcmp(e->spec, c->spec->text) != 0) return refuse(c, "stale: was run from another text of ", c->spec->path);
    if (strcmp(e->version, version) != 0) return refuse(c, "stale: was run by another version of the program, ", e->version);
    if (e->seed != c->spec->seed) return refuse(c, "stale: was run with another seed", "");
    return LS_OK;
}

static ls_result check_points(const check *c)
{
    const ls_stored_experiment *e = c->experiment;
    char detail[160];
    if (e->point_count != c->spec->point_count) {
        snprintf(detail, sizeof detail, "%" PRIu32 " points of %" PRIu32, e->point_count, c->spec->point_count);
        return refuse(c, "incomplete: holds ", detail);
    }
    for (uint32_t i = 0; i < e->point_count; i++) {
        const ls_stored_point *point = &e->points[i];
        snprintf(detail, sizeof detail, "point %" PRIu32 " has %" PRIu32 " good runs of %" PRIu64 ", %" PRIu32 " failed", i,
                 point->run_count, c->spec->replications.minimum, point->failed_count);
        if (strcmp(point->hash, c->spec->points[i].hash) != 0) {
            return refuse(c, "stale: the options or presets of the program have changed since for ", detail);
        }
        if (point->failed_count > 0 || point->run_count < c->spec->replications.minimum) {
            return refuse(c, "incomplete: ", detail);
        }
    }
    return LS_OK;
}

ls_result ls_check_fresh(const ls_spec *spec, const ls_stored_experiment *experiment, const char *version,
                         const char *database, ls_error *error)
{
    check c = {spec, experiment, database, error};
    ls_result result = check_origin(&c, version);
    return result == LS_OK ? check_points(&c) : result;
}
