#include "policy/datasets.h"

#include "base/time.h"
#include "model/decode_test.h"

enum { DAY_S = 86400 };

static const char site_yaml[] =
    "tenants: [{name: acme}, {name: acme/vision}, {name: acme/vision/train}, {name: acme2}, {name: other}]\n"
    "principals: [{name: alice, uid: 2001}, {name: bob, uid: 2002}]\n"
    "bindings:\n"
    "- {role: developer, principal: alice, tenant: acme/vision}\n"
    "- {role: operator, gid: 500, tenant: '*'}\n"
    "- {role: auditor, principal: bob, tenant: '*'}\n"
    "pools: [{name: dev, nodes: [n1], layout: development}, {name: rest, nodes: [all], layout: production}]\n"
    "datasets:\n"
    "- {name: closed, path: /data/closed, tenant: acme}\n"
    "- name: imagenet\n"
    "  path: /data/imagenet\n"
    "  tenant: acme\n"
    "  grants:\n"
    "  - {tenant: acme/vision, may: [mount, read]}\n"                                  /* 0 */
    "  - {principal: bob, may: [write], until: '1970-01-02T00:00:00Z'}\n"              /* 1 */
    "  - {principal: bob, may: [mount, read, write]}\n"                                /* 2 */
    "  - {tenant: other, label: 'env=dev|prod', may: [mount, read]}\n"                 /* 3 */
    "  - {tenant: other, label: team, may: [copy], to: {nodes: [n9], pools: [dev]}}\n" /* 4 */
    "  - {role: developer, may: [write], until: '1970-01-03T00:00:00Z'}\n"             /* 5 */
    "- {name: all, path: /data/all, tenant: other, grants: [{tenant: '*', may: [mount, read, write, copy]}]}\n"
    "- {name: acmes, path: /data/acmes, tenant: acme, grants: [{tenant: acme, may: [mount]}]}\n"
    "- {name: ops, path: /data/ops, tenant: other, grants: [{role: operator, may: [mount]}, {role: auditor, may: [mount]}]}\n";

struct world {
    struct bh_arena *arena;
    struct bh_site *site;
    struct bh_datasets datasets;
};

static void
open_world(struct world *w, const char *yaml)
{
    struct bh_err err;

    w->arena = bh_arena_new(1 << 20);
    w->site = bh_arena_alloc(w->arena, sizeof *w->site);
    assert_int_equal(bh_test_decode(yaml, &bh_site_fields, w->site, w->arena, &err), BH_OK);
    assert_int_equal(bh_site_check(w->site, &err), BH_OK);
    assert_int_equal(bh_datasets_compile(w->site, w->arena, &w->datasets, &err), BH_OK);
}

#define MOUNT BH_DATA_MOUNT
#define READ BH_DATA_READ
#define WRITE BH_DATA_WRITE
#define COPY BH_DATA_COPY
#define NEVER UINT64_MAX

