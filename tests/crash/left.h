#ifndef BH_CRASH_LEFT_H
#define BH_CRASH_LEFT_H

/* Folders for what a crash left, and starting the core on it.  Tests only. */

#include "daemon/fixture/fixture_test.h"

#include "audit/verify.h"
#include "store/audit.h"

static inline void
left_make_folder(char folder[64])
{
    snprintf(folder, 64, "/dev/shm/bh-crash-XXXXXX");
    if (mkdtemp(folder))
        return;
    snprintf(folder, 64, "/tmp/bh-crash-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void
left_empty(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    assert_non_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

static inline void
left_remove(const char *path)
{
    left_empty(path);
    assert_int_equal(rmdir(path), 0);
}

/* As open_core of the fixture, but a store that refuses is a result, too.  Close either way
 * with left_close. */
static inline bh_rc
left_open(struct fixture *f)
{
    char path[128];
    bh_rc rc = prepare_core(f);

    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    rc = bh_store_sqlite_open(path, BH_STORE_WRITE, f->core.crypto, &f->core.store, &f->err);
    if (rc != BH_OK)
        return rc;
    f->core.hub = bh_hub_new();
    return bh_core_open(&f->core, &f->err);
}

static inline void
left_close(struct fixture *f)
{
    if (f->core.store.ops)
        close_core(f);
}

/* Whether the whole log of an open core verifies. */
static inline bool
left_verifies(struct fixture *f)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    bh_rc rc;

    assert_non_null(verifier);
    bh_audit_verifier_init(verifier, f->core.crypto, &f->core.journal.key);
    rc = bh_store_audit(&f->core.store, verifier, &f->err);
    free(verifier);
    return rc == BH_OK;
}

#endif
