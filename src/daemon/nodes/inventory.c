#include "daemon/nodes/inventory.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "daemon/batch/step.h"
#include "daemon/names/site_gpu.h"
#include "daemon/nodes/faults.h"
#include "daemon/state/gpu_facts.h"
#include "model/driver.h"
#include "model/unmanaged.h"

enum { UNMANAGED_TEXT_MAX = 4096 };

static struct bh_entry
inventory_report(const char *verb, const char *type, uint64_t id)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = verb, .obj = { .id = id } };

    BH_ASSERT(strlen(type) < sizeof entry.obj.type);
    memcpy(entry.obj.type, type, strlen(type) + 1);
    return entry;
}

static bool
inventory_same_gpu(const struct bh_gpu_view *view, const struct bh_ev_gpu *gpu)
{
    return bh_same(view->node, gpu->node) && view->model == gpu->model && view->managed == gpu->managed
           && view->cordoned == gpu->cordoned && view->fenced == gpu->fenced && view->keeps == gpu->keeps
           && view->numa == gpu->numa && view->layout == gpu->layout && view->lone_carve == gpu->lone_carve
           && view->mig_capable == gpu->mig_capable && view->share_limit == gpu->share_limit;
}

/* ---- GPUs that cannot be read ---- */

/* A GPU that cannot be read is as it was at the last reading, and gets no work: its partitions, its model and
 * its users come with the inventory that its node sends when it can be read. */
static bh_rc
inventory_fence_unread(struct bh_core *core, const struct bh_gpu_view *view, const char *why,
                       struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_GPU, .u.gpu = bh_view_gpu_report(view) };
    struct bh_entry entry = inventory_report("node.gpu", "gpu", view->gpu.v);
    const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, view->gpu.v);

    bh_gpu_facts_of(core, view->gpu)->unread = true;
    event.u.gpu.fenced = true;
    event.u.gpu.keeps = false;
    if (inventory_same_gpu(view, &event.u.gpu))
        return BH_OK;
    bh_log(GPU_FENCED, BH_STR("gpu", uuid ? uuid : ""), BH_STR("why", why));
    return bh_core_step(core, &entry, &event, err);
}

/* Why what is said of a GPU cannot be taken; NULL: it can.  `view` NULL: it was never read. */
static const char *
inventory_why_unread(const struct bh_gpu_view *view, const struct bh_msg_gpu *from)
{
    if (!*from->uuid)
        return "the driver has lost it and does not say which GPU it is";
    if (from->fault == BH_FAULT_LOST)
        return *from->fence_why ? from->fence_why : "the driver has lost it";
    if (view && view->model != (uint32_t)bh_model_find(from->model))
        return "it was of another model when it was read before";
    return NULL;
}

/* *ret_taken: it is one of those, and all is done for it. */
static bh_rc
inventory_apply_unread(struct bh_core *core, const struct bh_msg_gpu *from, bool *ret_taken,
                       struct bh_err *err)
{
    uint32_t id = *from->uuid ? bh_catalog_find(core->catalog, BH_NAME_GPU, from->uuid) : 0;
    struct bh_gpu_view view;
    bool known = id && bh_view_gpu(core->state.engine, (bh_gpu_id){ id }, &view);
    const char *why = inventory_why_unread(known ? &view : NULL, from);

    *ret_taken = why != NULL;
    if (!why)
        return BH_OK;
    if (known)
        return inventory_fence_unread(core, &view, why, err);
    bh_log(GPU_UNREAD, BH_STR("gpu", from->uuid), BH_U64("index", from->index), BH_STR("why", why));
    return BH_OK;
}

static bool
inventory_names_gpu(const struct bh_msg_inventory *inventory, const char *uuid)
{
    const struct bh_msg_gpu *gpus = inventory->gpus.items;

    for (uint32_t i = 0; i < inventory->gpus.count; i++)
        if (strcmp(gpus[i].uuid, uuid) == 0)
            return true;
    return false;
}

/* A driver that finds a GPU no more when it starts does not name it at all.  A node whose driver
 * did not answer names none, and has found nothing out. */
static bh_rc
inventory_find_gone_gpus(struct bh_core *core, bh_node_id node, const struct bh_msg_inventory *inventory,
                         struct bh_err *err)
{
    struct bh_gpu_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    if (!*inventory->driver)
        return BH_OK;
    while (rc == BH_OK && bh_view_next_gpu(core->state.engine, &cursor, &view)) {
        const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, view.gpu.v);

        if (bh_same(view.node, node) && uuid && !inventory_names_gpu(inventory, uuid))
            rc = inventory_fence_unread(core, &view, "the driver does not name it any more", err);
    }
    return rc;
}

/* ---- what can be read ---- */

