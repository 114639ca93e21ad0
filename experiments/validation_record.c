/* validation_record.c - see validation_record.h. Numbers are written so that they read back the same, which makes the
 * reader's second judgement exact. */
#include "experiments/validation_record.h"

#include "experiments/folder.h"
#include "experiments/text.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (UINT64_C(1) << 20)
#define COLUMNS   9
#define FIRST_LINE "# lakestream validation record 1"
#define HEADER                                                                                                         \
    "point\tmetric\treal\treal.half_width\tsimulated\tsimulated.half_width\ttolerance\tabsolute\tverdict"

static const char *const verdict_names[] = {"shown", "pass", "miss"};

/* The named lines, in the order in which they are written. */
static const struct {
    const char *name;
    size_t offset;
} members[] = {
    {"experiment", offsetof(ls_validation_record, experiment)},
    {"points", offsetof(ls_validation_record, points)},
    {"program", offsetof(ls_validation_record, program)},
    {"store", offsetof(ls_validation_record, store)},
    {"date", offsetof(ls_validation_record, date)},
    {"model", offsetof(ls_validation_record, model)},
    {"replications", offsetof(ls_validation_record, replications)},
};

#define MEMBERS (sizeof members / sizeof members[0])

static char **member(const ls_validation_record *record, size_t index)
{
    return (char **)(void *)((char *)(uintptr_t)record + members[index].offset);
}

ls_result ls_validation_points(const ls_spec *spec, char hex[LS_DIGEST_HEX_BYTES])
{
    char seed[32];
    ls_digest *digest = ls_digest_new();
    if (digest == NULL) return LS_ERROR_MEMORY;
    snprintf(seed, sizeof seed, "%" PRIu64, spec->seed);
    ls_digest_field(digest, seed);
    for (uint32_t i = 0; i < spec->point_count; i++) ls_digest_field(digest, spec->points[i].hash);
    return ls_digest_finish(digest, hex);
}

ls_verdict ls_validation_judge(const ls_validation_row *row)
{
    if (isnan(row->tolerance)) return LS_VERDICT_SHOWN;
    double allowed = fmax(row->tolerance * fabs(row->real), row->absolute);
    return fabs(row->simulated - row->real) <= allowed ? LS_VERDICT_PASS : LS_VERDICT_MISS;
}

ls_result ls_validation_add(ls_validation_record *record, const ls_validation_row *row)
{
    ls_validation_row *rows = ls_reallocate(record->rows, (record->row_count + 1) * sizeof *rows);
    if (rows == NULL) return LS_ERROR_MEMORY;
    record->rows = rows;
    ls_validation_row *added = &rows[record->row_count++];
    *added = *row;
    added->point = ls_duplicate(row->point);
    added->metric = ls_duplicate(row->metric);
    added->verdict = ls_validation_judge(row);
    return added->point != NULL && added->metric != NULL ? LS_OK : LS_ERROR_MEMORY;
}

void ls_validation_free(ls_validation_record *record)
{
    for (size_t i = 0; i < MEMBERS; i++) ls_free(*member(record, i));
    ls_free(record->notes);
    for (uint32_t i = 0; i < record->row_count; i++) {
        ls_free(record->rows[i].point);
        ls_free(record->rows[i].metric);
    }
    ls_free(record->rows);
    *record = (ls_validation_record){0};
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void add_number(ls_text *text, double value)
{
    ls_text_add(text, "\t");
    if (isfinite(value)) ls_text_number(text, value);
    else ls_text_add(text, "nan");
}

static void add_row(ls_text *text, const ls_validation_row *row)
{
    ls_text_field(text, row->point);
    ls_text_add(text, "\t");
    ls_text_field(text, row->metric);
    add_number(text, row->real);
    add_number(text, row->real_half_width);
    add_number(text, row->simulated);
    add_number(text, row->simulated_half_width);
    add_number(text, row->tolerance);
    add_number(text, row->absolute);
    ls_text_format(text, "\t%s\n", verdict_names[row->verdict]);
}

ls_result ls_validation_write(const ls_validation_record *record, const char *path, ls_error *error)
{
    ls_text text = {0};
    ls_text_add(&text, FIRST_LINE "\n");
    for (size_t i = 0; i < MEMBERS; i++) {
        ls_text_format(&text, "# %s: ", members[i].name);
        ls_text_field(&text, *member(record, i) != NULL ? *member(record, i) : "");
        ls_text_add(&text, "\n");
    }
    ls_text_format(&text, "# quick: %s\n", record->quick ? "yes" : "no");
    if (record->notes != NULL && record->notes[0] != '\0') {
        ls_text_add(&text, "# note: ");
        ls_text_field(&text, record->notes);
        ls_text_add(&text, "\n");
    }
    ls_text_add(&text, HEADER "\n");
    for (uint32_t i = 0; i < record->row_count; i++) add_row(&text, &record->rows[i]);
    ls_result result = text.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory")
                                   : ls_file_write(path, text.bytes, text.length, error);
    ls_text_free(&text);
    return result;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

typedef struct reader {
    const char *path;
    uint32_t line;
    bool titled, headed, quick_given;
    ls_text notes;
    ls_validation_record *record;
    ls_error *error;
} reader;

static ls_result refuse(const reader *r, const char *expected, const char *found)
{
    return ls_fail(r->error, LS_ERROR_INVALID,
                   "%s:%" PRIu32 ": %s, found \"%.80s\"; `lakestream validate --record` writes such files", r->path, r->line,
                   expected, found);
}

static ls_result out_of_memory(const reader *r) { return ls_fail(r->error, LS_ERROR_MEMORY, "out of memory"); }

static ls_result take_member(reader *r, const char *name, size_t length, const char *value)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strlen(members[i].name) != length || strncmp(members[i].name, name, length) != 0) continue;
        char **place = member(r->record, i);
        if (*place != NULL) return refuse(r, "expected each line but note once", name);
        *place = ls_duplicate(value);
        return *place != NULL ? LS_OK : out_of_memory(r);
    }
    if (length == 5 && strncmp(name, "quick", length) == 0) {
        r->quick_given = true;
        r->record->quick = strcmp(value, "yes") == 0;
        return r->record->quick || strcmp(value, "no") == 0 ? LS_OK : refuse(r, "expected yes or no", value);
    }
    if (length != 4 || strncmp(name, "note", length) != 0) return refuse(r, "no such name", name);
    ls_text_format(&r->notes, "%s%s", r->notes.length > 0 ? "; " : "", value);
    return LS_OK;
}

