/* Small allocations: each block of 2 MiB that the driver holds is reserved, and no other.
 *
 *   small_test NULL_DRIVER */
#include "base/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 512, CONTEXT = 32 };

static void
share(unsigned devices, uint32_t cap)
{
    bh_sandbox_share(devices, cap, CONTEXT);
    bh_sandbox.world->context_bytes = CONTEXT * BH_SHARE_UNIT_BYTES;
}

/* What is reserved is what the driver has: so many units, and the contexts. */
static bool
holds(uint32_t contexts, uint32_t units)
{
    uint64_t used = bh_sandbox_used(0) * BH_SHARE_UNIT_BYTES;

    if (used != bh_sandbox.world->used[0] || bh_sandbox_used(0) != contexts * CONTEXT + units)
        fprintf(stderr, "%u units, the driver has %.1f\n", bh_sandbox_used(0) - contexts * CONTEXT,
                (double)bh_sandbox.world->used[0] / BH_SHARE_UNIT_BYTES - contexts * CONTEXT);
    return used == bh_sandbox.world->used[0] && bh_sandbox_used(0) == contexts * CONTEXT + units;
}

/* ---- they share units; the last one of the cap is what one asks for before ---- */

static const struct full {
    const char *name;
    uint64_t bytes;
    unsigned count; /* two units full, and the first of another */
} fulls[] = {
    { "1,024 each", 1000, 2 * 2048 + 1 },
    { "grains", 512, 2 * 4096 + 1 },
    { "half a MiB", MIB / 2, 2 * 4 + 1 },
    { "all but a grain of 1 MiB", MIB - 512, 2 * 2 + 1 },
    { "a part of the last grain", MIB - 511, 2 * 2 + 1 },
    { "all but a byte", MIB - 1, 2 * 2 + 1 },
    { "1 MiB: it is not shared", MIB, 3 },
};

static int
take_small(void *self)
{
    static CUdeviceptr at[3 * 4096];
    const struct full *full = self;
    unsigned count = 0;

    BEGIN();
    while (count < COUNT(at) && cuMemAlloc_v2(&at[count], full->bytes) == CUDA_SUCCESS)
        count++;
    CHECK(count == full->count);
    CHECK(holds(1, 3));
    while (count > 0)
        GOOD(cuMemFree_v2(at[--count]));
    CHECK(holds(1, 0));
    return 0;
}

static void
they_share_units(void **state)
{
    for (size_t i = 0; i < COUNT(fulls); i++) {
        struct full full = fulls[i];

        share(1, CONTEXT + 3);
        BH_CHECK_EQ(full.name, bh_sandbox_run(take_small, &full), 0);
        BH_CHECK_EQ(full.name, bh_sandbox.world->most[0], (CONTEXT + 3) * BH_SHARE_UNIT_BYTES);
    }
    BH_CHECK_DONE();
}

/* ---- what the driver pads is asked before ---- */

static int
take_padded(void *self)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, 128, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
    CUdeviceptr at, rows = 0;
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    size_t pitch;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 2 * MIB));
    /* Of each the elements fit into the unit that is left, and the padding does not. */
    CHECK(cuMemAllocPitch_v2(&rows, &pitch, 100, 4096, 16) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuArray3DCreate_v2(&array, &shape) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMipmappedArrayCreate(&mipmap, &shape, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(holds(1, 1));
    GOOD(cuMemFree_v2(at));
    GOOD(cuMemAllocPitch_v2(&rows, &pitch, 100, 4096, 16));
    CHECK(pitch == 1024 && holds(1, 2));
    GOOD(cuMemFree_v2(rows));
    GOOD(cuArray3DCreate_v2(&array, &shape));
    CHECK(holds(1, 2));
    GOOD(cuArrayDestroy(array));
    GOOD(cuMipmappedArrayCreate(&mipmap, &shape, 1));
    CHECK(holds(1, 2));
    GOOD(cuMipmappedArrayDestroy(mipmap));
    CHECK(holds(1, 0));
    return 0;
}

static void
padding_is_known_before(void **state)
{
    share(1, CONTEXT + 2);
    BH_CHECK_EQ("padded", bh_sandbox_run(take_padded, NULL), 0);
    BH_CHECK_EQ("most", bh_sandbox.world->most[0], (CONTEXT + 2) * BH_SHARE_UNIT_BYTES);
    BH_CHECK_DONE();
}

/* ---- nodes of a graph: it is not known whether they share ---- */

enum { STEP = 16, NODES = STEP + 1 }; /* units in which their memory is reserved */

static int
launch_nodes(void *self)
{
    CUDA_MEM_ALLOC_NODE_PARAMS node = { .poolProps.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                        .bytesize = 600000 };
    CUgraphExec exec;
    CUgraph graph;
    CUgraphNode at;
    CUdeviceptr other;

    BEGIN();
    GOOD(cuMemAlloc_v2(&other, STEP * BH_SHARE_UNIT_BYTES));
    GOOD(cuGraphCreate(&graph, 0));
    for (int i = 0; i < NODES; i++)
        GOOD(cuGraphAddMemAllocNode(&at, graph, NULL, 0, &node));
    GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, NULL) == CUDA_ERROR_OUT_OF_MEMORY); /* a step is left */
    CHECK(holds(1, STEP));
    GOOD(cuMemFree_v2(other));
    GOOD(cuGraphLaunch(exec, NULL));
    CHECK(holds(1, NODES));
    return 0;
}

