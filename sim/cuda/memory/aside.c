#include "sim/cuda/memory/aside.h"

#include <sys/mman.h>
#include <unistd.h>

#include "sim/machine/vram.h"

int
sim_aside_new(void)
{
    return memfd_create(SIM_ASIDE_NAME, MFD_CLOEXEC);
}

off_t
sim_aside_at(uint32_t index, uint32_t count)
{
    uint64_t head =
        (count * sizeof(struct sim_saved) + SIM_BLOCK_BYTES - 1) / SIM_BLOCK_BYTES * SIM_BLOCK_BYTES;

    return (off_t)(head + index * SIM_PAGE_BYTES);
}

uint32_t
sim_aside_count(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);
    uint32_t count = (uint32_t)((uint64_t)(end < 0 ? 0 : end) / SIM_PAGE_BYTES);

    while (count > 0 && sim_aside_at(count, count) > end)
        count--;
    return count;
}

uint32_t
sim_saved_find(const struct sim_saved *saved, uint32_t count, uint32_t page)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (saved[middle].before < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && saved[low].before == page ? saved[low].after : page;
}
