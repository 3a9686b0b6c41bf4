#ifndef BH_FUZZ_FUZZ_H
#define BH_FUZZ_FUZZ_H

/* What every fuzz target defines.  With -Dfuzz=true libFuzzer calls it, otherwise
 * replay_main.c does with each file of the corpus; BH_ASSERT states what must hold. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Must not keep or change `data`, and never depend on an earlier call.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a string of its own, for parsers of text; free() it. */
static inline char *
bh_fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    BH_ASSERT(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
