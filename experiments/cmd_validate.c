/* cmd_validate.c - `lakestream validate SPEC`: the same points on a real store and on its calibrated model, under the same
 * seeds, and how far the two lie apart.
 *
 * Both sides go through the runner into one results file, told apart by their backend; so an interrupted validation goes
 * on where it was, and `lakestream plot` finds both. The model's numbers replace the spec's store in every point.
 */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/gnuplot.h"
#include "experiments/model_file.h"
#include "experiments/run_real.h"
#include "experiments/runner.h"
#include "experiments/statistics.h"
#include "experiments/validation_record.h"
#include "experiments/version.h"
#include "sim/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONFIDENCE        0.95
#define ABSOLUTE_CONFLICT 0.05 /* a conflict share may differ by so much, or by its relative tolerance, whichever is more */

typedef struct compared {
    const char *tolerance; /* its name on the command line */
    const char *title;
    ls_metric_id metric;
    double relative; /* greatest allowed |simulated / real - 1|; NaN: shown, not judged */
    double absolute; /* or this difference, whichever allows more */
} compared;

static const compared usual[] = {
    {"throughput", "published/s", LS_METRIC_PUBLISHED_RATE, 0.10, 0},
    {"attempts", "attempts/s", LS_METRIC_ATTEMPT_RATE, NAN, 0},
    {"conflicts", "conflict share", LS_METRIC_CONFLICT_SHARE, 0.10, ABSOLUTE_CONFLICT},
    {"p50", "delay p50 (s)", LS_METRIC_DELAY_P50, 0.15, 0},
    {"p90", "delay p90 (s)", LS_METRIC_DELAY_P90, NAN, 0},
    {"p99", "delay p99 (s)", LS_METRIC_DELAY_P99, 0.30, 0},
    {"requests", "requests/s", LS_METRIC_COMMIT_REQUEST_RATE, NAN, 0},
};

#define COMPARED (sizeof usual / sizeof usual[0])

typedef struct side {
    double *values[COMPARED]; /* by replication; NaN: that run is missing */
    uint64_t count;
    ls_estimate estimate[COMPARED];
} side;

typedef struct validation {
    const ls_arguments *arguments;
    ls_spec *spec;
    ls_vocabulary vocabulary;
    ls_results *results;
    const char *backend;
    char points[LS_DIGEST_HEX_BYTES]; /* of the spec before the model was laid in */
    compared rows[COMPARED];
    side *real, *simulated; /* by point */
    uint32_t missed, judged;
    ls_error *error;
} validation;

static ls_result out_of_memory(const validation *v) { return ls_fail(v->error, LS_ERROR_MEMORY, "out of memory"); }

/* --- options ------------------------------------------------------------------------------------------------------------------ */

static ls_result set_tolerance(validation *v, const char *name, size_t length, const char *number)
{
    for (size_t i = 0; i < COMPARED; i++) {
        char *end;
        if (strlen(usual[i].tolerance) != length || strncmp(usual[i].tolerance, name, length) != 0) continue;
        double value = strtod(number, &end);
        if (end == number || (*end != '\0' && *end != ',') || !(value >= 0 && value <= 10)) break;
        v->rows[i].relative = value;
        return LS_OK;
    }
    return ls_fail(v->error, LS_ERROR_INVALID,
                   "--tolerances: \"%.*s\": expected name=number with commas between, names among throughput, attempts, conflicts, p50, "
                   "p90, p99, requests, numbers from 0 to 10 (0.1 is ten per cent)",
                   (int)(strcspn(name, ",") < 60 ? strcspn(name, ",") : 60), name);
}

static ls_result read_tolerances(validation *v)
{
    memcpy(v->rows, usual, sizeof usual);
    const char *at = ls_argument_text(v->arguments, "tolerances");
    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "=,");
        ls_result result = set_tolerance(v, at, length, at[length] == '=' ? at + length + 1 : "");
        if (result != LS_OK) return result;
        at += strcspn(at, ",");
        if (*at == ',') at++;
    }
    return LS_OK;
}

