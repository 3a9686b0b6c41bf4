#include "daemon/names/directory.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/num.h"
#include "daemon/names/published.h"
#include "daemon/names/site_gpu.h"

enum { DIRECTORY_ARENA_MAX = 64 << 20 };

/* A directory that is being filled, and where its texts and rows go. */
struct directory_picture {
    struct bh_directory directory;
    struct bh_arena *arena;
};

static void *
directory_alloc(struct bh_arena *arena, uint32_t count, size_t size)
{
    void *place = bh_arena_alloc(arena, count * size + 1);

    BH_ASSERT(place);
    return place;
}

static const char *
directory_copy(struct bh_arena *arena, const char *text)
{
    return text ? bh_arena_strdup(arena, text) : NULL;
}

/* The id of a tenant named in the site file; "*" and NULL are the site, 0.  A name that
 * has no tenant gets an id that no tenant has: it must never come out as the whole site. */
static bh_tenant_id
directory_tenant_id(const struct bh_catalog *catalog, const char *path)
{
    uint32_t id;

    if (!path || strcmp(path, "*") == 0)
        return (bh_tenant_id){ 0 };
    id = bh_catalog_find(catalog, BH_NAME_TENANT, path);
    return (bh_tenant_id){ id ? id : UINT32_MAX };
}

/* The tenant above, also one that was removed: what those below it used is still part of what
 * all above it used. */
static bh_tenant_id
directory_parent_id(const struct bh_catalog *catalog, const char *path)
{
    const char *slash = strrchr(path, '/');
    char parent[512];

    if (!slash || (size_t)(slash - path) >= sizeof parent)
        return (bh_tenant_id){ 0 };
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    return (bh_tenant_id){ bh_catalog_known(catalog, BH_NAME_TENANT, parent) };
}

/* The same for a provider's group. */
static uint32_t
directory_group_id(const struct bh_catalog *catalog, const char *name)
{
    uint32_t id = name ? bh_catalog_find(catalog, BH_NAME_GROUP, name) : 0;

    return name && !id ? UINT32_MAX : id;
}

/* The same for a principal; a binding that names none is a group's. */
static bh_principal_id
directory_principal_id(const struct bh_catalog *catalog, const char *name)
{
    uint32_t id;

    if (!name)
        return (bh_principal_id){ 0 };
    id = bh_catalog_find(catalog, BH_NAME_PRINCIPAL, name);
    return (bh_principal_id){ id ? id : UINT32_MAX };
}

static uint32_t
directory_count_names(const struct bh_catalog *catalog, enum bh_name_kind kind)
{
    uint32_t id = 1;

    while (bh_catalog_name_of(catalog, kind, id))
        id++;
    return id - 1;
}

static enum bh_tenant_kind
directory_kind_of(const struct bh_site *site, const char *path)
{
    const struct bh_site_tenant *tenant = bh_site_tenant_named(site, path);

    return tenant ? bh_site_tenant_kind(tenant) : BH_TENANT_PROJECT;
}

static void
directory_add_tenants(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_TENANT);
    struct bh_dir_tenant *rows = directory_alloc(p->arena, count, sizeof *rows);

    for (uint32_t i = 0; i < count; i++) {
        const char *path = bh_catalog_name_of(catalog, BH_NAME_TENANT, i + 1);

        rows[i] = (struct bh_dir_tenant){
            .id = { i + 1 },
            .parent = directory_parent_id(catalog, path),
            .path = directory_copy(p->arena, path),
            .kind = directory_kind_of(bh_catalog_site(catalog), path),
            .gone = !bh_catalog_find(catalog, BH_NAME_TENANT, path),
        };
    }
    p->directory.tenants = rows;
    p->directory.tenant_count = count;
}

