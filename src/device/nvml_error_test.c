#include "device/nvml_internal.h"

#include "base/test.h"

static const struct {
    const char *name;
    nvmlReturn_t result;
    bh_rc rc;
    bool lost, hint;
} cases[] = {
    { "no driver", NVML_ERROR_DRIVER_NOT_LOADED, BH_UNAVAILABLE, false, true },
    { "mismatch", NVML_ERROR_LIB_RM_VERSION_MISMATCH, BH_UNAVAILABLE, false, true },
    { "no symbol", NVML_ERROR_FUNCTION_NOT_FOUND, BH_UNAVAILABLE, false, true },
    { "not supported", NVML_ERROR_NOT_SUPPORTED, BH_UNAVAILABLE, false, false },
    { "bad argument", NVML_ERROR_INVALID_ARGUMENT, BH_INVALID, false, false },
    { "not root", NVML_ERROR_NO_PERMISSION, BH_DENIED, false, true },
    { "not found", NVML_ERROR_NOT_FOUND, BH_NOT_FOUND, false, false },
    { "place taken", NVML_ERROR_INSUFFICIENT_RESOURCES, BH_FULL, false, false },
    { "in use", NVML_ERROR_IN_USE, BH_CONFLICT, false, false },
    { "needs reset", NVML_ERROR_RESET_REQUIRED, BH_CONFLICT, true, true },
    { "lost", NVML_ERROR_GPU_IS_LOST, BH_NOT_FOUND, true, true },
    { "driver slow", NVML_ERROR_TIMEOUT, BH_UNCERTAIN, false, false },
    { "unknown", NVML_ERROR_UNKNOWN, BH_IO, false, false },
    { "of the future", (nvmlReturn_t)31, BH_IO, false, false },
};

static void
test_map(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };
        bh_rc rc = bh_nvml_fail(&err, cases[i].result, "cannot carve %s", "1g.10gb");

        BH_CHECK_EQ(cases[i].name, rc, cases[i].rc);
        BH_CHECK_EQ(cases[i].name, err.rc, cases[i].rc);
        BH_CHECK_EQ(cases[i].name, err.sys_kind, BH_SYS_NVML);
        BH_CHECK_EQ(cases[i].name, err.sys, cases[i].result);
        BH_CHECK_EQ(cases[i].name, strncmp(err.msg, "cannot carve 1g.10gb: ", 22), 0);
        BH_CHECK_EQ(cases[i].name, err.hint[0] != '\0', cases[i].hint);
        BH_CHECK_EQ(cases[i].name, bh_nvml_lost(cases[i].result), cases[i].lost);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_map),
};

BH_TEST_MAIN(tests)
