#include "model/site_edits.h"

#include "model/decode_test.h"

/* Pairs of files and all lines between them. What stands in no line of the file's text is
 * nothing that apply, whatif or the audit log would show. */
static const struct {
    const char *name, *from, *to, *lines;
} cases[] = {
    { "nothing", "{}", "{}", "" },
    { "another order of members", "tenants: [{name: a, limit: 1}]", "tenants: [{limit: 1, name: a}]", "" },
    { "an administrator of everything", "bindings: [{role: viewer, principal: bob, tenant: a}]",
      "bindings: [{role: viewer, principal: bob, tenant: a}, "
      "{role: admin, principal: bob, tenant: '*'}]",
      "bindings[role=admin,principal=bob,tenant=*]: added\n" },
    { "a binding less", "bindings: [{role: viewer, group: corp/ml, tenant: a}]", "{}",
      "bindings[role=viewer,group=corp/ml,tenant=a]: removed\n" },
    { "another role", "bindings: [{role: viewer, principal: bob, tenant: a}]",
      "bindings: [{role: operator, principal: bob, tenant: a}]",
      "bindings[role=viewer,principal=bob,tenant=a]: removed\n"
      "bindings[role=operator,principal=bob,tenant=a]: added\n" },
    { "a mount", "{}", "mounts: [{path: /etc, tenant: '*', write: true}]",
      "mounts[path=/etc,tenant=*]: added {\"path\":\"/etc\",\"tenant\":\"*\",\"write\":true}\n" },
    { "a mount becomes writable", "mounts: [{path: /data, tenant: a}]",
      "mounts: [{path: /data, tenant: a, write: true}]",
      "mounts[path=/data,tenant=a].write: (absent) -> true\n" },
    { "another's uid", "principals: [{name: bob, uid: 1}]", "principals: [{name: bob, uid: 2}]",
      "principals[bob].uid: 1 -> 2\n" },
    { "a SKU's memory", "skus: [{name: small, grade: C, memory: 10Gi, models: [{model: H100-80GB}]}]",
      "skus: [{name: small, grade: C, memory: 20Gi, models: [{model: H100-80GB}]}]",
      "skus[small].memory: 10Gi -> 20Gi\n" },
    { "a profile of a SKU", "skus: [{name: s, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]",
      "skus: [{name: s, grade: C, models: [{model: H100-80GB, profile: 2g.20gb}]}]",
      "skus[s].models[model=H100-80GB,profile=1g.10gb]: removed\n"
      "skus[s].models[model=H100-80GB,profile=2g.20gb]: added\n" },
    { "a policy's image", "policy: {images: [ubuntu]}", "policy: {images: [ubuntu, debian]}",
      "policy.images[debian]: added\n" },
    { "a tenant's policy", "tenants: [{name: a, policy: {max_partitions: 1}}]",
      "tenants: [{name: a, policy: {max_partitions: 2}}]", "tenants[a].policy.max_partitions: 1 -> 2\n" },
    { "the site's grant of a dataset",
      "datasets: [{name: d, path: /d, tenant: a, grants: [{tenant: a, may: [read]}]}]",
      "datasets: [{name: d, path: /d, tenant: a, grants: [{tenant: a, may: [read, write]}]}]",
      "datasets[d].grants[tenant=a].may[write]: added\n" },
    { "what a factor is", "sign_in: {factor: code}", "sign_in: {factor: optional}",
      "sign_in.factor: code -> optional\n" },
    { "no second factor", "{}", "sign_in: {step_up: [{verb: site.apply, level: none}]}",
      "sign_in.step_up[site.apply]: added {\"level\":\"none\",\"verb\":\"site.apply\"}\n" },
    { "a quota", "tenants: [{name: a, quotas: [{sku: s, limit: 1}]}]",
      "tenants: [{name: a, quotas: [{sku: s, limit: 2}]}]", "tenants[a].quotas[sku=s].limit: 1 -> 2\n" },
    { "a limit less", "tenants: [{name: a, limit: 4}]", "tenants: [{name: a}]",
      "tenants[a].limit: 4 -> (absent)\n" },
    { "the same in another order", "tenants: [{name: a}, {name: b}, {name: c}]",
      "tenants: [{name: c}, {name: a}, {name: b}]", "tenants: reordered\n" },
    { "the later entry outranks the earlier", "gpus: [{uuid: all, managed: true}, {uuid: GPU-1}]",
      "gpus: [{uuid: GPU-1}, {uuid: all, managed: true}]", "gpus: reordered\n" },
    { "one gone from the middle", "tenants: [{name: a}, {name: b}, {name: c}]",
      "tenants: [{name: a}, {name: c}]", "tenants[b]: removed\n" },
    { "twice the same", "bindings: [{role: viewer, principal: b, tenant: a}]",
      "bindings: [{role: viewer, principal: b, tenant: a}, "
      "{role: viewer, principal: b, tenant: a}]",
      "bindings[role=viewer,principal=b,tenant=a]: added\n" },
    { "what could be taken for another line", "principals: [{name: bob, identity: 'corp/x'}]",
      "principals: [{name: bob, identity: 'corp/x: added'}]",
      "principals[bob].identity: corp/x -> \"corp/x: added\"\n" },
    { "how it schedules", "scheduling: {half_life: 1h}", "{}", "scheduling.half_life: 1h -> (absent)\n" },
    { "a budget", "tenants: [{name: a}]", "tenants: [{name: a, budget: {period: day, money: 5}}]",
      "tenants[a].budget.money: (absent) -> 5\n"
      "tenants[a].budget.period: (absent) -> day\n" },
};

