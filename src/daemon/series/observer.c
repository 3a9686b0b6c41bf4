#include "daemon/series/observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request/facts.h"
#include "base/assert.h"
#include "base/time.h"
#include "daemon/series/observed_jobs.h"
#include "engine/step/engine.h"

/* Of 10,000, and more: not known; the owner does other things between so many tenants. */
enum { WHOLE_BP = 10000, UNKNOWN = UINT32_MAX, TENANTS_AT_ONCE = 256 };

/* A node that reports nothing new for so long is not heard: its last figures are of another time. */
static const uint64_t report_lasts_ns = 30 * BH_NS_PER_S;

struct seen_node {
    char name[64];
    uint64_t at_ns;    /* of its last report, by its clock */
    uint64_t since_ns; /* when that was first seen, by the monotonic clock */
};

struct bh_observer {
    struct seen_node *nodes; /* by name */
    uint32_t node_count;
    struct bh_seen_leases leases;
};

struct bh_observer *
bh_observer_new(void)
{
    struct bh_observer *observer = calloc(1, sizeof *observer);

    BH_ASSERT(observer);
    return observer;
}

void
bh_observer_free(struct bh_observer *observer)
{
    free(observer->nodes);
    free(observer->leases.items);
    free(observer);
}

/* ---- what the engine knows ---- */

struct site_question {
    struct bh_observation *observation;
    const struct bh_directory *dir;
    uint32_t next; /* tenant of the directory */
    uint64_t pending;
};

static void
observer_ask_gpus(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    static const struct bh_series_object site = { BH_SERIES_KIND_SITE, "site", 0 };
    struct site_question *q = self;
    uint64_t leased = 0, idle = 0, unusable = 0;

    q->observation->now_ns = now_ns;
    for (uint32_t i = 0; i < q->dir->gpu_count; i++) {
        struct bh_gpu_view gpu;

        if (!bh_view_gpu(engine, q->dir->gpus[i].id, &gpu))
            continue;
        leased += gpu.used.compute;
        idle += gpu.idle.compute;
        unusable += gpu.unusable.compute;
    }
    bh_observation_put(q->observation, &site, BH_SERIES_SITE_LEASED, leased);
    bh_observation_put(q->observation, &site, BH_SERIES_SITE_IDLE, idle);
    bh_observation_put(q->observation, &site, BH_SERIES_SITE_UNUSABLE, unusable);
}

static void
observer_put_tenant(struct site_question *q, const struct bh_dir_tenant *named,
                    const struct bh_tenant_view *view)
{
    const struct bh_series_object tenant = {
        BH_SERIES_KIND_TENANT, bh_arena_printf(q->observation->arena, "%u %s", named->id.v, named->path),
        named->id.v
    };

    bh_observation_put(q->observation, &tenant, BH_SERIES_TENANT_PARTS, view->used);
    bh_observation_put(q->observation, &tenant, BH_SERIES_TENANT_RUNNING, view->running);
    bh_observation_put(q->observation, &tenant, BH_SERIES_TENANT_PENDING, view->pending);
    if (view->settings.parent.v == 0)
        q->pending += view->pending;
}

static void
observer_ask_tenants(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct site_question *q = self;

    for (uint32_t n = 0; n < TENANTS_AT_ONCE && q->next < q->dir->tenant_count; n++, q->next++) {
        const struct bh_dir_tenant *named = &q->dir->tenants[q->next];
        struct bh_tenant_view view;

        if (!named->gone && bh_view_tenant(engine, named->id, now_ns, &view))
            observer_put_tenant(q, named, &view);
    }
}

