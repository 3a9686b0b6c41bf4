#include "node/core/numa.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/test.h"

static char devices[] = "/tmp/bh-numa-XXXXXX";

static void
put_device(const char *id, const char *node)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", devices, id);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/numa_node", devices, id);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(node, file);
    fclose(file);
}

static void
the_kernel_says_which(void **state)
{
    static const struct {
        const char *name, *pci;
        uint32_t numa;
    } cases[] = {
        { "node 0", "00000000:3B:00.0", 1 },
        { "node 1", "00000000:AF:00.0", 2 },
        { "four digits", "0000:af:00.0", 2 },
        { "the kernel does not know", "00000000:01:00.0", 0 },
        { "no such device", "00000000:77:00.0", 0 },
        { "nonsense", "00000000:78:00.0", 0 },
        { "no bus id", "", 0 },
        { "not a bus id", "../../../../etc/passwd", 0 },
        { "too long", "000000000000:3B:00.0", 0 },
    };

    assert_non_null(mkdtemp(devices));
    put_device("0000:3b:00.0", "0\n");
    put_device("0000:af:00.0", "1\n");
    put_device("0000:01:00.0", "-1\n");
    put_device("0000:78:00.0", "many\n");
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_numa_of(devices, cases[i].pci), cases[i].numa);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_kernel_says_which),
};
BH_TEST_MAIN(tests)
