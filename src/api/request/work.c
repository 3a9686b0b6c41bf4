#include "api/request/work.h"

#include <string.h>

const char *const bh_work_kind_names[BH_WORK_KINDS] = { "own", "request", "node", "replay" };

static _Thread_local struct bh_work current;

struct bh_work *
bh_work_get(void)
{
    return &current;
}

struct bh_work
bh_work_set(struct bh_work work)
{
    struct bh_work before = current;

    current = work;
    return before;
}

struct work_hash {
    const struct bh_crypto_ops *crypto;
    struct bh_sha256 hash;
};

/* With its NUL: "ab", "c" and "a", "bc" differ. */
static void
work_hash_text(struct work_hash *to, const char *text)
{
    to->crypto->sha256_put(&to->hash, text, strlen(text) + 1);
}

static void
work_hash_number(struct work_hash *to, uint32_t number)
{
    to->crypto->sha256_put(&to->hash, &number, sizeof number);
}

static void
work_hash_parameter(void *self, const char *name, const char *value)
{
    work_hash_text(self, name);
    work_hash_text(self, value);
}

static void
work_hash_caller(struct work_hash *to, const struct bh_work *work)
{
    work_hash_text(to, work->operation ? work->operation : "");
    work_hash_number(to, work->principal);
    work_hash_number(to, work->principal ? 0 : work->uid);
}

static void
work_hash_path(struct work_hash *to, const struct bh_request *request)
{
    work_hash_text(to, bh_method_names[request->method]);
    work_hash_text(to, request->path);
}

static struct work_hash
work_hash_begin(const struct bh_crypto_ops *crypto, const char *kind)
{
    struct work_hash hash = { .crypto = crypto };

    crypto->sha256_begin(&hash.hash);
    work_hash_text(&hash, kind);
    return hash;
}

static void
work_hash_finish(struct work_hash *hash, uint8_t ret_key[BH_WORK_KEY_BYTES])
{
    uint8_t digest[32];

    hash->crypto->sha256_finish(&hash->hash, digest);
    memcpy(ret_key, digest, BH_WORK_KEY_BYTES);
}

struct bh_work_keys
bh_work_keys_of(const struct bh_work *work, const struct bh_crypto_ops *crypto)
{
    struct work_hash command = work_hash_begin(crypto, "command"), caller = work_hash_begin(crypto, "caller");
    struct bh_work_keys keys = { 0 };

    if (work->keys)
        return *work->keys;
    work_hash_caller(&command, work);
    work_hash_path(&command, work->request);
    work->request->each_query(work->request, work_hash_parameter, &command);
    crypto->sha256_put(&command.hash, work->request->body, work->request->body_length);
    work_hash_finish(&command, keys.command);
    if (work->operation)
        work_hash_caller(&caller, work);
    else
        work_hash_path(&caller, work->request);
    work_hash_finish(&caller, keys.caller);
    if (work->tenant && work->operation) {
        struct work_hash tenant = work_hash_begin(crypto, "tenant");

        work_hash_text(&tenant, work->operation);
        work_hash_number(&tenant, work->tenant);
        work_hash_finish(&tenant, keys.tenant);
    }
    return keys;
}
