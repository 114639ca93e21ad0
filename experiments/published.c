/* published.c - see published.h. */
#include "experiments/published.h"

#include "experiments/folder.h"
#include "experiments/tidy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES_MAX (UINT64_C(1) << 20)

/* One table, cut in place: header and rows point into text, fields end with NUL. */
typedef struct table {
    char *text;
    char **header;
    uint32_t columns;
    char **fields; /* columns a row */
    uint32_t rows;
    ls_text comments;
} table;

typedef struct matcher {
    const ls_published_table *spec;
    const ls_stored_experiment *experiment;
    ls_published_rows *rows;
    uint32_t source;
    const char *path;
    ls_error *error;
} matcher;

static ls_result out_of_memory(const matcher *m)
{
    return ls_fail(m->error, LS_ERROR_MEMORY, "%s: out of memory", m->path);
}

int ls_label_matches(const char *label, const char *wanted)
{
    char *label_end, *wanted_end;
    if (strcmp(label, wanted) == 0) return 2;
    double left = strtod(label, &label_end), right = strtod(wanted, &wanted_end);
    bool numbers = label_end != label && wanted_end != wanted && *label_end == '\0' && *wanted_end == '\0';
    if (numbers) return left == right ? 2 : 0;
    size_t length = strlen(wanted);
    return strncmp(label, wanted, length) == 0 && label[length] == ' ' ? 1 : 0;
}

static void free_table(table *freed)
{
    ls_free(freed->text);
    ls_free(freed->header);
    ls_free(freed->fields);
    ls_text_free(&freed->comments);
}

/* Cuts a line at its tabs into at most `most` fields; what is missing is "". */
static uint32_t cut(char *line, char **fields, uint32_t most)
{
    uint32_t count = 0;
    for (char *at = line; at != NULL && count < most;) {
        char *tab = strchr(at, '\t');
        if (tab != NULL) *tab = '\0';
        fields[count++] = at;
        at = tab != NULL ? tab + 1 : NULL;
    }
    for (uint32_t i = count; i < most; i++) fields[i] = line + strlen(line);
    return count;
}

static ls_result take_line(const matcher *m, table *t, char *line)
{
    if (line[0] == '\0') return LS_OK;
    if (line[0] == '#') {
        if (t->comments.length > 0) ls_text_add(&t->comments, " ");
        ls_text_add(&t->comments, line + 1 + strspn(line + 1, " "));
        return LS_OK;
    }
    if (t->header == NULL) {
        t->columns = 1;
        for (const char *c = line; *c != '\0'; c++) t->columns += *c == '\t';
        t->header = ls_allocate_array(t->columns, sizeof(char *));
        if (t->header == NULL) return out_of_memory(m);
        cut(line, t->header, t->columns);
        return LS_OK;
    }
    size_t used = (size_t)t->rows * t->columns;
    char **fields = ls_reallocate(t->fields, (used + t->columns) * sizeof *fields);
    if (fields == NULL) return out_of_memory(m);
    t->fields = fields;
    cut(line, fields + used, t->columns);
    t->rows++;
    return LS_OK;
}

static ls_result read_table(const matcher *m, table *t)
{
    ls_result result = ls_file_read(m->path, TABLE_BYTES_MAX, &t->text, NULL, m->error);
    for (char *line = t->text; line != NULL && result == LS_OK;) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        result = take_line(m, t, line);
        line = end != NULL ? end + 1 : NULL;
    }
    if (result == LS_OK && t->header == NULL) {
        result = ls_fail(m->error, LS_ERROR_INVALID, "%s: no line with column names", m->path);
    }
    return result;
}

static ls_result column_index(const matcher *m, const table *t, const char *name, uint32_t *index)
{
    for (uint32_t i = 0; i < t->columns; i++) {
        if (strcmp(t->header[i], name) != 0) continue;
        *index = i;
        return LS_OK;
    }
    return ls_fail(m->error, LS_ERROR_INVALID, "%s: no column \"%.100s\", which the spec names", m->path, name);
}

static bool find_text(char *const *names, uint32_t count, const char *name, uint32_t *index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *index = i;
        return true;
    }
    return false;
}

/* How well a label of the point agrees with what is wanted of a key; 0: not at all, also when nothing sweeps it. */
static int key_score(const matcher *m, const ls_stored_point *point, const char *key, const char *wanted)
{
    uint32_t index;
    if (!find_text(m->experiment->swept_keys, m->experiment->swept_key_count, key, &index)) return 0;
    return ls_label_matches(point->labels[index], wanted);
}

