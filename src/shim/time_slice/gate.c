#include "shim/time_slice/gate.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/charge/context.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/clock.h"
#include "shim/work/capture.h"
#include "shim/work/meter.h"

enum {
    THREADS_BLOCK = BH_STATE_ALIGN / sizeof(struct bh_gate_thread) - 1,
};
#define LOOK_AGAIN_NS (1000 * BH_MS) /* a WANT may have been lost */
#define CLEAR_LOOK_NS (20 * BH_US)

struct gate_block {
    struct bh_gate_thread thread[THREADS_BLOCK];
    struct gate_block *_Atomic next;
};

static BH_STATE union {
    struct {
        _Atomic uint32_t wanted, idle; /* the time slice for which WANT was sent, and IDLE */
        _Atomic uint32_t known;        /* bulkhead-share knows that this process has work */
        _Atomic bool orphaned;
        _Atomic uint32_t waiting;  /* threads that have work and did not submit it yet */
        _Atomic uint32_t finished; /* the time slice in which nothing more is submitted; 0: none */
    };
    char whole[BH_STATE_ALIGN];
} state;

static BH_STATE union {
    struct gate_block block;
    char whole[BH_STATE_ALIGN];
} first;

struct bh_gate_state bh_gate_state;
__thread struct bh_gate_thread *bh_gate_me;
static pthread_key_t leaving;
static _Atomic uint32_t has_key;

static void
gate_thread_leaves(void *me)
{
    struct bh_gate_thread *thread = me;

    bh_gate_me = NULL;
    atomic_store(&thread->inside, 0);
    atomic_store(&thread->taken, 0);
}

void
bh_gate_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
    bh_state_wipe_on_fork(bh_gate, sizeof(*bh_gate));
    bh_state_wipe_on_fork(&first, sizeof(first));
    bh_gate_me = NULL;
    if (atomic_load(&has_key) == 0 && pthread_key_create(&leaving, gate_thread_leaves) == 0)
        atomic_store(&has_key, 1);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

void
bh_gate_prepare(void)
{
    bh_gate->slice = &bh_page_limits(0)->slice;
}

/* ---- threads ---- */

static struct bh_gate_thread *
gate_take_in(struct gate_block *block)
{
    for (unsigned i = 0; i < THREADS_BLOCK; i++) {
        uint32_t free = 0;

        if (atomic_compare_exchange_strong(&block->thread[i].taken, &free, 1))
            return &block->thread[i];
    }
    return NULL;
}

static struct gate_block *
gate_next_block(struct gate_block *block)
{
    struct gate_block *next = atomic_load(&block->next), *none = NULL;

    if (next != NULL)
        return next;
    next = bh_state_map(sizeof(*next));
    if (next == NULL || atomic_compare_exchange_strong(&block->next, &none, next))
        return next;
    bh_state_unmap(next, sizeof(*next));
    return none;
}

/* NULL when there is no memory for it. */
static struct bh_gate_thread *
gate_me_or_new(void)
{
    struct bh_gate_thread *me = bh_gate_me;

    if (me != NULL && atomic_load_explicit(&me->taken, memory_order_relaxed) != 0)
        return me;
    me = NULL;
    for (struct gate_block *block = &first.block; me == NULL && block != NULL;
         block = me == NULL ? gate_next_block(block) : block)
        me = gate_take_in(block);
    if (me != NULL && atomic_load(&has_key) != 0)
        pthread_setspecific(leaving, me);
    bh_gate_me = me;
    return me;
}

void
bh_gate_clear(void)
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    for (struct gate_block *block = &first.block; block != NULL; block = atomic_load(&block->next))
        for (unsigned i = 0; i < THREADS_BLOCK; i++)
            while (atomic_load(&block->thread[i].inside) != 0)
                bh_clock_sleep(CLEAR_LOOK_NS);
}

/* ---- in and out ---- */

void
bh_gate_orphaned(bool orphaned)
{
    atomic_store(&state.orphaned, orphaned);
}

void
bh_gate_idle(uint32_t slice)
{
    atomic_store(&state.idle, slice);
}

/* The first submission of a process, and the first after it reported idle: bulkhead-share
 * waits at the end of a time slice for those that it knows to have work. */
