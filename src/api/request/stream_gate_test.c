/* So many streams of one principal, and no more. */
#include "api/request/stream_gate.h"

#include "base/test.h"

static struct bh_crowding last;
static uint32_t told;

static void
hear(const struct bh_crowding *crowding)
{
    last = *crowding;
    told++;
}

static bh_rc
enter(struct bh_api *api, uint32_t principal, const struct bh_transport *from, uint32_t *ret_retry_s)
{
    struct bh_request request = { .transport = from };
    struct bh_call call = { .api = api,
                            .request = &request,
                            .caller = { .subject = { .principal = { principal } }, .name = "alice" } };
    struct bh_err err;
    bh_rc rc = bh_stream_gate_enter(&call, &err);

    *ret_retry_s = call.retry_after_s;
    if (rc != BH_OK)
        BH_CHECK("the cause is named", strstr(err.msg, "streams_max"));
    return rc;
}

static void
each_principal_has_so_many(void **state)
{
    static const struct bh_transport near = { .unix_socket = true, .uid = 7 }, far = { 0 },
                                     root = { .unix_socket = true };
    static const struct {
        const char *name;
        uint32_t principal;
        const struct bh_transport *from;
        bool leaves, may;
    } steps[] = {
        { "one", 1, &near, false, true },          { "two, elsewhere", 1, &far, false, true },
        { "three", 1, &near, false, false },       { "three, elsewhere", 1, &far, false, false },
        { "another's", 2, &far, false, true },     { "one leaves", 1, &near, true, true },
        { "there is room", 1, &far, false, true }, { "and again none", 1, &far, false, false },
        { "root", 3, &root, false, true },         { "root's second", 3, &root, false, true },
        { "root's third", 3, &root, false, true },
    };
    struct bh_api api = { .streams = bh_stream_gate_new(2, hear) };
    uint32_t retry_s;

    for (size_t i = 0; i < BH_COUNT(steps); i++) {
        bh_principal_id principal = { steps[i].principal };

        if (steps[i].leaves) {
            bh_stream_gate_leave(api.streams, principal);
            continue;
        }
        BH_CHECK_EQ(steps[i].name, enter(&api, principal.v, steps[i].from, &retry_s),
                    steps[i].may ? BH_OK : BH_TOO_MANY);
        BH_CHECK_EQ(steps[i].name, retry_s > 0, !steps[i].may);
    }
    BH_CHECK_EQ("told once", told, 1);
    BH_CHECK_EQ("how many he has", last.held, 2);
    bh_stream_gate_free(api.streams);
    BH_CHECK_DONE();
}

static void
without_a_bound_anybody_has_any(void **state)
{
    static const struct bh_transport far = { 0 };
    struct bh_api api = { .streams = bh_stream_gate_new(0, NULL) };
    uint32_t retry_s;

    for (int i = 0; i < 5000; i++)
        BH_CHECK_EQ("one more", enter(&api, 1, &far, &retry_s), BH_OK);
    bh_stream_gate_free(api.streams);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_principal_has_so_many),
    cmocka_unit_test(without_a_bound_anybody_has_any),
};
BH_TEST_MAIN(tests)
