#include "node/session/report_devices.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "node/core/state_check.h"

/* Compute instances of one GPU instance stand side by side in a scan. */
static bool
report_devices_is_next(const struct bh_inventory *inventory, uint32_t at)
{
    return at > 0 && inventory->instances[at].gi == inventory->instances[at - 1].gi
           && strcmp(inventory->instances[at].gpu, inventory->instances[at - 1].gpu) == 0;
}

static void
report_devices_fill_instance(const struct bh_node *node, const struct bh_device_instance *from,
                             struct bh_msg_instance *instance)
{
    const struct bh_node_partition *partition = bh_state_partition_at(&node->state, from->gpu, from->gi);

    *instance = (struct bh_msg_instance){ .partition = partition ? partition->partition : 0,
                                          .gi = from->gi,
                                          .memory_mib = from->memory_mib,
                                          .memory_used_mib = from->memory_used_mib,
                                          .busy_bp = from->activity.busy_bp,
                                          .sm_bp = from->activity.sm_bp,
                                          .tensor_bp = from->activity.tensor_bp,
                                          .dram_bp = from->activity.dram_bp };
    snprintf(instance->gpu, sizeof instance->gpu, "%s", from->gpu);
    snprintf(instance->profile, sizeof instance->profile, "%s", from->profile);
}

void
bh_report_put_instances(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list)
{
    const struct bh_inventory *inventory = &node->inventory;
    struct bh_msg_instance *instances =
        bh_arena_alloc(arena, (inventory->instance_count + 1) * sizeof *instances);
    uint32_t count = 0;

    bh_node_assert(node);
    for (uint32_t i = 0; instances && i < inventory->instance_count; i++)
        if (!report_devices_is_next(inventory, i))
            report_devices_fill_instance(node, &inventory->instances[i], &instances[count++]);
    BH_ASSERT(count <= inventory->instance_count);
    *ret_list = (struct bh_list){ instances, count };
}

static void
report_devices_fill_sensors(const struct bh_device_sensors *from, struct bh_msg_sensors *sensors)
{
    *sensors = (struct bh_msg_sensors){ .sm_clock_mhz = from->sm_clock_mhz,
                                        .memory_clock_mhz = from->memory_clock_mhz,
                                        .memory_temperature_c = from->memory_temperature_c,
                                        .memory_percent = from->memory_percent,
                                        .encoder_percent = from->encoder_percent,
                                        .decoder_percent = from->decoder_percent,
                                        .reserved_mib = from->reserved_mib,
                                        .vgpu_licensed = from->vgpu_licensed,
                                        .remap_failed = from->remap_failed,
                                        .remapped_uncorrectable = from->remapped_uncorrectable,
                                        .remapped_correctable = from->remapped_correctable,
                                        .pcie_replays = from->pcie_replays,
                                        .energy_mj = from->energy_mj,
                                        .nvlink_kib = from->nvlink_kib,
                                        .pcie_transmit_bytes_s = from->pcie_transmit_bytes_s,
                                        .pcie_receive_bytes_s = from->pcie_receive_bytes_s };
    snprintf(sensors->gpu, sizeof sensors->gpu, "%s", from->gpu);
}

void
bh_report_put_sensors(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list)
{
    const struct bh_inventory *inventory = &node->inventory;
    struct bh_msg_sensors *sensors = bh_arena_alloc(arena, (inventory->sensor_count + 1) * sizeof *sensors);

    bh_node_assert(node);
    for (uint32_t i = 0; sensors && i < inventory->sensor_count; i++) {
        BH_STATE_ASSERT_TEXT(inventory->sensors[i].gpu);
        report_devices_fill_sensors(&inventory->sensors[i], &sensors[i]);
    }
    *ret_list = (struct bh_list){ sensors, sensors ? inventory->sensor_count : 0 };
}
