#include "base/modes.h"

#include "base/test.h"

static int given;

static int
run_add(int count, char **words)
{
    given = count;
    return BH_MODE_OK;
}

static const struct bh_mode modes[] = {
    { "add", "NUMBER...", 1, run_add, "Add.\nAll of them.\n" },
    { "-a", NULL, 1, run_add, NULL },
};

static void
test_run(void **state)
{
    static const struct {
        const char *name;
        const char *argv[4];
        int argc, status, given;
    } rows[] = {
        { "no mode", { "sum" }, 1, BH_MODE_USAGE, -1 },
        { "unknown", { "sum", "multiply", "2" }, 3, BH_MODE_USAGE, -1 },
        { "too few words", { "sum", "add" }, 2, BH_MODE_USAGE, -1 },
        { "words behind the mode", { "sum", "add", "2", "3" }, 4, BH_MODE_OK, 2 },
        { "not listed", { "sum", "-a", "2" }, 3, BH_MODE_OK, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char words[4][16], *argv[4] = { words[0], words[1], words[2], words[3] };

        for (int w = 0; w < rows[i].argc; w++)
            snprintf(words[w], sizeof words[w], "%s", rows[i].argv[w]);
        given = -1;
        BH_CHECK_EQ(rows[i].name, bh_modes_run("sum", modes, BH_COUNT(modes), rows[i].argc, argv),
                    rows[i].status);
        BH_CHECK_EQ(rows[i].name, given, rows[i].given);
    }
    BH_CHECK_DONE();
}

static void
test_print(void **state)
{
    char text[200] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    assert_non_null(out);
    bh_modes_print("sum", modes, BH_COUNT(modes), out);
    fclose(out);
    BH_CHECK_STR(
        "help", text,
        "usage: sum add NUMBER...\n       sum --help | --version\n\nadd\n    Add.\n    All of them.\n");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_run), cmocka_unit_test(test_print) };
BH_TEST_MAIN(tests)
