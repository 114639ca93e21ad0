/* backoff.c - exponential back-off after a loss, with the four jitters that AWS compared, and the knobs of their kin.
 *
 * n counts losses since the last win, e = min(cap, base * multiplier^n), U uniform (Brooker, "Exponential Backoff And Jitter",
 * AWS Architecture Blog 2015; https://github.com/aws-samples/aws-arch-backoff-simulator):
 *   none          e                      full   U(0, e)
 *   equal         e/2 + U(0, e/2)        decorrelated   s = min(cap, U(base, multiplier' * s)), s = base at first
 * As in that simulator the exponent counts from the first loss, so the first wait uses base * multiplier. multiplier is 2 (3 for
 * decorrelated). `noise` spreads the result by +- that share (Iceberg: 0.1); `least_share` of full jitter raises the
 * lower end of its draw to that share of e (Nessie: 5 to 25 ms at first, so 0.2; DuckLake's half to all of e is equal
 * jitter). After a win, or with the first batch, the attempt comes at once. Defaults: a base of 0.1 s is about a put on
 * S3, a cap of 10 s is Paimon's and lies between Nessie's 250 ms and Iceberg's 60 s.
 * `retries` losses in a row end one submission: counted as given up, submitted anew after resubmit_pause_s with n = 0.
 */
#include "policies/common.h"

#include <math.h>

enum { BASE, CAP, MULTIPLIER, NOISE, RETRIES, RESUBMIT_PAUSE, BATCH_LIMIT, LEAST_SHARE };

#define PARAMETERS(multiplier_)                                                                                       \
    LS_PARAMETER("base_s", "s", 0.1, 1e-6, 3600, "first wait before it is multiplied"),                               \
        LS_PARAMETER("cap_s", "s", 10, 1e-6, 86400, "longest wait"),                                                  \
        LS_PARAMETER("multiplier", "1", multiplier_, 1, 100, "growth of the wait with each loss in a row"),            \
        LS_PARAMETER("noise", "1", 0, 0, 1, "the wait is spread by plus and minus this share"),                       \
        LS_PARAMETER("retries", "1", 0, 0, 1e9, "losses in a row after which the commit is given up and submitted anew; 0: never"), \
        LS_PARAMETER("resubmit_pause_s", "s", 1, 0, 3600, "pause before a given-up commit is submitted anew"),        \
        LS_BATCH_LIMIT_PARAMETER

static const ls_policy_parameter doubling[] = {PARAMETERS(2)};
static const ls_policy_parameter drawn[] = {
    PARAMETERS(2),
    LS_PARAMETER("least_share", "1", 0, 0, 1, "the draw's lower end as a share of its upper end; 0: full jitter"),
};
static const ls_policy_parameter tripling[] = {PARAMETERS(3)};

typedef struct backoff_state {
    double sleep_s; /* decorrelated: the last wait */
    uint32_t losses; /* of this submission */
} backoff_state;
LS_STATE_FITS(backoff_state);

typedef double (*wait_rule)(const double *value, backoff_state *state, ls_random *random);

static double ceiling_s(const double *value, const backoff_state *state)
{
    return fmin(value[CAP], value[BASE] * pow(value[MULTIPLIER], fmin(state->losses, 1000.0)));
}

static double wait_none(const double *value, backoff_state *state, ls_random *random)
{
    (void)random;
    return ceiling_s(value, state);
}

static double wait_full(const double *value, backoff_state *state, ls_random *random)
{
    double ceiling = ceiling_s(value, state);
    return ls_draw_between(random, value[LEAST_SHARE] * ceiling, ceiling);
}

static double wait_equal(const double *value, backoff_state *state, ls_random *random)
{
    double ceiling = ceiling_s(value, state);
    return ls_draw_between(random, 0.5 * ceiling, ceiling);
}

static double wait_decorrelated(const double *value, backoff_state *state, ls_random *random)
{
    if (state->losses == 1) state->sleep_s = value[BASE];
    state->sleep_s = fmin(value[CAP], ls_draw_between(random, value[BASE], value[MULTIPLIER] * state->sleep_s));
    return state->sleep_s;
}

static void decide(const void *instance, backoff_state *state, ls_random *random, const ls_commit_view *view,
                   ls_commit_decision *decision, wait_rule wait)
{
    const double *value = ls_values(instance);
    decision->batch_limit = (uint32_t)value[BATCH_LIMIT];
    if (ls_common_answer(view, random, decision)) return;
    if (view->moment != LS_MOMENT_LOST) {
        state->losses = 0;
        decision->try_at_ns = view->pending_batches > 0 ? view->now_ns : LS_NEVER_NS;
        return;
    }
    state->losses++;
    if (ls_gives_up(view, value[RETRIES], value[RESUBMIT_PAUSE], &state->losses, decision)) return;
    double wait_s = wait(value, state, random);
    if (value[NOISE] > 0) wait_s *= ls_draw_between(random, 1.0 - value[NOISE], 1.0 + value[NOISE]);
    decision->try_at_ns = ls_after(view, wait_s);
}

#define BACKOFF(identifier, name_, rule_, table, wait)                                                                \
    static void decide_##wait(const void *instance, void *state, ls_random *random, const ls_commit_view *view,       \
                              ls_commit_decision *decision)                                                           \
    {                                                                                                                 \
        decide(instance, state, random, view, decision, wait);                                                        \
    }                                                                                                                 \
    const ls_policy identifier = {.name = name_,                                                                      \
                                  .rule = rule_,                                                                      \
                                  .source = "AWS Architecture Blog 2015, aws-arch-backoff-simulator",                 \
                                  .parameters = table,                                                                \
                                  .parameter_count = LS_COUNT_OF(table),                                              \
                                  .decide = decide_##wait}

BACKOFF(ls_policy_backoff_none, "backoff-none", "after n losses wait min(cap, base 2^n)", doubling, wait_none);
BACKOFF(ls_policy_backoff_full, "backoff-full", "after n losses wait U(0, min(cap, base 2^n))", drawn, wait_full);
BACKOFF(ls_policy_backoff_equal, "backoff-equal", "after n losses wait e/2 + U(0, e/2), e = min(cap, base 2^n)", doubling,
        wait_equal);
BACKOFF(ls_policy_backoff_decorrelated, "backoff-decorrelated", "after a loss wait s = min(cap, U(base, 3 s))", tripling,
        wait_decorrelated);
