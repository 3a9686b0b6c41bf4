#include "api/nodes/runnable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request/facts.h"
#include "base/num.h"
#include "model/geometry.h"
#include "model/image.h"
#include "model/path.h"

enum { WHY_MAX = 160 };

struct runnable_wanted {
    const struct bh_job_spec *spec;
    uint64_t models; /* of its SKU; 0: unknown */
    const struct bh_datasets *datasets;
    uint64_t memory_mib;
    struct bh_image image;
};

static bool
runnable_lists(bh_json_value node, const char *key, const char *text)
{
    bh_json_value items = bh_json_get(node, key);

    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(bh_json_text(bh_json_at(items, i), ""), text) == 0)
            return true;
    return false;
}

static bool
runnable_has_root(bh_json_value node, const char *key, const char *path)
{
    bh_json_value roots = bh_json_get(node, key);

    for (size_t i = 0; i < bh_json_count(roots); i++)
        if (bh_file_path_within(bh_json_text(bh_json_at(roots, i), "/"), path))
            return true;
    return false;
}

/* Up to the port or the first slash: the node holds the rest of an entry against the image. */
static size_t
runnable_host_length(const char *text)
{
    return strcspn(text, ":/");
}

static bool
runnable_fetches_from(bh_json_value node, const char *source)
{
    bh_json_value registries = bh_json_get(node, "registries");

    for (size_t i = 0; i < bh_json_count(registries); i++) {
        const char *entry = bh_json_text(bh_json_at(registries, i), "");

        entry += strncmp(entry, "http:", 5) == 0 ? 5 : 0;
        if (runnable_host_length(entry) == runnable_host_length(source)
            && strncmp(entry, source, runnable_host_length(source)) == 0)
            return true;
    }
    return false;
}

/* True: the node gives the image; else `ret_why`. */
static bool
runnable_gives_image(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    const struct bh_image *image = &wanted->image;
    bool packed = image->kind == BH_IMAGE_OCI || image->kind == BH_IMAGE_REGISTRY;

    if (packed && !bh_json_truth(bh_json_get(node, "unpacks")))
        snprintf(ret_why, WHY_MAX,
                 "has no umoci, and images need it: install umoci, or set umoci in node.conf");
    else if (image->kind == BH_IMAGE_REGISTRY && !bh_json_truth(bh_json_get(node, "fetches")))
        snprintf(
            ret_why, WHY_MAX,
            "has no skopeo, and images of registries need it: install skopeo, or set skopeo in node.conf");
    else if (image->kind == BH_IMAGE_REGISTRY && !runnable_fetches_from(node, image->path))
        snprintf(ret_why, WHY_MAX, "fetches nothing from %.*s (registries)",
                 (int)runnable_host_length(image->path), image->path);
    else if ((image->kind == BH_IMAGE_OCI || image->kind == BH_IMAGE_DIR)
             && !runnable_has_root(node, "image_roots", image->path))
        snprintf(ret_why, WHY_MAX, "has no images at %.100s (image_roots)", image->path);
    else
        return true;
    return false;
}

/* Where the mount's folder is on a node; NULL: a dataset that there is not, which is the owner's to
 * say. */
static const char *
runnable_folder_of(const struct runnable_wanted *wanted, const struct bh_mount_spec *mount)
{
    const struct bh_dataset *dataset =
        mount->dataset ? bh_datasets_find(wanted->datasets, mount->dataset) : NULL;

    if (mount->dataset)
        return dataset ? dataset->text->path : NULL;
    return mount->source;
}

/* A dataset's folder is not named: a submitter that mounts it by name need not know it. */
static bool
runnable_gives_folders(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    const struct bh_job_spec *spec = wanted->spec;
    const struct bh_mount_spec *mounts = spec->mounts.items;

    for (uint32_t i = 0; i < spec->mounts.count; i++) {
        const char *folder = runnable_folder_of(wanted, &mounts[i]);

        if (!folder || runnable_has_root(node, "mount_roots", folder))
            continue;
        if (mounts[i].dataset)
            snprintf(ret_why, WHY_MAX, "mounts nothing where dataset %.63s lies (mount_roots)",
                     mounts[i].dataset);
        else
            snprintf(ret_why, WHY_MAX, "mounts nothing at %.100s (mount_roots)", folder);
        return false;
    }
    if (!bh_spec_cwd_folder(spec) || runnable_has_root(node, "mount_roots", spec->cwd))
        return true;
    snprintf(ret_why, WHY_MAX, "mounts nothing at %.100s (mount_roots)", spec->cwd);
    return false;
}

static bool
runnable_gives_memory(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    uint64_t most_mib = bh_json_number(bh_json_get(node, "job_memory_mib"), 0);

    if (!most_mib || wanted->memory_mib <= most_mib)
        return true;
    snprintf(ret_why, WHY_MAX, "gives a job %" PRIu64 " MiB of memory at most (memory_max_mib)", most_mib);
    return false;
}

