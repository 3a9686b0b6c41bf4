/* What becomes of the texts that a destroyed key sealed: specifications, commands that were added
 * to jobs, messages of nodes. */

#include "daemon/batch/batch.h"
#include "daemon/changes/shred.h"

#include "daemon/fixture/audited_test.h"
#include "daemon/fixture/gpu_fixture_test.h"
#include "daemon/fixture/keys_fixture_test.h"
#include "daemon/nodes/orders.h"
#include "daemon/state/texts.h"

/* acme/vision, and the other tenants have nothing. */
enum { VISION = 2 };

static const char site[] = TENANTS("") "gpus: [{uuid: all, managed: true}]\n";

/* ---- the node's side: events by hand ---- */

/* A job of alice's in acme/vision that its node is to start, on a partition that there is or is made. */
static struct bh_effect
submit_to_node(struct fixture *f)
{
    const struct bh_effect *order;
    struct bh_effect start;

    (void)submit_canary(f, "acme/vision");
    order = order_of(f, BH_FX_CARVE);
    if (order)
        gpu_fixture_step(
            f, (struct bh_event){ .kind = BH_EV_CARVED,
                                  .u.partition = { order->partition.partition, BH_OUTCOME_OK, 0 } });
    order = order_of(f, BH_FX_START);
    assert_non_null(order);
    start = *order;
    bh_core_released(&f->core);
    return start;
}

/* Its node cannot start it, and says why. */
static void
fail_a_start(struct fixture *f)
{
    struct bh_effect order = submit_to_node(f);
    const struct bh_msg_outcome outcome = { .order = order.order,
                                            .outcome = BH_OUTCOME_FAILED,
                                            .rc = BH_NOT_FOUND,
                                            .why = "canary-image is not there" };

    keys_fixture_must(f, bh_orders_outcome(&f->core, &order, &outcome, &f->err));
    keys_fixture_must(f, bh_core_commit(&f->core, &f->err));
    bh_core_released(&f->core);
}

static const char *
any_socket(void *self, bh_node_id node, struct bh_arena *arena)
{
    return "/run/node.sock";
}

/* A job that runs, gets another command, and ends. */
static void
run_and_exec(struct fixture *f)
{
    struct bh_effect order = submit_to_node(f);
    const char *args[] = { "canary-added" };
    const struct bh_stream_request stream = { .args = { args, 1 } };
    struct bh_command command = {
        .op = BH_OP_JOB_EXEC, .caller = caller_named(f, "alice"), .job = order.job, .stream = &stream
    };

    gpu_fixture_step(
        f, (struct bh_event){ .kind = BH_EV_STARTED, .u.lease = { order.lease, BH_OUTCOME_OK, 0 } });
    f->core.node_socket = any_socket;
    keys_fixture_must(f, fixture_run(f, &command));
    gpu_fixture_step(
        f, (struct bh_event){ .kind = BH_EV_ENDED, .u.ended = { order.lease, BH_END_EXITED, 0, 1, false } });
    bh_core_released(&f->core);
}

/* ---- what is kept ---- */

static uint64_t
shred_texts_stored_of(struct fixture *f, uint32_t tenant)
{
    uint64_t kept = 0;

    keys_fixture_must(f, bh_texts_bytes(&f->core, tenant, &kept, &f->err));
    return kept;
}

static bool
count_sealed(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    *(uint32_t *)self += bh_keys_is_sealed((struct bh_slice){ text, length });
    return true;
}

static uint32_t
sealed_texts(struct fixture *f)
{
    uint32_t count = 0;

    keys_fixture_must(f, f->core.store.ops->list_texts(f->core.store.self, 0, count_sealed, &count, &f->err));
    return count;
}

static void
check_log(struct fixture *f, uint64_t erased)
{
    struct bh_claims_result result = audit(f);

    BH_CHECK_STR("the log accuses nobody", result.differing, "");
    BH_CHECK_EQ("and knows what was erased", result.texts.erased, erased);
}

/* ---- the tests ---- */

/* What counts against the tenant is freed by what is said to free it, whatever it is, and the next
 * month's stays. */
static void
a_months_texts_go_with_their_key(void **state)
{
    const uint64_t days_ns = UINT64_C(40) * 24 * 3600 * BH_NS_PER_S;
    struct bh_shred_request month = { "acme/vision", NULL, NULL, NULL };
    char first[32];
    struct fixture f;
    uint64_t before, later;

    gpu_fixture_open_site(&f, site);
    snprintf(first, sizeof first, "%s", this_month(&f));
    month.month = first;
    fail_a_start(&f);
    run_and_exec(&f);
    BH_CHECK_EQ("a specification that both have and a command; a message is its record's", sealed_texts(&f),
                2);
    before = shred_texts_stored_of(&f, VISION);
    f.core.clock.base_ns += (int64_t)days_ns;
    run_and_exec(&f);
    later = shred_texts_stored_of(&f, VISION) - before;
    BH_CHECK_EQ("and two of another month", sealed_texts(&f), 4);
    check_log(&f, 0);
    BH_CHECK_EQ("destroyed", keys_fixture_shred(&f, "carol", month), BH_OK);
    BH_CHECK_EQ("one key", f.answer.keys, 1);
    BH_CHECK_EQ("all that it sealed is gone", sealed_texts(&f), 2);
    BH_CHECK_EQ("and counts no more", shred_texts_stored_of(&f, VISION), later);
    check_log(&f, 2);
    reopen(&f);
    BH_CHECK_EQ("nor after a start", shred_texts_stored_of(&f, VISION), later);
    month.month = "all";
    BH_CHECK_EQ("the rest", keys_fixture_shred(&f, "carol", month), BH_OK);
    BH_CHECK_EQ("nothing is left", sealed_texts(&f) + shred_texts_stored_of(&f, VISION), 0);
    check_log(&f, 4);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_months_texts_go_with_their_key),
};

BH_TEST_MAIN(tests)
