#include "wire/stream.h"

#include <string.h>

#include "base/test.h"

/* The format, byte by byte: a change here breaks running clients. */
static const struct {
    const char *name, *bytes;
    size_t length;
    enum bh_stream_from from;
    struct bh_stream_frame frame;
} good[] = {
    { "input",
      "\x01\x02\0\0hi",
      6,
      BH_STREAM_CLIENT,
      { .kind = BH_STREAM_STDIN, .bytes = "hi", .length = 2 } },
    { "end of input", "\x01\0\0\0", 4, BH_STREAM_CLIENT, { .kind = BH_STREAM_STDIN } },
    { "resize",
      "\x02\x04\0\0\x18\0\x50\0",
      8,
      BH_STREAM_CLIENT,
      { .kind = BH_STREAM_RESIZE, .rows = 24, .columns = 80 } },
    { "signal", "\x03\x01\0\0\x0f", 5, BH_STREAM_CLIENT, { .kind = BH_STREAM_SIGNAL, .number = 15 } },
    { "leave", "\x04\0\0\0", 4, BH_STREAM_CLIENT, { .kind = BH_STREAM_LEAVE } },
    { "output", "\x10\x01\0\0x", 5, BH_STREAM_NODE, { .kind = BH_STREAM_STDOUT, .bytes = "x", .length = 1 } },
    { "errors",
      "\x11\x01\0\0\xff",
      5,
      BH_STREAM_NODE,
      { .kind = BH_STREAM_STDERR, .bytes = "\xff", .length = 1 } },
    { "ready",
      "\x12\x05\0\0\0\0\x01\0\x03",
      9,
      BH_STREAM_NODE,
      { .kind = BH_STREAM_READY, .number = 65536, .flags = 3 } },
    { "credit", "\x13\x04\0\0\x05\0\0\0", 8, BH_STREAM_NODE, { .kind = BH_STREAM_CREDIT_MORE, .number = 5 } },
    { "exit", "\x14\x01\0\0\x89", 5, BH_STREAM_NODE, { .kind = BH_STREAM_EXIT, .number = 137 } },
    { "error",
      "\x15\x04\0\0\x04why",
      8,
      BH_STREAM_NODE,
      { .kind = BH_STREAM_ERROR, .number = 4, .bytes = "why", .length = 3 } },
};

static void
test_format(void **state)
{
    static char out[BH_STREAM_FRAME_MAX];

    for (size_t i = 0; i < BH_COUNT(good); i++) {
        struct bh_stream_frame frame;
        struct bh_err err;

        print_message("# %s\n", good[i].name);
        assert_int_equal(bh_stream_put(out, &good[i].frame), good[i].length);
        assert_memory_equal(out, good[i].bytes, good[i].length);
        assert_int_equal(bh_stream_next(out, good[i].length, good[i].from, &frame, &err), BH_OK);
        assert_int_equal(frame.size, good[i].length);
        assert_int_equal(frame.kind, good[i].frame.kind);
        assert_int_equal(frame.number, good[i].frame.number);
        assert_int_equal(frame.rows, good[i].frame.rows);
        assert_int_equal(frame.columns, good[i].frame.columns);
        assert_int_equal(frame.flags, good[i].frame.flags);
        assert_int_equal(frame.length, good[i].frame.length);
        for (size_t cut = 0; cut < good[i].length; cut++)
            assert_int_equal(bh_stream_next(out, cut, good[i].from, &frame, &err), BH_NOT_FOUND);
        /* never from the other end */
        assert_int_equal(bh_stream_next(out, good[i].length,
                                        good[i].from == BH_STREAM_NODE ? BH_STREAM_CLIENT : BH_STREAM_NODE,
                                        &frame, &err),
                         BH_INVALID);
    }
}

static const struct {
    const char *name, *bytes;
    size_t length;
    enum bh_stream_from from;
} bad[] = {
    { "kind 0", "\0\0\0\0", 4, BH_STREAM_CLIENT },
    { "a kind between", "\x05\0\0\0", 4, BH_STREAM_CLIENT },
    { "words of who leaves", "\x04\x01\0\0x", 5, BH_STREAM_CLIENT },
    { "a kind above all", "\xff\0\0\0", 4, BH_STREAM_NODE },
    { "input too long", "\x01\x01\x80\0", 4, BH_STREAM_CLIENT },
    { "resize too short", "\x02\x03\0\0\x01\0\x01", 7, BH_STREAM_CLIENT },
    { "resize too long", "\x02\x05\0\0\x01\0\x01\0\0", 9, BH_STREAM_CLIENT },
    { "no rows", "\x02\x04\0\0\0\0\x50\0", 8, BH_STREAM_CLIENT },
    { "no columns", "\x02\x04\0\0\x18\0\0\0", 8, BH_STREAM_CLIENT },
    { "signal 0", "\x03\x01\0\0\0", 5, BH_STREAM_CLIENT },
    { "signal 65", "\x03\x01\0\0\x41", 5, BH_STREAM_CLIENT },
    { "no signal", "\x03\0\0\0", 4, BH_STREAM_CLIENT },
    { "unknown flag", "\x12\x05\0\0\0\0\x01\0\x04", 9, BH_STREAM_NODE },
    { "no credit", "\x13\x04\0\0\0\0\0\0", 8, BH_STREAM_NODE },
    { "an error that is none", "\x15\x01\0\0\0", 5, BH_STREAM_NODE },
    { "an unknown error", "\x15\x01\0\0\x63", 5, BH_STREAM_NODE },
    { "an error without code", "\x15\0\0\0", 4, BH_STREAM_NODE },
    { "a NUL in a text", "\x15\x02\0\0\x04\0", 6, BH_STREAM_NODE },
    { "a text that is no UTF-8", "\x15\x02\0\0\x04\xff", 6, BH_STREAM_NODE },
    { "a text too long", "\x15\xf2\0\0", 4, BH_STREAM_NODE },
};

static void
test_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(bad); i++) {
        struct bh_stream_frame frame = { .number = 77 };
        struct bh_err err;

        print_message("# %s\n", bad[i].name);
        assert_int_equal(bh_stream_next(bad[i].bytes, bad[i].length, bad[i].from, &frame, &err), BH_INVALID);
        assert_int_equal(frame.number, 77);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_format),
    cmocka_unit_test(test_refused),
};

BH_TEST_MAIN(tests)
