#ifndef BH_SHARE_TIME_SLICES_TEST_H
#define BH_SHARE_TIME_SLICES_TEST_H

/* What tests of time slices begin with. */
#include "base/test.h"
#include "share/time_slices.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define SECOND (1000 * MS)

static inline struct bh_time_slices *
slices_make(uint64_t stuck_ns)
{
    return bh_time_slices_new(&(struct bh_time_slices_options){ .stuck_ns = stuck_ns });
}

static inline uint32_t
slices_join(struct bh_time_slices *slices, uint64_t now_ns, struct bh_time_slices_member member)
{
    struct bh_err err = { 0 };
    uint32_t index = 99;

    BH_CHECK_EQ("joins", bh_time_slices_join(slices, now_ns, &member, &index, &err), BH_OK);
    return index;
}

#endif
