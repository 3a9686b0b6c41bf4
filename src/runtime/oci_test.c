#include "runtime/oci.h"

#include "base/json.h"
#include "base/test.h"

static const struct bh_masked_list masked = {
    { { "/proc/a", BH_MASKED_FILE }, { "/proc/b", BH_MASKED_FOLDER }, { "/proc/c", BH_MASKED_ABSENT } }, 3
};
static const struct bh_oci_host host = { "{}", "QUJD", 20000, 500, .locked_max = 8 << 20, .masked = &masked };

/* The document for a sandbox, parsed. */
static struct bh_json *
document(const struct bh_sandbox *sandbox)
{
    struct bh_json *json = NULL;
    struct bh_buf text;
    struct bh_err err;

    bh_buf_init(&text, 1 << 20);
    bh_oci_put(&text, sandbox, &host);
    assert_false(text.overflow);
    if (bh_json_parse(text.bytes, text.length, &json, &err) != BH_OK)
        fail_msg("%s", err.msg);
    bh_buf_fini(&text);
    return json;
}

static struct bh_sandbox
oci_test_plain(void)
{
    static const char *args[] = { "/bin/echo", "a \"b\"\n" };

    return (struct bh_sandbox){
        .id = "bh-1",
        .bundle = "/run/b",
        .rootfs = "/run/b/root",
        .cgroup = "/bulkhead/bh-1",
        .cwd = "/tmp",
        .hostname = "job-1",
        .args = { args, 2 },
        .uid_base = 1065536,
        .pids = 10,
        .memory_bytes = 1 << 30,
        .tmp_bytes = 1 << 20,
    };
}

/* Walk by keys and indices: "linux.uidMappings.0.hostID". */
static bh_json_value
oci_test_at(const struct bh_json *json, const char *path)
{
    bh_json_value value = bh_json_root(json);
    char word[64];

    while (*path) {
        size_t length = strcspn(path, ".");

        snprintf(word, sizeof word, "%.*s", (int)length, path);
        value = word[0] >= '0' && word[0] <= '9' ? bh_json_at(value, (size_t)(word[0] - '0'))
                                                 : bh_json_get(value, word);
        path += length + (path[length] == '.');
    }
    return value;
}

static void
test_promises(void **state)
{
    static const struct {
        const char *path, *text; /* text NULL: a number */
        uint64_t number;
    } rows[] = {
        { "process.user.uid", NULL, 1000 },
        { "process.user.gid", NULL, 1000 },
        { "process.cwd", "/tmp", 0 },
        { "process.args.1", "a \"b\"\n", 0 },
        { "process.rlimits.0.type", "RLIMIT_CORE", 0 },
        { "process.rlimits.0.hard", NULL, 0 },
        { "process.rlimits.1.hard", NULL, 20000 },
        { "process.rlimits.2.type", "RLIMIT_MEMLOCK", 0 },
        { "process.rlimits.2.soft", NULL, 8 << 20 },
        { "process.rlimits.2.hard", NULL, 8 << 20 },
        { "process.oomScoreAdj", NULL, 500 },
        { "root.path", "/run/b/root", 0 },
        { "hostname", "job-1", 0 },
        { "linux.uidMappings.0.containerID", NULL, 0 },
        { "linux.uidMappings.0.hostID", NULL, 1065536 },
        { "linux.uidMappings.0.size", NULL, 65536 },
        { "linux.gidMappings.0.hostID", NULL, 1065536 },
        { "mounts.2.options.5", "max=64", 0 },
        { "linux.maskedPaths.0", "/proc/c", 0 }, /* the runtime masks only what none of Bulkhead's mounts
                                                  * shows */
        { "annotations.run.oci.seccomp_bpf_data", NULL, 0 },
    };
    struct bh_sandbox sandbox = oci_test_plain();
    BH_AUTO(bh_json_free) struct bh_json *json = document(&sandbox);

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        if (rows[i].text)
            BH_CHECK_STR(rows[i].path, bh_json_text(oci_test_at(json, rows[i].path), NULL), rows[i].text);
        else if (strncmp(rows[i].path, "annotations", 11) != 0)
            BH_CHECK_EQ(rows[i].path, bh_json_number(oci_test_at(json, rows[i].path), 99999), rows[i].number);
    }
    BH_CHECK("no new privileges", bh_json_truth(oci_test_at(json, "process.noNewPrivileges")));
    BH_CHECK("read-only root", bh_json_truth(oci_test_at(json, "root.readonly")));
    BH_CHECK("no terminal", !bh_json_truth(oci_test_at(json, "process.terminal")));
    BH_CHECK_STR("filter",
                 bh_json_text(bh_json_get(oci_test_at(json, "annotations"), "run.oci.seccomp_bpf_data"), ""),
                 "QUJD");
    BH_CHECK("no hooks", !oci_test_at(json, "hooks"));
    BH_CHECK("no limits of the runtime's", !oci_test_at(json, "linux.resources"));
    BH_CHECK_DONE();
}

