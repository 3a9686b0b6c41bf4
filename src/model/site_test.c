#include "model/site.h"

#include "model/decode_test.h"

static bh_rc
site_test_check(const char *yaml, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_site site;
    bh_rc rc = bh_test_decode(yaml, &bh_site_fields, &site, arena, err);

    return rc == BH_OK ? bh_site_check(&site, err) : rc;
}

#define SHARE(row) "skus: [{name: s, grade: F, models: [{model: H100-80GB, " row "}]}]"
#define SMALL "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"
#define CORP "sign_in: {address: https://x, issuers: [{name: corp, url: https://id, client_id: b}]}\n"
#define ACME "tenants: [{name: acme}]\n"

static const char whole[] =
    "tenants:\n"
    "- {name: acme, kind: organization, limit: \"4\", guarantee: \"2\"}\n"
    "- {name: acme/vision, boundary: hard, guarantee: \"1.5\", limit: 4,"
    "   quotas: [{sku: small, limit: 2}]}\n"
    "- {name: acme/speech, guarantee: 3/7}\n"
    "- {name: acme/vision/train, kind: project, limit: \"2\", dedicated_nodes: true}\n"
    "skus:\n"
    "- {name: small, grade: C, cpu: \"2\", memory: 8Gi,"
    "   models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "- {name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}\n"
    "principals: [{name: alice, uid: 20001}, {name: robot, service: true},\n"
    "  {name: r2, service: true, uid: 0}]\n"
    "bindings:\n"
    "- {role: developer, principal: alice, tenant: acme/vision/train}\n"
    "- {role: auditor, gid: 500, tenant: \"*\"}\n"
    "gpus: [{uuid: all, managed: true}, {uuid: GPU-1, cordoned: true}]\n"
    "mounts: [{path: /work/data, tenant: acme/vision, write: false}]\n"
    "scheduling: {order: drf, half_life: never, backfill: off, assumed_run: 12h,"
    " min_runtime: 10m, lending: forecast, hotspots: on, preshape: on,"
    " spread_kinds: on, defrag: suggest, defrag_gain_percent: 150, defrag_gpu_hours: 0.5,"
    " defrag_moves: 3, defrag_rest: 2h}\n"
    "pools: [{name: dev, nodes: [n1, n2], layout: development},"
    " {name: rest, nodes: [all], layout: production}]\n";

