#include "engine/placement/placement.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

enum { FORMS_SKU = 40 };

/* Two H100s that may be shared, and a SKU of these rows: s a share of a quarter, m 1g.10gb, w the
 * whole GPU. */
static struct bh_fixture *
site_with(const char *rows)
{
    static const struct bh_share quarter = { 1050, 950, BH_SHARE_WORK_CONSERVING };
    struct bh_fixture *fixture = bh_fixture_site(0);
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { FORMS_SKU }, .grade = BH_GRADE_F };
    for (; *rows; rows++)
        event.u.sku.models[event.u.sku.model_count++] =
            (struct bh_sku_model){ BH_GPU_H100_80GB, *rows == 's' ? bh_share_profile(&quarter).v
                                                     : *rows == 'm'
                                                         ? bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v
                                                         : BH_PROFILE_WHOLE.v };
    bh_fixture_must_send(fixture, &event);
    for (uint32_t gpu = 1; gpu <= 2; gpu++)
        bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { gpu },
                                                    .node = { 1 },
                                                    .managed = true,
                                                    .model = BH_GPU_H100_80GB,
                                                    .mig_capable = true,
                                                    .share_limit = BH_GPU_PARTS });
    return fixture;
}

/* Departments 2 and 3 get the boundary. */
static void
set_boundary(struct bh_fixture *fixture, enum bh_boundary boundary)
{
    for (uint32_t id = 2; id <= 3; id++)
        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { id },
                                                          .parent = { 1 },
                                                          .kind = BH_TENANT_DEPARTMENT,
                                                          .boundary = boundary });
}

/* s, m or w; - where it waits. */
static char
form_of(const struct bh_fixture *fixture, uint64_t job)
{
    struct bh_job_view view = bh_fixture_job(fixture, job);

    if (view.partition_count == 0)
        return '-';
    return "ssmw"[bh_gpu_form_of((bh_profile_id){ view.partitions[0].profile })];
}

/* What a job gets on an empty site by its SKU's rows, whatever their order. */
static void
the_boundary_says_the_form(void **state)
{
    static const struct {
        const char *rows;
        char none, soft, hard, fortress;
    } cases[] = {
        { "smw", 's', 's', 'm', 'w' }, { "wms", 's', 's', 'm', 'w' },
        { "sm", 's', 's', 'm', 'm' }, /* nothing as strong: the strongest */
        { "sw", 's', 's', 'w', 'w' },  { "mw", 'm', 'm', 'm', 'w' },
        { "s", 's', 's', 's', 's' },   { "m", 'm', 'm', 'm', 'm' },
        { "w", 'w', 'w', 'w', 'w' },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        for (int boundary = BH_BOUNDARY_NONE; boundary <= BH_BOUNDARY_FORTRESS; boundary++) {
            const char wanted[] = { cases[i].none, cases[i].soft, cases[i].hard, cases[i].fortress };
            struct bh_fixture *fixture = site_with(cases[i].rows);
            uint64_t job;

            bh_fixture_node(fixture, 1, true);
            set_boundary(fixture, (enum bh_boundary)boundary);
            job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FORMS_SKU, 1));
            BH_CHECK_EQ(cases[i].rows, form_of(fixture, job), wanted[boundary - BH_BOUNDARY_NONE]);
            bh_fixture_close(fixture);
        }
    BH_CHECK_DONE();
}

/* A weaker form is not taken where there is room for it alone. */
static void
it_waits_rather_than_get_less(void **state)
{
    struct bh_fixture *fixture = site_with("smw");
    uint64_t job;

    bh_fixture_node(fixture, 1, true);
    set_boundary(fixture, BH_BOUNDARY_NONE);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, FORMS_SKU, 1)); /* a share, on GPU 1 */
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));         /* GPU 2, whole */
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 4 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_PROJECT,
                                                      .boundary = BH_BOUNDARY_HARD });
    job = bh_fixture_submit(fixture, bh_fixture_submission(4, FORMS_SKU, 1));
    bh_fixture_finish_effects(fixture);
    assert_int_equal(form_of(fixture, job), '-');
    assert_int_equal(bh_fixture_why(fixture, job).form.cause, BH_GPU_FORM_FORBIDDEN);
    assert_int_equal(bh_fixture_why(fixture, job).form.called, BH_GPU_FORM_MIG);
    bh_fixture_close(fixture);
}

/* A stronger form where it needs no other empty GPU. */
static void
a_stronger_one_may_block_less(void **state)
{
    struct bh_fixture *fixture = site_with("smw");
    uint64_t first, second, third;

    bh_fixture_node(fixture, 1, true);
    set_boundary(fixture, BH_BOUNDARY_SOFT);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)); /* 1g.10gb: GPU 1 is carved */
    first = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FORMS_SKU, 1));
    assert_int_equal(form_of(fixture, first), 'm');
    assert_int_equal(bh_fixture_why(fixture, first).form.cause, BH_GPU_FORM_BLOCKS_LESS);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 5)); /* GPU 1 has seven, and is full */
    second = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FORMS_SKU, 1));
    assert_int_equal(form_of(fixture, second), 's');
    third = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FORMS_SKU, 1));
    assert_int_equal(form_of(fixture, third), 's');
    assert_int_equal(bh_fixture_why(fixture, third).form.cause, BH_GPU_FORM_CALLED);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_boundary_says_the_form),
    cmocka_unit_test(it_waits_rather_than_get_less),
    cmocka_unit_test(a_stronger_one_may_block_less),
};
BH_TEST_MAIN(tests)
