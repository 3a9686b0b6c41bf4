#include "api/nodes/nodes.h"

#include <stdlib.h>

#include "api/request/facts.h"
#include "api/request/visible.h"
#include "base/assert.h"
#include "model/driver.h"

/* What nodes have for jobs, by the numbers of those that have a name. */
struct host_question {
    struct bh_host_view *hosts;
    uint32_t count; /* ids below that */
};

struct node_list {
    struct bh_json_writer w;
    struct bh_visible visible;
    struct bh_facts facts;
    bool *shown; /* beside facts.nodes */
    struct host_question hosts;
    uint64_t total;
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

/* What jobs hold of the node's cores and memory, and what it has for them. */
static void
nodes_put_host(struct bh_json_writer *w, const struct bh_host_view *host)
{
    bh_json_u64(w, "offered_cpu_milli", host->cpu_milli);
    bh_json_u64(w, "offered_memory_mib", host->memory_mib);
}

/* Known faults of its driver that Bulkhead heeds. */
static void
nodes_put_faults(struct bh_json_writer *w, const char *driver)
{
    bh_json_open(w, "driver_faults", '[');
    for (uint32_t fault = 0; *driver && fault < BH_DRIVER_FAULTS; fault++)
        if (!bh_driver_is_fixed(driver, (enum bh_driver_fault)fault))
            bh_json_str(w, NULL, bh_driver_fix_cve((enum bh_driver_fault)fault));
    bh_json_close(w, ']');
}

/* Grades of isolation that it was probed for and does not offer. */
static void
nodes_put_grades(struct bh_json_writer *w, bh_json_value grades)
{
    bh_json_open(w, "grades_not_offered", '[');
    for (size_t i = 0; i < bh_json_count(grades); i++) {
        bh_json_value grade = bh_json_at(grades, i);

        bh_json_open(w, NULL, '{');
        bh_json_bool(w, "found", bh_json_truth(bh_json_get(grade, "found")));
        bh_json_str(w, "grade", bh_json_text(bh_json_get(grade, "grade"), ""));
        bh_json_str(w, "why", bh_json_text(bh_json_get(grade, "why"), ""));
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
    bh_json_open(w, "grades_not_verified", '[');
    for (size_t i = 0; i < bh_json_count(grades); i++)
        bh_json_str(w, NULL, bh_json_text(bh_json_get(bh_json_at(grades, i), "grade"), ""));
    bh_json_close(w, ']');
}

/* What its isolation checks came to, as it last said.  Why names jobs: for who may see all. */
static void
nodes_put_isolation(struct node_list *list, bh_json_value node)
{
    struct bh_json_writer *w = &list->w;
    bh_json_value walls = bh_json_get(bh_json_get(node, "samples"), "walls");
    uint64_t again_ns;

    if (!walls)
        walls = bh_json_get(node, "walls");
    again_ns = bh_json_number(bh_json_get(walls, "again_ns"), 0);
    bh_json_str(w, "isolation", bh_json_text(bh_json_get(walls, "state"), "untried"));
    if (again_ns)
        bh_json_ns(w, "isolation_again_ns", again_ns);
    bh_json_u64(w, "isolation_gpus_fenced", bh_json_number(bh_json_get(walls, "gpus"), 0));
    if (list->visible.all)
        bh_json_str(w, "isolation_why", bh_json_text(bh_json_get(walls, "why"), ""));
}

/* Its GPUs that take nothing new, each with why. */
static void
nodes_put_fenced(struct node_list *list, const struct bh_node_facts *node)
{
    struct bh_json_writer *w = &list->w;

    bh_json_open(w, "fenced_gpus", '[');
    for (uint32_t i = 0; i < list->facts.gpu_count; i++) {
        const struct bh_gpu_facts_of *gpu = &list->facts.gpus[i];
        const char *why = bh_facts_fence_why(gpu, list->visible.all);

        if (gpu->node != node || !*why)
            continue;
        bh_json_open(w, NULL, '{');
        bh_json_u64(w, "gpu", bh_json_number(bh_json_get(gpu->gpu, "index"), 0));
        bh_json_str(w, "uuid", gpu->uuid);
        bh_json_str(w, "why", why);
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

static void
nodes_put_node(struct node_list *list, const char *name, uint32_t id)
{
    const struct bh_node_facts *facts = bh_facts_node(&list->facts, name);
    bh_json_value from = facts ? facts->root : NULL;
    static const struct bh_host_view unknown;
    const struct bh_host_view *host = id < list->hosts.count ? &list->hosts.hosts[id] : &unknown;
    struct bh_json_writer *w = &list->w;

    bh_json_open(w, NULL, '{');
    if (from) {
        bh_json_str(w, "checkpoint", bh_json_text(bh_json_get(from, "checkpoint"), "unknown"));
        bh_json_u64(w, "cpus", bh_json_number(bh_json_get(from, "cpus"), 0));
        bh_json_str(w, "driver", bh_json_text(bh_json_get(from, "driver"), ""));
        bh_json_str(w, "driver_scrub", bh_json_text(bh_json_get(from, "driver_scrub"), "unknown"));
        nodes_put_faults(w, bh_json_text(bh_json_get(from, "driver"), ""));
        nodes_put_fenced(list, facts);
        bh_json_u64(w, "gpus", bh_json_count(bh_json_get(from, "gpus")));
        nodes_put_grades(w, bh_json_get(from, "grades"));
    }
    bh_json_str(w, "held", bh_held_names[host->held]);
    if (from)
        nodes_put_isolation(list, from);
    if (from)
        bh_json_u64(w, "memory_mib", bh_json_number(bh_json_get(from, "memory_mib"), 0));
    bh_json_str(w, "name", name);
    if (host->reboots)
        bh_json_bool(w, "needs_reboot", true);
    if (host->up)
        nodes_put_host(w, host);
    if (from)
        bh_json_str(w, "runtime", bh_json_text(bh_json_get(from, "runtime"), ""));
    bh_json_str(w, "state", from && host->up ? "up" : "down"); /* connected, and settled */
    if (host->unchecked)
        bh_json_bool(w, "unchecked", true);
    if (host->up) {
        bh_json_u64(w, "used_cpu_milli", host->cpu_used);
        bh_json_u64(w, "used_memory_mib", host->memory_used);
    }
    bh_json_close(w, '}');
    if (facts)
        list->shown[facts - list->facts.nodes] = true;
    list->total++;
}

static bool
nodes_put_known(void *self, const struct bh_name_row *row)
{
    struct node_list *list = self;

    if (row->kind == BH_NAME_NODE && !row->gone)
        nodes_put_node(list, row->name, row->id);
    return true;
}

bh_rc
bh_nodes_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct node_list list = { .w = bh_call_writer(call) };
    bh_rc rc = store->ops->list_names(store->self, nodes_count_ids, &list.hosts, err);
    if (rc != BH_OK)
        return rc;

    rc = bh_call_alloc(call, (list.hosts.count + 1) * sizeof *list.hosts.hosts, &list.hosts.hosts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(call, "job.view", &list.visible, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, nodes_ask_hosts, &list.hosts, err);
    if (rc != BH_OK)
        return rc;
    bh_facts_load(&call->api->options.owner, &list.facts);
    list.shown = calloc(list.facts.node_count + 1, sizeof *list.shown);
    BH_ASSERT(list.shown);
    bh_json_open(&list.w, NULL, '{');
    bh_json_open(&list.w, "items", '[');
    rc = store->ops->list_names(store->self, nodes_put_known, &list, err);
    for (uint32_t i = 0; i < list.facts.node_count; i++)
        if (!list.shown[i]) /* it came since the names were read */
            nodes_put_node(&list, list.facts.nodes[i].name, UINT32_MAX);
    bh_json_close(&list.w, ']');
    bh_json_u64(&list.w, "total", list.total);
    bh_json_close(&list.w, '}');
    bh_facts_fini(&list.facts);
    free(list.shown);
    return rc;
}
