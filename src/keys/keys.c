#include "keys/keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "audit/sealed.h"
#include "base/assert.h"
#include "base/base64.h"
#include "base/lock.h"
#include "base/search.h"
#include "base/time.h"
#include "base/vec.h"
#include "keys/wrap.h"

enum {
    ROWS_MAX = 1 << 30,
    OPENED_MAX = 512, /* keys that stand unwrapped at once; a power of two */
    FOUND_MAX = 1024, /* remembered places of keys in use; a power of two */
    HASH_BYTES = 32,
};

/* A key in use: what wraps others, or what seals and what commits. */
struct opened {
    uint64_t id; /* 0: nothing here */
    uint8_t first[BH_KEY_BYTES], second[BH_KEY_BYTES];
};

struct root {
    uint64_t name; /* 0: none */
    uint8_t wrapping[BH_KEY_BYTES];
};

/* On pages of its own: not swapped, not in a core dump, as far as the system allows it. */
struct secrets {
    struct root root, former; /* `former` while a rotation is not committed */
    struct opened opened[OPENED_MAX];
};

struct bh_keys {
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct secrets *secrets;
    struct bh_key_row *rows; /* ascending by id */
    size_t count, capacity;
    bool broken; /* the tree could not be read again */
    /* owner thread */
    size_t reported;         /* rows that have a record, or need none */
    size_t found[FOUND_MAX]; /* places in rows, hints only */
};

/* ---- rows ---- */

static struct bh_key_row *
keys_find_row(const struct bh_keys *keys, uint64_t id)
{
    size_t at = bh_search(keys->rows, keys->count, id, id);

    return at < keys->count && keys->rows[at].id == id ? &keys->rows[at] : NULL;
}

static void
keys_add_row(struct bh_keys *keys, const struct bh_key_row *row)
{
    bool fits = bh_vec_reserve(&keys->rows, &keys->capacity, keys->count + 1, ROWS_MAX);

    BH_ASSERT(fits);
    keys->rows[keys->count++] = *row;
}

/* Kind, tenant, month and living parent of a key that is looked for. */
static bool
keys_is_same_use(const struct bh_key_row *row, const struct bh_key_row *want)
{
    return row->kind == want->kind && row->tenant_id == want->tenant_id && row->month == want->month
           && row->parent == want->parent && row->shredded_ns == 0;
}

static struct bh_key_row *
keys_find_use(struct bh_keys *keys, const struct bh_key_row *want)
{
    size_t *hint = &keys->found[(want->tenant_id * 3 + want->kind) % FOUND_MAX];

    if (*hint < keys->count && keys_is_same_use(&keys->rows[*hint], want))
        return &keys->rows[*hint];
    for (size_t i = keys->count; i-- > 0;)
        if (keys_is_same_use(&keys->rows[i], want)) {
            *hint = i;
            return &keys->rows[i];
        }
    return NULL;
}

struct keys_loaded {
    struct bh_key_row *rows;
    size_t count, capacity;
};

static bool
keys_load_row(void *self, const struct bh_key_row *row)
{
    struct keys_loaded *loaded = self;
    bool fits = bh_vec_reserve(&loaded->rows, &loaded->capacity, loaded->count + 1, ROWS_MAX);

    BH_ASSERT(fits);
    loaded->rows[loaded->count++] = *row;
    return true;
}

static bh_rc
keys_check_row(const struct bh_keys *keys, const struct bh_key_row *row, struct bh_err *err)
{
    const struct bh_key_row *parent = keys_find_row(keys, row->parent);

    if (row->id == 0 || row->kind >= BH_KEY_KINDS)
        return bh_err_set(err, BH_INVALID, "key %" PRIu64 " in the store is damaged", row->id);
    if (row->kind == BH_KEY_KIND_TENANT) {
        if (row->shredded_ns > 0 || row->parent == keys->secrets->root.name)
            return BH_OK;
        bh_err_set(err, BH_CONFLICT, "the keys in the store are wrapped by another root key");
        return bh_err_hint(err, "put back the root key that belongs to this store, or the store "
                                "that belongs to this key; docs/keys.md");
    }
    if (!parent || parent->kind != BH_KEY_KIND_TENANT || parent->tenant_id != row->tenant_id)
        return bh_err_set(err, BH_INVALID, "key %" PRIu64 " in the store has no parent", row->id);
    return BH_OK;
}

