#include "policy/egress.h"

#include "model/network.h"

bh_rc
bh_egress_of(const struct bh_admission *admission, const char *tenant, struct bh_arena *arena,
             struct bh_egress *ret_egress, struct bh_err *err)
{
    const char **deny = bh_arena_alloc(arena, BH_NET_RULES_MAX * sizeof *deny);
    const struct bh_admission_policy *policy;
    struct bh_egress egress = { .deny = { deny, 0 } };
    uint32_t cursor = 0;

    if (!deny)
        return bh_err_set(err, BH_FULL, "the policies are too large");
    while ((policy = bh_admission_next(admission, tenant, &cursor))) {
        const struct bh_site_policy *text = policy->rules.text;

        if (text->egress.count > 0)
            egress.allow = text->egress;
        if (text->egress.count > 0 || text->resolvers.count > 0)
            egress.resolvers = text->resolvers; /* those above may lie outside of the list */
        for (uint32_t i = 0; i < text->egress_deny.count; i++) {
            if (egress.deny.count == BH_NET_RULES_MAX)
                return bh_err_set(err, BH_FULL, "egress_deny: more than %d entries for %.80s",
                                  BH_NET_RULES_MAX, tenant);
            deny[egress.deny.count++] = text->egress_deny.items[i];
        }
    }
    *ret_egress = egress;
    return BH_OK;
}
