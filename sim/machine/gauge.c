#include "sim/machine/gauge.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/machine/files.h"
#include "sim/machine/queue.h"
#include "sim/machine/sim.h"

struct sim_gauge {
    struct sim_device device; /* of which little is touched */
};

static uint64_t
gauge_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool
read_part(int fd, struct sim_device *device, void *part, size_t length)
{
    return pread(fd, part, length, (char *)part - (char *)device) == (ssize_t)length;
}

/* Of a slot that has nothing to do its works are not read. */
static bool
read_slot(int fd, struct sim_device *device, struct sim_task_slot *slot)
{
    static const size_t head = offsetof(struct sim_task_slot, work);

    return read_part(fd, device, slot, head)
           && (slot->birth == 0 || slot->first == slot->next
               || read_part(fd, device, slot->work, sizeof(slot->work)));
}

static bool
read_device(int fd, struct sim_device *device)
{
    bool got = read_part(fd, device, device, offsetof(struct sim_device, slot));

    for (uint32_t i = 0; got && i < SIM_TASK_SLOTS; i++) {
        got = read_slot(fd, device, &device->slot[i]);
        if (device->slot[i].birth != 0 && !sim_queue_is_alive(fd, i))
            device->slot[i].birth = 0;
    }
    return got && device->magic == SIM_DEVICE_MAGIC;
}

struct sim_gauge *
sim_gauge_open(const char *folder)
{
    struct sim_gauge *gauge = calloc(1, sizeof(*gauge));
    char path[SIM_PATH_MAX];
    int fd = gauge != NULL && sim_path(path, "%s/" SIM_TASK_FILE, folder)
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    bool got = fd >= 0 && read_device(fd, &gauge->device);
    uint64_t now_ns;

    if (fd >= 0)
        close(fd);
    if (!got) {
        free(gauge);
        return NULL;
    }
    now_ns = sim_queue_now();
    sim_task_repair(&gauge->device, now_ns);
    sim_task_advance(&gauge->device, now_ns);
    return gauge;
}

void
sim_gauge_close(struct sim_gauge *gauge)
{
    free(gauge);
}

uint64_t
sim_gauge_at(const struct sim_gauge *gauge)
{
    return gauge->device.now_ns;
}

bool
sim_gauge_busy(const struct sim_gauge *gauge, uint32_t user, uint64_t *ret_busy_ns)
{
    uint64_t busy_ns = 0, submitted = 0;

    for (uint32_t i = 0; i < SIM_TASK_SLOTS; i++) {
        const struct sim_task_slot *slot = &gauge->device.slot[i];

        if (slot->birth == 0 || slot->user != user)
            continue;
        busy_ns += slot->busy_ns;
        submitted += slot->submitted;
    }
    if (submitted > 0)
        *ret_busy_ns = gauge_least(busy_ns, gauge->device.now_ns);
    return submitted > 0;
}

static bool
is_users(const struct sim_device *device, uint32_t user, uint64_t birth)
{
    for (uint32_t i = 0; birth != 0 && i < SIM_TASK_SLOTS; i++)
        if (device->slot[i].birth == birth)
            return device->slot[i].user == user;
    return false;
}

bool
sim_gauge_share_of(const struct sim_gauge *gauge, uint32_t user, uint64_t since_ns,
                   struct sim_gauge_share *ret_share)
{
    const struct sim_device *device = &gauge->device;
    uint64_t all_ns = 0, busy_ns = 0, last_ns = 0, percent;

    for (uint32_t i = 0; i < SIM_TASK_SAMPLES; i++) {
        const struct sim_task_sample *sample = &device->sample[i];

        if (sample->end_ns <= since_ns || sample->end_ns > device->now_ns)
            continue;
        all_ns += SIM_TASK_SAMPLE_NS;
        if (!is_users(device, user, sample->birth))
            continue;
        busy_ns += gauge_least(sample->busy_ns, SIM_TASK_SAMPLE_NS);
        last_ns = sample->end_ns > last_ns ? sample->end_ns : last_ns;
    }
    percent = all_ns == 0 ? 0 : (busy_ns * 100 + all_ns / 2) / all_ns;
    if (percent == 0)
        return false;
    *ret_share = (struct sim_gauge_share){ percent < 100 ? (unsigned)percent : 100, last_ns };
    return true;
}
