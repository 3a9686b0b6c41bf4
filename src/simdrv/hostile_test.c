/* What jobs can write, looked at by those who are not the job: whatever stands there. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/test.h"
#include "simdrv/files.h"
#include "simdrv/gauge.h"
#include "simdrv/queue.h"
#include "simdrv/vram.h"

#define MINUTE_NS (60ull * 1000000000u)

static char dir[40], folder[80];

static void
make_server(void)
{
    struct sim_gpu gpu = { .minor = 0 };

    snprintf(dir, sizeof(dir), "/tmp/bh-hostile-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_true(sim_vram_publish(dir, &gpu, NULL));
    snprintf(folder, sizeof(folder), "%s/vram/0-w", dir);
}

/* A file of the folder, as a job has it. */
static void *
map_file(const char *name, size_t length)
{
    char path[SIM_PATH_MAX];
    void *map = MAP_FAILED;
    int fd = sim_path(path, "%s/%s", folder, name) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    close(fd);
    return map;
}

/* ---- moments ---- */

/* What the record says beside the moment that it is: later, by so much. */
static const struct moment {
    const char *name;
    uint64_t later_ns, busy_ns, sample_ns;
} moments[] = {
    { "in a minute", MINUTE_NS, 0, 0 },
    { "in ten years", 60 * 24 * 3650 * MINUTE_NS, 0, 0 },
    { "never", UINT64_MAX / 2, UINT64_MAX, UINT64_MAX },
    { "busy before the clock began", 0, UINT64_MAX, 0 },
    { "busy more than the sample is long", 0, 0, UINT64_MAX / 100 },
};

static void
check_moment(const struct moment *moment)
{
    struct sim_queue *queue = sim_queue_open(folder, 7);
    struct sim_device *device = map_file(SIM_TASK_FILE, sizeof(*device));
    uint64_t before = sim_queue_now(), busy_ns = 0, number = before / SIM_TASK_SAMPLE_NS;
    struct sim_gauge_share share = { 0 };
    struct sim_gauge *gauge;

    assert_non_null(queue);
    device->slot[0].submitted = 1;
    device->slot[0].busy_ns = moment->busy_ns;
    device->sample[number % SIM_TASK_SAMPLES] = (struct sim_task_sample) {
        number * SIM_TASK_SAMPLE_NS, device->slot[0].birth, moment->sample_ns
    };
    device->now_ns = before + moment->later_ns;
    gauge = sim_gauge_open(folder);
    assert_non_null(gauge);
    BH_CHECK(moment->name, sim_gauge_at(gauge) >= before);
    BH_CHECK(moment->name, sim_gauge_at(gauge) <= sim_queue_now());
    BH_CHECK(moment->name, sim_gauge_busy(gauge, 7, &busy_ns));
    BH_CHECK(moment->name, busy_ns <= sim_gauge_at(gauge));
    if (sim_gauge_share_of(gauge, 7, 0, &share)) {
        BH_CHECK(moment->name, share.percent <= 100);
        BH_CHECK(moment->name, share.last_ns <= sim_gauge_at(gauge));
    }
    sim_gauge_close(gauge);
    /* and others on the same device go on */
    BH_CHECK_EQ(moment->name, sim_queue_depth(queue), 0);
    sim_queue_lock(queue);
    BH_CHECK(moment->name, device->now_ns <= sim_queue_now());
    sim_queue_unlock(queue);
    sim_queue_close(queue);
    munmap(device, sizeof(*device));
}

static void
no_moment_is_later_than_now(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        make_server();
        check_moment(&moments[i]);
        assert_true(sim_remove_tree(dir));
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_moment_is_later_than_now),
};
BH_TEST_MAIN(tests)
