#include "lab/common/flags.h"

#include "base/test.h"

struct options {
    bool on;
    const char *text;
    uint32_t number;
    uint64_t seed;
    struct bh_flag_list loads, orders;
};

static bh_rc
parse(struct options *options, const char *line, struct bh_err *err)
{
    static const char *const names[] = { "tree", "fifo" };
    const struct bh_flag flags[] = {
        { "--on", BH_FLAG_ON, &options->on },
        { "--text", BH_FLAG_TEXT, &options->text },
        { "--number", BH_FLAG_NUMBER, &options->number, 1, 10 },
        { "--seed", BH_FLAG_SEED, &options->seed },
        { "--load", BH_FLAG_THOUSANDTHS, &options->loads, 10, 2000 },
        { "--order", BH_FLAG_CHOICES, &options->orders, .names = names, .name_count = 2 },
    };
    static char copy[200];
    char *words[16], *at = copy, *rest;
    int count = 0;

    snprintf(copy, sizeof copy, "%s", line);
    for (; (words[count] = strtok_r(at, " ", &rest)); at = NULL)
        count++;
    return bh_flags_parse(flags, BH_COUNT(flags), count, words, err);
}

static void
test_values(void **state)
{
    struct options options = { .loads = { { 7 }, 1 } };
    struct bh_err err = { 0 };

    assert_int_equal(parse(&options,
                           "--on --number=7 --text here --load 0.8,1.25,2 "
                           "--order=fifo,tree --seed 18446744073709551615",
                           &err),
                     BH_OK);
    BH_CHECK("on", options.on);
    BH_CHECK_STR("text", options.text, "here");
    BH_CHECK_EQ("number", options.number, 7);
    BH_CHECK_EQ("seed", options.seed == UINT64_MAX, 1);
    BH_CHECK_EQ("loads", options.loads.count, 3);
    BH_CHECK_EQ("first", options.loads.values[0], 800);
    BH_CHECK_EQ("second", options.loads.values[1], 1250);
    BH_CHECK_EQ("orders", options.orders.count, 2);
    BH_CHECK_EQ("fifo", options.orders.values[0], 1);
    BH_CHECK_DONE();
}

static void
test_refused(void **state)
{
    static const struct {
        const char *line;
        bh_rc rc;
        const char *msg;
    } rows[] = {
        { "--what", BH_INVALID, "unknown option --what" },
        { "file", BH_INVALID, "unknown option file" },
        { "--number", BH_INVALID, "--number wants a value" },
        { "--on=1", BH_INVALID, "--on takes no value" },
        { "--number 11", BH_RANGE, NULL },
        { "--number x", BH_INVALID, NULL },
        { "--load 0.8,,1", BH_INVALID, "--load: \"0.8,,1\" is no list" },
        { "--load 0.001", BH_RANGE, "--load: 0.001 is not within 0.010 and 2.000" },
        { "--order lifo", BH_INVALID, NULL },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct options options = { 0 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(rows[i].line, parse(&options, rows[i].line, &err), rows[i].rc);
        if (rows[i].msg)
            BH_CHECK_STR(rows[i].line, err.msg, rows[i].msg);
        BH_CHECK_EQ(rows[i].line, options.loads.count, 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_values), cmocka_unit_test(test_refused) };
BH_TEST_MAIN(tests)
