#include "daemon/batch/batch.h"
#include "daemon/owner/dispatch.h"
#include "daemon/site/site_apply.h"

#include "api/documents/revision.h"
#include "base/slice.h"
#include "daemon/fixture/audited_test.h"

/* `site_yaml` with something more under one of its lists; a list of the same name later in a
 * YAML text would be a second key. */
#define SITE(bindings, principals, sku, tenant, rest)                                                        \
    "tenants:\n"                                                                                             \
    "  - {name: acme, kind: organization}\n"                                                                 \
    "  - {name: acme/vision, kind: department" tenant "}\n"                                                  \
    "skus:\n"                                                                                                \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]" sku "}\n"                   \
    "principals: [{name: alice, uid: 2001}" principals "]\n"                                                 \
    "bindings: [{role: developer, principal: alice, tenant: acme/vision}" bindings "]\n"                     \
    "gpus: [{uuid: all, managed: true}]\n" rest
static const char plain_site[] = SITE("", ", {name: bob, uid: 2002}", "", "", "");

/* ---- the record ---- */

struct leaf {
    char text[BH_RECORD_BYTES_MAX + 1];
    uint64_t seq;
};

static bool
site_apply_store_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
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
    assert_int_equal(f->core.store.ops->list_records(f->core.store.self, 0, INT64_MAX, site_apply_store_leaf,
                                                     &leaf, &f->err),
                     BH_OK);
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
    return fixture_run(f, &command);
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
        { "a policy", SITE("", ", {name: bob, uid: 2002}", "", ", policy: {max_partitions: 2}", ""),
          "tenants[acme/vision].policy.max_partitions: (absent) -> 2\n" },
        { "a SKU's memory", SITE("", ", {name: bob, uid: 2002}", ", memory: 20Gi", "", ""),
          "skus[small].memory: (absent) -> 20Gi\n" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_command dry = { .dry_run = true }, wet = { .prune = false };
        const struct leaf *leaf;
        struct fixture f;

        fixture_setup(&f);
        assert_int_equal(fixture_apply(&f, plain_site), BH_OK);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, dry), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.changes.lines, cases[i].line);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, wet), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.changes.lines, cases[i].line);
        leaf = last_leaf(&f);
        BH_CHECK_STR(cases[i].name, note_of(&f, leaf), cases[i].line);
        BH_CHECK("not in clear",
                 !strstr(leaf->text, "bob") && !strstr(leaf->text, "2003") && !strstr(leaf->text, "20Gi"));
        BH_CHECK_EQ("and nothing is left to do", apply_as(&f, cases[i].site, dry), BH_OK);
        BH_CHECK_EQ("and nothing is left to do", f.answer.changes.count, 0);
        BH_CHECK_EQ("the file in force", apply_as(&f, cases[i].site, wet), BH_OK);
        BH_CHECK_STR("says so", note_of(&f, last_leaf(&f)), "no change\n");
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

struct deeds {
    uint32_t applies, changes, of_another_request;
    char objects[400], request[33];
};

static bool
count_deed(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct deeds *deeds = self;
    struct bh_slice whole = { leaf, length }, object, value;
    char verb[40] = "", type[20] = "", request[33] = "";
    size_t used = strlen(deeds->objects);

    if (!bh_slice_get(whole, "verb", &value) || !bh_slice_str(value, verb, sizeof verb)
        || strncmp(verb, "site.", 5) != 0)
        return true;
    if (bh_slice_get(whole, "req", &value) && bh_slice_str(value, request, sizeof request)
        && !deeds->request[0])
        memcpy(deeds->request, request, sizeof request);
    deeds->of_another_request += strcmp(request, deeds->request) != 0;
    if (strcmp(verb, "site.apply") == 0) {
        deeds->applies++;
        return true;
    }
    deeds->changes++;
    if (bh_slice_get(whole, "obj", &object) && bh_slice_get(object, "type", &value)
        && bh_slice_str(value, type, sizeof type))
        snprintf(deeds->objects + used, sizeof deeds->objects - used, "%s ", type);
    return true;
}

