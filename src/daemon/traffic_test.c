#include "daemon/traffic.h"

#include "base/test.h"

static void
say(struct bh_traffic *traffic, struct bh_msg_traffic_item item)
{
    bh_traffic_take(traffic, &(struct bh_list){ &item, 1 });
}

static void
test_last_word(void **state)
{
    struct bh_traffic traffic = { .count = 0 };
    char memory[1024];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_traffic_put(&traffic, &out);
    BH_CHECK_STR("none", bh_buf_text(&out), "[]");
    say(&traffic, (struct bh_msg_traffic_item){ .lease = 1, .job = 7, .rx_bytes = 5 });
    say(&traffic, (struct bh_msg_traffic_item){ .lease = 1, .job = 7, .rx_bytes = 9, .final = true });
    bh_buf_clear(&out);
    bh_traffic_put(&traffic, &out);
    BH_CHECK_STR("one", bh_buf_text(&out),
                 "[{\"denied_bytes\":0,\"denied_packets\":0,\"job\":7,\"rx_bytes\":9,"
                 "\"rx_packets\":0,\"tx_bytes\":0,\"tx_packets\":0}]");
    bh_traffic_fini(&traffic);
    BH_CHECK_DONE();
}

static void
test_full(void **state)
{
    struct bh_traffic traffic = { .count = 0 };

    for (uint64_t lease = 1; lease <= BH_TRAFFIC_MAX; lease++)
        say(&traffic, (struct bh_msg_traffic_item){ .lease = lease, .final = lease == 3 });
    say(&traffic, (struct bh_msg_traffic_item){ .lease = BH_TRAFFIC_MAX + 1 });
    BH_CHECK_EQ("full", traffic.count, BH_TRAFFIC_MAX);
    BH_CHECK_EQ("the one that ended went", traffic.items[2].lease, 4);
    say(&traffic, (struct bh_msg_traffic_item){ .lease = BH_TRAFFIC_MAX + 2 });
    BH_CHECK_EQ("then the oldest", traffic.items[0].lease, 2);
    BH_CHECK_EQ("the new one stands last", traffic.items[traffic.count - 1].lease,
                BH_TRAFFIC_MAX + 2);
    bh_traffic_fini(&traffic);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_word),
                                        cmocka_unit_test(test_full) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
