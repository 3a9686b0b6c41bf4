#ifndef BH_MODEL_GPU_FORM_H
#define BH_MODEL_GPU_FORM_H

#include "model/boundary.h"
#include "model/geometry.h"

/* What a job can hold of a GPU, by what separates it from others there, weakest first. */
enum bh_gpu_form {
    BH_GPU_FORM_MULTIPLEXED, /* a share that hands the whole GPU on */
    BH_GPU_FORM_SHARE,       /* any other share: beside others, with its cap */
    BH_GPU_FORM_MIG,
    BH_GPU_FORM_WHOLE,
    BH_GPU_FORMS
};

extern const char *const bh_gpu_form_names[BH_GPU_FORMS]; /* "a MIG instance" */

enum bh_gpu_form bh_gpu_form_of(bh_profile_id profile);

/* The weakest form that a boundary takes: none any share, soft one that is not multiplexed,
 * hard a MIG instance, fortress the whole GPU. */
enum bh_gpu_form bh_boundary_form(enum bh_boundary boundary);

#endif
