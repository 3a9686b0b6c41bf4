#ifndef BH_DAEMON_STATE_KEYRING_H
#define BH_DAEMON_STATE_KEYRING_H

#include "daemon/journal/config.h"
#include "keys/keys.h"
#include "keys/root.h"

/* The key tree with its root's file, as the core carries both: what the tree does in a
 * transaction, the keyring finishes when that is committed.  Owner thread. */
struct bh_keyring {
    struct bh_keys *keys;
    struct bh_store store;
    struct bh_root root;     /* where the root key stands; the key itself is wiped */
    bool rotating;           /* the open transaction wraps by a new root key */
    bool scrub_due;          /* something was destroyed: the store is to be scrubbed */
    uint64_t scrub_after_ns; /* not before; monotonic */
};

/* Find the root key, finish or take back a rotation that a crash cut, and read the tree.
 * A first start makes the root key's file.
 *   results of bh_root_load and bh_keys_open */
BH_MUST_USE bh_rc bh_keyring_open(struct bh_keyring *ring, const struct bh_daemon_config *config,
                                  struct bh_store store, const struct bh_crypto_ops *crypto,
                                  struct bh_err *err);
void bh_keyring_close(struct bh_keyring *ring);

/* Wrap the tenants' keys by another root key, within the open transaction; `next` NULL makes
 * one.  A file of the daemon is replaced once it is committed; a credential is not its own to
 * replace: with `next` the caller sees to it, without it is BH_CONFLICT,
 * and so it is while the file of an earlier rotation is not replaced yet. */
BH_MUST_USE bh_rc bh_keyring_rotate(struct bh_keyring *ring, const struct bh_crypto_ops *crypto,
                                    const uint8_t *next, uint64_t *ret_count, struct bh_err *err);

/* The transaction was committed, or thrown away; or nothing happened, and it is time to try
 * again what could not be finished.  Failures are logged, and tried again. */
void bh_keyring_committed(struct bh_keyring *ring);
BH_MUST_USE bh_rc bh_keyring_aborted(struct bh_keyring *ring, struct bh_err *err);
void bh_keyring_rest(struct bh_keyring *ring);

#endif