static void
directory_add_skus(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_SKU);
    struct bh_dir_sku *rows = directory_alloc(p->arena, count, sizeof *rows);

    for (uint32_t i = 0; i < count; i++) {
        const char *name = bh_catalog_name_of(catalog, BH_NAME_SKU, i + 1);
        const struct bh_site_sku *sku = bh_site_sku_named(bh_catalog_site(catalog), name);

        rows[i] = (struct bh_dir_sku){
            .id = { i + 1 },
            .name = directory_copy(p->arena, name),
            .cpu = sku ? directory_copy(p->arena, sku->cpu) : NULL,
            .memory = sku ? directory_copy(p->arena, sku->memory) : NULL,
            .gone = !sku,
            .models = sku ? bh_site_sku_models(sku) : 0,
            .managed = sku ? sku->managed : BH_MANAGED_CHARGE,
            .over_cap = sku ? sku->over_cap : BH_OVER_CAP_WARN,
            .over_time = sku ? sku->over_time : BH_OVER_TIME_WARN,
        };
    }
    p->directory.skus = rows;
    p->directory.sku_count = count;
}

static void
directory_add_principals(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_PRINCIPAL);
    struct bh_dir_principal *rows = directory_alloc(p->arena, count, sizeof *rows);

    for (uint32_t i = 0; i < count; i++) {
        const char *name = bh_catalog_name_of(catalog, BH_NAME_PRINCIPAL, i + 1);
        const struct bh_site_principal *known = bh_site_principal_named(bh_catalog_site(catalog), name);

        rows[i] = (struct bh_dir_principal){
            .id = { i + 1 },
            .name = directory_copy(p->arena, name),
            .uid = strcmp(name, "root") == 0  ? 0
                   : known && !known->service ? known->uid
                                              : UINT32_MAX,
            .service = known && known->service,
            .gone = !known && strcmp(name, "root") != 0
                    && !bh_principal_is_issuers(bh_catalog_site(catalog), name),
            .account = known && known->account,
            .break_glass = known && known->break_glass,
            .default_tenant = known ? directory_copy(p->arena, known->default_tenant) : NULL,
            .identity = known ? directory_copy(p->arena, known->identity) : NULL,
        };
    }
    p->directory.principals = rows;
    p->directory.principal_count = count;
}

static void
directory_add_bindings(struct directory_picture *p, const struct bh_catalog *catalog)
{
    const struct bh_list *list = &bh_catalog_site(catalog)->bindings;
    const struct bh_site_binding *from = list->items;
    struct bh_dir_binding *rows = directory_alloc(p->arena, list->count, sizeof *rows);

    for (uint32_t i = 0; i < list->count; i++)
        rows[i] = (struct bh_dir_binding){
            .role = from[i].role,
            .principal = directory_principal_id(catalog, from[i].principal),
            .group = directory_group_id(catalog, from[i].group),
            .gid = from[i].gid,
            .tenant = directory_tenant_id(catalog, from[i].tenant),
        };
    p->directory.bindings = rows;
    p->directory.binding_count = list->count;
}

static void
directory_add_gpus(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_GPU);
    struct bh_dir_gpu *rows = directory_alloc(p->arena, count, sizeof *rows);

    for (uint32_t i = 0; i < count; i++) {
        const char *uuid = bh_catalog_name_of(catalog, BH_NAME_GPU, i + 1);

        rows[i] =
            (struct bh_dir_gpu){ .id = { i + 1 },
                                 .uuid = directory_copy(p->arena, uuid),
                                 .managed = bh_site_gpu_flags(bh_catalog_site(catalog), uuid, "").managed };
    }
    p->directory.gpus = rows;
    p->directory.gpu_count = count;
}

static void
directory_add_mounts(struct directory_picture *p, const struct bh_catalog *catalog)
{
    const struct bh_list *list = &bh_catalog_site(catalog)->mounts;
    const struct bh_site_mount *from = list->items;
    struct bh_dir_mount *rows = directory_alloc(p->arena, list->count, sizeof *rows);

    for (uint32_t i = 0; i < list->count; i++)
        rows[i] = (struct bh_dir_mount){ directory_copy(p->arena, from[i].path),
                                         directory_tenant_id(catalog, from[i].tenant), from[i].write };
    p->directory.mounts = rows;
    p->directory.mount_count = list->count;
}