/* In the log, when it comes to that, and once after a start. */
static void
inventory_warn_unmanaged(const struct bh_msg_inventory *inventory, const struct bh_msg_gpu *from)
{
    const struct bh_msg_partition *partitions = inventory->partitions.items;
    struct bh_unmanaged unmanaged = {
        .gpu = from->uuid,
        .node = inventory->node,
        .in_site = true,
        .allowed = from->allowed,
        .scrub_off = inventory->driver_scrub == BH_DRIVER_SCRUB_OFF,
    };
    BH_AUTO(bh_buf_fini) struct bh_buf fix = { .max = UNMANAGED_TEXT_MAX };
    BH_AUTO(bh_buf_fini) struct bh_buf why = { .max = UNMANAGED_TEXT_MAX };

    for (uint32_t i = 0; i < inventory->partitions.count; i++)
        if (partitions[i].partition == 0 && strcmp(partitions[i].gpu, from->uuid) == 0)
            bh_unmanaged_add(&unmanaged, &(struct bh_unmanaged_instance){
                                             partitions[i].profile, partitions[i].start, partitions[i].gi });
    if (bh_unmanaged_put(&unmanaged, &why, &fix))
        bh_log(GPU_UNMANAGED, BH_STR("gpu", from->uuid), BH_STR("why", bh_buf_text(&why)),
               BH_STR("next", bh_buf_text(&fix)));
}

/* One GPU: managed only when the site says so and node.conf allows it, and never while
 * it holds instances that are not its own. */
static bh_rc
inventory_apply_read(struct bh_core *core, bh_node_id node, const struct bh_msg_inventory *inventory,
                     const struct bh_msg_gpu *from, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_GPU };
    struct bh_ev_gpu *gpu = &event.u.gpu;
    struct bh_gpu_facts *facts;
    struct bh_entry entry;
    struct bh_gpu_view view;
    struct bh_site_gpu_flags flags;
    bh_rc rc = bh_catalog_name(core->catalog, BH_NAME_GPU, from->uuid, &gpu->gpu.v, err);

    if (rc != BH_OK)
        return rc;
    flags = bh_site_gpu_flags(bh_catalog_site(core->catalog), from->uuid,
                              bh_catalog_name_of(core->catalog, BH_NAME_NODE, node.v));
    gpu->node = node;
    gpu->model = bh_model_find(from->model);
    facts = bh_gpu_facts_of(core, gpu->gpu);
    if (flags.managed && (!from->allowed || from->foreign) && (facts->usable || !facts->seen))
        inventory_warn_unmanaged(inventory, from);
    facts->seen = true;
    facts->unread = false;
    facts->usable = from->allowed && !from->foreign;
    facts->mig_capable = from->mig_capable;
    gpu->managed = flags.managed && facts->usable;
    gpu->cordoned = flags.cordoned;
    gpu->layout = flags.layout;
    gpu->share_limit = flags.share_limit;
    gpu->fenced = bh_fault_fences(from->fault);
    gpu->keeps = from->fault == BH_FAULT_ISOLATION;
    gpu->mig_capable = from->mig_capable;
    gpu->lone_carve = from->mig_capable && !bh_driver_is_fixed(inventory->driver, BH_DRIVER_REPARTITION);
    gpu->numa = from->numa <= UINT8_MAX ? from->numa : 0;
    if (bh_view_gpu(core->state.engine, gpu->gpu, &view) && inventory_same_gpu(&view, gpu))
        return BH_OK;
    bh_log(GPU_FOUND, BH_STR("gpu", from->uuid), BH_STR("model", from->product),
           BH_U64("managed", gpu->managed));
    entry = inventory_report("node.gpu", "gpu", gpu->gpu.v);
    return bh_core_step(core, &entry, &event, err);
}

static bh_rc
inventory_apply_gpu(struct bh_core *core, bh_node_id node, const struct bh_msg_inventory *inventory,
                    const struct bh_msg_gpu *from, struct bh_err *err)
{
    bool taken;
    bh_rc rc = inventory_apply_unread(core, from, &taken, err);

    return rc != BH_OK || taken ? rc : inventory_apply_read(core, node, inventory, from, err);
}

static bool
inventory_has_partition(const struct bh_msg_inventory *inventory, uint64_t partition)
{
    const struct bh_msg_partition *partitions = inventory->partitions.items;

    for (uint32_t i = 0; i < inventory->partitions.count; i++)
        if (partitions[i].partition == partition)
            return true;
    return false;
}

static bool
inventory_on_node(const struct bh_core *core, bh_gpu_id gpu, bh_node_id node)
{
    struct bh_gpu_view view;

    return bh_view_gpu(core->state.engine, gpu, &view) && bh_same(view.node, node);
}