/* The store has locks of its own: it is read before the mutex is taken. */
bh_rc
bh_keys_reload(struct bh_keys *keys, struct bh_err *err)
{
    struct keys_loaded loaded = { 0 };
    bh_rc rc = keys->store.ops->list_keys(keys->store.self, keys_load_row, &loaded, err);

    bh_mutex_lock(&keys->mutex);
    if (keys->secrets->former.name) {
        keys->secrets->root = keys->secrets->former;
        explicit_bzero(&keys->secrets->former, sizeof keys->secrets->former);
    }
    free(keys->rows);
    keys->rows = loaded.rows;
    keys->count = keys->reported = loaded.count;
    keys->capacity = loaded.capacity;
    memset(keys->found, 0, sizeof keys->found);
    explicit_bzero(keys->secrets->opened, sizeof keys->secrets->opened);
    for (size_t i = 0; rc == BH_OK && i < keys->count; i++)
        rc = keys_check_row(keys, &keys->rows[i], err);
    keys->broken = rc != BH_OK;
    bh_mutex_unlock(&keys->mutex);
    return rc;
}

/* ---- opening and closing ---- */

static struct root
keys_make_root(const struct bh_crypto_ops *crypto, const uint8_t key[BH_KEY_BYTES])
{
    struct root root;
    uint8_t name[BH_KEY_BYTES];

    bh_key_derive(crypto, key, "root wraps", root.wrapping);
    bh_key_derive(crypto, key, "root is called", name);
    memcpy(&root.name, name, sizeof root.name);
    root.name >>= 11;               /* fits a JSON integer */
    root.name |= UINT64_C(1) << 52; /* and is the number of no key */
    return root;
}

