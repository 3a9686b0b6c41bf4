#include "model/gpu_form.h"

#include "base/assert.h"
#include "model/share.h"

const char *const bh_gpu_form_names[BH_GPU_FORMS] = {
    [BH_GPU_FORM_MULTIPLEXED] = "a multiplexed share",
    [BH_GPU_FORM_SHARE] = "a share",
    [BH_GPU_FORM_MIG] = "a MIG instance",
    [BH_GPU_FORM_WHOLE] = "a whole GPU",
};

enum bh_gpu_form
bh_gpu_form_of(bh_profile_id profile)
{
    if (bh_share_is_multiplexed(profile))
        return BH_GPU_FORM_MULTIPLEXED;
    if (bh_profile_is_share(profile))
        return BH_GPU_FORM_SHARE;
    return profile.v == BH_PROFILE_WHOLE.v ? BH_GPU_FORM_WHOLE : BH_GPU_FORM_MIG;
}

enum bh_gpu_form
bh_boundary_form(enum bh_boundary boundary)
{
    static const enum bh_gpu_form weakest[BH_BOUNDARIES] = {
        [BH_BOUNDARY_UNSET] = BH_GPU_FORM_MULTIPLEXED, [BH_BOUNDARY_NONE] = BH_GPU_FORM_MULTIPLEXED,
        [BH_BOUNDARY_SOFT] = BH_GPU_FORM_SHARE,        [BH_BOUNDARY_HARD] = BH_GPU_FORM_MIG,
        [BH_BOUNDARY_FORTRESS] = BH_GPU_FORM_WHOLE,
    };

    BH_ASSERT((uint32_t)boundary < BH_BOUNDARIES);
    return weakest[boundary];
}
