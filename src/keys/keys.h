#ifndef BH_KEYS_KEYS_H
#define BH_KEYS_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "model/ids.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* The key tree, and sealing personal texts with it.
 *
 *   root key (keys/root.h)  ->  a key for each tenant  ->  the keys that seal:
 *     AUDIT     a tenant's for one month (UTC): commands, names, reasons, addresses
 *     IDENTITY  the site's, for ever: secrets of one-time codes, refresh tokens
 *
 * Each key is kept wrapped by its parent (XAES-256-GCM of C2SP; its number, kind, tenant, month and parent
 * are authenticated), in the store's table `keys`.  A key is made when it is first needed.  Once a key's
 * wrapped form is destroyed, everything sealed under it is unreadable for ever.
 *
 * A sealed item is canonical JSON, {"c":"...","h":"...","k":"7","n":"..."}: ciphertext with its tag,
 * HMAC-SHA256 of the plaintext under the key's commitment half, number of the key, 24 bytes of nonce; all but
 * k in base 64.  `h` commits to the plaintext, which AES-GCM alone does not; the source is facts/security.md
 * 2.2.
 *
 * Keys in memory are locked against swapping where the system allows it, wiped when closed, and never stand
 * in an error's text. */
struct bh_keys;

enum {
    BH_KEY_BYTES = 32,
    BH_SEALED_PLAIN_MAX = 4 << 20, /* bytes that one item may seal */
};

enum bh_key_purpose { BH_KEY_AUDIT, BH_KEY_IDENTITY };

/* Which key seals. */
struct bh_key_use {
    enum bh_key_purpose purpose;
    bh_tenant_id tenant; /* whose; 0 is the site.  Unused for IDENTITY */
    uint64_t now_ns;     /* decides the month.  Unused for IDENTITY */
};

struct bh_keys_options {
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    uint8_t root[BH_KEY_BYTES]; /* the caller wipes its own copy */
};

/* Read the tree from the store.  Owned by the caller; what the options point to outlives
 * it.
 *   BH_CONFLICT  the keys in the store are wrapped by another root key
 *   BH_INVALID   a row of the table is damaged; failures of the store */
BH_MUST_USE bh_rc bh_keys_open(const struct bh_keys_options *options, struct bh_keys **ret_keys,
                               struct bh_err *err);
void bh_keys_close(struct bh_keys *keys);
BH_AUTO_DEFINE(struct bh_keys *, bh_keys_close)

/* Seal `plain` and append the item to `out`.  Owner thread only, inside its open
 * transaction: the key may have to be made, and its row is then put into it.  Every call
 * makes another item, of the same text too.
 *   BH_RANGE  the plaintext is too long; BH_FULL: `out` is; failures of the store */
BH_MUST_USE bh_rc bh_keys_seal(struct bh_keys *keys, const struct bh_key_use *use, struct bh_slice plain,
                               struct bh_buf *out, struct bh_err *err);

/* The number of the key that bh_keys_seal would use, 0: it would have to be made.  Owner thread. */
uint64_t bh_keys_number(struct bh_keys *keys, const struct bh_key_use *use);

/* Open `item` and append its plaintext to `ret_plain`, which the caller wipes when it held
 * a secret.  Any thread.
 *   BH_NOT_FOUND  the key was destroyed; the message is "erased"
 *   BH_INVALID    the item is malformed, damaged or of no key that there ever was
 *   BH_FULL       `ret_plain` is too small */
BH_MUST_USE bh_rc bh_keys_unseal(struct bh_keys *keys, struct bh_slice item, struct bh_buf *ret_plain,
                                 struct bh_err *err);

/* Whether the text has the form of a sealed item; says nothing about its key. */
bool bh_keys_is_sealed(struct bh_slice text);

/* The one way to read a text of the store that may be personal: opened when it is sealed, as
 * it is when it stems from a time before sealing.  Any thread; the text is in the arena.
 * Results of bh_keys_unseal; BH_NOT_FOUND also when the text itself is gone. */
BH_MUST_USE bh_rc bh_keys_get_text(struct bh_keys *keys, const struct bh_digest *digest,
                                   struct bh_arena *arena, const char **ret_text, struct bh_err *err);

/* What happened to the tree within the open transaction and has no record yet: each made
 * key once, in order.  False: nothing (more).  Owner thread. */
bool bh_keys_made(struct bh_keys *keys, struct bh_key_row *ret_row);

/* ---- looking at the tree, destroying, a new root: owner thread ---- */

/* Calls for each key there ever was, ascending by id; false stops.  Any thread, from a copy
 * of the tree. */
void bh_keys_each(struct bh_keys *keys, bh_key_sink sink, void *sink_self);

/* Destroy a key within the open transaction: its wrapped form is overwritten, what it
 * sealed, or what the keys that it wraps sealed, cannot be opened from now on, and the
 * store's texts of tenants that it sealed itself are erased.  The caller has it recorded,
 * destroys the keys below a tenant's one by one, and has the store scrubbed after the commit.
 *   BH_NOT_FOUND  no such key, or it was destroyed before; failures of the store */
BH_MUST_USE bh_rc bh_keys_shred(struct bh_keys *keys, uint64_t id, uint64_t now_ns, struct bh_err *err);

/* Wrap the tenants' keys by another root key, within the open transaction; nothing else
 * changes.  After its commit bh_keys_rotated, else bh_keys_reload goes back.
 *   BH_CONFLICT  it is the present root key; failures of the store */
BH_MUST_USE bh_rc bh_keys_rotate(struct bh_keys *keys, const uint8_t root[BH_KEY_BYTES], uint64_t *ret_count,
                                 struct bh_err *err);
void bh_keys_rotated(struct bh_keys *keys);

/* The transaction was thrown away: read the tree anew.  Owner thread.  On failure sealing
 * and opening fail with BH_UNAVAILABLE until it succeeds. */
BH_MUST_USE bh_rc bh_keys_reload(struct bh_keys *keys, struct bh_err *err);

#endif
