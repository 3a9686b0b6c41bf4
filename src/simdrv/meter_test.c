/* The memory of a GPU, looked at while a job does what it likes with the files. */

#include "simdrv/meter.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "simdrv/files.h"
#include "simdrv/geometry.h"

static char dir[40];

static void
cut(uint32_t unit)
{
    char path[80];

    snprintf(path, sizeof(path), "%s/vram/unit-0-%u", dir, unit);
    assert_int_equal(truncate(path, 0), 0);
}

/* It reads as memory that nobody has, and is itself again when it is opened anew. */
static void
a_file_cut_short_kills_nobody_who_looks(void **state)
{
    struct sim_gpu gpu = { .minor = 0 };
    uint64_t bytes = (uint64_t)sim_model_at(gpu.model)->memory_mib << 20;
    static struct sim_meter_reading reading;
    struct sigaction own = { .sa_handler = SIG_IGN }, after = { 0 };
    struct sim_meter *meter;
    char folder[80];

    (void)state;
    assert_int_equal(sigaction(SIGBUS, &own, NULL), 0);
    snprintf(dir, sizeof(dir), "/tmp/bh-meter-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_true(sim_vram_publish(dir, &gpu, NULL));
    snprintf(folder, sizeof(folder), "%s/vram/0-w", dir);
    meter = sim_meter_open(folder, &gpu, bytes);
    assert_non_null(meter);
    for (uint32_t unit = 0; unit < sim_model_at(gpu.model)->units; unit++)
        cut(unit);
    BH_CHECK_EQ("used", sim_meter_used(meter), 0);
    sim_meter_read(meter, &reading);
    BH_CHECK_EQ("users", reading.users, 0);
    BH_CHECK("away", !sim_meter_is_away(meter, 1));
    sim_meter_close(meter);
    meter = sim_meter_open(folder, &gpu, bytes);
    assert_non_null(meter);
    cut(0);
    BH_CHECK_EQ("of a slot", sim_meter_slot(meter, 5), 0);
    sim_meter_close(meter);
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    BH_CHECK("the process's own", after.sa_handler == SIG_IGN);
    assert_true(sim_remove_tree(dir));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_cut_short_kills_nobody_who_looks),
};
BH_TEST_MAIN(tests)