/* One file is one site.apply; what it changes says what it is. */
static void
one_deed_is_one_record(void **state)
{
    struct deeds deeds = { 0 };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, plain_site), BH_OK);
    assert_int_equal(
        f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, count_deed, &deeds, &f.err), BH_OK);
    BH_CHECK_EQ("one deed", deeds.applies, 1);
    BH_CHECK_STR("its changes", deeds.objects, "scheduling sku tenant tenant ");
    BH_CHECK_EQ("by one request", deeds.of_another_request, 0);
    fixture_teardown(&f);
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

    fixture_setup(&f);
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
    fixture_teardown(&f);
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

    assert_int_equal(
        f->core.store.ops->list_documents(f->core.store.self, &filter, count_revision, &count, &f->err),
        BH_OK);
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

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, plain_site), BH_OK);
    first = f.answer.revision;
    BH_CHECK_EQ("its number", first, last_leaf(&f)->seq);
    assert_int_equal(fixture_apply(&f, plain_site), BH_OK);
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
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
the_slower_of_two_editors_is_refused(void **state)
{
    static const char faster[] = SITE("", ", {name: bob, uid: 2009}", "", "", "");
    struct bh_command guarded = { .guarded = true };
    struct fixture f;

    fixture_setup(&f);
    BH_CHECK_EQ("none is in force yet", apply_as(&f, plain_site, guarded), BH_OK);
    guarded.revision = f.answer.revision;
    BH_CHECK_EQ("the faster", apply_as(&f, faster, guarded), BH_OK);
    BH_CHECK_EQ("the slower", apply_as(&f, site_yaml, guarded), BH_CONFLICT);
    BH_CHECK("what is in force", strstr(f.err.msg, "the site file is at revision "));
    BH_CHECK("since when", strstr(f.err.msg, ", applied 20"));
    BH_CHECK("what to do", strstr(f.err.hint, "site diff"));
    guarded.revision = 0;
    BH_CHECK_EQ("no revision at all", apply_as(&f, site_yaml, guarded), BH_CONFLICT);
    BH_CHECK("has no difference",
             !strstr(f.err.hint, "site diff") && strstr(f.err.hint, "no revision 0 is kept"));
    guarded.dry_run = true;
    BH_CHECK_EQ("also when it is tried", apply_as(&f, site_yaml, guarded), BH_CONFLICT);
    BH_CHECK("nothing changed", strstr(bh_catalog_site_text(f.core.catalog), "2009"));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* So many may come while an auditor reads. */
enum { GOING = BH_REVISIONS_MAX - BH_CLAIMS_REVISIONS_MAX };

/* A revision of its own for each number. */
static struct bh_command
numbered(struct fixture *f, uint32_t number)
{
    char yaml[64];

    snprintf(yaml, sizeof yaml, "principals: [{name: a, uid: %u}]\n", number);
    return apply_command(f, yaml);
}

/* The fixture's own arena, which its settings live in too, is too small for all of them. */
static void
apply_numbers(struct fixture *f, uint32_t first, uint32_t count)
{
    struct bh_arena *own = f->arena;

    f->arena = bh_arena_new(8 << 20);
    for (uint32_t number = first; number < first + count; number++) {
        struct bh_command command = numbered(f, number);

        assert_int_equal(fixture_run(f, &command), BH_OK);
        bh_arena_reset(f->arena);
    }
    bh_arena_free(f->arena);
    f->arena = own;
}

/* Nothing is missing, as the records say. */
static void
check_audit(struct fixture *f, const char *when)
{
    struct bh_arena *own = f->arena;

    f->arena = bh_arena_new(8 << 20);
    BH_CHECK_STR(when, audit(f).differing, "");
    bh_arena_free(f->arena);
    f->arena = own;
}

/* ---- rows that are read after the records ---- */

struct late {
    struct bh_claims *claims;
    uint64_t size; /* records that were read */
};

static bool
read_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct late *late = self;
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    assert_int_equal(bh_claims_read(late->claims, &record, &err), BH_OK);
    late->size = seq + 1;
    return true;
}

static bool
read_late_revision(void *self, const struct bh_document_row *row)
{
    const struct bh_claimed_document claimed = { BH_CLAIMED_REVISION, row->key, row->value };
    struct late *late = self;

    if (strtoull(row->key, NULL, 10) < late->size)
        bh_claims_document(late->claims, &claimed);
    return true;
}

static bool
read_late_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    struct late *late = self;

    bh_claims_text(late->claims, &(struct bh_claimed_text){ digest->bytes, digest->bytes, number, true });
    return true;
}

/* A row that is removed during a read is not in the result. */
static void
go_between_records_and_rows(struct fixture *f)
{
    const struct bh_document_filter filter = { .kind = BH_DOCUMENT_REVISION };
    const struct bh_store *store = &f->core.store;
    struct bh_arena *arena = bh_arena_new(8 << 20);
    struct late late = { .claims = bh_claims_new(arena, f->core.crypto) };
    struct bh_claims_result result;

    assert_int_equal(store->ops->list_records(store->self, 0, INT64_MAX, read_leaf, &late, &f->err), BH_OK);
    apply_numbers(f, 2000, GOING);
    assert_int_equal(store->ops->list_documents(store->self, &filter, read_late_revision, &late, &f->err),
                     BH_OK);
    assert_int_equal(store->ops->list_texts(store->self, 0, read_late_text, &late, &f->err), BH_OK);
    bh_claims_end(late.claims, BH_CLAIMS_TEXTS | BH_CLAIMS_DOCUMENTS | BH_CLAIMS_ENDED, &result);
    BH_CHECK_STR("nothing is missing", result.differing, "");
    BH_CHECK_EQ("those that are wanted", result.documents.good, BH_CLAIMS_REVISIONS_MAX);
    bh_arena_free(arena);
}

