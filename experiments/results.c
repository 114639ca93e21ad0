/* results.c - the results database of results.h, on SQLite. Every statement takes its values through `query` or
 * `execute`, which bind by a format string: i int64_t, t text (NULL allowed), d double. */
#include "experiments/results.h"

#include "experiments/text.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x4c535452 /* "LSTR" */

struct ls_results {
    sqlite3 *database;
    char *path;
};

static const char schema[] =
    "CREATE TABLE experiments(id INTEGER PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL, shows TEXT NOT NULL,"
    " path TEXT NOT NULL, spec TEXT NOT NULL, quick INTEGER NOT NULL, seed INTEGER NOT NULL, replications TEXT NOT "
    "NULL,"
    " compare TEXT NOT NULL, swept TEXT NOT NULL, added TEXT NOT NULL, UNIQUE(name, spec, quick, seed));"
    "CREATE TABLE points(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, resolved TEXT NOT NULL);"
    "CREATE TABLE experiment_points(experiment INTEGER NOT NULL REFERENCES experiments(id), position INTEGER NOT NULL,"
    " point INTEGER NOT NULL REFERENCES points(id), labels TEXT NOT NULL, PRIMARY KEY(experiment, position)) WITHOUT "
    "ROWID;"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, point INTEGER NOT NULL REFERENCES points(id), seed INTEGER NOT NULL,"
    " replication INTEGER NOT NULL, version TEXT NOT NULL, backend TEXT NOT NULL, status TEXT NOT NULL, message TEXT,"
    " events INTEGER NOT NULL, wall_s REAL NOT NULL, UNIQUE(point, seed, replication, version, backend));"
    "CREATE TABLE metrics(run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY(run, name)) WITHOUT ROWID;";

static ls_result database_fail(const ls_results *results, ls_error *error, const char *doing)
{
    int code = sqlite3_errcode(results->database) & 0xff;
    const char *message = sqlite3_errmsg(results->database);
    switch (code) {
    case SQLITE_NOMEM: return ls_fail(error, LS_ERROR_MEMORY, "%s: out of memory", results->path);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return ls_fail(error, LS_ERROR_CORRUPT,
                       "%s: not a results file, or a damaged one (%s); give another file, or remove it and run again",
                       results->path, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ls_fail(error, LS_ERROR_IO, "%s: another process is writing; wait for it, or use another file (-o)",
                       results->path);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return ls_fail(error, LS_ERROR_IO, "%s: %s: %s; check that the file and its folder exist and can be written",
                       results->path, doing, message);
    default: return ls_fail(error, LS_ERROR_IO, "%s: %s: %s", results->path, doing, message);
    }
}

static bool bind_all(sqlite3_stmt *statement, const char *format, va_list values)
{
    int code = SQLITE_OK;
    for (int i = 0; format[i] != '\0' && code == SQLITE_OK; i++) {
        switch (format[i]) {
        case 'i': code = sqlite3_bind_int64(statement, i + 1, va_arg(values, int64_t)); break;
        case 'd': code = sqlite3_bind_double(statement, i + 1, va_arg(values, double)); break;
        default: code = sqlite3_bind_text(statement, i + 1, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
        }
    }
    return code == SQLITE_OK;
}

static ls_result prepare(const ls_results *results, ls_error *error, sqlite3_stmt **statement, const char *sql)
{
    if (sqlite3_prepare_v2(results->database, sql, -1, statement, NULL) == SQLITE_OK) return LS_OK;
    return database_fail(results, error, "reading");
}

/* Prepares and binds; the caller steps and finalizes (also on failure: *statement is NULL or valid). */
static ls_result query(const ls_results *results, ls_error *error, sqlite3_stmt **statement, const char *sql,
                       const char *format, ...)
{
    *statement = NULL;
    ls_result result = prepare(results, error, statement, sql);
    if (result != LS_OK) return result;
    va_list values;
    va_start(values, format);
    bool bound = bind_all(*statement, format, values);
    va_end(values);
    return bound ? LS_OK : database_fail(results, error, "binding");
}

/* One row more: *more. */
static ls_result step(const ls_results *results, ls_error *error, sqlite3_stmt *statement, bool *more)
{
    int code = sqlite3_step(statement);
    *more = code == SQLITE_ROW;
    return code == SQLITE_ROW || code == SQLITE_DONE ? LS_OK : database_fail(results, error, "reading");
}

static ls_result execute(const ls_results *results, ls_error *error, const char *sql, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    ls_result result = prepare(results, error, &statement, sql);
    if (result != LS_OK) return result;
    va_list values;
    va_start(values, format);
    bool good = bind_all(statement, format, values);
    va_end(values);
    good = good && sqlite3_step(statement) == SQLITE_DONE;
    if (!good) result = database_fail(results, error, "writing");
    sqlite3_finalize(statement);
    return result;
}

/* Runs a query for one integer; fallback when it has no row. */
static ls_result query_integer(const ls_results *results, ls_error *error, const char *sql, int64_t *value)
{
    sqlite3_stmt *statement;
    bool more = false;
    ls_result result = query(results, error, &statement, sql, "");
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK) *value = more ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return result;
}

static ls_result execute_script(const ls_results *results, ls_error *error, const char *sql)
{
    if (sqlite3_exec(results->database, sql, NULL, NULL, NULL) == SQLITE_OK) return LS_OK;
    return database_fail(results, error, "writing");
}

static ls_result begin(const ls_results *results, ls_error *error)
{
    return execute_script(results, error, "BEGIN IMMEDIATE");
}

/* Commits what went well, rolls back what did not. */
static ls_result finish(const ls_results *results, ls_error *error, ls_result result)
{
    if (result == LS_OK) result = execute_script(results, error, "COMMIT");
    if (result != LS_OK) sqlite3_exec(results->database, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

static ls_result create_schema(const ls_results *results, ls_error *error)
{
    char stamp[96];
    snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d;", APPLICATION_ID,
             LS_RESULTS_SCHEMA);
    ls_result result = begin(results, error);
    if (result != LS_OK) return result;
    /* Another process may have created it while this one waited for the lock. */
    int64_t version = 0;
    result = query_integer(results, error, "PRAGMA user_version", &version);
    if (result == LS_OK && version == 0) result = execute_script(results, error, schema);
    if (result == LS_OK && version == 0) result = execute_script(results, error, stamp);
    return finish(results, error, result);
}

static ls_result check_schema(const ls_results *results, ls_results_mode mode, ls_error *error)
{
    int64_t application = 0, version = 0, tables = 0;
    ls_result result = query_integer(results, error, "PRAGMA application_id", &application);
    if (result == LS_OK) result = query_integer(results, error, "PRAGMA user_version", &version);
    if (result == LS_OK) result = query_integer(results, error, "SELECT count(*) FROM sqlite_master", &tables);
    if (result != LS_OK) return result;
    if (tables == 0 && version == 0 && mode == LS_RESULTS_WRITE) return create_schema(results, error);
    if (application != APPLICATION_ID) {
        return ls_fail(error, LS_ERROR_CORRUPT,
                       "%s: a database, but not one of Lakestream's results; give another file", results->path);
    }
    if (version != LS_RESULTS_SCHEMA) {
        return ls_fail(error, LS_ERROR_VERSION,
                       "%s: results of schema %" PRId64
                       ", this program knows schema %d; use the program that wrote it, or "
                       "another file",
                       results->path, version, LS_RESULTS_SCHEMA);
    }
    return LS_OK;
}

ls_result ls_results_open(const char *path, ls_results_mode mode, ls_results **results, ls_error *error)
{
    ls_results *opened = ls_allocate_array(1, sizeof *opened);
    if (opened == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    opened->path = ls_duplicate(path);
    ls_result result = opened->path != NULL ? LS_OK : ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (result == LS_OK && mode == LS_RESULTS_READ && access(path, F_OK) != 0) {
        result =
            ls_fail(error, LS_ERROR_IO, "%s: no such results file; `lakestream run SPEC -o %s` makes one", path, path);
    }
    if (result != LS_OK) goto fail;
    int flags = mode == LS_RESULTS_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &opened->database, flags, NULL) != SQLITE_OK) {
        result = opened->database != NULL ? database_fail(opened, error, "opening")
                                          : ls_fail(error, LS_ERROR_MEMORY, "%s: out of memory", path);
        goto fail;
    }
    sqlite3_busy_timeout(opened->database, 5000);
    /* Full synchronisation is not needed: a run lost with the machine is run again. The journal still keeps the file
     * whole. */
    result = execute_script(opened, error, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;");
    if (result == LS_OK) result = check_schema(opened, mode, error);
    if (result != LS_OK) goto fail;
    *results = opened;
    return LS_OK;
fail:
    ls_results_close(opened);
    return result;
}

void ls_results_close(ls_results *results)
{
    if (results == NULL) return;
    sqlite3_close_v2(results->database);
    ls_free(results->path);
    ls_free(results);
}

const char *ls_run_status_name(ls_run_status status)
{
    switch (status) {
    case LS_RUN_OK: return "ok";
    case LS_RUN_FAILED: return "failed";
    case LS_RUN_CRASHED: return "crashed";
    }
    return "unknown";
}

static void add_json_strings(ls_text *text, char *const *strings, uint32_t count)
{
    ls_text_add(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) ls_text_add(text, ",");
        ls_text_json(text, strings[i]);
    }
    ls_text_add(text, "]");
}

static void add_json_member(ls_text *text, const char *prefix, const char *string)
{
    ls_text_add(text, prefix);
    if (string != NULL) {
        ls_text_json(text, string);
    } else {
        ls_text_add(text, "null");
    }
}

static char *replications_json(const ls_replications *rule)
{
    ls_text text = {0};
    ls_text_format(&text, "{\"minimum\":%" PRIu64 ",\"maximum\":%" PRIu64, rule->minimum, rule->maximum);
    add_json_member(&text, ",\"metric\":", rule->metric);
    ls_text_add(&text, ",\"half_width\":");
    ls_text_number(&text, rule->half_width);
    ls_text_add(&text, ",\"confidence\":");
    ls_text_number(&text, rule->confidence);
    ls_text_add(&text, "}");
    return ls_text_take(&text);
}

static char *compare_json(const ls_spec *spec)
{
    ls_text text = {0};
    add_json_member(&text, "{\"key\":", spec->compare_key);
    add_json_member(&text, ",\"baseline\":", spec->compare_baseline);
    ls_text_add(&text, ",\"metrics\":");
    add_json_strings(&text, spec->compare_metrics, spec->compare_metric_count);
    ls_text_add(&text, "}");
    return ls_text_take(&text);
}

static char *strings_json(char *const *strings, uint32_t count)
{
    ls_text text = {0};
    add_json_strings(&text, strings, count);
    return ls_text_take(&text);
}

static ls_result add_experiment_row(ls_results *results, const ls_spec *spec, int64_t *id, ls_error *error)
{
    char *replications = replications_json(&spec->replications);
    char *compare = compare_json(spec);
    char *swept = strings_json(spec->swept_keys, spec->swept_key_count);
    sqlite3_stmt *statement = NULL;
    bool more = false;
    ls_result result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (replications == NULL || compare == NULL || swept == NULL) goto done;
    result = query(
        results, error, &statement,
        "INSERT INTO experiments(name, title, shows, path, spec, quick, seed, replications, compare, swept, added)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"
        " ON CONFLICT(name, spec, quick, seed) DO UPDATE SET path = excluded.path, added = excluded.added,"
        " replications = excluded.replications, compare = excluded.compare, swept = excluded.swept RETURNING id",
        "tttttiittt", spec->name, spec->title, spec->shows, spec->path, spec->text, (int64_t)spec->quick,
        (int64_t)spec->seed, replications, compare, swept);
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK && more) *id = sqlite3_column_int64(statement, 0);
    if (result == LS_OK) result = step(results, error, statement, &more);
done:
    sqlite3_finalize(statement);
    ls_free(replications);
    ls_free(compare);
    ls_free(swept);
    return result;
}

