#include "wire/frame_io.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test.h"
#include "wire/message.h"

struct ends {
    struct bh_link *link;
    int peer;
};

static struct ends
link_test_connected(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    return (struct ends){ .link = bh_link_new(pair[0]), .peer = pair[1] };
}

static size_t
ack_bytes(char *ret_bytes, size_t size, uint64_t order)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_bytes, size);
    bh_frame_encode(&out, BH_MSG_ACK, bh_message_fields(BH_MSG_ACK), &(struct bh_msg_ack){ .order = order });
    return out.length;
}

/* Frames arrive whole, however the bytes came. */
static void
test_partitions(void **state)
{
    struct ends ends = link_test_connected();
    struct bh_err err = { 0 };
    struct bh_frame frame;
    char bytes[256];
    size_t length = ack_bytes(bytes, sizeof bytes, 1);

    length += ack_bytes(bytes + length, sizeof bytes - length, 2);
    BH_CHECK_EQ("nothing there", bh_link_readable(ends.link, &err), BH_OK);
    for (size_t i = 0; i < length; i++) {
        bool whole = (i + 1) % (length / 2) == 0;

        assert_int_equal(write(ends.peer, bytes + i, 1), 1);
        BH_CHECK_EQ("read", bh_link_readable(ends.link, &err), BH_OK);
        BH_CHECK_EQ("next", bh_link_next(ends.link, &frame, &err), whole ? BH_OK : BH_NOT_FOUND);
    }
    assert_int_equal(write(ends.peer, bytes, length), length);
    close(ends.peer);
    BH_CHECK_EQ("both and the end", bh_link_readable(ends.link, &err), BH_OK);
    BH_CHECK_EQ("first", bh_link_next(ends.link, &frame, &err), BH_OK);
    BH_CHECK_EQ("second", bh_link_next(ends.link, &frame, &err), BH_OK);
    BH_CHECK_EQ("no more", bh_link_next(ends.link, &frame, &err), BH_NOT_FOUND);
    BH_CHECK_EQ("closed", bh_link_readable(ends.link, &err), BH_UNAVAILABLE);
    bh_link_free(ends.link);
    BH_CHECK_DONE();
}

static void
test_cut_and_garbage(void **state)
{
    struct ends cut = link_test_connected(), garbage = link_test_connected();
    struct bh_err err = { 0 };
    struct bh_frame frame;
    char bytes[64];
    size_t length = ack_bytes(bytes, sizeof bytes, 1);

    assert_int_equal(write(cut.peer, bytes, length - 1), length - 1);
    close(cut.peer);
    BH_CHECK_EQ("cut", bh_link_readable(cut.link, &err), BH_OK);
    BH_CHECK_EQ("cut", bh_link_next(cut.link, &frame, &err), BH_UNAVAILABLE);
    bh_link_free(cut.link);
    assert_int_equal(write(garbage.peer, "GET / HTTP/1.1\r\n", 16), 16);
    BH_CHECK_EQ("garbage", bh_link_readable(garbage.link, &err), BH_OK);
    BH_CHECK_EQ("garbage", bh_link_next(garbage.link, &frame, &err), BH_INVALID);
    close(garbage.peer);
    bh_link_free(garbage.link);
    BH_CHECK_DONE();
}

/* A peer that does not read: messages wait up to the cap, whole or not at all, and all
 * of them arrive when it reads again. */
static void
test_slow_peer(void **state)
{
    struct ends ends = link_test_connected();
    struct bh_link *reader = bh_link_new(ends.peer);
    struct bh_msg_retain_item items[BH_WIRE_RETAIN_MAX] = { { 1 } };
    struct bh_msg_retain retain = { .leases = { items, BH_COUNT(items) } };
    struct bh_err err = { 0 };
    struct bh_frame frame;
    size_t sent = 0, got = 0;
    bh_rc rc;

    BH_CHECK_EQ("idle", bh_link_interest(ends.link), POLLIN);
    while ((rc = bh_link_send(ends.link, BH_MSG_RETAIN, bh_message_fields(BH_MSG_RETAIN), &retain, &err))
           == BH_OK)
        sent++;
    BH_CHECK_EQ("full in the end", rc, BH_FULL);
    BH_CHECK("some waited", sent > BH_LINK_WRITE_MAX / (8 * BH_WIRE_RETAIN_MAX + 64) - 1);
    BH_CHECK_EQ("waiting", bh_link_interest(ends.link), POLLIN | POLLOUT);
    for (int turn = 0; turn < 100000 && got < sent; turn++) {
        assert_int_equal(bh_link_flush(ends.link, &err), BH_OK);
        assert_int_equal(bh_link_readable(reader, &err), BH_OK);
        while ((rc = bh_link_next(reader, &frame, &err)) == BH_OK)
            got++;
        assert_int_equal(rc, BH_NOT_FOUND);
    }
    BH_CHECK_EQ("all arrived", got, sent);
    BH_CHECK_EQ("idle again", bh_link_interest(ends.link), POLLIN);
    bh_link_free(reader);
    BH_CHECK_EQ("peer gone",
                bh_link_send(ends.link, BH_MSG_RETAIN, bh_message_fields(BH_MSG_RETAIN), &retain, &err),
                BH_UNAVAILABLE);
    bh_link_free(ends.link);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_partitions),
    cmocka_unit_test(test_cut_and_garbage),
    cmocka_unit_test(test_slow_peer),
};

BH_TEST_MAIN(tests)
