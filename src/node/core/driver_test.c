#include "node/core/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "node/common/path.h"

static char top[] = "/tmp/bh-driver-XXXXXX";
static char place[64], parent[64];

static void
driver_test_put(const char *name, const char *text)
{
    struct bh_err err;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", place, name);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0644, &err), BH_OK);
}

static void
put_link(const char *name, const char *target)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", place, name);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

/* What `name` in the folder holds; "-": it is not there. */
static const char *
driver_test_text_of(const char *folder, const char *name)
{
    static char memory[64];
    struct bh_buf text;
    struct bh_err err;
    char path[BH_NODE_PATH_MAX];

    bh_path_format(path, sizeof path, "%.400s/%s", folder, name);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    return bh_file_read(path, sizeof memory - 1, &text, &err) == BH_OK ? bh_buf_text(&text) : "-";
}

static int
setup(void **state)
{
    assert_non_null(mkdtemp(top));
    snprintf(place, sizeof place, "%s/lib", top);
    snprintf(parent, sizeof parent, "%s/driver", top);
    assert_int_equal(mkdir(place, 0755), 0);
    driver_test_put("libcuda.so.580.1", "cuda");
    driver_test_put("libnvidia-ml.so.580.1", "ml");
    driver_test_put("libcudart.so.12", "a toolkit's");
    driver_test_put("libc.so.6", "c");
    driver_test_put("libnvidia-mlx.so.1", "not the driver's");
    put_link("libcuda.so.1", "libcuda.so.580.1");
    put_link("libcuda.so", "libcuda.so.1");
    put_link("libnvidia-ml.so.1", "libnvidia-ml.so.580.1");
    put_link("libnvcuvid.so.1", "libnvcuvid.so.580.1"); /* whose file was not installed */
    return 0;
}

static int
teardown(void **state)
{
    bh_path_remove_tree(top);
    return 0;
}

static const struct bh_driver_places places = { { "/nonexistent", place }, 2 };

static void
the_drivers_and_no_others(void **state)
{
    static const struct {
        const char *name, *text;
        /* clang-format off */
    } rows[] = {
        { "libcuda.so", "cuda" },         { "libcuda.so.1", "cuda" },
        { "libcuda.so.580.1", "cuda" },   { "libnvidia-ml.so.1", "ml" },
        { "libcudart.so.12", "-" },       { "libc.so.6", "-" },
        { "libnvidia-mlx.so.1", "-" },    { "libnvcuvid.so.1", "-" },
    };
    /* clang-format on */
    char folder[BH_NODE_PATH_MAX];
    struct bh_err err;

    assert_int_equal(bh_driver_gather(&places, parent, folder, &err), BH_OK);
    BH_CHECK_STR("by version", strrchr(folder, '/') + 1, "libcuda.so.580.1");
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_STR(rows[i].name, driver_test_text_of(folder, rows[i].name), rows[i].text);
    BH_CHECK_DONE();
}

static void
later_ones_come_and_old_versions_go(void **state)
{
    char folder[BH_NODE_PATH_MAX], old[BH_NODE_PATH_MAX];
    struct bh_err err;

    driver_test_put("libnvcuvid.so.580.1", "video");
    assert_int_equal(bh_driver_gather(&places, parent, old, &err), BH_OK);
    BH_CHECK_STR("installed since", driver_test_text_of(old, "libnvcuvid.so.1"), "video");
    driver_test_put("libcuda.so.590.2", "newer");
    put_link("libcuda.so.1", "libcuda.so.590.2");
    assert_int_equal(bh_driver_gather(&places, parent, folder, &err), BH_OK);
    BH_CHECK_STR("the new one", driver_test_text_of(folder, "libcuda.so.1"), "newer");
    BH_CHECK("the old one's folder is gone", access(old, F_OK) != 0);
    BH_CHECK_DONE();
}

static void
without_a_driver(void **state)
{
    const struct bh_driver_places none = { { "/nonexistent", top }, 2 };
    char folder[BH_NODE_PATH_MAX];
    struct bh_err err;

    BH_CHECK_EQ("none", bh_driver_gather(&none, parent, folder, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* Real paths, each once, though two names of a folder lead there. */
static void
where_it_is_found(void **state)
{
    struct bh_conf conf = { .driver_search = { { place, top, place }, 3 } };
    struct bh_driver_paths paths;
    char real[128];

    bh_node_driver_find(&conf, "libnvidia-ml.so.1", &paths);
    assert_int_equal(paths.count, 1);
    snprintf(real, sizeof real, "%s/libnvidia-ml.so.580.1", place);
    BH_CHECK_STR("real", paths.items[0], real);
    bh_node_driver_find(&conf, "libnot.so", &paths);
    BH_CHECK_EQ("nowhere", paths.count, 0);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_drivers_and_no_others),
        cmocka_unit_test(later_ones_come_and_old_versions_go),
        cmocka_unit_test(without_a_driver),
        cmocka_unit_test(where_it_is_found),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
