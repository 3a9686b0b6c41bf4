/* A symbol that the library lacks costs what needs it and nothing else.
 *   device_old_test LIBRARY */
#include "base/test.h"
#include "device/nvml.h"

static const char *library;

static void
test_old_library(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_inventory found = { 0 };
    struct bh_device_instance made;
    struct bh_device_process *users;
    struct bh_device_samples samples = { .since_us = 0 };
    struct bh_device_event event;
    struct bh_device device;
    struct bh_err err = { 0 };
    uint32_t count;

    assert_int_equal(bh_device_nvml_open(&(struct bh_device_options){ .library = library }, &device, &err),
                     BH_OK);
    BH_CHECK_EQ("scan", device.ops->scan(device.self, arena, &found, &err), BH_OK);
    assert_int_equal(found.gpu_count, 1);
    BH_CHECK_STR("driver", found.driver, "319.37");
    BH_CHECK_STR("product", found.gpus[0].product, "Tesla K20");
    BH_CHECK_EQ("memory, by the older call", found.gpus[0].memory_mib, 5120);
    BH_CHECK_EQ("memory used", found.gpus[0].memory_used_mib, 1024);
    BH_CHECK_EQ("no utilisation", found.gpus[0].utilisation, 255);
    BH_CHECK("no MIG", !found.gpus[0].mig_capable && !found.gpus[0].mig_enabled);
    BH_CHECK_EQ("set_mig", device.ops->set_mig(device.self, "GPU-old", true, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("carve", device.ops->carve(device.self, "GPU-old", "1g.10gb", 0, &made, &err),
                BH_UNAVAILABLE);
    BH_CHECK_EQ("destroy", device.ops->destroy(device.self, "GPU-old", 1, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("processes", device.ops->processes(device.self, "GPU-old", arena, &users, &count, &err),
                BH_UNAVAILABLE);
    BH_CHECK_EQ("busy", device.ops->busy(device.self, "GPU-old", arena, &samples, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("events", device.ops->next_event(device.self, 0, &event, &err), BH_UNAVAILABLE);
    BH_CHECK_STR("why", err.msg, "cannot make an event set: this driver is too old for it");
    device.ops->close(device.self);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_old_library),
};

int
main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    library = argv[1];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
