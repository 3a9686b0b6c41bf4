#include "base/arena.h"

#include <stdint.h>

#include "base/test.h"

static const struct {
    const char *name;
    size_t cap, bytes;
    bool fits;
} sizes[] = {
    { "nothing", 64, 0, true },
    { "one byte", 64, 1, true },
    { "the cap", 64, 64, true },
    { "one over the cap", 64, 65, false },
    { "more than a block", 1 << 20, 100000, true },
    { "a size that wraps", 1 << 20, SIZE_MAX, false },
    { "a size that wraps when aligned", 1 << 20, SIZE_MAX - 7, false },
    { "no cap to speak of", SIZE_MAX, 1, true },
    { "a cap of nothing", 0, 1, false },
};

static void
test_sizes(void **state)
{
    for (size_t i = 0; i < BH_COUNT(sizes); i++) {
        struct bh_arena *arena = bh_arena_new(sizes[i].cap);

        BH_CHECK_EQ(sizes[i].name, bh_arena_alloc(arena, sizes[i].bytes) != NULL, sizes[i].fits);
        BH_CHECK(sizes[i].name, bh_arena_used(arena) <= sizes[i].cap);
        bh_arena_free(arena);
    }
    bh_arena_free(NULL);
    BH_CHECK_DONE();
}

static bool
all_zero(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Fills a fresh arena with pieces of growing size, over many blocks. */
static void
arena_test_fill(struct bh_arena *arena)
{
    for (size_t bytes = 1; bytes < 20000; bytes += bytes / 3 + 1) {
        unsigned char *chunk = bh_arena_alloc(arena, bytes);

        assert_non_null(chunk);
        BH_CHECK_EQ("aligned", (uintptr_t)chunk % _Alignof(max_align_t), 0);
        BH_CHECK("zeroed", all_zero(chunk, bytes));
        memset(chunk, 0xff, bytes);
    }
}

static void
test_reset_zeroes_what_it_hands_out_again(void **state)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    for (int round = 0; round < 3; round++) {
        arena_test_fill(arena);
        BH_CHECK("used", bh_arena_used(arena) > 20000);
        bh_arena_reset(arena);
        BH_CHECK_EQ("reset", bh_arena_used(arena), 0);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
test_cap_counts_all_blocks(void **state)
{
    struct bh_arena *arena = bh_arena_new(40000);
    size_t count = 0;

    while (bh_arena_alloc(arena, 1000))
        count++;
    BH_CHECK_EQ("pieces of 1008 bytes", count, 40000 / 1008);
    BH_CHECK("smaller ones still fit", bh_arena_alloc(arena, 16));
    bh_arena_reset(arena);
    BH_CHECK("all of it after a reset", bh_arena_alloc(arena, 40000));
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
test_texts(void **state)
{
    struct bh_arena *arena = bh_arena_new(64);
    char *copy = bh_arena_strdup(arena, "copy");

    BH_CHECK_STR("strdup", copy, "copy");
    BH_CHECK_STR("strndup cuts", bh_arena_strndup(arena, "copy", 2), "co");
    BH_CHECK_STR("strndup ends at NUL", bh_arena_strndup(arena, "co\0py", 5), "co");
    BH_CHECK_STR("printf", bh_arena_printf(arena, "%s-%d", "job", 7), "job-7");
    bh_arena_reset(arena);
    copy = bh_arena_strdup(arena, "fifteen letters");
    BH_CHECK_EQ("a text and its NUL", bh_arena_used(arena), 16);
    BH_CHECK("one letter more", bh_arena_strdup(arena, "sixteen letters.") != NULL);
    BH_CHECK_EQ("one letter more", bh_arena_used(arena), 48);
    BH_CHECK("over the cap", bh_arena_printf(arena, "%64s", "x") == NULL);
    BH_CHECK_STR("the first is untouched", copy, "fifteen letters");
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sizes),
    cmocka_unit_test(test_reset_zeroes_what_it_hands_out_again),
    cmocka_unit_test(test_cap_counts_all_blocks),
    cmocka_unit_test(test_texts),
};

BH_TEST_MAIN(tests)
