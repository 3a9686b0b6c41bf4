/* The ledger of the driver's calls, on a kernel that this test plays: what is booked for
 * which call, what goes with what, threads that are given each other's handles. */
#include "base/test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/driver/rm_ledger.h"
#include "shim/driver/rm_objects.h"
#include "tests/shim/rm_requests.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIB (UINT64_C(1) << 20)
enum { C = 0xc1d00001, OTHER = 0xc1d00002, D = 0x5c000001, D2, M, M2, M3, X };

/* ---- the kernel ---- */

static int (*answer)(unsigned long request, void *argument);

/* In the place of libc's: this program comes first wherever a name is looked for. */
__attribute__((visibility("default"))) int bh_test_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
int
bh_test_ioctl(int fd, unsigned long request, ...)
{
    __builtin_va_list more;
    void *argument;

    __builtin_va_start(more, request);
    argument = __builtin_va_arg(more, void *);
    __builtin_va_end(more);
    return fd == 3 ? answer(request, argument) : -1;
}

static int
agree(unsigned long request, void *argument)
{
    return 0;
}

static int
break_down(unsigned long request, void *argument)
{
    errno = EIO;
    return -1;
}

static uint64_t
total(void)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i <= BH_RM_DEVICES_MAX; i++)
        bytes += bh_rm_objects_bytes(i);
    return bytes;
}

static int
make(void *alloc)
{
    return bh_rm_ledger_ioctl(3, RM_ALLOC, alloc);
}

static int
drop(uint32_t client, uint32_t object)
{
    return bh_rm_ledger_ioctl(3, RM_FREE, &(struct bh_rm_free){ client, 0, object, 0 });
}

static void
start_anew(void)
{
    struct rm_new made;

    answer = agree;
    (void)drop(C, C);
    (void)drop(OTHER, OTHER);
    BH_CHECK_EQ("nothing is left", total(), 0);
    (void)make(rm_client(&made, C));
    (void)make(rm_device(&made, C, D, 1));
}

/* ---- one call ---- */

enum way { LONG, SHORT, WRAPPED, OLD, HEAP };

static const struct {
    const char *name;
    enum way way;
    uint32_t class, status, attr, flags, params_size;
    uint64_t size, limit, bytes; /* limit 0: size - 1 */
} calls[] = {
    { "memory", LONG, 0x40, 0, 0, 0, 128, 8 * MIB, 0, 8 * MIB },
    { "its size is not said", LONG, 0x40, 0, 0, 0, 0, 8 * MIB, 0, 8 * MIB },
    { "of an older driver", LONG, 0x40, 0, 0, 0, 120, 8 * MIB, 0, 8 * MIB },
    { "refused", LONG, 0x40, 0x51, 0, 0, 128, 8 * MIB, 0, 0 },
    { "privileged", LONG, 0x3f, 0, 0, 0, 128, 2 * MIB, 0, 2 * MIB },
    { "of the host", LONG, 0x3e, 0, 0, 0, 128, 8 * MIB, 0, 0 },
    { "of the host, it says", LONG, 0x40, 0, 1 << 25, 0, 128, 8 * MIB, 0, 0 },
    { "addresses alone", LONG, 0x50a0, 0, 0, 0, 128, 8 * MIB, 0, 0 },
    { "no memory behind it", LONG, 0x40, 0, 0, 0x80000, 128, 8 * MIB, 0, 0 },
    { "a channel", LONG, 0xc86f, 0, 0, 0, 128, 8 * MIB, 0, 0 },
    { "rounded by the driver", LONG, 0x40, 0, 0, 0, 128, 4096, 64 * 1024 - 1, 64 * 1024 },
    { "a limit without sense", LONG, 0x40, 0, 0, 0, 128, 4096, UINT64_MAX, 4096 },
    { "a limit far away", LONG, 0x40, 0, 0, 0, 128, 4096, UINT64_C(1) << 40, 4096 },
    { "no such size", LONG, 0x40, 0, 0, 0, 128, UINT64_MAX, 0, 0 },
    { "parameters too short", LONG, 0x40, 0, 0, 0, 8, 8 * MIB, 0, 0 },
    { "the short way", SHORT, 0x40, 0, 0, 0, 128, 8 * MIB, 0, 8 * MIB },
    { "the short way, refused", SHORT, 0x40, 1, 0, 0, 128, 8 * MIB, 0, 0 },
    { "a call in a call", WRAPPED, 0x40, 0, 0, 0, 128, 8 * MIB, 0, 8 * MIB },
    { "the old way", OLD, 0x40, 0, 0, 0, 0, 8 * MIB, 0, 8 * MIB },
    { "the old way, refused", OLD, 0x40, 0x51, 0, 0, 0, 8 * MIB, 0, 0 },
    { "the old way, of the host", OLD, 0x3e, 0, 0, 0, 0, 8 * MIB, 0, 0 },
    { "the old way, no such size", OLD, 0x40, 0, 0, 0, 0, 0, UINT64_MAX, 0 },
    { "the oldest way", HEAP, 0, 0, 0, 0, 0, 8 * MIB, 0, 8 * MIB },
    { "the oldest way, refused", HEAP, 0, 0x51, 0, 0, 0, 8 * MIB, 0, 0 },
    { "the oldest way, of the host", HEAP, 0, 0, 1 << 25, 0, 0, 8 * MIB, 0, 0 },
    { "the oldest way, addresses", HEAP, 0, 0, 0, 0x80000, 0, 8 * MIB, 0, 0 },
};

