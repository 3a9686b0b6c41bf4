#include "node/placement/cdi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static char root[] = "/tmp/bh-cdi-XXXXXX";
static struct bh_node *node;
static struct bh_job jobs[2];

static const struct bh_node_record lease = {
    .kind = BH_NODE_RECORD_LEASE,
    .lease = 12,
    .lent_count = 2,
    .lent = { { .gpu = "GPU-1",
                .uuid = "MIG-a",
                .profile = "1g.10gb",
                .gi = 7,
                .ci = 0,
                .minor = 3,
                .gi_minor = 471,
                .ci_minor = 472 },
              { .gpu = "GPU-2",
                .uuid = "GPU-2",
                .profile = "whole",
                .gi = BH_WHOLE_GPU,
                .ci = BH_WHOLE_GPU,
                .minor = 4 } },
};

static int
cdi_test_begin(void **state)
{
    node = calloc(1, sizeof *node);
    assert_non_null(node);
    assert_non_null(mkdtemp(root));
    node->conf.cdi_dir = root;
    node->conf.driver_lib_dir = "/usr/lib/nvidia";
    node->caps_major = 234;
    node->uvm_major = 511;
    return 0;
}

static int
cdi_test_end(void **state)
{
    free(node);
    return rmdir(root);
}

static const char *
cdi_test_path_of(uint64_t number)
{
    static char path[80];

    snprintf(path, sizeof path, "%s/bulkhead-lease-%llu.json", root, (unsigned long long)number);
    return path;
}

/* The whole of a specification, as podman and containerd read it. */
static void
what_is_written(void **state)
{
    static const char want[] =
        "{\"cdiVersion\":\"0.3.0\",\"kind\":\"bulkhead.dev/gpu\",\"devices\":["
        "{\"name\":\"MIG-a\",\"containerEdits\":{\"deviceNodes\":["
        "{\"path\":\"/dev/nvidia3\",\"type\":\"c\",\"major\":195,\"minor\":3,\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/nvidia-caps/nvidia-cap471\",\"type\":\"c\",\"major\":234,\"minor\":471,\"permissions\":\"r\"},"
        "{\"path\":\"/dev/nvidia-caps/nvidia-cap472\",\"type\":\"c\",\"major\":234,\"minor\":472,\"permissions\":\"r\"}],"
        "\"env\":[\"CUDA_VISIBLE_DEVICES=MIG-a\"]}},"
        "{\"name\":\"GPU-2\",\"containerEdits\":{\"deviceNodes\":["
        "{\"path\":\"/dev/nvidia4\",\"type\":\"c\",\"major\":195,\"minor\":4,\"permissions\":\"rw\"}],"
        "\"env\":[\"CUDA_VISIBLE_DEVICES=GPU-2\"]}},"
        "{\"name\":\"lease-12\",\"containerEdits\":{\"deviceNodes\":["
        "{\"path\":\"/dev/nvidia3\",\"type\":\"c\",\"major\":195,\"minor\":3,\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/nvidia-caps/nvidia-cap471\",\"type\":\"c\",\"major\":234,\"minor\":471,\"permissions\":\"r\"},"
        "{\"path\":\"/dev/nvidia-caps/nvidia-cap472\",\"type\":\"c\",\"major\":234,\"minor\":472,\"permissions\":\"r\"},"
        "{\"path\":\"/dev/nvidia4\",\"type\":\"c\",\"major\":195,\"minor\":4,\"permissions\":\"rw\"}],"
        "\"env\":[\"CUDA_VISIBLE_DEVICES=MIG-a,GPU-2\"]}}],"
        "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\","
        "\"LD_LIBRARY_PATH=/usr/local/nvidia/lib\"],\"deviceNodes\":["
        "{\"path\":\"/dev/nvidiactl\",\"type\":\"c\",\"major\":195,\"minor\":255,\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/nvidia-uvm\",\"type\":\"c\",\"major\":511,\"minor\":0,\"permissions\":\"rw\"}],"
        "\"mounts\":[{\"hostPath\":\"/usr/lib/nvidia\",\"containerPath\":\"/usr/local/nvidia/lib\","
        "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"rbind\",\"rprivate\"]}]}}";
    struct bh_buf out;

    bh_buf_init(&out, 64 << 10);
    bh_cdi_put(&out, node, &lease);
    BH_CHECK_STR("specification", bh_buf_text(&out), want);
    BH_CHECK("no hooks", strstr(bh_buf_text(&out), "hook") == NULL);
    bh_buf_fini(&out);
    BH_CHECK_DONE();
}