static bh_rc
observer_put_site(const struct bh_owner *owner, struct bh_observation *observation, struct bh_err *err)
{
    static const struct bh_series_object site = { BH_SERIES_KIND_SITE, "site", 0 };
    struct site_question q = { .observation = observation, .dir = owner->ops->directory_get(owner->self) };
    bh_rc rc = owner->ops->ask(owner->self, observer_ask_gpus, &q, err);

    while (rc == BH_OK && q.next < q.dir->tenant_count)
        rc = owner->ops->ask(owner->self, observer_ask_tenants, &q, err);
    if (rc == BH_OK)
        bh_observation_put(observation, &site, BH_SERIES_SITE_PENDING, q.pending);
    owner->ops->directory_put(owner->self, q.dir);
    return rc;
}

/* ---- what nodes reported ---- */

/* Reports leave out what is 0; what is not known they say. */
static uint64_t
observer_number(bh_json_value object, const char *name)
{
    return bh_json_number(bh_json_get(object, name), 0);
}

/* By GPM, or else as the driver says in percent. */
static uint64_t
observer_busy_bp(bh_json_value gpu)
{
    uint64_t busy = observer_number(gpu, "busy_bp"), percent = observer_number(gpu, "utilisation");

    if (busy <= WHOLE_BP)
        return busy;
    return percent <= 100 ? percent * (WHOLE_BP / 100) : UNKNOWN;
}

/* What the board does not have is not known, or 0 where 0 cannot be. */
static void
observer_put_gpu(struct bh_observation *observation, const char *uuid, bh_json_value sample)
{
    const struct bh_series_object gpu = { BH_SERIES_KIND_GPU, uuid, 0 };
    const struct {
        enum bh_series_row row;
        uint64_t value, least, most;
    } values[] = {
        { BH_SERIES_GPU_TEMPERATURE, observer_number(sample, "temperature_c"), 1, UNKNOWN - 1 },
        { BH_SERIES_GPU_POWER, observer_number(sample, "power_mw"), 1, UNKNOWN - 1 },
        { BH_SERIES_GPU_BUSY, observer_busy_bp(sample), 0, WHOLE_BP },
        { BH_SERIES_GPU_MEMORY, observer_number(sample, "memory_used_mib"), 0, UNKNOWN - 1 },
        { BH_SERIES_GPU_SM, observer_number(sample, "sm_bp"), 0, WHOLE_BP },
    };

    for (size_t i = 0; i < BH_COUNT(values); i++)
        if (values[i].value >= values[i].least && values[i].value <= values[i].most)
            bh_observation_put(observation, &gpu, values[i].row, values[i].value);
}

/* The sums over a node's GPUs; `*_of`: so many have the figure. */
struct node_sums {
    uint64_t hottest, power, busy, memory;
    uint32_t hot_of, power_of, busy_of, memory_of;
};

static void
observer_add_gpu(struct node_sums *sums, bh_json_value sample)
{
    uint64_t celsius = observer_number(sample, "temperature_c"), busy = observer_busy_bp(sample);
    uint64_t power = observer_number(sample, "power_mw");
    uint64_t memory = observer_number(sample, "memory_used_mib");

    if (celsius > 0 && celsius < UNKNOWN) {
        sums->hottest = celsius > sums->hottest ? celsius : sums->hottest;
        sums->hot_of++;
    }
    if (power > 0 && power < UNKNOWN) {
        sums->power += power;
        sums->power_of++;
    }
    if (busy <= WHOLE_BP) {
        sums->busy += busy;
        sums->busy_of++;
    }
    if (memory < UNKNOWN) {
        sums->memory += memory;
        sums->memory_of++;
    }
}

/* A sum in which a GPU is missing would look like less: it is left out. */
static void
observer_put_node(struct bh_observation *observation, const char *name, const struct node_sums *sums,
                  uint32_t gpus)
{
    const struct bh_series_object node = { BH_SERIES_KIND_NODE, name, 0 };

    if (sums->hot_of > 0)
        bh_observation_put(observation, &node, BH_SERIES_NODE_TEMPERATURE, sums->hottest);
    if (gpus > 0 && sums->power_of == gpus)
        bh_observation_put(observation, &node, BH_SERIES_NODE_POWER, sums->power);
    if (gpus > 0 && sums->busy_of == gpus)
        bh_observation_put(observation, &node, BH_SERIES_NODE_BUSY, sums->busy / gpus);
    if (gpus > 0 && sums->memory_of == gpus)
        bh_observation_put(observation, &node, BH_SERIES_NODE_MEMORY, sums->memory);
}

