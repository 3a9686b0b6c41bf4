#include "web/gpu_card.h"

#include <string.h>

#include "base/attr.h"
#include "base/test.h"

enum { NOW_S = 1795878983 };

static const struct {
    const char *name, *gpu;
    const char *line; /* of its sensors */
} rows[] = {
    /* clang-format off */
    { "all there",
      "{\"node\":\"n\",\"sampled_ns\":1795878980000000000,\"utilisation\":87,\"temperature_c\":32,\"power_mw\":105000,"
      "\"memory_used_mib\":512,\"memory_mib\":81920}",
      "<p>87 % busy, 32 \xc2\xb0" "C, 105 W, 512 MiB of 80.0 GiB</p>\n" },
    { "0 is 0",
      "{\"node\":\"n\",\"sampled_ns\":1795878980000000000,\"utilisation\":0,\"temperature_c\":0,\"power_mw\":0,"
      "\"memory_used_mib\":0,\"memory_mib\":81920}",
      "<p>0 % busy, 0 \xc2\xb0" "C, 0 W, 0 MiB of 80.0 GiB</p>\n" },
    { "a MIG GPU is busy by its instances",
      "{\"mode\":\"mig\",\"node\":\"n\",\"sampled_ns\":1,\"temperature_c\":32,\"power_mw\":1000,\"memory_used_mib\":1,"
      "\"memory_mib\":2}",
      "<p>32 \xc2\xb0" "C, 1 W, 1 MiB of 2 MiB, as of <time>1970-01-01T00:00:00Z</time></p>\n" },
    { "no power",
      "{\"node\":\"n\",\"sampled_ns\":1795878980000000000,\"utilisation\":1,\"temperature_c\":2,\"memory_used_mib\":3,"
      "\"memory_mib\":4}",
      "<p>1 % busy, 2 \xc2\xb0" "C, <span class=\"unavailable\">unavailable: power, as its driver does not give it</span>, "
      "3 MiB of 4 MiB</p>\n" },
    { "no memory used",
      "{\"node\":\"n\",\"sampled_ns\":1795878980000000000,\"utilisation\":1,\"temperature_c\":2,\"power_mw\":3000,"
      "\"memory_mib\":4}",
      "<p>1 % busy, 2 \xc2\xb0" "C, 3 W, <span class=\"unavailable\">unavailable: memory used, as its driver does not give "
      "it</span> of 4 MiB</p>\n" },
    { "its node is away",
      "{\"node\":\"\",\"used\":{\"gpus\":\"2/7\"}}",
      "<p><span class=\"unavailable\">unavailable: sensors, as its node is away</span></p>\n" },
    { "its driver does not answer",
      "{\"node\":\"n\",\"memory_mib\":4,\"used\":{\"gpus\":\"0\"}}",
      "<p>0 of it used, <span class=\"unavailable\">unavailable: sensors, as its driver does not answer</span></p>\n" },
    { "others hold partitions",
      "{\"node\":\"n\",\"sampled_ns\":1,\"sensors_withheld\":true,\"memory_mib\":4,\"used\":{\"gpus\":\"1/7\"}}",
      "<p>1/7 of it used, <span class=\"unavailable\">unavailable: sensors, as others hold partitions of it</span></p>\n" },
    { "its node has not reported for a while",
      "{\"node\":\"n\",\"sampled_ns\":1795878000000000000,\"utilisation\":87,\"temperature_c\":32,\"power_mw\":105000,"
      "\"memory_used_mib\":512,\"memory_mib\":81920}",
      "<p>87 % busy, 32 \xc2\xb0" "C, 105 W, 512 MiB of 80.0 GiB, as of <time>2026-11-28T15:00:00Z</time></p>\n" },
    /* clang-format on */
};

static void
figures_that_are_not_known_are_no_zeros(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 4096 };
        struct bh_html html = { .out = &out };
        struct bh_json *json = NULL;
        struct bh_err err;

        BH_CHECK_EQ(rows[i].name, bh_json_parse(rows[i].gpu, strlen(rows[i].gpu), &json, &err), BH_OK);
        bh_html_open(&html, "p");
        bh_gpu_card_put_sensors(&html, bh_json_root(json), NOW_S * BH_NS_PER_S);
        bh_html_close(&html, "p");
        BH_CHECK_STR(rows[i].name, bh_buf_text(&out), rows[i].line);
        bh_json_free(json);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(figures_that_are_not_known_are_no_zeros) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
