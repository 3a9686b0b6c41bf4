#include "base/disk_room.h"

#include <sys/statvfs.h>

#define KEPT_MOST (UINT64_C(256) << 20)

static struct bh_disk_room
room_of(int failed, const struct statvfs *disk)
{
    if (failed)
        return (struct bh_disk_room){ 0 };
    return (struct bh_disk_room){ disk->f_blocks * disk->f_frsize, disk->f_bavail * disk->f_frsize };
}

struct bh_disk_room
bh_disk_room_of(int fd)
{
    struct statvfs disk = { 0 };
    int failed = fstatvfs(fd, &disk);

    return room_of(failed, &disk);
}

struct bh_disk_room
bh_disk_room_at(const char *path)
{
    struct statvfs disk = { 0 };
    int failed = statvfs(path, &disk);

    return room_of(failed, &disk);
}

uint64_t
bh_disk_room_kept(const struct bh_disk_room *room)
{
    return room->size / 8 < KEPT_MOST ? room->size / 8 : KEPT_MOST;
}

bool
bh_disk_room_is_left(const struct bh_disk_room *room, uint64_t kept, uint64_t bytes)
{
    return room->size == 0 || (room->free >= kept && room->free - kept >= bytes);
}

bool
bh_disk_leaves_room(int fd, uint64_t bytes)
{
    struct bh_disk_room room = bh_disk_room_of(fd);

    return bh_disk_room_is_left(&room, bh_disk_room_kept(&room), bytes);
}
