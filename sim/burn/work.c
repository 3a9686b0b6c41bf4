/* A thread that launches: so much ahead that the GPU never waits for it, and no more, so
 * that what it counts has just been completed. */
#include "sim/burn/work.h"

#include <pthread.h>
#include <stdlib.h>

#define BATCHES 256
#define BATCH_NS 1000000u
#define BATCH_KERNELS_MAX 64u
#define MEASURE_NS 200000u
#define MEASURE_LOOPS 4000u
#define MEASURES 5

/* Launches with an event behind them. */
struct batch {
    CUevent event;
    uint64_t kernels;
};

struct lane {
    CUstream stream;
    CUgraphExec graph;
    struct batch batch[BATCHES];
    uint64_t first, next; /* batches in flight */
    uint64_t kernels;     /* in them */
};

/* The launching thread may be kept waiting in a call, so the counting thread looks itself. */
struct burn_worker {
    struct burn *burn;
    struct burn_worker *next;
    pthread_mutex_t lock; /* of what is in flight: `first`, `next` and `kernels` of the lanes */
    bool closed;
    uint64_t batch_launches, launch_kernels, ahead_kernels;
    uint64_t started_ns, launches;
    struct lane lane[BURN_STREAMS_MAX];
};

static void
work_launch_kernel(struct burn *burn, CUstream stream, uint64_t ns, uint64_t loops)
{
    void *parameters[] = { &ns, &loops };

    BURN_MUST(burn, cuLaunchKernel, burn->kernel, burn->blocks, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
}

uint64_t
bh_burn_measure(struct burn *burn)
{
    uint64_t loops = MEASURE_LOOPS;
    CUevent start, end;
    CUstream stream;
    float ms;

    BURN_MUST(burn, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    BURN_MUST(burn, cuEventCreate, &start, CU_EVENT_DEFAULT);
    BURN_MUST(burn, cuEventCreate, &end, CU_EVENT_DEFAULT);
    for (unsigned i = 0; i < MEASURES; i++) {
        uint64_t measured_ns;

        work_launch_kernel(burn, stream, MEASURE_NS, loops); /* the first of all is translated */
        BURN_MUST(burn, cuEventRecord, start, stream);
        work_launch_kernel(burn, stream, MEASURE_NS, loops);
        BURN_MUST(burn, cuEventRecord, end, stream);
        BURN_MUST(burn, cuEventSynchronize, end);
        BURN_MUST(burn, cuEventElapsedTime, &ms, start, end);
        measured_ns = (uint64_t)((double)ms * 1000000);
        if (measured_ns == 0)
            measured_ns = 1;
        loops = loops * MEASURE_NS / measured_ns;
        loops = loops == 0 ? 1 : loops;
    }
    BURN_MUST(burn, cuEventDestroy, start);
    BURN_MUST(burn, cuEventDestroy, end);
    BURN_MUST(burn, cuStreamDestroy, stream);
    return loops * 1000000 / MEASURE_NS;
}

static void
work_record_graph(struct burn *burn, struct lane *lane)
{
    CUgraph graph;

    BURN_MUST(burn, cuStreamBeginCapture, lane->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (uint64_t i = 0; i < burn->plan->graph; i++)
        work_launch_kernel(burn, lane->stream, burn->plan->kernel_ns, burn->loops);
    BURN_MUST(burn, cuStreamEndCapture, lane->stream, &graph);
    BURN_MUST(burn, cuGraphInstantiate, &lane->graph, graph, 0);
    BURN_MUST(burn, cuGraphDestroy, graph);
}

static void
work_open_lane(struct burn *burn, struct lane *lane)
{
    BURN_MUST(burn, cuStreamCreate, &lane->stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < BATCHES; i++)
        BURN_MUST(burn, cuEventCreate, &lane->batch[i].event, CU_EVENT_DISABLE_TIMING);
    if (burn->plan->graph > 0)
        work_record_graph(burn, lane);
}

/* What is in flight runs on. */
static void
work_close_lane(struct burn *burn, struct lane *lane)
{
    for (unsigned i = 0; i < BATCHES; i++)
        BURN_MUST(burn, cuEventDestroy, lane->batch[i].event);
    if (lane->graph != NULL)
        BURN_MUST(burn, cuGraphExecDestroy, lane->graph);
    BURN_MUST(burn, cuStreamDestroy, lane->stream);
}

static void
work_note_batch(struct burn *burn, struct lane *lane)
{
    uint64_t kernels = lane->batch[lane->first++ % BATCHES].kernels;

    lane->kernels -= kernels;
    burn->kernels += kernels;
}

static void
work_note_ended(struct burn *burn, struct lane *lane)
{
    while (lane->first < lane->next) {
        CUresult rc = burn->driver.cuEventQuery(lane->batch[lane->first % BATCHES].event);

        if (rc == CUDA_ERROR_NOT_READY)
            return;
        bh_burn_must(burn, "cuEventQuery", rc);
        work_note_batch(burn, lane);
    }
}

static void
work_note_all_ended(struct burn_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    for (uint64_t i = 0; i < worker->burn->plan->streams && !worker->closed; i++)
        work_note_ended(worker->burn, &worker->lane[i]);
    pthread_mutex_unlock(&worker->lock);
}

void
bh_burn_note(struct burn *burn)
{
    for (struct burn_worker *worker = burn->workers; worker != NULL; worker = worker->next)
        work_note_all_ended(worker);
}

void
bh_burn_forget(struct burn *burn)
{
    struct burn_worker *worker = burn->workers, *next;

    for (; worker != NULL; worker = next) {
        next = worker->next;
        pthread_mutex_destroy(&worker->lock);
        free(worker);
    }
    burn->workers = NULL;
}

/* With a rate, launches come at even distances. */
static void
work_wait_for_rate(struct burn_worker *worker)
{
    uint64_t rate = worker->burn->plan->rate;

    if (rate > 0)
        bh_burn_sleep_until(worker->started_ns + worker->launches * 1000000000u / rate);
    worker->launches++;
    worker->burn->launches++;
}

static void
work_launch_batch(struct burn_worker *worker, struct lane *lane)
{
    struct burn *burn = worker->burn;
    struct batch *batch = &lane->batch[lane->next % BATCHES];

    batch->kernels = 0;
    for (uint64_t i = 0; i < worker->batch_launches && !bh_burn_is_over(burn); i++) {
        work_wait_for_rate(worker);
        if (lane->graph != NULL)
            BURN_MUST(burn, cuGraphLaunch, lane->graph, lane->stream);
        else
            work_launch_kernel(burn, lane->stream, burn->plan->kernel_ns, burn->loops);
        batch->kernels += worker->launch_kernels;
    }
    BURN_MUST(burn, cuEventRecord, batch->event, lane->stream);
    pthread_mutex_lock(&worker->lock);
    lane->next++;
    lane->kernels += batch->kernels;
    pthread_mutex_unlock(&worker->lock);
}

static bool
work_is_full(struct burn_worker *worker, const struct lane *lane)
{
    bool full;

    pthread_mutex_lock(&worker->lock);
    full = lane->next - lane->first == BATCHES || lane->kernels >= worker->ahead_kernels;
    pthread_mutex_unlock(&worker->lock);
    return full;
}

/* True when anything was launched. */
static bool
work_fill_lanes(struct burn_worker *worker)
{
    bool launched = false;

    work_note_all_ended(worker);
    for (uint64_t i = 0; i < worker->burn->plan->streams; i++) {
        struct lane *lane = &worker->lane[i];

        if (work_is_full(worker, lane))
            continue;
        work_launch_batch(worker, lane);
        launched = true;
    }
    return launched;
}

static void
work_wait_for_first(struct burn_worker *worker)
{
    struct lane *lane = &worker->lane[0];
    CUevent event = NULL;

    pthread_mutex_lock(&worker->lock);
    if (lane->first < lane->next)
        event = lane->batch[lane->first % BATCHES].event;
    pthread_mutex_unlock(&worker->lock);
    if (event != NULL)
        BURN_MUST(worker->burn, cuEventSynchronize, event);
}

static void
work_plan_batches(struct burn_worker *worker)
{
    const struct burn_plan *plan = worker->burn->plan;
    uint64_t batch = BATCH_NS / plan->kernel_ns;

    worker->launch_kernels = plan->graph > 0 ? plan->graph : 1;
    worker->batch_launches = plan->graph > 0 || plan->rate > 0 || batch == 0 ? 1
                             : batch > BATCH_KERNELS_MAX                     ? BATCH_KERNELS_MAX
                                                                             : batch;
    worker->ahead_kernels = plan->ahead_ns / plan->kernel_ns / plan->streams;
    if (worker->ahead_kernels < 2 * worker->launch_kernels)
        worker->ahead_kernels = 2 * worker->launch_kernels;
}

/* It stays when its thread ends: the counting thread may be looking at it. */
static void
work_join(struct burn *burn, struct burn_worker *worker)
{
    worker->next = burn->workers;
    while (!atomic_compare_exchange_weak(&burn->workers, &worker->next, worker)) {
    }
}

void *
bh_burn_work(void *self)
{
    struct burn *burn = self;
    struct burn_worker *worker = calloc(1, sizeof(*worker));

    if (worker == NULL)
        bh_burn_must(burn, "calloc", CUDA_ERROR_OUT_OF_MEMORY);
    BURN_MUST(burn, cuCtxSetCurrent, burn->context);
    worker->burn = burn;
    pthread_mutex_init(&worker->lock, NULL);
    work_plan_batches(worker);
    for (uint64_t i = 0; i < burn->plan->streams; i++)
        work_open_lane(burn, &worker->lane[i]);
    work_join(burn, worker);
    worker->started_ns = bh_burn_now();
    while (!bh_burn_is_over(burn))
        if (!work_fill_lanes(worker))
            work_wait_for_first(worker);
    pthread_mutex_lock(&worker->lock);
    worker->closed = true;
    pthread_mutex_unlock(&worker->lock);
    for (uint64_t i = 0; i < burn->plan->streams; i++)
        work_close_lane(burn, &worker->lane[i]);
    return NULL;
}
