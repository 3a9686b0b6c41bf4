#include "daemon/state/keyring.h"

#include <string.h>

#include "base/log.h"
#include "base/time.h"

static const uint64_t scrub_pause_ns = 5 * BH_NS_PER_S;

struct keyring_found {
    bool any, destroyed;
};

static bool
keyring_find_destroyed(void *self, const struct bh_key_row *row)
{
    struct keyring_found *found = self;

    found->any = true;
    found->destroyed = found->destroyed || row->shredded_ns > 0;
    return true;
}

static bh_rc
keyring_open_with(struct bh_keyring *ring, const struct bh_crypto_ops *crypto, const uint8_t *root,
                  struct bh_err *err)
{
    struct bh_keys_options options = { .store = ring->store, .crypto = crypto };
    bh_rc rc;

    memcpy(options.root, root, sizeof options.root);
    rc = bh_keys_open(&options, &ring->keys, err);
    explicit_bzero(options.root, sizeof options.root);
    return rc;
}

/* The one of the two that fits the tree shows whether the rotation was committed. */
static bh_rc
keyring_open_tree(struct bh_keyring *ring, const struct bh_crypto_ops *crypto, struct bh_err *err)
{
    struct bh_root *root = &ring->root;
    bh_rc rc = keyring_open_with(ring, crypto, root->key, err);

    if (!root->staged)
        return rc;
    if (rc == BH_OK)
        return bh_root_unstage(root, err);
    if (rc == BH_CONFLICT)
        rc = keyring_open_with(ring, crypto, root->next, err);
    return rc == BH_OK ? bh_root_commit(root, err) : rc;
}

bh_rc
bh_keyring_open(struct bh_keyring *ring, const struct bh_daemon_config *config, struct bh_store store,
                const struct bh_crypto_ops *crypto, struct bh_err *err)
{
    struct bh_root_options options = { .crypto = crypto,
                                       .path = config->root_key,
                                       .credentials = config->credentials,
                                       .state_dir = config->state_dir };
    struct keyring_found found = { false, false };
    bh_rc rc = store.ops->list_keys(store.self, keyring_find_destroyed, &found, err);

    /* a crash may have come between the commit that destroyed a key and the scrubbing */
    *ring = (struct bh_keyring){ .store = store, .scrub_due = found.destroyed };
    options.make = !found.any;
    if (rc == BH_OK)
        rc = bh_root_load(&options, &ring->root, err);
    if (rc == BH_OK)
        rc = keyring_open_tree(ring, crypto, err);
    if (rc == BH_OK && ring->root.made)
        bh_log(ROOT_KEY_MADE, BH_STR("path", ring->root.path));
    bh_root_wipe(&ring->root);
    if (rc != BH_OK && !*err->hint)
        bh_err_hint(err, "bulkheadd's account must be able to read the root key; docs/keys.md");
    return rc == BH_OK ? rc : bh_err_wrap(err, "keys");
}

void
bh_keyring_close(struct bh_keyring *ring)
{
    bh_keys_close(ring->keys);
    bh_root_wipe(&ring->root);
    ring->keys = NULL;
}

static bh_rc
keyring_stage(struct bh_keyring *ring, const struct bh_crypto_ops *crypto, const uint8_t *next,
              uint8_t ret_key[BH_KEY_BYTES], struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (next)
        memcpy(ret_key, next, BH_KEY_BYTES);
    else
        rc = crypto->random(ret_key, BH_KEY_BYTES, err);
    if (rc != BH_OK)
        return rc;
    if (ring->root.replaceable || !next)
        return bh_root_stage(&ring->root, ret_key, err);
    return BH_OK;
}

bh_rc
bh_keyring_rotate(struct bh_keyring *ring, const struct bh_crypto_ops *crypto, const uint8_t *next,
                  uint64_t *ret_count, struct bh_err *err)
{
    uint8_t key[BH_KEY_BYTES];
    bh_rc rc;

    if (ring->root.staged) { /* what stands there is the present root, in no other file */
        bh_err_set(err, BH_CONFLICT, "the file of the root key could not be replaced yet");
        return bh_err_hint(err, "see the daemon's log, then start it again: that finishes it");
    }
    rc = keyring_stage(ring, crypto, next, key, err);
    if (rc == BH_OK) {
        rc = bh_keys_rotate(ring->keys, key, ret_count, err);
        ring->rotating = rc != BH_CONFLICT;
    }
    explicit_bzero(key, sizeof key);
    if (rc == BH_CONFLICT && ring->root.staged) { /* nothing was changed */
        struct bh_err ignored;

        (void)!bh_root_unstage(&ring->root, &ignored);
    }
    return rc;
}

/* The file is replaced in the open: until it is, a start finds the staged key. */
static void
keyring_finish_rotation(struct bh_keyring *ring)
{
    struct bh_err err;

    bh_keys_rotated(ring->keys);
    ring->rotating = false;
    if (ring->root.staged && bh_root_commit(&ring->root, &err) != BH_OK)
        bh_log(ROOT_KEY_NOT_REPLACED, BH_ERRLOG(&err));
    bh_root_wipe(&ring->root);
}

void
bh_keyring_rest(struct bh_keyring *ring)
{
    struct bh_err err;

    if (!ring->scrub_due || bh_time_monotonic() < ring->scrub_after_ns)
        return;
    if (ring->store.ops->scrub(ring->store.self, &err) == BH_OK) {
        ring->scrub_due = false;
        return;
    }
    ring->scrub_after_ns = bh_time_monotonic() + scrub_pause_ns;
    bh_log(STORE_NOT_SCRUBBED, BH_ERRLOG(&err));
}

void
bh_keyring_committed(struct bh_keyring *ring)
{
    if (ring->rotating)
        keyring_finish_rotation(ring);
    bh_keyring_rest(ring);
}

bh_rc
bh_keyring_aborted(struct bh_keyring *ring, struct bh_err *err)
{
    bh_rc rc = bh_keys_reload(ring->keys, err);

    if (rc == BH_OK && ring->rotating && ring->root.staged)
        rc = bh_root_unstage(&ring->root, err);
    ring->rotating = false;
    bh_root_wipe(&ring->root);
    return rc;
}
