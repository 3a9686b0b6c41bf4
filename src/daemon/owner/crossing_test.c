/* What the owner refuses to those who reach for another tenant's, and to those who would grant
 * what they do not hold.  bob develops in other; erin is an admin of acme alone; carol of the
 * whole site; job 1 and token T are alice's. */

#include "daemon/fixture/fixture_test.h"

#include <string.h>

#include "base/slice.h"
#include "policy/operations.h"

#define TENANTS                                                                                              \
    "tenants:\n"                                                                                             \
    "  - {name: acme}\n"                                                                                     \
    "  - {name: acme/vision}\n"                                                                              \
    "  - {name: other}\n"                                                                                    \
    "skus:\n"                                                                                                \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"                          \
    "gpus: [{uuid: all, managed: true}]\n"
#define PEOPLE                                                                                               \
    "principals:\n"                                                                                          \
    "  - {name: alice, uid: 2001}\n"                                                                         \
    "  - {name: bob, uid: 2002}\n"                                                                           \
    "  - {name: carol, uid: 2003}\n"                                                                         \
    "  - {name: erin, uid: 2004}\n"
#define ROLES                                                                                                \
    "bindings:\n"                                                                                            \
    "  - {role: developer, principal: alice, tenant: acme/vision}\n"                                         \
    "  - {role: developer, principal: bob, tenant: other}\n"                                                 \
    "  - {role: admin, principal: carol, tenant: '*'}\n"                                                     \
    "  - {role: admin, principal: erin, tenant: acme}\n"

static const char whole_site[] = TENANTS PEOPLE ROLES;

static const struct submission alices = { "alice", "acme/vision", "small", NULL, 0, 1 };

static bh_rc
make_token(struct fixture *f, const char *who, const char *own_scopes, const struct bh_token_request *request)
{
    struct bh_command command = { .op = BH_OP_TOKEN_CREATE,
                                  .caller = caller_named(f, who),
                                  .token = request };

    command.caller.subject.scopes = own_scopes;
    return fixture_run(f, &command);
}

static void
crossing_begin(struct fixture *f)
{
    fixture_setup(f);
    assert_int_equal(fixture_apply(f, whole_site), BH_OK);
    assert_int_equal(fixture_submit(f, alices), BH_OK);
    assert_int_equal(make_token(f, "alice", NULL, &(struct bh_token_request){ .note = "" }), BH_OK);
}

static bh_rc
apply_as(struct fixture *f, const char *who, const char *scopes, const char *yaml, bool dry_run)
{
    struct bh_site *site = bh_arena_alloc(f->arena, sizeof *site);
    struct bh_command command = {
        .op = BH_OP_SITE_APPLY, .caller = caller_named(f, who), .site = site, .dry_run = dry_run
    };
    struct bh_buf json;

    command.caller.subject.scopes = scopes;
    bh_buf_init(&json, 1 << 20);
    assert_int_equal(bh_yaml_to_json(yaml, strlen(yaml), &json, &f->err), BH_OK);
    assert_int_equal(bh_json_decode(json.bytes, json.length, &bh_site_fields, site, f->arena, &f->err),
                     BH_OK);
    assert_int_equal(bh_site_check(site, &f->err), BH_OK);
    command.text = bh_arena_strdup(f->arena, bh_buf_text(&json));
    command.text_length = strlen(command.text);
    bh_buf_fini(&json);
    return fixture_run(f, &command);
}

/* ---- another tenant's ---- */

static const struct bh_document_put alices_account = { .row = { BH_DOCUMENT_ACCOUNT, "1", 0, 1, "{}" },
                                                       .blind = true };

static const struct bh_accounts_change alices_change = { .verb = "account.change",
                                                         .puts = &alices_account,
                                                         .put_count = 1 };

static bh_rc
crossing_connect(struct fixture *f, enum bh_operation op, const char *token_id)
{
    static const struct bh_ev_move move;
    static const struct bh_stream_request stream;
    static const struct bh_shred_request shred = { "acme/vision", "all", "because", NULL };
    static const struct bh_cordon_request cordon = { .target = "n1" };
    struct bh_command command = { .op = op,
                                  .caller = caller_named(f, "bob"),
                                  .job = { 1 },
                                  .move = &move,
                                  .token_id = token_id,
                                  .shred = &shred,
                                  .stream = &stream,
                                  .cordon = &cordon };

    if (bh_operation_get(op)->scope == BH_SCOPE_OWN || strcmp(bh_operation_get(op)->verb, "account.any") == 0)
        command.accounts = &alices_change;
    if (op == BH_OP_JOB_SUBMIT)
        return fixture_submit(f, (struct submission){ "bob", "acme/vision", "small", NULL, 0, 1 });
    if (op == BH_OP_SITE_APPLY)
        return apply_as(f, "bob", NULL, whole_site, false);
    if (op == BH_OP_TOKEN_CREATE)
        return make_token(f, "bob", NULL, &(struct bh_token_request){ .principal = "alice" });
    return fixture_run(f, &command);
}

static bool
keep_verb(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct bh_slice verb;

    assert_true(bh_slice_get((struct bh_slice){ leaf, length }, "verb", &verb));
    assert_true(bh_slice_str(verb, self, 40));
    return true;
}

