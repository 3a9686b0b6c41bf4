#ifndef BH_ENGINE_STATE_REASON_H
#define BH_ENGINE_STATE_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "model/gpu_form.h"
#include "model/ids.h"

/* Why something is as it is: one dominant code with its operands, so that words
 * can be made later (policy/explain.h) without guessing. */
enum bh_reason_code {
#define BH_REASON(code, name, doc) BH_REASON_##code,
#include "tables/reasons.tbl"
#undef BH_REASON
    BH_REASONS
};

extern const char *const bh_reason_names[BH_REASONS];

/* Why a job has the form of a GPU that it has: share, MIG instance or whole GPU. */
enum bh_gpu_form_cause {
    BH_GPU_FORM_NO_CAUSE,
    BH_GPU_FORM_CALLED,      /* the boundary that counts for its tenant calls for it */
    BH_GPU_FORM_NOT_OFFERED, /* the SKU does not offer what that calls for on the model */
    BH_GPU_FORM_BLOCKS_LESS, /* what that calls for had no room, or blocked more */
    BH_GPU_FORM_STRONGEST,   /* weaker than that calls for: the SKU offers nothing stronger */
    BH_GPU_FORM_FORBIDDEN,   /* it waits: the boundary keeps it from this form of its SKU */
};

struct bh_gpu_form_reason {
    enum bh_gpu_form_cause cause;
    enum bh_gpu_form form, called;
    enum bh_boundary boundary; /* that counts, and whose it is; 0: none is between */
    bh_tenant_id tenant;
    uint32_t model; /* enum bh_gpu_model */
};

/* Why a job that waits for room that others hold takes none of it back, though a guarantee
 * says something of it. */
enum bh_guarantee_cause {
    BH_GUARANTEE_NO_CAUSE,    /* none does, or it waits for something else */
    BH_GUARANTEE_USED,        /* it has no room for the job */
    BH_GUARANTEE_NO_BORROWER, /* no tenant that does not share it uses more than it is guaranteed */
    BH_GUARANTEE_NEVER,       /* jobs run that have the contract never */
    BH_GUARANTEE_YOUNG,       /* they have not run for the time that they were promised */
    BH_GUARANTEE_RESET,       /* they stand on GPUs that are reset before they give room */
    BH_GUARANTEE_TOO_LITTLE,  /* they would not make room enough */
    BH_GUARANTEE_SPENT,       /* it had others leave as often as a job may */
    BH_GUARANTEE_CAUSES
};

extern const char *const bh_guarantee_cause_names[BH_GUARANTEE_CAUSES];

struct bh_guarantee_reason {
    enum bh_guarantee_cause cause;
    bh_tenant_id tenant;          /* whose guarantee: the lowest that says something of it */
    bool shared;                  /* not its own tenant's: it holds for others below that as well */
    uint64_t limit, used, wanted; /* parts; limit 0: it is one of a model or of a SKU */
    uint64_t until_ns;            /* YOUNG: when the first is old enough; else 0 */
    uint64_t coming;              /* of `used`: not yet, but room is being made for it */
};

/* Which operands a code uses is said in tables/reasons.tbl; others are 0. */
struct bh_reason {
    enum bh_reason_code code;
    bh_tenant_id tenant; /* whose limit */
    bh_sku_id sku;
    bh_job_id job; /* the job that holds it, or that it is for */
    bh_gpu_id gpu;
    uint32_t model;               /* enum bh_gpu_model */
    uint64_t limit, used, wanted; /* parts, or partitions where a SKU is named */
    uint64_t free_partitions;     /* NO_SHAPE: parts that are free but in other shapes */
    uint64_t expected;            /* KEPT_FORECAST: parts that the tenant may want of its guarantee */
    uint64_t frees_at_ns;         /* by time limits, at the latest; 0 is unknown */
    bool leaving;                 /* then the grace of `job` is over, which is ordered to end already */
    bool assumed;                 /* frees_at_ns counts on an assumed run time: it may be later */
    bh_job_id preempted_for;      /* whatever the code: the job that a pending job was stopped for */
    uint64_t moved_ns;            /* whatever the code: when it was last moved, 0 never; and for */
    bh_job_id moved_for;          /* the job that it is for; 0: to join free capacity, or to leave a GPU */
    enum bh_reason_code also;     /* NO_CAPACITY, NO_SHAPE: why another GPU, which could hold it, */
    bh_gpu_id also_gpu;           /* gets no work; NONE: there is none such */
    struct bh_guarantee_reason guarantee; /* of jobs that wait for room that others hold */
    struct bh_gpu_form_reason form;       /* of RUNNING, and of jobs that wait for room */
};

#endif
