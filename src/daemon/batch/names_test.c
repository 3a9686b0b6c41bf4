#include "daemon/batch/batch.h"
#include "daemon/batch/names.h"

#include "daemon/batch/record.h"
#include "daemon/fixture/audited_test.h"

/* Every name has a record that binds it, whichever principal gave it and however many came at once; and the
 * rows that a core writes equal its records. */

static void
ok(struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        print_error("%s\n", f->err.msg);
    assert_int_equal(rc, BH_OK);
}

static bool
count_verb(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct bh_buf *verbs = self;
    struct bh_slice value;
    char verb[40] = "", type[16] = "";

    if (bh_slice_get((struct bh_slice){ leaf, length }, "verb", &value))
        bh_slice_str(value, verb, sizeof verb);
    if (bh_slice_get((struct bh_slice){ leaf, length }, "obj", &value) && bh_slice_get(value, "type", &value))
        bh_slice_str(value, type, sizeof type);
    if (strncmp(verb, "name", 4) == 0)
        bh_buf_printf(verbs, "%s %s;", verb, type);
    return true;
}

/* Verbs of the records that are about names, with the type of their objects. */
static const char *
verbs(struct fixture *f)
{
    char *memory = bh_arena_alloc(f->arena, 1000);
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, 1000);
    ok(f, f->core.store.ops->list_records(f->core.store.self, 0, INT64_MAX, count_verb, &out, &f->err));
    return bh_buf_text(&out);
}

