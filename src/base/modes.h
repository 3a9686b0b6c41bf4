#ifndef BH_BASE_MODES_H
#define BH_BASE_MODES_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Programs whose first word says what they do. */

enum { BH_MODE_OK, BH_MODE_FAILED, BH_MODE_USAGE }; /* exit statuses */

struct bh_mode {
    const char *word, *arguments;        /* arguments NULL: not listed */
    int least;                           /* words that must follow */
    int (*run)(int count, char **words); /* those behind the mode's; gives the exit status */
    const char *help;                    /* lines, or NULL */
};

/* Run the mode that argv[1] names; BH_MODE_USAGE, with the usage on stderr, where there is none. */
int bh_modes_run(const char *program, const struct bh_mode *modes, size_t count, int argc, char **argv);

/* The usage and each mode's help. */
void bh_modes_print(const char *program, const struct bh_mode *modes, size_t count, FILE *out);

/* BH_MODE_OK, unless standard output failed; or BH_MODE_FAILED with the message on stderr. */
int bh_mode_report(const char *program, bh_rc rc, const struct bh_err *err);
/* BH_MODE_USAGE, with the message on stderr. */
int bh_mode_refuse(const char *program, const struct bh_err *err);

#endif
