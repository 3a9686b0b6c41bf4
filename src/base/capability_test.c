#include "base/capability.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* A set as /proc/self/status has it. */
static unsigned long long
set_of(const char *name)
{
    unsigned long long set = ~0ull;
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            set = strtoull(line + strlen(name), NULL, 16);
    if (file)
        fclose(file);
    return set;
}

static int
capability_test_give_up(const int *kept, size_t count)
{
    unsigned long long wanted = 0;
    struct bh_err err;

    for (size_t i = 0; i < count; i++)
        wanted |= 1ull << kept[i];
    if (bh_capability_bound(kept, count, &err) != BH_OK || bh_capability_keep(kept, count, &err) != BH_OK)
        return 1;
    if (set_of("CapBnd:") != wanted || set_of("CapPrm:") != wanted || set_of("CapEff:") != wanted
        || set_of("CapInh:") != 0 || set_of("CapAmb:") != 0)
        return 2;
    return bh_capability_keep((const int[]){ CAP_SYS_TIME }, 1, &err) == BH_OK ? 3 : 0;
}

static void
each_set(void **state)
{
    static const struct {
        const char *name;
        int kept[3];
        size_t count;
    } rows[] = {
        { "none", { 0 }, 0 },
        { "one", { CAP_KILL }, 1 },
        { "of both words", { CAP_CHOWN, CAP_SYS_ADMIN, CAP_BPF }, 3 },
    };

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        pid_t pid = fork(); /* it cannot be undone */
        int status = -1;

        if (pid == 0)
            _exit(capability_test_give_up(rows[i].kept, rows[i].count));
        waitpid(pid, &status, 0);
        BH_CHECK_EQ(rows[i].name, status, 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_set),
};

BH_TEST_MAIN(tests)
