#ifndef BH_LAB_OPENB_TEXT_H
#define BH_LAB_OPENB_TEXT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* A text file, plain or gzipped, read whole and taken line by line in place.  Errors name
 * the file and the line. */
struct bh_openb_text {
    const char *path;
    struct bh_buf buf;
    size_t at;
    uint32_t line; /* number of the line taken last */
};

enum { BH_OPENB_TEXT_MAX = 64 << 20 };

/* Read it.  BH_NOT_FOUND, BH_DENIED, BH_IO; BH_INVALID: damaged, or holds a NUL; BH_FULL:
 * over BH_OPENB_TEXT_MAX bytes.  `path` must live as long. */
BH_MUST_USE bh_rc bh_openb_text_open(const char *path, struct bh_openb_text *ret_text, struct bh_err *err);
void bh_openb_text_close(struct bh_openb_text *text);
static inline void
bh_openb_text_close_auto(struct bh_openb_text *text)
{
    bh_openb_text_close(text);
}

/* The next line without its end, or NULL after the last. */
char *bh_openb_text_next(struct bh_openb_text *text);

/* How many lines are left. */
uint32_t bh_openb_text_lines(const struct bh_openb_text *text);

/* Cut a line at each separator; returns how many fields, of which at most `max` are in
 * `ret_fields`. */
uint32_t bh_openb_split(char *line, char separator, char **ret_fields, uint32_t max);

/* Say "<path>:<line>: " before the error; returns err->rc. */
bh_rc bh_openb_text_wrap(const struct bh_openb_text *text, struct bh_err *err);

#endif
