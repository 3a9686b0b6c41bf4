#include "daemon/site_apply.h"

#include "api/revision.h"
#include "base/slice.h"
#include "daemon/fixture_test.h"

/* `site_yaml` with something more under one of its lists; a list of the same name later in a
 * YAML text would be a second key. */
#define SITE(bindings, principals, sku, tenant, rest)                                    \
    "tenants:\n"                                                                         \
    "  - {name: acme, kind: organization}\n"                                             \
    "  - {name: acme/vision, kind: department" tenant "}\n"                              \
    "skus:\n"                                                                            \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]" sku "}\n" \
    "principals: [{name: alice, uid: 2001}" principals "]\n"                             \
    "bindings: [{role: developer, principal: alice, tenant: acme/vision}" bindings "]\n" \
    "gpus: [{uuid: all, managed: true}]\n" rest
static const char plain_site[] = SITE("", ", {name: bob, uid: 2002}", "", "", "");

/* ---- the record ---- */

struct leaf {
    char text[BH_RECORD_BYTES_MAX + 1];
    uint64_t seq;
};

static bool
keep_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct leaf *kept = self;

    if (!memmem(leaf, length, "\"verb\":\"site.apply\"", 19) || !memmem(leaf, length, "\"text\"", 6))
        return true;
    memcpy(kept->text, leaf, length);
    kept->text[length] = '\0';
    kept->seq = seq;
    return true;
}

/* The last record of a file that came into force. */
static const struct leaf *
last_leaf(struct fixture *f)
{
    static struct leaf leaf;

    leaf = (struct leaf){ .seq = 0 };
    assert_int_equal(f->core.store.ops->list_records(f->core.store.self, 0, INT64_MAX, keep_leaf,
                                                     &leaf, &f->err), BH_OK);
    return &leaf;
}

/* What is sealed in it, opened. */
static const char *
note_of(struct fixture *f, const struct leaf *leaf)
{
    struct bh_slice list, item, whole = { leaf->text, strlen(leaf->text) };
    size_t cursor = 0;
    struct bh_buf note;
    const char *copy;

    bh_buf_init(&note, 1 << 20);
    bh_buf_puts(&note, "");
    if (bh_slice_get(whole, "sealed", &list))
        while (bh_slice_next_item(list, &cursor, &item))
            assert_int_equal(bh_keys_unseal(f->core.ring.keys, item, &note, &f->err), BH_OK);
    copy = note.length ? bh_arena_strdup(f->arena, bh_buf_text(&note)) : "";
    bh_buf_fini(&note);
    return copy;
}

static bh_rc
apply_as(struct fixture *f, const char *yaml, struct bh_command how)
{
    struct bh_command command = apply_command(f, yaml);

    command.dry_run = how.dry_run;
    command.prune = how.prune;
    command.guarded = how.guarded;
    command.revision = how.revision;
    return run(f, &command);
}

/* ---- differences ---- */

static void
what_a_file_changes_is_shown_and_recorded(void **state)
{
    static const struct {
        const char *name, *site, *line;
    } cases[] = {
        { "an administrator of everything",
          SITE(", {role: admin, principal: bob, tenant: '*'}", ", {name: bob, uid: 2002}", "", "", ""),
          "bindings[role=admin,principal=bob,tenant=*]: added\n" },
        { "a mount of everything",
          SITE("", ", {name: bob, uid: 2002}", "", "", "mounts: [{path: /home, tenant: '*'}]\n"),
          "mounts[path=/home,tenant=*]: added\n" },
        { "another's uid", SITE("", ", {name: bob, uid: 2003}", "", "", ""),
          "principals[bob].uid: 2002 -> 2003\n" },
        { "a policy", SITE("", ", {name: bob, uid: 2002}", "", ", policy: {max_pieces: 2}", ""),
          "tenants[acme/vision].policy.max_pieces: (absent) -> 2\n" },
        { "a SKU's memory", SITE("", ", {name: bob, uid: 2002}", ", memory: 20Gi", "", ""),
          "skus[small].memory: (absent) -> 20Gi\n" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_command dry = { .dry_run = true }, wet = { .prune = false };
        const struct leaf *leaf;
        struct fixture f;

        setup(&f);
        assert_int_equal(apply(&f, plain_site), BH_OK);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, dry), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.changes.lines, cases[i].line);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, wet), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.changes.lines, cases[i].line);
        leaf = last_leaf(&f);
        BH_CHECK_STR(cases[i].name, note_of(&f, leaf), cases[i].line);
        BH_CHECK("not in clear", !strstr(leaf->text, "bob") && !strstr(leaf->text, "2003")
                                     && !strstr(leaf->text, "20Gi"));
        BH_CHECK_EQ("and nothing is left to do", apply_as(&f, cases[i].site, dry), BH_OK);
        BH_CHECK_EQ("and nothing is left to do", f.answer.changes.count, 0);
        teardown(&f);
    }
    BH_CHECK_DONE();
}

