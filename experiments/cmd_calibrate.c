/* cmd_calibrate.c - `lakestream calibrate`: measures a real store, fits its model, writes the model file and says how well
 * the model does what was measured. */
#include "experiments/commands.h"
#include "experiments/folder.h"
#include "experiments/gnuplot.h"
#include "experiments/model_file.h"
#include "experiments/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "1024,1048576" into whole numbers, ascending order and count being the plan's to judge. */
static ls_result parse_list(const char *option, const char *text, uint64_t *values, uint32_t *count, ls_error *error)
{
    *count = 0;
    for (const char *at = text;;) {
        char *end;
        errno = 0;
        unsigned long long value = strtoull(at, &end, 10);
        bool good = at[0] >= '0' && at[0] <= '9' && errno == 0 && (*end == ',' || *end == '\0') && *count < LS_CALIBRATION_LIST_MAX;
        if (!good || value > UINT32_MAX) {
            return ls_fail(error, LS_ERROR_INVALID, "--%s %.100s: expected at most %u whole numbers with commas between, as in 1024,65536",
                           option, text, LS_CALIBRATION_LIST_MAX);
        }
        values[(*count)++] = value;
        if (*end == '\0') return LS_OK;
        at = end + 1;
    }
}

static ls_result read_plan(const ls_arguments *arguments, ls_calibration_plan *plan, ls_error *error)
{
    *plan = ls_calibration_plan_default(ls_argument_flag(arguments, "quick"));
    if (ls_argument_given(arguments, "seconds")) plan->seconds = ls_argument_real(arguments, "seconds");
    ls_result result = LS_OK;
    const char *sizes = ls_argument_text(arguments, "sizes"), *clients = ls_argument_text(arguments, "concurrency");
    if (sizes != NULL) result = parse_list("sizes", sizes, plan->sizes, &plan->size_count, error);
    if (clients != NULL && result == LS_OK) {
        uint64_t values[LS_CALIBRATION_LIST_MAX];
        result = parse_list("concurrency", clients, values, &plan->client_count, error);
        for (uint32_t i = 0; i < plan->client_count && result == LS_OK; i++) plan->clients[i] = (uint32_t)values[i];
    }
    return result;
}

static void show_progress(void *context, uint32_t done, uint32_t all, const ls_measurement *last)
{
    (void)context;
    fprintf(stderr, "\r%3" PRIu32 " of %" PRIu32 ": %-18s %9" PRIu64 " bytes, %2" PRIu32 " clients %s", done, all,
            ls_request_kind_name(last->task.kind), last->task.bytes, last->task.clients, done == all ? "\n" : "");
}

/* --- the report ------------------------------------------------------------------------------------------------------------- */

static void print_laws(const ls_calibration *c)
{
    printf("%-17s %6s  %-10s %9s %9s %7s  %7s %7s %7s\n", "law", "values", "taken", "floor ms", "scale ms", "shape", "KS", "KS logn", "KS gam");
    for (int i = 0; i < LS_CALIBRATED_LAWS; i++) {
        const ls_fit *f = &c->fits[i];
        static const char *const names[] = {"constant", "exponential", "lognormal", "gamma", "folded-normal", "uniform", "empirical"};
        printf("%-17s %6" PRIu32 "  %-10s %9.3f %9.3f %7.3f  %7.3f %7.3f %7.3f\n", ls_calibrated_law_name((ls_calibrated_law)i), f->count,
               names[f->law.law], 1e3 * f->law.floor_s, 1e3 * f->law.scale_s, f->law.shape, f->distance, f->lognormal_distance, f->gamma_distance);
    }
}

static void print_numbers(const ls_calibration *c)
{
    const ls_store_config *s = &c->config;
    printf("\nper MiB: get %.3f ms, put %.3f ms; parallelism %.2f, exponent %.2f (rms error of log latency under load %.3f); "
           "the first request after %.4g s of rest takes %.3f ms longer\n",
           1e3 * s->get_s_per_mib, 1e3 * s->put_s_per_mib, s->parallelism, s->parallelism_exponent, c->load_error, s->rest_after_s,
           1e3 * s->rest_s);
    printf("effect at: put-if-absent %.2f, reads %.2f of the latency; rivals add %.3f ms per doubling%s (rms error of wins and failures %.3f)\n\n",
           s->conditional_effect_share, s->read_effect_share, 1e3 * s->contention_s_per_doubling,
           s->losers_wait ? ", losers are answered after winners" : "", c->effect_error);
}

