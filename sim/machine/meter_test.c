/* The memory of a GPU, looked at while a job does what it likes with the files. */

#include "sim/machine/meter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/test.h"
#include "sim/machine/files.h"
#include "sim/machine/geometry.h"

static char dir[40];

static void
cut(uint32_t unit)
{
    char path[80];

    snprintf(path, sizeof(path), "%s/vram/unit-0-%u", dir, unit);
    assert_int_equal(truncate(path, 0), 0);
}

/* It reads as free memory, and is itself again when it is opened anew. */
static void
a_file_cut_short_kills_no_reader(void **state)
{
    struct sim_gpu gpu = { .minor = 0 };
    uint64_t bytes = (uint64_t)sim_model_at(gpu.model)->memory_mib << 20;
    static struct sim_meter_reading reading;
    struct sigaction own = { .sa_handler = SIG_IGN }, after = { 0 };
    struct sim_meter *meter;
    char folder[80];

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
    sim_meter_read(meter, &reading);
    BH_CHECK_EQ("of a slot", sim_meter_slot(&reading, 5), 0);
    sim_meter_close(meter);
    assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
    BH_CHECK("the process's own", after.sa_handler == SIG_IGN);
    assert_true(sim_remove_tree(dir));
    BH_CHECK_DONE();
}

/* A GPU's memory as NVML opens it, and its slots as a job has them. */
struct looked_at {
    struct sim_meter *meter;
    struct sim_slot *slots;
    int fd;
};

static struct looked_at
look_at(void)
{
    struct sim_gpu gpu = { .minor = 0 };
    uint64_t bytes = (uint64_t)sim_model_at(gpu.model)->memory_mib << 20;
    struct looked_at it;
    char path[80];

    snprintf(dir, sizeof(dir), "/tmp/bh-meter-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_true(sim_vram_publish(dir, &gpu, NULL));
    snprintf(path, sizeof(path), "%s/vram/0-w", dir);
    it.meter = sim_meter_open(path, &gpu, bytes);
    assert_non_null(it.meter);
    snprintf(path, sizeof(path), "%s/vram/0-w/0", dir);
    it.fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(it.fd >= 0);
    it.slots = mmap(NULL, SIM_SLOTS_MAX * sizeof(*it.slots), PROT_READ | PROT_WRITE, MAP_SHARED, it.fd, 0);
    assert_ptr_not_equal(it.slots, MAP_FAILED);
    return it;
}

/* So that what stands there is not a dead process's. */
static void
live_in(const struct looked_at *it, uint32_t slot)
{
    struct flock life = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1 };

    assert_int_equal(fcntl(it->fd, F_OFD_SETLK, &life), 0);
}

static void
look_away(const struct looked_at *it)
{
    munmap(it->slots, SIM_SLOTS_MAX * sizeof(*it->slots));
    close(it->fd);
    sim_meter_close(it->meter);
    assert_true(sim_remove_tree(dir));
}

static void
a_table_that_claims_to_be_longer_ends_where_it_ends(void **state)
{
    static const uint32_t highs[] = { SIM_SLOTS_MAX - 1, SIM_SLOTS_MAX, SIM_SLOTS_MAX + 100, 100000,
                                      0xFFFFFFFFu };
    static struct sim_meter_reading reading;

    for (size_t i = 0; i < sizeof(highs) / sizeof(highs[0]); i++) {
        struct looked_at it = look_at();

        it.slots[0].generation = highs[i];
        it.slots[1].kind = SIM_SLOT_PROCESS;
        it.slots[1].held = 3;
        live_in(&it, 1);
        BH_CHECK_EQ("used", sim_meter_used(it.meter), 3 * SIM_PAGE_BYTES);
        sim_meter_read(it.meter, &reading);
        BH_CHECK_EQ("used", reading.used_bytes, 3 * SIM_PAGE_BYTES);
        BH_CHECK_EQ("users", reading.users, 1);
        look_away(&it);
    }
    BH_CHECK_DONE();
}

/* A shared object counts for its maker only where that is a slot of the table, in use. */
static void
a_maker_that_is_none_pays_nothing(void **state)
{
    static const uint32_t makers[] = { 0, SIM_SLOTS_MAX, SIM_SLOTS_MAX + 2, 64 * SIM_SLOTS_MAX + 2,
                                       0xFFFFFC02u };
    static struct sim_meter_reading reading;

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        struct looked_at it = look_at();

        it.slots[0] = (struct sim_slot){ .generation = 2, .kind = SIM_SLOT_PROCESS };
        it.slots[1] = (struct sim_slot){ .kind = SIM_SLOT_SHARED,
                                         .held = 5,
                                         .creator = makers[i],
                                         .creator_generation = makers[i] == 0 ? 2 : 7 };
        it.slots[2] = (struct sim_slot){ .kind = SIM_SLOT_PROCESS, .generation = 7 };
        live_in(&it, 1);
        live_in(&it, 2);
        sim_meter_read(it.meter, &reading);
        BH_CHECK_EQ("users", reading.users, 1);
        BH_CHECK_EQ("slot", reading.user[0].slot, 1);
        BH_CHECK_EQ("bytes", reading.user[0].bytes, 5 * SIM_PAGE_BYTES);
        look_away(&it);
    }
    BH_CHECK_DONE();
}

/* Whatever the slots say: no user has more than there is, and all together neither. */
static void
none_has_more_than_there_is(void **state)
{
    static struct sim_meter_reading reading;
    struct looked_at it = look_at();

    it.slots[0].generation = 3;
    it.slots[1] = (struct sim_slot){ .kind = SIM_SLOT_PROCESS, .held = 0xFFFFFFFFu, .generation = 9 };
    for (uint32_t slot = 2; slot <= 3; slot++)
        it.slots[slot] = (struct sim_slot){
            .kind = SIM_SLOT_SHARED, .held = 0xFFFFFFFFu, .creator = 1, .creator_generation = 9
        };
    for (uint32_t slot = 1; slot <= 3; slot++)
        live_in(&it, slot);
    sim_meter_read(it.meter, &reading);
    BH_CHECK_EQ("used", reading.used_bytes, reading.total_bytes);
    BH_CHECK_EQ("users", reading.users, 1);
    BH_CHECK_EQ("bytes", reading.user[0].bytes, reading.total_bytes);
    BH_CHECK_EQ("of the slot", sim_meter_slot(&reading, 1), reading.total_bytes);
    BH_CHECK_EQ("used alone", sim_meter_used(it.meter), reading.total_bytes);
    look_away(&it);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_cut_short_kills_no_reader),
    cmocka_unit_test(a_table_that_claims_to_be_longer_ends_where_it_ends),
    cmocka_unit_test(a_maker_that_is_none_pays_nothing),
    cmocka_unit_test(none_has_more_than_there_is),
};
BH_TEST_MAIN(tests)
