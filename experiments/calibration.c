/* calibration.c - the plan of measurements, and the fits that need more than one of them (see calibration.h). */
#include "experiments/calibration.h"

#include "experiments/digest.h"
#include "experiments/folder.h"
#include "experiments/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB            1048576.0
#define REQUESTS_MAX   20000u
#define VOLUME_MAX     (UINT64_C(64) << 20) /* bytes written by one task: a server in memory keeps them until they are removed */
#define IN_FLIGHT_MAX  (UINT64_C(64) << 20)
#define RACERS_MAX     16u
#define MODEL_REQUESTS 4000u
#define PAUSE_S        0.015 /* between the requests of a client that measures the store at rest */
#define COMMIT_PAUSE_S 0.2   /* between the commits of a client */
#define NO_REST        0.05 /* a store that takes less than this share longer after a pause does not rest */
#define NO_LOAD        1.15 /* mean latencies that grow by less than this at the most clients are no load */

/* --- laws by number ---------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
    ls_request_kind kind;
} laws[LS_CALIBRATED_LAWS] = {
    [LS_CALIBRATED_LIST] = {"list", offsetof(ls_store_config, list), LS_REQUEST_LIST},
    [LS_CALIBRATED_HEAD] = {"head", offsetof(ls_store_config, head), LS_REQUEST_HEAD},
    [LS_CALIBRATED_GET] = {"get", offsetof(ls_store_config, get), LS_REQUEST_GET},
    [LS_CALIBRATED_PUT] = {"put", offsetof(ls_store_config, put), LS_REQUEST_PUT},
    [LS_CALIBRATED_WON] = {"conditional_won", offsetof(ls_store_config, conditional_won), LS_REQUEST_WON},
    [LS_CALIBRATED_LOST] = {"conditional_lost", offsetof(ls_store_config, conditional_lost), LS_REQUEST_LOST},
    [LS_CALIBRATED_REMOVE] = {"remove", offsetof(ls_store_config, remove), LS_REQUEST_PUT},
};

const char *ls_calibrated_law_name(ls_calibrated_law law) { return law < LS_CALIBRATED_LAWS ? laws[law].name : "?"; }

ls_law *ls_calibrated_law_of(ls_store_config *config, ls_calibrated_law law)
{
    return (ls_law *)(void *)((char *)config + laws[law].offset);
}

/* --- the plan ---------------------------------------------------------------------------------------------------------------- */

ls_calibration_plan ls_calibration_plan_default(bool quick)
{
    static const uint64_t sizes[] = {1024, 16384, 262144, 1u << 20, 4u << 20, 16u << 20};
    static const uint32_t clients[] = {1, 2, 4, 8, 16, 32, 64};
    ls_calibration_plan plan = {.seconds = quick ? 30 : 120, .rounds = quick ? 2 : 3, .size_count = quick ? 4 : 6,
                                .client_count = quick ? 5 : 7, .seed = 1};
    memcpy(plan.sizes, sizes, sizeof sizes);
    memcpy(plan.clients, clients, sizeof clients);
    return plan;
}

typedef struct planner {
    const ls_calibration_plan *plan;
    ls_calibration *out;
    double weights; /* of all cells together */
    uint32_t capacity;
} planner;

static ls_result add_cell(planner *p, ls_request_kind kind, uint64_t bytes, uint32_t clients, double weight, double pause_s)
{
    if (bytes * clients > IN_FLIGHT_MAX && clients > 1) return LS_OK;
    if (p->out->cell_count == p->capacity) {
        uint32_t capacity = p->capacity == 0 ? 64 : 2 * p->capacity;
        ls_calibrated_cell *cells = ls_reallocate(p->out->cells, capacity * sizeof *cells);
        if (cells == NULL) return LS_ERROR_MEMORY;
        p->out->cells = cells;
        p->capacity = capacity;
    }
    p->weights += weight;
    p->out->cells[p->out->cell_count++] = (ls_calibrated_cell){
        .measured.task = {.kind = kind, .bytes = bytes, .clients = clients, .seconds = weight, .requests = REQUESTS_MAX,
                          .volume = VOLUME_MAX, .pause_s = pause_s}};
    return LS_OK;
}