static ls_result add_point(ls_results *results, int64_t experiment, uint32_t position, const ls_spec *spec, int64_t *id,
                           ls_error *error)
{
    const ls_spec_point *point = &spec->points[position];
    sqlite3_stmt *statement = NULL;
    bool more = false;
    char *labels = strings_json(point->labels, spec->swept_key_count);
    if (labels == NULL) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = execute(results, error, "INSERT OR IGNORE INTO points(hash, resolved) VALUES(?, ?)", "tt",
                               point->hash, point->resolved);
    if (result == LS_OK) {
        result = query(results, error, &statement, "SELECT id FROM points WHERE hash = ?", "t", point->hash);
    }
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK) *id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    if (result == LS_OK) {
        result = execute(results, error,
                         "INSERT INTO experiment_points(experiment, position, point, labels) VALUES(?, ?, ?, ?)",
                         "iiit", experiment, (int64_t)position, *id, labels);
    }
    ls_free(labels);
    return result;
}

ls_result ls_results_add_experiment(ls_results *results, const ls_spec *spec, int64_t *point_ids, ls_error *error)
{
    int64_t experiment = 0;
    ls_result result = begin(results, error);
    if (result != LS_OK) return result;
    result = add_experiment_row(results, spec, &experiment, error);
    /* The same text may resolve to other points under another version of the program: the list is written anew. */
    if (result == LS_OK) {
        result = execute(results, error, "DELETE FROM experiment_points WHERE experiment = ?", "i", experiment);
    }
    for (uint32_t i = 0; i < spec->point_count && result == LS_OK; i++) {
        result = add_point(results, experiment, i, spec, &point_ids[i], error);
    }
    return finish(results, error, result);
}