static void
test_no_capabilities(void **state)
{
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted", "ambient" };
    struct bh_sandbox sandbox = oci_test_plain();
    BH_AUTO(bh_json_free) struct bh_json *json = document(&sandbox);

    for (size_t i = 0; i < BH_COUNT(sets); i++) {
        bh_json_value set = bh_json_get(oci_test_at(json, "process.capabilities"), sets[i]);

        BH_CHECK(sets[i], set);
        BH_CHECK_EQ(sets[i], bh_json_count(set), 0);
    }
    BH_CHECK_DONE();
}

static void
test_namespaces(void **state)
{
    static const char *const wanted[] = { "user", "pid", "mount", "ipc", "uts", "cgroup", "network" };
    struct bh_sandbox sandbox = oci_test_plain();
    BH_AUTO(bh_json_free) struct bh_json *json = document(&sandbox);
    bh_json_value list = oci_test_at(json, "linux.namespaces");

    BH_CHECK_EQ("all seven", bh_json_count(list), BH_COUNT(wanted));
    for (size_t i = 0; i < BH_COUNT(wanted); i++) {
        bh_json_value item = bh_json_at(list, i);

        BH_CHECK_STR(wanted[i], bh_json_text(bh_json_get(item, "type"), ""), wanted[i]);
        BH_CHECK(wanted[i], !bh_json_get(item, "path")); /* a new one, not shared */
    }
    BH_CHECK_DONE();
}

static bh_json_value
mount_at(const struct bh_json *json, const char *target)
{
    bh_json_value mounts = oci_test_at(json, "mounts");

    for (size_t i = 0; i < bh_json_count(mounts); i++) {
        bh_json_value mount = bh_json_at(mounts, i);

        if (strcmp(bh_json_text(bh_json_get(mount, "destination"), ""), target) == 0)
            return mount;
    }
    return NULL;
}

static bool
has_option(bh_json_value mount, const char *option)
{
    bh_json_value options = bh_json_get(mount, "options");

    for (size_t i = 0; i < bh_json_count(options); i++) {
        if (strcmp(bh_json_text(bh_json_at(options, i), ""), option) == 0)
            return true;
    }
    return false;
}

static void
test_mounts(void **state)
{
    static const struct bh_sandbox_mount mounts[] = { { "/data", "/data", false },
                                                      { "/work", "/work", true } };
    static const struct {
        const char *target, *source, *has, *has_not;
        /* clang-format off */
    } rows[] = {
        { "/dev", "/run/b/dev", "bind", "nodev" }, { "/sys", "sysfs", "ro", "rw" },
        { "/proc/a", "/run/b/hidden-file", "ro", "rw" },
        { "/proc/b", "/run/b/hidden", "ro", "rw" },
        { "/tmp", "tmpfs", "size=1048576", "ro" }, { "/proc", "proc", "nodev", "rw" },
        { "/data", "/data", "ro", "rw" },          { "/data", "/data", "nosuid", "suid" },
        { "/work", "/work", "rw", "ro" },          { "/work", "/work", "nodev", "dev" },
        { "/data", "/data", "bind", "rbind" }, /* what is below it would be writable */
    };
    /* clang-format on */
    struct bh_sandbox sandbox = oci_test_plain();
    struct bh_json *json;

    sandbox.mounts = mounts;
    sandbox.mount_count = 2;
    json = document(&sandbox);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        bh_json_value mount = mount_at(json, rows[i].target);

        BH_CHECK(rows[i].target, mount);
        BH_CHECK_STR(rows[i].target, bh_json_text(bh_json_get(mount, "source"), ""), rows[i].source);
        BH_CHECK(rows[i].has, has_option(mount, rows[i].has));
        BH_CHECK(rows[i].has_not, !has_option(mount, rows[i].has_not));
    }
    bh_json_free(json);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_promises),
    cmocka_unit_test(test_no_capabilities),
    cmocka_unit_test(test_namespaces),
    cmocka_unit_test(test_mounts),
};

BH_TEST_MAIN(tests)
