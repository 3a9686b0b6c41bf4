#include "base/disk_space.h"

#include <sys/statvfs.h>

#define RESERVED_MAX (UINT64_C(256) << 20)

static struct bh_disk_space
space_of(int failed, const struct statvfs *disk)
{
    if (failed)
        return (struct bh_disk_space){ 0 };
    return (struct bh_disk_space){ disk->f_blocks * disk->f_frsize, disk->f_bavail * disk->f_frsize };
}

struct bh_disk_space
bh_disk_space_of(int fd)
{
    struct statvfs disk = { 0 };
    int failed = fstatvfs(fd, &disk);

    return space_of(failed, &disk);
}

struct bh_disk_space
bh_disk_space_at(const char *path)
{
    struct statvfs disk = { 0 };
    int failed = statvfs(path, &disk);

    return space_of(failed, &disk);
}

uint64_t
bh_disk_space_reserved(const struct bh_disk_space *space)
{
    return space->size / 8 < RESERVED_MAX ? space->size / 8 : RESERVED_MAX;
}

bool
bh_disk_space_is_left(const struct bh_disk_space *space, uint64_t reserved, uint64_t bytes)
{
    return space->size == 0 || (space->free >= reserved && space->free - reserved >= bytes);
}

bool
bh_disk_leaves_space(int fd, uint64_t bytes)
{
    struct bh_disk_space space = bh_disk_space_of(fd);

    return bh_disk_space_is_left(&space, bh_disk_space_reserved(&space), bytes);
}
