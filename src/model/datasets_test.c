#include "model/datasets.h"

#include "model/decode_test.h"

#define SITE                                                                                                 \
    "tenants: [{name: acme}, {name: acme/vision}]\n"                                                         \
    "principals: [{name: alice, uid: 2001}]\n"                                                               \
    "pools: [{name: dev, nodes: [n1], layout: development}]\n"

static const struct {
    const char *name, *yaml;
    bh_rc rc;
    const char *says;
} cases[] = {
    { "right",
      "mounts: [{path: /work, tenant: acme}]\n"
      "datasets:\n"
      "- name: imagenet\n"
      "  kind: dataset\n"
      "  path: /data/imagenet\n"
      "  tenant: acme\n"
      "  on_expiry: stop\n"
      "  grants: [{tenant: acme/vision, role: developer, label: team=a, may: [mount, read],\n"
      "    to: {nodes: [n1], pools: [dev]}, until: '2027-01-01T00:00:00Z'},\n"
      "    {principal: alice, may: [mount, read, write, copy]}]\n"
      "- {name: llama, kind: model, path: /data/imagenet2, tenant: acme/vision}\n",
      BH_OK, NULL },
    { "twice", "datasets: [{name: a, path: /a, tenant: acme}, {name: a, path: /b, tenant: acme}]\n",
      BH_INVALID, "datasets[1] a: declared twice" },
    { "in another", "datasets: [{name: a, path: /a, tenant: acme}, {name: b, path: /a/b, tenant: acme}]\n",
      BH_INVALID, "datasets[1] b: its path and that of a overlap" },
    { "above another",
      "datasets: [{name: a, path: /a/b, tenant: acme}, {name: b, path: /a/, tenant: acme}]\n", BH_INVALID,
      "datasets[1] b: its path and that of a overlap" },
    { "a mount above it", "mounts: [{path: /, tenant: '*'}]\ndatasets: [{name: a, path: /a, tenant: acme}]\n",
      BH_INVALID, "datasets[0] a: its path and mounts[0] / overlap" },
    { "a mount within it",
      "mounts: [{path: /b, tenant: '*'}, {path: /a/b, tenant: acme}]\ndatasets: [{name: a, path: /a, tenant: acme}]\n",
      BH_INVALID, "datasets[0] a: its path and mounts[1] /a/b overlap" },
    { "nobody's", "datasets: [{name: a, path: /a, tenant: other}]\n", BH_INVALID,
      "datasets[0] a: no tenant other in this file" },
    { "everybody's", "datasets: [{name: a, path: /a, tenant: '*'}]\n", BH_INVALID,
      "datasets[0] a: no tenant * in this file" },
    { "to a tenant there is not",
      "datasets: [{name: a, path: /a, tenant: acme, grants: [{tenant: acme/x, may: [mount]}]}]\n", BH_INVALID,
      "datasets[0] a: grants[0]: no tenant acme/x in this file" },
    { "to a principal there is not",
      "datasets: [{name: a, path: /a, tenant: acme, grants: [{tenant: '*', may: [mount]}, {principal: bob, may: [mount]}]}]\n",
      BH_INVALID, "datasets[0] a: grants[1]: no principal bob in this file" },
    { "in a pool there is not",
      "datasets: [{name: a, path: /a, tenant: acme, grants: [{tenant: '*', may: [mount], to: {pools: [x]}}]}]\n",
      BH_INVALID, "datasets[0] a: grants[0]: to: no pool x in this file" },
    { "as is read", "datasets: [{name: a, path: a, tenant: acme}]\n", BH_INVALID,
      "datasets[0] a: path is not absolute" },
    { "role there is not",
      "datasets: [{name: a, path: /a, tenant: acme, grants: [{role: boss, may: [mount]}]}]\n", BH_INVALID,
      NULL },
};

static bh_rc
datasets_test_check(const char *yaml, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_site site;
    bh_rc rc = bh_test_decode(yaml, &bh_site_fields, &site, arena, err);

    return rc == BH_OK ? bh_site_check(&site, err) : rc;
}

static void
datasets_stand_beside_the_rest_of_the_site(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { .msg = "" };
        char yaml[2000];

        snprintf(yaml, sizeof yaml, "%s%s", SITE, cases[i].yaml);
        BH_CHECK_EQ(cases[i].name, datasets_test_check(yaml, &err), cases[i].rc);
        if (cases[i].says)
            BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
        else if (cases[i].rc == BH_OK)
            BH_CHECK_STR(cases[i].name, err.msg, "");
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(datasets_stand_beside_the_rest_of_the_site) };
BH_TEST_MAIN(tests)