ls_result ls_results_find_points(ls_results *results, const ls_spec *spec, int64_t *point_ids, ls_error *error)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < spec->point_count && result == LS_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool more = false;
        result = query(results, error, &statement,
                       "SELECT p.id FROM experiments e JOIN experiment_points x ON x.experiment = e.id JOIN points p"
                       " ON p.id = x.point WHERE e.name = ? AND e.spec = ? AND e.quick = ? AND e.seed = ?"
                       " AND x.position = ? AND p.hash = ?",
                       "ttiiit", spec->name, spec->text, (int64_t)spec->quick, (int64_t)spec->seed, (int64_t)i,
                       spec->points[i].hash);
        if (result == LS_OK) result = step(results, error, statement, &more);
        if (result == LS_OK) point_ids[i] = more ? sqlite3_column_int64(statement, 0) : -1;
        sqlite3_finalize(statement);
    }
    return result;
}

static ls_result add_metrics(ls_results *results, int64_t run, const ls_metric *metrics, uint32_t metric_count,
                             const double *values, ls_error *error)
{
    sqlite3_stmt *statement = NULL;
    ls_result result = query(results, error, &statement, "INSERT INTO metrics(run, name, value) VALUES(?, ?, ?)", "");
    for (uint32_t i = 0; i < metric_count && result == LS_OK; i++) {
        if (isnan(values[i])) continue;
        bool good = sqlite3_bind_int64(statement, 1, run) == SQLITE_OK &&
                    sqlite3_bind_text(statement, 2, metrics[i].name, -1, SQLITE_TRANSIENT) == SQLITE_OK &&
                    sqlite3_bind_double(statement, 3, values[i]) == SQLITE_OK && sqlite3_step(statement) == SQLITE_DONE;
        if (!good) result = database_fail(results, error, "writing");
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return result;
}

static ls_result add_run(ls_results *results, const ls_run_origin *origin, const ls_metric *metrics,
                         uint32_t metric_count, const ls_run_record *record, ls_error *error)
{
    static const char same_run[] =
        "SELECT id FROM runs WHERE point = ? AND seed = ? AND replication = ? AND version = ? AND backend = ?";
    int64_t seed = (int64_t)record->seed, replication = (int64_t)record->replication, old = -1;
    bool more = false, ok = record->status == LS_RUN_OK;
    sqlite3_stmt *statement = NULL;
    ls_result result = query(results, error, &statement, same_run, "iiitt", record->point, seed, replication,
                             origin->version, origin->backend);
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK && more) old = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    if (result == LS_OK && more) result = execute(results, error, "DELETE FROM metrics WHERE run = ?", "i", old);
    if (result == LS_OK && more) result = execute(results, error, "DELETE FROM runs WHERE id = ?", "i", old);
    if (result == LS_OK) {
        result = execute(results, error,
                         "INSERT INTO runs(point, seed, replication, version, backend, status, message, events, wall_s)"
                         " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         "iiittttid", record->point, seed, replication, origin->version, origin->backend,
                         ls_run_status_name(record->status), ok ? NULL : record->message,
                         ok ? (int64_t)record->result->events : (int64_t)0, ok ? record->result->wall_s : 0.0);
    }
    if (result != LS_OK || !ok) return result;
    return add_metrics(results, sqlite3_last_insert_rowid(results->database), metrics, metric_count,
                       record->result->values, error);
}

ls_result ls_results_add_runs(ls_results *results, const ls_run_origin *origin, const ls_metric *metrics,
                              uint32_t metric_count, const ls_run_record *records, uint32_t count, ls_error *error)
{
    if (count == 0) return LS_OK;
    ls_result result = begin(results, error);
    if (result != LS_OK) return result;
    for (uint32_t i = 0; i < count && result == LS_OK; i++) {
        result = add_run(results, origin, metrics, metric_count, &records[i], error);
    }
    return finish(results, error, result);
}

static void take_metric(sqlite3_stmt *statement, int name_column, const ls_metric *metrics, uint32_t metric_count,
                        double *values)
{
    const char *name = (const char *)sqlite3_column_text(statement, name_column);
    for (uint32_t i = 0; name != NULL && i < metric_count; i++) {
        if (strcmp(metrics[i].name, name) == 0) values[i] = sqlite3_column_double(statement, name_column + 1);
    }
}

ls_result ls_results_each_run(ls_results *results, int64_t point, uint64_t seed, const ls_run_origin *origin,
                              const ls_metric *metrics, uint32_t metric_count, ls_results_visit_run visit,
                              void *context, ls_error *error)
{
    double values[LS_METRICS_MAX];
    uint64_t replication = 0;
    bool more = true, open = false;
    sqlite3_stmt *statement = NULL;
    ls_result result = query(results, error, &statement,
                             "SELECT r.replication, m.name, m.value FROM runs r LEFT JOIN metrics m ON m.run = r.id"
                             " WHERE r.point = ? AND r.seed = ? AND r.version = ? AND r.backend = ? AND r.status = 'ok'"
                             " ORDER BY r.replication",
                             "iitt", point, (int64_t)seed, origin->version, origin->backend);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK) break;
        uint64_t next = more ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
        if (open && (!more || next != replication)) {
            result = visit(context, replication, values);
            open = false;
        }
        if (!more) break;
        if (!open) {
            for (uint32_t i = 0; i < LS_METRICS_MAX; i++) values[i] = NAN;
            replication = next;
            open = true;
        }
        take_metric(statement, 1, metrics, metric_count, values);
    }
    sqlite3_finalize(statement);
    return result;
}

/* ---- loading an experiment ---- */

static ls_result copy_column(sqlite3_stmt *statement, int column, char **copy)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    *copy = ls_duplicate(text != NULL ? text : "");
    return *copy != NULL ? LS_OK : LS_ERROR_MEMORY;
}

static ls_result copy_json_string(const cJSON *node, char **copy)
{
    if (!cJSON_IsString(node)) return LS_OK;
    *copy = ls_duplicate(node->valuestring);
    return *copy != NULL ? LS_OK : LS_ERROR_MEMORY;
}

/* A JSON array of strings into an array of copies. Anything else in it is corrupt. */
static ls_result copy_json_strings(const cJSON *list, char ***strings, uint32_t *count)
{
    if (!cJSON_IsArray(list)) return LS_ERROR_CORRUPT;
    if (list->child == NULL) return LS_OK;
    *strings = ls_allocate_array((size_t)cJSON_GetArraySize(list), sizeof(char *));
    if (*strings == NULL) return LS_ERROR_MEMORY;
    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        if (!cJSON_IsString(item)) return LS_ERROR_CORRUPT;
        (*strings)[*count] = ls_duplicate(item->valuestring);
        if ((*strings)[*count] == NULL) return LS_ERROR_MEMORY;
        (*count)++;
    }
    return LS_OK;
}

static ls_result parse_strings(const char *json, char ***strings, uint32_t *count)
{
    cJSON *list = cJSON_Parse(json != NULL ? json : "");
    ls_result result = copy_json_strings(list, strings, count);
    cJSON_Delete(list);
    return result;
}

