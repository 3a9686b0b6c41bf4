/* Modules, libraries and green contexts: charged where they take memory, and given back with
 * what they are a part of.
 *
 *   code_test NULL_DRIVER */
#include "base/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

enum { CAP = 512, CONTEXT = 32 };

#define HEAD ".version 8.0\n.target sm_90\n"

static const char eight[] = HEAD ".global .b8 v[8388608];\n"; /* and a little text: 5 units */
static const char small[] = HEAD ".global .b8 v[1000];\n";

static CUresult
load_library(CUlibrary *ret_library, const void *image)
{
    return cuLibraryLoadData(ret_library, image, NULL, NULL, 0, NULL, NULL, 0);
}

static int
modules(void *self)
{
    CUmodule module[64], other;
    CUcontext context;

    CHECK(cuModuleLoadData(&module[0], eight) == CUDA_ERROR_NOT_INITIALIZED);
    GOOD(cuInit(0));
    CHECK(cuModuleLoadData(&module[0], eight) == CUDA_ERROR_INVALID_CONTEXT);
    BEGIN();
    for (int i = 0; i < 64; i++)
        GOOD(cuModuleLoadData(&module[i], small));
    CHECK(bh_sandbox_used(0) == CONTEXT + 1); /* they share a unit */
    GOOD(cuModuleLoadDataEx(&other, eight, 0, NULL, NULL));
    CHECK(bh_sandbox_used(0) == CONTEXT + 5);
    bh_sandbox.world->fail_free = 1;
    CHECK(cuModuleUnload(other) != CUDA_SUCCESS);
    CHECK(bh_sandbox_used(0) == CONTEXT + 5); /* it is still there */
    GOOD(cuModuleUnload(other));
    for (int i = 0; i < 64; i++)
        GOOD(cuModuleUnload(module[i]));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    bh_sandbox.world->fail_alloc = 1;
    CHECK(cuModuleLoadData(&other, eight) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(bh_sandbox_used(0) == CONTEXT);
    CHECK(cuModuleLoadData(&other, HEAD ".global .b8 v[18446744073709551615];") == CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuCtxCreate_v2(&context, 0, 0));
    GOOD(cuModuleLoadData(&other, eight));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 5);
    GOOD(cuCtxDestroy_v2(context)); /* and what was loaded in it */
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static int
libraries(void *self)
{
    CUlibrary library, second;
    CUcontext context, more;
    CUdeviceptr at;

    GOOD(cuInit(0));
    GOOD(load_library(&library, eight));
    CHECK(bh_sandbox_used(0) == 0); /* there is no context yet */
    BEGIN();
    CHECK(bh_sandbox_used(0) == CONTEXT + 5);
    GOOD(cuCtxCreate_v2(&context, 0, 0));
    CHECK(bh_sandbox_used(0) == 2 * (CONTEXT + 5));
    GOOD(load_library(&second, eight));
    CHECK(bh_sandbox_used(0) == 2 * (CONTEXT + 9)); /* the text of both shares a unit */
    GOOD(cuLibraryUnload(library));
    CHECK(bh_sandbox_used(0) == 2 * (CONTEXT + 5));
    /* No context without room for what comes into it. */
    GOOD(cuMemAlloc_v2(&at, (CAP - 3 * CONTEXT - 14) * 2 * MIB));
    CHECK(cuCtxCreate_v2(&more, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(load_library(&library, HEAD ".global .b8 v[100000000];") == CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == 2 * (CONTEXT + 5));
    GOOD(cuCtxDestroy_v2(context));
    GOOD(cuDevicePrimaryCtxReset_v2(0));
    CHECK(bh_sandbox_used(0) == 0);
    BEGIN();
    CHECK(bh_sandbox_used(0) == CONTEXT + 5); /* it is loaded there again */
    GOOD(cuLibraryUnload(second));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static int
green_contexts(void *self)
{
    CUgreenCtx green, other;
    CUcontext context, primary;
    CUdeviceptr at, beside;

    GOOD(cuInit(0));
    GOOD(cuGreenCtxCreate(&green, NULL, 0, 1));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT); /* and the primary one that it keeps */
    GOOD(cuCtxFromGreenCtx(&context, green));
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    GOOD(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    bh_sandbox.world->fail_alloc = 1;
    CHECK(cuGreenCtxCreate(&other, NULL, 0, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    GOOD(cuMemAlloc_v2(&beside, (CAP - 3 * CONTEXT - 31) * 2 * MIB));
    CHECK(cuGreenCtxCreate(&other, NULL, 0, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuMemFree_v2(beside));
    GOOD(cuGreenCtxDestroy(green));
    CHECK(bh_sandbox_used(0) == CONTEXT + 32); /* its memory is the primary one's */
    GOOD(cuCtxSetCurrent(primary));
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(bh_sandbox_used(0) == 0);
    return 0;
}

/* A context that was made past the hooks is charged when it is first used. */
static int
unseen_contexts(void *self)
{
    __typeof__(&cuCtxCreate_v2) create;
    CUcontext context, popped;
    CUdeviceptr at;
    void *found;

    BEGIN();
    found = bh_sandbox_driver("cuCtxCreate_v2");
    CHECK(found != NULL);
    create = (__typeof__(create))found;
    GOOD(create(&context, 0, 0));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    GOOD(cuCtxPopCurrent_v2(&popped));
    GOOD(cuCtxDestroy_v2(context));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static int
imports(void *self)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = { .type = 1, .size = 64 * MIB };
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = { .size = 2 * MIB };
    CUexternalMemory memory;
    CUdeviceptr at;

    BEGIN();
    GOOD(cuImportExternalMemory(&memory, &desc));
    CHECK(bh_sandbox_used(0) == CONTEXT + 32);
    GOOD(cuExternalMemoryGetMappedBuffer(&at, memory, &buffer));
    GOOD(cuDestroyExternalMemory(memory));
    CHECK(bh_sandbox_used(0) == CONTEXT + 32); /* the buffer holds it */
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    desc.type = 0;
    CHECK(cuImportExternalMemory(&memory, &desc) == CUDA_ERROR_INVALID_VALUE);
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static const struct {
    const char *name;
    int (*body)(void *self);
} bodies[] = {
    { "modules", modules },
    { "libraries", libraries },
    { "green contexts", green_contexts },
    { "unseen contexts", unseen_contexts },
    { "imports", imports },
};

static void
each_is_charged(void **state)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        bh_sandbox_share(1, CAP, CONTEXT);
        BH_CHECK_EQ(bodies[i].name, bh_sandbox_run(bodies[i].body, NULL), 0);
        bh_sandbox_emptied();
        BH_CHECK_EQ(bodies[i].name, bh_sandbox_used(0), 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_is_charged),
};

BH_SANDBOX_MAIN(tests)
