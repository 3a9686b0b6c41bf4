/* What sealing costs a submission, and opening a reader: bh_keys_seal and bh_keys_unseal of a
 * specification of 300 bytes and of 4,000, over a store in memory.  Prints microseconds of CPU
 * a text. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/clock.h"
#include "base/assert.h"
#include "keys/keys.h"
#include "tests/fakes/store.h"

enum { TEXTS = 20000, TENANTS = 50, LARGE = 4000, ITEM_MAX = 8192 };

static void
must(bh_rc rc)
{
    BH_ASSERT(rc == BH_OK);
}

static void
measure(struct bh_keys *keys, struct bh_store *store, size_t length)
{
    static char plain[LARGE], memory[ITEM_MAX], opened[LARGE];
    struct bh_buf item, out;
    uint64_t begun, sealed = 0, unsealed = 0;
    struct bh_err err;

    memset(plain, 'x', sizeof plain);
    bh_buf_init_fixed(&item, memory, sizeof memory);
    bh_buf_init_fixed(&out, opened, sizeof opened);
    must(store->ops->begin(store->self, &err));
    for (uint32_t i = 0; i < TEXTS; i++) {
        const struct bh_key_use use = { BH_KEY_AUDIT, { 1 + i % TENANTS }, UINT64_C(1795170000000000000) };

        bh_buf_clear(&item);
        bh_buf_clear(&out);
        begun = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
        must(bh_keys_seal(keys, &use, (struct bh_slice){ plain, length }, &item, &err));
        sealed += bench_clock(CLOCK_PROCESS_CPUTIME_ID) - begun;
        begun = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
        must(bh_keys_unseal(keys, (struct bh_slice){ item.bytes, item.length }, &out, &err));
        unsealed += bench_clock(CLOCK_PROCESS_CPUTIME_ID) - begun;
    }
    must(store->ops->commit(store->self, &err));
    printf("keys, %zu bytes: seal %.1f us, open %.1f us of CPU\n", length, (double)sealed / TEXTS / 1000,
           (double)unsealed / TEXTS / 1000);
}

int
main(void)
{
    struct bh_keys_options options = { .crypto = &bh_crypto_openssl, .root = { 1 } };
    struct bh_keys *keys;
    struct bh_err err;

    bh_store_memory_open(options.crypto, &options.store);
    must(bh_keys_open(&options, &keys, &err));
    measure(keys, &options.store, 300);
    measure(keys, &options.store, LARGE);
    bh_keys_close(keys);
    options.store.ops->close(options.store.self);
    return 0;
}
