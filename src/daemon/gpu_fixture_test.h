#ifndef BH_DAEMON_GPU_FIXTURE_TEST_H
#define BH_DAEMON_GPU_FIXTURE_TEST_H

/* A site whose jobs take whole GPUs, and a core with a node whose events the test makes by hand. */

#include "daemon/batch.h"
#include "daemon/fixture_test.h"
#include "daemon/step.h"

__attribute__((unused)) static const char whole_yaml[] =
    "tenants:\n"
    "  - {name: acme, kind: organization}\n"
    "  - {name: acme/vision, kind: department}\n"
    "  - {name: acme/vision/train, kind: project}\n"
    "skus:\n"
    "  - {name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}\n"
    "principals: []\n"
    "bindings: []\n"
    "gpus: [{uuid: all, managed: true}]\n";

__attribute__((unused)) static const struct submission whole = { "root", "acme/vision/train", "large", NULL, 0, 1 };

static inline void
gpu_fixture_step(struct fixture *f, struct bh_event event)
{
    struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM }, .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT, .verb = "test" };

    assert_int_equal(bh_core_step(&f->core, &entry, &event, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

/* A node n1 with one H100. */
static inline void
gpu_fixture_open_site(struct fixture *f, const char *yaml)
{
    uint32_t node, gpu;

    fixture_setup(f);
    assert_int_equal(fixture_apply(f, yaml), BH_OK);
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_NODE, "n1", &node, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_GPU, "GPU-1", &gpu, &f->err), BH_OK);
    gpu_fixture_step(f, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { node }, true, 0, 0 } });
    gpu_fixture_step(f, (struct bh_event){ .kind = BH_EV_GPU,
                               .u.gpu = { .gpu = { gpu }, .node = { node }, .model = BH_GPU_H100_80GB,
                                          .managed = true, .mig_capable = true } });
}

/* The order of that kind among those that the last batches released. */
static inline const struct bh_effect *
order_of(const struct fixture *f, enum bh_effect_kind kind)
{
    for (uint32_t i = f->core.effect_count; i > 0; i--)
        if (f->core.effects[i - 1].kind == kind)
            return &f->core.effects[i - 1];
    return NULL;
}

#endif
