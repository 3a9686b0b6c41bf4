#include "api/nodes/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "api/request/facts.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "base/assert.h"
#include "model/driver.h"

/* What nodes have for jobs, by the numbers of those that have a name. */
struct host_question {
    struct bh_host_view *hosts;
    uint32_t count; /* ids below that */
};

struct node_list {
    struct bh_call *call;
    struct bh_rows rows;
    const char *one; /* the name of the only one that is asked for; NULL: all */
    bool found;
    struct bh_visible visible;
    struct bh_facts facts;
    bool *shown; /* beside facts.nodes */
    struct host_question hosts;
};

enum { GRADES_MAX = 16, FENCED_MAX = 64 };

/* The lists of a node's row, while it is written. */
struct node_lists {
    struct bh_reply_node_grade grades[GRADES_MAX];
    struct bh_reply_node_fenced_gpu fenced[FENCED_MAX];
    const char *faults[BH_DRIVER_FAULTS + 1], *unverified[GRADES_MAX];
};

static void
nodes_ask_hosts(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct host_question *q = self;

    for (uint32_t id = 1; id < q->count; id++)
        if (!bh_view_host(engine, (bh_node_id){ id }, &q->hosts[id]))
            q->hosts[id] = (struct bh_host_view){ .up = false };
}

static bool
nodes_count_ids(void *self, const struct bh_name_row *row)
{
    struct host_question *q = self;

    if (row->kind == BH_NAME_NODE && row->id >= q->count)
        q->count = row->id + 1;
    return true;
}

/* Known faults of its driver that Bulkhead heeds. */
static struct bh_texts
nodes_faults_of(const char *driver, struct node_lists *lists)
{
    uint32_t count = 0;

    for (uint32_t fault = 0; *driver && fault < BH_DRIVER_FAULTS; fault++)
        if (!bh_driver_is_fixed(driver, (enum bh_driver_fault)fault))
            lists->faults[count++] = bh_driver_fix_cve((enum bh_driver_fault)fault);
    return (struct bh_texts){ lists->faults, count };
}

/* Grades of isolation that it was probed for and does not offer. */
static void
nodes_fill_grades(bh_json_value grades, struct node_lists *lists, struct bh_reply_node_shown *ret)
{
    uint32_t count = 0;

    for (; count < bh_json_count(grades) && count < GRADES_MAX; count++) {
        bh_json_value grade = bh_json_at(grades, count);

        lists->unverified[count] = bh_json_text(bh_json_get(grade, "grade"), "");
        lists->grades[count] =
            (struct bh_reply_node_grade){ .found = bh_json_truth(bh_json_get(grade, "found")),
                                          .grade = lists->unverified[count],
                                          .why = bh_json_text(bh_json_get(grade, "why"), "") };
    }
    ret->grades_not_offered = (struct bh_list){ lists->grades, count };
    ret->grades_not_verified = (struct bh_texts){ lists->unverified, count };
}

/* The last result of its isolation checks.  The reason names jobs: only for a caller that may see all. */
static void
nodes_fill_isolation(const struct node_list *list, bh_json_value node, struct bh_reply_node_shown *ret)
{
    bh_json_value checks = bh_json_get(bh_json_get(node, "samples"), "walls");

    if (!checks)
        checks = bh_json_get(node, "walls");
    ret->isolation = bh_json_text(bh_json_get(checks, "state"), "untried");
    ret->isolation_again_ns = bh_json_number(bh_json_get(checks, "again_ns"), 0);
    ret->isolation_gpus_fenced = bh_json_number(bh_json_get(checks, "gpus"), 0);
    if (list->visible.all)
        ret->isolation_why = bh_json_text(bh_json_get(checks, "why"), "");
}

/* Its GPUs that take nothing new, each with why. */
static struct bh_list
nodes_fenced_of(const struct node_list *list, const struct bh_node_facts *node, struct node_lists *lists)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < list->facts.gpu_count && count < FENCED_MAX; i++) {
        const struct bh_gpu_facts_of *gpu = &list->facts.gpus[i];
        const char *why = bh_facts_fence_why(gpu, list->visible.all);

        if (gpu->node != node || !*why)
            continue;
        lists->fenced[count++] = (struct bh_reply_node_fenced_gpu){
            .gpu = bh_json_number(bh_json_get(gpu->gpu, "index"), 0), .uuid = gpu->uuid, .why = why
        };
    }
    return (struct bh_list){ lists->fenced, count };
}

/* What it said when it connected. */
static void
nodes_fill_report(const struct node_list *list, const struct bh_node_facts *facts, struct node_lists *lists,
                  struct bh_reply_node_shown *ret)
{
    bh_json_value from = facts->root;

