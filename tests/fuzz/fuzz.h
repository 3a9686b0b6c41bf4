#ifndef BH_FUZZ_FUZZ_H
#define BH_FUZZ_FUZZ_H

/* What every fuzz target defines.  With -Dfuzz=true libFuzzer calls it, otherwise
 * replay_main.c does with each file of the corpus; BH_ASSERT states what must hold. */

#include <stddef.h>
#include <stdint.h>

/* Must not keep or change `data`, and never depend on an earlier call.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
