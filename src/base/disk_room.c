#include "base/disk_room.h"

#include <sys/statvfs.h>

#define KEPT_MOST (UINT64_C(256) << 20)

bool
bh_disk_room_is_left(uint64_t size, uint64_t free, uint64_t bytes)
{
    uint64_t kept = size / 8 < KEPT_MOST ? size / 8 : KEPT_MOST;

    return size == 0 || (free >= kept && free - kept >= bytes);
}

bool
bh_disk_leaves_room(int fd, uint64_t bytes)
{
    struct statvfs disk;

    return fstatvfs(fd, &disk) != 0
           || bh_disk_room_is_left(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize,
                                   bytes);
}