static void
grants_decide(void **state)
{
    static const struct {
        const char *name, *dataset, *tenant, *principal, *label, *node;
        uint32_t rights, at_h;
        uint32_t number, lacks;
        uint64_t until_h;
        /* clang-format off */
    } cases[] = {
        { "nobody is named", "closed", "acme", "alice", "", NULL, MOUNT, 0, 3002, MOUNT, 0 },
        { "the tenant", "imagenet", "acme/vision", "carol", "", NULL, MOUNT | READ, 0, 3100, 0, NEVER },
        { "one below it", "imagenet", "acme/vision/train", "carol", "", NULL, MOUNT | READ, 0, 3100, 0, NEVER },
        { "not the one above", "imagenet", "acme", "carol", "", NULL, MOUNT, 0, 3002, MOUNT, 0 },
        { "itself", "acmes", "acme", "carol", "", NULL, MOUNT, 0, 3100, 0, NEVER },
        { "not one whose name begins so", "acmes", "acme2", "carol", "", NULL, MOUNT, 0, 3002, MOUNT, 0 },
        { "a right it does not give", "imagenet", "acme/vision", "carol", "", NULL, MOUNT | READ | WRITE | COPY, 0, 3004, WRITE | COPY, 0 },
        { "grants add up", "imagenet", "acme/vision", "alice", "", NULL, MOUNT | READ | WRITE, 0, 3105, 0, 48 },
        { "until the first ends", "imagenet", "acme/vision", "alice", "", NULL, MOUNT | READ | WRITE, 48, 3005, WRITE, 0 },
        { "one hour before", "imagenet", "acme/vision", "alice", "", NULL, MOUNT | READ | WRITE, 47, 3105, 0, 48 },
        { "the principal, anywhere", "imagenet", "other", "bob", "", NULL, MOUNT | READ, 0, 3102, 0, NEVER },
        { "the later end counts", "imagenet", "acme", "bob", "", NULL, WRITE, 0, 3101, 0, NEVER },
        { "by the one that is left", "imagenet", "acme", "bob", "", NULL, WRITE, 24, 3102, 0, NEVER },
        { "no label", "imagenet", "other", "carol", "", NULL, MOUNT | READ, 0, 3003, MOUNT | READ, 0 },
        { "another value", "imagenet", "other", "carol", "env=test", NULL, MOUNT, 0, 3003, MOUNT, 0 },
        { "the label", "imagenet", "other", "carol", "env=prod", NULL, MOUNT | READ, 0, 3103, 0, NEVER },
        { "any label is taken", "imagenet", "other", "carol", NULL, NULL, MOUNT | READ | COPY, 0, 3103, 0, NEVER },
        { "the place is not known", "imagenet", "other", "carol", "team=a", NULL, COPY, 0, 3104, 0, NEVER },
        { "a node of the list", "imagenet", "other", "carol", "team=a", "n9", COPY, 0, 3104, 0, NEVER },
        { "a node of the pool", "imagenet", "other", "carol", "team=a", "n1", COPY, 0, 3104, 0, NEVER },
        { "another node", "imagenet", "other", "carol", "team=a", "n2", COPY, 0, 3006, COPY, 0 },
        { "a role held above", "imagenet", "acme/vision/train", "alice", "", NULL, WRITE, 0, 3105, 0, 48 },
        { "a role held elsewhere", "imagenet", "acme", "alice", "", NULL, WRITE, 0, 3002, WRITE, 0 },
        { "a group's role is nobody's", "ops", "acme", "alice", "", NULL, MOUNT, 0, 3002, MOUNT, 0 },
        { "a role on the whole site", "ops", "acme", "bob", "", NULL, MOUNT, 0, 3101, 0, NEVER },
        { "everybody", "all", "acme", "carol", "", "n5", MOUNT | READ | WRITE | COPY, 999999, 3100, 0, NEVER },
    };
    /* clang-format on */
    struct world w;

    open_world(&w, site_yaml);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *label = cases[i].label;
        struct bh_texts labels = { &label, label && *label };
        const struct bh_data_request request = { cases[i].tenant,        cases[i].principal,
                                                 label ? &labels : NULL, cases[i].node,
                                                 cases[i].rights,        cases[i].at_h * 3600 * BH_NS_PER_S };
        struct bh_data_verdict verdict =
            bh_datasets_check(&w.datasets, bh_datasets_find(&w.datasets, cases[i].dataset), &request);

        BH_CHECK_EQ(cases[i].name, bh_data_rule_number(&verdict), cases[i].number);
        BH_CHECK_EQ(cases[i].name, verdict.allow, cases[i].number >= BH_DATA_RULE_GRANT);
        BH_CHECK_EQ(cases[i].name, verdict.lacks, cases[i].lacks);
        BH_CHECK_EQ(cases[i].name, verdict.until_ns == NEVER, cases[i].until_h == NEVER);
        if (cases[i].until_h != NEVER)
            BH_CHECK_EQ(cases[i].name, verdict.until_ns, cases[i].until_h * 3600 * BH_NS_PER_S);
    }
    bh_arena_free(w.arena);
    BH_CHECK_DONE();
}