/* Under load only the kinds that commits consist of. */
static bool is_measured_under_load(ls_request_kind kind)
{
    return kind == LS_REQUEST_GET || kind == LS_REQUEST_PUT || kind == LS_REQUEST_WON || kind == LS_REQUEST_LOST ||
           kind == LS_REQUEST_LIST;
}

static bool grows_with_size(ls_request_kind kind)
{
    return kind == LS_REQUEST_GET || kind == LS_REQUEST_RANGE || kind == LS_REQUEST_PUT || kind == LS_REQUEST_WON;
}

static ls_result plan_requests(planner *p, ls_request_kind kind)
{
    const ls_calibration_plan *plan = p->plan;
    ls_result result = add_cell(p, kind, plan->sizes[0], 1, 4, PAUSE_S);
    if (result == LS_OK && kind != LS_REQUEST_RANGE) result = add_cell(p, kind, plan->sizes[0], 1, 4, 0);
    for (uint32_t i = 1; i < plan->size_count && result == LS_OK && grows_with_size(kind); i++) {
        result = add_cell(p, kind, plan->sizes[i], 1, kind == LS_REQUEST_RANGE ? 0.5 : 1, PAUSE_S);
    }
    for (uint32_t i = 0; i < plan->client_count && result == LS_OK && is_measured_under_load(kind); i++) {
        if (plan->clients[i] > 1) result = add_cell(p, kind, plan->sizes[0], plan->clients[i], 1, 0);
    }
    return result;
}

static ls_result plan_rivals(planner *p, ls_request_kind kind)
{
    const ls_calibration_plan *plan = p->plan;
    bool commits = kind == LS_REQUEST_COMMIT;
    double weight = commits ? 3 : 1, pause_s = commits ? COMMIT_PAUSE_S : 0;
    ls_result result = add_cell(p, kind, plan->sizes[0], 1, 1, pause_s);
    for (uint32_t i = 0; i < plan->client_count && result == LS_OK; i++) {
        bool wanted = plan->clients[i] > 1 && plan->clients[i] <= (commits ? 2 : 1) * RACERS_MAX;
        if (wanted) result = add_cell(p, kind, plan->sizes[0], plan->clients[i], weight, pause_s);
    }
    return result;
}

static ls_result plan_cells(planner *p)
{
    ls_result result = LS_OK;
    for (int k = 0; k < LS_REQUEST_KINDS && result == LS_OK; k++) {
        result = k < LS_REQUEST_RACE ? plan_requests(p, (ls_request_kind)k) : plan_rivals(p, (ls_request_kind)k);
    }
    double share = p->plan->seconds / p->weights / p->plan->rounds;
    for (uint32_t i = 0; i < p->out->cell_count; i++) p->out->cells[i].measured.task.seconds *= share;
    return result;
}

static ls_result check_plan(const ls_calibration_plan *plan, ls_error *error)
{
    bool good = plan->seconds > 0 && plan->rounds > 0 && plan->size_count > 0 && plan->size_count <= LS_CALIBRATION_LIST_MAX &&
                plan->client_count > 0 && plan->client_count <= LS_CALIBRATION_LIST_MAX;
    for (uint32_t i = 0; good && i < plan->size_count; i++) good = plan->sizes[i] >= (i == 0 ? 1024 : plan->sizes[i - 1] + 1);
    for (uint32_t i = 0; good && i < plan->client_count; i++) good = plan->clients[i] > (i == 0 ? 0 : plan->clients[i - 1]);
    if (good) return LS_OK;
    return ls_fail(error, LS_ERROR_INVALID,
                   "a calibration needs time, sizes from 1024 bytes on and numbers of clients from 1 on, both ascending, at most %u each",
                   LS_CALIBRATION_LIST_MAX);
}

/* --- measuring --------------------------------------------------------------------------------------------------------------- */

