#ifndef BH_ENGINE_GPU_GPU_FORM_H
#define BH_ENGINE_GPU_GPU_FORM_H

#include "engine/state/state_internal.h"

/* The form that a tenant's boundary calls for: share, MIG instance or whole GPU (model/gpu_form.h).
 *
 * The tenants that may use the GPUs of a model: those without children (one with children counts through
 * them) that no limit keeps off them, their own or of one above: a limit of no GPUs, of none of the model, or
 * of none of each SKU that names the model.  The common tenant of a model is the lowest that all of these and
 * the asking tenant are at or below; there may be none.
 *
 * The boundary that counts for a tenant on a model is the strongest from it up to, not including, the common
 * tenant.  It says which form its jobs get of a GPU: the one it calls for; a stronger one where the SKU does
 * not offer that, where there is no room for that, or where that blocks more; a weaker
 * one only where the SKU offers nothing as strong: then the strongest that it offers, and tenants across the
 * boundary stay off the GPU.
 *
 * Common tenants are worked out when tenants or SKUs change; what is asked for a placement is a walk up the
 * tree. */

/* Work out the common tenants anew. */
void bh_gpu_form_recount(struct bh_engine *engine);

/* Whether they are what they should be. */
bool bh_gpu_form_check(const struct bh_engine *engine);

struct bh_gpu_form_call {
    enum bh_boundary boundary; /* that counts; NONE where none does */
    uint32_t tenant;           /* slot: whose it is, or 0 */
    enum bh_gpu_form form;     /* what it calls for */
};
struct bh_gpu_form_call bh_gpu_form_call_of(const struct bh_engine *engine, uint32_t tenant, uint32_t model);

/* Whether the tenant's jobs may keep the SKU by that row, by its form. */
bool bh_gpu_form_allows(const struct bh_engine *engine, uint32_t tenant, const struct sku *sku, uint32_t row);

/* The forms that a SKU offers, as bits; for struct sku.forms. */
uint32_t bh_gpu_form_offered(const struct sku *sku);

/* Of a job (slot): which form it has and why; where it waits, what its boundary keeps it
 * from. Untouched where there is nothing to tell. */
void bh_gpu_form_explain(const struct bh_engine *engine, uint32_t job, struct bh_gpu_form_reason *ret_form);

#endif
