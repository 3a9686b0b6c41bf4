/* Random traffic of ten processes of four threads of two contexts each, held against what the driver has.
 *
 *   oracle_test NULL_DRIVER LIBCUDA [OPERATIONS [SEED]]
 *
 * The null driver counts what the device holds, contexts included, and puts small allocations of a context
 * into chunks of 2 MiB of its own, which random frees leave full of holes.  It is never more than the cap,
 * and whenever all threads rest the pages say the same as the driver, to the unit.  Calls fail at random
 * meanwhile. */
#include "base/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/num.h"
#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

enum { PROCESSES = 10, THREADS = 4, ROUNDS = 4, LIVE = 24, CAP = 600, CONTEXT = 4 };

static uint64_t operations = 60000, seed = 1;

enum kind { LINEAR, MANAGED, PITCH, ASYNC, POOLED, OBJECT, MAPPED, ARRAY, CONTEXTS, KINDS };

struct thing {
    enum kind kind;
    uint64_t what, size, references;
};

/* Threads of a process rest together with all others at the end of a round. */
struct rest {
    _Atomic uint32_t begun, resting, round;
};

static struct rest *
rest_of(void)
{
    return (struct rest *)(void *)((char *)bh_sandbox.world + SANDBOX_BEHIND_WORLD);
}

struct player {
    uint64_t random, steps;
    CUmemoryPool pool;
    CUcontext contexts[2];
    unsigned count;
    struct thing live[LIVE];
};

static uint64_t
draw(struct player *player, uint64_t below)
{
    player->random ^= player->random << 13;
    player->random ^= player->random >> 7;
    player->random ^= player->random << 17;
    return player->random % below;
}

/* ---- taking ---- */

static CUresult
take_mapped(struct thing *thing)
{
    CUmemAllocationProp prop = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    CUresult rc;

    thing->size = (thing->size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
    rc = cuMemCreate(&handle, thing->size, &prop, 0);
    thing->what = handle;
    if (rc != CUDA_SUCCESS || thing->kind == OBJECT)
        return rc;
    (void)cuMemAddressReserve(&at, thing->size, 0, 0, 0);
    thing->what = at;
    rc = cuMemMap(at, thing->size, 0, handle, 0);
    (void)cuMemRelease(handle);
    return rc;
}

static CUresult
take_array(struct thing *thing)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, thing->size / 16384 + 1, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
    CUarray array;
    CUresult rc = cuArray3DCreate_v2(&array, &shape);

    thing->what = (uintptr_t)array;
    return rc;
}

static CUresult
take(struct player *player, struct thing *thing)
{
    CUdeviceptr at = 0;
    CUcontext context, popped;
    CUresult rc;
    size_t pitch;

    switch (thing->kind) {
    case OBJECT:
    case MAPPED:
        return take_mapped(thing);
    case ARRAY:
        return take_array(thing);
    case CONTEXTS:
        rc = cuCtxCreate_v2(&context, 0, 0);
        thing->what = (uintptr_t)context;
        if (rc == CUDA_SUCCESS)
            (void)cuCtxPopCurrent_v2(&popped);
        return rc;
    case MANAGED:
        rc = cuMemAllocManaged(&at, thing->size, 1);
        break;
    case PITCH:
        rc = cuMemAllocPitch_v2(&at, &pitch, thing->size / 16 + 1, 16, 16);
        break;
    case ASYNC:
        rc = cuMemAllocAsync(&at, thing->size, NULL);
        break;
    case POOLED:
        rc = cuMemAllocFromPoolAsync(&at, thing->size, player->pool, NULL);
        break;
    case LINEAR:
    case KINDS:
    default:
        rc = cuMemAlloc_v2(&at, thing->size);
    }
    thing->what = at;
    return rc;
}

/* ---- giving ---- */

static CUresult
give(struct player *player, const struct thing *thing)
{
    switch (thing->kind) {
    case OBJECT:
        return cuMemRelease(thing->what);
    case MAPPED:
        return cuMemUnmap(thing->what, thing->size);
    case ARRAY:
        return cuArrayDestroy((CUarray)(uintptr_t)thing->what);
    case CONTEXTS: /* nothing was allocated in it */
        return cuCtxDestroy_v2((CUcontext)(uintptr_t)thing->what);
    case ASYNC:
    case POOLED:
        if (draw(player, 2) == 0)
            return cuMemFreeAsync(thing->what, NULL);
        return cuMemFree_v2(thing->what);
    case LINEAR:
    case MANAGED:
    case PITCH:
    case KINDS:
    default:
        return cuMemFree_v2(thing->what);
    }
}

/* A third each: small, up to half a MiB, and up to 9 MiB. */
static uint64_t
draw_size(struct player *player)
{
    static const uint64_t most[] = { 9000, MIB / 2, 9 * MIB };

    return draw(player, most[draw(player, 3)]) + 1;
}

