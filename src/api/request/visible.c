#include "api/request/visible.h"

#include <stdlib.h>

bh_rc
bh_visible_find(const struct bh_call *call, const char *verb, struct bh_visible *ret_visible,
                struct bh_err *err)
{
    struct bh_visible visible = { 0 };
    bh_rc rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *visible.ids, &visible.ids, err);

    if (rc != BH_OK)
        return rc;
    visible.count = bh_authz_visible(call->dir, &call->caller.subject, verb, visible.ids, &visible.all);
    *ret_visible = visible;
    return BH_OK;
}

static int
visible_compare(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

bool
bh_visible_has(const struct bh_visible *visible, uint32_t tenant)
{
    return visible->all
           || (visible->count > 0
               && bsearch(&tenant, visible->ids, visible->count, sizeof tenant, visible_compare));
}

bh_rc
bh_visible_narrow(const struct bh_call *call, const char *path, struct bh_visible *visible,
                  struct bh_err *err)
{
    const struct bh_dir_tenant *top = bh_directory_tenant_named(call->dir, path);
    uint32_t kept = 0;

    for (uint32_t i = 0; top && i < visible->count; i++)
        if (bh_directory_within(call->dir, top->id, (bh_tenant_id){ visible->ids[i] }))
            visible->ids[kept++] = visible->ids[i];
    if (kept == 0) {
        bh_err_set(err, BH_NOT_FOUND, "no tenant %.119s that you may see", path);
        return bh_err_hint(err, "`bulkhead tenant` lists those you may see");
    }
    visible->count = kept;
    visible->all = false;
    return BH_OK;
}

bh_rc
bh_visible_read(const struct bh_call *call, const char *verb, struct bh_visible *ret_visible,
                struct bh_err *err)
{
    bh_rc rc = bh_visible_find(call, verb, ret_visible, err);

    if (rc != BH_OK || !call->query.tenant)
        return rc;
    return bh_visible_narrow(call, call->query.tenant, ret_visible, err);
}

bh_rc
bh_visible_explain(const struct bh_call *call, struct bh_explain *ret_how, struct bh_err *err)
{
    struct bh_visible visible;
    bh_rc rc = bh_visible_find(call, "job.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    *ret_how = (struct bh_explain){ .dir = call->dir,
                                    .visible = visible.ids,
                                    .visible_count = visible.count,
                                    .all = visible.all,
                                    .now_ns = bh_call_now(call) };
    return BH_OK;
}