static ls_result parse_compare(const char *json, ls_stored_experiment *e)
{
    cJSON *compare = cJSON_Parse(json != NULL ? json : "");
    ls_result result = copy_json_string(cJSON_GetObjectItemCaseSensitive(compare, "key"), &e->compare_key);
    if (result == LS_OK) {
        result = copy_json_string(cJSON_GetObjectItemCaseSensitive(compare, "baseline"), &e->compare_baseline);
    }
    if (result == LS_OK) {
        result = copy_json_strings(cJSON_GetObjectItemCaseSensitive(compare, "metrics"), &e->compare_metrics,
                                   &e->compare_metric_count);
    }
    if (result == LS_OK && e->compare_key == NULL) result = LS_ERROR_CORRUPT;
    cJSON_Delete(compare);
    return result;
}

static ls_result parse_replications(const char *json, ls_stored_experiment *e)
{
    cJSON *rule = cJSON_Parse(json != NULL ? json : "");
    ls_result result = copy_json_string(cJSON_GetObjectItemCaseSensitive(rule, "metric"), &e->replication_metric);
    cJSON_Delete(rule);
    return result;
}

static ls_result explain(const ls_results *results, ls_result result, ls_error *error)
{
    if (result == LS_ERROR_MEMORY) return ls_fail(error, result, "%s: out of memory", results->path);
    if (result == LS_ERROR_CORRUPT) {
        return ls_fail(error, result,
                       "%s: damaged: a stored list cannot be read; run the experiment again into another file",
                       results->path);
    }
    return result;
}

static ls_result load_row(const ls_results *results, sqlite3_stmt *statement, ls_stored_experiment *e, ls_error *error)
{
    e->id = sqlite3_column_int64(statement, 0);
    e->quick = sqlite3_column_int64(statement, 5) != 0;
    e->seed = (uint64_t)sqlite3_column_int64(statement, 6);
    ls_result result = copy_column(statement, 1, &e->name);
    if (result == LS_OK) result = copy_column(statement, 2, &e->title);
    if (result == LS_OK) result = copy_column(statement, 3, &e->shows);
    if (result == LS_OK) result = copy_column(statement, 4, &e->path);
    if (result == LS_OK) result = parse_replications((const char *)sqlite3_column_text(statement, 7), e);
    if (result == LS_OK) result = parse_compare((const char *)sqlite3_column_text(statement, 8), e);
    if (result == LS_OK) {
        result = parse_strings((const char *)sqlite3_column_text(statement, 9), &e->swept_keys, &e->swept_key_count);
    }
    if (result == LS_OK) result = copy_column(statement, 10, &e->spec);
    if (result == LS_OK) result = copy_column(statement, 11, &e->added);
    return explain(results, result, error);
}

/* "a, b, c": the names of the experiments in the file. */
static ls_result no_such_experiment(const ls_results *results, const char *name, ls_error *error)
{
    sqlite3_stmt *statement;
    ls_text names = {0};
    bool more = true;
    ls_result result = query(results, error, &statement, "SELECT DISTINCT name FROM experiments ORDER BY name", "");
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK || !more) break;
        const char *found = (const char *)sqlite3_column_text(statement, 0);
        ls_text_format(&names, "%s%s", names.length > 0 ? ", " : "", found != NULL ? found : "");
    }
    sqlite3_finalize(statement);
    ls_text_add(&names, names.length == 0 ? "(none)" : "");
    const char *list = names.failed ? "(out of memory)" : names.bytes;
    if (result == LS_OK && name != NULL) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: no experiment \"%.100s\"; it holds %.500s", results->path, name,
                         list);
    } else if (result == LS_OK) {
        result = ls_fail(error, LS_ERROR_INVALID, "%s: name one experiment (--experiment NAME); it holds %.500s",
                         results->path, list);
    }
    ls_text_free(&names);
    return result;
}

static ls_result load_experiment(const ls_results *results, const char *name, ls_stored_experiment *e, ls_error *error)
{
    int64_t names = 0;
    sqlite3_stmt *statement = NULL;
    bool more = false;
    ls_result result = query_integer(results, error, "SELECT count(DISTINCT name) FROM experiments", &names);
    if (result == LS_OK && name == NULL && names != 1) return no_such_experiment(results, NULL, error);
    if (result == LS_OK) {
        result = query(results, error, &statement,
                       "SELECT id, name, title, shows, path, quick, seed, replications, compare, swept, spec, added FROM experiments"
                       " WHERE ?1 IS NULL OR name = ?1 ORDER BY added DESC, id DESC LIMIT 1",
                       "t", name);
    }
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK) {
        result = more ? load_row(results, statement, e, error) : no_such_experiment(results, name, error);
    }
    sqlite3_finalize(statement);
    return result;
}

static ls_result load_origin(const ls_results *results, const char *backend, ls_stored_experiment *e, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = false;
    ls_result result = query(results, error, &statement,
                             "SELECT r.version, r.backend FROM experiment_points p JOIN runs r ON r.point = p.point"
                             " WHERE p.experiment = ?1 AND r.seed = ?2 AND r.status = 'ok'"
                             " AND (?3 IS NULL OR r.backend = ?3) ORDER BY r.id DESC LIMIT 1",
                             "iit", e->id, (int64_t)e->seed, backend);
    if (result == LS_OK) result = step(results, error, statement, &more);
    if (result == LS_OK) {
        e->version = ls_duplicate(more ? (const char *)sqlite3_column_text(statement, 0) : "");
        e->backend = ls_duplicate(more ? (const char *)sqlite3_column_text(statement, 1) : "");
        if (e->version == NULL || e->backend == NULL) result = explain(results, LS_ERROR_MEMORY, error);
    }
    sqlite3_finalize(statement);
    return result;
}

static ls_result load_points(const ls_results *results, ls_stored_experiment *e, ls_error *error)
{
    sqlite3_stmt *statement;
    uint32_t capacity = 0;
    bool more = true;
    ls_result result = query(results, error, &statement,
                             "SELECT p.hash, x.labels FROM experiment_points x JOIN points p ON p.id = x.point"
                             " WHERE x.experiment = ? ORDER BY x.position",
                             "i", e->id);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK || !more) break;
        if (e->point_count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 16;
            ls_stored_point *points = ls_reallocate(e->points, capacity * sizeof *points);
            if (points == NULL) {
                result = explain(results, LS_ERROR_MEMORY, error);
                break;
            }
            e->points = points;
        }
        ls_stored_point *point = &e->points[e->point_count++];
        *point = (ls_stored_point){0};
        const char *hash = (const char *)sqlite3_column_text(statement, 0);
        snprintf(point->hash, sizeof point->hash, "%s", hash != NULL ? hash : "");
        uint32_t labels = 0;
        result = parse_strings((const char *)sqlite3_column_text(statement, 1), &point->labels, &labels);
        /* Freed by swept_key_count: a list of another length must not be taken for one of that length. */
        if (result == LS_OK && labels != e->swept_key_count) result = LS_ERROR_CORRUPT;
        if (result != LS_OK) {
            for (uint32_t i = 0; point->labels != NULL && i < labels; i++) ls_free(point->labels[i]);
            ls_free(point->labels);
            point->labels = NULL;
            result = explain(results, result, error);
        }
    }
    sqlite3_finalize(statement);
    return result;
}

