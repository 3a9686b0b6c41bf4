#include "model/layout.h"

#include <stdio.h>

#include "base/test.h"

/* What a layout becomes on an H100-80GB, or why it cannot stand. */
static struct {
    const char *name;
    const char *partitions[8]; /* the items of a bh_texts */
    const char *plan;          /* or NULL, and */
    const char *error;
} cases[] = {
    { "nothing", { NULL }, "", NULL },
    { "seven small",
      { "1g.10gb x7" },
      "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 "
      "1g.10gb@5 1g.10gb@6 ",
      NULL },
    { "where it is said", { "3g.40gb@0", "1g.10gb@4" }, "3g.40gb@0 1g.10gb@4 ", NULL },
    { "what is said comes before what is not", { "3g.40gb", "1g.10gb@0" }, "1g.10gb@0 3g.40gb@4 ", NULL },
    { "the largest first, whatever the order",
      { "1g.10gb", "2g.20gb", "4g.40gb" },
      "4g.40gb@0 2g.20gb@4 1g.10gb@6 ",
      NULL },
    { "four and three", { "3g.40gb", "4g.40gb" }, "4g.40gb@0 3g.40gb@4 ", NULL },
    { "five of two slices",
      { "2g.20gb x5" },
      NULL,
      "2g.20gb does not fit on a GPU of model H100-80GB with the 3 others" },
    { "two halves and one more",
      { "3g.40gb x2", "1g.10gb" },
      NULL,
      "1g.10gb does not fit on a GPU of model H100-80GB with the 2 others" },
    { "two at one place",
      { "1g.10gb@2", "1g.10gb@2" },
      NULL,
      "1g.10gb does not fit on a GPU of model H100-80GB with the 1 others" },
    { "no such start", { "3g.40gb@2" }, NULL, "a 3g.40gb cannot start at 2" },
    { "a profile of another model",
      { "1g.6gb" },
      NULL,
      "GPUs of model H100-80GB have no MIG profile 1g.6gb" },
    { "eight", { "1g.10gb x7", "1g.10gb" }, NULL, "a GPU holds at most 7 instances" },
    { "no profile", { "x7" }, NULL, "GPUs of model H100-80GB have no MIG profile x7" },
    { "nothing at all", { "" }, NULL, "\"\" is not a partition of a layout" },
    { "a count of nothing", { "1g.10gb x0" }, NULL, "\"1g.10gb x0\" is not a partition of a layout" },
    { "a start that is no number", { "1g.10gb@a" }, NULL, "\"1g.10gb@a\" is not a partition of a layout" },
    { "a word behind it", { "1g.10gb each" }, NULL, "\"1g.10gb each\" is not a partition of a layout" },
};

static void
layouts(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_texts partitions = { .items = cases[i].partitions };
        struct bh_layout_plan plan = { .count = 0 };
        struct bh_err err = { 0 };
        char text[200] = "";
        size_t at = 0;
        bh_rc rc;

        while (cases[i].partitions[partitions.count])
            partitions.count++;
        rc = bh_layout_plan_partitions(BH_GPU_H100_80GB, &partitions, &plan, &err);
        for (uint32_t k = 0; k < plan.count; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s@%u ", plan.partitions[k].profile->name,
                                   plan.partitions[k].start);
        BH_CHECK_EQ(cases[i].name, rc, cases[i].plan ? BH_OK : BH_INVALID);
        if (cases[i].plan)
            BH_CHECK_STR(cases[i].name, text, cases[i].plan);
        else
            BH_CHECK_STR(cases[i].name, err.msg, cases[i].error);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(layouts) };
BH_TEST_MAIN(tests)
