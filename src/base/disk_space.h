#ifndef BH_BASE_DISK_SPACE_H
#define BH_BASE_DISK_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* What a file system has, in bytes: free for users without rights of their own, quotas of folders
 * included. */
struct bh_disk_space {
    uint64_t size, free;
};

/* Of the file system of `fd`, or of the folder `path`.  Where that cannot be known, and of a pipe,
 * the size is 0. */
struct bh_disk_space bh_disk_space_of(int fd);
struct bh_disk_space bh_disk_space_at(const char *path);

/* What jobs leave to the operators of the machine: an eighth of it, at most 256 MiB. */
uint64_t bh_disk_space_reserved(const struct bh_disk_space *space);

/* Whether `kept` bytes are still free when `bytes` more are taken.  True of size 0: writing to it
 * says what is wrong. */
bool bh_disk_space_is_left(const struct bh_disk_space *space, uint64_t reserved, uint64_t bytes);

/* Whether a job may take `bytes` more of the file system of `fd`: bh_disk_space_reserved is left. */
bool bh_disk_leaves_space(int fd, uint64_t bytes);

#endif