bh_rc
bh_keys_open(const struct bh_keys_options *options, struct bh_keys **ret_keys, struct bh_err *err)
{
    BH_AUTO(bh_keys_close) struct bh_keys *keys = calloc(1, sizeof *keys);
    void *pages =
        mmap(NULL, sizeof *keys->secrets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bh_rc rc;

    BH_ASSERT(keys && pages != MAP_FAILED);
    bh_mutex_init(&keys->mutex, BH_LOCK_KEYS);
    keys->store = options->store;
    keys->crypto = options->crypto;
    keys->secrets = pages;
    (void)!mlock(pages, sizeof *keys->secrets); /* where the limit allows it */
    (void)!madvise(pages, sizeof *keys->secrets, MADV_DONTDUMP);
    keys->secrets->root = keys_make_root(keys->crypto, options->root);
    rc = bh_keys_reload(keys, err);
    if (rc != BH_OK)
        return rc;
    *ret_keys = bh_steal(&keys);
    return BH_OK;
}

void
bh_keys_close(struct bh_keys *keys)
{
    if (!keys)
        return;
    explicit_bzero(keys->secrets, sizeof *keys->secrets);
    munmap(keys->secrets, sizeof *keys->secrets);
    bh_mutex_fini(&keys->mutex);
    free(keys->rows);
    free(keys);
}

/* ---- the tree; the mutex is held ---- */

static bh_rc open_key(struct bh_keys *keys, const struct bh_key_row *row, struct opened *ret_opened,
                      struct bh_err *err);

/* What wraps this key. */
static bh_rc
keys_wrapping_of(struct bh_keys *keys, const struct bh_key_row *row, uint8_t ret_wrapping[BH_KEY_BYTES],
                 struct bh_err *err)
{
    const struct bh_key_row *parent;
    struct opened opened;
    bh_rc rc;

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (row->kind == BH_KEY_KIND_TENANT) {
        memcpy(ret_wrapping, keys->secrets->root.wrapping, BH_KEY_BYTES);
        return BH_OK;
    }
    parent = keys_find_row(keys, row->parent);
    BH_ASSERT(parent && parent->kind == BH_KEY_KIND_TENANT);
    rc = open_key(keys, parent, &opened, err);
    if (rc == BH_OK)
        memcpy(ret_wrapping, opened.first, BH_KEY_BYTES);
    explicit_bzero(&opened, sizeof opened);
    return rc;
}

static struct opened
keys_prepare(const struct bh_keys *keys, const struct bh_key_row *row, const uint8_t plain[BH_KEY_BYTES])
{
    bool wraps = row->kind == BH_KEY_KIND_TENANT;
    struct opened opened = { .id = row->id };

    bh_key_derive(keys->crypto, plain, wraps ? "wraps" : "seals", opened.first);
    bh_key_derive(keys->crypto, plain, "commits", opened.second);
    return opened;
}

static bh_rc
open_key(struct bh_keys *keys, const struct bh_key_row *row, struct opened *ret_opened, struct bh_err *err)
{
    struct opened *slot = &keys->secrets->opened[row->id % OPENED_MAX];
    uint8_t wrapping[BH_KEY_BYTES], plain[BH_KEY_BYTES];
    bh_rc rc;

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (row->shredded_ns > 0)
        return bh_err_set(err, BH_NOT_FOUND, "erased");
    if (slot->id == row->id) {
        *ret_opened = *slot;
        return BH_OK;
    }
    rc = keys_wrapping_of(keys, row, wrapping, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_key_unwrap(keys->crypto, wrapping, row, plain, err);
    explicit_bzero(wrapping, sizeof wrapping);
    if (rc != BH_OK)
        return rc;
    *slot = *ret_opened = keys_prepare(keys, row, plain);
    explicit_bzero(plain, sizeof plain);
    return BH_OK;
}

/* Make the key of `row`, whose parent there is, and put it. */
static bh_rc
keys_make_key(struct bh_keys *keys, struct bh_key_row *row, struct bh_err *err)
{
    uint8_t plain[BH_KEY_BYTES], wrapping[BH_KEY_BYTES];
    bh_rc rc;

    row->id = keys->count > 0 ? keys->rows[keys->count - 1].id + 1 : 1;
    rc = keys_wrapping_of(keys, row, wrapping, err);
    if (rc == BH_OK)
        rc = keys->crypto->random(plain, sizeof plain, err);
    if (rc == BH_OK)
        rc = bh_key_wrap(keys->crypto, wrapping, plain, row, err);
    if (rc == BH_OK)
        rc = keys->store.ops->put_key(keys->store.self, row, err);
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(wrapping, sizeof wrapping);
    if (rc != BH_OK)
        return rc;
    keys_add_row(keys, row);
    return BH_OK;
}

static bh_rc
need_key(struct bh_keys *keys, struct bh_key_row *want, struct bh_err *err)
{
    struct bh_key_row *found = keys_find_use(keys, want);

    if (!found)
        return keys_make_key(keys, want, err);
    *want = *found;
    return BH_OK;
}

/* The key of the tenant, as one looks for it or makes it. */
static struct bh_key_row
tenant_key(const struct bh_keys *keys, const struct bh_key_use *use)
{
    return (struct bh_key_row){ .kind = BH_KEY_KIND_TENANT,
                                .tenant_id = use->purpose == BH_KEY_AUDIT ? use->tenant.v : 0,
                                .parent = keys->secrets->root.name,
                                .created_ns = use->now_ns };
}

/* And the one below it that seals. */
static struct bh_key_row
sealing_key(const struct bh_key_row *tenant, const struct bh_key_use *use)
{
    bool audit = use->purpose == BH_KEY_AUDIT;

    return (struct bh_key_row){ .kind = audit ? BH_KEY_KIND_AUDIT : BH_KEY_KIND_IDENTITY,
                                .tenant_id = tenant->tenant_id,
                                .month = audit ? bh_time_month(use->now_ns) : 0,
                                .parent = tenant->id,
                                .created_ns = use->now_ns };
}

/* The key that seals for `use`, opened; made when there is none. */
static bh_rc
key_for(struct bh_keys *keys, const struct bh_key_use *use, struct opened *ret_opened, struct bh_err *err)
{
    struct bh_key_row tenant = tenant_key(keys, use), key = { 0 };
    bh_rc rc;

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (keys->broken)
        return bh_err_set(err, BH_UNAVAILABLE, "the keys could not be read");
    rc = need_key(keys, &tenant, err);
    key = sealing_key(&tenant, use);
    if (rc != BH_OK)
        return rc;
    rc = need_key(keys, &key, err);
    if (rc != BH_OK)
        return rc;
    return open_key(keys, &key, ret_opened, err);
}

uint64_t
bh_keys_number(struct bh_keys *keys, const struct bh_key_use *use)
{
    const struct bh_key_row tenant = tenant_key(keys, use), *above, *found;
    uint64_t number = 0;

    bh_mutex_lock(&keys->mutex);
    above = keys->broken ? NULL : keys_find_use(keys, &tenant);
    if (above) {
        const struct bh_key_row key = sealing_key(above, use);

        found = keys_find_use(keys, &key);
        number = found ? found->id : 0;
    }
    bh_mutex_unlock(&keys->mutex);
    return number;
}

/* ---- sealing ---- */

static void
keys_put_item(struct bh_buf *out, uint64_t key, struct bh_slice cipher, const uint8_t commitment[HASH_BYTES],
              const uint8_t nonce[BH_AEAD_NONCE_BYTES])
{
    bh_buf_puts(out, "{\"c\":\"");
    bh_base64_encode(out, cipher.text, cipher.length);
    bh_buf_puts(out, "\",\"h\":\"");
    bh_base64_encode(out, commitment, HASH_BYTES);
    bh_buf_puts(out, "\",\"k\":\"");
    bh_buf_put_u64(out, key);
    bh_buf_puts(out, "\",\"n\":\"");
    bh_base64_encode(out, nonce, BH_AEAD_NONCE_BYTES);
    bh_buf_puts(out, "\"}");
}

static const char bound[] = "bulkhead sealed v1";

static struct bh_aead
keys_aead_of(const struct opened *key, const uint8_t nonce[BH_AEAD_NONCE_BYTES])
{
    return (struct bh_aead){ key->first, nonce, bound, sizeof bound - 1 };
}

static bh_rc
keys_seal_with(const struct bh_crypto_ops *crypto, const struct opened *key, struct bh_slice plain,
               struct bh_buf *out, struct bh_err *err)
{
    uint8_t nonce[BH_AEAD_NONCE_BYTES], commitment[HASH_BYTES];
    const struct bh_aead aead = keys_aead_of(key, nonce);
    size_t length = plain.length + BH_AEAD_TAG_BYTES;
    char *cipher = malloc(length);
    bh_rc rc;

    BH_ASSERT(cipher);
    rc = crypto->random(nonce, sizeof nonce, err);
    if (rc == BH_OK)
        rc = crypto->seal(&aead, plain.text, plain.length, cipher, err);
    if (rc == BH_OK) {
        crypto->hmac(key->second, sizeof key->second, plain.text, plain.length, commitment);
        keys_put_item(out, key->id, (struct bh_slice){ cipher, length }, commitment, nonce);
        if (out->overflow)
            rc = bh_err_set(err, BH_FULL, "no room for a sealed text of %zu bytes", plain.length);
    }
    free(cipher);
    return rc;
}

bh_rc
bh_keys_seal(struct bh_keys *keys, const struct bh_key_use *use, struct bh_slice plain, struct bh_buf *out,
             struct bh_err *err)
{
    struct opened key = { 0 };
    bh_rc rc;

    if (plain.length > BH_SEALED_PLAIN_MAX)
        return bh_err_set(err, BH_RANGE, "a text of %zu bytes is too long to be sealed", plain.length);
    bh_mutex_lock(&keys->mutex);
    rc = key_for(keys, use, &key, err);
    bh_mutex_unlock(&keys->mutex);
    if (rc == BH_OK)
        rc = keys_seal_with(keys->crypto, &key, plain, out, err);
    explicit_bzero(&key, sizeof key);
    return rc;
}

/* ---- opening ---- */

bool
bh_keys_is_sealed(struct bh_slice text)
{
    struct bh_sealed sealed;

    return bh_sealed_read(text, &sealed);
}

static bool
keys_decode_exactly(struct bh_slice text, void *ret_bytes, size_t length)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_bytes, length);
    return bh_base64_decode(&out, text.text, text.length) && out.length == length;
}

