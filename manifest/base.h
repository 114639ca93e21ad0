/* base.h - what every module of Lakestream stands on: result codes, error text, allocation.
 *
 * Nothing here does I/O or reads a clock. Functions that can fail return ls_result; where a person will read the
 * reason they also fill an ls_error. All memory of the project comes from ls_allocate/ls_reallocate, so that the
 * tests can make the n-th allocation fail and see that every caller copes.
 */
#ifndef LS_BASE_H
#define LS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ls_result {
    LS_OK = 0,
    LS_ERROR_MEMORY,  /* an allocation failed; the object is unchanged or must only be freed */
    LS_ERROR_CORRUPT, /* bytes from outside are not what they claim to be */
    LS_ERROR_VERSION, /* a well-formed object of a format version this program does not know */
    LS_ERROR_INVALID, /* the caller's input (spec, option, argument) is wrong */
    LS_ERROR_IO,      /* file, network or database failed */
    LS_ERROR_LIMIT,   /* a stated limit would be passed */
    LS_ERROR_VIOLATED /* a protocol invariant does not hold; results that must be equal are not */
} ls_result;

/* Returns a short English name of a result, never NULL. */
const char *ls_result_name(ls_result result);

/* A message for a person: what, where, what was expected, what to do. Plain data, no ownership. */
typedef struct ls_error {
    char text[1024];
} ls_error;

/* Formats a message into error (which may be NULL) and returns result, so that callers can write
 * `return ls_fail(error, LS_ERROR_INVALID, "...", ...)`. Longer texts are cut, never overrun. */
ls_result ls_fail(ls_error *error, ls_result result, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* malloc, calloc, realloc and free of the project. Each may return NULL (also for size 0: NULL is then no failure).
 * ls_allocate_array returns zeroed memory and NULL when count * size overflows. */
void *ls_allocate(size_t size);
void *ls_allocate_array(size_t count, size_t size);
void *ls_reallocate(void *memory, size_t size);
void ls_free(void *memory);
/* Copy of a NUL-terminated string; NULL when out of memory or text is NULL. The caller frees it with ls_free. */
char *ls_duplicate(const char *text);

/* Test hook: after `successes` further allocations every allocation fails; a negative value turns it off.
 * ls_allocations_made counts allocations since the program's start (both are process-wide, for tests only). */
void ls_fail_allocations_after(int64_t successes);
uint64_t ls_allocations_made(void);

#define LS_NANOSECONDS_PER_SECOND INT64_C(1000000000)
#define LS_NEVER_NS INT64_MAX /* a moment that does not come */

static inline double ls_seconds(int64_t nanoseconds)
{
    return (double)nanoseconds * 1e-9;
}

/* Seconds to nanoseconds, rounded to nearest, clamped to [0, LS_NEVER_NS]; NaN gives 0. */
int64_t ls_nanoseconds(double seconds);

#endif
