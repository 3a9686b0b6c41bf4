#include "cli/client/sse.h"

#include "base/test.h"

struct received {
    char text[1024];
    uint32_t count, most; /* most: end after so many, 0 never */
};

static bool
sse_test_receive(void *self, const char *event, const char *text, size_t length)
{
    struct received *received = self;
    size_t at = strlen(received->text);

    snprintf(received->text + at, sizeof received->text - at, "<%s:%.*s>", event, (int)length, text);
    received->count++;
    return !received->most || received->count < received->most;
}

static const struct {
    const char *name, *stream, *received;
} streams[] = {
    { "one", "event: log\ndata: a\n\n", "<log:a>" },
    { "no name", "data: a\n\n", "<message:a>" },
    { "two", "event: log\ndata: a\n\nevent: end\ndata: b\n\n", "<log:a><end:b>" },
    { "the name is forgotten", "event: log\ndata: a\n\ndata: b\n\n", "<log:a><message:b>" },
    { "several lines", "data: a\ndata: b\n\n", "<message:a\nb>" },
    { "one blank is cut", "data:  a\ndata:b\n\n", "<message: a\nb>" },
    { "carriage returns", "event: log\r\ndata: a\r\n\r\n", "<log:a>" },
    { "comments", ": ping\n\ndata: a\n: x\n\n", "<message:a>" },
    { "ids and others", "id: 7\nretry: 5\nfoo: bar\ndata: a\n\n", "<message:a>" },
    { "an empty text", "data:\n\n", "<message:>" },
    { "no text is no event", "event: log\n\ndata: a\n\n", "<message:a>" },
    { "cut off", "data: a\n", "" },
    { "a name too long", "event: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\ndata: a\n\n", "<message:a>" },
};

static void
test_streams(void **state)
{
    static const size_t steps[] = { 1, 2, 5, 1000 };

    for (size_t i = 0; i < BH_COUNT(streams); i++)
        for (size_t s = 0; s < BH_COUNT(steps); s++) {
            struct received received = { "" };
            struct bh_sse sse;
            size_t length = strlen(streams[i].stream);

            bh_sse_init(&sse, sse_test_receive, &received);
            for (size_t at = 0; at < length; at += steps[s])
                BH_CHECK(streams[i].name, bh_sse_feed(&sse, streams[i].stream + at,
                                                      length - at < steps[s] ? length - at : steps[s]));
            bh_sse_fini(&sse);
            BH_CHECK_STR(streams[i].name, received.text, streams[i].received);
        }
    BH_CHECK_DONE();
}

static void
test_sink_ends(void **state)
{
    struct received received = { .text = "", .most = 1 };
    struct bh_sse sse;
    const char *stream = "data: a\n\ndata: b\n\n";

    bh_sse_init(&sse, sse_test_receive, &received);
    assert_false(bh_sse_feed(&sse, stream, strlen(stream)));
    bh_sse_fini(&sse);
    assert_string_equal(received.text, "<message:a>");
}

/* An event that never ends is not collected for ever. */
static void
test_endless_event(void **state)
{
    static char piece[65536];
    struct received received = { "" };
    struct bh_sse sse;
    size_t fed = 0;

    memset(piece, 'a', sizeof piece);
    bh_sse_init(&sse, sse_test_receive, &received);
    while (fed < 4 * (size_t)BH_SSE_EVENT_MAX && bh_sse_feed(&sse, piece, sizeof piece))
        fed += sizeof piece;
    bh_sse_fini(&sse);
    assert_true(fed <= BH_SSE_EVENT_MAX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_streams),
    cmocka_unit_test(test_sink_ends),
    cmocka_unit_test(test_endless_event),
};
BH_TEST_MAIN(tests)