/* Every byte is looked at, wherever the first difference is. */
static bool
keys_is_equal(const uint8_t *a, const uint8_t *b, size_t length)
{
    uint8_t differs = 0;

    for (size_t i = 0; i < length; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

static bh_rc
keys_refuse_damaged(uint64_t key, struct bh_err *err)
{
    return bh_err_set(err, BH_INVALID, "a text sealed under key %" PRIu64 " is damaged", key);
}

/* `cipher` is room for the decoded ciphertext and is where the plaintext comes out. */
static bh_rc
keys_open_with(const struct bh_crypto_ops *crypto, const struct opened *key, const struct bh_sealed *sealed,
               struct bh_buf *cipher, struct bh_err *err)
{
    uint8_t nonce[BH_AEAD_NONCE_BYTES], want[HASH_BYTES], have[HASH_BYTES];
    const struct bh_aead aead = keys_aead_of(key, nonce);
    size_t length;

    if (!keys_decode_exactly(sealed->nonce, nonce, sizeof nonce)
        || !keys_decode_exactly(sealed->commitment, want, sizeof want)
        || !bh_base64_decode(cipher, sealed->cipher.text, sealed->cipher.length)
        || cipher->length < BH_AEAD_TAG_BYTES
        || crypto->open(&aead, cipher->bytes, cipher->length, cipher->bytes, err) != BH_OK)
        return keys_refuse_damaged(key->id, err);
    length = cipher->length - BH_AEAD_TAG_BYTES;
    crypto->hmac(key->second, sizeof key->second, cipher->bytes, length, have);
    if (!keys_is_equal(want, have, sizeof want))
        return keys_refuse_damaged(key->id, err);
    cipher->length = length;
    return BH_OK;
}

static bh_rc
find_key(struct bh_keys *keys, uint64_t id, struct opened *ret_opened, struct bh_err *err)
{
    const struct bh_key_row *row = keys_find_row(keys, id);

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (keys->broken)
        return bh_err_set(err, BH_UNAVAILABLE, "the keys could not be read");
    if (!row || row->kind == BH_KEY_KIND_TENANT)
        return bh_err_set(err, BH_INVALID, "there is no key %" PRIu64 " that seals", id);
    return open_key(keys, row, ret_opened, err);
}

bh_rc
bh_keys_unseal(struct bh_keys *keys, struct bh_slice item, struct bh_buf *ret_plain, struct bh_err *err)
{
    struct bh_sealed sealed;
    struct opened key = { 0 };
    BH_AUTO(bh_buf_fini) struct bh_buf cipher = { .max = BH_SEALED_PLAIN_MAX + 64 };
    bh_rc rc;

    if (!bh_sealed_read(item, &sealed))
        return bh_err_set(err, BH_INVALID, "a sealed text is malformed");
    bh_mutex_lock(&keys->mutex);
    rc = find_key(keys, sealed.key, &key, err);
    bh_mutex_unlock(&keys->mutex);
    if (rc != BH_OK)
        return rc;
    rc = keys_open_with(keys->crypto, &key, &sealed, &cipher, err);
    explicit_bzero(&key, sizeof key);
    if (rc == BH_OK) {
        bh_buf_put(ret_plain, cipher.bytes, cipher.length);
        if (ret_plain->overflow)
            rc = bh_err_set(err, BH_FULL, "no room for a sealed text");
    }
    if (cipher.bytes)
        explicit_bzero(cipher.bytes, cipher.size);
    return rc;
}

/* ---- texts ---- */

static bh_rc
keys_unseal_into(struct bh_keys *keys, struct bh_slice item, struct bh_arena *arena, const char **ret_text,
                 struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf plain = { .max = BH_SEALED_PLAIN_MAX + 1 };
    bh_rc rc = bh_keys_unseal(keys, item, &plain, err);

    if (rc == BH_OK) {
        const char *text = bh_arena_strdup(arena, bh_buf_text(&plain));

        if (text)
            *ret_text = text;
        else
            rc = bh_err_set(err, BH_FULL, "no room for a text of %zu bytes", plain.length);
        explicit_bzero(plain.bytes, plain.size);
    }
    return rc;
}

bh_rc
bh_keys_get_text(struct bh_keys *keys, const struct bh_digest *digest, struct bh_arena *arena,
                 const char **ret_text, struct bh_err *err)
{
    const char *text;
    bh_rc rc = keys->store.ops->get_text(keys->store.self, digest, arena, &text, err);
    struct bh_slice item;

    if (rc == BH_NOT_FOUND)
        return bh_err_set(err, BH_NOT_FOUND, "erased");
    if (rc != BH_OK)
        return rc;
    item = (struct bh_slice){ text, strlen(text) };
    if (bh_keys_is_sealed(item))
        return keys_unseal_into(keys, item, arena, ret_text, err);
    *ret_text = text; /* of a time before texts were sealed */
    return BH_OK;
}

/* ---- changes of the tree ---- */

bool
bh_keys_made(struct bh_keys *keys, struct bh_key_row *ret_row)
{
    if (keys->reported == keys->count)
        return false;
    *ret_row = keys->rows[keys->reported++];
    return true;
}

void
bh_keys_each(struct bh_keys *keys, bh_key_sink sink, void *sink_self)
{
    struct bh_key_row *rows;
    size_t count;

    bh_mutex_lock(&keys->mutex);
    count = keys->count;
    rows = calloc(count + 1, sizeof *rows);
    BH_ASSERT(rows);
    if (count > 0)
        memcpy(rows, keys->rows, count * sizeof *rows);
    bh_mutex_unlock(&keys->mutex);
    for (size_t i = 0; i < count; i++)
        if (!sink(sink_self, &rows[i]))
            break;
    free(rows);
}

static bh_rc
keys_shred(struct bh_keys *keys, uint64_t id, uint64_t now_ns, struct bh_err *err)
{
    struct bh_key_row *row = keys_find_row(keys, id);
    struct opened *slot = &keys->secrets->opened[id % OPENED_MAX];
    bh_rc rc;

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (!row || row->shredded_ns > 0)
        return bh_err_set(err, BH_NOT_FOUND, "there is no key %" PRIu64 " to destroy", id);
    explicit_bzero(row->wrapped, sizeof row->wrapped);
    row->shredded_ns = now_ns;
    if (slot->id == id)
        explicit_bzero(slot, sizeof *slot);
    rc = keys->store.ops->put_key(keys->store.self, row, err);
    return rc == BH_OK ? keys->store.ops->erase_sealed(keys->store.self, id, err) : rc;
}

bh_rc
bh_keys_shred(struct bh_keys *keys, uint64_t id, uint64_t now_ns, struct bh_err *err)
{
    bh_rc rc;

    bh_mutex_lock(&keys->mutex);
    rc = keys_shred(keys, id, now_ns, err);
    bh_mutex_unlock(&keys->mutex);
    return rc;
}

static bh_rc
keys_rewrap(struct bh_keys *keys, const struct root *fresh, struct bh_key_row *row, struct bh_err *err)
{
    uint8_t plain[BH_KEY_BYTES];
    bh_rc rc = bh_key_unwrap(keys->crypto, keys->secrets->root.wrapping, row, plain, err);

    if (rc != BH_OK)
        return rc;
    row->parent = fresh->name;
    rc = bh_key_wrap(keys->crypto, fresh->wrapping, plain, row, err);
    explicit_bzero(plain, sizeof plain);
    return rc == BH_OK ? keys->store.ops->put_key(keys->store.self, row, err) : rc;
}

static bh_rc
keys_rotate(struct bh_keys *keys, const struct root *fresh, uint64_t *ret_count, struct bh_err *err)
{
    uint64_t count = 0;
    bh_rc rc = BH_OK;

    BH_ASSERT(bh_mutex_is_held(&keys->mutex));
    if (fresh->name == keys->secrets->root.name)
        return bh_err_set(err, BH_CONFLICT, "that is the present root key");
    for (size_t i = 0; rc == BH_OK && i < keys->count; i++)
        if (keys->rows[i].kind == BH_KEY_KIND_TENANT && keys->rows[i].shredded_ns == 0) {
            rc = keys_rewrap(keys, fresh, &keys->rows[i], err);
            count++;
        }
    keys->secrets->former = keys->secrets->root;
    keys->secrets->root = *fresh;
    *ret_count = count;
    return rc;
}

bh_rc
bh_keys_rotate(struct bh_keys *keys, const uint8_t root[BH_KEY_BYTES], uint64_t *ret_count,
               struct bh_err *err)
{
    struct root fresh = keys_make_root(keys->crypto, root);
    bh_rc rc;

    bh_mutex_lock(&keys->mutex);
    rc = keys_rotate(keys, &fresh, ret_count, err);
    bh_mutex_unlock(&keys->mutex);
    explicit_bzero(&fresh, sizeof fresh);
    return rc;
}

void
bh_keys_rotated(struct bh_keys *keys)
{
    bh_mutex_lock(&keys->mutex);
    explicit_bzero(&keys->secrets->former, sizeof keys->secrets->former);
    bh_mutex_unlock(&keys->mutex);
}