static ls_result append(ls_sample *all, const ls_sample *more)
{
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < more->count && result == LS_OK; i++) result = ls_sample_add(all, more->values[i]);
    ls_sample_sort(all);
    return result;
}

static ls_result take_in(ls_measurement *all, const ls_measurement *more)
{
    all->elapsed_s += more->elapsed_s;
    all->completed += more->completed;
    all->wins += more->wins;
    all->losses += more->losses;
    all->undecided += more->undecided;
    all->refused += more->refused;
    ls_result result = append(&all->latency_s, &more->latency_s);
    if (result == LS_OK) result = append(&all->lost_s, &more->lost_s);
    return result == LS_OK ? append(&all->remove_s, &more->remove_s) : result;
}

typedef struct source {
    ls_measure_function measure;
    void *context;
    const char *prefix;
} source;

static ls_result measure_cell(const source *from, uint32_t round, uint32_t index, ls_measurement *all, ls_error *error)
{
    ls_measurement more;
    ls_text folder = {0};
    ls_text_format(&folder, "%s%u-%u", from->prefix, round, index);
    if (folder.failed) return ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    ls_result result = from->measure(from->context, folder.bytes, &all->task, &more, error);
    ls_text_free(&folder);
    if (result != LS_OK) return result;
    result = take_in(all, &more);
    ls_measurement_free(&more);
    return result == LS_OK ? LS_OK : ls_fail(error, result, "out of memory");
}

static ls_result measure_all(const source *from, const ls_calibration_plan *plan, ls_calibration *out, ls_error *error)
{
    uint32_t all = plan->rounds * out->cell_count, done = 0;
    for (uint32_t round = 0; round < plan->rounds; round++) {
        for (uint32_t i = 0; i < out->cell_count; i++) {
            ls_result result = measure_cell(from, round, i, &out->cells[i].measured, error);
            if (result != LS_OK) return result;
            if (plan->progress != NULL) plan->progress(plan->progress_context, ++done, all, &out->cells[i].measured);
        }
    }
    return LS_OK;
}

/* --- laws and slopes ----------------------------------------------------------------------------------------------------------- */

const ls_measurement *ls_calibration_find(const ls_calibration *c, ls_request_kind kind, uint64_t bytes, uint32_t clients)
{
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const ls_measure_task *task = &c->cells[i].measured.task;
        if (task->kind == kind && task->bytes == bytes && task->clients == clients) return &c->cells[i].measured;
    }
    return NULL;
}

/* One client that asks for the smallest size again as soon as it is answered: the store is awake. */
static const ls_measurement *find_awake(const ls_calibration_plan *plan, const ls_calibration *c, ls_request_kind kind)
{
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const ls_measurement *m = &c->cells[i].measured;
        if (m->task.kind == kind && m->task.bytes == plan->sizes[0] && m->task.clients == 1 && m->task.pause_s <= 0) return m;
    }
    return NULL;
}

static ls_result write_table(const char *path, ls_calibrated_law which, const ls_fit *fit, char file[LS_OPTION_TEXT_BYTES],
                             ls_error *error)
{
    ls_text text = {0};
    char hex[LS_DIGEST_HEX_BYTES];
    ls_result result = LS_OK;
    for (uint32_t i = 0; i < fit->table_count; i++) {
        ls_text_number(&text, fit->table[i]);
        ls_text_add(&text, "\n");
    }
    if (text.failed || ls_digest_text(text.bytes, hex) != LS_OK) {
        result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    } else if (snprintf(file, LS_OPTION_TEXT_BYTES, "%s-%s-%.8s.txt", path, laws[which].name, hex) >= (int)LS_OPTION_TEXT_BYTES) {
        result = ls_fail(error, LS_ERROR_INVALID, "the path %.100s... is too long for the files that belong to it", path);
    } else {
        result = ls_file_write(file, text.bytes, text.length, error);
    }
    ls_text_free(&text);
    return result;
}