static void
call_by(size_t i)
{
    uint64_t limit = calls[i].limit != 0 ? calls[i].limit : calls[i].size - 1;
    struct rm_new made;
    struct bh_rm_alloc_short brief;
    struct bh_rm_wrapped wrapped;
    struct bh_rm_alloc_memory old = { C, D, M, calls[i].class, 0, 0, 0, limit, calls[i].status, 0, -1, 0 };
    struct bh_rm_vid_heap heap = {
        .client = C, .parent = D, .function = BH_RM_HEAP_ALLOC, .status = calls[i].status
    };

    heap.what.memory = M;
    heap.what.attr = calls[i].attr;
    heap.what.flags = calls[i].flags;
    heap.what.size = calls[i].size;
    heap.what.limit = limit;
    rm_memory(&made, C, D, M, calls[i].size);
    made.params.memory.limit = limit;
    made.params.memory.attr = calls[i].attr;
    made.params.memory.flags = calls[i].flags;
    made.alloc.head.class = calls[i].class;
    made.alloc.status = calls[i].status;
    made.alloc.params_size = calls[i].params_size;
    brief = (struct bh_rm_alloc_short){ made.alloc.head, made.alloc.params_size, made.alloc.status };
    wrapped = (struct bh_rm_wrapped){ BH_RM_ALLOC, sizeof(made.alloc), (uintptr_t)&made.alloc };
    switch (calls[i].way) {
    case LONG:
        (void)make(&made.alloc);
        break;
    case SHORT:
        (void)bh_rm_ledger_ioctl(3, RM_REQUEST(BH_RM_ALLOC, brief), &brief);
        break;
    case WRAPPED:
        (void)bh_rm_ledger_ioctl(3, RM_REQUEST(BH_RM_WRAPPED, wrapped), &wrapped);
        break;
    case OLD:
        (void)bh_rm_ledger_ioctl(3, RM_REQUEST(BH_RM_ALLOC_MEMORY, old), &old);
        break;
    case HEAP:
        (void)bh_rm_ledger_ioctl(3, RM_REQUEST(BH_RM_VID_HEAP, heap), &heap);
        break;
    }
}

static void
each_call_books_its_bytes(void **state)
{
    struct bh_rm_vid_heap gone = { .client = C, .function = BH_RM_HEAP_FREE };

    for (size_t i = 0; i < COUNT(calls); i++) {
        start_anew();
        call_by(i);
        BH_CHECK_EQ(calls[i].name, bh_rm_objects_bytes(1), calls[i].bytes);
        BH_CHECK_EQ(calls[i].name, total(), calls[i].bytes);
        answer = break_down;
        BH_CHECK_EQ(calls[i].name, drop(C, M), -1);
        BH_CHECK_EQ(calls[i].name, errno, EIO);
        BH_CHECK_EQ(calls[i].name, total(), calls[i].bytes);
        answer = agree;
        (void)bh_rm_ledger_ioctl(3, RM_FREE, &(struct bh_rm_free){ C, D, M, 0x57 });
        BH_CHECK_EQ(calls[i].name, total(), calls[i].bytes);
        gone.what.memory = M;
        BH_CHECK_EQ(calls[i].name,
                    calls[i].way == HEAP ? bh_rm_ledger_ioctl(3, RM_REQUEST(BH_RM_VID_HEAP, gone), &gone)
                                         : drop(C, M),
                    0);
        BH_CHECK_EQ(calls[i].name, total(), 0);
    }
    start_anew();
    answer = break_down;
    call_by(0);
    BH_CHECK_EQ("a call that failed", total(), 0);
    answer = agree;
    (void)bh_rm_ledger_ioctl(3, RM_ALLOC & ~0xff00ul, NULL);
    (void)bh_rm_ledger_ioctl(3, RM_ALLOC, NULL);
    BH_CHECK_EQ("no argument", total(), 0);
    BH_CHECK_DONE();
}

