/* mutant.h - planted bugs, to see that the checkers find them. A normal build has none: LS_MUTANT is 0 and each condition folds away.
 *
 * tests/explore/mutants.sh builds with -DLS_MUTANT=n and reports in which world, and in how many states, n is found.
 */
#ifndef LS_MUTANT_H
#define LS_MUTANT_H

#ifndef LS_MUTANT
#define LS_MUTANT 0
#endif

#define LS_MUTANT_IS(n) (LS_MUTANT == (n))

enum {
    LS_MUTANT_NO_EPOCH_CHECK = 1,
    LS_MUTANT_EPOCH_BACKWARDS = 2,      /* fenced by a lower epoch instead of a higher one */
    LS_MUTANT_AMBIGUOUS_LOST = 3,       /* an ambiguous put counts as lost, and what the row says of it is not looked at */
    LS_MUTANT_AMBIGUOUS_WON = 4,
    LS_MUTANT_REBASE_DROPS_ROW = 5,     /* the last other producer's row goes back to nothing */
    LS_MUTANT_REBASE_TWICE = 6,         /* after a loss the entries are appended twice */
    LS_MUTANT_READ_PAST_END = 7,        /* a consumer guesses the next entry */
    LS_MUTANT_SKIP_TRIMMED = 8,         /* a consumer jumps over a reclaimed prefix */
    LS_MUTANT_FENCED_GOES_ON = 9,
    LS_MUTANT_EPOCH_REUSED = 10,
    LS_MUTANT_RESTART_AT_ZERO = 11,
    LS_MUTANT_EARLY_ACKNOWLEDGE = 12,   /* when the put is sent */
    LS_MUTANT_DOUBTFUL_412_DROPS = 14,  /* 412 on a doubtful name: the batches are taken as published */
    LS_MUTANT_JOIN_UNREAD = 15,         /* owns its row without having read it */
    LS_MUTANT_WATERMARK_MAXIMUM = 16,   /* the newest checkpoint alone protects data */
    LS_MUTANT_ORPHANS_UNPROVED = 17,    /* every object that no version names goes, at once: neither grace nor proof */
    LS_MUTANT_LIST_ONCE = 18,           /* a reclaimer that does not list the checkpoints again */
    LS_MUTANT_NO_FLOOR = 19,            /* old versions go without a floor */
    LS_MUTANT_ORPHANS_OF_LIVE_EPOCH = 20, /* objects of the row's own epoch go as if it were fenced */
    LS_MUTANT_CHECKPOINT_EARLY = 21,    /* acknowledged when the put is sent */
    LS_MUTANT_PIN_UNCHECKED = 22,       /* acknowledged without a look at the watermark */
    LS_MUTANT_STEPS_REUSED = 23,        /* a trim renumbers what remains */
    LS_MUTANT_ANNOUNCE_NOTHING = 24,    /* batches go without the watermark being announced */
    LS_MUTANT_DELETE_PAST_BOUND = 25    /* one batch more than the checkpoints allow */
};

#endif