static ls_result fit_law(const ls_calibration_plan *plan, ls_calibration *c, ls_calibrated_law which, ls_error *error)
{
    static const ls_sample none = {0};
    const ls_measurement *m = find_awake(plan, c, laws[which].kind);
    const ls_sample *sample = m == NULL ? &none : which == LS_CALIBRATED_REMOVE ? &m->remove_s : &m->latency_s;
    ls_fit *fit = &c->fits[which];
    ls_law *law = ls_calibrated_law_of(&c->config, which);
    ls_result result = ls_fit_all(sample, fit, error);
    *law = fit->law;
    if (result != LS_OK || law->law != LS_LAW_EMPIRICAL) return result;
    if (plan->table_path != NULL) return write_table(plan->table_path, which, fit, law->file, error);
    *law = fit->law = ls_fit_formula(fit);
    fit->distance = ls_fit_distance(sample, law, NULL, 0);
    return LS_OK;
}

/* Seconds per MiB from the medians of one client over sizes; 0 when there is one size only. */
static double slope_of(const ls_calibration_plan *plan, const ls_calibration *c, ls_request_kind kind)
{
    double x[LS_CALIBRATION_LIST_MAX], y[LS_CALIBRATION_LIST_MAX], intercept, slope;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->size_count; i++) {
        const ls_measurement *m = ls_calibration_find(c, kind, plan->sizes[i], 1);
        if (m == NULL || m->latency_s.count == 0) continue;
        x[count] = (double)plan->sizes[i] / MIB;
        y[count++] = ls_sample_quantile(&m->latency_s, 0.5);
    }
    ls_error ignored;
    return count >= 2 && ls_fit_slope(x, y, count, &intercept, &slope, &ignored) == LS_OK ? slope : 0;
}

/* --- load ------------------------------------------------------------------------------------------------------------------------ */

typedef struct load_point {
    double clients, ratio, weight;
} load_point;

static double stretch_at(double clients, double parallelism, double exponent)
{
    if (parallelism <= 0 || clients <= 1) return 1;
    return fmax(1, clients / fmin(parallelism, pow(clients, exponent)));
}

static double load_error(const load_point *points, uint32_t count, double parallelism, double exponent)
{
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < count; i++) {
        double error = log(stretch_at(points[i].clients, parallelism, exponent) / points[i].ratio);
        sum += points[i].weight * error * error;
        weights += points[i].weight;
    }
    return weights > 0 ? sqrt(sum / weights) : NAN;
}

/* Mean latency at n clients over that at one; of most interest is what producers meet, up to 16 at once. */
static uint32_t load_points(const ls_calibration_plan *plan, const ls_calibration *c, load_point *points, uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->cell_count && count < capacity; i++) {
        const ls_measurement *m = &c->cells[i].measured;
        if (!is_measured_under_load(m->task.kind) || m->task.bytes != plan->sizes[0] || m->task.clients == 1) continue;
        const ls_measurement *alone = find_awake(plan, c, m->task.kind);
        if (alone == NULL || alone->latency_s.count == 0 || m->latency_s.count == 0) continue;
        double ratio = ls_sample_mean(&m->latency_s) / ls_sample_mean(&alone->latency_s);
        points[count++] = (load_point){m->task.clients, ratio, m->task.clients <= RACERS_MAX ? 1 : 0.3};
    }
    return count;
}

static void fit_load(const ls_calibration_plan *plan, ls_calibration *c)
{
    load_point points[LS_REQUEST_KINDS * LS_CALIBRATION_LIST_MAX] = {{0}};
    uint32_t count = load_points(plan, c, points, sizeof points / sizeof points[0]);
    c->config.parallelism = 0;
    c->config.parallelism_exponent = 1;
    c->load_error = load_error(points, count, 0, 1);
    double most = 1;
    for (uint32_t i = 0; i < count; i++) most = fmax(most, points[i].ratio);
    if (most < NO_LOAD) return;
    for (int l = 0; l <= 120; l++) {
        for (int e = 0; e <= 50; e++) {
            double limit = exp2(l / 20.0), exponent = e / 50.0, error = load_error(points, count, limit, exponent);
            if (error >= c->load_error) continue;
            c->load_error = error;
            c->config.parallelism = limit;
            c->config.parallelism_exponent = exponent;
        }
    }
}