#define OF_EXPERIMENT                                                                                                  \
    " FROM experiment_points x JOIN runs r ON r.point = x.point WHERE x.experiment = ? AND r.seed = ? AND r.version "  \
    "= ?"                                                                                                              \
    " AND r.backend = ?"

static ls_result load_metric_names(const ls_results *results, ls_stored_experiment *e, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = true;
    ls_result result =
        query(results, error, &statement,
              "SELECT DISTINCT m.name FROM metrics m WHERE m.run IN (SELECT r.id" OF_EXPERIMENT ") ORDER BY m.name",
              "iitt", e->id, (int64_t)e->seed, e->version, e->backend);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK || !more) break;
        char **names = ls_reallocate(e->metric_names, (e->metric_count + 1) * sizeof *names);
        if (names == NULL) {
            result = explain(results, LS_ERROR_MEMORY, error);
            break;
        }
        e->metric_names = names;
        result = explain(results, copy_column(statement, 0, &names[e->metric_count]), error);
        if (result == LS_OK) e->metric_count++;
    }
    sqlite3_finalize(statement);
    return result;
}

static ls_stored_run *new_run(ls_stored_experiment *e, ls_stored_point *point)
{
    /* Grown by doubling: the count is a power of two exactly when it is full. */
    if ((point->run_count & (point->run_count - 1)) == 0) {
        uint32_t capacity = point->run_count > 0 ? 2 * point->run_count : 1;
        ls_stored_run *runs = ls_reallocate(point->runs, capacity * sizeof *runs);
        if (runs == NULL) return NULL;
        point->runs = runs;
    }
    ls_stored_run *run = &point->runs[point->run_count];
    *run = (ls_stored_run){.values = ls_allocate_array((size_t)e->metric_count + 1, sizeof(double))};
    if (run->values == NULL) return NULL;
    for (uint32_t i = 0; i < e->metric_count; i++) run->values[i] = NAN;
    point->run_count++;
    return run;
}

static ls_result take_row(const ls_results *results, sqlite3_stmt *statement, ls_stored_experiment *e, ls_error *error)
{
    int64_t position = sqlite3_column_int64(statement, 0);
    if (position < 0 || position >= e->point_count) return explain(results, LS_ERROR_CORRUPT, error);
    ls_stored_point *point = &e->points[position];
    const char *status = (const char *)sqlite3_column_text(statement, 2);
    if (status == NULL || strcmp(status, "ok") != 0) {
        point->failed_count++;
        return LS_OK;
    }
    uint64_t replication = (uint64_t)sqlite3_column_int64(statement, 1);
    ls_stored_run *run = point->run_count > 0 ? &point->runs[point->run_count - 1] : NULL;
    if (run == NULL || run->replication != replication) {
        run = new_run(e, point);
        if (run == NULL) return explain(results, LS_ERROR_MEMORY, error);
        run->seed = e->seed;
        run->replication = replication;
    }
    const char *name = (const char *)sqlite3_column_text(statement, 3);
    for (uint32_t i = 0; name != NULL && i < e->metric_count; i++) {
        if (strcmp(e->metric_names[i], name) == 0) run->values[i] = sqlite3_column_double(statement, 4);
    }
    return LS_OK;
}

static ls_result load_runs(const ls_results *results, ls_stored_experiment *e, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = true;
    ls_result result =
        query(results, error, &statement,
              "SELECT x.position, r.replication, r.status, m.name, m.value FROM experiment_points x"
              " JOIN runs r ON r.point = x.point LEFT JOIN metrics m ON m.run = r.id WHERE x.experiment = ?"
              " AND r.seed = ? AND r.version = ? AND r.backend = ? ORDER BY x.position, r.replication",
              "iitt", e->id, (int64_t)e->seed, e->version, e->backend);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result == LS_OK && more) result = take_row(results, statement, e, error);
    }
    sqlite3_finalize(statement);
    return result;
}

ls_result ls_results_load(ls_results *results, const char *name, const char *backend, ls_stored_experiment **experiment,
                          ls_error *error)
{
    ls_stored_experiment *e = ls_allocate_array(1, sizeof *e);
    if (e == NULL) return explain(results, LS_ERROR_MEMORY, error);
    ls_result result = load_experiment(results, name, e, error);
    if (result == LS_OK) result = load_origin(results, backend, e, error);
    if (result == LS_OK) result = load_points(results, e, error);
    if (result == LS_OK) result = load_metric_names(results, e, error);
    if (result == LS_OK) result = load_runs(results, e, error);
    if (result != LS_OK) {
        ls_stored_experiment_free(e);
        return result;
    }
    *experiment = e;
    return LS_OK;
}

static void free_strings(char **strings, uint32_t count)
{
    for (uint32_t i = 0; strings != NULL && i < count; i++) ls_free(strings[i]);
    ls_free(strings);
}

void ls_stored_experiment_free(ls_stored_experiment *e)
{
    if (e == NULL) return;
    for (uint32_t i = 0; i < e->point_count; i++) {
        for (uint32_t r = 0; r < e->points[i].run_count; r++) ls_free(e->points[i].runs[r].values);
        ls_free(e->points[i].runs);
        free_strings(e->points[i].labels, e->swept_key_count);
    }
    ls_free(e->points);
    free_strings(e->swept_keys, e->swept_key_count);
    free_strings(e->metric_names, e->metric_count);
    free_strings(e->compare_metrics, e->compare_metric_count);
    ls_free(e->name);
    ls_free(e->title);
    ls_free(e->shows);
    ls_free(e->path);
    ls_free(e->spec);
    ls_free(e->added);
    ls_free(e->version);
    ls_free(e->backend);
    ls_free(e->replication_metric);
    ls_free(e->compare_key);
    ls_free(e->compare_baseline);
    ls_free(e);
}

