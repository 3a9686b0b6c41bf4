/* What the ledger of the driver's calls says of a process in its lease's page.
 *
 *   rm_page_test DRIVER NULL_DRIVER
 *
 * DRIVER is the null driver with bh_rm_call in it; NULL_DRIVER makes no such calls. */
#include "base/test.h"

#include <dlfcn.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"
#include "tests/shim/rm_requests.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 512, CONTEXT = 32, FD = 3000, C = 0xc1d00001, D = 0x5c000001, D2, S, S2, M, M2 };

/* In the place of libc's: this program comes first wherever a name is looked for. */
__attribute__((visibility("default"))) int bh_test_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
int
bh_test_ioctl(int fd, unsigned long request, ...)
{
    return fd == FD ? 0 : -1;
}

static int
call(unsigned long request, void *argument)
{
    static int (*bh_rm_call)(int, unsigned long, void *);

    if (bh_rm_call == NULL) {
        void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

        bh_rm_call = (int (*)(int, unsigned long, void *))dlsym(driver, "bh_rm_call");
    }
    return bh_rm_call(FD, request, argument);
}

static int
make(void *alloc)
{
    return call(RM_ALLOC, alloc);
}

/* The driver asks for the UUID of the GPU behind an object. */
static int
learn(uint32_t object, uint8_t uuid)
{
    struct bh_rm_gid gid = { .flags = BH_RM_GID_BINARY, .length = BH_RM_GID_BYTES };
    struct bh_rm_control control = { C, object, BH_RM_GET_GID, 0, (uintptr_t)&gid, sizeof(gid), 0 };

    memset(gid.data, uuid, BH_RM_GID_BYTES);
    return call(RM_CONTROL, &control);
}

/* Two devices, whose instances are not in the lease's order. */
static int
use(bool with_uuids)
{
    struct rm_new made;

    CHECK(make(rm_client(&made, C)) == 0);
    CHECK(make(rm_device(&made, C, D, 7)) == 0);
    CHECK(make(rm_device(&made, C, D2, 4)) == 0);
    CHECK(make(rm_object(&made, C, D, S, 0x2080)) == 0);
    CHECK(make(rm_object(&made, C, D2, S2, 0x2080)) == 0);
    CHECK(make(rm_memory(&made, C, D, M, 100 * MIB)) == 0);
    CHECK(make(rm_memory(&made, C, D2, M2, 10 * MIB + 1)) == 0);
    CHECK(!with_uuids || (learn(S, 2) == 0 && learn(S2, 1) == 0));
    return 0;
}

static int
grains(unsigned device)
{
    return (int)atomic_load(&bh_sandbox.usage->seen[0].grains[device]);
}

static int
kind(void)
{
    return (int)atomic_load(&bh_sandbox.usage->seen_kind[0]);
}

static int
two_known(void *self)
{
    GOOD(cuInit(0));
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 0 && grains(1) == 0);
    CHECK(use(true) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 161 && grains(1) == 1600);
    CHECK(call(RM_FREE, &(struct bh_rm_free){ C, 0, D, 0 }) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 161 && grains(1) == 0);
    CHECK(call(RM_FREE, &(struct bh_rm_free){ C, 0, C, 0 }) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 0 && grains(1) == 0);
    return 0;
}

static int
two_unknown(void *self)
{
    GOOD(cuInit(0));
    CHECK(use(false) == 0);
    CHECK(kind() == BH_SHARE_SEEN_PARTLY && grains(0) == 0 && grains(1) == 0);
    CHECK(learn(S2, 9) == 0 && learn(S, 2) == 0); /* one is no GPU of the lease */
    CHECK(kind() == BH_SHARE_SEEN_PARTLY && grains(0) == 0 && grains(1) == 1600);
    return 0;
}

/* It is the only one that there is, whatever its number. */
static int
one(void *self)
{
    GOOD(cuInit(0));
    CHECK(use(false) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 1761);
    return 0;
}

static int
strange(void *self)
{
    struct bh_rm_alloc_long alloc = { .head = { C, D, M, BH_RM_CLASS_VIDEO, 0 } };

    GOOD(cuInit(0));
    CHECK(use(false) == 0 && kind() == BH_SHARE_SEEN_WHOLE);
    CHECK(call(_IOC(_IOC_READ | _IOC_WRITE, BH_RM_MAGIC, BH_RM_ALLOC, 40), &alloc) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE); /* said with the next */
    CHECK(call(RM_FREE, &(struct bh_rm_free){ C, 0, M2, 0 }) == 0);
    CHECK(kind() == BH_SHARE_SEEN_PARTLY && grains(0) == 1600);
    return 0;
}

/* What the driver took before there was a page is said with the join. */
static int
early(void *self)
{
    int version;

    (void)cuDriverGetVersion(&version); /* any call opens it */
    CHECK(use(true) == 0);
    CHECK(kind() == BH_SHARE_SEEN_NOT);
    GOOD(cuInit(0));
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 161 && grains(1) == 1600);
    return 0;
}

static int
inherit_nothing(void *self)
{
    struct rm_new made;

    CHECK(call(RM_FREE, &(struct bh_rm_free){ C, 0, C, 0 }) == 0);
    GOOD(cuInit(0));
    CHECK(atomic_load(&bh_sandbox.usage->seen_kind[1]) == BH_SHARE_SEEN_WHOLE);
    CHECK(atomic_load(&bh_sandbox.usage->seen[1].grains[0]) == 0);
    CHECK(make(rm_memory(&made, C, D, M, 1)) == 0); /* below a device that it does not know */
    CHECK(atomic_load(&bh_sandbox.usage->seen_kind[1]) == BH_SHARE_SEEN_PARTLY);
    return 0;
}

static int
in_child(void *self)
{
    GOOD(cuInit(0));
    CHECK(use(true) == 0);
    CHECK(bh_sandbox_run(inherit_nothing, NULL) == 0);
    CHECK(kind() == BH_SHARE_SEEN_WHOLE && grains(0) == 161 && grains(1) == 1600);
    return 0;
}

static int
absent(void *self)
{
    BEGIN();
    CHECK(kind() == BH_SHARE_SEEN_ABSENT && grains(0) == 0);
    return 0;
}

static const struct {
    const char *name;
    unsigned devices;
    int (*body)(void *self);
} cases[] = {
    { "two devices", 2, two_known }, { "two whose UUIDs were not asked for", 2, two_unknown },
    { "one device", 1, one },        { "a driver that speaks otherwise", 1, strange },
    { "before the join", 2, early }, { "a fork's child", 2, in_child },
};

static void
the_page_holds_it(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        bh_sandbox_share(cases[i].devices, CAP, CONTEXT);
        BH_CHECK_EQ(cases[i].name, bh_sandbox_run(cases[i].body, NULL), 0);
    }
    BH_CHECK_DONE();
}

static const char *null_driver;

static void
a_driver_that_makes_no_calls(void **state)
{
    BH_CHECK_EQ("away", unlink(BH_SHARE_DRIVER_DIR "/libcuda.so.1"), 0);
    bh_sandbox_bring(null_driver, "libcuda.so.1");
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("absent", bh_sandbox_run(absent, NULL), 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_holds_it),
        cmocka_unit_test(a_driver_that_makes_no_calls),
    };

    if (argc != 3)
        return 2;
    if (!bh_sandbox_enter(argv[1]))
        return 0;
    null_driver = argv[2];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