static void
for_as_long_as_it_is_lent(void **state)
{
    struct bh_err err;
    struct stat found;

    assert_int_equal(bh_cdi_write(node, &lease, &err), BH_OK);
    assert_int_equal(stat(cdi_test_path_of(12), &found), 0);
    BH_CHECK_EQ("root's alone", found.st_mode & 07777, 0600);
    bh_cdi_remove(node, 12);
    BH_CHECK("gone", access(cdi_test_path_of(12), F_OK) != 0);
    bh_cdi_remove(node, 12);
    BH_CHECK_DONE();
}

/* A folder that the node made is readable by root alone, too; one of the machine keeps its mode. */
static void
the_folder(void **state)
{
    static const mode_t machine = 0755;
    struct bh_err err;
    struct stat found;
    char own[80];

    snprintf(own, sizeof own, "%s/own", root);
    node->conf.cdi_dir = own;
    for (int there = 0; there < 2; there++) {
        if (there)
            assert_int_equal(chmod(own, machine), 0);
        assert_int_equal(bh_cdi_write(node, &lease, &err), BH_OK);
        assert_int_equal(stat(own, &found), 0);
        BH_CHECK_EQ("mode", found.st_mode & 07777, there ? machine : 0700);
    }
    bh_cdi_remove(node, 12);
    assert_int_equal(rmdir(own), 0);
    node->conf.cdi_dir = root;
    BH_CHECK_DONE();
}

/* What a crash left is taken away, what it kept from being written is; others' files stay. */
static void
after_a_start(void **state)
{
    char other[80];
    struct bh_err err;

    snprintf(other, sizeof other, "%s/nvidia.json", root);
    assert_int_equal(bh_file_replace(other, "{}", 2, 0644, &err), BH_OK);
    assert_int_equal(bh_file_replace(cdi_test_path_of(7), "{}", 2, 0644, &err), BH_OK);
    jobs[0] = (struct bh_job){ .record = lease, .running = true };
    jobs[1] = (struct bh_job){ .record = lease, .ended = true };
    jobs[1].record.lease = 13;
    node->state.jobs = jobs;
    node->state.job_count = 2;
    bh_cdi_reconcile(node);
    BH_CHECK("stale", access(cdi_test_path_of(7), F_OK) != 0);
    BH_CHECK("ended", access(cdi_test_path_of(13), F_OK) != 0);
    BH_CHECK("running", access(cdi_test_path_of(12), F_OK) == 0);
    BH_CHECK("not ours", access(other, F_OK) == 0);
    bh_cdi_remove(node, 12);
    unlink(other);
    BH_CHECK_DONE();
}

/* A folder that cannot be written, or none, stops nothing. */
static void
where_it_cannot_be(void **state)
{
    struct bh_err err;

    node->conf.cdi_dir = "/proc/bulkhead-cdi";
    assert_int_not_equal(bh_cdi_write(node, &lease, &err), BH_OK);
    assert_non_null(strstr(err.msg, "make folder /proc/bulkhead-cdi"));
    bh_cdi_reconcile(node);
    node->conf.cdi_dir = "";
    assert_int_equal(bh_cdi_write(node, &lease, &err), BH_OK);
    bh_cdi_remove(node, 12);
    bh_cdi_reconcile(node);
    node->conf.cdi_dir = root;
    assert_true(access(cdi_test_path_of(12), F_OK) != 0);
}

/* What the log says meanwhile. */
static const char *
cdi_test_logged(void (*act)(const struct bh_node *))
{
    static char text[2048];
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    size_t length;

    assert_true(file && kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    act(node);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static void
remove_12(const struct bh_node *of)
{
    bh_cdi_remove(of, 12);
}

/* One that stays is said: when its lease ends, and at each start.  One that is not there is not. */
static void
what_stays(void **state)
{
    char inside[100];

    node->state.job_count = 0;
    BH_CHECK_STR("none", cdi_test_logged(remove_12), "");
    snprintf(inside, sizeof inside, "%s/x", cdi_test_path_of(12));
    assert_int_equal(mkdir(cdi_test_path_of(12), 0700), 0); /* unlink does not take it */
    assert_int_equal(mkdir(inside, 0700), 0);
    BH_CHECK("its end",
             strstr(cdi_test_logged(remove_12), "what=\"cdi\" lease=12 why=\"remove /tmp/") != NULL);
    BH_CHECK("a start",
             strstr(cdi_test_logged(bh_cdi_reconcile), "lease=12 why=\"remove bulkhead-lease-12") != NULL);
    assert_int_equal(rmdir(inside), 0);
    assert_int_equal(rmdir(cdi_test_path_of(12)), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written),    cmocka_unit_test(for_as_long_as_it_is_lent),
    cmocka_unit_test(the_folder),         cmocka_unit_test(after_a_start),
    cmocka_unit_test(where_it_cannot_be), cmocka_unit_test(what_stays),
};

int
main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, cdi_test_begin, cdi_test_end);
}
