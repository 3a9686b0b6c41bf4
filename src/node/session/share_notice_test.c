/* Notices to a job's submitter of its share of a GPU, over the node's socket, on the simulated driver.
 * docs/shares.md. */

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "node/session/node_fixture_test.h"
#include "share/pages.h"

enum { TENANT = 7 };

/* A node with the shim and the simulated driver's libraries. */
static void
start_with_shim(void)
{
    char text[TEST_PATH * 2], library[TEST_PATH];

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(text, sizeof text, "shim_dir = %s/../src/shim\n", dirname(library));
    bh_test_restart_with_cuda(text);
}

static void
run_on_a_share(uint64_t lease, uint32_t slot)
{
    struct bh_msg_carve quarter = { .partition = 10 + lease,
                                    .start = slot,
                                    .profile = "1/4:10240Mi",
                                    .cap_bytes = UINT64_C(10) << 30,
                                    .context_bytes = 600 << 20,
                                    .weight = 1050 };
    struct test_job job = {
        .lease = lease, .partition = 10 + lease, .tenant = TENANT, .script = "echo up; exec sleep 60"
    };

    assert_int_equal(bh_test_carve_for(TENANT, &quarter, 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(lease, "up"));
}

/* A process that has a page mapped, in whose slots is what cannot be. */
static pid_t
start_forger(void)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct bh_share_usage *usage;
        char name[32];
        int fd;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(name, sizeof name, BH_SHARE_USAGE_NAME, BH_SHARE_VERSION);
        fd = memfd_create(name, MFD_ALLOW_SEALING);
        if (ftruncate(fd, sizeof *usage) != 0
            || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
            _exit(1);
        usage = mmap(NULL, sizeof *usage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        memset(usage->slot, 0x5a, sizeof usage->slot);
        (void)!write(ready[1], "r", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

/* Who had slots when bulkhead-share ended, as its file in the lease's folder says it. */
static void
write_owners(uint64_t lease, const struct bh_share_owner *owners, size_t count)
{
    char path[TEST_PATH * 2];
    FILE *file;

    snprintf(path, sizeof path, "%s/run/shares/%d/slots", the_node.folder, (int)lease);
    file = fopen(path, "r+e");
    assert_non_null(file);
    assert_int_equal(fwrite(owners, sizeof *owners, count, file), count);
    fclose(file);
}

/* A page that is found forged while the lease is opened, as one is after the node was killed. */
static void
test_found_while_it_opens(void **state)
{
    struct bh_share_owner owners[2] = { { 0 }, { .pid = INT32_MAX, .started = 1 } };
    struct bh_msg_notice reported;
    struct bh_err err;
    pid_t forger;

    start_with_shim();
    run_on_a_share(1, 0);
    bh_test_node_end(&the_node, SIGKILL);
    forger = start_forger();
    owners[0].pid = (uint32_t)forger;
    assert_int_equal(bh_share_started((uint32_t)forger, &owners[0].started, &err), BH_OK);
    write_owners(1, owners, 2);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    reported = bh_test_receive(BH_MSG_NOTICE, 1).notice;
    BH_CHECK_EQ("what", reported.kind, BH_JOB_NOTICE_FORGED);
    BH_CHECK_EQ("once", reported.count, 1);
    kill(forger, SIGKILL);
    waitpid(forger, NULL, 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_found_while_it_opens),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
