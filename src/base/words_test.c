/* Lines as words. */
#include "base/words.h"

#include "base/test.h"

static const struct {
    const char *line;
    bh_rc rc;
    uint32_t count;
    const char *last;
} lines[] = {
    { "", BH_OK, 0, NULL },
    { "   \t ", BH_OK, 0, NULL },
    { "# a comment", BH_OK, 0, NULL },
    { "submit a acme small", BH_OK, 4, "small" },
    { "  submit\ta  acme  # why", BH_OK, 3, "acme" },
    { "why a contains \"two words\"", BH_OK, 4, "two words" },
    { "why a contains \"# no comment\"", BH_OK, 4, "# no comment" },
    { "why a contains \"\"", BH_OK, 4, "" },
    { "expect a#b running\r", BH_OK, 3, "running" },
    { "why \"open", BH_INVALID, 0, NULL },
};

static void
lines_become_words(void **state)
{
    static struct bh_words words;
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(lines); i++) {
        const char *line = lines[i].line;

        BH_CHECK_EQ(line, bh_words_split(line, strlen(line), &words, &err), lines[i].rc);
        if (lines[i].rc != BH_OK)
            continue;
        BH_CHECK_EQ(line, words.count, lines[i].count);
        if (words.count > 0 && lines[i].last)
            BH_CHECK_STR(line, words.at[words.count - 1], lines[i].last);
    }
    BH_CHECK_DONE();
}

static void
long_lines_are_refused(void **state)
{
    static struct bh_words words;
    char line[BH_LINE_MAX + 2];
    struct bh_err err;

    memset(line, 'a', sizeof line);
    assert_int_equal(bh_words_split(line, BH_LINE_MAX, &words, &err), BH_OK);
    assert_int_equal(bh_words_split(line, BH_LINE_MAX + 1, &words, &err), BH_RANGE);
    for (size_t i = 0; i < BH_LINE_MAX; i++)
        line[i] = i % 2 ? ' ' : 'a';
    assert_int_equal(bh_words_split(line, 2 * BH_WORDS_MAX, &words, &err), BH_OK);
    assert_int_equal(words.count, BH_WORDS_MAX);
    assert_int_equal(bh_words_split(line, 2 * BH_WORDS_MAX + 2, &words, &err), BH_RANGE);
}

static const struct {
    const char *word;
    uint32_t count;
    const char *last;
    /* clang-format off */
} ranges[] = {
    { "a", 1, "a" },          { "s1..s7", 7, "s7" },     { "s9..s11", 3, "s11" },
    { "s3..s3", 1, "s3" },    { "s7..s1", 1, "s7..s1" }, { "a..b", 1, "a..b" },
    { "s1..t2", 1, "s1..t2" }, { "s1..", 1, "s1.." },    { "..", 1, ".." },
    { "1..3", 3, "3" },
};
/* clang-format on */

static void
ranges_name_many(void **state)
{
    for (size_t i = 0; i < BH_COUNT(ranges); i++) {
        char name[BH_WORD_MAX] = "";
        char last[BH_WORD_MAX] = "";
        uint32_t cursor = 0, count = 0;

        while (bh_word_next_name(ranges[i].word, &cursor, name) && ++count < 100)
            memcpy(last, name, sizeof last);
        BH_CHECK_EQ(ranges[i].word, count, ranges[i].count);
        BH_CHECK_STR(ranges[i].word, last, ranges[i].last);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lines_become_words),
    cmocka_unit_test(long_lines_are_refused),
    cmocka_unit_test(ranges_name_many),
};
BH_TEST_MAIN(tests)