/* Partitions that should be on the node and are not (it was restarted, say). */
static bh_rc
inventory_find_gone_partitions(struct bh_core *core, bh_node_id node,
                               const struct bh_msg_inventory *inventory, struct bh_err *err)
{
    struct bh_partition_view view;
    uint32_t cursor = 0;

    while (bh_view_next_partition(core->state.engine, &cursor, &view)) {
        struct bh_event event = { .kind = BH_EV_PARTITION_GONE,
                                  .u.partition = { view.partition.partition, BH_OUTCOME_FAILED, 0 } };
        struct bh_entry entry;
        bool standing = view.state == BH_PARTITION_IDLE || view.state == BH_PARTITION_LEASED;
        bh_rc rc;

        if (!standing || !inventory_on_node(core, view.partition.gpu, node)
            || inventory_has_partition(inventory, view.partition.partition.v))
            continue;
        entry = inventory_report("node.piece_gone", "piece", view.partition.partition.v);
        rc = bh_core_step(core, &entry, &event, err);
        if (rc != BH_OK && rc != BH_CONFLICT && rc != BH_NOT_FOUND)
            return rc;
    }
    return BH_OK;
}

static bool
inventory_has_lease(const struct bh_msg_inventory *inventory, uint64_t lease)
{
    const struct bh_msg_lease_state *leases = inventory->leases.items;

    for (uint32_t i = 0; i < inventory->leases.count; i++)
        if (leases[i].lease == lease)
            return true;
    return false;
}

/* Whether a member's start was confirmed, on that node, which does not know it. */
static bool
inventory_is_lost(const struct bh_member_view *member, bh_node_id node,
                  const struct bh_msg_inventory *inventory)
{
    bool confirmed = member->state == BH_JOB_RUNNING || member->state == BH_JOB_SUSPENDING
                     || member->state == BH_JOB_SUSPENDED || member->state == BH_JOB_STOPPING;

    return confirmed && bh_same(member->node, node) && !inventory_has_lease(inventory, member->lease.v);
}

static bh_rc
inventory_end_lost(struct bh_core *core, const struct bh_job_view *job, const struct bh_member_view *member,
                   struct bh_err *err)
{
    struct bh_event event = {
        .kind = BH_EV_ENDED,
        .u.ended = { .lease = member->lease, .cause = BH_END_NODE_LOST, .ended_ns = bh_core_now(core) }
    };
    struct bh_entry entry = inventory_report("node.lease_lost", "lease", member->lease.v);
    bh_rc rc;

    entry.tenant = job->tenant.v;
    rc = bh_core_step(core, &entry, &event, err);
    return rc == BH_CONFLICT || rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* Leases whose start was confirmed and that the node does not know: it lost them. */
static bh_rc
inventory_find_lost_leases(struct bh_core *core, bh_node_id node, const struct bh_msg_inventory *inventory,
                           struct bh_err *err)
{
    struct bh_member_view member;
    struct bh_job_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_job(core->state.engine, &cursor, &view))
        for (uint32_t i = 0; rc == BH_OK && bh_view_member(core->state.engine, view.job, i, &member); i++)
            if (inventory_is_lost(&member, node, inventory))
                rc = inventory_end_lost(core, &view, &member, err);
    return rc;
}

/* A GPU that another node's name still owns: nothing of this inventory can be taken. */
bh_rc
bh_inventory_check(const struct bh_core *core, const struct bh_msg_inventory *inventory, struct bh_err *err)
{
    const struct bh_msg_gpu *gpus = inventory->gpus.items;

    for (uint32_t i = 0; i < inventory->gpus.count; i++) {
        uint32_t id = bh_catalog_find(core->catalog, BH_NAME_GPU, gpus[i].uuid);
        const char *owner;
        struct bh_gpu_view view;

        if (!id || !bh_view_gpu(core->state.engine, (bh_gpu_id){ id }, &view))
            continue;
        owner = bh_catalog_name_of(core->catalog, BH_NAME_NODE, view.node.v);
        if (!owner || strcmp(owner, inventory->node) == 0)
            continue;
        bh_err_set(err, BH_CONFLICT, "node %s reports GPU %s, which is node %s's", inventory->node,
                   gpus[i].uuid, owner);
        return bh_err_hint(err, "if the machine was renamed, set node_name = %s in node.conf", owner);
    }
    return BH_OK;
}

