#include "node/partition/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "model/share.h"
#include "node/core/driver_scrub.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/partition/health.h"
#include "node/placement/inventory.h"
#include "node/placement/mig_change.h"
#include "node/placement/placement.h"
#include "node/placement/reset_hold.h"
#include "node/placement/share_slot.h"
#include "node/placement/trespass.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/occupancy.h"

#define NO_COMPUTE_INSTANCE UINT32_MAX

enum { ATTEMPTS_MAX = 3 }; /* of a change whose gpu child died, each after a look at the GPU */
#define NOT_YET_KNOWN UINT32_C(0xfffffeff) /* the number of a GPU instance to be made */

bh_rc
bh_node_partition_scan(struct bh_node *node, struct bh_err *err)
{
    struct bh_inventory inventory = { 0 };
    bh_rc rc;

    bh_node_assert(node);
    BH_ASSERT(node->scan_arena);
    bh_arena_reset(node->scan_arena);
    node->inventory = inventory;
    node->inventory_known = false;
    node->scans++;
    rc = node->device.ops->scan(node->device.self, node->scan_arena, &inventory, err);
    if (rc != BH_OK)
        return rc;
    bh_reset_hold_complete(node, node->scan_arena, &inventory);
    node->inventory = inventory;
    node->inventory_known = true;
    return BH_OK;
}

static bh_rc
partition_need_inventory(struct bh_node *node, struct bh_err *err)
{
    return node->inventory_known ? BH_OK : bh_node_partition_scan(node, err);
}

/* The instance that this node made as this partition, or what is left of it: after an interrupted destruction
 * it has no compute instance, and so no name. */
static bool
partition_is_that(const struct bh_device_instance *instance, const struct bh_node_partition *partition)
{
    if (strcmp(instance->gpu, partition->gpu) != 0)
        return false;
    if (instance->ci != NO_COMPUTE_INSTANCE)
        return strcmp(instance->uuid, partition->uuid) == 0;
    return instance->gi == partition->gi && instance->start == partition->start
           && strcmp(instance->profile, partition->profile) == 0;
}

static const struct bh_device_instance *
partition_find_instance(const struct bh_node *node, const struct bh_node_partition *partition)
{
    for (uint32_t i = 0; i < node->inventory.instance_count; i++) {
        if (partition_is_that(&node->inventory.instances[i], partition))
            return &node->inventory.instances[i];
    }
    return NULL;
}

bool
bh_node_partition_is_ours(const struct bh_node *node, const struct bh_device_instance *instance)
{
    const struct bh_node_partition *partition =
        bh_state_partition_at(&node->state, instance->gpu, instance->gi);

    return partition && partition_is_that(instance, partition);
}

bool
bh_node_partition_has_foreign(const struct bh_node *node, const char *gpu)
{
    for (uint32_t i = 0; i < node->inventory.instance_count; i++) {
        if (strcmp(node->inventory.instances[i].gpu, gpu) == 0
            && !bh_node_partition_is_ours(node, &node->inventory.instances[i]))
            return true;
    }
    return false;
}

static uint32_t
partition_instances_on(const struct bh_node *node, const char *gpu)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->inventory.instance_count; i++)
        count += strcmp(node->inventory.instances[i].gpu, gpu) == 0;
    return count;
}

/* ---- carving ---- */

/* A whole GPU has no instance whose end would take contexts with it: before it changes hands
 * the driver must know of none. */
static bh_rc
partition_check_unused(const struct bh_node *node, const struct bh_node_partition *partition,
                       struct bh_err *err)
{
    const char *gpu = partition->gpu;
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_device_process *processes;
    uint32_t count;
    bh_rc rc = node->device.ops->processes(node->device.self, gpu, arena, &processes, &count, err);

    if (rc == BH_NOT_FOUND) /* lost: not in use */
        return BH_OK;
    for (uint32_t i = 0; rc == BH_OK && i < count; i++)
        if (bh_trespass_charge(node, partition, processes[i].pid, 0))
            return bh_err_set(err, BH_CONFLICT, "process %u of a job without a lease on it holds GPU %s",
                              processes[i].pid, gpu);
    if (rc != BH_OK)
        return rc;
    if (count > 0)
        return bh_err_set(err, BH_CONFLICT, "process %u uses GPU %s", processes[0].pid, gpu);
    return BH_OK;
}