/* --- the model in every point --------------------------------------------------------------------------------------------------- */

static ls_result lay_model(validation *v, const char *path)
{
    for (uint32_t k = 0; k < v->spec->swept_key_count; k++) {
        if (strncmp(v->spec->swept_keys[k], "store", 5) != 0) continue;
        return ls_fail(v->error, LS_ERROR_INVALID, "%s sweeps \"%s\", but a validation has one store: the real one", v->spec->name,
                       v->spec->swept_keys[k]);
    }
    for (uint32_t i = 0; i < v->spec->point_count; i++) {
        ls_spec_point *point = &v->spec->points[i];
        ls_result result = ls_model_read(path, &v->vocabulary, &point->scenario, v->error);
        if (result != LS_OK) return result;
        ls_free(point->resolved);
        point->resolved = ls_scenario_canonical(&v->vocabulary, &point->scenario);
        if (point->resolved == NULL || ls_digest_text(point->resolved, point->hash) != LS_OK) return out_of_memory(v);
    }
    return LS_OK;
}

static ls_result calibrate_first(validation *v, const char *path, const char *stem)
{
    ls_calibration calibration = {0};
    ls_calibration_plan plan = ls_calibration_plan_default(ls_argument_flag(v->arguments, "quick"));
    plan.table_path = stem;
    fprintf(stderr, "lakestream validate: no --model given; calibrating for about %g s\n", plan.seconds);
    ls_result result = ls_calibrate_address(v->backend, &plan, &calibration, v->error);
    ls_provenance provenance = {.backend = v->backend, .date = "", .seconds = plan.seconds};
    if (result == LS_OK) result = ls_model_write(path, &calibration, &provenance, v->error);
    ls_calibration_free(&calibration);
    return result;
}

/* --model none keeps the spec's own store: for backends that are themselves made of the spec's laws. */
static ls_result prepare_model(validation *v, const char *database)
{
    const char *given = ls_argument_text(v->arguments, "model");
    if (given != NULL) return strcmp(given, "none") == 0 ? LS_OK : lay_model(v, given);
    ls_text path = {0};
    ls_text_format(&path, "%s.model.json", database);
    char *stem = ls_duplicate(database);
    ls_result result = path.failed || stem == NULL ? out_of_memory(v) : LS_OK;
    if (result == LS_OK) result = calibrate_first(v, path.bytes, stem);
    if (result == LS_OK) result = lay_model(v, path.bytes);
    ls_text_free(&path);
    ls_free(stem);
    return result;
}

/* --- running both sides ----------------------------------------------------------------------------------------------------------- */

static ls_result simulate(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                          ls_error *error)
{
    (void)context;
    return ls_simulate(scenario, seed, replication, result, error);
}

static ls_result run_on_store(void *context, const ls_scenario *scenario, uint64_t seed, uint64_t replication, ls_run_result *result,
                              ls_error *error)
{
    return ls_run_real(scenario, context, seed, replication, result, error);
}

static void note(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "lakestream validate: %s\n", line);
}

static ls_result run_side(validation *v, bool simulated, bool *interrupted)
{
    ls_runner_report report = {0};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    ls_runner_config config = {.spec = v->spec, .metrics = v->vocabulary.metrics, .metric_count = v->vocabulary.metric_count,
                               .run = simulated ? simulate : run_on_store, .run_context = (void *)(uintptr_t)v->backend,
                               .origin = {LS_VERSION, simulated ? "sim" : v->backend}, .results = v->results,
                               .jobs = simulated && processors > 1 ? (uint32_t)processors : 1, .shard_count = 1,
                               .progress = isatty(STDERR_FILENO) == 1, .note = note};
    ls_result result = ls_runner_run(&config, &report, v->error);
    *interrupted = report.interrupted;
    if (result == LS_OK && report.failed > 0) {
        result = ls_fail(v->error, LS_ERROR_IO, "%" PRIu64 " %s runs failed; each is named above", report.failed,
                         simulated ? "simulated" : "real");
    }
    return result;
}

