#ifndef BH_BASE_WORDS_H
#define BH_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Lines of a scenario as words. */

enum { BH_WORDS_MAX = 40, BH_LINE_MAX = 1023, BH_WORD_MAX = 128 };

struct bh_words {
    char text[BH_LINE_MAX + 1];
    const char *at[BH_WORDS_MAX]; /* into text; at[0] is the statement */
    uint32_t count;               /* 0: an empty line, or a comment */
};

/* Split at blanks; "double quotes" keep blanks together, # begins a comment.
 *   BH_INVALID  an open quote
 *   BH_RANGE    too long, too many words */
BH_MUST_USE bh_rc bh_words_split(const char *line, size_t length, struct bh_words *ret_words,
                                 struct bh_err *err);

/* A set of words of which one is meant: their number in the set is their value.  NULL
 * entries are not a word. */
struct bh_choice {
    const char *what; /* "priority" */
    const char *const *names;
    uint32_t count;
};

/* BH_INVALID: none of them; the message lists them. */
BH_MUST_USE bh_rc bh_word_choose(const struct bh_choice *choice, const char *word, uint32_t *ret_value,
                                 struct bh_err *err);

/* The names a word stands for: "a" is itself, "s1..s7" is seven.  Start with
 * *cursor = 0; false at the end. */
bool bh_word_next_name(const char *word, uint32_t *cursor, char ret_name[BH_WORD_MAX]);

#endif