/* The second of one batch does not see the first, whose text is that of the oldest. */
static void
come_in_one_batch(struct fixture *f)
{
    struct bh_command again = numbered(f, GOING + 1), other = numbered(f, 3000);

    assert_int_equal(bh_dispatch_run(&f->core, &again, f->arena, &f->answer, &f->err), BH_OK);
    assert_int_equal(bh_dispatch_run(&f->core, &other, f->arena, &f->answer, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    BH_CHECK_EQ("one above the bound", revisions(f), BH_REVISIONS_MAX + 1);
    check_audit(f, "nothing that is wanted went");
    apply_numbers(f, 4000, 1);
    BH_CHECK_EQ("it goes with the next", revisions(f), BH_REVISIONS_MAX);
    check_audit(f, "nor then");
}

/* The oldest go with their texts, but not a text that a later revision has, too; and the auditor
 * wants none of what went. */
static void
revisions_are_bounded(void **state)
{
    struct bh_revision first, shared;
    struct fixture f;
    uint64_t number;
    const char *text;

    fixture_setup(&f);
    apply_numbers(&f, 1, 1);
    assert_int_equal(bh_revision_read(&f.core.store, f.answer.revision, f.arena, &first, &f.err), BH_OK);
    apply_numbers(&f, 2, GOING);
    number = f.answer.revision;
    assert_int_equal(bh_revision_read(&f.core.store, number, f.arena, &shared, &f.err), BH_OK);
    apply_numbers(&f, GOING + 2, BH_REVISIONS_MAX - GOING - 1);
    check_audit(&f, "all are there");
    go_between_records_and_rows(&f);
    check_audit(&f, "the oldest went");
    BH_CHECK_EQ("with their texts", bh_revision_text(&f.core.store, &first, f.arena, &text, &f.err),
                BH_NOT_FOUND);
    come_in_one_batch(&f);
    BH_CHECK_EQ("this went, too", bh_revision_read(&f.core.store, number, f.arena, &first, &f.err),
                BH_NOT_FOUND);
    BH_CHECK_EQ("its text is a later one's, too",
                bh_revision_text(&f.core.store, &shared, f.arena, &text, &f.err), BH_OK);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* ---- removals ---- */

static void
what_has_something_is_removed_on_demand_alone(void **state)
{
    static const char without[] = "tenants: [{name: acme, kind: organization}]\n"
                                  "gpus: [{uuid: all, managed: true}]\n";
    struct bh_command dry = { .dry_run = true }, wet = { .prune = false }, prune = { .prune = true };
    struct bh_command token = { .op = BH_OP_TOKEN_CREATE, .token = &(struct bh_token_request){ .note = "" } };
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL };
    struct fixture f;
    uint64_t seq;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    token.caller = caller_named(&f, "alice");
    assert_int_equal(fixture_run(&f, &token), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    cancel.job = f.answer.job;
    BH_CHECK_EQ("a tenant, a SKU, a principal", apply_as(&f, without, dry), BH_CONFLICT);
    BH_CHECK_STR("not while the engine needs them", f.err.msg,
                 "acme/vision: 1 job of tenants below it, "
                 "which the file leaves out too, must have ended first");
    BH_CHECK("and what to do", strstr(f.err.hint, "`bulkhead ps --tenant acme/vision`"));
    cancel.caller = caller_named(&f, "alice");
    assert_int_equal(fixture_run(&f, &cancel), BH_OK);
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
    BH_CHECK("in the record",
             strstr(note_of(&f, last_leaf(&f)), "removed principals[alice]: 1 job, 1 token\n"));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

#define SMALL "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"

/* A leaf goes with its jobs, and the list says so; a SKU never goes from under a job. */
static void
what_happens_to_jobs_is_said_before(void **state)
{
    static const char without_sku[] = "tenants: [{name: acme, kind: organization}, {name: "
                                      "acme/vision, kind: department}, {name: acme/vision/train}]\n"
                                      "principals: [{name: alice, uid: 2001}]\n"
                                      "gpus: [{uuid: all, managed: true}]\n";
    static const char without_train[] = SITE("", "", "", "", "");
    static const char without_both[] =
        "tenants: [{name: acme, kind: organization}, {name: acme/vision, kind: department}]\n" SMALL
        "gpus: [{uuid: all, managed: true}]\n";
    static const char without_alice[] =
        "tenants: [{name: acme, kind: organization}, {name: acme/vision, kind: department}, {name: "
        "acme/vision/train}]\n" SMALL "gpus: [{uuid: all, managed: true}]\n";
    struct bh_command dry = { .dry_run = true }, prune = { .prune = true };
    struct bh_job_view view;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    view.job = f.answer.job;
    BH_CHECK_EQ("the SKU, tried", apply_as(&f, without_sku, dry), BH_CONFLICT);
    BH_CHECK_STR("why", f.err.msg, "small: 1 job still uses small");
    BH_CHECK("what to do", strstr(f.err.hint, "wait, or cancel them"));
    BH_CHECK_EQ("with --prune too", apply_as(&f, without_sku, prune), BH_CONFLICT);
    BH_CHECK_EQ("the tenant, tried", apply_as(&f, without_train, dry), BH_OK);
    BH_CHECK_STR("says what becomes of its job", f.answer.removes,
                 "tenants[acme/vision/train]: 1 job (1 not ended: it is cancelled)\n");
    BH_CHECK_EQ("and its person, tried", apply_as(&f, without_both, dry), BH_OK);
    BH_CHECK_STR("the same of both", f.answer.removes,
                 "tenants[acme/vision/train]: 1 job (1 not ended: it is cancelled)\n"
                 "principals[alice]: 1 job (1 not ended: it is cancelled)\n");
    BH_CHECK_EQ("the person alone, tried", apply_as(&f, without_alice, dry), BH_OK);
    BH_CHECK_STR("whose job stays", f.answer.removes, "principals[alice]: 1 job (1 not ended: it runs on)\n");
    BH_CHECK_EQ("pruned", apply_as(&f, without_train, prune), BH_OK);
    BH_CHECK("in the record", strstr(note_of(&f, last_leaf(&f)), "(1 not ended: it is cancelled)\n"));
    BH_CHECK("and it is",
             !bh_view_job(f.core.state.engine, view.job, &view) || view.cause == BH_END_TENANT_REMOVED);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* ---- warnings ---- */

/* The same in a dry run and when it is applied: such a file is put in force. */
static void
what_has_no_effect_is_warned_of(void **state)
{
    static const struct {
        const char *name, *site, *warnings;
    } cases[] = {
        { "nothing odd", SITE("", "", "", "", ""), "" },
        { "a GPU that there is not", "gpus: [{uuid: all, managed: true}, {uuid: GPU-1234, cordoned: true}]\n",
          "gpus[GPU-1234]: no node has shown such a GPU so far\n" },
        { "a node that there is not", "pools: [{name: dev, nodes: [n7, all], layout: development}]\n",
          "pools[dev].nodes[n7]: no node of that name has connected so far\n" },
        { "grade A without a dedicated node",
          "tenants: [{name: acme, kind: organization}]\n"
          "skus: [{name: mine, grade: A, models: [{model: H100-80GB, profile: whole}]}]\n",
          "skus[mine]: grade A is a node without other tenants, and no tenant has "
          "dedicated_nodes: its jobs never start\n" },
        { "grade A with one",
          "tenants: [{name: acme, kind: organization, dedicated_nodes: true}]\n"
          "skus: [{name: mine, grade: A, models: [{model: H100-80GB, profile: whole}]}]\n",
          "" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_command dry = { .dry_run = true }, wet = { .prune = false };
        struct fixture f;

        fixture_setup(&f);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, dry), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.warnings, cases[i].warnings);
        BH_CHECK_EQ(cases[i].name, apply_as(&f, cases[i].site, wet), BH_OK);
        BH_CHECK_STR(cases[i].name, f.answer.warnings, cases[i].warnings);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
what_has_nothing_is_just_removed(void **state)
{
    struct bh_command wet = { .prune = false };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, plain_site), BH_OK);
    BH_CHECK_EQ("bob", apply_as(&f, SITE("", "", "", "", ""), wet), BH_OK);
    BH_CHECK_STR("leaves nothing", f.answer.removes, "");
    BH_CHECK_STR("is a change", f.answer.changes.lines,
                 "principals[bob]: removed {\"name\":\"bob\",\"uid\":2002}\n");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_file_changes_is_shown_and_recorded),
    cmocka_unit_test(one_deed_is_one_record),
    cmocka_unit_test(a_long_difference_is_cut_in_the_record_alone),
    cmocka_unit_test(a_revision_is_the_record_that_applied_it),
    cmocka_unit_test(the_slower_of_two_editors_is_refused),
    cmocka_unit_test(revisions_are_bounded),
    cmocka_unit_test(what_has_something_is_removed_on_demand_alone),
    cmocka_unit_test(what_happens_to_jobs_is_said_before),
    cmocka_unit_test(what_has_no_effect_is_warned_of),
    cmocka_unit_test(what_has_nothing_is_just_removed),
};
BH_TEST_MAIN(tests)