/* --- comparing ---------------------------------------------------------------------------------------------------------------------- */

static ls_result take_run(void *context, uint64_t replication, const double *values)
{
    side *s = context;
    if (replication >= s->count) return LS_OK;
    for (size_t i = 0; i < COMPARED; i++) s->values[i][replication] = values[usual[i].metric];
    return LS_OK;
}

static ls_result load_side(validation *v, int64_t point, const char *backend, side *s)
{
    s->count = v->spec->replications.maximum;
    for (size_t i = 0; i < COMPARED; i++) {
        s->values[i] = ls_allocate_array(s->count, sizeof(double));
        if (s->values[i] == NULL) return out_of_memory(v);
        for (uint64_t r = 0; r < s->count; r++) s->values[i][r] = NAN;
    }
    ls_run_origin origin = {LS_VERSION, backend};
    ls_result result = ls_results_each_run(v->results, point, v->spec->seed, &origin, v->vocabulary.metrics, v->vocabulary.metric_count,
                                           take_run, s, v->error);
    for (size_t i = 0; i < COMPARED && result == LS_OK; i++) {
        uint64_t present = 0;
        for (uint64_t r = 0; r < s->count; r++) {
            if (!isnan(s->values[i][r])) s->values[i][present++] = s->values[i][r];
        }
        s->estimate[i] = ls_estimate_of(s->values[i], present, CONFIDENCE);
    }
    return result;
}

static ls_result load(validation *v)
{
    uint32_t count = v->spec->point_count;
    int64_t *points = ls_allocate_array(count, sizeof *points);
    v->real = ls_allocate_array(count, sizeof *v->real);
    v->simulated = ls_allocate_array(count, sizeof *v->simulated);
    ls_result result = points != NULL && v->real != NULL && v->simulated != NULL ? LS_OK : out_of_memory(v);
    if (result == LS_OK) result = ls_results_add_experiment(v->results, v->spec, points, v->error);
    for (uint32_t i = 0; i < count && result == LS_OK; i++) {
        result = load_side(v, points[i], v->backend, &v->real[i]);
        if (result == LS_OK) result = load_side(v, points[i], "sim", &v->simulated[i]);
    }
    ls_free(points);
    return result;
}

typedef struct verdict {
    double real, simulated, error; /* error: simulated over real, minus 1 */
    bool judged, passed;
} verdict;

static verdict judge(const validation *v, uint32_t point, size_t row)
{
    verdict out = {.real = v->real[point].estimate[row].mean, .simulated = v->simulated[point].estimate[row].mean};
    double difference = out.simulated - out.real;
    out.error = difference == 0 ? 0 : difference / out.real;
    out.judged = !isnan(v->rows[row].relative);
    out.passed = out.judged && fabs(difference) <= fmax(v->rows[row].relative * fabs(out.real), v->rows[row].absolute);
    return out;
}

static void count_verdicts(validation *v)
{
    for (uint32_t i = 0; i < v->spec->point_count; i++) {
        for (size_t k = 0; k < COMPARED; k++) {
            verdict found = judge(v, i, k);
            v->judged += found.judged;
            v->missed += found.judged && !found.passed;
        }
    }
}

/* --- the report ------------------------------------------------------------------------------------------------------------------------ */

static void add_label(ls_text *text, const ls_spec *spec, uint32_t point)
{
    if (spec->swept_key_count == 0) ls_text_add(text, "the only point");
    for (uint32_t k = 0; k < spec->swept_key_count; k++) {
        ls_text_format(text, "%s%s", k > 0 ? ", " : "", spec->points[point].labels[k]);
    }
}

