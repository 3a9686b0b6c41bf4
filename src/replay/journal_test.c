/* A store as the daemon writes it, replayed: whole, with a wrong snapshot digest, with
 * a decision that was tampered with, with a record missing. */
#include "replay/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/state/codec.h"
#include "api/state/state.h"
#include "audit/record.h"
#include "base/test.h"
#include "store/sqlite.h"

/* A journal being written. */
struct writer {
    char folder[64], path[96];
    struct bh_store store;
    struct bh_state state;
    struct bh_step step;
    uint64_t seq;
    struct bh_err err;
};

static void
open_writer(struct writer *w)
{
    memset(w, 0, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "/tmp/bh-replay-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/bulkhead.db", w->folder);
    assert_int_equal(bh_store_sqlite_open(w->path, BH_STORE_WRITE, &bh_crypto_openssl, &w->store, &w->err),
                     BH_OK);
    bh_state_init(&w->state);
}

static void
close_writer(struct writer *w)
{
    DIR *folder = opendir(w->folder);
    struct dirent *entry;

    w->store.ops->close(w->store.self);
    bh_state_fini(&w->state);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(rmdir(w->folder), 0);
}

static void
put_record(struct writer *w, struct bh_record *record)
{
    struct bh_buf leaf;

    record->seq = w->seq++;
    record->ts_ns = 1000 + record->seq;
    record->dec.allow = true;
    record->phase = BH_PHASE_EVENT;
    record->res = "ok";
    bh_buf_init(&leaf, BH_RECORD_BYTES_MAX);
    bh_record_encode(&leaf, record);
    assert_false(leaf.overflow);
    assert_int_equal(w->store.ops->begin(w->store.self, &w->err), BH_OK);
    assert_int_equal(w->store.ops->put_record(w->store.self, record->seq,
                                              &(struct bh_slice){ leaf.bytes, leaf.length }, NULL, &w->err),
                     BH_OK);
    assert_int_equal(w->store.ops->commit(w->store.self, &w->err), BH_OK);
    bh_buf_fini(&leaf);
}

/* Step the engine and record what it decided; with `tamper` without its decisions. */
static void
put_event(struct writer *w, struct bh_event event, bool tamper)
{
    struct bh_record record = { .verb = bh_event_names[event.kind] };
    struct bh_buf json, decisions;

    event.now_ns = 1000 + w->seq;
    event.seq = w->seq;
    assert_int_equal(bh_state_step(&w->state, &event, &w->step), BH_OK);
    bh_buf_init(&json, 1 << 20);
    bh_buf_init(&decisions, 1 << 20);
    bh_codec_put_event(&json, &event);
    bh_codec_put_decisions(&decisions, w->step.decisions, w->step.decision_count);
    record.ev_json = bh_buf_text(&json);
    record.do_json = w->step.decision_count && !tamper ? bh_buf_text(&decisions) : NULL;
    put_record(w, &record);
    bh_buf_fini(&json);
    bh_buf_fini(&decisions);
}

static void
put_snapshot(struct writer *w, bool tamper)
{
    struct bh_record record = { .verb = "snapshot", .obj = { .id = w->seq } };

    bh_state_snapshot_type(record.obj.type);
    bh_state_digest(&w->state, &bh_crypto_openssl, record.text);
    record.text[0] ^= tamper;
    put_record(w, &record);
}

static void
put_site(struct writer *w)
{
    struct bh_event sku = { .kind = BH_EV_SKU };

    sku.u.sku = (struct bh_ev_sku){ .sku = { 1 }, .grade = BH_GRADE_B, .model_count = 1 };
    sku.u.sku.models[0] = (struct bh_sku_model){ BH_GPU_H100_80GB, BH_PROFILE_WHOLE.v };
    put_event(w, sku, false);
    put_event(
        w, (struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = { .tenant = { 1 }, .limit = BH_UNLIMITED } },
        false);
    put_event(w, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 }, true } }, false);
    put_event(w,
              (struct bh_event){ .kind = BH_EV_GPU,
                                 .u.gpu = { .gpu = { 1 },
                                            .node = { 1 },
                                            .model = BH_GPU_H100_80GB,
                                            .managed = true,
                                            .mig_capable = true } },
              false);
}

/* Submit a job, which is placed. */
static void
put_job(struct writer *w, bool tamper)
{
    put_event(w,
              (struct bh_event){ .kind = BH_EV_SUBMIT,
                                 .u.submit = { .job = { 1 },
                                               .tenant = { 1 },
                                               .sku = { 1 },
                                               .count = 1,
                                               .priority = BH_PRIORITY_NORMAL } },
              tamper);
    assert_int_equal(w->step.decision_count, 1);
}

