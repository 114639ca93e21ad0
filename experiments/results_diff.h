/* results_diff.h - what changed between two results files beyond noise: a gate against regressions.
 *
 * Experiments are matched by name (of several specs of a name the last added counts), points by the hash of the whole
 * resolved scenario or, where no point has the same, by the labels of the swept keys: a new program may resolve the same
 * spec to more settings. Runs are those of one origin on each side (results.h, ls_results_load): the latest. For every
 * matched point and metric the means are compared by Welch's test, which supposes nothing about seeds; on common seeds runs
 * are correlated and the test errs on the side of "same". All p values of a comparison are adjusted together after Holm:
 * if nothing changed, the chance that anything at all is reported is at most `level`.
 *
 * Things that are not noise count as changes without a test: an experiment, point or metric of A that B has no runs of, and
 * a point where more runs failed in B than in A. What only B has is reported and is no change.
 */
#ifndef LS_RESULTS_DIFF_H
#define LS_RESULTS_DIFF_H

#include "experiments/results.h"
#include "experiments/statistics.h"
#include "experiments/text.h"

typedef enum ls_diff_verdict {
    LS_DIFF_SAME = 0,  /* no difference that noise could not make, or one within the tolerance */
    LS_DIFF_CHANGED,   /* adjusted p at most the level, and beyond the tolerance */
    LS_DIFF_UNDECIDED, /* values differ, but fewer than two runs on a side, or no spread and too few runs to tell */
    LS_DIFF_MISSING,   /* A has it, B does not */
    LS_DIFF_ADDED,     /* B has it, A does not */
    LS_DIFF_FAILING    /* more runs failed in B */
} ls_diff_verdict;

const char *ls_diff_verdict_name(ls_diff_verdict verdict);

/* True for verdicts that make the files differ: changed, missing, failing. */
bool ls_diff_is_change(ls_diff_verdict verdict);

typedef struct ls_diff_row {
    ls_diff_verdict verdict;
    char *experiment;
    char *point;  /* "policy = dac, producers.count = 2"; "" when the row is about the experiment; owned */
    char *metric; /* "" when the row is about the point or experiment; owned */
    ls_estimate before;
    ls_estimate after;
    ls_difference difference; /* after - before; NaN where there was no test */
    double adjusted_p;
    uint32_t failed_before;
    uint32_t failed_after;
} ls_diff_row;

typedef struct ls_diff {
    ls_diff_row *rows;
    uint32_t row_count;
    uint32_t row_capacity;
    uint32_t tests;         /* p values that were adjusted together */
    uint32_t changes;       /* rows for which ls_diff_is_change */
    uint32_t relabelled;    /* points matched by labels, with another resolved scenario */
    uint32_t points;        /* matched */
} ls_diff;

typedef struct ls_diff_options {
    const char *experiment; /* NULL: all of A and B */
    const char *metrics;    /* "a,b"; NULL: all */
    const char *backend;    /* NULL: that of the latest run on each side */
    double level;           /* 0.05: chance of any false finding */
    double tolerance;       /* changes up to this share of |mean of A| count as none */
} ls_diff_options;

/* Compares before (A) with after (B). LS_ERROR_INVALID when the experiment is in neither, or a metric in none of the
 * compared. Free with ls_diff_free, whatever the result. */
ls_result ls_results_diff(ls_results *before, ls_results *after, const ls_diff_options *options, ls_diff *diff,
                          ls_error *error);
void ls_diff_free(ls_diff *diff);

/* A table of the rows that are not SAME (with all: of every row), and a line of totals. */
void ls_diff_table(const ls_diff *diff, const ls_diff_options *options, bool all, ls_text *text);

/* The same as one JSON object. */
void ls_diff_json(const ls_diff *diff, const ls_diff_options *options, bool all, ls_text *text);

#endif
