#include "api/request/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"
#include "wire/message_node.h"

enum { INVENTORY_JSON_MAX = 16 << 20, NODES_MAX = 4096 /* as many as the daemon has links to */ };

static void
facts_add_node(struct bh_facts *facts, struct bh_json *json)
{
    struct bh_node_facts *node;
    bool fits;

    fits = bh_vec_reserve(&facts->nodes, &facts->node_capacity, (size_t)facts->node_count + 1, NODES_MAX);
    BH_ASSERT(fits);
    node = &facts->nodes[facts->node_count++];
    *node = (struct bh_node_facts){ .root = bh_json_root(json), .json = json };
    node->name = bh_json_text(bh_json_get(node->root, "node"), "");
    facts->gpu_count += (uint32_t)bh_json_count(bh_json_get(node->root, "gpus"));
}

static void
list_gpus(struct bh_facts *facts)
{
    struct bh_gpu_facts_of *gpu = calloc(facts->gpu_count + 1, sizeof *gpu);

    BH_ASSERT(gpu);
    facts->gpus = gpu;
    for (uint32_t i = 0; i < facts->node_count; i++) {
        bh_json_value gpus = bh_json_get(facts->nodes[i].root, "gpus");

        for (size_t n = 0; n < bh_json_count(gpus); n++, gpu++) {
            gpu->gpu = bh_json_at(gpus, n);
            gpu->uuid = bh_json_text(bh_json_get(gpu->gpu, "uuid"), "");
            gpu->node = &facts->nodes[i];
        }
    }
}

/* Both structs begin with the text that they are found by. */
static int
facts_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
bh_facts_load(const struct bh_owner *owner, struct bh_facts *ret_facts)
{
    struct bh_buf text;
    struct bh_json *json;
    struct bh_err unused;

    *ret_facts = (struct bh_facts){ 0 };
    bh_buf_init(&text, INVENTORY_JSON_MAX);
    for (uint32_t cursor = 0; owner->ops->inventory(owner->self, &cursor, &text);) {
        if (bh_buf_text(&text) && bh_json_parse(bh_buf_text(&text), text.length, &json, &unused) == BH_OK)
            facts_add_node(ret_facts, json);
        bh_buf_clear(&text);
    }
    bh_buf_fini(&text);
    if (ret_facts->node_count)
        qsort(ret_facts->nodes, ret_facts->node_count, sizeof *ret_facts->nodes, facts_compare);
    list_gpus(ret_facts);
    qsort(ret_facts->gpus, ret_facts->gpu_count, sizeof *ret_facts->gpus, facts_compare);
}

void
bh_facts_fini(struct bh_facts *facts)
{
    for (uint32_t i = 0; i < facts->node_count; i++)
        bh_json_free(facts->nodes[i].json);
    free(facts->nodes);
    free(facts->gpus);
}

const struct bh_node_facts *
bh_facts_node(const struct bh_facts *facts, const char *name)
{
    if (!facts->node_count)
        return NULL;
    return bsearch(&name, facts->nodes, facts->node_count, sizeof *facts->nodes, facts_compare);
}

const struct bh_gpu_facts_of *
bh_facts_gpu(const struct bh_facts *facts, const char *uuid)
{
    return bsearch(&uuid, facts->gpus, facts->gpu_count, sizeof *facts->gpus, facts_compare);
}

const char *
bh_facts_fence_why(const struct bh_gpu_facts_of *gpu, bool sees_all)
{
    bh_json_value sample = bh_facts_sample(gpu);
    const char *why = bh_json_text(bh_json_get(sample, "fence_why"), "");

    if (sees_all || !*why)
        return why;
    return bh_json_number(bh_json_get(sample, "fault"), 0) == BH_FAULT_ISOLATION
               ? "an isolation check failed"
               : "its driver does not answer for it";
}

/* NULL before the first sample, and where the last one has no such GPU. */
static bh_json_value
facts_find_sample(const struct bh_gpu_facts_of *gpu)
{
    bh_json_value samples = bh_json_get(bh_json_get(gpu->node->root, "samples"), "gpus");

    for (size_t i = 0; i < bh_json_count(samples); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(samples, i), "uuid"), ""), gpu->uuid) == 0)
            return bh_json_at(samples, i);
    return NULL;
}

static bool
facts_has_samples(const struct bh_node_facts *node)
{
    return bh_json_kind(bh_json_get(node->root, "samples")) == BH_JSON_OBJECT;
}

bh_json_value
bh_facts_sample(const struct bh_gpu_facts_of *gpu)
{
    bh_json_value sample = facts_find_sample(gpu);

    return sample ? sample : gpu->gpu;
}

bh_json_value
bh_facts_reading(const struct bh_gpu_facts_of *gpu)
{
    return facts_has_samples(gpu->node) ? facts_find_sample(gpu) : gpu->gpu;
}

bh_ns
bh_facts_reported_ns(const struct bh_node_facts *node)
{
    return bh_json_number(bh_json_get(node->root, facts_has_samples(node) ? "samples_ns" : "inventory_ns"),
                          0);
}
