#include "node/placement/xid_window.h"

#include "base/test.h"

static struct bh_xid_window window;
static struct bh_list found;

static uint32_t
count_of(struct bh_arena *arena, bh_ns now, const char *gpu, uint32_t xid)
{
    const struct bh_msg_xid_count *items;

    bh_arena_reset(arena);
    bh_xid_window_put(&window, now, arena, &found);
    items = found.items;
    for (uint32_t i = 0; i < found.count; i++)
        if (items[i].xid == xid && strcmp(items[i].gpu, gpu) == 0)
            return items[i].count;
    return 0;
}

static void
counts_are_of_the_window(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    const bh_ns first = 7;

    BH_CHECK_EQ("none", count_of(arena, first, "GPU-a", 31), 0);
    bh_xid_window_add(&window, "GPU-a", 31, first);
    bh_xid_window_add(&window, "GPU-b", 31, first + 1);
    bh_xid_window_add(&window, "GPU-a", 48, first + 2);
    bh_xid_window_add(&window, "GPU-a", 31, first + 3);
    BH_CHECK_EQ("of this GPU", count_of(arena, first + 3, "GPU-a", 31), 2);
    BH_CHECK_EQ("of the other", count_of(arena, first + 3, "GPU-b", 31), 1);
    BH_CHECK_EQ("of the other kind", count_of(arena, first + 3, "GPU-a", 48), 1);
    BH_CHECK_EQ("no more", found.count, 3);
    BH_CHECK_EQ("at the end of the window", count_of(arena, first + BH_XID_WINDOW_NS, "GPU-a", 31), 2);
    BH_CHECK_EQ("past it", count_of(arena, first + BH_XID_WINDOW_NS + 1, "GPU-a", 31), 1);
    BH_CHECK_EQ("past all", count_of(arena, first + 2 * BH_XID_WINDOW_NS, "GPU-a", 31), 0);
    BH_CHECK_DONE();
}

static void
a_storm_keeps_the_last_ones(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);

    window = (struct bh_xid_window){ 0 };
    bh_xid_window_add(&window, "GPU-a", 48, 1);
    for (uint32_t i = 0; i < BH_XID_WINDOW_MAX + 5; i++)
        bh_xid_window_add(&window, "GPU-a", 31, 2 + i);
    BH_CHECK_EQ("the storm", count_of(arena, 5000, "GPU-a", 31), BH_XID_WINDOW_MAX);
    BH_CHECK_EQ("what was before", count_of(arena, 5000, "GPU-a", 48), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_are_of_the_window),
    cmocka_unit_test(a_storm_keeps_the_last_ones),
};

BH_TEST_MAIN(tests)
