#include "shim/driver/pages.h"

#include <sys/mman.h>
#include <unistd.h>

void *
bh_pages_map(int fd, size_t bytes, int protection, void *at)
{
    off_t size = lseek(fd, 0, SEEK_END); /* fstat is no function of C libraries before 2.33 */
    void *memory;

    if (size < (off_t)bytes)
        return NULL;
    memory = mmap(at, bytes, protection, MAP_SHARED | (at != NULL ? MAP_FIXED : 0), fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool
bh_pages_are_good(const struct bh_share_limits *limits)
{
    return limits->magic == BH_SHARE_MAGIC && limits->version == BH_SHARE_VERSION
           && limits->device_count <= BH_SHARE_DEVICES_MAX;
}
