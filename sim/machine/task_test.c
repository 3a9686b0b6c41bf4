/* The simulated GPU at work, in virtual time: order, slices, and what switching costs. */
#include "sim/machine/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"

#define US 1000ull
#define MS 1000000ull

static struct sim_device *device;

static uint32_t
enter(void)
{
    return sim_task_enter(device, 1);
}

struct request {
    uint32_t slot, stream;
    enum sim_task_kind kind;
    uint64_t cost_ns, after;
    uint8_t sms, order;
    int8_t priority;
    uint8_t engine;
};

static uint64_t
submit(const struct request *request)
{
    struct sim_task task = { .kind = (uint8_t)request->kind,
                             .stream = request->stream,
                             .cost_ns = request->cost_ns,
                             .after = request->after,
                             .order = request->order,
                             .priority = request->priority,
                             .engine = request->engine,
                             .sms = request->sms == 0 ? SIM_TASK_ALL_SMS : request->sms };

    return sim_task_submit(device, request->slot, &task);
}

static uint64_t
ended_at(uint32_t slot, uint64_t number)
{
    assert_true(sim_task_ended(&device->slot[slot], number));
    return sim_task_at(&device->slot[slot], number)->ended_ns;
}

/* ---- one context ---- */

/* What is submitted, in this order, and when it ends. */
static const struct step {
    struct request request;
    uint64_t ends_ns;
} order[] = {
    { { 0, 1, SIM_TASK_RUN, .cost_ns = 5 * US }, 5 * US },
    { { 0, 1, SIM_TASK_MARK }, 5 * US },
    { { 0, 1, SIM_TASK_RUN, .cost_ns = 2 * US }, 7 * US },
    /* another stream goes on while this one copies */
    { { 0, 2, SIM_TASK_RUN, .cost_ns = 4 * US, .engine = SIM_ENGINE_COPY_IN }, 4 * US },
    { { 0, 2, SIM_TASK_MARK }, 4 * US },
    /* and waits for the third work of all */
    { { 0, 2, SIM_TASK_AFTER, .after = 3 }, 7 * US },
    { { 0, 2, SIM_TASK_RUN, .cost_ns = 3 * US }, 10 * US },
    /* two halves run together, a third does not fit in */
    { { 0, 3, SIM_TASK_RUN, .cost_ns = 6 * US, .sms = 50 }, 16 * US },
    { { 0, 4, SIM_TASK_RUN, .cost_ns = 4 * US, .sms = 50 }, 14 * US },
    { { 0, 5, SIM_TASK_RUN, .cost_ns = 1 * US, .sms = 60 }, 17 * US },
    /* a copy the other way does not wait for the first, one the same way does */
    { { 0, 6, SIM_TASK_RUN, .cost_ns = 4 * US, .engine = SIM_ENGINE_COPY_OUT }, 4 * US },
    { { 0, 7, SIM_TASK_RUN, .cost_ns = 1 * US, .engine = SIM_ENGINE_COPY_IN }, 5 * US },
};

static void
test_order(void **state)
{
    uint32_t slot = enter();
    char name[64];

    for (size_t i = 0; i < BH_COUNT(order); i++)
        assert_int_equal(submit(&order[i].request), i + 1);
    sim_task_advance(device, 30 * US);
    for (size_t i = 0; i < BH_COUNT(order); i++) {
        snprintf(name, sizeof(name), "work %zu", i + 1);
        BH_CHECK_EQ(name, ended_at(slot, i + 1), order[i].ends_ns);
    }
    BH_CHECK_DONE();
    assert_int_equal(device->slot[slot].busy_ns, 17 * US);
    assert_int_equal(device->busy_ns, 17 * US);
}

/* The legacy stream is between the others, but not between those that wait for no other.
 */
static void
test_legacy(void **state)
{
    uint32_t slot = enter();

    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * US, .sms = 10, .order = SIM_ORDER_BLOCKING });
    submit(&(struct request){ slot, 2, SIM_TASK_RUN, 30 * US, .sms = 10 });
    submit(&(struct request){ slot, 0, SIM_TASK_RUN, 5 * US, .sms = 10, .order = SIM_ORDER_LEGACY });
    submit(&(struct request){ slot, 3, SIM_TASK_RUN, 1 * US, .sms = 10, .order = SIM_ORDER_BLOCKING });
    submit(&(struct request){ slot, 4, SIM_TASK_RUN, 1 * US, .sms = 10 });
    sim_task_advance(device, 100 * US);
    assert_int_equal(ended_at(slot, 1), 10 * US);
    assert_int_equal(ended_at(slot, 2), 30 * US);
    assert_int_equal(ended_at(slot, 3), 15 * US);
    assert_int_equal(ended_at(slot, 4), 16 * US);
    assert_int_equal(ended_at(slot, 5), 1 * US);
}