/* More than a record bears: what is there, how much is not, and the digest of all. */
static void
a_long_difference_is_cut_in_the_record_alone(void **state)
{
    struct bh_command wet = { .prune = false };
    const char *note;
    struct bh_buf yaml;
    struct fixture f;
    uint32_t lines = 0;
    char digest[80];

    setup(&f);
    bh_buf_init(&yaml, 1 << 20);
    bh_buf_puts(&yaml, "principals:\n");
    for (uint32_t i = 0; i < 1000; i++)
        bh_buf_printf(&yaml, "  - {name: person-with-a-long-name-%u, uid: %u}\n", i, 5000 + i);
    assert_int_equal(apply_as(&f, bh_buf_text(&yaml), wet), BH_OK);
    BH_CHECK_EQ("all are counted", f.answer.changes.count, 1000);
    BH_CHECK_EQ("and in the answer", f.answer.changes.listed, 1000);
    note = note_of(&f, last_leaf(&f));
    for (const char *at = note; (at = strchr(at, '\n')); at++)
        lines++;
    BH_CHECK("many are in the record", lines > 150 && lines < 1000);
    snprintf(digest, sizeof digest, "%u more; sha256 of all 1000 lines: ", 1000 - (lines - 1));
    BH_CHECK("and how many are not", strstr(note, digest));
    BH_CHECK_EQ("the store is whole", open_core((close_core(&f), &f)), BH_OK);
    bh_buf_fini(&yaml);
    teardown(&f);
    BH_CHECK_DONE();
}

/* ---- revisions ---- */

