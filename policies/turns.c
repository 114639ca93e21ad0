/* turns.c - self-organised turns: the order is read off the manifest's version numbers, without a message.
 *
 * Versions are dense and every winner adds one, so the version number is a clock that all producers share, and the producer table
 * says which producers wind it: M, the active ones, are the rows whose last commit lies within the last 2 M versions.
 *
 * Rule. Who has committed version v commits next when the newest version is v + M - 1: when each of the other active
 * producers has had a turn.
 *   sleep   after the win, for `lead` of the time that M turns take at the pace of the round before; batches gather;
 *   look    ask for the newest version's number (one request; nothing is read). If it is v + M - 1 or more, read and commit. Else
 *           look again `early` turns before the rest would have passed if a turn were an attempt, but not before `least_look`;
 *   take    a turn that is not used. If no version has come for `patience` attempts since the last look, or if versions came since
 *           the own win at intervals longer than `idle` attempts (nobody queues for turns), commit now.
 *   order   only where turns are wanted: they need not be kept while they pass unused. A producer whose batch comes after its turn
 *           was due waits from then on for a smaller share of the others (`looser`, its root for each win while the share is
 *           below 1), and with a loss for a greater one (`stricter`), at most all.
 * Who loses looks again at once: the newest version is past its turn, so it commits on top. With the k-th loss in a row it waits up
 * to k - 1 attempts, at random. A newcomer, who has committed nothing, commits as soon as it has something. A win carries all that
 * is pending.
 *
 * Why it is stable. Call a window the last M - 1 versions. If nobody commits before its turn, the winners in the window
 * differ (each was absent from the window before its win), so exactly one of the M active producers is not among them, and it alone
 * may commit: no conflict is possible but with newcomers and takers. One early commit puts its producer into the window twice, and
 * another is left over: while the doublet is in the window, at most M - 1 versions, two contend for a turn, one of them wins, the
 * other is first in the next; nobody waits longer for it than one turn. Then the window is clean again. A leaver's turn costs
 * `patience` turns once, for while it is awaited others take over, and after 2 M versions it is no longer counted. A newcomer is
 * counted by all who win after it. No turn waits for ever: at each look either the version has moved, which only M - 1 moves can do
 * before it is one's own turn, or it has not, and the turn is taken. The pace only says when to look; a wrong pace costs looks or
 * idle time, never the order.
 *
 * Rates. A producer that has nothing when its turn comes does not look, and others take over or find turns idle; so turns follow
 * rates while there are turns to spare. When there are none, each has one turn a round and carries all that it has then.
 *
 * After a put the winner knows its own version; the time at which it learns that is somewhat after the effect, for all alike.
 * Kin: reservation ALOHA (Crowther et al. 1973) and deterministic back-off after success (CSMA/ECA: Barcelo et al. 2008)
 * keep a slot in time; here versions, not time, are kept, so that slots have whatever length the store gives them.
 */
#include "policies/common.h"

#include <math.h>

enum { LEAD, EARLY, LEAST_LOOK, PATIENCE, IDLE, INITIAL, BATCH_LIMIT, LOOSER, STRICTER };

static const ls_policy_parameter parameters[] = {
    LS_PARAMETER("lead", "1", 0.9, 0, 1, "share of a round, at the last pace, to sleep before the first look"),
    LS_PARAMETER("early", "1", 0.8, 0, 1, "how much sooner to look again than the rest of the turns would take, in attempts"),
    LS_PARAMETER("least_look", "1", 0.1, 0.01, 10, "shortest time between two looks, in attempts"),
    LS_PARAMETER("patience", "1", 2, 0.1, 100, "attempts without a new version after which a turn is taken over"),
    LS_PARAMETER("idle", "1", 2, 1, 100, "attempts between versions, on average since the own win, from which on turns are idle"),
    LS_PARAMETER("initial_attempt_s", "s", 0.15, 1e-6, 3600, "attempt duration assumed before the first attempt"),
    LS_BATCH_LIMIT_PARAMETER,
    LS_PARAMETER("looser", "1", 0.5, 0.1, 1, "factor on the share of others to wait for, after a turn that came with nothing to publish"),
    LS_PARAMETER("stricter", "1", 1.2, 1, 10, "the same after a loss, up to all of them"),
};

typedef struct turns_state {
    uint64_t won_version; /* own last commit; 0: none seen */
    uint64_t turn_version;
    uint64_t looked_version; /* newest at the last look of this round, and when */
    int64_t won_at_ns, looked_at_ns;
    float attempt_s; /* smoothed, of attempts that won; 0: none timed yet */
    float pace_s;    /* seconds a version in the last round; 0: none yet */
    float strictness; /* share of the others that have to come first; 0: not set, as 1 */
    uint32_t round;   /* M */
    bool skipped;     /* the last turn came with nothing to publish */
} turns_state;
LS_STATE_FITS(turns_state);

static uint32_t count_since(const ls_manifest *manifest, uint64_t version)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < ls_manifest_row_count(manifest); slot++) {
        const ls_row *row = ls_manifest_row(manifest, slot);
        count += !row->closed && row->last_version > version;
    }
    return count;
}