/* --- rest ------------------------------------------------------------------------------------------------------------------------ */

/* A pause lasts half of PAUSE_S at least: that it is rest has been measured from there on. */
static void fit_rest(const ls_calibration_plan *plan, ls_calibration *c)
{
    double sum = 0, awake_sum = 0;
    uint32_t count = 0;
    for (int kind = 0; kind < LS_REQUEST_RACE; kind++) {
        const ls_measurement *rested = ls_calibration_find(c, (ls_request_kind)kind, plan->sizes[0], 1);
        const ls_measurement *awake = find_awake(plan, c, (ls_request_kind)kind);
        if (rested == NULL || awake == NULL || rested->latency_s.count == 0 || awake->latency_s.count == 0) continue;
        sum += ls_sample_quantile(&rested->latency_s, 0.5) - ls_sample_quantile(&awake->latency_s, 0.5);
        awake_sum += ls_sample_quantile(&awake->latency_s, 0.5);
        count++;
    }
    if (count == 0 || !(sum >= NO_REST * awake_sum)) return;
    c->config.rest_after_s = 0.5 * PAUSE_S;
    c->config.rest_s = sum / count;
}

/* --- the instant of effect --------------------------------------------------------------------------------------------------------- */

double ls_measurement_conflict_share(const ls_measurement *m)
{
    uint64_t all = m->wins + m->losses;
    return all > 0 ? (double)m->losses / (double)all : NAN;
}

static ls_result model_cell(const ls_calibration_plan *plan, const ls_store_config *config, const ls_measurement *measured,
                            ls_measurement *modelled, ls_error *error)
{
    ls_measure_task task = measured->task;
    task.seconds = 1e6;
    task.requests = MODEL_REQUESTS;
    task.volume = UINT64_MAX;
    return ls_measure_model(config, &task, plan->seed, modelled, error);
}

typedef struct misfit {
    double squares;
    uint32_t count;
    double latency_excess, doublings; /* sums for the least squares of the mean latency's excess over log2 of the clients */
} misfit;

static double mean_of_tries(const ls_measurement *m)
{
    double tries = (double)m->latency_s.count + m->lost_s.count;
    double sum = m->latency_s.count > 0 ? ls_sample_mean(&m->latency_s) * m->latency_s.count : 0;
    if (m->lost_s.count > 0) sum += ls_sample_mean(&m->lost_s) * m->lost_s.count;
    return tries > 0 ? sum / tries : NAN;
}

/* Wins a second on a logarithmic scale, failures on a linear one: ten per cent of wins weigh as much as five points of failures. */
static ls_result judge(const ls_calibration_plan *plan, const ls_calibration *c, ls_request_kind kind, const ls_store_config *config,
                       misfit *fit, ls_error *error)
{
    *fit = (misfit){0};
    for (uint32_t i = 0; i < c->cell_count; i++) {
        const ls_measurement *m = &c->cells[i].measured;
        if (m->task.kind != kind || m->wins == 0 || !(m->elapsed_s > 0)) continue;
        ls_measurement modelled;
        ls_result result = model_cell(plan, config, m, &modelled, error);
        if (result != LS_OK) return result;
        double wins = log((double)modelled.wins / modelled.elapsed_s / ((double)m->wins / m->elapsed_s));
        double share = 2 * (ls_measurement_conflict_share(&modelled) - ls_measurement_conflict_share(m));
        double doublings = log2(m->task.clients), excess = mean_of_tries(m) - mean_of_tries(&modelled);
        ls_measurement_free(&modelled);
        if (!isfinite(wins) || !isfinite(share) || !isfinite(excess)) continue;
        fit->squares += wins * wins + share * share;
        fit->count++;
        fit->latency_excess += doublings * excess;
        fit->doublings += doublings * doublings;
    }
    return LS_OK;
}

/* The share in *field (of config) with the least misfit: a grid of tenths, then of fiftieths around its best, at most
 * `greatest`. */
