/* Philly's jobs, where the data is: that all are read, and that the engine keeps its
 * invariants over the first of them. */
#include "lab/load/philly.h"

#include <stdlib.h>
#include <unistd.h>

#include "lab/load/run_test.h"

static char path[4096];

static void
all_jobs_are_read(void **state)
{
    struct bh_load load = { 0 };
    struct bh_err err = { 0 };

    if (bh_philly_read(path, &load, &err) != BH_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(load.job_count, 13716);
    assert_int_equal(load.tenant_count, 15);
    assert_int_equal(bh_load_scale(&load, 1000, &err), BH_OK);
    run_some(&load, 500);
    bh_load_fini(&load);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(all_jobs_are_read) };

int
main(int argc, char **argv)
{
    const char *folder = getenv("BULKHEAD_DATA");

    if (!folder)
        folder = argc > 1 ? argv[1] : "../shared/data";
    snprintf(path, sizeof path, "%s/philly/philly_vc_jobs.csv", folder);
    if (access(path, R_OK) != 0) {
        printf("1..0 # SKIP there is no %s\n", path);
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
