#include "base/utf8.h"

#include "base/test.h"

static const struct {
    const char *name, *text;
    size_t step;
} steps[] = {
    { "nothing", "", 0 },
    { "ASCII", "a", 1 },
    { "first of two bytes", "\xc2\x80", 2 },
    { "last of two bytes", "\xdf\xbf", 2 },
    { "first of three bytes", "\xe0\xa0\x80", 3 },
    { "before the surrogates", "\xed\x9f\xbf", 3 },
    { "behind the surrogates", "\xee\x80\x80", 3 },
    { "first of four bytes", "\xf0\x90\x80\x80", 4 },
    { "last of all", "\xf4\x8f\xbf\xbf", 4 },
    { "one past the last", "\xf4\x90\x80\x80", 0 },
    { "five bytes", "\xf8\x88\x80\x80\x80", 0 },
    { "overlong in two", "\xc1\xbf", 0 },
    { "overlong in three", "\xe0\x9f\xbf", 0 },
    { "overlong in four", "\xf0\x8f\xbf\xbf", 0 },
    { "first surrogate", "\xed\xa0\x80", 0 },
    { "last surrogate", "\xed\xbf\xbf", 0 },
    { "a continuation alone", "\x80", 0 },
    { "cut off after one", "\xe2", 0 },
    { "cut off after two", "\xe2\x82", 0 },
    { "a letter inside",
      "\xe2\x82"
      "a",
      0 },
};

static void
test_step(void **state)
{
    for (size_t i = 0; i < BH_COUNT(steps); i++)
        BH_CHECK_EQ(steps[i].name, bh_utf8_step(steps[i].text, strlen(steps[i].text)), steps[i].step);
    BH_CHECK_DONE();
}

static void
test_valid(void **state)
{
    BH_CHECK("nothing", bh_utf8_is_valid(""));
    BH_CHECK("of all lengths", bh_utf8_is_valid("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 z"));
    BH_CHECK("Latin-1", !bh_utf8_is_valid("a\xe4"
                                          "b"));
    BH_CHECK("cut off", !bh_utf8_is_valid("a\xe2\x82"));
    BH_CHECK_DONE();
}

/* Every character there is comes back as the one sequence of its length. */
static void
test_encode(void **state)
{
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        char bytes[4];
        size_t length = bh_utf8_encode(code, bytes);
        size_t want = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

        if (length != want || bh_utf8_step(bytes, length) != (surrogate ? 0 : want))
            BH_CHECK_EQ("code", code, 0);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text, *scrubbed;
} scrubs[] = {
    { "empty", "", "" },
    { "plain", "plain text", "plain text" },
    { "UTF-8", "\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80" },
    { "control characters", "\x1b[31m\n\t\x7f", "?[31m???" },
    { "C1 in two bytes",
      "a\xc2\x9b"
      "b",
      "a??b" },
    { "no-break space stays", "\xc2\xa0", "\xc2\xa0" },
    { "stray bytes",
      "a\x80\xff"
      "b",
      "a??b" },
    { "cut at the end", "abc\xe2\x82", "abc??" },
    { "another order of writing",
      "a\xe2\x80\xae"
      "b\xe2\x81\xa6",
      "a???b???" },
    { "marks of direction", "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "????????" },
    { "no width",
      "a\xe2\x80\x8b"
      "b\xef\xbb\xbf",
      "a???b???" },
    { "tags", "\xf3\xa0\x81\x81", "????" },
    { "right to left as it is", "\xd7\xa9\xd7\x9c", "\xd7\xa9\xd7\x9c" },
};

static void
test_scrub(void **state)
{
    char lines[32];

    for (size_t i = 0; i < BH_COUNT(scrubs); i++) {
        char text[32];

        snprintf(text, sizeof text, "%s", scrubs[i].text);
        BH_CHECK_EQ(scrubs[i].name, bh_utf8_is_shown(text), strcmp(scrubs[i].text, scrubs[i].scrubbed) == 0);
        bh_utf8_scrub(text);
        BH_CHECK_STR(scrubs[i].name, text, scrubs[i].scrubbed);
        BH_CHECK(scrubs[i].name, bh_utf8_is_shown(text));
    }
    snprintf(lines, sizeof lines, "a\x1b\n\tb\xe2\x80\xae\r\n");
    bh_utf8_scrub_lines(lines);
    BH_CHECK_STR("lines", lines, "a?\n\tb????\n");
    BH_CHECK_DONE();
}

/* One of each kind, the ends of the long ranges, and their neighbours. */
static void
test_unseen(void **state)
{
    static const uint32_t unseen[] = {
        0xad,    0x34f,   0x61c,   0x115f,  0x1160,  0x17b4,  0x17b5,  0x180b,   0x180e,   0x180f,  0x200b,
        0x202e,  0x2060,  0x2065,  0x206f,  0x2800,  0x3164,  0xe000,  0xf8ff,   0xfdd0,   0xfdef,  0xfe00,
        0xfe0f,  0xfeff,  0xffa0,  0xfff0,  0xfff9,  0xfffc,  0xfffe,  0xffff,   0x1bca0,  0x1d173, 0x1fffe,
        0x5ffff, 0xe0000, 0xe0100, 0xe01ef, 0xe0fff, 0xefffe, 0xf0000, 0x10fffd, 0x10ffff,
    };
    static const uint32_t seen[] = {
        0xa0,   0xae,   0x34e,  0x350,  0x115e,  0x1161,  0x17b3,  0x17b6,  0x2010,
        0x2070, 0x27ff, 0x2801, 0x3163, 0x3165,  0xd7ff,  0xf900,  0xfdcf,  0xfdf0,
        0xfe10, 0xff9f, 0xffa1, 0xfffd, 0x10000, 0x1f600, 0x1fffd, 0x20000, 0xe1000,
    };

    for (size_t i = 0; i < BH_COUNT(unseen) + BH_COUNT(seen); i++) {
        uint32_t code = i < BH_COUNT(unseen) ? unseen[i] : seen[i - BH_COUNT(unseen)];
        char text[5] = { 0 }, name[16];
        size_t length = bh_utf8_encode(code, text);

        snprintf(name, sizeof name, "U+%04X", code);
        BH_CHECK_EQ(name, bh_utf8_is_shown(text), i >= BH_COUNT(unseen));
        BH_CHECK_EQ(name, bh_utf8_shown_step(text, length), i >= BH_COUNT(unseen) ? length : 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_valid), cmocka_unit_test(test_step),
                                           cmocka_unit_test(test_encode), cmocka_unit_test(test_scrub),
                                           cmocka_unit_test(test_unseen) };

BH_TEST_MAIN(tests)
