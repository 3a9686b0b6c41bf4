#include "lab/load/agenda.h"

#include "base/test.h"

/* Thousands of entries come out by time, and those of one instant as they went in. */
static void
test_order(void **state)
{
    struct bh_agenda *agenda = bh_agenda_new();
    struct bh_agenda_entry entry, before = { 0 };
    uint64_t seed = 1;

    for (uint32_t i = 0; i < 5000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        bh_agenda_add(agenda, &(struct bh_agenda_entry){ .due_ns = seed >> 58, .subject = i });
    }
    for (uint32_t i = 0; i < 5000; i++) {
        uint64_t due_ns = bh_agenda_due_ns(agenda);

        assert_true(bh_agenda_take(agenda, &entry));
        assert_int_equal(entry.due_ns, due_ns);
        assert_true(entry.due_ns >= before.due_ns);
        assert_true(i == 0 || entry.due_ns > before.due_ns || entry.subject > before.subject);
        before = entry;
    }
    assert_false(bh_agenda_take(agenda, &entry));
    assert_true(bh_agenda_due_ns(agenda) == UINT64_MAX);
    bh_agenda_free(agenda);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_order) };
BH_TEST_MAIN(tests)