ls_result ls_results_each_experiment(ls_results *results, ls_results_visit_summary visit, void *context,
                                     ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = true;
    ls_result result =
        query(results, error, &statement,
              "SELECT e.name, e.title, e.added, e.seed, e.quick, (SELECT count(*) FROM experiment_points x WHERE "
              "x.experiment = e.id),"
              " (SELECT count(*) FROM experiment_points x JOIN runs r ON r.point = x.point WHERE x.experiment = e.id"
              " AND r.seed = e.seed AND r.status = 'ok'), (SELECT count(*) FROM experiment_points x JOIN runs r ON "
              "r.point = x.point"
              " WHERE x.experiment = e.id AND r.seed = e.seed AND r.status <> 'ok') FROM experiments e ORDER BY "
              "e.added, e.id",
              "");
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK || !more) break;
        ls_results_summary summary = {.name = (const char *)sqlite3_column_text(statement, 0),
                                      .title = (const char *)sqlite3_column_text(statement, 1),
                                      .added = (const char *)sqlite3_column_text(statement, 2),
                                      .seed = (uint64_t)sqlite3_column_int64(statement, 3),
                                      .quick = sqlite3_column_int64(statement, 4) != 0,
                                      .points = (uint64_t)sqlite3_column_int64(statement, 5),
                                      .runs_ok = (uint64_t)sqlite3_column_int64(statement, 6),
                                      .runs_failed = (uint64_t)sqlite3_column_int64(statement, 7)};
        result = summary.name != NULL && summary.title != NULL && summary.added != NULL
                     ? visit(context, &summary)
                     : explain(results, LS_ERROR_CORRUPT, error);
    }
    sqlite3_finalize(statement);
    return result;
}

/* ---- hash and merge ---- */

static void digest_column(ls_digest *digest, sqlite3_stmt *statement, int column)
{
    char number[32];
    const char *text = (const char *)sqlite3_column_text(statement, column);
    if (sqlite3_column_type(statement, column) == SQLITE_FLOAT) {
        text = ls_number_text(sqlite3_column_double(statement, column), number);
    }
    ls_digest_field(digest, text != NULL ? text : "");
}

/* Adds every column of every row of a query. */
static ls_result digest_rows(const ls_results *results, ls_digest *digest, const char *sql, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = true;
    ls_result result = query(results, error, &statement, sql, "");
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        for (int i = 0; result == LS_OK && more && i < sqlite3_column_count(statement); i++) {
            digest_column(digest, statement, i);
        }
    }
    sqlite3_finalize(statement);
    ls_digest_field(digest, "end of table");
    return result;
}

/* "dir:PATH" counts as "dir". */
#define BACKEND_KIND "substr(r.backend, 1, instr(r.backend || ':', ':') - 1)"

ls_result ls_results_hash(ls_results *results, char hex[LS_DIGEST_HEX_BYTES], ls_error *error)
{
    static const char *const tables[] = {
        "SELECT name, title, shows, spec, quick, seed, replications, compare, swept FROM experiments"
        " ORDER BY name, spec, quick, seed",
        "SELECT e.name, x.position, p.hash, x.labels FROM experiments e JOIN experiment_points x ON x.experiment = e.id"
        " JOIN points p ON p.id = x.point ORDER BY e.name, e.spec, e.quick, e.seed, x.position",
        "SELECT hash, resolved FROM points ORDER BY hash",
        "SELECT p.hash, r.seed, r.replication, r.version, " BACKEND_KIND ", r.status, r.events FROM runs r"
        " JOIN points p ON p.id = r.point ORDER BY p.hash, r.seed, r.replication, r.version, 5, 6, 7",
        "SELECT p.hash, r.seed, r.replication, r.version, " BACKEND_KIND ", m.name, m.value FROM runs r"
        " JOIN points p ON p.id = r.point JOIN metrics m ON m.run = r.id"
        " ORDER BY p.hash, r.seed, r.replication, r.version, 5, m.name, m.value"};
    ls_digest *digest = ls_digest_new();
    if (digest == NULL) return explain(results, LS_ERROR_MEMORY, error);
    ls_result result = LS_OK;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && result == LS_OK; i++) {
        result = digest_rows(results, digest, tables[i], error);
    }
    ls_result finished = ls_digest_finish(digest, hex);
    return result != LS_OK ? result : explain(results, finished, error);
}

/* o: the other file's rows. Rows are matched by what they are, never by row id. */
static const char merge_script[] =
    "INSERT OR IGNORE INTO points(hash, resolved) SELECT hash, resolved FROM other.points;"
    "INSERT OR IGNORE INTO experiments(name, title, shows, path, spec, quick, seed, replications, compare, swept, "
    "added)"
    " SELECT name, title, shows, path, spec, quick, seed, replications, compare, swept, added FROM other.experiments;"
    "INSERT OR IGNORE INTO experiment_points(experiment, position, point, labels)"
    " SELECT e.id, x.position, p.id, x.labels FROM other.experiment_points x"
    " JOIN other.experiments o ON o.id = x.experiment"
    " JOIN experiments e ON e.name = o.name AND e.spec = o.spec AND e.quick = o.quick AND e.seed = o.seed"
    " JOIN other.points q ON q.id = x.point JOIN points p ON p.hash = q.hash;"
    "CREATE TEMP TABLE matched AS SELECT o.id AS theirs, p.id AS point FROM other.runs o"
    " JOIN other.points q ON q.id = o.point JOIN points p ON p.hash = q.hash;"
    /* Theirs went well where ours did not: ours makes room. A failed run has no metrics. */
    "DELETE FROM runs WHERE status <> 'ok' AND id IN (SELECT r.id FROM runs r JOIN matched k ON k.point = r.point"
    " JOIN other.runs o ON o.id = k.theirs AND o.seed = r.seed AND o.replication = r.replication AND o.version = "
    "r.version"
    " AND o.backend = r.backend WHERE o.status = 'ok');"
    "INSERT OR IGNORE INTO runs(point, seed, replication, version, backend, status, message, events, wall_s)"
    " SELECT k.point, o.seed, o.replication, o.version, o.backend, o.status, o.message, o.events, o.wall_s"
    " FROM matched k JOIN other.runs o ON o.id = k.theirs;"
    "INSERT OR IGNORE INTO metrics(run, name, value) SELECT r.id, m.name, m.value FROM matched k"
    " JOIN other.runs o ON o.id = k.theirs JOIN runs r ON r.point = k.point AND r.seed = o.seed"
    " AND r.replication = o.replication AND r.version = o.version AND r.backend = o.backend"
    " JOIN other.metrics m ON m.run = o.id;"
    "DROP TABLE matched;";

/* Each finds one contradiction between this file and the other and says it in words; no row: none. Values are compared
 * exactly: equal programs give equal bits, and of measured runs it cannot be known which is meant. */
#define SAME_EXPERIMENT "e.name = o.name AND e.spec = o.spec AND e.quick = o.quick AND e.seed = o.seed"
#define POINT_LIST(schema, experiment)                                                                                 \
    "(SELECT group_concat(entry) FROM (SELECT x.position || ' ' || p.hash || ' ' || x.labels AS entry"                  \
    " FROM " schema ".experiment_points x JOIN " schema ".points p ON p.id = x.point"                                   \
    " WHERE x.experiment = " experiment " ORDER BY x.position))"

