/* Time and waiting, monotonic alone: nothing here notices when the wall clock jumps. */
#ifndef BH_SHIM_PROCESS_CLOCK_H
#define BH_SHIM_PROCESS_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BH_MS UINT64_C(1000000)
#define BH_US UINT64_C(1000)

uint64_t bh_clock_ns(void);

/* Sleep; a signal may end it early.  errno stays. */
void bh_clock_sleep(uint64_t ns);

/* Sleep until `word`, which others write, is not `value`, or `ns` have passed, or a signal
 * or nothing at all ended it.  `word` may be mapped read-only.  errno stays. */
void bh_clock_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t ns);

/* Wake all waiters for `word`, in this process or others. */
void bh_clock_wake(const _Atomic uint32_t *word);

#endif
