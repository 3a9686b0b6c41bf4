/* Work waits for its time slice, and a time slice ends when nothing is left on the device.
 *
 *   gate_test NULL_DRIVER LIBCUDA */
#include "base/test.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KERNEL(ns) ((CUfunction)(uintptr_t)(ns))

#define MS UINT64_C(1000000)

enum { OPEN = 1 * BH_SHARE_SLICE_STEP, OTHERS = 2 * BH_SHARE_SLICE_STEP | BH_SHARE_SHUT };

static CUresult
launch(uint64_t ns)
{
    return cuLaunchKernel(KERNEL(ns), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* ---- every kind of submission waits ---- */

static CUgraphExec
make_graph(void)
{
    CUgraphExec exec = NULL;
    CUgraph graph;

    if (cuGraphCreate(&graph, 0) == CUDA_SUCCESS)
        (void)cuGraphInstantiateWithFlags(&exec, graph, 0);
    return exec;
}

static CUresult
submit_graph(void)
{
    return cuGraphLaunch(make_graph(), NULL);
}

static CUresult
submit_kernel(void)
{
    return launch(1000);
}

static CUresult
submit_kernel_own(void)
{
    return cuLaunchKernel_ptsz(KERNEL(1000), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult
submit_ex(void)
{
    CUlaunchConfig config = { .gridDimX = 1 };

    return cuLaunchKernelEx(&config, KERNEL(1000), NULL, NULL);
}

static CUresult
submit_cooperative(void)
{
    return cuLaunchCooperativeKernel(KERNEL(1000), 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
}

static CUresult
submit_fill(void)
{
    return cuMemsetD8Async(0, 0, 2 << 20, NULL);
}

static CUresult
submit_small_fill(void)
{
    return cuMemsetD8Async(0, 0, 1 << 20, NULL);
}

/* In a capture nothing runs, so nothing waits: neither for a time slice nor for the capture. */
static CUresult
submit_captured(void)
{
    CUstream stream;
    CUgraph graph;
    CUresult rc = cuStreamCreate(&stream, 0);

    if (rc == CUDA_SUCCESS)
        rc = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (rc == CUDA_SUCCESS)
        rc = cuLaunchKernel(KERNEL(1), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    return rc == CUDA_SUCCESS ? cuStreamEndCapture(stream, &graph) : rc;
}

static const struct kind {
    const char *name;
    CUresult (*submit)(void);
    bool waits;
} kinds[] = {
    { "cuLaunchKernel", submit_kernel, true },
    { "cuLaunchKernel_ptsz", submit_kernel_own, true },
    { "cuLaunchKernelEx", submit_ex, true },
    { "cuLaunchCooperativeKernel", submit_cooperative, true },
    { "cuGraphLaunch", submit_graph, true },
    { "a fill of 2 MiB", submit_fill, true },
    { "a fill of 1 MiB", submit_small_fill, false },
    { "in a capture", submit_captured, false },
};

static int
submit_one(void *self)
{
    const struct kind *kind = self;

    BEGIN();
    GOOD(kind->submit());
    return 0;
}

static void
work_waits_for_its_time_slice(void **state)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct kind kind = kinds[i];
        pid_t pid;

        bh_sandbox_share(1, 512, 16);
        bh_sandbox_set_slice(0, OTHERS);
        pid = bh_sandbox_start(submit_one, &kind);
        if (kind.waits) {
            BH_CHECK(kind.name, bh_sandbox_received(BH_SHARE_WANT, 0));
            BH_CHECK_EQ(kind.name, bh_sandbox.received_slice[BH_SHARE_WANT], OTHERS);
            BH_CHECK_EQ(kind.name, bh_sandbox.world->launches, 0);
            bh_sandbox_set_slice(0, OPEN);
        }
        BH_CHECK_EQ(kind.name, bh_sandbox_wait(pid), 0);
        BH_CHECK_EQ(kind.name, bh_sandbox.world->launches, 1);
        BH_CHECK_EQ(kind.name, bh_sandbox.received[BH_SHARE_WANT], kind.waits);
    }
    BH_CHECK_DONE();
}

/* ---- time slices end ---- */

static void *
keep_launching(void *self)
{
    CUcontext context;

    if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return self;
    while (atomic_load(&bh_sandbox.world->fail_free) == 0)
        if (launch(20000) != CUDA_SUCCESS)
            return self;
        else
            usleep(20);
    return NULL;
}

static int
launch_in_threads(void *self)
{
    pthread_t thread[4];

    BEGIN();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, keep_launching, &bh_sandbox) == 0);
    for (int i = 0; i < 4; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        CHECK(bad == NULL);
    }
    return 0;
}

/* Thirty time slices, each ended while four threads submit: after DRAINED there is nothing on the
 * device, and nothing comes until the next time slice. */
static void
a_time_slice_ends_drained(void **state)
{
    uint32_t slice = OPEN;
    pid_t pid;

    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, slice);
    pid = bh_sandbox_start(launch_in_threads, NULL);
    for (int i = 0; i < 30; i++) {
        uint64_t launches = atomic_load(&bh_sandbox.world->launches);

        BH_CHECK("work goes on", bh_sandbox_passes(&bh_sandbox.world->launches, launches + 20));
        slice += BH_SHARE_SLICE_STEP;
        bh_sandbox_set_slice(0, slice | BH_SHARE_SHUT);
        BH_CHECK("drained", bh_sandbox_received(BH_SHARE_DRAINED, (uint32_t)i));
        BH_CHECK_EQ("of this time slice", bh_sandbox.received_slice[BH_SHARE_DRAINED], slice | BH_SHARE_SHUT);
        BH_CHECK("nothing is left", atomic_load(&bh_sandbox.world->busy_until_ns[0])
                                        <= bh_sandbox.received_ns[BH_SHARE_DRAINED]);
        atomic_store(&bh_sandbox.world->closed, 1);
        usleep(2000);
        BH_CHECK_EQ("nothing came", bh_sandbox.world->launched_late, 0);
        atomic_store(&bh_sandbox.world->closed, 0);
        slice += BH_SHARE_SLICE_STEP;
        bh_sandbox_set_slice(0, i % 2 == 0 ? slice : slice | BH_SHARE_CONTENDED);
    }
    atomic_store(&bh_sandbox.world->fail_free, 1);
    BH_CHECK_EQ("ended", bh_sandbox_wait(pid), 0);
    BH_CHECK_DONE();
}

/* ---- while others wait ---- */

static int
launch_long(void *self)
{
    BEGIN();
    for (int i = 0; i < 150; i++)
        GOOD(launch(*(const uint64_t *)self));
    atomic_store(&bh_sandbox.world->closed, 1);
    while (atomic_load(&bh_sandbox.world->fail_free) == 0)
        usleep(1000);
    return 0;
}

/* Little is submitted ahead, and IDLE comes soon after the last of it is done. */
static void
little_goes_ahead(void **state)
{
    static const uint64_t kernels[] = { 50000, 1000000 };

    for (size_t i = 0; i < COUNT(kernels); i++) {
        uint64_t kernel = kernels[i], most = 0, done;
        pid_t pid;

        bh_sandbox_share(1, 512, 16);
        bh_sandbox_set_slice(0, OPEN | BH_SHARE_CONTENDED);
        pid = bh_sandbox_start(launch_long, &kernel);
        while (atomic_load(&bh_sandbox.world->closed) == 0) {
            /* The clock last: time that passes between the two must not count as work ahead. */
            uint64_t busy = atomic_load(&bh_sandbox.world->busy_until_ns[0]), now = bh_sandbox_now_ns();

            /* The first ones are not known yet. */
            if (atomic_load(&bh_sandbox.world->launches) > 30 && busy > now && busy - now > most)
                most = busy - now;
            usleep(100);
        }
        BH_CHECK("a few ms and a kernel", most <= 8000000 + kernel);
        done = atomic_load(&bh_sandbox.world->busy_until_ns[0]);
        BH_CHECK("idle when it is", bh_sandbox_passes(&bh_sandbox.received_ns[BH_SHARE_IDLE], done));
        BH_CHECK_EQ("of this time slice", bh_sandbox.received_slice[BH_SHARE_IDLE],
                    OPEN | BH_SHARE_CONTENDED);
        atomic_store(&bh_sandbox.world->fail_free, 1);
        BH_CHECK_EQ("ended", bh_sandbox_wait(pid), 0);
    }
    BH_CHECK_DONE();
}

/* ---- time slices with an end ---- */

static int
launch_on(void *self)
{
    BEGIN();
    while (atomic_load(&bh_sandbox.world->fail_free) == 0)
        GOOD(launch(*(const uint64_t *)self));
    return 0;
}

static void
stop(const char *name, pid_t pid)
{
    atomic_store(&bh_sandbox.world->fail_free, 1);
    bh_sandbox_set_slice(0, 1000 * BH_SHARE_SLICE_STEP);
    BH_CHECK_EQ(name, bh_sandbox_wait(pid), 0);
}

struct end_case {
    const char *name;
    uint64_t kernel_ns, left_ns;
    uint64_t launches; /* at least */
};

/* Whether its launches lie as near to the end of the time slice as they can.  One that is kept waiting by
 * the machine launches late, and fewer: what passed from its start to the end of its work and was no
 * work is `ret_late_ns`. */
static bool
ends_near(const struct end_case *one, uint64_t *ret_late_ns)
{
    uint64_t kernel = one->kernel_ns, turned, before, launches, busy;
    uint32_t slice = OPEN | BH_SHARE_CONTENDED;
    bool near;
    pid_t pid;

    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, slice);
    pid = bh_sandbox_start(launch_on, &kernel);
    BH_CHECK(one->name, bh_sandbox_passes(&bh_sandbox.world->launches, 8)); /* it is known now */
    bh_sandbox_set_slice(0, OTHERS);
    BH_CHECK(one->name, bh_sandbox_received(BH_SHARE_DRAINED, 0));
    before = atomic_load(&bh_sandbox.world->launches);
    turned = bh_sandbox_now_ns();
    slice += 2 * BH_SHARE_SLICE_STEP;
    bh_sandbox_set_slice_until(0, slice, turned + one->left_ns);
    near = bh_sandbox_received(BH_SHARE_DRAINED, 1); /* a second after the end it is ignored */
    if (near)
        BH_CHECK_EQ(one->name, bh_sandbox.received_slice[BH_SHARE_DRAINED], slice);
    launches = atomic_load(&bh_sandbox.world->launches) - before;
    busy = atomic_load(&bh_sandbox.world->busy_until_ns[0]);
    *ret_late_ns = busy - turned - launches * kernel;
    if (near) {
        BH_CHECK(one->name, bh_sandbox.received_ns[BH_SHARE_DRAINED] >= busy);
        BH_CHECK(one->name, launches >= 1);
        if (one->left_ns < kernel / 2)
            BH_CHECK_EQ(one->name, launches, 1);
        else
            near = launches >= one->launches && busy <= turned + one->left_ns + kernel;
        usleep(3000);
        BH_CHECK_EQ(one->name, atomic_load(&bh_sandbox.world->launches), before + launches);
    }
    before += launches;
    bh_sandbox_set_slice_until(0, slice + BH_SHARE_SLICE_STEP, bh_sandbox_now_ns() + 20 * MS);
    BH_CHECK(one->name, bh_sandbox_passes(&bh_sandbox.world->launches, before)); /* another end */
    stop(one->name, pid);
    return near;
}