static ls_result take_comment(reader *r, const char *line)
{
    if (!r->titled) {
        r->titled = true;
        return strcmp(line, FIRST_LINE) == 0 ? LS_OK : refuse(r, "expected \"" FIRST_LINE "\"", line);
    }
    const char *colon = strstr(line, ": ");
    if (strncmp(line, "# ", 2) != 0 || colon == NULL) return refuse(r, "expected \"# name: value\"", line);
    return take_member(r, line + 2, (size_t)(colon - line - 2), colon + 2);
}

static bool read_number(const char *field, double *value)
{
    char *end;
    *value = strtod(field, &end);
    return end != field && *end == '\0' && !isinf(*value);
}

static bool read_verdict(const char *field, ls_verdict *verdict)
{
    for (size_t i = 0; i < sizeof verdict_names / sizeof verdict_names[0]; i++) {
        if (strcmp(field, verdict_names[i]) != 0) continue;
        *verdict = (ls_verdict)i;
        return true;
    }
    return false;
}

static ls_result take_row(reader *r, char *line)
{
    char *fields[COLUMNS];
    uint32_t count = 0;
    for (char *at = line; at != NULL; count++) {
        char *tab = strchr(at, '\t');
        if (tab != NULL) *tab = '\0';
        if (count < COLUMNS) fields[count] = at;
        at = tab != NULL ? tab + 1 : NULL;
    }
    if (count != COLUMNS) return refuse(r, "expected 9 tab-separated fields", line);
    ls_validation_row row = {.point = fields[0], .metric = fields[1]};
    double *const numbers[] = {&row.real, &row.real_half_width, &row.simulated, &row.simulated_half_width, &row.tolerance,
                               &row.absolute};
    for (size_t i = 0; i < 6; i++) {
        if (!read_number(fields[2 + i], numbers[i])) return refuse(r, "expected a number", fields[2 + i]);
    }
    if (isnan(row.real) || isnan(row.simulated)) return refuse(r, "expected a value on both sides", fields[1]);
    if (!read_verdict(fields[8], &row.verdict)) return refuse(r, "expected pass, miss or shown", fields[8]);
    if (row.verdict != ls_validation_judge(&row)) {
        return refuse(r, "the verdict does not follow from the numbers of its row", fields[8]);
    }
    return ls_validation_add(r->record, &row) == LS_OK ? LS_OK : out_of_memory(r);
}

static ls_result take_line(reader *r, char *line)
{
    r->line++;
    if (line[0] == '#' || !r->titled) return take_comment(r, line);
    if (line[0] == '\0') return LS_OK;
    if (r->headed) return take_row(r, line);
    r->headed = true;
    return strcmp(line, HEADER) == 0 ? LS_OK : refuse(r, "expected the line of column names", line);
}

static ls_result check_complete(reader *r)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (*member(r->record, i) == NULL) return refuse(r, "ends without a line of this name", members[i].name);
    }
    if (!r->quick_given) return refuse(r, "ends without a line of this name", "quick");
    if (r->record->row_count == 0) return refuse(r, "ends without a row", "");
    r->record->notes = ls_text_take(&r->notes);
    return r->record->notes != NULL ? LS_OK : out_of_memory(r);
}

ls_result ls_validation_read(const char *path, ls_validation_record *record, ls_error *error)
{
    char *text = NULL;
    reader r = {.path = path, .record = record, .error = error};
    ls_result result = ls_file_read(path, BYTES_MAX, &text, NULL, error);
    for (char *line = text; line != NULL && result == LS_OK;) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        if (end != NULL || line[0] != '\0') result = take_line(&r, line);
        line = end != NULL ? end + 1 : NULL;
    }
    if (result == LS_OK) result = check_complete(&r);
    ls_text_free(&r.notes);
    ls_free(text);
    return result;
}

ls_result ls_validation_check(const ls_validation_record *record, const ls_spec *spec, const char *version,
                              const char *path, ls_error *error)
{
    char hex[LS_DIGEST_HEX_BYTES];
    if (ls_validation_points(spec, hex) != LS_OK) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    const char *what = strcmp(record->points, hex) != 0       ? "the points of its spec have changed since"
                       : strcmp(record->program, version) != 0 ? "it is of another version of the program"
                                                               : NULL;
    if (what == NULL) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID,
                   "%s: stale: %s; validate again: `lakestream validate %s --backend STORE --record %s`, or remove the file",
                   path, what, spec->path, path);
}
