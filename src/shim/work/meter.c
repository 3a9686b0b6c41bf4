#include "shim/work/meter.h"

#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/clock.h"
#include "shim/process/handles.h"
#include "shim/work/capture.h"

#define AHEAD_NS (3 * BH_MS)
#define SENTINEL_NS (200 * BH_US)
#define UNKNOWN_NS (1 * BH_MS) /* of what was never seen: three of it go ahead */
#define LATE_NS (1000 * BH_MS) /* an end that was so long ago is ignored */
#define LOOK_LEAST_NS (50 * BH_US)
#define REST_LEAST_NS (1 * BH_MS)
#define REST_STEP_NS (250 * BH_US)

enum { RING = 64 };

/* Behind some work: one kind of it, `count` times, or several. */
struct sentinel {
    CUevent event;
    CUcontext context; /* of the event; it is used again */
    uint64_t estimated_ns, since_ns, work;
    uint32_t count;
};

static struct meter {
    BH_STATE _Atomic uint64_t ahead_ns; /* on the way */
    _Atomic uint64_t began_ns;          /* when the first of that began to run */
    _Atomic uint64_t until_ns;          /* the end of the time slice that work was admitted in last */
    _Atomic uint64_t open_ns;           /* of that, behind no sentinel yet */
    _Atomic uint64_t submissions;
    _Atomic uint64_t open_work; /* what it is; MIXED */
    _Atomic uint32_t open_count;
    _Atomic uint32_t busy; /* one thread at a time looks after the ring; others pass by */
    uint32_t head, tail;
    uint64_t done_ns; /* when the last one was seen to be done */
    struct sentinel ring[RING];
} meters[BH_SHARE_DEVICES_MAX];

#define MIXED UINT64_MAX

static struct bh_handles costs;

void
bh_meter_init(void)
{
    bh_state_wipe_on_fork(meters, sizeof(meters));
    bh_handles_init(&costs);
}

uint64_t
bh_meter_count(void)
{
    uint64_t sum = 0;

    for (unsigned device = 0; device < bh_page->limits->device_count; device++)
        sum += atomic_load(&meters[device].submissions);
    return sum;
}

/* ---- estimates ---- */

static uint64_t
meter_cost_of(uint64_t work)
{
    uint64_t ns;

    return work != 0 && bh_handles_find(&costs, work, &ns) ? ns : UNKNOWN_NS;
}

/* A moving average over about four. */
static void
meter_learn(uint64_t work, uint64_t took_ns)
{
    uint64_t before;

    if (work == 0 || work == MIXED)
        return;
    if (bh_handles_find(&costs, work, &before))
        took_ns = (3 * before + took_ns) / 4;
    (void)bh_handles_put(&costs, work, took_ns == 0 ? 1 : took_ns);
}

void
bh_meter_forget_work(uint64_t work)
{
    uint64_t ns;

    (void)bh_handles_take(&costs, work, &ns);
}

/* ---- the ring, by the one thread that has it ---- */

static bool
meter_have_ring(struct meter *meter)
{
    uint32_t free = 0;

    return atomic_compare_exchange_strong(&meter->busy, &free, 1);
}

static void
meter_leave_ring(struct meter *meter)
{
    atomic_store(&meter->busy, 0);
}

static void
meter_lower(_Atomic uint64_t *ahead, uint64_t by)
{
    uint64_t before = atomic_load(ahead);

    while (!atomic_compare_exchange_weak(ahead, &before, before > by ? before - by : 0))
        ;
}

/* Sentinels [head, end) are done.  What passed since the one before was theirs, each as
 * much as it was estimated to take: of those that are seen at once only the sum is known.
 */
static void
meter_retire(struct meter *meter, uint32_t end)
{
    uint64_t now = bh_clock_ns(), span, estimated = 0;
    const struct sentinel *first = &meter->ring[meter->head % RING];

    span = now - (first->since_ns > meter->done_ns ? first->since_ns : meter->done_ns);
    for (uint32_t at = meter->head; at != end; at++)
        estimated += meter->ring[at % RING].estimated_ns;
    for (; meter->head != end; meter->head++) {
        const struct sentinel *sentinel = &meter->ring[meter->head % RING];
        uint64_t share_ns = estimated == 0 ? 0 : span / 1000 * sentinel->estimated_ns / estimated;

        if (sentinel->count != 0)
            meter_learn(sentinel->work, share_ns * 1000 / sentinel->count);
        meter_lower(&meter->ahead_ns, sentinel->estimated_ns);
    }
    meter->done_ns = now;
    atomic_store(&meter->began_ns, now);
}