static void add_estimate(ls_text *text, const ls_estimate *estimate)
{
    ls_text_format(text, "%.4g", estimate->mean);
    if (!isnan(estimate->half_width)) ls_text_format(text, " ±%.2g", estimate->half_width);
}

static const char *word(verdict found) { return !found.judged ? "" : found.passed ? "pass" : "MISS"; }

static void add_tolerances(ls_text *text, const validation *v)
{
    ls_text_add(text, "Tolerances:");
    for (size_t k = 0; k < COMPARED; k++) {
        if (isnan(v->rows[k].relative)) continue;
        ls_text_format(text, " %s %.3g %%", v->rows[k].tolerance, 100 * v->rows[k].relative);
        if (v->rows[k].absolute > 0) ls_text_format(text, " or %.2g absolute, whichever is larger", v->rows[k].absolute);
        ls_text_add(text, ";");
    }
    ls_text_format(text, " %" PRIu32 " of %" PRIu32 " held. Intervals: 95 %%, over replications.\n", v->judged - v->missed, v->judged);
}

static void add_table(ls_text *text, const validation *v, bool markdown)
{
    if (markdown) ls_text_add(text, "| point | | real | simulated | error | |\n|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < v->spec->point_count; i++) {
        if (!markdown) add_label(text, v->spec, i);
        if (!markdown) ls_text_add(text, "\n");
        for (size_t k = 0; k < COMPARED; k++) {
            verdict found = judge(v, i, k);
            ls_text real = {0}, simulated = {0};
            add_estimate(&real, &v->real[i].estimate[k]);
            add_estimate(&simulated, &v->simulated[i].estimate[k]);
            if (markdown && k == 0) {
                ls_text_add(text, "| ");
                add_label(text, v->spec, i);
            } else if (markdown) {
                ls_text_add(text, "| ");
            }
            ls_text_format(text, markdown ? " | %s | %s | %s | %+.1f %% | %s |\n" : "  %-15s %20s %20s %+8.1f %%  %s\n", v->rows[k].title,
                           real.failed ? "" : real.bytes, simulated.failed ? "" : simulated.bytes, 100 * found.error, word(found));
            text->failed = text->failed || real.failed || simulated.failed;
            ls_text_free(&real);
            ls_text_free(&simulated);
        }
    }
    ls_text_add(text, "\n");
    add_tolerances(text, v);
}

static void add_json_number(ls_text *text, const char *name, double value)
{
    ls_text_format(text, ",\"%s\":", name);
    ls_text_number(text, value);
}

static void add_json(ls_text *text, const validation *v)
{
    ls_text_add(text, "{\"experiment\":");
    ls_text_json(text, v->spec->name);
    ls_text_format(text, ",\"judged\":%" PRIu32 ",\"missed\":%" PRIu32 ",\"rows\":[", v->judged, v->missed);
    for (uint32_t i = 0; i < v->spec->point_count; i++) {
        for (size_t k = 0; k < COMPARED; k++) {
            verdict found = judge(v, i, k);
            ls_text label = {0};
            add_label(&label, v->spec, i);
            ls_text_add(text, i + k > 0 ? ",\n{\"point\":" : "\n{\"point\":");
            ls_text_json(text, label.failed ? "" : label.bytes);
            ls_text_free(&label);
            ls_text_format(text, ",\"metric\":\"%s\"", v->vocabulary.metrics[usual[k].metric].name);
            add_json_number(text, "real", found.real);
            add_json_number(text, "real_half_width", v->real[i].estimate[k].half_width);
            add_json_number(text, "simulated", found.simulated);
            add_json_number(text, "simulated_half_width", v->simulated[i].estimate[k].half_width);
            add_json_number(text, "error", found.error);
            add_json_number(text, "tolerance", v->rows[k].relative);
            ls_text_format(text, ",\"verdict\":\"%s\"}", found.judged ? found.passed ? "pass" : "miss" : "shown");
        }
    }
    ls_text_add(text, "]}\n");
}