/* ---- what goes with what ---- */

enum step_kind { CLIENT, DEVICE, MEMORY, OBJECT, DUP, FREE };

struct step {
    enum step_kind kind;
    uint32_t client, parent, object; /* of DUP the parent is `source`, in client C */
    uint64_t mib, total_mib;         /* afterwards, of all */
};

static const struct {
    const char *name;
    struct step step[8];
} stories[] = {
    { "a device goes", { { MEMORY, C, D, M, 2, 2 }, { MEMORY, C, D, M2, 4, 6 }, { FREE, C, 0, D, 0, 0 } } },
    { "a client goes", { { MEMORY, C, D, M, 2, 2 }, { MEMORY, C, D, M2, 4, 6 }, { FREE, C, 0, C, 0, 0 } } },
    { "one of two devices goes",
      { { DEVICE, C, C, D2, 0, 0 },
        { MEMORY, C, D, M, 2, 2 },
        { MEMORY, C, D2, M2, 4, 6 },
        { FREE, C, 0, D2, 0, 2 },
        { FREE, C, 0, M, 0, 0 } } },
    { "three levels",
      { { OBJECT, C, D, X, 0, 0 },
        { MEMORY, C, X, M, 2, 2 },
        { MEMORY, C, M, M2, 1, 3 },
        { MEMORY, C, D, M3, 8, 11 },
        { FREE, C, 0, X, 0, 8 } } },
    { "a handle is freed twice",
      { { MEMORY, C, D, M, 2, 2 }, { FREE, C, 0, M, 0, 0 }, { FREE, C, 0, M, 0, 0 } } },
    { "one that was never there", { { MEMORY, C, D, M, 2, 2 }, { FREE, C, 0, X, 0, 2 } } },
    { "the same number of another client",
      { { CLIENT, OTHER, 0, 0, 0, 0 },
        { MEMORY, C, D, M, 2, 2 },
        { FREE, OTHER, 0, M, 0, 2 },
        { FREE, OTHER, 0, OTHER, 0, 2 } } },
    { "a handle is given out anew",
      { { MEMORY, C, D, M, 2, 2 }, { MEMORY, C, D, M, 16, 16 }, { FREE, C, 0, M, 0, 0 } } },
    { "a device is given out anew",
      { { MEMORY, C, D, M, 2, 2 }, { DEVICE, C, C, D, 0, 0 }, { MEMORY, C, D, M, 4, 4 } } },
    { "a client is given out anew", { { MEMORY, C, D, M, 2, 2 }, { CLIENT, C, 0, 0, 0, 0 } } },
    { "below what is not known",
      { { MEMORY, C, X, M, 2, 2 },
        { MEMORY, C, X, M2, 2, 4 },
        { MEMORY, C, D, M3, 1, 5 },
        { FREE, C, 0, X, 0, 1 } } },
    { "two handles, the first goes first",
      { { MEMORY, C, D, M, 2, 2 },
        { DUP, C, M, M2, 0, 2 },
        { FREE, C, 0, M, 0, 2 },
        { FREE, C, 0, M2, 0, 0 } } },
    { "two handles, the second goes first",
      { { MEMORY, C, D, M, 2, 2 },
        { DUP, C, M, M2, 0, 2 },
        { FREE, C, 0, M2, 0, 2 },
        { FREE, C, 0, M, 0, 0 } } },
    { "a handle of a handle",
      { { MEMORY, C, D, M, 2, 2 },
        { DUP, C, M, M2, 0, 2 },
        { DUP, C, M2, M3, 0, 2 },
        { FREE, C, 0, M2, 0, 2 },
        { FREE, C, 0, M, 0, 2 },
        { FREE, C, 0, M3, 0, 0 } } },
    { "another client keeps it",
      { { CLIENT, OTHER, 0, 0, 0, 0 },
        { MEMORY, C, D, M, 2, 2 },
        { DUP, OTHER, M, M2, 0, 2 },
        { FREE, C, 0, C, 0, 2 },
        { FREE, OTHER, 0, OTHER, 0, 0 } } },
    { "a handle of another process's", { { DUP, C, X, M2, 0, 0 }, { FREE, C, 0, M2, 0, 0 } } },
    { "in its own place", { { MEMORY, C, D, M, 2, 2 }, { DUP, C, M, M, 0, 2 }, { FREE, C, 0, M, 0, 0 } } },
};

