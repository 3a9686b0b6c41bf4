#include "replay/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { NAMES_MAX = 4096, NAME_BYTES = 128 };

struct name {
    char text[NAME_BYTES];
    bool gone;
};

struct names_list {
    struct name *names; /* the id is the index + 1 */
    uint32_t count;
};

struct bh_names {
    struct names_list lists[BH_NAMED_KINDS];
    struct bh_dir_tenant *tenants;
    struct bh_dir_sku *skus;
    struct bh_dir_gpu *gpus;
    struct bh_directory directory;
};

static const char *const nouns[BH_NAMED_KINDS] = {
    [BH_NAMED_TENANT] = "tenant", [BH_NAMED_SKU] = "SKU", [BH_NAMED_NODE] = "node",
    [BH_NAMED_GPU] = "GPU",       [BH_NAMED_JOB] = "job",
};

static void *
names_room_for(size_t size)
{
    void *memory = calloc(NAMES_MAX, size);

    BH_ASSERT(memory);
    return memory;
}

struct bh_names *
bh_names_new(void)
{
    struct bh_names *names = calloc(1, sizeof *names);

    BH_ASSERT(names);
    for (uint32_t kind = 0; kind < BH_NAMED_KINDS; kind++)
        names->lists[kind].names = names_room_for(sizeof(struct name));
    names->tenants = names_room_for(sizeof *names->tenants);
    names->skus = names_room_for(sizeof *names->skus);
    names->gpus = names_room_for(sizeof *names->gpus);
    return names;
}

void
bh_names_free(struct bh_names *names)
{
    if (!names)
        return;
    for (uint32_t kind = 0; kind < BH_NAMED_KINDS; kind++)
        free(names->lists[kind].names);
    free(names->tenants);
    free(names->skus);
    free(names->gpus);
    free(names);
}

/* The id of that name, or 0. */
static uint32_t
names_id_of(const struct bh_names *names, enum bh_named kind, const char *text)
{
    const struct names_list *list = &names->lists[kind];

    for (uint32_t i = 0; i < list->count; i++)
        if (!list->names[i].gone && strcmp(list->names[i].text, text) == 0)
            return i + 1;
    return 0;
}

static bh_rc
names_check_new(const struct bh_names *names, enum bh_named kind, const char *text, struct bh_err *err)
{
    if (strlen(text) >= NAME_BYTES)
        return bh_err_set(err, BH_INVALID, "%s %.40s...: the name is too long", nouns[kind], text);
    if (names_id_of(names, kind, text))
        return bh_err_set(err, BH_CONFLICT, "there is a %s %s already", nouns[kind], text);
    return BH_OK;
}

bh_rc
bh_names_add(struct bh_names *names, enum bh_named kind, const char *text, uint32_t *ret_id,
             struct bh_err *err)
{
    struct names_list *list = &names->lists[kind];
    bh_rc rc = names_check_new(names, kind, text, err);

    if (rc != BH_OK)
        return rc;
    if (list->count == NAMES_MAX)
        return bh_err_set(err, BH_FULL, "more than %d names of one kind", NAMES_MAX);
    memcpy(list->names[list->count].text, text, strlen(text) + 1);
    *ret_id = ++list->count;
    return BH_OK;
}

bh_rc
bh_names_find(const struct bh_names *names, enum bh_named kind, const char *text, uint32_t *ret_id,
              struct bh_err *err)
{
    uint32_t id = names_id_of(names, kind, text);

    if (!id)
        return bh_err_set(err, BH_NOT_FOUND, "there is no %s %.80s", nouns[kind], text);
    *ret_id = id;
    return BH_OK;
}

const char *
bh_names_text(const struct bh_names *names, enum bh_named kind, uint32_t id)
{
    const struct names_list *list = &names->lists[kind];

    return id >= 1 && id <= list->count ? list->names[id - 1].text : "?";
}

bh_rc
bh_names_change(struct bh_names *names, enum bh_named kind, uint32_t id, const char *text, struct bh_err *err)
{
    bh_rc rc = names_check_new(names, kind, text, err);

    BH_ASSERT(id >= 1 && id <= names->lists[kind].count);
    if (rc != BH_OK)
        return rc;
    memcpy(names->lists[kind].names[id - 1].text, text, strlen(text) + 1);
    return BH_OK;
}

void
bh_names_drop(struct bh_names *names, enum bh_named kind, uint32_t id)
{
    BH_ASSERT(id >= 1 && id <= names->lists[kind].count);
    names->lists[kind].names[id - 1].gone = true;
}

const struct bh_directory *
bh_names_directory(struct bh_names *names)
{
    const struct names_list *tenants = &names->lists[BH_NAMED_TENANT];
    const struct names_list *skus = &names->lists[BH_NAMED_SKU];
    const struct names_list *gpus = &names->lists[BH_NAMED_GPU];

    for (uint32_t i = 0; i < tenants->count; i++)
        names->tenants[i] = (struct bh_dir_tenant){ .id = { i + 1 },
                                                    .path = tenants->names[i].text,
                                                    .gone = tenants->names[i].gone };
    for (uint32_t i = 0; i < skus->count; i++)
        names->skus[i] =
            (struct bh_dir_sku){ .id = { i + 1 }, .name = skus->names[i].text, .gone = skus->names[i].gone };
    for (uint32_t i = 0; i < gpus->count; i++)
        names->gpus[i] = (struct bh_dir_gpu){ { i + 1 }, gpus->names[i].text };
    names->directory = (struct bh_directory){
        .tenants = names->tenants,
        .tenant_count = tenants->count,
        .skus = names->skus,
        .sku_count = skus->count,
        .gpus = names->gpus,
        .gpu_count = gpus->count,
    };
    return &names->directory;
}
