#ifndef BH_BASE_NEAREST_H
#define BH_BASE_NEAREST_H

#include <stdint.h>

/* The word that was probably meant by one that is unknown, for hints. */

struct bh_nearest {
    const char *word; /* NULL: none so far is like it; points to what was tried */
    uint32_t edits;   /* between both; only with a word */
};

/* Compare `word` with what was `wanted`, and keep it where it is nearer than those before.  A word
 * is near with three insertions, deletions and replacements at most, and fewer than `wanted` has
 * bytes.  Of words longer than 48 bytes none is near. */
void bh_nearest_try(struct bh_nearest *nearest, const char *wanted, const char *word);

#endif