    ret->checkpoint = bh_json_text(bh_json_get(from, "checkpoint"), "unknown");
    ret->cpus = bh_json_number(bh_json_get(from, "cpus"), 0);
    ret->driver = bh_json_text(bh_json_get(from, "driver"), "");
    ret->driver_faults = nodes_faults_of(ret->driver, lists);
    ret->driver_scrub = bh_json_text(bh_json_get(from, "driver_scrub"), "unknown");
    ret->fenced_gpus = nodes_fenced_of(list, facts, lists);
    ret->gpus = bh_json_count(bh_json_get(from, "gpus"));
    nodes_fill_grades(bh_json_get(from, "grades"), lists, ret);
    nodes_fill_isolation(list, from, ret);
    ret->memory_mib = bh_json_number(bh_json_get(from, "memory_mib"), 0);
    ret->reported_ns = bh_facts_reported_ns(facts);
    ret->runtime = bh_json_text(bh_json_get(from, "runtime"), "");
}

static void
nodes_put_node(struct node_list *list, const char *name, uint32_t id)
{
    const struct bh_node_facts *facts = bh_facts_node(&list->facts, name);
    static const struct bh_host_view unknown;
    const struct bh_host_view *host = id < list->hosts.count ? &list->hosts.hosts[id] : &unknown;
    struct node_lists lists;
    struct bh_reply_node_shown row = {
        .cordon = bh_held_names[host->held],
        .cpus = BH_UNSET,
        .gpus = BH_UNSET,
        .isolation_gpus_fenced = BH_UNSET,
        .memory_mib = BH_UNSET,
        .name = name,
        .needs_reboot = host->reboots,
        .offered_cpu_milli = host->up ? host->cpu_milli : (uint64_t)BH_UNSET,
        .offered_memory_mib = host->up ? host->memory_mib : (uint64_t)BH_UNSET,
        .state = facts && host->up ? "up" : "down", /* connected, and settled */
        .unchecked = host->unchecked,
        .used_cpu_milli = host->up ? host->cpu_used : (uint64_t)BH_UNSET,
        .used_memory_mib = host->up ? host->memory_used : (uint64_t)BH_UNSET,
    };

    if (facts) {
        nodes_fill_report(list, facts, &lists, &row);
        list->shown[facts - list->facts.nodes] = true;
    }
    list->found = true;
    if (list->one)
        bh_reply_put(list->call, &bh_reply_node_shown_fields, &row);
    else
        (void)bh_rows_put(&list->rows, &row);
}

static bool
nodes_is_asked_for(const struct node_list *list, const char *name)
{
    return !list->one || strcmp(list->one, name) == 0;
}

static bool
nodes_put_known(void *self, const struct bh_name_row *row)
{
    struct node_list *list = self;

    if (row->kind == BH_NAME_NODE && !row->gone && nodes_is_asked_for(list, row->name))
        nodes_put_node(list, row->name, row->id);
    return true;
}

static bh_rc
nodes_load(struct node_list *list, struct bh_err *err)
{
    struct bh_call *call = list->call;
    const struct bh_store *store = &call->api->options.store;
    bh_rc rc = store->ops->list_names(store->self, nodes_count_ids, &list->hosts, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, (list->hosts.count + 1) * sizeof *list->hosts.hosts, &list->hosts.hosts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(call, "job.view", &list->visible, err);
    return rc == BH_OK ? bh_call_ask(call, nodes_ask_hosts, &list->hosts, err) : rc;
}

static bh_rc
nodes_put_all(struct node_list *list, struct bh_err *err)
{
    const struct bh_store *store = &list->call->api->options.store;
    bh_rc rc;

    bh_facts_load(&list->call->api->options.owner, &list->facts);
    list->shown = calloc(list->facts.node_count + 1, sizeof *list->shown);
    BH_ASSERT(list->shown);
    rc = store->ops->list_names(store->self, nodes_put_known, list, err);
    for (uint32_t i = 0; i < list->facts.node_count; i++)
        if (!list->shown[i] && nodes_is_asked_for(list, list->facts.nodes[i].name))
            nodes_put_node(list, list->facts.nodes[i].name, UINT32_MAX); /* it came since names were read */
    bh_facts_fini(&list->facts);
    free(list->shown);
    return rc;
}

bh_rc
bh_nodes_list(struct bh_call *call, struct bh_err *err)
{
    struct node_list list = { .call = call };
    bh_rc rc = nodes_load(&list, err);

    if (rc != BH_OK)
        return rc;
    list.rows = bh_rows_begin(call, &bh_reply_node_list_fields);
    rc = nodes_put_all(&list, err);
    bh_rows_end(&list.rows, &(struct bh_reply_node_list){ .total = list.rows.count });
    return rc;
}

bh_rc
bh_nodes_get(struct bh_call *call, struct bh_err *err)
{
    struct node_list list = { .call = call, .one = call->id };
    bh_rc rc = nodes_load(&list, err);

    if (rc == BH_OK)
        rc = nodes_put_all(&list, err);
    if (rc != BH_OK || list.found)
        return rc;
    bh_err_set(err, BH_NOT_FOUND, "no node %.119s", call->id);
    return bh_err_hint(err, "`bulkhead node` lists them");
}
