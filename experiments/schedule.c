/* schedule.c - see schedule.h. A point's known replications form an array of states; `prefix` is how many of its
 * first replications are known. The rule is asked each time the prefix reaches what is required, and adds one
 * replication or none. */
#include "experiments/schedule.h"

#include "experiments/statistics.h"

#include <math.h>

typedef enum slot_state { SLOT_OPEN = 0, SLOT_RUNNING, SLOT_FAILED, SLOT_OK } slot_state;

typedef struct slot {
    slot_state state;
    double value;
} slot;

typedef struct point_state {
    slot *slots;
    uint64_t capacity;
    uint64_t required;
    uint64_t prefix;
} point_state;

struct ls_schedule {
    const ls_replications *rule;
    point_state *points;
    uint32_t point_count;
    uint32_t first_open; /* no point below has a required replication left to start */
    uint64_t required;
    uint64_t done;
};

ls_schedule *ls_schedule_new(const ls_replications *rule, uint32_t point_count)
{
    ls_schedule *schedule = ls_allocate_array(1, sizeof *schedule);
    if (schedule == NULL) return NULL;
    *schedule = (ls_schedule){.rule = rule, .point_count = point_count};
    schedule->points = ls_allocate_array(point_count, sizeof(point_state));
    if (schedule->points == NULL) {
        ls_free(schedule);
        return NULL;
    }
    for (uint32_t i = 0; i < point_count; i++) schedule->points[i].required = rule->minimum;
    schedule->required = rule->minimum * point_count;
    return schedule;
}

void ls_schedule_free(ls_schedule *schedule)
{
    if (schedule == NULL) return;
    for (uint32_t i = 0; i < schedule->point_count; i++) ls_free(schedule->points[i].slots);
    ls_free(schedule->points);
    ls_free(schedule);
}

void ls_schedule_skip(ls_schedule *schedule, uint32_t point)
{
    schedule->required -= schedule->points[point].required;
    schedule->points[point].required = 0;
}

static bool reserve(point_state *point, uint64_t count)
{
    if (count <= point->capacity) return true;
    uint64_t capacity = point->capacity > 0 ? point->capacity : 4;
    while (capacity < count) capacity *= 2;
    slot *slots = ls_reallocate(point->slots, capacity * sizeof *slots);
    if (slots == NULL) return false;
    for (uint64_t i = point->capacity; i < capacity; i++) slots[i] = (slot){SLOT_OPEN, NAN};
    point->slots = slots;
    point->capacity = capacity;
    return true;
}

static slot_state state_of(const point_state *point, uint64_t replication)
{
    return replication < point->capacity ? point->slots[replication].state : SLOT_OPEN;
}

static bool known(slot_state state) { return state == SLOT_OK || state == SLOT_FAILED; }

/* Starts the first open replication in [from, to). */
static bool start_in(point_state *point, uint64_t from, uint64_t to, uint64_t *replication)
{
    for (uint64_t r = from; r < to; r++) {
        if (state_of(point, r) != SLOT_OPEN) continue;
        if (!reserve(point, r + 1)) return false;
        point->slots[r].state = SLOT_RUNNING;
        *replication = r;
        return true;
    }
    return false;
}

static uint64_t started_beyond(const point_state *point)
{
    uint64_t count = 0;
    for (uint64_t r = point->required; r < point->capacity; r++) count += point->slots[r].state != SLOT_OPEN;
    return count;
}

/* A guess: the unsettled point with the fewest guesses so far. */
static bool speculate(ls_schedule *schedule, uint32_t *point, uint64_t *replication)
{
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 0; i < schedule->point_count; i++) {
        const point_state *candidate = &schedule->points[i];
        if (ls_schedule_settled(schedule, i) || candidate->required >= schedule->rule->maximum) continue;
        uint64_t beyond = started_beyond(candidate);
        if (beyond >= fewest) continue;
        fewest = beyond;
        *point = i;
    }
    if (fewest == UINT64_MAX) return false;
    point_state *chosen = &schedule->points[*point];
    return start_in(chosen, chosen->required, schedule->rule->maximum, replication);
}

bool ls_schedule_next(ls_schedule *schedule, uint32_t *point, uint64_t *replication)
{
    for (uint32_t i = schedule->first_open; i < schedule->point_count; i++) {
        schedule->first_open = i;
        point_state *candidate = &schedule->points[i];
        if (!start_in(candidate, candidate->prefix, candidate->required, replication)) continue;
        *point = i;
        return true;
    }
    schedule->first_open = schedule->point_count;
    return speculate(schedule, point, replication);
}

/* Whether the first `required` replications satisfy the rule. */
static bool enough(const ls_schedule *schedule, const point_state *point)
{
    const ls_replications *rule = schedule->rule;
    double *values = ls_allocate_array(point->required, sizeof *values);
    if (values == NULL) return false;
    uint64_t count = 0;
    for (uint64_t r = 0; r < point->required; r++) {
        if (point->slots[r].state == SLOT_OK) values[count++] = point->slots[r].value;
    }
    bool result = count >= rule->minimum && ls_precise_enough(values, count, rule->half_width, rule->confidence);
    ls_free(values);
    return result;
}

static void advance(ls_schedule *schedule, uint32_t index)
{
    point_state *point = &schedule->points[index];
    for (;;) {
        while (point->prefix < point->required && known(state_of(point, point->prefix))) {
            point->prefix++;
            schedule->done++;
        }
        if (point->prefix < point->required || point->required == 0 || point->required >= schedule->rule->maximum)
            return;
        if (enough(schedule, point)) return;
        point->required++;
        schedule->required++;
        if (index < schedule->first_open) schedule->first_open = index;
    }
}

ls_result ls_schedule_take(ls_schedule *schedule, uint32_t index, uint64_t replication, bool ok, double value)
{
    point_state *point = &schedule->points[index];
    if (replication >= schedule->rule->maximum) return LS_ERROR_INVALID;
    if (!reserve(point, replication + 1)) return LS_ERROR_MEMORY;
    point->slots[replication] = (slot){ok ? SLOT_OK : SLOT_FAILED, value};
    advance(schedule, index);
    return LS_OK;
}

uint64_t ls_schedule_required(const ls_schedule *schedule, uint32_t point) { return schedule->points[point].required; }

bool ls_schedule_settled(const ls_schedule *schedule, uint32_t point)
{
    return schedule->points[point].prefix == schedule->points[point].required;
}

bool ls_schedule_has(const ls_schedule *schedule, uint32_t point, uint64_t replication)
{
    return known(state_of(&schedule->points[point], replication));
}

void ls_schedule_progress(const ls_schedule *schedule, uint64_t *required, uint64_t *done)
{
    *required = schedule->required;
    *done = schedule->done;
}

uint64_t ls_schedule_known(const ls_schedule *schedule)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < schedule->point_count; i++) {
        for (uint64_t r = 0; r < schedule->points[i].required; r++) count += known(state_of(&schedule->points[i], r));
    }
    return count;
}
