#include "model/gpu_form.h"

#include "base/assert.h"
#include "policy/explain_internal.h"

/* Which form of a GPU a job has, and why: what its boundary calls for. */

/* "the boundary hard of acme/vision" */
static void
put_boundary(const struct phrase *p)
{
    const struct bh_gpu_form_reason *form = &p->reason->form;

    bh_buf_puts(p->out, "the boundary ");
    bh_buf_puts(p->out, bh_boundary_names[form->boundary]);
    bh_buf_puts(p->out, " of ");
    bh_explain_tenant(p, form->tenant);
}

/* "the boundary hard of acme/vision calls for a MIG instance" */
static void
put_call(const struct phrase *p)
{
    const struct bh_gpu_form_reason *form = &p->reason->form;

    if (form->tenant.v == 0) {
        bh_buf_puts(p->out, "no boundary between the tenants of the GPU requires more than a share");
        return;
    }
    put_boundary(p);
    bh_buf_puts(p->out, " requires ");
    bh_buf_puts(p->out, bh_gpu_form_names[form->called]);
}

static void
put_not_offered(const struct phrase *p)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)p->reason->form.model);

    put_call(p);
    bh_buf_puts(p->out, ", which the SKU does not offer on ");
    bh_buf_puts(p->out, facts ? facts->name : "this model");
}

static void
put_blocks_less(const struct phrase *p)
{
    put_call(p);
    bh_buf_puts(p->out, ", for which there was no capacity without one more empty GPU");
}

static void
put_strongest(const struct phrase *p)
{
    put_call(p);
    bh_buf_puts(p->out,
                ", and the SKU offers nothing as strong: jobs across that boundary are kept off the GPU");
}

void
bh_explain_form(const struct phrase *p)
{
    static void (*const text[])(const struct phrase *) = {
        [BH_GPU_FORM_CALLED] = put_call,
        [BH_GPU_FORM_NOT_OFFERED] = put_not_offered,
        [BH_GPU_FORM_BLOCKS_LESS] = put_blocks_less,
        [BH_GPU_FORM_STRONGEST] = put_strongest,
    };
    const struct bh_gpu_form_reason *form = &p->reason->form;

    BH_ASSERT((uint32_t)form->form < BH_GPU_FORMS && (uint32_t)form->called < BH_GPU_FORMS);
    if (form->cause == BH_GPU_FORM_NO_CAUSE)
        return;
    bh_buf_puts(p->out, "; ");
    if (form->cause == BH_GPU_FORM_FORBIDDEN) {
        put_call(p);
        bh_buf_puts(p->out, ", so ");
        bh_buf_puts(p->out, bh_gpu_form_names[form->form]);
        bh_buf_puts(p->out, " is not given to it");
        return;
    }
    bh_buf_puts(p->out, "it has ");
    bh_buf_puts(p->out, bh_gpu_form_names[form->form]);
    bh_buf_puts(p->out, ": ");
    text[form->cause](p);
}

void
bh_explain_never_form(const struct phrase *p)
{
    const struct bh_dir_sku *sku = bh_directory_sku(p->how->dir, p->reason->sku);

    bh_buf_puts(p->out, "the GPUs here could hold ");
    bh_buf_puts(p->out, sku ? sku->name : "it");
    bh_buf_puts(p->out, " only in a form that is too weak for the tenant's boundary");
}

void
bh_explain_next_never_form(const struct phrase *p)
{
    bh_buf_puts(
        p->out,
        "choose another SKU (`bulkhead get skus`), or have an admin add a stronger form to this SKU on the "
        "site's GPU models");
}
