/* The network port's contract, on every back end: fake always, the kernel's where this machine
 * lets it (root, nft), in namespaces of the test's own. */

#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "tests/fakes/network.h"
#include "job_network/kernel.h"
#include "job_network/netns.h"
#include "job_network/testbed_test.h"

static struct {
    struct bh_network network;
    struct bh_testbed testbed;
    bool kernel;
    char marker[96];
} it;

static const char *const uplinks[] = { "up0" };

static struct bh_network_place
place(uint32_t slot)
{
    return it.kernel ? bh_testbed_place(&it.testbed, slot) : (struct bh_network_place){ "", "" };
}

static bh_rc
attach(const struct bh_network_job *job)
{
    struct bh_network_place at = place(job->slot);
    struct bh_err err = { 0 };
    bh_rc rc = it.network.ops->attach(it.network.self, job, &at, &err);

    if (rc == BH_IO)
        fprintf(stderr, "# %s\n", err.msg);
    return rc;
}

static bh_rc
detach(uint32_t slot)
{
    struct bh_network_place at = place(slot);
    struct bh_err err;
    bh_rc rc = it.network.ops->detach(it.network.self, slot, &err);

    if (it.kernel)
        bh_netns_unmount(&at);
    return rc;
}

static bh_rc
count(uint32_t slot)
{
    struct bh_network_counters counters = { .rx_bytes = 77 };
    struct bh_err err;
    bh_rc rc = it.network.ops->counters(it.network.self, slot, &counters, &err);

    BH_CHECK_EQ("untouched on failure", counters.rx_bytes, rc == BH_OK ? 0 : 77);
    return rc;
}

static void
test_attach(void **state)
{
    static const struct {
        const char *name;
        struct bh_network_job job;
        bh_rc rc;
    } cases[] = {
        { "tenant", { 0, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_OK },
        { "its neighbour", { 1, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_OK },
        { "egress", { 2, BH_NETWORK_EGRESS, 2, 0, NULL, 0, NULL, 0 }, BH_OK },
        { "capped", { 3, BH_NETWORK_TENANT, 3, 1000000, NULL, 0, NULL, 0 }, BH_OK },
        { "slot in use", { 1, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_CONFLICT },
        { "last address", { 252, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_OK },
        { "past the pool", { 253, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_RANGE },
        { "far past it", { UINT32_MAX, BH_NETWORK_TENANT, 1, 0, NULL, 0, NULL, 0 }, BH_RANGE },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, attach(&cases[i].job), cases[i].rc);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_CHECK_EQ(cases[i].name, detach(cases[i].job.slot), BH_OK);
        BH_CHECK_EQ("twice", detach(cases[i].job.slot), BH_OK);
        BH_CHECK_EQ("gone", count(cases[i].job.slot), BH_NOT_FOUND);
    }
    BH_CHECK_DONE();
}

static void
test_again(void **state)
{
    const struct bh_network_job job = { .slot = 5, .mode = BH_NETWORK_TENANT, .group = 1 };

    BH_CHECK_EQ("before", count(5), BH_NOT_FOUND);
    for (int times = 0; times < 2; times++) {
        BH_CHECK_EQ("attach", attach(&job), BH_OK);
        BH_CHECK_EQ("there", count(5), BH_OK);
        BH_CHECK_EQ("detach", detach(5), BH_OK);
    }
    BH_CHECK_DONE();
}

static void
test_restore(void **state)
{
    const struct bh_network_job jobs[] = {
        { .slot = 7, .mode = BH_NETWORK_TENANT, .group = 1 },
        { .slot = 8, .mode = BH_NETWORK_EGRESS, .group = 2 },
        { .slot = 9, .mode = BH_NETWORK_TENANT, .group = 1 },
    };
    const struct bh_network_ops *ops = it.network.ops;
    struct bh_err err = { 0 };
    bool made = true;

    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        BH_CHECK_EQ("attach", attach(&jobs[i]), BH_OK);
    BH_CHECK_EQ("two of three", ops->restore(it.network.self, jobs, 2, &err), BH_OK);
    BH_CHECK_EQ("kept", count(7), BH_OK);
    BH_CHECK_EQ("kept", count(8), BH_OK);
    BH_CHECK_EQ("collected", count(9), BH_NOT_FOUND);
    BH_CHECK_EQ("nothing to repair", ops->repair(it.network.self, &made, &err), BH_OK);
    BH_CHECK("nothing to repair", !made);
    BH_CHECK_EQ("slot is free", attach(&jobs[2]), BH_OK);
    BH_CHECK_EQ("none", ops->restore(it.network.self, NULL, 0, &err), BH_OK);
    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        BH_CHECK_EQ("none", detach(jobs[i].slot), BH_OK);
    BH_CHECK_DONE();
}

static void
test_check(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("tenant", it.network.ops->check(it.network.self, BH_NETWORK_TENANT, &err), BH_OK);
    BH_CHECK_EQ("egress", it.network.ops->check(it.network.self, BH_NETWORK_EGRESS, &err), BH_OK);
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    struct bh_err err;
    struct bh_kernel_options options = { .nft = "nft",
                                         .marker = it.marker,
                                         .pool = { 0x0ad50000, 24 },
                                         .uplinks = uplinks,
                                         .uplink_count = 1,
                                         .may_forward = true };

    if (!it.kernel)
        return bh_fake_network_open(&it.network, &err) != BH_OK;
    bh_testbed_enter(&it.testbed);
    snprintf(it.marker, sizeof it.marker, "%s/forwarding", it.testbed.folder);
    return bh_kernel_network_open(&options, &it.network, &err) != BH_OK;
}

static int
tear_down(void **state)
{
    it.network.ops->close(it.network.self);
    if (it.kernel)
        bh_testbed_leave(&it.testbed);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attach),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_check),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    it.kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
    if (it.kernel && bh_testbed_obstacle()) {
        printf("1..0 # SKIP %s\n", bh_testbed_obstacle());
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
