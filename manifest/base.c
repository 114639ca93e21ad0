/* base.c - result names, error text and the counted allocator of base.h. */
#include "manifest/base.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t allocations_until_failure = -1;
static uint64_t allocations_made;

const char *ls_result_name(ls_result result)
{
    switch (result) {
    case LS_OK: return "ok";
    case LS_ERROR_MEMORY: return "out of memory";
    case LS_ERROR_CORRUPT: return "corrupt";
    case LS_ERROR_VERSION: return "unknown format version";
    case LS_ERROR_INVALID: return "invalid";
    case LS_ERROR_IO: return "input/output error";
    case LS_ERROR_LIMIT: return "limit exceeded";
    case LS_ERROR_VIOLATED: return "invariant violated";
    }
    return "unknown result";
}

ls_result ls_fail(ls_error *error, ls_result result, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return result;
}

static bool allocation_refused(void)
{
    allocations_made++;
    if (allocations_until_failure < 0) return false;
    if (allocations_until_failure == 0) return true;
    allocations_until_failure--;
    return false;
}

void *ls_allocate(size_t size)
{
    if (size == 0 || allocation_refused()) return NULL;
    return malloc(size);
}

void *ls_allocate_array(size_t count, size_t size)
{
    if (count == 0 || size == 0 || allocation_refused()) return NULL;
    return calloc(count, size);
}

void *ls_reallocate(void *memory, size_t size)
{
    if (size == 0 || allocation_refused()) return NULL;
    return realloc(memory, size);
}

void ls_free(void *memory)
{
    free(memory);
}

char *ls_duplicate(const char *text)
{
    if (text == NULL) return NULL;
    size_t size = strlen(text) + 1;
    char *copy = ls_allocate(size);
    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

void ls_fail_allocations_after(int64_t successes)
{
    allocations_until_failure = successes;
}

uint64_t ls_allocations_made(void)
{
    return allocations_made;
}

int64_t ls_nanoseconds(double seconds)
{
    if (isnan(seconds) || seconds <= 0.0) return 0;
    double nanoseconds = seconds * 1e9;
    if (nanoseconds >= 9.2e18) return LS_NEVER_NS;
    return (int64_t)(nanoseconds + 0.5);
}