/* A running job keeps its placement even when its partition no longer exists. */
static bh_rc
partition_check_holders(const struct bh_node *node, const struct bh_node_partition *wanted,
                        struct bh_err *err)
{
    struct bh_node_partition placement = *wanted;
    const struct bh_job *holder;

    placement.gi = bh_placement_is_whole(wanted)   ? BH_WHOLE_GPU
                   : bh_placement_is_share(wanted) ? bh_placement_share_gi(wanted->start)
                                                   : NOT_YET_KNOWN;
    holder = bh_placement_holder(node, &placement, 0);
    return holder ? bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " holds placement %u of GPU %s",
                               holder->record.lease, wanted->start, wanted->gpu)
                  : bh_occupancy_check_idle(node, &placement, err);
}

bh_rc
bh_node_partition_check_allowed(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    if (bh_conf_gpu_allowed(&node->conf, gpu))
        return bh_driver_scrub_check(node, err);
    bh_err_set(err, BH_DENIED, "Bulkhead may not change GPU %s", gpu);
    return bh_err_hint(err, "the administrator can add gpus = %s to node.conf", gpu);
}

bh_rc
bh_node_partition_carve_check(struct bh_node *node, const struct bh_node_partition *wanted,
                              struct bh_err *err)
{
    const struct bh_device_gpu *gpu;
    bh_rc rc = partition_need_inventory(node, err);

    if (rc != BH_OK)
        return rc;
    gpu = *wanted->gpu ? bh_node_inventory_gpu(node, wanted->gpu) : NULL; /* a lost one may have no name */
    if (!gpu)
        return bh_err_set(err, BH_NOT_FOUND, "no GPU %s on this node", wanted->gpu);
    rc = bh_node_partition_check_allowed(node, wanted->gpu, err);
    if (rc != BH_OK)
        return rc;
    if (bh_state_partition(&node->state, wanted->partition))
        return bh_err_set(err, BH_CONFLICT, "partition %" PRIu64 " exists already", wanted->partition);
    if (bh_state_partition_at(&node->state, wanted->gpu, BH_WHOLE_GPU))
        return bh_err_set(err, BH_CONFLICT, "GPU %s is leased as a whole", wanted->gpu);
    if (!bh_placement_is_share(wanted) && bh_share_slot_others(node, wanted->gpu, 0) > 0)
        return bh_err_set(err, BH_CONFLICT, "GPU %s is shared by %u", wanted->gpu,
                          bh_share_slot_others(node, wanted->gpu, 0));
    if (bh_placement_is_share(wanted) && wanted->start >= BH_GPU_SHARES_MAX)
        return bh_err_set(err, BH_RANGE, "a GPU has %d slots for shares", BH_GPU_SHARES_MAX);
    rc = partition_check_holders(node, wanted, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_placement_makes_instance(wanted) && partition_instances_on(node, wanted->gpu) > 0)
        return bh_err_set(err, BH_CONFLICT, "GPU %s has %u MIG instances", wanted->gpu,
                          partition_instances_on(node, wanted->gpu));
    for (uint32_t i = 0; i < node->inventory.instance_count; i++) {
        const struct bh_device_instance *instance = &node->inventory.instances[i];

        if (bh_placement_makes_instance(wanted) && strcmp(instance->gpu, wanted->gpu) == 0
            && instance->start == wanted->start)
            return bh_err_set(err, BH_FULL, "placement %u of GPU %s is taken by a %s", wanted->start,
                              wanted->gpu, instance->profile);
    }
    return BH_OK;
}

