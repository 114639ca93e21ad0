/* freshness.h - whether stored results are those of this spec and this program, whole. Whoever prints numbers that
 * nobody will check again (a paper) asks first: results of an older text of the spec, of another version or of a preset
 * that has changed since, a point without its runs, a run that failed, are each a reason to refuse.
 */
#ifndef LS_FRESHNESS_H
#define LS_FRESHNESS_H

#include "experiments/results.h"

/* LS_OK when the experiment, as loaded from `database` (for messages), was run from exactly spec's text with the same
 * quick setting by this version, holds exactly spec's points (by the hash of what each resolves to) and for each at
 * least the replications that spec asks for, none failed. Else LS_ERROR_INVALID with what differs, where, and how to
 * repair it. */
ls_result ls_check_fresh(const ls_spec *spec, const ls_stored_experiment *experiment, const char *version,
                         const char *database, ls_error *error);

#endif
