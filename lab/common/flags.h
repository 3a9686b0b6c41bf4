#ifndef BH_LAB_COMMON_FLAGS_H
#define BH_LAB_COMMON_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* The options of a mode: "--name value" or "--name=value", each into its place. */

enum bh_flag_kind {
    BH_FLAG_ON,          /* bool; takes no value */
    BH_FLAG_TEXT,        /* const char * */
    BH_FLAG_NUMBER,      /* uint32_t, from low to high */
    BH_FLAG_SEED,        /* uint64_t */
    BH_FLAG_THOUSANDTHS, /* struct bh_flag_list of decimals: "0.8,1.2" is 800 and 1200 */
    BH_FLAG_CHOICES,     /* struct bh_flag_list of numbers in `names` */
    BH_FLAG_CHOICE,      /* an enum: one of `names` */
    BH_FLAG_SET,         /* uint32_t: bits of `names`, or "all" */
    BH_FLAG_SPAN,        /* uint64_t, nanoseconds */
    BH_FLAG_SEEDS,       /* struct bh_flag_seeds: "1-20", or "7"; at most `high` of them */
    BH_FLAG_READ,        /* by `read`, whose failures are the flag's */
};

enum { BH_FLAG_LIST_MAX = 16 };

struct bh_flag_list {
    uint32_t values[BH_FLAG_LIST_MAX];
    uint32_t count;
};

struct bh_flag_seeds {
    uint64_t first, last;
};

struct bh_flag {
    const char *name; /* with its dashes */
    enum bh_flag_kind kind;
    void *place;
    uint32_t low, high;       /* NUMBER, THOUSANDTHS; SEEDS */
    const char *const *names; /* CHOICES, CHOICE, SET */
    uint32_t name_count;
    bh_rc (*read)(void *place, const char *value, struct bh_err *err);
    const char *value, *help; /* for bh_flags_print */
};

enum { BH_FLAG_ITEM_MAX = 64 };

/* Take the next of a list with commas at `*list`, which moves behind it: false, and `*list` not at
 * its end, where an item is empty or too long. */
bool bh_flag_next_item(const char **list, char ret_item[BH_FLAG_ITEM_MAX]);

/* One line each: what the flags are called, what follows and what they mean. */
void bh_flags_print(FILE *out, const struct bh_flag *flags, uint32_t flag_count);

/* Fill the places; what is not given stays as it was.  A list that is given replaces the
 * one that stood there.
 *   BH_INVALID  an unknown option, a value that is missing or of the wrong kind
 *   BH_RANGE    out of its range */
BH_MUST_USE bh_rc bh_flags_parse(const struct bh_flag *flags, uint32_t flag_count, int count, char **words,
                                 struct bh_err *err);

#endif