static void
test_priority(void **state)
{
    uint32_t slot = enter();

    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * US });
    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * US });
    sim_task_advance(device, 4 * US);
    submit(&(struct request){ slot, 2, SIM_TASK_RUN, 5 * US, .priority = -1 });
    sim_task_advance(device, 100 * US);
    assert_int_equal(ended_at(slot, 1), 15 * US);
    assert_int_equal(ended_at(slot, 2), 25 * US);
    assert_int_equal(ended_at(slot, 3), 9 * US);
}

static void
test_host(void **state)
{
    uint32_t slot = enter();
    uint64_t host, behind, other;

    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * US });
    host = submit(&(struct request){ slot, 1, SIM_TASK_HOST });
    behind = submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * US });
    other = submit(&(struct request){ slot, 2, SIM_TASK_RUN, 7 * US });
    sim_task_advance(device, 9 * US);
    assert_int_equal(sim_task_find_due(&device->slot[slot], 1), 0);
    assert_int_equal(sim_task_earliest(device, slot, host), 10 * US);
    assert_int_equal(sim_task_earliest(device, slot, behind), UINT64_MAX);
    sim_task_advance(device, 50 * US);
    assert_int_equal(sim_task_find_due(&device->slot[slot], 1), host);
    assert_int_equal(ended_at(slot, other), 17 * US);
    assert_false(sim_task_ended(&device->slot[slot], behind));
    sim_task_finish(device, slot, host);
    sim_task_advance(device, 100 * US);
    assert_int_equal(ended_at(slot, behind), 60 * US);
}

/* The depth is a limit on what has not ended. */
static void
test_depth(void **state)
{
    uint32_t slot = enter();
    const struct request request = { slot, 1, SIM_TASK_RUN, 1 * US };

    for (unsigned i = 0; i < SIM_TASK_DEPTH; i++)
        assert_int_not_equal(submit(&request), 0);
    assert_int_equal(submit(&request), 0);
    assert_int_equal(sim_task_earliest(device, slot, 1), 1 * US);
    sim_task_advance(device, 1 * US);
    assert_int_equal(submit(&request), SIM_TASK_DEPTH + 1);
    assert_int_equal(submit(&request), 0);
    sim_task_advance(device, 2000 * US);
    assert_int_equal(ended_at(slot, SIM_TASK_DEPTH + 1), (SIM_TASK_DEPTH + 1) * US);
}

/* ---- several contexts ---- */

/* Contexts that never rest, with kernels of this length, for a second: each one's share of
 * the SMs, in parts of 10000, as what it has completed would take alone. */
static const struct {
    const char *name;
    unsigned contexts;
    uint64_t kernel_ns, slice_ns;
    unsigned least, most;
} shares[] = {
    { "alone, 10 us", 1, 10 * US, 0, 10000, 10000 },
    { "alone, 5 ms", 1, 5 * MS, 0, 10000, 10000 },
    { "two, 10 us", 2, 10 * US, 0, 4540, 4560 },
    { "two, 1 ms", 2, 1 * MS, 0, 4530, 4570 },
    { "two, 5 ms", 2, 5 * MS, 0, 4500, 4600 },
    { "seven, 100 us", 7, 100 * US, 0, 1290, 1310 },
    { "two, slices of 30 ms", 2, 1 * MS, 30 * MS, 4800, 5150 },
};

static uint64_t
work_for(uint32_t slot, uint64_t kernel_ns)
{
    while (submit(&(struct request){ slot, 1, SIM_TASK_RUN, kernel_ns }) != 0) {
    }
    return device->slot[slot].first - 1;
}

static void
test_shares(void **state)
{
    for (size_t i = 0; i < BH_COUNT(shares); i++) {
        memset(device, 0, sizeof(*device));
        sim_task_init(device);
        if (shares[i].slice_ns != 0)
            device->slice_ns = shares[i].slice_ns;
        for (unsigned c = 0; c < shares[i].contexts; c++)
            assert_int_equal(enter(), c);
        for (uint64_t now = 0; now <= 1000 * MS; now += 5 * MS) {
            sim_task_advance(device, now);
            for (unsigned c = 0; c < shares[i].contexts; c++)
                work_for(c, shares[i].kernel_ns);
        }
        sim_task_advance(device, 1000 * MS);
        for (unsigned c = 0; c < shares[i].contexts; c++) {
            uint64_t share = (device->slot[c].first - 1) * shares[i].kernel_ns / 100 / US;

            if (share < shares[i].least || share > shares[i].most)
                BH_CHECK_EQ(shares[i].name, share, shares[i].least);
        }
    }
    BH_CHECK_DONE();
}