static bool
play_once(struct player *player)
{
    struct thing *thing;
    CUresult rc;

    if (draw(player, 200) == 0)
        return cuCtxSynchronize() == CUDA_SUCCESS;
    if (player->count < LIVE && draw(player, 2) == 0) {
        thing = &player->live[player->count];
        thing->kind = (enum kind)draw(player, KINDS - 1);
        if (draw(player, 500) == 0)
            thing->kind = CONTEXTS;
        thing->size = draw_size(player);
        (void)cuCtxSetCurrent(player->contexts[draw(player, 2)]);
        rc = take(player, thing);
        player->count += rc == CUDA_SUCCESS;
        return rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (player->count == 0)
        return true;
    thing = &player->live[draw(player, player->count)];
    rc = give(player, thing);
    if (rc == CUDA_SUCCESS)
        *thing = player->live[--player->count];
    return rc == CUDA_SUCCESS || rc == CUDA_ERROR_INVALID_VALUE; /* it was made to fail */
}

static void *
play(void *self)
{
    struct player *player = self;
    struct rest *rest = rest_of();

    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < player->steps; i++)
            if (!play_once(player))
                return self;
        if (cuCtxSynchronize() != CUDA_SUCCESS)
            return self;
        (void)cuMemPoolTrimTo(player->pool, 0);
        atomic_fetch_add(&rest->resting, 1);
        while (atomic_load(&rest->round) == round)
            usleep(300);
    }
    return NULL;
}

static int
play_process(void *self)
{
    static struct player players[THREADS];
    CUmemPoolProps props = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    pthread_t thread[THREADS];
    CUcontext primary;

    BEGIN();
    GOOD(cuCtxGetCurrent(&primary));
    for (unsigned i = 0; i < THREADS; i++) {
        players[i].contexts[0] = primary;
        GOOD(cuCtxCreate_v2(&players[i].contexts[1], 0, 0));
    }
    atomic_fetch_add(&rest_of()->begun, 1);
    while (atomic_load(&rest_of()->begun) < PROCESSES) /* all have their contexts */
        usleep(300);
    for (unsigned i = 0; i < THREADS; i++) {
        players[i].random =
            (seed * 1000 + *(const uint64_t *)self * THREADS + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        players[i].steps = operations / (PROCESSES * THREADS * ROUNDS) + 1;
        GOOD(cuMemPoolCreate(&players[i].pool, &props));
        CHECK(pthread_create(&thread[i], NULL, play, &players[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        CHECK(bad == NULL);
    }
    return 0;
}

/* ---- the test ---- */

/* All threads rest: what the driver holds is what is reserved. */
static void
compare(void)
{
    BH_CHECK_EQ("the driver's count", bh_sandbox_used(0) * BH_SHARE_UNIT_BYTES,
                atomic_load(&bh_sandbox.world->used[0]));
}

static void
the_pages_hold_what_the_driver_has(void **state)
{
    struct rest *rest;
    pid_t pid[PROCESSES];
    uint64_t number[PROCESSES], most, cap = CAP * BH_SHARE_UNIT_BYTES;

    bh_sandbox_share(1, CAP, CONTEXT);
    bh_sandbox.world->context_bytes = CONTEXT * BH_SHARE_UNIT_BYTES;
    rest = rest_of();
    *rest = (struct rest){ 0 };
    for (uint64_t i = 0; i < PROCESSES; i++) {
        number[i] = i;
        pid[i] = bh_sandbox_start(play_process, &number[i]);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        while (atomic_load(&rest->resting) < (round + 1) * PROCESSES * THREADS
               && bh_sandbox_alive(pid, PROCESSES)) {
            atomic_store(&bh_sandbox.world->fail_alloc, 2);
            atomic_store(&bh_sandbox.world->fail_free, 2);
            usleep(500);
        }
        atomic_store(&bh_sandbox.world->fail_alloc, 0);
        atomic_store(&bh_sandbox.world->fail_free, 0);
        compare();
        atomic_fetch_add(&rest->round, 1);
    }
    for (unsigned i = 0; i < PROCESSES; i++)
        BH_CHECK_EQ("a process", bh_sandbox_wait(pid[i]), 0);
    most = atomic_load(&bh_sandbox.world->most[0]);
    BH_CHECK_EQ("beyond the cap", most > cap ? most - cap : 0, 0);
    bh_sandbox_emptied();
    BH_CHECK_EQ("nothing is left", bh_sandbox_used(0), 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pages_hold_what_the_driver_has),
    };
    struct bh_err err;

    if (argc < 3)
        return 2;
    if ((argc > 3 && bh_parse_u64(argv[3], &operations, &err) != BH_OK)
        || (argc > 4 && bh_parse_u64(argv[4], &seed, &err) != BH_OK))
        return 2;
    if (!bh_sandbox_enter(argv[1]))
        return 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
