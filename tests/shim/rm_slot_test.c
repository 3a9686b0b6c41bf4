/* The slots of a library, however it was linked.
 *
 *   rm_slot_test NAME=LIBRARY... */
#include "base/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/driver/rm_slot.h"
#include "tests/shim/rm_library.h"

enum { PAGES_MAX = 256 };

static struct {
    int calls, fd;
    unsigned long request;
    void *argument;
} kernel, ours;

/* In the place of libc's: the test itself comes first wherever a name is looked for. */
__attribute__((visibility("default"))) int bh_test_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
int
bh_test_ioctl(int fd, unsigned long request, ...)
{
    __builtin_va_list more;

    __builtin_va_start(more, request);
    kernel.calls++;
    kernel.fd = fd;
    kernel.request = request;
    kernel.argument = __builtin_va_arg(more, void *);
    __builtin_va_end(more);
    errno = ENODEV;
    return -1;
}

static void *_Atomic forward;

static int
stand_in(int fd, unsigned long request, void *argument)
{
    ours.calls++;
    ours.fd = fd;
    ours.request = request;
    ours.argument = argument;
    return ((int (*)(int, unsigned long, ...))atomic_load(&forward))(fd, request, argument);
}

/* ---- the libraries ---- */

static struct library {
    const char *name, *path;
} libraries[8];
static unsigned count;

static const char *
path_of(const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(libraries[i].name, name) == 0)
            return libraries[i].path;
    return NULL;
}

/* What may be done with each page of a library. */
static unsigned
look_at_pages(const char *path, char ret_may[PAGES_MAX])
{
    char line[512], may[8];
    unsigned long from, end;
    unsigned pages = 0;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strlen(line) < strlen(path) || strcmp(line + strlen(line) - strlen(path), path) != 0
            || sscanf(line, "%lx-%lx %7s", &from, &end, may) != 3)
            continue;
        for (; from < end && pages < PAGES_MAX; from += 4096)
            ret_may[pages++] = (char)((may[0] == 'r') | (may[1] == 'w') << 1);
    }
    fclose(maps);
    return pages;
}

/* `bound`: what the linker put there is known, since it was asked before. */
static const struct {
    const char *name, *library;
    int mode;
    unsigned taken;
    bool bound;
} cases[] = {
    { "all at once, read-only then", "now", RTLD_NOW, 1, true },
    { "when first called, opened at once", "lazy", RTLD_NOW, 1, true },
    { "no part read-only", "norelro", RTLD_NOW, 1, true },
    { "by its address", "noplt", RTLD_NOW, 1, true },
    { "no call of it", "straight", RTLD_NOW, 0, false },
};

static void
check_calls(const char *name, void *library, unsigned taken)
{
    int (*call)(int, unsigned long, void *) =
        (int (*)(int, unsigned long, void *))dlsym(library, "bh_rm_call");
    int argument = 0;

    memset(&kernel, 0, sizeof(kernel));
    memset(&ours, 0, sizeof(ours));
    errno = 0;
    BH_CHECK_EQ(name, call(7, 0xc0de4605, &argument), -1);
    BH_CHECK_EQ(name, ours.calls, taken);
    if (taken == 0)
        return;
    BH_CHECK_EQ(name, errno, ENODEV);
    BH_CHECK_EQ(name, kernel.calls, 1);
    BH_CHECK(name, ours.fd == 7 && kernel.fd == 7);
    BH_CHECK(name, ours.request == 0xc0de4605 && kernel.request == 0xc0de4605);
    BH_CHECK(name, ours.argument == &argument && kernel.argument == &argument);
}

static void
slots_are_found(void **state)
{
    static char before[PAGES_MAX], after[PAGES_MAX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = path_of(cases[i].library), *name = cases[i].name;
        void *library = path == NULL ? NULL : dlopen(path, cases[i].mode | RTLD_LOCAL);
        struct bh_rm_slots slots;
        unsigned pages;

        BH_CHECK(name, library != NULL);
        if (library == NULL)
            continue;
        pages = look_at_pages(path, before);
        atomic_store(&forward, NULL);
        errno = 42;
        slots = bh_rm_slot_take(library, "ioctl", (void *)stand_in, &forward);
        BH_CHECK_EQ(name, errno, 42);
        BH_CHECK_EQ(name, slots.taken, cases[i].taken);
        BH_CHECK_EQ(name, slots.missed, 0);
        BH_CHECK(name, (atomic_load(&forward) == (void *)bh_test_ioctl) == cases[i].bound);
        BH_CHECK_EQ(name, look_at_pages(path, after), pages);
        BH_CHECK(name, pages > 0 && memcmp(before, after, pages) == 0);
        check_calls(name, library, cases[i].taken);

        slots = bh_rm_slot_take(library, "ioctl", (void *)stand_in, &forward);
        BH_CHECK_EQ(name, slots.taken, cases[i].taken);
        BH_CHECK(name, atomic_load(&forward) != (void *)stand_in);
        check_calls(name, library, cases[i].taken);
        slots = bh_rm_slot_take(library, "ioctl_", (void *)stand_in, &forward);
        BH_CHECK(name, slots.taken == 0 && slots.missed == 0);
        dlclose(library);
    }
    BH_CHECK_DONE();
}

/* The library was opened before, to be bound when first called: the slot's value would have the linker write
 * it.  The replacement stays, and forwards to the function that the slot had. */
static void
unbound_slots_stay_replaced(void **state)
{
    void *library = dlopen(path_of("lazy"), RTLD_LAZY | RTLD_LOCAL);
    struct bh_rm_slots slots;

    assert_non_null(library);
    atomic_store(&forward, (void *)bh_test_ioctl);
    slots = bh_rm_slot_take(library, "ioctl", (void *)stand_in, &forward);
    BH_CHECK_EQ("taken", slots.taken, 1);
    BH_CHECK("kept", atomic_load(&forward) == (void *)bh_test_ioctl);
    for (int i = 0; i < 3; i++)
        check_calls("call", library, 1);
    dlclose(library);
    BH_CHECK_DONE();
}

static void
other_libraries_have_none(void **state)
{
    struct bh_rm_slots slots =
        bh_rm_slot_take(dlopen(NULL, RTLD_NOW), "no such call", (void *)stand_in, &forward);

    BH_CHECK("the program", slots.taken == 0 && slots.missed == 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slots_are_found),
    cmocka_unit_test(unbound_slots_stay_replaced),
    cmocka_unit_test(other_libraries_have_none),
};

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc && count < 8; i++) {
        char *equals = strchr(argv[i], '=');

        if (equals == NULL)
            return 2;
        *equals = '\0';
        libraries[count++] = (struct library){ argv[i], equals + 1 };
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
