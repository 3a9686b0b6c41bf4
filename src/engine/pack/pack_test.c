/* The packing index against an exhaustive search by the definitions; policy bulkhead has
 * its own search in pack_bulkhead_test.c. */
#include "engine/pack/pack.h"

#include "engine/pack/pack_reference_test.h"

/* Best fit as the artifact states it, but exact: 100 less the hundredths left, rounded up.
 */
static int64_t
fit_score(const struct world *world, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
          uint32_t gpus)
{
    struct bh_pack_node left = reference_take(node, shape, gpus);
    int64_t parts = 0, points;

    for (uint32_t g = 0; g < left.gpus; g++)
        parts += left.parts[g];
    points = 50 * (left.cpu_milli * 8LL * BH_GPU_PARTS + parts * 128000);
    return 100 - (points + 128000LL * 8 * BH_GPU_PARTS - 1) / (128000LL * 8 * BH_GPU_PARTS);
}

/* FGD's artifact works with doubles, which round: the index gets that as its rounding. */
static int64_t
fgd_score(const struct world *world, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
          uint32_t gpus)
{
    struct bh_pack_node left = reference_take(node, shape, gpus);
    double gain = reference_sum(world, node) - reference_sum(world, &left);

    return (int64_t)(1 / (1 + exp(-(gain / 1000))) * 100);
}

static bool
fgd_seems_loss(const void *self, const struct bh_pack_node *left, const struct bh_pack_shape *want,
               uint32_t gpus)
{
    return fgd_score(self, left, want, gpus) < 50;
}

typedef int64_t score(const struct world *world, const struct bh_pack_node *node,
                      const struct bh_pack_shape *shape, uint32_t gpus);

static bool
is_part(const struct bh_pack_shape *shape)
{
    return shape->gpus == 1 && shape->parts < BH_GPU_PARTS;
}

/* The GPU with the greatest score, the first of equals. */
static uint32_t
best_scored(const struct world *world, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
            score *rate)
{
    uint32_t best = 0;
    int64_t most = INT64_MIN;

    for (uint32_t g = 0; g < node->gpus; g++) {
        int64_t points;

        if (node->parts[g] < shape->parts)
            continue;
        points = rate(world, node, shape, 1U << g);
        best = points > most ? 1U << g : best;
        most = points > most ? points : most;
    }
    return best;
}

static uint32_t
tightest(const struct bh_pack_node *node, const struct bh_pack_shape *shape)
{
    uint32_t best = 0, least = UINT32_MAX;

    for (uint32_t g = 0; g < node->gpus; g++) {
        if (node->parts[g] < shape->parts || node->parts[g] >= least)
            continue;
        least = node->parts[g];
        best = 1U << g;
    }
    return best;
}

static score *const scores[BH_PACK_BULKHEAD] = {
    [BH_PACK_BESTFIT] = fit_score,
    [BH_PACK_FGD] = fgd_score,
};

static uint32_t
choose_gpus(const struct world *world, const struct bh_pack_node *node, const struct bh_pack_shape *shape,
            enum bh_pack_policy policy)
{
    if (!is_part(shape))
        return reference_first_gpus(node, shape);
    return policy == BH_PACK_BESTFIT ? tightest(node, shape) : best_scored(world, node, shape, fgd_score);
}

/* To 0 .. 100 over the nodes with room, as the artifact does before it compares. */
static void
normalise(int64_t *points, const bool *capacity, uint32_t count)
{
    int64_t low = INT64_MAX, high = INT64_MIN;

    for (uint32_t n = 0; n < count; n++) {
        low = capacity[n] && points[n] < low ? points[n] : low;
        high = capacity[n] && points[n] > high ? points[n] : high;
    }
    for (uint32_t n = 0; n < count; n++)
        if (capacity[n])
            points[n] = high == low ? 0 : (points[n] - low) * 100 / (high - low);
}

static int
search(const struct world *world, uint32_t s, enum bh_pack_policy policy, uint32_t *ret_gpus)
{
    const struct bh_pack_shape *shape = &world->shapes[s];
    int64_t points[WORLD_NODES] = { 0 };
    uint32_t gpus[WORLD_NODES] = { 0 };
    bool capacity[WORLD_NODES] = { 0 };
    int best = NO_NODE;

    for (uint32_t n = 0; n < world->node_count; n++) {
        capacity[n] = reference_has_capacity(&world->nodes[n], shape);
        if (!capacity[n])
            continue;
        gpus[n] = choose_gpus(world, &world->nodes[n], shape, policy);
        points[n] = scores[policy](world, &world->nodes[n], shape, gpus[n]);
    }
    if (policy == BH_PACK_BESTFIT)
        normalise(points, capacity, world->node_count);
    for (uint32_t n = 0; n < world->node_count; n++)
        if (capacity[n] && (best == NO_NODE || points[n] > points[best]))
            best = (int)n;
    if (best != NO_NODE)
        *ret_gpus = gpus[best];
    return best;
}

/* What was placed, to be given back. */
struct placed {
    uint32_t shape;
    struct bh_pack_placement placement;
};
enum { PLACED_MAX = 64, STEPS = 60 };

struct history {
    struct world world;
    enum bh_pack_policy policy;
    struct bh_pack *pack;
    uint32_t count;
    struct placed placed[PLACED_MAX];
    char name[64];
};

static bool
find_gpu_group(struct history *history, uint32_t shape, struct bh_pack_placement *ret_placement)
{
    uint32_t gpus = 0;
    int node = search(&history->world, shape, history->policy, &gpus);
    struct bh_pack_rounding rounding = { fgd_seems_loss, &history->world };
    bool found = bh_pack_find_rounded(history->pack, shape, &rounding, ret_placement);

    BH_CHECK_EQ(history->name, found, node != NO_NODE);
    if (!found || node == NO_NODE)
        return false;
    BH_CHECK_EQ(history->name, ret_placement->node, node);
    BH_CHECK_EQ(history->name, ret_placement->gpus, gpus);
    return bh_test_failures == 0;
}