static void
nodes_of_graphs_are_paid_for_each(void **state)
{
    share(1, CONTEXT + 2 * STEP);
    BH_CHECK_EQ("graph", bh_sandbox_run(launch_nodes, NULL), 0);
    BH_CHECK_EQ("most", bh_sandbox.world->most[0], (CONTEXT + NODES) * BH_SHARE_UNIT_BYTES);
    BH_CHECK_DONE();
}

/* ---- a block that is not full counts, too ---- */

enum { BLOCKS = 4, PARTS = 4 * BLOCKS };

static int
leave_holes(void *self)
{
    CUdeviceptr at[PARTS], one;

    BEGIN();
    for (int i = 0; i < PARTS; i++)
        GOOD(cuMemAlloc_v2(&at[i], MIB / 2));
    CHECK(holds(1, BLOCKS));
    for (int i = 0; i < PARTS; i++)
        if (i % 4 != 0)
            GOOD(cuMemFree_v2(at[i]));
    CHECK(holds(1, BLOCKS)); /* a quarter of each */
    GOOD(cuMemAlloc_v2(&one, MIB - 1));
    CHECK(holds(1, BLOCKS));
    GOOD(cuMemFree_v2(at[0]));
    CHECK(holds(1, BLOCKS)); /* the one that came is there */
    bh_sandbox.world->fail_free = 1;
    CHECK(cuMemFree_v2(one) != CUDA_SUCCESS);
    CHECK(holds(1, BLOCKS));
    GOOD(cuMemFree_v2(one));
    CHECK(holds(1, BLOCKS - 1));
    bh_sandbox.world->fail_alloc = 1;
    CHECK(cuMemAlloc_v2(&one, 700) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(holds(1, BLOCKS - 1));
    for (int i = 4; i < PARTS; i += 4)
        GOOD(cuMemFree_v2(at[i]));
    CHECK(holds(1, 0));
    return 0;
}

static void
blocks_with_holes_count_whole(void **state)
{
    share(1, CAP);
    BH_CHECK_EQ("holes", bh_sandbox_run(leave_holes, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- contexts ---- */

static int
in_contexts(void *self)
{
    CUcontext first, context[3];
    CUdeviceptr at, managed, rows;
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR shape = { 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
    size_t pitch;

    BEGIN();
    GOOD(cuCtxGetCurrent(&first));
    GOOD(cuMemAlloc_v2(&at, 512));
    for (int i = 0; i < 3; i++) {
        GOOD(cuCtxCreate_v2(&context[i], 0, 0));
        GOOD(cuMemAlloc_v2(&at, 512));
        GOOD(cuMemAllocManaged(&managed, 100000, 1));
        GOOD(cuMemAllocPitch_v2(&rows, &pitch, 100, 20, 4));
        CHECK(holds(i + 2, i + 2));
    }
    GOOD(cuArray3DCreate_v2(&array, &shape)); /* it is not known where: a unit of its own */
    CHECK(holds(4, 5));
    GOOD(cuArrayDestroy(array));
    GOOD(cuMemFree_v2(rows));
    GOOD(cuMemFree_v2(managed));
    CHECK(holds(4, 4));
    GOOD(cuMemFree_v2(at));
    CHECK(holds(4, 3));
    for (int i = 2; i >= 0; i--) { /* and what is in it */
        GOOD(cuCtxDestroy_v2(context[i]));
        CHECK(holds(i + 1, i == 2 ? 3 : i + 1));
    }
    GOOD(cuCtxSetCurrent(first));
    GOOD(cuDevicePrimaryCtxReset_v2(0));
    CHECK(holds(0, 0));
    return 0;
}

static void
contexts_have_blocks_of_their_own(void **state)
{
    share(1, CAP);
    BH_CHECK_EQ("contexts", bh_sandbox_run(in_contexts, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- the first and the last in a block, at once ---- */

struct churner {
    int device;
    CUcontext context;
};

static CUresult
churn_once(unsigned i, CUdeviceptr *held)
{
    CUdeviceptr at;
    CUresult rc = cuMemAlloc_v2(&at, i % 3 == 0 ? MIB - 1 : 700 * (i % 7 + 1));

    if (rc != CUDA_SUCCESS)
        return rc == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : rc;
    if (*held != 0)
        rc = cuMemFree_v2(*held);
    *held = at;
    if (i % 2 != 0 || rc != CUDA_SUCCESS)
        return rc;
    *held = 0;
    return cuMemFree_v2(at);
}

static void *
churn(void *self)
{
    struct churner *churner = self;
    CUdeviceptr held = 0;

    if (cuCtxSetCurrent(churner->context) != CUDA_SUCCESS)
        return self;
    for (unsigned i = 0; i < 8000; i++)
        if (churn_once(i, &held) != CUDA_SUCCESS)
            return self;
    return held == 0 || cuMemFree_v2(held) == CUDA_SUCCESS ? NULL : self;
}

/* Two contexts on each of two devices: the driver gives a block out anew, to another context
 * or device, while its former owner still counts it. */
static int
churn_all(void *self)
{
    struct churner churners[4];
    pthread_t thread[4];

    BEGIN();
    for (int i = 0; i < 4; i++) {
        churners[i].device = i / 2;
        GOOD(cuCtxCreate_v2(&churners[i].context, 0, i / 2));
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, churn, &churners[i]) == 0);
    for (int i = 0; i < 4; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        CHECK(bad == NULL);
    }
    CHECK(holds(3, 0));
    CHECK(bh_sandbox_used(1) == 2 * CONTEXT);
    return 0;
}

static void
blocks_change_hands(void **state)
{
    share(2, 3 * CONTEXT + 3);
    BH_CHECK_EQ("changing", bh_sandbox_run(churn_all, NULL), 0);
    BH_CHECK("never more", bh_sandbox.world->most[0] <= (3 * CONTEXT + 3) * BH_SHARE_UNIT_BYTES);
    BH_CHECK("nor there", bh_sandbox.world->most[1] <= (2 * CONTEXT + 4) * BH_SHARE_UNIT_BYTES);
    BH_CHECK_DONE();
}

/* ---- signals, forks ---- */

static void
on_signal(int number)
{
    CUdeviceptr at;

    if (cuMemAlloc_v2(&at, 3000) == CUDA_SUCCESS)
        (void)cuMemFree_v2(at);
}

static int
in_fork(void *self)
{
    CUdeviceptr at;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 700)); /* a block of the child's own */
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 2);
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 1);
    return 0;
}

static int
interrupted(void *self)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    CUdeviceptr at;

    sigaction(SIGUSR1, &action, NULL);
    BEGIN();
    for (int i = 0; i < 2000; i++) {
        GOOD(cuMemAlloc_v2(&at, 3000));
        raise(SIGUSR1);
        GOOD(cuMemFree_v2(at));
        raise(SIGUSR1);
    }
    CHECK(holds(1, 0));
    GOOD(cuMemAlloc_v2(&at, 3000));
    CHECK(bh_sandbox_run(in_fork, NULL) == 0);
    CHECK(bh_sandbox_comes_to(0, CONTEXT + 1));
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static void
handlers_and_forks_count_their_own(void **state)
{
    share(1, CAP);
    BH_CHECK_EQ("signals", bh_sandbox_run(interrupted, NULL), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(they_share_units),
    cmocka_unit_test(padding_is_known_before),
    cmocka_unit_test(nodes_of_graphs_are_paid_for_each),
    cmocka_unit_test(blocks_with_holes_count_whole),
    cmocka_unit_test(contexts_have_blocks_of_their_own),
    cmocka_unit_test(blocks_change_hands),
    cmocka_unit_test(handlers_and_forks_count_their_own),
};

BH_SANDBOX_MAIN(tests)