static const char *const contradictions[] = {
    "SELECT 'point ' || substr(p.hash, 1, 12) || ' stands for another scenario there; one of the files is damaged'"
    " FROM main.points p JOIN other.points q ON q.hash = p.hash WHERE q.resolved <> p.resolved LIMIT 1",

    "SELECT 'experiment ' || e.name || ' has the same spec but another stopping rule, comparison or sweep there; programs that"
    " read the spec differently made the files' FROM main.experiments e JOIN other.experiments o ON " SAME_EXPERIMENT
    " WHERE (e.replications, e.compare, e.swept) <> (o.replications, o.compare, o.swept) LIMIT 1",

    "SELECT 'experiment ' || e.name || ' has the same spec but other points there; programs that read the spec differently, or"
    " with another store model, made the files' FROM main.experiments e JOIN other.experiments o ON " SAME_EXPERIMENT
    " WHERE " POINT_LIST("main", "e.id") " IS NOT " POINT_LIST("other", "o.id") " LIMIT 1",

    "SELECT 'point ' || substr(hash, 1, 12) || ', seed ' || seed || ', replication ' || replication || ', program ' || version ||"
    " ', backend ' || backend || ': ' || difference FROM (SELECT p.hash, r.seed, r.replication, r.version, r.backend, coalesce("
    "  (SELECT m.name || ' is ' || printf('%!.17g', m.value) || ' here and ' || iif(n.value IS NULL, 'absent', printf('%!.17g', n.value)) ||"
    "   ' there' FROM main.metrics m LEFT JOIN other.metrics n ON n.run = o.id AND n.name = m.name"
    "   WHERE m.run = r.id AND m.value IS NOT n.value ORDER BY m.name LIMIT 1),"
    "  (SELECT n.name || ' is absent here and ' || printf('%!.17g', n.value) || ' there' FROM other.metrics n WHERE n.run = o.id"
    "   AND n.name NOT IN (SELECT name FROM main.metrics WHERE run = r.id) ORDER BY n.name LIMIT 1),"
    "  CASE WHEN r.events <> o.events THEN r.events || ' events here and ' || o.events || ' there' END) AS difference"
    " FROM main.runs r JOIN main.points p ON p.id = r.point JOIN other.points q ON q.hash = p.hash"
    " JOIN other.runs o ON o.point = q.id AND o.seed = r.seed AND o.replication = r.replication AND o.version = r.version"
    " AND o.backend = r.backend WHERE r.status = 'ok' AND o.status = 'ok')"
    " WHERE difference IS NOT NULL ORDER BY hash, seed, replication LIMIT 1"};

static ls_result check_contradictions(const ls_results *results, const char *path, ls_error *error)
{
    ls_result result = LS_OK;
    for (size_t i = 0; i < sizeof contradictions / sizeof contradictions[0] && result == LS_OK; i++) {
        sqlite3_stmt *statement = NULL;
        bool more = false;
        result = query(results, error, &statement, contradictions[i], "");
        if (result == LS_OK) result = step(results, error, statement, &more);
        if (result == LS_OK && more) {
            result = ls_fail(error, LS_ERROR_VIOLATED,
                             "%s contradicts %s: %s. Nothing of it was added; leave out the wrong file, or run it anew", path,
                             results->path, (const char *)sqlite3_column_text(statement, 0));
        }
        sqlite3_finalize(statement);
    }
    return result;
}

/* A glob for the shards easily takes in the file that they are joined into. */
static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

ls_result ls_results_merge(ls_results *results, const char *path, ls_error *error)
{
    ls_results *other = NULL;
    if (is_same_file(results->path, path)) return LS_OK;
    ls_result result = ls_results_open(path, LS_RESULTS_READ, &other, error); /* checks that it is one of ours */
    ls_results_close(other);
    if (result == LS_OK) result = execute(results, error, "ATTACH ? AS other", "t", path);
    if (result != LS_OK) return result;
    result = begin(results, error);
    if (result == LS_OK) {
        result = check_contradictions(results, path, error);
        if (result == LS_OK) result = execute_script(results, error, merge_script);
        result = finish(results, error, result);
    }
    sqlite3_exec(results->database, "DETACH other", NULL, NULL, NULL);
    return result;
}

/* ---- names and observations ---- */

/* Of each name the spec that was added last; ?1 is a name or NULL. */
#define NEWEST                                                                                                         \
    "WITH newest AS (SELECT * FROM experiments e WHERE (?1 IS NULL OR e.name = ?1) AND NOT EXISTS"                      \
    " (SELECT 1 FROM experiments o WHERE o.name = e.name AND (o.added, o.id) > (e.added, e.id))) "

/* Visits the first column of each row of a statement, which may have the experiment's name as its one parameter. */
static ls_result visit_names(ls_results *results, const char *sql, const char *format, const char *experiment,
                             ls_results_visit_name visit, void *context, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = true;
    ls_result result = query(results, error, &statement, sql, format, experiment);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result != LS_OK || !more) break;
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        result = name != NULL ? visit(context, name) : explain(results, LS_ERROR_CORRUPT, error);
    }
    sqlite3_finalize(statement);
    return result;
}

ls_result ls_results_each_name(ls_results *results, ls_results_visit_name visit, void *context, ls_error *error)
{
    return visit_names(results, "SELECT DISTINCT name FROM experiments ORDER BY name", "", NULL, visit, context, error);
}

/* An unknown experiment is an error with the known ones; NULL is none. */
static ls_result check_name(const ls_results *results, const char *experiment, ls_error *error)
{
    sqlite3_stmt *statement;
    bool more = false;
    if (experiment == NULL) return LS_OK;
    ls_result result = query(results, error, &statement, "SELECT 1 FROM experiments WHERE name = ?", "t", experiment);
    if (result == LS_OK) result = step(results, error, statement, &more);
    sqlite3_finalize(statement);
    return result == LS_OK && !more ? no_such_experiment(results, experiment, error) : result;
}

ls_result ls_results_each_swept_key(ls_results *results, const char *experiment, ls_results_visit_name visit,
                                    void *context, ls_error *error)
{
    ls_result result = check_name(results, experiment, error);
    if (result != LS_OK) return result;
    return visit_names(results,
                       NEWEST "SELECT k.value FROM newest n, json_each(n.swept) k GROUP BY k.value"
                              " ORDER BY min(n.name), min(k.key)",
                       "t", experiment, visit, context, error);
}

ls_result ls_results_each_metric_name(ls_results *results, const char *experiment, ls_results_visit_name visit,
                                      void *context, ls_error *error)
{
    ls_result result = check_name(results, experiment, error);
    if (result != LS_OK) return result;
    return visit_names(results,
                       NEWEST "SELECT DISTINCT m.name FROM newest n JOIN experiment_points x ON x.experiment = n.id"
                              " JOIN runs r ON r.point = x.point AND r.seed = n.seed AND r.status = 'ok'"
                              " JOIN metrics m ON m.run = r.id ORDER BY m.name",
                       "t", experiment, visit, context, error);
}