/* What the overlay is drawn from: a row a point and metric. */
static void add_overlay(ls_text *text, const validation *v)
{
    ls_text_add(text, "position\tpoint\tmetric\treal\treal.half_width\tsimulated\tsimulated.half_width\n");
    for (size_t k = 0; k < COMPARED; k++) {
        for (uint32_t i = 0; i < v->spec->point_count; i++) {
            ls_text label = {0};
            add_label(&label, v->spec, i);
            ls_text_format(text, "%" PRIu32 "\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\n", i, label.failed ? "" : label.bytes,
                           v->vocabulary.metrics[usual[k].metric].name, v->real[i].estimate[k].mean, v->real[i].estimate[k].half_width,
                           v->simulated[i].estimate[k].mean, v->simulated[i].estimate[k].half_width);
            ls_text_free(&label);
        }
    }
}

static ls_result fill_record(const validation *v, ls_validation_record *record)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < v->spec->point_count && result == LS_OK; i++) {
        ls_text label = {0};
        add_label(&label, v->spec, i);
        for (size_t k = 0; k < COMPARED && result == LS_OK; k++) {
            const ls_estimate *real = &v->real[i].estimate[k], *simulated = &v->simulated[i].estimate[k];
            ls_validation_row row = {label.bytes, (char *)(uintptr_t)v->vocabulary.metrics[usual[k].metric].name, real->mean, real->half_width,
                                     simulated->mean, simulated->half_width, v->rows[k].relative, v->rows[k].absolute, LS_VERDICT_SHOWN};
            result = label.failed ? LS_ERROR_MEMORY : ls_validation_add(record, &row);
        }
        ls_text_free(&label);
    }
    return result;
}

/* The dated file that --record asks for. */
static ls_result write_record(const validation *v, const char *path)
{
    char date[16], replications[32];
    time_t now = time(NULL);
    struct tm utc;
    const char *model = ls_argument_text(v->arguments, "model");
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    snprintf(replications, sizeof replications, "%" PRIu64, v->spec->replications.maximum);
    model = model == NULL ? "calibrated at once" : strcmp(model, "none") == 0 ? "as the spec says" : model;
    ls_validation_record record = {.experiment = ls_duplicate(v->spec->name), .points = ls_duplicate(v->points),
                                   .program = ls_duplicate(LS_VERSION), .store = ls_duplicate(v->backend), .date = ls_duplicate(date),
                                   .model = ls_duplicate(model), .replications = ls_duplicate(replications),
                                   .quick = v->spec->quick};
    ls_result result = fill_record(v, &record) == LS_OK ? ls_validation_write(&record, path, v->error) : out_of_memory(v);
    ls_validation_free(&record);
    return result;
}

static ls_result report(validation *v, const char *database)
{
    ls_text text = {0};
    bool json = ls_argument_flag(v->arguments, "json");
    if (json) add_json(&text, v);
    else add_table(&text, v, ls_argument_flag(v->arguments, "markdown"));
    ls_result result = text.failed ? out_of_memory(v) : LS_OK;
    if (result == LS_OK) fputs(text.bytes, stdout);
    ls_text_free(&text);
    if (result != LS_OK || json || !ls_argument_given(v->arguments, "plots")) return result;
    ls_text overlay = {0};
    add_overlay(&overlay, v);
    result = overlay.failed ? out_of_memory(v)
                            : ls_gnuplot_table(ls_argument_text(v->arguments, "plots"), "validation", database, &overlay, v->spec->title, v->error);
    ls_text_free(&overlay);
    return result;
}

/* --- the command --------------------------------------------------------------------------------------------------------------------- */

static ls_result database_path(const validation *v, char **path)
{
    const char *given = ls_argument_text(v->arguments, "output");
    ls_text text = {0};
    if (given != NULL) ls_text_add(&text, given);
    else ls_text_format(&text, "results/%s-validation.db", v->spec->name);
    *path = ls_text_take(&text);
    if (*path == NULL) return out_of_memory(v);
    return given == NULL ? ls_folder_make("results", v->error) : LS_OK;
}