static bh_rc
partition_record(struct bh_node *node, const struct bh_node_partition *wanted,
                 const struct bh_device_instance *instance, struct bh_err *err)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, wanted->gpu);
    struct bh_node_record record = { .kind = BH_NODE_RECORD_PARTITION, .partition = *wanted };

    BH_ASSERT(*wanted->gpu && (instance != NULL) == bh_placement_makes_instance(wanted));
    if (instance && instance->gi >= BH_SHARE_GI)
        return bh_err_set(err, BH_IO, "the driver gives instance %u of GPU %s, which is no number of one",
                          instance->gi, wanted->gpu);
    record.partition.units = bh_node_inventory_units(node, wanted);
    record.partition.minor = gpu ? gpu->minor : 0;
    record.partition.memory_mib = instance ? instance->memory_mib : gpu ? gpu->memory_mib : 0;
    record.partition.gi = instance                        ? instance->gi
                          : bh_placement_is_share(wanted) ? bh_placement_share_gi(wanted->start)
                                                          : BH_WHOLE_GPU;
    record.partition.ci = instance ? instance->ci : BH_WHOLE_GPU;
    record.partition.gi_minor = instance ? instance->gi_minor : 0;
    record.partition.ci_minor = instance ? instance->ci_minor : 0;
    snprintf(record.partition.uuid, sizeof record.partition.uuid, "%s",
             instance ? instance->uuid : wanted->gpu);
    return bh_state_record(&node->state, &record, err);
}

static bool
partition_has_mode(const struct bh_node *node, const struct bh_node_partition *wanted)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, wanted->gpu);

    return !gpu || gpu->mig_enabled == bh_placement_makes_instance(wanted);
}

/* The GPU in the mode that the partition needs; it is empty when that has to change. */
static bh_rc
partition_set_mode(struct bh_node *node, const struct bh_node_partition *wanted, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (int turn = 0; turn < ATTEMPTS_MAX && !partition_has_mode(node, wanted); turn++) {
        struct bh_err unseen;

        node->inventory_known = false;
        rc = node->device.ops->set_mig(node->device.self, wanted->gpu, bh_placement_makes_instance(wanted),
                                       err);
        if (rc == BH_UNCERTAIN)
            bh_health_hung(node, wanted->gpu, err);
        if (rc == BH_OK || !bh_gpu_child_died(err) || bh_node_partition_scan(node, &unseen) != BH_OK)
            return rc;
    }
    return partition_has_mode(node, wanted) ? BH_OK : rc;
}

/* What was cut off in the middle is undone. */
static bh_rc
partition_destroy_half(struct bh_node *node, const char *gpu, uint32_t gi, struct bh_err *err)
{
    bh_rc rc = BH_UNCERTAIN;

    node->inventory_known = false;
    for (int turn = 0; turn < ATTEMPTS_MAX && rc == BH_UNCERTAIN; turn++)
        rc = turn == 0 || bh_gpu_child_died(err) ? node->device.ops->destroy(node->device.self, gpu, gi, err)
                                                 : err->rc;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

bool
bh_node_partition_is_carved(const struct bh_node *node, const struct bh_node_partition *wanted)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, wanted->partition);

    return partition && strcmp(partition->gpu, wanted->gpu) == 0 && partition->start == wanted->start
           && strcmp(partition->profile, wanted->profile) == 0;
}

bh_rc
bh_node_partition_begin(struct bh_node *node, struct bh_node_record *order, struct bh_err *err)
{
    bh_rc rc = bh_node_partition_scan(node, err);

    BH_ASSERT(order->kind == BH_NODE_RECORD_ORDER && order->message == BH_MSG_CARVE);
    order->lent_count = 0;
    for (uint32_t i = 0; i < node->inventory.instance_count && rc == BH_OK; i++) {
        const struct bh_device_instance *instance = &node->inventory.instances[i];
        struct bh_node_partition *stood = &order->lent[order->lent_count];

        if (strcmp(instance->gpu, order->partition.gpu) != 0 || bh_node_partition_is_ours(node, instance))
            continue;
        if (order->lent_count == BH_COUNT(order->lent))
            return bh_err_set(err, BH_FULL, "GPU %s has too many instances", instance->gpu);
        *stood = (struct bh_node_partition){ .gi = instance->gi };
        snprintf(stood->uuid, sizeof stood->uuid, "%s", instance->uuid);
        order->lent_count++;
    }
    order->begun = true;
    return rc;
}

static bool
partition_stood_before(const struct bh_node_record *order, const struct bh_device_instance *instance)
{
    for (uint32_t i = 0; i < order->lent_count; i++) {
        if (order->lent[i].gi == instance->gi && strcmp(order->lent[i].uuid, instance->uuid) == 0)
            return true;
    }
    return false;
}

