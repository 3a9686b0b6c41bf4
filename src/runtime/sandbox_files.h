#ifndef BH_RUNTIME_SANDBOX_FILES_H
#define BH_RUNTIME_SANDBOX_FILES_H

#include "ports/runtime.h"

/* Inodes that are one sandbox's alone, where a runtime would show the machine's: its /dev, and what
 * stands in the place of what is masked in /proc and /sys (docs/adr/0067).  All lie in the bundle,
 * which must be on a file system that was mounted without nodev. */

/* Names in the bundle. */
#define BH_SANDBOX_FILES_DEV "dev" /* the whole of /dev, but what is mounted on pts and shm */
#define BH_SANDBOX_FILES_NO_FILE "hidden-file"
#define BH_SANDBOX_FILES_NO_FOLDER "hidden"

/* Make them: every standard node and those of sandbox->devices, owned by the sandbox's root.
 * BH_INVALID: a device's path is not below /dev; BH_IO. */
BH_MUST_USE bh_rc bh_sandbox_files_make(const struct bh_sandbox *sandbox, struct bh_err *err);

enum bh_masked_kind { BH_MASKED_FILE, BH_MASKED_FOLDER, BH_MASKED_ABSENT };
enum { BH_MASKED_MAX = 2000 }; /* a machine's disks are many, and each path to one counts */

struct bh_masked {
    char path[256];
    enum bh_masked_kind kind;
};

struct bh_masked_list {
    struct bh_masked items[BH_MASKED_MAX];
    uint32_t count;
};

/* The rows of tables/masked.tbl, in their order, as they are on this machine now.  BH_FULL: those are
 * more than the list holds, or a path is too long; BH_IO.  Then it is not whole: no job must be shown
 * the rest. */
BH_MUST_USE bh_rc bh_masked_read(struct bh_masked_list *ret_masked, struct bh_err *err);

/* Add what one row stands for; as bh_masked_read. */
BH_MUST_USE bh_rc bh_masked_add(struct bh_masked_list *list, const char *row, struct bh_err *err);

#endif
