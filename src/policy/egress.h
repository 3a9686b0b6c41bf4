#ifndef BH_POLICY_EGRESS_H
#define BH_POLICY_EGRESS_H

#include "policy/admission.h"

/* What the jobs of a tenant reach outside.  The deepest policy that says `egress` decides, as it
 * can only narrow those above it; where none does, nothing is reached.  `egress_deny` of all of
 * them adds up.  Pure. */
struct bh_egress {
    struct bh_texts allow, deny, resolvers; /* the policies' texts */
};

/* BH_FULL: more than BH_NET_RULES_MAX entries of egress_deny, or no room in the arena. */
BH_MUST_USE bh_rc bh_egress_of(const struct bh_admission *admission, const char *tenant,
                               struct bh_arena *arena, struct bh_egress *ret_egress, struct bh_err *err);

#endif