static void
take_step(const struct step *step)
{
    struct rm_new made;
    struct bh_rm_dup dup = { step->client, step->client, step->object, C, step->parent, 0, 0 };

    switch (step->kind) {
    case CLIENT:
        (void)make(rm_client(&made, step->client));
        break;
    case DEVICE:
        (void)make(rm_device(&made, step->client, step->object, 2));
        break;
    case MEMORY:
        (void)make(rm_memory(&made, step->client, step->parent, step->object, step->mib * MIB));
        break;
    case OBJECT:
        (void)make(rm_object(&made, step->client, step->parent, step->object, 0x90f1));
        break;
    case DUP:
        (void)bh_rm_ledger_ioctl(3, RM_DUP, &dup);
        break;
    case FREE:
        (void)drop(step->client, step->object);
        break;
    }
}

static void
what_is_below_goes_too(void **state)
{
    char name[128];

    for (size_t i = 0; i < COUNT(stories); i++) {
        start_anew();
        for (size_t s = 0; s < COUNT(stories[i].step) && stories[i].step[s].client != 0; s++) {
            snprintf(name, sizeof(name), "%s, step %zu", stories[i].name, s);
            take_step(&stories[i].step[s]);
            BH_CHECK_EQ(name, total() / MIB, stories[i].step[s].total_mib);
        }
    }
    BH_CHECK_DONE();
}

/* By instance of the device; what is below nothing that is known is on none. */
static void
devices_differ(void **state)
{
    struct rm_new made;

    start_anew();
    (void)make(rm_device(&made, C, D2, 31));
    (void)make(rm_object(&made, C, D2, X, 0x2080));
    (void)make(rm_memory(&made, C, D, M, 2 * MIB));
    (void)make(rm_memory(&made, C, X, M2, 4 * MIB));
    (void)make(rm_memory(&made, C, 77, M3, 8 * MIB));
    BH_CHECK_EQ("the first", bh_rm_objects_bytes(1), 2 * MIB);
    BH_CHECK_EQ("the other", bh_rm_objects_bytes(31), 4 * MIB);
    BH_CHECK_EQ("none", bh_rm_objects_bytes(BH_RM_DEVICE_UNKNOWN), 8 * MIB);
    (void)make(rm_device(&made, C, D2, 32));
    (void)make(rm_memory(&made, C, D2, M2, 1 * MIB));
    BH_CHECK_EQ("no such instance", bh_rm_objects_bytes(BH_RM_DEVICE_UNKNOWN), 9 * MIB);
    BH_CHECK_EQ("went with it", bh_rm_objects_bytes(31), 0);
    (void)make(rm_object(&made, C, C, D2, BH_RM_CLASS_DEVICE));
    (void)make(rm_memory(&made, C, D2, M2, 1 * MIB));
    BH_CHECK_EQ("none said is the first", bh_rm_objects_bytes(0), 1 * MIB);
    BH_CHECK_DONE();
}

/* The driver gives what was freed to another thread before it has returned to the one that
 * freed it. */
static int
give_away(unsigned long request, void *argument)
{
    const struct bh_rm_free *gone = argument;
    struct rm_new made;

    answer = agree;
    if (gone->object == D) {
        (void)make(rm_device(&made, C, D, 3));
        (void)make(rm_memory(&made, C, D, M2, 16 * MIB));
    } else {
        (void)make(rm_memory(&made, C, D, gone->object, 4 * MIB));
    }
    return 0;
}

static void
a_late_free_frees_nothing_new(void **state)
{
    struct rm_new made;

    start_anew();
    (void)make(rm_memory(&made, C, D, M, 2 * MIB));
    answer = give_away;
    (void)drop(C, M);
    BH_CHECK_EQ("memory", total(), 4 * MIB);
    answer = give_away;
    (void)drop(C, D);
    BH_CHECK_EQ("a device", bh_rm_objects_bytes(3), 16 * MIB);
    BH_CHECK_EQ("and what was below it", total(), 16 * MIB);
    BH_CHECK_DONE();
}

