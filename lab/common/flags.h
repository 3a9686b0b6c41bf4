#ifndef BH_LAB_COMMON_FLAGS_H
#define BH_LAB_COMMON_FLAGS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The options of a mode: "--name value" or "--name=value", each into its place. */

enum bh_flag_kind {
    BH_FLAG_ON,          /* bool; takes no value */
    BH_FLAG_TEXT,        /* const char * */
    BH_FLAG_NUMBER,      /* uint32_t, from low to high */
    BH_FLAG_SEED,        /* uint64_t */
    BH_FLAG_THOUSANDTHS, /* struct bh_flag_list of decimals: "0.8,1.2" is 800 and 1200 */
    BH_FLAG_CHOICES,     /* struct bh_flag_list of numbers in `names` */
};

enum { BH_FLAG_LIST_MAX = 16 };

struct bh_flag_list {
    uint32_t values[BH_FLAG_LIST_MAX];
    uint32_t count;
};

struct bh_flag {
    const char *name; /* with its dashes */
    enum bh_flag_kind kind;
    void *place;
    uint32_t low, high;       /* NUMBER, THOUSANDTHS */
    const char *const *names; /* CHOICES */
    uint32_t name_count;
};

/* Fill the places; what is not given stays as it was.  A list that is given replaces the
 * one that stood there.
 *   BH_INVALID  an unknown option, a value that is missing or of the wrong kind
 *   BH_RANGE    out of its range */
BH_MUST_USE bh_rc bh_flags_parse(const struct bh_flag *flags, uint32_t flag_count, int count, char **words,
                                 struct bh_err *err);

#endif
