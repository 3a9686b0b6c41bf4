#ifndef BH_ENGINE_GPU_LEDGER_FOLLOW_TEST_H
#define BH_ENGINE_GPU_LEDGER_FOLLOW_TEST_H

/* What an invoice relies on, from one look at the ledger to the next: no row goes down or is
 * lost, also when its tenant is removed, and all rows with idle and unusable are physical time.
 * Of the causes of unusable time one alone goes down: what nothing was heard of (ADR 0064). */

#include "engine/step/fixture_test.h"

enum { BH_FOLLOWED_TENANTS = 1024 };

struct bh_ledger_follow {
    struct bh_metered_view rows[BH_FOLLOWED_TENANTS]; /* by tenant's id, as last seen */
    struct bh_ledger_view sums;
};

static inline void
bh_ledger_follow(struct bh_ledger_follow *follow, const struct bh_fixture *fixture)
{
    struct bh_ledger_view sums;
    bh_part_ns compute = 0, memory = 0;
    uint32_t cursor = 0;
    struct bh_metered_view row;

    while (bh_view_next_metered(fixture->engine, &cursor, fixture->now_ns, &row)) {
        assert_true(row.tenant.v < BH_FOLLOWED_TENANTS);
        assert_true(row.compute_ns >= follow->rows[row.tenant.v].compute_ns);
        assert_true(row.memory_ns >= follow->rows[row.tenant.v].memory_ns);
        follow->rows[row.tenant.v] = row;
        compute += row.compute_ns;
        memory += row.memory_ns;
    }
    for (uint32_t id = 1; id < BH_FOLLOWED_TENANTS; id++)
        assert_true(follow->rows[id].compute_ns == 0
                    || bh_view_metered(fixture->engine, (bh_tenant_id){ id }, fixture->now_ns, &row));
    bh_view_ledger(fixture->engine, fixture->now_ns, &sums);
    assert_true(compute == sums.tenants_compute && memory == sums.tenants_memory);
    assert_true(compute + sums.idle_compute + sums.unusable_compute == sums.physical);
    assert_true(memory + sums.idle_memory + sums.unusable_memory == sums.physical);
    assert_true(sums.idle_compute >= follow->sums.idle_compute
                && sums.idle_memory >= follow->sums.idle_memory);
    for (int i = 0; i < BH_UNUSABLES; i++)
        assert_true(i == BH_UNUSABLE_UNHEARD
                    || (sums.causes_compute[i] >= follow->sums.causes_compute[i]
                        && sums.causes_memory[i] >= follow->sums.causes_memory[i]));
    follow->sums = sums;
}

#endif
