#include "engine/state/event.h"

#include "base/test.h"

static void
every_event_has_a_name_and_fields_in_order(void **state)
{
    for (uint32_t i = 0; i < BH_EVENT_KINDS; i++) {
        const struct bh_fields *fields = bh_event_fields((enum bh_event_kind)i);

        assert_non_null(bh_event_names[i]);
        BH_CHECK_EQ(bh_event_names[i], fields == NULL, i == BH_EV_TICK);
        BH_CHECK(bh_event_names[i], !fields || bh_fields_ordered(fields));
        BH_CHECK(bh_event_names[i], !fields || fields->size <= sizeof(((struct bh_event *)0)->u));
        for (uint32_t k = 0; k < i; k++)
            BH_CHECK(bh_event_names[i], strcmp(bh_event_names[i], bh_event_names[k]) != 0);
    }
    BH_CHECK("none beyond", bh_event_fields(BH_EVENT_KINDS) == NULL);
    BH_CHECK_DONE();
}

static void
decisions_have_names_and_fields_in_order(void **state)
{
    for (uint32_t i = 0; i < BH_DECISION_KINDS; i++)
        BH_CHECK("name", bh_decision_names[i] != NULL);
    BH_CHECK("fields", bh_fields_ordered(&bh_decision_fields));
    BH_CHECK_EQ("size", bh_decision_fields.size, sizeof(struct bh_decision));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_event_has_a_name_and_fields_in_order),
    cmocka_unit_test(decisions_have_names_and_fields_in_order),
};
BH_TEST_MAIN(tests)