static void print_cells(const ls_calibration *c)
{
    printf("%-18s %9s %7s | %9s %8s %8s %8s | %9s %8s %8s %8s | failures\n", "request", "bytes", "clients", "real 1/s", "p50 ms", "p90",
           "p99", "model 1/s", "p50 ms", "p90", "p99");
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const ls_measurement *r = &c->cells[i].measured, *m = &c->cells[i].modelled;
        printf("%-18s %9" PRIu64 " %7" PRIu32 " | %9.1f %8.3f %8.3f %8.3f | %9.1f %8.3f %8.3f %8.3f |", ls_request_kind_name(r->task.kind),
               r->task.bytes, r->task.clients, ls_measurement_rate_per_s(r), 1e3 * ls_sample_quantile(&r->latency_s, 0.5),
               1e3 * ls_sample_quantile(&r->latency_s, 0.9), 1e3 * ls_sample_quantile(&r->latency_s, 0.99), ls_measurement_rate_per_s(m),
               1e3 * ls_sample_quantile(&m->latency_s, 0.5), 1e3 * ls_sample_quantile(&m->latency_s, 0.9),
               1e3 * ls_sample_quantile(&m->latency_s, 0.99));
        bool is_rivalry = r->task.kind == LS_REQUEST_RACE || r->task.kind == LS_REQUEST_COMMIT;
        if (is_rivalry) printf(" %.3f %.3f", ls_measurement_conflict_share(r), ls_measurement_conflict_share(m));
        if (r->refused > 0) printf(" (%" PRIu64 " refused)", r->refused);
        printf("\n");
    }
}

/* --- the picture ------------------------------------------------------------------------------------------------------------- */

/* One block a law: its quantiles against the sample's. */
static void add_quantiles(ls_text *text, const ls_calibration *c)
{
    ls_text_add(text, "law\tprobability\tmeasured_s\tfitted_s\n");
    for (int i = 0; i < LS_CALIBRATED_LAWS; i++) {
        const ls_fit *f = &c->fits[i];
        for (uint32_t k = 0; k < f->table_count && f->table_count > 1; k++) {
            double probability = (k + 0.5) / f->table_count;
            ls_text_format(text, "%s\t", ls_calibrated_law_name((ls_calibrated_law)i));
            ls_text_number(text, probability);
            ls_text_add(text, "\t");
            ls_text_number(text, f->table[k]);
            ls_text_add(text, "\t");
            ls_text_number(text, ls_fit_quantile(&f->law, f->table, f->table_count, probability));
            ls_text_add(text, "\n");
        }
    }
}

static ls_result draw(const ls_arguments *arguments, const ls_calibration *c, const char *stem, ls_error *error)
{
    const char *folder = ls_argument_text(arguments, "plots");
    ls_text table = {0};
    add_quantiles(&table, c);
    ls_result result = table.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : LS_OK;
    if (result == LS_OK) result = ls_gnuplot_table(folder, "calibration", stem, &table, "Fitted laws against measured times", error);
    ls_text_free(&table);
    return result;
}

/* --- the command --------------------------------------------------------------------------------------------------------------- */

/* "a/b.json" gives "a/b". */
static char *without_suffix(const char *path)
{
    char *stem = ls_duplicate(path);
    size_t length = stem != NULL ? strlen(stem) : 0;
    if (length > 5 && strcmp(stem + length - 5, ".json") == 0) stem[length - 5] = '\0';
    return stem;
}

static void today(char date[16])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(date, 16, "%Y-%m-%d", &parts);
}