static void
of_a_site(void **state)
{
    struct fixture f;
    struct bh_claims_result result;

    fixture_setup(&f);
    ok(&f, fixture_apply(&f, site_yaml));
    result = audit(&f);
    BH_CHECK_STR("differences", result.differing, "");
    BH_CHECK_EQ("all are bound", result.names.good, 5);
    BH_CHECK_STR("by the records that gave them", verbs(&f), "");
    ok(&f, fixture_apply(&f, site_yaml));
    BH_CHECK_EQ("once", audit(&f).names.good, 5);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* Three hundred principals in one site file: more than a record has room for. */
static void
of_many(void **state)
{
    struct fixture f;
    struct bh_claims_result result;
    struct bh_buf yaml;

    fixture_setup(&f);
    bh_buf_init(&yaml, 1 << 20);
    bh_buf_puts(&yaml, "tenants: [{name: acme, kind: organization}]\nprincipals:\n");
    for (int i = 0; i < 300; i++)
        bh_buf_printf(&yaml, "  - {name: person-%d, uid: %d}\n", i, 3000 + i);
    ok(&f, fixture_apply(&f, bh_buf_text(&yaml)));
    bh_buf_fini(&yaml);
    result = audit(&f);
    BH_CHECK_STR("differences", result.differing, "");
    BH_CHECK_EQ("all are bound", result.names.good, 301);
    BH_CHECK_STR("in records of their own", verbs(&f), "names.give site;names.give site;");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A name for which no other record comes, and one whose batch is thrown away. */
static void
without_a_record(void **state)
{
    struct fixture f;
    uint32_t id, again;

    fixture_setup(&f);
    ok(&f, bh_core_begin(&f.core, &f.err));
    ok(&f, bh_catalog_name(f.core.catalog, BH_NAME_PRINCIPAL, "root", &id, &f.err));
    BH_CHECK_EQ("waits", bh_catalog_unbound(f.core.catalog), 1);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("thrown away", bh_catalog_unbound(f.core.catalog), 0);
    BH_CHECK_EQ("no id", bh_catalog_find(f.core.catalog, BH_NAME_PRINCIPAL, "root"), 0);
    ok(&f, bh_core_begin(&f.core, &f.err));
    ok(&f, bh_catalog_name(f.core.catalog, BH_NAME_PRINCIPAL, "root", &again, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_EQ("the same id", again, id);
    BH_CHECK_STR("a record of its own", verbs(&f), "names.give ;");
    BH_CHECK_EQ("bound", audit(&f).names.good, 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A store from before: rows without keys, and no note that they were bound. */
static void
of_before(void **state)
{
    const struct bh_name_row rows[] = {
        { .kind = BH_NAME_PRINCIPAL, .id = 1, .name = "root" },
        { .kind = BH_NAME_PRINCIPAL, .id = 2, .name = "alice", .gone = true },
        { .kind = BH_NAME_TENANT, .id = 1, .name = "acme" },
    };
    struct bh_claims_result result;
    struct fixture f;

    fixture_setup(&f);
    ok(&f, bh_core_begin(&f.core, &f.err));
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        ok(&f, f.core.store.ops->put_name(f.core.store.self, &rows[i], &f.err));
    ok(&f, bh_core_record(&f.core, &(struct bh_entry){ .verb = "daemon.start" }, BH_OK, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    close_core(&f);
    ok(&f, open_core(&f));
    BH_CHECK_EQ("not bound", audit(&f).names.unbound, 3);
    ok(&f, bh_names_upgrade(&f.core, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    result = audit(&f);
    BH_CHECK_STR("differences", result.differing, "");
    BH_CHECK_EQ("bound", result.names.good, 3);
    BH_CHECK_EQ("from there", result.bound_from, 1);
    BH_CHECK_STR("by one record", verbs(&f), "names.bind upgrade;");
    BH_CHECK_EQ("still gone", bh_catalog_find(f.core.catalog, BH_NAME_PRINCIPAL, "alice"), 0);
    /* who takes a key away afterwards does not get another */
    ok(&f, bh_core_begin(&f.core, &f.err));
    ok(&f, f.core.store.ops->put_name(f.core.store.self, &rows[0], &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    close_core(&f);
    ok(&f, open_core(&f));
    ok(&f, bh_names_upgrade(&f.core, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_STR("once", verbs(&f), "names.bind upgrade;");
    BH_CHECK_EQ("and it is seen", audit(&f).differences, 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* What records that go had bound is bound by one that stays. */
static void
kept_at_a_pruning(void **state)
{
    const struct bh_store *store;
    struct bh_claims_result result;
    struct fixture f;
    uint64_t end;

    fixture_setup(&f);
    ok(&f, fixture_apply(&f, site_yaml));
    store = &f.core.store;
    end = f.core.journal.next_seq;
    ok(&f,
       bh_core_record(&f.core,
                      &(struct bh_entry){
                          .verb = BH_RECORD_PRUNE, .dec = { .allow = true }, .obj = { BH_RECORD_LOG, end } },
                      BH_OK, &f.err));
    ok(&f, bh_names_keep(&f.core, end, &f.err));
    ok(&f, store->ops->prune_records(store->self, 0, end - 1, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    result = audit(&f);
    BH_CHECK_STR("differences", result.differing, "");
    BH_CHECK_EQ("bound", result.names.good, 5);
    BH_CHECK_EQ("no upgrade", result.bound_from, UINT64_MAX);
    BH_CHECK_STR("by one record", verbs(&f), "names.bind log;");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* An erased name has no row that says it, is found by none, and gets another id when it comes
 * again. */
static void
erased(void **state)
{
    struct bh_claims_result result;
    struct fixture f;
    uint32_t id, again;

    fixture_setup(&f);
    ok(&f, fixture_apply(&f, site_yaml));
    id = bh_catalog_find(f.core.catalog, BH_NAME_PRINCIPAL, "alice");
    BH_CHECK_EQ("in use", bh_catalog_erase(f.core.catalog, BH_NAME_PRINCIPAL, id, 1, &f.err), BH_CONFLICT);
    ok(&f, bh_core_begin(&f.core, &f.err));
    ok(&f, bh_catalog_drop(f.core.catalog, BH_NAME_PRINCIPAL, id, &f.err));
    ok(&f, bh_core_record(&f.core,
                          &(struct bh_entry){ .verb = BH_RECORD_NAME_ERASE,
                                              .dec = { .allow = true },
                                              .obj = { "principal", id } },
                          BH_OK, &f.err));
    ok(&f, bh_catalog_erase(f.core.catalog, BH_NAME_PRINCIPAL, id, f.core.journal.next_seq - 1, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    close_core(&f);
    ok(&f, open_core(&f));
    result = audit(&f);
    BH_CHECK_STR("differences", result.differing, "");
    BH_CHECK_EQ("erased", result.names.erased, 1);
    BH_CHECK("says by which record", strstr(result.erased, ": erased by record "));
    BH_CHECK_STR("its row", bh_catalog_name_of(f.core.catalog, BH_NAME_PRINCIPAL, id), BH_ERASED);
    BH_CHECK_EQ("not found", bh_catalog_find(f.core.catalog, BH_NAME_PRINCIPAL, BH_ERASED), 0);
    ok(&f, bh_core_begin(&f.core, &f.err));
    ok(&f, bh_catalog_name(f.core.catalog, BH_NAME_PRINCIPAL, "alice", &again, &f.err));
    ok(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK("another id", again != id);
    BH_CHECK_EQ("still so", audit(&f).differences, 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_a_site), cmocka_unit_test(of_many),           cmocka_unit_test(without_a_record),
    cmocka_unit_test(of_before), cmocka_unit_test(kept_at_a_pruning), cmocka_unit_test(erased),
};
BH_TEST_MAIN(tests)
