#ifndef BH_ENGINE_REASON_H
#define BH_ENGINE_REASON_H

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
    BH_GPU_FORM_UNTOLD,
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
    uint32_t model;            /* enum bh_gpu_model */
};

/* Which operands a code uses is said in tables/reasons.tbl; others are 0. */
struct bh_reason {
    enum bh_reason_code code;
    bh_tenant_id tenant;    /* whose limit */
    bh_sku_id sku;
    bh_job_id job;          /* who holds it, or who it is for */
    bh_gpu_id gpu;
    uint32_t model;         /* enum bh_gpu_model */
    uint64_t limit, used, wanted; /* parts, or pieces where a SKU is named */
    uint64_t free_pieces;   /* NO_SHAPE: parts that are free but in other shapes */
    uint64_t expected;      /* KEPT_FORECAST: parts that the tenant may want of its guarantee */
    uint64_t frees_at_ns;   /* by time limits, at the latest; 0 is unknown */
    bool assumed;           /* frees_at_ns counts on an assumed run time: it may be later */
    bh_job_id preempted_for; /* whatever the code: who a job that waits was stopped for */
    uint64_t moved_ns;       /* whatever the code: when it was last moved, 0 never; and for */
    bh_job_id moved_for;     /* whom, 0: to join free room, or to leave a GPU */
    enum bh_reason_code also; /* NO_CAPACITY, NO_SHAPE: why another GPU, which could hold it, */
    bh_gpu_id also_gpu;       /* gets no work; NONE: there is none such */
    struct bh_gpu_form_reason form; /* of RUNNING, and of jobs that wait for room */
};

#endif