struct lines {
    struct bh_buf text;
    uint32_t count;
};

static void
site_edits_test_take_line(void *self, const char *text, size_t length)
{
    struct lines *lines = self;

    bh_buf_put(&lines->text, text, length);
    bh_buf_putc(&lines->text, '\n');
    lines->count++;
}

static struct bh_site
site_edits_test_read_site(const char *name, const char *yaml, struct bh_arena *arena)
{
    struct bh_site site = { .tenants = { 0 } };
    struct bh_err err = { .msg = "" };

    if (bh_test_decode(yaml, &bh_site_fields, &site, arena, &err) != BH_OK)
        BH_CHECK_STR(name, err.msg, "");
    return site;
}

static void
every_difference_has_its_line(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_site from = site_edits_test_read_site(cases[i].name, cases[i].from, arena);
        struct bh_site to = site_edits_test_read_site(cases[i].name, cases[i].to, arena);
        struct lines lines = { .count = 0 };

        bh_buf_init(&lines.text, 1 << 20);
        bh_site_edits(&from, &to, site_edits_test_take_line, &lines);
        BH_CHECK_STR(cases[i].name, lines.count ? bh_buf_text(&lines.text) : "", cases[i].lines);
        bh_buf_fini(&lines.text);
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

/* One that the member may have, and is not its zero. */
static char
some_value(const struct bh_field *field)
{
    char value = 1;

    while (field->kind == BH_FIELD_ENUM && !field->names[(int)value])
        value++;
    return value;
}

/* Each member of the description, set alone, is a difference: nothing that a file can say is
 * passed over. Deeper ones are set in an item of their own. */
static void
check_members(const struct bh_fields *fields, struct bh_site *base, struct bh_site *other, size_t offset)
{
    static const char *const text = "x";

    for (uint32_t i = 0; i < fields->count; i++) {
        const struct bh_field *field = &fields->fields[i];
        struct lines lines = { .count = 0 };

        if (field->kind == BH_FIELD_STRUCT) {
            check_members(field->of, base, other, offset + field->offset);
            continue;
        }
        if (field->kind == BH_FIELD_LIST || field->kind == BH_FIELD_TEXTS)
            continue; /* cases above */
        memcpy(other, base, sizeof *other);
        if (field->kind == BH_FIELD_TEXT)
            memcpy((char *)other + offset + field->offset, &text, sizeof text);
        else
            ((char *)other)[offset + field->offset] = some_value(field);
        bh_buf_init(&lines.text, 1 << 16);
        bh_site_edits(base, other, site_edits_test_take_line, &lines);
        BH_CHECK_EQ(field->name, lines.count, 1);
        bh_buf_fini(&lines.text);
    }
}

static void
no_member_is_passed_over(void **state)
{
    static struct bh_site base, other;

    check_members(&bh_site_fields, &base, &other, 0);
    BH_CHECK("every list has a key", bh_site_edits_known());
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_difference_has_its_line),
    cmocka_unit_test(no_member_is_passed_over),
};
BH_TEST_MAIN(tests)