bh_rc
bh_inventory_apply(struct bh_core *core, bh_node_id node, const struct bh_msg_inventory *inventory,
                   struct bh_err *err)
{
    const struct bh_msg_gpu *gpus = inventory->gpus.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < inventory->gpus.count && rc == BH_OK; i++)
        rc = inventory_apply_gpu(core, node, inventory, &gpus[i], err);
    if (rc != BH_OK)
        return rc;
    rc = inventory_find_gone_gpus(core, node, inventory, err);
    if (rc != BH_OK)
        return rc;
    rc = inventory_find_gone_partitions(core, node, inventory, err);
    if (rc != BH_OK)
        return rc;
    return inventory_find_lost_leases(core, node, inventory, err);
}

static uint32_t
inventory_within_u32(uint64_t amount)
{
    return amount < UINT32_MAX ? (uint32_t)amount : UINT32_MAX;
}

struct bh_node_offer
bh_inventory_offer(const struct bh_msg_inventory *inventory)
{
    return (struct bh_node_offer){ inventory_within_u32(inventory->offer_cpu_milli),
                                   inventory_within_u32(inventory->offer_memory_mib) };
}

bh_rc
bh_inventory_node(struct bh_core *core, bh_node_id node, const struct bh_node_offer *offer,
                  struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_NODE, .u.node = { .node = node } };
    struct bh_entry entry = inventory_report(offer ? "node.up" : "node.down", "node", node.v);

    if (offer) {
        event.u.node.up = true;
        event.u.node.cpu_milli = offer->cpu_milli;
        event.u.node.memory_mib = offer->memory_mib;
    }
    return bh_core_step(core, &entry, &event, err);
}

bh_rc
bh_inventory_lose_all(struct bh_core *core, bh_ns since_ns, struct bh_err *err)
{
    struct bh_host_view host;
    uint32_t cursor = 0, id;
    bh_rc rc = BH_OK;

    core->as_of_ns = since_ns;
    while (rc == BH_OK && bh_catalog_next(core->catalog, BH_NAME_NODE, &cursor, &id))
        if (bh_view_host(core->state.engine, (bh_node_id){ id }, &host) && host.up)
            rc = bh_inventory_node(core, (bh_node_id){ id }, NULL, err);
    core->as_of_ns = 0;
    return rc;
}

bh_rc
bh_inventory_sampled(struct bh_core *core, bh_node_id node, const struct bh_list *gpus, struct bh_err *err)
{
    const struct bh_msg_gpu *sampled = gpus->items;

    for (uint32_t i = 0; i < gpus->count; i++) {
        struct bh_msg_health health = { .fault = sampled[i].fault, .gi = UINT32_MAX, .recovery = UINT32_MAX };
        uint32_t id = bh_catalog_find(core->catalog, BH_NAME_GPU, sampled[i].uuid);
        struct bh_gpu_view view;
        bh_rc rc;

        if (health.fault == BH_FAULT_NONE || !id || !bh_view_gpu(core->state.engine, (bh_gpu_id){ id }, &view)
            || (view.fenced && !view.keeps))
            continue;
        memcpy(health.gpu, sampled[i].uuid, sizeof health.gpu);
        rc = bh_faults_receive(core, node, &health, err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

/* One more than a node takes: it would rather refuse the message than end what a shorter
 * one does not name. */
enum { KEEP_MOST = BH_WIRE_RETAIN_MAX + 1 };

/* The leases of a job's members that stand on the node. */
static void
inventory_list_members(const struct bh_core *core, bh_job_id job, bh_node_id node, struct bh_list *leases)
{
    struct bh_msg_retain_item *items = leases->items;
    struct bh_member_view member;

    for (uint32_t i = 0; leases->count < KEEP_MOST && bh_view_member(core->state.engine, job, i, &member);
         i++)
        if (!member.done && bh_same(member.node, node))
            items[leases->count++].id = member.lease.v;
}

void
bh_inventory_keep(const struct bh_core *core, bh_node_id node, struct bh_arena *arena,
                  struct bh_msg_retain *ret_keep)
{
    struct bh_msg_retain_item *partitions = bh_arena_alloc(arena, KEEP_MOST * sizeof *partitions);
    struct bh_msg_retain_item *leases = bh_arena_alloc(arena, KEEP_MOST * sizeof *leases);
    struct bh_partition_view partition;
    struct bh_job_view job;
    uint32_t cursor = 0;

    BH_ASSERT(partitions && leases);
    *ret_keep = (struct bh_msg_retain){ { leases, 0 }, { partitions, 0 } };
    while (ret_keep->partitions.count < KEEP_MOST
           && bh_view_next_partition(core->state.engine, &cursor, &partition))
        if (inventory_on_node(core, partition.partition.gpu, node))
            partitions[ret_keep->partitions.count++].id = partition.partition.partition.v;
    cursor = 0;
    while (bh_view_next_job(core->state.engine, &cursor, &job))
        inventory_list_members(core, job.job, node, &ret_keep->leases);
}