/* ---- threads that are given each other's handles ---- */

enum { THREADS = 4, ROUNDS = 30000, HANDLES = 8 };

static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t kernel_free[HANDLES];
static uint64_t kernel_bytes[HANDLES + 1];
static unsigned kernel_count;

/* It gives out the handle that was freed last, at once. */
static int
give_out(unsigned long request, void *argument)
{
    struct bh_rm_alloc_long *alloc = argument;
    struct bh_rm_free *gone = argument;

    pthread_mutex_lock(&kernel_lock);
    if (request == RM_FREE) {
        kernel_free[kernel_count++] = gone->object;
        kernel_bytes[gone->object] = 0;
    } else if (kernel_count == 0) {
        alloc->status = 0x51;
    } else {
        alloc->head.object = kernel_free[--kernel_count];
        kernel_bytes[alloc->head.object] = ((const struct bh_rm_memory *)(uintptr_t)alloc->head.params)->size;
    }
    pthread_mutex_unlock(&kernel_lock);
    return 0;
}

static void *
race(void *self)
{
    uint32_t held[HANDLES];
    unsigned count = 0, seed = (unsigned)(uintptr_t)self;

    for (int i = 0; i < ROUNDS; i++) {
        struct rm_new made;

        seed = seed * 1103515245u + 12345u;
        if ((seed >> 16) % 2 == 0 && count < HANDLES / 2) {
            (void)make(rm_memory(&made, C, D, 0, ((seed >> 20) % 64 + 1) * MIB));
            if (made.alloc.status == 0)
                held[count++] = made.alloc.head.object;
        } else if (count > 0) {
            (void)drop(C, held[--count]);
        }
    }
    for (unsigned i = 0; i < count / 2; i++)
        (void)drop(C, held[i]);
    return NULL;
}

static void
threads_do_not_mix(void **state)
{
    pthread_t thread[THREADS];
    uint64_t there = 0;

    for (int round = 0; round < 3; round++) {
        start_anew();
        memset(kernel_bytes, 0, sizeof(kernel_bytes));
        for (kernel_count = 0; kernel_count < HANDLES; kernel_count++)
            kernel_free[kernel_count] = kernel_count + 1;
        answer = give_out;
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, race, (void *)(i + 1)), 0);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        there = 0;
        for (unsigned i = 0; i <= HANDLES; i++)
            there += kernel_bytes[i];
        BH_CHECK_EQ("as the kernel has it", total(), there);
    }
    start_anew();
    BH_CHECK_DONE();
}

/* ---- many, and a fork ---- */

enum { MANY = 20000 };

static void
many_fit(void **state)
{
    struct rm_new made;

    start_anew();
    for (uint32_t i = 0; i < MANY; i++)
        (void)make(rm_memory(&made, C, D, 1000 + i, 2 * MIB));
    BH_CHECK_EQ("all", total(), MANY * 2 * MIB);
    for (uint32_t i = 0; i < MANY; i += 2)
        (void)drop(C, 1000 + i);
    BH_CHECK_EQ("half", total(), MANY * MIB);
    (void)drop(C, D);
    BH_CHECK_EQ("none", total(), 0);
    BH_CHECK_DONE();
}

static void
forks_begin_anew(void **state)
{
    struct rm_new made;
    int status;
    pid_t pid;

    bh_rm_objects_init();
    start_anew();
    (void)make(rm_memory(&made, C, D, M, 2 * MIB));
    pid = fork();
    if (pid == 0) {
        bool empty = total() == 0 && bh_rm_objects_now() == 0;

        (void)drop(C, D);
        (void)make(rm_memory(&made, C, D, M, 4 * MIB));
        _exit(empty && total() == 4 * MIB ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    BH_CHECK_EQ("the child", status, 0);
    BH_CHECK_EQ("its parent", total(), 2 * MIB);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_call_books_its_bytes),
    cmocka_unit_test(what_is_below_goes_too),
    cmocka_unit_test(devices_differ),
    cmocka_unit_test(a_late_free_frees_nothing_new),
    cmocka_unit_test(threads_do_not_mix),
    cmocka_unit_test(many_fit),
    cmocka_unit_test(forks_begin_anew),
};

BH_TEST_MAIN(tests)
