/* Jobs that are not as one would like them: more processes than there are slots, programs
 * without a shared libc or with another one, set-user-id programs, other preloaded libraries,
 * clocks that jump, calls out of signal handlers, drivers from the future.  No crash, no cap that
 * is loose, one clear answer.
 *
 *   odd_test NULL_DRIVER LIBCUDA STRANGER STATIC MEDDLER MUSL calls|programs|musl|silent|foreign
 *
 * foreign: the libraries and the stranger are another processor's (tests/shim/aarch64.py). */
#include "base/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

enum { CAP = 512, CONTEXT = 32, NOBODY = 65534 };

/* Less, and little more, than the five seconds that a process waits for the server's answer. */
#define AT_ONCE_NS UINT64_C(4000000000)
#define IN_TIME_NS UINT64_C(7000000000)

static const char *libcuda, *stranger, *stranger_static, *meddler, *stranger_musl;

/* ---- programs ---- */

struct program {
    const char *path, *preload;
    bool set_uid;
};

static int
become(void *self)
{
    const struct program *program = self;
    char units[16];

    snprintf(units, sizeof(units), "%d", CAP - CONTEXT);
    if (program->preload != NULL)
        setenv("LD_PRELOAD", program->preload, 1);
    setenv("LD_LIBRARY_PATH", "/nowhere", 1);
    if (program->set_uid && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 99;
    execl(program->path, program->path, libcuda, units, (char *)NULL);
    return 98;
}

static int
run(const struct program *program)
{
    int rc;

    bh_sandbox_share(1, CAP, CONTEXT);
    rc = bh_sandbox_run(become, (void *)(uintptr_t)program);
    bh_sandbox_emptied();
    BH_CHECK_EQ("nothing stays", bh_sandbox_used(0), 0);
    BH_CHECK("not over the cap", bh_sandbox.world->most[0] <= (CAP - CONTEXT) * BH_SHARE_UNIT_BYTES);
    return rc;
}

static void
any_program_finds_its_cap(void **state)
{
    static const char set_uid[] = "/run/set-uid";

    bh_sandbox_copy(stranger, set_uid);
    BH_CHECK("set-user-id", chmod(set_uid, 04755) == 0);
    BH_CHECK_EQ("plain", run(&(struct program){ .path = stranger }), 0);
    /* No thread can be started in one, which the driver needs, too. */
    BH_CHECK_EQ("static, with dlopen", run(&(struct program){ .path = stranger_static }), 4);
    BH_CHECK_EQ("and sends that it is", bh_sandbox.statics, 1);
    BH_CHECK_EQ("set-user-id", run(&(struct program){ .path = set_uid, .set_uid = true }), 0);
    BH_CHECK_EQ("another preload, whose wall clock jumps",
                run(&(struct program){ .path = stranger, .preload = meddler }), 0);
    BH_CHECK_DONE();
}

/* Its trampolines, its joining and its words of the pages are what they are here. */
static void
another_processor_finds_its_cap(void **state)
{
    BH_CHECK_EQ("emulated", run(&(struct program){ .path = stranger }), 0);
    BH_CHECK_EQ("most", bh_sandbox.world->most[0] / BH_SHARE_UNIT_BYTES, CAP - CONTEXT);
    BH_CHECK_DONE();
}

/* The library is glibc's: musl's loader says no, and the program lives on. */
static void
musl_cannot_load_it(void **state)
{
    BH_CHECK_EQ("dlopen fails", run(&(struct program){ .path = stranger_musl }), 3);
    BH_CHECK_DONE();
}

static int
vfork_and_exec(void *self)
{
    CUdeviceptr at;
    char units[16];
    int status;
    pid_t pid;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    snprintf(units, sizeof(units), "%d", CAP - 2 * CONTEXT - 32);
    pid = vfork();
    if (pid == 0) {
        execl(stranger, stranger, libcuda, units, (char *)NULL);
        _exit(9);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0); /* it got what was left */
    CHECK(bh_sandbox_comes_to(0, CONTEXT + 32));           /* the child's is reaped, the parent's stays */
    GOOD(cuMemFree_v2(at));
    return 0;
}

static void
vfork_leaves_the_parent_alone(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("vfork and exec", bh_sandbox_run(vfork_and_exec, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- calls out of a signal handler, in the midst of others ---- */

static volatile sig_atomic_t signals, failures;

static void
call_all(void)
{
    CUdeviceptr at, small;
    size_t left, total;
    CUresult rc = cuMemAlloc_v2(&at, 4 * MIB), other = cuMemAlloc_v2(&small, 3000);

    failures += rc != CUDA_SUCCESS && rc != CUDA_ERROR_OUT_OF_MEMORY;
    failures += other != CUDA_SUCCESS && other != CUDA_ERROR_OUT_OF_MEMORY;
    failures += other == CUDA_SUCCESS && cuMemFree_v2(small) != CUDA_SUCCESS;
    failures += cuMemGetInfo_v2(&left, &total) != CUDA_SUCCESS;
    failures += cuLaunchKernel((CUfunction)1, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS;
    failures += rc == CUDA_SUCCESS && cuMemFree_v2(at) != CUDA_SUCCESS;
}

static void
on_signal(int number)
{
    signals++;
    call_all();
}

static int
interrupted(void *self)
{
    struct sigaction mine = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };

    BEGIN();
    alarm(30); /* a deadlock is an end by a signal */
    sigaction(SIGVTALRM, &mine, NULL);
    sigaction(SIGPROF, &mine, NULL); /* the one interrupts the other's handler, too */
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 300000 && (signals < 60 || i < 20000); i++)
        call_all();
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    CHECK(signals >= 10 && failures == 0);
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static void
a_signal_handler_may_call(void **state)
{
    bh_sandbox_share(1, CONTEXT + 4, CONTEXT);
    BH_CHECK_EQ("interrupted", bh_sandbox_run(interrupted, NULL), 0);
    BH_CHECK("never more", bh_sandbox.world->most[0] <= 4 * BH_SHARE_UNIT_BYTES);
    BH_CHECK_DONE();
}

/* ---- a driver that is newer than this library ---- */

static int
from_the_future(void *self)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;
    CUdeviceptr at;
    int version = 0;

    BEGIN();
    GOOD(cuDriverGetVersion(&version));
    CHECK(version == 99000);
    /* A new form of a call that takes memory: it would not be counted. */
    CHECK(cuGetProcAddress_v2("cuMemAlloc", &function, 99000, 0, &status) == CUDA_ERROR_NOT_FOUND);
    CHECK(function == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CHECK(cuGetProcAddress("cuMemAlloc", &function, 99000, 0) == CUDA_ERROR_NOT_FOUND);
    GOOD(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status));
    CHECK(function == (void *)cuMemAlloc_v2);
    /* A new call is the driver's own. */
    GOOD(cuGetProcAddress_v2("cuFromTheFuture", &function, 99000, 0, &status));
    CHECK(((CUresult(*)(void))function)() == CUDA_ERROR_NOT_READY);
    CHECK(cuGetProcAddress_v2("cuNowhere", &function, 99000, 0, &status) == CUDA_ERROR_NOT_FOUND);
    while (cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS)
        ;
    CHECK(bh_sandbox_used(0) == CAP);
    return 0;
}

static void
a_newer_driver_is_capped(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    bh_sandbox.world->newer = 1;
    BH_CHECK_EQ("newer", bh_sandbox_run(from_the_future, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- no slot, and no answer ---- */

static int
stay(void *self)
{
    CUdeviceptr at;

    BEGIN();
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    atomic_fetch_add(&bh_sandbox.world->launches, 1);
    while (atomic_load(&bh_sandbox.world->closed) == 0)
        usleep(500);
    CHECK(bh_sandbox_used(0) == CONTEXT + 32);
    return 0;
}

static int
be_refused(void *self)
{
    CUcontext context;
    CUdeviceptr at;

    CHECK(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuMemAlloc_v2(&at, MIB) == CUDA_ERROR_NOT_INITIALIZED);
    return 0;
}

static int
come_in(void *self)
{
    GOOD(cuInit(0));
    return 0;
}

/* The 513th process. */
static void
one_too_many_is_refused(void **state)
{
    pid_t last;

    bh_sandbox_share(1, CAP, CONTEXT);
    bh_sandbox_occupy(BH_SHARE_SLOTS_MAX - 1);
    last = bh_sandbox_start(stay, NULL);
    while (atomic_load(&bh_sandbox.world->launches) == 0 && bh_sandbox_alive(&last, 1))
        usleep(500);
    BH_CHECK_EQ("refused", bh_sandbox_run_within(be_refused, NULL, AT_ONCE_NS), 0);
    atomic_store(&bh_sandbox.world->closed, 1);
    BH_CHECK_EQ("the last one lost nothing", bh_sandbox_wait(last), 0);
    bh_sandbox_emptied();
    BH_CHECK_EQ("there is a slot again", bh_sandbox_run(come_in, NULL), 0);
    bh_sandbox_occupy(0);
    BH_CHECK_DONE();
}

/* Takes the five seconds that a process waits. */
static void
a_silent_server_is_given_up(void **state)
{
    uint64_t from = bh_sandbox_now_ns();

    bh_sandbox_share(1, CAP, CONTEXT);
    atomic_store(&bh_sandbox.server, SANDBOX_SILENT);
    BH_CHECK_EQ("silent", bh_sandbox_run_within(be_refused, NULL, IN_TIME_NS), 0);
    BH_CHECK("it is waited for", bh_sandbox_now_ns() - from >= AT_ONCE_NS);
    BH_CHECK_DONE();
}

static int
run_programs(void)
{
    static const struct CMUnitTest programs[] = {
        cmocka_unit_test(any_program_finds_its_cap),
        cmocka_unit_test(vfork_leaves_the_parent_alone),
    };

    if (!SANITIZED)
        return cmocka_run_group_tests(programs, NULL, NULL);
    puts("1..0 # SKIP programs without the sanitizer cannot load the library");
    return 0;
}

static int
run_musl(void)
{
    static const struct CMUnitTest musl[] = {
        cmocka_unit_test(musl_cannot_load_it),
    };

    if (!SANITIZED && stranger_musl[0] != '\0')
        return cmocka_run_group_tests(musl, NULL, NULL);
    puts("1..0 # SKIP needs musl-gcc (Debian's musl-tools)");
    return 0;
}

static int
run_silent(void)
{
    static const struct CMUnitTest silent[] = {
        cmocka_unit_test(a_silent_server_is_given_up),
    };

    return cmocka_run_group_tests(silent, NULL, NULL);
}

static int
run_foreign(void)
{
    static const struct CMUnitTest foreign[] = {
        cmocka_unit_test(another_processor_finds_its_cap),
    };

    return cmocka_run_group_tests(foreign, NULL, NULL);
}

static int
run_calls(void)
{
    static const struct CMUnitTest calls[] = {
        cmocka_unit_test(a_signal_handler_may_call),
        cmocka_unit_test(a_newer_driver_is_capped),
        cmocka_unit_test(one_too_many_is_refused),
    };

    return cmocka_run_group_tests(calls, NULL, NULL);
}

int
main(int argc, char **argv)
{
    if (argc != 8 || !bh_sandbox_enter(argv[1]))
        return argc != 8 ? 2 : 0;
    libcuda = argv[2];
    stranger = argv[3];
    stranger_static = argv[4];
    meddler = argv[5];
    stranger_musl = argv[6];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return strcmp(argv[7], "programs") == 0  ? run_programs()
           : strcmp(argv[7], "musl") == 0    ? run_musl()
           : strcmp(argv[7], "silent") == 0  ? run_silent()
           : strcmp(argv[7], "foreign") == 0 ? run_foreign()
                                             : run_calls();
}
