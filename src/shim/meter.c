#include "shim/meter.h"

#include "shim/capture.h"
#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/handles.h"
#include "shim/page.h"

#define AHEAD_NS (3 * BH_MS)
#define SENTINEL_NS (200 * BH_US)
#define UNKNOWN_NS (1 * BH_MS) /* of what was never seen: three of it go ahead */

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
cost_of(uint64_t work)
{
    uint64_t ns;

    return work != 0 && bh_handles_find(&costs, work, &ns) ? ns : UNKNOWN_NS;
}

/* A moving average over about four. */
static void
learn(uint64_t work, uint64_t took_ns)
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
have_ring(struct meter *meter)
{
    uint32_t free = 0;

    return atomic_compare_exchange_strong(&meter->busy, &free, 1);
}

static void
leave_ring(struct meter *meter)
{
    atomic_store(&meter->busy, 0);
}

static void
lower(_Atomic uint64_t *ahead, uint64_t by)
{
    uint64_t before = atomic_load(ahead);

    while (!atomic_compare_exchange_weak(ahead, &before, before > by ? before - by : 0))
        ;
}

/* Sentinels [head, end) are done.  What passed since the one before was theirs, each as
 * much as it was estimated to take: of those that are seen at once only the sum is known.
 */
static void
retire(struct meter *meter, uint32_t end)
{
    uint64_t now = bh_clock_ns(), span, estimated = 0;
    const struct sentinel *first = &meter->ring[meter->head % RING];

    span = now - (first->since_ns > meter->done_ns ? first->since_ns : meter->done_ns);
    for (uint32_t at = meter->head; at != end; at++)
        estimated += meter->ring[at % RING].estimated_ns;
    for (; meter->head != end; meter->head++) {
        const struct sentinel *sentinel = &meter->ring[meter->head % RING];
        uint64_t share_ns =
            estimated == 0 ? 0 : span / 1000 * sentinel->estimated_ns / estimated;

        if (sentinel->count != 0)
            learn(sentinel->work, share_ns * 1000 / sentinel->count);
        lower(&meter->ahead_ns, sentinel->estimated_ns);
    }
    meter->done_ns = now;
}

/* What still waits in the ring, by what its work is known to take by now. */
static void
estimate_again(struct meter *meter)
{
    for (uint32_t at = meter->head; at != meter->tail; at++) {
        struct sentinel *sentinel = &meter->ring[at % RING];
        uint64_t before = sentinel->estimated_ns;

        if (sentinel->work == 0 || sentinel->work == MIXED)
            continue;
        sentinel->estimated_ns = sentinel->count * cost_of(sentinel->work);
        if (sentinel->estimated_ns > before)
            atomic_fetch_add(&meter->ahead_ns, sentinel->estimated_ns - before);
        else
            lower(&meter->ahead_ns, before - sentinel->estimated_ns);
    }
}

static void
look(struct meter *meter)
{
    uint32_t end = meter->head;

    for (; end != meter->tail; end++) {
        CUevent event = meter->ring[end % RING].event;

        if (event != NULL && REAL(cuEventQuery)(event) == CUDA_ERROR_NOT_READY)
            break;
    }
    if (end != meter->head) {
        retire(meter, end);
        estimate_again(meter);
    }
    /* Nothing is before a sentinel: only what came since the last one can be on the way. */
    if (meter->head == meter->tail)
        atomic_store(&meter->ahead_ns, atomic_load(&meter->open_ns));
}

/* An event of the current context in this place of the ring. */
static bool
make_event(struct sentinel *sentinel)
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
put_sentinel(struct meter *meter, const struct bh_pass *pass)
{
    struct sentinel *sentinel = &meter->ring[meter->tail % RING];
    CUresult rc;

    if (meter->tail - meter->head == RING || !make_event(sentinel))
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
        lower(&meter->ahead_ns, sentinel->estimated_ns);
}

/* ---- submissions ---- */

static bool
fits(struct meter *meter, uint64_t cost_ns)
{
    uint64_t ahead = atomic_load(&meter->ahead_ns);

    do {
        if (ahead != 0 && ahead + cost_ns > AHEAD_NS)
            return false;
    } while (!atomic_compare_exchange_weak(&meter->ahead_ns, &ahead, ahead + cost_ns));
    return true;
}

bool
bh_meter_admit(struct bh_pass *pass)
{
    struct meter *meter = &meters[pass->device];

    pass->cost_ns = cost_of(pass->work);
    if (fits(meter, pass->cost_ns))
        return true;
    if (have_ring(meter)) {
        look(meter);
        leave_ring(meter);
    }
    if (fits(meter, pass->cost_ns))
        return true;
    atomic_fetch_add(&meter->submissions, 1); /* who waits to submit is not idle */
    return false;
}

void
bh_meter_submitted(const struct bh_pass *pass, CUresult rc)
{
    struct meter *meter = &meters[pass->device];
    uint64_t none = 0;

    atomic_fetch_add(&meter->submissions, 1);
    if (rc != CUDA_SUCCESS) {
        lower(&meter->ahead_ns, pass->cost_ns);
        return;
    }
    atomic_fetch_add(&meter->open_count, 1);
    if (!atomic_compare_exchange_strong(&meter->open_work, &none, pass->work) &&
        none != pass->work)
        atomic_store(&meter->open_work, MIXED);
    if (atomic_fetch_add(&meter->open_ns, pass->cost_ns) + pass->cost_ns < SENTINEL_NS ||
        !have_ring(meter))
        return;
    put_sentinel(meter, pass);
    leave_ring(meter);
}

/* ---- from the helper, and when contexts go ---- */

static void
take_ring(struct meter *meter)
{
    while (!have_ring(meter))
        bh_clock_sleep(20 * BH_US);
}

void
bh_meter_done(unsigned device)
{
    struct meter *meter = &meters[device];

    take_ring(meter);
    look(meter);
    leave_ring(meter);
    lower(&meter->ahead_ns, atomic_exchange(&meter->open_ns, 0));
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
        take_ring(meter);
        for (unsigned i = 0; i < RING; i++)
            if (meter->ring[i].event != NULL && meter->ring[i].context == context) {
                (void)REAL(cuEventDestroy_v2)(meter->ring[i].event);
                meter->ring[i].event = NULL;
            }
        leave_ring(meter);
    }
}
