#ifndef BH_BASE_DISK_ROOM_H
#define BH_BASE_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the file system of `fd`, when `bytes` more are taken of it, keeps what those who run the
 * machine need: an eighth of it, at most 256 MiB.  True where that cannot be known. */
bool bh_disk_leaves_room(int fd, uint64_t bytes);

/* The same of a file system of so many bytes, of which `free` are free; 0 bytes: it is none, as a
 * pipe. */
bool bh_disk_room_is_left(uint64_t size, uint64_t free, uint64_t bytes);

#endif
