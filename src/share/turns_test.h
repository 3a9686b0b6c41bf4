#ifndef BH_SHARE_TURNS_TEST_H
#define BH_SHARE_TURNS_TEST_H

/* What tests of turns begin with. */
#include "base/test.h"
#include "share/turns.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define SECOND (1000 * MS)

static inline struct bh_turns *
make(uint64_t stuck_ns)
{
    return bh_turns_new(&(struct bh_turns_options) { .stuck_ns = stuck_ns });
}

static inline uint32_t
join(struct bh_turns *turns, uint64_t now_ns, struct bh_turns_member member)
{
    struct bh_err err = { 0 };
    uint32_t index = 99;

    BH_CHECK_EQ("joins", bh_turns_join(turns, now_ns, &member, &index, &err), BH_OK);
    return index;
}

#endif