/* The largest M such that M open rows were written in the last 2 M versions, found from above. */
static uint32_t count_active(const ls_manifest *manifest)
{
    uint64_t newest = ls_manifest_version(manifest);
    uint32_t active = ls_manifest_open_row_count(manifest);
    for (uint32_t before = 0; active != before && active > 1;) {
        before = active;
        uint64_t window = 2 * (uint64_t)active;
        uint32_t found = count_since(manifest, newest > window ? newest - window : 0);
        if (found < active) active = found;
    }
    return active > 1 ? active : 1;
}

static double attempt_s(const turns_state *state, const double *value)
{
    return state->attempt_s > 0 ? (double)state->attempt_s : value[INITIAL];
}

/* Seconds a version in a round in which turns are wanted; an idle round's pace says nothing about that. */
static double pace_s(const turns_state *state, const double *value)
{
    double attempt = attempt_s(state, value);
    return state->pace_s > 0 ? fmin((double)state->pace_s, attempt) : attempt;
}

/* Turns that pass unused make the order looser, losses make it strict again. */
static void adapt(turns_state *state, const double *value, const ls_commit_view *view)
{
    double strictness = state->strictness > 0 ? (double)state->strictness : 1.0;
    if (view->moment == LS_MOMENT_LOST) strictness *= value[STRICTER];
    else if (state->skipped) strictness *= value[LOOSER];
    else if (strictness < 1.0) strictness *= sqrt(value[LOOSER]);
    state->skipped = false;
    state->strictness = (float)fmin(1.0, fmax(1e-3, strictness));
}

static void note_win(turns_state *state, const double *value, const ls_commit_view *view)
{
    const ls_row *row = ls_manifest_row(view->manifest, view->own_slot);
    uint64_t version = row != NULL ? row->last_version : ls_manifest_version(view->manifest);
    double newest = ls_seconds(view->attempt_ns);
    state->attempt_s = (float)(state->attempt_s > 0 ? (double)state->attempt_s + 0.2 * (newest - (double)state->attempt_s) : newest);
    if (state->won_version > 0 && version > state->won_version) {
        state->pace_s = (float)(ls_seconds(view->now_ns - state->won_at_ns) / (double)(version - state->won_version));
    }
    uint32_t active = count_active(view->manifest);
    adapt(state, value, view);
    state->round = active;
    state->won_version = version;
    state->turn_version = version + (uint64_t)fmax(0.0, ceil((double)state->strictness * active) - 1.0);
    state->won_at_ns = view->now_ns;
    state->looked_at_ns = 0;
}

static int64_t first_look_ns(const turns_state *state, const double *value, int64_t now_ns)
{
    if (state->won_version == 0) return now_ns;
    double turns = (double)(state->turn_version - state->won_version);
    double sleep_s = value[LEAD] * turns * pace_s(state, value);
    int64_t at_ns = state->won_at_ns + ls_nanoseconds(sleep_s);
    return at_ns > now_ns ? at_ns : now_ns;
}

/* Is it our turn, or one that nobody uses? */
static bool may_commit(const turns_state *state, const double *value, const ls_commit_view *view)
{
    if (state->won_version == 0 || view->newest_version >= state->turn_version) return true;
    double attempt = attempt_s(state, value);
    bool stands = state->looked_at_ns > 0 && view->newest_version == state->looked_version;
    if (stands) return ls_seconds(view->now_ns - state->looked_at_ns) >= value[PATIENCE] * attempt;
    double passed = (double)(view->newest_version - state->won_version);
    return ls_seconds(view->now_ns - state->won_at_ns) > value[IDLE] * attempt * (passed + 1.0);
}

static int64_t next_look_ns(turns_state *state, const double *value, const ls_commit_view *view)
{
    bool stands = state->looked_at_ns > 0 && view->newest_version == state->looked_version;
    if (!stands) {
        state->looked_version = view->newest_version;
        state->looked_at_ns = view->now_ns;
    }
    double attempt = attempt_s(state, value);
    double rest = (double)(state->turn_version - view->newest_version);
    double wait_s = fmax(value[LEAST_LOOK] * attempt, (rest - value[EARLY]) * attempt);
    if (stands) wait_s = value[LEAST_LOOK] * attempt;
    return ls_after(view, wait_s);
}

static void decide(const void *instance, void *memory, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision)
{
    const double *value = ls_values(instance);
    turns_state *state = memory;
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (view->moment == LS_MOMENT_READY && view->planned_ns < view->now_ns) state->skipped = true;
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment == LS_MOMENT_LOOK) {
        bool goes = may_commit(state, value, view);
        decision->try_at_ns = goes ? view->now_ns : next_look_ns(state, value, view);
        return;
    }
    if (view->moment == LS_MOMENT_LOST) {
        adapt(state, value, view);
        double rivals = view->losses_in_row > 0 ? view->losses_in_row - 1.0 : 0.0;
        decision->try_at_ns = ls_after(view, ls_draw_between(random, 0.0, rivals) * attempt_s(state, value));
        return;
    }
    if (view->moment == LS_MOMENT_WON) note_win(state, value, view);
    decision->try_at_ns = first_look_ns(state, value, view->now_ns);
}

const ls_policy ls_policy_turns = {.name = "turns",
                                   .rule = "commit when every other active producer has committed since one's own last commit; take unused turns",
                                   .source = "ours",
                                   .looks = true,
                                   .parameters = parameters,
                                   .parameter_count = LS_COUNT_OF(parameters),
                                   .decide = decide};
