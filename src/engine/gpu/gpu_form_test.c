#include "engine/gpu/gpu_form.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static void
gpu_form_test_tenant(struct bh_fixture *fixture, uint32_t id, uint32_t parent, enum bh_boundary boundary)
{
    bh_fixture_tenant(
        fixture, (struct bh_ev_tenant){
                     .tenant = { id }, .parent = { parent }, .kind = BH_TENANT_TEAM, .boundary = boundary });
}

static struct bh_gpu_form_call
call_of(const struct bh_fixture *fixture, uint32_t id)
{
    return bh_gpu_form_call_of(fixture->engine, tenant_find(fixture->engine, id), BH_GPU_H100_80GB);
}

/* 1 (organization: fortress) with 2 (hard) above 21 and 22 (soft), and 3 (hard) above 31.
 */
static struct bh_fixture *
gpu_form_test_site(void)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    gpu_form_test_tenant(fixture, 22, 2, BH_BOUNDARY_SOFT);
    return fixture;
}

/* The strongest on the way up to, not including, the common tenant: 1 here. */
static void
the_way_to_the_common_tenant_counts(void **state)
{
    static const struct {
        const char *name;
        uint32_t tenant;
        enum bh_boundary boundary;
        uint32_t whose;
    } cases[] = {
        { "below a department", 21, BH_BOUNDARY_HARD, 2 },
        { "a weaker one below", 22, BH_BOUNDARY_HARD, 2 },
        { "the department", 2, BH_BOUNDARY_HARD, 2 },
        { "the other department", 31, BH_BOUNDARY_HARD, 3 },
        { "the common tenant", 1, BH_BOUNDARY_NONE, 0 },
    };
    struct bh_fixture *fixture = gpu_form_test_site();

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_gpu_form_call call = call_of(fixture, cases[i].tenant);

        BH_CHECK_EQ(cases[i].name, call.boundary, cases[i].boundary);
        BH_CHECK_EQ(cases[i].name, tenant_at(fixture->engine, call.tenant)->id, cases[i].whose);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* Another organization: all ways lead past the roots. */
static void
without_a_common_tenant_all_count(void **state)
{
    struct bh_fixture *fixture = gpu_form_test_site();

    gpu_form_test_tenant(fixture, 9, 0, BH_BOUNDARY_NONE);
    assert_int_equal(call_of(fixture, 21).boundary, BH_BOUNDARY_FORTRESS);
    assert_int_equal(call_of(fixture, 21).form, BH_GPU_FORM_WHOLE);
    assert_int_equal(call_of(fixture, 9).boundary, BH_BOUNDARY_NONE);
    bh_fixture_close(fixture);
}

/* Who is kept off a model does not count for it. */
static void
limits_of_none_keep_tenants_off(void **state)
{
    enum { GPUS, MODEL, OTHER_MODEL, SKUS, ONE_SKU };
    static const struct {
        const char *name;
        int none_of;
        enum bh_boundary boundary; /* for 22, when 3 may have none of that */
    } cases[] = {
        { "no GPUs", GPUS, BH_BOUNDARY_SOFT },
        { "none of the model", MODEL, BH_BOUNDARY_SOFT },
        { "none of another", OTHER_MODEL, BH_BOUNDARY_HARD },
        { "no SKU that names it", SKUS, BH_BOUNDARY_SOFT },
        { "not one of the SKUs", ONE_SKU, BH_BOUNDARY_HARD },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = gpu_form_test_site();
        struct bh_event event = { .kind = BH_EV_TENANT };
        struct bh_ev_tenant *three = &event.u.tenant;
        int none_of = cases[i].none_of;

        *three = (struct bh_ev_tenant){
            .tenant = { 3 }, .parent = { 1 }, .limit = BH_UNLIMITED, .kind = BH_TENANT_DEPARTMENT
        };
        if (none_of == GPUS)
            three->limit = 0;
        if (none_of == MODEL || none_of == OTHER_MODEL)
            three->quotas[three->quota_count++] =
                (struct bh_tenant_quota){ .scope = BH_QUOTA_MODEL,
                                          .of = none_of == MODEL ? BH_GPU_H100_80GB : BH_GPU_A30_24GB };
        for (uint32_t sku = 1; sku <= 3 && none_of >= SKUS; sku++)
            if (none_of == SKUS || sku == 1)
                three->quotas[three->quota_count++] =
                    (struct bh_tenant_quota){ .scope = BH_QUOTA_SKU, .of = sku };
        bh_fixture_must_send(fixture, &event);
        BH_CHECK_EQ(cases[i].name, call_of(fixture, 22).boundary, cases[i].boundary);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_way_to_the_common_tenant_counts),
    cmocka_unit_test(without_a_common_tenant_all_count),
    cmocka_unit_test(limits_of_none_keep_tenants_off),
};
BH_TEST_MAIN(tests)
