#ifndef BH_STORE_SQLITE_H
#define BH_STORE_SQLITE_H

#include "ports/store.h"

/* The store in one SQLite file (WAL, synchronous=FULL): one writer connection for the owner thread and a
 * small pool of readers for all other threads. */
struct bh_crypto_ops;

enum bh_store_mode {
    BH_STORE_WRITE,   /* made when missing, locked against other programs */
    BH_STORE_READ,    /* beside a running bulkheadd; writer calls answer BH_UNAVAILABLE */
    BH_STORE_SNAPSHOT /* the same, and all that its one thread reads is of one moment */
};

enum { BH_STORE_READERS_MAX = 8 };

/* Open the store at `path`; its folder exists.  `crypto` makes the leaf hashes kept
 * beside the records.  Close with ret_store->ops->close.
 *
 * When the disk refuses to flush a commit twice over, commit answers BH_UNCERTAIN: this
 * program sees nothing of the transaction, but after a crash it may be there.
 *
 * A sink runs while its reader is taken: it must not call the store.
 *   BH_UNAVAILABLE  another program has it open for writing
 *   BH_CONFLICT     written by a newer Bulkhead
 *   BH_NOT_FOUND    nothing there (BH_STORE_READ)
 *   BH_DENIED, BH_FULL, BH_IO */
BH_MUST_USE bh_rc bh_store_sqlite_open(const char *path, enum bh_store_mode mode,
                                       const struct bh_crypto_ops *crypto, struct bh_store *ret_store,
                                       struct bh_err *err);

/* Whether the whole file is as SQLite makes it.  BH_CONFLICT: it is damaged; and what reading
 * answers. */
BH_MUST_USE bh_rc bh_store_sqlite_check(const struct bh_store *store, struct bh_err *err);

/* Whether a failed read says that the file is damaged, and not that it cannot be read now. */
bool bh_store_sqlite_is_damage(const struct bh_err *err);

#endif