static void free_sides(side *sides, uint32_t count)
{
    for (uint32_t i = 0; sides != NULL && i < count; i++) {
        for (size_t k = 0; k < COMPARED; k++) ls_free(sides[i].values[k]);
    }
    ls_free(sides);
}

static ls_result validate(validation *v, char **database, bool *interrupted)
{
    ls_result result = read_tolerances(v);
    if (result == LS_OK && v->backend == NULL) {
        result = ls_fail(v->error, LS_ERROR_INVALID, "--backend must be given: the real store, as in dir:PATH or s3://BUCKET/PREFIX");
    }
    if (result == LS_OK) {
        result = ls_spec_read(v->arguments->operands[0], &v->vocabulary, ls_argument_flag(v->arguments, "quick"), &v->spec, v->error);
    }
    if (result == LS_OK) result = database_path(v, database);
    if (result == LS_OK && ls_validation_points(v->spec, v->points) != LS_OK) result = out_of_memory(v);
    if (result == LS_OK) result = prepare_model(v, *database);
    if (result == LS_OK) result = ls_results_open(*database, LS_RESULTS_WRITE, &v->results, v->error);
    if (result == LS_OK) result = run_side(v, false, interrupted);
    if (result == LS_OK && !*interrupted) result = run_side(v, true, interrupted);
    if (result != LS_OK || *interrupted) return result;
    result = load(v);
    if (result != LS_OK) return result;
    count_verdicts(v);
    if (ls_argument_given(v->arguments, "record")) result = write_record(v, ls_argument_text(v->arguments, "record"));
    return result == LS_OK ? report(v, *database) : result;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    char *database = NULL;
    bool interrupted = false;
    validation v = {.arguments = arguments, .vocabulary = ls_vocabulary_default(), .backend = ls_argument_text(arguments, "backend"),
                    .error = &error};
    ls_result result = validate(&v, &database, &interrupted);
    int code = result != LS_OK ? ls_report_error(arguments, result, &error)
               : interrupted   ? LS_EXIT_INTERRUPTED
               : v.missed > 0  ? LS_EXIT_CHECK_FAILED
                               : LS_EXIT_DONE;
    free_sides(v.real, v.spec != NULL ? v.spec->point_count : 0);
    free_sides(v.simulated, v.spec != NULL ? v.spec->point_count : 0);
    ls_results_close(v.results);
    ls_spec_free(v.spec);
    ls_free(database);
    return code;
}

static const ls_command_option options[] = {
    {"backend", 'b', LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "the real store: memory, dir:PATH or s3://BUCKET/PREFIX"},
    {"model", 'm', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "its model file; default: calibrate first; none: the store as the spec says"},
    {"tolerances", 't', LS_ARGUMENT_TEXT, "LIST", "throughput=0.1,conflicts=0.1,p50=0.15,p99=0.3", 0, 0,
     "greatest relative errors; also attempts, p90 and requests, which are only shown unless named"},
    {"output", 'o', LS_ARGUMENT_TEXT, "DB", NULL, 0, 0, "results file; default results/<name of the spec>-validation.db"},
    {"plots", 'p', LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "draw both sides over each other with DIR/validation.gp"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "with the spec's \"quick\" overrides, and a quick calibration"},
    {"record", 0, LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "also as a dated file that a paper reads (paper/validation)"},
    {"markdown", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "the table as Markdown"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_validate = {
    .name = "validate",
    .operands = "SPEC",
    .minimum_operands = 1,
    .maximum_operands = 1,
    .summary = "Run a spec on a real store and on its model, and tell how far they lie apart",
    .details = "The same points, seeds and replications on both. A conflict share may differ by its relative tolerance or by 0.05,\n"
               "whichever is larger. Exit code 1 when a tolerance is missed.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