static ls_result search_share(const ls_calibration_plan *plan, const ls_calibration *c, ls_request_kind kind, ls_store_config *config,
                              double *field, double greatest, misfit *best, ls_error *error)
{
    double found = *field, centre = 0.5, width = 0.5;
    best->squares = INFINITY;
    for (int pass = 0; pass < 2; pass++, centre = found, width = 0.1) {
        for (int i = -5; i <= 5; i++) {
            double share = centre + width * i / 5;
            if (share < -1e-9 || share > greatest + 0.05) continue;
            *field = fmin(greatest, fmax(0, share));
            misfit fit;
            ls_result result = judge(plan, c, kind, config, &fit, error);
            if (result != LS_OK) return result;
            if (fit.squares >= best->squares) continue;
            *best = fit;
            found = *field;
        }
    }
    *field = found;
    return LS_OK;
}

/* A loser is answered after the instant at which its put was decided: so that instant cannot lie later in a winner's latency than a
 * loser's whole latency is long. */
static double latest_share(const ls_calibration *c)
{
    const ls_fit *won = &c->fits[LS_CALIBRATED_WON], *lost = &c->fits[LS_CALIBRATED_LOST];
    if (won->table_count == 0 || lost->table_count == 0) return 1;
    return fmin(1, lost->table[lost->table_count / 2] / won->table[won->table_count / 2]);
}

/* Commits tell how long a rival's win can stay unseen: from a read's effect to the put's. Two shares make up that window; the put's is
 * fitted first, and the reads' is moved from the middle only if that explains much of what is left. */
static ls_result fit_shares(const ls_calibration_plan *plan, ls_calibration *c, misfit *commits, ls_error *error)
{
    ls_store_config *config = &c->config;
    misfit moved = {0};
    config->read_effect_share = 0.5;
    ls_result result = search_share(plan, c, LS_REQUEST_COMMIT, config, &config->conditional_effect_share,
                                    latest_share(c), commits, error);
    if (result == LS_OK) result = search_share(plan, c, LS_REQUEST_COMMIT, config, &config->read_effect_share, 1, &moved, error);
    config->put_effect_share = config->conditional_effect_share;
    if (moved.squares <= 0.7 * commits->squares) *commits = moved;
    else config->read_effect_share = 0.5;
    return result;
}

/* What rivals cost, by how much longer the race's requests take than the model's, over log2 of the clients. (Of the instant of effect
 * the race says little: who learns by replies alone wins or loses in the order of latencies, wherever in them the effect lies.) */
static ls_result fit_contention(const ls_calibration_plan *plan, ls_calibration *c, misfit *race, ls_error *error)
{
    const ls_fit *won = &c->fits[LS_CALIBRATED_WON];
    misfit waiting = {0};
    ls_result result = judge(plan, c, LS_REQUEST_RACE, &c->config, race, error);
    c->config.losers_wait = true;
    if (result == LS_OK) result = judge(plan, c, LS_REQUEST_RACE, &c->config, &waiting, error);
    c->config.losers_wait = fabs(waiting.latency_excess) < 0.8 * fabs(race->latency_excess);
    if (c->config.losers_wait) *race = waiting;
    if (result != LS_OK || !(race->doublings > 0)) return result;
    double middle_s = won->table_count > 0 ? won->table[won->table_count / 2] : 0;
    double per_doubling_s = race->latency_excess / race->doublings;
    if (per_doubling_s <= 0.02 * middle_s) return LS_OK;
    c->config.contention_s_per_doubling = per_doubling_s;
    return judge(plan, c, LS_REQUEST_RACE, &c->config, race, error);
}

static ls_result fit_effects(const ls_calibration_plan *plan, ls_calibration *c, ls_error *error)
{
    misfit race = {0}, commits = {0};
    ls_result result = fit_shares(plan, c, &commits, error);
    if (result == LS_OK) result = fit_contention(plan, c, &race, error);
    bool changed = c->config.contention_s_per_doubling > 0 || c->config.losers_wait;
    if (result == LS_OK && changed) result = fit_shares(plan, c, &commits, error);
    uint32_t count = race.count + commits.count;
    c->effect_error = count > 0 ? sqrt((race.squares + commits.squares) / count) : NAN;
    return result;
}