bh_rc
bh_node_partition_adopt(struct bh_node *node, const struct bh_node_record *order, bool *ret_found,
                        struct bh_err *err)
{
    const struct bh_node_partition *wanted = &order->partition;
    bh_rc rc = bh_node_partition_scan(node, err);

    BH_ASSERT(order->kind == BH_NODE_RECORD_ORDER && order->lent_count <= BH_COUNT(order->lent));
    *ret_found = false;
    for (uint32_t i = 0;
         bh_placement_makes_instance(wanted) && i < node->inventory.instance_count && rc == BH_OK; i++) {
        const struct bh_device_instance *instance = &node->inventory.instances[i];

        if (strcmp(instance->gpu, wanted->gpu) != 0 || instance->start != wanted->start
            || strcmp(instance->profile, wanted->profile) != 0 || bh_node_partition_is_ours(node, instance)
            || partition_stood_before(order, instance))
            continue;
        if (instance->ci == NO_COMPUTE_INSTANCE)
            return partition_destroy_half(node, wanted->gpu, instance->gi, err);
        *ret_found = true;
        return partition_record(node, wanted, instance, err);
    }
    return rc;
}

/* There was no answer: read the outcome from the GPU itself.  `ret_again`: nothing was done, and the driver
 * is not the cause. */
static bh_rc
partition_recover_carve(struct bh_node *node, const struct bh_node_record *order, bool *ret_again,
                        struct bh_err *err)
{
    const struct bh_node_partition *wanted = &order->partition;
    struct bh_err ignored;
    bool found;

    bh_health_hung(node, wanted->gpu, err);
    if (bh_node_partition_adopt(node, order, &found, &ignored) != BH_OK)
        return err->rc;
    *ret_again = !found && bh_gpu_child_died(err);
    return found ? BH_OK
                 : bh_err_set(err, BH_TIMEOUT, "the driver did not carve %s on %s in time", wanted->profile,
                              wanted->gpu);
}

static bh_rc
partition_carve_instance(struct bh_node *node, const struct bh_node_record *order, bool *ret_again,
                         struct bh_err *err)
{
    const struct bh_node_partition *wanted = &order->partition;
    struct bh_device_instance instance = { 0 };
    bh_rc rc;

    *ret_again = false;
    node->inventory_known = false;
    rc = node->device.ops->carve(node->device.self, wanted->gpu, wanted->profile, wanted->start, &instance,
                                 err);
    if (rc == BH_UNCERTAIN)
        return partition_recover_carve(node, order, ret_again, err);
    return rc == BH_OK ? partition_record(node, wanted, &instance, err) : rc;
}

bh_rc
bh_node_partition_carve(struct bh_node *node, const struct bh_node_record *order, struct bh_err *err)
{
    const struct bh_node_partition *wanted = &order->partition;
    bool again = true;
    bh_rc rc = partition_set_mode(node, wanted, err);

    BH_ASSERT(order->kind == BH_NODE_RECORD_ORDER && order->begun);
    bh_node_assert(node);
    if (rc != BH_OK)
        return rc;
    if (!bh_placement_makes_instance(wanted)) {
        if (bh_share_slot_neighbours(node, wanted->gpu).leases == 0)
            rc = partition_check_unused(node, wanted, err);
        return rc == BH_OK ? partition_record(node, wanted, NULL, err) : rc;
    }
    for (int turn = 0; turn < ATTEMPTS_MAX && again; turn++)
        rc = partition_carve_instance(node, order, &again, err);
    if (rc != BH_OK)
        return rc;
    bh_log(INSTANCE_CARVED, BH_STR("gpu", wanted->gpu), BH_STR("profile", wanted->profile),
           BH_U64("start", wanted->start));
    return BH_OK;
}

/* ---- destroying ---- */

static bh_rc
partition_record_gone(struct bh_node *node, uint64_t partition, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_GONE, .partition.partition = partition };

    return bh_state_record(&node->state, &record, err);
}

/* An instance is destroyed only when it is still the one that this node made. */
static bh_rc
partition_destroy_instance(struct bh_node *node, const struct bh_node_partition *partition,
                           struct bh_err *err)
{
    bh_rc rc = BH_UNCERTAIN;