/* What still goes is what brings its work nearest to the end: then it is finished, of itself, and
 * nothing comes before the next time slice.  One goes in any time slice, however long it is. */
static void
work_ends_near_the_end_of_its_time_slice(void **state)
{
    enum { TRIES = 100 };
    static const struct end_case cases[] = {
        { "one in any case", 10 * MS, 1 * MS, 1 },
        { "though it were over", 10 * MS, 0, 1 },
        { "several", 10 * MS, 42 * MS, 1 },
        { "short ones", MS / 2, 15 * MS, 4 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bool near = false, late = true;

        /* Only where it was on time is it to blame. */
        for (int k = 0; k < TRIES && !near && late; k++) {
            uint64_t late_ns;

            near = ends_near(&cases[i], &late_ns);
            late = late_ns > cases[i].kernel_ns / 4;
        }
        BH_CHECK(cases[i].name, near);
    }
    BH_CHECK_DONE();
}

/* One that launches a kernel that is known, and then a new one. */
static int
launch_another(void *self)
{
    BEGIN();
    for (int i = 0; i < 8; i++)
        GOOD(launch(2 * MS));
    atomic_store(&bh_sandbox.world->closed, 1);
    while (atomic_load(&bh_sandbox.world->fail_free) == 0)
        GOOD(launch(*(const uint64_t *)self));
    return 0;
}

/* With an end one of the same goes ahead of another, so that the device need not wait; without
 * one, or with one that is long past, no long one does; of what is unknown never more than three. */
static void
how_much_goes_ahead(void **state)
{
    static const struct {
        const char *name;
        int64_t end_ms; /* 0: none; from now */
        uint64_t kernel_ns, least_ns, most_ns;
    } cases[] = {
        { "no end", 0, 10 * MS, 0, 10 * MS },
        { "long past", -2000, 10 * MS, 0, 10 * MS },
        { "an end", 3600000, 10 * MS, 12 * MS, 20 * MS },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t kernel = cases[i].kernel_ns, most = 0, from, patience;
        pid_t pid;

        bh_sandbox_share(1, 512, 16);
        bh_sandbox_set_slice_until(
            0, OPEN | BH_SHARE_CONTENDED,
            cases[i].end_ms == 0 ? 0 : bh_sandbox_now_ns() + (uint64_t)(cases[i].end_ms * (int64_t)MS));
        pid = bh_sandbox_start(launch_another, &kernel);
        BH_CHECK(cases[i].name, bh_sandbox_passes(&bh_sandbox.world->launches, 16));
        from = atomic_load(&bh_sandbox.world->launches);
        for (patience = bh_sandbox_now_ns() + 30000 * MS;
             atomic_load(&bh_sandbox.world->launches) < from + 8
             || (most < cases[i].least_ns && bh_sandbox_now_ns() < patience);) {
            uint64_t busy = atomic_load(&bh_sandbox.world->busy_until_ns[0]), now = bh_sandbox_now_ns();

            if (busy > now && busy - now > most)
                most = busy - now;
            usleep(100);
        }
        BH_CHECK(cases[i].name, most >= cases[i].least_ns && most <= cases[i].most_ns);
        BH_CHECK_EQ(cases[i].name, bh_sandbox.received[BH_SHARE_DRAINED], 0);
        stop(cases[i].name, pid);
    }
    BH_CHECK_DONE();
}

/* What runs on one device may wait for what would have come on another: a time slice on several is kept
 * to its end. */
static void
two_devices_are_not_finished_early(void **state)
{
    uint64_t kernel = 10 * MS;
    pid_t pid;

    bh_sandbox_share(2, 512, 16);
    bh_sandbox_set_slice_until(0, OPEN | BH_SHARE_CONTENDED, bh_sandbox_now_ns() + 1 * MS);
    pid = bh_sandbox_start(launch_on, &kernel);
    BH_CHECK("goes on", bh_sandbox_passes(&bh_sandbox.world->launches, 4));
    BH_CHECK_EQ("not sent", bh_sandbox.received[BH_SHARE_DRAINED], 0);
    stop("ended", pid);
    BH_CHECK_DONE();
}

/* ---- messages beside the time slice's end ---- */

static int
work_twice(void *self)
{
    BEGIN();
    for (unsigned i = 1; i <= 2; i++) {
        GOOD(launch(1000));
        CHECK(bh_sandbox_passes(&bh_sandbox.world->launches, i - 1));
        while (atomic_load(&bh_sandbox.world->closed) < i) /* the test has received IDLE */
            usleep(200);
    }
    return 0;
}

/* In an open time slice, too: who ends it waits for those that it knows to have work.  And who
 * said that it is idle takes it back with the next submission. */
static void
a_process_with_work_wants(void **state)
{
    struct kind kind = kinds[0];
    pid_t pid;

    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, OPEN);
    BH_CHECK_EQ("open", bh_sandbox_run(submit_one, &kind), 0);
    BH_CHECK("first", bh_sandbox_received(BH_SHARE_WANT, 0));
    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, OPEN | BH_SHARE_CONTENDED);
    pid = bh_sandbox_start(work_twice, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        BH_CHECK("idle", bh_sandbox_received(BH_SHARE_IDLE, i));
        BH_CHECK_EQ("sent", bh_sandbox.received[BH_SHARE_WANT], i + 1);
        atomic_store(&bh_sandbox.world->closed, i + 1);
    }
    BH_CHECK_EQ("twice", bh_sandbox_wait(pid), 0);
    BH_CHECK_DONE();
}

