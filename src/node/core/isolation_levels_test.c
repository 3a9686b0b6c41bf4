#include "node/core/isolation_levels.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

/* Levels that are found are reported and not offered. */
static void
not_verified(void **state)
{
    static const struct {
        const char *name, *driver, *controllers;
        bool found;
    } cases[] = {
        { "an older driver", "580.159.03", "cpu dmem memory", false },
        { "no controller", "615.10.01", "cpu memory", false },
        { "both", "615.10.01", "cpu dmem memory", true },
        { "no driver", "", "cpu dmem memory", false },
        { "no version", "new", "cpu dmem memory", false },
    };
    char root[] = "/tmp/bh-grades-XXXXXX", path[64];
    struct bh_node *node = calloc(1, sizeof *node);

    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/cgroup.controllers", root);
    node->conf.cgroup_mount = root;
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        const struct bh_msg_grade *grades;
        struct bh_list list;
        struct bh_err err;

        assert_int_equal(
            bh_file_replace(path, cases[i].controllers, strlen(cases[i].controllers), 0600, &err), BH_OK);
        snprintf(node->inventory.driver, sizeof node->inventory.driver, "%s", cases[i].driver);
        bh_isolation_levels_probe(node, arena, &list);
        grades = list.items;
        assert_int_equal(list.count, 2);
        BH_CHECK_STR(cases[i].name, grades[0].grade, "D");
        BH_CHECK_EQ(cases[i].name, grades[0].found, cases[i].found);
        BH_CHECK(cases[i].name, strstr(grades[0].why, "not verified on hardware") != NULL);
        BH_CHECK_STR(cases[i].name, grades[1].grade, "E");
        BH_CHECK(cases[i].name, strstr(grades[1].why, "not verified on hardware") != NULL);
    }
    unlink(path);
    rmdir(root);
    free(node);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(not_verified) };
BH_TEST_MAIN(tests)