static void
observer_put_report(struct bh_observation *observation, const struct bh_node_facts *facts)
{
    bh_json_value gpus = bh_json_get(bh_json_get(facts->root, "samples"), "gpus");
    struct node_sums sums = { .hottest = 0 };

    for (size_t i = 0; i < bh_json_count(gpus); i++) {
        bh_json_value sample = bh_json_at(gpus, i);
        const char *uuid = bh_json_text(bh_json_get(sample, "uuid"), "");

        observer_put_gpu(observation, bh_arena_strdup(observation->arena, uuid), sample);
        observer_add_gpu(&sums, sample);
    }
    observer_put_node(observation, bh_arena_strdup(observation->arena, facts->name), &sums,
                      (uint32_t)bh_json_count(gpus));
}

static int
observer_compare(const void *a, const void *b)
{
    return strcmp(a, b); /* a name stands first */
}

/* Since when the node's last report is known; 0 where there is none. */
static struct seen_node
observer_see_node(const struct bh_observer *observer, const struct bh_node_facts *facts,
                  uint64_t monotonic_ns)
{
    struct seen_node now = { .since_ns = monotonic_ns };
    const struct seen_node *before;

    now.at_ns = bh_json_number(bh_json_get(bh_json_get(facts->root, "samples"), "at_ns"), 0);
    snprintf(now.name, sizeof now.name, "%s", facts->name);
    before = observer->node_count
                 ? bsearch(now.name, observer->nodes, observer->node_count, sizeof now, observer_compare)
                 : NULL;
    if (before && before->at_ns == now.at_ns)
        now.since_ns = before->since_ns;
    return now;
}

/* The facts are by name, and so is what is remembered. */
static void
observer_see_nodes(struct bh_observer *observer, const struct bh_facts *facts, uint64_t monotonic_ns,
                   bool *ret_fresh)
{
    struct seen_node *nodes = calloc((size_t)facts->node_count + 1, sizeof *nodes);

    BH_ASSERT(nodes);
    for (uint32_t i = 0; i < facts->node_count; i++) {
        nodes[i] = observer_see_node(observer, &facts->nodes[i], monotonic_ns);
        ret_fresh[i] = nodes[i].at_ns > 0 && monotonic_ns - nodes[i].since_ns <= report_lasts_ns;
    }
    free(observer->nodes);
    observer->nodes = nodes;
    observer->node_count = facts->node_count;
}

static bh_rc
observer_put_reports(struct bh_observer *observer, const struct bh_owner *owner, uint64_t monotonic_ns,
                     struct bh_observation *observation, struct bh_err *err)
{
    struct bh_facts facts;
    bool *fresh;
    bh_rc rc;

    bh_facts_load(owner, &facts);
    fresh = calloc((size_t)facts.node_count + 1, sizeof *fresh);
    BH_ASSERT(fresh);
    observer_see_nodes(observer, &facts, monotonic_ns, fresh);
    for (uint32_t i = 0; i < facts.node_count; i++)
        if (fresh[i])
            observer_put_report(observation, &facts.nodes[i]);
    rc = bh_observed_jobs_put(&(struct bh_observed_reports){ owner, &facts, fresh }, &observer->leases,
                              observation, err);
    free(fresh);
    bh_facts_fini(&facts);
    return rc;
}

bh_rc
bh_observer_observe(struct bh_observer *observer, const struct bh_owner *owner, uint64_t monotonic_ns,
                    struct bh_observation *ret_observation, struct bh_err *err)
{
    bh_rc rc = observer_put_site(owner, ret_observation, err);

    return rc == BH_OK ? observer_put_reports(observer, owner, monotonic_ns, ret_observation, err) : rc;
}