/* ---- bulkhead-share does not come back ---- */

static void
without_a_server_no_time_slice_is_finished(void **state)
{
    uint64_t kernel = 10 * MS, before;
    pid_t pid;

    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, OPEN | BH_SHARE_CONTENDED);
    pid = bh_sandbox_start(launch_on, &kernel);
    BH_CHECK("begun", bh_sandbox_passes(&bh_sandbox.world->launches, 8));
    bh_sandbox_set_slice_until(0, (OPEN + BH_SHARE_SLICE_STEP) | BH_SHARE_CONTENDED,
                               bh_sandbox_now_ns() + 1 * MS);
    BH_CHECK("finished", bh_sandbox_received(BH_SHARE_DRAINED, 0));
    before = atomic_load(&bh_sandbox.world->launches);
    bh_sandbox_restart_server('n');
    BH_CHECK("goes on", bh_sandbox_passes(&bh_sandbox.world->launches, before + 2));
    stop("ended", pid);
    bh_sandbox_restart_server('o');
    BH_CHECK_DONE();
}

static void
without_a_server_work_goes_on(void **state)
{
    struct kind kind = kinds[0];
    uint64_t from;
    pid_t pid;

    bh_sandbox_share(1, 512, 16);
    bh_sandbox_set_slice(0, OTHERS);
    pid = bh_sandbox_start(submit_one, &kind);
    BH_CHECK("wanted", bh_sandbox_received(BH_SHARE_WANT, 0));
    from = bh_sandbox_now_ns();
    bh_sandbox_restart_server('n');
    BH_CHECK_EQ("freely", bh_sandbox_wait(pid), 0);
    BH_CHECK("not at once", bh_sandbox_now_ns() - from > UINT64_C(500000000));
    BH_CHECK_EQ("all the same", bh_sandbox.world->launches, 1);
    bh_sandbox_restart_server('o');
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(work_waits_for_its_time_slice),
    cmocka_unit_test(a_time_slice_ends_drained),
    cmocka_unit_test(little_goes_ahead),
    cmocka_unit_test(work_ends_near_the_end_of_its_time_slice),
    cmocka_unit_test(how_much_goes_ahead),
    cmocka_unit_test(two_devices_are_not_finished_early),
    cmocka_unit_test(a_process_with_work_wants),
    cmocka_unit_test(without_a_server_no_time_slice_is_finished),
    cmocka_unit_test(without_a_server_work_goes_on),
};

BH_SANDBOX_MAIN(tests)