/* The texts of a row may not be NULL: the schema says so, but a damaged file need not obey it. */
static ls_result visit_row(const ls_results *results, sqlite3_stmt *statement, ls_results_visit_observation visit,
                           void *context, ls_error *error)
{
    const char *texts[7];
    for (int i = 0; i < 7; i++) {
        texts[i] = (const char *)sqlite3_column_text(statement, i);
        if (texts[i] == NULL) return explain(results, LS_ERROR_CORRUPT, error);
    }
    ls_observation observation = {.experiment = texts[0],
                                  .swept = texts[1],
                                  .labels = texts[2],
                                  .point = texts[3],
                                  .version = texts[4],
                                  .backend = texts[5],
                                  .metric = texts[6],
                                  .position = (uint64_t)sqlite3_column_int64(statement, 7),
                                  .seed = (uint64_t)sqlite3_column_int64(statement, 8),
                                  .replication = (uint64_t)sqlite3_column_int64(statement, 9),
                                  .value = sqlite3_column_double(statement, 10),
                                  .quick = sqlite3_column_int64(statement, 11) != 0};
    return visit(context, &observation);
}

ls_result ls_results_each_observation(ls_results *results, const ls_observation_filter *filter,
                                      ls_results_visit_observation visit, void *context, ls_error *error)
{
    sqlite3_stmt *statement = NULL;
    bool more = true;
    ls_result result = check_name(results, filter->experiment, error);
    if (result != LS_OK) return result;
    result = query(results, error, &statement,
                   NEWEST "SELECT n.name, n.swept, x.labels, p.hash, r.version, r.backend, m.name, x.position, n.seed,"
                          " r.replication, m.value, n.quick FROM newest n JOIN experiment_points x ON x.experiment = n.id"
                          " JOIN points p ON p.id = x.point"
                          " JOIN runs r ON r.point = x.point AND r.seed = n.seed AND r.status = 'ok'"
                          " JOIN metrics m ON m.run = r.id WHERE (?2 IS NULL OR instr(',' || ?2 || ',', ',' || m.name || ','))"
                          " AND (?3 IS NULL OR r.backend = ?3)"
                          " ORDER BY n.name, x.position, r.version, r.backend, r.replication, m.name",
                   "ttt", filter->experiment, filter->metrics, filter->backend);
    while (result == LS_OK && more) {
        result = step(results, error, statement, &more);
        if (result == LS_OK && more) result = visit_row(results, statement, visit, context, error);
    }
    sqlite3_finalize(statement);
    return result;
}

/* ---- delete ---- */

/* Runs of the doomed experiments that no other experiment counts as its own. */
static const char doomed_runs[] =
    "INSERT INTO doomed_runs SELECT DISTINCT r.id FROM experiments e JOIN experiment_points x ON x.experiment = e.id"
    " JOIN runs r ON r.point = x.point AND r.seed = e.seed WHERE e.name = ?1 AND (?2 IS NULL OR r.backend = ?2)"
    " AND NOT EXISTS (SELECT 1 FROM experiments o JOIN experiment_points y ON y.experiment = o.id"
    " WHERE o.name <> ?1 AND o.seed = r.seed AND y.point = r.point)";

static const char doomed_experiments[] = "INSERT INTO doomed_experiments SELECT id FROM experiments WHERE name = ?1";

/* A point stays while another experiment has it, or a run that stays: foreign keys would not let it go either. */
static const char doomed_points[] =
    "INSERT INTO doomed_points SELECT DISTINCT x.point FROM experiment_points x JOIN doomed_experiments d"
    " ON d.id = x.experiment WHERE NOT EXISTS (SELECT 1 FROM experiment_points y WHERE y.point = x.point"
    " AND y.experiment NOT IN (SELECT id FROM doomed_experiments)) AND NOT EXISTS"
    " (SELECT 1 FROM runs r WHERE r.point = x.point AND r.id NOT IN (SELECT id FROM doomed_runs))";

static const char delete_script[] =
    "DELETE FROM metrics WHERE run IN (SELECT id FROM doomed_runs);"
    "DELETE FROM runs WHERE id IN (SELECT id FROM doomed_runs);"
    "DELETE FROM experiment_points WHERE experiment IN (SELECT id FROM doomed_experiments);"
    "DELETE FROM experiments WHERE id IN (SELECT id FROM doomed_experiments);"
    "DELETE FROM points WHERE id IN (SELECT id FROM doomed_points);";

static ls_result count_rows(const ls_results *results, const char *sql, uint64_t *count, ls_error *error)
{
    int64_t value = 0;
    ls_result result = query_integer(results, error, sql, &value);
    *count = (uint64_t)value;
    return result;
}

static ls_result gather_doomed(const ls_results *results, const char *experiment, const char *backend,
                               ls_results_removal *removal, ls_error *error)
{
    ls_result result = execute_script(results, error,
                                      "CREATE TEMP TABLE doomed_runs(id INTEGER PRIMARY KEY);"
                                      "CREATE TEMP TABLE doomed_experiments(id INTEGER PRIMARY KEY);"
                                      "CREATE TEMP TABLE doomed_points(id INTEGER PRIMARY KEY);");
    if (result == LS_OK) result = execute(results, error, doomed_runs, "tt", experiment, backend);
    if (result == LS_OK && backend == NULL) result = execute(results, error, doomed_experiments, "t", experiment);
    if (result == LS_OK && backend == NULL) result = execute_script(results, error, doomed_points);
    if (result == LS_OK) result = count_rows(results, "SELECT count(*) FROM doomed_runs", &removal->runs, error);
    if (result == LS_OK) {
        result = count_rows(results, "SELECT count(*) FROM doomed_experiments", &removal->experiments, error);
    }
    if (result == LS_OK) result = count_rows(results, "SELECT count(*) FROM doomed_points", &removal->points, error);
    if (result == LS_OK) {
        result = count_rows(results, "SELECT count(*) FROM metrics WHERE run IN (SELECT id FROM doomed_runs)",
                            &removal->metrics, error);
    }
    return result;
}

ls_result ls_results_delete(ls_results *results, const char *experiment, const char *backend, bool dry,
                            ls_results_removal *removal, ls_error *error)
{
    *removal = (ls_results_removal){0};
    ls_result result = check_name(results, experiment, error);
    if (result == LS_OK) result = begin(results, error);
    if (result != LS_OK) return result;
    result = gather_doomed(results, experiment, backend, removal, error);
    if (result == LS_OK && backend != NULL && removal->runs == 0) {
        result = ls_fail(error, LS_ERROR_INVALID,
                         "%s: experiment \"%.100s\" has no runs of backend \"%.200s\" of its own; `lakestream results show` "
                         "names its backends",
                         results->path, experiment, backend);
    }
    if (result == LS_OK && !dry) result = execute_script(results, error, delete_script);
    if (result == LS_OK) {
        result = execute_script(results, error,
                                "DROP TABLE doomed_runs; DROP TABLE doomed_experiments; DROP TABLE doomed_points;");
    }
    return finish(results, error, result);
}