static bool
count_revision(void *self, const struct bh_document_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static uint32_t
revisions(struct fixture *f)
{
    const struct bh_document_filter filter = { BH_DOCUMENT_REVISION, 0 };
    uint32_t count = 0;

    assert_int_equal(f->core.store.ops->list_documents(f->core.store.self, &filter, count_revision,
                                                       &count, &f->err), BH_OK);
    return count;
}

static void
a_revision_is_the_record_that_applied_it(void **state)
{
    struct bh_command wet = { .prune = false };
    struct bh_revision revision;
    const char *text = "";
    struct fixture f;
    uint64_t first;

    setup(&f);
    assert_int_equal(apply(&f, plain_site), BH_OK);
    first = f.answer.revision;
    BH_CHECK_EQ("its number", first, last_leaf(&f)->seq);
    assert_int_equal(apply(&f, plain_site), BH_OK);
    BH_CHECK_EQ("the same file is the same revision", f.answer.revision, first);
    assert_int_equal(apply_as(&f, site_yaml, wet), BH_OK);
    BH_CHECK("another", f.answer.revision > first);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    BH_CHECK_EQ("after a restart", bh_catalog_revision(f.core.catalog), last_leaf(&f)->seq);
    BH_CHECK_EQ("both are kept", revisions(&f), 2);
    assert_int_equal(bh_revision_read(&f.core.store, first, f.arena, &revision, &f.err), BH_OK);
    assert_int_equal(bh_revision_text(&f.core.store, &revision, f.arena, &text, &f.err), BH_OK);
    BH_CHECK("with their texts", strstr(text, "\"bob\""));
    teardown(&f);
    BH_CHECK_DONE();
}

static void
the_slower_of_two_editors_is_told(void **state)
{
    static const char faster[] = SITE("", ", {name: bob, uid: 2009}", "", "", "");
    struct bh_command guarded = { .guarded = true };
    struct fixture f;

    setup(&f);
    BH_CHECK_EQ("none is in force yet", apply_as(&f, plain_site, guarded), BH_OK);
    guarded.revision = f.answer.revision;
    BH_CHECK_EQ("the faster", apply_as(&f, faster, guarded), BH_OK);
    BH_CHECK_EQ("the slower", apply_as(&f, site_yaml, guarded), BH_CONFLICT);
    BH_CHECK("what is in force", strstr(f.err.msg, "the site file is at revision "));
    BH_CHECK("since when", strstr(f.err.msg, ", applied 20"));
    BH_CHECK("what to do", strstr(f.err.hint, "site diff"));
    guarded.dry_run = true;
    BH_CHECK_EQ("also when it is tried", apply_as(&f, site_yaml, guarded), BH_CONFLICT);
    BH_CHECK("nothing changed", strstr(bh_catalog_site_text(f.core.catalog), "2009"));
    teardown(&f);
    BH_CHECK_DONE();
}

/* The oldest go with their texts, but not a text that a later revision has, too. */
static void
revisions_are_bounded(void **state)
{
    struct bh_revision revision;
    uint64_t first, second;
    struct fixture f;
    const char *text;

    setup(&f);
    assert_int_equal(apply(&f, "principals: [{name: a, uid: 1}]\n"), BH_OK);
    first = f.answer.revision;
    assert_int_equal(apply(&f, "principals: [{name: a, uid: 2}]\n"), BH_OK);
    second = f.answer.revision;
    assert_int_equal(bh_revision_read(&f.core.store, first, f.arena, &revision, &f.err), BH_OK);
    for (uint32_t i = 0; i < BH_REVISIONS_MAX; i++) {
        char yaml[64];

        snprintf(yaml, sizeof yaml, "principals: [{name: a, uid: %u}]\n", i == 7 ? 1 : 100 + i);
        assert_int_equal(apply(&f, yaml), BH_OK);
        bh_arena_reset(f.arena);
    }
    BH_CHECK_EQ("so many", revisions(&f), BH_REVISIONS_MAX);
    BH_CHECK_EQ("its text is a later one's, too",
                bh_revision_text(&f.core.store, &revision, f.arena, &text, &f.err), BH_OK);
    BH_CHECK_EQ("the first went", bh_revision_read(&f.core.store, first, f.arena, &revision, &f.err),
                BH_NOT_FOUND);
    BH_CHECK_EQ("and the second",
                bh_revision_read(&f.core.store, second, f.arena, &revision, &f.err), BH_NOT_FOUND);
    teardown(&f);
    BH_CHECK_DONE();
}

/* ---- removals ---- */

static void
what_has_something_is_removed_on_demand_alone(void **state)
{
    static const char without[] = "tenants: [{name: acme, kind: organization}]\n"
                                  "gpus: [{uuid: all, managed: true}]\n";
    struct bh_command dry = { .dry_run = true }, wet = { .prune = false }, prune = { .prune = true };
    struct bh_command token = { .op = BH_OP_TOKEN_CREATE,
                                .token = &(struct bh_token_request){ .note = "" } };
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL };
    struct fixture f;
    uint64_t seq;

    setup(&f);
    assert_int_equal(apply(&f, site_yaml), BH_OK);
    token.caller = caller_named(&f, "alice");
    assert_int_equal(run(&f, &token), BH_OK);
    assert_int_equal(submit(&f, alice_small), BH_OK);
    cancel.job = f.answer.job;
    BH_CHECK_EQ("a tenant, a SKU, a principal", apply_as(&f, without, dry), BH_CONFLICT);
    BH_CHECK_STR("not while the engine needs them", f.err.msg, "acme/vision: refused (tenant_busy)");
    cancel.caller = caller_named(&f, "alice");
    assert_int_equal(run(&f, &cancel), BH_OK);
    seq = f.core.journal.next_seq;
    BH_CHECK_EQ("tried", apply_as(&f, without, dry), BH_OK);
    BH_CHECK_EQ("not recorded", f.core.journal.next_seq, seq);
    BH_CHECK_STR("listed", f.answer.removes,
                 "tenants[acme/vision/train]: 1 job\n"
                 "tenants[acme/vision]: 1 tenant below\n"
                 "principals[alice]: 1 job, 1 token\n");
    BH_CHECK_EQ("refused", apply_as(&f, without, wet), BH_CONFLICT);
    BH_CHECK("says what", strstr(f.err.msg, "3 names would be removed that have something: "
                                            "tenants[acme/vision/train]: 1 job..."));
    BH_CHECK("says how", strstr(f.err.hint, "--prune"));
    BH_CHECK("still there", bh_catalog_find(f.core.catalog, BH_NAME_TENANT, "acme/vision") != 0);
    BH_CHECK_EQ("pruned", apply_as(&f, without, prune), BH_OK);
    BH_CHECK("in the answer", strstr(f.answer.removes, "principals[alice]: 1 job, 1 token\n"));
    BH_CHECK("in the record", strstr(note_of(&f, last_leaf(&f)),
                                     "removed principals[alice]: 1 job, 1 token\n"));
    teardown(&f);
    BH_CHECK_DONE();
}

static void
what_has_nothing_is_just_removed(void **state)
{
    struct bh_command wet = { .prune = false };
    struct fixture f;

    setup(&f);
    assert_int_equal(apply(&f, plain_site), BH_OK);
    BH_CHECK_EQ("bob", apply_as(&f, SITE("", "", "", "", ""), wet), BH_OK);
    BH_CHECK_STR("leaves nothing", f.answer.removes, "");
    BH_CHECK_STR("is a change", f.answer.changes.lines,
                 "principals[bob]: removed {\"name\":\"bob\",\"uid\":2002}\n");
    teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_file_changes_is_shown_and_recorded),
    cmocka_unit_test(a_long_difference_is_cut_in_the_record_alone),
    cmocka_unit_test(a_revision_is_the_record_that_applied_it),
    cmocka_unit_test(the_slower_of_two_editors_is_told),
    cmocka_unit_test(revisions_are_bounded),
    cmocka_unit_test(what_has_something_is_removed_on_demand_alone),
    cmocka_unit_test(what_has_nothing_is_just_removed),
};
BH_TEST_MAIN(tests)
