#include "model/share.h"

#include "base/assert.h"

/* A profile number of a share: this bit, two bits of mode, thirteen each of compute and
 * memory.  The table of MIG profiles never reaches it. */
#define SHARE_BIT (UINT32_C(1) << 30)
enum { PARTS_BITS = 13, PARTS_MASK = (1 << PARTS_BITS) - 1, MODE_MASK = 3 };
_Static_assert((int)BH_GPU_PARTS <= (int)PARTS_MASK, "parts have their bits");
_Static_assert((int)BH_SHARE_MODES == (int)MODE_MASK + 1, "modes have theirs");

bool
bh_profile_is_share(bh_profile_id profile)
{
    return (profile.v & SHARE_BIT) != 0;
}

bool
bh_share_is_size(const struct bh_share *share)
{
    return share->compute > 0 && share->compute <= BH_GPU_PARTS && share->memory > 0
           && share->memory <= BH_GPU_PARTS && (uint32_t)share->mode < BH_SHARE_MODES;
}

bh_profile_id
bh_share_profile(const struct bh_share *share)
{
    BH_ASSERT(bh_share_is_size(share));
    return (bh_profile_id){ SHARE_BIT | (uint32_t)share->mode << 2 * PARTS_BITS | share->compute << PARTS_BITS
                            | share->memory };
}

bool
bh_share_get(bh_profile_id profile, struct bh_share *ret_share)
{
    struct bh_share share = { profile.v >> PARTS_BITS & PARTS_MASK, profile.v & PARTS_MASK,
                              (enum bh_share_mode)(profile.v >> 2 * PARTS_BITS & MODE_MASK) };

    if (!bh_profile_is_share(profile) || profile.v >> 31 || !bh_share_is_size(&share)
        || bh_share_profile(&share).v != profile.v)
        return false;
    *ret_share = share;
    return true;
}

bool
bh_share_is_multiplexed(bh_profile_id profile)
{
    struct bh_share share;

    return bh_share_get(profile, &share) && share.mode == BH_SHARE_MULTIPLEXED;
}
