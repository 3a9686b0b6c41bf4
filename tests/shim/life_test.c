/* How the shim lives in a process that is not its own: how it is found, how it joins, what
 * forks and threads see, and that it changes nothing else.
 *
 *   life_test NULL_DRIVER LIBCUDA */
#include "base/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 512, CONTEXT = 32 };

/* Less than the five seconds that a process waits for the server's answer. */
#define AT_ONCE_NS UINT64_C(4000000000)

static const char *libcuda, *self_path;

/* ---- finding calls ---- */

static void *
ours(const char *name)
{
    static void *library;

    if (library == NULL)
        library = dlopen(libcuda, RTLD_NOW | RTLD_NOLOAD);
    return library == NULL ? NULL : dlsym(library, name);
}

/* Row 8: what the driver answers decides, not the name that was asked for. */
static const struct {
    const char *symbol;
    int version;
    uint64_t flags;
    const char *answer; /* NULL: not found */
} asked[] = {
    { "cuMemAlloc", 3020, 0, "cuMemAlloc_v2" },
    { "cuMemAlloc", 13000, 0, "cuMemAlloc_v2" },
    { "cuMemAllocAsync", 11020, 1, "cuMemAllocAsync" },
    { "cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz" },
    { "cuLaunchKernel", 4000, 0, "cuLaunchKernel" },
    { "cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz" },
    { "cuInit", 2000, 0, "cuInit" },
    { "cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2" },
    { "cuDevicePrimaryCtxRelease", 13000, 0, "cuDevicePrimaryCtxRelease_v2" },
    { "cuGLInit", 13000, 0, NULL },
};

static int
ask(void *self)
{
    for (size_t i = 0; i < COUNT(asked); i++) {
        CUdriverProcAddressQueryResult status;
        void *function = NULL;
        CUresult rc =
            cuGetProcAddress_v2(asked[i].symbol, &function, asked[i].version, asked[i].flags, &status);

        if (asked[i].answer == NULL) {
            CHECK(rc == CUDA_ERROR_NOT_FOUND && function == NULL);
            continue;
        }
        if (rc != CUDA_SUCCESS || function != ours(asked[i].answer))
            fprintf(stderr, "%s flags %d\n", asked[i].symbol, (int)asked[i].flags);
        CHECK(rc == CUDA_SUCCESS && function == ours(asked[i].answer));
    }
    return 0;
}

/* A call without a hook is the driver's own; one that it lacks says so; one with arguments
 * on the stack and in every register arrives whole. */
static int
pass_on(void *self)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUdriverProcAddressQueryResult status;
    void *function;
    int value = 0;

    CHECK(driver != NULL);
    GOOD(cuGetProcAddress_v2("cuDeviceGetCount", &function, 13000, 0, &status));
    CHECK(function == dlsym(driver, "cuDeviceGetCount"));
    GOOD(cuDeviceGetCount(&value));
    CHECK(value == 1);
    CHECK(cuMulticastCreate(NULL, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuMulticastCreate(NULL, NULL) == CUDA_ERROR_NOT_SUPPORTED);
    return 0;
}