static void
a_whole_site_is_right(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("whole", site_test_check(whole, &err), BH_OK);
    BH_CHECK_STR("whole", err.msg, "");
    BH_CHECK_EQ("empty", site_test_check("{}", &err), BH_OK);
    BH_CHECK_EQ("no site", site_test_check("limit: 1", &err), BH_INVALID);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *yaml;
    bh_rc rc;
    const char *says;
} faults[] = {
    { "twice", "tenants: [{name: acme}, {name: acme}]", BH_INVALID, "tenants[1] acme: declared twice" },
    { "orphan", "tenants: [{name: acme/vision}]", BH_INVALID,
      "tenants[0] acme/vision: its parent is not declared before it" },
    { "parent after", "tenants: [{name: acme/vision}, {name: acme}]", BH_INVALID,
      "tenants[0] acme/vision: its parent is not declared before it" },
    { "bad path", "tenants: [{name: acme/../x}]", BH_INVALID, "tenants[0] acme/../x: not a valid path" },
    { "control", "tenants: [{name: \"a\\x07\"}]", BH_INVALID, NULL },
    { "empty name", "tenants: [{name: \"\"}]", BH_INVALID, "tenants[0]: has no name" },
    { "fraction", "tenants: [{name: acme, limit: \"0.33333\"}]", BH_INVALID, NULL },
    { "negative", "tenants: [{name: acme, limit: \"-1\"}]", BH_INVALID,
      "tenants[0] acme: limit: \"-1\" is negative" },
    { "overflow", "tenants: [{name: acme, limit: \"99999999999999999999\"}]", BH_RANGE, NULL },
    { "guarantee over limit", "tenants: [{name: acme, limit: \"1\", guarantee: \"2\"}]", BH_INVALID,
      "tenants[0] acme: guarantee 2 is over the limit 1" },
    { "children's guarantees",
      "tenants: [{name: a, guarantee: \"1\"}, {name: a/b, guarantee: \"0.5\"},"
      " {name: a/c, guarantee: 4/7}]",
      BH_INVALID, "tenants[0] a: guarantees below it sum to 4500/4200 GPUs, its own is 1" },
    { "unknown kind", "tenants: [{name: a, kind: guild}]", BH_INVALID,
      "tenants[0].kind: \"guild\" is not one of organization, department, team, project" },
    { "sku limit", SMALL "tenants: [{name: a, quotas: [{sku: big, limit: 1}]}]", BH_INVALID,
      "tenants[0] a: quotas[0]: no SKU \"big\" in this file" },
    { "quota twice",
      SMALL "tenants: [{name: a, quotas: [{sku: small, limit: 1},"
            " {sku: small, limit: 2}]}]",
      BH_INVALID, "tenants[0] a: quotas[1]: small is named twice" },
    { "quota of nothing", "tenants: [{name: a, quotas: [{limit: 1}]}]", BH_INVALID,
      "tenants[0] a: quotas[0]: names a sku or a model, not both or neither" },
    { "quota of a model", "tenants: [{name: a, quotas: [{model: V100, limit: 1}]}]", BH_INVALID,
      "tenants[0] a: quotas[0]: GPU model \"V100\" is not known" },
    { "half a piece", SMALL "tenants: [{name: a, quotas: [{sku: small, limit: 0.5}]}]", BH_INVALID,
      "tenants[0] a: quotas[0]: limit: \"0.5\" does not divide: a whole has 1 parts" },
    { "lends more than it has", "tenants: [{name: a, guarantee: 1, lending_limit: 2}]", BH_INVALID,
      "tenants[0] a: lending_limit 2 is over the guarantee 1" },
    { "weight", "tenants: [{name: a, weight: 65536}]", BH_RANGE, "tenants[0] a: weight 65536 is over 65535" },
    { "no user may run", "tenants: [{name: a, user_limit: 0}]", BH_RANGE,
      "tenants[0] a: user_limit: must be more than nothing" },
    { "budget of nothing", "tenants: [{name: a, budget: {period: day}}]", BH_INVALID,
      "tenants[0] a: budget: neither gpu_hours nor money is set" },
    { "budget's money", "tenants: [{name: a, budget: {period: day, money: 0.0000001}}]", BH_INVALID,
      "tenants[0] a: budget: money: \"0.0000001\" does not divide: a whole has "
      "1000000 parts" },
    { "model", "skus: [{name: s, grade: C, models: [{model: V100, profile: whole}]}]", BH_INVALID,
      "skus[0] s: models[0]: GPU model \"V100\" is not known" },
    { "profile", "skus: [{name: s, grade: C, models: [{model: H100-80GB, profile: 9g}]}]", BH_INVALID,
      "skus[0] s: models[0]: H100-80GB has no profile \"9g\"" },
    { "grade", "skus: [{name: s, grade: B, models: [{model: H100-80GB, profile: 1g.10gb}]}]", BH_INVALID,
      "skus[0] s: models[0]: a MIG instance (1g.10gb) cannot provide grade B" },
    { "no grade", "skus: [{name: s, models: []}]", BH_INVALID, NULL },
    { "too few cores",
      "skus: [{name: s, grade: C, cpu: 0.001, models: [{model: H100-80GB, profile: "
      "1g.10gb}]}]",
      BH_RANGE, "skus[0] s: cpu: 0.001 cores are too few to start a job" },
    { "too little memory",
      "skus: [{name: s, grade: C, memory: 4Ki, models: [{model: H100-80GB, "
      "profile: 1g.10gb}]}]",
      BH_RANGE, "skus[0] s: memory: 4096 bytes are too few to start a job" },
    { "no model", "skus: [{name: s, grade: C, models: []}]", BH_INVALID, "skus[0] s: names no GPU model" },
    { "model twice",
      "skus: [{name: s, grade: C, models: [{model: H100-80GB, profile: "
      "1g.10gb}, {model: H100-80GB, profile: 1g.10gb}]}]",
      BH_INVALID, "skus[0] s: models[1]: H100-80GB is named twice" },
    { "a piece of a model, or all of it",
      "skus: [{name: s, grade: C, models: [{model: H100-80GB, "
      "profile: 1g.10gb}, {model: H100-80GB, profile: whole}]}]",
      BH_OK, "" },
    { "a share", SHARE("share: 25%, memory: 18Gi, rounding: up, mode: hard"), BH_OK, NULL },
    { "a share by halves", SHARE("share: 0.5"), BH_OK, NULL },
    { "a share that is none", SHARE("share: 1/11"), BH_INVALID, NULL },
    { "its memory not rounded", SHARE("share: 1/4, memory: 18Gi"), BH_INVALID,
      "skus[0] s: models[0]: memory: 18Gi is not a whole number of parts of H100-80GB's 81559 MiB" },
    { "too much memory", SHARE("share: 1/4, memory: 100%"), BH_RANGE,
      "skus[0] s: models[0]: memory: an empty H100-80GB has 4147 of 4200 parts for one share" },
    { "a share and a profile", SHARE("share: 1/4, profile: whole"), BH_INVALID,
      "skus[0] s: models[0]: give either a profile or a share, not both" },
    { "neither", SHARE("memory: 18Gi"), BH_INVALID,
      "skus[0] s: models[0]: give either a profile or a share, not neither" },
    { "a profile with a mode", SHARE("profile: whole, mode: hard"), BH_INVALID,
      "skus[0] s: models[0]: memory, mode and rounding are a share's, and this is a profile" },
    { "over its cap",
      "skus: [{name: s, grade: F, over_cap: stop, models: [{model: H100-80GB, "
      "share: 1/4}]}]",
      BH_OK, NULL },
    { "over the cap of a profile",
      "skus: [{name: s, grade: C, over_cap: throttle, models: [{model: "
      "H100-80GB, profile: 1g.10gb}]}]",
      BH_INVALID, "skus[0] s: over_cap is for shares, and it has none" },
    { "over time of a profile",
      "skus: [{name: s, grade: C, over_time: stop, models: [{model: "
      "H100-80GB, profile: 1g.10gb}]}]",
      BH_INVALID, "skus[0] s: over_time is for shares, and it has none" },
    { "nothing to throttle",
      "skus: [{name: s, grade: F, over_time: throttle, models: [{model: "
      "H100-80GB, share: 1/4}]}]",
      BH_INVALID, NULL },
    { "managed memory",
      "skus: [{name: s, grade: F, managed: host, models: [{model: H100-80GB, "
      "share: 1/4}]}]",
      BH_OK, NULL },
    { "managed memory of a profile",
      "skus: [{name: s, grade: C, managed: refuse, models: [{model: "
      "H100-80GB, profile: 1g.10gb}]}]",
      BH_INVALID, "skus[0] s: managed is for shares, and it has none" },
    { "no such memory",
      "skus: [{name: s, grade: F, managed: swap, models: [{model: H100-80GB, "
      "share: 1/4}]}]",
      BH_INVALID, NULL },
    { "no such thing",
      "skus: [{name: s, grade: F, over_cap: kill, models: [{model: H100-80GB, "
      "share: 1/4}]}]",
      BH_INVALID, NULL },
    { "no such mode", SHARE("share: 1/4, mode: soft"), BH_INVALID, NULL },
    { "a share that promises MIG",
      "skus: [{name: s, grade: C, models: [{model: H100-80GB, "
      "share: 1/4}]}]",
      BH_INVALID, "skus[0] s: models[0]: a share cannot provide grade C" },
    { "two shares of a model",
      "skus: [{name: s, grade: F, models: [{model: H100-80GB, share: "
      "1/4}, {model: H100-80GB, share: 1/3}]}]",
      BH_OK, NULL },
    { "one share twice",
      "skus: [{name: s, grade: F, models: [{model: H100-80GB, share: 1/4}, "
      "{model: H100-80GB, share: 25%}]}]",
      BH_INVALID, "skus[0] s: models[1]: H100-80GB is named twice" },
    { "a GPU to be shared", "gpus: [{uuid: all, managed: true, shared: true}]", BH_OK, NULL },
    { "oversubscribed", "gpus: [{uuid: all, shared: true, oversubscribe: 150}]", BH_OK, NULL },
    { "oversubscribed and not shared", "gpus: [{uuid: all, oversubscribe: 150}]", BH_INVALID,
      "gpus[0] all: oversubscribe is for a GPU with shared: true" },
    { "less than it has", "gpus: [{uuid: all, shared: true, oversubscribe: 99}]", BH_RANGE,
      "gpus[0] all: oversubscribe: not 100 to 1000 percent" },
    { "more than ten times", "gpus: [{uuid: all, shared: true, oversubscribe: 1001}]", BH_RANGE, NULL },
    { "driver-enforced memory",
      "skus: [{name: s, grade: D, models: [{model: H100-80GB, profile: "
      "1g.10gb}]}]",
      BH_INVALID,
      "skus[0] s: grade D (memory limited by the driver) is not offered: not verified on hardware" },
    { "MPS", "skus: [{name: s, grade: E, models: [{model: H100-80GB, profile: whole}]}]", BH_INVALID,
      "skus[0] s: grade E (MPS) is not offered: not verified on hardware" },
    { "uid twice", "principals: [{name: a, uid: 7}, {name: b, uid: 7}]", BH_INVALID,
      "principals[1] b: uid 7 is a already" },
    { "no uid", "principals: [{name: a}]", BH_INVALID,
      "principals[0] a: has no uid, account or identity, and is not a service" },
    { "root", "principals: [{name: a, uid: 0}]", BH_INVALID,
      "principals[0] a: has no uid, account or identity, and is not a service" },
    { "a service's account", "principals: [{name: a, service: true, account: true}]", BH_INVALID,
      "principals[0] a: a service signs in with tokens: no account or identity" },
    { "an account", "principals: [{name: a, account: true}]", BH_OK, NULL },
    { "default tenant", ACME "principals: [{name: a, uid: 7, default_tenant: acme}]", BH_OK, NULL },
    { "default tenant elsewhere", ACME "principals: [{name: a, uid: 7, default_tenant: acme/x}]", BH_INVALID,
      "principals[0] a: default_tenant: no tenant acme/x in this file" },
    { "identity", "principals: [{name: a, identity: corp/x}]", BH_INVALID,
      "principals[0] a: identity: is not an ISSUER/SUBJECT of sign_in.issuers" },
    { "identity twice", CORP "principals: [{name: a, identity: corp/x}, {name: b, identity: corp/x}]",
      BH_INVALID, "principals[1] b: identity: is a already" },
    { "group", CORP "bindings: [{role: viewer, group: corp/x, tenant: \"*\"}]", BH_OK, NULL },
    { "group of nobody", CORP "bindings: [{role: viewer, group: other/x, tenant: \"*\"}]", BH_INVALID,
      "bindings[0] *: group: is not an ISSUER/GROUP of sign_in.issuers" },
    { "nobody", "principals: [{name: a, uid: 65534}]", BH_INVALID,
      "principals[0] a: uid 65534 cannot be a principal's" },
    { "gain below the cost", "scheduling: {defrag_gain_percent: 99}", BH_RANGE,
      "scheduling: defrag_gain_percent: from 100 to 1000000" },
    { "nothing to lose", "scheduling: {defrag_gpu_hours: 0}", BH_RANGE,
      "scheduling: defrag_gpu_hours: more than nothing, at most 1000000" },
    { "rest for ever", "scheduling: {defrag_rest: 400d}", BH_RANGE,
      "scheduling: defrag_rest: longer than a year" },
    { "no such mode", "scheduling: {defrag: always}", BH_INVALID,
      "scheduling.defrag: \"always\" is not one of off, suggest, on" },
    { "role", ACME "bindings: [{role: king, gid: 1, tenant: acme}]", BH_INVALID, NULL },
    { "nobody bound", ACME "bindings: [{role: viewer, tenant: acme}]", BH_INVALID,
      "bindings[0] acme: needs one of principal, gid and group" },
    { "both bound",
      ACME "principals: [{name: a, uid: 7}]\n"
           "bindings: [{role: viewer, principal: a, gid: 1, tenant: acme}]",
      BH_INVALID, "bindings[0] acme: needs one of principal, gid and group" },
    { "principal", ACME "bindings: [{role: viewer, principal: eve, tenant: acme}]", BH_INVALID,
      "bindings[0] acme: no principal eve in this file" },
    { "bound elsewhere",
      "principals: [{name: a, uid: 7}]\n"
      "bindings: [{role: viewer, principal: a, tenant: acme}]",
      BH_INVALID, "bindings[0] acme: no tenant acme in this file" },
    { "gpu", "gpus: [{uuid: \"0\"}]", BH_INVALID,
      "gpus[0] 0: uuid is neither \"all\" nor of the form GPU-..." },
    { "gpu twice", "gpus: [{uuid: all}, {uuid: all}]", BH_INVALID, "gpus[1] all: named twice" },
    { "mount", ACME "mounts: [{path: /a/../b, tenant: acme}]", BH_INVALID,
      "mounts[0] /a/../b: path leads upward with \"..\"" },
    { "mount's tenant", "mounts: [{path: /a, tenant: acme}]", BH_INVALID,
      "mounts[0] /a: no tenant acme in this file" },
    { "a pool of nothing", "pools: [{name: a, nodes: []}]", BH_INVALID,
      "pools[0] a: nodes: name at least one, or \"all\"" },
    { "a node in two pools", "pools: [{name: a, nodes: [x, y]}, {name: b, nodes: [z, y]}]", BH_INVALID,
      "pools[1] b: y is in pool a, too" },
    { "a layout that there is not", "pools: [{name: a, nodes: [x], layout: huge}]", BH_INVALID, NULL },
    { "unknown key", "tenants: [{name: a, color: red}]", BH_INVALID, NULL },
    { "alias", "tenants: [&x {name: a}, *x]", BH_INVALID, NULL },
};