/* What still waits in the ring, by what its work is known to take by now. */
static void
meter_estimate_again(struct meter *meter)
{
    for (uint32_t at = meter->head; at != meter->tail; at++) {
        struct sentinel *sentinel = &meter->ring[at % RING];
        uint64_t before = sentinel->estimated_ns;

        if (sentinel->work == 0 || sentinel->work == MIXED)
            continue;
        sentinel->estimated_ns = sentinel->count * meter_cost_of(sentinel->work);
        if (sentinel->estimated_ns > before)
            atomic_fetch_add(&meter->ahead_ns, sentinel->estimated_ns - before);
        else
            meter_lower(&meter->ahead_ns, before - sentinel->estimated_ns);
    }
}

static void
meter_look(struct meter *meter)
{
    uint32_t end = meter->head;

    for (; end != meter->tail; end++) {
        CUevent event = meter->ring[end % RING].event;

        if (event != NULL && REAL(cuEventQuery)(event) == CUDA_ERROR_NOT_READY)
            break;
    }
    if (end != meter->head) {
        meter_retire(meter, end);
        meter_estimate_again(meter);
    }
    /* Nothing is before a sentinel: only what came since the last one can be on the way. */
    if (meter->head == meter->tail)
        atomic_store(&meter->ahead_ns, atomic_load(&meter->open_ns));
}

