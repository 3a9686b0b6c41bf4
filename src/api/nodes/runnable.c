#include "api/nodes/runnable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request/facts.h"
#include "model/image.h"
#include "model/path.h"

enum { WHY_MAX = 160 };

struct runnable_wanted {
    const struct bh_job_spec *spec;
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
runnable_gives_image(bh_json_value node, const struct bh_image *image, char ret_why[WHY_MAX])
{
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
runnable_all(bh_json_value node, const struct runnable_wanted *wanted, char ret_why[WHY_MAX])
{
    uint64_t most_mib = bh_json_number(bh_json_get(node, "job_memory_mib"), 0);
    enum bh_network_mode mode = wanted->spec->network;

    uint64_t has_mib = bh_json_number(bh_json_get(node, "memory_mib"), UINT64_MAX);

    /* More than the machine has is the engine's to refuse: it knows what would fit where. */
    if (most_mib && wanted->memory_mib > most_mib && wanted->memory_mib <= has_mib)
        snprintf(ret_why, WHY_MAX, "gives a job %" PRIu64 " MiB of memory at most (memory_max_mib)",
                 most_mib);
    else if (mode != BH_NETWORK_NONE && !runnable_lists(node, "networks", bh_network_mode_names[mode]))
        snprintf(ret_why, WHY_MAX, "has no network %s (networks)", bh_network_mode_names[mode]);
    else
        return runnable_gives_image(node, &wanted->image, ret_why)
               && runnable_gives_folders(node, wanted, ret_why);
    return false;
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

bh_rc
bh_runnable_check(struct bh_call *call, const struct bh_job_spec *spec, const struct bh_job_numbers *numbers,
                  struct bh_err *err)
{
    struct runnable_wanted wanted = { .spec = spec,
                                      .datasets = &call->dir->datasets,
                                      .memory_mib = numbers->memory_bytes >> 20 };
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    char why[WHY_MAX] = "";

    if (!runnable_reads(spec, &wanted))
        return BH_OK;
    bh_facts_load(&call->api->options.owner, &facts);
    for (uint32_t i = 0; i < facts.node_count; i++)
        if (runnable_all(facts.nodes[i].root, &wanted, why))
            return BH_OK;
    if (facts.node_count == 0)
        return BH_OK;
    bh_err_set(err, BH_RANGE, "no node can run it%s: %.60s %.150s",
               facts.node_count > 1 ? ", each for a reason of its own" : "",
               facts.nodes[facts.node_count - 1].name, why);
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
