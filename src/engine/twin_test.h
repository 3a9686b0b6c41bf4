#ifndef BH_ENGINE_TWIN_TEST_H
#define BH_ENGINE_TWIN_TEST_H

/* An engine with a twin that replays what the first decides.  Every step is checked,
 * and the twins' digests are compared.  Tests only. */

#include <stdlib.h>

#include "base/test.h"
#include "engine/view.h"

enum { STORY_EFFECTS_MAX = 8192 };

struct bh_story {
    struct bh_engine *engine, *twin;
    struct bh_step step;
    uint64_t now_ns, seq, next_job;
    uint32_t effect_count;
    struct bh_effect effects[STORY_EFFECTS_MAX]; /* for the node, not yet answered */
    bool quick;                                  /* skip twin and check */
    uint64_t digest;                             /* after the last step */
};

struct bh_story_sum {
    uint64_t lanes[4];
};

/* Quick rather than strong: four independent chains over 32 bytes at a time. */
static inline void
bh_story_hash(void *self, const void *bytes, size_t length)
{
    struct bh_story_sum *sum = self;
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
bh_story_digest(const struct bh_engine *engine)
{
    struct bh_story_sum sum = { { 1, 2, 3, 4 } };

    bh_engine_digest(engine, bh_story_hash, &sum);
    return sum.lanes[0] ^ sum.lanes[1] * 3 ^ sum.lanes[2] * 5 ^ sum.lanes[3] * 7;
}

static inline struct bh_engine *
bh_story_engine(const struct bh_engine_caps *caps)
{
    size_t size = (bh_engine_size(caps) + 15) & ~(size_t)15;
    void *memory = aligned_alloc(16, size);

    assert_non_null(memory);
    return bh_engine_init(memory, caps);
}

static inline struct bh_story *
bh_story_open_with(const struct bh_engine_caps *caps)
{
    struct bh_story *story = calloc(1, sizeof(*story));
    struct bh_engine_caps larger = *caps;

    assert_non_null(story);
    larger.jobs += 7; /* digests must not see capacities */
    larger.partitions *= 2;
    story->engine = bh_story_engine(caps);
    story->twin = bh_story_engine(&larger);
    story->now_ns = 1000;
    story->next_job = 1;
    return story;
}

static inline struct bh_story *
bh_story_open(void)
{
    return bh_story_open_with(&BH_ENGINE_CAPS_DEFAULT);
}

static inline void
bh_story_close(struct bh_story *story)
{
    free(story->engine);
    free(story->twin);
    free(story);
}

static inline void
bh_story_keep_effects(struct bh_story *story)
{
    for (uint32_t i = 0; i < story->step.effect_count; i++) {
        if (story->step.effects[i].kind == BH_FX_JOB)
            continue;
        assert_true(story->effect_count < STORY_EFFECTS_MAX);
        story->effects[story->effect_count++] = story->step.effects[i];
    }
}

static inline void
bh_story_check(struct bh_story *story)
{
    char broken[200] = "";

    if (bh_engine_check(story->engine, broken, sizeof(broken)))
        return;
    fprintf(stderr, "after record %llu: %s\n", (unsigned long long)story->seq, broken);
    fail();
}

/* Take an event; the twin replays its decisions and must come out the same. */
static inline bh_rc
bh_story_send(struct bh_story *story, struct bh_event *event)
{
    static struct bh_step replayed;
    bh_rc rc;

    event->now_ns = story->now_ns;
    event->seq = ++story->seq;
    rc = bh_engine_step(story->engine, event, &story->step);
    if (rc != BH_OK && !story->quick && story->digest)
        assert_true(bh_story_digest(story->engine) == story->digest);
    if (rc != BH_OK)
        return rc;
    bh_story_keep_effects(story);
    if (story->quick)
        return rc;
    bh_story_check(story);
    assert_int_equal(bh_engine_replay(story->twin, event, story->step.decisions,
                                      story->step.decision_count, &replayed),
                     BH_OK);
    story->digest = bh_story_digest(story->engine);
    assert_true(story->digest == bh_story_digest(story->twin));
    assert_int_equal(replayed.effect_count, story->step.effect_count);
    return rc;
}

#endif
