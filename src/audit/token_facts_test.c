#include "audit/token_facts.h"

#include "base/test.h"

static void
facts_have_one_form(void **state)
{
    static const struct {
        const char *name;
        struct bh_token_facts facts;
        const char *text;
    } rows[] = {
        { "all",
          { 7, 2, "job.view job.submit" },
          "{\"token\":{\"expires_ns\":\"7\",\"principal\":2,\"scopes\":\"job.view job.submit\"}}" },
        { "all that the owner may", { 7, 2, "" }, "{\"token\":{\"expires_ns\":\"7\",\"principal\":2}}" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[200];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_token_facts_put(&out, &rows[i].facts);
        BH_CHECK_STR(rows[i].name, bh_buf_text(&out), rows[i].text);
        BH_CHECK(rows[i].name, bh_token_facts_is(bh_buf_text(&out)));
    }
}

static void
events_are_none(void **state)
{
    BH_CHECK("none", !bh_token_facts_is(NULL));
    BH_CHECK("a cordon", !bh_token_facts_is("{\"cordon\":{\"gpu\":1}}"));
    BH_CHECK("another's beginning", !bh_token_facts_is("{\"tokens\":{}}"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(facts_have_one_form),
    cmocka_unit_test(events_are_none),
};
BH_TEST_MAIN(tests)