/* One grant, and each of its conditions absent, met or not met: all 3^7 of them. */
static void
every_condition_counts(void **state)
{
    enum { TENANT, PRINCIPAL, ROLE, LABEL, RIGHT, END, PLACE, CONDITIONS };
    static const enum bh_data_rule faults[CONDITIONS] = { BH_DATA_NO_GRANT, BH_DATA_NO_GRANT,
                                                          BH_DATA_NO_GRANT, BH_DATA_UNLABELLED,
                                                          BH_DATA_LACKS,    BH_DATA_ENDED,
                                                          BH_DATA_ELSEWHERE };
    const char *met = "team=a", *right = "read", *other = "mount", *here = "n1", *there = "n2";
    struct bh_texts labels = { &met, 1 };
    const struct bh_data_request request = {
        "acme/vision", "alice", &labels, "n1", READ, DAY_S * BH_NS_PER_S
    };
    struct world w;

    open_world(&w, site_yaml);
    for (int n = 0; n < 2187; n++) {
        struct bh_site_dataset_grant grant = { .may = { &right, 1 } };
        struct bh_site_dataset text = { .name = "d", .path = "/d", .grants = { &grant, 1 } };
        enum bh_data_rule wanted = BH_DATA_NONE;
        struct bh_data_verdict verdict;
        struct bh_dataset dataset;
        int is[CONDITIONS];
        struct bh_err err;

        for (int c = 0, rest = n; c < CONDITIONS; c++, rest /= 3) {
            is[c] = rest % 3; /* absent, met, not met */
            if (is[c] == 2 && wanted == BH_DATA_NONE)
                wanted = faults[c];
        }
        if (!is[TENANT] && !is[PRINCIPAL] && !is[ROLE] && !is[LABEL])
            continue; /* without a recipient: refused when it is read */
        grant.tenant = is[TENANT] ? is[TENANT] == 1 ? "acme" : "other" : NULL;
        grant.principal = is[PRINCIPAL] ? is[PRINCIPAL] == 1 ? "alice" : "bob" : NULL;
        grant.role = is[ROLE] ? is[ROLE] == 1 ? BH_ROLE_DEVELOPER : BH_ROLE_ADMIN : BH_ROLE_NONE;
        grant.label = is[LABEL] ? is[LABEL] == 1 ? "team" : "env" : NULL;
        grant.may.items = is[RIGHT] == 2 ? &other : &right;
        grant.until = is[END] ? is[END] == 1 ? "1970-01-02T00:00:01Z" : "1970-01-02T00:00:00Z" : NULL;
        if (is[PLACE])
            grant.to.nodes = (struct bh_texts){ is[PLACE] == 1 ? &here : &there, 1 };
        assert_int_equal(bh_dataset_read(&text, &dataset, &err), BH_OK);
        verdict = bh_datasets_check(&w.datasets, &dataset, &request);
        if (verdict.reason != wanted || verdict.allow != (wanted == BH_DATA_NONE))
            fail_msg("combination %d: %d, wanted %d", n, (int)verdict.reason, (int)wanted);
    }
    bh_arena_free(w.arena);
}

static void
what_one_may_is_listed(void **state)
{
    struct world w;
    uint64_t until_ns;
    struct bh_data_request alice = { .tenant = "acme/vision", .principal = "alice" },
                           nobody = { .tenant = "acme", .principal = "carol" };
    const struct bh_dataset *imagenet;

    open_world(&w, site_yaml);
    imagenet = bh_datasets_find(&w.datasets, "imagenet");
    BH_CHECK_EQ("some", bh_datasets_may(&w.datasets, imagenet, &alice, &until_ns), MOUNT | READ | WRITE);
    BH_CHECK_EQ("reading has no end", until_ns, NEVER);
    alice.now_ns = 2 * DAY_S * BH_NS_PER_S;
    BH_CHECK_EQ("later", bh_datasets_may(&w.datasets, imagenet, &alice, &until_ns), MOUNT | READ);
    BH_CHECK_EQ("none", bh_datasets_may(&w.datasets, imagenet, &nobody, &until_ns), 0);
    BH_CHECK_EQ("never", until_ns, 0);
    bh_arena_free(w.arena);
    BH_CHECK_DONE();
}

static void
a_folder_is_found_from_below_and_above(void **state)
{
    static const struct {
        const char *path, *dataset;
    } cases[] = {
        { "/data/imagenet", "imagenet" },
        { "/data/imagenet/a", "imagenet" },
        { "/data/imagenet2", NULL },
        { "/data", "closed" },
        { "/", "closed" },
        { "/work", NULL },
    };
    struct world w;

    open_world(&w, site_yaml);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const struct bh_dataset *found = bh_datasets_at(&w.datasets, cases[i].path);

        BH_CHECK_STR(cases[i].path, found ? found->text->name : "", cases[i].dataset ? cases[i].dataset : "");
    }
    BH_CHECK("no such name", !bh_datasets_find(&w.datasets, "none"));
    bh_arena_free(w.arena);
    BH_CHECK_DONE();
}

