/* Which users the owner lets into a running job, and the records of it. alice and dave develop in one tenant,
 * bob in another; oscar operates and erin administers acme.  Job 1 is alice's, and waits. */

#include "daemon/batch/batch.h"
#include "daemon/fixture/fixture_test.h"

#include <string.h>

#include "daemon/changes/stream_record.h"
#include "policy/operations.h"

static const char site_text[] =
    "tenants:\n"
    "  - {name: acme}\n"
    "  - {name: acme/vision}\n"
    "  - {name: other}\n"
    "skus:\n"
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "gpus: [{uuid: all, managed: true}]\n"
    "principals:\n"
    "  - {name: alice, uid: 2001}\n"
    "  - {name: bob, uid: 2002}\n"
    "  - {name: dave, uid: 2003}\n"
    "  - {name: erin, uid: 2004}\n"
    "  - {name: oscar, uid: 2005}\n"
    "bindings:\n"
    "  - {role: developer, principal: alice, tenant: acme/vision}\n"
    "  - {role: developer, principal: dave, tenant: acme/vision}\n"
    "  - {role: developer, principal: bob, tenant: other}\n"
    "  - {role: operator, principal: oscar, tenant: acme}\n"
    "  - {role: admin, principal: erin, tenant: acme}\n";

static const struct submission alices = { "alice", "acme/vision", "small", NULL, 0, 1 };

/* Rights are checked before the state of a pending job: BH_CONFLICT means that the caller may. */
static const struct {
    const char *name, *who, *scopes;
    bh_rc rc;
} cases[] = {
    { "who submitted it", "alice", NULL, BH_CONFLICT },
    { "his token that names it", "alice", "job.view job.exec", BH_CONFLICT },
    { "his token that does not", "alice", "job.view job.cancel", BH_DENIED },
    { "who develops in the same tenant", "dave", NULL, BH_DENIED },
    { "who develops in another", "bob", NULL, BH_DENIED },
    { "who operates the tenant", "oscar", NULL, BH_DENIED },
    { "who administers it", "erin", NULL, BH_CONFLICT },
    { "his token without the verb for others' jobs", "erin", "job.exec", BH_DENIED },
};

static void
only_who_may_goes_in(void **state)
{
    static const enum bh_operation ops[] = { BH_OP_JOB_EXEC, BH_OP_JOB_ATTACH, BH_OP_JOB_FORWARD };
    static const struct bh_stream_request request;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_text), BH_OK);
    assert_int_equal(fixture_submit(&f, alices), BH_OK);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        for (size_t op = 0; op < BH_COUNT(ops); op++) {
            struct bh_command command = {
                .op = ops[op], .job = { 1 }, .stream = &request, .caller = caller_named(&f, cases[i].who)
            };
            const uint64_t *noted = cases[i].rc == BH_OK ? &f.core.journal.next_seq : &f.core.refusals.seen;
            uint64_t before = *noted;

            command.caller.subject.scopes = cases[i].scopes;
            BH_CHECK_EQ(cases[i].name, fixture_run(&f, &command), cases[i].rc);
            BH_CHECK_EQ(cases[i].name, *noted, before + 1);
        }
    }
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static bool
count_one(void *self, const struct bh_document_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static uint32_t
open_streams(struct fixture *f)
{
    const struct bh_document_filter all = { .kind = BH_DOCUMENT_STREAM };
    uint32_t count = 0;

    assert_int_equal(f->core.store.ops->list_documents(f->core.store.self, &all, count_one, &count, &f->err),
                     BH_OK);
    return count;
}

/* What a daemon left open that was killed is ended by the next start, once. */
static void
what_was_left_open_is_ended(void **state)
{
    const struct bh_document_row row = { .kind = BH_DOCUMENT_STREAM,
                                         .key = "7",
                                         .version = 1,
                                         .principal_id = 1,
                                         .value = "{\"job\":1,\"tenant\":2,\"verb\":\"job.exec\"}" };
    struct fixture f;
    uint64_t records;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_text), BH_OK);
    assert_int_equal(bh_core_begin(&f.core, &f.err), BH_OK);
    assert_int_equal(f.core.store.ops->put_document(f.core.store.self, &row, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(open_streams(&f), 1);
    for (int start = 0; start < 2; start++) {
        records = f.core.journal.next_seq;
        assert_int_equal(bh_stream_record_lost(&f.core, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        assert_int_equal(open_streams(&f), 0);
        assert_int_equal(f.core.journal.next_seq, records + (start == 0));
    }
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_who_may_goes_in),
    cmocka_unit_test(what_was_left_open_is_ended),
};

BH_TEST_MAIN(tests)
