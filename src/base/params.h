#ifndef BH_BASE_PARAMS_H
#define BH_BASE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* A program's configuration file: `key = value` lines and `#` comments, read by a
 * table.  The same table writes --help-config and the manual page, so they cannot
 * drift.  Unknown keys, repeated keys and values outside their range are errors that
 * name the line. */

enum bh_param_kind {
    BH_PARAM_TEXT,  /* const char * */
    BH_PARAM_U32,   /* uint32_t within [low, high] */
    BH_PARAM_SPAN,  /* uint64_t nanoseconds; written as 250ms, 5s, 10m */
    BH_PARAM_BYTES, /* uint64_t; written as 64Mi */
    BH_PARAM_BOOL,  /* bool; true or false */
    BH_PARAM_LIST,  /* struct bh_param_list; the key may be repeated */
};

enum { BH_PARAM_LIST_MAX = 32 };

struct bh_param_list {
    const char *items[BH_PARAM_LIST_MAX];
    uint32_t count;
};

struct bh_param {
    const char *name;
    enum bh_param_kind kind;
    uint32_t offset;
    uint64_t low, high;   /* U32, SPAN, BYTES; high 0: no limit */
    const char *standard; /* the default, as one would write it; NULL: none */
    const char *doc;      /* one sentence */
};

struct bh_params {
    const struct bh_param *rows;
    uint32_t count;
};

/* Fill `ret_config` with every default, then with the lines of `text`; what has no
 * default is zero, and a list in the file replaces its default.  Texts live in
 * `arena`.  BH_INVALID and BH_RANGE name line and key; BH_FULL: arena or list. */
BH_MUST_USE bh_rc bh_params_parse(const struct bh_params *params, const char *text, void *ret_config,
                                  struct bh_arena *arena, struct bh_err *err);

/* Set one parameter from "key=value", as a command line's --set has it. */
BH_MUST_USE bh_rc bh_params_set(const struct bh_params *params, const char *assignment, void *config,
                                struct bh_arena *arena, struct bh_err *err);

/* The table as text for users: name, default, sentence. */
void bh_params_help(const struct bh_params *params, struct bh_buf *out);

#endif