/* One that comes waits for the other's slice; one that has nothing left passes the SMs on. */
static void
test_handover(void **state)
{
    uint32_t busy = enter(), brief = enter();

    submit(&(struct request){ busy, 1, SIM_TASK_RUN, 100 * MS });
    sim_task_advance(device, 9 * MS);
    submit(&(struct request){ brief, 1, SIM_TASK_RUN, 1 * MS });
    sim_task_advance(device, 200 * MS);
    assert_int_equal(ended_at(brief, 1), 10 * MS + SIM_TASK_SWITCH_NS + 1 * MS);
    assert_int_equal(ended_at(busy, 1), 101 * MS + SIM_TASK_SWITCH_NS + SIM_TASK_HANDOVER_NS);
}

/* A sample is whose the SMs were at its end; of the time before it says how busy they were. */
static void
test_samples(void **state)
{
    static const uint64_t period = SIM_TASK_SAMPLE_NS;
    const struct sim_task_sample *sample = device->sample;
    uint32_t slot = enter();
    uint64_t birth = device->slot[slot].birth;

    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 2 * period });
    sim_task_advance(device, period - 1);
    BH_CHECK_EQ("not complete", sample[1].end_ns, 0);
    sim_task_advance(device, 2 * period + period / 2);
    BH_CHECK_EQ("its end", sample[1].end_ns, period);
    BH_CHECK_EQ("all of it", sample[1].busy_ns, period);
    BH_CHECK_EQ("its context's", sample[1].birth, birth);
    BH_CHECK_EQ("the last that was busy", sample[2].birth, birth);
    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * MS });
    sim_task_advance(device, 3 * period);
    BH_CHECK_EQ("busy for a while", sample[3].busy_ns, 10 * MS);
    BH_CHECK_EQ("but none's at the end", sample[3].birth, 0);
    submit(&(struct request){ slot, 1, SIM_TASK_RUN, 10 * MS });
    sim_task_advance(device, 3 * period + 1);
    sim_task_advance(device, (3 + 1000) * period);
    BH_CHECK_EQ("the latest of a long time", sample[1003 % SIM_TASK_SAMPLES].end_ns, (3 + 1000) * period);
    BH_CHECK_EQ("nothing in it", sample[1003 % SIM_TASK_SAMPLES].busy_ns, 0);
    BH_CHECK_EQ("none before those that are kept", sample[4].end_ns, (4 + 13 * 72) * period);
    BH_CHECK_DONE();
}

/* A context that leaves takes its work along. */
static void
test_leaving(void **state)
{
    uint32_t gone = enter(), stays = enter();

    submit(&(struct request){ gone, 1, SIM_TASK_RUN, 1000 * MS });
    submit(&(struct request){ stays, 1, SIM_TASK_RUN, 10 * MS });
    sim_task_advance(device, 3 * MS);
    sim_task_leave(device, gone);
    sim_task_advance(device, 20 * MS);
    assert_true(ended_at(stays, 1) <= 13 * MS);
    assert_int_equal(enter(), gone);
    assert_false(sim_task_ended(&device->slot[gone], 1));
}

/* Any bytes at all: it ends, and what is submitted afterwards ends, too. */
static void
test_nonsense(void **state)
{
    uint64_t seed = 88172645463325252u;

    for (unsigned round = 0; round < 20; round++) {
        uint8_t *bytes = (uint8_t *)device->slot;
        uint32_t slot;

        memset(device, 0, sizeof(*device));
        sim_task_init(device);
        for (size_t at = 0; at < 4 * sizeof(device->slot[0]); at++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes[at] = (uint8_t)(seed >> 32 & (round % 2 == 0 ? 255 : 3));
        }
        sim_task_repair(device, device->now_ns);
        sim_task_advance(device, 1 * MS);
        for (uint32_t i = 0; i < 4; i++)
            if (device->slot[i].birth != 0)
                sim_task_leave(device, i);
        slot = enter();
        assert_int_equal(submit(&(struct request){ slot, 1, SIM_TASK_RUN, 1 * MS }), 1);
        sim_task_advance(device, 10 * MS);
        assert_true(sim_task_ended(&device->slot[slot], 1));
    }
}

static int
set_up(void **state)
{
    device = calloc(1, sizeof(*device));
    assert_non_null(device);
    sim_task_init(device);
    return 0;
}

static int
tear_down(void **state)
{
    free(device);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(test_order),  TEST(test_legacy),   TEST(test_priority), TEST(test_host),    TEST(test_depth),
    TEST(test_shares), TEST(test_handover), TEST(test_samples),  TEST(test_leaving), TEST(test_nonsense),
};

BH_TEST_MAIN(tests)