static ls_result point_score(const matcher *m, const table *t, uint32_t row, const ls_stored_point *point, int *score)
{
    *score = 1;
    for (uint32_t k = 0; k<m->spec->where_count && * score> 0; k++) {
        int one = key_score(m, point, m->spec->where[k].column, m->spec->where[k].name);
        *score = one > 0 ? *score + one : 0;
    }
    for (uint32_t k = 0; k<m->spec->key_count && * score> 0; k++) {
        uint32_t column = 0;
        ls_result result = column_index(m, t, m->spec->keys[k].column, &column);
        if (result != LS_OK) return result;
        int one = key_score(m, point, m->spec->keys[k].name, t->fields[(size_t)row * t->columns + column]);
        *score = one > 0 ? *score + one : 0;
    }
    return LS_OK;
}

static ls_result add_value(const matcher *m, const table *t, uint32_t row, uint32_t point,
                           const ls_published_column *wanted)
{
    uint32_t column = 0, metric;
    ls_result result = column_index(m, t, wanted->column, &column);
    if (result != LS_OK) return result;
    if (!find_text(m->experiment->metric_names, m->experiment->metric_count, wanted->name, &metric)) return LS_OK;
    const char *field = t->fields[(size_t)row * t->columns + column];
    char *end;
    double value = strtod(field, &end);
    if (end == field || !isfinite(value)) return LS_OK;
    ls_estimate estimate;
    if (ls_point_estimate(&m->experiment->points[point], metric, 0.95, &estimate) != LS_OK) return out_of_memory(m);
    if (isnan(estimate.mean)) return LS_OK;
    ls_published_row *rows = ls_reallocate(m->rows->rows, (m->rows->count + 1) * sizeof *rows);
    if (rows == NULL) return out_of_memory(m);
    m->rows->rows = rows;
    rows[m->rows->count++] = (ls_published_row){.source = m->source,
                                                .point = point,
                                                .metric = metric,
                                                .factor = wanted->factor,
                                                .published = value,
                                                .simulated = wanted->factor * estimate.mean,
                                                .half_width = fabs(wanted->factor) * estimate.half_width};
    return LS_OK;
}

static ls_result match_row(const matcher *m, const table *t, uint32_t row)
{
    int best = 0, score = 0;
    ls_result result = LS_OK;
    for (uint32_t p = 0; p < m->experiment->point_count && result == LS_OK; p++) {
        result = point_score(m, t, row, &m->experiment->points[p], &score);
        if (score > best) best = score;
    }
    for (uint32_t p = 0; p < m->experiment->point_count && result == LS_OK && best > 0; p++) {
        result = point_score(m, t, row, &m->experiment->points[p], &score);
        for (uint32_t k = 0; k < m->spec->metric_count && result == LS_OK && score == best; k++) {
            result = add_value(m, t, row, p, &m->spec->metrics[k]);
        }
    }
    return result;
}

static ls_result match_table(matcher *m)
{
    table t = {0};
    ls_result result = read_table(m, &t);
    /* Columns are checked even when there are no rows or no points. */
    for (uint32_t k = 0; k < m->spec->key_count + m->spec->metric_count && result == LS_OK; k++) {
        uint32_t ignored;
        bool is_key = k < m->spec->key_count;
        const ls_published_column *column = is_key ? &m->spec->keys[k] : &m->spec->metrics[k - m->spec->key_count];
        result = column_index(m, &t, column->column, &ignored);
    }
    for (uint32_t row = 0; row < t.rows && result == LS_OK; row++) result = match_row(m, &t, row);
    if (result == LS_OK) {
        char *comments = ls_text_take(&t.comments);
        if (comments == NULL) result = out_of_memory(m);
        m->rows->sources[m->rows->source_count++] = comments;
    }
    free_table(&t);
    return result;
}

ls_result ls_published_match(const ls_presentation *presentation, const char *folder,
                             const ls_stored_experiment *experiment, ls_published_rows *rows, ls_error *error)
{
    *rows = (ls_published_rows){0};
    rows->sources = ls_allocate_array((size_t)presentation->published_count + 1, sizeof(char *));
    if (rows->sources == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < presentation->published_count && result == LS_OK; i++) {
        ls_text path = {0};
        ls_text_format(&path, "%s/%s", folder, presentation->published[i].file);
        matcher m = {&presentation->published[i], experiment, rows, i, path.bytes, error};
        result = path.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : match_table(&m);
        ls_text_free(&path);
    }
    if (result != LS_OK) ls_published_free(rows);
    return result;
}

void ls_published_free(ls_published_rows *rows)
{
    for (uint32_t i = 0; rows->sources != NULL && i < rows->source_count; i++) ls_free(rows->sources[i]);
    ls_free(rows->sources);
    ls_free(rows->rows);
    *rows = (ls_published_rows){0};
}
