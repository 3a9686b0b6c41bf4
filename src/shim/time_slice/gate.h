/* The gate that every submission passes: open, or shut while another lease has the devices.
 *
 * Whose time slice it is stands in a word that bulkhead-share writes, the same for all devices of
 * a lease: it has a time slice on all of them or on none, so the first one's is read.  Open, a
 * submission costs one load of it and two stores to a counter of its thread; no instruction
 * that other cores must see at once, since the side that shuts pays for that: the helper
 * thread asks the kernel (membarrier) to have all threads look, and then waits until none
 * is inside. */
#ifndef BH_SHIM_TIME_SLICE_GATE_H
#define BH_SHIM_TIME_SLICE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bulkhead/share_page.h"
#include "shim/process/abi.h"
#include "shim/process/state.h"
#include "shim/work/meter.h"

/* Of a thread; in memory of the process, so that the helper can read it. */
struct bh_gate_thread {
    _Alignas(64) _Atomic uint32_t inside;
    _Atomic uint32_t taken;
};

struct bh_gate_state {
    BH_STATE const _Atomic uint32_t *slice; /* NULL: nothing to submit yet */
};

extern BH_HIDDEN struct bh_gate_state bh_gate_state;
#define bh_gate (&bh_gate_state)
extern BH_HIDDEN __thread struct bh_gate_thread *bh_gate_me;

/* At the first join. */
void bh_gate_init(void);

/* The first context is there: from now on submissions wait for time slices. */
void bh_gate_prepare(void);

/* The way in when the quick one is not open: waits for the device's time slice, and for work that
 * was submitted before when others wait.  Then the way out. */
void bh_gate_enter(struct bh_pass *pass);
void bh_gate_leave(const struct bh_pass *pass, CUresult rc);

/* Whether a thread has work and may not submit it yet: one that sleeps between two looks, on a
 * machine that wakes it late, is not idle. */
bool bh_gate_has_waiting(void);

/* Whether nothing more is submitted in this time slice, which is CONTENDED, though there is work.  Never
 * of a lease of several devices. */
bool bh_gate_is_finished(uint32_t slice);

/* IDLE was sent for this time slice: the next submission takes it back. */
void bh_gate_idle(uint32_t slice);

/* Wait until no thread is inside that came in before the time slice ended. */
void bh_gate_clear(void);

/* The helper's last report: the connection has been down for so long that compute runs freely; or a
 * bulkhead-share is connected again. */
void bh_gate_orphaned(bool orphaned);

static inline void
bh_gate_step(struct bh_gate_thread *me, uint32_t by)
{
    atomic_store_explicit(&me->inside, atomic_load_explicit(&me->inside, memory_order_relaxed) + by,
                          memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* True: inside, to be left with bh_gate_step(bh_gate_me, -1). */
static inline bool
bh_gate_quick(void)
{
    struct bh_gate_thread *me = bh_gate_me;
    const _Atomic uint32_t *slice;

    if (__builtin_expect(me == NULL, 0))
        return false;
    bh_gate_step(me, 1);
    slice = bh_gate->slice;
    if (__builtin_expect(
            slice != NULL
                && (atomic_load_explicit(slice, memory_order_acquire) & (BH_SHARE_SHUT | BH_SHARE_CONTENDED))
                       == 0,
            1))
        return true;
    bh_gate_step(me, (uint32_t)-1);
    return false;
}

#endif