static void
faults_name_the_entry(void **state)
{
    for (size_t i = 0; i < BH_COUNT(faults); i++) {
        struct bh_err err = { 0 };

        BH_CHECK_EQ(faults[i].name, site_test_check(faults[i].yaml, &err), faults[i].rc);
        if (faults[i].says)
            BH_CHECK_STR(faults[i].name, err.msg, faults[i].says);
    }
    BH_CHECK_DONE();
}

/* What helps is said where the list of all keys does not. */
static void
faults_say_what_helps(void **state)
{
    static const struct {
        const char *name, *yaml, *hint;
    } cases[] = {
        { "twice", "tenants: [{name: acme}, {name: acme}]",
          "remove one of the two, or give it a different name" },
        { "over its limit", "tenants: [{name: acme, limit: 1, guarantee: 2}]",
          "raise the limit or lower the guarantee" },
        { "lent beyond it", "tenants: [{name: acme, guarantee: 1, lending_limit: 2}]",
          "raise the guarantee or lower the lending_limit" },
        { "a taken uid", "principals: [{name: a, uid: 7}, {name: b, uid: 7}]",
          "one uid is one principal: use a different one here, or bind roles to a" },
        { "nobody's", "principals: [{name: a, uid: 65534}]", "`id -u NAME` shows a user's" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, site_test_check(cases[i].yaml, &err), BH_INVALID);
        BH_CHECK_STR(cases[i].name, err.hint, cases[i].hint);
    }
    BH_CHECK_DONE();
}

