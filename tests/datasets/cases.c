/* Random questions about datasets, with the answers of src/policy/datasets.c, for second.py to
 * answer again.
 *
 *   dataset_cases COUNT SEED
 *
 * Prints worlds and questions, a line each, fields separated by tabs; "-" is none given:
 *
 *   w                                                     a new world: forget the last one
 *   b ROLE PRINCIPAL TENANT                               a binding; PRINCIPAL "-": a group's
 *   p NAME NODES                                          a pool; NODES with commas
 *   g TENANT PRINCIPAL ROLE LABEL MAY UNTIL NODES POOLS   a grant; MAY in bits
 *   q TENANT PRINCIPAL LABELS NODE RIGHTS NOW   ALLOW REASON GRANT LACKS UNTIL
 *                                                         bh_datasets_check; LABELS "-": any
 *   m TENANT PRINCIPAL LABELS NODE NOW   MAY UNTIL        bh_datasets_may
 *   n TENANT PRINCIPAL   NAMED                            bh_datasets_names
 *   j CWD MOUNTS   RIGHTS                                 bh_data_rights_wanted of the first mount;
 *                                                         MOUNTS: NAME|SOURCE,TARGET,WRITE with ;
 *
 * Ends and moments are small numbers, so that they meet. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "policy/datasets.h"

enum { GRANTS = 6, BINDINGS = 5, POOLS = 3, MOUNTS = 3, QUESTIONS = 40, MOMENTS = 6 };

struct world {
    uint64_t random;
    struct bh_site_binding bindings[BINDINGS];
    struct bh_site_pool pools[POOLS];
    const char *pool_nodes[POOLS][2];
    struct bh_site_dataset_grant grants[GRANTS];
    const char *grant_nodes[GRANTS][2], *grant_pools[GRANTS][2];
    struct bh_site site;
    struct bh_site_dataset text;
    struct bh_dataset dataset;
    struct bh_datasets datasets;
    const char *labels[3];
    struct bh_texts label_list;
};

static const char *const tenants[] = { "acme", "acme/vision", "acme/vision/train", "acme2", "other", "*" };
static const char *const accounts[] = { "alice", "bob", "carol" };
static const char *const nodes[] = { "n1", "n2", "n3", "all" };
static const char *const pool_names[] = { "dev", "prod", "rest" };
static const char *const wanted_labels[] = { "team", "team=a", "env=dev|prod", "env=de", "tea" };
static const char *const given_labels[] = { "team=a", "team=b", "env=dev", "env=prod", "env=de", "te=a" };

static uint32_t
draw(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % below);
}

#define PICK(w, list) (list)[draw(w, BH_COUNT(list))]
#define MAYBE(w, list) (draw(w, 2) ? PICK(w, list) : NULL)

static const char *
said(const char *text)
{
    return text ? text : "-";
}

static void
print_texts(const struct bh_texts *list)
{
    printf("\t%s", list->count ? "" : "-");
    for (uint32_t i = 0; i < list->count; i++)
        printf("%s%s", i ? "," : "", list->items[i]);
}

static void
draw_bindings(struct world *w)
{
    uint32_t count = draw(w, BINDINGS + 1);

    for (uint32_t i = 0; i < count; i++) {
        bool group = draw(w, 4) == 0;

        w->bindings[i] = (struct bh_site_binding){ .role = (enum bh_role)(BH_ROLE_VIEWER + draw(w, 3)),
                                                   .principal = group ? NULL : PICK(w, accounts),
                                                   .gid = group ? 500 : 0,
                                                   .tenant = PICK(w, tenants) };
        printf("b\t%s\t%s\t%s\n", bh_role_names[w->bindings[i].role], said(w->bindings[i].principal),
               w->bindings[i].tenant);
    }
    w->site.bindings = (struct bh_list){ w->bindings, count };
}

static void
draw_pools(struct world *w)
{
    uint32_t count = draw(w, POOLS + 1);

    for (uint32_t i = 0; i < count; i++) {
        w->pool_nodes[i][0] = PICK(w, nodes);
        w->pool_nodes[i][1] = PICK(w, nodes);
        w->pools[i] =
            (struct bh_site_pool){ .name = pool_names[i], .nodes = { w->pool_nodes[i], 1 + draw(w, 2) } };
        printf("p\t%s", w->pools[i].name);
        print_texts(&w->pools[i].nodes);
        putchar('\n');
    }
    w->site.pools = (struct bh_list){ w->pools, count };
}

static void
draw_grant(struct world *w, uint32_t at)
{
    struct bh_site_dataset_grant *grant = &w->grants[at];

    w->grant_nodes[at][0] = PICK(w, nodes);
    w->grant_nodes[at][1] = PICK(w, nodes);
    w->grant_pools[at][0] = PICK(w, pool_names);
    *grant = (struct bh_site_dataset_grant){ .tenant = MAYBE(w, tenants),
                                             .principal = draw(w, 3) ? NULL : PICK(w, accounts),
                                             .role = draw(w, 3) ? BH_ROLE_NONE
                                                                : (enum bh_role)(BH_ROLE_VIEWER + draw(w, 3)),
                                             .label = draw(w, 3) ? NULL : PICK(w, wanted_labels),
                                             .to = { { w->grant_nodes[at], draw(w, 3) ? 0 : 1 + draw(w, 2) },
                                                     { w->grant_pools[at], draw(w, 4) ? 0 : 1 } } };
    w->dataset.may[at] = 1 + draw(w, BH_DATA_RIGHTS - 1);
    w->dataset.until_ns[at] = draw(w, 2) ? UINT64_MAX : draw(w, MOMENTS);
    printf("g\t%s\t%s\t%s\t%s\t%" PRIu32 "\t%" PRIu64, said(grant->tenant), said(grant->principal),
           grant->role ? bh_role_names[grant->role] : "-", said(grant->label), w->dataset.may[at],
           w->dataset.until_ns[at]);
    print_texts(&grant->to.nodes);
    print_texts(&grant->to.pools);
    putchar('\n');
}

static void
draw_world(struct world *w)
{
    uint32_t count = draw(w, GRANTS + 1);

    puts("w");
    draw_bindings(w);
    draw_pools(w);
    for (uint32_t i = 0; i < count; i++)
        draw_grant(w, i);
    w->text = (struct bh_site_dataset){ .name = "d", .path = "/d", .grants = { w->grants, count } };
    w->dataset.text = &w->text;
    w->datasets = (struct bh_datasets){ &w->site, &w->dataset, 1 };
}

/* ---- questions ---- */

