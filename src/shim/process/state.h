/* What the shim knows of its process, which a fork's child must not inherit.
 *
 * Tables lie in BH_STATE objects: page-aligned and zero at first.  The first join marks
 * them so that the kernel wipes them in a child; a child is thus a process that never
 * called us. */
#ifndef BH_SHIM_PROCESS_STATE_H
#define BH_SHIM_PROCESS_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define BH_STATE_ALIGN 4096
#define BH_STATE _Alignas(BH_STATE_ALIGN)

/* Wipe [state, state + bytes) in children; both multiples of BH_STATE_ALIGN. */
void bh_state_wipe_on_fork(void *state, size_t bytes);

/* `bytes` of zeroed memory that children do not have; NULL when there is none.  Safe in a
 * signal handler. */
void *bh_state_map(size_t bytes);
void bh_state_unmap(void *memory, size_t bytes);

/* Our own error was found: from now on every call that reserves answers UNKNOWN. */
void bh_state_latch(void);
extern __attribute__((visibility("hidden"))) _Atomic bool bh_state_latched;

static inline bool
bh_state_is_latched(void)
{
    return atomic_load_explicit(&bh_state_latched, memory_order_relaxed);
}

/* False, and latched, when `condition` does not hold. */
#define BH_HOLDS(condition) (__builtin_expect(!!(condition), 1) ? true : (bh_state_latch(), false))

#endif