static bool
runnable_gives_network(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    const char *name = bh_network_mode_names[wanted->spec->network];

    if (wanted->spec->network == BH_NETWORK_NONE || runnable_lists(node, "networks", name))
        return true;
    snprintf(ret_why, WHY_MAX, "has no network %s (networks)", name);
    return false;
}

/* How much the node lacks; `ret_why` is the first of it. */
static uint32_t
runnable_count_lacks(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    static bool (*const checks[])(bh_json_value, const struct runnable_wanted *,
                                  char[WHY_MAX]) = { runnable_gives_memory, runnable_gives_network,
                                                     runnable_gives_image, runnable_gives_folders };
    uint32_t lacks = 0;
    char why[WHY_MAX];

    for (size_t i = 0; i < BH_COUNT(checks); i++)
        if (!checks[i](node, wanted, why) && lacks++ == 0)
            memcpy(ret_why, why, WHY_MAX);
    return lacks;
}

/* Whether it has a GPU of the SKU's models, as far as they are known, and the memory in its machine: on what
 * no node has of these, the engine refuses. */
static bool
runnable_is_candidate(bh_json_value node, const struct runnable_wanted *wanted)
{
    bh_json_value gpus = bh_json_get(node, "gpus");
    bool model = wanted->models == 0;

    for (size_t i = 0; i < bh_json_count(gpus) && !model; i++) {
        const char *product = bh_json_text(bh_json_get(bh_json_at(gpus, i), "product"), "");

        model = wanted->models >> bh_model_by_product(product) & 1;
    }
    return model && wanted->memory_mib <= bh_json_number(bh_json_get(node, "memory_mib"), UINT64_MAX);
}

/* Whether there is anything to ask nodes for.  Memory only where the job says it: a size's own would
 * have nodes asked at each submission. */
static bool
runnable_reads(const struct bh_job_spec *spec, struct runnable_wanted *ret_wanted)
{
    bool image =
        spec->image && strcmp(spec->image, "host") != 0 && !bh_image_parse(spec->image, &ret_wanted->image);

    return image || spec->network != BH_NETWORK_NONE || spec->mounts.count > 0 || bh_spec_cwd_folder(spec)
           || spec->memory;
}

/* The candidate that lacks least, and the first thing it lacks; NULL: one lacks nothing, or there is none. */
static const struct bh_node_facts *
runnable_find_nearest(const struct bh_facts *facts, const struct runnable_wanted *wanted,
                      char ret_why[WHY_MAX])
{
    const struct bh_node_facts *nearest = NULL;
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < facts->node_count && least > 0; i++) {
        const struct bh_node_facts *node = &facts->nodes[i];
        char why[WHY_MAX] = "";
        uint32_t lacks;

        if (!runnable_is_candidate(node->root, wanted))
            continue;
        lacks = runnable_count_lacks(node->root, wanted, why);
        if (lacks >= least)
            continue;
        least = lacks;
        nearest = lacks ? node : NULL;
        memcpy(ret_why, why, WHY_MAX);
    }
    return nearest;
}

bh_rc
bh_runnable_check(struct bh_call *call, const struct bh_job_spec *spec, const struct bh_job_numbers *numbers,
                  struct bh_err *err)
{
    const struct bh_dir_sku *sku = bh_directory_sku_named(call->dir, spec->sku);
    struct runnable_wanted wanted = { .spec = spec,
                                      .models = sku ? sku->models : 0,
                                      .datasets = &call->dir->datasets,
                                      .memory_mib = numbers->memory_bytes >> 20 };
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    const struct bh_node_facts *nearest;
    char why[WHY_MAX];

    if (!runnable_reads(spec, &wanted))
        return BH_OK;
    bh_facts_load(&call->api->options.owner, &facts);
    nearest = runnable_find_nearest(&facts, &wanted, why);
    if (!nearest)
        return BH_OK;
    if (facts.node_count == 1)
        bh_err_set(err, BH_RANGE, "no node can run it: %.60s %.150s", nearest->name, why);
    else
        bh_err_set(err, BH_RANGE, "no node can run it; %.60s lacks least: it %.150s", nearest->name, why);
    return bh_err_hint(err, "an administrator can change that in node.conf of a node; `bulkhead get "
                            "nodes` lists them");
}

bool
bh_runnable_image(const struct bh_call *call, const struct bh_job_spec *spec)
{
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    struct bh_image image;

    if (!spec->image || bh_image_parse(spec->image, &image) || image.path[0] != '/')
        return true;
    bh_facts_load(&call->api->options.owner, &facts);
    for (uint32_t i = 0; i < facts.node_count; i++)
        if (runnable_has_root(facts.nodes[i].root, "image_roots", image.path))
            return true;
    return facts.node_count == 0;
}
