#include "engine/pack/pack.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "engine/pack/pack_internal.h"
#include "engine/pack/pack_kind.h"
#include "engine/pack/pack_loss.h"
#include "engine/pack/pack_price.h"
#include "engine/pack/pack_waste.h"

/* A power of two with at most half of it in use, for open addressing. */
static uint32_t
pack_index_slots(uint32_t entries)
{
    uint32_t slots = 16;

    while (slots < 2 * entries)
        slots *= 2;
    return slots;
}

static bool
pack_has_lookahead(const struct bh_pack *pack)
{
    return bh_pack_rules[pack->policy].has_lookahead;
}

static size_t
pack_lay(size_t *end, size_t bytes)
{
    size_t start = (*end + 63) / 64 * 64;

    *end = start + bytes;
    return start;
}

/* Set where everything stands; returns the bytes it takes. */
static size_t
pack_layout(struct bh_pack *pack, const struct bh_pack_caps *caps)
{
    size_t end = sizeof *pack;
    uint32_t kinds = caps->kinds ? caps->kinds : BH_PACK_KINDS_MAX;
    uint32_t models = caps->models ? caps->models : BH_PACK_MODELS_MAX;
    uint32_t stride = bh_pack_kind_stride(caps->nodes, kinds);
    uint32_t twin_slots = pack_index_slots(caps->nodes), request_slots = pack_index_slots(caps->shapes);

    pack->caps = (struct bh_pack_caps){ caps->nodes, caps->shapes, kinds, models };
    pack->twin_mask = twin_slots - 1;
    pack->request_mask = request_slots - 1;
    pack->hosts = pack_lay(&end, caps->nodes * sizeof(struct bh_pack_host));
    pack->twins = pack_lay(&end, caps->nodes * sizeof(struct bh_pack_twins));
    pack->twin_index = pack_lay(&end, twin_slots * sizeof(uint32_t));
    pack->requests = pack_lay(&end, caps->shapes * sizeof(struct bh_pack_request));
    pack->find_in_index = pack_lay(&end, request_slots * sizeof(uint32_t));
    pack->rows = pack_lay(&end, bh_pack_loss_rows(models) * sizeof(struct bh_pack_loss_row));
    pack->positions = pack_lay(&end, caps->nodes * sizeof(uint32_t));
    pack->occupants = pack_lay(&end, stride * sizeof(uint32_t));
    pack->waste_rows = pack_lay(&end, bh_pack_waste_rows_size(kinds));
    pack->waste_nodes = pack_lay(&end, bh_pack_waste_nodes_size(kinds));
    pack->waste_offers = pack_lay(&end, bh_pack_waste_offers_size(caps));
    pack->trees = pack_lay(&end, (size_t)caps->shapes * stride * sizeof(int32_t));
    return end;
}

size_t
bh_pack_size(const struct bh_pack_caps *caps)
{
    struct bh_pack pack;

    return pack_layout(&pack, caps);
}

struct bh_pack *
bh_pack_init(void *memory, const struct bh_pack_caps *caps, enum bh_pack_policy policy)
{
    struct bh_pack *pack = memory;

    BH_ASSERT(caps->nodes > 0 && caps->shapes > 0);
    BH_ASSERT((uintptr_t)memory % 16 == 0 && policy < BH_PACK_POLICIES);
    memset(pack, 0, sizeof *pack);
    pack_layout(pack, caps);
    memset(bh_pack_at(pack, pack->hosts), 0, caps->nodes * sizeof(struct bh_pack_host));
    memset(bh_pack_at(pack, pack->twin_index), 0xff, (pack->twin_mask + 1) * sizeof(uint32_t));
    memset(bh_pack_at(pack, pack->find_in_index), 0xff, (pack->request_mask + 1) * sizeof(uint32_t));
    pack->policy = policy;
    pack->stride = bh_pack_kind_stride(caps->nodes, pack_has_lookahead(pack) ? pack->caps.kinds : 1);
    pack->newest = BH_PACK_NOWHERE;
    pack->kinds.count = 1;
    pack->stale = pack->scattered = true;
    return pack;
}