static void
gate_report_work(unsigned device, uint32_t slice)
{
    if (__builtin_expect(atomic_load_explicit(&state.known, memory_order_relaxed) == 0, 0)
        && bh_page_send(BH_SHARE_WANT, device, slice))
        atomic_store(&state.known, 1);
    if (__builtin_expect(atomic_load_explicit(&state.idle, memory_order_relaxed) == slice, 0)
        && atomic_exchange(&state.idle, 0) == slice)
        (void)bh_page_send(BH_SHARE_WANT, device, slice);
}

static void
gate_wait_for_slice(unsigned device, uint32_t slice)
{
    const _Atomic uint32_t *word = bh_gate->slice;
    bool sent = atomic_exchange(&state.wanted, slice) == slice;

    if (!sent && bh_page_send(BH_SHARE_WANT, device, slice))
        atomic_store(&state.known, 1);
    else if (!sent)
        atomic_store(&state.wanted, 0);
    bh_clock_wait(word, slice, LOOK_AGAIN_NS);
    if (atomic_load(word) == slice)
        atomic_store(&state.wanted, 0); /* send it again */
}

/* What is left of the time slice is too short for this work: the time slice may end at once, and the helper
 * says so. */
static void
gate_finish(uint32_t slice)
{
    const _Atomic uint32_t *word = bh_gate->slice;

    if (atomic_exchange(&state.finished, slice) != slice)
        bh_clock_wake(word);
    bh_clock_wait(word, slice, LOOK_AGAIN_NS);
}

/* On several devices one of them cannot decide that the time slice is over: what runs on another
 * may wait for what would have come. */
static uint64_t
gate_end_of_slice(void)
{
    return bh_page->limits->device_count == 1 && !atomic_load(&state.orphaned)
               ? atomic_load(&bh_page_limits(0)->until_ns)
               : 0;
}

static bool
gate_try_metered(struct bh_pass *pass, struct bh_gate_thread *me, uint32_t slice)
{
    enum bh_meter_verdict admission = BH_ADMIT_NO_MORE;

    pass->until_ns = gate_end_of_slice();
    if (pass->until_ns == 0 || atomic_load(&state.finished) != slice)
        admission = bh_meter_admit(pass);
    if (admission == BH_ADMIT_NOW)
        return true;
    bh_gate_step(me, (uint32_t)-1);
    pass->inside = false;
    if (admission == BH_ADMIT_NO_MORE)
        gate_finish(slice);
    else
        bh_clock_wait(bh_gate->slice, slice, pass->look_again_ns);
    return false;
}

/* True: in, or not to be kept out.  False: look again. */
static bool
gate_try_enter(struct bh_pass *pass, struct bh_gate_thread *me)
{
    uint32_t slice;

    bh_gate_step(me, 1);
    slice = atomic_load(bh_gate->slice);
    pass->inside = true;
    if ((slice & BH_SHARE_SHUT) != 0 && !atomic_load(&state.orphaned)) {
        bh_gate_step(me, (uint32_t)-1);
        pass->inside = false;
        gate_wait_for_slice(pass->device, slice);
        return false;
    }
    gate_report_work(pass->device, slice);
    pass->metered = (slice & BH_SHARE_CONTENDED) != 0;
    return !pass->metered || gate_try_metered(pass, me, slice);
}

void
bh_gate_enter(struct bh_pass *pass)
{
    struct bh_gate_thread *me;
    struct bh_where where;

    pass->inside = pass->metered = false;
    if (!bh_page_is_joined() || bh_gate->slice == NULL || bh_context_here(&where) != CUDA_SUCCESS
        || bh_capture_has(pass->stream, pass->per_thread))
        return;
    me = gate_me_or_new();
    /* A call from within a call, as a driver makes one: what waits here is waited for. */
    if (me == NULL || atomic_load_explicit(&me->inside, memory_order_relaxed) != 0)
        return;
    pass->device = where.device;
    atomic_fetch_add(&state.waiting, 1);
    while (!gate_try_enter(pass, me))
        ;
    atomic_fetch_sub(&state.waiting, 1);
}

bool
bh_gate_has_waiting(void)
{
    return atomic_load(&state.waiting) != 0;
}

bool
bh_gate_is_finished(uint32_t slice)
{
    return (slice & BH_SHARE_CONTENDED) != 0 && atomic_load(&state.finished) == slice;
}

void
bh_gate_leave(const struct bh_pass *pass, CUresult rc)
{
    if (pass->metered)
        bh_meter_submitted(pass, rc);
    if (pass->inside)
        bh_gate_step(bh_gate_me, (uint32_t)-1);
}