static void
kinds_go_by_depth(void **state)
{
    static const struct {
        const char *path;
        enum bh_site_kind said;
        enum bh_tenant_kind kind;
    } cases[] = {
        { "a", BH_SITE_KIND_BY_DEPTH, BH_TENANT_ORGANIZATION },
        { "a/b", BH_SITE_KIND_BY_DEPTH, BH_TENANT_DEPARTMENT },
        { "a/b/c", BH_SITE_KIND_BY_DEPTH, BH_TENANT_TEAM },
        { "a/b/c/d", BH_SITE_KIND_BY_DEPTH, BH_TENANT_PROJECT },
        { "a/b/c/d/e", BH_SITE_KIND_BY_DEPTH, BH_TENANT_PROJECT },
        { "a", BH_SITE_KIND_PROJECT, BH_TENANT_PROJECT },
        { "a/b/c", BH_SITE_KIND_ORGANIZATION, BH_TENANT_ORGANIZATION },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_site_tenant tenant = { .name = cases[i].path, .kind = cases[i].said };

        BH_CHECK_EQ(cases[i].path, bh_site_tenant_kind(&tenant), cases[i].kind);
    }
    assert_true(bh_fields_ordered(&bh_site_fields));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_whole_site_is_right),
    cmocka_unit_test(faults_name_the_entry),
    cmocka_unit_test(faults_say_what_helps),
    cmocka_unit_test(kinds_go_by_depth),
};
BH_TEST_MAIN(tests)