static void
every_change_of_anothers_is_refused_and_recorded(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        uint64_t records;
        struct fixture f;
        const char *token;
        char verb[40] = "";
        bh_rc rc;

        if (row->kind != BH_OPERATION_MUTATE || row->scope == BH_SCOPE_NOBODY)
            continue; /* reads; and the door, src/accounts */
        crossing_begin(&f);
        token = f.answer.token_id;
        records = f.core.journal.next_seq;
        rc = crossing_connect(&f, (enum bh_operation)op, token);
        BH_CHECK_EQ(row->name, rc, op == BH_OP_TOKEN_REVOKE ? BH_NOT_FOUND : BH_DENIED);
        BH_CHECK_EQ(row->name, f.core.journal.next_seq, records + 1);
        BH_CHECK_EQ(row->name, f.core.next_job, 2);
        assert_int_equal(
            f.core.store.ops->list_records(f.core.store.self, records, records, keep_verb, verb, &f.err),
            BH_OK);
        BH_CHECK_STR(row->name, verb, bh_operation_recorded_verb((enum bh_operation)op));
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* ---- granting ---- */

static void
a_site_file_gives_no_role_that_its_sender_does_not_hold(void **state)
{
    static const struct {
        const char *name, *who, *scopes, *yaml, *says;
        bh_rc rc;
    } cases[] = {
        { "the same file again", "carol", "site.apply", TENANTS PEOPLE ROLES, "", BH_OK },
        { "an admin of the site gives what he has", "carol", NULL,
          TENANTS PEOPLE ROLES "  - {role: admin, principal: bob, tenant: '*'}\n", "", BH_OK },
        { "his token only what it names", "carol", "site.apply",
          TENANTS PEOPLE ROLES "  - {role: billing, principal: bob, tenant: '*'}\n",
          "bindings[4] *: you cannot give the role billing there, as you do not hold usage.view", BH_DENIED },
        { "to a group neither", "carol", "site.apply site.view",
          TENANTS PEOPLE ROLES "  - {role: viewer, gid: 500, tenant: acme}\n",
          "bindings[4] acme: you cannot give the role viewer there, as you do not hold job.view", BH_DENIED },
        { "nor on a tenant that is new", "carol", "site.apply",
          "tenants: [{name: fresh}]\n"
          "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n" PEOPLE
          "bindings: [{role: viewer, principal: bob, tenant: fresh}]\n",
          "bindings[0] fresh: you cannot give the role viewer there, as you do not hold job.view",
          BH_DENIED },
        { "nor by making a principal another Unix user", "carol", "site.apply",
          TENANTS "principals:\n  - {name: alice, uid: 2001}\n  - {name: bob, uid: 2002}\n"
                  "  - {name: carol, uid: 6666}\n  - {name: erin, uid: 2004}\n" ROLES,
          "bindings[2] *: you cannot give the role admin there, as you do not hold job.view", BH_DENIED },
        { "what it names it may give", "carol", "site.apply usage.view tenant.view sku.view",
          TENANTS PEOPLE ROLES "  - {role: billing, principal: bob, tenant: other}\n", "", BH_OK },
        { "an admin of one tenant applies nothing", "erin", NULL,
          TENANTS PEOPLE ROLES "  - {role: admin, principal: erin, tenant: '*'}\n",
          "erin may not use site.apply on the site", BH_DENIED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        for (int dry = 0; dry < 2; dry++) {
            uint64_t records;
            struct fixture f;
            bh_rc rc;

            crossing_begin(&f);
            records = f.core.journal.next_seq;
            rc = apply_as(&f, cases[i].who, cases[i].scopes, cases[i].yaml, dry);
            BH_CHECK_EQ(cases[i].name, rc, cases[i].rc);
            if (rc == BH_DENIED) {
                BH_CHECK_STR(cases[i].name, f.err.msg, cases[i].says);
                BH_CHECK_EQ(cases[i].name, f.core.journal.next_seq, records + 1);
            }
            fixture_teardown(&f);
        }
    }
    BH_CHECK_DONE();
}

static void
a_token_gives_no_more_than_its_maker_holds(void **state)
{
    static const struct {
        const char *name, *who, *own, *principal, *scopes;
        bh_rc rc;
    } cases[] = {
        { "for oneself, all", "alice", NULL, NULL, NULL, BH_OK },
        { "with a token, what it names", "alice", "token.create job.view", NULL, "job.view", BH_OK },
        { "and no more", "alice", "token.create job.view", NULL, "job.submit", BH_DENIED },
        { "nor by naming nothing", "alice", "token.create job.view", NULL, NULL, BH_DENIED },
        { "nor by naming it in an empty text", "alice", "token.create job.view", NULL, "", BH_DENIED },
        { "for another, by the site's admin", "carol", NULL, "alice", NULL, BH_OK },
        { "not by an admin of a tenant", "erin", NULL, "alice", NULL, BH_DENIED },
        { "not by his token that holds less", "carol", "token.create token.any job.view", "alice",
          "job.view job.submit", BH_DENIED },
        { "by one that holds as much", "carol", "token.create token.any job.view", "alice", "job.view",
          BH_OK },
        { "for root, by nobody", "carol", NULL, "root", NULL, BH_NOT_FOUND },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_token_request request = { .scopes = cases[i].scopes,
                                            .note = "",
                                            .principal = cases[i].principal };
        struct fixture f;

        crossing_begin(&f);
        BH_CHECK_EQ(cases[i].name, make_token(&f, cases[i].who, cases[i].own, &request), cases[i].rc);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_change_of_anothers_is_refused_and_recorded),
    cmocka_unit_test(a_site_file_gives_no_role_that_its_sender_does_not_hold),
    cmocka_unit_test(a_token_gives_no_more_than_its_maker_holds),
};
BH_TEST_MAIN(tests)
