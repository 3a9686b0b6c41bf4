/* The files that a store writes are those at its path. */
#include <sys/stat.h>

#include <stdio.h>

#include "store/sqlite_internal.h"

/* Of the database, and of its log, which is there while the writer is open. */
static const char *const endings[BH_SQLITE_FILES] = { "", "-wal" };

/* 0: there is none. */
static uint64_t
files_read_inode(const struct bh_sqlite *store, const char *ending)
{
    char path[4096 + 8];
    struct stat status;

    snprintf(path, sizeof path, "%s%s", store->path, ending);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

void
bh_sqlite_keep_files(struct bh_sqlite *store)
{
    for (size_t i = 0; i < BH_SQLITE_FILES; i++)
        store->inodes[i] = files_read_inode(store, endings[i]);
}

bh_rc
bh_sqlite_check_files(void *self, struct bh_err *err)
{
    const struct bh_sqlite *store = self;

    for (size_t i = 0; i < BH_SQLITE_FILES; i++)
        if (store->inodes[i] && files_read_inode(store, endings[i]) != store->inodes[i])
            return bh_err_set(err, BH_CONFLICT, "%s%s was removed or replaced while it is in use",
                              store->path, endings[i]);
    return BH_OK;
}