/* An event of the current context in this place of the ring. */
static bool
meter_make_event(struct sentinel *sentinel)
{
    CUcontext context = NULL;

    if (REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS)
        return false;
    if (sentinel->event != NULL && sentinel->context == context)
        return true;
    if (sentinel->event != NULL)
        (void)REAL(cuEventDestroy_v2)(sentinel->event);
    sentinel->event = NULL;
    sentinel->context = context;
    return REAL(cuEventCreate)(&sentinel->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
}

static void
meter_put_sentinel(struct meter *meter, const struct bh_pass *pass)
{
    struct sentinel *sentinel = &meter->ring[meter->tail % RING];
    CUresult rc;

    if (meter->tail - meter->head == RING || !meter_make_event(sentinel))
        return;
    sentinel->since_ns = bh_clock_ns();
    rc = pass->per_thread ? REAL(cuEventRecord_ptsz)(sentinel->event, pass->stream)
                          : REAL(cuEventRecord)(sentinel->event, pass->stream);
    sentinel->estimated_ns = atomic_exchange(&meter->open_ns, 0);
    sentinel->work = atomic_exchange(&meter->open_work, 0);
    sentinel->count = atomic_exchange(&meter->open_count, 0);
    if (rc == CUDA_SUCCESS)
        meter->tail++;
    else
        meter_lower(&meter->ahead_ns, sentinel->estimated_ns);
}

/* ---- submissions ---- */

/* Without an end that is known, three milliseconds or one partition; with one, two of the same go, so
 * that the device need not wait until the end of the first is noticed. */
static bool
meter_is_room(uint64_t ahead_ns, uint64_t cost_ns, uint64_t until_ns)
{
    return ahead_ns == 0 || ahead_ns + cost_ns <= AHEAD_NS || (until_ns != 0 && 2 * ahead_ns <= 3 * cost_ns);
}

/* To the nearest: what would be half done at the end of the time slice still goes. */
static bool
meter_is_too_late(struct meter *meter, const struct bh_pass *pass, uint64_t now_ns)
{
    uint64_t free_ns = atomic_load(&meter->began_ns) + atomic_load(&meter->ahead_ns);

    if (pass->until_ns == 0 || atomic_load(&meter->until_ns) != pass->until_ns)
        return false; /* one goes in each time slice */
    return (free_ns > now_ns ? free_ns : now_ns) + pass->cost_ns / 2 > pass->until_ns;
}

static enum bh_meter_verdict
meter_try_admit(struct meter *meter, const struct bh_pass *pass, uint64_t now_ns)
{
    uint64_t ahead = atomic_load(&meter->ahead_ns);

    if (meter_is_too_late(meter, pass, now_ns))
        return BH_ADMIT_NO_MORE;
    do {
        if (!meter_is_room(ahead, pass->cost_ns, pass->until_ns))
            return BH_ADMIT_LATER;
    } while (!atomic_compare_exchange_weak(&meter->ahead_ns, &ahead, ahead + pass->cost_ns));
    if (ahead == 0)
        atomic_store(&meter->began_ns, now_ns);
    atomic_store(&meter->until_ns, pass->until_ns);
    return BH_ADMIT_NOW;
}

/* An estimate may be far too high: no thread sleeps for longer than an eighth of what it took so far. */
static uint64_t
meter_at_most_an_eighth(const struct meter *meter, uint64_t wait_ns, uint64_t now_ns)
{
    uint64_t began = atomic_load(&meter->began_ns);
    uint64_t most = now_ns > began ? (now_ns - began) / 8 : 0;

    most = most > REST_STEP_NS ? most : REST_STEP_NS;
    return wait_ns < most ? wait_ns : most;
}

/* When there is room, if what goes before takes as long as it should: half of the time until
 * then, since it may be quicker.  One partition ahead there is no time to lose. */
static uint64_t
meter_look_again_ns(const struct meter *meter, const struct bh_pass *pass, uint64_t now_ns)
{
    uint64_t free_ns = atomic_load(&meter->began_ns) + atomic_load(&meter->ahead_ns);
    uint64_t wait_ns = free_ns > now_ns + pass->cost_ns ? (free_ns - now_ns - pass->cost_ns) / 2 : 0;

    if (pass->until_ns == 0 || wait_ns < LOOK_LEAST_NS)
        return LOOK_LEAST_NS;
    return meter_at_most_an_eighth(meter, wait_ns, now_ns);
}

enum bh_meter_verdict
bh_meter_admit(struct bh_pass *pass)
{
    struct meter *meter = &meters[pass->device];
    uint64_t now_ns = bh_clock_ns();
    enum bh_meter_verdict admission;

    pass->cost_ns = meter_cost_of(pass->work);
    if (now_ns > pass->until_ns + LATE_NS)
        pass->until_ns = 0;
    admission = meter_try_admit(meter, pass, now_ns);
    if (admission == BH_ADMIT_NOW)
        return admission;
    if (meter_have_ring(meter)) {
        meter_look(meter);
        meter_leave_ring(meter);
    }
    admission = meter_try_admit(meter, pass, now_ns);
    if (admission == BH_ADMIT_LATER) {
        atomic_fetch_add(&meter->submissions, 1); /* a thread that waits to submit is not idle */
        pass->look_again_ns = meter_look_again_ns(meter, pass, now_ns);
    }
    return admission;
}

void
bh_meter_submitted(const struct bh_pass *pass, CUresult rc)
{
    struct meter *meter = &meters[pass->device];
    uint64_t none = 0;

    atomic_fetch_add(&meter->submissions, 1);
    if (rc != CUDA_SUCCESS) {
        meter_lower(&meter->ahead_ns, pass->cost_ns);
        return;
    }
    atomic_fetch_add(&meter->open_count, 1);
    if (!atomic_compare_exchange_strong(&meter->open_work, &none, pass->work) && none != pass->work)
        atomic_store(&meter->open_work, MIXED);
    if (atomic_fetch_add(&meter->open_ns, pass->cost_ns) + pass->cost_ns < SENTINEL_NS
        || !meter_have_ring(meter))
        return;
    meter_put_sentinel(meter, pass);
    meter_leave_ring(meter);
}

/* ---- from the helper, and when contexts go ---- */

static void
meter_take_ring(struct meter *meter)
{
    while (!meter_have_ring(meter))
        bh_clock_sleep(20 * BH_US);
}

/* The last partition is waited for in its last quarter: late enough, and exact.  Before it, a
 * look at each about when it ends learns what it takes. */
static uint64_t
meter_rest_ns(const struct meter *meter, uint64_t now_ns)
{
    const struct sentinel *first = &meter->ring[meter->head % RING];
    uint64_t began = atomic_load(&meter->began_ns), ahead = atomic_load(&meter->ahead_ns);
    uint64_t left = began + ahead > now_ns ? began + ahead - now_ns : 0, end;

    if (left <= REST_LEAST_NS)
        return 0;
    if (meter->tail - meter->head <= 1)
        return left > ahead / 4 ? meter_at_most_an_eighth(meter, left - ahead / 4, now_ns) : 0;
    end = began + first->estimated_ns;
    return end > now_ns + 2 * LOOK_LEAST_NS ? meter_at_most_an_eighth(meter, (end - now_ns) / 2, now_ns)
                                            : LOOK_LEAST_NS;
}

uint64_t
bh_meter_rest_ns(unsigned device)
{
    struct meter *meter = &meters[device];
    uint64_t rest;

    meter_take_ring(meter);
    meter_look(meter);
    rest = meter_rest_ns(meter, bh_clock_ns());
    meter_leave_ring(meter);
    return rest;
}

void
bh_meter_done(unsigned device)
{
    struct meter *meter = &meters[device];

    meter_take_ring(meter);
    meter_look(meter);
    meter_leave_ring(meter);
    meter_lower(&meter->ahead_ns, atomic_exchange(&meter->open_ns, 0));
    atomic_store(&meter->open_work, 0);
    atomic_store(&meter->open_count, 0);
}

void
bh_meter_forget_context(CUcontext context)
{
    for (unsigned device = 0; device < BH_SHARE_DEVICES_MAX; device++) {
        struct meter *meter = &meters[device];

        if (atomic_load(&meter->submissions) == 0)
            continue;
        meter_take_ring(meter);
        for (unsigned i = 0; i < RING; i++)
            if (meter->ring[i].event != NULL && meter->ring[i].context == context) {
                (void)REAL(cuEventDestroy_v2)(meter->ring[i].event);
                meter->ring[i].event = NULL;
            }
        meter_leave_ring(meter);
    }
}
