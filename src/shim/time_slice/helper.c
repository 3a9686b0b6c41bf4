#include "shim/time_slice/helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "shim/charge/context.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/driver/rm_ledger.h"
#include "shim/process/clock.h"
#include "shim/time_slice/gate.h"
#include "shim/work/capture.h"
#include "shim/work/meter.h"
#include "shim/work/stream.h"

enum { STACK_BYTES = 256 << 10 };
#define QUIET_NS (300 * BH_US)
#define CONNECTION_NS (500 * BH_MS) /* how often the connection is checked */
#define ORPHAN_NS (1000 * BH_MS)    /* without a connection for so long compute runs freely */

static BH_STATE union {
    _Atomic uint32_t started;
    char whole[BH_STATE_ALIGN];
} state;

void
bh_helper_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

/* ---- until nothing is left on the devices ---- */

static bool
helper_drain_context(CUcontext context, void *self)
{
    CUcontext popped;

    if (REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return true;
    if (bh_capture_any())
        bh_streams_wait(context);
    else
        (void)REAL(cuCtxSynchronize)();
    (void)REAL(cuCtxPopCurrent_v2)(&popped);
    return true;
}

static void
helper_drain(void)
{
    for (unsigned device = 0; device < bh_page->limits->device_count; device++) {
        bh_contexts_visit(device, helper_drain_context, NULL);
        bh_meter_done(device);
    }
}

/* ---- the loop ---- */

struct helper {
    uint32_t drained, idle; /* the time slices that DRAINED and IDLE were sent for */
    uint64_t count;         /* submissions when IDLE was */
    uint64_t seen_ns;       /* there was a connection */
};

static void
helper_keep_connection(struct helper *helper)
{
    uint64_t now = bh_clock_ns();

    if (bh_page_keep_connection()) {
        helper->seen_ns = now;
        bh_gate_orphaned(false);
        bh_rm_ledger_publish(); /* the page may be another */
    } else {
        helper->drained = helper->idle = 0; /* the next server has not received it */
        if (now - helper->seen_ns > ORPHAN_NS)
            bh_gate_orphaned(true);
    }
}

/* The time slice was shut after this process had finished in it: nothing came in between. */
static bool
helper_follows(uint32_t shut, uint32_t slice)
{
    return (shut & BH_SHARE_SHUT) != 0 && shut / BH_SHARE_SLICE_STEP == slice / BH_SHARE_SLICE_STEP + 1;
}

/* The time slice is over, or nothing more of this process comes in it. */
static void
helper_answer_end(struct helper *helper, uint32_t slice)
{
    uint32_t now;

    bh_gate_clear();
    helper_drain();
    now = atomic_load(bh_gate->slice);
    if (helper_follows(now, slice))
        slice = now;
    if (bh_page_send(BH_SHARE_DRAINED, 0, slice))
        helper->drained = slice;
}

/* The device has work for longer than it pays to wait for it: a driver may spin. */
static bool
helper_rest(uint32_t slice)
{
    uint64_t longest_ns = 0, ns;

    for (unsigned device = 0; device < bh_page->limits->device_count; device++) {
        ns = bh_meter_rest_ns(device);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    if (longest_ns > 0)
        bh_clock_wait(bh_gate->slice, slice, longest_ns);
    return longest_ns > 0;
}

/* Nothing came for a while: see that nothing is left, and if still nothing came, report it. */
static void
helper_answer_quiet(struct helper *helper, uint32_t slice, uint64_t count)
{
    const _Atomic uint32_t *word = bh_gate->slice;

    helper_drain();
    if (bh_meter_count() != count || bh_gate_has_waiting() || atomic_load(word) != slice)
        return;
    if (bh_page_send(BH_SHARE_IDLE, 0, slice)) {
        helper->idle = slice;
        helper->count = count;
        bh_gate_idle(slice);
    }
}

static void
helper_step(struct helper *helper)
{
    const _Atomic uint32_t *word = bh_gate->slice;
    uint32_t slice = atomic_load(word);
    uint64_t count = bh_meter_count();
    bool shut = (slice & BH_SHARE_SHUT) != 0, finished = bh_gate_is_finished(slice);
    bool idle = helper->idle == slice && helper->count == count;

    if (shut && helper->drained != slice) {
        helper_answer_end(helper, slice);
    } else if (finished && helper->drained != slice) {
        if (!helper_rest(slice))
            helper_answer_end(helper, slice);
    } else if (shut || finished || (slice & BH_SHARE_CONTENDED) == 0) {
        bh_clock_wait(word, slice, CONNECTION_NS);
    } else if (!idle) {
        bh_clock_wait(word, slice, QUIET_NS);
        if (atomic_load(word) == slice && bh_meter_count() == count && !bh_gate_has_waiting()
            && !helper_rest(slice))
            helper_answer_quiet(helper, slice, count);
    } else {
        bh_clock_wait(word, slice, BH_MS); /* reported idle: work may come all the same */
    }
}

static void *
helper_run(void *self)
{
    struct helper helper = { .seen_ns = bh_clock_ns() };
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    uint64_t looked_ns = 0;

    (void)REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    for (;;) {
        uint64_t now = bh_clock_ns();

        if (now - looked_ns >= CONNECTION_NS) {
            helper_keep_connection(&helper);
            looked_ns = now;
        }
        helper_step(&helper);
    }
    return self;
}

void
bh_helper_thread_start(void)
{
    uint32_t no = 0;
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    if (!atomic_compare_exchange_strong(&state.started, &no, 1))
        return;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attributes, helper_run, NULL) != 0)
        atomic_store(&state.started, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}