/* --- all together ------------------------------------------------------------------------------------------------------------------ */

static ls_result fit_everything(const ls_calibration_plan *plan, ls_calibration *c, ls_error *error)
{
    ls_result result = LS_OK;
    c->config = (ls_store_config){.read_effect_share = 0.5, .put_effect_share = 1, .conditional_effect_share = 1,
                                  .parallelism_exponent = 1, .limit_burst_s = 1, .throttle_reply_s = 0.01};
    for (int i = 0; i < LS_CALIBRATED_LAWS && result == LS_OK; i++) result = fit_law(plan, c, (ls_calibrated_law)i, error);
    if (result != LS_OK) return result;
    c->config.get_s_per_mib = slope_of(plan, c, LS_REQUEST_GET);
    c->config.put_s_per_mib = 0.5 * (slope_of(plan, c, LS_REQUEST_PUT) + slope_of(plan, c, LS_REQUEST_WON));
    fit_load(plan, c);
    fit_rest(plan, c);
    result = fit_effects(plan, c, error);
    for (uint32_t i = 0; i < c->cell_count && result == LS_OK; i++) {
        ls_calibrated_cell *cell = &c->cells[i];
        if (cell->measured.completed > 0) result = model_cell(plan, &c->config, &cell->measured, &cell->modelled, error);
    }
    return result;
}

ls_result ls_calibrate_by(ls_measure_function measure, void *context, const char *prefix, const ls_calibration_plan *plan,
                          ls_calibration *calibration, ls_error *error)
{
    planner p = {.plan = plan, .out = calibration};
    source from = {measure, context, prefix};
    *calibration = (ls_calibration){0};
    ls_result result = check_plan(plan, error);
    if (result == LS_OK && plan_cells(&p) != LS_OK) result = ls_fail(error, LS_ERROR_MEMORY, "out of memory");
    if (result == LS_OK) result = measure_all(&from, plan, calibration, error);
    return result == LS_OK ? fit_everything(plan, calibration, error) : result;
}

static ls_result measure_store(void *context, const char *prefix, const ls_measure_task *task, ls_measurement *measurement,
                               ls_error *error)
{
    return ls_measure_store(context, prefix, task, measurement, error);
}

ls_result ls_calibrate(ls_store *store, const char *prefix, const ls_calibration_plan *plan, ls_calibration *calibration,
                       ls_error *error)
{
    return ls_calibrate_by(measure_store, store, prefix, plan, calibration, error);
}

ls_result ls_calibrate_address(const char *address, const ls_calibration_plan *plan, ls_calibration *calibration, ls_error *error)
{
    char *base = NULL;
    *calibration = (ls_calibration){0};
    ls_store *store = ls_store_open(address, &base, error);
    if (store == NULL) return LS_ERROR_IO;
    ls_text prefix = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool slash = base[0] != '\0' && base[strlen(base) - 1] != '/';
    ls_text_format(&prefix, "%s%scalibrate-%lld-%ld/", base, slash ? "/" : "", (long long)now.tv_sec, (long)getpid());
    ls_result result = prefix.failed ? ls_fail(error, LS_ERROR_MEMORY, "out of memory") : LS_OK;
    if (result == LS_OK) result = ls_store_probe(store, prefix.bytes, (uint64_t)now.tv_nsec, error);
    if (result == LS_OK) result = ls_calibrate(store, prefix.bytes, plan, calibration, error);
    ls_text_free(&prefix);
    ls_free(base);
    ls_store_destroy(store);
    return result;
}

void ls_calibration_free(ls_calibration *calibration)
{
    for (uint32_t i = 0; i < calibration->cell_count; i++) {
        ls_measurement_free(&calibration->cells[i].measured);
        ls_measurement_free(&calibration->cells[i].modelled);
    }
    ls_free(calibration->cells);
    *calibration = (ls_calibration){0};
}
