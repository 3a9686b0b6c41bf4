#include "daemon/nodes/traffic.h"

#include "base/test.h"

static void
traffic_send(struct bh_traffic *traffic, struct bh_msg_traffic_item item)
{
    bh_traffic_update(traffic, &(struct bh_list){ &item, 1 });
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
    traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = 1, .job = 7, .rx_bytes = 5 });
    traffic_send(&traffic,
                 (struct bh_msg_traffic_item){ .lease = 1, .job = 7, .rx_bytes = 9, .final = true });
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
        traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = lease, .final = lease == 3 });
    traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = BH_TRAFFIC_MAX + 1 });
    BH_CHECK_EQ("full", traffic.count, BH_TRAFFIC_MAX);
    BH_CHECK_EQ("the one that ended went", traffic.items[2].lease, 4);
    traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = BH_TRAFFIC_MAX + 2 });
    BH_CHECK_EQ("then the oldest", traffic.items[0].lease, 2);
    BH_CHECK_EQ("the new one stands last", traffic.items[traffic.count - 1].lease, BH_TRAFFIC_MAX + 2);
    bh_traffic_fini(&traffic);
    BH_CHECK_DONE();
}

static void
test_forgotten(void **state)
{
    struct bh_msg_carried carried = { .rx_bytes = 1 };
    struct bh_traffic traffic = { .count = 0 };

    BH_CHECK("nothing there", !bh_traffic_find(&traffic, 1, &carried));
    traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = 1,
                                                         .rx_bytes = 5,
                                                         .rx_packets = 4,
                                                         .tx_bytes = 3,
                                                         .tx_packets = 2,
                                                         .denied_bytes = 7,
                                                         .denied_packets = 6 });
    traffic_send(&traffic, (struct bh_msg_traffic_item){ .lease = 2, .rx_bytes = 8 });
    BH_CHECK("another", !bh_traffic_find(&traffic, 3, &carried));
    BH_CHECK_EQ("unchanged", carried.rx_bytes, 1);
    BH_CHECK("found", bh_traffic_find(&traffic, 1, &carried));
    BH_CHECK("counted", carried.counted);
    BH_CHECK("received", carried.rx_bytes == 5 && carried.rx_packets == 4);
    BH_CHECK("sent", carried.tx_bytes == 3 && carried.tx_packets == 2);
    BH_CHECK("denied", carried.denied_bytes == 7 && carried.denied_packets == 6);
    bh_traffic_forget(&traffic, 1);
    bh_traffic_forget(&traffic, 1);
    BH_CHECK_EQ("one is left", traffic.count, 1);
    BH_CHECK_EQ("the other", traffic.items[0].lease, 2);
    bh_traffic_fini(&traffic);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_word), cmocka_unit_test(test_full),
                                           cmocka_unit_test(test_forgotten) };
BH_TEST_MAIN(tests)