static void print_json(const char *path, const ls_calibration *c)
{
    ls_text text = {0};
    ls_text_add(&text, "{\"model\": ");
    ls_text_json(&text, path);
    ls_text_format(&text, ", \"tasks\": %" PRIu32 ", \"load_rms_log\": ", c->cell_count);
    ls_text_number(&text, c->load_error);
    ls_text_add(&text, ", \"effect_rms\": ");
    ls_text_number(&text, c->effect_error);
    ls_text_add(&text, "}\n");
    if (!text.failed) fputs(text.bytes, stdout);
    ls_text_free(&text);
}

static ls_result report(const ls_arguments *arguments, const ls_calibration *c, const char *path, const char *stem, ls_error *error)
{
    if (ls_argument_flag(arguments, "json")) {
        print_json(path, c);
        return LS_OK;
    }
    print_laws(c);
    print_numbers(c);
    print_cells(c);
    printf("\n%s\n", path);
    return ls_argument_given(arguments, "plots") ? draw(arguments, c, stem, error) : LS_OK;
}

static int run(const ls_arguments *arguments)
{
    ls_error error = {""};
    ls_calibration calibration = {0};
    ls_calibration_plan plan;
    char date[16];
    const char *path = ls_argument_text(arguments, "output"), *backend = ls_argument_text(arguments, "backend");
    char *stem = path != NULL ? without_suffix(path) : NULL, *folder = path != NULL ? ls_folder_of(path) : NULL;
    ls_result result = read_plan(arguments, &plan, &error);
    if (result == LS_OK && (path == NULL || backend == NULL)) {
        result = ls_fail(&error, LS_ERROR_INVALID, "--backend and --output must be given: what to measure, and where the model goes");
    } else if (result == LS_OK && (stem == NULL || folder == NULL)) {
        result = ls_fail(&error, LS_ERROR_MEMORY, "out of memory");
    }
    if (result == LS_OK) result = ls_folder_make(folder, &error);
    plan.table_path = stem;
    if (isatty(STDERR_FILENO) == 1) plan.progress = show_progress;
    if (result == LS_OK) result = ls_calibrate_address(backend, &plan, &calibration, &error);
    today(date);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    ls_provenance provenance = {.backend = backend, .date = date, .seconds = plan.seconds,
                                .host_processors = processors > 0 ? (uint32_t)processors : 0};
    if (result == LS_OK) result = ls_model_write(path, &calibration, &provenance, &error);
    if (result == LS_OK) result = report(arguments, &calibration, path, stem, &error);
    ls_calibration_free(&calibration);
    ls_free(stem);
    ls_free(folder);
    return result == LS_OK ? LS_EXIT_DONE : ls_report_error(arguments, result, &error);
}

static const ls_command_option options[] = {
    {"backend", 'b', LS_ARGUMENT_TEXT, "STORE", NULL, 0, 0, "what to measure: memory, dir:PATH or s3://BUCKET/PREFIX"},
    {"output", 'o', LS_ARGUMENT_TEXT, "FILE", NULL, 0, 0, "the model file, MODEL.json; tables of quantiles go beside it"},
    {"quick", 'q', LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "half a minute instead of two, to 1 MiB and 16 clients"},
    {"seconds", 's', LS_ARGUMENT_REAL, "S", NULL, 0.1, 86400, "how long to measure in all"},
    {"sizes", 0, LS_ARGUMENT_TEXT, "LIST", NULL, 0, 0, "bytes of the objects, ascending, commas between; the least gives the laws"},
    {"concurrency", 'c', LS_ARGUMENT_TEXT, "LIST", NULL, 0, 0, "numbers of clients, ascending"},
    {"plots", 'p', LS_ARGUMENT_TEXT, "DIR", NULL, 0, 0, "draw fitted against measured quantiles with DIR/calibration.gp"},
    {"json", 0, LS_ARGUMENT_FLAG, NULL, NULL, 0, 0, "report as JSON"}};

const ls_command ls_command_calibrate = {
    .name = "calibrate",
    .operands = "",
    .summary = "Measure a real store and write the model of it that a spec can name as its store",
    .details = "A spec takes the model as \"store\": \"MODEL.json\" (relative to the spec). The report sets what was measured beside\n"
               "what the model does when asked the same.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run};
