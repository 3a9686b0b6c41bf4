/* Every event and decision comes back from the journal as it went in. */
#include "api/state/codec.h"

#include <stdlib.h>

#include "base/test.h"
#include "engine/step/engine.h"
#include "wire/fill_test.h"

static struct bh_arena *arena;
static struct bh_err err;

/* The journal's text of an event, in the arena. */
static const char *
text_of_event(const struct bh_event *event)
{
    struct bh_buf out;
    const char *text;

    bh_buf_init(&out, 1 << 20);
    bh_codec_put_event(&out, event);
    text = bh_arena_strdup(arena, bh_buf_text(&out));
    bh_buf_fini(&out);
    return text;
}

static const char *
text_of_decisions(const struct bh_decision *decisions, uint32_t count)
{
    struct bh_buf out;
    const char *text;

    bh_buf_init(&out, 1 << 20);
    bh_codec_put_decisions(&out, decisions, count);
    text = bh_arena_strdup(arena, bh_buf_text(&out));
    bh_buf_fini(&out);
    return text;
}

static void
every_event_comes_back(void **state)
{
    for (uint32_t kind = 0; kind < BH_EVENT_KINDS; kind++) {
        struct bh_event event = { .kind = (enum bh_event_kind)kind }, back;
        const struct bh_fields *fields = bh_event_fields(event.kind);
        const char *name = bh_event_names[kind], *text;
        uint64_t seed = 7 + kind;

        if (fields)
            wire_fill(fields, (unsigned char *)&event.u, arena, &seed);
        text = text_of_event(&event);
        BH_CHECK_EQ(name, bh_codec_get_event(text, &back, arena, &err), BH_OK);
        BH_CHECK_EQ(name, back.kind, kind);
        BH_CHECK(name, memcmp(&event.u, &back.u, fields ? fields->size : 0) == 0);
        BH_CHECK_STR(name, text_of_event(&back), text);
        bh_arena_reset(arena);
    }
    BH_CHECK_DONE();
}

static void
decisions_come_back(void **state)
{
    static struct bh_decision decisions[BH_DECISIONS_MAX + 1], back[BH_DECISIONS_MAX];
    const char *text;
    uint64_t seed = 99;
    uint32_t count = 77;

    for (uint32_t i = 0; i <= BH_DECISIONS_MAX; i++)
        wire_fill(&bh_decision_fields, (unsigned char *)&decisions[i], arena, &seed);
    text = text_of_decisions(decisions, BH_DECISIONS_MAX);
    assert_int_equal(bh_codec_get_decisions(text, back, &count, arena, &err), BH_OK);
    assert_int_equal(count, BH_DECISIONS_MAX);
    assert_memory_equal(decisions, back, sizeof back);
    assert_int_equal(bh_codec_get_decisions("[]", back, &count, arena, &err), BH_OK);
    assert_int_equal(count, 0);
    text = text_of_decisions(decisions, BH_DECISIONS_MAX + 1);
    assert_int_equal(bh_codec_get_decisions(text, back, &count, arena, &err), BH_INVALID);
    bh_arena_reset(arena);
}

/* As many decisions with as many partitions as a step may bring, with numbers as long as they
 * will ever be, leave room in a record (65535 bytes) for the event and who asked. */
static void
a_full_step_fits_in_a_record(void **state)
{
    static struct bh_decision decisions[BH_DECISIONS_MAX];
    const uint64_t job = UINT64_C(1) << 50;

    memset(decisions, 0, sizeof decisions);
    for (uint32_t i = 0; i < BH_DECISIONS_MAX; i++) {
        struct bh_decision *decision = &decisions[i];

        *decision = (struct bh_decision){ .kind = BH_DO_PLACE,
                                          .job = { job },
                                          .lease = { job },
                                          .member = 63,
                                          .partition_count = BH_DECIDED_PARTITIONS_MAX / BH_DECISIONS_MAX };
        for (uint32_t k = 0; k < decision->partition_count; k++)
            decision->partitions[k] = (struct bh_partition){ { job }, { UINT32_MAX }, 999, 7, true };
    }
    assert_true(strlen(text_of_decisions(decisions, BH_DECISIONS_MAX)) < 60000);
    bh_arena_reset(arena);
}

static void
what_is_no_event_is_refused(void **state)
{
    static const char *const rows[] = { "",
                                        "[]",
                                        "{}",
                                        "{\"dance\":{}}",
                                        "{\"submit\":[]}",
                                        "{\"submit\":{\"job\":\"x\"}}",
                                        "{\"cancel\":{\"nobody\":1}}",
                                        "{\"submit\":{" };
    struct bh_event event;

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i], bh_codec_get_event(rows[i], &event, arena, &err), BH_INVALID);
    BH_CHECK_DONE();
}

static int
codec_set_up(void **state)
{
    arena = bh_arena_new(8 << 20);
    return 0;
}

static int
codec_tear_down(void **state)
{
    bh_arena_free(arena);
    return 0;
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_comes_back),
        cmocka_unit_test(decisions_come_back),
        cmocka_unit_test(a_full_step_fits_in_a_record),
        cmocka_unit_test(what_is_no_event_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, codec_set_up, codec_tear_down);
}
