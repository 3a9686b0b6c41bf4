#include "audit/rows.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/test.h"

/* One line of each file, as others read it. */
static void
one_way(void **state)
{
    static const struct bh_row_name name = { "principal", 3, "alice", { 0xab }, 0 },
                                    erased = { "principal", 4, NULL, { 0 }, 37 };
    static const struct bh_row_job job = {
        .job = 7, .tenant_id = 5, .tenant = "acme", .exit_status = -1, .ended_ns = 9, .spec = { 1 }
    };
    static const struct bh_row_text text = { 2, { 0xcd }, "{}" };
    const struct {
        const struct bh_fields *fields;
        const void *row;
        const char *line;
    } rows[] = {
#define ZEROS "00000000000000000000000000000000000000000000000000000000000000"
        { &bh_row_name_fields, &name,
          "{\"id\":3,\"key\":\"ab" ZEROS "\",\"kind\":\"principal\",\"name\":\"alice\"}" },
        { &bh_row_name_fields, &erased, "{\"erased_by\":37,\"id\":4,\"kind\":\"principal\"}" },
        { &bh_row_job_fields, &job,
          "{\"ended_ns\":\"9\",\"exit_status\":-1,\"job\":7,\"spec\":\"01" ZEROS
          "\",\"tenant\":\"acme\",\"tenant_id\":5}" },
        { &bh_row_text_fields, &text, "{\"digest\":\"cd" ZEROS "\",\"number\":2,\"text\":\"{}\"}" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[512];
        struct bh_buf out;

        BH_CHECK(rows[i].fields->name, bh_fields_ordered(rows[i].fields));
        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_json_encode(&out, rows[i].fields, rows[i].row);
        BH_CHECK_STR(rows[i].fields->name, bh_buf_text(&out), rows[i].line);
    }
    BH_CHECK_DONE();
}

static void
reads_back(void **state)
{
    static const char line[] = "{\"erased_by\":37,\"id\":4,\"kind\":\"principal\"}";
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
    struct bh_row_name row = { .id = 1 };
    struct bh_err err;

    BH_CHECK_EQ("good", bh_json_decode(line, strlen(line), &bh_row_name_fields, &row, arena, &err), BH_OK);
    BH_CHECK("erased", !row.name && row.erased_by == 37 && row.id == 4);
    BH_CHECK_EQ("without an id", bh_json_decode("{}", 2, &bh_row_name_fields, &row, arena, &err), BH_INVALID);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_way),
    cmocka_unit_test(reads_back),
};
BH_TEST_MAIN(tests)
