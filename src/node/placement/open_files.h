#ifndef BH_NODE_PLACEMENT_OPEN_FILES_H
#define BH_NODE_PLACEMENT_OPEN_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether a process has certain files open or mapped, as /proc shows: the descriptors of each of its threads
 * that has its own table, its mappings, and whether one of its sockets holds descriptors that were sent and
 * not yet received.  /proc does not say which files those are, and before Linux 5.11 it does not say that
 * there are any.
 *
 * The read may take long, and may hang in the kernel: call it in a separate process. */

enum { BH_OPEN_DEVICES_MAX = 32, BH_OPEN_FILES_MAX = 256 };

struct bh_open_wanted {
    struct {
        uint32_t major, minor;
    } devices[BH_OPEN_DEVICES_MAX]; /* character devices */
    struct {
        uint64_t device, inode;
    } files[BH_OPEN_FILES_MAX];
    uint32_t device_count, file_count;
};

/* Add the files of a folder; false: there are too many.  One that is not there has none. */
bool bh_open_want_folder(struct bh_open_wanted *wanted, const char *path);

/* The worst of what was found.  IN_FLIGHT: some descriptors are on their way to it. */
enum bh_open_found { BH_OPEN_NONE, BH_OPEN_IN_FLIGHT, BH_OPEN_MAPPED, BH_OPEN_HELD };

enum bh_open_found bh_open_look(pid_t pid, const struct bh_open_wanted *wanted);

#endif