static void
a_jobs_mounts_ask_for_rights(void **state)
{
    enum { ALL = MOUNT | READ | WRITE | COPY };
    static const struct {
        const char *name;
        struct bh_mount_spec mounts[2];
        const char *cwd;
        uint32_t rights; /* of the first mount */
        enum bh_network_mode network;
        /* clang-format off */
    } cases[] = {
        { "alone", { { .dataset = "a" } }, NULL, MOUNT | READ },
        { "for writing", { { .dataset = "a", .write = true } }, NULL, MOUNT | READ | WRITE },
        { "beside what it reads", { { .dataset = "a" }, { .source = "/work" } }, NULL, MOUNT | READ },
        { "beside what it writes", { { .dataset = "a" }, { .source = "/work", .write = true } }, NULL,
          MOUNT | READ | COPY },
        { "beside another that it writes", { { .dataset = "a" }, { .dataset = "b", .write = true } }, NULL,
          MOUNT | READ | COPY },
        { "twice", { { .dataset = "a", .write = true }, { .dataset = "a", .target = "/b", .write = true } }, NULL,
          MOUNT | READ | WRITE },
        { "all", { { .dataset = "a", .write = true }, { .source = "/work", .write = true } }, NULL, ALL },
        { "in a folder", { { .dataset = "a" } }, "/work", MOUNT | READ | COPY },
        { "in its own /tmp", { { .dataset = "a" } }, "/tmp", MOUNT | READ },
        { "in the root", { { .dataset = "a" } }, "/", MOUNT | READ },
        { "in a folder it reads", { { .dataset = "a" }, { .source = "/work" } }, "/work/x", MOUNT | READ },
        { "one shown elsewhere is not that", { { .dataset = "a" }, { .source = "/work", .target = "/w" } }, "/work",
          MOUNT | READ | COPY },
        { "with other jobs of its tenant", { { .dataset = "a" } }, NULL, MOUNT | READ | COPY, BH_NETWORK_TENANT },
        { "with the world", { { .dataset = "a" } }, "/tmp", MOUNT | READ | COPY, BH_NETWORK_EGRESS },
        { "for writing, with other jobs", { { .dataset = "a", .write = true } }, NULL, ALL, BH_NETWORK_TENANT },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_mount_spec mounts[2] = { cases[i].mounts[0], cases[i].mounts[1] };
        bool second = mounts[1].source || mounts[1].dataset;
        struct bh_job_spec spec = { .mounts = { mounts, 1 + second },
                                    .cwd = cases[i].cwd,
                                    .network = cases[i].network };

        BH_CHECK_EQ(cases[i].name, bh_data_rights_wanted(&spec, 0), cases[i].rights);
    }
    BH_CHECK_DONE();
}

/* Every way in by a path: none is open, whatever the grants. */
static void
paths_are_no_way_in(void **state)
{
    static const struct {
        const char *name;
        struct bh_mount_spec mount;
        const char *cwd, *image;
        bool allowed;
        const char *says;
        /* clang-format off */
    } cases[] = {
        { "elsewhere", { .source = "/work" }, "/home/bob", "dir:/images/a", true, "" },
        { "a mount of it", { .source = "/data/all" }, NULL, NULL, false,
          "mounts[0]: /data/all and the folder of dataset all overlap" },
        { "a mount above all", { .source = "/data" }, NULL, "host", false,
          "mounts[0]: /data and the folder of dataset closed overlap" },
        { "a working directory", { .source = "/work" }, "/data/all/x", NULL, false,
          "cwd: /data/all/x and the folder of dataset all overlap" },
        { "an image", { .source = "/work" }, NULL, "dir:/data", false,
          "image: /data and the folder of dataset closed overlap" },
        { "a layout", { .source = "/work" }, NULL, "oci:/data/all:x", false,
          "image: /data/all and the folder of dataset all overlap" },
        { "its own /tmp", { .source = "/work" }, "/tmp", NULL, true, "" },
    };
    /* clang-format on */
    struct world w;

    open_world(&w, site_yaml);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_mount_spec mount = cases[i].mount;
        struct bh_job_spec spec = { .mounts = { &mount, 1 }, .cwd = cases[i].cwd, .image = cases[i].image };
        const struct bh_data_request request = { .tenant = "other",
                                                 .principal = "bob",
                                                 .labels = &spec.labels };
        struct bh_data_denial denial;
        struct bh_err err = { .msg = "" };

        BH_CHECK_EQ(cases[i].name, bh_datasets_allow(&w.datasets, &spec, &request, &denial),
                    cases[i].allowed);
        if (!cases[i].allowed) {
            BH_CHECK_EQ(cases[i].name, bh_data_rule_number(&denial.verdict), 3007);
            BH_CHECK_EQ(cases[i].name, bh_datasets_explain(&spec, &request, &denial, false, &err), BH_DENIED);
        }
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
    }
    bh_arena_free(w.arena);
    BH_CHECK_DONE();
}

