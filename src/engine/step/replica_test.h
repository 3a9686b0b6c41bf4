#ifndef BH_ENGINE_STEP_REPLICA_TEST_H
#define BH_ENGINE_STEP_REPLICA_TEST_H

/* An engine with a twin that replays what the first decides.  Every step is checked,
 * and the twins' digests are compared.  Tests only. */

#include <stdlib.h>

#include "base/test.h"
#include "engine/read/view.h"
#include "engine/step/engine.h"

enum { FIXTURE_EFFECTS_MAX = 8192 };

struct bh_fixture {
    struct bh_engine *engine, *replica;
    struct bh_step step;
    uint64_t now_ns, seq, next_job;
    uint32_t effect_count;
    struct bh_effect effects[FIXTURE_EFFECTS_MAX]; /* for the node, not yet answered */
    bool quick;                                    /* skip twin and check */
    uint64_t digest;                               /* after the last step */
};

struct bh_fixture_sum {
    uint64_t lanes[4];
};

/* Quick rather than strong: four independent chains over 32 bytes at a time. */
static inline void
bh_fixture_hash(void *self, const void *bytes, size_t length)
{
    struct bh_fixture_sum *sum = self;
    const unsigned char *at = bytes;
    uint64_t words[4];

    for (; length >= sizeof(words); length -= sizeof(words), at += sizeof(words)) {
        memcpy(words, at, sizeof(words));
        for (int i = 0; i < 4; i++) {
            sum->lanes[i] = (sum->lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15ull;
            sum->lanes[i] ^= sum->lanes[i] >> 29;
        }
    }
    for (; length > 0; length--, at++)
        sum->lanes[length & 3] = (sum->lanes[length & 3] ^ *at) * 0x100000001b3ull;
}

static inline uint64_t
bh_fixture_digest(const struct bh_engine *engine)
{
    struct bh_fixture_sum sum = { { 1, 2, 3, 4 } };

    bh_engine_digest(engine, bh_fixture_hash, &sum);
    return sum.lanes[0] ^ sum.lanes[1] * 3 ^ sum.lanes[2] * 5 ^ sum.lanes[3] * 7;
}

static inline struct bh_engine *
bh_fixture_engine(const struct bh_engine_caps *caps)
{
    size_t size = (bh_engine_size(caps) + 15) & ~(size_t)15;
    void *memory = aligned_alloc(16, size);

    assert_non_null(memory);
    return bh_engine_init(memory, caps);
}

static inline struct bh_fixture *
bh_fixture_open_with(const struct bh_engine_caps *caps)
{
    struct bh_fixture *fixture = calloc(1, sizeof(*fixture));
    struct bh_engine_caps larger = *caps;

    assert_non_null(fixture);
    larger.jobs += 7; /* digests must not see capacities */
    larger.partitions *= 2;
    fixture->engine = bh_fixture_engine(caps);
    fixture->replica = bh_fixture_engine(&larger);
    fixture->now_ns = 1000;
    fixture->next_job = 1;
    return fixture;
}

static inline struct bh_fixture *
bh_fixture_open(void)
{
    return bh_fixture_open_with(&BH_ENGINE_CAPS_DEFAULT);
}

static inline void
bh_fixture_close(struct bh_fixture *fixture)
{
    free(fixture->engine);
    free(fixture->replica);
    free(fixture);
}

static inline void
bh_fixture_collect_effects(struct bh_fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->step.effect_count; i++) {
        if (fixture->step.effects[i].kind == BH_FX_JOB)
            continue;
        assert_true(fixture->effect_count < FIXTURE_EFFECTS_MAX);
        fixture->effects[fixture->effect_count++] = fixture->step.effects[i];
    }
}

static inline void
bh_fixture_check(struct bh_fixture *fixture)
{
    char broken[200] = "";

    if (bh_engine_check(fixture->engine, broken, sizeof(broken)))
        return;
    fprintf(stderr, "after record %llu: %s\n", (unsigned long long)fixture->seq, broken);
    fail();
}

/* Take an event; the twin replays its decisions and must come out the same. */
static inline bh_rc
bh_fixture_send(struct bh_fixture *fixture, struct bh_event *event)
{
    static struct bh_step replayed;
    bh_rc rc;

    event->now_ns = fixture->now_ns;
    event->seq = ++fixture->seq;
    rc = bh_engine_step(fixture->engine, event, &fixture->step);
    if (rc != BH_OK && !fixture->quick && fixture->digest)
        assert_true(bh_fixture_digest(fixture->engine) == fixture->digest);
    if (rc != BH_OK)
        return rc;
    bh_fixture_collect_effects(fixture);
    if (fixture->quick)
        return rc;
    bh_fixture_check(fixture);
    assert_int_equal(bh_engine_replay(fixture->replica, event, fixture->step.decisions,
                                      fixture->step.decision_count, &replayed),
                     BH_OK);
    fixture->digest = bh_fixture_digest(fixture->engine);
    assert_true(fixture->digest == bh_fixture_digest(fixture->replica));
    assert_int_equal(replayed.effect_count, fixture->step.effect_count);
    return rc;
}

#endif