static void
pack_test_placement(struct history *history)
{
    struct world *world = &history->world;
    uint32_t shape = world_draw(world, world->shape_count);
    struct bh_pack_placement placement;

    if (history->count == PLACED_MAX || !find_gpu_group(history, shape, &placement))
        return;
    bh_pack_acquire(history->pack, shape, &placement);
    world->nodes[placement.node] =
        reference_take(&world->nodes[placement.node], &world->shapes[shape], placement.gpus);
    history->placed[history->count++] = (struct placed){ shape, placement };
}

static void
pack_test_give_back(struct history *history)
{
    uint32_t which = world_draw(&history->world, history->count);
    struct placed placed = history->placed[which];

    history->placed[which] = history->placed[--history->count];
    bh_pack_release(history->pack, placed.shape, &placed.placement);
    history->world.nodes[placed.placement.node] = *bh_pack_node(history->pack, placed.placement.node);
}

/* A node comes back, or another takes its place; nothing is left of what it held. */
static void
replace_node(struct history *history)
{
    struct world *world = &history->world;
    uint32_t node = world_draw(world, world->node_count), kept = 0;

    world->nodes[node] = world_draw_node(world);
    bh_pack_set_node(history->pack, node, &world->nodes[node]);
    for (uint32_t i = 0; i < history->count; i++)
        if (history->placed[i].placement.node != node)
            history->placed[kept++] = history->placed[i];
    history->count = kept;
}

static void
change_expectation(struct history *history)
{
    struct world *world = &history->world;
    uint32_t shape = world_draw(world, world->shape_count);

    world->weights[shape] = world_draw(world, 300);
    assert_true(bh_pack_expect(history->pack, shape, world->weights[shape]));
}

static void
check_fragmentation(struct history *history)
{
    int64_t sum = 0;

    for (uint32_t n = 0; n < history->world.node_count; n++)
        sum += reference_loss(&history->world, &history->world.nodes[n]);
    BH_CHECK_EQ(history->name, bh_pack_fragmentation(history->pack), sum);
}

static void
pack_test_live(struct history *history)
{
    for (uint32_t step = 0; step < STEPS && bh_test_failures == 0; step++) {
        uint32_t what = world_draw(&history->world, 40);

        if (what == 0)
            replace_node(history);
        else if (what == 1)
            change_expectation(history);
        else if (what < 10 && history->count)
            pack_test_give_back(history);
        else
            pack_test_placement(history);
        check_fragmentation(history);
    }
}

static void
answers_equal_a_search(void **state)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        for (enum bh_pack_policy policy = 0; policy < BH_PACK_BULKHEAD; policy++) {
            static struct history history;

            memset(&history, 0, sizeof history);
            history.policy = policy;
            snprintf(history.name, sizeof history.name, "%s, seed %d", bh_pack_policy_names[policy],
                     (int)seed);
            world_make(&history.world, seed);
            history.pack = world_index(&history.world, policy);
            pack_test_live(&history);
            free(history.pack);
            BH_CHECK_DONE();
        }
    }
}

static void
shapes_are_numbered_once(void **state)
{
    struct bh_pack_caps caps = { 1, 2 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_FGD);
    struct bh_pack_shape a = { .cpu_milli = 1, .models = 1 }, b = a, c = a;

    b.memory_mib = 7;
    c.gpus = 1;
    c.parts = 42;
    assert_int_equal(bh_pack_shape(pack, &a), 0);
    assert_int_equal(bh_pack_shape(pack, &b), 1);
    assert_int_equal(bh_pack_shape(pack, &a), 0);
    assert_int_equal(bh_pack_shape(pack, &c), UINT32_MAX);
    assert_int_equal(bh_pack_shape(pack, &b), 1);
    free(pack);
}

static void
too_many_expected_amounts_are_refused(void **state)
{
    struct bh_pack_caps caps = { 1, BH_PACK_AMOUNTS_MAX + 2 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_FGD);
    uint32_t last = 0;

    for (uint32_t i = 0; i <= BH_PACK_AMOUNTS_MAX; i++) {
        struct bh_pack_shape shape = { .cpu_milli = 1000 + i, .gpus = 1, .parts = 42, .models = 1 };

        last = bh_pack_shape(pack, &shape);
        assert_int_equal(bh_pack_expect(pack, last, 1), i < BH_PACK_AMOUNTS_MAX);
    }
    assert_true(bh_pack_expect(pack, 0, 0)); /* one that is not expected makes room */
    assert_true(bh_pack_expect(pack, last, 1));
    free(pack);
}

static void
a_node_never_set_has_nothing(void **state)
{
    struct bh_pack_caps caps = { 3, 1 };
    struct bh_pack *pack = bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BESTFIT);
    struct bh_pack_shape nothing = { .models = 1 };
    struct bh_pack_node node = { .cpu_milli = 1 };
    struct bh_pack_placement placement;
    uint32_t shape = bh_pack_shape(pack, &nothing);

    assert_false(bh_pack_find(pack, shape, &placement));
    bh_pack_set_node(pack, 2, &node);
    assert_true(bh_pack_find(pack, shape, &placement));
    assert_int_equal(placement.node, 2);
    free(pack);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(answers_equal_a_search),
    cmocka_unit_test(shapes_are_numbered_once),
    cmocka_unit_test(too_many_expected_amounts_are_refused),
    cmocka_unit_test(a_node_never_set_has_nothing),
};

BH_TEST_MAIN(tests)
