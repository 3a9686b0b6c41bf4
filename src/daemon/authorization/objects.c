#include "daemon/authorization/objects.h"

#include <stdio.h>
#include <string.h>

#include "api/request/token.h"
#include "audit/claims.h"
#include "base/nearest.h"

enum { PREFIX_MIN = 8 }; /* "GPU-3f2a" */

/* The GPU of that UUID, or the only one whose UUID begins so. */
static bh_rc
objects_find_gpu(const struct bh_core *core, const char *target, bh_gpu_id *ret_gpu, struct bh_err *err)
{
    uint32_t cursor = 0, id, found = bh_catalog_find(core->catalog, BH_NAME_GPU, target);
    const char *name;

    ret_gpu->v = found;
    if (found || strlen(target) < PREFIX_MIN)
        return BH_OK;
    while ((name = bh_catalog_next(core->catalog, BH_NAME_GPU, &cursor, &id))) {
        if (strncmp(name, target, strlen(target)) != 0)
            continue;
        if (ret_gpu->v)
            return bh_err_set(err, BH_INVALID, "several GPUs begin with %.80s", target);
        ret_gpu->v = id;
    }
    return BH_OK;
}

/* With the name that was probably meant, where one is like it. */
static bh_rc
objects_refuse_target(const struct bh_core *core, const char *target, struct bh_err *err)
{
    static const enum bh_name_kind kinds[] = { BH_NAME_NODE, BH_NAME_GPU };
    struct bh_nearest nearest = { 0 };
    const char *name;

    for (size_t i = 0; i < BH_COUNT(kinds); i++) {
        uint32_t cursor = 0, id;

        while ((name = bh_catalog_next(core->catalog, kinds[i], &cursor, &id)))
            bh_nearest_try(&nearest, target, name);
    }
    bh_err_set(err, BH_NOT_FOUND, "no GPU or node %.119s", target);
    if (nearest.word)
        return bh_err_hint(err, "did you mean %s?", nearest.word);
    return bh_err_hint(err, "bulkhead node lists nodes, bulkhead gpu -o wide GPUs by UUID");
}

bh_rc
bh_objects_find_target(const struct bh_core *core, const char *target, struct bh_ev_cordon *ret_cordon,
                       struct bh_err *err)
{
    bh_rc rc;

    ret_cordon->node.v = bh_catalog_find(core->catalog, BH_NAME_NODE, target);
    if (ret_cordon->node.v)
        return BH_OK;
    rc = objects_find_gpu(core, target, &ret_cordon->gpu, err);
    if (rc != BH_OK || ret_cordon->gpu.v)
        return rc;
    return objects_refuse_target(core, target, err);
}

struct bh_record_object
bh_objects_of_target(const struct bh_ev_cordon *cordon)
{
    if (cordon->node.v)
        return (struct bh_record_object){ "node", cordon->node.v };
    return (struct bh_record_object){ "gpu", cordon->gpu.v };
}

static bool
objects_read_number(void *self, const struct bh_token_row *row)
{
    *(struct bh_record_object *)self =
        (struct bh_record_object){ "token", bh_token_number(row->secret.bytes) };
    return false;
}

struct bh_record_object
bh_objects_of_token(const struct bh_core *core, const char *id)
{
    struct bh_record_object object = { .id = 0 };
    struct bh_err ignored;

    if (bh_token_id_valid(id))
        (void)!core->store.ops->list_tokens(core->store.self, &(struct bh_token_filter){ .id = id },
                                            objects_read_number, &object, &ignored);
    return object;
}

static struct bh_record_object
objects_named(const struct bh_core *core, enum bh_name_kind kind, const char *type, const char *name)
{
    struct bh_record_object object = { .id = bh_catalog_find(core->catalog, kind, name) };

    if (object.id)
        snprintf(object.type, sizeof object.type, "%s", type);
    return object;
}

struct bh_record_object
bh_objects_of_request(const struct bh_core *core, const struct bh_refused_request *refused)
{
    struct bh_ev_cordon cordon = { .gpu = { 0 } };
    struct bh_err ignored;

    if (refused->object.type[0])
        return refused->object;
    if (refused->job.v > 0 && refused->job.v < core->next_job)
        return (struct bh_record_object){ .type = "job", .id = refused->job.v };
    if (!refused->target)
        return (struct bh_record_object){ .id = 0 };
    switch ((int)refused->op) {
    case BH_OP_TOKEN_REVOKE:
        return bh_objects_of_token(core, refused->target);
    case BH_OP_ACCOUNT_ENROL:
    case BH_OP_ACCOUNT_RESET:
        return objects_named(core, BH_NAME_PRINCIPAL, "account", refused->target);
    case BH_OP_NODE_VERIFY:
        return objects_named(core, BH_NAME_NODE, "node", refused->target);
    default:
        if (bh_objects_find_target(core, refused->target, &cordon, &ignored) != BH_OK)
            return (struct bh_record_object){ .id = 0 };
        return bh_objects_of_target(&cordon);
    }
}
