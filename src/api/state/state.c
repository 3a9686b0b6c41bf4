#include "api/state/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void *
block_new(size_t bytes)
{
    void *block = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    BH_ASSERT(block);
    memset(block, 0, bytes);
    return block;
}

void
bh_state_init(struct bh_state *state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;

    state->bytes = bh_engine_size(&caps);
    state->block = block_new(state->bytes);
    state->engine = bh_engine_init(state->block, &caps);
}

void
bh_state_fini(struct bh_state *state)
{
    free(state->block);
    *state = (struct bh_state){ 0 };
}

void
bh_state_grow(struct bh_state *state)
{
    struct bh_engine_caps caps = bh_engine_wanted(state->engine);
    struct bh_state bigger = { .bytes = bh_engine_size(&caps) };

    BH_ASSERT(bigger.bytes > state->bytes);
    bigger.block = block_new(bigger.bytes);
    bigger.engine = bh_engine_grow(state->engine, bigger.block, &caps);
    bh_state_fini(state);
    *state = bigger;
}

bh_rc
bh_state_step(struct bh_state *state, const struct bh_event *event, struct bh_step *step)
{
    bh_rc rc;

    while ((rc = bh_engine_step(state->engine, event, step)) == BH_FULL)
        bh_state_grow(state);
    return rc;
}

bh_rc
bh_state_replay(struct bh_state *state, const struct bh_event *event, const struct bh_decision *decisions,
                uint32_t count, struct bh_step *step)
{
    bh_rc rc;

    while ((rc = bh_engine_replay(state->engine, event, decisions, count, step)) == BH_FULL)
        bh_state_grow(state);
    return rc;
}

bh_rc
bh_state_adopt(struct bh_state *state, const void *bytes, size_t length, struct bh_err *err)
{
    struct bh_state fresh = { .bytes = length, .block = block_new(length) };

    memcpy(fresh.block, bytes, length);
    fresh.engine = bh_engine_adopt(fresh.block, length);
    if (!fresh.engine) {
        bh_state_fini(&fresh);
        return bh_err_set(err, BH_INVALID, "snapshot is of another layout or damaged");
    }
    bh_state_fini(state);
    *state = fresh;
    return BH_OK;
}

void
bh_state_copy_engine(const struct bh_engine *engine, struct bh_state *ret_copy)
{
    struct bh_engine_caps caps = bh_engine_caps(engine);
    size_t bytes = bh_engine_size(&caps);

    *ret_copy = (struct bh_state){ .bytes = bytes, .block = aligned_alloc(64, (bytes + 63) & ~(size_t)63) };
    BH_ASSERT(ret_copy->block);
    memcpy(ret_copy->block, engine, bytes);
    ret_copy->engine = bh_engine_adopt(ret_copy->block, bytes);
    BH_ASSERT(ret_copy->engine);
}

void
bh_state_copy(const struct bh_state *state, struct bh_state *ret_copy)
{
    bh_state_copy_engine(state->engine, ret_copy);
}

void
bh_state_snapshot_type(char ret_type[BH_SNAPSHOT_TYPE_SIZE])
{
    snprintf(ret_type, BH_SNAPSHOT_TYPE_SIZE, "snapshot.%d", BH_ENGINE_LAYOUT);
}

struct hashing {
    const struct bh_crypto_ops *crypto;
    struct bh_sha256 hash;
};

static void
state_put(void *self, const void *bytes, size_t length)
{
    struct hashing *hashing = self;

    hashing->crypto->sha256_put(&hashing->hash, bytes, length);
}

void
bh_state_digest(const struct bh_state *state, const struct bh_crypto_ops *crypto, uint8_t ret_digest[32])
{
    struct hashing hashing = { .crypto = crypto };

    crypto->sha256_begin(&hashing.hash);
    bh_engine_digest(state->engine, state_put, &hashing);
    crypto->sha256_finish(&hashing.hash, ret_digest);
}
