#include "policy/gpus.h"

#include "base/num.h"
#include "base/test.h"

static void
amounts_are_exact(void **state)
{
    static const struct {
        uint64_t parts;
        const char *text;
        /* clang-format off */
    } cases[] = {
        { 0, "0 GPUs" },       { 4200, "1 GPU" },      { 8400, "2 GPUs" },
        { 6300, "1.5 GPUs" },  { 2100, "0.5 GPU" },    { 1800, "3/7 GPU" },
        { 600, "1/7 GPU" },    { 525, "0.125 GPU" },   { 42, "0.01 GPU" },
        { 6000, "10/7 GPUs" }, { 1, "1/4200 GPU" },    { 4200 + 525, "1.125 GPUs" },
        { 1400, "1/3 GPU" },   { 168, "0.04 GPU" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char memory[64];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_gpus_put(&out, cases[i].parts);
        BH_CHECK_STR(cases[i].text, bh_buf_text(&out), cases[i].text);
    }
    BH_CHECK_DONE();
}

static void
what_is_written_reads_back(void **state)
{
    for (uint64_t parts = 0; parts <= 3 * 4200; parts++) {
        char memory[64];
        struct bh_buf out;
        struct bh_err err;
        uint64_t back = 1;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_gpus_put_amount(&out, parts);
        BH_CHECK_EQ(bh_buf_text(&out), bh_parse_parts(bh_buf_text(&out), 4200, &back, &err), BH_OK);
        BH_CHECK_EQ(bh_buf_text(&out), back, parts);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(amounts_are_exact),
                                           cmocka_unit_test(what_is_written_reads_back) };
BH_TEST_MAIN(tests)