static uint64_t
pack_hash_words(const void *bytes, size_t length)
{
    const char *at = bytes;
    uint64_t hash = length;

    for (; length > 0; at += sizeof hash, length -= sizeof hash) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The group of nodes that were set like this one. */
static uint32_t
pack_find_twins(struct bh_pack *pack, const struct bh_pack_node *left)
{
    struct bh_pack_twins *twins = bh_pack_at(pack, pack->twins);
    uint32_t *slots = bh_pack_at(pack, pack->twin_index);
    uint32_t slot = (uint32_t)pack_hash_words(left, sizeof *left) & pack->twin_mask;

    for (; slots[slot] != BH_PACK_NOWHERE; slot = (slot + 1) & pack->twin_mask)
        if (memcmp(&twins[slots[slot]].left, left, sizeof *left) == 0)
            return slots[slot];
    if (pack->groups == pack->caps.nodes)
        return BH_PACK_NOWHERE;
    slots[slot] = pack->groups;
    twins[pack->groups] = (struct bh_pack_twins){ .left = *left };
    return pack->groups++;
}

static void
pack_unlink_host(struct bh_pack *pack, const struct bh_pack_host *host)
{
    if (host->older != BH_PACK_NOWHERE)
        bh_pack_host(pack, host->older)->newer = host->newer;
    if (host->newer != BH_PACK_NOWHERE)
        bh_pack_host(pack, host->newer)->older = host->older;
    else
        pack->newest = host->older;
}

/* Put the node in front of the list of changes. */
static void
pack_touch(struct bh_pack *pack, uint32_t node)
{
    struct bh_pack_host *host = bh_pack_host(pack, node);

    if (host->changed)
        pack_unlink_host(pack, host);
    host->changed = ++pack->now;
    host->newer = BH_PACK_NOWHERE;
    host->older = pack->newest;
    if (pack->newest != BH_PACK_NOWHERE)
        bh_pack_host(pack, pack->newest)->newer = node;
    pack->newest = node;
}

/* Work out anew what follows from the parts left on each GPU. */
static void
pack_sum_up(struct bh_pack_host *host)
{
    host->whole = host->broken = host->most_free = 0;
    host->whole_count = 0;
    host->parts = 0;
    for (uint32_t g = 0; g < host->left.gpus; g++) {
        uint16_t parts = host->left.parts[g];

        BH_ASSERT(parts <= BH_GPU_PARTS);
        host->parts += parts;
        host->whole |= (uint16_t)((parts == BH_GPU_PARTS) << g);
        host->whole_count += parts == BH_GPU_PARTS;
        host->broken |= (uint16_t)((parts > 0 && parts < BH_GPU_PARTS) << g);
        host->most_free = parts > host->most_free ? parts : host->most_free;
    }
}

/* Bring the tables' view of a host up to date, where there are tables. */
static void
pack_refresh(struct bh_pack *pack, struct bh_pack_host *host)
{
    if (pack_has_lookahead(pack) && !bh_pack_waste_covers(pack, host))
        pack->stale = true;
    if (pack->stale)
        return;
    bh_pack_loss_refresh(pack, host);
    if (pack_has_lookahead(pack))
        bh_pack_waste_refresh(pack, host);
}

/* The node's model and free parts come in, or go out, of the books. */
static void
pack_count_in(struct bh_pack *pack, const struct bh_pack_host *host)
{
    pack->market.free_parts[host->left.model] += host->parts;
}

static void
pack_count_out(struct bh_pack *pack, const struct bh_pack_host *host)
{
    pack->market.free_parts[host->left.model] -= host->parts;
}

void
bh_pack_set_node(struct bh_pack *pack, uint32_t node, const struct bh_pack_node *left)
{
    struct bh_pack_host *host = bh_pack_host(pack, node);
    size_t used = left->gpus * sizeof left->parts[0];
    uint32_t kind = bh_pack_kind(pack, &host->left);

    BH_ASSERT(node < pack->caps.nodes && left->model < BH_PACK_MODELS_MAX);
    BH_ASSERT(left->gpus <= BH_PACK_GPUS_MAX);
    pack_count_out(pack, host);
    host->left = *left;
    memset((char *)host->left.parts + used, 0, sizeof host->left.parts - used);
    host->twin = pack_find_twins(pack, &host->left);
    pack_sum_up(host);
    pack_count_in(pack, host);
    pack_touch(pack, node);
    if (!(pack->models >> left->model & 1)) {
        pack->models |= 1ULL << left->model;
        pack->stale = true;
    }
    if (bh_pack_kind(pack, left) != kind)
        pack->scattered = true;
    pack_refresh(pack, host);
}

const struct bh_pack_node *
bh_pack_node(const struct bh_pack *pack, uint32_t node)
{
    BH_ASSERT(node < pack->caps.nodes);
    return &bh_pack_host(pack, node)->left;
}

static bool
pack_is_same_shape(const struct bh_pack_shape *a, const struct bh_pack_shape *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

uint32_t
bh_pack_shape(struct bh_pack *pack, const struct bh_pack_shape *shape)
{
    uint32_t *slots = bh_pack_at(pack, pack->find_in_index);
    uint32_t slot = (uint32_t)pack_hash_words(shape, sizeof *shape) & pack->request_mask;

    BH_ASSERT(shape->parts <= BH_GPU_PARTS);
    BH_ASSERT(shape->gpus <= 1 || shape->parts == BH_GPU_PARTS);
    BH_ASSERT(shape->gpus == 0 || shape->parts > 0);
    for (; slots[slot] != BH_PACK_NOWHERE; slot = (slot + 1) & pack->request_mask)
        if (pack_is_same_shape(&bh_pack_request(pack, slots[slot])->want, shape))
            return slots[slot];
    if (pack->shapes == pack->caps.shapes)
        return BH_PACK_NOWHERE;
    slots[slot] = pack->shapes;
    *bh_pack_request(pack, pack->shapes) = (struct bh_pack_request){ .want = *shape };
    return pack->shapes++;
}

bool
bh_pack_expect(struct bh_pack *pack, uint32_t shape, uint32_t weight)
{
    struct bh_pack_request *ask = bh_pack_request(pack, shape);

    BH_ASSERT(shape < pack->shapes && weight < BH_PACK_WEIGHT_MAX);
    if (weight > 0 && !bh_pack_loss_admit(pack, &ask->want))
        return false;
    ask->weight = weight;
    pack->stale = true;
    return true;
}

static void
pack_build_tables(struct bh_pack *pack)
{
    bh_pack_loss_build(pack);
    if (pack_has_lookahead(pack)) {
        bh_pack_kind_sort(pack);
        bh_pack_price_build(pack);
        bh_pack_waste_build(pack);
    }
    pack->stale = false;
    pack->scattered = true;
    for (uint32_t n = pack->newest; n != BH_PACK_NOWHERE; n = bh_pack_host(pack, n)->older)
        pack_refresh(pack, bh_pack_host(pack, n));
}

void
bh_pack_prepare(struct bh_pack *pack)
{
    if (pack->stale)
        pack_build_tables(pack);
    if (!pack->scattered)
        return;
    bh_pack_kind_position(pack);
    for (uint32_t s = 0; s < pack->shapes; s++)
        bh_pack_request(pack, s)->seen = 0;
    pack->scattered = false;
}

static inline int32_t
pack_score(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want)
{
    if (!bh_pack_has_capacity(host, want))
        return BH_PACK_NO_CAPACITY;
    return bh_pack_rules[pack->policy].score(pack, host, want);
}

/* The same, once for all twins in a filling. */
static int32_t
pack_score_twin(struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_shape *want)
{
    struct bh_pack_twins *twins = bh_pack_at(pack, pack->twins);

    if (host->twin == BH_PACK_NOWHERE)
        return pack_score(pack, host, want);
    twins += host->twin;
    if (twins->filling != pack->filling) {
        twins->filling = pack->filling;
        twins->score = pack_score(pack, host, want);
    }
    return twins->score;
}

static int32_t *
pack_tree_of(const struct bh_pack *pack, uint32_t shape)
{
    return (int32_t *)bh_pack_at(pack, pack->trees) + (size_t)shape * pack->stride;
}

static void
pack_fill(struct bh_pack *pack, uint32_t shape)
{
    const struct bh_pack_shape *want = &bh_pack_request(pack, shape)->want;
    const uint32_t *positions = bh_pack_kind_positions(pack);
    int32_t *tree = pack_tree_of(pack, shape);

    pack->filling++;
    for (uint32_t k = 0; k < pack->kinds.count; k++)
        bh_pack_tree_clear(&pack->kinds.stand[k].plan, tree + pack->kinds.stand[k].first);
    for (uint32_t n = 0; n < pack->caps.nodes; n++) {
        const struct bh_pack_host *host = bh_pack_host(pack, n);

        if (host->changed)
            tree[positions ? positions[n] : n] = pack_score_twin(pack, host, want);
    }
    for (uint32_t k = 0; k < pack->kinds.count; k++)
        bh_pack_tree_build(&pack->kinds.stand[k].plan, tree + pack->kinds.stand[k].first);
}

/* Bring the shape's tree up to date. */
static void
pack_catch_up(struct bh_pack *pack, uint32_t shape)
{
    struct bh_pack_request *ask = bh_pack_request(pack, shape);
    const uint32_t *positions = bh_pack_kind_positions(pack);
    int32_t *tree = pack_tree_of(pack, shape);
    uint32_t node = pack->newest;

    if (ask->seen == 0)
        pack_fill(pack, shape);
    while (ask->seen && node != BH_PACK_NOWHERE) {
        const struct bh_pack_host *host = bh_pack_host(pack, node);
        uint32_t position = positions ? positions[node] : node;
        int32_t now;

        if (host->changed <= ask->seen)
            break;
        now = pack_score(pack, host, &ask->want);
        if (now != tree[position])
            bh_pack_kind_set(pack, tree, bh_pack_kind(pack, &host->left), position, now);
        node = host->older;
    }
    ask->seen = pack->now;
}

bool
bh_pack_find(struct bh_pack *pack, uint32_t shape, struct bh_pack_placement *ret_placement)
{
    return bh_pack_find_rounded(pack, shape, NULL, ret_placement);
}

bool
bh_pack_find_rounded(struct bh_pack *pack, uint32_t shape, const struct bh_pack_rounding *rounding,
                     struct bh_pack_placement *ret_placement)
{
    const struct bh_pack_shape *want = &bh_pack_request(pack, shape)->want;
    int32_t *tree = pack_tree_of(pack, shape);
    const uint32_t *positions;

    BH_ASSERT(shape < pack->shapes);
    bh_pack_prepare(pack);
    positions = bh_pack_kind_positions(pack);
    pack_catch_up(pack, shape);
    for (;;) {
        struct bh_pack_placement placement = { .node = bh_pack_kind_best(pack, tree, want) };
        const struct bh_pack_host *host;
        uint32_t position;
        int32_t sure;

        if (placement.node == BH_PACK_NOWHERE)
            return false;
        host = bh_pack_host(pack, placement.node);
        position = positions ? positions[placement.node] : placement.node;
        sure = bh_pack_rules[pack->policy].pick(pack, host, want, rounding, &placement.gpus);
        if (sure == tree[position]) {
            *ret_placement = placement;
            return true;
        }
        BH_ASSERT(sure < tree[position]);
        bh_pack_kind_set(pack, tree, bh_pack_kind(pack, &host->left), position, sure);
    }
}

/* A shape has come to a node or left it. */
static void
pack_update(struct bh_pack *pack, const struct bh_pack_shape *want, uint32_t node)
{
    struct bh_pack_host *host = bh_pack_host(pack, node);

    pack_count_out(pack, host);
    host->twin = BH_PACK_NOWHERE;
    pack_sum_up(host);
    pack_count_in(pack, host);
    pack_touch(pack, node);
    pack_refresh(pack, host);
    if (want->gpus > 0 && pack_has_lookahead(pack) && !pack->stale)
        bh_pack_price_count(pack);
}

void
bh_pack_acquire(struct bh_pack *pack, uint32_t shape, const struct bh_pack_placement *placement)
{
    const struct bh_pack_shape *want = &bh_pack_request(pack, shape)->want;
    struct bh_pack_node *left = &bh_pack_host(pack, placement->node)->left;

    BH_ASSERT((uint32_t)__builtin_popcount(placement->gpus) == want->gpus);
    BH_ASSERT(left->cpu_milli >= want->cpu_milli && left->memory_mib >= want->memory_mib);
    left->cpu_milli -= want->cpu_milli;
    left->memory_mib -= want->memory_mib;
    for (uint32_t gpus = placement->gpus; gpus; gpus &= gpus - 1) {
        uint16_t *parts = &left->parts[__builtin_ctz(gpus)];

        BH_ASSERT(*parts >= want->parts);
        *parts = (uint16_t)(*parts - want->parts);
    }
    pack_update(pack, want, placement->node);
}

void
bh_pack_release(struct bh_pack *pack, uint32_t shape, const struct bh_pack_placement *placement)
{
    const struct bh_pack_shape *want = &bh_pack_request(pack, shape)->want;
    struct bh_pack_node *left = &bh_pack_host(pack, placement->node)->left;

    BH_ASSERT((uint32_t)__builtin_popcount(placement->gpus) == want->gpus);
    left->cpu_milli += want->cpu_milli;
    left->memory_mib += want->memory_mib;
    for (uint32_t gpus = placement->gpus; gpus; gpus &= gpus - 1) {
        uint16_t *parts = &left->parts[__builtin_ctz(gpus)];

        *parts = (uint16_t)(*parts + want->parts);
    }
    pack_update(pack, want, placement->node);
}

void
bh_pack_reckon(struct bh_pack *pack)
{
    if (pack_has_lookahead(pack) && !pack->stale)
        bh_pack_price_reckon(pack);
}

bool
bh_pack_judge(const struct bh_pack *pack, uint32_t node, const struct bh_pack_shape *want, int32_t *ret_score)
{
    const struct bh_pack_host *host = bh_pack_host(pack, node);
    int64_t price = 0;

    BH_ASSERT(node < pack->caps.nodes);
    if (pack->stale || !host->changed || !bh_pack_has_capacity(host, want))
        return false;
    if (pack->kinds.count > 1)
        price = bh_pack_price(pack, bh_pack_kind(pack, &host->left), want);
    *ret_score = (int32_t)(pack_score(pack, host, want) - price);
    return true;
}

uint64_t
bh_pack_fragmentation(struct bh_pack *pack)
{
    uint64_t sum = 0;

    bh_pack_prepare(pack);
    for (uint32_t n = pack->newest; n != BH_PACK_NOWHERE; n = bh_pack_host(pack, n)->older)
        sum += (uint64_t)bh_pack_host(pack, n)->loss;
    return sum;
}