static void
directory_add_dataset_names(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_DATASET);
    struct bh_dir_dataset *rows = directory_alloc(p->arena, count, sizeof *rows);

    for (uint32_t i = 0; i < count; i++) {
        const char *name = bh_catalog_name_of(catalog, BH_NAME_DATASET, i + 1);

        rows[i] = (struct bh_dir_dataset){ { i + 1 },
                                           directory_copy(p->arena, name),
                                           !bh_catalog_find(catalog, BH_NAME_DATASET, name) };
    }
    p->directory.dataset_names = rows;
    p->directory.dataset_count = count;
}

static void
directory_add_groups(struct directory_picture *p, const struct bh_catalog *catalog)
{
    uint32_t count = directory_count_names(catalog, BH_NAME_GROUP), id = 0, cursor = 0;
    struct bh_dir_group *rows = directory_alloc(p->arena, count, sizeof *rows);
    const char *name;

    while ((name = bh_catalog_next(catalog, BH_NAME_GROUP, &cursor, &id)))
        rows[p->directory.group_count++] = (struct bh_dir_group){ id, directory_copy(p->arena, name) };
    p->directory.groups = rows;
}

static const struct bh_dir_step_up standard_step_ups[] = {
#define BH_STEP_UP(verb, level, seconds) { verb, BH_LEVEL_##level, (seconds)*UINT64_C(1000000000) },
#include "tables/step_up.tbl"
#undef BH_STEP_UP
};

/* What the file says of a verb, before what holds without it. */
static void
directory_add_step_ups(struct directory_picture *p, const struct bh_site *site)
{
    static const uint64_t standard_ns = UINT64_C(300) * 1000000000;
    const struct bh_site_step_up *own = site->sign_in.step_up.items;
    uint32_t count = site->sign_in.step_up.count;
    struct bh_dir_step_up *rows =
        directory_alloc(p->arena, count + BH_COUNT(standard_step_ups), sizeof *rows);
    struct bh_err unused;

    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (struct bh_dir_step_up){ own[i].verb, own[i].level, standard_ns };
        if (own[i].within && bh_parse_span(own[i].within, &rows[i].within_ns, &unused) != BH_OK)
            rows[i].within_ns = 0;
    }
    memcpy(rows + count, standard_step_ups, sizeof standard_step_ups);
    p->directory.step_ups = rows;
    p->directory.step_up_count = count + BH_COUNT(standard_step_ups);
}

/* Policies, datasets and what sign-in says point into the site they were read from: a copy of
 * it that lives as long. */
static void
directory_add_site(struct directory_picture *p, const struct bh_catalog *catalog)
{
    const char *text = bh_catalog_site_text(catalog), *owner;
    struct bh_site *site = directory_alloc(p->arena, 1, sizeof *site);
    uint32_t cursor = 0;
    struct bh_err err;
    bh_rc rc = BH_OK;

    *site = (struct bh_site){ 0 };
    if (text[0])
        rc = bh_json_decode(text, strlen(text), &bh_site_fields, site, p->arena, &err);
    if (rc == BH_OK && bh_policies_next(site, NULL, &cursor, &owner))
        rc = bh_admission_compile(site, p->arena, &p->directory.admission, &err);
    if (rc == BH_OK)
        rc = bh_datasets_compile(site, p->arena, &p->directory.datasets, &err);
    BH_ASSERT(rc == BH_OK); /* it was read and found right before it came into force */
    p->directory.sign_in = &site->sign_in;
    directory_add_step_ups(p, site);
}

void
bh_directory_publish(struct bh_catalog *catalog)
{
    struct directory_picture picture = { .arena = bh_arena_new(DIRECTORY_ARENA_MAX) };

    directory_add_tenants(&picture, catalog);
    directory_add_skus(&picture, catalog);
    directory_add_principals(&picture, catalog);
    directory_add_bindings(&picture, catalog);
    directory_add_gpus(&picture, catalog);
    directory_add_mounts(&picture, catalog);
    directory_add_groups(&picture, catalog);
    directory_add_dataset_names(&picture, catalog);
    directory_add_site(&picture, catalog);
    bh_catalog_publish(catalog, bh_published_new(picture.arena, &picture.directory));
}