static struct bh_data_request
draw_request(struct world *w)
{
    struct bh_data_request request = { .tenant = tenants[draw(w, BH_COUNT(tenants) - 1)],
                                       .principal = PICK(w, accounts),
                                       .node = draw(w, 3) ? nodes[draw(w, 3)] : NULL,
                                       .rights = 1 + draw(w, BH_DATA_RIGHTS - 1),
                                       .now_ns = draw(w, MOMENTS) };

    w->label_list = (struct bh_texts){ w->labels, draw(w, 3) };
    for (uint32_t i = 0; i < w->label_list.count; i++)
        w->labels[i] = PICK(w, given_labels);
    request.labels = draw(w, 5) ? &w->label_list : NULL;
    return request;
}

/* "" is no label; "-" is any. */
static void
print_request(const struct bh_data_request *request)
{
    printf("%s\t%s", request->tenant, request->principal);
    if (!request->labels)
        printf("\t-");
    else {
        printf("\t");
        for (uint32_t i = 0; i < request->labels->count; i++)
            printf("%s%s", i ? "," : "", request->labels->items[i]);
    }
    printf("\t%s", said(request->node));
}

static void
ask_check(struct world *w)
{
    struct bh_data_request request = draw_request(w);
    struct bh_data_verdict v = bh_datasets_check(&w->datasets, &w->dataset, &request);

    printf("q\t");
    print_request(&request);
    printf("\t%" PRIu32 "\t%" PRIu64 "\t%d\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\n",
           request.rights, request.now_ns, v.allow, bh_data_rule_number(&v), v.grant, v.lacks,
           v.allow ? v.until_ns : 0);
}

static void
ask_may(struct world *w)
{
    struct bh_data_request request = draw_request(w);
    uint64_t until_ns;
    uint32_t may = bh_datasets_may(&w->datasets, &w->dataset, &request, &until_ns);

    printf("m\t");
    print_request(&request);
    printf("\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", request.now_ns, may, until_ns);
}

static void
ask_names(struct world *w)
{
    struct bh_data_request request = draw_request(w);

    printf("n\t%s\t%s\t%d\n", request.tenant, request.principal,
           bh_datasets_names(&w->datasets, &w->dataset, &request));
}

static void
ask_job(struct world *w)
{
    static const char *const names[] = { "a", "b" };
    static const char *const folders[] = { "/w", "/w/x", "/tmp", "/" };
    struct bh_mount_spec mounts[MOUNTS];
    struct bh_job_spec spec = { .mounts = { mounts, 1 + draw(w, MOUNTS) },
                                .cwd = MAYBE(w, folders),
                                .network = draw(w, 4) ? BH_NETWORK_NONE : 1 + draw(w, BH_NETWORK_MODES - 1) };

    printf("j\t%s\t", said(spec.cwd));
    for (uint32_t i = 0; i < spec.mounts.count; i++) {
        bool named = i == 0 || draw(w, 2);

        mounts[i] = (struct bh_mount_spec){ .dataset = named ? PICK(w, names) : NULL,
                                            .source = named ? NULL : PICK(w, folders),
                                            .target = draw(w, 3) ? NULL : PICK(w, folders),
                                            .write = draw(w, 3) == 0 };
        printf("%s%s,%s,%d", i ? ";" : "", named ? mounts[i].dataset : mounts[i].source,
               said(mounts[i].target), mounts[i].write);
    }
    printf("\t%s\t%" PRIu32 "\n", bh_network_mode_names[spec.network], bh_data_rights_wanted(&spec, 0));
}

int
main(int argc, char **argv)
{
    static struct world w;
    uint64_t count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;

    if (count == 0)
        return 2;
    w.random = strtoull(argv[2], NULL, 10);
    for (uint64_t asked = 0; asked < count; asked++) {
        if (asked % QUESTIONS == 0)
            draw_world(&w);
        switch (draw(&w, 8)) {
        case 0:
            ask_may(&w);
            break;
        case 1:
            ask_names(&w);
            break;
        case 2:
            ask_job(&w);
            break;
        default:
            ask_check(&w);
        }
    }
    return 0;
}