    for (int turn = 0; turn < ATTEMPTS_MAX && rc == BH_UNCERTAIN; turn++) {
        struct bh_err unseen;

        if (bh_node_partition_scan(node, &unseen) != BH_OK) {
            if (turn == 0)
                *err = unseen;
            return err->rc;
        }
        if (bh_node_inventory_is_unread(node, partition->gpu)) /* it may still be there */
            return bh_err_set(err, BH_UNAVAILABLE, "GPU %s cannot be read", partition->gpu);
        if (!partition_find_instance(node, partition))
            return BH_OK;
        if (turn > 0 && !bh_gpu_child_died(err))
            return rc;
        node->inventory_known = false;
        rc = node->device.ops->destroy(node->device.self, partition->gpu, partition->gi, err);
        if (rc == BH_UNCERTAIN)
            bh_health_hung(node, partition->gpu, err);
    }
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

bh_rc
bh_node_partition_destroy(struct bh_node *node, uint64_t id, uint32_t tenant, struct bh_err *err)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, id);
    const struct bh_job *holder;
    bh_rc rc = BH_OK;

    bh_node_assert(node);
    if (!partition)
        return BH_OK;
    holder = bh_placement_holder(node, partition, 0);
    if (holder)
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " holds partition %" PRIu64,
                          holder->record.lease, id);
    rc = bh_occupancy_check_idle(node, partition, err);
    if (rc == BH_OK && bh_placement_is_share(partition)) /* its contexts went with the processes of its job */
        return partition_record_gone(node, id, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_mig_change_check(node, partition->gpu, tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = partition->gi == BH_WHOLE_GPU ? partition_check_unused(node, partition, err)
                                       : partition_destroy_instance(node, partition, err);
    if (rc != BH_OK)
        return rc;
    bh_log(INSTANCE_DESTROYED, BH_STR("gpu", partition->gpu), BH_STR("profile", partition->profile));
    return partition_record_gone(node, id, err);
}

/* ---- after a start ---- */

/* A partition that cannot be destroyed now stays noted, and is destroyed when that is ordered. */
static bh_rc
partition_finish_destroy(struct bh_node *node, const struct bh_node_partition *half, struct bh_err *err)
{
    if (bh_mig_change_check(node, half->gpu, 0, err) == BH_OK
        && partition_destroy_half(node, half->gpu, half->gi, err) == BH_OK)
        return partition_record_gone(node, half->partition, err);
    bh_log(EFFECT_FAILED, BH_U64("partition", half->partition), BH_ERRLOG(err));
    return BH_OK;
}

/* What is on a GPU that cannot be read is unknown: the partition stays noted until the GPU answers. */
static bh_rc
partition_refresh(struct bh_node *node, const struct bh_node_partition *known, struct bh_err *err)
{
    const struct bh_device_instance *instance =
        bh_placement_makes_instance(known) ? partition_find_instance(node, known) : NULL;
    struct bh_node_partition wanted = *known;

    bh_state_assert_partition(known);
    if (bh_node_inventory_is_unread(node, known->gpu))
        return BH_OK;
    if (bh_placement_makes_instance(known) && !instance)
        return partition_record_gone(node, known->partition, err);
    if (instance && instance->ci == NO_COMPUTE_INSTANCE)
        return partition_finish_destroy(node, known, err);
    return partition_record(node, &wanted, instance, err);
}

bh_rc
bh_node_partition_reconcile(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    uint64_t ids[BH_NODE_PARTITIONS_MAX];
    uint32_t count = 0;
    bh_rc rc = BH_OK;

    bh_node_assert(node);
    for (uint32_t i = 0; i < node->state.partition_count; i++) {
        bh_state_assert_partition(&node->state.partitions[i]);
        if (!gpu || strcmp(node->state.partitions[i].gpu, gpu) == 0)
            ids[count++] = node->state.partitions[i].partition;
    }
    for (uint32_t i = 0; i < count && rc == BH_OK; i++) {
        struct bh_node_partition known = *bh_state_partition(&node->state, ids[i]);

        rc = partition_refresh(node, &known, err);
    }
    return rc;
}
