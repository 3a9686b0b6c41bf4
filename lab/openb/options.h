#ifndef BH_LAB_OPENB_OPTIONS_H
#define BH_LAB_OPENB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "engine/pack/pack.h"
#include "lab/common/flags.h"

/* What `bulkhead-lab openb` is asked to do. */

enum { BH_OPENB_VARIANTS_MAX = 64, BH_OPENB_NAME_MAX = 64, BH_OPENB_PATH_MAX = 1024 };

struct bh_openb_options {
    char data[BH_OPENB_PATH_MAX]; /* the folder with the node list */
    const char *sequences, *svg;  /* or NULL */
    uint32_t variant_count;
    char variants[BH_OPENB_VARIANTS_MAX][BH_OPENB_NAME_MAX];
    uint32_t policies; /* bit n: policy n */
    struct bh_flag_seeds seeds;
    uint32_t scale;
    bool json, check, latency, help;
};

/* Read the words behind the mode's.  BH_INVALID, BH_RANGE: not as the help says;
 * BH_NOT_FOUND: the data is not where it should be.  With `help` set nothing else is
 * looked at. */
BH_MUST_USE bh_rc bh_openb_options_read(int count, char **words, struct bh_openb_options *ret_options,
                                        struct bh_err *err);

void bh_openb_options_help(FILE *out);

#endif