static const struct {
    const char *name;
    bool no_decisions, wrong_digest, gap;
    bh_rc rc;
    const char *says, *fails;
} rows[] = {
    { "whole", false, false, false, BH_OK, "snapshots 2, 2 matched", "" },
    { "wrong digest", false, true, false, BH_CONFLICT, "snapshot 6 differs",
      "1 snapshots have another digest" },
    { "decisions taken away", true, false, false, BH_CONFLICT, "snapshot 6 differs", "snapshots" },
    { "a record is missing", false, false, true, BH_CONFLICT, "", "record 4 is missing" },
};

static void
tells_a_whole_journal_from_others(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct writer *w = malloc(sizeof *w);
        struct bh_err err = { 0 };
        char *said = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&said, &length);

        assert_non_null(w);
        assert_non_null(out);
        open_writer(w);
        put_site(w);
        w->seq += rows[i].gap;
        put_snapshot(w, false);
        put_job(w, rows[i].no_decisions);
        put_snapshot(w, rows[i].wrong_digest);
        BH_CHECK_EQ(rows[i].name, bh_journal_replay(w->path, NULL, out, &err), rows[i].rc);
        fclose(out);
        BH_CHECK(rows[i].name, strstr(said, rows[i].says) != NULL);
        BH_CHECK(rows[i].name, strstr(err.msg, rows[i].fails) != NULL);
        free(said);
        close_writer(w);
        free(w);
    }
    BH_CHECK_DONE();
}

/* One GPU: job 1 runs without a limit, job 2 waits for it. */
static void
what_would_have_been(void **state)
{
    static const struct {
        const char *name;
        struct bh_journal_options options;
        bh_rc rc;
        const char *says, *fails;
    } cases[] = {
        { "cancel",
          { UINT64_MAX, "cancel=1" },
          BH_OK,
          "job 2 acme earlier before: in 1d00h after: in 0s",
          "" },
        { "drain", { UINT64_MAX, "drain=GPU-1" }, BH_OK, "job 2 acme never before: in 1d", "" },
        { "a node", { UINT64_MAX, "drain=n1" }, BH_OK, "job 2 acme never", "" },
        { "a limit", { UINT64_MAX, "limit=acme:0.5" }, BH_OK, "job 2 acme never", "" },
        { "a guarantee", { UINT64_MAX, "guarantee=acme:1" }, BH_OK, "changes   0", "" },
        { "before job 2 came", { 4, "cancel=1" }, BH_OK, "job 1 acme cancelled", "" },
        { "no such job", { UINT64_MAX, "cancel=7" }, BH_NOT_FOUND, "", "unknown_job" },
        { "no such node", { UINT64_MAX, "drain=n2" }, BH_NOT_FOUND, "", "n2" },
        { "no such tenant", { UINT64_MAX, "limit=nobody:1" }, BH_NOT_FOUND, "", "nobody" },
        { "no such change", { UINT64_MAX, "hope=1" }, BH_INVALID, "", "Known are" },
    };
    static const struct bh_name_row names[] = { { BH_NAME_TENANT, 1, "acme", false },
                                                { BH_NAME_NODE, 1, "n1", false },
                                                { BH_NAME_GPU, 1, "GPU-1", false } };
    struct writer *w = malloc(sizeof *w);

    assert_non_null(w);
    open_writer(w);
    assert_int_equal(w->store.ops->begin(w->store.self, &w->err), BH_OK);
    for (size_t i = 0; i < BH_COUNT(names); i++)
        assert_int_equal(w->store.ops->put_name(w->store.self, &names[i], &w->err), BH_OK);
    assert_int_equal(w->store.ops->commit(w->store.self, &w->err), BH_OK);
    put_site(w);
    put_job(w, false);
    put_event(w,
              (struct bh_event){ .kind = BH_EV_SUBMIT,
                                 .u.submit = { .job = { 2 },
                                               .tenant = { 1 },
                                               .sku = { 1 },
                                               .count = 1,
                                               .priority = BH_PRIORITY_NORMAL } },
              false);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };
        char *said = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&said, &length);

        assert_non_null(out);
        BH_CHECK_EQ(cases[i].name, bh_journal_replay(w->path, &cases[i].options, out, &err), cases[i].rc);
        fclose(out);
        BH_CHECK(cases[i].name, strstr(said, cases[i].says));
        BH_CHECK(cases[i].name, strstr(err.msg, cases[i].fails));
        if (!strstr(said, cases[i].says))
            print_message("# %s\n", said);
        free(said);
    }
    close_writer(w);
    free(w);
    BH_CHECK_DONE();
}

static void
a_store_that_is_not_there(void **state)
{
    struct bh_err err;

    assert_int_equal(bh_journal_replay("/nowhere/bulkhead.db", NULL, stdout, &err), BH_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tells_a_whole_journal_from_others),
    cmocka_unit_test(what_would_have_been),
    cmocka_unit_test(a_store_that_is_not_there),
};
BH_TEST_MAIN(tests)