static int
without_driver(void *self)
{
    CHECK(unlink(BH_SHARE_DRIVER_DIR "/libcuda.so.1") == 0);
    CHECK(cuInit(0) == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
    /* In the driver's place this library itself: it notices, and does not go round. */
    CHECK(symlink(libcuda, BH_SHARE_DRIVER_DIR "/libcuda.so.1") == 0);
    CHECK(cuInit(0) == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
    return 0;
}

static void
calls_are_found(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("cuGetProcAddress", bh_sandbox_run(ask, NULL), 0);
    BH_CHECK_EQ("passed on", bh_sandbox_run(pass_on, NULL), 0);
    BH_CHECK_EQ("rename", rename(BH_SHARE_DRIVER_DIR "/libcuda.so.1", "/run/kept"), 0);
    BH_CHECK_EQ("link", link("/run/kept", BH_SHARE_DRIVER_DIR "/libcuda.so.1"), 0);
    BH_CHECK_EQ("no driver", bh_sandbox_run(without_driver, NULL), 0);
    unlink(BH_SHARE_DRIVER_DIR "/libcuda.so.1");
    BH_CHECK_EQ("back", rename("/run/kept", BH_SHARE_DRIVER_DIR "/libcuda.so.1"), 0);
    BH_CHECK_DONE();
}

/* ---- joining ---- */

static int
join_in_vain(void *self)
{
    CUdeviceptr at;
    CUcontext context;
    size_t left, total;
    int before = dup(0);

    CHECK(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuMemAlloc_v2(&at, MIB) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuMemGetInfo_v2(&left, &total) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(bh_sandbox.world->most[0] == 0);
    CHECK(dup(0) <= before + 4); /* driver's file aside, no descriptors stay */
    return 0;
}

/* Servers that answer wrongly are refused at once; one that sends nothing within 5 s. */
static void
wrong_servers_are_refused(void **state)
{
    static const int servers[] = { SANDBOX_REFUSES, SANDBOX_FOREIGN, SANDBOX_BARE,
                                   SANDBOX_SHORT,   SANDBOX_FORGED,  SANDBOX_SLOTLESS };

    bh_sandbox_share(1, CAP, CONTEXT);
    for (size_t i = 0; i < COUNT(servers); i++) {
        atomic_store(&bh_sandbox.server, servers[i]);
        BH_CHECK_EQ("wrong server, at once", bh_sandbox_run_within(join_in_vain, NULL, AT_ONCE_NS), 0);
        bh_sandbox_emptied();
    }
    BH_CHECK_DONE();
}

static int
join_late(void *self)
{
    GOOD(cuInit(0));
    GOOD(cuInit(0));
    return 0;
}

static void
a_server_that_starts_late_is_found(void **state)
{
    uint64_t from, took = AT_ONCE_NS;

    bh_sandbox_share(1, CAP, CONTEXT);
    for (int i = 0; i < 5 && took >= AT_ONCE_NS; i++) { /* again where the machine was slow */
        pid_t pid;
        int late;

        bh_sandbox_restart_server('n');
        from = bh_sandbox_now_ns();
        pid = bh_sandbox_start(join_late, NULL);
        usleep(150000);
        bh_sandbox_restart_server('o');
        late = bh_sandbox_wait(pid);
        took = bh_sandbox_now_ns() - from;
        BH_CHECK("late", late == 0 || took >= AT_ONCE_NS);
    }
    BH_CHECK("soon", took < AT_ONCE_NS);
    BH_CHECK_DONE();
}

/* ---- forks ---- */

static int
in_fork(void *self)
{
    CUdeviceptr at;

    /* A child knows nothing of what its parent had, and joins for itself. */
    CHECK(cuMemAlloc_v2(&at, MIB) == CUDA_ERROR_NOT_INITIALIZED);
    BEGIN();
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 64);
    return 0;
}

static int
raw_child(void *self)
{
    CUdeviceptr at;

    return cuMemAlloc_v2(&at, MIB) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1;
}

static int
fork_after(void *self)
{
    CUdeviceptr at;
    char *const none[] = { (char *)(uintptr_t) "true", NULL };
    int status;
    pid_t pid;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_run(in_fork, NULL) == 0);
    CHECK(bh_sandbox_comes_to(0, CONTEXT + 32)); /* the child's is reaped, the parent's stays */
    CHECK(posix_spawnp(&pid, "true", NULL, NULL, none, environ) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    pid = vfork();
    if (pid == 0)
        _exit(7);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    CHECK(bh_sandbox_run(raw_child, NULL) == 0);
    GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static int
exec_after(void *self)
{
    BEGIN();
    execl(self_path, self_path, "exec", (char *)NULL);
    return 9;
}

static void
forks_begin_anew(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("fork", bh_sandbox_run(fork_after, NULL), 0);
    bh_sandbox_emptied();
    BH_CHECK_EQ("after fork", bh_sandbox_used(0), 0);
    BH_CHECK_EQ("exec", bh_sandbox_run(exec_after, NULL), 0);
    bh_sandbox_emptied();
    BH_CHECK_EQ("after exec", bh_sandbox_used(0), 0);
    BH_CHECK_DONE();
}

/* What the program becomes after exec. */
static int
after_exec(void)
{
    CUdeviceptr at;

    CHECK(cuMemAlloc_v2(&at, MIB) == CUDA_ERROR_NOT_INITIALIZED);
    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    return 0;
}

/* ---- what it leaves alone ---- */

static void
on_signal(int number)
{
    CUdeviceptr at;

    if (cuMemAlloc_v2(&at, 3000) == CUDA_SUCCESS)
        (void)cuMemFree_v2(at);
}

/* Row 2, and allocations from a signal handler in the midst of others. */
static int
signals(void *self)
{
    struct sigaction mine = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, after;
    sigset_t mask;
    CUdeviceptr at;

    umask(027);
    sigaction(SIGUSR1, &mine, NULL);
    sigaction(SIGUSR2, &mine, NULL);
    BEGIN();
    CHECK(umask(0) == 027);
    sigaction(SIGUSR1, NULL, &after);
    CHECK(after.sa_handler == on_signal);
    sigaction(SIGUSR2, NULL, &after);
    CHECK(after.sa_handler == on_signal);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(sigismember(&mask, SIGUSR1) == 0);
    for (int i = 0; i < 20000; i++) {
        GOOD(cuMemAlloc_v2(&at, 3000));
        if (i % 100 == 0)
            raise(SIGUSR1);
        GOOD(cuMemFree_v2(at));
    }
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

/* Row 13: the environment of a tenant says nothing. */
static int
environment(void *self)
{
    size_t left, total;

    setenv("CUDA_DEVICE_MEMORY_LIMIT", "60g", 1);
    setenv("CUDA_DEVICE_SM_LIMIT", "100", 1);
    setenv("BULKHEAD_SHARE_SOCKET", "/tmp/none", 1);
    BEGIN();
    GOOD(cuMemGetInfo_v2(&left, &total));
    CHECK(total == CAP * BH_SHARE_UNIT_BYTES);
    CHECK(left == (CAP - CONTEXT) * BH_SHARE_UNIT_BYTES);
    return 0;
}

/* Row 1: dlsym is the program's own. */
static int
next_symbols(void *self)
{
    void *first = dlsym(RTLD_NEXT, "umask"), *again;

    BEGIN();
    again = dlsym(RTLD_NEXT, "umask");
    CHECK(first != NULL && again == first);
    CHECK(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == ours("cuMemAlloc_v2"));
    return 0;
}

/* A namespace of its own has a library of its own, and that one joins, too. */
static int
other_namespace(void *self)
{
    void *library = dlmopen(LM_ID_NEWLM, libcuda, RTLD_NOW);
    __typeof__(&cuInit) init;
    __typeof__(&cuDevicePrimaryCtxRetain) retain;
    CUcontext context;

    CHECK(library != NULL);
    init = (__typeof__(init))dlsym(library, "cuInit");
    retain = (__typeof__(retain))dlsym(library, "cuDevicePrimaryCtxRetain");
    BEGIN();
    GOOD(init(0));
    GOOD(retain(&context, 0));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT);
    return 0;
}

/* The node may change the cap, and say what the driver holds beside it, at any time. */
static int
changed_limits(void *self)
{
    CUdeviceptr at;
    size_t left, total;
    unsigned int low;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 128 * MIB));
    bh_sandbox.limits->device[0].overhead_units = 100;
    GOOD(cuMemGetInfo_v2(&left, &total));
    CHECK(left == (CAP - CONTEXT - 64 - 100) * BH_SHARE_UNIT_BYTES);
    bh_sandbox.limits->device[0].overhead_units = 2 * CAP;
    GOOD(cuMemGetInfo_v2(&left, &total));
    CHECK(left == 0);                                           /* and not 18446744073707454464 (row 14) */
    CHECK(cuMemAlloc_v2(&at, 512) == CUDA_ERROR_OUT_OF_MEMORY); /* row 7 */
    CHECK(cuMemAllocAsync(&at, 512, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    bh_sandbox.limits->device[0].overhead_units = 0;
    bh_sandbox.limits->device[0].memory_bytes = UINT64_C(70) << 30;
    GOOD(cuDeviceTotalMem(&low, 0));
    CHECK(low == UINT32_MAX);
    return 0;
}

static const struct {
    const char *name;
    int (*body)(void *self);
    /* clang-format off */
} lives[] = {
    { "signals (row 2)", signals },        { "environment (row 13)", environment },
    { "RTLD_NEXT (row 1)", next_symbols }, { "dlmopen", other_namespace },
    { "changed limits", changed_limits },
};
/* clang-format on */

static void
nothing_else_changes(void **state)
{
    for (size_t i = 0; i < COUNT(lives); i++) {
        if (SANITIZED && lives[i].body == other_namespace)
            continue;
        bh_sandbox_share(1, CAP, CONTEXT);
        BH_CHECK_EQ(lives[i].name, bh_sandbox_run(lives[i].body, NULL), 0);
        bh_sandbox_emptied();
        BH_CHECK_EQ(lives[i].name, bh_sandbox_used(0), 0);
    }
    BH_CHECK_DONE();
}

/* ---- more processes than slots, and bulkhead-share started anew ---- */

static int
stay(void *self)
{
    BEGIN();
    atomic_fetch_add(&bh_sandbox.world->launches, 1);
    while (atomic_load(&bh_sandbox.world->closed) == 0)
        usleep(2000);
    return cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 1;
}

static void
a_restart_is_survived(void **state)
{
    int joins, hang_ups;
    pid_t pid;

    bh_sandbox_share(1, CAP, CONTEXT);
    joins = atomic_load(&bh_sandbox.joins);
    hang_ups = atomic_load(&bh_sandbox.hang_ups);
    pid = bh_sandbox_start(stay, NULL);
    while (atomic_load(&bh_sandbox.world->launches) == 0)
        usleep(1000);
    BH_CHECK_EQ("joined", atomic_load(&bh_sandbox.connections), 1);
    bh_sandbox_restart_server('x');
    while (atomic_load(&bh_sandbox.joins) < joins + 2 && bh_sandbox_alive(&pid, 1))
        usleep(1000);
    BH_CHECK_EQ("hung up", atomic_load(&bh_sandbox.hang_ups), hang_ups + 1);
    BH_CHECK_EQ("joined again", atomic_load(&bh_sandbox.joins), joins + 2);
    BH_CHECK_EQ("with what it had", bh_sandbox_used(0), CONTEXT);
    atomic_store(&bh_sandbox.world->closed, 1);
    BH_CHECK_EQ("ended", bh_sandbox_wait(pid), 0);
    bh_sandbox_emptied();
    BH_CHECK_EQ("its slot was known", bh_sandbox_used(0), 0);
    BH_CHECK_DONE();
}

/* ---- which process has which slot, for the NVML view ---- */

static int
sign(void *self)
{
    uint32_t slot = self == NULL ? 0 : 1;

    BEGIN();
    CHECK(bh_sandbox.usage->pid[slot] == (uint32_t)getpid());
    return self == NULL ? bh_sandbox_run(sign, &bh_sandbox) : 0;
}

static void
a_slot_names_its_process(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("and of a fork's child", bh_sandbox_run(sign, NULL), 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_names_its_process),  cmocka_unit_test(calls_are_found),
        cmocka_unit_test(wrong_servers_are_refused), cmocka_unit_test(a_server_that_starts_late_is_found),
        cmocka_unit_test(forks_begin_anew),          cmocka_unit_test(nothing_else_changes),
        cmocka_unit_test(a_restart_is_survived),
    };

    self_path = "/proc/self/exe";
    if (argc == 2 && strcmp(argv[1], "exec") == 0)
        return after_exec();
    if (argc != 3 || !bh_sandbox_enter(argv[1]))
        return argc != 3 ? 2 : 0;
    libcuda = argv[2];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