static void
denials_say_what_lacks_and_what_to_do(void **state)
{
    static const struct {
        const char *name, *tenant, *principal;
        struct bh_mount_spec mounts[2];
        const char *node;
        bool hidden;
        bh_rc rc;
        const char *says, *next;
        enum bh_network_mode network;
        /* clang-format off */
    } cases[] = {
        { "unknown", "acme", "alice", { { .dataset = "x" } }, NULL, false, BH_NOT_FOUND,
          "mounts[0]: no dataset x that you may see", "`bulkhead get datasets` lists them" },
        { "hidden", "acme", "carol", { { .dataset = "closed" } }, NULL, true, BH_NOT_FOUND,
          "mounts[0]: no dataset closed that you may see", "`bulkhead get datasets` lists them" },
        { "seen", "acme", "carol", { { .dataset = "closed" } }, NULL, false, BH_DENIED,
          "mounts[0]: closed: no grant covers carol in acme",
          "an admin can add to its grants: {tenant: acme, may: [mount, read]}" },
        { "named, so never hidden", "acme/vision", "carol", { { .dataset = "imagenet", .write = true } }, NULL, true,
          BH_DENIED, "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives write",
          "mount it read-only, or ask for a grant of write" },
        { "copies", "acme/vision", "carol", { { .source = "/w", .write = true }, { .dataset = "imagenet" } }, NULL, true,
          BH_DENIED, "mounts[1]: imagenet: grants[0] gives mount, read, and no grant gives copy",
          "leave out the other mounts for writing and --cwd, to which data could be copied, or ask for a "
          "grant of copy" },
        { "sends", "acme/vision", "carol", { { .dataset = "imagenet" } }, NULL, true, BH_DENIED,
          "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives copy",
          "leave out --network tenant, to which data could be copied, or ask for a grant of copy", BH_NETWORK_TENANT },
        { "copies and sends", "acme/vision", "carol", { { .source = "/w", .write = true }, { .dataset = "imagenet" } },
          NULL, true, BH_DENIED, "mounts[1]: imagenet: grants[0] gives mount, read, and no grant gives copy",
          "leave out --network egress, the other mounts for writing and --cwd, to which data could be "
          "copied, or ask "
          "for a grant of copy", BH_NETWORK_EGRESS },
        { "no label", "other", "carol", { { .dataset = "imagenet" } }, NULL, true, BH_DENIED,
          "mounts[0]: imagenet: grants[3] is for jobs with the label env=dev|prod",
          "add the label with --label, where it is true of the job" },
        { "by its path", "acme/vision", "alice", { { .source = "/data/imagenet/train" } }, NULL, true, BH_DENIED,
          "mounts[0]: /data/imagenet/train and the folder of dataset imagenet overlap",
          "mount it by its name: --mount dataset=imagenet" },
        { "by a hidden one's path", "acme", "carol", { { .source = "/data/closed" } }, NULL, true, BH_DENIED,
          "mounts[0]: /data/closed may not be used", "" },
        { "ended", "acme/vision", "alice", { { .dataset = "imagenet", .write = true } }, NULL, true, BH_DENIED,
          "mounts[0]: imagenet: grants[5] gave write until 1970-01-03T00:00:00Z",
          "mount it read-only, or ask for a grant of write" },
    };
    /* clang-format on */
    struct world w;

    open_world(&w, site_yaml);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_mount_spec mounts[2] = { cases[i].mounts[0], cases[i].mounts[1] };
        struct bh_job_spec spec = { .mounts = { mounts, 1 + !!mounts[1].dataset },
                                    .network = cases[i].network };
        struct bh_data_request request = { .tenant = cases[i].tenant,
                                           .principal = cases[i].principal,
                                           .labels = &spec.labels,
                                           .node = cases[i].node,
                                           .now_ns = 2 * DAY_S * BH_NS_PER_S };
        struct bh_data_denial denial;
        struct bh_err err = { .msg = "" };

        BH_CHECK(cases[i].name, !bh_datasets_allow(&w.datasets, &spec, &request, &denial));
        BH_CHECK_EQ(cases[i].name, bh_datasets_explain(&spec, &request, &denial, cases[i].hidden, &err),
                    cases[i].rc);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
        BH_CHECK_STR(cases[i].name, err.hint, cases[i].next);
    }
    bh_arena_free(w.arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(grants_decide),
    cmocka_unit_test(every_condition_counts),
    cmocka_unit_test(what_one_may_is_listed),
    cmocka_unit_test(a_folder_is_found_from_below_and_above),
    cmocka_unit_test(a_jobs_mounts_ask_for_rights),
    cmocka_unit_test(paths_are_no_way_in),
    cmocka_unit_test(denials_say_what_lacks_and_what_to_do),
};
BH_TEST_MAIN(tests)
